// SPDX-License-Identifier: Apache-2.0
/*
 * Reading pprof, of ours and of anybody: see docs/formats/pprof.md. Two passes over the fields of
 * the Profile, since samples may stand before the tables that they refer to: the first notes where
 * the entries of each table are, the second reads the samples and what they use.
 */
#include "export/pprof_internal.h"
#include "export/proto/gzip.h"
#include "export/proto/pack.h"
#include "export/proto/read.h"

#include "pprof.pb-c.h"

#include <string.h>
#include <xxhash.h>

enum { TYPES_MAX = 64 };

struct mapping {
	uint32_t file;
	uint16_t kind;
	uint64_t bias;
};

struct location {
	struct slice message;
	uint32_t frame; /* UINT32_MAX: not yet read */
	uint8_t stop;	/* of a marker "[truncated: reason]"; else STOP_MAX_ */
};

struct function {
	struct slice message;
	uint32_t id; /* of the profile; UINT32_MAX: not yet read */
};

struct value_type {
	struct slice type, unit;
};

struct pprof_reader {
	struct reader base;
	VEC(struct slice) mapping_messages, type_messages;
	struct slice period_message;
	VEC(struct mapping) mappings;
	VEC(struct location) locations;
	VEC(struct function) functions;
	struct map mapping_ids, location_ids, function_ids; /* id -> index */
	struct value_type types[TYPES_MAX], period_type;
	int64_t period, time, duration, default_type;
	uint32_t program; /* string: the first mapping's file */
	/* Which of the values counts; and, if its sums are those of another one, that and how. */
	size_t value, checked;
	uint64_t factor;	    /* 0: nothing to check */
	uint32_t others[TYPES_MAX]; /* the profile's number of each further type; 0: not taken */
	VEC(uint32_t) frames;
	VEC(struct profile_line) lines;
};

#define BASE(r) (&(r)->base)

/* --- first pass: where everything is ---------------------------------------------------------- */

static int note(struct pprof_reader *r, const struct wire_field *f)
{
	struct slice message = { f->data, f->size };
	size_t nr = f->number == PPROF_LOCATION	  ? r->locations.nr
		    : f->number == PPROF_FUNCTION ? r->functions.nr
		    : f->number == PPROF_MAPPING  ? r->mapping_messages.nr
						  : BASE(r)->strings.nr;
	int err = reader_room(BASE(r), nr);

	if (err)
		return err;
	switch (f->number) {
	case PPROF_SAMPLE_TYPE:
		return vec_push(&r->type_messages, message);
	case PPROF_MAPPING:
		return vec_push(&r->mapping_messages, message);
	case PPROF_LOCATION:
		return vec_push(&r->locations,
				((struct location){ message, UINT32_MAX, STOP_MAX_ }));
	case PPROF_FUNCTION:
		return vec_push(&r->functions, ((struct function){ message, UINT32_MAX }));
	case PPROF_STRING_TABLE:
		return vec_push(&BASE(r)->strings, message);
	case PPROF_PERIOD_TYPE:
		r->period_message = message;
	}
	return 0;
}

static void note_number(struct pprof_reader *r, const struct wire_field *f)
{
	int64_t value = (int64_t)f->value;

	switch (f->number) {
	case PPROF_TIME_NANOS:
		r->time = value;
		break;
	case PPROF_DURATION_NANOS:
		r->duration = value;
		break;
	case PPROF_PERIOD:
		r->period = value;
		break;
	case PPROF_DEFAULT_SAMPLE_TYPE:
		r->default_type = value;
	}
}

static int note_all(struct pprof_reader *r)
{
	struct wire w = BASE(r)->input;
	struct wire_field f;
	int more, err = 0;

	while (!err && (more = wire_next(&w, &f)) > 0) {
		bool message = f.number <= PPROF_STRING_TABLE || f.number == PPROF_PERIOD_TYPE;

		if (message != (f.type == WIRE_BYTES) && f.number <= PPROF_DEFAULT_SAMPLE_TYPE &&
		    f.number != 13) /* comments may be packed or not */
			return reader_bad(BASE(r), "field %u is not of pprof's type", f.number);
		if (message)
			err = note(r, &f);
		else
			note_number(r, &f);
	}
	if (!err && more < 0)
		return reader_bad(BASE(r), "it is cut off or damaged at byte %zu",
				  (size_t)(w.at - BASE(r)->input.at));
	if (!err && BASE(r)->strings.nr && BASE(r)->strings.items[0].size)
		return reader_bad(BASE(r), "string 0 is not empty");
	return err;
}

