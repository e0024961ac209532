// SPDX-License-Identifier: Apache-2.0
/* The side band against real processes. What a drain returns is complete, so nothing here waits. */
#include "process/proc_stat.h"
#include "process/side_band.h"
#include "util/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* Others' news are in the rings, too: room for what they have while we get no turn. */
enum { RING_PAGES = 1024 };

static struct cpu_set *cpus;
static struct side_band *sb;
static struct side_events batch;
static int nr_absent; /* so often perf does not know a CPU yet */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);
/* perf_event_open() alone is called through it. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
	if (number == SYS_perf_event_open && nr_absent && nr_absent--) {
		errno = ENODEV;
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e);
}

static int open_pages(uint32_t pages)
{
	int r = cpu_set_open(&cpus);

	if (r)
		return r;
	r = side_band_open(cpus, pages, &sb);
	if (r)
		cpu_set_free(cpus);
	return r;
}

static void close_both(void)
{
	side_band_free(sb);
	cpu_set_free(cpus);
}

TEST_SKIP_REASON()
{
	if (open_pages(1))
		return "perf_event_open() of all processes is not allowed here";
	close_both();
	return NULL;
}

static void start(void)
{
	ASSERT_OK(open_pages(RING_PAGES));
}

static void stop(void)
{
	close_both();
	side_events_fini(&batch);
}

static const char *text_of(const struct side_event *event)
{
	return batch.text.items + event->text;
}

static bool is_of(const struct side_event *event, pid_t pid)
{
	return event->pid == pid;
}

/* The n-th event of that type and pid in the batch, or NULL. */
static const struct side_event *nth(enum side_event_type type, pid_t pid, size_t n)
{
	for (size_t i = 0; i < batch.events.nr; i++)
		if (batch.events.items[i].type == type && is_of(&batch.events.items[i], pid) &&
		    !n--)
			return &batch.events.items[i];
	return NULL;
}

static uint64_t lost_in_batch(void)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < batch.events.nr; i++)
		if (batch.events.items[i].type == SIDE_LOST)
			lost += batch.events.items[i].lost;
	return lost;
}

static const struct side_event *mmap_of(pid_t pid, const char *path)
{
	const struct side_event *event;

	for (size_t n = 0; (event = nth(SIDE_MMAP, pid, n)); n++)
		if (!strcmp(text_of(event), path))
			return event;
	return NULL;
}

static int run(pid_t pid)
{
	int status;

	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static pid_t run_program(const char *path)
{
	pid_t pid = fork();

	if (!pid) {
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	ASSERT_EQ(run(pid), 0);
	return pid;
}

TEST(a_program_from_fork_to_exit)
{
	const struct side_event *fork_event, *exec, *comm, *exe, *vdso, *exit_event;
	struct stat st;
	pid_t pid;

	start();
	pid = run_program("/bin/true");
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(fork_event = nth(SIDE_FORK, pid, 0));
	ASSERT_PTR_NONNULL(exec = nth(SIDE_EXEC, pid, 0));
	ASSERT_PTR_NONNULL(comm = nth(SIDE_COMM, pid, 0));
	ASSERT_PTR_NONNULL(exe = mmap_of(pid, "/usr/bin/true"));
	ASSERT_PTR_NONNULL(vdso = mmap_of(pid, "[vdso]"));
	ASSERT_PTR_NONNULL(exit_event = nth(SIDE_EXIT, pid, 0));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 1));
	ASSERT_EQ(fork_event->parent_pid, getpid());
	ASSERT_STR(text_of(comm), "true");
	ASSERT(fork_event < exec && exec + 1 == comm && comm < exe && exe < vdso &&
	       vdso < exit_event);
	ASSERT(fork_event->time_ns < exec->time_ns && exec->time_ns == comm->time_ns);
	ASSERT_OK(stat("/usr/bin/true", &st));
	ASSERT_EQ(exe->inode, st.st_ino);
	ASSERT_EQ(vdso->inode, 0);
	ASSERT_EQ(vdso->offset, 0);
	for (size_t i = 1; i < batch.events.nr; i++)
		ASSERT(batch.events.items[i - 1].time_ns <= batch.events.items[i].time_ns);
	/* All of it was taken. */
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NULL(nth(SIDE_FORK, pid, 0));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
	stop();
}

