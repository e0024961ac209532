// SPDX-License-Identifier: Apache-2.0
/*
 * What is known of threads: when they began, by /proc, and when they ended, by the side band. The
 * threads here are real; their ends are told as the kernel would tell them.
 */
#include "record/metadata.h"
#include "process/proc_identity.h"
#include "process/proc_stat.h"
#include "test.h"
#include "util/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static struct profile profile;
static struct metadata metadata;
static int tid_pipe[2], gate[2];

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

static time_t clock_set_by_s;
/* Whoever looks at a clock for the so-many-th time from now is stopped just before that. */
static int looks_before_stop = -1;
static time_t stopped_for_s, stop_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = __real_clock_gettime(clock, ret);

	if (looks_before_stop >= 0 && !looks_before_stop--)
		stopped_for_s += stop_s;
	ret->tv_sec += stopped_for_s;
	if (clock == CLOCK_REALTIME)
		ret->tv_sec += clock_set_by_s;
	return r;
}

int __real_proc_stat_read(int32_t pid, struct proc_stat *ret);
int __wrap_proc_stat_read(int32_t pid, struct proc_stat *ret);

/* By so many ticks processes began later, as far as anybody can tell. */
static uint64_t later_ticks;
static bool is_gone;

int __wrap_proc_stat_read(int32_t pid, struct proc_stat *ret)
{
	int r = is_gone ? -ESRCH : __real_proc_stat_read(pid, ret);

	if (!r)
		ret->start_time += later_ticks;
	return r;
}

int __real_proc_identity_read(int32_t pid, const char *variables, struct proc_identity *ret);
int __wrap_proc_identity_read(int32_t pid, const char *variables, struct proc_identity *ret);

/* What /proc says is a program at that path, "": what it is. */
static char program[64];
static bool is_executing;

int __wrap_proc_identity_read(int32_t pid, const char *variables, struct proc_identity *ret)
{
	int r = __real_proc_identity_read(pid, variables, ret);

	if (!r && *program)
		snprintf(ret->path, sizeof(ret->path), "%s", program);
	if (!r && is_executing)
		ret->is_executing = true;
	return r;
}

static void *say_tid(void *arg)
{
	int tid = gettid();
	char c;

	ASSERT_EQ(write(tid_pipe[1], &tid, sizeof(tid)), (ssize_t)sizeof(tid));
	ASSERT_EQ(read(gate[0], &c, 1), 0);
	return arg;
}

static struct profile_thread *thread_of(int32_t pid, int32_t tid, const char *comm)
{
	uint32_t thread;

	ASSERT_OK(metadata_thread(&metadata, pid, tid, comm, &thread));
	return &profile.threads.items[thread];
}

static void tell_end(int32_t pid, int32_t tid, uint64_t time_ns)
{
	const struct side_event event = {
		.type = SIDE_THREAD_EXIT, .pid = pid, .tid = tid, .time_ns = time_ns
	};

	metadata_on_event(&metadata, &event);
}

TEST(threads_have_their_begin_and_end)
{
	uint64_t before = clock_ns(CLOCK_REALTIME), offset = wall_offset_ns(), seen;
	const uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	int32_t tid, pid = getpid();
	struct profile_thread *t;
	pthread_t thread;

	ASSERT_OK(profile_init(&profile));
	metadata_init(&metadata, &profile);
	ASSERT_OK(pipe(tid_pipe));
	ASSERT_OK(pipe(gate));
	ASSERT_OK(pthread_create(&thread, NULL, say_tid, NULL));
	ASSERT_EQ(read(tid_pipe[0], &tid, sizeof(tid)), (ssize_t)sizeof(tid));
	t = thread_of(pid, tid, "worker");
	ASSERT(t->start_ns + 2 * tick >= before);
	ASSERT(t->start_ns <= clock_ns(CLOCK_REALTIME) + tick);
	ASSERT_EQ(t->end_ns, 0);
	/* Another process's of that number, in whose life no sample fell. */
	thread_of(pid + 1, pid + 1, "other");
	tell_end(pid + 1, tid, 5);
	ASSERT_EQ(thread_of(pid, tid, "worker")->end_ns, 0);
	/* With another name it is another one; that one ends. */
	ASSERT_EQ(thread_of(pid, tid, "renamed")->start_ns, 0);
	seen = clock_ns(CLOCK_MONOTONIC);
	tell_end(pid, tid, seen);
	ASSERT_EQ(thread_of(pid, tid, "worker")->end_ns, 0);
	t = thread_of(pid, tid, "renamed");
	ASSERT(t->end_ns + 1000000000 > seen + offset && t->end_ns < seen + offset + 1000000000);
	/* The number comes again. */
	ASSERT(thread_of(pid, tid, "third")->start_ns > 0);
	/* A main thread lives as its process does. */
	ASSERT_EQ(thread_of(pid, pid, "main")->start_ns, 0);
	close(gate[1]);
	ASSERT_OK(pthread_join(thread, NULL));
	metadata_fini(&metadata);
	profile_fini(&profile);
}

