// SPDX-License-Identifier: Apache-2.0
/*
 * What files tell: small made-up ones (the fuzzer's), which export what Node.js of each version
 * does.
 */
#include "runtime/v8/v8_layout.h"

#include "abi/unwind.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *read_made(const char *name, size_t *ret_size)
{
	char path[PATH_MAX];
	uint8_t *data = calloc(1, 64 << 10);
	FILE *file;

	ASSERT(data);
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/v8_file/%s", test_source_root(), name);
	file = fopen(path, "re");
	ASSERT(file);
	*ret_size = fread(data, 1, 64 << 10, file);
	ASSERT(*ret_size && *ret_size < 64 << 10);
	fclose(file);
	return data;
}

static int read_memory(const uint8_t *data, size_t size, struct v8_layout *ret, uint16_t *version)
{
	struct elf_file *elf;
	int r;

	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	r = v8_layout_read(elf, ret, version);
	elf_file_free(elf);
	return r;
}

static int read_name(const char *name, struct v8_layout *ret, uint16_t *version)
{
	size_t size;
	uint8_t *data = read_made(name, &size);
	int r = read_memory(data, size, ret, version);

	free(data);
	return r;
}

/* In bytes from an object's begin; flags of a ScopeInfo in bits. Frames: from the frame pointer. */
struct want {
	const char *file;
	uint16_t version, nr_bytecodes;
	int16_t bytecode_array, bytecode_offset;
	uint16_t bytecodes, bytecodes_register;
	uint16_t function_code, code_start, code_inline, code_size, code_flags;
	uint16_t code_deopt, code_positions;
	uint16_t kind_mask, baseline;
	uint16_t scope_flags, scope_parts, scope_start;
	uint16_t scope_saved_class, scope_function_shift, scope_inferred;
	bool scope_receiver, scope_plain_flags;
	uint16_t deopt_literals, deopt_shared, deopt_inlining;
};

static const struct want wants[] = {
	{ "node12", 708,	0,  -24, -32, 54, X86_R14, 48,	 0,    64,    40, 44, 16, 24,
	  31,	    V8_NO_TYPE, 16, 40,	 0,   0,  11,	   8192, true, false, 2,  6,  7 },
	{ "node13", 709,	0,  -24, -32, 54, X86_R14, 48,	 0,    64,    40, 44, 16, 24,
	  31,	    V8_NO_TYPE, 16, 40,	 0,   0,  11,	   8192, true, false, 2,  6,  7 },
	{ "electron9", 803,	   0, -24, -32, 34,   X86_R14, 24,    0,    64,	   20, 24, 8, 12,
	  31,	       V8_NO_TYPE, 8, 20,  0,	1024, 12,      16384, true, false, 2,  6,  7 },
	{ "node14_5", 803,	  0,  -24, -32, 54,   X86_R14, 48,    0,    64,	   40, 44, 16, 24,
	  31,	      V8_NO_TYPE, 16, 40,  0,	1024, 12,      16384, true, false, 2,  6,  7 },
	{ "node14", 804,	0,  -24, -32, 54,   X86_R14, 48,    0,	  96,	 40, 44, 16, 24,
	  31,	    V8_NO_TYPE, 16, 40,	 0,   1024, 12,	     16384, true, false, 2,  6,	 7 },
	{ "node15", 806,	0,  -24, -32, 54,   X86_R14, 48,    0,	  96,	 40, 44, 16, 24,
	  31,	    V8_NO_TYPE, 16, 40,	 0,   1024, 12,	     16384, true, false, 2,  6,	 7 },
	{ "node16", 904, 197, -32, -40, 54,   X86_R12, 48,    0,    96,	   40, 48, 16, 24,
	  15,	    11,	 8,   32,  0,	1024, 12,      16384, true, false, 2,  6,  7 },
	{ "node17", 906, 197, -32, -40, 54,   X86_R12, 48,    0,    128,   40, 48, 16, 24,
	  15,	    11,	 8,   32,  0,	1024, 12,      16384, true, false, 2,  6,  7 },
	{ "node18", 1002, 198, -32, -40, 56,   X86_R12, 48,    0,     128,   40, 48, 16, 24,
	  15,	    11,	  8,   32,  0,	 1024, 12,	16384, false, false, 2,	 6,  7 },
	{ "node19", 1008, 198, -32, -40, 54,   X86_R12, 48,    0,     128,   40, 48, 16, 24,
	  15,	    11,	  8,   32,  0,	 1024, 12,	16384, false, false, 2,	 6,  7 },
	{ "node20", 1103, 198, -32, -40, 54,   X86_R12, 48,    40,    0,     56, 48, 16, 24,
	  15,	    11,	  8,   32,  0,	 1024, 12,	16384, false, false, 2,	 6,  7 },
	{ "node21", 1108, 199, -32, -40, 52,   X86_R12, 24,    32,    0,     44, 40, 8, 16,
	  15,	    11,	  8,   32,  0,	 1024, 12,	16384, false, false, 2,	 6,  7 },
	{ "node22", 1204, 203, -32, -40, 64,   X86_R12, 24,    40,    0,     52, 48, 8, 16,
	  15,	    10,	  8,   32,  0,	 1024, 12,	16384, false, false, 2,	 6,  7 },
	{ "node23", 1209, 204, -32, -40, 64,   X86_R12, 24,    40,    0,    52, 48, 8, 16,
	  15,	    10,	  8,   48,  32,	 1024, 12,	16384, false, true, 2,	6,  7 },
	{ "node24", 1306, 208, -32, -40, 64,   X86_R12, 24,    40,    0,    56, 52, 8, 16,
	  15,	    10,	  8,   48,  32,	 1024, 12,	16384, false, true, 3,	7,  8 },
	{ "node25", 1401, 212, -32, -40, 64,   X86_R12, 24,    40,    0,    56, 52, 8, 16,
	  15,	    10,	  8,   48,  32,	 1024, 12,	16384, false, true, 3,	7,  8 },
	{ "node26", 1406, 212, -32, -40, 64,   X86_R12, 24,    40,    0,    56, 52, 8, 16,
	  15,	    11,	  8,   48,  32,	 1024, 12,	16384, false, true, 3,	7,  8 },
};

