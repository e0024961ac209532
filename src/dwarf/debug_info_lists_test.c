// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information by hand: lists of ranges, names, packages; and too much of everything. Forms
 * and scopes are in debug_info_forms_test.c.
 */
#include "dwarf/test_debug_info_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dwarf/dwarf_defs.h"
#include "test.h"

/* A unit of one function, whose ranges are by `form` at `value`; the unit's own address is 0x10000.
 */
static struct flat read_ranges(struct dw_writer *w, int version, int form, uint64_t value, int size)
{
	struct dw_unit u;

	w->info.nr = w->abbrev.nr = 0;
	dw_abbrev(&w->abbrev, 1, DW_TAG_compile_unit, 1, DW_AT_low_pc, DW_FORM_addr,
		  DW_AT_rnglists_base, DW_FORM_data4, 0);
	dw_abbrev(&w->abbrev, 2, DW_TAG_subprogram, 0, DW_AT_ranges, form, 0);
	dw_put(&w->abbrev, 0, 1);
	u = dw_begin_unit(&w->info, version, DW_UT_compile, 8, 0);
	dw_uleb(&w->info, 1), dw_put(&w->info, 0x10000, 8), dw_put(&w->info, 4, 4);
	dw_uleb(&w->info, 2), dw_put(&w->info, value, size);
	dw_end(w);
	dw_end_unit(&u);
	return dw_read(w);
}

static void check_ranges(const struct flat *f, size_t nr, const uint64_t expected[][2])
{
	ASSERT_EQ(f->ranges.nr, nr);
	for (size_t i = 0; i < nr; i++) {
		ASSERT_EQ(f->ranges.items[i].begin, expected[i][0]);
		ASSERT_EQ(f->ranges.items[i].end, expected[i][1]);
	}
}

TEST(debug_ranges)
{
	static const uint64_t list[][2] = {
		{ 0x500, 0x600 },	  /* of the unit's own address */
		{ 0x100, 0x200 },	  /* not in order */
		{ 0x180, 0x280 },	  /* overlaps */
		{ 0x280, 0x300 },	  /* touches */
		{ 0x700, 0x700 },	  /* empty */
		{ UINT64_MAX, 0x40000 },  /* a base */
		{ 0x10, 0x20 },		  /* */
		{ UINT64_MAX, 0 },	  /* none: absolute */
		{ 0x50000, 0x50010 },	  /* */
		{ 1, 1 },		  /* discarded, by ld */
		{ 0, 0x80 },		  /* by gold */
		{ UINT64_MAX - 1, 0x80 }, /* by lld */
		{ UINT64_MAX, UINT64_MAX - 1 },
		{ 0x10, 0x20 }, /* of a discarded base */
		{ 0, 0 },
		{ 0x60000, 0x60010 }, /* another list */
	};
	static const uint64_t expected[][2] = { { 0x10100, 0x10300 },
						{ 0x10500, 0x10600 },
						{ 0x40010, 0x40020 },
						{ 0x50000, 0x50010 } };
	static const uint64_t backwards[][2] = { { 0x20, 0x10 }, { 0x30, 0x40 }, { 0, 0 } };
	static const uint64_t backwards_expected[][2] = { { 0x10030, 0x10040 } };
	struct dw_writer w = { 0 };
	struct flat f;

	dw_put(&w.ranges, 0, 8);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		dw_put(&w.ranges, list[i][0], 8), dw_put(&w.ranges, list[i][1], 8);
	f = read_ranges(&w, 4, DW_FORM_sec_offset, 8, 4);
	check_ranges(&f, 4, expected);
	ASSERT_EQ(f.counts.dropped, 0);
	f = read_ranges(&w, 3, DW_FORM_data4, 8, 4);
	check_ranges(&f, 4, expected);
	/* Without an end, and beyond it. */
	f = read_ranges(&w, 4, DW_FORM_sec_offset, w.ranges.nr - 16, 4);
	ASSERT_EQ(f.ranges.nr, 0);
	ASSERT_EQ(f.counts.dropped, 1);
	f = read_ranges(&w, 4, DW_FORM_sec_offset, 0xfffffff0, 4);
	ASSERT_EQ(f.counts.dropped, 1);
	w.ranges.nr = 0;
	for (size_t i = 0; i < 3; i++)
		dw_put(&w.ranges, backwards[i][0], 8), dw_put(&w.ranges, backwards[i][1], 8);
	f = read_ranges(&w, 4, DW_FORM_sec_offset, 0, 4);
	check_ranges(&f, 1, backwards_expected);
	ASSERT_EQ(f.counts.dropped, 1);
}

