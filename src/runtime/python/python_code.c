// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_code.h"

#include "abi/unwind.h"
#include "elf/x86_insn.h"
#include "runtime/loop_code.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	PROLOGUE_MAX = 512, /* bytes until the frame is linked */
	BEGIN_MAX = 512,    /* so, at least: what does it again stands further behind */
	UNLINK_MAX = 64,    /* from the end of f_executing to the store */
	LEAVE_MAX = 96,	    /* from there to the return */
	TSTATE_FRAME = 24,  /* PyThreadState.frame, PyFrameObject.f_back: 3.6 to 3.9;
				3.10: the first */
};

/* --- where the frame is not linked ----------------------------------------------------------- */

/* Behind a store of 64 bits at TSTATE_FRAME(register) that begins at `at`; 0: there is none. */
static size_t behind_store(const struct loop_code *c, size_t at)
{
	const uint8_t *p = c->bytes + at;

	if (c->arm)
		return at + 4 <= c->size && (loop_code_word(c, at) & 0xfffffc00) ==
						    (0xf9000000 | (TSTATE_FRAME / 8) << 10)
			       ? at + 4
			       : 0;
	/* mov %r64, 0x18(%r64) */
	if (at + 5 > c->size || (p[0] & 0xf8) != 0x48 || p[1] != 0x89 || (p[2] & 0xc0) != 0x40)
		return 0;
	if ((p[2] & 7) != 4)
		return p[3] == TSTATE_FRAME ? at + 4 : 0;
	return p[0] & 1 && p[3] == 0x24 && p[4] == TSTATE_FRAME ? at + 5 : 0; /* r12 */
}

/* Is there a store of a byte 0 at f_executing(register)? Not more than its end: 0 if not. */
static size_t behind_end(const struct loop_code *c, size_t at, unsigned int f_executing)
{
	const uint8_t *p = c->bytes + at;

	if (c->arm)
		return at + 4 <= c->size && (loop_code_word(c, at) & 0xfffffc1f) ==
						    (0x3900001f | f_executing << 10)
			       ? at + 4
			       : 0;
	if (at + 7 > c->size || p[0] != 0xc6)
		return 0;
	if ((p[1] & 0xf8) == 0x40 && p[1] != 0x44 && f_executing < 128) /* movb $0, 0x74(%r) */
		return p[2] == f_executing && p[3] == 0 ? at + 4 : 0;
	return (p[1] & 0xf8) == 0x80 && p[1] != 0x84 && loop_code_word(c, at + 2) == f_executing &&
			       p[6] == 0
		       ? at + 7
		       : 0;
}

/* The end of the straight code from `at` on: behind a return or an unconditional jump. */
static size_t straight_end(const struct loop_code *c, size_t at)
{
	size_t limit = at + LEAVE_MAX < c->size ? at + LEAVE_MAX : c->size;

	for (; at < limit; at++) {
		if (c->arm) {
			uint32_t insn = at + 4 <= limit ? loop_code_word(c, at) : 0;

			if (insn == 0xd65f03c0 || (insn & 0xfc000000) == 0x14000000)
				return at + 4;
			at += 3;
		} else if (c->bytes[at] == 0xe8) { /* a call; its bytes may look like anything */
			at += 4;
		} else if (c->bytes[at] == 0xe9 && at + 5 <= limit) {
			return at + 5;
		} else if (c->bytes[at] == 0xeb && at + 2 <= limit) {
			return at + 2;
		} else if (at + 3 <= limit && !memcmp(c->bytes + at, "\x41\x5f\xc3", 3)) {
			return at + 3; /* pop %r15; ret */
		}
	}
	return limit;
}

/* Does the frame's memory on the stack go away here? add $N, %rsp; ldp x29, x30, [sp], #N */
static bool is_epilogue(const struct loop_code *c, size_t at)
{
	enum { ADD = 7, POPS_MAX = 24 };
	size_t left = c->size - at;

	if (c->arm)
		return left >= 4 && (loop_code_word(c, at) & 0xffc07fff) == 0xa8c07bfd;
	if (left > ADD + POPS_MAX)
		left = ADD + POPS_MAX;
	return left > ADD && !memcmp(c->bytes + at, "\x48\x81\xc4", 3) &&
	       memmem(c->bytes + at + ADD, left - ADD, "\x41\x5f\xc3", 3);
}

struct gaps {
	struct python_gap *items;
	size_t nr;
	uint64_t base;
};

static void add_gap(struct gaps *g, const struct loop_code *c, size_t start, size_t end)
{
	uint64_t offset = c->start - g->base;

	if (g->nr < PYTHON_GAPS_MAX && end > start)
		g->items[g->nr++] =
			(struct python_gap){ (uint32_t)(offset + start), (uint32_t)(offset + end) };
}

