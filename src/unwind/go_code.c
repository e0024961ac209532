// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_code.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/sample.h"
#include "elf/a64_insn.h"
#include "util/cleanup.h"

enum {
	PIECE = 256 << 10, /* of code, read at once */
	OVERLAP = 16,
	LOAD_SIZE = 3,	   /* bytes that tell one */
	HANDLER_BEGIN = 8, /* instructions */
	LOADS_MAX = 1024,  /* the runtime has 20; what looks like one is elsewhere, too */
	/* As instructions have them. */
	RSP = 4,
	RBP = 5,
	A64_INSN = 4,
};

/* mov to rsp, from what is neither the stack nor the frame pointer; and $imm,%rsp. */
static bool is_load(const uint8_t *p)
{
	uint8_t rex = p[0], op = p[1], mod = p[2] >> 6, reg = p[2] >> 3 & 7, rm = p[2] & 7;

	if (rex == 0x48 && op == 0x83 && p[2] == 0xe4)
		return true;
	if ((rex == 0x48 || rex == 0x49) && op == 0x8b)
		return reg == RSP && rm != RSP && (rm != RBP || rex == 0x49);
	return (rex == 0x48 || rex == 0x4c) && op == 0x89 && mod == 3 && rm == RSP &&
	       (reg != RBP || rex == 0x4c);
}

bool go_code_is_goexit(const uint8_t *code, size_t size)
{
	enum { NOP = 0x90, CALL = 0xe8 };

	return size >= GO_EXIT_SIZE && code[0] == NOP && code[1] == CALL &&
	       code[GO_EXIT_SIZE - 1] == NOP;
}

/* Functions are aligned, and what is between them is filled with int3. */
static bool is_goexit_at(uint64_t addr, const uint8_t *code, size_t size)
{
	enum { INT3 = 0xcc, ALIGN = 16 };

	return addr % ALIGN == 0 && size > GO_EXIT_SIZE && code[GO_EXIT_SIZE] == INT3 &&
	       go_code_is_goexit(code, size);
}

/* mov xN,sp of a register that the walker follows and callees keep: *ret is that. */
static bool keeps_sp(uint32_t insn, unsigned int *ret)
{
	enum { MOV_FROM_SP = 0x910003e0 };

	*ret = insn & 31;
	return insn >> 5 == MOV_FROM_SP >> 5 && *ret >= 19 && *ret <= 23;
}

/* sub sp,sp,#192; then x0, x1 or x0 alone is saved at 8 (runtime/cgo: crosscall2). */
static bool begins_crosscall(uint32_t first, uint32_t second)
{
	enum { SUB_SP_192 = 0xd10303ff, STP_X0_X1 = 0xa90087e0, STR_X0 = 0xf90007e0 };

	return first == SUB_SP_192 && (second == STP_X0_X1 || second == STR_X0);
}

/*
 * What a function that never comes back has only behind its change of stacks: str xzr,[sp,#-16]!
 * (morestack), or stur xzr,[sp,#-16] (mcall), a return address that is none.
 */
static bool is_first_frame(uint32_t insn)
{
	enum { STR_XZR_PUSH = 0xf81f0fff, STUR_XZR = 0xf81f03ff };

	return insn == STR_XZR_PUSH || insn == STUR_XZR;
}

/* ldr x0,[x5]; mov sp,x0 (gogo): to where a goroutine was left. */
static bool goes_there(uint32_t first, uint32_t second)
{
	enum { LDR_X0_X5 = 0xf94000a0, MOV_SP_X0 = 0x9100001f };

	return first == LDR_X0_X5 && second == MOV_SP_X0;
}

static bool is_load_a64(const uint8_t *p)
{
	uint32_t code[2];
	unsigned int reg;

	memcpy(code, p, sizeof(code));
	return keeps_sp(code[0], &reg) || begins_crosscall(code[0], code[1]) ||
	       is_first_frame(code[0]) || goes_there(code[0], code[1]);
}

static int find_loads_a64(const uint8_t *code, size_t size, uint64_t addr, struct go_code *go)
{
	int r = 0;

	for (size_t i = 0; !r && i + 2 * A64_INSN <= size && go->loads.nr < LOADS_MAX;
	     i += A64_INSN)
		if (is_load_a64(code + i))
			r = vec_push(&go->loads, addr + i);
	return r;
}

static int find_loads(const struct elf_file *elf, const struct elf_segment *s, uint8_t *code,
		      struct go_code *go)
{
	size_t size;
	int r = 0;

