// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of Perl, from 5.28 on: finds its variables and its interpreter's layout, tells
 * the step.
 */
#include "runtime/runtime.h"

#include "elf/elf_dynamic.h"
#include "runtime/functions.h"
#include "runtime/perl/perl_abi.h"
#include "runtime/perl/perl_file.h"
#include "runtime/perl/perl_names.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_TYPES = 14,
	BLOCK_NAME = 8,
};

struct perl_proc {
	struct runtime_proc base;
	struct perl_names names;
};

static struct perl_range in_memory(struct perl_range range, uint64_t bias)
{
	return range.start ? (struct perl_range){ range.start + bias, range.end + bias } : range;
}

/* What differs between versions. cop.h, intrpvar.h at v5.28.0 to v5.42.0. */
static void set_layout(const struct perl_dso *dso, struct perl_record *r)
{
	/* blk_sub.old_cxsubix, PERL_SI.si_cxsubix since 5.32 */
	bool sub_index = dso->version >= 31;

	r->cx_size = sub_index ? 104 : 96;
	r->cx_cv = sub_index ? PERL_CX_CV : PERL_CX_CV - 8;
	r->si_type = sub_index ? 44 : 40;
	if (!dso->threaded)
		return;
	r->flags |= PERL_THREADED;
	r->op = 8;
	/* PL_defgv and others were moved in front of it up to 5.32. */
	r->curcop = dso->version >= 33 ? 0xd0 : 0xe0;
	r->curstackinfo = r->curcop + 16;
	r->comppad = r->curcop + 80;
	r->savestack = 40;
	r->compiling_size = dso->interp_size;
}

/* The numbers of the types of contexts: 5.41.3 to 5.41.8 had others. */
static int read_types(const struct perl_dso *dso, const struct runtime_target *t,
		      struct perl_record *r)
{
	uint64_t names[BLOCK_TYPES] = { 0 }, at = dso->block_type + t->bias;
	int error = runtime_read(t, at, names, sizeof(names) - sizeof(names[0]));

	if (error)
		return error;
	/* Before 5.36 there is one less, and something else behind them. */
	if (runtime_read(t, at + sizeof(names) - sizeof(names[0]), &names[BLOCK_TYPES - 1],
			 sizeof(names[0])))
		names[BLOCK_TYPES - 1] = 0;
	r->cx_sub = r->cx_format = r->cx_eval = r->cx_defer = 0;
	for (uint8_t i = 0; i < BLOCK_TYPES; i++) {
		char name[BLOCK_NAME];

		if (!names[i] || runtime_read(t, names[i], name, sizeof(name)))
			continue;
		if (!memcmp(name, "SUB", 4))
			r->cx_sub = i;
		else if (!memcmp(name, "FORMAT", 7))
			r->cx_format = i;
		else if (!memcmp(name, "EVAL", 5))
			r->cx_eval = i;
		else if (!memcmp(name, "DEFER", 6))
			r->cx_defer = i;
	}
	return r->cx_sub && r->cx_format && r->cx_eval ? 0 : -EBADMSG;
}

/* How a thread gets at its interpreter. 0 if that is known. */
static int find_key(const struct perl_dso *dso, const struct runtime_target *t,
		    struct perl_record *r)
{
	uint32_t key;
	int error;

	/* The loop's register is all that is known there. */
	if (t->machine == EM_AARCH64)
		return dso->held[0].start ? 0 : -ENOTSUP;
	error = runtime_read(t, dso->thr_key + t->bias, &key, sizeof(key));
	if (error)
		return error;
	if (key >= THREAD_KEYS_MAX)
		return -EBADMSG;
	r->key = thread_key_of(key);
	return 0;
}

static int perl_attach(const struct runtime_dso *base, const struct runtime_target *t, void *record,
		       struct runtime_proc **ret)
{
	const struct perl_dso *dso = (const struct perl_dso *)base;
	struct perl_record *r = record;
	struct perl_proc *p;
	uint64_t first;
	int error;