static void rle(struct dw_bytes *b, int kind, int nr, uint64_t x, int x_size, uint64_t y,
		int y_size)
{
	dw_put(b, kind, 1);
	if (nr > 0)
		x_size ? dw_put(b, x, x_size) : dw_uleb(b, x);
	if (nr > 1)
		y_size ? dw_put(b, y, y_size) : dw_uleb(b, y);
}

TEST(range_lists)
{
	static const uint64_t expected[][2] = {
		{ 0x10010, 0x10020 }, { 0x20030, 0x20040 }, { 0x20100, 0x20180 },
		{ 0x30000, 0x30200 }, { 0x40010, 0x40020 }, { 0x50000, 0x50010 },
		{ 0x60000, 0x60300 },
	};
	struct dw_writer w = { 0 };
	struct dw_bytes *b = &w.rnglists;
	struct flat f;

	dw_put(&w.addr, 0, 8); /* its header */
	dw_put(&w.addr, 0x20000, 8), dw_put(&w.addr, 0x20100, 8), dw_put(&w.addr, 0x20180, 8);
	dw_put(&w.addr, 0x30000, 8), dw_put(&w.addr, UINT64_MAX, 8);
	dw_put(b, 0, 4);
	dw_put(b, 1000, 4), dw_put(b, 8, 4); /* two offsets, of lists, from base 4 */
	rle(b, DW_RLE_offset_pair, 2, 0x10, 0, 0x20, 0);
	rle(b, DW_RLE_base_addressx, 1, 0, 0, 0, 0);
	rle(b, DW_RLE_offset_pair, 2, 0x30, 0, 0x40, 0);
	rle(b, DW_RLE_startx_endx, 2, 1, 0, 2, 0);
	rle(b, DW_RLE_startx_length, 2, 3, 0, 0x200, 0);
	rle(b, DW_RLE_base_address, 1, 0x40000, 8, 0, 0);
	rle(b, DW_RLE_offset_pair, 2, 0x10, 0, 0x20, 0);
	rle(b, DW_RLE_start_end, 2, 0x50000, 8, 0x50010, 8);
	rle(b, DW_RLE_start_length, 2, 0x60000, 8, 0x300, 0);
	/* Discarded. */
	rle(b, DW_RLE_start_length, 2, 0, 8, 0x300, 0);
	rle(b, DW_RLE_startx_length, 2, 4, 0, 0x10, 0);
	rle(b, DW_RLE_base_addressx, 1, 4, 0, 0, 0);
	rle(b, DW_RLE_offset_pair, 2, 0x70000, 0, 0x80000, 0);
	rle(b, DW_RLE_end_of_list, 0, 0, 0, 0, 0);
	f = read_ranges(&w, 5, DW_FORM_sec_offset, 12, 4);
	check_ranges(&f, 7, expected);
	ASSERT_EQ(f.counts.dropped, 0);
	f = read_ranges(&w, 5, DW_FORM_rnglistx, 1, 1);
	check_ranges(&f, 7, expected);
	/* Lists that are not there, an address that is not, a kind that nobody knows, no end. */
	f = read_ranges(&w, 5, DW_FORM_rnglistx, 0, 1);
	ASSERT_EQ(f.counts.dropped, 1);
	f = read_ranges(&w, 5, DW_FORM_rnglistx, 100, 1);
	ASSERT_EQ(f.counts.dropped, 1);
	b->nr = 0;
	rle(b, DW_RLE_startx_length, 2, 100, 0, 0x10, 0);
	f = read_ranges(&w, 5, DW_FORM_sec_offset, 0, 4);
	ASSERT_EQ(f.counts.dropped, 1);
	b->nr = 0;
	rle(b, DW_RLE_start_length, 2, 0x60000, 8, 0x300, 0);
	rle(b, 8, 2, 0, 0, 0, 0);
	f = read_ranges(&w, 5, DW_FORM_sec_offset, 0, 4);
	ASSERT_EQ(f.counts.dropped, 1);
	b->nr -= 3;
	f = read_ranges(&w, 5, DW_FORM_sec_offset, 0, 4);
	ASSERT_EQ(f.counts.dropped, 1);
	ASSERT_EQ(f.ranges.nr, 0);
}