static void check_code(const struct want *w, const struct v8_layout *l)
{
	ASSERT_EQ(l->record.fp_bytecode_array, w->bytecode_array);
	ASSERT_EQ(l->record.fp_bytecode_offset, w->bytecode_offset);
	ASSERT_EQ(l->record.bytecodes, w->bytecodes);
	ASSERT_EQ(l->record.bytecodes_register, w->bytecodes_register);
	ASSERT_EQ(l->record.function_code, w->function_code);
	ASSERT_EQ(l->record.code_start, w->code_start);
	ASSERT_EQ(l->record.code_inline, w->code_inline);
	ASSERT_EQ(l->record.code_size, w->code_size);
	ASSERT_EQ(l->code_flags, w->code_flags);
	ASSERT_EQ(l->code_deopt, w->code_deopt);
	ASSERT_EQ(l->code_positions, w->code_positions);
	ASSERT_EQ(l->code_kind_mask, w->kind_mask);
	ASSERT_EQ(l->kind_baseline, w->baseline);
	ASSERT_EQ(l->deopt_literals, w->deopt_literals);
	ASSERT_EQ(l->deopt_shared, w->deopt_shared);
	ASSERT_EQ(l->deopt_inlining, w->deopt_inlining);
}

static void check_scope(const struct want *w, const struct v8_layout *l)
{
	ASSERT_EQ(l->scope_flags, w->scope_flags);
	ASSERT_EQ(l->scope_parts, w->scope_parts);
	ASSERT_EQ(l->scope_start, w->scope_start);
	ASSERT_EQ(l->scope_saved_class, w->scope_saved_class);
	ASSERT_EQ(l->scope_function_shift, w->scope_function_shift);
	ASSERT_EQ(l->scope_inferred, w->scope_inferred);
	ASSERT_EQ(l->scope_receiver, w->scope_receiver);
	ASSERT_EQ(l->scope_plain_flags, w->scope_plain_flags);
}

TEST(layouts_by_version)
{
	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		const struct want *w = &wants[i];
		struct v8_layout l;
		uint16_t version;

		ASSERT_OK(read_name(w->file, &l, &version));
		ASSERT(v8_knows(version / 100, version % 100));
		ASSERT_EQ(version, w->version);
		ASSERT_EQ(l.version, w->version);
		ASSERT_EQ(l.nr_bytecodes, w->nr_bytecodes);
		ASSERT_EQ(!!l.nr_bytecodes, !!l.bytecode_sizes);
		check_code(w, &l);
		check_scope(w, &l);
	}
}

/* Since 13.6 functions have a number in place of their code; what Maglev's code notes is read
 * since 12.9. */
