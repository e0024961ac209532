// SPDX-License-Identifier: Apache-2.0
#include "cli/thread_print.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static uint32_t add_function(struct profile *p, const char *name, const char *linkage,
			     const char *source)
{
	struct profile_function f = { 0 };
	uint32_t id;

	ASSERT_OK(profile_string(p, name, &f.name));
	ASSERT_OK(profile_string(p, linkage, &f.linkage_name));
	ASSERT_OK(profile_string(p, source, &f.source));
	ASSERT_OK(profile_add_function(p, &f, &id));
	return id;
}

static uint32_t add_frame(struct profile *p, enum frame_kind kind, uint32_t file, uint64_t address)
{
	const struct profile_frame frame = { .kind = kind, .file = file, .address = address };
	uint32_t id;

	ASSERT_OK(profile_add_frame(p, &frame, &id));
	return id;
}

/* do_wait [k] <- read (no line) <- inner inlined into outer <- an address without a name */
static uint32_t add_deep_stack(struct profile *p, enum stop_reason stop)
{
	static const uint8_t build_id[] = { 0xab, 0x01 };
	uint32_t kernel, libc, app, frames[4], stack;
	struct profile_line lines[2];

	ASSERT_OK(profile_add_file(p, "[kernel]", NULL, 0, &kernel));
	ASSERT_OK(profile_add_file(p, "/lib/libc.so.6", NULL, 0, &libc));
	ASSERT_OK(profile_add_file(p, "/opt/a \"b\"/app", build_id, sizeof(build_id), &app));
	frames[0] = add_frame(p, FRAME_KIND_KERNEL, kernel, 0xffffffff81000000);
	ASSERT_OK(profile_name_frame(p, frames[0], "do_wait"));
	frames[1] = add_frame(p, FRAME_KIND_NATIVE, libc, 0x1000);
	ASSERT_OK(profile_name_frame(p, frames[1], "read"));
	frames[2] = add_frame(p, FRAME_KIND_NATIVE, app, 0x2000);
	lines[0] = (struct profile_line){
		add_function(p, "ns::inner(int)", "_ZN2ns5innerEi", "/src/a.cc"), 7, 0
	};
	lines[1] = (struct profile_line){ add_function(p, "outer", "", "/src/b.cc"), 0, 0 };
	ASSERT_OK(profile_set_lines(p, frames[2], lines, 2));
	frames[3] = add_frame(p, FRAME_KIND_NATIVE, app, 0x3000);
	ASSERT_OK(profile_add_stack(p, frames, 4, stop, &stack));
	return stack;
}

static char *print(const struct thread_report *report, const char *extra)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (extra)
		ASSERT_OK(thread_print_json(report, extra, out));
	else
		ASSERT_OK(thread_print_text(report, out));
	fclose(out);
	return text;
}

static void expect(const struct thread_entry *threads, size_t nr, const struct profile *p,
		   const char *const *headlines, size_t nr_headlines, const char *extra,
		   const char *expected)
{
	const struct thread_report report = { p, threads, nr, headlines, nr_headlines };
	char *text = print(&report, extra);

	ASSERT_STR(text, expected);
	free(text);
}

TEST(text_shows_every_inline_frame_its_place_and_why_a_stack_is_cut)
{
	const char *const headlines[] = { "process 12 (app), 2 threads" };
	struct profile p;
	struct thread_entry threads[2] = {
		{ .tid = 12, .name = "app", .state = "sleeping" },
		{ .tid = 13, .name = "", .stack = UINT32_MAX, .problem = "it ended meanwhile" },
	};

	ASSERT_OK(profile_init(&p));
	threads[0].stack = add_deep_stack(&p, STOP_NO_RULE);
	expect(threads, 2, &p, headlines, 1, NULL,
	       "process 12 (app), 2 threads\n"
	       "\n"
	       "thread 12 \"app\" sleeping\n"
	       "  #0   do_wait (kernel)\n"
	       "  #1   read in libc.so.6\n"
	       "  #2   ns::inner(int) (inlined) at /src/a.cc:7\n"
	       "  #3   outer at /src/b.cc\n"
	       "  #4   [app+0x3000]\n"
	       "  ... cut: the unwind table does not cover an address [no_rule]\n"
	       "\n"
	       "thread 13\n"
	       "  it ended meanwhile\n");
	profile_fini(&p);
}

