// SPDX-License-Identifier: Apache-2.0
/*
 * Each function that is asked where something is does nothing else, so its few instructions tell.
 * Pointers in a library are what ld.so will make of them: .rela.dyn, read once.
 */
#include "elf/v8_builtins.h"

#include "elf/elf_dynamic.h"
#include "elf/v8_unexported.h"
#include "elf/x86_insn.h"
#include "util/cleanup.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUILTINS_MAX = 8192,	    /* three times as many as there are */
	CODE_MAX = 64 << 20,	    /* bytes of all builtins, which have 2 MB */
	RELOCATIONS_MAX = 16 << 20, /* bytes; libnode has 1.5 MB of them, Electron 11 MB */
	GETTER_MAX = 48,	    /* bytes of a function that only tells where something is */
	/* The table of places: behind three hashes, of a builtin the place and the size, and more.
	 */
	HASHES = 24,
	STRIDE_MAX = 32,
	/* Up to 8.4 it and the code are one: behind two hashes, of a builtin the place and the
	 * size, and the code, which begins at a multiple of this. */
	ONE_HASHES = 16,
	ONE_STRIDE = 8,
	ONE_ALIGNMENT = 32,
	/* That of names: of a builtin the name's address, and two words more. */
	NAME_WORDS = 3,
	NAME_SIZE = 128,
	PREFIX = 9, /* bytes of Builtins_ */
};
#define INTERNAL(name)	   "_ZN2v88internal" name
#define INTERPRETERS_ENTRY "Builtins_InterpreterEntryTrampoline"

/* Up to 8.4 these variables tell where all of it is. */
static const char one_blob[] = "v8_Default_embedded_blob_",
		  one_blob_size[] = "v8_Default_embedded_blob_size_";

/* Bytes of a builtin's entry in the table of places: from 11.8 on; 9.4 and 9.6; 10.2; 10.8 and
 * 11.3. */
static const uint8_t strides[] = { 12, 16, 28, STRIDE_MAX };
/* What the code of a builtin begins at multiples of: in 9.4 and 9.6, and later. */
static const uint8_t alignments[] = { 32, 64 };

struct source {
	const struct elf_file *elf;
	struct elf_dynamic dynamic;
	struct elf_data relocations; /* .rela.dyn, or nothing */
};

/* --- pointers ----------------------------------------------------------------------------------
 */

static int read_relocations(struct source *s)
{
	const struct elf_section *section = elf_file_section(s->elf, ".rela.dyn");
	int r = section ? elf_file_section_data(s->elf, section, RELOCATIONS_MAX, &s->relocations)
			: 0;

	return !r || r == -ENOMEM ? r : -ENOENT;
}

