// SPDX-License-Identifier: Apache-2.0
#include "runtime/perl/perl_names.h"
#include "runtime/perl/perl_line.h"
#include "runtime/words.h"
#include "util/utf8.h"

#include <errno.h>
#include <string.h>

enum {
	PAGE = 4096,
	TEXT_MAX = 1024, /* bytes of a name's part, and of a path */
	NAME_MAX_SIZE = 4 * TEXT_MAX + 8,
	/* struct hek */
	HEK_LEN = 4,
	HEK_KEY = 8,
	HEK_UTF8 = 1, /* of the flags behind the key */
	/* struct gp, struct xpvgv, struct xpvhv, struct xpvhv_aux */
	GP_EGV = 56,
	GV_NAME = 32,
	GV_STASH = 40,
	HV_MAX = 24,
	HV_SIZE = 32,
	AUX_NAME = 0,
	AUX_NAME_COUNT = 28,
	AUX_SIZE = 32,
	AUX_IN_BODY = 36, /* since 5.36 */
	/* SvFLAGS */
	SV_TYPE = 0xff,
	SV_TYPE_GV = 9,
	SV_TYPE_HV = 12,
	HV_HAS_AUX = 0x03000000, /* SVf_OOK, later a flag of its own */
};

/* Text of a process, in UTF-8. */
struct text {
	char chars[NAME_MAX_SIZE];
	size_t len;
};

static int read_u64(const struct perl_names *n, uint64_t addr, uint64_t *ret)
{
	return runtime_read_or_gone(n->target, addr, ret, sizeof(*ret));
}

static void append(struct text *t, const char *chars, size_t len)
{
	if (len > sizeof(t->chars) - 1 - t->len)
		len = sizeof(t->chars) - 1 - t->len;
	memcpy(t->chars + t->len, chars, len);
	t->len += len;
	t->chars[t->len] = '\0';
}

static void append_latin1(struct text *t, const uint8_t *chars, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char bytes[4];

		append(t, bytes, utf8_put(chars[i], bytes));
	}
}

/* A key of a hash, which names are; without its first `skip` bytes. */
static int append_hek(const struct perl_names *n, uint64_t hek, size_t skip, struct text *t)
{
	uint8_t head[HEK_KEY], key[TEXT_MAX + 2];
	size_t len;
	int r = runtime_read_or_gone(n->target, hek, head, sizeof(head));

	if (r)
		return r;
	len = half_at(head, HEK_LEN);
	if (len > TEXT_MAX || len < skip)
		return -ENOENT;
	r = runtime_read_or_gone(n->target, hek + HEK_KEY, key, len + 2);
	if (r)
		return r;
	if (memchr(key, '\0', len))
		return -ENOENT;
	if (key[len + 1] & HEK_UTF8)
		append(t, (const char *)key + skip, len - skip);
	else
		append_latin1(t, key + skip, len - skip);
	return 0;
}

/* A string that ends with a zero byte; what follows may be missing. */
static int append_string(const struct perl_names *n, uint64_t addr, struct text *t)
{
	char piece[TEXT_MAX];
	size_t at = 0;

	while (at < TEXT_MAX) {
		size_t size = PAGE - (addr + at) % PAGE;
		int r;

		if (size > TEXT_MAX - at)
			size = TEXT_MAX - at;
		r = runtime_read_or_gone(n->target, addr + at, piece, size);
		if (r)
			return r;
		append(t, piece, strnlen(piece, size));
		if (memchr(piece, '\0', size))
			return 0;
		at += size;
	}
	return -ENOENT;
}

/* The head of an SV of that type, and where its body is. */
static int read_sv(const struct perl_names *n, uint64_t sv, unsigned int type,
		   uint8_t head[PERL_SV_SIZE], uint64_t *body)
{
	int r = sv ? runtime_read_or_gone(n->target, sv, head, PERL_SV_SIZE) : -ENOENT;

	if (r)
		return r;
	if ((half_at(head, PERL_SV_FLAGS) & SV_TYPE) != type)
		return -ENOENT;
	*body = word_at(head, PERL_SV_ANY);
	return 0;
}

