// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of V8: an executable or library that exports V8's version and its v8dbg_*
 * variables, as Node.js does. Its builtins are functions of the file, Builtins_NAME. What it knows
 * of objects is v8_layout.h's; v8_frame.c names frames.
 */
#include "runtime/runtime.h"

#include "elf/elf_symbols.h"
#include "runtime/functions.h"
#include "runtime/v8/v8_collections.h"
#include "runtime/v8/v8_dispatch.h"
#include "runtime/v8/v8_frame.h"
#include "runtime/v8/v8_wasm.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAG = 1,
	SYMBOL_BYTES_MAX = 64 << 20,
	ENTRY_CODE_MAX = 512, /* of the interpreter's entry, to where it has made its frame */
	ENTRY_MAX = 4096, /* the whole of it, so that the step can tell by the address in a page */
	CALL_CODE_MAX = 1024,
	INT3 = 0xcc,
};

struct v8_dso {
	struct runtime_dso base;
	struct v8_layout layout; /* addresses are the file's */
	struct v8_bytecode_sizes sizes;
};

struct v8_proc {
	struct runtime_proc base;
	struct v8_frames frames;
	struct v8_wasm wasm;
};

/* --- files -------------------------------------------------------------------------------------
 */

static void v8_dso_free(struct runtime_dso *base)
{
	struct v8_dso *dso = (struct v8_dso *)base;

	if (!dso)
		return;
	runtime_dso_fini(&dso->base);
	free(dso);
}

static void v8_dso_free_p(struct v8_dso **dso)
{
	if (*dso)
		v8_dso_free(&(*dso)->base);
}

/*
 * Up to where the interpreter's entry has the function in its register: behind push %rbp; mov
 * %rsp, %rbp; push %rsi comes push %rdi; or behind stp x29, x30, [sp, #-16]!; mov x29, sp comes stp
 * x1, x27, [sp, #-16]! (Builtins::Generate_InterpreterEntryTrampoline).
 */
static uint64_t find_pushed(const struct elf_file *elf, const struct code_range *entry)
{
	static const uint8_t x86[] = { 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57 };
	static const uint32_t a64[] = { 0xa9bf7bfd, 0x910003fd, 0xa9bf6fe1 };
	const void *frame = elf->machine == EM_X86_64 ? (const void *)x86 : a64;
	size_t len = elf->machine == EM_X86_64 ? sizeof(x86) : sizeof(a64);
	size_t step = elf->machine == EM_X86_64 ? 1 : sizeof(*a64);
	uint8_t code[ENTRY_CODE_MAX];
	uint64_t room = entry->end - entry->start;
	size_t size = room < sizeof(code) ? (size_t)room : sizeof(code);

	if (elf_file_read_vaddr(elf, entry->start, code, size))
		return entry->start;
	for (size_t i = 0; i + len <= size; i += step)
		if (!memcmp(code + i, frame, len))
			return entry->start + i + len;
	return entry->start;
}

/*
 * Whether the interpreter's entry reads a function as a compressed pointer's file does, whose
 * layout nothing but its version told: mov N(%rdi), %eax; add %r13, %rax.
 */
static bool reads_compressed(const struct elf_file *elf, const struct code_range *entry,
			     const struct v8_record *record)
{
	const uint8_t want[] = { 0x8b, 0x47, (uint8_t)(record->function_shared - TAG),
				 0x49, 0x03, 0xc5 };
	uint8_t code[sizeof(want)];

	return elf->machine == EM_X86_64 &&
	       !elf_file_read_vaddr(elf, entry->start, code, sizeof(code)) &&
	       !memcmp(code, want, sizeof(want));
}

/* 0: it is not found. */
static uint16_t find_dispatch(const struct elf_file *elf, const struct elf_symbol *call,
			      uint16_t *ret_shift)
{
	uint8_t code[CALL_CODE_MAX];
	size_t size = call->size < sizeof(code) ? call->size : sizeof(code);

	if (elf_file_read_vaddr(elf, call->addr, code, size))
		return 0;
	return v8_find_dispatch(elf->machine, code, size, ret_shift);
}

