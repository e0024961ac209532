// SPDX-License-Identifier: Apache-2.0
/*
 * All items (events or samples) of all types stand in one order, in which those with much in common
 * are neighbours; a request is a range of it. How large a range may be is tried: what becomes too
 * large is given up there, and begun again with less. Most reports are one request, and written
 * once; what all of them take together is never in memory.
 *
 * A stack of long names can be a request by itself, and so can the next one: they would fill
 * everybody's queue. Items are therefore in the order of owners first. Owners who are not trusted
 * have a share; behind it their items have no names, which are nearly all of a stack.
 */
#include "export/otlp_parts.h"

#include "export/otlp_internal.h"
#include "util/cleanup.h"
#include "util/owners.h"

#include <errno.h>
#include <stdlib.h>

struct unit {
	uint32_t type, item;
};

struct parts {
	const struct profile *p;
	enum otlp_schema schema;
	struct otlp_window window;
	bool events[PROFILE_TYPES_MAX]; /* items of this type are events */
	VEC(struct unit) units;
	uint32_t *owners; /* by process */
	/* The owner of the next item, and where his items end. */
	uint32_t owner, owner_end;
	/* Bytes beyond what is free: of him, and of who is not trusted and comes behind him. */
	size_t owner_left, all_left;
};

enum { TRUSTED = 0 };

/* What is larger is the same. */
#define MAX_SIZE_MAX ((size_t)UINT32_MAX)

static void parts_fini(struct parts *parts)
{
	for (size_t i = 0; i < PROFILE_TYPES_MAX; i++)
		free(parts->window.places[i]);
	vec_free(&parts->units);
	free(parts->owners);
}

static const struct profile_sample *sample_of(const struct parts *parts, const struct unit *u)
{
	const struct profile_cut *cut = profile_cut_of(parts->p, u->type);

	return &cut->samples.items[parts->events[u->type] ? cut->events.items[u->item].sample
							  : u->item];
}

static uint32_t process_of(const struct parts *parts, const struct unit *u)
{
	return parts->p->threads.items[sample_of(parts, u)->thread].process;
}

static uint32_t owner_of(const struct parts *parts, uint32_t place)
{
	return parts->owners[process_of(parts, &parts->units.items[place])];
}

/* As a report counts them, which is by type 0. */
static uint64_t samples_of(const struct parts *parts, const struct unit *u)
{
	if (u->type)
		return 0;
	return parts->events[0] ? 1 : sample_of(parts, u)->count;
}

#define ORDER(x, y)                                                                                \
	if ((x) != (y))                                                                            \
	return (x) < (y) ? -1 : 1

static int compare_units(const void *one, const void *other, void *ctx)
{
	const struct unit *a = one, *b = other;
	const struct parts *parts = ctx;
	const struct profile_sample *sa = sample_of(parts, a), *sb = sample_of(parts, b);
	uint32_t pa = process_of(parts, a), pb = process_of(parts, b);

	ORDER(parts->owners[pa], parts->owners[pb]);
	ORDER(pa, pb);
	ORDER(sa->stack, sb->stack);
	ORDER(sa->thread, sb->thread);
	ORDER(a->type, b->type);
	ORDER(a->item, b->item);
	return 0;
}

static int add_units(struct parts *parts, uint32_t type)
{
	const struct profile_cut *cut = profile_cut_of(parts->p, type);
	uint64_t duration_ns = 0;
	bool *events = &parts->events[type];
	size_t nr;
	int r = otlp_choose_events(parts->p, type, &duration_ns, events);

	if (r)
		return r;
	nr = *events ? cut->events.nr : cut->samples.nr;
	if (nr > UINT32_MAX - parts->units.nr)
		return -E2BIG;
	parts->window.places[type] = malloc((nr + 1) * sizeof(uint32_t));
	if (!parts->window.places[type])
		return -ENOMEM;
	r = vec_reserve(&parts->units, parts->units.nr + nr);
	for (uint32_t i = 0; !r && i < nr; i++) {
		const struct unit unit = { type, i };

		parts->window.places[type][i] = UINT32_MAX;
		/* A count of 0 is no sample. */
		if (sample_of(parts, &unit)->count)
			parts->units.items[parts->units.nr++] = unit;
	}
	return r;
}

