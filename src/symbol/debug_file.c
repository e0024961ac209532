// SPDX-License-Identifier: Apache-2.0
/*
 * The files that debug information is in: found, checked, their sections read. What is looked for
 * where, and what makes a file the right one: docs/debug-info.md.
 *
 * The order is by kind of link first and by root second, so that what is found by build-id, the
 * surest link, is found by it wherever it is.
 */
#include "symbol/debug_file.h"
#include "symbol/debug_file_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/owners.h"

enum {
	/* Debug information may be so many times its file, compressed as it is; this much always.
	 */
	UNPACKED_RATIO = 32,
	UNPACKED_ALWAYS = 32 << 20,
};

/* A file that was found: where, below which root. */
struct place {
	int root_fd; /* -1: not known */
	struct debug_path path;
};

/* --- the object ------------------------------------------------------------------------------- */

/* The sections of a .dwo file, and what it was asked for by. */
struct dwo_file {
	char *name, *directory;
	uint64_t used; /* when: the oldest one goes first */
	struct section_set set;
};

struct debug_files {
	const struct elf_file *elf; /* the file itself */
	struct debug_search search;
	char *path;
	unsigned int nr_complaints;

	struct elf_file *separate; /* or NULL */
	struct place separate_place;

	struct section_set main, alt, dwp;
	bool dwp_looked_for;
	struct dwo_file dwos[DEBUG_DWO_FILES];
	uint64_t clock;
	struct dwarf_source source;
};

static void dwo_file_fini(struct dwo_file *dwo)
{
	free(dwo->name);
	free(dwo->directory);
	section_set_fini(&dwo->set);
	*dwo = (struct dwo_file){ 0 };
}

void debug_files_free(struct debug_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < DEBUG_DWO_FILES; i++)
		dwo_file_fini(&files->dwos[i]);
	section_set_fini(&files->main);
	section_set_fini(&files->alt);
	section_set_fini(&files->dwp);
	elf_file_free(files->separate);
	free(files->path);
	free(files);
}

const struct elf_file *debug_files_elf(const struct debug_files *files)
{
	return files->separate;
}

const char *debug_files_path(const struct debug_files *files)
{
	if (files->separate)
		return files->separate_place.path.text;
	return files->path ? files->path : "the file";
}

const struct dwarf_source *debug_files_dwarf(const struct debug_files *files)
{
	return &files->source;
}

/*
 * What an honest file unpacks to: compilers' debug information gets to a fifth of its size, its
 * emptiest sections to a twentieth.
 */
static size_t honest_size(const struct elf_file *elf, size_t max)
{
	uint64_t most = elf->size < SIZE_MAX / UNPACKED_RATIO ? elf->size * UNPACKED_RATIO : max;

	if (most < UNPACKED_ALWAYS)
		most = UNPACKED_ALWAYS;
	return most < max ? (size_t)most : max;
}

/* What may be loaded yet. */
static size_t bytes_left(const struct debug_files *files)
{
	size_t used = files->main.bytes + files->alt.bytes + files->dwp.bytes;

	for (size_t i = 0; i < DEBUG_DWO_FILES; i++)
		used += files->dwos[i].set.bytes;
	return used < files->search.max_bytes ? files->search.max_bytes - used : 0;
}

__attribute__((format(printf, 3, 4))) static void
complain(struct debug_files *files, const char *path, const char *format, ...)
{
	char what[256], text[DEBUG_PATH_MAX + 512];
	va_list args;

	if (!files->search.complain || files->nr_complaints >= DEBUG_COMPLAINTS_MAX)
		return;
	files->nr_complaints++;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s: %s", path, what);
	files->search.complain(files->search.ctx, text);
}

static void complain_of_section(struct debug_files *files, const char *path, const char *section,
				int r)
{
	if (r == -EFBIG)
		complain(files, path,
			 "debug information larger than %zu MB or %d times its file, not used",
			 files->search.max_bytes >> 20, UNPACKED_RATIO);
	else
		complain(files, path, "%s: %s, not used", section,
			 r == -EBADMSG || r == -ENODATA ? "corrupt" : strerror(-r));
}

