// SPDX-License-Identifier: Apache-2.0
#include "kernel/bpf_sampler.h"
#include "kernel/hits.h"
#include "kernel/kernel_code.h"
#include "kernel/kernel_rows.h"
#include "kernel/libbpf_log.h"
#include "kernel/read_iter.h"
#include "kernel/sample_ring.h"
#include "kernel/sampling.h"
#include "kernel/source.h"
#include "kernel/walkers.h"
#include "bpf/judge.bpf.h"
#include "bpf/walk.bpf.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/read_file.h"

#include "sonde.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

struct bpf_sampler {
	struct bpf_sampler_options options;
	struct sonde_bpf *bpf;
	struct bpf_link *fork_link;
	struct sample_ring ring;
	int ring_fd; /* an epoll descriptor that has the ring */
	struct hits_reader hits;
	struct bpf_program *sample; /* the one that samples, of those in `bpf` */
	bool whole;		    /* it has all steps */
	struct walkers walkers;
	uint32_t told; /* whose walkers' refusal was said, of any source */
	struct kernel_rows rows;
	struct kernel_code_list *code; /* NULL: there are no rows, or it cannot be read */
	struct select_rules rules;     /* as they are in the kernel */
	struct source sources[SAMPLE_SOURCES_MAX]; /* from 1 on */
	size_t nr_sources;			   /* the clock among them */
	struct cpu_set *cpus;			   /* borrowed; NULL: not started */
	struct sampling sampling;
	int stats_fd;
};

/* Kernels before 5.11 charge maps against RLIMIT_MEMLOCK. */
static void raise_memlock(void)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &unlimited))
		log_debug("cannot raise RLIMIT_MEMLOCK: %s", strerror(errno));
}

/* The address bits of user code: what a PAC does not use. */
static uint64_t address_mask(void)
{
	return (1ull << 48) - 1;
}

/*
 * One sampler is loaded: that which changes to the runtimes' walkers, which are loaded later, or,
 * where the kernel cannot, that which has them all.
 */
static void choose_programs(struct bpf_sampler *sampler)
{
	struct sonde_bpf *bpf = sampler->bpf;
	struct bpf_program *program;

	sampler->whole = walkers_can_be_called() == 0;
	sampler->sample = sampler->whole ? bpf->progs.sample_cpu_whole : bpf->progs.sample_cpu;
	bpf_object__for_each_program(program, bpf->obj) bpf_program__set_autoload(
		program, program == sampler->sample || program == bpf->progs.on_fork ||
				 program == bpf->progs.show_spaces);
}

static const struct source_spec *find_spec(const struct bpf_sampler_options *o,
					   enum source_kind kind)
{
	for (size_t i = 0; i < o->nr_sources; i++)
		if (o->sources[i].kind == kind)
			return &o->sources[i];
	return NULL;
}

