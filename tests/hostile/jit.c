// SPDX-License-Identifier: Apache-2.0
/*
 * A "JIT" whose perf map has no end, and no name for its code: jit MEGABYTES; or is there already:
 * jit
 * -. Says so when the map is written, and works until it is ended.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 256, PLACE = 256 };

/* Is copied to other places: calls nothing. */
__attribute__((noinline, noclone)) static void spin(volatile unsigned long *n)
{
	while (*n)
		--*n;
}

static void write_map(size_t size)
{
	static const char line[] = "1 1 a\n";
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	for (size_t i = 0; map && i < size; i += sizeof(line) - 1)
		fputs(line, map);
	if (!map || fclose(map))
		exit(1);
}

int main(int argc, char **argv)
{
	char *code = mmap(NULL, PLACES * PLACE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile unsigned long n;

	if (code == MAP_FAILED)
		return 1;
	for (int i = 0; i < PLACES; i++)
		memcpy(code + i * PLACE, (void *)spin, PLACE / 2);
	__builtin___clear_cache(code, code + PLACES * PLACE);
	if (argc < 2 || strcmp(argv[1], "-"))
		write_map((argc > 1 ? strtoul(argv[1], NULL, 10) : 1) << 20);
	puts("written");
	fflush(stdout);
	for (int i = 0;; i = (i + 1) % PLACES) {
		n = 1000000;
		((void (*)(volatile unsigned long *))(code + i * PLACE))(&n);
	}
}
