// SPDX-License-Identifier: Apache-2.0
/*
 * What a function is called. Its names and its declaration's line stand in the entry itself or in
 * those that it completes (abstract origin, specification); once a function, not once an inlined
 * call. Only where there is no linkage name are the namespaces and classes around it looked for:
 * entries don't say what they are in, so that takes a pass over the unit.
 */
#include "dwarf/debug_info_internal.h"

#include "dwarf/dwarf_defs.h"
#include "util/sorted.h"

#include <errno.h>
#include <stdlib.h>

/* What stands between the parts of a name; NULL: functions are in no namespaces. */
static const char *separator_of(uint16_t language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_C_plus_plus_17:
	case DW_LANG_C_plus_plus_20:
	case DW_LANG_C_plus_plus_23:
	case DW_LANG_CPP_for_OpenCL:
	case DW_LANG_HIP:
	case DW_LANG_ObjC_plus_plus:
	case DW_LANG_Rust:
		return "::";
	case DW_LANG_C_sharp:
	case DW_LANG_D:
	case DW_LANG_Java:
	case DW_LANG_Kotlin:
	case DW_LANG_Mojo:
	case DW_LANG_Swift:
		return ".";
	}
	return NULL;
}

static const char *anonymous_name(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
		return "(anonymous namespace)";
	case DW_TAG_structure_type:
		return "(anonymous struct)";
	case DW_TAG_union_type:
		return "(anonymous union)";
	case DW_TAG_enumeration_type:
		return "(anonymous enum)";
	case DW_TAG_class_type:
		return "(anonymous class)";
	}
	return "(anonymous)";
}

/* A pass over the unit: which entries stand in which. */
struct container_walk {
	struct cfi_reader r;
	VEC(uint32_t) levels; /* the innermost container at each */
};

static int container_entry(struct dwarf_cu *cu, struct container_walk *w)
{
	const uint8_t *start = w->r.pos;
	uint32_t around = w->levels.items[w->levels.nr - 1];
	uint64_t code = cfi_uleb(&w->r);
	const struct dwarf_abbrev *abbrev;
	int err;

	if (w->r.failed)
		return -EBADMSG;
	if (!code) {
		w->levels.nr--;
		/* The container that ends here; others have the level around theirs. */
		if (around != DWARF_NONE &&
		    (!w->levels.nr || w->levels.items[w->levels.nr - 1] != around))
			cu->containers.items[around].end = w->r.pos;
		return 0;
	}
	abbrev = dwarf_abbrevs_find(cu->abbrevs, code);
	if (!abbrev || !dwarf_entry_skip(cu, &w->r, abbrev))
		return -EBADMSG;
	if (!abbrev->children)
		return 0;
	if (abbrev->container) {
		err = vec_push(&cu->containers, (struct dwarf_container){ start, cu->end, around });
		if (err)
			return err;
		around = cu->containers.nr - 1;
	}
	return w->levels.nr < LEVELS_MAX ? vec_push(&w->levels, around) : -EBADMSG;
}

static int find_containers(struct dwarf_cu *cu)
{
	struct container_walk w = { .r = { .pos = cu->first, .end = cu->end } };
	int err;

	if (cu->contained || !cu->first)
		return 0;
	cu->contained = true;
	/* Once a unit, but again whenever what was kept had become too much. */
	dwarf_spend(cu->file->budget, cu->end - cu->first);
	err = vec_push(&w.levels, DWARF_NONE);
	while (!err && w.levels.nr)
		err = container_entry(cu, &w);
	vec_free(&w.levels);
	cu->file->cached += cu->containers.cap * sizeof(*cu->containers.items);
	return err == -ENOMEM ? err : 0;
}