static int load(struct bpf_sampler *sampler)
{
	const struct bpf_sampler_options *o = &sampler->options;
	int nr_cpus = libbpf_num_possible_cpus(), r;
	struct sonde_bpf *bpf;

	libbpf_log_to_debug();
	if (nr_cpus <= 0)
		return log_err(nr_cpus, "cannot tell the number of CPUs");
	raise_memlock();
	bpf = sampler->bpf = sonde_bpf__open();
	if (!bpf)
		return log_err(-errno, "cannot open the BPF object");
	bpf->rodata->config_max_frames = o->max_frames;
	bpf->rodata->config_address_mask = address_mask();
	bpf->rodata->config_targets_only = o->targets_only;
	bpf->rodata->config_select = o->select;
	bpf->rodata->config_kernel_threads = !o->no_kernel_threads;
	bpf->rodata->config_kernel = !o->no_kernel;
	bpf->rodata->config_kernel_frames = o->kernel_frames;
	bpf->rodata->config_raw_too = o->raw_too;
	bpf->rodata->config_measure = o->measure;
	/* What hashes of stacks begin with: nobody can make one that is another process's. */
	if (getrandom(&bpf->bss->known_epoch, sizeof(bpf->bss->known_epoch), GRND_NONBLOCK) < 0)
		bpf->bss->known_epoch = now_ns();
	choose_programs(sampler);
	r = bpf_map__set_max_entries(bpf->maps.rule_caches, (uint32_t)nr_cpus);
	if (!r)
		r = o->measure ? 0 : bpf_map__set_value_size(bpf->maps.times, 8);
	if (!r && o->kernel_frames != KERNEL_FRAMES_HELPER)
		r = bpf_map__set_max_entries(bpf->maps.kernel_caches, (uint32_t)nr_cpus);
	if (!r)
		r = bpf_map__set_max_entries(bpf->maps.raws, (uint32_t)nr_cpus);
	if (!r)
		r = bpf_map__set_max_entries(bpf->maps.records, (uint32_t)nr_cpus);
	if (!r)
		r = bpf_map__set_max_entries(bpf->maps.hits, (uint32_t)nr_cpus);
	if (!r && o->select)
		r = bpf_map__set_max_entries(bpf->maps.facts, SELECT_PROCESSES_MAX);
	if (!r && find_spec(o, SOURCE_SLEEPS))
		r = bpf_map__set_max_entries(bpf->maps.sleepers, off_cpu_nr_sleepers());
	if (!r)
		r = bpf_map__set_max_entries(bpf->maps.samples, o->ring_bytes);
	if (!r)
		r = sonde_bpf__load(bpf);
	if (r == -EPERM)
		return log_err(
			r, "cannot load BPF programs: run as root (or raise the memory-lock limit: "
			   "ulimit -l unlimited); see sonde doctor");
	if (r)
		return log_err(r,
			       "cannot load BPF programs: see sonde doctor, and sonde record -v");
	return 0;
}

#define for_each_source(s_, sampler_)                                                              \
	for (struct source *s_ = &(sampler_)->sources[SOURCE_CLOCK + 1];                           \
	     s_ < &(sampler_)->sources[(sampler_)->nr_sources]; s_++)

/* Where sleeps end, on this kernel. */
static int find_sleeps(struct source_spec *spec, struct sonde_bpf__rodata *rodata)
{
	struct off_cpu_code schedule = { 0 };
	int r;

	spec->name = off_cpu_place(&spec->off_cpu.kick);
	r = off_cpu_find_schedule(&schedule);
	/* An interrupt that comes too late must not be taken for the sleep. */
	if (r && spec->off_cpu.kick)
		return log_err(r, "off-CPU profiling needs the kernel's symbols here, but "
				  "/proc/kallsyms doesn't tell them: see sonde doctor");
	rodata->config_schedule_start = schedule.start;
	rodata->config_schedule_size = schedule.size;
	rodata->config_kicked = spec->off_cpu.kick;
	return 0;
}

/* What threads do that wake others. */
static int find_wakers(struct source_spec *spec, struct sonde_bpf__rodata *rodata)
{
	struct off_cpu_code waking = { 0 }, interrupts;
	int r = off_cpu_find_interrupts(&interrupts);

	if (r)
		return log_err(r, "--off-cpu-waker needs the kernel's symbols to tell interrupts "
				  "from threads, but /proc/kallsyms doesn't tell them: see sonde "
				  "doctor");
	/* Without it, a few frames of how we came to be called are there, too. */
	if (off_cpu_find_waking(&waking))
		log_debug("/proc/kallsyms doesn't tell where try_to_wake_up() is");
	spec->name = "sched_waking";
	rodata->config_schedule_start = waking.start;
	rodata->config_schedule_size = waking.size;
	rodata->config_interrupts_start = interrupts.start;
	rodata->config_interrupts_size = interrupts.size;
	return 0;
}

static int configure_source(struct bpf_sampler *sampler, struct source_spec *spec,
			    struct sonde_bpf__rodata *rodata)
{
	uint64_t samples, window_ns;

