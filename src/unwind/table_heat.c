// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_heat.h"
#include "unwind/table_shares.h"

enum {
	/* Of one sample. Each second a quarter of a file's heat goes. */
	HEAT = 16,
	HEAT_MAX = 1 << 30,
	COOLING = 4,
	COLD_AFTER = 64, /* seconds */
	/* What is to take the place of others must be needed more than these, by so much: */
	MORE = 3,
	LESS = 2,
};

#define COOL_NS 1000000000ull
/* A table that was just built stays: else two would take turns all the time. */
#define SETTLED_NS 5000000000ull

void table_heat_use(struct unwind_store *s, uint32_t file)
{
	if (s->heat[file] < HEAT_MAX)
		s->heat[file] += HEAT;
}

void table_heat_cool(struct unwind_store *s)
{
	uint64_t seconds = (s->now_ns - s->cooled_ns) / COOL_NS;

	if (!seconds)
		return;
	s->cooled_ns = s->now_ns;
	if (seconds > COLD_AFTER)
		seconds = COLD_AFTER;
	for (uint32_t i = 0; i < UNWIND_FILES_MAX; i++)
		for (uint64_t n = 0; s->heat[i] && n < seconds; n++)
			s->heat[i] -= (s->heat[i] + COOLING - 1) / COOLING;
}

static bool is_hotter(uint64_t heat_a, uint64_t cells_a, uint64_t heat_b, uint64_t cells_b)
{
	return heat_a * cells_b > heat_b * cells_a;
}

bool table_heat_is_hotter(const struct unwind_store *s, uint32_t a, uint32_t b)
{
	return is_hotter(s->heat[a], s->wanted[a].cells, s->heat[b], s->wanted[b].cells);
}

static bool contains(const uint32_t *files, size_t nr, uint32_t file)
{
	for (size_t i = 0; i < nr; i++)
		if (files[i] == file)
			return true;
	return false;
}

/* The table that is needed least for its size, of those whose place the file may take. */
static const struct file_table *coolest(const struct unwind_store *s, uint32_t file,
					const uint32_t *but, size_t nr_but)
{
	const struct file_table *found = NULL;

	for (size_t i = 0; i < s->tables.nr; i++) {
		const struct file_table *t = &s->tables.items[i];

		if (t->is_more || t->since_ns + SETTLED_NS > s->now_ns ||
		    contains(but, nr_but, t->file) || !table_shares_same(s, file, t->file))
			continue;
		if (!found || is_hotter(s->heat[found->file], found->nr, s->heat[t->file], t->nr))
			found = t;
	}
	return found;
}

/* What there would be room for: the file, and others that wish for no more than is left then. */
static uint64_t gained(const struct unwind_store *s, uint32_t file, uint64_t left)
{
	uint64_t sum = s->heat[file];

	for (uint32_t i = 0, nr = s->nr_wanted; i < UNWIND_FILES_MAX && nr; i++) {
		nr -= s->wanted[i].cells != 0;
		if (!s->wanted[i].cells || i == file || s->wanted[i].cells > left)
			continue;
		left -= s->wanted[i].cells;
		sum += s->heat[i];
	}
	return sum;
}

size_t table_heat_cooler(const struct unwind_store *s, uint32_t file, uint64_t nr,
			 uint32_t ret[TABLE_HEAT_VICTIMS])
{
	uint64_t freed = 0, lost = 0;
	size_t n = 0;

	while (freed < nr) {
		const struct file_table *t = coolest(s, file, ret, n);

		if (!t || n == TABLE_HEAT_VICTIMS)
			return 0;
		ret[n++] = t->file;
		freed += t->nr;
		lost += s->heat[t->file];
	}
	return lost * MORE < gained(s, file, freed - nr) * LESS ? n : 0;
}
