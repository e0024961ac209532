// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_code.h"
#include "kernel/kernel_memory.h"
#include "util/cleanup.h"
#include "util/vec.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	KSYM_NAME = 16,	     /* of struct bpf_ksym, where */
	NAME_LEN = 16,	     /* so much of it is read */
	FUNCTIONS_MAX = 256, /* of a program (BPF_MAX_SUBPROGS) */
	MODULE_SIZE_MAX = 64 << 20,
	MODULE_ENTRIES_MAX = 1 << 20, /* as far as the walker searches */
};

/* A function of the program of that id. */
struct known_function {
	uint32_t id;
	struct kernel_made made;
};

struct known_functions {
	struct known_function *items;
	size_t nr, cap;
};

struct kernel_code_list {
	struct kernel_code_layout layout;
	struct kernel_memory *memory;
	uint64_t files; /* our descriptors: an array of struct file * */
	/* Of programs that were there at the last look; at the one that goes on: by id. */
	struct known_functions known, next;
	uint64_t nr_read; /* programs, in all looks */
};

/* --- layout ----------------------------------------------------------------------------------- */

static const struct btf_type *struct_of(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	return t && btf_is_composite(t) ? t : NULL;
}

static const struct btf_type *named_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id < 0 ? NULL : struct_of(btf, (uint32_t)id);
}

/* Where `name` is, also within members that have none; its type. False: there is none. */
static bool find_member(const struct btf *btf, const struct btf_type *t, const char *name,
			int depth, uint32_t *ret_at, uint32_t *ret_type)
{
	for (uint32_t i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *its = btf__name_by_offset(btf, m->name_off);
		uint32_t at = btf_member_bit_offset(t, i) / 8;

		if (its && !strcmp(its, name)) {
			*ret_at = at;
			*ret_type = m->type;
			return true;
		}
		if (its && !*its && depth &&
		    find_member(btf, struct_of(btf, m->type), name, depth - 1, ret_at, ret_type)) {
			*ret_at += at;
			return true;
		}
	}
	return false;
}

static bool offset_of(const struct btf *btf, const char *type, const char *member, uint32_t *ret)
{
	uint32_t ignored;

	return find_member(btf, named_struct(btf, type), member, 4, ret, &ignored);
}

/* A member of a struct, or of the first of an array of structs, that is itself a member. */
static bool offset_in(const struct btf *btf, const char *type, const char *member,
		      const char *inner, uint32_t *ret)
{
	const struct btf_type *t;
	uint32_t at, within, id, ignored;

	if (!find_member(btf, named_struct(btf, type), member, 4, &at, &id))
		return false;
	t = btf__type_by_id(btf, id);
	t = struct_of(btf, t && btf_is_array(t) ? btf_array(t)->type : id);
	if (!find_member(btf, t, inner, 4, &within, &ignored))
		return false;
	*ret = at + within;
	return true;
}

/* The text of a module: module_memory since 6.4 (its first is MOD_TEXT), module_layout before. */
static bool module_layout_of(const struct btf *btf, struct kernel_code_layout *l)
{
	uint32_t nr, ips, entries;

	if (!offset_of(btf, "mod_arch_specific", "num_orcs", &nr) ||
	    !offset_of(btf, "mod_arch_specific", "orc_unwind_ip", &ips) ||
	    !offset_of(btf, "mod_arch_specific", "orc_unwind", &entries) || ips != nr + 8 ||
	    entries != nr + 16 || !offset_of(btf, "module", "list", &l->module_link) ||
	    !offset_in(btf, "module", "arch", "num_orcs", &l->module_arch))
		return false;
	return (offset_in(btf, "module", "mem", "base", &l->module_base) &&
		offset_in(btf, "module", "mem", "size", &l->module_size)) ||
	       (offset_in(btf, "module", "core_layout", "base", &l->module_base) &&
		offset_in(btf, "module", "core_layout", "text_size", &l->module_size));
}

