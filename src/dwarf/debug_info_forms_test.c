// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information that no compiler here writes, written by hand: every form, references, scopes
 * within each other, code that was discarded. What compilers write is in debug_info_test.c.
 */
#include "dwarf/test_debug_info_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dwarf/dwarf_defs.h"
#include "test.h"

/* Names and addresses by each form that has an index. */
TEST(indexed_forms)
{
	static const int strx[] = { DW_FORM_strx,  DW_FORM_strx1, DW_FORM_strx2,
				    DW_FORM_strx3, DW_FORM_strx4, DW_FORM_GNU_str_index };
	static const int addrx[] = { DW_FORM_addrx,  DW_FORM_addrx1, DW_FORM_addrx2,
				     DW_FORM_addrx3, DW_FORM_addrx4, DW_FORM_GNU_addr_index };
	static const int sizes[] = { 1, 1, 2, 3, 4, 1 };
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	dw_put(&w.str_offsets, 0xdead, 8); /* the header is not looked at */
	dw_put(&w.addr, 0xdead, 8);
	dw_abbrev(&w.abbrev, 100, DW_TAG_compile_unit, 1, DW_AT_str_offsets_base,
		  DW_FORM_sec_offset, DW_AT_addr_base, DW_FORM_sec_offset, 0);
	u = dw_begin_unit(&w.info, 5, DW_UT_compile, 8, 0);
	dw_uleb(&w.info, 100);
	dw_put(&w.info, 8, 4);
	dw_put(&w.info, 8, 4);
	for (int i = 0; i < 6; i++) {
		char name[16];

		/* Codes that are not 1, 2, 3 ... */
		dw_abbrev(&w.abbrev, 1000 * (7 - i), DW_TAG_subprogram, 0, DW_AT_name, strx[i],
			  DW_AT_low_pc, addrx[i], DW_AT_high_pc, i % 2 ? addrx[i] : DW_FORM_udata,
			  0);
		snprintf(name, sizeof(name), "function_%d", i);
		dw_put(&w.str_offsets, dw_str(&w.str, name), 4);
		dw_put(&w.addr, 0x1000 + 0x100 * i, 8);
		dw_uleb(&w.info, 1000 * (7 - i));
		dw_put(&w.info, i, sizes[i]);
		dw_put(&w.info, i, sizes[i]);
		if (i % 2) /* up to the next one */
			dw_put(&w.info, i + 1, sizes[i]);
		else
			dw_uleb(&w.info, 0x80);
	}
	dw_put(&w.addr, 0x1600, 8);
	dw_put(&w.abbrev, 0, 1);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.counts.bad_units + f.counts.dropped, 0);
	ASSERT_EQ(f.scopes.nr, 6);
	dw_check_name(&f, 0x1000, "function_0");
	dw_check_name(&f, 0x107f, "function_0");
	dw_check_name(&f, 0x1080, NULL);
	dw_check_name(&f, 0x11ff, "function_1");
	dw_check_name(&f, 0x1200, "function_2");
	dw_check_name(&f, 0x1300, "function_3");
	dw_check_name(&f, 0x1400, "function_4");
	dw_check_name(&f, 0x15ff, "function_5");
}

