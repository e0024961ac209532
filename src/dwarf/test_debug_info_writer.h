/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: debug information written by hand, section by section, and read. What fails, fails the
 * test; nothing is ever freed.
 */
#pragma once

#include "dwarf/test_debug_info_flat.h"

struct dw_bytes {
	VEC(uint8_t);
};

/* Sections of one file, as in struct dwarf_sections. */
struct dw_writer {
	struct dw_bytes info, abbrev, str, str_offsets, line, line_str, addr, ranges, rnglists,
		types, cu_index, tu_index;
};

struct dw_unit {
	struct dw_bytes *b;
	size_t start, body;
	int offset_size;
};

/* Abbreviations that most tests do with: addresses are of 8 bytes, names in place. */
enum { DW_UNIT = 1, DW_FUNCTION, DW_ABSTRACT, DW_INLINED, DW_SPACE, DW_BLOCK, DW_REFERENCE };

void dw_put(struct dw_bytes *b, uint64_t v, size_t size);
void dw_uleb(struct dw_bytes *b, uint64_t v);
/* Its offset. */
uint64_t dw_str(struct dw_bytes *b, const char *s);
void dw_patch(struct dw_bytes *b, size_t at, uint64_t v, size_t size);
/* Copies of just their size, so that ASan sees what reads beyond. */
struct dwarf_sections dw_sections(const struct dw_writer *w);
/* Pairs of attribute and form up to 0; behind DW_FORM_implicit_const its value. */
void dw_abbrev(struct dw_bytes *b, uint64_t code, int tag, int children, ...);
/* A header; `type` counts in version 5, `id` where the type has one. */
struct dw_unit dw_begin_unit(struct dw_bytes *b, int version, int type, int address_size,
			     uint64_t id);
void dw_end_unit(const struct dw_unit *u);

/* A unit of version 4 and its entries, by the usual abbreviations. */
void dw_usual_abbrevs(struct dw_bytes *b);
struct dw_unit dw_usual_unit(struct dw_writer *w, int language);
void dw_function(struct dw_writer *w, const char *name, uint64_t addr, uint32_t size);
void dw_inlined(struct dw_writer *w, uint32_t origin, uint64_t addr, uint32_t size, uint32_t line);
void dw_end(struct dw_writer *w);

struct flat dw_read_source(const struct dwarf_source *source);
struct flat dw_read(const struct dw_writer *w);
/* The innermost function at `addr`; NULL: there must be none. */
void dw_check_name(const struct flat *f, uint64_t addr, const char *name);
