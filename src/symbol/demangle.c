// SPDX-License-Identifier: Apache-2.0
/*
 * What kind of mangling a name has, and libiberty to undo it; demangle_short.c shortens what comes
 * out, swift/ is for Swift.
 *
 * A short mangled name can stand for an endless one, since it may refer to its own parts again and
 * again. libiberty bounds the depth, not the length: its output is taken piecewise, and the
 * demangler left by longjmp() once the buffer is full: for C++ and Rust it holds nothing then but
 * its stack. The D demangler builds its result on the heap, therefore how long that may get is
 * estimated first.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle_internal.h"
#include "symbol/swift/swift.h"

enum {
	D_READ_MAX = 1 << 20,
	RUST_LIFETIMES_MAX = 1 << 20,
	/* libiberty's own limit: 2,048 parts, of which it expects two a byte. */
	CXX_SIMPLE_MAX = 1024,
	/*
	 * For longer names: its parts and its recursion took at most 260 bytes a byte.
	 */
	CXX_STACK_PER_BYTE = 2 << 10,
	/* Each doubles the time. */
	CXX_TRIALS_MAX = 7,
	/* Suffixes like ".cold" of one name that is shortened. */
	CLONES_MAX = 16,
	/* Of a full name that is to be shortened. */
	FULL_SIZE = 256 << 10,
};

struct output {
	char *buf;
	size_t size, used;
	jmp_buf full;
};

static void write_piece(const char *piece, size_t len, void *ctx)
{
	struct output *out = ctx;
	size_t room = out->size - 1 - out->used;
	size_t take = len < room ? len : room;

	if (take) /* libiberty prints nothing out of NULL */
		memcpy(out->buf + out->used, piece, take);
	out->used += take;
	if (take == len)
		return;
	/*
	 * The one piece that the Rust demangler has on the heap is a decoded identifier, which is
	 * never plain ASCII; the next piece will do.
	 */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)piece[i] >= 0x80)
			return;
	longjmp(out->full, 1);
}

typedef int demangler_fn(const char *name, int options, demangle_callbackref write, void *ctx);

static bool run(demangler_fn *demangler, const char *name, int options, char *buf, size_t size)
{
	struct output out = { .buf = buf, .size = size };

	if (!setjmp(out.full) && !demangler(name, options, write_piece, &out))
		return false;
	out.buf[out.used] = '\0';
	return true;
}

/* --- D ---------------------------------------------------------------------------------------- */

/* Where the back reference "Q" at `at` leads to: base 26, the last digit a small letter. */
static size_t d_goal(const char *name, size_t at)
{
	size_t back = 0, i;

	for (i = at + 1; name[i] >= 'A' && name[i] <= 'Z' && back <= at; i++)
		back = back * 26 + (size_t)(name[i] - 'A');
	if (name[i] >= 'a' && name[i] <= 'z')
		back = back * 26 + (size_t)(name[i] - 'a');
	return back <= at ? at - back : at;
}

/*
 * An upper bound of how much the demangler reads in all: a reference to a type leads at most
 * through all that is between, one to an identifier only to its own letters.
 */
static bool d_is_bounded(const char *name)
{
	size_t len = strlen(name), goal, letters, i;
	bool ok = true;
	uint64_t *cost = calloc(len + 1, sizeof(*cost));

	if (!cost)
		return false;
	for (i = 0; i < len && ok; i++) {
		cost[i + 1] = cost[i] + 1;
		if (name[i] != 'Q')
			continue;
		goal = d_goal(name, i);
		letters = strtoul(name + goal, NULL, 10);
		if (name[goal] >= '0' && name[goal] <= '9')
			cost[i + 1] += letters < len ? letters : len;
		else
			cost[i + 1] += cost[i] - cost[goal];
		ok = cost[i + 1] < D_READ_MAX;
	}
	free(cost);
	return ok;
}

/*
 * libiberty's two end the process when there is no memory. These leave its D demangler, the one
 * user, and lose what it holds then.
 */
static _Thread_local jmp_buf no_memory;

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		longjmp(no_memory, 1);
	return p;
}

void *xrealloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		longjmp(no_memory, 1);
	return p;
}

static bool demangle_d(const char *name, char *buf, size_t size)
{
	char *result;

	if (!d_is_bounded(name) || setjmp(no_memory))
		return false;
	result = dlang_demangle(name, DMGL_PARAMS);
	if (!result)
		return false;
	snprintf(buf, size, "%s", result);
	free(result);
	return true;
}

/* --- kinds ------------------------------------------------------------------------------------ */

static bool is_lower_hex(const char *p, size_t len)
{
	return strspn(p, "0123456789abcdef") >= len;
}

