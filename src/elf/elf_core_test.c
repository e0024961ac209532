// SPDX-License-Identifier: Apache-2.0
/* Cores put together by hand, whole and broken. tests/core has real ones. */
#include "elf/elf_core.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

enum { MEMORY_AT = 0x2000, PAGE = 0x1000, SIZE_MAX_ = 1 << 16 };

/* An image that grows: header, room for program headers, notes; memory at MEMORY_AT. */
struct image {
	uint8_t data[SIZE_MAX_];
	size_t notes, notes_end, memory_end;
	unsigned int nr_segments;
};

static struct image image;

static void set_up(uint16_t machine)
{
	Elf64_Ehdr h = { .e_type = ET_CORE,
			 .e_machine = machine,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(h),
			 .e_ehsize = sizeof(h),
			 .e_phentsize = sizeof(Elf64_Phdr) };

	memset(&image, 0, sizeof(image));
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(image.data, &h, sizeof(h));
	image.notes = image.notes_end = 0x800;
	image.memory_end = MEMORY_AT;
	image.nr_segments = 1;
}

static void put_segment(unsigned int number, const Elf64_Phdr *p)
{
	memcpy(image.data + sizeof(Elf64_Ehdr) + number * sizeof(*p), p, sizeof(*p));
}

static void add_memory(uint64_t vaddr, uint64_t memsz, uint32_t flags, const void *bytes,
		       size_t filesz)
{
	Elf64_Phdr p = { .p_type = PT_LOAD,
			 .p_flags = flags,
			 .p_offset = image.memory_end,
			 .p_vaddr = vaddr,
			 .p_filesz = filesz,
			 .p_memsz = memsz };

	put_segment(image.nr_segments++, &p);
	memcpy(image.data + image.memory_end, bytes, filesz);
	image.memory_end += filesz;
}

static void add_note(const char *owner, uint32_t type, const void *desc, size_t size)
{
	Elf64_Nhdr h = { (uint32_t)strlen(owner) + 1, (uint32_t)size, type };

	memcpy(image.data + image.notes_end, &h, sizeof(h));
	memcpy(image.data + image.notes_end + sizeof(h), owner, h.n_namesz);
	memcpy(image.data + image.notes_end + sizeof(h) + 8, desc, size);
	image.notes_end += sizeof(h) + 8 + ((size + 3) & ~3ull);
}

static void add_thread(uint16_t machine, uint32_t tid, uint16_t signal, uint64_t first)
{
	uint8_t desc[392] = { 0 };
	size_t size = machine == EM_AARCH64 ? 392 : 336;

	memcpy(desc + 12, &signal, sizeof(signal));
	memcpy(desc + 32, &tid, sizeof(tid));
	/* Register number n in the order of the note is first + n. */
	for (uint64_t i = 0; i < (machine == EM_AARCH64 ? 34 : 27); i++) {
		uint64_t value = first + i;

		memcpy(desc + 112 + i * 8, &value, sizeof(value));
	}
	add_note("CORE", NT_PRSTATUS, desc, size);
}

static void add_files(const uint64_t *lines, uint64_t nr, uint64_t page_size, const char *names,
		      size_t names_size)
{
	uint8_t desc[1024];

	memcpy(desc, &nr, 8);
	memcpy(desc + 8, &page_size, 8);
	memcpy(desc + 16, lines, nr * 24);
	memcpy(desc + 16 + nr * 24, names, names_size);
	add_note("CORE", NT_FILE, desc, 16 + nr * 24 + names_size);
}

/* What the kernel would have written, or the first `size` bytes of it. */
static int read_core(size_t size, struct elf_file **ret_elf, struct elf_core **ret)
{
	Elf64_Phdr notes = { .p_type = PT_NOTE,
			     .p_offset = image.notes,
			     .p_filesz = image.notes_end - image.notes };
	uint16_t nr = (uint16_t)image.nr_segments;
	int r;

	put_segment(0, &notes);
	memcpy(image.data + offsetof(Elf64_Ehdr, e_phnum), &nr, sizeof(nr));
	r = elf_file_open_memory(image.data, size < image.memory_end ? size : image.memory_end,
				 ret_elf);
	return r ? r : elf_core_read(*ret_elf, ret);
}

