// SPDX-License-Identifier: Apache-2.0
/*
 * A recording has equal stacks and sums in any two formats: each format that can be read is
 * written, read, written as another one, read, and then is the same folded text as at first.
 */
#include "export/formats.h"
#include "export/test_profile.h"

static void add_event(struct profile *p, uint32_t sample, uint64_t time_ns)
{
	p->cut.samples.items[sample].count++;
	ASSERT_OK(profile_add_event(p, sample, time_ns, 1));
}

enum { NR = 12 };

/* All that a recording can have. */
static void make_recording(struct profile *p, bool events)
{
	uint32_t app, worker, other, idle, s[NR];

	ASSERT_OK(profile_init(p));
	p->cut.start_ns = 1700000000123456789;
	p->cut.duration_ns = 1000000000;
	p->frequency_hz = 99;
	app = test_thread(p, 100, 100, "my app");
	worker = test_thread(p, 100, 101, "worker 5");
	other = test_thread(p, 200, 200, "my app");
	idle = test_thread(p, 0, 0, "swapper/0");
	s[0] = test_sample(p, app, STOP_COMPLETE, 0, "_start@/bin/app", "main@/bin/app", NULL);
	s[1] = test_sample(p, app, STOP_COMPLETE, 0, "_start@/bin/app", "in<middle<main@/bin/app",
			   "f(int, char) const@/lib/c.so", "read@[kernel]", "nft<go@[nf_tables]",
			   NULL);
	s[2] = test_sample(p, worker, STOP_NO_RULE, 0, "run@/bin/app (deleted)", "@/lib/c.so",
			   "@[anon]", "jitted@[anon]", "@[vdso]", NULL);
	s[3] = test_sample(p, worker, STOP_STACK_UNREADABLE, 0, NULL);
	s[4] = test_sample(p, other, STOP_COMPLETE, 0, "std::vector<int>::x(a;b)@/bin/(odd",
			   "operator new@/lib/c.so", "bad\xff\nname@/lib/c.so", NULL);
	s[5] = test_sample(p, idle, STOP_COMPLETE, 0, "idle@[kernel]", "@[kernel]", NULL);
	s[6] = test_sample(p, idle, STOP_COMPLETE, 0, NULL);
	s[7] = test_sample(p, other, STOP_COMPLETE, 0, "main@/bin/app", "main@/bin/app", NULL);
	s[8] = test_sample(p, app, STOP_COMPLETE, 0, "no file", "@/lib/c.so", NULL);
	s[9] = test_sample(p, worker, STOP_COMPLETE, 0, "_start@/bin/python3",
			   "<module>@{python}/srv/app.py", "A.work@{python}/srv/(a b).py",
			   "<lambda>@{python}<string>", "read@/lib/c.so", NULL);
	s[10] = test_sample(p, worker, STOP_COMPLETE, 0, "start@/lib/jvm.so",
			    "java.util.List.get<app.Main.run<app.Main.main@{hotspot}Main.java",
			    "stub@{hotspot}", "@{hotspot}", "[python: not_ready]@{python}",
			    "@{python}", "odd@{python}[kernel]", "odder@{python}inlined", NULL);
	/* Text alone tells no Python function from a C function of that name. */
	s[11] = test_sample(p, worker, STOP_COMPLETE, 0, "_start@/bin/python3", "<module>",
			    "A.work@/bin/x", "<lambda>@{python}/bin/python3", "read@/lib/c.so",
			    NULL);
	for (uint64_t i = 0; i < 300; i++) {
		if (events)
			add_event(p, s[i * i % NR], i * 10101010);
		else
			p->cut.samples.items[s[i * i % NR]].count += 3;
	}
	for (int i = 0; i < NR; i++)
		if (events)
			add_event(p, s[i], 4000000000 + (uint64_t)i);
		else
			p->cut.samples.items[s[i]].count += 1;
}

/* Writes and reads `p`, and puts what came back into its place. */
static void through(const struct export_ops *ops, struct profile *p)
{
	size_t size;
	_cleanup_free_ char *text = test_write(ops, p, &size);
	struct profile back;

	test_read(ops, text, size, &back);
	if (ops->recognise)
		ASSERT(ops->recognise(text, size));
	ASSERT_EQ(profile_total(&back), profile_total(p));
	ASSERT_EQ(profile_complete(&back), profile_complete(p));
	profile_fini(p);
	*p = back;
}

static void all_pairs(bool events)
{
	for (size_t a = 0; export_formats[a]; a++) {
		for (size_t b = 0; export_formats[b] && export_formats[a]->read; b++) {
			_cleanup_free_ char *want = NULL, *got = NULL;
			struct profile p;
			size_t size;

			if (!export_formats[b]->read)
				continue;
			make_recording(&p, events);
			want = test_write(&export_folded, &p, &size);
			through(export_formats[a], &p);
			through(export_formats[b], &p);
			got = test_write(&export_folded, &p, &size);
			if (strcmp(want, got))
				FAIL("%s, %s:\n%s\nis not\n%s", export_formats[a]->name,
				     export_formats[b]->name, got, want);
			profile_fini(&p);
		}
	}
}

