// SPDX-License-Identifier: Apache-2.0
#include "cli/top.h"

#include "cli/term.h"
#include "export/functions.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct row {
	uint64_t self, total;
	uint32_t function;
	uint32_t last_sample; /* the sample (number + 1) that `total` has counted already */
};

struct top {
	const struct profile *profile;
	struct function_table functions;
	struct row *rows; /* by function until they are sorted */
	size_t nr_rows;
	uint64_t samples;
};

static void top_fini(struct top *top)
{
	function_table_fini(&top->functions);
	free(top->rows);
}

static void count_frame(struct top *top, size_t sample, uint32_t frame, bool is_leaf)
{
	const struct function_table *functions = &top->functions;
	uint64_t nr = top->profile->samples.items[sample].count;

	for (uint32_t i = functions->first_level[frame]; i < functions->first_level[frame + 1];
	     i++) {
		struct row *row = &top->rows[functions->of_level[i]];

		if (is_leaf && i == functions->first_level[frame])
			row->self += nr;
		if (row->last_sample == sample + 1)
			continue; /* recursion */
		row->last_sample = (uint32_t)sample + 1;
		row->total += nr;
	}
}

static void count(struct top *top)
{
	const struct profile *p = top->profile;

	for (size_t i = 0; i < p->samples.nr; i++) {
		const struct profile_sample *sample = &p->samples.items[i];
		const struct profile_stack *stack = &p->stacks.items[sample->stack];

		top->samples += sample->count;
		for (uint32_t j = 0; j < stack->nr; j++)
			count_frame(top, i, p->stack_frames.items[stack->first + j], j == 0);
	}
}

/* Most first; equal ones by name, as functions are numbered. */
static int compare(const struct row *x, const struct row *y, bool by_self)
{
	uint64_t a[] = { by_self ? x->self : x->total, by_self ? x->total : x->self };
	uint64_t b[] = { by_self ? y->self : y->total, by_self ? y->total : y->self };

	for (int i = 0; i < 2; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static int by_self(const void *a, const void *b)
{
	return compare(a, b, true);
}

static int by_total(const void *a, const void *b)
{
	return compare(a, b, false);
}

/* At most `columns` bytes of `text` (0: all), cut between characters, with ".." where it was cut.
 */
static void print_cut(FILE *out, const char *text, int columns)
{
	int len = (int)strlen(text);

	if (columns <= 2 || len <= columns) {
		fputs(text, out);
		return;
	}
	len = columns - 2;
	while (len > 0 && (text[len] & 0xc0) == 0x80)
		len--;
	fprintf(out, "%.*s..", len, text);
}

/* "function [file]" */
static void format_function(const struct top *top, const struct row *row, char *buf, size_t size)
{
	const struct function *f = &top->functions.functions.items[row->function];
	const char *file = "";

	/* The label says it already for kernel functions and for addresses without a name. */
	if (f->kind != FRAME_KIND_KERNEL && f->label[0] != '[' && f->file < top->profile->files.nr)
		file = strtab_get(&top->profile->strings, top->profile->files.items[f->file].name);
	snprintf(buf, size, "%s%s%s%s", f->label, *file ? " [" : "", file, *file ? "]" : "");
}

static void print_table(const struct top *top, const char *title, bool self, uint32_t nr, FILE *out)
{
	enum { NUMBERS = 42 }; /* columns before the function */
	bool colours = term_colours(out);
	int width = term_width(out);
	double samples = top->samples ? (double)top->samples : 1;

	fprintf(out, "\n%s%s%s\n%s%9s %8s  %9s %8s    %s%s\n", term_start(colours, TERM_BOLD),
		title, term_reset(colours), term_start(colours, TERM_DIM), "self", "", "total", "",
		"function", term_reset(colours));
	for (size_t i = 0; i < nr && i < top->nr_rows; i++) {
		const struct row *row = &top->rows[i];
		char text[1024];

		if (!(self ? row->self : row->total))
			break;
		format_function(top, row, text, sizeof(text));
		fprintf(out, "%s%9" PRIu64 " %6.2f %%%s  %s%9" PRIu64 " %6.2f %%%s    ",
			term_start(colours && self, TERM_BOLD), row->self,
			100.0 * (double)row->self / samples, term_reset(colours && self),
			term_start(colours && !self, TERM_BOLD), row->total,
			100.0 * (double)row->total / samples, term_reset(colours && !self));
		print_cut(out, text, width ? width - NUMBERS : 0);
		fputc('\n', out);
	}
}

int top_print(const struct profile *p, uint32_t nr, FILE *out)
{
	_cleanup_(top_fini) struct top top = { .profile = p };
	int r;

	r = function_table_init(&top.functions, p, MERGE_INLINED_TOO, false);
	if (r < 0)
		return r;
	top.nr_rows = top.functions.functions.nr;
	if (!top.nr_rows)
		return 0;
	top.rows = calloc(top.nr_rows, sizeof(*top.rows));
	if (!top.rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < top.nr_rows; i++)
		top.rows[i].function = i;
	count(&top);
	qsort(top.rows, top.nr_rows, sizeof(*top.rows), by_self);
	print_table(&top, "Most samples in the function itself", true, nr, out);
	qsort(top.rows, top.nr_rows, sizeof(*top.rows), by_total);
	print_table(&top, "Most samples in the function and what it calls", false, nr, out);
	return 0;
}
