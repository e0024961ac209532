// SPDX-License-Identifier: Apache-2.0
#include "unwind/code_follow.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/go_table.h"
#include "util/cleanup.h"

enum {
	/* Bytes before and behind the address that are looked at, and that many times as many for
	 * the few functions that are larger. */
	AROUND = 16 << 10,
	LARGER = 8,
	STARTS_MAX = 16,     /* where its function may begin */
	STEPS_MAX = 4096,    /* on the way to a return */
	BRANCHES_MAX = 64,   /* that are still to be taken on it */
	FAR = 1 << 20,	     /* a stack pointer's distance from the CFA while it is not known */
	FRAME_WORDS_MAX = 8, /* how far from the CFA a frame pointer is saved */
	ALIGN = 16,	     /* of functions, x86-64 */
	PADDING_MAX = 15,
	CALL_MAX = 8, /* bytes of a call */
	INT3 = 0xcc,
};

struct follower {
	struct cfi_arch cfi;
	struct scan_arch arch;
	uint8_t *code;
	uint64_t start, end; /* of `code` */
	uint64_t addr;	     /* in question */
	uint8_t *seen;	     /* by byte of `code`: find_return() has been there */
	bool only_returns;   /* nothing counts but what leads to a return */
	bool is_known;	     /* `code` is one function */
	bool of_caller;	     /* the address is a call's */
};

/* Behind push %rbp; mov %rsp, %rbp. */
static const struct scan_state standard_state = {
	.fp_known = 1, .fp_off = 16, .slots = { -2 }, .ra = RA_AT_CFA, .ra_off = -1
};

static void follower_fini(struct follower *f)
{
	free(f->code);
	free(f->seen);
}

static int room_for_code(struct follower *f)
{
	f->code = malloc(f->end - f->start);
	f->seen = calloc(1, f->end - f->start);
	return f->code && f->seen ? 0 : -ENOMEM;
}

static int read_code(const struct elf_file *elf, uint64_t addr, uint64_t around, struct follower *f)
{
	size_t i;

	for (i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && addr - s->vaddr < s->filesz) {
			f->start = addr - s->vaddr > around ? addr - around : s->vaddr;
			f->start &= -(uint64_t)ALIGN;
			f->start = f->start < s->vaddr ? s->vaddr : f->start;
			f->end = s->vaddr + s->filesz - addr > around ? addr + around
								      : s->vaddr + s->filesz;
			if (room_for_code(f))
				return -ENOMEM;
			return elf_file_read_vaddr(elf, f->start, f->code, f->end - f->start);
		}
	}
	return -EFAULT;
}

static bool decode(const struct follower *f, uint64_t at, struct code_insn *insn,
		   struct scan_state *state)
{
	return at >= f->start && at < f->end &&
	       f->arch.step(&f->cfi, f->code + (at - f->start), f->end - at, at, insn, state);
}

/* --- from the function's begin --------------------------------------------------------------- */

/* Whether an instruction that ends at `at` stands between functions, or ends one. */
static bool ends_before(const struct follower *f, uint64_t at)
{
	struct code_insn insn;
	uint64_t len, max = f->arch.min_insn > 1 ? f->arch.min_insn : PADDING_MAX;

	for (len = f->arch.min_insn; len <= max && at - f->start >= len; len++) {
		if (!decode(f, at - len, &insn, NULL) || insn.len != len)
			continue;
		if (insn.padding || insn.flow == FLOW_RETURN || insn.flow == FLOW_JUMP ||
		    insn.flow == FLOW_STOP || insn.flow == FLOW_INDIRECT)
			return true;
	}
	return false;
}

/* As most functions begin: behind another one, and with what only functions begin with. */
static bool begins(const struct follower *f, uint64_t at)
{
	static const uint8_t go[] = { 0x49, 0x3b, 0x66, 0x10 }; /* cmp 0x10(%r14),%rsp */
	const uint8_t *p = f->code + (at - f->start);

	if (at == f->start)
		return false; /* what is before it was not read */
	if (!f->arch.prologue(p, f->end - at, at) &&
	    !(f->cfi.machine == EM_X86_64 &&
	      (p[-1] == INT3 || (f->end - at > sizeof(go) && !memcmp(p, go, sizeof(go))))))
		return false;
	/* Last, since it takes the longest: to read backwards is to try each length. */
	return ends_before(f, at);
}

