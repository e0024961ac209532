// SPDX-License-Identifier: Apache-2.0
#include "cli/config.h"
#include "util/cleanup.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct values {
	bool flag, print, help;
	uint32_t number;
	double seconds, part, other_way;
	uint64_t size;
	const char *string, *config, *mode, *other, *one_way;
	struct text_list list;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct option_spec specs[] = {
	{ 'f', "a-flag", NULL, NULL, "a flag", OPTION_FLAG, AT(flag) },
	{ 0, "number", "N", "99", "a number", OPTION_NUMBER, AT(number), .min = 1, .max = 1000 },
	{ 0, "seconds", "S", "5", "seconds", OPTION_SECONDS, AT(seconds), .max = 3600 },
	{ 0, "part", "PART", "0.2", "a part", OPTION_FRACTION, AT(part) },
	{ 0, "size", "SIZE", "64M", "a size", OPTION_SIZE, AT(size), .max = 1ul << 30 },
	{ 0, "some-text", "TEXT", NULL, "a string", OPTION_STRING, AT(string) },
	{ .name = "or-default",
	  .arg = "TEXT",
	  .value = "all",
	  .type = OPTION_STRING,
	  AT(other),
	  .or_none = true,
	  .hidden = true },
	{ .name = "one-way",
	  .arg = "TEXT",
	  .type = OPTION_STRING,
	  AT(one_way),
	  .instead = "other-way",
	  .hidden = true },
	{ .name = "other-way",
	  .arg = "PART",
	  .type = OPTION_FRACTION,
	  AT(other_way),
	  .instead = "one-way",
	  .hidden = true },
	{ 0, "list", "ITEM", NULL, "a list", OPTION_LIST, AT(list) },
	{ .name = "its-list",
	  .arg = "ITEM",
	  .type = OPTION_LIST,
	  AT(list),
	  .or_none = true,
	  .hidden = true },
	{ .name = "mode",
	  .arg = "[TEXT]",
	  .type = OPTION_STRING,
	  AT(mode),
	  .hidden = true,
	  .alone = "x=1" },
	{ 0, "config", "FILE", NULL, "the file", OPTION_STRING, AT(config) },
	{ 0, "print-config", NULL, NULL, "print", OPTION_FLAG, AT(print) },
	{ 0, "help", NULL, NULL, "help", OPTION_FLAG, AT(help) },
	{ 0, "old-thing", "N", NULL, "", OPTION_IGNORED, .hidden = true },
	{ 0, "old-flag", NULL, NULL, "", OPTION_IGNORED, .hidden = true },
	OPTIONS_END,
};

static const struct config_variable variables[] = {
	{ "OTHERS_TIMEOUT", "seconds", "ms" },
	{ "OTHERS_TEXT", "some-text", NULL },
	{ "OTHERS_OWN_TEXT", "some-text", NULL },
	{ 0 },
};