	for (uint64_t at = 0; at < s->filesz; at += PIECE - OVERLAP) {
		size = s->filesz - at < PIECE ? s->filesz - at : PIECE;
		if (elf_file_read(elf, s->offset + at, code, size) < 0)
			return 0;
		if (elf->machine == EM_AARCH64) {
			r = find_loads_a64(code, size, s->vaddr + at, go);
			if (r || size < PIECE)
				return r;
			continue;
		}
		for (size_t i = -(s->vaddr + at) & 15; !go->goexit && i < size; i += 16)
			if (is_goexit_at(s->vaddr + at + i, code + i, size - i))
				go->goexit = s->vaddr + at + i;
		for (size_t i = 0; !r && i + LOAD_SIZE <= size && go->loads.nr < LOADS_MAX; i++)
			if (is_load(code + i))
				r = vec_push(&go->loads, s->vaddr + at + i);
		if (r || size < PIECE)
			return r;
	}
	return 0;
}

int go_code_init(const struct elf_file *elf, struct go_code *ret)
{
	_cleanup_free_ uint8_t *code = malloc(PIECE);
	int r = code ? 0 : -ENOMEM;

	*ret = (struct go_code){ 0 };
	for (size_t i = 0; !r && i < elf->nr_segments; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			r = find_loads(elf, &elf->segments[i], code, ret);
	if (r)
		go_code_fini(ret);
	return r;
}

void go_code_fini(struct go_code *go)
{
	vec_free(&go->loads);
}

bool go_code_switches(const struct go_code *go, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < go->loads.nr; i++)
		if (go->loads.items[i] >= start && go->loads.items[i] < end)
			return true;
	return false;
}

struct unwind_rule go_frame_a64(int64_t size)
{
	struct unwind_rule rule = {
		.cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR
	};

	if (size < 0 || size & 7 || size > INT16_MAX * 8)
		return (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_BAD_CFI };
	if (!size)
		return rule;
	rule.cfa_off = (int32_t)size;
	rule.ra = RA_AT_CFA;
	rule.ra_off = (int16_t)(-size / 8);
	return rule;
}

bool go_code_is_handler(const struct elf_file *elf, uint64_t start)
{
	enum { STP_SP_MASK = 0xffc07fff, STP_X19_X20 = 0xa90053f3 };
	uint32_t code[HANDLER_BEGIN];

	if (elf_file_read_vaddr(elf, start, code, sizeof(code)) < 0)
		return false;
	for (size_t i = 0; i < HANDLER_BEGIN; i++)
		if ((code[i] & STP_SP_MASK) == STP_X19_X20)
			return true;
	return false;
}

/* --- aarch64: functions that leave their stack ------------------------------------------------ */

struct rows_a64 {
	void (*emit)(void *arg, uint64_t addr, const struct unwind_rule *rule);
	void *arg;
};

static void row_a64(const struct rows_a64 *rows, uint64_t addr, const struct unwind_rule *rule)
{
	if (rows->emit)
		rows->emit(rows->arg, addr, rule);
}

/* Notes where the frame of crosscall2() has `reg`, `off` bytes from the stack pointer. */
static void save_a64(struct unwind_rule *rule, unsigned int reg, int64_t off)
{
	static const uint8_t regs[UNWIND_SLOTS] = A64_SLOT_REGS;
	int16_t words = (int16_t)((off - rule->cfa_off) / 8);

	if (reg == A64_LR) {
		rule->ra = RA_AT_CFA;
		rule->ra_off = words;
	}
	for (int i = 0; i < UNWIND_SLOTS; i++)
		if (regs[i] == reg)
			rule->slot_off[i] = words;
}

/* What one instruction stores into the frame: stp xA,xB,[sp,#N]; str xA,[sp,#N]. */
static void store_a64(struct unwind_rule *rule, uint32_t insn)
{
	enum { MASK = 0xffc003e0, STP = 0xa90003e0, STR = 0xf90003e0 };
	int64_t off;

	if ((insn & MASK) == STP) {
		off = 8 * a64_signed_bits(insn, 15, 7);
		save_a64(rule, insn & 31, off);
		save_a64(rule, insn >> 10 & 31, off + 8);
	} else if ((insn & MASK) == STR) {
		save_a64(rule, insn & 31, 8 * a64_bits(insn, 10, 12));
	}
}

/* What C calls: it saves all that C wants kept, and then its return address, above its arguments.
 */
static bool crosscall_rows(const uint32_t *code, size_t nr, uint64_t addr,
			   const struct rows_a64 *rows)
{
	enum { SIZE = 192, ADD_SP_SIZE = 0x910303ff };
	struct unwind_rule rule = go_frame_a64(0);
	const struct unwind_rule none = rule;
	bool saved = false;

	row_a64(rows, addr, &rule);
	rule.cfa_off = SIZE;
	row_a64(rows, addr + A64_INSN, &rule);
	for (size_t i = 1; i < nr; i++) {
		if (code[i] == ADD_SP_SIZE) {
			row_a64(rows, addr + A64_INSN * (i + 1), &none);
			return saved;
		}
		store_a64(&rule, code[i]);
		if (!saved && RULE_RA(&rule) == RA_AT_CFA) {
			saved = true;
			row_a64(rows, addr + A64_INSN * (i + 1), &rule);
		}
	}
	return false;
}

