/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's code that comes and goes, for the walk of its stack (abi/kernel_rows.h): of BPF
 * programs that can be listed, and of modules. Where each is listed in the kernel is read from its
 * memory, item by item, while that changes: what is wrong with it, who walks finds out. Trampolines
 * are not in it.
 */
#pragma once

#include "abi/kernel_rows.h"

#include <stdbool.h>
#include <stdint.h>

struct btf;

/* Where things are in the kernel's structs, in bytes. */
struct kernel_code_layout {
	/* From a task to what its file descriptor is: a BPF program. */
	uint32_t task_files, files_fdt, fdt_fd, file_private, prog_aux, aux_ksym;
	uint32_t aux_functions, aux_nr_functions;
	uint32_t ksym_link; /* its begin and end, and its name, are at 0, 8, 16 */
	/* Of a module, if there are any: `modules` is not 0, the head of their list. */
	uint32_t module_link, module_arch, module_base, module_size;
	uint64_t modules;
	struct orc_layout orc;
};

/* By the kernel's BTF. -ENOENT: it is not as it was when this was written. `modules`: what kallsyms
 * says, 0: nothing, and no module is listed. */
int kernel_code_layout_of(const struct btf *btf, uint64_t modules, struct kernel_code_layout *ret);

struct kernel_code_list;

int kernel_code_list_new(const struct kernel_code_layout *layout, struct kernel_code_list **ret);
void kernel_code_list_free(struct kernel_code_list *l);
static inline void kernel_code_list_free_p(struct kernel_code_list **l)
{
	kernel_code_list_free(*l);
}
/* What there is now. What does not fit is left out, and so may be what changes meanwhile. */
void kernel_code_list_read(struct kernel_code_list *l, struct kernel_mades *ret);
/* How many programs were read for that: one that stays is read once. */
uint64_t kernel_code_list_nr_read(const struct kernel_code_list *l);
