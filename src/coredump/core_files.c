// SPDX-License-Identifier: Apache-2.0
/* Which file of this machine is which of a core's: see core_files.h, docs/core.md. */
#include "coredump/core_files_internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/open_in_root.h"
#include "util/sorted.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	/* Bytes of a file's begin that are looked at for headers and the build-id. */
	HEAD_SIZE = 64 << 10,
	/* The image of a file whose code is in the core itself. */
	MEMORY_IMAGE_MAX = 256 << 20,
	SEGMENTS_MAX = 64, /* executable ones of a file; linkers make one or two */
	PAGE = 4096,
};

const char *core_file_state_name(enum core_file_state state)
{
	static const char *const names[] = {
		[CORE_FILE_NO_CODE] = "no code", [CORE_FILE_MISSING] = "missing",
		[CORE_FILE_DIFFERS] = "differs", [CORE_FILE_UNVERIFIED] = "unverified",
		[CORE_FILE_MEMORY] = "memory",	 [CORE_FILE_VERIFIED] = "verified",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == CORE_FILE_STATES_MAX_,
		       "each state has a name");

	return names[state];
}

/* --- what the core knows of a file ----------------------------------------------------------- */

/* The file's first bytes out of the core's memory, as many as it has: *ret stays empty if none. */
static int read_head(const struct core_files *files, uint64_t addr, struct elf_data *ret)
{
	const struct elf_core_segment *s = addr ? elf_core_segment_at(files->core, addr) : NULL;
	_cleanup_free_ uint8_t *head = NULL;
	uint64_t size;
	int r;

	if (!s || addr - s->vaddr >= s->filesz)
		return 0;
	size = s->filesz - (addr - s->vaddr);
	if (size > HEAD_SIZE)
		size = HEAD_SIZE;
	if (size < sizeof(Elf64_Ehdr))
		return 0;
	head = malloc(size);
	if (!head)
		return -ENOMEM;
	r = elf_core_memory(files->core, files->elf, addr, head, size);
	if (r || memcmp(head, ELFMAG, SELFMAG))
		return 0;
	ret->data = TAKE_PTR(head);
	ret->size = size;
	return 0;
}

/* The segments, and where they are in memory. */
static int learn_segments(struct core_file *file, const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t bias = file->head - (s->vaddr - s->offset);
		struct file_segment code = { s->offset, s->vaddr, s->filesz };

		if (s->type != PT_LOAD || !s->filesz)
			continue;
		if (s->offset < PAGE && !file->has_bias && bias % PAGE == 0) {
			file->has_bias = true;
			file->bias = bias;
		}
		if (s->flags & PF_X && file->segments.nr < SEGMENTS_MAX &&
		    vec_push(&file->segments, code))
			return -ENOMEM;
	}
	return 0;
}

static int learn_from_head(struct core_file *file, const struct elf_data *head)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	uint8_t id[ELF_BUILD_ID_MAX];
	int r = elf_file_open_memory(head->data, head->size, &elf);

	if (r)
		return r == -ENOMEM ? r : 0;
	r = elf_file_build_id(elf, id);
	if (r > 0) {
		memcpy(file->build_id, id, (size_t)r);
		file->build_id_len = (uint8_t)r;
	}
	return r == -ENOMEM ? r : learn_segments(file, elf);
}

/* --- candidates ------------------------------------------------------------------------------ */

