// SPDX-License-Identifier: Apache-2.0
/* Which CPUs are sampled, with doubles of perf and of BPF's links. */
#include "kernel/sampling.h"
#include "test.h"
#include "util/cpus.h"

#include <errno.h>
#include <unistd.h>

enum { FD = 1000, PROGRAM = 1 };

static int nr_absent; /* so many openings fail: perf does not know the CPU yet */
static int error = ENODEV;
static int nr_links;

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	(void)number;
	if (nr_absent && nr_absent--) {
		errno = error;
		return -1;
	}
	return FD;
}

struct bpf_link *__wrap_bpf_program__attach_perf_event(struct bpf_program *program, int fd);
struct bpf_link *__wrap_bpf_program__attach_perf_event(struct bpf_program *program, int fd)
{
	ASSERT(program);
	ASSERT_EQ(fd, FD);
	nr_links++;
	return (struct bpf_link *)program;
}

int __wrap_bpf_link__destroy(struct bpf_link *link);
int __wrap_bpf_link__destroy(struct bpf_link *link)
{
	nr_links -= !!link;
	return 0;
}

static struct cpu_set *cpus;
static struct sampling sampling = { .program = (struct bpf_program *)PROGRAM, .frequency_hz = 99 };

static void start(void)
{
	ASSERT_OK(cpu_set_open(&cpus));
}

static void stop(void)
{
	cpu_set_leave(cpus, &sampling);
	cpu_set_free(cpus);
	sampling_fini(&sampling);
	ASSERT_EQ(nr_links, 0);
}

TEST(a_cpu_that_perf_learns_of_late_is_sampled)
{
	int online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cpu;

	start();
	nr_absent = online + 1; /* all at first, then one of them once more */
	ASSERT_OK(cpu_set_listen(cpus, sampling_set_cpu, &sampling));
	ASSERT_EQ(nr_links, 0);
	ASSERT(cpu_set_missing_ns(cpus, &cpu) > 0);
	ASSERT_OK(cpu_set_sync(cpus));
	ASSERT_EQ(nr_links, online - 1);
	ASSERT(cpu_set_missing_ns(cpus, &cpu) > 0);
	ASSERT_OK(cpu_set_sync(cpus));
	ASSERT_EQ(nr_links, online);
	ASSERT_EQ(cpu_set_missing_ns(cpus, &cpu), 0);
	ASSERT_OK(cpu_set_sync(cpus));
	ASSERT_EQ(nr_links, online);
	stop();
}

TEST(what_the_kernel_refuses_is_an_error)
{
	start();
	nr_absent = 1;
	error = EACCES;
	ASSERT_ERR(cpu_set_listen(cpus, sampling_set_cpu, &sampling), EACCES);
	stop();
}

TEST(the_frequency_changes_on_all_cpus_or_on_none)
{
	int online = (int)sysconf(_SC_NPROCESSORS_ONLN);

	start();
	ASSERT_OK(cpu_set_listen(cpus, sampling_set_cpu, &sampling));
	ASSERT_OK(sampling_set_frequency(&sampling, 199));
	ASSERT_EQ(sampling.frequency_hz, 199);
	ASSERT_EQ(nr_links, online);
	nr_absent = 1;
	error = EINVAL;
	ASSERT_ERR(sampling_set_frequency(&sampling, 99), EINVAL);
	ASSERT_EQ(sampling.frequency_hz, 199);
	ASSERT_EQ(nr_links, online);
	/* One that goes meanwhile is no error: it is told as gone. */
	nr_absent = 1;
	error = ENODEV;
	ASSERT_OK(sampling_set_frequency(&sampling, 99));
	ASSERT_EQ(nr_links, online - 1);
	stop();
}

TEST(a_cpu_that_goes_is_left)
{
	start();
	ASSERT_OK(cpu_set_listen(cpus, sampling_set_cpu, &sampling));
	ASSERT_OK(sampling_set_cpu(&sampling, 0, false));
	ASSERT_EQ(nr_links, sysconf(_SC_NPROCESSORS_ONLN) - 1);
	stop();
}
