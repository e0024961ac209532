// SPDX-License-Identifier: Apache-2.0
#include "unwinder/budget.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

enum {
	MIB = 1 << 20,
	LEAST = 2 * MIB,
	/* What nothing below accounts for: stacks, the C library, rounding, the process table, what
	 * building a small file's table takes. */
	RESERVE = 8 * MIB,
	LIMIT_STEP = 16 * MIB,
};

struct budget budget_share(uint64_t limit, size_t fixed)
{
	size_t rest = limit > fixed + RESERVE ? (size_t)limit - fixed - RESERVE : 0;
	struct budget b = {
		.arena = rest / 2,
		.profile = rest / 4,
		.batch = rest / 8,
	};

	if (b.arena < LEAST)
		b.arena = LEAST;
	if (b.profile < LEAST)
		b.profile = LEAST;
	if (b.batch < LEAST / 2)
		b.batch = LEAST / 2;
	return b;
}

struct budget budget_lend(const struct budget *b)
{
	return (struct budget){
		.arena = b->arena + b->batch,
		.profile = b->profile,
		.batch = b->batch / 2,
	};
}

struct budget budget_lend_to_profile(const struct budget *b, size_t arena_free)
{
	size_t of_arena = (arena_free < b->arena ? arena_free : b->arena) / 2;

	return (struct budget){
		.arena = b->arena - of_arena,
		.profile = b->profile + of_arena,
		.batch = b->batch,
	};
}

uint64_t budget_limit_for_arena(size_t arena, size_t fixed)
{
	uint64_t limit = (uint64_t)arena * 2 + fixed + RESERVE;

	return (limit + LIMIT_STEP - 1) / LIMIT_STEP * LIMIT_STEP;
}

/* Sums "Rss:" of the mappings in an smaps text that are BPF maps' (their lines name
 * anon_inode:bpf-map). */
static size_t bpf_map_pages(char *text)
{
	char *line, *save = NULL;
	bool is_map = false;
	size_t sum = 0;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		/* A mapping's first line begins with its address, the others with a word. */
		if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f'))
			is_map = strstr(line, "anon_inode:bpf") != NULL;
		else if (is_map && !strncmp(line, "Rss:", 4))
			sum += strtoull(line + 4, NULL, 10) * 1024;
	}
	return sum;
}

size_t budget_resident(void)
{
	_cleanup_free_ char *status = NULL, *smaps = NULL;
	const char *line;
	size_t rss, shared = 0;

	if (read_file_at(AT_FDCWD, "/proc/self/status", 65536, &status, NULL))
		return 0;
	line = strstr(status, "VmRSS:");
	rss = line ? strtoull(line + strlen("VmRSS:"), NULL, 10) * 1024 : 0;
	if (!read_file_at(AT_FDCWD, "/proc/self/smaps", 4 * MIB, &smaps, NULL))
		shared = bpf_map_pages(smaps);
	return rss > shared ? rss - shared : rss;
}
