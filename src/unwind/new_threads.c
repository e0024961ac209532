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
	X86_CALL_SIZE = 2,
	A64_SIZE = 4, /* of each instruction of aarch64 */
};

/* How such code looks on a machine. */
struct machine {
	uint8_t call[A64_SIZE]; /* the system call */
	size_t call_size;
	/*
	 * Behind the system call at text[at]: how many bytes both threads run until a jump takes
	 * them apart; 0: that makes no thread.
	 */
	size_t (*shared_size)(const uint8_t *text, size_t size, size_t at);
};

/* --- x86-64 ---------------------------------------------------------------------------------- */

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
 * test %rax,%rax; then jumps, one of which, or what is behind the last, is where a thread begins.
 */
static size_t shared_size_x86(const uint8_t *text, size_t size, size_t at)
{
	size_t start = at + X86_CALL_SIZE, pos = start;
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

static const struct machine x86_64 = { { 0x0f, 0x05 }, X86_CALL_SIZE, shared_size_x86 };

/* --- aarch64 --------------------------------------------------------------------------------- */

static uint32_t a64_insn(const uint8_t *text, size_t size, size_t at)
{
	uint32_t insn = 0;

	if (at < size && size - at >= sizeof(insn))
		memcpy(&insn, text + at, sizeof(insn));
	return insn;
}

/* mov x29,#0 (glibc); or ldp x1,x0,[sp],#16 (musl, which leaves x29): the function and its argument
 * from the new stack. */
static bool begins_thread_a64(uint32_t insn)
{
	return insn == 0xd280001d || insn == 0xa8c103e1;
}

/* cmp x0,#0, if there is that (glibc); then jumps, one of which is to where a thread begins. */
static size_t shared_size_a64(const uint8_t *text, size_t size, size_t at)
{
	size_t start = at + A64_SIZE, pos = start;
	struct code_insn flow;

	if (a64_insn(text, size, pos) == 0xf100001f)
		pos += A64_SIZE;
	for (int i = 0; i < INSNS_MAX; i++) {
		if (pos >= size || !code_insn_a64(text + pos, size - pos, pos, &flow) ||
		    flow.flow != FLOW_COND)
			return 0;
		pos += A64_SIZE;
		if (begins_thread_a64(a64_insn(text, size, flow.target)))
			return pos - start;
	}
	return 0;
}

static const struct machine aarch64 = { { 0x01, 0x00, 0x00, 0xd4 }, A64_SIZE, shared_size_a64 };

/* --------------------------------------------------------------------------------------------- */

static int search(const struct machine *m, const uint8_t *text, size_t size, uint64_t addr,
		  struct code_range *ret, int nr)
{
	const uint8_t *p = text, *end = text + size;

	for (; nr < NEW_THREADS_MAX && (p = memmem(p, (size_t)(end - p), m->call, m->call_size));
	     p++) {
		size_t at = (size_t)(p - text), shared = m->shared_size(text, size, at);
		uint64_t start = addr + at + m->call_size;

		if (shared)
			ret[nr++] = (struct code_range){ start, start + shared };
	}
	return nr;
}

int new_threads_find(const struct elf_file *elf, struct code_range ret[static NEW_THREADS_MAX])
{
	const struct machine *m = elf->machine == EM_X86_64 ? &x86_64 : &aarch64;
	int nr = 0;

	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
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
			nr = search(m, text, s->filesz, s->vaddr, ret, nr);
	}
	return nr;
}