/* --config names it. */
static void write_file(const char *text, char path[64])
{
	int fd;

	snprintf(path, 64, "/tmp/sonde_config_test_XXXXXX");
	fd = mkstemp(path);
	ASSERT(fd >= 0);
	ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int read_config(struct values *values, struct config *config, const char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*values = (struct values){ 0 };
	return config_read(specs, variables, "OTHER_PROGRAM_", "test", argc, (char **)argv, values,
			   sizeof(*values), &values->config, config);
}

#define READ(values, config, ...)                                                                  \
	read_config((values), (config),                                                            \
		    (const char *const[]){ "test", __VA_ARGS__ __VA_OPT__(, ) NULL })

/* What is said on stderr while it fails: one line. */
static void assert_error(const char *want, const char *file, const char *const *argv)
{
	const char *args[8] = { argv[0] };
	char said[1024] = "", path[64];
	struct config config;
	struct values v;
	int fds[2], saved = dup(STDERR_FILENO), nr = 1;

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	for (; argv[nr]; nr++)
		args[nr] = argv[nr];
	if (file) {
		write_file(file, path);
		args[nr++] = "--config";
		args[nr] = path;
	}
	dup2(fds[1], STDERR_FILENO);
	ASSERT_ERR(read_config(&v, &config, args), EINVAL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	ASSERT(read(fds[0], said, sizeof(said) - 1) > 0);
	close(fds[0]);
	ck_assert_msg(strstr(said, want), "\"%s\" is not in \"%s\"", want, said);
	ASSERT_PTR_NONNULL(strchr(said, '\n'));
	ASSERT_EQ(strchr(said, '\n')[1], '\0');
	if (file)
		unlink(path);
}

#define ERROR_OF(want, file, ...)                                                                  \
	assert_error((want), (file),                                                               \
		     (const char *const[]){ "test", __VA_ARGS__ __VA_OPT__(, ) NULL })

static char *print(const struct config *c)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ASSERT(out);
	config_print(c, out);
	ASSERT_EQ(fclose(out), 0);
	return text;
}

TEST(defaults)
{
	struct config c;
	struct values v;

	ASSERT_OK(READ(&v, &c));
	ASSERT_EQ(v.number, 99);
	ASSERT(v.seconds == 5 && v.part == 0.2);
	ASSERT_EQ(v.size, 64 << 20);
	ASSERT(!v.flag && !v.string);
	config_fini(&c);
}

TEST(the_nearer_one_wins)
{
	char path[64];
	struct config c;
	struct values v;

	write_file("number = 1\nseconds=1\nsize = 1M\n", path);
	ASSERT_EQ(setenv("SONDE_SECONDS", "2", 1), 0);
	ASSERT_EQ(setenv("SONDE_SIZE", "2M", 1), 0);
	ASSERT_OK(READ(&v, &c, "--size", "3M", "--config", path));
	ASSERT_EQ(v.number, 1);
	ASSERT(v.seconds == 2);
	ASSERT_EQ(v.size, 3 << 20);
	ASSERT(v.part == 0.2);
	config_fini(&c);
	unlink(path);
}

TEST(one_dash_is_as_good_as_two)
{
	struct config c;
	struct values v;

	ASSERT_OK(READ(&v, &c, "-number", "7", "-some-text=x y", "-f", "-part=1"));
	ASSERT_EQ(v.number, 7);
	ASSERT_STR(v.string, "x y");
	ASSERT(v.flag && v.part == 1);
	config_fini(&c);
	ASSERT_OK(READ(&v, &c, "-a-flag", "--a-flag=false"));
	ASSERT(!v.flag);
	config_fini(&c);
}

TEST(times_have_units)
{
	static const struct {
		const char *text;
		double seconds;
	} times[] = { { "2.5", 2.5 }, { "200ms", 0.2 },	   { "3m0s", 180 },
		      { "1h", 3600 }, { "1m30.5s", 90.5 }, { ".5s", 0.5 } };
	struct config c;
	struct values v;

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		ASSERT_OK(READ(&v, &c, "--seconds", times[i].text));
		ASSERT(v.seconds > times[i].seconds - 1e-9 && v.seconds < times[i].seconds + 1e-9);
		config_fini(&c);
	}
}

TEST(a_file_has_comments_and_spaces)
{
	char path[64];
	struct config c;
	struct values v;

	write_file("\xef\xbb\xbf# number = 1\n\n  number\t=  17 \r\n \t# x\nsome-text = a = b#1\t# "
		   "c#d\n"
		   "part = 1 #\na-flag # 7",
		   path);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_EQ(v.number, 17);
	ASSERT_STR(v.string, "a = b#1");
	ASSERT(v.flag && v.part == 1);
	config_fini(&c);
	unlink(path);
}

TEST(a_file_does_without_equals_signs)
{
	char path[64];
	struct config c;
	struct values v;

	write_file("number 17\n some-text \t a = b  \na-flag\nsize=2M\npart 1\nold-flag\n", path);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_EQ(v.number, 17);
	ASSERT_STR(v.string, "a = b");
	ASSERT(v.flag && v.part == 1);
	ASSERT_EQ(v.size, 2 << 20);
	config_fini(&c);
	unlink(path);
}