/* --- names ---------------------------------------------------------------------------------- */

TEST(names_with_what_is_around_them)
{
	static const int languages[] = { DW_LANG_C_plus_plus_14, DW_LANG_D, 0x0c };
	static const char *const names[] = { "a::(anonymous namespace)::f",
					     "a.(anonymous namespace).f", "f" };
	static char longest[DWARF_NAME_MAX];

	memset(longest, 'n', sizeof(longest) - 1);
	memcpy(longest, "begins", 6);
	memcpy(longest + sizeof(longest) - 5, "ends", 4);
	for (int i = 0; i < 3; i++) {
		struct dw_writer w = { 0 };
		const char *name;
		struct flat f;
		struct dw_unit u = dw_usual_unit(&w, languages[i]);

		dw_uleb(&w.info, DW_SPACE), dw_str(&w.info, "a");
		dw_uleb(&w.info, DW_SPACE), dw_str(&w.info, "");
		dw_function(&w, "f", 0x1000, 16), dw_end(&w);
		dw_end(&w);
		dw_uleb(&w.info, DW_SPACE), dw_str(&w.info, longest);
		dw_function(&w, "g", 0x2000, 16), dw_end(&w);
		dw_end(&w);
		dw_end(&w);
		dw_function(&w, "h", 0x3000, 16), dw_end(&w);
		dw_function(&w, "", 0x4000, 16), dw_end(&w);
		dw_end(&w);
		dw_end_unit(&u);
		f = dw_read(&w);
		dw_check_name(&f, 0x1000, names[i]);
		dw_check_name(&f, 0x3000, "h");
		dw_check_name(&f, 0x4000, "");
		name = flat_find(&f, 0x2000)->name;
		/* Of one that is too long the end is kept. */
		ASSERT_EQ(strlen(name), i < 2 ? DWARF_NAME_MAX - 1 : 1);
		if (i == 0)
			ASSERT_STR(name + strlen(name) - 7, "ends::g");
	}
}

/* A class that is declared here and defined in a type unit, which has its name. */
static void class_of_signature(struct dw_writer *w, uint64_t signature)
{
	dw_uleb(&w->info, 20), dw_put(&w->info, signature, 8);
	dw_function(w, "method", 0x1000, 16), dw_end(w);
	dw_end(w);
}

static void type_abbrevs(struct dw_bytes *b)
{
	dw_usual_abbrevs(b);
	b->nr--;
	dw_abbrev(b, 20, DW_TAG_structure_type, 1, DW_AT_signature, DW_FORM_ref_sig8, 0);
	dw_abbrev(b, 21, DW_TAG_type_unit, 1, DW_AT_language, DW_FORM_data1, 0);
	dw_abbrev(b, 22, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string, 0);
	dw_put(b, 0, 1);
}

static void type_unit(struct dw_bytes *b, int version, int type, uint64_t signature,
		      const char *name)
{
	struct dw_unit u = dw_begin_unit(b, version, type, 8, signature);
	size_t offset;

	if (version < 5)
		dw_put(b, signature, 8);
	offset = b->nr;
	dw_put(b, 0, 4);
	dw_uleb(b, 21), dw_put(b, DW_LANG_C_plus_plus, 1);
	dw_patch(b, offset, b->nr - u.start, 4);
	dw_uleb(b, 22), dw_str(b, name);
	dw_put(b, 0, 1);
	dw_end_unit(&u);
}

