// SPDX-License-Identifier: Apache-2.0
#include "runtime/perl/perl_file.h"
#include "runtime/functions.h"
#include "runtime/loop_code.h"

#include "elf/a64_insn.h"
#include "elf/elf_dynamic.h"
#include "elf/elf_symbols.h"
#include "elf/x86_insn.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	VERSION_MIN = 28,
	VERSION_MAX = 42,
	FUNCTION_MAX = 1 << 16, /* bytes of code that are read of one */
	JUMPS_MAX = 512,	/* in one */
	EH_HDR_MAX = 1 << 20,
	SYMBOL_BYTES_MAX = 16 << 20,
	OPS_MAX = 512,	   /* 5.42 has 426 */
	OPS_AT_ONCE = 384, /* 5.32 has 400 */
	OP_NAME = 16,
	RELOCATIONS_MAX = 8 << 20,
	PUSHDEFER_MAX = 512,
};

static const char *const loop_names[] = { "Perl_runops_standard", "Perl_runops_debug", NULL };
static const char *const glue_names[] = { "S_docatch", "Perl_docatch", NULL };
static const char *const main_names[] = { "perl_run", "S_run_body", NULL };
/* Who starts a loop for a sub (or a text, eval_sv) that is the loop's outermost frame. */
static const char *const call_names[] = { "Perl_call_sv",     "S_call_body",	  "Perl_eval_sv",
					  "Perl_amagic_call", "Perl_call_method", NULL };

/* --- docatch() ------------------------------------------------------------------------------- */

struct jumps {
	uint64_t to[JUMPS_MAX];
	size_t nr;
};

/* Where it jumps to or what it calls. Bytes in the middle of an instruction may look so. */
static int find_jumps(const struct elf_file *elf, uint64_t start, uint64_t end, struct jumps *ret)
{
	_cleanup_free_ uint8_t *code = NULL;
	bool arm = elf->machine == EM_AARCH64;
	size_t size = end - start;

	ret->nr = 0;
	if (end < start + 8 || size > FUNCTION_MAX)
		return 0;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, start, code, size))
		return 0;
	for (size_t at = 0; at + (arm ? 4 : 5) <= size && ret->nr < JUMPS_MAX; at += arm ? 4 : 1) {
		uint64_t pc = start + at, target;
		uint32_t word;

		memcpy(&word, code + at, sizeof(word));
		if (arm && (word & 0x7c000000) == 0x14000000) /* b, bl */
			target = a64_branch_target(word, pc);
		else if (!arm && (code[at] == 0xe8 || code[at] == 0xe9))
			target = x86_rel32(code + at + 1, pc + 1);
		else
			continue;
		if (target - start >= size)
			ret->to[ret->nr++] = target;
	}
	return 0;
}

/* The end of the function that begins there, by the table that unwinders look up; 0: none does, or
 * too much was looked for. */
static uint64_t function_end(const struct elf_file *elf, uint64_t start, struct loop_work *work)
{
	enum { VERSION = 1, SDATA4 = 0x0b, PCREL = 0x10, DATAREL = 0x30, HEAD = 12, ENTRY = 8 };
	const struct elf_section *section = elf_file_section(elf, ".eh_frame_hdr");
	_cleanup_free_ uint8_t *table = NULL;
	struct elf_data data;
	uint32_t nr;

	if (!section || loop_work_add(work, elf_file_section_size(elf, section) / 8) ||
	    elf_file_section_data(elf, section, EH_HDR_MAX, &data))
		return 0;
	table = data.data;
	if (data.size < HEAD || table[0] != VERSION || table[1] != (PCREL | SDATA4) ||
	    table[2] != 3 || table[3] != (DATAREL | SDATA4))
		return 0;
	memcpy(&nr, table + 8, sizeof(nr));
	for (size_t i = 0; i + 1 < nr && HEAD + (i + 2) * ENTRY <= data.size; i++) {
		int32_t here, next;

		memcpy(&here, table + HEAD + i * ENTRY, sizeof(here));
		memcpy(&next, table + HEAD + (i + 1) * ENTRY, sizeof(next));
		if (section->addr + (uint64_t)(int64_t)here == start && next > here)
			return section->addr + (uint64_t)(int64_t)next;
	}
	return 0;
}

