// SPDX-License-Identifier: Apache-2.0
/*
 * The process table: applies side-band events, and reads /proc for processes that somebody asks
 * for.
 *
 * The two sources overlap in time. What is read from /proc at time T already contains the events up
 * to T, so that those are not applied to the process again (`read_ns`).
 */
#include "process/process_internal.h"

#include <stdio.h>
#include <string.h>

#include "process/proc_identity.h"
#include "process/proc_stat.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* A fork of a fork of a fork ..., none of which ran a program of its own. */
enum {
	FORK_DEPTH_MAX = 32,
	SEARCH_PART = 10, /* of a CPU, for searching what processes map for files */
};
enum {
	MAPPINGS_LEFT = 64, /* of so few nothing is taken away */
	READ_TAKES_NS =
		2000000, /* no longer, or it is not read again at once when events were lost: */
	READ_SHARE = 20, /* of a CPU that takes at most one part in so many */
	LOOKS_MAX = 512, /* at processes whose exits may have been lost: each costs 10 us */
	MANY_PROCESSES = PROCESSES_MAX / 16,
};
/* A process that goes on making mappings beyond MAPPINGS_MAX is read again at most that often. */
#define CROWDED_INTERVAL_NS 1000000000ull

void process_touch(struct process_table *t, struct process *proc, uint64_t when_ns)
{
	if (!++t->private->last_version)
		t->private->last_version = 1;
	proc->version = t->private->last_version;
	proc->changed_ns = when_ns;
}

void process_new_image(struct process_table *t, struct process *proc, uint64_t when_ns)
{
	proc->owner_known = false;
	proc->image = ++t->private->last_image;
	proc->image_ns = when_ns;
	proc->parent_pid = 0;
	process_touch(t, proc, when_ns);
}

static void forget(struct process_table *t, struct process *proc)
{
	if (t->forget)
		t->forget(t->ctx, proc);
}

static void process_free(struct process_table *t, struct process *proc)
{
	forget(t, proc);
	vec_free(&proc->mappings);
	free(proc);
}

static void drop(struct process_table *t, struct process *proc)
{
	map_del(&t->by_pid, (uint32_t)proc->pid);
	process_free(t, proc);
}

int process_table_init(struct process_table *t)
{
	int r;

	*t = (struct process_table){ 0 };
	t->private = calloc(1, sizeof(*t->private));
	if (!t->private)
		return -ENOMEM;
	slow_files_init(t);
	t->private->search_time.part = SEARCH_PART;
	r = mount_ns_init(t);
	if (!r)
		r = files_init(t);
	if (r)
		process_table_fini(t);
	return r;
}

void process_table_fini(struct process_table *t)
{
	struct map_slot *slot;
	size_t i = 0;

	if (!t->private)
		return;
	while ((slot = map_next(&t->by_pid, &i)))
		process_free(t, (struct process *)(uintptr_t)slot->value);
	map_fini(&t->by_pid);
	slow_files_fini(t);
	time_shares_fini(&t->private->search_time);
	files_fini(t);
	mount_ns_fini(t);
	free(t->private);
	*t = (struct process_table){ 0 };
}

size_t process_table_bytes(const struct process_table *t)
{
	size_t bytes = sizeof(*t) + sizeof(*t->private) + files_bytes(t), i = 0;
	struct map_slot *slot;

	bytes += map_bytes(&t->by_pid);
	while ((slot = map_next(&t->by_pid, &i))) {
		const struct process *proc = (const struct process *)(uintptr_t)slot->value;

		bytes += sizeof(*proc) + proc->mappings.cap * sizeof(*proc->mappings.items);
	}
	return bytes;
}

struct process *process_find(const struct process_table *t, int32_t pid)
{
	uint64_t *value = map_get(&t->by_pid, (uint32_t)pid);

	return value ? (struct process *)(uintptr_t)*value : NULL;
}

int process_new(struct process_table *t, int32_t pid, uint64_t when_ns, struct process **ret)
{
	struct process *proc;

	if (t->by_pid.nr >= PROCESSES_MAX) {
		t->nr_processes_capped++;
		return -ENOSPC;
	}
	proc = calloc(1, sizeof(*proc));
	if (!proc)
		return -ENOMEM;
	proc->pid = pid;
	if (map_put(&t->by_pid, (uint32_t)pid, (uintptr_t)proc)) {
		free(proc);
		return -ENOMEM;
	}
	process_new_image(t, proc, when_ns);
	*ret = proc;
	return 0;
}