TEST(variables_of_another_program_count_behind_ours)
{
	_cleanup_free_ char *text = NULL;
	struct config c;
	struct values v;

	ASSERT_EQ(setenv("OTHER_PROGRAM_NUMBER", "3", 1), 0);
	ASSERT_EQ(setenv("OTHER_PROGRAM_SOME_TEXT", "theirs", 1), 0);
	ASSERT_EQ(setenv("OTHER_PROGRAM_A_FLAG", "true", 1), 0);
	ASSERT_EQ(setenv("SONDE_SOME_TEXT", "ours", 1), 0);
	ASSERT_OK(READ(&v, &c, "-a-flag=false"));
	ASSERT_EQ(v.number, 3);
	ASSERT_STR(v.string, "ours");
	ASSERT(!v.flag);
	text = print(&c);
	ASSERT_PTR_NONNULL(strstr(text, "# OTHER_PROGRAM_NUMBER\n"
					"number = 3\n"));
	ASSERT_PTR_NONNULL(strstr(text, "# SONDE_SOME_TEXT\nsome-text = ours\n"));
	config_fini(&c);
	ASSERT_EQ(setenv("OTHER_PROGRAM_NUMBER", "0", 1), 0);
	ERROR_OF("OTHER_PROGRAM_NUMBER takes a whole number", NULL);
}

TEST(mistakes_are_said_with_their_place)
{
	ERROR_OF(":2: unknown option 'numbre'; did you mean 'number'?", "\nnumbre = 3\n");
	ERROR_OF(":1: 'config' is for the command line only", "config = x\n");
	ERROR_OF(":1: some-text stands without quotes here", "some-text = \"x\" # y\n");
	ERROR_OF(":1: some-text stands without quotes here", "some-text 'x y'\n");
	ERROR_OF(":1: some-text takes TEXT, not ''", "some-text = # x\n");
	ERROR_OF(":3: 'number' is in line 1, too", "number = 1\n\n"
						   "number = 2\n");
	ERROR_OF(":1: 'number' is not 'key = value'", "number\n");
	ERROR_OF(":1: unknown option 'numbre'; did you mean 'number'?", "numbre 3\n");
	ERROR_OF(":1: number takes a whole number from 1 to 1000, not '3 4'", "number 3 4\n");
	ERROR_OF(":1: a-flag takes 'true' or 'false', not 'no'", "a-flag no\n");
	ERROR_OF(":1: unknown option ''", "= 3\n");
	ERROR_OF(":1: number takes a whole number from 1 to 1000, not 'x'", "number = x\n");
	ERROR_OF(":1: a-flag takes 'true' or 'false', not 'yes'", "a-flag = yes\n");
	ERROR_OF("--part takes a number from 0 to 1, not '1.1'", NULL, "-part", "1.1");
	ERROR_OF("--seconds takes seconds", NULL, "--seconds", "1m30");
	ERROR_OF("--seconds takes seconds", NULL, "--seconds", "0x10");
	ERROR_OF("--seconds takes seconds", NULL, "--seconds", "1e3");
	ERROR_OF("--seconds takes seconds", NULL, "--seconds", "5d");
	ERROR_OF("did you mean '--number'?", NULL, "-numbre", "3");
	ERROR_OF("'more': test takes no arguments", NULL, "more");
	ASSERT_EQ(setenv("SONDE_NUMBER", "0", 1), 0);
	ERROR_OF("SONDE_NUMBER takes a whole number", NULL);
}

