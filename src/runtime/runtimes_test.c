// SPDX-License-Identifier: Apache-2.0
/* Each runtime of the list says all that everybody else relies on. */
#include "runtime/runtime.h"
#include "test.h"

#include <string.h>

/* What the walker's rules and a profile's frames have room for. */
enum { ID_MAX = 30 };

TEST(a_runtime_says_who_it_is)
{
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		const struct runtime_ops *ops = runtimes[id];

		if (!ops)
			continue;
		ASSERT_EQ(ops->id, id);
		ASSERT(id <= ID_MAX);
		ASSERT_PTR_NONNULL(ops->name);
		ASSERT_PTR_NONNULL(ops->label);
		for (uint32_t other = 0; other < id; other++)
			if (runtimes[other])
				ASSERT(strcmp(ops->label, runtimes[other]->label));
		if (id == RUNTIME_NATIVE)
			continue;
		ASSERT_PTR_NONNULL(ops->language);
		/* It stands in JSON as it is. */
		ASSERT(!strpbrk(ops->language, "\"\\"));
		ASSERT_PTR_NONNULL(ops->probe);
	}
}

TEST(a_runtime_that_is_found_can_be_walked_and_named)
{
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		const struct runtime_ops *ops = runtimes[id];

		if (!ops || !ops->probe)
			continue;
		ASSERT_PTR_NONNULL(ops->dso_free);
		ASSERT_PTR_NONNULL(ops->attach);
		ASSERT_PTR_NONNULL(ops->detach);
		ASSERT_PTR_NONNULL(ops->symbolize);
		ASSERT(ops->record_size > 0 && ops->record_size <= RUNTIME_RECORD_MAX);
	}
}
