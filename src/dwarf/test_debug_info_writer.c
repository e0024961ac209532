// SPDX-License-Identifier: Apache-2.0
/* Debug information by hand: see test_debug_info_writer.h. */
#include "dwarf/test_debug_info_writer.h"

#include <stdarg.h>
#include <stdlib.h>

#include "dwarf/dwarf_defs.h"
#include "test.h"

void dw_put(struct dw_bytes *b, uint64_t v, size_t size)
{
	flat_keep_begin();
	for (size_t i = 0; i < size; i++)
		ASSERT_OK(vec_push(b, i < 8 ? (uint8_t)(v >> (8 * i)) : 0));
	flat_keep_end();
}

void dw_uleb(struct dw_bytes *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		dw_put(b, v | 0x80, 1);
	dw_put(b, v, 1);
}

uint64_t dw_str(struct dw_bytes *b, const char *s)
{
	uint64_t at = b->nr;

	for (size_t i = 0; i <= strlen(s); i++)
		dw_put(b, (uint8_t)s[i], 1);
	return at;
}

void dw_patch(struct dw_bytes *b, size_t at, uint64_t v, size_t size)
{
	memcpy(b->items + at, &v, size);
}

struct dwarf_sections dw_sections(const struct dw_writer *w)
{
	const struct dw_bytes *from = &w->info;
	struct dwarf_sections s = { 0 };
	struct dwarf_span *to = &s.info;

	_Static_assert(sizeof(*w) / sizeof(*from) == sizeof(s) / sizeof(*to), "the same sections");
	for (size_t i = 0; i < sizeof(s) / sizeof(*to); i++) {
		uint8_t *data;

		if (!from[i].nr)
			continue;
		flat_keep_begin();
		data = malloc(from[i].nr);
		flat_keep_end();
		ASSERT_PTR_NONNULL(data);
		memcpy(data, from[i].items, from[i].nr);
		to[i] = (struct dwarf_span){ data, from[i].nr };
	}
	return s;
}

void dw_abbrev(struct dw_bytes *b, uint64_t code, int tag, int children, ...)
{
	va_list ap;
	int name;

	dw_uleb(b, code);
	dw_uleb(b, tag);
	dw_put(b, children, 1);
	va_start(ap, children);
	while ((name = va_arg(ap, int))) {
		int form = va_arg(ap, int);

		dw_uleb(b, name);
		dw_uleb(b, form);
		if (form == DW_FORM_implicit_const)
			dw_uleb(b, va_arg(ap, int)); /* below 64 it is a SLEB too */
	}
	va_end(ap);
	dw_put(b, 0, 2);
}

struct dw_unit dw_begin_unit(struct dw_bytes *b, int version, int type, int address_size,
			     uint64_t id)
{
	struct dw_unit u = { .b = b, .start = b->nr, .body = b->nr + 4, .offset_size = 4 };

	dw_put(b, 0, 4);
	dw_put(b, version, 2);
	if (version == 5) {
		dw_put(b, type, 1);
		dw_put(b, address_size, 1);
		dw_put(b, 0, 4);
		if (type >= DW_UT_skeleton || type == DW_UT_type)
			dw_put(b, id, 8);
	} else {
		dw_put(b, 0, 4);
		dw_put(b, address_size, 1);
	}
	return u;
}

void dw_end_unit(const struct dw_unit *u)
{
	dw_patch(u->b, u->start, u->b->nr - u->body, 4);
}

struct flat dw_read_source(const struct dwarf_source *source)
{
	struct flat f = { 0 };

	ASSERT_OK(dwarf_read_units(source, flat_add, &f, &f.counts));
	flat_finish(&f);
	return f;
}

struct flat dw_read(const struct dw_writer *w)
{
	return dw_read_source(&(struct dwarf_source){ .main = dw_sections(w) });
}

void dw_check_name(const struct flat *f, uint64_t addr, const char *name)
{
	const struct flat_scope *s = flat_find(f, addr);

	ck_assert_msg((s && name) || (!s && !name), "0x%lx: %s, not %s", (long)addr,
		      s ? s->name : "nothing", name ? name : "nothing");
	if (s)
		ASSERT_STR(s->name, name);
}

void dw_usual_abbrevs(struct dw_bytes *b)
{
	dw_abbrev(b, DW_UNIT, DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1, 0);
	dw_abbrev(b, DW_FUNCTION, DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
		  DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
	dw_abbrev(b, DW_ABSTRACT, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, 0);
	dw_abbrev(b, DW_INLINED, DW_TAG_inlined_subroutine, 1, DW_AT_abstract_origin, DW_FORM_ref4,
		  DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_call_line,
		  DW_FORM_udata, 0);
	dw_abbrev(b, DW_SPACE, DW_TAG_namespace, 1, DW_AT_name, DW_FORM_string, 0);
	dw_abbrev(b, DW_BLOCK, DW_TAG_lexical_block, 1, 0);
	dw_abbrev(b, DW_REFERENCE, DW_TAG_subprogram, 1, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		  DW_FORM_data4, DW_AT_abstract_origin, DW_FORM_ref4, 0);
	dw_put(b, 0, 1);
}

struct dw_unit dw_usual_unit(struct dw_writer *w, int language)
{
	struct dw_unit u = dw_begin_unit(&w->info, 4, 0, 8, 0);

	if (!w->abbrev.nr)
		dw_usual_abbrevs(&w->abbrev);
	dw_uleb(&w->info, DW_UNIT);
	dw_put(&w->info, language, 1);
	return u;
}

void dw_function(struct dw_writer *w, const char *name, uint64_t addr, uint32_t size)
{
	dw_uleb(&w->info, DW_FUNCTION);
	dw_str(&w->info, name);
	dw_put(&w->info, addr, 8);
	dw_put(&w->info, size, 4);
}

void dw_inlined(struct dw_writer *w, uint32_t origin, uint64_t addr, uint32_t size, uint32_t line)
{
	dw_uleb(&w->info, DW_INLINED);
	dw_put(&w->info, origin, 4);
	dw_put(&w->info, addr, 8);
	dw_put(&w->info, size, 4);
	dw_uleb(&w->info, line);
}

void dw_end(struct dw_writer *w)
{
	dw_put(&w->info, 0, 1);
}
