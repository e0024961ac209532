/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that matter, their executable mappings over time, and the files behind these.
 *
 * Two sources feed it: side_band events (complete for what happens after the start) and /proc (for
 * what was there before, read only when somebody asks for a process: an idle machine costs
 * nothing). It opens files and reads ELF headers; it knows nothing of unwind tables or BPF.
 *
 * One thread owns it. Everything returned points into it and lives until the next call that changes
 * it, except files that are held. Files that no process maps and nobody holds are forgotten in
 * time, and their numbers used again.
 */
#pragma once

#include "abi/unwind.h"
#include "elf/elf_file.h"
#include "elf/file_id.h"
#include "process/side_band.h"
#include "util/map.h"
#include "util/vec.h"

/* What tells one file from another: the inode behind the mapping, or the kind of special mapping.
 */
struct file_key {
	uint32_t dev_major, dev_minor;
	uint64_t inode; /* 0: special, told apart by path ("[vdso]") */
};

enum {
	/* One that forks faster than it is expired; an entry is about 150 bytes and its mappings.
	 */
	PROCESSES_MAX = 1 << 17,
	/* Distinct files mapped executable, or fewer if their paths are long. */
	FILES_MAX = 1 << 16,
	/* Mappings of all processes together, 32 bytes each. */
	ALL_MAPPINGS_MAX = 1 << 19,
};

struct file_segment {
	uint64_t offset, vaddr,
		size; /* an executable PT_LOAD: file bytes [offset, offset + size) */
};

enum {
	/* Stands for files that there was no room for: unreadable. MAPPING_ANON is the first. */
	MAPPED_BEYOND = 1,
	FILE_OWNER_NONE = UINT32_MAX,
};

enum file_state {
	FILE_NEW,	 /* never opened */
	FILE_OPEN,	 /* identified: fd, segments and build-id are known */
	FILE_UNREADABLE, /* opening or reading failed for good; `error` says why */
};

struct mapped_file {
	uint32_t index; /* in process_table.files; 0 is anonymous memory (MAPPING_ANON) */
	uint32_t refs;	/* of others than mappings: process_hold_file() */
	uint32_t shown; /* the agent's: its number for the walkers, or 0 */
	uint32_t owner; /* a user's number; of one that was never opened FILE_OWNER_NONE */
	struct file_key key;
	char *path;  /* as its first process saw it; "[anon]", "[vdso]", "//anon" and its like are
			"[anon]" */
	char *place; /* where its debug files are looked for, if not beside `path`; NULL */
	enum file_state state;
	int error; /* negative errno */
	int fd; /* the table's; -1: not open, special, no ELF file, or closed to save descriptors */
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint8_t build_id_len;
	struct file_identity identity; /* of one that is_elf */
	VEC(struct file_segment) segments;
	bool is_copy; /* `fd` is a copy of it in memory: its server may never answer */
	bool is_elf; /* an open file that is no ELF file is code of unknown form: treat as anonymous
		      */
	/* private */
	bool unused;		 /* when that was looked at last */
	bool at_home;		 /* somebody mapped it whose root is ours */
	bool own_devices;	 /* its file system's parts may have equal inodes */
	uint64_t size, mtime_ns; /* of the contents that were read */
	uint32_t mounts_version; /* of a copy: our mounts when it was made; 0: it is not of these */
	int32_t mapped_by;	 /* of a copy: who was seen to map the file */
	uint64_t looked_ns;	 /* when it was last looked whether they are the same */
	uint8_t *image;		 /* the vDSO's */
	uint8_t nr_failures;
};

struct mapping {
	uint64_t start, end, offset;
	uint32_t file; /* index */
};

struct mapping_list {
	struct mapping *items;
	size_t nr, cap;
	size_t max;  /* 0: MAPPINGS_MAX; less if there were too many of all processes */
	bool beyond; /* some are of MAPPED_BEYOND */
};

