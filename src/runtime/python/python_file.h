/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file tells of a CPython interpreter in it: whether it is one, of which version, where
 * its data and its eval loop are. By symbols, never by the file's name. Addresses are in the file's
 * own address space.
 */
#pragma once

#include "runtime/python/python_abi.h"
#include "runtime/runtime.h"

struct python_dso {
	struct runtime_dso dso;
	unsigned int minor;    /* of 3.x */
	uint64_t runtime;      /* _PyRuntime; 0: 3.6 has none */
	uint64_t interpreters; /* of 3.6: the pointer to the first one */
	uint64_t code_type;    /* PyCode_Type */
	/* _Py_trampoline_func_start; 0: not there (before 3.12) */
	uint64_t trampoline, trampoline_end;
	uint64_t loop_frame; /* 3.13 on: python_loop_frame() */
	uint64_t codes;	     /* 3.12, 3.13: python_find_codes() */
	/* 3.6 to 3.10, relative to the first loop's start. */
	size_t nr_gaps;
	struct python_gap gaps[PYTHON_GAPS_MAX];
};

/* As runtime_ops.probe(). */
int python_file_read(const struct elf_file *elf, struct runtime_about *about,
		     struct python_dso **ret);
/* Does the C function of that name only implement a script frame? */
bool python_hides(const char *name, const char *source);
void python_file_free(struct python_dso *dso);
