/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own symbols, modules and BPF programs included, from /proc/kallsyms.
 *
 * It gives no sizes: a function ends where the next symbol of any kind begins, and after
 * KALLSYMS_FUNCTION_MAX bytes. Of several names of one address the choice is: global before weak
 * before local; fewer leading underscores; shorter; first by byte value.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kallsyms;

enum {
	KALLSYMS_FUNCTION_MAX = 256 << 10,
	/* Of text; a kernel with everything as modules loaded has 0.5 million lines, 30 MB. */
	KALLSYMS_SIZE_MAX = 256 << 20,
};

/* Parses text of the form of /proc/kallsyms; bad lines are passed over. 0 or -ENOMEM. */
int kallsyms_parse(const char *text, size_t size, struct kallsyms **ret);
/* Reads /proc/kallsyms. -EPERM if all addresses are hidden (kptr_restrict). */
int kallsyms_read(struct kallsyms **ret);
/*
 * Reads it anew into *k, which was read before: of the kernel's own symbols, which stay, only the
 * last is looked at, if they stand in order and in front of the others'. On failure *k may have
 * lost symbols of modules and BPF programs.
 */
int kallsyms_read_again(struct kallsyms **k);
/* Both, of a file that is like /proc/kallsyms. For tests. */
int kallsyms_read_from(int fd, struct kallsyms **ret);
int kallsyms_read_again_from(int fd, struct kallsyms **k);
void kallsyms_free(struct kallsyms *k);
static inline void kallsyms_free_p(struct kallsyms **k)
{
	kallsyms_free(*k);
}
/* Where the kernel's own code is: [_stext, _etext); 0, 0: not known. */
void kallsyms_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end);
/*
 * The function that covers `addr`, a frame's (of a caller its return address less 1), NULL if none;
 * *ret_module is "" for the kernel itself, "bpf" for BPF programs. Both are valid until the next
 * call.
 *
 * A kretprobe puts its trampoline in place of a return address, and before Linux 5.16 stacks show
 * that: nothing has called it, so the address less 1 is of whatever function lies before it.
 */
const char *kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **ret_module);
/* Gives back what looking up took, until the next time. */
void kallsyms_rest(struct kallsyms *k);
