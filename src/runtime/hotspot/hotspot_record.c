// SPDX-License-Identifier: Apache-2.0
/*
 * vmStructs -> struct hotspot_record. Facts that are in no table are cited where they are used.
 */
#include "runtime/hotspot/hotspot_record.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	BLOCK_COPY_MAX = 256,
	CODELETS_MAX = 1024, /* one a bytecode and about 100 more */
	DESCRIPTION_SIZE = 48,
};

/* ----- what is looked for ----- */

/* Is `name` one of the two? The names of blobs are string literals: an address each. */
static void take_name(const struct hotspot_vm *vm, uint64_t name, struct hotspot_found *found)
{
	char text[DESCRIPTION_SIZE];

	if (hotspot_read_string(vm, name, text, sizeof(text)) < 0)
		return;
	if (strcmp(text, "nmethod") == 0)
		found->name_nmethod = name;
	else if (strcmp(text, "native nmethod") == 0)
		found->name_native = name;
}

/* Goes from block to block (HeapBlock::Header: length in segments, used). */
static void find_names(const struct hotspot_vm *vm, const struct hotspot_heap *heap,
		       uint32_t blocks_max, struct hotspot_found *found)
{
	const struct hotspot_fields *f = &vm->fields;
	uint32_t head = vm->sizes.heap_block;
	size_t size = head + f->blob_name.offset + f->blob_name.size;
	uint64_t at = heap->low, last_name = 0;

	if (!hotspot_has(f->block_length) || !hotspot_has(f->block_used) || size > BLOCK_COPY_MAX)
		return;
	for (uint32_t i = 0; i < blocks_max && at < heap->end; i++) {
		uint8_t copy[BLOCK_COPY_MAX];
		uint64_t length, name;

		if ((found->name_nmethod && found->name_native) ||
		    runtime_read(vm->target, at, copy, size))
			return;
		length = hotspot_get(f->block_length, copy, size);
		name = hotspot_get(f->blob_name, copy + head, size - head);
		if (hotspot_get(f->block_used, copy, size) && name != last_name &&
		    name != found->name_nmethod) {
			take_name(vm, name, found);
			last_name = name;
		}
		if (!length || length > (heap->end - at) >> heap->log2_segment_size)
			return;
		at += length << heap->log2_segment_size;
	}
}

/*
 * A StubQueue is an array of InterpreterCodelets, each with its size and what it is
 * (interpreter.hpp). Those that methods are entered by are described as "method entry point (kind =
 * ...)", those of native methods since 24 as "native method entry point (...)"
 * (templateInterpreterGenerator.cpp).
 */
static void find_entries(const struct hotspot_vm *vm, struct hotspot_found *found)
{
	const struct hotspot_fields *f = &vm->fields;
	static const char what[] = "method entry point";
	uint64_t at = vm->interpreter_start, start = 0, end = 0;
	size_t head = vm->sizes.codelet;

	found->interpreter_end = vm->interpreter_end;
	found->entries_start = found->entries_end = 0;
	if (!hotspot_has(f->codelet_size) || !hotspot_has(f->codelet_description) || !head ||
	    head > BLOCK_COPY_MAX)
		return;
	for (uint32_t i = 0; i < CODELETS_MAX && at < vm->interpreter_end; i++) {
		uint8_t copy[BLOCK_COPY_MAX];
		char text[DESCRIPTION_SIZE];
		uint64_t size;

		if (runtime_read(vm->target, at, copy, head))
			break;
		size = hotspot_get(f->codelet_size, copy, head);
		if (size < head || size > vm->interpreter_end - at)
			break;
		if (hotspot_read_string(vm, hotspot_get(f->codelet_description, copy, head), text,
					sizeof(text)) >= 0 &&
		    strstr(text, what)) {
			start = start ?: at;
			end = at + size;
		}
		at += size;
	}
	found->entries_start = start;
	found->entries_end = end;
}

void hotspot_find(const struct hotspot_vm *vm, uint32_t blocks_max, struct hotspot_found *found)
{
	if (found->interpreter_end != vm->interpreter_end)
		find_entries(vm, found);
	hotspot_find_continuation(vm, &found->continuation);
	hotspot_find_zgc(vm, &found->zgc);
	hotspot_find_operations(vm, &found->operations);
	if (vm->target->options.virtual_threads)
		hotspot_find_threads(vm, &found->continuation, &found->threads);
	/* The last heaps first: the first one has no compiled methods, if there are several. */
	for (uint32_t i = vm->nr_heaps; i-- > 0;)
		find_names(vm, &vm->heaps[i], blocks_max, found);
}