static bool are_traps(const struct follower *f, uint64_t end)
{
	const uint8_t *p = f->code + (end - f->start);

	return f->cfi.machine == EM_X86_64 && end - f->start >= 2 && p[-1] == INT3 && p[-2] == INT3;
}

/* What makes a begin of a function believed. */
enum evidence {
	LOOKS, /* it looks like one in each respect */
	ENDS,  /* what is before it ends, and all that it leads to ends as functions do */
	/* It looks like one, and the frame pointer was set up on the way from there. How it ends
	 * does not count: V8's builtins take their arguments off the stack. */
	FRAME_POINTER,
};

/* The frame pointer leads to the caller's, with the return address above it. On aarch64 many stores
 * look like a begin, so that one has to be told. */
static bool is_standard(const struct follower *f, const struct scan_state *s)
{
	return s && (f->cfi.machine == EM_X86_64 || f->is_known) && s->kind == SCAN_FOLLOWED &&
	       s->fp_known && s->fp_off == -8 * s->slots[0] && s->ra == RA_AT_CFA &&
	       s->ra_off == s->slots[0] + 1;
}

/* What has `state` at `at`, followed as far as it goes. *ret is the caller's after an error, too.
 */
static int scan_from(const struct follower *f, uint64_t at, const struct scan_state *state,
		     struct scan **ret, struct scan_verdict *ret_verdict)
{
	int r = scan_new(&f->arch, f->code, f->end - f->start, f->start, ret);

	return r ? r : scan_one(*ret, at, state, ret_verdict);
}

/* The function's scan, if it begins at `at` and leads to the address and to good ends. */
static int try_begin(const struct follower *f, uint64_t at, enum evidence evidence,
		     struct scan **ret)
{
	_cleanup_(scan_free_p) struct scan *scan = NULL;
	const struct scan_state *state;
	struct scan_verdict v = { 0 };
	bool believed;
	int r = scan_from(f, at, &f->arch.entry, &scan, &v);

	if (r)
		return r;
	state = scan_state_at(scan, f->addr);
	if (evidence == FRAME_POINTER)
		believed = is_standard(f, state);
	else if (f->only_returns)
		believed = !v.bad && v.good;
	else /* Behind traps it needs no end at all: there are functions that never return. */
		believed =
			!v.bad && (v.good || (evidence == LOOKS && (v.tails || are_traps(f, at))));
	if (state && believed)
		*ret = TAKE_PTR(scan);
	return 0;
}

/* The nearest begin of which that is so; *ret is NULL if there is none. */
static int from_begin(const struct follower *f, enum evidence evidence, struct scan **ret)
{
	uint64_t step = f->arch.min_insn > 1 ? f->arch.min_insn : ALIGN, at;
	int nr = 0, r = 0;

	for (at = f->addr & -step; at > f->start && nr < STARTS_MAX && !*ret && !r; at -= step) {
		if (evidence == ENDS ? begins(f, at) || !ends_before(f, at) : !begins(f, at))
			continue;
		r = try_begin(f, at, evidence, ret);
		nr++;
	}
	return r;
}

/* --- from the address on --------------------------------------------------------------------- */

struct branch {
	uint64_t at;
	struct scan_state state;
};

struct ends {
	bool returns; /* a return was found, or a jump in place of it: */
	bool tail;
	int64_t sp_off; /* what is between stack pointer and CFA at the address, then */
	bool by_fp;	/* on some way the stack pointer is taken from the frame pointer */
};

/* A call that ends at `at` may never come back: padding or another function is behind it. */
static bool never_returns(const struct follower *f, uint64_t at)
{
	struct code_insn insn;

	return !decode(f, at, &insn, NULL) || insn.padding ||
	       f->arch.prologue(f->code + (at - f->start), f->end - at, at);
}

