// SPDX-License-Identifier: Apache-2.0
/* Reading of folded and of perf script's text: what is understood, and what is refused. */
#include "export/formats.h"
#include "export/test_profile.h"

static int read_text(const struct export_ops *ops, const char *text, struct profile *p,
		     char problem[200])
{
	/* Just its size, so that ASan sees what reads beyond. */
	size_t size = strlen(text);
	_cleanup_free_ char *copy = malloc(size);

	memcpy(copy, text, size);
	ASSERT_OK(profile_init(p));
	problem[0] = '\0';
	return ops->read(copy, size, p, problem);
}

/* Read, and written as folded text. */
static void assert_read(const struct export_ops *ops, const char *text, const char *want)
{
	struct profile p;
	char problem[200];
	int r = read_text(ops, text, &p, problem);

	if (r)
		FAIL("%d: %s", r, problem);
	test_assert_written(&export_folded, &p, want);
	profile_fini(&p);
}

static void assert_refused(const struct export_ops *ops, const char *text, const char *says)
{
	struct profile p;
	char problem[200];

	ASSERT_ERR(read_text(ops, text, &p, problem), EBADMSG);
	if (strncmp(problem, says, strlen(says)))
		FAIL("'%s' is not '%s'", problem, says);
	profile_fini(&p);
}

/* --- folded ----------------------------------------------------------------------------------- */