/* ----- the record ----- */

static struct hotspot_at at(struct hotspot_field f)
{
	return (struct hotspot_at){ .offset = (__u16)f.offset,
				    .size = f.size,
				    .is_signed = f.is_signed };
}

static struct hotspot_at either(struct hotspot_field f, struct hotspot_field other)
{
	return at(hotspot_has(f) ? f : other);
}

/*
 * Frames of the interpreter keep the bytecode pointer in a slot below fp
 * (interpreter_frame_bcp_offset). frame_x86.hpp: the 7th, since JDK 9 the 8th, behind one for the
 * class's mirror. frame_aarch64.hpp: the 7th, since JDK 9 the 9th, since slots are even in number
 * there.
 */
static uint32_t bcp_slot(const struct hotspot_vm *vm)
{
	if (vm->release <= 8)
		return 7;
	return vm->target->machine == EM_AARCH64 ? 9 : 8;
}

static void fill_symbol(const struct hotspot_fields *f, struct hotspot_symbol_layout *ret)
{
	uint32_t length = f->symbol_length.offset, refcount = f->symbol_refcount.offset;

	/* In words that are shared with it, the count is the lower half (symbol.hpp). */
	if (hotspot_has(f->symbol_hash_and_refcount))
		refcount = f->symbol_hash_and_refcount.offset;
	if (hotspot_has(f->symbol_length_and_refcount)) {
		refcount = f->symbol_length_and_refcount.offset;
		length = refcount + 2;
	}
	ret->mask = ~0ULL;
	if (refcount <= 6)
		ret->mask &= ~(0xffffULL << 8 * refcount);
	ret->length = (__u8)length;
	ret->body = (__u8)f->symbol_body.offset;
}

static void fill_code(const struct hotspot_vm *vm, struct hotspot_record *ret)
{
	ret->nr_heaps = vm->nr_heaps;
	for (uint32_t i = 0; i < vm->nr_heaps; i++) {
		const struct hotspot_heap *heap = &vm->heaps[i];

		ret->heaps[i] = (struct hotspot_code_heap){
			.start = heap->start,
			.end = heap->end,
			.low = heap->low,
			.segmap = heap->segmap,
			.log2_segment_size = heap->log2_segment_size,
			.block_header = vm->sizes.heap_block,
		};
	}
	/* They are sorted. */
	ret->code_start = vm->heaps[0].start;
	ret->code_end = vm->heaps[vm->nr_heaps - 1].end;
	ret->interpreter_start = vm->interpreter_start;
	ret->interpreter_end = vm->interpreter_end;
	ret->call_stub_return = vm->call_stub_return;
}

static int read_oops(const struct hotspot_vm *vm, struct hotspot_record *ret)
{
	uint64_t base;
	uint32_t shift;

	if (!vm->at_oop_base || !vm->at_oop_shift ||
	    runtime_read(vm->target, vm->at_oop_base, &base, sizeof(base)) ||
	    runtime_read(vm->target, vm->at_oop_shift, &shift, sizeof(shift)) || shift > 8)
		return -ENOENT;
	ret->oop_base = base;
	ret->oop_shift = (__u8)shift;
	return 0;
}

/* Not known with whose references it is: with ZGC, as long as its heap is not made. */
static bool can_follow(const struct hotspot_found *found)
{
	return found->zgc.is_known && (!found->zgc.in_use || found->zgc.zgc.good);
}

/* Out of the tables, or of the code where they say nothing. */
static void fill_continuation(const struct hotspot_vm *vm, const struct hotspot_found *found,
			      struct hotspot_record *ret)
{
	const struct hotspot_continuation *c = &found->continuation;
	uint32_t size = vm->sizes.cont_entry ?: c->entry_size;

	ret->cont_return = vm->cont_return ?: c->return_pc;
	ret->thread_cont_entry =
		(__u16)(vm->fields.thread_cont_entry.offset ?: c->thread_cont_entry);
	/* ContinuationEntry::size() */
	ret->cont_entry_size = (__u16)((size + 15) & ~15u);
	if (c->chunk_stack && can_follow(found) && !read_oops(vm, ret)) {
		ret->zgc = found->zgc.zgc;
		ret->oop_size = c->oop_size;
		/* continuationEntry.hpp: behind an empty struct and _parent. */
		ret->cont_entry_cont = 16;
		ret->continuation_tail = c->tail;
		ret->chunk_parent = c->chunk_parent;
		ret->chunk_size = c->chunk_size;
		ret->chunk_sp = c->chunk_sp;
		ret->chunk_stack = c->chunk_stack;
	}
}

