// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: PHP's Zend/zend_llist.h, Zend/zend_extensions.h (struct _zend_extension),
 * ext/opcache/jit/zend_jit.c (zend_jit_status(), dasm_buf, dasm_end) at 8.2.32, and 8.4's headers.
 */
#include "runtime/php/php_jit.h"

#include "elf/x86_insn.h"
#include "runtime/words.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	EXTENSIONS_MAX = 8,
	ELEMENT_DATA = 16, /* struct _zend_llist_element: next, prev, data */
	STARTUP = 40,	   /* struct _zend_extension: its name comes first, here is a function */
	PAGE = 4096,
	PAGES_MAX = 1024, /* of opcache; it has 300 */
	DYNAMIC_MAX = 64,
	SYMBOLS_MAX = 4096,
	NAME_MAX_ = 32,
	STATUS_SIZE = 320,		     /* of zend_jit_status() that is looked at */
	BUFFER_MAX = (1u << 31) - (1 << 20), /* jit_buffer_size, in the reach of calls */
};

/* mov N(%rip), %rax and then mov N(%rip), %rcx: dasm_buf, dasm_end. */
static int decode_status(const struct runtime_target *t, uint64_t function, struct php_jit *ret)
{
	uint8_t code[STATUS_SIZE];
	uint64_t found[2] = { 0 };
	size_t nr = 0;
	int r = runtime_read(t, function, code, sizeof(code));

	if (r)
		return r;
	for (size_t at = 0; nr < 2 && at + 7 <= sizeof(code); at++) {
		if (code[at] != 0x48 || code[at + 1] != 0x8b || code[at + 2] != (nr ? 0x0d : 0x05))
			continue;
		found[nr++] = x86_rel32(code + at + 3, function + at + 3);
	}
	if (nr < 2)
		return -ENOENT;
	ret->begin = found[0];
	ret->end = found[1];
	return 0;
}

/* What a library's dynamic segment leads to, in memory. */
struct exports {
	uint64_t base, symbols, strings, hash; /* DT_GNU_HASH */
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (uint8_t)*name++;
	return hash;
}

/* The function `name`, if that is the symbol of that number: 0; -ENOENT: it isn't. */
static int read_export(const struct runtime_target *t, const struct exports *e, uint32_t number,
		       const char *name, uint64_t *ret)
{
	size_t size = strlen(name) + 1;
	char text[NAME_MAX_];
	Elf64_Sym sym;
	int r = runtime_read(t, e->symbols + number * sizeof(sym), &sym, sizeof(sym));

	if (r || size > sizeof(text))
		return r ? r : -ENOENT;
	r = runtime_read(t, e->strings + sym.st_name, text, size);
	if (r)
		return r;
	*ret = e->base + sym.st_value;
	return sym.st_value && !memcmp(text, name, size) ? 0 : -ENOENT;
}

/* The function of that name that the library exports, by the table that ld.so looks it up in. */
static int find_export(const struct runtime_target *t, const struct exports *e, const char *name,
		       uint64_t *ret)
{
	uint32_t header[4]; /* number of buckets, first symbol, words of the filter, a shift */
	uint32_t hash = gnu_hash(name), number, word;
	uint64_t buckets, chains;
	int r = runtime_read(t, e->hash, header, sizeof(header));

	if (r)
		return r;
	if (!header[0])
		return -ENOENT;
	buckets = e->hash + sizeof(header) + 8 * (uint64_t)header[2];
	chains = buckets + 4 * (uint64_t)header[0];
	r = runtime_read(t, buckets + 4 * (uint64_t)(hash % header[0]), &number, sizeof(number));
	if (r || number < header[1])
		return r ? r : -ENOENT;
	for (size_t i = 0; i < SYMBOLS_MAX; i++, number++) {
		r = runtime_read(t, chains + 4 * (uint64_t)(number - header[1]), &word,
				 sizeof(word));
		if (!r && (word | 1) == (hash | 1))
			r = read_export(t, e, number, name, ret);
		else if (!r)
			r = -ENOENT;
		if (r != -ENOENT || word & 1)
			return r;
	}
	return -ENOENT;
}

