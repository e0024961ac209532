// SPDX-License-Identifier: Apache-2.0
#include "kernel/off_cpu.h"
#include "kernel/tracepoints.h"
#include "kernel/walkers.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/kernel_symbols.h"

#include "off_cpu.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	SLEEPERS_MIN = 16384, /* 112 bytes each; a user alone has seven of sixteen */
	SLEEPERS_MAX = 262144,
	KICKS_BYTES = 64 << 10, /* of a CPU; 16 bytes each, taken out five times a second */
	CODE_MAX = 64 << 10,
	SWEEP_THREADS = 128, /* a second: a system call each, a microsecond or less */
};

#define SWEEP_INTERVAL_NS 1000000000ull

const char *off_cpu_state_name(enum off_cpu_state state)
{
	static const char *const names[OFF_CPU_STATES_] = {
		[OFF_CPU_INTERRUPTIBLE] = "interruptible",
		[OFF_CPU_UNINTERRUPTIBLE] = "uninterruptible",
		[OFF_CPU_PREEMPTED] = "preempted",
		[OFF_CPU_STOPPED] = "stopped",
	};

	return state < OFF_CPU_STATES_ ? names[state] : NULL;
}

/* `function`, as compilers name it; not its part that is hardly ever run. */
static bool is_function(const char *name, const char *function)
{
	size_t len = strlen(function);

	return !strncmp(name, function, len) && (!name[len] || !strncmp(name + len, ".isra", 5) ||
						 !strncmp(name + len, ".constprop", 10));
}

/*
 * What interrupts begin with, not exceptions: those come where the thread is at work. x86 has one
 * behind the other (asm/idtentry.h). aarch64 goes over to the interrupts' stack there: 6.1,
 * arch/arm64/kernel/entry-common.c, do_interrupt_handler().
 */
static bool is_interrupt(const char *name, const char *unused)
{
	static const char sysvec[] = "asm_sysvec_";

	(void)unused;
	return is_function(name, "asm_common_interrupt") ||
	       is_function(name, "asm_spurious_interrupt") ||
	       !strncmp(name, sysvec, strlen(sysvec)) || is_function(name, "call_on_irq_stack");
}

struct code_search {
	bool (*is)(const char *name, const char *function);
	const char *function;
	struct off_cpu_code *ret;
	uint64_t start;
};

/* 1: found. */
static int look_at_code(void *ctx, const struct kernel_symbol *s)
{
	struct code_search *c = ctx;
	bool is_one = (s->type == 't' || s->type == 'T') && c->is(s->name, c->function);

	if (!c->start && is_one)
		c->start = s->address;
	if (!c->start || s->address <= c->start || is_one)
		return 0;
	if (s->address - c->start > CODE_MAX)
		return -ENOENT;
	*c->ret = (struct off_cpu_code){ c->start, s->address - c->start };
	return 1;
}

/*
 * The first ones in a row that `is` says of. The kernel lists its own functions in the order of
 * their addresses.
 */
static int find_code(bool (*is)(const char *name, const char *function), const char *function,
		     struct off_cpu_code *ret)
{
	struct code_search search = { .is = is, .function = function, .ret = ret };
	int r = kernel_symbols_walk(look_at_code, &search);

	return r > 0 ? 0 : r ? r : -ENOENT;
}

int off_cpu_find_schedule(struct off_cpu_code *ret)
{
	return find_code(is_function, "__schedule", ret);
}

int off_cpu_find_waking(struct off_cpu_code *ret)
{
	return find_code(is_function, "try_to_wake_up", ret);
}

int off_cpu_find_interrupts(struct off_cpu_code *ret)
{
	return find_code(is_interrupt, NULL, ret);
}

uint32_t off_cpu_chance(const struct off_cpu_options *options)
{
	double of_all = options->chance * 0x1p32;

	if (of_all >= UINT32_MAX)
		return UINT32_MAX;
	return of_all > 1 ? (uint32_t)of_all : 1;
}

double off_cpu_scale(const struct off_cpu_options *options)
{
	uint32_t chance = off_cpu_chance(options);

	return chance == UINT32_MAX ? 1 : 0x1p32 / chance;
}

const char *off_cpu_place(bool *kick)
{
	static const char exit[] = "sched_exit_tp";

	*kick = *kick || !tracepoint_is_raw(exit);
	if (!*kick)
		return exit;
#if defined(__x86_64__)
	return "irq_work_entry";
#else
	return "ipi_entry";
#endif
}

/* Of the machine: the fourth field of /proc/loadavg is "running/all". */
static uint32_t nr_threads(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/loadavg", "re");
	uint32_t n;

	return f && fscanf(f, "%*s %*s %*s %*u/%u", &n) == 1 ? n : 0;
}

/* Each thread that sleeps, with room for four times as many as there are. */
uint32_t off_cpu_nr_sleepers(void)
{
	uint32_t n = nr_threads();

	if (n > SLEEPERS_MAX / 4)
		return SLEEPERS_MAX;
	return 4 * n < SLEEPERS_MIN ? SLEEPERS_MIN : 4 * n;
}

