// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of units (DWARF 5 section 7.5.1; 4: 7.5.1 too), the unit's own entry, and how entries of
 * other units are found: by offset, by signature, in the dwz supplementary file, in a .dwo or .dwp.
 */
#include "dwarf/dwarf_unit.h"

#include "dwarf/dwarf_defs.h"
#include "util/sorted.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* Of tables and containers that are kept for units to come. */
	CACHED_MAX = 32 << 20,
	/* In bytes of sections. */
	PACKAGE_LOOKUP_COST = 256,
};

void dwarf_file_init(struct dwarf_file *file, const struct dwarf_sections *sections,
		     uint64_t *budget)
{
	*file = (struct dwarf_file){ .s = *sections, .budget = budget };
}

static void drop_cached(struct dwarf_file *file)
{
	struct map_slot *slot;

	for (size_t i = 0; (slot = map_next(&file->abbrevs_by_offset, &i));) {
		struct dwarf_abbrevs *t = (struct dwarf_abbrevs *)(uintptr_t)slot->value;

		dwarf_abbrevs_fini(t);
		free(t);
	}
	map_fini(&file->abbrevs_by_offset);
	for (size_t i = 0; i < file->cus.nr; i++) {
		vec_free(&file->cus.items[i].containers);
		file->cus.items[i].contained = false;
	}
	file->cached = 0;
	file->generation++;
}

void dwarf_file_fini(struct dwarf_file *file)
{
	drop_cached(file);
	vec_free(&file->cus);
	vec_free(&file->signatures);
}

void dwarf_file_trim(struct dwarf_file *file)
{
	if (file->cached > CACHED_MAX)
		drop_cached(file);
}

static bool parse_ids(struct cfi_reader *r, bool is_types, struct dwarf_cu *cu)
{
	switch (cu->type) {
	case DW_UT_skeleton:
	case DW_UT_split_compile:
		cu->id = cfi_u64(r);
		return true;
	case DW_UT_type:
	case DW_UT_split_type:
		cu->id = cfi_u64(r);
		cu->type_offset = cfi_fixed(r, cu->encoding.offset_size);
		return true;
	}
	return !is_types && (cu->type == DW_UT_compile || cu->type == DW_UT_partial);
}

/* What is behind the unit's length. */
static bool parse_header(struct cfi_reader *r, bool is_types, struct dwarf_cu *cu)
{
	struct dwarf_encoding *e = &cu->encoding;
	uint64_t version = cfi_u16(r);

	if (version < 2 || version > 5)
		return false;
	e->version = version;
	if (version == 5) {
		cu->type = cfi_u8(r);
		e->address_size = cfi_u8(r);
		cu->abbrev_offset = cfi_fixed(r, e->offset_size);
	} else {
		cu->type = is_types ? DW_UT_type : DW_UT_compile;
		cu->abbrev_offset = cfi_fixed(r, e->offset_size);
		e->address_size = cfi_u8(r);
	}
	if (e->address_size != 4 && e->address_size != 8)
		return false;
	if (!parse_ids(r, is_types, cu) || r->failed)
		return false;
	cu->entries = r->pos;
	return true;
}

static int scan_section(struct dwarf_file *file, const struct dwarf_span *span, bool is_types)
{
	struct cfi_reader r = dwarf_reader_at(span, 0);

	while (!r.failed && cfi_left(&r)) {
		struct dwarf_cu cu = { .file = file, .start = r.pos, .is_dwo = file->is_dwo };
		uint64_t length = cfi_length(&r, &cu.encoding.offset_size);
		struct cfi_reader header;
		int err;

		if (r.failed) {
			file->nr_bad++;
			break;
		}
		cu.truncated = length > cfi_left(&r);
		if (cu.truncated)
			length = cfi_left(&r);
		header = (struct cfi_reader){ .pos = r.pos, .end = r.pos + length };
		cu.end = header.end;
		r.pos = header.end;
		/* Zeros are what linkers pad with. */
		if (!length && !cu.truncated)
			continue;
		if (!parse_header(&header, is_types, &cu)) {
			file->nr_bad++;
			continue;
		}
		err = vec_push(&file->cus, cu);
		if (err)
			return err;
	}
	return 0;
}

