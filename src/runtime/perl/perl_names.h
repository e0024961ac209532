/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of Perl's frames, as caller() has them: "Package::sub", "Package::__ANON__", "(eval)".
 */
#pragma once

#include "runtime/perl/perl_abi.h"
#include "runtime/runtime.h"

struct perl_names {
	const struct runtime_target *target;
	unsigned int version; /* 36: 5.36 */
	bool threaded;
	uint64_t dbstate; /* address of pp_dbstate() */
};

/* symbolize() of struct runtime_ops. */
int perl_names_symbolize(const struct perl_names *names, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink);
