// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * HotSpot's step: one frame of the interpreter, of compiled Java code or of a stub, in the code
 * heaps of the JVM. No unwind information describes these: an interpreter's frame hangs on its
 * frame pointer (frame_x86.hpp, frame_aarch64.hpp), compiled code says the size of its frame in its
 * CodeBlob, and where code was interrupted that has not built its frame yet, or has taken it down
 * already, the instructions around the pc tell (hotspot_x86.bpf.h, hotspot_arm64.bpf.h).
 *
 * Read hotspot_abi.h first: the record that says where things are, and the words of a frame.
 */
#include "runtime/hotspot/hotspot_walk.bpf.h"
#include "runtime/hotspot/hotspot_deoptimization.bpf.h"
#include "runtime/hotspot/hotspot_method.bpf.h"
#include "runtime/hotspot/hotspot_references.bpf.h"
#include "runtime/hotspot/hotspot_threads.bpf.h"
#if defined(__TARGET_ARCH_x86)
#include "runtime/hotspot/hotspot_x86.bpf.h"
#else
#include "runtime/hotspot/hotspot_arm64.bpf.h"
#endif

enum {
	SEGMENT_HOPS = 48, /* 254 segments each: a blob of 780 KB at least */
	SEGMENT_FREE = 0xff,
	EMPTY_CHUNKS = 6, /* in a row: a continuation keeps one to use it again */
	CHUNK_WORK = 8,	  /* reads of one, or so: ZGC's references may take 30 */
	/* frame_x86.hpp, frame_aarch64.hpp: interpreter_frame_*_offset, in bytes */
	SLOT_METHOD = -24,
	SLOT_SENDER_SP = -8,
	CALLERS = 32, /* in one loop, which the verifier follows */
};

__noinline int WALK_NAME(hotspot_find)(void);
__noinline int WALK_NAME(hotspot_header)(__u64 blob);
__noinline int WALK_NAME(hotspot_name)(__u64 name);
__noinline int WALK_NAME(hotspot_leave)(__u64 cfa, __u64 ra);
__noinline int WALK_NAME(hotspot_push_method)(__u64 method, __u64 bcp);
__noinline int WALK_NAME(hotspot_interpreted)(void);
__noinline int WALK_NAME(hotspot_callers)(void);
__noinline int WALK_NAME(hotspot_compiled)(void);
__noinline int WALK_NAME(hotspot_stub)(void);
__noinline int WALK_NAME(hotspot_call_stub)(void);
__noinline int WALK_NAME(hotspot_upcall)(void);
__noinline int WALK_NAME(hotspot_chunk)(__u64 entry);
__noinline int WALK_NAME(hotspot_end_of_chunks)(void);
__noinline int WALK_NAME(hotspot_continuation)(void);

/* --- which CodeBlob -------------------------------------------------------------------------- */

static __always_inline __u64 header_field(const struct hotspot_scratch *s, struct hotspot_at at)
{
	__u64 value = s->header[at.offset / 8 & 63] >> 8 * (at.offset & 7);

	switch (at.size) {
	case 8:
		return value;
	case 4:
		return at.is_signed ? (__u64)(__s64)(__s32)value : (__u32)value;
	case 2:
		return at.is_signed ? (__u64)(__s64)(__s16)value : (__u16)value;
	case 1:
		return (__u8)value;
	}
	return 0;
}

/* A header's offset, where a pointer may stand in its place: as an offset from the blob. */
static __always_inline __u64 header_offset(const struct hotspot_scratch *s, struct hotspot_at at,
					   __u64 blob)
{
	__u64 value = header_field(s, at);

	return at.size == 8 && value ? value - blob : value;
}

/* Eight letters, as they are in memory. */
#define LETTERS(a, b, c, d, e, f, g, h)                                                            \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |   \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Which kind a blob of this name is (nmethod.cpp, codeBlob.cpp, vtableStubs.cpp, stubRoutines.cpp,
 * interpreterRuntime.cpp).
 */