/* Forks on one CPU, runs on the other: the child's events must stand behind its fork. */
TEST(causes_stand_before_effects_over_all_cpus)
{
	enum { CHILDREN = 200 };
	pid_t pids[CHILDREN];
	bool forked[CHILDREN] = { 0 }, gone[CHILDREN] = { 0 };

	start();
	for (size_t n = 0; n < CHILDREN; n++) {
		pids[n] = fork();
		if (!pids[n]) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		/* In the middle of what it does. */
		ASSERT_OK(side_band_drain(sb, &batch));
		for (size_t i = 0; i < batch.events.nr; i++)
			for (size_t k = 0; k <= n; k++) {
				if (batch.events.items[i].pid != pids[k])
					continue;
				ASSERT(!gone[k]);
				ASSERT(forked[k] || batch.events.items[i].type == SIDE_FORK);
				forked[k] = true;
				gone[k] = batch.events.items[i].type == SIDE_EXIT;
			}
	}
	for (size_t n = 0; n < CHILDREN; n++)
		run(pids[n]);
	stop();
}

TEST(dlopen_and_mprotect_are_seen)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct side_event *event;
	struct stat st;
	void *lib, *p;

	start();
	lib = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	ASSERT_PTR_NONNULL(lib);
	p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT(p != MAP_FAILED);
	ASSERT_OK(mprotect((char *)p + page, page, PROT_READ | PROT_EXEC));
	ASSERT_OK(side_band_drain(sb, &batch));
	if (dlsym(RTLD_DEFAULT, "cbrt") == NULL) { /* else a sanitizer had it loaded */
		event = mmap_of(getpid(), "/usr/lib/x86_64-linux-gnu/libm.so.6");
		ASSERT_PTR_NONNULL(event);
		ASSERT_OK(stat("/usr/lib/x86_64-linux-gnu/libm.so.6", &st));
		ASSERT_EQ(event->inode, st.st_ino);
		ASSERT(event->offset > 0);
	}
	event = mmap_of(getpid(), "//anon");
	ASSERT_PTR_NONNULL(event);
	ASSERT_EQ(event->start, (uintptr_t)p + page);
	ASSERT_EQ(event->len, page);
	dlclose(lib);
	stop();
}

static void *rename_thread(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	*(pid_t *)arg = gettid();
	return NULL;
}

TEST(threads_have_names_and_an_end_of_their_own)
{
	const struct side_event *comm, *end;
	pthread_t thread;
	pid_t tid;

	start();
	ASSERT_OK(pthread_create(&thread, NULL, rename_thread, &tid));
	ASSERT_OK(pthread_join(thread, NULL));
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NULL(nth(SIDE_FORK, getpid(), 0));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, getpid(), 0));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, tid, 0));
	ASSERT_PTR_NONNULL(comm = nth(SIDE_COMM, getpid(), 0));
	ASSERT_EQ(comm->tid, tid);
	ASSERT_STR(text_of(comm), "worker");
	ASSERT_PTR_NONNULL(end = nth(SIDE_THREAD_EXIT, getpid(), 0));
	ASSERT_EQ(end->tid, tid);
	ASSERT(end->time_ns >= comm->time_ns);
	stop();
}

static int gate[2];

static void *wait_at_gate(void *arg __attribute__((unused)))
{
	char c;

	/* The leader is a zombie by now, or will be soon: the process lives until this returns. */
	while (read(gate[0], &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void wait_for_state(pid_t pid, char state)
{
	char path[64], line[512];

	for (char seen = 0; seen != state; sched_yield()) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "r");
		ASSERT_PTR_NONNULL(f);
		ASSERT_PTR_NONNULL(fgets(line, sizeof(line), f));
		fclose(f);
		seen = strrchr(line, ')')[2];
	}
}

int __real_proc_stat_read(int32_t pid, struct proc_stat *ret);
int __wrap_proc_stat_read(int32_t pid, struct proc_stat *ret);

/* At processes of this test: others' ends are looked at, too. */
enum { MANY = 300 };
static pid_t pids_looked_for[MANY];
static unsigned int nr_looks;

int __wrap_proc_stat_read(int32_t pid, struct proc_stat *ret)
{
	for (int i = 0; i < MANY; i++)
		nr_looks += pid == pids_looked_for[i];
	return __real_proc_stat_read(pid, ret);
}

static pid_t fork_half_dead(void)
{
	pid_t pid = fork();

	if (!pid) {
		pthread_t thread;

		close(gate[1]);
		if (pthread_create(&thread, NULL, wait_at_gate, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	return pid;
}

TEST(many_leaders_that_ended_first_cost_a_drain_little)
{
	/* Of each 4,096 in all, others' among them, 64 are looked at in a drain. */
	enum { LOOKS_MAX = 2 * 64, DRAINS_MAX = 4096 / 64 + 1 };
	pid_t *pids = pids_looked_for;
	size_t nr_ended = 0;

	ASSERT_OK(pipe2(gate, O_CLOEXEC));
	start();
	for (int i = 0; i < MANY; i++)
		pids[i] = fork_half_dead();
	close(gate[0]);
	for (int i = 0; i < MANY; i++)
		wait_for_state(pids[i], 'Z');
	ASSERT_OK(side_band_drain(sb, &batch));
	nr_looks = 0;
	for (int drains = 0; !nr_looks && drains < DRAINS_MAX; drains++)
		ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT(nr_looks && nr_looks <= LOOKS_MAX);
	close(gate[1]);
	for (int i = 0; i < MANY; i++)
		run(pids[i]);
	/* In turn, all of them are heard of. */
	for (int drains = 0; nr_ended < MANY && drains < DRAINS_MAX; drains++) {
		ASSERT_OK(side_band_drain(sb, &batch));
		for (int i = 0; i < MANY; i++)
			nr_ended += nth(SIDE_EXIT, pids[i], 0) != NULL;
	}
	ASSERT_EQ(nr_ended, MANY);
	stop();
}

TEST(a_leader_that_ends_first_is_not_the_end)
{
	pid_t pid;

	ASSERT_OK(pipe2(gate, O_CLOEXEC));
	start();
	pid = fork_half_dead();
	close(gate[0]);
	wait_for_state(pid, 'Z');
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_FORK, pid, 0));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
	close(gate[1]);
	run(pid);
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_EXIT, pid, 0));
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
	stop();
}

