// SPDX-License-Identifier: Apache-2.0
/* A second source: what it shares with the sampler, and what becomes of a sample whose memory is in
 * use. */
#include "abi/kernel_rows.h"
#include "abi/sample.h"

#include "off_cpu.skel.h"
#include "sonde.skel.h"

#include "bpf/walk.bpf.h"
#include "kernel/hits.h"
#include "kernel/libbpf_log.h"
#include "kernel/source.h"
#include "kernel/test_walkers.h"
#include "test.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of this thread's own time. */
#define ENOUGH_NS UINT64_C(20000000000)

enum {
	WAIT_MS = 1000,
	MARK = 0x50deed,
/* The register with a function's first argument, and a system call's, by DWARF number. */
#if defined(__x86_64__)
	ARGUMENT = 5,
#else
	ARGUMENT = 0,
#endif
};

TEST_SKIP_REASON()
{
	const char *reason = test_walkers_skip_reason();

	/* Then there is the program with all runtimes' steps. */
	return reason && !geteuid() && walkers_can_be_called() == 0 ? NULL : reason;
}

static bool is_whole(void)
{
	return walkers_can_be_called() == 0;
}

/* Are programs tried that this kernel's sonde has no use for? With SONDE_PROGRAMS=used they are
 * not: the verifier's work on all runtimes' steps takes an emulated CPU half a minute. */
static bool tries_unused(void)
{
	const char *which = getenv("SONDE_PROGRAMS");

	return !which || strcmp(which, "used");
}

struct sources {
	struct sonde_bpf *sampler; /* its maps; no program */
	struct source source;
	struct ring_buffer *ring;
	int nr_records;
	/* The last raw one with that argument, and how many there were. */
	uint64_t marked;
	int nr_marked, nr_interruptible;
	struct sample_header header, last;
	struct sample_raw raw;
	uint64_t kernel; /* its innermost kernel frame */
};

static int count_record(void *ctx, void *record, size_t size)
{
	struct sources *s = ctx;

	const struct sample_header *h = record;
	const struct sample_raw *raw = (const struct sample_raw *)(h + 1);

	s->nr_records++;
	s->last = *h;
	if (size < sizeof(*h) + sizeof(*raw) || h->type != SAMPLE_RAW ||
	    raw->regs[ARGUMENT] != s->marked)
		return 0;
	s->nr_interruptible +=
		h->flags >> SAMPLE_STATE_SHIFT == OFF_CPU_INTERRUPTIBLE && h->value > 1000000;
	s->header = *h;
	s->raw = *raw;
	if (raw->nr_kernel)
		memcpy(&s->kernel, raw + 1, sizeof(s->kernel));
	s->nr_marked++;
	return 0;
}

/* Of sleeps. */
static struct off_cpu_code schedule;

/* Of this process alone. */
static void open_source(struct sources *s, struct source_spec spec, bool whole)
{
	uint32_t pid = (uint32_t)getpid(), one = 1;
	uint32_t nr_cpus = (uint32_t)libbpf_num_possible_cpus();
	struct sonde_bpf *bpf = sonde_bpf__open(), *second = sonde_bpf__open();
	struct bpf_program *program;

	libbpf_log_to_debug();
	ASSERT(bpf && second);
	*s = (struct sources){ .sampler = bpf };
	bpf_object__for_each_program(program, bpf->obj) bpf_program__set_autoload(program, false);
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.records, nr_cpus));
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.raws, nr_cpus));
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.hits, nr_cpus));
	ASSERT_OK(bpf_map__set_max_entries(bpf->maps.rule_caches, nr_cpus));
	bpf->rodata->config_targets_only = second->rodata->config_targets_only = true;
	if (spec.kind == SOURCE_SLEEPS)
		ASSERT_OK(bpf_map__set_max_entries(bpf->maps.sleepers, off_cpu_nr_sleepers()));
	second->rodata->config_source = 1;
	second->rodata->config_value = spec.value;
	second->rodata->config_filter = spec.filter;
	second->rodata->config_at_entry = spec.kind == SOURCE_KPROBE;
	if (spec.kind == SOURCE_SLEEPS)
		ASSERT_OK(off_cpu_find_schedule(&schedule));
	second->rodata->config_schedule_start = schedule.start;
	second->rodata->config_schedule_size = schedule.size;
	second->rodata->config_kicked = spec.off_cpu.kick;
	ASSERT_OK(sonde_bpf__load(bpf));
	ASSERT_OK(bpf_map_update_elem(bpf_map__fd(bpf->maps.targets), &pid, &one, BPF_ANY));
	ASSERT_OK(source_open(&s->source, &spec, whole, bpf->obj, NULL,
			      TAKE_PTR(*second->skeleton->obj), NULL));
	sonde_bpf__destroy(second);
	s->ring = ring_buffer__new(bpf_map__fd(bpf->maps.samples), count_record, s, NULL);
	ASSERT_PTR_NONNULL(s->ring);
}

