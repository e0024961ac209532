/* SPDX-License-Identifier: Apache-2.0 */
/* The few fields of /proc/PID/stat that tell what a process is and whether it still lives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_stat {
	char state; /* R S D T Z X ... */
	int32_t parent_pid;
	int32_t group_pid, session_pid; /* their leaders; 0: of another PID namespace */
	bool has_terminal;
	uint32_t flags; /* PF_* */
	uint64_t nr_threads;
	uint64_t start_time; /* clock ticks since boot */
};

/* -EINVAL if it is no such line. */
int proc_stat_parse(const char *text, size_t size, struct proc_stat *ret);
/* Of /proc/PID/stat; -ESRCH if there is no such process (or thread). */
int proc_stat_read(int32_t pid, struct proc_stat *ret);
/* There is no such process, not even a zombie. One system call; false says nothing. */
bool proc_is_gone(int32_t pid);
/* It has ended, or is just about to: no thread of it runs user code any more. */
bool proc_stat_is_over(const struct proc_stat *stat);
bool proc_stat_is_kernel_thread(const struct proc_stat *stat);
