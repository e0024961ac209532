/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HotSpot says about itself: the tables of vmStructs (runtime/vmStructs.hpp of OpenJDK), which
 * every libjvm exports for debuggers, read out of a process; and the structures of that JVM, read
 * by them.
 *
 * In: a process's memory and the addresses of the exported symbols. Out: where each member stands
 * that somebody here wants, by release and build; the code heaps; the entry points that matter to a
 * walk. Nothing here is believed: counts, sizes and strings are bounded, and a struct is always
 * read as bytes of a stated size.
 */
#pragma once

#include "runtime/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The exported symbols, as addresses in the file; 0: not there. */
#define HOTSPOT_SYMBOLS(X)                                                                         \
	X(structs, "gHotSpotVMStructs")                                                            \
	X(struct_stride, "gHotSpotVMStructEntryArrayStride")                                       \
	X(struct_type_name, "gHotSpotVMStructEntryTypeNameOffset")                                 \
	X(struct_field_name, "gHotSpotVMStructEntryFieldNameOffset")                               \
	X(struct_type_string, "gHotSpotVMStructEntryTypeStringOffset")                             \
	X(struct_is_static, "gHotSpotVMStructEntryIsStaticOffset")                                 \
	X(struct_offset, "gHotSpotVMStructEntryOffsetOffset")                                      \
	X(struct_address, "gHotSpotVMStructEntryAddressOffset")                                    \
	X(types, "gHotSpotVMTypes")                                                                \
	X(type_stride, "gHotSpotVMTypeEntryArrayStride")                                           \
	X(type_name, "gHotSpotVMTypeEntryTypeNameOffset")                                          \
	X(type_size, "gHotSpotVMTypeEntrySizeOffset")                                              \
	X(int_constants, "gHotSpotVMIntConstants")                                                 \
	X(int_stride, "gHotSpotVMIntConstantEntryArrayStride")                                     \
	X(int_name, "gHotSpotVMIntConstantEntryNameOffset")                                        \
	X(int_value, "gHotSpotVMIntConstantEntryValueOffset")                                      \
	X(long_constants, "gHotSpotVMLongConstants")                                               \
	X(long_stride, "gHotSpotVMLongConstantEntryArrayStride")                                   \
	X(long_name, "gHotSpotVMLongConstantEntryNameOffset")                                      \
	X(long_value, "gHotSpotVMLongConstantEntryValueOffset")

struct hotspot_symbols {
#define X(name, symbol) uint64_t name;
	HOTSPOT_SYMBOLS(X)
#undef X
};

/* A member of a structure. size 0: this build has no such member. */
struct hotspot_field {
	uint32_t offset;
	uint8_t size; /* 1, 2, 4 or 8 */
	bool is_signed;
};

/*
 * The members that are wanted, under our own names; hotspot_fields.c says what they are called in
 * which release. What a release does not have, or spells in another way, has size 0: see the
 * comment of each group for who replaces whom.
 */
struct hotspot_fields {
	/* CodeBlob. The code begins at code_begin (a pointer; 9 to 22) or blob + code_offset (8, 23
	 * and later); it ends at code_end or blob + data_offset. kind: 23 and later. In 25 and
	 * later relocations and metadata are outside of it, at mutable_data. */
	struct hotspot_field blob_name, blob_size, blob_header_size, blob_kind;
	struct hotspot_field blob_frame_complete_offset, blob_frame_size, blob_data_offset;
	struct hotspot_field blob_code_begin, blob_code_end, blob_code_offset;
	struct hotspot_field blob_relocation_size, blob_mutable_data, blob_mutable_data_size;

