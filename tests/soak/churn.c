// SPDX-License-Identifier: Apache-2.0
/*
 * What comes and goes while a soak records:
 *
 *	churn executables FOLDER	one different executable after the other, each run once
 *	churn processes			children that fork no further, with stacks of their own
 *	churn jit			code that is made anew, and its perf map, in a process a
 *second churn spin			(what the executables do) some milliseconds
 *
 * Each goes on until it is killed, with whoever started it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PAUSE_US = 15000,
	BUILD_ID_BYTE = 0x53, /* as the linker was told */
	BUILD_ID_SIZE = 20,
	FUNCTIONS = 16,
	FUNCTION_SIZE = 64,
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) void spin(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

/* Another stack for each `path`: which of two callers calls next is in its bits. */
static __attribute__((noinline)) void left(uint32_t path, unsigned int depth);

static __attribute__((noinline)) void right(uint32_t path, unsigned int depth)
{
	if (!depth)
		spin(1000000);
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
	__asm__ volatile("");
}

static __attribute__((noinline)) void left(uint32_t path, unsigned int depth)
{
	if (!depth)
		spin(1000000);
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
	__asm__ volatile("");
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static int end(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid ? 0 : 1;
}

/* --- executables ------------------------------------------------------------------------------ */

static uint8_t *read_self(size_t *ret_size, uint8_t **ret_id)
{
	uint8_t id[BUILD_ID_SIZE], *text;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	text = malloc((size_t)st.st_size);
	if (!text || read(fd, text, (size_t)st.st_size) != st.st_size)
		return NULL;
	close(fd);
	memset(id, BUILD_ID_BYTE, sizeof(id));
	*ret_size = (size_t)st.st_size;
	*ret_id = memmem(text, *ret_size, id, sizeof(id));
	return *ret_id ? text : NULL;
}

static int run_copy(const char *path, const uint8_t *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = fd >= 0 ? write(fd, text, size) : -1;
	pid_t pid;

	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)size)
		return 1;
	pid = start();
	if (!pid) {
		execl(path, path, "spin", NULL);
		_exit(1);
	}
	return end(pid);
}

static int executables(const char *folder)
{
	uint8_t *id, *text;
	char path[4096];
	size_t size;

	text = read_self(&size, &id);
	if (!text)
		return 1;
	for (uint32_t i = 1;; i++) {
		memcpy(id, &i, sizeof(i));
		snprintf(path, sizeof(path), "%s/program-%u", folder, i);
		if (run_copy(path, text, size))
			return 1;
		unlink(path);
		usleep(PAUSE_US);
	}
}

/* --- processes -------------------------------------------------------------------------------- */

static int processes(void)
{
	for (uint32_t i = 0;; i++) {
		pid_t pid = start();

		if (!pid) {
			left(i * 2654435761u, 20);
			_exit(0);
		}
		if (end(pid))
			return 1;
		usleep(PAUSE_US / 2);
	}
}

/* --- code that is made ------------------------------------------------------------------------ */

#if defined(__x86_64__)
/* push %rbp; mov %rsp,%rbp; mov $1000000,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0x40, 0x42, 0x0f,
				0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };
#else
/* stp x29,x30,[sp,#-16]!; mov x29,sp; mov w9,#1000000; 1: subs w9,w9,#1; b.ne 1b; ldp; ret */
static const uint32_t code[] = { 0xa9bf7bfd, 0x910003fd, 0x52884809, 0x72a001e9,
				 0x71000529, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0 };
#endif

static int make_and_run(FILE *map, unsigned int generation)
{
	const size_t size = (size_t)FUNCTIONS * FUNCTION_SIZE;
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < FUNCTIONS; i++) {
		memcpy(at + i * FUNCTION_SIZE, code, sizeof(code));
		fprintf(map, "%lx %x made %u:%zu\n", (unsigned long)(at + i * FUNCTION_SIZE),
			(unsigned int)sizeof(code), generation, i);
	}
	fflush(map);
	if (mprotect(at, size, PROT_READ | PROT_EXEC))
		return 1;
	__builtin___clear_cache((char *)at, (char *)at + size);
	for (size_t i = 0; i < FUNCTIONS; i++)
		((void (*)(void))(uintptr_t)(at + i * FUNCTION_SIZE))();
	return munmap(at, size);
}

static int make_code(void)
{
	char path[64];
	FILE *map;
	int r = 0;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "we");
	for (unsigned int i = 0; map && !r && i < 40; i++) {
		r = make_and_run(map, i);
		usleep(PAUSE_US);
	}
	unlink(path);
	return map ? r : 1;
}

static int jit(void)
{
	for (;;) {
		pid_t pid = start();

		if (!pid)
			_exit(make_code());
		if (end(pid))
			return 1;
	}
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc == 3 && !strcmp(argv[1], "executables"))
		return executables(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "processes"))
		return processes();
	if (argc == 2 && !strcmp(argv[1], "jit"))
		return jit();
	if (argc == 2 && !strcmp(argv[1], "spin")) {
		spin(3000000);
		return 0;
	}
	return 2;
}
