/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code of a libruby tells that its symbols do not: where its loop is, and where a thread
 * has what it runs. All addresses are in the file's own address space.
 */
#pragma once

#include "elf/elf_file.h"
#include "runtime/loop_code.h"
#include "runtime/runtime.h"

/*
 * Adds rb_vm_exec() to dso->interpreter_functions if that has nothing yet, and vm_exec_core(),
 * which it calls, to dso->hidden: 3.3 exports neither. vm_exec_core() is found by the table of its
 * instructions' addresses. 0; -ENOTSUP: there is no loop to be seen, or too much work to be done;
 * -ENOMEM.
 */
int ruby_add_loop(const struct elf_file *elf, struct loop_work *work, struct runtime_dso *dso);
/* Was it built with YJIT? */
bool ruby_has_yjit(const struct elf_file *elf);
/*
 * What rb_errinfo() at `function` reads the address of ruby_current_ec from, if it then reads the
 * word `error` bytes into what that points to. x86-64; 0: it doesn't.
 */
uint64_t ruby_ec_slot(const struct elf_file *elf, uint64_t function, uint8_t error);
/* Of a program that has Ruby in itself: how far from the thread pointer ruby_current_ec
 * is. False: its code does not say. */
bool ruby_ec_offset(const struct elf_file *elf, uint64_t function, uint8_t error,
		    int64_t *ret_offset);

/* Where collections of memory are counted. */
struct ruby_gc {
	uint64_t vm;	       /* ruby_current_vm_ptr, or where its address is */
	bool slot;	       /* the latter */
	uint32_t objspace;     /* in what it leads to: a pointer to what has these: */
	uint32_t flags, count; /* 0: it was not found */
};
/* By the code of rb_during_gc() and rb_gc_count(); x86-64. False: it is not to be seen. */
bool ruby_find_gc(const struct elf_file *elf, uint64_t during_gc, uint64_t gc_count,
		  struct ruby_gc *ret);