int dwarf_file_scan(struct dwarf_file *file)
{
	int err;

	if (file->scanned)
		return 0;
	file->scanned = true;
	err = scan_section(file, &file->s.info, false);
	if (err)
		return err;
	file->nr_info = file->cus.nr;
	return scan_section(file, &file->s.types, true);
}

static int find_abbrevs(struct dwarf_cu *cu)
{
	struct dwarf_file *file = cu->file;
	const struct dwarf_encoding *e = &cu->encoding;
	/* Two units may share a table and differ in the sizes of forms. */
	uint64_t key = cu->abbrev_offset << 3 | (e->version <= 2) << 2 |
		       (e->address_size == 8) << 1 | (e->offset_size == 8);
	uint64_t *known = map_get(&file->abbrevs_by_offset, key);
	struct dwarf_abbrevs *t;
	int err;

	if (known) {
		cu->abbrevs = (struct dwarf_abbrevs *)(uintptr_t)*known;
		return 0;
	}
	if (!*file->budget)
		return -EBADMSG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	err = dwarf_abbrevs_read(file->s.abbrev.data, file->s.abbrev.size, cu->abbrev_offset, e, t);
	if (!err)
		err = map_put(&file->abbrevs_by_offset, key, (uintptr_t)t);
	if (err) {
		dwarf_abbrevs_fini(t);
		free(t);
		return err == -EINVAL ? -EBADMSG : err;
	}
	dwarf_spend(file->budget, t->read);
	file->cached += sizeof(*t) + t->abbrevs.cap * sizeof(*t->abbrevs.items) +
			t->attrs.cap * sizeof(*t->attrs.items);
	cu->abbrevs = t;
	return 0;
}

static const char *string_or_empty(const struct dwarf_cu *cu, const struct dwarf_value *v)
{
	const char *s = dwarf_value_string(cu, v);

	return s ? s : "";
}

/*
 * Where the unit's parts of indexed sections begin. Without an attribute that is behind the
 * section's header (DWARF 5 sections 7.26 to 7.28); GNU's split DWARF 4 has no headers.
 */
static void set_bases(struct dwarf_cu *cu, const struct dwarf_entry *root,
		      const struct dwarf_cu *skeleton)
{
	bool wide = cu->encoding.offset_size == 8;
	bool v5 = cu->encoding.version == 5;

	cu->str_offsets_base =
		dwarf_value_number(&root->v[SLOT_STR_OFFSETS_BASE], v5 ? wide ? 16 : 8 : 0);
	cu->addr_base = dwarf_value_number(&root->v[SLOT_ADDR_BASE], skeleton ? skeleton->addr_base
								     : v5     ? wide ? 16 : 8
									      : 0);
	cu->rnglists_base =
		dwarf_value_number(&root->v[SLOT_RNGLISTS_BASE], v5 ? wide ? 20 : 12 : 0);
	/* A skeleton's own ranges are not relative to it: it is there for the split unit's. */
	cu->ranges_base = dwarf_value_number(&root->v[SLOT_RANGES_BASE],
					     skeleton ? skeleton->ranges_base : 0);
}