/*
 * Could only root, we, or the owner of the file itself have made it? Who may not write to a file
 * can still show it to us from a mount namespace that he made, with debug files of his own, which
 * have its build-id.
 */
static bool is_owners(const struct debug_files *files, int fd, bool others_root)
{
	struct stat st, own;

	if (fstat(fd, &st))
		return false;
	if (owner_is_trusted(st.st_uid))
		return !others_root;
	if (files->search.owner)
		return st.st_uid == *files->search.owner;
	return files->elf->fd >= 0 && !fstat(files->elf->fd, &own) && st.st_uid == own.st_uid;
}

static bool is_others_root(const struct debug_search *search, int root_fd)
{
	for (size_t i = 0; i < search->nr_others_roots; i++)
		if (search->roots[i] == root_fd)
			return true;
	return false;
}

/*
 * Opens what is at `path` below one root. 0, -ENOENT (also if it is nothing that we can use, then
 * it was said), -ENOMEM.
 */
static int open_elf(struct debug_files *files, int root_fd, const char *path, struct elf_file **ret)
{
	bool others_root = is_others_root(&files->search, root_fd);
	_cleanup_close_ int fd = -1;
	int r = debug_open_below(root_fd, path, &fd);

	if (!r && !is_owners(files, fd, others_root)) {
		complain(files, path,
			 others_root ? "not the program's owner's, below a user's root, not used"
				     : "neither root's nor the program's owner's, not used");
		return -ENOENT;
	}
	if (!r)
		r = elf_file_open_fd(fd, ret);
	switch (r) {
	case 0:
		TAKE_FD(fd);
		return 0;
	case -ENOMEM:
		return r;
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return -ENOENT;
	case -EINVAL:
		complain(files, path, "no regular file, not used");
		return -ENOENT;
	case -ENOEXEC:
		complain(files, path, "no ELF file, not used");
		return -ENOENT;
	default:
		complain(files, path, "%s, not used", strerror(-r));
		return -ENOENT;
	}
}

/* --- the separate debug file ------------------------------------------------------------------ */

