// SPDX-License-Identifier: Apache-2.0
#include "kernel/source.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

#define PROBE "uprobe:"

static const struct {
	const char *type, *unit;
} values[VALUE_MAX_] = {
	[VALUE_ONE] = { "events", "count" },
	[VALUE_RAN_NS] = { "on_cpu", "nanoseconds" },
	[VALUE_ARGUMENT] = { "argument", "bytes" },
};

const char *source_type(enum sample_value value)
{
	return values[value].type;
}

const char *source_unit(enum sample_value value)
{
	return values[value].unit;
}

/* Scratch memory, programs of the source's type, and its configuration. */
static bool is_own(const struct bpf_map *map)
{
	static const char *const own[] = { "walks",	  "records", "raws",
					   "rule_caches", "walkers", "hits" };
	const char *name = bpf_map__name(map), *section = strrchr(name, '.');

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i]))
			return true;
	return section && !strcmp(section, ".rodata");
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

static bool is_probe(const char *at)
{
	return !strncmp(at, PROBE, strlen(PROBE));
}

static const char *program_of(const char *at, bool whole)
{
	if (is_probe(at))
		return whole ? "sample_probe_whole" : "sample_probe";
	return whole ? "sample_task_whole" : "sample_task";
}

int source_open(struct source *s, const char *at, bool whole, const struct bpf_object *sampler,
		struct bpf_object *object, char *const *loader)
{
	struct bpf_program *p;
	int r;

	*s = (struct source){ .object = object, .at = at };
	walkers_init(&s->walkers, NULL, BPF_PROG_TYPE_UNSPEC, NULL);
	s->program = bpf_object__find_program_by_name(object, program_of(at, whole));
	bpf_object__for_each_program(p, object) bpf_program__set_autoload(p, p == s->program);
	r = s->program ? share_maps(sampler, object) : -ENOENT;
	if (!r)
		r = bpf_object__load(object);
	if (r) {
		source_close(s);
		return r;
	}
	walkers_init(&s->walkers, whole ? NULL : object, bpf_program__type(s->program), loader);
	return 0;
}

/* In all processes that run it. */
static struct bpf_link *attach_probe(const struct bpf_program *program, const char *at)
{
	_cleanup_free_ char *file = strdup(at + strlen(PROBE));
	char *colon = file ? strrchr(file, ':') : NULL;
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = colon ? colon + 1 : NULL);

	if (!colon) {
		errno = file ? EINVAL : ENOMEM;
		return NULL;
	}
	*colon = '\0';
	return bpf_program__attach_uprobe_opts(program, -1, file, 0, &opts);
}

int source_attach(struct source *s)
{
	s->link = is_probe(s->at) ? attach_probe(s->program, s->at)
				  : bpf_program__attach_raw_tracepoint(s->program, s->at);
	return s->link ? 0 : -errno;
}

void source_detach(struct source *s)
{
	bpf_link__destroy(s->link);
	s->link = NULL;
}

void source_close(struct source *s)
{
	source_detach(s);
	walkers_fini(&s->walkers);
	bpf_object__close(s->object);
	*s = (struct source){ .object = NULL };
}

size_t source_bytes(const struct source *s)
{
	size_t sum = s->object ? walkers_bytes(&s->walkers) : 0;
	struct bpf_map *map;

	if (!s->object)
		return 0;
	bpf_object__for_each_map(map, s->object) if (is_own(map)) sum +=
		walkers_fd_bytes(bpf_map__fd(map));
	return sum + walkers_program_bytes(bpf_program__fd(s->program), NULL);
}

uint64_t source_misses(const struct source *s)
{
	return s->object ? walkers_program_misses(bpf_program__fd(s->program)) : 0;
}
