// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The native step: one frame of compiled code, by the unwind rule of its address (abi/unwind.h),
 * from .eh_frame or .debug_frame, or by the frame pointer where a file has no such information.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"

enum {
	NATIVE_STEPS = 8,	   /* in one bounded loop, which the verifier follows */
	PLAIN_CALLERS = 8,	   /* in another, behind each of these in a deep stack */
	KEPT_FRAME_MAX = 64 << 10, /* bytes: of a frame found by a register that was kept */
};

__noinline int WALK_NAME(native_signal)(__u64 block);
__noinline int WALK_NAME(native_find)(void);
__noinline int WALK_NAME(native_restore)(__u64 cfa);
__noinline int WALK_NAME(native_kept)(__u32 reg);
__noinline int WALK_NAME(native_anon)(void);

/* Reads the window of the stack around `addr` anew; 0 or a stop reason. */
__noinline int WALK_NAME(fill_window)(__u64 addr)
{
	struct walk *w = current_walk();
	__u64 start = addr & ~7ull, sp;
	__u32 len, size;

	if (!w)
		return STOP_INTERNAL;
	/* Frames far from each other, and saved registers far from their frames, need one each. */
	if (too_much_work(w, 1)) {
		w->window_len = 0;
		return STOP_TOO_MUCH_WORK;
	}
	/* The frame's registers are saved from a little below its stack pointer on: begin there,
	 * but never in another page than the stack's, which may be missing. */
	sp = w->regs[ARCH_SP] & ~7ull;
	if ((sp & (PAGE - 1)) >= WINDOW_BELOW)
		sp -= WINDOW_BELOW;
	if (start - sp < WINDOW_SIZE - WINDOW_BELOW)
		start = sp;
	else if ((start & (PAGE - 1)) >= WINDOW_BELOW)
		start -= WINDOW_BELOW;
	size = w->deep ? WINDOW_DEEP : WINDOW_SIZE;
	w->window_start = start;
	w->window_len = size;
	if (!bpf_probe_read_user(w->window, size, (void *)start))
		return STOP_NONE;
	w->window_len = 0;
	len = PAGE - (start & (PAGE - 1));
	if (addr - start >= len) {
		/* The stack pointer is in a page that nobody has touched yet, or is no longer
		 * there: the word is in the next one. */
		w->window_start = start += len;
		if (bpf_probe_read_user(w->window, size, (void *)start))
			return STOP_STACK_UNREADABLE;
		w->window_len = size;
		return STOP_NONE;
	}
	/* It ran past the stack's end: what is left of the page. */
	if (len >= size)
		return STOP_STACK_UNREADABLE;
	len &= WINDOW_DEEP - 8;
	if (bpf_probe_read_user(w->window, len, (void *)start))
		return STOP_STACK_UNREADABLE;
	w->window_len = len;
	return STOP_NONE;
}

/* Below what was read last and near it, as callers on a stack are: as much more as there is room.
 */
__noinline int WALK_NAME(read_frames)(__u64 addr, __u32 size)
{
	struct walk *w = current_walk();
	__u64 start = addr, end;
	__u32 len;

	if (!w)
		return -1;
	w->frames_len = 0;
	if (too_much_work(w, 1))
		return -1;
	size &= 255;
	end = addr + size;
	if (w->frames_start - addr - 1 < FRAMES_WINDOW / 2) {
		/* Not from another page than the frame's, which may be missing. */
		start = addr & ~(__u64)(PAGE - 1);
		if (end - start > FRAMES_WINDOW - 8)
			start = addr - ((FRAMES_WINDOW - 8 - size) & ~7u);
	}
	w->frames_start = start;
	w->frames_len = len = (__u32)(end - start);
	barrier_var(len);
	if (!read_memory(start, w->frames, len & (FRAMES_WINDOW - 1)))
		return 0;
	w->frames_start = addr;
	w->frames_len = size;
	barrier_var(size);
	if (start != addr && !read_memory(addr, w->frames, size & 255))
		return 0;
	w->frames_len = 0;
	return -1;
}

/* A signal trampoline: all registers were saved at `block` by the kernel. */
__noinline int WALK_NAME(native_signal)(__u64 block)
{
	struct walk *w = current_walk();
	__u64 value, pc = 0;
	int stop;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	if (too_much_work(w, ARCH_SIGNAL_WORDS))
		return STOP_TOO_MUCH_WORK;
	for (i = 0; i < ARCH_SIGNAL_WORDS; i++) {
		__u32 reg = arch_signal_regs[i];

		stop = read_stack(w, block + 8 * i, &value);
		if (stop)
			return stop;
		if (reg == ARCH_SIGNAL_PC)
			pc = value;
		else
			w->regs[reg & (UNWIND_REGS_MAX - 1)] = value;
	}
	w->valid = w->kept = ARCH_REGS == 32 ? ~0u : (1u << (ARCH_REGS & 31)) - 1;
	w->pc = pc;
	w->interrupted = 1;
	return STOP_NONE;
}