/* The id of a message, before it is read as a whole: its field 1. */
static int add_id(struct pprof_reader *r, const char *what, struct slice message, struct map *ids,
		  size_t index)
{
	struct wire w = wire_of(message.data, message.size);
	struct wire_field f;
	uint64_t id = 0;
	int more;

	while ((more = wire_next(&w, &f)) > 0)
		if (f.number == 1 && f.type == WIRE_VARINT)
			id = f.value;
	if (more < 0)
		return reader_bad(BASE(r), "a %s is malformed", what);
	if (!id)
		return reader_bad(BASE(r), "a %s has no id", what);
	if (map_get(ids, id))
		return reader_bad(BASE(r), "two %ss have the id %llu", what,
				  (unsigned long long)id);
	return map_put(ids, id, index);
}

static int add_ids(struct pprof_reader *r)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->mapping_messages.nr; i++)
		err = add_id(r, "mapping", r->mapping_messages.items[i], &r->mapping_ids, i);
	for (size_t i = 0; !err && i < r->locations.nr; i++)
		err = add_id(r, "location", r->locations.items[i].message, &r->location_ids, i);
	for (size_t i = 0; !err && i < r->functions.nr; i++)
		err = add_id(r, "function", r->functions.items[i].message, &r->function_ids, i);
	return err;
}

/* --- what is counted -------------------------------------------------------------------------- */

static int read_type(struct pprof_reader *r, struct slice message, struct value_type *ret)
{
	Pprof__ValueType *m;
	int err = reader_unpack(BASE(r), "value type", &pprof__value_type__descriptor, message, &m);

	if (!err)
		err = reader_string(BASE(r), m->type, &ret->type);
	return err ? err : reader_string(BASE(r), m->unit, &ret->unit);
}

static size_t find_type(const struct pprof_reader *r, const char *type, const char *unit)
{
	for (size_t i = 0; i < r->type_messages.nr; i++)
		if (slice_is(r->types[i].type, type) && slice_is(r->types[i].unit, unit))
			return i;
	return SIZE_MAX;
}

/* As pprof chooses: the default type by its name, else the last. */
static int choose_default(struct pprof_reader *r)
{
	struct slice name;
	int err = reader_string(BASE(r), r->default_type, &name);

	if (err)
		return err;
	r->value = r->type_messages.nr - 1;
	for (size_t i = 0; r->default_type && i < r->type_messages.nr; i++)
		if (r->types[i].type.size == name.size &&
		    !memcmp(r->types[i].type.data, name.data, name.size))
			r->value = i;
	return 0;
}

static int read_types(struct pprof_reader *r)
{
	uint32_t hz;
	size_t samples;
	int err = 0;

	if (!r->type_messages.nr)
		return reader_bad(BASE(r), "it has no sample type");
	if (r->type_messages.nr > TYPES_MAX)
		return reader_bad(BASE(r), "it has more than %d sample types", TYPES_MAX);
	for (size_t i = 0; !err && i < r->type_messages.nr; i++)
		err = read_type(r, r->type_messages.items[i], &r->types[i]);
	if (!err)
		err = read_type(r, r->period_message, &r->period_type);
	if (!err)
		err = choose_default(r);
	if (err)
		return err;
	/*
	 * Time on the CPU that is a number of samples of a known frequency is the same told less
	 * well: then the samples count, as in a profile of our own.
	 */
	hz = reader_frequency(r->period_type.type, r->period_type.unit, r->period);
	samples = find_type(r, "samples", "count");
	if (hz && samples != SIZE_MAX && find_type(r, "cpu", "nanoseconds") == r->value) {
		r->checked = r->value;
		r->value = samples;
		r->factor = (uint64_t)r->period;
	}
	return 0;
}

