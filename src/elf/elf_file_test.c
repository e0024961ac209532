// SPDX-License-Identifier: Apache-2.0
#include "elf/elf_file.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

static const uint8_t id[20] = { 0xca, 0xfe, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

/* .text at 0x1000 (executable segment), .data at 0x5010, a build-id. */
static uint8_t *simple_image(size_t *size)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	uint8_t code[256];
	unsigned int text, data;

	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)i;
	text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code,
				  sizeof(code));
	data = elf_writer_section(w, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x5010, code,
				  64);
	elf_writer_section(w, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0x5050, NULL, 4096);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_W, data, data + 1);
	elf_writer_build_id(w, id, sizeof(id));
	return elf_writer_finish(w, size);
}

TEST(reads_sections_segments_and_contents)
{
	struct elf_file *elf;
	const struct elf_section *text;
	struct elf_data data;
	uint8_t buf[16];
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_EQ(elf->machine, EM_X86_64);
	ASSERT_EQ(elf->nr_segments, 3);
	text = elf_file_section(elf, ".text");
	ASSERT_PTR_NONNULL(text);
	ASSERT_EQ(text->addr, 0x1000);
	ASSERT_OK(elf_file_section_data(elf, text, 256, &data));
	ASSERT_EQ(data.size, 256);
	ASSERT_EQ(data.data[255], 255);
	ASSERT_EQ(data.data[256], 0);
	free(data.data);
	ASSERT_ERR(elf_file_section_data(elf, text, 255, &data), EFBIG);
	ASSERT_ERR(elf_file_section_data(elf, elf_file_section(elf, ".bss"), 1 << 20, &data),
		   ENOENT);
	ASSERT_PTR_NULL(elf_file_section(elf, ".nothing"));
	ASSERT_OK(elf_file_read_vaddr(elf, 0x10f0, buf, 16));
	ASSERT_EQ(buf[15], 255);
	ASSERT_ERR(elf_file_read_vaddr(elf, 0x10f1, buf, 16), EFAULT);
	ASSERT_ERR(elf_file_read_vaddr(elf, 0xfff, buf, 1), EFAULT);
	ASSERT_ERR(elf_file_read_vaddr(elf, 0x5050, buf, 1), EFAULT);
	ASSERT_ERR(elf_file_read(elf, size, buf, 1), ENODATA);
	ASSERT_ERR(elf_file_read(elf, UINT64_MAX, buf, 2), ENODATA);
	ASSERT_PTR_NONNULL(elf_file_segment(elf, PT_NOTE));
	ASSERT_PTR_NULL(elf_file_segment(elf, PT_DYNAMIC));
	elf_file_free(elf);
}

TEST(reads_the_same_from_a_descriptor)
{
	struct elf_file *elf;
	uint8_t got[ELF_BUILD_ID_MAX];
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);
	int fd = elf_image_fd(image, size);

	ASSERT_OK(elf_file_open_fd(fd, &elf));
	ASSERT_EQ(elf_file_build_id(elf, got), sizeof(id));
	ASSERT(!memcmp(got, id, sizeof(id)));
	elf_file_free(elf);
	ASSERT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(a_descriptor_stays_the_callers_on_failure)
{
	struct elf_file *elf = NULL;
	int fd = elf_image_fd("not an ELF file", 15);

	ASSERT_ERR(elf_file_open_fd(fd, &elf), ENOEXEC);
	ASSERT_PTR_NULL(elf);
	ASSERT_OK(fcntl(fd, F_GETFD));
	close(fd);
	ASSERT_ERR(elf_file_open("/nonexistent", &elf), ENOENT);
	ASSERT_ERR(elf_file_open("/dev/null", &elf), ENOEXEC);
	ASSERT_ERR(elf_file_open("/tmp", &elf), ENOEXEC);
}

