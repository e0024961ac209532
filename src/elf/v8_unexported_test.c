// SPDX-License-Identifier: Apache-2.0
/*
 * A made-up program with three builtins, Node-API, and V8's version in its data, whose names and
 * code nothing exported leads to; and what is not believed.
 */
#include "elf/v8_unexported.h"

#include "elf/v8_builtins.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	RODATA = 0x1000,
	TEXT = 0x3000,
	LOADS = TEXT + 0x300, /* behind the builtins' code */
	DATA = 0x4000,
	NR = 3,
	NR_BYTECODES = 20,
	HASHES = 24,
	RELOCATIONS = NR + 3,
};

static const char *const builtins[NR] = { "RecordWrite", "InterpreterEntryTrampoline",
					  "LdaZeroHandler" };
static const uint32_t sizes[NR] = { 40, 70, 20 };

struct rodata {
	Elf64_Sym symbols[2];
	uint32_t hash[2 + 1 + 2]; /* one bucket */
	uint32_t places[HASHES / 4 + 3 * NR];
	char strings[32];
	char padding;
	char name[NR][128];
	char embedder[64]; /* NUL terminated and so far away from the end */
	char version[64];
	uint8_t bytecodes[3 * NR_BYTECODES + 8];
	char rest[256];
};

struct data {
	int32_t before[3];
	int32_t numbers[3];
	uint64_t embedder;
	uint64_t rest;
	uint64_t names[NR][3];
	uint64_t behind[3]; /* has a pointer where a kind would be */
};

/* What is wrong with it. */
struct wrong {
	uint32_t place, relocation, gap, bytecode;
	int32_t number;
	const char *name, *export, *version, *embedder;
	bool apart, twice, kind, swapped;
};

static uint32_t place(size_t builtin)
{
	static const uint32_t places[NR + 1] = { 0, 64, 192, 256 };

	return places[builtin];
}

static void put_text(char *to, const char *text)
{
	memcpy(to, text, strlen(text) + 1);
}

static void put_lea(uint8_t *text, uint64_t at, uint8_t reg, uint64_t to)
{
	const uint8_t lea[] = { reg & 8 ? 0x4c : 0x48, 0x8d, (uint8_t)(5 | (reg & 7) << 3) };
	int32_t distance = (int32_t)(to - at - 7);

	memcpy(text + (at - TEXT), lea, sizeof(lea));
	memcpy(text + (at - TEXT) + sizeof(lea), &distance, sizeof(distance));
}

static void fill_rodata(const struct wrong *w, struct rodata *r)
{
	static const uint8_t first[3][11] = { { 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6 },
					      { 1, 1, 1, 1, 1, 3, 5, 7, 9, 7, 9 },
					      { 1, 1, 1, 1, 1, 5, 9, 13, 17, 11, 15 } };

	r->symbols[1] = (Elf64_Sym){ .st_name = 1,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = 1,
				     .st_value = TEXT };
	memcpy(r->hash, (uint32_t[]){ 1, 2, 1, 0, 0 }, sizeof(r->hash));
	put_text(r->strings + 1, w->export ?: "napi_create_function");
	for (size_t i = 0; i < NR; i++) {
		r->places[HASHES / 4 + 3 * i] = place(i) + (i == 1 ? w->place : 0);
		r->places[HASHES / 4 + 3 * i + 1] = sizes[i];
		put_text(r->name[i], i || !w->name ? builtins[i] : w->name);
	}
	put_text(r->embedder, w->embedder ?: "-rusty");
	put_text(r->version, w->version ?: "15.0.245.2-rusty");
	for (size_t i = 0; i < 3; i++)
		memcpy(r->bytecodes + i * NR_BYTECODES, first[i], sizeof(first[i]));
	r->bytecodes[2 * NR_BYTECODES + 10] += (uint8_t)w->bytecode;
}