static void open_at(struct sources *s, const char *name, bool whole)
{
	open_source(s, (struct source_spec){ .kind = SOURCE_RAW_TRACEPOINT, .name = name }, whole);
}

static void open_probe(struct sources *s, enum source_kind kind, const char *file, const char *name,
		       bool whole)
{
	const struct source_spec spec = {
		.kind = kind,
		.value = kind == SOURCE_URETPROBE ? VALUE_RETURNED : VALUE_ARGUMENT,
		.file = file,
		.name = name,
	};

	open_source(s, spec, whole);
}

static void open_sources(struct sources *s)
{
	open_at(s, "sys_enter", is_whole());
}

static void close_sources(struct sources *s)
{
	ring_buffer__free(s->ring);
	source_close(&s->source);
	sonde_bpf__destroy(s->sampler);
}

static int fd_of(const struct bpf_object *object, const char *map)
{
	return bpf_object__find_map_fd_by_name(object, map);
}

static uint32_t id_of(const struct bpf_object *object, const char *map)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	ASSERT_OK(bpf_obj_get_info_by_fd(fd_of(object, map), &info, &len));
	return info.id;
}

/* Runs the program here and now: this test's own stack is walked. */
static void sample(struct sources *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	ASSERT_OK(bpf_prog_test_run_opts(bpf_program__fd(s->source.program), &opts));
	ASSERT(ring_buffer__consume(s->ring) >= 0);
}

/* Of all sources. */
static uint64_t nr_lost(const struct sources *s, uint32_t reason)
{
	uint64_t values[4096] = { 0 }, sum = 0;

	ASSERT(libbpf_num_possible_cpus() <= 4096);
	for (uint32_t source = 0; source < SAMPLE_SOURCES_MAX; source++) {
		uint32_t key = LOST_KEY(source, reason);

		ASSERT_OK(bpf_map_lookup_elem(bpf_map__fd(s->sampler->maps.lost), &key, values));
		for (int i = 0; i < libbpf_num_possible_cpus(); i++)
			sum += values[i];
	}
	return sum;
}

/* The marks of all CPUs: sets them to `in_use`, and returns how many were set before. */
static int mark(const struct bpf_object *object, uint32_t in_use)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, "walks");
	size_t size = (bpf_map__value_size(map) + 7) & ~7u;
	int nr_cpus = libbpf_num_possible_cpus(), nr = 0;
	char *values = calloc((size_t)nr_cpus, size);
	uint32_t zero = 0, was;

	ASSERT_PTR_NONNULL(values);
	ASSERT_OK(bpf_map_lookup_elem(bpf_map__fd(map), &zero, values));
	for (int i = 0; i < nr_cpus; i++) {
		char *at = values + (size_t)i * size + offsetof(struct walk, in_use);

		memcpy(&was, at, sizeof(was));
		nr += was != 0;
		memcpy(at, &in_use, sizeof(in_use));
	}
	ASSERT_OK(bpf_map_update_elem(bpf_map__fd(map), &zero, values, BPF_ANY));
	free(values);
	return nr;
}

TEST(scratch_memory_and_walkers_are_its_own_and_tables_are_shared)
{
	static const char *const own[] = { "walks",	  "records", "raws",
					   "rule_caches", "walkers", "hits" };
	static const char *const shared[] = { "processes", "files", "rules",   "arena",
					      "known",	   "lost",  "targets", "samples" };
	const struct bpf_object *a, *b;
	struct sources s;

	open_sources(&s);
	a = s.sampler->obj;
	b = s.source.object;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		ASSERT(id_of(a, own[i]) != id_of(b, own[i]));
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		ASSERT_EQ(id_of(a, shared[i]), id_of(b, shared[i]));
	ASSERT(source_bytes(&s.source) > 4096);
	close_sources(&s);
}

