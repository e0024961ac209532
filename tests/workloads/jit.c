// SPDX-License-Identifier: Apache-2.0
/*
 * A toy JIT: three functions with frame pointers, made at run time.
 * jit [SECONDS [MODE]]: map (anonymous memory and /tmp/perf-PID.map, the default), nomap (no perf
 * map), memfd (the code is a mapping of a memfd, with a perf map), register (no perf map; the outer
 * one has something else in the frame pointer's register: 0, or where zeroes are, by turns, and it
 * does not return, but jumps), returns (so, on x86-64 with a return, which proves where its caller
 * is), untouched (on x86-64: the outer one leaves that register as its caller has it, who uses it
 * as a frame pointer).
 */
#include "workload.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { OUTER = 0, MIDDLE = 0x100, LEAF = 0x200, CODE_SIZE = 0x1000 };

#if defined(__x86_64__)
static void emit_caller(uint8_t *code, uint32_t at, uint32_t callee)
{
	/*
	 * push %rbp; mov %rsp,%rbp; sub $32,%rsp; movb $0xe8,-5(%rbp); call; nop; leave; ret. The
	 * byte makes what lies before the frame look like a call.
	 */
	static const uint8_t head[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec,
					0x20, 0xc6, 0x45, 0xfb, 0xe8, 0xe8 };
	static const uint8_t tail[] = { 0x90, 0xc9, 0xc3 };
	int32_t distance = (int32_t)(callee - (at + sizeof(head) + 4));

	memcpy(code + at, head, sizeof(head));
	memcpy(code + at + sizeof(head), &distance, 4);
	memcpy(code + at + sizeof(head) + 4, tail, sizeof(tail));
}

static void emit(uint8_t *code)
{
	/* push %rbp; mov %rsp,%rbp; mov $1000000,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret */
	static const uint8_t leaf[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0x40, 0x42, 0x0f,
					0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };

	emit_caller(code, OUTER, MIDDLE);
	emit_caller(code, MIDDLE, LEAF);
	memcpy(code + LEAF, leaf, sizeof(leaf));
}

static void emit_register(uint8_t *code, bool returns)
{
	/* push %rbp; mov %rdi,%rbp; call LEAF; pop %rbp; */
	static const uint8_t outer[] = { 0x55,		0x48, 0x89, 0xfd, 0xe8, LEAF - 9 & 0xff,
					 LEAF - 9 >> 8, 0,    0,    0x5d };
	/* pop %rcx; jmp *%rcx */
	static const uint8_t jump[] = { 0x59, 0xff, 0xe1 }, ret[] = { 0xc3 };

	memcpy(code + OUTER, outer, sizeof(outer));
	memcpy(code + OUTER + sizeof(outer), returns ? ret : jump,
	       returns ? sizeof(ret) : sizeof(jump));
}

static void emit_untouched(uint8_t *code)
{
	/* sub $8,%rsp; call LEAF; add $8,%rsp; ret */
	static const uint8_t outer[] = {
		0x48, 0x83, 0xec, 8, 0xe8, LEAF - 9 & 0xff, LEAF - 9 >> 8, 0, 0,
		0x48, 0x83, 0xc4, 8, 0xc3
	};

	memcpy(code + OUTER, outer, sizeof(outer));
}
#elif defined(__aarch64__)
static void emit_caller(uint8_t *code, uint32_t at, uint32_t callee)
{
	/* stp x29,x30,[sp,#-48]!; mov x29,sp; bl; nop; ldp x29,x30,[sp],#48; ret */
	uint32_t caller[] = {
		0xa9bd7bfd, 0x910003fd, 0x94000000, 0xd503201f, 0xa8c37bfd, 0xd65f03c0
	};

	caller[2] |= (callee - (at + 8)) / 4;
	memcpy(code + at, caller, sizeof(caller));
}

static void emit(uint8_t *code)
{
	/* stp x29,x30,[sp,#-16]!; mov x29,sp; mov w9,#1000000 (two of them); 1: subs w9,w9,#1; b.ne
	 * 1b; ldp x29,x30,[sp],#16; ret */
	static const uint32_t leaf[] = { 0xa9bf7bfd, 0x910003fd, 0x52884809, 0x72a001e9,
					 0x71000529, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0 };

	emit_caller(code, OUTER, MIDDLE);
	emit_caller(code, MIDDLE, LEAF);
	memcpy(code + LEAF, leaf, sizeof(leaf));
}

static void emit_register(uint8_t *code, bool returns)
{
	/* stp x29,x30,[sp,#-16]!; mov x29,x0; bl LEAF; ldp x29,x30,[sp],#16; ret */
	static const uint32_t outer[] = { 0xa9bf7bfd, 0xaa0003fd, 0x94000000 | (LEAF - 8) / 4,
					  0xa8c17bfd, 0xd65f03c0 };

	(void)returns;
	memcpy(code + OUTER, outer, sizeof(outer));
}

static void emit_untouched(uint8_t *code)
{
	(void)code; /* each function there saves it with its return address */
}
#endif

static int write_map(const uint8_t *code)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "we");
	if (!f)
		return -1;
	fprintf(f, "%lx %x jit_outer\n", (unsigned long)(code + OUTER), 0x100);
	fprintf(f, "%lx %x jit_middle(int)\n", (unsigned long)(code + MIDDLE), 0x100);
	fprintf(f, "%lx %x jit leaf\n", (unsigned long)(code + LEAF), 0x100);
	return fclose(f);
}

KNOWN void run_jit(void (*f)(const void *))
{
	static int turn;
	volatile uint64_t zeroes[4] = { 0 };

	f(turn++ % 2 ? (const void *)zeroes : NULL);
	sink++;
}

/* An array of a size that is known at run time takes a frame pointer. */
KNOWN void run_untouched(void (*f)(const void *), size_t size)
{
	volatile char room[size];

	room[0] = 0;
	f(NULL);
	sink += (uint64_t)room[0] + 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "map";
	bool returns = !strcmp(mode, "returns"), is_register = returns || !strcmp(mode, "register");
	bool untouched = !strcmp(mode, "untouched");
	bool has_map = strcmp(mode, "nomap") && !is_register && !untouched;
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *code, *writable;

	work_init(argc, argv);
	if (!strcmp(mode, "memfd")) {
		fd = memfd_create("jitcode", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, CODE_SIZE))
			_exit(1);
		flags = MAP_SHARED;
	}
	writable = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (writable == MAP_FAILED)
		_exit(1);
	emit(writable);
	if (is_register)
		emit_register(writable, returns);
	if (untouched)
		emit_untouched(writable);
	code = writable;
	if (fd >= 0)
		code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_EXEC, flags, fd, 0);
	else if (mprotect(code, CODE_SIZE, PROT_READ | PROT_EXEC))
		_exit(1);
	if (code != MAP_FAILED)
		__builtin___clear_cache((char *)code, (char *)code + CODE_SIZE);
	if (code == MAP_FAILED || (has_map && write_map(code)))
		_exit(1);
	while (work_left()) {
		if (untouched)
			run_untouched((void (*)(const void *))(uintptr_t)code, (size_t)argc);
		else
			run_jit((void (*)(const void *))(uintptr_t)code);
	}
	/* The perf map stays: it is read when the recording ends. The test removes it. */
	_exit(0);
}
