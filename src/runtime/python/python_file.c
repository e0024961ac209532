// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_file.h"
#include "runtime/functions.h"
#include "runtime/python/python_code.h"
#include "runtime/python/python_offsets.h"

#include "elf/elf_dynamic.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	MINOR_MIN = 6,
	/* Bytes of a table of symbols, or of its names: of more, functions are not looked for. */
	SYMTAB_MAX = 16 << 20,
	/* An executable's names are looked through for a static interpreter if they are so few. */
	STRTAB_MAX = 8 << 20,
};

/* --- symbols --------------------------------------------------------------------------------- */

enum name {
	EVAL_FRAME_DEFAULT,
	EVAL_FRAME_EX,
	RUNTIME,
	VERSION,
	CODE_TYPE,
	INTERP_HEAD,
	INTERPRETER_HEAD,
	TRAMPOLINE,
	TRAMPOLINE_END,
	FUNCTION_NEW,
	/* By what a version was the first to have it. */
	SINCE_3_8,
	SINCE_3_9,
	SINCE_3_10,
	NAME_MAX_,
};
static const char *const names[NAME_MAX_] = {
	[EVAL_FRAME_DEFAULT] = "_PyEval_EvalFrameDefault", /* 3.6 */
	[EVAL_FRAME_EX] = "PyEval_EvalFrameEx",
	[RUNTIME] = "_PyRuntime", /* 3.7 */
	[VERSION] = "Py_Version", /* 3.11 */
	[CODE_TYPE] = "PyCode_Type",
	[INTERP_HEAD] = "interp_head", /* 3.6 */
	[INTERPRETER_HEAD] = "PyInterpreterState_Head",
	[TRAMPOLINE] = "_Py_trampoline_func_start", /* 3.12 */
	[TRAMPOLINE_END] = "_Py_trampoline_func_end",
	[FUNCTION_NEW] = "PyFunction_NewWithQualName", /* 3.3 */
	[SINCE_3_8] = "PyCode_NewWithPosOnlyArgs",
	[SINCE_3_9] = "PyFrame_GetCode",
	[SINCE_3_10] = "PyIter_Send",
};

struct found {
	uint64_t at[NAME_MAX_]; /* 0: there is none */
};