/* By the real user: of whom a program is that somebody runs does not matter. */
static int find_owners(struct parts *parts)
{
	const struct profile *p = parts->p;

	parts->owners = malloc((p->processes.nr + 1) * sizeof(*parts->owners));
	if (!parts->owners)
		return -ENOMEM;
	for (size_t i = 0; i < p->processes.nr; i++) {
		const struct profile_process *process = &p->processes.items[i];
		uint32_t user = process->real_uid != UINT32_MAX ? process->real_uid : process->uid;

		parts->owners[i] = owner_is_trusted(user) ? TRUSTED : user;
	}
	return 0;
}

static int put_in_order(struct parts *parts)
{
	int r = find_owners(parts);

	for (uint32_t type = 0; !r && type < profile_nr_types(parts->p); type++)
		r = add_units(parts, type);
	if (r)
		return r;
	if (parts->units.nr)
		qsort_r(parts->units.items, parts->units.nr, sizeof(struct unit), compare_units,
			parts);
	for (uint32_t i = 0; i < parts->units.nr; i++) {
		const struct unit *u = &parts->units.items[i];

		parts->window.places[u->type][u->item] = i;
	}
	return 0;
}

static int write_range(struct parts *parts, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	int r;

	if (!out)
		return -ENOMEM;
	parts->window.looked_up = parts->window.told = 0;
	r = otlp_write_window(parts->p, &parts->window, parts->schema, out);
	if (fclose(out) && !r)
		r = -ENOMEM;
	if (r)
		return r;
	*ret = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}

/* For the next range, after one of `nr` items took `size` bytes: from 1 to 2 * nr. */
static uint32_t scaled(uint32_t nr, size_t size, size_t max_size)
{
	double times = 0.9 * (double)max_size / (double)size;
	double next = (double)nr * (times > 2 ? 2 : times);

	return next < 1 ? 1 : next > UINT32_MAX ? UINT32_MAX : (uint32_t)next;
}

/* Of a range that was given up: how large it would have become. */
static size_t guessed_size(const struct otlp_window *w, uint32_t nr)
{
	double done = ((double)w->looked_up + w->told) / 2 / nr;

	return (size_t)((double)w->max_size / (done > 0.01 ? done : 0.01));
}

/* --- the shares of owners --------------------------------------------------------------------- */

static void enter_owner(struct parts *parts)
{
	uint32_t from = parts->window.from, nr = (uint32_t)parts->units.nr;

	if (from < parts->owner_end || from >= nr)
		return;
	parts->owner = owner_of(parts, from);
	parts->owner_end = from;
	while (parts->owner_end < nr && owner_of(parts, parts->owner_end) == parts->owner)
		parts->owner_end++;
	/* What the last one has left is for all again. */
	parts->all_left += parts->owner_left;
	parts->owner_left = parts->owner == TRUSTED ? 0 : parts->all_left / OTLP_OWNERS_PART;
	parts->all_left -= parts->owner_left;
	if (parts->all_left >= OTLP_FREE_BYTES)
		parts->window.nameless = false;
}

static bool is_of_one_owner(const struct parts *parts)
{
	return parts->window.to <= parts->owner_end;
}

static bool is_shared_out(const struct parts *parts)
{
	return !parts->window.nameless && (parts->owner != TRUSTED || !is_of_one_owner(parts));
}

static size_t free_bytes(const struct parts *parts)
{
	size_t bytes = 0;

	for (uint32_t i = parts->window.from; i < parts->window.to; i++)
		bytes += parts->units.items[i].type ? OTLP_FREE_BYTES_OF_OTHERS : OTLP_FREE_BYTES;
	return bytes;
}

/* How large the range may be. */
static size_t limit_of(const struct parts *parts, size_t max_size)
{
	size_t limit;

	if (!is_shared_out(parts))
		return parts->window.to - parts->window.from <= 1 ? SIZE_MAX : max_size;
	limit = free_bytes(parts) + parts->owner_left +
		(is_of_one_owner(parts) ? 0 : parts->all_left);
	return limit < max_size ? limit : max_size;
}

