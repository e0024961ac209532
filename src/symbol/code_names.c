// SPDX-License-Identifier: Apache-2.0
#include "symbol/code_names.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/sorted.h"

/* Functions of one program are told one after the other, with nothing in between; another one has
 * to be verified and compiled first. */
#define TOGETHER_NS UINT64_C(50000)

/* The first one that ends behind `addr`. */
static size_t first_behind(const struct code_names *c, uint64_t addr)
{
	return sorted_before(c->items.nr, i, c->items.items[i].end <= addr);
}

static void drop(struct code_names *c, size_t from, size_t to)
{
	if (from == to)
		return;
	for (size_t i = from; i < to; i++) {
		c->nr_gone -= !c->items.items[i].name;
		free(c->items.items[i].name);
	}
	memmove(c->items.items + from, c->items.items + to,
		(c->items.nr - to) * sizeof(*c->items.items));
	c->items.nr -= to - from;
}

static bool is_program(const char *name)
{
	return strncmp(name, "bpf_prog_", strlen("bpf_prog_")) == 0;
}

/* Has somebody else been given that name just before? */
static bool is_told_twice(const struct code_names *c, uint64_t time_ns, const char *name)
{
	for (size_t i = 0; i < c->items.nr; i++) {
		const struct told_code *other = &c->items.items[i];

		if (other->name && time_ns - other->time_ns < TOGETHER_NS &&
		    !strcmp(other->name, name))
			return true;
	}
	return false;
}

/* All that lies in that range is nobody's any more; where the next one there belongs. */
static size_t make_way(struct code_names *c, uint64_t start, uint64_t end)
{
	size_t from = first_behind(c, start), to = from;

	while (to < c->items.nr && c->items.items[to].start < end)
		to++;
	drop(c, from, to);
	return from;
}

static int insert(struct code_names *c, size_t place, struct told_code item)
{
	struct told_code *at;

	if (c->items.nr >= CODE_NAMES_MAX || (!item.name && c->nr_gone >= CODE_NAMES_GONE_MAX))
		return -ENOSPC;
	if (vec_reserve(&c->items, c->items.nr + 1))
		return -ENOMEM;
	at = c->items.items + place;
	memmove(at + 1, at, (c->items.nr - place) * sizeof(*at));
	*at = item;
	c->items.nr++;
	c->nr_gone += !item.name;
	return 0;
}

bool code_names_add(struct code_names *c, uint64_t time_ns, uint64_t start, uint64_t len,
		    const char *name)
{
	_cleanup_free_ char *copy = NULL;
	size_t place;

	if (!len || start + len < start)
		return false;
	place = make_way(c, start, start + len);
	if (is_program(name) && is_told_twice(c, time_ns, name)) {
		c->distrusted = true;
		code_names_forget_all(c);
	}
	if (!is_program(name) || c->distrusted)
		return false;
	copy = strdup(name);
	if (!copy || insert(c, place, (struct told_code){ start, start + len, time_ns, copy }))
		return false;
	(void)TAKE_PTR(copy);
	return true;
}

bool code_names_gone(struct code_names *c, uint64_t start, uint64_t len, const char *name)
{
	size_t place;

	if (!len || start + len < start)
		return false;
	place = make_way(c, start, start + len);
	return (!*name || is_program(name)) &&
	       !insert(c, place, (struct told_code){ start, start + len, 0, NULL });
}

bool code_names_find(const struct code_names *c, uint64_t addr, const char **ret)
{
	size_t i = first_behind(c, addr);

	if (i == c->items.nr || c->items.items[i].start > addr)
		return false;
	*ret = c->items.items[i].name;
	return true;
}

void code_names_forget_gone(struct code_names *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->items.nr; i++)
		if (c->items.items[i].name)
			c->items.items[kept++] = c->items.items[i];
	c->items.nr = kept;
	c->nr_gone = 0;
}

void code_names_forget_all(struct code_names *c)
{
	drop(c, 0, c->items.nr);
	vec_free(&c->items);
}