/* What a fork's parent is now; NULL if it is in another PID namespace, or there is no room. */
static struct process *parent_of_fork(struct process_table *t, const struct side_event *event)
{
	struct process *parent = process_find(t, event->parent_pid);

	if (parent && parent->exited) {
		drop(t, parent); /* what we know is of an earlier one of that pid */
		parent = NULL;
	}
	/* Known from now on, so that its exec is noticed: see inherit_mappings(). */
	if (!parent &&
	    (event->parent_pid <= 0 || process_new(t, event->parent_pid, event->time_ns, &parent)))
		return NULL;
	if (!parent->mount_ns || parent->root_due)
		mount_ns_note(t, parent, event->time_ns);
	return parent;
}

static int apply_fork(struct process_table *t, const struct side_event *event)
{
	struct process *child = process_find(t, event->pid), *parent;
	int r;

	if (event->pid == event->parent_pid)
		return -EINVAL;
	if (child && !child->exited && child->read_ns >= event->time_ns)
		return 0; /* it is the new one, read from /proc since */
	if (child)
		drop(t, child);
	parent = parent_of_fork(t, event);
	r = process_new(t, event->pid, event->time_ns, &child);
	if (r || !parent)
		return r;
	child->parent_pid = parent->pid;
	child->parent_image = parent->image;
	child->mount_ns = parent->mount_ns;
	child->stale = parent->stale;
	if (t->private->nr_mappings > ALL_MAPPINGS_MAX && parent->mappings.nr > MAPPINGS_LEFT) {
		child->shed = true; /* as its parent is or will be */
	} else {
		r = mapping_list_copy(&child->mappings, &parent->mappings);
		t->private->nr_mappings += child->mappings.nr;
	}
	child->complete = parent->complete && !r && !child->shed;
	if (t->forked)
		t->forked(t->ctx, parent, child);
	return r;
}

static int apply_exec(struct process_table *t, const struct side_event *event)
{
	struct process *proc = process_find(t, event->pid);
	int r;

	if (proc && proc->exited) {
		drop(t, proc);
		proc = NULL;
	}
	if (!proc) {
		r = process_new(t, event->pid, event->time_ns, &proc);
		if (r)
			return r;
	} else if (proc->image_ns >= event->time_ns) {
		return 0;
	} else {
		forget(t, proc);
		process_new_image(t, proc, event->time_ns);
	}
	if (proc->read_ns < event->time_ns) {
		proc->mappings.nr = 0;
		proc->mappings.beyond = false;
		proc->stale = proc->crowded = proc->shed = false;
		proc->complete = true;
	}
	proc->root_due = true;
	proc->at_home = false;
	return 0;
}

/* As mapping_list_carve(). `ret`: the file. */
static int add_mapping(struct process_table *t, struct mapping_list *list,
		       const struct maps_entry *e, uint32_t *ret)
{
	struct mapping m = { .start = e->start, .end = e->end, .offset = e->offset };
	struct file_key key = { e->dev_major, e->dev_minor, e->inode };
	int r = files_lookup(t, &key, e->path, &m.file);

	if (r)
		return r;
	*ret = m.file;
	if (m.file == MAPPING_ANON)
		m.offset = 0;
	list->beyond |= m.file == MAPPED_BEYOND;
	r = mapping_list_carve(list, &m);
	if (r == -ENOSPC)
		t->nr_mappings_capped++;
	return r;
}

/*
 * Where a program lives is looked at when it maps the first file that nobody was seen to map in our
 * own root: what a shell runs all the time is found there, whoever runs it.
 */
static void look_for_root(struct process_table *t, struct process *proc, uint32_t file,
			  uint64_t when_ns)
{
	struct mapped_file *mapped = t->files.items[file];

	if (file == MAPPING_ANON || file == MAPPED_BEYOND || mapped->at_home)
		return;
	if (proc->root_due)
		mount_ns_note(t, proc, when_ns);
	mapped->at_home = proc->at_home;
}

