// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_child.h"
#include "symbol/symbol_builder.h"
#include "symbol/symbol_cache.h"
#include "symbol/symbol_store.h"
#include "util/cleanup.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	ARGS_MAX = 9,
	ARG_SIZE = 64,
	IMAGE_SIZE_MAX = 1 << 30,
};

#define BUILDER_MEMORY_DEFAULT (UINT64_C(2) << 30)

/* --- the parent's side ------------------------------------------------------------------------ */

struct arguments {
	char *argv[ARGS_MAX];
	size_t nr;
};

static void arguments_fini(struct arguments *a)
{
	for (size_t i = 0; i < a->nr; i++)
		free(a->argv[i]);
}

static int add_text(struct arguments *a, const char *key, const char *value)
{
	if (asprintf(&a->argv[a->nr], "%s=%s", key, value) < 0)
		return -ENOMEM;
	a->nr++;
	return 0;
}

static int add_number(struct arguments *a, const char *key, uint64_t value)
{
	char text[ARG_SIZE];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return add_text(a, key, text);
}

static int make_arguments(const struct symbol_child_spec *spec, struct arguments *a)
{
	int r = add_number(a, "roots", spec->nr_roots);

	if (!r)
		r = add_number(a, "others-roots", spec->nr_others_roots);
	if (!r)
		r = add_number(a, "owner", spec->owner);
	if (!r)
		r = add_number(a, "memory", spec->memory);
	if (!r)
		r = add_number(a, "debug-info", !spec->no_debug_info);
	if (!r)
		r = add_number(a, "cache-size", spec->cache_size);
	if (!r)
		r = add_number(a, "cache-room", spec->cache_room);
	if (!r && spec->path)
		r = add_text(a, "path", spec->path);
	if (!r && spec->cache_dir >= 0)
		r = add_text(a, "key", spec->key);
	return r;
}

int symbol_child_start(const struct symbol_child_spec *spec, struct child *ret)
{
	_cleanup_(arguments_fini) struct arguments a = { 0 };
	struct child_spec child = {
		.program = spec->builder,
		.main = symbol_store_builder_main,
		.args = a.argv,
		.in_fd = spec->elf_fd,
		.out_fd = spec->out_fd,
		.idle = spec->idle,
	};
	int r = make_arguments(spec, &a);

	if (r)
		return r;
	for (uint32_t i = 0; i < spec->nr_roots; i++)
		child.more_fds[child.nr_more_fds++] = spec->roots[i];
	if (spec->cache_dir >= 0)
		child.more_fds[child.nr_more_fds++] = spec->cache_dir;
	child.nr_args = a.nr;
	return child_start(&child, ret);
}

/* --- the child's side ------------------------------------------------------------------------- */

struct task {
	struct symbol_builder_options options;
	uint32_t owner;
	uint64_t memory, cache_size, cache_room;
	const char *key; /* in the cache; NULL: the image stays in CHILD_OUT_FD */
	int cache_dir;
};

static bool value_of(const char *arg, const char *key, const char **ret)
{
	size_t len = strlen(key);

	if (strncmp(arg, key, len) || arg[len] != '=')
		return false;
	*ret = arg + len + 1;
	return true;
}

static int parse(int argc, char **argv, struct task *task)
{
	static int roots[SYMBOL_CHILD_ROOTS_MAX];
	struct debug_search *search = &task->options.search;
	const char *value;

	for (int i = 0; i < argc; i++) {
		if (value_of(argv[i], "roots", &value))
			search->nr_roots = strtoul(value, NULL, 10);
		else if (value_of(argv[i], "others-roots", &value))
			search->nr_others_roots = strtoul(value, NULL, 10);
		else if (value_of(argv[i], "owner", &value))
			task->owner = (uint32_t)strtoul(value, NULL, 10);
		else if (value_of(argv[i], "memory", &value))
			task->memory = strtoull(value, NULL, 10);
		else if (value_of(argv[i], "debug-info", &value))
			task->options.no_debug_info = *value == '0';
		else if (value_of(argv[i], "cache-size", &value))
			task->cache_size = strtoull(value, NULL, 10);
		else if (value_of(argv[i], "cache-room", &value))
			task->cache_room = strtoull(value, NULL, 10);
		else if (value_of(argv[i], "path", &value))
			search->path = value;
		else if (value_of(argv[i], "key", &value))
			task->key = value;
		else if (i)
			return -EINVAL;
	}
	if (search->nr_roots > SYMBOL_CHILD_ROOTS_MAX || search->nr_others_roots > search->nr_roots)
		return -EINVAL;
	for (size_t i = 0; i < search->nr_roots; i++)
		roots[i] = CHILD_MORE_FD + (int)i;
	search->roots = roots;
	search->owner = &task->owner;
	task->cache_dir = CHILD_MORE_FD + (int)search->nr_roots;
	if (!task->memory)
		task->memory = BUILDER_MEMORY_DEFAULT;
	search->max_bytes = task->memory / 2;
	return 0;
}

static void complain(void *ctx, const char *text)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	(void)ctx;
	if (n >= (int)sizeof(line)) {
		n = sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/* A parent that is gone or does not read misses nothing that it needs. */
	if (write(CHILD_MESSAGES_FD, line, (size_t)n) < 0)
		return;
}

static int build(struct task *task, const struct elf_file *elf)
{
	int r = symbol_table_build(elf, &task->options, CHILD_OUT_FD, NULL);
	char text[1024];

	if ((r == -EFBIG || r == -ENOMEM) && !task->options.no_debug_info) {
		snprintf(text, sizeof(text), "%s: its debug information is too big; symbols only",
			 task->options.search.path);
		complain(NULL, text);
		task->options.complaint = text;
		task->options.no_debug_info = true;
		if (ftruncate(CHILD_OUT_FD, 0))
			return -errno;
		r = symbol_table_build(elf, &task->options, CHILD_OUT_FD, NULL);
	}
	return r == -ENOENT ? 0 : r;
}

static int build_and_publish(struct task *task)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	int r = elf_file_open_fd(CHILD_IN_FD, &elf);
	struct stat st;

	if (!r)
		r = build(task, elf);
	if (!task->key)
		return r;
	/* A table that does not get its name still serves our parent, who has it open. */
	if (r || symbol_cache_commit(task->cache_dir, task->key, CHILD_OUT_FD))
		symbol_cache_abandon(task->cache_dir, task->key, CHILD_OUT_FD);
	else if (fstat(CHILD_OUT_FD, &st) || symbol_cache_bytes(&st) > task->cache_room)
		symbol_cache_clean(task->cache_dir, task->cache_size);
	return r;
}

int symbol_store_builder_main(int argc, char **argv)
{
	struct task task = { .options.search.complain = complain, .options.search.path = "" };
	int r;

	/* Of /proc/self/exe it would be "exe", in every list of processes and in our recordings. */
	prctl(PR_SET_NAME, SYMBOL_CHILD_NAME);
	r = parse(argc, argv, &task);
	if (r)
		return SYMBOL_CHILD_FAILED;
	child_restrict(IMAGE_SIZE_MAX, SYMBOL_CHILD_CPU_S, task.memory);
	/* Debug files are looked for in folders, of containers, too, that may be anybody's. */
	child_drop_capabilities(UINT64_C(1) << CAP_DAC_READ_SEARCH);
	r = build_and_publish(&task);
	if (!r)
		return SYMBOL_CHILD_OK;
	return r == -ENOSPC || r == -EDQUOT ? SYMBOL_CHILD_NO_SPACE : SYMBOL_CHILD_FAILED;
}
