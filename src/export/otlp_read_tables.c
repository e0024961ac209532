// SPDX-License-Identifier: Apache-2.0
/*
 * The dictionary of an OTLP request that is read. Each table is read as a whole, those first that
 * others refer to, so that any order in the input will do.
 */
#include "export/otlp_internal.h"
#include "export/otlp_read_internal.h"
#include "runtime/runtime.h"
#include "util/cleanup.h"

#include "otlp.pb-c.h"

#include <string.h>

static const struct {
	const char *name;
	uint8_t key;
} keys[] = {
	{ "thread.name", OTLP_KEY_THREAD_NAME },
	{ "thread.id", OTLP_KEY_THREAD_ID },
	{ "thread.carrier.name", OTLP_KEY_THREAD_CARRIER },
	{ "cpu.logical_number", OTLP_KEY_CPU },
	{ "profile.frame.type", OTLP_KEY_FRAME_TYPE },
	{ "process.executable.build_id.gnu", OTLP_KEY_BUILD_ID_GNU },
	{ "process.executable.build_id.go", OTLP_KEY_BUILD_ID_GO },
	{ "process.executable.build_id.htlhash", OTLP_KEY_BUILD_ID_HTLHASH },
	{ "process.executable.build_id.profiling", OTLP_KEY_BUILD_ID_HTLHASH },
	{ OTLP_PATH_ATTRIBUTE, OTLP_KEY_PATH },
	{ "process.pid", OTLP_KEY_PID },
	{ "process.parent_pid", OTLP_KEY_PARENT_PID },
	{ "process.vpid", OTLP_KEY_VPID },
	{ "process.group_leader.pid", OTLP_KEY_GROUP_PID },
	{ "process.session_leader.pid", OTLP_KEY_SESSION_PID },
	{ "process.interactive", OTLP_KEY_INTERACTIVE },
	{ "process.linux.cgroup", OTLP_KEY_CGROUP },
	{ "process.user.id", OTLP_KEY_USER_ID },
	{ "process.real_user.id", OTLP_KEY_REAL_USER_ID },
	{ "process.saved_user.id", OTLP_KEY_SAVED_USER_ID },
	{ "process.executable.name", OTLP_KEY_EXE_NAME },
	{ "process.executable.path", OTLP_KEY_EXE_PATH },
	{ "process.title", OTLP_KEY_TITLE },
	{ "process.command", OTLP_KEY_COMMAND },
	{ "process.owner", OTLP_KEY_OWNER },
	{ "process.creation.time", OTLP_KEY_CREATION },
	{ "process.exit.time", OTLP_KEY_EXIT },
	{ "container.id", OTLP_KEY_CONTAINER },
	{ "k8s.pod.uid", OTLP_KEY_POD },
	{ "service.name", OTLP_KEY_SERVICE },
	{ "host.name", OTLP_KEY_HOST_NAME },
	{ "host.id", OTLP_KEY_HOST_ID },
	{ "host.arch", OTLP_KEY_HOST_ARCH },
	{ "os.description", OTLP_KEY_OS },
	{ "pprof.scope.default_sample_type", OTLP_KEY_DEFAULT_TYPE },
};

static const char *text_of(const struct otlp_reader *r, uint32_t string)
{
	return strtab_get(&r->base.p->strings, string);
}

/* --- attributes ------------------------------------------------------------------------------- */

int otlp_read_attribute(struct otlp_reader *r, struct slice key, const void *value,
			struct otlp_attribute *ret)
{
	const size_t prefix = strlen(OTLP_LABEL_PREFIX);
	const Otlp__AnyValue *v = value;
	struct otlp_attribute a = { 0 };
	int err = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (slice_is(key, keys[i].name))
			a.key = keys[i].key;
	if (key.size > prefix && !memcmp(key.data, OTLP_LABEL_PREFIX, prefix)) {
		a.key = OTLP_KEY_LABEL;
		err = reader_intern_slice(OTLP_BASE(r),
					  (struct slice){ key.data + prefix, key.size - prefix },
					  &a.label);
	}
	if (err)
		return err;
	if (v && v->value_case == OTLP__ANY_VALUE__VALUE_INT_VALUE) {
		a.number = v->int_value;
		a.has_number = true;
	} else if (v && a.key == OTLP_KEY_INTERACTIVE &&
		   v->value_case == OTLP__ANY_VALUE__VALUE_BOOL_VALUE) {
		a.number = v->bool_value;
	} else if (v && a.key && v->value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE) {
		err = reader_intern_slice(
			OTLP_BASE(r), (struct slice){ v->string_value.data, v->string_value.len },
			&a.text);
	} else if (v && a.key && v->value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX) {
		err = reader_intern(OTLP_BASE(r), v->string_value_strindex, &a.text);
	}
	if (!err)
		*ret = a;
	return err;
}