static int apply_mmap(struct process_table *t, const struct side_event *event, const char *text)
{
	struct process *proc = process_find(t, event->pid);
	struct maps_entry e = { .start = event->start,
				.end = event->start + event->len,
				.offset = event->offset,
				.dev_major = event->dev_major,
				.dev_minor = event->dev_minor,
				.inode = event->inode,
				.path = text };
	uint32_t file = MAPPING_ANON;
	int r;

	if (!proc || proc->exited || proc->shed || proc->read_ns >= event->time_ns ||
	    e.end <= e.start)
		return 0;
	files_expire(t);
	r = add_mapping(t, &proc->mappings, &e, &file);
	look_for_root(t, proc, file, event->time_ns);
	if (r > 0)
		process_touch(t, proc, event->time_ns);
	if (r >= 0)
		return 0;
	if (r == -ENOSPC) {
		proc->crowded |= event->time_ns > proc->read_ns + CROWDED_INTERVAL_NS;
		return 0;
	}
	proc->stale = true;
	return r;
}

static void apply_exit(struct process_table *t, const struct side_event *event)
{
	struct process *proc = process_find(t, event->pid);

	if (!proc || proc->exited)
		return;
	proc->exited = true;
	proc->exit_ns = event->time_ns;
}

static void apply_lost(struct process_table *t)
{
	struct map_slot *slot;
	size_t i = 0;

	t->private->lost_again = t->private->lost;
	t->private->lost = true;
	while ((slot = map_next(&t->by_pid, &i)))
		((struct process *)(uintptr_t)slot->value)->stale = true;
}

int process_table_apply(struct process_table *t, const struct side_event *event, const char *text)
{
	switch (event->type) {
	case SIDE_FORK:
		return apply_fork(t, event);
	case SIDE_EXEC:
		return apply_exec(t, event);
	case SIDE_MMAP:
		return apply_mmap(t, event, text + event->text);
	case SIDE_EXIT:
		apply_exit(t, event);
		return 0;
	case SIDE_LOST:
		apply_lost(t);
		return 0;
	case SIDE_COMM:
	case SIDE_THREAD:
	case SIDE_THREAD_EXIT:
	case SIDE_CODE:
	case SIDE_CODE_GONE:
		return 0;
	}
	return -EINVAL;
}

/* --- /proc ------------------------------------------------------------------------------------ */

struct read_state {
	struct process_table *t;
	struct mapping_list list;
};

static int read_entry(void *ctx, const struct maps_entry *e)
{
	struct read_state *state = ctx;
	uint32_t file;
	int r;

	/* The vsyscall page is emulated: no code runs there. */
	if (!e->exec || e->start >> 63)
		return 0;
	r = add_mapping(state->t, &state->list, e, &file);
	return r < 0 && r != -ENOSPC ? r : 0;
}

/* Puts `list` in the place of the process's mappings; takes its memory. */
static void replace_mappings(struct process_table *t, struct process *proc,
			     struct mapping_list *list, uint64_t when_ns)
{
	bool changed = !mapping_list_equal(&proc->mappings, list);

	/* Among the lost events may have been an exec. What `user` shows is of an address space,
	 * and void by that if there was one. */
	if (changed && proc->stale)
		process_new_image(t, proc, when_ns);
	vec_free(&proc->mappings);
	proc->mappings = *list;
	*list = (struct mapping_list){ 0 };
	proc->read_ns = when_ns;
	proc->stale = proc->crowded = proc->shed = false;
	if (changed || !proc->complete)
		process_touch(t, proc, when_ns);
	proc->complete = true;
}

/*
 * 0: read. -ENODATA: it has no address space (any more): a zombie, a kernel thread. -ESRCH: no such
 * process.
 */
static int read_mappings(struct process_table *t, struct process *proc)
{
	struct read_state state = { .t = t, .list.max = proc->mappings.max };
	uint64_t when_ns = now_ns(), begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct proc_stat stat;
	int r = proc_stat_read(proc->pid, &stat);

	if (r)
		return r;
	if (proc->start_time && proc->start_time != stat.start_time) {
		forget(t, proc);
		proc->mappings.nr = 0;
		proc->complete = false;
		process_new_image(t, proc, when_ns);
	}
	proc->start_time = stat.start_time;
	r = proc_stat_is_kernel_thread(&stat) ? 0 : proc_maps_read(proc->pid, read_entry, &state);
	if (r > 0)
		replace_mappings(t, proc, &state.list, when_ns);
	proc->read_took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	vec_free(&state.list);
	if (r > 0)
		mount_ns_note(t, proc, when_ns);
	/* Newer kernels say ESRCH for what has no address space. */
	return r > 0 ? 0 : !r || r == -ESRCH ? -ENODATA : r;
}

