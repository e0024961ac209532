/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the builder share: symbol_builder.c (the file's symbols, the whole),
 * symbol_units.c (what debug information says of a unit, packed into spans), symbol_go.c (what Go's
 * table of functions says, as units), symbol_merge.c (the spans of all units and symbols, one
 * answer an address).
 *
 * All addresses are offsets from `base`, the lowest address of code.
 */
#pragma once

#include "dwarf/debug_info.h"
#include "elf/elf_symbols.h"
#include "symbol/symbol_builder.h"
#include "symbol/symbol_table.h"
#include "symbol/symbol_writer.h"
#include "util/vec.h"

enum {
	/* Of rows that wait to be merged, encoded. */
	SPAN_BYTES_MAX = INT32_MAX,
};

/* A range of addresses that is covered as a whole: code, or what one ELF symbol covers. */
struct code_span {
	uint32_t begin, end;
};

struct symbol_span {
	uint32_t begin, end;
	uint32_t name;	   /* a string of the writer */
	uint32_t symbol;   /* where the symbol itself begins */
	bool sized;	   /* its end is what the symbol says, not a guess */
	uint32_t function; /* that debug information gave this name, or IMAGE_NONE */
};

/* Rows of one origin: of a function in debug information, a line sequence, an ELF symbol. */
struct span {
	uint32_t begin, end;
	uint32_t origin; /* where its function's range begins: the nearest one wins */
	uint32_t unit;
	uint32_t data;	/* encoded rows, the last one at `end`; of SPAN_SYMBOL the symbol's index */
	uint32_t flags; /* SPAN_*; of two that begin alike the higher wins */
};

enum {
	SPAN_SYMBOL = 0,
	SPAN_DEBUG_INFO = 1 << 0,
	SPAN_NAME_MATCHES = 1 << 1, /* debug information and symbol agree */
};

struct span_list {
	VEC(struct span) items;
	VEC(uint8_t) rows;
};

struct builder {
	struct symbol_writer *writer;
	uint64_t base;
	VEC(struct code_span) code;	 /* sorted, apart */
	VEC(struct symbol_span) symbols; /* sorted, apart */
	struct span_list ranges, lines;
	uint32_t nr_units;
	bool has_go; /* debug information of Go's compiler was among it, and counts */
};

/* Frees all that it holds; the builder itself is the caller's. */
void builder_fini(struct builder *b);
/* The piece of code that `addr` is in, or NULL. */
const struct code_span *builder_code(const struct builder *b, uint64_t addr);
/* The first symbol span that ends behind `addr`: its index. */
size_t builder_symbol(const struct builder *b, uint32_t addr);

/* By how a symbol is mangled: enum symbol_language. */
uint32_t symbol_language_of(const char *name);

/* Begins the rows of a span: its first row is at `begin`. */
int span_begin(struct span_list *list, uint32_t begin, struct image_row *ret_last);
int span_row(struct span_list *list, struct image_row *last, const struct image_row *row);
/* Ends them at span->end, and adds the span (whose `data` span_begin() found at `rows.nr`). */
int span_end(struct span_list *list, const struct image_row *last, const struct span *span);

/* Takes in a unit: what dwarf_read_units() calls, `ctx` is the builder. */
int builder_add_unit(void *ctx, const struct dwarf_unit *unit);
/*
 * Takes in what Go's own table says (elf/go_table.h): nothing if there is none. `names_only`: no
 * inlined calls and lines.
 */
int builder_add_go(struct builder *b, const struct elf_file *elf, bool names_only);
/* Writes all ranges, then all lines. The lists are empty afterwards. */
int builder_merge(struct builder *b);
