/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the walker reaches its state, its tables and the process's memory in the kernel. The host's
 * doubles of these functions are in bpf/host/bpf_host.h.
 */
#pragma once

#include "bpf/walk.bpf.h"

#ifdef __bpf__
#include "bpf/maps.bpf.h"

static __always_inline struct walk *current_walk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

static __always_inline struct walk_record *record_at(const struct walk *w)
{
	__u32 cpu = w->cpu;

	return bpf_map_lookup_elem(&records, &cpu);
}

/* The words of the record: kernel frames, then user frames. */
static __always_inline __u64 *walk_words(const struct walk *w)
{
	struct walk_record *r = record_at(w);

	return r ? r->words : NULL;
}

/* The thread's pointer to its thread-local storage; 0: not known. */
static __always_inline __u64 walk_thread_pointer(struct walk *w)
{
	struct task_struct *task;

	if (!w->thread_pointer) {
		task = (void *)bpf_get_current_task();
#if defined(__TARGET_ARCH_x86)
		w->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
#else
		w->thread_pointer = BPF_CORE_READ(task, thread.uw.tp_value);
#endif
	}
	return w->thread_pointer;
}

static __always_inline const struct unwind_file *file_at(__u32 index)
{
	return bpf_map_lookup_elem(&files, &index);
}

/* What is known of the functions in no file around walk->pc; NULL: nothing. */
static __always_inline const struct anon_page *anon_page_of(const struct walk *w)
{
	struct anon_page_key key = { w->mm, w->pc >> ANON_PAGE_SHIFT };

	return bpf_map_lookup_elem(&anon_pages, &key);
}

/* The rule of an address of a file whose table is not loaded: a number, or a negative stop. */
static __always_inline int row_elsewhere(__u32 file, __u64 addr)
{
	(void)file;
	(void)addr;
	return -STOP_FILE_PENDING;
}

static __always_inline const struct unwind_rule *rule_at(__u32 index)
{
	return bpf_map_lookup_elem(&rules, &index);
}

static __always_inline struct rule_cache *rule_cache_of(const struct walk *w)
{
	__u32 cpu = w->cpu;

	return bpf_map_lookup_elem(&rule_caches, &cpu);
}

static __always_inline struct cached_rule *entry_in(struct rule_cache *cache, const struct walk *w,
						    __u32 slot)
{
	(void)w;
	/* Else clang adds before it checks. */
	barrier_var(slot);
	return &cache->entries[slot & (RULE_CACHE_ENTRIES - 1)];
}

static __always_inline struct cached_rule *leaf_in(struct rule_cache *cache, const struct walk *w,
						   __u32 slot)
{
	(void)w;
	barrier_var(slot);
	return &cache->leaves[slot & (LEAF_CACHE_ENTRIES - 1)];
}

/* Of the frame at `slot`. */
static __always_inline struct cached_rule *caller_from(struct rule_cache *cache, __u32 slot)
{
	barrier_var(slot);
	return &cache->callers[slot & (CALLER_CACHE_ENTRIES - 1)];
}

/* Of a frame that was not interrupted. */
static __always_inline struct cached_rule *caller_in(struct rule_cache *cache, const struct walk *w)
{
	return caller_from(cache, w->caller_slot);
}

static __always_inline struct cached_rule *rule_cache_at(const struct walk *w, __u32 slot)
{
	struct rule_cache *cache = rule_cache_of(w);

	return cache ? entry_in(cache, w, slot) : NULL;
}

static __always_inline struct cached_rule *leaf_cache_at(const struct walk *w, __u32 slot)
{
	struct rule_cache *cache = rule_cache_of(w);

	return cache ? leaf_in(cache, w, slot) : NULL;
}

static __always_inline struct cached_rule *callers_at(const struct walk *w, __u32 slot)
{
	struct rule_cache *cache = rule_cache_of(w);

	return cache ? caller_from(cache, slot) : NULL;
}

static __always_inline __u32 *caller_place_at(const struct walk *w, __u32 slot)
{
	struct rule_cache *cache = rule_cache_of(w);

	barrier_var(slot);
	return cache ? &cache->places[slot & (CALLER_PLACES - 1)] : NULL;
}

static __always_inline struct cached_rule *caller_cache_at(const struct walk *w)
{
	return callers_at(w, w->caller_slot);
}

static __always_inline struct kernel_cache *kernel_cache_of(const struct walk *w)
{
	__u32 cpu = w->cpu;

	return bpf_map_lookup_elem(&kernel_caches, &cpu);
}

static __always_inline const struct kernel_mades *kernel_mades(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&kernel_made, &zero);
}

static __always_inline long read_kernel_stack(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_kernel(to, size, (const void *)from);
}

/* Bit N: runtime N has no walker, and will have none. */
static __always_inline __u32 walkers_off(void)
{
	return *(volatile __u32 *)&runtimes_off;
}
#endif
