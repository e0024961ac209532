// SPDX-License-Identifier: Apache-2.0
/*
 * PHP: the runtime's operations. What a file tells is in php_file.c, names in php_names.c, the
 * walker's step is php.bpf.c. docs/php.md
 */
#include "runtime/php/php_file.h"
#include "runtime/php/php_jit.h"
#include "runtime/php/php_names.h"

#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool php_knows(unsigned int major, unsigned int minor)
{
	struct php_layout layout;
	uint32_t current;

	return php_layout_of(major, minor, &layout, &current);
}

static int php_probe(const struct elf_file *elf, struct runtime_about *about,
		     struct runtime_dso **ret)
{
	struct php_version version;
	const char *why;
	struct php_dso *dso;
	int r = php_file_read(elf, &dso, &version, &why);

	if (version.major)
		runtime_is_version(about, "PHP %u.%u", version.major, version.minor);
	if (r == -ENOTSUP)
		return runtime_not_supported(about, why);
	if (r)
		return r;
	dso->base.ops = runtimes[RUNTIME_PHP];
	*ret = &dso->base;
	return 0;
}

static void php_dso_free(struct runtime_dso *dso)
{
	php_file_free((struct php_dso *)dso);
}

struct php_proc {
	struct runtime_proc rp;
	struct php_record record;
	struct php_jit jit;
};

/* 1: the JIT's code is elsewhere now. */
static int find_code(struct php_proc *p)
{
	const struct php_dso *dso = (const struct php_dso *)p->rp.dso;
	struct code_range found = { 0 };
	bool was = p->rp.code.nr;

	if (!p->jit.begin && php_jit_find(p->rp.target, dso, &p->jit))
		return 0;
	if (php_jit_buffer(p->rp.target, &p->jit, &found))
		return 0;
	if (was ? found.start == p->rp.code.items[0].start && found.end == p->rp.code.items[0].end
		: !found.start)
		return 0;
	p->rp.code.nr = 0;
	p->rp.code_expected = true;
	if (found.start && vec_push(&p->rp.code, found))
		return was;
	p->rp.code_expected = !found.start;
	log_debug("process %d: PHP's JIT has its code at 0x%llx, %llu bytes", p->rp.target->pid,
		  (unsigned long long)found.start, (unsigned long long)(found.end - found.start));
	return 1;
}

/* Is it the interpreter of the command line, which has one request in its life? 1: that has just
 * turned out. Its module has yet to be named as a program begins. */
static int find_requests(struct php_proc *p)
{
	const struct php_dso *dso = (const struct php_dso *)p->rp.dso;
	const struct runtime_target *t = p->rp.target;
	char name[4] = "";
	uint64_t at;

	if (!dso->sapi || p->record.flags & PHP_ONE_REQUEST ||
	    runtime_read(t, dso->sapi + t->bias, &at, sizeof(at)) || !at ||
	    runtime_read(t, at, name, sizeof(name)) || memcmp(name, "cli", sizeof(name)))
		return 0;
	p->record.flags |= PHP_ONE_REQUEST;
	return 1;
}

static int php_refresh(struct runtime_proc *rp, void *record)
{
	struct php_proc *p = (struct php_proc *)rp;

	if (!(find_code(p) | find_requests(p)))
		return 0;
	memcpy(record, &p->record, sizeof(p->record));
	return 1;
}

/*
 * The address of that variable of the file: of a library's, as ld.so has written it. -EAGAIN: it
 * has yet to do so, or there is only the file's own address there: in a program at a fixed address
 * that is the one.
 */
static int find_variable(const struct php_dso *dso, const struct runtime_target *t,
			 uint64_t variable, uint64_t *ret)
{
	uint64_t addr = 0;
	int r;

	if (!dso->globals_slot) {
		*ret = variable + t->bias;
		return 0;
	}
	r = runtime_read(t, dso->globals_slot + t->bias, &addr, sizeof(addr));
	if (r)
		return r;
	if (!addr || (t->bias && addr == variable))
		return -EAGAIN;
	*ret = addr;
	return 0;
}

/* -EAGAIN: they have yet to be made. */
static int find_thread_globals(const struct php_dso *dso, const struct runtime_target *t,
			       struct thread_key *ret_key, uint64_t *ret_offset)
{
	uint64_t at, offset;
	uint32_t key;
	int r = find_variable(dso, t, dso->globals_offset, &at);

	if (!r)
		r = runtime_read(t, at, &offset, sizeof(offset));
	if (!r)
		r = runtime_read(t, dso->key + t->bias, &key, sizeof(key));
	if (r)
		return r;
	if (!offset)
		return -EAGAIN;
	if (key >= THREAD_KEYS_MAX || offset > UINT32_MAX)
		return -EBADMSG;
	*ret_key = thread_key_of(key);
	*ret_offset = offset;
	return 0;
}

static int php_attach(const struct runtime_dso *base, const struct runtime_target *t, void *record,
		      struct runtime_proc **ret)
{
	const struct php_dso *dso = (const struct php_dso *)base;
	struct thread_key key = { 0 };
	struct php_proc *p;
	struct php_record *to;
	uint64_t globals;
	int r;

	r = dso->key ? find_thread_globals(dso, t, &key, &globals)
		     : find_variable(dso, t, dso->globals, &globals);
	if (r)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->rp = (struct runtime_proc){ .ops = base->ops, .dso = base, .target = t };
	to = &p->record;
	*to = dso->record;
	to->key = key;
	to->current = globals + dso->current;
	to->loop_start += t->bias;
	to->text += t->bias;
	to->fiber += t->bias;
	to->change += t->bias;
	p->rp.code_expected = dso->version.major >= 8; /* opcache has a JIT from there on */
	(void)find_code(p);
	(void)find_requests(p);
	memcpy(record, to, sizeof(*to));
	*ret = &p->rp;
	return 0;
}

static void php_detach(struct runtime_proc *rp)
{
	vec_free(&rp->code);
	free(rp);
}

static int php_symbolize(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink)
{
	const struct php_dso *dso = (const struct php_dso *)rp->dso;

	return php_names_symbolize(rp->target, &dso->record.layout, words, nr, sink);
}

const struct runtime_ops php_runtime = {
	.name = "php",
	.id = RUNTIME_PHP,
	.label = "php",
	.language = "PHP",
	.programs = "php",
	.library = "libphp",
	.record_size = sizeof(struct php_record),
	.knows = php_knows,
	.product = "PHP",
	.probe = php_probe,
	.dso_free = php_dso_free,
	.hides = php_hides,
	.attach = php_attach,
	.refresh = php_refresh,
	.detach = php_detach,
	.symbolize = php_symbolize,
};
