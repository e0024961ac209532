// SPDX-License-Identifier: Apache-2.0
/*
 * Program headers and notes of a core file.
 *
 * The program headers are read here and not by elf_file, which has no use for 65,000 of them, and
 * takes none of a table that is cut off.
 */
#include "elf/elf_core.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

enum {
	HEADERS_CHUNK = 64,
	/* Bytes of struct elf_prstatus: where pr_pid and pr_reg are is the same on both machines.
	 */
	PRSTATUS_CURSIG = 12,
	PRSTATUS_PID = 32,
	PRSTATUS_REGS = 112,
	PRSTATUS_X86_SIZE = 336,
	PRSTATUS_A64_SIZE = 392,
	PRSTATUS_SIZE_MAX = PRSTATUS_A64_SIZE,
	X86_USER_REGS = 27, /* struct user_regs_struct; rip is the 17th */
	X86_USER_RIP = 16,
	X86_USER_FS_BASE = 21,
	A64_USER_REGS = 34, /* x0..x30, sp, pc, pstate */
	A64_USER_PC = 32,
	PRPSINFO_SIZE = 136,
	PRPSINFO_PID = 24,
	PRPSINFO_FNAME = 40, /* 16 bytes */
	PRPSINFO_ARGS = 56,  /* 80 bytes */
	SIGINFO_CODE = 8,
	SIGINFO_FIELDS = 16, /* si_addr; or si_pid, si_uid */
	AUXV_ENTRIES_MAX = 256,
};

/* DWARF numbers of the members of x86-64's struct user_regs_struct; 0xff: has none here. */
static const uint8_t x86_dwarf[X86_USER_REGS] = {
	X86_R15, X86_R14, X86_R13, X86_R12, X86_RBP, X86_RBX, X86_R11, X86_R10, 9,
	X86_R8,	 X86_RAX, X86_RCX, X86_RDX, X86_RSI, X86_RDI, 0xff,    0xff,	0xff,
	0xff,	 X86_RSP, 0xff,	   0xff,    0xff,    0xff,    0xff,    0xff,	0xff,
};

struct note {
	uint32_t type;
	bool is_core; /* owner "CORE"; else "LINUX" */
	uint64_t offset, size;
};

static uint16_t u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* --- notes ----------------------------------------------------------------------------------- */

static int read_prstatus(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	bool a64 = core->machine == EM_AARCH64;
	size_t size = a64 ? PRSTATUS_A64_SIZE : PRSTATUS_X86_SIZE;
	struct elf_core_thread thread = { 0 };
	uint8_t raw[PRSTATUS_SIZE_MAX];
	const uint8_t *regs = raw + PRSTATUS_REGS;
	int r;

	if (note->size != size || core->threads.nr >= ELF_CORE_THREADS_MAX) {
		core->nr_bad++;
		return 0;
	}
	r = elf_file_read(elf, note->offset, raw, size);
	if (r)
		return r;
	thread.tid = (int32_t)u32(raw + PRSTATUS_PID);
	thread.signal = u16(raw + PRSTATUS_CURSIG);
	if (a64) {
		memcpy(thread.regs, regs, A64_USER_PC * sizeof(uint64_t));
		thread.pc = u64(regs + A64_USER_PC * 8);
	} else {
		for (size_t i = 0; i < X86_USER_REGS; i++)
			if (x86_dwarf[i] != 0xff)
				thread.regs[x86_dwarf[i]] = u64(regs + i * 8);
		thread.pc = u64(regs + X86_USER_RIP * 8);
		thread.thread_pointer = u64(regs + X86_USER_FS_BASE * 8);
	}
	return vec_push(&core->threads, thread);
}

/* What is printable of a fixed array that may have no NUL. */
static void take_text(char *to, const uint8_t *from, size_t size)
{
	memcpy(to, from, size);
	to[size] = '\0';
	/* The kernel puts a blank in the place of each argument's NUL, the last one's too. */
	for (size_t len = strlen(to); len && to[len - 1] == ' '; len--)
		to[len - 1] = '\0';
}

