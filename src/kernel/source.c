// SPDX-License-Identifier: Apache-2.0
#include "kernel/source.h"
#include "util/cleanup.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *program;
	enum bpf_prog_type type; /* 0: the program's own */
	unsigned family;
} kinds[SOURCE_KINDS_] = {
	[SOURCE_SLEEPS] = { "sample_woken", 0, 1 },
	[SOURCE_WAKERS] = { "sample_waker", 0, 1 },
	[SOURCE_RAW_TRACEPOINT] = { "sample_task", 0, 2 },
	[SOURCE_TRACEPOINT] = { "sample_task", BPF_PROG_TYPE_TRACEPOINT, 3 },
	[SOURCE_UPROBE] = { "sample_probe", 0, 4 },
	[SOURCE_URETPROBE] = { "sample_probe", 0, 4 },
	[SOURCE_USDT] = { "sample_probe", 0, 4 },
	/* May come where a task runs the program of a uprobe. */
	[SOURCE_KPROBE] = { "sample_probe", 0, 5 },
	[SOURCE_KRETPROBE] = { "sample_probe", 0, 5 },
	[SOURCE_EVENT] = { "sample_event", 0, 6 },
};

const char *source_unit(enum sample_value value)
{
	static const char *const units[VALUE_MAX_] = {
		[VALUE_ONE] = "count",	    [VALUE_RAN_NS] = "nanoseconds",
		[VALUE_ARGUMENT] = "bytes", [VALUE_SLEPT_NS] = "nanoseconds",
		[VALUE_RETURNED] = "bytes", [VALUE_PERIOD] = "count",
	};

	return units[value];
}

void source_rate_window(uint32_t rate, uint64_t *samples_ret, uint64_t *ns_ret)
{
	uint64_t samples = rate < 10 ? rate : rate / 10;

	*samples_ret = samples;
	*ns_ret = rate < 10 ? 1000000000 : (samples * 1000000000 + rate - 1) / rate;
}

bool source_same_family(enum source_kind a, enum source_kind b)
{
	return kinds[a].family == kinds[b].family;
}

/* Its configuration. */
static bool is_configuration(const struct bpf_map *map)
{
	const char *section = strrchr(bpf_map__name(map), '.');

	return section && !strcmp(section, ".rodata");
}

/* Scratch memory, and programs of the source's type. */
static bool is_scratch(const struct bpf_map *map)
{
	static const char *const own[] = { "walks",	  "records", "raws",
					   "rule_caches", "walkers", "hits" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(bpf_map__name(map), own[i]))
			return true;
	return false;
}

/* All objects have the same maps in the same order. */
static int share_maps(const struct bpf_object *sampler, const struct bpf_object *first,
		      struct bpf_object *object)
{
	struct bpf_map *map, *of_sampler = NULL, *of_first = NULL;
	int r = 0;

	bpf_object__for_each_map(map, object)
	{
		of_sampler = bpf_object__next_map(sampler, of_sampler);
		of_first = first ? bpf_object__next_map(first, of_first) : NULL;
		if (r || !of_sampler || !of_first != !first)
			return r ? r : -ENOENT;
		if (is_configuration(map))
			continue;
		if (!is_scratch(map))
			r = bpf_map__reuse_fd(map, bpf_map__fd(of_sampler));
		else if (first)
			r = bpf_map__reuse_fd(map, bpf_map__fd(of_first));
		else
			r = bpf_map__set_max_entries(map, bpf_map__max_entries(of_sampler));
	}
	return r;
}

static struct bpf_program *find_program(const struct bpf_object *object, enum source_kind kind,
					bool whole)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", kinds[kind].program, whole ? "_whole" : "");
	return bpf_object__find_program_by_name(object, name);
}

static int load(struct source *s, bool whole, const struct bpf_object *sampler,
		const struct bpf_object *first)
{
	enum source_kind kind = s->spec.kind;
	struct bpf_program *p;
	int r = 0;

	s->program = find_program(s->object, kind, whole);
	if (!s->program)
		return -ENOENT;
	bpf_object__for_each_program(p, s->object) bpf_program__set_autoload(p, p == s->program);
	if (kinds[kind].type)
		r = bpf_program__set_type(s->program, kinds[kind].type);
	if (!r)
		r = share_maps(sampler, first, s->object);
	if (!r)
		r = bpf_object__load(s->object);
	if (!r && kind == SOURCE_SLEEPS)
		r = off_cpu_open(&s->off_cpu, &s->spec.off_cpu, sampler);
	return r;
}

int source_open(struct source *s, const struct source_spec *spec, bool whole,
		const struct bpf_object *sampler, const struct source *first,
		struct bpf_object *object, char *const *loader)
{
	int r;

