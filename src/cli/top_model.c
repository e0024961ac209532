// SPDX-License-Identifier: Apache-2.0
#include "cli/top_model.h"

#include "export/functions.h"
#include "util/cleanup.h"
#include "util/intern.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A row that has faded to less than this is given up. */
static const double FORGET = 0.01;

/* Of names; beyond it all begins anew. Machines that go through names that fast are rare. */
enum { STRINGS_MAX = 32 << 20 };

int top_model_init(struct top_model *m)
{
	*m = (struct top_model){ 0 };
	return strtab_init(&m->strings);
}

void top_model_fini(struct top_model *m)
{
	for (int i = 0; i < TOP_BY_MAX_; i++) {
		vec_free(&m->by[i].rows);
		map_fini(&m->by[i].by_key);
	}
	strtab_fini(&m->strings);
}

struct row_key {
	uint32_t name, object;
	int32_t pid, tid;
	uint32_t kernel, pad_;
};

static struct row_key key_of(const struct top_row *row)
{
	return (struct row_key){ row->name, row->object, row->pid, row->tid, row->kernel, 0 };
}

static bool has_key(const struct top_row *row, const struct row_key *key)
{
	struct row_key known = key_of(row);

	return !memcmp(&known, key, sizeof(known));
}

static int find_row(struct top_rows *rows, const struct top_row *want, uint32_t *ret)
{
	struct row_key key = key_of(want);
	uint64_t hash = XXH3_64bits(&key, sizeof(key));
	int64_t found = intern_find(&rows->by_key, hash, id, has_key(&rows->rows.items[id], &key));

	if (found < 0)
		return intern_add(&rows->by_key, &rows->rows, hash, *want, ret);
	*ret = (uint32_t)found;
	return 0;
}

/* --- fading ----------------------------------------------------------------------------------- */

static int fade_rows(struct top_rows *rows, double factor)
{
	struct top_rows kept = { 0 };
	uint32_t unused;
	int r = 0;

	for (size_t i = 0; i < rows->rows.nr && !r; i++) {
		struct top_row row = rows->rows.items[i];

		row.self *= factor;
		row.total *= factor;
		row.kernel_total *= factor;
		if (row.total >= FORGET)
			r = find_row(&kept, &row, &unused);
	}
	vec_free(&rows->rows);
	map_fini(&rows->by_key);
	*rows = kept;
	return r;
}

static int fade(struct top_model *m, double seconds, double cpus, double own)
{
	double factor = exp2(-seconds / TOP_HALF_LIFE_S);
	int r = 0;

	for (int i = 0; i < TOP_BY_MAX_ && !r; i++)
		r = fade_rows(&m->by[i], factor);
	m->samples *= factor;
	m->seconds = m->seconds * factor + seconds;
	m->busy = m->busy * factor + cpus * seconds;
	m->own = m->own * factor + own * seconds;
	return r;
}

double top_model_busy(const struct top_model *m)
{
	return m->seconds > 0 ? m->busy / m->seconds : 0;
}

double top_model_own(const struct top_model *m)
{
	double own = m->seconds > 0 ? m->own / m->seconds : 0, busy = top_model_busy(m);

	/* Two clocks tell. */
	return own < busy ? own : busy;
}

double top_model_cpus(const struct top_model *m, double samples)
{
	return m->samples > 0 ? top_model_busy(m) * samples / m->samples : 0;
}

/* --- counting --------------------------------------------------------------------------------- */

struct update {
	struct top_model *m;
	const struct profile *p;
	struct function_table functions;
	uint32_t *row_of; /* by function: its row + 1; 0: not looked up yet */
};

static void update_fini(struct update *u)
{
	function_table_fini(&u->functions);
	free(u->row_of);
}

static int intern(struct top_model *m, const char *s, uint32_t *ret)
{
	return strtab_intern(&m->strings, s, strlen(s), ret);
}