/* C calls Python, that calls Java, that has inlined a method. */
static uint32_t add_script_stack(struct profile *p)
{
	const struct profile_frame python = { .kind = FRAME_KIND_OF(RUNTIME_PYTHON),
					      .file = PROFILE_NO_FILE };
	const struct profile_frame java = { .kind = FRAME_KIND_OF(RUNTIME_HOTSPOT),
					    .file = PROFILE_NO_FILE };
	const struct profile_line methods[] = {
		{ add_function(p, "app.List.get", "", "List.java"), 88, 0 },
		{ add_function(p, "app.Main.main", "", "Main.java"), 7, 0 },
	};
	const struct profile_line work = { add_function(p, "A.work", "", "/srv/app.py"), 12, 0 };
	const struct profile_line stub = { add_function(p, "call_stub", "", ""), 0, 0 };
	const struct profile_line note = { add_function(p, "[python: not_ready]", "", ""), 0, 0 };
	uint32_t frames[5], stack;

	ASSERT_OK(profile_add_named_frame(p, &java, methods, 2, &frames[0]));
	ASSERT_OK(profile_add_named_frame(p, &java, &stub, 1, &frames[1]));
	ASSERT_OK(profile_add_named_frame(p, &python, &work, 1, &frames[2]));
	ASSERT_OK(profile_add_named_frame(p, &python, &note, 1, &frames[3]));
	ASSERT_OK(profile_add_frame(p, &python, &frames[4]));
	ASSERT_OK(profile_add_stack(p, frames, 5, STOP_COMPLETE, &stack));
	return stack;
}

TEST(functions_of_scripts_have_their_source_behind_them)
{
	struct profile p;
	struct thread_entry thread = { .tid = 12, .name = "app" };
	char *text;

	ASSERT_OK(profile_init(&p));
	thread.stack = add_script_stack(&p);
	expect(&thread, 1, &p, NULL, 0, NULL,
	       "thread 12 \"app\"\n"
	       "  #0   app.List.get (inlined) (List.java:88)\n"
	       "  #1   app.Main.main (Main.java:7)\n"
	       "  #2   call_stub (hotspot)\n"
	       "  #3   A.work (/srv/app.py:12)\n"
	       "  #4   [python: not_ready]\n"
	       "  #5   [python: unknown]\n");
	text = print(&(struct thread_report){ &p, &thread, 1, NULL, 0 }, "");
	ASSERT_PTR_NONNULL(strstr(text, "{\"function\":\"A.work\",\"linkage_name\":\"A.work\","
					"\"kind\":\"python\",\"inlined\":false,"
					"\"file\":\"/srv/app.py\",\"line\":12,\"object\":null,"));
	ASSERT_PTR_NONNULL(strstr(text, "{\"function\":null,\"linkage_name\":null,"
					"\"kind\":\"python\",\"inlined\":false,\"file\":null,"));
	free(text);
	profile_fini(&p);
}

TEST(json_has_every_member_in_every_frame)
{
	struct profile p;
	struct thread_entry threads[2] = {
		{ .tid = 12, .name = "app", .state = "sleeping" },
		{ .tid = 13, .name = "", .stack = UINT32_MAX, .problem = "it ended meanwhile" },
	};

	ASSERT_OK(profile_init(&p));
	threads[0].stack = add_deep_stack(&p, STOP_COMPLETE);
	expect(threads, 2, &p, NULL, 0, "\"pid\":12",
	       "{\"pid\":12,\"threads\":[\n"
	       " {\"tid\":12,\"name\":\"app\",\"virtual_thread\":null,\"state\":\"sleeping\","
	       "\"complete\":true,"
	       "\"stop\":\"complete\",\"problem\":null,\"frames\":[\n"
	       "   {\"function\":\"do_wait\",\"linkage_name\":\"do_wait\",\"kind\":\"kernel\","
	       "\"inlined\":false,\"file\":null,\"line\":null,\"object\":\"[kernel]\","
	       "\"build_id\":null,\"address\":\"0xffffffff81000000\"},\n"
	       "   {\"function\":\"read\",\"linkage_name\":\"read\",\"kind\":\"native\","
	       "\"inlined\":false,\"file\":null,\"line\":null,\"object\":\"/lib/libc.so.6\","
	       "\"build_id\":null,\"address\":\"0x1000\"},\n"
	       "   {\"function\":\"ns::inner(int)\",\"linkage_name\":\"_ZN2ns5innerEi\","
	       "\"kind\":\"native\",\"inlined\":true,\"file\":\"/src/a.cc\",\"line\":7,"
	       "\"object\":\"/opt/a \\\"b\\\"/app\",\"build_id\":\"ab01\","
	       "\"address\":\"0x2000\"},\n"
	       "   {\"function\":\"outer\",\"linkage_name\":\"outer\",\"kind\":\"native\","
	       "\"inlined\":false,\"file\":\"/src/b.cc\",\"line\":null,"
	       "\"object\":\"/opt/a \\\"b\\\"/app\",\"build_id\":\"ab01\","
	       "\"address\":\"0x2000\"},\n"
	       "   {\"function\":null,\"linkage_name\":null,\"kind\":\"native\","
	       "\"inlined\":false,\"file\":null,\"line\":null,"
	       "\"object\":\"/opt/a \\\"b\\\"/app\",\"build_id\":\"ab01\","
	       "\"address\":\"0x3000\"}]},\n"
	       " {\"tid\":13,\"name\":\"\",\"virtual_thread\":null,\"state\":null,\"complete\":"
	       "false,\"stop\":null,"
	       "\"problem\":\"it ended meanwhile\",\"frames\":[]}]}\n");
	profile_fini(&p);
}

