// SPDX-License-Identifier: Apache-2.0
/*
 * Opens an image of a symbol table and looks addresses up in it, in place. Layout: symbol_image.h.
 *
 * What is checked when: at opening, the header, the places of the sections and a checksum of the
 * rest. At a look-up, only that what is decoded begins within its section: what follows is bounded
 * and the image padded (IMAGE_PAD): a made-up image with a right checksum gives nonsense, but
 * nothing worse.
 */
#include "symbol/symbol_table.h"
#include "symbol/symbol_image.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { HASH_PIECE = 1 << 20 }; /* whole pages, of whatever size */

/* Rows, and the blocks that lead to them. */
struct rows {
	const uint8_t *data;
	uint32_t size;
	const struct image_block *blocks;
	uint32_t nr_blocks, nr;
};

struct symbol_table {
	const uint8_t *image;
	size_t size;
	bool mapped;
	const struct image_header *header;
	uint64_t base;
	struct rows ranges, lines;
	const uint8_t *scopes;
	uint32_t scopes_size;
	const struct image_function *functions;
	const uint32_t *files;
	const char *strings;
	uint32_t strings_size;
};

/* --- opening ---------------------------------------------------------------------------------- */

static bool sections_are_inside(const struct image_header *h)
{
	for (size_t i = 0; i < IMAGE_SECTIONS_MAX_; i++) {
		const struct image_section *s = &h->sections[i];

		if (s->size > IMAGE_SECTION_MAX || s->offset % 8 || s->offset < sizeof(*h) ||
		    s->offset > h->size - IMAGE_PAD || s->size > h->size - IMAGE_PAD - s->offset)
			return false;
	}
	return true;
}

static bool counts_fit(const struct image_header *h)
{
	const struct image_section *s = h->sections;

	return s[IMAGE_FUNCTIONS].size ==
		       (uint64_t)h->nr_functions * sizeof(struct image_function) &&
	       s[IMAGE_FILES].size == (uint64_t)h->nr_files * sizeof(uint32_t) &&
	       s[IMAGE_RANGE_BLOCKS].size == ((uint64_t)h->nr_ranges + IMAGE_BLOCK_ROWS - 1) /
						     IMAGE_BLOCK_ROWS *
						     sizeof(struct image_block) &&
	       s[IMAGE_LINE_BLOCKS].size == ((uint64_t)h->nr_lines + IMAGE_BLOCK_ROWS - 1) /
						    IMAGE_BLOCK_ROWS * sizeof(struct image_block);
}

/* Of all behind the header. What is mapped is given back piece by piece: a large image is more than
 * some limits of memory leave. */
static uint64_t hash_body(const uint8_t *image, size_t size, bool mapped)
{
	XXH3_state_t *state = XXH3_createState();
	size_t at = sizeof(struct image_header);
	uint64_t hash;

	if (!state)
		return XXH3_64bits(image + at, size - at);
	XXH3_64bits_reset(state);
	for (size_t start = 0; start < size; start += HASH_PIECE) {
		size_t end = size - start < HASH_PIECE ? size : start + HASH_PIECE;

		XXH3_64bits_update(state, image + at, end - at);
		at = end;
		if (mapped)
			madvise((void *)(uintptr_t)(image + start), end - start, MADV_DONTNEED);
	}
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

static bool is_good(const uint8_t *image, size_t size, bool mapped)
{
	const struct image_header *h = (const void *)image;
	const struct image_section *strings = &h->sections[IMAGE_STRINGS];

	if (size < sizeof(*h) + IMAGE_PAD || memcmp(h->magic, IMAGE_MAGIC, sizeof(h->magic)) ||
	    h->version != IMAGE_VERSION || h->size != size ||
	    h->header_hash != XXH3_64bits(h, offsetof(struct image_header, header_hash)))
		return false;
	if (h->flags & ~(uint32_t)IMAGE_FLAGS_ALL || !sections_are_inside(h) || !counts_fit(h))
		return false;
	/* With a NUL at the end every string ends, wherever it begins. */
	if (!strings->size || image[strings->offset + strings->size - 1])
		return false;
	return h->body_hash == hash_body(image, size, mapped);
}

static struct rows rows_of(const uint8_t *image, enum image_section_id rows,
			   enum image_section_id blocks, uint32_t nr)
{
	const struct image_section *s =
		((const struct image_header *)(const void *)image)->sections;

	return (struct rows){
		.data = image + s[rows].offset,
		.size = (uint32_t)s[rows].size,
		.blocks = (const void *)(image + s[blocks].offset),
		.nr_blocks = (uint32_t)(s[blocks].size / sizeof(struct image_block)),
		.nr = nr,
	};
}

static int open_image(const void *data, size_t size, bool mapped, struct symbol_table **ret)
{
	const struct image_header *h = data;
	const uint8_t *image = data;
	struct symbol_table *t;

	/* The caller's buffer may stand anywhere; a mapping and malloc() are aligned. */
	if ((uintptr_t)data % _Alignof(struct image_header))
		return -EINVAL;
	if (!is_good(data, size, mapped))
		return -EBADMSG;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct symbol_table){
		.image = data,
		.size = size,
		.mapped = mapped,
		.header = h,
		.base = h->base,
		.ranges = rows_of(data, IMAGE_RANGES, IMAGE_RANGE_BLOCKS, h->nr_ranges),
		.lines = rows_of(data, IMAGE_LINES, IMAGE_LINE_BLOCKS, h->nr_lines),
		.scopes = image + h->sections[IMAGE_SCOPES].offset,
		.scopes_size = (uint32_t)h->sections[IMAGE_SCOPES].size,
		.functions = (const void *)(image + h->sections[IMAGE_FUNCTIONS].offset),
		.files = (const void *)(image + h->sections[IMAGE_FILES].offset),
		.strings = (const char *)image + h->sections[IMAGE_STRINGS].offset,
		.strings_size = (uint32_t)h->sections[IMAGE_STRINGS].size,
	};
	*ret = t;
	return 0;
}