/* What is found out later. */
TEST(options_are_called_by_where_their_values_came_from)
{
	char path[64], want[96];
	struct config c;
	struct values v;

	ASSERT_STR(config_label(NULL, "list").text, "--list");
	write_file("number = 1\n\nits-list = a\n", path);
	ASSERT_EQ(setenv("SONDE_SIZE", "2M", 1), 0);
	ASSERT_EQ(setenv("OTHERS_TEXT", "x", 1), 0);
	ASSERT_OK(READ(&v, &c, "--config", path, "-seconds", "1"));
	snprintf(want, sizeof(want), "%s:3: its-list", path);
	ASSERT_STR(config_label(&c, "list").text, want);
	ASSERT_STR(config_label(&c, "size").text, "SONDE_SIZE");
	ASSERT_STR(config_label(&c, "some-text").text, "OTHERS_TEXT");
	ASSERT_STR(config_label(&c, "seconds").text, "--seconds");
	ASSERT_STR(config_label(&c, "part").text, "--part");
	config_fini(&c);
	ASSERT_OK(READ(&v, &c, "--config", path, "-list", "b"));
	ASSERT_STR(config_label(&c, "list").text, "--list");
	config_fini(&c);
	unlink(path);
}

TEST(what_may_stand_alone_may_in_a_file)
{
	char path[64];
	struct config c;
	struct values v;

	write_file("mode\n", path);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_STR(v.mode, "x=1");
	config_fini(&c);
	/* There are no arguments here that it could be. */
	ASSERT_OK(READ(&v, &c, "-mode", "abc", "--config", path));
	ASSERT_STR(v.mode, "abc");
	config_fini(&c);
	unlink(path);
}

TEST(a_file_that_cannot_be_read_is_an_error)
{
	struct config c;
	struct values v;

	ASSERT_ERR(READ(&v, &c, "--config", "/nonexistent"), ENOENT);
	ASSERT_ERR(READ(&v, &c, "--config", "/tmp"), EISDIR);
}

TEST(variables_of_others_are_no_error)
{
	struct config c;
	struct values v;

	ASSERT_EQ(setenv("SONDE_NUMBRE", "5", 1), 0);
	ASSERT_EQ(setenv("SONDE_PRINT_CONFIG", "true", 1), 0);
	ASSERT_EQ(setenv("SONDE_", "5", 1), 0);
	ASSERT_OK(READ(&v, &c));
	ASSERT_EQ(v.number, 99);
	ASSERT(!v.print);
	config_fini(&c);
}

TEST(a_variable_may_name_the_file)
{
	char ours[64], theirs[64], want[96], *text;
	struct config c;
	struct values v;

	write_file("number = 1\n", ours);
	write_file("number = 2\n", theirs);
	ASSERT_EQ(setenv("OTHER_PROGRAM_CONFIG", theirs, 1), 0);
	ASSERT_OK(READ(&v, &c));
	ASSERT_EQ(v.number, 2);
	ASSERT_STR(v.config, theirs);
	config_fini(&c);
	ASSERT_EQ(setenv("SONDE_CONFIG", ours, 1), 0);
	ASSERT_OK(READ(&v, &c));
	ASSERT_EQ(v.number, 1);
	ASSERT_STR(v.config, ours);
	text = print(&c);
	snprintf(want, sizeof(want),
		 "# %s:1\n"
		 "number = 1\n",
		 ours);
	ASSERT_PTR_NONNULL(strstr(text, want));
	ASSERT_PTR_NULL(strstr(text, "config ="));
	free(text);
	config_fini(&c);
	ASSERT_OK(READ(&v, &c, "-config", theirs));
	ASSERT_EQ(v.number, 2);
	ASSERT_STR(v.config, theirs);
	config_fini(&c);
	ASSERT_EQ(setenv("SONDE_CONFIG", "/nonexistent", 1), 0);
	ASSERT_ERR(READ(&v, &c), ENOENT);
	unlink(ours);
	unlink(theirs);
}

TEST(empty_variables_are_none)
{
	char path[64];
	struct config c;
	struct values v;

	write_file("some-text = file\n", path);
	ASSERT_EQ(setenv("SONDE_SOME_TEXT", "", 1), 0);
	ASSERT_EQ(setenv("SONDE_A_FLAG", "", 1), 0);
	ASSERT_EQ(setenv("OTHER_PROGRAM_NUMBER", "", 1), 0);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_STR(v.string, "file");
	ASSERT(!v.flag);
	ASSERT_EQ(v.number, 99);
	config_fini(&c);
	unlink(path);
}

