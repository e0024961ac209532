// SPDX-License-Identifier: Apache-2.0
/* The table's logic, by made-up events for processes that don't exist, and by our own /proc. */
#include "process/process_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/proc_stat.h"
#include "test.h"
#include "util/clock.h"

/* Beyond the largest PID there can be. */
enum { NOBODY = 5000000, PARENT, CHILD, OTHER };

static struct process_table t;
static struct {
	int nr_forgotten, nr_forked;
	int32_t forgotten, parent, child;
	size_t child_mappings;
} seen;

static void forget(void *ctx, struct process *proc)
{
	ASSERT(ctx == &seen);
	seen.nr_forgotten++;
	seen.forgotten = proc->pid;
}

static void forked(void *ctx, struct process *parent, struct process *child)
{
	ASSERT(ctx == &seen);
	seen.nr_forked++;
	seen.parent = parent->pid;
	seen.child = child->pid;
	seen.child_mappings = child->mappings.nr;
}

static void start(void)
{
	ASSERT_OK(process_table_init(&t));
	t.forget = forget;
	t.forked = forked;
	t.ctx = &seen;
	memset(&seen, 0, sizeof(seen));
}

static void apply(struct side_event event, const char *text)
{
	ASSERT_OK(process_table_apply(&t, &event, text));
}

static void do_fork(uint64_t time, int32_t parent, int32_t child)
{
	apply((struct side_event){ time, SIDE_FORK, .pid = child, .tid = child,
				   .parent_pid = parent },
	      "");
}

static void do_exec(uint64_t time, int32_t pid)
{
	apply((struct side_event){ time, SIDE_EXEC, .pid = pid, .tid = pid }, "");
	apply((struct side_event){ time, SIDE_COMM, .pid = pid, .tid = pid }, "prog");
}

static void do_exit(uint64_t time, int32_t pid)
{
	apply((struct side_event){ time, SIDE_EXIT, .pid = pid, .tid = pid }, "");
}

static void do_mmap(uint64_t time, int32_t pid, uint64_t from, uint64_t to, uint64_t inode,
		    const char *path)
{
	apply((struct side_event){ time, SIDE_MMAP, .pid = pid, .tid = pid, .start = from,
				   .len = to - from, .dev_major = 8, .inode = inode },
	      path);
}

static const struct mapped_file *file_at(int32_t pid, uint64_t addr)
{
	const struct mapping *m = process_mapping(process_find(&t, pid), addr);

	ASSERT_PTR_NONNULL(m);
	return t.files.items[m->file];
}

TEST(an_exec_makes_a_complete_process)
{
	struct process *proc;
	uint32_t version;

	start();
	do_exec(10, PARENT);
	do_mmap(11, PARENT, 0x1000, 0x3000, 7, "/usr/bin/prog");
	do_mmap(12, PARENT, 0x8000, 0x9000, 0, "[vdso]");
	do_mmap(13, PARENT, 0xa000, 0xb000, 0, "//anon");
	ASSERT_OK(process_get(&t, PARENT, &proc));
	ASSERT(proc->complete && !proc->exited && proc->version);
	ASSERT_EQ(proc->changed_ns, 13);
	ASSERT_EQ(proc->mappings.nr, 3);
	ASSERT_STR(file_at(PARENT, 0x1000)->path, "/usr/bin/prog");
	ASSERT_EQ(file_at(PARENT, 0x1000)->key.inode, 7);
	ASSERT_STR(file_at(PARENT, 0x8000)->path, "[vdso]");
	ASSERT_EQ(file_at(PARENT, 0xa000)->index, MAPPING_ANON);
	version = proc->version;
	do_mmap(14, PARENT, 0x1000, 0x3000, 7, "/usr/bin/prog");
	ASSERT_EQ(proc->version, version);
	do_exec(20, PARENT);
	ASSERT_EQ(seen.nr_forgotten, 1);
	ASSERT_EQ(proc->mappings.nr, 0);
	ASSERT(proc->complete && proc->version > version);
	process_table_fini(&t);
}