static struct elf_file *elf;
static struct elf_core *core;

static void tear_down(void)
{
	elf_core_free(core);
	elf_file_free(elf);
	core = NULL;
	elf = NULL;
}

TEST(registers_of_x86_64_by_their_dwarf_numbers)
{
	/* In the order of struct user_regs_struct: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx
	 * rdx rsi rdi orig_rax rip cs eflags rsp. */
	static const int order[] = { 15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5 };

	set_up(EM_X86_64);
	add_thread(EM_X86_64, 77, SIGSEGV, 1000);
	add_thread(EM_X86_64, 78, 0, 2000);
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT_EQ(core->threads.nr, 2);
	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		ASSERT_EQ(core->threads.items[0].regs[order[i]], 1000 + i);
	ASSERT_EQ(core->threads.items[0].regs[X86_RSP], 1019);
	ASSERT_EQ(core->threads.items[0].pc, 1016);
	ASSERT_EQ(core->threads.items[1].pc, 2016);
	ASSERT_EQ(core->threads.items[1].tid, 78);
	ASSERT_EQ(core->signal.number, SIGSEGV);
	ASSERT(!core->signal.known);
	ASSERT_EQ(core->pid, 77);
	tear_down();
}

TEST(registers_of_aarch64_and_its_pac_mask)
{
	const uint64_t mask[2] = { 0x7f000000000000, 0x7f000000000000 };
	const uint64_t wild[2] = { ~0ull, ~0ull };

	set_up(EM_AARCH64);
	add_thread(EM_AARCH64, 5, SIGBUS, 100);
	add_note("LINUX", NT_ARM_PAC_MASK, mask, sizeof(mask));
	add_thread(EM_AARCH64, 6, 0, 200);
	add_note("LINUX", NT_ARM_PAC_MASK, wild, sizeof(wild));
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	for (int i = 0; i < 32; i++)
		ASSERT_EQ(core->threads.items[0].regs[i], 100 + i);
	ASSERT_EQ(core->threads.items[0].pc, 132);
	ASSERT_EQ(core->threads.items[0].address_mask, (1ull << 48) - 1);
	/* One that leaves no address is none. */
	ASSERT_EQ(core->threads.items[1].address_mask, 0);
	tear_down();
}

TEST(what_killed_it_and_who_it_was)
{
	uint8_t info[128] = { 0 }, ps[136] = { 0 };
	const uint64_t auxv[] = { AT_PHDR,	   0x400040,   AT_PHNUM, 9, AT_ENTRY, 0x401000,
				  AT_SYSINFO_EHDR, 0x7fff0000, AT_NULL,	 0, AT_PHDR,  1 };
	const uint32_t signo = SIGSEGV, code = SEGV_MAPERR, pid = 4711;
	const uint64_t addr = 0xdeadbeef;

	memcpy(info, &signo, 4);
	memcpy(info + 8, &code, 4);
	memcpy(info + 16, &addr, 8);
	memcpy(ps + 24, &pid, 4);
	memcpy(ps + 40, "a-name-of-16-chr", 16);
	memcpy(ps + 56, "./prog one two ", 15);
	set_up(EM_X86_64);
	add_thread(EM_X86_64, 4712, SIGSEGV, 0);
	add_note("CORE", NT_PRPSINFO, ps, sizeof(ps));
	add_note("CORE", NT_SIGINFO, info, sizeof(info));
	add_note("CORE", NT_AUXV, auxv, sizeof(auxv));
	/* A second thread's, as gcore writes them, is not what killed the process. */
	add_thread(EM_X86_64, 4713, 0, 0);
	info[16] = 0;
	add_note("CORE", NT_SIGINFO, info, sizeof(info));
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT_EQ(core->pid, 4711);
	ASSERT_STR(core->comm, "a-name-of-16-chr");
	ASSERT_STR(core->args, "./prog one two");
	ASSERT(core->signal.known);
	ASSERT_EQ(core->signal.number, SIGSEGV);
	ASSERT_EQ(core->signal.code, SEGV_MAPERR);
	ASSERT_EQ(core->signal.address, 0xdeadbeef);
	ASSERT_EQ(core->auxv.phdr, 0x400040);
	ASSERT_EQ(core->auxv.phnum, 9);
	ASSERT_EQ(core->auxv.vdso, 0x7fff0000);
	tear_down();
}

