// SPDX-License-Identifier: Apache-2.0
/*
 * The walker's frames of each Python on this machine, against what the frames say of themselves
 * (python/chains.py): the very code objects, in order, and the instructions that callers are at.
 * The host's build of the walker, over the memory of a process that is stopped.
 */
#include "snapshot/live_walk.h"
#include "snapshot/thread_stop.h"
#include "runtime/python/python_abi.h"
#include "runtime/python/test_pythons.h"

#include "test.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

enum { FRAMES_MAX = 1024, STOP_TRIES = 60000 };

struct said {
	uint64_t code;
	uint32_t lasti;
	bool exact; /* it is still at that instruction */
	char function[80];
};

struct python {
	const char *path;
	pid_t pid;
	FILE *out;
	int in;
	char name[64]; /* of the case */
	int32_t tid;
	struct said said[FRAMES_MAX];
	size_t nr;
};

static void start(struct python *p, const char *path, const char *option)
{
	char file[PATH_MAX];
	int to[2], from[2];

	*p = (struct python){ .path = path };
	snprintf(file, sizeof(file), "%s/tests/runtimes/python/chains.py", test_source_root());
	ASSERT_OK(pipe2(to, O_CLOEXEC));
	ASSERT_OK(pipe2(from, O_CLOEXEC));
	p->pid = fork();
	ASSERT_OK(p->pid);
	if (!p->pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl(path, path, "-B", "-X", option, file, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->in = to[1];
	p->out = fdopen(from[0], "r");
	ASSERT(p->out);
}

/* The next case; false: there are no more. */
static bool hear(struct python *p)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	p->nr = 0;
	while (getline(&line, &room, p->out) > 0) {
		struct said *s = &p->said[p->nr];
		unsigned long long code;

		if (sscanf(line, "case %63s %d", p->name, &p->tid) == 2)
			continue;
		if (!strcmp(line, "end\n"))
			return true;
		ASSERT(p->nr < FRAMES_MAX);
		ASSERT_EQ(sscanf(line, "frame %llx %u %79s", &code, &s->lasti, s->function), 3);
		s->code = code;
		/* Those that asked have gone on since. */
		s->exact = p->nr && strcmp(s->function, "interpreters") != 0;
		p->nr++;
	}
	return false;
}

struct stopped {
	struct live_walker *walker;
	int32_t tid;
	enum stop_reason how;
};

static void walk_it(void *ctx, const struct caught_thread *caught)
{
	struct stopped *s = ctx;

	s->how = live_walker_stopped(s->walker, s->tid, caught);
}

/* It is in read(), or about to be: waits for that, walks it there, and lets it go on. */
static enum stop_reason walk(struct python *p, struct live_walker *w)
{
	struct stopped s = { .walker = w, .tid = p->tid };
	struct caught_thread caught = { 0 };
	int r = -EAGAIN;

	live_walker_new_round(w);
	ASSERT_OK(thread_stop_begin(p->tid));
	for (int i = 0; i < STOP_TRIES && r == -EAGAIN; i++) {
		r = thread_stop_finish(p->tid, &caught, walk_it, &s);
		if (r == -EAGAIN)
			poll(NULL, 0, 5);
	}
	ASSERT_OK(r);
	free(caught.stack);
	return s.how;
}

static void check_case(struct python *p, struct live_walker *w)
{
	enum stop_reason how = walk(p, w);
	const struct walk *walk = w->walk;
	size_t n = 0;

	for (uint32_t i = 0; i < walk->full.nr_words; i += 1 + FRAME_EXTRA(walk->words[i])) {
		uint64_t word = walk->words[i];
		const struct said *s = &p->said[n];

		if (FRAME_RUNTIME(word) != RUNTIME_PYTHON)
			continue;
		if (!FRAME_EXTRA(word))
			FAIL("%s, %s: note %llu behind %zu frames", p->path, p->name,
			     (unsigned long long)FRAME_DATA(word), n);
		if (n >= p->nr || s->code != FRAME_DATA(word) ||
		    (s->exact && PYTHON_LASTI(walk->words[i + 1]) != s->lasti))
			FAIL("%s, %s: frame %zu of %zu is %llx+%u, not %s, %llx+%u", p->path,
			     p->name, n, p->nr, (unsigned long long)FRAME_DATA(word),
			     PYTHON_LASTI(walk->words[i + 1]), s->function,
			     (unsigned long long)s->code, s->lasti);
		n++;
	}
	if (how != STOP_COMPLETE || n != p->nr)
		FAIL("%s, %s: %zu frames of %zu, stopped by %d", p->path, p->name, n, p->nr, how);
}

static void check_python(const char *path, const char *option)
{
	const struct symbolizer_options symbolizer = { 0 };
	struct live_walker w;
	struct profile profile;
	struct python p;
	unsigned int nr = 0;

	start(&p, path, option);
	ASSERT(hear(&p));
	ASSERT_OK(profile_init(&profile));
	ASSERT_OK(live_walker_init(&w, p.pid, SAMPLE_FRAMES_DEFAULT, &profile, &symbolizer, NULL));
	do {
		check_case(&p, &w);
		ASSERT_EQ(write(p.in, "\n", 1), 1);
		nr++;
	} while (hear(&p));
	ASSERT(nr >= 9);
	live_walker_fini(&w);
	profile_fini(&profile);
	fclose(p.out);
	close(p.in);
	waitpid(p.pid, NULL, 0);
}

static void plain(const char *path, unsigned int minor)
{
	(void)minor;
	check_python(path, "plain");
}

static void with_perf(const char *path, unsigned int minor)
{
	if (minor >= 12)
		check_python(path, "perf");
}

TEST(the_frames_are_those_that_there_are)
{
	ASSERT(test_pythons(plain));
}

TEST(copies_of_trampolines_are_no_frames)
{
	ASSERT(test_pythons(with_perf));
}