TEST(what_is_anonymous)
{
	static const struct {
		const char *path;
		uint64_t inode;
		bool anonymous;
	} rows[] = {
		{ "", 0, true },
		{ "//anon", 0, true },
		{ "[heap]", 0, true },
		{ "[stack]", 0, true },
		{ "[uprobes]", 0, true },
		{ "[anon:v8]", 0, true },
		{ "/dev/zero (deleted)", 1025, true },
		{ "/SYSV00000000 (deleted)", 3, true },
		{ "/anon_hugepage (deleted)", 3, true },
		{ "/memfd:jit (deleted)", 3, false },
		{ "//toolong", 3, false },
		{ "/usr/bin/x", 3, false },
		{ "[vdso]", 0, false },
	};

	start();
	do_exec(1, PARENT);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		do_mmap(2 + i, PARENT, 0x1000, 0x2000, rows[i].inode, rows[i].path);
		ck_assert_msg((file_at(PARENT, 0x1000)->index == MAPPING_ANON) == rows[i].anonymous,
			      "%s", rows[i].path);
	}
	process_table_fini(&t);
}

TEST(a_file_is_known_by_inode_and_path)
{
	uint32_t first;

	start();
	do_exec(1, PARENT);
	do_exec(1, OTHER);
	do_mmap(2, PARENT, 0x1000, 0x2000, 7, "/lib/a.so");
	first = file_at(PARENT, 0x1000)->index;
	do_mmap(3, OTHER, 0x5000, 0x6000, 7, "/lib/a.so (deleted)");
	ASSERT_EQ(file_at(OTHER, 0x5000)->index, first);
	ASSERT_STR(file_at(OTHER, 0x5000)->path, "/lib/a.so");
	/* Replaced: another inode at the path. And the inode used again by another file. */
	do_mmap(4, OTHER, 0x5000, 0x6000, 8, "/lib/a.so");
	ASSERT(file_at(OTHER, 0x5000)->index != first);
	do_mmap(5, OTHER, 0x5000, 0x6000, 7, "/lib/b.so");
	ASSERT(file_at(OTHER, 0x5000)->index != first);
	ASSERT_STR(file_at(OTHER, 0x5000)->path, "/lib/b.so");
	process_table_fini(&t);
}

TEST(a_fork_has_its_parents_mappings_and_goes_its_own_way)
{
	struct process *parent, *child;

	start();
	do_exec(1, PARENT);
	do_mmap(2, PARENT, 0x1000, 0x2000, 7, "/bin/sh");
	do_fork(3, PARENT, CHILD);
	ASSERT_EQ(seen.nr_forked, 1);
	ASSERT_EQ(seen.parent, PARENT);
	ASSERT_EQ(seen.child, CHILD);
	ASSERT_EQ(seen.child_mappings, 1);
	ASSERT_OK(process_get(&t, CHILD, &child));
	ASSERT_OK(process_get(&t, PARENT, &parent));
	ASSERT(child->complete && child->version != parent->version);
	do_mmap(4, PARENT, 0x3000, 0x4000, 8, "/lib/late.so");
	ASSERT_EQ(child->mappings.nr, 1);
	do_exec(5, CHILD);
	ASSERT_EQ(seen.forgotten, CHILD);
	ASSERT_EQ(child->mappings.nr, 0);
	ASSERT_EQ(parent->mappings.nr, 2);
	do_mmap(6, CHILD, 0x1000, 0x2000, 9, "/bin/ls");
	ASSERT_STR(file_at(CHILD, 0x1fff)->path, "/bin/ls");
	process_table_fini(&t);
}

TEST(a_fork_of_a_known_pid_means_that_the_old_one_is_gone)
{
	struct process *proc;

	start();
	do_exec(1, PARENT);
	do_mmap(2, PARENT, 0x1000, 0x2000, 7, "/bin/sh");
	do_exec(3, CHILD);
	do_mmap(4, CHILD, 0x5000, 0x6000, 8, "/bin/old");
	do_fork(5, PARENT, CHILD); /* its exit was lost */
	ASSERT_EQ(seen.nr_forgotten, 1);
	ASSERT_EQ(seen.forgotten, CHILD);
	ASSERT_OK(process_get(&t, CHILD, &proc));
	ASSERT_EQ(proc->mappings.nr, 1);
	ASSERT_EQ(proc->mappings.items[0].start, 0x1000);
	do_exit(6, CHILD);
	do_fork(7, PARENT, CHILD); /* and with it */
	ASSERT_OK(process_get(&t, CHILD, &proc));
	ASSERT(!proc->exited);
	process_table_expire(&t, 100);
	ASSERT(process_find(&t, CHILD) == proc);
	ASSERT_ERR(process_table_apply(&t,
				       &(struct side_event){ 8, SIDE_FORK, .pid = CHILD,
							     .tid = CHILD, .parent_pid = CHILD },
				       ""),
		   EINVAL);
	process_table_fini(&t);
}

