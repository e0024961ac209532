// SPDX-License-Identifier: Apache-2.0
/*
 * later GO LIBPYTHON SCRIPT ARGUMENTS...: a program that spins until the file GO is there, and then
 * loads CPython and runs the script. Any Python from 3.6 on.
 */
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

int run_it(void *lib, int argc, char **argv);

static void *symbol(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (!p) {
		fprintf(stderr, "no %s: %s\n", name, dlerror());
		exit(1);
	}
	return p;
}

__attribute__((noinline)) int run_it(void *lib, int argc, char **argv)
{
	wchar_t *(*decode)(const char *, size_t *) = symbol(lib, "Py_DecodeLocale");
	void (*initialize)(void) = symbol(lib, "Py_Initialize");
	void (*set_argv)(int, wchar_t **, int) = symbol(lib, "PySys_SetArgvEx");
	int (*run)(FILE *, const char *, int, void *) = symbol(lib, "PyRun_SimpleFileExFlags");
	FILE *f = fopen(argv[0], "r");
	wchar_t *wide[16];
	int r;

	for (int i = 0; i < argc; i++)
		wide[i] = decode(argv[i], NULL);
	initialize();
	set_argv(argc, wide, 1);
	r = f ? run(f, argv[0], 1, NULL) : 1;
	__asm__ volatile(""); /* not a tail call */
	return r;
}

int main(int argc, char **argv)
{
	void *lib;

	if (argc < 4 || argc > 18)
		return 2;
	puts("{}");
	fflush(stdout);
	while (access(argv[1], F_OK))
		;
	lib = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return run_it(lib, argc - 3, argv + 3);
}