	memcpy(rodata, sampler->bpf->rodata, sizeof(*rodata));
	rodata->config_source = (uint8_t)sampler->nr_sources;
	rodata->config_value = spec->value;
	source_rate_window(spec->rate, &samples, &window_ns);
	rodata->config_rate = samples;
	rodata->config_rate_ns = window_ns;
	rodata->config_filter = spec->filter;
	rodata->config_at_entry = spec->kind == SOURCE_KPROBE;
	/* A processor's counters interrupt with an NMI, or what is like one. */
	rodata->config_nmi = spec->kind == SOURCE_EVENT && spec->event.type != PERF_TYPE_SOFTWARE;
	spec->off_cpu.targets_only = sampler->options.targets_only;
	spec->off_cpu.select = sampler->options.select;
	spec->off_cpu.source = rodata->config_source;
	if (spec->kind == SOURCE_SLEEPS)
		return find_sleeps(spec, rodata);
	return spec->kind == SOURCE_WAKERS ? find_wakers(spec, rodata) : 0;
}

static const struct source *first_of_family(struct bpf_sampler *sampler, enum source_kind kind)
{
	for_each_source(s, sampler) if (source_same_family(s->spec.kind, kind)) return s;
	return NULL;
}

static int open_source(struct bpf_sampler *sampler, struct source_spec spec)
{
	const struct bpf_sampler_options *o = &sampler->options;
	struct sonde_bpf *bpf = sonde_bpf__open();
	int r;

	if (!bpf)
		return log_err(-errno, "cannot open the BPF object");
	r = configure_source(sampler, &spec, bpf->rodata);
	if (r) {
		sonde_bpf__destroy(bpf);
		return r;
	}
	/* No more of the skeleton is needed. */
	r = source_open(&sampler->sources[sampler->nr_sources], &spec, sampler->whole,
			sampler->bpf->obj, first_of_family(sampler, spec.kind),
			TAKE_PTR(*bpf->skeleton->obj), o->walker_loader);
	sonde_bpf__destroy(bpf);
	if (r)
		return log_err(r, "cannot load the program for %s", spec.at);
	sampler->sources[sampler->nr_sources].walkers.told = &sampler->told;
	sampler->nr_sources++;
	return 0;
}

/* Behind all others: who reads samples numbers those that were asked for. */
static int open_wakers(struct bpf_sampler *sampler)
{
	const struct source_spec *sleeps = find_spec(&sampler->options, SOURCE_SLEEPS);
	struct source_spec wakers = { .kind = SOURCE_WAKERS, .at = "wake-ups" };

	if (!sleeps || !sleeps->off_cpu.waker)
		return 0;
	if (sampler->nr_sources == SAMPLE_SOURCES_MAX)
		return log_err(-E2BIG,
			       "with --off-cpu-waker there can be no more than %d probes "
			       "and events",
			       SAMPLE_SOURCES_MAX - 3);
	return open_source(sampler, wakers);
}

/* Without them the helper's frames are taken, as at first in any case. */
static void start_kernel_rows(struct bpf_sampler *sampler)
{
	const struct bpf_sampler_options *o = &sampler->options;
	int r;

	if (o->no_kernel || o->kernel_frames == KERNEL_FRAMES_HELPER)
		return;
	r = kernel_rows_start(&sampler->rows, bpf_map__fd(sampler->bpf->maps.kernel_segments),
			      o->walker_loader);
	if (r)
		log_debug("no rows of the kernel: %s", strerror(-r));
}

static int open_ring(struct bpf_sampler *sampler)
{
	int fd = bpf_map__fd(sampler->bpf->maps.samples);
	int r = sample_ring_open(&sampler->ring, fd,
				 bpf_map__max_entries(sampler->bpf->maps.samples));

	if (r)
		return r;
	sampler->ring_fd = epoll_create1(EPOLL_CLOEXEC);
	return sampler->ring_fd < 0 ? -errno : loop_watch(sampler->ring_fd, fd);
}

