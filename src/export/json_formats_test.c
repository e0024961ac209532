// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope's and the Firefox Profiler's JSON, byte by byte where it is short. That real viewers
 * take it, and what they see in it, is tested in tests/formats.
 */
#include "export/formats.h"
#include "export/test_profile.h"

#define HEAD                                                                                       \
	"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","                     \
	"\"exporter\":\"sonde\",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":["

TEST(speedscope_without_times_is_weights)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	p.frequency_hz = 100;
	test_sample(&p, test_thread(&p, 1, 2, "a\"b"), STOP_NO_RULE, 3, "in<main@/bin/x", NULL);
	test_sample(&p, test_thread(&p, 0, 0, ""), STOP_COMPLETE, 5, "@[kernel]", NULL);
	test_assert_written(
		&export_speedscope, &p,
		HEAD "\n{\"name\":\"in\",\"file\":\"src.c\",\"line\":10},\n"
		     "{\"name\":\"main\",\"file\":\"src.c\",\"line\":10},\n"
		     "{\"name\":\"[kernel+0xffffffff81000009]\",\"file\":\"[kernel]\"},\n"
		     "{\"name\":\"[truncated: no_rule]\"}]},\n"
		     "\"profiles\":[\n"
		     "{\"name\":\"[no_name]\",\"type\":\"sampled\",\"unit\":\"nanoseconds\","
		     "\"startValue\":0,\"samples\":[\n[2]],\n\"weights\":[50000000],"
		     "\"endValue\":50000000},\n"
		     "{\"name\":\"a\\\"b (1/2)\",\"type\":\"sampled\",\"unit\":\"nanoseconds\","
		     "\"startValue\":0,\"samples\":[\n[3,1,0]],\n\"weights\":[30000000],"
		     "\"endValue\":30000000}]}\n");
	p.frequency_hz = 0;
	{
		size_t size;
		_cleanup_free_ char *text = test_write(&export_speedscope, &p, &size);

		ASSERT_PTR_NONNULL(strstr(text, "\"unit\":\"none\""));
		ASSERT_PTR_NONNULL(strstr(text, "\"weights\":[3]"));
	}
	profile_fini(&p);
}

/* A gap of more than one and a half periods ends all; the frames in common stay open. */
TEST(speedscope_with_times_opens_and_closes)
{
	struct profile p;
	uint32_t a, ab, ac, thread;

	ASSERT_OK(profile_init(&p));
	p.frequency_hz = 100;
	thread = test_thread(&p, 1, 1, "x");
	a = test_sample(&p, thread, STOP_COMPLETE, 1, "a", NULL);
	ab = test_sample(&p, thread, STOP_COMPLETE, 2, "a", "b@/x", NULL);
	ac = test_sample(&p, thread, STOP_COMPLETE, 1, "a", "cc@/x", NULL);
	ASSERT_OK(profile_add_event(&p, ac, 60000000, 0)); /* CPUs may be out of order */
	ASSERT_OK(profile_add_event(&p, a, 0, 1));
	ASSERT_OK(profile_add_event(&p, ab, 10000000, 1));
	ASSERT_OK(profile_add_event(&p, ab, 25000000, 1));
	test_assert_written(
		&export_speedscope, &p,
		HEAD
		"\n{\"name\":\"a\",\"file\":\"src.c\",\"line\":10},\n"
		"{\"name\":\"b\",\"file\":\"src.c\",\"line\":10},\n"
		"{\"name\":\"cc\",\"file\":\"src.c\",\"line\":10}]},\n"
		"\"profiles\":[\n{\"name\":\"x (1/1)\",\"type\":\"evented\","
		"\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":70000000,\"events\":[\n"
		"{\"type\":\"O\",\"frame\":0,\"at\":0},\n"
		"{\"type\":\"O\",\"frame\":1,\"at\":10000000},\n"
		"{\"type\":\"C\",\"frame\":1,\"at\":35000000},\n"
		"{\"type\":\"C\",\"frame\":0,\"at\":35000000},\n"
		"{\"type\":\"O\",\"frame\":0,\"at\":60000000},\n"
		"{\"type\":\"O\",\"frame\":2,\"at\":60000000},\n"
		"{\"type\":\"C\",\"frame\":2,\"at\":70000000},\n"
		"{\"type\":\"C\",\"frame\":0,\"at\":70000000}]}]}\n");
	profile_fini(&p);
}