	/* nmethod, with what CompiledMethod has (9 to 22). deopt_handler_begin: a pointer (9 to
	 * 22), else nmethod + deopt_handler_offset. */
	struct hotspot_field nmethod_method, nmethod_compile_id, nmethod_comp_level;
	struct hotspot_field nmethod_entry_bci, nmethod_state, nmethod_orig_pc_offset;
	struct hotspot_field nmethod_deopt_handler_begin, nmethod_deopt_handler_offset;
	struct hotspot_field nmethod_deopt_mh_handler_begin, nmethod_deopt_mh_handler_offset;
	struct hotspot_field nmethod_verified_entry_point, nmethod_verified_entry_offset;
	struct hotspot_field nmethod_entry_point, nmethod_entry_offset;
	struct hotspot_field nmethod_consts_offset, nmethod_stub_offset, nmethod_exception_offset;

	/* What names come from: see enum hotspot_layout. */
	struct hotspot_field nmethod_oops_offset, nmethod_metadata_offset;
	struct hotspot_field nmethod_scopes_data_begin, nmethod_scopes_data_offset;
	struct hotspot_field nmethod_scopes_pcs_offset, nmethod_dependencies_offset;
	struct hotspot_field nmethod_immutable_data, nmethod_immutable_data_size;
	struct hotspot_field nmethod_immutable_data_ref_count_offset;
	struct hotspot_field nmethod_speculations_offset, nmethod_jvmci_data_size;
	struct hotspot_field pc_desc_pc_offset, pc_desc_scope_decode_offset;

	struct hotspot_field method_const_method, method_code;
	/* flags: bit const_method_has_lines of hotspot_vm. */
	struct hotspot_field const_method_constants, const_method_size, const_method_flags;
	struct hotspot_field const_method_code_size, const_method_name_index;
	struct hotspot_field const_method_signature_index, const_method_method_idnum;
	/* source_file_name_index: of the InstanceKlass up to 11 or so, then of its constants. */
	struct hotspot_field constants_pool_holder, constants_length;
	struct hotspot_field constants_source_file_name_index;
	struct hotspot_field klass_name;
	struct hotspot_field instance_klass_constants, instance_klass_source_file_name_index;
	struct hotspot_field instance_klass_methods, instance_klass_fieldinfo_stream;
	struct hotspot_field klass_layout_helper;
	/* hash_and_refcount: hash in the upper half (15 and later); before, identity_hash and
	 * refcount. length_and_refcount (13, 14): length in the upper half. */
	struct hotspot_field symbol_length, symbol_refcount, symbol_identity_hash;
	struct hotspot_field symbol_hash_and_refcount, symbol_length_and_refcount, symbol_body;

	struct hotspot_field array_len, array_data; /* GrowableArray<...> */
	struct hotspot_field heap_memory, heap_segmap, heap_log2_segment_size; /* CodeHeap */
	struct hotspot_field space_low_boundary, space_high_boundary, space_low, space_high;
	struct hotspot_field block_length, block_used; /* HeapBlock; length in segments */
	struct hotspot_field queue_stub_buffer, queue_buffer_limit; /* StubQueue */
	struct hotspot_field codelet_size, codelet_description;
	struct hotspot_field flag_name, flag_addr; /* JVMFlag: an option of the command line */
	/* hotspot_zgc.h. The first three are pointers, in ZGlobalsForVMStructs and in that of
	 * ZGC without generations, as 21 and 22 have both. */
	struct hotspot_field zgc_load_good, zgc_offset_mask, xgc_weak_bad;
	struct hotspot_field zgc_heap, zgc_page_allocator, zgc_page_table;
	struct hotspot_field zgc_table_map, zgc_map_entries;
	struct hotspot_field zgc_forwarding_start, zgc_forwarding_alignment;
	struct hotspot_field zgc_forwarding_entries, zgc_entries_length;
	/* JavaThread. cont_entry: the innermost mounted continuation (in the tables since 25). */
	struct hotspot_field thread_saved_pc, thread_cont_entry, thread_obj, thread_vthread,
		thread_anchor;
};

/* Sizes of types: what stands behind a struct begins there. */
struct hotspot_sizes {
	uint32_t heap_block;   /* before each CodeBlob */
	uint32_t const_method; /* bytecodes behind it */
	uint32_t constants;    /* 8 bytes an entry behind it: a Symbol * may have bit 0 set */
	uint32_t pc_desc;
	uint32_t blob, nmethod, codelet;
	uint32_t cont_entry; /* in the tables since 25 */
	uint32_t flag;
	uint32_t zgc_heap, zgc_forwarding;
};

