// SPDX-License-Identifier: Apache-2.0
/* Tables of large files are built by children, and are the same. */
#include "unwinder/loader.h"
#include "unwinder/budget.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cfi_writer.h"
#include "elf_writer.h"
#include "unwind/table_image.h"
#include "util/cleanup.h"
#include "util/test_child_status.h"
#include "unwind/unwind_store.h"

enum {
	TEXT = 0x1000,
	FUNCTION = 32,
	FDE = 24,
	SMALL = 1000,
	LARGE = 400000, /* 9.6 MB of .eh_frame; half of that was too much for 64 MB of memory */
	MIDDLE = 20000,
	WAITED_FILE = 17,
};

/* A file of `nr` functions that push a register. */
static int make_file(uint32_t nr)
{
	size_t text_size = (size_t)nr * FUNCTION, cie, size;
	uint64_t frames_at = (TEXT + text_size + 0xfff) & ~0xfffull;
	struct cfi_writer w = { .eh_frame = true, .addr = frames_at };
	_cleanup_free_ uint8_t *text = calloc(1, text_size), *frames = NULL;
	struct elf_writer *e = elf_writer_new(ET_DYN, EM_X86_64);
	_cleanup_free_ void *image = NULL;
	unsigned int s;

	cie = cfi_writer_cie(&w, CFI_BYTES(0x0c, 7, 8, 0x90, 1));
	frames = calloc(1, w.size + (size_t)nr * FDE + 4);
	memcpy(frames, w.data, w.size);
	for (uint32_t i = 0, at = (uint32_t)w.size; i < nr; i++, at += FDE) {
		uint32_t fde[4] = { FDE - 4, at + 4 - (uint32_t)cie,
				    (uint32_t)(TEXT + i * FUNCTION - (frames_at + at + 8)),
				    FUNCTION };
		/* DW_CFA_advance_loc 1, DW_CFA_def_cfa_offset 16 (or 24) */
		const uint8_t rest[8] = { 0, 0x41, 0x0e, 16 + 8 * (i & 1) };

		memcpy(frames + at, fde, sizeof(fde));
		memcpy(frames + at + sizeof(fde), rest, sizeof(rest));
	}
	s = elf_writer_section(e, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, text,
			       text_size);
	elf_writer_segment(e, PT_LOAD, PF_R | PF_X, s, s);
	elf_writer_section(e, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, frames_at, frames,
			   w.size + (size_t)nr * FDE + 4);
	image = elf_writer_finish(e, &size);
	return elf_image_fd(image, size);
}

static struct elf_file *open_file(uint32_t nr)
{
	struct elf_file *elf;

	ASSERT_OK(elf_file_open_fd(make_file(nr), &elf));
	return elf;
}

static void assert_same(const struct unwind_table *a, const struct unwind_table *b)
{
	uint32_t nr = a->nr_buckets + a->nr_rows;
	_cleanup_free_ uint32_t *cells = malloc(nr * sizeof(*cells));

	ASSERT_EQ(a->start, b->start);
	ASSERT_EQ(a->nr_buckets, b->nr_buckets);
	ASSERT_EQ(a->nr_rows, b->nr_rows);
	ASSERT_EQ(a->nr_rules, b->nr_rules);
	ASSERT(!memcmp(a->rules, b->rules, a->nr_rules * sizeof(*a->rules)));
	ASSERT_OK(table_image_read(a, 0, cells, nr));
	ASSERT(!memcmp(cells, b->buckets, b->nr_buckets * sizeof(*cells)));
	ASSERT(!memcmp(cells + b->nr_buckets, b->rows, b->nr_rows * sizeof(*cells)));
}