/* "app.py:12": where a runtime's function begins. */
static const char *script_place(const struct profile *p, const struct function *f, char *buf,
				size_t size)
{
	const char *source = strtab_get(&p->strings, f->source), *slash = strrchr(source, '/');
	size_t len;

	source = slash ? slash + 1 : source;
	len = profile_clean_text(source, strlen(source), buf, size);
	if (f->start_line)
		snprintf(buf + len, size - len, ":%u", f->start_line);
	return buf;
}

static int row_of_function(struct update *u, uint32_t number, struct top_row **ret)
{
	const struct function *f = &u->functions.functions.items[number];
	struct top_row row = { .kernel = f->kind == FRAME_KIND_KERNEL };
	struct top_rows *rows = &u->m->by[TOP_BY_FUNCTION];
	const char *object = "";
	char place[256];
	uint32_t id;
	int r;

	if (u->row_of[number]) {
		*ret = &rows->rows.items[u->row_of[number] - 1];
		return 0;
	}
	/* The label says it already for kernel functions and for addresses without a name. */
	if (!row.kernel && f->label[0] != '[' && f->file < u->p->files.nr)
		object = strtab_get(&u->p->strings, u->p->files.items[f->file].name);
	else if (f->source)
		object = script_place(u->p, f, place, sizeof(place));
	r = intern(u->m, f->label, &row.name);
	if (!r)
		r = intern(u->m, object, &row.object);
	if (!r)
		r = find_row(rows, &row, &id);
	if (r)
		return r;
	u->row_of[number] = id + 1;
	*ret = &rows->rows.items[id];
	return 0;
}

static int count_functions(struct update *u, const struct profile_stack *stack, double nr)
{
	const struct function_table *t = &u->functions;
	bool is_leaf = true;

	u->m->nr_counted++;
	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t frame = u->p->stack_frames.items[stack->first + i];

		for (uint32_t l = t->first_inline[frame]; l < t->first_inline[frame + 1]; l++) {
			struct top_row *row;
			int r = row_of_function(u, t->of_inline[l], &row);

			if (r)
				return r;
			if (is_leaf)
				row->self += nr;
			is_leaf = false;
			if (row->counted == u->m->nr_counted)
				continue; /* recursion */
			row->counted = u->m->nr_counted;
			row->total += nr;
		}
	}
	return 0;
}

static int count_owner(struct update *u, enum top_by by, const struct profile_thread *thread,
		       bool in_kernel, double nr)
{
	const struct profile_process *process = &u->p->processes.items[thread->process];
	uint32_t name = by == TOP_BY_PROCESS && process->name ? process->name : thread->comm;
	struct top_row row = { .pid = process->pid, .tid = by == TOP_BY_THREAD ? thread->tid : 0 };
	char text[256];
	uint32_t id;
	int r;

	profile_clean_text(strtab_get(&u->p->strings, name),
			   strlen(strtab_get(&u->p->strings, name)), text, sizeof(text));
	r = intern(u->m, text, &row.name);
	if (!r)
		r = find_row(&u->m->by[by], &row, &id);
	if (r)
		return r;
	u->m->by[by].rows.items[id].self += nr;
	u->m->by[by].rows.items[id].total += nr;
	if (in_kernel)
		u->m->by[by].rows.items[id].kernel_total += nr;
	return 0;
}

static int count_sample(struct update *u, const struct profile_sample *sample, double nr)
{
	const struct profile_stack *stack = &u->p->stacks.items[sample->stack];
	const struct profile_thread *thread = &u->p->threads.items[sample->thread];
	bool in_kernel =
		stack->nr && u->p->frames.items[u->p->stack_frames.items[stack->first]].kind ==
				     FRAME_KIND_KERNEL;
	int r;

	u->m->samples += nr;
	r = count_functions(u, stack, nr);
	if (!r)
		r = count_owner(u, TOP_BY_PROCESS, thread, in_kernel, nr);
	return r ? r : count_owner(u, TOP_BY_THREAD, thread, in_kernel, nr);
}

void top_model_reset(struct top_model *m)
{
	for (int i = 0; i < TOP_BY_MAX_; i++) {
		m->by[i].rows.nr = 0;
		map_clear(&m->by[i].by_key);
	}
	m->samples = m->seconds = m->busy = m->own = 0;
}

