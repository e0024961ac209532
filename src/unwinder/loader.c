// SPDX-License-Identifier: Apache-2.0
#include "unwinder/loader.h"
#include "runtime/runtime.h"
#include "unwind/table_image.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	/* Bytes (unwind_table_cost()): about 2 ms, what a child takes. */
	SMALL_COST = 256 << 10,
	SMALL_COST_OF_OTHERS = 32 << 10, /* of owners that are not trusted */
	MEANWHILE_MS = 10,
	ARG_SIZE = 32,
	ARGS = 3,
	CHILD_TOO_BIG = 4, /* exit status */
	CHILD_CPU_S = 10,  /* the largest browsers take a fiftieth of it */
	CHILD_MEMORY = 512 << 20,
	IMAGE_SIZE_MAX = 128 << 20, /* all rows and buckets that the format can hold */
	RANGES_MAX = 1 << 20,
};

/*
 * Samples that need the table wait for it, and so do all that come behind them: for each file, and
 * of all time, so much. A browser's table takes 100 to 200 ms; hostile files may take seconds.
 */
#define PATIENCE_OF_FILE_NS 1000000000ull
#define PATIENCE_MAX_NS	    3000000000ull
#define PATIENCE_MIN_NS	    10000000ull

/* Wall time: a file server may be dead. */
#define GIVE_UP_NS 60000000000ull

void loader_job_of_runtime(struct loader_job *job, const struct runtime_dso *dso)
{
	job->follow = dso->follow;
	job->runtime = dso->ops->id;
	job->marked = dso->interpreter_functions.items;
	job->nr_marked = dso->interpreter_functions.nr;
	job->functions = dso->functions.items;
	job->nr_functions = dso->functions.nr;
}

void loader_init(struct loader *l)
{
	*l = (struct loader){ .patience = patience_new(PATIENCE_OF_FILE_NS, PATIENCE_MAX_NS,
						       now_ns()) };
	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++)
		l->background[i] = (struct loader_build){ .child = CHILD_NONE, .out_fd = -1 };
}

static void build_drop(struct loader_build *b)
{
	if (b->child.pid)
		child_end(&b->child, true, NULL);
	if (b->out_fd >= 0)
		close(b->out_fd);
	*b = (struct loader_build){ .child = CHILD_NONE, .out_fd = -1 };
}

void loader_fini(struct loader *l)
{
	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++)
		build_drop(&l->background[i]);
}

static struct loader_build *find_build(const struct loader *l, uint32_t file)
{
	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++)
		if (l->background[i].child.pid && l->background[i].file == file)
			return (struct loader_build *)&l->background[i];
	return NULL;
}

bool loader_is_building(const struct loader *l, uint32_t file)
{
	return (file && l->waited_file == file) || find_build(l, file);
}

bool loader_is_ahead(const struct loader *l, uint32_t file)
{
	const struct loader_build *b = find_build(l, file);

	return b && b->ahead;
}

bool loader_is_busy(const struct loader *l)
{
	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++)
		if (l->background[i].child.pid)
			return true;
	return false;
}

/* --- a child ---------------------------------------------------------------------------------- */

/* What is to be marked stands where the table will be, and functions to be followed behind it. */
static int write_ranges(const struct loader_job *job, int fd)
{
	size_t marked = job->nr_marked * sizeof(*job->marked);
	size_t functions = job->nr_functions * sizeof(*job->functions);

	if (marked && pwrite(fd, job->marked, marked, 0) != (ssize_t)marked)
		return -EIO;
	return functions && pwrite(fd, job->functions, functions, (off_t)marked) !=
				       (ssize_t)functions
		       ? -EIO
		       : 0;
}

