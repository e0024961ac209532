/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An unwind table as a file: how a child process that built one hands it over. The child read what
 * may be hostile, so nothing of it is believed: all of it is checked when it is opened, and the
 * file must be sealed by then (memfd_create(2)). Private to one program: there is no version.
 */
#pragma once

#include "unwind/unwind_table.h"

#include <fcntl.h>

/* What must not happen to the file any more when it is opened. */
enum { TABLE_IMAGE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* 0 or negative errno. `fd` is at its begin. */
int table_image_write(int fd, const struct unwind_table *table);
/*
 * Reads the rules; buckets and rows stay in the file, which is the table's after success:
 * unwind_store_load() copies them from there. `runtime`: the only one that rules may be marked
 * with. 0, -EBADMSG (it is not what table_image_write() made), -ENOMEM, -EIO ...
 */
int table_image_open(int fd, uint32_t runtime, struct unwind_table **ret);
/* Writes the table into an empty file, as table_image_write() does, whether it lies in memory or in
 * an image that was opened. 0 or negative errno. */
int table_image_copy(int fd, const struct unwind_table *table);
/* What unwind_table_find() would find, out of the image alone. 0 or negative errno. */
int table_image_find(const struct unwind_table *table, uint64_t addr, struct unwind_rule *ret);
/* Reads the rules of an image that was checked before and has let them go. */
int table_image_read_rules(struct unwind_table *table);
/* Cells (4 bytes) of the table, from number `first` on, buckets before rows. 0 or negative errno.
 */
int table_image_read(const struct unwind_table *table, uint32_t first, uint32_t *to, uint32_t nr);