/* The end of "_ZN...17h<16 digits>E", NULL if it is none. */
static const char *legacy_rust_end(const char *name)
{
	const char *p = name;

	if (strncmp(name, "_ZN", 3))
		return NULL;
	while ((p = strstr(p, "17h"))) {
		p += 3;
		if (is_lower_hex(p, 16) && p[16] == 'E' && (!p[17] || p[17] == '.'))
			return p + 17;
	}
	return NULL;
}

/* Appends " [clone .part.0] [clone .cold]" for ".part.0.cold": a new one begins at a letter. */
void demangle_append_clones(const char *clones, char *buf, size_t size)
{
	size_t used = strlen(buf);

	while (*clones && used < size) {
		size_t len = 1 + strcspn(clones + 1, ".");

		while (clones[len] == '.' && clones[len + 1] >= '0' && clones[len + 1] <= '9')
			len += 1 + strcspn(clones + len + 1, ".");
		used += (size_t)snprintf(buf + used, size - used, " [clone %.*s]", (int)len,
					 clones);
		clones += len;
	}
}

/* `name` up to `end` by one demangler, and as clones of it what follows. */
static bool demangle_stem(bool (*demangler)(const char *, char *, size_t), const char *name,
			  const char *end, char *buf, size_t size)
{
	char *stem = strndup(name, (size_t)(end - name));
	bool ok = stem && demangler(stem, buf, size);

	if (ok)
		demangle_append_clones(end, buf, size);
	free(stem);
	return ok;
}

/*
 * A binder ("for<'a, 'b>", G and their number) is a loop of libiberty's that also runs where it
 * prints nothing, and so can't be left. It stands only behind F or D; that these letters may be a
 * part of an identifier costs a few of them their demangling.
 */
static bool rust_is_bounded(const char *name)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *p = name, *digit;
	uint64_t all = 0, nr;

	while ((p = strchr(p + 1, 'G'))) {
		if (p[-1] != 'F' && p[-1] != 'D')
			continue;
		nr = 0;
		for (size_t i = 1; p[i] && (digit = strchr(digits, p[i])); i++)
			if (nr < RUST_LIFETIMES_MAX)
				nr = nr * 62 + (uint64_t)(digit - digits) + 1;
		if (p[1 + strspn(p + 1, digits)] == '_')
			all += nr;
		if (all >= RUST_LIFETIMES_MAX)
			return false;
	}
	return true;
}

static bool demangle_rust(const char *name, char *buf, size_t size)
{
	return rust_is_bounded(name) &&
	       run(rust_demangle_callback, name, DMGL_PARAMS | DMGL_ANSI, buf, size);
}

/* --- C++ -------------------------------------------------------------------------------------- */

/*
 * Behind a conversion to a template parameter ("cvT_I...E"), whether the arguments are the type's
 * or the operator's is found out by trying, which takes the time twice; one in the other, four
 * times.
 */
static bool cxx_is_bounded(const char *name)
{
	unsigned int trials = 0;

	if (!strstr(name, "cv"))
		return true;
	for (const char *p = name; (p = strchr(p, 'T'));) {
		p++;
		p += strspn(p, "0123456789");
		trials += p[0] == '_' && p[1] == 'I';
	}
	return trials <= CXX_TRIALS_MAX;
}

struct cxx_job {
	const char *name;
	int options;
	char *buf;
	size_t size;
	bool ok;
};

static void *run_cxx_job(void *arg)
{
	struct cxx_job *job = arg;

	job->ok = run(cplus_demangle_v3_callback, job->name, job->options | DMGL_NO_RECURSE_LIMIT,
		      job->buf, job->size);
	return NULL;
}

/* Beyond its limit the demangler's stack must be as long as the name wants it. */
static bool run_with_stack(struct cxx_job *job)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool ok;

	if (pthread_attr_init(&attr))
		return false;
	ok = !pthread_attr_setstacksize(&attr, strlen(job->name) * CXX_STACK_PER_BYTE) &&
	     !pthread_create(&thread, &attr, run_cxx_job, job);
	pthread_attr_destroy(&attr);
	if (ok)
		pthread_join(thread, NULL);
	return ok && job->ok;
}

static bool run_cxx(const char *name, int options, char *buf, size_t size)
{
	struct cxx_job job = { .name = name, .options = options, .buf = buf, .size = size };

	if (!cxx_is_bounded(name))
		return false;
	if (strlen(name) > CXX_SIMPLE_MAX)
		return run_with_stack(&job);
	return run(cplus_demangle_v3_callback, name, options, buf, size);
}

static bool demangle_cxx(const char *name, char *buf, size_t size)
{
	return run_cxx(name, DMGL_PARAMS | DMGL_ANSI, buf, size);
}

