/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the tables of files are needed: by how many samples of late. Where not all fit that are
 * in use, those stay that most samples need for their size. Private to unwind_store.c.
 */
#pragma once

#include "unwind/unwind_store.h"

enum { TABLE_HEAT_VICTIMS = 16 };

/* A sample needs the file's table, whether it has one or not. */
void table_heat_use(struct unwind_store *s, uint32_t file);
/* Lets what was needed count less, as time goes by (s->now_ns). */
void table_heat_cool(struct unwind_store *s);
/* Is `a` needed more for its size than `b`? Of files that wish for a table. */
bool table_heat_is_hotter(const struct unwind_store *s, uint32_t a, uint32_t b);
/*
 * Files whose tables may be given up for `nr` cells that `file` lacks: they are needed clearly less
 * than what there would be room for then. Their number; 0: there are no such.
 */
size_t table_heat_cooler(const struct unwind_store *s, uint32_t file, uint64_t nr,
			 uint32_t ret[TABLE_HEAT_VICTIMS]);
