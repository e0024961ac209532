// SPDX-License-Identifier: Apache-2.0
/*
 * A made-up library with three builtins, which exports what leads to them in each of the ways that
 * compilers have; and what is not believed.
 */
#include "elf/v8_builtins.h"

#include "elf/elf_symbols.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT = 0x1000,
	CODE = TEXT, /* of the builtins */
	GETTERS = TEXT + 0x200,
	GETTER = 0x40, /* bytes of each */
	DATA = 0x2000,
	NR = 3,
	HASHES = 24,
	TABLE_SIZE = 160,
	/* Up to V8 8.4: two hashes, the table, and the code, at a multiple of 32. */
	ONE_HASHES = 16,
	ONE_CODE = 64,
};
enum getter { CODE_IS, CODE_SIZE_IS, DATA_IS, DATA_SIZE_IS, NAME_IS, GETTERS_ };

/* Up to V8 8.4: variables. */
static const char *const exported_of_one[] = { "v8_Default_embedded_blob_",
					       "v8_Default_embedded_blob_size_" };

static const char *const exported[GETTERS_] = {
	"_ZN2v88internal23DefaultEmbeddedBlobCodeEv",
	"_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv",
	"_ZN2v88internal23DefaultEmbeddedBlobDataEv",
	"_ZN2v88internal27DefaultEmbeddedBlobDataSizeEv",
	"_ZN2v88internal8Builtins4nameENS0_7BuiltinE",
};
static const char *const builtins[NR] = { "RecordWrite", "InterpreterEntryTrampoline",
					  "LdaZeroHandler" };
static const uint32_t sizes[NR] = { 40, 70, 20 };

struct data {
	Elf64_Sym symbols[GETTERS_ + 1];
	uint32_t hash[2 + 1 + GETTERS_ + 1]; /* one bucket */
	char strings[320];
	uint8_t table[TABLE_SIZE]; /* where builtins are */
	uint32_t code_size, data_size;
	uint64_t code, places; /* pointers to the blob's two parts; is_one: `code` to all of it */
	uint64_t names[NR][3];
	char name[NR][128];
};

/* How a library is made. */
struct made {
	uint32_t stride, alignment;
	bool by_pointer, fixed, with_frame; /* how its functions tell */
	bool is_one;			    /* the table lies before the code; variables tell */
};

/* What of it is wrong. */
struct wrong {
	uint32_t place, size, code_size; /* are so much more */
	uint32_t relocation;		 /* is of that type */
	uint16_t machine;
	const char *name;      /* of the first builtin */
	const char *code;      /* of the first function, instead of what it has */
	bool is_data, nothing; /* the code is no code; no name */
};

static uint64_t data_at(size_t offset)
{
	return DATA + offset;
}

static uint32_t place(const struct made *m, size_t builtin)
{
	uint32_t at = 0;

	for (size_t i = 0; i < builtin; i++)
		at = (at + sizes[i] + m->alignment) / m->alignment * m->alignment;
	return at;
}

static void put(uint8_t **code, const void *bytes, size_t size)
{
	memcpy(*code, bytes, size);
	*code += size;
}

/* An instruction whose last four bytes say how far behind it `addr` is; `start` has address TEXT.
 */
static void put_relative(uint8_t **code, const uint8_t *start, const void *bytes, size_t size,
			 uint64_t addr)
{
	int32_t distance = (int32_t)(addr - (TEXT + (uint64_t)(*code - start) + size + 4));

	put(code, bytes, size);
	put(code, &distance, sizeof(distance));
}

static void put_immediate(uint8_t **code, const void *bytes, size_t size, uint64_t value)
{
	uint32_t immediate = (uint32_t)value;

	put(code, bytes, size);
	put(code, &immediate, sizeof(immediate));
}

/* A function that tells an address, which the word at `pointer` has, too. */
static void put_address(const struct made *m, uint8_t *text, uint8_t **code, uint64_t addr,
			uint64_t pointer)
{
	if (m->fixed) {
		put_immediate(code, "\xb8", 1, addr);
	} else if (m->by_pointer) {
		put_relative(code, text, "\x48\x8d\x05", 3, pointer);
		put(code, "\x48\x8b\x00", 3);
	} else {
		put_relative(code, text, "\x48\x8d\x05", 3, addr);
	}
}

