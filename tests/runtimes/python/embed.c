// SPDX-License-Identifier: Apache-2.0
/*
 * A program that has CPython in it: embed SCRIPT ARGUMENTS... runs the script. Linked to libpython,
 * shared or static. Any Python from 3.6 on.
 */
#include <Python.h>

#include <stdio.h>

int run_it(int argc, char **argv);

__attribute__((noinline)) int run_it(int argc, char **argv)
{
	wchar_t *wide[16];
	FILE *f = fopen(argv[0], "r");
	int r;

	for (int i = 0; i < argc; i++)
		wide[i] = Py_DecodeLocale(argv[i], NULL);
	Py_Initialize();
	PySys_SetArgvEx(argc, wide, 1);
	r = f ? PyRun_SimpleFileExFlags(f, argv[0], 1, NULL) : 1;
	__asm__ volatile(""); /* not a tail call */
	return r;
}

int main(int argc, char **argv)
{
	return argc > 1 && argc < 17 ? run_it(argc - 1, argv + 1) : 2;
}
