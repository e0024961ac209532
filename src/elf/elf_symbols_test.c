// SPDX-License-Identifier: Apache-2.0
#include "elf/elf_symbols.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

#include <errno.h>
#include <link.h>
#include <lzma.h>

enum { TEXT = 0x1000, TEXT_SIZE = 0x1000 };

struct wanted_symbol {
	const char *name;
	unsigned int bind, type;
	uint64_t addr, size;
};

static struct elf_writer *writer_with_text(unsigned int *text)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);

	*text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, NULL,
				   TEXT_SIZE);
	return w;
}

static void read_image(void *image, size_t size, struct elf_symbols *ret)
{
	struct elf_file *elf;

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read(elf, ret));
	elf_file_free(elf);
	free(image); /* nothing of it is needed any longer */
}

static void read_symbols(const struct wanted_symbol *symbols, size_t nr, struct elf_symbols *ret)
{
	unsigned int text;
	struct elf_writer *w = writer_with_text(&text);
	void *image;
	size_t size;

	for (size_t i = 0; i < nr; i++)
		elf_writer_symbol(w, SHT_SYMTAB, symbols[i].name, symbols[i].bind, symbols[i].type,
				  text, symbols[i].addr, symbols[i].size);
	image = elf_writer_finish(w, &size);
	read_image(image, size, ret);
}

static const char *name_at(const struct elf_symbols *symbols, uint64_t addr)
{
	const struct elf_symbol *symbol = elf_symbols_find(symbols, addr);

	return symbol ? symbol->name : "-";
}

#define READ(symbols_, ret) read_symbols(symbols_, sizeof(symbols_) / sizeof(*(symbols_)), ret)

/* Each pair of neighbours decides by one more rule; the first is the best of all. */
TEST(of_aliases_the_choice_is_the_same_in_any_order)
{
	static const struct wanted_symbol order[] = {
		{ "foo", STB_GLOBAL, STT_FUNC, 0x1100, 16 },
		{ "goo", STB_GLOBAL, STT_FUNC, 0x1100, 16 },
		{ "food", STB_GLOBAL, STT_FUNC, 0x1100, 16 },
		{ "_f", STB_GLOBAL, STT_FUNC, 0x1100, 16 },
		{ "__f", STB_GLOBAL, STT_GNU_IFUNC, 0x1100, 16 },
		{ "f@@V1", STB_GLOBAL, STT_FUNC, 0x1100, 16 },
		{ "g", STB_GLOBAL, STT_NOTYPE, 0x1100, 16 },
		{ "h", STB_GLOBAL, STT_FUNC, 0x1100, 0 },
		{ "i", STB_WEAK, STT_FUNC, 0x1100, 16 },
		{ "j", STB_LOCAL, STT_FUNC, 0x1100, 16 },
	};
	enum { NR = sizeof(order) / sizeof(*order) };

	for (size_t best = 0; best < NR; best++) {
		for (size_t turn = 0; turn < NR - best; turn++) {
			struct wanted_symbol turned[NR];
			struct elf_symbols symbols;
			char want[8];

			for (size_t i = 0; i < NR - best; i++)
				turned[i] = order[best + (i + turn) % (NR - best)];
			read_symbols(turned, NR - best, &symbols);
			ASSERT_EQ(symbols.nr, 1);
			snprintf(want, sizeof(want), "%s", order[best].name);
			*strchrnul(want, '@') = '\0';
			ASSERT_STR(symbols.items[0].name, want);
			/* Another name's size serves, if the choice has none. */
			ASSERT_EQ(symbols.items[0].size, 16);
			elf_symbols_fini(&symbols);
		}
	}
}

static bool begins_with_f(const char *name)
{
	return *name == 'f';
}