/* The name of a package, with "::". A package that is gone is no more than __ANON__ to Perl. */
static int append_package(const struct perl_names *n, uint64_t stash, struct text *t)
{
	uint8_t head[PERL_SV_SIZE], aux[AUX_SIZE];
	uint64_t body, at, max, name = 0;
	int r;

	if (!stash)
		goto nameless;
	r = read_sv(n, stash, SV_TYPE_HV, head, &body);
	if (r)
		return r;
	if (!(half_at(head, PERL_SV_FLAGS) & HV_HAS_AUX))
		goto nameless;
	at = body + HV_SIZE;
	if (n->version < AUX_IN_BODY) {
		r = read_u64(n, body + HV_MAX, &max);
		if (r)
			return r;
		at = word_at(head, PERL_SV_U) + 8 * (max + 1);
	}
	r = runtime_read_or_gone(n->target, at, aux, sizeof(aux));
	if (r)
		return r;
	name = word_at(aux, AUX_NAME);
	/* Several names: an array of them, of which the first is the one. */
	if (name && half_at(aux, AUX_NAME_COUNT))
		r = read_u64(n, name, &name);
	if (r)
		return r;
	if (name) {
		r = append_hek(n, name, 0, t);
		if (!r)
			append(t, "::", 2);
		return r;
	}
nameless:
	append(t, "__ANON__::", strlen("__ANON__::"));
	return 0;
}

/* The full name of what a glob has. */
static int append_glob(const struct perl_names *n, uint64_t gv, struct text *t)
{
	uint8_t head[PERL_SV_SIZE];
	uint64_t body, egv, words[2]; /* GV_NAME, GV_STASH */
	int r = read_sv(n, gv, SV_TYPE_GV, head, &body);

	/* What it was called first, if it has another one's things. */
	if (!r && word_at(head, PERL_SV_U) &&
	    !read_u64(n, word_at(head, PERL_SV_U) + GP_EGV, &egv) && egv && egv != gv) {
		uint64_t effective_body;

		if (!read_sv(n, egv, SV_TYPE_GV, head, &effective_body))
			body = effective_body;
	}
	if (!r)
		r = runtime_read_or_gone(n->target, body + GV_NAME, words, sizeof(words));
	if (!r)
		r = append_package(n, words[1], t);
	return r ? r : append_hek(n, words[0], 0, t);
}

/* --- statements ------------------------------------------------------------------------------ */

struct statement {
	uint64_t file; /* as the COP has it */
	uint64_t id;   /* line << 32 | number, while they stay */
	uint32_t line;
	bool known; /* it is as it was */
};

/* The COP of a frame. 0; -ENOENT: it is another one's now. */
static int read_statement(const struct perl_names *n, const uint64_t *words, struct statement *ret)
{
	uint64_t cop = words[1] >> PERL_COP_SHIFT, cookie;
	bool compiling = FRAME_DATA(words[0]) >> PERL_KIND_SHIFT & PERL_FRAME_COMPILING;
	uint8_t bytes[PERL_COP_SIZE];
	uint32_t seq;
	int r;

	*ret = (struct statement){ 0 };
	if (!cop)
		return 0;
	r = runtime_read_or_gone(n->target, cop, bytes, sizeof(bytes));
	if (r)
		return r;
	ret->file = word_at(bytes, PERL_COP_FILE);
	ret->line = half_at(bytes, PERL_COP_LINE);
	seq = compiling ? 0 : half_at(bytes, PERL_COP_SEQ);
	cookie = perl_cop_cookie(ret->file, seq);
	ret->known = cookie >> (64 - PERL_COP_SHIFT) == (words[1] & ((1u << PERL_COP_SHIFT) - 1));
	if (!compiling) {
		ret->id = (uint64_t)ret->line << 32 | seq;
		return ret->known ? 0 : -ENOENT;
	}
	ret->line = (uint32_t)words[2] & PERL_LINE_MAX;
	return 0;
}

