// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_shares.h"
#include "util/owners.h"

/* Of the arena is what a user may have of tables, if others want the room. */
enum { PART_OF_USER = 4 };
/* What is to be one user's must not have been used by anybody else for that long. */
#define APART_NS 10000000000ull

void table_shares_use(struct unwind_store *s, uint32_t file, uint32_t user)
{
	struct file_user *u = &s->users[file];

	if (u->known && (user == u->user || user == UNWIND_USER_UNKNOWN))
		return;
	if (u->known && u->user != UNWIND_USER_UNKNOWN)
		u->shared_until_ns = s->now_ns + APART_NS;
	u->user = user;
	u->known = true;
}

/* Who a file's table is charged to; root: nobody. */
static uint32_t user_of(const struct unwind_store *s, uint32_t file)
{
	return s->users[file].shared_until_ns > s->now_ns ? 0 : s->users[file].user;
}

static uint64_t share_of_user(const struct unwind_store *s)
{
	return ((uint64_t)s->arena.max_segments << ARENA_SEGMENT_SHIFT) / PART_OF_USER;
}

static uint64_t cells_of_user(const struct unwind_store *s, uint32_t user)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < s->tables.nr; i++)
		if (user_of(s, s->tables.items[i].file) == user)
			nr += s->tables.items[i].nr;
	return nr;
}

bool table_shares_allow(const struct unwind_store *s, uint32_t file, uint64_t nr)
{
	uint32_t user = user_of(s, file);

	return owner_is_trusted(user) || cells_of_user(s, user) + nr <= share_of_user(s);
}

bool table_shares_same(const struct unwind_store *s, uint32_t a, uint32_t b)
{
	uint32_t user = user_of(s, a), other = user_of(s, b);

	return user == other || (owner_is_trusted(user) && owner_is_trusted(other));
}

const struct file_table *table_shares_greediest(const struct unwind_store *s)
{
	const struct file_table *found = NULL;
	uint64_t most = share_of_user(s);

	for (size_t i = 0; i < s->tables.nr; i++) {
		const struct file_table *t = &s->tables.items[i];
		uint32_t user = user_of(s, t->file);
		bool same = found && user_of(s, found->file) == user;
		uint64_t nr;

		if (owner_is_trusted(user))
			continue;
		if (same && s->used_ns[t->file] < s->used_ns[found->file])
			found = t;
		nr = same ? 0 : cells_of_user(s, user);
		if (nr > most) {
			most = nr;
			found = t;
		}
	}
	return found;
}
