// SPDX-License-Identifier: Apache-2.0
#include "cli/top_model.h"
#include "profile/collect.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct profile p;
	struct top_model m;
	uint32_t main_, work, write_, first, second; /* stacks main;work and main;write (kernel) */
	uint32_t threads[2];
};

static uint32_t add_frame(struct profile *p, uint16_t kind, uint64_t address, const char *name)
{
	const struct profile_frame frame = { .kind = kind,
					     .file = PROFILE_NO_FILE,
					     .address = address };
	uint32_t id;

	ASSERT_OK(profile_add_frame(p, &frame, &id));
	ASSERT_OK(profile_name_frame(p, id, name));
	return id;
}

static void fill(struct fixture *f)
{
	uint32_t process;

	f->main_ = add_frame(&f->p, FRAME_KIND_NATIVE, 1, "main");
	f->work = add_frame(&f->p, FRAME_KIND_NATIVE, 2, "work");
	f->write_ = add_frame(&f->p, FRAME_KIND_KERNEL, 3, "vfs_write");
	ASSERT_OK(profile_add_stack(&f->p, (uint32_t[]){ f->work, f->main_ }, 2, STOP_COMPLETE,
				    &f->first));
	ASSERT_OK(profile_add_stack(&f->p, (uint32_t[]){ f->write_, f->main_ }, 2, STOP_COMPLETE,
				    &f->second));
	ASSERT_OK(profile_add_process(&f->p, 10, 1, &process));
	ASSERT_OK(profile_string(&f->p, "app", &f->p.processes.items[process].name));
	ASSERT_OK(profile_add_thread(&f->p, process, 10, "app", &f->threads[0]));
	ASSERT_OK(profile_add_thread(&f->p, process, 11, "pool", &f->threads[1]));
}

static void init(struct fixture *f)
{
	ASSERT_OK(profile_init(&f->p));
	ASSERT_OK(top_model_init(&f->m));
	fill(f);
}

static void fini(struct fixture *f)
{
	top_model_fini(&f->m);
	profile_fini(&f->p);
}

static void sample(struct fixture *f, int thread, uint32_t stack, uint64_t count)
{
	ASSERT_OK(profile_add_sample(&f->p, f->threads[thread], stack, count, NULL));
}

static void update_busy(struct fixture *f, double seconds, double cpus)
{
	ASSERT_OK(top_model_update(&f->m, &f->p, seconds, cpus, cpus / 4));
	profile_next_cut(&f->p);
}

static void update(struct fixture *f, double seconds)
{
	update_busy(f, seconds, 0);
}

/* "name self total" a row, as the view shows them. */
static const char *shown(const struct fixture *f, const struct top_view *view)
{
	static char text[1024];
	const struct top_row **rows;
	size_t nr, len = 0;

	ASSERT_OK(top_model_select(&f->m, view, &rows, &nr));
	text[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %.1f %.1f",
					i ? ", " : "", strtab_get(&f->m.strings, rows[i]->name),
					top_row_self(rows[i], view), top_row_total(rows[i], view));
	free(rows);
	return text;
}

TEST(counts_one_cut_after_the_other)
{
	const struct top_view view = { .order = TOP_ORDER_SELF };
	struct fixture f;

	init(&f);
	sample(&f, 0, f.first, 6);
	sample(&f, 1, f.second, 2);
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "work 6.0 6.0, vfs_write 2.0 2.0, main 0.0 8.0");
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "work 6.0 6.0, vfs_write 2.0 2.0, main 0.0 8.0");
	sample(&f, 1, f.second, 5);
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "vfs_write 7.0 7.0, work 6.0 6.0, main 0.0 13.0");
	fini(&f);
}

TEST(old_samples_fade_and_go)
{
	const struct top_view view = { .order = TOP_ORDER_TOTAL };
	struct fixture f;

	init(&f);
	sample(&f, 0, f.first, 8);
	update(&f, 1);
	update(&f, TOP_HALF_LIFE_S);
	ASSERT_STR(shown(&f, &view), "work 4.0 4.0, main 0.0 4.0");
	sample(&f, 0, f.second, 1);
	update(&f, TOP_HALF_LIFE_S);
	ASSERT_STR(shown(&f, &view), "main 0.0 3.0, work 2.0 2.0, vfs_write 1.0 1.0");
	update(&f, 20 * TOP_HALF_LIFE_S);
	ASSERT_STR(shown(&f, &view), "");
	fini(&f);
}

TEST(a_reset_begins_at_nothing)
{
	const struct top_view view = { .order = TOP_ORDER_SELF };
	struct fixture f;

	init(&f);
	sample(&f, 0, f.first, 100);
	update(&f, 0);
	top_model_reset(&f.m);
	ASSERT_STR(shown(&f, &view), "");
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "");
	sample(&f, 0, f.second, 3);
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "vfs_write 3.0 3.0, main 0.0 3.0");
	fini(&f);
}

