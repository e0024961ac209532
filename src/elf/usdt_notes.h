/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The USDT probes that a program was built with: notes of SystemTap's <sys/sdt.h> (owner "stapsdt",
 * type 3, version 3 of the format:
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation), one a place in the code.
 */
#pragma once

#include "elf/elf_file.h"

enum { USDT_NOTES_MAX = 65536, USDT_SECTION_MAX = 16 << 20 };

struct usdt_note {
	const char *provider, *name;
	const char *arguments;	   /* "8@%rdi -4@$3", where they are; "" if there are none */
	uint64_t offset;	   /* of the instruction, in the file */
	uint64_t semaphore_offset; /* of a counter of who looks, in the file; 0: none */
};

struct usdt_notes {
	struct usdt_note *items;
	size_t nr;
	uint8_t *data; /* what texts point into */
};

/* Where an argument is when its probe is come to. */
struct usdt_argument {
	int size; /* in bytes; negative: it is signed */
	/* Word of the machine's registers as the kernel gives them to a program at a probe (struct
	 * pt_regs, struct user_pt_regs). */
	uint32_t reg;
	bool indirect; /* it lies at reg + offset; else it is reg */
	int64_t offset;
};

/*
 * Argument `number` (from 1 on) of a note's. -ENOENT: there are not so many; -ENOTSUP: it is where
 * we do not look (a constant, a register that is scaled, another machine); -EINVAL.
 */
int usdt_argument_find(const char *arguments, unsigned number, uint16_t machine,
		       struct usdt_argument *ret);
/* 0 (also without any), or negative errno. Notes that make no sense are left out. */
int usdt_notes_read(const struct elf_file *elf, struct usdt_notes *ret);
void usdt_notes_fini(struct usdt_notes *notes);
