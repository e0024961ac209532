// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_table.h"
#include "symbol/symbol_writer.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "util/cleanup.h"

enum { BASE = 0x401000 };

static struct symbol_writer *writer(int *ret_fd)
{
	struct symbol_writer *w = NULL;

	*ret_fd = memfd_create("test", MFD_CLOEXEC);
	ASSERT(*ret_fd >= 0);
	ASSERT_OK(symbol_writer_new(*ret_fd, &w));
	return w;
}

static uint32_t add_function(struct symbol_writer *w, const char *name, uint32_t line)
{
	struct image_function f = { .line = line, .file_language = SYMBOL_LANGUAGE_CPP };
	uint32_t number;

	ASSERT_OK(symbol_writer_string(w, name, &f.name));
	ASSERT_OK(symbol_writer_function(w, &f, &number));
	return number;
}

static uint32_t add_scope(struct symbol_writer *w, struct symbol_scope scope)
{
	uint32_t offset;

	ASSERT_OK(symbol_writer_scope(w, &scope, &offset));
	return offset;
}

static void add_row(struct symbol_writer *w, struct image_row row)
{
	ASSERT_OK(symbol_writer_row(w, &row));
}

static struct symbol_table *finish(struct symbol_writer *w, int fd)
{
	struct image_header header = { .base = BASE, .fingerprint = 42 };
	struct symbol_table *t = NULL;

	ASSERT_OK(symbol_writer_finish(w, &header));
	symbol_writer_free(w);
	ASSERT_OK(symbol_table_open_fd(fd, &t));
	close(fd);
	return t;
}

TEST(an_empty_table)
{
	int fd;
	struct symbol_writer *w = writer(&fd);
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct symbol_table_info info;
	struct symbol_frame frame;

	ASSERT_OK(symbol_writer_begin_lines(w));
	t = finish(w, fd);
	symbol_table_info(t, &info);
	ASSERT_EQ(info.nr_functions, 0);
	ASSERT_EQ(info.nr_files, 0);
	ASSERT_EQ(info.fingerprint, 42);
	ASSERT(!info.has_lines && !info.has_inlines);
	for (uint64_t addr = 0; addr < BASE * 2; addr += 4096)
		ASSERT_EQ(symbol_table_find(t, addr, true, &frame, 1), 0);
	ASSERT_EQ(symbol_table_find(t, UINT64_MAX, true, &frame, 1), 0);
}

