// SPDX-License-Identifier: Apache-2.0
#include "unwinder/unwinder.h"

/* Of a CPU, for looking at what others' files are: half. */
enum { FILES_PART = 2 };

int unwinder_init(struct unwinder *u, const struct unwinder_options *o)
{
	struct unwind_store_maps maps = { -1, -1, -1 };
	int r;

	*u = (struct unwinder){ 0 };
	if (o->sampler)
		maps = bpf_sampler_maps(o->sampler);
	r = process_table_init(&u->processes);
	if (!r)
		r = unwind_store_init(&u->store, &maps, o->arena_bytes);
	if (r)
		return r;
	publisher_init(&u->publisher, &u->processes, &u->store, o->sampler);
	process_table_set_copier(&u->processes, o->file_copier, o->copy_bytes);
	u->processes.meanwhile = o->drain;
	u->processes.meanwhile_ctx = o->drain_ctx;
	u->publisher.fixed_bytes = o->fixed_bytes;
	u->publisher.drain = o->drain;
	u->publisher.spill_folder = o->spill_folder;
	u->publisher.drain_ctx = o->drain_ctx;
	u->publisher.loader.wait = o->wait;
	u->publisher.loader.builder = o->table_builder;
	/* Who asks once, for a snapshot or a core, waits for nobody's share. */
	u->publisher.runtimes.file_time.part = o->sampler ? FILES_PART : 0;
	if (o->machine)
		u->publisher.runtimes.machine = o->machine;
	u->publisher.runtimes.memory = o->memory;
	return 0;
}

void unwinder_fini(struct unwinder *u)
{
	/* The publisher is told of each process that goes. */
	process_table_fini(&u->processes);
	if (u->publisher.processes)
		publisher_fini(&u->publisher);
	unwind_store_fini(&u->store);
	*u = (struct unwinder){ 0 };
}
