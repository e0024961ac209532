/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions in no file that keep to a frame of one size behind their begin, as sljit makes them for
 * PCRE's patterns: one walk's rule (anon_code.h) tells of all of the function. The kernel's walker
 * is told of them (struct anon_function), so that such stacks need not be sent raw.
 */
#pragma once

#include "abi/unwind.h"
#include "unwind/code_follow.h"

#include <stdbool.h>

struct bpf_sampler;

/*
 * The function around `pc`, where the CFA is `cfa_off` above the stack pointer: how it begins tells
 * the same, if there is one. False: it does not. What it returns to is the caller's to fill in.
 */
bool anon_function_find(const struct code_bytes *code, uint64_t pc, int32_t cfa_off,
			struct anon_function *ret);

/* What the kernel was told; zeroes at first. */
struct anon_functions {
	struct anon_functions_page *pages; /* ANON_PAGES_MAX; NULL: nothing yet */
	uint32_t next;			   /* whose place the next page gets */
};

/* Tells the kernel, unless it knows already. 0 or -ENOMEM. */
int anon_functions_learn(struct anon_functions *a, struct bpf_sampler *sampler, uint64_t mm,
			 const struct anon_function *function);
/* Tells it of code that may be much larger, for the page of it that `pc` is in. */
int anon_functions_learn_page(struct anon_functions *a, struct bpf_sampler *sampler, uint64_t mm,
			      const struct anon_function *function, uint64_t pc);
void anon_functions_fini(struct anon_functions *a);
