// SPDX-License-Identifier: Apache-2.0
/* Real processes, real files that are deleted, replaced, elsewhere or odd; and the side band's
 * news. */
#include "process/test_real_processes.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

TEST_SKIP_REASON()
{
	return why_not();
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
	char name[256];
	pid_t pid;

	start();
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	pump();
	ASSERT(process_find(&t, pid)->exited);
	/* Its mappings are ours: we forked it. */
	snprintf(name, sizeof(name), "/%s", program_invocation_short_name);
	assert_opens(pid, name, "/proc/self/exe");
	stop();
}

enum { PROCESSES = 2000, ROUND = 100 };

static pid_t run_short_one(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	return pid;
}

static size_t count(enum side_event_type type, const pid_t *pids, size_t nr_pids)
{
	size_t nr = 0;

	for (size_t i = 0; i < batch.events.nr; i++)
		for (size_t n = 0; n < nr_pids; n++)
			nr += batch.events.items[i].type == type &&
			      batch.events.items[i].pid == pids[n];
	return nr;
}

/* The kernel tells of it with the next record that fits, each CPU's of its own. */
static bool was_any_lost(void)
{
	cpu_set_t all, one;

	ASSERT_OK(sched_getaffinity(0, sizeof(all), &all));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (!CPU_ISSET(cpu, &all) || sched_setaffinity(0, sizeof(one), &one))
			continue;
		prctl(PR_SET_NAME, "any lost?");
	}
	ASSERT_OK(sched_setaffinity(0, sizeof(all), &all));
	return !pump_what_came();
}

/* False: others had so many news meanwhile that some of these were lost. */
static bool hear_of_short_ones(pid_t *pids, size_t nr)
{
	size_t forks, execs, exits;
	bool whole, surely;

	for (size_t n = 0; n < nr; n++)
		pids[n] = run_short_one();
	whole = pump_what_came();
	surely = batch.is_whole;
	forks = count(SIDE_FORK, pids, nr);
	execs = count(SIDE_EXEC, pids, nr);
	exits = count(SIDE_EXIT, pids, nr);
	if (!whole || (!surely && was_any_lost()))
		return false;
	ASSERT_EQ(forks, nr);
	ASSERT_EQ(execs, nr);
	ASSERT_EQ(exits, nr);
	return true;
}

TEST(two_thousand_short_processes)
{
	enum { LOST_MAX = 100 };
	size_t round = ROUND, nr_lost = 0;
	pid_t pids[ROUND];

	start();
	for (size_t heard_of = 0; heard_of < PROCESSES;) {
		if (!hear_of_short_ones(pids, round)) {
			ASSERT(++nr_lost < LOST_MAX);
			round = (round + 1) / 2;
			process_table_expire(&t, UINT64_MAX);
			continue;
		}
		heard_of += round;
		for (size_t n = 0; n < round; n++) {
			struct process *proc;

			ASSERT_OK(process_get(&t, pids[n], &proc));
			ASSERT(proc->exited && proc->complete && proc->mappings.nr >= 3);
		}
		process_table_expire(&t, UINT64_MAX);
		for (size_t n = 0; n < round; n++)
			ASSERT_PTR_NULL(process_find(&t, pids[n]));
	}
	stop();
}
