// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_store_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
	/* Another process's work: how often we look, and how long we wait if we are waited for. */
	FOREIGN_MS = 50,
	FOREIGN_PATIENCE_MS = 1000,
	/* A child whose priority can't be raised begins again, if it has not done much. */
	RESTART_MS = 2000,
	CLEAN_MS = 600000, /* between two looks at a cache that has room: others fill it, too */
	/* What the builder said, and something around that. */
	COMPLAINTS_OF_TABLE_MAX = DEBUG_COMPLAINTS_MAX + 4,
};

/* --- what children say ------------------------------------------------------------------------ */

static void end_message(struct symbol_store *s, struct build *build)
{
	store_complain_of(s, build->text, build->len);
	build->len = 0;
}

/* Takes in what a child wrote; false: it has ended. */
static bool read_messages(struct symbol_store *s, struct build *build)
{
	char buf[512];

	for (;;) {
		ssize_t n = read(build->child.messages, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		if (!n)
			return false;
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n')
				end_message(s, build);
			else if (build->len < SYMBOL_MESSAGE_MAX - 1)
				build->text[build->len++] = buf[i];
		}
	}
}

/* --- builds and entries ----------------------------------------------------------------------- */

bool build_is_running(const struct build *build)
{
	return build && build->state == BUILD_RUNNING;
}

static struct build *build_new(void)
{
	struct build *build = calloc(1, sizeof(*build));

	if (build)
		*build = (struct build){ .out_fd = -1, .child = CHILD_NONE };
	return build;
}

/* Gives back the output, and the right to write it. */
static void drop_output(struct symbol_store *s, struct entry *e, struct build *build)
{
	if (build->claimed)
		symbol_cache_abandon(s->cache, e->key, build->out_fd);
	if (build->out_fd >= 0)
		close(build->out_fd);
	build->out_fd = -1;
	build->claimed = false;
}

static void stop_child(struct symbol_store *s, struct build *build)
{
	if (build->state == BUILD_RUNNING)
		s->nr_children--;
	child_end(&build->child, true, NULL);
}

static void build_free(struct symbol_store *s, struct entry *e, struct build *build)
{
	if (!build)
		return;
	if (build->state == BUILD_RUNNING && build->stays) {
		/* The claim is the child's alone from now on. */
		s->nr_children--;
		child_leave(&build->child);
		close(build->out_fd);
	} else {
		if (build->state == BUILD_RUNNING)
			stop_child(s, build);
		if (build->state != BUILD_DONE)
			drop_output(s, e, build);
		else if (build->out_fd >= 0)
			close(build->out_fd);
	}
	free(build);
}

void entry_release(struct symbol_store *s, struct entry *e)
{
	build_free(s, e, e->full);
	build_free(s, e, e->quick);
	e->full = e->quick = NULL;
	store_close_file(s, e);
	if (e->has_root)
		store_release_root(s, e->root);
	e->has_root = false;
	free(e->path);
	e->path = NULL;
}

/* Nothing more can come of this file. */
static void settle(struct symbol_store *s, struct entry *e)
{
	char text[SYMBOL_MESSAGE_MAX];

	if (e->state == SYMBOL_STATE_BUILDING) {
		e->state = SYMBOL_STATE_FAILED;
		snprintf(text, sizeof(text), "%s: its symbols could not be read", e->path);
		store_complain(s, text);
	}
	entry_release(s, e);
}

void entry_want_full(struct symbol_store *s, struct entry *e)
{
	e->full = build_new();
	if (!e->full)
		settle(s, e);
}

void entry_want_quick(struct symbol_store *s, struct entry *e)
{
	if (e->quick)
		return;
	e->quick = build_new();
	if (!e->quick)
		settle(s, e);
}

void entry_set_table(struct entry *e, struct symbol_table *table)
{
	struct symbol_table_info info;

	/* Callers know functions by their numbers in the table that they have seen. */
	if (e->table) {
		symbol_table_free(table);
		return;
	}
	symbol_table_info(table, &info);
	e->table = table;
	e->state = info.nr_functions ? SYMBOL_STATE_READY : SYMBOL_STATE_NONE;
}