TEST(a_leader_that_ended_first_is_looked_at_when_a_thread_ends)
{
	enum { DRAINS_MAX = 4096 / 64 + 1 }; /* that all of others' are looked at once */
	const uint64_t second = 1000000000;
	uint64_t later_ns;
	pid_t pid;

	ASSERT_OK(pipe2(gate, O_CLOEXEC));
	start();
	pid = pids_looked_for[0] = fork_half_dead();
	close(gate[0]);
	wait_for_state(pid, 'Z');
	/* Nothing was heard of it for long. */
	later_ns = now_ns() + 10 * second;
	for (int i = 0; i < DRAINS_MAX; i++)
		ASSERT_OK(side_band_drain_until(sb, later_ns, &batch));
	nr_looks = 0;
	for (int i = 0; i < DRAINS_MAX; i++)
		ASSERT_OK(side_band_drain_until(sb, later_ns, &batch));
	ASSERT_EQ(nr_looks, 0);
	/* The news may have been lost. */
	for (int i = 0; i < DRAINS_MAX && !nr_looks; i++)
		ASSERT_OK(side_band_drain_until(sb, later_ns + second, &batch));
	ASSERT_EQ(nr_looks, 1);
	close(gate[1]);
	run(pid);
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_EXIT, pid, 0));
	stop();
}

static void *exec_cat(void *arg __attribute__((unused)))
{
	dup2(gate[0], 0);
	execl("/bin/cat", "cat", (char *)NULL);
	_exit(127);
}

TEST(an_exec_by_a_thread_is_not_the_end)
{
	const struct side_event *exec;
	pid_t pid;

	ASSERT_OK(pipe2(gate, O_CLOEXEC));
	start();
	pid = fork();
	if (!pid) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, exec_cat, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	/* Its first output, or its waiting for input, is behind the exec. */
	close(gate[0]);
	do {
		ASSERT_OK(side_band_drain(sb, &batch));
		ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
		exec = nth(SIDE_EXEC, pid, 0);
	} while (!exec);
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
	close(gate[1]);
	ASSERT_EQ(run(pid), 0);
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_EXIT, pid, 0));
	stop();
}

TEST(a_zombie_is_the_end)
{
	siginfo_t info;
	pid_t pid;

	start();
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	pids_looked_for[0] = pid;
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_EXIT, pid, 0));
	/* It never had another thread: that may have been among what others' news left no room for.
	 */
	ASSERT(!nr_looks || !batch.is_whole);
	run(pid);
	stop();
}

TEST(the_fd_becomes_readable_with_an_event)
{
	struct epoll_event event;

	ASSERT_OK(open_pages(64));
	do /* others have news, too */
		ASSERT_OK(side_band_drain(sb, &batch));
	while (epoll_wait(side_band_fd(sb), &event, 1, 0));
	prctl(PR_SET_NAME, "odd");
	ASSERT_EQ(epoll_wait(side_band_fd(sb), &event, 1, 60000), 1);
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_COMM, getpid(), 0));
	stop();
}

static bool stay_on(int cpu)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((unsigned int)cpu, &here);
	return !sched_setaffinity(0, sizeof(here), &here);
}

/* A child that makes a thread while there is no room to tell of it, says so, and when it is told to
 * lets that go on alone; on another CPU, if there is one: there nothing tells of a loss. */
static pid_t fork_unheard(const int *to, const int *from, int cpu)
{
	pid_t pid = fork();
	pthread_t thread;
	char c = 0;

	if (pid)
		return pid;
	close(gate[1]);
	for (int i = 0; i < 500; i++)
		prctl(PR_SET_NAME, "flood");
	if (pthread_create(&thread, NULL, wait_at_gate, NULL) || write(from[1], &c, 1) != 1 ||
	    read(to[0], &c, 1) != 1)
		_exit(1);
	(void)(stay_on(cpu + 1) || stay_on(cpu - 1));
	pthread_exit(NULL);
}

