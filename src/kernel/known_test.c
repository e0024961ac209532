// SPDX-License-Identifier: Apache-2.0
/* What the kernel takes for known, in the real one: two processes, of which each has one stack. */
#include "kernel/bpf_sampler.h"
#include "util/cleanup.h"
#include "test.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HZ = 999, WAIT_MS = 5, PROCESSES = 2, HITS = 20 };

TEST_SKIP_REASON()
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (geteuid())
		return "loading BPF programs needs root";
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	return NULL;
}

static struct {
	pid_t pid;
	uint64_t hash; /* of its stack; 0: it was not met yet */
	size_t full, hits;
} processes[PROCESSES];

/* Of nothing but its registers is anything known: it has one stack, without a frame. */
static void start_one(size_t i)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	processes[i].pid = fork();
	ASSERT(processes[i].pid >= 0);
	if (processes[i].pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setaffinity(0, sizeof(first), &first))
		_exit(1);
	for (;;)
		__asm__ volatile("");
}

static int take(void *ctx, void *record, size_t size)
{
	const struct sample_header *h = record;

	(void)ctx;
	ASSERT(size >= sizeof(*h));
	for (size_t i = 0; i < PROCESSES; i++) {
		if (h->pid != (uint32_t)processes[i].pid)
			continue;
		if (h->type == SAMPLE_FULL && !processes[i].hash)
			processes[i].hash = h->hash;
		if (h->hash != processes[i].hash)
			continue;
		processes[i].full += h->type == SAMPLE_FULL;
		processes[i].hits += h->type == SAMPLE_HIT;
	}
	return 0;
}

/* Until that one was sent in full so often, and all of them have hits enough since. */
static void sample_until(struct bpf_sampler *sampler, size_t which, size_t full)
{
	size_t i;

	while (processes[which].full < full) {
		poll(NULL, 0, WAIT_MS);
		ASSERT(bpf_sampler_drain(sampler, take, NULL) >= 0);
	}
	for (i = 0; i < PROCESSES; i++)
		processes[i].hits = 0;
	for (i = 0; i < PROCESSES;) {
		poll(NULL, 0, WAIT_MS);
		ASSERT(bpf_sampler_drain(sampler, take, NULL) >= 0);
		while (i < PROCESSES && processes[i].hits >= HITS)
			i++;
	}
}

TEST(one_stack_is_asked_for_and_no_other)
{
	/* Each CPU knows for itself: on one alone. */
	static uint64_t first[CPUS_MAX / 64];
	const struct bpf_sampler_options options = {
		.frequency_hz = HZ,
		.max_frames = SAMPLE_FRAMES_DEFAULT,
		.ring_bytes = 1 << 20,
		.targets_only = true,
		.no_kernel = true,
		.only_cpus = first,
	};
	_cleanup_(bpf_sampler_free_p) struct bpf_sampler *sampler = NULL;
	struct cpu_set *cpus = NULL;
	uint64_t asked[2];

	first[0] = 1;
	ASSERT_OK(bpf_sampler_open(&options, &sampler));
	ASSERT_OK(cpu_set_open(&cpus));
	bpf_sampler_send_raws(sampler, RAWS_NONE);
	for (size_t i = 0; i < PROCESSES; i++) {
		start_one(i);
		ASSERT_OK(bpf_sampler_add_target(sampler, (uint32_t)processes[i].pid));
	}
	ASSERT_OK(bpf_sampler_start(sampler, cpus));
	sample_until(sampler, 1, 1);
	ASSERT_EQ(processes[0].full, 1);
	ASSERT_EQ(processes[1].full, 1);
	asked[0] = ~processes[1].hash; /* that it does not know */
	asked[1] = processes[0].hash;
	ASSERT_OK(bpf_sampler_ask_again(sampler, asked, 2));
	sample_until(sampler, 0, 2);
	ASSERT_EQ(processes[0].full, 2);
	ASSERT_EQ(processes[1].full, 1);
	bpf_sampler_stop(sampler);
	for (size_t i = 0; i < PROCESSES; i++) {
		kill(processes[i].pid, SIGKILL);
		waitpid(processes[i].pid, NULL, 0);
	}
	cpu_set_free(cpus);
}
