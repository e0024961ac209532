/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a process is, for those who read a profile: its executable, user, parent, number in its own
 * PID namespace, and container. Read once a process, while it lives.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CONTAINER_ID_LEN = 64 };

/* What could not be read is 0 or "". */
struct proc_identity {
	int32_t parent_pid;
	int32_t vpid;	   /* in the innermost PID namespace */
	uint32_t uid;	   /* effective; UINT32_MAX: not known */
	uint64_t start_ns; /* CLOCK_REALTIME */
	char path[4096];   /* of the executable, as the process sees it; " (deleted)" cut off */
	char comm[64];	   /* of the main thread */
	char container[CONTAINER_ID_LEN + 1];
};

/* -ESRCH if there is no such process. */
int proc_identity_read(int32_t pid, struct proc_identity *ret);

/* Whose process it is: its real user, whatever it runs as; `otherwise`, if it is gone. */
uint32_t proc_user(int32_t pid, uint32_t otherwise);

/* When a process, or a thread by its tid, began: CLOCK_REALTIME, to a tick. -ESRCH. */
int proc_start_read(int32_t tid, uint64_t *ret_ns);

/* /proc/PID/status: parent_pid, vpid, uid and comm of what it says. */
void proc_status_parse(const char *text, size_t size, struct proc_identity *ret);
/*
 * /proc/PID/cgroup: the 64 hexadecimal digits that Docker, containerd, CRI-O and Podman name a
 * container's cgroup by, of the innermost one; "" if there are none.
 */
void container_id_parse(const char *text, size_t size, char ret[static CONTAINER_ID_LEN + 1]);
