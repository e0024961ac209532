/* SPDX-License-Identifier: Apache-2.0 */
/* What process.c, offline.c, proc_maps.c, mappings.c, files.c, open_file.c and mount_ns.c share. */
#pragma once

#include "process/file_copy.h"
#include "process/maps.h"
#include "process/mounts.h"
#include "process/process.h"
#include "util/patience.h"
#include "util/root_id.h"
#include "util/time_shares.h"

#include <sys/types.h>

enum {
	/* Namespaces (or chroots) other than ours that we hold open; a dense container host has
	 * fewer that start new programs at one time. */
	FOREIGN_ROOTS_MAX = 64,
};

/* The root directory of some processes that differs from ours. */
struct foreign_root {
	struct root_id id;
	int ns_fd;   /* keeps the namespace's mounts together after its last process; or -1 */
	int root_fd; /* O_PATH */
	struct mounts mounts;
	uint64_t used_ns;
};

/* File systems of which is known whether they are behind a server, when nobody may wait for one. */
struct servers {
	struct mounts *own, *others; /* NULL: there are no others */
	bool unknown;		     /* there are, of which nothing is known */
};

/* A file of which there was no copy when it was asked for. */
struct wanted_copy {
	uint32_t file;
	uint64_t next_ns; /* when it is asked for again */
};

/* A file system whose server did not answer. */
struct silent_device {
	uint32_t dev_major, dev_minor;
	uint64_t until_ns; /* not asked before */
	uint64_t pause_ns;
};

/* slow_file.c's */
struct slow_files {
	struct file_copier copier;
	VEC(struct wanted_copy) wanted;
	size_t hand; /* which of them was looked at last */
	VEC(struct silent_device) silent;
	struct patience patience;
};

struct process_table_private {
	uint32_t last_version;
	uint64_t last_image;
	size_t nr_mappings; /* of all processes, when that was counted last, and of forks since */
	size_t looked_at;   /* up to this slot, for lost exits */
	bool lost_again;    /* while these were looked for */
	bool lost;	    /* events were lost: exits may have been among them */
	/* files.c */
	struct map file_by_inode; /* of files whose inode our fd keeps from being used again */
	size_t nr_fds, max_fds;
	struct map fds_of_owner; /* how many of these */
	size_t evict_hand;
	size_t close_unused_at;	  /* how many descriptors */
	VEC(uint32_t) free_files; /* numbers */
	size_t path_bytes;
	size_t forget_at; /* so much of the files' room is taken: files_taken() */
	uint64_t forget_next_ns;
	uint64_t seed;			/* of hashes */
	bool files_full;		/* one found no room, since files_expire() */
	struct time_shares search_time; /* open_file.c */
	/* mount_ns.c */
	struct root_id own_root;
	struct mounts own_mounts;
	uint32_t memfd_major, memfd_minor; /* what memfds and shared memory are of */
	bool memfd_known;
	VEC(struct foreign_root) roots;
	struct slow_files slow;
};

/* The mappings (or something as good) changed. */
void process_touch(struct process_table *t, struct process *proc, uint64_t when_ns);
void process_new_image(struct process_table *t, struct process *proc, uint64_t when_ns);
/* An entry of that pid, of which nothing is known. -ENOSPC, -ENOMEM. */
int process_new(struct process_table *t, int32_t pid, uint64_t when_ns, struct process **ret);

/* --- mappings.c ------------------------------------------------------------------------------- */

/*
 * Puts `m` into the list in place of what it overlaps, and joins neighbours that continue each
 * other. 1 if that changed anything, 0 if not, -ENOSPC if more than list->max would result.
 */
int mapping_list_carve(struct mapping_list *list, const struct mapping *m);
int mapping_list_copy(struct mapping_list *to, const struct mapping_list *from);
bool mapping_list_equal(const struct mapping_list *a, const struct mapping_list *b);

/* --- proc_maps.c ------------------------------------------------------------------------------ */

/*
 * Calls `each` for every line of the process's maps; if the leader has ended, of a living thread's.
 * The number of bytes read (0: no address space), or negative errno, or what `each` returned.
 */
