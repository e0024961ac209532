// SPDX-License-Identifier: Apache-2.0
/*
 * The side band's rings: one dummy perf event and its buffer on each online CPU.
 *
 * Order. A drain takes the clock first and leaves later records where they are. A record that
 * caused another one (fork before the child's exec, on another CPU) was complete before the other's
 * clock was read, so what a drain returns never has an effect without its cause. docs/processes.md.
 */
#include "process/side_band_internal.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/proc_stat.h"
#include "util/clock.h"
#include "util/cpus.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/map.h"

enum {
	/* Processes whose leader ended before its threads: rare. */
	HALF_DEAD_MAX = 4096,
	ALONE_MAX = 8192, /* the others are looked at when they end */
	LOOKS_MAX = 64,	  /* at so many of them in a drain, in turn: each costs 20 us */
	NEWS_NS =
		1000000000, /* how long after one of its threads has ended a process may be over */
	AGAIN_NS = 1000000000, /* between two looks at all of them, whatever was heard */
};

struct side_ring {
	uint32_t cpu;
	int fd;
	struct perf_event_mmap_page *page;
	bool offline; /* the CPU left: one more drain, then closed */
};

struct side_band {
	VEC(struct side_ring) rings;
	size_t ring_size; /* data, without the control page */
	size_t page_size;
	int epoll_fd;
	struct cpu_set *cpus; /* borrowed */
	uint8_t *linear;      /* a ring's contents, if they wrap around */
	struct map alone;     /* pids of processes that have one thread, for all that was heard */
	struct map half_dead; /* pid -> the time of its last thread's exit that was heard of */
	size_t half_dead_at;  /* the next of these to be looked at */
	size_t nr_again;      /* so many of these are looked at whatever was heard of them */
	uint64_t again_ns;    /* when all of these are next */
	uint64_t lost;	      /* records that we had to drop */
	bool crowded;	      /* some ring was so full that news may have been lost since */
	bool unheard;	      /* a CPU came, and may have had news before its ring was there */
};

static void ring_close(struct side_band *sb, struct side_ring *ring)
{
	if (ring->page)
		munmap(ring->page, sb->page_size + sb->ring_size);
	if (ring->fd >= 0)
		close(ring->fd);
	ring->page = NULL;
	ring->fd = -1;
}

static int ring_open(struct side_band *sb, uint32_t cpu, struct side_ring *ret)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = SIDE_SAMPLE_TYPE,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = 1, /* since 5.1 */
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* wakeup_events counts samples only: it would never wake us. */
		.watermark = 1,
		.wakeup_watermark = 1, /* at once: the kernel walks by what it was told last */
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED, /* cpu_set_watch() */
	};
	struct side_ring ring = { .cpu = cpu, .fd = -1 };
	int r = 0;
	void *p;

	ring.fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring.fd < 0)
		return -errno;
	p = mmap(NULL, sb->page_size + sb->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
		 0);
	if (p == MAP_FAILED)
		r = -errno;
	else
		ring.page = p;
	if (!r)
		r = loop_watch(sb->epoll_fd, ring.fd);
	if (r) {
		ring_close(sb, &ring);
		return r;
	}
	*ret = ring;
	return 0;
}

static struct side_ring *find_ring(const struct side_band *sb, uint32_t cpu)
{
	for (size_t i = 0; i < sb->rings.nr; i++)
		if (sb->rings.items[i].cpu == cpu && !sb->rings.items[i].offline)
			return &sb->rings.items[i];
	return NULL;
}

static int add_cpu(struct side_band *sb, uint32_t cpu)
{
	struct side_ring ring;
	int r;

	if (find_ring(sb, cpu))
		return 0;
	r = vec_reserve(&sb->rings, sb->rings.nr + 1);
	if (!r)
		r = ring_open(sb, cpu, &ring);
	if (r)
		return r;
	r = cpu_set_watch(sb->cpus, cpu, ring.fd);
	if (r) {
		ring_close(sb, &ring);
		return r;
	}
	sb->unheard = true;
	return vec_push(&sb->rings, ring);
}

static int change_cpu(void *ctx, uint32_t cpu, bool online)
{
	struct side_band *sb = ctx;
	struct side_ring *ring = find_ring(sb, cpu);

	if (online)
		return add_cpu(sb, cpu);
	if (ring)
		ring->offline = true;
	return 0;
}

