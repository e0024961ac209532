/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file (ET_CORE of x86-64 or aarch64, as the kernel, gdb's gcore or qemu write it): threads
 * with their registers, what killed them, which files were mapped where, and the memory.
 *
 * Cores are big, cut off when a disk is full, and come from anywhere: notes are read one by one,
 * memory when it is asked for, and whatever is missing costs itself only. Layouts: struct
 * elf_prstatus and elf_prpsinfo of <sys/procfs.h> for each machine, siginfo_t, and for NT_FILE the
 * comment in the kernel's fs/binfmt_elf.c (fill_files_note).
 */
#pragma once

#include "abi/unwind.h"
#include "elf/elf_file.h"
#include "util/strtab.h"
#include "util/vec.h"

enum {
	/* The kernel's own limit is vm.max_map_count, 65,530 unless somebody raised it. */
	ELF_CORE_SEGMENTS_MAX = 1 << 18,
	ELF_CORE_MAPPINGS_MAX = 1 << 18,
	ELF_CORE_THREADS_MAX = 1 << 16,
	/* Notes looked at; a thread has about six. */
	ELF_CORE_NOTES_MAX = 1 << 20,
	/* Bytes of NT_FILE; the kernel stops at 4 MB. */
	ELF_CORE_FILE_NOTE_MAX = 16 << 20,
};

struct elf_core_thread {
	int32_t tid;
	uint32_t signal; /* that it was to get; 0: none */
	uint64_t pc;
	__u64 regs[UNWIND_REGS_MAX]; /* by DWARF number */
	uint64_t thread_pointer;     /* of its thread-local storage; 0: not known */
	uint64_t address_mask;	     /* of code addresses: what is no PAC; 0: not known */
};

/* A range of memory; the core has the first `filesz` bytes of it, if it is not cut off. */
struct elf_core_segment {
	uint64_t vaddr, memsz;
	uint64_t offset, filesz;
	uint32_t flags; /* PF_* */
};

/* A line of NT_FILE. */
struct elf_core_mapping {
	uint64_t start, end, offset;
	uint32_t path; /* in `paths` */
};

struct elf_core_signal {
	uint32_t number; /* 0: none, the process lived on */
	bool known;	 /* there is an NT_SIGINFO: what follows is its contents */
	int32_t code;
	uint64_t address;   /* si_addr, of the signals that have one */
	int32_t sender_pid; /* of those that were sent */
	uint32_t sender_uid;
};

/* Of the auxiliary vector; 0: not there. */
struct elf_core_auxv {
	uint64_t phdr, phnum, base, entry, execfn, vdso;
};

struct elf_core {
	uint16_t machine;
	int32_t pid;   /* 0: not known */
	char comm[17]; /* "" if not known */
	char args[81]; /* the command line's begin */
	struct elf_core_signal signal;
	struct elf_core_auxv auxv;
	VEC(struct elf_core_thread) threads;   /* that which died of the signal is the first */
	VEC(struct elf_core_mapping) mappings; /* sorted, not overlapping; none without NT_FILE */
	VEC(struct elf_core_segment) segments; /* sorted, not overlapping */
	struct strtab paths;
	bool has_files;		       /* there is an NT_FILE */
	uint64_t bytes, bytes_missing; /* of memory that the core should have; does not have */
	uint32_t nr_bad; /* notes, mappings and segments that make no sense, or are too many */
};

/*
 * 0, -ENOEXEC (no core), -ENOTSUP (another machine's), -ENODATA (cut off before its first thread:
 * nothing can be told), -ENOMEM, -EIO ...
 */
int elf_core_read(const struct elf_file *elf, struct elf_core **ret);
void elf_core_free(struct elf_core *core);
static inline void elf_core_free_p(struct elf_core **core)
{
	elf_core_free(*core);
}
/* The segment that covers `addr`, or NULL. */
const struct elf_core_segment *elf_core_segment_at(const struct elf_core *core, uint64_t addr);
/* The first segment that ends behind `addr`, or NULL. */
const struct elf_core_segment *elf_core_segment_behind(const struct elf_core *core, uint64_t addr);
/* The mapping of a file that covers `addr`, or NULL. */
const struct elf_core_mapping *elf_core_mapping_at(const struct elf_core *core, uint64_t addr);
/* All of `size` bytes at `addr`, or -EFAULT: the core has not got them all. */
int elf_core_memory(const struct elf_core *core, const struct elf_file *elf, uint64_t addr,
		    void *buf, size_t size);
