// SPDX-License-Identifier: Apache-2.0
/*
 * The line number machine (DWARF 5 section 6.2.2; 2 to 4 differ in the header only) and what
 * becomes of its sequences: sorted, not overlapping, one row an address.
 *
 * Compilers and linkers nearly always give sequences in ascending order of addresses, or few that
 * are not; so rows are written once, and moved only if a program needs it.
 */
#include "dwarf/line_program.h"
#include "dwarf/line_program_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

enum {
	DW_LNS_copy = 1,
	DW_LNS_advance_pc,
	DW_LNS_advance_line,
	DW_LNS_set_file,
	DW_LNS_set_column,
	DW_LNS_negate_stmt,
	DW_LNS_set_basic_block,
	DW_LNS_const_add_pc,
	DW_LNS_fixed_advance_pc,
	DW_LNS_set_prologue_end,
	DW_LNS_set_epilogue_begin,
	DW_LNS_set_isa,

	DW_LNE_end_sequence = 1,
	DW_LNE_set_address,
	DW_LNE_define_file,

	COLUMN_MAX = UINT16_MAX,
	/* Compilers' programs have one row in 6 to 8 bytes. */
	BYTES_PER_ROW = 6,
};

struct sequence {
	uint64_t begin, end;
	uint32_t first, nr; /* rows; the last one is its LINE_END */
};

struct machine {
	struct line_header header;
	struct cfi_reader r;
	uint64_t tombstone; /* the largest address; the one below is another */
	uint32_t file_base; /* the program's number of the first file */

	/* The state of section 6.2.2 as far as we use it. */
	uint64_t addr;
	uint32_t op_index;
	uint32_t file; /* index */
	uint32_t line;
	uint16_t column;
	uint16_t flags;
	bool dead; /* this sequence's code was discarded */

	VEC(struct line_row) rows;
	uint32_t first_row; /* of this sequence */
	bool unsorted;	    /* this sequence */
	VEC(struct sequence) sequences;
	bool out_of_order; /* sequences are, or overlap */
	uint32_t max_file; /* largest index set */
	struct line_files files;

	/* What special opcodes do, by opcode - opcode_base. */
	uint8_t op_advance[256];
	int16_t line_advance[256];
};

static void machine_fini(struct machine *m)
{
	line_files_fini(&m->files);
	vec_free(&m->rows);
	vec_free(&m->sequences);
}

static void set_file(struct machine *m, uint64_t number)
{
	uint64_t index = number - m->file_base;

	m->file = index < LINE_FILES_MAX ? (uint32_t)index : UINT32_MAX;
	if (m->file != UINT32_MAX && m->file > m->max_file)
		m->max_file = m->file;
}

static void begin_sequence(struct machine *m)
{
	m->addr = 0;
	m->op_index = 0;
	set_file(m, 1);
	m->line = 1;
	m->column = 0;
	m->flags = m->header.default_is_stmt ? LINE_IS_STMT : 0;
	m->dead = true; /* until it says where it is */
	m->first_row = (uint32_t)m->rows.nr;
	m->unsorted = false;
}

/* Of rows of one address the last one counts, so it takes the other's place. */
static inline int add_row(struct machine *m)
{
	size_t nr = m->rows.nr;
	int r;

	if (m->dead)
		return 0;
	if (nr > m->first_row) {
		uint64_t last = m->rows.items[nr - 1].addr;

		if (m->addr < last)
			m->unsorted = true;
		nr -= m->addr == last;
	}
	if (nr == m->rows.cap) {
		r = nr < LINE_ROWS_MAX ? vec_reserve(&m->rows, nr + 1) : -EBADMSG;
		if (r)
			return r;
	}
	m->rows.items[nr] = (struct line_row){ m->addr, m->file, m->line, m->column, m->flags };
	m->rows.nr = nr + 1;
	return 0;
}

/* A stable sort, as of rows of one address the last one counts. */
static int sort_rows(struct line_row *rows, size_t *nr)
{
	size_t n = *nr, kept = 0, first, second;
	_cleanup_free_ struct line_row *other = malloc(n * sizeof(*other));

	if (!other)
		return -ENOMEM;
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t at = 0; at < n; at += 2 * width) {
			size_t middle = at + width < n ? at + width : n;
			size_t end = middle + width < n ? middle + width : n;

			first = at;
			second = middle;
			for (size_t i = at; i < end; i++) {
				bool later = second < end && (first == middle ||
							      rows[second].addr < rows[first].addr);

				other[i] = rows[later ? second++ : first++];
			}
		}
		memcpy(rows, other, n * sizeof(*rows));
	}
	for (size_t i = 0; i < n; i++) {
		kept -= kept && rows[kept - 1].addr == rows[i].addr;
		rows[kept++] = rows[i];
	}
	*nr = kept;
	return 0;
}

