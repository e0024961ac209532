// SPDX-License-Identifier: Apache-2.0
#include "runtime/php/php_file.h"

#include "abi/unwind.h"
#include "elf/elf_dynamic.h"
#include "elf/x86_insn.h"
#include "runtime/functions.h"
#include "runtime/loop_code.h"
#include "runtime/static_file.h"
#include "runtime/words.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	RODATA_MAX = 64 << 20,
	TEXT_MAX = 64 << 20,
	RELOCATIONS_MAX = 8 << 20, /* real ones have less than one */
	SYMBOLS_MAX = 4096,	   /* that are read to find one; libraries have a thousand */
	FUNCTION_MAX = 512,	   /* bytes of a small function that are looked at */
	LOOP_MAX = 1 << 20,
	PROLOGUE_MAX = 96,
	EPILOGUE_MAX = 64,
	FRAME_MAX = 4096, /* bytes of the loop's frame */
	CALLING_LOOP_MAX = 256,
	FIBER_INIT_MAX = 4096, /* bytes; it has half of a thousand */
	MAKE_CONTEXT_MAX = 256,
	/* In all versions: refcount, two numbers, two pointers, filename. */
	REFCOUNT_BEFORE_FILENAME = 32,
};

/* --- versions -------------------------------------------------------------------------------- */

/*
 * struct _zend_op_array of Zend/zend_compile.h: last, opcodes, filename, line_start; with and
 * without ZTS. The placeholder: execute_fake of struct _zend_generator, behind a node of 40
 * bytes up to 8.0. All were tried.
 */
static const struct {
	uint8_t major, minor;
	uint16_t current; /* of current_execute_data in zend_executor_globals */
	uint16_t placeholder;
	struct php_layout layout;
} versions[] = {
	{ 7, 3, 488, 200, { .last = 60, .opcodes = 64, .filename = 128, .lines = 136 } },
	{ 7, 4, 488, 200, { .last = 60, .opcodes = 64, .filename = 136, .lines = 144 } },
	{ 8, 0, 488, 192, { .last = 68, .opcodes = 72, .filename = 144, .lines = 152 } },
	{ 8, 1, 488, 184, { .last = 68, .opcodes = 72, .filename = 144, .lines = 152 } },
	{ 8, 2, 488, 184, { .last = 80, .opcodes = 88, .filename = 152, .lines = 160 } },
	{ 8, 3, 488, 184, { .last = 76, .opcodes = 80, .filename = 144, .lines = 152 } },
	{ 8, 4, 488, 184, { .last = 96, .opcodes = 104, .filename = 168, .lines = 176 } },
	{ 8, 5, 512, 184, { .last = 96, .opcodes = 104, .filename = 168, .lines = 176 } },
};

/* struct _zend_generator of Zend/zend_generators.h: execute_data, node.parent. First with an
 * iterator in it, then (from 8.0 on) without. */
static const struct {
	uint16_t frame, parent;
} generators[] = { { 64, 160 }, { 56, 152 } };

bool php_layout_of(unsigned int major, unsigned int minor, struct php_layout *ret,
		   uint32_t *ret_current)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		if (versions[i].major != major || versions[i].minor != minor)
			continue;
		*ret = versions[i].layout;
		ret->generator_placeholder = versions[i].placeholder;
		/* ZEND_ACC_CLOSURE, ZEND_ACC_FAKE_CLOSURE */
		ret->closure_bit = major < 8 ? 20 : 22;
		ret->named_bit = major < 8 ? (minor < 4 ? 6 : 21) : 23;
		*ret_current = versions[i].current;
		return true;
	}
	return false;
}

static unsigned int read_number(const char **text, const char *end)
{
	unsigned int n = 0;

	while (*text < end && **text >= '0' && **text <= '9' && n < 1000)
		n = 10 * n + (unsigned int)(*(*text)++ - '0');
	return n;
}

/* main/SAPI.h: SAPI_PHP_VERSION_HEADER, which php_request_startup() sends. */
static const char header[] = "X-Powered-By: PHP/";
/* Zend/zend.c: what it says of itself. */
static const char engine[] = "Zend Engine v";