static int start(const struct loader *l, const struct loader_job *job, struct loader_build *b)
{
	char follow[ARG_SIZE], runtime[ARG_SIZE], marked[ARG_SIZE];
	char *args[ARGS] = { follow, runtime, marked };
	struct child_spec spec = {
		.program = l->builder,
		.main = loader_child_main,
		.args = args,
		.nr_args = ARGS,
		.in_fd = job->elf->fd,
	};
	int r;

	snprintf(follow, sizeof(follow), "follow=%u", job->follow);
	snprintf(runtime, sizeof(runtime), "runtime=%u", job->runtime);
	snprintf(marked, sizeof(marked), "marked=%zu", job->nr_marked);
	b->out_fd = memfd_create("sonde-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (b->out_fd < 0)
		return -errno;
	b->file = job->file;
	b->owner = job->owner;
	b->runtime = job->runtime;
	b->give_up_ns = now_ns() + GIVE_UP_NS;
	spec.out_fd = b->out_fd;
	r = write_ranges(job, b->out_fd);
	if (!r)
		r = child_start(&spec, &b->child);
	if (r)
		build_drop(b);
	return r;
}

/* Has it ended (or pretends to)? Waits for that, at most so long. */
static bool has_ended(const struct loader_build *b, int wait_ms)
{
	struct pollfd p = { .fd = b->child.messages };

	return poll(&p, 1, wait_ms) > 0;
}

/* The result of a child that has ended. */
static int take(struct loader_build *b, struct unwind_table **ret)
{
	/* One that only closed its descriptors must not be waited for. */
	int status = 0, r = child_end(&b->child, true, &status);

	if (!r && WIFSIGNALED(status))
		r = WTERMSIG(status) == SIGXCPU ? -EFBIG : -ECHILD;
	else if (!r && WEXITSTATUS(status))
		r = WEXITSTATUS(status) == CHILD_TOO_BIG ? -EFBIG : -EBADMSG;
	if (!r && fcntl(b->out_fd, F_ADD_SEALS, TABLE_IMAGE_SEALS))
		r = -errno;
	if (!r)
		r = table_image_open(b->out_fd, b->runtime, ret);
	if (!r)
		b->out_fd = -1;
	build_drop(b);
	return r;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/*
 * Somebody's files may all take seconds: root's and ours have room and time that no other owner's
 * can take.
 *
 * May a child for a file of that owner go on in the background, if it takes long?
 */
static bool has_place(const struct loader *l, uint32_t owner)
{
	int nr_free = 0;

	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++) {
		nr_free += !l->background[i].child.pid;
		if (l->background[i].child.pid && l->background[i].owner == owner &&
		    !owner_is_trusted(owner))
			return false;
	}
	return nr_free > (owner_is_trusted(owner) ? 0 : 1);
}

/* True: it has ended. */
static bool wait_for(struct loader *l, const struct loader_build *b)
{
	uint64_t begin = now_ns(), waited = 0, most = patience_for(&l->patience, b->owner, begin);
	bool ended = false;

	if (!l->wait.meanwhile)
		return has_ended(b, (int)(GIVE_UP_NS / 1000000));
	if (most < PATIENCE_MIN_NS)
		return false;
	while (!ended && waited < most) {
		ended = has_ended(b, MEANWHILE_MS);
		if (!ended && !l->wait.meanwhile(l->wait.ctx))
			most = 0;
		waited = now_ns() - begin;
	}
	patience_take(&l->patience, waited);
	return ended;
}

static int go_on_in_background(struct loader *l, struct loader_build *b)
{
	uint64_t begin = now_ns();

	for (int i = 0; l->wait.meanwhile && i < LOADER_BACKGROUND_MAX; i++) {
		if (l->background[i].child.pid)
			continue;
		l->background[i] = *b;
		return -EINPROGRESS;
	}
	build_drop(b);
	/* On a busy machine what was killed takes long to end. */
	patience_take(&l->patience, now_ns() - begin);
	return l->wait.meanwhile ? -EAGAIN : -EFBIG;
}

/* A build that runs: waits for it, if there is time, or leaves it to the background. */
static int end_build(struct loader *l, struct loader_build *b, bool may_wait,
		     struct unwind_table **ret)
{
	return may_wait && wait_for(l, b) ? take(b, ret) : go_on_in_background(l, b);
}

static int build_beside(struct loader *l, const struct loader_job *job, struct unwind_table **ret)
{
	struct loader_build b = { .child = CHILD_NONE, .out_fd = -1 };
	bool may_wait = !l->wait.meanwhile || l->wait.meanwhile(l->wait.ctx);
	int r;

	/* One that would be ended soon need not begin. */
	if (l->wait.meanwhile && !has_place(l, job->owner) &&
	    (!owner_is_trusted(job->owner) || !may_wait ||
	     patience_for(&l->patience, job->owner, now_ns()) < PATIENCE_OF_FILE_NS))
		return -EAGAIN;
	r = start(l, job, &b);
	if (r)
		return r;
	return end_build(l, &b, may_wait, ret);
}

/* What loader_begin() has begun. */
static int wait_for_begun(struct loader *l, struct loader_build *begun, struct unwind_table **ret)
{
	bool may_wait = !l->wait.meanwhile || l->wait.meanwhile(l->wait.ctx);
	struct loader_build b = *begun;

	*begun = (struct loader_build){ .child = CHILD_NONE, .out_fd = -1 };
	b.ahead = false;
	return end_build(l, &b, may_wait, ret);
}

static int build_here(const struct loader_job *job, struct unwind_table **ret)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	int r = unwind_table_build(job->elf, job->follow, &table);

	if (!r)
		r = unwind_table_follow(table, job->elf, job->functions, job->nr_functions);
	if (!r)
		r = unwind_table_mark(table, job->marked, job->nr_marked, job->runtime);
	if (!r)
		*ret = TAKE_PTR(table);
	return r;
}

