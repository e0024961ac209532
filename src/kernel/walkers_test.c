// SPDX-License-Identifier: Apache-2.0
/* Walkers are loaded by children, into the sampler's map; what the kernel refuses is off. */
#include "abi/kernel_rows.h"
#include "abi/sample.h"

#include "sonde.skel.h"

#include "kernel/libbpf_log.h"
#include "kernel/walkers.h"
#include "kernel/test_walkers.h"
#include "test.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 1000 };

TEST_SKIP_REASON()
{
	return test_walkers_skip_reason();
}

/* A sampler's maps; no program of it is loaded. `walk_size`: of the map that walks are in; 0:
 * right. */
static struct sonde_bpf *make_maps(uint32_t walk_size)
{
	struct sonde_bpf *bpf = sonde_bpf__open();
	struct bpf_program *program;

	libbpf_log_to_debug();
	ASSERT_PTR_NONNULL(bpf);
	bpf_object__for_each_program(program, bpf->obj) bpf_program__set_autoload(program, false);
	if (walk_size)
		ASSERT_OK(bpf_map__set_value_size(bpf->maps.walks, walk_size));
	ASSERT_OK(sonde_bpf__load(bpf));
	return bpf;
}

static uint32_t all(void)
{
	uint32_t ids = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		ids |= walkers_name(id) ? 1u << id : 0;
	return ids;
}

static void wait_for(struct walkers *w)
{
	while (walkers_pending(w, ~0u))
		walkers_update(w, WAIT_MS);
}

static bool is_there(const struct sonde_bpf *bpf, uint32_t id)
{
	uint32_t program;

	return !bpf_map_lookup_elem(bpf_map__fd(bpf->maps.walkers), &id, &program);
}

TEST(each_runtime_has_a_name_and_native_code_none)
{
	ASSERT_STR(walkers_name(RUNTIME_PYTHON), "python");
	ASSERT_STR(walkers_name(RUNTIME_HOTSPOT), "hotspot");
	ASSERT(!walkers_name(RUNTIME_NATIVE));
	ASSERT(!walkers_name(RUNTIME_MAX_));
}

static int nr_tail_calls(const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	int nr = 0;

	for (size_t i = 0; i < bpf_program__insn_cnt(program); i++)
		nr += insns[i].code == (BPF_JMP | BPF_CALL) && !insns[i].src_reg &&
		      insns[i].imm == BPF_FUNC_tail_call;
	return nr;
}

/* Kernels that cannot mix them with functions refuse the mere instruction. */
TEST(the_program_for_kernels_without_tail_calls_has_none)
{
	struct sonde_bpf *bpf = sonde_bpf__open();

	ASSERT_PTR_NONNULL(bpf);
	ASSERT_EQ(nr_tail_calls(bpf->progs.sample_cpu), 1);
	ASSERT_EQ(nr_tail_calls(bpf->progs.sample_cpu_whole), 0);
	sonde_bpf__destroy(bpf);
}

TEST(those_that_are_wanted_come)
{
	struct sonde_bpf *bpf = make_maps(0);
	struct walkers w;

	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, NULL);
	walkers_want(&w, 1u << RUNTIME_PYTHON, true);
	ASSERT_EQ(walkers_pending(&w, ~0u), 1u << RUNTIME_PYTHON);
	ASSERT_EQ(walkers_pending(&w, 1u << RUNTIME_HOTSPOT), 0);
	wait_for(&w);
	ASSERT(is_there(bpf, RUNTIME_PYTHON));
	ASSERT(!is_there(bpf, RUNTIME_HOTSPOT));
	ASSERT(walkers_bytes(&w) >= 4096);
	walkers_want(&w, ~0u, false);
	ASSERT_EQ(walkers_pending(&w, 1u << RUNTIME_PYTHON), 0);
	/* It loads when a CPU is idle; now there are samples for it. */
	ASSERT_EQ(sched_getscheduler(w.of[RUNTIME_HOTSPOT].child.pid), SCHED_IDLE);
	walkers_want(&w, 1u << RUNTIME_HOTSPOT, true);
	ASSERT(w.of[RUNTIME_HOTSPOT].urgent);
	if (!child_set_idle(&w.of[RUNTIME_HOTSPOT].child, false)) /* else we may not */
		ASSERT_EQ(sched_getscheduler(w.of[RUNTIME_HOTSPOT].child.pid), SCHED_OTHER);
	wait_for(&w);
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		ASSERT_EQ(is_there(bpf, id), !!(all() & 1u << id));
	ASSERT_EQ(walkers_refused(&w), 0);
	ASSERT(w.of[RUNTIME_HOTSPOT].report.verified > 1000);
	walkers_fini(&w);
	sonde_bpf__destroy(bpf);
}