/* Numbers of the profile are not kept. */
TEST(a_collected_profile_changes_nothing)
{
	const struct top_view view = { .order = TOP_ORDER_SELF };
	struct profile_collected collected;
	struct fixture f;

	init(&f);
	sample(&f, 0, f.first, 100);
	update(&f, 0);
	profile_next_cut(&f.p);
	ASSERT_OK(profile_collect(&f.p, 2, &collected));
	ASSERT_EQ(f.p.stacks.nr, 0);
	ASSERT_STR(shown(&f, &view), "work 100.0 100.0, main 0.0 100.0");
	fill(&f);
	sample(&f, 0, f.second, 1);
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "work 100.0 100.0, vfs_write 1.0 1.0, main 0.0 101.0");
	profile_collected_fini(&collected);
	fini(&f);
}

TEST(processes_and_threads_have_their_kernel_part)
{
	struct top_view view = { .by = TOP_BY_PROCESS };
	struct fixture f;

	init(&f);
	sample(&f, 0, f.first, 6);
	sample(&f, 1, f.second, 2);
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "app 8.0 8.0");
	view.mode = TOP_MODE_KERNEL;
	ASSERT_STR(shown(&f, &view), "app 2.0 2.0");
	view.mode = TOP_MODE_USER;
	ASSERT_STR(shown(&f, &view), "app 6.0 6.0");
	view = (struct top_view){ .by = TOP_BY_THREAD };
	ASSERT_STR(shown(&f, &view), "app 6.0 6.0, pool 2.0 2.0");
	view.mode = TOP_MODE_KERNEL;
	ASSERT_STR(shown(&f, &view), "pool 2.0 2.0");
	fini(&f);
}

TEST(filters_and_sorts)
{
	struct top_view view = { .order = TOP_ORDER_NAME };
	struct fixture f;

	init(&f);
	sample(&f, 0, f.first, 6);
	sample(&f, 1, f.second, 2);
	update(&f, 0);
	ASSERT_STR(shown(&f, &view), "main 0.0 8.0, vfs_write 2.0 2.0, work 6.0 6.0");
	view.filter = "W";
	ASSERT_STR(shown(&f, &view), "vfs_write 2.0 2.0, work 6.0 6.0");
	view.mode = TOP_MODE_KERNEL;
	ASSERT_STR(shown(&f, &view), "vfs_write 2.0 2.0");
	view.filter = "nothing";
	ASSERT_STR(shown(&f, &view), "");
	fini(&f);
}

/* Methods of one name in one file are rows of their own, told apart by their lines. */
TEST(functions_of_scripts_are_told_by_their_source)
{
	const struct profile_frame frame = { .kind = FRAME_KIND_OF(RUNTIME_PYTHON),
					     .file = PROFILE_NO_FILE };
	struct fixture f;
	uint32_t rows = 0, stack;

	init(&f);
	for (uint32_t i = 0; i < 3; i++) {
		struct profile_function function = { .start_line = i ? 40 : 12 };
		struct profile_line line = { .line = 50 + i };
		uint32_t id;

		ASSERT_OK(profile_string(&f.p, "__init__", &function.name));
		ASSERT_OK(profile_string(&f.p, "/srv/app.py", &function.source));
		ASSERT_OK(profile_add_function(&f.p, &function, &line.function));
		ASSERT_OK(profile_add_named_frame(&f.p, &frame, &line, 1, &id));
		ASSERT_OK(profile_add_stack(&f.p, &id, 1, STOP_COMPLETE, &stack));
		sample(&f, 0, stack, 1 + i);
	}
	update(&f, 0);
	for (size_t i = 0; i < f.m.by[TOP_BY_FUNCTION].rows.nr; i++) {
		const struct top_row *row = &f.m.by[TOP_BY_FUNCTION].rows.items[i];

		if (!strcmp(strtab_get(&f.m.strings, row->object), "app.py:12"))
			rows += (uint32_t)row->self;
		else if (!strcmp(strtab_get(&f.m.strings, row->object), "app.py:40"))
			rows += 10 * (uint32_t)row->self;
	}
	ASSERT_EQ(rows, 51);
	fini(&f);
}

static bool is_about(double a, double b)
{
	return a > 0.999 * b && a < 1.001 * b;
}

/* However few of the samples have come. */
TEST(busy_cpus_are_what_was_busy_and_rows_have_their_part)
{
	struct fixture f = { 0 };

	init(&f);
	ASSERT(top_model_busy(&f.m) == 0 && top_model_cpus(&f.m, 1) == 0);
	update_busy(&f, 1, 1.5);
	ASSERT(is_about(top_model_busy(&f.m), 1.5));
	for (int i = 0; i < 20; i++) {
		sample(&f, 0, f.first, 1 + (uint64_t)i);
		update_busy(&f, 1, 1.5);
		ASSERT(is_about(top_model_busy(&f.m), 1.5));
		ASSERT(is_about(top_model_own(&f.m), 1.5 / 4));
		ASSERT(is_about(top_model_cpus(&f.m, f.m.samples), 1.5));
		ASSERT(is_about(top_model_cpus(&f.m, f.m.samples / 3), 0.5));
	}
	update_busy(&f, 100, 0);
	ASSERT(top_model_busy(&f.m) < 0.001);
	top_model_reset(&f.m);
	ASSERT(top_model_busy(&f.m) == 0 && top_model_own(&f.m) == 0);
	/* Its clock may be ahead of what the machine's ticks have. */
	ASSERT_OK(top_model_update(&f.m, &f.p, 1, 0.01, 0.02));
	ASSERT(is_about(top_model_own(&f.m), 0.01));
	fini(&f);
}