TEST(times_follow_a_clock_that_is_set)
{
	int32_t pid = getpid(), tid = 1;
	uint64_t before;
	struct profile_thread *t;

	ASSERT_OK(profile_init(&profile));
	metadata_init(&metadata, &profile);
	thread_of(pid, tid, "worker");
	clock_set_by_s = 3600;
	before = clock_ns(CLOCK_REALTIME);
	tell_end(pid, tid, clock_ns(CLOCK_MONOTONIC));
	t = thread_of(pid, tid, "worker");
	ASSERT(t->end_ns > before - 1800000000000 && t->end_ns < before + 1800000000000);
	clock_set_by_s = 0;
	metadata_fini(&metadata);
	profile_fini(&profile);
}

TEST(processes_that_the_profile_forgot_are_met_anew)
{
	struct profile_collected collected;
	uint32_t mine, other, stack;
	int32_t pid = getpid();

	ASSERT_OK(profile_init(&profile));
	metadata_init(&metadata, &profile);
	ASSERT_OK(profile_add_stack(&profile, NULL, 0, STOP_COMPLETE, &stack));
	thread_of(pid + 1, pid + 1, "other");
	profile_next_cut(&profile);
	ASSERT_OK(metadata_thread(&metadata, pid, pid, "mine", &mine));
	ASSERT_OK(profile_add_sample(&profile, mine, stack, 1, NULL));
	ASSERT_OK(profile_collect(&profile, 1, &collected));
	metadata_collected(&metadata, &collected);
	ASSERT_EQ(profile.processes.nr, 1);
	ASSERT_OK(metadata_thread(&metadata, pid, pid, "mine", &other));
	ASSERT_EQ(other, profile_moved(&collected.threads, mine));
	ASSERT_EQ(profile.processes.nr, 1);
	ASSERT_EQ(profile.processes.items[0].pid, pid);
	ASSERT_OK(metadata_thread(&metadata, pid + 1, pid + 1, "other", &other));
	ASSERT_EQ(profile.processes.nr, 2);
	ASSERT_EQ(profile.processes.items[profile.threads.items[other].process].pid, pid + 1);
	/* Its end finds it. */
	metadata_on_event(&metadata, &(struct side_event){ .type = SIDE_EXIT,
							   .pid = pid + 1,
							   .tid = pid + 1,
							   .time_ns = 1 });
	ASSERT(profile.processes.items[profile.threads.items[other].process].end_ns > 0);
	profile_collected_fini(&collected);
	metadata_fini(&metadata);
	profile_fini(&profile);
}

static uint32_t process_of(int32_t pid, int32_t tid, const char *comm)
{
	return thread_of(pid, tid, comm)->process;
}

static void lose_events(void)
{
	metadata_on_event(&metadata, &(struct side_event){ .type = SIDE_LOST });
}

