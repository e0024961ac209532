/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output format.
 *
 * To add the format "foo": write export/foo.c with `const struct export_ops export_foo`, name it in
 * formats.h, in the table in export.c and in meson.build. The command line, the help text and the
 * choice by a file's extension follow from the table. What formats share stands in functions.h
 * (frames merged by function) and call_tree.h (the merged tree, sorted).
 */
#pragma once

#include "profile/profile.h"

#include <stdio.h>

struct export_options {
	bool lines; /* show the line beside each function, where the format does so only if asked */
};

struct export_ops {
	const char *name;	       /* as -f takes it */
	const char *const *extensions; /* NULL-terminated, with the dot; the first is the default */
	const char *description;       /* one line for --help */
	bool wants_events;	       /* is better with profile.events */
	/* Writes the whole profile; 0 or negative errno. The caller checks ferror() and closes. */
	int (*write)(const struct profile *p, const struct export_options *options, FILE *out);
	/*
	 * Reads what the format can hold of a profile into *ret, initialised and empty. `data` is
	 * hostile. NULL: it can't be read back. 0; -EBADMSG: it is not such a file, and
	 * *ret_problem (at most 200 bytes, the caller's) says where; -E2BIG: more than a profile
	 * holds; -ENOMEM.
	 */
	int (*read)(const void *data, size_t size, struct profile *ret, char ret_problem[200]);
	/* Whether `data`, the file's beginning, looks like it. NULL: it can't be told. */
	bool (*recognise)(const void *data, size_t size);
};

/* All formats, NULL-terminated. */
extern const struct export_ops *const export_formats[];

/* NULL if there is no such format. */
const struct export_ops *export_by_name(const char *name);
/* By the file name's extension; NULL if none fits. "-" is folded. */
const struct export_ops *export_by_path(const char *path);

/*
 * An output file that is safe to lose: its folder is proved writable before a recording starts, it
 * is written to a temporary file beside `path`, and renamed over it by commit, so that a full disk
 * leaves the old file as it was. Through a symbolic link the file it leads to is replaced; mode and
 * owner stay those of the old file. "-" is stdout; devices, sockets and FIFOs are written directly.
 * A closed pipe is -EPIPE, never SIGPIPE.
 */
struct export_file;
/*
 * Never blocks. -EISDIR, -EACCES, -ENOENT (no such folder), -EBADF (stdout is closed), -EAGAIN (a
 * FIFO that nobody reads yet), ...: nothing is left behind. -EPERM with a sentence in *why_ret (the
 * caller frees it, NULL otherwise): what is there is another user's (util/own_path.h).
 */
int export_file_open(const char *path, struct export_file **ret, char **why_ret);
/* Writes, syncs and renames, once a file. The errno is that of the write that failed (-ENOSPC). */
int export_file_commit(struct export_file *file, const struct export_ops *ops,
		       const struct profile *p, const struct export_options *options);
/* Removes what was not committed. */
void export_file_free(struct export_file *file);
