// SPDX-License-Identifier: Apache-2.0
/*
 * Code that a program has made and registered with GDB: without frame pointers, its call frame
 * information and its names in the images of its list. It returns by a jump, so that following it
 * tells nothing. The second argument says what else is wrong with the list.
 */
#include "workload.h"

#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

struct jit_entry {
	struct jit_entry *next, *prev;
	const void *image;
	uint64_t size;
};

struct jit_descriptor {
	uint32_t version, action;
	struct jit_entry *relevant, *first;
};

enum { NOTHING, REGISTER };

/* Found in .symtab: the program does not export it. */
struct jit_descriptor __jit_debug_descriptor = { .version = 1 };

/* What a debugger has a breakpoint at. */
KNOWN void __jit_debug_register_code(void);
KNOWN void __jit_debug_register_code(void)
{
	sink++;
}

/* clang-format off */
static const uint8_t outer_code[] = {
	0x53,					  /* push %rbx */
	0x55,					  /* push %rbp */
	0x48, 0x81, 0xec, 0x10, 0x02, 0x00, 0x00, /* sub $0x210, %rsp */
	0x31, 0xed,				  /* xor %ebp, %ebp */
	0xe8, 0x30, 0x00, 0x00, 0x00,		  /* call inner, at 64 */
	0x48, 0x81, 0xc4, 0x10, 0x02, 0x00, 0x00, /* add $0x210, %rsp */
	0x5d,					  /* pop %rbp */
	0x5b,					  /* pop %rbx */
	0x58,					  /* pop %rax */
	0xff, 0xe0,				  /* jmp *%rax */
};
static const uint8_t outer_rows[] = {
	0x41, 0x0e, 16, 0x83, 2,     /* DW_CFA_advance_loc 1, def_cfa_offset, offset rbx */
	0x41, 0x0e, 24, 0x86, 3,     /* likewise rbp */
	0x47, 0x0e, 0xa8, 0x04,	     /* 24 + 0x210 */
	0x4e, 0x0e, 24,
	0x41, 0x0e, 16, 0xc6,	     /* restore rbp */
	0x41, 0x0e, 8, 0xc3,	     /* restore rbx */
	0x41, 0x0e, 0, 0x09, 16, 0,  /* the return address is in rax */
};

enum { INNER = 64 };

static const uint8_t inner_code[] = {
	0x48, 0xc7, 0xc1, 0x80, 0x84, 0x1e, 0x00, /* mov $2000000, %rcx */
	0x48, 0xff, 0xc9,			  /* dec %rcx */
	0x75, 0xfb,				  /* jne */
	0x58,					  /* pop %rax */
	0xff, 0xe0,				  /* jmp *%rax: its row is wrong here */
};
/* clang-format on */

static const uint8_t cie[] = {
	16,   0, 0, 0,	  0xff, 0xff, 0xff,
	0xff, 1, 0, 1,	  0x78, 16,	 /* version ... return address */
	0x0c, 7, 8, 0x90, 1,	0,    0, /* CFA = rsp + 8, return address at CFA - 8 */
};

/* As QEMU's: one section of code, its CFI and a symbol. */
struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[6];
	uint8_t cie[sizeof(cie)];
	struct {
		uint32_t len, cie;
		uint64_t start, size;
		uint8_t rows[48];
	} __attribute__((packed)) fde;
	Elf64_Sym symbols[2];
	char names[128];
};

static uint32_t add_name(struct image *m, size_t *at, const char *name)
{
	uint32_t begin = (uint32_t)*at;

	memcpy(m->names + begin, name, strlen(name));
	*at += strlen(name) + 1;
	return begin;
}

