// SPDX-License-Identifier: Apache-2.0
/*
 * OpenJDK's zHeap.hpp and zGeneration.hpp, the same in jdk-21+35 to jdk-26:
 *
 *	ZHeap { ZPageAllocator; ZPageTable; ...; ZGenerationOld; ZGenerationYoung; ... }
 *	ZGeneration { vtable; ZGenerationId; ZPageAllocator *; ZPageTable *; ZForwardingTable; ... }
 *
 * A ZForwardingTable is a ZGranuleMap: its number of entries, and a pointer to them, one for each 2
 * MiB of the heap's addresses.
 */
#include "runtime/hotspot/hotspot_zgc.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	SEARCHES_MAX = 8,
	HEAP_MAX = 65536, /* sizeof(ZHeap): about 16,000 */
	OLD = 1,	  /* ZGenerationId */
	PAGE = 4096,
	PAGES_MAX = 256, /* of a table, 1 GiB of addresses each */
};

static int read_word(const struct hotspot_vm *vm, uint64_t at, uint64_t *ret)
{
	return runtime_read(vm->target, at, ret, sizeof(*ret));
}

/* What a member that is a pointer points to. */
static int read_through(const struct hotspot_vm *vm, struct hotspot_field f, uint64_t addr,
			uint64_t *ret)
{
	uint64_t pointer;

	return hotspot_read(vm, f, addr, &pointer) ?: read_word(vm, pointer, ret);
}

static bool has_members(const struct hotspot_vm *vm)
{
	const struct hotspot_fields *f = &vm->fields;

	return vm->at_collected_heap && hotspot_has(f->zgc_load_good) &&
	       hotspot_has(f->zgc_offset_mask) && hotspot_has(f->zgc_heap) &&
	       hotspot_has(f->zgc_page_allocator) && hotspot_has(f->zgc_page_table) &&
	       hotspot_has(f->zgc_table_map) && hotspot_has(f->zgc_map_entries) &&
	       f->zgc_map_entries.offset >= 8 && hotspot_has(f->zgc_forwarding_start) &&
	       hotspot_has(f->zgc_forwarding_alignment) && hotspot_has(f->zgc_forwarding_entries) &&
	       hotspot_has(f->zgc_entries_length) && vm->sizes.zgc_heap &&
	       vm->sizes.zgc_heap <= HEAP_MAX && vm->sizes.zgc_forwarding &&
	       vm->zgc_granule_shift >= 12 && vm->zgc_granule_shift < 40;
}

/*
 * Pages that nobody has used yet hold zeros, but the step could not read them: reading them from
 * outside is enough to map the kernel's page of zeros.
 */
static void make_readable(const struct hotspot_vm *vm, const struct hotspot_zgc *zgc)
{
	uint64_t pages = (8 * zgc->granules + PAGE - 1) / PAGE, word;

	for (uint64_t i = 0; i < pages && i < PAGES_MAX; i++) {
		(void)read_word(vm, zgc->young + i * PAGE, &word);
		(void)read_word(vm, zgc->old + i * PAGE, &word);
	}
}

/* Finds the generations in the words of the ZHeap at `heap`. */
static int find_tables(const struct hotspot_vm *vm, uint64_t heap, const uint64_t *words, size_t nr,
		       struct hotspot_zgc *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t allocator = heap + f->zgc_page_allocator.offset;
	uint64_t pages = heap + f->zgc_page_table.offset;
	/* From the two pointers on, in words. */
	size_t entries = 2 + (f->zgc_table_map.offset + f->zgc_map_entries.offset) / 8;

	for (size_t i = 1; i + entries < nr; i++) {
		uint64_t id = words[i - 1] & 0xff;
		__u64 *table = id == OLD ? &ret->old : &ret->young;

		if (words[i] != allocator || words[i + 1] != pages)
			continue;
		if (id > OLD || *table || !words[i + entries] || !words[i + entries - 1] ||
		    (ret->granules && ret->granules != words[i + entries - 1]))
			return -EBADMSG;
		*table = words[i + entries];
		ret->granules = words[i + entries - 1];
	}
	return ret->young && ret->old ? 0 : -ENOENT;
}

static int find(const struct hotspot_vm *vm, uint64_t globals, uint64_t heap,
		struct hotspot_zgc *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	_cleanup_free_ uint64_t *words = NULL;
	uint32_t size = vm->sizes.zgc_heap & ~7u;
	uint64_t good, offset_mask;
	struct hotspot_zgc zgc = { 0 };
	int r;

	if (!has_members(vm))
		return -ENOTSUP;
	r = hotspot_read(vm, f->zgc_load_good, globals, &good);
	r = r ?: read_through(vm, f->zgc_offset_mask, globals, &offset_mask);
	if (r)
		return r;
	if (!good || !offset_mask)
		return -EBADMSG;
	heap += f->zgc_heap.offset;
	words = malloc(size);
	if (!words)
		return -ENOMEM;
	r = runtime_read(vm->target, heap, words, size);
	r = r ?: find_tables(vm, heap, words, size / 8, &zgc);
	if (r)
		return r;
	zgc.good = good;
	zgc.offset_mask = offset_mask;
	zgc.granule_shift = (__u16)vm->zgc_granule_shift;
	zgc.start = (__u16)f->zgc_forwarding_start.offset;
	zgc.alignment = (__u16)f->zgc_forwarding_alignment.offset;
	zgc.length = (__u16)(f->zgc_forwarding_entries.offset + f->zgc_entries_length.offset);
	/* zAttachedArray.hpp: the entries are behind what has them. */
	zgc.entries = (__u16)((vm->sizes.zgc_forwarding + 7) & ~7u);
	*ret = zgc;
	make_readable(vm, ret);
	return 0;
}

void hotspot_find_zgc(const struct hotspot_vm *vm, struct hotspot_zgc_found *found)
{
	uint64_t heap = 0, globals = 0, good = 0, globals_x = 0, bad = 0, at_bad = 0;

	if ((found->is_known && (!found->in_use || found->zgc.good)) ||
	    found->nr_searches >= SEARCHES_MAX)
		return;
	/* Not built with it. */
	if (!vm->at_zgc || !hotspot_has(vm->fields.zgc_load_good)) {
		found->is_known = true;
		return;
	}
	if (!vm->at_collected_heap || read_word(vm, vm->at_collected_heap, &heap) || !heap ||
	    read_word(vm, vm->at_zgc, &globals) || !globals ||
	    read_through(vm, vm->fields.zgc_load_good, globals, &good))
		return;
	if (vm->at_xgc && (read_word(vm, vm->at_xgc, &globals_x) ||
			   read_through(vm, vm->fields.xgc_weak_bad, globals_x, &bad) ||
			   hotspot_read(vm, vm->fields.xgc_weak_bad, globals_x, &at_bad)))
		return;
	/* No colour is good, or bad, where another collector is in use. */
	if (bad)
		found->zgc.weak_bad = at_bad;
	found->is_known = true;
	found->in_use = good != 0;
	if (!found->in_use)
		return;
	found->nr_searches++;
	(void)find(vm, globals, heap, &found->zgc);
}
