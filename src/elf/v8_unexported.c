// SPDX-License-Identifier: Apache-2.0
#include "elf/v8_unexported.h"

#include "util/cleanup.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 1 << 20, /* bytes of a file at a time */
	OVERLAP = 64,	 /* and so many of the one before */
	RELOCATIONS_MAX = 16 << 20,
	BUILTINS_MAX = 8192,
	BUILTIN_SIZE_MAX = 1 << 20,
	NAME_SIZE = 128,
	/* A builtin's entry in the table of names: the name's address, its kind, and more. */
	NAME_ENTRY = 24,
	KINDS = 32, /* more than there are */
	/* The table of places: behind three hashes, of a builtin the place, the size, and more. */
	HASHES = 24,
	PLACE_ENTRY = 12,
	ALIGNMENT = 64, /* of a builtin's code */
	INT3 = 0xcc,
	REX_W = 0x48,
	LEA = 0x8d,
	LEA_SIZE = 7,
};

bool v8_is_unexported(const struct elf_dynamic *dynamic)
{
	uint64_t at;

	return dynamic->elf->machine == EM_X86_64 &&
	       !elf_dynamic_find(dynamic, "napi_create_function", &at) &&
	       elf_dynamic_find(dynamic, "_ZN2v88internal7Version6major_E", &at);
}

/* --- looking through a file --------------------------------------------------------------------
 */

/* What is asked of each place where bytes stand; true: that is enough. */
typedef bool (*found_fn)(void *arg, uint64_t addr, const uint8_t *bytes, size_t left);

/* Asks wherever `needle` stands in segments with these flags. */
static int look_through(const struct elf_file *elf, uint32_t flags, const void *needle,
			size_t needle_size, found_fn found, void *arg)
{
	_cleanup_free_ uint8_t *piece = malloc(PIECE + OVERLAP);

	if (!piece)
		return -ENOMEM;
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || (s->flags & (PF_R | PF_W | PF_X)) != flags)
			continue;
		for (uint64_t at = 0; at < s->filesz; at += PIECE) {
			uint64_t left = s->filesz - at;
			size_t size = left < PIECE + OVERLAP ? (size_t)left : PIECE + OVERLAP;
			const uint8_t *p = piece;

			if (elf_file_read_vaddr(elf, s->vaddr + at, piece, size))
				return -ENOENT;
			while ((p = memmem(p, size - (size_t)(p - piece), needle, needle_size))) {
				size_t offset = (size_t)(p - piece);

				/* Behind the piece it is the next one's. */
				if (offset >= PIECE)
					break;
				if (found(arg, s->vaddr + at + offset, p, size - offset))
					return 0;
				p++;
			}
		}
	}
	return 0;
}

/* The only address of some bytes. */
struct only {
	uint64_t addr;
	size_t nr;
};

static bool note_only(void *arg, uint64_t addr, const uint8_t *bytes, size_t left)
{
	struct only *only = arg;

	(void)bytes;
	(void)left;
	only->addr = addr;
	return ++only->nr > 1;
}

/* --- relocations -------------------------------------------------------------------------------
 */

static int read_relocations(const struct elf_file *elf, struct elf_data *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".rela.dyn");
	int r = section ? elf_file_section_data(elf, section, RELOCATIONS_MAX, ret) : -ENOENT;

	return !r || r == -ENOMEM ? r : -ENOENT;
}

static size_t nr_relocations(const struct elf_data *data)
{
	return data->size / sizeof(Elf64_Rela);
}

/* Where a pointer is, and to what; false: that relocation says something else. */
static bool relocation(const struct elf_data *data, size_t i, uint64_t *ret_slot, uint64_t *ret_to)
{
	Elf64_Rela rela;

	memcpy(&rela, data->data + i * sizeof(rela), sizeof(rela));
	*ret_slot = rela.r_offset;
	*ret_to = (uint64_t)rela.r_addend;
	return ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE;
}

/* --- the table of names ------------------------------------------------------------------------
 */

/* Around one entry: pointers to names, and whether the kind's place has a pointer. */
struct around {
	uint64_t names[2 * BUILTINS_MAX];
	bool no_kind[2 * BUILTINS_MAX];
};