static int read_version(const struct elf_file *elf, struct php_version *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".rodata");
	_cleanup_free_ uint8_t *bytes = NULL;
	struct php_version version;
	struct elf_data data;
	const char *at, *end;
	int r;

	if (!section)
		return -ENOENT;
	r = elf_file_section_data(elf, section, RODATA_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	bytes = data.data;
	at = memmem(data.data, data.size, header, sizeof(header) - 1);
	if (!at)
		return -ENOENT;
	at += sizeof(header) - 1;
	end = (const char *)data.data + data.size;
	version.major = read_number(&at, end);
	if (at == end || *at++ != '.')
		return -ENOENT;
	version.minor = read_number(&at, end);
	*ret = version;
	return 0;
}

/* Is it a PHP that exports nothing? */
static bool is_static(const struct elf_file *elf)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_data data;

	if (runtime_static_constants(elf, &data))
		return false;
	bytes = data.data;
	return memmem(data.data, data.size, header, sizeof(header) - 1) &&
	       memmem(data.data, data.size, engine, sizeof(engine) - 1);
}

/* --- code ------------------------------------------------------------------------------------ */

/* As much of the code at `addr` as there is, up to `size` bytes. */
static size_t read_code(const struct elf_file *elf, uint64_t addr, uint8_t *to, size_t size)
{
	while (size && elf_file_read_vaddr(elf, addr, to, size))
		size /= 2;
	return size;
}

/* Does the code load 64 bits at `offset` from some register? */
static bool loads(const struct elf_file *elf, uint64_t function, uint32_t offset)
{
	uint8_t code[FUNCTION_MAX];
	size_t size = read_code(elf, function, code, sizeof(code)), to;

	for (size_t at = 0; at + 8 <= size; at++) {
		const uint8_t *p = code + at;

		if (elf->machine == EM_AARCH64) {
			if (!(at & 3) &&
			    (half_at(p, 0) & 0xfffffc00) == (0xf9400000 | (offset / 8) << 10))
				return true;
			continue;
		}
		/* mov offset(%r64), %r64, or with an index beside that */
		if ((p[0] & 0xf8) != 0x48 || p[1] != 0x8b)
			continue;
		to = (p[2] & 7) == 4 ? 4 : 3;
		if ((p[2] & 0xc0) == 0x40 ? p[to] == offset
					  : (p[2] & 0xc0) == 0x80 && half_at(p, to) == offset)
			return true;
	}
	return false;
}

/*
 * Is it laid out as its version is? By the code of functions that answer from it. Which of the
 * generators' layouts is its own, that code tells.
 */
static bool layout_confirmed(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			     uint32_t current, struct php_layout *l)
{
	uint64_t line, file, destroy, generator;

	if (elf_dynamic_find(dynamic, "zend_get_executed_lineno", &line) ||
	    elf_dynamic_find(dynamic, "zend_get_executed_filename_ex", &file) ||
	    elf_dynamic_find(dynamic, "destroy_op_array", &destroy) ||
	    elf_dynamic_find(dynamic, "zend_generator_check_placeholder_frame", &generator) ||
	    !loads(elf, line, current) || !loads(elf, line, PHP_FRAME_FUNC) ||
	    !loads(elf, line, PHP_FRAME_PREVIOUS) || !loads(elf, destroy, l->opcodes) ||
	    !loads(elf, file, l->filename))
		return false;
	for (size_t i = 0; i < sizeof(generators) / sizeof(*generators); i++) {
		if (!loads(elf, generator, generators[i].frame) ||
		    !loads(elf, generator, generators[i].parent))
			continue;
		l->generator_frame = generators[i].frame;
		l->generator_parent = generators[i].parent;
		return true;
	}
	return false;
}

/* Of a layout that is confirmed; 0: it is not where all versions have it. */
static uint16_t find_refcount(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			      const struct php_layout *l)
{
	uint16_t at = l->filename - REFCOUNT_BEFORE_FILENAME;
	uint64_t destroy;

	return !elf_dynamic_find(dynamic, "destroy_op_array", &destroy) && loads(elf, destroy, at)
		       ? at
		       : 0;
}

