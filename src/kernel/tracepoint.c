// SPDX-License-Identifier: Apache-2.0
#include "kernel/tracepoint.h"

#include <errno.h>
#include <string.h>

/* Scratch memory, and programs of the source's type. */
static bool is_own(const struct bpf_map *map)
{
	static const char *const own[] = { "walks",	  "records", "raws",
					   "rule_caches", "walkers", "hits" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(bpf_map__name(map), own[i]))
			return true;
	return false;
}

/* Both objects have the same maps in the same order. */
static int share_maps(const struct bpf_object *sampler, struct bpf_object *object)
{
	struct bpf_map *map, *of_sampler = NULL;
	int r = 0;

	bpf_object__for_each_map(map, object)
	{
		of_sampler = bpf_object__next_map(sampler, of_sampler);
		if (r || !of_sampler)
			return r ? r : -ENOENT;
		r = is_own(map) ? bpf_map__set_max_entries(map, bpf_map__max_entries(of_sampler))
				: bpf_map__reuse_fd(map, bpf_map__fd(of_sampler));
	}
	return r;
}

int tracepoint_open(struct tracepoint_source *t, const struct bpf_object *sampler,
		    struct bpf_object *object, const char *program, char *const *loader)
{
	struct bpf_program *p;
	int r;

	*t = (struct tracepoint_source){ .object = object };
	walkers_init(&t->walkers, NULL, BPF_PROG_TYPE_UNSPEC, NULL);
	t->program = bpf_object__find_program_by_name(object, program);
	bpf_object__for_each_program(p, object) bpf_program__set_autoload(p, p == t->program);
	r = t->program ? share_maps(sampler, object) : -ENOENT;
	if (!r)
		r = bpf_object__load(object);
	if (r) {
		tracepoint_close(t);
		return r;
	}
	walkers_init(&t->walkers, object, bpf_program__type(t->program), loader);
	return 0;
}

int tracepoint_attach(struct tracepoint_source *t, const char *name)
{
	t->link = bpf_program__attach_raw_tracepoint(t->program, name);
	return t->link ? 0 : -errno;
}

void tracepoint_detach(struct tracepoint_source *t)
{
	bpf_link__destroy(t->link);
	t->link = NULL;
}

void tracepoint_close(struct tracepoint_source *t)
{
	tracepoint_detach(t);
	walkers_fini(&t->walkers);
	bpf_object__close(t->object);
	*t = (struct tracepoint_source){ .object = NULL };
}

size_t tracepoint_bytes(const struct tracepoint_source *t)
{
	size_t sum = t->object ? walkers_bytes(&t->walkers) : 0;
	struct bpf_map *map;

	if (!t->object)
		return 0;
	bpf_object__for_each_map(map, t->object) if (is_own(map)) sum +=
		walkers_fd_bytes(bpf_map__fd(map));
	return sum + walkers_program_bytes(bpf_program__fd(t->program), NULL);
}

uint64_t tracepoint_misses(const struct tracepoint_source *t)
{
	return t->object ? walkers_program_misses(bpf_program__fd(t->program)) : 0;
}