/*
 * How far the interrupted function has set up its frame, by the code around pc. False: it can't be
 * read, since its page is not there: this very fault is often what was interrupted.
 */
static __always_inline bool look_at_code(const struct walk *w, enum arch_frame *ret)
{
	__u64 code[2] = { 0 };

	/* What is before pc may lie on another page; a function's first instruction needs none of
	 * it. */
	if (bpf_probe_read_user(code, sizeof(code), (void *)(w->pc - 8)) &&
	    bpf_probe_read_user(&code[1], sizeof(code[1]), (void *)w->pc))
		return false;
	*ret = arch_look_at_code(code[0], code[1]);
	return true;
}

/*
 * Is there executable memory? *ret_other, if that is wanted: what returns there was called by a
 * direct call, of the function of a file; so it was not code in none, which walk->pc is in.
 */
static __always_inline bool is_code(struct walk *w, __u64 addr, bool *ret_other)
{
	__u64 pc = w->pc, start = w->mapping_start, len = w->mapping_len, bias = w->mapping_bias;
	__u32 file = w->mapping_file, runtime = w->mapping_runtime;
	__u64 code, called;
	bool found;

	w->pc = addr;
	found = addr - start < len || !WALK_NAME(find_mapping)();
	if (ret_other && found && w->mapping_file != MAPPING_ANON &&
	    !read_memory(addr - sizeof(code), &code, sizeof(code))) {
		called = arch_called(code, addr);
		*ret_other = called && called - w->mapping_start < w->mapping_len;
	}
	w->pc = pc;
	w->mapping_start = start;
	w->mapping_len = len;
	w->mapping_bias = bias;
	w->mapping_file = file;
	w->mapping_runtime = runtime;
	return found;
}

__noinline int WALK_NAME(native_returns_to)(__u64 sp)
{
	struct walk *w = current_walk();
	__u64 ra, code;

	return w && !ARCH_LINK_REGISTER && !read_stack(w, sp, &ra) &&
	       !read_memory(ra - sizeof(code), &code, sizeof(code)) && arch_is_call(code) &&
	       is_code(w, ra, NULL);
}

/* Where the innermost of the functions that may have walk->pc is in `page`; ANON_FUNCTIONS_MAX:
 * there is none. */
static __always_inline __u32 find_anon_function(const struct walk *w, const struct anon_page *page)
{
	__u32 i, found = ANON_FUNCTIONS_MAX;
	__u64 start = 0;

	UNROLL
	for (i = 0; i < ANON_FUNCTIONS_MAX; i++) {
		const struct anon_function *f = &page->functions[i];

		if (f->start > start && w->pc - f->start < f->size) {
			start = f->start;
			found = i;
		}
	}
	return found;
}

/*
 * Moves to the caller of a function in no file that was met before (struct anon_function): 0 or a
 * stop reason; -1: there is none, or not any more. What it calls within itself finds one word more
 * on the stack.
 */
__noinline int WALK_NAME(native_anon)(void)
{
	struct walk *w = current_walk();
	const struct anon_function *f;
	const struct anon_page *page;
	__u64 head[2], cfa, ra, value;
	__u32 i;
	int stop;

	page = w && w->valid & 1u << ARCH_SP ? anon_page_of(w) : NULL;
	if (!page)
		return -1;
	i = find_anon_function(w, page);
	if (i >= ANON_FUNCTIONS_MAX)
		return -1;
	barrier_var(i);
	f = &page->functions[i & (ANON_FUNCTIONS_MAX - 1)];
	if (read_memory(f->start, head, sizeof(head)) || head[0] != f->head[0] ||
	    head[1] != f->head[1])
		return -1;
	cfa = w->regs[ARCH_SP] + f->frame;
	if (read_stack(w, cfa - 8, &ra))
		return -1;
	if (ra != f->ra) {
		cfa += 8;
		if (read_stack(w, cfa - 8, &ra) || ra != f->ra)
			return -1;
	}
	for (i = 0; i < UNWIND_SLOTS; i++) {
		__u32 reg = arch_slot_regs[i] & (UNWIND_REGS_MAX - 1);
		__s16 off = f->slot_off[i];

		if (off == SLOT_SAME)
			continue;
		stop = read_stack(w, cfa + 8 * (__s64)off, &value);
		if (stop)
			return stop;
		w->regs[reg] = value;
		w->valid |= 1u << reg;
	}
	w->by_frame_pointer = 0;
	return walk_to_caller(w, cfa, ra);
}

/* May the agent be asked to follow the code in no file that walk->pc is in? */
static __always_inline bool asks_for_anon(const struct walk *w)
{
	return w->may_ask && !(w->process.flags & PROCESS_NO_ANON_ASKS);
}

