// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of real files against an independent decoder: at every location that
 * `readelf --debug-dump=frames-interp` lists, and at the last address before the next one, CFA,
 * return address and saved frame pointer must agree.
 */
#include "unwind/unwind_table.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/sample.h"
#include "test.h"
#include "util/cleanup.h"

enum { COLUMNS_MAX = 64, ROWS_WANTED = 100 };

/* longjmp's last instructions, rawmemchr of aarch64 (its return address is in x15). */
enum { REFUSED_MAX = 8 };

/* A line of readelf's, cut at its blanks. */
struct line {
	char *words[COLUMNS_MAX];
	int nr;
};

struct checker {
	const struct unwind_table *table;
	uint16_t machine;
	char header[2048], row[2048];
	struct line columns;
	uint64_t row_start, fde_start, fde_end;
	struct line values;
	unsigned int nr_checked, nr_refused;
};

static const char *const x86_names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					 "r8",	"r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

static void split(char *text, struct line *ret)
{
	char *save = NULL;

	ret->nr = 0;
	for (char *w = strtok_r(text, " \n", &save); w && ret->nr < COLUMNS_MAX;
	     w = strtok_r(NULL, " \n", &save))
		if (w[0] != '(') /* "r8 (r8)": saved in another register */
			ret->words[ret->nr++] = w;
}

static int reg_number(uint16_t machine, const char *name, size_t len)
{
	if (machine == EM_AARCH64)
		return !strncmp(name, "sp", len) ? A64_SP : (int)strtol(name + 1, NULL, 10);
	for (int i = 0; i < 16; i++)
		if (strlen(x86_names[i]) == len && !strncmp(x86_names[i], name, len))
			return i;
	return -1;
}

static const char *value_of(const struct checker *c, const char *column)
{
	for (int i = 0; i < c->columns.nr && i < c->values.nr; i++)
		if (!strcmp(c->columns.words[i], column))
			return c->values.words[i];
	return "u";
}

/* What write_rows() of unwind_table.c corrects of glibc's resolver: how much higher the CFA is. */
static int raised_by(const struct checker *c)
{
	return c->machine == EM_AARCH64 && !strcmp(value_of(c, "ra"), "c+8") ? 16 : 0;
}

static void check_cfa(const struct checker *c, uint64_t addr, const struct unwind_rule *rule)
{
	const char *want = value_of(c, "CFA");
	size_t len = strcspn(want, "+-");

	if (!strcmp(want, "exp")) {
		ck_assert_msg(rule->cfa != CFA_REG && rule->cfa != CFA_FRAME_POINTER,
			      "%#lx: an expression became %d", (long)addr, rule->cfa);
		return;
	}
	ck_assert_msg(rule->cfa == CFA_REG, "%#lx: %s is %d", (long)addr, want, rule->cfa);
	ck_assert_msg(rule->cfa_reg == reg_number(c->machine, want, len) &&
			      rule->cfa_off - raised_by(c) == strtol(want + len, NULL, 10),
		      "%#lx: %s is register %d + %d", (long)addr, want, rule->cfa_reg,
		      rule->cfa_off);
}

static void check_ra(const struct checker *c, uint64_t addr, const struct unwind_rule *rule)
{
	const char *want = value_of(c, "ra");

	if (want[0] == 'c')
		ck_assert_msg(rule->ra == RA_AT_CFA &&
				      rule->ra_off * 8 + raised_by(c) == strtol(want + 1, NULL, 10),
			      "%#lx: ra %s is %d", (long)addr, want, rule->ra_off);
	else if (!strcmp(want, "u")) /* not mentioned yet: still in the link register */
		ck_assert_msg(c->machine == EM_AARCH64 && rule->ra == RA_IN_REG, "%#lx: ra %s",
			      (long)addr, want);
	else
		ck_assert_msg(rule->ra == RA_IN_REG, "%#lx: ra %s", (long)addr, want);
}

static void check_fp(const struct checker *c, uint64_t addr, const struct unwind_rule *rule)
{
	const char *want = value_of(c, c->machine == EM_AARCH64 ? "x29" : "rbp");

	if (want[0] == 'c')
		ck_assert_msg(rule->slot_off[0] * 8 + raised_by(c) == strtol(want + 1, NULL, 10),
			      "%#lx: fp %s is %d", (long)addr, want, rule->slot_off[0]);
	else if (want[0] == 'u' || want[0] == 's')
		ck_assert_msg(rule->slot_off[0] == SLOT_SAME, "%#lx: fp %s is %d", (long)addr, want,
			      rule->slot_off[0]);
}

