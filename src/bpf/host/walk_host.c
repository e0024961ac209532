// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The host's side of the walker: see walk_host.h. */
#include "bpf/host/bpf_host.h"
#include "bpf/host/walk_host.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

static _Thread_local struct {
	struct walk *walk;
	const struct walk_tables *tables;
	const struct walk_memory *memory;
	struct cached_rule no_cache, no_leaf, no_caller, *callers, *rules, *leaves;
	__u64 leaf_pc; /* that `no_leaf` is of */
	__u32 *places;
	__u32 walkers_off;
	const struct walk_kernel *kernel;
	const struct walk_known_rule *known;
	__u32 nr_known;
	const struct anon_page *anon;
	const struct walk_input *input;
	struct unwind_rule elsewhere; /* what walk_input.elsewhere said last */
} current;

/* Its number. */
enum { RULE_ELSEWHERE = UNWIND_RULES_MAX };

int walk_user_x86_64(void);
int walk_user_aarch64(void);
int walk_kernel_rows_x86_64(void);

struct walk *current_walk(void)
{
	return current.walk;
}

const struct unwind_file *file_at(__u32 index)
{
	return index < current.tables->nr_files ? &current.tables->files[index] : NULL;
}

int row_elsewhere(__u32 file, __u64 addr)
{
	const struct walk_input *in = current.input;

	return in->elsewhere && !in->elsewhere(in->elsewhere_ctx, file, addr, &current.elsewhere)
		       ? RULE_ELSEWHERE
		       : -STOP_FILE_PENDING;
}

const struct unwind_rule *rule_at(__u32 index)
{
	if (index == RULE_ELSEWHERE)
		return &current.elsewhere;
	for (__u32 i = 0; index == RULE_FRAME_POINTER && i < current.nr_known; i++)
		if (current.known[i].pc == current.walk->pc)
			return &current.known[i].rule;
	return index < current.tables->nr_rules ? &current.tables->rules[index] : NULL;
}

const struct anon_page *anon_page_of(const struct walk *w)
{
	(void)w;
	return current.anon;
}

const struct arena_segment *arena_segment_of(__u32 cell)
{
	__u32 segment = cell >> ARENA_SEGMENT_SHIFT;

	return segment < current.tables->nr_segments ? current.tables->segments[segment] : NULL;
}

/* Mostly no caches here: entries that are empty for each frame, which asks for its own more than
 * once. */
struct cached_rule *rule_cache_at(const struct walk *w, __u32 slot)
{
	if (current.rules)
		return &current.rules[slot & (RULE_CACHE_ENTRIES - 1)];
	if (current.no_cache.pc != w->pc)
		current.no_cache = (struct cached_rule){ 0 };
	return &current.no_cache;
}

struct cached_rule *leaf_cache_at(const struct walk *w, __u32 slot)
{
	if (current.leaves)
		return &current.leaves[slot & (LEAF_CACHE_ENTRIES - 1)];
	if (current.leaf_pc != w->pc)
		current.no_leaf = (struct cached_rule){ 0 };
	current.leaf_pc = w->pc;
	return &current.no_leaf;
}

struct cached_rule *caller_cache_at(const struct walk *w)
{
	if (current.callers)
		return &current.callers[w->caller_slot & (CALLER_CACHE_ENTRIES - 1)];
	if (current.no_caller.pc != w->pc)
		current.no_caller = (struct cached_rule){ 0 };
	return &current.no_caller;
}

struct cached_rule *host_caller_from(__u32 slot)
{
	return current.callers ? &current.callers[slot & (CALLER_CACHE_ENTRIES - 1)] : NULL;
}

__u32 *caller_place_at(const struct walk *w, __u32 slot)
{
	(void)w;
	return current.places ? &current.places[slot & (CALLER_PLACES - 1)] : NULL;
}

__u64 *walk_words(struct walk *w)
{
	return w->words;
}

__u64 walk_thread_pointer(struct walk *w)
{
	return w->thread_pointer;
}

__u32 walkers_off(void)
{
	return current.walkers_off;
}

/* What the walker reads so is its own: the tables. */
long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	const struct walk_memory *memory = current.memory;
	bool stack = to == current.walk->window && memory->read_stack;
	long r = (stack ? memory->read_stack : memory->read)(memory->ctx, (__u64)(uintptr_t)from,
							     to, size);

	if (r)
		memset(to, 0, size); /* as the kernel does */
	return r;
}

int walk_host(const struct walk_tables *tables, const struct walk_memory *memory,
	      const struct walk_input *input, struct walk *w)
{
	__u32 caller_next = input->callers ? w->caller_next : 0;
	bool a64 = input->machine == EM_AARCH64;
	int stop;

	memset(w, 0, offsetof(struct walk, words));
	w->caller_next = w->caller_first = caller_next;
	w->pc = input->pc;
	memcpy(w->regs, input->regs, sizeof(w->regs));
	w->valid = input->valid ? input->valid : a64 ? ~0u : 0xffff;
	w->kept = w->valid;
	w->runtime = RUNTIME_NATIVE;
	w->interrupted = 1;
	w->process = input->process;
	w->max_frames = input->max_frames;
	w->address_mask = input->address_mask ? input->address_mask : (1ull << 48) - 1;
	w->full.generation = input->process.generation;
	w->thread_pointer = input->thread_pointer;
	w->late = input->late;
	w->may_ask = input->may_ask;
	w->deep = input->deep;
	current.no_cache = current.no_leaf = current.no_caller = (struct cached_rule){ 0 };
	current.callers = input->callers;
	current.places = input->places;
	current.rules = input->rules;
	current.leaves = input->leaves;
	current.known = input->known;
	current.nr_known = input->nr_known;
	current.anon = input->anon;
	current.input = input;
	current.walkers_off = input->walkers_off;
	current.walk = w;
	current.tables = tables;
	current.memory = memory;
	stop = a64 ? walk_user_aarch64() : walk_user_x86_64();
	current.walk = NULL;
	return stop > 0 && stop < STOP_MAX_ ? stop : STOP_INTERNAL;
}

/* --- the kernel's stack ----------------------------------------------------------------------- */

int kernel_cell(__u32 cell, __u32 *ret)
{
	if (cell >= current.kernel->nr_cells)
		return -1;
	*ret = current.kernel->cells[cell];
	return 0;
}

const struct kernel_code *kernel_code_of(__u64 pc)
{
	const struct kernel_code *code = &current.kernel->code;

	return pc - code->start < code->size ? code : NULL;
}

struct kernel_cache *kernel_cache_of(const struct walk *w)
{
	return current.kernel->cache;
}

const struct kernel_mades *kernel_mades(void)
{
	return current.kernel->mades;
}

long read_kernel_stack(void *to, __u32 size, __u64 from)
{
	return current.memory->read(current.memory->ctx, from, to, size);
}

int walk_host_kernel(const struct walk_kernel *kernel, const struct walk_memory *memory, __u64 pc,
		     __u64 sp, __u64 fp, struct walk *w)
{
	int end;

	memset(&w->kernel, 0, sizeof(w->kernel));
	w->kernel.pc = pc;
	w->kernel.sp = sp;
	w->kernel.fp = fp;
	current.walk = w;
	current.memory = memory;
	current.kernel = kernel;
	end = walk_kernel_rows_x86_64();
	current.walk = NULL;
	return end;
}
