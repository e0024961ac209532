// SPDX-License-Identifier: Apache-2.0
#include "agent/sandbox.h"
#include "test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum { MAX = 256, DENIED = SECCOMP_RET_ERRNO | EPERM, UNKNOWN = SECCOMP_RET_ERRNO | ENOSYS };

/* As the kernel runs it; what is none of the instructions that it has fails. */
static uint32_t run_filter_on(const struct sock_filter *program, int nr,
			      const struct seccomp_data *call)
{
	uint32_t a = 0;

	for (int pc = 0; pc < nr; pc++) {
		const struct sock_filter *i = &program[pc];

		if (i->code == (BPF_LD | BPF_W | BPF_ABS))
			memcpy(&a, (const char *)call + i->k, sizeof(a));
		else if (i->code == (BPF_JMP | BPF_JSET | BPF_K))
			pc += a & i->k ? i->jt : i->jf;
		else if (i->code == (BPF_JMP | BPF_JEQ | BPF_K))
			pc += a == i->k ? i->jt : i->jf;
		else if (i->code == (BPF_JMP | BPF_JGE | BPF_K))
			pc += a >= i->k ? i->jt : i->jf;
		else if (i->code == (BPF_JMP | BPF_JA))
			pc += (int)i->k;
		else if (i->code == (BPF_RET | BPF_K))
			return i->k;
		else
			FAIL("instruction %d is %#x", pc, i->code);
	}
	FAIL("the program has no end");
	return 0;
}

static uint32_t run_filter(const struct sock_filter *program, int nr, uint32_t arch,
			   uint32_t number)
{
	return run_filter_on(program, nr,
			     &(struct seccomp_data){ .nr = (int)number, .arch = arch });
}

static bool is_allowed(uint32_t number, uint32_t *newest)
{
	size_t nr;
	const int *calls = sandbox_calls(&nr);
	bool found = false;

	for (size_t i = 0; i < nr; i++) {
		found = found || (uint32_t)calls[i] == number;
		if ((uint32_t)calls[i] > *newest)
			*newest = (uint32_t)calls[i];
	}
	return found;
}

TEST(the_program_says_what_the_list_says)
{
	struct sock_filter program[MAX];
	uint32_t newest = 0;
	int nr = sandbox_program(program, MAX, DENIED);

	ASSERT_OK(nr);
	for (uint32_t number = 0; number < 1000; number++) {
		uint32_t want = is_allowed(number, &newest)		  ? SECCOMP_RET_ALLOW
				: number > newest || number == SYS_clone3 ? UNKNOWN
									  : DENIED;

		ASSERT_MSG(run_filter(program, nr, ARCH, number) == want, "call %u", number);
	}
	/* x32, and what is no number at all. */
	ASSERT_EQ(run_filter(program, nr, ARCH, 0x40000000), UNKNOWN);
	ASSERT_EQ(run_filter(program, nr, ARCH, UINT32_MAX), UNKNOWN);
	/* i386 on x86-64, where 11 is execve. */
	ASSERT_EQ(run_filter(program, nr, AUDIT_ARCH_I386, 11), DENIED);
	ASSERT_EQ(run_filter(program, nr, AUDIT_ARCH_ARM, SYS_read), DENIED);
}

/* Who has a user namespace of his own has all capabilities in it. */
TEST(children_have_no_namespaces_of_their_own)
{
	static const uint64_t namespaces[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
					       CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
					       CLONE_NEWNET };
	struct seccomp_data call = { .nr = SYS_clone, .arch = ARCH };
	struct sock_filter program[MAX];
	int nr = sandbox_program(program, MAX, DENIED);

	ASSERT_OK(nr);
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces); i++) {
		call.args[0] = namespaces[i] | SIGCHLD;
		ASSERT_MSG(run_filter_on(program, nr, &call) == DENIED, "flag %#llx",
			   (unsigned long long)namespaces[i]);
	}
	/* A thread's, and those of a child of posix_spawn(). */
	call.args[0] = 0x3d0f00;
	ASSERT_EQ(run_filter_on(program, nr, &call), SECCOMP_RET_ALLOW);
	call.args[0] = CLONE_VM | CLONE_VFORK | SIGCHLD;
	ASSERT_EQ(run_filter_on(program, nr, &call), SECCOMP_RET_ALLOW);
}

