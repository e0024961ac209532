// SPDX-License-Identifier: Apache-2.0
#include "agent/notify.h"

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A path, or '@' and a name of the abstract name space. */
static int connect_to(const char *name, int *ret)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	_cleanup_close_ int fd = -1;

	if ((*name != '/' && *name != '@') || len >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, name, len);
	if (*name == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

/* Microseconds, of this process if it is named. */
static uint64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us;

	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	us = strtoull(usec, NULL, 10);
	return us > UINT64_MAX / 1000 ? 0 : us * 1000;
}

void notify_open(struct notify *n)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int r;

	*n = (struct notify){ .fd = -1 };
	if (!name)
		return;
	r = connect_to(name, &n->fd);
	if (r)
		log_warn("cannot tell the service manager at '%s': %s", name, strerror(-r));
	else
		n->watchdog_ns = watchdog_ns();
}

void notify_close(struct notify *n)
{
	close_p(&n->fd);
}

void notify_send(const struct notify *n, const char *state)
{
	if (n->fd >= 0 && send(n->fd, state, strlen(state), MSG_NOSIGNAL) < 0)
		log_debug("the service manager was not told %s: %s", state, strerror(errno));
}

void notify_alive(struct notify *n)
{
	uint64_t now;

	if (!n->watchdog_ns)
		return;
	now = now_ns();
	/* As sd_watchdog_enabled(3) recommends. */
	if (now - n->last_ns < n->watchdog_ns / 2)
		return;
	n->last_ns = now;
	notify_send(n, "WATCHDOG=1");
}

int notify_wait_ms(const struct notify *n)
{
	uint64_t due = n->last_ns + n->watchdog_ns / 2, now = now_ns(), ms;

	if (!n->watchdog_ns)
		return -1;
	if (now >= due)
		return 0;
	ms = (due - now) / 1000000 + 1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
