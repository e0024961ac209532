// SPDX-License-Identifier: Apache-2.0
#include "unwind/code_gap.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/sample.h"
#include "elf/x86_insn.h"
#include "unwind/ghc_code.h"
#include "unwind/never_returns.h"
#include "util/cleanup.h"

enum {
	FUNCTION_ALIGN = 16,
	/*
	 * Reading the symbols costs more than a small gap is worth: the C runtime's own helpers,
	 * that every file has, are found without.
	 */
	SYMBOLS_WORTH = 512,
	ENTRY_SIZE = 64, /* of an entry point in code too large to be scanned */
	PLT_ENTRY = 16,
	TRAMPOLINE_SIZE = 32,
	/* With a nop or endbr64 before it, and a trap behind it. */
	RESTORER_SIZE_MAX = 16,
	RESTORERS_MAX = 8,	  /* in code too large to be scanned; real programs have one */
	SEARCH_PIECE = 256 << 10, /* of such code */
	EPILOGUE_SIZE = 64,
	SWITCH_SIZE_MAX = 4096,	  /* a function of hand-written code */
	SMALL_TEXT_MAX = 4 << 20, /* a C library, or a static program of ordinary size */
};

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

static int compare_sections(const void *a, const void *b)
{
	const struct elf_section *x = *(const struct elf_section *const *)a;
	const struct elf_section *y = *(const struct elf_section *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int find_sections(struct code_gaps *gaps)
{
	const struct elf_file *elf = gaps->elf;
	size_t nr = 0;

	for (int pass = 0; pass < 2; pass++) {
		nr = 0;
		for (size_t i = 0; i < elf->nr_sections; i++) {
			const struct elf_section *s = &elf->sections[i];

			if (!(s->flags & SHF_EXECINSTR) || s->type == SHT_NOBITS || !s->size ||
			    s->size > UINT64_MAX - s->addr)
				continue;
			if (pass)
				gaps->sections[nr] = s;
			nr++;
		}
		if (!pass && nr) {
			gaps->sections = malloc(nr * sizeof(struct elf_section *));
			if (!gaps->sections)
				return -ENOMEM;
		}
		if (!nr)
			return 0;
	}
	gaps->nr_sections = nr;
	qsort(gaps->sections, nr, sizeof(struct elf_section *), compare_sections);
	return 0;
}

/*
 * glibc's __start_context is where functions of makecontext() return to, at its very first byte;
 * its CFI (up to 2.36 at least) does not say that nothing is above it, and the byte before it is
 * padding. It has no symbol in a stripped libc, but code of its own (__start_context.S and
 * setcontext.S in sysdeps/unix/sysv/linux/): mov %rbx,%rsp; pop %rdi; test %rdi,%rdi; je. Of
 * aarch64: nop; mov x0,x19; cbnz x0,setcontext; b exit.
 */
static const uint8_t *context_start_x86(const uint8_t *text, size_t size)
{
	static const uint8_t code[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c,
					0x24, 0x48, 0x85, 0xff, 0x74 };

	return memmem(text, size, code, sizeof(code));
}

static const uint8_t *context_start_a64(const uint8_t *text, size_t size)
{
	static const uint32_t code[] = { 0xd503201f, 0xaa1303e0 };
	const uint8_t *p = text, *end = text + size;
	uint32_t next[2];

	for (; (p = memmem(p, (size_t)(end - p), code, sizeof(code))); p += 4) {
		if ((size_t)(end - p) < sizeof(code) + sizeof(next))
			return NULL;
		memcpy(next, p + sizeof(code), sizeof(next));
		if ((next[0] & 0xff00001f) == 0xb5000000 && (next[1] & 0xfc000000) == 0x14000000)
			return p;
	}
	return NULL;
}

static void find_context_start(struct code_gaps *gaps)
{
	const struct elf_file *elf = gaps->elf;

	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		_cleanup_free_ uint8_t *text = NULL;
		const uint8_t *found;

		if (s->type != PT_LOAD || !(s->flags & PF_X) || s->filesz > SMALL_TEXT_MAX)
			continue;
		text = malloc(s->filesz ? s->filesz : 1);
		if (!text || elf_file_read(elf, s->offset, text, s->filesz) < 0)
			continue;
		found = elf->machine == EM_X86_64 ? context_start_x86(text, s->filesz)
						  : context_start_a64(text, s->filesz);
		if (found)
			gaps->context_start = s->vaddr + (uint64_t)(found - text);
	}
}

static bool has_little_code(const struct elf_file *elf)
{
	uint64_t left = SMALL_TEXT_MAX;

	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X))
			continue;
		if (s->filesz > left)
			return false;
		left -= s->filesz;
	}
	return true;
}