static struct image *make_image(const char *name, const void *code, size_t size,
				const uint8_t *rows, size_t nr_rows)
{
	struct image *m = calloc(1, sizeof(*m));
	size_t at = 1;

	m->header = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT },
				  .e_type = ET_EXEC,
				  .e_machine = EM_X86_64,
				  .e_version = EV_CURRENT,
				  .e_shoff = offsetof(struct image, sections),
				  .e_ehsize = sizeof(Elf64_Ehdr),
				  .e_shentsize = sizeof(Elf64_Shdr),
				  .e_shnum = 5,
				  .e_shstrndx = 4 };
	m->sections[1] = (Elf64_Shdr){ .sh_name = add_name(m, &at, ".text"),
				       .sh_type = SHT_NOBITS,
				       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				       .sh_addr = (uint64_t)code,
				       .sh_size = size };
	m->sections[2] = (Elf64_Shdr){ .sh_name = add_name(m, &at, ".debug_frame"),
				       .sh_type = SHT_PROGBITS,
				       .sh_offset = offsetof(struct image, cie),
				       .sh_size = sizeof(m->cie) + sizeof(m->fde) };
	m->sections[3] = (Elf64_Shdr){ .sh_name = add_name(m, &at, ".symtab"),
				       .sh_type = SHT_SYMTAB,
				       .sh_offset = offsetof(struct image, symbols),
				       .sh_size = sizeof(m->symbols),
				       .sh_link = 4,
				       .sh_info = 1,
				       .sh_entsize = sizeof(Elf64_Sym) };
	m->symbols[1] = (Elf64_Sym){ .st_name = add_name(m, &at, name),
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = 1,
				     .st_value = (uint64_t)code,
				     .st_size = size };
	m->sections[4] = (Elf64_Shdr){ .sh_name = add_name(m, &at, ".strtab"),
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct image, names),
				       .sh_size = sizeof(m->names) };
	memcpy(m->cie, cie, sizeof(cie));
	m->fde.len = sizeof(m->fde) - sizeof(m->fde.len);
	m->fde.start = (uint64_t)code;
	m->fde.size = size;
	memcpy(m->fde.rows, rows, nr_rows);
	return m;
}

static struct jit_entry *add_entry(const void *image, uint64_t size)
{
	struct jit_entry *e = calloc(1, sizeof(*e));
	struct jit_descriptor *d = &__jit_debug_descriptor;

	*e = (struct jit_entry){ .next = d->first, .image = image, .size = size };
	if (d->first)
		d->first->prev = e;
	d->first = d->relevant = e;
	d->action = REGISTER;
	__jit_debug_register_code();
	d->action = NOTHING;
	return e;
}

/* Takes the first entry out and puts it back, over and over. */
static void *change(void *arg)
{
	struct jit_descriptor *d = &__jit_debug_descriptor;
	struct jit_entry *first = d->first;

	for (;;) {
		__atomic_store_n(&d->first, first->next, __ATOMIC_SEQ_CST);
		__atomic_store_n(&d->relevant, first, __ATOMIC_SEQ_CST);
		usleep(300);
		__atomic_store_n(&d->first, first, __ATOMIC_SEQ_CST);
		usleep(300);
	}
	return arg;
}

static void spoil(const char *how, struct jit_entry *last)
{
	pthread_t thread;

	if (!strcmp(how, "loop"))
		last->next = __jit_debug_descriptor.first;
	else if (!strcmp(how, "huge"))
		add_entry(&__jit_debug_descriptor, UINT64_C(1) << 40);
	else if (!strcmp(how, "unreadable"))
		add_entry((void *)0x1000, 4096);
	else if (!strcmp(how, "nowhere"))
		last->next = (void *)0x1000;
	else if (!strcmp(how, "changes"))
		pthread_create(&thread, NULL, change, NULL);
}

static void (*jit_outer)(void);

KNOWN int run_jit(void)
{
	jit_outer();
	sink++;
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct jit_entry *last;

	work_init(argc, argv);
	if (code == MAP_FAILED)
		return 1;
	memcpy(code, outer_code, sizeof(outer_code));
	memcpy(code + INNER, inner_code, sizeof(inner_code));
	jit_outer = (void (*)(void))code;
	last = add_entry(
		make_image("jit_outer", code, sizeof(outer_code), outer_rows, sizeof(outer_rows)),
		sizeof(struct image));
	add_entry(make_image("jit_inner", code + INNER, sizeof(inner_code), NULL, 0),
		  sizeof(struct image));
	if (argc > 2)
		spoil(argv[2], last);
	while (work_left())
		run_jit();
	return 0;
}