__noinline int WALK_NAME(hotspot_name)(__u64 name)
{
	struct walk *w = current_walk();
	struct hotspot_state *st;
	__u64 text[3];

	if (!w)
		return BLOB_OTHER;
	st = hotspot_state(w);
	if (read_memory(name, text, 8))
		return BLOB_OTHER;
	if (text[0] == LETTERS('n', 'm', 'e', 't', 'h', 'o', 'd', 0)) {
		st->name_compiled = name;
		return BLOB_COMPILED;
	}
	switch (text[0]) {
	case LETTERS('n', 'a', 't', 'i', 'v', 'e', ' ', 'n'):
		return BLOB_NATIVE; /* "native nmethod" */
	case LETTERS('n', 'a', 't', 'i', 'v', 'e', ' ', 's'):
		return BLOB_SIGNATURE; /* "native signature handlers" */
	case LETTERS('I', '2', 'C', '/', 'C', '2', 'I', ' '):
		return BLOB_ADAPTER;
	case LETTERS('v', 't', 'a', 'b', 'l', 'e', ' ', 'c'):
		return BLOB_VTABLE;
	case LETTERS('M', 'e', 't', 'h', 'o', 'd', 'H', 'a'):
		return BLOB_METHOD_HANDLE;
	case LETTERS('D', 'e', 'o', 'p', 't', 'i', 'm', 'i'):
		return BLOB_DEOPTIMIZATION;
	case LETTERS('S', 'a', 'f', 'e', 'p', 'o', 'i', 'n'):
		return BLOB_SAFEPOINT;
	case LETTERS('U', 'n', 'c', 'o', 'm', 'm', 'o', 'n'):
		return BLOB_UNCOMMON_TRAP;
	case LETTERS('u', 'p', 'c', 'a', 'l', 'l', '_', 's'):
		return BLOB_UPCALL;
	case LETTERS('S', 't', 'u', 'b', 'R', 'o', 'u', 't'):
		/* "StubRoutines (continuation stubs)", from 21 on; also "(compiler stubs)". */
		if (!read_memory(name, text, 24) &&
		    text[2] == LETTERS('n', 't', 'i', 'n', 'u', 'a', 't', 'i'))
			return BLOB_CONTINUATION;
	}
	return BLOB_OTHER;
}

/* Reads the CodeBlob at `blob` into the state: 0 or a stop reason. */
__noinline int WALK_NAME(hotspot_header)(__u64 blob)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 name, size, code;
	__u32 len;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	st->blob = st->size = 0;
	len = r->header_size;
	if (len > HOTSPOT_HEADER_SIZE)
		return STOP_RUNTIME_UNKNOWN;
	len &= 511;
	barrier_var(len);
	/* That of an nmethod: others are smaller. */
	if (read_to_page_end(blob, s->header, len & 511))
		return STOP_RUNTIME_UNREADABLE;
	name = header_field(s, r->blob_name);
	size = (__u32)header_field(s, r->blob_size);
	code = header_offset(s, r->blob_code_begin, blob);
	if (!size || code > size || !name)
		return STOP_RUNTIME_UNREADABLE;
	st->kind = name == r->name_nmethod || name == st->name_compiled ? BLOB_COMPILED
		   : name == r->name_native				? BLOB_NATIVE
					    : WALK_NAME(hotspot_name)(name);
	st->code = (__u32)code;
	st->frame_complete = (__s32)header_field(s, r->blob_frame_complete);
	st->frame_size = (__s32)header_field(s, r->blob_frame_size);
	if (st->kind == BLOB_COMPILED || st->kind == BLOB_NATIVE) {
		st->check = (__u32)header_field(s, r->nmethod_compile_id);
		st->orig_pc = (__u32)header_field(s, r->nmethod_orig_pc);
		st->deopt = (__u32)header_offset(s, r->nmethod_deopt_handler, blob);
		st->deopt_mh = (__u32)header_offset(s, r->nmethod_deopt_mh_handler, blob);
	} else {
		st->check = hotspot_stub_check(name, (__u32)size);
	}
	st->blob = blob;
	st->size = (__u32)size;
	return STOP_NONE;
}

/* --- what the caller cache has of blobs ------------------------------------------------------ */

/* What it has of the current frame, a caller; NULL: nothing. */
static __always_inline struct hotspot_known *known_caller(const struct walk *w)
{
	struct cached_rule *e = caller_cache_at(w);

	if (!e || e->runtime != RUNTIME_HOTSPOT || e->pc != w->pc ||
	    e->generation != w->process.generation)
		return NULL;
	return (struct hotspot_known *)e->own;
}

static __always_inline bool is_nmethod(__u32 kind)
{
	return kind == BLOB_COMPILED || kind == BLOB_NATIVE;
}

/* Reads what proves that a known blob is still there; false: its block is not used any more. */
static __always_inline bool read_proof(const struct hotspot_record *r, struct hotspot_scratch *s,
				       const struct hotspot_known *known)
{
	__u32 size = r->proof_size;

	if (!size || size > HOTSPOT_HEADER_SIZE)
		return false;
	size &= 511;
	barrier_var(size);
	return !read_memory(known->blob - r->heaps[0].block_header, s->header, size & 511) &&
	       ((const __u8 *)s->header)[r->proof_used & 511] == 1;
}

/* Is the nmethod still there that was at a known caller's address? Compile ids are not given
 * twice. */
static __always_inline bool is_still_there(const struct hotspot_record *r,
					   struct hotspot_scratch *s,
					   const struct hotspot_known *known)
{
	__u64 name;
	__u32 id;

	if (!read_proof(r, s, known))
		return false;
	name = s->header[r->proof_name / 8 & 63];
	id = *(const __u32 *)((const __u8 *)s->header + (r->proof_id & 508));
	return id == known->compile_id &&
	       name == (known->kind == BLOB_COMPILED ? r->name_nmethod : r->name_native);
}

/*
 * The current frame is a caller in a stub that was met before: into the state, as hotspot_find()
 * would by many reads (stubs lie in large blobs, and are told by their names' text), if a blob of
 * the same name and size is still there.
 */
