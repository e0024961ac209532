// SPDX-License-Identifier: Apache-2.0
#include "unwind/code_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/never_returns.h"
#include "util/cleanup.h"
#include "util/vec.h"

enum {
	STATE_HASH = 1024,
	STEPS_A_BYTE = 8,  /* revisions included; two are normal */
	TRIAL_STEPS = 200, /* instructions of one way, and of all ways twice as many */
	TRIAL_WAYS = 16,   /* that are still to be tried */
	TRIAL_SEEN = 256,  /* a hash */
	CALL_ALIGN = 16,   /* of the stack where a function is called */
	CALLEE_DEPTH = 8,
	CALLEE_SIZE_MAX = 1 << 16, /* what is jumped to further on is another function */
	KEPT_HASH = 64,
	/* In `lengths`, beside an instruction's length: */
	LENGTH_MASK = 0x1f,
	/*
	 * Reached behind a call, or by a guess: calls may not come back (abort), and then what is
	 * behind them is another block's. A jump that says otherwise is right.
	 */
	REACHED_WEAKLY = 0x80,
	FUNCTION = 0x40, /* a function's first instruction: a jump never says otherwise */
};

/* Something to follow: `old` is the number of the state that is being revised, or 0. */
struct work {
	uint32_t at;
	uint16_t old;
};

/* Whether the function at `start` leaves a register alone. */
struct kept {
	size_t start;
	uint8_t reg;
	bool known, keeps;
};

struct scan {
	const struct scan_arch *arch;
	const uint8_t *code;
	size_t size;
	uint64_t addr;
	uint16_t *states; /* by byte: number + 1 of the state before the instruction that begins
			     there */
	uint8_t *lengths; /* by byte: of the instruction that begins there, and flags */
	VEC(struct scan_state) table;
	uint16_t hash[STATE_HASH]; /* number + 1 of the last state with that hash */
	VEC(struct work) work;
	size_t steps;	     /* left */
	size_t callee_steps; /* likewise, of function_keeps() */
	struct kept kept[KEPT_HASH];
	struct never_returns *never;
	bool one;		/* calls lead elsewhere */
	size_t lowest, highest; /* instruction, of that one */
	struct scan_verdict verdict;
	bool failed; /* out of memory */
};

int scan_new(const struct scan_arch *arch, const uint8_t *code, size_t size, uint64_t addr,
	     struct scan **ret)
{
	_cleanup_(scan_free_p) struct scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return -ENOMEM;
	scan->arch = arch;
	scan->code = code;
	scan->size = size < SCAN_BYTES_MAX ? size : SCAN_BYTES_MAX;
	scan->addr = addr;
	scan->steps = scan->size * STEPS_A_BYTE;
	scan->callee_steps = scan->size;
	scan->lowest = scan->size;
	scan->states = calloc(scan->size + 1, sizeof(*scan->states));
	scan->lengths = calloc(scan->size + 1, sizeof(*scan->lengths));
	if (!scan->states || !scan->lengths)
		return -ENOMEM;
	*ret = TAKE_PTR(scan);
	return 0;
}

void scan_free(struct scan *scan)
{
	if (!scan)
		return;
	free(scan->states);
	free(scan->lengths);
	vec_free(&scan->table);
	vec_free(&scan->work);
	free(scan);
}