int bpf_sampler_open(const struct bpf_sampler_options *options, struct bpf_sampler **ret)
{
	_cleanup_(bpf_sampler_free_p) struct bpf_sampler *sampler = calloc(1, sizeof(*sampler));
	int r;

	if (!sampler)
		return -ENOMEM;
	sampler->options = *options;
	sampler->stats_fd = sampler->ring_fd = -1;
	kernel_rows_init(&sampler->rows);
	walkers_init(&sampler->walkers, NULL, BPF_PROG_TYPE_UNSPEC, NULL);
	r = load(sampler);
	if (r)
		return r;
	walkers_init(&sampler->walkers, sampler->whole ? NULL : sampler->bpf->obj,
		     BPF_PROG_TYPE_PERF_EVENT, options->walker_loader);
	sampler->walkers.told = &sampler->told;
	sampler->nr_sources = SOURCE_CLOCK + 1;
	for (size_t i = 0; i < options->nr_sources && !r; i++)
		r = open_source(sampler, options->sources[i]);
	if (!r)
		r = open_wakers(sampler);
	if (r)
		return r;
	r = open_ring(sampler);
	if (r)
		return log_err(r, "cannot map the ring of samples");
	r = hits_open(&sampler->hits, bpf_map__fd(sampler->bpf->maps.hits),
		      bpf_map__max_entries(sampler->bpf->maps.hits),
		      bpf_map__fd(sampler->bpf->maps.samples));
	if (r)
		return log_err(r, "cannot map the hits of known stacks");
	sampler->fork_link = bpf_program__attach(sampler->bpf->progs.on_fork);
	if (!sampler->fork_link)
		return log_err(-errno, "cannot attach to the tracepoint sched_process_fork");
	sampler->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (sampler->stats_fd < 0)
		log_debug("no run-time statistics of BPF programs: %s", strerror(errno));
	start_kernel_rows(sampler);
	*ret = TAKE_PTR(sampler);
	return 0;
}

void bpf_sampler_free(struct bpf_sampler *sampler)
{
	if (!sampler)
		return;
	bpf_sampler_stop(sampler);
	/* The first of a family has what the others use. */
	while (sampler->nr_sources > SOURCE_CLOCK + 1)
		source_close(&sampler->sources[--sampler->nr_sources]);
	walkers_fini(&sampler->walkers);
	kernel_code_list_free(sampler->code);
	kernel_rows_fini(&sampler->rows);
	bpf_link__destroy(sampler->fork_link);
	sample_ring_close(&sampler->ring);
	close_p(&sampler->ring_fd);
	hits_close(&sampler->hits);
	sonde_bpf__destroy(sampler->bpf);
	if (sampler->stats_fd >= 0)
		close(sampler->stats_fd);
	free(sampler);
}

struct unwind_store_maps bpf_sampler_maps(const struct bpf_sampler *sampler)
{
	return (struct unwind_store_maps){
		.arena_fd = bpf_map__fd(sampler->bpf->maps.arena),
		.files_fd = bpf_map__fd(sampler->bpf->maps.files),
		.rules_fd = bpf_map__fd(sampler->bpf->maps.rules),
	};
}

/* --- sampling -------------------------------------------------------------------------------- */

int bpf_sampler_start(struct bpf_sampler *sampler, struct cpu_set *cpus)
{
	int r = 0;

	for_each_source(s, sampler)
	{
		s->sampling.paused = sampler->sampling.paused;
		s->sampling.only_cpus = sampler->options.only_cpus;
		r = source_attach(s, cpus);
		if (r)
			return log_err(r, "cannot sample at %s", s->spec.at);
	}
	sampler->sampling = (struct sampling){
		.program = sampler->sample,
		.frequency_hz = sampler->options.frequency_hz,
		.idle = sampler->options.idle,
		.paused = sampler->sampling.paused,
		.only_cpus = sampler->options.only_cpus,
	};
	sampler->cpus = cpus;
	r = cpu_set_listen(cpus, sampling_set_cpu, &sampler->sampling);
	if (r == -EINVAL)
		return log_err(r,
			       "the kernel refuses to sample at %u Hz: see "
			       "/proc/sys/kernel/perf_event_max_sample_rate",
			       sampler->options.frequency_hz);
	if (r == -EACCES || r == -EPERM)
		return log_err(
			r, "the kernel refuses to sample all CPUs: run as root; see sonde doctor");
	return r ? log_err(r, "cannot sample the CPUs' clocks") : 0;
}

