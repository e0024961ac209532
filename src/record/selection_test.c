// SPDX-License-Identifier: Apache-2.0
#include "record/selection.h"

#include "bpf/judge.bpf.h"
#include "process/proc_identity.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct selection selection;

static void add(bool exclude, enum selection_key key, const char *value)
{
	struct select_term term = { .asks = 0 };

	ASSERT_OK(selection_add_condition(&selection, &term, key, value));
	ASSERT_OK(selection_add_term(&selection, &term, exclude));
}

static enum select_verdict judge(struct select_task task)
{
	return select_judge(&selection.rules, &task);
}

static struct select_task named(const char *comm)
{
	struct select_task task = { .pid = 1 };

	/* As the kernel leaves it: something else is behind the end. */
	memset(task.comm, 'x', sizeof(task.comm));
	snprintf((char *)task.comm, sizeof(task.comm), "%s", comm);
	return task;
}

TEST(without_terms_all_is_taken)
{
	ASSERT(selection_is_empty(&selection));
	ASSERT_EQ(judge((struct select_task){ .pid = 7 }), SELECT_TAKE);
}

TEST(one_including_term_is_enough_and_one_excluding_one_too)
{
	add(false, SELECTION_PID, "7");
	add(true, SELECTION_UID, "33");
	add(false, SELECTION_PID, "8");
	ASSERT_EQ(judge((struct select_task){ .pid = 7 }), SELECT_TAKE);
	ASSERT_EQ(judge((struct select_task){ .pid = 8 }), SELECT_TAKE);
	ASSERT_EQ(judge((struct select_task){ .pid = 9 }), SELECT_REJECT);
	ASSERT_EQ(judge((struct select_task){ .pid = 8, .uid = 33 }), SELECT_REJECT);
	selection_fini(&selection);
	ASSERT(selection_is_empty(&selection));
	add(true, SELECTION_UID, "33");
	ASSERT_EQ(judge((struct select_task){ .pid = 9 }), SELECT_TAKE);
}

TEST(all_conditions_of_a_term_must_hold)
{
	struct select_term term = { .asks = 0 };

	ASSERT_OK(selection_add_condition(&selection, &term, SELECTION_UID, "0"));
	ASSERT_OK(selection_add_condition(&selection, &term, SELECTION_MIN_AGE, "2m"));
	ASSERT_ERR(selection_add_condition(&selection, &term, SELECTION_UID, "1"), EEXIST);
	ASSERT_OK(selection_add_term(&selection, &term, false));
	ASSERT_EQ(judge((struct select_task){ .age_ns = 120000000000 }), SELECT_TAKE);
	ASSERT_EQ(judge((struct select_task){ .age_ns = 119999999999 }), SELECT_REJECT);
	ASSERT_EQ(judge((struct select_task){ .age_ns = 120000000000, .uid = 1 }), SELECT_REJECT);
}

TEST(names_are_compared_up_to_their_end)
{
	add(false, SELECTION_COMM, "nginx");
	add(false, SELECTION_COMM, "kwork*");
	add(false, SELECTION_COMM, "a-name-that-the-kernel-has-cut");
	ASSERT_EQ(selection.facts.nr, 0);
	ASSERT_EQ(judge(named("nginx")), SELECT_TAKE);
	ASSERT_EQ(judge(named("nginx2")), SELECT_REJECT);
	ASSERT_EQ(judge(named("ngin")), SELECT_REJECT);
	ASSERT_EQ(judge(named("kworker/0:1")), SELECT_TAKE);
	ASSERT_EQ(judge(named("kwork")), SELECT_TAKE);
	ASSERT_EQ(judge(named("kwor")), SELECT_REJECT);
	ASSERT_EQ(judge(named("a-name-that-the")), SELECT_TAKE);
	ASSERT_EQ(judge(named("a-name-that-th")), SELECT_REJECT);
}

