// SPDX-License-Identifier: Apache-2.0
#include "unwinder/raw_walk.h"
#include "unwinder/host_walk.h"

#include <elf.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#endif

int raw_walk(struct publisher *p, const struct mapping_snapshot *snapshot,
	     const struct sample_raw *raw, const struct stack_copy *stack, int32_t pid,
	     bool is_final, uint32_t max_frames, struct walk *walk)
{
	struct copied_memory copied = {
		.stack = *stack,
		.code_start = raw->pc - RAW_CODE_BEFORE,
		.code_size = sizeof(raw->code),
		.code = raw->code,
		.pid = pid,
		.publisher = p,
		.snapshot = snapshot,
	};
	const struct walk_memory memory = { .read = copied_memory_read,
					    .ctx = &copied,
					    .read_stack = copied_memory_read_stack };
	struct walk_input input = {
		.machine = HOST_MACHINE,
		.pc = raw->pc,
		.regs = raw->regs,
		.process = publisher_entry(snapshot, raw->mm),
		.max_frames = max_frames,
		.late = true,
	};

	input.process.flags |= is_final ? PROCESS_MAPPINGS_FINAL : 0;
	return copied_memory_stop(&copied, host_walk(p, &memory, &input, walk));
}

int raw_walk_reason(const struct sample_raw *raw, int stop)
{
	return stop == STOP_STACK_COPY_END && raw->is_short ? STOP_NO_PROCESS : stop;
}