TEST(all_pairs_of_formats_keep_stacks_and_sums)
{
	all_pairs(false);
}

TEST(all_pairs_of_formats_keep_stacks_and_sums_of_timed_samples)
{
	all_pairs(true);
}

TEST(perf_text_keeps_times_threads_and_files)
{
	struct profile p, q;

	make_recording(&p, true);
	make_recording(&q, true);
	through(&export_perf, &q);
	ASSERT_EQ(q.cut.start_ns, p.cut.start_ns);
	ASSERT_EQ(q.cut.duration_ns, p.cut.duration_ns);
	ASSERT_EQ(q.frequency_hz, p.frequency_hz);
	ASSERT_EQ(q.threads.nr, p.threads.nr);
	ASSERT_EQ(q.processes.nr, p.processes.nr);
	ASSERT_EQ(q.cut.events.nr, p.cut.events.nr);
	for (size_t i = 0; i < p.cut.events.nr; i++) {
		ASSERT_EQ(q.cut.events.items[i].time_ns, p.cut.events.items[i].time_ns);
		ASSERT_EQ(q.cut.events.items[i].cpu, p.cut.events.items[i].cpu);
	}
	profile_fini(&p);
	profile_fini(&q);
}

/* How many frames are of this runtime; and how many of them have a name, a source, a line. */
static void count_frames(const struct profile *p, const char *runtime, size_t ret[4])
{
	uint16_t kind = profile_runtime_kind(runtime, strlen(runtime));

	memset(ret, 0, 4 * sizeof(*ret));
	for (uint32_t i = 0; i < p->frames.nr; i++) {
		const struct profile_frame *f = &p->frames.items[i];
		const struct profile_line *line;

		if (f->kind != kind)
			continue;
		ret[0]++;
		if (!f->nr_lines)
			continue;
		line = &p->lines.items[f->first_line + f->nr_lines - 1];
		ret[1]++;
		ret[2] += p->functions.items[line->function].source != 0;
		ret[3] += line->line != 0;
	}
}

static void assert_frames(const struct profile *p, const char *runtime, size_t nr, size_t named,
			  size_t sources, size_t lines)
{
	size_t got[4];

	count_frames(p, runtime, got);
	ASSERT_EQ(got[0], nr);
	ASSERT_EQ(got[1], named);
	ASSERT_EQ(got[2], sources);
	ASSERT_EQ(got[3], lines);
}

/* docs/formats: what each can say of frames of runtimes. */
TEST(frames_of_runtimes_are_kept_as_far_as_a_format_can_say)
{
	static const struct {
		const struct export_ops *ops;
		size_t python[4], hotspot[4];
	} kept[] = {
		{ &export_otlp, { 8, 7, 6, 7 }, { 3, 2, 1, 2 } },
		{ &export_pprof, { 8, 7, 6, 7 }, { 3, 2, 1, 2 } },
		/* A file that cannot stand there is not kept. */
		{ &export_perf, { 8, 7, 3, 0 }, { 3, 2, 1, 0 } },
		{ &export_folded, { 2, 1, 0, 0 }, { 1, 0, 0, 0 } },
	};

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		const size_t *py = kept[i].python, *jvm = kept[i].hotspot;
		struct profile p;

		make_recording(&p, false);
		through(kept[i].ops, &p);
		assert_frames(&p, "python", py[0], py[1], py[2], py[3]);
		assert_frames(&p, "hotspot", jvm[0], jvm[1], jvm[2], jvm[3]);
		profile_fini(&p);
	}
}

TEST(what_cannot_be_read_is_still_written_for_every_recording)
{
	for (size_t i = 0; export_formats[i]; i++) {
		for (int events = 0; events < 2; events++) {
			_cleanup_free_ char *text = NULL;
			struct profile p;
			size_t size;

			make_recording(&p, events);
			text = test_write(export_formats[i], &p, &size);
			ASSERT(size > 0);
			profile_fini(&p);
		}
	}
}

/* Nothing of what one format writes is taken for another. */
TEST(each_format_is_recognised_as_itself)
{
	for (size_t i = 0; export_formats[i]; i++) {
		_cleanup_free_ char *text = NULL;
		struct profile p;
		size_t size;

		make_recording(&p, true);
		text = test_write(export_formats[i], &p, &size);
		for (size_t k = 0; export_formats[k]; k++)
			if (export_formats[k]->recognise &&
			    export_formats[k]->recognise(text, size) != (i == k))
				FAIL("%s is taken for %s", export_formats[i]->name,
				     export_formats[k]->name);
		profile_fini(&p);
	}
}
