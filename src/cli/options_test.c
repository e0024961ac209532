// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

struct values {
	bool flag, second;
	uint32_t number, rate;
	double seconds, part;
	uint64_t size;
	const char *string, *mode;
	struct pid_list pids;
	struct text_list list;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct option_spec specs[] = {
	{ 'q', "flag", NULL, NULL, "a flag", OPTION_FLAG, AT(flag) },
	{ 'n', "number", "N", "99", "a number", OPTION_NUMBER, AT(number), .min = 1, .max = 1000 },
	{ 'r', "rate", "R", NULL, "a rate", OPTION_NUMBER, AT(rate), .min = 1, .max = UINT32_MAX,
	  .max_name = "what the machine takes" },
	{ 's', "seconds", "S", NULL, "seconds", OPTION_SECONDS, AT(seconds), .max = 3600 },
	{ 0, "time", "TIME", NULL, "seconds too", OPTION_SECONDS, AT(seconds), .max = 86400 },
	{ 0, "part", "PART", NULL, "a part", OPTION_FRACTION, AT(part) },
	{ 0, "size", "SIZE", "64M", "a size", OPTION_SIZE, AT(size), .min = 16 << 20,
	  .max = 1ul << 30 },
	{ 0, "string", "TEXT", NULL, "a string", OPTION_STRING, AT(string) },
	{ 'p', "pid", "PIDS", NULL, "processes", OPTION_PIDS, AT(pids) },
	{ 0, "list", "TEXT", NULL, "a list", OPTION_LIST, AT(list) },
	{ 0, "choice", "one|two|three|more", NULL, "a long label", OPTION_STRING, AT(string) },
	{ 0, "either", "one|other", "one", "a choice", OPTION_CHOICE, AT(second) },
	{ .name = "mode",
	  .arg = "[P|some=N]",
	  .help = "a mode",
	  .type = OPTION_STRING,
	  AT(mode),
	  .alone = "some=7" },
	{ 0, "secret", NULL, NULL, "hidden", OPTION_FLAG, AT(flag), .hidden = true },
	OPTIONS_END,
};

static int parse(struct values *values, int *first, const char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*values = (struct values){ 0 };
	return options_parse(specs, "test", argc, (char **)argv, values, first);
}

#define PARSE(values, first, ...)                                                                  \
	parse((values), (first), (const char *const[]){ "test", __VA_ARGS__ __VA_OPT__(, ) NULL })

static bool is_item(const struct text_list *list, size_t i, const char *text)
{
	return i < list->nr && list->items[i].len == strlen(text) &&
	       !strncmp(list->items[i].text, text, strlen(text));
}

TEST(lists_grow)
{
	struct values v;
	int first;

	ASSERT_OK(PARSE(&v, &first, "--list", "a=1", "--list=b; c d ;e"));
	ASSERT_EQ(v.list.nr, 4);
	ASSERT(is_item(&v.list, 0, "a=1") && is_item(&v.list, 1, "b"));
	ASSERT(is_item(&v.list, 2, "c d") && is_item(&v.list, 3, "e"));
	ASSERT_ERR(PARSE(&v, &first, "--list", "a;;b"), EINVAL);
	ASSERT_ERR(PARSE(&v, &first, "--list", " "), EINVAL);
	/* Of somewhere else: all of it. */
	ASSERT_OK(PARSE(&v, &first, "--list", "a"));
	ASSERT_OK(option_set(option_find(specs, "list"), "test", "there", "x;y", &v));
	ASSERT_EQ(v.list.nr, 2);
	ASSERT(is_item(&v.list, 0, "x") && is_item(&v.list, 1, "y"));
}

TEST(defaults_come_from_the_table)
{
	struct values v;
	int first;

	ASSERT_OK(PARSE(&v, &first));
	ASSERT_EQ(first, 1);
	ASSERT_EQ(v.number, 99);
	ASSERT_EQ(v.size, 64 << 20);
	ASSERT(!v.flag);
	ASSERT_PTR_NULL(v.string);
	ASSERT_EQ(v.pids.nr, 0);
}

TEST(one_that_may_stand_alone_takes_what_looks_like_its_value)
{
	static const struct {
		const char *next, *mode;
		bool taken;
	} cases[] = {
		{ "0.5", "0.5", true },	      { ".5", ".5", true },
		{ "some=1", "some=1", true }, { "some", "some", true },
		{ "--", "some=7", false },    { "-n7", "some=7", false },
		{ "other", "some=7", false }, { NULL, "some=7", false },
	};
	struct values v;
	int first;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ASSERT_OK(PARSE(&v, &first, "--mode", cases[i].next));
		ASSERT_STR(v.mode, cases[i].mode);
		ASSERT_EQ(v.number,
			  cases[i].next && *cases[i].next == '-' && cases[i].next[1] == 'n' ? 7
											    : 99);
		ASSERT_EQ(first, 2 + (cases[i].taken || (cases[i].next && *cases[i].next == '-')));
	}
	ASSERT_OK(PARSE(&v, &first, "--mode=x", "other"));
	ASSERT_STR(v.mode, "x");
	ASSERT_EQ(first, 2);
	ASSERT_OK(PARSE(&v, &first, "-q"));
	ASSERT_PTR_NULL(v.mode);
}