TEST(a_parent_that_is_not_ours_to_see)
{
	struct process *child;

	start();
	do_fork(1, 0, CHILD);
	ASSERT_PTR_NULL(process_find(&t, 0));
	ASSERT_ERR(process_get(&t, CHILD, &child), ESRCH);
	do_exec(2, CHILD);
	ASSERT_OK(process_get(&t, CHILD, &child));
	/* A parent that had ended: its pid was used again, and that fork lost. */
	do_exec(3, PARENT);
	do_mmap(4, PARENT, 0x1000, 0x2000, 7, "/bin/old");
	do_exit(5, PARENT);
	do_fork(6, PARENT, OTHER);
	ASSERT_EQ(process_find(&t, OTHER)->mappings.nr, 0);
	ASSERT(!process_find(&t, OTHER)->complete);
	process_table_fini(&t);
}

TEST(the_dead_stay_until_they_expire)
{
	struct process *proc;

	start();
	do_exec(1, PARENT);
	do_mmap(2, PARENT, 0x1000, 0x2000, 7, "/bin/sh");
	do_exec(1, OTHER);
	do_exit(10, PARENT);
	do_exit(11, PARENT);
	process_table_expire(&t, 10);
	ASSERT_OK(process_get(&t, PARENT, &proc));
	ASSERT(proc->exited);
	ASSERT_EQ(proc->exit_ns, 10);
	ASSERT_EQ(proc->mappings.nr, 1);
	ASSERT_ERR(process_refresh(&t, proc), ESRCH);
	do_mmap(12, PARENT, 0x3000, 0x4000, 8, "/late");
	ASSERT_EQ(proc->mappings.nr, 1);
	process_table_expire(&t, 11);
	ASSERT_PTR_NULL(process_find(&t, PARENT));
	ASSERT_PTR_NONNULL(process_find(&t, OTHER));
	ASSERT_EQ(seen.nr_forgotten, 1);
	ASSERT_EQ(t.by_pid.nr, 1);
	process_table_fini(&t);
	ASSERT_EQ(seen.nr_forgotten, 2);
}

TEST(nobody_is_there)
{
	struct process *proc = NULL;

	start();
	ASSERT_ERR(process_get(&t, NOBODY, &proc), ESRCH);
	ASSERT_ERR(process_get(&t, 0, &proc), ESRCH);
	ASSERT_ERR(process_get(&t, -1, &proc), ESRCH);
	ASSERT_PTR_NULL(proc);
	ASSERT_EQ(t.by_pid.nr, 0);
	/* Events for a process that nobody asked for, except those that say all of it. */
	do_mmap(1, NOBODY, 0x1000, 0x2000, 7, "/bin/sh");
	do_exit(2, NOBODY);
	ASSERT_EQ(t.by_pid.nr, 0);
	process_table_fini(&t);
}

static void *exec_page(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT(p != MAP_FAILED);
	return p;
}

TEST(reads_a_living_process)
{
	struct process *proc, *again;
	const struct mapping *m;
	uint64_t here = (uintptr_t)exec_page;
	struct proc_stat stat;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	ASSERT(proc->complete && proc->version);
	ASSERT_OK(proc_stat_read(getpid(), &stat));
	ASSERT_EQ(proc->start_time, stat.start_time);
	m = process_mapping(proc, here);
	ASSERT_PTR_NONNULL(m);
	ASSERT_PTR_NONNULL(strstr(t.files.items[m->file]->path, "process_test"));
	for (size_t i = 0; i < proc->mappings.nr; i++)
		ASSERT(proc->mappings.items[i].start < 1ull << 63);
	ASSERT_OK(process_get(&t, getpid(), &again));
	ASSERT(again == proc);
	ASSERT(process_table_bytes(&t) > sizeof(t));
	process_table_fini(&t);
}