int proc_maps_read(int32_t pid, int (*each)(void *ctx, const struct maps_entry *entry), void *ctx);
/* A thread of the process that has an address space: usually `pid` itself. */
int32_t proc_living_thread(int32_t pid);

/* --- files.c ---------------------------------------------------------------------------------- */

int files_init(struct process_table *t);
void files_fini(struct process_table *t);
size_t files_bytes(const struct process_table *t);
/* The file's index; 0 for what is anonymous. */
int files_lookup(struct process_table *t, const struct file_key *key, const char *path,
		 uint32_t *ret);
/* Reads what identifies the file and makes it FILE_OPEN or FILE_UNREADABLE; takes the fd over. */
int files_identify(struct process_table *t, struct mapped_file *file, int fd);
/* files_identify() with a copy of the file in a memfd. */
int files_identify_copy(struct process_table *t, struct mapped_file *file, int fd,
			const struct file_copy *copy);
/* Identifies an image in memory, which the caller stores. -ENOEXEC: none of its segments has
 * code. */
int files_identify_image(struct mapped_file *file, const struct elf_file *elf);
/* Closes those that no process of the table maps any more, when there are many more than before,
 * and forgets those that are not held either. Not while mappings are made. */
void files_expire(struct process_table *t);
/* It can't be had; `error` negative. Returns it. */
int files_fail(struct mapped_file *file, int error);
/* One that is found by its index only. -ENOSPC: there are too many. */
int files_add(struct process_table *t, const struct file_key *key, const char *path,
	      struct mapped_file **ret);

/* --- open_file.c ------------------------------------------------------------------------------ */

/*
 * The device of a mapping is the superblock's. fstat() says the same, except where a file system
 * has numbers of its own for its parts (subvolumes, layers).
 */
bool has_own_devices(int fd);
/*
 * A readable fd for a path below a root directory (resolved there), regular files only. Nothing but
 * a regular file is ever opened for reading: devices and FIFOs have side effects. `servers`: of
 * whom nothing may be asked; NULL: all may be waited for. -EAGAIN: a server would have to be asked.
 */
int open_below(const struct servers *servers, int root_fd, const char *path,
	       const struct file_key *key, int *ret);
/* The file behind a mapping, whoever has to be waited for, also below these roots. */
int open_file_patiently(int32_t pid, const struct mapping *m, const struct mapped_file *file,
			const int *roots, size_t nr_roots, int *ret);

/* --- slow_file.c ------------------------------------------------------------------------------ */

void slow_files_init(struct process_table *t);
void slow_files_fini(struct process_table *t);
/* Of a namespace's; 0: ours. */
/* The inode of the process's mount namespace; 0: not known. */
uint64_t mount_ns_of(const struct process_table *t, int32_t pid);
struct servers servers_of(const struct process_table *t, uint64_t mount_ns);
/* Is a file system with that number behind a server that may never answer, or may it be? */
bool is_slow(const struct process_table *t, const struct servers *servers, uint32_t dev_major,
	     uint32_t dev_minor);
/* Asks for a copy of a file that is_slow(). As process_open_file(); -EINPROGRESS: it may come. */
int slow_file_open(struct process_table *t, const struct process *proc, const struct mapping *m,
		   struct mapped_file *file);
/* Is a copy still of what has the file's number? The file system's may be the next one's. */
bool slow_file_is_current(const struct process_table *t, struct mapped_file *file);
/* A copied file is closed. */
void slow_file_closed(struct process_table *t, struct mapped_file *file);
/* It will be forgotten. */
void slow_file_forget(struct process_table *t, const struct mapped_file *file);

/* --- mount_ns.c ------------------------------------------------------------------------------- */

int mount_ns_init(struct process_table *t);
void mount_ns_fini(struct process_table *t);
/* Remembers where the process lives. Does nothing if it is gone. */
void mount_ns_note(struct process_table *t, struct process *proc, uint64_t when_ns);
/* Closes what no process of the table is in any more and was last used before `before_ns`. */
void mount_ns_expire(struct process_table *t, uint64_t before_ns);
/* A kept root of the namespace, the newest below `*i`, which is its place then; NULL: there is
 * none. */
struct foreign_root *mount_ns_root(const struct process_table *t, uint64_t mount_ns, size_t *i);
