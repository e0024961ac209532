/* SPDX-License-Identifier: Apache-2.0 */
/* What an epoll loop waits for: descriptors, and timers (timerfd) among them. 0 or -errno. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

/* What is ready is told as `data.fd`. */
static inline int loop_watch(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static inline int loop_unwatch(int epoll_fd, int fd)
{
	return epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL) ? -errno : 0;
}

/* Expires once. `flags` are timerfd_settime()'s; 0 ns disarms the timer. */
static inline int loop_set_timer(int timer_fd, int flags, uint64_t ns)
{
	const struct itimerspec at = {
		.it_value = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) },
	};

	return timerfd_settime(timer_fd, flags, &at, NULL) ? -errno : 0;
}