TEST(code_that_a_process_has_is_told_from_another_programs)
{
	uint8_t *here = (uint8_t *)(uintptr_t)process_find, code[16];
	struct process *proc;
	const struct mapping *m;
	uint64_t addr = (uintptr_t)here;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	m = process_mapping(proc, addr);
	ASSERT_PTR_NONNULL(m);
	ASSERT_OK(process_open_file(&t, proc, m, t.files.items[m->file]));
	memcpy(code, here, sizeof(code));
	ASSERT(process_has_code(&t, proc, addr, code, sizeof(code)));
	code[0] = 0xcc; /* somebody's breakpoint */
	ASSERT(process_has_code(&t, proc, addr, code, sizeof(code)));
	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)~code[i];
	ASSERT(!process_has_code(&t, proc, addr, code, sizeof(code)));
	/* No file, or nothing at all. */
	ASSERT(process_has_code(&t, proc, (uintptr_t)&code, code, sizeof(code)));
	ASSERT(process_has_code(&t, proc, 16, code, sizeof(code)));
	process_table_fini(&t);
}

TEST(refresh_takes_the_difference)
{
	struct process *proc;
	uint32_t version;
	void *p;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	version = proc->version;
	ASSERT_OK(process_refresh(&t, proc));
	ASSERT_EQ(proc->version, version);
	p = exec_page();
	ASSERT_OK(process_refresh(&t, proc));
	ASSERT(proc->version > version);
	ASSERT_PTR_NONNULL(process_mapping(proc, (uintptr_t)p));
	version = proc->version;
	munmap(p, 4096);
	ASSERT_OK(process_refresh(&t, proc));
	ASSERT(proc->version > version);
	ASSERT_PTR_NULL(process_mapping(proc, (uintptr_t)p));
	ASSERT_EQ(seen.nr_forgotten, 0);
	process_table_fini(&t);
}

TEST(events_from_before_the_reading_are_old_news)
{
	struct process *proc;
	uint64_t before = now_ns(), addr = 0x10000;
	size_t nr;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	nr = proc->mappings.nr;
	do_mmap(before, getpid(), addr, addr + 0x1000, 7, "/unmapped/since");
	do_fork(before, getppid(), getpid());
	do_exec(before, getpid());
	ASSERT(process_find(&t, getpid()) == proc);
	ASSERT_EQ(proc->mappings.nr, nr);
	ASSERT_PTR_NULL(process_mapping(proc, addr));
	ASSERT_EQ(seen.nr_forgotten, 0);
	do_mmap(now_ns(), getpid(), addr, addr + 0x1000, 7, "/mapped/now");
	ASSERT_PTR_NONNULL(process_mapping(proc, addr));
	process_table_fini(&t);
}

/* Known, then exec, then read again before the event of the exec came. */
TEST(an_exec_that_is_read_before_it_is_told_is_still_a_new_image)
{
	struct process *proc;
	uint64_t exec_ns;
	uint32_t version;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	exec_ns = now_ns();
	ASSERT_OK(process_refresh(&t, proc));
	version = proc->version;
	do_exec(exec_ns, getpid());
	ASSERT_EQ(seen.nr_forgotten, 1);
	ASSERT(proc->version > version);
	ASSERT(proc->complete && proc->mappings.nr);
	process_table_fini(&t);
}

TEST(a_reused_pid_shows_in_the_start_time)
{
	struct process *proc;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	proc->start_time--;
	ASSERT_OK(process_refresh(&t, proc));
	ASSERT_EQ(seen.nr_forgotten, 1);
	ASSERT(proc->complete && proc->mappings.nr);
	process_table_fini(&t);
}