static bool same_file(const struct elf_file *a, const struct elf_file *b)
{
	struct stat x, y;

	return a->fd >= 0 && b->fd >= 0 && !fstat(a->fd, &x) && !fstat(b->fd, &y) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* `link` NULL: found by build-id. 0, or -ENOENT: another file's, which was said; -ENOMEM. */
static int check_separate(struct debug_files *files, const struct elf_file *candidate,
			  const char *path, const struct debug_link *link)
{
	uint8_t ours[ELF_BUILD_ID_MAX], theirs[ELF_BUILD_ID_MAX];
	int nr_ours = elf_file_build_id(files->elf, ours);
	int nr_theirs = elf_file_build_id(candidate, theirs);
	uint32_t crc;
	int r;

	if (nr_ours == -ENOMEM || nr_theirs == -ENOMEM)
		return -ENOMEM;
	if (candidate->machine != files->elf->machine) {
		complain(files, path, "of another architecture, not used");
		return -ENOENT;
	}
	if (nr_ours > 0 && (nr_theirs > 0 || !link)) {
		if (nr_ours == nr_theirs && !memcmp(ours, theirs, (size_t)nr_ours))
			return 0;
		complain(files, path, "build-id differs, not used");
		return -ENOENT;
	}
	if (!link)
		return -ENOENT;
	r = debug_crc(candidate->fd, &crc);
	if (r == -ENOMEM)
		return r;
	if (r || crc != link->crc)
		complain(files, path, "%s, not used", r ? strerror(-r) : "CRC differs");
	return r || crc != link->crc ? -ENOENT : 0;
}

/* Cut off, mostly: the table of sections is what files end with. */
static bool lost_its_sections(const struct elf_file *elf)
{
	Elf64_Ehdr header;

	return !elf->nr_sections && !elf_file_read(elf, 0, &header, sizeof(header)) &&
	       header.e_shoff;
}

static int try_separate(struct debug_files *files, int root_fd, const char *path,
			const struct debug_link *link)
{
	_cleanup_(elf_file_free_p) struct elf_file *candidate = NULL;
	int r = open_elf(files, root_fd, path, &candidate);

	if (r)
		return r;
	if (lost_its_sections(candidate)) {
		complain(files, path, "damaged or cut off, not used");
		return -ENOENT;
	}
	/* A link may lead to the file itself; and a file without anything helps nobody. */
	if (same_file(candidate, files->elf) || (!debug_has_contents(candidate, ".debug_info") &&
						 !debug_has_contents(candidate, ".symtab")))
		return -ENOENT;
	r = check_separate(files, candidate, path, link);
	if (!r)
		r = debug_path_format(&files->separate_place.path, "%s", path);
	if (r)
		return r;
	files->separate_place.root_fd = root_fd;
	files->separate = TAKE_PTR(candidate);
	log_debug("debug information in %s", path);
	return 0;
}

/* The link's name and checksum out of a section; `memory` is what they point into. */
static int read_debug_link(const struct elf_file *elf, struct debug_link *ret,
			   struct elf_data *memory)
{
	const struct elf_section *section = elf_file_section(elf, ".gnu_debuglink");
	int r;

	if (!section)
		return -ENOENT;
	r = elf_file_section_data(elf, section, DEBUG_LINK_MAX, memory);
	return r ? r : debug_link_parse(memory->data, memory->size, ret);
}

/* The n-th place that a debug link may mean. -ENOENT behind the last one. */
static int link_path(const char *file_path, const char *name, unsigned int n,
		     struct debug_path *ret)
{
	struct debug_path dir;
	int r = debug_path_dir(file_path, &dir);

	if (r)
		return r;
	switch (n) {
	case 0:
		return debug_path_format(ret, "%s/%s", dir.text, name);
	case 1:
		return debug_path_format(ret, "%s/.debug/%s", dir.text, name);
	case 2:
		return debug_path_format(ret, "/usr/lib/debug%s/%s", dir.text, name);
	default:
		return -ENOENT;
	}
}

static int find_by_build_id(struct debug_files *files)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	struct debug_path path;
	int r = elf_file_build_id(files->elf, id);

	if (r > 0)
		r = debug_path_of_build_id(id, (size_t)r, &path);
	if (r)
		return r;
	r = -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < files->search.nr_roots; i++)
		r = try_separate(files, files->search.roots[i], path.text, NULL);
	return r;
}

static int find_by_link(struct debug_files *files)
{
	_cleanup_free_ uint8_t *memory = NULL;
	struct elf_data data = { 0 };
	struct debug_link link;
	int r = read_debug_link(files->elf, &link, &data);

	memory = data.data;
	if (r || !files->path)
		return r == -ENOMEM ? r : -ENOENT;
	r = -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < files->search.nr_roots; i++) {
		struct debug_path path;

		for (unsigned int n = 0; r == -ENOENT && n < 3; n++) {
			if (!link_path(files->path, link.name, n, &path))
				r = try_separate(files, files->search.roots[i], path.text, &link);
		}
	}
	return r;
}

/* --- the supplementary file ------------------------------------------------------------------- */

struct alt_search {
	struct debug_alt_link link;
	bool sup; /* by .debug_sup: its own .debug_sup has the checksum again */
	uint8_t *memory;
};

/* 0, -ENOENT (no link), -EBADMSG, -ENOMEM ... */
static int read_alt_link(const struct elf_file *elf, struct alt_search *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".gnu_debugaltlink");
	struct alt_search alt = { .sup = !section };
	struct elf_data data;
	int r;

	if (!section)
		section = elf_file_section(elf, ".debug_sup");
	if (!section)
		return -ENOENT;
	r = elf_file_section_data(elf, section, DEBUG_LINK_MAX, &data);
	if (r)
		return r;
	r = alt.sup ? debug_sup_parse(data.data, data.size, false, &alt.link)
		    : debug_alt_link_parse(data.data, data.size, &alt.link);
	if (r) {
		free(data.data);
		return r;
	}
	alt.memory = data.data;
	*ret = alt;
	return 0;
}

