// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of the toy machine (tests/toy/toy_machine.c): an executable that exports
 * toy_offsets is one. Its loop is toy_run(), which toy_call() calls.
 */
#include "runtime/runtime.h"

#include "elf/elf_dynamic.h"
#include "runtime/functions.h"
#include "runtime/toy/toy_abi.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 128 };

struct toy_dso {
	struct runtime_dso base;
	struct toy_offsets offsets;
	uint64_t threads; /* of the list of threads, in the file's address space */
};

struct toy_proc {
	struct runtime_proc base;
	struct toy_offsets offsets;
};

/* --- files ------------------------------------------------------------------------------------ */

static void toy_dso_free(struct runtime_dso *base)
{
	struct toy_dso *dso = (struct toy_dso *)base;

	if (!dso)
		return;
	runtime_dso_fini(&dso->base);
	free(dso);
}

static void toy_dso_free_p(struct toy_dso **dso)
{
	if (*dso)
		toy_dso_free(&(*dso)->base);
}

static bool offsets_fit(const struct toy_offsets *o)
{
	const uint16_t words[] = { o->thread_next,	 o->thread_pointer,
				   o->thread_activation, o->activation_previous,
				   o->activation_frame,	 o->frame_back,
				   o->frame_function,	 o->frame_pc,
				   o->function_serial,	 o->function_name,
				   o->function_source,	 o->function_start_line,
				   o->function_nr_ops,	 o->function_ops };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i] % 8 || words[i] >= TOY_STRUCT_SIZE)
			return false;
	return true;
}

/* The loop, and the function between it and who calls it. */
static const char *const interpreter_functions[] = { "toy_run", NULL };
static const char *const hidden[] = { "toy_call", NULL };

static bool toy_knows(unsigned int major, unsigned int minor)
{
	(void)minor;
	return major == 1;
}

static int toy_probe(const struct elf_file *elf, struct runtime_about *about,
		     struct runtime_dso **ret)
{
	_cleanup_(toy_dso_free_p) struct toy_dso *dso = NULL;
	struct elf_dynamic dynamic;
	struct toy_offsets offsets;
	uint64_t at, threads = 0;
	int r = -ENOTSUP;

	if (elf_dynamic_read(elf, &dynamic) || elf_dynamic_find(&dynamic, "toy_offsets", &at) ||
	    elf_file_read_vaddr(elf, at, &offsets, sizeof(offsets)) ||
	    memcmp(offsets.magic, "toyvm", sizeof("toyvm")))
		return -ENOENT;
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return -ENOMEM;
	if (toy_knows(offsets.version, 0) && offsets_fit(&offsets) &&
	    !elf_dynamic_find(&dynamic, "toy_threads", &threads))
		r = runtime_find_functions(elf, interpreter_functions, hidden, &dso->base);
	runtime_is_version(about, "toyvm %u", offsets.version);
	if (r == -ENOTSUP && toy_knows(offsets.version, 0))
		return runtime_not_supported(about, "it has no symbols");
	if (r)
		return r;
	dso->base.ops = runtimes[RUNTIME_TOY];
	dso->offsets = offsets;
	dso->threads = threads;
	*ret = &TAKE_PTR(dso)->base;
	return 0;
}

/* --- processes -------------------------------------------------------------------------------- */

static int toy_attach(const struct runtime_dso *base, const struct runtime_target *target,
		      void *record, struct runtime_proc **ret)
{
	const struct toy_dso *dso = (const struct toy_dso *)base;
	struct toy_record *to = record;
	struct toy_proc *rp;
	uint64_t first;
	int r = runtime_read(target, dso->threads + target->bias, &first, sizeof(first));

	if (r)
		return r;
	if (!first)
		return -EAGAIN; /* no thread runs the machine yet */
	rp = calloc(1, sizeof(*rp));
	if (!rp)
		return -ENOMEM;
	rp->base = (struct runtime_proc){ .ops = runtimes[RUNTIME_TOY],
					  .dso = base,
					  .target = target };
	rp->offsets = dso->offsets;
	to->threads = dso->threads + target->bias;
	to->offsets = dso->offsets;
	*ret = &rp->base;
	return 0;
}

