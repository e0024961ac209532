// SPDX-License-Identifier: Apache-2.0
#include "agent/loader.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

enum {
	SMALL_SECTION = 256 << 10, /* of unwind information: about 2 ms */
	MEANWHILE_MS = 10,
};

struct job {
	const struct elf_file *elf;
	unsigned int follow;
	struct unwind_table *table;
	int result;
	int done_fd;
};

static size_t unwind_information_size(const struct elf_file *elf)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame" };
	size_t sum = 0, i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct elf_section *s = elf_file_section(elf, names[i]);

		if (s)
			sum += s->size;
	}
	return sum;
}

static void *run(void *arg)
{
	struct job *job = arg;
	uint64_t one = 1;

	/* The loop that waits has a higher priority than this work deserves. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
	job->result = unwind_table_build(job->elf, job->follow, &job->table);
	/* An eventfd's first write cannot fail. */
	if (write(job->done_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	return NULL;
}

static int build_beside(const struct elf_file *elf, unsigned int follow,
			const struct loader_wait *wait, struct unwind_table **ret)
{
	_cleanup_close_ int done_fd = eventfd(0, EFD_CLOEXEC);
	struct job job = { .elf = elf, .follow = follow, .done_fd = done_fd };
	struct pollfd p = { .fd = done_fd, .events = POLLIN };
	pthread_t thread;

	if (done_fd < 0 || pthread_create(&thread, NULL, run, &job))
		return unwind_table_build(elf, follow, ret);
	while (poll(&p, 1, MEANWHILE_MS) <= 0)
		wait->meanwhile(wait->ctx);
	pthread_join(thread, NULL);
	if (!job.result)
		*ret = job.table;
	return job.result;
}

int loader_build(const struct elf_file *elf, unsigned int follow, size_t max_transient,
		 const struct loader_wait *wait, struct unwind_table **ret)
{
	size_t size = unwind_information_size(elf);

	/* The section itself, and while the result grows about once more of it. */
	if (size > max_transient / 2)
		return -EFBIG;
	if (size < SMALL_SECTION || !wait->meanwhile)
		return unwind_table_build(elf, follow, ret);
	return build_beside(elf, follow, wait, ret);
}
