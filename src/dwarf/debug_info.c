// SPDX-License-Identifier: Apache-2.0
/*
 * The reading of a file's debug information, unit by unit: the unit (or the split one that it is
 * the skeleton of), its line table, its functions and inlined calls, handed over together. See
 * docs/debug-info.md.
 */
#include "dwarf/debug_info.h"

#include "dwarf/debug_info_internal.h"
#include "dwarf/dwarf_defs.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Work beyond one pass over the sections: tables of abbreviations that units share, lists of
 * ranges, entries that others refer to, names. Real files take up to 1.6 times their size of it.
 */
enum { BUDGET_PER_BYTE = 16, BUDGET_MIN = 1 << 20, UNIT_HEADER_COST = 64 };

static uint64_t sections_size(const struct dwarf_sections *s)
{
	return s->info.size + s->types.size + s->abbrev.size + s->ranges.size + s->rnglists.size +
	       s->line.size;
}

static void clear_unit(struct dwarf_reading *rd)
{
	dwarf_files_clear(rd);
	for (size_t i = 0; i < rd->names.nr; i++)
		free(rd->names.items[i]);
	rd->names.nr = rd->functions.nr = rd->scopes.nr = rd->ranges.v.nr = 0;
	/* A table that one large unit has grown would be cleared at length for each small one. */
	if (rd->function_of.cap > 1024 && rd->function_of.cap / 16 > rd->function_of.filled)
		map_fini(&rd->function_of);
	else
		map_clear(&rd->function_of);
}

static void reading_init(struct dwarf_reading *rd, const struct dwarf_source *source)
{
	*rd = (struct dwarf_reading){ .source = source };
	rd->ranges.relocatable = source->relocatable;
	rd->budget = BUDGET_MIN + BUDGET_PER_BYTE * sections_size(&source->main);
	dwarf_file_init(&rd->main, &source->main, &rd->budget);
	if (source->alt) {
		rd->budget += BUDGET_PER_BYTE * sections_size(source->alt);
		dwarf_file_init(&rd->alt, source->alt, &rd->budget);
		rd->main.alt = &rd->alt;
	}
}

static void reading_fini(struct dwarf_reading *rd)
{
	clear_unit(rd);
	dwarf_files_fini(rd);
	dwarf_file_fini(&rd->main);
	dwarf_file_fini(&rd->alt);
	dwarf_file_fini(&rd->split);
	map_fini(&rd->split_seen);
	map_fini(&rd->function_of);
	vec_free(&rd->functions);
	vec_free(&rd->scopes);
	vec_free(&rd->ranges.v);
	vec_free(&rd->names);
	vec_free(&rd->levels);
}

/*
 * Charges what a split unit costs, beside what its own size is worth: hostile skeletons may all
 * refer to one unit, one file of many units, or shares of a package that overlap.
 */
static int charge_split(struct dwarf_reading *rd, const struct dwarf_cu *cu, uint64_t id)
{
	uint64_t size = cu->end - cu->start, cost = UNIT_HEADER_COST * rd->split.cus.nr;
	const struct dwarf_sections *package = rd->split.package;
	bool seen = map_get(&rd->split_seen, id);

	if (package && package->info.data != rd->package) {
		rd->package = package->info.data;
		rd->budget += BUDGET_PER_BYTE * sections_size(package);
	}
	if (package || seen)
		cost += size;
	else
		rd->budget += BUDGET_PER_BYTE * size;
	if (!dwarf_spend(&rd->budget, cost))
		return -EBADMSG;
	return seen ? 0 : map_put(&rd->split_seen, id, 1);
}

static int open_split(struct dwarf_reading *rd, const struct dwarf_sections *sections,
		      const struct dwarf_cu *skeleton, struct dwarf_cu **ret)
{
	struct dwarf_file *split = &rd->split;
	int err;

	split->s = *sections;
	split->package = sections->cu_index.data ? sections : NULL;
	err = dwarf_file_find_split(split, skeleton->id, ret);
	if (!err)
		err = charge_split(rd, *ret, skeleton->id);
	if (err)
		return err;
	/* These are never split: the linker has to write them. */
	split->s.addr = rd->main.s.addr;
	split->s.ranges = rd->main.s.ranges;
	return dwarf_cu_open(*ret, skeleton);
}

