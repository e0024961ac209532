/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names a frame of JavaScript: what runs there, inlined functions first. All is read at least
 * twice, since a garbage collection may move objects and give their place to others between two
 * reads.
 */
#pragma once

#include "runtime/v8/v8_alive.h"
#include "runtime/v8/v8_code.h"
#include "runtime/v8/v8_lines.h"

/* What is kept of a process. */
struct v8_frames {
	const struct runtime_target *target;
	const struct v8_layout *layout;
	const struct v8_bytecode_sizes *sizes;
	struct v8_codes codes;
	struct v8_lines lines;
	struct v8_scripts scripts;
};

void v8_frames_fini(struct v8_frames *frames);
/* `words`: the header word, and what v8_abi.h says. As runtime_ops.symbolize(). */
int v8_frame_name(struct v8_frames *frames, const uint64_t words[3],
		  const struct runtime_sink *sink);
