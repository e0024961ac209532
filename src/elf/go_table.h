/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions that Go's linker puts into every program and library (.gopclntab),
 * stripped or not, since the runtime walks its own stacks by it: names, files, lines, what was
 * inlined, and how far the stack pointer is from the frame's upper end.
 *
 * Layouts of Go 1.2 to 1.26 (src/runtime/symtab.go: pcHeader, moduledata; runtime2.go: _func;
 * symtabinl.go: inlinedCall; cmd/link/internal/ld/pcln.go). Everything is read within the bytes of
 * the table; what does not fit is not there.
 */
#pragma once

#include "elf/elf_file.h"

enum {
	GO_TABLE_MAX = 512 << 20, /* bytes; the largest programs have 150 MB */
	GO_NAME_MAX = 16 << 10,	  /* a longer name or path is none */
};

/* What the first four bytes say: the first Go with it. */
enum go_table_layout { GO_TABLE_1_2, GO_TABLE_1_16, GO_TABLE_1_18, GO_TABLE_1_20 };

struct go_table {
	enum go_table_layout layout;
	uint32_t nr_functions;
	uint64_t text; /* what code addresses of 1.18 and later count from */
	/* private */
	const struct elf_file *elf;
	uint8_t *data;
	uint64_t addr, size;
	uint64_t names, units, files, values, functions; /* offsets in `data` */
	uint64_t funcdata; /* address that offsets of inlined calls count from; 0: not known */
	uint8_t *window;   /* what lies at and behind the inlined call that was read last */
	uint64_t window_addr, window_size;
	uint8_t quantum; /* bytes of the smallest instruction */
};

/* One function: [start, end) in the file's own address space, padding behind it included. */
struct go_function {
	uint64_t start, end;
	uint32_t start_line; /* of its declaration; 0: not known */
	uint8_t id; /* internal/abi/symtab.go: FuncID, other numbers in each Go; 0: ordinary */
	bool top;   /* FuncFlagTopFrame, since 1.17: Go's own walks end at it */
	/* private */
	uint32_t name, unit, inlined_index;
	uint32_t values[3];
	uint64_t inlined; /* address of the tree; 0: none */
};

enum go_values_kind { GO_STACK_SIZE, GO_FILE, GO_LINE, GO_INLINED };

/* Walks what a function's addresses have of one kind: steps, in ascending order. */
struct go_values {
	const uint8_t *at, *end;
	uint32_t pos, limit;
	int32_t value;
	uint8_t quantum;
	bool begun;
};

/* [begin, end) are offsets from the function's start. */
struct go_step {
	uint32_t begin, end;
	int32_t value;
};

/* A call that was inlined into a function. */
struct go_inlined {
	uint32_t name;	     /* for go_table_name() */
	uint32_t parent_pc;  /* offset of an instruction that is at the call, in its caller */
	uint32_t start_line; /* of the declaration; 0: not known */
};

/* Whether Go's linker made the file, or a part of it. */
bool go_made(const struct elf_file *elf);
/*
 * Finds the table and reads it: by section, else by its first bytes in what is no code. `elf` is
 * borrowed. 0; -ENOENT: there is none, or none that makes sense; -ENOMEM.
 */
int go_table_read(const struct elf_file *elf, struct go_table *ret);
void go_table_fini(struct go_table *table);
/* How many bytes that reads, as far as headers tell, with those that are searched. */
uint64_t go_table_bytes(const struct elf_file *elf);

/* Function `i`, in the order of addresses. 0, or -ENOENT if its record makes no sense. */
int go_table_function(const struct go_table *table, uint32_t i, struct go_function *ret);
/* The first one that begins at `addr` or behind it; nr_functions: there is none. */
uint32_t go_table_first(const struct go_table *table, uint64_t addr);
/* Strings live as long as the table; NULL: none, or too long. */
const char *go_table_name(const struct go_table *table, uint32_t name);
const char *go_table_function_name(const struct go_table *table, const struct go_function *f);
/* The path of a file as values of GO_FILE number it. */
const char *go_table_file(const struct go_table *table, const struct go_function *f, int32_t file);

void go_values_begin(const struct go_table *table, const struct go_function *f,
		     enum go_values_kind kind, struct go_values *ret);
/* The next step; false: there is none any more. At most one for each byte of the function. */
bool go_values_next(struct go_values *values, struct go_step *ret);

/* What the value `index` of GO_INLINED stands for. 0 or -ENOENT. */
int go_table_inlined(struct go_table *table, const struct go_function *f, uint32_t index,
		     struct go_inlined *ret);
