// SPDX-License-Identifier: Apache-2.0
#include "process/file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/process_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/owners.h"

enum {
	ARG_SIZE = 128,
	NR_ARGS = 2, /* what, and the path */
	JOBS_RESERVED = COPIES_AT_ONCE / 4,
	BYTES_RESERVED = 4, /* a quarter of all is for root's and our own processes */
	FILE_PART = 2,	    /* no file takes more than half of what is free */
	CHILD_CPU_S = 10,
	CHILD_MEMORY = 512 << 20, /* beside the copy, which is mapped */
	BUFFER_SIZE = 1 << 16,
};

#define GIVE_UP_NS	  3000000000ull
#define BYTES_MAX_DEFAULT (UINT64_C(256) << 20)

static const struct copy_job no_job = { .child = { .messages = -1, .lifeline = { -1, -1 } },
					.out_fd = -1 };

void file_copier_init(struct file_copier *c)
{
	*c = (struct file_copier){ .bytes_max = BYTES_MAX_DEFAULT };
	for (size_t i = 0; i < COPIES_AT_ONCE; i++)
		c->jobs[i] = no_job;
}

static void job_end(struct file_copier *c, struct copy_job *job, int *ret_status)
{
	if (job->child.pid) {
		if (child_end(&job->child, true, ret_status))
			*ret_status = -1;
		owners_give_back(&c->jobs_of_owner, job->owner);
		c->bytes_of_jobs -= job->bytes;
		c->nr_jobs--;
	}
	if (job->out_fd >= 0)
		close(job->out_fd);
	*job = no_job;
}

void file_copier_fini(struct file_copier *c)
{
	int status;

	/* All at once: those that take their time take the same time. */
	for (size_t i = 0; i < COPIES_AT_ONCE; i++)
		if (c->jobs[i].child.pid)
			kill(c->jobs[i].child.pid, SIGKILL);
	for (size_t i = 0; i < COPIES_AT_ONCE; i++)
		job_end(c, &c->jobs[i], &status);
	map_fini(&c->bytes_of_owner);
	map_fini(&c->jobs_of_owner);
}

/* --- shares ----------------------------------------------------------------------------------- */

/* How large the owner's next copy may be, with so much taken. */
static uint64_t room_for(const struct file_copier *c, uint32_t owner, uint64_t taken,
			 uint64_t of_owner)
{
	uint64_t nr_free = taken < c->bytes_max ? c->bytes_max - taken : 0;

	if (owner_is_trusted(owner))
		return nr_free / FILE_PART;
	nr_free = nr_free > c->bytes_max / BYTES_RESERVED
			  ? (nr_free - c->bytes_max / BYTES_RESERVED) / OWNERS_PART
			  : 0;
	return nr_free > of_owner ? nr_free - of_owner : 0;
}

int file_copier_keep(struct file_copier *c, uint32_t owner, uint64_t bytes)
{
	const uint64_t *of_owner = map_get(&c->bytes_of_owner, owner);
	int r = map_put(&c->bytes_of_owner, owner, (of_owner ? *of_owner : 0) + bytes);

	if (!r)
		c->bytes += bytes;
	return r;
}

void file_copier_give_back(struct file_copier *c, uint32_t owner, uint64_t bytes)
{
	uint64_t *of_owner = map_get(&c->bytes_of_owner, owner);

	c->bytes -= bytes;
	if (of_owner && !(*of_owner -= bytes))
		map_del(&c->bytes_of_owner, owner);
}

/* --- jobs ------------------------------------------------------------------------------------- */

struct copy_job *file_copier_find(struct file_copier *c, uint32_t file)
{
	for (size_t i = 0; i < COPIES_AT_ONCE; i++)
		if (c->jobs[i].child.pid && !c->jobs[i].given_up && c->jobs[i].file == file)
			return &c->jobs[i];
	return NULL;
}

