// SPDX-License-Identifier: Apache-2.0
#include "runtime/about.h"
#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAJOR_MAX = 99, MINOR_MAX = 99 };

void runtime_is_version(struct runtime_about *about, const char *fmt, ...)
{
	va_list ap;

	if (!about)
		return;
	va_start(ap, fmt);
	vsnprintf(about->version, sizeof(about->version), fmt, ap);
	va_end(ap);
	for (char *c = about->version; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

int runtime_not_supported(struct runtime_about *about, const char *why)
{
	if (about)
		snprintf(about->why, sizeof(about->why), "%s", why);
	return -ENOTSUP;
}

void runtime_about_unsupported(const struct runtime_ops *ops, const struct runtime_about *about,
			       char *ret, size_t size)
{
	char unnamed[64];

	snprintf(unnamed, sizeof(unnamed), "a runtime of %s that does not say its version",
		 ops->language);
	snprintf(ret, size, "%s is not supported (%s): %s",
		 *about->version ? about->version : unnamed,
		 *about->why ? about->why : "its version is not known",
		 about->lost ?: "only its native frames are shown");
}

/* --- lists of versions ------------------------------------------------------------------------ */

struct versions {
	const struct runtime_ops *ops;
	char *at, *end;
	bool some;
};

__attribute__((format(printf, 2, 3))) static void add(struct versions *v, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(v->at, (size_t)(v->end - v->at), fmt, ap);
	va_end(ap);
	v->at = n < v->end - v->at ? v->at + n : v->end - 1;
	v->some = true;
}

/* The last version of those that follow, without a gap, the one that is `*at`. */
static unsigned int last_minor(const struct runtime_ops *ops, unsigned int major, unsigned int at)
{
	while (at < MINOR_MAX && ops->knows(major, at + 1))
		at++;
	return at;
}

static bool is_whole(const struct runtime_ops *ops, unsigned int major)
{
	return ops->knows(major, 0) && last_minor(ops, major, 0) == MINOR_MAX;
}

static void add_minors(struct versions *v, unsigned int major)
{
	for (unsigned int minor = 0; minor <= MINOR_MAX; minor++) {
		unsigned int last;

		if (!v->ops->knows(major, minor))
			continue;
		last = last_minor(v->ops, major, minor);
		add(v, "%s%u.%u", v->some ? ", " : "", major, minor);
		if (last == MINOR_MAX)
			add(v, " and later");
		else if (last > minor)
			add(v, last == minor + 1 ? ", %u.%u" : " to %u.%u", major, last);
		minor = last;
	}
}

/* Of a runtime whose releases have one number, that is. */
static unsigned int add_whole(struct versions *v, unsigned int major)
{
	unsigned int last = major;

	while (last < MAJOR_MAX && is_whole(v->ops, last + 1))
		last++;
	add(v, "%s%u", v->some ? ", " : "", major);
	if (last == MAJOR_MAX)
		add(v, " and later");
	else if (last > major)
		add(v, last == major + 1 ? ", %u" : " to %u", last);
	return last;
}

void runtime_known_versions(const struct runtime_ops *ops, char *ret, size_t size)
{
	struct versions v = { .ops = ops, .at = ret, .end = ret + size };

	*ret = '\0';
	for (unsigned int major = 0; ops->knows && major <= MAJOR_MAX; major++) {
		if (is_whole(ops, major))
			major = add_whole(&v, major);
		else
			add_minors(&v, major);
	}
}
