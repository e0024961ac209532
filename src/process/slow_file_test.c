// SPDX-License-Identifier: Apache-2.0
/*
 * Copies of files of a file system that is mounted nowhere any more: nobody knows whether it has a
 * server. Its device number is the next one's as soon as nothing uses it.
 */
#include "process/file_copy.h"
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
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"
#include "util/test_child_status.h"

enum { WHOLE = 1 << 30, LOWER = 64, STACKED_MAX = 256, TRIES_MAX = 1000 };

static struct process_table t;
static char dir[] = "/tmp/sonde-slow-file-test-XXXXXX";
static int nr_mounted; /* on `dir`, one above the other */

TEST_SKIP_REASON()
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

static dev_t mount_empty(void)
{
	struct stat st;

	ASSERT_OK(mount("none", dir, "tmpfs", 0, NULL));
	ASSERT_OK(stat(dir, &st));
	nr_mounted++;
	return st.st_dev;
}

static void unmount_all(void)
{
	while (nr_mounted) {
		ASSERT_OK(umount2(dir, 0));
		nr_mounted--;
	}
}

/* A file system in `dir` that has a copy of the program and nothing else. */
static void put_program(const char *program)
{
	_cleanup_close_ int in = open(program, O_RDONLY | O_CLOEXEC), out = -1;
	char path[64];

	in_dir(path);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ASSERT(sendfile(out, in, NULL, WHOLE) > 0);
}

/*
 * A new file system's number is the lowest that is free: while this one's is not wanted, lower ones
 * are there for whoever else mounts something.
 */
static dev_t mount_program(const char *program)
{
	dev_t dev;

	for (int i = 0; i < LOWER; i++)
		mount_empty();
	dev = mount_empty();
	put_program(program);
	return dev;
}

static void forget_program(void)
{
	ASSERT_OK(umount2(dir, MNT_DETACH));
	nr_mounted--;
	unmount_all();
}

/* The number is free some time after the last user of its file system has ended. */
static void mount_program_again(const char *program, dev_t dev)
{
	for (int i = 0; i < TRIES_MAX; i++) {
		while (nr_mounted < STACKED_MAX)
			if (mount_empty() == dev) {
				put_program(program);
				return;
			}
		unmount_all();
	}
	FAIL("somebody has kept device %u:%u", major(dev), minor(dev));
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
	close(told[1]);
	ASSERT_EQ(read(told[0], &c, 1), 1);
	close(told[0]);
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
	dev = mount_program("/usr/bin/cat");
	first = start_user();
	second = start_user();
	forget_program();
	file = open_program(first);
	ASSERT(open_program(second) == file);
	end_user(first);
	end_user(second);
	mount_program_again("/usr/bin/ls", dev);
	first = start_user();
	forget_program();
	next = open_program(first);
	ASSERT_EQ(next->key.inode, file->key.inode);
	ASSERT_EQ(next->key.dev_minor, file->key.dev_minor);
	ASSERT(next != file);
	end_user(first);
	stop();
}

/* What a server answers is not looked at with what was needed to find the file. */
TEST(who_has_copied_has_no_capabilities)
{
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int out = memfd_create("copy", MFD_CLOEXEC);
	static char what[] = "1,0,0,0,0,0,1000,0", path[] = "/nowhere";
	char *args[] = { what, path };
	const struct child_spec spec = { .main = file_copy_child_main,
					 .args = args,
					 .nr_args = 2,
					 .in_fd = root,
					 .out_fd = out };
	struct child child = CHILD_NONE;

	ASSERT_OK(child_start(&spec, &child));
	assert_child_had_only(child.pid, 0);
	ASSERT_OK(child_end(&child, false, NULL));
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
	mount_program("/usr/bin/cat");
	in_dir(path);
	ASSERT_OK(chown(path, SOMEBODY, SOMEBODY));
	pid = start_user();
	forget_program();
	drop_chown();
	ASSERT_EQ(open_program(pid)->owner, SOMEBODY);
	end_user(pid);
	stop();
}
