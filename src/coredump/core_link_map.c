// SPDX-License-Identifier: Apache-2.0
/*
 * The files of a core without NT_FILE: the executable by the auxiliary vector and the command line,
 * libraries by the dynamic linker's list (struct r_debug and link_map of <link.h>, which debuggers
 * find by DT_DEBUG), out of the core's memory: each step of which may be missing or hostile.
 */
#include "coredump/core_files_internal.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

enum {
	PIECE = 64,	    /* of a string; never across a page */
	DYNAMIC_MAX = 512,  /* entries; real ones have about thirty */
	LIST_MAX = 16000,   /* links */
	PAGE = 4096,	    /* what segments are rounded to: nobody's pages are smaller */
	R_DEBUG_MAP = 8,    /* offsets in struct r_debug */
	LINK_MAP_SIZE = 40, /* l_addr, l_name, l_ld, l_next, l_prev */
};

/* A string out of memory; false and "" if it can't be read whole. */
static bool read_string(const struct core_files *files, uint64_t addr, char *to, size_t size)
{
	size_t n = 0;

	while (addr && n + PIECE < size) {
		size_t piece = PIECE - (addr + n) % PIECE, len;

		if (core_files_memory(files, addr + n, to + n, piece))
			break;
		len = strnlen(to + n, piece);
		n += len;
		if (len < piece)
			return true;
	}
	to[0] = '\0';
	return false;
}

/* Where its segments lie in memory, as the kernel and the dynamic linker map them. */
static int add_segments(struct core_files *files, uint32_t number)
{
	const struct core_file *file = &files->items.items[number];

	for (size_t i = 0; i < file->elf->nr_segments; i++) {
		const struct elf_segment *s = &file->elf->segments[i];
		uint64_t skip = s->vaddr % PAGE, start = s->vaddr - skip + file->bias;
		struct core_mapping m = { start, start + skip + s->filesz, s->offset - skip, number,
					  UINT32_MAX };
		int r;

		if (s->type != PT_LOAD || !s->filesz || s->offset < skip || m.end <= start ||
		    m.end > UINT64_MAX - PAGE)
			continue;
		m.end = (m.end + PAGE - 1) & -(uint64_t)PAGE;
		r = vec_push(&files->mappings, m);
		if (r)
			return r;
	}
	return 0;
}

