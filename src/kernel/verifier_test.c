// SPDX-License-Identifier: Apache-2.0
/*
 * What loading our BPF programs costs the kernel's verifier. It gives up after a million
 * instructions, and other kernels' need up to twice as many for the same program as this one's.
 *
 * Programs with all runtimes' steps have a limit of their own: only kernels that cannot change from
 * program to program load them.
 */
#include "abi/kernel_rows.h"
#include "abi/sample.h"

#include "off_cpu.skel.h"
#include "sonde.skel.h"
#include "tasks.skel.h"

#include "kernel/libbpf_log.h"
#include "kernel/walkers.h"
#include "test.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	VERIFIED_MAX = 300000,
	VERIFIED_WHOLE_MAX = 640000, /* 5.10, 6.1 and 6.12 load it, too (tests/vm: doctor) */
	LOG_STATS = 4, /* BPF_LOG_STATS of the kernel's include/linux/bpf_verifier.h; since 5.2 */
	LOG_SIZE = 64 << 10,
	PROGRAMS_MAX = 26,
};

struct logs {
	char text[PROGRAMS_MAX][LOG_SIZE];
};

TEST_SKIP_REASON()
{
	return geteuid() ? "loading BPF programs needs root" : NULL;
}

static void ask_for_stats(const struct bpf_object *object, struct logs *logs)
{
	struct bpf_program *program;
	size_t i = 0;

	bpf_object__for_each_program(program, object)
	{
		ASSERT(i < PROGRAMS_MAX);
		ASSERT_OK(bpf_program__set_log_level(program, LOG_STATS));
		ASSERT_OK(bpf_program__set_log_buf(program, logs->text[i], LOG_SIZE));
		i++;
	}
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), end_len = strlen(end);

	return len >= end_len && !strcmp(s + len - end_len, end);
}

static void check_stats(const struct bpf_object *object, const struct logs *logs)
{
	struct bpf_program *program;
	size_t i = 0;

	bpf_object__for_each_program(program, object)
	{
		const char *name = bpf_program__name(program), *text = logs->text[i++];
		const char *line = strstr(text, "processed ");
		unsigned long verified = 0, most = VERIFIED_MAX;

		if (!bpf_program__autoload(program))
			continue;
		if (!line || sscanf(line, "processed %lu insns", &verified) != 1 || !verified)
			FAIL("%s: the verifier's log has no count: '%s'", name, text);
		printf("# %s: %lu instructions verified\n", name, verified);
		if (ends_with(name, "_whole"))
			most = VERIFIED_WHOLE_MAX;
		if (verified > most)
			FAIL("%s: %lu instructions verified, more than %lu", name, verified, most);
	}
	ASSERT(i > 0);
}

static struct logs *logs_new(void)
{
	/* Kernels before 5.11 charge maps against it. */
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct logs *logs = calloc(1, sizeof(*logs));

	ASSERT_PTR_NONNULL(logs);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	libbpf_log_to_debug();
	return logs;
}

static bool begins_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* A source's programs (NULL: the sampler's other ones), and the walkers as programs of that type,
 * since a program changes to others of its type only. */
static void check_source(const char *name, enum bpf_prog_type type)
{
	struct sonde_bpf *bpf = sonde_bpf__open();
	struct logs *logs = logs_new();
	struct bpf_program *program;

	ASSERT_PTR_NONNULL(bpf);
	bpf_object__for_each_program(program, bpf->obj)
	{
		const char *own = bpf_program__name(program);

		if (name && (begins_with(own, name) || begins_with(own, WALKER_PREFIX)))
			ASSERT_OK(bpf_program__set_type(program, type));
		else if (name || begins_with(own, "sample_") || begins_with(own, WALKER_PREFIX))
			ASSERT_OK(bpf_program__set_autoload(program, false));
	}
	bpf->rodata->config_kernel_frames = KERNEL_FRAMES_COMPARE; /* the most there is */
	bpf->rodata->config_select = true;
	bpf->rodata->config_rate = 1;
	bpf->rodata->config_schedule_start = bpf->rodata->config_interrupts_start = 1ull << 63;
	bpf->rodata->config_schedule_size = bpf->rodata->config_interrupts_size = 4096;
	bpf->rodata->config_filter.is_set = bpf->rodata->config_filter.indirect = 1;
	bpf->rodata->config_at_entry = true;
	ask_for_stats(bpf->obj, logs);
	ASSERT_OK(sonde_bpf__load(bpf));
	check_stats(bpf->obj, logs);
	sonde_bpf__destroy(bpf);
	free(logs);
}

TEST(what_follows_processes_is_far_from_the_limit)
{
	check_source(NULL, BPF_PROG_TYPE_UNSPEC);
}

TEST(the_sampler_is_far_from_the_limit)
{
	check_source("sample_cpu", BPF_PROG_TYPE_PERF_EVENT);
}

TEST(a_source_of_perf_events_is_far_from_the_limit)
{
	check_source("sample_event", BPF_PROG_TYPE_PERF_EVENT);
}

TEST(a_source_at_raw_tracepoints_is_far_from_the_limit)
{
	check_source("sample_task", BPF_PROG_TYPE_RAW_TRACEPOINT);
}

/* As it is loaded by who needs perf's events of tracepoints. */
TEST(a_source_at_tracepoints_is_far_from_the_limit)
{
	check_source("sample_task", BPF_PROG_TYPE_TRACEPOINT);
}

TEST(a_source_of_sleeps_is_far_from_the_limit)
{
	check_source("sample_woken", BPF_PROG_TYPE_RAW_TRACEPOINT);
}

TEST(what_tells_who_woke_a_thread_is_far_from_the_limit)
{
	check_source("sample_waker", BPF_PROG_TYPE_RAW_TRACEPOINT);
}

TEST(what_runs_at_each_switch_is_far_from_the_limit)
{
	struct off_cpu_bpf *bpf = off_cpu_bpf__open();
	struct logs *logs = logs_new();

	ASSERT_PTR_NONNULL(bpf);
	bpf->rodata->config_kick = bpf->rodata->config_targets_only = true;
	bpf->rodata->config_select = true;
	bpf->rodata->config_chance = 1;
	ask_for_stats(bpf->obj, logs);
	ASSERT_OK(off_cpu_bpf__load(bpf));
	check_stats(bpf->obj, logs);
	off_cpu_bpf__destroy(bpf);
	free(logs);
}

TEST(a_source_at_probes_is_far_from_the_limit)
{
	check_source("sample_probe", BPF_PROG_TYPE_KPROBE);
}

TEST(the_iterators_of_threads_are_far_from_the_limit)
{
	struct tasks_bpf *bpf = tasks_bpf__open();
	struct logs *logs = logs_new();

	ASSERT_PTR_NONNULL(bpf);
	ask_for_stats(bpf->obj, logs);
	ASSERT_OK(tasks_bpf__load(bpf));
	check_stats(bpf->obj, logs);
	tasks_bpf__destroy(bpf);
	free(logs);
}
