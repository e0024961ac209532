// SPDX-License-Identifier: Apache-2.0
/*
 * From ELF file to unwind table: one sweep over the executable code, in the order of addresses.
 * Each range is covered by the first that knows it: .eh_frame, .debug_frame, the code itself.
 *
 * Read first: docs/unwind-tables.md.
 */
#include "unwind/unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/sample.h"
#include "dwarf/cfi.h"
#include "elf/elf_symbols.h"
#include "elf/go_table.h"
#include "unwind/cfi_source.h"
#include "unwind/code_gap.h"
#include "unwind/epilogues.h"
#include "unwind/new_threads.h"
#include "unwind/stack_bottom.h"
#include "unwind/table_writer.h"
#include "util/cleanup.h"

enum {
	SOURCES_MAX = 2,
	RANGES_MAX = 64, /* executable segments; linkers make one or two */
	BYTES_A_ROW = 8, /* of CFI, about: the first guess at the number of rows */
	/* What takes as long as a byte of CFI: so many bytes of code that are searched, of symbols.
	 */
	CODE_SHIFT = 5,
	SYMBOLS_SHIFT = 4,
	GO_DATA_ALIGN = -4,
};

struct build {
	const struct elf_file *elf;
	struct cfi_arch arch;
	struct code_range ranges[RANGES_MAX];
	size_t nr_ranges;
	struct cfi_source sources[SOURCES_MAX];
	size_t nr_sources;
	struct table_writer writer;
	struct code_gaps gaps;
	struct cfi_rows rows;
	uint64_t bottom; /* stack_bottom_find(); UINT64_MAX: there is none */
	bool no_epilogues;
	uint32_t nr_bad_fdes;
	uint32_t nr_unsupported_expressions;
	uint32_t nr_interpreted;
};

static const union cfi_rule rule_none = { .rule = { .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE } };
static const union cfi_rule rule_end = { .rule = { .cfa = CFA_END } };
static const union cfi_rule rule_bad = { .rule = { .cfa = CFA_STOP, .cfa_off = STOP_BAD_CFI } };

static void build_free(struct build *b)
{
	for (size_t i = 0; i < b->nr_sources; i++)
		cfi_source_fini(&b->sources[i]);
	code_gaps_fini(&b->gaps);
	table_writer_fini(&b->writer);
	free(b);
}
DEFINE_CLEANUP(struct build *, build_free)

/* --- CFI ------------------------------------------------------------------------------------- */

/* Not all signal frames are: 'S' only says that the pc is exact. */
static bool is_trampoline(const struct build *b, union cfi_rule *ret)
{
	return cfi_row_signal(&b->rows, ret) == 0 ||
	       code_gaps_trampoline(&b->gaps, b->rows.start, b->rows.end, ret);
}

/*
 * A function whose CFI does not say that it is a signal trampoline: Go's, and those that programs
 * without a C library bring along.
 */
static bool is_restorer(const struct build *b, const struct cfi_source *source, uint64_t start,
			const struct cfi_fde *fde, union cfi_rule *ret)
{
	return fde->start == start &&
	       code_gaps_restorer(&b->gaps, source->section.eh_frame, start, fde->end, ret);
}

/*
 * gcc's CFI goes on saying that rbp is saved where rbp points to after the epilogue of a realigned
 * function has popped it, up to the return. The other registers are popped before it. Adds what is
 * true; `popped` lasts from one of the function's rows to the next.
 */
static void add_realigned(struct build *b, uint64_t start, uint64_t end, union cfi_rule *rule,
			  bool *popped)
{
	uint64_t behind = *popped ? start : code_gaps_behind_pop(&b->gaps, start, end);

	if (behind > start)
		table_writer_add(&b->writer, start, rule);
	if (behind >= end)
		return;
	*popped = true;
	rule->rule.flags &= ~RULE_SLOTS_AT_FP;
	memset(rule->rule.slot_off, 0, sizeof(rule->rule.slot_off));
	table_writer_add(&b->writer, behind, rule);
}

/*
 * glibc's _dl_runtime_resolve of aarch64 is entered from the first PLT stub, which has pushed x16
 * and lr. Its CFI has lr where it is, but takes the pair for the caller's (sysdeps/aarch64/
 * dl-trampoline.S: cfi_rel_offset (lr, 8) without cfi_adjust_cfa_offset). Nothing is really saved
 * above the CFA: it is 16 bytes higher.
 */
