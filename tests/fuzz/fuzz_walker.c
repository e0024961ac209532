// SPDX-License-Identifier: Apache-2.0
/*
 * The walker over arbitrary memory, registers, mappings, rows, rules and runtimes' records: a
 * replay case out of any bytes. It must end, with no more frames than the budget, and read nothing
 * outside.
 */
#include "agent/replay_case.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replay_case *c;
	struct replay_result r;
	uint32_t nr_frames = 0;

	if (replay_case_read(data, size, &c))
		return 0;
	r = replay_case_walk(c);
	if (r.nr_words > SAMPLE_WORDS_MAX || r.stop <= STOP_NONE || r.stop >= STOP_MAX_)
		abort();
	for (uint32_t i = 0; i < r.nr_words; i += 1 + FRAME_EXTRA(r.words[i]))
		nr_frames++;
	if (nr_frames > SAMPLE_FRAMES_MAX)
		abort();
	replay_case_free(c);
	return 0;
}
