/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a process is, for those who read a profile: its executable, user, parent, number in its own
 * PID namespace, and container. Read once a process, while it lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONTAINER_ID_LEN = 64,
	POD_UID_LEN = 36,
	SERVICE_SIZE = 256,
	ATTRIBUTES_SIZE = 4096,
	COMMAND_SIZE = 1024,
	CGROUP_SIZE = 512,
};

/* What could not be read is 0 or "". */
struct proc_identity {
	int32_t parent_pid;
	int32_t vpid;			/* in the innermost PID namespace */
	int32_t group_pid, session_pid; /* their leaders; 0: of another PID namespace */
	bool has_terminal;
	uint32_t uid; /* effective; UINT32_MAX: not known */
	uint32_t real_uid, saved_uid;
	uint64_t start_ns;    /* CLOCK_REALTIME */
	uint64_t start_ticks; /* of /proc, since boot: what tells it from others of its number */
	char path[4096];      /* of the executable, as the process sees it; " (deleted)" cut off */
	char comm[64];	      /* of the main thread */
	char command[COMMAND_SIZE]; /* argv[0]; "" if it is longer than that */
	bool is_executing; /* it has a new program, but no command line yet: `path` is of that, and
			    * the rest may be of the one before */
	bool in_our_root;  /* its "/" is ours: so are its users */
	char container[CONTAINER_ID_LEN + 1];
	char pod[POD_UID_LEN + 1]; /* of Kubernetes */
	char cgroup[CGROUP_SIZE];  /* "0::/path"; "" if it is longer than that */
	/* What its environment said when it was executed: OTEL_SERVICE_NAME, and
	 * OTEL_RESOURCE_ATTRIBUTES (util/pairs.h, not checked); "" if it is longer than that. */
	char service[SERVICE_SIZE], attributes[ATTRIBUTES_SIZE];
	/* util/pairs.h; "process.environment_variable.NAME=VALUE" of those that were asked for, and
	 * have room. */
	char variables[ATTRIBUTES_SIZE];
};

/* `variables`: names of variables, with commas between them; or NULL. -ESRCH if there is no such
 * process. */
int proc_identity_read(int32_t pid, const char *variables, struct proc_identity *ret);

/* Whose process it is: its real user, whatever it runs as; `otherwise`, if it is gone. */
uint32_t proc_user(int32_t pid, uint32_t otherwise);

/* When a process, or a thread by its tid, began: CLOCK_REALTIME, to a tick. -ESRCH. */
int proc_start_read(int32_t tid, uint64_t *ret_ns);

/* /proc/PID/status: parent_pid, vpid, uid and comm of what it says. */
void proc_status_parse(const char *text, size_t size, struct proc_identity *ret);
/*
 * /proc/PID/cgroup: the 64 hexadecimal digits that Docker, containerd, CRI-O and Podman name a
 * container's cgroup by, of the innermost one; "" if there are none. They are all of a group's
 * name, or stand behind the runtime's: "docker-ID.scope", "PARENT.slice:cri-containerd:ID".
 */
void container_id_parse(const char *text, size_t size, char ret[static CONTAINER_ID_LEN + 1]);
/*
 * /proc/PID/cgroup: the UID of the Kubernetes pod, by the group below "kubepods" that the kubelet
 * names "pod" and the UID, "-" written as "_" by systemd; "" if there is none.
 */
void pod_uid_parse(const char *text, size_t size, char ret[static POD_UID_LEN + 1]);
/*
 * /proc/PID/cgroup, too: the line of the unified hierarchy, or where there is none systemd's; "" if
 * it does not fit.
 */
void cgroup_line_parse(const char *text, size_t size, char ret[static CGROUP_SIZE]);
/* /proc/PID/environ: service, attributes and variables of what it says. */
void proc_environ_parse(const char *text, size_t size, const char *variables,
			struct proc_identity *ret);