TEST(a_file_that_shrinks_while_open_is_no_crash)
{
	struct elf_file *elf;
	uint8_t byte;
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);
	int fd = elf_image_fd(image, size);

	ASSERT_OK(elf_file_open_fd(fd, &elf));
	ASSERT_OK(ftruncate(fd, 100));
	ASSERT_ERR(elf_file_read(elf, 100, &byte, 1), ENODATA);
	ASSERT_ERR(elf_file_read_vaddr(elf, 0x1000, &byte, 1), EFAULT);
	elf_file_free(elf);
}

TEST(other_classes_and_byte_orders_are_recognised)
{
	struct elf_file *elf;
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);

	image[EI_CLASS] = ELFCLASS32;
	ASSERT_ERR(elf_file_open_memory(image, size, &elf), ENOTSUP);
	ASSERT_ERR(elf_file_open_memory(image, 52, &elf), ENOTSUP);
	image[EI_CLASS] = ELFCLASS64;
	image[EI_DATA] = ELFDATA2MSB;
	ASSERT_ERR(elf_file_open_memory(image, size, &elf), ENOTSUP);
	image[EI_DATA] = 3;
	ASSERT_ERR(elf_file_open_memory(image, size, &elf), ENOEXEC);
	ASSERT_ERR(elf_file_open_memory("\177ELF", 4, &elf), ENOEXEC);
	ASSERT_ERR(elf_file_open_memory(NULL, 0, &elf), ENOEXEC);
}

TEST(an_absurd_section_table_is_dropped_and_segments_serve)
{
	static const struct {
		uint64_t offset;
		uint16_t nr, entry;
	} bad[] = {
		{ UINT64_MAX, 5, 64 }, { 1 << 20, 5, 64 },	   { 64, 0xfeff, 64 },
		{ 64, 5, 40 },	       { UINT64_MAX - 63, 1, 64 },
	};
	uint8_t got[ELF_BUILD_ID_MAX], byte;
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct elf_file *elf;

		elf_image_header(image)->e_shoff = bad[i].offset;
		elf_image_header(image)->e_shnum = bad[i].nr;
		elf_image_header(image)->e_shentsize = bad[i].entry;
		ASSERT_OK(elf_file_open_memory(image, size, &elf));
		ASSERT_EQ(elf->nr_sections, 0);
		ASSERT_EQ(elf->nr_segments, 3);
		ASSERT_OK(elf_file_read_vaddr(elf, 0x1000, &byte, 1));
		ASSERT_EQ(elf_file_build_id(elf, got), sizeof(id));
		elf_file_free(elf);
	}
}

TEST(sections_serve_without_segments)
{
	struct elf_file *elf;
	uint8_t got[ELF_BUILD_ID_MAX];
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);

	elf_image_header(image)->e_phoff = size - 8;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_EQ(elf->nr_segments, 0);
	ASSERT_PTR_NONNULL(elf_file_section(elf, ".text"));
	ASSERT_EQ(elf_file_build_id(elf, got), sizeof(id));
	elf_file_free(elf);
}

TEST(names_out_of_bounds_are_empty)
{
	struct elf_file *elf;
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);
	unsigned int names = elf_image_section_index(image, ".shstrtab");

	elf_image_section(image, 1)->sh_name = 0xffffffff;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_STR(elf->sections[1].name, "");
	ASSERT_PTR_NONNULL(elf_file_section(elf, ".data"));
	elf_file_free(elf);

	elf_image_section(image, names)->sh_size = UINT64_MAX;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_STR(elf->sections[2].name, "");
	ASSERT(elf->nr_sections > 3);
	elf_file_free(elf);
}

TEST(contents_out_of_bounds_are_no_data)
{
	struct elf_file *elf;
	struct elf_data data = { 0 };
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);
	Elf64_Shdr *text = elf_image_section(image, 1);

	text->sh_size = size;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(elf_file_section_data(elf, &elf->sections[1], SIZE_MAX, &data), ENODATA);
	elf_file_free(elf);
	text->sh_offset = UINT64_MAX - 1;
	text->sh_size = 16;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(elf_file_section_data(elf, &elf->sections[1], SIZE_MAX, &data), ENODATA);
	ASSERT_PTR_NULL(data.data);
	elf_file_free(elf);
}

