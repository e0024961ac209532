// SPDX-License-Identifier: Apache-2.0
#include "snapshot/task_iter.h"
#include "kernel/libbpf_log.h"
#include "kernel/read_iter.h"
#include "util/cleanup.h"
#include "util/log.h"

#include "tasks.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

enum {
	/* More than the kernel prints at once. */
	CHUNK = 64 << 10,
	OUTPUT_MAX = 256 << 20, /* LIVE_THREADS_MAX with the deepest kernel stacks */
};

/* include/linux/proc_ns.h: PROC_PID_INIT_INO. */
#define INITIAL_PID_NS "pid:[4026531836]"

struct task_iter {
	struct tasks_bpf *bpf;
	struct bpf_link *link;
	VEC(char) text;
};

bool task_iter_knows_pids(void)
{
	char name[64];
	ssize_t n = readlink("/proc/self/ns/pid", name, sizeof(name));

	return n == (ssize_t)strlen(INITIAL_PID_NS) && !memcmp(name, INITIAL_PID_NS, (size_t)n);
}

/* With the process named to the kernel (6.1) it visits that one's threads, else all there are. */
static int attach(struct task_iter *it, int32_t pid)
{
	union bpf_iter_link_info info = { .task.pid = (uint32_t)pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info,
		    .link_info_len = sizeof(info));

	it->link = bpf_program__attach_iter(it->bpf->progs.show_tasks, &options);
	if (!it->link)
		it->link = bpf_program__attach_iter(it->bpf->progs.show_tasks, NULL);
	return it->link ? 0 : -errno;
}

int task_iter_open(int32_t pid, bool kernel_stacks, struct task_iter **ret)
{
	_cleanup_(task_iter_free_p) struct task_iter *it = NULL;
	int r;

	if (!task_iter_knows_pids())
		return -ENOTSUP;
	it = calloc(1, sizeof(*it));
	if (!it)
		return -ENOMEM;
	libbpf_log_to_debug();
	it->bpf = tasks_bpf__open();
	if (!it->bpf)
		return -errno;
	it->bpf->rodata->config_tgid = (uint32_t)pid;
	it->bpf->rodata->config_kernel = kernel_stacks;
	r = tasks_bpf__load(it->bpf);
	if (!r)
		r = attach(it, pid);
	if (r)
		return r;
	*ret = TAKE_PTR(it);
	return 0;
}

void task_iter_free(struct task_iter *it)
{
	if (!it)
		return;
	bpf_link__destroy(it->link);
	tasks_bpf__destroy(it->bpf);
	vec_free(&it->text);
	free(it);
}

static int add_record(const struct task_record *record, const uint64_t *kernel,
		      struct live_threads *ret)
{
	struct live_thread t = {
		.tid = (int32_t)record->tid,
		.state = (char)record->state,
		.flags = record->flags,
		.nr_switches = record->nr_switches,
		.pc = record->pc,
		.thread_pointer = record->thread_pointer,
		.valid = live_all_registers,
		.first_kernel = (uint32_t)ret->kernel.nr,
		.nr_kernel = record->nr_kernel,
	};
	int r;

	snprintf(t.name, sizeof(t.name), "%.*s", (int)sizeof(record->comm), record->comm);
	memcpy(t.regs, record->regs, sizeof(t.regs));
	r = vec_reserve(&ret->kernel, ret->kernel.nr + record->nr_kernel);
	if (!r)
		r = vec_push(&ret->list, t);
	if (r)
		return r;
	if (record->nr_kernel)
		memcpy(ret->kernel.items + ret->kernel.nr, kernel, record->nr_kernel * 8ul);
	ret->kernel.nr += record->nr_kernel;
	return 0;
}

int task_iter_parse(const void *data, size_t size, struct live_threads *ret)
{
	const char *p = data;
	int r;

	live_threads_clear(ret);
	while (size >= sizeof(struct task_record)) {
		uint64_t kernel[SAMPLE_MAX_KERNEL_FRAMES];
		struct task_record record;
		size_t len;

		memcpy(&record, p, sizeof(record));
		len = record.nr_kernel * 8ul;
		if (record.nr_kernel > SAMPLE_MAX_KERNEL_FRAMES || size - sizeof(record) < len)
			break;
		if (ret->list.nr >= LIVE_THREADS_MAX) {
			ret->capped = true;
			break;
		}
		memcpy(kernel, p + sizeof(record), len);
		r = add_record(&record, kernel, ret);
		if (r)
			return r;
		p += sizeof(record) + len;
		size -= sizeof(record) + len;
	}
	live_threads_sort(ret);
	return 0;
}

static int read_all(struct task_iter *it, int fd)
{
	it->text.nr = 0;
	while (it->text.nr < OUTPUT_MAX) {
		int r = vec_reserve(&it->text, it->text.nr + CHUNK);
		ssize_t n;

		if (r)
			return r;
		n = read_iter(fd, it->text.items + it->text.nr, CHUNK);
		if (n <= 0)
			return (int)n;
		it->text.nr += (size_t)n;
	}
	return 0;
}

/* "name+0x12/0x34 [module]", or a number if there is no name. */
static int take_name(char *line, size_t index,
		     int (*named)(void *ctx, size_t index, const char *name), void *ctx)
{
	char *end = strstr(line, "+0x");

	if (!end || end == line)
		return 0;
	*end = '\0';
	return named(ctx, index, line);
}

static int take_names(char *text, size_t nr,
		      int (*named)(void *ctx, size_t index, const char *name), void *ctx)
{
	size_t nr_lines = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		nr_lines++;
	if (nr_lines != nr) /* lines were dropped: which ones, nobody says */
		return -ENOTSUP;
	for (size_t i = 0; i < nr; i++) {
		char *end = strchr(text, '\n');
		int r;

		*end = '\0';
		r = take_name(text, i, named, ctx);
		if (r)
			return r;
		text = end + 1;
	}
	return 0;
}

int task_iter_name(struct task_iter *it, const uint64_t *addresses, size_t nr,
		   int (*named)(void *ctx, size_t index, const char *name), void *ctx)
{
	_cleanup_close_ int fd = -1;
	struct bpf_link *link;
	int r;

	if (nr > TASK_NAMES_MAX)
		return -ENOTSUP;
	for (uint32_t i = 0; i < nr; i++)
		if (bpf_map_update_elem(bpf_map__fd(it->bpf->maps.addresses), &i, &addresses[i],
					BPF_ANY))
			return -errno;
	it->bpf->bss->nr_addresses = (uint32_t)nr;
	link = bpf_program__attach_iter(it->bpf->progs.name_addresses, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	bpf_link__destroy(link);
	r = fd < 0 ? -errno : read_all(it, fd);
	if (!r)
		r = vec_push(&it->text, '\0');
	return r ? r : take_names(it->text.items, nr, named, ctx);
}

int task_iter_read(struct task_iter *it, struct live_threads *ret)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(it->link));
	int r = fd < 0 ? -errno : read_all(it, fd);

	if (!r)
		r = task_iter_parse(it->text.items, it->text.nr, ret);
	return r ? r : ret->list.nr ? 0 : -ESRCH;
}
