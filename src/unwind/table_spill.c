// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_spill.h"
#include "unwind/table_image.h"
#include "util/cleanup.h"
#include "util/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

enum { RECENT = 2048, RECENT_SHIFT = 53 }; /* rules; 64 - log2 of that */

struct spilled {
	struct unwind_table table; /* its image; without rules */
	uint64_t bytes;
	uint64_t used; /* table_spill.clock */
	uint32_t owner;
};

struct spilled_rule {
	uint64_t addr;
	uint32_t file;
	bool there;
	struct unwind_rule rule;
};

void table_spill_init(struct table_spill *s)
{
	*s = (struct table_spill){ .folder = -1 };
}

static struct spilled *spilled_of(const struct table_spill *s, uint32_t file)
{
	const uint64_t *found = map_get(&s->tables, file);

	return found ? (struct spilled *)(uintptr_t)*found : NULL;
}

static void spilled_free(struct spilled *t)
{
	if (t->table.image > 0)
		close(t->table.image);
	free(t);
}
DEFINE_CLEANUP(struct spilled *, spilled_free)

void table_spill_drop(struct table_spill *s, uint32_t file)
{
	struct spilled *t = spilled_of(s, file);

	if (!t)
		return;
	for (size_t i = 0; s->recent && i < RECENT; i++)
		if (s->recent[i].file == file)
			s->recent[i].there = false;
	s->bytes -= t->bytes;
	map_del(&s->tables, file);
	spilled_free(t);
}

void table_spill_fini(struct table_spill *s)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&s->tables, &i)))
		spilled_free((struct spilled *)(uintptr_t)slot->value);
	map_fini(&s->tables);
	free(s->recent);
	table_spill_init(s);
}

int table_spill_use(struct table_spill *s, int folder)
{
	struct statfs fs;

	if (fstatfs(folder, &fs))
		return -errno;
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return -ENOTSUP;
	s->folder = folder;
	return 0;
}

/* A file without a name. */
static int new_file(int folder)
{
	static const char name[] = "spilled-table.tmp";
	int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd >= 0 ? fd : -errno;
	/* Some file systems have no such files (overlayfs before 6.3). */
	(void)unlinkat(folder, name, 0);
	fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (unlinkat(folder, name, 0)) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* --- room ------------------------------------------------------------------------------------ */

/* May `owner` have so many bytes more? */
static bool is_within_part(const struct table_spill *s, uint32_t owner, uint64_t bytes)
{
	const struct map_slot *slot;
	size_t i = 0, nr = 0;

	while ((slot = map_next(&s->tables, &i))) {
		const struct spilled *t = (const struct spilled *)(uintptr_t)slot->value;

		if (t->owner == owner) {
			bytes += t->bytes;
			nr++;
		}
	}
	return bytes <= SPILL_BYTES_MAX / SPILL_PART && nr < SPILL_FILES_MAX / SPILL_PART;
}

/* Drops the one that is unused for longest, of `owner` alone if he has too much. */
static bool drop_oldest(struct table_spill *s, const uint32_t *owner)
{
	uint64_t used = UINT64_MAX;
	const struct map_slot *slot;
	uint32_t file = 0;
	size_t i = 0;

	while ((slot = map_next(&s->tables, &i))) {
		const struct spilled *t = (const struct spilled *)(uintptr_t)slot->value;

		if (t->used < used && (!owner || t->owner == *owner)) {
			used = t->used;
			file = (uint32_t)slot->key;
		}
	}
	if (used == UINT64_MAX)
		return false;
	table_spill_drop(s, file);
	return true;
}

static int make_room(struct table_spill *s, uint32_t owner, uint64_t bytes)
{
	while (!owner_is_trusted(owner) && !is_within_part(s, owner, bytes))
		if (!drop_oldest(s, &owner))
			return -E2BIG;
	while (s->bytes + bytes > SPILL_BYTES_MAX || s->tables.nr >= SPILL_FILES_MAX)
		if (!drop_oldest(s, NULL))
			return -E2BIG;
	return 0;
}

/* --- tables ---------------------------------------------------------------------------------- */

bool table_spill_has(const struct table_spill *s, uint32_t file)
{
	return spilled_of(s, file) != NULL;
}

int table_spill_put(struct table_spill *s, uint32_t file, uint32_t owner,
		    const struct unwind_table *table)
{
	_cleanup_(spilled_free_p) struct spilled *t = NULL;
	int r;

	if (s->folder < 0)
		return -ENOSPC;
	table_spill_drop(s, file);
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->table = *table;
	t->table.rules = NULL;
	t->table.buckets = t->table.rows = NULL;
	t->table.image = 0;
	t->owner = owner;
	t->used = ++s->clock;
	t->bytes = ((uint64_t)table->nr_buckets + table->nr_rows) * sizeof(uint32_t) +
		   table->nr_rules * sizeof(struct unwind_rule);
	r = make_room(s, owner, t->bytes);
	if (r)
		return r;
	r = new_file(s->folder);
	if (r < 0)
		return r;
	t->table.image = r;
	r = table_image_copy(t->table.image, table);
	if (!r)
		r = map_put(&s->tables, file, (uintptr_t)t);
	if (r)
		return r;
	s->bytes += t->bytes;
	TAKE_PTR(t);
	return 0;
}

static struct spilled_rule *recent_of(struct table_spill *s, uint32_t file, uint64_t addr)
{
	uint64_t hash = (addr ^ (uint64_t)file << 48) * 0x9e3779b97f4a7c15ull;

	if (!s->recent)
		s->recent = calloc(RECENT, sizeof(*s->recent));
	return s->recent ? &s->recent[hash >> RECENT_SHIFT] : NULL;
}

int table_spill_find(struct table_spill *s, uint32_t file, uint64_t addr, struct unwind_rule *ret)
{
	struct spilled *t = spilled_of(s, file);
	struct spilled_rule *recent;
	int r;

	if (!t)
		return -ENOENT;
	t->used = ++s->clock;
	recent = recent_of(s, file, addr);
	if (recent && recent->there && recent->file == file && recent->addr == addr) {
		*ret = recent->rule;
		return 0;
	}
	r = table_image_find(&t->table, addr, ret);
	if (!r && recent)
		*recent = (struct spilled_rule){ addr, file, true, *ret };
	return r;
}

int table_spill_open(struct table_spill *s, uint32_t file, struct unwind_table **ret)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	const struct spilled *t = spilled_of(s, file);
	int r;

	if (!t)
		return -ENOENT;
	table = malloc(sizeof(*table));
	if (!table)
		return -ENOMEM;
	*table = t->table;
	table->image = fcntl(t->table.image, F_DUPFD_CLOEXEC, 3);
	if (table->image < 0) {
		table->image = 0;
		return -errno;
	}
	r = table_image_read_rules(table);
	if (!r)
		*ret = TAKE_PTR(table);
	return r;
}
