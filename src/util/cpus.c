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

struct listener {
	cpu_change *change;
	void *ctx;
	uint64_t online[WORDS]; /* what it knows */
};

struct cpu_set {
	int fd;			       /* of /sys/devices/system/cpu/online */
	VEC(struct witness) witnesses; /* by CPU number */
	uint64_t read_ns;	       /* when they were read last */
	VEC(struct listener) listeners;
	char seen[TEXT_MAX];  /* the list that all of them know; "" if they don't */
	uint64_t missing_ns;  /* since when a listener lacks a CPU; 0: none does */
	uint32_t missing_cpu; /* the first of these */
	uint32_t nr;	      /* on the list */
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
	vec_free(&set->listeners);
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

static void tell_gone(struct cpu_set *set, uint32_t cpu)
{
	uint64_t bit = 1ull << (cpu % 64);

	if (cpu < set->witnesses.nr)
		set->witnesses.items[cpu].fd = -1;
	for (size_t i = 0; i < set->listeners.nr; i++) {
		struct listener *l = &set->listeners.items[i];

		if (l->online[cpu / 64] & bit)
			(void)l->change(l->ctx, cpu, false);
		l->online[cpu / 64] &= ~bit;
	}
}

/* What one listener cannot take in, those behind it don't hear. */
static int tell_come(struct cpu_set *set, uint32_t cpu)
{
	uint64_t bit = 1ull << (cpu % 64);

	for (size_t i = 0; i < set->listeners.nr; i++) {
		struct listener *l = &set->listeners.items[i];
		int r = l->online[cpu / 64] & bit ? 0 : l->change(l->ctx, cpu, true);

		if (r)
			return r;
		l->online[cpu / 64] |= bit;
	}
	return 0;
}

/* CPUs that went since the last reading, wherever they are now. */
static void read_witnesses(struct cpu_set *set)
{
	uint64_t now = now_ns();

	if (now - set->read_ns < READING_NS)
		return;
	set->read_ns = now;
	for (uint32_t cpu = 0; cpu < set->witnesses.nr; cpu++) {
		if (!has_stopped(&set->witnesses.items[cpu]))
			continue;
		tell_gone(set, cpu);
		set->seen[0] = '\0';
	}
}

static void note_missing(struct cpu_set *set, bool missing, uint32_t cpu)
{
	if (!missing)
		set->missing_ns = 0;
	else if (!set->missing_ns)
		set->missing_ns = now_ns();
	set->missing_cpu = cpu;
}

/* Brings all listeners to where the list is. */
static int tell_all(struct cpu_set *set, const uint64_t listed[WORDS])
{
	bool missing = false;
	uint32_t first = 0;
	int r = 0;

	set->nr = 0;
	for (size_t i = 0; i < WORDS; i++)
		set->nr += (uint32_t)__builtin_popcountll(listed[i]);
	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++) {
		int err = 0;

		if (listed[cpu / 64] & 1ull << (cpu % 64))
			err = tell_come(set, cpu);
		else
			tell_gone(set, cpu);
		if (!err)
			continue;
		if (!missing)
			first = cpu;
		missing = true;
		if (err != -ENODEV && !r)
			r = err;
	}
	note_missing(set, missing, first);
	return r;
}

int cpu_set_sync(struct cpu_set *set)
{
	uint64_t listed[WORDS];
	char text[TEXT_MAX];
	ssize_t n;
	int r;

	read_witnesses(set);
	n = pread(set->fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (!strcmp(text, set->seen))
		return 0;
	r = cpu_list_parse(text, listed);
	if (r)
		return r;
	r = tell_all(set, listed);
	if (set->missing_ns)
		set->seen[0] = '\0';
	else
		memcpy(set->seen, text, (size_t)n + 1);
	return r;
}

int cpu_set_listen(struct cpu_set *set, cpu_change *change, void *ctx)
{
	int r = vec_push(&set->listeners, (struct listener){ .change = change, .ctx = ctx });

	if (r)
		return r;
	set->seen[0] = '\0';
	return cpu_set_sync(set);
}

void cpu_set_leave(struct cpu_set *set, void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->listeners.nr; i++)
		if (set->listeners.items[i].ctx != ctx)
			set->listeners.items[kept++] = set->listeners.items[i];
	set->listeners.nr = kept;
}

uint32_t cpu_set_size(const struct cpu_set *set)
{
	return set->nr;
}

uint64_t cpu_set_missing_ns(const struct cpu_set *set, uint32_t *ret_cpu)
{
	if (!set->missing_ns)
		return 0;
	*ret_cpu = set->missing_cpu;
	return now_ns() - set->missing_ns + 1;
}