static struct copy_job *free_place(struct file_copier *c, uint32_t owner)
{
	if (c->nr_jobs == COPIES_AT_ONCE ||
	    (!owner_is_trusted(owner) &&
	     !owners_may_take(&c->jobs_of_owner, owner, COPIES_AT_ONCE - c->nr_jobs,
			      JOBS_RESERVED)))
		return NULL;
	for (size_t i = 0; i < COPIES_AT_ONCE; i++)
		if (!c->jobs[i].child.pid)
			return &c->jobs[i];
	return NULL;
}

static int start_child(const struct file_copier *c, const struct copy_order *o,
		       struct copy_job *job)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct mapped_file *file = o->file;
	char what[ARG_SIZE], *args[NR_ARGS] = { what, file->path };
	struct child_spec spec = {
		.program = c->program,
		.main = file_copy_child_main,
		.args = args,
		.nr_args = NR_ARGS,
		.in_fd = root_fd,
		.out_fd = job->out_fd,
		.nr_more_fds = o->nr_roots,
	};

	if (root_fd < 0)
		return -errno;
	memcpy(spec.more_fds, o->roots, o->nr_roots * sizeof(o->roots[0]));
	snprintf(what, sizeof(what), "%d,%llx,%llx,%x,%x,%llx,%llx,%zu", o->pid,
		 (unsigned long long)o->start, (unsigned long long)o->end, file->key.dev_major,
		 file->key.dev_minor, (unsigned long long)file->key.inode,
		 (unsigned long long)job->bytes, o->nr_roots);
	return child_start(&spec, &job->child);
}

