// SPDX-License-Identifier: Apache-2.0
/*
 * The Firefox Profiler's processed format, version 60, which each later viewer upgrades by itself.
 * Tables are columns; a stack is a chain of (frame, prefix), a frame is an inline frame of one of
 * ours, a func is a place. See docs/formats/firefox.md.
 */
#include "export/formats.h"
#include "export/json_out.h"
#include "export/places.h"
#include "runtime/runtime.h"
#include "util/cleanup.h"

#include <inttypes.h>
#include <string.h>

/* JSON numbers are exact up to here. */
#define EXACT_MAX ((UINT64_C(1) << 53) - 1)

enum category {
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_OTHER,
	CATEGORY_C,
	CATEGORY_CPP,
	CATEGORY_RUST,
	CATEGORY_GO,
	CATEGORY_D,
	CATEGORY_SWIFT,
	CATEGORY_MAX_,
};

static const struct {
	const char *name, *color;
} categories[CATEGORY_MAX_] = {
	[CATEGORY_USER] = { "User", "yellow" },	  [CATEGORY_KERNEL] = { "Kernel", "orange" },
	[CATEGORY_OTHER] = { "Other", "grey" },	  [CATEGORY_C] = { "C", "blue" },
	[CATEGORY_CPP] = { "C++", "green" },	  [CATEGORY_RUST] = { "Rust", "brown" },
	[CATEGORY_GO] = { "Go", "lightblue" },	  [CATEGORY_D] = { "D", "magenta" },
	[CATEGORY_SWIFT] = { "Swift", "purple" },
};

/* Behind them the runtimes, by id; colours that the others leave. */
static const char *const runtime_colors[] = { "red", "darkgrey", "lightred" };

static bool has_category(unsigned id)
{
	return id > RUNTIME_NATIVE && id < RUNTIME_MAX_ && runtimes[id];
}

static const uint8_t category_of_language[FUNCTION_LANGUAGE_MAX_] = {
	[FUNCTION_LANGUAGE_C] = CATEGORY_C,	  [FUNCTION_LANGUAGE_CPP] = CATEGORY_CPP,
	[FUNCTION_LANGUAGE_RUST] = CATEGORY_RUST, [FUNCTION_LANGUAGE_GO] = CATEGORY_GO,
	[FUNCTION_LANGUAGE_D] = CATEGORY_D,	  [FUNCTION_LANGUAGE_SWIFT] = CATEGORY_SWIFT,
};

/* A row of frameTable. */
struct frame {
	int64_t address;       /* -1: none */
	int64_t native_symbol; /* -1: none */
	uint32_t place;
	uint32_t inline_depth;
	uint32_t line, column;
};

struct stack_node {
	uint32_t frame;
	int64_t prefix; /* -1: outermost */
};

/* The function that holds an address, inlined ones not. */
struct native_symbol {
	uint32_t place;
	uint64_t address;
};

struct writer {
	const struct profile *p;
	FILE *out;
	struct place_table places;
	struct strtab strings;
	struct strtab sources;
	uint32_t *name_of_place; /* in strings */
	int64_t *source_of_place;
	int64_t *symbol_of_place;
	VEC(struct frame) frames; /* those of the profile's inline frames, then the markers */
	uint32_t frame_of_stop[STOP_MAX_];
	VEC(struct native_symbol) symbols;
	VEC(struct stack_node) nodes;
	struct map node_ids;	   /* prefix + 1, frame -> node */
	int64_t *of_stack;	   /* by stack of the profile; -1: it has no frame */
	uint32_t *samples, *first; /* by thread, see order_samples() */
	uint32_t *events;	   /* by thread, then time */
	uint64_t period_ns;
	char *name;
	size_t name_size;
};

static void writer_fini(struct writer *w)
{
	place_table_fini(&w->places);
	strtab_fini(&w->strings);
	strtab_fini(&w->sources);
	free(w->name_of_place);
	free(w->source_of_place);
	free(w->symbol_of_place);
	vec_free(&w->frames);
	vec_free(&w->symbols);
	vec_free(&w->nodes);
	map_fini(&w->node_ids);
	free(w->of_stack);
	free(w->samples);
	free(w->first);
	free(w->events);
	free(w->name);
}

/* --- building the tables ---------------------------------------------------------------------- */

