// SPDX-License-Identifier: Apache-2.0
/* The counters of a JVM: struct PerfDataPrologue and PerfDataEntry of OpenJDK's perfMemory.hpp. */
#include "runtime/hotspot/hotspot_operations.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SEARCHES_MAX = 8,
	RELEASE_FIRST = 17,
	RELEASE_LAST = 25, /* that was looked at */
	MEMORY_MAX = 64 << 10,
	ENTRIES_MAX = 2048,	 /* a JVM has some 250 */
	MAGIC = 0xc0c0feca,	 /* 0xcafec0c0, whatever the byte order */
	CLOCK_STEP_MAX_NS = 500, /* an operation of all threads takes microseconds */
	VERSION_MAJOR = 2,
	TYPE_LONG = 'J',
};

struct prologue {
	uint32_t magic;
	uint8_t byte_order, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t changed;
	uint32_t first, nr_entries; /* first: an offset */
};

struct entry {
	uint32_t size, name, length; /* name: an offset; length: 0 of what is no array */
	uint8_t type, flags, units, variability;
	uint32_t data; /* an offset */
};

static const char counter[] = "sun.threads.vmOperationTime";

/* Where the counter's value is in a copy of the counters; 0: it is not there. */
static uint32_t find_counter(const uint8_t *copy, uint32_t size)
{
	struct prologue p;
	struct entry e;
	uint32_t at;

	memcpy(&p, copy, sizeof(p));
	at = p.first;
	for (uint32_t i = 0; i < p.nr_entries && i < ENTRIES_MAX; i++) {
		if (at > size || size - at < sizeof(e))
			return 0;
		memcpy(&e, copy + at, sizeof(e));
		if (e.size < sizeof(e) || e.size > size - at)
			return 0;
		if (e.type == TYPE_LONG && !e.length && e.name < e.size &&
		    e.size - e.name >= sizeof(counter) &&
		    memcmp(copy + at + e.name, counter, sizeof(counter)) == 0)
			return e.data <= e.size - 8 && !((at + e.data) & 7) ? at + e.data : 0;
		at += e.size;
	}
	return 0;
}

/* The address of the counter's value: 0 or a negative errno, -ENOTSUP if this JVM has no counters.
 */
static int find(const struct hotspot_vm *vm, uint64_t *ret)
{
	_cleanup_free_ uint8_t *copy = NULL;
	struct prologue p;
	uint64_t start;
	uint32_t at;
	int r;

	r = runtime_read(vm->target, vm->at_perf_memory, &start, sizeof(start));
	if (r)
		return r;
	if (!start) /* -XX:-UsePerfData: there will be none */
		return -ENOTSUP;
	r = runtime_read(vm->target, start, &p, sizeof(p));
	if (r)
		return r;
	if (p.magic != MAGIC || p.major != VERSION_MAJOR || p.used < sizeof(p) ||
	    p.used > MEMORY_MAX)
		return -EBADMSG;
	copy = malloc(p.used);
	if (!copy)
		return -ENOMEM;
	r = runtime_read(vm->target, start, copy, p.used);
	if (r)
		return r;
	at = find_counter(copy, p.used);
	if (!at)
		return -ENOENT;
	*ret = start + at;
	return 0;
}

/* Does time pass while an operation goes on, as this machine's clock tells it? */
static bool clock_is_fine(void)
{
	struct timespec step;

	return !clock_getres(CLOCK_MONOTONIC, &step) && !step.tv_sec &&
	       step.tv_nsec <= CLOCK_STEP_MAX_NS;
}

void hotspot_find_operations(const struct hotspot_vm *vm, struct hotspot_operations *found)
{
	if (found->at || found->nr_searches >= SEARCHES_MAX || !vm->at_perf_memory ||
	    vm->release < RELEASE_FIRST || vm->release > RELEASE_LAST || !clock_is_fine())
		return;
	found->nr_searches++;
	if (find(vm, &found->at) == -ENOTSUP)
		found->nr_searches = SEARCHES_MAX;
}