static int set_unit(struct pprof_reader *r)
{
	const struct value_type *t = &r->types[r->value];

	BASE(r)->p->frequency_hz = 0;
	if (slice_is(t->type, "samples") && slice_is(t->unit, "count"))
		BASE(r)->p->frequency_hz =
			reader_frequency(r->period_type.type, r->period_type.unit, r->period);
	return reader_unit(BASE(r), t->type, t->unit);
}

/* --- mappings, functions, locations ----------------------------------------------------------- */

static struct slice last_component(struct slice s)
{
	const uint8_t *slash = s.size ? memrchr(s.data, '/', s.size) : NULL;

	if (slash)
		s = (struct slice){ slash + 1, s.size - (size_t)(slash + 1 - s.data) };
	return s;
}

static int read_mapping(struct pprof_reader *r, size_t index)
{
	struct mapping to = { 0 };
	struct slice path, id;
	Pprof__Mapping *m;
	int err;

	err = reader_unpack(BASE(r), "mapping", &pprof__mapping__descriptor,
			    r->mapping_messages.items[index], &m);
	if (!err)
		err = reader_string(BASE(r), m->filename, &path);
	if (!err)
		err = reader_string(BASE(r), m->build_id, &id);
	if (!err)
		err = reader_file(BASE(r), path, id, &to.file, &to.kind);
	/* A Go program's own id has slashes. */
	if (!err && id.size && memchr(id.data, '/', id.size) && to.file != PROFILE_NO_FILE)
		err = reader_intern_slice(BASE(r), id,
					  &BASE(r)->p->files.items[to.file].go_build_id);
	if (err)
		return err;
	reader_place_file(BASE(r), to.file, m->memory_start, m->memory_limit, m->file_offset,
			  &to.bias);
	if (!index && path.size && path.data[0] != '[') {
		err = reader_intern_slice(BASE(r), last_component(path), &r->program);
		if (err)
			return err;
	}
	return vec_push(&r->mappings, to);
}

static int read_function(struct pprof_reader *r, uint64_t id, uint32_t *ret)
{
	const uint64_t *index = map_get(&r->function_ids, id);
	struct function *f;
	Pprof__Function *m;
	int err;

	if (!index)
		return reader_bad(BASE(r), "it names function %llu, which it does not have",
				  (unsigned long long)id);
	f = &r->functions.items[*index];
	if (f->id != UINT32_MAX) {
		*ret = f->id;
		return 0;
	}
	err = reader_unpack(BASE(r), "function", &pprof__function__descriptor, f->message, &m);
	if (!err)
		err = reader_add_function(BASE(r),
					  &(struct reader_function){ m->name, m->system_name,
								     m->filename, m->start_line },
					  &f->id);
	if (!err)
		*ret = f->id;
	return err;
}

/* The inline frames of a location, whose message's memory is used again for its functions'. */
static int read_lines(struct pprof_reader *r, Pprof__Location *m)
{
	int err = 0;

	r->lines.nr = 0;
	for (size_t i = 0; !err && i < m->n_line; i++)
		if (m->line[i]->function_id)
			err = vec_push(
				&r->lines,
				((struct profile_line){ 0, reader_line_number(m->line[i]->line),
							reader_line_number(m->line[i]->column) }));
	return err;
}

static int read_functions_of(struct pprof_reader *r, struct slice location)
{
	struct wire w = wire_of(location.data, location.size), line;
	struct wire_field f, g;
	size_t nr = 0;
	int err = 0;

	/* In the order in which read_lines() saw them, and well-formed since that succeeded. */
	while (!err && wire_next(&w, &f) > 0) {
		uint64_t id = 0;

		if (f.number != 4 || f.type != WIRE_BYTES)
			continue;
		line = wire_of(f.data, f.size);
		while (wire_next(&line, &g) > 0)
			if (g.number == 1 && g.type == WIRE_VARINT)
				id = g.value;
		if (id && nr < r->lines.nr)
			err = read_function(r, id, &r->lines.items[nr++].function);
	}
	return err;
}

