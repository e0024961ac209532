// SPDX-License-Identifier: Apache-2.0
/*
 * Records the whole machine in many short cuts, as an agent does for months, and checks each:
 *
 *	soak CUTS CUT_MS MEMORY_MB FAIL_EVERY
 *
 * What a cut holds is what the recorder counted, and what it counted is what the kernel took: at
 * each cut as far as samples on their way allow, and at the end exactly. Every FAIL_EVERY'th look
 * at the kernel's events fails (0: none does). A line a cut on standard output tells what this
 * process takes; soak_test.py judges whether that stays flat. While standard input is open and
 * empty it goes on beyond CUTS, up to three times as many.
 */
#include "record/recorder.h"
#include "unwinder/budget.h"
#include "process/side_band.h"
#include "util/clock.h"
#include "util/log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static unsigned long fail_every;

int __real_side_band_drain_until(struct side_band *sb, uint64_t until_ns,
				 struct side_events *batch);
int __wrap_side_band_drain_until(struct side_band *sb, uint64_t until_ns,
				 struct side_events *batch);

int __wrap_side_band_drain_until(struct side_band *sb, uint64_t until_ns, struct side_events *batch)
{
	static unsigned long nr;

	if (!fail_every || ++nr % fail_every)
		return __real_side_band_drain_until(sb, until_ns, batch);
	batch->events.nr = batch->text.nr = 0;
	return -ENOMEM;
}

/* What the kernel took so long ago is in a cut by now: after a loss there is no turn for up to
 * 150 ms. */
#define SETTLED_NS 250000000ull

struct taken {
	uint64_t at_ns, runs;
};

struct soak {
	struct profile profile;
	struct recorder *recorder;
	uint64_t counted; /* in all cuts */
};

static bool go_on(void *ctx)
{
	(void)ctx;
	return true;
}

/* Each of these is one sample that was taken and is in no cut. */
static uint64_t not_counted(const struct recorder_stats *s)
{
	return s->left_out + s->lost[LOST_RING_FULL] + s->lost[LOST_NO_SCRATCH] +
	       s->lost[LOST_UNKNOWN_STACK] + s->lost[LOST_OUT_OF_MEMORY] + s->lost[LOST_MALFORMED];
}

static unsigned long nr_fds(void)
{
	unsigned long nr = 0;
	DIR *d = opendir("/proc/self/fd");

	while (d && readdir(d))
		nr++;
	if (d)
		closedir(d);
	return nr;
}

static unsigned long nr_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long nr = 0;
	int c;

	while (f && (c = fgetc(f)) != EOF)
		nr += c == '\n';
	if (f)
		fclose(f);
	return nr;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* What we have started and have not waited for. */
static unsigned long nr_children(void)
{
	FILE *f;
	char path[64];
	unsigned long nr = 0;
	int c;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	while (f && (c = fgetc(f)) != EOF)
		nr += c == ' ';
	if (f)
		fclose(f);
	return nr;
}

/* "RssAnon:" and so on of /proc/self/status, in bytes. */
static unsigned long resident(const char *what)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(what);
	unsigned long kb = 0;
	char line[256];

	while (f && !kb && fgets(line, sizeof(line), f))
		if (!strncmp(line, what, len))
			kb = strtoul(line + len, NULL, 10);
	if (f)
		fclose(f);
	return kb << 10;
}

static int check(const char *what, uint64_t is, uint64_t least, uint64_t most)
{
	if (is >= least && is <= most)
		return 0;
	printf("wrong: %s: %" PRIu64 ", not %" PRIu64 " to %" PRIu64 "\n", what, is, least, most);
	return -EINVAL;
}