/* Where an nmethod keeps what names are made of. */
enum hotspot_layout {
	/* 8 to 22: all in the blob, by offsets from it. metadata at metadata_offset up to the
	 * scopes' data; that at scopes_data_begin (9 to 22) or scopes_data_offset (8), up to
	 * scopes_pcs_offset; pcs up to dependencies_offset. */
	HOTSPOT_CONTIGUOUS,
	/* 23, 24: metadata at blob + data_offset + metadata_offset, to its jvmci data or end; pcs
	 * at immutable_data + scopes_pcs_offset up to scopes_data_offset; scopes' data behind, up
	 * to speculations_offset or immutable_data_size. */
	HOTSPOT_IMMUTABLE,
	/* 25 and later: as 23, but metadata at mutable_data + relocation_size, up to
	 * mutable_data_size; a reference count (26) ends the scopes' data at
	 * immutable_data_ref_count_offset. */
	HOTSPOT_MUTABLE,
};

enum {
	HOTSPOT_HEAPS_MAX = 8,	   /* a segmented code cache has three, four with an AOT cache */
	HOTSPOT_STUBS_MAX = 512,   /* StubRoutines in the tables: below 100 */
	HOTSPOT_NAME_MAX = 256,	   /* of a blob or a type, with its NUL */
	HOTSPOT_SYMBOL_MAX = 4096, /* bytes that are read of a Symbol; it may have 65535 */
};

struct hotspot_heap {
	uint64_t heap;	     /* the CodeHeap itself */
	uint64_t start, end; /* reserved: bounds of its VirtualSpace */
	uint64_t low;	     /* segment 0 begins here */
	uint64_t segmap;     /* a byte a segment */
	uint32_t log2_segment_size;
};

/* A static member `StubRoutines::_name` of type address: what it points to may be set late. */
struct hotspot_stub {
	char *name;    /* without the underscore: "jint_disjoint_arraycopy" */
	uint64_t addr; /* of the pointer */
};

struct hotspot_vm {
	const struct runtime_target *target; /* the caller's */
	uint32_t release;		     /* 8 to 26 */
	uint32_t minor, security, build;     /* 17.0.9+11: 0, 9, 11. 8u422-b05: 0, 422, 5 */
	enum hotspot_layout layout;
	struct hotspot_fields fields;
	struct hotspot_sizes sizes;
	uint32_t const_method_has_lines; /* mask in const_method_flags */
	uint32_t zgc_granule_shift;	 /* ZGranuleSizeShift */
	uint32_t pointer_size;		 /* 8 */

	/* Addresses of static members; 0: not there. */
	uint64_t at_heaps, at_heap; /* CodeCache::_heaps (9 and later), CodeCache::_heap (8) */
	uint64_t at_call_stub_return, at_interpreter, at_deopt_blob, at_cont_return;
	uint64_t at_oop_base, at_oop_shift; /* of compressed pointers to objects */
	uint64_t at_zgc;		    /* ZGlobalsForVMStructs, in every JVM that could */
	uint64_t at_xgc;		    /* XGlobalsForVMStructs, so */
	uint64_t at_collected_heap;	    /* Universe::_collectedHeap */
	uint64_t at_vm_classes;		    /* vmClasses::_klasses (17 and later) */
	uint64_t at_perf_memory;	    /* PerfMemory::_prologue */
	uint64_t at_flags, at_nr_flags;	    /* JVMFlag::flags, a pointer to them; numFlags */
	/* Of versions. */
	uint64_t at_jdk_version, at_major, at_minor, at_security, at_build;