static bool is_alt(const struct elf_file *candidate, const struct alt_search *alt)
{
	const struct elf_section *section = elf_file_section(candidate, ".debug_sup");
	uint8_t id[ELF_BUILD_ID_MAX];
	int nr = elf_file_build_id(candidate, id);
	struct debug_alt_link own;
	struct elf_data data;
	bool same;

	if (nr > 0 && (size_t)nr == alt->link.id_size && !memcmp(id, alt->link.id, (size_t)nr))
		return true;
	if (!alt->sup || !section ||
	    elf_file_section_data(candidate, section, DEBUG_LINK_MAX, &data))
		return false;
	same = !debug_sup_parse(data.data, data.size, true, &own) &&
	       own.id_size == alt->link.id_size && !memcmp(own.id, alt->link.id, own.id_size);
	free(data.data);
	return same;
}

/* Where the n-th try for it is, seen from the file that has the link. -ENOENT: no such place. */
static int alt_path(const struct alt_search *alt, const struct place *from,
		    const struct elf_file *elf, unsigned int n, struct debug_path *ret)
{
	struct debug_path dir, real;
	int r;

	if (n == 0)
		return debug_path_of_build_id(alt->link.id, alt->link.id_size, ret);
	if (n == 1) { /* as the file was called */
		r = debug_path_dir(from->path.text, &dir);
	} else { /* as it is called, links resolved */
		if (alt->link.path[0] == '/' || from->root_fd < 0 || elf->fd < 0)
			return -ENOENT;
		r = debug_real_path(from->root_fd, elf->fd, &real);
		if (!r)
			r = debug_path_dir(real.text, &dir);
	}
	return r ? r : debug_path_join(dir.text, alt->link.path, ret);
}

static int try_alt(struct debug_files *files, int root_fd, const char *path,
		   const struct alt_search *alt)
{
	_cleanup_(elf_file_free_p) struct elf_file *candidate = NULL;
	const char *bad = "";
	int r = open_elf(files, root_fd, path, &candidate);

	if (r)
		return r;
	if (!is_alt(candidate, alt)) {
		complain(files, path, "build-id differs, not used");
		return -ENOENT;
	}
	r = section_set_load(candidate, false, honest_size(candidate, bytes_left(files)),
			     &files->alt, &bad);
	if (!r)
		files->source.alt = &files->alt.sections;
	if (!r || r == -ENOMEM || r == -ENOENT)
		return r;
	complain_of_section(files, path, bad, r);
	return 1;
}

/* 0 if none is needed or it was found; 1: the debug information is no use without; -ENOMEM. */
static int load_alt(struct debug_files *files, const struct elf_file *elf,
		    const struct place *place)
{
	_cleanup_free_ uint8_t *memory = NULL;
	struct alt_search alt;
	int r = read_alt_link(elf, &alt);

	if (r == -ENOENT || r == -ENOMEM)
		return r == -ENOENT ? 0 : r;
	if (r) {
		complain(files, place->path.text,
			 "corrupt link to its supplementary file, which is not used");
		return 0;
	}
	memory = alt.memory;
	r = -ENOENT;
	for (unsigned int n = 0; r == -ENOENT && n < 3; n++) {
		struct place from = *place;
		struct debug_path path;

		for (size_t i = 0; r == -ENOENT && i < files->search.nr_roots; i++) {
			if (place->root_fd < 0)
				from.root_fd = files->search.roots[i];
			if (!alt_path(&alt, &from, elf, n, &path))
				r = try_alt(files, files->search.roots[i], path.text, &alt);
		}
	}
	/* Most names are there, but functions and lines are here: better than nothing. */
	if (r == -ENOENT)
		complain(files, place->path.text, "its supplementary file %.150s is not there",
			 alt.link.path);
	return r == -ENOENT ? 0 : r;
}