static size_t fill_relocations(const struct wrong *w, Elf64_Rela *to)
{
	uint32_t type = w->relocation ?: R_X86_64_RELATIVE;
	size_t nr = 0;

	for (size_t i = 0; i < NR; i++)
		to[nr++] = (Elf64_Rela){ DATA + offsetof(struct data, names[i]), type,
					 RODATA + (int64_t)offsetof(struct rodata, name[i]) };
	to[nr++] = (Elf64_Rela){ DATA + offsetof(struct data, behind[1]), type, TEXT };
	to[nr++] = (Elf64_Rela){ DATA + offsetof(struct data, embedder), type,
				 RODATA + offsetof(struct rodata, embedder) };
	if (w->twice)
		to[nr++] = (Elf64_Rela){ DATA + offsetof(struct data, rest), type,
					 RODATA + (int64_t)offsetof(struct rodata, name[1]) };
	return nr;
}

static uint8_t *make(const struct wrong *w, size_t *size)
{
	const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { RODATA + offsetof(struct rodata, symbols) } },
		{ DT_STRTAB, { RODATA + offsetof(struct rodata, strings) } },
		{ DT_STRSZ, { sizeof(((struct rodata *)NULL)->strings) } },
		{ DT_HASH, { RODATA + offsetof(struct rodata, hash) } },
		{ DT_NULL, { 0 } },
	};
	struct elf_writer *writer = elf_writer_new(ET_DYN, EM_X86_64);
	struct rodata rodata = { 0 };
	struct data data = { .numbers = { 15, 245, 2 + w->number } };
	uint64_t places = RODATA + offsetof(struct rodata, places);
	Elf64_Rela relocations[RELOCATIONS];
	uint8_t text[0x400];
	size_t nr = fill_relocations(w, relocations);
	unsigned int s;

	memset(text, 0xcc, sizeof(text));
	memset(text + place(0) + sizes[0], 0xcc - (int)w->gap, 1);
	put_lea(text, LOADS, 13, w->swapped ? TEXT : places);
	put_lea(text, LOADS + 7 + w->apart, 12, w->swapped ? places : TEXT);
	fill_rodata(w, &rodata);
	data.names[0][1] = w->kind ? 99 : 0;
	s = elf_writer_section(writer, ".rodata", SHT_PROGBITS, SHF_ALLOC, RODATA, &rodata,
			       sizeof(rodata));
	elf_writer_segment(writer, PT_LOAD, PF_R, s, s);
	s = elf_writer_section(writer, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, text,
			       sizeof(text));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, s, s);
	s = elf_writer_section(writer, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, &data,
			       sizeof(data));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_W, s, s);
	s = elf_writer_section(writer, ".dynamic", SHT_PROGBITS, SHF_ALLOC, DATA + 0x1000, dynamic,
			       sizeof(dynamic));
	elf_writer_segment(writer, PT_DYNAMIC, PF_R, s, s);
	elf_writer_section(writer, ".rela.dyn", SHT_RELA, 0, 0, relocations,
			   nr * sizeof(*relocations));
	return elf_writer_finish(writer, size);
}

static int read_blob(struct wrong w, struct v8_blob *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	size_t size;
	_cleanup_free_ uint8_t *image = make(&w, &size);
	struct elf_dynamic dynamic;

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_dynamic_read(elf, &dynamic));
	return v8_unexported_blob(&dynamic, ret);
}

static uint16_t read_version(struct wrong w)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	size_t size;
	_cleanup_free_ uint8_t *image = make(&w, &size);

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	return v8_unexported_version(elf);
}

static uint64_t read_sizes(struct wrong w, size_t nr)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	size_t size;
	_cleanup_free_ uint8_t *image = make(&w, &size);

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	return v8_unexported_bytecode_sizes(elf, nr);
}