/* Its end, and the other one's beginning, may have been among the events that were lost. */
TEST(a_number_that_came_again_unheard_of_is_another_process)
{
	int32_t pid = getpid();
	char name[16];
	uint32_t first, second;

	ASSERT_OK(prctl(PR_GET_NAME, name));
	ASSERT_OK(profile_init(&profile));
	metadata_init(&metadata, &profile);
	first = process_of(pid, pid, name);
	lose_events();
	ASSERT_EQ(process_of(pid, pid, name), first);
	later_ticks = 300;
	ASSERT_EQ(process_of(pid, pid, name), first);
	lose_events();
	second = process_of(pid, pid, name);
	ASSERT(second != first);
	ASSERT_EQ(profile.processes.items[second].pid, pid);
	ASSERT(profile.processes.items[second].start_ns > profile.processes.items[first].start_ns);
	lose_events();
	ASSERT_EQ(process_of(pid, pid, name), second);
	/* One that ended before it could be looked at: its main thread has another name. */
	is_gone = true;
	lose_events();
	ASSERT_EQ(process_of(pid, pid + 1, "a thread"), second);
	lose_events();
	ASSERT_EQ(process_of(pid, pid, name), second);
	lose_events();
	ASSERT(process_of(pid, pid, "short-lived") != second);
	is_gone = false;
	later_ticks = 0;
	metadata_fini(&metadata);
	profile_fini(&profile);
}

/* An exec may have been unheard of. */
TEST(a_program_that_began_unheard_of_is_described_anew)
{
	int32_t pid = getpid();
	struct profile_process *p;
	char name[16];
	uint32_t process;

	ASSERT_OK(prctl(PR_GET_NAME, name));
	ASSERT_OK(profile_init(&profile));
	metadata_init(&metadata, &profile);
	process = process_of(pid, pid, name);
	ASSERT_OK(prctl(PR_SET_NAME, "executed"));
	ASSERT_EQ(process_of(pid, pid, "executed"), process);
	p = &profile.processes.items[process];
	ASSERT_STR(strtab_get(&profile.strings, p->name), name);
	lose_events();
	ASSERT_EQ(process_of(pid, pid, "executed"), process);
	p = &profile.processes.items[process];
	ASSERT_STR(strtab_get(&profile.strings, p->name), "executed");
	ASSERT_OK(prctl(PR_SET_NAME, name));
	metadata_fini(&metadata);
	profile_fini(&profile);
}

static void tell_exec(int32_t pid, uint64_t time_ns)
{
	metadata_on_event(&metadata,
			  &(struct side_event){
				  .type = SIDE_EXEC, .pid = pid, .tid = pid, .time_ns = time_ns });
}

static void begin_with(const char *path)
{
	ASSERT_OK(profile_init(&profile));
	metadata_init(&metadata, &profile);
	metadata.each_program = true;
	snprintf(program, sizeof(program), "%s", path);
}

static void end_with(void)
{
	program[0] = '\0';
	metadata_fini(&metadata);
	profile_fini(&profile);
}

static void assert_program(uint32_t process, const char *path)
{
	const struct profile_process *p = &profile.processes.items[process];

	ASSERT_STR(strtab_get(&profile.strings, p->path), path);
	ASSERT_EQ(p->command > 0, *path != '\0');
	ASSERT_EQ(p->uid, *path ? geteuid() : UINT32_MAX);
}

TEST(an_exec_makes_another_process_of_it)
{
	int32_t pid = getpid();
	uint32_t first, second;

	begin_with("/bin/first");
	first = process_of(pid, pid, "first");
	tell_exec(pid, now_ns());
	snprintf(program, sizeof(program), "/bin/second");
	second = process_of(pid, pid, "second");
	ASSERT(second != first);
	ASSERT_EQ(process_of(pid, pid, "second"), second);
	assert_program(first, "/bin/first");
	assert_program(second, "/bin/second");
	ASSERT(profile.processes.items[first].was_replaced);
	ASSERT(!profile.processes.items[second].was_replaced);
	end_with();
}

