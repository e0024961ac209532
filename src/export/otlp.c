// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP: one ExportProfilesServiceRequest of schema 1.10, see proto/otlp.proto and
 * docs/formats/otlp.md. A resource a process, in it one scope with one profile; with events a
 * sample has the times at which it was seen, without it has their number.
 *
 * A process is written when its samples are packed, the dictionary at last. Beside the dictionary
 * that takes 4 bytes an event (or sample) and the packed samples of the largest process.
 */
#include "export/formats.h"
#include "export/otlp_internal.h"
#include "util/cleanup.h"
#include "util/intern.h"
#include "util/pairs.h"

#include "otlp.pb-c.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

enum { RESOURCE_ATTRIBUTES_MAX = 26 + 3 * PAIRS_MAX, NO_CPU = UINT32_MAX, CPUS_KEPT = 256 };

static const char schema_url[] = "https://opentelemetry.io/schemas/1.44.0";

/* The samples of one type. */
struct typed {
	const struct profile_cut *cut;
	bool events;		/* what is written are events, not samples */
	const uint32_t *places; /* of the items, in the order of all; NULL: all are written */
	/* Numbers of events or samples, those of a process together: from first[process] on. */
	uint32_t *items;
	size_t *first;
	uint64_t *counts;    /* by process */
	uint64_t total;	     /* not 0: something was seen */
	uint32_t type, unit; /* strings */
	uint64_t period;
	struct pack header, body; /* of a process's profile; empty: it has none of this type */
};

struct writer {
	const struct profile *p;
	struct otlp_dictionary dictionary;
	struct otlp_window *window; /* or NULL */
	enum otlp_schema schema;
	FILE *out;
	size_t written;
	uint64_t duration_ns;
	struct typed types[PROFILE_TYPES_MAX], *at; /* the one at work */
	uint32_t nr_types;
	/* By process: the first one that has samples and of which the same is known; OTLP_NOT_YET:
	 * it has none. */
	uint32_t *resources;
	uint32_t *processes; /* those with wanted items, in the order in which they are written */
	size_t nr_processes;
	/* By thread: its attributes; OTLP_NOT_YET: none looked up, 0: it has none. */
	uint32_t *thread_names, *thread_ids, *thread_carriers;
	uint32_t cpus[CPUS_KEPT];  /* the attributes of the first ones; 0: not looked up */
	uint32_t cpu, nanoseconds; /* strings */
	VEC(uint64_t) times;
	VEC(int64_t) values;
	struct resource *resource; /* the one at work, whose memory the next one has */
};

/* --- which items, in which order -------------------------------------------------------------- */

int otlp_choose_events(const struct profile *p, uint32_t type, uint64_t *duration_ns, bool *ret)
{
	const struct profile_cut *cut = profile_cut_of(p, type);
	_cleanup_free_ uint64_t *seen = NULL;
	uint64_t end = *duration_ns;

	*ret = false;
	if (!cut->events.nr || cut->events.nr > UINT32_MAX ||
	    (!type && (p->unit.type || p->unit.unit)))
		return 0;
	seen = calloc(cut->samples.nr + 1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < cut->events.nr; i++) {
		const struct profile_event *e = &cut->events.items[i];

		seen[e->sample] += profile_event_value(cut, i);
		/* The end is exclusive. */
		if (e->time_ns >= end)
			end = e->time_ns + 1;
	}
	for (size_t i = 0; i < cut->samples.nr; i++)
		if (seen[i] != cut->samples.items[i].count)
			return 0;
	*duration_ns = end;
	*ret = true;
	return 0;
}

/* Whether an item belongs into this request. */
static bool is_wanted(const struct writer *w, uint32_t item)
{
	const uint32_t *places = w->at->places;

	return !places || (places[item] >= w->window->from && places[item] < w->window->to);
}

static uint32_t sample_number(const struct writer *w, uint32_t item)
{
	return w->at->events ? w->at->cut->events.items[item].sample : item;
}

static const struct profile_sample *sample_of(const struct writer *w, uint32_t item)
{
	return &w->at->cut->samples.items[sample_number(w, item)];
}

static uint32_t process_of(const struct writer *w, uint32_t item)
{
	return w->resources[w->p->threads.items[sample_of(w, item)->thread].process];
}

