// SPDX-License-Identifier: Apache-2.0
/*
 * All items (events or samples) of all types stand in one order, in which those with much in common
 * are neighbours; a request is a range of it. How large a range may be is tried: what becomes too
 * large is given up there, and begun again with less. Most reports are one request, and written
 * once; what all of them take together is never in memory.
 */
#include "export/otlp_parts.h"

#include "export/otlp_internal.h"
#include "util/cleanup.h"

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
};

static void parts_fini(struct parts *parts)
{
	for (size_t i = 0; i < PROFILE_TYPES_MAX; i++)
		free(parts->window.places[i]);
	vec_free(&parts->units);
}

static const struct profile_sample *sample_of(const struct parts *parts, const struct unit *u)
{
	const struct profile_cut *cut = profile_cut_of(parts->p, u->type);

	return &cut->samples.items[parts->events[u->type] ? cut->events.items[u->item].sample
							  : u->item];
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

	ORDER(parts->p->threads.items[sa->thread].process,
	      parts->p->threads.items[sb->thread].process);
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

static int put_in_order(struct parts *parts)
{
	int r = 0;

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
		window->max_size = *nr <= 1 ? SIZE_MAX : max_size;
		r = write_range(parts, &data, &size);
		if (r == -EFBIG)
			size = guessed_size(window, *nr);
		else if (r)
			return r;
		if (!r && (size <= max_size || *nr <= 1)) {
			*ret = TAKE_PTR(data);
			*ret_size = size;
			return 0;
		}
		/* Less than before: `size` is larger than max_size. */
		*nr = scaled(*nr, size, max_size);
	}
}

int otlp_write_parts(const struct profile *p, enum otlp_schema schema, size_t max_size,
		     otlp_part_fn *part, void *ctx)
{
	_cleanup_(parts_fini) struct parts parts = { .p = p, .schema = schema };
	uint32_t nr;
	int r = put_in_order(&parts);

	nr = (uint32_t)parts.units.nr;
	while (!r) {
		_cleanup_free_ char *data = NULL;
		uint64_t samples = 0;
		size_t size = 0;

		r = write_what_fits(&parts, max_size, &nr, &data, &size);
		if (r)
			break;
		for (uint32_t i = parts.window.from; i < parts.window.to; i++)
			samples += samples_of(&parts, &parts.units.items[i]);
		r = part(ctx, data, size, samples);
		parts.window.from = parts.window.to;
		if (parts.window.from >= parts.units.nr)
			break;
		nr = scaled(nr, size, max_size);
	}
	return r;
}