/* --- ops ------------------------------------------------------------------------------------- */

enum op {
	OP_NEXTSTATE,
	OP_DBSTATE,
	OP_ENTERSUB,
	OP_GOTO,
	OP_LEAVES, /* PERL_LEAVES ops that leave a sub or an eval */
	OP_ENTERS = OP_LEAVES + PERL_LEAVES,
	OP_ENTERTRY = OP_ENTERS,
	OP_ENTEREVAL,
	OP_REQUIRE,
	OP_REQUIRED_ = OP_ENTERS + PERL_ENTERS,
	OP_PUSHDEFER = OP_REQUIRED_, /* since 5.36 */
	OP_MAX_,
};
static const char *const op_names[OP_MAX_] = {
	"nextstate", "dbstate",	 "entersub",  "goto",	   "leavesub",	"leavesublv",
	"return",    "leavetry", "leaveeval", "die",	   "entertry",	"entereval",
	"require",   "enter",	 "enterloop", "enteriter", "pushdefer",
};

/* The pointers of a table of the file, which ld.so will relocate; 0: not known. */
static int read_pointers(const struct elf_file *elf, uint64_t table, uint64_t to[OPS_MAX])
{
	const struct elf_section *section = elf_file_section(elf, ".rela.dyn");
	_cleanup_free_ uint8_t *relocations = NULL;
	struct elf_data data;
	int r;

	memset(to, 0, OPS_MAX * sizeof(to[0]));
	if (elf_file_read_vaddr(elf, table, to, OPS_AT_ONCE * sizeof(to[0])))
		return -ENOTSUP;
	/* Its segment may end soon behind it. */
	for (size_t i = OPS_AT_ONCE; i < OPS_MAX; i++)
		if (elf_file_read_vaddr(elf, table + i * sizeof(to[0]), &to[i], sizeof(to[0])))
			break;
	if (!section)
		return 0;
	r = elf_file_section_data(elf, section, RELOCATIONS_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : -ENOTSUP;
	relocations = data.data;
	for (size_t at = 0; at + sizeof(Elf64_Rela) <= data.size; at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, relocations + at, sizeof(rela));
		if (rela.r_offset - table < OPS_MAX * sizeof(to[0]) && !(rela.r_offset & 7) &&
		    (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE ||
		     ELF64_R_TYPE(rela.r_info) == R_AARCH64_RELATIVE))
			to[(rela.r_offset - table) / 8] = (uint64_t)rela.r_addend;
	}
	return 0;
}

static bool has_ops(const uint64_t ops[OP_MAX_])
{
	for (int op = 0; op < OP_REQUIRED_; op++)
		if (!ops[op])
			return false;
	return true;
}

/* The functions of ops: 5.38 and later do not export them, but a table of names and one of them. */
static int find_ops(const struct elf_file *elf, const struct elf_dynamic *dynamic,
		    uint64_t ops[OP_MAX_])
{
	uint64_t names[OPS_MAX], functions[OPS_MAX], at[2];
	size_t found = 0;
	int r;

	for (int op = 0; op < OP_MAX_; op++) {
		char name[OP_NAME + 8];

		snprintf(name, sizeof(name), "Perl_pp_%s", op_names[op]);
		if (elf_dynamic_find(dynamic, name, &ops[op]))
			ops[op] = 0;
	}
	if (has_ops(ops))
		return 0;
	if (elf_dynamic_find(dynamic, "PL_op_name", &at[0]) ||
	    elf_dynamic_find(dynamic, "PL_ppaddr", &at[1]))
		return -ENOTSUP;
	r = read_pointers(elf, at[0], names);
	if (!r)
		r = read_pointers(elf, at[1], functions);
	if (r)
		return r;
	for (size_t i = 0; i < OPS_MAX && found < OP_MAX_; i++) {
		char name[OP_NAME];

		if (!names[i] || elf_file_read_vaddr(elf, names[i], name, sizeof(name)))
			continue;
		name[sizeof(name) - 1] = '\0';
		if (!strcmp(name, "freed")) /* the last one, of no op */
			break;
		for (int op = 0; op < OP_MAX_; op++)
			if (!strcmp(name, op_names[op]) && functions[i] && !ops[op]) {
				ops[op] = functions[i];
				found++;
			}
	}
	return has_ops(ops) ? 0 : -ENOTSUP;
}

