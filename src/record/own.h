/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes are our own: this one, and the children that it has for pieces of its work (not
 * COMMAND). What they take of the machine is no part of what the machine does by itself.
 */
#pragma once

#include "process/side_band.h"
#include "util/map.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct own {
	pid_t self; /* asked once: it is a system call, and there are many events */
	struct map pids;
};

/* When events are listened to: those that are there. 0 or -ENOMEM: then some are not known. */
int own_init(struct own *own);
void own_fini(struct own *own);
void own_on_event(struct own *own, const struct side_event *event);
/* As of the events so far. */
bool own_has(const struct own *own, uint32_t pid);
