// SPDX-License-Identifier: Apache-2.0
/* When the agent asks a runtime again, when it gives up, and when it lets go: a runtime that
 * answers what the test tells it to, in a made-up process that maps this very file. */
#include "unwinder/runtimes.h"
#include "elf_writer.h"
#include "test.h"
#include "test_fake_runtime.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum { MS = 1000000, BASE = 0x400000, PID = 4711 };
#define SECOND (1000ull * MS)

struct bed {
	struct process_table table;
	struct process *proc;
	struct runtimes runtimes;
	struct process_runtimes *list;
	uint64_t now;
};

/* Maps the file's code there. */
static void map_file(struct bed *b, uint64_t start, uint32_t file)
{
	struct mapping m = { .start = start, .end = start + 0x1000, .file = file };

	if (file != MAPPING_ANON) {
		ASSERT(b->table.files.items[file]->segments.nr > 0);
		m.offset = b->table.files.items[file]->segments.items[0].offset;
	}
	ASSERT_EQ(process_add_mapping(&b->table, b->proc, &m), 0);
}

/* That maps what is open at `fd`. */
static void begin_with(struct bed *b, int fd, int answer)
{
	uint32_t file = 0;

	log_set_level(LOG_LEVEL_ERROR);
	memset(&fake, 0, sizeof(fake));
	fake.attach = answer;
	*b = (struct bed){ .now = 1000 * SECOND };
	ASSERT_EQ(process_table_init(&b->table), 0);
	ASSERT_EQ(process_add(&b->table, PID, &b->proc), 0);
	b->proc->exited = false;
	ASSERT_EQ(process_add_file(&b->table, "/fake", fd, &file), 0);
	map_file(b, BASE, file);
	runtimes_init(&b->runtimes, &b->table);
}

static void begin(struct bed *b, int answer)
{
	begin_with(b, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), answer);
}

static void end(struct bed *b)
{
	process_runtimes_free(b->list);
	runtimes_fini(&b->runtimes);
	process_table_fini(&b->table);
	ASSERT_EQ(fake.nr_freed, fake.nr_probes);
}

static void update(struct bed *b)
{
	runtimes_update(&b->runtimes, b->proc, &b->list, b->now);
}

/* Goes to when there is something to do; how long that took, 0: never. */
static uint64_t until_due(struct bed *b)
{
	uint64_t due = runtimes_due(b->list), waited;

	if (due == UINT64_MAX)
		return 0;
	waited = due - b->now;
	b->now = due;
	return waited;
}

TEST(off)
{
	struct bed b;

	begin(&b, 0);
	b.runtimes.options.off = 1u << fake_runtime.id;
	update(&b);
	ASSERT_EQ(fake.nr_probes, 0);
	ASSERT(!b.list && !runtimes_any(&b.runtimes, b.proc));
	end(&b);
}

TEST(asks_again)
{
	struct bed b;
	uint64_t pause, last = 0;

	begin(&b, -EAGAIN);
	update(&b);
	ASSERT_EQ(fake.nr_attaches, 1);
	ASSERT_EQ(b.list->nr, 1);
	update(&b);
	ASSERT_EQ(fake.nr_attaches, 1); /* it is not due */
	for (int i = 0; i < 40; i++) {
		pause = until_due(&b);
		ck_assert_msg(pause >= last && pause > 0 && pause <= SECOND, "pause %d: %lu", i,
			      (unsigned long)pause);
		last = pause;
		update(&b);
	}
	/* It may take minutes to begin: never given up. */
	ASSERT_EQ(fake.nr_attaches, 41);
	ASSERT_EQ(last, SECOND);
	ck_assert_msg(!runtimes_find(b.list, 2) && !b.list->unshown, "not attached");

	fake.attach = 0;
	fake.first_word = 77;
	until_due(&b);
	update(&b);
	ck_assert_msg(runtimes_find(b.list, 2) && b.list->unshown, "attached");
	ASSERT_EQ(b.list->items[0]->record[0], 77);
	ASSERT_EQ(fake.nr_probes, 1);
	end(&b);
	ASSERT_EQ(fake.nr_detaches, 1);
}

