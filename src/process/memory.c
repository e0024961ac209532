// SPDX-License-Identifier: Apache-2.0
#include "process/memory.h"

#include "process/at_hand.h"
#include "process/proc_identity.h"
#include "process/proc_stat.h"
#include "process/process_internal.h"
#include "process/server_watch.h"
#include "util/child.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/owners.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define RESTART_NS UINT64_C(1000000000)
/* What was given up is not tried again for so long, or until its child is over. Who waits for the
 * lock of mappings ends when it is killed. */
#define HOLD_NS	     UINT64_C(60000000000)
#define HOLD_LOCK_NS UINT64_C(5000000000)
/* An answer takes some 10 us if the child finds a CPU, as it does (CHILD_NICE). */
#define AWAKE_NS UINT64_C(50000)

enum {
	BUFFER_SIZE = 1 << 20, /* of it there is what was used */
	GIVEN_UP_MAX = 16,
	RESERVED = 4,	  /* of these, for who is trusted */
	CHILD_NICE = -19, /* it does a moment's work that we wait for */
	CHILD_MEMORY = 64 << 20,
	MEANWHILE_MS = 10,
	ANSWER_MS = 300,      /* that a page may take, from a slow disk or far away */
	LOCK_MS = 50,	      /* that the lock of mappings may take */
	ANSWER_MAX_MS = 5000, /* while the child waits for a CPU */
	SLEEPS = 16,	      /* at once, after an answer that did not come while we were awake */
};

/* READ_MAPS: the child has what was opened when it read from `addr` 0, as the file goes on there.
 */
enum kind { READ_MEMORY, READ_ENVIRON, READ_COMMAND, READ_MAPS, OPEN_MAP_FILE };

struct request {
	enum kind kind;
	int32_t pid;
	uint32_t size;
	uint64_t addr, end;
};

/* --- a read ----------------------------------------------------------------------------------- */

