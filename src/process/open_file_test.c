// SPDX-License-Identifier: Apache-2.0
/* Real processes, real files that are deleted, replaced, elsewhere or odd; and the side band's
 * news. */
#include "process/process_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"

static struct process_table t;
static struct cpu_set *cpus;
static struct side_band *sb;
static struct side_events batch;
enum { WHOLE = 1 << 30 };
static char dir[] = "/tmp/sonde-open-file-test-XXXXXX";

const char *test_skip_reason(void)
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

static void start(void)
{
	ASSERT_OK(process_table_init(&t));
	ASSERT_OK(cpu_set_open(&cpus));
	ASSERT_OK(side_band_open(cpus, 256, &sb));
	ASSERT_PTR_NONNULL(mkdtemp(dir));
}

static void stop(void)
{
	char command[128];

	process_table_fini(&t);
	side_band_free(sb);
	cpu_set_free(cpus);
	side_events_fini(&batch);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
}

static void pump(void)
{
	ASSERT_OK(side_band_drain(sb, &batch));
	for (size_t i = 0; i < batch.events.nr; i++) {
		const struct side_event *event = &batch.events.items[i];

		ASSERT(event->type != SIDE_LOST);
		ASSERT_OK(process_table_apply(&t, event, batch.text.items));
	}
}

static pid_t forked_by(pid_t parent)
{
	for (size_t i = 0; i < batch.events.nr; i++)
		if (batch.events.items[i].type == SIDE_FORK &&
		    batch.events.items[i].parent_pid == parent)
			return batch.events.items[i].pid;
	return 0;
}

static const char *in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static int copy_file(const char *from, const char *to, size_t max)
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
static struct test_child spawn(void (*before)(void), const char *path, char *const argv[])
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

static struct test_child spawn_cat(void (*before)(void), const char *path)
{
	char *const argv[] = { (char *)"cat", NULL };

	return spawn(before, path, argv);
}

static void end(struct test_child *child)
{
	close(child->in);
	close(child->out);
	kill(child->pid, SIGKILL);
	ASSERT_EQ(waitpid(child->pid, NULL, 0), child->pid);
}