TEST(some_of_the_functions)
{
	enum { NR = 3000 };
	static char long_name[5000];
	struct elf_symbols symbols;
	struct elf_file *elf;
	unsigned int text;
	struct elf_writer *w = writer_with_text(&text);
	char name[64], want[64];
	void *image;
	size_t size;

	memset(long_name, 'x', sizeof(long_name) - 1);
	for (unsigned i = 0; i < NR; i++) {
		/* Names of several pieces; of an address that has two, the other one is better. */
		snprintf(name, sizeof(name), "f_%u_with_a_name_that_takes_some_room@V1", i);
		elf_writer_symbol(w, SHT_SYMTAB, i % 100 ? name : long_name, STB_LOCAL, STT_FUNC,
				  text, TEXT + i, 1);
		elf_writer_symbol(w, SHT_SYMTAB, "g", STB_GLOBAL, STT_FUNC, text, TEXT + i, 1);
	}
	elf_writer_symbol(w, SHT_DYNSYM, "g_too", STB_GLOBAL, STT_FUNC, text, TEXT + NR, 1);
	elf_writer_symbol(w, SHT_DYNSYM, "f_too", STB_GLOBAL, STT_FUNC, text, TEXT + NR + 1, 1);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read_some(elf, begins_with_f, &symbols));
	elf_file_free(elf);
	free(image);
	ASSERT_EQ(symbols.nr, NR - NR / 100 + 1);
	for (unsigned i = 0; i < NR; i++) {
		snprintf(want, sizeof(want), "f_%u_with_a_name_that_takes_some_room", i);
		ASSERT_STR(name_at(&symbols, TEXT + i), i % 100 ? want : "-");
	}
	ASSERT_STR(name_at(&symbols, TEXT + NR), "-");
	ASSERT_STR(name_at(&symbols, TEXT + NR + 1), "f_too");
	elf_symbols_fini(&symbols);
}

TEST(a_variable_of_symtab)
{
	enum { NR = 20000, MAX = 4 << 20 };
	unsigned int text;
	struct elf_writer *w = writer_with_text(&text);
	struct elf_file *elf;
	char name[64];
	void *image;
	size_t size;

	/* Names of several pieces, some of which end with the one that is looked for. */
	for (unsigned i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), i % 5000 ? "variable_%u" : "%u_variable_15001", i);
		elf_writer_symbol(w, SHT_SYMTAB, name, STB_LOCAL, STT_OBJECT, text, 0x10000 + i, 1);
	}
	elf_writer_symbol(w, SHT_SYMTAB, "function", STB_LOCAL, STT_FUNC, text, TEXT, 1);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	for (unsigned i = 1; i < NR; i += 997) {
		snprintf(name, sizeof(name), "variable_%u", i);
		ASSERT_EQ(elf_symtab_object(elf, name, MAX), i % 5000 ? 0x10000 + i : 0);
	}
	ASSERT_EQ(elf_symtab_object(elf, "variable_15001", MAX), 0x10000 + 15001);
	ASSERT_EQ(elf_symtab_object(elf, "variable_19999", MAX), 0x10000 + 19999);
	ASSERT_EQ(elf_symtab_object(elf, "variable_20000", MAX), 0);
	ASSERT_EQ(elf_symtab_object(elf, "function", MAX), 0);
	ASSERT_EQ(elf_symtab_object(elf, "variable_15001", 4096), 0);
	elf_file_free(elf);
	free(image);
}

TEST(versions_are_cut_off)
{
	static const struct wanted_symbol list[] = {
		{ "memcpy@@GLIBC_2.14", STB_GLOBAL, STT_FUNC, 0x1100, 16 },
		{ "memcpy@GLIBC_2.2.5", STB_GLOBAL, STT_FUNC, 0x1200, 16 },
		{ "@V1", STB_GLOBAL, STT_FUNC, 0x1300, 16 },
	};
	struct elf_symbols symbols;

	READ(list, &symbols);
	ASSERT_STR(name_at(&symbols, 0x1100), "memcpy");
	ASSERT_STR(name_at(&symbols, 0x120f), "memcpy");
	ASSERT_STR(name_at(&symbols, 0x1300), "-");
	elf_symbols_fini(&symbols);
}

TEST(the_innermost_that_covers_is_found)
{
	static const struct wanted_symbol list[] = {
		{ "outer", STB_GLOBAL, STT_FUNC, 0x1100, 0x100 },
		{ "inner", STB_GLOBAL, STT_FUNC, 0x1140, 0x20 },
		{ "label", STB_LOCAL, STT_NOTYPE, 0x1180, 0 },
		{ "unsized", STB_GLOBAL, STT_FUNC, 0x1400, 0 },
		{ "next", STB_GLOBAL, STT_FUNC, 0x1500, 0x10 },
		{ "last", STB_GLOBAL, STT_FUNC, 0x1f00, 0 },
		{ "huge", STB_GLOBAL, STT_FUNC, 0x1300, UINT64_MAX },
	};
	struct elf_symbols symbols;

	READ(list, &symbols);
	ASSERT_STR(name_at(&symbols, 0x10ff), "-");
	ASSERT_STR(name_at(&symbols, 0x1100), "outer");
	ASSERT_STR(name_at(&symbols, 0x1140), "inner");
	ASSERT_STR(name_at(&symbols, 0x1160), "outer");
	/* A label inside of a function that says how large it is belongs to it. */
	ASSERT_STR(name_at(&symbols, 0x1180), "outer");
	ASSERT_STR(name_at(&symbols, 0x11ff), "outer");
	ASSERT_STR(name_at(&symbols, 0x1200), "-");
	ASSERT_STR(name_at(&symbols, 0x1300), "huge");
	ASSERT_STR(name_at(&symbols, 0x14ff), "unsized");
	ASSERT_STR(name_at(&symbols, 0x1510), "-");
	ASSERT_STR(name_at(&symbols, 0x1fff), "last");
	ASSERT_STR(name_at(&symbols, 0x2000), "-");
	ASSERT_STR(name_at(&symbols, UINT64_MAX), "-");
	elf_symbols_fini(&symbols);
}

