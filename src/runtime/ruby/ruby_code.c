// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: CRuby's vm_exec.c (vm_exec_core(), insns_address_table), vm.c (rb_vm_exec(),
 * rb_vm_get_insns_address_table()), eval.c (rb_errinfo()) at v2.7.4, v3.1.2 and
 * v3.3.8, and what GCC makes of them.
 */
#include "runtime/ruby/ruby_code.h"

#include "elf/a64_insn.h"
#include "elf/x86_insn.h"
#include "runtime/words.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Of instructions; there are 202 or more. The next table in length is that of regular
	 * expressions (98). */
	TABLE_MIN = 150,
	POINTERS_MAX = 64 << 20,
	RELOCATIONS_MAX = 64 << 20,
	TEXT_MAX = 64 << 20,
	ACCESSOR_MAX = 48, /* bytes of a function that returns one thing */
};

/* --- the loop -------------------------------------------------------------------------------- */

/* The words of a section as ld.so will have made them, but for where the file lies in memory. */
static int read_pointers(const struct elf_file *elf, const struct elf_section *section,
			 struct loop_work *work, uint64_t **ret, size_t *ret_nr)
{
	const struct elf_section *rela = elf_file_section(elf, ".rela.dyn");
	uint32_t relative = elf->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	_cleanup_free_ uint64_t *words = NULL;
	_cleanup_free_ uint8_t *items = NULL;
	struct elf_data data, relocations;
	int r = elf_file_section_data(elf, section, POINTERS_MAX, &data);

	if (r)
		return r;
	words = (uint64_t *)data.data;
	if (rela) {
		r = elf_file_section_data(elf, rela, RELOCATIONS_MAX, &relocations);
		if (r)
			return r;
		items = relocations.data;
		r = loop_work_add(work, relocations.size / sizeof(Elf64_Rela) * LOOP_WORK_ENTRY);
		if (r)
			return r;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= relocations.size;
		     at += sizeof(Elf64_Rela)) {
			Elf64_Rela item;

			memcpy(&item, items + at, sizeof(item));
			if (ELF64_R_TYPE(item.r_info) == relative &&
			    item.r_offset >= section->addr &&
			    (item.r_offset - section->addr) / 8 < data.size / 8)
				words[(item.r_offset - section->addr) / 8] =
					(uint64_t)item.r_addend;
		}
	}
	*ret = TAKE_PTR(words);
	*ret_nr = data.size / 8;
	return 0;
}

/* vm_exec_core(): the function that the most words one behind the other point into. */
static int find_core(const struct elf_file *elf, struct loop_fdes *fdes, struct loop_work *work,
		     struct code_range *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".data.rel.ro");
	const struct loop_fde *last = NULL, *best = NULL;
	_cleanup_free_ uint64_t *words = NULL;
	size_t nr, run = 0, longest = TABLE_MIN - 1;
	int r;

	if (!section && elf->type == ET_EXEC)
		section = elf_file_section(elf, ".rodata");
	if (!section)
		return -ENOENT;
	r = read_pointers(elf, section, work, &words, &nr);
	if (r)
		return r == -ENOMEM || r == -ENOTSUP ? r : -ENOENT;
	for (size_t i = 0; i < nr; i++) {
		const struct loop_fde *f = NULL;

		if (words[i] && loop_work_add(work, LOOP_WORK_SEARCH))
			return -ENOTSUP;
		if (words[i])
			f = loop_fde_of(fdes, words[i]);
		run = !f || words[i] == f->range.start ? 0 : f == last ? run + 1 : 1;
		last = run ? f : NULL;
		if (run > longest) {
			longest = run;
			best = f;
		}
	}
	if (!best)
		return -ENOENT;
	*ret = best->range;
	return 0;
}

/* Where a call at `at` leads to; 0: it looks like none. */
static uint64_t call_at(const struct elf_file *elf, const uint8_t *code, uint64_t pc)
{
	uint32_t word;

	if (elf->machine != EM_AARCH64)
		return *code == 0xe8 ? x86_rel32(code + 1, pc + 1) : 0;
	memcpy(&word, code, sizeof(word));
	return (word & 0xfc000000) == 0x94000000 ? a64_branch_target(word, pc) : 0;
}