struct process {
	int32_t pid;
	uint64_t start_time; /* /proc/PID/stat field 22; 0 if only seen by events */
	/* Executable mappings, sorted, not overlapping. */
	struct mapping_list mappings;
	/*
	 * Grows with every change of `mappings`; a new image starts a new number too. Never 0, and
	 * unique in the table.
	 */
	uint32_t version;
	uint64_t changed_ns; /* when the last change took place (event time) */
	bool complete; /* all mappings are known: seen from exec on, forked from such, or read from
			  /proc */
	bool exited;
	uint64_t exit_ns;
	void *user; /* the agent's */
	/* private */
	bool shed;	       /* its mappings were given up for room */
	uint64_t read_took_ns; /* reading them from /proc */
	bool stale;	       /* events were lost since the mappings were read */
	bool crowded;	    /* there were too many mappings; some of them may have been unmapped */
	uint64_t image;	    /* names the image: moves at exec; unique in the table */
	uint64_t image_ns;  /* since when we know the image */
	uint64_t read_ns;   /* events up to here are contained in what was read from /proc */
	int32_t parent_pid; /* of which this is a fork without exec, or 0 */
	uint64_t parent_image;
	uint64_t mount_ns; /* inode of the mount namespace, 0 if never seen */
	bool root_due;	   /* not looked at since it has executed something */
	bool at_home;	   /* its root was ours then */
	bool owner_known;
	uint32_t owner; /* whose it is, looked at when there is no room; FILE_OWNER_NONE: gone */
	uint32_t owner_version; /* the kernel told of `owner` at that version; 0: never */
};

struct process_table_private;

struct process_table {
	struct map by_pid;
	VEC(struct mapped_file *) files; /* NULL: a number that is free */
	/* private */
	struct map file_by_key;
	struct process_table_private *private;
	/* Called before a process is freed or loses its image (exec): drop what `user` holds. */
	void (*forget)(void *ctx, struct process *proc);
	/* Called at a fork, after the child has copies of the parent's mappings. */
	void (*forked)(void *ctx, struct process *parent, struct process *child);
	/* Called before a file is freed, whose number will be another one's. */
	void (*forget_file)(void *ctx, const struct mapped_file *file);
	/* Called when a copy of a file has come, that process_open_file() said is on its way. */
	void (*file_came)(void *ctx, struct mapped_file *file);
	/* Called once for a file that is too large to be copied; `bytes`: that it may have. */
	void (*file_too_large)(void *ctx, const struct mapped_file *file, uint64_t bytes);
	void *ctx;
	/* While a server is waited for: keeps what must not overflow from doing so. NULL: nothing
	 * else is to be done, and it is waited for until it answers or is given up. */
	void (*meanwhile)(void *ctx);
	void *meanwhile_ctx;
	uint64_t nr_mappings_capped;  /* mappings beyond MAPPINGS_MAX, not kept */
	uint64_t nr_processes_capped; /* processes beyond PROCESSES_MAX, not kept */
	uint64_t nr_files_capped; /* mappings of files beyond FILES_MAX: kept as MAPPED_BEYOND */
};

int process_table_init(struct process_table *t);
void process_table_fini(struct process_table *t);
size_t process_table_bytes(const struct process_table *t);
/*
 * Who makes copies of files that are behind a server: argv of a program that is
 * file_copy_child_main() (file_copy.h), NULL: fork; and how many bytes they take, at most (0: the
 * default).
 */
void process_table_set_copier(struct process_table *t, char *const *program, uint64_t bytes);

/*
 * Applies one event; `text` is its batch's. A SIDE_FORK of a known pid means that the old process
 * is gone. SIDE_LOST: known processes are read again at their next process_get().
 */
int process_table_apply(struct process_table *t, const struct side_event *event, const char *text);

/* The process, NULL if unknown. */
struct process *process_find(const struct process_table *t, int32_t pid);
/* One of its mappings of that file (its index), or NULL. */
const struct mapping *process_mapping_of(const struct process *proc, uint32_t file);
/*
 * The process with complete mappings: known, or read from /proc now. A dead one whose parent is
 * known to have forked it without exec has its parent's mappings. -ESRCH if it is gone and nothing
 * is known of it; -EAGAIN: so much is to be read that it was done often enough, with so many events
 * lost. A zombie or kernel thread has no mappings: 0, none.
 */
int process_get(struct process_table *t, int32_t pid, struct process **ret);
/* process_get() for a process that nothing is known of, and has mappings; else -EEXIST or -ESRCH,
 * and the table is as it was: its events, which may be on their way, tell more then. */
int process_get_unknown(struct process_table *t, int32_t pid, struct process **ret);
/* The kernel has told whose process it is: /proc, which is slow to, is not asked before its
 * mappings change. */
void process_set_owner(struct process *proc, uint32_t user);
/*
 * Reads /proc/PID/maps again and takes the difference; `version` moves only if something changed.
 * -ESRCH if it is gone: it keeps what it had.
 */
