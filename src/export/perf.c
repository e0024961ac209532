// SPDX-License-Identifier: Apache-2.0
/*
 * Text as `perf script --header --ns -F comm,pid,tid,cpu,time,period,event,ip,sym,dso` prints it;
 * perf_read.c reads it. What we know beyond that stands in comments of the header. See
 * docs/formats/perf.md.
 */
#include "export/formats.h"
#include "export/perf_text.h"
#include "export/places.h"
#include "util/cleanup.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

struct writer {
	const struct profile *p;
	FILE *out;
	bool lines;
	uint64_t period;
	char *event;
	/* By string of the profile: the kind of the frames whose source it is, if that is what
	 * stands in place of their file; else 0. */
	uint8_t *kind_of_source;
	char *buf;
	size_t size;
};

/* In kind_of_source while it is filled: never stands for a file. */
enum { NO_SOURCE = FRAME_KIND_MAX_ };

static void writer_fini(struct writer *w)
{
	free(w->event);
	free(w->kind_of_source);
	free(w->buf);
}

static int reserve(struct writer *w, size_t size)
{
	char *grown;

	if (size <= w->size)
		return 0;
	grown = realloc(w->buf, size * 2);
	if (!grown)
		return -ENOMEM;
	w->buf = grown;
	w->size = size * 2;
	return 0;
}

static int clean(struct writer *w, const char *s)
{
	int r = reserve(w, strlen(s) + 1);

	if (!r)
		profile_clean_text(s, strlen(s), w->buf, w->size);
	return r;
}

/* Names in parentheses end where they close: unbalanced ones would not. */
static void balance(char *s)
{
	int depth = 0;

	for (const char *c = s; *c && depth >= 0; c++)
		depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
	if (!depth)
		return;
	for (; *s; s++)
		if (*s == '(' || *s == ')')
			*s = '_';
}

/* --- sources ---------------------------------------------------------------------------------- */

/* The source of a runtime's function; 0: not known. */
static uint32_t source_of(const struct profile *p, const struct profile_frame *f)
{
	if (!f->nr_lines || !profile_runtime_name(f->kind))
		return 0;
	return p->functions.items[p->lines.items[f->first_line + f->nr_lines - 1].function].source;
}

/* What nobody takes for anything else than a file of that name. */
static bool is_plain(const char *source)
{
	return *source != '[' && strcmp(source, "inlined") && strcmp(source, "//anon") &&
	       !perf_text_kernel_dso(source, strlen(source));
}

static int find_sources(struct writer *w)
{
	const struct profile *p = w->p;
	uint8_t *kinds = calloc(p->strings.strings.nr + 1, sizeof(*kinds));

	if (!kinds)
		return -ENOMEM;
	w->kind_of_source = kinds;
	for (size_t i = 0; i < p->files.nr; i++)
		kinds[p->files.items[i].path] = NO_SOURCE;
	for (size_t i = 0; i < p->frames.nr; i++) {
		const struct profile_frame *f = &p->frames.items[i];
		uint32_t source = source_of(p, f);

		if (source && !kinds[source] && is_plain(strtab_get(&p->strings, source)))
			kinds[source] = (uint8_t)f->kind;
		else if (source && kinds[source] != f->kind)
			kinds[source] = NO_SOURCE;
	}
	for (size_t i = 0; i < p->strings.strings.nr; i++)
		if (kinds[i] == NO_SOURCE)
			kinds[i] = 0;
	return 0;
}

/* Tells these files for what they are. */
static int put_sources(struct writer *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->p->strings.strings.nr && !r; i++) {
		if (!w->kind_of_source[i])
			continue;
		r = clean(w, strtab_get(&w->p->strings, i));
		if (r)
			break;
		balance(w->buf);
		fprintf(w->out, "# " PERF_TEXT_SOURCE "%s : %s\n",
			profile_runtime_name(w->kind_of_source[i]), w->buf);
	}
	return r;
}

/* --- the file's head -------------------------------------------------------------------------- */