/* Attributes that are passed over, of every form; what is behind them is still found. */
TEST(every_form_is_passed_over)
{
	enum { ODD = 0x2fff };
	struct dw_writer w = { 0 };
	struct dw_bytes *i = &w.info;
	struct flat f;
	struct dw_unit u;

	dw_abbrev(&w.abbrev, 1, DW_TAG_compile_unit, 1, ODD, DW_FORM_addr, ODD, DW_FORM_block1, ODD,
		  DW_FORM_block2, ODD, DW_FORM_block4, ODD, DW_FORM_block, ODD, DW_FORM_exprloc,
		  ODD, DW_FORM_data1, ODD, DW_FORM_data2, ODD, DW_FORM_data4, ODD, DW_FORM_data8,
		  ODD, DW_FORM_data16, ODD, DW_FORM_string, ODD, DW_FORM_sdata, ODD, DW_FORM_udata,
		  ODD, DW_FORM_flag, ODD, DW_FORM_flag_present, ODD, DW_FORM_implicit_const, 3, ODD,
		  DW_FORM_indirect, ODD, DW_FORM_indirect, ODD, DW_FORM_loclistx, ODD,
		  DW_FORM_ref_sig8, ODD, DW_FORM_ref_sup8, ODD, DW_FORM_GNU_ref_alt, ODD,
		  DW_FORM_GNU_strp_alt, ODD, DW_FORM_strp_sup, ODD, DW_FORM_ref8, ODD,
		  DW_FORM_ref_udata, 0);
	/* Once more on an entry that nobody looks at: passed over another way. */
	dw_abbrev(&w.abbrev, 2, DW_TAG_formal_parameter, 0, ODD, DW_FORM_addr, ODD, DW_FORM_block1,
		  ODD, DW_FORM_indirect, ODD, DW_FORM_data16, ODD, DW_FORM_string, ODD,
		  DW_FORM_implicit_const, 5, 0);
	dw_abbrev(&w.abbrev, 3, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
		  DW_FORM_addr, DW_AT_high_pc, DW_FORM_implicit_const, 16, DW_AT_decl_line,
		  DW_FORM_indirect, 0);
	dw_put(&w.abbrev, 0, 1);
	u = dw_begin_unit(i, 5, DW_UT_compile, 4, 0);
	dw_uleb(i, 1);
	dw_put(i, 1, 4);
	dw_put(i, 2, 1), dw_put(i, 0, 2);
	dw_put(i, 3, 2), dw_put(i, 0, 3);
	dw_put(i, 1, 4), dw_put(i, 0, 1);
	dw_put(i, 2, 1), dw_put(i, 0, 2);
	dw_put(i, 200 & 0x7f, 1), dw_put(i, 0, 200 & 0x7f);
	dw_put(i, 0, 1 + 2 + 4 + 8 + 16);
	dw_str(i, "in place");
	dw_put(i, 0x7fff, 2); /* sdata of two bytes: 0xff 0x7f */
	dw_uleb(i, 1000);
	dw_put(i, 1, 1);
	dw_uleb(i, DW_FORM_block1), dw_put(i, 1, 1), dw_put(i, 9, 1);
	dw_uleb(i, DW_FORM_data2), dw_put(i, 9, 2);
	dw_uleb(i, 5);
	dw_put(i, 0, 8 + 8 + 4 + 4 + 4 + 8);
	dw_uleb(i, 300);
	dw_uleb(i, 2);
	dw_put(i, 0, 4);
	dw_put(i, 1, 1), dw_put(i, 0, 1);
	dw_uleb(i, DW_FORM_string), dw_str(i, "indirect");
	dw_put(i, 0, 16);
	dw_str(i, "x");
	dw_uleb(i, 3);
	dw_str(i, "found");
	dw_put(i, 0x1000, 4);
	dw_uleb(i, DW_FORM_data2), dw_put(i, 77, 2);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.counts.bad_units + f.counts.dropped, 0);
	dw_check_name(&f, 0x100f, "found");
	ASSERT_EQ(flat_find(&f, 0x1000)->line, 77);
}

/* A form that nobody knows costs what is behind it in its unit, and no other unit. */
TEST(unknown_form)
{
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	dw_usual_abbrevs(&w.abbrev);
	w.abbrev.nr--;
	dw_abbrev(&w.abbrev, 20, DW_TAG_formal_parameter, 0, DW_AT_name, 0x7f, 0);
	dw_put(&w.abbrev, 0, 1);
	u = dw_usual_unit(&w, 0);
	dw_function(&w, "before", 0x1000, 16), dw_end(&w);
	dw_uleb(&w.info, 20);
	dw_function(&w, "lost", 0x2000, 16), dw_end(&w);
	dw_end(&w);
	dw_end_unit(&u);
	u = dw_usual_unit(&w, 0);
	dw_function(&w, "next", 0x3000, 16), dw_end(&w);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.counts.units, 2);
	ASSERT_EQ(f.counts.bad_units, 1);
	dw_check_name(&f, 0x1000, "before");
	dw_check_name(&f, 0x2000, NULL);
	dw_check_name(&f, 0x3000, "next");
}

/* --- references ----------------------------------------------------------------------------- */

