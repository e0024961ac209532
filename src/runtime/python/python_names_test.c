// SPDX-License-Identifier: Apache-2.0
/*
 * Names of the code objects of each Python on this machine: of all kinds of text, and of code that
 * is freed and made anew at the same address.
 */
#include "runtime/python/python_names.h"
#include "runtime/python/python_offsets.h"

#include "runtime/python/test_pythons.h"

#include "test.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { CHURN = 400 };

struct python {
	const char *path;
	pid_t pid;
	FILE *in, *out;
	char *line; /* the last one that it said */
	size_t room;
	struct runtime_keeper keeper;
	struct runtime_target target;
	struct python_record record;
	struct python_layout layout;
	struct python_names *names;
};

static int read_process(void *ctx, uint64_t addr, void *to, size_t size)
{
	const struct python *p = ctx;
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv(p->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

static char *hear(struct python *p)
{
	ASSERT(getline(&p->line, &p->room, p->out) > 0);
	p->line[strcspn(p->line, "\n")] = '\0';
	return p->line;
}

static void start(struct python *p, const char *path, const char *script)
{
	char file[PATH_MAX];
	int to[2], from[2];

	*p = (struct python){ .path = path };
	snprintf(file, sizeof(file), "%s/tests/runtimes/python/%s", test_source_root(), script);
	ASSERT_OK(pipe2(to, O_CLOEXEC));
	ASSERT_OK(pipe2(from, O_CLOEXEC));
	p->pid = fork();
	ASSERT_OK(p->pid);
	if (!p->pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl(path, path, file, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->in = fdopen(to[1], "w");
	p->out = fdopen(from[0], "r");
	ASSERT(p->in && p->out);
	p->target = (struct runtime_target){ .pid = p->pid,
					     .memory = { .read = read_process, .ctx = p },
					     .keeper = &p->keeper };
}

static void stop(struct python *p)
{
	python_names_free(p->names);
	fclose(p->in);
	fclose(p->out);
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	free(p->line);
}

/* The offsets, as attach() would find them. */
static void attach(struct python *p, unsigned int minor)
{
	unsigned long long runtime, type;
	size_t size;

	ASSERT_EQ(sscanf(hear(p), "runtime %llx %zx", &runtime, &size), 2);
	ASSERT_EQ(sscanf(hear(p), "type %llx", &type), 1);
	if (minor >= 13) {
		_cleanup_free_ void *offsets = malloc(PYTHON_DEBUG_OFFSETS_SIZE);

		ASSERT_OK(read_process(p, runtime, offsets, PYTHON_DEBUG_OFFSETS_SIZE));
		ASSERT_OK(python_offsets_parse(offsets, PYTHON_DEBUG_OFFSETS_SIZE, &p->record,
					       &p->layout));
	} else {
		ASSERT_OK(python_offsets_of(minor, &p->record, &p->layout));
	}
	p->record.code_type = type;
	ASSERT_EQ(p->layout.minor, minor);
	ASSERT_OK(python_names_new(&p->target, &p->record, &p->layout, &p->names));
}

struct answer {
	char name[PYTHON_NAME_MAX + 1], source[PYTHON_NAME_MAX + 1];
	uint32_t start_line, line;
	unsigned int nr;
};

static int take_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct answer *a = ctx;

	a->nr++;
	snprintf(a->name, sizeof(a->name), "%s",
		 inline_frame->name ? inline_frame->name : "(none)");
	snprintf(a->source, sizeof(a->source), "%s",
		 inline_frame->source ? inline_frame->source : "(none)");
	a->start_line = inline_frame->start_line;
	a->line = inline_frame->line;
	return 0;
}

static int name_it(struct python_names *n, const uint64_t *words, struct answer *ret)
{
	struct runtime_sink sink = { .add = take_inline_frame, .ctx = ret };

	*ret = (struct answer){ 0 };
	return python_names_symbolize(n, words, 2, &sink);
}

/* What it said of a code object: words and the right answer. */
static void hear_code(struct python *p, uint64_t *words, struct answer *ret)
{
	char *text = p->line, *name, *source;
	unsigned long long code;
	uint32_t offset, cookie;
	size_t len;

	ASSERT_EQ(sscanf(text, "code %llx %u %u %u", &code, &offset, &ret->start_line, &ret->line),
		  4);
	strsep(&text, "\t");
	name = strsep(&text, "\t");
	source = text;
	ASSERT(name && source);
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	snprintf(ret->source, sizeof(ret->source), "%s", source);
	/* Longer names are cut at a character. */
	len = strlen(ret->name);
	if (strlen(name) > PYTHON_NAME_MAX)
		while (len && ((unsigned char)name[len] & 0xc0) == 0x80)
			ret->name[--len] = '\0';
	ASSERT_OK(python_read_cookie(&p->target, &p->record, code, &cookie));
	words[0] = FRAME(RUNTIME_PYTHON, 1, code);
	words[1] = PYTHON_WORD1(cookie, offset);
}

static void check_answer(const struct python *p, const struct answer *got,
			 const struct answer *want)
{
	if (strcmp(got->name, want->name) || strcmp(got->source, want->source) ||
	    got->start_line != want->start_line || got->line != want->line || got->nr != 1)
		FAIL("%s: %s (%s:%u), line %u; not %s (%s:%u), line %u", p->path, got->name,
		     got->source, got->start_line, got->line, want->name, want->source,
		     want->start_line, want->line);
}

static void check_names(struct python *p)
{
	uint64_t words[2];
	struct answer got, want;
	unsigned int nr = 0;

	while (strcmp(hear(p), "ready")) {
		hear_code(p, words, &want);
		for (int again = 0; again < 2; again++) {
			ASSERT_OK(name_it(p->names, words, &got));
			check_answer(p, &got, &want);
		}
		nr++;
	}
	ASSERT(nr > 200);
}

/* Code that was freed has its own name or none, never its successor's at the same address. */
static void check_churn(struct python *p)
{
	uint64_t words[2], old_words[2] = { 0 }, places[8] = { 0 };
	struct answer got, want, old_want;
	unsigned int same_place = 0;
	int r;

	for (unsigned int i = 0; i < CHURN; i++) {
		struct python_names *fresh;

		fputs("next\n", p->in);
		fflush(p->in);
		hear(p);
		hear_code(p, words, &want);
		ASSERT_OK(name_it(p->names, words, &got));
		check_answer(p, &got, &want);
		for (size_t k = 0; k < 8; k++)
			same_place += words[0] == places[k];
		places[i % 8] = words[0];
		/* Without what is remembered. */
		ASSERT_OK(python_names_new(&p->target, &p->record, &p->layout, &fresh));
		r = i ? name_it(fresh, old_words, &got) : -ENOENT;
		if (r)
			ASSERT_ERR(r, ENOENT);
		else
			check_answer(p, &got, &old_want);
		python_names_free(fresh);
		memcpy(old_words, words, sizeof(words));
		old_want = want;
	}
	/* mimalloc takes its time. */
	ASSERT(p->layout.free_threaded || same_place > CHURN / 2);
}

static void check_python(const char *path, unsigned int minor)
{
	struct python p;

	start(&p, path, "name_codes.py");
	attach(&p, minor);
	check_names(&p);
	check_churn(&p);
	stop(&p);
}

TEST(as_each_python_says)
{
	ASSERT(test_pythons(check_python) > 0);
}
