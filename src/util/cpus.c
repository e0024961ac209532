// SPDX-License-Identifier: Apache-2.0
#include "util/cpus.h"
#include "util/clock.h"
#include "util/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = CPUS_MAX / 64, TEXT_MAX = 4096 };

/* Between two readings of the witnesses: each interrupts its CPU. */
static const uint64_t READING_NS = 1000000000;

/* A perf event that runs as long as its CPU does. */
struct witness {
	int fd;		     /* -1: none */
	uint64_t enabled_ns; /* at the last reading; UINT64_MAX: there was none */
};

struct cpu_set {
	int fd;			       /* of /sys/devices/system/cpu/online */
	VEC(struct witness) witnesses; /* by CPU number */
	uint64_t read_ns;	       /* when they were read last */
	char seen[TEXT_MAX];
	uint64_t online[WORDS];
};

int cpu_set_open(struct cpu_set **ret)
{
	struct cpu_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	if (set->fd < 0) {
		free(set);
		return -errno;
	}
	*ret = set;
	return 0;
}

void cpu_set_free(struct cpu_set *set)
{
	if (!set)
		return;
	close(set->fd);
	vec_free(&set->witnesses);
	free(set);
}

int cpu_set_watch(struct cpu_set *set, uint32_t cpu, int fd)
{
	while (set->witnesses.nr <= cpu) {
		int r = vec_push(&set->witnesses, (struct witness){ .fd = -1 });

		if (r)
			return r;
	}
	set->witnesses.items[cpu] = (struct witness){ fd, UINT64_MAX };
	return 0;
}

static bool has_stopped(struct witness *w)
{
	uint64_t values[2]; /* the count, the time that it was enabled */
	bool stopped;

	if (w->fd < 0 || read(w->fd, values, sizeof(values)) != sizeof(values))
		return false;
	stopped = values[1] == w->enabled_ns;
	w->enabled_ns = values[1];
	return stopped;
}

int cpu_list_parse(const char *text, uint64_t bits[CPUS_MAX / 64])
{
	uint64_t parsed[WORDS] = { 0 };

	while (*text && *text != '\n') {
		unsigned long first, last;
		char *end;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		first = last = strtoul(text, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= CPUS_MAX || (*end && *end != ',' && *end != '\n'))
			return -EINVAL;
		for (; first <= last; first++)
			parsed[first / 64] |= 1ull << (first % 64);
		text = *end == ',' ? end + 1 : end;
	}
	memcpy(bits, parsed, sizeof(parsed));
	return 0;
}

static int report(struct cpu_set *set, uint32_t cpu, bool online,
		  int (*change)(void *ctx, uint32_t cpu, bool online), void *ctx)
{
	int r;

	if (!online && cpu < set->witnesses.nr)
		set->witnesses.items[cpu].fd = -1;
	r = change(ctx, cpu, online);
	if (!r)
		set->online[cpu / 64] ^= 1ull << (cpu % 64);
	return r;
}

/* CPUs that went since the last reading, wherever they are now. */
static int read_witnesses(struct cpu_set *set, int (*change)(void *ctx, uint32_t cpu, bool online),
			  void *ctx)
{
	uint64_t now = now_ns();
	int r = 0;

	if (now - set->read_ns < READING_NS)
		return 0;
	set->read_ns = now;
	for (uint32_t cpu = 0; !r && cpu < set->witnesses.nr; cpu++) {
		if (!has_stopped(&set->witnesses.items[cpu]))
			continue;
		set->seen[0] = '\0';
		r = report(set, cpu, false, change, ctx);
	}
	return r;
}

int cpu_set_sync(struct cpu_set *set, int (*change)(void *ctx, uint32_t cpu, bool online),
		 void *ctx)
{
	uint64_t now[WORDS];
	char text[TEXT_MAX];
	ssize_t n;
	uint32_t cpu;
	int r = read_witnesses(set, change, ctx);

	if (r)
		return r;
	n = pread(set->fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (!strcmp(text, set->seen))
		return 0;
	r = cpu_list_parse(text, now);
	for (cpu = 0; !r && cpu < CPUS_MAX; cpu++) {
		uint64_t bit = 1ull << (cpu % 64);

		if (!((now[cpu / 64] ^ set->online[cpu / 64]) & bit))
			continue;
		r = report(set, cpu, now[cpu / 64] & bit, change, ctx);
	}
	if (!r)
		memcpy(set->seen, text, (size_t)n + 1);
	return r;
}
