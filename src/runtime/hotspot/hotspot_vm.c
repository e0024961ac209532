// SPDX-License-Identifier: Apache-2.0
/*
 * A JVM, by its vmStructs: its release, its code heaps, its interpreter. What is read here is
 * checked as much as one can from outside: a table that is of another kind than we think shows by
 * heaps that overlap or an interpreter that is in none.
 */
#include "runtime/hotspot/hotspot_vm_internal.h"

#include <errno.h>
#include <string.h>

enum {
	STRUCT_MAX = 1024, /* bytes that are read of one structure at once */
	RELEASE_MIN = 8,
	LOG2_SEGMENT_MIN = 4, /* CodeCacheSegmentSize is 64 or 128 */
	LOG2_SEGMENT_MAX = 16,
	INTERPRETER_MAX = 64 << 20, /* real ones have 100 to 250 kB */
	HOPS_MAX = 4096,	    /* back to the start of a block; real ones need below 20 */
	UNUSED_SEGMENT = 0xff,
};
/* Reserved for code: 2 GiB at most (globals.hpp, ReservedCodeCacheSize), so that calls reach. */
static const uint64_t CODE_MAX = 1ULL << 32;

/* The end of a member in its structure. */
static size_t end_of(struct hotspot_field f)
{
	return hotspot_has(f) ? f.offset + f.size : 0;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static int read_word(const struct hotspot_vm *vm, uint64_t addr, uint64_t *ret)
{
	return runtime_read(vm->target, addr, ret, sizeof(*ret));
}

static int read_u32(const struct hotspot_vm *vm, uint64_t addr, uint32_t *ret)
{
	return runtime_read(vm->target, addr, ret, sizeof(*ret));
}

/* ----- which release it is ----- */

/*
 * JDK 8 and before: struct JDK_Version (runtime/java.hpp) of bytes major, minor, micro, then from
 * byte 4 on two of the update, one of special updates, one of the build. What is called VM version
 * there is HotSpot's own: 25 for JDK 8.
 */
static int read_old_version(struct hotspot_vm *vm)
{
	uint8_t v[8];
	int r;

	if (!vm->at_jdk_version)
		return -ENOTSUP;
	r = runtime_read(vm->target, vm->at_jdk_version, v, sizeof(v));
	if (r)
		return r;
	if (!v[0])
		return -EAGAIN;
	vm->release = v[0];
	vm->minor = v[1];
	vm->security = v[4] | v[5] << 8;
	vm->build = v[7];
	return 0;
}

static int read_version(struct hotspot_vm *vm)
{
	int r = 0;

	if (vm->at_heap || !vm->at_heaps)
		r = read_old_version(vm);
	else if (!vm->at_major)
		return -ENOTSUP;
	else
		r = read_u32(vm, vm->at_major, &vm->release);
	if (r || !vm->at_heaps)
		return r;
	if (!vm->release)
		return -EAGAIN;
	/* These are for people only. */
	if (vm->at_minor)
		(void)read_u32(vm, vm->at_minor, &vm->minor);
	if (vm->at_security)
		(void)read_u32(vm, vm->at_security, &vm->security);
	if (vm->at_build)
		(void)read_u32(vm, vm->at_build, &vm->build);
	return 0;
}

static enum hotspot_layout find_layout(const struct hotspot_fields *f)
{
	if (hotspot_has(f->blob_mutable_data))
		return HOTSPOT_MUTABLE;
	return hotspot_has(f->nmethod_immutable_data) ? HOTSPOT_IMMUTABLE : HOTSPOT_CONTIGUOUS;
}

/* ----- the code ----- */

static bool heap_makes_sense(const struct hotspot_heap *heap)
{
	return heap->start < heap->end && heap->end - heap->start <= CODE_MAX &&
	       heap->end < 1ULL << 56 && heap->low >= heap->start && heap->low < heap->end &&
	       heap->segmap && heap->log2_segment_size >= LOG2_SEGMENT_MIN &&
	       heap->log2_segment_size <= LOG2_SEGMENT_MAX;
}

static int read_heap(const struct hotspot_vm *vm, uint64_t addr, struct hotspot_heap *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	struct hotspot_heap heap = { .heap = addr };
	uint8_t copy[STRUCT_MAX];
	const size_t memory = f->heap_memory.offset, segmap = f->heap_segmap.offset;
	const size_t space = larger(end_of(f->space_low_boundary),
				    larger(end_of(f->space_high_boundary), end_of(f->space_low)));
	const size_t size =
		larger(end_of(f->heap_log2_segment_size), larger(memory, segmap) + space);
	int r;

	if (size > sizeof(copy))
		return -EBADMSG;
	r = runtime_read(vm->target, addr, copy, size);
	if (r)
		return r;
	heap.start = hotspot_get(f->space_low_boundary, copy + memory, size - memory);
	heap.end = hotspot_get(f->space_high_boundary, copy + memory, size - memory);
	heap.low = hotspot_get(f->space_low, copy + memory, size - memory);
	heap.segmap = hotspot_get(f->space_low, copy + segmap, size - segmap);
	heap.log2_segment_size = (uint32_t)hotspot_get(f->heap_log2_segment_size, copy, size);
	if (!heap.start || !heap.segmap)
		return -EAGAIN; /* reserve() has not been called yet */
	if (!heap_makes_sense(&heap))
		return -EBADMSG;
	*ret = heap;
	return 0;
}

/* Addresses of the CodeHeaps: their number, or an error. */
static int read_heap_list(const struct hotspot_vm *vm, uint64_t ret[static HOTSPOT_HEAPS_MAX])
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t list = 0, data = 0;
	int64_t nr;
	uint8_t copy[STRUCT_MAX];
	const size_t size = larger(end_of(f->array_len), end_of(f->array_data));
	int r;

	r = read_word(vm, vm->at_heap ? vm->at_heap : vm->at_heaps, &list);
	if (r)
		return r;
	if (!list)
		return -EAGAIN;
	if (vm->at_heap) {
		ret[0] = list;
		return 1;
	}
	if (size > sizeof(copy))
		return -EBADMSG;
	r = runtime_read(vm->target, list, copy, size);
	if (r)
		return r;
	nr = hotspot_get_int(f->array_len, copy, size);
	data = hotspot_get(f->array_data, copy, size);
	if (!nr || !data)
		return -EAGAIN;
	if (nr < 0 || nr > HOTSPOT_HEAPS_MAX)
		return -EBADMSG;
	r = runtime_read(vm->target, data, ret, (size_t)nr * sizeof(*ret));
	return r ?: (int)nr;
}

