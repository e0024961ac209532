// SPDX-License-Identifier: Apache-2.0
/* What the probes must say on any machine; whether this one can record is not the question. */
#include "kernel/requirements.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

TEST(every_probe_fills_its_result)
{
	for (size_t i = 0; i < nr_requirements; i++) {
		struct requirement_result result;

		memset(&result, 0x5a, sizeof(result));
		requirements[i].probe(&result);
		if (!result.detail[0] || strlen(result.detail) >= sizeof(result.detail) - 1)
			FAIL("%s: detail '%s'", requirements[i].name, result.detail);
		if (result.ok != !result.fix[0])
			FAIL("%s: ok %d, fix '%s'", requirements[i].name, result.ok, result.fix);
		if (strchr(result.detail, '\n') || strchr(result.fix, '\n'))
			FAIL("%s: more than a line", requirements[i].name);
	}
}

TEST(probes_leave_no_descriptor_open)
{
	int before = dup(0), after;

	close(before);
	for (size_t i = 0; i < nr_requirements; i++) {
		struct requirement_result result;

		requirements[i].probe(&result);
	}
	after = dup(0);
	ASSERT_EQ(after, before);
}

TEST(nobody_is_told_to_be_root)
{
	const struct requirement *missing;
	struct requirement_result result;

	if (geteuid())
		return;
	ASSERT_OK(setresuid(65534, 65534, 65534));
	missing = requirements_first_missing(&result);
	ASSERT_PTR_NONNULL(missing);
	ASSERT_STR(missing->name, "privileges");
	ASSERT(!result.ok);
	ASSERT(strstr(result.detail, "not root"));
	ASSERT(strstr(result.fix, "as root"));
}

TEST(the_first_missing_is_a_needed_one)
{
	struct requirement_result result;
	const struct requirement *missing = requirements_first_missing(&result);

	if (missing) {
		ASSERT_EQ(missing->level, REQUIREMENT_NEEDED);
		ASSERT(!result.ok);
	}
}

TEST(the_highest_frequency_is_the_kernels)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned int hz = 0;

	if (file)
		ASSERT_EQ(fscanf(file, "%u", &hz), 1);
	ASSERT_EQ(requirements_max_frequency_hz(), hz);
}