TEST(only_functions_are_kept)
{
	unsigned int text, data;
	struct elf_writer *w = writer_with_text(&text);
	struct elf_symbols symbols;
	void *image;
	size_t size;

	data = elf_writer_section(w, ".data", SHT_PROGBITS, SHF_ALLOC, 0x4000, NULL, 64);
	elf_writer_symbol(w, SHT_SYMTAB, "func", STB_GLOBAL, STT_FUNC, text, 0x1000, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "assembly", STB_LOCAL, STT_NOTYPE, text, 0x1010, 0);
	elf_writer_symbol(w, SHT_SYMTAB, "ifunc", STB_GLOBAL, STT_GNU_IFUNC, text, 0x1020, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "$x", STB_LOCAL, STT_NOTYPE, text, 0x1030, 0);
	elf_writer_symbol(w, SHT_SYMTAB, "$d.7", STB_LOCAL, STT_NOTYPE, text, 0x1034, 0);
	elf_writer_symbol(w, SHT_SYMTAB, ".annobin_x", STB_LOCAL, STT_NOTYPE, text, 0x1038, 0);
	elf_writer_symbol(w, SHT_SYMTAB, "", STB_LOCAL, STT_SECTION, text, 0x1040, 0);
	elf_writer_symbol(w, SHT_SYMTAB, "object", STB_GLOBAL, STT_OBJECT, text, 0x1050, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "file.c", STB_LOCAL, STT_FILE, SHN_ABS, 0x1060, 0);
	elf_writer_symbol(w, SHT_SYMTAB, "absolute", STB_GLOBAL, STT_FUNC, SHN_ABS, 0x1070, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "puts", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0x1080, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "nowhere", STB_GLOBAL, STT_FUNC, 0x99, 0x1090, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "start", STB_GLOBAL, STT_NOTYPE, data, 0x4000, 0);
	elf_writer_symbol(w, SHT_SYMTAB, "_etext", STB_GLOBAL, STT_NOTYPE, text, 0x2000, 0);
	image = elf_writer_finish(w, &size);
	read_image(image, size, &symbols);
	ASSERT_EQ(symbols.nr, 3);
	ASSERT_STR(symbols.items[0].name, "func");
	ASSERT_STR(symbols.items[1].name, "assembly");
	ASSERT_STR(symbols.items[2].name, "ifunc");
	elf_symbols_fini(&symbols);
}

TEST(section_indices_that_do_not_fit_a_symbol)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	struct elf_symbols symbols;
	unsigned int text = 0;
	void *image;
	size_t size;

	for (unsigned int i = 0; i < 0xff20; i++)
		text = elf_writer_section(w, ".text.x", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					  0x1000 + 16 * i, NULL, 16);
	elf_writer_symbol(w, SHT_SYMTAB, "far", STB_GLOBAL, STT_NOTYPE, text, 0x1000 + 0xff1f * 16,
			  0);
	elf_writer_symbol(w, SHT_SYMTAB, "near", STB_GLOBAL, STT_FUNC, 1, 0x1000, 4);
	image = elf_writer_finish(w, &size);
	read_image(image, size, &symbols);
	ASSERT_EQ(symbols.nr, 2);
	ASSERT_STR(name_at(&symbols, 0x1000 + 0xff1f * 16 + 15), "far");
	elf_symbols_fini(&symbols);
}

