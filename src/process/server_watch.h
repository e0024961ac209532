/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can a page of some process's memory be somebody's to fill, who may never do so? That is a page of
 * a file behind a server (FUSE, NFS, ...), or one of userfaultfd, where users may use that. The
 * kernel tells of each file system that it has a device for (bdi) before anybody can use it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server_watch {
	int fd; /* netlink: devices that come and go; -1: nobody tells */
	bool may_hang;
	bool looked;
	uint64_t heard_ns; /* when news were last asked for */
};

void server_watch_init(struct server_watch *w);
void server_watch_fini(struct server_watch *w);
/* A system call, unless that was asked within the last 20 us. True also if it cannot be told. */
bool server_watch_may_hang(struct server_watch *w);

/* Of a name in /sys/class/bdi: is the file system behind it nobody's to answer for but the
 * kernel's? */
bool bdi_is_local(const char *name);
