// SPDX-License-Identifier: Apache-2.0
/* Who waits for names of JITs' code, and for how long. */
#include "symbolize/jit_names.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbol/perf_map.h"
#include "test.h"
#include "util/cleanup.h"

static struct process_table processes;
static struct profile profile;
static struct jit_names j;

static void set_up(void)
{
	ASSERT_OK(process_table_init(&processes));
	ASSERT_OK(profile_init(&profile));
	jit_names_init(&j, &profile, &processes);
	/* The names of maps are not ours to choose: a /tmp of this test's own. */
	if (!geteuid())
		ASSERT(!unshare(CLONE_NEWNS) &&
		       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		       !mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}

static void tear_down(void)
{
	jit_names_fini(&j);
	profile_fini(&profile);
	process_table_fini(&processes);
}

static uint32_t want(pid_t pid, uint64_t address)
{
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE,
				       .address = address,
				       .scope = (uint32_t)pid };
	uint32_t id;

	ASSERT_OK(profile_add_file(&profile, "[anon]", NULL, 0, &frame.file));
	ASSERT_OK(profile_add_frame(&profile, &frame, &id));
	ASSERT_OK(jit_names_want(&j, (uint32_t)pid, id));
	return id;
}

static const char *name_of(uint32_t frame)
{
	const struct profile_frame *f = &profile.frames.items[frame];

	if (!f->nr_lines)
		return "(nothing)";
	return strtab_get(
		&profile.strings,
		profile.functions.items[profile.lines.items[f->first_line].function].name);
}

