// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/PID/maps by hand: big processes have tens of thousands of lines.
 *
 *	start-end perms offset major:minor inode   path
 *
 * In: text that may be cut anywhere or be junk. Out: one call for each line that makes sense.
 */
#include "process/maps.h"

#include <limits.h>
#include <string.h>

struct cursor {
	const char *p, *end;
};

static bool parse_number(struct cursor *c, unsigned int base, uint64_t *ret)
{
	const char *begin = c->p;
	uint64_t value = 0;

	for (; c->p < c->end; c->p++) {
		unsigned int digit = (unsigned char)*c->p;

		if (digit - '0' <= 9)
			digit -= '0';
		else if (base == 16 && digit - 'a' <= 5)
			digit -= 'a' - 10;
		else
			break;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (c->p == begin)
		return false;
	*ret = value;
	return true;
}

static bool parse_char(struct cursor *c, char expected)
{
	if (c->p == c->end || *c->p != expected)
		return false;
	c->p++;
	return true;
}

static bool parse_flag(struct cursor *c, char yes, char no, bool *ret)
{
	if (c->p == c->end || (*c->p != yes && *c->p != no))
		return false;
	*ret = *c->p++ == yes;
	return true;
}

static bool parse_device(struct cursor *c, struct maps_entry *e)
{
	uint64_t major, minor;

	if (!parse_number(c, 16, &major) || !parse_char(c, ':') || !parse_number(c, 16, &minor))
		return false;
	e->dev_major = (uint32_t)major;
	e->dev_minor = (uint32_t)minor;
	return major <= UINT32_MAX && minor <= UINT32_MAX;
}

static bool parse_fields(struct cursor *c, struct maps_entry *e)
{
	return parse_number(c, 16, &e->start) && parse_char(c, '-') &&
	       parse_number(c, 16, &e->end) && parse_char(c, ' ') &&
	       parse_flag(c, 'r', '-', &e->read) && parse_flag(c, 'w', '-', &e->write) &&
	       parse_flag(c, 'x', '-', &e->exec) && parse_flag(c, 's', 'p', &e->shared) &&
	       parse_char(c, ' ') && parse_number(c, 16, &e->offset) && parse_char(c, ' ') &&
	       parse_device(c, e) && parse_char(c, ' ') && parse_number(c, 10, &e->inode) &&
	       (c->p == c->end || *c->p == ' ') && e->start < e->end;
}

/*
 * The kernel escapes a newline as \012 and nothing else, not even the backslash: any other sequence
 * is part of the name. (seq_path(m, path, "\n") in show_map_vma().)
 */
static size_t unescape(char *path, size_t len)
{
	const char *from = memchr(path, '\\', len), *end = path + len;
	char *to = path + (from ? from - path : (ptrdiff_t)len);

	if (!from)
		return len;
	while (from < end) {
		if (end - from >= 4 && !memcmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return (size_t)(to - path);
}

static void take_path(struct cursor *c, char *path, size_t cap, struct maps_entry *e)
{
	static const char deleted[] = " (deleted)", too_long[] = "//toolong";
	const size_t deleted_len = sizeof(deleted) - 1;
	size_t len;

	while (c->p < c->end && *c->p == ' ')
		c->p++;
	len = (size_t)(c->end - c->p);
	e->path = path;
	e->deleted = false;
	if (len >= cap) {
		/* The kernel's own word for it, in its mmap events. */
		memcpy(path, too_long, sizeof(too_long));
		return;
	}
	memcpy(path, c->p, len);
	path[len] = '\0';
	len = unescape(path, len);
	if (len > deleted_len && !memcmp(path + len - deleted_len, deleted, deleted_len)) {
		path[len - deleted_len] = '\0';
		e->deleted = true;
	}
}

int maps_parse(const char *text, size_t size,
	       int (*each)(void *ctx, const struct maps_entry *entry), void *ctx)
{
	const char *end = text + size, *line_end;
	char path[2 * PATH_MAX];

	for (const char *line = text; line < end; line = line_end + 1) {
		struct maps_entry entry = { 0 };
		struct cursor c;
		int r;

		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end)
			line_end = end;
		c = (struct cursor){ line, line_end };
		if (!parse_fields(&c, &entry))
			continue;
		take_path(&c, path, sizeof(path), &entry);
		r = each(ctx, &entry);
		if (r)
			return r;
	}
	return 0;
}