static enum stop_reason marker_of(const struct pprof_reader *r)
{
	const struct profile *p = r->base.p;
	const char *name;

	if (r->lines.nr != 1)
		return STOP_MAX_;
	name = strtab_get(&p->strings, p->functions.items[r->lines.items[0].function].name);
	return pack_parse_marker(name, strlen(name));
}

static int read_location(struct pprof_reader *r, struct location *to)
{
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE, .file = PROFILE_NO_FILE };
	const uint64_t *mapping = NULL;
	Pprof__Location *m;
	int err;

	err = reader_unpack(BASE(r), "location", &pprof__location__descriptor, to->message, &m);
	if (err)
		return err;
	frame.address = m->address;
	if (m->mapping_id) {
		mapping = map_get(&r->mapping_ids, m->mapping_id);
		if (!mapping)
			return reader_bad(BASE(r), "it names mapping %llu, which it does not have",
					  (unsigned long long)m->mapping_id);
		frame.file = r->mappings.items[*mapping].file;
		frame.kind = r->mappings.items[*mapping].kind;
		frame.address += r->mappings.items[*mapping].bias;
	}
	err = read_lines(r, m);
	if (!err)
		err = read_functions_of(r, to->message);
	if (err)
		return err;
	to->stop = (uint8_t)marker_of(r);
	if (to->stop != STOP_MAX_)
		frame.kind = FRAME_KIND_TRUNCATED;
	return profile_add_named_frame(BASE(r)->p, &frame, r->lines.items, r->lines.nr, &to->frame);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int read_stack(struct pprof_reader *r, const Pprof__Sample *m)
{
	int err;

	r->frames.nr = 0;
	err = vec_reserve(&r->frames, m->n_location_id);
	for (size_t i = 0; !err && i < m->n_location_id; i++) {
		const uint64_t *index = map_get(&r->location_ids, m->location_id[i]);

		if (!index)
			return reader_bad(BASE(r), "it names location %llu, which it does not have",
					  (unsigned long long)m->location_id[i]);
		/* The location's number first; its frame when the sample's memory is free again. */
		r->frames.items[r->frames.nr++] = (uint32_t)*index;
	}
	return err;
}

static int add_stack(struct pprof_reader *r, uint32_t *ret)
{
	enum stop_reason stop = STOP_COMPLETE;
	size_t nr = r->frames.nr;
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		struct location *l = &r->locations.items[r->frames.items[i]];

		if (l->frame == UINT32_MAX)
			err = read_location(r, l);
		r->frames.items[i] = l->frame;
		if (!err && i + 1 == nr && l->stop != STOP_MAX_) {
			stop = l->stop;
			nr--;
			break;
		}
	}
	return err ? err : profile_add_stack(BASE(r)->p, r->frames.items, nr, stop, ret);
}

struct labels {
	struct slice thread, process, container, carrier;
	int64_t pid, tid;
};

/* Keys as Sonde, perf_to_profile, Parca, async-profiler and the OpenTelemetry conventions say. */
static void read_label(struct labels *l, struct slice key, struct slice text, int64_t number)
{
	static const struct {
		const char *key;
		uint8_t field;
	} known[] = {
		{ "thread", 't' },
		{ "thread_comm", 't' },
		{ "thread name", 't' },
		{ "thread_name", 't' },
		{ "thread.name", 't' },
		{ "comm", 'c' },
		{ "process", 'p' },
		{ "process_name", 'p' },
		{ "process.executable.name", 'p' },
		{ "pid", 'P' },
		{ "process_id", 'P' },
		{ "process.pid", 'P' },
		{ "tid", 'T' },
		{ "thread_id", 'T' },
		{ "thread id", 'T' },
		{ "thread.id", 'T' },
		{ "container", 'C' },
		{ "container.id", 'C' },
		{ "container_id", 'C' },
		{ "carrier", 'r' },
	};
	uint8_t field = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (slice_is(key, known[i].key))
			field = known[i].field;
	if (!number && text.size && (field == 'P' || field == 'T') && text.size < 11) {
		for (size_t i = 0; i < text.size; i++) {
			if (text.data[i] < '0' || text.data[i] > '9')
				return;
			number = number * 10 + (text.data[i] - '0');
		}
	}
	if (field == 't' || (field == 'c' && !l->thread.size))
		l->thread = text;
	else if (field == 'p')
		l->process = text;
	else if (field == 'C')
		l->container = text;
	else if (field == 'r')
		l->carrier = text;
	else if (field == 'P' && number > 0 && number <= INT32_MAX)
		l->pid = number;
	else if (field == 'T' && number > 0 && number <= INT32_MAX)
		l->tid = number;
}

