/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walker's doubles for user space: what bpf_helpers.h, access.bpf.h and arena.bpf.h give it in
 * the kernel. Included through bpf/prelude.bpf.h by the host build of the walker only; who wants to
 * call the walker includes bpf/host/walk_host.h.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline	__attribute__((noinline))
#define barrier_var(v)	((void)(v))
#define barrier()	((void)0)
#define UNROLL
#define WALK_WORDS __u64 words[SAMPLE_MAX_KERNEL_FRAMES + 1 + SAMPLE_WORDS_MAX];

#define WALK_PASTE_(name, arch) name##_##arch
#define WALK_PASTE(name, arch)	WALK_PASTE_(name, arch)
#if defined(__TARGET_ARCH_x86)
#define WALK_NAME(name) WALK_PASTE(name, x86_64)
#else
#define WALK_NAME(name) WALK_PASTE(name, aarch64)
#endif

struct walk;
struct arena_segment;
struct unwind_file;
struct unwind_rule;
struct anon_page;
struct cached_rule;
struct kernel_cache;
struct kernel_code;
struct kernel_mades;

/* The walk of this thread: see walk_host.c. */
struct walk *current_walk(void);
const struct unwind_file *file_at(__u32 index);
int row_elsewhere(__u32 file, __u64 addr);
const struct unwind_rule *rule_at(__u32 index);
const struct anon_page *anon_page_of(const struct walk *w);
const struct arena_segment *arena_segment_of(__u32 cell);
struct cached_rule *rule_cache_at(const struct walk *w, __u32 slot);
struct cached_rule *leaf_cache_at(const struct walk *w, __u32 slot);
struct cached_rule *caller_cache_at(const struct walk *w);
struct cached_rule *host_caller_from(__u32 slot);
__u32 *caller_place_at(const struct walk *w, __u32 slot);
/* The caches lie elsewhere, or nowhere: these find them. */
#define rule_cache_of(w)	 ((struct rule_cache *)(w))
#define entry_in(cache, w, slot) ((void)(cache), rule_cache_at(w, slot))
#define leaf_in(cache, w, slot)	 ((void)(cache), leaf_cache_at(w, slot))
#define caller_in(cache, w)	 ((void)(cache), caller_cache_at(w))
#define caller_from(cache, slot) ((void)(cache), host_caller_from(slot))
#define callers_at(w, slot)	 ((void)(w), host_caller_from(slot))
__u64 *walk_words(struct walk *w);
__u64 walk_thread_pointer(struct walk *w);
__u32 walkers_off(void);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
long bpf_probe_read_user(void *to, __u32 size, const void *from);
/* Of the walk of the kernel's stack. */
int kernel_cell(__u32 cell, __u32 *ret);
const struct kernel_code *kernel_code_of(__u64 pc);
struct kernel_cache *kernel_cache_of(const struct walk *w);
const struct kernel_mades *kernel_mades(void);
long read_kernel_stack(void *to, __u32 size, __u64 from);
