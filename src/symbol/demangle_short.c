// SPDX-License-Identifier: Apache-2.0
/*
 * Demangled text in, the same without template arguments, parameters and return types out.
 *
 * It is one pass over the text that skips bracketed parts, since debug information has such text
 * too, and no tree of it. Which brackets are skipped is the languages' difference. "<" and ">" are
 * also operators; therefore names of operators are recognised, and inside other brackets a ">" that
 * closes nothing counts for nothing.
 */
#include "symbol/demangle_internal.h"

#include <ctype.h>
#include <string.h>

enum {
	/* Brackets within each other; more are not followed. */
	DEPTH_MAX = 512,
	/* Of a string in a name; what is longer is none. */
	LITERAL_MAX = 256,
};

struct shortener {
	const char *text, *at;
	char *buf;
	size_t size, used;
	enum symbol_language language;
	unsigned int kept; /* "<" of Rust that are shown and still open */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void put(struct shortener *s, const char *text, size_t len)
{
	size_t room = s->size - 1 - s->used;

	if (len > room)
		len = room;
	memcpy(s->buf + s->used, text, len);
	s->used += len;
}

static void copy(struct shortener *s, size_t len)
{
	put(s, s->at, len);
	s->at += len;
}

static char before(const struct shortener *s)
{
	return s->at > s->text ? s->at[-1] : '\0';
}

static bool begins(const char *at, const char *with)
{
	return !strncmp(at, with, strlen(with));
}

/* The end of a character or string literal that begins at `at`; `at` + 1 if it is none. */
static const char *literal_end(const char *at)
{
	const char *p = at + 1;

	while (*p && *p != *at && p - at < LITERAL_MAX) {
		if (*p == '\\' && p[1])
			p++;
		p++;
	}
	/* 'x' and '\n' are characters, but 'lambda', Rust's 'a and the like are not. */
	if (*p != *at || (*at == '\'' && p - at > 2 && at[1] != '\\'))
		return at + 1;
	return p + 1;
}

/* How long the operator's sign is that stands at `at`, if it contains brackets; at most `limit`. */
static size_t sign_len(const char *at, size_t limit)
{
	static const char *const signs[] = { "<<=", ">>=", "<=>", "->*", "()", "[]", "->",
					     "<<",  ">>",  "<=",  ">=",	 "<",  ">" };

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (strlen(signs[i]) <= limit && begins(at, signs[i]))
			return strlen(signs[i]);
	return 0;
}

static bool at_operator(const struct shortener *s, const char *at)
{
	return s->language == SYMBOL_LANGUAGE_CPP && begins(at, "operator") && !is_word(at[8]) &&
	       (at == s->text || !is_word(at[-1]));
}

/* The end of the bracket that opens at `at`, or NULL. */
static const char *bracket_end(const struct shortener *s, const char *at)
{
	char open[DEPTH_MAX];
	size_t depth = 0;

	for (const char *p = at; *p; p++) {
		if (at_operator(s, p)) {
			p += 7 + sign_len(p + 8, 3);
			continue;
		}
		switch (*p) {
		case '"':
		case '\'':
			p = literal_end(p) - 1;
			break;
		case '-':
			p += p[1] == '>';
			break;
		case '<':
		case '(':
		case '[':
		case '{':
			if (depth == DEPTH_MAX)
				return NULL;
			open[depth++] = *p;
			break;
		case '>':
			if (open[depth - 1] == '<')
				depth--;
			break;
		case ')':
		case ']':
		case '}':
			/* A "<" that is still open in there was an operator. */
			while (depth && open[depth - 1] == '<')
				depth--;
			if (!depth || open[depth - 1] != (*p == ')' ? '(' : *p == ']' ? '[' : '{'))
				return NULL;
			depth--;
			break;
		}
		if (!depth)
			return p + 1;
	}
	return NULL;
}

static bool skip(struct shortener *s)
{
	const char *end = bracket_end(s, s->at);

	if (end)
		s->at = end;
	return end;
}

/* --- C++ -------------------------------------------------------------------------------------- */

/* Behind parameters: "const", "&", "noexcept". */
static void skip_qualifiers(struct shortener *s)
{
	static const char *const words[] = { " const", " volatile", " restrict", " &&",
					     " &",     " noexcept", " throw()" };
	size_t i;

	do {
		for (i = 0; i < sizeof(words) / sizeof(*words); i++)
			if (begins(s->at, words[i]) && !is_word(s->at[strlen(words[i])]))
				break;
		if (i < sizeof(words) / sizeof(*words))
			s->at += strlen(words[i]);
	} while (i < sizeof(words) / sizeof(*words));
}

/*
 * "operator" and its sign. Written without a space, "<<int>" may be a "<" and its arguments: then
 * the brackets behind the longer sign don't match.
 */
static void copy_operator(struct shortener *s)
{
	size_t len;

	copy(s, 8);
	len = sign_len(s->at, 3);
	if (len > 1 && (*s->at == '<' || *s->at == '>')) {
		const char *rest = s->at + len;

		rest += strspn(rest, " ");
		if (*rest && *rest != '<' && *rest != '(' && *rest != ' ' && is_word(*rest))
			len = 1;
	}
	copy(s, len);
	if (len && begins(s->at, " <"))
		s->at++;
}

static bool shorten_cxx(struct shortener *s)
{
	while (*s->at) {
		char c = *s->at, last = before(s);
		bool inner = last && last != ':' && last != ' ';

		if (at_operator(s, s->at)) {
			copy_operator(s);
			if (*s->at == '<' && !skip(s))
				return false;
		} else if (c == '<' && inner) {
			if (!skip(s))
				return false;
		} else if (c == '<' && begins(s->at, "<lambda")) {
			copy(s, 7); /* GCC's "<lambda(int)>"; its parameters follow */
		} else if (c == '(' && inner) {
			if (!skip(s))
				return false;
			skip_qualifiers(s);
		} else if (c == '(' || c == '<') {
			const char *end = bracket_end(s, s->at);

			if (!end)
				return false;
			copy(s, (size_t)(end - s->at)); /* "(anonymous namespace)" */
		} else {
			copy(s, 1);
		}
	}
	return true;
}

/* --- Rust ------------------------------------------------------------------------------------- */

/* "<A as B>::f" and "<impl A>" say whose function it is; other angles are arguments. */
static bool rust_angle_is_kept(const struct shortener *s)
{
	char last = before(s);

	if (last == ':')
		return begins(s->at, "<impl ");
	return !is_word(last) && last != '}' && last != '>' && last != ']';
}

/* "<foo::Bar>::baz": the angles are needed for nothing. */
static void unwrap(struct shortener *s)
{
	size_t i = 1;

	if (!s->used || s->buf[0] != '<')
		return;
	while (i < s->used && (is_word(s->buf[i]) || strchr(":{}#", s->buf[i])))
		i++;
	if (i >= s->used || s->buf[i] != '>')
		return;
	memmove(s->buf, s->buf + 1, i - 1);
	memmove(s->buf + i - 1, s->buf + i + 1, s->used - i - 1);
	s->used -= 2;
}

static bool shorten_rust(struct shortener *s)
{
	while (*s->at) {
		if (begins(s->at, "->")) {
			copy(s, 2);
		} else if (*s->at == '<' && rust_angle_is_kept(s)) {
			s->kept++;
			copy(s, 1);
		} else if (*s->at == '<') {
			if (s->used >= 2 && before(s) == ':')
				s->used -= 2;
			if (!skip(s))
				return false;
		} else {
			if (*s->at == '>' && !s->kept--)
				return false;
			copy(s, 1);
		}
	}
	if (s->kept)
		return false;
	unwrap(s);
	return true;
}

/* --- D, Go ------------------------------------------------------------------------------------ */

static bool shorten_d(struct shortener *s)
{
	while (*s->at) {
		if (begins(s->at, "!(")) {
			s->at++;
			if (!skip(s))
				return false;
		} else if (*s->at == '(' && (is_word(before(s)) || before(s) == ')')) {
			if (!skip(s))
				return false;
		} else {
			copy(s, 1);
			continue;
		}
		/* What follows parameters: " const", " shared". */
		while (*s->at == ' ' && islower((unsigned char)s->at[1]))
			s->at += 1 + strcspn(s->at + 1, " .");
	}
	return true;
}

static bool shorten_go(struct shortener *s)
{
	while (*s->at) {
		if (*s->at == '[' && is_word(before(s))) {
			if (!skip(s))
				return false;
			put(s, "[...]", 5); /* as Go's runtime prints it */
		} else {
			copy(s, 1);
		}
	}
	return true;
}

bool demangle_shorten(const char *text, enum symbol_language language, char *buf, size_t size)
{
	struct shortener s = {
		.text = text, .at = text, .buf = buf, .size = size, .language = language
	};
	bool ok;

	switch (language) {
	case SYMBOL_LANGUAGE_CPP:
		ok = shorten_cxx(&s);
		break;
	case SYMBOL_LANGUAGE_RUST:
		ok = shorten_rust(&s);
		break;
	case SYMBOL_LANGUAGE_D:
		ok = shorten_d(&s);
		break;
	case SYMBOL_LANGUAGE_GO:
		ok = shorten_go(&s);
		break;
	default:
		ok = false;
	}
	if (!ok || !s.used)
		return false;
	buf[s.used] = '\0';
	return true;
}
