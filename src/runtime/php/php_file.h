/* SPDX-License-Identifier: Apache-2.0 */
/* What one file tells of the PHP that is in it. */
#pragma once

#include "elf/elf_file.h"
#include "runtime/php/php_abi.h"
#include "runtime/runtime.h"

struct php_version {
	unsigned int major, minor; /* 0, 0: not known */
};

struct php_dso {
	struct runtime_dso base;
	struct php_version version;
	uint64_t globals; /* executor_globals, in the file's address space */
	/* Of a thread-safe build: the key of a thread's globals, and the variable that says how far
	 * behind those `globals` are. 0: it is not such a one. */
	uint64_t key, globals_offset;
	/* Of a library: where ld.so writes the address of the one or the other; a program may have
	 * a copy of its own, and then it is that one's. 0: nowhere. */
	uint64_t globals_slot;
	uint64_t extensions;	  /* zend_extensions; 0: not exported */
	uint64_t sapi;		  /* sapi_module; 0: not exported, or not of a program's own */
	uint64_t jit_status;	  /* zend_jit_status(), if opcache is a part of PHP, else 0 */
	uint32_t current;	  /* of current_execute_data in it */
	struct php_record record; /* what processes have in common; loop_start is the file's */
};

/* 0; -ENOENT: there is no PHP in it; -ENOTSUP: one that can't be walked, *why says why. */
int php_file_read(const struct elf_file *elf, struct php_dso **ret, struct php_version *ret_version,
		  const char **why);
void php_file_free(struct php_dso *dso);
/* What a version has where, but for its generators; false: it is not known. */
bool php_layout_of(unsigned int major, unsigned int minor, struct php_layout *ret,
		   uint32_t *ret_current);
/* Implements PHP's calls, and nothing else. */
bool php_hides(const char *name, const char *source);
