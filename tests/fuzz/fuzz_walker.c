// SPDX-License-Identifier: Apache-2.0
/*
 * The walker over arbitrary memory, registers, mappings, rows, rules and runtimes' records: a
 * replay case out of any bytes. It must end, with no more frames than the budget, and read nothing
 * outside.
 */
#include "fuzz.h"
#include "replay/replay_case.h"

#include <stdlib.h>

enum { CASES_MAX = 2 }; /* of an input */

static void walk(struct replay_case *c)
{
	struct replay_result r = replay_case_walk(c);
	uint32_t nr_frames = 0;

	if (r.nr_words > SAMPLE_WORDS_MAX || r.stop <= STOP_NONE || r.stop >= STOP_MAX_)
		abort();
	for (uint32_t i = 0; i < r.nr_words; i += 1 + FRAME_EXTRA(r.words[i]))
		nr_frames++;
	if (nr_frames > SAMPLE_FRAMES_MAX)
		abort();
}

FUZZER(data, size)
{
	struct replay_case *c;
	uint8_t *plain;
	const uint8_t *at;

	if (replay_cases_unpack(data, size, &plain, &size))
		return 0;
	at = plain;
	for (int i = 0; i < CASES_MAX && !replay_case_next(&at, &size, &c); i++) {
		walk(c);
		replay_case_free(c);
	}
	free(plain);
	return 0;
}
