// SPDX-License-Identifier: Apache-2.0
#include "record/startup_scan.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* To look at a process takes some 50 us, at one with a runtime 1 to 20 ms, to make a large
	 * file's table up to 100 ms: of CPU, beside others it may take ten times as long. */
	WORK_NS = 1000000000,
	LONGEST_S = 10,
	LATELY_S = 60,	       /* who has not run for so long goes on sleeping, perhaps */
	HANGS_S = 2,	       /* a disk answers sooner */
	THREADS_MAX = 1 << 18, /* 8 MiB, until they are sorted */
	PASSES = 4,	       /* for those that began meanwhile */
};

static const uint64_t second_ns = 1000000000;

struct space_list {
	struct task_space *items;
	size_t nr, cap;
};

/* --- which, and in what order ---------------------------------------------------------------- */

/* The schedulers' clocks go apart with the time that hypervisors and interrupts took, so that time
 * counts from when somebody ran last on the same CPU. */
static int find_newest(const struct task_space *spaces, size_t nr, struct map *newest)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		const uint64_t *found = map_get(newest, spaces[i].cpu);

		if (!found || *found < spaces[i].ran_ns)
			err = map_put(newest, spaces[i].cpu, spaces[i].ran_ns);
	}
	return err;
}

static int put_together(const struct task_space *spaces, size_t nr, const struct map *newest,
			struct startup_scan_list *list)
{
	_cleanup_(map_fini) struct map by_pid = { 0 };
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		const struct task_space *s = &spaces[i];
		uint64_t idle_ns = *map_get(newest, s->cpu) - s->ran_ns;
		const uint64_t *found = map_get(&by_pid, s->pid);
		uint32_t flags = s->flags;
		struct startup_scan_process *p;

		if (idle_ns < HANGS_S * second_ns)
			flags &= ~(uint32_t)SPACE_BLOCKED;
		if (!found) {
			err = map_put(&by_pid, s->pid, list->nr);
			if (!err)
				err = vec_push(list, (struct startup_scan_process){
							     s->pid, flags, s->mm, idle_ns });
			continue;
		}
		p = &list->items[*found];
		p->flags |= flags;
		p->mm = s->mm;
		p->idle_ns = idle_ns < p->idle_ns ? idle_ns : p->idle_ns;
	}
	return err;
}

static int by_urgency(const void *a, const void *b)
{
	const struct startup_scan_process *x = a, *y = b;
	bool x_runs = x->flags & SPACE_RUNNABLE, y_runs = y->flags & SPACE_RUNNABLE;

	if (x_runs != y_runs)
		return x_runs ? -1 : 1;
	if (x->idle_ns != y->idle_ns)
		return x->idle_ns < y->idle_ns ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static bool is_wanted(const struct startup_scan_process *p)
{
	if (p->flags & SPACE_BLOCKED)
		return false;
	return p->flags & SPACE_RUNNABLE || p->idle_ns < LATELY_S * second_ns;
}

int startup_scan_sort(const struct task_space *spaces, size_t nr, bool all,
		      struct startup_scan_list *ret)
{
	_cleanup_(map_fini) struct map newest = { 0 };
	struct startup_scan_list list = { 0 };
	size_t kept = 0;
	int err;

	err = find_newest(spaces, nr, &newest);
	if (!err)
		err = put_together(spaces, nr, &newest, &list);
	if (err) {
		vec_free(&list);
		return err;
	}
	for (size_t i = 0; i < list.nr; i++)
		if (all || is_wanted(&list.items[i]))
			list.items[kept++] = list.items[i];
	list.nr = kept;
	if (kept)
		qsort(list.items, kept, sizeof(*list.items), by_urgency);
	*ret = list;
	return 0;
}

/* --- showing them ---------------------------------------------------------------------------- */

static void keep_space(void *ctx, const struct task_space *space)
{
	struct space_list *list = ctx;

	if (list->nr == THREADS_MAX || vec_push(list, *space))
		log_debug("process %u is shown later: too many threads", space->pid);
}

static int list_running(struct publisher *p, bool all, struct startup_scan_list *ret)
{
	struct space_list spaces = { 0 };
	int err = bpf_sampler_read_spaces(p->sampler, keep_space, &spaces);

	if (!err)
		err = startup_scan_sort(spaces.items, spaces.nr, all, ret);
	vec_free(&spaces);
	return err;
}

/* Its address space was read before its mappings, or what changed these: if it has executed
 * something in between, what is shown is void. */
static void show_one(struct publisher *p, const struct startup_scan_process *one, bool all)
{
	struct process *proc;

	if (process_get(p->processes, (int32_t)one->pid, &proc))
		return;
	if (!all && !publisher_has_runtime(p, proc))
		return;
	if (publisher_show(p, proc, one->mm))
		return;
	/* What was not sampled yet gives way for it: others that were just loaded. */
	if (all || !unwind_store_is_half_full(p->store))
		publisher_load_ahead(p, proc);
}

/* What is spent, and may be. */
struct startup_scan_budget {
	uint64_t until_ns, work_until_ns;
};

static bool is_spent(const struct startup_scan_budget *b)
{
	return now_ns() > b->until_ns || clock_ns(CLOCK_PROCESS_CPUTIME_ID) > b->work_until_ns;
}

/* True if there were some; *left of them were not looked at. */
static bool show_new(struct publisher *p, const struct startup_scan_options *o,
		     const struct startup_scan_budget *budget, struct map *seen, size_t *left)
{
	struct startup_scan_list list = { 0 };
	bool some = false, enough = false;

	if (list_running(p, o->all, &list)) {
		log_debug("cannot read the address spaces of processes");
		return false;
	}
	for (size_t i = 0; i < list.nr; i++) {
		const struct startup_scan_process *one = &list.items[i];
		const uint64_t *mm = map_get(seen, one->pid);

		if (mm && *mm == one->mm)
			continue;
		enough = enough || (!o->all && is_spent(budget)) || !o->go_on(o->ctx);
		if (enough || map_put(seen, one->pid, one->mm)) {
			++*left;
			continue;
		}
		show_one(p, one, o->all);
		some = true;
	}
	vec_free(&list);
	return some && !enough;
}

size_t startup_scan_show(struct publisher *p, const struct startup_scan_options *o)
{
	uint64_t begin_ns = now_ns();
	const struct startup_scan_budget budget = {
		.until_ns = begin_ns + LONGEST_S * second_ns,
		.work_until_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + WORK_NS,
	};
	_cleanup_(map_fini) struct map seen = { 0 };
	size_t left = 0;

	for (int i = 0; i < PASSES; i++)
		if (!show_new(p, o, &budget, &seen, &left))
			break;
	log_debug("%zu processes were looked at before the first sample, in %lu ms, %zu were not",
		  seen.nr, (unsigned long)((now_ns() - begin_ns) / 1000000), left);
	return left;
}