int process_refresh(struct process_table *t, struct process *proc);
/* The mapping that covers `addr`, or NULL. */
const struct mapping *process_mapping(const struct process *proc, uint64_t addr);
/*
 * Frees processes that exited before `before_ns`; closes and forgets files that none maps any more.
 * What takes more room than there is is given up, of processes without `user` first.
 */
void process_table_expire(struct process_table *t, uint64_t before_ns);
/* That cannot wait: there is not much room left, or ends that were lost are looked for. */
bool process_table_must_expire(const struct process_table *t);

/*
 * Makes a file FILE_OPEN (0) or FILE_UNREADABLE (its error); does nothing if it is one already.
 * Tried in order, and believed only if the inode is right: /proc/PID/map_files/START-END,
 * /proc/PID/root + path, a kept root of the same mount namespace, other processes that map the
 * file, our own root. memfd and deleted files work while a process maps them. The vDSO is our own
 * process's. A file without executable segments is FILE_OPEN and not is_elf.
 *
 * An unreadable file turns FILE_NEW again when another mapping of it appears, a few times: the
 * next process may live long enough.
 */
int process_open_file(struct process_table *t, const struct process *proc, const struct mapping *m,
		      struct mapped_file *file);
/*
 * Files behind a server (NFS, FUSE, ...; mounts.h) are copied by a child, and it is waited for a
 * little: such a file is FILE_UNREADABLE with -EINPROGRESS until process_table_tick() has its copy,
 * if its server does not answer at once.
 */
void process_table_tick(struct process_table *t);
/* Is it to be called soon? */
bool process_table_is_busy(const struct process_table *t);
/*
 * Is the process's root another one than ours, and below it a file system that may never answer?
 * Then nothing is to be looked for there. True also if that cannot be told.
 */
bool process_root_may_hang(const struct process_table *t, int32_t pid);
/* May the file system be asked anything of what an O_PATH descriptor found below the process's root
 * (0: below ours)? */
bool process_may_ask(const struct process_table *t, int32_t pid, int path_fd);
/* It stays, mapped or not, until it was let go as often. */
static inline void process_hold_file(struct mapped_file *file)
{
	file->refs++;
}

static inline void process_let_file_go(struct mapped_file *file)
{
	file->refs--;
}

/*
 * An elf_file over a FILE_OPEN file (a new descriptor; the vDSO's from memory), the caller's.
 * -ENOEXEC if it is none; -ESTALE if it was closed to save descriptors and has been written to
 * since.
 */
int mapped_file_elf(const struct process_table *t, const struct mapped_file *file,
		    struct elf_file **ret);
/*
 * Are these bytes, which were met at `addr`, what the file has that the process maps there, but for
 * a breakpoint or two? If not, it maps another than then. True as well if that cannot be told: it
 * maps no file there, or none that can be read.
 */
bool process_has_code(const struct process_table *t, const struct process *proc, uint64_t addr,
		      const uint8_t *bytes, size_t size);
/* Where the mapping ends that has `addr`, executable or not: 0 if there is none, or it can't be
 * told. Reads /proc/PID/maps. */
uint64_t process_mapping_end(int32_t pid, uint64_t addr);
/* start - vaddr for this mapping of an open ELF file; 0 if no executable segment covers it. */
uint64_t mapping_bias(const struct mapped_file *file, const struct mapping *m);

/*
 * --- an offline process, of which there is a core ---
 *
 * A process of that number that is complete and over, without mappings; files as the caller has
 * found them. Nothing is looked for in /proc, nor by any path. One that is known is -EEXIST.
 */
int process_add(struct process_table *t, int32_t pid, struct process **ret);
/* Puts a mapping in place of what it overlaps. -ENOSPC: it has MAPPINGS_MAX already. */
int process_add_mapping(struct process_table *t, struct process *proc, const struct mapping *m);
/*
 * A file, shown as `path`: its descriptor, which is taken over in any case; or `fd` negative, an
 * errno: it is FILE_UNREADABLE, for that reason. The file is in the table also if it turns out to
 * be unreadable. 0 and its index, -ENOSPC, -ENOMEM.
 */
int process_add_file(struct process_table *t, const char *path, int fd, uint32_t *ret_index);
/* process_add_file() of an image in memory, which is taken over on success (free()). */
int process_add_image(struct process_table *t, const char *path, uint8_t *image, size_t size,
		      uint32_t *ret_index);
