// SPDX-License-Identifier: Apache-2.0
#include "agent/sandbox.h"

#include "util/capabilities.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Capabilities since Linux 5.8 and 5.9. */
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#define BIT(capability) (UINT64_C(1) << (capability))

/* --- system calls ----------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define OUR_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

enum {
	PROGRAM_MAX = 256, /* a jump goes 255 instructions far, to one of the last three */
	HEAD = 7,	   /* instructions before those that compare numbers with bounds */
	NOT_BOUNDS = HEAD + 4,
};

/* Of clone(): a namespace of its own. CLONE_NEWTIME is clone3()'s alone. */
#define CLONE_NAMESPACES                                                                           \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |  \
		    CLONE_NEWPID | CLONE_NEWNET))

static int compare_numbers(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

enum verdict { ALLOW, DENY, UNKNOWN }; /* the last instructions of a program */

/* How far it is from instruction `at` of a program with so many bounds. */
static uint8_t jump_to(enum verdict verdict, size_t bounds, size_t at)
{
	return (uint8_t)(HEAD + bounds + 1 + verdict - at - 1);
}

/*
 * What is decided by more than a number. A child in a user namespace of its own has all
 * capabilities there. clone3() has its flags in memory, where no filter can look: the C library
 * takes clone() if the kernel does not know it.
 */
static void put_head(struct sock_filter ret[HEAD], size_t bounds)
{
	const struct sock_filter head[HEAD] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_AUDIT_ARCH, 0, jump_to(DENY, bounds, 1)),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, jump_to(UNKNOWN, bounds, 3), 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, HEAD - 5),
		/* The low half: both machines are little-endian. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NAMESPACES, jump_to(DENY, bounds, 6),
			 jump_to(ALLOW, bounds, 6)),
	};

	memcpy(ret, head, sizeof(head));
}

/*
 * The numbers as ranges, in their order: each instruction asks whether it is below the end of one,
 * of numbers that are allowed and that are not, in turn. Kernels since 5.11 ask once and remember.
 */
int sandbox_program(struct sock_filter *ret, size_t max, uint32_t otherwise)
{
	size_t nr, n = 0, bounds = 0;
	const int *calls = sandbox_calls(&nr);
	_cleanup_free_ int *sorted = malloc(nr * sizeof(*sorted));
	uint32_t ends[PROGRAM_MAX];
	bool allowed = false;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, calls, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare_numbers);
	/* ends[0] ends numbers that are not allowed, ends[1] some that are, ... */
	ends[bounds++] = (uint32_t)sorted[0];
	for (size_t i = 0; i < nr && bounds + 2 < PROGRAM_MAX; i++) {
		if (i + 1 < nr && sorted[i + 1] <= sorted[i] + 1)
			continue;
		ends[bounds++] = (uint32_t)sorted[i] + 1;
		if (i + 1 < nr)
			ends[bounds++] = (uint32_t)sorted[i + 1];
	}
	if (bounds + NOT_BOUNDS > (max < PROGRAM_MAX ? max : PROGRAM_MAX))
		return -E2BIG;
	put_head(ret, bounds);
	n = HEAD;
	for (size_t i = 0; i < bounds; i++, n++, allowed = !allowed)
		ret[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ends[i], 0,
						      jump_to(allowed ? ALLOW : DENY, bounds, n));
	ret[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, UNKNOWN, 0, 0);
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	return (int)n;
}

int sandbox_filter_calls(enum sandbox_mode mode)
{
	struct sock_filter instructions[PROGRAM_MAX];
	struct sock_fprog program = { .filter = instructions };
	int r;

	if (mode == SANDBOX_OFF)
		return 0;
	r = sandbox_program(instructions, PROGRAM_MAX,
			    mode == SANDBOX_KILL ? SECCOMP_RET_KILL_PROCESS
						 : SECCOMP_RET_ERRNO | EPERM);
	if (r < 0)
		return r;
	program.len = (unsigned short)r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}

/* --- capabilities ----------------------------------------------------------------------------- */

static long number_in(const char *path, long otherwise)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	return read_file_at(AT_FDCWD, path, 64, &text, &size) ? otherwise : strtol(text, NULL, 10);
}

/*
 * Of what comes later: events of CPUs, programs of runtimes, files of processes by map_files.
 * CAP_SYS_ADMIN is all of these where the kernel has no better ones, and Debian's
 * perf_event_paranoid = 3 asks for it.
 */
static uint64_t needs_of_recorder(uint64_t has)
{
	const uint64_t instead = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE);
	uint64_t keep = instead | BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYSLOG) |
			BIT(CAP_SYS_NICE);

	if ((has & instead) != instead || number_in("/proc/sys/kernel/perf_event_paranoid", 3) > 2)
		keep |= BIT(CAP_SYS_ADMIN);
	return keep;
}

int sandbox_drop_capabilities(enum sandbox_part part)
{
	uint64_t has = capabilities_effective(), keep;

	/* A folder may be anybody's, a key, too. */
	keep = part == SANDBOX_SENDER ? BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH)
				      : needs_of_recorder(has);
	return capabilities_keep(keep);
}