/* Code without unwind information; `known`: enum unwind_code. */
__noinline int WALK_NAME(native_frame_pointer)(__u64 known)
{
	struct walk *w = current_walk();
	enum arch_frame frame = ARCH_FRAME_STANDARD;
	/* clang copies them before they are set; the verifier minds. */
	__u64 sp, fp, cfa = 0, ra = 0;
	bool of_file = known != CODE_BYTES && known != CODE_ANON, unsure = false;
	bool other = false;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	stop = known == CODE_ANON ? WALK_NAME(native_anon)() : -1;
	if (stop >= 0)
		return stop;
	sp = w->regs[ARCH_SP];
	fp = w->regs[ARCH_FP];
	if (w->interrupted) {
		bool seen = look_at_code(w, &frame);

		unsure = !seen || (frame == ARCH_FRAME_UNKNOWN &&
				   (of_file || WALK_NAME(native_returns_to)(sp)));
	} else {
		unsure = of_file; /* hand-written code calls without a frame pointer */
	}
	if (unsure && known == CODE_UNFOLLOWED && w->may_ask &&
	    !(w->process.flags & PROCESS_ASKS_HELD))
		return STOP_CODE_PENDING;
	/* What runs there is no better off than a caller, unless its bytes tell: the frame pointer
	 * is the other stack's. */
	if (known == CODE_SWITCHED && unsure && w->runtime != RUNTIME_NATIVE) {
		w->entry = ENTRY_SWITCHED;
		return STOP_NONE;
	}
	if (known == CODE_SWITCHED && unsure) {
		stop = append_frame(w, RUNTIME_NATIVE, FRAME_NOTE_OTHER_STACK, 1, 0);
		if (stop)
			return stop;
		/* A call there is of a stack's first function. What runs may be about to go on
		 * where that stack was left. */
		return w->interrupted ? STOP_FRAME_POINTER : STOP_COMPLETE;
	}
	w->by_frame_pointer = 1;
	if (frame == ARCH_FRAME_NONE) {
		if (ARCH_LINK_REGISTER)
			return walk_to_caller(w, sp, w->regs[ARCH_LINK_REGISTER]);
		stop = read_stack(w, sp, &ra);
		return stop ? stop : walk_to_caller(w, sp + 8, ra);
	}
	if (!(w->valid & 1u << ARCH_FP))
		return STOP_UNKNOWN_REGISTER;
	if (frame == ARCH_FRAME_PUSHED)
		fp = sp;
	/* What calls a thread's first function has none. But code that is running has its own,
	 * unless it uses that register for something else, as a JIT's may (PHP's opcache). */
	if (!fp)
		return w->interrupted || w->guessed || unsure || known == CODE_ANON
			       ? STOP_FRAME_POINTER
			       : STOP_COMPLETE;
	if (fp < sp || fp & 7)
		return STOP_FRAME_POINTER;
	stop = read_stack(w, fp + 8, &ra);
	if (!stop)
		stop = read_stack(w, fp, &cfa);
	if (stop)
		return stop == STOP_STACK_COPY_END || stop == STOP_TOO_MUCH_WORK
			       ? stop
			       : STOP_FRAME_POINTER;
	if (known == CODE_ANON && !w->guessed && !is_code(w, arch_strip_pac(w, ra), &other))
		return STOP_FRAME_POINTER;
	/* It has left the register as its caller had it: that one's frame is skipped. */
	if (other && w->entry != ENTRY_CODE && asks_for_anon(w))
		return STOP_FRAME_POINTER;
	unsure |= other;
	w->regs[ARCH_FP] = cfa;
	if (known == CODE_ANON && w->runtime == RUNTIME_NATIVE &&
	    w->process.flags & PROCESS_CODE_EXPECTED)
		w->skipped = unsure = true;
	stop = unsure ? append_frame(w, RUNTIME_NATIVE, FRAME_NOTE_CALLER_UNSURE, 1, 0) : STOP_NONE;
	if (!stop)
		stop = walk_to_caller(w, fp + 16, ra);
	if (!ARCH_RECORD_ON_TOP)
		w->valid &= ~(1u << ARCH_SP); /* it is there or above */
	return stop;
}

static __always_inline bool is_unfollowed(const struct unwind_rule *r)
{
	return r->cfa == CFA_FRAME_POINTER && r->cfa_off == CODE_UNFOLLOWED;
}

static __always_inline bool is_evicted(const struct unwind_rule *r)
{
	return r->cfa == CFA_STOP && r->cfa_off == STOP_TABLE_EVICTED;
}

/* Who interrupts this, as another source may, finds the old rule gone or the new one whole. */
static __always_inline void remember_rule(struct cached_rule *e, __u64 pc, __u32 generation,
					  const struct unwind_rule *rule)
{
	*(volatile __u64 *)&e->pc = 0;
	barrier();
	e->generation = generation;
	e->runtime = 0;
	e->tag = 0;
	e->link = 0;
	e->rule = *rule;
	barrier();
	*(volatile __u64 *)&e->pc = pc;
}