int otlp_attribute_of(struct otlp_reader *r, int32_t index, struct otlp_attribute *ret)
{
	if (index < 0 || (size_t)index >= r->attributes.nr)
		return reader_bad(OTLP_BASE(r), "it names attribute %d of %zu", index,
				  r->attributes.nr);
	*ret = r->attributes.items[index];
	return 0;
}

static int read_attribute(struct otlp_reader *r, struct slice message)
{
	struct otlp_attribute a = { 0 };
	Otlp__KeyValueAndUnit *m;
	struct slice key;
	int err = reader_unpack(OTLP_BASE(r), "attribute", &otlp__key_value_and_unit__descriptor,
				message, &m);

	if (!err)
		err = reader_string(OTLP_BASE(r), m->key_strindex, &key);
	if (!err)
		err = otlp_read_attribute(r, key, m->value, &a);
	if (!err && a.key == OTLP_KEY_LABEL)
		err = reader_intern(OTLP_BASE(r), m->unit_strindex, &a.unit);
	return err ? err : vec_push(&r->attributes, a);
}

/* --- mappings and functions ------------------------------------------------------------------- */

struct build_ids {
	const char *gnu, *go, *htlhash; /* "" if there is none */
};

static int read_build_ids(struct otlp_reader *r, const int32_t *indices, size_t nr,
			  struct build_ids *ret)
{
	*ret = (struct build_ids){ "", "", "" };
	for (size_t i = 0; i < nr; i++) {
		struct otlp_attribute a = { 0 };
		int err = otlp_attribute_of(r, indices[i], &a);

		if (err)
			return err;
		if (a.key == OTLP_KEY_BUILD_ID_GNU)
			ret->gnu = text_of(r, a.text);
		else if (a.key == OTLP_KEY_BUILD_ID_GO)
			ret->go = text_of(r, a.text);
		else if (a.key == OTLP_KEY_BUILD_ID_HTLHASH)
			ret->htlhash = text_of(r, a.text);
	}
	return 0;
}

static int read_mapping(struct otlp_reader *r, struct slice message)
{
	struct otlp_file to = { .file = PROFILE_NO_FILE };
	struct profile *p = OTLP_BASE(r)->p;
	struct build_ids ids;
	struct profile_file *f;
	struct slice path;
	Otlp__Mapping *m;
	int err = reader_unpack(OTLP_BASE(r), "mapping", &otlp__mapping__descriptor, message, &m);

	if (!err)
		err = reader_string(OTLP_BASE(r), m->filename_strindex, &path);
	if (!err)
		err = read_build_ids(r, m->attribute_indices, m->n_attribute_indices, &ids);
	if (!err)
		err = reader_file(OTLP_BASE(r), path, slice_of(ids.gnu), &to.file, &to.kind);
	/* Without a name there may be an id that is none of a profile's files' identity. */
	if (!err && to.file == PROFILE_NO_FILE && (*ids.go || *ids.htlhash))
		err = reader_file(OTLP_BASE(r), slice_of("[unknown]"), slice_of(""), &to.file,
				  &to.kind);
	if (err)
		return err;
	reader_place_file(OTLP_BASE(r), to.file, m->memory_start, m->memory_limit, m->file_offset,
			  &to.bias);
	f = to.file == PROFILE_NO_FILE ? NULL : &p->files.items[to.file];
	if (f && *ids.go)
		err = strtab_intern(&p->strings, ids.go, strlen(ids.go), &f->go_build_id);
	if (f &&
	    slice_hex(slice_of(ids.htlhash), f->file_id, sizeof(f->file_id)) == sizeof(f->file_id))
		f->has_file_id = true;
	return err ? err : vec_push(&r->files, to);
}

