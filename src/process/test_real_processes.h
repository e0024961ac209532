/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes whose events a table of processes hears of: open_file_test, mount_ns_test. */
#pragma once

#include "process/process_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"
#include "util/map.h"

static struct process_table t;
static struct cpu_set *cpus;
static struct side_band *sb;
static struct side_events batch;
static struct map descendants; /* pids */
/* Others' news are in the rings, too: room for what they have while we get no turn. */
enum { RING_PAGES = 1024, WHOLE = 1 << 30 };
static char dir[] = "/tmp/sonde-processes-test-XXXXXX";

/* NULL: they can be heard of here. */
static inline const char *why_not(void)
{
	int r;

	if (geteuid())
		return "needs root: map_files, namespaces and the side band";
	r = cpu_set_open(&cpus);
	if (!r)
		r = side_band_open(cpus, 1, &sb);
	if (r)
		return "perf_event_open() of all processes is not allowed here";
	side_band_free(sb);
	cpu_set_free(cpus);
	return NULL;
}

static inline void start(void)
{
	ASSERT_OK(process_table_init(&t));
	ASSERT_OK(cpu_set_open(&cpus));
	ASSERT_OK(side_band_open(cpus, RING_PAGES, &sb));
	ASSERT_PTR_NONNULL(mkdtemp(dir));
}

static inline void stop(void)
{
	char command[128];

	process_table_fini(&t);
	side_band_free(sb);
	cpu_set_free(cpus);
	side_events_fini(&batch);
	map_fini(&descendants);
	descendants = (struct map){ 0 };
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
}

/* Of a descendant of ours: other tests beside this one have namespaces, too. */
static inline bool is_ours(const struct side_event *event)
{
	if (event->type == SIDE_FORK &&
	    (event->parent_pid == getpid() || map_get(&descendants, (uint32_t)event->parent_pid)))
		ASSERT_OK(map_put(&descendants, (uint32_t)event->pid, 1));
	return map_get(&descendants, (uint32_t)event->pid);
}

/* False: some were lost, as others had so many. */
static inline bool pump_what_came(void)
{
	bool whole = true;

	ASSERT_OK(side_band_drain(sb, &batch));
	for (size_t i = 0; i < batch.events.nr; i++) {
		const struct side_event *event = &batch.events.items[i];

		if (event->type == SIDE_LOST)
			whole = false;
		else if (is_ours(event))
			ASSERT_OK(process_table_apply(&t, event, batch.text.items));
	}
	return whole;
}

static inline void pump(void)
{
	ASSERT(pump_what_came());
}

static inline pid_t forked_by(pid_t parent)
{
	for (size_t i = 0; i < batch.events.nr; i++)
		if (batch.events.items[i].type == SIDE_FORK &&
		    batch.events.items[i].parent_pid == parent)
			return batch.events.items[i].pid;
	return 0;
}

static inline const char *in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static inline int copy_file(const char *from, const char *to, size_t max)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = 1;

	while (in >= 0 && out >= 0 && n > 0 && max) {
		n = sendfile(out, in, NULL, max);
		max -= n > 0 ? (size_t)n : 0;
	}
	close(in);
	close(out);
	return n < 0 || in < 0 || out < 0 ? -1 : 0;
}

struct test_child {
	pid_t pid;
	int in, out;
};

/* A child that runs `before` and then the program; returns when the program has answered. */
static inline struct test_child spawn(void (*before)(void), const char *path, char *const argv[])
{
	struct test_child child;
	int in[2], out[2];
	char c = 0;

	ASSERT_OK(pipe2(in, O_CLOEXEC));
	ASSERT_OK(pipe2(out, O_CLOEXEC));
	child.pid = fork();
	if (!child.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (before)
			before();
		execv(path, argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child.in = in[1];
	child.out = out[0];
	ASSERT_EQ(write(child.in, "\n", 1), 1);
	ASSERT_EQ(read(child.out, &c, 1), 1);
	return child;
}

static inline struct test_child spawn_cat(void (*before)(void), const char *path)
{
	char *const argv[] = { (char *)"cat", NULL };

	return spawn(before, path, argv);
}

static inline void end(struct test_child *child)
{
	close(child->in);
	close(child->out);
	kill(child->pid, SIGKILL);
	ASSERT_EQ(waitpid(child->pid, NULL, 0), child->pid);
}

/* The file of the process that ends in `name`, and its mapping. */
static inline struct mapped_file *find(pid_t pid, const char *name, const struct process **ret_proc,
				       const struct mapping **ret)
{
	struct process *proc;

	ASSERT_OK(process_get(&t, pid, &proc));
	for (size_t i = 0; i < proc->mappings.nr; i++) {
		struct mapped_file *file = t.files.items[proc->mappings.items[i].file];
		size_t len = strlen(file->path);

		if (len < strlen(name) || strcmp(file->path + len - strlen(name), name))
			continue;
		*ret_proc = proc;
		*ret = &proc->mappings.items[i];
		return file;
	}
	FAIL("%s is not mapped by %d", name, pid);
	return NULL;
}

static inline void assert_same_contents(const struct mapped_file *file, const char *original)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL, *expected = NULL;
	uint8_t id[ELF_BUILD_ID_MAX];
	int len;

	ASSERT_EQ(file->state, FILE_OPEN);
	ASSERT(file->is_elf);
	ASSERT(file->segments.nr > 0);
	ASSERT_OK(elf_file_open(original, &expected));
	len = elf_file_build_id(expected, id);
	ASSERT(len > 0);
	ASSERT_EQ(file->build_id_len, len);
	ASSERT_EQ(memcmp(file->build_id, id, (size_t)len), 0);
	ASSERT_OK(mapped_file_elf(&t, file, &elf));
	ASSERT_EQ(elf->nr_segments, expected->nr_segments);
}

static inline struct mapped_file *assert_opens(pid_t pid, const char *name, const char *original)
{
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file = find(pid, name, &proc, &m);

	ASSERT_OK(process_open_file(&t, proc, m, file));
	assert_same_contents(file, original);
	ASSERT(mapping_bias(file, m) != 0);
	return file;
}