/* The next time the last frame leads to where the current one is now. */
static __always_inline void link_callee(struct walk *w)
{
	__u32 slot = w->callee_slot - 1;
	struct cached_rule *callee;

	if (!w->callee_slot)
		return;
	if (slot >= CALLER_CACHE_ENTRIES)
		callee = leaf_cache_at(w, slot);
	else
		callee = callers_at(w, slot);
	if (callee) {
		callee->tag = address_tag(w->pc);
		callee->link = (__u16)(w->caller_slot + 1);
	}
}

/* Of walk->pc: where in `places`, in the upper half; in the lower what is there above the place. */
static __always_inline __u64 place_key(const struct walk *w)
{
	__u64 pc = w->pc ^ (__u64)w->process.generation << 32;

	return finish_hash(pc * WALK_HASH_MULTIPLIER) & ~0xffffull;
}

/* Is what `e` says the current frame's, of a caller that was not met in this walk? A function that
 * calls itself has a place for each of its frames in the walk that was the first to find it: what
 * calls them differs. */
static __always_inline bool is_caller_of_before(const struct walk *w, const struct cached_rule *e,
						__u32 slot)
{
	__u32 added = w->caller_next - w->caller_first;

	return e->pc == w->pc && e->generation == w->process.generation && !e->runtime &&
	       ((slot - w->caller_first) & (CALLER_CACHE_ENTRIES - 1)) >= added;
}

/* A caller is not where it is expected: goes to its place in `callers`. False: it has none. */
static __always_inline bool find_place(struct walk *w)
{
	__u64 key = place_key(w);
	const __u32 *place = caller_place_at(w, key >> 32);
	const struct cached_rule *e;
	__u32 slot;

	if (!place || !(__u16)*place || ((*place ^ key) & 0xffff0000))
		return false;
	slot = ((__u16)*place - 1) & (CALLER_CACHE_ENTRIES - 1);
	e = callers_at(w, slot);
	if (!e || !is_caller_of_before(w, e, slot))
		return false;
	w->caller_slot = slot;
	link_callee(w);
	return true;
}

/* Gives a caller that has no place the next one. */
static __always_inline int add_place(struct walk *w, const struct cached_rule *cached)
{
	__u64 key = place_key(w);
	struct cached_rule *e;
	__u32 *place;

	w->caller_slot = w->caller_next & (CALLER_CACHE_ENTRIES - 1);
	e = caller_cache_at(w);
	if (!e)
		return STOP_INTERNAL;
	remember_rule(e, w->pc, cached->generation, &cached->rule);
	if (cached->generation) {
		w->caller_next++;
		place = caller_place_at(w, key >> 32);
		if (place)
			*place = (__u32)key | (w->caller_slot + 1);
	}
	link_callee(w);
	return STOP_NONE;
}

/* The current frame's rule is not where it was expected: gets it there. */
__noinline int WALK_NAME(native_find)(void)
{
	struct walk *w = current_walk();
	const struct unwind_rule *r;
	struct cached_rule *cached;
	int rule;

	if (!w)
		return STOP_INTERNAL;
	if (!w->interrupted && find_place(w))
		return STOP_NONE;
	cached =
		w->interrupted ? leaf_cache_at(w, leaf_slot(w)) : rule_cache_at(w, address_slot(w));
	if (!cached)
		return STOP_INTERNAL;
	if (w->interrupted || cached->pc != w->pc || cached->generation != w->process.generation) {
		rule = WALK_NAME(find_rule)();
		if (rule < 0) {
			/* Code that is nowhere is a frame only if it was really running. What a
			 * frame pointer led to may be code that a JIT has made just now. */
			if (rule == -STOP_NO_MAPPING && !w->interrupted)
				return w->by_frame_pointer &&
						       w->process.flags & PROCESS_MAPPINGS_FINAL
					       ? STOP_FRAME_POINTER
					       : STOP_NO_MAPPING;
			push_frame(w, RUNTIME_NATIVE, w->pc);
			return -rule;
		}
		r = rule_at((__u32)rule);
		if (!r)
			return STOP_INTERNAL;
		/* For this walk alone, of what the agent is about to follow, or to find room for.
		 */
		remember_rule(cached,
			      w->interrupted ? leaf_key(w->pc, w->rule_first, w->rule_last) : w->pc,
			      is_unfollowed(r) || is_evicted(r) ? 0 : w->process.generation, r);
	}
	/* One that was interrupted is expected right there: cached_rule_of(). */
	return w->interrupted ? STOP_NONE : add_place(w, cached);
}