static void raise_cfa(const struct build *b, struct unwind_rule *rule)
{
	if (b->elf->machine != EM_AARCH64 || rule->cfa != CFA_REG || RULE_RA(rule) != RA_AT_CFA ||
	    rule->ra_off != 1)
		return;
	rule->cfa_off += 16;
	rule->ra_off -= 2;
	for (int i = 0; i < UNWIND_SLOTS; i++)
		if (rule->slot_off[i] != SLOT_SAME && rule->slot_off[i] != SLOT_LOST)
			rule->slot_off[i] -= 2;
}

/*
 * Go's CFI does not say that a function that has a frame saves rbp at its upper end, as each does
 * (since 1.7, obj6.go: "bpsize"). It is told by its data alignment: cgo's C has -8.
 */
static void save_fp(const struct build *b, struct unwind_rule *rule)
{
	if (b->gaps.arch.of_go && b->rows.cie->data_align == GO_DATA_ALIGN &&
	    rule->cfa == CFA_REG && rule->cfa_reg == X86_RSP && rule->cfa_off >= 16 &&
	    rule->slot_off[X86_SLOT_RBP] == SLOT_SAME)
		rule->slot_off[X86_SLOT_RBP] = -2;
}

/* aarch64: Go's CFI says of all functions that its own walks end at that nobody called them. */
static void handler_returns(const struct build *b, uint64_t start, struct unwind_rule *rule)
{
	const struct unwind_rule *here = &b->rows.state.u.rule;

	if (rule->cfa != CFA_END || b->elf->machine != EM_AARCH64 ||
	    b->rows.cie->data_align != GO_DATA_ALIGN || here->cfa != CFA_REG ||
	    here->cfa_reg != A64_SP || !go_code_is_handler(b->elf, start))
		return;
	*rule = go_frame_a64(here->cfa_off);
}

static bool hangs_on_rbp(const struct unwind_rule *rule)
{
	return rule->cfa == CFA_REG && rule->cfa_reg == X86_RBP && rule->cfa_off == 16;
}

static int write_rows(struct build *b, uint64_t start, uint64_t end)
{
	union cfi_rule rule;
	bool popped = false;
	uint64_t at, gone;
	int r;

	while ((r = cfi_rows_next(&b->rows)) > 0) {
		if (b->rows.end <= start)
			continue;
		if (b->rows.start >= end)
			return 0;
		b->nr_interpreted++;
		if (b->rows.cie->signal && is_trampoline(b, &rule)) {
			table_writer_add(&b->writer, start, &rule);
			return 0;
		}
		if (cfi_row_rule(&b->rows, &rule) < 0)
			b->nr_unsupported_expressions++;
		raise_cfa(b, &rule.rule);
		save_fp(b, &rule.rule);
		handler_returns(b, start, &rule.rule);
		at = b->rows.start > start ? b->rows.start : start;
		gone = b->rows.end >= end && hangs_on_rbp(&rule.rule)
			       ? epilogues_longjmp(b->elf, at, end)
			       : end;
		if (gone < end) {
			table_writer_add(&b->writer, at, &rule);
			table_writer_add(&b->writer, gone, &rule_bad);
			continue;
		}
		if (b->no_epilogues && hangs_on_rbp(&rule.rule)) {
			epilogues_add(b->elf, &b->writer, at, b->rows.end < end ? b->rows.end : end,
				      &rule);
			continue;
		}
		if (!(rule.rule.flags & RULE_SLOTS_AT_FP) || rule.rule.cfa != CFA_REG) {
			popped = false;
			table_writer_add(&b->writer, at, &rule);
		} else {
			add_realigned(b, at, b->rows.end < end ? b->rows.end : end, &rule, &popped);
		}
	}
	return r;
}

/* The rows of one FDE, as far as they lie in [start, end). */
static void cover_fde(struct build *b, struct cfi_source *source, const struct cie_slot *slot,
		      const struct cfi_fde *fde, uint64_t start, uint64_t end)
{
	struct table_mark mark = table_writer_mark(&b->writer);
	union cfi_rule rule;
	int r = slot->error;

	if (is_restorer(b, source, start, fde, &rule)) {
		/* The walker looks for callers a byte before where they return to. */
		table_writer_add(&b->writer, start - 1, &rule);
		table_writer_add(&b->writer, start, &rule);
		return;
	}
	if (fde->start == start && !source->section.eh_frame &&
	    (code_gaps_goexit(&b->gaps, start) || code_gaps_switch(&b->gaps, start, end)))
		return;
	if (fde->start == b->bottom) {
		table_writer_add(&b->writer, start, &rule_end);
		return;
	}
	if (r >= 0) {
		cfi_rows_begin(&b->rows, &b->arch, &source->section, &slot->cie, fde);
		r = write_rows(b, start, end);
	}
	if (r < 0) {
		table_writer_rewind(&b->writer, mark);
		table_writer_add(&b->writer, start, &rule_bad);
		b->nr_bad_fdes++;
	}
}