int file_copier_start(struct file_copier *c, const struct copy_order *o)
{
	const uint64_t *of_owner = map_get(&c->bytes_of_owner, o->owner);
	struct copy_job *job = free_place(c, o->owner), new = no_job;
	int r;

	if (!job)
		return -EAGAIN;
	new.file = o->file->index;
	new.key = o->file->key;
	new.owner = o->owner;
	new.bytes = room_for(c, o->owner, c->bytes + c->bytes_of_jobs, of_owner ? *of_owner : 0);
	new.give_up_ns = now_ns() + GIVE_UP_NS;
	if (!new.bytes)
		return -ENOSPC;
	r = owners_take(&c->jobs_of_owner, o->owner);
	if (r)
		return r;
	new.out_fd = memfd_create("sonde-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = new.out_fd < 0 ? -errno : start_child(c, o, &new);
	if (r) {
		owners_give_back(&c->jobs_of_owner, o->owner);
		if (new.out_fd >= 0)
			close(new.out_fd);
		return r;
	}
	c->nr_jobs++;
	c->bytes_of_jobs += new.bytes;
	*job = new;
	return 0;
}

void file_copier_drop(struct file_copier *c, struct copy_job *job)
{
	siginfo_t info = { 0 };
	int status;

	/* Its place is taken until it has ended: that may be never. */
	if (!job->given_up)
		kill(job->child.pid, SIGKILL);
	job->given_up = true;
	if (waitid(P_PID, (id_t)job->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
		job_end(c, job, &status);
}

/* What a child that has ended left behind. */
static int result_of(struct copy_job *job, struct file_copy *ret)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	struct stat st;

	if (read(job->child.messages, ret, sizeof(*ret)) != sizeof(*ret))
		return -EIO;
	if (ret->error)
		return ret->error < 0 ? ret->error : -EIO;
	if (fcntl(job->out_fd, F_ADD_SEALS, seals) || fstat(job->out_fd, &st))
		return -errno;
	return (uint64_t)st.st_size == ret->size ? 0 : -EIO;
}

int file_copier_take(struct file_copier *c, struct copy_job *job, int wait_ms, int *ret_fd,
		     struct file_copy *ret)
{
	struct pollfd p = { .fd = job->child.messages };
	uint64_t most = room_for(c, job->owner, 0, 0), bytes = job->bytes;
	int r, status = 0;

	/* Its end of the pipe is closed: it has ended. */
	if (poll(&p, 1, wait_ms) <= 0 || !(p.revents & POLLHUP)) {
		if (now_ns() < job->give_up_ns)
			return -EINPROGRESS;
		file_copier_drop(c, job);
		return -ETIMEDOUT;
	}
	r = result_of(job, ret);
	if (!r)
		*ret_fd = TAKE_FD(job->out_fd);
	job_end(c, job, &status);
	return r == -EFBIG && bytes < most ? -ENOSPC : r;
}

/* --- the child's side ------------------------------------------------------------------------- */

static int copy_bytes(int fd, uint64_t most, uint64_t *ret_size)
{
	static char buffer[BUFFER_SIZE];
	uint64_t size = 0;

	for (;;) {
		ssize_t n = pread(fd, buffer, sizeof(buffer), (off_t)size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		if (size + (uint64_t)n > most)
			return -EFBIG;
		if (pwrite(CHILD_OUT_FD, buffer, (size_t)n, (off_t)size) != n)
			return -EIO;
		size += (uint64_t)n;
	}
	*ret_size = size;
	return 0;
}

/* Of all bytes, as the copy has them: nobody else can make a file that has it. */
static int identify(uint64_t size, struct file_identity *ret)
{
	void *data;

	if (!size)
		return -ENOEXEC;
	data = mmap(NULL, size, PROT_READ, MAP_SHARED, CHILD_OUT_FD, 0);
	return data == MAP_FAILED ? -errno : file_identity_of_memory(data, size, ret);
}

static int copy(int fd, uint64_t most, struct file_copy *ret)
{
	struct stat before, after;
	int r;

	if (fstat(fd, &before))
		return -errno;
	if (!S_ISREG(before.st_mode))
		return -ENOEXEC;
	if ((uint64_t)before.st_size > most)
		return -EFBIG;
	r = copy_bytes(fd, most, &ret->size);
	if (r)
		return r;
	if (fstat(fd, &after))
		return -errno;
	if (before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
	    before.st_mtim.tv_nsec != after.st_mtim.tv_nsec)
		return -EAGAIN;
	ret->owner = after.st_uid;
	return identify(ret->size, &ret->identity);
}

static int run(int argc, char **argv, struct file_copy *ret)
{
	unsigned long long start, end, inode, most;
	int roots[COPY_ROOTS_MAX + 1], pid, r;
	_cleanup_close_ int fd = -1;
	struct mapped_file file = { 0 };
	struct mapping m = { 0 };
	size_t nr_roots;

	if (argc < NR_ARGS ||
	    sscanf(argv[argc - 2], "%d,%llx,%llx,%x,%x,%llx,%llx,%zu", &pid, &start, &end,
		   &file.key.dev_major, &file.key.dev_minor, &inode, &most, &nr_roots) != 8 ||
	    nr_roots > COPY_ROOTS_MAX)
		return -EINVAL;
	file.key.inode = inode;
	file.path = argv[argc - 1];
	m.start = start;
	m.end = end;
	for (size_t i = 0; i < nr_roots; i++)
		roots[i] = CHILD_MORE_FD + (int)i;
	roots[nr_roots++] = CHILD_IN_FD;
	child_restrict(most, CHILD_CPU_S, CHILD_MEMORY + most);
	r = open_file_patiently(pid, &m, &file, roots, nr_roots, &fd);
	child_drop_capabilities(0); /* what comes from a server is not looked at with them */
	return r ? r : copy(fd, most, ret);
}

int file_copy_child_main(int argc, char **argv)
{
	struct file_copy found = { 0 };

	prctl(PR_SET_NAME, "sonde-copy");
	found.error = run(argc, argv, &found);
	return write(CHILD_MESSAGES_FD, &found, sizeof(found)) == sizeof(found) ? 0 : CHILD_FAILED;
}