/* Adds the row that ends this sequence's rows, of which there is at least one. */
static int close_rows(struct machine *m)
{
	struct line_row *rows = m->rows.items + m->first_row;
	size_t nr = m->rows.nr - m->first_row;

	if (m->unsorted) {
		int r = sort_rows(rows, &nr);

		if (r)
			return r;
		m->rows.nr = m->first_row + nr;
	}
	/* Rows behind the end are no use: nothing says how far the last one goes. */
	if (m->dead || m->addr < rows[nr - 1].addr)
		m->addr = rows[nr - 1].addr;
	m->dead = false;
	m->flags |= LINE_END;
	return add_row(m);
}

/* The state's address is the first one behind the sequence. */
static int end_sequence(struct machine *m)
{
	struct sequence s = { .first = m->first_row };
	int r = 0;

	if (m->rows.nr > m->first_row)
		r = close_rows(m);
	if (r)
		return r;
	s.nr = (uint32_t)m->rows.nr - m->first_row;
	if (s.nr < 2) {
		m->rows.nr = m->first_row; /* it covers nothing */
	} else {
		s.begin = m->rows.items[s.first].addr;
		s.end = m->rows.items[m->rows.nr - 1].addr;
		/* Also just behind another: its first row takes the place of the other's end. */
		if (m->sequences.nr && s.begin <= m->sequences.items[m->sequences.nr - 1].end)
			m->out_of_order = true;
		r = vec_push(&m->sequences, s);
	}
	begin_sequence(m);
	return r;
}

static void set_address(struct machine *m, size_t size)
{
	if (!size || size > 8) {
		cfi_take(&m->r, size);
		return;
	}
	m->addr = cfi_fixed(&m->r, size);
	m->op_index = 0;
	m->dead = m->addr <= 1 || m->addr == m->tombstone || m->addr == m->tombstone - 1;
}

static int define_file(struct machine *m)
{
	const uint8_t *begin = m->r.pos;
	const uint8_t *end = cfi_left(&m->r) ? memchr(begin, 0, cfi_left(&m->r)) : NULL;

	if (!end) {
		m->r.failed = true;
		return 0;
	}
	m->r.pos = end + 1;
	return line_files_add(&m->files, (const char *)begin, cfi_uleb(&m->r));
}

static int run_extended(struct machine *m)
{
	uint64_t length = cfi_uleb(&m->r);
	const uint8_t *next;
	int r = 0;

	if (!length)
		return 0;
	if (length > cfi_left(&m->r)) {
		m->r.failed = true;
		return 0;
	}
	next = m->r.pos + length;
	switch (cfi_u8(&m->r)) {
	case DW_LNE_end_sequence:
		r = end_sequence(m);
		break;
	case DW_LNE_set_address:
		set_address(m, length - 1);
		break;
	case DW_LNE_define_file:
		r = define_file(m);
		break;
	default: /* discriminators, and what vendors have */
		break;
	}
	m->r.pos = next;
	return r;
}

static inline void advance(struct machine *m, uint64_t ops)
{
	if (__builtin_expect(m->header.max_ops == 1, 1)) {
		m->addr += ops * m->header.min_inst_length;
		return;
	}
	ops += m->op_index;
	m->addr += ops / m->header.max_ops * m->header.min_inst_length;
	m->op_index = (uint32_t)(ops % m->header.max_ops);
}

static void skip_operands(struct machine *m, uint8_t opcode)
{
	for (unsigned int n = m->header.opcode_lengths[opcode - 1]; n; n--)
		cfi_uleb(&m->r);
}

static int run_standard(struct machine *m, uint8_t opcode)
{
	uint64_t v;

	switch (opcode) {
	case 0:
		return run_extended(m);
	case DW_LNS_copy:
		return add_row(m);
	case DW_LNS_advance_pc:
		advance(m, cfi_uleb(&m->r));
		break;
	case DW_LNS_advance_line:
		m->line += (uint32_t)cfi_sleb(&m->r);
		break;
	case DW_LNS_set_file:
		set_file(m, cfi_uleb(&m->r));
		break;
	case DW_LNS_set_column:
		v = cfi_uleb(&m->r);
		m->column = v <= COLUMN_MAX ? (uint16_t)v : 0;
		break;
	case DW_LNS_negate_stmt:
		m->flags ^= LINE_IS_STMT;
		break;
	case DW_LNS_const_add_pc:
		advance(m, m->op_advance[255 - m->header.opcode_base]);
		break;
	case DW_LNS_fixed_advance_pc:
		m->addr += cfi_u16(&m->r);
		m->op_index = 0;
		break;
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	default: /* set_isa, and what a later version may have */
		skip_operands(m, opcode);
		break;
	}
	return 0;
}

