// SPDX-License-Identifier: Apache-2.0
/*
 * What kind of mangling a name has, and libiberty to undo it.
 *
 * A short mangled name can stand for an endless one, since it may refer to its own parts again and
 * again. libiberty bounds the depth, not the length. So its output is taken piecewise, and the
 * demangler left by longjmp() once the buffer is full: for C++ and Rust it holds nothing then but
 * its stack. The D demangler builds its result on the heap, therefore how long that may get is
 * estimated first.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	D_READ_MAX = 1 << 20,
	RUST_LIFETIMES_MAX = 1 << 20,
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

static bool run(demangler_fn *demangler, const char *name, char *buf, size_t size)
{
	struct output out = { .buf = buf, .size = size };

	if (!setjmp(out.full) && !demangler(name, DMGL_PARAMS | DMGL_ANSI, write_piece, &out))
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
static void append_clones(const char *clones, char *buf, size_t size)
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
		append_clones(end, buf, size);
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
	return rust_is_bounded(name) && run(rust_demangle_callback, name, buf, size);
}

static bool demangle_cxx(const char *name, char *buf, size_t size)
{
	return run(cplus_demangle_v3_callback, name, buf, size);
}

static bool demangle_any(const char *name, char *buf, size_t size)
{
	const char *dot = strchrnul(name, '.'), *end;

	if (name[1] == 'R')
		return demangle_stem(demangle_rust, name, dot, buf, size);
	if (name[1] == 'D')
		return demangle_stem(demangle_d, name, dot, buf, size);
	end = legacy_rust_end(name);
	if (end && demangle_stem(demangle_rust, name, end, buf, size))
		return true;
	/*
	 * It knows clones itself, and which dots are none: GCC has some inside the names of local
	 * types. But "foo.1cold" it takes for no name at all.
	 */
	return demangle_cxx(name, buf, size) ||
	       (*dot && demangle_stem(demangle_cxx, name, dot, buf, size));
}

const char *demangle(const char *name, char *buf, size_t size)
{
	if (!size)
		return buf;
	if (name[0] != '_' || !name[1] || !strchr("ZRD", name[1]) ||
	    strnlen(name, DEMANGLE_NAME_MAX + 1) > DEMANGLE_NAME_MAX ||
	    !demangle_any(name, buf, size))
		snprintf(buf, size, "%s", name);
	return buf;
}
