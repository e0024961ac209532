// SPDX-License-Identifier: Apache-2.0
/*
 * What loading our BPF programs costs the kernel's verifier. It gives up after a million
 * instructions, and other kernels' need up to twice as many for the same program as this one's.
 *
 * The program with all runtimes' steps has a limit of its own: only kernels that cannot change from
 * program to program load it.
 */
#include "abi/kernel_rows.h"

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
	VERIFIED_WHOLE_MAX = 600000,
	LOG_STATS = 4, /* BPF_LOG_STATS of the kernel's include/linux/bpf_verifier.h; since 5.2 */
	LOG_SIZE = 64 << 10,
	PROGRAMS_MAX = 16,
};

struct logs {
	char text[PROGRAMS_MAX][LOG_SIZE];
};

const char *test_skip_reason(void)
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
		if (!strcmp(name, "sample_cpu_whole"))
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

TEST(the_sampler_is_far_from_the_limit)
{
	struct sonde_bpf *bpf = sonde_bpf__open();
	struct logs *logs = logs_new();

	ASSERT_PTR_NONNULL(bpf);
	bpf_program__set_autoload(bpf->progs.sample_task, false);
	bpf->rodata->config_kernel_frames = KERNEL_FRAMES_COMPARE; /* the most there is */
	ask_for_stats(bpf->obj, logs);
	ASSERT_OK(sonde_bpf__load(bpf));
	check_stats(bpf->obj, logs);
	sonde_bpf__destroy(bpf);
	free(logs);
}

/* Walkers are of one type with the program that changes to them. */
TEST(walkers_at_tracepoints_are_far_from_the_limit)
{
	struct sonde_bpf *bpf = sonde_bpf__open();
	struct logs *logs = logs_new();
	struct bpf_program *program;

	ASSERT_PTR_NONNULL(bpf);
	bpf_object__for_each_program(program, bpf->obj)
	{
		if (!strncmp(bpf_program__name(program), WALKER_PREFIX, strlen(WALKER_PREFIX)))
			ASSERT_OK(bpf_program__set_type(program, BPF_PROG_TYPE_RAW_TRACEPOINT));
		else if (program != bpf->progs.sample_task)
			bpf_program__set_autoload(program, false);
	}
	ask_for_stats(bpf->obj, logs);
	ASSERT_OK(sonde_bpf__load(bpf));
	check_stats(bpf->obj, logs);
	sonde_bpf__destroy(bpf);
	free(logs);
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
