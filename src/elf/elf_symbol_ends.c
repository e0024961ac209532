// SPDX-License-Identifier: Apache-2.0
/*
 * Where functions end whose symbols have no size, in a file that has lost the names of what follows
 * them. Hand-written assembly often says no size (libc of musl: memset, and behind it clone(),
 * which only .symtab names); so the code is followed from the function's first instruction on, and
 * what control does not get to is not the function's.
 */
#include "elf/code_flow.h"
#include "elf/elf_symbols_internal.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	FOLLOWED_MAX = 16 << 10, /* bytes of a function; a longer one keeps its guessed end */
	ALL_MAX = 16 << 20,	 /* bytes of a file's */
	PASSES_MAX = 8,		 /* over a function: as often as it jumps back beyond all */
};

enum mark { NOWHERE, REACHED, PASSED };

struct code {
	uint8_t bytes[FOLLOWED_MAX];
	uint8_t marks[FOLLOWED_MAX]; /* enum mark, of instructions' first bytes */
	uint64_t addr;
	size_t size;
	uint16_t machine;
};

static bool insn_at(const struct code *c, size_t at, struct code_insn *ret)
{
	const uint8_t *p = c->bytes + at;
	struct x86_insn x86;

	return c->machine == EM_X86_64 ? code_insn_x86(p, c->size - at, c->addr + at, &x86, ret)
				       : code_insn_a64(p, c->size - at, c->addr + at, ret);
}

static bool reach(struct code *c, uint64_t addr)
{
	uint64_t at = addr - c->addr;

	if (at >= c->size || c->marks[at])
		return false;
	c->marks[at] = REACHED;
	return true;
}

/* Follows what is reached. 1: something that was passed before is, too. */
static int follow(struct code *c)
{
	struct code_insn insn;
	int back = 0;

	for (size_t at = 0; at < c->size; at++) {
		if (c->marks[at] != REACHED || !insn_at(c, at, &insn))
			continue;
		c->marks[at] = PASSED;
		if (insn.flow <= FLOW_COND || code_calls(&insn))
			reach(c, c->addr + at + insn.len);
		if ((insn.flow == FLOW_COND || insn.flow == FLOW_JUMP) && reach(c, insn.target) &&
		    insn.target <= c->addr + at)
			back = 1;
	}
	return back;
}

/* Where the code that is reached without a gap, other than padding, ends. */
static size_t reached_end(const struct code *c)
{
	struct code_insn insn;
	size_t end = 0;

	for (size_t at = 0; at < c->size && insn_at(c, at, &insn); at += insn.len) {
		if (c->marks[at] == PASSED)
			end = at + insn.len;
		else if (!insn.padding)
			break;
	}
	return end;
}

/* The function's size; 0: it can't be told. */
static uint64_t followed_size(const struct elf_file *elf, struct code *c, uint64_t addr,
			      uint64_t size)
{
	int passes = 0;

	if (size > FOLLOWED_MAX)
		size = FOLLOWED_MAX;
	c->addr = addr;
	c->size = size;
	if (elf_file_read_vaddr(elf, addr, c->bytes, size))
		return 0;
	memset(c->marks, NOWHERE, size);
	reach(c, addr);
	while (follow(c))
		if (++passes >= PASSES_MAX)
			break;
	size = reached_end(c);
	return size < FOLLOWED_MAX ? size : 0;
}

/* Is the last instruction before `end` a system call? */
static bool is_system_call(const struct elf_file *elf, uint64_t end)
{
	static const uint8_t svc[] = { 0x01, 0x00, 0x00, 0xd4 }, syscall[] = { 0x0f, 0x05 };
	bool is_x86 = elf->machine == EM_X86_64;
	size_t size = is_x86 ? sizeof(syscall) : sizeof(svc);
	uint8_t code[sizeof(svc)];

	return !elf_file_read_vaddr(elf, end - size, code, size) &&
	       !memcmp(code, is_x86 ? syscall : svc, size);
}

/*
 * A function that ends in a system call from which nobody comes back (the vDSO's
 * __kernel_rt_sigreturn): a thread that is in it has the address behind the function. Where that is
 * the end of all code around it, nothing else can be there: the function has it.
 */
static void cover_last_calls(struct elf_symbols *symbols, const struct elf_file *elf)
{
	struct elf_symbols_private *priv = symbols->names;

	for (size_t i = 0; i < priv->ranges.nr; i++) {
		uint64_t end = priv->ranges.items[i].end;
		size_t n = sorted_before(symbols->nr, j, symbols->items[j].addr < end);
		struct elf_symbol *last = n ? &symbols->items[n - 1] : NULL;

		if (!last || last->addr < priv->ranges.items[i].start ||
		    last->size != end - last->addr || elf_symbols_range_end(priv, end) ||
		    !is_system_call(elf, end))
			continue;
		last->size++;
		if (last->size > priv->size_max)
			priv->size_max = last->size;
	}
}

int elf_symbols_end(struct elf_symbols *symbols, const struct elf_file *elf)
{
	struct elf_symbols_private *priv = symbols->names;
	_cleanup_free_ struct code *c = NULL;
	uint64_t all = 0;

	if (elf->machine == EM_X86_64 || elf->machine == EM_AARCH64)
		cover_last_calls(symbols, elf);
	if (priv->complete || (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64))
		return 0;
	c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->machine = elf->machine;
	for (size_t i = 0; i < symbols->nr && all < ALL_MAX; i++) {
		struct elf_symbol *s = &symbols->items[i];
		uint64_t end = s->size ? 0 : elf_symbols_range_end(priv, s->addr);

		if (!end)
			continue;
		if (i + 1 < symbols->nr && s[1].addr < end)
			end = s[1].addr;
		s->size = followed_size(elf, c, s->addr, end - s->addr);
		all += c->size;
		if (s->size > priv->size_max)
			priv->size_max = s->size;
	}
	return 0;
}
