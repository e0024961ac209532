// SPDX-License-Identifier: Apache-2.0
/*
 * Copies of files of a file system that is mounted nowhere any more: nobody knows whether it has a
 * server. Its device number is the next one's as soon as nothing uses it.
 */
#include "process/process_internal.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"

enum { WHOLE = 1 << 30, TRIES_MAX = 10000 };

static struct process_table t;
static char dir[] = "/tmp/sonde-slow-file-test-XXXXXX";

const char *test_skip_reason(void)
{
	return geteuid() ? "needs root: map_files and mounts" : NULL;
}

static void start(void)
{
	ASSERT_PTR_NONNULL(mkdtemp(dir));
	ASSERT_OK(unshare(CLONE_NEWNS));
	ASSERT_OK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ASSERT_OK(process_table_init(&t));
}

static void stop(void)
{
	process_table_fini(&t);
	ASSERT_OK(rmdir(dir));
}

static void in_dir(char path[64])
{
	snprintf(path, 64, "%s/prog", dir);
}

/* A file system with that device number (0: any) that has a copy of the program and nothing else.
 */
static dev_t mount_program(const char *program, dev_t dev)
{
	_cleanup_close_ int in = open(program, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat st;
	char path[64];

	for (int i = 0;; i++) {
		ASSERT_OK(mount("none", dir, "tmpfs", 0, NULL));
		ASSERT_OK(stat(dir, &st));
		if (!dev || st.st_dev == dev)
			break;
		ASSERT_OK(umount2(dir, 0));
		ASSERT(i < TRIES_MAX);
	}
	in_dir(path);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ASSERT(sendfile(out, in, NULL, WHOLE) > 0);
	return st.st_dev;
}

/* A process that maps the program. */
static pid_t start_user(void)
{
	char path[64], c = 0;
	int told[2], fd;
	pid_t pid;

	ASSERT_OK(pipe(told));
	pid = fork();
	if (!pid) {
		in_dir(path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
		if (write(told[1], "y", 1) == 1)
			pause();
		_exit(1);
	}
	ASSERT_EQ(read(told[0], &c, 1), 1);
	close(told[0]);
	close(told[1]);
	return pid;
}

static void end_user(pid_t pid)
{
	const struct side_event event = { UINT64_MAX, SIDE_EXIT, .pid = pid, .tid = pid };

	ASSERT_OK(kill(pid, SIGKILL));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_OK(process_table_apply(&t, &event, ""));
}

/* Its copy. */
static struct mapped_file *open_program(pid_t pid)
{
	struct process *proc;

	ASSERT_OK(process_get(&t, pid, &proc));
	for (size_t i = 0; i < proc->mappings.nr; i++) {
		struct mapped_file *file = t.files.items[proc->mappings.items[i].file];
		const char *name = strrchr(file->path, '/');

		if (!name || strcmp(name, "/prog"))
			continue;
		ASSERT_OK(process_open_file(&t, proc, &proc->mappings.items[i], file));
		ASSERT(file->is_copy);
		return file;
	}
	FAIL("%d does not map the program", pid);
	return NULL;
}

TEST(a_copy_is_not_the_next_file_systems)
{
	struct mapped_file *file, *next;
	pid_t first, second;
	dev_t dev;

	start();
	dev = mount_program("/usr/bin/cat", 0);
	first = start_user();
	second = start_user();
	ASSERT_OK(umount2(dir, MNT_DETACH));
	file = open_program(first);
	ASSERT(open_program(second) == file);
	end_user(first);
	end_user(second);
	mount_program("/usr/bin/ls", dev);
	first = start_user();
	ASSERT_OK(umount2(dir, MNT_DETACH));
	next = open_program(first);
	ASSERT_EQ(next->key.inode, file->key.inode);
	ASSERT_EQ(next->key.dev_minor, file->key.dev_minor);
	ASSERT(next != file);
	end_user(first);
	stop();
}

static void drop_chown(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	ASSERT_OK(syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1u << CAP_CHOWN);
	data[0].permitted &= ~(1u << CAP_CHOWN);
	ASSERT_OK(syscall(SYS_capset, &header, data));
}

/* An agent may give nothing away, and its list of system calls has none that does. */
TEST(a_users_copy_is_the_users)
{
	enum { SOMEBODY = 12345 };
	char path[64];
	pid_t pid;

	start();
	mount_program("/usr/bin/cat", 0);
	in_dir(path);
	ASSERT_OK(chown(path, SOMEBODY, SOMEBODY));
	pid = start_user();
	ASSERT_OK(umount2(dir, MNT_DETACH));
	drop_chown();
	ASSERT_EQ(open_program(pid)->owner, SOMEBODY);
	end_user(pid);
	stop();
}