static __always_inline bool find_known_stub(struct walk *w, const struct hotspot_record *r,
					    struct hotspot_state *st)
{
	const struct hotspot_known *known = known_caller(w);
	struct hotspot_scratch *s = hotspot_scratch(w);
	__u32 size, at = r->heaps[0].block_header + r->blob_size.offset;

	if (!known || is_nmethod(known->kind) || r->blob_size.size != 4 || at + 4 > r->proof_size ||
	    !read_proof(r, s, known))
		return false;
	size = *(const __u32 *)((const __u8 *)s->header + (at & 508));
	if (hotspot_stub_check(s->header[r->proof_name / 8 & 63], size) != known->compile_id)
		return false;
	st->blob = known->blob;
	st->size = size;
	st->code = known->code;
	st->frame_size = known->frame_size;
	st->frame_complete = 0;
	st->check = known->compile_id;
	st->orig_pc = st->deopt = st->deopt_mh = 0;
	st->kind = (__u8)known->kind;
	return true;
}

/*
 * Which VM operations of this process there were; 0: that is not known. Between two equal answers
 * no nmethod that was on a stack has made room for another one (hotspot_operations.h).
 */
static __always_inline __u32 operations_now(const struct walk *w, const struct hotspot_record *r)
{
	__u64 number;

	if (!r->operations || read_word(r->operations, &number))
		return 0;
	/* A fork's child has its parent's generation at first. */
	return (__u32)hotspot_mix(number, w->header.pid) | 1;
}

/* The blob that has the current frame, a caller of which nothing is out of the ordinary, is known
 * from now on. */
static __always_inline void remember_caller(struct walk *w, const struct hotspot_state *st)
{
	struct cached_rule *e = caller_cache_at(w);
	struct hotspot_known *known;

	if (!e || !hotspot_record(w)->proof_size)
		return;
	e->pc = w->pc;
	e->generation = w->process.generation;
	e->runtime = RUNTIME_HOTSPOT;
	known = (struct hotspot_known *)e->own;
	known->blob = st->blob;
	known->code = st->code;
	known->frame_size = st->frame_size;
	known->compile_id = st->check;
	known->kind = st->kind;
	known->operations = 0; /* it was read before they were */
}

/* The CodeBlob of the block that begins with this segment. */
static __always_inline __u64 block_at(const struct hotspot_code_heap *h, __u64 segment)
{
	return h->low + (segment << (h->log2_segment_size & 63)) + h->block_header;
}

/* Finds the CodeBlob that has walk->pc (CodeHeap::find_block_for() of heap.cpp): 0 or a stop
 * reason. */
__noinline int WALK_NAME(hotspot_find)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_code_heap *h = NULL;
	const struct hotspot_record *r;
	struct hotspot_state *st;
	__u64 segment;
	__u8 back = 0;
	__u32 i;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	st = hotspot_state(w);
	if (in_blob(st, w->pc) ||
	    (!w->interrupted && !st->chunk && !w->late && find_known_stub(w, r, st)))
		return STOP_NONE;
	for (i = 0; i < HOTSPOT_HEAPS; i++) {
		h = &r->heaps[i];
		if (w->pc - h->start < h->end - h->start)
			break;
	}
	if (i >= HOTSPOT_HEAPS || w->pc < h->low)
		return STOP_RUNTIME_UNREADABLE;
	segment = (w->pc - h->low) >> (h->log2_segment_size & 63);
	for (i = 0; i < SEGMENT_HOPS; i++) {
		if (read_memory(h->segmap + segment, &back, 1) || back == SEGMENT_FREE)
			return STOP_RUNTIME_UNREADABLE;
		if (!back || back > segment)
			break;
		w->work += i > 0; /* most code is found by the first one */
		segment -= back;
		/* That is where it begins, if it has less than 255 segments: compiled code is known
		 * by its name's address. */
		if (!i && !WALK_NAME(hotspot_header)(block_at(h, segment)) && in_blob(st, w->pc) &&
		    (st->kind == BLOB_COMPILED || st->kind == BLOB_NATIVE))
			return STOP_NONE;
	}
	if (back)
		return STOP_RUNTIME_UNREADABLE;
	if (st->blob != block_at(h, segment)) {
		stop = WALK_NAME(hotspot_header)(block_at(h, segment));
		if (stop)
			return stop;
	}
	/* Blocks that are free have no blob; what stands there ends anywhere. */
	return in_blob(st, w->pc) ? STOP_NONE : STOP_RUNTIME_UNREADABLE;
}

/* --- to the caller --------------------------------------------------------------------------- */

/*
 * Moves on to the caller, to whom `ra` returns. It stands at a higher address, and runs Java code:
 * then its registers are unknown but for these; or native code, whose are all lost unless the frame
 * that was left had saved them (walk->valid says so).
 */