/* One way, up to where it ends or has been walked; false: nothing more is to be learned. */
static void walk_branch(struct follower *f, struct branch b, struct branch *branches, size_t *nr,
			int *steps, struct ends *ends)
{
	struct code_insn insn;
	bool popped = false;

	while (*steps && !ends->returns) {
		int64_t before = b.state.sp_off;

		--*steps;
		if (b.at - f->start >= f->end - f->start || f->seen[b.at - f->start] ||
		    !decode(f, b.at, &insn, &b.state))
			return;
		f->seen[b.at - f->start] = 1;
		if (b.state.kind != SCAN_FOLLOWED || b.state.sp != SP_KNOWN) {
			ends->by_fp |= b.state.kind == SCAN_UNKNOWN;
			return;
		}
		/* Jumps to other functions stand right behind the last pop. */
		ends->tail = popped && !f->only_returns &&
			     (insn.flow == FLOW_INDIRECT || insn.flow == FLOW_JUMP);
		if (insn.flow == FLOW_RETURN || ends->tail) {
			ends->returns = true;
			ends->sp_off = FAR - b.state.sp_off + f->arch.entry.sp_off;
			return;
		}
		if (insn.flow >= FLOW_INDIRECT)
			return;
		popped = b.state.sp_off < before;
		if (insn.flow == FLOW_COND && *nr < BRANCHES_MAX)
			branches[(*nr)++] = (struct branch){ insn.target, b.state };
		b.at = insn.flow == FLOW_JUMP ? insn.target : b.at + insn.len;
		if (insn.flow == FLOW_CALL && never_returns(f, b.at))
			return;
	}
}

static struct ends find_return(struct follower *f)
{
	const struct scan_state unknown = {
		.sp_off = FAR, .sp = SP_KNOWN, .ra = RA_AT_CFA, .ra_off = f->arch.entry.ra_off
	};
	struct branch branches[BRANCHES_MAX] = { { f->addr, unknown } };
	struct ends ends = { 0 };
	int steps = STEPS_MAX;
	size_t nr = 1;

	while (nr && !ends.returns) {
		struct branch b = branches[--nr];

		walk_branch(f, b, branches, &nr, &steps, &ends);
	}
	return ends;
}

/* The scan from the address on with that state, if all that it reaches ends well; else NULL. */
static int try_state(const struct follower *f, const struct scan_state *state, bool tail,
		     struct scan **ret)
{
	_cleanup_(scan_free_p) struct scan *scan = NULL;
	struct scan_verdict verdict = { 0 };
	int r = scan_from(f, f->addr, state, &scan, &verdict);

	if (!r && !verdict.bad && (verdict.good || (tail && verdict.tails)))
		*ret = TAKE_PTR(scan);
	return r;
}

/* With so much on the stack: is the frame pointer the caller's, or where was it saved? */
static int try_distance(const struct follower *f, int64_t sp_off, bool tail, struct scan **ret)
{
	struct scan_state state = { .sp_off = (int32_t)sp_off,
				    .sp = SP_KNOWN,
				    .ra = RA_AT_CFA,
				    .ra_off = f->arch.entry.ra_off };
	int r = try_state(f, &state, tail, ret), word;

	for (word = 2; !r && !*ret && word <= FRAME_WORDS_MAX && 8 * word <= sp_off; word++) {
		state.slots[0] = (int16_t)-word;
		r = try_state(f, &state, tail, ret);
	}
	return r;
}

/* x86-64 only: what returns there leaves the stack pointer at the return address. */
static int from_here(struct follower *f, struct scan **ret)
{
	struct ends ends;
	int r = 0;

	if (f->cfi.machine != EM_X86_64)
		return 0;
	ends = find_return(f);
	if (ends.returns && ends.sp_off >= f->arch.entry.sp_off && ends.sp_off < FAR)
		r = try_distance(f, ends.sp_off, ends.tail, ret);
	if (!r && !*ret && ends.by_fp)
		r = try_state(f, &standard_state, true, ret);
	return r;
}

/* --- both ------------------------------------------------------------------------------------ */

static bool agree(const struct scan_state *a, const struct scan_state *b)
{
	if (a->kind != SCAN_FOLLOWED || b->kind != SCAN_FOLLOWED)
		return false;
	if (a->sp == SP_KNOWN && b->sp == SP_KNOWN)
		return a->sp_off == b->sp_off && a->slots[0] == b->slots[0];
	return a->fp_known && b->fp_known && a->fp_off == b->fp_off;
}

static int add(struct code_rows *rows, uint64_t addr, const struct unwind_rule *rule)
{
	struct code_row row = { .addr = addr, .known = rule };
	const struct code_row *last = rows->rows.nr ? &rows->rows.items[rows->rows.nr - 1] : NULL;

	if (rule)
		row.rule = *rule;
	if (last ? last->known == row.known && !memcmp(&last->rule, &row.rule, sizeof(row.rule))
		 : !rule)
		return 0;
	return vec_push(&rows->rows, row);
}

