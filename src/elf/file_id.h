/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names a file's contents: the GNU build-id (elf_file.h), Go's build id, and the "htlhash"
 * that OpenTelemetry defines for every file (semantic conventions, profiles/mappings.md).
 */
#pragma once

#include "elf/elf_file.h"

enum {
	FILE_ID_SIZE = 16,
	GO_BUILD_ID_MAX = 256, /* with its NUL; Go's are 83 characters */
};

/*
 * SHA-256 over the first and the last 4,096 bytes (which may overlap) and the length, cut to 16
 * bytes. 0 or negative errno.
 */
int file_id_of_fd(int fd, uint8_t ret[static FILE_ID_SIZE]);
int file_id_of_memory(const void *data, size_t size, uint8_t ret[static FILE_ID_SIZE]);
/* The Go build id (note "Go", type 4; or `\xff Go build ID: "..."`), NUL-terminated; -ENOENT. */
int elf_file_go_build_id(const struct elf_file *elf, char ret[static GO_BUILD_ID_MAX]);
