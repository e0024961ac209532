/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probe() of an interpreter looks for: the functions of a file that run script frames, and
 * those that only implement them, by the names that its source has. Lists of names end with NULL;
 * a name that ends in * stands for all that begin so.
 */
#pragma once

#include "runtime/runtime.h"

/* Is `name` in the list, or a part of such a function that the compiler put elsewhere (foo.cold)?
 */
bool runtime_name_in(const char *name, const char *const *list);
/*
 * Fills dso->interpreter_functions and dso->hidden (these, too). -ENOTSUP: no interpreter is to be
 * seen (a file without .symtab has only the functions that it exports): then say so, like any
 * -ENOTSUP of probe(). Likewise if it has more symbols than can be read in the recorder. Other
 * errors are those of reading symbols.
 */
int runtime_find_functions(const struct elf_file *elf, const char *const *interpreters,
			   const char *const *hidden, struct runtime_dso *dso);
/*
 * Where the key (pthread_key_t) lies that the function at `function` asks pthread_getspecific() for
 * first of all, in the file's address space. x86-64; 0: that is not to be seen.
 */
uint64_t runtime_find_key(const struct elf_file *elf, uint64_t function);
/* Frees these lists. */
void runtime_dso_fini(struct runtime_dso *dso);