static int read_prpsinfo(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	uint8_t raw[PRPSINFO_SIZE];
	int r;

	if (note->size != sizeof(raw)) {
		core->nr_bad++;
		return 0;
	}
	r = elf_file_read(elf, note->offset, raw, sizeof(raw));
	if (r)
		return r;
	core->pid = (int32_t)u32(raw + PRPSINFO_PID);
	take_text(core->comm, raw + PRPSINFO_FNAME, sizeof(core->comm) - 1);
	take_text(core->args, raw + PRPSINFO_ARGS, sizeof(core->args) - 1);
	return 0;
}

/* gcore writes one for each thread; the first is the first thread's. */
static int read_siginfo(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	struct elf_core_signal *s = &core->signal;
	uint8_t raw[SIGINFO_FIELDS + 8];
	int r;

	if (s->known || core->threads.nr > 1)
		return 0;
	if (note->size < sizeof(raw)) {
		core->nr_bad++;
		return 0;
	}
	r = elf_file_read(elf, note->offset, raw, sizeof(raw));
	if (r)
		return r;
	s->known = true;
	s->number = u32(raw);
	s->code = (int32_t)u32(raw + SIGINFO_CODE);
	s->address = u64(raw + SIGINFO_FIELDS);
	s->sender_pid = (int32_t)u32(raw + SIGINFO_FIELDS);
	s->sender_uid = u32(raw + SIGINFO_FIELDS + 4);
	return 0;
}

static int read_auxv(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	struct elf_core_auxv *a = &core->auxv;

	for (uint64_t i = 0; i < AUXV_ENTRIES_MAX && note->size / 16 > i; i++) {
		uint64_t entry[2];
		int r = elf_file_read(elf, note->offset + i * 16, entry, sizeof(entry));

		if (r)
			return r;
		switch (entry[0]) {
		case AT_NULL:
			return 0;
		case AT_PHDR:
			a->phdr = entry[1];
			break;
		case AT_PHNUM:
			a->phnum = entry[1];
			break;
		case AT_BASE:
			a->base = entry[1];
			break;
		case AT_ENTRY:
			a->entry = entry[1];
			break;
		case AT_EXECFN:
			a->execfn = entry[1];
			break;
		case AT_SYSINFO_EHDR:
			a->vdso = entry[1];
			break;
		}
	}
	return 0;
}

static int add_mapping(struct elf_core *core, const uint8_t *line, uint64_t page_size,
		       const char *path, size_t len)
{
	struct elf_core_mapping m = { .start = u64(line), .end = u64(line + 8) };
	int r;

	if (m.start >= m.end || __builtin_mul_overflow(u64(line + 16), page_size, &m.offset) ||
	    m.offset > UINT64_MAX - (m.end - m.start)) {
		core->nr_bad++;
		return 0;
	}
	r = strtab_intern(&core->paths, path, len, &m.path);
	return r ? r : vec_push(&core->mappings, m);
}

/* NT_FILE: count, page size, count * (start, end, offset in pages), then as many strings. */
static int parse_files(struct elf_core *core, const uint8_t *data, size_t size)
{
	uint64_t count, page_size;
	size_t at;

	if (size < 16) {
		core->nr_bad++;
		return 0;
	}
	count = u64(data);
	page_size = u64(data + 8);
	if (count > ELF_CORE_MAPPINGS_MAX || count > (size - 16) / 24) {
		core->nr_bad++;
		return 0;
	}
	at = 16 + count * 24;
	for (uint64_t i = 0; i < count; i++) {
		size_t len = strnlen((const char *)data + at, size - at);
		int r;

		if (len == size - at) { /* without its NUL */
			core->nr_bad++;
			return 0;
		}
		r = add_mapping(core, data + 16 + i * 24, page_size, (const char *)data + at, len);
		if (r)
			return r;
		at += len + 1;
	}
	return 0;
}

