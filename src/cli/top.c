// SPDX-License-Identifier: Apache-2.0
#include "cli/top.h"

#include "cli/term.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

const char *top_row_text(const struct top_model *m, const struct top_row *row, enum top_by by,
			 char *buf, size_t size)
{
	const char *name = strtab_get(&m->strings, row->name);
	const char *object = strtab_get(&m->strings, row->object);

	if (by == TOP_BY_PROCESS)
		snprintf(buf, size, "%s (pid %d)", name, row->pid);
	else if (by == TOP_BY_THREAD)
		snprintf(buf, size, "%s (pid %d, tid %d)", name, row->pid, row->tid);
	else if (*object)
		snprintf(buf, size, *object == '[' ? "%s %s" : "%s [%s]", name, object);
	else
		snprintf(buf, size, "%s", name);
	return buf;
}

int top_print_rows(const struct top_model *m, const struct top_view *view, const char *title,
		   uint32_t nr, FILE *out)
{
	enum { NUMBERS = 42, CPUS = 8 }; /* columns before the name */
	static const char *const what[] = { "function", "process", "thread" };
	_cleanup_free_ const struct top_row **rows = NULL;
	bool colours = term_colours(out), by_self = view->order == TOP_ORDER_SELF;
	double samples = m->samples > 0 ? m->samples : 1;
	bool cpus = top_model_busy(m) > 0;
	int width = term_width(out);
	size_t nr_rows;
	int r;

	r = top_model_select(m, view, &rows, &nr_rows);
	if (r)
		return r;
	fprintf(out, "\n%s%s%s\n%s%9s %8s  %9s %8s%s    %s%s\n", term_start(colours, TERM_BOLD),
		title, term_reset(colours), term_start(colours, TERM_DIM), "self", "", "total", "",
		cpus ? "    CPUs" : "", what[view->by], term_reset(colours));
	for (size_t i = 0; i < nr && i < nr_rows; i++) {
		double self = top_row_self(rows[i], view), total = top_row_total(rows[i], view);
		char text[1024];

		if (by_self && self <= 0)
			break;
		top_row_text(m, rows[i], view->by, text, sizeof(text));
		fprintf(out, "%s%9.0f %6.2f %%%s  %s%9.0f %6.2f %%%s",
			term_start(colours && by_self, TERM_BOLD), self, 100.0 * self / samples,
			term_reset(colours && by_self), term_start(colours && !by_self, TERM_BOLD),
			total, 100.0 * total / samples, term_reset(colours && !by_self));
		if (cpus)
			fprintf(out, "%8.2f", top_model_cpus(m, top_row_main(rows[i], view)));
		fputs("    ", out);
		print_cut(out, text, width ? width - NUMBERS - (cpus ? CPUS : 0) : 0);
		fputc('\n', out);
	}
	return 0;
}

int top_print(const struct profile *p, uint32_t nr, FILE *out)
{
	static const struct {
		enum top_order order;
		const char *title;
	} tables[] = {
		{ TOP_ORDER_SELF, "Most samples in the function itself" },
		{ TOP_ORDER_TOTAL, "Most samples in the function and what it calls" },
	};
	_cleanup_(top_model_fini) struct top_model m = { 0 };
	int r;

	r = top_model_init(&m);
	if (!r)
		r = top_model_update(&m, p, 0, 0, 0);
	for (size_t i = 0; i < 2 && !r && m.samples > 0; i++)
		r = top_print_rows(&m, &(struct top_view){ .order = tables[i].order },
				   tables[i].title, nr, out);
	return r;
}