	/* What changes while it runs: hotspot_vm_refresh(). */
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	uint32_t nr_heaps;
	uint64_t call_stub_return; /* StubRoutines::_call_stub_return_address */
	uint64_t interpreter_start, interpreter_end;
	uint64_t deopt_blob;  /* 0 where the tables don't have it (22 and later) */
	uint64_t cont_return; /* ContinuationEntry::_return_pc (25 and later); 0: not yet */

	VEC(struct hotspot_stub) stubs;
};

/*
 * Reads the tables and what stands in them. `target` must outlive `ret`. 0; -EAGAIN: the JVM has
 * not come so far yet; -ENOTSUP: of a release that is not known (ret->release says which, if it
 * could be read) or without a member that nothing works without; -EBADMSG: this makes no sense; or
 * what reading failed with. `ret` is to be given to hotspot_vm_fini() in any case.
 */
int hotspot_vm_read(const struct runtime_target *target, const struct hotspot_symbols *symbols,
		    struct hotspot_vm *ret);
void hotspot_vm_fini(struct hotspot_vm *vm);
/* runtime_ops.knows() */
bool hotspot_knows_release(unsigned int release, unsigned int minor);
/* A type of the tables that has not the members that nothing works without; NULL: all have. */
const char *hotspot_missing(const struct hotspot_vm *vm);
/* Reads anew what changes. 1: something has; 0: nothing; a negative errno as above, vm untouched.
 */
int hotspot_vm_refresh(struct hotspot_vm *vm);

/* ----- readers ----- */

static inline bool hotspot_has(struct hotspot_field f)
{
	return f.size != 0;
}

/* The member of a struct that was copied to `copy`, sign-extended if it is signed; 0 if it is not
 * there or the copy ends before it. */
uint64_t hotspot_get(struct hotspot_field f, const void *copy, size_t size);
static inline int64_t hotspot_get_int(struct hotspot_field f, const void *copy, size_t size)
{
	return (int64_t)hotspot_get(f, copy, size);
}
/* A field out of the process's memory: 0 or a negative errno; -ENOENT if there is no such member.
 */
int hotspot_read(const struct hotspot_vm *vm, struct hotspot_field f, uint64_t addr, uint64_t *ret);
/* A NUL-terminated string of at most size - 1 bytes; cut if longer. Its length or an error. */
ssize_t hotspot_read_string(const struct hotspot_vm *vm, uint64_t addr, char *ret, size_t size);

/*
 * A Symbol as UTF-8, terminated, in `ret`: cut (at a character) if `size` or HOTSPOT_SYMBOL_MAX is
 * too small. The length, or an error.
 */
ssize_t hotspot_read_symbol(const struct hotspot_vm *vm, uint64_t symbol, char *ret, size_t size);
/* Symbol * in entry `index` of a ConstantPool; -EINVAL beyond its length or if it is none. */
int hotspot_read_symbol_at(const struct hotspot_vm *vm, uint64_t constants, uint32_t index,
			   uint64_t *ret);
/*
 * Java's modified UTF-8 (JVM specification 4.4.7: NUL is C0 80, surrogates in three bytes each) ->
 * UTF-8, terminated; what is malformed becomes U+FFFD. `size` > 0. Returns the length.
 */
size_t hotspot_utf8(const void *data, size_t len, char *ret, size_t size);

/* Is option `name` (-XX:+name) on? 0, or a negative errno; -ENOENT if there is none. About 1,500
 * small reads. */
int hotspot_read_flag(const struct hotspot_vm *vm, const char *name, bool *ret);

/* The heap whose reserved range has `addr`, or NULL. */
const struct hotspot_heap *hotspot_find_heap(const struct hotspot_vm *vm, uint64_t addr);
/* The CodeBlob that has `pc`, by its heap's segment map: 0, -ENOENT, or what reading failed with.
 */
int hotspot_find_blob(const struct hotspot_vm *vm, uint64_t pc, uint64_t *ret);
/* Bounds of a blob's code; -EBADMSG if they make no sense. */
int hotspot_read_code(const struct hotspot_vm *vm, uint64_t blob, uint64_t *start_ret,
		      uint64_t *end_ret);