/* The range fits. If it is of several owners none of them has more to come. */
static void charge(struct parts *parts, size_t size)
{
	size_t is_free = free_bytes(parts), *left = &parts->owner_left;
	size_t bytes = size > is_free ? size - is_free : 0;

	if (!is_shared_out(parts))
		return;
	if (!is_of_one_owner(parts)) {
		parts->all_left += parts->owner_left;
		parts->owner_left = 0;
		left = &parts->all_left;
	}
	*left -= bytes < *left ? bytes : *left;
}

/* At most `nr` of several owners, of each all or none; or all of the first one. */
static uint32_t whole_owners(const struct parts *parts, uint32_t nr)
{
	uint32_t end = parts->window.from + nr;

	while (end > parts->owner_end && owner_of(parts, end - 1) == owner_of(parts, end))
		end--;
	return (end < parts->owner_end ? parts->owner_end : end) - parts->window.from;
}

/* What to try after `nr` items took `size` bytes, which is too large. */
static uint32_t try_less(struct parts *parts, uint32_t nr, size_t size, size_t max_size)
{
	uint32_t less = scaled(nr, size, parts->window.max_size);

	if (!is_shared_out(parts))
		return less;
	if (!is_of_one_owner(parts))
		return whole_owners(parts, less);
	if (nr > 1 && parts->window.max_size == max_size)
		return less;
	/* His share is at its end, or one stack is too large. */
	parts->window.nameless = true;
	parts->owner_left = 0;
	return parts->all_left < OTLP_FREE_BYTES ? UINT32_MAX
						 : parts->owner_end - parts->window.from;
}

/* For the next range: another owner's items are of another size. */
static uint32_t try_next(const struct parts *parts, uint32_t nr, size_t size, size_t max_size)
{
	uint32_t next = scaled(nr, size, max_size), left = parts->owner_end - parts->window.from;

	if (parts->window.from >= parts->owner_end)
		return UINT32_MAX;
	return next < left ? next : left;
}

/* --- requests --------------------------------------------------------------------------------- */

/* The range from window.from on that fits; *nr is what to try first, then how many it has. */
static int write_what_fits(struct parts *parts, size_t max_size, uint32_t *nr, char **ret,
			   size_t *ret_size)
{
	struct otlp_window *window = &parts->window;
	uint32_t left = (uint32_t)parts->units.nr - window->from;

	for (;;) {
		_cleanup_free_ char *data = NULL;
		size_t size = 0;
		int r;

		if (*nr > left)
			*nr = left;
		window->to = window->from + *nr;
		window->max_size = limit_of(parts, max_size);
		r = write_range(parts, &data, &size);
		if (r == -EFBIG)
			size = guessed_size(window, *nr);
		else if (r)
			return r;
		if (!r && size <= window->max_size) {
			*ret = TAKE_PTR(data);
			*ret_size = size;
			return 0;
		}
		*nr = try_less(parts, *nr, size, max_size);
	}
}

int otlp_write_parts(const struct profile *p, enum otlp_schema schema, size_t max_size,
		     otlp_part_fn *part, void *ctx)
{
	_cleanup_(parts_fini) struct parts parts = { .p = p, .schema = schema };
	uint32_t nr = UINT32_MAX;
	int r = put_in_order(&parts);

	parts.all_left = (max_size < MAX_SIZE_MAX ? max_size : MAX_SIZE_MAX) * OTLP_REPORT_TIMES;
	while (!r) {
		_cleanup_free_ char *data = NULL;
		uint64_t samples = 0;
		size_t size = 0;

		enter_owner(&parts);
		r = write_what_fits(&parts, max_size, &nr, &data, &size);
		if (r)
			break;
		charge(&parts, size);
		for (uint32_t i = parts.window.from; i < parts.window.to; i++)
			samples += samples_of(&parts, &parts.units.items[i]);
		r = part(ctx, data, size, samples, !parts.window.nameless);
		parts.window.from = parts.window.to;
		if (parts.window.from >= parts.units.nr)
			break;
		nr = try_next(&parts, nr, size, max_size);
	}
	return r;
}