__noinline int WALK_NAME(hotspot_leave)(__u64 cfa, __u64 ra)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	if (cfa < w->regs[ARCH_SP] || cfa & 7)
		return STOP_RUNTIME_UNREADABLE;
	ra = arch_strip_pac(w, ra);
	w->by_frame_pointer = 0;
	if (hotspot_state(w)->chunk) {
		/* The return address of a chunk's last frame is 0, or left over: where a chunk is
		 * used again, of what was there before. */
		if (!ra || cfa >= hotspot_state(w)->chunk + hotspot_state(w)->chunk_end)
			ra = r->cont_return;
		else if (!in_code(r, ra))
			return STOP_RUNTIME_UNREADABLE;
	}
	/* No thread begins in Java code: there is no last frame here. */
	if (!ra)
		return STOP_RUNTIME_UNREADABLE;
	if (!in_code(r, ra))
		walk_native(w);
	else
		w->valid &= 1u << ARCH_FP | 1u << ARCH_SP | 1u << HOTSPOT_THREAD;
	return walk_to_caller(w, cfa, ra);
}

/*
 * What a frame at `sp` says of its caller's frame pointer, in the word at `at`. In a chunk those of
 * interpreted frames count from where they are kept, in words, so that the chunk can be moved.
 */
static __always_inline __u64 link_to(struct walk *w, __u64 at, __u64 link, __u64 ra)
{
	const struct hotspot_record *r = hotspot_record(w);

	return hotspot_state(w)->chunk && in_interpreter(r, ra) ? at + 8 * link : link;
}

/* --- frames ---------------------------------------------------------------------------------- */

/* A note in place of Java frames that are one behind the other. */
static __always_inline int push_once(struct walk *w, enum frame_note note)
{
	struct hotspot_state *st = hotspot_state(w);
	int stop = STOP_NONE;

	if (!st->noted || st->noted != w->nr_frames)
		stop = push_note(w, RUNTIME_HOTSPOT, note);
	st->noted = w->nr_frames;
	return stop;
}

/* Which methods these are is told by the process's memory only, which may be another class's by the
 * time of a late walk. */
static __always_inline int push_late(struct walk *w)
{
	return push_once(w, FRAME_NOTE_NOT_READY);
}

/* Pushes the frame of a CodeBlob, whose code goes on at `pc`. */
static __always_inline int push_blob(struct walk *w, const struct hotspot_state *st, __u64 pc)
{
	__u32 kind = st->kind == BLOB_COMPILED ? HOTSPOT_COMPILED
		     : st->kind == BLOB_NATIVE ? HOTSPOT_NATIVE
					       : HOTSPOT_STUB;

	if (w->late && kind != HOTSPOT_STUB)
		return push_late(w);
	if (w->interrupted)
		kind |= HOTSPOT_INTERRUPTED;
	return push_frame_2(w, RUNTIME_HOTSPOT, HOTSPOT_FRAME(kind, st->blob),
			    HOTSPOT_WORD(st->check, pc - code_of(st)));
}

/* --- the interpreter ------------------------------------------------------------------------- */

/* Pushes the frame of an interpreted `method`, whose frame remembers `bcp`; in the register it may
 * be newer. */
__noinline int WALK_NAME(hotspot_push_method)(__u64 method, __u64 bcp)
{
	struct walk *w = current_walk();
	__u32 bci = HOTSPOT_NO_BCI;
	struct hotspot_state *st;

	if (!w)
		return STOP_INTERNAL;
	if (w->late)
		return push_late(w);
	if (read_method(w, method, bcp))
		return push_note(w, RUNTIME_HOTSPOT, FRAME_NOTE_UNREADABLE);
	st = hotspot_state(w);
	if (w->valid & 1u << HOTSPOT_BCP && w->regs[HOTSPOT_BCP] - st->codes < st->code_size)
		bci = (__u32)(w->regs[HOTSPOT_BCP] - st->codes);
	else if (bcp - st->codes < st->code_size)
		bci = (__u32)(bcp - st->codes);
	return push_frame_2(w, RUNTIME_HOTSPOT, HOTSPOT_FRAME(HOTSPOT_INTERPRETED, method),
			    HOTSPOT_WORD(st->cookie, bci));
}

