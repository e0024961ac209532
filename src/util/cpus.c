// SPDX-License-Identifier: Apache-2.0
#include "util/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = CPUS_MAX / 64, TEXT_MAX = 4096 };

struct cpu_set {
	int fd; /* of /sys/devices/system/cpu/online */
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
	free(set);
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

int cpu_set_sync(struct cpu_set *set, int (*change)(void *ctx, uint32_t cpu, bool online),
		 void *ctx)
{
	uint64_t now[WORDS];
	char text[TEXT_MAX];
	ssize_t n = pread(set->fd, text, sizeof(text) - 1, 0);
	uint32_t cpu;
	int r;

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
		r = change(ctx, cpu, now[cpu / 64] & bit);
		if (!r)
			set->online[cpu / 64] ^= bit;
	}
	if (!r)
		memcpy(set->seen, text, (size_t)n + 1);
	return r;
}