TEST(every_type_is_read)
{
	struct values v;
	int first;

	ASSERT_OK(PARSE(&v, &first, "-q", "-n7", "--seconds=2.5", "--size", "1G", "--string", "x y",
			"-p", "12,13"));
	ASSERT(v.flag);
	ASSERT_EQ(v.number, 7);
	ASSERT(v.seconds == 2.5);
	ASSERT_EQ(v.size, 1 << 30);
	ASSERT_STR(v.string, "x y");
	ASSERT_EQ(v.pids.nr, 2);
	ASSERT_EQ(v.pids.pids[1], 13);
}

TEST(a_choice_is_one_of_two_words)
{
	static const char *const wrong[] = { "", "o", "one|other", "others", "on" };
	struct values v;
	int first;

	ASSERT_OK(PARSE(&v, &first));
	ASSERT(!v.second);
	ASSERT_OK(PARSE(&v, &first, "--either=other"));
	ASSERT(v.second);
	ASSERT_OK(PARSE(&v, &first, "--either=other", "--either", "one"));
	ASSERT(!v.second);
	ASSERT_OK(PARSE(&v, &first, "--either=Other"));
	ASSERT(v.second);
	ASSERT_OK(PARSE(&v, &first, "--either=ONE"));
	ASSERT(!v.second);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ASSERT_ERR(PARSE(&v, &first, "--either", wrong[i]), EINVAL);
}

/* As Go reads a duration, a float and a bool: the OpenTelemetry profiler's unit files have those.
 */
TEST(values_may_be_written_as_in_go)
{
	static const struct {
		const char *text;
		double seconds;
	} times[] = { { "1h2m3.5s", 3723.5 },	{ "1.5h", 5400 },	  { "250000us", 0.25 },
		      { "2000\u00b5s", 0.002 }, { "3000\u03bcs", 0.003 }, { "1000000ns", 0.001 },
		      { "1s500ms", 1.5 } };
	static const struct {
		const char *text;
		double fraction;
	} fractions[] = { { "1e-3", 0.001 }, { "2.5E-1", 0.25 }, { "+.5", 0.5 },
			  { "1", 1 },	     { "0", 0 },	 { "10e-1", 1 } };
	static const char *const yes[] = { "true", "TRUE", "True", "t", "T", "1" };
	static const char *const no[] = { "false", "FALSE", "False", "f", "F", "0" };
	static const char *const neither[] = { "yes", "tr", "", "2", "on" };
	struct values v = { 0 };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		ASSERT_OK(option_set(option_find(specs, "time"), "test", "it", times[i].text, &v));
		ASSERT(fabs(v.seconds - times[i].seconds) < 1e-9);
	}
	for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
		ASSERT_OK(option_set(option_find(specs, "part"), "test", "it", fractions[i].text,
				     &v));
		ASSERT(fabs(v.part - fractions[i].fraction) < 1e-9);
	}
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		v.flag = false;
		ASSERT_OK(option_set(option_find(specs, "flag"), "test", "it", yes[i], &v));
		ASSERT(v.flag);
		ASSERT_OK(option_set(option_find(specs, "flag"), "test", "it", no[i], &v));
		ASSERT(!v.flag);
	}
	for (size_t i = 0; i < sizeof(neither) / sizeof(neither[0]); i++)
		ASSERT_ERR(option_set(option_find(specs, "flag"), "test", "it", neither[i], &v),
			   EINVAL);
}

TEST(pids_add_up_and_are_kept_once)
{
	struct values v;
	int first;

	ASSERT_OK(PARSE(&v, &first, "-p", "1,2,1", "-p", "3", "--pid=2"));
	ASSERT_EQ(v.pids.nr, 3);
	ASSERT_EQ(v.pids.pids[0], 1);
	ASSERT_EQ(v.pids.pids[1], 2);
	ASSERT_EQ(v.pids.pids[2], 3);
}

TEST(what_follows_the_command_is_the_commands)
{
	struct values v;
	int first;

	ASSERT_OK(PARSE(&v, &first, "-n", "5", "--", "ls", "-q"));
	ASSERT_EQ(first, 4);
	ASSERT(!v.flag);
	ASSERT_OK(PARSE(&v, &first, "-n", "5", "ls", "-q"));
	ASSERT_EQ(first, 3);
	ASSERT(!v.flag);
}