static uint64_t index_start(const struct cfi_source *source, size_t i)
{
	return i < source->nr ? source->base + (source->index[i] >> 32) : UINT64_MAX;
}

/* Covers [start, end) by source number `level`, and what that leaves open by those behind it. */
static void cover(struct build *b, size_t level, uint64_t start, uint64_t end)
{
	struct cfi_source *source = &b->sources[level];
	const struct cie_slot *slot;
	struct cfi_entry entry;
	struct cfi_fde fde;
	uint64_t next, from, to;

	if (start >= end)
		return;
	if (level == b->nr_sources) {
		code_gaps_cover(&b->gaps, start, end);
		return;
	}
	for (; index_start(source, source->at) < end; source->at++) {
		uint32_t offset = (uint32_t)source->index[source->at];

		/* All of this succeeded when the index was made. */
		if (cfi_entry_at(&source->section, offset, &entry) <= 0)
			continue;
		slot = cfi_source_cie(source, &b->arch, entry.cie);
		if (cfi_parse_fde(&source->section, &entry, &slot->cie, &fde) < 0)
			continue;
		next = index_start(source, source->at + 1);
		/* Where two overlap, the later start wins; of two equal ones, the first. */
		to = fde.end > next && next > fde.start ? next : fde.end;
		from = fde.start > start ? fde.start : start;
		if (to > from && from < end) {
			cover(b, level + 1, start, from);
			cover_fde(b, source, slot, &fde, from, to < end ? to : end);
			start = to;
		}
		if (to > end)
			return; /* the next range may want the rest of it */
	}
	cover(b, level + 1, start, end);
}

/* --- the file -------------------------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void find_ranges(struct build *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->elf->nr_segments && b->nr_ranges < RANGES_MAX; i++) {
		const struct elf_segment *s = &b->elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || !s->filesz ||
		    s->filesz > UINT64_MAX - s->vaddr)
			continue;
		b->ranges[b->nr_ranges++] = (struct code_range){ s->vaddr, s->vaddr + s->filesz };
	}
	qsort(b->ranges, b->nr_ranges, sizeof(*b->ranges), compare_ranges);
	for (size_t i = 0; i < b->nr_ranges; i++) {
		if (n && b->ranges[i].start < b->ranges[n - 1].end)
			b->ranges[i].start = b->ranges[n - 1].end;
		if (b->ranges[i].start < b->ranges[i].end)
			b->ranges[n++] = b->ranges[i];
	}
	b->nr_ranges = n;
}

static int add_source(struct build *b, int r)
{
	struct cfi_source *source = &b->sources[b->nr_sources];

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	b->nr_sources++;
	return cfi_source_index(source, &b->arch, b->ranges, b->nr_ranges);
}

static int find_sources(struct build *b)
{
	int r;

	r = add_source(b, cfi_source_eh_frame(b->elf, &b->sources[b->nr_sources]));
	if (r < 0)
		return r;
	return add_source(b, cfi_source_debug_frame(b->elf, &b->sources[b->nr_sources]));
}

static int sweep(struct build *b)
{
	b->nr_bad_fdes = 0;
	b->nr_unsupported_expressions = 0;
	b->nr_interpreted = 0;
	for (size_t i = 0; i < b->nr_sources; i++) {
		b->sources[i].at = 0;
		/* CIEs' initial states depend on which registers are followed. */
		memset(b->sources[i].cies, 0, CIE_CACHE_SLOTS * sizeof(*b->sources[i].cies));
	}
	for (size_t i = 0; i < b->nr_ranges; i++) {
		cover(b, 0, b->ranges[i].start, b->ranges[i].end);
		table_writer_add(&b->writer, b->ranges[i].end, &rule_none);
	}
	return b->writer.error ? b->writer.error : b->gaps.error;
}

/* Registers of slots that some CFA hangs on. */
static unsigned int needed_slots(const struct build *b)
{
	unsigned int needed = 0;

	for (uint32_t i = 1; i < b->writer.nr_rules; i++) {
		const struct unwind_rule *rule = &b->writer.rules[i].rule;

		if (rule->cfa != CFA_REG && rule->cfa != CFA_DEREF)
			continue;
		for (unsigned int s = 0; s < UNWIND_SLOTS; s++)
			if (rule->cfa_reg == b->arch.slot_regs[s] && b->arch.lost.rule.slot_off[s])
				needed |= 1u << s;
	}
	return needed;
}