static int read_now(int32_t pid, uint64_t addr, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	int32_t tid;

	/* The first thread may have ended before the others: it has no memory then. */
	if (n < 0 && errno == ESRCH) {
		tid = proc_living_thread(pid);
		errno = ESRCH;
		if (tid != pid)
			n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	}
	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

static int open_proc_file(int32_t pid, const char *name)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* At most `size` bytes; their number. */
static int read_proc_file_now(int32_t pid, const char *name, void *to, size_t size)
{
	int fd = open_proc_file(pid, name), n;

	if (fd < 0)
		return fd;
	n = (int)read_at(fd, 0, to, size);
	close(fd);
	return n;
}

/* As read(), but a negative errno. */
static int read_some(int fd, void *to, size_t size)
{
	ssize_t n;

	do
		n = read(fd, to, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

static int open_map_file_now(int32_t pid, uint64_t start, uint64_t end)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* --- the child's side ------------------------------------------------------------------------- */

/* The file of mappings that is being read. */
struct open_maps {
	int fd, pid;
	uint64_t at;
};

static int read_open_maps(struct open_maps *m, const struct request *request, void *to)
{
	int n;

	if (!request->addr) {
		if (m->fd >= 0)
			close(m->fd);
		*m = (struct open_maps){ open_proc_file(request->pid, "maps"), request->pid, 0 };
	}
	if (m->fd < 0)
		return m->fd;
	if (m->pid != request->pid || m->at != request->addr)
		return -ESTALE;
	n = read_some(m->fd, to, request->size);
	m->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* An answer, and the descriptor that it is about; negative: none. */
static bool send_answer(int32_t answer, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec what = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &what, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
							     .cmsg_level = SOL_SOCKET,
							     .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
	}
	return sendmsg(CHILD_IN_FD, &message, MSG_NOSIGNAL) == sizeof(answer);
}

static bool answer_request(const struct request *request, struct open_maps *maps, void *buffer)
{
	int32_t answer = -EINVAL;
	int fd = -1;
	bool sent;

	switch (request->kind) {
	case READ_MEMORY:
		answer = read_now(request->pid, request->addr, buffer, request->size);
		break;
	case READ_ENVIRON:
		answer = read_proc_file_now(request->pid, "environ", buffer, request->size);
		break;
	case READ_COMMAND:
		answer = read_proc_file_now(request->pid, "cmdline", buffer, request->size);
		break;
	case READ_MAPS:
		answer = read_open_maps(maps, request, buffer);
		break;
	case OPEN_MAP_FILE:
		fd = open_map_file_now(request->pid, request->addr, request->end);
		answer = fd < 0 ? fd : 0;
		break;
	}
	sent = send_answer(answer, fd);
	if (fd >= 0)
		close(fd);
	return sent;
}

int memory_child_main(int argc, char **argv)
{
	struct open_maps maps = { .fd = -1 };
	struct request request;
	uint8_t *buffer =
		mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, CHILD_OUT_FD, 0);

	(void)argc;
	(void)argv;
	prctl(PR_SET_NAME, "sonde-memory");
	if (buffer == MAP_FAILED)
		return CHILD_FAILED;
	/* It works as long as we do. */
	child_restrict(BUFFER_SIZE, UINT32_MAX, CHILD_MEMORY);
	/* Ready. */
	if (!send_answer(0, -1))
		return CHILD_FAILED;
	while (recv(CHILD_IN_FD, &request, sizeof(request), 0) == sizeof(request))
		if (request.size > BUFFER_SIZE || !answer_request(&request, &maps, buffer))
			break;
	return 0;
}

/* --- the guard -------------------------------------------------------------------------------- */

struct given_up {
	uint64_t until_ns;  /* 0: a free place */
	struct child child; /* pid 0: it is over */
	int32_t pid;
	uint32_t owner;
};

static struct {
	enum memory_guard guard;
	unsigned int uses;
	pid_t own; /* whose guard it is; 0: children that are forked have none */
	bool hears_forks;
	char *const *program;
	struct server_watch servers;
	struct child child; /* pid 0: none */
	int socket;
	int heard_fd;	   /* what came with the answer; -1: nothing */
	uint8_t *buffer;   /* shared with the child */
	uint64_t start_ns; /* not before */
	uint32_t nr_sleeps;
	struct given_up given_up[GIVEN_UP_MAX];
	size_t nr_given_up;
	struct map of_owner; /* how many of these */
	uint64_t nr_reads_given_up;
	int32_t last_pid;
	void (*meanwhile)(void *ctx); /* NULL: nothing is to be done */
	void *meanwhile_ctx;
} guard = { .socket = -1, .heard_fd = -1 };

static void leave_guard(void)
{
	guard.own = 0;
}

void memory_guard_begin(enum memory_guard how, char *const *program)
{
	if (how == MEMORY_UNGUARDED || guard.uses++)
		return;
	if (!guard.hears_forks)
		guard.hears_forks = !pthread_atfork(NULL, NULL, leave_guard);
	guard.guard = how;
	guard.own = getpid();
	guard.program = program;
	server_watch_init(&guard.servers);
}

void memory_guard_meanwhile(void (*run)(void *ctx), void *ctx)
{
	guard.meanwhile = run;
	guard.meanwhile_ctx = ctx;
}

static bool is_needed(void)
{
	if (guard.guard == MEMORY_UNGUARDED)
		return false;
	return guard.guard == MEMORY_GUARDED_ALWAYS || server_watch_may_hang(&guard.servers);
}

static void forget_heard_fd(void)
{
	if (guard.heard_fd >= 0)
		close(guard.heard_fd);
	guard.heard_fd = -1;
}

/* A child that is of no use any more. */
static void forget_child(void)
{
	forget_heard_fd();
	if (guard.child.pid)
		child_end(&guard.child, true, NULL);
	guard.child = CHILD_NONE;
	if (guard.socket >= 0)
		close(guard.socket);
	guard.socket = -1;
	if (guard.buffer)
		munmap(guard.buffer, BUFFER_SIZE);
	guard.buffer = NULL;
}

void memory_guard_end(void)
{
	if (!guard.uses || --guard.uses)
		return;
	forget_child();
	/* They have been killed; when that ends them nobody knows. */
	for (size_t i = 0; i < GIVEN_UP_MAX; i++)
		if (guard.given_up[i].child.pid)
			child_leave(&guard.given_up[i].child);
	memset(guard.given_up, 0, sizeof(guard.given_up));
	guard.nr_given_up = 0;
	map_fini(&guard.of_owner);
	server_watch_fini(&guard.servers);
	guard.guard = MEMORY_UNGUARDED;
}

uint64_t memory_guard_given_up(int32_t *ret_pid)
{
	if (ret_pid)
		*ret_pid = guard.last_pid;
	return guard.nr_reads_given_up;
}

/* It waits for a CPU, and for nobody else; or it is over. */
static bool child_is_ready(void)
{
	struct proc_stat stat;

	return proc_stat_read(guard.child.pid, &stat) || stat.state == 'R';
}

/* As recv(). */
static ssize_t hear(int32_t *ret_answer, int flags)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec what = { ret_answer, sizeof(*ret_answer) };
	struct msghdr message = { .msg_iov = &what,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(guard.socket, &message, flags | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = n < 0 ? NULL : CMSG_FIRSTHDR(&message);

	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int))) {
		forget_heard_fd();
		memcpy(&guard.heard_fd, CMSG_DATA(head), sizeof(guard.heard_fd));
	}
	return n;
}