static void set_attributes(struct dwarf_cu *cu, const struct dwarf_entry *root,
			   const struct dwarf_cu *skeleton)
{
	cu->has_low_pc = dwarf_value_address(cu, &root->v[SLOT_LOW_PC], &cu->low_pc);
	cu->stmt_list = dwarf_value_number(&root->v[SLOT_STMT_LIST], UINT64_MAX);
	cu->has_stmt_list = cu->stmt_list != UINT64_MAX;
	cu->language = dwarf_value_number(&root->v[SLOT_LANGUAGE], 0);
	cu->comp_dir = string_or_empty(cu, &root->v[SLOT_COMP_DIR]);
	cu->name = string_or_empty(cu, &root->v[SLOT_NAME]);
	cu->producer = string_or_empty(cu, &root->v[SLOT_PRODUCER]);
	cu->dwo_name = string_or_empty(cu, &root->v[SLOT_DWO_NAME]);
	/* DWARF 5 has it in the unit's header. */
	if (cu->encoding.version < 5 && root->v[SLOT_DWO_ID].form)
		cu->id = dwarf_value_number(&root->v[SLOT_DWO_ID], 0);
	if (!skeleton)
		return;
	if (!cu->has_low_pc) {
		cu->has_low_pc = skeleton->has_low_pc;
		cu->low_pc = skeleton->low_pc;
	}
	cu->has_stmt_list = skeleton->has_stmt_list;
	cu->stmt_list = skeleton->stmt_list;
	if (!*cu->comp_dir)
		cu->comp_dir = skeleton->comp_dir;
}

static int read_root(struct dwarf_cu *cu, const struct dwarf_cu *skeleton)
{
	struct cfi_reader r = { .pos = cu->entries, .end = cu->end };
	struct dwarf_entry root;

	memset(&root, 0, sizeof(root));
	if (dwarf_entry_read(cu, &r, &root) != 1)
		return -EBADMSG;
	if (root.abbrev->tag == DW_TAG_partial_unit)
		cu->type = DW_UT_partial;
	cu->first = root.abbrev->children ? r.pos : NULL;
	set_bases(cu, &root, skeleton);
	set_attributes(cu, &root, skeleton);
	return 0;
}

int dwarf_cu_open(struct dwarf_cu *cu, const struct dwarf_cu *skeleton)
{
	int err;

	if (cu->bad)
		return -EBADMSG;
	if (cu->opened && cu->generation == cu->file->generation)
		return 0;
	err = find_abbrevs(cu);
	if (err == -ENOMEM)
		return err;
	cu->generation = cu->file->generation;
	if (!err && !cu->opened)
		err = read_root(cu, skeleton);
	cu->bad = err;
	cu->opened = !err;
	return err;
}

int dwarf_file_find_split(struct dwarf_file *file, uint64_t id, struct dwarf_cu **ret)
{
	int err;

	file->is_dwo = true;
	if (file->s.cu_index.data) {
		const struct dwarf_sections *package = file->package;

		err = dwarf_package_find(package, &package->cu_index, id, &file->s);
		if (err)
			return err;
	}
	err = dwarf_file_scan(file);
	if (err)
		return err;
	for (size_t i = 0; i < file->nr_info; i++) {
		struct dwarf_cu *cu = &file->cus.items[i];

		if (cu->encoding.version < 5) {
			err = dwarf_cu_open(cu, NULL);
			if (err == -ENOMEM)
				return err;
			/* To be opened again with what its skeleton knows. */
			cu->opened = false;
		} else if (cu->type != DW_UT_split_compile) {
			continue;
		}
		if (!cu->bad && cu->id == id) {
			*ret = cu;
			return 0;
		}
	}
	return -ENOENT;
}

/* The unit of .debug_info that has the byte at `offset`. */
static struct dwarf_cu *cu_at(struct dwarf_file *file, uint64_t offset)
{
	size_t low;
	const uint8_t *p;

	if (offset >= file->s.info.size)
		return NULL;
	p = file->s.info.data + offset;
	low = sorted_before(file->nr_info, i, file->cus.items[i].start <= p);
	return low && p < file->cus.items[low - 1].end ? &file->cus.items[low - 1] : NULL;
}