int code_gaps_init(struct code_gaps *gaps, const struct elf_file *elf, const struct cfi_arch *arch,
		   struct table_writer *writer)
{
	*gaps = (struct code_gaps){ .elf = elf,
				    .writer = writer,
				    .by_ghc = ghc_made(elf),
				    .is_small_program = elf->entry && has_little_code(elf) };
	if (arch->machine == EM_X86_64)
		scan_arch_x86(arch, &gaps->arch);
	else
		scan_arch_a64(arch, &gaps->arch);
	code_gaps_reset(gaps);
	find_context_start(gaps);
	gaps->by_go = go_made(elf);
	if (gaps->by_go) {
		int r = go_code_init(elf, &gaps->go);

		if (r < 0)
			return r;
		gaps->arch.of_go = elf->machine == EM_X86_64;
	}
	return find_sections(gaps);
}

static void forget_text(struct code_gaps *gaps)
{
	never_returns_free(gaps->never);
	free(gaps->text);
	gaps->never = NULL;
	gaps->text = NULL;
	gaps->text_size = 0;
}

void code_gaps_fini(struct code_gaps *gaps)
{
	free(gaps->sections);
	go_code_fini(&gaps->go);
	go_table_fini(&gaps->go_table);
	elf_symbols_fini(&gaps->symbols);
	forget_text(gaps);
	*gaps = (struct code_gaps){ 0 };
}

void code_gaps_reset(struct code_gaps *gaps)
{
	gaps->budget = SCAN_BYTES_MAX;
	gaps->nr_restorers = 0;
	gaps->goexit_passed = false;
	gaps->error = 0;
}

static void add(struct code_gaps *gaps, uint64_t addr, struct unwind_rule rule)
{
	union cfi_rule u = { .rule = rule };

	table_writer_add(gaps->writer, addr, &u);
}

static struct unwind_rule rsp_rule(int32_t off)
{
	return (struct unwind_rule){
		.cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = off, .ra = RA_AT_CFA, .ra_off = -1
	};
}

/* --- PLTs ------------------------------------------------------------------------------------ */

/*
 * aarch64's stubs change neither stack nor link register. The first one, if there is one, has 32
 * bytes: [bti c]; stp x16,x30,[sp,#-16]!; then a jump to the resolver.
 */
static bool cover_plt_a64(struct code_gaps *gaps, const struct elf_section *section)
{
	enum { PUSH = 0xa9bf7bf0, FIRST_SIZE = 32 };
	struct unwind_rule stub = {
		.cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR
	};
	struct unwind_rule pushed = {
		.cfa = CFA_REG, .cfa_reg = A64_SP, .cfa_off = 16, .ra = RA_AT_CFA, .ra_off = -1
	};
	uint64_t addr = section->addr;
	uint32_t code[2] = { 0 };

	if (strcmp(section->name, ".plt") || addr % PLT_ENTRY ||
	    elf_file_read_vaddr(gaps->elf, addr, code, sizeof(code)) < 0)
		return false;
	add(gaps, addr, stub);
	if (code[0] != PUSH && code[1] != PUSH)
		return true;
	add(gaps, addr + (code[0] == PUSH ? 4 : 8), pushed);
	add(gaps, addr + FIRST_SIZE, stub);
	return true;
}

/*
 * x86-64: one rule for all stubs, as linkers that write CFI for them do. False if the stubs are of
 * a form that we don't know.
 */