/*
 * The answer, if it comes at once. Who sleeps, if only for that, has to wait for a turn on a busy
 * machine, at any priority: a hundred milliseconds now and then, and most of all samples are lost.
 * Where the child has no CPU but ours it is no use.
 */
static ssize_t hear_awake(int32_t *ret_answer)
{
	uint64_t begin;
	ssize_t n = -1;

	if (guard.nr_sleeps) {
		guard.nr_sleeps--;
		return -1;
	}
	begin = now_ns();
	while (n < 0 && now_ns() - begin < AWAKE_NS)
		n = hear(ret_answer, MSG_DONTWAIT);
	if (n < 0)
		guard.nr_sleeps = SLEEPS;
	return n;
}

/* `patience_ms`: 0: whatever the child waits for. -ETIMEDOUT: it waits for somebody. */
static int hear_child(int32_t *ret_answer, int patience_ms)
{
	ssize_t n = patience_ms ? hear_awake(ret_answer) : -1;

	for (int ms = MEANWHILE_MS; n < 0 && ms <= ANSWER_MAX_MS; ms += MEANWHILE_MS) {
		n = hear(ret_answer, 0);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -EPIPE;
		if (n < 0 && guard.meanwhile)
			guard.meanwhile(guard.meanwhile_ctx);
		/* It may have answered meanwhile, and wait for us: then it is not given up. */
		if (n < 0 && patience_ms && ms % patience_ms == 0 && !child_is_ready()) {
			n = hear(ret_answer, MSG_DONTWAIT);
			break;
		}
	}
	return n == sizeof(*ret_answer) ? 0 : n < 0 ? -ETIMEDOUT : -EPIPE;
}

static int start_child(void)
{
	struct timeval most = { .tv_usec = MEANWHILE_MS * 1000 };
	_cleanup_close_ int memory = memfd_create("sonde-memory", MFD_CLOEXEC);
	int32_t ready;
	int ends[2], r;
	struct child_spec spec = { .program = guard.program, .main = memory_child_main };

	if (now_ns() < guard.start_ns)
		return -EAGAIN;
	guard.start_ns = now_ns() + RESTART_NS;
	if (memory < 0 || ftruncate(memory, BUFFER_SIZE) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	guard.socket = ends[0];
	spec.in_fd = ends[1];
	spec.out_fd = memory;
	guard.buffer = mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (guard.buffer == MAP_FAILED)
		guard.buffer = NULL;
	r = !guard.buffer || setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most))
		    ? -errno
		    : child_start(&spec, &guard.child);
	close(ends[1]);
	if (!r) {
		/* On a busy machine each read would wait for a turn else. */
		setpriority(PRIO_PROCESS, (id_t)guard.child.pid, CHILD_NICE);
		/* Until it says so it reads its own program, from a slow disk perhaps. */
		r = hear_child(&ready, 0);
	}
	if (r)
		forget_child();
	return r;
}

void memory_guard_tick(void)
{
	if (!guard.child.pid && is_needed())
		start_child();
}

static bool child_is_over(const struct child *child)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* Children whose reads came to an end after all, or whose server has gone. */
static void reap(void)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < GIVEN_UP_MAX; i++) {
		struct given_up *g = &guard.given_up[i];

		if (g->child.pid && child_is_over(&g->child))
			child_end(&g->child, false, NULL);
		if (!g->until_ns || g->child.pid || now < g->until_ns)
			continue;
		owners_give_back(&guard.of_owner, g->owner);
		g->until_ns = 0;
		guard.nr_given_up--;
	}
}

/* May a process's memory be read by a child that may be lost with it? */
static bool may_try(int32_t pid)
{
	uint32_t owner;

	if (!guard.nr_given_up)
		return true;
	reap();
	for (size_t i = 0; i < GIVEN_UP_MAX; i++)
		if (guard.given_up[i].until_ns && guard.given_up[i].pid == pid)
			return false;
	owner = proc_user(pid, UINT32_MAX);
	return owner_is_trusted(owner)
		       ? guard.nr_given_up < GIVEN_UP_MAX
		       : owners_may_take(&guard.of_owner, owner, GIVEN_UP_MAX - guard.nr_given_up,
					 RESERVED);
}

/* The child waits for a page that does not come, or for a lock: so it may, without us. */
static void give_up(int32_t pid, uint64_t hold_ns)
{
	uint32_t owner = proc_user(pid, UINT32_MAX);

	guard.nr_reads_given_up++;
	guard.last_pid = pid;
	kill(guard.child.pid, SIGKILL);
	for (size_t i = 0; i < GIVEN_UP_MAX; i++) {
		struct given_up *g = &guard.given_up[i];

		if (g->until_ns)
			continue;
		if (owners_take(&guard.of_owner, owner))
			break;
		*g = (struct given_up){ now_ns() + hold_ns, guard.child, pid, owner };
		guard.nr_given_up++;
		guard.child = CHILD_NONE;
		break;
	}
	forget_child();
	guard.start_ns = 0;
	log_debug("memory of process %d does not come", pid);
}

