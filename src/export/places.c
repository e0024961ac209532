// SPDX-License-Identifier: Apache-2.0
#include "export/places.h"

#include "util/cleanup.h"
#include "util/intern.h"
#include "util/sorted.h"

#include <string.h>
#include <xxhash.h>

/* --- places ----------------------------------------------------------------------------------- */

static bool same_place(const struct place *a, const struct place *b)
{
	return a->address == b->address && a->function == b->function && a->file == b->file &&
	       a->line == b->line && a->kind == b->kind && a->scope == b->scope;
}

static int intern(struct place_table *t, const struct place *place, uint32_t *ret)
{
	const uint64_t key[4] = { place->address, (uint64_t)place->function << 32 | place->file,
				  (uint64_t)place->line << 32 | place->kind, place->scope };
	uint64_t hash = XXH3_64bits(key, sizeof(key));
	int64_t found = intern_find(&t->ids, hash, id, same_place(&t->places.items[id], place));

	if (found < 0)
		return intern_add(&t->ids, &t->places, hash, *place, ret);
	*ret = (uint32_t)found;
	return 0;
}

static int add_inline_frames(struct place_table *t, const struct profile *p, uint32_t frame,
			     bool lines)
{
	const struct profile_frame *f = &p->frames.items[frame];
	uint32_t first = t->first_inline[frame];
	size_t nr = profile_nr_inline_frames(p, frame);
	int r = 0;

	for (uint32_t inline_frame = 0; inline_frame < nr && !r; inline_frame++) {
		const struct profile_line *line = profile_frame_line(p, frame, inline_frame);
		struct place place = { .function = line ? line->function : PLACE_NO_FUNCTION,
				       .file = f->file,
				       .line = line && lines ? line->line : 0,
				       .kind = f->kind,
				       .address = line ? 0 : f->address,
				       .scope = line ? 0 : f->scope,
				       .frame = frame,
				       .inline_frame = inline_frame };

		r = intern(t, &place, &t->of_inline[first + inline_frame]);
	}
	return r;
}

static int add_truncations(struct place_table *t, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->stacks.nr && !r; i++) {
		unsigned stop = p->stacks.items[i].stop;
		struct place place = { .function = stop,
				       .file = PROFILE_NO_FILE,
				       .kind = FRAME_KIND_TRUNCATED };

		if (stop != STOP_COMPLETE && stop < STOP_MAX_ && t->truncated[stop] == UINT32_MAX)
			r = intern(t, &place, &t->truncated[stop]);
	}
	return r;
}

static int build(struct place_table *t, const struct profile *p, bool lines)
{
	size_t nr = p->frames.nr, at = 0;
	int r = 0;

	memset(t->truncated, 0xff, sizeof(t->truncated));
	t->first_inline = calloc(nr + 1, sizeof(*t->first_inline));
	if (!t->first_inline)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		t->first_inline[i] = (uint32_t)at;
		at += profile_nr_inline_frames(p, i);
	}
	if (at > UINT32_MAX - STOP_MAX_)
		return -EOVERFLOW;
	t->first_inline[nr] = (uint32_t)at;
	t->of_inline = calloc(at + 1, sizeof(*t->of_inline));
	if (!t->of_inline)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !r; i++)
		r = add_inline_frames(t, p, i, lines);
	return r ? r : add_truncations(t, p);
}

int place_table_init(struct place_table *t, const struct profile *p, bool lines)
{
	int r;

	*t = (struct place_table){ 0 };
	r = build(t, p, lines);
	if (r)
		place_table_fini(t);
	return r;
}

void place_table_fini(struct place_table *t)
{
	vec_free(&t->places);
	map_fini(&t->ids);
	free(t->first_inline);
	free(t->of_inline);
	*t = (struct place_table){ 0 };
}

int place_name(const struct place_table *t, const struct profile *p, uint32_t place, char **buf,
	       size_t *size)
{
	const struct place *at = &t->places.items[place];
	size_t need = 80;
	char *grown;

	if (at->kind != FRAME_KIND_TRUNCATED)
		need += profile_frame_label_size(p, at->frame, at->inline_frame);
	if (need > *size) {
		grown = realloc(*buf, need * 2);
		if (!grown)
			return -ENOMEM;
		*buf = grown;
		*size = need * 2;
	}
	if (at->kind == FRAME_KIND_TRUNCATED)
		truncation_name((enum stop_reason)at->function, *buf);
	else
		profile_frame_name(p, at->frame, at->inline_frame, *buf, *size);
	return 0;
}

const char *place_source(const struct profile *p, const struct place *place)
{
	if (place->kind == FRAME_KIND_TRUNCATED || place->function == PLACE_NO_FUNCTION)
		return "";
	return strtab_get(&p->strings, p->functions.items[place->function].source);
}

const char *place_object(const struct profile *p, const struct place *place)
{
	return place->file < p->files.nr ? strtab_get(&p->strings, p->files.items[place->file].path)
					 : "";
}

/* --- names ------------------------------------------------------------------------------------ */

const char *thread_name(const struct profile *p, uint32_t thread)
{
	const char *comm = strtab_get(&p->strings, p->threads.items[thread].comm);

	return *comm ? comm : "[no_name]";
}

