// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope's own format: one profile a thread, the heaviest first. With times, and if that does
 * not get too long, it is evented: functions begin and end; else sampled: stacks and weights. See
 * docs/formats/speedscope.md.
 */
#include "export/formats.h"
#include "export/json_out.h"
#include "export/places.h"
#include "util/cleanup.h"

#include <inttypes.h>
#include <string.h>

/* "O" and "C" events in all; about 40 bytes each in the file, and several times that in a tab. */
enum { TRANSITIONS_MAX = 1000000 };

struct writer {
	const struct profile *p;
	FILE *out;
	bool lines;
	struct place_table places;
	uint64_t period_ns; /* 0: not known */
	bool evented;
	uint32_t *events;	    /* by thread, then time */
	uint32_t *samples, *first;  /* by thread, see order_samples() */
	VEC(uint32_t) open, wanted; /* outermost first */
	uint64_t nr_transitions, end_ns;
	char *name;
	size_t name_size;
};

static void writer_fini(struct writer *w)
{
	place_table_fini(&w->places);
	free(w->events);
	free(w->samples);
	free(w->first);
	vec_free(&w->open);
	vec_free(&w->wanted);
	free(w->name);
}

/* The stack's places into w->wanted, outermost first. */
static int list_places(struct writer *w, uint32_t stack_id)
{
	const struct profile_stack *stack = &w->p->stacks.items[stack_id];
	const uint32_t *frames = stack_frames(w->p, stack);
	int r = 0;

	w->wanted.nr = 0;
	if (stack->stop < STOP_MAX_ && w->places.truncated[stack->stop] != UINT32_MAX)
		r = vec_push(&w->wanted, w->places.truncated[stack->stop]);
	for (uint32_t k = stack->nr; k > 0; k--) {
		uint32_t first = w->places.first_inline[frames[k - 1]];

		for (uint32_t at = w->places.first_inline[frames[k - 1] + 1]; at > first && !r;
		     at--)
			r = vec_push(&w->wanted, w->places.of_inline[at - 1]);
	}
	return r;
}

static int put_frames(struct writer *w)
{
	fputs("\"shared\":{\"frames\":[", w->out);
	for (uint32_t i = 0; i < w->places.places.nr; i++) {
		const struct place *place = &w->places.places.items[i];
		const char *source = place_source(w->p, place);
		const char *file = *source ? source : place_object(w->p, place);
		uint32_t line = place->line;
		int r = place_name(&w->places, w->p, i, &w->name, &w->name_size);

		if (!line && *source)
			line = w->p->functions.items[place->function].start_line;
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", w->out);
		if (!r)
			r = json_put_string(w->out, w->name);
		if (!r && *file) {
			fputs(",\"file\":", w->out);
			r = json_put_string(w->out, file);
		}
		if (r)
			return r;
		if (line)
			fprintf(w->out, ",\"line\":%u", line);
		fputc('}', w->out);
	}
	fputs("]}", w->out);
	return 0;
}

/* --- evented ---------------------------------------------------------------------------------- */

static void put_transition(struct writer *w, char type, uint32_t place, uint64_t at_ns)
{
	w->nr_transitions++;
	if (w->out)
		fprintf(w->out, "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%" PRIu64 "}",
			w->nr_transitions > 1 ? ",\n" : "\n", type, place, at_ns);
}

/* From the functions that are open to those wanted; what both begin with stays open. */
static int change_to_wanted(struct writer *w, uint64_t at_ns)
{
	size_t same = 0;
	int r = 0;

	while (same < w->open.nr && same < w->wanted.nr &&
	       w->open.items[same] == w->wanted.items[same])
		same++;
	while (w->open.nr > same)
		put_transition(w, 'C', w->open.items[--w->open.nr], at_ns);
	for (; same < w->wanted.nr && !r; same++) {
		put_transition(w, 'O', w->wanted.items[same], at_ns);
		r = vec_push(&w->open, w->wanted.items[same]);
	}
	return r;
}

/*
 * One thread's events. A sample stands until the next one, but at most one and a half periods:
 * after a longer gap the thread did not run, and it stood one period.
 */
static int put_transitions(struct writer *w, const uint32_t *events, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct profile_event *e = &w->p->cut.events.items[events[i]];
		uint64_t at_ns = e->time_ns, end_ns = at_ns + w->period_ns, next_ns = UINT64_MAX;
		int r = list_places(w, w->p->cut.samples.items[e->sample].stack);

		if (!r)
			r = change_to_wanted(w, at_ns);
		if (r)
			return r;
		if (i + 1 < nr)
			next_ns = w->p->cut.events.items[events[i + 1]].time_ns;
		if (next_ns - at_ns <= w->period_ns + w->period_ns / 2)
			continue;
		w->wanted.nr = 0;
		r = change_to_wanted(w, end_ns);
		if (r)
			return r;
		if (end_ns > w->end_ns)
			w->end_ns = end_ns;
	}
	return 0;
}

