// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.h"
#include "test.h"

static const char *cleaned(const char *s)
{
	static char buf[256];

	profile_clean_text(s, strlen(s), buf, sizeof(buf));
	return buf;
}

static void assert_label(uint16_t kind, const char *path, const char *name, const char *want)
{
	struct profile_frame f = { .kind = kind, .file = PROFILE_NO_FILE, .address = 0x12ab };
	struct profile p;
	char buf[256];
	uint32_t id;

	ASSERT_OK(profile_init(&p));
	if (path)
		ASSERT_OK(profile_add_file(&p, path, NULL, 0, &f.file));
	ASSERT_OK(profile_add_frame(&p, &f, &id));
	if (name)
		ASSERT_OK(profile_name_frame(&p, id, name));
	ASSERT_STR(profile_frame_label(&p, id, 0, false, buf, sizeof(buf)), want);
	ASSERT(strlen(buf) < profile_frame_label_size(&p, id, 0));
	profile_fini(&p);
}

TEST(a_frame_is_its_name_or_its_place)
{
	assert_label(FRAME_KIND_NATIVE, "/usr/bin/x", "main", "main");
	assert_label(FRAME_KIND_NATIVE, "/usr/bin/x", NULL, "[x+0x12ab]");
	assert_label(FRAME_KIND_NATIVE, "[vdso]", NULL, "[vdso+0x12ab]");
	assert_label(FRAME_KIND_NATIVE, "[anon]", NULL, "[anon]");
	assert_label(FRAME_KIND_NATIVE, "[anon]", "jitted", "jitted");
	assert_label(FRAME_KIND_NATIVE, NULL, NULL, "[unknown+0x12ab]");
	assert_label(FRAME_KIND_NATIVE, "/tmp/a;b (deleted)", NULL, "[a:b (deleted)+0x12ab]");
	assert_label(FRAME_KIND_KERNEL, "[kernel]", "do_idle", "do_idle_[k]");
	assert_label(FRAME_KIND_KERNEL, "[kernel]", NULL, "[kernel+0x12ab]_[k]");
	assert_label(FRAME_KIND_KERNEL, NULL, NULL, "[kernel+0x12ab]_[k]");
	assert_label(FRAME_KIND_OF(RUNTIME_PYTHON), NULL, "A.f", "A.f");
	assert_label(FRAME_KIND_OF(RUNTIME_PYTHON), NULL, NULL, "[python: unknown]");
	assert_label(FRAME_KIND_OF(RUNTIME_HOTSPOT), NULL, NULL, "[hotspot: unknown]");
}

TEST(kinds_of_runtimes_have_their_names)
{
	ASSERT_STR(profile_runtime_name(FRAME_KIND_OF(RUNTIME_PYTHON)), "python");
	ASSERT_EQ(profile_runtime_kind("python", 6), FRAME_KIND_OF(RUNTIME_PYTHON));
	ASSERT_EQ(profile_runtime_kind("pytho", 5), FRAME_KIND_NATIVE);
	ASSERT_EQ(profile_runtime_kind("native", 6), FRAME_KIND_NATIVE);
	ASSERT(!profile_runtime_name(FRAME_KIND_KERNEL));
	ASSERT(!profile_runtime_name(FRAME_KIND_NATIVE));
	ASSERT(!profile_runtime_name(FRAME_KIND_TRUNCATED));
	ASSERT(!profile_runtime_name(FRAME_KIND_MAX_));
}

TEST(a_short_buffer_cuts_the_label)
{
	struct profile_frame f = { .kind = FRAME_KIND_KERNEL, .file = PROFILE_NO_FILE };
	struct profile p;
	uint32_t id;
	char buf[8];

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_frame(&p, &f, &id));
	ASSERT_STR(profile_frame_label(&p, id, 0, false, buf, sizeof(buf)), "[kernel");
	ASSERT_STR(profile_frame_label(&p, id, 0, false, buf, 1), "");
	ASSERT_STR(profile_frame_label(&p, 99, 0, false, buf, 0), "");
	ASSERT_STR(profile_frame_label(&p, 99, 0, false, buf, sizeof(buf)), "[unknow");
	profile_fini(&p);
}

TEST(an_inline_frame_has_its_function_its_line_and_its_mark)
{
	struct profile_frame f = { .kind = FRAME_KIND_NATIVE, .file = PROFILE_NO_FILE };
	struct profile_function function = { 0 };
	struct profile_line lines[2] = { { .line = 12 }, { .line = 0 } };
	struct profile p;
	uint32_t id;
	char buf[64];

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_string(&p, "inner", &function.name));
	ASSERT_OK(profile_add_function(&p, &function, &lines[0].function));
	ASSERT_OK(profile_string(&p, "outer", &function.name));
	ASSERT_OK(profile_add_function(&p, &function, &lines[1].function));
	ASSERT_OK(profile_add_frame(&p, &f, &id));
	ASSERT_EQ(profile_nr_inline_frames(&p, id), 1);
	ASSERT(!profile_frame_line(&p, id, 0));
	ASSERT_OK(profile_set_lines(&p, id, lines, 2));
	ASSERT_EQ(profile_nr_inline_frames(&p, id), 2);
	ASSERT_STR(profile_frame_label(&p, id, 0, false, buf, sizeof(buf)), "inner_[i]");
	ASSERT_STR(profile_frame_label(&p, id, 0, true, buf, sizeof(buf)), "inner:12_[i]");
	ASSERT_STR(profile_frame_label(&p, id, 1, true, buf, sizeof(buf)), "outer");
	ASSERT(!profile_frame_line(&p, id, 2));
	profile_fini(&p);
}

TEST(output_is_valid_utf8_without_controls_and_separators)
{
	ASSERT_STR(cleaned("std::map<int, char>"), "std::map<int, char>");
	ASSERT_STR(cleaned("(Ljava/lang/String;)V"), "(Ljava/lang/String:)V");
	ASSERT_STR(cleaned("a\nb\tc\x7f\x1b[31m"), "a_b_c__[31m");
	ASSERT_STR(cleaned("gr\xc3\xb6\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5"),
		   "gr\xc3\xb6\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
	ASSERT_STR(cleaned("csi \xc2\x9b!"), "csi _!");
	ASSERT_STR(cleaned("\xff\xc0\x80|\xe2\x82"), "???|??");
	ASSERT_STR(cleaned("\xed\xa0\x80"), "???");
	ASSERT_STR(cleaned("\xf5\x80\x80\x80"), "????");
	ASSERT_STR(cleaned("\xe0\x80\x80"), "???");
}

TEST(a_character_is_never_cut_in_two)
{
	char buf[4];

	ASSERT_EQ(profile_clean_text("ab\xc3\xb6", 4, buf, sizeof(buf)), 2);
	ASSERT_STR(buf, "ab");
}

TEST(every_stop_reason_has_its_name)
{
	ASSERT_STR(profile_stop_name(STOP_COMPLETE), "complete");
	ASSERT_STR(profile_stop_name(STOP_NO_MAPPING), "no_mapping");
	ASSERT_STR(profile_stop_sentence(STOP_COMPLETE), "the thread's first frame was reached");
	ASSERT_STR(profile_stop_name(STOP_NONE), "unknown");
	ASSERT_STR(profile_stop_name((enum stop_reason)1000), "unknown");
	ASSERT(strlen(profile_stop_sentence((enum stop_reason) - 1)) > 0);
}