void entry_take_cached(struct symbol_store *s, struct entry *e, struct symbol_table *table)
{
	const char *line = symbol_table_complaints(table);
	struct symbol_table_info info;
	char text[SYMBOL_MESSAGE_MAX];

	symbol_table_info(table, &info);
	if (info.is_partial && !*line) {
		snprintf(text, sizeof(text),
			 "%s: reading its debug information failed; symbols only", e->path);
		store_complain(s, text);
	}
	for (int i = 0; *line && i < COMPLAINTS_OF_TABLE_MAX; i++) {
		size_t len = strcspn(line, "\n");

		store_complain_of(s, line, len);
		line += len + (line[len] == '\n');
	}
	entry_set_table(e, table);
}

/* --- starting --------------------------------------------------------------------------------- */

/*
 * The cache's place for the result. 0: claimed; 1: no need, the table was there; -EAGAIN: another
 * process is at it; else what failed.
 */
static int claim(struct symbol_store *s, struct entry *e, struct build *build)
{
	struct symbol_table *table;
	int r = symbol_cache_get(s->cache, e->key, e->fingerprint, &table);

	if (r) {
		r = symbol_cache_claim(s->cache, e->key, &build->out_fd);
		if (r)
			return r;
		build->claimed = true;
		/* Its last owner may have finished between our two looks. */
		if (symbol_cache_get(s->cache, e->key, e->fingerprint, &table))
			return 0;
	}
	drop_output(s, e, build);
	entry_take_cached(s, e, table);
	return 1;
}

/* Is it one that other commands should have, too? */
static bool is_for_cache(const struct symbol_store *s, const struct entry *e,
			 const struct build *build)
{
	bool impatient = build->state == BUILD_FOREIGN && s->hurry &&
			 now_ms() - build->since >= FOREIGN_PATIENCE_MS;

	return e->lasts && s->cache >= 0 && !s->cache_failed && !impatient &&
	       (build == e->full || e->hopeless);
}

