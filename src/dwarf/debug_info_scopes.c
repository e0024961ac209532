// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over a unit's entries: functions and what is inlined in them. Blocks, namespaces and
 * types are walked through, since code may be in any of them; entries that never have code in them
 * are passed over by DW_AT_sibling, where the compiler wrote it.
 */
#include "dwarf/debug_info_internal.h"

#include "dwarf/dwarf_defs.h"

#include <errno.h>

/* Passes over the children, too, of an entry whose code has been read. */
static bool skip_entry(const struct dwarf_cu *cu, struct cfi_reader *r,
		       const struct dwarf_abbrev *abbrev)
{
	struct dwarf_entry entry;
	struct dwarf_ref next;

	if (!abbrev->children)
		return dwarf_entry_skip(cu, r, abbrev);
	if (!abbrev->sibling)
		return dwarf_entry_skip(cu, r, abbrev) && dwarf_entry_skip_children(cu, r);
	if (!dwarf_entry_attrs(cu, r, abbrev, &entry))
		return false;
	/* Only forwards: so the walk ends whatever stands there. */
	if (dwarf_value_ref((struct dwarf_cu *)cu, &entry.v[SLOT_SIBLING], &next) == 0 &&
	    next.cu == cu && next.entry > r->pos) {
		r->pos = next.entry;
		return true;
	}
	return dwarf_entry_skip_children(cu, r);
}

static uint32_t number32(const struct dwarf_value *v)
{
	uint64_t n = dwarf_value_number(v, 0);

	return n <= UINT32_MAX ? n : 0;
}

static int push_scope(struct dwarf_reading *rd, const struct dwarf_cu *cu,
		      const struct dwarf_entry *entry, const struct dwarf_scope *scope)
{
	struct dwarf_scope s = *scope;

	s.call_file = DWARF_NONE;
	if (s.parent != DWARF_NONE) {
		int err = dwarf_unit_file(rd, cu, &entry->v[SLOT_CALL_FILE], &s.call_file);

		if (err)
			return err;
		s.call_line = number32(&entry->v[SLOT_CALL_LINE]);
		s.call_column = number32(&entry->v[SLOT_CALL_COLUMN]);
	}
	return vec_push(&rd->scopes, s);
}

/*
 * The scope of an entry with code. `level` becomes its children's: what was dropped leaves its
 * children to the scope around it.
 */
static int add_scope(struct dwarf_reading *rd, struct dwarf_cu *cu, const struct dwarf_entry *entry,
		     struct dwarf_level *level)
{
	bool inlined = entry->abbrev->action == ACTION_INLINED;
	bool top = rd->levels.nr == 1 && !inlined;
	struct dwarf_scope scope = { .parent = inlined ? level->scope : DWARF_NONE,
				     .first_range = rd->ranges.v.nr };
	int r;

	/* In a function that was discarded, or dropped. */
	if (inlined && level->scope == DWARF_NONE)
		return 0;
	if (!inlined)
		*level = (struct dwarf_level){ .scope = DWARF_NONE };
	r = dwarf_ranges_of(cu, entry, &rd->ranges);
	if (r == -ENOMEM || r == 0)
		return r;
	if (r > 0 && inlined && level->depth >= DWARF_INLINE_DEPTH_MAX)
		r = -EBADMSG;
	scope.nr_ranges = r > 0 ? r : 0;
	if (r > 0)
		r = dwarf_find_function(rd, cu, entry, top, &scope.function);
	if (r == 0 && rd->scopes.nr >= DWARF_NONE)
		r = -EBADMSG;
	if (r == 0)
		r = push_scope(rd, cu, entry, &scope);
	if (r == 0) {
		level->scope = rd->scopes.nr - 1;
		level->depth += inlined;
		return 0;
	}
	rd->ranges.v.nr = scope.first_range;
	if (r != -EBADMSG)
		return r;
	rd->counts.dropped++;
	return 0;
}

int dwarf_walk_unit(struct dwarf_reading *rd, struct dwarf_cu *cu)
{
	struct cfi_reader r = { .pos = cu->first, .end = cu->end };
	struct dwarf_entry entry;
	int err;

	rd->levels.nr = 0;
	err = cu->first ? vec_push(&rd->levels, (struct dwarf_level){ .scope = DWARF_NONE }) : 0;
	while (!err && rd->levels.nr) {
		struct dwarf_level level = rd->levels.items[rd->levels.nr - 1];
		const struct dwarf_abbrev *abbrev;
		uint64_t code;

		entry.start = r.pos;
		code = cfi_uleb(&r);
		if (r.failed)
			return -EBADMSG;
		if (!code) {
			rd->levels.nr--;
			continue;
		}
		abbrev = dwarf_abbrevs_find(cu->abbrevs, code);
		if (!abbrev || !abbrev->usable)
			return -EBADMSG;
		if (abbrev->action == ACTION_SKIP) {
			if (!skip_entry(cu, &r, abbrev))
				return -EBADMSG;
			continue;
		}
		if (abbrev->action == ACTION_DESCEND) {
			if (!dwarf_entry_skip(cu, &r, abbrev))
				return -EBADMSG;
		} else {
			if (!dwarf_entry_attrs(cu, &r, abbrev, &entry))
				return -EBADMSG;
			err = add_scope(rd, cu, &entry, &level);
		}
		if (!err && abbrev->children)
			err = rd->levels.nr < LEVELS_MAX ? vec_push(&rd->levels, level) : -EBADMSG;
	}
	return err;
}