/* Whose words have no sub's cookie have that of the statement. */
static bool is_its_statement(const uint64_t *words, const struct statement *s)
{
	return perl_statement_cookie(s->id) << PERL_COOKIE_SHIFT >> PERL_COOKIE_SHIFT ==
	       words[2] >> PERL_COOKIE_SHIFT;
}

/* In which line of the statement the op is that the frame was in. */
static int read_line(const struct perl_names *n, const uint64_t *words, struct statement *s)
{
	const uint64_t mark = words[2] & ((1u << PERL_COOKIE_SHIFT) - 1);
	int r;

	if (!s->known || !s->id || !mark)
		return 0;
	r = perl_line_read(n->target, words[1] >> PERL_COP_SHIFT, n->dbstate, mark, &s->line);
	if (r == -ENOENT)
		s->line = 0;
	return r == -ENOENT ? 0 : r;
}

static int read_source(const struct perl_names *n, const struct statement *s, struct text *t)
{
	uint8_t head[PERL_SV_SIZE];
	uint64_t body, name;
	int r;

	if (!s->known || !s->file)
		return 0;
	if (n->threaded)
		return append_string(n, s->file, t);
	/* A glob named "_<FILE". */
	r = read_sv(n, s->file, SV_TYPE_GV, head, &body);
	if (!r)
		r = read_u64(n, body + GV_NAME, &name);
	return r ? r : append_hek(n, name, 2, t);
}

/* --- subs ------------------------------------------------------------------------------------ */

static uint64_t place_of(const uint64_t *words)
{
	return FRAME_DATA(words[0]) & ((1ull << PERL_KIND_SHIFT) - 1);
}

/* The body of a frame's CV; -ENOENT: it is not the one that the step saw. */
static int read_cv(const struct perl_names *n, const uint64_t *words, const struct statement *s,
		   uint8_t body[PERL_CV_SIZE])
{
	uint64_t cv = place_of(words), at, cookie;
	int r = read_u64(n, cv + PERL_SV_ANY, &at);

	if (!r)
		r = runtime_read_or_gone(n->target, at + PERL_CV_FIELDS, body + PERL_CV_FIELDS,
					 PERL_CV_SIZE - PERL_CV_FIELDS);
	if (r)
		return r;
	cookie = perl_sub_cookie(word_at(body, PERL_CV_GV), word_at(body, PERL_CV_START), s->id);
	return cookie << PERL_COOKIE_SHIFT >> PERL_COOKIE_SHIFT == words[2] >> PERL_COOKIE_SHIFT
		       ? 0
		       : -ENOENT;
}

static int read_sub_name(const struct perl_names *n, const uint8_t *cv, struct text *t)
{
	uint32_t flags = half_at(cv, PERL_CV_FLAGS);
	uint64_t name = word_at(cv, PERL_CV_GV);
	int r = 0;

	if (!(flags & PERL_CV_NAMED)) {
		if (name)
			return append_glob(n, name, t);
		append(t, "__ANON__", strlen("__ANON__"));
		return 0;
	}
	if (!(flags & PERL_CV_LEXICAL))
		r = append_package(n, word_at(cv, PERL_CV_STASH), t);
	return r ? r : append_hek(n, name, 0, t);
}

static bool is_its_name(const uint64_t *words, const struct statement *s, uint64_t name,
			uint64_t proof)
{
	return perl_closure_cookie(name, proof, s->id) << PERL_COOKIE_SHIFT >> PERL_COOKIE_SHIFT ==
	       words[2] >> PERL_COOKIE_SHIFT;
}

