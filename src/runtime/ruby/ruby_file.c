// SPDX-License-Identifier: Apache-2.0
#include "runtime/ruby/ruby_file.h"
#include "runtime/ruby/ruby_code.h"
#include "runtime/functions.h"

#include "abi/unwind.h"
#include "elf/elf_dynamic.h"
#include "runtime/static_file.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two or three tables of that size are read at once, in the recorder itself. */
enum { TABLE_MAX = 16 << 20, DATA_MAX = 4 << 20 };

static const char ec_name[] = "ruby_current_ec";
static const char symbols_name[] = "ruby_global_symbols";

/* --- functions -------------------------------------------------------------------------------- */

/* What runs frames; and what only implements a call of a method or of a block. */
static const char *const loop_names[] = { "rb_vm_exec", "vm_exec", NULL };
static const char *const glue_names[] = {
	"vm_exec_core",
	"vm_exec_loop",
	"vm_sendish",
	"vm_call_*",
	"vm_call0_*",
	"rb_vm_call0",
	"ractor_safe_call_cfunc_*",
	"call_cfunc_*",
	"vm_invoke_*",
	"vm_yield*",
	"invoke_block*",
	"invoke_iseq_block_from_c",
	"invoke_bmethod",
	"vm_bmethod_*",
	"rb_vm_invoke_proc",
	"rb_vm_invoke_bmethod",
	"mjit_exec",
	"jit_exec",
	NULL,
};

bool ruby_hides(const char *name, const char *source)
{
	(void)source;
	return runtime_name_in(name, loop_names) || runtime_name_in(name, glue_names);
}

/* --- symbols that are not exported ------------------------------------------------------------ */

struct table {
	uint8_t *entries, *names; /* ours; names with a NUL byte behind them */
	size_t nr, size;
};

static void table_free(struct table *t)
{
	free(t->entries);
	free(t->names);
}

static int table_read(const struct elf_file *elf, const struct elf_section *section,
		      struct table *ret)
{
	struct elf_data data;
	int r;

	if (!section || section->link >= elf->nr_sections)
		return -ENOENT;
	r = elf_file_section_data(elf, section, TABLE_MAX, &data);
	if (r)
		return r;
	ret->entries = data.data;
	ret->nr = data.size / sizeof(Elf64_Sym);
	r = elf_file_section_data(elf, &elf->sections[section->link], TABLE_MAX, &data);
	if (r)
		return r;
	ret->names = data.data;
	ret->size = data.size;
	return 0;
}

static const char *table_entry(const struct table *t, size_t i, Elf64_Sym *ret)
{
	if (i >= t->nr)
		return "";
	memcpy(ret, t->entries + i * sizeof(*ret), sizeof(*ret));
	return ret->st_name < t->size ? (const char *)t->names + ret->st_name : "";
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return align & (align - 1) || !align ? value : (value + align - 1) & ~(align - 1);
}

/* How far from the thread pointer a program's own thread-local variables begin: x86-64 has them
 * below it, aarch64 above its first two words. */
static int64_t own_tls(const struct elf_file *elf)
{
	const struct elf_segment *tls = elf_file_segment(elf, PT_TLS);

	if (!tls)
		return 0;
	if (elf->machine == EM_AARCH64)
		return (int64_t)align_up(16, tls->align);
	return (int64_t)(tls->vaddr - align_up(tls->vaddr + tls->memsz, tls->align));
}

/* Or it is a library, whose thread-local variables are somewhere else in each process. */
static bool is_program(const struct elf_file *elf)
{
	return elf->type == ET_EXEC || elf_file_segment(elf, PT_INTERP);
}

static int read_symtab(const struct elf_file *elf, struct loop_work *work, struct ruby_dso *dso)
{
	_cleanup_(table_free) struct table t = { 0 };
	int r = table_read(elf, elf_file_section(elf, ".symtab"), &t);
	bool program = is_program(elf);

	if (r)
		return r == -ENOMEM ? r : 0;
	r = loop_work_add(work, t.nr * LOOP_WORK_ENTRY);
	if (r)
		return r;
	for (size_t i = 0; i < t.nr; i++) {
		Elf64_Sym sym = { 0 };
		const char *name = table_entry(&t, i, &sym);

		if (sym.st_shndx == SHN_UNDEF)
			continue;
		if (!strcmp(name, symbols_name))
			dso->symbols = sym.st_value;
		if (program && !strcmp(name, ec_name) && !dso->how &&
		    ELF64_ST_TYPE(sym.st_info) == STT_TLS) {
			dso->how = RUBY_EC_TLS;
			dso->ec_offset = own_tls(elf) + (int64_t)sym.st_value;
		}
	}
	return 0;
}

/* --- where ruby_current_ec is ----------------------------------------------------------------- */

