/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users are called by this machine's /etc/passwd, and nobody else: services that know more of
 * them may take seconds to answer.
 */
#pragma once

#include "util/vec.h"

#include <stdint.h>
#include <sys/stat.h>

struct user_name {
	uint32_t uid;
	char *name; /* owned */
};

struct user_names {
	const char *path; /* NULL: /etc/passwd */
	VEC(struct user_name) users;
	struct stat seen; /* when it was read */
};

/* The file is read again if it is another one. "": it has no such user. Valid until the next call.
 */
const char *user_names_find(struct user_names *names, uint32_t uid);
/* The number of the user of that name. -ENOENT: there is none. */
int user_names_number(struct user_names *names, const char *name, uint32_t *ret);
void user_names_fini(struct user_names *names);