TEST(more_sections_than_the_header_can_count)
{
	struct elf_writer *w = elf_writer_new(ET_REL, EM_AARCH64);
	struct elf_file *elf;
	size_t size;
	_cleanup_free_ void *image = NULL;

	for (unsigned int i = 0; i < 0xff10; i++)
		elf_writer_section(w, i == 0xff0f ? ".last" : ".text", SHT_PROGBITS, 0, 0, "x", 1);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_EQ(elf->nr_sections, 0xff12);
	ASSERT_EQ(elf_file_section(elf, ".last") - elf->sections, 0xff10);
	elf_file_free(elf);
	/* Section 0 may lie about it. */
	elf_image_section(image, 0)->sh_size = UINT64_MAX / 64 + 2;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_EQ(elf->nr_sections, 0);
	elf_file_free(elf);
}

TEST(build_ids_malformed_or_absent)
{
	static const uint8_t long_id[ELF_BUILD_ID_MAX + 1] = { 1 };
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	uint8_t got[ELF_BUILD_ID_MAX];
	struct elf_file *elf;
	size_t size;
	_cleanup_free_ void *image = NULL, *second = NULL;

	elf_writer_note(w, ".note.a", "Go", NT_GNU_BUILD_ID, "go's own", 8);
	elf_writer_note(w, ".note.b", "GNU", NT_GNU_ABI_TAG, id, 16);
	elf_writer_build_id(w, long_id, sizeof(long_id));
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(elf_file_build_id(elf, got), ENOENT);
	elf_file_free(elf);

	/* Behind other notes of the same segment; then its length runs beyond the segment. */
	second = simple_image(&size);
	ASSERT_OK(elf_file_open_memory(second, size, &elf));
	ASSERT_EQ(elf_file_build_id(elf, got), 20);
	elf_file_free(elf);
	((Elf64_Nhdr *)((uint8_t *)second + elf_image_segment(second, 2)->p_offset))->n_descsz = 21;
	ASSERT_OK(elf_file_open_memory(second, size, &elf));
	ASSERT_ERR(elf_file_build_id(elf, got), ENOENT);
	elf_file_free(elf);
}

TEST(bias_of_mappings)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bias, offset;
	struct elf_file *elf;
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);
	Elf64_Phdr *text = elf_image_segment(image, 0);

	/* As lld lays it out: the text begins in the middle of a page of the file. */
	text->p_offset = 4 * page + 0x100;
	text->p_vaddr = 9 * page + 0x100;
	text->p_filesz = 3 * page;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(elf_file_bias(elf, 0x7f0000000000, 4 * page, &bias));
	ASSERT_EQ(bias, 0x7f0000000000 - 9 * page);
	ASSERT_OK(elf_file_bias(elf, 0x7f0000000000, 6 * page, &bias));
	ASSERT_EQ(bias, 0x7f0000000000 - 11 * page);
	ASSERT_ERR(elf_file_bias(elf, 0x7f0000000000, 8 * page, &bias), ENOENT);
	offset = elf->segments[1].offset & ~(page - 1);
	ASSERT_ERR(elf_file_bias(elf, 0x7f0000000000, offset + 100 * page, &bias), ENOENT);
	elf_file_free(elf);
	text->p_filesz = UINT64_MAX;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(elf_file_bias(elf, 0, 4 * page, &bias), ENOENT);
	elf_file_free(elf);
}

static int own_bias(struct dl_phdr_info *info, size_t size __attribute__((unused)), void *data)
{
	*(uint64_t *)data = info->dlpi_addr;
	return 1; /* the first is the executable */
}

TEST(bias_of_this_very_process)
{
	uint64_t want = 1, got, start, offset;
	struct elf_file *elf;
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], perms[8], *exe = realpath("/proc/self/exe", NULL);
	bool seen = false;

	dl_iterate_phdr(own_bias, &want);
	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, exe) ||
		    sscanf(line, "%lx-%*x %7s %lx", &start, perms, &offset) != 3 || perms[2] != 'x')
			continue;
		ASSERT_OK(elf_file_bias(elf, start, offset, &got));
		ASSERT_EQ(got, want);
		seen = true;
	}
	ASSERT(seen);
	elf_file_free(elf);
	free(exe);
}