/* A process of that user's that sleeps; also if the test fails it ends. */
static pid_t start_process_of(uid_t user)
{
	int ready[2];
	pid_t pid;
	char c;

	ASSERT_OK(pipe2(ready, O_CLOEXEC));
	pid = fork();
	ASSERT(pid >= 0);
	if (!pid) {
		if (user != getuid() && setuid(user))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	ASSERT_EQ(read(ready[0], &c, 1), 0);
	close(ready[0]);
	return pid;
}

static pid_t start_process(void)
{
	return start_process_of(getuid());
}

static void end_process(pid_t pid)
{
	ASSERT_OK(kill(pid, SIGKILL));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

static FILE *make_map(pid_t pid)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	f = fopen(path, "we");
	ASSERT_PTR_NONNULL(f);
	return f;
}

/* A turn as the recorder makes one, whatever the last one took. */
static void early_turn(void)
{
	j.at_ns = 0;
	jit_names_tick(&j);
}

/* One after all pauses. */
static void turn(void)
{
	for (size_t i = 0; i < j.waiting.nr; i++)
		j.waiting.items[i].next_ns = 0;
	early_turn();
}

/* At all of the few that wait: one look may take all of a turn, however little there is to see. */
static void tick(void)
{
	turn();
	turn();
}

TEST(names_come_late)
{
	uint32_t early, late;
	pid_t pid;
	FILE *map;

	if (geteuid())
		return;
	set_up();
	pid = start_process();
	early = want(pid, 0x1000);
	late = want(pid, 0x2000);
	tick();
	ASSERT_EQ(j.nr_frames, 2);
	map = make_map(pid);
	fprintf(map, "1000 10 early\n");
	fflush(map);
	tick();
	ASSERT_STR(name_of(early), "early");
	ASSERT_EQ(j.nr_frames, 1);
	fprintf(map, "2000 10 late\n");
	fclose(map);
	tick();
	ASSERT_STR(name_of(late), "late");
	ASSERT_EQ(j.waiting.nr, 0);
	end_process(pid);
	tear_down();
}

TEST(who_has_no_names_is_looked_at_ever_more_seldom)
{
	uint64_t last = 0;
	uint32_t frame;
	pid_t pid;

	if (geteuid())
		return;
	set_up();
	pid = start_process();
	frame = want(pid, 0x1000);
	for (int i = 0; i < 8; i++) {
		turn();
		ASSERT(j.waiting.items[0].pause_ns > last ||
		       j.waiting.items[0].pause_ns == 2000000000);
		last = j.waiting.items[0].pause_ns;
	}
	ASSERT_EQ(last, 2000000000);
	fclose(make_map(pid));
	early_turn();
	ASSERT(j.waiting.items[0].no_map);
	/* What is new waits as well; where there is a map, it may have come with that. */
	want(pid, 0x2000);
	early_turn();
	ASSERT(j.waiting.items[0].no_map);
	turn();
	ASSERT(!j.waiting.items[0].no_map);
	fprintf(make_map(pid), "1000 10 late\n");
	fflush(NULL);
	early_turn();
	ASSERT_STR(name_of(frame), "(nothing)");
	want(pid, 0x3000);
	early_turn();
	ASSERT_STR(name_of(frame), "late");
	ASSERT_EQ(j.waiting.items[0].pause_ns, 0);
	end_process(pid);
	tear_down();
}

TEST(for_processes_that_are_gone_nobody_waits)
{
	uint32_t named, nameless;
	pid_t pid, other;
	FILE *map;

	if (geteuid())
		return;
	set_up();
	pid = start_process();
	other = start_process();
	named = want(pid, 0x1000);
	nameless = want(pid, 0x2000);
	want(other, 0x1000);
	map = make_map(pid);
	fprintf(map, "1000 10 left behind\n");
	fclose(map);
	end_process(pid);
	end_process(other);
	tick();
	ASSERT_STR(name_of(named), "left behind");
	ASSERT_STR(name_of(nameless), "(nothing)");
	ASSERT_EQ(j.waiting.nr, 0);
	ASSERT_EQ(j.nr_frames, 0);
	tear_down();
}

/* Another process with a map as large as can be: neither its memory nor its time is ours. */
TEST(a_large_map_takes_little_and_holds_up_nobody)
{
	struct rusage before, after;
	pid_t large, small;
	uint32_t frame;
	FILE *map;

	if (geteuid())
		return;
	set_up();
	large = start_process();
	small = start_process();
	map = make_map(large);
	for (int i = 0; i < 4 << 20; i++)
		fputs("1 1 a\n", map);
	fclose(map);
	map = make_map(small);
	fprintf(map, "1000 10 small\n");
	fclose(map);
	getrusage(RUSAGE_SELF, &before);
	want(large, 0x5000);
	frame = want(small, 0x1000);
	tick(); /* a second turn at most */
	ASSERT_STR(name_of(frame), "small");
	ASSERT_EQ(j.nr_frames, 1);
	ASSERT_EQ(jit_names_finish(&j, UINT64_MAX / 2), 0);
	ASSERT_EQ(j.nr_frames, 1);
	getrusage(RUSAGE_SELF, &after);
	ASSERT(after.ru_maxrss - before.ru_maxrss < 8 << 10);
	end_process(large);
	end_process(small);
	tear_down();
}

TEST(who_has_most_gives_way)
{
	enum { FLOOD = JIT_FRAMES_MAX + 1000 };
	pid_t victim = getpid(), attacker = getppid();

	set_up();
	for (uint64_t i = 0; i < FLOOD; i++)
		want(attacker, 0x1000 + i);
	ASSERT_EQ(j.nr_dropped, 1000);
	for (uint64_t i = 0; i < 100; i++)
		want(victim, 0x1000 + i);
	ASSERT_EQ(j.nr_frames, JIT_FRAMES_MAX);
	ASSERT_EQ(j.waiting.items[1].waiting.items.nr, 100);
	ASSERT_EQ(j.nr_dropped, 1100);
	/* The number of processes does not grow either. */
	for (int i = 0; i < 2 * JIT_PROCESSES_MAX; i++) {
		want(1 << 29 | i, 0x1000);
		if (i % 64 == 0)
			tick();
	}
	ASSERT(j.waiting.nr <= JIT_PROCESSES_MAX);
	tear_down();
}

/* However many processes a user has. */
TEST(one_user_has_no_more_frames_than_all_others)
{
	enum { PROCESSES = 200, FRAMES = JIT_FRAMES_MAX / PROCESSES + 10, OF_VICTIM = 1000 };
	pid_t victim;

	if (geteuid())
		return;
	set_up();
	victim = start_process_of(1);
	/* Gone: nobody knows whose they are, they count as one user's. */
	for (int i = 0; i < PROCESSES; i++)
		for (uint64_t k = 0; k < FRAMES; k++)
			want(1 << 29 | i, 0x1000 + k);
	ASSERT_EQ(j.nr_frames, JIT_FRAMES_MAX);
	for (uint64_t k = 0; k < OF_VICTIM; k++)
		want(victim, 0x1000 + k);
	ASSERT_EQ(j.nr_frames, JIT_FRAMES_MAX);
	ASSERT_EQ(j.waiting.items[PROCESSES].waiting.items.nr, OF_VICTIM);
	end_process(victim);
	tear_down();
}

/* Each of them has a map that names each of its frames at length. */
TEST(one_user_leaves_room_for_others_names)
{
	enum { PROCESSES = 5, FRAMES = JIT_PROCESS_NAMES_MAX / PERF_MAP_NAME_MAX };
	pid_t attackers[PROCESSES], victim;
	uint32_t frame;
	char path[64];
	FILE *map;

	if (geteuid())
		return;
	set_up();
	for (int i = 0; i < PROCESSES; i++) {
		attackers[i] = start_process_of(65534);
		map = make_map(attackers[i]);
		fprintf(map, "1000 %x %0*d\n", FRAMES, PERF_MAP_NAME_MAX, i);
		fclose(map);
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", attackers[i]);
		ASSERT_OK(chown(path, 65534, 65534));
		for (uint64_t k = 0; k < FRAMES; k++)
			want(attackers[i], 0x1000 + k);
	}
	ASSERT_EQ(jit_names_finish(&j, UINT64_MAX / 2), 0);
	ASSERT(j.nr_dropped);
	ASSERT(j.name_bytes >= JIT_PROCESS_NAMES_MAX);
	victim = start_process_of(1);
	frame = want(victim, 0x1000);
	map = make_map(victim);
	fprintf(map, "1000 10 victim%0*d\n", PERF_MAP_NAME_MAX - 10, 0);
	fclose(map);
	tick();
	ASSERT_EQ(strncmp(name_of(frame), "victim", 6), 0);
	for (int i = 0; i < PROCESSES; i++)
		end_process(attackers[i]);
	end_process(victim);
	tear_down();
}

/* Frames that the profile forgot are waited for no more; the others get their names, whatever their
 * numbers are by then. */
TEST(frames_follow_a_collection)
{
	enum { NR = 20 };
	struct profile_collected collected;
	uint32_t frames[NR], stack;
	FILE *map;
	pid_t pid;

	set_up();
	pid = start_process();
	for (uint32_t i = 0; i < NR; i++) {
		frames[i] = want(pid, 0x1000 * (i + 1));
		/* The first half in the first cut. */
		if (i == NR / 2)
			profile_next_cut(&profile);
		ASSERT_OK(profile_add_stack(&profile, &frames[i], 1, STOP_COMPLETE, &stack));
	}
	ASSERT_OK(profile_collect(&profile, 1, &collected));
	jit_names_collected(&j, &collected);
	ASSERT_EQ(j.nr_frames, NR / 2);
	for (uint32_t i = 0; i < NR; i++)
		frames[i] = profile_moved(&collected.frames, frames[i]);
	map = make_map(pid);
	fprintf(map, "1000 80000 code\n");
	fclose(map);
	tick();
	ASSERT_EQ(jit_names_finish(&j, UINT64_MAX / 2), 0);
	for (uint32_t i = 0; i < NR; i++) {
		if (i < NR / 2)
			ASSERT_EQ(frames[i], PROFILE_GONE);
		else
			ASSERT_STR(name_of(frames[i]), "code");
	}
	profile_collected_fini(&collected);
	end_process(pid);
	tear_down();
}