TEST(a_dead_fork_without_exec_has_its_living_parents_mappings)
{
	struct process *proc, *self;

	start();
	do_fork(1, getpid(), PARENT);
	do_fork(2, PARENT, CHILD);
	do_mmap(3, CHILD, 0x10000, 0x11000, 7, "/lib/of_its_own.so");
	do_exit(4, CHILD);
	do_exit(4, PARENT);
	ASSERT_OK(process_get(&t, CHILD, &proc));
	ASSERT_OK(process_get(&t, getpid(), &self));
	ASSERT_EQ(proc->mappings.nr, self->mappings.nr + 1);
	ASSERT_PTR_NONNULL(process_mapping(proc, (uintptr_t)exec_page));
	ASSERT_STR(file_at(CHILD, 0x10000)->path, "/lib/of_its_own.so");
	ASSERT_OK(process_get(&t, PARENT, &proc));
	ASSERT_EQ(proc->mappings.nr, self->mappings.nr);
	process_table_fini(&t);
}

TEST(not_so_if_the_parent_runs_another_program_since)
{
	struct process *proc;

	start();
	do_fork(1, getpid(), CHILD);
	do_exec(2, getpid());
	do_exit(3, CHILD);
	ASSERT_ERR(process_get(&t, CHILD, &proc), ESRCH);
	process_table_fini(&t);
}

/* A child that has ended, and that nobody has waited for. */
static pid_t zombie(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	ASSERT_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	return pid;
}