int kernel_code_layout_of(const struct btf *btf, uint64_t modules, struct kernel_code_layout *ret)
{
	struct kernel_code_layout l = { .modules = modules };
	uint32_t start, end, name;

	if (!offset_of(btf, "task_struct", "files", &l.task_files) ||
	    !offset_of(btf, "files_struct", "fdt", &l.files_fdt) ||
	    !offset_of(btf, "fdtable", "fd", &l.fdt_fd) ||
	    !offset_of(btf, "file", "private_data", &l.file_private) ||
	    !offset_of(btf, "bpf_prog", "aux", &l.prog_aux) ||
	    !offset_of(btf, "bpf_prog_aux", "ksym", &l.aux_ksym) ||
	    !offset_of(btf, "bpf_prog_aux", "func", &l.aux_functions) ||
	    !offset_of(btf, "bpf_prog_aux", "func_cnt", &l.aux_nr_functions) ||
	    !offset_of(btf, "bpf_ksym", "lnode", &l.ksym_link) ||
	    !offset_of(btf, "bpf_ksym", "start", &start) ||
	    !offset_of(btf, "bpf_ksym", "end", &end) ||
	    !offset_of(btf, "bpf_ksym", "name", &name) || start != 0 || end != 8 || name != 16)
		return -ENOENT;
	if (!module_layout_of(btf, &l))
		l.modules = 0;
	*ret = l;
	return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_word(struct kernel_code_list *l, uint64_t at, uint64_t *ret)
{
	return kernel_memory_read(l->memory, at, ret, sizeof(*ret));
}

/* The struct bpf_prog_aux of a program that we have a descriptor of. */
static int read_aux(struct kernel_code_list *l, int fd, uint64_t *ret)
{
	uint64_t at;
	int r = read_word(l, l->files + 8 * (uint64_t)fd, &at);

	if (!r)
		r = read_word(l, at + l->layout.file_private, &at);
	if (!r)
		r = read_word(l, at + l->layout.prog_aux, &at);
	if (!r)
		*ret = at;
	return r;
}

/* The table of descriptors may have moved since. */
static int find_files(struct kernel_code_list *l)
{
	uint64_t at;
	int r = kernel_memory_task(l->memory, &at);

	if (!r)
		r = read_word(l, at + l->layout.task_files, &at);
	if (!r)
		r = read_word(l, at + l->layout.files_fdt, &at);
	return r ? r : read_word(l, at + l->layout.fdt_fd, &l->files);
}

/* Are offsets what we take them for? The program that reads for us has a name that we know. */
static int check_layout(struct kernel_code_list *l)
{
	char name[NAME_LEN] = "";
	uint64_t aux;
	int r = find_files(l);

	if (!r)
		r = read_aux(l, kernel_memory_program(l->memory), &aux);
	if (!r)
		r = kernel_memory_read(l->memory, aux + l->layout.aux_ksym + KSYM_NAME, name,
				       sizeof(name));
	if (r)
		return r;
	/* "bpf_prog_", its tag and its name; a program that is not compiled has none. */
	return strncmp(name, "bpf_prog_", strlen("bpf_prog_")) == 0 ? 0 : -ENOENT;
}

int kernel_code_list_new(const struct kernel_code_layout *layout, struct kernel_code_list **ret)
{
	_cleanup_(kernel_code_list_free_p) struct kernel_code_list *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->layout = *layout;
	r = kernel_memory_new(&l->memory);
	if (!r)
		r = check_layout(l);
	if (!r)
		*ret = TAKE_PTR(l);
	return r;
}

void kernel_code_list_free(struct kernel_code_list *l)
{
	if (!l)
		return;
	kernel_memory_free(l->memory);
	vec_free(&l->known);
	vec_free(&l->next);
	free(l);
}

static bool looks_like_code(const struct kernel_made *m)
{
	return m->start >> 32 == 0xffffffff && m->end > m->start &&
	       m->end - m->start <= MODULE_SIZE_MAX;
}

static void keep(struct kernel_mades *to, const struct kernel_made *m)
{
	if (looks_like_code(m) && to->nr < KERNEL_MADE_MAX)
		to->items[to->nr++] = *m;
}

/* A function of program `id`, which has a struct bpf_prog_aux of its own. */
static int read_function(struct kernel_code_list *l, uint32_t id, uint64_t aux)
{
	uint64_t ksym = aux + l->layout.aux_ksym;
	struct kernel_made m = { .link = ksym + l->layout.ksym_link,
				 .proof_at = ksym,
				 .kind = KERNEL_MADE_BPF };
	int r = kernel_memory_read(l->memory, ksym, m.proof, sizeof(m.proof));

	m.start = m.proof[0];
	m.end = m.proof[1];
	if (!r && looks_like_code(&m))
		r = l->next.nr < KERNEL_MADE_MAX
			    ? vec_push(&l->next, ((struct known_function){ id, m }))
			    : -ENOSPC;
	return r;
}

static int read_program(struct kernel_code_list *l, uint32_t id, int fd)
{
	uint64_t aux, functions, at;
	uint32_t nr = 0;
	int r = read_aux(l, fd, &aux);

	if (!r)
		r = kernel_memory_read(l->memory, aux + l->layout.aux_nr_functions, &nr,
				       sizeof(nr));
	if (!r && !nr)
		return read_function(l, id, aux);
	if (!r)
		r = read_word(l, aux + l->layout.aux_functions, &functions);
	for (uint32_t i = 0; !r && i < nr && i < FUNCTIONS_MAX; i++) {
		r = read_word(l, functions + 8 * (uint64_t)i, &at);
		if (!r)
			r = read_word(l, at + l->layout.prog_aux, &at);
		if (!r)
			r = read_function(l, id, at);
	}
	return r;
}

/* Is program `id` known? *at: its place in `known`, where those of lower ids are done with. */
static bool keep_known(struct kernel_code_list *l, uint32_t id, size_t *at)
{
	const struct known_functions *known = &l->known;
	bool is_known = false;

	for (; *at < known->nr && known->items[*at].id <= id; ++*at) {
		if (known->items[*at].id < id)
			continue;
		is_known = true;
		if (vec_push(&l->next, known->items[*at]))
			break;
	}
	return is_known;
}

/* One that is not read as a whole is left out, and read again at the next look. */
static void read_new_program(struct kernel_code_list *l, uint32_t id)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
	size_t nr = l->next.nr;

	l->nr_read++;
	/* A descriptor of a number like that is new to our table. */
	if (fd < 0 || find_files(l) || read_program(l, id, fd))
		l->next.nr = nr;
}