TEST(type_units)
{
	for (int version = 4; version <= 5; version++) {
		struct dw_writer w = { 0 };
		struct flat f;
		struct dw_unit u;

		type_abbrevs(&w.abbrev);
		for (uint64_t i = 1; i < 20; i++)
			type_unit(version == 4 ? &w.types : &w.info, version, DW_UT_type,
				  i * 7777777777, i == 5 ? "five" : "other");
		u = dw_begin_unit(&w.info, version, DW_UT_compile, 8, 0);
		dw_uleb(&w.info, DW_UNIT), dw_put(&w.info, DW_LANG_C_plus_plus, 1);
		class_of_signature(&w, 5 * 7777777777);
		dw_end(&w);
		dw_end_unit(&u);
		f = dw_read(&w);
		ASSERT_EQ(f.counts.units, 1);
		dw_check_name(&f, 0x1000, "five::method");
		/* One that is nowhere. */
		w.types.nr = 0;
		w.info.nr = 0;
		u = dw_begin_unit(&w.info, version, DW_UT_compile, 8, 0);
		dw_uleb(&w.info, DW_UNIT), dw_put(&w.info, DW_LANG_C_plus_plus, 1);
		class_of_signature(&w, 1);
		dw_end(&w);
		dw_end_unit(&u);
		f = dw_read(&w);
		dw_check_name(&f, 0x1000, "(anonymous struct)::method");
	}
}

/* --- packages ------------------------------------------------------------------------------- */

struct package {
	struct dw_writer w;
	struct dwarf_sections sections;
};

static int find_package(void *ctx, const struct dwarf_split_ref *ref,
			const struct dwarf_sections **ret)
{
	struct package *p = ctx;

	ASSERT_EQ(ref->id, 0x1122334455667788);
	ASSERT_STR(ref->name, "x.dwo");
	*ret = &p->sections;
	return 0;
}

/* An index of two sections, of one unit: its info (or types) and its abbreviations. */
static void write_index(struct dw_bytes *b, int version, int section, uint64_t id, size_t offset,
			size_t size, size_t abbrev_offset, size_t abbrev_size)
{
	enum { SLOTS = 8 };
	/* The first slot that is tried is taken by another unit. */
	int slot = id & (SLOTS - 1), step = (id >> 32 & (SLOTS - 1)) | 1;
	int next = (slot + step) & (SLOTS - 1);

	dw_put(b, version, 4), dw_put(b, 2, 4), dw_put(b, 2, 4), dw_put(b, SLOTS, 4);
	for (int i = 0; i < SLOTS; i++)
		dw_put(b, i == next ? id : i == slot ? id + SLOTS : 0, 8);
	for (int i = 0; i < SLOTS; i++)
		dw_put(b, i == next ? 2 : i == slot, 4);
	dw_put(b, section, 4), dw_put(b, DW_SECT_ABBREV, 4);
	dw_put(b, 0, 4), dw_put(b, 0, 4), dw_put(b, offset, 4), dw_put(b, abbrev_offset, 4);
	dw_put(b, 1, 4), dw_put(b, 1, 4), dw_put(b, size, 4), dw_put(b, abbrev_size, 4);
}

