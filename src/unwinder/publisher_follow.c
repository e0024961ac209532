// SPDX-License-Identifier: Apache-2.0
/*
 * Code that no call frame information covers, followed when a walk is in it (code_follow.h): for
 * each user within his share of the time, and what fails for one holds up nobody else.
 */
#include "unwinder/publisher.h"
#include "unwinder/publisher_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>

enum {
	HELD_NS = 200000000, /* what failed, or what there was no time for */
	ANON_SILENT_MAX = 8, /* frames of a process that its code of no file may tell nothing of,
				beside as many as it tells of */
};

static bool has_failed(const struct publisher *p, uint32_t user)
{
	const uint64_t *until = map_get(&p->follow_failed, user);

	return until && *until > p->store->now_ns;
}

bool publisher_may_follow(const struct publisher *p, const struct mapping_snapshot *b)
{
	return !has_failed(p, snapshot_user(b)) &&
	       time_shares_may(&p->follow_time, snapshot_user(b), now_ns());
}

/* Which function of a runtime that is, if its file has told. */
static const struct code_range *known_function(const struct publisher *p, uint32_t number,
					       uint64_t addr)
{
	const struct runtime_dso *dso =
		runtimes_dso(&p->runtimes, publisher_file(p, number)->index);
	size_t lo = 0, n = dso ? dso->functions.nr : 0;

	while (n) {
		size_t half = n / 2;

		if (dso->functions.items[lo + half].end <= addr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return dso && lo < dso->functions.nr && dso->functions.items[lo].start <= addr
		       ? &dso->functions.items[lo]
		       : NULL;
}

/* Code that cannot be read, or not any more, is not asked for again. */
static int follow(struct publisher *p, uint32_t number, uint64_t addr, bool is_caller,
		  struct code_rows *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct code_range *function = known_function(p, number, addr);
	int r = mapped_file_elf(p->processes, publisher_file(p, number), &elf);

	if (!r)
		r = function ? code_follow_function(elf, function, addr, is_caller, ret)
			     : code_follow(elf, addr, is_caller, ret);
	return r && r != -ENOMEM ? code_give_up(addr, ret) : r;
}

/* There was no room, or no memory: none is tried for him again for a while. */
static void fail(struct publisher *p, uint32_t user)
{
	uint64_t now = p->store->now_ns;
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&p->follow_failed, &i)))
		if (slot->value <= now)
			map_del(&p->follow_failed, slot->key);
	(void)map_put(&p->follow_failed, user, now + HELD_NS);
}

int publisher_follow(struct publisher *p, const struct mapping_snapshot *b, uint32_t number,
		     uint64_t addr, bool is_caller)
{
	struct code_rows rows = { 0 };
	uint32_t user = snapshot_user(b);
	int r;

	if (number >= p->files.nr || has_failed(p, user))
		return -ENOENT;
	if (!publisher_may_follow(p, b))
		return -EAGAIN;
	r = follow(p, number, addr, is_caller, &rows);
	if (!r)
		r = unwind_store_add_rows(p->store, number, &rows);
	code_rows_fini(&rows);
	if (r)
		fail(p, user);
	else
		p->nr_followed++;
	return r;
}

void publisher_followed_anon(struct publisher *p, int result)
{
	p->nr_anon++;
	p->nr_anon_silent += result != 0;
}

void publisher_took(struct publisher *p, const struct mapping_snapshot *b, uint64_t took_ns)
{
	time_shares_take(&p->follow_time, snapshot_user(b), now_ns(), took_ns);
}

int publisher_read_code(struct publisher *p, const struct mapping_snapshot *b, uint64_t addr,
			void *to, size_t size)
{
	const struct unwind_mapping *m = b ? publisher_mapping(p, b, addr) : NULL;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	uint64_t begin_ns;
	int r;

	if (!m || m->file == MAPPING_ANON)
		return -EFAULT;
	if (!time_shares_begin(&p->follow_time, snapshot_user(b), &begin_ns))
		return -EAGAIN;
	r = mapped_file_elf(p->processes, publisher_file(p, m->file), &elf);
	if (!r)
		r = elf_file_read_vaddr(elf, addr - m->bias, to, size);
	time_shares_end(&p->follow_time, snapshot_user(b), begin_ns);
	return r;
}

/* --- the kernel's asks ----------------------------------------------------------------------- */

static void set_held(struct publisher *p, struct published_process *v, uint64_t until_ns)
{
	v->asks_held_until_ns = until_ns;
	if (until_ns && (!p->asks_held_until_ns || until_ns < p->asks_held_until_ns))
		p->asks_held_until_ns = until_ns;
}

void publisher_hold_child(struct publisher *p, struct published_process *child,
			  const struct published_process *parent, uint32_t flags)
{
	uint64_t until = parent->asks_held_until_ns;

	/* The parent may be free again, and the child's entry older than that. */
	if (!until && flags & PROCESS_ASKS_HELD)
		until = p->store->now_ns + HELD_NS;
	set_held(p, child, until);
}

static void tell_held(struct publisher *p, struct process *proc, uint64_t until_ns)
{
	set_held(p, proc->user, until_ns);
	if (publisher_tell_kernel(p, proc))
		log_debug("cannot tell the kernel of process %d", proc->pid);
}

bool publisher_is_anon_silent(const struct published_process *v)
{
	return v->nr_anon_silent > ANON_SILENT_MAX + (v->nr_anon - v->nr_anon_silent);
}

/* What the last walk learned of its code in no file. */
static void count_anon(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;
	bool before = publisher_is_anon_silent(v);

	v->nr_anon += p->nr_anon;
	v->nr_anon_silent += p->nr_anon_silent;
	if (publisher_is_anon_silent(v) != before && publisher_tell_kernel(p, proc))
		log_debug("cannot tell the kernel of process %d", proc->pid);
}

void publisher_hold_asks(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;

	if (v && p->nr_anon)
		count_anon(p, proc);
	if (v && !v->asks_held_until_ns && !publisher_may_follow(p, v->snapshot))
		tell_held(p, proc, p->store->now_ns + HELD_NS);
}

void publisher_let_ask(struct publisher *p, uint64_t now)
{
	struct map_slot *slot;
	size_t i = 0;

	if (!p->asks_held_until_ns || p->asks_held_until_ns > now)
		return;
	p->asks_held_until_ns = 0;
	while ((slot = map_next(&p->processes->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		const struct published_process *v = proc->user;

		if (v && v->asks_held_until_ns)
			tell_held(p, proc, v->asks_held_until_ns > now ? v->asks_held_until_ns : 0);
	}
}