static bool cover_plt(struct code_gaps *gaps, const struct elf_section *section)
{
	uint8_t code[2 * PLT_ENTRY];
	struct unwind_rule rule = rsp_rule(8);
	uint64_t addr = section->addr;

	if (gaps->elf->machine != EM_X86_64)
		return cover_plt_a64(gaps, section);
	if (!strcmp(section->name, ".plt.sec") || !strcmp(section->name, ".plt.got")) {
		/* a jump and nothing else */
		add(gaps, addr, rule);
		return true;
	}
	if (strcmp(section->name, ".plt") || addr % PLT_ENTRY ||
	    elf_file_read_vaddr(gaps->elf, addr, code, sizeof(code)) < 0)
		return false;
	/* push link map; jmp resolver. Then: jmp target; push index; jmp first */
	if (code[0] != 0xff || code[1] != 0x35)
		return false;
	if (code[16] == 0xff && code[17] == 0x25 && code[22] == 0x68)
		rule.slot_off[UNWIND_CFA_OFF2_SLOT] = 11;
	else if (!memcmp(code + 16, endbr64, sizeof(endbr64)) && code[20] == 0x68)
		rule.slot_off[UNWIND_CFA_OFF2_SLOT] = 9;
	else
		return false;
	rule.cfa = CFA_PLT;
	add(gaps, addr, rsp_rule(16));
	add(gaps, addr + 6, rsp_rule(24));
	add(gaps, addr + PLT_ENTRY, rule);
	return true;
}

bool code_gaps_trampoline(const struct code_gaps *gaps, uint64_t start, uint64_t end,
			  union cfi_rule *ret)
{
	uint8_t code[TRAMPOLINE_SIZE];
	size_t size = end - start < sizeof(code) ? end - start : sizeof(code);

	if (elf_file_read_vaddr(gaps->elf, start, code, size) < 0)
		return false;
	/* A nop may come first, so that pc - 1 is in the function too. */
	for (size_t at = 0; at <= 4 && at < size; at += gaps->arch.min_insn) {
		if (gaps->arch.trampoline(code + at, size - at)) {
			ret->rule = gaps->arch.signal;
			return true;
		}
	}
	return false;
}

/*
 * Each look costs a system call, and large files have thousands of functions as short as this:
 * of .eh_frame's only those of small programs are looked at: libraries leave signals to the C
 * library, which has 'S', and who does without one is small. Go's programs have .debug_frame.
 */
bool code_gaps_restorer(const struct code_gaps *gaps, bool by_eh_frame, uint64_t start,
			uint64_t end, union cfi_rule *ret)
{
	uint8_t code[RESTORER_SIZE_MAX];
	size_t size = end - start, at = 0;
	struct code_insn insn;

	if (size > sizeof(code) || (by_eh_frame && !gaps->is_small_program) ||
	    elf_file_read_vaddr(gaps->elf, start, code, size) < 0)
		return false;
	if (gaps->elf->machine == EM_X86_64 && size > sizeof(endbr64) &&
	    !memcmp(code, endbr64, sizeof(endbr64)))
		at = sizeof(endbr64);
	while (!gaps->arch.trampoline(code + at, size - at)) {
		if (!gaps->arch.step(gaps->arch.cfi, code + at, size - at, start + at, &insn,
				     NULL) ||
		    !insn.padding || insn.flow != FLOW_NEXT)
			return false;
		at += insn.len;
	}
	ret->rule = gaps->arch.signal;
	return true;
}

uint64_t code_gaps_behind_pop(const struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	enum { POP_RBP = 0x5d };
	uint8_t code[EPILOGUE_SIZE];
	size_t size = end - start < sizeof(code) ? end - start : sizeof(code);
	struct x86_insn insn;

	if (gaps->elf->machine != EM_X86_64 ||
	    elf_file_read_vaddr(gaps->elf, start, code, size) < 0)
		return end;
	for (size_t at = 0; at < size && x86_insn_decode(code + at, size - at, &insn);) {
		at += insn.len;
		if (insn.map == X86_MAP_ONE_BYTE && insn.opcode == POP_RBP && !(insn.rex & 1))
			return start + at;
	}
	return end;
}

/* --- other code ------------------------------------------------------------------------------ */

bool code_gaps_goexit(struct code_gaps *gaps, uint64_t start)
{
	if (!gaps->go.goexit || start != gaps->go.goexit)
		return false;
	add(gaps, start, (struct unwind_rule){ .cfa = CFA_END });
	gaps->goexit_passed = true;
	return true;
}

/* Rows of what was scanned, which knows nothing of goexit. */
static void emit(void *arg, uint64_t addr, const union cfi_rule *rule)
{
	struct code_gaps *gaps = arg;
	uint64_t end = gaps->go.goexit + GO_EXIT_SIZE;

	if (gaps->go.goexit && !gaps->goexit_passed && addr >= gaps->go.goexit) {
		gaps->goexit_passed = addr >= end;
		if (gaps->goexit_passed) {
			add(gaps, gaps->go.goexit, (struct unwind_rule){ .cfa = CFA_END });
			if (addr > end)
				table_writer_add(gaps->writer, end, &gaps->rule);
		}
		gaps->rule = *rule;
		if (!gaps->goexit_passed)
			return;
	}
	gaps->rule = *rule;
	table_writer_add(gaps->writer, addr, rule);
}

