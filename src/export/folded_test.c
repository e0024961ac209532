// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"
#include "export/formats.h"
#include "util/cleanup.h"
#include "test.h"

#include <stdarg.h>

/* Written outermost first, as folded lines are: "name", "name_[k]", "@0x10" (unnamed), "@anon". */
static uint32_t add_frame(struct profile *p, const char *spec, uint64_t address)
{
	struct profile_frame f = { .kind = FRAME_KIND_NATIVE, .address = address };
	size_t len = strlen(spec);
	const char *path = "/usr/lib/libtest.so";
	char name[64];
	uint32_t id;

	snprintf(name, sizeof(name), "%s", spec);
	if (len > 4 && !strcmp(spec + len - 4, "_[k]")) {
		f.kind = FRAME_KIND_KERNEL;
		path = "[kernel]";
		name[len - 4] = '\0';
	} else if (!strcmp(spec, "@anon")) {
		path = "[anon]";
	}
	ASSERT_OK(profile_add_file(p, path, NULL, 0, &f.file));
	ASSERT_OK(profile_add_frame(p, &f, &id));
	if (spec[0] != '@')
		ASSERT_OK(profile_name_frame(p, id, name));
	return id;
}

static void add(struct profile *p, const char *comm, enum stop_reason stop, uint64_t count, ...)
{
	static uint64_t address = 0x1000;
	uint32_t frames[32], stack;
	const char *spec;
	size_t nr = 32;
	va_list ap;

	va_start(ap, count);
	while ((spec = va_arg(ap, const char *))) {
		uint64_t at =
			spec[0] == '@' && spec[1] == '0' ? strtoull(spec + 1, NULL, 16) : address++;
		frames[--nr] = add_frame(p, spec, at);
	}
	va_end(ap);
	ASSERT_OK(profile_add_stack(p, frames + nr, 32 - nr, stop, &stack));
	ASSERT_OK(profile_add_comm_sample(p, comm, stack, count));
}

static void assert_folded(const struct profile *p, const char *want)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ASSERT_OK(export_folded.write(p, &(struct export_options){ 0 }, out));
	fclose(out);
	ASSERT_STR(text, want);
}

TEST(an_empty_profile_is_an_empty_file)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	assert_folded(&p, "");
	profile_fini(&p);
}

TEST(lines_are_outermost_first_and_sorted)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	add(&p, "sh", STOP_COMPLETE, 3, "_start", "main", "run", NULL);
	add(&p, "sh", STOP_COMPLETE, 2, "_start", "main", NULL);
	add(&p, "sh", STOP_COMPLETE, 1, "_start", "init", NULL);
	add(&p, "awk", STOP_COMPLETE, 4, "_start", NULL);
	assert_folded(&p,
		      "awk;_start 4\nsh;_start;init 1\nsh;_start;main 2\nsh;_start;main;run 3\n");
	profile_fini(&p);
}

TEST(stacks_that_differ_by_address_only_are_one_line)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	add(&p, "sh", STOP_COMPLETE, 1, "main", "run", "main", NULL);
	add(&p, "sh", STOP_COMPLETE, 10, "main", "run", "main", NULL);
	add(&p, "sh", STOP_COMPLETE, 100, "main", "run", "main", NULL);
	ASSERT_EQ(p.cut.samples.nr, 3);
	assert_folded(&p, "sh;main;run;main 111\n");
	profile_fini(&p);
}

TEST(kernel_frames_are_marked_and_apart)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	add(&p, "sh", STOP_COMPLETE, 1, "main", "read", NULL);
	add(&p, "sh", STOP_COMPLETE, 2, "main", "read_[k]", NULL);
	assert_folded(&p, "sh;main;read_[k] 2\nsh;main;read 1\n");
	profile_fini(&p);
}

TEST(no_frame_is_left_out)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	add(&p, "sh", STOP_COMPLETE, 1, "@0x20", "@anon", "@0x30", NULL);
	add(&p, "sh", STOP_COMPLETE, 2, "@0x20", "@anon", "@0x30", NULL);
	assert_folded(&p, "sh;[libtest.so+0x20];[anon];[libtest.so+0x30] 3\n");
	profile_fini(&p);
}

TEST(a_stack_that_is_not_complete_says_so_outermost)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	add(&p, "sh", STOP_NO_RULE, 1, "run", NULL);
	add(&p, "sh", STOP_COMPLETE, 2, "run", NULL);
	add(&p, "sh", STOP_NO_PROCESS, 3, NULL);
	add(&p, "sh", STOP_COMPLETE, 4, NULL);
	assert_folded(&p, "sh 4\nsh;[truncated: no_process] 3\nsh;[truncated: no_rule];run 1\n"
			  "sh;run 2\n");
	profile_fini(&p);
}

TEST(names_cannot_break_a_line)
{
	struct profile p;

	ASSERT_OK(profile_init(&p));
	add(&p, "my app;x\n", STOP_COMPLETE, 1, "operator new", "f(La;)\n", NULL);
	add(&p, "my_app:x_", STOP_COMPLETE, 1, "operator new", "f(La:)_", NULL);
	add(&p, "", STOP_COMPLETE, 1, "\xff", NULL);
	assert_folded(&p, "[no_name];? 1\nmy_app:x_;operator new;f(La:)_ 2\n");
	profile_fini(&p);
}

TEST(very_long_names_are_whole)
{
	_cleanup_free_ char *name = malloc(100001), *text = NULL;
	struct profile_frame f = { .kind = FRAME_KIND_NATIVE, .file = PROFILE_NO_FILE };
	struct profile p;
	uint32_t id, stack;
	size_t size;
	FILE *out;

	memset(name, 'x', 100000);
	name[100000] = '\0';
	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_frame(&p, &f, &id));
	ASSERT_OK(profile_name_frame(&p, id, name));
	ASSERT_OK(profile_add_stack(&p, &id, 1, STOP_COMPLETE, &stack));
	ASSERT_OK(profile_add_comm_sample(&p, "c", stack, UINT64_MAX));
	out = open_memstream(&text, &size);
	ASSERT_OK(export_folded.write(&p, &(struct export_options){ 0 }, out));
	fclose(out);
	ASSERT_EQ(size, 2 + 100000 + strlen(" 18446744073709551615\n"));
	profile_fini(&p);
}

TEST(formats_are_chosen_by_name_and_extension)
{
	ASSERT(export_by_name("folded") == &export_folded);
	ASSERT_PTR_NULL(export_by_name("Folded"));
	ASSERT_PTR_NULL(export_by_name(""));
	ASSERT(export_by_path("-") == &export_folded);
	ASSERT(export_by_path("a/b.TXT") == &export_folded);
	ASSERT(export_by_path("x.folded") == &export_folded);
	ASSERT_PTR_NULL(export_by_path("x.folded.gz"));
	ASSERT_PTR_NULL(export_by_path(".folded"));
	ASSERT_PTR_NULL(export_by_path(""));
}