static int read_function(struct otlp_reader *r, struct slice message)
{
	Otlp__Function *m;
	uint32_t id;
	int err = reader_unpack(OTLP_BASE(r), "function", &otlp__function__descriptor, message, &m);

	if (!err)
		err = reader_add_function(
			OTLP_BASE(r),
			&(struct reader_function){ m->name_strindex, m->system_name_strindex,
						   m->filename_strindex, m->start_line },
			&id);
	return err ? err : vec_push(&r->functions, id);
}

/* --- locations -------------------------------------------------------------------------------- */

struct place {
	const char *type; /* profile.frame.type; "" */
	const char *path; /* "" */
};

static int read_place(struct otlp_reader *r, const Otlp__Location *m, struct place *ret)
{
	*ret = (struct place){ "", "" };
	for (size_t i = 0; i < m->n_attribute_indices; i++) {
		struct otlp_attribute a = { 0 };
		int err = otlp_attribute_of(r, m->attribute_indices[i], &a);

		if (err)
			return err;
		if (a.key == OTLP_KEY_FRAME_TYPE)
			ret->type = text_of(r, a.text);
		else if (a.key == OTLP_KEY_PATH)
			ret->path = text_of(r, a.text);
	}
	return 0;
}

/* A runtime's, or native: "native", "go", "rust", and what we don't know. */
static uint16_t kind_of_label(const char *label)
{
	/* Go's frames are native ones. */
	if (!strcmp(label, "go"))
		return FRAME_KIND_NATIVE;
	for (unsigned id = RUNTIME_NATIVE + 1; id < RUNTIME_MAX_; id++)
		if (runtimes[id] && !strcmp(runtimes[id]->label, label))
			return (uint16_t)FRAME_KIND_OF(id);
	return FRAME_KIND_NATIVE;
}

static int read_file(struct otlp_reader *r, const Otlp__Location *m, const struct place *place,
		     struct profile_frame *frame)
{
	uint32_t index = (uint32_t)m->mapping_index;
	const struct otlp_file *file;
	int err = 0;

	if (index >= r->files.nr && index)
		return reader_bad(OTLP_BASE(r), "it names mapping %d of %zu", m->mapping_index,
				  r->files.nr);
	frame->file = PROFILE_NO_FILE;
	frame->address = m->address;
	if (index) {
		file = &r->files.items[index];
		frame->file = file->file;
		frame->kind = file->kind;
		frame->address += file->bias;
	} else if (*place->path) {
		err = reader_file(OTLP_BASE(r), slice_of(place->path), slice_of(""), &frame->file,
				  &frame->kind);
	}
	if (!strcmp(place->type, "kernel"))
		frame->kind = FRAME_KIND_KERNEL;
	else if (!strcmp(place->type, "abort-marker"))
		frame->kind = FRAME_KIND_TRUNCATED;
	else if (*place->type)
		frame->kind = kind_of_label(place->type);
	return err;
}

/* A function in a language that only its frame tells. */
static int in_language(struct otlp_reader *r, uint32_t *function, const char *type)
{
	struct profile_function f = OTLP_BASE(r)->p->functions.items[*function];

	if (!strcmp(type, "go"))
		f.language = FUNCTION_LANGUAGE_GO;
	else if (!strcmp(type, "rust"))
		f.language = FUNCTION_LANGUAGE_RUST;
	else
		return 0;
	return profile_add_function(OTLP_BASE(r)->p, &f, function);
}

static int read_lines(struct otlp_reader *r, const Otlp__Location *m, const struct place *place)
{
	int err = 0;

	r->lines.nr = 0;
	for (size_t i = 0; !err && i < m->n_lines; i++) {
		const Otlp__Line *line = m->lines[i];
		uint32_t index = (uint32_t)line->function_index, function;

		if (!index)
			continue;
		if (index >= r->functions.nr)
			return reader_bad(OTLP_BASE(r), "it names function %d of %zu",
					  line->function_index, r->functions.nr);
		function = r->functions.items[index];
		err = in_language(r, &function, place->type);
		if (!err)
			err = vec_push(&r->lines, ((struct profile_line){
							  function, reader_line_number(line->line),
							  reader_line_number(line->column) }));
	}
	return err;
}