/* The file of the process that ends in `name`, and its mapping. */
static struct mapped_file *find(pid_t pid, const char *name, const struct process **ret_proc,
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

static void assert_same_contents(const struct mapped_file *file, const char *original)
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

static struct mapped_file *assert_opens(pid_t pid, const char *name, const char *original)
{
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file = find(pid, name, &proc, &m);

	ASSERT_OK(process_open_file(&t, proc, m, file));
	assert_same_contents(file, original);
	ASSERT(mapping_bias(file, m) != 0);
	return file;
}

TEST(an_ordinary_program_and_its_libraries)
{
	struct test_child cat;
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;

	start();
	cat = spawn_cat(NULL, "/usr/bin/cat");
	pump();
	assert_opens(cat.pid, "/usr/bin/cat", "/usr/bin/cat");
	file = assert_opens(cat.pid, "/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6");
	find(cat.pid, "/libc.so.6", &proc, &m);
	/* A PIE's and a library's bias is where its address 0 lies: a page. */
	ASSERT_EQ(mapping_bias(file, m) % 4096, 0);
	ASSERT_EQ(m->start - mapping_bias(file, m), file->segments.items[0].vaddr);
	/* What /proc says and what the events said are the same files. */
	ASSERT_OK(process_refresh(&t, process_find(&t, cat.pid)));
	ASSERT(find(cat.pid, "/libc.so.6", &proc, &m) == file);
	end(&cat);
	stop();
}

TEST(the_events_and_proc_agree)
{
	struct process *proc;
	struct test_child cat;
	uint32_t version;

	start();
	cat = spawn_cat(NULL, "/usr/bin/cat");
	pump();
	ASSERT_OK(process_get(&t, cat.pid, &proc));
	ASSERT_EQ(proc->start_time, 0); /* known from events alone */
	version = proc->version;
	ASSERT_OK(process_refresh(&t, proc));
	ASSERT_EQ(proc->version, version);
	ASSERT(proc->start_time != 0);
	end(&cat);
	stop();
}

TEST(a_deleted_program_while_it_runs)
{
	struct test_child cat;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	cat = spawn_cat(NULL, in_dir("cat"));
	ASSERT_OK(unlink(in_dir("cat")));
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	end(&cat);
	stop();
}

TEST(a_replaced_program_is_the_old_one)
{
	struct test_child cat;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	cat = spawn_cat(NULL, in_dir("cat"));
	ASSERT_OK(unlink(in_dir("cat")));
	ASSERT_OK(copy_file("/usr/bin/ls", in_dir("cat"), WHOLE));
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	end(&cat);
	stop();
}

TEST(a_program_that_is_gone_but_its_file_is_there)
{
	struct test_child cat;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	cat = spawn_cat(NULL, in_dir("cat"));
	end(&cat);
	pump();
	assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	stop();
}

TEST(a_program_that_is_gone_and_its_file_replaced_cannot_be_had)
{
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;
	struct test_child cat, again;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	/* Keeps its inode from being used again by chance. */
	ASSERT_OK(link(in_dir("cat"), in_dir("held")));
	cat = spawn_cat(NULL, in_dir("cat"));
	end(&cat);
	ASSERT_OK(unlink(in_dir("cat")));
	ASSERT_OK(copy_file("/usr/bin/ls", in_dir("cat"), WHOLE));
	pump();
	file = find(cat.pid, "/cat", &proc, &m);
	ASSERT(process_open_file(&t, proc, m, file) < 0);
	ASSERT_EQ(file->state, FILE_UNREADABLE);
	ASSERT(file->error < 0);
	ASSERT_EQ(file->fd, -1);
	/* Another process has that file: it is tried again. */
	ASSERT_OK(unlink(in_dir("cat")));
	ASSERT_OK(rename(in_dir("held"), in_dir("cat")));
	again = spawn_cat(NULL, in_dir("cat"));
	pump();
	ASSERT(assert_opens(again.pid, "/cat", "/usr/bin/cat") == file);
	end(&again);
	stop();
}

TEST(another_process_that_maps_it_helps)
{
	struct test_child first, second;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	first = spawn_cat(NULL, in_dir("cat"));
	second = spawn_cat(NULL, in_dir("cat"));
	ASSERT_OK(unlink(in_dir("cat")));
	end(&first);
	pump();
	assert_opens(first.pid, "/cat", "/usr/bin/cat");
	end(&second);
	stop();
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

/* A short program in a container whose shell we know: gone before we hear of it. */
TEST(a_short_program_in_a_known_namespace)
{
	char script[256], *const argv[] = { (char *)"sh", (char *)"-c", script, NULL };
	struct test_child sh;
	char c;
	pid_t pid;

	start();
	snprintf(script, sizeof(script), "read x; echo a; read x; %s </dev/null; echo b; read x",
		 in_dir("cat"));
	sh = spawn(enter_namespace, "/bin/sh", argv);
	pump();
	ASSERT_EQ(read(sh.out, &c, 1), 1);
	ASSERT_EQ(write(sh.in, "\n", 1), 1);
	ASSERT_EQ(read(sh.out, &c, 1), 1);
	ASSERT_EQ(c, 'b');
	pump();
	pid = forked_by(sh.pid);
	ASSERT(pid != 0);
	ASSERT(process_find(&t, pid)->exited);
	assert_opens(pid, "/cat", "/usr/bin/cat");
	end(&sh);
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

static int make_memfd(const char *from, size_t max)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), fd = memfd_create("prog", MFD_CLOEXEC);

	ASSERT(in >= 0 && fd >= 0);
	ASSERT(sendfile(fd, in, NULL, max) > 0);
	close(in);
	return fd;
}

TEST(a_program_in_a_memfd)
{
	struct test_child cat;
	char path[64];
	int fd;

	start();
	fd = make_memfd("/usr/bin/cat", 1 << 20);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	cat = spawn_cat(NULL, path);
	close(fd);
	pump();
	assert_opens(cat.pid, "/memfd:prog", "/usr/bin/cat");
	end(&cat);
	stop();
}

static struct mapped_file *open_own(const void *addr, int expected)
{
	struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;

	pump();
	ASSERT_OK(process_get(&t, getpid(), &proc));
	ASSERT_OK(process_refresh(&t, proc));
	m = process_mapping(proc, (uintptr_t)addr);
	ASSERT_PTR_NONNULL(m);
	file = t.files.items[m->file];
	if (expected)
		ASSERT(process_open_file(&t, proc, m, file) < 0);
	else
		ASSERT_OK(process_open_file(&t, proc, m, file));
	return file;
}

static void *map_fd(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);

	ASSERT(p != MAP_FAILED);
	return p;
}