TEST(dynamic_symbols_are_added_to_those_of_symtab)
{
	unsigned int text;
	struct elf_writer *w = writer_with_text(&text);
	struct elf_symbols symbols;
	void *image;
	size_t size;

	elf_writer_symbol(w, SHT_SYMTAB, "both", STB_GLOBAL, STT_FUNC, text, 0x1000, 8);
	elf_writer_symbol(w, SHT_SYMTAB, "local", STB_LOCAL, STT_FUNC, text, 0x1010, 8);
	elf_writer_symbol(w, SHT_DYNSYM, "both", STB_GLOBAL, STT_FUNC, text, 0x1000, 8);
	elf_writer_symbol(w, SHT_DYNSYM, "exported", STB_GLOBAL, STT_FUNC, text, 0x1010, 8);
	image = elf_writer_finish(w, &size);
	read_image(image, size, &symbols);
	ASSERT_EQ(symbols.nr, 2);
	ASSERT_STR(symbols.items[0].name, "both");
	ASSERT_STR(symbols.items[1].name, "exported");
	elf_symbols_fini(&symbols);
}

/* An ELF file with one local function, packed by xz. */
static uint8_t *mini_debug(size_t *ret_size)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int text = elf_writer_section(w, ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR,
					       TEXT, NULL, TEXT_SIZE);
	_cleanup_free_ uint8_t *inner = NULL;
	uint8_t *packed;
	size_t size, pos = 0;

	elf_writer_symbol(w, SHT_SYMTAB, "hidden", STB_LOCAL, STT_FUNC, text, 0x1800, 0x40);
	inner = elf_writer_finish(w, &size);
	packed = malloc(lzma_stream_buffer_bound(size));
	ASSERT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, inner, size, packed, &pos,
					  lzma_stream_buffer_bound(size)),
		  LZMA_OK);
	*ret_size = pos;
	return packed;
}

static void *image_with_mini_debug(const void *packed, size_t packed_size, size_t *ret_size)
{
	unsigned int text;
	struct elf_writer *w = writer_with_text(&text);

	if (packed)
		elf_writer_section(w, ".gnu_debugdata", SHT_PROGBITS, 0, 0, packed, packed_size);
	elf_writer_symbol(w, SHT_DYNSYM, "exported", STB_GLOBAL, STT_FUNC, text, 0x1000, 8);
	return elf_writer_finish(w, ret_size);
}

static void read_with_mini_debug(const void *packed, size_t packed_size, struct elf_symbols *ret)
{
	size_t size;
	void *image = image_with_mini_debug(packed, packed_size, &size);

	read_image(image, size, ret);
}

static uint64_t bytes_with_mini_debug(const void *packed, size_t packed_size)
{
	struct elf_file *elf;
	size_t size;
	_cleanup_free_ void *image = image_with_mini_debug(packed, packed_size, &size);
	uint64_t bytes;

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	bytes = elf_symbols_bytes(elf);
	elf_file_free(elf);
	return bytes;
}

TEST(mini_debug_info)
{
	struct elf_symbols symbols;
	size_t size;
	_cleanup_free_ uint8_t *packed = mini_debug(&size);

	read_with_mini_debug(packed, size, &symbols);
	ASSERT_EQ(symbols.nr, 2);
	ASSERT_STR(name_at(&symbols, 0x1000), "exported");
	ASSERT_STR(name_at(&symbols, 0x183f), "hidden");
	elf_symbols_fini(&symbols);
}

TEST(mini_debug_info_cut_or_corrupt_leaves_the_dynamic_symbols)
{
	size_t size;
	_cleanup_free_ uint8_t *packed = mini_debug(&size);

	for (size_t i = 0; i < size; i++) {
		struct elf_symbols symbols;

		read_with_mini_debug(packed, i, &symbols);
		ASSERT_STR(name_at(&symbols, 0x1000), "exported");
		elf_symbols_fini(&symbols);
		packed[i] ^= 0x55;
		read_with_mini_debug(packed, size, &symbols);
		ASSERT_STR(name_at(&symbols, 0x1000), "exported");
		elf_symbols_fini(&symbols);
		packed[i] ^= 0x55;
	}
}

enum { MEGABYTE = 1 << 20, BOMB_PACKED_MAX = 1 << 20 };