/* Whether the one name is what the frame would be called without: see label() of the writer. */
static int is_label(struct otlp_reader *r, const struct profile_frame *frame, bool *ret)
{
	struct profile *p = OTLP_BASE(r)->p;
	_cleanup_free_ char *buf = NULL;
	const char *name;
	uint32_t id;
	size_t size;
	int err;

	*ret = false;
	if (r->lines.nr != 1 || r->lines.items[0].line)
		return 0;
	name = text_of(r, p->functions.items[r->lines.items[0].function].name);
	if (*name != '[')
		return 0;
	err = profile_add_frame(p, frame, &id);
	if (err)
		return err;
	size = profile_frame_label_size(p, id, 0);
	buf = malloc(size);
	if (!buf)
		return -ENOMEM;
	*ret = !strcmp(profile_frame_name(p, id, 0, buf, size), name);
	return 0;
}

static enum stop_reason marker_of(const struct otlp_reader *r, const struct profile_frame *frame)
{
	const struct profile *p = r->base.p;
	enum stop_reason stop = STOP_MAX_;
	const char *name;

	if (r->lines.nr == 1 && frame->file == PROFILE_NO_FILE) {
		name = text_of(r, p->functions.items[r->lines.items[0].function].name);
		stop = pack_parse_marker(name, strlen(name));
	}
	return stop == STOP_MAX_ && frame->kind == FRAME_KIND_TRUNCATED ? STOP_NONE : stop;
}

static int read_location(struct otlp_reader *r, struct slice message)
{
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE };
	struct otlp_location to = { 0 };
	struct place place;
	Otlp__Location *m;
	bool unnamed = false;
	int err = reader_unpack(OTLP_BASE(r), "location", &otlp__location__descriptor, message, &m);

	if (!err)
		err = read_place(r, m, &place);
	if (!err)
		err = read_file(r, m, &place, &frame);
	if (!err)
		err = read_lines(r, m, &place);
	if (!err && (*place.path || profile_runtime_name(frame.kind)) && !m->mapping_index)
		err = is_label(r, &frame, &unnamed);
	if (err)
		return err;
	if (unnamed)
		r->lines.nr = 0;
	to.stop = (uint8_t)marker_of(r, &frame);
	if (to.stop != STOP_MAX_)
		frame.kind = FRAME_KIND_TRUNCATED;
	err = profile_add_named_frame(OTLP_BASE(r)->p, &frame, r->lines.items, r->lines.nr,
				      &to.frame);
	return err ? err : vec_push(&r->locations, to);
}

static int read_stack(struct otlp_reader *r, struct slice message)
{
	enum stop_reason stop = STOP_COMPLETE;
	Otlp__Stack *m;
	uint32_t id;
	int err = reader_unpack(OTLP_BASE(r), "stack", &otlp__stack__descriptor, message, &m);

	r->scratch.nr = 0;
	if (!err)
		err = vec_reserve(&r->scratch, m->n_location_indices + 1);
	for (size_t i = 0; !err && i < m->n_location_indices; i++) {
		uint32_t index = (uint32_t)m->location_indices[i];
		const struct otlp_location *l;

		if (index >= r->locations.nr)
			return reader_bad(OTLP_BASE(r), "it names location %d of %zu",
					  m->location_indices[i], r->locations.nr);
		l = &r->locations.items[index];
		if (i + 1 == m->n_location_indices && l->stop != STOP_MAX_)
			stop = l->stop;
		else
			r->scratch.items[r->scratch.nr++] = l->frame;
	}
	if (!err)
		err = profile_add_stack(OTLP_BASE(r)->p, r->scratch.items, r->scratch.nr, stop,
					&id);
	return err ? err : vec_push(&r->stacks, id);
}

/* --- all of them ------------------------------------------------------------------------------ */

static int read_table(struct otlp_reader *r, const struct slice *messages, size_t nr,
		      int (*read)(struct otlp_reader *r, struct slice message))
{
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		err = read(r, messages[i]);
		if (!err)
			err = reader_check_size(OTLP_BASE(r));
	}
	return err;
}

int otlp_read_tables(struct otlp_reader *r)
{
	int err;

	err = read_table(r, r->attribute_messages.items, r->attribute_messages.nr, read_attribute);
	if (!err)
		err = read_table(r, r->mapping_messages.items, r->mapping_messages.nr,
				 read_mapping);
	if (!err)
		err = read_table(r, r->function_messages.items, r->function_messages.nr,
				 read_function);
	if (!err)
		err = read_table(r, r->location_messages.items, r->location_messages.nr,
				 read_location);
	return err ? err : read_table(r, r->stack_messages.items, r->stack_messages.nr, read_stack);
}
