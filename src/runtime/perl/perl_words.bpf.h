/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words of a Perl frame: its statement's, its sub's, and what a CPU remembers of both. A part
 * of the step, included by perl.bpf.c behind what it uses.
 */
#pragma once

/* --- what was read before --------------------------------------------------------------------- */

/*
 * A CPU's memory of subs and of statements in them, among the rules by address, as
 * nobody's address (as ruby.bpf.c has it): own = proof_of(), words 1 and 2 of the frame;
 * `generation`, `tag` and `link` have where the CV's body is.
 *
 * What the body says is read each time. If that is what it was, the sub has the ops that it had,
 * and so its statements are the same ones: the number of what was compiled before it
 * (CvOUTSIDE_SEQ) grows with all that an interpreter compiles. Another interpreter has another
 * thread, or was made at another time.
 */
enum { MEMORY_SHIFT = 30 /* ns: of a second */ };

static __always_inline __u64 memory_key(const struct walk *w, __u64 *s)
{
	if (!s[S_MEMORY])
		s[S_MEMORY] = perl_mix(perl_mix(w->mm,
						(__u64)w->header.tid << 32 | w->process.generation),
				       w->header.time_ns >> MEMORY_SHIFT)
				      ?: 1;
	return perl_mix(s[S_MEMORY], s[S_COMPILING]);
}

static __always_inline struct cached_rule *memory_of(const struct walk *w, __u64 cv, __u64 cop)
{
	return rule_cache_at(w, (__u32)((cv >> 3 ^ cop) * WALK_HASH_MULTIPLIER >> 40));
}

/* Of the body at CV_AT. */
static __always_inline __u64 proof_of(struct walk *w, __u64 *s)
{
	__u64 proof = perl_mix(memory_key(w, s), scratch_word(w, CV_AT, PERL_CV_START));

	proof = perl_mix(proof, scratch_word(w, CV_AT, PERL_CV_ROOT));
	proof = perl_mix(proof, scratch_word(w, CV_AT, PERL_CV_GV));
	proof = perl_mix(proof, scratch_word(w, CV_AT, PERL_CV_FILE));
	return perl_mix(proof, scratch_half(w, CV_AT, PERL_CV_OUTSIDE_SEQ));
}

/* Is that what it was? Then own[1] and own[2] are the frame's. */
static __always_inline bool is_known(struct walk *w, __u64 *s, const struct cached_rule *e,
				     __u64 cv, __u64 cop)
{
	__u64 any = (__u64)e->link << 43 | (__u64)e->tag << 35 | (__u64)e->generation << 3;

	return e->pc == ~cv && e->runtime == RUNTIME_PERL && e->own[1] >> PERL_COP_SHIFT == cop &&
	       !read_cv_fields(w, any) && e->own[0] == proof_of(w, s);
}

static __always_inline void remember(struct walk *w, __u64 *s, struct cached_rule *e, __u64 cv,
				     const __u64 *words)
{
	__u64 any = scratch_word(w, SV_AT, PERL_SV_ANY);

	if (any & 7 || any >> 47)
		return;
	e->pc = ~cv;
	e->generation = (__u32)(any >> 3);
	e->runtime = RUNTIME_PERL;
	e->tag = (__u8)(any >> 35);
	e->link = (__u16)(any >> 43);
	e->own[0] = proof_of(w, s);
	e->own[1] = words[1];
	e->own[2] = words[2];
}

/* --- frames ----------------------------------------------------------------------------------- */

static __always_inline int push_words(struct walk *w, __u64 kind, __u64 cv, __u64 word1,
				      __u64 word2)
{
	const __u64 words[PERL_FRAME_WORDS] = {
		FRAME(RUNTIME_PERL, 2, kind << PERL_KIND_SHIFT | cv), word1, word2
	};
	__u64 *to = frame_room(w, PERL_FRAME_WORDS);
	__u32 i;

	if (!to)
		return STOP_MAX_FRAMES;
	UNROLL
	for (i = 0; i < PERL_FRAME_WORDS; i++) {
		to[i] = words[i];
		hash_word(w, words[i]);
		hash_name(w, words[i]);
	}
	return STOP_NONE;
}

/* Of the frame at `cop`, words 1 and 2, but for the cookie and the op's mark; true: the statement
 * is PL_compiling. *ret_statement: its line and number, as far as they stay. */
static __always_inline bool statement_words(struct walk *w, const struct perl_record *r,
					    const __u64 *s, __u64 cop, __u64 *ret,
					    __u64 *ret_statement)
{
	__u32 line, seq;
	bool compiling;

	if (!read_cop(w, cop)) {
		ret[1] = ret[2] = 0;
		*ret_statement = 0;
		return false;
	}
	line = scratch_half(w, COP_AT, PERL_COP_LINE);
	compiling = cop - s[S_COMPILING] < r->compiling_size;
	seq = compiling ? 0 : scratch_half(w, COP_AT, PERL_COP_SEQ);
	*ret_statement = compiling ? 0 : (__u64)line << 32 | seq;
	ret[1] = cop << PERL_COP_SHIFT |
		 perl_cop_cookie(scratch_word(w, COP_AT, PERL_COP_FILE), seq) >>
			 (64 - PERL_COP_SHIFT);
	ret[2] = compiling && line <= PERL_LINE_MAX ? line : 0;
	return compiling;
}

/*
 * Is the body at CV_AT a copy that was made of a closure's text? All of them, and what they were
 * made of, have one name, and keep it: a glob, or of a lexical sub its text (pad.c:
 * S_cv_clone_pad()). One that was given a name of its own is neither any more.
 */
static __always_inline bool is_closure(const struct walk *w)
{
	__u32 flags = scratch_half(w, CV_AT, PERL_CV_FLAGS) &
		      (PERL_CV_CLONED | PERL_CV_ANON | PERL_CV_NAMED | PERL_CV_LEXICAL);

	return flags == (PERL_CV_CLONED | PERL_CV_ANON) ||
	       flags == (PERL_CV_CLONED | PERL_CV_NAMED | PERL_CV_LEXICAL);
}

/* What its frame has in place of the CV: its name. */
static __always_inline __u64 closure_place(const struct walk *w)
{
	bool named = scratch_half(w, CV_AT, PERL_CV_FLAGS) & PERL_CV_NAMED;

	return (scratch_word(w, CV_AT, PERL_CV_GV) & ((1ull << PERL_KIND_SHIFT) - 1)) |
	       (named ? PERL_PLACE_TEXT : PERL_PLACE_GLOB);
}

/* What tells the sub whose body is at CV_AT from others. */
static __always_inline __u64 cookie_of(const struct walk *w, bool closure, __u64 statement)
{
	__u64 gv = scratch_word(w, CV_AT, PERL_CV_GV), proof;

	if (!closure)
		return perl_sub_cookie(gv, scratch_word(w, CV_AT, PERL_CV_START), statement);
	proof = scratch_word(w, CV_AT, PERL_CV_STASH);
	if (scratch_half(w, CV_AT, PERL_CV_FLAGS) & PERL_CV_NAMED && read_word(gv, &proof))
		proof = 0;
	return perl_closure_cookie(gv, proof, statement);
}
