/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": of all the words that there are, the one that a mistyped word is closest to.
 */
#pragma once

#include <stddef.h>

struct suggestion {
	const char *word; /* as typed, `len` bytes of it */
	size_t len;
	const char *best; /* NULL: none is close */
	size_t distance;  /* of `best` */
};

/* Call it with each word that could have been meant, `s` with word and length to begin with. */
void suggest(struct suggestion *s, const char *candidate);

/* suggest(), of a word that a list of them, "one, two", gets. */
void suggest_listed(struct suggestion *s, const char *candidate, char *list, size_t size);

enum { SUGGESTION_MAX = 64 };

/* " (did you mean 'WORD'?)", or "" if nothing is close. */
const char *suggestion_text(const struct suggestion *s, char buf[static SUGGESTION_MAX]);