TEST(a_child_builds_the_same_table)
{
	static const struct code_range loops[] = { { TEXT + 64, TEXT + 128 } },
				       functions[] = { { TEXT, TEXT + 64 },
						       { TEXT + 512, TEXT + 600 } };
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(LARGE);
	_cleanup_(unwind_table_free_p) struct unwind_table *built = NULL, *expected = NULL;
	struct loader_job job = { .elf = elf, .marked = loops, .nr_marked = 1, .runtime = 2 };
	struct loader l;

	job.functions = functions;
	job.nr_functions = 2;
	loader_init(&l);
	ASSERT_OK(loader_build(&l, &job, &built));
	ASSERT(built->image);
	ASSERT_OK(unwind_table_build(elf, 0, &expected));
	ASSERT_OK(unwind_table_follow(expected, elf, functions, 2));
	ASSERT_OK(unwind_table_mark(expected, loops, 1, 2));
	assert_same(built, expected);
	loader_fini(&l);
}

/* All that it needs is open. */
TEST(a_child_has_no_capabilities)
{
	_cleanup_close_ int file = make_file(SMALL), out = memfd_create("out", MFD_CLOEXEC);
	const struct child_spec spec = { .main = loader_child_main, .in_fd = file, .out_fd = out };
	struct child child = CHILD_NONE;
	int status;

	ASSERT_OK(child_start(&spec, &child));
	assert_child_had_only(child.pid, 0);
	ASSERT_OK(child_end(&child, false, &status));
	ASSERT_EQ(status, 0);
}

TEST(a_small_file_needs_no_child)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(SMALL);
	_cleanup_(unwind_table_free_p) struct unwind_table *built = NULL;
	struct loader_job job = { .elf = elf };
	struct loader l;

	loader_init(&l);
	ASSERT_OK(loader_build(&l, &job, &built));
	ASSERT(!built->image);
	loader_fini(&l);
}

/* It may be made to take long in ways that nobody has thought of. */
TEST(a_file_that_is_not_trusted_needs_one_sooner)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(2 * SMALL);
	_cleanup_(unwind_table_free_p) struct unwind_table *of_root = NULL, *of_other = NULL;
	struct loader_job job = { .elf = elf };
	struct loader l;

	loader_init(&l);
	ASSERT_OK(loader_build(&l, &job, &of_root));
	ASSERT(!of_root->image);
	job.owner = 100000;
	ASSERT_OK(loader_build(&l, &job, &of_other));
	ASSERT(of_other->image);
	loader_fini(&l);
}

/* --- what a file costs ------------------------------------------------------------------------ */

enum { MUCH_CODE = 1 << 20, NR_OVERLAPPING = 100, FAR = 0x400000 };

static uint64_t cost_of(struct elf_writer *w)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	size_t size;

	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	return unwind_table_cost(elf);
}

/* Each segment is searched, those that overlap, too. */
TEST(code_counts_as_often_as_it_is_read)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int s = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					    TEXT, NULL, MUCH_CODE);

	for (int i = 0; i < NR_OVERLAPPING; i++)
		elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	ASSERT(cost_of(w) > NR_OVERLAPPING * (MUCH_CODE >> 6));
}

/* Then what the segment has behind its address is read. */
TEST(an_eh_frame_that_can_not_be_read_costs_what_is_read_instead)
{
	const Elf64_Chdr unknown = { .ch_type = 99, .ch_size = 8 };
	const uint8_t header[12] = { 1, 0x03 /* udata4 */, 0xff, 0xff, [6] = FAR >> 16 };
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int s;

	s = elf_writer_section(w, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, TEXT, header,
			       sizeof(header));
	elf_writer_segment(w, PT_LOAD, PF_R, s, s);
	elf_writer_segment(w, PT_GNU_EH_FRAME, PF_R, s, s);
	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, &unknown,
			   sizeof(unknown));
	s = elf_writer_section(w, ".rodata", SHT_PROGBITS, SHF_ALLOC, FAR, NULL, MUCH_CODE);
	elf_writer_segment(w, PT_LOAD, PF_R, s, s);
	ASSERT(cost_of(w) >= MUCH_CODE);
}

