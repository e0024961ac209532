// SPDX-License-Identifier: Apache-2.0
#include "process/user_names.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USERS_MAX = 65536 }; /* 4 MB of them */

static void forget(struct user_names *names)
{
	for (size_t i = 0; i < names->users.nr; i++)
		free(names->users.items[i].name);
	names->users.nr = 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Without memory there are fewer. */
static void read_all(struct user_names *names, FILE *in)
{
	struct passwd *entry;

	while (names->users.nr < USERS_MAX && (entry = fgetpwent(in))) {
		struct user_name user = { .uid = entry->pw_uid, .name = strdup(entry->pw_name) };

		if (user.name && !vec_push(&names->users, user))
			continue;
		free(user.name);
		return;
	}
}

static void look_again(struct user_names *names)
{
	const char *path = names->path ? names->path : "/etc/passwd";
	struct stat now = { 0 };
	FILE *in;

	if (!stat(path, &now) && is_same(&now, &names->seen))
		return;
	forget(names);
	names->seen = now;
	in = S_ISREG(now.st_mode) ? fopen(path, "re") : NULL;
	if (!in)
		return;
	read_all(names, in);
	fclose(in);
}

/* The first line of a user counts, as for the C library. */
const char *user_names_find(struct user_names *names, uint32_t uid)
{
	look_again(names);
	for (size_t i = 0; i < names->users.nr; i++)
		if (names->users.items[i].uid == uid)
			return names->users.items[i].name;
	return "";
}

/* The first line of a name counts, too. */
int user_names_number(struct user_names *names, const char *name, uint32_t *ret)
{
	look_again(names);
	for (size_t i = 0; *name && i < names->users.nr; i++) {
		if (strcmp(names->users.items[i].name, name))
			continue;
		*ret = names->users.items[i].uid;
		return 0;
	}
	return -ENOENT;
}

void user_names_fini(struct user_names *names)
{
	forget(names);
	vec_free(&names->users);
}
