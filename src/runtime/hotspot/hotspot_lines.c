/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/hotspot/hotspot_lines.h"

#include "runtime/hotspot/hotspot_scopes.h"

#include <errno.h>

enum { END = 0, ESCAPE = 0xff, U2_MAX = 0xffff };

struct line_stream {
	const uint8_t *data;
	size_t size, pos;
	bool no_zero;
	int64_t bci, line;
};

static int read_signed(struct line_stream *s, int32_t *ret)
{
	uint32_t n;
	int r = hotspot_read_unsigned5(s->data, s->size, s->no_zero, &s->pos, &n);

	if (r < 0)
		return r;
	*ret = (int32_t)(n >> 1) ^ -(int32_t)(n & 1);
	return 0;
}

/* 1: s->bci and s->line are the next entry's; 0: the end. */
static int next_entry(struct line_stream *s)
{
	int32_t bci, line;
	uint8_t byte;
	int r;

	if (s->pos >= s->size)
		return -EINVAL;
	byte = s->data[s->pos++];
	if (byte == END)
		return 0;
	if (byte == ESCAPE) {
		r = read_signed(s, &bci);
		if (r < 0)
			return r;
		r = read_signed(s, &line);
		if (r < 0)
			return r;
	} else {
		bci = byte >> 3;
		line = byte & 7;
	}
	s->bci += bci;
	s->line += line;
	/* Both are two bytes in a class file. */
	if (s->bci < 0 || s->bci > U2_MAX || s->line < 0 || s->line > U2_MAX)
		return -EINVAL;
	return 1;
}

int hotspot_find_line(const void *table, size_t size, bool no_zero, int32_t bci,
		      struct hotspot_line *ret)
{
	struct line_stream s = { .data = table, .size = size, .no_zero = no_zero };
	int64_t wanted = bci == -1 ? 0 : bci, best_bci = -1;
	uint32_t line = 0, start_line = 0;
	bool exact = false;
	int r;

	/* Neither sorted nor unique: the first entry at the bytecode counts, else the last of the
	 * nearest before it (Method::line_number_from_bci). */
	while ((r = next_entry(&s)) > 0) {
		if (s.line && (!start_line || s.line < start_line))
			start_line = (uint32_t)s.line;
		if (exact || s.bci > wanted || s.bci < best_bci)
			continue;
		exact = s.bci == wanted;
		best_bci = s.bci;
		line = (uint32_t)s.line;
	}
	if (r < 0)
		return r;
	ret->line = line;
	ret->start_line = start_line;
	return 0;
}