static uint64_t hash_process(const struct profile_process *p)
{
	return XXH3_64bits(p, offsetof(struct profile_process, key));
}

static bool look_the_same(const struct profile_process *a, const struct profile_process *b)
{
	return !memcmp(a, b, offsetof(struct profile_process, key)) && a->start_ns == b->start_ns &&
	       a->end_ns == b->end_ns && a->has_terminal == b->has_terminal;
}

/* An agent's profile has many processes of reports before this one. */
static void find_sampled(struct writer *w)
{
	const struct profile_thread *threads = w->p->threads.items;

	for (uint32_t type = 0; type < w->nr_types; type++) {
		const struct profile_cut *cut = profile_cut_of(w->p, type);

		for (size_t i = 0; i < cut->samples.nr; i++) {
			uint32_t process = threads[cut->samples.items[i].thread].process;

			w->resources[process] = process;
		}
	}
}

/*
 * A resource is its attributes. A process that executed two programs and was gone before anybody
 * could ask about either is two here, of which the same is known: its PID and its name.
 */
static int share_resources(struct writer *w)
{
	const struct profile_process *processes = w->p->processes.items;
	_cleanup_(map_fini) struct map firsts = { 0 };
	uint64_t hash;
	int64_t first;
	int r = 0;

	w->resources = malloc((w->p->processes.nr + 1) * sizeof(*w->resources));
	if (!w->resources)
		return -ENOMEM;
	memset(w->resources, 0xff, (w->p->processes.nr + 1) * sizeof(*w->resources));
	find_sampled(w);
	for (uint32_t i = 0; !r && i < w->p->processes.nr; i++) {
		if (w->resources[i] == OTLP_NOT_YET)
			continue;
		hash = hash_process(&processes[i]);
		first = intern_find(&firsts, hash, id,
				    look_the_same(&processes[id], &processes[i]));
		w->resources[i] = first < 0 ? i : (uint32_t)first;
		if (first < 0)
			r = map_put(&firsts, hash, i);
	}
	return r;
}

static int compare_processes(const void *a, const void *b, void *ctx)
{
	uint32_t pa = *(const uint32_t *)a, pb = *(const uint32_t *)b;
	const struct writer *w = ctx;

	for (uint32_t i = 0; i < w->nr_types; i++)
		if (w->types[i].counts[pa] != w->types[i].counts[pb])
			return w->types[i].counts[pa] < w->types[i].counts[pb] ? 1 : -1;
	return pa < pb ? -1 : pa > pb;
}

static int group_items(struct writer *w)
{
	struct typed *t = w->at;
	size_t nr_processes = w->p->processes.nr, at = 0;
	size_t nr = t->events ? t->cut->events.nr : t->cut->samples.nr;
	uint64_t value;

	if (nr > UINT32_MAX)
		return -E2BIG;
	t->items = malloc((nr + 1) * sizeof(*t->items));
	t->first = calloc(nr_processes + 2, sizeof(*t->first));
	t->counts = calloc(nr_processes + 1, sizeof(*t->counts));
	if (!t->items || !t->first || !t->counts)
		return -ENOMEM;
	/* Counting sort: first[n + 1] is where the next item of process n goes. */
	for (uint32_t i = 0; i < nr; i++) {
		if (!is_wanted(w, i))
			continue;
		t->first[process_of(w, i) + 1]++;
		value = t->events ? profile_event_value(t->cut, i) : sample_of(w, i)->count;
		t->counts[process_of(w, i)] += value;
		t->total |= value;
	}
	for (size_t i = 0; i <= nr_processes; i++) {
		size_t here = t->first[i + 1];

		t->first[i + 1] = at;
		at += here;
	}
	for (uint32_t i = 0; i < nr; i++)
		if (is_wanted(w, i))
			t->items[t->first[process_of(w, i) + 1]++] = i;
	return 0;
}

static bool was_seen(const struct writer *w, uint32_t process)
{
	for (uint32_t i = 0; i < w->nr_types; i++)
		if (w->types[i].counts[process])
			return true;
	return false;
}

