// SPDX-License-Identifier: Apache-2.0
#include "cli/probe.h"
#include "test.h"
#include "util/log.h"

#include <errno.h>
#include <linux/perf_event.h>

static struct probes probes;

static int parse(const char *probe, const char *event)
{
	struct probes_wanted wanted = { .probes = { .nr = probe != NULL },
					.events = { .nr = event != NULL } };

	if (probe)
		wanted.probes.items[0] = (struct list_text){ probe, strlen(probe) };
	if (event)
		wanted.events.items[0] = (struct list_text){ event, strlen(event) };
	return probes_parse(&wanted, NULL, "record", &probes);
}

static const struct source_spec *parsed(const char *probe)
{
	probes_fini(&probes);
	ASSERT_OK(parse(probe, NULL));
	ASSERT_EQ(probes.nr, 1);
	return &probes.sources[0];
}

TEST(each_kind_has_its_target)
{
	const struct source_spec *s = parsed("tracepoint:sched:sched_switch");

	ASSERT_EQ(s->kind, SOURCE_TRACEPOINT);
	ASSERT_STR(s->name, "sched:sched_switch");
	ASSERT_STR(s->type, "tracepoint:sched:sched_switch");
	ASSERT_EQ(s->value, VALUE_ONE);
	s = parsed("uprobe:/a:b/c:func");
	ASSERT_EQ(s->kind, SOURCE_UPROBE);
	ASSERT_STR(s->file, "/a:b/c");
	ASSERT_STR(s->name, "func");
	ASSERT_STR(s->type, "uprobe:func");
	s = parsed("usdt:/usr/bin/x:prov:name");
	ASSERT_EQ(s->kind, SOURCE_USDT);
	ASSERT_STR(s->file, "/usr/bin/x");
	ASSERT_STR(s->name, "prov:name");
	s = parsed("kretprobe:do_exit,value=ret");
	ASSERT_EQ(s->kind, SOURCE_KRETPROBE);
	ASSERT_STR(s->name, "do_exit");
	ASSERT_EQ(s->value, VALUE_RETURNED);
}

TEST(options_stand_behind_commas)
{
	const struct source_spec *s = parsed("uprobe:f:g,rate=50,name=calls,value=arg1");

	ASSERT_EQ(s->rate, 50);
	ASSERT_STR(s->type, "calls");
	ASSERT_EQ(s->value, VALUE_ARGUMENT);
	ASSERT_STR(source_unit(s->value), "bytes");
	ASSERT(probes_have_type(&probes, "calls") && !probes_have_type(&probes, "uprobe:g"));
	ASSERT_EQ(parsed("tracepoint:a:b,value=on-cpu")->value, VALUE_RAN_NS);
	ASSERT_EQ(parsed("tracepoint:a:b,value=count")->value, VALUE_ONE);
}

TEST(a_text_is_of_one_argument)
{
	parsed("usdt:f:p:n,arg2=begin*");
	ASSERT_EQ(probes.items[0].argument, 2);
	ASSERT_STR(probes.items[0].wanted, "begin*");
	parsed("uprobe:f:g");
	ASSERT_EQ(probes.items[0].argument, 0);
}

TEST(what_makes_no_sense_is_refused)
{
	static const char *const wrong[] = {
		"",
		"x",
		"uprobe",
		"uprobe:",
		"uprobe:a",
		"uprobe::a",
		"uprobe:a:",
		"nonsense:a:b",
		"tracepoint:a",
		"tracepoint::a",
		"kprobe:",
		"kprobe:a:b",
		"usdt:a",
		"usdt:a:",
		"kprobe:a,rate=0",
		"kprobe:a,rate=-1",
		"kprobe:a,rate=x",
		"kprobe:a,",
		"kprobe:a,rate",
		"kprobe:a,x=1",
		"kprobe:a,name=",
		"kprobe:a,value=ret",
		"tracepoint:a:b,value=arg1",
		"kprobe:a,name=samples",
		"kprobe:a,arg1=x",
		"usdt:f:n,arg0=x",
		"usdt:f:n,arg13=x",
		"usdt:f:n,arg1=x,arg2=y",
		"usdt:f:n,arg1=",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		probes_fini(&probes);
		ASSERT_MSG(parse(wrong[i], NULL) == -EINVAL, "'%s' was taken", wrong[i]);
		ASSERT_EQ(probes.nr, 0);
	}
}

TEST(each_has_a_name_of_its_own)
{
	struct source_spec sleeps = { .kind = SOURCE_SLEEPS, .type = "off_cpu" };

	ASSERT_OK(probes_add(&probes, &sleeps));
	ASSERT_ERR(parse("kprobe:a,name=off_cpu", NULL), EINVAL);
	ASSERT_OK(parse("kprobe:a", NULL));
	ASSERT_ERR(parse("kprobe:a", NULL), EINVAL);
	ASSERT_OK(parse("kprobe:a,name=b", NULL));
	ASSERT_EQ(probes.nr, 3);
	sleeps.kind = SOURCE_NONE;
	ASSERT_OK(probes_add(&probes, &sleeps));
	ASSERT_EQ(probes.nr, 3);
	probes_fini(&probes);
}

TEST(there_is_a_bound)
{
	char text[32];
	int i;

	for (i = 1; i < SAMPLE_SOURCES_MAX; i++) {
		snprintf(text, sizeof(text), "kprobe:f%d", i);
		ASSERT_OK(parse(text, NULL));
	}
	ASSERT_ERR(parse("kprobe:more", NULL), EINVAL);
	probes_fini(&probes);
}

TEST(events_have_names_and_periods)
{
	ASSERT_OK(parse(NULL, "page-faults"));
	ASSERT_EQ(probes.sources[0].kind, SOURCE_EVENT);
	ASSERT_EQ(probes.sources[0].event.type, PERF_TYPE_SOFTWARE);
	ASSERT_EQ(probes.sources[0].event.config, PERF_COUNT_SW_PAGE_FAULTS);
	ASSERT_EQ(probes.sources[0].event.period, 1);
	ASSERT_STR(probes.sources[0].type, "page-faults");
	ASSERT_OK(parse(NULL, "cs:1000"));
	ASSERT_EQ(probes.sources[1].event.period, 1000);
	ASSERT_STR(probes.sources[1].type, "context-switches");
	ASSERT_OK(parse(NULL, "cycles"));
	ASSERT(probes.sources[2].event.period > 1);
	ASSERT_ERR(parse(NULL, "page-fault"), EINVAL);
	ASSERT_ERR(parse(NULL, "cs:0"), EINVAL);
	ASSERT_ERR(parse(NULL, "cs:"), EINVAL);
	ASSERT_ERR(parse(NULL, "cs:9999999999999999999"), EINVAL);
	probes_fini(&probes);
}
