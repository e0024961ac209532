/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a core: which were mapped where, and which files of this machine they are.
 *
 * Where they were mapped says NT_FILE, or, in a core without it (qemu's), the dynamic linker's list
 * in the core's memory. A file is believed if its build-id is that of the ELF header's page in the
 * core. Where the core has none, the path, the header's bytes as far as the core has them, and the
 * auxiliary vector must do: the file is used, and counted as not verified.
 */
#pragma once

#include "elf/elf_core.h"
#include "process/process.h"

struct core_search {
	const char *exe;     /* the executable; NULL: by its path */
	const char *sysroot; /* paths are below it; NULL: our root */
};

enum core_file_state {
	CORE_FILE_NO_CODE, /* no program or library: of no interest */
	CORE_FILE_MISSING,
	CORE_FILE_DIFFERS, /* there is one, but it is not the core's */
	CORE_FILE_UNVERIFIED,
	CORE_FILE_MEMORY, /* not there, but the core has its code */
	CORE_FILE_VERIFIED,
	CORE_FILE_STATES_MAX_,
};

struct core_file {
	const char *path; /* as the core has it, without " (deleted)" */
	bool is_deleted, is_exe;
	bool may_be_data;		    /* nothing in the core says that there is code in it */
	uint8_t build_id[ELF_BUILD_ID_MAX]; /* out of the core's memory */
	uint8_t build_id_len;		    /* 0: not known */
	bool has_bias;
	uint64_t bias; /* address in memory - address in the file; 0 if not known */
	/* Executable, of the ELF header's page in the core: of a file that is not there. */
	VEC(struct file_segment) segments;
	uint64_t dynamic; /* l_ld of the dynamic linker's list */
	bool is_linked;	  /* its `bias` and `dynamic` are by that list */
	uint64_t head;	  /* where its ELF header is in memory; 0: not known */
	uint32_t mapping; /* the first of NT_FILE's; UINT32_MAX: none */
	enum core_file_state state;
	char *found;		/* the path that is used, or that differs; NULL */
	bool is_given;		/* `found` is what --exe names */
	bool is_said;		/* that it differs */
	const char *difference; /* of DIFFERS: in words; static */
	struct elf_file *elf;	/* of UNVERIFIED and VERIFIED */
	struct elf_data memory; /* of MEMORY: the file's image */
};

/* Memory [start, end) has the bytes of `file` from `offset` on. */
struct core_mapping {
	uint64_t start, end, offset;
	uint32_t file;
	uint32_t next; /* of the same file; UINT32_MAX: none */
};

struct core_files {
	const struct elf_core *core; /* borrowed, both */
	const struct elf_file *elf;
	VEC(struct core_file) items;
	VEC(struct core_mapping) mappings; /* sorted, not overlapping */
	struct strtab strings;
	bool exe_tried;	  /* what --exe names */
	bool list_is_cut; /* the dynamic linker's: there may be more files */
};

/*
 * Finds them. Logging: files that differ, once each, and an `exe` that is not used. 0 or negative
 * errno.
 */
int core_files_find(struct core_files *files, const struct elf_core *core,
		    const struct elf_file *elf, const struct core_search *search);
void core_files_fini(struct core_files *files);
/* The mapping that covers `addr`, or NULL. */
const struct core_mapping *core_files_mapping(const struct core_files *files, uint64_t addr);
/* The first mapping that ends behind `addr`; the end of the array if there is none. */
const struct core_mapping *core_files_mapping_behind(const struct core_files *files, uint64_t addr);
/*
 * Memory of the process: the core's; where that has it not, and it could not be written to, its
 * file's. All of it or -EFAULT.
 */
int core_files_memory(const struct core_files *files, uint64_t addr, void *buf, size_t size);
/*
 * Whether the file's bytes at `offset` are code, and whether they could be written to in memory
 * (`flags`: PF_*, of its segment). False if the file is not there.
 */
bool core_file_has(const struct core_file *file, uint64_t offset, uint32_t flags);
/* "verified", ... */
const char *core_file_state_name(enum core_file_state state);
