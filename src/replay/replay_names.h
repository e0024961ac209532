/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that runtimes give to the frames of a replay case, as text: a line an inline frame, "N
 * name TAB source TAB the function's line TAB line", N being the number of the frame's first word.
 * A frame that gets no name is "N" and the errno's number. A label is "N label key TAB text".
 */
#pragma once

#include "replay/replay_case.h"
#include "runtime/runtime.h"

/* `procs` by runtime; NULL: their frames are left out. *ret is the caller's. 0 or -ENOMEM. */
int replay_names(struct runtime_proc *const procs[RUNTIME_MAX_], const __u64 *words,
		 uint32_t nr_words, char **ret);
