// SPDX-License-Identifier: Apache-2.0
#include "cli/top.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t add_frame(struct profile *p, uint32_t file, uint64_t address, const char *name)
{
	const struct profile_frame frame = { .kind = FRAME_KIND_NATIVE,
					     .file = file,
					     .address = address };
	uint32_t id;

	ASSERT_OK(profile_add_frame(p, &frame, &id));
	ASSERT_OK(profile_name_frame(p, id, name));
	return id;
}

static void add_sample(struct profile *p, const uint32_t *frames, size_t nr, uint64_t count)
{
	uint32_t stack;

	ASSERT_OK(profile_add_stack(p, frames, nr, STOP_COMPLETE, &stack));
	ASSERT_OK(profile_add_comm_sample(p, "comm", stack, count));
}

static char *print(const struct profile *p, uint32_t nr)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ASSERT_OK(top_print(p, nr, out));
	fclose(out);
	return text;
}

/* main 100 % -> work (two addresses, one function; recursive) -> leaf */
static void fill(struct profile *p)
{
	uint32_t file, main_, work, work2, leaf;

	ASSERT_OK(profile_init(p));
	ASSERT_OK(profile_add_file(p, "/usr/bin/app", NULL, 0, &file));
	main_ = add_frame(p, file, 1, "main");
	work = add_frame(p, file, 2, "work");
	work2 = add_frame(p, file, 3, "work");
	leaf = add_frame(p, file, 4, "leaf");
	add_sample(p, (uint32_t[]){ leaf, work, work2, main_ }, 4, 60);
	add_sample(p, (uint32_t[]){ work2, main_ }, 2, 30);
	add_sample(p, (uint32_t[]){ main_ }, 1, 10);
}

TEST(counts_self_and_total_once_a_stack)
{
	struct profile p;
	char *text;

	fill(&p);
	text = print(&p, 10);
	ASSERT(strstr(text, "       60  60.00 %         60  60.00 %    leaf [app]\n"));
	ASSERT(strstr(text, "       30  30.00 %         90  90.00 %    work [app]\n"));
	ASSERT(strstr(text, "       10  10.00 %        100 100.00 %    main [app]\n"));
	/* First by self, then by total. */
	ASSERT(strstr(text, "leaf") < strstr(text, "work"));
	ASSERT(strstr(strstr(text, "calls"), "main") < strstr(strstr(text, "calls"), "work"));
	free(text);
	profile_fini(&p);
}

TEST(prints_no_more_than_asked_for)
{
	struct profile p;
	char *text;

	fill(&p);
	text = print(&p, 1);
	ASSERT_PTR_NULL(strstr(text, "work"));
	ASSERT_PTR_NONNULL(strstr(text, "leaf"));
	ASSERT_PTR_NONNULL(strstr(text, "main"));
	free(text);
	profile_fini(&p);
}

TEST(an_empty_profile_prints_nothing)
{
	struct profile p;
	char *text;

	ASSERT_OK(profile_init(&p));
	text = print(&p, 10);
	ASSERT_STR(text, "");
	free(text);
	profile_fini(&p);
}
