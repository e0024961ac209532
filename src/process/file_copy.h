/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of files that are behind a server (mounts.h), which may never answer: a child process asks
 * it, and copies the file into a memfd. Who does not answer in time costs a child, for a
 * while. How many are under way at a time, and how many bytes copies take, is limited, and no owner
 * has all of it.
 */
#pragma once

#include "elf/file_id.h"
#include "process/process.h"
#include "util/child.h"

enum {
	COPIES_AT_ONCE = 8,
	COPY_ROOTS_MAX = 4,
};

/* What the child found. */
struct file_copy {
	int32_t error; /* 0 or negative errno */
	uint32_t owner;
	uint64_t size;
	struct file_identity identity;
};

/* What is to be copied: all borrowed. */
struct copy_order {
	int32_t pid;	/* a process that maps it there */
	uint32_t owner; /* of the process: whose share it is of */
	uint64_t start, end;
	const struct mapped_file *file;
	int roots[COPY_ROOTS_MAX]; /* below which its path may be, beside the process's own */
	size_t nr_roots;
};

struct copy_job {
	struct child child; /* pid 0: none */
	int out_fd;
	uint32_t file, owner;
	uint64_t bytes; /* that it may take */
	uint64_t give_up_ns;
	bool given_up; /* killed, and not over yet */
	struct file_key key;
};

struct file_copier {
	char *const *program; /* argv of one that is file_copy_child_main(); NULL: fork */
	uint64_t bytes_max;
	uint64_t bytes, bytes_of_jobs;
	struct map bytes_of_owner; /* of copies */
	struct map jobs_of_owner;
	struct copy_job jobs[COPIES_AT_ONCE];
	size_t nr_jobs;
};

void file_copier_init(struct file_copier *c);
/* Ends what is under way; nobody waits for what cannot be ended. */
void file_copier_fini(struct file_copier *c);
/* 0; -EAGAIN: too many are under way. */
int file_copier_start(struct file_copier *c, const struct copy_order *order);
struct copy_job *file_copier_find(struct file_copier *c, uint32_t file);
/*
 * What came of it, waiting for it so long. 0: the memfd and what is known of the file;
 * -EINPROGRESS; -ETIMEDOUT: it has been given up; -EFBIG: it is larger than any copy may be;
 * -ENOSPC: than there is room for now; or what the child met.
 */
int file_copier_take(struct file_copier *c, struct copy_job *job, int wait_ms, int *ret_fd,
		     struct file_copy *ret);
/* The file is not needed any more. */
void file_copier_drop(struct file_copier *c, struct copy_job *job);
/* A copy is kept, or closed. */
int file_copier_keep(struct file_copier *c, uint32_t owner, uint64_t bytes);
void file_copier_give_back(struct file_copier *c, uint32_t owner, uint64_t bytes);

/* What the child does; argv of util/child.h. */
int file_copy_child_main(int argc, char **argv);