__noinline int WALK_NAME(hotspot_interpreted)(void)
{
	struct walk *w = current_walk();
	/* Of what is not set on a failing path, clang copies whatever a register has; verifiers
	 * mind. */
	__u64 fp, method = 0, bcp = 0, sender_sp = 0, link = 0, ra = 0;
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	if (s->look == LOOK_FAILED)
		return STOP_RUNTIME_UNREADABLE;
	if (s->look != LOOK_FRAME) {
		/* On the way in, the method is in a register; on the way out, it is no more. */
		stop = s->look == LOOK_CALLER
			       ? WALK_NAME(hotspot_push_method)(w->regs[HOTSPOT_METHOD], 0)
			       : push_blob(w, hotspot_state(w), w->pc);
		if (stop)
			return stop;
		w->regs[ARCH_FP] = s->fp;
		return WALK_NAME(hotspot_leave)(s->cfa, s->ra);
	}
	stop = check_frame_pointer(w);
	if (stop)
		return stop;
	fp = w->regs[ARCH_FP];
	stop = read_stack(w, fp - r->interpreter_bcp, &bcp);
	if (!stop)
		stop = read_stack(w, fp + SLOT_METHOD, &method);
	/* Not pushed yet: what is there is of a frame that was there before. */
	if (w->interrupted && fp + SLOT_METHOD < w->regs[ARCH_SP]) {
		method = w->regs[HOTSPOT_METHOD];
		bcp = 0;
	}
	if (!stop)
		stop = read_stack(w, fp + SLOT_SENDER_SP, &sender_sp);
	if (!stop)
		stop = read_stack(w, fp, &link);
	if (!stop)
		stop = read_stack(w, fp + 8, &ra);
	if (stop)
		return stop;
	if (hotspot_state(w)->unpacking == UNPACKING_FILLS)
		bcp = 0; /* it is written last */
	stop = is_unfilled(w, fp);
	if (stop < 0)
		return -stop;
	stop = stop ? push_once(w, FRAME_NOTE_UNREADABLE)
		    : WALK_NAME(hotspot_push_method)(method, bcp);
	if (stop)
		return stop;
	/* A compiled caller's stack pointer is where its own frame ends, below the arguments that
	 * were moved for the interpreter. */
	if (hotspot_state(w)->chunk)
		sender_sp = fp + 8 * sender_sp;
#if defined(__TARGET_ARCH_arm64)
	/* An interpreted caller has set its stack pointer below all that it may push; what it calls
	 * has its frame within. It is found by its frame pointer alone. */
	if (sender_sp <= fp && in_interpreter(r, arch_strip_pac(w, ra)))
		sender_sp = fp + 16;
#endif
	if (sender_sp <= fp)
		return STOP_RUNTIME_UNREADABLE;
	w->regs[ARCH_FP] = link_to(w, fp, link, ra);
	return WALK_NAME(hotspot_leave)(sender_sp, ra);
}

/* --- compiled code and stubs ----------------------------------------------------------------- */

/* The caller of a blob whose frame is built: by the size of that. */
static __always_inline int leave_sized(struct walk *w, const struct hotspot_state *st)
{
	__u64 cfa, ra, fp;
	int stop;

	if (st->frame_size < 2 || st->frame_size > 1 << 20)
		return STOP_RUNTIME_UNREADABLE;
	cfa = w->regs[ARCH_SP] + 8 * (__u64)(__u32)st->frame_size;
	stop = read_stack(w, cfa - 8, &ra);
	if (!stop)
		stop = read_stack(w, cfa - 16, &fp);
	if (stop)
		return stop;
	/* It is called by nothing but what the JVM made. */
	if (ra && !in_code(hotspot_record(w), arch_strip_pac(w, ra)))
		return STOP_RUNTIME_UNREADABLE;
	w->regs[ARCH_FP] = link_to(w, cfa - 16, fp, ra);
	w->valid |= 1u << ARCH_FP;
	return WALK_NAME(hotspot_leave)(cfa, ra);
}

/*
 * Goes on over callers that are compiled code which the caller cache knows: one read each. 0: it
 * has moved on; -1: what the current frame is must be looked up.
 */
__noinline int WALK_NAME(hotspot_callers)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_known *known;
	struct hotspot_state *st;
	__u64 cfa, fp = 0, ra = 0;
	__u32 i, kind;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	st = hotspot_state(w);
	if (!st->operations)
		st->operations = operations_now(w, r);
	for (i = 0; i < CALLERS; i++) {
		known = known_caller(w);
		if (!known || !is_nmethod(known->kind))
			return -1;
		if (!st->operations || known->operations != st->operations) {
			if (!is_still_there(r, hotspot_scratch(w), known))
				return -1;
			known->operations = st->operations;
		}
		cfa = w->regs[ARCH_SP] + 8 * (__s64)known->frame_size;
		if (read_stack(w, cfa - 8, &ra) || read_stack(w, cfa - 16, &fp))
			return -1;
		ra = arch_strip_pac(w, ra);
		if (!in_code(r, ra))
			return -1;
		kind = known->kind == BLOB_COMPILED ? HOTSPOT_COMPILED : HOTSPOT_NATIVE;
		if (push_frame_2(
			    w, RUNTIME_HOTSPOT, HOTSPOT_FRAME(kind, known->blob),
			    HOTSPOT_WORD(known->compile_id, w->pc + 1 - known->blob - known->code)))
			return STOP_MAX_FRAMES;
		w->regs[ARCH_FP] = fp;
		w->valid = (w->valid & 1u << HOTSPOT_THREAD) | 1u << ARCH_FP;
		walk_to_caller(w, cfa, ra);
	}
	return STOP_NONE;
}

