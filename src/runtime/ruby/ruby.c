// SPDX-License-Identifier: Apache-2.0
/*
 * CRuby: the runtime's operations. What a file tells is in ruby_file.c, offsets are in
 * ruby_layout.c, names in ruby_names.c, the walker's step is ruby.bpf.c.
 */
#include "runtime/ruby/ruby_file.h"
#include "runtime/ruby/ruby_names.h"

#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MODULES_MAX = 1 << 16,
	/* Variables that look like the table of symbols, which takes several reads each. In a
	 * libruby it is among the first five. */
	CANDIDATES_MAX = 4096,
};

struct ruby_proc {
	struct runtime_proc rp;
	struct ruby_record record;
	struct ruby_names names;
};

static int find_key(const struct ruby_dso *dso, const struct runtime_target *t,
		    struct ruby_record *rec)
{
	uint32_t key;
	int r = runtime_read(t, dso->ec_slot + t->bias, &key, sizeof(key));

	if (r)
		return r;
	if (key >= THREAD_KEYS_MAX)
		return -EBADMSG;
	rec->key = thread_key_of(key);
	rec->ec = dso->layout->thread_ec;
	rec->ec_thread = dso->layout->ec_thread;
	return 0;
}

/* Where a thread has what it runs; -EAGAIN: ld.so has yet to say it. */
static int find_ec(const struct ruby_dso *dso, const struct runtime_target *t,
		   struct ruby_record *rec)
{
	uint64_t words[2];
	int r;

	rec->how = dso->how;
	rec->ec = (uint64_t)dso->ec_offset;
	rec->dtv = dso->machine == EM_X86_64 ? 8 : 0;
	if (dso->how == RUBY_EC_KEY)
		return find_key(dso, t, rec);
	if (!dso->ec_slot)
		return 0;
	r = runtime_read(t, dso->ec_slot + t->bias, words, sizeof(words));
	if (r)
		return r;
	if (dso->how == RUBY_EC_TLS) {
		rec->ec = words[dso->descriptor];
		return words[0] ? 0 : -EAGAIN;
	}
	rec->ec_module = words[0];
	rec->ec = words[1];
	return words[0] && words[0] < MODULES_MAX ? 0 : -EAGAIN;
}

/* -EBADMSG: there are none, or what looks like them is too much. */
static int search_symbols(const struct ruby_dso *dso, const struct runtime_target *t,
			  const struct ruby_record *rec, uint64_t *ret)
{
	_cleanup_free_ uint64_t *data = NULL;
	uint64_t start = dso->data.start + t->bias, size = dso->data.end - dso->data.start;
	unsigned int nr = 0;
	int r;

	data = malloc(size + 8);
	if (!data)
		return -ENOMEM;
	r = runtime_read(t, start, data, size);
	if (r)
		return r;
	for (size_t i = 0; i + 2 < size / 8 && nr < CANDIDATES_MAX; i++) {
		/* A number, and two pointers. */
		if (!data[i] || data[i] > UINT32_MAX || data[i + 1] <= UINT32_MAX ||
		    data[i + 2] <= UINT32_MAX)
			continue;
		nr++;
		*ret = start + 8 * i;
		if (ruby_is_symbols(t, dso->layout, rec, *ret))
			return 0;
	}
	return -EBADMSG;
}

/* -EAGAIN: Ruby has yet to begin, which may be much later than it is mapped. */
static int find_symbols(const struct ruby_dso *dso, const struct runtime_target *t,
			const struct ruby_record *rec, uint64_t *ret)
{
	uint64_t begun = 1;
	int r = dso->begun ? runtime_read(t, dso->begun + t->bias, &begun, sizeof(begun)) : 0;

	if (r || !begun)
		return r ? r : -EAGAIN;
	if (!dso->symbols)
		return search_symbols(dso, t, rec, ret);
	*ret = dso->symbols + t->bias;
	return ruby_is_symbols(t, dso->layout, rec, *ret) ? 0 : -EBADMSG;
}

static void ruby_detach(struct runtime_proc *rp)
{
	free(rp);
}

static void set_offsets(const struct ruby_layout *l, struct ruby_record *rec)
{
	rec->cfp_size = l->cfp_size;
	rec->early = l->version < 302;
	rec->bmethods = l->version >= 303;
	rec->error = l->error;
	rec->nil = l->nil;
	rec->stack = l->stack;
	rec->string_text = l->string_text;
	rec->string_length = l->string_length;
	rec->path = l->path;
	rec->label = l->label;
	rec->first_line = l->first_line;
	rec->node = l->node;
	rec->lines = l->lines;
	rec->serial = l->serial;
}