TEST(folded_lines_come_back_as_they_were)
{
	static const char *const texts[] = {
		"",
		"sh 4\nsh;[truncated: no_process] 3\nsh;[truncated: no_rule];run 1\nsh;run 2\n",
		"sh;main;inner_[i];deeper_[i];read_[k];inl_[i] 7\n",
		"sh;[libc.so.6+0x2724a];[anon];[vdso+0x9a0];[kernel+0xffff]_[k];[x]_[k] 3\n",
		"worker-5;a b c;operator new;f_[j];-;--;g_[w] 3\n",
		"x;[python: not_ready];[python: unknown];[hotspot: unknown];[ruby: unknown] 3\n",
		"x;[python: unknown]_[k];[python: in]_[i];[python: unknown];[python:unknown] 3\n",
		"x;[truncated: never heard of it];[unknown];[unknown+0x10] 18446744073709551615\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_read(&export_folded, texts[i], texts[i]);
}

TEST(folded_conventions_of_other_tools_are_understood)
{
	assert_read(&export_folded, "# a comment\r\n\r\n  \na;b 3\r\na;b\t4", "a;b 7\n");
	assert_read(&export_folded, "a;b 3.\na;b 4.00\n", "a;b 7\n");
	assert_read(&export_folded, ";a;;b; 1\n", "a;b 1\n");
	/* Two recordings: the second one counts. One line alone may be a name that ends so. */
	assert_read(&export_folded, "a;b 31 33\na;c 0 2\n", "a;b 33\na;c 2\n");
	assert_read(&export_folded, "a;b 31 33\n", "a;b 31 33\n");
	assert_read(&export_folded, "a;b 31 33\na;c 2\n", "a;b 31 33\na;c 2\n");
	/* Inlined into nothing. */
	assert_read(&export_folded, "a;b_[i] 1\n", "a;b 1\n");
}

TEST(folded_ids_behind_the_comm_are_taken)
{
	struct profile p;
	char problem[200];

	ASSERT_OK(read_text(&export_folded, "my-app-12/34;a 1\nmy-app-12/12;a 2\nb-12;a 3\n", &p,
			    problem));
	ASSERT_EQ(p.threads.nr, 3);
	ASSERT_EQ(p.processes.nr, 2);
	ASSERT_EQ(p.processes.items[0].pid, 12);
	ASSERT_EQ(p.threads.items[0].tid, 34);
	ASSERT_STR(strtab_get(&p.strings, p.threads.items[0].comm), "my-app");
	ASSERT_STR(strtab_get(&p.strings, p.processes.items[0].name), "my-app");
	ASSERT_EQ(p.processes.items[1].pid, 0);
	ASSERT_STR(strtab_get(&p.strings, p.threads.items[2].comm), "b-12");
	profile_fini(&p);
}

TEST(folded_text_that_is_none_is_refused_with_its_line)
{
	assert_refused(&export_folded, "a;b 1\nno count\n", "line 2: there is no whole count");
	assert_refused(&export_folded, "a;b 1.5\n", "line 1: there is no whole count");
	assert_refused(&export_folded, "a;b -1\n", "line 1: there is no whole count");
	assert_refused(&export_folded, "17\n", "line 1: there is no whole count");
	assert_refused(&export_folded, ";;; 17\n", "line 1: there is no stack");
	assert_refused(&export_folded, "a 18446744073709551616\n", "line 1: there is no whole");
	assert_refused(&export_folded, "a 18446744073709551615\na 1\n", "line 2: the counts' sum");
}

TEST(text_with_nul_bytes_is_refused)
{
	struct profile p;
	char problem[200];

	ASSERT_OK(profile_init(&p));
	ASSERT_ERR(export_folded.read("a 1\nb\0c 2\n", 10, &p, problem), EBADMSG);
	ASSERT_STR(problem, "line 2: a NUL byte: this is no text");
	ASSERT_ERR(export_perf.read("\0", 1, &p, problem), EBADMSG);
	profile_fini(&p);
}

/* --- perf ------------------------------------------------------------------------------------- */

TEST(perf_text_is_written_as_perf_prints_it)
{
	struct profile p;
	uint32_t app, sample;

	ASSERT_OK(profile_init(&p));
	p.cut.start_ns = 1700000000123456789;
	p.cut.duration_ns = 2000000000;
	p.frequency_hz = 99;
	app = test_thread(&p, 12, 13, "my app 2");
	sample = test_sample(&p, app, STOP_NO_RULE, 1, "@/lib/c.so", "in<main@/bin/x (deleted)",
			     "jit@[anon]", "nft@[nf_tables]", "read@[kernel]", NULL);
	test_assert_written(&export_perf, &p,
			    "# ========\n"
			    "# captured on    : Tue Nov 14 22:13:20 2023\n"
			    "# sonde start (ns) : 1700000000123456789\n"
			    "# sonde duration (ns) : 2000000000\n"
			    "# sonde frequency (Hz) : 99\n"
			    "# sonde period of one : 10101010\n"
			    "# ========\n#\n"
			    "my app_2 12/13 [000] 0.000000000:   10101010 cpu-clock: \n"
			    "\tffffffff8100000d read ([kernel.kallsyms])\n"
			    "\tffffffff8100000f nft ([nf_tables])\n"
			    "\t            100a jit (//anon)\n"
			    "\t            1018 in (inlined)\n"
			    "\t            1018 main (/bin/x (deleted))\n"
			    "\t            100a [unknown] (/lib/c.so)\n"
			    "\t               0 [truncated: no_rule] ([unknown])\n"
			    "\n");
	ASSERT_OK(profile_add_event(&p, sample, 1000000007, 3));
	p.cut.samples.items[sample].count = 1;
	{
		size_t size;
		_cleanup_free_ char *text = test_write(&export_perf, &p, &size);

		ASSERT_PTR_NONNULL(strstr(text, "my app_2 12/13 [003] 1.000000007:   10101010 "
						"cpu-clock: \n"));
		ASSERT_PTR_NULL(strstr(text, "period of one"));
	}
	profile_fini(&p);
}

#define FRAMES                                                                                     \
	"\tffffffff81000010 do_read+0x10 ([kernel.kallsyms])\n"                                    \
	"\t          1010 inner (inlined)\n"                                                       \
	"\t          1010 outer(int)+0xa0 (/bin/x (deleted))\n"                                    \
	"\t            99 [unknown] (/lib/c.so)\n\n"
#define FOLDED ";[c.so+0x99];outer(int);inner_[i];do_read_[k] "

/* Where a file would stand is the source, if there is one that can; the header says whose it is. */
TEST(perf_text_of_scripts_names_their_sources)
{
	_cleanup_free_ char *text = NULL;
	struct profile p;
	size_t size;

	ASSERT_OK(profile_init(&p));
	test_sample(&p, test_thread(&p, 1, 2, "py"), STOP_COMPLETE, 3, "_start@/bin/python3",
		    "A.work@{python}/srv/app(1.py", "get<main@{hotspot}Main.java", "stub@{hotspot}",
		    "@{python}", "odd@{python}/bin/python3", NULL);
	text = test_write(&export_perf, &p, &size);
	ASSERT_PTR_NONNULL(strstr(text, "# sonde functions of python : /srv/app_1.py\n"
					"# sonde functions of hotspot : Main.java\n"
					"# ========\n"));
	ASSERT_PTR_NONNULL(strstr(text, ": \n"
					"\t               0 odd ([python])\n"
					"\t               0 [unknown] ([python])\n"
					"\t               0 stub ([hotspot])\n"
					"\t               0 get (inlined)\n"
					"\t               0 main (Main.java)\n"
					"\t               0 A.work (/srv/app_1.py)\n"
					"\t            1013 _start (/bin/python3)\n\n"));
	profile_fini(&p);
}

TEST(perf_headers_of_all_kinds_are_understood)
{
	static const char *const headers[] = {
		"my app 12/13 [000] 1811.127000:   10101010 cpu-clock:ppp: \n",
		"my app 12/13 [000] 1811.127000:   cycles: \n",
		"my app 13 1811.127000001:   10101010 cycles:u: \n",
		"          my app    13 [001]  1811.127000:  1 cpu/cycles,name=x/: \n",
		"my app 13 1811.127000: \n",
		"my app 12/13 cycles:\n",
		"my app 13 1000 cycles:\n",
		"my app 13 [001] 1000 cycles:\n",
		"my app 13\n",
		("my app    -1/13 [001] 1.5: sched:sched_switch: prev_comm=a prev_pid=1 ==> b "
		 "2.5:\n"),
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		char text[1024];

		snprintf(text, sizeof(text), "%s" FRAMES "%s" FRAMES, headers[i], headers[i]);
		assert_read(&export_perf, text, "my_app" FOLDED "2\n");
		ASSERT(export_perf.recognise(text, strlen(text)));
		ASSERT(!export_folded.recognise(text, strlen(text)));
	}
}

TEST(perf_frames_of_all_kinds_are_understood)
{
	/* No blank line between, no call chain, no symbols, source lines, other sections. */
	assert_read(
		&export_perf,
		"a 1 1.5: cycles:  ffff81 f+0x1 (/bin/x)\nb 1 1.5: cycles:  ffff81 g (/bin/x)\n",
		"a;f 1\nb;g 1\n");
	assert_read(&export_perf, "a 1 1.5: cycles: \n\t 10 f+0x1\n\t 20\n\n",
		    "a;[unknown+0x20];f 1\n");
	assert_read(&export_perf,
		    "a 1 1.5: cycles: \n\t 10 f+0x1 (/bin/x)\n  x.c:12\n\t 20 g (/bin/x+0x20)\n"
		    "  x.c:19\n\n\n\n",
		    "a;g;f 1\n");
	assert_read(&export_perf,
		    "a 1 1.5: cycles: \n\t10 f (/lib/nf.ko.xz)\n\t10 g ([nf_tables])\n"
		    "\tffffffffffff0010 [unknown] ([unknown])\n\t10 h ([vdso])\n"
		    "\t10 i ([guest.kernel.kallsyms])\n\t10 j ([anon:x])\n\n",
		    "a;j;i_[k];h;[kernel+0xffffffffffff0010]_[k];g_[k];f_[k] 1\n");
	/* Inlined into what is not there. */
	assert_read(&export_perf,
		    "a 1 1.5: cycles: \n\t10 f (inlined)\n\t20 g (/bin/x)\n\t30 h (inlined)\n\n",
		    "a;h;g;f 1\n");
	assert_read(&export_perf, "a 1 1.5: cycles: \n\t0 [truncated: no_rule] ([unknown])\n\n",
		    "a;[truncated: no_rule] 1\n");
	/* No frames at all; and nothing but comments. */
	assert_read(&export_perf, "a 1 1.5: cycles: \n", "a 1\n");
	assert_read(&export_perf, "# ========\n# arch : x86_64\n#\n", "");
}

TEST(perf_times_count_from_the_first)
{
	struct profile p;
	char problem[200];

	ASSERT_OK(read_text(&export_perf,
			    "a 1/1 [002] 10.5: 10101010 cpu-clock: \n\t10 f (/x)\n\n"
			    "a 1/1 [001] 10.25: 10101010 cpu-clock: \n\t10 f (/x)\n\n",
			    &p, problem));
	ASSERT_EQ(p.frequency_hz, 99);
	ASSERT_EQ(p.cut.events.nr, 2);
	ASSERT_EQ(p.cut.events.items[0].time_ns, 250000000);
	ASSERT_EQ(p.cut.events.items[0].cpu, 2);
	ASSERT_EQ(p.cut.events.items[1].time_ns, 0);
	ASSERT_EQ(p.cut.duration_ns, 260101010);
	ASSERT_EQ(p.cut.samples.nr, 1);
	ASSERT_EQ(p.cut.samples.items[0].count, 2);
	profile_fini(&p);
}

TEST(perf_samples_of_another_event_are_left_out)
{
	assert_read(&export_perf,
		    "a 1 1.5: cycles: \n\t10 f (/x)\n\na 1 1.5: faults: \n\t10 g (/x)\n\n"
		    "a 1 1.5: cycles: \n\t10 f (/x)\n\n",
		    "a;f 2\n");
}

TEST(perf_text_that_is_none_is_refused_with_its_line)
{
	assert_refused(&export_perf, "a 1 1.5: cycles: \n\t10 f (/x)\n\nwhat is this\n",
		       "line 4: no sample begins like this: 'what is this'");
	assert_refused(&export_perf, "a 1 1.5: cycles\n", "line 1: no sample begins like this");
	assert_refused(&export_perf, "\t10 f (/x)\n", "line 1: a frame of no sample");
	assert_refused(&export_perf, "{\"a\":1}\n", "line 1: no sample begins like this");
}

TEST(perf_text_that_is_cut_off_is_refused)
{
	static const char text[] = "a 1 1.5: cycles: \n\t10 f (/x)\n\t20 main (/x)\n\n"
				   "b 1 1.5: faults: \n\t10 g (/x)\n\n"
				   "a 1 2.5: cycles: \n\t10 f (/x)\n\t20 main (/x)\n\n";
	/* A whole sample was cut off, which nobody can see; and its first line may be all of it. */
	const size_t whole[] = { 18, 44, 74, sizeof(text) - 1 };
	static const char ours[] = "# sonde start (ns) : 1\na 1 1.5: cycles: \n";
	char problem[200], cut[sizeof(text)];
	size_t k = 0;

	for (size_t len = 1; len < sizeof(text); len++) {
		struct profile p;

		memcpy(cut, text, len);
		cut[len] = '\0';
		if (len == whole[k]) {
			ASSERT_OK(read_text(&export_perf, cut, &p, problem));
			k++;
		} else {
			ASSERT_ERR(read_text(&export_perf, cut, &p, problem), EBADMSG);
		}
		profile_fini(&p);
	}
	assert_refused(&export_perf, "a 1 1.5: cycles: \n\t10 f (/x)\n\t20 ma",
		       "cut off at line 3");
	assert_refused(&export_perf, "a 1 1.5: cycles: \n\t10 f (/x)\n", "cut off at line 2");
	assert_refused(&export_perf, ours, "cut off at line 2");
	assert_refused(&export_perf, "a 1 1.5: cycles: 10 f (/bin/x)\na 1 1.5: cycles: 10 f (/bi",
		       "cut off at line 2");
}

TEST(a_byte_order_mark_in_front_is_passed_over)
{
	static const char perf[] = "\xef\xbb\xbf"
				   "a 1 1.5: cycles: \n\t10 f (/x)\n\n";
	static const char folded[] = "\xef\xbb\xbf"
				     "a;f 1\na;f 2\n";

	assert_read(&export_perf, perf, "a;f 1\n");
	assert_read(&export_folded, folded, "a;f 3\n");
	ASSERT(export_perf.recognise(perf, strlen(perf)));
	ASSERT(export_folded.recognise(folded, strlen(folded)));
}

TEST(the_longest_extension_counts)
{
	ASSERT(export_by_path("x.linux-perf.txt") == &export_perf);
	ASSERT(export_by_path("x.txt") == &export_folded);
	ASSERT(export_by_path("a.speedscope.json") == &export_speedscope);
	ASSERT(export_by_path("a.firefox.json") == &export_firefox);
	ASSERT_PTR_NULL(export_by_path("a.json"));
}