static void put_getter(const struct made *m, enum getter getter, uint8_t *text)
{
	uint8_t *code = text + (GETTERS - TEXT) + getter * GETTER;

	if (m->with_frame)
		put(&code, "\x55\x48\x89\xe5", 4);
	switch (getter) {
	case CODE_IS:
		put_address(m, text, &code, CODE, data_at(offsetof(struct data, code)));
		break;
	case DATA_IS:
		put_address(m, text, &code, data_at(offsetof(struct data, table)),
			    data_at(offsetof(struct data, places)));
		break;
	case CODE_SIZE_IS:
		put_relative(&code, text, "\x8b\x05", 2, data_at(offsetof(struct data, code_size)));
		break;
	case DATA_SIZE_IS:
		if (m->fixed)
			put_immediate(&code, "\xb8", 1, HASHES + NR * m->stride);
		else
			put_relative(&code, text, "\x8b\x05", 2,
				     data_at(offsetof(struct data, data_size)));
		break;
	default:
		put(&code, "\x48\x63\xff\x48\x8d\x3c\x7f", 7);
		if (m->fixed) {
			put_immediate(&code, "\x48\x8b\x04\xfd", 4,
				      data_at(offsetof(struct data, names)));
			break;
		}
		put_relative(&code, text, "\x48\x8d\x05", 3, data_at(offsetof(struct data, names)));
		put(&code, "\x48\x8b\x04\xf8", 4);
	}
	if (m->with_frame)
		put(&code, "\x5d", 1);
	put(&code, "\xc3", 1);
}

static void fill_symbols(const struct made *m, struct data *d)
{
	const uint64_t variables[] = { data_at(offsetof(struct data, code)),
				       data_at(offsetof(struct data, code_size)) };
	size_t nr = m->is_one ? 2 : GETTERS_, at = 1;

	d->hash[0] = 1;
	d->hash[1] = (uint32_t)nr + 1;
	d->hash[2] = 1;
	for (size_t i = 0; i < nr; i++) {
		const char *name = m->is_one ? exported_of_one[i] : exported[i];

		d->symbols[i + 1] =
			(Elf64_Sym){ .st_name = (uint32_t)at,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = 1,
				     .st_value = m->is_one ? variables[i] : GETTERS + i * GETTER,
				     .st_size = GETTER };
		d->hash[3 + i + 1] = i + 1 < nr ? (uint32_t)i + 2 : 0;
		memcpy(d->strings + at, name, strlen(name));
		at += strlen(name) + 1;
	}
	ASSERT(at <= sizeof(d->strings));
}

static void fill_tables(const struct made *m, const struct wrong *w, struct data *d, uint8_t *text)
{
	uint8_t *table = m->is_one ? text + ONE_HASHES : d->table + HASHES;

	for (size_t i = 0; i < NR; i++) {
		uint32_t entry[] = { place(m, i), sizes[i] };
		const char *name = builtins[i];

		entry[0] += i == 1 ? w->place : 0;
		entry[1] += i == 1 ? w->size : 0;
		memcpy(table + i * m->stride, entry, sizeof(entry));
		if (i == 2 && w->nothing)
			name = "";
		else if (!i && w->name)
			name = w->name;
		memcpy(d->name[i], name, strlen(name) + 1);
		if (m->fixed)
			d->names[i][0] = data_at(offsetof(struct data, name[i]));
	}
	d->code_size = (m->is_one ? ONE_CODE : 0) + place(m, NR) + w->code_size;
	d->data_size = HASHES + NR * m->stride;
	if (m->fixed)
		return;
	d->names[0][0] = 1; /* what is there before ld.so was is not looked at */
}

/* What ld.so does: nothing, in a program at a fixed address. */
static size_t fill_relocations(const struct made *m, const struct wrong *w, Elf64_Rela *to)
{
	uint32_t type = w->relocation ?: R_X86_64_RELATIVE;
	size_t nr = 0;

	if (m->fixed)
		return 0;
	for (size_t i = 0; i < NR; i++)
		to[nr++] = (Elf64_Rela){ data_at(offsetof(struct data, names[i])), type,
					 (int64_t)data_at(offsetof(struct data, name[i])) };
	to[nr++] = (Elf64_Rela){ data_at(offsetof(struct data, code)), type, CODE };
	to[nr++] = (Elf64_Rela){ data_at(offsetof(struct data, places)), type,
				 (int64_t)data_at(offsetof(struct data, table)) };
	return nr;
}

