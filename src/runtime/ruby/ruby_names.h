/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frames of CRuby are called: read out of the process, and checked against what the walker
 * saw.
 */
#pragma once

#include "runtime/ruby/ruby_layout.h"
#include "runtime/runtime.h"

enum { RUBY_NAME_MAX = 1024, RUBY_SOURCE_MAX = 4096 };

struct ruby_names {
	const struct runtime_target *target;
	const struct ruby_record *record;
	const struct ruby_layout *layout;
	uint64_t symbols; /* ruby_global_symbols */
	uint64_t vm;	  /* ruby_current_vm_ptr; 0 where nothing is read there */
};

/* Is there a table of symbols at `addr` of the process? */
bool ruby_is_symbols(const struct runtime_target *target, const struct ruby_layout *layout,
		     const struct ruby_record *record, uint64_t addr);
/* As runtime_ops.symbolize(). */
int ruby_names_symbolize(const struct ruby_names *n, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink);
