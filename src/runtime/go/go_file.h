/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one file that Go's linker made tells, by its table of functions (elf/go_table.h): which
 * functions nobody called, which ones only the compiler knows of, and how a thread gets at its g.
 */
#pragma once

#include "elf/elf_file.h"
#include "runtime/go/go_abi.h"
#include "runtime/runtime.h"

/* Where a thread's g lies: so far from its thread pointer. */
struct go_tls {
	bool known;
	int64_t offset;
	uint64_t slot; /* not 0: the address, in the file's space, of where ld.so writes the offset
			*/
};

/* Where the file says which Go made it (runtime/debug, debug/buildinfo). 0: nowhere. */
enum { GO_VERSION_MAX = 64, GO_MINOR_MAX = 26 };

struct go_dso {
	struct runtime_dso base;
	struct go_tls tls;
	/* In the file's space; {0, 0}: not there. `code`: all functions of its table. */
	struct go_switch code, systemstack, asmcgocall, morestack, schedule, mcall;
	struct go_switch injected[GO_INJECTED], nosave, cgocallback;
	uint64_t asmcgocall_call;
	bool strange;	     /* aarch64: the code of systemstack is another one than is known */
	bool pushes;	     /* as GO_PUSHES */
	uint64_t build_info; /* address in the file's space; 0: there is none */
	unsigned int minor;  /* where there is none: the N of a go1.N with the same layout; or 0 */
};

/* Of one table: of 160 MB, the most that is looked at, real functions take 250 bytes each and more.
 */
enum { GO_FUNCTIONS_MAX = 1 << 20 };

/*
 * 0; -ENOENT: Go's linker did not make it, or it is too large to be looked at; -ENOTSUP: it did,
 * but the table of functions is none that is known; -E2BIG: it has more functions, of its runtime's
 * names too, or says more of its wrappers than any program; -ENOMEM.
 */
int go_file_read(const struct elf_file *elf, struct go_dso **ret);
void go_file_free(struct go_dso *dso);
/* runtime_ops.hides: methods' and closures' wrappers. */
bool go_hides(const char *name, const char *source);

/* How x86-64 code loads g, in `size` bytes of code at `addr`; !known: it does not. */
struct go_tls go_tls_of_x86(const uint8_t *code, size_t size, uint64_t addr);

/* How aarch64's load_g() loads g in a program with cgo; !known: it does not. */
struct go_tls go_tls_of_a64(const uint32_t *code, size_t nr, uint64_t addr);

/* The N of "go1.N..." in what the file says of its version; 0: it is another text. */
unsigned int go_minor(const char *version);
/* Fills in what differs by version; false: that version is not known. */
bool go_layout(unsigned int minor, struct go_record *record);
