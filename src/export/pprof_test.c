// SPDX-License-Identifier: Apache-2.0
#include "export/example_profiles.h"
#include "export/formats.h"
#include "export/proto/gzip.h"
#include "export/test_profile.h"
#include "util/cleanup.h"

#include <stdlib.h>

static void round_trip(unsigned flags, struct profile *a, struct profile *b)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	ASSERT_OK(profile_init(a));
	ASSERT_OK(example_profile(a, flags));
	data = test_write(&export_pprof, a, &size);
	ASSERT(export_pprof.recognise(data, size));
	ASSERT(export_pprof.recognise(data, size < 512 ? size : 512));
	ASSERT(!export_otlp.recognise(data, size));
	test_read(&export_pprof, data, size, b);
	ASSERT_EQ(profile_total(b), profile_total(a));
	ASSERT_EQ(profile_complete(b), profile_complete(a));
	ASSERT_EQ(b->cut.start_ns, a->cut.start_ns);
	ASSERT_EQ(b->cut.duration_ns, a->cut.duration_ns);
	ASSERT_EQ(b->frequency_hz, a->frequency_hz);
	ASSERT_STR(profile_unit_type(b), profile_unit_type(a));
	ASSERT_STR(profile_unit_unit(b), profile_unit_unit(a));
}

TEST(what_is_written_is_read)
{
	static const unsigned flags[] = { 0, EXAMPLE_NO_FREQUENCY, EXAMPLE_BYTES, EXAMPLE_EVENTS };
	struct profile a, b;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		round_trip(flags[i], &a, &b);
		test_assert_same_folded(&a, &b);
		profile_fini(&a);
		profile_fini(&b);
	}
}

static const struct profile_thread *find_thread(const struct profile *p, int32_t tid)
{
	for (size_t i = 0; i < p->threads.nr; i++)
		if (p->threads.items[i].tid == tid)
			return &p->threads.items[i];
	FAIL("no thread %d", tid);
	return NULL;
}

TEST(threads_and_processes_are_kept)
{
	const struct profile_process *process;
	const struct profile_thread *t;
	struct profile a, b;

	round_trip(0, &a, &b);
	t = find_thread(&b, 1001);
	ASSERT_STR(strtab_get(&b.strings, t->comm), "worker 1");
	ASSERT_EQ(b.processes.items[t->process].pid, 1000);
	ASSERT_STR(strtab_get(&b.strings, b.processes.items[t->process].name), "app");
	process = &b.processes.items[find_thread(&b, 1200)->process];
	ASSERT_EQ(process->pid, 1200);
	ASSERT_STR(strtab_get(&b.strings, process->container), "0123456789abcdef");
	profile_fini(&a);
	profile_fini(&b);
}

TEST(virtual_threads_have_their_carriers)
{
	const struct profile_thread *t;
	struct profile a, b;

	round_trip(EXAMPLE_VIRTUAL, &a, &b);
	t = example_thread(&b, "red");
	ASSERT(t);
	ASSERT_EQ(t->tid, 1300);
	ASSERT_STR(strtab_get(&b.strings, t->carrier), "python3");
	profile_fini(&a);
	profile_fini(&b);
}

static const struct profile_file *find_file(const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->files.nr; i++)
		if (!strcmp(strtab_get(&p->strings, p->files.items[i].path), path))
			return &p->files.items[i];
	FAIL("no file %s", path);
	return NULL;
}