/* Where the library begins in memory that has `code`: its parts lie side by side. */
static int find_base(const struct runtime_target *t, uint64_t code, Elf64_Ehdr *header,
		     uint64_t *ret)
{
	uint64_t page = code & ~(uint64_t)(PAGE - 1);

	for (size_t i = 0; i < PAGES_MAX; i++, page -= PAGE) {
		int r = runtime_read(t, page, header, sizeof(*header));

		if (r)
			return r;
		if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
			continue;
		*ret = page;
		return 0;
	}
	return -ENOENT;
}

/* The dynamic segment of the library at `base`. */
static int read_dynamic(const struct runtime_target *t, uint64_t base, const Elf64_Ehdr *header,
			Elf64_Dyn ret[DYNAMIC_MAX])
{
	for (size_t i = 0; i < header->e_phnum && i < DYNAMIC_MAX; i++) {
		Elf64_Phdr p;
		int r = runtime_read(t, base + header->e_phoff + i * sizeof(p), &p, sizeof(p));

		if (r)
			return r;
		if (p.p_type == PT_DYNAMIC)
			return runtime_read(t, base + p.p_vaddr, ret, DYNAMIC_MAX * sizeof(ret[0]));
	}
	return -ENOENT;
}

/* In the library that has `code`. */
static int look_in_library(const struct runtime_target *t, uint64_t code, struct php_jit *ret)
{
	Elf64_Dyn dynamic[DYNAMIC_MAX];
	struct exports e = { 0 };
	Elf64_Ehdr header;
	uint64_t status;
	int r = find_base(t, code, &header, &e.base);

	if (!r)
		r = read_dynamic(t, e.base, &header, dynamic);
	if (r)
		return r;
	for (size_t i = 0; i < DYNAMIC_MAX && dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t addr = dynamic[i].d_un.d_ptr;

		/* glibc has made addresses of them, musl has not. */
		if (addr < e.base)
			addr += e.base;
		if (dynamic[i].d_tag == DT_SYMTAB)
			e.symbols = addr;
		else if (dynamic[i].d_tag == DT_STRTAB)
			e.strings = addr;
		else if (dynamic[i].d_tag == DT_GNU_HASH)
			e.hash = addr;
	}
	if (!e.symbols || !e.strings || !e.hash)
		return -ENOENT;
	r = find_export(t, &e, "zend_jit_status", &status);
	return r ? r : decode_status(t, status, ret);
}

int php_jit_find(const struct runtime_target *t, const struct php_dso *dso, struct php_jit *ret)
{
	static const char name[] = "Zend OPcache";
	uint64_t element, words[STARTUP / 8 + 1];
	char text[sizeof(name)];
	int r;

	if (t->machine != EM_X86_64)
		return -ENOENT;
	if (dso->jit_status)
		return decode_status(t, dso->jit_status + t->bias, ret);
	if (!dso->extensions)
		return -ENOENT;
	r = runtime_read(t, dso->extensions + t->bias, &element, sizeof(element));
	for (size_t i = 0; !r && element && i < EXTENSIONS_MAX; i++) {
		r = runtime_read(t, element + ELEMENT_DATA, words, sizeof(words));
		if (!r)
			r = runtime_read(t, words[0], text, sizeof(text));
		if (!r && !memcmp(text, name, sizeof(name)))
			return look_in_library(t, words[STARTUP / 8], ret);
		if (!r)
			r = runtime_read(t, element, &element, sizeof(element));
	}
	return r ? r : -ENOENT;
}

int php_jit_buffer(const struct runtime_target *t, const struct php_jit *jit,
		   struct code_range *ret)
{
	struct code_range found = { 0 };
	int r = runtime_read(t, jit->begin, &found.start, sizeof(found.start));

	if (!r)
		r = runtime_read(t, jit->end, &found.end, sizeof(found.end));
	if (r)
		return r;
	if (!found.start || found.end <= found.start || found.end - found.start > BUFFER_MAX)
		found = (struct code_range){ 0 };
	*ret = found;
	return 0;
}