TEST(a_jits_memfd_is_code_of_unknown_form)
{
	struct mapped_file *file;
	int fd;

	start();
	fd = memfd_create("doublemapper", MFD_CLOEXEC);
	ASSERT_OK(ftruncate(fd, 1 << 20));
	file = open_own(map_fd(fd), 0);
	ASSERT_EQ(file->state, FILE_OPEN);
	ASSERT(!file->is_elf);
	/* Not kept open: it would keep the JIT's memory. */
	ASSERT_EQ(file->fd, -1);
	close(fd);
	stop();
}

/* Without its program headers nobody can say where code lies; with them the file does no harm. */
TEST(a_cut_off_elf_file)
{
	struct mapped_file *file;

	start();
	for (size_t size = 10; size <= 410; size += 50) {
		struct elf_file *elf;
		int fd = make_memfd("/usr/bin/cat", size);

		file = open_own(map_fd(fd), 0);
		ASSERT_EQ(file->state, FILE_OPEN);
		ASSERT_EQ(file->is_elf, file->segments.nr > 0);
		ASSERT_EQ(file->is_elf, file->fd >= 0);
		if (size < 120)
			ASSERT(!file->is_elf);
		if (!file->is_elf)
			ASSERT_ERR(mapped_file_elf(&t, file, &elf), ENOEXEC);
		close(fd);
	}
	stop();
}

TEST(an_elf_file_of_another_class_is_unreadable)
{
	struct mapped_file *file;
	int fd;

	start();
	fd = make_memfd("/usr/bin/cat", WHOLE);
	ASSERT_EQ(pwrite(fd, (char[]){ ELFCLASS32 }, 1, EI_CLASS), 1);
	file = open_own(map_fd(fd), 1);
	ASSERT_EQ(file->state, FILE_UNREADABLE);
	ASSERT_EQ(file->error, -ENOTSUP);
	ASSERT_EQ(file->fd, -1);
	close(fd);
	stop();
}

TEST(devices_are_not_opened)
{
	struct mapped_file *file;
	int fd;
	void *p;

	start();
	/* /dev/zero mapped private keeps its name; the file is a character device. */
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ASSERT(p != MAP_FAILED);
	file = open_own(p, 0);
	ASSERT_EQ(file->index, MAPPING_ANON);
	close(fd);
	stop();
}

TEST(only_the_right_inode_is_believed)
{
	struct file_key key = { 0 };
	struct stat st;
	int root = open("/", O_PATH | O_CLOEXEC), fd;

	ASSERT_OK(stat("/usr/bin/cat", &st));
	key = (struct file_key){ major(st.st_dev), minor(st.st_dev), st.st_ino };
	ASSERT_OK(open_below(NULL, root, "/usr/bin/cat", &key, &fd));
	close(fd);
	ASSERT_OK(open_below(NULL, root, "/../../usr/bin/cat", &key, &fd));
	close(fd);
	key.inode++;
	ASSERT_ERR(open_below(NULL, root, "/usr/bin/cat", &key, &fd), ESTALE);
	key.inode--;
	key.dev_minor++;
	ASSERT_ERR(open_below(NULL, root, "/usr/bin/cat", &key, &fd), ESTALE);
	ASSERT_ERR(open_below(NULL, root, "/nowhere", &key, &fd), ENOENT);
	ASSERT_ERR(open_below(NULL, root, "memfd:x", &key, &fd), ENOENT);
	ASSERT_OK(stat("/dev/null", &st));
	key = (struct file_key){ major(st.st_dev), minor(st.st_dev), st.st_ino };
	ASSERT_ERR(open_below(NULL, root, "/dev/null", &key, &fd), ESTALE);
	close(root);
}

TEST(a_root_is_not_left_by_a_link)
{
	struct file_key key;
	struct stat st;
	int root, fd;

	ASSERT_PTR_NONNULL(mkdtemp(dir));
	ASSERT_OK(stat("/usr/bin/cat", &st));
	key = (struct file_key){ major(st.st_dev), minor(st.st_dev), st.st_ino };
	ASSERT_OK(symlink("/usr", in_dir("usr")));
	root = open(dir, O_PATH | O_CLOEXEC);
	ASSERT(open_below(NULL, root, "/usr/bin/cat", &key, &fd) < 0);
	close(root);
	ASSERT_OK(unlink(in_dir("usr")));
	ASSERT_OK(rmdir(dir));
}