TEST(a_leader_whose_thread_was_not_heard_of_is_not_the_end)
{
	int to[2], from[2], cpu = sched_getcpu();
	char c = 0;
	pid_t pid;

	ASSERT_OK(pipe2(gate, O_CLOEXEC) | pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC));
	ASSERT(stay_on(cpu));
	ASSERT_OK(open_pages(1));
	pid = fork_unheard(to, from, cpu);
	close(gate[0]);
	close(from[1]);
	ASSERT_EQ(read(from[0], &c, 1), 1);
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_EQ(write(to[1], &c, 1), 1);
	wait_for_state(pid, 'Z');
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(side_band_drain(sb, &batch));
		ASSERT_PTR_NULL(nth(SIDE_EXIT, pid, 0));
	}
	close(gate[1]);
	run(pid);
	stop();
}

/* The ring wraps around many times, at all distances from its end. */
TEST(records_across_the_end_of_the_ring)
{
	enum { RENAMINGS = 20000 };
	size_t next = 0, seen = 0;
	bool lost = false, gaps = false;

	ASSERT_OK(open_pages(4));
	for (size_t i = 0; i < RENAMINGS; i++) {
		const struct side_event *event;
		char name[16];

		snprintf(name, sizeof(name), i % 3 ? "%zu" : "%zu-longer", i);
		prctl(PR_SET_NAME, name);
		if (i % 7)
			continue;
		ASSERT_OK(side_band_drain(sb, &batch));
		lost |= lost_in_batch() > 0;
		for (size_t n = 0; (event = nth(SIDE_COMM, getpid(), n)); n++, seen++) {
			size_t number = strtoul(text_of(event), NULL, 10);

			ASSERT(number >= next);
			gaps |= number > next;
			next = number + 1;
		}
		gaps |= next != i + 1;
	}
	/*
	 * Others may fill so small a ring while we are not running: the kernel tells with the next
	 * record that fits.
	 */
	for (int cpu = 0; gaps && !lost && stay_on(cpu); cpu++) {
		prctl(PR_SET_NAME, "end");
		ASSERT_OK(side_band_drain(sb, &batch));
		lost |= lost_in_batch() > 0;
	}
	ASSERT(!gaps || lost);
	ASSERT(seen > RENAMINGS / 2);
	stop();
}

TEST(what_did_not_fit_is_reported_as_lost)
{
	enum { FLOOD = 500, ROUNDS_MAX = 1000 };
	uint64_t lost = 0;
	size_t seen = 0;

	ASSERT(stay_on(sched_getcpu()));
	ASSERT_OK(open_pages(1));
	for (int i = 0; i < FLOOD; i++)
		prctl(PR_SET_NAME, "flood");
	/* The kernel tells with the next record that fits: others' may leave no room for ours. */
	for (int round = 0; lost + seen <= FLOOD && round < ROUNDS_MAX; round++) {
		const struct side_event *event;

		ASSERT_OK(side_band_drain(sb, &batch));
		lost += lost_in_batch();
		for (size_t n = 0; (event = nth(SIDE_COMM, getpid(), n)); n++)
			seen++;
		prctl(PR_SET_NAME, "flood");
	}
	ASSERT(lost > 0);
	ASSERT(lost + seen > FLOOD);
	stop();
}

TEST(bad_sizes_are_refused)
{
	ASSERT_ERR(open_pages(0), EINVAL);
	ASSERT_ERR(open_pages(3), EINVAL);
	ASSERT(open_pages(1u << 31) < 0);
}

TEST(sync_without_a_change_changes_nothing)
{
	size_t bytes;

	start();
	bytes = side_band_bytes(sb);
	ASSERT(bytes > RING_PAGES * 4096);
	for (int i = 0; i < 100; i++)
		ASSERT_OK(cpu_set_sync(cpus));
	ASSERT_EQ(side_band_bytes(sb), bytes);
	stop();
}

TEST(a_cpu_that_perf_learns_of_late_is_heard)
{
	size_t bytes;

	start();
	bytes = side_band_bytes(sb);
	close_both();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	nr_absent = 1;
	start();
	ASSERT(side_band_bytes(sb) <= bytes - RING_PAGES * 4096ul);
	ASSERT_OK(cpu_set_sync(cpus));
	ASSERT_EQ(side_band_bytes(sb), bytes);
	/* It may have had news before. */
	ASSERT_OK(side_band_drain(sb, &batch));
	ASSERT_PTR_NONNULL(nth(SIDE_LOST, 0, 0));
	stop();
}
