// SPDX-License-Identifier: Apache-2.0
/*
 * Reading OTLP profiles of the schemas 1.8 to 1.10 (and 1.11, the same), of ours and of anybody:
 * see docs/formats/otlp.md. The first pass notes where the dictionary's entries are and finds what
 * only all samples together tell: the schema, and when it begins and ends. The second reads.
 */
#include "export/otlp_internal.h"
#include "export/otlp_read_internal.h"
#include "export/proto/gzip.h"

#include "otlp.pb-c.h"

#include <string.h>
#include <time.h>
#include <xxhash.h>

typedef int (*profile_visitor)(struct otlp_reader *r, struct slice scope, struct slice profile);
typedef int (*resource_visitor)(struct otlp_reader *r, struct slice resource);

static struct wire wire_of_slice(struct slice s)
{
	return wire_of(s.data, s.size);
}

/* The next field; what can't be read ends it, with `what` as the text. */
static int next_field(struct otlp_reader *r, struct wire *w, struct wire_field *f, const char *what)
{
	int more = wire_next(w, f);

	return more < 0 ? reader_bad(OTLP_BASE(r), "%s cut off or damaged", what) : more;
}

/* --- walking ---------------------------------------------------------------------------------- */

static int find_head(struct otlp_reader *r, struct slice group, struct slice *ret)
{
	struct wire w = wire_of_slice(group);
	struct wire_field f;
	int more;

	*ret = slice_of("");
	while ((more = next_field(r, &w, &f, "a group of profiles is")) > 0)
		if (f.number == OTLP_GROUP_HEAD && f.type == WIRE_BYTES)
			*ret = (struct slice){ f.data, f.size };
	return more;
}

static int each_of_scope(struct otlp_reader *r, struct slice group, profile_visitor fn)
{
	struct wire w = wire_of_slice(group);
	struct slice scope;
	struct wire_field f;
	int err = find_head(r, group, &scope);

	while (!err && wire_next(&w, &f) > 0)
		if (f.number == OTLP_GROUP_MEMBERS && f.type == WIRE_BYTES)
			err = fn(r, scope, (struct slice){ f.data, f.size });
	return err;
}

static int each_of_resource(struct otlp_reader *r, struct slice group, resource_visitor resource_fn,
			    profile_visitor fn)
{
	struct wire w = wire_of_slice(group);
	struct slice resource;
	struct wire_field f;
	int err = find_head(r, group, &resource);

	if (!err && resource_fn)
		err = resource_fn(r, resource);
	while (!err && wire_next(&w, &f) > 0)
		if (f.number == OTLP_GROUP_MEMBERS && f.type == WIRE_BYTES)
			err = each_of_scope(r, (struct slice){ f.data, f.size }, fn);
	return err;
}

/* `fn` for each profile of the request, behind `resource_fn` for the resource it is of. */
static int each_profile(struct otlp_reader *r, resource_visitor resource_fn, profile_visitor fn)
{
	struct wire w = OTLP_BASE(r)->input;
	struct wire_field f;
	int err = 0;

	while (!err && wire_next(&w, &f) > 0)
		if (f.number == OTLP_RESOURCE_PROFILES)
			err = each_of_resource(r, (struct slice){ f.data, f.size }, resource_fn,
					       fn);
	return err;
}

/* --- first pass ------------------------------------------------------------------------------- */

static int note_entry(struct otlp_reader *r, const struct wire_field *f)
{
	struct slice message = { f->data, f->size };
	int err;

#define NOTE(vec)                                                                                  \
	({                                                                                         \
		err = reader_room(OTLP_BASE(r), (vec)->nr);                                        \
		err ? err : vec_push((vec), message);                                              \
	})
	if (f->type != WIRE_BYTES)
		return 0;
	switch (f->number) {
	case OTLP_MAPPING_TABLE:
		return NOTE(&r->mapping_messages);
	case OTLP_LOCATION_TABLE:
		return NOTE(&r->location_messages);
	case OTLP_FUNCTION_TABLE:
		return NOTE(&r->function_messages);
	case OTLP_STRING_TABLE:
		return NOTE(&OTLP_BASE(r)->strings);
	case OTLP_ATTRIBUTE_TABLE:
		return NOTE(&r->attribute_messages);
	case OTLP_STACK_TABLE:
		return NOTE(&r->stack_messages);
	case OTLP_LINK_TABLE:
		return NOTE(&r->link_messages);
	default:
		return 0;
	}
#undef NOTE
}