__noinline int WALK_NAME(hotspot_compiled)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	int stop;
	__u64 pc;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	pc = w->pc;
	if (st->kind == BLOB_NATIVE && st->frame_size == 2) /* Continuation.doYield */
		st->heap = HEAP_MOVES;
	if (st->chunk) {
		if (st->kind != BLOB_COMPILED)
			return STOP_RUNTIME_UNREADABLE;
		/* Behind a chunk's last frame are its arguments, and that was left over. */
		if (w->regs[ARCH_SP] + 8 * (__u64)(__u32)st->frame_size >
		    st->chunk + st->chunk_end) {
			w->pc = r->cont_return - 1;
			return STOP_NONE;
		}
	}
	if (!w->interrupted) {
		pc++;
		if ((st->deopt && pc == st->blob + st->deopt) ||
		    (st->deopt_mh && pc == st->blob + st->deopt_mh)) {
			stop = read_stack(w, w->regs[ARCH_SP] + st->orig_pc, &pc);
			if (stop)
				return stop;
			if (!in_blob(st, pc))
				return STOP_RUNTIME_UNREADABLE;
		} else if (st->frame_size > 2 && st->frame_size <= 1 << 20) {
			remember_caller(w, st);
		}
	}
	if (s->look != LOOK_JUMP) {
		stop = push_blob(w, st, pc);
		if (stop)
			return stop;
	}
	if (s->look == LOOK_FAILED)
		return STOP_RUNTIME_UNREADABLE;
	if (s->look == LOOK_FRAME) {
		if (!w->interrupted)
			w->regs[ARCH_SP] += pushed_by(w, pc);
		return leave_sized(w, st);
	}
	if (!in_code(r, arch_strip_pac(w, s->ra)))
		return STOP_RUNTIME_UNREADABLE;
	w->regs[ARCH_FP] = s->fp;
	return WALK_NAME(hotspot_leave)(s->cfa, s->ra);
}

/* From a frame that native code has called, and whose frame pointer is `fp`: `saved`, where it has
 * kept the caller's registers; `stride`: from one to the next; 0: they are still there. */
static __always_inline int leave_to_native(struct walk *w, __u64 fp, __u64 saved, __u64 stride)
{
	__u64 ra, link, value = 0;
	int stop = STOP_NONE;
	__u32 i;

	for (i = 0; i < NATIVE_SAVED && stride && !stop; i++) {
		__u32 reg = native_saved[i] & (UNWIND_REGS_MAX - 1);

		stop = read_stack(w, saved + i * stride, &value);
		w->regs[reg] = value;
		w->valid |= 1u << reg;
	}
	if (!stop)
		stop = read_stack(w, fp, &link);
	if (!stop)
		stop = read_stack(w, fp + 8, &ra);
	if (stop)
		return stop;
	w->regs[ARCH_FP] = link;
	return WALK_NAME(hotspot_leave)(fp + 16, ra);
}

/* The frame of the call stub: native code called Java here. */
__noinline int WALK_NAME(hotspot_call_stub)(void)
{
	struct walk *w = current_walk();
	__u64 fp;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	stop = check_frame_pointer(w);
	if (!stop)
		stop = push_blob(w, hotspot_state(w), w->pc + 1);
	fp = w->regs[ARCH_FP];
	return stop ? stop : leave_to_native(w, fp, fp + 8 * (__s64)CALL_STUB_FIRST, -8ull);
}

/*
 * The frame of an upcall's stub (22 and later): native code called Java by a pointer.
 * STOP_COMPLETE: it was interrupted, and its frame is not there as a whole.
 */
__noinline int WALK_NAME(hotspot_upcall)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 fp, saved, stride = 8;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	stop = check_frame_pointer(w);
	if (stop)
		return w->interrupted ? STOP_COMPLETE : stop;
	fp = w->regs[ARCH_FP];
	saved = (__u32)WALK_NAME(hotspot_look_upcall)();
	if (w->interrupted) {
		if (!saved || fp - w->regs[ARCH_SP] != s->cfa)
			return STOP_COMPLETE;
		if (w->pc - code_of(st) < s->ra)
			stride = 0;
	} else {
		w->valid &= 1u << ARCH_FP | 1u << ARCH_SP;
		if (!saved)
			stride = 0;
	}
	stop = push_blob(w, st, w->interrupted ? w->pc : w->pc + 1);
	return stop ? stop : leave_to_native(w, fp, fp - saved, stride);
}

/*
 * A virtual thread's frames are brought back from the heap a few at a time: the last one that is on
 * the stack returns to a stub that brings the next. Behind all of them, on the stack itself, is
 * ContinuationEntry (continuationEntry.hpp), from which whoever mounted the thread goes on.
 */

/* Where ContinuationEntry is: in *ret; `returned_to`: the frame that was left ends there. 0 or a
 * stop reason. */
static __always_inline int find_entry(struct walk *w, bool returned_to, __u64 *ret)
{
	const struct hotspot_record *r = hotspot_record(w);
	__u64 entry = 0, ra;

	if (!r->thread_cont_entry || !r->cont_return)
		return STOP_RUNTIME_UNREADABLE;
	if (!w->late && w->valid & 1u << HOTSPOT_THREAD) {
		if (read_word(w->regs[HOTSPOT_THREAD] + r->thread_cont_entry, &entry) || !entry ||
		    entry & 7)
			return STOP_RUNTIME_UNREADABLE;
		*ret = entry;
		return STOP_NONE;
	}
	/* Right behind the last frame, unless that has arguments on the stack. */
	entry = w->regs[ARCH_SP];
	if (!returned_to || read_stack(w, entry + r->cont_entry_size + 8, &ra) ||
	    !in_code(r, arch_strip_pac(w, ra)))
		return STOP_RUNTIME_UNREADABLE;
	*ret = entry;
	return STOP_NONE;
}