/* Where the process counts its collections; what can't be read is not used. */
static void find_collections(const struct ruby_dso *dso, const struct runtime_target *t,
			     struct ruby_record *rec)
{
	uint64_t at = dso->gc.vm + t->bias;

	if (!dso->gc.count || (dso->gc.slot && runtime_read(t, at, &at, sizeof(at))) ||
	    runtime_read(t, at, &at, sizeof(at)) || !at ||
	    runtime_read(t, at + dso->gc.objspace, &at, sizeof(at)) || !at)
		return;
	rec->collections = at + dso->gc.count;
	rec->collecting = at + dso->gc.flags;
}

static int ruby_attach(const struct runtime_dso *base, const struct runtime_target *t, void *record,
		       struct runtime_proc **ret)
{
	const struct ruby_dso *dso = (const struct ruby_dso *)base;
	_cleanup_free_ struct ruby_proc *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->rp = (struct runtime_proc){ .ops = base->ops, .dso = base, .target = t };
	set_offsets(dso->layout, &p->record);
	r = find_ec(dso, t, &p->record);
	if (!r)
		r = find_symbols(dso, t, &p->record, &p->names.symbols);
	if (r)
		return r;
	p->names.target = t;
	p->names.record = &p->record;
	p->names.layout = dso->layout;
	p->names.vm = dso->vm + t->bias;
	if (dso->text.start) {
		p->record.text = dso->text.start + t->bias;
		p->record.text_size = dso->text.end - dso->text.start;
		p->rp.anonymous_code = true;
	}
	p->record.own = dso->own.start + t->bias;
	p->record.own_size = dso->own.end - dso->own.start;
	find_collections(dso, t, &p->record);
	log_debug("process %d: Ruby %s: what a thread runs is at 0x%llx of %s %llu, symbols at "
		  "0x%llx, collections are counted at 0x%llx",
		  t->pid, dso->version, (unsigned long long)p->record.ec,
		  p->record.how == RUBY_EC_DTV	 ? "module"
		  : p->record.how == RUBY_EC_KEY ? "what its key has, module"
						 : "the thread pointer",
		  (unsigned long long)p->record.ec_module, (unsigned long long)p->names.symbols,
		  (unsigned long long)p->record.collections);
	memcpy(record, &p->record, sizeof(p->record));
	*ret = &TAKE_PTR(p)->rp;
	return 0;
}

static int ruby_symbolize(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			  const struct runtime_sink *sink)
{
	return ruby_names_symbolize(&((struct ruby_proc *)rp)->names, words, nr, sink);
}

static bool ruby_knows(unsigned int major, unsigned int minor)
{
	return minor < 100 && ruby_layout_of(100 * major + minor);
}

static int ruby_probe(const struct elf_file *elf, struct runtime_about *about,
		      struct runtime_dso **ret)
{
	unsigned int major, minor;
	struct ruby_dso *dso;
	char version[16];
	const char *why;
	int r = ruby_file_read(elf, version, &dso, &why);

	if (r && r != -ENOTSUP)
		return r;
	runtime_is_version(about, "Ruby %s", version);
	if (r && why)
		return runtime_not_supported(about, why);
	if (r && sscanf(version, "%u.%u", &major, &minor) == 2 && ruby_knows(major, minor))
		return runtime_not_supported(about, "its build is not as that version's are");
	if (r)
		return r;
	dso->dso.ops = runtimes[RUNTIME_RUBY];
	*ret = &dso->dso;
	return 0;
}

static void ruby_dso_free(struct runtime_dso *dso)
{
	ruby_file_free((struct ruby_dso *)dso);
}

const struct runtime_ops ruby_runtime = {
	.name = "ruby",
	.id = RUNTIME_RUBY,
	.label = "ruby",
	.language = "Ruby",
	.programs = "ruby",
	.library = "libruby",
	.knows = ruby_knows,
	.product = "Ruby",
	.record_size = sizeof(struct ruby_record),
	.probe = ruby_probe,
	.dso_free = ruby_dso_free,
	.hides = ruby_hides,
	.attach = ruby_attach,
	.detach = ruby_detach,
	.symbolize = ruby_symbolize,
};