int bpf_sampler_set_frequency(struct bpf_sampler *sampler, uint32_t frequency_hz)
{
	int r = sampling_set_frequency(&sampler->sampling, frequency_hz);

	if (!r)
		sampler->options.frequency_hz = frequency_hz;
	return r;
}

int bpf_sampler_pause(struct bpf_sampler *sampler, bool paused)
{
	int r = sampling_pause(&sampler->sampling, paused);

	for_each_source(s, sampler)
	{
		int err = sampling_pause(&s->sampling, paused);

		r = r ? r : err;
	}
	return r;
}

void bpf_sampler_stop(struct bpf_sampler *sampler)
{
	for_each_source(s, sampler) source_detach(s);
	if (!sampler->cpus)
		return;
	cpu_set_leave(sampler->cpus, &sampler->sampling);
	sampler->cpus = NULL;
	sampling_fini(&sampler->sampling);
}

/* --- walkers --------------------------------------------------------------------------------- */

void bpf_sampler_want_walkers(struct bpf_sampler *sampler, uint32_t ids, bool urgent)
{
	walkers_want(&sampler->walkers, ids, urgent);
	for_each_source(s, sampler) walkers_want(&s->walkers, ids, urgent);
}

/* What is only the helper's from here on costs time, no frame. */
static void open_code_list(struct bpf_sampler *sampler)
{
	const struct kernel_rows_report *report = &sampler->rows.report;
	int r = report->code_error;

	if (!r)
		r = kernel_code_list_new(&report->code, &sampler->code);
	if (r)
		log_debug("the kernel's code that comes and goes is not known: %s", strerror(-r));
	else if (!report->code.modules)
		log_debug("where the kernel's modules are is not known");
	bpf_sampler_list_code(sampler);
}

void bpf_sampler_list_code(struct bpf_sampler *sampler)
{
	_cleanup_free_ struct kernel_mades *mades = NULL;
	uint32_t zero = 0;

	if (!sampler->code)
		return;
	mades = malloc(sizeof(*mades));
	if (!mades)
		return;
	kernel_code_list_read(sampler->code, mades);
	if (bpf_map_update_elem(bpf_map__fd(sampler->bpf->maps.kernel_made), &zero, mades, BPF_ANY))
		log_debug("cannot list the kernel's code that comes and goes: %s", strerror(errno));
	else
		log_debug("the kernel has %u pieces of code that comes and goes", mades->nr);
}

int bpf_sampler_update_rows(struct bpf_sampler *sampler, int wait_ms)
{
	const struct kernel_rows_report *report = &sampler->rows.report;
	struct kernel_code *codes = sampler->bpf->bss->kernel_codes;

	if (!kernel_rows_update(&sampler->rows, wait_ms))
		return 0;
	if (report->error) {
		log_debug("the kernel's stacks are not walked by rows: %s", report->reason);
		return report->error;
	}
	log_debug("the kernel's stacks are walked by rows: %u of %u have rules, %zu kB",
		  report->entries - report->helper, report->entries, (size_t)report->bytes / 1024);
	for (int i = 0; i < KERNEL_CODES_MAX; i++) {
		codes[i].start = report->codes[i].start;
		codes[i].buckets = report->codes[i].buckets;
		codes[i].more = report->codes[i].more;
		__atomic_store_n(&codes[i].size, report->codes[i].size, __ATOMIC_RELEASE);
	}
	open_code_list(sampler);
	return 1;
}

uint32_t bpf_sampler_update_walkers(struct bpf_sampler *sampler, uint32_t ids, int wait_ms)
{
	uint32_t pending, refused;

	walkers_update(&sampler->walkers, wait_ms);
	pending = walkers_pending(&sampler->walkers, ids);
	refused = walkers_refused(&sampler->walkers);
	for_each_source(s, sampler)
	{
		walkers_update(&s->walkers, pending ? 0 : wait_ms);
		pending |= walkers_pending(&s->walkers, ids);
		refused |= walkers_refused(&s->walkers);
	}
	__atomic_store_n(&sampler->bpf->bss->runtimes_off, refused, __ATOMIC_RELAXED);
	return pending;
}