/* Zeros, packed. */
static uint8_t *mini_debug_bomb(size_t megabytes, size_t *ret_size)
{
	static uint8_t zeros[MEGABYTE];
	_cleanup_(lzma_end) lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *packed = malloc(BOMB_PACKED_MAX);

	ASSERT_EQ(lzma_easy_encoder(&stream, 0, LZMA_CHECK_NONE), LZMA_OK);
	stream.next_out = packed;
	stream.avail_out = BOMB_PACKED_MAX;
	for (size_t i = 0; i < megabytes; i++) {
		stream.next_in = zeros;
		stream.avail_in = sizeof(zeros);
		ASSERT_EQ(lzma_code(&stream, LZMA_RUN), LZMA_OK);
		ASSERT_EQ(stream.avail_in, 0);
	}
	ASSERT_EQ(lzma_code(&stream, LZMA_FINISH), LZMA_STREAM_END);
	*ret_size = BOMB_PACKED_MAX - stream.avail_out;
	return packed;
}

TEST(a_mini_debug_bomb_ends_at_the_limit)
{
	struct elf_symbols symbols;
	size_t size;
	_cleanup_free_ uint8_t *packed = mini_debug_bomb(ELF_MINI_DEBUG_MAX / MEGABYTE + 1, &size);

	read_with_mini_debug(packed, size, &symbols);
	ASSERT_EQ(symbols.nr, 1);
	elf_symbols_fini(&symbols);
}

/* Who decides by the size whether to read it counts what comes out. */
TEST(mini_debug_info_is_counted)
{
	size_t size, bomb_size;
	_cleanup_free_ uint8_t *packed = mini_debug(&size), *bomb = mini_debug_bomb(3, &bomb_size);
	uint64_t without = bytes_with_mini_debug(NULL, 0), honest;

	honest = bytes_with_mini_debug(packed, size);
	ASSERT(honest > without + size);
	ASSERT(honest < without + (16 << 10));
	ASSERT(bytes_with_mini_debug(bomb, bomb_size) >= 3 * MEGABYTE);
	/* Without an index nothing is unpacked. */
	packed[size - 1] ^= 1;
	ASSERT_EQ(bytes_with_mini_debug(packed, size), without);
}

/* Two streams, of which the first is read: the index at the end is that of an empty one. */
TEST(no_more_mini_debug_info_is_unpacked_than_counted)
{
	enum { EMPTY_MAX = 64 };
	struct elf_symbols symbols;
	size_t size;
	_cleanup_free_ uint8_t *packed = mini_debug(&size), *both = malloc(size + EMPTY_MAX);

	memcpy(both, packed, size);
	ASSERT_EQ(lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, NULL, 0, both, &size,
					  size + EMPTY_MAX),
		  LZMA_OK);
	ASSERT_EQ(bytes_with_mini_debug(both, size), bytes_with_mini_debug(NULL, 0) + size);
	read_with_mini_debug(both, size, &symbols);
	ASSERT_EQ(symbols.nr, 1);
	elf_symbols_fini(&symbols);
}

static void *many_symbols(size_t nr, size_t *size)
{
	unsigned int text;
	struct elf_writer *w = writer_with_text(&text);

	for (size_t i = 0; i < nr; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%zu", i);
		elf_writer_symbol(w, SHT_SYMTAB, name, STB_GLOBAL, i % 4 ? STT_OBJECT : STT_FUNC,
				  text, TEXT + nr - i, 1);
	}
	return elf_writer_finish(w, size);
}

TEST(names_that_are_not_used_are_not_kept)
{
	struct elf_symbols symbols;
	size_t size;
	void *image = many_symbols(4000, &size);

	read_image(image, size, &symbols);
	ASSERT_EQ(symbols.nr, 1000);
	for (size_t i = 0; i < symbols.nr; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%zu", 3996 - 4 * i);
		ASSERT_STR(symbols.items[i].name, name);
	}
	elf_symbols_fini(&symbols);
}

TEST(tables_cut_by_the_end_of_the_file_give_what_they_have)
{
	size_t size;
	_cleanup_free_ uint8_t *image = many_symbols(64, &size);
	Elf64_Shdr *table = elf_image_section(image, elf_image_section_index(image, ".symtab"));
	Elf64_Shdr *names = elf_image_section(image, elf_image_section_index(image, ".strtab"));
	struct elf_symbols symbols;
	struct elf_file *elf;

	table->sh_size = UINT64_MAX;
	names->sh_size = UINT64_MAX;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	ASSERT(symbols.nr >= 16);
	elf_symbols_fini(&symbols);
	elf_file_free(elf);
	names->sh_offset = UINT64_MAX;
	table->sh_offset = size - 1;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	ASSERT_EQ(symbols.nr, 0);
	ASSERT_STR(name_at(&symbols, TEXT), "-");
	elf_symbols_fini(&symbols);
	elf_file_free(elf);
}

