// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_names.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "symbol/perf_map.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/owners.h"

enum {
	PIECE = 1 << 20, /* of a map: about two milliseconds */
	TURN_NS = 4 * 1000 * 1000,
	/* Between two turns: so many times what the last one took of the CPU. */
	PAUSE = 20,
	/* Maps that are open at a time, since they are larger than a piece. */
	OPEN_MAX = 16,
	/* Places for processes that are root's and ours: owners_may_take(). */
	PROCESSES_RESERVED = JIT_PROCESSES_MAX / 4,
};

/* Between two looks at a process whose map is not there, or has none of the names: the first pause
 * is shorter than that between two ticks, each is twice the one before. */
#define PAUSE_MIN_NS UINT64_C(100000000)
#define PAUSE_MAX_NS UINT64_C(2000000000)

void jit_names_init(struct jit_names *j, struct profile *profile,
		    const struct process_table *processes)
{
	*j = (struct jit_names){ .profile = profile, .processes = processes };
}

static void process_fini(struct jit_process *p)
{
	perf_search_free(p->search);
	vec_free(&p->waiting.items);
	vec_free(&p->searched.items);
}

void jit_names_fini(struct jit_names *j)
{
	for (size_t i = 0; i < j->waiting.nr; i++)
		process_fini(&j->waiting.items[i]);
	map_fini(&j->by_pid);
	map_fini(&j->nr_of_owner);
	map_fini(&j->bytes_of_owner);
	vec_free(&j->waiting);
}

/* --- who waits -------------------------------------------------------------------------------- */

static size_t nr_of(const struct jit_process *p)
{
	return p->waiting.items.nr + p->searched.items.nr;
}

/* The last one takes its place. */
static void drop_process(struct jit_names *j, struct jit_process *p)
{
	struct jit_process *last = &j->waiting.items[j->waiting.nr - 1];

	j->nr_frames -= nr_of(p);
	j->nr_open -= p->holds;
	map_del(&j->by_pid, p->pid);
	owners_give_back(&j->nr_of_owner, p->owner);
	process_fini(p);
	if (p != last) {
		*p = *last;
		*map_get(&j->by_pid, p->pid) = (uint64_t)(p - j->waiting.items);
	}
	j->waiting.nr--;
}

static bool has_place(const struct jit_names *j, uint32_t owner)
{
	size_t nr_free = JIT_PROCESSES_MAX - j->waiting.nr;

	return owner_is_trusted(owner)
		       ? nr_free
		       : owners_may_take(&j->nr_of_owner, owner, nr_free, PROCESSES_RESERVED);
}

/* Room for another process: one that has no map, as far as one can see, goes; of that owner. */
static bool make_room(struct jit_names *j, uint32_t owner)
{
	for (size_t i = 0; i < j->waiting.nr; i++) {
		struct jit_process *p = &j->waiting.items[i];

		if (p->no_map && p->owner == owner) {
			j->nr_dropped += nr_of(p);
			drop_process(j, p);
			return true;
		}
	}
	return false;
}

static uint64_t image_of(const struct jit_names *j, uint32_t pid)
{
	const struct process *proc = process_find(j->processes, (int32_t)pid);

	return proc ? proc->image : 0;
}

/* 0, -ENOMEM, or -ENOSPC. */
static int find_process(struct jit_names *j, uint32_t pid, struct jit_process **ret)
{
	struct jit_process new = { .pid = pid,
				   .image = image_of(j, pid),
				   .owner = JIT_OWNER_UNKNOWN };
	const uint64_t *known = map_get(&j->by_pid, pid);
	int r;

	if (known) {
		*ret = &j->waiting.items[*known];
		if (!(*ret)->image || (*ret)->image == new.image)
			return 0;
		/* The number is another process's by now, or another program's. */
		drop_process(j, *ret);
	}
	r = perf_map_user((int)pid, &new.owner);
	if (r && r != -ESRCH)
		log_debug("the user of process %u: %s", pid, strerror(-r));
	if (!has_place(j, new.owner) && !make_room(j, new.owner))
		return -ENOSPC;
	r = vec_reserve(&j->waiting, j->waiting.nr + 1);
	if (!r)
		r = map_put(&j->by_pid, pid, j->waiting.nr);
	if (!r)
		r = owners_take(&j->nr_of_owner, new.owner);
	if (r)
		return r;
	j->waiting.items[j->waiting.nr++] = new;
	*ret = &j->waiting.items[j->waiting.nr - 1];
	return 0;
}

/* Has one who is not trusted more than half of all frames? */
static bool find_greedy(const struct jit_names *j, uint32_t *ret)
{
	size_t votes = 0, nr = 0;
	uint32_t owner = 0;

	/* Who has more than half is what is left when others' are set off against each other. */
	for (size_t i = 0; i < j->waiting.nr; i++) {
		const struct jit_process *p = &j->waiting.items[i];

		if (!votes)
			owner = p->owner;
		if (p->owner == owner)
			votes += nr_of(p);
		else if (nr_of(p) <= votes)
			votes -= nr_of(p);
		else {
			votes = nr_of(p) - votes;
			owner = p->owner;
		}
	}
	for (size_t i = 0; i < j->waiting.nr; i++)
		nr += j->waiting.items[i].owner == owner ? nr_of(&j->waiting.items[i]) : 0;
	*ret = owner;
	return !owner_is_trusted(owner) && nr > j->nr_frames / 2;
}