/* The next chunk of frames: the continuation's last, then each one's parent. 0: the walk is at its
 * topmost frame now. STOP_COMPLETE: there is none. */
__noinline int WALK_NAME(hotspot_chunk)(__u64 entry)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	__u64 next, continuation, sp = 0, link, ra = 0;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u32 i, at = 0, size = 0;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	if (!r->chunk_stack || w->late || st->heap != HEAP_AT_REST)
		return STOP_RUNTIME_UNREADABLE;
	next = st->chunk;
	if (!next && (read_word(entry + r->cont_entry_cont, &continuation) ||
		      (st->in_native && may_have_moved(r, continuation)) ||
		      follow_oop(r, s, continuation + r->continuation_tail, &next)))
		return STOP_RUNTIME_UNREADABLE;
	for (i = 0; i < EMPTY_CHUNKS; i++) {
		w->work += CHUNK_WORK;
		if ((i || st->chunk) && follow_oop(r, s, next + r->chunk_parent, &next))
			return STOP_RUNTIME_UNREADABLE;
		if (!next)
			return STOP_COMPLETE;
		if (read_memory(next + r->chunk_size, &size, sizeof(size)) ||
		    read_memory(next + r->chunk_sp, &at, sizeof(at)) || at > size ||
		    size > 1u << 24)
			return STOP_RUNTIME_UNREADABLE;
		sp = next + r->chunk_stack + 8 * (__u64)at;
		if (at < 2 || read_word(sp - 8, &ra))
			return STOP_RUNTIME_UNREADABLE;
		ra = arch_strip_pac(w, ra);
		/* Arguments of its last frame may be left of an empty one: what returned there went
		 * out of the chunk. */
		if (at < size && ra && ra != r->cont_return && ra != w->pc + 1)
			break;
	}
	if (i >= EMPTY_CHUNKS || !in_code(r, ra) || read_word(sp - 16, &link))
		return STOP_RUNTIME_UNREADABLE;
	st->chunk = next;
	st->chunk_end = r->chunk_stack + 8 * size;
	st->entry = entry;
	w->regs[ARCH_FP] = link_to(w, sp - 16, link, ra);
	w->valid |= 1u << ARCH_FP;
	return walk_to_caller(w, sp, ra);
}

/* Back from the heap to the stack, to the frame of Continuation.enterSpecial. */
static __always_inline int leave_chunks(struct walk *w, __u64 entry)
{
	const struct hotspot_record *r = hotspot_record(w);

	hotspot_state(w)->chunk = 0;
	w->regs[ARCH_FP] = entry + r->cont_entry_size;
	w->valid |= 1u << ARCH_FP;
	return walk_to_caller(w, entry, r->cont_return);
}

/* The last frame of the last chunk returns to Continuation.enterSpecial. */
__noinline int WALK_NAME(hotspot_end_of_chunks)(void)
{
	struct walk *w = current_walk();
	__u64 entry;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	entry = hotspot_state(w)->entry;
	/* Unless its chunk has another behind it. */
	stop = WALK_NAME(hotspot_chunk)(entry);
	if (stop == STOP_NONE || stop == STOP_MAX_FRAMES)
		return stop;
	stop = stop == STOP_COMPLETE ? STOP_NONE : push_note(w, RUNTIME_HOTSPOT, FRAME_NOTE_FROZEN);
	return stop ? stop : leave_chunks(w, entry);
}

__noinline int WALK_NAME(hotspot_continuation)(void)
{
	struct walk *w = current_walk();
	struct hotspot_state *st;
	bool at_work;
	__u64 entry;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	st = hotspot_state(w);
	/* What it has brought so far, and where that is, is not known. */
	at_work = w->interrupted || WALK_NAME(hotspot_called)(w->pc + 1);
	entry = st->entry;
	stop = st->chunk ? STOP_NONE : find_entry(w, !at_work, &entry);
	if (stop)
		return stop;
	if (!st->chunk && (entry < w->regs[ARCH_SP] || entry - w->regs[ARCH_SP] > 1u << 30))
		return STOP_RUNTIME_UNREADABLE;
	if (at_work)
		stop = push_blob(w, st, w->interrupted ? w->pc : w->pc + 1);
	else if (!WALK_NAME(hotspot_chunk)(entry))
		return STOP_NONE;
	if (!stop)
		stop = push_note(w, RUNTIME_HOTSPOT, FRAME_NOTE_FROZEN);
	return stop ? stop : leave_chunks(w, entry);
}

__noinline int WALK_NAME(hotspot_stub)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	stop = push_blob(w, st, w->interrupted ? w->pc : w->pc + 1);
	if (stop)
		return stop;
	if (s->look == LOOK_FAILED)
		return STOP_RUNTIME_UNREADABLE;
	if (s->look == LOOK_FRAME)
		return leave_sized(w, st);
	if (st->unpacking == UNPACKING_MAKES) {
		stop = push_once(w, FRAME_NOTE_UNREADABLE);
		if (stop)
			return stop;
	}
	w->regs[ARCH_FP] = s->fp;
	if (st->kind == BLOB_OTHER || st->kind == BLOB_SAFEPOINT)
		s->cfa += pushed_for(s->ra);
	return WALK_NAME(hotspot_leave)(s->cfa, s->ra);
}