static int read_labels(struct pprof_reader *r, const Pprof__Sample *m, struct labels *l)
{
	for (size_t i = 0; i < m->n_label; i++) {
		struct slice key, text;
		int err = reader_string(BASE(r), m->label[i]->key, &key);

		if (!err)
			err = reader_string(BASE(r), m->label[i]->str, &text);
		if (err)
			return err;
		read_label(l, key, text, m->label[i]->num);
	}
	return 0;
}

static int add_thread(struct pprof_reader *r, const struct labels *l, uint32_t *ret)
{
	struct profile *p = BASE(r)->p;
	uint32_t names[3] = { 0 }, carrier = 0, process;
	int err;

	err = reader_intern_slice(BASE(r), l->thread, &names[0]);
	if (!err)
		err = reader_intern_slice(BASE(r), l->process, &names[1]);
	if (!err)
		err = reader_intern_slice(BASE(r), l->container, &names[2]);
	if (!err)
		err = reader_intern_slice(BASE(r), l->carrier, &carrier);
	if (err)
		return err;
	if (!names[1] && l->tid && l->tid == l->pid)
		names[1] = names[0];
	if (!names[1] && !l->pid)
		names[1] = r->program;
	err = profile_add_process(p, (int32_t)l->pid, XXH3_64bits(&names[1], 2 * sizeof(names[0])),
				  &process);
	if (err)
		return err;
	p->processes.items[process].name = names[1];
	p->processes.items[process].container = names[2];
	/* Who does not tell threads apart: one, called as its process. */
	return profile_add_carried_thread(p, process, (int32_t)l->tid,
					  strtab_get(&p->strings, names[0] ? names[0] : names[1]),
					  strtab_get(&p->strings, carrier), ret);
}

/* Types beside the one that counts are types of the profile, as many as it has room for. */
static int add_types(struct pprof_reader *r)
{
	struct profile *p = BASE(r)->p;
	uint32_t type, unit;
	int err = 0;

	memset(r->others, 0, sizeof(r->others));
	for (size_t i = 0; !err && i < r->type_messages.nr; i++) {
		const struct value_type *t = &r->types[i];

		if (i == r->value || (r->factor && i == r->checked) || !t->type.size ||
		    !t->unit.size)
			continue;
		err = reader_intern_slice(BASE(r), t->type, &type);
		if (!err)
			err = reader_intern_slice(BASE(r), t->unit, &unit);
		if (!err)
			err = profile_add_type(p, strtab_get(&p->strings, type),
					       strtab_get(&p->strings, unit), &r->others[i]);
		if (err == -E2BIG)
			return 0;
	}
	return err;
}

/* Whether the sample has anything that counts; a negative errno. */
static int check_values(struct pprof_reader *r, const Pprof__Sample *m)
{
	uint64_t value = (uint64_t)m->value[r->value];
	int err = 0, has_any = 0;

	for (size_t i = 0; !err && i < m->n_value; i++) {
		if (i != r->value && !r->others[i])
			continue;
		err = reader_count(BASE(r), m->value[i]);
		has_any |= m->value[i] != 0;
	}
	if (!err && r->factor && (uint64_t)m->value[r->checked] != value * r->factor)
		return -EAGAIN;
	return err ? err : has_any;
}

static int add_values(struct pprof_reader *r, const int64_t *values, uint32_t thread,
		      uint32_t stack)
{
	struct profile_measured measured = { .thread = thread, .stack = stack };
	uint32_t sample;
	int err = 0;

	for (size_t i = 0; !err && i < r->type_messages.nr; i++) {
		if (!values[i] || (i != r->value && !r->others[i]))
			continue;
		measured.type = r->others[i];
		measured.value = (uint64_t)values[i];
		err = profile_add_measured(BASE(r)->p, &measured, &sample);
	}
	return err;
}