/* What the next line on stderr is. */
static void read_error(const char *const *argv, char *buf, size_t size)
{
	struct values v;
	int pipe_fds[2], saved = dup(STDERR_FILENO), first = 77;
	ssize_t n;

	ASSERT_OK(pipe2(pipe_fds, O_CLOEXEC));
	dup2(pipe_fds[1], STDERR_FILENO);
	close(pipe_fds[1]);
	ASSERT_ERR(parse(&v, &first, argv), EINVAL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	ASSERT_EQ(first, 77);
	n = read(pipe_fds[0], buf, size - 1);
	ASSERT(n > 0);
	buf[n] = '\0';
	close(pipe_fds[0]);
	ASSERT(strchr(buf, '\n') == buf + n - 1); /* one line */
}

static const struct {
	const char *const argv[4];
	const char *says;
} mistakes[] = {
	{ { "test", "-n", "0" }, "--number takes a whole number from 1 to 1000, not '0'" },
	{ { "test", "-n", "1001" }, "not '1001'" },
	{ { "test", "-n", "-3" }, "not '-3'" },
	{ { "test", "-n", "+3" }, "not '+3'" },
	{ { "test", "-n", " 3" }, "not ' 3'" },
	{ { "test", "-n", "3x" }, "not '3x'" },
	{ { "test", "-n", "" }, "not ''" },
	{ { "test", "-n", "99999999999999999999999" }, "not '9999" },
	{ { "test", "-r", "0" }, "a whole number from 1 to what the machine takes, not '0'" },
	{ { "test", "-r", "4294967296" }, "to what the machine takes, not '4294967296'" },
	{ { "test", "-n" }, "--number needs N" },
	{ { "test", "--number" }, "--number needs N" },
	{ { "test", "-s", "0" }, "seconds from 0.001 to 3600" },
	{ { "test", "-s", "nan" }, "not 'nan'" },
	{ { "test", "-s", "inf" }, "not 'inf'" },
	{ { "test", "-s", "0x10" }, "not '0x10'" },
	{ { "test", "-s", "1e3" }, "not '1e3'" },
	{ { "test", "-s", "." }, "not '.'" },
	{ { "test", "-s", "-1" }, "not '-1'" },
	{ { "test", "--part", "-0.5" }, "--part takes a number from 0 to 1, not '-0.5'" },
	{ { "test", "--part", "nan" }, "not 'nan'" },
	{ { "test", "--part", "0x1p-1" }, "not '0x1p-1'" },
	{ { "test", "--part", "e" }, "not 'e'" },
	{ { "test", "--part", "1e" }, "not '1e'" },
	{ { "test", "--part", "1e1" }, "not '1e1'" },
	{ { "test", "--size", "64Q" }, "a size such as 64M" },
	{ { "test", "--size", "1M" }, "at least 16M and at most 1G" },
	{ { "test", "--size", "2G" }, "at least 16M and at most 1G" },
	{ { "test", "--string", "" }, "--string takes TEXT" },
	{ { "test", "-p", "" }, "process ids" },
	{ { "test", "-p", "1," }, "process ids" },
	{ { "test", "-p", ",1" }, "process ids" },
	{ { "test", "-p", "1,,2" }, "process ids" },
	{ { "test", "-p", "1 2" }, "process ids" },
	{ { "test", "-p", "0" }, "process ids" },
	{ { "test", "-p", "2147483648" }, "process ids, which are at most 2147483647, not" },
	{ { "test", "-p", "1,99999999999999999999" }, "at most 2147483647" },
	{ { "test", "-p", "init" },
	  "process ids with commas between them ('pgrep -d, init' tells" },
	{ { "test", "-p", "nginx,redis" }, "('pgrep -d, nginx' tells" },
	{ { "test", "-p", "a;b" }, "process ids with commas between them, not" },
	{ { "test", "-z" }, "unknown option '-z'" },
	{ { "test", "--nope" }, "option '--nope'" },
	{ { "test", "--s" }, "option '--s' may be any of --seconds, --size, --string; see" },
	{ { "test", "--flag=1" }, "--flag takes no argument" },
};

TEST(every_mistake_gets_one_line)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		char line[512];

		read_error(mistakes[i].argv, line, sizeof(line));
		if (!strstr(line, mistakes[i].says) || !strstr(line, "see 'sonde help test'"))
			FAIL("%s %s: %s", mistakes[i].argv[1], mistakes[i].argv[2], line);
	}
}

TEST(too_many_processes_are_refused)
{
	char list[PIDS_MAX * 8 + 8] = "1", line[4096];
	size_t len = 1;

	for (int pid = 2; pid <= PIDS_MAX + 1; pid++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, ",%d", pid);
	read_error((const char *const[]){ "test", "-p", list, NULL }, line, sizeof(line));
}

TEST(the_help_lists_what_is_not_hidden)
{
	static char text[8192];
	FILE *out = fmemopen(text, sizeof(text), "w");

	options_print(specs, out);
	fclose(out);
	ASSERT(strstr(text, "  -n, --number N"));
	ASSERT(strstr(text, "a number (default 99)"));
	ASSERT(strstr(text, "      --size SIZE"));
	ASSERT(strstr(text,
		      "      --choice one|two|three|more\n                              a long"));
	ASSERT_PTR_NULL(strstr(text, "secret"));
}
