// SPDX-License-Identifier: Apache-2.0
/* Which CPUs are sampled, with doubles of perf and of BPF's links. */
#include "kernel/sampling.h"
#include "test.h"
#include "util/cpus.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
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

static int nr_on; /* switched on less those that were switched off */

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	ASSERT_EQ(fd, FD);
	ASSERT(request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE);
	nr_on += request == PERF_EVENT_IOC_ENABLE ? 1 : -1;
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

TEST(a_pause_switches_all_off)
{
	int online = (int)sysconf(_SC_NPROCESSORS_ONLN);

	start();
	ASSERT_OK(cpu_set_listen(cpus, sampling_set_cpu, &sampling));
	ASSERT_OK(sampling_pause(&sampling, true));
	ASSERT_EQ(nr_on, -online);
	ASSERT_EQ(nr_links, online);
	ASSERT_OK(sampling_pause(&sampling, false));
	ASSERT_EQ(nr_on, 0);
	/* One that goes and comes meanwhile is opened at the end. */
	ASSERT_OK(sampling_pause(&sampling, true));
	ASSERT_OK(sampling_set_cpu(&sampling, 0, false));
	ASSERT_OK(sampling_set_cpu(&sampling, 0, true));
	ASSERT_EQ(nr_links, online - 1);
	ASSERT_OK(sampling_pause(&sampling, false));
	ASSERT_EQ(nr_links, online);
	ASSERT_EQ(nr_on, -1);
	stop();
	nr_on = 0;
}

TEST(nothing_is_opened_before_the_end_of_a_pause)
{
	int online = (int)sysconf(_SC_NPROCESSORS_ONLN);

	start();
	sampling.paused = true;
	ASSERT_OK(cpu_set_listen(cpus, sampling_set_cpu, &sampling));
	ASSERT_EQ(nr_links, 0);
	ASSERT_OK(sampling_set_frequency(&sampling, 49));
	ASSERT_EQ(nr_links, 0);
	nr_absent = 1;
	error = ENODEV;
	ASSERT_OK(sampling_pause(&sampling, false));
	ASSERT_EQ(nr_links, online - 1);
	ASSERT_EQ(nr_on, 0);
	/* Another frequency during a pause: those of the old one are closed. */
	ASSERT_OK(sampling_pause(&sampling, true));
	ASSERT_OK(sampling_set_frequency(&sampling, 99));
	ASSERT_EQ(nr_links, 0);
	nr_absent = 1;
	error = EACCES;
	ASSERT_ERR(sampling_pause(&sampling, false), EACCES);
	ASSERT_EQ(nr_links, online - 1);
	stop();
	nr_on = 0;
}

TEST(others_than_those_that_are_wanted_are_not_opened)
{
	uint64_t only[CPUS_MAX / 64] = { 1 };

	start();
	sampling.only_cpus = only;
	ASSERT_OK(cpu_set_listen(cpus, sampling_set_cpu, &sampling));
	ASSERT_EQ(nr_links, 1);
	ASSERT_OK(sampling_set_frequency(&sampling, 49));
	ASSERT_EQ(nr_links, 1);
	ASSERT_OK(sampling_pause(&sampling, true));
	ASSERT_OK(sampling_pause(&sampling, false));
	ASSERT_EQ(nr_links, 1);
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
