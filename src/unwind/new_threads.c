// SPDX-License-Identifier: Apache-2.0
#include "unwind/new_threads.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/code_flow.h"
#include "util/cleanup.h"

enum {
	TEXT_MAX = 4 << 20, /* a C library, or a static program of ordinary size */
	INSNS_MAX = 4,
	SYSCALL_SIZE = 2,
};

/* xor %ebp,%ebp or xor %rbp,%rbp: the ABI's mark of a first frame. */
static bool begins_thread(const uint8_t *p, size_t left)
{
	if (left >= 3 && p[0] == 0x48)
		p++;
	return left >= 2 && (p[0] == 0x31 || p[0] == 0x33) && p[1] == 0xed;
}

static bool tests_result(const struct x86_insn *insn)
{
	return insn->map == X86_MAP_ONE_BYTE && insn->opcode == 0x85 && insn->mod == 3 &&
	       !insn->reg && !insn->rm;
}

/*
 * Behind the system call at `at`: test %rax,%rax; then jumps, one of which, or what is behind the
 * last, is where a thread begins. How many bytes both threads run there, or 0.
 */
static size_t shared_size(const uint8_t *text, size_t size, size_t at)
{
	size_t start = at + SYSCALL_SIZE, pos = start;
	struct code_insn flow;
	struct x86_insn insn;

	for (int i = 0; i < INSNS_MAX; i++) {
		if (i > 1 && begins_thread(text + pos, size - pos))
			return pos - start;
		if (!code_insn_x86(text + pos, size - pos, pos, &insn, &flow) ||
		    (i ? flow.flow != FLOW_COND : !tests_result(&insn)))
			return 0;
		pos += flow.len;
		if (i && flow.target < size &&
		    begins_thread(text + flow.target, size - flow.target))
			return pos - start;
	}
	return 0;
}

static int search(const uint8_t *text, size_t size, uint64_t addr, struct code_range *ret, int nr)
{
	static const uint8_t call[SYSCALL_SIZE] = { 0x0f, 0x05 };
	const uint8_t *p = text, *end = text + size;

	for (; nr < NEW_THREADS_MAX && (p = memmem(p, (size_t)(end - p), call, sizeof(call)));
	     p++) {
		size_t at = (size_t)(p - text), shared = shared_size(text, size, at);
		uint64_t start = addr + at + SYSCALL_SIZE;

		if (shared)
			ret[nr++] = (struct code_range){ start, start + shared };
	}
	return nr;
}

int new_threads_find(const struct elf_file *elf, struct code_range ret[static NEW_THREADS_MAX])
{
	int nr = 0;

	if (elf->machine != EM_X86_64)
		return 0;
	for (size_t i = 0; i < elf->nr_segments && nr < NEW_THREADS_MAX; i++) {
		const struct elf_segment *s = &elf->segments[i];
		_cleanup_free_ uint8_t *text = NULL;

		if (s->type != PT_LOAD || !(s->flags & PF_X) || !s->filesz || s->filesz > TEXT_MAX)
			continue;
		text = malloc(s->filesz);
		if (!text)
			return -ENOMEM;
		if (elf_file_read(elf, s->offset, text, s->filesz) < 0)
			continue;
		if (!nr || ret[nr - 1].end <= s->vaddr)
			nr = search(text, s->filesz, s->vaddr, ret, nr);
	}
	return nr;
}