static int read_files(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (core->has_files || note->size > ELF_CORE_FILE_NOTE_MAX) {
		core->nr_bad++;
		return 0;
	}
	data = malloc(note->size + 1);
	if (!data)
		return -ENOMEM;
	r = elf_file_read(elf, note->offset, data, note->size);
	if (r)
		return r;
	core->has_files = true;
	return parse_files(core, data, note->size);
}

/* struct user_pac_mask: data, code. Of the thread whose registers came before. */
static int read_pac_mask(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	uint64_t masks[2];
	int r;

	if (note->size != sizeof(masks) || !core->threads.nr || core->machine != EM_AARCH64) {
		core->nr_bad++;
		return 0;
	}
	r = elf_file_read(elf, note->offset, masks, sizeof(masks));
	if (r)
		return r;
	/* An address has at least 36 bits (the smallest configuration), and 52 at most. */
	if (!(masks[1] & ((1ull << 36) - 1)))
		core->threads.items[core->threads.nr - 1].address_mask =
			~masks[1] & ((1ull << 52) - 1);
	return 0;
}

/* tpidr_el0, then (newer kernels) tpidr2_el0. */
static int read_arm_tls(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	uint64_t pointer;
	int r;

	if (note->size < sizeof(pointer) || !core->threads.nr || core->machine != EM_AARCH64) {
		core->nr_bad++;
		return 0;
	}
	r = elf_file_read(elf, note->offset, &pointer, sizeof(pointer));
	if (!r)
		core->threads.items[core->threads.nr - 1].thread_pointer = pointer;
	return r;
}

static int read_note(struct elf_core *core, const struct elf_file *elf, const struct note *note)
{
	if (!note->is_core && note->type == NT_ARM_TLS)
		return read_arm_tls(core, elf, note);
	if (!note->is_core)
		return note->type == NT_ARM_PAC_MASK ? read_pac_mask(core, elf, note) : 0;
	switch (note->type) {
	case NT_PRSTATUS:
		return read_prstatus(core, elf, note);
	case NT_PRPSINFO:
		return read_prpsinfo(core, elf, note);
	case NT_SIGINFO:
		return read_siginfo(core, elf, note);
	case NT_AUXV:
		return read_auxv(core, elf, note);
	case NT_FILE:
		return read_files(core, elf, note);
	}
	return 0;
}

/* 1: the note at *at, which moves behind it. 0: there is none any more. */
static int next_note(struct elf_core *core, const struct elf_file *elf, uint64_t *at, uint64_t end,
		     struct note *ret)
{
	struct {
		Elf64_Nhdr header;
		char owner[8];
	} head = { 0 };
	uint64_t left = end - *at, name_size, desc_size;
	int r;

	if (*at >= end || left < sizeof(head.header))
		return 0;
	r = elf_file_read(elf, *at, &head, left < sizeof(head) ? left : sizeof(head));
	if (r)
		return r;
	name_size = ((uint64_t)head.header.n_namesz + 3) & ~3ull;
	desc_size = head.header.n_descsz;
	left -= sizeof(head.header);
	if (name_size > left || desc_size > left - name_size) {
		core->nr_bad++;
		return 0;
	}
	ret->is_core = head.header.n_namesz == 5 && !memcmp(head.owner, "CORE", 5);
	ret->type = ret->is_core || (head.header.n_namesz == 6 && !memcmp(head.owner, "LINUX", 6))
			    ? head.header.n_type
			    : 0;
	ret->offset = *at + sizeof(head.header) + name_size;
	ret->size = desc_size;
	*at = ret->offset + ((desc_size + 3) & ~3ull);
	return 1;
}