size_t bpf_sampler_walker_bytes(const struct bpf_sampler *sampler)
{
	size_t sum = walkers_bytes(&sampler->walkers) + sampler->rows.report.bytes;

	for (size_t i = SOURCE_CLOCK + 1; i < sampler->nr_sources; i++)
		sum += walkers_bytes(&sampler->sources[i].walkers);
	return sum;
}

/* --- maps ------------------------------------------------------------------------------------ */

/* Behind each change: what CPUs remember of the process before is void. */
static void forget_memos(struct bpf_sampler *sampler)
{
	__atomic_add_fetch(&sampler->bpf->bss->process_epoch, 1, __ATOMIC_RELEASE);
}

int bpf_sampler_add_target(struct bpf_sampler *sampler, uint32_t pid)
{
	uint32_t one = 1;

	return bpf_map_update_elem(bpf_map__fd(sampler->bpf->maps.targets), &pid, &one, BPF_ANY);
}

void bpf_sampler_del_target(struct bpf_sampler *sampler, uint32_t pid)
{
	bpf_map_delete_elem(bpf_map__fd(sampler->bpf->maps.targets), &pid);
	forget_memos(sampler);
}

int bpf_sampler_read_spaces(struct bpf_sampler *sampler,
			    void (*each)(void *ctx, const struct task_space *space), void *ctx)
{
	struct bpf_link *link = bpf_program__attach_iter(sampler->bpf->progs.show_spaces, NULL);
	_cleanup_close_ int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;
	struct task_space spaces[128];
	ssize_t n;

	bpf_link__destroy(link); /* the descriptor has a reference */
	if (fd < 0)
		return fd;
	while ((n = read_iter(fd, spaces, sizeof(spaces))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(spaces[0]); i++)
			each(ctx, &spaces[i]);
	return (int)n;
}

int bpf_sampler_set_process(struct bpf_sampler *sampler, uint32_t pid,
			    const struct unwind_process *process)
{
	int r = bpf_map_update_elem(bpf_map__fd(sampler->bpf->maps.processes), &pid, process,
				    BPF_ANY);

	forget_memos(sampler);
	return r;
}

void bpf_sampler_set_anon_page(struct bpf_sampler *sampler, const struct anon_page_key *key,
			       const struct anon_page *page)
{
	int fd = bpf_map__fd(sampler->bpf->maps.anon_pages);

	if (page)
		bpf_map_update_elem(fd, key, page, BPF_ANY);
	else
		bpf_map_delete_elem(fd, key);
}

int bpf_sampler_get_process(struct bpf_sampler *sampler, uint32_t pid, struct unwind_process *ret)
{
	return bpf_map_lookup_elem(bpf_map__fd(sampler->bpf->maps.processes), &pid, ret);
}

void bpf_sampler_del_process(struct bpf_sampler *sampler, uint32_t pid)
{
	bpf_map_delete_elem(bpf_map__fd(sampler->bpf->maps.processes), &pid);
	forget_memos(sampler);
}

/*
 * The keys of a map of processes. Where one is deleted meanwhile the kernel begins again, so no
 * more than twice the map's size.
 */
static void each_key(const struct bpf_map *map, void (*each)(void *ctx, uint32_t pid), void *ctx)
{
	uint32_t key, next, left = 2 * bpf_map__max_entries(map);
	int fd = bpf_map__fd(map), r;

	for (r = bpf_map_get_next_key(fd, NULL, &next); !r && left--;) {
		key = next;
		r = bpf_map_get_next_key(fd, &key, &next);
		each(ctx, key);
	}
}

int bpf_sampler_select(struct bpf_sampler *sampler, const struct select_rules *rules)
{
	struct select_rules next = *rules, first = { 0 };
	int fd = bpf_map__fd(sampler->bpf->maps.selection), r;
	uint32_t zero = 0;

	next.epoch = sampler->rules.epoch + 1;
	next.which = first.which = sampler->rules.which == 1 ? 2 : 1;
	r = bpf_map_update_elem(fd, &next.which, &next, BPF_ANY);
	if (!r)
		r = bpf_map_update_elem(fd, &zero, &first, BPF_ANY);
	if (!r)
		sampler->rules = next;
	return r;
}

int bpf_sampler_get_facts(struct bpf_sampler *sampler, uint32_t pid, struct select_facts *ret)
{
	return bpf_map_lookup_elem(bpf_map__fd(sampler->bpf->maps.facts), &pid, ret);
}

int bpf_sampler_set_facts(struct bpf_sampler *sampler, uint32_t pid,
			  const struct select_facts *facts)
{
	struct select_facts known = *facts;

	known.epoch = sampler->rules.epoch;
	known.known = select_seal(pid, &known);
	/* If it has ended since, there is nobody to take it out again. */
	return bpf_map_update_elem(bpf_map__fd(sampler->bpf->maps.facts), &pid, &known, BPF_EXIST);
}

void bpf_sampler_del_facts(struct bpf_sampler *sampler, uint32_t pid)
{
	bpf_map_delete_elem(bpf_map__fd(sampler->bpf->maps.facts), &pid);
}

void bpf_sampler_each_facts(struct bpf_sampler *sampler, void (*each)(void *ctx, uint32_t pid),
			    void *ctx)
{
	each_key(sampler->bpf->maps.facts, each, ctx);
}

void bpf_sampler_rejected(const struct bpf_sampler *sampler, uint64_t ret[SAMPLE_SOURCES_MAX])
{
	int nr_cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *values = calloc((size_t)nr_cpus, sizeof(*values));

	for (uint32_t source = 0; source < SAMPLE_SOURCES_MAX; source++) {
		ret[source] = 0;
		if (!values ||
		    bpf_map_lookup_elem(bpf_map__fd(sampler->bpf->maps.rejected), &source, values))
			continue;
		for (int i = 0; i < nr_cpus; i++)
			ret[source] += values[i];
	}
}

void bpf_sampler_limited(const struct bpf_sampler *sampler, uint64_t ret[SAMPLE_SOURCES_MAX])
{
	for (uint32_t source = 0; source < SAMPLE_SOURCES_MAX; source++) {
		struct source_rate rate = { 0 };

		if (bpf_map_lookup_elem(bpf_map__fd(sampler->bpf->maps.rates), &source, &rate))
			rate.limited = 0;
		ret[source] = rate.limited;
	}
}

void bpf_sampler_each_process(struct bpf_sampler *sampler, void (*each)(void *ctx, uint32_t pid),
			      void *ctx)
{
	each_key(sampler->bpf->maps.processes, each, ctx);
}

void bpf_sampler_each_target(struct bpf_sampler *sampler, void (*each)(void *ctx, uint32_t pid),
			     void *ctx)
{
	each_key(sampler->bpf->maps.targets, each, ctx);
}

/*
 * What a CPU puts there meanwhile may be lost, and what was there before be there again: either was
 * sent in full, but for these hashes, which are not.
 */
int bpf_sampler_ask_again(struct bpf_sampler *sampler, const uint64_t *hashes, size_t nr)
{
	int fd = bpf_map__fd(sampler->bpf->maps.known), nr_cpus = libbpf_num_possible_cpus();
	size_t slots = bpf_map__value_size(sampler->bpf->maps.known) / sizeof(*hashes);
	_cleanup_free_ uint64_t *known = calloc((size_t)nr_cpus * slots, sizeof(*known));
	bool found = false;
	__u32 zero = 0;

	if (!known)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fd, &zero, known))
		return -errno;
	for (size_t i = 0; i < nr; i++) {
		for (size_t cpu = 0; cpu < (size_t)nr_cpus; cpu++) {
			uint64_t *slot = &known[cpu * slots + (hashes[i] & (slots - 1))];

			if (*slot != hashes[i])
				continue;
			*slot = 0;
			found = true;
		}
	}
	if (found && bpf_map_update_elem(fd, &zero, known, BPF_ANY))
		return -errno;
	return 0;
}

