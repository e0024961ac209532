/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code of an interpreter's loop, as far as it has to be looked at: its bytes, and the part
 * of it that the compiler put elsewhere. x86-64 and aarch64.
 */
#pragma once

#include "elf/elf_file.h"
#include "runtime/runtime.h"

/* Code of one range. */
struct loop_code {
	uint8_t *bytes;
	size_t size;
	uint64_t start;
	bool arm;
};

/* 0; -ENOENT: it can't be read, or is larger than any loop; -ENOMEM. */
int loop_code_read(const struct elf_file *elf, const struct code_range *range,
		   struct loop_code *ret);
void loop_code_fini(struct loop_code *c);
/* 32 bits `at` bytes from its begin, which must be there. */
uint32_t loop_code_word(const struct loop_code *c, size_t at);

/* A function, as unwind information has it. */
struct loop_fde {
	struct code_range range;
	uint32_t jumps; /* private */
};
struct loop_fdes {
	VEC(struct loop_fde) all; /* by address; free it */
};

/* 0; -ENOENT: there are none to be read; -ENOMEM. */
int loop_fdes_read(const struct elf_file *elf, struct loop_fdes *fdes);
/* The one that `addr` is in, or NULL. */
struct loop_fde *loop_fde_of(struct loop_fdes *fdes, uint64_t addr);

/*
 * The cold part of the function at `hot` (-freorder-blocks-and-partition; stripped files do not
 * name it): what unwind information knows as another function, but `hot` jumps into it and it jumps
 * back. 0, or -ENOENT, -ENOMEM.
 */
int runtime_find_cold(const struct elf_file *elf, const struct code_range *hot,
		      struct code_range *ret);
/* Adds the cold part of the dso's loop to its interpreter functions, if there is one loop and one
 * such part that no symbol names. 0, or -ENOMEM. */
int runtime_add_cold(const struct elf_file *elf, struct runtime_dso *dso);
/* Adds to dso->hidden what is not there yet. 0, or -ENOMEM. */
int runtime_hide(struct runtime_dso *dso, const struct code_range *range);
