// SPDX-License-Identifier: Apache-2.0
/*
 * What `sonde stack` takes from the kernel: the first byte chooses between the output of the
 * iterator over tasks and one sample of a perf event.
 */
#include "fuzz.h"
#include "snapshot/task_iter.h"
#include "snapshot/thread_event.h"

#include <stdlib.h>

static void parse_tasks(const uint8_t *data, size_t size)
{
	struct live_threads t = { 0 };

	if (!task_iter_parse(data, size, &t)) {
		for (size_t i = 0; i < t.list.nr; i++) {
			const struct live_thread *thread = &t.list.items[i];

			if (i && thread->tid < t.list.items[i - 1].tid)
				abort();
			if (thread->first_kernel + thread->nr_kernel > t.kernel.nr)
				abort();
		}
	}
	live_threads_fini(&t);
}

static void parse_sample(const uint8_t *data, size_t size)
{
	struct caught_thread c = { 0 };

	if (thread_event_parse(data, size, &c))
		return;
	if (c.stack_size > RAW_STACK_BELOW + size || c.nr_kernel > SAMPLE_MAX_KERNEL_FRAMES)
		abort();
	free(c.stack);
}

FUZZER(data, size)
{
	if (!size)
		return 0;
	if (data[0] & 1)
		parse_sample(data + 1, size - 1);
	else
		parse_tasks(data + 1, size - 1);
	return 0;
}
