// SPDX-License-Identifier: Apache-2.0
#include "process/process_context.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct published {
	char signature[8];
	uint32_t version, size;
	uint64_t stamp;
	const void *message;
};

/* As OTEP 4719 has it; this very process is the one that is read. */
static struct published *publish(const char *message)
{
	struct published *p;
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);

	ASSERT(fd >= 0);
	ASSERT_OK(ftruncate(fd, 4096));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ASSERT(p != MAP_FAILED);
	close(fd);
	ASSERT_OK(madvise(p, 4096, MADV_DONTFORK));
	*p = (struct published){ .version = 2,
				 .size = (uint32_t)strlen(message),
				 .message = message };
	memcpy(p->signature, "OTEL_CTX", 8);
	p->stamp = 7;
	return p;
}

TEST(what_is_published_is_read_once)
{
	struct published *p = publish("hello");
	struct process_context c;
	uint64_t addr, stamp = 0;

	ASSERT_OK(process_context_find(getpid(), &addr));
	ASSERT_EQ(addr, (uintptr_t)p);
	ASSERT_EQ(process_context_read(getpid(), addr, &stamp, &c), 1);
	ASSERT_EQ(stamp, 7);
	ASSERT_EQ(c.size, 5);
	ASSERT(!memcmp(c.data, "hello", 5));
	process_context_fini(&c);
	ASSERT_EQ(process_context_read(getpid(), addr, &stamp, &c), 0);
	p->message = "bye";
	p->size = 3;
	p->stamp = 8;
	ASSERT_EQ(process_context_read(getpid(), addr, &stamp, &c), 1);
	ASSERT(c.size == 3 && !memcmp(c.data, "bye", 3) && stamp == 8);
	process_context_fini(&c);
	p->size = 0;
	p->stamp = 9;
	ASSERT_EQ(process_context_read(getpid(), addr, &stamp, &c), 1);
	ASSERT_EQ(c.size, 0);
	process_context_fini(&c);
}

TEST(what_is_none_is_refused)
{
	struct published *p = publish("hello");
	uint64_t addr = (uintptr_t)p, stamp = 0;
	struct process_context c;

	p->stamp = 0;
	ASSERT_ERR(process_context_read(getpid(), addr, &stamp, &c), EAGAIN);
	p->stamp = 1;
	p->version = 1;
	ASSERT_ERR(process_context_read(getpid(), addr, &stamp, &c), ENOTSUP);
	p->version = 2;
	p->size = PROCESS_CONTEXT_MAX + 1;
	ASSERT_ERR(process_context_read(getpid(), addr, &stamp, &c), E2BIG);
	p->size = 5;
	p->message = (const void *)16;
	ASSERT_ERR(process_context_read(getpid(), addr, &stamp, &c), EFAULT);
	p->signature[0] = 'o';
	ASSERT_ERR(process_context_read(getpid(), addr, &stamp, &c), EBADMSG);
	ASSERT_EQ(munmap(p, 4096), 0);
	ASSERT_ERR(process_context_read(getpid(), addr, &stamp, &c), EFAULT);
	ASSERT_ERR(process_context_find(getpid(), &addr), ENOENT);
	ASSERT_EQ(stamp, 0);
}

TEST(children_have_none)
{
	struct published *p = publish("hello");
	uint64_t addr;
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(process_context_find(getpid(), &addr) == -ENOENT ? 0 : 1);
	ASSERT(waitpid(pid, &status, 0) == pid);
	ASSERT_EQ(status, 0);
	ASSERT_ERR(process_context_find(pid, &addr), ESRCH);
	ASSERT_EQ(p->stamp, 7);
}
