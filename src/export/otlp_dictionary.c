// SPDX-License-Identifier: Apache-2.0
/*
 * The dictionary of an OTLP request: mappings, locations, functions, stacks, strings, attributes.
 * See docs/formats/otlp.md for what goes where and by which rule.
 */
#include "export/otlp_internal.h"

#include "runtime/runtime.h"
#include "util/cleanup.h"

#include "otlp.pb-c.h"

#include <string.h>

/* Hash of a file, its GNU build id in hex; and how many attributes a mapping may have. */
enum { HEX_MAX = 2 * 20 + 1, MAPPING_ATTRIBUTES_MAX = 7 };

static uint32_t *none_yet(size_t nr)
{
	uint32_t *ids = malloc((nr + 1) * sizeof(*ids));

	if (ids)
		memset(ids, 0xff, (nr + 1) * sizeof(*ids));
	return ids;
}

int otlp_dictionary_init(struct otlp_dictionary *d, const struct profile *p)
{
	int r;

	*d = (struct otlp_dictionary){ .p = p };
	d->functions = none_yet(p->functions.nr);
	d->files = none_yet(p->files.nr);
	d->frames = none_yet(p->frames.nr);
	d->stacks = none_yet(p->stacks.nr);
	r = d->functions && d->files && d->frames && d->stacks ? 0 : -ENOMEM;
	for (uint32_t i = 1; !r && i < OTLP_TABLE_MAX_; i++)
		r = pack_table_init(&d->tables[i], i);
	return r ? r : used_init(&d->used, p);
}

void otlp_dictionary_fini(struct otlp_dictionary *d)
{
	used_fini(&d->used);
	for (size_t i = 1; i < OTLP_TABLE_MAX_; i++)
		pack_table_fini(&d->tables[i]);
	pack_text_fini(&d->text);
	free(d->functions);
	free(d->files);
	free(d->frames);
	free(d->stacks);
	free(d->name);
	vec_free(&d->indices);
}

int otlp_string(struct otlp_dictionary *d, const char *s, uint32_t *ret)
{
	const char *clean;
	int r = pack_clean(&d->text, s, &clean);

	return r ? r : pack_table_bytes(&d->tables[OTLP_STRING_TABLE], clean, strlen(clean), ret);
}

static int profile_string_index(struct otlp_dictionary *d, uint32_t string, int32_t *ret)
{
	uint32_t id;
	int r = otlp_string(d, strtab_get(&d->p->strings, string), &id);

	if (!r)
		*ret = (int32_t)id;
	return r;
}

/* --- attributes ------------------------------------------------------------------------------- */

static int attribute_in(struct otlp_dictionary *d, const char *key, Otlp__AnyValue *value,
			const char *unit, uint32_t *ret)
{
	Otlp__KeyValueAndUnit m = OTLP__KEY_VALUE_AND_UNIT__INIT;
	uint32_t id, unit_id = 0;
	int r = otlp_string(d, key, &id);

	if (!r && *unit)
		r = otlp_string(d, unit, &unit_id);
	if (r)
		return r;
	m.key_strindex = (int32_t)id;
	m.unit_strindex = (int32_t)unit_id;
	m.value = value;
	return pack_table_message(&d->tables[OTLP_ATTRIBUTE_TABLE], &m, ret);
}

static int attribute(struct otlp_dictionary *d, const char *key, Otlp__AnyValue *value,
		     uint32_t *ret)
{
	return attribute_in(d, key, value, "", ret);
}

int otlp_text_attribute(struct otlp_dictionary *d, const char *key, const char *text, uint32_t *ret)
{
	Otlp__AnyValue value;
	const char *clean;
	struct pack_text own = { 0 };
	int r = pack_clean(&own, text, &clean);

	otlp__any_value__init(&value);
	if (!r) {
		value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value.string_value.data = (uint8_t *)own.text;
		value.string_value.len = strlen(clean);
		r = attribute(d, key, &value, ret);
	}
	pack_text_fini(&own);
	return r;
}

int otlp_number_attribute(struct otlp_dictionary *d, const char *key, int64_t number, uint32_t *ret)
{
	Otlp__AnyValue value;

	otlp__any_value__init(&value);
	value.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value.int_value = number;
	return attribute(d, key, &value, ret);
}