static int name_places(struct writer *w)
{
	size_t nr = w->places.places.nr;

	w->name_of_place = calloc(nr + 1, sizeof(*w->name_of_place));
	w->source_of_place = calloc(nr + 1, sizeof(*w->source_of_place));
	w->symbol_of_place = calloc(nr + 1, sizeof(*w->symbol_of_place));
	if (!w->name_of_place || !w->source_of_place || !w->symbol_of_place)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const char *source = place_source(w->p, &w->places.places.items[i]);
		uint32_t id = 0;
		int r = place_name(&w->places, w->p, i, &w->name, &w->name_size);

		if (!r)
			r = strtab_intern(&w->strings, w->name, strlen(w->name),
					  &w->name_of_place[i]);
		if (!r && *source)
			r = strtab_intern(&w->sources, source, strlen(source), &id);
		if (r)
			return r;
		w->source_of_place[i] = (int64_t)id - 1; /* id 0 is "" */
		w->symbol_of_place[i] = -1;
	}
	return 0;
}

/* The symbol of a named function of a file. Its address is the lowest that was seen in it. */
static int add_symbol(struct writer *w, uint32_t place_id, int64_t address, int64_t *ret)
{
	const struct place *place = &w->places.places.items[place_id];
	int64_t *symbol = &w->symbol_of_place[place_id];
	int r = 0;

	*ret = -1;
	if (address < 0 || place->file >= w->p->files.nr || place->function == PLACE_NO_FUNCTION)
		return 0;
	if (*symbol < 0) {
		r = vec_push(&w->symbols, ((struct native_symbol){ place_id, (uint64_t)address }));
		if (r)
			return r;
		*symbol = (int64_t)w->symbols.nr - 1;
	}
	if (w->symbols.items[*symbol].address > (uint64_t)address)
		w->symbols.items[*symbol].address = (uint64_t)address;
	*ret = *symbol;
	return 0;
}

static int add_frame(struct writer *w, uint32_t id)
{
	const struct profile_frame *f = &w->p->frames.items[id];
	size_t nr = profile_nr_inline_frames(w->p, id);
	const uint32_t *places = w->places.of_inline + w->places.first_inline[id];
	struct frame frame = { .address = -1 };
	int r;

	if (f->file < w->p->files.nr && f->address <= EXACT_MAX)
		frame.address = (int64_t)f->address;
	r = add_symbol(w, places[nr - 1], frame.address, &frame.native_symbol);
	for (size_t inline_frame = 0; inline_frame < nr && !r; inline_frame++) {
		const struct profile_line *line = profile_frame_line(w->p, id, inline_frame);

		frame.place = places[inline_frame];
		frame.inline_depth = (uint32_t)(nr - 1 - inline_frame);
		frame.line = line ? line->line : 0;
		frame.column = line ? line->column : 0;
		r = vec_push(&w->frames, frame);
	}
	return r;
}

static int add_frames(struct writer *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->p->frames.nr && !r; i++)
		r = add_frame(w, i);
	for (unsigned stop = 0; stop < STOP_MAX_ && !r; stop++) {
		struct frame marker = { -1, -1, w->places.truncated[stop], 0, 0, 0 };

		if (marker.place == UINT32_MAX)
			continue;
		w->frame_of_stop[stop] = (uint32_t)w->frames.nr;
		r = vec_push(&w->frames, marker);
	}
	return r;
}

static int add_node(struct writer *w, uint32_t frame, int64_t *at)
{
	uint64_t key = (uint64_t)(*at + 1) << 32 | frame, *found = map_get(&w->node_ids, key);
	int r;

	if (found) {
		*at = (int64_t)*found;
		return 0;
	}
	if (w->nodes.nr >= UINT32_MAX - 1)
		return -EOVERFLOW;
	r = vec_push(&w->nodes, ((struct stack_node){ frame, *at }));
	if (!r)
		r = map_put(&w->node_ids, key, w->nodes.nr - 1);
	if (!r)
		*at = (int64_t)w->nodes.nr - 1;
	return r;
}