static void read_around(const struct elf_data *relocations, uint64_t entry, struct around *ret)
{
	uint64_t first = entry - (uint64_t)BUILTINS_MAX * NAME_ENTRY, slot, to;

	for (size_t i = 0; i < nr_relocations(relocations); i++) {
		if (!relocation(relocations, i, &slot, &to) ||
		    slot - first >= 2ull * BUILTINS_MAX * NAME_ENTRY)
			continue;
		if ((slot - first) % NAME_ENTRY == 0)
			ret->names[(slot - first) / NAME_ENTRY] = to;
		else if ((slot - first) % NAME_ENTRY == 8)
			ret->no_kind[(slot - first) / NAME_ENTRY] = true;
	}
}

static bool is_name(const struct elf_file *elf, uint64_t addr)
{
	char name[NAME_SIZE];
	size_t n = 0;

	if (elf_file_read_vaddr(elf, addr, name, sizeof(name)))
		return false;
	while (n < sizeof(name) && (isalnum((unsigned char)name[n]) || name[n] == '_'))
		n++;
	return n && n < sizeof(name) && !name[n];
}

static bool is_entry(const struct elf_file *elf, const struct around *a, size_t i, uint64_t addr)
{
	uint32_t kind;

	return a->names[i] && !a->no_kind[i] &&
	       !elf_file_read_vaddr(elf, addr + 8, &kind, sizeof(kind)) && kind < KINDS &&
	       is_name(elf, a->names[i]);
}

/* From the entry of the interpreter's entry on, both ways. */
static int count_names(const struct elf_file *elf, const struct elf_data *relocations,
		       uint64_t entry, struct v8_blob *ret)
{
	_cleanup_free_ struct around *a = calloc(1, sizeof(*a));
	size_t low = BUILTINS_MAX, high = BUILTINS_MAX;

	if (!a)
		return -ENOMEM;
	read_around(relocations, entry, a);
	ret->names = entry;
	while (low && is_entry(elf, a, low - 1, ret->names - NAME_ENTRY)) {
		low--;
		ret->names -= NAME_ENTRY;
	}
	while (high < 2 * BUILTINS_MAX &&
	       is_entry(elf, a, high, entry + (high - BUILTINS_MAX) * NAME_ENTRY))
		high++;
	ret->nr = high - low;
	return high > BUILTINS_MAX && ret->nr <= BUILTINS_MAX ? 0 : -ENOENT;
}

int v8_unexported_names(const struct elf_file *elf, struct v8_blob *ret)
{
	static const char name[] = "\0InterpreterEntryTrampoline";
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_data relocations;
	struct only only = { 0 };
	uint64_t entry = 0, slot, to;
	size_t nr = 0;
	int r = look_through(elf, PF_R, name, sizeof(name), note_only, &only);

	if (r || only.nr != 1)
		return r ? r : -ENOENT;
	r = read_relocations(elf, &relocations);
	if (r)
		return r;
	bytes = relocations.data;
	for (size_t i = 0; i < nr_relocations(&relocations); i++)
		if (relocation(&relocations, i, &slot, &to) && to == only.addr + 1) {
			entry = slot;
			nr++;
		}
	return nr == 1 ? count_names(elf, &relocations, entry, ret) : -ENOENT;
}

/* --- the table of places -----------------------------------------------------------------------
 */

struct search {
	const struct elf_file *elf;
	struct v8_blob *blob;
	uint8_t *places; /* of all builtins */
	size_t nr;	 /* found */
};

static bool is_in(const struct elf_file *elf, uint32_t flags, uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & (PF_R | PF_W | PF_X)) == flags &&
		    addr >= s->vaddr && addr - s->vaddr < s->filesz &&
		    size <= s->filesz - (addr - s->vaddr))
			return true;
	}
	return false;
}