static bool is_padding(const struct code_gaps *gaps, const uint8_t *code, size_t size,
		       uint64_t addr)
{
	struct code_insn insn;
	size_t at = 0;

	while (at < size) {
		if (code[at] == 0) {
			at++;
			continue;
		}
		if (!gaps->arch.step(gaps->arch.cfi, code + at, size - at, addr + at, &insn,
				     NULL) ||
		    !insn.padding)
			return false;
		at += insn.len;
	}
	return true;
}

/* Functions that begin in [start, end), as far as symbols name them. */
static void name_functions(struct code_gaps *gaps, struct scan *scan, uint64_t start, uint64_t end)
{
	const struct elf_symbols *symbols = &gaps->symbols;
	size_t low = 0, high;

	if (!gaps->symbols_read) {
		if (end - start < SYMBOLS_WORTH)
			return;
		/* Without memory for them it goes without them. */
		gaps->symbols_read = true;
		if (elf_symbols_read(gaps->elf, &gaps->symbols) < 0)
			return;
	}
	high = symbols->nr;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->items[middle].addr < start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < symbols->nr && symbols->items[low].addr < end; low++)
		scan_function(scan, symbols->items[low].addr);
}

/* All of the segment's code is read: functions that have no CFI call those that have. */
static int read_text(struct code_gaps *gaps, const struct elf_segment *s)
{
	forget_text(gaps);
	gaps->text = malloc(s->filesz);
	if (!gaps->text)
		return -ENOMEM;
	if (elf_file_read(gaps->elf, s->offset, gaps->text, s->filesz) < 0) {
		forget_text(gaps);
		return 0;
	}
	gaps->text_start = s->vaddr;
	gaps->text_size = s->filesz;
	return never_returns_new(&gaps->arch, gaps->text, s->filesz, s->vaddr, &gaps->never);
}

/*
 * Tells the scan of [start, end) which functions never return. 0 or -ENOMEM. Not of Go's: the code
 * of mcall() ends in a trap, as nothing that it calls comes back to it; who called it is gone on
 * with all the same, by what it left in g.sched.
 */
static int tell_never(struct code_gaps *gaps, struct scan *scan, uint64_t start, uint64_t end)
{
	int r = 0;

	if (gaps->arch.of_go || end - start < SYMBOLS_WORTH)
		return 0;
	for (size_t i = 0;
	     !r && start - gaps->text_start >= gaps->text_size && i < gaps->elf->nr_segments; i++) {
		const struct elf_segment *s = &gaps->elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && start - s->vaddr < s->filesz &&
		    s->filesz <= SMALL_TEXT_MAX)
			r = read_text(gaps, s);
	}
	if (!r && start - gaps->text_start < gaps->text_size)
		scan_never_returns(scan, gaps->never);
	return r;
}

static int scan_piece(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	_cleanup_(scan_free_p) struct scan *scan = NULL;
	_cleanup_free_ uint8_t *code = NULL;
	size_t size = end - start;
	int r;

	code = malloc(size);
	if (!code)
		return -ENOMEM;
	if (elf_file_read_vaddr(gaps->elf, start, code, size) < 0) {
		add(gaps, start,
		    (struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_UNDECIDED });
		return 0;
	}
	if (is_padding(gaps, code, size, start))
		return 0;
	gaps->budget -= size;
	r = scan_new(&gaps->arch, code, size, start, &scan);
	if (r < 0)
		return r;
	if (gaps->elf->entry >= start && gaps->elf->entry < end)
		scan_entry_point(scan, gaps->elf->entry);
	name_functions(gaps, scan, start, end);
	r = tell_never(gaps, scan, start, end);
	if (r < 0)
		return r;
	r = scan_run(scan);
	if (r < 0)
		return r;
	scan_emit(scan, emit, gaps);
	return 0;
}

static void emit_rule(void *arg, uint64_t addr, const struct unwind_rule *rule)
{
	add(arg, addr, *rule);
}

