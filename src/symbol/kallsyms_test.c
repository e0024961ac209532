// SPDX-License-Identifier: Apache-2.0
#include "symbol/kallsyms.h"
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/cleanup.h"

static struct kallsyms *parse(const char *text)
{
	struct kallsyms *k = NULL;

	ASSERT_OK(kallsyms_parse(text, strlen(text), &k));
	return k;
}

static void expect(const struct kallsyms *k, uint64_t addr, const char *name, const char *module)
{
	const char *found_module = "untouched", *found = kallsyms_find(k, addr, &found_module);

	if (!name) {
		ck_assert_msg(!found, "0x%" PRIx64 " is %s", addr, found);
		ASSERT_STR(found_module, "untouched");
		return;
	}
	ck_assert_msg(found && !strcmp(found, name), "0x%" PRIx64 " is %s, not %s", addr, found,
		      name);
	ASSERT_STR(found_module, module);
}

TEST(a_function_ends_where_the_next_symbol_begins)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = parse("ffffffff81000100 T first\n"
							      "ffffffff81000200 t second\n"
							      "ffffffff81000300 D data\n"
							      "ffffffff81000400 r rodata\n"
							      "ffffffff81000500 W third\n");

	expect(k, 0xffffffff810000ff, NULL, NULL);
	expect(k, 0xffffffff81000100, "first", "");
	expect(k, 0xffffffff810001ff, "first", "");
	expect(k, 0xffffffff81000200, "second", "");
	expect(k, 0xffffffff810002ff, "second", "");
	expect(k, 0xffffffff81000300, NULL, NULL);
	expect(k, 0xffffffff810004ff, NULL, NULL);
	expect(k, 0xffffffff81000500, "third", "");
	expect(k, 0, NULL, NULL);
}

TEST(the_kernel_says_where_its_code_is)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000100 T f\n"
				   "ffffffff82000000 T _etext\n"
				   "ffffffffc0000000 t _etext\t[module]\n";
	static const char half[] = "ffffffff81000000 T _stext\n";
	struct kallsyms *k;
	uint64_t start, end;

	ASSERT_OK(kallsyms_parse(text, sizeof(text) - 1, &k));
	kallsyms_text(k, &start, &end);
	ASSERT(start == 0xffffffff81000000 && end == 0xffffffff82000000);
	kallsyms_free(k);
	ASSERT_OK(kallsyms_parse(half, sizeof(half) - 1, &k));
	kallsyms_text(k, &start, &end);
	ASSERT(!start && !end);
	kallsyms_free(k);
}

TEST(the_last_function_ends_too)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k =
		parse("ffffffff81000000 T last\nffffffffc0000000 t far\t[module]\n");
	_cleanup_(kallsyms_free_p) struct kallsyms *text =
		parse("ffffffff81000000 T last\nffffffff81000100 T _etext\n");

	expect(k, 0xffffffff81000000 + KALLSYMS_FUNCTION_MAX - 1, "last", "");
	expect(k, 0xffffffff81000000 + KALLSYMS_FUNCTION_MAX, NULL, NULL);
	expect(k, 0xffffffffc0000000 + KALLSYMS_FUNCTION_MAX, NULL, NULL);
	expect(k, UINT64_MAX, NULL, NULL);
	expect(text, 0xffffffff810000ff, "last", "");
	expect(text, 0xffffffff81000100, NULL, NULL);
}

TEST(modules_and_bpf_programs_stand_in_any_order)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k =
		parse("ffffffff81000000 T kernel\n"
		      "ffffffffc0200000 t b_open\t[b]\n"
		      "ffffffffc0200100 t b_read\t[b]\n"
		      "ffffffffc0100000 t a_open\t[a]\n"
		      "ffffffffc0300000 t bpf_prog_6deef7357e7b4530_egress\t[bpf]\n"
		      "ffffffffc0100100 d a_data\t[a]\n");

	expect(k, 0xffffffff81000010, "kernel", "");
	expect(k, 0xffffffffc0100010, "a_open", "a");
	expect(k, 0xffffffffc0100100, NULL, NULL);
	expect(k, 0xffffffffc0200010, "b_open", "b");
	expect(k, 0xffffffffc0200110, "b_read", "b");
	expect(k, 0xffffffffc0300010, "bpf_prog_6deef7357e7b4530_egress", "bpf");
}

