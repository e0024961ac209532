/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF images by which programs tell GDB of code that they have made (docs/gdb-jit.md): what
 * their call frame information says of one address. They are the profiled process's, who may lie.
 */
#pragma once

#include "abi/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image as it was read, and the memory that it is of. */
struct jit_image {
	const void *bytes;
	size_t size;
	int (*read)(void *ctx, __u64 addr, void *to, __u32 size); /* all, or negative errno */
	void *ctx;
	size_t *left; /* bytes of sections that may be read yet */
};

enum { JIT_NAME_MAX = 1024 }; /* a longer name is cut */

/* What is said of an address: by an entry for the code [start, end). */
struct jit_code {
	uint64_t start, end;
	bool all; /* the rule is that of all of this code */
	struct unwind_rule rule;
};

/*
 * The rule at `pc`: 0, or -ENOENT if there is none, or one that the walker can't use, or that says
 * anything but where the caller's frame and return address are.
 */
int jit_image_find(const struct jit_image *image, uint16_t machine, uint64_t pc,
		   struct jit_code *ret);
/*
 * The name of the function that has `pc`: 0 or -ENOENT. Object files' symbols are not read: what
 * addresses they have once loaded is not in them.
 */
int jit_image_name(const struct jit_image *image, uint16_t machine, uint64_t pc,
		   char ret[static JIT_NAME_MAX]);
/* From the lowest to the highest address that it has entries for: 0 or -ENOENT. */
int jit_image_range(const struct jit_image *image, uint16_t machine, uint64_t *ret_start,
		    uint64_t *ret_end);