/* Of what `record` makes it is one process, whatever it executes. */
TEST(a_process_may_be_one_whatever_it_executes)
{
	int32_t pid = getpid();
	uint32_t first;

	begin_with("/bin/first");
	metadata.each_program = false;
	first = process_of(pid, pid, "first");
	tell_exec(pid, now_ns());
	snprintf(program, sizeof(program), "/bin/second");
	ASSERT_EQ(process_of(pid, pid, "second"), first);
	assert_program(first, "/bin/second");
	ASSERT_EQ(profile.processes.nr, 1);
	end_with();
}

/* It came too late for the sample of before: that has what an exec does not change. */
TEST(what_was_read_after_an_exec_is_the_new_programs)
{
	int32_t pid = getpid();
	uint64_t before = now_ns();
	uint32_t first, second;
	struct profile_process *p;

	begin_with("/bin/second");
	first = process_of(pid, pid, "first");
	tell_exec(pid, before);
	assert_program(first, "");
	p = &profile.processes.items[first];
	ASSERT_STR(strtab_get(&profile.strings, p->name), "first");
	ASSERT(p->start_ns && p->parent_pid == getppid());
	/* Nobody need be there any more. */
	is_gone = true;
	second = process_of(pid, pid, "second");
	ASSERT(second != first);
	assert_program(second, "/bin/second");
	/* It is not the second's, either, if there was a third one already. */
	tell_exec(pid, before + 1);
	assert_program(second, "");
	is_gone = false;
	assert_program(process_of(pid, pid, "third"), "/bin/second");
	end_with();
}

/* Then it may be of both, and is nobody's. */
TEST(what_was_read_during_an_exec_is_nobodys)
{
	int32_t pid = getpid();
	uint32_t first, second;

	begin_with("/bin/second");
	first = process_of(pid, pid + 1, "a thread");
	tell_exec(pid, metadata.readings.items[first].end_ns);
	is_gone = true;
	second = process_of(pid, pid, "second");
	is_gone = false;
	assert_program(first, "");
	assert_program(second, "");
	ASSERT_STR(strtab_get(&profile.strings, profile.processes.items[first].name), "");
	end_with();
}

/* The kernel tells of it when there is another executable already. */
TEST(what_is_just_being_executed_is_read_again)
{
	int32_t pid = getpid();
	uint32_t first, second;

	begin_with("/bin/second");
	is_executing = true;
	first = process_of(pid, pid, "first");
	assert_program(first, "");
	ASSERT_STR(strtab_get(&profile.strings, profile.processes.items[first].name), "first");
	tell_exec(pid, now_ns());
	second = process_of(pid, pid, "second");
	assert_program(second, "");
	is_executing = false;
	ASSERT_EQ(process_of(pid, pid, "second"), second);
	assert_program(second, "/bin/second");
	assert_program(first, "");
	end_with();
}

TEST(what_is_not_to_be_read_now_is_read_later)
{
	int32_t pid = getpid();
	uint32_t first;
	char name[16];

	ASSERT_OK(prctl(PR_GET_NAME, name));
	begin_with("/bin/first");
	metadata.is_held = true;
	first = process_of(pid, pid, name);
	ASSERT_EQ(process_of(pid, pid, name), first);
	assert_program(first, "");
	ASSERT_STR(strtab_get(&profile.strings, profile.processes.items[first].name), name);
	metadata.is_held = false;
	ASSERT_EQ(process_of(pid, pid, name), first);
	assert_program(first, "/bin/first");
	/* Its start is known then, too. */
	lose_events();
	ASSERT_EQ(process_of(pid, pid, name), first);
	end_with();
}

