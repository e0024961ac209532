/* SPDX-License-Identifier: Apache-2.0 */
/* The functions with the most samples, as a table on a terminal or in a text file. */
#pragma once

#include "profile/profile.h"

#include <stdio.h>

/*
 * Two tables of at most `nr` functions: by self samples (the function ran), by total samples (it or
 * something it called ran; counted once a stack). 0 or -ENOMEM.
 */
int top_print(const struct profile *p, uint32_t nr, FILE *out);