static void find_gaps(const struct loop_code *c, int f_executing, bool entry, struct gaps *g)
{
	size_t step = c->arm ? 4 : 1, end;

	for (size_t at = 0; entry && at < PROLOGUE_MAX && at < c->size; at += step) {
		end = behind_store(c, at);
		if (end) {
			add_gap(g, c, 0, end);
			break;
		}
	}
	for (size_t at = 0; f_executing >= 0 && at < c->size; at += step) {
		if (is_epilogue(c, at))
			add_gap(g, c, at, straight_end(c, at));
		end = behind_end(c, at, (unsigned int)f_executing);
		for (size_t to = end; end && to < end + UNLINK_MAX && to < c->size; to += step) {
			size_t behind = behind_store(c, to);

			if (behind) {
				add_gap(g, c, behind, straight_end(c, behind));
				break;
			}
		}
	}
}

size_t python_find_begin(const struct code_range *loops, size_t nr,
			 struct python_gap ret[static PYTHON_GAPS_MAX])
{
	size_t largest = 0;

	for (size_t i = 1; i < nr; i++)
		if (loops[i].end - loops[i].start > loops[largest].end - loops[largest].start)
			largest = i;
	if (!nr || loops[largest].start - loops[0].start > UINT32_MAX / 2)
		return 0;
	ret[0].start = (uint32_t)(loops[largest].start - loops[0].start);
	ret[0].end = ret[0].start + BEGIN_MAX;
	return 1;
}

int python_find_gaps(const struct elf_file *elf, const struct code_range *loops, size_t nr,
		     int f_executing, struct loop_work *work,
		     struct python_gap ret[static PYTHON_GAPS_MAX])
{
	struct gaps gaps = { .items = ret, .base = nr ? loops[0].start : 0 };
	uint64_t largest = 0;

	for (size_t i = 0; i < nr; i++)
		if (loops[i].end - loops[i].start > largest)
			largest = loops[i].end - loops[i].start;
	for (size_t i = 0; i < nr; i++) {
		_cleanup_(loop_code_fini) struct loop_code c = { 0 };
		int r;

		if (loops[i].start - gaps.base > UINT32_MAX / 2)
			continue;
		r = loop_code_read(elf, &loops[i], work, &c);
		if (r == -ENOENT)
			continue;
		if (r)
			return r;
		/* The function itself is by far the larger part. */
		find_gaps(&c, f_executing, c.size == largest, &gaps);
	}
	return (int)gaps.nr;
}

/* --- its frame ------------------------------------------------------------------------------- */

uint64_t python_loop_frame(const struct elf_file *elf, uint64_t function)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t begin[] = { 0x55, 0x48, 0x89, 0xe5 };
	uint8_t code[48];
	uint32_t size;
	size_t at = 0, pushed = 0;

	if (elf->machine != EM_X86_64 || elf_file_read_vaddr(elf, function, code, sizeof(code)))
		return 0;
	if (!memcmp(code, endbr, sizeof(endbr)))
		at += sizeof(endbr);
	if (memcmp(code + at, begin, sizeof(begin)) != 0)
		return 0;
	at += sizeof(begin);
	for (; pushed < 5; pushed++) {
		size_t wide = code[at] == 0x41;

		if ((code[at + wide] & 0xf8) != 0x50)
			break;
		at += 1 + wide;
	}
	/* sub $imm32, %rsp; sub $imm8, %rsp */
	memcpy(&size, code + at + 3, sizeof(size));
	if (code[at] != 0x48 || code[at + 2] != 0xec ||
	    (code[at + 1] != 0x81 && code[at + 1] != 0x83))
		return 0;
	if (code[at + 1] == 0x83)
		size = code[at + 3] & 0x7f;
	return 8 * pushed + size;
}

/* --- the number of code objects -------------------------------------------------------------- */

enum {
	CO_VERSION = 92,  /* of 3.12 and 3.13 */
	BEFORE_MAX = 96,  /* bytes before it is stored there: from where its address is loaded */
	BEHIND_MAX = 12,  /* instructions behind it: to where the next number is stored */
	INTERP_MIN = 256, /* what stands in the interpreter's struct, */
	INTERP_MAX = 1 << 20,
	TEXT_MAX = 64 << 20,
	/* What is done for one file: the largest of real ones have 200 stores like that. */
	WORK_MAX = 1 << 16,
	WORK_OF_STORE = 32, /* what leads to it is decoded from each byte before */
};