/* An origin by each form: in the unit, in the file, in the supplementary file. */
TEST(references)
{
	static const int forms[] = { DW_FORM_ref1,	  DW_FORM_ref2,	     DW_FORM_ref4,
				     DW_FORM_ref8,	  DW_FORM_ref_udata, DW_FORM_ref_addr,
				     DW_FORM_GNU_ref_alt, DW_FORM_ref_sup4,  DW_FORM_ref_sup8,
				     DW_FORM_indirect };
	/* Of DWARF 2, where a ref_addr is as long as an address. */
	static const int sizes[] = { 1, 2, 4, 8, 1, 8, 4, 4, 8, 2 };
	enum { NR = sizeof(forms) / sizeof(*forms) };
	struct dw_writer w = { 0 }, alt = { 0 };
	struct dwarf_sections alt_sections;
	uint64_t here, there, name;
	struct flat f;
	struct dw_unit u;

	dw_usual_abbrevs(&w.abbrev);
	w.abbrev.nr--;
	for (int i = 0; i < NR; i++)
		dw_abbrev(&w.abbrev, 20 + i, DW_TAG_subprogram, 0, DW_AT_abstract_origin, forms[i],
			  DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_addr, 0);
	dw_abbrev(&w.abbrev, 40, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_GNU_strp_alt,
		  DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_addr, 0);
	dw_put(&w.abbrev, 0, 1);

	dw_str(&alt.str, "unused");
	name = dw_str(&alt.str, "in another string table");
	u = dw_usual_unit(&alt, 0);
	there = alt.info.nr;
	dw_uleb(&alt.info, DW_ABSTRACT), dw_str(&alt.info, "there");
	dw_end(&alt);
	dw_end_unit(&u);

	/* A unit before it, so that its own offsets are not the section's. */
	u = dw_usual_unit(&w, 0);
	dw_end(&w);
	dw_end_unit(&u);
	u = dw_begin_unit(&w.info, 2, 0, 8, 0);
	dw_uleb(&w.info, DW_UNIT), dw_put(&w.info, 0, 1);
	here = w.info.nr;
	dw_uleb(&w.info, DW_ABSTRACT), dw_str(&w.info, "here");
	for (int i = 0; i < NR; i++) {
		uint64_t addr = 0x1000 + 0x100 * i;
		uint64_t ref = i < 5 || i == 9 ? here - u.start : i == 5 ? here : there;

		dw_uleb(&w.info, 20 + i);
		if (i == 9)
			dw_put(&w.info, DW_FORM_ref1 | ref << 8, 2);
		else
			dw_put(&w.info, ref, sizes[i]);
		dw_put(&w.info, addr, 8);
		dw_put(&w.info, addr + 0x10, 8);
	}
	dw_uleb(&w.info, 40);
	dw_put(&w.info, name, 4);
	dw_put(&w.info, 0x5000, 8);
	dw_put(&w.info, 0x5010, 8);
	dw_end(&w);
	dw_end_unit(&u);

	alt_sections = dw_sections(&alt);
	f = dw_read_source(&(struct dwarf_source){ .main = dw_sections(&w), .alt = &alt_sections });
	ASSERT_EQ(f.counts.bad_units + f.counts.dropped, 0);
	for (int i = 0; i < NR; i++)
		dw_check_name(&f, 0x1000 + 0x100 * i, i >= 6 && i <= 8 ? "there" : "here");
	dw_check_name(&f, 0x500f, "in another string table");
	/* Without that file the function is still there, where it has a name of its own. */
	f = dw_read(&w);
	ASSERT_EQ(f.counts.dropped, 3);
	dw_check_name(&f, 0x1500, "here");
	dw_check_name(&f, 0x1600, NULL);
	dw_check_name(&f, 0x5000, "");
}