static int ref_by_offset(struct dwarf_file *file, uint64_t offset, struct dwarf_ref *ret)
{
	struct dwarf_cu *cu;
	int err;

	if (!file)
		return -ENOENT;
	err = dwarf_file_scan(file);
	if (err)
		return err;
	cu = cu_at(file, offset);
	if (!cu)
		return -EBADMSG;
	err = dwarf_cu_open(cu, NULL);
	if (err)
		return err;
	if (file->s.info.data + offset < cu->entries)
		return -EBADMSG;
	*ret = (struct dwarf_ref){ cu, file->s.info.data + offset };
	return 0;
}

int dwarf_value_ref(struct dwarf_cu *cu, const struct dwarf_value *v, struct dwarf_ref *ret)
{
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (v->u < (uint64_t)(cu->entries - cu->start) ||
		    v->u >= (uint64_t)(cu->end - cu->start))
			return -EBADMSG;
		*ret = (struct dwarf_ref){ cu, cu->start + v->u };
		return 0;
	case DW_FORM_ref_addr:
		return ref_by_offset(cu->file, v->u, ret);
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case FORM_GNU_REF_ALT:
		return ref_by_offset(cu->file->alt, v->u, ret);
	}
	return -ENOENT;
}

static int by_signature(const void *a, const void *b)
{
	uint64_t x = ((const struct dwarf_signature *)a)->signature;
	uint64_t y = ((const struct dwarf_signature *)b)->signature;

	return x < y ? -1 : x > y;
}

static bool sort_signatures(struct dwarf_file *file)
{
	if (file->signatures_sorted)
		return true;
	if (dwarf_file_scan(file))
		return false;
	for (size_t i = 0; i < file->cus.nr; i++) {
		const struct dwarf_cu *cu = &file->cus.items[i];

		if (cu->type != DW_UT_type && cu->type != DW_UT_split_type)
			continue;
		if (vec_push(&file->signatures, (struct dwarf_signature){ cu->id, i }))
			return false;
	}
	if (file->signatures.nr)
		qsort(file->signatures.items, file->signatures.nr, sizeof(*file->signatures.items),
		      by_signature);
	file->signatures_sorted = true;
	return true;
}

/* The name of a type unit's type. */
static const char *type_name(struct dwarf_cu *cu)
{
	struct dwarf_entry entry;
	struct cfi_reader r;

	if (dwarf_cu_open(cu, NULL) || cu->type_offset < (uint64_t)(cu->entries - cu->start) ||
	    cu->type_offset >= (uint64_t)(cu->end - cu->start))
		return NULL;
	r = (struct cfi_reader){ .pos = cu->start + cu->type_offset, .end = cu->end };
	if (dwarf_entry_read(cu, &r, &entry) != 1)
		return NULL;
	return dwarf_value_string(cu, &entry.v[SLOT_NAME]);
}

/* A .dwp has each type unit's share of the sections listed. */
static const char *packaged_name(struct dwarf_file *file, uint64_t signature)
{
	struct dwarf_sections sections;
	struct dwarf_file view;
	const char *name = NULL;

	if (!dwarf_spend(file->budget, PACKAGE_LOOKUP_COST) ||
	    dwarf_package_find(file->package, &file->package->tu_index, signature, &sections) ||
	    !dwarf_spend(file->budget, sections.info.size + sections.types.size))
		return NULL;
	dwarf_file_init(&view, &sections, file->budget);
	view.is_dwo = true;
	if (dwarf_file_scan(&view) == 0)
		for (size_t i = 0; i < view.cus.nr && !name; i++)
			if (view.cus.items[i].id == signature)
				name = type_name(&view.cus.items[i]);
	dwarf_file_fini(&view);
	return name;
}

const char *dwarf_signature_name(struct dwarf_file *file, uint64_t signature)
{
	const struct dwarf_signature key = { .signature = signature };
	const struct dwarf_signature *found = NULL;

	if (!sort_signatures(file))
		return NULL;
	if (file->signatures.nr)
		found = bsearch(&key, file->signatures.items, file->signatures.nr, sizeof(key),
				by_signature);
	if (found)
		return type_name(&file->cus.items[found->cu]);
	return file->package ? packaged_name(file, signature) : NULL;
}