/* --- split units ------------------------------------------------------------------------------ */

static int try_dwp(struct debug_files *files, int root_fd, const char *path)
{
	_cleanup_(elf_file_free_p) struct elf_file *candidate = NULL;
	const char *bad = "";
	int r = open_elf(files, root_fd, path, &candidate);

	if (r)
		return r;
	r = section_set_load(candidate, true, honest_size(candidate, bytes_left(files)),
			     &files->dwp, &bad);
	if (!r && !files->dwp.sections.cu_index.data) {
		section_set_fini(&files->dwp);
		complain(files, path, "no index of units, not used");
		return -ENOENT;
	}
	if (r && r != -ENOENT && r != -ENOMEM) {
		complain_of_section(files, path, bad, r);
		return -ENOENT;
	}
	return r;
}

/* The n-th name that the .dwp may have. */
static int dwp_path(const struct debug_files *files, unsigned int n, struct debug_path *ret)
{
	const char *debug = files->separate ? files->separate_place.path.text : NULL;
	size_t len = debug ? strlen(debug) : 0;

	if (n == 0)
		return files->path ? debug_path_format(ret, "%s.dwp", files->path) : -ENOENT;
	if (!debug)
		return -ENOENT;
	if (n == 1)
		return debug_path_format(ret, "%s.dwp", debug);
	if (len < 6 || strcmp(debug + len - 6, ".debug"))
		return -ENOENT;
	return debug_path_format(ret, "%.*s.dwp", (int)(len - 6), debug);
}

static int find_dwp(struct debug_files *files)
{
	int r = -ENOENT;

	files->dwp_looked_for = true;
	for (unsigned int n = 0; r == -ENOENT && n < 3; n++) {
		struct debug_path path;

		if (dwp_path(files, n, &path))
			continue;
		for (size_t i = 0; r == -ENOENT && i < files->search.nr_roots; i++)
			r = try_dwp(files, files->search.roots[i], path.text);
	}
	return r;
}

static struct dwo_file *oldest_dwo(struct debug_files *files)
{
	struct dwo_file *oldest = &files->dwos[0];

	for (size_t i = 1; i < DEBUG_DWO_FILES; i++) {
		if (files->dwos[i].used < oldest->used)
			oldest = &files->dwos[i];
	}
	return oldest;
}

/* Loads into a free place, and makes room for it if need be. */
static int load_dwo(struct debug_files *files, const struct elf_file *elf, struct section_set *ret,
		    const char **ret_bad)
{
	int r = section_set_load(elf, true, honest_size(elf, bytes_left(files)), ret, ret_bad);

	while (r == -EFBIG) {
		struct dwo_file *oldest = NULL;

		for (size_t i = 0; i < DEBUG_DWO_FILES; i++) {
			struct dwo_file *dwo = &files->dwos[i];

			if (dwo->set.bytes && (!oldest || dwo->used < oldest->used))
				oldest = dwo;
		}
		if (!oldest)
			break;
		dwo_file_fini(oldest);
		r = section_set_load(elf, true, honest_size(elf, bytes_left(files)), ret, ret_bad);
	}
	return r;
}

static int try_dwo(struct debug_files *files, int root_fd, const char *path, uint64_t id,
		   struct section_set *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *candidate = NULL;
	_cleanup_(section_set_fini) struct section_set set = { 0 };
	const char *bad = "";
	int r = open_elf(files, root_fd, path, &candidate);

	if (!r)
		r = load_dwo(files, candidate, &set, &bad);
	if (r == -ENOMEM || r == -ENOENT)
		return r;
	if (r) {
		complain_of_section(files, path, bad, r);
		return -ENOENT;
	}
	if (!debug_dwo_has(&set.sections.info, &set.sections.abbrev, id)) {
		complain(files, path, "has other units than those it is wanted for, not used");
		return -ENOENT;
	}
	*ret = set;
	set = (struct section_set){ 0 };
	return 0;
}