const char *truncation_name(enum stop_reason stop, char buf[80])
{
	snprintf(buf, 80, "[truncated: %s]", profile_stop_name(stop));
	return buf;
}

enum stop_reason truncation_parse(const char *name, size_t len)
{
	static const char begin[] = "[truncated: ";
	size_t begin_len = sizeof(begin) - 1;

	if (len < begin_len + 2 || memcmp(name, begin, begin_len) || name[len - 1] != ']')
		return STOP_COMPLETE;
	for (unsigned i = 1; i < STOP_MAX_; i++) {
		const char *reason = profile_stop_name((enum stop_reason)i);

		if (i != STOP_COMPLETE && strlen(reason) == len - begin_len - 1 &&
		    !memcmp(reason, name + begin_len, len - begin_len - 1) &&
		    strcmp(reason, "unknown"))
			return (enum stop_reason)i;
	}
	return STOP_COMPLETE;
}

/* --- order ------------------------------------------------------------------------------------ */

struct event_order {
	const struct profile *p;
	bool by_thread;
};

static int compare_events(const void *a, const void *b, void *ctx)
{
	const uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	const struct event_order *order = ctx;
	const struct profile_event *ea = &order->p->cut.events.items[ia];
	const struct profile_event *eb = &order->p->cut.events.items[ib];
	const struct profile_sample *samples = order->p->cut.samples.items;

	if (order->by_thread && samples[ea->sample].thread != samples[eb->sample].thread)
		return samples[ea->sample].thread < samples[eb->sample].thread ? -1 : 1;
	if (ea->time_ns != eb->time_ns)
		return ea->time_ns < eb->time_ns ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

int order_events(const struct profile *p, bool by_thread, uint32_t **ret)
{
	struct event_order order = { p, by_thread };
	_cleanup_free_ uint32_t *ids = NULL;

	if (p->cut.events.nr >= UINT32_MAX)
		return -EOVERFLOW;
	ids = calloc(p->cut.events.nr + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cut.events.nr; i++)
		ids[i] = i;
	qsort_r(ids, p->cut.events.nr, sizeof(*ids), compare_events, &order);
	*ret = TAKE_PTR(ids);
	return 0;
}

static uint32_t thread_of_event(const struct profile *p, uint32_t event)
{
	return p->cut.samples.items[p->cut.events.items[event].sample].thread;
}

size_t events_of_thread(const struct profile *p, const uint32_t *events, uint32_t thread,
			size_t *ret_first)
{
	size_t low = sorted_before(p->cut.events.nr, i, thread_of_event(p, events[i]) < thread);
	size_t end;

	for (end = low; end < p->cut.events.nr && thread_of_event(p, events[end]) == thread;)
		end++;
	*ret_first = low;
	return end - low;
}

int order_samples(const struct profile *p, uint32_t **ret, uint32_t **ret_first)
{
	_cleanup_free_ uint32_t *first = calloc(p->threads.nr + 2, sizeof(*first));
	_cleanup_free_ uint32_t *ids = calloc(p->cut.samples.nr + 1, sizeof(*ids));

	if (!first || !ids)
		return -ENOMEM;
	/* A counting sort. At last first[t + 1] has moved from where thread t begins to its end. */
	for (size_t i = 0; i < p->cut.samples.nr; i++)
		first[p->cut.samples.items[i].thread + 2]++;
	for (size_t t = 1; t < p->threads.nr + 2; t++)
		first[t] += first[t - 1];
	for (uint32_t i = 0; i < p->cut.samples.nr; i++)
		ids[first[p->cut.samples.items[i].thread + 1]++] = i;
	*ret = TAKE_PTR(ids);
	*ret_first = TAKE_PTR(first);
	return 0;
}

static int compare_totals(const void *a, const void *b, void *ctx)
{
	const uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	const uint64_t *totals = ctx;

	if (totals[ia] != totals[ib])
		return totals[ia] > totals[ib] ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

int order_threads(const struct profile *p, uint32_t **ret, size_t *ret_nr)
{
	_cleanup_free_ uint64_t *totals = calloc(p->threads.nr + 1, sizeof(*totals));
	_cleanup_free_ uint32_t *ids = calloc(p->threads.nr + 1, sizeof(*ids));
	size_t nr = 0;

	if (!totals || !ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->cut.samples.nr; i++)
		totals[p->cut.samples.items[i].thread] += p->cut.samples.items[i].count;
	for (uint32_t i = 0; i < p->threads.nr; i++)
		if (totals[i])
			ids[nr++] = i;
	qsort_r(ids, nr, sizeof(*ids), compare_totals, totals);
	*ret = TAKE_PTR(ids);
	*ret_nr = nr;
	return 0;
}

bool counts_samples(const struct profile *p)
{
	return !strcmp(profile_unit_type(p), "samples") && !strcmp(profile_unit_unit(p), "count");
}

uint64_t period_ns(const struct profile *p)
{
	return p->frequency_hz && counts_samples(p) ? 1000000000 / p->frequency_hz : 0;
}