static int note_dictionary(struct otlp_reader *r, const struct wire_field *dictionary)
{
	struct wire w = wire_of(dictionary->data, dictionary->size);
	struct wire_field f;
	int more, err = 0;

	while (!err && (more = next_field(r, &w, &f, "the dictionary is")) > 0)
		err = note_entry(r, &f);
	return err ? err : more;
}

static int note_request(struct otlp_reader *r)
{
	struct wire w = OTLP_BASE(r)->input;
	bool found = false;
	struct wire_field f;
	int more, err = 0;

	while (!err && (more = next_field(r, &w, &f, "it is")) > 0) {
		if (f.number > OTLP_DICTIONARY)
			continue; /* unknown fields must be ignored */
		if (f.type != WIRE_BYTES)
			return reader_bad(OTLP_BASE(r), "it is no OTLP profiles request");
		found = true;
		if (f.number == OTLP_DICTIONARY)
			err = note_dictionary(r, &f);
	}
	if (err || more < 0)
		return err ? err : more;
	return found ? 0 : reader_bad(OTLP_BASE(r), "it has neither profiles nor a dictionary");
}

static void note_time(struct otlp_reader *r, uint64_t time, uint64_t end)
{
	if (time && time < r->first_ns)
		r->first_ns = time;
	if (time && end > r->end_ns)
		r->end_ns = end;
}

/* Which numbers of fields a sample may have, by their wire types: facts in docs/formats/otlp.md. */
static void note_field_2(struct otlp_reader *r, const struct wire_field *f)
{
	struct wire w = wire_of(f->data, f->size);
	uint64_t index = f->value;

	if (f->type == WIRE_VARINT && index >= r->attribute_messages.nr)
		r->may_be_new = false;
	while (f->type == WIRE_BYTES && wire_varint(&w, &index) > 0)
		if (index >= r->attribute_messages.nr)
			r->may_be_new = false;
}

static void note_times(struct otlp_reader *r, const struct wire_field *f)
{
	if (f->type == WIRE_FIXED64)
		note_time(r, f->value, f->value + 1);
	for (size_t i = 0; f->type == WIRE_BYTES && i + 8 <= f->size; i += 8) {
		uint64_t time = 0;

		for (size_t byte = 0; byte < 8; byte++)
			time |= (uint64_t)f->data[i + byte] << (8 * byte);
		note_time(r, time, time + 1);
	}
}

static int note_sample(struct otlp_reader *r, const struct wire_field *sample)
{
	struct wire w = wire_of(sample->data, sample->size);
	bool is_old = false, is_new = false;
	struct wire_field f;
	int more;

	while ((more = next_field(r, &w, &f, "a sample is")) > 0) {
		if (f.number == 2)
			note_field_2(r, &f);
		else if (f.number == 3)
			*(f.type == WIRE_BYTES ? &is_old : &is_new) = true;
		else if (f.number == 4)
			*(f.type == WIRE_BYTES ? &is_new : &is_old) = true;
		else if (f.number == 5)
			note_times(r, &f);
	}
	r->nr_old += is_old && !is_new;
	r->nr_new += is_new && !is_old;
	return more;
}

static int note_profile(struct otlp_reader *r, struct slice scope, struct slice profile)
{
	struct wire w = wire_of_slice(profile);
	uint64_t time = 0, duration = 0;
	struct wire_field f;
	int more, err = 0;

	(void)scope;
	while (!err && (more = next_field(r, &w, &f, "a profile is")) > 0) {
		if (f.number == OTLP_SAMPLES && f.type == WIRE_BYTES)
			err = note_sample(r, &f);
		else if (f.number == OTLP_TIME_UNIX_NANO && f.type == WIRE_FIXED64)
			time = f.value;
		else if (f.number == OTLP_DURATION_NANO && f.type == WIRE_VARINT)
			duration = f.value;
	}
	if (err || more < 0)
		return err ? err : more;
	note_time(r, time, time + duration);
	return 0;
}