/* `nr` words of the file, as ld.so will have them. 0 or -ENOENT. */
static int read_words(const struct source *s, uint64_t addr, uint64_t *to, size_t nr)
{
	const uint8_t *relocations = s->relocations.data;
	Elf64_Rela rela;

	if (elf_file_read_vaddr(s->elf, addr, to, nr * sizeof(*to)))
		return -ENOENT;
	for (size_t at = 0; at + sizeof(rela) <= s->relocations.size; at += sizeof(rela)) {
		uint64_t offset;

		memcpy(&rela, relocations + at, sizeof(rela));
		offset = rela.r_offset - addr;
		if (offset < nr * sizeof(*to) && !(offset % sizeof(*to)) &&
		    ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
			to[offset / sizeof(*to)] = (uint64_t)rela.r_addend;
	}
	return 0;
}

/* --- what functions tell ------------------------------------------------------------------------
 */

struct getter {
	uint64_t addr;
	uint8_t code[GETTER_MAX];
	size_t at;
};

enum {
	OP_PUSH_RBP = 0x55,
	OP_POP_RBP = 0x5d,
	OP_MOV_STORE = 0x89,
	OP_MOV_LOAD = 0x8b,
	OP_LEA = 0x8d,
	OP_MOV_EAX = 0xb8,
	OP_RET = 0xc3,
	OP_0F_HINT = 0x1e, /* endbr64 */
	REX_W = 8,
	RAX = 0, /* as DWARF numbers it */
	RBP = 6,
	RSP = 7,
};

static int getter_find(const struct source *s, const char *name, struct getter *ret)
{
	*ret = (struct getter){ 0 };
	if (elf_dynamic_find(&s->dynamic, name, &ret->addr) ||
	    elf_file_read_vaddr(s->elf, ret->addr, ret->code, sizeof(ret->code)))
		return -ENOENT;
	return 0;
}

static bool getter_next(struct getter *g, struct x86_insn *ret)
{
	int len = x86_insn_decode(g->code + g->at, sizeof(g->code) - g->at, ret);

	g->at += (size_t)len;
	return len > 0;
}

/* What the last instruction has relative to where it ends. */
static uint64_t target(const struct getter *g, const struct x86_insn *insn)
{
	return g->addr + g->at + (uint64_t)(int64_t)insn->disp;
}

static bool is_one_byte(const struct x86_insn *insn, uint8_t opcode)
{
	return insn->map == X86_MAP_ONE_BYTE && !insn->vex && !insn->size16 &&
	       insn->opcode == opcode;
}

/* endbr64, push %rbp; mov %rsp, %rbp, or pop %rbp. */
static bool makes_frame(const struct x86_insn *insn)
{
	if (insn->map == X86_MAP_0F && !insn->vex && insn->opcode == OP_0F_HINT)
		return true;
	if (is_one_byte(insn, OP_PUSH_RBP) || is_one_byte(insn, OP_POP_RBP))
		return !insn->rex;
	return is_one_byte(insn, OP_MOV_STORE) && insn->mod == 3 && insn->reg == RSP &&
	       insn->rm == RBP;
}

/* A pointer, or a number of 4 bytes. */
static int load(const struct source *s, uint64_t addr, bool wide, uint64_t *ret)
{
	uint32_t narrow;

	if (wide)
		return read_words(s, addr, ret, 1);
	if (elf_file_read_vaddr(s->elf, addr, &narrow, sizeof(narrow)))
		return -ENOENT;
	*ret = narrow;
	return 0;
}

/* What a function without arguments returns that does nothing else. 0 or -ENOENT. */
static int returned(const struct source *s, const char *name, uint64_t *ret)
{
	struct getter g;
	struct x86_insn insn;
	bool known = false;
	uint64_t value = 0;
	int r = getter_find(s, name, &g);

	while (!r && getter_next(&g, &insn)) {
		bool loads = is_one_byte(&insn, OP_MOV_LOAD) && insn.reg == RAX && !insn.has_index;
		bool wide = insn.rex & REX_W;

		if (is_one_byte(&insn, OP_RET) && known) {
			*ret = value;
			return 0;
		}
		if (loads && insn.rip_relative) {
			r = load(s, target(&g, &insn), wide, &value);
			known = true;
		} else if (loads && !insn.mod && insn.rm == RAX && known) {
			r = load(s, value, wide, &value);
		} else if (is_one_byte(&insn, OP_LEA) && insn.rip_relative && insn.reg == RAX) {
			value = target(&g, &insn);
			known = true;
		} else if (is_one_byte(&insn, OP_MOV_EAX) && !insn.rex) {
			value = (uint32_t)insn.imm;
			known = true;
		} else if (!makes_frame(&insn)) {
			break;
		}
	}
	return -ENOENT;
}

/* The table of names, by the function that takes one out of it: its first address. */
static int find_names(const struct source *s, uint64_t *ret)
{
	static const char *const names[] = { INTERNAL("8Builtins4nameENS0_7BuiltinE"),
					     INTERNAL("8Builtins4nameEi") };
	struct x86_insn insn;
	struct getter g;

	if (getter_find(s, names[0], &g) && getter_find(s, names[1], &g))
		return -ENOENT;
	while (getter_next(&g, &insn) && !is_one_byte(&insn, OP_RET)) {
		if (is_one_byte(&insn, OP_LEA) && insn.rip_relative) {
			*ret = target(&g, &insn);
			return 0;
		}
		/* mov TABLE(, %r, 8), %r of a program at a fixed address */
		if (is_one_byte(&insn, OP_MOV_LOAD) && insn.has_index && !insn.mod &&
		    insn.disp > 0) {
			*ret = (uint64_t)insn.disp;
			return 0;
		}
	}
	return -ENOENT;
}

/* --- the tables --------------------------------------------------------------------------------
 */

/* Is all of the blob's code in one segment of code? */
static bool is_code(const struct elf_file *elf, const struct v8_blob *blob)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && blob->code >= s->vaddr &&
		    blob->code - s->vaddr < s->filesz &&
		    blob->code_size <= s->filesz - (blob->code - s->vaddr))
			return true;
	}
	return false;
}

