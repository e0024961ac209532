/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a path leads to which we write. Whoever may put something there (in /tmp: everybody) must
 * not choose what we overwrite, or make us wait: links are followed one by one, and only those
 * of trusted users: ourselves, root, and who called sudo. The folder is held open meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct own_path {
	int dir_fd; /* O_PATH: of the folder; -1 after open_fd */
	char *name; /* in it, no link */
	bool exists;
	struct stat st; /* if it exists */
	int open_fd; /* O_PATH: the path led through /proc to a file that is open already; else -1
		      */
};

/*
 * 0 or negative errno, -ENOENT only for a missing folder. -EPERM with *why_ret (the caller frees
 * it): a link on the way, or what is there, is another user's; the sentence says what and whose.
 * *why_ret is NULL otherwise. Refused are others' links, FIFOs and, in a folder in which everybody
 * may put files, others' files.
 */
int own_path_find(const char *path, struct own_path *ret, char **why_ret);
void own_path_fini(struct own_path *p);
/* Whether what lies at the path now may be taken for what it was, its owner and mode kept. */
bool own_path_keeps(const struct own_path *p, struct stat *ret);