/* Names tell whether it was before or after, of threads also whether they are still there. */
TEST(an_exec_may_have_been_lost)
{
	int32_t pid = getpid();
	uint32_t first, second;
	char name[16];

	ASSERT_OK(prctl(PR_GET_NAME, name));
	begin_with("/bin/second");
	metadata_begin_turn(&metadata, now_ns(), false);
	first = process_of(pid, pid, "first");
	assert_program(first, "");
	ASSERT_STR(strtab_get(&profile.strings, profile.processes.items[first].name), "first");
	ASSERT_EQ(process_of(pid, pid, "first"), first);
	second = process_of(pid, pid, name);
	assert_program(second, "/bin/second");
	assert_program(first, "");
	end_with();
	/* The kernel may tell that it was lost a turn later, or that may have been just before. */
	for (int is_later = 0; is_later < 2; is_later++) {
		begin_with("/bin/second");
		metadata_begin_turn(&metadata, now_ns(), is_later);
		first = process_of(pid, pid, "first");
		metadata_begin_turn(&metadata, now_ns(), !is_later);
		assert_program(first, "");
		second = process_of(pid, pid, name);
		ASSERT(second != first);
		assert_program(second, "/bin/second");
		end_with();
	}
	begin_with("/bin/second");
	metadata_begin_turn(&metadata, now_ns(), false);
	assert_program(process_of(pid, pid + 1, name), "");
	end_with();
}

/* Who is called as it was sampled is who was sampled. */
TEST(what_was_read_is_kept_where_nothing_says_otherwise)
{
	int32_t pid = getpid();
	uint32_t first;
	char name[16];

	ASSERT_OK(prctl(PR_GET_NAME, name));
	begin_with("/bin/first");
	metadata_begin_turn(&metadata, now_ns(), true);
	first = process_of(pid, pid, name);
	for (int i = 0; i < 3; i++) {
		metadata_begin_turn(&metadata, now_ns(), i);
		ASSERT_EQ(process_of(pid, pid, name), first);
		assert_program(first, "/bin/first");
	}
	end_with();
	begin_with("/bin/first");
	metadata_begin_turn(&metadata, now_ns(), false);
	first = process_of(pid, pid, name);
	assert_program(first, "/bin/first");
	end_with();
}

TEST(what_was_read_stays_known_when_the_profile_is_collected)
{
	struct profile_collected collected;
	uint64_t before = now_ns();
	int32_t pid = getpid();
	uint32_t thread, stack, process;

	begin_with("/bin/second");
	process_of(pid + 1, pid + 1, "other");
	profile_next_cut(&profile);
	ASSERT_OK(profile_add_stack(&profile, NULL, 0, STOP_COMPLETE, &stack));
	ASSERT_OK(metadata_thread(&metadata, pid, pid, "first", &thread));
	ASSERT_OK(profile_add_sample(&profile, thread, stack, 1, NULL));
	ASSERT_OK(profile_collect(&profile, 1, &collected));
	metadata_collected(&metadata, &collected);
	process = profile.threads.items[profile_moved(&collected.threads, thread)].process;
	ASSERT_EQ(process, 0);
	tell_exec(pid, before);
	assert_program(process, "");
	ASSERT_STR(strtab_get(&profile.strings, profile.processes.items[process].name), "first");
	profile_collected_fini(&collected);
	end_with();
}

TEST(the_machine_is_told)
{
	char name[256];
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(metadata_host(&p));
	ASSERT_EQ(gethostname(name, sizeof(name)), 0);
	ASSERT_STR(strtab_get(&p.strings, p.host.name), name);
	ASSERT_EQ(strncmp(strtab_get(&p.strings, p.host.os), "Linux ", 6), 0);
#ifdef __x86_64__
	ASSERT_STR(strtab_get(&p.strings, p.host.arch), "amd64");
#endif
	if (!access("/etc/machine-id", R_OK) && p.host.id)
		ASSERT_EQ(strlen(strtab_get(&p.strings, p.host.id)), 32);
	profile_fini(&p);
}

TEST(a_stop_between_two_looks_at_clocks_is_no_time)
{
	uint64_t before = wall_offset_ns(), found;

	stop_s = 5;
	for (int look = 0; look < 3; look++) {
		looks_before_stop = look;
		found = wall_offset_ns();
		ASSERT_MSG(found + 1000000000 > before && found < before + 1000000000,
			   "stopped before look %d: %lld ns more", look,
			   (long long)(found - before));
		looks_before_stop = -1;
	}
	ASSERT_EQ(stopped_for_s, 3 * 5);
}