TEST(packages_by_hand)
{
	const uint64_t id = 0x1122334455667788, signature = 0xabcdef0123456789;

	for (int version = 4; version <= 5; version++) {
		int index_version = version == 4 ? 2 : 5;
		struct package p = { 0 };
		struct dw_writer skeleton = { 0 };
		size_t unit_at, types_at, abbrev_at = 6;
		struct dw_bytes *types = version == 4 ? &p.w.types : &p.w.info;
		struct flat f;
		struct dw_unit u;

		dw_abbrev(&skeleton.abbrev, 1, DW_TAG_compile_unit, 0, DW_AT_GNU_dwo_name,
			  DW_FORM_string, DW_AT_GNU_dwo_id, DW_FORM_data8, 0);
		dw_put(&skeleton.abbrev, 0, 1);
		u = dw_begin_unit(&skeleton.info, version, DW_UT_skeleton, 8, id);
		dw_uleb(&skeleton.info, 1), dw_str(&skeleton.info, "x.dwo"),
			dw_put(&skeleton.info, id, 8);
		dw_end_unit(&u);

		dw_put(&p.w.abbrev, 0, abbrev_at);
		type_abbrevs(&p.w.abbrev);
		p.w.abbrev.nr--;
		dw_abbrev(&p.w.abbrev, 30, DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1,
			  DW_AT_GNU_dwo_id, DW_FORM_data8, 0);
		dw_put(&p.w.abbrev, 0, 1);
		dw_put(types, 0, 16); /* what other units have */
		types_at = types->nr;
		type_unit(types, version, DW_UT_split_type, signature, "packed");
		write_index(&p.w.tu_index, index_version,
			    version == 4 ? DW_SECT_TYPES : DW_SECT_INFO, signature, types_at,
			    types->nr - types_at, abbrev_at, p.w.abbrev.nr - abbrev_at);
		unit_at = p.w.info.nr;
		u = dw_begin_unit(&p.w.info, version, DW_UT_split_compile, 8, id);
		dw_uleb(&p.w.info, 30), dw_put(&p.w.info, DW_LANG_C_plus_plus, 1);
		dw_put(&p.w.info, id, 8);
		class_of_signature(&p.w, signature);
		dw_end(&p.w);
		dw_end_unit(&u);
		write_index(&p.w.cu_index, index_version, DW_SECT_INFO, id, unit_at,
			    p.w.info.nr - unit_at, abbrev_at, p.w.abbrev.nr - abbrev_at);
		p.sections = dw_sections(&p.w);
		f = dw_read_source(&(struct dwarf_source){
			.main = dw_sections(&skeleton), .split = find_package, .ctx = &p });
		ASSERT_EQ(f.counts.missing_split + f.counts.bad_units, 0);
		dw_check_name(&f, 0x1000, "packed::method");
		/* An index that is cut off, or has it not. */
		p.sections.cu_index.size--;
		f = dw_read_source(&(struct dwarf_source){
			.main = dw_sections(&skeleton), .split = find_package, .ctx = &p });
		ASSERT_EQ(f.counts.missing_split, 1);
		p.sections.cu_index = p.sections.tu_index;
		f = dw_read_source(&(struct dwarf_source){
			.main = dw_sections(&skeleton), .split = find_package, .ctx = &p });
		ASSERT_EQ(f.counts.missing_split, 1);
		ASSERT_EQ(f.scopes.nr, 0);
	}
}

/* --- lines ---------------------------------------------------------------------------------- */

/* A program of version 2: one file, one row at `addr`, of 16 bytes. Its offset. */
static uint64_t write_program(struct dw_bytes *b, const char *file, uint64_t addr)
{
	static const uint8_t lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1 };
	uint64_t start = b->nr;

	dw_put(b, 0, 4), dw_put(b, 2, 2), dw_put(b, 0, 4);
	dw_put(b, 1, 1), dw_put(b, 1, 1), dw_put(b, (uint8_t)-5, 1), dw_put(b, 14, 1);
	dw_put(b, sizeof(lengths) + 1, 1);
	for (size_t i = 0; i < sizeof(lengths); i++)
		dw_put(b, lengths[i], 1);
	dw_put(b, 0, 1); /* directories */
	dw_str(b, file), dw_put(b, 0, 3), dw_put(b, 0, 1);
	dw_patch(b, start + 6, b->nr - (start + 10), 4);
	dw_put(b, 0, 1), dw_uleb(b, 9), dw_put(b, 2, 1), dw_put(b, addr, 8);
	dw_put(b, 1, 1);				 /* a row */
	dw_put(b, 2, 1), dw_uleb(b, 0x10);		 /* further on */
	dw_put(b, 0, 1), dw_uleb(b, 1), dw_put(b, 1, 1); /* the end */
	dw_patch(b, start, b->nr - (start + 4), 4);
	return start;
}

