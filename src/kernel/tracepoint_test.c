// SPDX-License-Identifier: Apache-2.0
/* A second source: what it shares with the sampler, and what becomes of a sample whose memory is in
 * use. */
#include "abi/kernel_rows.h"

#include "sonde.skel.h"

#include "bpf/walk.bpf.h"
#include "kernel/hits.h"
#include "kernel/libbpf_log.h"
#include "kernel/tracepoint.h"
#include "kernel/test_walkers.h"
#include "test.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { WAIT_MS = 1000 };

const char *test_skip_reason(void)
{
	return test_walkers_skip_reason();
}

struct sources {
	struct sonde_bpf *sampler; /* its maps; no program */
	struct tracepoint_source tracepoint;
	struct ring_buffer *ring;
	int nr_records;
};

static int count_record(void *ctx, void *record, size_t size)
{
	struct sources *s = ctx;

	(void)record;
	(void)size;
	s->nr_records++;
	return 0;
}

static void open_sources(struct sources *s)
{
	uint32_t nr_cpus = (uint32_t)libbpf_num_possible_cpus();
	struct sonde_bpf *bpf = sonde_bpf__open(), *second = sonde_bpf__open();
	struct bpf_program *program;

	libbpf_log_to_debug();
	ASSERT(bpf && second);
	*s = (struct sources){ .sampler = bpf };
	bpf_object__for_each_program(program, bpf->obj) bpf_program__set_autoload(program, false);
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.records, nr_cpus));
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.raws, nr_cpus));
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.hits, nr_cpus));
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.rule_caches, nr_cpus));
	ASSERT_OK(sonde_bpf__load(bpf));
	ASSERT_OK(tracepoint_open(&s->tracepoint, bpf->obj, TAKE_PTR(*second->skeleton->obj),
				  "sample_task", NULL));
	sonde_bpf__destroy(second);
	s->ring = ring_buffer__new(bpf_map__fd(bpf->maps.samples), count_record, s, NULL);
	ASSERT_PTR_NONNULL(s->ring);
}

static void close_sources(struct sources *s)
{
	ring_buffer__free(s->ring);
	tracepoint_close(&s->tracepoint);
	sonde_bpf__destroy(s->sampler);
}

static int fd_of(const struct bpf_object *object, const char *map)
{
	return bpf_object__find_map_fd_by_name(object, map);
}

static uint32_t id_of(const struct bpf_object *object, const char *map)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	ASSERT_OK(bpf_obj_get_info_by_fd(fd_of(object, map), &info, &len));
	return info.id;
}

/* Runs the program here and now: this test's own stack is walked. */
static void sample(struct sources *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	ASSERT_OK(bpf_prog_test_run_opts(bpf_program__fd(s->tracepoint.program), &opts));
	ASSERT(ring_buffer__consume(s->ring) >= 0);
}

static uint64_t nr_lost(const struct sources *s)
{
	uint32_t reason = LOST_NO_SCRATCH;
	uint64_t values[4096] = { 0 }, sum = 0;

	ASSERT(libbpf_num_possible_cpus() <= 4096);
	ASSERT_OK(bpf_map_lookup_elem(bpf_map__fd(s->sampler->maps.lost), &reason, values));
	for (int i = 0; i < libbpf_num_possible_cpus(); i++)
		sum += values[i];
	return sum;
}

/* The marks of all CPUs: sets them to `in_use`, and returns how many were set before. */
static int mark(const struct bpf_object *object, uint32_t in_use)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, "walks");
	size_t size = (bpf_map__value_size(map) + 7) & ~7u;
	int nr_cpus = libbpf_num_possible_cpus(), nr = 0;
	char *values = calloc((size_t)nr_cpus, size);
	uint32_t zero = 0, was;

	ASSERT_PTR_NONNULL(values);
	ASSERT_OK(bpf_map_lookup_elem(bpf_map__fd(map), &zero, values));
	for (int i = 0; i < nr_cpus; i++) {
		char *at = values + (size_t)i * size + offsetof(struct walk, in_use);

		memcpy(&was, at, sizeof(was));
		nr += was != 0;
		memcpy(at, &in_use, sizeof(in_use));
	}
	ASSERT_OK(bpf_map_update_elem(bpf_map__fd(map), &zero, values, BPF_ANY));
	free(values);
	return nr;
}

TEST(scratch_memory_and_walkers_are_its_own_and_tables_are_shared)
{
	static const char *const own[] = { "walks",	  "records", "raws",
					   "rule_caches", "walkers", "hits" };
	static const char *const shared[] = { "processes", "files", "rules",   "arena",
					      "known",	   "lost",  "targets", "samples" };
	const struct bpf_object *a, *b;
	struct sources s;

	open_sources(&s);
	a = s.sampler->obj;
	b = s.tracepoint.object;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		ASSERT(id_of(a, own[i]) != id_of(b, own[i]));
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		ASSERT_EQ(id_of(a, shared[i]), id_of(b, shared[i]));
	ASSERT(tracepoint_bytes(&s.tracepoint) > 4096);
	close_sources(&s);
}