int otlp_label_attribute(struct otlp_dictionary *d, const struct profile_label *label,
			 uint32_t *ret)
{
	const struct strtab *strings = &d->p->strings;
	_cleanup_free_ char *key = NULL;
	Otlp__AnyValue value;

	if (asprintf(&key, OTLP_LABEL_PREFIX "%s", strtab_get(strings, label->key)) < 0) {
		key = NULL;
		return -ENOMEM;
	}
	if (label->text)
		return otlp_text_attribute(d, key, strtab_get(strings, label->text), ret);
	otlp__any_value__init(&value);
	value.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value.int_value = label->number;
	return attribute_in(d, key, &value, strtab_get(strings, (uint32_t)label->unit), ret);
}

int otlp_link(struct otlp_dictionary *d, const struct profile_context *context, uint32_t *ret)
{
	static const struct profile_context none;
	Otlp__Link m = OTLP__LINK__INIT;

	*ret = 0;
	if (!memcmp(context->trace_id, none.trace_id, sizeof(none.trace_id)) &&
	    !memcmp(context->span_id, none.span_id, sizeof(none.span_id)))
		return 0;
	m.trace_id.data = (uint8_t *)context->trace_id;
	m.trace_id.len = sizeof(context->trace_id);
	m.span_id.data = (uint8_t *)context->span_id;
	m.span_id.len = sizeof(context->span_id);
	return pack_table_message(&d->tables[OTLP_LINK_TABLE], &m, ret);
}

static int true_attribute(struct otlp_dictionary *d, const char *key, uint32_t *ret)
{
	Otlp__AnyValue value;

	otlp__any_value__init(&value);
	value.value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
	value.bool_value = true;
	return attribute(d, key, &value, ret);
}

/* --- mappings --------------------------------------------------------------------------------- */