static uint8_t *make(const struct made *m, const struct wrong *w, size_t *size)
{
	uint8_t text[GETTERS - TEXT + GETTERS_ * GETTER];
	const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { data_at(offsetof(struct data, symbols)) } },
		{ DT_STRTAB, { data_at(offsetof(struct data, strings)) } },
		{ DT_STRSZ, { sizeof(((struct data *)NULL)->strings) } },
		{ DT_HASH, { data_at(offsetof(struct data, hash)) } },
		{ DT_NULL, { 0 } },
	};
	struct elf_writer *writer =
		elf_writer_new(m->fixed ? ET_EXEC : ET_DYN, w->machine ?: EM_X86_64);
	struct data d = { 0 };
	Elf64_Rela relocations[NR + 2];
	size_t nr = fill_relocations(m, w, relocations);
	unsigned int s;

	memset(text, 0xcc, sizeof(text));
	for (enum getter g = CODE_IS; g < GETTERS_ && !m->is_one; g++)
		put_getter(m, g, text);
	if (w->code)
		memcpy(text + (GETTERS - TEXT), w->code, strlen(w->code));
	fill_symbols(m, &d);
	fill_tables(m, w, &d, text);
	s = elf_writer_section(writer, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, text,
			       sizeof(text));
	elf_writer_segment(writer, PT_LOAD, w->is_data ? PF_R : PF_R | PF_X, s, s);
	s = elf_writer_section(writer, ".data", SHT_PROGBITS, SHF_ALLOC, DATA, &d, sizeof(d));
	elf_writer_segment(writer, PT_LOAD, PF_R, s, s);
	s = elf_writer_section(writer, ".dynamic", SHT_PROGBITS, SHF_ALLOC, DATA + 0x1000, dynamic,
			       sizeof(dynamic));
	elf_writer_segment(writer, PT_DYNAMIC, PF_R, s, s);
	if (nr)
		elf_writer_section(writer, ".rela.dyn", SHT_RELA, 0, 0, relocations,
				   nr * sizeof(*relocations));
	return elf_writer_finish(writer, size);
}

static int read_image(const void *image, size_t size, struct v8_builtins *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	int r = elf_file_open_memory(image, size, &elf);

	return r ? r : v8_builtins_read(elf, ret);
}

static const struct made library = { .stride = 28, .alignment = 64, .by_pointer = true };
static const struct made of_one = { .stride = 8, .alignment = 32, .is_one = true };

static int read_wrong(const struct made *m, struct wrong w)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make(m, &w, &size);
	struct v8_builtins found = { 0 };
	int r = read_image(image, size, &found);

	v8_builtins_fini(&found);
	return r;
}

static void check_found(const struct made *m)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make(m, &(struct wrong){ 0 }, &size);
	_cleanup_(v8_builtins_fini) struct v8_builtins found = { 0 };

	ASSERT_OK(read_image(image, size, &found));
	ASSERT_EQ(found.nr, NR);
	for (size_t i = 0; i < NR; i++) {
		const char *name = found.names + found.items[i].name;

		ASSERT_EQ(found.items[i].addr, CODE + (m->is_one ? ONE_CODE : 0) + place(m, i));
		ASSERT_EQ(found.items[i].size, sizes[i]);
		ASSERT(!strncmp(name, "Builtins_", 9));
		ASSERT_STR(name + 9, builtins[i]);
	}
}

