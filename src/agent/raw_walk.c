// SPDX-License-Identifier: Apache-2.0
#include "agent/raw_walk.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#endif

/*
 * How far above its copy a stack may go on. Not further than it can: libraries, and what their
 * runtimes' steps read, are often mapped right above a thread's stack.
 */
enum { STACK_MORE = 8 << 20, STACK_MORE_OF_WHOLE = 64 << 10 };

struct copied_memory {
	const struct sample_raw *raw;
	const uint8_t *stack;
	int32_t pid;	/* whose other memory may be read; 0: nobody's */
	bool past_copy; /* a read went on above the copy: it ends for lack of room, or at an
			   untouched page */
};

static int read_copied(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct copied_memory *m = ctx;
	const struct sample_raw *raw = m->raw;
	uint64_t in_stack = addr - raw->stack_start, in_code = addr - (raw->pc - RAW_CODE_BEFORE);
	/* A copy that is not full ended where the stack does, or at an untouched page. */
	uint64_t more = raw->stack_size < RAW_STACK_MAX ? STACK_MORE_OF_WHOLE : STACK_MORE;

	if (in_stack < raw->stack_size && size <= raw->stack_size - in_stack) {
		memcpy(to, m->stack + in_stack, size);
		return 0;
	}
	if (in_code < sizeof(raw->code) && size <= sizeof(raw->code) - in_code) {
		memcpy(to, raw->code + in_code, size);
		return 0;
	}
	if (in_stack < raw->stack_size + more)
		m->past_copy = true;
	else if (m->pid)
		return process_read_memory(m->pid, addr, to, size);
	return -EFAULT;
}

int raw_walk(struct publisher *p, const struct block *block, const struct sample_raw *raw,
	     const uint8_t *bytes, int32_t pid, uint32_t max_frames, struct walk *walk)
{
	struct copied_memory copied = { .raw = raw,
					.stack = bytes + raw->nr_kernel * 8,
					.pid = block->nr_records ? pid : 0 };
	const struct walk_memory memory = { read_copied, &copied };
	const struct walk_tables tables = {
		.files = p->store->files,
		.nr_files = UNWIND_FILES_MAX,
		.rules = p->store->rules,
		.nr_rules = UNWIND_RULES_MAX,
		.segments = p->store->segments,
		.nr_segments = ARENA_SEGMENTS_MAX,
	};
	const struct walk_input input = {
		.machine = HOST_MACHINE,
		.pc = raw->pc,
		.regs = raw->regs,
		.process = publisher_entry(block, 0),
		.max_frames = max_frames,
		.late = true,
	};
	int stop;

	do {
		copied.past_copy = false;
		stop = walk_host(&tables, &memory, &input, walk);
		/* Each turn loads one file's table, so that this ends. */
	} while (stop == STOP_FILE_PENDING &&
		 publisher_load(p, walk->mapping_file) == FILE_STATE_LOADED);
	if (copied.past_copy && (stop == STOP_STACK_UNREADABLE || stop == STOP_FRAME_POINTER))
		stop = STOP_STACK_COPY_END;
	return stop;
}