/* The innermost container around `entry`, which may be one itself. NULL: none. */
static const struct dwarf_container *container_around(const struct dwarf_cu *cu,
						      const uint8_t *entry)
{
	const struct dwarf_container *items = cu->containers.items;
	size_t low = sorted_before(cu->containers.nr, i, items[i].start < entry);
	uint32_t at = low ? low - 1 : DWARF_NONE;

	while (at != DWARF_NONE && items[at].end <= entry)
		at = items[at].parent;
	return at == DWARF_NONE ? NULL : &items[at];
}

static bool read_at(const struct dwarf_ref *at, struct dwarf_entry *ret)
{
	struct cfi_reader r = { .pos = at->entry, .end = at->cu->end };

	if (dwarf_entry_read(at->cu, &r, ret) != 1)
		return false;
	return dwarf_spend(at->cu->file->budget, r.pos - at->entry);
}

/*
 * From an entry to the one that it completes: *at and *ret become that one's (`entry` may be ret).
 * 1; 0: it completes none; -EBADMSG, -ENOMEM.
 */
static int follow(struct dwarf_ref *at, const struct dwarf_entry *entry, struct dwarf_entry *ret)
{
	const struct dwarf_value *v = &entry->v[SLOT_ORIGIN];
	struct dwarf_ref next;
	int err;

	if (!v->form)
		v = &entry->v[SLOT_SPECIFICATION];
	if (!v->form)
		return 0;
	err = dwarf_value_ref(at->cu, v, &next);
	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	if (!read_at(&next, ret))
		return -EBADMSG;
	*at = next;
	return 1;
}

/* The name of a container; *at becomes the entry that it was first declared by. */
static const char *container_name(struct dwarf_ref *at, struct dwarf_entry *entry)
{
	uint16_t tag = entry->abbrev->tag;
	const char *name = NULL;

	for (int i = 0; i < REF_HOPS_MAX; i++) {
		if (!name)
			name = dwarf_value_string(at->cu, &entry->v[SLOT_NAME]);
		if (!name && entry->v[SLOT_SIGNATURE].form == DW_FORM_ref_sig8)
			name = dwarf_signature_name(at->cu->file, entry->v[SLOT_SIGNATURE].u);
		if (follow(at, entry, entry) <= 0)
			break;
	}
	return name && *name ? name : anonymous_name(tag);
}

/* A name that is written from its end to its beginning. */
struct backwards {
	char text[DWARF_NAME_MAX];
	size_t at;
};

/* false: no room any more. */
static bool prepend(struct backwards *b, const char *s)
{
	size_t len = strlen(s);
	bool fits = len <= b->at;

	if (!fits)
		s += len - b->at;
	len = fits ? len : b->at;
	b->at -= len;
	memcpy(b->text + b->at, s, len);
	return fits;
}

/* `name` of the entry `at`, with what is around it. */
static int qualify(struct dwarf_reading *rd, struct dwarf_ref at, const char *separator,
		   const char **name)
{
	struct backwards b = { .at = sizeof(b.text) - 1 };
	struct dwarf_entry entry;
	char *copy;
	bool any = false;
	int err;

	b.text[b.at] = 0;
	if (!prepend(&b, *name))
		return 0;
	for (int i = 0; i < CONTAINERS_MAX; i++) {
		const struct dwarf_container *c;

		err = find_containers(at.cu);
		if (err)
			return err;
		c = container_around(at.cu, at.entry);
		if (!c)
			break;
		at.entry = c->start;
		if (!read_at(&at, &entry))
			break;
		/* Modules of Clang are headers, no part of a name. */
		if (entry.abbrev->tag == DW_TAG_module && *separator == ':')
			continue;
		any = true;
		if (!prepend(&b, separator) || !prepend(&b, container_name(&at, &entry)))
			break;
	}
	if (!any || !dwarf_spend(&rd->budget, 4 * (sizeof(b.text) - b.at)))
		return 0;
	copy = malloc(sizeof(b.text) - b.at);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, b.text + b.at, sizeof(b.text) - b.at);
	err = vec_push(&rd->names, copy);
	if (err) {
		free(copy);
		return err;
	}
	*name = copy;
	return 0;
}

