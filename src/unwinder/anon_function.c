// SPDX-License-Identifier: Apache-2.0
#include "unwinder/anon_function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/x86_insn.h"
#include "kernel/bpf_sampler.h"

enum {
	BEGIN_MAX = 64, /* bytes of a function's begin */
	PUSHES_MIN = 2, /* fewer look like anything */
};

/* How a function begins: it pushes registers that are its caller's, and makes room. */
struct begin {
	size_t len;
	uint32_t frame; /* CFA - stack pointer, behind it */
	uint32_t nr_pushes;
	int16_t slot_off[UNWIND_SLOTS];
};

static int slot_of(uint8_t reg)
{
	static const uint8_t regs[] = X86_SLOT_REGS;

	/* r10, the last one, is nobody's to keep. */
	for (int i = 0; i < UNWIND_CFA_OFF2_SLOT; i++)
		if (regs[i] == reg)
			return i;
	return -1;
}

/* push %reg of a caller's register: which slot it is, and its length; -1: it isn't. */
static int pushed_slot(const uint8_t *p, size_t left, size_t *ret_len)
{
	static const uint8_t low[] = { X86_RAX, X86_RCX, X86_RDX, X86_RBX,
				       X86_RSP, X86_RBP, X86_RSI, X86_RDI };
	bool high = left > 1 && p[0] == 0x41;

	if (left <= high || (p[high] & 0xf8) != 0x50)
		return -1;
	*ret_len = 1u + high;
	return slot_of((uint8_t)(high ? 8 + (p[1] & 7) : low[p[0] & 7]));
}

/* sub $N, %rsp: N; 0: it isn't. */
static uint32_t room_made(const uint8_t *p, const struct x86_insn *insn)
{
	bool subtracts =
		insn->len >= 4 && p[0] == 0x48 && (p[1] == 0x81 || p[1] == 0x83) && p[2] == 0xec;

	return subtracts && insn->imm > 0 && insn->imm < 1 << 20 ? (uint32_t)insn->imm : 0;
}

/* Does a function begin at `p`? Pushes, then moves between registers, then room is made. */
static bool read_begin(const uint8_t *p, size_t left, struct begin *ret)
{
	enum { MOV = 0x89, MOV_TO = 0x8b };
	size_t at = 0, len;
	int slot;

	*ret = (struct begin){ 0 };
	left = left < BEGIN_MAX ? left : BEGIN_MAX;
	while ((slot = pushed_slot(p + at, left - at, &len)) >= 0) {
		if (ret->slot_off[slot])
			return false;
		ret->slot_off[slot] = (int16_t)(-2 - (int)ret->nr_pushes++);
		at += len;
	}
	while (ret->nr_pushes >= PUSHES_MIN && at < left) {
		struct x86_insn insn;
		uint32_t room;

		if (!x86_insn_decode(p + at, left - at, &insn))
			return false;
		room = room_made(p + at, &insn);
		at += insn.len;
		if (room) {
			ret->len = at;
			ret->frame = 8 + 8 * ret->nr_pushes + room;
			return !(room & 7);
		}
		if ((insn.opcode != MOV && insn.opcode != MOV_TO) || insn.map || insn.mod != 3 ||
		    x86_insn_written(&insn) & 1u << X86_RSP)
			return false;
	}
	return false;
}

/*
 * The nearest begin before `at`, of all that end where that ends the one with a frame of `frame`
 * bytes, if there is just one: where a sequence of pushes begins, its bytes do not tell.
 */
static bool find_begin(const struct code_bytes *code, size_t at, uint32_t frame, size_t *ret,
		       struct begin *ret_begin)
{
	size_t end = 0, nr = 0;

	for (size_t i = at; i-- && (!end || end - i <= BEGIN_MAX);) {
		struct begin b;

		if (!read_begin(code->bytes + i, code->size - i, &b) || i + b.len > at)
			continue;
		if (!end)
			end = i + b.len;
		if (i + b.len != end)
			break;
		if (b.frame != frame)
			continue;
		*ret = i;
		*ret_begin = b;
		nr++;
	}
	return nr == 1;
}

