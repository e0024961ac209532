// SPDX-License-Identifier: Apache-2.0
#include "elf/usdt_notes.h"

#include "elf/elf_note.h"
#include "util/vec.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NT_STAPSDT = 3 };

static const char owner[] = "stapsdt";

/* Where an address is in the file; false: nowhere. */
static bool find_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || vaddr < s->vaddr || vaddr - s->vaddr >= s->memsz)
			continue;
		*ret = vaddr - s->vaddr + s->offset;
		return true;
	}
	return false;
}

/* The text at *at, behind which *at is then; NULL: it has no end. */
static const char *take_text(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return (const char *)text;
}

/* `base`: where .stapsdt.base is now; the note says where it was before a prelink. */
static bool read_note(const struct elf_file *elf, const struct elf_note *note, uint64_t base,
		      struct usdt_note *ret)
{
	const uint8_t *at = note->desc, *end = note->desc + note->size;
	uint64_t words[3], moved;

	if (note->type != NT_STAPSDT || note->owner_size != sizeof(owner) ||
	    memcmp(note->owner, owner, sizeof(owner)) || note->size < sizeof(words))
		return false;
	memcpy(words, at, sizeof(words));
	at += sizeof(words);
	ret->provider = take_text(&at, end);
	ret->name = ret->provider ? take_text(&at, end) : NULL;
	ret->arguments = ret->name ? take_text(&at, end) : NULL;
	if (!ret->arguments)
		return false;
	moved = base && words[1] ? base - words[1] : 0;
	ret->semaphore_offset = 0;
	return find_offset(elf, words[0] + moved, &ret->offset) &&
	       (!words[2] || find_offset(elf, words[2] + moved, &ret->semaphore_offset));
}

int usdt_notes_read(const struct elf_file *elf, struct usdt_notes *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".note.stapsdt");
	const struct elf_section *base = elf_file_section(elf, ".stapsdt.base");
	VEC(struct usdt_note) found = { 0 };
	struct elf_notes notes = { .align = 4 };
	struct usdt_note one;
	struct elf_note note;
	struct elf_data data;
	int r;

	*ret = (struct usdt_notes){ .nr = 0 };
	if (!section)
		return 0;
	r = elf_file_section_data(elf, section, USDT_SECTION_MAX, &data);
	if (r)
		return r;
	notes.data = data.data;
	notes.size = data.size;
	while (!r && found.nr < USDT_NOTES_MAX && elf_notes_next(&notes, &note))
		if (read_note(elf, &note, base ? base->addr : 0, &one))
			r = vec_push(&found, one);
	if (r) {
		vec_free(&found);
		free(data.data);
		return r;
	}
	*ret = (struct usdt_notes){ found.items, found.nr, data.data };
	return 0;
}

void usdt_notes_fini(struct usdt_notes *notes)
{
	free(notes->items);
	free(notes->data);
	*notes = (struct usdt_notes){ .nr = 0 };
}

/* --- arguments -------------------------------------------------------------------------------- */

enum { A64_WORD_SP = 31 };

/* The names of one register, from 64 bits down; words as in arch/x86/include/asm/ptrace.h. */
static const struct {
	const char *names[4];
	uint32_t word;
} x86_registers[] = {
	{ { "rax", "eax", "ax", "al" }, 10 },	  { { "rbx", "ebx", "bx", "bl" }, 5 },
	{ { "rcx", "ecx", "cx", "cl" }, 11 },	  { { "rdx", "edx", "dx", "dl" }, 12 },
	{ { "rsi", "esi", "si", "sil" }, 13 },	  { { "rdi", "edi", "di", "dil" }, 14 },
	{ { "rbp", "ebp", "bp", "bpl" }, 4 },	  { { "rsp", "esp", "sp", "spl" }, 19 },
	{ { "r8", "r8d", "r8w", "r8b" }, 9 },	  { { "r9", "r9d", "r9w", "r9b" }, 8 },
	{ { "r10", "r10d", "r10w", "r10b" }, 7 }, { { "r11", "r11d", "r11w", "r11b" }, 6 },
	{ { "r12", "r12d", "r12w", "r12b" }, 3 }, { { "r13", "r13d", "r13w", "r13b" }, 2 },
	{ { "r14", "r14d", "r14w", "r14b" }, 1 }, { { "r15", "r15d", "r15w", "r15b" }, 0 },
};