/* The n-th place a .dwo may be. */
static int dwo_path(const struct debug_files *files, const struct dwarf_split_ref *ref,
		    unsigned int n, struct debug_path *ret)
{
	struct debug_path dir;
	int r;

	if (n == 0)
		return debug_path_join(ref->directory, ref->name, ret);
	if (!files->path)
		return -ENOENT;
	r = debug_path_dir(files->path, &dir);
	return r ? r : debug_path_join(dir.text, debug_path_base(ref->name), ret);
}

static int find_dwo(struct debug_files *files, const struct dwarf_split_ref *ref,
		    struct section_set *ret)
{
	int r = -ENOENT;

	for (unsigned int n = 0; r == -ENOENT && n < 2; n++) {
		struct debug_path path;

		if (dwo_path(files, ref, n, &path))
			continue;
		for (size_t i = 0; r == -ENOENT && i < files->search.nr_roots; i++)
			r = try_dwo(files, files->search.roots[i], path.text, ref->id, ret);
	}
	return r;
}

static int keep_dwo(struct debug_files *files, const struct dwarf_split_ref *ref,
		    struct section_set *set, const struct dwarf_sections **ret)
{
	struct dwo_file *dwo = oldest_dwo(files);

	dwo_file_fini(dwo);
	dwo->set = *set;
	dwo->name = strdup(ref->name);
	dwo->directory = strdup(ref->directory);
	dwo->used = ++files->clock;
	if (!dwo->name || !dwo->directory) {
		dwo_file_fini(dwo);
		return -ENOMEM;
	}
	*ret = &dwo->set.sections;
	return 0;
}