/*
 * The stack pointer is not known, as behind code that was walked by its frame pointer. A function
 * that saves frame pointer and return address side by side has made them its frame record, to which
 * the frame pointer points (AAPCS64, 6.4.6).
 */
static __always_inline bool cfa_of_record(const struct walk *w, const struct unwind_rule *r,
					  __u64 *ret)
{
	__s16 off = r->slot_off[0];

	if (ARCH_RECORD_ON_TOP || r->cfa != CFA_REG || RULE_RA(r) != RA_AT_CFA ||
	    off == SLOT_SAME || off == SLOT_LOST || r->ra_off != off + 1 ||
	    !(w->valid & 1u << ARCH_FP))
		return false;
	*ret = w->regs[ARCH_FP] - 8 * (__s64)off;
	return true;
}

/*
 * The current frame's CFA hangs on a register that callees may overwrite. CFI that leaves it there
 * across a call says that this callee keeps it: helpers of assembly have their own conventions
 * (OpenSSL's AES-GCM: rax). The interrupted frame's value counts, if no frame on the way here
 * has its own CFA in that register, and if it leads to where a call was made from, a little further
 * up: 0 or a stop reason.
 */
__noinline int WALK_NAME(native_kept)(__u32 reg)
{
	struct walk *w = current_walk();
	const struct cached_rule *e;
	__u64 cfa, ra, code;

	e = w ? cached_rule_of(w) : NULL;
	if (!w || !e || !is_cached_rule(w, e))
		return STOP_INTERNAL;
	reg &= UNWIND_REGS_MAX - 1;
	cfa = w->regs[reg] + (__s64)e->rule.cfa_off;
	if (!(w->kept & ~(__u32)ARCH_CALLEE_SAVED & 1u << reg) || !(w->valid & 1u << ARCH_SP) ||
	    e->rule.cfa != CFA_REG || RULE_RA(&e->rule) != RA_AT_CFA ||
	    cfa - w->regs[ARCH_SP] - 1 >= KEPT_FRAME_MAX || cfa & 7 ||
	    read_stack(w, cfa + 8 * (__s64)e->rule.ra_off, &ra))
		return STOP_UNKNOWN_REGISTER;
	ra = arch_strip_pac(w, ra);
	if (read_memory(ra - sizeof(code), &code, sizeof(code)) || !arch_is_call(code))
		return STOP_UNKNOWN_REGISTER;
	w->valid |= 1u << reg;
	return STOP_NONE;
}

/* The CFA by rule `r`; 0 or a stop reason. */
static __always_inline int find_cfa(struct walk *w, const struct unwind_rule *r, __u64 *ret)
{
	__u32 reg = r->cfa_reg & (UNWIND_REGS_MAX - 1);

	if (!(w->valid & 1u << reg)) {
		int stop;

		if (reg == ARCH_SP)
			return cfa_of_record(w, r, ret) ? STOP_NONE : STOP_UNKNOWN_REGISTER;
		stop = WALK_NAME(native_kept)(reg);
		if (stop)
			return stop;
	}
	w->kept &= ~(1u << reg); /* what it hangs on was written by this function */
	*ret = w->regs[reg] + (__s64)r->cfa_off;
	if (r->cfa == CFA_PLT) {
		if ((w->pc & 15) >= (__u16)r->slot_off[UNWIND_CFA_OFF2_SLOT])
			*ret += 8;
	} else if (r->cfa == CFA_DEREF) {
		__u32 index = RULE_INDEX(r->flags) & (UNWIND_REGS_MAX - 1);
		int stop;

		if (index) {
			if (!(w->valid & 1u << index))
				return STOP_UNKNOWN_REGISTER;
			*ret += 8 * w->regs[index];
		}
		stop = read_stack(w, *ret, ret);
		if (stop)
			return stop;
		*ret += (__s64)r->slot_off[UNWIND_CFA_OFF2_SLOT];
	}
	return STOP_NONE;
}

/*
 * Takes back the registers that the current frame has saved, and moves to its caller. In general:
 * from wherever on the stack they are.
 */