static bool find_x86(const char *name, size_t len, uint32_t *ret)
{
	for (size_t i = 0; i < sizeof(x86_registers) / sizeof(x86_registers[0]); i++)
		for (size_t k = 0; k < 4; k++) {
			const char *known = x86_registers[i].names[k];

			if (strlen(known) != len || memcmp(known, name, len))
				continue;
			*ret = x86_registers[i].word;
			return true;
		}
	return false;
}

/* "x12", "w3", "sp" */
static bool find_arm64(const char *name, size_t len, uint32_t *ret)
{
	char digits[4] = "", *end;
	unsigned long n;

	if (len == 2 && !memcmp(name, "sp", 2)) {
		*ret = A64_WORD_SP;
		return true;
	}
	if (len < 2 || len > 3 || (*name != 'x' && *name != 'w') || name[1] < '0' || name[1] > '9')
		return false;
	memcpy(digits, name + 1, len - 1);
	n = strtoul(digits, &end, 10);
	*ret = (uint32_t)n;
	return !*end && n < A64_WORD_SP;
}

/* "%rdi", "-8(%rbp)": all of `len` bytes. */
static int parse_x86(const char *text, size_t len, struct usdt_argument *ret)
{
	char *end;

	if (len && *text == '%')
		return find_x86(text + 1, len - 1, &ret->reg) ? 0 : -ENOTSUP;
	ret->offset = strtoll(text, &end, 10);
	if ((size_t)(end - text) + 4 > len || end[0] != '(' || end[1] != '%' ||
	    text[len - 1] != ')')
		return -ENOTSUP;
	ret->indirect = true;
	end += 2;
	return find_x86(end, (size_t)(text + len - 1 - end), &ret->reg) ? 0 : -ENOTSUP;
}

/* "x0", "[sp, 16]", "[x1]" */
static int parse_arm64(const char *text, size_t len, struct usdt_argument *ret)
{
	const char *comma, *name_end;
	char *end;

	if (len && *text != '[')
		return find_arm64(text, len, &ret->reg) ? 0 : -ENOTSUP;
	if (len < 4 || text[len - 1] != ']')
		return -ENOTSUP;
	comma = memchr(text, ',', len);
	name_end = comma ? comma : text + len - 1;
	ret->indirect = true;
	if (comma) {
		ret->offset = strtoll(comma + 1, &end, 10);
		if (end == comma + 1 || end != text + len - 1)
			return -ENOTSUP;
	}
	return find_arm64(text + 1, (size_t)(name_end - text - 1), &ret->reg) ? 0 : -ENOTSUP;
}

/* Where the argument at `text` ends: a space, but not one within "[sp, 16]". */
static size_t argument_len(const char *text)
{
	size_t len = strcspn(text, " [");

	if (text[len] == '[')
		len += strcspn(text + len, "]");
	return len + (text[len] == ']');
}

int usdt_argument_find(const char *arguments, unsigned number, uint16_t machine,
		       struct usdt_argument *ret)
{
	struct usdt_argument found = { .size = 0 };
	const char *at = arguments + strspn(arguments, " ");
	size_t len;
	char *end;
	int r;

	if (!number)
		return -EINVAL;
	for (; *at && number > 1; number--) {
		len = argument_len(at);
		at += len;
		at += strspn(at, " ");
	}
	if (!*at)
		return -ENOENT;
	len = argument_len(at);
	found.size = (int)strtol(at, &end, 10);
	if (end == at || *end != '@')
		return -EINVAL;
	end++;
	len -= (size_t)(end - at);
	if (machine == EM_X86_64)
		r = parse_x86(end, len, &found);
	else if (machine == EM_AARCH64)
		r = parse_arm64(end, len, &found);
	else
		r = -ENOTSUP;
	if (!r)
		*ret = found;
	return r;
}