TEST(who_is_not_known_is_undecided_only_if_it_matters)
{
	add(false, SELECTION_EXE, "/bin/a");
	add(true, SELECTION_CONTAINER, "*");
	add(false, SELECTION_PID, "5");
	ASSERT_EQ(judge((struct select_task){ .pid = 5 }), SELECT_UNDECIDED);
	ASSERT_EQ(judge((struct select_task){ .pid = 6 }), SELECT_UNDECIDED);
	ASSERT_EQ(judge((struct select_task){ .pid = 5, .known = 1 }), SELECT_TAKE);
	ASSERT_EQ(judge((struct select_task){ .pid = 5, .known = 1, .facts = 2 }), SELECT_REJECT);
	ASSERT_EQ(judge((struct select_task){ .pid = 6, .known = 1 }), SELECT_REJECT);
	ASSERT_EQ(judge((struct select_task){ .pid = 6, .known = 1, .facts = 1 }), SELECT_TAKE);
	/* What was known before it changed is not. */
	ASSERT_EQ(judge((struct select_task){ .pid = 6, .facts = 1 }), SELECT_UNDECIDED);
	ASSERT_EQ(judge((struct select_task){ .pid = 6, .facts = 3 }), SELECT_UNDECIDED);
	add(true, SELECTION_UID, "3");
	ASSERT_EQ(judge((struct select_task){ .pid = 5, .uid = 3 }), SELECT_REJECT);
}