static int run(struct machine *m)
{
	const uint8_t opcode_base = m->header.opcode_base;
	int r = 0;

	while (!r && !m->r.failed && m->r.pos < m->r.end) {
		uint8_t opcode = *m->r.pos++;

		if (opcode >= opcode_base) {
			uint8_t i = opcode - opcode_base;

			advance(m, m->op_advance[i]);
			m->line += (uint32_t)m->line_advance[i];
			r = add_row(m);
		} else {
			r = run_standard(m, opcode);
		}
	}
	if (r == -ENOMEM)
		return r;
	/* It broke off: where its last row ends is not known. */
	if (m->rows.nr > m->first_row) {
		m->addr = m->rows.items[m->rows.nr - 1].addr;
		return end_sequence(m) == -ENOMEM ? -ENOMEM : 0;
	}
	return 0;
}

static int prepare(struct machine *m, uint8_t address_size)
{
	const struct line_header *h = &m->header;
	unsigned int ops = 0, step = 0;

	m->r = (struct cfi_reader){ h->program, h->end, false };
	m->tombstone =
		address_size && address_size < 8 ? (1ull << address_size * 8) - 1 : UINT64_MAX;
	m->file_base = h->version >= 5 ? 0 : 1;
	for (unsigned int i = 0; i + h->opcode_base < 256; i++) {
		m->op_advance[i] = (uint8_t)ops;
		m->line_advance[i] = (int16_t)(h->line_base + (int)step);
		if (++step == h->line_range) {
			step = 0;
			ops++;
		}
	}
	begin_sequence(m);
	return vec_reserve(&m->rows, cfi_left(&m->r) / BYTES_PER_ROW + 1);
}

/* --- sequences -------------------------------------------------------------------------------- */

static int compare_sequences(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Copies what of a sequence lies behind `covered`, and a row for what begins before it. */
static size_t copy_behind(const struct line_row *rows, const struct sequence *s, uint64_t covered,
			  struct line_row *to)
{
	const struct line_row *from = rows + s->first, *end = from + s->nr;

	while (from + 1 < end && from[1].addr <= covered)
		from++;
	memcpy(to, from, (size_t)(end - from) * sizeof(*to));
	if (to->addr < covered)
		to->addr = covered;
	return (size_t)(end - from);
}

/* Sorts sequences; one that overlaps others before it keeps only what is behind them. */
static int order_sequences(struct machine *m)
{
	struct line_row *sorted;
	size_t nr = 0;
	uint64_t covered = 0;

	qsort(m->sequences.items, m->sequences.nr, sizeof(*m->sequences.items), compare_sequences);
	sorted = malloc((m->rows.nr + 1) * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < m->sequences.nr; i++) {
		const struct sequence *s = &m->sequences.items[i];

		if (s->end <= covered)
			continue;
		/* A begin just there replaces the other's end: one row an address. */
		if (nr && s->begin <= covered)
			nr--;
		nr += copy_behind(m->rows.items, s, covered, sorted + nr);
		covered = s->end;
	}
	free(m->rows.items);
	m->rows.items = sorted;
	m->rows.nr = nr;
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Files that a program uses and does not have are not known. */
static void check_files(struct machine *m)
{
	if (m->max_file < m->files.starts.nr)
		return;
	for (size_t i = 0; i < m->rows.nr; i++) {
		if (m->rows.items[i].file >= m->files.starts.nr)
			m->rows.items[i].file = UINT32_MAX;
	}
}

static int make_table(struct machine *m, const char *name, struct line_table *ret)
{
	struct line_table table = { .version = m->header.version };
	int r = 0;

	if (!m->files.starts.nr && name[0])
		r = line_files_add(&m->files, name, 0);
	if (!r && m->out_of_order)
		r = order_sequences(m);
	if (r)
		return r;
	check_files(m);
	table.nr_files = m->files.starts.nr;
	table.files = malloc((table.nr_files + 1) * sizeof(*table.files));
	if (!table.files)
		return -ENOMEM;
	for (size_t i = 0; i < table.nr_files; i++)
		table.files[i] = m->files.paths.items + m->files.starts.items[i];
	table.memory = TAKE_PTR(m->files.paths.items);
	table.rows = TAKE_PTR(m->rows.items);
	table.nr_rows = m->rows.nr;
	*ret = table;
	return 0;
}

int line_table_read(const struct line_source *source, uint64_t offset, const char *comp_dir,
		    const char *name, uint8_t address_size, struct line_table *ret)
{
	_cleanup_(machine_fini) struct machine m = { .files.comp_dir = comp_dir };
	int r;

	if (strnlen(comp_dir, LINE_PATH_MAX) == LINE_PATH_MAX)
		m.files.comp_dir = "";
	r = line_header_read(source, offset, &m.files, &m.header);
	if (r)
		return r;
	r = prepare(&m, address_size);
	if (!r)
		r = run(&m);
	if (r)
		return r;
	return make_table(&m, name, ret);
}

void line_table_fini(struct line_table *table)
{
	free(table->rows);
	free(table->files);
	free(table->memory);
	*table = (struct line_table){ 0 };
}

uint32_t line_table_file(const struct line_table *table, uint64_t number)
{
	uint64_t index = table->version >= 5 ? number : number - 1;

	return index < table->nr_files ? (uint32_t)index : UINT32_MAX;
}