/* main calls f (line 10), f calls g (line 20): all at 0x10. */
TEST(inlined_calls)
{
	int fd;
	struct symbol_writer *w = writer(&fd);
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct symbol_table_info info;
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	uint32_t a_c, b_c, in_main, in_f, in_g;

	ASSERT_OK(symbol_writer_file(w, "/a.c", &a_c));
	ASSERT_OK(symbol_writer_file(w, "/b.c", &b_c));
	in_main = add_scope(w, (struct symbol_scope){ .function = add_function(w, "main", 1) });
	in_f = add_scope(w, (struct symbol_scope){ add_function(w, "f", 2), in_main, a_c, 10, 3 });
	in_g = add_scope(w, (struct symbol_scope){ add_function(w, "g", 3), in_f, b_c, 20, 4 });
	add_row(w, (struct image_row){ .addr = 0, .value = in_main });
	add_row(w, (struct image_row){ .addr = 0x10, .value = in_g });
	add_row(w, (struct image_row){ .addr = 0x20, .value = in_f });
	add_row(w, (struct image_row){ .addr = 0x30 });
	ASSERT_OK(symbol_writer_begin_lines(w));
	add_row(w, (struct image_row){ .addr = 0x08, .value = a_c, .line = 9, .column = 1 });
	add_row(w, (struct image_row){ .addr = 0x10, .value = b_c, .line = 30, .column = 70000 });
	t = finish(w, fd);

	ASSERT_EQ(symbol_table_find(t, BASE + 0x10, true, frames, SYMBOL_FRAMES_MAX), 3);
	ASSERT_STR(frames[0].name, "g");
	ASSERT_STR(frames[0].file, "/b.c");
	ASSERT_EQ(frames[0].line, 30);
	ASSERT_EQ(frames[0].column, 70000);
	ASSERT_EQ(frames[0].start_line, 3);
	ASSERT_EQ(frames[0].language, SYMBOL_LANGUAGE_CPP);
	ASSERT(frames[0].inlined);
	ASSERT_STR(frames[1].name, "f");
	ASSERT_STR(frames[1].file, "/b.c");
	ASSERT_EQ(frames[1].line, 20);
	ASSERT_EQ(frames[1].column, 4);
	ASSERT(frames[1].inlined);
	ASSERT_STR(frames[2].name, "main");
	ASSERT_STR(frames[2].file, "/a.c");
	ASSERT_EQ(frames[2].line, 10);
	ASSERT(!frames[2].inlined);
	ASSERT(frames[0].function != frames[1].function);

	/* Room for two only, and no inlined ones wanted. */
	ASSERT_EQ(symbol_table_find(t, BASE + 0x10, true, frames, 2), 2);
	ASSERT_EQ(symbol_table_find(t, BASE + 0x10, true, frames, 0), 0);
	ASSERT_EQ(symbol_table_find(t, BASE + 0x1f, false, frames, 1), 1);
	ASSERT_STR(frames[0].name, "main");
	ASSERT_STR(frames[0].file, "/a.c");
	ASSERT_EQ(frames[0].line, 10);
	ASSERT_EQ(frames[0].column, 3);
	ASSERT(!frames[0].inlined);

	ASSERT_EQ(symbol_table_find(t, BASE, true, frames, 9), 1);
	ASSERT_STR(frames[0].file, "");
	ASSERT_EQ(frames[0].line, 0);
	ASSERT_EQ(symbol_table_find(t, BASE + 0x2f, true, frames, 9), 2);
	ASSERT_EQ(symbol_table_find(t, BASE + 0x30, true, frames, 9), 0);
	ASSERT_EQ(symbol_table_find(t, BASE - 1, true, frames, 9), 0);
	ASSERT_EQ(symbol_table_find(t, BASE + (1ULL << 32) + 0x10, true, frames, 9), 0);
	symbol_table_info(t, &info);
	ASSERT(info.has_lines && info.has_inlines && !info.is_partial);
	ASSERT_EQ(info.nr_functions, 3);
	ASSERT_EQ(info.nr_ranges, 4);
	ASSERT_EQ(info.nr_lines, 2);
	ASSERT_EQ(info.nr_files, 2);
}

TEST(equal_things_are_one)
{
	int fd;
	struct symbol_writer *w = writer(&fd);
	uint32_t a, b, c;

	ASSERT_OK(symbol_writer_string(w, "abc", &a));
	ASSERT_OK(symbol_writer_string(w, "ab", &b));
	ASSERT_OK(symbol_writer_string(w, "abc", &c));
	ASSERT(a == c && a != b);
	ASSERT(add_function(w, "f", 1) != add_function(w, "f", 2));
	ASSERT(add_function(w, "f", 1) != add_function(w, "g", 1));
	ASSERT_EQ(add_function(w, "f", 1), add_function(w, "f", 1));
	ASSERT_OK(symbol_writer_file(w, "", &a));
	ASSERT_EQ(a, 0);
	/* Enough that the indexes grow several times. */
	for (int i = 0; i < 20000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "/%d", i);
		ASSERT_OK(symbol_writer_file(w, name, &a));
		ASSERT_EQ(a, i + 1);
	}
	for (int i = 0; i < 20000; i += 7) {
		char name[16];

		snprintf(name, sizeof(name), "/%d", i);
		ASSERT_OK(symbol_writer_file(w, name, &a));
		ASSERT_EQ(a, i + 1);
	}
	symbol_writer_free(w);
	close(fd);
}