TEST(a_sample_that_finds_its_memory_in_use_is_counted_and_leaves_it_alone)
{
	int nr_cpus = libbpf_num_possible_cpus();
	struct sources s;

	open_sources(&s);
	mark(s.source.object, 1);
	sample(&s);
	ASSERT_EQ(s.nr_records, 0);
	ASSERT_EQ(nr_lost(&s, LOST_NO_SCRATCH), 1);
	ASSERT_EQ(mark(s.source.object, 0), nr_cpus);
	/* Each walk frees it for the next one. */
	for (int i = 1; i <= 3; i++) {
		sample(&s);
		ASSERT_EQ(s.nr_records, i);
		ASSERT_EQ(mark(s.source.object, 0), 0);
	}
	ASSERT_EQ(nr_lost(&s, LOST_NO_SCRATCH), 1);
	close_sources(&s);
}

TEST(a_source_minds_no_other_ones_walk)
{
	int nr_cpus = libbpf_num_possible_cpus();
	struct sources s;

	open_sources(&s);
	mark(s.sampler->obj, 1);
	sample(&s);
	ASSERT_EQ(s.nr_records, 1);
	ASSERT_EQ(nr_lost(&s, LOST_NO_SCRATCH), 0);
	ASSERT_EQ(mark(s.sampler->obj, 0), nr_cpus);
	close_sources(&s);
}

/* Each source's context tells other registers: those of a task that enters the kernel ... */
static void check_task(bool whole)
{
	struct sources s;

	open_at(&s, "sys_enter", whole);
	ASSERT_OK(source_attach(&s.source, NULL));
	syscall(SYS_getppid, MARK);
	source_detach(&s.source);
	s.marked = MARK;
	ASSERT(ring_buffer__consume(s.ring) >= 1);
	ASSERT_EQ(s.nr_marked, 1);
	ASSERT_EQ(s.header.tid, (uint32_t)gettid());
	ASSERT_EQ(s.header.value, 1);
	ASSERT(s.raw.pc - (uintptr_t)syscall < 256);
	close_sources(&s);
}

/* ... and of one that comes to a function. */
int source_test_probed(int n);
__attribute__((noinline)) int source_test_probed(int n)
{
	__asm__ volatile("");
	return n + 1;
}

static void check_probe(bool whole)
{
	struct sources s;

	open_probe(&s, SOURCE_UPROBE, "/proc/self/exe", "source_test_probed", whole);
	ASSERT_OK(source_attach(&s.source, NULL));
	for (int i = 1; i <= 20; i++) {
		s.marked = MARK + (uint64_t)i;
		source_test_probed(MARK + i);
		ASSERT_EQ(ring_buffer__consume(s.ring), 1);
		ASSERT_EQ(s.nr_marked, i);
		ASSERT_EQ(s.raw.pc, (uintptr_t)source_test_probed);
		ASSERT_EQ(s.header.source, 1);
		ASSERT_EQ(s.header.value, s.marked);
		ASSERT_EQ(s.header.pid, (uint32_t)getpid());
		ASSERT_EQ(s.header.tid, (uint32_t)gettid());
		ASSERT_EQ(s.raw.nr_kernel, 0);
	}
	source_detach(&s.source);
	source_test_probed(0);
	ASSERT_EQ(ring_buffer__consume(s.ring), 0);
	close_sources(&s);
}

static void check_return(bool whole)
{
	struct sources s;

	open_probe(&s, SOURCE_URETPROBE, "/proc/self/exe", "source_test_probed", whole);
	ASSERT_OK(source_attach(&s.source, NULL));
	for (int i = 1; i <= 3; i++) {
		source_test_probed(i);
		ASSERT_EQ(ring_buffer__consume(s.ring), 1);
		ASSERT_EQ(s.nr_records, i);
		ASSERT_EQ(s.last.value, i + 1);
		ASSERT_EQ(s.last.tid, (uint32_t)gettid());
	}
	close_sources(&s);
}

/* Both programs of a source are the same but for the runtimes' steps. */
static void check_both(void (*check)(bool whole))
{
	if (!is_whole())
		check(false);
	if (is_whole() || tries_unused())
		check(true);
}

TEST(a_task_in_the_kernel_has_the_registers_of_its_entry)
{
	check_both(check_task);
}

TEST(a_probe_has_the_registers_of_its_instruction)
{
	check_both(check_probe);
}

TEST(a_probe_where_a_function_returns_has_what_it_returns)
{
	check_both(check_return);
}