static int make_rows(struct build *b, unsigned int follow)
{
	unsigned int needed;
	size_t hint = 0;
	uint64_t end = 0;
	int r;

	for (size_t i = 0; i < b->nr_sources; i++)
		hint += b->sources[i].section.size / BYTES_A_ROW;
	if (b->nr_ranges)
		end = b->ranges[b->nr_ranges - 1].end;
	r = table_writer_init(&b->writer, b->nr_ranges ? b->ranges[0].start : 0, end, hint);
	if (r < 0)
		return r;
	b->no_epilogues = epilogues_are_missing(b->elf);
	r = code_gaps_init(&b->gaps, b->elf, &b->arch, &b->writer);
	if (r < 0)
		return r;
	r = sweep(b);
	if (r < 0)
		return r;
	needed = needed_slots(b);
	if (!needed)
		return 0;
	/* Rare: some function keeps its CFA in another callee-saved register. */
	r = cfi_arch_init(&b->arch, b->elf->machine, follow | needed);
	if (r < 0)
		return r;
	table_writer_reset(&b->writer);
	code_gaps_reset(&b->gaps);
	return sweep(b);
}

/* Each executable segment is searched, however many there are, and wherever they overlap. */
static uint64_t code_bytes(const struct elf_file *elf)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X))
			sum += s->filesz < elf->size ? s->filesz : elf->size;
	}
	return sum;
}

uint64_t unwind_table_cost(const struct elf_file *elf)
{
	struct build b = { .elf = elf };
	uint64_t span = 0;

	find_ranges(&b);
	if (b.nr_ranges)
		span = b.ranges[b.nr_ranges - 1].end - b.ranges[0].start;
	/* Symbols are read where code has no call frame information. */
	return cfi_source_bytes(elf) +
	       (elf_file_section(elf, ".debug_frame") ? 0 : go_table_bytes(elf)) +
	       (span >> BUCKET_SHIFT) * sizeof(uint32_t) + (code_bytes(elf) >> CODE_SHIFT) +
	       (elf_symbols_bytes(elf) >> SYMBOLS_SHIFT);
}

int unwind_table_build(const struct elf_file *elf, unsigned int follow, struct unwind_table **ret)
{
	_cleanup_(build_free_p) struct build *b = calloc(1, sizeof(*b));
	_cleanup_(unwind_table_free_p) struct unwind_table *table = calloc(1, sizeof(*table));
	struct code_range new_threads[NEW_THREADS_MAX];
	int r;

	if (!b || !table)
		return -ENOMEM;
	b->elf = elf;
	b->bottom = UINT64_MAX;
	r = cfi_arch_init(&b->arch, elf->machine, follow);
	if (r < 0)
		return r;
	r = stack_bottom_find(elf, &b->bottom);
	if (r < 0 && r != -ENOENT)
		return r;
	find_ranges(b);
	r = find_sources(b);
	if (r < 0)
		return r;
	r = make_rows(b, follow);
	if (r < 0)
		return r;
	r = table_writer_finish(&b->writer, table);
	if (r < 0)
		return r;
	table->nr_bad_fdes = b->nr_bad_fdes;
	table->nr_unsupported_expressions = b->nr_unsupported_expressions;
	table->nr_rows_before_merging = b->nr_interpreted;
	for (size_t i = 0; i < b->nr_sources; i++) {
		table->nr_bad_fdes += b->sources[i].nr_bad_fdes;
		table->nr_bad_cies += b->sources[i].nr_bad_cies;
	}
	r = new_threads_find(elf, new_threads);
	if (r > 0)
		r = unwind_table_mark_new_threads(table, new_threads, (size_t)r);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(table);
	return 0;
}

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	free(table->buckets);
	free(table->rows);
	free(table->rules);
	if (table->image)
		close(table->image);
	free(table);
}

size_t unwind_table_bytes(const struct unwind_table *table)
{
	return sizeof(*table) + (size_t)table->nr_buckets * sizeof(*table->buckets) +
	       (size_t)table->nr_rows * sizeof(*table->rows) +
	       (size_t)table->nr_rules * sizeof(*table->rules);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t addr)
{
	uint64_t at = addr - table->start;
	uint32_t bucket, key, low, high;

	if (addr < table->start || at >> BUCKET_SHIFT >= table->nr_buckets)
		return &table->rules[0];
	bucket = table->buckets[at >> BUCKET_SHIFT];
	key = ROW(at & 255, 0xffffff);
	low = BUCKET_FIRST(bucket);
	high = low + BUCKET_NR(bucket);
	/* The number of rows at or below the key; the one before it counts. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->rows[middle] <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &table->rules[ROW_RULE(table->rows[low - 1])] : &table->rules[0];
}
