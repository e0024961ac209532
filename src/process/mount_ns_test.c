// SPDX-License-Identifier: Apache-2.0
/* Programs in other mount namespaces, roots and overlays, while they run and after their end. */
#include "process/test_real_processes.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

TEST_SKIP_REASON()
{
	return why_not();
}

/* In the child: a file system that nobody else sees, with a program in it. */
static void enter_namespace(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, NULL) || copy_file("/usr/bin/cat", in_dir("cat"), WHOLE))
		_exit(126);
}

TEST(a_file_of_another_mount_namespace)
{
	struct test_child cat;

	start();
	cat = spawn_cat(enter_namespace, in_dir("cat"));
	ASSERT_EQ(access(in_dir("cat"), F_OK), -1);
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	end(&cat);
	stop();
}

TEST(a_file_of_another_mount_namespace_after_the_end)
{
	struct test_child cat;

	start();
	cat = spawn_cat(enter_namespace, in_dir("cat"));
	pump();
	ASSERT_EQ(t.private->roots.nr, 1);
	end(&cat);
	pump();
	ASSERT(process_find(&t, cat.pid)->exited);
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	/* The namespace is let go with its last process. */
	process_table_expire(&t, UINT64_MAX);
	ASSERT_PTR_NULL(process_find(&t, cat.pid));
	ASSERT_EQ(t.private->roots.nr, 0);
	stop();
}

/* A shell in a mount namespace, which says so and runs cat when it is told to. */
static struct test_child spawn_shell(void)
{
	char script[256], *const argv[] = { (char *)"sh", (char *)"-c", script, NULL };

	snprintf(script, sizeof(script), "read x; echo a; read x; %s </dev/null; echo b; read x",
		 in_dir("cat"));
	return spawn(enter_namespace, "/bin/sh", argv);
}

/* Tells it; what it ran has ended, and is returned. */
static pid_t run_cat(const struct test_child *sh)
{
	pid_t pid;
	char c;

	ASSERT_EQ(read(sh->out, &c, 1), 1);
	ASSERT_EQ(write(sh->in, "\n", 1), 1);
	ASSERT_EQ(read(sh->out, &c, 1), 1);
	ASSERT_EQ(c, 'b');
	pump();
	pid = forked_by(sh->pid);
	ASSERT(pid != 0);
	return pid;
}

/* A short program in a container whose shell we know: gone before we hear of it. */
TEST(a_short_program_in_a_known_namespace)
{
	struct test_child sh;
	pid_t pid;

	start();
	sh = spawn_shell();
	pump();
	pid = run_cat(&sh);
	ASSERT(process_find(&t, pid)->exited);
	assert_opens(pid, "/cat", "/usr/bin/cat");
	end(&sh);
	stop();
}

/* The shell's own files are known from elsewhere: nothing new makes anybody look where it lives. */
TEST(a_short_program_in_a_namespace_with_our_shell)
{
	char *const waits[] = { (char *)"sh", (char *)"-c", (char *)"read x; echo a; read x",
				NULL };
	struct test_child ours, theirs;

	start();
	ours = spawn(NULL, "/bin/sh", waits);
	pump();
	theirs = spawn_shell();
	pump();
	ASSERT(process_find(&t, theirs.pid)->root_due);
	assert_opens(run_cat(&theirs), "/cat", "/usr/bin/cat");
	end(&ours);
	end(&theirs);
	stop();
}

/* Of what runs all the time is known where it lives. */
TEST(a_program_that_was_seen_before_is_not_looked_at)
{
	struct test_child first, second, moved;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	first = spawn_cat(NULL, in_dir("cat"));
	pump();
	ASSERT(!process_find(&t, first.pid)->root_due);
	ASSERT(process_find(&t, first.pid)->at_home);
	second = spawn_cat(NULL, in_dir("cat"));
	pump();
	ASSERT(process_find(&t, second.pid)->root_due);
	assert_opens(second.pid, "/cat", "/usr/bin/cat");
	/* Another file of that name, in another namespace, is new. */
	moved = spawn_cat(enter_namespace, in_dir("cat"));
	pump();
	ASSERT(!process_find(&t, moved.pid)->root_due);
	ASSERT(!process_find(&t, moved.pid)->at_home);
	ASSERT_EQ(t.private->roots.nr, 1);
	end(&first);
	end(&second);
	end(&moved);
	stop();
}

/* Only its root is another one; the program is a static one, or brings its libraries. */
static void enter_chroot(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, NULL) || mkdir(in_dir("lib"), 0755) ||
	    mkdir(in_dir("lib64"), 0755) || copy_file("/usr/bin/cat", in_dir("cat"), WHOLE) ||
	    copy_file("/lib64/ld-linux-x86-64.so.2", in_dir("lib64/ld-linux-x86-64.so.2"), WHOLE) ||
	    copy_file("/lib/x86_64-linux-gnu/libc.so.6", in_dir("lib/libc.so.6"), WHOLE) ||
	    chroot(dir) || chdir("/"))
		_exit(126);
}