static int put_evented(struct writer *w, uint32_t thread)
{
	size_t first, nr = events_of_thread(w->p, w->events, thread, &first);
	int r;

	fprintf(w->out,
		",\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":"
		"%" PRIu64 ",\"events\":[",
		w->end_ns);
	w->nr_transitions = 0;
	r = put_transitions(w, w->events + first, nr);
	fputs("]}", w->out);
	return r;
}

/* Counts what would be written, and finds the end of time. */
static int choose_evented(struct writer *w)
{
	FILE *out = w->out;
	int r;

	if (!w->p->cut.events.nr || !w->period_ns)
		return 0;
	r = order_events(w->p, true, &w->events);
	w->out = NULL;
	w->end_ns = w->p->cut.duration_ns;
	for (uint32_t t = 0; t < w->p->threads.nr && w->nr_transitions <= TRANSITIONS_MAX && !r;
	     t++) {
		size_t first, nr = events_of_thread(w->p, w->events, t, &first);

		r = put_transitions(w, w->events + first, nr);
	}
	w->out = out;
	w->evented = w->nr_transitions <= TRANSITIONS_MAX;
	return r;
}

/* --- sampled ---------------------------------------------------------------------------------- */

/* One of the units that speedscope knows. */
static const char *unit(const struct writer *w)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds",
					     "seconds", "bytes" };

	if (w->period_ns)
		return "nanoseconds";
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(profile_unit_unit(w->p), known[i]))
			return known[i];
	return "none";
}

static uint64_t weight(const struct writer *w, const struct profile_sample *sample)
{
	uint64_t product;

	if (__builtin_mul_overflow(sample->count, w->period_ns ? w->period_ns : 1, &product))
		return UINT64_MAX;
	return product;
}

static int put_sampled(struct writer *w, uint32_t thread)
{
	uint64_t total = 0;
	int r = 0;

	fprintf(w->out, ",\"type\":\"sampled\",\"unit\":\"%s\",\"startValue\":0,\"samples\":[",
		unit(w));
	for (uint32_t i = w->first[thread]; i < w->first[thread + 1] && !r; i++) {
		r = list_places(w, w->p->cut.samples.items[w->samples[i]].stack);
		fputs(i > w->first[thread] ? ",\n[" : "\n[", w->out);
		for (size_t k = 0; k < w->wanted.nr; k++)
			fprintf(w->out, "%s%u", k ? "," : "", w->wanted.items[k]);
		fputc(']', w->out);
	}
	fputs("],\n\"weights\":[", w->out);
	for (uint32_t i = w->first[thread]; i < w->first[thread + 1]; i++) {
		uint64_t n = weight(w, &w->p->cut.samples.items[w->samples[i]]);

		fprintf(w->out, "%s%" PRIu64, i > w->first[thread] ? "," : "", n);
		total += n;
	}
	fprintf(w->out, "],\"endValue\":%" PRIu64 "}", total);
	return r;
}

/* --- the file --------------------------------------------------------------------------------- */

static int put_profile(struct writer *w, uint32_t thread)
{
	const struct profile_thread *t = &w->p->threads.items[thread];
	const char *comm = thread_name(w->p, thread);
	int32_t pid = w->p->processes.items[t->process].pid;
	_cleanup_free_ char *name = NULL;
	int r;

	if (asprintf(&name, pid || t->tid ? "%s (%d/%d)" : "%s", comm, pid, t->tid) < 0)
		return -ENOMEM;
	fputs("{\"name\":", w->out);
	r = json_put_string(w->out, name);
	if (r)
		return r;
	return w->evented ? put_evented(w, thread) : put_sampled(w, thread);
}

static int put_profiles(struct writer *w)
{
	_cleanup_free_ uint32_t *threads = NULL;
	size_t nr = 0;
	int r = order_threads(w->p, &threads, &nr);

	fputs(",\n\"profiles\":[", w->out);
	for (size_t i = 0; i < nr && !r; i++) {
		fputs(i ? ",\n" : "\n", w->out);
		r = put_profile(w, threads[i]);
	}
	/* The viewer cannot open a file without any. */
	if (!r && !nr)
		fputs("{\"type\":\"sampled\",\"name\":\"no samples\",\"unit\":\"none\","
		      "\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}",
		      w->out);
	fputs("]", w->out);
	return r;
}

static int speedscope_write(const struct profile *p, const struct export_options *options,
			    FILE *out)
{
	_cleanup_(writer_fini) struct writer w = {
		.p = p, .out = out, .lines = options->lines, .period_ns = period_ns(p)
	};
	int r;

	r = place_table_init(&w.places, p, options->lines);
	if (!r)
		r = order_samples(p, &w.samples, &w.first);
	if (!r)
		r = choose_evented(&w);
	if (r)
		return r;
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"sonde\",\"activeProfileIndex\":0,\n",
	      out);
	r = put_frames(&w);
	if (!r)
		r = put_profiles(&w);
	fputs("}\n", out);
	return r;
}

const struct export_ops export_speedscope = {
	.name = "speedscope",
	.extensions = (const char *const[]){ ".speedscope.json", ".speedscope", NULL },
	.description = "for the speedscope viewer: one profile a thread, in the order of time",
	.wants_events = true,
	.write = speedscope_write,
};
