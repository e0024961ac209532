// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of threads, and the one that /proc gives. Formats: proc_pid_status(5), proc_pid_syscall(5).
 */
#include "snapshot/live_threads.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#if defined(__x86_64__)
const uint32_t live_all_registers = 0xffff, live_stack_pointer = 1u << X86_RSP;
enum { STACK_POINTER = X86_RSP };
#elif defined(__aarch64__)
const uint32_t live_all_registers = UINT32_MAX, live_stack_pointer = 1u << A64_SP;
enum { STACK_POINTER = A64_SP };
#endif

void live_threads_fini(struct live_threads *t)
{
	vec_free(&t->list);
	vec_free(&t->kernel);
}

void live_threads_clear(struct live_threads *t)
{
	t->list.nr = t->kernel.nr = 0;
	t->capped = false;
}

static int by_tid(const void *a, const void *b)
{
	const struct live_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

void live_threads_sort(struct live_threads *t)
{
	if (t->list.nr)
		qsort(t->list.items, t->list.nr, sizeof(*t->list.items), by_tid);
}

const struct live_thread *live_threads_find(const struct live_threads *t, int32_t tid)
{
	const struct live_thread key = { .tid = tid };

	return t->list.nr ? bsearch(&key, t->list.items, t->list.nr, sizeof(key), by_tid) : NULL;
}

bool live_thread_stood_still(const struct live_thread *before, const struct live_thread *after)
{
	return !(before->flags & TASK_ON_CPU) && !(after->flags & TASK_ON_CPU) &&
	       before->nr_switches == after->nr_switches;
}

/* --- /proc ----------------------------------------------------------------------------------- */

/* The value of a line "Name:\tvalue" of /proc/PID/status, NULL if absent. */
static const char *field(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? line + strlen(name) + strspn(line + strlen(name), " \t") : NULL;
}

static uint64_t number(const char *status, const char *name)
{
	const char *value = field(status, name);

	return value ? strtoull(value, NULL, 10) : 0;
}

/* Name, state and switches. */
static int read_status(int dir, int32_t tid, struct live_thread *t)
{
	_cleanup_free_ char *text = NULL;
	const char *name, *state;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%d/status", tid);
	r = read_file_at(dir, path, 65536, &text, NULL);
	if (r < 0)
		return r;
	/* The first line; in it, newlines and backslashes are escaped. */
	name = strncmp(text, "Name:\t", 6) ? "" : text + 6;
	snprintf(t->name, sizeof(t->name), "%.*s", (int)strcspn(name, "\n"), name);
	state = field(text, "\nState:");
	t->state = state ? *state : '?';
	t->nr_switches = number(text, "\nvoluntary_ctxt_switches:") +
			 number(text, "\nnonvoluntary_ctxt_switches:");
	return 0;
}

/*
 * "running", "-1 SP PC" (blocked, but not in a system call) or "NR ARG*6 SP PC". Shown only if the
 * thread stood still while the kernel looked.
 */
static int read_registers(int dir, int32_t tid, struct live_thread *t)
{
	_cleanup_free_ char *text = NULL;
	const char *words[10];
	size_t nr = 0;
	char path[32];
	char *p;
	int r;

	t->flags |= TASK_ON_CPU;
	snprintf(path, sizeof(path), "%d/syscall", tid);
	r = read_file_at(dir, path, 4096, &text, NULL);
	if (r < 0)
		return r;
	for (p = text; *p && nr < 10; nr++) {
		words[nr] = p;
		p += strcspn(p, " \n");
		p += strspn(p, " \n");
	}
	if (nr < 3)
		return 0;
	t->flags = (t->flags & ~(uint32_t)TASK_ON_CPU) | TASK_USER;
	t->regs[STACK_POINTER] = strtoull(words[nr - 2], NULL, 16);
	t->pc = strtoull(words[nr - 1], NULL, 16);
	t->valid = live_stack_pointer;
	/* A zombie's. */
	if (!t->pc)
		t->flags &= ~(uint32_t)TASK_USER;
	return 0;
}

static int read_thread(int dir, int32_t tid, bool is_compat, struct live_threads *ret)
{
	struct live_thread t = { .tid = tid, .flags = is_compat ? TASK_COMPAT : 0 };
	int r = read_status(dir, tid, &t);

	/* Registers after the switches: live_thread_stood_still() compares these. */
	if (!r)
		r = read_registers(dir, tid, &t);
	if (r == -EPERM)
		return -EACCES;
	/* It has ended meanwhile; or this kernel has no such file, and it counts as running. */
	if (r == -ESRCH || (r == -ENOENT && !t.state))
		return 0;
	if (r && r != -ENOENT)
		return r;
	return vec_push(&ret->list, t);
}

int live_threads_read_proc(int32_t pid, bool is_compat, struct live_threads *ret)
{
	_cleanup_(closedir_p) DIR *dir = NULL;
	struct dirent *entry;
	char path[32];
	int r;

	live_threads_clear(ret);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		int32_t tid = (int32_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (ret->list.nr >= LIVE_THREADS_MAX) {
			ret->capped = true;
			break;
		}
		r = read_thread(dirfd(dir), tid, is_compat, ret);
		if (r)
			return r;
	}
	live_threads_sort(ret);
	return ret->list.nr ? 0 : -ESRCH;
}