TEST(a_stack_that_is_copied_short_for_lack_of_room_says_so)
{
	struct sources s;

	open_probe(&s, SOURCE_UPROBE, "/proc/self/exe", "source_test_probed", is_whole());
	ASSERT_OK(source_attach(&s.source, NULL));
	s.marked = 1;
	source_test_probed(1);
	ASSERT_EQ(ring_buffer__consume(s.ring), 1);
	ASSERT_EQ(s.nr_marked, 1);
	ASSERT_EQ(s.raw.is_short, 0);
	s.sampler->bss->raws_sent = RAWS_SHORT;
	source_test_probed(1);
	ASSERT_EQ(ring_buffer__consume(s.ring), 1);
	ASSERT_EQ(s.nr_marked, 2);
	ASSERT_EQ(s.raw.is_short, 1);
	ASSERT(s.raw.nr_pages <= RAW_PAGES_SHORT);
	close_sources(&s);
}

/* Not whose rights it has. */
TEST(a_stack_that_is_copied_says_whose_process_it_is)
{
	enum { USER = 65534 };
	struct sources s;

	open_probe(&s, SOURCE_UPROBE, "/proc/self/exe", "source_test_probed", is_whole());
	ASSERT_OK(source_attach(&s.source, NULL));
	s.marked = 1;
	source_test_probed(1);
	ASSERT_EQ(ring_buffer__consume(s.ring), 1);
	ASSERT_EQ(s.raw.user, getuid());
	ASSERT(!setresuid(USER, 0, 0));
	source_test_probed(1);
	ASSERT_EQ(ring_buffer__consume(s.ring), 1);
	ASSERT_EQ(s.nr_marked, 2);
	ASSERT_EQ(s.raw.user, USER);
	close_sources(&s);
}

int source_test_named(const char *name);
__attribute__((noinline)) int source_test_named(const char *name)
{
	__asm__ volatile("" : : "r"(name));
	return *name;
}

/* Takes samples of calls with this. */
static void open_named(struct sources *s, const char *wanted, size_t compared)
{
	struct source_spec spec = { .kind = SOURCE_UPROBE,
				    .file = "/proc/self/exe",
				    .name = "source_test_named",
				    .filter = { .is_set = 1 } };

#if defined(__x86_64__)
	spec.filter.reg = 14; /* di */
#endif
	memcpy(spec.filter.text, wanted, compared);
	memset(spec.filter.mask, 0xff, compared);
	open_source(s, spec, is_whole());
	ASSERT_OK(source_attach(&s->source, NULL));
}

/* A constant's page may be one that this process has not touched: here the text is in memory. */
static void call_named(const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", name);
	source_test_named(text);
}

/* How many samples there are of calls with these, and others. */
static int nr_named(const char *wanted, size_t compared)
{
	struct sources s;
	int nr;

	open_named(&s, wanted, compared);
	call_named("abc");
	call_named("abcd");
	call_named("ab");
	call_named("xabc");
	call_named("a text that is longer than what is looked at of it, by far and by more");
	nr = ring_buffer__consume(s.ring);
	ASSERT_EQ(nr_lost(&s, LOST_ARGUMENT_UNREADABLE), 0);
	close_sources(&s);
	return nr;
}

TEST(an_argument_that_is_not_in_memory_is_counted)
{
	char *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sources s;

	ASSERT(page != MAP_FAILED);
	open_named(&s, "abc", 4);
	source_test_named(page);
	ASSERT_EQ(ring_buffer__consume(s.ring), 0);
	ASSERT_EQ(nr_lost(&s, LOST_ARGUMENT_UNREADABLE), 1);
	/* The call has touched it. */
	memcpy(page, "abc", 4);
	source_test_named(page);
	ASSERT_EQ(ring_buffer__consume(s.ring), 1);
	ASSERT_EQ(nr_lost(&s, LOST_ARGUMENT_UNREADABLE), 1);
	close_sources(&s);
}

TEST(a_probe_looks_at_its_argument)
{
	ASSERT_EQ(nr_named("abc", 4), 1);
	ASSERT_EQ(nr_named("abc", 3), 2);
	ASSERT_EQ(nr_named("a", 1), 4);
	ASSERT_EQ(nr_named("abcde", 6), 0);
}