int symbol_table_open_memory(const void *data, size_t size, struct symbol_table **ret)
{
	return open_image(data, size, false, ret);
}

int symbol_table_open_fd(int fd, struct symbol_table **ret)
{
	struct stat st;
	void *image;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(struct image_header) ||
	    (uint64_t)st.st_size > SIZE_MAX / 2)
		return -EBADMSG;
	/* Private: what is sealed against writing, kernels before 6.7 don't map shared. */
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		return -errno;
	r = open_image(image, (size_t)st.st_size, true, ret);
	if (r) {
		munmap(image, (size_t)st.st_size);
		return r;
	}
	/* The header was read last. */
	symbol_table_rest(*ret);
	return 0;
}

void symbol_table_rest(const struct symbol_table *t)
{
	if (t->mapped)
		madvise((void *)(uintptr_t)t->image, t->size, MADV_DONTNEED);
}

void symbol_table_free(struct symbol_table *t)
{
	if (!t)
		return;
	if (t->mapped)
		munmap((void *)(uintptr_t)t->image, t->size);
	free(t);
}

void symbol_table_info(const struct symbol_table *t, struct symbol_table_info *ret)
{
	const struct image_header *h = t->header;

	*ret = (struct symbol_table_info){
		.size = t->size,
		.nr_functions = h->nr_functions,
		.nr_ranges = h->nr_ranges,
		.nr_lines = h->nr_lines,
		.nr_files = h->nr_files ? h->nr_files - 1 : 0,
		.has_lines = h->flags & IMAGE_HAS_LINES,
		.has_inlines = h->flags & IMAGE_HAS_INLINES,
		.is_partial = h->flags & IMAGE_NO_DEBUG_INFO,
		.fingerprint = h->fingerprint,
	};
}

const char *symbol_table_complaints(const struct symbol_table *t)
{
	uint32_t begin = t->strings_size - 1;

	if (!(t->header->flags & IMAGE_HAS_COMPLAINTS))
		return "";
	while (begin && t->strings[begin - 1])
		begin--;
	return t->strings + begin;
}

uint64_t symbol_table_resident(const struct symbol_table *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr_pages = (t->size + page - 1) / page;
	unsigned char in_core[4096];
	size_t nr = 0;

	if (!t->mapped)
		return t->size;
	for (size_t at = 0; at < nr_pages; at += sizeof(in_core)) {
		size_t n = nr_pages - at < sizeof(in_core) ? nr_pages - at : sizeof(in_core);

		if (mincore((void *)(uintptr_t)(t->image + at * page), n * page, in_core))
			return t->size;
		for (size_t i = 0; i < n; i++)
			nr += in_core[i] & 1;
	}
	return nr * page;
}

/* --- looking up ------------------------------------------------------------------------------- */