__noinline int WALK_NAME(native_restore)(__u64 cfa)
{
	struct walk *w = current_walk();
	const struct cached_rule *e;
	const struct unwind_rule *r;
	__u64 ra, base, value;
	__u32 i, slots;
	int stop;

	/* It is looked for once more: another address's rule would lead anywhere. */
	e = w ? cached_rule_of(w) : NULL;
	if (!w || !e || !is_cached_rule(w, e))
		return STOP_INTERNAL;
	r = &e->rule;
	if (RULE_RA(r) == RA_IN_REG) {
		__u32 reg = r->ra_off & (UNWIND_REGS_MAX - 1);

		if (!(w->valid & 1u << reg))
			return STOP_UNKNOWN_REGISTER;
		ra = w->regs[reg];
	} else {
		stop = read_stack(w, cfa + 8 * (__s64)r->ra_off, &ra);
		if (stop)
			return stop;
	}
	base = r->flags & RULE_SLOTS_AT_FP ? w->regs[ARCH_FP] + UNWIND_FP_SLOTS_BIAS : cfa;
	slots = r->cfa == CFA_REG ? UNWIND_SLOTS : UNWIND_CFA_OFF2_SLOT;
	for (i = 0; i < UNWIND_SLOTS && i < slots; i++) {
		__u32 reg = arch_slot_regs[i] & (UNWIND_REGS_MAX - 1);
		__s16 off = r->slot_off[i];

		if (off == SLOT_LOST) {
			w->valid &= ~(1u << reg);
		} else if (off != SLOT_SAME) {
			stop = read_stack(w, base + 8 * (__s64)off, &value);
			if (stop)
				return stop;
			w->regs[reg] = value;
			w->valid |= 1u << reg;
		}
	}
	w->by_frame_pointer = 0;
	return walk_to_caller(w, cfa, ra);
}

/*
 * Restores what nearly all frames are: the CFA is a register and an offset, and all that was
 * saved lies in the window. False: it isn't so, and nothing was changed that native_restore()
 * needs.
 */
static __always_inline bool restore_in_window(struct walk *w, const struct unwind_rule *r,
					      __u64 cfa, __u64 *ret_ra)
{
	__u64 at = cfa - w->window_start;
	__u32 i;

	if (r->cfa != CFA_REG || RULE_RA(r) != RA_AT_CFA || r->flags & RULE_SLOTS_AT_FP ||
	    !window_word(w, at + 8 * (__s64)r->ra_off, ret_ra))
		return false;
	UNROLL
	for (i = 0; i < UNWIND_SLOTS; i++) {
		__u32 reg = arch_slot_regs[i];
		__s16 off = r->slot_off[i];

		if (off == SLOT_SAME)
			continue;
		if (off == SLOT_LOST) {
			w->valid &= ~(1u << reg);
		} else if (window_word(w, at + 8 * (__s64)off, &w->regs[reg])) {
			w->valid |= 1u << reg;
		} else {
			return false;
		}
	}
	return true;
}

/* Nobody called the frame, which a runtime's step is to have: that ends the walk. */
static __always_inline int leave_to_runtime(struct walk *w, int stop)
{
	if (stop != STOP_COMPLETE || w->runtime == RUNTIME_NATIVE)
		return stop;
	w->entry = ENTRY_END;
	return STOP_NONE;
}

/* `words`: the record's, `cache`: the CPU's, which each look-up takes some nanoseconds to find. */
static __always_inline int step_frame(struct walk *w, struct rule_cache *cache, __u64 *words)
{
	const struct cached_rule *e;
	const struct unwind_rule *r;
	__u64 cfa, ra, at, *to;
	int stop;

	e = cached_rule_in(cache, w);
	if ((!w->interrupted && w->caller_slot == CALLER_ELSEWHERE) || !is_cached_rule(w, e) ||
	    e->generation != w->process.generation) {
		stop = WALK_NAME(native_find)();
		if (stop)
			return stop;
		e = cached_rule_in(cache, w);
	}
	r = &e->rule;
	at = w->pc;
	if (e->runtime || r->cfa == CFA_RUNTIME) {
		/* Its callers are remembered by its step, not in the midst of native ones. */
		w->caller_slot = address_slot(w) & (CALLER_CACHE_ENTRIES - 1);
		w->callee_slot = w->caller_link = 0;
		w->runtime = (e->runtime ?: (__u32)r->cfa_off) & (RUNTIME_MAX_ - 1);
		w->entry = ENTRY_CODE;
		return STOP_NONE;
	}
	if (!w->interrupted && (r->cfa == CFA_SIGNAL || r->flags & RULE_NO_CALL))
		at++;
	w->callee_slot = 1 + (w->interrupted ? CALLER_CACHE_ENTRIES +
						       (leaf_slot(w) & (LEAF_CACHE_ENTRIES - 1))
					     : w->caller_slot);
	w->caller_link = LINK_OF(e);
	to = frame_room_in(words, w, 1);
	if (!to)
		return STOP_MAX_FRAMES;
	*to = FRAME(RUNTIME_NATIVE, 0, at);
	hash_word(w, *to);
	if (RULE_RUNTIME(r)) {
		w->runtime = RULE_RUNTIME(r) & (RUNTIME_MAX_ - 1);
		w->entry = ENTRY_LOOP;
		w->loop_pc = w->pc;
		w->loop_sp = w->regs[ARCH_SP];
		w->loop_saved = w->valid & 1u << ARCH_FIRST_SAVED ? w->regs[ARCH_FIRST_SAVED] : 0;
	}
	switch (r->cfa) {
	case CFA_STOP:
		return r->cfa_off > 0 && r->cfa_off < STOP_MAX_ ? r->cfa_off : STOP_INTERNAL;
	case CFA_END:
		return leave_to_runtime(w, STOP_COMPLETE);
	case CFA_FRAME_POINTER:
		w->entry = ENTRY_LOOP; /* a runtime's step comes here with ENTRY_CODE */
		stop = WALK_NAME(native_frame_pointer)((__u64)r->cfa_off);
		return stop == STOP_FRAME_POINTER && r->cfa_off == CODE_ANON && asks_for_anon(w)
			       ? STOP_CODE_PENDING
			       : leave_to_runtime(w, stop);
	case CFA_SIGNAL:
		return WALK_NAME(native_signal)(w->regs[r->cfa_reg & (UNWIND_REGS_MAX - 1)] +
						(__s64)r->cfa_off);
	}
	if (r->cfa == CFA_REG && r->flags & RULE_NEW_THREAD && w->interrupted && !w->regs[0])
		return leave_to_runtime(w, STOP_COMPLETE);
	stop = find_cfa(w, r, &cfa);
	if (stop)
		return stop;
	/* Only the interrupted frame can have nothing on the stack (a leaf with its caller in a
	 * register). A CFA that is saved on the stack may lie on any other one: OCaml 5 runs C code
	 * on the thread's, and its own on those that it allocates (CFI of caml_c_call, 5.3). */
	if ((cfa < w->regs[ARCH_SP] || (cfa == w->regs[ARCH_SP] && !w->interrupted)) &&
	    !(r->cfa == CFA_REG && r->flags & RULE_OTHER_STACK) &&
	    !(r->cfa == CFA_DEREF && r->cfa_reg == ARCH_SP && !RULE_INDEX(r->flags)))
		return STOP_NO_PROGRESS;
	/* All that was saved is near the return address: with that in the window, the frame need
	 * not be restored the general way. */
	at = cfa + 8 * (__s64)r->ra_off;
	if (RULE_RA(r) == RA_AT_CFA && at - w->window_start >= w->window_len) {
		stop = WALK_NAME(fill_window)(at);
		if (stop)
			return stop;
	}
	if (!restore_in_window(w, r, cfa, &ra))
		return leave_to_runtime(w, WALK_NAME(native_restore)(cfa));
	w->by_frame_pointer = 0;
	return leave_to_runtime(w, walk_to_caller(w, cfa, ra));
}

