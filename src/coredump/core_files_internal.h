/* SPDX-License-Identifier: Apache-2.0 */
/* What core_files.c and core_link_map.c share. */
#pragma once

#include "coredump/core_files.h"

enum {
	/* Files with code. A program with a thousand libraries is a big one. */
	CORE_FILES_MAX = 16000,
};

/* Adds a file of that path, nothing known of it yet. */
int core_files_add(struct core_files *files, const char *path, size_t len, uint32_t *ret);
/* Finds the file of this machine: sets its state, elf, memory. 0 also if there is none. */
int core_file_open(struct core_files *files, uint32_t number, const struct core_search *search);
/* core_link_map.c: the files of a core without NT_FILE. */
int core_files_find_by_list(struct core_files *files, const struct core_search *search);
