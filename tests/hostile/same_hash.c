// SPDX-License-Identifier: Apache-2.0
/*
 * Two processes that are one to the kernel's hash of stacks: it begins with the process's number,
 * and the next word is the address where a sample is. Parent and child differ in bit 4 of their
 * numbers, and stand still at addresses that differ by as much: in 16, or 48, 112 and so on, as
 * adding the recording's secret carries. The mappings, and all that calls, are the same.
 *
 * It says both numbers, and is called "same-parent" and "same-child".
 */
#include "workload.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { SLOTS = 64, BIT = 16, WARM_MS = 200, PARENT_MS = 300, CHILD_MS = 200 };

/* slot_0, slot_1, ..: each is one instruction, at a multiple of 16. */
#if defined(__x86_64__)
#define STAND_STILL "jmp ."
#else
#define STAND_STILL "b ."
#endif
__asm__(".pushsection .text.slots, \"ax\", %progbits\n"
	".balign 1024\n"
	".altmacro\n"
	".macro slot n\n"
	".balign 16\n"
	".globl slot_\\n\n"
	".type slot_\\n, %function\n"
	"slot_\\n:\n"
	".cfi_startproc\n" STAND_STILL "\n"
	".cfi_endproc\n"
	".size slot_\\n, . - slot_\\n\n"
	".endm\n"
	".set i, 0\n"
	".rept 64\n"
	"slot %i\n"
	".set i, i + 1\n"
	".endr\n"
	".popsection\n");
void slot_0(void);

static sigjmp_buf over;

static void on_timer(int unused)
{
	siglongjmp(over, unused);
}

/* Spends `ms` of CPU time in that slot. */
KNOWN void stand_still(int slot, int ms)
{
	void (*at)(void) = (void (*)(void))((uintptr_t)slot_0 + (uintptr_t)slot * BIT);
	struct itimerval timer = { .it_value = { .tv_usec = ms * 1000 } };

	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	if (!sigsetjmp(over, 1))
		at();
	sink++;
}

/* Which of the two, with the pipe that the child waits for; false: another has the number. */
static bool make_child(int ready[2], bool *ret_is_child)
{
	pid_t own = getpid(), pid;
	char byte;

	do {
		pid = fork();
		*ret_is_child = !pid && getpid() == (own | BIT) && read(ready[0], &byte, 1) == 1;
		if (*ret_is_child)
			return true;
		if (!pid)
			_exit(0);
		if (pid != (own | BIT))
			waitpid(pid, NULL, 0);
	} while (pid > own && pid < (own | BIT));
	return pid == (own | BIT);
}

/* Is this the child? */
static bool become_two(int ready[2])
{
	bool is_child;

	while (getpid() & BIT || pipe(ready) || !make_child(ready, &is_child))
		if (fork()) { /* the next number, perhaps */
			wait(NULL);
			_exit(0);
		}
	prctl(PR_SET_NAME, is_child ? "same-child" : "same-parent");
	return is_child;
}

int main(void)
{
	int ready[2], ms = WARM_MS, slot = 0;
	bool is_child = false;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one); /* each CPU knows stacks of its own */
	sched_setaffinity(0, sizeof(one), &one);
	signal(SIGVTALRM, on_timer);
	/* One call, for both. */
	for (int round = 0; slot < SLOTS; round++) {
		stand_still(slot, ms);
		if (!round)
			is_child = become_two(ready);
		else if (!is_child)
			break;
		ms = is_child ? CHILD_MS : PARENT_MS;
		slot = is_child ? 2 * slot + 1 : 0;
	}
	if (is_child)
		_exit(0);
	if (write(ready[1], "", 1) != 1)
		return 1;
	wait(NULL);
	printf("%d %d\n", getpid(), getpid() | BIT);
	fflush(stdout);
	return 0;
}