int top_model_update(struct top_model *m, const struct profile *p, double seconds, double cpus,
		     double own)
{
	_cleanup_(update_fini) struct update u = { .m = m, .p = p };
	int r;

	if (m->strings.bytes > STRINGS_MAX) {
		top_model_fini(m);
		r = top_model_init(m);
		if (r)
			return r;
	}
	r = seconds > 0 ? fade(m, seconds, cpus, own) : 0;
	if (!r)
		r = function_table_init(&u.functions, p, MERGE_INLINED_TOO, false);
	if (r)
		return r;
	u.row_of = calloc(u.functions.functions.nr + 1, sizeof(*u.row_of));
	if (!u.row_of)
		return -ENOMEM;
	for (size_t i = 0; i < p->cut.samples.nr && !r; i++)
		r = count_sample(&u, &p->cut.samples.items[i],
				 (double)p->cut.samples.items[i].count);
	return r;
}

/* --- choosing --------------------------------------------------------------------------------- */

static double part(const struct top_row *row, const struct top_view *view, double all)
{
	if (view->by == TOP_BY_FUNCTION || view->mode == TOP_MODE_ALL)
		return all;
	return view->mode == TOP_MODE_KERNEL ? row->kernel_total : row->total - row->kernel_total;
}

double top_row_self(const struct top_row *row, const struct top_view *view)
{
	return part(row, view, row->self);
}

double top_row_total(const struct top_row *row, const struct top_view *view)
{
	return part(row, view, row->total);
}

double top_row_main(const struct top_row *row, const struct top_view *view)
{
	return view->order == TOP_ORDER_TOTAL ? top_row_total(row, view) : top_row_self(row, view);
}

static bool is_shown(const struct top_model *m, const struct top_row *row,
		     const struct top_view *view)
{
	if (view->by == TOP_BY_FUNCTION && view->mode != TOP_MODE_ALL &&
	    row->kernel != (view->mode == TOP_MODE_KERNEL))
		return false;
	if (top_row_total(row, view) < FORGET)
		return false;
	return !view->filter || !*view->filter ||
	       strcasestr(strtab_get(&m->strings, row->name), view->filter) ||
	       strcasestr(strtab_get(&m->strings, row->object), view->filter);
}

struct order {
	const struct top_model *m;
	const struct top_view *view;
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct top_row *x = *(const struct top_row *const *)a,
			     *y = *(const struct top_row *const *)b;
	const struct order *o = ctx;
	double dx[] = { top_row_self(x, o->view), top_row_total(x, o->view) };
	double dy[] = { top_row_self(y, o->view), top_row_total(y, o->view) };
	int first = o->view->order == TOP_ORDER_SELF ? 0 : 1, r;

	for (int i = 0; o->view->order != TOP_ORDER_NAME && i < 2; i++) {
		int at = (first + i) % 2;

		if (dx[at] != dy[at])
			return dx[at] < dy[at] ? 1 : -1;
	}
	r = strcmp(strtab_get(&o->m->strings, x->name), strtab_get(&o->m->strings, y->name));
	if (!r)
		r = strcmp(strtab_get(&o->m->strings, x->object),
			   strtab_get(&o->m->strings, y->object));
	if (!r)
		r = x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : 0;
	return r ? r : x->tid < y->tid ? -1 : x->tid > y->tid;
}

int top_model_select(const struct top_model *m, const struct top_view *view,
		     const struct top_row ***ret, size_t *ret_nr)
{
	const struct top_rows *rows = &m->by[view->by];
	_cleanup_free_ const struct top_row **shown = calloc(rows->rows.nr + 1, sizeof(*shown));
	struct order order = { m, view };
	size_t nr = 0;

	if (!shown)
		return -ENOMEM;
	for (size_t i = 0; i < rows->rows.nr; i++)
		if (is_shown(m, &rows->rows.items[i], view))
			shown[nr++] = &rows->rows.items[i];
	qsort_r(shown, nr, sizeof(*shown), compare, &order);
	*ret = TAKE_PTR(shown);
	*ret_nr = nr;
	return 0;
}