/*
 * A process that has ended without a program of its own has the mappings its parent had; the
 * parent's now are as good if it still has the image of the fork.
 */
static int inherit_mappings(struct process_table *t, struct process *proc, unsigned int depth)
{
	struct process *parent = process_find(t, proc->parent_pid);
	_cleanup_free_ struct mapping *own = NULL;
	size_t nr_own = proc->mappings.nr;
	int r;

	if (!proc->parent_pid || !parent || parent->image != proc->parent_image || !depth)
		return -ESRCH;
	if (!parent->complete && read_mappings(t, parent)) {
		r = inherit_mappings(t, parent, depth - 1);
		if (r)
			return r;
	}
	if (parent->image != proc->parent_image)
		return -ESRCH;
	own = TAKE_PTR(proc->mappings.items);
	proc->mappings = (struct mapping_list){ 0 };
	r = mapping_list_copy(&proc->mappings, &parent->mappings);
	for (size_t i = 0; !r && i < nr_own; i++)
		if (mapping_list_carve(&proc->mappings, &own[i]) == -ENOMEM)
			r = -ENOMEM;
	if (r)
		return r;
	proc->complete = true;
	process_touch(t, proc, now_ns());
	return 0;
}

static int complete(struct process_table *t, struct process *proc)
{
	int r = proc->exited ? -ESRCH : read_mappings(t, proc);
	bool dead = r == -ENODATA || r == -ESRCH;

	if (!dead)
		return r;
	if (proc->complete || !inherit_mappings(t, proc, FORK_DEPTH_MAX))
		return 0;
	if (r == -ENODATA) {
		proc->complete = true;
		return 0;
	}
	return r;
}

/* What is known of its mappings is not all that can be. */
static bool is_due(const struct process *proc)
{
	return proc->stale || proc->crowded ||
	       (proc->mappings.beyond && now_ns() > proc->read_ns + CROWDED_INTERVAL_NS);
}

/* With thousands of mappings. */
static bool is_too_soon(const struct process *proc)
{
	return proc->read_took_ns > READ_TAKES_NS &&
	       now_ns() < proc->read_ns + READ_SHARE * proc->read_took_ns;
}

int process_get(struct process_table *t, int32_t pid, struct process **ret)
{
	struct process *proc = process_find(t, pid);
	bool is_new = !proc;
	int r = 0;

	if (pid <= 0)
		return -ESRCH;
	if (proc && proc->complete && (!is_due(proc) || proc->exited)) {
		*ret = proc;
		return 0;
	}
	if (proc && proc->stale && is_too_soon(proc))
		return -EAGAIN;
	files_expire(t);
	if (is_new) {
		r = process_new(t, pid, now_ns(), &proc);
		if (r)
			return r;
	}
	r = complete(t, proc);
	if (r) {
		if (is_new)
			drop(t, proc);
		return r;
	}
	*ret = proc;
	return 0;
}

int process_get_unknown(struct process_table *t, int32_t pid, struct process **ret)
{
	struct process *proc;
	int r;

	if (process_find(t, pid))
		return -EEXIST;
	r = process_get(t, pid, &proc);
	if (r)
		return r;
	if (!proc->mappings.nr) {
		drop(t, proc);
		return -ESRCH;
	}
	*ret = proc;
	return 0;
}

void process_set_owner(struct process *proc, uint32_t user)
{
	proc->owner = user;
	proc->owner_known = true;
	proc->owner_version = proc->version;
}

int process_refresh(struct process_table *t, struct process *proc)
{
	int r;

	if (proc->exited)
		return -ESRCH;
	r = read_mappings(t, proc);
	return r == -ENODATA ? 0 : r;
}

/* After a loss, exits that were not reported are found out here, some at a time. */
static void find_exited(struct process_table *t)
{
	struct map_slot *slot;

	for (size_t nr = 0; nr < LOOKS_MAX; nr++) {
		slot = map_next(&t->by_pid, &t->private->looked_at);
		if (!slot) {
			t->private->looked_at = 0;
			t->private->lost = t->private->lost_again;
			t->private->lost_again = false;
			return;
		}
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		struct side_event event = { now_ns(), SIDE_EXIT, .pid = proc->pid };
		struct proc_stat stat;
		int r = proc->exited ? 0 : proc_stat_read(proc->pid, &stat);

		if (!proc->exited && (r == -ESRCH || (!r && proc_stat_is_over(&stat))))
			apply_exit(t, &event);
	}
}