TEST(a_variable_with_a_unit_is_a_number)
{
	struct config c;
	struct values v;

	setenv("OTHERS_TIMEOUT", "1.5s", 1);
	ASSERT_OK(READ(&v, &c));
	ASSERT_EQ(c.values[option_find(specs, "seconds") - specs].source, CONFIG_DEFAULT);
	config_fini(&c);
	unsetenv("OTHERS_TIMEOUT");
}

TEST(variables_of_other_names)
{
	char path[64], option[80], *text = NULL;
	size_t size;
	struct values v;
	_cleanup_(config_fini) struct config config = { 0 };
	FILE *out;

	write_file("some-text = file\nseconds = 9\n", path);
	snprintf(option, sizeof(option), "--config=%s", path);
	setenv("OTHERS_TIMEOUT", "1500", 1);
	setenv("OTHERS_TEXT", "first", 1);
	setenv("OTHERS_OWN_TEXT", "", 1);
	ASSERT_OK(READ(&v, &config, option));
	ASSERT(v.seconds == 1.5);
	ASSERT_STR(v.string, "first");
	out = open_memstream(&text, &size);
	config_print(&config, out);
	fclose(out);
	ASSERT_PTR_NONNULL(strstr(text, "# OTHERS_TIMEOUT\nseconds = 1500ms\n"));
	free(text);
	config_fini(&config);
	setenv("OTHERS_OWN_TEXT", "second", 1);
	ASSERT_OK(READ(&v, &config, option));
	ASSERT_STR(v.string, "second");
	config_fini(&config);
	setenv("SONDE_SOME_TEXT", "ours", 1);
	ASSERT_OK(READ(&v, &config, option));
	ASSERT_STR(v.string, "ours");
	config_fini(&config);
	/* Wrong ones are as not set. */
	setenv("OTHERS_TIMEOUT", "soon", 1);
	ASSERT_OK(READ(&v, &config, option));
	ASSERT(v.seconds == 9);
	config_fini(&config);
	setenv("OTHERS_TIMEOUT", "999999999999", 1);
	ASSERT_OK(READ(&v, &config, option));
	ASSERT(v.seconds == 9);
	config_fini(&config);
	unlink(path);
}

TEST(what_is_ignored_is_accepted)
{
	struct config c;
	struct values v;

	ASSERT_OK(READ(&v, &c, "-old-thing", "5", "-old-flag", "-number=3"));
	ASSERT_EQ(v.number, 3);
	config_fini(&c);
}

TEST(a_list_is_that_of_the_nearest_place)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	struct config c;
	struct values v;

	write_file("list = a=1; b\n", path);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_EQ(v.list.nr, 2);
	text = print(&c);
	ASSERT_PTR_NONNULL(strstr(text, ":1\nlist = a=1; b\n"));
	config_fini(&c);
	ASSERT_EQ(setenv("SONDE_LIST", "c", 1), 0);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_EQ(v.list.nr, 1);
	config_fini(&c);
	ASSERT_OK(READ(&v, &c, "--config", path, "--list=d", "-list", "e;f"));
	ASSERT_EQ(v.list.nr, 3);
	ASSERT_EQ(v.list.items[0].text[0], 'd');
	config_fini(&c);
	ASSERT_EQ(unsetenv("SONDE_LIST"), 0);
	unlink(path);
}

TEST(what_a_file_cannot_have_is_printed_as_a_comment)
{
	static const char *const texts[] = { "a #b", "#", "\"x\"", "x ", "x\n number = 3" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		_cleanup_free_ char *text = NULL;
		char path[64];
		struct config c;
		struct values v;

		ASSERT_OK(READ(&v, &c, "--some-text", texts[i]));
		text = print(&c);
		ASSERT_PTR_NONNULL(
			strstr(text, "# --some-text, which cannot be in a file\n# some-text = "));
		config_fini(&c);
		write_file(text, path);
		ASSERT_OK(READ(&v, &c, "--config", path));
		ASSERT(!v.string && v.number == 99);
		config_fini(&c);
		unlink(path);
	}
}