/* dwarf_source's callback. */
static int split(void *ctx, const struct dwarf_split_ref *ref, const struct dwarf_sections **ret)
{
	struct debug_files *files = ctx;
	struct section_set set;
	int r = files->dwp_looked_for ? 0 : find_dwp(files);

	if (r == -ENOMEM)
		return r;
	if (debug_cu_index_has(files->dwp.sections.cu_index.data, files->dwp.sections.cu_index.size,
			       ref->id)) {
		*ret = &files->dwp.sections;
		return 0;
	}
	if (!ref->name[0])
		return -ENOENT;
	for (size_t i = 0; i < DEBUG_DWO_FILES; i++) {
		struct dwo_file *dwo = &files->dwos[i];

		if (dwo->name && !strcmp(dwo->name, ref->name) &&
		    !strcmp(dwo->directory, ref->directory) &&
		    debug_dwo_has(&dwo->set.sections.info, &dwo->set.sections.abbrev, ref->id)) {
			dwo->used = ++files->clock;
			*ret = &dwo->set.sections;
			return 0;
		}
	}
	r = find_dwo(files, ref, &set);
	return r ? r : keep_dwo(files, ref, &set, ret);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* The sections of the file that has them. 0, 1 (can't be used), -ENOTSUP, -ENOMEM. */
static int load_main(struct debug_files *files, const struct elf_file *elf,
		     const struct place *place)
{
	const char *bad = "";
	int r;

	if (!files->search.max_bytes)
		return 0;
	if (debug_needs_relocation(elf))
		return -ENOTSUP;
	r = section_set_load(elf, false, honest_size(elf, files->search.max_bytes), &files->main,
			     &bad);
	if (r == -ENOMEM || r == -ENOENT)
		return r == -ENOENT ? 0 : r;
	if (r) {
		complain_of_section(files, place->path.text, bad, r);
		return 1;
	}
	r = load_alt(files, elf, place);
	if (r) {
		section_set_fini(&files->main);
		return r;
	}
	files->source.main = files->main.sections;
	files->source.relocatable = elf->type == ET_REL;
	return 0;
}

static int find_and_load(struct debug_files *files)
{
	struct place own = { .root_fd = -1 };
	int r;

	if (debug_has_contents(files->elf, ".debug_info")) {
		r = debug_path_format(&own.path, "%s", files->path ? files->path : "the file");
		return r ? r : load_main(files, files->elf, &own);
	}
	r = find_by_build_id(files);
	if (r == -ENOENT)
		r = find_by_link(files);
	if (r)
		return r == -ENOENT ? 0 : r;
	return load_main(files, files->separate, &files->separate_place);
}

int debug_files_open(const struct elf_file *elf, const struct debug_search *search,
		     struct debug_files **ret)
{
	_cleanup_(debug_files_free_p) struct debug_files *files = calloc(1, sizeof(*files));
	int r;

	if (!files)
		return -ENOMEM;
	files->elf = elf;
	files->search = *search;
	if (search->path && search->path[0] == '/') {
		files->path = strdup(search->path);
		if (!files->path)
			return -ENOMEM;
	}
	files->source.split = split;
	files->source.ctx = files;
	r = find_and_load(files);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(files);
	return r;
}

/* --- the fingerprint -------------------------------------------------------------------------- */

/* Whether there is a file; then it goes into the hash. */
static bool hash_file(int root_fd, const char *path, uint64_t *hash)
{
	struct stat st;
	uint64_t words[7];

	if (debug_stat_below(root_fd, path, &st))
		return false;
	words[0] = (uint64_t)st.st_size;
	words[1] = (uint64_t)st.st_mtim.tv_sec;
	words[2] = (uint64_t)st.st_mtim.tv_nsec;
	words[3] = st.st_ino;
	words[4] = (uint64_t)st.st_ctim.tv_sec;
	words[5] = (uint64_t)st.st_ctim.tv_nsec;
	words[6] = st.st_uid;
	*hash = XXH3_64bits_withSeed(path, strlen(path), *hash);
	*hash = XXH3_64bits_withSeed(words, sizeof(words), *hash);
	return true;
}

/* The first root that has it. */
static bool hash_first(const struct debug_search *search, const char *path, uint64_t *hash)
{
	for (size_t i = 0; i < search->nr_roots; i++) {
		if (hash_file(search->roots[i], path, hash))
			return true;
	}
	return false;
}

static bool hash_by_build_id(const struct elf_file *elf, const struct debug_search *search,
			     struct debug_path *ret, uint64_t *hash)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	int nr = elf_file_build_id(elf, id);

	return nr > 0 && !debug_path_of_build_id(id, (size_t)nr, ret) &&
	       hash_first(search, ret->text, hash);
}

static void hash_by_link(const struct elf_file *elf, const struct debug_search *search,
			 uint64_t *hash)
{
	_cleanup_free_ uint8_t *memory = NULL;
	struct elf_data data = { 0 };
	struct debug_path path;
	struct debug_link link;
	int r = read_debug_link(elf, &link, &data);

	memory = data.data;
	for (unsigned int n = 0; !r && n < 3; n++) {
		if (!link_path(search->path, link.name, n, &path))
			hash_first(search, path.text, hash);
	}
}

static void hash_alt(const struct elf_file *elf, const struct debug_search *search, uint64_t *hash)
{
	_cleanup_free_ uint8_t *memory = NULL;
	struct alt_search alt;
	struct debug_path dir, path;

	if (read_alt_link(elf, &alt))
		return;
	memory = alt.memory;
	if (!debug_path_of_build_id(alt.link.id, alt.link.id_size, &path))
		hash_first(search, path.text, hash);
	if (search->path && !debug_path_dir(search->path, &dir) &&
	    !debug_path_join(dir.text, alt.link.path, &path))
		hash_first(search, path.text, hash);
}

uint64_t debug_files_fingerprint(const struct elf_file *elf, const struct debug_search *search)
{
	struct debug_path path, dwp;
	uint64_t hash = 0;

	if (debug_has_contents(elf, ".debug_info"))
		hash_alt(elf, search, &hash);
	else if (hash_by_build_id(elf, search, &path, &hash)) {
		if (!debug_path_format(&dwp, "%s.dwp", path.text))
			hash_first(search, dwp.text, &hash);
	} else if (search->path)
		hash_by_link(elf, search, &hash);
	if (search->path && !debug_path_format(&dwp, "%s.dwp", search->path))
		hash_first(search, dwp.text, &hash);
	return hash;
}