TEST(the_vdso)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;
	struct test_child cat;

	start();
	cat = spawn_cat(NULL, "/usr/bin/cat");
	pump();
	file = find(cat.pid, "[vdso]", &proc, &m);
	ASSERT_OK(process_open_file(&t, proc, m, file));
	ASSERT(file->is_elf && file->build_id_len);
	ASSERT_EQ(mapping_bias(file, m), m->start);
	ASSERT_OK(mapped_file_elf(&t, file, &elf));
	ASSERT_PTR_NONNULL(elf_file_section(elf, ".dynsym"));
	end(&cat);
	stop();
}

/* Runs with a vDSO of its own making, until it is ended. */
__attribute__((noreturn)) static void edit_own_vdso(int ready)
{
	const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	bool forged = false;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The first page has the names of its functions and their versions. */
	for (const char *p = vdso; p < vdso + 4096 - 8; p++)
		if (!memcmp(p, "LINUX_", 6))
			forged |= pwrite(mem, "forged", 6, (off_t)(uintptr_t)p) == 6;
	if (forged && write(ready, "", 1) == 1)
		pause();
	_exit(1);
}

TEST(a_vdso_that_its_process_wrote_to)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;
	struct process *edited;
	int ready[2];
	char byte;
	pid_t pid;

	start();
	ASSERT_OK(pipe(ready));
	pid = fork();
	if (!pid)
		edit_own_vdso(ready[1]);
	close(ready[1]);
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	ASSERT_OK(process_get(&t, pid, &edited));
	file = find(pid, "[vdso]", &proc, &m);
	ASSERT_OK(process_open_file(&t, proc, m, file));
	ASSERT_OK(mapped_file_elf(&t, file, &elf));
	ASSERT(memmem(elf->memory, elf->size, "LINUX_", 6));
	ASSERT(!memmem(elf->memory, elf->size, "forged", 6));
	close(ready[0]);
	ASSERT_OK(kill(pid, SIGKILL));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	stop();
}

TEST(the_vdso_of_a_process_that_is_gone)
{
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;
	struct test_child cat;

	start();
	cat = spawn_cat(NULL, "/usr/bin/cat");
	end(&cat);
	pump();
	file = find(cat.pid, "[vdso]", &proc, &m);
	ASSERT_OK(process_open_file(&t, proc, m, file));
	ASSERT(file->is_elf && file->build_id_len);
	ASSERT_EQ(mapping_bias(file, m), m->start);
	stop();
}

TEST(descriptors_run_short)
{
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *exe, *libc;
	struct test_child cat;

	start();
	t.private->max_fds = 1;
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("cat"), WHOLE));
	cat = spawn_cat(NULL, in_dir("cat"));
	pump();
	libc = assert_opens(cat.pid, "/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6");
	ASSERT(libc->fd >= 0);
	exe = assert_opens(cat.pid, "/cat", "/usr/bin/cat");
	ASSERT(exe->fd >= 0);
	ASSERT_EQ(libc->fd, -1);
	/* It is had again by its path, and still is the same file. */
	assert_same_contents(libc, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	ASSERT_OK(process_refresh(&t, process_find(&t, cat.pid)));
	ASSERT(find(cat.pid, "/libc.so.6", &proc, &m) == libc);
	/* One that could not be had again is never closed: the next one has to do without. */
	ASSERT_OK(unlink(in_dir("cat")));
	struct mapped_file *ld = find(cat.pid, "/ld-linux-x86-64.so.2", &proc, &m);

	ASSERT_ERR(process_open_file(&t, proc, m, ld), EMFILE);
	ASSERT(exe->fd >= 0);
	end(&cat);
	stop();
}

static void apply(int32_t pid, enum side_event_type type, const struct stat *st, const char *path)
{
	struct side_event event = { .time_ns = 10, .type = type, .pid = pid, .tid = pid };

	if (st) {
		event.start = 0x10000;
		event.len = (uint64_t)st->st_size;
		event.dev_major = major(st->st_dev);
		event.dev_minor = minor(st->st_dev);
		event.inode = st->st_ino;
	}
	ASSERT_OK(process_table_apply(&t, &event, path));
}

/* A program from a file of its own, as events tell of it; the file is not there any more then. */
static struct mapped_file *run_from_own_file(int32_t pid, bool removed)
{
	const char *path = in_dir("prog");
	const struct process *proc;
	const struct mapping *m;
	struct mapped_file *file;
	char moved[160];
	struct stat st;