static void add_gap(struct php_record *r, size_t start, size_t end)
{
	if (r->nr_gaps < PHP_GAPS_MAX)
		r->gaps[r->nr_gaps++] = (struct php_gap){ (uint32_t)start, (uint32_t)end };
}

/*
 * mov %REG, N(%rsp): 4c 89 {34,74,b4} 24 N, or N(%rbp): 4c 89 {75,b5} N, where %rbp is `frame`
 * bytes above %rsp (0: it is not); the other way: 8b. Its length; 0: it isn't. *ret: how far above
 * %rsp.
 */
static size_t stack_move(const uint8_t *p, uint8_t opcode, unsigned int reg, uint32_t frame,
			 uint32_t *ret)
{
	enum { SP = 4, BP = 5 };
	uint8_t base = p[2] & 7, mode = p[2] >> 6;
	size_t at = base == SP ? 4 : 3;
	uint32_t off = 0;

	if (p[0] != 0x4c || p[1] != opcode || (p[2] >> 3 & 7) != (reg & 7) || mode == 3 ||
	    (base == SP ? p[3] != 0x24 : base != BP || !mode || !frame))
		return 0;
	if (mode == 1)
		off = (uint32_t)(int32_t)(int8_t)p[at];
	else if (mode == 2)
		off = half_at(p, at);
	off += base == BP ? frame : 0;
	*ret = off;
	return off < 1 << 15 ? at + (mode == 2 ? 4 : mode) : 0;
}

/* How far the loop's %rbp is above its %rsp: after push %rbp; mov %rsp, %rbp it pushes more, and
 * subtracts. 0: it is another kind of loop. */
static uint32_t frame_size(const uint8_t *code, size_t limit)
{
	static const uint8_t begins[] = { 0x55, 0x48, 0x89, 0xe5 };
	const uint8_t *p = memmem(code, limit < 16 ? limit : 16, begins, sizeof(begins));
	uint32_t size = 0;

	if (!p)
		return 0;
	for (p += sizeof(begins); p + 7 <= code + limit; size += 8) {
		if (p[0] == 0x48 && p[1] == 0x83 && p[2] == 0xec)
			return size + p[3];
		if (p[0] == 0x48 && p[1] == 0x81 && p[2] == 0xec)
			return size + half_at(p, 3);
		if (p[0] == 0x41)
			p++;
		if ((*p++ & 0xf8) != 0x50)
			return 0;
	}
	return 0;
}

/*
 * GCC's global register variables (Zend/zend_execute.c, ZEND_VM_FP_GLOBAL_REG): r14 has the frame
 * and r15 the instruction. The loop saves its caller's in vm_stack_data, which unwind information
 * does not tell, and takes them back before it returns.
 */
static void find_registers(const uint8_t *code, size_t size, struct php_record *r)
{
	static const uint8_t begins[] = { 0x49, 0x89, 0xfe }; /* mov %rdi, %r14 */
	const uint32_t unknown = UINT32_MAX;
	uint32_t frame_saved = unknown, op_saved = unknown, off, frame;
	size_t limit = size < PROLOGUE_MAX ? size : PROLOGUE_MAX, at, begin = 0;

	frame = frame_size(code, limit);
	for (at = 0; at + 8 <= limit; at++) {
		if (frame_saved == unknown && stack_move(code + at, 0x89, X86_R14, frame, &off))
			frame_saved = off;
		if (op_saved == unknown && stack_move(code + at, 0x89, X86_R15, frame, &off))
			op_saved = off;
		if (!begin && frame_saved != unknown && !memcmp(code + at, begins, sizeof(begins)))
			begin = at + sizeof(begins);
	}
	if (!begin || op_saved == unknown)
		return;
	r->frame_reg = X86_R14;
	r->op_reg = X86_R15;
	r->frame_saved = (uint16_t)frame_saved;
	r->op_saved = (uint16_t)op_saved;
	add_gap(r, 0, begin);
	for (at = begin; at + EPILOGUE_MAX <= size; at++) {
		size_t len = stack_move(code + at, 0x8b, X86_R14, frame, &off), end;

		if (!len || off != frame_saved)
			continue;
		for (end = at + len; end < at + EPILOGUE_MAX && code[end] != 0xc3; end++)
			;
		if (end < at + EPILOGUE_MAX)
			add_gap(r, at + len, end + 1);
	}
}