/* References in circles, into nowhere, and in chains that are too long. */
TEST(senseless_references)
{
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;
	uint32_t at;

	u = dw_usual_unit(&w, 0);
	dw_uleb(&w.info, DW_REFERENCE);
	at = w.info.nr - 1 - u.start;
	dw_put(&w.info, 0x1000, 8), dw_put(&w.info, 16, 4), dw_put(&w.info, at, 4); /* itself */
	dw_end(&w);
	for (int i = 0; i < 40; i++) { /* each the next one */
		uint32_t size = 1 + 8 + 4 + 4 + 1;

		dw_uleb(&w.info, DW_REFERENCE);
		at = w.info.nr - 1 - u.start;
		dw_put(&w.info, 0x2000 + 0x10 * i, 8), dw_put(&w.info, 16, 4),
			dw_put(&w.info, at + size, 4);
		dw_end(&w);
	}
	dw_function(&w, "last", 0x3000, 16), dw_end(&w);
	dw_uleb(&w.info, DW_REFERENCE);
	dw_put(&w.info, 0x4000, 8), dw_put(&w.info, 16, 4), dw_put(&w.info, 0x7fffffff, 4);
	dw_end(&w);
	dw_uleb(&w.info, DW_REFERENCE); /* the unit's header */
	dw_put(&w.info, 0x4100, 8), dw_put(&w.info, 16, 4), dw_put(&w.info, 2, 4);
	dw_end(&w);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.counts.bad_units, 0);
	dw_check_name(&f, 0x1000, NULL);
	dw_check_name(&f, 0x2000, NULL);
	dw_check_name(&f, 0x2000 + 0x10 * 39, "last");
	dw_check_name(&f, 0x3000, "last");
	dw_check_name(&f, 0x4000, NULL);
	dw_check_name(&f, 0x4100, NULL);
	ASSERT(f.counts.dropped > 3);
}

/* --- scopes --------------------------------------------------------------------------------- */

/* Inlined calls in blocks, a function in a function, and what comes behind them. */
TEST(nesting)
{
	const struct flat_scope *s;
	struct dw_writer w = { 0 };
	uint32_t a, b;
	struct flat f;
	struct dw_unit u;

	u = dw_usual_unit(&w, 0);
	a = w.info.nr - u.start, dw_uleb(&w.info, DW_ABSTRACT), dw_str(&w.info, "a");
	b = w.info.nr - u.start, dw_uleb(&w.info, DW_ABSTRACT), dw_str(&w.info, "b");
	dw_function(&w, "outer", 0x1000, 0x1000);
	dw_uleb(&w.info, DW_BLOCK), dw_uleb(&w.info, DW_BLOCK);
	dw_inlined(&w, a, 0x1100, 0x100, 11);
	dw_uleb(&w.info, DW_BLOCK);
	dw_inlined(&w, b, 0x1180, 0x10, 12), dw_end(&w);
	dw_end(&w);
	dw_function(&w, "nested", 0x3000, 0x100);
	dw_inlined(&w, b, 0x3010, 0x10, 13), dw_end(&w);
	dw_end(&w);
	dw_end(&w);
	dw_end(&w), dw_end(&w);
	dw_inlined(&w, b, 0x1300, 0x100, 14), dw_end(&w);
	dw_end(&w);
	dw_inlined(&w, b, 0x5000, 0x100, 15), dw_end(&w); /* in no function */
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.scopes.nr, 6);
	s = flat_find(&f, 0x1180);
	ASSERT_STR(s->name, "b");
	ASSERT_EQ(s->call_line, 12);
	ASSERT_STR(s->parent->name, "a");
	ASSERT_EQ(s->parent->call_line, 11);
	ASSERT_STR(s->parent->parent->name, "outer");
	s = flat_find(&f, 0x3010);
	ASSERT_EQ(s->call_line, 13);
	ASSERT_STR(s->parent->name, "nested");
	ASSERT_PTR_NULL(s->parent->parent);
	s = flat_find(&f, 0x1300);
	ASSERT_EQ(s->call_line, 14);
	ASSERT_STR(s->parent->name, "outer");
	dw_check_name(&f, 0x5000, NULL);
}

/* Inlined calls beyond the cap are left out; what calls them stays. */
TEST(deep_inlining)
{
	enum { DEPTH = DWARF_INLINE_DEPTH_MAX + 50 };
	const struct flat_scope *s;
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;
	uint32_t a;

	u = dw_usual_unit(&w, 0);
	a = w.info.nr - u.start, dw_uleb(&w.info, DW_ABSTRACT), dw_str(&w.info, "a");
	dw_function(&w, "outer", 0x1000, 0x1000);
	for (int i = 0; i < DEPTH; i++)
		dw_inlined(&w, a, 0x1000 + i, 0x1000 - 2 * i, i + 1);
	for (int i = 0; i < DEPTH; i++)
		dw_end(&w);
	dw_end(&w);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.counts.dropped, DEPTH - DWARF_INLINE_DEPTH_MAX);
	s = flat_find(&f, 0x1700);
	ASSERT_EQ(s->depth, DWARF_INLINE_DEPTH_MAX);
	ASSERT_EQ(s->call_line, DWARF_INLINE_DEPTH_MAX);
}

