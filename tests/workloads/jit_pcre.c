// SPDX-License-Identifier: Apache-2.0
/*
 * Code of a JIT without frame pointers and without tables: PCRE2's, in a pattern that goes back and
 * forth for about a millisecond. Its frame pointer's register has something else.
 */
#include "workload.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static pcre2_code *pattern;
static pcre2_match_data *found;
static char text[360];

KNOWN int match_inner(void)
{
	int r = pcre2_jit_match(pattern, (PCRE2_SPTR)text, sizeof(text), 0, 0, found, NULL);

	sink++;
	return r;
}

KNOWN int match_outer(void)
{
	int r = match_inner();

	sink++;
	return r;
}

int main(int argc, char **argv)
{
	/* Each word is tried from each of its letters, and its neighbour with it. */
	static const char regex[] = "(\\w+)\\s+(?=\\w*o\\w*)(\\d+|[a-z]+)\\s*[#!]";
	PCRE2_SIZE at;
	int error;

	work_init(argc, argv);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "The quick brown fox jumps over 13 lazy dogs. "[i % 45];
	pattern = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_CASELESS, &error,
				&at, NULL);
	if (!pattern || pcre2_jit_compile(pattern, PCRE2_JIT_COMPLETE))
		return 1;
	found = pcre2_match_data_create_from_pattern(pattern, NULL);
	while (work_left())
		for (int i = 0; i < 64; i++)
			if (match_outer() != PCRE2_ERROR_NOMATCH)
				return 1;
	return 0;
}