TEST(builtins_of_each_form_of_the_tables_are_found)
{
	static const struct made forms[] = {
		{ .stride = 16, .alignment = 32, .fixed = true },
		{ .stride = 28, .alignment = 64, .by_pointer = true },
		{ .stride = 32, .alignment = 64 },
		{ .stride = 32, .alignment = 64, .fixed = true },
		{ .stride = 12, .alignment = 64 },
		{ .stride = 12, .alignment = 64, .fixed = true, .with_frame = true },
		{ .stride = 12, .alignment = 64, .by_pointer = true, .with_frame = true },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		check_found(&forms[i]);
	check_found(&of_one);
}

TEST(builtins_are_symbols_of_a_stripped_file)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make(&library, &(struct wrong){ 0 }, &size);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(elf_symbols_fini) struct elf_symbols symbols = { 0 };
	const struct elf_symbol *s;

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	ASSERT_EQ(symbols.nr, NR + GETTERS_);
	s = elf_symbols_find(&symbols, CODE + place(&library, 1) + sizes[1] - 1);
	ASSERT_PTR_NONNULL(s);
	ASSERT_STR(s->name, "Builtins_InterpreterEntryTrampoline");
	ASSERT_EQ(s->addr, CODE + place(&library, 1));
	ASSERT_EQ(s->size, sizes[1]);
	/* What is between two has no name. */
	ASSERT_PTR_NULL(elf_symbols_find(&symbols, CODE + place(&library, 1) + sizes[1]));
}

TEST(tables_that_contradict_each_other_are_not_believed)
{
	ASSERT_OK(read_wrong(&library, (struct wrong){ 0 }));
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .place = 64 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .place = 1 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .size = 128 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .size = -sizes[1] }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .size = UINT32_MAX - 64 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .code_size = 64 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .code_size = 1 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .code_size = -32 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .code_size = 1 << 20 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .is_data = true }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .machine = EM_AARCH64 }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .relocation = R_X86_64_64 }), ENOENT);
}

TEST(a_table_and_code_in_one_that_contradict_each_other_are_not_believed)
{
	ASSERT_OK(read_wrong(&of_one, (struct wrong){ 0 }));
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .place = 32 }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .size = 128 }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .code_size = 32 }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .code_size = -32 }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .code_size = 1 << 20 }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .is_data = true }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .name = builtins[1] }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .name = "Record Write" }), ENOENT);
	ASSERT_ERR(read_wrong(&of_one, (struct wrong){ .relocation = R_X86_64_64 }), ENOENT);
}

TEST(names_that_are_none_are_not_believed)
{
	char longest[128];

	memset(longest, 'a', sizeof(longest));
	longest[127] = '\0';
	ASSERT_OK(read_wrong(&library, (struct wrong){ .name = longest }));
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .name = "Record Write" }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .name = "a@b" }), ENOENT);
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .nothing = true }), ENOENT);
	/* There is one entry of the interpreter. */
	ASSERT_ERR(read_wrong(&library, (struct wrong){ .name = builtins[1] }), ENOENT);
}

TEST(functions_that_do_more_than_tell_are_not_believed)
{
	/* call, pop %rax; xor %eax, %eax; mov (%rax), %rax of nothing; ret; jmp */
	static const char *const codes[] = { "\xe8\x01\x01\x01\x01\x58\xc3", "\x31\xc0\xc3",
					     "\x48\x8b\xc0\xc3", "\xc3", "\xeb\x01\xc3" };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		ASSERT_ERR(read_wrong(&library, (struct wrong){ .code = codes[i] }), ENOENT);
}

static void read_copy(const uint8_t *image, size_t size)
{
	uint8_t *copy = malloc(size);
	struct v8_builtins found = { 0 };

	memcpy(copy, image, size);
	if (!read_image(copy, size, &found))
		for (size_t i = 0; i < found.nr; i++)
			ASSERT(found.items[i].name + 9 < found.names_size);
	v8_builtins_fini(&found);
	free(copy);
}

static void change_each_word(const struct made *m)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make(m, &(struct wrong){ 0 }, &size);

	for (size_t i = 64; i < size; i += 3)
		read_copy(image, i);
	for (size_t i = 0; i + 4 <= size; i += 4) {
		static const uint8_t nothing[4];

		if (!memcmp(image + i, nothing, 4))
			continue;
		for (size_t k = 0; k < 4; k++)
			image[i + k] ^= 0xff;
		read_copy(image, size);
		for (size_t k = 0; k < 4; k++)
			image[i + k] ^= 0xff;
	}
}

TEST(every_truncation_and_every_changed_word)
{
	change_each_word(&library);
	change_each_word(&of_one);
}
