/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code of an interpreter's loop, as far as it has to be looked at: its bytes, and the part
 * of it that the compiler put elsewhere. x86-64 and aarch64.
 */
#pragma once

#include "elf/elf_file.h"
#include "runtime/runtime.h"

/*
 * What is looked at of one file, in bytes of code: anybody can make one, and a probe runs in the
 * recorder itself. Real ones have 3 MB to be looked at; this much takes a tenth of a second.
 */
enum { LOOP_WORK_MAX = 16 << 20 };
struct loop_work {
	uint64_t done;
};

/* What else is looked at, each in such bytes. */
enum {
	LOOP_WORK_ENTRY = 4,  /* of unwind information, or of a table of relocations */
	LOOP_WORK_SEARCH = 8, /* loop_fde_of() */
};

/* `amount` of work is about to be done. 0, or -ENOTSUP: that is too much, it is not to be done. */
int loop_work_add(struct loop_work *work, uint64_t amount);

/* Code of one range. */
struct loop_code {
	uint8_t *bytes;
	size_t size;
	uint64_t start;
	bool arm;
	bool fixed; /* the file has one address in memory, which its code may have as a constant */
};

/* `size` bytes of code of that file, which lie at `start` in it: `bytes`, borrowed. */
struct loop_code loop_code_of(const struct elf_file *elf, uint64_t start, uint8_t *bytes,
			      size_t size);

/* 0; -ENOENT: it can't be read, or is larger than any loop; -ENOTSUP: too much work; -ENOMEM. */
int loop_code_read(const struct elf_file *elf, const struct code_range *range,
		   struct loop_work *work, struct loop_code *ret);
void loop_code_fini(struct loop_code *c);
/* 32 bits `at` bytes from its begin, which must be there. */
uint32_t loop_code_word(const struct loop_code *c, size_t at);
/* The address that what looks like an instruction `at` bytes from its begin (two of aarch64) puts
 * into a register; 0: it is none. Of aarch64 the second one may stand three later. */
uint64_t loop_code_address(const struct loop_code *c, size_t at);

/* A function, as unwind information has it. */
struct loop_fde {
	struct code_range range;
	uint32_t jumps; /* private */
};
struct loop_fdes {
	VEC(struct loop_fde) all; /* by address */
};

void loop_fdes_fini(struct loop_fdes *fdes);

/* 0; -ENOENT: there are none to be read; -ENOTSUP: too much work; -ENOMEM. */
int loop_fdes_read(const struct elf_file *elf, struct loop_work *work, struct loop_fdes *fdes);
/* The one that `addr` is in, or NULL. */
struct loop_fde *loop_fde_of(struct loop_fdes *fdes, uint64_t addr);

/*
 * The cold part of the function at `hot` (-freorder-blocks-and-partition; stripped files do not
 * name it): what unwind information knows as another function, but `hot` jumps into it and it jumps
 * back. 0; -ENOENT; -ENOTSUP: too much work; -ENOMEM.
 */
int runtime_find_cold(const struct elf_file *elf, struct loop_fdes *fdes,
		      const struct code_range *hot, struct loop_work *work, struct code_range *ret);
/* Adds the cold part of the dso's loop to its interpreter functions, if there is one loop and one
 * such part that no symbol names. `fdes`: the file's, or NULL. 0; -ENOTSUP: too much work; -ENOMEM.
 */
int runtime_add_cold(const struct elf_file *elf, struct loop_fdes *fdes, struct loop_work *work,
		     struct runtime_dso *dso);
/* Adds to dso->interpreter_functions and to dso->hidden what overlaps nothing that is hidden. 0, or
 * -ENOMEM. */
int runtime_add_loop(struct runtime_dso *dso, const struct code_range *range);
/* Adds to dso->hidden what is not there yet. 0, or -ENOMEM. */
int runtime_hide(struct runtime_dso *dso, const struct code_range *range);
