// SPDX-License-Identifier: Apache-2.0
/*
 * Layout of the ring and its records: perf_event_open(2), uapi linux/perf_event.h; registers: uapi
 * asm/perf_regs.h.
 */
#include "snapshot/thread_event.h"
#include "util/cleanup.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	PERIOD_NS = 100000,
	RING_SIZE = 128 << 10, /* one record is 64 KiB at most */
	STACK_MAX = 65528,     /* below 64 KiB, a multiple of 8 */
	/*
	 * The copy begins at the stack pointer, but the walker also looks below (RAW_STACK_BELOW).
	 * A word of these bytes is no address: if one matters, the walk ends there and then.
	 */
	NOT_COPIED = 0xa5,
};

#if defined(__x86_64__)
/* In the order of the record, which is that of the mask's bits: their DWARF numbers. */
static const int8_t register_order[] = { 0, 3, 2, 1, 4, 5, 6, 7, -1, 8, 9, 10, 11, 12, 13, 14, 15 };
#define REGISTER_MASK                                                                              \
	(((1ull << (PERF_REG_X86_IP + 1)) - 1) |                                                   \
	 (((1ull << (PERF_REG_X86_R15 + 1)) - 1) & ~((1ull << PERF_REG_X86_R8) - 1)))
enum { STACK_POINTER = X86_RSP, PC_PLACE = PERF_REG_X86_IP };
#elif defined(__aarch64__)
static const int8_t register_order[] = { 0,  1,	 2,  3,	 4,  5,	 6,  7,	 8,  9,	 10,
					 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
					 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, -1 };
#define REGISTER_MASK ((1ull << (PERF_REG_ARM64_PC + 1)) - 1)
enum { STACK_POINTER = A64_SP, PC_PLACE = PERF_REG_ARM64_PC };
#endif

enum { NR_REGISTERS = sizeof(register_order) / sizeof(register_order[0]) };

struct thread_event {
	int fd;
	void *ring; /* a page of bookkeeping, then RING_SIZE */
	size_t page;
};

static int open_event(int32_t tid, bool kernel_stack)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
		.sample_type =
			PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.disabled = 1,
		.exclude_callchain_user = 1,
		.exclude_callchain_kernel = !kernel_stack,
		.exclude_hv = 1,
		.exclude_guest = 1,
		.wakeup_events = 1,
		.sample_regs_user = REGISTER_MASK,
		.sample_stack_user = STACK_MAX,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EACCES) { /* perf_event_paranoid 2: user mode alone */
		attr.exclude_kernel = attr.exclude_callchain_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

int thread_event_open(int32_t tid, bool kernel_stack, struct thread_event **ret)
{
	_cleanup_(thread_event_free_p) struct thread_event *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->page = (size_t)sysconf(_SC_PAGESIZE);
	e->fd = open_event(tid, kernel_stack);
	if (e->fd < 0)
		return e->fd;
	e->ring = mmap(NULL, e->page + RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	if (e->ring == MAP_FAILED) {
		e->ring = NULL;
		return -errno;
	}
	if (ioctl(e->fd, PERF_EVENT_IOC_REFRESH, 1) < 0)
		return -errno;
	*ret = TAKE_PTR(e);
	return 0;
}

void thread_event_free(struct thread_event *e)
{
	if (!e)
		return;
	if (e->ring)
		munmap(e->ring, e->page + RING_SIZE);
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

int thread_event_fd(const struct thread_event *e)
{
	return e->fd;
}

struct reader {
	const uint8_t *data;
	size_t size;
	bool bad;
};

static const void *take(struct reader *r, size_t size)
{
	const void *at = r->data;

	if (r->bad || size > r->size) {
		r->bad = true;
		return NULL;
	}
	r->data += size;
	r->size -= size;
	return at;
}

static uint64_t take_u64(struct reader *r)
{
	const void *at = take(r, 8);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, 8);
	return value;
}

static void parse_kernel(struct reader *r, struct caught_thread *caught)
{
	uint64_t nr = take_u64(r);

	for (uint64_t i = 0; i < nr && !r->bad; i++) {
		uint64_t addr = take_u64(r);

		/* Marks between the parts of a chain (PERF_CONTEXT_KERNEL) are no addresses. */
		if (addr < PERF_CONTEXT_MAX && caught->nr_kernel < SAMPLE_MAX_KERNEL_FRAMES)
			caught->kernel[caught->nr_kernel++] = addr;
	}
}

static void parse_registers(struct reader *r, struct caught_thread *caught)
{
	uint64_t abi = take_u64(r);

	caught->is_compat = abi == PERF_SAMPLE_REGS_ABI_32;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	for (size_t i = 0; i < NR_REGISTERS; i++) {
		uint64_t value = take_u64(r);

		if (i == PC_PLACE)
			caught->pc = value;
		else
			caught->regs[register_order[i]] = value;
	}
}

int thread_event_parse(const void *data, size_t size, struct caught_thread *ret)
{
	struct reader r = { data, size, false };
	struct caught_thread caught = { 0 };
	struct perf_event_header header;
	uint64_t room, filled;
	const void *stack;

	if (size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, take(&r, sizeof(header)), sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE || header.size != size)
		return -EBADMSG;
	parse_kernel(&r, &caught);
	parse_registers(&r, &caught);
	room = take_u64(&r);
	stack = room <= STACK_MAX ? take(&r, room) : NULL;
	filled = room ? take_u64(&r) : 0;
	if (r.bad || !stack || filled > room)
		return -EBADMSG;
	caught.stack_start = caught.regs[STACK_POINTER] - RAW_STACK_BELOW;
	caught.stack_size = RAW_STACK_BELOW + (uint32_t)filled;
	caught.stack = malloc(caught.stack_size);
	if (!caught.stack)
		return -ENOMEM;
	memset(caught.stack, NOT_COPIED, RAW_STACK_BELOW);
	memcpy(caught.stack + RAW_STACK_BELOW, stack, filled);
	*ret = caught;
	return 0;
}

/* Copies `size` bytes from position `at` of the ring on, which may wrap. */
static void copy_out(const struct thread_event *e, uint64_t at, void *to, size_t size)
{
	const uint8_t *ring = (const uint8_t *)e->ring + e->page;
	size_t offset = at % RING_SIZE,
	       first = RING_SIZE - offset < size ? RING_SIZE - offset : size;

	memcpy(to, ring + offset, first);
	memcpy((uint8_t *)to + first, ring, size - first);
}

int thread_event_read(struct thread_event *e, struct caught_thread *ret)
{
	struct perf_event_mmap_page *page = e->ring;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	while (page->data_tail < head) {
		struct perf_event_header header;
		uint64_t tail = page->data_tail;
		_cleanup_free_ uint8_t *record = NULL;
		int r;

		copy_out(e, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			return -EBADMSG;
		record = malloc(header.size);
		if (!record)
			return -ENOMEM;
		copy_out(e, tail, record, header.size);
		__atomic_store_n(&page->data_tail, tail + header.size, __ATOMIC_RELEASE);
		r = thread_event_parse(record, header.size, ret);
		/* Others are of no interest: that it was throttled, that samples were lost. */
		if (r != -EBADMSG)
			return r;
	}
	return -EAGAIN;
}