/* The address of the pointer to WebAssembly's manager of code; 0: it is not found. */
static uint64_t find_state(const struct elf_file *elf, const struct elf_symbol *getter)
{
	uint8_t code[V8_WASM_GETTER];

	return elf_file_read_vaddr(elf, getter->addr, code, sizeof(code))
		       ? 0
		       : v8_find_wasm_state(elf->machine, getter->addr, code);
}

/* --- collections of garbage ---------------------------------------------------------------------
 */

/* What says where they are counted. */
struct collections {
	/* Of Heap::GarbageCollectionPrologueInSafepoint(), which increments Heap::gc_count_ (up to
	 * 8.4, GarbageCollectionPrologue() does); Isolate::GetHeapStatistics(), which calculates
	 * the heap's address first; and CEntry, which gives C++ functions the isolate's. */
	const struct elf_symbol *prologue, *former, *statistics, *exit;
};

static const char prologue_name[] = "_ZN2v88internal4Heap36GarbageCollectionPrologueInSafepointE",
		  former_name[] = "_ZN2v88internal4Heap25GarbageCollectionPrologueE",
		  statistics_name[] = "_ZN2v87Isolate17GetHeapStatisticsEPNS_14HeapStatisticsE",
		  exit_name[] = "Builtins_CEntry_Return1_",
		  wasm_state_name[] = "_ZN2v88internal4wasm18GetWasmCodeManagerEv",
		  builtins_name[] = "Builtins_";

static void note_symbol(struct collections *c, const struct elf_symbol *s)
{
	if (strchr(s->name, '.')) /* foo.cold */
		return;
	if (!strncmp(s->name, prologue_name, sizeof(prologue_name) - 1))
		c->prologue = s;
	else if (!strncmp(s->name, former_name, sizeof(former_name) - 1))
		c->former = s;
	else if (!strcmp(s->name, statistics_name))
		c->statistics = s;
	else if (!strncmp(s->name, exit_name, sizeof(exit_name) - 1) && !c->exit)
		c->exit = s;
}

/* Whether the builtin has a trap before it, which a return address - 1 lies at. */
static bool is_behind_trap(const struct elf_file *elf, uint64_t addr)
{
	uint8_t before;

	return elf->machine == EM_X86_64 && !elf_file_read_vaddr(elf, addr - 1, &before, 1) &&
	       before == INT3;
}

static size_t read_code(const struct elf_file *elf, const struct elf_symbol *s, uint8_t *code,
			size_t max)
{
	size_t size = s && s->size && s->size < max ? s->size : max;

	return s && !elf_file_read_vaddr(elf, s->addr, code, size) ? size : 0;
}

/* How far behind the root register collections are counted, if that is to be seen. */
static void find_collections(const struct elf_file *elf, const struct collections *c,
			     const struct v8_layout *l, struct v8_record *record)
{
	uint8_t prologue[V8_PROLOGUE_CODE], statistics[V8_STATISTICS_CODE], exit[V8_EXIT_CODE];
	size_t n = read_code(elf, c->prologue ?: c->former, prologue, sizeof(prologue));

	record->chunk_heap = l->chunk_heap;
	record->chunk_metadata = l->chunk_metadata;
	record->collections =
		(elf->machine == EM_X86_64 ? v8_find_collections : v8_find_collections_a64)(
			prologue, n, statistics,
			read_code(elf, c->statistics, statistics, sizeof(statistics)), exit,
			read_code(elf, c->exit, exit, sizeof(exit)), &record->heap);
}

static bool is_wanted(const char *name)
{
	return !strncmp(name, builtins_name, sizeof(builtins_name) - 1) ||
	       !strncmp(name, prologue_name, sizeof(prologue_name) - 1) ||
	       !strncmp(name, former_name, sizeof(former_name) - 1) ||
	       !strcmp(name, statistics_name) || !strcmp(name, wasm_state_name);
}