static uint8_t *debug_image(const char *name, uint64_t flags, const void *data, size_t data_size,
			    size_t *size)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);

	elf_writer_section(w, name, SHT_PROGBITS, flags, 0, data, data_size);
	return elf_writer_finish(w, size);
}

enum { PLAIN_SIZE = 100000 };

/* An Elf64_Chdr and a stream of 100,000 bytes of 'a'. */
static uint8_t *packed(uint32_t type, size_t *size)
{
	static char plain[PLAIN_SIZE];
	Elf64_Chdr header = { .ch_type = type, .ch_size = sizeof(plain), .ch_addralign = 1 };
	uint8_t *buf = malloc(2 * PLAIN_SIZE);
	uLongf left = 2 * PLAIN_SIZE - sizeof(header);

	memset(plain, 'a', sizeof(plain));
	memcpy(buf, &header, sizeof(header));
	if (type == ELFCOMPRESS_ZLIB)
		ASSERT_EQ(compress(buf + sizeof(header), &left, (void *)plain, sizeof(plain)),
			  Z_OK);
	else
		left = ZSTD_compress(buf + sizeof(header), left, plain, sizeof(plain), 3);
	*size = sizeof(header) + left;
	return buf;
}

static int read_debug(const uint8_t *image, size_t size, size_t max)
{
	struct elf_file *elf;
	struct elf_data data = { 0 };
	int r;

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	r = elf_file_section_data(elf, elf_file_section(elf, ".debug_frame"), max, &data);
	if (!r) {
		ASSERT_EQ(data.size, PLAIN_SIZE);
		ASSERT_EQ(strspn((char *)data.data, "a"), PLAIN_SIZE);
	} else {
		ASSERT_PTR_NULL(data.data);
	}
	free(data.data);
	elf_file_free(elf);
	return r;
}

TEST(compressed_sections)
{
	static const uint32_t types[] = { ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD };

	for (size_t i = 0; i < 2; i++) {
		size_t packed_size, size;
		_cleanup_free_ uint8_t *data = packed(types[i], &packed_size), *image = NULL;
		Elf64_Chdr *header;

		image = debug_image(".debug_frame", SHF_COMPRESSED, data, packed_size, &size);
		header = (void *)(image + elf_image_section(image, 1)->sh_offset);
		ASSERT_OK(read_debug(image, size, PLAIN_SIZE));
		ASSERT_ERR(read_debug(image, size, PLAIN_SIZE - 1), EFBIG);
		header->ch_size = PLAIN_SIZE + 1;
		ASSERT_ERR(read_debug(image, size, SIZE_MAX), EBADMSG);
		header->ch_size = PLAIN_SIZE - 1;
		ASSERT_ERR(read_debug(image, size, SIZE_MAX), EBADMSG);
		header->ch_size = UINT64_MAX;
		ASSERT_ERR(read_debug(image, size, 1 << 30), EFBIG);
		header->ch_size = PLAIN_SIZE;
		header->ch_type = 77;
		ASSERT_ERR(read_debug(image, size, SIZE_MAX), ENOTSUP);
		header->ch_type = types[i];
		((uint8_t *)(header + 1))[0] ^= 0xff;
		ASSERT_ERR(read_debug(image, size, SIZE_MAX), EBADMSG);
		elf_image_section(image, 1)->sh_size = 23;
		ASSERT_ERR(read_debug(image, size, SIZE_MAX), EBADMSG);
	}
}

TEST(a_bomb_allocates_nothing)
{
	size_t packed_size, size;
	_cleanup_free_ uint8_t *data = packed(ELFCOMPRESS_ZLIB, &packed_size), *image = NULL;

	((Elf64_Chdr *)data)->ch_size = 1ULL << 46;
	image = debug_image(".debug_frame", SHF_COMPRESSED, data, packed_size, &size);
	ASSERT_ERR(read_debug(image, size, SIZE_MAX), EBADMSG);
}