/* A rule's first four bytes: CFA = `reg` + offset, the return address at the CFA, nothing else. */
#define PLAIN_RULE(reg) (CFA_REG | (__u32)(reg) << 8)
/* That the return address is signed is nothing to the walker, who takes off what signs it. */
#define PLAIN_RULE_MASK (~((__u32)RULE_RA_SIGNED << 24))
/* What slots 3 to 6 are, and those before, in files of which a CFA hangs on the frame pointer alone
 * (unwind_table.c). */
#define LOST_BEHIND ((__u64)SLOT_LOST << 32 | (__u64)SLOT_LOST << 16 | SLOT_LOST)
#define LOST_REGS                                                                                  \
	(1u << arch_slot_regs[1] | 1u << arch_slot_regs[2] | 1u << arch_slot_regs[3] |             \
	 1u << arch_slot_regs[4] | 1u << arch_slot_regs[5])

/*
 * Takes back a register that lies in the window, `cfa` bytes from its start being the CFA. False:
 * it is elsewhere, or lost (SLOT_LOST is farther away than a window is large).
 */
static __always_inline bool restore_plain(struct walk *w, __u64 cfa, __u64 len, __s16 off,
					  __u32 reg)
{
	__u64 at = cfa + 8 * (__s64)off;

	_Static_assert(SLOT_LOST * 8 > 2 * WINDOW_DEEP, "a lost register must be out of reach");
	if (off == SLOT_SAME)
		return true;
	if (at >= len)
		return false;
	w->regs[reg] = w->window[at / 8 & (WINDOW_DEEP / 8 - 1)];
	w->valid |= 1u << reg;
	return true;
}

/*
 * Walks callers as long as they are what nearly all are: their rules are remembered, one behind the
 * other, the CFA is the stack or frame pointer and an offset, and all that was saved lies in the
 * window. What changes with each stays in registers. Any other frame is left as it is, for
 * step_frame(): of such a one registers may have been taken back already that its CFA does not hang
 * on, which step_frame() does again.
 */