/*
 * The rule of a state: by the frame pointer wherever that is set up, which holds over all that a
 * function pushes, so that most functions have five rows.
 */
static struct unwind_rule rule_of(const struct follower *f, const struct scan_state *state)
{
	struct scan_state s = *state;
	union cfi_rule rule;

	if (is_standard(f, &s))
		s.sp = SP_UNKNOWN;
	scan_rule(&f->arch, &s, &rule);
	return rule.rule;
}

/* Which states count: all that are there, or only those by the frame pointer, or also those where
 * the stack pointer is. */
enum which { ALL, STANDARD, FOLLOWED };

static bool counts(const struct scan_state *s, const struct follower *f, enum which which)
{
	return s && (which == ALL || is_standard(f, s) ||
		     (which == FOLLOWED && s->kind == SCAN_FOLLOWED && s->sp == SP_KNOWN));
}

static int add_all(const struct follower *f, const struct scan *scan, enum which which,
		   struct code_rows *rows)
{
	uint64_t at, end;
	int r = 0;

	scan_extent(scan, &at, &end);
	while (!r && at < end && rows->rows.nr < CODE_ROWS_MAX) {
		const struct scan_state *s = scan_state_at(scan, at);
		bool known = counts(s, f, which);
		struct unwind_rule rule;

		if (known)
			rule = rule_of(f, s);
		r = add(rows, at, known ? &rule : NULL);
		at += s ? scan_length_at(scan, at) : 1;
	}
	return r ? r : add(rows, at, NULL);
}

static int add_undecided(uint64_t start, uint64_t end, struct code_rows *rows)
{
	const struct unwind_rule rule = { .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_UNDECIDED };
	int r = add(rows, start, &rule);

	return r ? r : add(rows, end, NULL);
}

int code_give_up(uint64_t addr, struct code_rows *ret)
{
	enum { BYTES = 4096 };
	uint64_t start = addr & -(uint64_t)BYTES;

	*ret = (struct code_rows){ 0 };
	return add_undecided(start, start + BYTES, ret);
}

/* Whether anything is known of the address then. */
static int follow(struct follower *f, struct code_rows *ret, bool *ret_known)
{
	_cleanup_(scan_free_p) struct scan *begin = NULL, *here = NULL;
	enum which which = ALL;
	int r = from_begin(f, LOOKS, &begin);

	if (!r && !begin)
		r = from_begin(f, ENDS, &begin);
	if (!r)
		r = from_here(f, &here);
	if (!r && !begin && !here && !f->only_returns) {
		r = from_begin(f, FRAME_POINTER, &begin);
		which = begin ? STANDARD : ALL;
	}
	*ret_known = (begin || here) &&
		     (!begin || !here ||
		      agree(scan_state_at(begin, f->addr), scan_state_at(here, f->addr)));
	return r || !*ret_known ? r : add_all(f, begin ? begin : here, which, ret);
}

/*
 * Where the frame pointer is set up, if nothing but what runs straight on is before that; 0: it is
 * not, or not so, or the return address is not on the stack then.
 */