TEST(gives_up)
{
	struct bed b;
	uint64_t began;

	begin(&b, -EBADMSG);
	began = b.now;
	do
		update(&b);
	while (until_due(&b));
	/* Three seconds of nonsense are not a beginning. */
	ck_assert_msg(b.now - began >= 3 * SECOND && b.now - began <= 5 * SECOND, "after %lu ms",
		      (unsigned long)((b.now - began) / MS));
	ck_assert_msg(!b.list->unshown, "nothing to show");
	end(&b);

	/* What made sense in between, begins anew. */
	begin(&b, -EBADMSG);
	while (b.now < 1002 * SECOND) {
		update(&b);
		ck_assert_msg(until_due(&b) > 0, "not given up");
	}
	fake.attach = -EAGAIN;
	update(&b);
	began = b.now;
	fake.attach = -EBADMSG;
	while (until_due(&b))
		update(&b);
	ck_assert_msg(b.now - began >= 3 * SECOND, "after %lu ms",
		      (unsigned long)((b.now - began) / MS));
	end(&b);

	begin(&b, -ENOTSUP);
	update(&b);
	ASSERT_EQ(until_due(&b), 0);
	ASSERT_EQ(runtimes_missed(b.list), UINT64_MAX); /* a walk that misses it changes nothing */
	end(&b);
}

static int read_core(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	(void)addr;
	memset(to, 0, size);
	return 0;
}

/* Looked at again and again, it is one file; another process may find out what it is. */
static void check_unknown(int probe, int attach, bool unknown, uint64_t nr)
{
	struct bed b;

	begin(&b, attach);
	fake.probe = probe;
	fake.unknown = unknown;
	for (int i = 0; i < 3; i++) {
		update(&b);
		runtimes_want_refresh(b.list);
		b.now += SECOND;
	}
	ASSERT_EQ(b.runtimes.nr_unknown[fake_runtime.id], nr);
	ASSERT_EQ(runtimes_any(&b.runtimes, b.proc), !probe || probe == -ENOTSUP);
	process_runtimes_free(b.list);
	b.list = NULL;
	update(&b);
	ASSERT_EQ(b.runtimes.nr_unknown[fake_runtime.id], nr);
	/* It is no news, either, when nobody has mapped it for a while. */
	process_runtimes_free(b.list);
	b.list = NULL;
	runtimes_forget_file(&b.runtimes, b.proc->mappings.items[0].file);
	update(&b);
	ASSERT_EQ(b.runtimes.nr_unknown[fake_runtime.id], nr);
	if (probe)
		fake.nr_probes = 0; /* nothing is to be freed */
	end(&b);
}

TEST(files_of_unknown_versions_are_counted_once)
{
	check_unknown(0, 0, false, 0);
	check_unknown(-ENOENT, 0, false, 0);
	check_unknown(-ENOMEM, 0, false, 0);
	check_unknown(-ENOTSUP, 0, false, 1);
	check_unknown(0, 0, true, 1);
	check_unknown(0, -ENOTSUP, false, 1);
	check_unknown(0, -ENOTSUP, true, 1);
	check_unknown(0, -EAGAIN, false, 0);
}

static void tell(void *ctx, const struct mapped_file *file, const struct runtime_ops *ops,
		 const struct runtime_about *about)
{
	char *text = ctx;

	ASSERT_STR(file->path, "/fake");
	ASSERT_EQ(ops, &fake_runtime);
	snprintf(text + strlen(text), 64 - strlen(text), "%s", about->version);
}

/* Once a file, of whoever finds it out: that of another version is another. */
TEST(what_is_unknown_is_told_once)
{
	char text[64] = ""; /* tell() */
	struct bed b;

	begin(&b, -ENOTSUP);
	fake.version = 3;
	b.runtimes.tell = tell;
	b.runtimes.tell_ctx = text;
	for (int i = 0; i < 3; i++) {
		update(&b);
		process_runtimes_free(b.list);
		b.list = NULL;
	}
	ASSERT_STR(text, "Fake 3");
	end(&b);
}

TEST(core)
{
	struct bed b;

	begin(&b, -EBADMSG);
	b.runtimes.memory.read = read_core;
	b.proc->exited = true; /* as all that is in a core */
	update(&b);
	ASSERT_EQ(fake.nr_attaches, 1);
	ASSERT_EQ(until_due(&b), 0); /* it will not change */
	end(&b);
}

TEST(exited)
{
	struct bed b;

	begin(&b, -EAGAIN);
	b.proc->exited = true;
	update(&b);
	ASSERT_EQ(fake.nr_attaches, 0);
	ASSERT_EQ(until_due(&b), 0);
	end(&b);
}

