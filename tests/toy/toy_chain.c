// SPDX-License-Identifier: Apache-2.0
/*
 * toy_chain PROGRAM FUNCTION: four toy machines in one program, each a library and a runtime of its
 * own. FUNCTION of the first calls that of the second, and so on; the last one works.
 */
#include <pthread.h>
#include <unistd.h>

#define MACHINE(name)                                                                              \
	void name##_load(const char *path);                                                        \
	void name##_enter(const char *function);                                                   \
	extern void (*name##_next)(const char *function);
MACHINE(toy)
MACHINE(toyb)
MACHINE(toyc)
MACHINE(toyd)
#undef MACHINE

static void *run_thread(void *name)
{
	pthread_setname_np(pthread_self(), name);
	toy_enter(name);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 2;
	toy_load(argv[1]);
	toyb_load(argv[1]);
	toyc_load(argv[1]);
	toyd_load(argv[1]);
	toy_next = toyb_enter;
	toyb_next = toyc_enter;
	toyc_next = toyd_enter;
	if (pthread_create(&thread, NULL, run_thread, argv[2]) ||
	    write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
