// SPDX-License-Identifier: Apache-2.0
#include "record/process_contexts.h"

#include "process/process_context.h"
#include "record/otel_context.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

/* A look through /proc/PID/maps takes 0.1 ms of most processes; a read of the header 2 us. */
#define LOOKS_NS     UINT64_C(5000000)
#define PAUSE_NS     UINT64_C(1000000000)
#define PAUSE_MAX_NS (600 * PAUSE_NS)

void process_contexts_fini(struct process_contexts *c)
{
	vec_free(&c->looks);
	map_fini(&c->by_key);
}

/* NULL: out of memory. */
static struct context_look *look_of(struct process_contexts *c, uint64_t key)
{
	uint64_t *found = map_get(&c->by_key, key);
	struct context_look first = { .key = key, .pause_ns = PAUSE_NS };

	if (found)
		return &c->looks.items[*found];
	if (vec_push(&c->looks, first))
		return NULL;
	if (map_put(&c->by_key, key, c->looks.nr - 1)) {
		c->looks.nr--;
		return NULL;
	}
	return &c->looks.items[c->looks.nr - 1];
}

static void take(struct profile *p, struct profile_process *process,
		 const struct process_context *context)
{
	struct otel_context said;
	int r = otel_context_read(context->data, context->size, &said);
	uint32_t service = process->service, attributes;

	if (!r && *said.service)
		r = profile_string(p, said.service, &service);
	if (!r)
		r = profile_string(p, said.attributes, &attributes);
	if (r) {
		log_debug("the context of process %d is not taken: %s", process->pid, strerror(-r));
		return;
	}
	process->service = service;
	process->attributes = attributes;
}

/* The process may be another one by now, of the same number: then its context is taken, too. */
static void look_at(struct context_look *look, struct profile *p, struct profile_process *process,
		    uint64_t now)
{
	struct process_context context;
	int r = 0;

	if (!look->addr)
		r = process_context_find(process->pid, &look->addr);
	if (!r)
		r = process_context_read(process->pid, look->addr, &look->stamp, &context);
	if (r > 0) {
		take(p, process, &context);
		process_context_fini(&context);
	}
	/* While it is there a header is read each second, at most. */
	if (r < 0 && r != -EAGAIN) {
		look->addr = 0;
		look->next_ns = now + look->pause_ns;
		look->pause_ns *= 2;
		if (look->pause_ns > PAUSE_MAX_NS)
			look->pause_ns = PAUSE_MAX_NS;
	} else {
		look->next_ns = now + PAUSE_NS;
		look->pause_ns = PAUSE_NS;
	}
}

void process_contexts_look(struct process_contexts *c, struct profile *p)
{
	uint64_t now = now_ns(), end = now + LOOKS_NS;

	for (uint32_t type = 0; type < profile_nr_types(p); type++) {
		const struct profile_cut *cut = profile_cut_of(p, type);

		for (size_t i = 0; i < cut->samples.nr; i++) {
			uint32_t thread = cut->samples.items[i].thread;
			struct profile_process *process =
				&p->processes.items[p->threads.items[thread].process];
			struct context_look *look;

			if (process->pid <= 0 || process->end_ns || process->was_replaced)
				continue;
			look = look_of(c, process->key);
			if (!look || look->next_ns > now)
				continue;
			look_at(look, p, process, now);
			if (now_ns() > end)
				return;
		}
	}
}

void process_contexts_collected(struct process_contexts *c, const struct profile *p)
{
	struct process_contexts kept = { 0 };
	int r = 0;

	for (size_t i = 0; i < p->processes.nr && !r; i++) {
		uint64_t key = p->processes.items[i].key;
		uint64_t *found = map_get(&c->by_key, key);

		if (!found)
			continue;
		r = vec_push(&kept.looks, c->looks.items[*found]);
		if (!r)
			r = map_put(&kept.by_key, key, kept.looks.nr - 1);
	}
	/* Out of memory: all are looked at anew. */
	if (r)
		process_contexts_fini(&kept);
	process_contexts_fini(c);
	*c = kept;
}