static int close_cut(struct soak *s, uint64_t runs_before)
{
	const struct profile *p = &s->profile;
	const struct recorder_stats *stats;
	uint64_t total = profile_total(p);
	int r;

	recorder_name(s->recorder);
	stats = recorder_stats(s->recorder);
	s->counted += total;
	r = check("the sum of the cuts", s->counted, stats->samples, stats->samples);
	/* The kernel counts a run behind its end (__bpf_prog_run(), include/linux/filter.h), so
	 * each CPU may have sent one sample more. When all have stopped the sums are equal:
	 * finish(). */
	if (!r)
		r = check("samples, by what the kernel took", stats->samples + not_counted(stats),
			  runs_before, stats->bpf_runs + (uint64_t)get_nprocs_conf());
	printf("cut %u samples %" PRIu64 " stacks %zu frames %zu strings %zu bytes %zu rss %zu "
	       "anon %lu heap %zu maps %lu fds %lu children %lu kernel %" PRIu64 " lost %" PRIu64
	       "\n",
	       p->cut.number, total, p->stacks.nr, p->frames.nr, p->strings.strings.nr,
	       profile_bytes(p), budget_resident(), resident("RssAnon:"), heap_bytes(), nr_maps(),
	       nr_fds(), nr_children(), stats->map_bytes, not_counted(stats) - stats->left_out);
	recorder_next_cut(s->recorder);
	return r;
}

static bool goes_on(unsigned long cut, unsigned long nr_cuts)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return cut < nr_cuts || (cut < 3 * nr_cuts && !poll(&in, 1, 0));
}

static int run(struct soak *s, unsigned long nr_cuts, uint64_t cut_ns)
{
	struct pollfd fd = { .fd = recorder_fd(s->recorder), .events = POLLIN };
	uint64_t next = now_ns() + cut_ns, now;
	struct taken newest = { 0 }, settled = { 0 };
	int r = 0;

	for (unsigned long cut = 0; goes_on(cut, nr_cuts) && !r; cut++, next += cut_ns) {
		while ((now = now_ns()) < next) {
			poll(&fd, 1, (int)((next - now) / 1000000) + 1);
			recorder_step(s->recorder);
		}
		recorder_step(s->recorder);
		recorder_step(s->recorder);
		if (now_ns() - newest.at_ns > SETTLED_NS) {
			settled = newest;
			newest = (struct taken){ now_ns(), recorder_stats(s->recorder)->bpf_runs };
		}
		r = close_cut(s, settled.runs);
	}
	return r;
}

static int finish(struct soak *s)
{
	const struct recorder_stats *stats;

	recorder_stop(s->recorder);
	s->counted += profile_total(&s->profile);
	stats = recorder_stats(s->recorder);
	printf("end samples %" PRIu64 " runs %" PRIu64 " left_out %" PRIu64
	       " unknown_stack %" PRIu64 " out_of_memory %" PRIu64 " ring_full %" PRIu64 "\n",
	       stats->samples, stats->bpf_runs, stats->left_out, stats->lost[LOST_UNKNOWN_STACK],
	       stats->lost[LOST_OUT_OF_MEMORY], stats->lost[LOST_RING_FULL]);
	return check("all samples, by what the kernel took", s->counted + not_counted(stats),
		     stats->bpf_runs, stats->bpf_runs);
}

int main(int argc, char **argv)
{
	struct recorder_options options = {
		.frequency_hz = 999,
		.max_frames = SAMPLE_FRAMES_DEFAULT,
	};
	unsigned long nr_cuts, cut_ms;
	struct soak s = { 0 };
	size_t left;
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 5)
		return 2;
	nr_cuts = strtoul(argv[1], NULL, 10);
	cut_ms = strtoul(argv[2], NULL, 10);
	options.memory_limit = strtoull(argv[3], NULL, 10) << 20;
	fail_every = strtoul(argv[4], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	r = profile_init(&s.profile);
	if (!r)
		r = recorder_open(&options, &s.profile, &s.recorder);
	if (!r)
		r = recorder_start(s.recorder, go_on, NULL, &left);
	if (!r)
		r = run(&s, nr_cuts, cut_ms * 1000000);
	if (s.recorder && finish(&s))
		r = r ?: -EINVAL;
	recorder_free(s.recorder);
	profile_fini(&s.profile);
	return r ? 1 : 0;
}