__attribute__((noinline)) void a_function_of_this_test(void);
void a_function_of_this_test(void)
{
	__asm__ volatile("");
}

static int own_bias(struct dl_phdr_info *info, size_t size __attribute__((unused)), void *data)
{
	*(uint64_t *)data = info->dlpi_addr;
	return 1; /* the first is the executable */
}

TEST(the_functions_of_this_very_program)
{
	struct elf_symbols symbols;
	struct elf_file *elf;
	uint64_t bias = 0;

	dl_iterate_phdr(own_bias, &bias);
	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	ASSERT_STR(name_at(&symbols, (uintptr_t)a_function_of_this_test - bias),
		   "a_function_of_this_test");
	ASSERT_STR(name_at(&symbols, (uintptr_t)elf_symbols_find - bias + 1), "elf_symbols_find");
	ASSERT_STR(name_at(&symbols, (uintptr_t)own_bias - bias), "own_bias");
	for (size_t i = 1; i < symbols.nr; i++)
		ASSERT(symbols.items[i - 1].addr < symbols.items[i].addr);
	elf_symbols_fini(&symbols);
	elf_file_free(elf);
}

/* Names without a section table: by the dynamic segment, as in a memory image. */
TEST(a_shared_library_without_sections)
{
	struct elf_symbols with, without;
	struct elf_file *elf;
	size_t nr = 0, found = 0;

	if (elf_file_open("/lib/x86_64-linux-gnu/libc.so.6", &elf))
		return; /* another distribution's place */
	ASSERT_OK(elf_symbols_read(elf, &with));
	elf->nr_sections = 0;
	ASSERT_OK(elf_symbols_read(elf, &without));
	for (size_t i = 0; i < without.nr; i++) {
		const struct elf_symbol *s = elf_symbols_find(&with, without.items[i].addr);

		nr++;
		found += s && s->addr == without.items[i].addr;
	}
	ASSERT(nr > 1000);
	ASSERT_EQ(found, nr);
	ASSERT_STR(name_at(&with, elf_symbols_find(&without, without.items[nr / 2].addr)->addr),
		   without.items[nr / 2].name);
	elf_symbols_fini(&with);
	elf_symbols_fini(&without);
	elf_file_free(elf);
}

/* One function, and a GNU hash table whose only chain has so many members. */
static size_t symbols_of_chain(size_t length)
{
	enum { DATA = 0x4000, CHAIN_MAX = 8192 };
	struct {
		Elf64_Sym symbols[2];
		char strings[8];
		uint32_t hash_header[4], bucket, chain[CHAIN_MAX];
	} *data = calloc(1, sizeof(*data));
	const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { DATA } },
		{ DT_STRTAB, { DATA + offsetof(typeof(*data), strings) } },
		{ DT_STRSZ, { sizeof(data->strings) } },
		{ DT_GNU_HASH, { DATA + offsetof(typeof(*data), hash_header) } },
		{ DT_NULL, { 0 } },
	};
	unsigned int text, s;
	struct elf_writer *w = writer_with_text(&text);
	struct elf_symbols symbols;
	void *image;
	size_t size, nr;

	data->symbols[1] = (Elf64_Sym){ .st_name = 1,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = 1,
					.st_value = TEXT,
					.st_size = 8 };
	memcpy(data->strings, "\0name", 6);
	data->hash_header[0] = 1;
	data->hash_header[1] = 1;
	data->bucket = 1;
	data->chain[length - 1] = 1;
	s = elf_writer_section(w, ".data", SHT_PROGBITS, SHF_ALLOC, DATA, data, sizeof(*data));
	elf_writer_segment(w, PT_LOAD, PF_R, s, s);
	s = elf_writer_section(w, ".dynamic", SHT_PROGBITS, SHF_ALLOC, DATA + 0x10000, dynamic,
			       sizeof(dynamic));
	elf_writer_segment(w, PT_DYNAMIC, PF_R, s, s);
	elf_writer_no_section_table(w);
	free(data);
	image = elf_writer_finish(w, &size);
	read_image(image, size, &symbols);
	nr = symbols.nr;
	elf_symbols_fini(&symbols);
	return nr;
}

/* Each step is a read of the file. */
TEST(a_chain_of_a_hash_table_is_not_followed_for_ever)
{
	ASSERT_EQ(symbols_of_chain(1), 1);
	ASSERT_EQ(symbols_of_chain(100), 1);
	ASSERT_EQ(symbols_of_chain(5000), 0);
}

