// SPDX-License-Identifier: Apache-2.0
/* /proc/PID/maps and /proc/PID/stat: any text, cut anywhere. */
#include "fuzz.h"
#include "process/maps.h"
#include "process/proc_stat.h"

#include <stdlib.h>
#include <string.h>

static int each(void *ctx, const struct maps_entry *entry)
{
	size_t *nr = ctx;

	if (entry->start >= entry->end || strchr(entry->path, 0) < entry->path)
		abort();
	/* Ends the parse now and then. */
	return ++*nr == 1000;
}

FUZZER(data, size)
{
	struct proc_stat stat;
	size_t nr = 0;
	int r = maps_parse((const char *)data, size, each, &nr);

	if (r != (nr == 1000))
		abort();
	if (!proc_stat_parse((const char *)data, size, &stat))
		(void)proc_stat_is_over(&stat);
	return 0;
}