TEST(a_sample_that_finds_its_memory_in_use_is_counted_and_leaves_it_alone)
{
	int nr_cpus = libbpf_num_possible_cpus();
	struct sources s;

	open_sources(&s);
	mark(s.tracepoint.object, 1);
	sample(&s);
	ASSERT_EQ(s.nr_records, 0);
	ASSERT_EQ(nr_lost(&s), 1);
	ASSERT_EQ(mark(s.tracepoint.object, 0), nr_cpus);
	/* Each walk frees it for the next one. */
	for (int i = 1; i <= 3; i++) {
		sample(&s);
		ASSERT_EQ(s.nr_records, i);
		ASSERT_EQ(mark(s.tracepoint.object, 0), 0);
	}
	ASSERT_EQ(nr_lost(&s), 1);
	close_sources(&s);
}

TEST(a_source_minds_no_other_ones_walk)
{
	int nr_cpus = libbpf_num_possible_cpus();
	struct sources s;

	open_sources(&s);
	mark(s.sampler->obj, 1);
	sample(&s);
	ASSERT_EQ(s.nr_records, 1);
	ASSERT_EQ(nr_lost(&s), 0);
	ASSERT_EQ(mark(s.sampler->obj, 0), nr_cpus);
	close_sources(&s);
}

/* On one CPU: which stacks are known is each one's own. */
TEST(hits_go_round_the_ring_while_somebody_reads_them_and_there_is_room)
{
	uint32_t nr_cpus = (uint32_t)libbpf_num_possible_cpus();
	struct hits_reader hits;
	struct sources s;
	cpu_set_t all, one;
	int in_ring, i;

	open_sources(&s);
	ASSERT_OK(sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_OK(sched_setaffinity(0, sizeof(one), &one));
	s.sampler->bss->raws_held = 1; /* nobody knows this process: a stack that is cut there */
	for (i = 0; i < 20; i++)
		sample(&s);
	ASSERT_EQ(s.nr_records, 20);
	ASSERT_OK(hits_open(&hits, fd_of(s.tracepoint.object, "hits"), nr_cpus,
			    fd_of(s.sampler->obj, "samples")));
	s.nr_records = 0;
	for (i = 0; i < 2 * CPU_HITS; i++)
		sample(&s);
	in_ring = s.nr_records;
	s.nr_records = 0;
	hits_look(&hits);
	ASSERT_OK(hits_take(&hits, count_record, &s));
	ASSERT_EQ(s.nr_records + in_ring, 2 * CPU_HITS);
#if defined(__x86_64__)
	ASSERT_EQ(s.nr_records, CPU_HITS);
	sample(&s); /* there is room again */
	hits_look(&hits);
	ASSERT_OK(hits_take(&hits, count_record, &s));
	ASSERT_EQ(s.nr_records, CPU_HITS + 1);
#endif
	hits_close(&hits);
	ASSERT_OK(sched_setaffinity(0, sizeof(all), &all));
	close_sources(&s);
}

TEST(walkers_are_of_the_sources_type)
{
	uint32_t id = RUNTIME_PYTHON, program;
	struct sources s;

	open_sources(&s);
	walkers_want(&s.tracepoint.walkers, 1u << id, true);
	while (walkers_pending(&s.tracepoint.walkers, ~0u))
		walkers_update(&s.tracepoint.walkers, WAIT_MS);
	ASSERT_EQ(walkers_refused(&s.tracepoint.walkers), 0);
	ASSERT_OK(bpf_map_lookup_elem(fd_of(s.tracepoint.object, "walkers"), &id, &program));
	ASSERT(bpf_map_lookup_elem(fd_of(s.sampler->obj, "walkers"), &id, &program));
	close_sources(&s);
}

/*
 * A timer's interrupt while the program runs finds it at work on that CPU: the kernel leaves out
 * the second run. Most of what a thread does that calls the kernel all the time is that program.
 */
TEST(samples_that_the_kernel_left_out_are_counted)
{
	uint64_t end_ns = now_ns() + 20000000000ull;
	struct bpf_link *second;
	struct utsname kernel;
	unsigned major, minor;
	struct sources s;

	ASSERT_OK(uname(&kernel));
	ASSERT_EQ(sscanf(kernel.release, "%u.%u", &major, &minor), 2);
	if (major < 6 || (major == 6 && minor < 1)) /* it runs twice */
		return;
	open_sources(&s);
	ASSERT_EQ(tracepoint_misses(&s.tracepoint), 0);
	ASSERT_OK(tracepoint_attach(&s.tracepoint, "sys_enter"));
	second = bpf_program__attach_raw_tracepoint(s.tracepoint.program, "hrtimer_expire_entry");
	ASSERT_PTR_NONNULL(second);
	while (!tracepoint_misses(&s.tracepoint) && now_ns() < end_ns)
		syscall(SYS_getppid);
	ASSERT(tracepoint_misses(&s.tracepoint));
	bpf_link__destroy(second);
	close_sources(&s);
}

TEST(what_is_no_tracepoint_is_refused)
{
	struct sources s;

	open_sources(&s);
	ASSERT_ERR(tracepoint_attach(&s.tracepoint, "sonde_has_no_such"), ENOENT);
	ASSERT_OK(tracepoint_attach(&s.tracepoint, "sched_process_exit"));
	tracepoint_detach(&s.tracepoint);
	close_sources(&s);
}
