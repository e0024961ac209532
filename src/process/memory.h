/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of live processes. A page of it may be of a file whose server never answers (FUSE, NFS),
 * or userfaultfd's: whoever reads it then waits for ever, and no signal but SIGKILL ends that, if
 * any does. Who records everybody's processes has that done by a child, wherever such a page is
 * possible (server_watch.h), and gives the child up when it does not answer.
 *
 * What takes the lock of a process's mappings may wait for ever, too: a thread of the process may
 * wait for such a server in mmap(), with that lock (FUSE's FOPEN_DIRECT_IO, NFS).
 *
 * The guard is one for the program, since memory is read at any depth of the code of runtimes; all
 * reads are by one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Reads memory of a live process, all of it or nothing. A negative errno: -ESRCH, -EPERM, -EFAULT;
 * -ETIMEDOUT: it waits for somebody, or its owner had that often enough. */
int process_read_memory(int32_t pid, uint64_t addr, void *to, size_t size);

/* A larger one is -EFBIG. */
enum { PROCESS_ENVIRON_MAX = 1 << 20 };

/* /proc/PID/environ, the caller's (free()), with a NUL behind it. */
int process_read_environ(int32_t pid, char **ret, size_t *ret_size);

/* /proc/PID/cmdline, at most `size` bytes (PROCESS_ENVIRON_MAX): their number. */
int process_read_command(int32_t pid, void *to, size_t size);

/* /proc/PID/maps, while it is read; of one process at a time. */
struct process_maps {
	int32_t pid;
	int fd; /* -1: a child's */
	uint64_t at;
};

int process_open_maps(int32_t pid, struct process_maps *ret);
/* As read(), but a negative errno, and size is at most PROCESS_ENVIRON_MAX. */
int process_read_maps(struct process_maps *maps, void *to, size_t size);
void process_close_maps(struct process_maps *maps);

/* The file of a mapping that has just these bounds (/proc/PID/map_files), O_PATH. */
int process_open_map_file(int32_t pid, uint64_t start, uint64_t end, int *ret);

enum memory_guard {
	MEMORY_UNGUARDED,
	MEMORY_GUARDED, /* where it is possible that a page never comes */
	MEMORY_GUARDED_ALWAYS,
};

/*
 * How memory is read from now on. `program`: argv of one that is memory_child_main(); NULL: fork.
 * Each setting is a use: the guard ends when as many have ended. A guard that is there stays as it
 * is.
 */
void memory_guard_begin(enum memory_guard guard, char *const *program);
void memory_guard_end(void);
/* What is done every 10 ms while the child is waited for: it reads no memory. NULL: nothing is. */
void memory_guard_meanwhile(void (*run)(void *ctx), void *ctx);
/* Now and then: has the child ready before it is needed, since a process may soon be gone. */
void memory_guard_tick(void);
/* Reads that were given up so far; of which process the last one was, which may be NULL. */
uint64_t memory_guard_given_up(int32_t *ret_pid);

/* What the child does; argv of util/child.h. */
int memory_child_main(int argc, char **argv);
