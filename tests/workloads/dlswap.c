// SPDX-License-Identifier: Apache-2.0
/*
 * Loads libswap_a.so, runs it, unloads it, loads libswap_b.so, and so on: they come to lie at the
 * same addresses, with other functions and other frames. Both lie beside the program.
 */
#include "workload.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>

KNOWN void run_swapped(void (*f)(void))
{
	f();
	sink++;
}

static int load_and_run(const char *dir, char which, void **address)
{
	char path[4200], name[16];
	void *lib, *f;

	snprintf(path, sizeof(path), "%s/libswap_%c.so", dir, which);
	snprintf(name, sizeof(name), "%c_outer", which);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	f = lib ? dlsym(lib, name) : NULL;
	if (!f)
		return -1;
	*address = f;
	for (int i = 0; i < 40; i++)
		run_swapped((void (*)(void))(uintptr_t)f);
	return dlclose(lib);
}

int main(int argc, char **argv)
{
	void *a = NULL, *b = NULL;
	int same = 0, rounds = 0;
	char path[4096];
	ssize_t len;

	work_init(argc, argv);
	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (len < 0)
		_exit(1);
	path[len] = 0;
	dirname(path);
	while (work_left()) {
		if (load_and_run(path, 'a', &a) || load_and_run(path, 'b', &b))
			_exit(1);
		rounds++;
		same += (uintptr_t)a >> 16 == (uintptr_t)b >> 16;
	}
	/* Not sharing addresses would be no test of anything. */
	_exit(same * 2 < rounds);
}
