// SPDX-License-Identifier: Apache-2.0
/* What a list of threads is made of, and what of a sample of one; then this very process. */
#include "snapshot/live_stacks.h"
#include "snapshot/task_iter.h"
#include "snapshot/thread_stop.h"
#include "test.h"
#include "util/cleanup.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t put_record(uint8_t *to, uint32_t tid, uint32_t nr_kernel)
{
	struct task_record record = { .tid = tid,
				      .state = 'S',
				      .flags = TASK_USER,
				      .nr_switches = 7,
				      .pc = 0x1000 + tid,
				      .nr_kernel = nr_kernel,
				      .comm = "fifteen letters" };
	size_t size = sizeof(record);

	memcpy(to, &record, size);
	for (uint64_t i = 0; i < nr_kernel; i++, size += 8) {
		uint64_t addr = 0xffffffff81000000 + tid * 16 + i;

		memcpy(to + size, &addr, 8);
	}
	return size;
}

TEST(records_of_the_iterator_are_sorted_and_keep_their_kernel_stacks)
{
	struct live_threads t = { 0 };
	const struct live_thread *thread;
	uint8_t data[4096];
	size_t size = put_record(data, 30, 2);

	size += put_record(data + size, 10, 0);
	size += put_record(data + size, 20, 1);
	ASSERT_OK(task_iter_parse(data, size, &t));
	ASSERT_EQ(t.list.nr, 3);
	ASSERT_EQ(t.list.items[0].tid, 10);
	ASSERT_EQ(t.list.items[2].tid, 30);
	thread = live_threads_find(&t, 20);
	ASSERT_STR(thread->name, "fifteen letters");
	ASSERT_EQ(thread->pc, 0x1000 + 20);
	ASSERT_EQ(thread->nr_kernel, 1);
	ASSERT_EQ(t.kernel.items[thread->first_kernel], 0xffffffff81000000 + 320);
	ASSERT_PTR_NULL(live_threads_find(&t, 15));
	live_threads_fini(&t);
}

TEST(what_the_iterator_cut_off_or_cannot_mean_ends_the_list)
{
	struct live_threads t = { 0 };
	uint8_t data[8192];
	size_t one = put_record(data, 1, 3), size = one + put_record(data + one, 2, 3);

	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);

		memcpy(copy, data, cut);
		ASSERT_OK(task_iter_parse(copy, cut, &t));
		ASSERT_EQ(t.list.nr, cut >= one);
		free(copy);
	}
	put_record(data, 1, SAMPLE_MAX_KERNEL_FRAMES + 1);
	ASSERT_OK(task_iter_parse(data, sizeof(data), &t));
	ASSERT_EQ(t.list.nr, 0);
	live_threads_fini(&t);
}

TEST(a_thread_stood_still_only_if_nothing_speaks_against_it)
{
	struct live_thread a = { .nr_switches = 3 }, b = a;

	ASSERT(live_thread_stood_still(&a, &b));
	b.nr_switches++;
	ASSERT(!live_thread_stood_still(&a, &b));
	b = a;
	b.flags = TASK_ON_CPU;
	ASSERT(!live_thread_stood_still(&a, &b));
	ASSERT(!live_thread_stood_still(&b, &a));
}

/* --- a sample of a thread -------------------------------------------------------------------- */

struct sample {
	struct perf_event_header header;
	uint64_t nr_chain, chain[3];
	uint64_t abi;
#if defined(__x86_64__)
	uint64_t regs[17];
#else
	uint64_t regs[33];
#endif
	uint64_t room, stack[4], filled;
};

static struct sample make_sample(void)
{
	struct sample s = { .header = { PERF_RECORD_SAMPLE, 0, sizeof(s) },
			    .nr_chain = 3,
			    .chain = { PERF_CONTEXT_KERNEL, 0xffffffff81000010,
				       0xffffffff81000020 },
			    .abi = PERF_SAMPLE_REGS_ABI_64,
			    .room = 32,
			    .stack = { 1, 2, 3, 4 },
			    .filled = 24 };

	for (size_t i = 0; i < sizeof(s.regs) / 8; i++)
		s.regs[i] = 0x100 + i;
	return s;
}

TEST(a_sample_has_registers_by_their_dwarf_numbers_and_as_much_stack_as_was_filled)
{
	struct sample s = make_sample();
	struct caught_thread c = { 0 };

	ASSERT_OK(thread_event_parse(&s, sizeof(s), &c));
#if defined(__x86_64__)
	ASSERT_EQ(c.regs[0], 0x100);  /* rax */
	ASSERT_EQ(c.regs[1], 0x103);  /* rdx: perf's order is ax, bx, cx, dx */
	ASSERT_EQ(c.regs[3], 0x101);  /* rbx */
	ASSERT_EQ(c.regs[7], 0x107);  /* rsp */
	ASSERT_EQ(c.regs[8], 0x109);  /* r8, behind ip */
	ASSERT_EQ(c.regs[15], 0x110); /* r15 */
	ASSERT_EQ(c.pc, 0x108);
	ASSERT_EQ(c.stack_start, 0x107 - RAW_STACK_BELOW);
#else
	ASSERT_EQ(c.regs[0], 0x100);
	ASSERT_EQ(c.regs[31], 0x11f);
	ASSERT_EQ(c.pc, 0x120);
	ASSERT_EQ(c.stack_start, 0x11f - RAW_STACK_BELOW);
#endif
	ASSERT_EQ(c.nr_kernel, 2);
	ASSERT_EQ(c.kernel[0], 0xffffffff81000010);
	ASSERT_EQ(c.stack_size, RAW_STACK_BELOW + 24);
	ASSERT(!memcmp(c.stack + RAW_STACK_BELOW, s.stack, 24));
	ASSERT(!c.is_compat);
	free(c.stack);
}