	*s = (struct source){ .object = object, .spec = *spec, .has_scratch = !first };
	walkers_init(&s->walkers, NULL, BPF_PROG_TYPE_UNSPEC, NULL);
	r = load(s, whole, sampler, first ? first->object : NULL);
	if (r) {
		source_close(s);
		return r;
	}
	walkers_init(&s->walkers, whole || first ? NULL : object, bpf_program__type(s->program),
		     loader);
	return 0;
}

/* --- where it is ------------------------------------------------------------------------------ */

static int add_link(struct source *s, struct bpf_link *link)
{
	int r;

	if (!link)
		return -errno;
	r = vec_push(&s->links, link);
	if (r)
		bpf_link__destroy(link);
	return r;
}

/* In all processes that run it. */
static int attach_uprobe(struct source *s)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = s->spec.name,
		    .retprobe = s->spec.kind == SOURCE_URETPROBE);

	return add_link(s, bpf_program__attach_uprobe_opts(s->program, -1, s->spec.file, 0, &opts));
}

static int attach_usdt(struct source *s)
{
	int r = 0;

	for (size_t i = 0; i < s->spec.nr_sites && !r; i++) {
		const struct source_site *site = &s->spec.sites[i];
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = site->semaphore);

		r = add_link(s, bpf_program__attach_uprobe_opts(s->program, -1, s->spec.file,
								site->offset, &opts));
	}
	return r;
}

/* One event is all CPUs': the program is the tracepoint's. */
static int attach_tracepoint(struct source *s)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = s->spec.tracepoint_id,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = add_link(s, bpf_program__attach_perf_event(s->program, fd));
	if (r)
		close(fd);
	return r;
}

static int attach_event(struct source *s, struct cpu_set *cpus)
{
	s->sampling = (struct sampling){ .program = s->program,
					 .event = s->spec.event,
					 .paused = s->sampling.paused,
					 .only_cpus = s->sampling.only_cpus };
	s->cpus = cpus;
	return cpu_set_listen(cpus, sampling_set_cpu, &s->sampling);
}

int source_attach(struct source *s, struct cpu_set *cpus)
{
	int r;

	switch (s->spec.kind) {
	case SOURCE_SLEEPS:
	case SOURCE_WAKERS:
	case SOURCE_RAW_TRACEPOINT:
		r = add_link(s, bpf_program__attach_raw_tracepoint(s->program, s->spec.name));
		break;
	case SOURCE_TRACEPOINT:
		r = attach_tracepoint(s);
		break;
	case SOURCE_UPROBE:
	case SOURCE_URETPROBE:
		r = attach_uprobe(s);
		break;
	case SOURCE_USDT:
		r = attach_usdt(s);
		break;
	case SOURCE_KPROBE:
	case SOURCE_KRETPROBE:
		r = add_link(s, bpf_program__attach_kprobe(s->program,
							   s->spec.kind == SOURCE_KRETPROBE,
							   s->spec.name));
		break;
	case SOURCE_EVENT:
		r = attach_event(s, cpus);
		break;
	default:
		r = -EINVAL;
	}
	if (!r && s->off_cpu.bpf)
		r = off_cpu_attach(&s->off_cpu);
	return r;
}

void source_detach(struct source *s)
{
	off_cpu_detach(&s->off_cpu);
	for (size_t i = 0; i < s->links.nr; i++)
		bpf_link__destroy(s->links.items[i]);
	vec_free(&s->links);
	if (s->cpus) {
		cpu_set_leave(s->cpus, &s->sampling);
		sampling_fini(&s->sampling);
	}
	s->cpus = NULL;
}

void source_close(struct source *s)
{
	source_detach(s);
	off_cpu_close(&s->off_cpu);
	walkers_fini(&s->walkers);
	bpf_object__close(s->object);
	*s = (struct source){ .object = NULL };
}

/* --- what it costs ---------------------------------------------------------------------------- */

size_t source_bytes(const struct source *s)
{
	size_t sum = s->object ? walkers_bytes(&s->walkers) + off_cpu_bytes(&s->off_cpu) : 0;
	struct bpf_map *map;

	if (!s->object)
		return 0;
	bpf_object__for_each_map(map, s->object) if (is_configuration(map) ||
						     (s->has_scratch && is_scratch(map))) sum +=
		walkers_fd_bytes(bpf_map__fd(map));
	return sum + walkers_program_bytes(bpf_program__fd(s->program), NULL);
}

uint64_t source_misses(const struct source *s)
{
	return s->object ? walkers_program_misses(bpf_program__fd(s->program)) : 0;
}

void source_drain(struct source *s)
{
	off_cpu_drain(&s->off_cpu);
}

uint64_t source_run_ns(const struct source *s)
{
	if (!s->object)
		return 0;
	return walkers_program_run_ns(bpf_program__fd(s->program)) + off_cpu_run_ns(&s->off_cpu);
}