/* All but its configuration. */
TEST(a_second_source_of_a_family_uses_what_the_first_one_has)
{
	const struct source_spec spec = { .kind = SOURCE_UPROBE,
					  .file = "/proc/self/exe",
					  .name = "source_test_probed" };
	struct source second;
	struct sonde_bpf *bpf;
	struct sources s;

	open_probe(&s, SOURCE_URETPROBE, "/proc/self/exe", "source_test_probed", is_whole());
	bpf = sonde_bpf__open();
	ASSERT_PTR_NONNULL(bpf);
	bpf->rodata->config_source = 2;
	ASSERT_OK(source_open(&second, &spec, is_whole(), s.sampler->obj, &s.source,
			      TAKE_PTR(*bpf->skeleton->obj), NULL));
	sonde_bpf__destroy(bpf);
	ASSERT_EQ(id_of(s.source.object, "walks"), id_of(second.object, "walks"));
	ASSERT_EQ(id_of(s.source.object, "walkers"), id_of(second.object, "walkers"));
	ASSERT_EQ(id_of(s.sampler->obj, "known"), id_of(second.object, "known"));
	ASSERT(source_bytes(&second) < source_bytes(&s.source) / 2);
	ASSERT_OK(source_attach(&second, NULL));
	source_test_probed(1);
	ASSERT_EQ(ring_buffer__consume(s.ring), 1);
	ASSERT_EQ(s.last.source, 2);
	source_close(&second);
	close_sources(&s);
}

/* Whether it slept: on a busy machine the time may have passed before it came to that. */
static bool sleep_20ms(uint64_t argument)
{
	struct timespec time = { .tv_nsec = 20000000 }; /* gets what is left of it */
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	ASSERT_EQ(syscall(SYS_ppoll, argument, 0, &time, NULL, 0), 0);
	getrusage(RUSAGE_THREAD, &after);
	return after.ru_nvcsw > before.ru_nvcsw;
}

/* ... and those of one that has slept, with the kernel's stack that it slept in. */
static void check_sleep(bool whole, struct off_cpu_options options)
{
	struct source_spec spec = { .kind = SOURCE_SLEEPS,
				    .value = VALUE_SLEPT_NS,
				    .off_cpu = options };
	struct sources s;
	int i, missed = 0;

	spec.name = off_cpu_place(&spec.off_cpu.kick);
	open_source(&s, spec, whole);
	ASSERT_OK(source_attach(&s.source, NULL));
	for (i = 1; i <= 5 && missed < 100;) {
		s.marked = MARK + (uint64_t)i + (uint64_t)missed;
		s.nr_marked = 0;
		if (!sleep_20ms(s.marked))
			continue;
		source_drain(&s.source);
		ASSERT(ring_buffer__consume(s.ring) >= 0);
		if (!s.nr_marked) { /* it may have been preempted in there, too */
			missed++;
			continue;
		}
		i++;
		ASSERT_EQ(s.header.source, 1);
		ASSERT_EQ(s.header.tid, (uint32_t)gettid());
		ASSERT(s.raw.pc - (uintptr_t)syscall < 256);
		ASSERT(s.raw.nr_kernel > 3);
		ASSERT(s.kernel - schedule.start < schedule.size);
	}
	ASSERT_EQ(i, 6);
	/* What the kernel did not tell of shows at the next switch. */
	sleep_20ms(0);
	ASSERT(nr_lost(&s, LOST_SLEEP_MISSED) >= (uint64_t)missed);
	ASSERT(s.nr_interruptible);
	source_detach(&s.source);
	s.nr_marked = 0;
	sleep_20ms(s.marked);
	ASSERT(ring_buffer__consume(s.ring) >= 0);
	ASSERT_EQ(s.nr_marked, 0);
	close_sources(&s);
}

static void check_every_sleep(bool whole)
{
	check_sleep(whole, (struct off_cpu_options){ .chance = 1 });
}

TEST(a_task_that_has_slept_has_the_registers_of_its_entry)
{
	check_both(check_every_sleep);
}

TEST(an_interrupt_finds_it_where_there_is_no_tracepoint)
{
	check_sleep(is_whole(), (struct off_cpu_options){ .chance = 1, .kick = true });
}

TEST(a_sleep_stands_for_no_less_than_its_weight)
{
	struct off_cpu_options options = { .chance = 1, .weight_ns = 1000000 };

	check_sleep(is_whole(), options);
	options.least_ns = 1000000;
	check_sleep(is_whole(), options);
}

#define EXECUTED "SOURCE_TEST_EXECUTED"

/* What a thread executes: this program. It sleeps again and again: the kernel may not tell of one
 * sleep (LOST_SLEEP_MISSED), and whoever waits until he is told would wait for ever. */