/*
 * One frame of the process that has most gives way, of all or of the one user who has most. False:
 * that is `p` itself.
 */
static bool take_from_largest(struct jit_names *j, const struct jit_process *p)
{
	struct jit_process *largest = NULL;
	uint32_t greedy;
	bool any = find_greedy(j, &greedy);

	for (size_t i = 0; i < j->waiting.nr; i++) {
		struct jit_process *other = &j->waiting.items[i];

		if (other->waiting.items.nr && (!any || other->owner == greedy) &&
		    (!largest || nr_of(other) > nr_of(largest)))
			largest = other;
	}
	if (!largest || ((!any || p->owner == greedy) && nr_of(largest) <= nr_of(p)))
		return false;
	largest->waiting.items.nr--;
	j->nr_frames--;
	j->nr_dropped++;
	return true;
}

static void end_pause(struct jit_process *p)
{
	p->next_ns = p->pause_ns = 0;
}

int jit_names_want(struct jit_names *j, uint32_t pid, uint32_t frame)
{
	struct jit_process *p;
	int r = find_process(j, pid, &p);

	if (r == -ENOSPC || (!r && j->nr_frames >= JIT_FRAMES_MAX && !take_from_largest(j, p))) {
		j->nr_dropped++;
		return 0;
	}
	if (!r)
		r = vec_push(&p->waiting.items, frame);
	if (r)
		return r;
	p->looked = false;
	/* A map that is there may have grown. */
	if (!p->no_map)
		end_pause(p);
	j->nr_frames++;
	return 0;
}

/* --- looking for names ------------------------------------------------------------------------ */

struct guard {
	struct perf_map_guard guard; /* comes first */
	const struct process_table *processes;
};

static bool may_open(const struct perf_map_guard *guard, int pid, int path_fd)
{
	return process_may_ask(((const struct guard *)guard)->processes, pid, path_fd);
}

static int open_map(const struct jit_names *j, struct jit_process *p, int *ret)
{
	const struct process *proc = process_find(j->processes, (int32_t)p->pid);
	struct guard guard = { .guard.may_open = may_open, .processes = j->processes };

	/* Without anything known of it, /proc tells: a map of another one has other addresses. */
	if (p->image && (!proc || proc->image != p->image)) {
		p->ended = true;
		return perf_map_open_gone((int)p->pid, &guard.guard, ret);
	}
	p->ended = (proc && proc->exited) || (kill((pid_t)p->pid, 0) && errno == ESRCH);
	guard.guard.cached = process_root_may_hang(j->processes, (int32_t)p->pid);
	return perf_map_open((int)p->pid, &guard.guard, ret);
}

static int begin_search(struct jit_names *j, struct jit_process *p, int fd)
{
	_cleanup_free_ uint64_t *addresses = calloc(p->waiting.items.nr + 1, sizeof(*addresses));
	int r;

	if (!addresses) {
		close(fd);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->waiting.items.nr; i++)
		addresses[i] = j->profile->frames.items[p->waiting.items.items[i]].address;
	r = perf_search_new(fd, addresses, p->waiting.items.nr, &p->search);
	if (r)
		return r;
	p->searched = p->waiting;
	p->waiting = (struct jit_frames){ 0 };
	return 0;
}

/* Takes room for so many bytes of names. An owner may have as many as are left for others. */
static bool take_bytes(struct jit_names *j, struct jit_process *p, size_t nr)
{
	const uint64_t *found = map_get(&j->bytes_of_owner, p->owner);
	size_t of_owner = (found ? *found : 0) + nr, left = JIT_NAMES_MAX - j->name_bytes;

	if (p->name_bytes + nr > JIT_PROCESS_NAMES_MAX || nr > left)
		return false;
	if (!owner_is_trusted(p->owner) && of_owner > left - nr)
		return false;
	if (map_put(&j->bytes_of_owner, p->owner, of_owner))
		return false;
	p->name_bytes += nr;
	j->name_bytes += nr;
	return true;
}

/* Of frame number `i` of those searched for: whether it has one now. */
static bool take_name(struct jit_names *j, struct jit_process *p, size_t i)
{
	char name[PERF_MAP_NAME_MAX + 1];

	if (p->searched.items.items[i] == PROFILE_GONE)
		return true;
	if (perf_search_name(p->search, i, name))
		return false;
	if (!take_bytes(j, p, strlen(name) + 1)) {
		j->nr_dropped++;
		return true;
	}
	profile_name_frame(j->profile, p->searched.items.items[i], name);
	return true;
}