/* What the child answers is in guard.buffer then. */
static int read_by_child(const struct request *request)
{
	bool locks = request->kind != READ_MEMORY;
	int32_t answer;
	int r = guard.child.pid ? 0 : start_child();

	if (r)
		return r;
	if (send(guard.socket, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
		r = -EPIPE;
	else
		r = hear_child(&answer, locks ? LOCK_MS : ANSWER_MS);
	if (r == -ETIMEDOUT)
		give_up(request->pid, locks ? HOLD_LOCK_NS : HOLD_NS);
	else if (r)
		forget_child(); /* somebody killed it */
	return r ? r : answer;
}

static bool is_guarded(int32_t pid)
{
	pid_t own = guard.own;

	/* getpid() is a system call, as much as a tenth of a read. */
	if (!guard.hears_forks && own != getpid())
		return false;
	return own && pid != own && is_needed();
}

int process_read_memory(int32_t pid, uint64_t addr, void *to, size_t size)
{
	struct request request = { READ_MEMORY, .pid = pid };
	size_t done = 0;
	int r = 0;

	if (!is_guarded(pid) || memory_is_at_hand(pid, addr, size))
		return read_now(pid, addr, to, size);
	if (!may_try(pid))
		return -ETIMEDOUT;
	for (; done < size && !r; done += request.size) {
		request.addr = addr + done;
		request.size = (uint32_t)(size - done < BUFFER_SIZE ? size - done : BUFFER_SIZE);
		r = read_by_child(&request);
		if (!r)
			memcpy((uint8_t *)to + done, guard.buffer, request.size);
	}
	return r;
}

/* What fills guard.buffer: the answer. */
static int ask_child(const struct request *request)
{
	return may_try(request->pid) ? read_by_child(request) : -ETIMEDOUT;
}

int process_read_environ(int32_t pid, char **ret, size_t *ret_size)
{
	struct request request = { READ_ENVIRON, .pid = pid, .size = PROCESS_ENVIRON_MAX };
	char path[32], *text;
	int n;

	if (!is_guarded(pid)) {
		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		return read_file_at(AT_FDCWD, path, PROCESS_ENVIRON_MAX, ret, ret_size);
	}
	n = ask_child(&request);
	if (n < 0)
		return n;
	if (n == PROCESS_ENVIRON_MAX)
		return -EFBIG;
	text = malloc((size_t)n + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, guard.buffer, (size_t)n);
	text[n] = '\0';
	*ret = text;
	*ret_size = (size_t)n;
	return 0;
}

int process_read_command(int32_t pid, void *to, size_t size)
{
	struct request request = { READ_COMMAND, .pid = pid, .size = (uint32_t)size };
	int n;

	if (!is_guarded(pid))
		return read_proc_file_now(pid, "cmdline", to, size);
	n = ask_child(&request);
	if (n > 0)
		memcpy(to, guard.buffer, (size_t)n);
	return n;
}

int process_open_maps(int32_t pid, struct process_maps *ret)
{
	*ret = (struct process_maps){ .pid = pid, .fd = -1 };
	if (is_guarded(pid))
		return 0;
	ret->fd = open_proc_file(pid, "maps");
	return ret->fd < 0 ? ret->fd : 0;
}

int process_read_maps(struct process_maps *maps, void *to, size_t size)
{
	struct request request = { READ_MAPS, maps->pid, (uint32_t)size, .addr = maps->at };
	int n;

	if (maps->fd >= 0)
		return read_some(maps->fd, to, size);
	n = ask_child(&request);
	if (n > 0) {
		memcpy(to, guard.buffer, (size_t)n);
		maps->at += (uint64_t)n;
	}
	return n;
}

void process_close_maps(struct process_maps *maps)
{
	if (maps->fd >= 0)
		close(maps->fd);
}

int process_open_map_file(int32_t pid, uint64_t start, uint64_t end, int *ret)
{
	struct request request = { OPEN_MAP_FILE, .pid = pid, .addr = start, .end = end };
	int r;

	if (!is_guarded(pid)) {
		r = open_map_file_now(pid, start, end);
	} else {
		r = ask_child(&request);
		if (!r)
			r = guard.heard_fd < 0 ? -EMFILE : TAKE_FD(guard.heard_fd);
	}
	if (r < 0)
		return r;
	*ret = r;
	return 0;
}
