// SPDX-License-Identifier: Apache-2.0
/*
 * What points from one file to another: .gnu_debuglink, .gnu_debugaltlink, .debug_sup, the index of
 * a .dwp and the units of a .dwo; any bytes. The first byte chooses. Links lie in the input, and
 * paths made of them are short enough and say what they are made of. Or the bytes are an ELF file
 * whose sections are read, without any root to look for others.
 */
#include "fuzz.h"
#include "symbol/debug_file.h"
#include "symbol/debug_file_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 7, SECTIONS_MAX = 1 << 20 };

static void check_inside(const void *p, size_t len, const uint8_t *data, size_t size)
{
	const uint8_t *begin = p;

	if (begin < data || len > size || (size_t)(begin - data) > size - len)
		abort();
}

static void check_link(const uint8_t *data, size_t size)
{
	struct debug_link link = { NULL, 0 };
	struct debug_path path;

	if (debug_link_parse(data, size, &link)) {
		if (link.name)
			abort();
		return;
	}
	check_inside(link.name, strlen(link.name) + 1, data, size);
	if (strchr(link.name, '/') || !link.name[0] || !strcmp(link.name, ".."))
		abort();
	if (!debug_path_join("/usr/lib", link.name, &path) &&
	    strcmp(debug_path_base(path.text), link.name) != 0)
		abort();
}

static void check_alt(int r, const struct debug_alt_link *link, bool is_alt, const uint8_t *data,
		      size_t size)
{
	struct debug_path path, folder;

	if (r) {
		if (link->path)
			abort();
		return;
	}
	check_inside(link->path, strlen(link->path) + 1, data, size);
	check_inside(link->id, link->id_size, data, size);
	if (!link->id_size || link->id_size > ELF_BUILD_ID_MAX || (!is_alt && !link->path[0]))
		abort();
	if (!debug_path_of_build_id(link->id, link->id_size, &path) &&
	    (strlen(path.text) >= DEBUG_PATH_MAX || strncmp(path.text, "/usr/lib/debug/", 15) != 0))
		abort();
	if (debug_path_dir(link->path, &folder) == 0 &&
	    debug_path_join(folder.text, link->path, &path) == 0 &&
	    strlen(path.text) >= DEBUG_PATH_MAX)
		abort();
}

/* The bytes are the abbreviations, too. */
static void check_dwo(const uint8_t *data, size_t size, uint64_t id)
{
	const struct dwarf_span span = { data, size };
	int r = debug_dwo_has(&span, &span, id);

	if (r != 0 && r != 1 && r != -ENOENT)
		abort();
}

static void complain(void *ctx, const char *text)
{
	*(size_t *)ctx += strlen(text) ? 1 : 0;
}

static void check_file(const uint8_t *data, size_t size)
{
	size_t nr_complaints = 0;
	const struct debug_search search = { .path = "/bin/x",
					     .complain = complain,
					     .ctx = &nr_complaints,
					     .max_bytes = SECTIONS_MAX };
	struct debug_files *files = NULL;
	struct section_set set = { .bytes = 0 };
	struct elf_file *elf;
	const char *bad = NULL;
	int r;

	if (elf_file_open_memory(data, size, &elf))
		return;
	r = debug_files_open(elf, &search, &files);
	if ((r >= 0) != !!files || nr_complaints > DEBUG_COMPLAINTS_MAX ||
	    (r == 1 && !nr_complaints))
		abort();
	if (files && r && debug_files_dwarf(files)->main.info.data)
		abort();
	debug_files_free(files);
	r = section_set_load(elf, true, SECTIONS_MAX, &set, &bad);
	if (set.bytes > SECTIONS_MAX || (r && set.bytes) || (r && r != -ENOENT && !bad))
		abort();
	section_set_fini(&set);
	(void)debug_files_fingerprint(elf, &search);
	elf_file_free(elf);
}

FUZZER(data, size)
{
	struct debug_alt_link alt = { .path = NULL };
	uint64_t id = 0;
	uint8_t kind;

	if (!size)
		return 0;
	kind = *data++ % KINDS;
	size--;
	switch (kind) {
	case 0:
		check_link(data, size);
		break;
	case 1:
		check_alt(debug_alt_link_parse(data, size, &alt), &alt, false, data, size);
		break;
	case 2:
	case 3:
		check_alt(debug_sup_parse(data, size, kind == 3, &alt), &alt, kind == 3, data,
			  size);
		break;
	case 6:
		check_file(data, size);
		break;
	default:
		/* The unit that is looked for comes first. */
		memcpy(&id, data, size < sizeof(id) ? size : sizeof(id));
		if (size < sizeof(id))
			break;
		if (kind == 4)
			(void)debug_cu_index_has(data + sizeof(id), size - sizeof(id), id);
		else
			check_dwo(data + sizeof(id), size - sizeof(id), id);
		break;
	}
	return 0;
}