/*
 * docatch(), which only .symtab names: what pp_entertry() jumps to, and pp_entereval(), and
 * pp_require() as well, and is no function that the file exports.
 */
static int find_catcher(const struct elf_file *elf, const struct elf_symbols *symbols,
			const uint64_t ops[OP_MAX_], struct loop_work *work, struct perl_range *ret)
{
	const uint64_t callers[] = { ops[OP_ENTERTRY], ops[OP_ENTEREVAL], ops[OP_REQUIRE] };
	_cleanup_free_ struct jumps *jumps = calloc(3, sizeof(*jumps));
	int r = jumps ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < 3; i++)
		r = find_jumps(elf, callers[i], function_end(elf, callers[i], work), &jumps[i]);
	if (r)
		return r;
	for (size_t i = 0; i < jumps[0].nr; i++) {
		const struct elf_symbol *s;
		size_t found = 1;

		for (size_t n = 1; n < 3; n++)
			for (size_t k = 0; k < jumps[n].nr; k++)
				if (jumps[n].to[k] == jumps[0].to[i]) {
					found++;
					break;
				}
		s = elf_symbols_find(symbols, jumps[0].to[i]);
		if (found < 3 || (s && s->addr == jumps[0].to[i]))
			continue;
		ret->end = function_end(elf, jumps[0].to[i], work);
		if (!ret->end)
			continue;
		ret->start = jumps[0].to[i];
		return 0;
	}
	return 0;
}

static void add_defer(const struct elf_file *elf, uint64_t start, struct loop_work *work,
		      struct perl_dso *dso)
{
	uint64_t end = function_end(elf, start, work);

	for (size_t i = 0; end && i < PERL_DEFERS && dso->defers[i].start != start; i++)
		if (!dso->defers[i].start) {
			dso->defers[i] = (struct perl_range){ start, end };
			return;
		}
}

/*
 * Who starts a loop for defer {} and finally {}: static functions. pp_pushdefer() takes their
 * addresses, and they may go on in one that they have in common. (pp.c at v5.36.0.)
 */