/* A stack's nodes, the outermost first, so that a prefix stands before what it is one of. */
static int add_stack(struct writer *w, const struct profile_stack *stack, int64_t *ret)
{
	const uint32_t *frames = stack_frames(w->p, stack);
	int64_t at = -1;
	int r = 0;

	if (stack->stop < STOP_MAX_ && w->places.truncated[stack->stop] != UINT32_MAX)
		r = add_node(w, w->frame_of_stop[stack->stop], &at);
	for (uint32_t k = stack->nr; k > 0; k--) {
		uint32_t first = w->places.first_inline[frames[k - 1]];
		uint32_t end = w->places.first_inline[frames[k - 1] + 1];

		for (; end > first && !r; end--)
			r = add_node(w, end - 1, &at);
	}
	*ret = at;
	return r;
}

static int build(struct writer *w)
{
	int r = place_table_init(&w->places, w->p, false);

	if (!r)
		r = strtab_init(&w->strings);
	if (!r)
		r = strtab_init(&w->sources);
	if (!r)
		r = name_places(w);
	if (!r)
		r = add_frames(w);
	w->of_stack = calloc(w->p->stacks.nr + 1, sizeof(*w->of_stack));
	if (!r && !w->of_stack)
		r = -ENOMEM;
	for (size_t i = 0; i < w->p->stacks.nr && !r; i++)
		r = add_stack(w, &w->p->stacks.items[i], &w->of_stack[i]);
	if (!r)
		r = order_samples(w->p, &w->samples, &w->first);
	if (!r && w->p->cut.events.nr)
		r = order_events(w->p, true, &w->events);
	return r;
}

/* --- writing the tables ----------------------------------------------------------------------- */

/* A column of indexes or numbers; negative ones are null. */
#define NULLABLE_COLUMN(out, name, nr, value)                                                      \
	do {                                                                                       \
		fputs("\"" name "\":[", (out));                                                    \
		for (size_t i = 0; i < (nr); i++) {                                                \
			int64_t value_ = (int64_t)(value);                                         \
                                                                                                   \
			if (value_ < 0)                                                            \
				fputs(i ? ",null" : "null", (out));                                \
			else                                                                       \
				fprintf((out), i ? ",%" PRId64 : "%" PRId64, value_);              \
		}                                                                                  \
		fputc(']', (out));                                                                 \
	} while (0)

#define SAME_COLUMN(out, name, nr, text) JSON_COLUMN(out, name, nr, "%s", text)

static int64_t nonzero(uint32_t n)
{
	return n ? (int64_t)n : -1;
}

static unsigned category_of_runtime(unsigned kind)
{
	unsigned nr = CATEGORY_MAX_;

	for (unsigned id = 0; FRAME_KIND_OF(id) < kind; id++)
		nr += has_category(id);
	return nr;
}

static unsigned category(const struct writer *w, uint32_t place_id)
{
	const struct place *place = &w->places.places.items[place_id];
	uint32_t language;

	if (place->kind == FRAME_KIND_TRUNCATED)
		return CATEGORY_OTHER;
	if (place->kind == FRAME_KIND_KERNEL)
		return CATEGORY_KERNEL;
	if (profile_runtime_name(place->kind))
		return category_of_runtime(place->kind);
	if (place->function == PLACE_NO_FUNCTION)
		return CATEGORY_USER;
	language = w->p->functions.items[place->function].language;
	return language < FUNCTION_LANGUAGE_MAX_ ? category_of_language[language] : CATEGORY_USER;
}

static int put_strings(FILE *out, const struct strtab *table, const char *more)
{
	for (uint32_t i = 0; i < table->strings.nr; i++) {
		int r;

		if (i)
			fputs(more, out);
		r = json_put_string(out, strtab_get(table, i));
		if (r)
			return r;
	}
	return 0;
}

static void put_stacks_and_frames(struct writer *w)
{
	const struct stack_node *nodes = w->nodes.items;
	const struct frame *f = w->frames.items;
	size_t nr = w->nodes.nr;

	fprintf(w->out, ",\n\"stackTable\":{\"length\":%zu,", nr);
	JSON_COLUMN(w->out, "frame", nr, "%u", nodes[i].frame);
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "prefix", nr, nodes[i].prefix);
	nr = w->frames.nr;
	fprintf(w->out, "},\n\"frameTable\":{\"length\":%zu,", nr);
	JSON_COLUMN(w->out, "address", nr, "%" PRId64, f[i].address);
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "inlineDepth", nr, "%u", f[i].inline_depth);
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "category", nr, "%u", category(w, f[i].place));
	fputs(",\n", w->out);
	SAME_COLUMN(w->out, "subcategory", nr, "0");
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "func", nr, "%u", f[i].place);
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "nativeSymbol", nr, f[i].native_symbol);
	fputs(",\n", w->out);
	SAME_COLUMN(w->out, "innerWindowID", nr, "0");
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "line", nr, nonzero(f[i].line));
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "column", nr, nonzero(f[i].column));
	fputs("}", w->out);
}