static void to_hex(const uint8_t *bytes, size_t nr, char text[HEX_MAX])
{
	text[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static int mapping_ids(struct otlp_dictionary *d, const struct profile_file *f, Otlp__Mapping *m)
{
	char hex[HEX_MAX];
	uint32_t id;
	int r = 0;

	if (f->build_id_len) {
		to_hex(f->build_id, f->build_id_len, hex);
		r = otlp_text_attribute(d, "process.executable.build_id.gnu", hex, &id);
		m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	}
	if (!r && f->go_build_id) {
		r = otlp_text_attribute(d, "process.executable.build_id.go",
					strtab_get(&d->p->strings, f->go_build_id), &id);
		m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	}
	if (!r && f->has_file_id) {
		to_hex(f->file_id, sizeof(f->file_id), hex);
		r = otlp_text_attribute(d, "process.executable.build_id.htlhash", hex, &id);
		m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	}
	return r;
}

static int mapping_flags(struct otlp_dictionary *d, const struct used_file *used, Otlp__Mapping *m)
{
	const struct {
		bool set;
		const char *key;
	} flags[] = {
		{ used->functions, "pprof.mapping.has_functions" },
		{ used->filenames, "pprof.mapping.has_filenames" },
		{ used->line_numbers, "pprof.mapping.has_line_numbers" },
		{ used->inline_frames, "pprof.mapping.has_inline_frames" },
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(flags) / sizeof(flags[0]); i++) {
		uint32_t id;

		if (!flags[i].set)
			continue;
		r = true_attribute(d, flags[i].key, &id);
		if (!r)
			m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	}
	return r;
}

static const char *file_path(const struct otlp_dictionary *d, const struct profile_file *f)
{
	const char *path = pack_path(strtab_get(&d->p->strings, f->path));

	return d->nameless ? basename(path) : path;
}

static bool has_id(const struct profile_file *f)
{
	return f->build_id_len || f->go_build_id || f->has_file_id;
}

/* 0 for a file without any id: a mapping must have one. */
static int mapping(struct otlp_dictionary *d, uint32_t number, int32_t *ret)
{
	const struct profile_file *f = &d->p->files.items[number];
	int32_t indices[MAPPING_ATTRIBUTES_MAX];
	Otlp__Mapping m = OTLP__MAPPING__INIT;
	uint32_t id;
	int r = 0;

	if (!has_id(f))
		d->files[number] = 0;
	if (d->files[number] == OTLP_NOT_YET) {
		m.attribute_indices = indices;
		if (d->used.files[number].in_range) {
			m.memory_start = f->start;
			m.memory_limit = f->end;
			m.file_offset = f->offset;
		}
		r = otlp_string(d, file_path(d, f), &id);
		m.filename_strindex = (int32_t)id;
		if (!r)
			r = mapping_ids(d, f, &m);
		if (!r && !d->nameless)
			r = mapping_flags(d, &d->used.files[number], &m);
		if (!r)
			r = pack_table_message(&d->tables[OTLP_MAPPING_TABLE], &m,
					       &d->files[number]);
	}
	if (!r)
		*ret = (int32_t)d->files[number];
	return r;
}

/* --- locations -------------------------------------------------------------------------------- */

static int named_function(struct otlp_dictionary *d, const char *name, int32_t *ret)
{
	Otlp__Function m = OTLP__FUNCTION__INIT;
	uint32_t id;
	int r = otlp_string(d, name, &id);

	m.name_strindex = (int32_t)id;
	if (!r)
		r = pack_table_message(&d->tables[OTLP_FUNCTION_TABLE], &m, &id);
	if (!r)
		*ret = (int32_t)id;
	return r;
}

static int function(struct otlp_dictionary *d, uint32_t number, int32_t *ret)
{
	const struct profile_function *f = &d->p->functions.items[number];
	Otlp__Function m = OTLP__FUNCTION__INIT;
	int r = 0;

	if (d->functions[number] == OTLP_NOT_YET) {
		m.start_line = f->start_line;
		r = profile_string_index(d, f->name, &m.name_strindex);
		if (!r)
			r = profile_string_index(d, f->linkage_name, &m.system_name_strindex);
		if (!r)
			r = profile_string_index(d, f->source, &m.filename_strindex);
		if (!r)
			r = pack_table_message(&d->tables[OTLP_FUNCTION_TABLE], &m,
					       &d->functions[number]);
	}
	if (!r)
		*ret = (int32_t)d->functions[number];
	return r;
}

/* profile.frame.type: the most precise value that is known. */
static const char *frame_type(const struct profile *p, const struct profile_frame *f)
{
	enum function_language language = FUNCTION_LANGUAGE_UNKNOWN;

	if (f->kind == FRAME_KIND_KERNEL)
		return "kernel";
	if (f->kind == FRAME_KIND_TRUNCATED)
		return "abort-marker";
	if (profile_runtime_name(f->kind))
		return runtimes[f->kind - FRAME_KIND_OF(0)]->label;
	if (f->nr_lines)
		language =
			p->functions.items[p->lines.items[f->first_line + f->nr_lines - 1].function]
				.language;
	if (language == FUNCTION_LANGUAGE_RUST)
		return "rust";
	if (language == FUNCTION_LANGUAGE_GO)
		return "go";
	/* What is linked into a Go program and is not Go has a language of its own. */
	if (language == FUNCTION_LANGUAGE_UNKNOWN && f->file < p->files.nr &&
	    p->files.items[f->file].go_build_id)
		return "go";
	return "native";
}

/* Those of the kernel, and of what stands for frames, are nobody's who is not trusted. */
static bool is_named(const struct otlp_dictionary *d, const struct profile_frame *f)
{
	return !d->nameless || f->kind == FRAME_KIND_KERNEL || f->kind == FRAME_KIND_TRUNCATED;
}

/* A name that nobody can make of the address later, since its file has no id. */
static int label(struct otlp_dictionary *d, uint32_t frame, int32_t *ret)
{
	size_t size = profile_frame_label_size(d->p, frame, 0);

	if (!is_named(d, &d->p->frames.items[frame]))
		return named_function(d, OTLP_NAME_LEFT_OUT, ret);
	if (size > d->name_size) {
		char *p = realloc(d->name, size);

		if (!p)
			return -ENOMEM;
		d->name = p;
		d->name_size = size;
	}
	return named_function(d, profile_frame_name(d->p, frame, 0, d->name, d->name_size), ret);
}

static int fill_lines(struct otlp_dictionary *d, const struct profile_frame *f, Otlp__Line *lines,
		      Otlp__Line **pointers)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < f->nr_lines; i++) {
		const struct profile_line *from = &d->p->lines.items[f->first_line + i];

		otlp__line__init(&lines[i]);
		lines[i].line = from->line;
		lines[i].column = from->column;
		r = function(d, from->function, &lines[i].function_index);
		pointers[i] = &lines[i];
	}
	return r;
}

/* Each location has one of a few. */
static int frame_type_attribute(struct otlp_dictionary *d, const char *type, uint32_t *ret)
{
	int r;

	for (size_t i = 0; i < d->nr_frame_types; i++)
		if (d->frame_types[i].type == type) {
			*ret = d->frame_types[i].id;
			return 0;
		}
	r = otlp_text_attribute(d, "profile.frame.type", type, ret);
	if (!r && d->nr_frame_types < OTLP_FRAME_TYPES_MAX)
		d->frame_types[d->nr_frame_types++] = (struct otlp_frame_type){ type, *ret };
	return r;
}