/* How many bytes of code all builtins have if the table is there; 0: it is not. */
static uint64_t read_places(struct search *s, uint64_t data)
{
	uint64_t next = 0;
	uint32_t entry[2];

	/* Most that is no table is told from one by its first entry. */
	if (!is_in(s->elf, PF_R, data, HASHES + s->blob->nr * PLACE_ENTRY) ||
	    elf_file_read_vaddr(s->elf, data + HASHES, entry, sizeof(entry)) || entry[0] ||
	    !entry[1] ||
	    elf_file_read_vaddr(s->elf, data + HASHES, s->places, s->blob->nr * PLACE_ENTRY))
		return 0;
	for (size_t i = 0; i < s->blob->nr; i++) {
		memcpy(entry, s->places + i * PLACE_ENTRY, sizeof(entry));
		if (entry[0] != next || !entry[1] || entry[1] > BUILTIN_SIZE_MAX)
			return 0;
		next = (next + entry[1] + ALIGNMENT) & ~(uint64_t)(ALIGNMENT - 1);
	}
	/* It has no more of them than there are names. */
	if (!elf_file_read_vaddr(s->elf, data + HASHES + s->blob->nr * PLACE_ENTRY, entry,
				 sizeof(entry)) &&
	    entry[0] == next && entry[1])
		return 0;
	return next;
}

/* Whether int3 is all that stands between builtins. */
static bool has_gaps(const struct search *s, uint64_t code)
{
	uint8_t gap[ALIGNMENT];
	uint32_t entry[2];

	for (size_t i = 0; i < s->blob->nr; i++) {
		uint64_t end, next;

		memcpy(entry, s->places + i * PLACE_ENTRY, sizeof(entry));
		end = (uint64_t)entry[0] + entry[1];
		next = (end + ALIGNMENT) & ~(uint64_t)(ALIGNMENT - 1);
		if (elf_file_read_vaddr(s->elf, code + end, gap, (size_t)(next - end)))
			return false;
		for (size_t k = 0; k < next - end; k++)
			if (gap[k] != INT3)
				return false;
	}
	return true;
}

static bool try_blob(struct search *s, uint64_t code, uint64_t data)
{
	uint64_t size;

	if (code % ALIGNMENT || !is_in(s->elf, PF_R | PF_X, code, 1))
		return false;
	size = read_places(s, data);
	if (!size || !is_in(s->elf, PF_R | PF_X, code, size) || !has_gaps(s, code))
		return false;
	s->nr += !s->nr || s->blob->code != code || s->blob->data != data;
	s->blob->code = code;
	s->blob->code_size = size;
	s->blob->data = data;
	s->blob->data_size = HASHES + s->blob->nr * PLACE_ENTRY;
	return true;
}

/* lea N(%rip), REG, behind its first byte: what its address is; 0: it is none. */
static uint64_t lea_target(uint64_t addr, const uint8_t *code)
{
	int32_t distance;

	if (code[0] != LEA || (code[1] & 0xc7) != 5)
		return 0;
	memcpy(&distance, code + 2, sizeof(distance));
	return addr + LEA_SIZE - 1 + (uint64_t)(int64_t)distance;
}

/* Whether this lea and the next one, take both addresses. */
static bool try_pair(void *arg, uint64_t addr, const uint8_t *bytes, size_t left)
{
	struct search *s = arg;
	uint64_t one, two;
	uint8_t first;

	if (left < 2 * LEA_SIZE || (bytes[LEA_SIZE - 1] & 0xfb) != REX_W)
		return false;
	one = lea_target(addr, bytes);
	two = one ? lea_target(addr + LEA_SIZE, bytes + LEA_SIZE) : 0;
	if (!two || elf_file_read_vaddr(s->elf, addr - 1, &first, 1) || (first & 0xfb) != REX_W)
		return false;
	if (!try_blob(s, two, one))
		try_blob(s, one, two);
	return s->nr > 1;
}

int v8_unexported_blob(const struct elf_dynamic *dynamic, struct v8_blob *ret)
{
	static const uint8_t lea = LEA;
	_cleanup_free_ uint8_t *places = malloc((size_t)BUILTINS_MAX * PLACE_ENTRY);
	struct v8_blob blob = { 0 };
	struct search search = { dynamic->elf, &blob, places, 0 };
	int r = -ENOENT;

	if (!places)
		return -ENOMEM;
	if (v8_is_unexported(dynamic))
		r = v8_unexported_names(dynamic->elf, &blob);
	if (!r)
		r = look_through(dynamic->elf, PF_R | PF_X, &lea, sizeof(lea), try_pair, &search);
	if (r || search.nr != 1)
		return r ? r : -ENOENT;
	*ret = blob;
	return 0;
}