TEST(hostile_names_neither_steer_a_terminal_nor_break_json)
{
	struct profile p;
	uint32_t file, frame, stack;
	struct thread_entry thread = { .tid = 1,
				       .name = "a;\033[2J\"\\\xff\n",
				       .state = "running" };

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_file(&p, "/x\n\"y", NULL, 0, &file));
	frame = add_frame(&p, FRAME_KIND_NATIVE, file, 1);
	ASSERT_OK(profile_name_frame(&p, frame, "f<';'>\x1b\xc3\xa4"));
	ASSERT_OK(profile_add_stack(&p, &frame, 1, STOP_COMPLETE, &stack));
	thread.stack = stack;
	expect(&thread, 1, &p, NULL, 0, NULL,
	       "thread 1 \"a;_[2J\"\\?_\" running\n"
	       "  #0   f<';'>_\xc3\xa4 in x_\"y\n");
	expect(&thread, 1, &p, NULL, 0, "",
	       "{\"threads\":[\n"
	       " {\"tid\":1,\"name\":\"a;_[2J\\\"\\\\?_\",\"virtual_thread\":null,\"state\":"
	       "\"running\",\"complete\":true,"
	       "\"stop\":\"complete\",\"problem\":null,\"frames\":[\n"
	       "   {\"function\":\"f<';'>_\xc3\xa4\",\"linkage_name\":\"f<';'>_\xc3\xa4\","
	       "\"kind\":\"native\",\"inlined\":false,\"file\":null,\"line\":null,"
	       "\"object\":\"/x_\\\"y\",\"build_id\":null,\"address\":\"0x1\"}]}]}\n");
	profile_fini(&p);
}

TEST(virtual_threads_come_before_their_carriers)
{
	struct thread_entry thread = { .tid = 7, .name = "pool", .stack = UINT32_MAX };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_string(&p, "red;\n", &thread.virtual_name));
	expect(&thread, 1, &p, NULL, 0, NULL, "thread 7 \"red;_\", carried by \"pool\"\n");
	expect(&thread, 1, &p, NULL, 0, "",
	       "{\"threads\":[\n"
	       " {\"tid\":7,\"name\":\"pool\",\"virtual_thread\":\"red;_\",\"state\":null,"
	       "\"complete\":false,\"stop\":null,\"problem\":null,\"frames\":[]}]}\n");
	profile_fini(&p);
}

TEST(long_names_are_whole)
{
	enum { LEN = 100000 };
	struct profile p;
	char *name = malloc(LEN + 1);
	struct thread_entry thread = { .tid = 1, .name = name, .stack = UINT32_MAX };
	const struct thread_report report = { &p, &thread, 1, NULL, 0 };
	char *text;

	ASSERT_OK(profile_init(&p));
	memset(name, 'n', LEN);
	name[LEN] = '\0';
	text = print(&report, NULL);
	ASSERT_EQ(strlen(text), LEN + strlen("thread 1 \"\"\n"));
	free(text);
	free(name);
	profile_fini(&p);
}