/*
 * A loop that calls a function for each instruction, as compilers other than GCC have it, and GCC
 * without global registers (ZEND_VM_KIND_CALL). It keeps its frame in rbx, where its callers' is
 * pushed: its argument first, then EG(current_execute_data), whenever such a function has changed
 * that. Written by anything else, it is not such a loop.
 */
static void find_saved_register(const uint8_t *code, size_t size, uint32_t current,
				struct php_record *r)
{
	static const uint8_t begins[] = { 0x48, 0x89, 0xfb }; /* mov %rdi, %rbx */
	enum { POP_RBX = 0x5b, RET = 0xc3, LOAD = 0x8b, GROUP_5 = 0xff, CALL = 2 };
	struct php_gap gaps[PHP_GAPS_MAX] = { 0 };
	bool calls = false, loads = false, left = false;
	uint16_t nr = 0;
	size_t at = 0;

	while (size <= CALLING_LOOP_MAX && at < size) {
		struct x86_insn insn;
		const uint8_t *p = code + at;
		bool plain;

		if (!x86_insn_decode(p, size - at, &insn))
			return;
		at += insn.len;
		plain = insn.map == X86_MAP_ONE_BYTE;
		calls |= plain && insn.opcode == GROUP_5 && insn.group == CALL;
		if (plain && insn.opcode == RET && left) {
			gaps[nr++].end = (uint32_t)at;
			left = false;
		}
		if (!(x86_insn_written(&insn) & 1u << X86_RBX))
			continue;
		if (!plain || left || nr == PHP_GAPS_MAX)
			return;
		if (!nr && insn.len == sizeof(begins) && !memcmp(p, begins, sizeof(begins)))
			gaps[nr++].end = (uint32_t)at;
		else if (nr && insn.opcode == POP_RBX && insn.len == 1)
			gaps[nr].start = (uint32_t)at, left = true;
		else if (nr && insn.opcode == LOAD && insn.disp == (int32_t)current)
			loads = true;
		else
			return;
	}
	if (!calls || !loads || left || nr < 2)
		return;
	r->frame_reg = X86_RBX;
	r->nr_gaps = nr;
	memcpy(r->gaps, gaps, nr * sizeof(gaps[0]));
}

/* DWARF's numbers of the registers that instructions have as 0 to 7. */
static const uint8_t dwarf_of_low[] = { X86_RAX, X86_RCX, X86_RDX, X86_RBX,
					X86_RSP, X86_RBP, X86_RSI, X86_RDI };

/* Is it an instruction that leaves the stack pointer alone, and goes on? Adds what registers it
 * writes. */
static bool leaves_stack(const struct x86_insn *insn, uint32_t *written)
{
	enum { POP = 0x8f, CALL_JUMP_PUSH = 0xff };

	*written |= x86_insn_written(insn);
	return insn->has_modrm && !(*written & 1u << X86_RSP) &&
	       (insn->map != X86_MAP_ONE_BYTE ||
		(insn->opcode != POP && insn->opcode != CALL_JUMP_PUSH));
}

/*
 * What the loop pushes when it begins, and subtracts: CFA - stack pointer; 0: it is not so. Between
 * these a compiler may have put what comes later, too.
 */