static void insert_heap(struct hotspot_heap *heaps, uint32_t nr, const struct hotspot_heap *heap)
{
	while (nr && heaps[nr - 1].start > heap->start) {
		heaps[nr] = heaps[nr - 1];
		nr--;
	}
	heaps[nr] = *heap;
}

static int read_heaps(const struct hotspot_vm *vm, struct hotspot_heap *heaps, uint32_t *nr_ret)
{
	uint64_t list[HOTSPOT_HEAPS_MAX];
	int nr = read_heap_list(vm, list);

	if (nr < 0)
		return nr;
	for (int i = 0; i < nr; i++) {
		struct hotspot_heap heap;
		int r = list[i] ? read_heap(vm, list[i], &heap) : -EAGAIN;

		if (r)
			return r;
		insert_heap(heaps, (uint32_t)i, &heap);
	}
	for (int i = 1; i < nr; i++) {
		if (heaps[i].start < heaps[i - 1].end)
			return -EBADMSG;
	}
	*nr_ret = (uint32_t)nr;
	return 0;
}

static int read_interpreter(struct hotspot_vm *vm)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t queue, start, limit;
	int r = read_word(vm, vm->at_interpreter, &queue);

	if (r)
		return r;
	if (!queue)
		return -EAGAIN;
	r = hotspot_read(vm, f->queue_stub_buffer, queue, &start);
	r = r ?: hotspot_read(vm, f->queue_buffer_limit, queue, &limit);
	if (r)
		return r;
	if (!start || !limit)
		return -EAGAIN;
	if (limit > INTERPRETER_MAX || !hotspot_find_heap(vm, start) ||
	    !hotspot_find_heap(vm, start + limit - 1))
		return -EBADMSG;
	vm->interpreter_start = start;
	vm->interpreter_end = start + limit;
	return 0;
}

/* What changes while it runs, of a copy of the vm. */
static int read_changing(struct hotspot_vm *vm)
{
	int r = read_heaps(vm, vm->heaps, &vm->nr_heaps);

	r = r ?: read_word(vm, vm->at_call_stub_return, &vm->call_stub_return);
	if (r)
		return r;
	/* No Java code has run before there is a way into it. */
	if (!vm->call_stub_return)
		return -EAGAIN;
	if (!hotspot_find_heap(vm, vm->call_stub_return))
		return -EBADMSG;
	r = read_interpreter(vm);
	if (r)
		return r;
	if (vm->at_deopt_blob)
		(void)read_word(vm, vm->at_deopt_blob, &vm->deopt_blob);
	if (vm->at_cont_return)
		(void)read_word(vm, vm->at_cont_return, &vm->cont_return);
	return 0;
}