TEST(files_are_sorted_and_what_makes_no_sense_is_left_out)
{
	static const uint64_t lines[] = {
		0x5000, 0x6000, 1, /* /b, one page in */
		0x1000, 0x3000, 0, /* /a */
		0x9000, 0x9000, 0, /* empty */
		0x2000, 0x4000, 0, /* overlaps /a */
	};

	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, 0, 0);
	add_files(lines, 4, PAGE, "/b\0/a\0/empty\0/overlap", 22);
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT(core->has_files);
	ASSERT_EQ(core->mappings.nr, 2);
	ASSERT_EQ(core->nr_bad, 2);
	ASSERT_STR(strtab_get(&core->paths, elf_core_mapping_at(core, 0x2fff)->path), "/a");
	ASSERT_STR(strtab_get(&core->paths, elf_core_mapping_at(core, 0x5000)->path), "/b");
	ASSERT_EQ(elf_core_mapping_at(core, 0x5000)->offset, PAGE);
	ASSERT_PTR_NULL(elf_core_mapping_at(core, 0xfff));
	ASSERT_PTR_NULL(elf_core_mapping_at(core, 0x3000));
	ASSERT_PTR_NULL(elf_core_mapping_at(core, 0x6000));
	tear_down();
}

TEST(file_names_that_end_early_cost_the_rest)
{
	static const uint64_t lines[] = { 0x1000, 0x2000, 0, 0x2000, 0x3000, 0 };
	static const uint64_t many[] = { 0x1000, 0x2000, 0 };

	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, 0, 0);
	add_files(lines, 2, PAGE, "/a\0/b", 5);
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT_EQ(core->mappings.nr, 1);
	ASSERT_EQ(core->nr_bad, 1);
	tear_down();

	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, 0, 0);
	add_files(many, 1, ~0ull / 2, "/a", 3);
	image.data[image.notes_end - 4 - 24 - 16] = 200; /* more lines than there are */
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT_EQ(core->mappings.nr, 0);
	ASSERT_EQ(core->nr_bad, 1);
	tear_down();
}

TEST(memory_across_segments_and_not_beyond)
{
	uint8_t first[PAGE], second[PAGE], got[PAGE];

	memset(first, 1, sizeof(first));
	memset(second, 2, sizeof(second));
	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, 0, 0);
	add_memory(0x11000, PAGE, PF_R, second, PAGE);
	add_memory(0x10000, PAGE, PF_R | PF_X, first, PAGE);
	add_memory(0x12000, 2 * PAGE, PF_R, first, 0x800); /* the rest is not in the core */
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT_OK(elf_core_memory(core, elf, 0x10ff0, got, 32));
	ASSERT_EQ(got[15], 1);
	ASSERT_EQ(got[16], 2);
	ASSERT_OK(elf_core_memory(core, elf, 0x11ff8, got, 16));
	ASSERT_OK(elf_core_memory(core, elf, 0x127f8, got, 8));
	ASSERT_ERR(elf_core_memory(core, elf, 0x127f8, got, 9), EFAULT);
	ASSERT_ERR(elf_core_memory(core, elf, 0xfff8, got, 16), EFAULT);
	ASSERT_ERR(elf_core_memory(core, elf, ~0ull - 3, got, 16), EFAULT);
	ASSERT_EQ(elf_core_segment_at(core, 0x10000)->flags, PF_R | PF_X);
	ASSERT_PTR_NULL(elf_core_segment_at(core, 0x14000));
	ASSERT_PTR_NULL(elf_core_segment_behind(core, 0x14000));
	ASSERT_EQ(elf_core_segment_behind(core, 0)->vaddr, 0x10000);
	ASSERT_EQ(elf_core_segment_behind(core, 0x11000)->vaddr, 0x11000);
	ASSERT_EQ(core->bytes_missing, 0);
	tear_down();
}