static uint32_t start_line(const struct writer *w, uint32_t place_id)
{
	const struct place *place = &w->places.places.items[place_id];

	if (place->kind == FRAME_KIND_TRUNCATED || place->function == PLACE_NO_FUNCTION)
		return 0;
	return w->p->functions.items[place->function].start_line;
}

static void put_funcs(struct writer *w)
{
	const struct place *places = w->places.places.items;
	size_t nr = w->places.places.nr, nr_files = w->p->files.nr;

	fprintf(w->out, ",\n\"funcTable\":{\"length\":%zu,", nr);
	SAME_COLUMN(w->out, "isJS", nr, "false");
	fputs(",\n", w->out);
	SAME_COLUMN(w->out, "relevantForJS", nr, "false");
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "name", nr, "%u", w->name_of_place[i]);
	fputs(",\n", w->out);
	/* There is one resource a file. */
	JSON_COLUMN(w->out, "resource", nr, "%" PRId64,
		    places[i].file < nr_files ? (int64_t)places[i].file : -1);
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "source", nr, w->source_of_place[i]);
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "lineNumber", nr, nonzero(start_line(w, (uint32_t)i)));
	fputs(",\n", w->out);
	SAME_COLUMN(w->out, "columnNumber", nr, "null");
	fputs("}", w->out);
}

/* Their names follow all other strings: file f's is number `first` + f. */
static void put_resources(struct writer *w, size_t first)
{
	const struct native_symbol *symbols = w->symbols.items;
	const struct place *places = w->places.places.items;
	size_t nr = w->p->files.nr;

	fprintf(w->out, ",\n\"resourceTable\":{\"length\":%zu,", nr);
	JSON_COLUMN(w->out, "lib", nr, "%zu", i);
	fputc(',', w->out);
	JSON_COLUMN(w->out, "name", nr, "%zu", first + i);
	fputc(',', w->out);
	SAME_COLUMN(w->out, "host", nr, "null");
	fputc(',', w->out);
	SAME_COLUMN(w->out, "type", nr, "1"); /* a library */
	nr = w->symbols.nr;
	fprintf(w->out, "},\n\"nativeSymbols\":{\"length\":%zu,", nr);
	JSON_COLUMN(w->out, "libIndex", nr, "%u", places[symbols[i].place].file);
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "address", nr, "%" PRIu64, symbols[i].address);
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "name", nr, "%u", w->name_of_place[symbols[i].place]);
	fputs(",\n", w->out);
	SAME_COLUMN(w->out, "functionSize", nr, "null");
	fputs("}", w->out);
}

static int put_shared(struct writer *w)
{
	size_t nr_names = w->strings.strings.nr, nr_files = w->p->files.nr;
	size_t nr_sources = w->sources.strings.nr - 1;
	int r;

	fputs(",\n\"shared\":{\"stringArray\":[", w->out);
	r = put_strings(w->out, &w->strings, ",\n");
	for (size_t i = 0; i < nr_files && !r; i++) {
		fputs(",\n", w->out);
		r = json_put_string(w->out, strtab_get(&w->p->strings, w->p->files.items[i].name));
	}
	for (uint32_t i = 1; i <= nr_sources && !r; i++) {
		fputs(",\n", w->out);
		r = json_put_string(w->out, strtab_get(&w->sources, i));
	}
	fputs("]", w->out);
	put_stacks_and_frames(w);
	put_funcs(w);
	put_resources(w, nr_names);
	fprintf(w->out, ",\n\"sources\":{\"length\":%zu,", nr_sources);
	SAME_COLUMN(w->out, "uuid", nr_sources, "null");
	fputc(',', w->out);
	JSON_COLUMN(w->out, "filename", nr_sources, "%zu", nr_names + nr_files + i);
	fputs("}}", w->out);
	return r;
}