static int note_all(struct otlp_reader *r)
{
	int err;

	r->first_ns = UINT64_MAX;
	r->may_be_new = true;
	err = note_request(r);
	if (!err)
		err = each_profile(r, NULL, note_profile);
	if (err)
		return err;
	r->old = r->nr_old == r->nr_new ? !r->may_be_new : r->nr_old > r->nr_new;
	if (r->first_ns != UINT64_MAX) {
		OTLP_BASE(r)->p->cut.start_ns = r->first_ns;
		if (r->end_ns > r->first_ns)
			OTLP_BASE(r)->p->cut.duration_ns = r->end_ns - r->first_ns;
	}
	return 0;
}

/* --- resources -------------------------------------------------------------------------------- */

/* "2026-11-21T15:43:00.25+01:00" as ns since 1970; 0 if it is none. */
static uint64_t parse_time(const char *s)
{
	struct tm tm = { 0 };
	const char *at = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	uint64_t ns = 0, digit = 100000000;
	int hours = 0, minutes = 0;
	int64_t seconds;
	char sign = 0;

	if (!at)
		return 0;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++, digit /= 10)
			ns += digit * (uint64_t)(*at - '0');
	seconds = timegm(&tm);
	if (sscanf(at, "%c%2d:%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
		seconds -= (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	/* Up to the year 2500: uint64_t ends soon after. */
	return seconds > 0 && seconds < 16725225600 ? (uint64_t)seconds * 1000000000 + ns : 0;
}

static int32_t to_pid(const struct otlp_attribute *a)
{
	return a->number > 0 && a->number <= INT32_MAX ? (int32_t)a->number : 0;
}

struct names {
	uint32_t exe, title, service;
};

static void set_host(struct profile_host *host, const struct otlp_attribute *a)
{
	if (a->key == OTLP_KEY_HOST_NAME)
		host->name = a->text;
	else if (a->key == OTLP_KEY_HOST_ID)
		host->id = a->text;
	else if (a->key == OTLP_KEY_HOST_ARCH)
		host->arch = a->text;
	else if (a->key == OTLP_KEY_OS)
		host->os = a->text;
}

static uint32_t to_uid(const struct otlp_attribute *a)
{
	return a->has_number && a->number >= 0 && a->number < UINT32_MAX ? (uint32_t)a->number
									 : UINT32_MAX;
}

static void set_process(struct otlp_reader *r, struct profile_process *process, struct names *names,
			const struct otlp_attribute *a)
{
	const char *text = strtab_get(&OTLP_BASE(r)->p->strings, a->text);

	switch (a->key) {
	case OTLP_KEY_PID:
		process->pid = to_pid(a);
		break;
	case OTLP_KEY_PARENT_PID:
		process->parent_pid = to_pid(a);
		break;
	case OTLP_KEY_VPID:
		process->vpid = to_pid(a);
		break;
	case OTLP_KEY_GROUP_PID:
		process->group_pid = to_pid(a);
		break;
	case OTLP_KEY_SESSION_PID:
		process->session_pid = to_pid(a);
		break;
	case OTLP_KEY_INTERACTIVE:
		process->has_terminal = a->number != 0;
		break;
	case OTLP_KEY_CGROUP:
		process->cgroup = a->text;
		break;
	case OTLP_KEY_USER_ID:
		process->uid = to_uid(a);
		break;
	case OTLP_KEY_REAL_USER_ID:
		process->real_uid = to_uid(a);
		break;
	case OTLP_KEY_SAVED_USER_ID:
		process->saved_uid = to_uid(a);
		break;
	case OTLP_KEY_EXE_PATH:
		process->path = a->text;
		break;
	case OTLP_KEY_EXE_NAME:
		names->exe = a->text;
		break;
	case OTLP_KEY_TITLE:
		names->title = a->text;
		break;
	case OTLP_KEY_SERVICE:
		if (strncmp(text, "unknown_service", strlen("unknown_service")))
			process->service = names->service = a->text;
		break;
	case OTLP_KEY_COMMAND:
		process->command = a->text;
		break;
	case OTLP_KEY_OWNER:
		process->owner = a->text;
		break;
	case OTLP_KEY_POD:
		process->pod = a->text;
		break;
	case OTLP_KEY_CONTAINER:
		process->container = a->text;
		break;
	case OTLP_KEY_CREATION:
		process->start_ns = parse_time(text);
		break;
	case OTLP_KEY_EXIT:
		process->end_ns = parse_time(text);
		break;
	default:
		set_host(&OTLP_BASE(r)->p->host, a);
	}
}

static int read_key_value(struct otlp_reader *r, const Otlp__KeyValue *m,
			  struct otlp_attribute *ret)
{
	struct slice key = { m->key.data, m->key.len };
	int err = 0;

	if (m->key_strindex)
		err = reader_string(OTLP_BASE(r), m->key_strindex, &key);
	return err ? err : otlp_read_attribute(r, key, m->value, ret);
}

static int read_resource(struct otlp_reader *r, struct slice resource)
{
	struct profile_process process = { .uid = UINT32_MAX,
					   .real_uid = UINT32_MAX,
					   .saved_uid = UINT32_MAX },
			       *to;
	struct profile *p = OTLP_BASE(r)->p;
	struct names names = { 0 };
	Otlp__Resource *m;
	int err =
		reader_unpack(OTLP_BASE(r), "resource", &otlp__resource__descriptor, resource, &m);

	for (size_t i = 0; !err && i < m->n_attributes; i++) {
		struct otlp_attribute a = { 0 };

		err = read_key_value(r, m->attributes[i], &a);
		if (!err)
			set_process(r, &process, &names, &a);
	}
	if (err)
		return err;
	process.name = names.title ? names.title : names.exe ? names.exe : names.service;
	r->process_name = process.name;
	/* Who says all the same is the same. */
	process.key = XXH3_64bits(resource.data, resource.size);
	err = profile_add_process(p, process.pid, process.key, &r->process);
	if (err)
		return err;
	to = &p->processes.items[r->process];
	*to = process;
	return 0;
}

/* --- profiles --------------------------------------------------------------------------------- */

/* A sample of any schema. */
struct sample {
	int32_t stack;
	const int32_t *attributes;
	size_t nr_attributes;
	const int64_t *values;
	size_t nr_values;
	const uint64_t *times;
	size_t nr_times;
	int32_t link;
};

static int unpack_sample(struct otlp_reader *r, struct slice message, struct sample *ret)
{
	Otlp__SampleV19 *v19;
	Otlp__Sample *m;
	int err;

	if (r->old) {
		err = reader_unpack(OTLP_BASE(r), "sample", &otlp__sample_v19__descriptor, message,
				    &v19);
		if (!err)
			*ret = (struct sample){ v19->stack_index,
						v19->attribute_indices,
						v19->n_attribute_indices,
						v19->values,
						v19->n_values,
						v19->timestamps_unix_nano,
						v19->n_timestamps_unix_nano,
						v19->link_index };
		return err;
	}
	err = reader_unpack(OTLP_BASE(r), "sample", &otlp__sample__descriptor, message, &m);
	if (!err)
		*ret = (struct sample){ m->stack_index,
					m->attribute_indices,
					m->n_attribute_indices,
					m->values,
					m->n_values,
					m->timestamps_unix_nano,
					m->n_timestamps_unix_nano,
					m->link_index };
	return err;
}

/* How often it counts; each time one, if there are no values. */
static int count_of(struct otlp_reader *r, const struct sample *s, uint64_t *ret)
{
	uint64_t count = 0;
	bool ones = s->nr_values == s->nr_times;

	for (size_t i = 0; i < s->nr_values; i++) {
		int err = reader_count(OTLP_BASE(r), s->values[i]);

		if (err)
			return err;
		count += (uint64_t)s->values[i];
		ones &= s->values[i] == 1;
	}
	if (!s->nr_values) {
		count = s->nr_times;
		ones = true;
	}
	if (count && !(s->nr_times && (ones || (r->at && s->nr_values == s->nr_times))))
		r->no_events[r->at] = true;
	*ret = count;
	return 0;
}

static int read_who(struct otlp_reader *r, const struct sample *s, uint32_t *ret_thread,
		    uint32_t *ret_cpu)
{
	struct profile *p = OTLP_BASE(r)->p;
	uint32_t name = 0, carrier = 0;
	int32_t tid = 0;

	*ret_cpu = UINT32_MAX;
	for (size_t i = 0; i < s->nr_attributes; i++) {
		struct otlp_attribute a = { 0 };
		int err = otlp_attribute_of(r, s->attributes[i], &a);

		if (err)
			return err;
		if (a.key == OTLP_KEY_THREAD_NAME)
			name = a.text;
		else if (a.key == OTLP_KEY_THREAD_ID)
			tid = to_pid(&a);
		else if (a.key == OTLP_KEY_THREAD_CARRIER)
			carrier = a.text;
		else if (a.key == OTLP_KEY_CPU && a.number >= 0 && a.number < UINT32_MAX)
			*ret_cpu = (uint32_t)a.number;
	}
	/* Who does not tell threads apart: one, called as its process. */
	return profile_add_carried_thread(p, r->process, tid,
					  strtab_get(&p->strings, name ? name : r->process_name),
					  strtab_get(&p->strings, carrier), ret_thread);
}

static int read_link(struct otlp_reader *r, int32_t index, struct profile_context *ret)
{
	Otlp__Link *m;
	int err;

	if (!index)
		return 0;
	if (index < 0 || (size_t)index >= r->link_messages.nr)
		return reader_bad(OTLP_BASE(r), "it names link %d of %zu", index,
				  r->link_messages.nr);
	err = reader_unpack(OTLP_BASE(r), "link", &otlp__link__descriptor,
			    r->link_messages.items[index], &m);
	if (err)
		return err;
	/* Ids of another size are none. */
	if (m->trace_id.len == sizeof(ret->trace_id))
		memcpy(ret->trace_id, m->trace_id.data, sizeof(ret->trace_id));
	if (m->span_id.len == sizeof(ret->span_id))
		memcpy(ret->span_id, m->span_id.data, sizeof(ret->span_id));
	return 0;
}

/* Those that find no room are left out. */
static int read_context(struct otlp_reader *r, const struct sample *s,
			const struct profile_context *context, uint32_t *ret)
{
	struct profile_label labels[PROFILE_LABELS_MAX];
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_attributes && nr < PROFILE_LABELS_MAX; i++) {
		struct otlp_attribute a = { 0 };
		int err = otlp_attribute_of(r, s->attributes[i], &a);

		if (err)
			return err;
		if (a.key != OTLP_KEY_LABEL || (!a.text && !a.has_number))
			continue;
		labels[nr++] = (struct profile_label){ a.label, a.text, a.number,
						       a.has_number ? a.unit : 0 };
	}
	return profile_add_context(OTLP_BASE(r)->p, context, labels, nr, ret);
}

static int read_stack_index(struct otlp_reader *r, int32_t index, uint32_t *ret)
{
	if (!index) /* not set */
		return profile_add_stack(OTLP_BASE(r)->p, NULL, 0, STOP_COMPLETE, ret);
	if (index < 0 || (size_t)index >= r->stacks.nr)
		return reader_bad(OTLP_BASE(r), "it names stack %d of %zu", index, r->stacks.nr);
	*ret = r->stacks.items[index];
	return 0;
}

static int read_events(struct otlp_reader *r, const struct sample *s, uint32_t id, uint32_t cpu)
{
	struct profile *p = OTLP_BASE(r)->p;
	int err = 0;

	for (size_t i = 0; !err && !r->no_events[r->at] && i < s->nr_times; i++) {
		const struct profile_event event = {
			.time_ns =
				s->times[i] > p->cut.start_ns ? s->times[i] - p->cut.start_ns : 0,
			.sample = id,
			.cpu = cpu,
		};

		err = profile_add_measured_event(
			p, r->at, &event, r->at && s->nr_values ? (uint64_t)s->values[i] : 1);
	}
	return err;
}

/* Reading the link takes the sample's memory. */
static int read_sample(struct otlp_reader *r, struct slice message)
{
	struct profile *p = OTLP_BASE(r)->p;
	struct profile_context link = { 0 };
	struct profile_measured m = { .type = r->at };
	uint32_t cpu, id;
	struct sample s;
	int err = unpack_sample(r, message, &s);

	if (!err)
		err = count_of(r, &s, &m.value);
	if (err || !m.value)
		return err;
	if (s.link) {
		err = read_link(r, s.link, &link);
		err = err ? err : unpack_sample(r, message, &s);
	}
	if (!err)
		err = read_stack_index(r, s.stack, &m.stack);
	if (!err)
		err = read_who(r, &s, &m.thread, &cpu);
	if (!err)
		err = read_context(r, &s, &link, &m.context);
	if (!err)
		err = profile_add_measured(p, &m, &id);
	if (!err)
		err = read_events(r, &s, id, cpu);
	return err ? err : reader_check_size(OTLP_BASE(r));
}

static int read_type(struct otlp_reader *r, struct slice message, struct slice *ret_type,
		     struct slice *ret_unit)
{
	Otlp__ValueType *m;
	int err = reader_unpack(OTLP_BASE(r), "value type", &otlp__value_type__descriptor, message,
				&m);

	if (!err)
		err = reader_string(OTLP_BASE(r), m->type_strindex, ret_type);
	return err ? err : reader_string(OTLP_BASE(r), m->unit_strindex, ret_unit);
}

static bool same(struct slice a, struct slice b)
{
	return a.size == b.size && !memcmp(a.data, b.data, a.size);
}

struct head {
	struct slice type, unit, period_type, period_unit;
	int64_t period;
	bool has_samples;
};

static int read_head(struct otlp_reader *r, struct slice profile, struct head *ret)
{
	struct slice empty = slice_of("");
	struct head head = { empty, empty, empty, empty, 0, false };
	struct wire w = wire_of_slice(profile);
	struct wire_field f;
	int err = 0;

	while (!err && wire_next(&w, &f) > 0) {
		struct slice message = { f.data, f.size };

		if (f.number == OTLP_SAMPLE_TYPE && f.type == WIRE_BYTES)
			err = read_type(r, message, &head.type, &head.unit);
		else if (f.number == OTLP_PERIOD_TYPE && f.type == WIRE_BYTES)
			err = read_type(r, message, &head.period_type, &head.period_unit);
		else if (f.number == OTLP_PERIOD && f.type == WIRE_VARINT)
			head.period = (int64_t)f.value;
		else if (f.number == OTLP_SAMPLES)
			head.has_samples = true;
	}
	if (!err)
		*ret = head;
	return err;
}

/* A scope's wish which of its profiles is shown; its string is the profile's. */
static int find_default(struct otlp_reader *r, struct slice scope, struct slice profile)
{
	Otlp__InstrumentationScope *m;
	int err;

	(void)profile;
	if (r->has_default)
		return 0;
	err = reader_unpack(OTLP_BASE(r), "scope", &otlp__instrumentation_scope__descriptor, scope,
			    &m);
	for (size_t i = 0; !err && i < m->n_attributes; i++) {
		struct otlp_attribute a = { 0 };

		err = read_key_value(r, m->attributes[i], &a);
		if (!err && a.key == OTLP_KEY_DEFAULT_TYPE) {
			r->has_default = true;
			r->default_type = slice_of(strtab_get(&OTLP_BASE(r)->p->strings, a.text));
		}
	}
	return err;
}

/* One type counts: that of the first profile with samples, or the default one. */
static int find_type(struct otlp_reader *r, struct slice scope, struct slice profile)
{
	struct head head;
	int err = read_head(r, profile, &head);

	(void)scope;
	if (err || !head.has_samples)
		return err;
	if (!r->has_type || (r->has_default && same(head.type, r->default_type) &&
			     !same(r->type, r->default_type))) {
		r->has_type = true;
		r->type = head.type;
		r->unit = head.unit;
	}
	return 0;
}

/* -ENOENT: there is no place for it. */
static int choose_type(struct otlp_reader *r, const struct head *head)
{
	struct profile *p = OTLP_BASE(r)->p;
	uint32_t type, unit;
	int err;

	r->at = 0;
	if (!r->has_type || (same(head->type, r->type) && same(head->unit, r->unit)))
		return 0;
	if (!head->has_samples || !head->type.size || !head->unit.size)
		return -ENOENT;
	err = reader_intern_slice(OTLP_BASE(r), head->type, &type);
	if (!err)
		err = reader_intern_slice(OTLP_BASE(r), head->unit, &unit);
	if (!err)
		err = profile_add_type(p, strtab_get(&p->strings, type),
				       strtab_get(&p->strings, unit), &r->at);
	return err == -E2BIG ? -ENOENT : err;
}

static int read_profile(struct otlp_reader *r, struct slice scope, struct slice profile)
{
	struct wire w = wire_of_slice(profile);
	struct profile *p = OTLP_BASE(r)->p;
	struct wire_field f;
	struct head head;
	int err = read_head(r, profile, &head);

	(void)scope;
	if (!err)
		err = choose_type(r, &head);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (!r->at && !r->has_period) {
		r->has_period = true;
		if (!p->unit.type && !p->unit.unit)
			p->frequency_hz =
				reader_frequency(head.period_type, head.period_unit, head.period);
	}
	while (!err && wire_next(&w, &f) > 0)
		if (f.number == OTLP_SAMPLES && f.type == WIRE_BYTES)
			err = read_sample(r, (struct slice){ f.data, f.size });
	return err;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int compare_events(const void *a, const void *b)
{
	const struct profile_event *ea = a, *eb = b;

	if (ea->time_ns != eb->time_ns)
		return ea->time_ns < eb->time_ns ? -1 : 1;
	if (ea->cpu != eb->cpu)
		return ea->cpu < eb->cpu ? -1 : 1;
	return ea->sample < eb->sample ? -1 : ea->sample > eb->sample;
}

/* All events or none: see profile.h. Those with values stay in the order of their samples. */
static void sort_events(struct otlp_reader *r, uint32_t type)
{
	struct profile *p = OTLP_BASE(r)->p;
	struct profile_cut *cut = type ? &p->others.items[type - 1] : &p->cut;

	if (r->no_events[type]) {
		vec_free(&cut->events);
		vec_free(&cut->values);
	} else if (cut->events.nr && !cut->values.nr) {
		qsort(cut->events.items, cut->events.nr, sizeof(*cut->events.items),
		      compare_events);
	}
}

static int parse(struct reader *base)
{
	struct otlp_reader *r = (struct otlp_reader *)base;
	int err = note_all(r);

	if (!err)
		err = otlp_read_tables(r);
	if (!err)
		err = each_profile(r, NULL, find_default);
	if (!err)
		err = each_profile(r, NULL, find_type);
	if (!err && r->has_type)
		err = reader_unit(base, r->type, r->unit);
	if (!err)
		err = each_profile(r, read_resource, read_profile);
	if (err)
		return err;
	for (uint32_t i = 0; i < profile_nr_types(base->p); i++)
		sort_events(r, i);
	return 0;
}

static void reader_fini(struct reader *base)
{
	struct otlp_reader *r = (struct otlp_reader *)base;

	vec_free(&r->mapping_messages);
	vec_free(&r->location_messages);
	vec_free(&r->function_messages);
	vec_free(&r->attribute_messages);
	vec_free(&r->stack_messages);
	vec_free(&r->link_messages);
	vec_free(&r->attributes);
	vec_free(&r->files);
	vec_free(&r->functions);
	vec_free(&r->locations);
	vec_free(&r->stacks);
	vec_free(&r->scratch);
	vec_free(&r->lines);
}

int otlp_read(const void *data, size_t size, struct profile *ret, char ret_problem[200])
{
	return reader_run(data, size, sizeof(struct otlp_reader), parse, reader_fini, ret,
			  ret_problem);
}

/*
 * It begins with profiles of a resource, or the dictionary, and both with a message or with a
 * number of fields that are messages; a pprof Profile begins with numbers.
 */
bool otlp_recognise(const void *data, size_t size)
{
	uint8_t head[64];
	struct wire w = wire_of(data, size);
	uint64_t key, length, inner;

	if (gzip_is(data, size))
		w = wire_of(head, gzip_peek(data, size, head, sizeof(head)));
	/* Only the beginning is there, so no field need be whole. */
	if (wire_varint(&w, &key) <= 0 || wire_varint(&w, &length) <= 0)
		return false;
	if ((key >> 3 != OTLP_RESOURCE_PROFILES && key >> 3 != OTLP_DICTIONARY) ||
	    (key & 7) != WIRE_BYTES || !length || wire_varint(&w, &inner) <= 0)
		return false;
	return (inner & 7) == WIRE_BYTES && inner >> 3 >= 1 &&
	       inner >> 3 <=
		       (key >> 3 == OTLP_DICTIONARY ? OTLP_STACK_TABLE : OTLP_GROUP_SCHEMA_URL);
}