/* Where another function may begin, behind `at`. */
static size_t find_end(const struct code_bytes *code, size_t at)
{
	struct begin b;

	while (++at < code->size)
		if (read_begin(code->bytes + at, code->size - at, &b))
			break;
	return at;
}

bool anon_function_find(const struct code_bytes *code, uint64_t pc, int32_t cfa_off,
			struct anon_function *ret)
{
	size_t at = pc - code->addr, start;
	struct begin b;

	*ret = (struct anon_function){ 0 };
	if (cfa_off <= 8 || at >= code->size)
		return false;
	/* What it calls within itself has its return address below that frame. */
	if (!find_begin(code, at, (uint32_t)cfa_off, &start, &b) &&
	    !find_begin(code, at, (uint32_t)cfa_off - 8, &start, &b))
		return false;
	if (code->size - start < sizeof(ret->head))
		return false;
	ret->start = code->addr + start;
	memcpy(ret->head, code->bytes + start, sizeof(ret->head));
	ret->size = (uint32_t)(find_end(code, at) - start);
	ret->frame = b.frame;
	memcpy(ret->slot_off, b.slot_off, sizeof(ret->slot_off));
	return true;
}

/* --- what the kernel knows ------------------------------------------------------------------- */

struct anon_functions_page {
	struct anon_page_key key; /* mm 0: free */
	struct anon_page page;
};

static struct anon_functions_page *page_of(struct anon_functions *a, struct bpf_sampler *sampler,
					   const struct anon_page_key *key)
{
	struct anon_functions_page *p;

	for (size_t i = 0; i < ANON_PAGES_MAX; i++)
		if (a->pages[i].key.mm == key->mm && a->pages[i].key.page == key->page)
			return &a->pages[i];
	p = &a->pages[a->next++ % ANON_PAGES_MAX];
	if (p->key.mm)
		bpf_sampler_set_anon_page(sampler, &p->key, NULL);
	*p = (struct anon_functions_page){ .key = *key };
	return p;
}

/* In the place of what was there before, else of the oldest. False: it is there. */
static bool put(struct anon_page *page, const struct anon_function *function)
{
	size_t i = 0;

	while (i < ANON_FUNCTIONS_MAX - 1 && page->functions[i].start &&
	       page->functions[i].start != function->start)
		i++;
	if (!memcmp(&page->functions[i], function, sizeof(*function)))
		return false;
	if (page->functions[i].start && page->functions[i].start != function->start)
		memmove(page->functions, page->functions + 1,
			(ANON_FUNCTIONS_MAX - 1) * sizeof(*function));
	page->functions[i] = *function;
	return true;
}

int anon_functions_learn_page(struct anon_functions *a, struct bpf_sampler *sampler, uint64_t mm,
			      const struct anon_function *function, uint64_t pc)
{
	struct anon_functions_page *p;

	if (!a->pages)
		a->pages = calloc(ANON_PAGES_MAX, sizeof(*a->pages));
	if (!a->pages)
		return -ENOMEM;
	p = page_of(a, sampler, &(struct anon_page_key){ mm, pc >> ANON_PAGE_SHIFT });
	if (put(&p->page, function))
		bpf_sampler_set_anon_page(sampler, &p->key, &p->page);
	return 0;
}

int anon_functions_learn(struct anon_functions *a, struct bpf_sampler *sampler, uint64_t mm,
			 const struct anon_function *function)
{
	uint64_t last = (function->start + function->size - 1) >> ANON_PAGE_SHIFT;
	int r = 0;

	for (uint64_t page = function->start >> ANON_PAGE_SHIFT; page <= last && !r; page++)
		r = anon_functions_learn_page(a, sampler, mm, function, page << ANON_PAGE_SHIFT);
	return r;
}

void anon_functions_fini(struct anon_functions *a)
{
	free(a->pages);
	a->pages = NULL;
}