/* By what they were seen: viewers show the first one by default. */
static int sort_processes(struct writer *w)
{
	size_t nr = w->p->processes.nr;

	w->processes = malloc((nr + 1) * sizeof(*w->processes));
	if (!w->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		if (was_seen(w, i))
			w->processes[w->nr_processes++] = i;
	qsort_r(w->processes, w->nr_processes, sizeof(*w->processes), compare_processes, w);
	return 0;
}

/* What tells samples apart in OTLP: the stack and the attributes; behind that the time. */
struct identity {
	uint32_t name, id, carrier, stack, cpu, context;
	uint64_t time;
};

static struct identity identity_of(const struct writer *w, uint32_t item)
{
	const struct profile_sample *s = sample_of(w, item);
	const struct profile_event *e = w->at->events ? &w->at->cut->events.items[item] : NULL;

	return (struct identity){ .name = w->thread_names[s->thread],
				  .id = w->thread_ids[s->thread],
				  .carrier = w->thread_carriers[s->thread],
				  .stack = w->dictionary.stacks[s->stack],
				  .cpu = e ? e->cpu : NO_CPU,
				  .context = profile_context_of(w->at->cut, sample_number(w, item)),
				  .time = e ? e->time_ns : 0 };
}

#define ORDER(x, y)                                                                                \
	if ((x) != (y))                                                                            \
	return (x) < (y) ? -1 : 1

static int compare_identities(const struct identity *a, const struct identity *b)
{
	ORDER(a->id, b->id);
	ORDER(a->name, b->name);
	ORDER(a->carrier, b->carrier);
	ORDER(a->stack, b->stack);
	ORDER(a->cpu, b->cpu);
	ORDER(a->context, b->context);
	return 0;
}

static int compare_items(const void *a, const void *b, void *ctx)
{
	struct identity ia = identity_of(ctx, *(const uint32_t *)a);
	struct identity ib = identity_of(ctx, *(const uint32_t *)b);
	int r = compare_identities(&ia, &ib);

	if (r)
		return r;
	ORDER(ia.time, ib.time);
	return 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

static int look_up(struct writer *w, const struct profile_sample *s)
{
	const struct profile_thread *t = &w->p->threads.items[s->thread];
	uint32_t id, *name = &w->thread_names[s->thread], *tid = &w->thread_ids[s->thread];
	uint32_t *carrier = &w->thread_carriers[s->thread];
	int r = otlp_stack(&w->dictionary, s->stack, &id);

	if (!r && *name == OTLP_NOT_YET) {
		*name = *tid = *carrier = 0;
		if (t->comm)
			r = otlp_text_attribute(&w->dictionary, "thread.name",
						strtab_get(&w->p->strings, t->comm), name);
		if (!r && t->tid)
			r = otlp_number_attribute(&w->dictionary, "thread.id", t->tid, tid);
		if (!r && t->carrier)
			r = otlp_text_attribute(&w->dictionary, "thread.carrier.name",
						strtab_get(&w->p->strings, t->carrier), carrier);
	}
	return r;
}

static int add_context(struct writer *w, uint32_t number, Otlp__Sample *m)
{
	const struct profile_context *context = &w->p->contexts.items[number - 1];
	uint32_t id;
	int r = otlp_link(&w->dictionary, context, &id);

	m->link_index = (int32_t)id;
	for (uint32_t i = 0; !r && i < context->nr_labels; i++) {
		r = otlp_label_attribute(&w->dictionary,
					 &w->p->labels.items[context->first_label + i], &id);
		m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	}
	return r;
}

/* These fields have had other numbers. */
static int pack_sample(struct writer *w, const Otlp__Sample *m)
{
	Otlp__SampleV19 old = OTLP__SAMPLE_V19__INIT;

	if (w->schema == OTLP_SCHEMA_1_10)
		return pack_message(&w->at->body, OTLP_SAMPLES, m);
	old.stack_index = m->stack_index;
	old.link_index = m->link_index;
	old.attribute_indices = m->attribute_indices;
	old.n_attribute_indices = m->n_attribute_indices;
	old.values = m->values;
	old.n_values = m->n_values;
	old.timestamps_unix_nano = m->timestamps_unix_nano;
	old.n_timestamps_unix_nano = m->n_timestamps_unix_nano;
	return pack_message(&w->at->body, OTLP_SAMPLES, &old);
}

static int cpu_attribute(struct writer *w, uint32_t cpu, uint32_t *ret)
{
	uint32_t *kept = cpu < CPUS_KEPT ? &w->cpus[cpu] : ret;
	int r = kept != ret && *kept
			? 0
			: otlp_number_attribute(&w->dictionary, "cpu.logical_number", cpu, kept);

	if (!r)
		*ret = *kept;
	return r;
}

static int put_sample(struct writer *w, const struct identity *who, int64_t count)
{
	Otlp__Sample m = OTLP__SAMPLE__INIT;
	int32_t indices[4 + PROFILE_LABELS_MAX];
	uint32_t cpu;
	int r = 0;

	m.stack_index = (int32_t)who->stack;
	m.attribute_indices = indices;
	if (who->name)
		indices[m.n_attribute_indices++] = (int32_t)who->name;
	if (who->id)
		indices[m.n_attribute_indices++] = (int32_t)who->id;
	if (who->carrier)
		indices[m.n_attribute_indices++] = (int32_t)who->carrier;
	if (who->cpu != NO_CPU) {
		r = cpu_attribute(w, who->cpu, &cpu);
		indices[m.n_attribute_indices++] = (int32_t)cpu;
	}
	if (!r && who->context)
		r = add_context(w, who->context, &m);
	if (w->at->events) {
		m.timestamps_unix_nano = w->times.items;
		m.n_timestamps_unix_nano = w->times.nr;
		m.values = w->values.items;
		m.n_values = w->values.nr;
	} else {
		m.values = &count;
		m.n_values = 1;
	}
	return r ? r : pack_sample(w, &m);
}

/* All have values if one has: samples of a profile have one shape. */
static int push_event(struct writer *w, uint32_t event, uint64_t time)
{
	uint64_t value = profile_event_value(w->at->cut, event);
	int r = vec_push(&w->times, w->p->cut.start_ns + time);

	if (r || !w->at->cut->values.nr)
		return r;
	return vec_push(&w->values, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* Those of one identity, from items[0] on; how many. */
static int put_merged(struct writer *w, const uint32_t *items, size_t nr, size_t *ret)
{
	struct identity who = identity_of(w, items[0]);
	uint64_t count = 0;
	size_t i = 0;

	w->times.nr = w->values.nr = 0;
	for (; i < nr; i++) {
		struct identity other = identity_of(w, items[i]);
		int r = 0;

		if (compare_identities(&who, &other))
			break;
		if (w->at->events)
			r = push_event(w, items[i], other.time);
		else if (__builtin_add_overflow(count, sample_of(w, items[i])->count, &count))
			count = INT64_MAX;
		if (r)
			return r;
	}
	*ret = i;
	return put_sample(w, &who, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

/* There is no way back: what is written and what waits for its turn only grows. */
static int check_size(const struct writer *w)
{
	size_t size = w->written;

	if (!w->window)
		return 0;
	for (uint32_t i = 0; i < w->nr_types; i++)
		size += w->types[i].body.nr;
	for (size_t i = 1; i < OTLP_TABLE_MAX_; i++)
		size += w->dictionary.tables[i].bytes.nr;
	return size > w->window->max_size ? -EFBIG : 0;
}

static int put_samples(struct writer *w, uint32_t *items, size_t nr)
{
	struct otlp_window none = { 0 }, *window = w->window ? w->window : &none;
	size_t kept = 0, done;
	int r = 0;

	for (size_t i = 0; !r && i < nr; i++) {
		/* A count of 0 is no sample. */
		if (!sample_of(w, items[i])->count)
			continue;
		items[kept++] = items[i];
		r = look_up(w, sample_of(w, items[i]));
		window->looked_up++;
		if (!r)
			r = check_size(w);
	}
	if (!r && kept)
		qsort_r(items, kept, sizeof(*items), compare_items, w);
	for (size_t i = 0; !r && i < kept; i += done) {
		r = put_merged(w, items + i, kept - i, &done);
		if (r)
			break;
		window->told += (uint32_t)done;
		r = check_size(w);
	}
	return r;
}

static int put_profile(struct writer *w, uint32_t *items, size_t nr)
{
	Otlp__ValueType type = OTLP__VALUE_TYPE__INIT;
	struct pack *body = &w->at->body;
	int r;

	/* A report has what was seen since the last one. */
	type.aggregation_temporality = w->schema == OTLP_SCHEMA_1_8;
	type.type_strindex = (int32_t)w->at->type;
	type.unit_strindex = (int32_t)w->at->unit;
	r = pack_message(body, OTLP_SAMPLE_TYPE, &type);
	if (!r)
		r = put_samples(w, items, nr);
	if (!r)
		r = pack_fixed64(body, OTLP_TIME_UNIX_NANO, w->p->cut.start_ns);
	if (!r)
		r = pack_number(body, OTLP_DURATION_NANO, w->duration_ns);
	if (r || !w->at->period)
		return r;
	type.type_strindex = (int32_t)w->cpu;
	type.unit_strindex = (int32_t)w->nanoseconds;
	r = pack_message(body, OTLP_PERIOD_TYPE, &type);
	return r ? r : pack_number(body, OTLP_PERIOD, w->at->period);
}

/* --- resources -------------------------------------------------------------------------------- */

struct resource {
	Otlp__KeyValue attributes[RESOURCE_ATTRIBUTES_MAX], *pointers[RESOURCE_ATTRIBUTES_MAX];
	Otlp__AnyValue values[RESOURCE_ATTRIBUTES_MAX];
	struct pack_text texts[RESOURCE_ATTRIBUTES_MAX];
	size_t nr;
	/* What they say of themselves, and of the environment; keys point into them. */
	struct pairs process, host, variables;
};

static void resource_empty(struct resource *resource)
{
	resource->nr = 0;
	pairs_fini(&resource->process);
	pairs_fini(&resource->host);
	pairs_fini(&resource->variables);
}

static void resource_free(struct resource *resource)
{
	if (!resource)
		return;
	for (size_t i = 0; i < RESOURCE_ATTRIBUTES_MAX; i++)
		pack_text_fini(&resource->texts[i]);
	resource_empty(resource);
	free(resource);
}

static bool has_key(const struct resource *resource, const char *key)
{
	for (size_t i = 0; i < resource->nr; i++)
		if (!strcmp((const char *)resource->attributes[i].key.data, key))
			return true;
	return false;
}

static Otlp__AnyValue *add_key(struct resource *to, const char *key)
{
	Otlp__KeyValue *attribute = &to->attributes[to->nr];
	Otlp__AnyValue *value = &to->values[to->nr];

	otlp__key_value__init(attribute);
	otlp__any_value__init(value);
	attribute->key.data = (uint8_t *)key;
	attribute->key.len = strlen(key);
	attribute->value = value;
	to->pointers[to->nr++] = attribute;
	return value;
}

/* Nothing, if the text is "", or the key is there. */
static int add_text(struct resource *to, const char *key, const char *text)
{
	struct pack_text *own = &to->texts[to->nr];
	Otlp__AnyValue *value;
	const char *clean;
	int r = 0;

	if (!*text || has_key(to, key))
		return 0;
	r = pack_clean(own, text, &clean);
	if (r)
		return r;
	value = add_key(to, key);
	value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value->string_value.data = (uint8_t *)own->text;
	value->string_value.len = strlen(clean);
	return 0;
}

static int add_string(struct writer *w, struct resource *to, const char *key, uint32_t string)
{
	return add_text(to, key, strtab_get(&w->p->strings, string));
}

static void add_number(struct resource *to, const char *key, int64_t number)
{
	Otlp__AnyValue *value = add_key(to, key);

	value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value->int_value = number;
}

static void add_truth(struct resource *to, const char *key, bool truth)
{
	Otlp__AnyValue *value = add_key(to, key);

	value->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
	value->bool_value = truth;
}

/* ISO 8601, UTC; nothing for 0. */
static int add_time(struct resource *to, const char *key, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	char text[64];
	struct tm tm;
	size_t len;

	if (!time_ns || !gmtime_r(&seconds, &tm))
		return 0;
	len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%09uZ", (unsigned)(time_ns % 1000000000));
	return add_text(to, key, text);
}

/* What we know better than whoever says so of himself; and what profiles must not have. */
static bool is_reserved(const char *key)
{
	static const char *const prefixes[] = { "process.",	"thread.",    "host.", "os.",
						"container.id", "telemetry.", "code." };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(key, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* By OpenTelemetry's rule a list with a mistake in it is no list. */
static int parse_attributes(const struct writer *w, uint32_t string, struct pairs *ret)
{
	const char *problem;
	int r = pairs_parse(strtab_get(&w->p->strings, string), ret, &problem);

	return r == -EINVAL ? 0 : r;
}

static int add_pairs(struct resource *to, const struct pairs *pairs, bool trusted)
{
	int r = 0;

	for (size_t i = 0; !r && i < pairs->nr; i++)
		if (trusted || !is_reserved(pairs->items[i].name))
			r = add_text(to, pairs->items[i].name, pairs->items[i].value);
	return r;
}

/* The process's own name, else its owner's for all, else one that says that nobody gave any. */
static int add_service(struct writer *w, struct resource *to, const struct profile_process *process,
		       const char *exe)
{
	const struct profile_host *host = &w->p->host;
	char unknown[128];
	int r = 0;

	snprintf(unknown, sizeof(unknown), "unknown_service%s%s", *exe ? ":" : "", exe);
	const char *const names[] = {
		strtab_get(&w->p->strings, process->service),
		pairs_get(&to->process, "service.name"),
		strtab_get(&w->p->strings, host->service),
		pairs_get(&to->host, "service.name"),
		unknown,
	};
	for (size_t i = 0; !r && i < sizeof(names) / sizeof(*names); i++)
		if (names[i])
			r = add_text(to, "service.name", names[i]);
	return r;
}

static void add_leaders(struct resource *to, const struct profile_process *process)
{
	if (process->group_pid)
		add_number(to, "process.group_leader.pid", process->group_pid);
	if (process->session_pid)
		add_number(to, "process.session_leader.pid", process->session_pid);
	/* Who knows of a session knows whether it has one. */
	if (process->session_pid)
		add_truth(to, "process.interactive", process->has_terminal);
}

/* Mostly all three are one. */
static void add_users(struct resource *to, const struct profile_process *process)
{
	if (process->uid != UINT32_MAX)
		add_number(to, "process.user.id", process->uid);
	if (process->real_uid != UINT32_MAX && process->real_uid != process->uid)
		add_number(to, "process.real_user.id", process->real_uid);
	if (process->saved_uid != UINT32_MAX && process->saved_uid != process->uid)
		add_number(to, "process.saved_user.id", process->saved_uid);
}

static int add_process(struct writer *w, struct resource *to, const struct profile_process *process)
{
	const char *path = strtab_get(&w->p->strings, process->path), *exe = basename(path);
	bool nameless = w->dictionary.nameless;
	int r = parse_attributes(w, process->attributes, &to->process);

	if (!r)
		r = parse_attributes(w, process->variables, &to->variables);
	if (r)
		return r;
	if (process->pid)
		add_number(to, "process.pid", process->pid);
	if (process->parent_pid)
		add_number(to, "process.parent_pid", process->parent_pid);
	if (process->vpid)
		add_number(to, "process.vpid", process->vpid);
	add_leaders(to, process);
	add_users(to, process);
	r = add_service(w, to, process, exe);
	if (!r)
		r = add_text(to, "process.executable.path", path);
	if (!r)
		r = add_text(to, "process.executable.name", exe);
	if (!r && !nameless)
		r = add_string(w, to, "process.command", process->command);
	if (!r)
		r = add_string(w, to, "process.owner", process->owner);
	if (!r)
		r = add_string(w, to, "process.title", process->name);
	if (!r)
		r = add_string(w, to, "container.id", process->container);
	if (!r)
		r = add_string(w, to, "k8s.pod.uid", process->pod);
	if (!r)
		r = add_string(w, to, "process.linux.cgroup", process->cgroup);
	if (!r)
		r = add_time(to, "process.creation.time", process->start_ns);
	if (!r)
		r = add_time(to, "process.exit.time", process->end_ns);
	if (r || nameless)
		return r;
	r = add_pairs(to, &to->variables, true);
	return r ? r : add_pairs(to, &to->process, false);
}

static int add_host(struct writer *w, struct resource *to)
{
	const struct profile_host *host = &w->p->host;
	int r = add_pairs(to, &to->host, true);

	if (!r)
		r = add_string(w, to, "host.name", host->name);
	if (!r)
		r = add_string(w, to, "host.id", host->id);
	if (!r)
		r = add_string(w, to, "host.arch", host->arch);
	if (!r && !strncmp(strtab_get(&w->p->strings, host->os), "Linux", 5))
		r = add_text(to, "os.type", "linux");
	return r ? r : add_string(w, to, "os.description", host->os);
}

static int pack_resource(struct writer *w, const struct profile_process *process, struct pack *to)
{
	struct resource *resource = w->resource;
	Otlp__Resource m = OTLP__RESOURCE__INIT;
	int r;

	resource_empty(resource);
	r = parse_attributes(w, w->p->host.attributes, &resource->host);
	if (!r && process)
		r = add_process(w, resource, process);
	if (!r)
		r = add_host(w, resource);
	if (r)
		return r;
	m.attributes = resource->pointers;
	m.n_attributes = resource->nr;
	return pack_message(to, OTLP_GROUP_HEAD, &m);
}

/* --- the request ------------------------------------------------------------------------------ */

static int pack_scope(struct pack *to)
{
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;

	scope.name.data = (uint8_t *)"sonde";
	scope.name.len = strlen("sonde");
	scope.version.data = (uint8_t *)SONDE_VERSION;
	scope.version.len = strlen(SONDE_VERSION);
	return pack_message(to, OTLP_GROUP_HEAD, &scope);
}

static void write_pack(struct writer *w, const struct pack *pack)
{
	if (pack->nr)
		fwrite(pack->items, 1, pack->nr, w->out);
	w->written += pack->nr;
}

/* The packed profiles as the members of a scope, that as the one member of a resource. */
static int write_resource(struct writer *w, struct pack *resource, struct pack *scope,
			  struct pack *schema)
{
	struct pack top = { 0 };
	size_t scope_size;
	int r = pack_bytes(schema, OTLP_GROUP_SCHEMA_URL, schema_url, strlen(schema_url));

	scope_size = scope->nr + schema->nr;
	for (uint32_t i = 0; !r && i < w->nr_types; i++) {
		struct typed *t = &w->types[i];

		t->header.nr = 0;
		if (t->body.nr)
			r = pack_header(&t->header, OTLP_GROUP_MEMBERS, t->body.nr);
		scope_size += t->header.nr + t->body.nr;
	}
	if (!r)
		r = pack_header(resource, OTLP_GROUP_MEMBERS, scope_size);
	if (!r)
		r = pack_header(&top, OTLP_RESOURCE_PROFILES,
				resource->nr + scope_size + schema->nr);
	if (!r) {
		write_pack(w, &top);
		write_pack(w, resource);
		write_pack(w, scope);
		for (uint32_t i = 0; i < w->nr_types; i++) {
			write_pack(w, &w->types[i].header);
			write_pack(w, &w->types[i].body);
			w->types[i].body.nr = 0;
		}
		write_pack(w, schema);
		write_pack(w, schema);
	}
	pack_fini(&top);
	return r;
}

static int put_profiles(struct writer *w, uint32_t process)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < w->nr_types; i++) {
		struct typed *t = w->at = &w->types[i];

		t->body.nr = 0;
		if (t->counts[process])
			r = put_profile(w, t->items + t->first[process],
					t->first[process + 1] - t->first[process]);
	}
	return r;
}

/* `process` NULL: when and where nothing was seen. */
static int put_resource(struct writer *w, const struct profile_process *process)
{
	_cleanup_(pack_fini) struct pack resource = { 0 };
	_cleanup_(pack_fini) struct pack scope = { 0 };
	_cleanup_(pack_fini) struct pack schema = { 0 };
	int r;

	w->at = &w->types[0];
	r = process ? put_profiles(w, (uint32_t)(process - w->p->processes.items))
		    : put_profile(w, NULL, 0);
	if (!r)
		r = pack_resource(w, process, &resource);
	if (!r)
		r = pack_scope(&scope);
	return r ? r : write_resource(w, &resource, &scope, &schema);
}

static int put_resources(struct writer *w)
{
	int r = 0;

	for (size_t i = 0; !r && i < w->nr_processes; i++)
		r = put_resource(w, &w->p->processes.items[w->processes[i]]);
	return r || w->nr_processes ? r : put_resource(w, NULL);
}

static int write_dictionary(struct writer *w)
{
	_cleanup_(pack_fini) struct pack head = { 0 };
	size_t size = 0;
	int r;

	for (size_t i = 1; i < OTLP_TABLE_MAX_; i++)
		size += w->dictionary.tables[i].bytes.nr;
	r = pack_header(&head, OTLP_DICTIONARY, size);
	if (r)
		return r;
	fwrite(head.items, 1, head.nr, w->out);
	for (size_t i = 1; i < OTLP_TABLE_MAX_; i++)
		fwrite(w->dictionary.tables[i].bytes.items, 1, w->dictionary.tables[i].bytes.nr,
		       w->out);
	return 0;
}

static int put_types(struct writer *w)
{
	bool any = false;
	int r = 0;

	for (uint32_t i = 0; i < w->nr_types; i++)
		any |= w->types[i].total != 0;
	for (uint32_t i = 0; !r && i < w->nr_types; i++) {
		/* Strings of what is not written would be nobody's. */
		if (!w->types[i].total && (i || any))
			continue;
		r = otlp_string(&w->dictionary, profile_type_name(w->p, i), &w->types[i].type);
		if (!r)
			r = otlp_string(&w->dictionary, profile_type_unit(w->p, i),
					&w->types[i].unit);
	}
	w->types[0].period = w->types[0].total || !any ? pack_period_ns(w->p) : 0;
	if (!r && w->types[0].period) {
		r = otlp_string(&w->dictionary, "cpu", &w->cpu);
		if (!r)
			r = otlp_string(&w->dictionary, "nanoseconds", &w->nanoseconds);
	}
	return r;
}

static int set_up_types(struct writer *w)
{
	int r;

	w->nr_types = profile_nr_types(w->p);
	w->duration_ns = w->p->cut.duration_ns;
	r = share_resources(w);
	for (uint32_t i = 0; !r && i < w->nr_types; i++) {
		w->at = &w->types[i];
		w->at->cut = profile_cut_of(w->p, i);
		w->at->places = w->window ? w->window->places[i] : NULL;
		r = otlp_choose_events(w->p, i, &w->duration_ns, &w->at->events);
		if (!r)
			r = group_items(w);
	}
	return r ? r : sort_processes(w);
}

static void writer_fini(struct writer *w)
{
	otlp_dictionary_fini(&w->dictionary);
	for (size_t i = 0; i < PROFILE_TYPES_MAX; i++) {
		free(w->types[i].items);
		free(w->types[i].first);
		free(w->types[i].counts);
		pack_fini(&w->types[i].header);
		pack_fini(&w->types[i].body);
	}
	free(w->resources);
	free(w->processes);
	free(w->thread_names);
	free(w->thread_ids);
	free(w->thread_carriers);
	vec_free(&w->times);
	vec_free(&w->values);
	resource_free(w->resource);
}

int otlp_write_window(const struct profile *p, struct otlp_window *window, enum otlp_schema schema,
		      FILE *out)
{
	_cleanup_(writer_fini) struct writer w = {
		.p = p, .window = window, .schema = schema, .out = out
	};
	size_t size = (p->threads.nr + 1) * sizeof(uint32_t);
	int r;

	w.thread_names = malloc(size);
	w.thread_ids = malloc(size);
	w.thread_carriers = malloc(size);
	w.resource = calloc(1, sizeof(*w.resource));
	if (!w.thread_names || !w.thread_ids || !w.thread_carriers || !w.resource)
		return -ENOMEM;
	memset(w.thread_names, 0xff, size);
	memset(w.thread_ids, 0xff, size);
	r = otlp_dictionary_init(&w.dictionary, p);
	w.dictionary.nameless = window && window->nameless;
	if (!r)
		r = set_up_types(&w);
	if (!r)
		r = put_types(&w);
	if (!r)
		r = put_resources(&w);
	return r ? r : write_dictionary(&w);
}

static int otlp_write(const struct profile *p, const struct export_options *options, FILE *out)
{
	(void)options;
	return otlp_write_window(p, NULL, OTLP_SCHEMA_1_10, out);
}

const struct export_ops export_otlp = {
	.name = "otlp",
	.extensions = (const char *const[]){ ".otlp", NULL },
	.description = "an OpenTelemetry profiles request (OTLP 1.10, binary), with times",
	.wants_events = true,
	.write = otlp_write,
	.read = otlp_read,
	.recognise = otlp_recognise,
};
