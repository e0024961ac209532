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
	ASK_NS = 100000,     /* beside following it costs a copy of the stack and a walk here */
};

static uint32_t user_of(const struct block *b)
{
	return b ? b->user : UNWIND_USER_UNKNOWN;
}

static bool has_failed(const struct publisher *p, uint32_t user)
{
	const uint64_t *until = map_get(&p->follow_failed, user);

	return until && *until > p->store->now_ns;
}

bool publisher_may_follow(const struct publisher *p, const struct block *b)
{
	return !has_failed(p, user_of(b)) && time_shares_may(&p->follow_time, user_of(b), now_ns());
}

/* Code that cannot be read, or not any more, is not asked for again. */
static int follow(struct publisher *p, uint32_t number, uint64_t addr, bool is_caller,
		  struct code_rows *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	int r = mapped_file_elf(p->processes, publisher_file(p, number), &elf);

	if (!r)
		r = code_follow(elf, addr, is_caller, ret);
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

int publisher_follow(struct publisher *p, const struct block *b, uint32_t number, uint64_t addr,
		     bool is_caller)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct code_rows rows = { 0 };
	uint32_t user = user_of(b);
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
	time_shares_take(&p->follow_time, user, now_ns(),
			 ASK_NS + clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	return r;
}

/* --- the kernel's asks ----------------------------------------------------------------------- */

static void set_held(struct publisher *p, struct view *v, uint64_t until_ns)
{
	v->asks_held_until_ns = until_ns;
	if (until_ns && (!p->asks_held_until_ns || until_ns < p->asks_held_until_ns))
		p->asks_held_until_ns = until_ns;
}

void publisher_hold_child(struct publisher *p, struct view *child, const struct view *parent,
			  uint32_t flags)
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

void publisher_hold_asks(struct publisher *p, struct process *proc)
{
	struct view *v = proc->user;

	if (v && !v->asks_held_until_ns && !publisher_may_follow(p, v->block))
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
		const struct view *v = proc->user;

		if (v && v->asks_held_until_ns)
			tell_held(p, proc, v->asks_held_until_ns > now ? v->asks_held_until_ns : 0);
	}
}