TEST(what_is_urgent_does_not_wait_for_what_loads_when_a_cpu_is_idle)
{
	static char shell[] = "/bin/sh", option[] = "-c", script[] = "exec sleep 1000";
	char *const program[] = { shell, option, script, NULL };
	struct sonde_bpf *bpf = make_maps(0);
	struct walkers w;
	uint32_t id = 0;

	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, program);
	walkers_want(&w, ~0u, false);
	while (id < RUNTIME_MAX_ && w.of[id].state != WALKER_WAITS)
		id++;
	ASSERT(id < RUNTIME_MAX_); /* those before it never end */
	walkers_want(&w, 1u << id, true);
	ASSERT_EQ(w.of[id].state, WALKER_LOADS);
	walkers_fini(&w);
	sonde_bpf__destroy(bpf);
}

TEST(what_the_verifier_refuses_is_off_and_its_reason_is_kept)
{
	struct sonde_bpf *bpf = make_maps(64); /* no walk's fields lie in so little */
	struct walkers w;

	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, NULL);
	walkers_want(&w, 1u << RUNTIME_PYTHON, true);
	wait_for(&w);
	ASSERT_EQ(walkers_refused(&w), 1u << RUNTIME_PYTHON);
	ASSERT(!is_there(bpf, RUNTIME_PYTHON));
	ASSERT_EQ(w.of[RUNTIME_PYTHON].report.error, -EACCES);
	if (!strstr(w.of[RUNTIME_PYTHON].report.reason, "invalid access to map value"))
		FAIL("'%s'", w.of[RUNTIME_PYTHON].report.reason);
	/* Said once: it is not tried again. */
	walkers_want(&w, ~0u, true);
	ASSERT_EQ(walkers_pending(&w, 1u << RUNTIME_PYTHON), 0);
	walkers_fini(&w);
	sonde_bpf__destroy(bpf);
}

TEST(a_loader_that_fails_leaves_its_walker_off)
{
	static char name[] = "/bin/false";
	char *const program[] = { name, NULL };
	struct sonde_bpf *bpf = make_maps(0);
	struct walkers w;

	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, program);
	walkers_want(&w, ~0u, true);
	wait_for(&w);
	ASSERT_EQ(walkers_refused(&w), all());
	ASSERT_EQ(walkers_bytes(&w), 0);
	walkers_fini(&w);
	sonde_bpf__destroy(bpf);
}

TEST(who_ends_a_loader_as_all_of_a_service_delays_its_walker)
{
	struct sonde_bpf *bpf = make_maps(0);
	struct walkers w;

	/* The library of these tests has a handler of its own, which children have at first. */
	signal(SIGTERM, SIG_DFL);
	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, NULL);
	walkers_want(&w, 1u << RUNTIME_HOTSPOT, true);
	for (int again = 0; again < 2; again++) {
		pid_t pid = w.of[RUNTIME_HOTSPOT].child.pid;

		ASSERT(pid > 0);
		/* Once it has left our group; it may still forget what it heard before. */
		while (getpgid(pid) != pid)
			sched_yield();
		while (w.of[RUNTIME_HOTSPOT].child.pid == pid) {
			ASSERT_OK(kill(pid, SIGTERM));
			walkers_update(&w, 1);
		}
		ASSERT_EQ(walkers_pending(&w, ~0u), 1u << RUNTIME_HOTSPOT);
	}
	wait_for(&w);
	ASSERT_EQ(walkers_refused(&w), 0);
	ASSERT(is_there(bpf, RUNTIME_HOTSPOT));
	walkers_fini(&w);
	sonde_bpf__destroy(bpf);
}

TEST(a_loader_that_is_always_ended_leaves_its_walker_off)
{
	static char shell[] = "/bin/sh", option[] = "-c", script[] = "kill -TERM $$";
	char *const program[] = { shell, option, script, NULL };
	struct sonde_bpf *bpf = make_maps(0);
	struct walkers w;

	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, program);
	walkers_want(&w, 1u << RUNTIME_PYTHON, true);
	wait_for(&w);
	ASSERT_EQ(walkers_refused(&w), 1u << RUNTIME_PYTHON);
	ASSERT_EQ(w.of[RUNTIME_PYTHON].report.error, -ECHILD);
	walkers_fini(&w);
	sonde_bpf__destroy(bpf);
}

TEST(a_loader_ends_with_who_wanted_it)
{
	struct sonde_bpf *bpf = make_maps(0);
	struct walkers w;
	pid_t pid;

	walkers_init(&w, bpf->obj, BPF_PROG_TYPE_PERF_EVENT, NULL);
	walkers_want(&w, 1u << RUNTIME_HOTSPOT, true);
	pid = w.of[RUNTIME_HOTSPOT].child.pid;
	ASSERT(pid > 0);
	walkers_fini(&w);
	ASSERT(kill(pid, 0) && errno == ESRCH);
	sonde_bpf__destroy(bpf);
}

TEST(without_a_sampler_that_changes_none_is_loaded)
{
	struct walkers w;

	walkers_init(&w, NULL, BPF_PROG_TYPE_UNSPEC, NULL);
	walkers_want(&w, ~0u, true);
	ASSERT_EQ(walkers_pending(&w, ~0u), 0);
	walkers_update(&w, WAIT_MS);
	walkers_fini(&w);
}