static uint32_t hash_state(const struct scan_state *state)
{
	uint64_t v[sizeof(*state) / 8], h = 0;

	memcpy(v, state, sizeof(v));
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		h = (h ^ v[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 32;
	return h & (STATE_HASH - 1);
}

/* The state's number + 1; 0 if there are too many. Equal ones may have two numbers: no harm. */
static uint16_t state_number(struct scan *scan, const struct scan_state *state)
{
	uint16_t *cached = &scan->hash[hash_state(state)];

	if (*cached && !memcmp(&scan->table.items[*cached - 1], state, sizeof(*state)))
		return *cached;
	if (scan->table.nr == SCAN_STATES_MAX)
		return 0;
	if (vec_push(&scan->table, *state) < 0) {
		scan->failed = true;
		return 0;
	}
	*cached = scan->table.nr;
	return *cached;
}

static void set_state(struct scan *scan, size_t at, uint16_t number, uint16_t old)
{
	scan->states[at] = number;
	if (number && vec_push(&scan->work, (struct work){ at, old }) < 0)
		scan->failed = true;
}

/*
 * Two ways meet, and on the one that comes now the function has gone over to another stack: what
 * holds then is what the frame pointer tells on both, or the register with the old stack pointer.
 */
static bool meets(const struct scan *scan, size_t at, const struct scan_state *state)
{
	const struct scan_state *known = &scan->table.items[scan->states[at] - 1];

	if (!state->switched || known->switched || scan->lengths[at] & FUNCTION ||
	    known->kind != SCAN_FOLLOWED || state->kind != SCAN_FOLLOWED)
		return false;
	return (known->fp_known && state->fp_known && known->fp_off == state->fp_off) ||
	       (known->has_old && state->has_old && known->old_reg == state->old_reg &&
		known->old_off == state->old_off);
}

/*
 * A jump from a state (formerly `old`, if that is being revised) reaches an instruction. The first
 * that comes says what its state is, unless that was weak, or followed from what was weak.
 */
static void reach(struct scan *scan, uint64_t at, const struct scan_state *state, uint16_t old)
{
	uint16_t number;
	uint8_t *flags;

	if (at >= scan->size)
		return;
	flags = &scan->lengths[at];
	if (scan->states[at] && !meets(scan, at, state) &&
	    (*flags & FUNCTION || !(*flags & REACHED_WEAKLY || (old && scan->states[at] == old))))
		return;
	*flags &= ~REACHED_WEAKLY;
	number = state_number(scan, state);
	if (number != scan->states[at])
		set_state(scan, at, number, scan->states[at]);
}

static void reach_function(struct scan *scan, uint64_t at, const struct scan_state *state)
{
	reach(scan, at, state, 0);
	if (at < scan->size)
		scan->lengths[at] |= FUNCTION;
}

void scan_function(struct scan *scan, uint64_t addr)
{
	reach_function(scan, addr - scan->addr, &scan->arch->entry);
}

void scan_entry_point(struct scan *scan, uint64_t addr)
{
	struct scan_state state = { .kind = SCAN_END };

	reach_function(scan, addr - scan->addr, &state);
}

void scan_never_returns(struct scan *scan, struct never_returns *never)
{
	scan->never = never;
}

static bool prologue_at(const struct scan *scan, size_t at)
{
	return at < scan->size &&
	       scan->arch->prologue(scan->code + at, scan->size - at, scan->addr + at);
}

static bool sp_followed(const struct scan_state *s)
{
	return s->kind == SCAN_FOLLOWED && s->sp == SP_KNOWN;
}

/* Functions that are being looked at, each of which calls the next. */
struct callees {
	size_t start[CALLEE_DEPTH];
	int nr;
};

static bool function_keeps(struct scan *scan, size_t start, uint8_t reg, struct callees *callees);

/* Of a call or a tail call. One that is being looked at keeps it if the rest of it does. */
static bool callee_keeps(struct scan *scan, size_t start, uint8_t reg, struct callees *callees)
{
	bool keeps;

	for (int i = 0; i < callees->nr; i++)
		if (callees->start[i] == start)
			return true;
	if (callees->nr == CALLEE_DEPTH)
		return false;
	callees->start[callees->nr++] = start;
	keeps = function_keeps(scan, start, reg, callees);
	callees->nr--;
	return keeps;
}

/*
 * Whether the function at `start` leaves a register alone, as helpers of hand-written assembly do:
 * all of it is read, and what it calls.
 */
static bool function_keeps(struct scan *scan, size_t start, uint8_t reg, struct callees *callees)
{
	size_t at = start, reached = start;
	struct code_insn insn;

	for (; scan->callee_steps && at < scan->size; scan->callee_steps--) {
		const uint8_t *p = scan->code + at;
		size_t to;
		bool jumps;

		if (!scan->arch->step(scan->arch->cfi, p, scan->size - at, scan->addr + at, &insn,
				      NULL) ||
		    scan->arch->writes(p, &insn, reg) || insn.flow == FLOW_CALL_INDIRECT ||
		    insn.flow == FLOW_INDIRECT)
			return false;
		jumps = insn.flow == FLOW_COND || insn.flow == FLOW_JUMP;
		to = insn.target - scan->addr;
		if (jumps && to > start && to < at + CALLEE_SIZE_MAX)
			reached = to > reached ? to : reached;
		else if ((jumps || insn.flow == FLOW_CALL) && !callee_keeps(scan, to, reg, callees))
			return false;
		at += insn.len;
		if (at > reached && (insn.flow == FLOW_RETURN || insn.flow == FLOW_JUMP))
			return true;
	}
	return false;
}

/* callee_keeps(), remembered. */
static bool call_keeps(struct scan *scan, size_t start, uint8_t reg)
{
	struct callees callees = { .nr = 0 };
	struct kept *kept = &scan->kept[(start ^ start >> 6) % KEPT_HASH];

	if (start >= scan->size)
		return false;
	if (!kept->known || kept->start != start || kept->reg != reg) {
		*kept = (struct kept){ .start = start, .reg = reg, .known = true };
		kept->keeps = callee_keeps(scan, start, reg, &callees);
	}
	return kept->keeps;
}

/* As arch->step(), but a call leaves what its callee is known to leave alone. */
static bool step(struct scan *scan, size_t at, struct code_insn *insn, struct scan_state *state)
{
	const struct scan_arch *arch = scan->arch;
	struct scan_state before = *state;

	if (!arch->step(arch->cfi, scan->code + at, scan->size - at, scan->addr + at, insn, state))
		return false;
	if (insn->flow == FLOW_CALL && before.has_old && !state->has_old &&
	    insn->target != scan->addr + at + insn->len &&
	    call_keeps(scan, insn->target - scan->addr, before.old_reg))
		*state = before;
	return true;
}

/* A call of what never returns. What is behind it is reached otherwise, or is another function. */
static bool comes_not_back(struct scan *scan, const struct code_insn *insn)
{
	return insn->flow == FLOW_CALL && scan->never && never_returns(scan->never, insn->target);
}

/* Ways through code that is tried: where they begin, with what, and where a way has been. */
struct trial {
	struct trial_way {
		size_t at;
		struct scan_state state;
	} ways[TRIAL_WAYS];
	size_t nr;
	int steps; /* left, of so many: */
	int max_steps;
	uint32_t seen[TRIAL_SEEN];
};

static bool was_seen(struct trial *t, size_t at)
{
	uint32_t *seen = &t->seen[(at ^ at >> 8) % TRIAL_SEEN];

	if (*seen == at + 1)
		return true;
	*seen = (uint32_t)at + 1;
	return false;
}

/* One way: true if it comes to where it shows how far off the state is. */
static bool try_way(struct scan *scan, struct trial *t, struct trial_way w, int64_t *ret_off_by)
{
	struct scan_state *s = &w.state;
	size_t at = w.at;
	struct code_insn insn;
	bool weakly = false; /* behind a call that may not return */

	for (; t->steps && at < scan->size && s->kind == SCAN_FOLLOWED; t->steps--) {
		if (t->steps < t->max_steps && scan->states[at]) {
			const struct scan_state *known = &scan->table.items[scan->states[at] - 1];

			*ret_off_by = (int64_t)known->sp_off - s->sp_off;
			return sp_followed(known) && sp_followed(s) && !weakly;
		}
		if (was_seen(t, at) || !step(scan, at, &insn, s))
			return false;
		if (insn.flow == FLOW_RETURN) {
			*ret_off_by = (int64_t)scan->arch->entry.sp_off - s->sp_off;
			return sp_followed(s);
		}
		if (insn.flow == FLOW_INDIRECT || insn.flow == FLOW_STOP)
			return false;
		if (comes_not_back(scan, &insn))
			return false;
		if (insn.flow == FLOW_COND && t->nr < TRIAL_WAYS)
			t->ways[t->nr++] = (struct trial_way){ insn.target - scan->addr, *s };
		weakly = insn.flow == FLOW_CALL || (weakly && insn.padding);
		if (weakly && prologue_at(scan, at + insn.len))
			return false;
		at = insn.flow == FLOW_JUMP ? insn.target - scan->addr : at + insn.len;
	}
	return false;
}

/*
 * How far off `state` is for the code at `at`: returns show it, since they happen with the stack as
 * at the function's begin, and so does code whose state is known. False if nothing shows it on the
 * way straight on, or, of `all`, on any.
 */
static bool try_state(struct scan *scan, size_t at, const struct scan_state *state, bool all,
		      int64_t *ret_off_by)
{
	int steps = all ? 2 * TRIAL_STEPS : TRIAL_STEPS;
	struct trial t = {
		.ways = { { at, *state } }, .nr = 1, .steps = steps, .max_steps = steps
	};

	do {
		if (try_way(scan, &t, t.ways[--t.nr], ret_off_by))
			return true;
	} while (all && t.nr);
	return false;
}

static void take(struct scan *scan, size_t at, size_t len, uint8_t kind)
{
	struct scan_state state = { .kind = kind };
	uint16_t number = len ? state_number(scan, &state) : 0;

	for (size_t i = at; i < at + len; i++) {
		scan->states[i] = number;
		scan->lengths[i] = 1;
	}
}

static bool take_trampoline(struct scan *scan, size_t at)
{
	size_t len = scan->arch->trampoline(scan->code + at, scan->size - at);

	take(scan, at, len, SCAN_SIGNAL);
	return len > 0;
}

/* Nothing but pointers leads there. */
static size_t take_stack_begin(struct scan *scan, size_t at)
{
	const struct scan_arch *arch = scan->arch;
	size_t len = arch->stack_begin ? arch->stack_begin(scan->code + at, scan->size - at) : 0;

	take(scan, at, len, SCAN_END);
	return len;
}

/* One way, up to the first call: how far the CFA is from the stack pointer there. */
static bool call_on_way(struct scan *scan, struct trial *t, struct trial_way w, int64_t *ret_off)
{
	struct code_insn insn;

	for (; t->steps && w.at < scan->size && sp_followed(&w.state); t->steps--) {
		*ret_off = w.state.sp_off;
		if (was_seen(t, w.at) || !step(scan, w.at, &insn, &w.state))
			return false;
		if (code_calls(&insn) && insn.target != scan->addr + w.at + insn.len)
			return true;
		if (insn.flow == FLOW_COND && t->nr < TRIAL_WAYS)
			t->ways[t->nr++] = (struct trial_way){ insn.target - scan->addr, w.state };
		if (insn.flow >= FLOW_INDIRECT)
			return false;
		w.at = insn.flow == FLOW_JUMP ? insn.target - scan->addr : w.at + insn.len;
	}
	return false;
}

/*
 * Whether code without a known state is a function's begin, by the first call that it comes to:
 * there the stack is aligned, as it is where `state` holds, and a function begins 8 bytes off.
 */
static bool is_aligned_as_entry(struct scan *scan, size_t at, const struct scan_state *state)
{
	const struct scan_state *entry = &scan->arch->entry;
	struct trial t = { .ways = { { at, *entry } }, .nr = 1, .steps = TRIAL_STEPS };
	int64_t off;

	if (entry->sp_off % CALL_ALIGN == 0 || (sp_followed(state) && state->sp_off % CALL_ALIGN))
		return false;
	while (t.nr)
		if (call_on_way(scan, &t, t.ways[--t.nr], &off))
			return off % CALL_ALIGN == 0;
	return false;
}

/*
 * Whether a frame is set up at `at` where the frame pointer leads to one already. Functions that
 * are compiled for size begin right behind each other.
 */
static bool sets_up_second_frame(const struct scan *scan, size_t at, const struct scan_state *state)
{
	return scan->arch->frame && at < scan->size && state->kind == SCAN_FOLLOWED &&
	       state->fp_known && scan->arch->frame(scan->code + at, scan->size - at);
}

/* Whether what follows a call is another function, because the call never returns. */
static bool is_next_function(struct scan *scan, size_t at, const struct scan_state *state)
{
	int64_t off_by, off_by_entry;

	if (prologue_at(scan, at) || sets_up_second_frame(scan, at, state))
		return true;
	if ((scan->addr + at) % 16 || at >= scan->size)
		return false;
	if (scan->arch->hands_on(scan->code + at, scan->size - at, scan->addr + at))
		return true;
	return try_state(scan, at, state, false, &off_by) && off_by &&
	       try_state(scan, at, &scan->arch->entry, false, &off_by_entry) && !off_by_entry;
}

/* The instruction behind another: whether to go on there. */
static bool fall_into(struct scan *scan, size_t at, const struct scan_state *state, uint16_t old,
		      bool weakly)
{
	uint16_t number;

	if (at >= scan->size ||
	    (scan->states[at] && (!old || scan->states[at] != old) && !meets(scan, at, state)))
		return false;
	number = state_number(scan, state);
	if (number == scan->states[at] || !number || scan->lengths[at] & FUNCTION)
		return false;
	scan->states[at] = number;
	if (weakly)
		scan->lengths[at] |= REACHED_WEAKLY;
	return true;
}

/* What an instruction that ends the function says of the state it was reached with. */
static void judge(struct scan *scan, uint8_t flow, const struct scan_state *state)
{
	const struct scan_state *entry = &scan->arch->entry;
	bool kept = sp_followed(state) && state->sp_off == entry->sp_off &&
		    state->ra == entry->ra && state->ra_off == entry->ra_off &&
		    state->slots[0] == SLOT_SAME;
	/* It has put its return address below what it leaves there, and goes back to that: V8's
	 * WasmLiftoffFrameSetup makes a frame for who calls it. */
	bool leaves = sp_followed(state) && state->ra == RA_AT_CFA && entry->ra == RA_AT_CFA &&
		      state->ra_off < entry->ra_off && state->sp_off == -8 * state->ra_off;

	if (state->kind == SCAN_END || state->kind == SCAN_SIGNAL)
		return;
	if (flow == FLOW_RETURN)
		++*(kept || leaves ? &scan->verdict.good : &scan->verdict.bad);
	else
		scan->verdict.tails += kept;
}

static bool stands_between(const struct scan *scan, size_t at)
{
	struct code_insn insn;

	return !scan->arch->step(scan->arch->cfi, scan->code + at, scan->size - at, scan->addr + at,
				 &insn, NULL) ||
	       insn.padding;
}

/* From one instruction on, until what follows is known already or is none. */
static void follow(struct scan *scan, struct work work)
{
	struct scan_state state = scan->table.items[scan->states[work.at] - 1], former;
	struct code_insn insn;
	size_t at = work.at;
	uint16_t old = work.old;
	bool weakly;

	if (old)
		former = scan->table.items[old - 1];
	for (; scan->steps && !scan->failed; scan->steps--) {
		uint64_t addr = scan->addr + at;

		if (take_trampoline(scan, at) || !step(scan, at, &insn, &state))
			return;
		if (old) {
			step(scan, at, &insn, &former);
			old = state_number(scan, &former);
		}
		scan->lengths[at] = (scan->lengths[at] & ~LENGTH_MASK) | insn.len;
		scan->lowest = at < scan->lowest ? at : scan->lowest;
		scan->highest = at > scan->highest ? at : scan->highest;
		if (insn.flow == FLOW_RETURN || insn.flow == FLOW_INDIRECT ||
		    (insn.flow == FLOW_JUMP && insn.target - scan->addr >= scan->size))
			judge(scan, insn.flow, &state);
		if (insn.flow == FLOW_CALL && insn.target != addr + insn.len && !scan->one)
			reach_function(scan, insn.target - scan->addr, &scan->arch->entry);
		else if (insn.flow == FLOW_COND || insn.flow == FLOW_JUMP)
			reach(scan, insn.target - scan->addr, &state, old);
		if (insn.flow >= FLOW_INDIRECT || insn.flow == FLOW_JUMP)
			return;
		if (comes_not_back(scan, &insn))
			return;
		weakly = insn.flow == FLOW_CALL ||
			 (insn.padding && scan->lengths[at] & REACHED_WEAKLY);
		at += insn.len;
		/* What never comes back stands at a function's end; evidence needs no such code. */
		if (weakly && scan->one && stands_between(scan, at))
			return;
		if (weakly && is_next_function(scan, at, &state)) {
			/* The call does not come back. */
			reach_function(scan, at, &scan->arch->entry);
			return;
		}
		if (!fall_into(scan, at, &state, old, weakly))
			return;
	}
}

static void follow_all(struct scan *scan)
{
	while (scan->work.nr && !scan->failed)
		follow(scan, scan->work.items[--scan->work.nr]);
}

/* What holds where nobody jumps to: `state`, which may be another's, mended by what the code shows.
 */
static void guess_state(struct scan *scan, size_t at, struct scan_state *state)
{
	const struct scan_state *entry = &scan->arch->entry;
	int64_t off_by = 0, off_by_entry = 0;

	if (!try_state(scan, at, state, true, &off_by)) {
		if (state->kind != SCAN_UNKNOWN && is_aligned_as_entry(scan, at, state))
			*state = *entry;
	} else if (off_by) {
		if (try_state(scan, at, entry, true, &off_by_entry) && !off_by_entry)
			*state = *entry;
		else if (state->sp_off + off_by >= 0)
			state->sp_off += off_by;
	}
}

/*
 * What nobody jumps to directly: a switch's case if an indirect jump came before it in its
 * function, else a function of its own, which only pointers lead to.
 */
static void guess(struct scan *scan, size_t at, size_t indirect)
{
	struct scan_state state = scan->arch->entry;

	if (!prologue_at(scan, at)) {
		if (indirect < scan->size)
			state = scan->table.items[scan->states[indirect] - 1];
		guess_state(scan, at, &state);
	}
	reach(scan, at, &state, 0);
	scan->lengths[at] |= REACHED_WEAKLY;
	follow_all(scan);
}

static bool is_entry_state(const struct scan *scan, size_t at)
{
	return !memcmp(&scan->table.items[scan->states[at] - 1], &scan->arch->entry,
		       sizeof(scan->arch->entry));
}

static void find_the_rest(struct scan *scan)
{
	size_t at = 0, indirect = SIZE_MAX;
	struct code_insn insn;

	while (at < scan->size && !scan->failed) {
		uint64_t addr = scan->addr + at;

		if (!scan->states[at]) {
			size_t len = take_stack_begin(scan, at);
			bool valid;

			if (len) {
				at += len;
				indirect = SIZE_MAX;
				continue;
			}
			valid = scan->arch->step(scan->arch->cfi, scan->code + at, scan->size - at,
						 addr, &insn, NULL);

			/* Not an instruction, or one that isn't anybody's. */
			if (!valid || insn.padding) {
				at += valid ? insn.len : scan->arch->min_insn;
				continue;
			}
		}
		if (!scan->states[at])
			guess(scan, at, indirect);
		if (!scan->states[at] || !(scan->lengths[at] & LENGTH_MASK)) {
			at += scan->arch->min_insn;
			continue;
		}
		if (scan->lengths[at] & FUNCTION || (addr % 16 == 0 && is_entry_state(scan, at)))
			indirect = SIZE_MAX;
		if (scan->arch->step(scan->arch->cfi, scan->code + at, scan->size - at, addr, &insn,
				     NULL) &&
		    insn.flow == FLOW_INDIRECT)
			indirect = at;
		at += scan->lengths[at] & LENGTH_MASK;
	}
}

int scan_run(struct scan *scan)
{
	follow_all(scan);
	find_the_rest(scan);
	return scan->failed ? -ENOMEM : 0;
}

static void state_cfa(const struct cfi_arch *cfi, const struct scan_state *s,
		      struct unwind_rule *rule)
{
	if (s->sp == SP_KNOWN) {
		rule->cfa_reg = cfi->sp_reg;
		rule->cfa_off = s->sp_off;
	} else if (s->fp_known) {
		rule->cfa_reg = cfi->fp_reg;
		rule->cfa_off = s->fp_off;
	} else if (s->sp == SP_OLD_SAVED) {
		rule->cfa = CFA_DEREF;
		rule->cfa_reg = cfi->sp_reg;
		rule->cfa_off = s->sp_off;
	} else {
		rule->cfa_reg = s->old_reg;
		rule->cfa_off = s->old_off;
	}
}

int scan_one(struct scan *scan, uint64_t addr, const struct scan_state *state,
	     struct scan_verdict *ret)
{
	scan->one = true;
	reach_function(scan, addr - scan->addr, state);
	follow_all(scan);
	if (scan->failed)
		return -ENOMEM;
	*ret = scan->verdict;
	return 0;
}

const struct scan_state *scan_state_at(const struct scan *scan, uint64_t addr)
{
	uint64_t at = addr - scan->addr;

	if (at >= scan->size || !scan->states[at] || !(scan->lengths[at] & LENGTH_MASK))
		return NULL;
	return &scan->table.items[scan->states[at] - 1];
}

void scan_extent(const struct scan *scan, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = scan->addr + scan->lowest;
	*ret_end = scan->addr + scan->highest + 1;
}

uint8_t scan_length_at(const struct scan *scan, uint64_t addr)
{
	return scan->lengths[addr - scan->addr] & LENGTH_MASK;
}

void scan_rule(const struct scan_arch *arch, const struct scan_state *s, union cfi_rule *ret)
{
	const struct cfi_arch *cfi = arch->cfi;
	struct unwind_rule rule = { .cfa = CFA_REG };
	bool lost = false;

	switch (s->kind) {
	case SCAN_END:
		ret->rule = (struct unwind_rule){ .cfa = CFA_END };
		return;
	case SCAN_SIGNAL:
		ret->rule = arch->signal;
		return;
	case SCAN_UNKNOWN:
		ret->rule = (struct unwind_rule){ .cfa = CFA_FRAME_POINTER,
						  .cfa_off = arch->of_go && s->switched
								     ? CODE_SWITCHED
								     : CODE_UNDECIDED };
		return;
	}
	state_cfa(cfi, s, &rule);
	rule.ra = s->ra;
	rule.ra_off = s->ra_off;
	rule.flags = s->flags;
	if (s->switched && rule.cfa == CFA_REG)
		rule.flags |= RULE_OTHER_STACK;
	for (int i = 0; i < UNWIND_SLOTS; i++) {
		if (!cfi->lost.rule.slot_off[i])
			rule.slot_off[i] = s->slots[i];
		else
			lost |= s->slots[i] != SLOT_SAME;
	}
	for (int i = 0; lost && i < UNWIND_SLOTS; i++)
		rule.slot_off[i] |= cfi->lost.rule.slot_off[i];
	if (rule.cfa == CFA_DEREF)
		rule.slot_off[UNWIND_CFA_OFF2_SLOT] = (int16_t)s->old_off;
	ret->rule = rule;
}

void scan_emit(const struct scan *scan,
	       void (*row)(void *arg, uint64_t addr, const union cfi_rule *rule), void *arg)
{
	static const struct scan_state unknown = { .kind = SCAN_UNKNOWN };
	const struct scan_state *state, *last = NULL;
	union cfi_rule rule;
	uint64_t addr, before = 0;
	struct code_insn insn;
	uint8_t len;

	for (size_t at = 0; at < scan->size;) {
		len = scan->lengths[at] & LENGTH_MASK;
		if (scan->states[at] && len) {
			state = &scan->table.items[scan->states[at] - 1];
		} else if (scan->arch->step(scan->arch->cfi, scan->code + at, scan->size - at,
					    scan->addr + at, &insn, NULL) &&
			   insn.padding) {
			at += insn.len;
			continue;
		} else {
			state = &unknown;
		}
		if (!last || memcmp(state, last, sizeof(*state))) {
			addr = scan->addr + at;
			scan_rule(scan->arch, state, &rule);
			/* The walker looks for callers a byte before where they return to. */
			if (state->kind == SCAN_SIGNAL && addr > scan->addr && addr > before + 1)
				addr--;
			row(arg, addr, &rule);
			before = addr;
			last = state;
		}
		at += len ? len : scan->arch->min_insn;
	}
}
