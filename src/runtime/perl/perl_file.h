/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a perl or a libperl tells of itself: which version, built with threads or not, where its
 * variables are, who calls its loop.
 */
#pragma once

#include "runtime/perl/perl_abi.h"
#include "runtime/runtime.h"

/* Of runtime_dso.follow: rbx, x19, in which a loop has its interpreter, with threads. */
enum { PERL_HELD_SLOT = 1 << X86_SLOT_RBX };

struct perl_dso {
	struct runtime_dso base;
	unsigned int version; /* 36: 5.36 */
	bool threaded;
	/* In the file's own address space; without threads. */
	uint64_t op, curcop, curstackinfo, comppad, savestack, compiling;
	/* With threads. */
	uint64_t thr_key, curinterp;
	uint16_t interp_size;
	uint64_t block_type; /* names of the types of contexts */
	uint64_t nextstate, dbstate, entersub, goto_, leaves[PERL_LEAVES], enters[PERL_ENTERS];
	struct perl_range main, run, catcher, calls[PERL_CALLS_MAX];
	struct perl_range defers[PERL_DEFERS]; /* none: not known */
	struct perl_range held[PERL_LOOPS];    /* with threads; see perl_record */
};

/* Of Perl 5: are such files known? */
bool perl_version_known(unsigned int version);
/* 0; -ENOENT: it is no Perl; -ENOTSUP: of a version (*ret_version, of Perl 5; 0: it does not say)
 * or a build that is not known; or -ENOMEM. */
int perl_file_read(const struct elf_file *elf, unsigned int *ret_version, struct perl_dso **ret);
void perl_file_free(struct perl_dso *dso);
