/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose the tables in the arena are: theirs whose processes alone have used them lately. No user's
 * may take the place of everybody else's. Private to unwind_store.c.
 */
#pragma once

#include "unwind/unwind_store.h"

/* A process of `user` uses it. */
void table_shares_use(struct unwind_store *s, uint32_t file, uint32_t user);
/* Has the file's user no more than a share, with `nr` cells more? Root and we may have all, and
 * what several use is nobody's. */
bool table_shares_allow(const struct unwind_store *s, uint32_t file, uint64_t nr);
/* Are both files' tables charged to one user, or both to root, to us or to nobody? */
bool table_shares_same(const struct unwind_store *s, uint32_t a, uint32_t b);
/* A table of the user who has most, if that is above a share: the longest unused; or NULL. */
const struct file_table *table_shares_greediest(const struct unwind_store *s);