/* 0: there is somewhere to write to. 1: no need. -EAGAIN: wait for another process. */
static int find_output(struct symbol_store *s, struct entry *e, struct build *build)
{
	int r;

	if (is_for_cache(s, e, build)) {
		r = claim(s, e, build);
		if (r >= 0 || r == -EAGAIN || r == -EMFILE || r == -ENFILE || r == -ENOMEM)
			return r;
		drop_output(s, e, build);
		store_cache_failed(s, r);
	}
	build->out_fd = memfd_create("sonde-symbols", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return build->out_fd < 0 ? -errno : 0;
}

/*
 * The cache is looked through when the room that the last look left is used up, and now and then: a
 * machine that builds programs has thousands of tables there, and each new one would cost a look at
 * all of them.
 */
static uint64_t room_for_next(struct symbol_store *s)
{
	uint64_t now = now_ms();

	if (now - s->cache_cleaned < CLEAN_MS)
		return s->cache_room;
	s->cache_cleaned = now;
	return 0;
}

static void use_room(struct symbol_store *s, const struct build *build)
{
	struct stat st;
	uint64_t size = fstat(build->out_fd, &st) ? 0 : symbol_cache_bytes(&st);

	if (size > build->room)
		s->cache_room = symbol_cache_room(s->options.cache_size);
	else
		s->cache_room -= size < s->cache_room ? size : s->cache_room;
}

static int start(struct symbol_store *s, struct entry *e, struct build *build)
{
	struct debug_search search;
	struct symbol_child_spec spec = {
		.builder = s->options.builder,
		.elf_fd = e->elf_fd,
		.path = e->path,
		.owner = e->owner,
		.memory = s->options.builder_memory,
		.no_debug_info = build == e->quick,
		.idle = !s->hurry,
		.cache_dir = -1,
		.key = e->key,
	};
	int r = find_output(s, e, build);

	if (r)
		return r;
	spec.out_fd = build->out_fd;
	store_search(s, e, spec.roots, &search);
	spec.nr_roots = (uint32_t)search.nr_roots;
	spec.nr_others_roots = (uint32_t)search.nr_others_roots;
	if (build->claimed) {
		spec.cache_dir = s->cache;
		spec.cache_size = s->options.cache_size;
		spec.cache_room = build->room = room_for_next(s);
	}
	r = symbol_child_start(&spec, &build->child);
	if (r) {
		drop_output(s, e, build);
		return r;
	}
	build->state = BUILD_RUNNING;
	build->since = now_ms();
	s->nr_children++;
	return 0;
}

static void build_failed(struct symbol_store *s, struct entry *e, struct build *build)
{
	char text[SYMBOL_MESSAGE_MAX];

	drop_output(s, e, build);
	build->state = BUILD_DONE;
	if (build == e->full && !e->table && !e->quick) {
		snprintf(text, sizeof(text), "%s: %s; symbols only", e->path,
			 build->was_killed && !e->hopeless
				 ? "who read its debug information was killed"
				 : "reading its debug information failed");
		store_complain(s, text);
		entry_want_quick(s, e);
	} else if ((!e->full || e->full->state == BUILD_DONE) &&
		   (!e->quick || e->quick->state == BUILD_DONE)) {
		settle(s, e);
	}
}

void build_start_queued(struct symbol_store *s, struct entry *e, struct build *build)
{
	int r;

	if (!build || (build->state != BUILD_QUEUED && build->state != BUILD_FOREIGN) ||
	    s->nr_children >= s->max_children)
		return;
	if (build->state == BUILD_FOREIGN && now_ms() < build->look_at)
		return;
	r = start(s, e, build);
	if (r == -EAGAIN) {
		if (build->state != BUILD_FOREIGN)
			build->since = now_ms();
		build->state = BUILD_FOREIGN;
		build->look_at = now_ms() + FOREIGN_MS;
	} else if (r > 0) {
		settle(s, e);
	} else if (r && !s->nr_children) {
		/* While others run, it may be their processes and descriptors that are too many. */
		build_failed(s, e, build);
	}
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Did the file do that to its reader, or somebody else? */
static bool is_the_files_fault(int status)
{
	if (!WIFSIGNALED(status))
		return false;
	switch (WTERMSIG(status)) {
	case SIGSEGV:
	case SIGBUS:
	case SIGABRT:
	case SIGFPE:
	case SIGILL:
	case SIGXCPU:
		return true;
	default:
		return false;
	}
}

static void take_failure(struct symbol_store *s, struct entry *e, struct build *build, int status)
{
	if (build->claimed && WIFEXITED(status) && WEXITSTATUS(status) == SYMBOL_CHILD_NO_SPACE) {
		drop_output(s, e, build);
		store_cache_failed(s, -ENOSPC);
		build->state = BUILD_QUEUED;
		return;
	}
	/* Somebody kills processes: the next one may get through. */
	if (WIFSIGNALED(status) && !is_the_files_fault(status) && !build->was_killed) {
		drop_output(s, e, build);
		build->was_killed = true;
		build->state = BUILD_QUEUED;
		return;
	}
	if (build == e->full)
		e->hopeless = is_the_files_fault(status);
	build_failed(s, e, build);
}

static void finish(struct symbol_store *s, struct entry *e, struct build *build)
{
	struct symbol_table *table;
	int status = 0, r;

	s->nr_children--;
	end_message(s, build);
	r = child_end(&build->child, false, &status);
	build->state = BUILD_DONE;
	if (r != -ECHILD && (!WIFEXITED(status) || WEXITSTATUS(status) != SYMBOL_CHILD_OK)) {
		take_failure(s, e, build, status);
		return;
	}
	if (build->claimed)
		use_room(s, build);
	else
		fcntl(build->out_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	r = build->claimed || e->table ? 0 : store_hold(s, e, build->out_fd);
	if (!r)
		r = symbol_table_open_fd(build->out_fd, &table);
	if (r) {
		build_failed(s, e, build);
		return;
	}
	entry_set_table(e, table);
	/* What else is in work is of use only to others. */
	if (build == e->full || !build_is_running(e->full) || !e->full->claimed)
		settle(s, e);
}

void build_look_after(struct symbol_store *s, struct entry *e, struct build *build)
{
	if (build_is_running(build) && !read_messages(s, build))
		finish(s, e, build);
}

void build_set_idle(struct symbol_store *s, struct entry *e, struct build *build, bool idle)
{
	int r;

	if (!build_is_running(build))
		return;
	r = child_set_idle(&build->child, idle);
	if (!r || idle || now_ms() - build->since > RESTART_MS)
		return;
	stop_child(s, build);
	drop_output(s, e, build);
	build->state = BUILD_QUEUED;
}