static bool is_named(const struct dwarf_entry *entry)
{
	return entry->v[SLOT_LINKAGE_NAME].form || entry->v[SLOT_NAME].form;
}

/* Takes from an entry what the ones before it left open. */
static int take_attributes(struct dwarf_reading *rd, const struct dwarf_cu *cu,
			   const struct dwarf_entry *entry, struct dwarf_function *f)
{
	if (!f->linkage_name || !*f->linkage_name)
		f->linkage_name = dwarf_value_string(cu, &entry->v[SLOT_LINKAGE_NAME]);
	if (!f->name)
		f->name = dwarf_value_string(cu, &entry->v[SLOT_NAME]);
	if (!f->line) {
		uint64_t line = dwarf_value_number(&entry->v[SLOT_DECL_LINE], 0);

		f->line = line <= UINT32_MAX ? line : 0;
	}
	if (f->file == DWARF_NONE)
		return dwarf_unit_file(rd, cu, &entry->v[SLOT_DECL_FILE], &f->file);
	return 0;
}

static int add_function(struct dwarf_reading *rd, struct dwarf_ref at,
			const struct dwarf_entry *entry, bool top, uint32_t *ret)
{
	struct dwarf_function f = { .file = DWARF_NONE };
	const uint8_t *key = at.entry;
	const char *separator;
	struct dwarf_entry next;
	int r;

	for (int i = 0; i < REF_HOPS_MAX; i++) {
		r = take_attributes(rd, at.cu, entry, &f);
		if (r)
			return r;
		if (f.linkage_name && f.name && f.line && f.file != DWARF_NONE)
			break;
		r = follow(&at, entry, &next);
		if (r == -ENOMEM)
			return r;
		if (r <= 0)
			break;
		entry = &next;
		top = false;
	}
	if (f.linkage_name && !*f.linkage_name)
		f.linkage_name = NULL;
	if (!f.name)
		f.name = "";
	if (!dwarf_spend(&rd->budget,
			 strlen(f.name) + (f.linkage_name ? strlen(f.linkage_name) : 0)))
		return -EBADMSG;
	separator = separator_of(at.cu->language);
	if (!f.linkage_name && *f.name && !top && separator) {
		r = qualify(rd, at, separator, &f.name);
		if (r)
			return r;
	}
	if (rd->functions.nr >= DWARF_NONE)
		return -EBADMSG;
	r = vec_push(&rd->functions, f);
	if (r)
		return r;
	*ret = rd->functions.nr - 1;
	return map_put(&rd->function_of, (uintptr_t)key, *ret);
}

int dwarf_find_function(struct dwarf_reading *rd, struct dwarf_cu *cu,
			const struct dwarf_entry *entry, bool top, uint32_t *ret)
{
	struct dwarf_ref at = { .cu = cu, .entry = entry->start };
	struct dwarf_entry e;
	const uint8_t *direct = NULL;
	int r = -EBADMSG;

	for (int i = 0; i < REF_HOPS_MAX; i++) {
		uint64_t *known;

		/* A copy under a name of its own (a constructor's variants) is another function. */
		if (is_named(entry) || !entry->v[SLOT_ORIGIN].form) {
			r = add_function(rd, at, entry, top && !direct, ret);
			break;
		}
		r = dwarf_value_ref(at.cu, &entry->v[SLOT_ORIGIN], &at);
		if (r)
			return r == -ENOMEM ? r : -EBADMSG;
		if (!direct)
			direct = at.entry;
		known = map_get(&rd->function_of, (uintptr_t)at.entry);
		if (known) {
			*ret = *known;
			break;
		}
		r = -EBADMSG;
		if (!read_at(&at, &e))
			break;
		entry = &e;
	}
	if (r == 0 && direct && direct != at.entry)
		r = map_put(&rd->function_of, (uintptr_t)direct, *ret);
	return r;
}