/* --- the version -------------------------------------------------------------------------------
 */

/* What is known: its numbers that are not 0, as they stand in the data, and its text. */
static const struct known {
	uint16_t version;
	int32_t numbers[3];
	const char *text;
} versions[] = {
	{ 1500, { 15, 245, 2 }, "15.0.245.2" },
};

struct numbers {
	const struct elf_file *elf;
	const struct elf_data *relocations;
	const struct known *known;
	char text[NAME_SIZE];
	bool found;
};

/* Behind the numbers is the pointer to what an embedder calls it: -rusty, -node.34. */
static bool try_numbers(void *arg, uint64_t addr, const uint8_t *bytes, size_t left)
{
	struct numbers *n = arg;
	uint64_t at = addr + sizeof(n->known->numbers), slot, to;
	char embedder[NAME_SIZE / 2];
	size_t length = strlen(n->known->text);

	(void)bytes;
	(void)left;
	for (size_t i = 0; i < nr_relocations(n->relocations); i++) {
		if (!relocation(n->relocations, i, &slot, &to) || slot != at)
			continue;
		if (elf_file_read_vaddr(n->elf, to, embedder, sizeof(embedder)) ||
		    !memchr(embedder, '\0', sizeof(embedder)) || (*embedder && *embedder != '-'))
			return false;
		memcpy(n->text, n->known->text, length);
		memcpy(n->text + length, embedder, sizeof(embedder));
		n->found = true;
		return true;
	}
	return false;
}

static bool is_known(const struct elf_file *elf, const struct elf_data *relocations,
		     const struct known *known)
{
	struct numbers n = { .elf = elf, .relocations = relocations, .known = known };
	struct only only = { 0 };

	if (look_through(elf, PF_R | PF_W, known->numbers, sizeof(known->numbers), try_numbers,
			 &n) ||
	    !n.found)
		return false;
	/* The whole of it is a string, too (Version::version_string_). */
	return !look_through(elf, PF_R, n.text, strlen(n.text) + 1, note_only, &only) && only.nr;
}

uint16_t v8_unexported_version(const struct elf_file *elf)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_data relocations;

	if (read_relocations(elf, &relocations))
		return 0;
	bytes = relocations.data;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (is_known(elf, &relocations, &versions[i]))
			return versions[i].version;
	return 0;
}

/* --- bytecodes ---------------------------------------------------------------------------------
 */

/* The first ones: four prefixes, and what stands in place of others for breakpoints, which have up
 * to four operands of 1, 2 or 4 bytes each, and one of 2. */
static const uint8_t first_sizes[][11] = {
	{ 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6 },
	{ 1, 1, 1, 1, 1, 3, 5, 7, 9, 7, 9 },
	{ 1, 1, 1, 1, 1, 5, 9, 13, 17, 11, 15 },
};

struct sizes {
	const struct elf_file *elf;
	size_t nr_bytecodes, nr;
	uint64_t addr;
};

static bool try_sizes(void *arg, uint64_t addr, const uint8_t *bytes, size_t left)
{
	struct sizes *s = arg;
	uint8_t first[sizeof(*first_sizes)];

	(void)bytes;
	(void)left;
	for (size_t i = 1; i < sizeof(first_sizes) / sizeof(*first_sizes); i++)
		if (elf_file_read_vaddr(s->elf, addr + i * s->nr_bytecodes, first, sizeof(first)) ||
		    memcmp(first, first_sizes[i], sizeof(first)))
			return false;
	s->addr = addr;
	return ++s->nr > 1;
}

uint64_t v8_unexported_bytecode_sizes(const struct elf_file *elf, size_t nr)
{
	struct sizes s = { .elf = elf, .nr_bytecodes = nr };

	return !look_through(elf, PF_R, first_sizes[0], sizeof(first_sizes[0]), try_sizes, &s) &&
			       s.nr == 1
		       ? s.addr
		       : 0;
}
