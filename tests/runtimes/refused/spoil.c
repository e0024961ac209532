// SPDX-License-Identifier: Apache-2.0
/*
 * spoil NAME COMMAND...: in COMMAND and what it starts, the kernel refuses the BPF program NAME.
 * Each bpf() that would load it waits for a process of ours, which makes its first instruction one
 * that no verifier takes, and lets the call go on: it is the kernel itself that says no, and why.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

_Noreturn static void die(const char *what)
{
	perror(what);
	_exit(125);
}

/* Loads of programs are asked about, from now on and in what we execute; returns where. */
static int install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_PROG_LOAD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &filter);
}

/* In the memory of who calls, r9 is read before anything is in it. */
static void spoil(const struct seccomp_notif *call, const char *name)
{
	union bpf_attr attr = { 0 };
	struct bpf_insn first;
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%u/mem", call->pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		die(path);
	if (pread(memory, &attr,
		  call->data.args[2] < sizeof(attr) ? call->data.args[2] : sizeof(attr),
		  (off_t)call->data.args[1]) <= 0)
		die("what is to be loaded");
	if (!strncmp(attr.prog_name, name, sizeof(attr.prog_name) - 1)) {
		if (pread(memory, &first, sizeof(first), (off_t)attr.insns) != sizeof(first))
			die("its instructions");
		/* Of two slots, the other one would be refused, with other words. */
		if (first.code == (BPF_LD | BPF_DW | BPF_IMM))
			errno = ENOTSUP, die("its first instruction");
		first = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X,
					   .src_reg = BPF_REG_9 };
		if (pwrite(memory, &first, sizeof(first), (off_t)attr.insns) != sizeof(first))
			die("its instructions");
	}
	close(memory);
}

/* Until nobody is left who is asked about. */
static void answer(int listener, const char *name)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };

	for (;;) {
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp go_on = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

		if (poll(&fd, 1, -1) < 0 || !(fd.revents & POLLIN))
			_exit(0);
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue; /* it was killed meanwhile */
		spoil(&call, name);
		go_on.id = call.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
	}
}

int main(int argc, char **argv)
{
	int ends[2], listener;

	if (argc < 3 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		die("usage: spoil NAME COMMAND...");
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		close(ends[0]);
		if (read(ends[1], &listener, sizeof(listener)) != sizeof(listener))
			_exit(125);
		/* Our parent's: we have no filter. */
		listener = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0),
					listener, 0);
		if (listener < 0)
			die("pidfd_getfd");
		close(ends[1]);
		setsid(); /* a Ctrl-C is for the command */
		answer(listener, argv[1]);
	}
	close(ends[1]);
	listener = install_filter(); /* closed on exec */
	if (listener < 0)
		die("seccomp");
	if (write(ends[0], &listener, sizeof(listener)) != sizeof(listener))
		die("socket");
	/* Until the other end is closed: then it has it. */
	if (read(ends[0], &listener, 1))
		die("socket");
	execvp(argv[2], argv + 2);
	die(argv[2]);
}