/*
 * A closure, by its name. Whoever has its statement has that, too. A glob is one of its package,
 * and is called as closures are: "__ANON__", with a place behind it in a debugger.
 */
static int read_closure_name(const struct perl_names *n, const uint64_t *words,
			     const struct statement *s, struct text *t)
{
	uint64_t name = place_of(words) & ~(uint64_t)PERL_PLACES, body, own[2];
	uint8_t head[PERL_SV_SIZE];
	struct text text = { .len = 0 };
	int r;

	if (!s->known)
		return -ENOENT;
	if (place_of(words) & PERL_PLACE_TEXT) {
		r = read_u64(n, name, &body);
		if (!r && !is_its_name(words, s, name, body))
			r = -ENOENT;
		return r ? r : append_hek(n, name, 0, t);
	}
	r = read_sv(n, name, SV_TYPE_GV, head, &body);
	if (!r)
		r = runtime_read_or_gone(n->target, body + GV_NAME, own, sizeof(own));
	if (!r)
		r = append_hek(n, own[0], 0, &text);
	if (r)
		return r;
	return is_its_name(words, s, name, own[1]) && !strncmp(text.chars, "__ANON__", 8)
		       ? append_glob(n, name, t)
		       : -ENOENT;
}

/* --- all of it ------------------------------------------------------------------------------- */

/* What the memory says of a frame now. */
static int read_frame(const struct perl_names *n, const uint64_t *words, struct text *name,
		      struct text *source, struct statement *s)
{
	uint8_t cv[PERL_CV_SIZE];
	uint64_t kind = FRAME_DATA(words[0]) >> PERL_KIND_SHIFT & ~(uint64_t)PERL_FRAME_COMPILING;
	int r = read_statement(n, words, s);

	if (!r && kind != PERL_FRAME_SUB && kind != PERL_FRAME_FORMAT && words[1] &&
	    !is_its_statement(words, s))
		r = -ENOENT;
	if (!r)
		r = read_line(n, words, s);
	if (!r)
		r = read_source(n, s, source);
	if (r)
		return r;
	switch (kind) {
	case PERL_FRAME_SUB:
	case PERL_FRAME_FORMAT:
		if (place_of(words) & PERL_PLACES)
			return read_closure_name(n, words, s, name);
		r = read_cv(n, words, s, cv);
		return r ? r : read_sub_name(n, cv, name);
	case PERL_FRAME_EVAL:
		append(name, "(eval)", strlen("(eval)"));
		return 0;
	case PERL_FRAME_SORT:
		append(name, "(sort block)", strlen("(sort block)"));
		return 0;
	case PERL_FRAME_PATTERN:
		append(name, "(pattern block)", strlen("(pattern block)"));
		return 0;
	case PERL_FRAME_DEFER:
		if (FRAME_DATA(words[0]) & 1)
			append(name, "(finally block)", strlen("(finally block)"));
		else
			append(name, "(defer block)", strlen("(defer block)"));
		return 0;
	case PERL_FRAME_MAIN:
		append(name, "(main)", strlen("(main)"));
		return 0;
	default:
		return -EINVAL;
	}
}

int perl_names_symbolize(const struct perl_names *n, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink)
{
	struct text name, source, again;
	struct statement s, now;
	int r;

	if (nr != PERL_FRAME_WORDS)
		return -EINVAL;
	name.len = source.len = 0;
	r = read_frame(n, words, &name, &source, &s);
	if (r)
		return r;
	/* What was read may be another one's, if it was made meanwhile. */
	again.len = 0;
	r = read_frame(n, words, &again, &again, &now);
	if (r || now.known != s.known || now.line != s.line)
		return r ? r : -ENOENT;
	return sink->add(sink->ctx,
			 &(struct runtime_inline_frame){ .name = name.chars,
							 .source = source.len ? source.chars : NULL,
							 .line = s.known ? s.line : 0 });
}