int hotspot_vm_refresh(struct hotspot_vm *vm)
{
	struct hotspot_vm now = *vm;
	bool changed;
	int r;

	memset(now.heaps, 0, sizeof(now.heaps));
	r = read_changing(&now);
	if (r)
		return r;
	changed = now.nr_heaps != vm->nr_heaps ||
		  memcmp(now.heaps, vm->heaps, sizeof(now.heaps)) != 0 ||
		  now.call_stub_return != vm->call_stub_return ||
		  now.interpreter_start != vm->interpreter_start ||
		  now.interpreter_end != vm->interpreter_end || now.deopt_blob != vm->deopt_blob ||
		  now.cont_return != vm->cont_return;
	*vm = now;
	return changed;
}

static void free_stubs(struct hotspot_vm *vm)
{
	for (size_t i = 0; i < vm->stubs.nr; i++)
		free(vm->stubs.items[i].name);
	vec_free(&vm->stubs);
}

bool hotspot_knows_release(unsigned int release, unsigned int minor)
{
	(void)minor;
	return release >= RELEASE_MIN;
}

int hotspot_vm_read(const struct runtime_target *target, const struct hotspot_symbols *symbols,
		    struct hotspot_vm *ret)
{
	int r;

	*ret = (struct hotspot_vm){ .target = target, .pointer_size = 8 };
	r = hotspot_tables_read(symbols, ret);
	if (r)
		return r;
	/* The tables are filled by constructors before the JVM begins to be anything: what is not
	 * there while nothing points to code may come. */
	r = read_version(ret);
	if (r)
		return r;
	if (!hotspot_knows_release(ret->release, 0))
		return -ENOTSUP;
	ret->layout = find_layout(&ret->fields);
	if (hotspot_missing(ret))
		return -ENOTSUP;
	return read_changing(ret);
}

void hotspot_vm_fini(struct hotspot_vm *vm)
{
	free_stubs(vm);
}

/* ----- blobs ----- */

const struct hotspot_heap *hotspot_find_heap(const struct hotspot_vm *vm, uint64_t addr)
{
	for (uint32_t i = 0; i < vm->nr_heaps; i++) {
		if (addr >= vm->heaps[i].start && addr < vm->heaps[i].end)
			return &vm->heaps[i];
	}
	return NULL;
}

/*
 * The segment map has a byte a segment of a block: how far to go back at least, up to 254; 0 at its
 * start (memory/heap.cpp, find_block_for()).
 */
int hotspot_find_blob(const struct hotspot_vm *vm, uint64_t pc, uint64_t *ret)
{
	const struct hotspot_heap *heap = hotspot_find_heap(vm, pc);
	uint64_t segment, block;
	uint8_t back = 1;

	if (!heap || pc < heap->low)
		return -ENOENT;
	segment = (pc - heap->low) >> heap->log2_segment_size;
	for (uint32_t hops = 0; back; hops++) {
		int r = runtime_read(vm->target, heap->segmap + segment, &back, 1);

		if (r)
			return r;
		if (back == UNUSED_SEGMENT || back > segment || hops >= HOPS_MAX)
			return -ENOENT;
		segment -= back;
	}
	block = heap->low + (segment << heap->log2_segment_size);
	if (hotspot_has(vm->fields.block_used)) {
		uint64_t used;
		int r = hotspot_read(vm, vm->fields.block_used, block, &used);

		if (r)
			return r;
		if (!used)
			return -ENOENT;
	}
	*ret = block + vm->sizes.heap_block;
	return 0;
}

int hotspot_read_code(const struct hotspot_vm *vm, uint64_t blob, uint64_t *start_ret,
		      uint64_t *end_ret)
{
	const struct hotspot_fields *f = &vm->fields;
	const struct hotspot_heap *heap = hotspot_find_heap(vm, blob);
	uint64_t start = 0, end = 0;
	int r;

	if (!heap)
		return -EBADMSG;
	if (hotspot_has(f->blob_code_begin)) {
		r = hotspot_read(vm, f->blob_code_begin, blob, &start);
	} else {
		r = hotspot_read(vm, f->blob_code_offset, blob, &start);
		start += blob;
	}
	if (r)
		return r;
	if (hotspot_has(f->blob_code_end)) {
		r = hotspot_read(vm, f->blob_code_end, blob, &end);
	} else {
		r = hotspot_read(vm, f->blob_data_offset, blob, &end);
		end += blob;
	}
	if (r)
		return r;
	if (start < blob || start > end || end > heap->end)
		return -EBADMSG;
	*start_ret = start;
	*end_ret = end;
	return 0;
}