static void check_at(struct checker *c, uint64_t addr)
{
	const struct unwind_rule *rule = unwind_table_find(c->table, addr);

	if (rule->cfa == CFA_END) {
		ASSERT_STR(value_of(c, "ra"), "u");
		return;
	}
	if (rule->cfa == CFA_STOP && rule->cfa_off == STOP_BAD_CFI) {
		c->nr_refused++;
		return;
	}
	check_cfa(c, addr, rule);
	if (rule->cfa != CFA_REG)
		return;
	check_ra(c, addr, rule);
	check_fp(c, addr, rule);
}

/* The row that was read last ends at `end`. */
static void finish_row(struct checker *c, uint64_t end)
{
	if (!c->values.nr || end <= c->row_start || end > c->fde_end) {
		c->values.nr = 0;
		return;
	}
	check_at(c, c->row_start);
	check_at(c, end - 1);
	c->nr_checked++;
	c->values.nr = 0;
}

static void read_line(struct checker *c, const char *text)
{
	const char *pc = strstr(text, "pc=");

	if (pc && strstr(text, "FDE")) {
		finish_row(c, c->fde_end);
		c->fde_start = strtoull(pc + 3, NULL, 16);
		c->fde_end = strtoull(strstr(pc, "..") + 2, NULL, 16);
	} else if (strstr(text, " CIE ")) {
		finish_row(c, c->fde_end);
		c->fde_end = 0;
	} else if (strstr(text, "   LOC ")) {
		snprintf(c->header, sizeof(c->header), "%s", text);
		split(c->header, &c->columns);
	} else if (c->fde_end && strspn(text, "0123456789abcdef") == 16) {
		finish_row(c, strtoull(text, NULL, 16));
		c->row_start = strtoull(text, NULL, 16);
		snprintf(c->row, sizeof(c->row), "%s", text);
		split(c->row, &c->values);
	}
}

static void check_file(const char *path, unsigned int rows_wanted)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	struct checker c = { 0 };
	char line[2048];
	FILE *f;

	if (access(path, R_OK) < 0)
		return; /* a cross library that this machine doesn't have */
	ASSERT_OK(elf_file_open(path, &elf));
	ASSERT_OK(unwind_table_build(elf, 0, &table));
	c.table = table;
	c.machine = elf->machine;
	snprintf(line, sizeof(line), "exec readelf -W --debug-dump=frames-interp '%s' 2>/dev/null",
		 path);
	f = popen(line, "re");
	ASSERT_PTR_NONNULL(f);
	while (fgets(line, sizeof(line), f))
		read_line(&c, line);
	finish_row(&c, c.fde_end);
	pclose(f); /* 1 if it warned */
	ck_assert_msg(c.nr_refused <= REFUSED_MAX, "%s: %u refused", path, c.nr_refused);
	ck_assert_msg(c.nr_checked >= rows_wanted, "%s: only %u rows", path, c.nr_checked);
}

TEST_SKIP_REASON()
{
	return access("/usr/bin/readelf", X_OK) < 0 ? "no readelf (binutils)" : NULL;
}

TEST(agrees_on_libc)
{
	check_file("/lib/x86_64-linux-gnu/libc.so.6", 10000);
}

TEST(agrees_on_the_dynamic_linker)
{
	check_file("/lib64/ld-linux-x86-64.so.2", 1000);
}

TEST(agrees_on_libstdcxx)
{
	check_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 10000);
}

TEST(agrees_on_hand_written_assembly_with_cfi)
{
	check_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 10000);
}

TEST(agrees_on_this_test)
{
	char path[4096] = "";

	ASSERT(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	check_file(path, ROWS_WANTED);
}

TEST(agrees_on_libc_of_aarch64)
{
	check_file("/usr/aarch64-linux-gnu/lib/libc.so.6", 5000);
}

TEST(agrees_on_the_dynamic_linker_of_aarch64)
{
	check_file("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1", 500);
}
