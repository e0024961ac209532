// SPDX-License-Identifier: Apache-2.0
#include "agent/resolver.h"
#include "elf/elf_symbols.h"
#include "symbol/demangle.h"
#include "symbol/kallsyms.h"
#include "symbol/perf_map.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

int resolver_init(struct resolver *r, struct publisher *publisher, struct profile *profile)
{
	*r = (struct resolver){ .publisher = publisher, .profile = profile };
	return 0;
}

void resolver_fini(struct resolver *r)
{
	vec_free(&r->profile_files);
	vec_free(&r->scratch);
	vec_free(&r->anonymous);
	kernel_image_fini(&r->kernel);
	vec_free(&r->kernel_files);
}

/* The profile's number of a mapped file. */
static int file_number(struct resolver *r, uint32_t index, uint32_t *ret)
{
	const struct mapped_file *file = r->publisher->processes->files.items[index];
	uint32_t *number;
	int err;

	while (r->profile_files.nr <= index) {
		err = vec_push(&r->profile_files, UINT32_MAX);
		if (err)
			return err;
	}
	number = &r->profile_files.items[index];
	if (*number == UINT32_MAX) {
		err = profile_add_file(r->profile, file->path, file->build_id,
				       file->build_id_len <= 20 ? file->build_id_len : 0, number);
		if (err)
			return err;
	}
	*ret = *number;
	return 0;
}

static int add_native(struct resolver *r, const struct resolver_stack *stack, uint64_t addr)
{
	const struct unwind_mapping *m = publisher_mapping(r->publisher, stack->block, addr);
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE, .address = addr };
	bool is_file = m && m->file != MAPPING_ANON && m->file < r->publisher->processes->files.nr;
	size_t known;
	uint32_t id;
	int err;

	if (is_file) {
		frame.address = addr - m->bias;
		unwind_store_touch(r->publisher->store, m->file);
	} else {
		frame.scope = stack->pid; /* the same address is other code in another process */
	}
	if (m)
		err = file_number(r, is_file ? m->file : MAPPING_ANON, &frame.file);
	else
		err = profile_add_file(r->profile, "[unknown]", NULL, 0, &frame.file);
	known = r->profile->frames.nr;
	if (!err)
		err = profile_add_frame(r->profile, &frame, &id);
	if (!err && m && !is_file && id >= known && r->anonymous.nr < ANONYMOUS_FRAMES_MAX)
		err = vec_push(&r->anonymous, (struct anonymous_frame){ stack->pid, id });
	return err ? err : vec_push(&r->scratch, id);
}

/* The profile's number of the kernel, or of the module that has the address. */
static int kernel_file_number(struct resolver *r, uint64_t addr, uint32_t *ret)
{
	const struct kernel_file *file;
	uint32_t *number;
	int err;

	if (!r->kernel_known) {
		err = kernel_image_read(&r->kernel);
		if (err)
			return err;
		r->kernel_known = true;
	}
	file = kernel_image_find(&r->kernel, addr);
	while (r->kernel_files.nr < r->kernel.nr) {
		err = vec_push(&r->kernel_files, UINT32_MAX);
		if (err)
			return err;
	}
	number = &r->kernel_files.items[file - r->kernel.files];
	if (*number == UINT32_MAX) {
		err = profile_add_file(r->profile, file->name, file->build_id, file->build_id_len,
				       number);
		if (err)
			return err;
		r->profile->files.items[*number].start = file->start;
		r->profile->files.items[*number].end = file->end;
	}
	*ret = *number;
	return 0;
}

static int add_kernel(struct resolver *r, uint64_t addr)
{
	struct profile_frame frame = { .kind = FRAME_KIND_KERNEL, .address = addr };
	uint32_t id;
	int err = kernel_file_number(r, addr, &frame.file);

	if (!err)
		err = profile_add_frame(r->profile, &frame, &id);
	return err ? err : vec_push(&r->scratch, id);
}