	ASSERT_OK(copy_file("/usr/bin/true", path, WHOLE));
	ASSERT_OK(stat(path, &st));
	apply(pid, SIDE_EXEC, NULL, "");
	apply(pid, SIDE_COMM, NULL, "prog");
	apply(pid, SIDE_MMAP, &st, path);
	file = find(pid, "/prog", &proc, &m);
	ASSERT_OK(process_open_file(&t, proc, m, file));
	ASSERT(file->fd >= 0);
	snprintf(moved, sizeof(moved), "%s/moved-%d", dir, pid);
	ASSERT_OK(removed ? unlink(path) : rename(path, moved));
	return file;
}

TEST(files_of_programs_that_ended_are_closed)
{
	enum { FIRST = 1 << 28, PROGRAMS = 200, STEP = 32, KEPT = 128 };
	struct mapped_file *living;

	start();
	living = run_from_own_file(FIRST, true);
	for (int32_t i = 1; i <= 2 * PROGRAMS; i++) {
		run_from_own_file(FIRST + i, i <= PROGRAMS);
		apply(FIRST + i, SIDE_EXIT, NULL, "");
		process_table_expire(&t, UINT64_MAX);
		/* Those that were moved might run again; but not so many. */
		ASSERT(t.private->nr_fds <= (i <= PROGRAMS ? 1 : 1 + KEPT) + STEP);
	}
	ASSERT(living->fd >= 0);
	stop();
}

TEST(a_file_written_to_is_another_file)
{
	struct mapped_file *before, *after;
	struct test_child cat;

	start();
	ASSERT_OK(copy_file("/usr/bin/cat", in_dir("prog"), WHOLE));
	cat = spawn_cat(NULL, in_dir("prog"));
	pump();
	before = assert_opens(cat.pid, "/prog", "/usr/bin/cat");
	end(&cat);
	/* That inode with other contents (and another time). */
	ASSERT_EQ(truncate(in_dir("prog"), 0), 0);
	{
		int in = open("/usr/bin/tac", O_RDONLY | O_CLOEXEC);
		int out = open(in_dir("prog"), O_WRONLY | O_CLOEXEC);

		ASSERT(sendfile(out, in, NULL, 1 << 20) > 0);
		close(in);
		close(out);
	}
	pid_t pid = fork();

	if (!pid) {
		execl(in_dir("prog"), "tac", "/dev/null", NULL);
		_exit(127);
	}
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	pump();
	after = assert_opens(pid, "/prog", "/usr/bin/tac");
	ASSERT(after != before);
	stop();
}

TEST(a_process_that_exits_at_once)
{
	pid_t pid;

	start();
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	pump();
	ASSERT(process_find(&t, pid)->exited);
	/* Its mappings are ours: we forked it. */
	assert_opens(pid, "/open_file_test", "/proc/self/exe");
	stop();
}

enum { ROUND = 100, ROUNDS = 20 };

static void run_short_ones(pid_t pids[ROUND])
{
	for (size_t n = 0; n < ROUND; n++) {
		pid_t pid = vfork();

		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		ASSERT_EQ(waitpid(pid, NULL, 0), pid);
		pids[n] = pid;
	}
}

static size_t count(enum side_event_type type, const pid_t pids[ROUND])
{
	size_t nr = 0;

	for (size_t i = 0; i < batch.events.nr; i++)
		for (size_t n = 0; n < ROUND; n++)
			nr += batch.events.items[i].type == type &&
			      batch.events.items[i].pid == pids[n];
	return nr;
}

TEST(two_thousand_short_processes)
{
	pid_t pids[ROUND];

	start();
	for (int round = 0; round < ROUNDS; round++) {
		run_short_ones(pids);
		pump();
		ASSERT_EQ(count(SIDE_FORK, pids), ROUND);
		ASSERT_EQ(count(SIDE_EXEC, pids), ROUND);
		ASSERT_EQ(count(SIDE_EXIT, pids), ROUND);
		for (size_t n = 0; n < ROUND; n++) {
			struct process *proc;

			ASSERT_OK(process_get(&t, pids[n], &proc));
			ASSERT(proc->exited && proc->complete && proc->mappings.nr >= 3);
		}
		process_table_expire(&t, UINT64_MAX);
		for (size_t n = 0; n < ROUND; n++)
			ASSERT_PTR_NULL(process_find(&t, pids[n]));
	}
	stop();
}