/*
 * The calls of the vDSO: str x30,[sp,#-N]!; ...; mov xK,sp; ...; mov sp,xL; a call; mov sp,xK; ...;
 * ldr x30,[sp],#N; ret. While it is away its frame is where xK says.
 */
static bool kept_sp_rows(const uint32_t *code, size_t nr, uint64_t addr,
			 const struct rows_a64 *rows)
{
	enum { FRAME_MASK = 0xffe00fff, PUSH_LR = 0xf8000ffe, POP_LR = 0xf84007fe, SP = 31 };
	enum { MOV_MASK = 0xfffffc1f, MOV_TO_SP = 0x9100001f };
	enum { BEFORE, KEPT, LEFT, BACK } state = BEFORE;
	unsigned int kept = 0, reg;
	struct unwind_rule rule;
	int64_t size = 0;

	row_a64(rows, addr,
		&(struct unwind_rule){
			.cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR });
	for (size_t i = 0; i < nr; i++) {
		uint64_t next = addr + A64_INSN * (i + 1);

		rule = go_frame_a64(size);
		if ((code[i] & FRAME_MASK) == PUSH_LR) {
			if (size)
				return false;
			size = -a64_signed_bits(code[i], 12, 9);
			rule = go_frame_a64(size);
		} else if ((code[i] & FRAME_MASK) == POP_LR) {
			rule = go_frame_a64(0);
			row_a64(rows, next, &rule);
			/* Behind the return the frame is there again. */
			rule = go_frame_a64(size);
			next += A64_INSN;
		} else if (keeps_sp(code[i], &reg) && state == BEFORE && size > 0) {
			state = KEPT;
			kept = reg;
			continue;
		} else if ((code[i] & MOV_MASK) == MOV_TO_SP && (code[i] >> 5 & 31) != SP) {
			if (state == KEPT && (code[i] >> 5 & 31) != kept) {
				rule.cfa_reg = (uint8_t)kept;
				rule.flags |= RULE_OTHER_STACK;
				state = LEFT;
			} else if (state == LEFT && (code[i] >> 5 & 31) == kept) {
				state = BACK;
			} else {
				return false;
			}
		} else {
			continue;
		}
		if (next < addr + A64_INSN * nr)
			row_a64(rows, next, &rule);
	}
	return state == BACK;
}

/*
 * Functions without a frame that never come back to the stack that they leave: the last call before
 * they do (save_g) overwrites the link register, and by then g is another one. From there on
 * morestack and mcall are as if nobody had called them; gogo is between two goroutines.
 */
static bool leaving_rows(const uint32_t *code, size_t nr, uint64_t addr,
			 const struct rows_a64 *rows)
{
	enum {
		BL_MASK = 0xfc000000,
		BL = 0x94000000,
		MOV_MASK = 0xfffffc1f,
		MOV_TO_SP = 0x9100001f
	};
	struct unwind_rule rule = go_frame_a64(0);
	size_t move = 0, call = 0;

	while (move < nr && (code[move] & MOV_MASK) != MOV_TO_SP) {
		if ((code[move] & BL_MASK) == BL)
			call = move;
		move++;
	}
	if (!call || move == nr)
		return false;
	row_a64(rows, addr, &rule);
	rule = goes_there(code[move - 1], code[move])
		       ? (struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_SWITCHED }
		       : (struct unwind_rule){ .cfa = CFA_END };
	/* Callers are looked for a byte before where they return to. */
	row_a64(rows, addr + A64_INSN * call + 1, &rule);
	for (size_t i = move; i < nr; i++)
		if (is_first_frame(code[i]))
			return true;
	return rule.cfa == CFA_FRAME_POINTER;
}

bool go_code_rows_a64(const uint32_t *code, size_t nr, uint64_t addr,
		      void (*emit)(void *arg, uint64_t addr, const struct unwind_rule *rule),
		      void *arg)
{
	const struct rows_a64 rows = { emit, arg }, nowhere = { NULL, NULL };
	bool (*const kinds[])(const uint32_t *, size_t, uint64_t,
			      const struct rows_a64 *) = { crosscall_rows, kept_sp_rows,
							   leaving_rows };

	for (size_t i = nr >= 2 && begins_crosscall(code[0], code[1]) ? 0 : 1; i < 3; i++)
		if (kinds[i](code, nr, addr, &nowhere))
			return kinds[i](code, nr, addr, &rows);
	return false;
}