static void take_relocation(const struct elf_file *elf, struct ruby_dso *dso, uint32_t type,
			    uint64_t at)
{
	bool x86 = elf->machine == EM_X86_64;

	if (type == (x86 ? R_X86_64_TPOFF64 : R_AARCH64_TLS_TPREL)) {
		dso->how = RUBY_EC_TLS;
		dso->descriptor = false;
	} else if (type == (x86 ? R_X86_64_TLSDESC : R_AARCH64_TLSDESC)) {
		dso->how = RUBY_EC_TLS;
		dso->descriptor = true;
	} else if (type == (x86 ? R_X86_64_DTPMOD64 : R_AARCH64_TLS_DTPMOD)) {
		dso->how = RUBY_EC_DTV;
	} else {
		return;
	}
	dso->ec_slot = at;
}

/* By the variable's name, or if that is not to be seen, by where its code looks: `slot`. */
static int read_relocations(const struct elf_file *elf, uint64_t slot, struct loop_work *work,
			    struct ruby_dso *dso)
{
	_cleanup_(table_free) struct table t = { 0 };
	int r = table_read(elf, elf_file_section(elf, ".dynsym"), &t);

	for (size_t i = 0; !r && i < elf->nr_sections && !dso->ec_slot; i++) {
		const struct elf_section *s = &elf->sections[i];
		_cleanup_free_ uint8_t *items = NULL;
		struct elf_data data;

		if (s->type != SHT_RELA)
			continue;
		/* Of a compressed one as much as it says. */
		if (loop_work_add(work, (elf_file_section_size(elf, s) / sizeof(Elf64_Rela) + 1) *
						LOOP_WORK_ENTRY))
			return -ENOTSUP;
		r = elf_file_section_data(elf, s, TABLE_MAX, &data);
		if (r)
			break;
		items = data.data;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= data.size;
		     at += sizeof(Elf64_Rela)) {
			Elf64_Rela rela;
			Elf64_Sym sym;

			memcpy(&rela, items + at, sizeof(rela));
			if ((slot && rela.r_offset == slot) ||
			    (ELF64_R_SYM(rela.r_info) &&
			     !strcmp(table_entry(&t, ELF64_R_SYM(rela.r_info), &sym), ec_name)))
				take_relocation(elf, dso, (uint32_t)ELF64_R_TYPE(rela.r_info),
						rela.r_offset);
		}
	}
	return r == -ENOMEM ? r : 0;
}

/* Where a thread has what it runs; dso->how stays 0 if that is not to be seen. */
static int find_ec(const struct elf_file *elf, const struct elf_dynamic *dynamic,
		   struct loop_work *work, struct ruby_dso *dso)
{
	uint64_t function, at;

	if (dso->layout->thread_ec) {
		if (elf_dynamic_find(dynamic, "ruby_native_thread_p", &function))
			return 0;
		dso->ec_slot = runtime_find_key(elf, function);
		if (dso->ec_slot)
			dso->how = RUBY_EC_KEY;
		return 0;
	}
	if (!elf_dynamic_find(dynamic, ec_name, &at) ||
	    elf_dynamic_find(dynamic, "rb_errinfo", &function))
		return read_relocations(elf, 0, work, dso);
	return read_relocations(elf, ruby_ec_slot(elf, function, dso->layout->error), work, dso);
}

/* Of a program that has Ruby in itself and says nowhere where ruby_current_ec is, neither by a
 * relocation nor by a symbol. */
static void find_ec_in_code(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			    struct ruby_dso *dso)
{
	uint64_t function;

	if (!dso->how && !dso->layout->thread_ec && is_program(elf) &&
	    !elf_dynamic_find(dynamic, "rb_errinfo", &function) &&
	    ruby_ec_offset(elf, function, dso->layout->error, &dso->ec_offset))
		dso->how = RUBY_EC_TLS;
}

/* --- all of it -------------------------------------------------------------------------------- */

void ruby_file_free(struct ruby_dso *dso)
{
	if (!dso)
		return;
	runtime_dso_fini(&dso->dso);
	free(dso);
}

static void ruby_file_free_p(struct ruby_dso **dso)
{
	ruby_file_free(*dso);
}

static int read_version(const struct elf_file *elf, const struct elf_dynamic *dynamic,
			char ret[static 16], unsigned int *ret_number)
{
	unsigned int major, minor;
	uint64_t at;

	/* libruby and static programs export both, for extensions. */
	if (elf_dynamic_find(dynamic, "ruby_version", &at) ||
	    elf_file_read_vaddr(elf, at, ret, 15) || elf_dynamic_find(dynamic, "rb_funcallv", &at))
		return -ENOENT;
	ret[15] = '\0';
	if (sscanf(ret, "%2u.%2u", &major, &minor) != 2)
		return -ENOENT;
	*ret_number = 100 * major + minor;
	return 0;
}

