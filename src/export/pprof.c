// SPDX-License-Identifier: Apache-2.0
/*
 * pprof: a gzip'ed perftools.profiles.Profile, see proto/pprof.proto and docs/formats/pprof.md.
 *
 * Messages go out one by one: what is held is a table of strings and some bytes a frame, a function
 * and a file. Ids count from 1 without gaps, since pprof's symbolizer gives new functions the
 * number of those that are there + 1. Behind what the profile has come the markers of truncated
 * stacks.
 */
#include "export/formats.h"
#include "export/pprof_internal.h"
#include "export/proto/gzip.h"
#include "export/proto/pack.h"
#include "export/proto/used.h"
#include "export/proto/wire.h"
#include "util/cleanup.h"

#include "pprof.pb-c.h"

#include <string.h>

enum {
	FLUSH_SIZE = 128 * 1024,
	THREAD_LABELS = 6,
	/* A trace, a span, and the profile's own. */
	LABELS_MAX = THREAD_LABELS + 2 + PROFILE_LABELS_MAX,
};

struct writer {
	const struct profile *p;
	struct used used;
	struct gzip_writer *gzip;
	struct pack buf;
	struct pack_table strings;
	struct pack_text text;
	uint32_t *string_ids; /* by string of the profile; 0: not yet, or "" */
	/* By frame, function and file, and behind them by stop reason; what is not used has none.
	 */
	uint32_t *location_ids, *function_ids, *mapping_ids;
	VEC(uint64_t) locations;
	VEC(Pprof__Line) lines;
	VEC(Pprof__Line *) line_pointers;
	uint64_t period; /* time of a sample; 0: values have one type only */
	/* The strings of labels' keys. */
	uint32_t key_thread, key_process, key_pid, key_tid, key_container, key_carrier;
	uint32_t key_trace, key_span;
};

static int flush(struct writer *w)
{
	int r = gzip_write(w->gzip, w->buf.items, w->buf.nr);

	w->buf.nr = 0;
	return r;
}

static int put(struct writer *w, enum pprof_field field, const void *message)
{
	int r = pack_message(&w->buf, field, message);

	return r || w->buf.nr < FLUSH_SIZE ? r : flush(w);
}

static int string(struct writer *w, const char *s, uint32_t *ret)
{
	const char *clean;
	int r = pack_clean(&w->text, s, &clean);

	return r ? r : pack_table_bytes(&w->strings, clean, strlen(clean), ret);
}

static int profile_string_id(struct writer *w, uint32_t id, int64_t *ret)
{
	int r = 0;

	if (!w->string_ids[id])
		r = string(w, strtab_get(&w->p->strings, id), &w->string_ids[id]);
	if (!r)
		*ret = w->string_ids[id];
	return r;
}

static size_t marker_location(const struct profile *p, enum stop_reason stop)
{
	return p->frames.nr + stop;
}

static size_t marker_function(const struct profile *p, enum stop_reason stop)
{
	return p->functions.nr + stop;
}

/* Ids from 1 on for what is used of `nr`, and for the markers. */
static uint32_t *number(const bool *used, size_t nr, const bool *stops)
{
	uint32_t *ids = calloc(nr + STOP_MAX_, sizeof(*ids)), next = 1;

	for (size_t i = 0; ids && i < nr; i++)
		if (used[i])
			ids[i] = next++;
	for (size_t i = 0; ids && i < STOP_MAX_; i++)
		if (stops[i])
			ids[nr + i] = next++;
	return ids;
}

static int number_all(struct writer *w)
{
	const struct profile *p = w->p;
	uint32_t next = 1;

	w->location_ids = number(w->used.frames, p->frames.nr, w->used.stops);
	w->function_ids = number(w->used.functions, p->functions.nr, w->used.stops);
	w->mapping_ids = calloc(p->files.nr + USED_NO_FILES, sizeof(*w->mapping_ids));
	if (!w->location_ids || !w->function_ids || !w->mapping_ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->files.nr + USED_NO_FILES; i++)
		if (w->used.files[i].used)
			w->mapping_ids[i] = next++;
	return 0;
}