/* Those without a name wait on, if the process may give them one yet. */
static int end_search(struct jit_names *j, struct jit_process *p, bool whole)
{
	int r = 0;

	p->looked = whole && !p->waiting.items.nr;
	for (size_t i = 0; i < p->searched.items.nr && !r; i++) {
		j->nr_frames--;
		if (take_name(j, p, i) || (whole && p->ended))
			continue;
		r = vec_push(&p->waiting.items, p->searched.items.items[i]);
		j->nr_frames += !r;
	}
	vec_free(&p->searched.items);
	perf_search_free(p->search);
	p->search = NULL;
	j->nr_open -= p->holds;
	p->holds = false;
	return r;
}

/* A piece of the process's search, or all of a small one. */
static int look_further(struct jit_names *j, struct jit_process *p)
{
	int fd = -1, r;

	if (!p->search) {
		r = open_map(j, p, &fd);
		p->no_map = r != 0;
		if (!r)
			r = begin_search(j, p, fd);
		if (r)
			return r;
	}
	r = perf_search_run(p->search, PIECE);
	if (r <= 0)
		return end_search(j, p, true);
	/* What is newest, at least, was looked at. */
	if (!p->holds && j->nr_open >= OPEN_MAX)
		return end_search(j, p, false);
	j->nr_open += !p->holds;
	p->holds = true;
	return 0;
}

/* Most processes that have no names for us never will. */
static void pause_process(struct jit_process *p)
{
	p->pause_ns = p->pause_ns ? 2 * p->pause_ns : PAUSE_MIN_NS;
	if (p->pause_ns > PAUSE_MAX_NS)
		p->pause_ns = PAUSE_MAX_NS;
	p->next_ns = now_ns() + p->pause_ns;
}

static void look(struct jit_names *j, struct jit_process *p)
{
	size_t nr = nr_of(p);
	int r = look_further(j, p);

	if (r) {
		p->looked = true;
		if (r != -ENOENT)
			log_debug("perf map of process %u: %s", p->pid, strerror(-r));
	}
	if (nr_of(p) < nr)
		end_pause(p);
	else if (p->looked)
		pause_process(p);
	if (!p->search && (p->ended ? p->looked : !nr_of(p)))
		drop_process(j, p);
}

/* What has ended may take its map along. */
static bool is_due(const struct jit_names *j, const struct jit_process *p, uint64_t now)
{
	const struct process *proc;

	if (now >= p->next_ns)
		return true;
	proc = process_find(j->processes, (int32_t)p->pid);
	return p->image ? !proc || proc->exited || proc->image != p->image : proc && proc->exited;
}

/* Each process at most once; `unlooked`: all that have not been looked at, and no others. */
static void look_around(struct jit_names *j, uint64_t until_ns, clockid_t clock, bool unlooked)
{
	uint64_t now = now_ns();

	for (size_t i = j->waiting.nr; i-- && j->waiting.nr;) {
		struct jit_process *p;

		j->next = (j->next + 1) % j->waiting.nr;
		p = &j->waiting.items[j->next];
		if (unlooked ? p->looked : !is_due(j, p, now))
			continue;
		if (clock_ns(clock) >= until_ns)
			return;
		look(j, p);
	}
}

void jit_names_tick(struct jit_names *j)
{
	const clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
	uint64_t begin;

	if (!j->waiting.nr || now_ns() < j->at_ns)
		return;
	begin = clock_ns(clock);
	look_around(j, begin + TURN_NS, clock, false);
	j->at_ns = now_ns() + PAUSE * (clock_ns(clock) - begin);
}

void jit_names_collected(struct jit_names *j, const struct profile_collected *c)
{
	for (size_t i = 0; i < j->waiting.nr; i++) {
		struct jit_process *p = &j->waiting.items[i];
		size_t kept = 0;

		for (size_t k = 0; k < p->waiting.items.nr; k++) {
			uint32_t to = profile_moved(&c->frames, p->waiting.items.items[k]);

			if (to != PROFILE_GONE)
				p->waiting.items.items[kept++] = to;
		}
		j->nr_frames -= p->waiting.items.nr - kept;
		p->waiting.items.nr = kept;
		/* Their places are the search's. */
		for (size_t k = 0; k < p->searched.items.nr; k++)
			p->searched.items.items[k] =
				profile_moved(&c->frames, p->searched.items.items[k]);
		/* Names that nobody shows any more take no room. */
		p->name_bytes = 0;
	}
	j->name_bytes = 0;
	map_clear(&j->bytes_of_owner);
}

size_t jit_names_finish(struct jit_names *j, uint64_t max_ns)
{
	uint64_t until = now_ns() + max_ns;
	size_t left;

	for (size_t i = 0; i < j->waiting.nr; i++)
		j->waiting.items[i].looked = false;
	do {
		left = 0;
		look_around(j, until, CLOCK_MONOTONIC, true);
		for (size_t i = 0; i < j->waiting.nr; i++)
			if (!j->waiting.items[i].looked)
				left += nr_of(&j->waiting.items[i]);
	} while (left && now_ns() < until);
	return left;
}