/*
 * The version of a Ruby that exports nothing, by what it says of itself: its description ("ruby
 * 3.1.2p20 (..."), which stands beside its copyright (version.c). Is it one?
 */
static bool read_static_version(const struct elf_file *elf, char ret[static 16])
{
	static const char copyright[] = "ruby - Copyright (C) ", description[] = "\0ruby ";
	_cleanup_free_ uint8_t *bytes = NULL;
	const char *at, *end;
	struct elf_data data;
	size_t i;

	if (runtime_static_constants(elf, &data))
		return false;
	bytes = data.data;
	if (!memmem(data.data, data.size, copyright, sizeof(copyright) - 1))
		return false;
	end = (const char *)data.data + data.size;
	for (at = (const char *)data.data;; at++) {
		at = memmem(at, (size_t)(end - at), description, sizeof(description) - 1);
		if (!at)
			return false;
		at += sizeof(description) - 1;
		if (at < end && *at >= '0' && *at <= '9')
			break;
	}
	for (i = 0; i < 15 && at + i < end && ((at[i] >= '0' && at[i] <= '9') || at[i] == '.'); i++)
		ret[i] = at[i];
	ret[i] = '\0';
	return true;
}

static void set_jit(const struct elf_file *elf, struct ruby_dso *dso)
{
	const struct elf_section *text = elf_file_section(elf, ".text");

	if (!text)
		return;
	if (dso->layout->version >= 206 && dso->layout->version <= 302)
		dso->own = (struct code_range){ text->addr, text->addr + text->size };
	if (elf->machine != EM_X86_64 || dso->layout->version < 301 || !ruby_has_yjit(elf))
		return;
	dso->text = (struct code_range){ text->addr, text->addr + text->size };
	/* What YJIT's code runs is in this register when it calls C code; what RJIT's does, in the
	 * other one. */
	dso->dso.follow = 1 << X86_SLOT_R13;
	if (dso->layout->version == 303 || dso->layout->version == 304)
		dso->dso.follow |= 1 << X86_SLOT_R15;
}

/* Since 3.0 memory is compacted by collections only. */
static void find_gc(const struct elf_file *elf, const struct elf_dynamic *dynamic,
		    struct ruby_dso *dso)
{
	uint64_t during_gc, gc_count;

	if (dso->layout->version >= 300 && !elf_dynamic_find(dynamic, "rb_during_gc", &during_gc) &&
	    !elf_dynamic_find(dynamic, "rb_gc_count", &gc_count))
		ruby_find_gc(elf, during_gc, gc_count, &dso->gc);
}

int ruby_file_read(const struct elf_file *elf, char ret_version[static 16], struct ruby_dso **ret,
		   const char **why)
{
	_cleanup_(ruby_file_free_p) struct ruby_dso *dso = NULL;
	const struct elf_section *data;
	struct loop_work work = { 0 };
	struct elf_dynamic dynamic;
	unsigned int version;
	int r;

	*why = runtime_static_why;
	if (elf_dynamic_read(elf, &dynamic) || read_version(elf, &dynamic, ret_version, &version))
		return read_static_version(elf, ret_version) ? -ENOTSUP : -ENOENT;
	*why = NULL;
	if (!ruby_layout_of(version) || (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64))
		return -ENOTSUP;
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return -ENOMEM;
	dso->layout = ruby_layout_of(version);
	dso->machine = elf->machine;
	memcpy(dso->version, ret_version, sizeof(dso->version));
	r = runtime_find_functions(elf, loop_names, glue_names, &dso->dso);
	if (!r || r == -ENOTSUP)
		r = ruby_add_loop(elf, &work, &dso->dso);
	if (!r)
		r = find_ec(elf, &dynamic, &work, dso);
	if (!r)
		r = read_symtab(elf, &work, dso);
	if (r)
		return r;
	find_ec_in_code(elf, &dynamic, dso);
	if (!dso->how)
		return -ENOTSUP;
	if (dso->layout->shapes && elf_dynamic_find(&dynamic, "ruby_current_vm_ptr", &dso->vm))
		return -ENOTSUP;
	set_jit(elf, dso);
	find_gc(elf, &dynamic, dso);
	data = elf_file_section(elf, ".data");
	if (data && data->size <= DATA_MAX)
		dso->data = (struct code_range){ data->addr, data->addr + data->size };
	if (!dso->symbols && !dso->data.end)
		return -ENOTSUP;
	/* inits.c: Init_sym() comes before Init_Object() */
	/* It is set beside rb_cObject; but of that a program that names it has a copy, which
	 * counts. */
	if (elf_dynamic_find(&dynamic, "rb_cBasicObject", &dso->begun))
		dso->begun = 0;
	*ret = TAKE_PTR(dso);
	return 0;
}