int resolver_add(struct resolver *r, const struct resolver_stack *stack, uint32_t *ret)
{
	size_t i;
	int err = 0;

	r->scratch.nr = 0;
	for (i = 0; i < stack->nr_kernel && !err; i++)
		/* Callers are return addresses; a call may be its function's last instruction. */
		err = add_kernel(r, stack->kernel[i] - (i > 0));
	for (i = 0; i < stack->nr_words && !err; i += 1 + FRAME_EXTRA(stack->words[i])) {
		if (FRAME_RUNTIME(stack->words[i]) != RUNTIME_NATIVE || !stack->block)
			return -EINVAL;
		err = add_native(r, stack, FRAME_DATA(stack->words[i]));
	}
	if (err)
		return err;
	return profile_add_stack(r->profile, r->scratch.items, r->scratch.nr, stack->stop, ret);
}

/* --- names ----------------------------------------------------------------------------------- */

static void name_of_symbols(struct resolver *r, uint32_t file, const struct elf_symbols *symbols)
{
	struct profile *p = r->profile;
	char name[4096];
	uint32_t i;

	for (i = 0; i < p->frames.nr; i++) {
		const struct profile_frame *frame = &p->frames.items[i];
		const struct elf_symbol *symbol;

		if (frame->kind != FRAME_KIND_NATIVE || frame->file != file || frame->nr_lines)
			continue;
		symbol = elf_symbols_find(symbols, frame->address);
		if (symbol)
			profile_name_frame(p, i, demangle(symbol->name, name, sizeof(name)));
	}
}

static void name_file(struct resolver *r, const struct mapped_file *file, uint32_t number)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_symbols symbols;
	int err = mapped_file_elf(file, &elf);

	if (!err)
		err = elf_symbols_read(elf, &symbols);
	if (err) {
		log_debug("no symbols of %s: %s", file->path, strerror(-err));
		return;
	}
	name_of_symbols(r, number, &symbols);
	elf_symbols_fini(&symbols);
}

static int name_kernel(struct resolver *r)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	struct profile *p = r->profile;
	const char *name, *module;
	uint32_t i;
	int err;

	for (i = 0; i < p->frames.nr && p->frames.items[i].kind != FRAME_KIND_KERNEL; i++)
		;
	if (i == p->frames.nr)
		return 0;
	err = kallsyms_read(&k);
	if (err)
		return err;
	for (; i < p->frames.nr; i++) {
		const struct profile_frame *frame = &p->frames.items[i];

		if (frame->kind != FRAME_KIND_KERNEL)
			continue;
		name = kallsyms_find(k, frame->address, &module);
		if (name)
			profile_name_frame(p, i, name);
	}
	return 0;
}

/* Names those of process `pid` that its perf map knows; drops them from the list. */
static void name_by_map(struct resolver *r, uint32_t pid, const struct perf_map *map)
{
	size_t i, kept = 0;

	for (i = 0; i < r->anonymous.nr; i++) {
		struct anonymous_frame a = r->anonymous.items[i];
		const char *name = NULL;

		if (a.pid == pid)
			name = perf_map_find(map, r->profile->frames.items[a.frame].address);
		if (name)
			profile_name_frame(r->profile, a.frame, name);
		else
			r->anonymous.items[kept++] = a;
	}
	r->anonymous.nr = kept;
}

void resolver_name_anonymous(struct resolver *r)
{
	struct map tried = { 0 };
	size_t i = 0;

	while (i < r->anonymous.nr) {
		_cleanup_(perf_map_free_p) struct perf_map *map = NULL;
		uint32_t pid = r->anonymous.items[i].pid;

		if (map_get(&tried, pid) || map_put(&tried, pid, 1) ||
		    perf_map_read((int)pid, &map)) {
			i++;
			continue;
		}
		name_by_map(r, pid, map);
		i = 0;
	}
	map_fini(&tried);
}

int resolver_name_all(struct resolver *r)
{
	uint32_t index;
	int err = name_kernel(r);

	if (err)
		log_debug("no kernel symbols: %s", strerror(-err));
	for (index = 0; index < r->profile_files.nr; index++) {
		const struct mapped_file *file = r->publisher->processes->files.items[index];
		uint32_t number = r->profile_files.items[index];

		if (number != UINT32_MAX && file->state == FILE_OPEN && file->is_elf)
			name_file(r, file, number);
	}
	resolver_name_anonymous(r);
	return 0;
}