TEST(zombies_and_kernel_threads_have_no_mappings)
{
	struct process *proc;
	struct proc_stat stat;
	pid_t pid;

	start();
	pid = zombie();
	ASSERT_OK(process_get(&t, pid, &proc));
	ASSERT_EQ(proc->mappings.nr, 0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_OK(process_get(&t, pid, &proc));
	if (!proc_stat_read(2, &stat) && proc_stat_is_kernel_thread(&stat)) {
		ASSERT_OK(process_get(&t, 2, &proc));
		ASSERT_EQ(proc->mappings.nr, 0);
	}
	process_table_fini(&t);
}

TEST(only_what_is_unknown_and_lives_is_read_ahead_of_its_events)
{
	struct process *proc = NULL;
	pid_t pid;

	start();
	pid = zombie();
	/* Its events tell what it mapped: they must not be old news. */
	ASSERT_ERR(process_get_unknown(&t, pid, &proc), ESRCH);
	ASSERT_PTR_NULL(process_find(&t, pid));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_ERR(process_get_unknown(&t, NOBODY, &proc), ESRCH);
	do_fork(1, PARENT, CHILD);
	ASSERT_ERR(process_get_unknown(&t, CHILD, &proc), EEXIST);
	ASSERT_PTR_NULL(proc);
	ASSERT_OK(process_get_unknown(&t, getpid(), &proc));
	ASSERT(proc->mappings.nr > 0);
	ASSERT_ERR(process_get_unknown(&t, getpid(), &proc), EEXIST);
	process_table_fini(&t);
}

static void *wait_for_input(void *fd)
{
	char c;

	(void)!read(*(int *)fd, &c, 1);
	_exit(0);
}

TEST(a_process_lives_on_in_its_threads)
{
	struct process *proc;
	struct proc_stat stat;
	int gate[2];
	pid_t pid;

	ASSERT_OK(pipe(gate));
	start();
	pid = fork();
	if (!pid) {
		pthread_t thread;

		close(gate[1]);
		if (pthread_create(&thread, NULL, wait_for_input, &gate[0]))
			_exit(1);
		pthread_exit(NULL);
	}
	do
		ASSERT_OK(proc_stat_read(pid, &stat));
	while (stat.state != 'Z');
	ASSERT_OK(process_get(&t, pid, &proc));
	ASSERT_PTR_NONNULL(process_mapping(proc, (uintptr_t)wait_for_input));
	close(gate[1]);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	process_table_fini(&t);
}

TEST(after_a_loss_everything_is_looked_at_again)
{
	struct process *proc;
	uint64_t image;
	void *p;

	start();
	do_exec(1, NOBODY);
	ASSERT_OK(process_get(&t, getpid(), &proc));
	image = proc->image;
	p = exec_page();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	ASSERT_PTR_NULL(process_mapping(proc, (uintptr_t)p));
	apply((struct side_event){ 2, SIDE_LOST, .lost = 1 }, "");
	ASSERT_OK(process_get(&t, getpid(), &proc));
	ASSERT_PTR_NONNULL(process_mapping(proc, (uintptr_t)p));
	/* It may be another program: that is told from its address space, by who shows it. */
	ASSERT_EQ(seen.nr_forgotten, 0);
	ASSERT(proc->image != image);
	/* The exit of the one that isn't there was among them. */
	ASSERT(process_table_must_expire(&t));
	process_table_expire(&t, 0);
	ASSERT(!process_table_must_expire(&t));
	ASSERT(process_find(&t, NOBODY)->exited);
	process_table_expire(&t, UINT64_MAX);
	ASSERT_PTR_NULL(process_find(&t, NOBODY));
	ASSERT(process_find(&t, getpid()) == proc);
	process_table_fini(&t);
}

TEST(mappings_are_bounded_and_what_is_over_is_counted)
{
	struct process *proc;

	start();
	do_exec(1, PARENT);
	for (uint64_t i = 0; i < MAPPINGS_MAX + 10; i++)
		do_mmap(2 + i, PARENT, i * 0x2000, i * 0x2000 + 0x1000, 0, "//anon");
	ASSERT_OK(process_get(&t, PARENT, &proc));
	ASSERT_EQ(proc->mappings.nr, MAPPINGS_MAX);
	ASSERT_EQ(t.nr_mappings_capped, 10);
	process_table_fini(&t);
}

/* munmap is not reported: at the limit, /proc tells which mappings are still there. */
TEST(at_the_limit_what_is_unmapped_makes_room)
{
	uint64_t when = now_ns() + 3600000000000; /* after all readings */
	struct process *proc;
	size_t nr;

	start();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	nr = proc->mappings.nr;
	for (uint64_t i = 0; i < MAPPINGS_MAX; i++)
		do_mmap(when, getpid(), i * 0x2000, i * 0x2000 + 0x1000, 0, "//anon");
	ASSERT_EQ(proc->mappings.nr, MAPPINGS_MAX);
	ASSERT_OK(process_get(&t, getpid(), &proc));
	ASSERT_EQ(proc->mappings.nr, nr);
	ASSERT_EQ(seen.nr_forgotten, 0);
	process_table_fini(&t);
}

TEST(processes_are_bounded)
{
	struct side_event event = { .time_ns = 1, .type = SIDE_EXEC };

	start();
	t.forget = NULL;
	for (int32_t i = 0; i < PROCESSES_MAX; i++) {
		event.pid = 5000000 + i;
		ASSERT_OK(process_table_apply(&t, &event, ""));
	}
	event.pid++;
	ASSERT_ERR(process_table_apply(&t, &event, ""), ENOSPC);
	ASSERT_EQ(t.nr_processes_capped, 1);
	process_table_fini(&t);
}

TEST(many_events_of_many_processes)
{
	start();
	for (uint64_t i = 1; i <= 20000; i++) {
		int32_t pid = PARENT + (int32_t)(i % 1000);

		do_fork(i * 10, PARENT, pid + 1);
		do_exec(i * 10 + 1, pid + 1);
		do_mmap(i * 10 + 2, pid + 1, 0x1000, 0x2000, i % 50 + 1, "/bin/x");
		do_exit(i * 10 + 3, pid + 1);
		if (i % 100 == 0)
			process_table_expire(&t, i * 10);
	}
	process_table_expire(&t, UINT64_MAX);
	ASSERT(t.by_pid.nr <= 1);
	ASSERT_EQ(t.files.nr, MAPPED_BEYOND + 1 + 50);
	process_table_fini(&t);
}

static void map_file(int32_t pid, uint64_t at, uint64_t inode)
{
	do_mmap(1000 + inode, pid, at, at + 0x1000, inode, "/bin/x");
}

static bool has_room(uint64_t inode)
{
	process_table_expire(&t, 0);
	map_file(OTHER, 0x1000, inode);
	return strcmp(file_at(OTHER, 0x1000)->path, "[too many files]");
}

TEST(files_of_nobody_are_forgotten)
{
	start();
	do_exec(1, PARENT);
	do_exec(1, OTHER);
	for (uint64_t i = 1; i < 4 * FILES_MAX; i++)
		map_file(PARENT, 0x1000, i);
	while (!has_room(4 * FILES_MAX))
		;
	ASSERT_STR(file_at(OTHER, 0x1000)->path, "/bin/x");
	/* Numbers are used again. */
	ASSERT(t.files.nr <= FILES_MAX);
	process_table_fini(&t);
}

static struct process *maps_many(int32_t pid, uint64_t first, void *user)
{
	struct process *proc;

	do_exec(1, pid);
	proc = process_find(&t, pid);
	proc->user = user;
	for (uint64_t i = 0; i < MAPPINGS_MAX; i++)
		map_file(pid, i * 0x2000, first + i);
	return proc;
}

TEST(who_maps_most_files_makes_room)
{
	struct process *some[2 * FILES_MAX / MAPPINGS_MAX];
	char user;

	start();
	t.forget = NULL;
	do_exec(1, OTHER);
	map_file(OTHER, 0x1000, 1);
	for (uint32_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		some[i] = maps_many(PARENT + 10 + (int32_t)i, 100 + i * MAPPINGS_MAX, &user);
	ASSERT(t.nr_files_capped > 0);
	map_file(OTHER, 0x5000, 2);
	ASSERT_STR(file_at(OTHER, 0x5000)->path, "[too many files]");
	ASSERT(process_find(&t, OTHER)->mappings.beyond);
	while (!has_room(3))
		;
	/* Not those who have few. */
	ASSERT_EQ(file_at(OTHER, 0x1000)->key.inode, 3);
	ASSERT_STR(file_at(OTHER, 0x1000)->path, "/bin/x");
	for (uint32_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		ASSERT(some[i]->mappings.nr > 0);
	process_table_fini(&t);
}

TEST(who_is_not_asked_for_keeps_little_when_room_is_short)
{
	struct process *proc;
	char user;

	start();
	t.forget = NULL;
	proc = maps_many(OTHER, 1, &user);
	do_exec(1, PARENT);
	for (uint64_t i = 0; i < MAPPINGS_MAX; i++)
		map_file(PARENT, i * 0x2000, i + 1);
	for (int32_t i = 1; i <= 2 * ALL_MAPPINGS_MAX / MAPPINGS_MAX; i++)
		do_fork(5000 + (uint64_t)i, PARENT, PARENT + 100 + i);
	ASSERT(process_table_must_expire(&t));
	process_table_expire(&t, 0);
	ASSERT(process_table_bytes(&t) < (size_t)3 * ALL_MAPPINGS_MAX * sizeof(struct mapping));
	ASSERT_EQ(proc->mappings.nr, MAPPINGS_MAX);
	proc = process_find(&t, PARENT);
	ASSERT_EQ(proc->mappings.nr, 0);
	ASSERT(!proc->complete && proc->shed);
	process_table_fini(&t);
}

/* A process of that user's that was sampled, with so many mappings of one page. */
static struct process *add_mapped(struct process_table *table, int32_t pid, uint32_t owner,
				  size_t nr)
{
	struct process *proc;

	ASSERT_OK(process_add(table, pid, &proc));
	proc->owner_known = true;
	proc->owner = owner;
	proc->user = proc; /* that is not wanted is given up before */
	for (size_t i = 0; i < nr; i++) {
		const struct mapping m = { .start = i << 13, .end = (i << 13) + 4096 };

		ASSERT_OK(process_add_mapping(table, proc, &m));
	}
	return proc;
}

/* Room for mappings is taken from who has most of it, however many processes he has. */
TEST(who_maps_most_in_all_gives_way)
{
	enum { USER = 4000000001, VICTIM, PROCESSES = 205, EACH = 2600, MOST = 4000 };
	struct process_table table;
	struct process *victim, *others[PROCESSES];
	size_t nr = 0;

	ASSERT_OK(process_table_init(&table));
	victim = add_mapped(&table, 1000, VICTIM, MOST);
	for (int i = 0; i < PROCESSES; i++)
		others[i] = add_mapped(&table, 2000 + i, USER, EACH);
	process_table_expire(&table, 0);
	ASSERT_EQ(victim->mappings.nr, MOST);
	for (int i = 0; i < PROCESSES; i++)
		nr += others[i]->mappings.nr;
	ASSERT(nr + MOST <= ALL_MAPPINGS_MAX && nr + MOST > ALL_MAPPINGS_MAX - EACH);
	process_table_fini(&table);
}
