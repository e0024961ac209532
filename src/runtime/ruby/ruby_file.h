/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file tells of a CRuby in it: whether it is one, of which version, where its data and
 * its loop are. By symbols, never by the file's name. Addresses are in the file's own address
 * space.
 */
#pragma once

#include "runtime/ruby/ruby_code.h"
#include "runtime/ruby/ruby_layout.h"
#include "runtime/runtime.h"

struct ruby_dso {
	struct runtime_dso dso;
	const struct ruby_layout *layout; /* NULL: of a version that is not known */
	char version[16];		  /* "3.1.7" */
	uint16_t machine;
	/*
	 * Where ld.so writes where ruby_current_ec is: a module's number and an offset in it
	 * (RUBY_EC_DTV), or an offset from the thread pointer (RUBY_EC_TLS; with `descriptor` in
	 * the second of two words); or where the key of threads is (RUBY_EC_KEY). 0: `ec_offset` is
	 * that already.
	 */
	enum ruby_ec how;
	uint64_t ec_slot;
	bool descriptor;
	int64_t ec_offset;
	struct ruby_gc gc;	/* count 0: not known */
	struct code_range text; /* what calls the code that YJIT makes; 0: it makes none */
	struct code_range own;	/* all of its code, if it may have MJIT; else 0 */
	uint64_t begun;	  /* rb_cBasicObject: a word that is 0 until there are symbols; or 0 */
	uint64_t vm;	  /* ruby_current_vm_ptr, of versions whose layout needs it */
	uint64_t symbols; /* ruby_global_symbols; 0: somewhere in `data` */
	struct code_range data; /* initialized variables */
};

/* As runtime_ops.probe(), without messages: -ENOTSUP is a CRuby of which nothing else is told than
 * its version, if `*ret_version` has it, and *why, or NULL: that one is not known, or its build. */
int ruby_file_read(const struct elf_file *elf, char ret_version[static 16], struct ruby_dso **ret,
		   const char **why);
/* Does the C function of that name only implement a Ruby frame? */
bool ruby_hides(const char *name, const char *source);
void ruby_file_free(struct ruby_dso *dso);
