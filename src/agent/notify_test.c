// SPDX-License-Identifier: Apache-2.0
/* How long a loop may wait that a service manager watches. */
#include "agent/notify.h"

#include "test.h"
#include "util/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager that wants to hear so often. */
static int start_manager(const char *usec)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char name[64];

	snprintf(name, sizeof(name), "@sonde-notify-test-%d", getpid());
	memcpy(to.sun_path + 1, name + 1, strlen(name) - 1);
	ASSERT_OK(bind(fd, (struct sockaddr *)&to,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))));
	ASSERT_OK(setenv("NOTIFY_SOCKET", name, 1));
	if (usec)
		ASSERT_OK(setenv("WATCHDOG_USEC", usec, 1));
	return fd;
}

TEST(a_watchdog_is_heard_of_in_time)
{
	_cleanup_close_ int manager = start_manager("1000000000");
	struct notify n;
	char said[64];
	int ms;

	notify_open(&n);
	ASSERT_EQ(notify_wait_ms(&n), 0);
	notify_alive(&n);
	ASSERT_EQ(recv(manager, said, sizeof(said), 0), 10);
	ASSERT(!memcmp(said, "WATCHDOG=1", 10));
	ms = notify_wait_ms(&n);
	ASSERT(ms > 1 && ms <= 500001);
	notify_close(&n);
}

TEST(without_one_it_waits_for_ever)
{
	_cleanup_close_ int manager = start_manager(NULL);
	struct notify n;

	ASSERT(manager >= 0);
	notify_open(&n);
	ASSERT_EQ(notify_wait_ms(&n), -1);
	notify_close(&n);
	ASSERT_OK(unsetenv("NOTIFY_SOCKET"));
	ASSERT_OK(setenv("WATCHDOG_USEC", "1000", 1));
	notify_open(&n);
	ASSERT_EQ(notify_wait_ms(&n), -1);
	notify_close(&n);
}