static int find_blob(const struct source *s, struct v8_blob *ret)
{
	const struct {
		const char *name;
		uint64_t *to;
	} wanted[] = {
		{ INTERNAL("23DefaultEmbeddedBlobCodeEv"), &ret->code },
		{ INTERNAL("27DefaultEmbeddedBlobCodeSizeEv"), &ret->code_size },
		{ INTERNAL("23DefaultEmbeddedBlobDataEv"), &ret->data },
		{ INTERNAL("27DefaultEmbeddedBlobDataSizeEv"), &ret->data_size },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (returned(s, wanted[i].name, wanted[i].to))
			return -ENOENT;
	return ret->code_size && ret->code_size <= CODE_MAX && ret->data_size > HASHES &&
			       is_code(s->elf, ret)
		       ? 0
		       : -ENOENT;
}

/* Up to V8 8.4, where the names tell how many builtins there are. 0 or -ENOENT. */
static int find_one_blob(const struct source *s, struct v8_blob *ret)
{
	uint64_t variable, size_variable, data, size, code;

	if (elf_dynamic_find(&s->dynamic, one_blob, &variable) ||
	    elf_dynamic_find(&s->dynamic, one_blob_size, &size_variable) ||
	    load(s, variable, true, &data) || load(s, size_variable, false, &size))
		return -ENOENT;
	code = (ONE_HASHES + ret->nr * ONE_STRIDE + ONE_ALIGNMENT) & ~(uint64_t)(ONE_ALIGNMENT - 1);
	if (size <= code || size > CODE_MAX)
		return -ENOENT;
	ret->data = data;
	ret->data_size = code;
	ret->code = data + code;
	ret->code_size = size - code;
	return is_code(s->elf, ret) ? 0 : -ENOENT;
}

/*
 * How many builtins there are if entries of the table have that size, and code that alignment: each
 * begins where the one before and a byte at least end, and the last one ends the code. 0: it is not
 * so.
 */
static size_t fill(const struct v8_blob *blob, const uint8_t *table, size_t size, size_t stride,
		   uint64_t alignment, struct v8_builtin *items)
{
	uint64_t next = 0;
	uint32_t entry[2];

	for (size_t nr = 0; nr < BUILTINS_MAX && (nr + 1) * stride <= size; nr++) {
		memcpy(entry, table + nr * stride, sizeof(entry));
		if (!entry[1] || entry[0] != next)
			return 0;
		items[nr] = (struct v8_builtin){ blob->code + entry[0], entry[1], 0 };
		next = (next + entry[1] + alignment) & ~(alignment - 1);
		if (next > blob->code_size)
			return 0;
		if (next == blob->code_size)
			return nr + 1;
	}
	return 0;
}

/* Of a table in one of the forms that there are. */
static size_t fill_any(const struct v8_blob *blob, const uint8_t *table, size_t size,
		       struct v8_builtin *items)
{
	size_t nr = 0;

	if (blob->is_one)
		return fill(blob, table, size, ONE_STRIDE, ONE_ALIGNMENT, items);
	for (size_t i = 0; !nr && i < sizeof(strides); i++)
		for (size_t k = 0; !nr && k < sizeof(alignments); k++)
			nr = fill(blob, table, size, strides[i], alignments[k], items);
	return nr;
}

/* The builtins' places. 0, -ENOENT or -ENOMEM. */
static int read_places(const struct elf_file *elf, const struct v8_blob *blob,
		       struct v8_builtins *ret)
{
	size_t hashes = blob->is_one ? ONE_HASHES : HASHES, size = BUILTINS_MAX * STRIDE_MAX;
	_cleanup_free_ uint8_t *table = NULL;

	if (size > blob->data_size - hashes)
		size = blob->data_size - hashes;
	table = malloc(size);
	ret->items = calloc(BUILTINS_MAX, sizeof(*ret->items));
	if (!table || !ret->items)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, blob->data + hashes, table, size))
		return -ENOENT;
	ret->nr = fill_any(blob, table, size, ret->items);
	return ret->nr ? 0 : -ENOENT;
}