/* Whatever their order in the file. */
TEST(one_choice_among_aliases)
{
	static const char *const lines[] = {
		"ffffffff81000000 t a\n",	   "ffffffff81000000 W aa\n",
		"ffffffff81000000 T __ccc\n",	   "ffffffff81000000 T _text\n",
		"ffffffff81000000 T longer\n",	   "ffffffff81000000 T shoru\n",
		"ffffffff81000000 T short\n",	   "ffffffff81000000 D a\n",
		"ffffffff81000000 T _einittext\n",
	};
	enum { NR = sizeof(lines) / sizeof(*lines) };

	for (size_t first = 0; first < NR; first++) {
		_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
		char text[1024] = "";

		for (size_t i = 0; i < NR; i++)
			strncat(text, lines[(first + i) % NR], 100);
		k = parse(text);
		expect(k, 0xffffffff81000000, "short", "");
	}
}

/* A caller's address is its return address less 1. */
TEST(what_returns_to_a_trampoline_of_kretprobes_was_not_called_by_what_lies_before_it)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k =
		parse("ffffffff81000000 W elfcorehdr_read\n"
		      "ffffffff81000010 T kretprobe_trampoline\n"
		      "ffffffff81000080 t trampoline_handler\n"
		      "ffffffff81000100 T __kretprobe_trampoline\n");

	expect(k, 0xffffffff8100000e, "elfcorehdr_read", "");
	expect(k, 0xffffffff8100000f, "kretprobe_trampoline", "");
	expect(k, 0xffffffff81000010, "kretprobe_trampoline", "");
	expect(k, 0xffffffff8100007f, "kretprobe_trampoline", "");
	expect(k, 0xffffffff810000fe, "trampoline_handler", "");
	expect(k, 0xffffffff810000ff, "__kretprobe_trampoline", "");
}

TEST(a_name_at_the_end_of_the_one_before_it)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k =
		parse("ffffffff81000000 T __pfx_open\nffffffff81000010 T open\n"
		      "ffffffff81000020 t en\nffffffff81000030 t __pfx_open\t[m]\n"
		      "ffffffff81000040 t open\t[m]\nffffffff81000040 t pen\t[m]\n"
		      "ffffffff81000050 D open\nffffffff81000060 t open\n"
		      "ffffffff80000000 t n\n");

	expect(k, 0xffffffff80000000, "n", "");
	expect(k, 0xffffffff81000000, "__pfx_open", "");
	expect(k, 0xffffffff81000010, "open", "");
	expect(k, 0xffffffff81000020, "en", "");
	expect(k, 0xffffffff81000030, "__pfx_open", "m");
	expect(k, 0xffffffff81000040, "pen", "m");
	expect(k, 0xffffffff81000050, NULL, NULL);
	expect(k, 0xffffffff81000060, "open", "");
}

TEST(bad_lines_are_passed_over)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k =
		parse("\n \nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
		      "ffffffff81000000 TT two\nffffffff81000000T x\n T name\nhello\n"
		      "1ffffffff81000000 T seventeen\nffffffff81000000 t m\t[open\n"
		      "ffffffff81000010 T good\nffffffff81000020 T no_newline");

	expect(k, 0xffffffff81000000, NULL, NULL);
	expect(k, 0xffffffff81000010, "good", "");
	expect(k, 0xffffffff81000020, "no_newline", "");
}

TEST(hidden_addresses_are_no_symbols)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k =
		parse("0000000000000000 T _text\n0000000000000000 t foo\t[bar]\n");
	_cleanup_(kallsyms_free_p) struct kallsyms *empty = parse("");

	expect(k, 0, NULL, NULL);
	expect(k, 100, NULL, NULL);
	expect(empty, 0, NULL, NULL);
}

/* False if the addresses are hidden. */
static bool find_line(const char *want, uint64_t *ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024], name[512], type;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %c %511s", ret, &type, name) == 3 &&
		    !strcmp(name, want))
			return *ret;
	return false;
}

TEST(this_kernel)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	uint64_t addr = 0;

	if (!find_line("schedule", &addr)) {
		/* For anybody but root, and in a sandbox without the file. */
		int r = kallsyms_read(&k);

		ck_assert_msg(r == -EPERM || r == -ENOENT || r == -EACCES, "%s", strerror(-r));
		return;
	}
	ASSERT_OK(kallsyms_read(&k));
	expect(k, addr, "schedule", "");
	expect(k, addr + 8, "schedule", "");
	expect(k, 0x400000, NULL, NULL);
	ASSERT(find_line("vfs_read", &addr));
	expect(k, addr + 1, "vfs_read", "");
}
