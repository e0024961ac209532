// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/modules: "name size refcount users state address" a line; /sys/kernel/notes and
 * /sys/module/NAME/notes/.note.gnu.build-id: ELF notes (Documentation/ABI of the kernel).
 */
#include "symbol/kernel_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_note.h"
#include "util/cleanup.h"
#include "util/hex.h"
#include "util/read_file.h"

enum { MODULES_TEXT_MAX = 4 << 20, NOTES_MAX = 64 << 10 };

size_t kernel_notes_build_id(const void *notes, size_t size,
			     uint8_t ret[static KERNEL_BUILD_ID_MAX])
{
	int r = elf_notes_build_id(notes, size, 4, KERNEL_BUILD_ID_MAX, ret);

	return r < 0 ? 0 : (size_t)r;
}

static void read_build_id(struct kernel_file *file, const char *path)
{
	_cleanup_free_ char *notes = NULL;
	size_t size;

	if (!read_file_at(AT_FDCWD, path, NOTES_MAX, &notes, &size))
		file->build_id_len = (uint8_t)kernel_notes_build_id(notes, size, file->build_id);
}

static const char *field_end(const char *p, const char *end)
{
	while (p < end && *p != ' ' && *p != '\n')
		p++;
	return p;
}

/* One line; false if it makes no sense or hides the address. */
static bool parse_module(const char *p, const char *end, struct kernel_file *ret)
{
	const char *name = p, *word;
	uint64_t size = 0;
	size_t len;

	p = field_end(p, end);
	len = (size_t)(p - name);
	if (p == end || !len || len > sizeof(ret->name) - 3)
		return false;
	for (p++; p < end && *p >= '0' && *p <= '9' && size < UINT32_MAX; p++)
		size = size * 10 + (uint64_t)(*p - '0');
	/* Behind the size: reference count, users, state. */
	for (int i = 0; i < 3; i++) {
		if (p == end || *p != ' ')
			return false;
		p = field_end(p + 1, end);
	}
	word = p + 1;
	if (end - word < 3 || memcmp(word, "0x", 2))
		return false;
	*ret = (struct kernel_file){ 0 };
	if (!hex_parse(word + 2, end, &ret->start) || !ret->start || ret->start > UINT64_MAX - size)
		return false;
	ret->end = ret->start + size;
	snprintf(ret->name, sizeof(ret->name), "[%.*s]", (int)len, name);
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct kernel_file *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int kernel_image_parse_modules(struct kernel_image *image, const char *text, size_t size)
{
	const char *end = text + size, *line, *next;
	struct kernel_file *files;
	size_t nr_lines = 0;

	for (line = text; line < end && (line = memchr(line, '\n', (size_t)(end - line))); line++)
		nr_lines++;
	if (nr_lines > KERNEL_MODULES_MAX)
		nr_lines = KERNEL_MODULES_MAX;
	files = realloc(image->files, (image->nr + nr_lines + 1) * sizeof(*files));
	if (!files)
		return -ENOMEM;
	image->files = files;
	for (line = text; nr_lines && line < end; line = next + 1, nr_lines--) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (!next)
			break;
		if (parse_module(line, next, &files[image->nr]))
			image->nr++;
	}
	if (image->nr > 1)
		qsort(files + 1, image->nr - 1, sizeof(*files), by_start);
	return 0;
}

int kernel_image_read(struct kernel_image *ret)
{
	struct kernel_image image = { .files = calloc(1, sizeof(struct kernel_file)), .nr = 1 };
	_cleanup_free_ char *modules = NULL;
	char path[128];
	size_t size;
	int r;

	if (!image.files)
		return -ENOMEM;
	snprintf(image.files[0].name, sizeof(image.files[0].name), "[kernel]");
	read_build_id(&image.files[0], "/sys/kernel/notes");
	/* A kernel without modules has no such file. */
	if (!read_file_at(AT_FDCWD, "/proc/modules", MODULES_TEXT_MAX, &modules, &size)) {
		r = kernel_image_parse_modules(&image, modules, size);
		if (r) {
			kernel_image_fini(&image);
			return r;
		}
	}
	for (size_t i = 1; i < image.nr; i++) {
		int len = (int)strlen(image.files[i].name) - 2;

		snprintf(path, sizeof(path), "/sys/module/%.*s/notes/.note.gnu.build-id", len,
			 image.files[i].name + 1);
		read_build_id(&image.files[i], path);
	}
	*ret = image;
	return 0;
}

void kernel_image_fini(struct kernel_image *image)
{
	free(image->files);
	*image = (struct kernel_image){ 0 };
}

const struct kernel_file *kernel_image_find(const struct kernel_image *image, uint64_t addr)
{
	size_t lo = 1, hi = image->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (image->files[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 1 && addr < image->files[lo - 1].end ? &image->files[lo - 1] : &image->files[0];
}
