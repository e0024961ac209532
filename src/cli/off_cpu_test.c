// SPDX-License-Identifier: Apache-2.0
#include "cli/off_cpu.h"
#include "test.h"
#include "util/log.h"

#include <errno.h>

static struct source_spec spec;

static int parse(const char *mode, double threshold, const char *least)
{
	struct off_cpu_wanted wanted = { .mode = mode, .threshold = threshold, .least = least };

	return off_cpu_source(&wanted, NULL, "record", &spec);
}

TEST(without_options_there_is_no_source)
{
	ASSERT_OK(parse(NULL, 0, NULL));
	ASSERT(spec.kind == SOURCE_NONE);
	ASSERT_OK(parse("0", 0, NULL));
	ASSERT(spec.kind == SOURCE_NONE);
}

TEST(a_probability_is_of_each_sleep)
{
	ASSERT_OK(parse("0.25", 0, NULL));
	ASSERT_EQ(spec.value, VALUE_SLEPT_NS);
	ASSERT(spec.kind == SOURCE_SLEEPS && spec.off_cpu.chance == 0.25 &&
	       !spec.off_cpu.weight_ns);
	ASSERT_OK(parse("1e-3", 0, NULL));
	ASSERT(spec.off_cpu.chance == 0.001);
	ASSERT_OK(parse(NULL, 0.5, "10us"));
	ASSERT(spec.kind == SOURCE_SLEEPS && spec.off_cpu.chance == 0.5);
	ASSERT_EQ(spec.off_cpu.least_ns, 10000);
}

TEST(a_weight_is_a_time)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = { { "weighted=1000", 1000 },
		      { "weighted=5ns", 5 },
		      { "weighted=250us", 250000 },
		      { "weighted=1.5ms", 1500000 },
		      { "weighted=1s", 1000000000 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ASSERT_OK(parse(cases[i].text, 0, NULL));
		ASSERT_EQ(spec.off_cpu.weight_ns, cases[i].ns);
		ASSERT(spec.off_cpu.chance == 1);
	}
}

TEST(what_makes_no_sense_is_refused)
{
	static const char *const modes[] = { "",
					     "2",
					     "-1",
					     "nan",
					     "0x1",
					     "0.5x",
					     "weighted",
					     "weighted=",
					     "weighted=0",
					     "weighted=2s",
					     "weighted=1m",
					     "weighted=-1",
					     "weighted=inf" };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		ASSERT_ERR(parse(modes[i], 0, NULL), EINVAL);
	ASSERT_ERR(parse("1", 1, NULL), EINVAL);
	ASSERT_ERR(parse("1", 0, "soon"), EINVAL);
	ASSERT_ERR(parse(NULL, 0, "1ms"), EINVAL);
}

TEST(who_wakes_is_told_of_sleeps_alone)
{
	struct off_cpu_wanted wanted = { .mode = "1", .waker = true };

	ASSERT_OK(off_cpu_source(&wanted, NULL, "record", &spec));
	ASSERT(spec.off_cpu.waker);
	wanted.mode = NULL;
	ASSERT_ERR(off_cpu_source(&wanted, NULL, "record", &spec), EINVAL);
}