/* What is fixed on a machine of many CPUs, and what walkers of runtimes take when they come. */
enum { FIXED = 20 << 20, WALKERS = 12 << 20 };

/* A recorder's room for tables; then walkers that take `later` bytes come. */
static int open_store(struct unwind_store *s, uint64_t limit, size_t later)
{
	static const struct unwind_store_maps no_maps = { -1, -1, -1 };
	int r = unwind_store_init(s, &no_maps, budget_share(limit, FIXED).arena);

	arena_set_max(&s->arena, budget_share(limit, FIXED + later).arena);
	return r;
}

/* How many of such a table fit into `limit`. The limit that is named for one more would do. */
static uint32_t count_that_fit(const struct unwind_table *table, uint64_t limit, size_t later)
{
	struct unwind_store s;
	uint32_t file = 1;
	uint64_t named;

	ASSERT_OK(open_store(&s, limit, later));
	while (!unwind_store_load(&s, file, table))
		file++;
	named = budget_limit_for_arena(unwind_store_bytes_with(&s, table), FIXED + later);
	unwind_store_fini(&s);
	ASSERT(named > limit && named <= limit + (32 << 20));
	ASSERT_OK(open_store(&s, named, later));
	for (uint32_t i = 1; i <= file; i++)
		ASSERT_OK(unwind_store_load(&s, i, table));
	unwind_store_fini(&s);
	return file - 1;
}

/* What is lent is taken from others: all together stays below the limit. */
TEST(what_is_lent_stays_within_the_limit)
{
	for (uint64_t limit = 32 << 20; limit <= 256 << 20; limit *= 2) {
		struct budget b = budget_share(limit, FIXED), lent = budget_lend(&b);

		ASSERT(lent.arena > b.arena);
		ASSERT_EQ(lent.arena + lent.profile + 2 * lent.batch,
			  b.arena + b.profile + 2 * b.batch);
		lent = budget_lend_to_profile(&b, b.arena / 2);
		ASSERT(lent.profile > b.profile);
		ASSERT(lent.arena >= b.arena / 4 * 3);
		ASSERT_EQ(lent.arena + lent.profile + 2 * lent.batch,
			  b.arena + b.profile + 2 * b.batch);
	}
}

TEST(a_large_file_fits_into_the_default_limit)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(LARGE);
	_cleanup_(unwind_table_free_p) struct unwind_table *built = NULL;
	struct loader_job job = { .elf = elf };
	struct loader l;

	loader_init(&l);
	ASSERT_OK(loader_build(&l, &job, &built));
	ASSERT(count_that_fit(built, 64 << 20, 0) >= 3);
	ASSERT(count_that_fit(built, 64 << 20, WALKERS) >= 2);
	loader_fini(&l);
}

/* --- children that take long ------------------------------------------------------------------ */

static char shell[] = "/bin/sh", option[] = "-c", fail[] = "exit 1", too_big[] = "exit 4";
static char killed[] = "kill -KILL $$";
static char for_ever[] = "exec sleep 1000", nonsense[] = "exec head -c 100000 /dev/zero >&4";

/* Its children take longer than anybody waits. */
static void init_with_sleeper(struct loader *l, bool (*meanwhile)(void *ctx))
{
	static char *const sleeper[] = { shell, option, for_ever, shell, NULL };

	loader_init(l);
	l->builder = sleeper;
	l->wait.meanwhile = meanwhile;
}

static int build_by(char *script)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE);
	char *const builder[] = { shell, option, script, shell, NULL };
	struct loader_job job = { .elf = elf };
	struct unwind_table *built = NULL;
	struct loader l;
	int r;

	loader_init(&l);
	l.builder = builder;
	r = loader_build(&l, &job, &built);
	ASSERT(!built);
	loader_fini(&l);
	return r;
}