static bool switch_a64(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	_cleanup_free_ uint32_t *code = malloc(end - start);

	if (!code) {
		gaps->error = -ENOMEM;
		return false;
	}
	return elf_file_read_vaddr(gaps->elf, start, code, end - start) >= 0 &&
	       go_code_rows_a64(code, (end - start) / sizeof(*code), start, emit_rule, gaps);
}

bool code_gaps_switch(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	_cleanup_(scan_free_p) struct scan *scan = NULL;
	_cleanup_free_ uint8_t *code = NULL;
	size_t size = end - start;
	int r;

	if (size > SWITCH_SIZE_MAX || !go_code_switches(&gaps->go, start, end))
		return false;
	if (gaps->elf->machine == EM_AARCH64)
		return switch_a64(gaps, start, end);
	code = malloc(size);
	r = code ? elf_file_read_vaddr(gaps->elf, start, code, size) : -ENOMEM;
	if (r >= 0)
		r = scan_new(&gaps->arch, code, size, start, &scan);
	if (r >= 0) {
		scan_function(scan, start);
		r = scan_run(scan);
	}
	if (r < 0) {
		gaps->error = r == -ENOMEM ? r : gaps->error;
		return false;
	}
	scan_emit(scan, emit, gaps);
	return true;
}

static bool contains(uint64_t start, uint64_t end, uint64_t addr)
{
	return addr >= start && addr < end;
}

/*
 * Where in code that is too large to be scanned a signal trampoline is, by its bytes at an aligned
 * address: a stripped Go program's, mostly. `end` if there is none.
 */
static uint64_t find_restorer(const struct code_gaps *gaps, uint64_t start, uint64_t end,
			      size_t *ret_len)
{
	_cleanup_free_ uint8_t *code = NULL;
	uint64_t at = (start + FUNCTION_ALIGN - 1) & -(uint64_t)FUNCTION_ALIGN;

	/* Libraries leave signals to the C library. */
	if (!gaps->elf->entry || gaps->nr_restorers == RESTORERS_MAX)
		return end;
	code = malloc(SEARCH_PIECE);
	while (code && at >= start && at < end) {
		size_t size = end - at < SEARCH_PIECE ? end - at : SEARCH_PIECE;

		if (elf_file_read_vaddr(gaps->elf, at, code, size) < 0)
			break;
		for (size_t i = 0; i < size; i += FUNCTION_ALIGN) {
			*ret_len = gaps->arch.trampoline(code + i, size - i);
			if (*ret_len)
				return at + i;
		}
		at += size;
	}
	return end;
}

static void cover_by_frame_pointer(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	uint64_t entry = gaps->elf->entry;

	const struct unwind_rule rule = { .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_UNFOLLOWED };

	add(gaps, start, rule);
	if (!contains(start, end, entry))
		return;
	add(gaps, entry, (struct unwind_rule){ .cfa = CFA_END });
	if (end - entry > ENTRY_SIZE)
		add(gaps, entry + ENTRY_SIZE, rule);
}

static void cover_large(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	while (start < end) {
		size_t len = 0;
		uint64_t restorer = find_restorer(gaps, start, end, &len);

		cover_by_frame_pointer(gaps, start, restorer);
		if (restorer == end)
			return;
		gaps->nr_restorers++;
		/* The walker looks for callers a byte before where they return to. */
		add(gaps, restorer - (restorer > start), gaps->arch.signal);
		start = restorer + len;
	}
}

/* --- Go's table ------------------------------------------------------------------------------- */

/*
 * Only of programs whose .debug_frame was taken away, which has the same of all of Go's functions:
 * what is counted (unwind_table_cost()).
 */
static void read_go_table(struct code_gaps *gaps)
{
	int r;

	if (gaps->go_table_read)
		return;
	gaps->go_table_read = true;
	if (!gaps->by_go || elf_file_section(gaps->elf, ".debug_frame"))
		return;
	r = go_table_read(gaps->elf, &gaps->go_table);
	if (r == -ENOMEM)
		gaps->error = r;
}

/*
 * Where the stack pointer is `size` bytes from the frame's upper end, not counting what a call puts
 * there itself.
 */
static struct unwind_rule go_rule(const struct code_gaps *gaps, int32_t size)
{
	struct unwind_rule rule;

	if (gaps->elf->machine == EM_AARCH64)
		return go_frame_a64(size);
	if (size < 0 || size > INT32_MAX - 8)
		return (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_BAD_CFI };
	rule = rsp_rule(size + 8);
	if (size >= 8)
		rule.slot_off[X86_SLOT_RBP] = -2;
	return rule;
}