/* Entries within each other by the hundred thousand: the unit is given up, nothing overflows. */
TEST(deep_nesting)
{
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	u = dw_usual_unit(&w, 0);
	dw_function(&w, "before", 0x1000, 16), dw_end(&w);
	for (int i = 0; i < 200000; i++)
		dw_uleb(&w.info, DW_BLOCK);
	dw_function(&w, "inside", 0x2000, 16), dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.counts.bad_units, 1);
	dw_check_name(&f, 0x1000, "before");
	dw_check_name(&f, 0x2000, NULL);
}

/* DW_AT_sibling that leads backwards, or out of the unit, is not followed. */
TEST(siblings)
{
	static const int32_t targets[] = { 0x11, 0, -1, 0x7fffffff };
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	dw_usual_abbrevs(&w.abbrev);
	w.abbrev.nr--;
	dw_abbrev(&w.abbrev, 20, DW_TAG_array_type, 1, DW_AT_sibling, DW_FORM_ref4, 0);
	dw_put(&w.abbrev, 0, 1);
	for (int i = 0; i < 5; i++) {
		u = dw_usual_unit(&w, 0);
		dw_uleb(&w.info, 20);
		/* The last one is right: behind it and its only child. */
		dw_put(&w.info,
		       i < 4 ? (uint32_t)targets[i] : w.info.nr - u.start + 4 + 1 + 3 + 12 + 2, 4);
		dw_function(&w, "in", 0x9000 + 0x100 * i, 16), dw_end(&w);
		dw_end(&w);
		dw_function(&w, "behind", 0x1000 + 0x100 * i, 16), dw_end(&w);
		dw_end(&w);
		dw_end_unit(&u);
	}
	f = dw_read(&w);
	ASSERT_EQ(f.counts.bad_units + f.counts.dropped, 0);
	ASSERT_EQ(f.scopes.nr, 5);
	for (int i = 0; i < 5; i++)
		dw_check_name(&f, 0x1000 + 0x100 * i, "behind");
}

/* --- code that is not there ----------------------------------------------------------------- */

TEST(discarded_code)
{
	static const uint64_t addresses[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, 0x1000 };
	struct dwarf_source source = { 0 };
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	u = dw_usual_unit(&w, 0);
	for (int i = 0; i < 5; i++) {
		dw_function(&w, "f", addresses[i], 16);
		dw_inlined(&w, u.start, addresses[i], 8, 1), dw_end(&w);
		dw_end(&w);
	}
	dw_function(&w, "empty", 0x2000, 0), dw_end(&w);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.scopes.nr, 1);
	ASSERT_EQ(f.counts.dropped, 1); /* the inlined call's origin makes no sense */
	dw_check_name(&f, 0x1000, "f");
	/* In an object file functions begin at 0. */
	source.main = dw_sections(&w);
	source.relocatable = true;
	f = dw_read_source(&source);
	ASSERT_EQ(f.scopes.nr, 3);
	dw_check_name(&f, 0, "f");
}

/* The sizes that addresses have where they are of 4 bytes. */
TEST(short_addresses)
{
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	dw_usual_abbrevs(&w.abbrev);
	u = dw_begin_unit(&w.info, 4, 0, 4, 0);
	dw_uleb(&w.info, DW_UNIT), dw_put(&w.info, 0, 1);
	for (int i = 0; i < 3; i++) {
		dw_uleb(&w.info, DW_FUNCTION), dw_str(&w.info, "f");
		dw_put(&w.info, i ? UINT32_MAX - 2 + i : 0x1000, 4);
		dw_put(&w.info, 16, 4);
		dw_end(&w);
	}
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT_EQ(f.scopes.nr, 1);
	dw_check_name(&f, 0x100f, "f");
}