	/* Without threads PL_curcop is 0 until there is an interpreter. */
	error = runtime_read(t, (dso->threaded ? dso->curinterp : dso->curstackinfo) + t->bias,
			     &first, sizeof(first));
	if (error)
		return error;
	if (!first)
		return -EAGAIN;
	set_layout(dso, r);
	error = read_types(dso, t, r);
	if (!error && dso->threaded)
		error = find_key(dso, t, r);
	if (error == -ENOTSUP)
		(void)runtime_not_supported(
			t->about, "how its threads get at their interpreters is not known");
	if (error)
		return error;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->base = (struct runtime_proc){ .ops = base->ops, .dso = base, .target = t };
	p->names = (struct perl_names){ .target = t,
					.version = dso->version,
					.threaded = dso->threaded,
					.dbstate = dso->dbstate + t->bias };
	if (!dso->threaded) {
		r->op = dso->op + t->bias;
		r->curcop = dso->curcop + t->bias;
		r->curstackinfo = dso->curstackinfo + t->bias;
		r->comppad = dso->comppad + t->bias;
		r->savestack = dso->savestack ? dso->savestack + t->bias : 0;
		r->compiling = dso->compiling + t->bias;
		r->compiling_size = 1;
	}
	r->nextstate = dso->nextstate + t->bias;
	r->dbstate = dso->dbstate + t->bias;
	r->entersub = dso->entersub + t->bias;
	r->goto_ = dso->goto_ + t->bias;
	for (size_t i = 0; i < PERL_LEAVES; i++)
		r->leaves[i] = dso->leaves[i] + t->bias;
	for (size_t i = 0; i < PERL_ENTERS; i++)
		r->enters[i] = dso->enters[i] + t->bias;
	r->main = in_memory(dso->main, t->bias);
	r->run = in_memory(dso->run, t->bias);
	r->catcher = in_memory(dso->catcher, t->bias);
	for (size_t i = 0; i < PERL_CALLS_MAX; i++)
		r->calls[i] = in_memory(dso->calls[i], t->bias);
	for (size_t i = 0; i < PERL_DEFERS; i++)
		r->defers[i] = in_memory(dso->defers[i], t->bias);
	for (size_t i = 0; i < PERL_LOOPS; i++)
		r->held[i] = in_memory(dso->held[i], t->bias);
	log_debug("process %d: Perl 5.%u%s: docatch() at 0x%llx", t->pid, dso->version,
		  dso->threaded ? ", with threads" : "", (unsigned long long)r->catcher.start);
	*ret = &p->base;
	return 0;
}

static void perl_detach(struct runtime_proc *rp)
{
	free(rp);
}

static int perl_symbolize(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			  const struct runtime_sink *sink)
{
	return perl_names_symbolize(&((struct perl_proc *)rp)->names, words, nr, sink);
}

static bool perl_knows(unsigned int major, unsigned int minor)
{
	return major == 5 && perl_version_known(minor);
}

static int perl_probe(const struct elf_file *elf, struct runtime_about *about,
		      struct runtime_dso **ret)
{
	unsigned int version = 0;
	struct perl_dso *dso;
	int r = perl_file_read(elf, &version, &dso);

	if (version)
		runtime_is_version(about, "Perl 5.%u", version);
	if (r == -ENOTSUP && perl_version_known(version))
		return runtime_not_supported(about, "its build is not as that version's are");
	if (r)
		return r;
	dso->base.ops = runtimes[RUNTIME_PERL];
	*ret = &dso->base;
	return 0;
}

/* A module of native code: a loop may call its functions in place of an op's (PL_ppaddr). */
static unsigned int perl_follow(const struct elf_file *elf)
{
	struct elf_dynamic dynamic;

	/* Its boot function asks whether it was built for this Perl (perl.h, since 5.22). */
	return !elf_dynamic_read(elf, &dynamic) && elf_dynamic_needs(&dynamic, "Perl_xs_handshake")
		       ? PERL_HELD_SLOT
		       : 0;
}

static void perl_dso_free(struct runtime_dso *dso)
{
	perl_file_free((struct perl_dso *)dso);
}

const struct runtime_ops perl_runtime = {
	.name = "perl",
	.id = RUNTIME_PERL,
	.label = "perl",
	.language = "Perl",
	.programs = "perl",
	.library = "libperl",
	.knows = perl_knows,
	.product = "Perl",
	.record_size = sizeof(struct perl_record),
	.probe = perl_probe,
	.dso_free = perl_dso_free,
	.follow = perl_follow,
	.attach = perl_attach,
	.detach = perl_detach,
	.symbolize = perl_symbolize,
};
