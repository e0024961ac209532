// SPDX-License-Identifier: Apache-2.0
#include "unwinder/jit_code.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_dynamic.h"
#include "elf/elf_symbols.h"
#include "process/memory.h"
#include "unwinder/publisher_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

enum {
	LISTS_MAX = 16,		     /* of all processes that are remembered */
	FILES_AT_ONCE = 64,	     /* are looked at for one walk */
	SYMBOLS_BYTES_MAX = 4 << 20, /* of a .symtab, and of its names, that are searched */
};

static const char descriptor_name[] = "__jit_debug_descriptor";

/* The list of one process at one place. */
struct kept_list {
	uint64_t mm;
	uint32_t generation; /* 0: free */
	uint64_t used;
	struct jit_list list;
};

struct jit_codes {
	struct map descriptors; /* file index -> the symbol's address, 0: it has none */
	uint64_t clock;
	struct kept_list lists[LISTS_MAX];
};

/* --- files ----------------------------------------------------------------------------------- */

static uint64_t look_for_descriptor(const struct publisher *p, const struct mapped_file *file)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_dynamic dynamic;
	uint64_t addr;

	if (file->state != FILE_OPEN || mapped_file_elf(p->processes, file, &elf))
		return 0;
	if (!elf_dynamic_read(elf, &dynamic) && !elf_dynamic_find(&dynamic, descriptor_name, &addr))
		return addr;
	/* A program need not export it. */
	return elf_symtab_object(elf, descriptor_name, SYMBOLS_BYTES_MAX);
}

/* The file's descriptor; 0: it has none. Looks into `left` files that are not known, at most. */
static int descriptor_of(const struct publisher *p, const struct mapped_file *file, uint32_t *left,
			 uint64_t *ret)
{
	const uint64_t *known = map_get(&p->jit_codes->descriptors, file->index);

	*ret = known ? *known : 0;
	if (known)
		return 0;
	if (!*left)
		return -EAGAIN;
	--*left;
	*ret = look_for_descriptor(p, file);
	return map_put(&p->jit_codes->descriptors, file->index, *ret);
}

void jit_code_forget_file(struct publisher *p, uint32_t index)
{
	if (p->jit_codes)
		map_del(&p->jit_codes->descriptors, index);
}

/* --- lists ----------------------------------------------------------------------------------- */

/* In the place of the one that was not used for longest, if it is new. */
static struct jit_list *list_at(struct jit_codes *codes, const struct jit_place *place,
				uint64_t addr)
{
	struct kept_list *kept = &codes->lists[0];

	for (size_t i = 0; i < LISTS_MAX; i++) {
		struct kept_list *k = &codes->lists[i];

		if (k->generation == place->snapshot->generation && k->mm == place->mm &&
		    k->list.addr == addr) {
			k->used = ++codes->clock;
			return &k->list;
		}
		if (k->used < kept->used)
			kept = k;
	}
	jit_list_fini(&kept->list);
	*kept = (struct kept_list){ .mm = place->mm,
				    .generation = place->snapshot->generation,
				    .used = ++codes->clock,
				    .list.addr = addr };
	return &kept->list;
}

/* The code, or its name, whichever is not NULL. */
static int find(struct publisher *p, const struct jit_place *place, uint64_t pc,
		struct jit_code *code, char *name)
{
	const struct unwind_mapping *m = publisher_mappings(p, place->snapshot);
	uint32_t left = FILES_AT_ONCE, last = MAPPING_ANON;
	int r = -ENOENT;

	if (!p->jit_codes)
		p->jit_codes = calloc(1, sizeof(*p->jit_codes));
	if (!p->jit_codes)
		return -ENOMEM;
	for (uint32_t i = 0; i < place->snapshot->nr && r == -ENOENT; i++) {
		struct jit_list *list;
		uint64_t addr;

		if (m[i].file == MAPPING_ANON || m[i].file == last)
			continue;
		last = m[i].file;
		r = descriptor_of(p, publisher_file(p, m[i].file), &left, &addr);
		if (r)
			return r;
		r = -ENOENT;
		if (!addr)
			continue;
		list = list_at(p->jit_codes, place, addr + m[i].bias);
		r = code ? jit_list_find(list, &place->memory, place->machine, pc, code)
			 : jit_list_name(list, &place->memory, place->machine, pc, name);
	}
	return r;
}

int jit_code_find(struct publisher *p, const struct jit_place *place, uint64_t pc,
		  struct jit_code *ret)
{
	return find(p, place, pc, ret, NULL);
}

/* --- names ----------------------------------------------------------------------------------- */

struct reader {
	const struct runtime_memory *memory;
	int32_t pid;
};

static int read_process(void *ctx, __u64 addr, void *to, __u32 size)
{
	const struct reader *r = ctx;

	return r->memory->read ? r->memory->read(r->memory->ctx, addr, to, size)
			       : process_read_memory(r->pid, addr, to, size);
}

int jit_code_name(struct publisher *p, const struct mapping_snapshot *b, int32_t pid, uint64_t addr,
		  char ret[static JIT_NAME_MAX])
{
	struct reader reader = { &p->runtimes.memory, pid };
	const struct jit_place place = { b, 0, EM_X86_64, { read_process, &reader } };
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (!publisher_may_follow(p, b))
		return -EAGAIN;
	r = find(p, &place, addr, NULL, ret);
	publisher_took(p, b, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	return r;
}

void jit_code_free(struct jit_codes *codes)
{
	if (!codes)
		return;
	for (size_t i = 0; i < LISTS_MAX; i++)
		jit_list_fini(&codes->lists[i].list);
	map_fini(&codes->descriptors);
	free(codes);
}