/*
 * The split unit of a skeleton, or the skeleton itself if there is none or it can't be had. 0 or
 * -ENOMEM.
 */
static int find_split(struct dwarf_reading *rd, struct dwarf_cu *skeleton, struct dwarf_cu **ret)
{
	const struct dwarf_split_ref ref = { .id = skeleton->id,
					     .name = skeleton->dwo_name,
					     .directory = skeleton->comp_dir };
	const struct dwarf_sections *sections;
	struct dwarf_cu *cu;
	int err = -ENOENT;

	dwarf_file_fini(&rd->split);
	dwarf_file_init(&rd->split, &(struct dwarf_sections){ 0 }, &rd->budget);
	if (rd->source->split)
		err = rd->source->split(rd->source->ctx, &ref, &sections);
	if (!err)
		err = open_split(rd, sections, skeleton, &cu);
	if (err == -ENOMEM)
		return err;
	if (err)
		rd->counts.missing_split++;
	*ret = err ? skeleton : cu;
	return 0;
}

static int hand_over(struct dwarf_reading *rd, const struct dwarf_cu *cu,
		     int (*each)(void *ctx, const struct dwarf_unit *unit), void *ctx)
{
	static const struct line_table no_lines;
	const struct dwarf_unit unit = { .language = cu->language,
					 .producer = cu->producer,
					 .functions = rd->functions.items,
					 .nr_functions = rd->functions.nr,
					 .scopes = rd->scopes.items,
					 .nr_scopes = rd->scopes.nr,
					 .ranges = rd->ranges.v.items,
					 .nr_ranges = rd->ranges.v.nr,
					 .lines = rd->has_lines ? &rd->lines : &no_lines };
	int r;

	if (!unit.nr_scopes && !unit.lines->nr_rows)
		return 0;
	r = each(ctx, &unit);
	return r < 0 ? r : 0;
}

static int read_unit(struct dwarf_reading *rd, struct dwarf_cu *cu,
		     int (*each)(void *ctx, const struct dwarf_unit *unit), void *ctx)
{
	int err;

	clear_unit(rd);
	rd->counts.units++;
	err = dwarf_cu_open(cu, NULL);
	if (!err && (*cu->dwo_name || cu->type == DW_UT_skeleton))
		err = find_split(rd, cu, &cu);
	if (!err)
		err = dwarf_load_lines(rd, cu);
	if (!err)
		err = dwarf_walk_unit(rd, cu);
	if (err == -EBADMSG || (!err && cu->truncated))
		rd->counts.bad_units++;
	if (err && err != -EBADMSG)
		return err;
	/* What stood before it broke off is as good as any. */
	return cu->opened ? hand_over(rd, cu, each, ctx) : 0;
}

int dwarf_read_units(const struct dwarf_source *source,
		     int (*each)(void *ctx, const struct dwarf_unit *unit), void *ctx,
		     struct dwarf_counts *ret_counts)
{
	struct dwarf_reading rd;
	int err;

	reading_init(&rd, source);
	err = dwarf_file_scan(&rd.main);
	for (size_t i = 0; i < rd.main.nr_info && !err; i++) {
		struct dwarf_cu *cu = &rd.main.cus.items[i];

		if (cu->type == DW_UT_type || cu->type == DW_UT_split_type)
			continue;
		err = read_unit(&rd, cu, each, ctx);
		dwarf_file_trim(&rd.main);
		dwarf_file_trim(&rd.alt);
	}
	rd.counts.bad_units += rd.main.nr_bad + rd.alt.nr_bad;
	rd.counts.dropped += rd.ranges.dropped;
	reading_fini(&rd);
	if (!err && ret_counts)
		*ret_counts = rd.counts;
	return err;
}
