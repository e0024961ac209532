// SPDX-License-Identifier: Apache-2.0
#include "runtime/kept.h"

#include <assert.h>

static void take_out(struct runtime_keeper *keeper, struct runtime_kept *kept)
{
	*(kept->older ? &kept->older->newer : &keeper->oldest) = kept->newer;
	*(kept->newer ? &kept->newer->older : &keeper->newest) = kept->older;
	kept->older = kept->newer = NULL;
}

static void put_newest(struct runtime_keeper *keeper, struct runtime_kept *kept)
{
	kept->older = keeper->newest;
	kept->newer = NULL;
	*(keeper->newest ? &keeper->newest->newer : &keeper->oldest) = kept;
	keeper->newest = kept;
}

void runtime_keep(struct runtime_keeper *keeper, struct runtime_kept *kept, size_t bytes)
{
	assert(!kept->bytes && bytes && bytes <= RUNTIME_KEPT_MAX);
	while (keeper->oldest && keeper->bytes + bytes > RUNTIME_KEPT_MAX) {
		struct runtime_kept *oldest = keeper->oldest;

		runtime_keep_no_more(keeper, oldest);
		keeper->nr_dropped++;
		oldest->drop(oldest);
	}
	kept->bytes = bytes;
	keeper->bytes += bytes;
	put_newest(keeper, kept);
}

void runtime_use_kept(struct runtime_keeper *keeper, struct runtime_kept *kept)
{
	if (!kept->bytes)
		return;
	take_out(keeper, kept);
	put_newest(keeper, kept);
}

void runtime_keep_no_more(struct runtime_keeper *keeper, struct runtime_kept *kept)
{
	if (!kept->bytes)
		return;
	take_out(keeper, kept);
	keeper->bytes -= kept->bytes;
	kept->bytes = 0;
}