TEST(every_truncation_of_a_file_with_symbols)
{
	size_t size;
	_cleanup_free_ uint8_t *image = many_symbols(40, &size);

	for (size_t i = 64; i <= size; i++) {
		uint8_t *cut = malloc(i);
		struct elf_symbols symbols;
		struct elf_file *elf;

		memcpy(cut, image, i);
		ASSERT_OK(elf_file_open_memory(cut, i, &elf));
		ASSERT_OK(elf_symbols_read(elf, &symbols));
		elf_symbols_fini(&symbols);
		elf_file_free(elf);
		free(cut);
	}
}

/* Functions of code without a size, in `table`: their sizes are wanted afterwards. */
static void check_ends(uint16_t machine, uint32_t table, const void *code, size_t size,
		       const struct wanted_symbol *list, size_t nr)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       TEXT, code, size);
	struct elf_symbols symbols;
	struct elf_file *elf;
	void *image;

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	for (size_t i = 0; i < nr; i++)
		elf_writer_symbol(w, table, list[i].name, STB_GLOBAL, STT_FUNC, text, list[i].addr,
				  0);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	ASSERT_OK(elf_symbols_end(&symbols, elf));
	ASSERT_EQ(symbols.nr, nr);
	for (size_t i = 0; i < nr; i++)
		ASSERT_EQ(symbols.items[i].size, list[i].size);
	elf_symbols_fini(&symbols);
	elf_file_free(elf);
	free(image);
}

/* The size of a function that has all of this code but `behind` bytes. */
static uint64_t size_of_last(uint16_t machine, const void *code, size_t size, size_t behind)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       TEXT, code, size);
	struct elf_symbols symbols;
	struct elf_file *elf;
	uint64_t ret;
	void *image;

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	elf_writer_symbol(w, SHT_DYNSYM, "last", STB_GLOBAL, STT_FUNC, text, TEXT, size - behind);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	ASSERT_OK(elf_symbols_end(&symbols, elf));
	ASSERT_EQ(symbols.nr, 1);
	ret = symbols.items[0].size;
	elf_symbols_fini(&symbols);
	elf_file_free(elf);
	free(image);
	return ret;
}

TEST(a_system_call_at_the_end_of_all_code_is_still_the_functions)
{
	/* mov x8, #139; svc #0; nop */
	static const uint32_t a64[] = { 0xd2801168, 0xd4000001, 0xd503201f };
	/* mov $15,%eax; syscall; nop */
	static const uint8_t x86[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x90 };

	ASSERT_EQ(size_of_last(EM_AARCH64, a64, 8, 0), 9);
	ASSERT_EQ(size_of_last(EM_X86_64, x86, 7, 0), 8);
	/* What follows may be another function. */
	ASSERT_EQ(size_of_last(EM_AARCH64, a64, 12, 4), 8);
	ASSERT_EQ(size_of_last(EM_X86_64, x86, 8, 1), 7);
	/* It comes back from any other call. */
	ASSERT_EQ(size_of_last(EM_AARCH64, a64, 12, 0), 12);
	ASSERT_EQ(size_of_last(EM_X86_64, x86, 8, 0), 8);
}