static uint32_t read_pushes(const uint8_t *code, size_t limit, struct php_record *r)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = !memcmp(code, endbr, sizeof(endbr)) ? sizeof(endbr) : 0;
	uint32_t size = 8, written = 0;
	struct x86_insn insn;

	for (r->nr_pushed = 0; at + 7 <= limit && r->nr_pushed < PHP_PUSHED_MAX; at += insn.len) {
		const uint8_t *p = code + at;
		bool high = p[0] == 0x41;
		uint8_t reg;

		if (p[0] == 0x48 && p[1] == 0x83 && p[2] == 0xec)
			return size + p[3];
		if (p[0] == 0x48 && p[1] == 0x81 && p[2] == 0xec)
			return size + half_at(p, 3);
		if (!x86_insn_decode(p, limit - at, &insn))
			return 0;
		if ((p[high] & 0xf8) != 0x50) {
			if (!leaves_stack(&insn, &written))
				return 0;
			continue;
		}
		/* Registers have the numbers that instructions have for them, but for these four.
		 */
		reg = (uint8_t)(high ? 8 + (p[1] & 7) : dwarf_of_low[p[0] & 7]);
		if (written & 1u << reg)
			return 0;
		r->pushed[r->nr_pushed++] = reg;
		size += 8;
	}
	return 0;
}

/* mov %fs:0x28, %rax; mov %rax, N(%rsp) or N(%rbp): how far above %rsp; 0: there is none. */
static uint32_t find_canary(const uint8_t *code, size_t limit, uint32_t frame)
{
	static const uint8_t reads[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x48, 0x89 };
	const uint8_t *p = memmem(code, limit, reads, sizeof(reads));

	if (!p || p + sizeof(reads) + 6 > code + limit)
		return 0;
	p += sizeof(reads);
	if (p[0] == 0x44 && p[1] == 0x24)
		return p[2];
	if (p[0] == 0x84 && p[1] == 0x24)
		return half_at(p, 2);
	if (p[0] == 0x45 && frame)
		return frame + (uint32_t)(int32_t)(int8_t)p[1];
	return 0;
}

/* What the JIT's code has of the loop's frame. */
static void find_frame(const struct elf_file *elf, const uint8_t *code, size_t size,
		       struct php_record *r)
{
	const struct elf_section *text = elf_file_section(elf, ".text");
	size_t limit = size < PROLOGUE_MAX ? size : PROLOGUE_MAX;
	uint32_t frame = read_pushes(code, limit, r), pointer = frame_size(code, limit);
	uint32_t canary = find_canary(code, limit, pointer);

	if (!text || !frame || frame > FRAME_MAX || canary >= frame || canary & 7 ||
	    pointer >= frame)
		return;
	r->jit_frame = (uint16_t)frame;
	r->canary = (uint16_t)canary;
	r->frame_pointer = (uint16_t)pointer;
	r->text = text->addr;
	r->text_size = text->size;
}

/* The loop begins at `start`; what the compiler split off it may lie before. */
static int read_loop(const struct elf_file *elf, uint64_t start, struct php_dso *dso)
{
	_cleanup_free_ uint8_t *code = NULL;
	const struct code_range *loop = NULL;
	size_t size;

	for (size_t i = 0; i < dso->base.interpreter_functions.nr; i++)
		if (dso->base.interpreter_functions.items[i].start == start)
			loop = &dso->base.interpreter_functions.items[i];
	dso->record.loop_start = start;
	size = loop ? loop->end - start : 0;
	if (elf->machine != EM_X86_64 || !size || size > LOOP_MAX)
		return 0;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, loop->start, code, size))
		return 0;
	find_registers(code, size, &dso->record);
	if (dso->record.frame_reg) {
		dso->base.follow = 1u << X86_SLOT_R14 | 1u << X86_SLOT_R15;
		find_frame(elf, code, size, &dso->record);
		return 0;
	}
	find_saved_register(code, size, dso->current, &dso->record);
	if (dso->record.frame_reg)
		dso->base.follow = 1u << X86_SLOT_RBX;
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

static const char *const loop_names[] = { "execute_ex", NULL };
static const char *const glue_names[] = {
	"zend_execute",
	"zend_call_function",
	"zend_call_known_function",
	"zend_call_known_fcc",
	"zend_call_known_instance_method_with_2_params",
	"zend_call_method",
	"_call_user_function_ex",
	"_call_user_function_impl",
	"zend_generator_resume",
	NULL,
};