TEST(what_a_child_that_fails_leaves_is_not_used)
{
	ASSERT_ERR(build_by(fail), EBADMSG);
	ASSERT_ERR(build_by(too_big), EFBIG);
	ASSERT_ERR(build_by(killed), ECHILD);
	ASSERT_ERR(build_by(nonsense), EBADMSG);
}

static int nr_meanwhile, nr_done, last_result;

static bool count_meanwhile(void *ctx)
{
	const bool *may_wait = ctx;

	nr_meanwhile++;
	return !may_wait || *may_wait;
}

static bool false_at_the_third(void *ctx)
{
	(void)ctx;
	return ++nr_meanwhile < 3;
}

static void count_done(void *ctx, uint32_t file, int result, struct unwind_table *table)
{
	(void)ctx;
	ASSERT_EQ(file, WAITED_FILE);
	ASSERT(!table);
	last_result = result;
	nr_done++;
}

/* Somebody's files may all be made to take long: there is a place left for others', and for root's.
 */
TEST(an_owner_has_one_child_in_the_background)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE);
	enum { SOMEBODY = 100000, OTHER, THIRD };
	struct loader_job job = { .elf = elf, .file = WAITED_FILE, .owner = SOMEBODY };
	struct unwind_table *built;
	struct loader l;

	init_with_sleeper(&l, count_meanwhile);
	l.patience.left_ns = 0;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	job.file++;
	ASSERT_ERR(loader_build(&l, &job, &built), EAGAIN);
	job.owner = OTHER;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	job.file++;
	job.owner = THIRD;
	ASSERT_ERR(loader_build(&l, &job, &built), EAGAIN);
	job.owner = 0;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	loader_fini(&l);
}

TEST(none_is_waited_for_once_what_waits_takes_too_much_room)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE);
	struct loader_job job = { .elf = elf, .file = WAITED_FILE };
	struct unwind_table *built;
	struct loader l;

	init_with_sleeper(&l, false_at_the_third);
	nr_meanwhile = 0;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	ASSERT_EQ(nr_meanwhile, 3);
	ASSERT(l.patience.left_ns > 0);
	loader_fini(&l);
}

/* Two large libraries of one program: the second's samples have come while the first was waited
 * for.
 */
TEST(what_was_begun_ahead_is_waited_for)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE),
						   *small = open_file(SMALL);
	_cleanup_(unwind_table_free_p) struct unwind_table *built = NULL, *expected = NULL;
	struct loader_job job = { .elf = elf, .file = WAITED_FILE };
	struct loader l;

	loader_init(&l);
	l.wait.meanwhile = count_meanwhile;
	ASSERT_OK(loader_begin(&l, &job));
	ASSERT(loader_is_building(&l, WAITED_FILE));
	ASSERT(loader_is_ahead(&l, WAITED_FILE));
	ASSERT_OK(loader_build(&l, &job, &built));
	ASSERT(!loader_is_building(&l, WAITED_FILE));
	ASSERT(!loader_is_busy(&l));
	ASSERT_OK(unwind_table_build(elf, 0, &expected));
	assert_same(built, expected);
	job.elf = small;
	ASSERT_ERR(loader_begin(&l, &job), ENOTSUP);
	job.elf = elf;
	job.owner = 100000;
	ASSERT_ERR(loader_begin(&l, &job), ENOTSUP);
	loader_fini(&l);
}

TEST(what_was_begun_ahead_is_waited_for_once_and_leaves_a_place)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE);
	struct loader_job job = { .elf = elf };
	struct unwind_table *built;
	struct loader l;

	init_with_sleeper(&l, false_at_the_third);
	for (job.file = WAITED_FILE; job.file < WAITED_FILE + LOADER_BACKGROUND_MAX - 1; job.file++)
		ASSERT_OK(loader_begin(&l, &job));
	ASSERT_ERR(loader_begin(&l, &job), EAGAIN);
	/* It goes on in the background, as any that takes long. */
	job.file = WAITED_FILE;
	nr_meanwhile = 0;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	ASSERT_EQ(nr_meanwhile, 3);
	ASSERT(loader_is_building(&l, WAITED_FILE));
	ASSERT(!loader_is_ahead(&l, WAITED_FILE));
	ASSERT(loader_is_ahead(&l, WAITED_FILE + 1));
	/* And one that nobody has begun has a place, too. */
	job.file = WAITED_FILE + LOADER_BACKGROUND_MAX;
	nr_meanwhile = 0;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	loader_fini(&l);
}