TEST(legacy_compressed_sections)
{
	size_t packed_size, size;
	_cleanup_free_ uint8_t *data = packed(ELFCOMPRESS_ZLIB, &packed_size), *image = NULL;
	uint64_t plain_size = htobe64(PLAIN_SIZE);
	uint8_t *legacy = data + sizeof(Elf64_Chdr) - 12;

	memcpy(legacy, "ZLIB", 4);
	memcpy(legacy + 4, &plain_size, sizeof(plain_size));
	image = debug_image(".zdebug_frame", 0, legacy, packed_size - (size_t)(legacy - data),
			    &size);
	ASSERT_OK(read_debug(image, size, PLAIN_SIZE));
	image[elf_image_section(image, 1)->sh_offset] = 'z';
	ASSERT_ERR(read_debug(image, size, PLAIN_SIZE), EBADMSG);
}

/* objcopy's own output: the same section of one object, plain and by each method it knows. */
static void read_by_objcopy(const char *how, struct elf_data *ret)
{
	char path[4096];
	struct elf_file *elf;

	snprintf(path, sizeof(path), "%s/src/elf/compressed-%s.o", getenv("SONDE_BUILD_ROOT"), how);
	ASSERT_OK(elf_file_open(path, &elf));
	ASSERT_OK(elf_file_section_data(elf, elf_file_section(elf, ".debug_info"), 1 << 24, ret));
	elf_file_free(elf);
}

TEST(what_objcopy_compresses)
{
	static const char *const hows[] = { "zlib", "zlib-gnu", "zstd" };
	struct elf_data plain;

	read_by_objcopy("none", &plain);
	for (size_t i = 0; i < 3; i++) {
		struct elf_data data;

		read_by_objcopy(hows[i], &data);
		ASSERT_EQ(data.size, plain.size);
		ASSERT(!memcmp(data.data, plain.data, plain.size));
		free(data.data);
	}
	free(plain.data);
}

/* Everything that can be asked, of a file that may be anything. */
static void ask_everything(const uint8_t *image, size_t size)
{
	struct elf_file *elf;
	uint8_t got[ELF_BUILD_ID_MAX];
	uint64_t bias;
	int r = elf_file_open_memory(image, size, &elf);

	if (r) {
		ASSERT_ERR(r, ENOEXEC);
		return;
	}
	for (size_t i = 0; i < elf->nr_sections; i++) {
		struct elf_data data;

		if (!elf_file_section_data(elf, &elf->sections[i], 1 << 20, &data))
			free(data.data);
	}
	elf_file_build_id(elf, got);
	elf_file_bias(elf, 0x1000, 0, &bias);
	elf_file_read_vaddr(elf, elf->entry, got, sizeof(got));
	elf_file_free(elf);
}

TEST(every_truncation_of_a_file)
{
	size_t size;
	_cleanup_free_ uint8_t *image = simple_image(&size);

	for (size_t i = 0; i <= size; i++) {
		/* An allocation of just that size, so that ASan sees the first byte beyond. */
		uint8_t *cut = malloc(i);

		memcpy(cut, image, i);
		ask_everything(cut, i);
		free(cut);
	}
}

TEST(real_files)
{
	static const char *const paths[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
					     "/bin/sh" };

	for (size_t i = 0; i < 3; i++) {
		struct elf_file *elf;
		uint8_t got[ELF_BUILD_ID_MAX];

		if (elf_file_open(paths[i], &elf) == -ENOENT)
			continue;
		ASSERT_PTR_NONNULL(elf_file_section(elf, ".text"));
		ASSERT_PTR_NONNULL(elf_file_section(elf, ".eh_frame"));
		ASSERT_EQ(elf_file_build_id(elf, got), 20);
		elf_file_free(elf);
	}
}