/* The name alone: no return type either. It must be known to be valid. */
static bool demangle_cxx_name(const char *name, char *buf, size_t size)
{
	return run_cxx(name, DMGL_ANSI, buf, size);
}

/* --- in full ---------------------------------------------------------------------------------- */

/* ret_language: of what came out. */
static bool demangle_full(const char *name, char *buf, size_t size,
			  enum symbol_language *ret_language)
{
	const char *dot = strchrnul(name, '.'), *end;

	*ret_language = name[1] == 'D' ? SYMBOL_LANGUAGE_D : SYMBOL_LANGUAGE_RUST;
	if (name[1] == 'R')
		return demangle_stem(demangle_rust, name, dot, buf, size);
	if (name[1] == 'D')
		return demangle_stem(demangle_d, name, dot, buf, size);
	end = legacy_rust_end(name);
	if (end && demangle_stem(demangle_rust, name, end, buf, size))
		return true;
	*ret_language = SYMBOL_LANGUAGE_CPP;
	/*
	 * It knows clones itself, and which dots are none: GCC has some inside the names of local
	 * types. But "foo.1cold" it takes for no name at all.
	 */
	return demangle_cxx(name, buf, size) ||
	       (*dot && demangle_stem(demangle_cxx, name, dot, buf, size));
}

/* --- short ------------------------------------------------------------------------------------ */

/* The end of what is a C++ name without the clones behind it. */
static const char *cxx_stem_end(const char *name)
{
	const char *dot = name;
	char piece[8];

	for (unsigned int i = 0; i < CLONES_MAX && (dot = strchr(dot + 1, '.')); i++) {
		char *stem = strndup(name, (size_t)(dot - name));
		bool ok = stem && demangle_cxx(stem, piece, sizeof(piece));

		free(stem);
		if (ok)
			return dot;
	}
	return name + strlen(name);
}

/* By shortening what is demangled in full; for C++ without what is outermost. */
static bool demangle_short(const char *name, char *buf, size_t size)
{
	enum symbol_language language;
	char *full = malloc(FULL_SIZE);
	bool ok = full && demangle_full(name, full, FULL_SIZE, &language);

	if (ok && language == SYMBOL_LANGUAGE_CPP)
		ok = demangle_stem(demangle_cxx_name, name, cxx_stem_end(name), full, FULL_SIZE);
	ok = ok && demangle_shorten(full, language, buf, size);
	free(full);
	return ok;
}

/* --- names that are not mangled --------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Go's linker writes as "%xx" what is special in an import path: dots of its last element, quotes,
 * percents, blanks and whatever is not ASCII (cmd/internal/objabi, PathToPrefix).
 */
static void unescape(char *name)
{
	char *to = name;

	for (const char *p = name; *p; p++) {
		int high = *p == '%' ? hex_digit(p[1]) : -1;
		int low = high >= 0 ? hex_digit(p[2]) : -1;
		int c = low >= 0 ? high * 16 + low : 0;

		if (c == '.' || c == '%' || c == '"' || c == ' ' || c >= 0x80) {
			*to++ = (char)c;
			p += 2;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
}

static void write_plain(const char *name, enum symbol_language language, enum demangle_style style,
			char *buf, size_t size)
{
	if (language == SYMBOL_LANGUAGE_UNKNOWN && strstr(name, "[go.shape."))
		language = SYMBOL_LANGUAGE_GO;
	if (style != DEMANGLE_SHORT || !demangle_shorten(name, language, buf, size))
		snprintf(buf, size, "%s", name);
	if (language == SYMBOL_LANGUAGE_GO || language == SYMBOL_LANGUAGE_UNKNOWN)
		unescape(buf);
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && name[1] && strchr("ZRD", name[1]) &&
	       strnlen(name, DEMANGLE_NAME_MAX + 1) <= DEMANGLE_NAME_MAX;
}

const char *demangle_name(const char *name, enum symbol_language language,
			  enum demangle_style style, char *buf, size_t size)
{
	enum symbol_language found;
	const char *suffix;

	if (!size)
		return buf;
	if (swift_demangle(name, style == DEMANGLE_SHORT, buf, size, &suffix)) {
		demangle_append_clones(suffix, buf, size);
		return buf;
	}
	if (!is_mangled(name))
		write_plain(name, language, style, buf, size);
	else if ((style != DEMANGLE_SHORT || !demangle_short(name, buf, size)) &&
		 !demangle_full(name, buf, size, &found))
		snprintf(buf, size, "%s", name);
	return buf;
}

const char *demangle(const char *name, char *buf, size_t size)
{
	return demangle_name(name, SYMBOL_LANGUAGE_UNKNOWN, DEMANGLE_FULL, buf, size);
}