static bool is_small(const struct loader_job *job)
{
	uint64_t small = owner_is_trusted(job->owner) ? SMALL_COST : SMALL_COST_OF_OTHERS;

	/* An image in memory is the vDSO's. */
	return job->elf->fd < 0 || unwind_table_cost(job->elf) <= small;
}

int loader_build(struct loader *l, const struct loader_job *job, struct unwind_table **ret)
{
	struct loader_build *begun = find_build(l, job->file);
	int r;

	l->waited_file = job->file;
	if (begun && begun->ahead)
		r = wait_for_begun(l, begun, ret);
	else
		r = is_small(job) ? build_here(job, ret) : build_beside(l, job, ret);
	l->waited_file = 0;
	return r;
}

int loader_begin(struct loader *l, const struct loader_job *job)
{
	struct loader_build *place = NULL;
	int nr_free = 0, r;

	if (!owner_is_trusted(job->owner) || is_small(job))
		return -ENOTSUP;
	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++) {
		if (l->background[i].child.pid)
			continue;
		place = &l->background[i];
		nr_free++;
	}
	if (nr_free < 2)
		return -EAGAIN;
	r = start(l, job, place);
	place->ahead = !r;
	return r;
}

void loader_tick(struct loader *l,
		 void (*done)(void *ctx, uint32_t file, int result, struct unwind_table *table),
		 void *ctx)
{
	for (int i = 0; i < LOADER_BACKGROUND_MAX; i++) {
		struct loader_build *b = &l->background[i];
		struct unwind_table *table = NULL;
		uint32_t file = b->file;
		int r;

		if (!b->child.pid)
			continue;
		if (has_ended(b, 0)) {
			r = take(b, &table);
		} else if (now_ns() > b->give_up_ns) {
			build_drop(b);
			r = -EFBIG;
		} else {
			continue;
		}
		done(ctx, file, r, table);
	}
}

/* --- the child's side ------------------------------------------------------------------------- */

struct task {
	unsigned int follow, runtime;
	size_t nr_marked; /* of the ranges; the others are functions to be followed */
	struct code_range *ranges;
	size_t nr;
};

static int read_ranges(struct task *task)
{
	off_t size = lseek(CHILD_OUT_FD, 0, SEEK_END);

	if (size < 0 || size > (off_t)(RANGES_MAX * sizeof(*task->ranges)))
		return -EINVAL;
	task->ranges = malloc((size_t)size + 1);
	if (!task->ranges)
		return -ENOMEM;
	task->nr = (size_t)size / sizeof(*task->ranges);
	if (task->nr_marked > task->nr)
		return -EINVAL;
	if (pread(CHILD_OUT_FD, task->ranges, (size_t)size, 0) != size ||
	    ftruncate(CHILD_OUT_FD, 0) || lseek(CHILD_OUT_FD, 0, SEEK_SET))
		return -EIO;
	return 0;
}

static int run(struct task *task)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct loader_job job = { .follow = task->follow, .runtime = task->runtime };
	int r = read_ranges(task);

	job.marked = task->ranges;
	job.nr_marked = task->nr_marked;
	if (!r) {
		job.functions = task->ranges + task->nr_marked;
		job.nr_functions = task->nr - task->nr_marked;
		r = elf_file_open_fd(CHILD_IN_FD, &elf);
	}
	job.elf = elf;
	if (!r)
		r = build_here(&job, &table);
	return r ? r : table_image_write(CHILD_OUT_FD, table);
}

int loader_child_main(int argc, char **argv)
{
	struct task task = { 0 };
	int r;

	prctl(PR_SET_NAME, "sonde-tables");
	child_restrict(IMAGE_SIZE_MAX, CHILD_CPU_S, CHILD_MEMORY);
	child_drop_capabilities(0); /* all that it needs is open */
	for (int i = 0; i < argc; i++)
		if (sscanf(argv[i], "follow=%u", &task.follow) != 1 &&
		    sscanf(argv[i], "runtime=%u", &task.runtime) != 1)
			(void)sscanf(argv[i], "marked=%zu", &task.nr_marked);
	r = run(&task);
	free(task.ranges);
	if (!r)
		return 0;
	return r == -ENOMEM || r == -EFBIG ? CHILD_TOO_BIG : CHILD_FAILED;
}
