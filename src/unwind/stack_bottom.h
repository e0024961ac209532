/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a stack ends with although their call frame information has a caller.
 *
 * Greenlets (greenlet, gevent, eventlet, SQLAlchemy's asyncio) are coroutines that share one C
 * stack: what a greenlet has on it, from the function that began it on, is copied away when another
 * one is to run, and back again. What lies above that is whatever runs there now, or has run:
 * others' frames, which did not call it.
 */
#pragma once

#include "elf/elf_file.h"

/*
 * Where the function begins in this file, in its own address space, x86-64 and aarch64. greenlet
 * 2.0 and later (greenlet/TUserGreenlet.cpp, before 3.0 greenlet.cpp:
 * UserGreenlet::inner_bootstrap, which runs as the new greenlet, is exported and never returns). 0;
 * -ENOENT: there is none; -ENOMEM.
 */
int stack_bottom_find(const struct elf_file *elf, uint64_t *ret);