/*
 * All that one may see. What cannot be read is the helper's. Who has given up CAP_SYS_ADMIN may not
 * ask any more: what he knew is still proved at each use. A program that was listed before is not
 * read again: ids come in their order, and none comes a second time (bpf_prog_alloc_id()) before
 * two billions of others.
 */
static void read_programs(struct kernel_code_list *l)
{
	struct known_functions before = l->known;
	size_t at = 0;
	uint32_t id = 0;

	if (bpf_prog_get_next_id(id, &id))
		return;
	id = 0;
	l->next.nr = 0;
	for (int i = 0; i < KERNEL_MADE_MAX && !bpf_prog_get_next_id(id, &id); i++)
		if (!keep_known(l, id, &at))
			read_new_program(l, id);
	l->known = l->next;
	l->next = before;
}

static int read_module(struct kernel_code_list *l, uint64_t link, struct kernel_made *ret)
{
	const struct kernel_code_layout *o = &l->layout;
	uint64_t module = link - o->module_link;
	struct kernel_made m = { .link = link,
				 .proof_at = module + o->module_arch,
				 .kind = KERNEL_MADE_MODULE };
	uint64_t start = 0;
	uint32_t size = 0;
	int r = kernel_memory_read(l->memory, m.proof_at, m.proof, sizeof(m.proof));

	if (!r)
		r = read_word(l, module + o->module_base, &start);
	if (!r)
		r = kernel_memory_read(l->memory, module + o->module_size, &size, sizeof(size));
	m.start = start;
	m.end = start + size;
	/* Without entries it is the helper's. */
	if (!m.proof[1] || !m.proof[2] || (uint32_t)m.proof[0] > MODULE_ENTRIES_MAX)
		m.end = m.start;
	*ret = m;
	return r;
}

/* Along their list, until it comes round to its head, while others may change it. */
static void read_modules(struct kernel_code_list *l, struct kernel_mades *to)
{
	uint64_t link = l->layout.modules;
	struct kernel_made m;

	for (int i = 0; i < KERNEL_MADE_MAX; i++) {
		if (read_word(l, link, &link) || link == l->layout.modules)
			return;
		if (!read_module(l, link, &m))
			keep(to, &m);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct kernel_made *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void kernel_code_list_read(struct kernel_code_list *l, struct kernel_mades *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->orc = l->layout.orc;
	if (l->layout.modules)
		read_modules(l, ret);
	read_programs(l);
	for (size_t i = 0; i < l->known.nr; i++)
		keep(ret, &l->known.items[i].made);
	qsort(ret->items, ret->nr, sizeof(ret->items[0]), by_start);
}

uint64_t kernel_code_list_nr_read(const struct kernel_code_list *l)
{
	return l->nr_read;
}