static int mapping_order(const void *a, const void *b)
{
	const struct core_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* A page that two segments share is the later one's. */
static void sort_mappings(struct core_files *files)
{
	struct core_mapping *m = files->mappings.items;
	size_t kept = 0;

	if (files->mappings.nr)
		qsort(m, files->mappings.nr, sizeof(*m), mapping_order);
	for (size_t i = 0; i < files->mappings.nr; i++) {
		if (kept && m[kept - 1].end > m[i].start)
			m[kept - 1].end = m[i].start;
		if (kept && m[kept - 1].end <= m[kept - 1].start)
			kept--;
		m[kept++] = m[i];
	}
	files->mappings.nr = kept;
}

/* The entry of the executable's dynamic segment; 0: none. */
static uint64_t dynamic_entry(const struct core_files *files, uint64_t addr, uint64_t tag)
{
	for (unsigned int i = 0; i < DYNAMIC_MAX; i++) {
		uint64_t entry[2];

		if (core_files_memory(files, addr + i * sizeof(entry), entry, sizeof(entry)) ||
		    entry[0] == DT_NULL)
			return 0;
		if (entry[0] == tag)
			return entry[1];
	}
	return 0;
}

struct link {
	uint64_t bias, dynamic;
	uint32_t path; /* in files->strings */
};

static int add_library(struct core_files *files, const struct core_search *search,
		       const struct link *link)
{
	const char *path = strtab_get(&files->strings, link->path);
	struct core_file *file;
	uint32_t number;
	int r;

	for (size_t i = 0; i < files->items.nr; i++)
		if (files->items.items[i].bias == link->bias &&
		    !strcmp(files->items.items[i].path, path))
			return 0;
	r = core_files_add(files, path, strlen(path), &number);
	if (r)
		return r;
	file = &files->items.items[number];
	file->bias = file->head = link->bias;
	file->dynamic = link->dynamic;
	file->is_linked = file->has_bias = true;
	r = core_file_open(files, number, search);
	return r || !file->elf ? r : add_segments(files, number);
}

static int take_link(struct core_files *files, const char *path, uint64_t bias, uint64_t dynamic,
		     struct link *ret)
{
	*ret = (struct link){ .bias = bias, .dynamic = dynamic };
	return strtab_intern(&files->strings, path, strlen(path), &ret->path);
}

/* The whole list first: the files that it names change what memory can be read. */
static int follow_list(struct core_files *files, const struct core_search *search, uint64_t at)
{
	VEC(struct link) links = { 0 };
	char path[PATH_MAX];
	int r = 0;

	for (unsigned int i = 0; at && i < LIST_MAX && !r; i++) {
		uint64_t map[LINK_MAP_SIZE / 8];
		struct link link;

		if (core_files_memory(files, at, map, sizeof(map))) {
			files->list_is_cut = true;
			break;
		}
		if (!read_string(files, map[1], path, sizeof(path)))
			files->list_is_cut = true;
		/* The first is the executable; the vDSO's has no path. */
		if (i && path[0] == '/') {
			r = take_link(files, path, map[0], map[2], &link);
			if (!r)
				r = vec_push(&links, link);
		}
		at = map[3];
	}
	for (size_t i = 0; i < links.nr && !r; i++)
		r = add_library(files, search, &links.items[i]);
	vec_free(&links);
	return r;
}

static int find_interpreter(struct core_files *files, const struct core_search *search,
			    const struct elf_file *exe)
{
	const struct elf_segment *s = elf_file_segment(exe, PT_INTERP);
	char path[PATH_MAX];
	struct link link;
	int r;

	if (!files->core->auxv.base || !s || s->filesz < 2 || s->filesz > sizeof(path) ||
	    elf_file_read(exe, s->offset, path, s->filesz) || path[s->filesz - 1])
		return 0;
	r = take_link(files, path, files->core->auxv.base, 0, &link);
	return r ? r : add_library(files, search, &link);
}

/* The path in AT_EXECFN, or the command line's first word. */
static void executable_path(const struct core_files *files, char *to, size_t size)
{
	size_t len;

	read_string(files, files->core->auxv.execfn, to, size);
	if (*to)
		return;
	len = strcspn(files->core->args, " ");
	len = len < size ? len : size - 1;
	memcpy(to, files->core->args, len);
	to[len] = '\0';
}

/* The libraries, by what the executable's DT_DEBUG points to. */
static int find_libraries(struct core_files *files, const struct core_search *search,
			  const struct elf_file *exe, uint64_t bias)
{
	const struct elf_segment *dynamic = elf_file_segment(exe, PT_DYNAMIC);
	uint64_t debug = 0, link;
	int r = 0;

	if (dynamic)
		debug = dynamic_entry(files, dynamic->vaddr + bias, DT_DEBUG);
	if (debug && !core_files_memory(files, debug + R_DEBUG_MAP, &link, sizeof(link)))
		r = follow_list(files, search, link);
	else
		files->list_is_cut = elf_file_segment(exe, PT_INTERP);
	return r ? r : find_interpreter(files, search, exe);
}

int core_files_find_by_list(struct core_files *files, const struct core_search *search)
{
	const struct elf_core_auxv *auxv = &files->core->auxv;
	const struct elf_file *exe;
	struct core_file *file;
	char path[PATH_MAX];
	uint32_t number;
	int r;

	executable_path(files, path, sizeof(path));
	r = core_files_add(files, path, strlen(path), &number);
	if (r)
		return r;
	file = &files->items.items[number];
	file->is_exe = true;
	file->head = auxv->phdr > sizeof(Elf64_Ehdr) ? auxv->phdr - sizeof(Elf64_Ehdr) : 0;
	r = core_file_open(files, number, search);
	exe = file->elf;
	if (r || !exe)
		return r;
	file->has_bias = auxv->entry;
	file->bias = auxv->entry ? auxv->entry - exe->entry : 0;
	r = add_segments(files, number);
	if (r)
		return r;
	/* Memory that is not in the core is looked up in this very list. */
	sort_mappings(files);
	r = find_libraries(files, search, exe, files->items.items[number].bias);
	sort_mappings(files);
	return r;
}
