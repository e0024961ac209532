/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names a file's contents: the GNU build-id (elf_file.h), Go's build id, and the "htlhash"
 * that OpenTelemetry defines for every file (semantic conventions, profiles/mappings.md). Whoever
 * makes a file can give it another's: they are for people and other tools.
 *
 * struct file_identity is for us: what is known of one file must not be taken for another's.
 */
#pragma once

#include <sys/types.h>

#include "elf/elf_file.h"

enum {
	FILE_ID_SIZE = 16,
	GO_BUILD_ID_MAX = 256, /* with its NUL; Go's are 83 characters */
	FILE_IDENTITY_SIZE = 16,
};

/* Not to be forged: made of what only the kernel says of a file, of an image of all its bytes. */
struct file_identity {
	uint8_t hash[FILE_IDENTITY_SIZE];
	bool lasts; /* no other file will ever have it; else: while this one's file system is there
		     */
};

/*
 * SHA-256 over the first and the last 4,096 bytes (which may overlap) and the length, cut to 16
 * bytes. 0 or negative errno.
 */
int file_id_of_fd(int fd, uint8_t ret[static FILE_ID_SIZE]);
int file_id_of_memory(const void *data, size_t size, uint8_t ret[static FILE_ID_SIZE]);
/*
 * File system, inode, size and times; of these nobody can set the time of the last change (ctime)
 * or choose the inode, but for a FUSE server, which can't choose its device. `device` is the one
 * that mappings of the file have (0: not known); it tells whether an overlay's inode numbers are
 * those of one file system: then the file is the same one in all containers of an image.
 */
int file_identity_of_fd(int fd, dev_t device, struct file_identity *ret);
int file_identity_of_memory(const void *data, size_t size, struct file_identity *ret);
/* The Go build id (note "Go", type 4; or `\xff Go build ID: "..."`), NUL-terminated; -ENOENT. */
int elf_file_go_build_id(const struct elf_file *elf, char ret[static GO_BUILD_ID_MAX]);