/* The length of a name, which letters, digits and underscores make; 0: it is none. */
static size_t name_length(const char *name, size_t max)
{
	size_t n = 0;

	while (n < max && (isalnum((unsigned char)name[n]) || name[n] == '_'))
		n++;
	return n < max && !name[n] ? n : 0;
}

/* Their names, of which one is the interpreter's entry. 0, -ENOENT or -ENOMEM. */
static int read_names(const struct source *s, uint64_t table, struct v8_builtins *ret)
{
	_cleanup_free_ uint64_t *words = calloc(ret->nr * NAME_WORDS, sizeof(*words));
	size_t entries = 0;

	ret->names = malloc(ret->nr * (PREFIX + NAME_SIZE));
	if (!words || !ret->names)
		return -ENOMEM;
	if (read_words(s, table, words, ret->nr * NAME_WORDS))
		return -ENOENT;
	for (size_t i = 0; i < ret->nr; i++) {
		char *name = ret->names + ret->names_size;
		size_t length;

		memcpy(name, "Builtins_", PREFIX);
		if (elf_file_read_vaddr(s->elf, words[i * NAME_WORDS], name + PREFIX, NAME_SIZE))
			return -ENOENT;
		length = name_length(name + PREFIX, NAME_SIZE);
		if (!length)
			return -ENOENT;
		ret->items[i].name = (uint32_t)ret->names_size;
		ret->names_size += PREFIX + length + 1;
		entries += !strcmp(name, INTERPRETERS_ENTRY);
	}
	return entries == 1 ? 0 : -ENOENT;
}

/* What of V8's leads there differs by version. 0, -ENOENT or -ENOMEM. */
static int find_tables(struct source *s, struct v8_blob *ret)
{
	uint64_t at;
	int r = find_names(s, &ret->names);

	if (r)
		r = v8_unexported_blob(&s->dynamic, ret);
	if (!r)
		r = read_relocations(s);
	if (!r && !ret->nr)
		r = find_blob(s, ret);
	if (r != -ENOENT || elf_dynamic_find(&s->dynamic, one_blob, &at))
		return r;
	*ret = (struct v8_blob){ .is_one = true };
	r = v8_unexported_names(s->elf, ret);
	if (!r && !s->relocations.data)
		r = read_relocations(s);
	return r ? r : find_one_blob(s, ret);
}

static int read_tables(struct source *s, struct v8_builtins *ret)
{
	struct v8_blob blob = { 0 };
	int r = find_tables(s, &blob);

	if (!r)
		r = read_places(s->elf, &blob, ret);
	if (!r && blob.nr && ret->nr != blob.nr)
		r = -ENOENT;
	return r ? r : read_names(s, blob.names, ret);
}

void v8_builtins_fini(struct v8_builtins *builtins)
{
	free(builtins->items);
	free(builtins->names);
	*builtins = (struct v8_builtins){ 0 };
}

int v8_builtins_read(const struct elf_file *elf, struct v8_builtins *ret)
{
	_cleanup_(v8_builtins_fini) struct v8_builtins builtins = { 0 };
	struct source s = { .elf = elf };
	char *names;
	int r;

	if (elf->machine != EM_X86_64 || elf_dynamic_read(elf, &s.dynamic))
		return -ENOENT;
	r = read_tables(&s, &builtins);
	free(s.relocations.data);
	if (r)
		return r;
	names = realloc(builtins.names, builtins.names_size);
	if (names)
		builtins.names = names;
	*ret = builtins;
	builtins = (struct v8_builtins){ 0 };
	return 0;
}