TEST(values_are_checked)
{
	static const struct {
		enum selection_key key;
		const char *value;
	} wrong[] = {
		{ SELECTION_PID, "x" },
		{ SELECTION_PID, "" },
		{ SELECTION_PID, "-1" },
		{ SELECTION_PID, "4294967296" },
		{ SELECTION_UID, "no such user" },
		{ SELECTION_UID, "4294967295" },
		{ SELECTION_MIN_AGE, "1w" },
		{ SELECTION_MIN_AGE, "1.5s" },
		{ SELECTION_MIN_AGE, "s" },
		{ SELECTION_MIN_AGE, "99999999999999d" },
		{ SELECTION_CGROUP, "a" },
		{ SELECTION_EXE, "" },
		{ SELECTION_COMM, "" },
		{ SELECTION_CONTAINER, "" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct select_term term = { .asks = 0 };

		ASSERT_ERR(selection_add_condition(&selection, &term, wrong[i].key, wrong[i].value),
			   EINVAL);
	}
}

TEST(there_is_a_bound)
{
	struct select_term term = { .asks = 0 };

	for (int i = 0; i < SELECT_FACTS_MAX; i++)
		ASSERT_OK(selection_add_condition(&selection, &term, SELECTION_EXE, "x"));
	ASSERT_ERR(selection_add_condition(&selection, &term, SELECTION_EXE, "x"), E2BIG);
	for (int i = 0; i < SELECT_TERMS_MAX; i++)
		ASSERT_OK(selection_add_term(&selection, &term, i % 2));
	ASSERT_ERR(selection_add_term(&selection, &term, false), E2BIG);
}

TEST(paths_match_whole_or_below)
{
	static const char v1[] = "4:memory:/a/b\n0::/system.slice/x.service/payload\n";

	ASSERT(selection_exe_matches("nginx", "/usr/sbin/nginx"));
	ASSERT(!selection_exe_matches("ngin", "/usr/sbin/nginx"));
	ASSERT(selection_exe_matches("/usr/*", "/usr/sbin/nginx"));
	ASSERT(!selection_exe_matches("/sbin/nginx", "/usr/sbin/nginx"));
	ASSERT(!selection_exe_matches("*", ""));
	ASSERT(selection_cgroup_matches("/system.slice", v1));
	ASSERT(selection_cgroup_matches("/system.slice/x.service/payload/", v1));
	ASSERT(!selection_cgroup_matches("/system.slic", v1));
	ASSERT(selection_cgroup_matches("/a", v1));
	ASSERT(selection_cgroup_matches("*x.service*", v1));
	ASSERT(!selection_cgroup_matches("/*/x.service", v1));
	ASSERT(selection_cgroup_matches("/", v1));
	ASSERT(!selection_cgroup_matches("/a", ""));
	ASSERT(selection_container_matches("0123", "0123456789abcdef"));
	ASSERT(selection_container_matches("*", "0123456789abcdef"));
	ASSERT(!selection_container_matches("*", ""));
	ASSERT(!selection_container_matches("123", "0123456789abcdef"));
}

TEST(a_process_is_looked_at)
{
	char name[16] = "sel*ct?n test";
	struct selection_process found;
	pid_t pid;

	prctl(PR_SET_NAME, "sel-ction test");
	add(false, SELECTION_EXE, program_invocation_short_name);
	add(false, SELECTION_COMM, name);
	add(false, SELECTION_COMM, "s*-ction t?st");
	add(true, SELECTION_CGROUP, "/there-is-no-such");
	ASSERT_OK(selection_look(&selection, getpid(), &found));
	ASSERT_EQ(found.facts, 1 | 4);
	ASSERT_EQ(found.verdict, SELECT_TAKE);
	add(true, SELECTION_UID, "0");
	ASSERT_OK(selection_look(&selection, getpid(), &found));
	ASSERT_EQ(found.verdict, getuid() ? SELECT_TAKE : SELECT_REJECT);
	add(true, SELECTION_MIN_AGE, "0s");
	ASSERT_OK(selection_look(&selection, getpid(), &found));
	ASSERT_EQ(found.verdict, SELECT_REJECT);
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_ERR(selection_look(&selection, pid, &found), ESRCH);
}

TEST(a_copy_stands_alone)
{
	struct selection copy;

	add(false, SELECTION_EXE, "/bin/a");
	ASSERT_OK(selection_copy(&selection, &copy));
	selection_fini(&selection);
	ASSERT_EQ(copy.rules.nr, 1);
	ASSERT_STR(copy.facts.items[0].pattern, "/bin/a");
	selection_fini(&copy);
}

TEST(what_proc_tells_now_holds_for_no_sample_of_another_image)
{
	const struct selection_process p = { .comm = "worker" };
	struct sample_header h = { .pid = 7, .tid = 8, .time_ns = 100, .comm = "thread" };
	struct select_facts asked = { .met_ns = 100 };

	memcpy(asked.comm, "worker", 7);
	ASSERT(selection_holds_for(&p, &asked, &h));
	/* An image of the same name was there before. */
	h.time_ns = 99;
	ASSERT(!selection_holds_for(&p, &asked, &h));
	ASSERT(selection_holds_for(&p, NULL, &h));
	h.time_ns = 101;
	memcpy(asked.comm, "master", 7);
	ASSERT(!selection_holds_for(&p, &asked, &h));
	/* The first thread's name is the process's. */
	h.tid = 7;
	ASSERT(!selection_holds_for(&p, NULL, &h));
	memcpy(h.comm, "worker", 7);
	ASSERT(selection_holds_for(&p, NULL, &h));
}

TEST(what_is_of_two_processes_is_not_sealed)
{
	const struct select_facts a = { .space = 1 | 2ull << 48,
					.cgroup = 3,
					.comm = { 4, 5 },
					.facts = 6,
					.met_ns = 7,
					.epoch = 8 },
				  b = { .space = 9 | 2ull << 48,
					.cgroup = 10,
					.comm = { 11, 12 },
					.facts = 13,
					.met_ns = 14,
					.epoch = 15 };
	struct select_facts mixed[6] = { a, a, a, a, a, a };
	uint32_t seal = select_seal(100, &a);

	mixed[0].space = b.space;
	mixed[1].cgroup = b.cgroup;
	mixed[2].comm[0] = b.comm[0];
	mixed[3].comm[1] = b.comm[1];
	mixed[4].facts = b.facts;
	mixed[5].epoch = b.epoch;
	for (size_t i = 0; i < sizeof(mixed) / sizeof(mixed[0]); i++)
		ASSERT(select_seal(100, &mixed[i]) != seal);
	ASSERT(select_seal(101, &a) != seal);
	ASSERT_EQ(select_seal(100, &a), seal);
	for (uint32_t pid = 0; pid < 1000; pid++)
		ASSERT(select_seal(pid, &a) != 0);
}