static struct loader *begun_while_waiting;
static struct loader_job other_job;
static int result_of_begin;

static bool begin_other(void *ctx)
{
	(void)ctx;
	if (!nr_meanwhile++)
		return true;
	/* What is waited for is not built twice. */
	ASSERT(loader_is_building(begun_while_waiting, WAITED_FILE));
	result_of_begin = loader_begin(begun_while_waiting, &other_job);
	return false;
}

TEST(another_is_begun_while_one_is_waited_for)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE);
	struct loader_job job = { .elf = elf, .file = WAITED_FILE };
	struct unwind_table *built;
	struct loader l;

	init_with_sleeper(&l, begin_other);
	begun_while_waiting = &l;
	other_job = (struct loader_job){ .elf = elf, .file = WAITED_FILE + 1 };
	nr_meanwhile = 0;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	ASSERT_OK(result_of_begin);
	ASSERT(loader_is_building(&l, WAITED_FILE));
	ASSERT(!loader_is_ahead(&l, WAITED_FILE));
	ASSERT(loader_is_ahead(&l, WAITED_FILE + 1));
	loader_fini(&l);
}

/* The rest waits for what takes long neither for ever nor again and again. */
TEST(one_that_takes_long_goes_on_in_the_background)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = open_file(MIDDLE);
	struct loader_job job = { .elf = elf, .file = WAITED_FILE };
	char *too_many_args[64] = { shell };
	struct unwind_table *built;
	struct loader l;

	for (size_t i = 1; i + 1 < sizeof(too_many_args) / sizeof(*too_many_args); i++)
		too_many_args[i] = option;
	init_with_sleeper(&l, count_meanwhile);
	ASSERT(!loader_is_busy(&l));
	l.patience.left_ns = 20000000;
	ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	ASSERT(nr_meanwhile > 0);
	ASSERT(loader_is_building(&l, WAITED_FILE));
	ASSERT(loader_is_busy(&l));
	for (uint32_t i = 1; i < LOADER_BACKGROUND_MAX; i++) {
		job.file = i;
		ASSERT_ERR(loader_build(&l, &job, &built), EINPROGRESS);
	}
	/*
	 * No more than these, and none is even started that cannot be waited for a whole second: a
	 * turn may have ten thousand samples that ask.
	 */
	job.file = 1000;
	l.builder = too_many_args;
	l.patience.left_ns = 500000000;
	l.patience.at_ns = UINT64_MAX; /* no time goes by */
	ASSERT_ERR(loader_build(&l, &job, &built), EAGAIN);
	l.patience.left_ns = 1000000000;
	ASSERT_ERR(loader_build(&l, &job, &built), E2BIG);
	/* It is not built while those that wait for us take all the room that there is. */
	l.wait.ctx = &(bool){ false };
	ASSERT_ERR(loader_build(&l, &job, &built), EAGAIN);
	loader_tick(&l, count_done, NULL);
	ASSERT_EQ(nr_done, 0);
	ASSERT_OK(kill(l.background[0].child.pid, SIGXCPU));
	while (!nr_done)
		loader_tick(&l, count_done, NULL);
	ASSERT_EQ(last_result, -EFBIG);
	ASSERT(!loader_is_building(&l, WAITED_FILE));
	ASSERT(loader_is_busy(&l));
	loader_fini(&l);
}