/* O_PATH; links stay below the root. */
static int open_path(const char *root, const char *path, int *ret)
{
	_cleanup_close_ int root_fd = -1;
	int fd, r;

	if (!root) {
		fd = open(path, O_PATH | O_CLOEXEC);
	} else {
		root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root_fd < 0)
			return -errno;
		r = open_in_root(root_fd, path, O_PATH, ret);
		if (r != -ENOSYS)
			return r;
		fd = openat(root_fd, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* The path is the core's: nothing but a regular file is opened for reading, others have effects. */
static int open_below(const char *root, const char *path, int *ret)
{
	_cleanup_close_ int path_fd = -1;
	struct stat st;
	int r = open_path(root, path, &path_fd);

	if (r)
		return r;
	if (fstat(path_fd, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	return open_found(path_fd, ret);
}

/* Whether the file's header and program headers are the core's, as far as that has them. */
static bool same_head(const struct elf_file *elf, const struct elf_data *head)
{
	uint8_t own[4096];
	size_t size = sizeof(Elf64_Ehdr);
	Elf64_Ehdr header;

	if (head->size < sizeof(header))
		return true;
	memcpy(&header, head->data, sizeof(header));
	if (header.e_phoff == sizeof(header))
		size += (size_t)header.e_phnum * sizeof(Elf64_Phdr);
	if (size > head->size)
		size = head->size;
	if (size > sizeof(own))
		size = sizeof(own);
	return !elf_file_read(elf, 0, own, size) && !memcmp(own, head->data, size);
}

/* Whether such code of a file's is mapped. gcore lists that only, if nobody wrote to it. */
static bool has_code_at(const struct core_files *files, const struct core_file *file,
			const struct elf_segment *code, uint64_t bias)
{
	uint64_t start = code->vaddr + bias;
	const struct elf_core_segment *s = elf_core_segment_at(files->core, start);
	const struct core_mapping *m = core_files_mapping(files, start);

	if (s)
		return s->flags & PF_X && code->memsz <= s->memsz - (start - s->vaddr);
	return m && &files->items.items[m->file] == file && code->memsz <= m->end - start &&
	       start - m->start + m->offset == code->offset;
}

/* The executable's entry point and program headers are where the auxiliary vector says. */
static bool fits_auxv(const struct core_files *files, const struct core_file *file,
		      const struct elf_file *elf)
{
	const struct elf_core_auxv *a = &files->core->auxv;
	uint64_t bias = a->entry - elf->entry;

	if (!a->entry || !a->phnum)
		return true;
	if (a->phnum != elf->nr_segments || bias & 0xfff || (elf->type == ET_EXEC && bias))
		return false;
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && !has_code_at(files, file, s, bias))
			return false;
	}
	return true;
}

static bool fits_list(const struct core_file *file, const struct elf_file *elf)
{
	const struct elf_segment *dynamic = elf_file_segment(elf, PT_DYNAMIC);

	return !file->is_linked || !file->dynamic ||
	       (dynamic && file->dynamic - file->bias == dynamic->vaddr);
}

static const struct core_mapping *mapping_number(const struct core_files *files, uint32_t number)
{
	return number < files->mappings.nr ? &files->mappings.items[number] : NULL;
}

#define FOR_EACH_MAPPING(files, file, m)                                                           \
	for ((m) = mapping_number((files), (file)->mapping); (m);                                  \
	     (m) = mapping_number((files), (m)->next))

/* Whether each mapping of the file lies in it. */
static bool fits_mappings(const struct core_files *files, const struct core_file *file,
			  const struct elf_file *elf)
{
	const struct core_mapping *m;
	uint8_t byte;

	FOR_EACH_MAPPING(files, file, m)
	if (elf_file_read(elf, m->offset, &byte, 1))
		return false;
	return true;
}

/* NULL: it is the file. Else what is different about it. */
static const char *difference(const struct core_files *files, uint32_t number,
			      const struct elf_file *elf, const struct elf_data *head,
			      bool *ret_verified)
{
	const struct core_file *file = &files->items.items[number];
	uint8_t id[ELF_BUILD_ID_MAX];
	int len;

	if (elf->machine != files->core->machine || (elf->type != ET_EXEC && elf->type != ET_DYN))
		return "it is for another machine";
	if (file->build_id_len) {
		len = elf_file_build_id(elf, id);
		*ret_verified = true;
		return len == file->build_id_len && !memcmp(id, file->build_id, (size_t)len)
			       ? NULL
			       : "its build-id differs from the core's";
	}
	*ret_verified = false;
	if (!same_head(elf, head))
		return "its ELF header differs from the core's";
	if (file->is_exe && !fits_auxv(files, file, elf))
		return "its entry point or segments differ from the core's";
	if (!fits_list(file, elf) || !fits_mappings(files, file, elf))
		return "its segments differ from the core's";
	return NULL;
}

/* 0: it is the one. -ENOENT: it is not there, or none. -ESTALE: it is another one. */
static int try_file(struct core_files *files, uint32_t number, const struct elf_data *head,
		    const char *root, const char *path)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct core_file *file = &files->items.items[number];
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;
	const char *what;
	bool verified;
	int r = open_below(root, path, &fd);

	if (r)
		return -ENOENT;
	r = elf_file_open_fd(fd, &elf);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	fd = -1;
	if (asprintf(&name, "%s%s%s", root ? root : "", root && *path != '/' ? "/" : "", path) <
	    0) {
		name = NULL;
		return -ENOMEM;
	}
	what = difference(files, number, elf, head, &verified);
	if (!what && !verified && file->is_deleted)
		what = "the core's was deleted, and there is no build-id to compare";
	if (what) {
		if (!file->found) {
			file->found = TAKE_PTR(name);
			file->difference = what;
		}
		return -ESTALE;
	}
	free(file->found);
	file->found = TAKE_PTR(name);
	file->elf = TAKE_PTR(elf);
	file->state = verified ? CORE_FILE_VERIFIED : CORE_FILE_UNVERIFIED;
	return 0;
}

/* /usr/lib/debug/.build-id/xx/yyyy: a link to the executable that some distributions ship. */
static int try_build_id(struct core_files *files, uint32_t number, const struct elf_data *head,
			const char *root)
{
	const struct core_file *file = &files->items.items[number];
	char path[64 + 2 * ELF_BUILD_ID_MAX];
	int len;

	if (file->build_id_len < 2)
		return -ENOENT;
	len = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", file->build_id[0]);
	for (int i = 1; i < file->build_id_len; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", file->build_id[i]);
	return try_file(files, number, head, root, path);
}

/* What --exe names. If that is not used, it is said, whatever is found instead. */
static int try_given(struct core_files *files, uint32_t number, const struct elf_data *head,
		     const char *path)
{
	struct core_file *file = &files->items.items[number];
	int r = try_file(files, number, head, NULL, path);

	files->exe_tried = true;
	if (r == -ENOENT)
		log_warn("%s: cannot be read as an ELF file, not used", path);
	if (r != -ESTALE)
		return r;
	log_warn("%s: %s, not used", path, file->difference);
	file->is_said = true;
	return r;
}

static int try_all(struct core_files *files, uint32_t number, const struct elf_data *head,
		   const struct core_search *search)
{
	struct core_file *file = &files->items.items[number];
	const char *root = search->sysroot;
	int r = -ENOENT;

	if (file->is_exe && search->exe) {
		r = try_given(files, number, head, search->exe);
		file->is_given = !r;
	}
	if (r == -ENOENT || r == -ESTALE)
		r = try_file(files, number, head, root, file->path);
	/* Beside the sysroot only what can be told from a namesake. */
	if ((r == -ENOENT || r == -ESTALE) && root && file->build_id_len)
		r = try_file(files, number, head, NULL, file->path);
	if ((r == -ENOENT || r == -ESTALE) && root)
		r = try_build_id(files, number, head, root);
	if (r == -ENOENT || r == -ESTALE)
		r = try_build_id(files, number, head, NULL);
	return r == -ENOENT || r == -ESTALE ? 0 : r;
}

/* --- a file out of the core's own memory ----------------------------------------------------- */

/* Bytes that all mappings of the file reach to; 0: its code is not all in the core. */
static uint64_t memory_size(const struct core_files *files, const struct core_file *file)
{
	const struct core_mapping *m;
	uint64_t size = 0;

	FOR_EACH_MAPPING(files, file, m)
	{
		const struct elf_core_segment *s = elf_core_segment_at(files->core, m->start);
		uint64_t end = m->offset + (m->end - m->start);

		if (end > MEMORY_IMAGE_MAX)
			return 0;
		if (s && s->flags & PF_X && (s->filesz < s->memsz || m->end > s->vaddr + s->memsz))
			return 0;
		if (end > size)
			size = end;
	}
	return size;
}

static void copy_mappings(const struct core_files *files, const struct core_file *file,
			  bool writable, uint8_t *image)
{
	const struct core_mapping *m;

	FOR_EACH_MAPPING(files, file, m)
	{
		const struct elf_core_segment *s = elf_core_segment_at(files->core, m->start);
		uint64_t size = m->end - m->start, there;

		if (!s || !!(s->flags & PF_W) != writable)
			continue;
		there = s->filesz > m->start - s->vaddr ? s->filesz - (m->start - s->vaddr) : 0;
		if (size > there)
			size = there;
		if (elf_core_memory(files->core, files->elf, m->start, image + m->offset, size))
			log_debug("a mapping at 0x%llx cannot be read",
				  (unsigned long long)m->start);
	}
}

static int take_from_memory(struct core_files *files, struct core_file *file, bool has_head)
{
	uint64_t size = has_head ? memory_size(files, file) : 0;

	if (!size)
		return 0;
	file->memory.data = calloc(size, 1);
	if (!file->memory.data)
		return -ENOMEM;
	file->memory.size = size;
	/* A page of the file that is mapped twice: what is read-only is as the file has it. */
	copy_mappings(files, file, true, file->memory.data);
	copy_mappings(files, file, false, file->memory.data);
	file->state = CORE_FILE_MEMORY;
	return 0;
}

int core_file_open(struct core_files *files, uint32_t number, const struct core_search *search)
{
	struct core_file *file = &files->items.items[number];
	struct elf_data head = { 0 };
	bool has_head;
	int r = read_head(files, file->head, &head);

	if (!r && head.data)
		r = learn_from_head(file, &head);
	has_head = head.data;
	if (has_head || file->is_exe)
		file->may_be_data = false;
	if (!r)
		r = try_all(files, number, &head, search);
	free(head.data);
	if (r || file->elf)
		return r;
	if (file->may_be_data) {
		file->state = CORE_FILE_NO_CODE;
		return 0;
	}
	if (file->found) {
		file->state = CORE_FILE_DIFFERS;
		if (!file->is_said)
			log_warn("%s: %s, not used", file->found, file->difference);
	}
	return take_from_memory(files, file, has_head);
}

/* --- all of them ----------------------------------------------------------------------------- */

int core_files_add(struct core_files *files, const char *path, size_t len, uint32_t *ret)
{
	static const char deleted[] = " (deleted)";
	size_t deleted_len = sizeof(deleted) - 1;
	struct core_file file = { .mapping = UINT32_MAX, .state = CORE_FILE_MISSING };
	uint32_t id;
	int r;

	if (len > deleted_len && !memcmp(path + len - deleted_len, deleted, deleted_len)) {
		len -= deleted_len;
		file.is_deleted = true;
	}
	r = strtab_intern(&files->strings, path, len, &id);
	if (r)
		return r;
	file.path = strtab_get(&files->strings, id);
	r = vec_push(&files->items, file);
	if (r)
		return r;
	*ret = (uint32_t)files->items.nr - 1;
	return 0;
}

/*
 * Whether a mapping has code: the core's segments say so. gcore leaves those out of which it keeps
 * nothing, mostly code: *ret_gap.
 */
static bool has_code(const struct elf_core *core, uint64_t start, uint64_t end, bool *ret_gap)
{
	while (start < end) {
		const struct elf_core_segment *s = elf_core_segment_behind(core, start);

		if (!s || s->vaddr > start)
			*ret_gap = true;
		if (!s || s->vaddr >= end)
			return false;
		if (s->flags & PF_X)
			return true;
		start = s->vaddr + s->memsz;
	}
	return false;
}

/* Each file's mappings become a list, in the order of addresses. */
static int add_note_mappings(struct core_files *files, const uint32_t *number_of_path)
{
	const struct elf_core *core = files->core;
	size_t nr = 0;

	if (vec_reserve(&files->mappings, core->mappings.nr))
		return -ENOMEM;
	for (size_t i = 0; i < core->mappings.nr; i++) {
		const struct elf_core_mapping *m = &core->mappings.items[i];

		if (number_of_path[m->path] != UINT32_MAX)
			files->mappings.items[nr++] =
				(struct core_mapping){ m->start, m->end, m->offset,
						       number_of_path[m->path], UINT32_MAX };
	}
	files->mappings.nr = nr;
	while (nr--) {
		struct core_mapping *m = &files->mappings.items[nr];
		struct core_file *file = &files->items.items[m->file];

		m->next = file->mapping;
		file->mapping = (uint32_t)nr;
		if (!m->offset)
			file->head = m->start;
	}
	return 0;
}

/* Where its entry point is; without an auxiliary vector, the lowest: libraries lie higher up. */
static void find_executable(struct core_files *files)
{
	const struct elf_core_auxv *auxv = &files->core->auxv;
	const struct core_mapping *m = core_files_mapping(files, auxv->entry);

	for (size_t i = 0; !auxv->entry && !m && i < files->mappings.nr; i++)
		if (!files->items.items[files->mappings.items[i].file].may_be_data)
			m = &files->mappings.items[i];
	if (m)
		files->items.items[m->file].is_exe = true;
}

/* Of NT_FILE: files with code; the others (locales, data) are no matter here. */
static int find_by_notes(struct core_files *files, const struct core_search *search)
{
	const struct elf_core *core = files->core;
	size_t nr_paths = core->paths.strings.nr;
	_cleanup_free_ uint32_t *number_of_path = malloc((nr_paths + 1) * sizeof(uint32_t));
	int r = 0;

	if (!number_of_path)
		return -ENOMEM;
	memset(number_of_path, 0xff, (nr_paths + 1) * sizeof(uint32_t));
	for (size_t i = 0; i < core->mappings.nr && !r; i++) {
		const struct elf_core_mapping *m = &core->mappings.items[i];
		const char *path = strtab_get(&core->paths, m->path);
		uint32_t *number = &number_of_path[m->path];
		bool gap = false, code = has_code(core, m->start, m->end, &gap);

		if (*path == '/' && *number == UINT32_MAX && (code || gap) &&
		    files->items.nr < CORE_FILES_MAX) {
			r = core_files_add(files, path, strlen(path), number);
			if (!r)
				files->items.items[*number].may_be_data = true;
		}
		if (*number != UINT32_MAX && code)
			files->items.items[*number].may_be_data = false;
	}
	if (!r)
		r = add_note_mappings(files, number_of_path);
	if (!r)
		find_executable(files);
	for (uint32_t i = 0; i < files->items.nr && !r; i++)
		r = core_file_open(files, i, search);
	return r;
}

int core_files_find(struct core_files *files, const struct elf_core *core,
		    const struct elf_file *elf, const struct core_search *search)
{
	int r;

	*files = (struct core_files){ .core = core, .elf = elf };
	r = strtab_init(&files->strings);
	if (!r)
		r = core->has_files ? find_by_notes(files, search)
				    : core_files_find_by_list(files, search);
	if (!r && search->exe && !files->exe_tried)
		log_warn("%s: not used: the core does not say which file was the executable",
			 search->exe);
	if (r)
		core_files_fini(files);
	return r;
}

void core_files_fini(struct core_files *files)
{
	for (size_t i = 0; i < files->items.nr; i++) {
		elf_file_free(files->items.items[i].elf);
		free(files->items.items[i].memory.data);
		free(files->items.items[i].found);
		vec_free(&files->items.items[i].segments);
	}
	vec_free(&files->items);
	vec_free(&files->mappings);
	strtab_fini(&files->strings);
}

const struct core_mapping *core_files_mapping_behind(const struct core_files *files, uint64_t addr)
{
	size_t lo = sorted_before(files->mappings.nr, i, files->mappings.items[i].end <= addr);

	return files->mappings.items + lo;
}

const struct core_mapping *core_files_mapping(const struct core_files *files, uint64_t addr)
{
	const struct core_mapping *m = core_files_mapping_behind(files, addr),
				  *end = files->mappings.items + files->mappings.nr;

	return m < end && m->start <= addr ? m : NULL;
}

bool core_file_has(const struct core_file *file, uint64_t offset, uint32_t flags)
{
	if (!file->elf)
		return false;
	for (size_t i = 0; i < file->elf->nr_segments; i++) {
		const struct elf_segment *s = &file->elf->segments[i];

		/* A mapping begins with its segment's page. */
		if (s->type == PT_LOAD && s->flags & flags && offset >= (s->offset & ~0xfffull) &&
		    offset < s->offset + s->filesz)
			return true;
	}
	return false;
}

int core_files_memory(const struct core_files *files, uint64_t addr, void *buf, size_t size)
{
	const struct elf_core_segment *s = elf_core_segment_at(files->core, addr);
	const struct core_mapping *m;
	const struct core_file *file;
	uint64_t offset;
	int r = elf_core_memory(files->core, files->elf, addr, buf, size);

	if (r != -EFAULT || (s && s->flags & PF_W))
		return r;
	m = core_files_mapping(files, addr);
	if (!m || size > m->end - addr)
		return -EFAULT;
	file = &files->items.items[m->file];
	offset = m->offset + (addr - m->start);
	if (!file->elf || (!s && core_file_has(file, offset, PF_W)))
		return -EFAULT;
	return elf_file_read(file->elf, offset, buf, size) ? -EFAULT : 0;
}