TEST(functions_without_a_size_end_where_their_code_does)
{
	static const uint8_t x86[] = {
		/* sets: what it jumps to lies behind a return, padding, and a jump back to it */
		0x85, 0xff, 0x75, 0x05,	      /* 00: test %edi,%edi; jne 09 */
		0xc3, 0x0f, 0x1f, 0x40, 0x00, /* 04: ret; nopl (%rax) */
		0xeb, 0x01, 0xc3, 0xeb, 0xfd, /* 09: jmp 0c; 0b: ret; 0c: jmp 0b */
		0x31, 0xc0, 0xc3,	      /* 0e: of no name: xor %eax,%eax; ret */
		0xe8, 0xf8, 0xff, 0xff, 0xff, /* 11: calls: call 0e */
		0xff, 0xe0,		      /* 16: jmp *%rax */
		0x31, 0xff, 0x0f, 0x05, 0xf4, /* 18: of no name: thread's start */
		0x90, 0x90, 0x06, 0x06, 0x06, /* 1d: runs_on: into no instruction */
		0xeb, 0xdc,		      /* 22: jumps: jmp 00 */
	};
	static const struct wanted_symbol x86_list[] = {
		{ .name = "sets", .addr = TEXT, .size = 0x0e },
		{ .name = "calls", .addr = TEXT + 0x11, .size = 7 },
		{ .name = "runs_on", .addr = TEXT + 0x1d, .size = 2 },
		{ .name = "jumps", .addr = TEXT + 0x22, .size = 2 },
	};
	static const struct wanted_symbol with_locals[] = {
		{ .name = "sets", .addr = TEXT }, { .name = "calls", .addr = TEXT + 0x11 }
	};
	static const uint32_t a64[] = {
		0xb4000040, 0xd65f03c0, /* 00: sets: cbz x0, 08; ret */
		0x54000041, 0xd503201f, /* 08: b.ne 10; nop */
		0x17fffffd,		/* 10: b 04 */
		0xd2800000, 0xd65f03c0, /* 14: of no name */
		0x94000001, 0xd61f0000, /* 1c: calls: bl; br x0 */
		0xd4200000,		/* 24: of no name */
	};
	static const struct wanted_symbol a64_list[] = {
		{ .name = "sets", .addr = TEXT, .size = 0x14 },
		{ .name = "calls", .addr = TEXT + 0x1c, .size = 8 },
	};

	check_ends(EM_X86_64, SHT_DYNSYM, x86, sizeof(x86), x86_list, 4);
	check_ends(EM_AARCH64, SHT_DYNSYM, a64, sizeof(a64), a64_list, 2);
	/* Who names local functions means what he leaves out. */
	check_ends(EM_X86_64, SHT_SYMTAB, x86, sizeof(x86), with_locals, 2);
}

/* Code that leads nowhere, round and round, or on and on. */
TEST(the_ends_of_hostile_functions)
{
	enum { SIZE = 40 << 10, NR = 4 };
	uint8_t *code = malloc(SIZE);
	struct wanted_symbol list[NR] = {
		{ .name = "long", .addr = TEXT },
		{ .name = "back", .addr = TEXT + 0x5000 },
		{ .name = "itself", .addr = TEXT + 0x9000, .size = 2 },
		{ .name = "zeros", .addr = TEXT + 0x9ff0 },
	};

	memset(code, 0x90, SIZE);
	/* Forward once, then back in ever more passes: not all of it is found out. */
	for (size_t at = 0x5000; at < 0x5100; at += 2)
		memcpy(code + at, "\xeb\xfc", 2); /* jmp -2 */
	code[0x5001] = 0x7e;			  /* jmp +7e */
	list[1].size = 2;
	memcpy(code + 0x9000, "\xeb\xfe", 2);
	memset(code + 0x9ff0, 0x06, 16);
	check_ends(EM_X86_64, SHT_DYNSYM, code, SIZE, list, NR);
	free(code);
}

/* All but the last symbol of the table, made to share the name of the first. */
static void share_name(uint8_t *image)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header->e_shoff);

	for (unsigned int i = 0; i < header->e_shnum; i++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(image + sections[i].sh_offset);

		for (size_t j = 2; sections[i].sh_type == SHT_SYMTAB &&
				   j + 1 < sections[i].sh_size / sizeof(*symbols);
		     j++)
			symbols[j].st_name = symbols[1].st_name;
	}
}

/* A small file that has any amount of names, since they share their bytes. */
TEST(names_that_are_too_much_are_left_out_but_for_short_ones)
{
	enum { NR = 1000, LONG = 64 << 10 };
	static const char code[NR];
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       0x1000, code, sizeof(code));
	_cleanup_free_ char *name = malloc(LONG + 1);
	struct elf_symbols symbols;
	uint8_t *image;
	size_t size;

	ASSERT_PTR_NONNULL(name);
	memset(name, 'n', LONG);
	name[LONG] = '\0';
	for (size_t i = 0; i < NR; i++)
		elf_writer_symbol(w, SHT_SYMTAB,
				  i == 0       ? name
				  : i + 1 < NR ? "f"
					       : "short",
				  STB_GLOBAL, STT_FUNC, text, 0x1000 + i, 1);
	image = elf_writer_finish(w, &size);
	share_name(image);
	read_image(image, size, &symbols);
	ASSERT(symbols.left_out);
	ASSERT(symbols.nr > 10 && symbols.nr < 50);
	ASSERT_STR(name_at(&symbols, 0x1000), name);
	ASSERT_STR(name_at(&symbols, 0x1000 + NR - 1), "short");
	elf_symbols_fini(&symbols);
}