/* Many rows of any distance and value, against the plainest way to say it. */
TEST(many_rows)
{
	enum { NR = 5000, FILES = 50 };
	static struct image_row lines[NR];
	int fd;
	struct symbol_writer *w = writer(&fd);
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	uint32_t addr = 0, number, scope;

	srand(4);
	for (int i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i + 1);
		ASSERT_OK(symbol_writer_file(w, name, &number));
	}
	scope = add_scope(w, (struct symbol_scope){ .function = add_function(w, "f", 1) });
	add_row(w, (struct image_row){ .value = scope });
	ASSERT_OK(symbol_writer_begin_lines(w));
	for (int i = 0; i < NR; i++) {
		addr += 1 + (uint32_t)rand() % (1u << rand() % 17);
		lines[i] = (struct image_row){ addr, (uint32_t)rand() % (FILES + 1),
					       (uint32_t)rand() % (1u << rand() % 31),
					       rand() % 3 ? 0 : (uint32_t)rand() };
		if (!lines[i].value)
			lines[i].line = lines[i].column = 0;
		add_row(w, lines[i]);
	}
	t = finish(w, fd);
	for (int i = 0; i < NR; i++) {
		uint32_t last = i + 1 < NR ? lines[i + 1].addr - 1 : lines[i].addr + 1000;
		uint32_t at[] = { lines[i].addr, last, lines[i].addr + (last - lines[i].addr) / 2 };

		for (int j = 0; j < 3; j++) {
			struct symbol_frame frame;

			ASSERT_EQ(symbol_table_find(t, BASE + at[j], true, &frame, 1), 1);
			ASSERT_EQ(frame.line, lines[i].line);
			ASSERT_EQ(frame.column, lines[i].column);
			ASSERT_EQ(strtol(frame.file, NULL, 10), lines[i].value);
		}
	}
}

/* --- damaged images --------------------------------------------------------------------------- */

static uint8_t *make_image(size_t *ret_size)
{
	int fd;
	struct symbol_writer *w = writer(&fd);
	struct image_header header = { .base = BASE };
	struct stat st;
	uint8_t *image;

	for (uint32_t i = 0; i < 100; i++)
		add_row(w, (struct image_row){
				   .addr = i * 16,
				   .value = add_scope(
					   w, (struct symbol_scope){
						      .function = add_function(w, "f", i) }) });
	ASSERT_OK(symbol_writer_begin_lines(w));
	ASSERT_OK(symbol_writer_finish(w, &header));
	symbol_writer_free(w);
	ASSERT_OK(fstat(fd, &st));
	image = malloc((size_t)st.st_size);
	ASSERT_EQ(pread(fd, image, (size_t)st.st_size, 0), st.st_size);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return image;
}

TEST(every_damaged_byte_is_found)
{
	struct symbol_table *t;
	size_t size;
	_cleanup_free_ uint8_t *image = make_image(&size);

	for (size_t i = 0; i < size; i++) {
		image[i] ^= 0x10;
		ASSERT_ERR(symbol_table_open_memory(image, size, &t), EBADMSG);
		image[i] ^= 0x10;
	}
	ASSERT_OK(symbol_table_open_memory(image, size, &t));
	symbol_table_free(t);
	ASSERT_ERR(symbol_table_open_memory(image + 1, size - 1, &t), EINVAL);
}

TEST(every_cut_is_found)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make_image(&size);

	for (size_t i = 0; i < size; i++) {
		_cleanup_close_ int fd = memfd_create("cut", MFD_CLOEXEC);
		struct symbol_table *t;

		ASSERT_EQ(write(fd, image, i), (ssize_t)i);
		ASSERT_ERR(symbol_table_open_fd(fd, &t), EBADMSG);
		/* As a file system may leave it after a crash: the length right, zeros behind. */
		ASSERT_OK(ftruncate(fd, (off_t)size));
		if (memcmp(image + i, (const char[64]){ 0 }, size - i < 64 ? size - i : 64))
			ASSERT_ERR(symbol_table_open_fd(fd, &t), EBADMSG);
	}
}