/* rb_vm_exec(): the one that calls vm_exec_core(). (What returns its table jumps there.) */
static int find_exec(const struct elf_file *elf, struct loop_fdes *fdes,
		     const struct code_range *core, struct loop_work *work, struct code_range *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".text");
	const struct loop_fde *found = NULL;
	_cleanup_free_ uint8_t *code = NULL;
	struct elf_data data;
	int r = section ? elf_file_section_data(elf, section, TEXT_MAX, &data) : -ENOENT;

	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	code = data.data;
	r = loop_work_add(work, data.size);
	if (r)
		return r;
	for (size_t at = 0; at + 5 <= data.size; at += elf->machine == EM_AARCH64 ? 4 : 1) {
		const struct loop_fde *f;

		if (call_at(elf, code + at, section->addr + at) != core->start)
			continue;
		r = loop_work_add(work, LOOP_WORK_SEARCH);
		if (r)
			return r;
		f = loop_fde_of(fdes, section->addr + at);
		if (f && found && f != found)
			return -ENOENT;
		if (f)
			found = f;
	}
	if (!found)
		return -ENOENT;
	*ret = found->range;
	return 0;
}

bool ruby_has_yjit(const struct elf_file *elf)
{
	/* version.c: ruby_show_version() */
	static const char mark[] = " +YJIT";
	const struct elf_section *section = elf_file_section(elf, ".rodata");
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_data data;

	if (!section || elf_file_section_data(elf, section, POINTERS_MAX, &data))
		return false;
	bytes = data.data;
	return memmem(data.data, data.size, mark, sizeof(mark) - 1) != NULL;
}

int ruby_add_loop(const struct elf_file *elf, struct loop_work *work, struct runtime_dso *dso)
{
	bool named = dso->interpreter_functions.nr;
	_cleanup_(loop_fdes_fini) struct loop_fdes fdes = { 0 };
	struct code_range core, exec, cold;
	int r;

	if (named && elf_file_section(elf, ".symtab"))
		return 0;
	r = loop_fdes_read(elf, work, &fdes);
	if (!r)
		r = find_core(elf, &fdes, work, &core);
	if (!r && !named) {
		r = find_exec(elf, &fdes, &core, work, &exec);
		if (!r)
			r = vec_push(&dso->interpreter_functions, exec);
		if (!r)
			r = runtime_hide(dso, &exec);
	}
	if (r)
		return r != -ENOENT ? r : named ? 0 : -ENOTSUP;
	r = runtime_hide(dso, &core);
	if (r)
		return r;
	r = runtime_find_cold(elf, &fdes, &core, work, &cold);
	if (r && r != -ENOENT)
		return r;
	r = r ? 0 : runtime_hide(dso, &cold);
	return r ? r : runtime_add_cold(elf, &fdes, work, dso);
}

/* --- a thread's things ----------------------------------------------------------------------- */

/* mov N(%rax), %rax */
static bool loads(const uint8_t *code, size_t size, uint8_t offset)
{
	const uint8_t near[] = { 0x48, 0x8b, 0x40, offset },
		      far[] = { 0x48, 0x8b, 0x80, offset, 0, 0, 0 };

	return offset < 128 ? memmem(code, size, near, sizeof(near)) != NULL
			    : memmem(code, size, far, sizeof(far)) != NULL;
}

uint64_t ruby_ec_slot(const struct elf_file *elf, uint64_t function, uint8_t error)
{
	uint8_t code[ACCESSOR_MAX];
	int32_t off;

	if (elf->machine != EM_X86_64 || elf_file_read_vaddr(elf, function, code, sizeof(code)) ||
	    !loads(code, sizeof(code), error))
		return 0;
	/* lea N(%rip), %rdi or %rax; mov N(%rip), %rax */
	for (size_t at = 0; at + 7 <= sizeof(code); at++) {
		const uint8_t *p = code + at;

		if (p[0] != 0x48 || (p[1] != 0x8d && p[1] != 0x8b) ||
		    (p[2] != 0x3d && p[2] != 0x05))
			continue;
		memcpy(&off, p + 3, sizeof(off));
		return function + at + 7 + (uint64_t)(int64_t)off;
	}
	return 0;
}