/* Without a size a builtin ends before the next symbol, whatever that is. */
static bool have_sizes(const struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->nr; i++)
		if (!symbols->items[i].size &&
		    !strncmp(symbols->items[i].name, builtins_name, sizeof(builtins_name) - 1))
			return false;
	return true;
}

/* Of some hundred thousands of functions a few thousand are wanted. */
static int read_symbols(const struct elf_file *elf, struct elf_symbols *ret)
{
	int r = elf_symbols_read_some(elf, is_wanted, ret);

	if (r || have_sizes(ret))
		return r;
	elf_symbols_fini(ret);
	return elf_symbols_read(elf, ret);
}

/* --- builtins -----------------------------------------------------------------------------------
 */

enum role {
	HIDDEN = 1, /* it only implements frames of JavaScript */
	RUNS = 2,   /* the step looks at its frames */
	ENTRY = 4,
	HANDLER = 8,
	RESUMES = 16, /* callees return to its first instruction, if it has a trap before that */
	INTERPRETED = 32, /* with a frame of the interpreter */
	GOES_ON = 64,	  /* with what awaited: for --async */
	CALLS = 128,	  /* it reads the table that functions are called by */
};

/*
 * What is known of builtins; `*` stands for anything.
 *
 * Those that resume go on with frames that V8 made of one of optimized code (deoptimization): of
 * the interpreter, or of a builtin that was inlined there. The frame is there already
 * (Deoptimizer::DoComputeUnoptimizedFrame(), DoComputeBuiltinContinuation()).
 */
static const struct {
	const char *name;
	unsigned int roles;
} builtins[] = {
	{ "InterpreterEntryTrampoline", ENTRY | HIDDEN | RUNS },
	{ "*Handler", HANDLER | HIDDEN },
	{ "*InterpreterEnterAtBytecode", RESUMES | INTERPRETED | HIDDEN },
	{ "*InterpreterEnterAtNextBytecode", RESUMES | INTERPRETED | HIDDEN },
	{ "ContinueTo*", RESUMES | HIDDEN },
	{ "AsyncFunctionAwaitResolveClosure", GOES_ON | RUNS },
	{ "AsyncFunctionAwaitRejectClosure", GOES_ON | RUNS },
	{ "AsyncGeneratorAwaitResolveClosure", GOES_ON | RUNS },
	{ "AsyncGeneratorAwaitRejectClosure", GOES_ON | RUNS },
	{ "CallFunction_ReceiverIsAny", CALLS },
	/* Up to 8.8; the first makes room for arguments that a caller did not give. */
	{ "ArgumentsAdaptorTrampoline", HIDDEN },
	{ "*InterpreterEnterBytecodeDispatch", RESUMES | INTERPRETED | HIDDEN },
	{ "*InterpreterEnterBytecodeAdvance", RESUMES | INTERPRETED | HIDDEN },
};

static bool is_like(const char *name, const char *pattern)
{
	size_t len = strlen(name), n = strlen(pattern) - 1;

	if (*pattern == '*')
		return len >= n && !strcmp(name + len - n, pattern + 1);
	return pattern[n] == '*' ? !strncmp(name, pattern, n) : !strcmp(name, pattern);
}

static unsigned int roles_of(const struct elf_file *elf, const struct v8_layout *l,
			     const struct elf_symbol *s)
{
	unsigned int roles = 0;

	for (size_t i = 0; i < sizeof(builtins) / sizeof(*builtins); i++)
		if (is_like(s->name + sizeof(builtins_name) - 1, builtins[i].name))
			roles |= builtins[i].roles;
	if ((roles & RESUMES && !is_behind_trap(elf, s->addr)) ||
	    (roles & GOES_ON && !l->async.promise))
		return 0;
	return roles;
}

/* What is found of a file. */
struct found {
	struct v8_dso *dso;
	struct collections collections;
	struct code_range resume[V8_RESUMES];
	size_t nr_resume;
};