/* More transitions than a viewer bears: stacks and weights instead. */
TEST(speedscope_of_a_long_recording_is_sampled)
{
	enum { NR = 260000 };
	struct profile p;
	uint32_t thread, one, two;
	size_t size;

	ASSERT_OK(profile_init(&p));
	p.frequency_hz = 100;
	thread = test_thread(&p, 1, 1, "x");
	one = test_sample(&p, thread, STOP_COMPLETE, NR, "a@/x", "b@/x", NULL);
	two = test_sample(&p, thread, STOP_COMPLETE, NR, "cc@/x", "dd@/x", NULL);
	for (uint64_t i = 0; i < NR; i++) {
		ASSERT_OK(profile_add_event(&p, one, i * 20000000, 0));
		ASSERT_OK(profile_add_event(&p, two, i * 20000000 + 10000000, 0));
	}
	{
		_cleanup_free_ char *text = test_write(&export_speedscope, &p, &size);

		ASSERT_PTR_NONNULL(strstr(text, "\"type\":\"sampled\""));
		ASSERT_PTR_NONNULL(strstr(text, "\"weights\":[2600000000000,2600000000000]"));
	}
	profile_fini(&p);
}

TEST(speedscope_of_nothing_can_be_opened)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	test_assert_written(&export_speedscope, &p,
			    HEAD "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\"no samples\","
				 "\"unit\":\"none\",\"startValue\":0,\"endValue\":0,\"samples\":[],"
				 "\"weights\":[]}]}\n");
	profile_fini(&p);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		FAIL("no '%s' in %s", part, text);
}

TEST(firefox_tables_say_what_the_stacks_are)
{
	struct profile p;
	uint32_t s, thread;
	size_t size;

	ASSERT_OK(profile_init(&p));
	p.cut.start_ns = 1700000000123000000;
	p.frequency_hz = 100;
	thread = test_thread(&p, 7, 7, "x");
	p.processes.items[0].start_ns = p.cut.start_ns - 2500000000;
	p.processes.items[0].end_ns = p.cut.start_ns + 1500000;
	s = test_sample(&p, thread, STOP_NO_RULE, 1, "in<main@/bin/x", "read@[kernel]", NULL);
	ASSERT_OK(profile_add_event(&p, s, 1250000, 0));
	{
		_cleanup_free_ char *text = test_write(&export_firefox, &p, &size);

		assert_has(text, "\"interval\":10,\"startTime\":1700000000123,");
		/* frames: in, inlined into main; main; read; the marker */
		assert_has(text, "\"stackTable\":{\"length\":4,\"frame\":[3,1,0,2],\n"
				 "\"prefix\":[null,0,1,2]}");
		assert_has(text, "\"frameTable\":{\"length\":4,\"address\":[4110,4110,-1,-1],\n"
				 "\"inlineDepth\":[1,0,0,0],\n\"category\":[3,3,1,2]");
		assert_has(text, "\"nativeSymbol\":[0,0,null,null]");
		assert_has(text, "\"line\":[12,13,12,null]");
		assert_has(text, "\"nativeSymbols\":{\"length\":1,\"libIndex\":[0],\n"
				 "\"address\":[4110]");
		assert_has(text, "\"codeId\":\"01020304\"");
		assert_has(text, "\"breakpadId\":\"040302010000000000000000000000000\"");
		assert_has(text, "\"pid\":\"7\",\"tid\":7,\"isMainThread\":true,"
				 "\"processStartupTime\":-2500,\"registerTime\":-2500,"
				 "\"processShutdownTime\":1.5,\"unregisterTime\":1.5");
		assert_has(text, "\"stack\":[3],\n\"time\":[1.25],\n\"threadCPUDelta\":[10000000]");
	}
	p.cut.events.nr = 0;
	p.cut.samples.items[0].count = 42;
	{
		_cleanup_free_ char *text = test_write(&export_firefox, &p, &size);

		assert_has(text, "\"weightType\":\"samples\",\"weight\":[42],\n\"stack\":[3],\n"
				 "\"time\":[0]}");
	}
	profile_fini(&p);
}