TEST(a_damaged_sample_is_refused)
{
	struct caught_thread c = { .pc = 77 };
	struct sample s = make_sample();

	for (size_t cut = 0; cut < sizeof(s); cut++) {
		struct sample *copy = malloc(sizeof(s));

		*copy = s;
		copy->header.size = (uint16_t)cut;
		ASSERT_ERR(thread_event_parse(copy, cut, &c), EBADMSG);
		free(copy);
	}
	s.filled = 33;
	ASSERT_ERR(thread_event_parse(&s, sizeof(s), &c), EBADMSG);
	s = make_sample();
	s.nr_chain = UINT64_MAX;
	ASSERT_ERR(thread_event_parse(&s, sizeof(s), &c), EBADMSG);
	s = make_sample();
	s.header.type = PERF_RECORD_LOST;
	ASSERT_ERR(thread_event_parse(&s, sizeof(s), &c), EBADMSG);
	ASSERT_EQ(c.pc, 77);
}

/* --- a live process: a child of ours --------------------------------------------------------- */

static pid_t child;
static int to_child[2];

static void start_child(bool spin)
{
	char c;

	ASSERT_OK(pipe(to_child));
	child = fork();
	if (!child) {
		close(to_child[1]);
		if (spin)
			for (volatile int i = 0;;)
				i++;
		_exit(read(to_child[0], &c, 1) != 1);
	}
	ASSERT(child > 0);
}

static void end_child(bool spin)
{
	int status;

	if (spin)
		kill(child, SIGKILL);
	else
		ASSERT_EQ(write(to_child[1], "x", 1), 1);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	ASSERT(spin ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
	close(to_child[0]);
	close(to_child[1]);
}

/*
 * Until the child waits in read(). It says so before it has left the CPU, and only then is that
 * switch counted: a look that has seen it gone is repeated.
 */
static void read_blocked_child(struct live_threads *t)
{
	do
		ASSERT_OK(live_threads_read_proc(child, false, t));
	while (t->list.items[0].state != 'S' || t->list.items[0].flags & TASK_ON_CPU);
	ASSERT_OK(live_threads_read_proc(child, false, t));
}

TEST(of_a_blocked_thread_proc_tells_pc_and_stack_pointer)
{
	struct live_threads before = { 0 }, after = { 0 };
	const struct live_thread *thread;

	start_child(false);
	read_blocked_child(&before);
	ASSERT_OK(live_threads_read_proc(child, false, &after));
	ASSERT_EQ(before.list.nr, 1);
	thread = &before.list.items[0];
	ASSERT_EQ(thread->tid, child);
	ASSERT_EQ(thread->valid, live_stack_pointer);
	ASSERT(thread->pc && thread->flags & TASK_USER);
	ASSERT(live_thread_stood_still(thread, &after.list.items[0]));
	end_child(false);
	ASSERT_ERR(live_threads_read_proc(child, false, &after), ESRCH);
	live_threads_fini(&before);
	live_threads_fini(&after);
}

TEST(a_stop_gives_all_registers_and_the_wait_goes_on)
{
	struct live_threads t = { 0 };
	struct caught_thread c = { 0 };
	int r;

	start_child(false);
	read_blocked_child(&t);
	r = thread_stop_begin(child);
	if (r == -EPERM) { /* a sandbox */
		end_child(false);
		live_threads_fini(&t);
		return;
	}
	ASSERT_OK(r);
	while ((r = thread_stop_finish(child, &c, NULL, NULL)) == -EAGAIN)
		poll(NULL, 0, 1);
	ASSERT_OK(r);
	ASSERT_EQ(c.pc, t.list.items[0].pc);
	ASSERT(c.stack_size > 0);
	free(c.stack);
	end_child(false); /* its read() got the byte, not EINTR */
	live_threads_fini(&t);
}

TEST(an_event_catches_a_thread_at_work)
{
	_cleanup_(thread_event_free_p) struct thread_event *e = NULL;
	struct caught_thread c = { 0 };
	struct pollfd p;
	int r;

	start_child(true);
	r = thread_event_open(child, true, &e);
	if (r == -EACCES || r == -EPERM || r == -ENOENT) { /* perf_event_paranoid, a sandbox */
		end_child(true);
		return;
	}
	ASSERT_OK(r);
	p = (struct pollfd){ .fd = thread_event_fd(e), .events = POLLIN };
	ASSERT(poll(&p, 1, -1) == 1);
	ASSERT_OK(thread_event_read(e, &c));
	ASSERT(c.pc && c.stack_size > 0 && !c.is_compat);
	ASSERT_ERR(thread_event_read(e, &c), EAGAIN);
	free(c.stack);
	end_child(true);
}

TEST(a_process_that_is_not_there)
{
	const struct live_options options = { .pid = INT32_MAX, .max_frames = 16 };
	struct live_stacks s;
	struct profile profile;

	ASSERT_OK(profile_init(&profile));
	ASSERT_ERR(live_stacks_take(&s, &options, &profile), ESRCH);
	live_stacks_fini(&s);
	profile_fini(&profile);
}