static int64_t to_value(uint64_t count)
{
	return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

/* --- what is counted -------------------------------------------------------------------------- */

static int put_type(struct writer *w, enum pprof_field field, const char *type, const char *unit)
{
	Pprof__ValueType m = PPROF__VALUE_TYPE__INIT;
	uint32_t id;
	int r;

	r = string(w, type, &id);
	m.type = id;
	if (!r)
		r = string(w, unit, &id);
	m.unit = id;
	return r ? r : put(w, field, &m);
}

static int put_head(struct writer *w)
{
	const struct profile *p = w->p;
	uint64_t period = pack_period_ns(p);
	uint32_t shown = 0;
	int r;

	r = put_type(w, PPROF_SAMPLE_TYPE, profile_unit_type(p), profile_unit_unit(p));
	if (!r && w->period)
		r = put_type(w, PPROF_SAMPLE_TYPE, "cpu", "nanoseconds");
	for (uint32_t i = 1; !r && i < profile_nr_types(p); i++)
		r = put_type(w, PPROF_SAMPLE_TYPE, profile_type_name(p, i),
			     profile_type_unit(p, i));
	if (!r && period)
		r = put_type(w, PPROF_PERIOD_TYPE, "cpu", "nanoseconds");
	/* Else the last type is shown. */
	if (!r && profile_nr_types(p) > 1)
		r = string(w, w->period ? "cpu" : profile_unit_type(p), &shown);
	if (!r)
		r = pack_number(&w->buf, PPROF_DEFAULT_SAMPLE_TYPE, shown);
	if (!r)
		r = pack_number(&w->buf, PPROF_PERIOD, period);
	if (!r)
		r = pack_number(&w->buf, PPROF_TIME_NANOS, p->cut.start_ns);
	return r ? r : pack_number(&w->buf, PPROF_DURATION_NANOS, p->cut.duration_ns);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int fill_labels(struct writer *w, const struct profile_thread *t, Pprof__Label *labels,
		       size_t *nr)
{
	const struct profile_process *process = &w->p->processes.items[t->process];
	const struct {
		uint32_t key, string;
		int32_t number;
	} all[THREAD_LABELS] = {
		{ w->key_thread, t->comm, 0 },
		{ w->key_process, process->name, 0 },
		{ w->key_pid, 0, process->pid },
		{ w->key_tid, 0, t->tid },
		{ w->key_container, process->container, 0 },
		{ w->key_carrier, t->carrier, 0 },
	};
	int r = 0;

	for (size_t i = 0; !r && i < THREAD_LABELS; i++) {
		Pprof__Label *label = &labels[*nr];

		if (!all[i].string && !all[i].number)
			continue;
		pprof__label__init(label);
		label->key = all[i].key;
		label->num = all[i].number;
		r = profile_string_id(w, all[i].string, &label->str);
		++*nr;
	}
	return r;
}

/* Nothing, if it is all zeroes. */
static int add_id(struct writer *w, uint32_t key, const uint8_t *id, size_t size,
		  Pprof__Label *labels, size_t *nr)
{
	char hex[2 * PROFILE_TRACE_ID_SIZE + 1];
	uint32_t text;
	bool any = false;
	int r;

	for (size_t i = 0; i < size; i++) {
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
		any |= id[i] != 0;
	}
	if (!any)
		return 0;
	r = string(w, hex, &text);
	if (r)
		return r;
	pprof__label__init(&labels[*nr]);
	labels[*nr].key = key;
	labels[(*nr)++].str = text;
	return 0;
}

static int add_context(struct writer *w, uint32_t number, Pprof__Label *labels, size_t *nr)
{
	const struct profile_context *context = &w->p->contexts.items[number - 1];
	int r;

	r = add_id(w, w->key_trace, context->trace_id, sizeof(context->trace_id), labels, nr);
	if (!r)
		r = add_id(w, w->key_span, context->span_id, sizeof(context->span_id), labels, nr);
	for (uint32_t i = 0; !r && i < context->nr_labels; i++) {
		const struct profile_label *from = &w->p->labels.items[context->first_label + i];
		Pprof__Label *label = &labels[(*nr)++];

		pprof__label__init(label);
		r = profile_string_id(w, from->key, &label->key);
		if (!r && from->text)
			r = profile_string_id(w, from->text, &label->str);
		else if (!r)
			label->num = from->number;
		if (!r && !from->text)
			r = profile_string_id(w, (uint32_t)from->unit, &label->num_unit);
	}
	return r;
}

/* The values of all types, of which the sample has one. */
static size_t fill_values(const struct writer *w, uint32_t type, uint64_t count, int64_t *values)
{
	size_t nr = (w->period ? 1 : 0) + profile_nr_types(w->p);

	memset(values, 0, nr * sizeof(*values));
	values[type + (type && w->period ? 1 : 0)] = to_value(count);
	if (!type && w->period)
		values[1] = to_value(count * w->period);
	return nr;
}

static int put_sample(struct writer *w, uint32_t type, uint32_t number)
{
	const struct profile_cut *cut = profile_cut_of(w->p, type);
	const struct profile_sample *sample = &cut->samples.items[number];
	uint32_t context = profile_context_of(cut, number);
	const struct profile_stack *s = &w->p->stacks.items[sample->stack];
	int64_t values[1 + PROFILE_TYPES_MAX];
	Pprof__Label labels[LABELS_MAX], *pointers[LABELS_MAX];
	Pprof__Sample m = PPROF__SAMPLE__INIT;
	int r;

	w->locations.nr = 0;
	r = vec_reserve(&w->locations, (size_t)s->nr + 1);
	if (r)
		return r;
	for (uint32_t i = 0; i < s->nr; i++)
		w->locations.items[w->locations.nr++] =
			w->location_ids[w->p->stack_frames.items[s->first + i]];
	if (used_stop(s) != STOP_COMPLETE)
		w->locations.items[w->locations.nr++] =
			w->location_ids[marker_location(w->p, used_stop(s))];
	m.location_id = w->locations.items;
	m.n_location_id = w->locations.nr;
	m.value = values;
	m.n_value = fill_values(w, type, sample->count, values);
	m.label = pointers;
	r = fill_labels(w, &w->p->threads.items[sample->thread], labels, &m.n_label);
	if (!r && context)
		r = add_context(w, context, labels, &m.n_label);
	for (size_t i = 0; i < m.n_label; i++)
		pointers[i] = &labels[i];
	return r ? r : put(w, PPROF_SAMPLE, &m);
}

static int put_samples(struct writer *w)
{
	int r;

	r = string(w, "thread", &w->key_thread);
	if (!r)
		r = string(w, "process", &w->key_process);
	if (!r)
		r = string(w, "pid", &w->key_pid);
	if (!r)
		r = string(w, "tid", &w->key_tid);
	if (!r)
		r = string(w, "container", &w->key_container);
	if (!r)
		r = string(w, "carrier", &w->key_carrier);
	if (!r && w->p->contexts.nr)
		r = string(w, "trace_id", &w->key_trace);
	if (!r && w->p->contexts.nr)
		r = string(w, "span_id", &w->key_span);
	for (uint32_t type = 0; !r && type < profile_nr_types(w->p); type++) {
		const struct profile_cut *cut = profile_cut_of(w->p, type);

		for (uint32_t i = 0; !r && i < cut->samples.nr; i++)
			if (cut->samples.items[i].count)
				r = put_sample(w, type, i);
	}
	return r;
}

/* --- mappings, locations, functions ----------------------------------------------------------- */

/* What stands for the files of frames that have none: "[python]". */
static const char *name_of_no_file(unsigned kind, char buf[64])
{
	const char *runtime = profile_runtime_name(kind);

	if (!runtime)
		return pack_kernel_path;
	snprintf(buf, 64, "[%s]", runtime);
	return buf;
}

static int put_mapping(struct writer *w, uint32_t file)
{
	const struct profile_file *f = file < w->p->files.nr ? &w->p->files.items[file] : NULL;
	struct used_file *used = &w->used.files[file];
	char runtime[64];
	Pprof__Mapping m = PPROF__MAPPING__INIT;
	char hex[2 * sizeof(f->build_id) + 1];
	uint32_t id;
	int r;

	if (!used->used)
		return 0;
	used->used = false; /* once only */
	m.id = w->mapping_ids[file];
	m.has_functions = used->functions;
	m.has_filenames = used->filenames;
	m.has_line_numbers = used->line_numbers;
	m.has_inline_frames = used->inline_frames;
	if (f && used->in_range) {
		m.memory_start = f->start;
		m.memory_limit = f->end;
		m.file_offset = f->offset;
	}
	if (f)
		r = string(w, pack_path(strtab_get(&w->p->strings, f->path)), &id);
	else
		r = string(w, name_of_no_file(file - (uint32_t)w->p->files.nr, runtime), &id);
	m.filename = id;
	if (!r && f && f->build_id_len) {
		for (size_t i = 0; i < f->build_id_len; i++)
			snprintf(hex + 2 * i, 3, "%02x", f->build_id[i]);
		r = string(w, hex, &id);
		m.build_id = id;
	}
	return r ? r : put(w, PPROF_MAPPING, &m);
}

/* The executable of the process that was seen most: pprof takes the first mapping for the program.
 */
static int main_file(const struct profile *p, const struct used *used, uint32_t *ret)
{
	_cleanup_free_ uint64_t *counts = calloc(p->processes.nr + 1, sizeof(*counts));
	uint64_t best = 0;
	uint32_t path = 0;

	if (!counts)
		return -ENOMEM;
	*ret = 0;
	for (size_t i = 0; i < p->cut.samples.nr; i++)
		counts[p->threads.items[p->cut.samples.items[i].thread].process] +=
			p->cut.samples.items[i].count;
	for (size_t i = 0; i < p->processes.nr; i++) {
		if (!p->processes.items[i].path || counts[i] <= best)
			continue;
		best = counts[i];
		path = p->processes.items[i].path;
	}
	for (uint32_t i = 0; path && i < p->files.nr; i++)
		if (p->files.items[i].path == path && used->files[i].used)
			*ret = i;
	return 0;
}

static int put_mappings(struct writer *w)
{
	uint32_t first = 0;
	int r = main_file(w->p, &w->used, &first);

	if (!r)
		r = put_mapping(w, first);
	for (uint32_t i = 0; !r && i < w->p->files.nr + USED_NO_FILES; i++)
		r = put_mapping(w, i);
	return r;
}

static int put_location(struct writer *w, uint32_t id)
{
	const struct profile_frame *f = &w->p->frames.items[id];
	uint32_t file = used_file_of(w->p, f);
	Pprof__Location m = PPROF__LOCATION__INIT;
	int r;

	w->lines.nr = w->line_pointers.nr = 0;
	r = vec_reserve(&w->lines, f->nr_lines);
	if (!r)
		r = vec_reserve(&w->line_pointers, f->nr_lines);
	if (r)
		return r;
	for (uint32_t i = 0; i < f->nr_lines; i++) {
		const struct profile_line *line = &w->p->lines.items[f->first_line + i];
		Pprof__Line *to = &w->lines.items[i];

		pprof__line__init(to);
		to->function_id = w->function_ids[line->function];
		to->line = line->line;
		to->column = line->column;
		w->line_pointers.items[i] = to;
	}
	m.id = w->location_ids[id];
	m.mapping_id = file == PROFILE_NO_FILE ? 0 : w->mapping_ids[file];
	m.address = f->address;
	m.line = w->line_pointers.items;
	m.n_line = f->nr_lines;
	return put(w, PPROF_LOCATION, &m);
}

static int put_function(struct writer *w, uint32_t id)
{
	const struct profile_function *f = &w->p->functions.items[id];
	Pprof__Function m = PPROF__FUNCTION__INIT;
	int r;

	m.id = w->function_ids[id];
	m.start_line = f->start_line;
	r = profile_string_id(w, f->name, &m.name);
	if (!r)
		r = profile_string_id(w, f->linkage_name ? f->linkage_name : f->name,
				      &m.system_name);
	if (!r)
		r = profile_string_id(w, f->source, &m.filename);
	return r ? r : put(w, PPROF_FUNCTION, &m);
}

/* The frame "[truncated: reason]". */
static int put_marker(struct writer *w, enum stop_reason stop)
{
	Pprof__Location location = PPROF__LOCATION__INIT;
	Pprof__Function function = PPROF__FUNCTION__INIT;
	Pprof__Line line = PPROF__LINE__INIT, *lines[1] = { &line };
	char name[80];
	uint32_t id;
	int r;

	snprintf(name, sizeof(name), "[truncated: %s]", profile_stop_name(stop));
	r = string(w, name, &id);
	if (r)
		return r;
	function.id = line.function_id = w->function_ids[marker_function(w->p, stop)];
	function.name = function.system_name = id;
	location.id = w->location_ids[marker_location(w->p, stop)];
	location.line = lines;
	location.n_line = 1;
	r = put(w, PPROF_LOCATION, &location);
	return r ? r : put(w, PPROF_FUNCTION, &function);
}

static int put_tables(struct writer *w)
{
	int r = put_mappings(w);

	for (uint32_t i = 0; !r && i < w->p->frames.nr; i++)
		if (w->used.frames[i])
			r = put_location(w, i);
	for (uint32_t i = 0; !r && i < w->p->functions.nr; i++)
		if (w->used.functions[i])
			r = put_function(w, i);
	for (unsigned i = 0; !r && i < STOP_MAX_; i++)
		if (w->used.stops[i])
			r = put_marker(w, i);
	return r;
}

/* --- the format ------------------------------------------------------------------------------- */

static void writer_fini(struct writer *w)
{
	used_fini(&w->used);
	gzip_writer_free(w->gzip);
	pack_fini(&w->buf);
	pack_table_fini(&w->strings);
	pack_text_fini(&w->text);
	free(w->string_ids);
	free(w->location_ids);
	free(w->function_ids);
	free(w->mapping_ids);
	vec_free(&w->locations);
	vec_free(&w->lines);
	vec_free(&w->line_pointers);
}

static int pprof_write(const struct profile *p, const struct export_options *options, FILE *out)
{
	_cleanup_(writer_fini) struct writer w = { .p = p, .period = pack_period_ns(p) };
	int r;

	(void)options;
	/* More than 292 years are no time that a value could hold. */
	if (w.period && profile_total(p) > INT64_MAX / w.period)
		w.period = 0;
	w.string_ids = calloc(p->strings.strings.nr + 1, sizeof(*w.string_ids));
	if (!w.string_ids)
		return -ENOMEM;
	r = pack_table_init(&w.strings, PPROF_STRING_TABLE);
	if (!r)
		r = used_init(&w.used, p);
	if (!r)
		r = number_all(&w);
	if (!r)
		r = gzip_writer_new(out, GZIP_SMALL, &w.gzip);
	if (!r)
		r = put_head(&w);
	if (!r)
		r = put_samples(&w);
	if (!r)
		r = put_tables(&w);
	if (!r)
		r = flush(&w);
	if (!r)
		r = gzip_write(w.gzip, w.strings.bytes.items, w.strings.bytes.nr);
	return r ? r : gzip_finish(w.gzip);
}

const struct export_ops export_pprof = {
	.name = "pprof",
	.extensions = (const char *const[]){ ".pb.gz", ".pprof", ".pb", NULL },
	.description = "pprof's protobuf, gzip'ed: for go tool pprof, Parca, Pyroscope",
	.write = pprof_write,
	.read = pprof_read,
	.recognise = pprof_recognise,
};