TEST(both_tables_are_found)
{
	struct v8_blob blob = { 0 };

	for (int swapped = 0; swapped < 2; swapped++) {
		ASSERT_OK(read_blob((struct wrong){ .swapped = swapped }, &blob));
		ASSERT_EQ(blob.nr, NR);
		ASSERT_EQ(blob.code, TEXT);
		ASSERT_EQ(blob.code_size, place(NR));
		ASSERT_EQ(blob.data, RODATA + offsetof(struct rodata, places));
		ASSERT_EQ(blob.names, DATA + offsetof(struct data, names));
	}
}

TEST(builtins_have_their_names)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(v8_builtins_fini) struct v8_builtins found = { 0 };
	size_t size;
	_cleanup_free_ uint8_t *image = make(&(struct wrong){ 0 }, &size);

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(v8_builtins_read(elf, &found));
	ASSERT_EQ(found.nr, NR);
	for (size_t i = 0; i < NR; i++) {
		ASSERT_EQ(found.items[i].addr, TEXT + place(i));
		ASSERT_EQ(found.items[i].size, sizes[i]);
		ASSERT_STR(found.names + found.items[i].name + 9, builtins[i]);
	}
}

TEST(what_does_not_hold_together_is_not_believed)
{
	static const struct wrong wrongs[] = {
		{ .place = 64 },
		{ .gap = 1 },
		{ .relocation = R_X86_64_64 },
		{ .name = "Record Write" },
		{ .kind = true }, /* one builtin fewer has a name than has a place */
		{ .export = "napi_create_functions" },
		{ .apart = true },
		{ .twice = true },
	};
	struct v8_blob blob;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++)
		ASSERT_ERR(read_blob(wrongs[i], &blob), ENOENT);
}

TEST(versions)
{
	ASSERT_EQ(read_version((struct wrong){ 0 }), 1500);
	ASSERT_EQ(read_version((struct wrong){ .embedder = "", .version = "15.0.245.2" }), 1500);
	ASSERT_EQ(read_version((struct wrong){ .number = 1 }), 0);
	ASSERT_EQ(read_version((struct wrong){ .embedder = "-other" }), 0);
	ASSERT_EQ(read_version((struct wrong){ .embedder = "rusty" }), 0);
	ASSERT_EQ(read_version((struct wrong){ .version = "15.0.246.2-rusty" }), 0);
	ASSERT_EQ(read_version((struct wrong){ .relocation = R_X86_64_64 }), 0);
}

TEST(sizes_of_bytecodes)
{
	ASSERT_EQ(read_sizes((struct wrong){ 0 }, NR_BYTECODES),
		  RODATA + offsetof(struct rodata, bytecodes));
	ASSERT_EQ(read_sizes((struct wrong){ 0 }, NR_BYTECODES + 1), 0);
	ASSERT_EQ(read_sizes((struct wrong){ .bytecode = 1 }, NR_BYTECODES), 0);
}

static void read_copy(const uint8_t *image, size_t size)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ uint8_t *copy = malloc(size);
	struct elf_dynamic dynamic;
	struct v8_blob blob = { 0 };

	memcpy(copy, image, size);
	if (elf_file_open_memory(copy, size, &elf) || elf_dynamic_read(elf, &dynamic))
		return;
	if (!v8_unexported_blob(&dynamic, &blob))
		ASSERT(blob.nr && blob.code_size);
	ASSERT(v8_unexported_version(elf) <= 1500);
	ASSERT(v8_unexported_bytecode_sizes(elf, NR_BYTECODES) < DATA);
}

TEST(every_truncation_and_many_changed_words)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make(&(struct wrong){ 0 }, &size);

	for (size_t i = 64; i < size; i += 97)
		read_copy(image, i);
	for (size_t i = 0; i + 4 <= size; i += 52) {
		uint32_t word;

		memcpy(&word, image + i, sizeof(word));
		memset(image + i, 0xff, sizeof(word));
		read_copy(image, size);
		memcpy(image + i, &word, sizeof(word));
	}
}