/* --- what surrounds them ---------------------------------------------------------------------- */

static void put_category(const char *before, const char *name, const char *color, FILE *out)
{
	fprintf(out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", before,
		name, color);
}

static void put_categories(FILE *out)
{
	unsigned nr = 0;

	fputs(",\"categories\":[", out);
	for (size_t i = 0; i < CATEGORY_MAX_; i++)
		put_category(i ? "," : "", categories[i].name, categories[i].color, out);
	for (unsigned id = 0; id < RUNTIME_MAX_; id++)
		if (has_category(id))
			put_category(",", runtimes[id]->language, runtime_colors[nr++ % 3], out);
	fputs("]}", out);
}

static int put_meta(struct writer *w)
{
	const struct profile_host *host = &w->p->host;
	uint64_t interval_ns = w->period_ns ? w->period_ns : 1000000;
	int r;

	fputs("{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":60,\"interval\":", w->out);
	json_put_ms(w->out, (int64_t)interval_ns);
	fputs(",\"startTime\":", w->out);
	json_put_ms(w->out, (int64_t)w->p->cut.start_ns);
	fputs(",\"profilingStartTime\":0,\"profilingEndTime\":", w->out);
	json_put_ms(w->out, (int64_t)w->p->cut.duration_ns);
	fputs(",\"processType\":0,\"product\":\"sonde\",\"importedFrom\":\"sonde\","
	      "\"stackwalk\":1,\"symbolicated\":true,\"symbolicationNotSupported\":true,"
	      "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
	      "\"markerSchema\":[]",
	      w->out);
	if (w->events && w->period_ns)
		fputs(",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		      "\"threadCPUDelta\":\"ns\"}",
		      w->out);
	fputs(",\"platform\":\"Linux\",\"oscpu\":", w->out);
	r = json_put_string(w->out, strtab_get(&w->p->strings, host->os));
	put_categories(w->out);
	return r;
}

