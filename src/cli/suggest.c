// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 32 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters are to be changed, added, left out or swapped with their neighbour. */
static size_t distance(const char *a, size_t nr_a, const char *b, size_t nr_b)
{
	size_t row[3][WORD_MAX + 1], *before = row[0], *last = row[1], *now = row[2], *spare;

	for (size_t j = 0; j <= nr_b; j++)
		last[j] = j;
	for (size_t i = 1; i <= nr_a; i++) {
		now[0] = i;
		for (size_t j = 1; j <= nr_b; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1,
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nr_b];
}

void suggest(struct suggestion *s, const char *candidate)
{
	size_t len = strlen(candidate), d;

	if (s->len < 2 || s->len > WORD_MAX || len > WORD_MAX)
		return;
	/* A word that was cut short is as good as right. */
	d = len > s->len && !memcmp(candidate, s->word, s->len)
		    ? 1
		    : distance(s->word, s->len, candidate, len);
	if (d > (s->len + 1) / 3 || (s->best && d >= s->distance))
		return;
	s->best = candidate;
	s->distance = d;
}

void suggest_listed(struct suggestion *s, const char *candidate, char *list, size_t size)
{
	size_t len = strlen(list);

	suggest(s, candidate);
	snprintf(list + len, size - len, "%s%s", len ? ", " : "", candidate);
}

const char *suggestion_text(const struct suggestion *s, char buf[static SUGGESTION_MAX])
{
	buf[0] = '\0';
	if (s->best)
		snprintf(buf, SUGGESTION_MAX, " (did you mean '%s'?)", s->best);
	return buf;
}