static int add_entry(const struct elf_file *elf, const struct code_range *range,
		     struct v8_record *record)
{
	if (range->end - range->start > ENTRY_MAX ||
	    (record->compressed && !reads_compressed(elf, range, record)))
		return -ENOTSUP;
	record->entry_start = range->start;
	record->entry_pushed = find_pushed(elf, range);
	record->entry_size = (uint16_t)(range->end - range->start);
	return 0;
}

/* By address. */
static int add_builtin(const struct elf_file *elf, struct found *f, unsigned int roles,
		       const struct code_range *range)
{
	struct runtime_dso *base = &f->dso->base;
	struct v8_record *record = &f->dso->layout.record;
	int r = vec_push(&base->functions, *range);

	if (!r && roles & ENTRY)
		r = add_entry(elf, range, record);
	if (!r && roles & HIDDEN)
		r = vec_push(&base->hidden, *range);
	if (roles & INTERPRETED && f->nr_resume < V8_RESUMES) {
		f->resume[f->nr_resume++] = *range;
		roles |= RUNS;
	}
	if (!r && roles & RUNS)
		r = vec_push(&base->interpreter_functions, *range);
	if (roles & HANDLER) {
		record->handlers_start = record->handlers_start ?: range->start;
		record->handlers_end = range->end;
	}
	return r;
}

/* `next`: the symbol behind it, or NULL. */
static int look_at_symbol(const struct elf_file *elf, struct found *f, const struct elf_symbol *s,
			  const struct elf_symbol *next)
{
	struct v8_layout *l = &f->dso->layout;
	const struct runtime_dso *base = &f->dso->base;
	struct code_range range = { s->addr, s->addr + s->size };
	unsigned int roles;

	if (!strcmp(s->name, wasm_state_name))
		l->wasm_state = find_state(elf, s);
	note_symbol(&f->collections, s);
	if (strncmp(s->name, builtins_name, sizeof(builtins_name) - 1))
		return 0;
	/* Those of V8 7.8 have no size. There is a trap behind each. */
	if (!s->size && next)
		range.end = next->addr - 1;
	roles = roles_of(elf, l, s);
	if (roles & RESUMES)
		range.start--;
	if (roles & CALLS && l->dispatched)
		l->record.dispatch = find_dispatch(elf, s, &l->record.dispatch_shift);
	if (range.end <= range.start ||
	    (base->functions.nr && base->functions.items[base->functions.nr - 1].end > range.start))
		return 0;
	return add_builtin(elf, f, roles, &range);
}

/* Of all functions that are marked: where the step finds those that resume the interpreter's. */
static void note_resumes(const struct found *f, struct v8_record *record)
{
	for (size_t i = 0; i < f->nr_resume; i++) {
		record->resume[i] = (int32_t)(f->resume[i].start - record->entry_start);
		record->resume_size[i] = (uint16_t)(f->resume[i].end - f->resume[i].start);
	}
}

/* The interpreter's entry runs frames, and handlers of bytecodes only implement them. */
static int find_builtins(const struct elf_file *elf, struct v8_dso *dso)
{
	_cleanup_(elf_symbols_fini) struct elf_symbols symbols = { 0 };
	struct v8_record *record = &dso->layout.record;
	struct found f = { .dso = dso };
	int r;

	if (elf_symbols_bytes(elf) > SYMBOL_BYTES_MAX)
		return -ENOTSUP;
	r = read_symbols(elf, &symbols);
	for (size_t i = 0; !r && i < symbols.nr; i++) {
		const struct elf_symbol *s = &symbols.items[i];

		r = look_at_symbol(elf, &f, s, i + 1 < symbols.nr ? s + 1 : NULL);
	}
	if (r)
		return r;
	if (!dso->layout.wasm_state)
		record->wasm_marker = 0;
	if (dso->layout.dispatched && !record->dispatch)
		return -ENOTSUP;
	note_resumes(&f, record);
	find_collections(elf, &f.collections, &dso->layout, record);
	return record->entry_size && record->handlers_start ? 0 : -ENOTSUP;
}