int side_band_open(struct cpu_set *cpus, uint32_t pages, struct side_band **ret)
{
	struct side_band *sb;
	int r = 0;

	if (!pages || pages & (pages - 1))
		return -EINVAL;
	sb = calloc(1, sizeof(*sb));
	if (!sb)
		return -ENOMEM;
	sb->cpus = cpus;
	sb->page_size = (size_t)sysconf(_SC_PAGESIZE);
	sb->ring_size = sb->page_size * pages;
	sb->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (sb->epoll_fd < 0)
		r = -errno;
	if (!r)
		r = cpu_set_listen(cpus, change_cpu, sb);
	if (!r && !sb->rings.nr)
		r = err_new(-ENODEV);
	sb->unheard = false;
	if (r) {
		side_band_free(sb);
		return r;
	}
	*ret = sb;
	return 0;
}

void side_band_free(struct side_band *sb)
{
	if (!sb)
		return;
	cpu_set_leave(sb->cpus, sb);
	for (size_t i = 0; i < sb->rings.nr; i++) {
		(void)cpu_set_watch(sb->cpus, sb->rings.items[i].cpu, -1);
		ring_close(sb, &sb->rings.items[i]);
	}
	vec_free(&sb->rings);
	map_fini(&sb->alone);
	map_fini(&sb->half_dead);
	free(sb->linear);
	if (sb->epoll_fd >= 0)
		close(sb->epoll_fd);
	free(sb);
}

int side_band_fd(const struct side_band *sb)
{
	return sb->epoll_fd;
}

size_t side_band_bytes(const struct side_band *sb)
{
	return sizeof(*sb) + sb->rings.nr * (sb->page_size + sb->ring_size) +
	       sb->rings.cap * sizeof(*sb->rings.items) + map_bytes(&sb->alone) +
	       map_bytes(&sb->half_dead) + (sb->linear ? sb->ring_size : 0);
}

/* The bytes [tail, tail + size) of a ring as one piece. */
static const uint8_t *ring_bytes(struct side_band *sb, const struct side_ring *ring, uint64_t tail,
				 size_t size)
{
	const uint8_t *data = (const uint8_t *)ring->page + sb->page_size;
	size_t at = (size_t)tail & (sb->ring_size - 1), first = sb->ring_size - at;

	if (first >= size)
		return data + at;
	if (!sb->linear)
		sb->linear = malloc(sb->ring_size);
	if (!sb->linear)
		return NULL;
	memcpy(sb->linear, data + at, first);
	memcpy(sb->linear + first, data, size - first);
	return sb->linear;
}

static void drain_ring(struct side_band *sb, struct side_ring *ring, uint64_t until_ns,
		       struct side_events *batch)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	size_t size = (size_t)(head - tail), used = 0;
	const uint8_t *bytes;
	int r;

	if (!size)
		return;
	/* That something found no room the kernel tells later. */
	sb->crowded |= size > sb->ring_size / 2;
	bytes = size <= sb->ring_size ? ring_bytes(sb, ring, tail, size) : NULL;
	r = bytes ? side_band_parse_until(bytes, size, until_ns, batch, &used) : -ENOMEM;
	if (r) {
		/* What follows can't be had: it is lost, and said to be so. */
		log_debug("side band of CPU %u: %s", ring->cpu, strerror(-r));
		sb->lost++;
		used = size;
	}
	__atomic_store_n(&ring->page->data_tail, tail + used, __ATOMIC_RELEASE);
}

static bool looks_over(int32_t pid)
{
	struct proc_stat stat;
	int r = proc_stat_read(pid, &stat);

	/* Any other failure says nothing: it is asked again at the next drain. */
	return r ? r == -ESRCH : proc_stat_is_over(&stat);
}

/*
 * Most are gone, which is told at a tenth of what /proc takes. The others are looked at twice:
 * while an exec by another thread takes over the pid, the first look may meet the old leader.
 */
static bool is_over(int32_t pid)
{
	return proc_is_gone(pid) || (looks_over(pid) && looks_over(pid));
}

/* Nothing that concerns these events was lost, as far as one can know. */
static bool is_whole(const struct side_band *sb, const struct side_events *batch)
{
	for (size_t i = 0; i < batch->events.nr; i++)
		if (batch->events.items[i].type == SIDE_LOST)
			return false;
	return !sb->crowded && !sb->lost && !sb->unheard;
}