TEST(missed)
{
	struct bed b;

	begin(&b, -EAGAIN);
	for (int i = 0; i < 20; i++) {
		update(&b);
		until_due(&b);
	}
	update(&b);
	/* A walk has met it: it has begun, then. */
	b.now += 10 * MS;
	ck_assert_msg(runtimes_missed(b.list) <= b.now, "asked again at once");
	fake.attach = 0;
	update(&b);
	ck_assert_msg(runtimes_find(b.list, 2) != NULL, "attached");

	/* What every new stack says is not looked at for every new stack. */
	ck_assert_msg(runtimes_missed(b.list) > b.now && runtimes_missed(b.list) < b.now + SECOND,
		      "a pause");
	fake.refresh = 1;
	fake.first_word = 78;
	b.list->unshown = false;
	until_due(&b);
	update(&b);
	ASSERT_EQ(fake.nr_refreshes, 1);
	ck_assert_msg(b.list->unshown, "to be shown");
	ASSERT_EQ(b.list->items[0]->record[0], 78);
	/* Nobody samples it: it is not looked at. */
	for (int i = 0; i < 10; i++) {
		until_due(&b);
		update(&b);
	}
	ASSERT_EQ(fake.nr_refreshes, 1);
	end(&b);
}

/* Asks until the pause is a long one; how often. */
static int looks_until_rest(struct bed *b)
{
	int nr = fake.nr_refreshes;

	while (until_due(b) < SECOND) {
		b->list->used = true;
		update(b);
	}
	return fake.nr_refreshes - nr;
}

TEST(mapped_before_written_down)
{
	struct bed b;
	int nr;

	begin(&b, 0);
	update(&b);
	nr = looks_until_rest(&b);
	ck_assert_msg(nr > 3 && nr < 20, "%d looks after it was attached", nr);
	runtimes_want_refresh(b.list);
	update(&b);
	ck_assert_msg(until_due(&b) < 10 * MS, "soon again");
	nr = looks_until_rest(&b);
	ck_assert_msg(nr > 3 && nr < 20, "%d looks after it mapped something", nr);
	end(&b);
}

TEST(refresh_fails)
{
	struct bed b;

	begin(&b, 0);
	fake.first_word = 5;
	update(&b);
	b.list->unshown = false;
	fake.refresh = -ESRCH;
	runtimes_want_refresh(b.list);
	update(&b);
	ASSERT_EQ(fake.nr_refreshes, 1);
	ck_assert_msg(!b.list->unshown && b.list->items[0]->record[0] == 5, "it keeps what it had");
	end(&b);
}

TEST(unmapped)
{
	struct bed b;

	begin(&b, 0);
	update(&b);
	b.list->unshown = false;
	map_file(&b, BASE, MAPPING_ANON); /* as after dlclose() */
	update(&b);
	ASSERT_EQ(b.list->nr, 0);
	ASSERT_EQ(fake.nr_detaches, 1);
	ck_assert_msg(b.list->unshown, "the walkers must hear of it");
	end(&b);
}

/* dlmopen() maps a file twice. */
TEST(twice)
{
	struct bed b;
	uint32_t file;

	begin(&b, 0);
	file = b.proc->mappings.items[0].file;
	update(&b);
	fake.first_word = 1;
	map_file(&b, BASE + 0x100000, file);
	update(&b);
	ASSERT_EQ(b.list->nr, 2);
	ASSERT_EQ(fake.nr_probes, 1);
	ck_assert_msg(b.list->items[0]->target.bias != b.list->items[1]->target.bias,
		      "each has its own");
	for (uint32_t i = 0; i < 2; i++)
		ASSERT_EQ(b.list->items[i]->target.data_bias, b.list->items[i]->target.bias);
	end(&b);
	ASSERT_EQ(fake.nr_detaches, 2);
}

/* V8 has a copy of its builtins, whose data are where the others are: it comes behind or before. */
TEST(copy_of_code)
{
	static const uint64_t at[] = { BASE + 0x100000, BASE - 0x100000 };

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		const struct runtime_target *copy;
		struct mapping m = { .start = at[i], .end = at[i] + 0x1000 };
		struct bed b;

		begin(&b, 0);
		m.file = b.proc->mappings.items[0].file;
		m.offset = b.proc->mappings.items[0].offset + 0x10;
		ASSERT_EQ(process_add_mapping(&b.table, b.proc, &m), 0);
		update(&b);
		ASSERT_EQ(b.list->nr, 2);
		copy = &b.list->items[i ? 0 : 1]->target;
		ASSERT_EQ(copy->bias + 0x10 - copy->data_bias, at[i] - BASE);
		ASSERT_EQ(b.list->items[i]->target.data_bias, b.list->items[!i]->target.data_bias);
		end(&b);
	}
}