static void toy_detach(struct runtime_proc *rp)
{
	free(rp);
}

/* --- names ------------------------------------------------------------------------------------ */

/* A string of the process, cut to what fits; it may end just before memory that can't be read. */
static int read_string(const struct runtime_target *t, uint64_t addr, char text[NAME_SIZE])
{
	enum { PAGE = 4096 };
	size_t at = 0;

	while (at < NAME_SIZE - 1) {
		size_t piece = PAGE - (addr + at) % PAGE;
		int r;

		if (piece > NAME_SIZE - 1 - at)
			piece = NAME_SIZE - 1 - at;
		r = runtime_read(t, addr + at, text + at, piece);
		if (r)
			return r;
		if (memchr(text + at, '\0', piece))
			return 0;
		at += piece;
	}
	text[at] = '\0';
	return 0;
}

struct names {
	char name[NAME_SIZE], source[NAME_SIZE];
	uint32_t start_line, line;
};

static int read_names(const struct toy_proc *rp, uint64_t function, uint32_t pc, struct names *ret)
{
	const struct runtime_target *t = rp->base.target;
	const struct toy_offsets *o = &rp->offsets;
	uint64_t words[TOY_STRUCT_SIZE / 8], ops;
	int r = runtime_read(t, function, words, sizeof(words));

	if (!r)
		r = read_string(t, words[TOY_WORD(o->function_name)], ret->name);
	if (!r)
		r = read_string(t, words[TOY_WORD(o->function_source)], ret->source);
	if (r)
		return r;
	ret->start_line = (uint32_t)words[TOY_WORD(o->function_start_line)];
	ops = words[TOY_WORD(o->function_ops)];
	if (pc >= words[TOY_WORD(o->function_nr_ops)])
		return -EINVAL;
	return runtime_read(t, ops + (uint64_t)pc * o->op_size + o->op_line, &ret->line,
			    sizeof(ret->line));
}

/* Whether it is still the function that the step saw. */
static int check_serial(const struct toy_proc *rp, uint64_t function, uint32_t serial)
{
	uint64_t now;
	int r = runtime_read(rp->base.target, function + rp->offsets.function_serial, &now,
			     sizeof(now));

	if (r)
		return r == -ESRCH ? r : -ENOENT; /* its memory was given back */
	return (uint32_t)now == serial ? 0 : -ENOENT;
}

static int toy_symbolize(struct runtime_proc *base, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink)
{
	const struct toy_proc *rp = (const struct toy_proc *)base;
	struct names names;
	uint64_t function;
	int r, again;

	if (nr != 2)
		return -EINVAL;
	function = FRAME_DATA(words[0]);
	r = check_serial(rp, function, (uint32_t)(words[1] >> 32));
	if (r)
		return r;
	r = read_names(rp, function, (uint32_t)words[1], &names);
	/* What was read may be another function's, if it was made meanwhile. */
	again = check_serial(rp, function, (uint32_t)(words[1] >> 32));
	if (r || again)
		return again ? again : r;
	return sink->add(sink->ctx, &(struct runtime_inline_frame){ .name = names.name,
								    .source = names.source,
								    .start_line = names.start_line,
								    .line = names.line });
}

const struct runtime_ops toy_runtime = {
	.name = "toy",
	.id = RUNTIME_TOY,
	.label = "toy",
	.language = "Toy",
	.record_size = sizeof(struct toy_record),
	.knows = toy_knows,
	.product = "toyvm",
	.probe = toy_probe,
	.dso_free = toy_dso_free,
	.attach = toy_attach,
	.detach = toy_detach,
	.symbolize = toy_symbolize,
};