TEST(a_core_that_is_cut_off_has_what_comes_before_the_cut)
{
	uint8_t page[PAGE] = { 7 }, got;
	size_t size;

	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, SIGABRT, 0);
	add_thread(EM_X86_64, 2, 0, 0);
	add_memory(0x10000, PAGE, PF_R, page, PAGE);
	add_memory(0x20000, PAGE, PF_R, page, PAGE);
	ASSERT_OK(read_core(MEMORY_AT + PAGE + 1, &elf, &core));
	ASSERT_EQ(core->bytes, 2 * PAGE);
	ASSERT_EQ(core->bytes_missing, PAGE - 1);
	ASSERT_OK(elf_core_memory(core, elf, 0x20000, &got, 1));
	ASSERT_ERR(elf_core_memory(core, elf, 0x20001, &got, 1), EFAULT);
	tear_down();

	/* Within the second thread's registers: the first thread is had. */
	ASSERT_OK(read_core(image.notes_end - 10, &elf, &core));
	ASSERT_EQ(core->threads.nr, 1);
	ASSERT_EQ(core->bytes_missing, 2 * PAGE);
	tear_down();

	/* Before any thread, down to nothing at all. */
	for (size = image.notes + 12 + 8 + 335; size--;) {
		ASSERT(read_core(size, &elf, &core) < 0);
		tear_down();
	}
}

TEST(more_segments_than_the_header_can_say)
{
	uint8_t page[16] = { 7 };
	Elf64_Shdr zero = { .sh_info = 3 };
	Elf64_Phdr notes = { .p_type = PT_NOTE };
	uint64_t shoff = MEMORY_AT + 0x800;
	uint16_t nr = PN_XNUM, shentsize = sizeof(zero);

	set_up(EM_X86_64);
	/* As the kernel lays it out: the notes right behind the program headers. */
	image.notes = image.notes_end = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
	add_thread(EM_X86_64, 1, 0, 0);
	add_memory(0x10000, PAGE, PF_R, page, sizeof(page));
	add_memory(0x20000, PAGE, PF_R, page, sizeof(page));
	notes.p_offset = image.notes;
	notes.p_filesz = image.notes_end - image.notes;
	put_segment(0, &notes);
	memcpy(image.data + shoff, &zero, sizeof(zero));
	memcpy(image.data + offsetof(Elf64_Ehdr, e_phnum), &nr, 2);
	memcpy(image.data + offsetof(Elf64_Ehdr, e_shentsize), &shentsize, 2);
	memcpy(image.data + offsetof(Elf64_Ehdr, e_shoff), &shoff, 8);
	ASSERT_OK(elf_file_open_memory(image.data, shoff + sizeof(zero), &elf));
	ASSERT_OK(elf_core_read(elf, &core));
	ASSERT_EQ(core->segments.nr, 2);
	tear_down();
	/* Cut off before section 0. */
	ASSERT_OK(elf_file_open_memory(image.data, shoff, &elf));
	ASSERT_OK(elf_core_read(elf, &core));
	ASSERT_EQ(core->segments.nr, 2);
	tear_down();
}

TEST(what_is_no_core)
{
	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, 0, 0);
	image.data[offsetof(Elf64_Ehdr, e_type)] = ET_DYN;
	ASSERT_ERR(read_core(SIZE_MAX, &elf, &core), ENOEXEC);
	tear_down();
	set_up(EM_RISCV);
	ASSERT_ERR(read_core(SIZE_MAX, &elf, &core), ENOTSUP);
	tear_down();
	set_up(EM_X86_64);
	ASSERT_ERR(read_core(SIZE_MAX, &elf, &core), ENODATA);
	tear_down();
}

TEST(notes_of_a_wrong_size_are_counted)
{
	uint8_t junk[64] = { 0 };

	set_up(EM_X86_64);
	add_thread(EM_X86_64, 1, 0, 0);
	add_note("CORE", NT_PRSTATUS, junk, sizeof(junk));
	add_note("CORE", NT_PRPSINFO, junk, sizeof(junk));
	add_note("CORE", NT_SIGINFO, junk, 4);
	add_note("CORE", NT_FILE, junk, 4);
	add_note("OTHER", NT_PRSTATUS, junk, sizeof(junk));
	add_note("LINUX", NT_PRSTATUS, junk, sizeof(junk));
	ASSERT_OK(read_core(SIZE_MAX, &elf, &core));
	ASSERT_EQ(core->threads.nr, 1);
	ASSERT_EQ(core->nr_bad, 4);
	tear_down();
}