static int location_attributes(struct otlp_dictionary *d, const struct profile_frame *f,
			       Otlp__Location *m)
{
	uint32_t id;
	int r = frame_type_attribute(d, frame_type(d->p, f), &id);

	if (r)
		return r;
	m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	if (m->mapping_index || f->file >= d->p->files.nr)
		return 0;
	r = otlp_text_attribute(d, OTLP_PATH_ATTRIBUTE, file_path(d, &d->p->files.items[f->file]),
				&id);
	m->attribute_indices[m->n_attribute_indices++] = (int32_t)id;
	return r;
}

static int build_location(struct otlp_dictionary *d, uint32_t frame, uint32_t *ret)
{
	const struct profile_frame *f = &d->p->frames.items[frame];
	size_t nr_lines = is_named(d, f) ? f->nr_lines : 0, nr = nr_lines ? nr_lines : 1;
	_cleanup_free_ Otlp__Line *lines = calloc(nr, sizeof(*lines));
	_cleanup_free_ Otlp__Line **pointers = calloc(nr, sizeof(Otlp__Line *));
	Otlp__Location m = OTLP__LOCATION__INIT;
	int32_t indices[2];
	int r;

	if (!lines || !pointers)
		return -ENOMEM;
	m.address = f->address;
	m.attribute_indices = indices;
	m.lines = pointers;
	m.n_lines = nr_lines;
	r = f->file < d->p->files.nr ? mapping(d, f->file, &m.mapping_index) : 0;
	if (!r && nr_lines)
		r = fill_lines(d, f, lines, pointers);
	if (!r && !nr_lines && !m.mapping_index) {
		otlp__line__init(&lines[0]);
		pointers[0] = &lines[0];
		m.n_lines = 1;
		r = label(d, frame, &lines[0].function_index);
	}
	if (!r)
		r = location_attributes(d, f, &m);
	return r ? r : pack_table_message(&d->tables[OTLP_LOCATION_TABLE], &m, ret);
}

static int marker_location(struct otlp_dictionary *d, enum stop_reason stop, uint32_t *ret)
{
	Otlp__Location m = OTLP__LOCATION__INIT;
	Otlp__Line line = OTLP__LINE__INIT, *lines[1] = { &line };
	char name[80];
	uint32_t id;
	int32_t index;
	int r;

	snprintf(name, sizeof(name), "[truncated: %s]", profile_stop_name(stop));
	r = named_function(d, name, &line.function_index);
	if (!r)
		r = otlp_text_attribute(d, "profile.frame.type", "abort-marker", &id);
	if (r)
		return r;
	index = (int32_t)id;
	m.lines = lines;
	m.n_lines = 1;
	m.attribute_indices = &index;
	m.n_attribute_indices = 1;
	return pack_table_message(&d->tables[OTLP_LOCATION_TABLE], &m, ret);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int build_stack(struct otlp_dictionary *d, const struct profile_stack *s, uint32_t *ret)
{
	Otlp__Stack m = OTLP__STACK__INIT;
	uint32_t id;
	int r;

	d->indices.nr = 0;
	r = vec_reserve(&d->indices, (size_t)s->nr + 1);
	for (uint32_t i = 0; !r && i < s->nr; i++) {
		uint32_t frame = d->p->stack_frames.items[s->first + i];

		if (d->frames[frame] == OTLP_NOT_YET)
			r = build_location(d, frame, &d->frames[frame]);
		d->indices.items[d->indices.nr++] = (int32_t)d->frames[frame];
	}
	if (!r && used_stop(s) != STOP_COMPLETE) {
		r = marker_location(d, used_stop(s), &id);
		d->indices.items[d->indices.nr++] = (int32_t)id;
	}
	if (r)
		return r;
	m.location_indices = d->indices.items;
	m.n_location_indices = d->indices.nr;
	return pack_table_message(&d->tables[OTLP_STACK_TABLE], &m, ret);
}

int otlp_stack(struct otlp_dictionary *d, uint32_t stack, uint32_t *ret)
{
	int r = 0;

	if (d->stacks[stack] == OTLP_NOT_YET)
		r = build_stack(d, &d->p->stacks.items[stack], &d->stacks[stack]);
	if (!r)
		*ret = d->stacks[stack];
	return r;
}