__attribute__((constructor)) static void executed(void)
{
	if (getenv(EXECUTED))
		for (;;)
			usleep(1000);
}

static void *execute(void *tell)
{
	const struct timespec time = { .tv_nsec = 1000000 };
	pid_t tid = gettid();

	nanosleep(&time, NULL);
	if (write(*(int *)tell, &tid, sizeof(tid)) == sizeof(tid))
		execl("/proc/self/exe", "executed", (char *)NULL);
	_exit(1);
}

/* A process whose second thread executes something once `go` can be read, and tells its number. */
static pid_t start_executing(int go, int tell)
{
	pid_t pid = fork();
	pthread_t thread;
	char byte;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv(EXECUTED, "1", 1);
	if (read(go, &byte, 1) == 1 && !pthread_create(&thread, NULL, execute, &tell))
		pthread_join(thread, NULL);
	_exit(1);
}

static bool has_entry(const struct sources *s, pid_t tid)
{
	struct sleeper sleeper;

	return !bpf_map_lookup_elem(bpf_map__fd(s->source.off_cpu.bpf->maps.sleepers), &tid,
				    &sleeper);
}

static void open_sleeps(struct sources *s, bool targets_only)
{
	struct source_spec spec = { .kind = SOURCE_SLEEPS,
				    .off_cpu = { .chance = 1, .targets_only = targets_only } };

	spec.name = off_cpu_place(&spec.off_cpu.kick);
	open_source(s, spec, is_whole());
	ASSERT_OK(source_attach(&s->source, NULL));
}