/* A word of memory: an address, or from a register on. */
struct operand {
	bool known;
	uint8_t base; /* UNWIND_REGS_MAX: it is an address */
	uint64_t at;
};

/* Straight code: which registers are known to have addresses. */
struct straight {
	uint64_t address[16];  /* 0: not known */
	struct operand loaded; /* what `reg` was loaded from, 32 bits */
	uint8_t reg;
};

static bool is_mov_32(const struct x86_insn *in, uint8_t opcode)
{
	return in->map == X86_MAP_ONE_BYTE && in->opcode == opcode && !in->vex && !in->size16 &&
	       !in->addr32 && !(in->rex & 8) && in->mod != 3 && !in->has_index;
}

static struct operand operand_of(const struct straight *s, const struct x86_insn *in, uint64_t next)
{
	if (in->rip_relative)
		return (struct operand){ true, UNWIND_REGS_MAX,
					 next + (uint64_t)(int64_t)in->disp };
	if (in->rm >= 16)
		return (struct operand){ 0 };
	if (s->address[in->rm])
		return (struct operand){ true, UNWIND_REGS_MAX,
					 s->address[in->rm] + (uint64_t)(int64_t)in->disp };
	return (struct operand){ true, in->rm, (uint64_t)(int64_t)in->disp };
}

static bool same_operand(const struct operand *a, const struct operand *b)
{
	return a->known && b->known && a->base == b->base && a->at == b->at;
}

/* One instruction further, which ends at `next`. */
static void follow(struct straight *s, const struct x86_insn *in, uint64_t next)
{
	uint32_t written = x86_insn_written(in);
	bool one = in->map == X86_MAP_ONE_BYTE && !in->vex;
	struct operand from = operand_of(s, in, next);

	for (unsigned int i = 0; i < 16; i++)
		if (written >> i & 1)
			s->address[i] = 0;
	if (s->loaded.known &&
	    (written >> s->reg & 1 || (s->loaded.base < 16 && written >> s->loaded.base & 1)))
		s->loaded.known = false;
	if (one && in->opcode == 0x8d && in->rex & 8 && in->rip_relative && in->reg < 16)
		s->address[in->reg] = from.at;
	else if (is_mov_32(in, 0x8b) && in->reg == s->reg &&
		 (from.base >= 16 || from.base != in->reg))
		s->loaded = from;
}

/* Behind the store of the number in `reg`: is the next one stored to where it came from? */
static bool counts_up(struct straight *s, const uint8_t *p, const uint8_t *end, uint64_t at)
{
	struct operand from = s->loaded;
	int next = -1; /* the register that has it */
	struct x86_insn in;

	for (int i = 0; i < BEHIND_MAX && x86_insn_decode(p, (size_t)(end - p), &in); i++) {
		uint32_t written = x86_insn_written(&in);
		bool one = in.map == X86_MAP_ONE_BYTE && !in.vex && !in.size16;
		struct operand to;

		p += in.len;
		at += in.len;
		to = operand_of(s, &in, at);
		if (next >= 0 && is_mov_32(&in, 0x89) && in.reg == next && same_operand(&to, &from))
			return true;
		if (one && in.mod == 3 && in.rm == s->reg && in.group == 0 &&
		    ((in.opcode == 0x83 && in.imm == 1) || in.opcode == 0xff)) {
			next = in.rm; /* add $1, inc */
			continue;
		}
		if (one && in.opcode == 0x8d && !in.rip_relative && !in.has_index &&
		    in.rm == s->reg && in.disp == 1) {
			next = in.reg; /* lea 1(reg) */
			continue;
		}
		if (written >> s->reg & 1 || (next >= 0 && written >> next & 1) ||
		    (from.base < 16 && written >> from.base & 1))
			return false;
	}
	return false;
}

/* If the instruction at `at` stores a register as co_version, and counts it up: where it was loaded
 * from. */
static struct operand counted_at(const uint8_t *code, size_t size, uint64_t start, size_t at,
				 int *work)
{
	struct operand found = { 0 };
	struct x86_insn store, in;

	if (!x86_insn_decode(code + at, size - at, &store) || !is_mov_32(&store, 0x89) ||
	    store.reg >= 16 || store.disp != CO_VERSION || store.rip_relative)
		return found;
	*work += WORK_OF_STORE;
	for (size_t from = at > BEFORE_MAX ? at - BEFORE_MAX : 0; from < at; from++) {
		struct straight s = { .reg = store.reg };
		size_t p = from;

		while (p < at && x86_insn_decode(code + p, size - p, &in)) {
			p += in.len;
			follow(&s, &in, start + p);
		}
		if (p != at || !s.loaded.known ||
		    !counts_up(&s, code + at + store.len, code + size, start + at + store.len))
			continue;
		/* From further above more is known of registers. */
		if (!found.known || s.loaded.base >= 16)
			found = s.loaded;
	}
	return found;
}