bool ruby_ec_offset(const struct elf_file *elf, uint64_t function, uint8_t error,
		    int64_t *ret_offset)
{
	static const uint8_t constant[] = { 0x48, 0xc7, 0xc0 }, /* mov $N, %rax */
		through[] = { 0x64, 0x48, 0x8b, 0x00 },		/* mov %fs:(%rax), %rax */
		direct[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };	/* mov %fs:N, %rax */
	uint8_t code[ACCESSOR_MAX];
	int32_t off;

	if (elf->machine != EM_X86_64 || elf_file_read_vaddr(elf, function, code, sizeof(code)))
		return false;
	/* Behind an endbr64, or what a frame pointer needs. */
	for (size_t at = 0; at < ACCESSOR_MAX / 3; at++) {
		const uint8_t *p = code + at, *n, *then, *end;

		if (!memcmp(p, direct, sizeof(direct))) {
			n = p + sizeof(direct);
			then = n + sizeof(off);
		} else if (!memcmp(p, constant, sizeof(constant)) &&
			   !memcmp(p + sizeof(constant) + sizeof(off), through, sizeof(through))) {
			n = p + sizeof(constant);
			then = n + sizeof(off) + sizeof(through);
		} else {
			continue;
		}
		end = memchr(then, 0xc3, (size_t)(code + sizeof(code) - then)); /* ret */
		if (!end || !loads(then, (size_t)(end - then), error))
			return false;
		memcpy(&off, n, sizeof(off));
		*ret_offset = off;
		return true;
	}
	return false;
}

/* --- collections of memory -------------------------------------------------------------------- */

/* mov N(%rax), %rax, with a number of four bytes */
static bool loads_far(const uint8_t *p)
{
	return p[0] == 0x48 && p[1] == 0x8b && p[2] == 0x80;
}

/*
 * rb_during_gc(): where ruby_current_vm_ptr is, which may be 0 and is checked then; the objspace;
 * a byte of its flags, of which bit 5 is asked for.
 */
static bool read_during_gc(const struct elf_file *elf, uint64_t function, struct ruby_gc *gc)
{
	static const uint8_t follow[] = { 0x48, 0x8b, 0x00 },	/* mov (%rax), %rax */
		bit[] = { 0xc0, 0xe8, 0x05, 0x83, 0xe0, 0x01 }; /* shr $5, %al; and $1, %eax */
	uint8_t code[ACCESSOR_MAX];
	size_t at = 0;

	if (elf_file_read_vaddr(elf, function, code, sizeof(code)))
		return false;
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		at += 4;
	/* mov or lea N(%rip), %rax */
	if (code[at] != 0x48 || (code[at + 1] != 0x8b && code[at + 1] != 0x8d) ||
	    code[at + 2] != 0x05)
		return false;
	gc->vm = x86_rel32(code + at + 3, function + at + 3);
	gc->slot = false;
	if (!memcmp(code + at + 7, follow, sizeof(follow)))
		gc->slot = code[at + 1] == 0x8b; /* of the linker's: the variable is elsewhere */
	else if (code[at + 1] == 0x8d)
		return false;
	for (at += 7; at + 17 <= sizeof(code); at++) {
		const uint8_t *p = code + at;

		/* movzbl N(%rax), %eax */
		if (!loads_far(p) || p[7] != 0x0f || p[8] != 0xb6 || p[9] != 0x40 || p[10] & 3 ||
		    memcmp(p + 11, bit, sizeof(bit)) != 0)
			continue;
		gc->objspace = half_at(p, 3);
		gc->flags = p[10];
		return true;
	}
	return false;
}

/* rb_gc_count(): a number in the objspace, which is looked for as before, or by a call. */
static bool read_gc_count(const struct elf_file *elf, uint64_t function, struct ruby_gc *gc)
{
	static const uint8_t leave[] = { 0x48, 0x83, 0xc4, 0x08, 0xc3 }; /* add $8, %rsp; ret */
	uint8_t code[ACCESSOR_MAX];

	if (elf_file_read_vaddr(elf, function, code, sizeof(code)))
		return false;
	for (size_t at = 0; at + 17 <= sizeof(code) && code[at] != 0xc3; at++) {
		const uint8_t *p = code + at;

		if (loads_far(p) && half_at(p, 3) == gc->objspace && loads_far(p + 7) &&
		    p[14] == 0xc3)
			gc->count = half_at(p, 10);
		else if (p[0] == 0xe8 && loads_far(p + 5) && !memcmp(p + 12, leave, sizeof(leave)))
			gc->count = half_at(p, 8);
		else
			continue;
		return true;
	}
	return false;
}

bool ruby_find_gc(const struct elf_file *elf, uint64_t during_gc, uint64_t gc_count,
		  struct ruby_gc *ret)
{
	struct ruby_gc gc = { 0 };

	if (elf->machine != EM_X86_64 || !read_during_gc(elf, during_gc, &gc) ||
	    !read_gc_count(elf, gc_count, &gc))
		return false;
	*ret = gc;
	return true;
}