/* Adds a file of that owner's, which the process maps; is it a runtime? */
static bool is_runtime(struct bed *b, uint32_t owner)
{
	static uint64_t at = BASE;
	uint32_t file = 0;

	ASSERT_EQ(process_add_file(&b->table, "/fake", open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
				   &file),
		  0);
	b->table.files.items[file]->owner = owner;
	map_file(b, at += 0x100000, file);
	ASSERT(runtimes_look_at(&b->runtimes, file));
	return runtimes_dso(&b->runtimes, file);
}

/* What is kept of files, whose lists may be long: nobody's take all memory, nor all of the budget.
 */
TEST(who_has_many_files_that_tell_much)
{
	enum { GREEDY = 4711, OTHER };
	struct bed b;
	int nr = 0;

	begin(&b, 0);
	b.runtimes.file_time.part = 1;
	fake.nr_hidden = 1 << 17;
	for (; nr < 100; nr++) {
		b.runtimes.file_time.used_ns = 0;
		map_clear(&b.runtimes.file_time.used_each);
		if (!is_runtime(&b, GREEDY))
			break;
	}
	ck_assert_msg(nr > 1 && nr < 8, "%d files of 2 MB", nr);
	ASSERT(is_runtime(&b, OTHER));
	ASSERT(is_runtime(&b, 0));
	/* Those that go make room. */
	for (uint32_t i = 0; i < b.runtimes.dsos.nr; i++)
		runtimes_forget_file(&b.runtimes, i);
	ASSERT(is_runtime(&b, GREEDY));
	end(&b);
}

/* A file of so many segments, and sections; how often it was offered to runtimes. */
static int probes_of(unsigned int segments, unsigned int sections)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       0x1000, NULL, 0x1000);
	_cleanup_free_ void *image = NULL;
	struct bed b;
	size_t size;

	for (unsigned int i = 0; i < segments; i++)
		elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	for (unsigned int i = 3; i < sections; i++) /* none, .text, .shstrtab */
		elf_writer_section(w, "", SHT_PROGBITS, 0, 0, "", 1);
	image = elf_writer_finish(w, &size);
	begin_with(&b, elf_image_fd(image, size), 0);
	update(&b);
	end(&b);
	return fake.nr_probes;
}

/* Everything that is looked for in a file goes through them. */
TEST(what_has_more_headers_than_real_files_is_not_looked_at)
{
	ASSERT_EQ(probes_of(1, 3), 1);
	ASSERT_EQ(probes_of(128, 4096), 1);
	ASSERT_EQ(probes_of(129, 3), 0);
	ASSERT_EQ(probes_of(1, 4097), 0);
}

/* Who maps thousands of files that cost much does not keep the recorder from others. */
TEST(files_of_who_has_had_his_share_are_put_off)
{
	struct mapped_file *file;
	struct bed b;

	begin(&b, 0);
	b.runtimes.file_time.part = 2;
	b.runtimes.file_time.used_ns = now_ns() + 3600 * SECOND;
	file = b.table.files.items[b.proc->mappings.items[0].file];
	file->owner = 4711;
	for (int i = 0; i < 3; i++) {
		update(&b);
		ASSERT_EQ(fake.nr_probes, 0);
		ASSERT(!runtimes_any(&b.runtimes, b.proc) &&
		       !runtimes_look_at(&b.runtimes, file->index));
		ASSERT(until_due(&b) > 0);
	}
	b.runtimes.file_time.used_ns = 0;
	update(&b);
	ASSERT_EQ(fake.nr_probes, 1);
	ASSERT_EQ(fake.memory_max, 48 << 20);
	ASSERT_EQ(b.list->nr, 1);
	ASSERT(runtimes_look_at(&b.runtimes, file->index) && b.list->unshown);
	/* Nothing more but to look at what is attached. */
	ASSERT_EQ(b.list->look_ns, 0);
	end(&b);

	/* Root's are looked at in any case. */
	begin(&b, 0);
	b.runtimes.file_time.part = 2;
	b.runtimes.file_time.used_ns = now_ns() + 3600 * SECOND;
	b.table.files.items[b.proc->mappings.items[0].file]->owner = 0;
	update(&b);
	ASSERT_EQ(fake.nr_probes, 1);
	ASSERT_EQ(fake.memory_max, 0);
	end(&b);
}
