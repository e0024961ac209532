/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that kernel code is from: vmlinux and its modules, with their build-ids.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_BUILD_ID_MAX = 20, KERNEL_MODULES_MAX = 4096 };

struct kernel_file {
	char name[64];	     /* "[kernel]", "[nf_tables]" */
	uint64_t start, end; /* where it is loaded; 0, 0: not known (the kernel itself) */
	uint8_t build_id[KERNEL_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: not known */
};

struct kernel_image {
	struct kernel_file *files; /* the kernel first, then modules by address */
	size_t nr;
};

/* What /proc/modules and /sys say now. 0 or -ENOMEM; addresses may be hidden from us. */
int kernel_image_read(struct kernel_image *ret);
void kernel_image_fini(struct kernel_image *image);
/* The module that covers `addr`, else the kernel. */
const struct kernel_file *kernel_image_find(const struct kernel_image *image, uint64_t addr);

/* Adds the modules that a text of the form of /proc/modules names; 0 or -ENOMEM. For tests. */
int kernel_image_parse_modules(struct kernel_image *image, const char *text, size_t size);
/* The GNU build-id of a file of ELF notes; its length, 0 if there is none. */
size_t kernel_notes_build_id(const void *notes, size_t size,
			     uint8_t ret[static KERNEL_BUILD_ID_MAX]);
