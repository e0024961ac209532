/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file systems may never answer: those behind a server (NFS, FUSE, ...). Told from
 * /proc/PID/mountinfo by their device numbers, without asking any server. One such file is kept
 * open for each mount namespace: the kernel says when it has changed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

enum mounts_answer {
	MOUNTS_UNKNOWN, /* not of this namespace, or unmounted */
	MOUNTS_ANSWERS,
	MOUNTS_ANYBODYS, /* an overlay that anybody may have mounted: above what, nobody can tell */
	MOUNTS_MAY_HANG,
};

struct mount_device {
	uint32_t dev_major, dev_minor;
	enum mounts_answer answer;
};

/* A mount: where it is does not matter. */
struct mount_number {
	uint64_t id; /* statx()'s stx_mnt_id */
	enum mounts_answer answer;
};

struct mounts {
	int fd; /* mountinfo; -1: none */
	bool was_read;
	uint64_t next_ns; /* it is not read again before: that took long */
	uint32_t version; /* of what was read */
	bool anybodys; /* of a user namespace that is not ours: no privilege is needed to mount */
	VEC(struct mount_device) devices; /* sorted by number, each once */
	VEC(struct mount_number) numbers; /* sorted */
	bool any_may_hang;
};

/* `proc_dir`: "/proc/PID". One that failed has nothing, and knows nothing. */
int mounts_open(struct mounts *m, const char *proc_dir);
void mounts_close(struct mounts *m);
/* Of the file system with that device number, as mappings have it (the superblock's). */
enum mounts_answer mounts_look(struct mounts *m, uint32_t dev_major, uint32_t dev_minor);
/* Of the file system that is mounted there, whatever device number its files have. */
enum mounts_answer mounts_look_at(struct mounts *m, uint64_t mount_id);
/* Has the namespace any that may hang? True also if that cannot be told. */
bool mounts_any_may_hang(struct mounts *m);
/* Moves when file systems have come or gone; 0: that cannot be told. */
uint32_t mounts_version(struct mounts *m);
/* Replaces what is known by that of a mountinfo's text, which is changed. 0 or -ENOMEM. */
int mounts_parse(struct mounts *m, char *text);