static void put_build_id(struct writer *w, const struct profile_file *file)
{
	/* A GUID has three little-endian numbers in front (Breakpad), and "0" is its age. */
	static const uint8_t guid[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

	fputs(",\"breakpadId\":\"", w->out);
	for (size_t i = 0; i < sizeof(guid) && file->build_id_len; i++)
		fprintf(w->out, "%02X", file->build_id[guid[i]]);
	fputs(file->build_id_len ? "0\",\"codeId\":\"" : "\",\"codeId\":null", w->out);
	for (size_t i = 0; i < file->build_id_len; i++)
		fprintf(w->out, "%02x", file->build_id[i]);
	fputs(file->build_id_len ? "\"" : "", w->out);
}

static int put_libs(struct writer *w)
{
	const char *arch = strtab_get(&w->p->strings, w->p->host.arch);
	int r = 0;

	fputs(",\n\"libs\":[", w->out);
	for (size_t i = 0; i < w->p->files.nr && !r; i++) {
		const struct profile_file *file = &w->p->files.items[i];
		const char *name = strtab_get(&w->p->strings, file->name);
		const char *path = strtab_get(&w->p->strings, file->path);
		const struct {
			const char *key, *value;
		} members[] = { { "{\"arch\":", arch },
				{ ",\"name\":", name },
				{ ",\"path\":", path },
				{ ",\"debugName\":", name },
				{ ",\"debugPath\":", path } };

		fputs(i ? ",\n" : "\n", w->out);
		for (size_t k = 0; k < sizeof(members) / sizeof(*members) && !r; k++) {
			fputs(members[k].key, w->out);
			r = json_put_string(w->out, members[k].value);
		}
		put_build_id(w, file);
		fputc('}', w->out);
	}
	fputs("],\"pages\":[],\"counters\":[]", w->out);
	return r;
}

/* --- threads ---------------------------------------------------------------------------------- */

static const struct profile_event *event(const struct writer *w, size_t i)
{
	return &w->p->cut.events.items[w->events[i]];
}

static int64_t stack_of_sample(const struct writer *w, uint32_t sample)
{
	return w->of_stack[w->p->cut.samples.items[sample].stack];
}

/* A sample a time, each worth one period of CPU time: only running threads are sampled. */
static void put_timed_samples(struct writer *w, size_t first, size_t nr)
{
	fprintf(w->out, "\"samples\":{\"length\":%zu,\"weightType\":\"samples\",\"weight\":null,",
		nr);
	NULLABLE_COLUMN(w->out, "stack", nr, stack_of_sample(w, event(w, first + i)->sample));
	fputs(",\n\"time\":[", w->out);
	for (size_t i = 0; i < nr; i++) {
		fputs(i ? "," : "", w->out);
		json_put_ms(w->out, (int64_t)event(w, first + i)->time_ns);
	}
	fputc(']', w->out);
	if (w->period_ns) {
		fputs(",\n", w->out);
		JSON_COLUMN(w->out, "threadCPUDelta", nr, "%" PRIu64, w->period_ns);
	}
	fputc('}', w->out);
}

/* A sample a stack with its count. The times are there because there must be some: 0, 1, 2, ... */
static void put_counted_samples(struct writer *w, uint32_t thread)
{
	const uint32_t *ids = w->samples + w->first[thread];
	size_t nr = w->first[thread + 1] - w->first[thread];
	const char *type = !strcmp(profile_unit_unit(w->p), "bytes") ? "bytes" : "samples";

	fprintf(w->out, "\"samples\":{\"length\":%zu,\"weightType\":\"%s\",", nr, type);
	JSON_COLUMN(w->out, "weight", nr, "%" PRIu64, w->p->cut.samples.items[ids[i]].count);
	fputs(",\n", w->out);
	NULLABLE_COLUMN(w->out, "stack", nr, stack_of_sample(w, ids[i]));
	fputs(",\n", w->out);
	JSON_COLUMN(w->out, "time", nr, "%zu", i);
	fputc('}', w->out);
}

static int64_t since_start(const struct writer *w, uint64_t time_ns)
{
	return (int64_t)(time_ns - w->p->cut.start_ns);
}

static void put_end(struct writer *w, const char *key, uint64_t end_ns, int64_t not_before)
{
	int64_t since = since_start(w, end_ns);

	fputs(key, w->out);
	if (end_ns)
		json_put_ms(w->out, since > not_before ? since : not_before);
	else
		fputs("null", w->out);
}

/*
 * A main thread lives as long as its process. Of others whose start is not known the first sample
 * is. What /proc says of a start is exact to a tick; and a TID may come again with the same name:
 * no sample is outside of its thread's life.
 */
static void put_times(struct writer *w, uint32_t thread, bool is_main, int64_t first_sample_ns,
		      int64_t last_sample_ns)
{
	const struct profile_thread *t = &w->p->threads.items[thread];
	const struct profile_process *process = &w->p->processes.items[t->process];
	int64_t start_ns = process->start_ns ? since_start(w, process->start_ns) : 0;
	int64_t thread_ns = t->start_ns ? since_start(w, t->start_ns) : first_sample_ns;
	uint64_t end_ns = t->end_ns && !is_main ? t->end_ns : process->end_ns;

	if (thread_ns > first_sample_ns)
		thread_ns = first_sample_ns;
	fputs(",\"processStartupTime\":", w->out);
	json_put_ms(w->out, start_ns);
	fputs(",\"registerTime\":", w->out);
	json_put_ms(w->out, is_main ? start_ns : thread_ns);
	put_end(w, ",\"processShutdownTime\":", process->end_ns, INT64_MIN);
	put_end(w, ",\"unregisterTime\":", end_ns, is_main ? INT64_MIN : last_sample_ns);
}

/* How often this number came before; counts it. */
static int count_before(struct map *seen, uint64_t key, uint64_t *ret)
{
	uint64_t *found = map_get(seen, key);

	*ret = found ? *found : 0;
	return map_put(seen, key, *ret + 1);
}

/* The viewer tells processes and threads apart by their numbers alone: they have to be unique. */
struct thread_ids {
	struct map pids, tids, mains;
	uint64_t *pid_number; /* by process: how many of this PID came before */
};

static void thread_ids_fini(struct thread_ids *ids)
{
	map_fini(&ids->pids);
	map_fini(&ids->tids);
	map_fini(&ids->mains);
	free(ids->pid_number);
}

static int thread_ids_init(struct thread_ids *ids, const struct profile *p)
{
	int r = 0;

	ids->pid_number = calloc(p->processes.nr + 1, sizeof(*ids->pid_number));
	if (!ids->pid_number)
		return -ENOMEM;
	for (size_t i = 0; i < p->processes.nr && !r; i++)
		r = count_before(&ids->pids, (uint32_t)p->processes.items[i].pid,
				 &ids->pid_number[i]);
	return r;
}

/* Threads of no known process are processes of their own. */
static int put_ids(struct writer *w, struct thread_ids *ids, uint32_t thread, bool *ret_main)
{
	const struct profile_thread *t = &w->p->threads.items[thread];
	int32_t pid = w->p->processes.items[t->process].pid;
	uint64_t same_pid = ids->pid_number[t->process], same_tid, mains = 0;
	int r = count_before(&ids->tids, (uint32_t)t->tid, &same_tid);

	*ret_main = !pid || t->tid == pid;
	if (!r && pid && *ret_main)
		r = count_before(&ids->mains, t->process, &mains);
	*ret_main = *ret_main && !mains;
	if (!pid)
		fprintf(w->out, ",\"pid\":\"0.%u\"", thread);
	else if (same_pid)
		fprintf(w->out, ",\"pid\":\"%d.%" PRIu64 "\"", pid, same_pid);
	else
		fprintf(w->out, ",\"pid\":\"%d\"", pid);
	if (same_tid)
		fprintf(w->out, ",\"tid\":\"%d.%" PRIu64 "\"", t->tid, same_tid);
	else
		fprintf(w->out, ",\"tid\":%d", t->tid);
	fprintf(w->out, ",\"isMainThread\":%s", *ret_main ? "true" : "false");
	return r;
}

static int put_thread(struct writer *w, struct thread_ids *ids, uint32_t thread)
{
	const struct profile_process *process =
		&w->p->processes.items[w->p->threads.items[thread].process];
	const char *comm = thread_name(w->p, thread);
	const char *name = strtab_get(&w->p->strings, process->name);
	size_t first = 0, nr = 0;
	bool is_main;
	int r;

	if (w->events)
		nr = events_of_thread(w->p, w->events, thread, &first);
	fputs("{\"processType\":\"default\",\"pausedRanges\":[],\"name\":", w->out);
	r = json_put_string(w->out, comm);
	fputs(",\"processName\":", w->out);
	if (!r)
		r = json_put_string(w->out, *name ? name : comm);
	if (!r)
		r = put_ids(w, ids, thread, &is_main);
	if (r)
		return r;
	put_times(w, thread, is_main, nr ? (int64_t)event(w, first)->time_ns : 0,
		  nr ? (int64_t)event(w, first + nr - 1)->time_ns : INT64_MIN);
	fputs(",\n\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":"
	      "[],\"phase\":[],\"category\":[]},\n",
	      w->out);
	if (w->events)
		put_timed_samples(w, first, nr);
	else
		put_counted_samples(w, thread);
	fputc('}', w->out);
	return 0;
}

static int put_threads(struct writer *w)
{
	_cleanup_(thread_ids_fini) struct thread_ids ids = { 0 };
	_cleanup_free_ uint32_t *threads = NULL;
	size_t nr = 0;
	int r = order_threads(w->p, &threads, &nr);

	if (!r)
		r = thread_ids_init(&ids, w->p);
	fputs(",\n\"threads\":[", w->out);
	for (size_t i = 0; i < nr && !r; i++) {
		fputs(i ? ",\n" : "\n", w->out);
		r = put_thread(w, &ids, threads[i]);
	}
	fputs("]}\n", w->out);
	return r;
}

static int firefox_write(const struct profile *p, const struct export_options *options, FILE *out)
{
	_cleanup_(writer_fini) struct writer w = { .p = p, .out = out, .period_ns = period_ns(p) };
	int r = build(&w);

	(void)options; /* lines are always there */
	if (!r)
		r = put_meta(&w);
	if (!r)
		r = put_libs(&w);
	if (!r)
		r = put_shared(&w);
	return r ? r : put_threads(&w);
}

const struct export_ops export_firefox = {
	.name = "firefox",
	.extensions = (const char *const[]){ ".firefox.json", NULL },
	.description = "for the Firefox Profiler: threads and processes over time",
	.wants_events = true,
	.write = firefox_write,
};