/* The last block that begins at or before `addr`, or NULL. Compiled to conditional moves. */
static const struct image_block *find_block(const struct rows *rows, uint32_t addr)
{
	const struct image_block *block = rows->blocks;

	if (!rows->nr_blocks || block->addr > addr)
		return NULL;
	for (uint32_t nr = rows->nr_blocks; nr > 1; nr -= nr / 2)
		block = block[nr / 2].addr <= addr ? block + nr / 2 : block;
	if (block->offset >= rows->size)
		return NULL;
	/* Rows are the next to be read, but another stream's block is looked for first. */
	__builtin_prefetch(rows->data + block->offset);
	__builtin_prefetch(rows->data + block->offset + 64);
	return block;
}

/* The row of that block that covers `addr`, which is not before it. */
static struct image_row find_row(const struct rows *rows, const struct image_block *block,
				 uint32_t addr)
{
	uint32_t left = rows->nr - (uint32_t)(block - rows->blocks) * IMAGE_BLOCK_ROWS;
	struct image_row row, next = { .addr = block->addr };
	const uint8_t *p = image_get_row(rows->data + block->offset, &next);

	if (left > IMAGE_BLOCK_ROWS)
		left = IMAGE_BLOCK_ROWS;
	do {
		row = next;
		if (!--left)
			break;
		p = image_get_row(p, &next);
	} while (next.addr <= addr);
	return row;
}

/* A scope as it is stored at `offset`. */
struct scope {
	uint64_t function;
	uint64_t up; /* how far before it its caller is; 0: it has none */
	uint64_t call_file, call_line, call_column;
};

static bool read_scope(const struct symbol_table *t, uint32_t offset, struct scope *ret)
{
	const uint8_t *p;

	if (offset >= t->scopes_size)
		return false;
	p = image_varint(t->scopes + offset, &ret->function);
	p = image_varint(p, &ret->up);
	if (ret->up > offset || ret->function >= t->header->nr_functions)
		return false;
	if (!ret->up)
		return true;
	p = image_varint(p, &ret->call_file);
	p = image_varint(p, &ret->call_line);
	image_varint(p, &ret->call_column);
	return true;
}

static const char *string_at(const struct symbol_table *t, uint32_t offset)
{
	return offset < t->strings_size ? t->strings + offset : "";
}

static const char *file_name(const struct symbol_table *t, uint64_t file)
{
	return file < t->header->nr_files ? string_at(t, t->files[file]) : "";
}

static void fill_function(const struct symbol_table *t, uint32_t number, struct symbol_frame *ret)
{
	const struct image_function *f = &t->functions[number];
	uint8_t language = (uint8_t)f->file_language;

	ret->function = number;
	ret->name = string_at(t, f->name);
	ret->start_line = f->line;
	ret->language = language < SYMBOL_LANGUAGE_MAX_ ? language : SYMBOL_LANGUAGE_UNKNOWN;
}

size_t symbol_table_find(const struct symbol_table *t, uint64_t addr, bool inlines,
			 struct symbol_frame *ret, size_t max)
{
	const struct image_block *ranges, *lines;
	struct image_row line = { 0 };
	struct symbol_frame at;
	struct scope scope = { 0 };
	uint32_t offset, from_base;
	size_t nr = 0;

	if (addr < t->base || addr - t->base > UINT32_MAX || !max)
		return 0;
	from_base = (uint32_t)(addr - t->base);
	ranges = find_block(&t->ranges, from_base);
	lines = find_block(&t->lines, from_base);
	offset = ranges ? find_row(&t->ranges, ranges, from_base).value : 0;
	if (!offset)
		return 0;
	if (lines)
		line = find_row(&t->lines, lines, from_base);
	at = (struct symbol_frame){
		.file = file_name(t, line.value),
		.line = line.line,
		.column = line.column,
	};
	for (size_t i = 0; i < SYMBOL_FRAMES_MAX && read_scope(t, offset, &scope); i++) {
		at.inlined = scope.up;
		if (inlines || !scope.up) {
			fill_function(t, (uint32_t)scope.function, &at);
			ret[nr++] = at;
		}
		if (!scope.up || nr == max)
			break;
		at.file = file_name(t, scope.call_file);
		at.line = (uint32_t)scope.call_line;
		at.column = (uint32_t)scope.call_column;
		offset -= (uint32_t)scope.up;
	}
	return nr;
}
