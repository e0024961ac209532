// SPDX-License-Identifier: Apache-2.0
#include "agent/host_walk.h"

#include <errno.h>
#include <string.h>

int host_walk(struct publisher *p, const struct walk_memory *memory, const struct walk_input *input,
	      struct walk *state)
{
	const struct walk_tables tables = {
		.files = p->store->files,
		.nr_files = UNWIND_FILES_MAX,
		.rules = p->store->rules,
		.nr_rules = UNWIND_RULES_MAX,
		.segments = p->store->segments,
		.nr_segments = ARENA_SEGMENTS_MAX,
	};
	int stop;

	do {
		stop = walk_host(&tables, memory, input, state);
		/* Each turn loads one file's table, so that this ends. */
	} while (stop == STOP_FILE_PENDING &&
		 publisher_load(p, state->mapping_file) == FILE_STATE_LOADED);
	return stop;
}

/* Further up than that is no stack's address. */
enum { STACK_SIZE_MAX = 64 << 20 };

int copied_memory_read_stack(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct copied_memory *m = ctx;
	uint64_t at = addr - m->stack_start;

	if (at < m->stack_size && size <= m->stack_size - at) {
		memcpy(to, m->stack + at, size);
		return 0;
	}
	m->past_copy |= at < STACK_SIZE_MAX;
	return -EFAULT;
}

/*
 * Is `addr` of the stack, above its copy? Libraries, and what their runtimes' steps read, are often
 * mapped right above a thread's stack: where it matters the process's mappings tell.
 */
static bool is_above_copy(struct copied_memory *m, uint64_t addr)
{
	if (addr - m->stack_start >= STACK_SIZE_MAX)
		return false;
	if (!m->stack_end)
		m->stack_end = process_mapping_end(m->pid, m->stack_start);
	/* It is gone: so is the rest. */
	return !m->stack_end || addr < m->stack_end;
}

int copied_memory_read(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct copied_memory *m = ctx;
	uint64_t in_stack = addr - m->stack_start, in_code = addr - m->code_start;

	if (in_code < m->code_size && size <= m->code_size - in_code) {
		if (!m->code)
			return process_read_memory(m->pid, addr, to, size);
		memcpy(to, m->code + in_code, size);
		return 0;
	}
	if (!m->has_runtimes || in_stack < m->stack_size || is_above_copy(m, addr))
		return copied_memory_read_stack(ctx, addr, to, size);
	return process_read_memory(m->pid, addr, to, size);
}

int copied_memory_stop(const struct copied_memory *copied, int stop)
{
	return copied->past_copy && (stop == STOP_STACK_UNREADABLE || stop == STOP_FRAME_POINTER)
		       ? STOP_STACK_COPY_END
		       : stop;
}