/* -EAGAIN: the samples are not what the checked values say. */
static int read_sample(struct pprof_reader *r, struct slice message)
{
	struct labels labels = { 0 };
	int64_t values[TYPES_MAX]; /* what is unpacked next takes the message's place */
	uint32_t stack, thread;
	Pprof__Sample *m;
	int err;

	err = reader_unpack(BASE(r), "sample", &pprof__sample__descriptor, message, &m);
	if (err)
		return err;
	if (m->n_value != r->type_messages.nr)
		return reader_bad(BASE(r), "a sample has %zu values for %zu sample types",
				  m->n_value, r->type_messages.nr);
	err = check_values(r, m);
	if (err <= 0)
		return err;
	memcpy(values, m->value, m->n_value * sizeof(*values));
	err = read_labels(r, m, &labels);
	if (!err)
		err = read_stack(r, m);
	if (!err)
		err = add_stack(r, &stack);
	if (!err)
		err = add_thread(r, &labels, &thread);
	if (!err)
		err = add_values(r, values, thread, stack);
	return err ? err : reader_check_size(BASE(r));
}

static int read_samples(struct pprof_reader *r)
{
	struct wire w = BASE(r)->input;
	struct wire_field f;
	int err = set_unit(r);

	if (!err)
		err = add_types(r);
	while (!err && wire_next(&w, &f) > 0)
		if (f.number == PPROF_SAMPLE)
			err = read_sample(r, (struct slice){ f.data, f.size });
	return err;
}

static int parse(struct reader *base)
{
	struct pprof_reader *r = (struct pprof_reader *)base;
	int err = note_all(r);

	if (!err)
		err = read_types(r);
	if (!err)
		err = add_ids(r);
	for (size_t i = 0; !err && i < r->mapping_messages.nr; i++)
		err = read_mapping(r, i);
	if (!err)
		err = read_samples(r);
	if (err == -EAGAIN) {
		profile_clear_samples(base->p);
		base->total = 0;
		for (size_t i = 0; i < r->locations.nr; i++)
			r->locations.items[i].frame = UINT32_MAX;
		r->value = r->checked;
		r->factor = 0;
		err = read_samples(r);
	}
	if (!err && r->time > 0)
		base->p->cut.start_ns = (uint64_t)r->time;
	if (!err && r->duration > 0)
		base->p->cut.duration_ns = (uint64_t)r->duration;
	return err;
}

static void reader_fini(struct reader *base)
{
	struct pprof_reader *r = (struct pprof_reader *)base;

	vec_free(&r->mapping_messages);
	vec_free(&r->type_messages);
	vec_free(&r->mappings);
	vec_free(&r->locations);
	vec_free(&r->functions);
	map_fini(&r->mapping_ids);
	map_fini(&r->location_ids);
	map_fini(&r->function_ids);
	vec_free(&r->frames);
	vec_free(&r->lines);
}

int pprof_read(const void *data, size_t size, struct profile *ret, char ret_problem[200])
{
	return reader_run(data, size, sizeof(struct pprof_reader), parse, reader_fini, ret,
			  ret_problem);
}

/*
 * A Profile begins with a sample type, in whatever wrote it in the order of the fields, and that is
 * two numbers: no text and no other format of ours begins so.
 */
bool pprof_recognise(const void *data, size_t size)
{
	uint8_t head[64];
	struct wire w = wire_of(data, size), type;
	struct wire_field f, g;
	int more;

	if (gzip_is(data, size))
		w = wire_of(head, gzip_peek(data, size, head, sizeof(head)));
	if (wire_next(&w, &f) <= 0 || f.number != PPROF_SAMPLE_TYPE || f.type != WIRE_BYTES)
		return false;
	type = wire_of(f.data, f.size);
	while ((more = wire_next(&type, &g)) > 0)
		if (g.number > 2 || g.type != WIRE_VARINT)
			return false;
	return !more && f.size;
}