TEST(a_program_that_is_too_large_is_none)
{
	struct sock_filter program[MAX];
	int nr = sandbox_program(program, MAX, DENIED);

	ASSERT_EQ(sandbox_program(program, (size_t)nr, DENIED), nr);
	ASSERT_ERR(sandbox_program(program, (size_t)nr - 1, DENIED), E2BIG);
}

TEST(what_changes_the_system_is_not_allowed)
{
	static const int calls[] = {
		SYS_ptrace,	    SYS_process_vm_writev, SYS_mount,	    SYS_umount2,
		SYS_chroot,	    SYS_pivot_root,	   SYS_unshare,	    SYS_setns,
		SYS_init_module,    SYS_finit_module,	   SYS_kexec_load,  SYS_reboot,
		SYS_setuid,	    SYS_setresuid,	   SYS_setgroups,   SYS_clock_settime,
		SYS_adjtimex,	    SYS_settimeofday,	   SYS_sethostname, SYS_swapon,
		SYS_keyctl,	    SYS_userfaultfd,	   SYS_mknodat,	    SYS_open_by_handle_at,
		SYS_io_uring_setup,
	};
	uint32_t newest = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		ASSERT_MSG(!is_allowed((uint32_t)calls[i], &newest), "call %d", calls[i]);
}

/* Its exit status, or what killed it, negative. */
static int in_child(int (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(what());
	ASSERT(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int try_calls(void)
{
	if (sandbox_filter_calls(SANDBOX_ON))
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	if (syscall(SYS_getppid) <= 0)
		return 3;
	if (unshare(0) != -1 || errno != EPERM)
		return 4;
	if (syscall(2000) != -1 || errno != ENOSYS)
		return 5;
	return 0;
}

/* 0: there is a child with a user namespace of its own; else errno. */
static int try_namespace(void)
{
	long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

	if (!child)
		_exit(0);
	if (child < 0)
		return errno;
	waitpid((pid_t)child, NULL, 0);
	return 0;
}

static int try_filtered_namespace(void)
{
	return sandbox_filter_calls(SANDBOX_ON) ? -1 : try_namespace();
}

static int try_forbidden(void)
{
	return sandbox_filter_calls(SANDBOX_KILL) ? 1 : unshare(0);
}

TEST(the_kernel_takes_it)
{
	ASSERT_EQ(in_child(try_calls), 0);
	ASSERT_EQ(in_child(try_forbidden), -SIGSYS);
	/* Where it would work without the filter. */
	if (!in_child(try_namespace))
		ASSERT_EQ(in_child(try_filtered_namespace), EPERM);
}

static uint64_t permitted(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	syscall(SYS_capget, &header, data);
	return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

static int drop_as_sender(void)
{
	if (sandbox_drop_capabilities(SANDBOX_SENDER))
		return 1;
	if (permitted() & ~(UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_DAC_READ_SEARCH))
		return 2;
	return prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) ? 3 : 0;
}

static int drop_as_recorder(void)
{
	uint64_t before = permitted(), wanted = UINT64_C(1) << CAP_SYS_PTRACE;

	if (sandbox_drop_capabilities(SANDBOX_RECORDER))
		return 1;
	if ((permitted() & wanted) != (before & wanted))
		return 2;
	return permitted() & (UINT64_C(1) << CAP_SYS_MODULE | UINT64_C(1) << CAP_NET_ADMIN) ? 3 : 0;
}

TEST(capabilities_go)
{
	if (!(permitted() >> CAP_SETPCAP & 1))
		return; /* nobody who has nothing can give anything up */
	ASSERT_EQ(in_child(drop_as_sender), 0);
	ASSERT_EQ(in_child(drop_as_recorder), 0);
}