TEST(files_are_kept)
{
	const struct profile_file *f;
	struct profile a, b;

	round_trip(0, &a, &b);
	f = find_file(&b, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	ASSERT_EQ(f->build_id_len, 20);
	ASSERT_EQ(f->build_id[19], 0x33);
	ASSERT_EQ(f->start, 0x26000);
	ASSERT_EQ(f->end, 0x126000);
	ASSERT_EQ(f->offset, 0x26000);
	f = find_file(&b, "[kernel]");
	ASSERT_EQ(f->build_id[0], 0x11);
	find_file(&b, "[nf_tables]");
	find_file(&b, "[anon]");
	profile_fini(&a);
	profile_fini(&b);
}

TEST(inline_frames_and_lines_are_kept)
{
	struct profile a, b;
	size_t found = 0;

	round_trip(0, &a, &b);
	for (uint32_t i = 0; i < b.frames.nr; i++) {
		const struct profile_line *l = profile_frame_line(&b, i, 2);
		const struct profile_function *f;

		if (!l || b.frames.items[i].kind != FRAME_KIND_NATIVE)
			continue;
		found++;
		ASSERT_EQ(l->line, 56);
		ASSERT_EQ(l->column, 7);
		f = &b.functions.items[l->function];
		ASSERT_STR(strtab_get(&b.strings, f->name), "main");
		ASSERT_STR(strtab_get(&b.strings, f->source), "/src/app.cc");
		ASSERT_EQ(f->start_line, 50);
		f = &b.functions.items[profile_frame_line(&b, i, 0)->function];
		ASSERT_STR(strtab_get(&b.strings, f->linkage_name), "_ZN3app5innerEv");
		ASSERT_EQ(b.frames.items[i].address, 0x401200);
	}
	ASSERT_EQ(found, 1);
	profile_fini(&a);
	profile_fini(&b);
}

TEST(a_profile_without_samples_is_a_file)
{
	struct profile a, b;

	round_trip(EXAMPLE_EMPTY, &a, &b);
	ASSERT_EQ(b.cut.samples.nr, 0);
	profile_fini(&a);
	profile_fini(&b);
}

/* Beyond what 64 bits hold as time, samples are given as samples only. */
TEST(huge_counts_stay_what_they_are)
{
	struct profile a, b;
	_cleanup_free_ char *data = NULL;
	uint32_t stack;
	size_t size;

	ASSERT_OK(profile_init(&a));
	a.frequency_hz = 99;
	ASSERT_OK(profile_add_stack(&a, NULL, 0, STOP_COMPLETE, &stack));
	ASSERT_OK(profile_add_comm_sample(&a, "x", stack, INT64_MAX));
	data = test_write(&export_pprof, &a, &size);
	test_read(&export_pprof, data, size, &b);
	ASSERT_EQ(profile_total(&b), INT64_MAX);
	ASSERT_EQ(b.frequency_hz, 99);
	profile_fini(&a);
	profile_fini(&b);
}

/* --- what others write ------------------------------------------------------------------------ */

/*
 * The smallest file that go tool pprof takes: samples/count 3 and cpu/nanoseconds 150000000 of
 * "leaf" in "main" in /usr/bin/demo; the period is 50 ms.
 */
static const char minimal[] = "0a04080110020a0408031004120b0a02020112050380a3c3471a1408011080808002"
			      "188080c0022808380140014801"
			      "220f0801100118b6a2800222040801100a220f080210011880a48002220408021014"
			      "2a0808011005180520072a0808"
			      "021006180620073200320773616d706c65733205636f756e743203637075320b6e61"
			      "6e6f7365636f6e647332046d61"
			      "696e32046c65616632066d61696e2e63320d2f7573722f62696e2f64656d6f488080"
			      "a8b1e39fe7cb175080e497d012"
			      "5a04080310046080e1eb17";

static size_t from_hex(const char *hex, uint8_t *buf)
{
	size_t nr = strlen(hex) / 2;

	for (size_t i = 0; i < nr; i++) {
		unsigned byte;

		ASSERT(sscanf(hex + 2 * i, "%2x", &byte) == 1);
		buf[i] = (uint8_t)byte;
	}
	return nr;
}

TEST(a_file_without_gzip_is_read)
{
	_cleanup_free_ char *folded = NULL;
	uint8_t data[sizeof(minimal)];
	size_t size = from_hex(minimal, data), ignored;
	struct profile p;

	ASSERT(export_pprof.recognise(data, size));
	test_read(&export_pprof, data, size, &p);
	/* 3 samples of 50 ms: the period says so, and the number of samples is what counts. */
	ASSERT_EQ(profile_total(&p), 3);
	ASSERT_EQ(p.frequency_hz, 20);
	ASSERT_EQ(p.cut.start_ns, 1700000000000000000);
	ASSERT_EQ(p.cut.duration_ns, 5000000000);
	folded = test_write(&export_folded, &p, &ignored);
	ASSERT_STR(folded, "demo;main;leaf 3\n");
	profile_fini(&p);
}

TEST(the_default_type_counts_where_time_is_not_samples)
{
	uint8_t data[sizeof(minimal)];
	size_t size = from_hex(minimal, data);
	struct profile p;

	data[21]++; /* the sample's time, its least digit */
	test_read(&export_pprof, data, size, &p);
	ASSERT_EQ(profile_total(&p), 150000001);
	ASSERT_STR(profile_unit_type(&p), "cpu");
	ASSERT_STR(profile_unit_unit(&p), "nanoseconds");
	ASSERT_EQ(p.frequency_hz, 0);
	profile_fini(&p);
}

static void assert_bad(const void *data, size_t size, const char *problem_part)
{
	char problem[200] = "";
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_ERR(export_pprof.read(data, size, &p, problem), EBADMSG);
	ck_assert_msg(strstr(problem, problem_part), "\"%s\" is not in \"%s\"", problem_part,
		      problem);
	/* Untouched. */
	ASSERT_EQ(p.strings.strings.nr, 1);
	profile_fini(&p);
}

TEST(a_cut_file_is_refused)
{
	_cleanup_free_ char *data = NULL;
	struct profile a;
	size_t size;

	ASSERT_OK(profile_init(&a));
	ASSERT_OK(example_profile(&a, 0));
	data = test_write(&export_pprof, &a, &size);
	assert_bad(data, size - 1, "gzip stream is damaged");
	assert_bad(data, size / 2, "gzip stream is damaged");
	assert_bad(data, 0, "no sample type");
	data[size / 2] ^= 0xff;
	assert_bad(data, size, "gzip stream is damaged");
	profile_fini(&a);
}

TEST(trailing_garbage_is_refused_and_members_are_joined)
{
	uint8_t data[sizeof(minimal)], zeros[16] = { 0 };
	_cleanup_(gzip_writer_free_p) struct gzip_writer *w1 = NULL, *w2 = NULL;
	size_t size = from_hex(minimal, data), zipped_size;
	char *zipped = NULL;
	FILE *out = open_memstream(&zipped, &zipped_size);
	struct profile p;

	ASSERT_OK(gzip_writer_new(out, GZIP_SMALL, &w1));
	ASSERT_OK(gzip_write(w1, data, 100));
	ASSERT_OK(gzip_finish(w1));
	ASSERT_OK(gzip_writer_new(out, GZIP_SMALL, &w2));
	ASSERT_OK(gzip_write(w2, data + 100, size - 100));
	ASSERT_OK(gzip_finish(w2));
	fflush(out);
	test_read(&export_pprof, zipped, zipped_size, &p);
	ASSERT_EQ(profile_total(&p), 3);
	fwrite(zeros, 1, sizeof(zeros), out);
	fclose(out);
	assert_bad(zipped, zipped_size, "gzip stream is damaged");
	free(zipped);
	profile_fini(&p);
}

TEST(a_bomb_is_refused)
{
	_cleanup_(gzip_writer_free_p) struct gzip_writer *w = NULL;
	_cleanup_free_ char *zeros = calloc(1, 1 << 20);
	char *zipped = NULL, problem[200] = "";
	size_t size;
	FILE *out = open_memstream(&zipped, &size);
	struct profile p;

	ASSERT_OK(gzip_writer_new(out, GZIP_SMALL, &w));
	for (int i = 0; i < 200; i++)
		ASSERT_OK(gzip_write(w, zeros, 1 << 20));
	ASSERT_OK(gzip_finish(w));
	fclose(out);
	ASSERT_OK(profile_init(&p));
	ASSERT_ERR(export_pprof.read(zipped, size, &p, problem), E2BIG);
	ASSERT_STR(problem, "it is too large");
	profile_fini(&p);
	free(zipped);
}

/* A profile of one sample type and string table, and what else is given. */
static void assert_bad_with(const char *hex, const char *problem_part)
{
	char all[600];
	uint8_t data[300];

	snprintf(all, sizeof(all), "0a0408011002%s3200320161320162", hex);
	assert_bad(data, from_hex(all, data), problem_part);
}

TEST(broken_references_are_said)
{
	assert_bad_with("12060a0105120101", "location 5, which it does not have");
	assert_bad_with("12041202010f", "2 values for 1 sample types");
	assert_bad_with("2202080122020801", "two locations have the id 1");
	assert_bad_with("22021801", "a location has no id");
	assert_bad_with("22040801100912060a0101120101", "mapping 9, which it does not have");
	assert_bad_with("220608012202080712060a0101120101", "function 7, which it does not have");
	assert_bad_with("1a0408012863", "string 99 of 3");
	assert_bad_with("120c120affffffffffffffffff01", "negative values");
	assert_bad_with("0801", "field 1 is not of pprof's type");
	assert_bad_with("1280808080ff", "cut off or damaged");
}

TEST(other_formats_are_not_taken_for_it)
{
	static const char *const others[] = { "",
					      "a;b 3\n",
					      "\n",
					      "{\"a\": 1}",
					      "\x1f\x8b",
					      "\n\n\n",
					      "\x0a\x02\x0a\x00",
					      "sh 1/1 [000] 1.0: 1 cpu:" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ASSERT(!export_pprof.recognise(others[i], strlen(others[i])));
}

/* Traces and labels stand beside them. */
TEST(all_types_are_read)
{
	_cleanup_free_ char *data = NULL;
	struct profile a, b;
	size_t size;

	ASSERT_OK(profile_init(&a));
	ASSERT_OK(example_profile(&a, EXAMPLE_TRACED));
	data = test_write(&export_pprof, &a, &size);
	/* The first type is the default, and has all of it. */
	test_read(&export_pprof, data, size, &b);
	test_assert_same_folded(&a, &b);
	ASSERT_EQ(profile_total(&b), profile_total(&a));
	ASSERT(profile_nr_types(&a) > 1);
	ASSERT_EQ(profile_nr_types(&b), profile_nr_types(&a));
	for (uint32_t i = 1; i < profile_nr_types(&a); i++) {
		ASSERT_STR(profile_type_unit(&b, i), profile_type_unit(&a, i));
		ASSERT_OK(profile_show_type(&a, profile_type_name(&a, i)));
		ASSERT_OK(profile_show_type(&b, profile_unit_type(&a)));
		ASSERT(profile_total(&a) > 0);
		ASSERT_EQ(profile_total(&b), profile_total(&a));
		test_assert_same_folded(&a, &b);
	}
	profile_fini(&a);
	profile_fini(&b);
}
