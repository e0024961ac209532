// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel's run-time statistics say of a program that does nothing, on the same events as
 * sonde's: floor HZ SECONDS prints nanoseconds a run, and runs. No profiler can cost less here.
 */
#include "util/cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CPUS_MAX = 1024 };

/* return 0 */
static const struct bpf_insn nothing[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* 0 or a negative errno; the event stays open until the program ends. */
static int sample_cpu(int prog, int cpu, unsigned int hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
		.exclude_idle = 1,
		.exclude_guest = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) ? -errno : 0;
}

int main(int argc, char **argv)
{
	_cleanup_close_ int prog = -1, stats = -1;
	struct bpf_prog_info before = { 0 }, after = { 0 };
	__u32 len = sizeof(before);
	unsigned int hz, seconds;
	int cpu, r = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: floor HZ SECONDS\n");
		return 2;
	}
	hz = (unsigned int)strtoul(argv[1], NULL, 10);
	seconds = (unsigned int)strtoul(argv[2], NULL, 10);
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	prog = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "floor", "GPL", nothing,
			     sizeof(nothing) / sizeof(*nothing), NULL);
	if (stats < 0 || prog < 0) {
		fprintf(stderr, "floor: cannot load: %s\n", strerror(errno));
		return 1;
	}
	for (cpu = 0; cpu < CPUS_MAX && cpu < sysconf(_SC_NPROCESSORS_ONLN) && !r; cpu++)
		r = sample_cpu(prog, cpu, hz);
	if (r) {
		fprintf(stderr, "floor: cannot sample: %s\n", strerror(-r));
		return 1;
	}
	usleep(300000);
	bpf_obj_get_info_by_fd(prog, &before, &len);
	sleep(seconds);
	len = sizeof(after);
	bpf_obj_get_info_by_fd(prog, &after, &len);
	printf("%.1f %llu\n",
	       (double)(after.run_time_ns - before.run_time_ns) /
		       (double)(after.run_cnt - before.run_cnt + !(after.run_cnt - before.run_cnt)),
	       (unsigned long long)(after.run_cnt - before.run_cnt));
	return 0;
}