static int put_head_line(struct writer *w, const char *key, uint32_t string)
{
	const char *s = strtab_get(&w->p->strings, string);
	int r = clean(w, s);

	if (!r && *s)
		fprintf(w->out, "# %s : %s\n", key, w->buf);
	return r;
}

static int put_head(struct writer *w)
{
	time_t start_s = (time_t)(w->p->cut.start_ns / 1000000000);
	char date[64];
	struct tm tm;
	int r;

	fputs("# ========\n", w->out);
	if (w->p->cut.start_ns && gmtime_r(&start_s, &tm) &&
	    strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", &tm))
		fprintf(w->out, "# captured on    : %s\n", date);
	r = put_head_line(w, "hostname", w->p->host.name);
	if (!r)
		r = put_head_line(w, "os release", w->p->host.os);
	if (!r)
		r = put_head_line(w, "arch", w->p->host.arch);
	fprintf(w->out, "# " PERF_TEXT_START "%" PRIu64 "\n", w->p->cut.start_ns);
	fprintf(w->out, "# " PERF_TEXT_DURATION "%" PRIu64 "\n", w->p->cut.duration_ns);
	fprintf(w->out, "# " PERF_TEXT_FREQUENCY "%u\n", w->p->frequency_hz);
	if (!w->p->cut.events.nr)
		fprintf(w->out, "# " PERF_TEXT_WEIGHT "%" PRIu64 "\n", w->period);
	if (!r && !counts_samples(w->p)) {
		r = clean(w, profile_unit_type(w->p));
		if (!r)
			fprintf(w->out, "# " PERF_TEXT_TYPE "%s\n", w->buf);
		if (!r)
			r = clean(w, profile_unit_unit(w->p));
		if (!r)
			fprintf(w->out, "# " PERF_TEXT_UNIT "%s\n", w->buf);
	}
	if (!r)
		r = put_sources(w);
	fputs("# ========\n#\n", w->out);
	return r;
}

/* perf's own name for what sonde samples by; else what is counted, as one word. */
static int choose_event(struct writer *w)
{
	int r;

	w->period = period_ns(w->p);
	if (w->period) {
		w->event = strdup("cpu-clock");
		return w->event ? 0 : -ENOMEM;
	}
	w->period = 1;
	r = clean(w, profile_unit_type(w->p));
	if (r)
		return r;
	for (char *c = w->buf; *c; c++)
		if (*c == ' ' || *c == ':')
			*c = '_';
	w->event = strdup(*w->buf ? w->buf : "samples");
	return w->event ? 0 : -ENOMEM;
}

/* --- samples ---------------------------------------------------------------------------------- */

/*
 * The comm as it is, but for blanks behind which a parser could take something for the PID or the
 * CPU: a digit or '['. They, those at either end, and what is too many become '_', as all do in
 * folded text.
 */
static int put_comm(struct writer *w, uint32_t thread)
{
	enum { BLANKS_MAX = 15 }; /* a comm of Linux has at most as many bytes */
	int r = clean(w, thread_name(w->p, thread)), nr = 0;

	if (r)
		return r;
	for (char *c = w->buf; *c; c++)
		if (*c == ' ' && (c == w->buf || !c[1] || strchr(" [-", c[1]) ||
				  isdigit((unsigned char)c[1]) || ++nr > BLANKS_MAX))
			*c = '_';
	/* Comments begin so. */
	fputs(w->buf[0] == '#' ? "_" : "", w->out);
	fputs(w->buf[0] == '#' ? w->buf + 1 : w->buf, w->out);
	return 0;
}

static int put_dso(struct writer *w, const struct profile_frame *f)
{
	uint32_t source = source_of(w->p, f);
	const char *path = "";
	char runtime[64];
	int r;

	if (source && w->kind_of_source[source])
		path = strtab_get(&w->p->strings, source);
	else if (profile_runtime_name(f->kind))
		snprintf(runtime, sizeof(runtime), "[%s]", profile_runtime_name(f->kind));
	else if (f->file < w->p->files.nr)
		path = strtab_get(&w->p->strings, w->p->files.items[f->file].path);
	if (f->kind == FRAME_KIND_KERNEL &&
	    (!strcmp(path, "[kernel]") || !perf_text_kernel_dso(path, strlen(path))))
		path = "[kernel.kallsyms]";
	else if (!strcmp(path, "[anon]"))
		path = "//anon";
	else if (!*path)
		path = profile_runtime_name(f->kind) ? runtime : "[unknown]";
	r = clean(w, path);
	if (r)
		return r;
	balance(w->buf);
	fprintf(w->out, " (%s)\n", w->buf);
	return 0;
}

static int put_frame(struct writer *w, uint32_t id)
{
	const struct profile_frame *f = &w->p->frames.items[id];
	size_t nr = profile_nr_inline_frames(w->p, id);
	int r = 0;

	for (size_t inline_frame = 0; inline_frame < nr && !r; inline_frame++) {
		const struct profile_line *line = profile_frame_line(w->p, id, inline_frame);

		r = reserve(w, profile_frame_label_size(w->p, id, inline_frame));
		if (r)
			return r;
		profile_frame_name(w->p, id, inline_frame, w->buf, w->size);
		fprintf(w->out, "\t%16" PRIx64 " %s", f->address,
			line && *w->buf ? w->buf : "[unknown]");
		if (line && line->line && w->lines)
			fprintf(w->out, ":%u", line->line);
		if (inline_frame + 1 < nr)
			fputs(" (inlined)\n", w->out);
		else
			r = put_dso(w, f);
	}
	return r;
}

static int put_sample(struct writer *w, const struct profile_sample *s, uint64_t time_ns,
		      uint32_t cpu, uint64_t count)
{
	const struct profile_stack *stack = &w->p->stacks.items[s->stack];
	const struct profile_thread *thread = &w->p->threads.items[s->thread];
	char marker[80];
	uint64_t period;
	int r = put_comm(w, s->thread);

	if (__builtin_mul_overflow(count, w->period, &period))
		period = UINT64_MAX;
	fprintf(w->out, " %d/%d [%03u] %" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " %s: \n",
		w->p->processes.items[thread->process].pid, thread->tid, cpu, time_ns / 1000000000,
		time_ns % 1000000000, period, w->event);
	for (uint32_t i = 0; i < stack->nr && !r; i++)
		r = put_frame(w, w->p->stack_frames.items[stack->first + i]);
	if (stack->stop != STOP_COMPLETE && stack->stop < STOP_MAX_ && stack->stop)
		fprintf(w->out, "\t%16x %s ([unknown])\n", 0,
			truncation_name((enum stop_reason)stack->stop, marker));
	fputc('\n', w->out);
	return r;
}

static int put_events(struct writer *w)
{
	_cleanup_free_ uint32_t *order = NULL;
	int r = order_events(w->p, false, &order);

	for (size_t i = 0; i < w->p->cut.events.nr && !r && !ferror(w->out); i++) {
		const struct profile_event *e = &w->p->cut.events.items[order[i]];

		r = put_sample(w, &w->p->cut.samples.items[e->sample], e->time_ns, e->cpu, 1);
	}
	return r;
}

static int perf_write(const struct profile *p, const struct export_options *options, FILE *out)
{
	_cleanup_(writer_fini) struct writer w = { .p = p, .out = out, .lines = options->lines };
	int r = choose_event(&w);

	if (!r)
		r = find_sources(&w);
	if (!r)
		r = put_head(&w);
	if (!r && p->cut.events.nr)
		return put_events(&w);
	for (size_t i = 0; i < p->cut.samples.nr && !r && !ferror(out); i++)
		r = put_sample(&w, &p->cut.samples.items[i], 0, 0, p->cut.samples.items[i].count);
	return r;
}

const struct export_ops export_perf = {
	.name = "perf",
	.extensions = (const char *const[]){ ".perf", ".linux-perf.txt", NULL },
	.description = "text as perf script prints it, a sample a time",
	.wants_events = true,
	.write = perf_write,
	.read = perf_text_read,
	.recognise = perf_text_recognise,
};