/* Rows come once; files with every unit that numbers them, also those of another unit's table. */
TEST(shared_line_programs)
{
	static const char *const files[] = { "/one.c", "/one.c", "/two.c", "" };
	struct dw_writer w = { 0 };
	uint64_t one = write_program(&w.line, "/one.c", 0x1000);
	uint64_t two = write_program(&w.line, "/two.c", 0x1300);
	uint64_t declared = 0;
	struct flat f;

	dw_abbrev(&w.abbrev, 1, DW_TAG_compile_unit, 1, DW_AT_stmt_list, DW_FORM_sec_offset, 0);
	dw_abbrev(&w.abbrev, 2, DW_TAG_subprogram, 0, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		  DW_FORM_udata, DW_AT_decl_file, DW_FORM_udata, 0);
	dw_abbrev(&w.abbrev, 3, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, DW_AT_decl_file,
		  DW_FORM_udata, 0);
	dw_abbrev(&w.abbrev, 4, DW_TAG_subprogram, 0, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		  DW_FORM_udata, DW_AT_abstract_origin, DW_FORM_ref_addr, 0);
	dw_put(&w.abbrev, 0, 1);
	for (int i = 0; i < 4; i++) {
		struct dw_unit u = dw_begin_unit(&w.info, 4, 0, 8, 0);

		dw_uleb(&w.info, 1), dw_put(&w.info, i == 3 ? two : one, 4);
		dw_uleb(&w.info, i == 2 ? 4 : 2);
		dw_put(&w.info, 0x1000 + 0x100 * i, 8), dw_uleb(&w.info, 16);
		if (i == 2) /* in the unit to come, behind its only function */
			declared = w.info.nr, dw_put(&w.info, 0, 4);
		else
			dw_uleb(&w.info, i == 3 ? 2 : 1); /* there is no second file */
		if (i == 3) {
			dw_patch(&w.info, declared, w.info.nr, 4);
			dw_uleb(&w.info, 3), dw_str(&w.info, "f"), dw_uleb(&w.info, 1);
		}
		dw_end(&w);
		dw_end_unit(&u);
	}
	f = dw_read(&w);
	ASSERT_EQ(f.counts.bad_units + f.counts.dropped, 0);
	ASSERT_EQ(f.rows.nr, 2);
	ASSERT_STR(flat_line(&f, 0x100f)->file, "/one.c");
	ASSERT_STR(flat_line(&f, 0x1300)->file, "/two.c");
	for (int i = 0; i < 4; i++)
		ASSERT_STR(flat_find(&f, 0x1000 + 0x100 * i)->file, files[i]);
	ASSERT_STR(flat_find(&f, 0x1200)->name, "f");
}

/* --- too much ------------------------------------------------------------------------------- */

/* Cut off anywhere: never more than the whole, and nothing that is not in it. */
TEST(cut_off_anywhere)
{
	struct dwarf_source source = { 0 };
	struct dw_writer w = { 0 };
	size_t size;
	struct flat f;
	struct dw_unit u;

	for (int i = 0; i < 2; i++) {
		u = dw_usual_unit(&w, DW_LANG_C_plus_plus);
		dw_uleb(&w.info, DW_SPACE), dw_str(&w.info, "a");
		dw_function(&w, "f", 0x1000 + 0x1000 * i, 16), dw_end(&w);
		dw_end(&w);
		dw_end(&w);
		dw_end_unit(&u);
	}
	for (size = 0; size < w.info.nr; size++) {
		struct dw_writer cut = w;

		cut.info.nr = size;
		f = dw_read(&cut);
		ASSERT(f.scopes.nr <= 1 || size > u.start);
		for (size_t i = 0; i < f.scopes.nr; i++)
			ASSERT_STR(f.scopes.items[i]->name, "a::f");
		if (size % u.start)
			ASSERT_EQ(f.counts.bad_units, 1);
	}
	for (size = 0; size < w.abbrev.nr; size++) {
		struct dw_writer cut = w;

		cut.abbrev.nr = size;
		f = dw_read(&cut);
		ASSERT(f.scopes.nr <= 2);
	}
	source.main = dw_sections(&w);
	f = dw_read_source(&source);
	ASSERT_EQ(f.scopes.nr, 2);
}

/*
 * Fifty thousand units, each with its own end of one table of abbreviations: read in full that
 * would be thousands of times the file. Most are given up.
 */
TEST(many_overlapping_tables)
{
	enum { TABLE = 100000, UNITS = 50000 };
	struct dw_writer w = { 0 };
	struct flat f;

	for (int i = 0; i < TABLE / 5; i++)
		dw_put(&w.abbrev, 0x0000000b01, 5);
	for (uint64_t i = 0; i < UNITS; i++) {
		struct dw_unit u = dw_begin_unit(&w.info, 4, 0, 8, 0);

		dw_patch(&w.info, u.start + 6, i, 4);
		dw_uleb(&w.info, 1);
		dw_end_unit(&u);
	}
	f = dw_read(&w);
	ASSERT_EQ(f.counts.units, UNITS);
	ASSERT(f.counts.bad_units > UNITS / 2);
}