STEP(hotspot)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 entry;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry != ENTRY_CODE)
		return walk_native(w); /* it has no loops: its interpreter is code of its own */
	st = hotspot_state(w);
	if (w->record_runtime != RUNTIME_HOTSPOT)
		st->constants = 0; /* another runtime's step has used the scratch */
	r = runtime_record(w, RUNTIME_HOTSPOT, struct hotspot_record);
	if (!r)
		return STOP_RUNTIME_UNKNOWN;
	if (!in_code(r, w->pc))
		return STOP_RUNTIME_UNREADABLE;
	s = hotspot_scratch(w);
	if (r->virtual_threads && st->thread == THREAD_NOT_TRIED) {
		entry = entry_by_register(w);
		stop = entry ? WALK_NAME(hotspot_say_thread)(entry) : STOP_NONE;
		if (stop)
			return stop;
	}
	if (!in_interpreter(r, w->pc)) {
		st->unpacking = UNPACKING_NOT;
		if (!w->interrupted && !st->chunk && !w->late && st->heap &&
		    (!r->virtual_threads || st->thread == THREAD_SAID)) {
			stop = WALK_NAME(hotspot_callers)();
			if (stop >= 0)
				return stop;
		}
	}
	s->look = LOOK_FRAME;
	if (st->chunk && w->pc + 1 == r->cont_return)
		return WALK_NAME(hotspot_end_of_chunks)();
	if (in_interpreter(r, w->pc)) {
		if (!st->heap)
			st->heap = w->interrupted ? HEAP_AT_REST : HEAP_MOVES;
		/* A caller that Java code has called has its frame. */
		if (w->interrupted || w->valid & 1u << HOTSPOT_BCP)
			s->look = (__u32)WALK_NAME(hotspot_look_interpreter)();
		stop = s->look == LOOK_JUMP ? WALK_NAME(hotspot_find)() : STOP_NONE;
		return stop ? stop : WALK_NAME(hotspot_interpreted)();
	}
	stop = WALK_NAME(hotspot_find)();
	if (stop)
		return stop;
	if (!w->interrupted && !st->chunk && !w->late && !is_nmethod(st->kind))
		remember_caller(w, st);
	if (!st->heap)
		st->in_native = !w->interrupted && st->kind == BLOB_NATIVE;
	if (!st->heap)
		st->heap = w->interrupted || st->kind == BLOB_COMPILED || st->kind == BLOB_NATIVE
				   ? HEAP_AT_REST
				   : HEAP_MOVES;
	if (st->kind == BLOB_COMPILED || st->kind == BLOB_NATIVE) {
		if (is_end_of_thread(w)) {
			stop = WALK_NAME(hotspot_say_thread)(entry_by_frame(w));
			if (stop)
				return stop;
		}
		if (w->interrupted)
			s->look = (__u32)WALK_NAME(hotspot_look_compiled)();
		return WALK_NAME(hotspot_compiled)();
	}
	if (!w->interrupted && w->pc + 1 == r->call_stub_return)
		return WALK_NAME(hotspot_call_stub)();
	if (st->kind == BLOB_CONTINUATION)
		return WALK_NAME(hotspot_continuation)();
	if (st->kind == BLOB_UPCALL) {
		stop = WALK_NAME(hotspot_upcall)();
		if (stop != STOP_COMPLETE)
			return stop;
	}
	if (w->interrupted || st->frame_size < 2) {
		s->look = (__u32)WALK_NAME(hotspot_look_thrown)();
		if (s->look == LOOK_FAILED)
			s->look = (__u32)WALK_NAME(hotspot_look_stub)();
		/* Jumped to: no call of it is on the stack. */
		if (s->look == LOOK_FAILED && w->interrupted &&
		    (st->kind == BLOB_OTHER || st->kind == BLOB_UNCOMMON_TRAP) &&
		    st->frame_size >= 2 && made_by_c2(s->begin)) {
			s->look = (__u32)WALK_NAME(hotspot_look_compiled)();
			if (s->look != LOOK_FRAME && !in_code(r, s->ra))
				s->look = LOOK_FAILED;
		}
	} else if (st->frame_size == 2 && st->kind == BLOB_OTHER) {
		/* handle_exception_from_callee (c1_Runtime1_x86.cpp) aligns its stack pointer. */
		if (WALK_NAME(hotspot_look_entered)() == LOOK_CALLER)
			s->look = in_code(r, s->ra) ? LOOK_CALLER : LOOK_FAILED;
	} else if (st->kind == BLOB_DEOPTIMIZATION || st->kind == BLOB_UNCOMMON_TRAP) {
		s->look = (__u32)WALK_NAME(hotspot_look_deoptimization)();
	}
	return WALK_NAME(hotspot_stub)();
}