/* What .symtab has of what is not found yet. */
static int find_in_symtab(const struct elf_file *elf, struct found *f)
{
	const struct elf_section *section = elf_file_section(elf, ".symtab");
	_cleanup_free_ uint8_t *symbols = NULL, *strings = NULL;
	struct elf_data data;
	size_t nr, size;
	int r;

	if (!section || section->link >= elf->nr_sections)
		return 0;
	r = elf_file_section_data(elf, section, SYMTAB_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : 0;
	symbols = data.data;
	nr = data.size / sizeof(Elf64_Sym);
	r = elf_file_section_data(elf, &elf->sections[section->link], SYMTAB_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : 0;
	strings = data.data; /* with a NUL byte behind it */
	size = data.size;
	for (size_t i = 0; i < nr; i++) {
		Elf64_Sym sym;
		const char *name;

		memcpy(&sym, symbols + i * sizeof(sym), sizeof(sym));
		if (sym.st_name >= size || sym.st_shndx == SHN_UNDEF || !sym.st_value)
			continue;
		name = (const char *)strings + sym.st_name;
		if (*name != '_' && *name != 'P' && *name != 'i')
			continue;
		for (int n = 0; n < NAME_MAX_; n++)
			if (!f->at[n] && !strcmp(name, names[n]))
				f->at[n] = sym.st_value;
	}
	return 0;
}

/* Is there an interpreter in a file that does not export it? */
static bool has_static(const struct elf_file *elf)
{
	static const char wanted[] = "\0_PyEval_EvalFrameDefault";
	const struct elf_section *section = elf_file_section(elf, ".symtab");
	_cleanup_free_ uint8_t *strings = NULL;
	struct elf_data data;

	if (elf_file_section(elf, ".PyRuntime"))
		return true; /* 3.10 on */
	if (!section || section->link >= elf->nr_sections)
		return false;
	/* Programs only. One that is static and position-independent has no PT_INTERP. */
	if (elf->type != ET_EXEC && !elf->entry && !elf_file_segment(elf, PT_INTERP))
		return false;
	if (elf_file_section_data(elf, &elf->sections[section->link], STRTAB_MAX, &data))
		return false;
	strings = data.data;
	return memmem(strings, data.size, wanted, sizeof(wanted)) != NULL;
}

static int find_names(const struct elf_file *elf, struct found *f)
{
	struct elf_dynamic dynamic;
	bool exported = !elf_dynamic_read(elf, &dynamic) &&
			(!elf_dynamic_find(&dynamic, names[EVAL_FRAME_DEFAULT],
					   &f->at[EVAL_FRAME_DEFAULT]) ||
			 !elf_dynamic_find(&dynamic, names[EVAL_FRAME_EX], &f->at[EVAL_FRAME_EX]));

	if (!exported && !has_static(elf))
		return -ENOENT;
	for (int n = 0; exported && n < NAME_MAX_; n++)
		if (!f->at[n])
			elf_dynamic_find(&dynamic, names[n], &f->at[n]);
	return find_in_symtab(elf, f);
}

/* --- version --------------------------------------------------------------------------------- */

/* The minor version; -ENOTSUP: it is none that is known. */
static int read_minor(const struct elf_file *elf, const struct found *f,
		      struct runtime_about *about)
{
	uint32_t version;

	if (!f->at[EVAL_FRAME_DEFAULT]) {
		runtime_is_version(about, "a CPython before 3.6");
		return runtime_not_supported(about, "it is too old");
	}
	if (f->at[VERSION] &&
	    !elf_file_read_vaddr(elf, f->at[VERSION], &version, sizeof(version))) {
		unsigned int major = version >> 24, minor = version >> 16 & 0xff;

		runtime_is_version(about, "CPython %u.%u", major, minor);
		return major == 3 && python_offsets_known(minor) ? (int)minor : -ENOTSUP;
	}
	if (!f->at[RUNTIME])
		return 6;
	if (!f->at[SINCE_3_8])
		return 7;
	if (!f->at[SINCE_3_9])
		return 8;
	return f->at[SINCE_3_10] ? 10 : 9;
}

/* 3.6 exports a function that returns its list of interpreters: mov interp_head(%rip), %rax; ret,
 * or on aarch64 adrp x0; ldr x0, [x0, #N]; ret. */
static uint64_t decode_head(const struct elf_file *elf, uint64_t function)
{
	uint8_t code[12];
	uint32_t insn[3];
	int32_t off;

	if (!function || elf_file_read_vaddr(elf, function, code, sizeof(code)))
		return 0;
	if (elf->machine == EM_X86_64) {
		memcpy(&off, code + 3, sizeof(off));
		return code[0] == 0x48 && code[1] == 0x8b && code[2] == 0x05 && code[7] == 0xc3
			       ? function + 7 + (uint64_t)(int64_t)off
			       : 0;
	}
	memcpy(insn, code, sizeof(insn));
	if ((insn[0] & 0x9f00001f) != 0x90000000 || (insn[1] & 0xffc003ff) != 0xf9400000)
		return 0;
	off = (int32_t)((insn[0] >> 5 & 0x7ffff) << 2 | (insn[0] >> 29 & 3));
	off = (int32_t)((uint32_t)off << 11) >> 11; /* 21 bits with a sign */
	return (function & ~0xfffull) + ((uint64_t)(int64_t)off << 12) +
	       (insn[1] >> 10 & 0xfff) * 8;
}

/* --- code ------------------------------------------------------------------------------------ */

/* The eval loop itself; and what only implements a call of a Python function, by version. */
static const char *const loop_names[] = { "_PyEval_EvalFrameDefault", NULL };
static const char *const glue_names[] = {
	"PyEval_EvalFrameEx",
	"PyEval_EvalFrame",
	"_PyEval_EvalFrame",
	"_PyEval_EvalCodeWithName",
	"_PyEval_EvalCode",
	"_PyEval_Vector",
	"PyEval_EvalCodeEx",
	"fast_function",
	"call_function",
	"function_code_fastcall",
	"_PyFunction_FastCall",
	"_PyFunction_FastCallDict",
	"_PyFunction_FastCallKeywords",
	"_PyFunction_Vectorcall",
	"_PyObject_Vectorcall",
	"_PyObject_VectorcallTstate",
	"method_vectorcall",
	"gen_send_ex",
	"gen_send_ex2",
	"gen_iternext",
	"py_trampoline_evaluator",
	"_TAIL_CALL_*", /* 3.14 on, built so: an instruction each, within a loop */
	NULL,
};

bool python_hides(const char *name, const char *source)
{
	(void)source;
	return runtime_name_in(name, loop_names) || runtime_name_in(name, glue_names);
}

/* 3.14 exports all that runs functions but this. */
static int add_vectorcall(const struct elf_file *elf, uint64_t maker, struct loop_work *work,
			  struct runtime_dso *dso)
{
	struct code_range range;
	int r = python_find_vectorcall(elf, maker, work, &range);

	if (r)
		return r == -ENOENT ? 0 : r;
	return runtime_hide(dso, &range);
}

static int add_gaps(const struct elf_file *elf, struct loop_work *work, struct python_dso *dso)
{
	struct python_layout layout;
	struct python_record record;
	int r = 0;

	/* 3.10's end is told by f_state: python.bpf.c, pass_ended(). */
	if (dso->minor <= 10 && !python_offsets_of(dso->minor, &record, &layout))
		r = python_find_gaps(elf, dso->dso.interpreter_functions.items,
				     dso->dso.interpreter_functions.nr,
				     dso->minor <= 9 ? record.f_owner : -1, work, dso->gaps);
	if (r < 0)
		return r;
	dso->nr_gaps = (size_t)r;
	/* 3.11's loops end with a CFrame that leads to their callers' frames. */
	if (dso->minor == 12)
		dso->nr_gaps = python_find_begin(dso->dso.interpreter_functions.items,
						 dso->dso.interpreter_functions.nr, dso->gaps);
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

void python_file_free(struct python_dso *dso)
{
	if (!dso)
		return;
	runtime_dso_fini(&dso->dso);
	free(dso);
}

static void python_file_free_p(struct python_dso **dso)
{
	python_file_free(*dso);
}

int python_file_read(const struct elf_file *elf, struct runtime_about *about,
		     struct python_dso **ret)
{
	_cleanup_(python_file_free_p) struct python_dso *dso = NULL;
	struct loop_work work = { 0 };
	struct found f = { 0 };
	int r = find_names(elf, &f);

	if (r)
		return r;
	r = read_minor(elf, &f, about);
	if (r < 0)
		return r;
	runtime_is_version(about, "CPython 3.%d", r);
	/* Unless the rest is found. */
	(void)runtime_not_supported(about, "its build is not as that version's are");
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return -ENOTSUP;
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return -ENOMEM;
	dso->minor = (unsigned int)r;
	dso->runtime = f.at[RUNTIME];
	dso->code_type = f.at[CODE_TYPE];
	dso->trampoline = f.at[TRAMPOLINE];
	dso->trampoline_end = f.at[TRAMPOLINE_END];
	if (dso->minor == MINOR_MIN)
		dso->interpreters = f.at[INTERP_HEAD] ? f.at[INTERP_HEAD]
						      : decode_head(elf, f.at[INTERPRETER_HEAD]);
	if (!dso->code_type || (!dso->runtime && !dso->interpreters))
		return -ENOTSUP;
	r = runtime_find_functions(elf, loop_names, glue_names, &dso->dso);
	if (r)
		return r;
	r = runtime_add_cold(elf, NULL, &work, &dso->dso);
	if (!r && dso->minor == 14)
		r = add_vectorcall(elf, f.at[FUNCTION_NEW], &work, &dso->dso);
	if (!r)
		r = add_gaps(elf, &work, dso);
	if (r)
		return r;
	if (dso->minor >= 13)
		dso->loop_frame = python_loop_frame(elf, f.at[EVAL_FRAME_DEFAULT]);
	if (dso->minor == 12 || dso->minor == 13)
		dso->codes = python_find_codes(elf, dso->minor == 13);
	*ret = TAKE_PTR(dso);
	return 0;
}