void bpf_sampler_forget_stacks(struct bpf_sampler *sampler)
{
	__atomic_add_fetch(&sampler->bpf->bss->known_epoch, WALK_HASH_MULTIPLIER, __ATOMIC_RELAXED);
}

void bpf_sampler_send_raws(struct bpf_sampler *sampler, enum raws raws)
{
	__atomic_store_n(&sampler->bpf->bss->raws_sent, raws, __ATOMIC_RELAXED);
}

int bpf_sampler_fd(const struct bpf_sampler *sampler)
{
	return sampler->ring_fd;
}

int bpf_sampler_drain(struct bpf_sampler *sampler,
		      int (*each)(void *ctx, void *record, size_t size), void *ctx)
{
	int r;

	for_each_source(s, sampler) source_drain(s);
	hits_look(&sampler->hits);
	r = sample_ring_take(&sampler->ring, each, ctx);
	if (r)
		return r;
	return hits_take(&sampler->hits, each, ctx);
}

void bpf_sampler_lost(const struct bpf_sampler *sampler,
		      uint64_t ret[SAMPLE_SOURCES_MAX][LOST_MAX_])
{
	int nr_cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(sampler->bpf->maps.lost);
	_cleanup_free_ uint64_t *values = calloc((size_t)nr_cpus, sizeof(*values));

	for (uint32_t source = 0; source < SAMPLE_SOURCES_MAX; source++) {
		for (uint32_t reason = 0; reason < LOST_MAX_; reason++) {
			uint32_t key = LOST_KEY(source, reason);

			ret[source][reason] = 0;
			if (!values || source >= sampler->nr_sources || !LOST_IN_KERNEL(reason) ||
			    bpf_map_lookup_elem(fd, &key, values))
				continue;
			for (int i = 0; i < nr_cpus; i++)
				ret[source][reason] += values[i];
		}
	}
	ret[SOURCE_CLOCK][LOST_MISSED] = walkers_program_misses(bpf_program__fd(sampler->sample));
	for (size_t at = SOURCE_CLOCK + 1; at < sampler->nr_sources; at++)
		ret[at][LOST_MISSED] = source_misses(&sampler->sources[at]);
}