TEST(what_is_left_of_a_thread_that_executes_something_is_swept)
{
	int go[2], told[2], fd;
	uint32_t one = 1;
	struct sources s;
	pid_t pid, tid;

	open_sleeps(&s, false);
	ASSERT_OK(pipe(go));
	ASSERT_OK(pipe(told));
	pid = start_executing(go[0], told[1]);
	ASSERT(pid > 0);
	close(told[1]);
	ASSERT_OK(bpf_map_update_elem(bpf_map__fd(s.sampler->maps.targets), &pid, &one, BPF_ANY));
	ASSERT_EQ(write(go[1], "", 1), 1);
	ASSERT_EQ(read(told[0], &tid, sizeof(tid)), (ssize_t)sizeof(tid));
	/* Until it waits under the first thread's number. */
	while (!syscall(SYS_tkill, tid, 0) || !has_entry(&s, pid)) {
		ASSERT_EQ(waitpid(pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	/* It may be gone, if the first thread, which has that number then, has just gone to its
	 * end. */
	fd = bpf_map__fd(s.source.off_cpu.bpf->maps.sleepers);
	ASSERT_OK(bpf_map_update_elem(fd, &tid, &(struct sleeper){ .since_ns = 1 }, BPF_ANY));
	for (int i = 0; i < 8; i++)
		off_cpu_sweep(&s.source.off_cpu);
	ASSERT(!has_entry(&s, tid));
	ASSERT(has_entry(&s, pid));
	ASSERT(has_entry(&s, gettid()));
	/* All others: in several parts, while those before are taken out. */
	for (uint32_t n = 0; n < 1000; n++) {
		struct sleeper sleeper = { .since_ns = 1 };
		uint32_t nobody = 0x7fff0000 + n;

		ASSERT_OK(bpf_map_update_elem(fd, &nobody, &sleeper, BPF_ANY));
	}
	for (int i = 0; i < 32; i++)
		off_cpu_sweep(&s.source.off_cpu);
	for (uint32_t n = 0; n < 1000; n++)
		ASSERT(!has_entry(&s, (pid_t)(0x7fff0000 + n)));
	ASSERT(has_entry(&s, pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
	close(told[0]);
	close_sources(&s);
}

static void *sleep_shortly(void *unused)
{
	const struct timespec time = { .tv_nsec = 100000 };

	nanosleep(&time, NULL);
	return unused;
}

TEST(as_many_sleepers_are_counted_as_there_are)
{
	pthread_t threads[20];
	struct sources s;
	uint32_t key, nr = 0;
	int32_t sum = 0;
	int fd;

	open_sleeps(&s, false);
	fd = bpf_map__fd(s.source.off_cpu.bpf->maps.sleepers);
	for (int i = 0; i < 50; i++) {
		for (int t = 0; t < 20; t++)
			ASSERT_OK(pthread_create(&threads[t], NULL, sleep_shortly, NULL));
		for (int t = 0; t < 20; t++)
			ASSERT_OK(pthread_join(threads[t], NULL));
		off_cpu_sweep(&s.source.off_cpu);
	}
	source_detach(&s.source);
	for (bool more = !bpf_map_get_next_key(fd, NULL, &key); more;
	     more = !bpf_map_get_next_key(fd, &key, &key))
		nr++;
	ASSERT_EQ(s.source.off_cpu.bpf->bss->nr_sleepers, (int32_t)nr);
	/* Who else is here may be of another user. */
	for (int user = 0; user < SLEEPER_OWNERS; user++)
		sum += s.source.off_cpu.bpf->bss->nr_sleepers_of[user];
	ASSERT_EQ(sum, (int32_t)nr);
	ASSERT(s.source.off_cpu.bpf->bss->nr_sleepers_of[0] > 0 && nr < 1000);
	close_sources(&s);
}

/*
 * Of a user: it sleeps a hundred times, then it stops. It is root's when it is forked: what it
 * would be put to sleep for before it is the user's must not count.
 */
static pid_t start_sleeper(struct sources *s, uid_t user)
{
	const struct timespec time = { .tv_nsec = 1000000 };
	uint32_t one = 1;
	int ready[2], go[2];
	char byte = 0;
	pid_t pid;

	ASSERT_OK(pipe(ready));
	ASSERT_OK(pipe(go));
	pid = fork();
	ASSERT(pid >= 0);
	if (!pid) {
		if (setuid(user) || prctl(PR_SET_PDEATHSIG, SIGKILL) ||
		    write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(1);
		for (int i = 0; i < 100; i++)
			nanosleep(&time, NULL);
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	close(ready[1]);
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	ASSERT_OK(bpf_map_update_elem(bpf_map__fd(s->sampler->maps.targets), &pid, &one, BPF_ANY));
	ASSERT_EQ(write(go[1], &byte, 1), 1);
	close(go[0]);
	close(go[1]);
	return pid;
}

/* Has it an entry once it has slept a hundred times? */
static bool is_taken(struct sources *s, uid_t user)
{
	pid_t pid = start_sleeper(s, user);
	bool ret;
	int status;

	ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
	ASSERT(WIFSTOPPED(status));
	ret = has_entry(s, pid);
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	return ret;
}

TEST(no_user_has_more_sleepers_than_are_left_for_others)
{
	enum { USER = 12345, OTHER = 12346 };
	struct off_cpu_bpf__bss *bss;
	struct sources s;
	int32_t nr, of_user;

	open_sleeps(&s, true);
	bss = s.source.off_cpu.bpf->bss;
	nr = (int32_t)bpf_map__max_entries(s.source.off_cpu.bpf->maps.sleepers);
	of_user = nr / 2;
	ASSERT(is_taken(&s, USER));
	bss->nr_sleepers_of[USER % SLEEPER_OWNERS] += of_user;
	bss->nr_sleepers += of_user;
	ASSERT(!is_taken(&s, USER));
	ASSERT(is_taken(&s, OTHER));
	/* What is left is root's; who has ended may not be counted out yet. */
	bss->nr_sleepers = nr - nr / 8 + 100;
	ASSERT(!is_taken(&s, OTHER));
	ASSERT(is_taken(&s, 0));
	source_detach(&s.source);
	close_sources(&s);
}

/* On one CPU: which stacks are known is each one's own. */
TEST(hits_go_round_the_ring_while_somebody_reads_them_and_there_is_room)
{
	uint32_t nr_cpus = (uint32_t)libbpf_num_possible_cpus();
	struct hits_reader hits;
	struct sources s;
	cpu_set_t all, one;
	int in_ring, i;

	open_sources(&s);
	ASSERT_OK(sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_OK(sched_setaffinity(0, sizeof(one), &one));
	s.sampler->bss->raws_sent =
		RAWS_NONE; /* nobody knows this process: a stack that is cut there */
	for (i = 0; i < 20; i++)
		sample(&s);
	ASSERT_EQ(s.nr_records, 20);
	ASSERT_OK(hits_open(&hits, fd_of(s.source.object, "hits"), nr_cpus,
			    fd_of(s.sampler->obj, "samples")));
	s.nr_records = 0;
	for (i = 0; i < 2 * CPU_HITS; i++)
		sample(&s);
	in_ring = s.nr_records;
	s.nr_records = 0;
	hits_look(&hits);
	ASSERT_OK(hits_take(&hits, count_record, &s));
	ASSERT_EQ(s.nr_records + in_ring, 2 * CPU_HITS);
#if defined(__x86_64__)
	ASSERT_EQ(s.nr_records, CPU_HITS);
	sample(&s); /* there is room again */
	hits_look(&hits);
	ASSERT_OK(hits_take(&hits, count_record, &s));
	ASSERT_EQ(s.nr_records, CPU_HITS + 1);
#endif
	hits_close(&hits);
	ASSERT_OK(sched_setaffinity(0, sizeof(all), &all));
	close_sources(&s);
}

TEST(walkers_are_of_the_sources_type)
{
	uint32_t id = RUNTIME_PYTHON, program;
	struct sources s;

	if (is_whole())
		return;
	open_sources(&s);
	walkers_want(&s.source.walkers, 1u << id, true);
	while (walkers_pending(&s.source.walkers, ~0u))
		walkers_update(&s.source.walkers, WAIT_MS);
	ASSERT_EQ(walkers_refused(&s.source.walkers), 0);
	ASSERT_OK(bpf_map_lookup_elem(fd_of(s.source.object, "walkers"), &id, &program));
	ASSERT(bpf_map_lookup_elem(fd_of(s.sampler->obj, "walkers"), &id, &program));
	close_sources(&s);
}

/*
 * A timer's interrupt while the program runs finds it at work on that CPU: the kernel leaves out
 * the second run. Most of what a thread does that calls the kernel all the time is that program.
 */
TEST(samples_that_the_kernel_left_out_are_counted)
{
	struct bpf_link *second;
	struct utsname kernel;
	unsigned major, minor;
	struct sources s;

	ASSERT_OK(uname(&kernel));
	ASSERT_EQ(sscanf(kernel.release, "%u.%u", &major, &minor), 2);
	if (major < 6 || (major == 6 && minor < 1)) /* it runs twice */
		return;
	open_sources(&s);
	ASSERT_EQ(source_misses(&s.source), 0);
	ASSERT_OK(source_attach(&s.source, NULL));
	second = bpf_program__attach_raw_tracepoint(s.source.program, "hrtimer_expire_entry");
	ASSERT_PTR_NONNULL(second);
	while (!source_misses(&s.source) && clock_ns(CLOCK_THREAD_CPUTIME_ID) < ENOUGH_NS)
		syscall(SYS_getppid);
	ASSERT(source_misses(&s.source));
	bpf_link__destroy(second);
	close_sources(&s);
}

TEST(each_sleep_that_is_taken_stands_for_those_that_are_not)
{
	struct off_cpu_options o = { .chance = 1 };

	ASSERT_EQ(off_cpu_chance(&o), UINT32_MAX);
	ASSERT(off_cpu_scale(&o) == 1);
	o.chance = 0.25;
	ASSERT_EQ(off_cpu_chance(&o), 1u << 30);
	ASSERT(off_cpu_scale(&o) == 4);
	/* Less than the kernel's numbers can tell. */
	o.chance = 1e-11;
	ASSERT_EQ(off_cpu_chance(&o), 1);
	ASSERT(off_cpu_scale(&o) == 0x1p32);
}

TEST(a_rate_is_what_was_asked_for)
{
	for (uint32_t rate = 1; rate < 100000; rate = rate < 2000 ? rate + 1 : rate * 3 / 2) {
		uint64_t samples, ns;

		source_rate_window(rate, &samples, &ns);
		ASSERT(samples * 1000000000 <= rate * ns);
		ASSERT(samples * 1001000000 >= rate * ns);
		ASSERT(ns <= 1000000000);
	}
}

TEST(what_is_nowhere_is_refused)
{
	struct sources s;

	open_sources(&s);
	ASSERT_OK(source_attach(&s.source, NULL));
	close_sources(&s);
	open_at(&s, "sonde_has_no_such", is_whole());
	ASSERT_ERR(source_attach(&s.source, NULL), ENOENT);
	close_sources(&s);
	open_probe(&s, SOURCE_UPROBE, "/proc/self/exe", "sonde_has_no_such", is_whole());
	ASSERT_ERR(source_attach(&s.source, NULL), ENOENT);
	close_sources(&s);
	open_probe(&s, SOURCE_UPROBE, "/sonde/has/no/such", "main", is_whole());
	ASSERT_ERR(source_attach(&s.source, NULL), ENOENT);
	close_sources(&s);
}