bool php_hides(const char *name, const char *source)
{
	(void)source;
	return runtime_name_in(name, loop_names) || runtime_name_in(name, glue_names);
}

void php_file_free(struct php_dso *dso)
{
	if (!dso)
		return;
	runtime_dso_fini(&dso->base);
	free(dso);
}

static void php_file_free_p(struct php_dso **dso)
{
	php_file_free(*dso);
}

/* Is the symbol of that number named `name`? */
static bool is_symbol(const struct elf_file *elf, const struct elf_dynamic *dynamic,
		      uint32_t number, const char *name)
{
	char text[32];
	size_t size = strlen(name) + 1;
	Elf64_Sym sym;

	return size <= sizeof(text) &&
	       !elf_file_read_vaddr(elf, dynamic->symbols + number * sizeof(sym), &sym,
				    sizeof(sym)) &&
	       !elf_file_read_vaddr(elf, dynamic->strings + sym.st_name, text, size) &&
	       !memcmp(text, name, size);
}

/* Where ld.so writes the address of the variable `name`; 0: nowhere. */
static uint64_t find_slot(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			  const char *name)
{
	const struct elf_section *section = elf_file_section(elf, ".rela.dyn");
	bool arm = elf->machine == EM_AARCH64;
	_cleanup_free_ uint8_t *bytes = NULL;
	uint32_t number = 0, left = SYMBOLS_MAX;
	struct elf_data data;

	if (!section || elf_file_section_data(elf, section, RELOCATIONS_MAX, &data))
		return 0;
	bytes = data.data;
	for (size_t at = 0; at + sizeof(Elf64_Rela) <= data.size; at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;
		uint32_t type;

		memcpy(&rela, bytes + at, sizeof(rela));
		type = (uint32_t)ELF64_R_TYPE(rela.r_info);
		if (rela.r_addend || (type != (arm ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT) &&
				      type != (arm ? R_AARCH64_ABS64 : R_X86_64_64)))
			continue;
		/* Each symbol is looked at once. */
		if (ELF64_R_SYM(rela.r_info) == number)
			continue;
		number = (uint32_t)ELF64_R_SYM(rela.r_info);
		if (!left--)
			return 0;
		if (is_symbol(elf, dynamic, number, name))
			return rela.r_offset;
	}
	return 0;
}

static int add_caller(struct php_record *r, size_t at)
{
	if (r->nr_callers == PHP_CALLERS_MAX)
		return -E2BIG;
	r->callers[r->nr_callers++] = (uint32_t)at;
	return 0;
}

/*
 * Where calls of the loop return to: by its name, or by the variable zend_execute_ex, whose value
 * is read at `hook`, or its address at `slot` (0: nowhere), before a call by a register. (What
 * calls something else there does no harm.)
 */
static int add_callers(const uint8_t *code, size_t size, uint64_t loop, uint64_t hook,
		       uint64_t slot, struct php_record *r)
{
	enum { REACH = 256, CALL = 0xe8, GROUP_5 = 0xff, RIP = 0x15, REG = 0xd0, AT_REG = 0x10 };
	const size_t never = (size_t)-REACH;
	size_t hook_read = never, slot_read = never;
	uint8_t reg = 0;
	int err = 0;

	for (size_t at = 0; !err && at + 7 <= size; at++) {
		const uint8_t *p = code + at;
		uint64_t addr = r->text + at;

		if (p[0] == 0x48 && p[1] == 0x8b && (p[2] & 0xc7) == 0x05) { /* mov N(%rip), */
			uint64_t from = x86_rel32(p + 3, addr + 3);

			if (from == hook)
				hook_read = at, reg = p[2] >> 3;
			else if (slot && from == slot)
				slot_read = at;
		} else if (p[0] == CALL && x86_rel32(p + 1, addr + 1) == loop) {
			err = add_caller(r, at + 5);
		} else if (p[0] == GROUP_5 && p[1] == RIP && x86_rel32(p + 2, addr + 2) == hook) {
			err = add_caller(r, at + 6);
		} else if (p[0] == GROUP_5 && ((p[1] == (REG | reg) && at - hook_read < REACH) ||
					       (((p[1] & 0xf8) == REG || (p[1] & 0xfc) == AT_REG) &&
						at - slot_read < REACH))) {
			err = add_caller(r, at + 2);
		}
	}
	return err;
}

