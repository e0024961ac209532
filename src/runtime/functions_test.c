// SPDX-License-Identifier: Apache-2.0
/*
 * Names in lists; what a file's symbols make of them is tested with the runtimes' own files.
 */
#include "runtime/functions.h"

#include "test.h"

static const char *const list[] = { "run", "_step", "OP_*", NULL };
static const char *const none[] = { NULL };

TEST(whole_names)
{
	ASSERT(runtime_name_in("run", list));
	ASSERT(runtime_name_in("_step", list));
	ASSERT(!runtime_name_in("step", list));
	ASSERT(!runtime_name_in("runs", list));
	ASSERT(!runtime_name_in("ru", list));
	ASSERT(!runtime_name_in("", list));
	ASSERT(!runtime_name_in("run", none));
}

TEST(parts_that_the_compiler_put_elsewhere)
{
	ASSERT(runtime_name_in("run.cold", list));
	ASSERT(runtime_name_in("run.constprop.0.isra.1", list));
	ASSERT(!runtime_name_in("runs.cold", list));
}

TEST(prefixes)
{
	ASSERT(runtime_name_in("OP_ADD", list));
	ASSERT(runtime_name_in("OP_ADD.cold", list));
	ASSERT(runtime_name_in("OP_", list));
	ASSERT(!runtime_name_in("OP", list));
	ASSERT(!runtime_name_in("MY_OP_ADD", list));
}
