// SPDX-License-Identifier: Apache-2.0
/* perf records of the side band, and the mappings that they make. */
#include "fuzz.h"
#include "process/process_internal.h"
#include "process/side_band_internal.h"

#include <string.h>

static void check_event(const struct side_events *batch, size_t i)
{
	const struct side_event *event = &batch->events.items[i];

	if (event->text >= batch->text.nr ||
	    !memchr(batch->text.items + event->text, 0, batch->text.nr - event->text))
		abort();
	if (i && event[-1].time_ns > event->time_ns)
		abort();
	if (event->type == SIDE_MMAP && event->start + event->len <= event->start)
		abort();
}

static void check_list(const struct mapping_list *list)
{
	if (list->nr > MAPPINGS_MAX)
		abort();
	for (size_t i = 0; i < list->nr; i++)
		if (list->items[i].start >= list->items[i].end ||
		    (i && list->items[i - 1].end > list->items[i].start))
			abort();
}

FUZZER(data, size)
{
	struct side_events batch = { 0 };
	struct mapping_list list = { 0 };
	struct process proc = { 0 };

	(void)side_band_parse(data, size, &batch);
	side_events_sort(&batch);
	for (size_t i = 0; i < batch.events.nr; i++) {
		const struct side_event *event = &batch.events.items[i];
		struct mapping m = { event->start, event->start + event->len, event->offset,
				     (uint32_t)event->inode % 4 };
		int r;

		check_event(&batch, i);
		if (event->type != SIDE_MMAP)
			continue;
		r = mapping_list_carve(&list, &m);
		check_list(&list);
		if (r) /* no memory, or full: it may miss then, but not lie */
			continue;
		proc.mappings = list;
		if (list.nr < MAPPINGS_MAX / 2 && !process_mapping(&proc, m.start))
			abort();
	}
	vec_free(&list);
	side_events_fini(&batch);
	return 0;
}