/* The end of the last member that the step looks for in the header of a blob. */
static uint32_t header_size(const struct hotspot_record *record)
{
	const struct hotspot_at all[] = {
		record->blob_name,
		record->blob_size,
		record->blob_frame_complete,
		record->blob_frame_size,
		record->blob_code_begin,
		record->nmethod_method,
		record->nmethod_compile_id,
		record->nmethod_orig_pc,
		record->nmethod_deopt_handler,
		record->nmethod_deopt_mh_handler,
	};
	uint32_t end = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (all[i].size && all[i].offset + all[i].size > end)
			end = all[i].offset + all[i].size;
	}
	return (end + 7) & ~7u;
}

static void fill_proof(const struct hotspot_vm *vm, struct hotspot_record *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	uint32_t block = vm->sizes.heap_block, name = block + ret->blob_name.offset;
	uint32_t id = block + ret->nmethod_compile_id.offset, end = (id + 4 + 7) & ~7u;

	if (!hotspot_has(f->block_used) || f->block_used.size != 1 || !ret->name_nmethod ||
	    f->block_used.offset >= block || name & 7 || name + 8 > end || id & 3 ||
	    ret->nmethod_compile_id.size != 4 || end > HOTSPOT_HEADER_SIZE)
		return;
	ret->proof_size = (__u16)end;
	ret->proof_used = (__u16)f->block_used.offset;
	ret->proof_name = (__u16)name;
	ret->proof_id = (__u16)id;
}

int hotspot_record_fill(const struct hotspot_vm *vm, const struct hotspot_found *found,
			struct hotspot_record *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	struct hotspot_record record = {
		.release = (__u16)vm->release,
		.interpreter_bcp = 8 * bcp_slot(vm),
		.entries_start = found->entries_start,
		.entries_end = found->entries_end,
		.name_nmethod = found->name_nmethod,
		.name_native = found->name_native,
		.operations = found->operations.at,
		.blob_name = at(f->blob_name),
		.blob_size = at(f->blob_size),
		.blob_frame_complete = at(f->blob_frame_complete_offset),
		.blob_frame_size = at(f->blob_frame_size),
		.blob_code_begin = either(f->blob_code_begin, f->blob_code_offset),
		.nmethod_method = at(f->nmethod_method),
		.nmethod_compile_id = at(f->nmethod_compile_id),
		.nmethod_orig_pc = at(f->nmethod_orig_pc_offset),
		.nmethod_deopt_handler =
			either(f->nmethod_deopt_handler_begin, f->nmethod_deopt_handler_offset),
		.nmethod_deopt_mh_handler = either(f->nmethod_deopt_mh_handler_begin,
						   f->nmethod_deopt_mh_handler_offset),
		.method_const = (__u16)f->method_const_method.offset,
		.const_constants = (__u16)f->const_method_constants.offset,
		.const_code_size = (__u16)f->const_method_code_size.offset,
		.const_name_index = (__u16)f->const_method_name_index.offset,
		.const_size = (__u16)f->const_method_size.offset,
		.const_codes = (__u16)vm->sizes.const_method,
		.constants_holder = (__u16)f->constants_pool_holder.offset,
		.constants_size = (__u16)vm->sizes.constants,
		.klass_name = (__u16)f->klass_name.offset,
		.thread_saved_pc = (__u16)f->thread_saved_pc.offset,
	};

	fill_code(vm, &record);
	fill_symbol(f, &record.symbol);
	fill_continuation(vm, found, &record);
	hotspot_fill_threads(vm, &found->threads, &record);
	fill_proof(vm, &record);
	record.header_size = header_size(&record);
	if (record.header_size > HOTSPOT_HEADER_SIZE || record.symbol.length > 6 ||
	    record.symbol.body > 8 || record.const_constants > HOTSPOT_CONST_METHOD - 8 ||
	    record.const_code_size > HOTSPOT_CONST_METHOD - 8 ||
	    record.const_name_index > HOTSPOT_CONST_METHOD - 8 ||
	    record.const_size > HOTSPOT_CONST_METHOD - 8)
		return -EBADMSG;
	*ret = record;
	return 0;
}