/* Someone who knows the checksum can lie, but not lead us out of the image. */
static void seal(uint8_t *image, size_t size)
{
	struct image_header *h = (void *)image;

	h->body_hash = XXH3_64bits(image + sizeof(*h), size - sizeof(*h));
	h->header_hash = XXH3_64bits(h, offsetof(struct image_header, header_hash));
}

TEST(sections_outside_are_refused)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make_image(&size);
	struct image_header *h = (void *)image, good;
	struct symbol_table *t;

	good = *h;
	for (int i = 0; i < IMAGE_SECTIONS_MAX_; i++) {
		const uint64_t offsets[] = { 0, 8, size, size - 8, UINT64_MAX - 7, 1ULL << 63 };
		const uint64_t sizes[] = { size, UINT64_MAX, 1ULL << 32, size - IMAGE_PAD };

		for (size_t j = 0; j < sizeof(offsets) / sizeof(offsets[0]); j++) {
			*h = good;
			h->sections[i].offset = offsets[j];
			seal(image, size);
			ASSERT_ERR(symbol_table_open_memory(image, size, &t), EBADMSG);
		}
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			*h = good;
			h->sections[i].size = sizes[j];
			seal(image, size);
			ASSERT_ERR(symbol_table_open_memory(image, size, &t), EBADMSG);
		}
	}
	for (int i = 0; i < 4; i++) {
		*h = good;
		(&h->nr_functions)[i] += 1000;
		seal(image, size);
		ASSERT_ERR(symbol_table_open_memory(image, size, &t), EBADMSG);
	}
	*h = good;
	h->version++;
	seal(image, size);
	ASSERT_ERR(symbol_table_open_memory(image, size, &t), EBADMSG);
	*h = good;
	seal(image, size);
	ASSERT_OK(symbol_table_open_memory(image, size, &t));
	symbol_table_free(t);
}

/* Of the mapping of that file. */
static int resident_kb(const char *name)
{
	_cleanup_fclose_ FILE *smaps = fopen("/proc/self/smaps", "re");
	bool found = false;
	char line[512];
	int kb = -1;

	ASSERT(smaps != NULL);
	while (kb < 0 && fgets(line, sizeof(line), smaps)) {
		found |= strstr(line, name) != NULL;
		if (found)
			sscanf(line, "Rss: %d kB", &kb);
	}
	return kb;
}

/* Neither what the check of a file touched is kept in memory, nor what was looked up. */
TEST(resting_takes_no_memory)
{
	size_t size;
	_cleanup_free_ uint8_t *image = make_image(&size);
	_cleanup_close_ int fd = memfd_create("opened-image", MFD_CLOEXEC);
	struct symbol_frame frame;
	struct symbol_table *t;

	ASSERT_EQ(write(fd, image, size), (ssize_t)size);
	ASSERT_OK(symbol_table_open_fd(fd, &t));
	ASSERT_EQ(resident_kb("opened-image"), 0);
	for (int i = 0; i < 2; i++) {
		symbol_table_find(t, BASE, true, &frame, 1);
		ASSERT(resident_kb("opened-image") > 0);
		symbol_table_rest(t);
		ASSERT_EQ(resident_kb("opened-image"), 0);
	}
	symbol_table_free(t);
}

TEST(not_a_file)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int dir = open("/", O_RDONLY | O_CLOEXEC);
	struct symbol_table *t;

	ASSERT_ERR(symbol_table_open_fd(null, &t), EBADMSG);
	ASSERT_ERR(symbol_table_open_fd(dir, &t), EBADMSG);
	ASSERT_ERR(symbol_table_open_fd(-1, &t), EBADF);
}
