// SPDX-License-Identifier: Apache-2.0
#include "symbol/kallsyms.h"
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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

static int file_of(const char *text)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	ASSERT(fd >= 0);
	ASSERT_EQ(pwrite(fd, text, strlen(text), 0), (long)strlen(text));
	return fd;
}

/* More than are packed together; some addresses have two names, some are no functions. */
TEST(many_symbols)
{
	enum { MANY = 1000 };
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	char name[32];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ASSERT(f);
	for (unsigned i = 0; i < MANY; i++) {
		fprintf(f, "%x %c function_%u\n", 0x81000000 + i * 0x100, i % 7 ? 't' : 'D', i);
		if (i % 10 == 1)
			fprintf(f, "%x T also_%u\n", 0x81000000 + i * 0x100, i);
	}
	fprintf(f, "c0000000 t own\t[m]\nc0000100 t function_999\t[m]\n");
	fclose(f);
	fd = file_of(text);
	ASSERT_OK(kallsyms_read_from(fd, &k));
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), i % 10 == 1 ? "also_%u" : "function_%u", i);
			expect(k, 0x81000000 + i * 0x100 + 0x42, i % 7 || i % 10 == 1 ? name : NULL,
			       "");
			if (i % 300 == 299)
				kallsyms_rest(k);
		}
		expect(k, 0x80ffffff, NULL, NULL);
		expect(k, 0xc0000001, "own", "m");
		expect(k, 0xc0000101, "function_999", "m");
		ASSERT_OK(kallsyms_read_again_from(fd, &k));
	}
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

#define OWN_LINES                                                                                  \
	"ffffffff81000000 T _stext\n"                                                              \
	"ffffffff81000000 T first\n"                                                               \
	"ffffffff81000100 t second\n"                                                              \
	"ffffffff81000200 T _etext\n"                                                              \
	"ffffffff82000000 D some_data\n"                                                           \
	"ffffffff82000100 D more_data\n"

static void read_again(struct kallsyms **k, const char *text)
{
	_cleanup_close_ int fd = file_of(text);

	ASSERT_OK(kallsyms_read_again_from(fd, k));
}

/* What replaces the kernel's own lines in a file of `text`, of the same length, is not looked at.
 */
static void read_again_behind_rubbish(struct kallsyms **k, const char *text)
{
	static const char last[] = "ffffffff82000100 D more_data\n";
	_cleanup_free_ char *rest = strdup(text);

	ASSERT(rest);
	memset(rest, 'x', strlen(OWN_LINES) - strlen(last));
	read_again(k, rest);
}

TEST(what_is_read_again_is_what_comes_and_goes)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	_cleanup_close_ int fd = file_of(OWN_LINES "ffffffffc0000100 t one\t[m]\n"
						   "ffffffffc0000000 t zero\t[m]\n"
						   "ffffffffc0000200 t bpf_prog_a\t[bpf]\n");

	ASSERT_OK(kallsyms_read_from(fd, &k));
	expect(k, 0xffffffffc0000000, "zero", "m");
	expect(k, 0xffffffffc0000200, "bpf_prog_a", "bpf");
	for (int i = 0; i < 2; i++) {
		uint64_t start, end;

		read_again_behind_rubbish(&k, OWN_LINES "ffffffffc0000300 t three\t[another]\n"
							"ffffffffc0000200 t bpf_prog_b\t[bpf]\n");
		expect(k, 0xffffffff81000000, "first", "");
		expect(k, 0xffffffff810001ff, "second", "");
		expect(k, 0xffffffff82000200, NULL, NULL);
		expect(k, 0xffffffffc0000000, NULL, NULL);
		expect(k, 0xffffffffc0000200, "bpf_prog_b", "bpf");
		expect(k, 0xffffffffc0000300, "three", "another");
		kallsyms_text(k, &start, &end);
		ASSERT(start == 0xffffffff81000000 && end == 0xffffffff81000200);
	}
	read_again_behind_rubbish(&k, OWN_LINES);
	expect(k, 0xffffffffc0000200, NULL, NULL);
	read_again_behind_rubbish(&k, OWN_LINES "ffffffffc0000200 t bpf_prog_c\t[bpf]\n");
	expect(k, 0xffffffff81000100, "second", "");
	expect(k, 0xffffffffc0000200, "bpf_prog_c", "bpf");
}

TEST(all_is_read_again_where_the_kernels_own_symbols_are_not_known_to_be_the_same)
{
	static const char *const first[] = {
		OWN_LINES "ffffffffc0000000 t one\t[m]\n",
		/* Modules before the kernel, as on aarch64; out of order; no module. */
		OWN_LINES "ffffffff80000000 t one\t[m]\n",
		OWN_LINES "ffffffff82000100 t one\t[m]\n",
		"ffffffff83000000 t late\n" OWN_LINES "ffffffffc0000000 t one\t[m]\n",
		OWN_LINES,
	};
	static const char *const then[] = {
		"ffffffff81000000 T other\nffffffffc0000000 t two\t[m]\n",
		/* As long as before: the last one's address is another. */
		"ffffffff81000000 T _stext\nffffffff81000000 T other\n"
		"ffffffff81000100 t s_____\nffffffff81000200 T _etext\n"
		"ffffffff82000000 D some_data\nffffffff82000108 D more_data\n"
		"ffffffffc0000000 t two\t[m]\n",
		"ffffffff81000000 T _stext\nffffffff81000000 T other\n" OWN_LINES
		"ffffffffc0000000 t two\t[m]\n",
	};

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		for (size_t j = 0; j < sizeof(then) / sizeof(*then); j++) {
			_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
			_cleanup_close_ int fd = file_of(first[i]);

			ASSERT_OK(kallsyms_read_from(fd, &k));
			read_again(&k, then[j]);
			expect(k, 0xffffffff81000000, j == 2 ? "first" : "other", "");
			expect(k, 0xffffffffc0000000, "two", "m");
			expect(k, 0xffffffff80000000, NULL, NULL);
		}
}

TEST(hidden_addresses_when_read_again)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	_cleanup_close_ int fd = file_of(OWN_LINES "ffffffffc0000000 t one\t[m]\n");
	_cleanup_close_ int hidden = file_of("0000000000000000 T _stext\n"
					     "0000000000000000 T first\n"
					     "0000000000000000 t one\t[m]\n");

	ASSERT_OK(kallsyms_read_from(fd, &k));
	ASSERT_ERR(kallsyms_read_again_from(hidden, &k), EPERM);
	expect(k, 0xffffffff81000000, "first", "");
	expect(k, 0xffffffffc0000000, NULL, NULL);
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
	ASSERT_OK(kallsyms_read_again(&k));
	expect(k, addr + 1, "vfs_read", "");
}