uint64_t python_codes_in(const uint8_t *code, size_t size, uint64_t start, bool interp)
{
	const uint8_t *p = code, *end = code + size;
	uint64_t found = 0;
	int work = 0;

	/* mov %r32, 92(%r64): the opcode and one or two bytes stand before that; a prefix may,
	 * which may as well be another instruction's last byte. */
	for (; p < end && (p = memchr(p, CO_VERSION, (size_t)(end - p))); p++) {
		for (size_t back = 2; back <= 4 && back <= (size_t)(p - code); back++) {
			struct operand from = { 0 };

			if (p[-(ptrdiff_t)back] != 0x89 && p[1 - (ptrdiff_t)back] != 0x89)
				continue;
			if (work++ >= WORK_MAX)
				return 0;
			from = counted_at(code, size, start, (size_t)(p - code) - back, &work);
			if (!from.known || interp != (from.base < 16) ||
			    (interp && (from.at < INTERP_MIN || from.at > INTERP_MAX)))
				continue;
			if (found && found != from.at)
				return 0;
			found = from.at;
		}
	}
	return found;
}

uint64_t python_find_codes(const struct elf_file *elf, bool interp)
{
	const struct elf_section *text = elf_file_section(elf, ".text");
	_cleanup_free_ uint8_t *code = NULL;
	struct elf_data data;

	if (elf->machine != EM_X86_64 || !text || elf_file_section_data(elf, text, TEXT_MAX, &data))
		return 0;
	code = data.data;
	return python_codes_in(code, data.size, text->addr, interp);
}

/* --- what functions are called by ------------------------------------------------------------ */

/* The address that lea N(%rip), %reg gives `reg` last before `end`; 0: there is none. */
static uint64_t loaded_address(const uint8_t *code, size_t end, uint64_t start, unsigned int reg)
{
	for (size_t at = end; at-- > 0;) {
		const uint8_t *p = code + at;
		int32_t off;

		if (end - at < 7 || (p[0] & 0xfb) != 0x48 || p[1] != 0x8d ||
		    (p[2] & 0xc7) != 0x05 || ((p[0] & 4) << 1 | (p[2] >> 3 & 7)) != (int)reg)
			continue;
		memcpy(&off, p + 3, sizeof(off));
		return start + at + 7 + (uint64_t)(int64_t)off;
	}
	return 0;
}

uint64_t python_stored_address(const uint8_t *code, size_t size, uint64_t start, uint32_t offset)
{
	enum { STORE = 7, STORE_NUMBER = 11 };

	for (size_t at = 0; at + STORE <= size; at++) {
		const uint8_t *p = code + at;
		uint32_t number;

		/* REX.W, with any registers; an address of register + 32 bits, without SIB. */
		if ((p[0] & 0xfa) != 0x48 || (p[2] & 0xc0) != 0x80 || (p[2] & 7) == 4 ||
		    memcmp(p + 3, &offset, sizeof(offset)) != 0)
			continue;
		if (p[1] == 0xc7 && at + STORE_NUMBER <= size) { /* mov $N, offset(%reg) */
			memcpy(&number, p + STORE, sizeof(number));
			return number;
		}
		if (p[1] == 0x89) /* mov %reg, offset(%reg) */
			return loaded_address(code, at, start, (p[0] & 4) << 1 | (p[2] >> 3 & 7));
	}
	return 0;
}

int python_find_vectorcall(const struct elf_file *elf, uint64_t maker, struct loop_work *work,
			   struct code_range *ret)
{
	enum { VECTORCALL = 136 }; /* struct PyFunctionObject */
	_cleanup_(loop_code_fini) struct loop_code c = { 0 };
	_cleanup_(loop_fdes_fini) struct loop_fdes fdes = { 0 };
	struct loop_fde *f;
	uint64_t found = 0;
	int r = elf->machine == EM_X86_64 && maker ? loop_fdes_read(elf, work, &fdes) : -ENOENT;

	f = r ? NULL : loop_fde_of(&fdes, maker);
	if (f)
		r = loop_code_read(elf, &f->range, work, &c);
	if (f && !r)
		found = python_stored_address(c.bytes, c.size, c.start, VECTORCALL);
	f = found ? loop_fde_of(&fdes, found) : NULL;
	if (f && f->range.start == found)
		*ret = f->range;
	else
		r = r ? r : -ENOENT;
	return r;
}
