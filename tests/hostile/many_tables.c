// SPDX-License-Identifier: Apache-2.0
/*
 * many_tables FILE...: runs in each of these libraries (many_rows.S) for some milliseconds, one
 * after another, so that their unwind tables are in use all the time. Runs until it is killed.
 */
#include <dlfcn.h>
#include <stdlib.h>

enum { FILES_MAX = 1024, SPIN = 100 };

int main(int argc, char **argv)
{
	static void (*spin[FILES_MAX])(unsigned long);

	for (int i = 1; i < argc && i < FILES_MAX; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);

		spin[i] = library ? (void (*)(unsigned long))dlsym(library, "spin") : NULL;
		if (!spin[i])
			return 1;
	}
	for (;;)
		for (int i = 1; i < argc; i++)
			spin[i](SPIN);
}