TEST(a_container_with_a_root_of_its_own_after_the_end)
{
	struct test_child cat;

	start();
	cat = spawn_cat(enter_chroot, "/cat");
	pump();
	end(&cat);
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	assert_opens(cat.pid, "/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6");
	stop();
}

/* The program is PID 1 there. */
static void enter_pid_namespace(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		_exit(126);
	pid = fork();
	if (pid) {
		close(0);
		waitpid(pid, NULL, 0);
		_exit(0);
	}
}

TEST(a_process_of_another_pid_namespace)
{
	struct test_child cat;
	pid_t pid;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	cat = spawn_cat(enter_pid_namespace, in_dir("cat"));
	ASSERT_OK(unlink(in_dir("cat")));
	pump();
	pid = forked_by(cat.pid);
	ASSERT(pid > 1);
	assert_opens(pid, "/cat", "/usr/bin/cat");
	/* The outer one waits for it. */
	ASSERT_OK(kill(pid, SIGKILL));
	close(cat.in);
	close(cat.out);
	ASSERT_EQ(waitpid(cat.pid, NULL, 0), cat.pid);
	pump();
	ASSERT(process_find(&t, pid)->exited);
	stop();
}

/* Layers on different file systems: the device of the mapping is not what stat() says. */
static void enter_overlay(void)
{
	char options[512];

	if (copy_file("/usr/bin/cat", in_dir("cat"), WHOLE) || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/mnt", "tmpfs", 0, NULL) || mkdir("/mnt/upper", 0755) ||
	    mkdir("/mnt/work", 0755))
		_exit(126);
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=/mnt/upper,workdir=/mnt/work",
		 dir);
	/* A kernel without it runs the file of the lower layer, which is worth little as a test. */
	if (mount("overlay", dir, "overlay", 0, options) && errno != ENODEV)
		_exit(126);
}

TEST(a_file_of_an_overlay)
{
	struct test_child cat;

	start();
	cat = spawn_cat(enter_overlay, in_dir("cat"));
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	end(&cat);
	stop();
}

TEST(a_file_of_an_overlay_after_the_end)
{
	struct test_child cat;

	start();
	cat = spawn_cat(enter_overlay, in_dir("cat"));
	pump();
	end(&cat);
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	stop();
}

/* Nobody chooses an inode number that makes a file of an overlay another file. */
TEST(an_inode_of_an_overlay_is_not_another_ones)
{
	static const char *const names[] = { "theirs", "mine" };
	struct stat st[2];
	struct file_key key;
	char options[256];
	int root, fd;

	ASSERT_PTR_NONNULL(mkdtemp(dir));
	ASSERT_OK(unshare(CLONE_NEWNS));
	ASSERT_OK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ASSERT_OK(mount("none", dir, "tmpfs", 0, NULL));
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(mkdir(in_dir(names[i]), 0755));
		/* Each counts its inodes from one on. */
		ASSERT_OK(mount("none", in_dir(names[i]), "tmpfs", 0, NULL));
		ASSERT_OK(chdir(in_dir(names[i])));
		ASSERT_OK(mkdir("a", 0755));
		ASSERT_OK(mkdir("b", 0755));
		ASSERT_OK(copy_file(i ? "/usr/bin/ls" : "/usr/bin/cat", "a/cat", WHOLE));
	}
	snprintf(options, sizeof(options), "lowerdir=%s/mine/a:%s/mine/b", dir, dir);
	if (mount("overlay", in_dir("mine/b"), "overlay", 0, options)) {
		ASSERT_EQ(errno, ENODEV);
		return;
	}
	ASSERT_OK(stat(in_dir("theirs/a/cat"), &st[0]));
	ASSERT_OK(stat(in_dir("mine/b/cat"), &st[1]));
	ASSERT_EQ(st[0].st_ino, st[1].st_ino);
	key = (struct file_key){ major(st[0].st_dev), minor(st[0].st_dev), st[0].st_ino };
	root = open(in_dir("mine/b"), O_PATH | O_CLOEXEC);
	ASSERT_ERR(open_below(NULL, root, "/cat", &key, &fd), ESTALE);
	close(root);
	root = open(in_dir("theirs/a"), O_PATH | O_CLOEXEC);
	ASSERT_OK(open_below(NULL, root, "/cat", &key, &fd));
	ASSERT_OK(chdir("/"));
	ASSERT_OK(umount2(dir, MNT_DETACH));
	ASSERT_OK(rmdir(dir));
}
