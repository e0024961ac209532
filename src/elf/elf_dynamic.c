// SPDX-License-Identifier: Apache-2.0
/*
 * The dynamic segment's two kinds of hash table. DT_HASH is in the System V ABI (gABI, "Hash
 * Table"); DT_GNU_HASH has no standard, but a fixed form: four words (number of buckets, first
 * symbol that is in the table, words of the Bloom filter, its shift), the filter, the buckets, and
 * a hash value a symbol, whose lowest bit ends a bucket's chain.
 */
#include "elf/elf_dynamic.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	DYNAMIC_MAX = 512, /* entries of a dynamic segment that are looked at */
	CHAIN_MAX = 256,   /* symbols of a bucket; real ones have a few, and each is read */
	UNDEFINED_MAX = 4096,
	NAME_SIZE_MAX = 256 /* of a name that is looked up */
};

static bool read_u32(const struct elf_dynamic *dynamic, uint64_t addr, uint32_t *ret)
{
	return !elf_file_read_vaddr(dynamic->elf, addr, ret, sizeof(*ret));
}

int elf_dynamic_read(const struct elf_file *elf, struct elf_dynamic *ret)
{
	const struct elf_segment *segment = elf_file_segment(elf, PT_DYNAMIC);
	struct elf_dynamic found = { .elf = elf };
	Elf64_Dyn entries[32];
	size_t nr, at = 0;

	if (!segment)
		return -ENOENT;
	nr = segment->filesz / sizeof(*entries);
	nr = nr < DYNAMIC_MAX ? nr : DYNAMIC_MAX;
	while (at < nr) {
		size_t part = nr - at < 32 ? nr - at : 32;

		if (elf_file_read(elf, segment->offset + at * sizeof(*entries), entries,
				  part * sizeof(*entries)))
			break;
		for (size_t i = 0; i < part; i++) {
			uint64_t value = entries[i].d_un.d_val;

			switch (entries[i].d_tag) {
			case DT_NULL:
				nr = 0;
				break;
			case DT_SYMTAB:
				found.symbols = value;
				break;
			case DT_STRTAB:
				found.strings = value;
				break;
			case DT_STRSZ:
				found.strings_size = value;
				break;
			case DT_HASH:
				found.hash = value;
				break;
			case DT_GNU_HASH:
				found.gnu_hash = value;
				break;
			default:
				break;
			}
			if (!nr)
				break;
		}
		at += part;
	}
	if (!found.symbols || !found.strings || (!found.hash && !found.gnu_hash))
		return -ENOENT;
	*ret = found;
	return 0;
}

static bool read_symbol(const struct elf_dynamic *dynamic, uint32_t index, Elf64_Sym *ret)
{
	return !elf_file_read_vaddr(dynamic->elf, dynamic->symbols + index * (uint64_t)sizeof(*ret),
				    ret, sizeof(*ret));
}

static bool is_called(const struct elf_dynamic *dynamic, const Elf64_Sym *symbol, const char *name)
{
	size_t size = strlen(name) + 1;
	char have[NAME_SIZE_MAX];

	return symbol->st_name <= dynamic->strings_size &&
	       size <= dynamic->strings_size - symbol->st_name &&
	       !elf_file_read_vaddr(dynamic->elf, dynamic->strings + symbol->st_name, have, size) &&
	       !memcmp(have, name, size);
}

/* Is symbol `index` defined and called `name`? */
static bool matches(const struct elf_dynamic *dynamic, uint32_t index, const char *name,
		    uint64_t *ret)
{
	Elf64_Sym symbol;

	if (!read_symbol(dynamic, index, &symbol) || symbol.st_shndx == SHN_UNDEF ||
	    ELF64_ST_TYPE(symbol.st_info) == STT_TLS || !is_called(dynamic, &symbol, name))
		return false;
	*ret = symbol.st_value;
	return true;
}

struct gnu_hash_head {
	uint32_t nr_buckets, first, nr_bloom, shift;
};

bool elf_dynamic_needs(const struct elf_dynamic *dynamic, const char *name)
{
	struct gnu_hash_head head;
	Elf64_Sym symbol;

	if (!dynamic->gnu_hash ||
	    elf_file_read_vaddr(dynamic->elf, dynamic->gnu_hash, &head, sizeof(head)))
		return false;
	for (uint32_t i = 1; i < head.first && i <= UNDEFINED_MAX; i++) {
		if (!read_symbol(dynamic, i, &symbol))
			return false;
		if (symbol.st_shndx == SHN_UNDEF && is_called(dynamic, &symbol, name))
			return true;
	}
	return false;
}

static int find_gnu(const struct elf_dynamic *dynamic, const char *name, uint64_t *ret)
{
	struct gnu_hash_head head;
	uint32_t hash = 5381, index, have;
	uint64_t bloom, buckets, chains;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	if (elf_file_read_vaddr(dynamic->elf, dynamic->gnu_hash, &head, sizeof(head)) ||
	    !head.nr_buckets || !head.nr_bloom)
		return -ENOENT;
	if (elf_file_read_vaddr(dynamic->elf,
				dynamic->gnu_hash + sizeof(head) +
					8 * (uint64_t)(hash / 64 % head.nr_bloom),
				&bloom, sizeof(bloom)))
		return -ENOENT;
	if (!(bloom >> hash % 64 & 1) || !(bloom >> (hash >> (head.shift & 31)) % 64 & 1))
		return -ENOENT;
	buckets = dynamic->gnu_hash + sizeof(head) + 8 * (uint64_t)head.nr_bloom;
	chains = buckets + 4 * (uint64_t)head.nr_buckets;
	if (!read_u32(dynamic, buckets + 4 * (uint64_t)(hash % head.nr_buckets), &index) ||
	    index < head.first)
		return -ENOENT;
	for (uint32_t n = 0; n < CHAIN_MAX; n++, index++) {
		if (!read_u32(dynamic, chains + 4 * (uint64_t)(index - head.first), &have))
			return -ENOENT;
		if ((have | 1) == (hash | 1) && matches(dynamic, index, name, ret))
			return 0;
		if (have & 1)
			return -ENOENT;
	}
	return -ENOENT;
}

static int find_sysv(const struct elf_dynamic *dynamic, const char *name, uint64_t *ret)
{
	uint32_t hash = 0, nr_buckets, index;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ ((hash & 0xf0000000u) >> 24)) & 0x0fffffffu;
	}
	if (!read_u32(dynamic, dynamic->hash, &nr_buckets) || !nr_buckets ||
	    !read_u32(dynamic, dynamic->hash + 8 + 4 * (uint64_t)(hash % nr_buckets), &index))
		return -ENOENT;
	for (uint32_t n = 0; index && n < CHAIN_MAX; n++) {
		if (matches(dynamic, index, name, ret))
			return 0;
		if (!read_u32(dynamic, dynamic->hash + 8 + 4 * ((uint64_t)nr_buckets + index),
			      &index))
			return -ENOENT;
	}
	return -ENOENT;
}

int elf_dynamic_find(const struct elf_dynamic *dynamic, const char *name, uint64_t *ret)
{
	if (strlen(name) >= NAME_SIZE_MAX)
		return -ENOENT;
	return dynamic->gnu_hash ? find_gnu(dynamic, name, ret) : find_sysv(dynamic, name, ret);
}