/* Gives up the mappings of those that nobody asked for: they are read again if somebody does. */
static size_t shed_unwanted(struct process_table *t)
{
	struct map_slot *slot;
	size_t i = 0, nr = 0;

	while ((slot = map_next(&t->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;

		if (proc->user || proc->mappings.nr <= MAPPINGS_LEFT)
			continue;
		nr += proc->mappings.nr;
		vec_free(&proc->mappings);
		proc->mappings.beyond = false;
		proc->complete = false;
		proc->shed = true;
	}
	return nr;
}

static uint32_t owner_of(struct process *proc)
{
	if (!proc->owner_known)
		proc->owner = proc_user(proc->pid, FILE_OWNER_NONE);
	proc->owner_known = true;
	return proc->owner;
}

/* Whose processes that have more than MAPPINGS_LEFT have most of all; false: nobody's do. */
static bool find_greediest(const struct process_table *t, uint32_t *ret)
{
	struct map nr_of = { 0 };
	struct map_slot *slot;
	uint64_t most = 0;
	size_t i = 0;

	while ((slot = map_next(&t->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		uint64_t *nr, sum = proc->mappings.nr;

		if (proc->mappings.nr <= MAPPINGS_LEFT)
			continue;
		nr = map_get(&nr_of, owner_of(proc));
		sum += nr ? *nr : 0;
		/* Without memory he goes whom we know to have so many. */
		if (sum > most)
			*ret = owner_of(proc);
		most = sum > most ? sum : most;
		(void)map_put(&nr_of, owner_of(proc), sum);
	}
	map_fini(&nr_of);
	return most;
}

/*
 * Takes half of the mappings away from the longest process of the user who has most of all, for
 * good. How many.
 */
static size_t halve_longest(struct process_table *t)
{
	struct process *longest = NULL;
	struct map_slot *slot;
	uint32_t owner = 0;
	size_t i = 0, nr;

	if (!find_greediest(t, &owner))
		return 0;
	while ((slot = map_next(&t->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;

		if (proc->mappings.nr > MAPPINGS_LEFT && owner_of(proc) == owner &&
		    (!longest || proc->mappings.nr > longest->mappings.nr))
			longest = proc;
	}
	if (!longest)
		return 0;
	nr = longest->mappings.nr - longest->mappings.nr / 2;
	longest->mappings.nr -= nr;
	longest->mappings.max = longest->mappings.nr;
	process_touch(t, longest, now_ns());
	return nr;
}

/* Those that ended before that go, and the mappings of the others are counted. */
static size_t drop_exited(struct process_table *t, uint64_t before_ns)
{
	struct map_slot *slot;
	size_t i = 0, nr = 0;

	while ((slot = map_next(&t->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;

		if (proc->exited && proc->exit_ns < before_ns)
			drop(t, proc);
		else
			nr += proc->mappings.nr;
	}
	return nr;
}

/*
 * There is room for all that ordinary machines have; if not, those pay that took most of it. `nr`
 * mappings there are.
 */
static void make_room(struct process_table *t, size_t nr)
{
	size_t wanted, got, n;

	t->private->nr_mappings = nr;
	wanted = nr > ALL_MAPPINGS_MAX ? nr - ALL_MAPPINGS_MAX : 0;
	if (t->private->files_full && wanted < MAPPINGS_MAX)
		wanted = MAPPINGS_MAX;
	if (!wanted)
		return;
	got = shed_unwanted(t);
	while (got < wanted && (n = halve_longest(t)))
		got += n;
	t->private->nr_mappings -= got;
	t->nr_mappings_capped += got;
}

void process_table_expire(struct process_table *t, uint64_t before_ns)
{
	size_t nr;

	if (t->private->lost)
		find_exited(t);
	nr = drop_exited(t, before_ns);
	mount_ns_expire(t, before_ns);
	files_expire(t);
	make_room(t, nr);
}

bool process_table_must_expire(const struct process_table *t)
{
	return t->private->lost || t->private->files_full || t->by_pid.nr > MANY_PROCESSES ||
	       t->private->nr_mappings > ALL_MAPPINGS_MAX / 2;
}
