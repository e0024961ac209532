// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/PID/stat: "pid (comm) state ppid ...". The comm may hold blanks, parentheses and newlines,
 * so the fields are counted from the last ')'.
 */
#include "process/proc_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"

enum {
	/* Numbers of proc(5). */
	FIELD_STATE = 3,
	FIELD_PPID = 4,
	FIELD_PGRP = 5,
	FIELD_SESSION = 6,
	FIELD_TTY_NR = 7,
	FIELD_FLAGS = 9,
	FIELD_NUM_THREADS = 20,
	FIELD_STARTTIME = 22,

	/* include/linux/sched.h: part of what /proc shows since ever. */
	FLAG_EXITING = 0x00000004,
	FLAG_KTHREAD = 0x00200000,
};

static bool parse_field(const char *field, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	if (len && *field == '-') {
		*ret = 0;
		return true;
	}
	if (!len || len > 20)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (field[i] < '0' || field[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(field[i] - '0');
	}
	*ret = value;
	return true;
}

static bool take_field(struct proc_stat *s, int number, const char *field, size_t len)
{
	uint64_t value;

	if (number == FIELD_STATE) {
		s->state = *field;
		return len == 1;
	}
	if (!parse_field(field, len, &value))
		return false;
	if (number == FIELD_PPID)
		s->parent_pid = (int32_t)value;
	else if (number == FIELD_PGRP)
		s->group_pid = (int32_t)value;
	else if (number == FIELD_SESSION)
		s->session_pid = (int32_t)value;
	else if (number == FIELD_TTY_NR)
		s->has_terminal = value != 0;
	else if (number == FIELD_FLAGS)
		s->flags = (uint32_t)value;
	else if (number == FIELD_NUM_THREADS)
		s->nr_threads = value;
	else if (number == FIELD_STARTTIME)
		s->start_time = value;
	return true;
}

int proc_stat_parse(const char *text, size_t size, struct proc_stat *ret)
{
	const char *p = memrchr(text, ')', size), *end = text + size;
	struct proc_stat s = { 0 };

	if (!p)
		return -EINVAL;
	p++;
	for (int number = FIELD_STATE; number <= FIELD_STARTTIME; number++) {
		const char *field;

		if (p == end || *p++ != ' ')
			return -EINVAL;
		field = p;
		while (p < end && *p != ' ' && *p != '\n')
			p++;
		if (p == field || !take_field(&s, number, field, (size_t)(p - field)))
			return -EINVAL;
	}
	*ret = s;
	return 0;
}

bool proc_is_gone(int32_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

int proc_stat_read(int32_t pid, struct proc_stat *ret)
{
	char path[32], text[1024];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	return proc_stat_parse(text, (size_t)n, ret);
}

bool proc_stat_is_over(const struct proc_stat *stat)
{
	/* A leader that ended first stays a zombie while its threads live on. */
	return stat->nr_threads <= 1 &&
	       (stat->state == 'Z' || stat->state == 'X' || stat->flags & FLAG_EXITING);
}

bool proc_stat_is_kernel_thread(const struct proc_stat *stat)
{
	return stat->flags & FLAG_KTHREAD;
}