TEST(what_only_some_versions_have)
{
	struct v8_layout l;
	uint16_t version;

	ASSERT_OK(read_name("node22", &l, &version));
	ASSERT(!l.dispatched && !l.deopt_format && !l.wrapper_shared && !l.positions.flagged);
	ASSERT_OK(read_name("node23", &l, &version));
	ASSERT(!l.dispatched && l.deopt_format == V8_DEOPT_12_9 && l.wrapper_shared);
	ASSERT_OK(read_name("node24", &l, &version));
	ASSERT(l.dispatched && l.deopt_format == V8_DEOPT_13_6 && !l.positions.flagged);
	ASSERT_OK(read_name("node26", &l, &version));
	ASSERT(l.dispatched && l.deopt_format == V8_DEOPT_13_6 && l.positions.flagged);
	/* What exports nothing but its version has compressed pointers, and positions of calls. */
	ASSERT_OK(read_name("electron9", &l, &version));
	ASSERT(l.record.compressed && l.call_positions && l.deopt_format == V8_DEOPT_8_3);
	ASSERT_EQ(l.deopt_entries, 10);
	ASSERT_EQ(l.code_safepoints, 28);
	ASSERT(!l.positions_inside);
	ASSERT_OK(read_name("node14_5", &l, &version));
	ASSERT(!l.record.compressed && !l.call_positions && !l.deopt_format);
	ASSERT_OK(read_name("node12", &l, &version));
	ASSERT(l.positions_inside && !l.baseline_data_code);
	ASSERT_OK(read_name("node16", &l, &version));
	ASSERT(!l.positions_inside && l.baseline_data_code);
}

TEST(files_that_are_not_known)
{
	struct v8_layout l;
	uint16_t version;

	ASSERT_EQ(read_name("unknown", &l, &version), -ENOTSUP);
	ASSERT_EQ(version, 1309);
	ASSERT(!v8_knows(13, 9) && !v8_knows(7, 108));
	ASSERT_EQ(read_name("compressed", &l, &version), -ENOTSUP);
	ASSERT_EQ(read_name("incomplete", &l, &version), -ENOTSUP);
	/* A member that lies beyond what is read of an object. */
	ASSERT_EQ(read_name("far", &l, &version), -ENOTSUP);
	ASSERT_EQ(version, 1306);
	/* It exports Node-API, and does not say which V8 it has. */
	ASSERT_EQ(read_name("nameless", &l, &version), -ENOTSUP);
	ASSERT_EQ(version, 0);
}

static int read_a64(const char *name, struct v8_layout *ret)
{
	uint16_t version;
	size_t size;
	uint8_t *data = read_made(name, &size);
	int r;

	((Elf64_Ehdr *)data)->e_machine = EM_AARCH64;
	r = read_memory(data, size, ret, &version);
	free(data);
	return r;
}

/* Old versions are known on x86-64 only; later ones have the bytecodes elsewhere, and locks of
 * another size in front of what leads to WebAssembly's functions. */
TEST(other_machine)
{
	struct v8_layout l;
	uint16_t version;

	ASSERT_EQ(read_a64("node14", &l), -ENOTSUP);
	ASSERT_OK(read_a64("node20", &l));
	ASSERT_EQ(l.record.bytecodes_register, 20);
	ASSERT_EQ(l.wasm.manager_modules, 0x50);
	ASSERT_EQ(l.wasm.module_bytes, 0xc8);
	ASSERT_OK(read_name("node20", &l, &version));
	ASSERT_EQ(l.wasm.manager_modules, 0x48);
	/* Where they are not known, functions have no names. */
	ASSERT_OK(read_a64("node23", &l));
	ASSERT_EQ(l.wasm.code_size, 0);
	ASSERT_OK(read_a64("node24", &l));
	ASSERT_EQ(l.wasm.manager_modules, 0x28);
}

/* Nothing is taken of a file that ends too early. */
TEST(files_that_are_cut)
{
	size_t size;
	uint8_t *data = read_made("node24", &size);

	for (size_t cut = 64; cut < size; cut += 16) {
		struct v8_layout l = { .version = 1 };
		struct elf_file *elf;
		uint16_t version;

		if (elf_file_open_memory(data, cut, &elf))
			continue;
		if (v8_layout_read(elf, &l, &version))
			ASSERT_EQ(l.version, 1);
		else
			ASSERT_EQ(l.version, 1306);
		elf_file_free(elf);
	}
	free(data);
}