/* aarch64: what Go's own walks end at. Go 1.16 has no flag for it; what stacks begin with there is
 * goexit, one of the few with a number. */
static bool nobody_calls(const struct code_gaps *gaps, const struct go_function *f)
{
	const char *name;

	if (f->top)
		return !go_code_is_handler(gaps->elf, f->start);
	name = f->id ? go_table_function_name(&gaps->go_table, f) : NULL;
	return name && !strcmp(name, "runtime.goexit");
}

/*
 * How far the stack pointer is from the frame's upper end, as the runtime walks its own stacks, and
 * as the linker makes .debug_frame of it (cmd/link/internal/ld/dwarf.go: writeframes).
 */
static void cover_go_function(struct code_gaps *gaps, const struct go_function *f)
{
	union cfi_rule restorer;
	struct go_values values;
	struct go_step step;

	if (code_gaps_restorer(gaps, false, f->start, f->end, &restorer)) {
		/* The walker looks for callers a byte before where they return to. */
		add(gaps, f->start - 1, restorer.rule);
		add(gaps, f->start, restorer.rule);
		return;
	}
	if (code_gaps_goexit(gaps, f->start) || code_gaps_switch(gaps, f->start, f->end))
		return;
	if (gaps->elf->machine == EM_AARCH64 && nobody_calls(gaps, f)) {
		add(gaps, f->start, (struct unwind_rule){ .cfa = CFA_END });
		return;
	}
	go_values_begin(&gaps->go_table, f, GO_STACK_SIZE, &values);
	while (go_values_next(&values, &step))
		add(gaps, f->start + step.begin, go_rule(gaps, step.value));
}

/* Covers [start, end) as far as Go's table knows it, to where that ends. */
static uint64_t cover_go(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	const struct go_table *t = &gaps->go_table;
	uint64_t at = start;

	read_go_table(gaps);
	for (uint32_t i = go_table_first(t, start); i < t->nr_functions && at < end; i++) {
		struct go_function f;

		if (go_table_function(t, i, &f))
			continue;
		if (f.start >= end)
			break;
		if (f.start < at || f.end > end)
			continue;
		if (f.start > at)
			cover_large(gaps, at, f.start);
		cover_go_function(gaps, &f);
		at = f.end;
	}
	return at;
}

static void cover_piece(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	bool has_entry = contains(start, end, gaps->elf->entry);
	int r;

	if (end == gaps->context_start && end - start > 1) {
		cover_piece(gaps, start, end - 1);
		add(gaps, end - 1, (struct unwind_rule){ .cfa = CFA_END, .flags = RULE_NO_CALL });
		return;
	}
	/* Most gaps: functions are aligned, and what is left between them is not worth a look. */
	if (end - start < FUNCTION_ALIGN && end % FUNCTION_ALIGN == 0 && !has_entry)
		return;
	if (gaps->by_ghc) {
		r = ghc_code_cover(gaps->elf, start, end, gaps->writer);
		if (r < 0)
			gaps->error = r;
		return;
	}
	/* The table tells more there than following the code does. */
	if (gaps->elf->machine == EM_AARCH64)
		start = cover_go(gaps, start, end);
	if (start == end)
		return;
	if (end - start <= gaps->budget) {
		r = scan_piece(gaps, start, end);
		if (r < 0)
			gaps->error = r;
		return;
	}
	start = cover_go(gaps, start, end);
	if (start < end)
		cover_large(gaps, start, end);
}

/* The first section that ends behind `addr`. */
static size_t section_at(const struct code_gaps *gaps, uint64_t addr)
{
	size_t low = 0, high = gaps->nr_sections;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (gaps->sections[middle]->addr + gaps->sections[middle]->size <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void code_gaps_cover(struct code_gaps *gaps, uint64_t start, uint64_t end)
{
	if (!gaps->nr_sections) {
		cover_piece(gaps, start, end);
		return;
	}
	for (size_t i = section_at(gaps, start); i < gaps->nr_sections && start < end; i++) {
		const struct elf_section *s = gaps->sections[i];
		uint64_t from = s->addr > start ? s->addr : start;
		uint64_t to = s->addr + s->size < end ? s->addr + s->size : end;

		if (from >= to)
			continue;
		if (from != s->addr || to != s->addr + s->size || !cover_plt(gaps, s))
			cover_piece(gaps, from, to);
		start = to;
	}
}