/* Who was forked, or has executed something, has one thread, until there is news of another. */
static void note_threads(struct side_band *sb, const struct side_event *event, bool is_whole)
{
	uint64_t *heard_ns;

	if (event->type == SIDE_THREAD)
		map_del(&sb->alone, (uint32_t)event->pid);
	if (event->type == SIDE_THREAD_EXIT && sb->half_dead.nr) {
		heard_ns = map_get(&sb->half_dead, (uint32_t)event->pid);
		if (heard_ns)
			*heard_ns = event->time_ns;
	}
	if (event->type != SIDE_FORK && event->type != SIDE_EXEC)
		return;
	map_del(&sb->half_dead, (uint32_t)event->pid);
	/* Without memory it is looked at. */
	if (is_whole && sb->alone.nr < ALONE_MAX)
		(void)map_put(&sb->alone, (uint32_t)event->pid, 1);
}

/*
 * The kernel reports the leader's exit, not the process's. Keeps those that were the end: of a
 * process with one thread it was; others are looked at, and if they live again when a thread of
 * theirs ends (report_half_dead()). An exec by another thread makes that one the leader, and a fork
 * of the same pid means that the old process ended.
 */
static void settle_exits(struct side_band *sb, struct side_events *batch)
{
	bool whole = is_whole(sb, batch);
	size_t kept = 0;

	if (!whole)
		map_clear(&sb->alone);
	batch->is_whole = whole;
	sb->crowded = false;
	for (size_t i = 0; i < batch->events.nr; i++) {
		struct side_event *event = &batch->events.items[i];

		note_threads(sb, event, whole);
		if (event->type == SIDE_THREAD)
			continue;
		if (event->type == SIDE_EXIT && !map_del(&sb->alone, (uint32_t)event->pid) &&
		    !is_over(event->pid) && sb->half_dead.nr < HALF_DEAD_MAX &&
		    !map_put(&sb->half_dead, (uint32_t)event->pid, event->time_ns))
			continue;
		batch->events.items[kept++] = *event;
	}
	batch->events.nr = kept;
}

/* In turn, and no one twice. */
static struct map_slot *next_half_dead(struct side_band *sb)
{
	struct map_slot *slot = map_next(&sb->half_dead, &sb->half_dead_at);

	if (!slot)
		sb->half_dead_at = 0;
	return slot ?: map_next(&sb->half_dead, &sb->half_dead_at);
}

/*
 * A process is over with its last thread, which the kernel tells a little before /proc does: those
 * of which nothing was heard lately are looked at now and then only, since that may have been lost.
 */
static int report_half_dead(struct side_band *sb, uint64_t now, struct side_events *batch)
{
	size_t looks = LOOKS_MAX;

	if (now >= sb->again_ns) {
		sb->again_ns = now + AGAIN_NS;
		sb->nr_again = sb->half_dead.nr;
	}
	for (size_t left = sb->half_dead.nr; left && looks; left--) {
		struct map_slot *slot = next_half_dead(sb);
		int32_t pid = (int32_t)slot->key;
		struct side_event event = { now, SIDE_EXIT, .pid = pid, .tid = pid };

		if (!sb->nr_again && now >= slot->value + NEWS_NS)
			continue;
		sb->nr_again -= sb->nr_again != 0;
		looks--;
		if (!is_over(pid))
			continue;
		if (side_events_push(batch, event, NULL, 0))
			return -ENOMEM;
		map_del(&sb->half_dead, (uint32_t)pid);
	}
	return 0;
}

int side_band_drain(struct side_band *sb, struct side_events *batch)
{
	return side_band_drain_until(sb, now_ns(), batch);
}

int side_band_drain_until(struct side_band *sb, uint64_t until_ns, struct side_events *batch)
{
	struct side_event lost = { .time_ns = until_ns, .type = SIDE_LOST };
	size_t kept = 0;
	int r;

	batch->events.nr = batch->text.nr = 0;
	batch->is_whole = false;
	for (size_t i = 0; i < sb->rings.nr; i++) {
		struct side_ring *ring = &sb->rings.items[i];

		drain_ring(sb, ring, ring->offline ? UINT64_MAX : lost.time_ns, batch);
		if (ring->offline)
			ring_close(sb, ring);
		else
			sb->rings.items[kept++] = *ring;
	}
	sb->rings.nr = kept;
	side_events_sort(batch);
	settle_exits(sb, batch);
	r = report_half_dead(sb, lost.time_ns, batch);
	if (r || (!sb->lost && !sb->unheard))
		return r;
	lost.lost = sb->lost;
	r = side_events_push(batch, lost, NULL, 0);
	if (!r) {
		sb->lost = 0;
		sb->unheard = false;
	}
	return r;
}