/* Who calls a loop whose frame nothing else tells. */
static int find_callers(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			uint64_t hook, struct php_record *r)
{
	const struct elf_section *text = elf_file_section(elf, ".text");
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_data data;
	int err;

	if (!r->jit_frame || r->canary || r->frame_pointer)
		return 0;
	err = elf_file_section_data(elf, text, TEXT_MAX, &data);
	if (!err) {
		bytes = data.data;
		err = add_callers(data.data, data.size, r->loop_start, hook,
				  find_slot(elf, dynamic, "zend_execute_ex"), r);
	}
	if (err || !r->nr_callers)
		r->jit_frame = 0;
	return err == -ENOMEM ? err : 0;
}

/*
 * zend_fiber_trampoline(), a static function whose address zend_fiber_init_context() takes: the
 * only address of a function there. (Zend/zend_fibers.c at php-8.1.0 and later.)
 */
static int find_fiber_start(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			    struct loop_fdes *fdes, struct loop_work *work, struct php_dso *dso)
{
	_cleanup_(loop_code_fini) struct loop_code c = { 0 };
	const struct loop_fde *init, *taken, *found = NULL;
	uint64_t addr;
	int r;

	if (elf_dynamic_find(dynamic, "zend_fiber_init_context", &addr))
		return 0;
	init = loop_fde_of(fdes, addr);
	if (!init || init->range.end - init->range.start > FIBER_INIT_MAX)
		return 0;
	r = loop_code_read(elf, &init->range, work, &c);
	for (size_t at = 0; !r && at < c.size; at++) {
		addr = loop_code_address(&c, at);
		taken = addr ? loop_fde_of(fdes, addr) : NULL;
		if (!taken || taken->range.start != addr || taken == found)
			continue;
		if (found) /* which one is it? */
			return 0;
		found = taken;
	}
	if (r || !found)
		return r == -ENOENT ? 0 : r;
	dso->record.fiber = found->range.start;
	dso->record.fiber_size = found->range.end - found->range.start;
	return runtime_add_loop(&dso->base, &found->range);
}

/* Where the loop's register, which tells that the chain is another stack's, is not known. */
static int find_fiber_change(const struct elf_dynamic *dynamic, struct loop_fdes *fdes,
			     struct php_dso *dso)
{
	const struct loop_fde *change;
	uint64_t addr;

	if (dynamic->elf->machine != EM_AARCH64 ||
	    elf_dynamic_find(dynamic, "zend_fiber_switch_context", &addr))
		return 0;
	change = loop_fde_of(fdes, addr);
	if (!change)
		return 0;
	dso->record.change = change->range.start;
	dso->record.change_size = change->range.end - change->range.start;
	return runtime_add_loop(&dso->base, &change->range);
}

/*
 * What leads there from make_fcontext()'s stack: a piece of that function behind its return, up to
 * where the fiber's first function would return to, whose address it takes.
 * (Zend/asm/make_x86_64_sysv_elf_gas.S; on aarch64 there is no such thing.)
 */
static int find_fiber_entry(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			    struct php_dso *dso)
{
	static const uint8_t leads[] = { 0x55, 0xff, 0xe3 }; /* push %rbp; jmp *%rbx */
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t bytes[MAKE_CONTEXT_MAX];
	struct loop_code c;
	uint64_t make;

	if (elf_dynamic_find(dynamic, "make_fcontext", &make))
		return 0;
	c = loop_code_of(elf, make, bytes, read_code(elf, make, bytes, sizeof(bytes)));
	for (size_t at = 0; at < c.size; at++) {
		uint64_t to = loop_code_address(&c, at) - make, begin;

		if (to < sizeof(endbr) + sizeof(leads) || to > c.size ||
		    memcmp(bytes + to - sizeof(leads), leads, sizeof(leads)))
			continue;
		begin = to - sizeof(leads);
		if (!memcmp(bytes + begin - sizeof(endbr), endbr, sizeof(endbr)))
			begin -= sizeof(endbr);
		return runtime_add_loop(&dso->base,
					&(struct code_range){ make + begin, make + to });
	}
	return 0;
}