static uint64_t behind_prologue(const struct follower *f, uint64_t at)
{
	static const uint8_t frame[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push %rbp; mov %rsp,%rbp */
	struct scan_state s = f->arch.entry;
	struct code_insn insn;

	for (; at + sizeof(frame) <= f->end; at += insn.len) {
		if (!memcmp(f->code + (at - f->start), frame, sizeof(frame)))
			return s.ra == RA_IN_REG ? 0 : at + sizeof(frame);
		if (!decode(f, at, &insn, &s) || insn.flow != FLOW_NEXT)
			return 0;
	}
	return 0;
}

/*
 * Whether the function takes down a frame and sets up none: it was jumped to by the one that has
 * set it up, and has its frame pointer from the first instruction on (V8's BaselineLeaveFrame).
 */
static bool takes_over_frame(const struct follower *f)
{
	static const uint8_t leaves[] = { 0x48, 0x8b, 0xe5, 0x5d }; /* mov %rbp,%rsp; pop %rbp */
	struct code_insn insn;
	bool found = false;

	if (!f->is_known || !f->arch.frame)
		return false;
	for (uint64_t at = f->start; at < f->end && decode(f, at, &insn, NULL); at += insn.len) {
		const uint8_t *p = f->code + (at - f->start);

		if (f->arch.frame(p, f->end - at))
			return false;
		found = found ||
			(f->end - at >= sizeof(leaves) && !memcmp(p, leaves, sizeof(leaves)));
	}
	return found;
}

/* Whether it is returned to at its first instruction, which lies behind a trap (code_follow.h). */
static bool is_returned_to(const struct follower *f)
{
	return f->is_known && f->cfi.machine == EM_X86_64 && f->end - f->start > 1 &&
	       f->code[0] == INT3;
}

static uint64_t begin_of(const struct follower *f)
{
	return f->start + is_returned_to(f);
}

static const struct scan_state *begin_state(const struct follower *f)
{
	return is_returned_to(f) || takes_over_frame(f) ? &standard_state : &f->arch.entry;
}

static int follow_from(const struct follower *f, uint64_t at, const struct scan_state *state,
		       enum which which, struct code_rows *ret, bool *ret_known)
{
	_cleanup_(scan_free_p) struct scan *scan = NULL;
	const struct scan_state *found;
	struct scan_verdict v = { 0 };
	int r = scan_from(f, at, state, &scan, &v);

	if (r)
		return r;
	/* Callees take their arguments off the stack: behind calls only the frame pointer tells. */
	if (f->of_caller && (v.bad || !v.good))
		which = STANDARD;
	found = scan_state_at(scan, f->addr);
	*ret_known = counts(found, f, which);
	return *ret_known ? add_all(f, scan, which, ret) : 0;
}

/* From the begin of the function, which is all that was read, and is known to be one. */
static int follow_known(struct follower *f, struct code_rows *ret, bool *ret_known)
{
	uint64_t at;
	int r = follow_from(f, begin_of(f), begin_state(f), FOLLOWED, ret, ret_known);

	if (r || *ret_known || f->cfi.machine != EM_X86_64)
		return r;
	at = behind_prologue(f, f->start);
	return at && at <= f->addr ? follow_from(f, at, &standard_state, STANDARD, ret, ret_known)
				   : 0;
}

/*
 * Follows a caller, `addr`: by the instruction that ends there and calls. Where there are two
 * readings of it, the one of which more is known: both do the same to the stack.
 */
static int follow_caller(struct follower *f, struct code_rows *ret, bool *ret_known)
{
	uint64_t addr = f->addr, len;
	struct code_insn insn;
	int r = 0;

	*ret_known = false;
	for (len = 2; !r && !*ret_known && len <= CALL_MAX && len <= addr - f->start; len++) {
		f->addr = addr - len;
		if (!decode(f, f->addr, &insn, NULL) || insn.len != len || !code_calls(&insn))
			continue;
		memset(f->seen, 0, f->end - f->start);
		r = f->is_known ? follow_known(f, ret, ret_known) : follow(f, ret, ret_known);
	}
	return r;
}

static int follower_init(struct follower *f, uint16_t machine)
{
	int r = cfi_arch_init(&f->cfi, machine, 0);

	if (!r && machine == EM_X86_64)
		scan_arch_x86(&f->cfi, &f->arch);
	else if (!r)
		scan_arch_a64(&f->cfi, &f->arch);
	return r;
}

static int follow_within(const struct elf_file *elf, uint64_t addr, bool is_caller, uint64_t around,
			 struct code_rows *ret, bool *ret_known)
{
	_cleanup_(follower_fini) struct follower f = { .addr = addr + is_caller };
	int r = follower_init(&f, elf->machine);

	if (!r)
		r = read_code(elf, addr, around, &f);
	if (r < 0)
		return r;
	f.arch.of_go = elf->machine == EM_X86_64 && go_made(elf);
	return is_caller ? follow_caller(&f, ret, ret_known) : follow(&f, ret, ret_known);
}

static const struct unwind_rule *rule_at(const struct code_rows *rows, uint64_t addr)
{
	const struct code_row *row = NULL;

	for (size_t i = 0; i < rows->rows.nr && rows->rows.items[i].addr <= addr; i++)
		row = &rows->rows.items[i];
	return row && row->known ? &row->rule : NULL;
}

static int read_function(const struct elf_file *elf, const struct code_range *function,
			 struct follower *f)
{
	f->start = function->start;
	f->end = function->end;
	f->is_known = true;
	if (f->end - f->start > SCAN_BYTES_MAX)
		return -ENOTSUP;
	return room_for_code(f) ? -ENOMEM
				: elf_file_read_vaddr(elf, f->start, f->code, f->end - f->start);
}

int code_follow_function(const struct elf_file *elf, const struct code_range *function,
			 uint64_t addr, bool is_caller, struct code_rows *ret)
{
	_cleanup_(follower_fini) struct follower f = { .addr = addr + is_caller,
						       .of_caller = is_caller };
	bool known = false;
	int r = follower_init(&f, elf->machine);

	*ret = (struct code_rows){ 0 };
	if (!r)
		r = read_function(elf, function, &f);
	if (!r)
		r = is_caller ? follow_caller(&f, ret, &known) : follow_known(&f, ret, &known);
	if (!r && known && rule_at(ret, addr))
		return 0;
	code_rows_fini(ret);
	*ret = (struct code_rows){ 0 };
	return r ? r : add_undecided(addr, addr + 1, ret);
}

/* All that is reached from there; of which the stack pointer tells only where that is sure. */
static int reach_from(const struct follower *f, uint64_t at, const struct scan_state *state,
		      struct code_rows *ret)
{
	_cleanup_(scan_free_p) struct scan *scan = NULL;
	struct scan_verdict v = { 0 };
	int r = scan_from(f, at, state, &scan, &v);

	return r ? r : add_all(f, scan, v.bad || !v.good ? STANDARD : FOLLOWED, ret);
}

int code_follow_ahead(const struct elf_file *elf, const struct code_range *function,
		      struct code_rows *ret)
{
	_cleanup_(follower_fini) struct follower f = { .addr = function->start };
	uint64_t at;
	int r = follower_init(&f, elf->machine);

	*ret = (struct code_rows){ 0 };
	if (!r)
		r = read_function(elf, function, &f);
	if (!r)
		r = reach_from(&f, begin_of(&f), begin_state(&f), ret);
	/* What is asked for of a caller is what is before its return address. */
	if (!r && ret->rows.nr && is_returned_to(&f))
		ret->rows.items[0].addr = f.start;
	at = !r && !ret->rows.nr && elf->machine == EM_X86_64 ? behind_prologue(&f, f.start) : 0;
	if (at)
		r = reach_from(&f, at, &standard_state, ret);
	if (r)
		code_rows_fini(ret);
	return r;
}

int code_follow(const struct elf_file *elf, uint64_t addr, bool is_caller, struct code_rows *ret)
{
	bool known;
	int r;

	*ret = (struct code_rows){ 0 };
	r = follow_within(elf, addr, is_caller, AROUND, ret, &known);
	if (!r && !known)
		r = follow_within(elf, addr, is_caller, LARGER * AROUND, ret, &known);
	/* Too many rows before it, of code that no compiler makes. */
	if (!r && known && !rule_at(ret, addr)) {
		code_rows_fini(ret);
		known = false;
	}
	if (!r && !known)
		r = add_undecided(addr, addr + 1, ret);
	if (r)
		code_rows_fini(ret);
	return r;
}

int code_follow_bytes(const struct code_bytes *code, uint64_t addr, bool is_caller,
		      struct unwind_rule *ret)
{
	_cleanup_(follower_fini) struct follower f = { .addr = addr + is_caller,
						       .start = code->addr,
						       .end = code->addr + code->size,
						       .only_returns = true };
	_cleanup_(code_rows_fini) struct code_rows rows = { 0 };
	const struct unwind_rule *rule;
	bool known = false;
	int r;

	if (addr - code->addr >= code->size)
		return -EFAULT;
	r = follower_init(&f, code->machine);
	if (!r)
		r = room_for_code(&f);
	if (r)
		return r;
	memcpy(f.code, code->bytes, code->size);
	r = is_caller ? follow_caller(&f, &rows, &known) : follow(&f, &rows, &known);
	if (r)
		return r;
	rule = known ? rule_at(&rows, addr) : NULL;
	if (!rule || rule->cfa != CFA_REG || RULE_RA(rule) != RA_AT_CFA)
		return -ENOENT;
	*ret = *rule;
	/* The way to a return tells of the frame pointer only, of other registers not that the
	 * caller's were not saved before. */
	for (int i = 1; i < UNWIND_CFA_OFF2_SLOT; i++)
		if (ret->slot_off[i] == SLOT_SAME)
			ret->slot_off[i] = SLOT_LOST;
	return 0;
}

void code_rows_fini(struct code_rows *rows)
{
	vec_free(&rows->rows);
}