static int on_kick(void *ctx, void *record, size_t size)
{
	(void)ctx;
	(void)record;
	(void)size;
	return 0;
}

static int set_up_kicks(struct off_cpu *o)
{
	uint32_t nr_cpus = bpf_map__max_entries(o->bpf->maps.kicks);
	int r = 0;

	for (uint32_t cpu = 0; cpu < nr_cpus && !r; cpu++) {
		_cleanup_close_ int fd =
			bpf_map_create(BPF_MAP_TYPE_RINGBUF, "kick_ring", 0, 0, KICKS_BYTES, NULL);

		if (fd < 0)
			return fd;
		r = bpf_map_update_elem(bpf_map__fd(o->bpf->maps.kicks), &cpu, &fd, BPF_ANY);
		if (r)
			return r;
		if (o->kicks)
			r = ring_buffer__add(o->kicks, fd, on_kick, NULL);
		else
			o->kicks = ring_buffer__new(fd, on_kick, NULL, NULL);
		if (!o->kicks)
			return -errno;
		o->kick_bytes += walkers_fd_bytes(fd);
	}
	return r;
}

int off_cpu_open(struct off_cpu *o, const struct off_cpu_options *options,
		 const struct bpf_object *sampler)
{
	static const char *const shared[] = { "targets",   "lost",  "woken",   "sleepers",
					      "selection", "facts", "rejected" };
	int r = 0;

	*o = (struct off_cpu){ .bpf = off_cpu_bpf__open() };
	if (!o->bpf)
		return -errno;
	o->bpf->rodata->config_targets_only = options->targets_only;
	o->bpf->rodata->config_select = options->select;
	o->bpf->rodata->config_source = options->source;
	o->bpf->rodata->config_weight_ns = options->weight_ns;
	o->bpf->rodata->config_least_ns = options->least_ns;
	o->bpf->rodata->config_kick = options->kick;
	o->bpf->rodata->config_chance = off_cpu_chance(options);
	o->bpf->rodata->config_sleepers =
		(int32_t)bpf_map__max_entries(bpf_object__find_map_by_name(sampler, "sleepers"));
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]) && !r; i++)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(o->bpf->obj, shared[i]),
				      bpf_object__find_map_fd_by_name(sampler, shared[i]));
	if (!r && options->kick)
		r = bpf_map__set_max_entries(o->bpf->maps.kicks,
					     (uint32_t)libbpf_num_possible_cpus());
	if (!r)
		r = off_cpu_bpf__load(o->bpf);
	if (!r && options->kick)
		r = set_up_kicks(o);
	if (r)
		off_cpu_close(o);
	return r;
}

int off_cpu_attach(struct off_cpu *o)
{
	o->link = bpf_program__attach(o->bpf->progs.on_switch);
	return o->link ? 0 : -errno;
}

void off_cpu_detach(struct off_cpu *o)
{
	bpf_link__destroy(o->link);
	o->link = NULL;
}

void off_cpu_close(struct off_cpu *o)
{
	off_cpu_detach(o);
	ring_buffer__free(o->kicks);
	off_cpu_bpf__destroy(o->bpf);
	*o = (struct off_cpu){ .bpf = NULL };
}

static void count_out(struct off_cpu *o, uint32_t user)
{
	__atomic_sub_fetch(&o->bpf->bss->nr_sleepers, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&o->bpf->bss->nr_sleepers_of[user % SLEEPER_OWNERS], 1,
			   __ATOMIC_RELAXED);
}

/* By buckets, so that it gets on whatever is put in and taken out meanwhile. */
void off_cpu_sweep(struct off_cpu *o)
{
	int fd = bpf_map__fd(o->bpf->maps.sleepers), r;
	struct sleeper sleepers[SWEEP_THREADS];
	uint32_t tids[SWEEP_THREADS], nr = SWEEP_THREADS;

	r = bpf_map_lookup_batch(fd, o->sweep_goes_on ? &o->sweep_at : NULL, &o->sweep_at, tids,
				 sleepers, &nr, NULL);
	o->sweep_goes_on = !r;
	if (r && r != -ENOENT) /* -ENOENT: these are the last ones */
		return;
	for (uint32_t i = 0; i < nr && i < SWEEP_THREADS; i++)
		if (syscall(SYS_tkill, tids[i], 0) && errno == ESRCH &&
		    !bpf_map_delete_elem(fd, &tids[i]))
			count_out(o, sleepers[i].user);
}

void off_cpu_drain(struct off_cpu *o)
{
	uint64_t now = now_ns();

	if (o->kicks)
		ring_buffer__consume(o->kicks);
	if (!o->bpf || now < o->sweep_ns)
		return;
	o->sweep_ns = now + SWEEP_INTERVAL_NS;
	off_cpu_sweep(o);
}

size_t off_cpu_bytes(const struct off_cpu *o)
{
	if (!o->bpf)
		return 0;
	return o->kick_bytes +
	       walkers_program_bytes(bpf_program__fd(o->bpf->progs.on_switch), NULL);
}

uint64_t off_cpu_run_ns(const struct off_cpu *o)
{
	return o->bpf ? walkers_program_run_ns(bpf_program__fd(o->bpf->progs.on_switch)) : 0;
}
