/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the kernel's memory, by a BPF program that is run for that alone: /proc/kcore is not in
 * every kernel. docs/kernel-stacks.md.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kernel_memory;

/* -EPERM, -EINVAL ...: this kernel does not let us (before 5.10, locked down). */
int kernel_memory_new(struct kernel_memory **ret);
void kernel_memory_free(struct kernel_memory *m);
static inline void kernel_memory_free_p(struct kernel_memory **m)
{
	kernel_memory_free(*m);
}
/* Where the struct task_struct of who asks is; the descriptor of the program that reads. */
int kernel_memory_task(struct kernel_memory *m, uint64_t *ret);
int kernel_memory_program(const struct kernel_memory *m);
/* All of it, or -EFAULT. What `to` holds then is unspecified. */
int kernel_memory_read(struct kernel_memory *m, uint64_t address, void *to, size_t size);