/* As many functions as fit, all of them with the same long list of ranges. */
TEST(many_references_to_one_list)
{
	enum { FUNCTIONS = 2000, RANGES = 2000 };
	struct dw_writer w = { 0 };
	struct flat f;
	struct dw_unit u;

	dw_abbrev(&w.abbrev, 1, DW_TAG_compile_unit, 1, 0);
	dw_abbrev(&w.abbrev, 2, DW_TAG_subprogram, 0, DW_AT_ranges, DW_FORM_sec_offset, 0);
	dw_put(&w.abbrev, 0, 1);
	for (uint64_t i = 1; i <= RANGES; i++)
		dw_put(&w.ranges, i << 8, 8), dw_put(&w.ranges, (i << 8) + 1, 8);
	dw_put(&w.ranges, 0, 16);
	u = dw_begin_unit(&w.info, 4, 0, 8, 0);
	dw_uleb(&w.info, 1);
	for (int i = 0; i < FUNCTIONS; i++)
		dw_uleb(&w.info, 2), dw_put(&w.info, 0, 4);
	dw_end(&w);
	dw_end_unit(&u);
	f = dw_read(&w);
	ASSERT(f.scopes.nr > 1 && f.counts.dropped > FUNCTIONS / 2);
}

static int find_same(void *ctx, const struct dwarf_split_ref *ref,
		     const struct dwarf_sections **ret)
{
	(void)ref;
	*ret = ctx;
	return 0;
}

/* Thousands of skeletons of one split unit, which is large. The first ones have it. */
TEST(many_skeletons_of_one_unit)
{
	enum { SKELETONS = 3000, FUNCTIONS = 3000 };
	struct dw_writer w = { 0 }, dwo = { 0 };
	struct dwarf_sections split;
	struct flat f;
	struct dw_unit u;

	dw_abbrev(&w.abbrev, 1, DW_TAG_compile_unit, 0, DW_AT_dwo_name, DW_FORM_string, 0);
	dw_put(&w.abbrev, 0, 1);
	for (int i = 0; i < SKELETONS; i++) {
		u = dw_begin_unit(&w.info, 5, DW_UT_skeleton, 8, 0x1234);
		dw_uleb(&w.info, 1), dw_str(&w.info, "x.dwo");
		dw_end_unit(&u);
	}
	dw_usual_abbrevs(&dwo.abbrev);
	u = dw_begin_unit(&dwo.info, 5, DW_UT_split_compile, 8, 0x1234);
	dw_uleb(&dwo.info, DW_UNIT), dw_put(&dwo.info, 0, 1);
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		dw_function(&dwo, "f", 0x1000 + i * 16, 16);
		dw_end(&dwo);
	}
	dw_end(&dwo);
	dw_end_unit(&u);
	split = dw_sections(&dwo);
	f = dw_read_source(&(struct dwarf_source){
		.main = dw_sections(&w), .split = find_same, .ctx = &split });
	ASSERT(f.scopes.nr >= FUNCTIONS);
	ASSERT(f.counts.missing_split > SKELETONS / 2);
}

static int refuse(void *ctx, const struct dwarf_unit *unit)
{
	(void)unit;
	++*(int *)ctx;
	return -ECANCELED;
}

TEST(caller_ends_it)
{
	struct dw_writer w = { 0 };
	struct dwarf_source source = { 0 };
	struct dwarf_counts counts = { .units = 77 };
	int nr = 0;

	for (int i = 0; i < 2; i++) {
		struct dw_unit u = dw_usual_unit(&w, 0);

		dw_function(&w, "f", 0x1000, 16), dw_end(&w);
		dw_end(&w);
		dw_end_unit(&u);
	}
	source.main = dw_sections(&w);
	ASSERT_ERR(dwarf_read_units(&source, refuse, &nr, &counts), ECANCELED);
	ASSERT_EQ(nr, 1);
	ASSERT_EQ(counts.units, 77);
}