TEST(what_may_be_empty_is_then_as_not_given)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	struct config c;
	struct values v;

	write_file("or-default = file\nlist = a\n", path);
	ASSERT_OK(READ(&v, &c, "--or-default=", "--its-list=", "--config", path));
	ASSERT_STR(v.other, "all");
	ASSERT_EQ(v.list.nr, 0);
	text = print(&c);
	ASSERT_PTR_NONNULL(strstr(text, "# --or-default\nor-default = all\n"));
	ASSERT_PTR_NONNULL(strstr(text, "# --its-list\n# list = \n"));
	config_fini(&c);
	ASSERT_ERR(READ(&v, &c, "--some-text="), EINVAL);
	ASSERT_ERR(READ(&v, &c, "--list="), EINVAL);
	unlink(path);
}

TEST(of_two_options_for_one_thing_the_nearer_counts)
{
	_cleanup_free_ char *text = NULL;
	char path[64], want[256];
	struct config c;
	struct values v;

	write_file("other-way = 0.5\none-way = x\n", path);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_STR(v.one_way, "x");
	ASSERT(v.other_way == 0);
	config_fini(&c);
	ASSERT_OK(READ(&v, &c, "--other-way=0.25", "--config", path));
	ASSERT_PTR_NULL(v.one_way);
	ASSERT(v.other_way == 0.25);
	text = print(&c);
	snprintf(want, sizeof(want),
		 "# %s:2, but --other-way goes before\n# one-way = x\n# --other-way\nother-way = "
		 "0.25\n",
		 path);
	ASSERT_PTR_NONNULL(strstr(text, want));
	config_fini(&c);
	ASSERT_OK(READ(&v, &c, "--other-way=0.25", "--one-way=y"));
	ASSERT_STR(v.one_way, "y");
	ASSERT(v.other_way == 0);
	config_fini(&c);
	ASSERT_EQ(setenv("SONDE_ONE_WAY", "z", 1), 0);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_STR(v.one_way, "z");
	ASSERT(v.other_way == 0);
	config_fini(&c);
	/* These have no order. */
	ASSERT_EQ(setenv("SONDE_OTHER_WAY", "0.1", 1), 0);
	ASSERT_OK(READ(&v, &c));
	ASSERT_STR(v.one_way, "z");
	ASSERT(v.other_way == 0.1);
	config_fini(&c);
	ASSERT_EQ(unsetenv("SONDE_ONE_WAY"), 0);
	ASSERT_EQ(unsetenv("SONDE_OTHER_WAY"), 0);
	unlink(path);
}

TEST(what_is_printed_says_where_it_came_from_and_can_be_read)
{
	_cleanup_free_ char *text = NULL, *again = NULL;
	char path[64], want[512];
	struct config c;
	struct values v;

	write_file("number = 1\n", path);
	ASSERT_EQ(setenv("SONDE_SIZE", "2M", 1), 0);
	ASSERT_OK(READ(&v, &c, "-seconds=1m", "--config", path, "--print-config"));
	ASSERT(v.print);
	text = print(&c);
	snprintf(want, sizeof(want),
		 "# not set\na-flag = false\n# %s:1\n"
		 "number = 1\n# --seconds\nseconds = 1m\n"
		 "# default\npart = 0.2\n# SONDE_SIZE\nsize = 2M\n# not set\n# some-text = \n# not "
		 "set\n# list = \n",
		 path);
	ASSERT_STR(text, want);
	config_fini(&c);
	unlink(path);
	ASSERT_EQ(unsetenv("SONDE_SIZE"), 0);
	write_file(text, path);
	ASSERT_OK(READ(&v, &c, "--config", path));
	ASSERT_EQ(v.number, 1);
	ASSERT_EQ(v.size, 2 << 20);
	ASSERT(v.seconds == 60 && !v.flag && !v.string);
	again = print(&c);
	ASSERT_PTR_NONNULL(strstr(again, ":10\nsize = 2M\n"));
	config_fini(&c);
	unlink(path);
}