__noinline int WALK_NAME(native_callers)(void)
{
	struct walk *w = current_walk();
	struct rule_cache *cache = w ? rule_cache_of(w) : NULL;
	__u64 *words = w ? walk_words(w) : NULL;
	const struct cached_rule *e;
	__u64 pc, sp, hash, generation, start, len, cfa, ra, ra_at, zero;
	__u32 i, at, slot, callee = 0;

	if (!cache || !words || w->interrupted || !(w->valid & 1u << ARCH_SP) ||
	    w->nr_frames + PLAIN_CALLERS > w->max_frames ||
	    w->full.nr_words > SAMPLE_WORDS_MAX - PLAIN_CALLERS)
		return 0;
	at = w->full.nr_kernel + w->full.nr_words;
	slot = w->caller_slot;
	barrier_var(at);
	if (at > SAMPLE_MAX_KERNEL_FRAMES + SAMPLE_WORDS_MAX - PLAIN_CALLERS)
		return 0;
	pc = w->pc;
	sp = w->regs[ARCH_SP];
	hash = w->hash;
	generation = (__u64)w->process.generation << (LINK_BITS + TAG_BITS);
	start = w->window_start;
	len = w->window_len;
	zero = *(volatile __u64 *)&w->zero;
	words += at;
	for (i = 0; i < PLAIN_CALLERS; i++) {
		__u64 first, second, third, of;
		__u32 kind;

		if (slot == CALLER_ELSEWHERE)
			break;
		e = caller_from(cache, slot);
		if (!e)
			return 0;
		/* struct unwind_rule as three words. */
		first = e->own[0];
		second = e->own[1];
		third = e->own[2];
		of = e->of;
		kind = (__u32)first & PLAIN_RULE_MASK;
		/* No runtime's, too. */
		if (e->pc != pc || of << (LINK_BITS + TAG_BITS) != generation)
			break;
		cfa = sp;
		if (kind == PLAIN_RULE(ARCH_FP)) {
			if (!(w->valid & 1u << ARCH_FP))
				break;
			cfa = w->regs[ARCH_FP];
		} else if (kind != PLAIN_RULE(ARCH_SP)) {
			break;
		}
		cfa = (cfa + ((__s64)first >> 32)) ^ zero;
		if (cfa <= sp)
			break;
		ra_at = cfa - start + 8 * (__s64)(__s16)second;
		if (ra_at >= len || ra_at & 7)
			break;
		ra = arch_strip_pac(w, w->window[ra_at / 8 & (WINDOW_DEEP / 8 - 1)]);
		if (!ra)
			break;
		cfa -= start;
		/* The frame pointer last: the CFA may hang on it. */
		if (third == LOST_BEHIND && second >> 32 == LOST_BEHIND >> 16) {
			w->valid &= ~LOST_REGS;
			second &= 0xffffffff;
		} else if (third &&
			   !(restore_plain(w, cfa, len, (__s16)third, arch_slot_regs[3]) &&
			     restore_plain(w, cfa, len, (__s16)(third >> 16), arch_slot_regs[4]) &&
			     restore_plain(w, cfa, len, (__s16)(third >> 32), arch_slot_regs[5]) &&
			     restore_plain(w, cfa, len, (__s16)(third >> 48), arch_slot_regs[6])))
			break;
		if (!restore_plain(w, cfa, len, (__s16)(second >> 48), arch_slot_regs[2]) ||
		    !restore_plain(w, cfa, len, (__s16)(second >> 32), arch_slot_regs[1]) ||
		    !restore_plain(w, cfa, len, (__s16)(second >> 16), arch_slot_regs[0]))
			break;
		words[i] = FRAME(RUNTIME_NATIVE, 0, pc);
		hash = hash_with(hash, words[i]);
		pc = ra - 1;
		sp = cfa + start;
		callee = slot + 1;
		slot = linked_slot((__u32)(of >> (64 - LINK_BITS - TAG_BITS)), pc) ^ (__u32)zero;
	}
	if (!i)
		return 0;
	w->pc = pc;
	w->regs[ARCH_SP] = sp;
	w->hash = hash;
	w->full.nr_words += i;
	w->nr_frames += i;
	w->caller_slot = slot;
	w->callee_slot = callee;
	w->valid = (w->valid & (__u32)ARCH_CALLEE_SAVED) | 1u << ARCH_SP;
	w->by_frame_pointer = 0;
	return 0;
}

STEP(native)
{
	struct walk *w = current_walk();
	struct rule_cache *cache = w ? rule_cache_of(w) : NULL;

	return cache ? step_frame(w, cache, walk_words(w)) : STOP_INTERNAL;
}

/*
 * Some steps, as long as the frames are native. A call, and all that its function has to look up
 * first, is a third of what a step takes.
 */
__noinline int WALK_NAME(native_steps)(void)
{
	struct walk *w = current_walk();
	struct rule_cache *cache = w ? rule_cache_of(w) : NULL;
	__u64 *words;
	int stop;
	__u32 i;

	if (!cache)
		return STOP_INTERNAL;
	words = walk_words(w);
	for (i = 0; i < NATIVE_STEPS; i++) {
		stop = step_frame(w, cache, words);
		if (stop || w->runtime != RUNTIME_NATIVE)
			return stop;
		if (w->deep)
			WALK_NAME(native_callers)();
	}
	return STOP_NONE;
}