/* What else runs frames: the loop's cold part, how a fiber's stack begins. */
static int find_others(const struct elf_file *elf, const struct elf_dynamic *dynamic,
		       struct php_dso *dso)
{
	_cleanup_(loop_fdes_fini) struct loop_fdes fdes = { 0 };
	struct loop_work work = { 0 };
	int r = loop_fdes_read(elf, &work, &fdes);

	if (r)
		return r == -ENOENT ? 0 : r;
	r = runtime_add_cold(elf, &fdes, &work, &dso->base);
	if (!r)
		r = find_fiber_start(elf, dynamic, &fdes, &work, dso);
	if (!r)
		r = find_fiber_change(dynamic, &fdes, dso);
	return r || !dso->record.fiber_size ? r : find_fiber_entry(elf, dynamic, dso);
}

static int read_globals(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			struct php_dso *dso)
{
	uint64_t cache;

	if (!elf_dynamic_find(dynamic, "executor_globals_offset", &dso->globals_offset) &&
	    !elf_dynamic_find(dynamic, "tsrm_get_ls_cache", &cache)) {
		dso->key = runtime_find_key(elf, cache);
		if (!dso->key)
			return -ENOTSUP;
		dso->globals_slot = find_slot(elf, dynamic, "executor_globals_offset");
	} else {
		if (elf_dynamic_find(dynamic, "executor_globals", &dso->globals))
			return -ENOTSUP;
		dso->globals_slot = find_slot(elf, dynamic, "executor_globals");
	}
	return 0;
}

int php_file_read(const struct elf_file *elf, struct php_dso **ret, struct php_version *ret_version,
		  const char **why)
{
	_cleanup_(php_file_free_p) struct php_dso *dso = NULL;
	struct elf_dynamic dynamic;
	uint64_t loop, hook;
	int r;

	*ret_version = (struct php_version){ 0 };
	*why = runtime_static_why;
	if (elf_dynamic_read(elf, &dynamic) || elf_dynamic_find(&dynamic, "execute_ex", &loop) ||
	    elf_dynamic_find(&dynamic, "zend_execute_ex", &hook)) {
		if (!is_static(elf))
			return -ENOENT;
		(void)read_version(elf, ret_version);
		return -ENOTSUP;
	}
	*why = "its version is not known";
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return -ENOMEM;
	r = read_version(elf, ret_version);
	dso->version = *ret_version;
	if (r ||
	    !php_layout_of(dso->version.major, dso->version.minor, &dso->record.layout,
			   &dso->current) ||
	    (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64))
		return r == -ENOMEM ? r : -ENOTSUP;
	*why = "its structures are not as this version has them";
	if (!layout_confirmed(elf, &dynamic, dso->current, &dso->record.layout))
		return -ENOTSUP;
	dso->record.refcount = find_refcount(elf, &dynamic, &dso->record.layout);
	*why = "its globals are not where they are expected";
	r = read_globals(elf, &dynamic, dso);
	if (r)
		return r;
	if (elf_dynamic_find(&dynamic, "zend_extensions", &dso->extensions))
		dso->extensions = 0;
	if (elf_dynamic_find(&dynamic, "zend_jit_status", &dso->jit_status))
		dso->jit_status = 0;
	if (dso->key || dso->globals_slot || elf_dynamic_find(&dynamic, "sapi_module", &dso->sapi))
		dso->sapi = 0;
	*why = "its loop is not to be seen";
	r = runtime_find_functions(elf, loop_names, glue_names, &dso->base);
	if (!r)
		r = read_loop(elf, loop, dso);
	if (!r)
		r = find_callers(elf, &dynamic, hook, &dso->record);
	if (!r)
		r = find_others(elf, &dynamic, dso);
	if (r)
		return r;
	*ret = TAKE_PTR(dso);
	return 0;
}