static int read_notes(struct elf_core *core, const struct elf_file *elf, uint64_t offset,
		      uint64_t size, uint32_t *nr_notes)
{
	uint64_t at = offset, end;
	struct note note = { 0 };
	int r;

	if (offset >= elf->size) {
		core->nr_bad++;
		return 0;
	}
	end = offset + (size < elf->size - offset ? size : elf->size - offset);
	while ((r = next_note(core, elf, &at, end, &note)) > 0 &&
	       ++*nr_notes < ELF_CORE_NOTES_MAX) {
		r = read_note(core, elf, &note);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

/* --- segments -------------------------------------------------------------------------------- */

/*
 * With 65,535 segments or more their number is in section 0, which the kernel puts at the core's
 * end. If that is cut off: the notes, the first segment, stand right behind the program headers.
 */
static uint64_t count_headers(const struct elf_file *elf, const Elf64_Ehdr *header)
{
	Elf64_Phdr first;
	Elf64_Shdr zero;

	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	if (header->e_shoff && header->e_shentsize == sizeof(zero) &&
	    !elf_file_read(elf, header->e_shoff, &zero, sizeof(zero)) && zero.sh_info)
		return zero.sh_info;
	if (!elf_file_read(elf, header->e_phoff, &first, sizeof(first)) &&
	    first.p_type == PT_NOTE && first.p_offset > header->e_phoff)
		return (first.p_offset - header->e_phoff) / sizeof(first);
	return PN_XNUM;
}

static int add_segment(struct elf_core *core, const struct elf_file *elf, const Elf64_Phdr *p)
{
	struct elf_core_segment s = { .vaddr = p->p_vaddr,
				      .memsz = p->p_memsz,
				      .offset = p->p_offset,
				      .filesz = p->p_filesz,
				      .flags = p->p_flags };

	if (s.filesz > s.memsz)
		s.memsz = s.filesz;
	if (!s.memsz)
		return 0;
	if (s.memsz > UINT64_MAX - s.vaddr || s.filesz > UINT64_MAX - s.offset) {
		core->nr_bad++;
		return 0;
	}
	if (__builtin_add_overflow(core->bytes, s.filesz, &core->bytes))
		core->bytes = UINT64_MAX;
	if (s.offset + s.filesz > elf->size) {
		uint64_t there = s.offset < elf->size ? elf->size - s.offset : 0;

		if (__builtin_add_overflow(core->bytes_missing, s.filesz - there,
					   &core->bytes_missing))
			core->bytes_missing = UINT64_MAX;
		s.filesz = there;
	}
	return vec_push(&core->segments, s);
}

/* Notes are read as they are met: a core has one segment of them, the first. */
static int read_segments(struct elf_core *core, const struct elf_file *elf)
{
	Elf64_Phdr chunk[HEADERS_CHUNK];
	uint32_t nr_notes = 0;
	Elf64_Ehdr header;
	uint64_t nr;
	int r = elf_file_read(elf, 0, &header, sizeof(header));

	if (r)
		return r;
	if (header.e_phentsize != sizeof(*chunk) || header.e_phoff >= elf->size)
		return -ENODATA;
	nr = count_headers(elf, &header);
	if (nr > ELF_CORE_SEGMENTS_MAX) {
		core->nr_bad++;
		nr = ELF_CORE_SEGMENTS_MAX;
	}
	if (nr > (elf->size - header.e_phoff) / sizeof(*chunk))
		nr = (elf->size - header.e_phoff) / sizeof(*chunk);
	for (uint64_t i = 0; i < nr; i++) {
		const Elf64_Phdr *p = &chunk[i % HEADERS_CHUNK];

		if (p == chunk) {
			uint64_t n = nr - i < HEADERS_CHUNK ? nr - i : HEADERS_CHUNK;

			r = elf_file_read(elf, header.e_phoff + i * sizeof(*chunk), chunk,
					  n * sizeof(*chunk));
			if (r)
				return r;
		}
		if (p->p_type == PT_LOAD)
			r = add_segment(core, elf, p);
		else if (p->p_type == PT_NOTE)
			r = read_notes(core, elf, p->p_offset, p->p_filesz, &nr_notes);
		if (r)
			return r;
	}
	return 0;
}

static int segment_order(const void *a, const void *b)
{
	const struct elf_core_segment *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int mapping_order(const void *a, const void *b)
{
	const struct elf_core_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts both lists, and drops what overlaps the one before it. */
static void put_in_order(struct elf_core *core)
{
	struct elf_core_segment *s = core->segments.items;
	struct elf_core_mapping *m = core->mappings.items;
	size_t kept = 0;

	if (core->segments.nr)
		qsort(s, core->segments.nr, sizeof(*s), segment_order);
	for (size_t i = 0; i < core->segments.nr; i++)
		if (!kept || s[kept - 1].vaddr + s[kept - 1].memsz <= s[i].vaddr)
			s[kept++] = s[i];
	core->nr_bad += (uint32_t)(core->segments.nr - kept);
	core->segments.nr = kept;
	kept = 0;
	if (core->mappings.nr)
		qsort(m, core->mappings.nr, sizeof(*m), mapping_order);
	for (size_t i = 0; i < core->mappings.nr; i++)
		if (!kept || m[kept - 1].end <= m[i].start)
			m[kept++] = m[i];
	core->nr_bad += (uint32_t)(core->mappings.nr - kept);
	core->mappings.nr = kept;
}

int elf_core_read(const struct elf_file *elf, struct elf_core **ret)
{
	_cleanup_(elf_core_free_p) struct elf_core *core = NULL;
	int r;

	if (elf->type != ET_CORE)
		return -ENOEXEC;
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return -ENOTSUP;
	core = calloc(1, sizeof(*core));
	if (!core)
		return -ENOMEM;
	core->machine = elf->machine;
	r = strtab_init(&core->paths);
	if (r)
		return r;
	r = read_segments(core, elf);
	if (r)
		return r;
	if (!core->threads.nr)
		return -ENODATA;
	put_in_order(core);
	if (!core->signal.number)
		core->signal.number = core->threads.items[0].signal;
	if (!core->pid)
		core->pid = core->threads.items[0].tid;
	*ret = TAKE_PTR(core);
	return 0;
}

void elf_core_free(struct elf_core *core)
{
	if (!core)
		return;
	vec_free(&core->threads);
	vec_free(&core->mappings);
	vec_free(&core->segments);
	strtab_fini(&core->paths);
	free(core);
}

/* --- look-ups -------------------------------------------------------------------------------- */

const struct elf_core_segment *elf_core_segment_behind(const struct elf_core *core, uint64_t addr)
{
	size_t lo = sorted_before(core->segments.nr, i,
				  core->segments.items[i].vaddr + core->segments.items[i].memsz <=
					  addr);

	return lo < core->segments.nr ? &core->segments.items[lo] : NULL;
}

const struct elf_core_segment *elf_core_segment_at(const struct elf_core *core, uint64_t addr)
{
	const struct elf_core_segment *s = elf_core_segment_behind(core, addr);

	return s && s->vaddr <= addr ? s : NULL;
}

const struct elf_core_mapping *elf_core_mapping_at(const struct elf_core *core, uint64_t addr)
{
	size_t lo = 0, hi = core->mappings.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct elf_core_mapping *m = &core->mappings.items[mid];

		if (addr < m->start)
			hi = mid;
		else if (addr < m->end)
			return m;
		else
			lo = mid + 1;
	}
	return NULL;
}

int elf_core_memory(const struct elf_core *core, const struct elf_file *elf, uint64_t addr,
		    void *buf, size_t size)
{
	uint8_t *to = buf;

	while (size) {
		const struct elf_core_segment *s = elf_core_segment_at(core, addr);
		uint64_t skip, n;
		int r;

		if (!s || addr - s->vaddr >= s->filesz)
			return -EFAULT;
		skip = addr - s->vaddr;
		n = s->filesz - skip < size ? s->filesz - skip : size;
		r = elf_file_read(elf, s->offset + skip, to, n);
		if (r)
			return r == -ENODATA ? -EFAULT : r;
		to += n;
		addr += n;
		size -= n;
	}
	return 0;
}