void bpf_sampler_kernel_walks(const struct bpf_sampler *sampler, struct kernel_walk_counts *ret)
{
	int fd = bpf_map__fd(sampler->bpf->maps.walks), nr_cpus = libbpf_num_possible_cpus(), i;
	_cleanup_free_ struct walk *walks = calloc((size_t)nr_cpus, sizeof(*walks));
	uint64_t *sum = (uint64_t *)ret;
	uint32_t zero = 0;

	*ret = (struct kernel_walk_counts){ 0 };
	if (!walks || bpf_map_lookup_elem(fd, &zero, walks))
		return;
	for (i = 0; i < nr_cpus; i++)
		for (size_t at = 0; at < sizeof(*ret) / sizeof(*sum); at++)
			sum[at] += ((const uint64_t *)&walks[i].kernel.counts)[at];
}

void bpf_sampler_run_time(const struct bpf_sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	*ret_ns = *ret_runs = 0;
	if (sampler->stats_fd < 0 ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(sampler->sample), &info, &len))
		return;
	*ret_ns = info.run_time_ns;
	for (size_t i = SOURCE_CLOCK + 1; i < sampler->nr_sources; i++)
		*ret_ns += source_run_ns(&sampler->sources[i]);
	*ret_runs = info.run_cnt;
}

size_t bpf_sampler_bytes(const struct bpf_sampler *sampler)
{
	size_t sum = walkers_bytes(&sampler->walkers) + sampler->rows.report.bytes;
	struct bpf_program *program;
	struct bpf_map *map;

	for (size_t i = SOURCE_CLOCK + 1; i < sampler->nr_sources; i++)
		sum += source_bytes(&sampler->sources[i]);
	bpf_object__for_each_map(map, sampler->bpf->obj) sum += walkers_fd_bytes(bpf_map__fd(map));
	bpf_object__for_each_program(program, sampler->bpf->obj) if (bpf_program__autoload(program))
		sum += walkers_program_bytes(bpf_program__fd(program), NULL);
	return sum;
}