TEST(functions_of_scripts_have_their_source_and_language)
{
	struct profile p;
	size_t size;

	ASSERT_OK(profile_init(&p));
	test_sample(&p, test_thread(&p, 1, 2, "py"), STOP_COMPLETE, 3, "A.work@{python}/srv/app.py",
		    "main@{hotspot}", "@{python}", NULL);
	{
		_cleanup_free_ char *text = test_write(&export_speedscope, &p, &size);

		assert_has(text, "{\"name\":\"A.work\",\"file\":\"/srv/app.py\",\"line\":10},\n"
				 "{\"name\":\"main\"},\n{\"name\":\"[python: unknown]\"}]");
	}
	{
		_cleanup_free_ char *text = test_write(&export_firefox, &p, &size);

		assert_has(text, "{\"name\":\"Swift\",\"color\":\"purple\",\"subcategories\":"
				 "[\"Other\"]},{\"name\":\"Python\",\"color\":\"red\","
				 "\"subcategories\":[\"Other\"]},{\"name\":\"Java\"");
		assert_has(text, "\"category\":[9,10,9],");
		assert_has(text, "\"address\":[-1,-1,-1],");
		assert_has(text, "\"line\":[12,12,null],");
		assert_has(text, "\"source\":[0,null,null],");
		assert_has(text, "\"lineNumber\":[10,10,null],");
		assert_has(text, "\"resource\":[-1,-1,-1],");
	}
	profile_fini(&p);
}

TEST(firefox_threads_live_as_long_as_they_did)
{
	static const struct {
		int64_t start_ns, end_ns; /* since the recording's; 0: not known */
		const char *text;
	} lives[] = {
		{ -2500000, 9500000,
		  "\"registerTime\":-2.5,\"processShutdownTime\":8,"
		  "\"unregisterTime\":9.5" },
		{ 0, 0, "\"registerTime\":2,\"processShutdownTime\":8,\"unregisterTime\":8" },
		/* No sample lies outside. */
		{ 2500000, 4500000,
		  "\"registerTime\":2,\"processShutdownTime\":8,"
		  "\"unregisterTime\":5" },
	};

	for (size_t i = 0; i < sizeof(lives) / sizeof(*lives); i++) {
		_cleanup_free_ char *text = NULL;
		struct profile p;
		uint32_t s, thread;
		size_t size;

		ASSERT_OK(profile_init(&p));
		p.cut.start_ns = 1700000000123000000;
		thread = test_thread(&p, 7, 8, "worker");
		p.processes.items[0].end_ns = p.cut.start_ns + 8000000;
		if (lives[i].start_ns)
			p.threads.items[thread].start_ns =
				p.cut.start_ns + (uint64_t)lives[i].start_ns;
		if (lives[i].end_ns)
			p.threads.items[thread].end_ns = p.cut.start_ns + (uint64_t)lives[i].end_ns;
		s = test_sample(&p, thread, STOP_COMPLETE, 2, "a", NULL);
		ASSERT_OK(profile_add_event(&p, s, 2000000, 0));
		ASSERT_OK(profile_add_event(&p, s, 5000000, 0));
		text = test_write(&export_firefox, &p, &size);
		assert_has(text, lives[i].text);
		profile_fini(&p);
	}
}

/* Where the viewer would take two for one. */
TEST(firefox_processes_and_threads_have_numbers_of_their_own)
{
	struct profile p;
	uint32_t again, thread;
	size_t size;

	ASSERT_OK(profile_init(&p));
	test_sample(&p, test_thread(&p, 7, 7, "before"), STOP_COMPLETE, 5, "a", NULL);
	test_sample(&p, test_thread(&p, 7, 7, "after"), STOP_COMPLETE, 4, "a", NULL);
	ASSERT_OK(profile_add_process(&p, 7, 1, &again));
	ASSERT_OK(profile_add_thread(&p, again, 7, "reused", &thread));
	test_sample(&p, thread, STOP_COMPLETE, 3, "a", NULL);
	test_sample(&p, test_thread(&p, 0, 0, "folded"), STOP_COMPLETE, 2, "a", NULL);
	{
		_cleanup_free_ char *text = test_write(&export_firefox, &p, &size);

		assert_has(text, "\"pid\":\"7\",\"tid\":7,\"isMainThread\":true");
		assert_has(text, "\"pid\":\"7\",\"tid\":\"7.1\",\"isMainThread\":false");
		assert_has(text, "\"pid\":\"7.1\",\"tid\":\"7.2\",\"isMainThread\":true");
		assert_has(text, "\"pid\":\"0.3\",\"tid\":0,\"isMainThread\":true");
	}
	profile_fini(&p);
}