static void read_sizes(const struct elf_file *elf, struct v8_dso *dso)
{
	uint16_t nr = dso->layout.nr_bytecodes;
	uint8_t sizes[V8_SCALES * V8_BYTECODES];

	if (!nr || nr > V8_BYTECODES || !dso->layout.bytecode_sizes ||
	    elf_file_read_vaddr(elf, dso->layout.bytecode_sizes, sizes, (size_t)V8_SCALES * nr))
		return;
	for (size_t i = 0; i < V8_SCALES; i++)
		memcpy(dso->sizes.sizes[i], sizes + i * nr, nr);
	dso->sizes.nr = nr;
}

static int v8_probe(const struct elf_file *elf, struct runtime_about *about,
		    struct runtime_dso **ret)
{
	_cleanup_(v8_dso_free_p) struct v8_dso *dso = NULL;
	struct v8_layout layout;
	uint16_t version = 0;
	int r = v8_layout_read(elf, &layout, &version);

	if (r == -ENOENT)
		return r;
	if (!r) {
		dso = calloc(1, sizeof(*dso));
		if (!dso)
			return -ENOMEM;
		dso->layout = layout;
		r = find_builtins(elf, dso);
	}
	if (version)
		runtime_is_version(about, "V8 %d.%d", version / 100, version % 100);
	if (r == -ENOTSUP && !version)
		return runtime_not_supported(about, "it exports Node-API, but not V8's version");
	if (r == -ENOTSUP)
		return runtime_not_supported(about, "its version or build is not known, or it has "
						    "no symbols");
	if (r)
		return r;
	dso->base.ops = runtimes[RUNTIME_V8];
	read_sizes(elf, dso);
	*ret = &TAKE_PTR(dso)->base;
	return 0;
}

/* --- processes ---------------------------------------------------------------------------------
 */

static int v8_attach(const struct runtime_dso *base, const struct runtime_target *target,
		     void *record, struct runtime_proc **ret)
{
	const struct v8_dso *dso = (const struct v8_dso *)base;
	struct v8_record *to = record;
	struct v8_proc *rp = calloc(1, sizeof(*rp));

	if (!rp)
		return -ENOMEM;
	rp->base = (struct runtime_proc){
		.ops = runtimes[RUNTIME_V8],
		.dso = base,
		.target = target,
		.anonymous_code = true,
	};
	rp->frames = (struct v8_frames){ .target = target,
					 .layout = &dso->layout,
					 .sizes = &dso->sizes };
	rp->wasm = (struct v8_wasm){ .target = target,
				     .layout = &dso->layout,
				     .state = dso->layout.wasm_state + target->data_bias };
	*to = dso->layout.record;
	if (target->options.async && dso->layout.async.promise)
		to->async = dso->layout.async;
	else if (target->options.async && target->about)
		target->about->without = "--async does not know its promises";
	to->async.script = dso->layout.type_script;
	to->entry_start += target->bias;
	to->entry_pushed += target->bias;
	to->handlers_start += target->bias;
	to->handlers_end += target->bias;
	*ret = &rp->base;
	return 0;
}

static void v8_detach(struct runtime_proc *base)
{
	struct v8_proc *rp = (struct v8_proc *)base;

	v8_frames_fini(&rp->frames);
	free(rp);
}

/* --- names -------------------------------------------------------------------------------------
 */

static int v8_symbolize(struct runtime_proc *base, const uint64_t *words, size_t nr,
			const struct runtime_sink *sink)
{
	struct v8_proc *rp = (struct v8_proc *)base;

	if (nr == 2)
		return v8_wasm_name(&rp->wasm, words, sink);
	return nr == 3 ? v8_frame_name(&rp->frames, words, sink) : -EINVAL;
}

const struct runtime_ops v8_runtime = {
	.name = "v8",
	.id = RUNTIME_V8,
	.label = "v8js",
	.language = "JavaScript",
	.programs = "node deno electron",
	.knows = v8_knows,
	.product = "V8",
	.record_size = sizeof(struct v8_record),
	.probe = v8_probe,
	.dso_free = v8_dso_free,
	.attach = v8_attach,
	.detach = v8_detach,
	.symbolize = v8_symbolize,
};
