/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service manager is told: sd_notify(3), the protocol of systemd's Type=notify, over the
 * socket that $NOTIFY_SOCKET names. Never waits; without the variable nothing is told.
 */
#pragma once

#include <stdint.h>

struct notify {
	int fd;		      /* -1: nobody wants to hear */
	uint64_t watchdog_ns; /* how often it wants to hear; 0: it does not */
	uint64_t last_ns;
};

/* Out of the environment, which is read once. Logging: what it names cannot be reached. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
/* "READY=1", "STOPPING=1": lines of sd_notify(3). */
void notify_send(const struct notify *n, const char *state);
/* We are alive; tells it as often as it is wanted. */
void notify_alive(struct notify *n);
/* How long the caller may wait for other things before he calls that again; -1: for ever. */
int notify_wait_ms(const struct notify *n);