static int find_defers(const struct elf_file *elf, const struct elf_symbols *symbols,
		       uint64_t pushdefer, struct loop_work *work, struct perl_dso *dso)
{
	uint64_t end = pushdefer ? function_end(elf, pushdefer, work) : 0;
	_cleanup_free_ struct jumps *jumps = NULL;
	uint8_t bytes[PUSHDEFER_MAX];
	struct loop_code code = loop_code_of(elf, pushdefer, bytes, end - pushdefer);
	size_t direct = 0;

	if (end <= pushdefer)
		return 0;
	if (code.size > sizeof(bytes))
		code.size = sizeof(bytes);
	if (elf_file_read_vaddr(elf, pushdefer, bytes, code.size))
		return 0;
	for (size_t at = 0; at < code.size; at++) {
		uint64_t taken = loop_code_address(&code, at);

		if (taken)
			add_defer(elf, taken, work, dso);
	}
	jumps = malloc(sizeof(*jumps));
	if (!jumps)
		return -ENOMEM;
	while (direct < PERL_DEFERS && dso->defers[direct].start)
		direct++;
	for (size_t i = 0; i < direct; i++) {
		int r = find_jumps(elf, dso->defers[i].start, dso->defers[i].end, jumps);

		if (r)
			return r;
		for (size_t k = 0; k < jumps->nr; k++) {
			const struct elf_symbol *s = elf_symbols_find(symbols, jumps->to[k]);

			if (!s || s->addr != jumps->to[k] || strstr(s->name, "invoke_defer"))
				add_defer(elf, jumps->to[k], work, dso);
		}
	}
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Fills what the loop's callers tell. */
static int find_callers(const struct elf_file *elf, const uint64_t ops[OP_MAX_],
			struct perl_dso *dso)
{
	_cleanup_(elf_symbols_fini) struct elf_symbols symbols = { 0 };
	struct loop_work work = { 0 };
	struct code_range range;
	size_t nr = 0;
	int r;

	if (elf_symbols_bytes(elf) > SYMBOL_BYTES_MAX)
		return -ENOTSUP;
	r = elf_symbols_read(elf, &symbols);
	if (r)
		return r;
	for (size_t i = 0; i < symbols.nr; i++) {
		const struct elf_symbol *s = &symbols.items[i];
		struct perl_range to = { s->addr, s->addr + s->size };

		if (!s->size)
			continue;
		if (!strcmp(s->name, "perl_run"))
			dso->run = to;
		if (!strcmp(s->name, "S_docatch") || !strcmp(s->name, "Perl_docatch"))
			dso->catcher = to;
		else if (runtime_name_in(s->name, main_names) && !dso->main.start)
			dso->main = to;
		else if ((runtime_name_in(s->name, call_names) ||
			  runtime_name_in(s->name, main_names)) &&
			 nr < PERL_CALLS_MAX)
			dso->calls[nr++] = to;
	}
	r = find_defers(elf, &symbols, ops[OP_PUSHDEFER], &work, dso);
	if (r)
		return r;
	/* When something has died that loop was left, and perl_run() is about to begin it anew: the
	 * program's frames are there all the time. (It is shown, unlike a loop.) */
	range = (struct code_range){ dso->run.start, dso->run.end };
	if (range.start) {
		r = vec_push(&dso->base.interpreter_functions, range);
		if (r)
			return r;
		qsort(dso->base.interpreter_functions.items, dso->base.interpreter_functions.nr,
		      sizeof(range), compare_ranges);
	}
	if (dso->catcher.start)
		return 0;
	r = find_catcher(elf, &symbols, ops, &work, &dso->catcher);
	if (r || !dso->catcher.start)
		return r ? r : -ENOTSUP;
	range = (struct code_range){ dso->catcher.start, dso->catcher.end };
	r = vec_push(&dso->base.hidden, range);
	qsort(dso->base.hidden.items, dso->base.hidden.nr, sizeof(range), compare_ranges);
	return r;
}

/* --- loops ----------------------------------------------------------------------------------- */

/* Is that sequence in the code? */
static bool has_code(const struct loop_code *c, const void *code, size_t size)
{
	return memmem(c->bytes, c->size, code, size) != NULL;
}

/*
 * Does the loop keep the interpreter, its argument, in ARCH_FIRST_SAVED? It stores there, to PL_op,
 * what each op's function returns.
 */
static bool holds_interpreter(const struct loop_code *c)
{
	static const uint8_t x86_move[] = { 0x48, 0x89, 0xfb };	       /* mov %rdi, %rbx */
	static const uint8_t x86_store[] = { 0x48, 0x89, 0x43, 0x08 }; /* mov %rax, 8(%rbx) */
	static const uint8_t arm_move[] = { 0xf3, 0x03, 0x00, 0xaa };  /* mov x19, x0 */
	static const uint8_t arm_store[] = { 0x60, 0x06, 0x00, 0xf9 }; /* str x0, [x19, 8] */

	return c->arm ? has_code(c, arm_move, sizeof(arm_move)) &&
				has_code(c, arm_store, sizeof(arm_store))
		      : has_code(c, x86_move, sizeof(x86_move)) &&
				has_code(c, x86_store, sizeof(x86_store));
}

/* Of those that were found so far. */
static int find_held(const struct elf_file *elf, struct perl_dso *dso)
{
	struct loop_work work = { 0 };
	size_t nr = 0;

	for (size_t i = 0; i < dso->base.interpreter_functions.nr && nr < PERL_LOOPS; i++) {
		const struct code_range *range = &dso->base.interpreter_functions.items[i];
		_cleanup_(loop_code_fini) struct loop_code c = { 0 };
		int r = loop_code_read(elf, range, &work, &c);

		if (r == -ENOMEM)
			return r;
		if (!r && holds_interpreter(&c))
			dso->held[nr++] = (struct perl_range){ range->start, range->end };
	}
	if (nr)
		dso->base.follow = PERL_HELD_SLOT;
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

void perl_file_free(struct perl_dso *dso)
{
	if (!dso)
		return;
	runtime_dso_fini(&dso->base);
	free(dso);
}

static void perl_file_free_p(struct perl_dso **dso)
{
	perl_file_free(*dso);
}

/* A constant of one byte. */
static int read_byte(const struct elf_file *elf, const struct elf_dynamic *dynamic,
		     const char *name, uint8_t *ret)
{
	uint64_t at;

	return elf_dynamic_find(dynamic, name, &at) ? -ENOENT
						    : elf_file_read_vaddr(elf, at, ret, 1);
}

static int find_variables(const struct elf_dynamic *dynamic, struct perl_dso *dso)
{
	uint64_t at;

	if (elf_dynamic_find(dynamic, "PL_block_type", &dso->block_type))
		return -ENOTSUP;
	dso->threaded = !elf_dynamic_find(dynamic, "PL_thr_key", &dso->thr_key);
	if (dso->threaded)
		return elf_dynamic_find(dynamic, "PL_curinterp", &dso->curinterp) ||
				       elf_dynamic_find(dynamic, "PL_interp_size", &at) ||
				       elf_file_read_vaddr(dynamic->elf, at, &dso->interp_size, 2)
			       ? -ENOTSUP
			       : 0;
	/* Every Perl has it; without, loops of methods in C are not told. */
	if (elf_dynamic_find(dynamic, "PL_savestack", &dso->savestack))
		dso->savestack = 0;
	return elf_dynamic_find(dynamic, "PL_op", &dso->op) ||
			       elf_dynamic_find(dynamic, "PL_curcop", &dso->curcop) ||
			       elf_dynamic_find(dynamic, "PL_comppad", &dso->comppad) ||
			       elf_dynamic_find(dynamic, "PL_curstackinfo", &dso->curstackinfo) ||
			       elf_dynamic_find(dynamic, "PL_compiling", &dso->compiling)
		       ? -ENOTSUP
		       : 0;
}

bool perl_version_known(unsigned int version)
{
	return version >= VERSION_MIN && version <= VERSION_MAX;
}

int perl_file_read(const struct elf_file *elf, unsigned int *ret_version, struct perl_dso **ret)
{
	_cleanup_(perl_file_free_p) struct perl_dso *dso = NULL;
	struct elf_dynamic dynamic;
	uint8_t revision = 0, version = 0;
	uint64_t loop, ops[OP_MAX_] = { 0 };
	int r;

	if (elf_dynamic_read(elf, &dynamic) ||
	    elf_dynamic_find(&dynamic, "Perl_runops_standard", &loop))
		return -ENOENT;
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return -ENOMEM;
	if (!read_byte(elf, &dynamic, "PL_revision", &revision) && revision == 5)
		(void)read_byte(elf, &dynamic, "PL_version", &version);
	*ret_version = version;
	if ((elf->machine != EM_X86_64 && elf->machine != EM_AARCH64) ||
	    !perl_version_known(version))
		return -ENOTSUP;
	dso->version = version;
	r = find_variables(&dynamic, dso);
	if (!r)
		r = find_ops(elf, &dynamic, ops);
	if (!r)
		r = runtime_find_functions(elf, loop_names, glue_names, &dso->base);
	if (!r && dso->threaded)
		r = find_held(elf, dso);
	if (!r)
		r = find_callers(elf, ops, dso);
	if (r)
		return r;
	dso->nextstate = ops[OP_NEXTSTATE];
	dso->dbstate = ops[OP_DBSTATE];
	dso->entersub = ops[OP_ENTERSUB];
	dso->goto_ = ops[OP_GOTO];
	memcpy(dso->leaves, &ops[OP_LEAVES], sizeof(dso->leaves));
	memcpy(dso->enters, &ops[OP_ENTERS], sizeof(dso->enters));
	*ret = TAKE_PTR(dso);
	return 0;
}
