// SPDX-License-Identifier: Apache-2.0
/*
 * What is wanted of vmStructs, and what it is called in each release: `git log` of OpenJDK's
 * src/hotspot/share/runtime/vmStructs.cpp has the renames. Where a release has a member of another
 * meaning, it is another member of ours; where it has only another name, it is a further line here.
 */
#include "runtime/hotspot/hotspot_vm_internal.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

struct rule {
	const char *type, *field;
	uint16_t at;   /* in struct hotspot_fields */
	bool embedded; /* a structure, of which only the place is of interest */
};

#define FIELD(name, type, field)                                                                   \
	{                                                                                          \
		type, field, offsetof(struct hotspot_fields, name), false                          \
	}
#define EMBEDDED(name, type, field)                                                                \
	{                                                                                          \
		type, field, offsetof(struct hotspot_fields, name), true                           \
	}

/* Entries of a type stand together. */
static const struct rule rules[] = {
	FIELD(blob_name, "CodeBlob", "_name"),
	FIELD(blob_size, "CodeBlob", "_size"),
	FIELD(blob_header_size, "CodeBlob", "_header_size"),
	FIELD(blob_kind, "CodeBlob", "_kind"),
	FIELD(blob_frame_complete_offset, "CodeBlob", "_frame_complete_offset"),
	FIELD(blob_frame_size, "CodeBlob", "_frame_size"),
	FIELD(blob_data_offset, "CodeBlob", "_data_offset"),
	FIELD(blob_code_begin, "CodeBlob", "_code_begin"),
	FIELD(blob_code_end, "CodeBlob", "_code_end"),
	FIELD(blob_code_offset, "CodeBlob", "_code_offset"),
	FIELD(blob_relocation_size, "CodeBlob", "_relocation_size"),
	FIELD(blob_mutable_data, "CodeBlob", "_mutable_data"),
	FIELD(blob_mutable_data_size, "CodeBlob", "_mutable_data_size"),

	/* Of 9 to 22: the base of nmethod. */
	FIELD(nmethod_method, "CompiledMethod", "_method"),
	FIELD(nmethod_scopes_data_begin, "CompiledMethod", "_scopes_data_begin"),
	FIELD(nmethod_deopt_handler_begin, "CompiledMethod", "_deopt_handler_begin"),
	FIELD(nmethod_deopt_mh_handler_begin, "CompiledMethod", "_deopt_mh_handler_begin"),

	FIELD(nmethod_method, "nmethod", "_method"),
	FIELD(nmethod_compile_id, "nmethod", "_compile_id"),
	FIELD(nmethod_comp_level, "nmethod", "_comp_level"),
	FIELD(nmethod_entry_bci, "nmethod", "_entry_bci"),
	FIELD(nmethod_state, "nmethod", "_state"),
	FIELD(nmethod_orig_pc_offset, "nmethod", "_orig_pc_offset"),
	FIELD(nmethod_deopt_handler_offset, "nmethod", "_deoptimize_offset"),	       /* 8 */
	FIELD(nmethod_deopt_handler_offset, "nmethod", "_deopt_handler_offset"),       /* 23 */
	FIELD(nmethod_deopt_handler_offset, "nmethod", "_deopt_handler_entry_offset"), /* 26 */
	FIELD(nmethod_deopt_mh_handler_offset, "nmethod", "_deoptimize_mh_offset"),    /* 8 */
	FIELD(nmethod_deopt_mh_handler_offset, "nmethod", "_deopt_mh_handler_offset"), /* 23 */
	FIELD(nmethod_deopt_handler_begin, "nmethod", "_deopt_handler_begin"),
	FIELD(nmethod_deopt_mh_handler_begin, "nmethod", "_deopt_mh_handler_begin"),
	FIELD(nmethod_verified_entry_point, "nmethod", "_verified_entry_point"),
	FIELD(nmethod_verified_entry_offset, "nmethod", "_verified_entry_offset"),
	FIELD(nmethod_entry_point, "nmethod", "_entry_point"),
	FIELD(nmethod_entry_offset, "nmethod", "_entry_offset"),
	FIELD(nmethod_consts_offset, "nmethod", "_consts_offset"),
	FIELD(nmethod_stub_offset, "nmethod", "_stub_offset"),
	FIELD(nmethod_exception_offset, "nmethod", "_exception_offset"),
	FIELD(nmethod_oops_offset, "nmethod", "_oops_offset"),
	FIELD(nmethod_metadata_offset, "nmethod", "_metadata_offset"),
	FIELD(nmethod_scopes_data_begin, "nmethod", "_scopes_data_begin"),
	FIELD(nmethod_scopes_data_offset, "nmethod", "_scopes_data_offset"),
	FIELD(nmethod_scopes_pcs_offset, "nmethod", "_scopes_pcs_offset"),
	FIELD(nmethod_dependencies_offset, "nmethod", "_dependencies_offset"),
	FIELD(nmethod_immutable_data, "nmethod", "_immutable_data"),
	FIELD(nmethod_immutable_data_size, "nmethod", "_immutable_data_size"),
	FIELD(nmethod_immutable_data_ref_count_offset, "nmethod",
	      "_immutable_data_ref_count_offset"),
	FIELD(nmethod_speculations_offset, "nmethod", "_speculations_offset"),
	FIELD(nmethod_jvmci_data_size, "nmethod", "_jvmci_data_size"),

	FIELD(pc_desc_pc_offset, "PcDesc", "_pc_offset"),
	FIELD(pc_desc_scope_decode_offset, "PcDesc", "_scope_decode_offset"),

	FIELD(method_const_method, "Method", "_constMethod"),
	FIELD(method_code, "Method", "_code"),
	FIELD(const_method_constants, "ConstMethod", "_constants"),
	FIELD(const_method_size, "ConstMethod", "_constMethod_size"),
	FIELD(const_method_flags, "ConstMethod", "_flags"),
	FIELD(const_method_flags, "ConstMethod", "_flags._flags"), /* 21 */
	FIELD(const_method_code_size, "ConstMethod", "_code_size"),
	FIELD(const_method_name_index, "ConstMethod", "_name_index"),
	FIELD(const_method_signature_index, "ConstMethod", "_signature_index"),
	FIELD(const_method_method_idnum, "ConstMethod", "_method_idnum"),
	FIELD(constants_pool_holder, "ConstantPool", "_pool_holder"),
	FIELD(constants_length, "ConstantPool", "_length"),
	FIELD(constants_source_file_name_index, "ConstantPool", "_source_file_name_index"),
	FIELD(klass_name, "Klass", "_name"),
	FIELD(klass_layout_helper, "Klass", "_layout_helper"),
	FIELD(instance_klass_constants, "InstanceKlass", "_constants"),
	FIELD(instance_klass_methods, "InstanceKlass", "_methods"),
	FIELD(instance_klass_fieldinfo_stream, "InstanceKlass", "_fieldinfo_stream"), /* 21 */
	FIELD(instance_klass_source_file_name_index, "InstanceKlass", "_source_file_name_index"),
	FIELD(symbol_length, "Symbol", "_length"),
	FIELD(symbol_refcount, "Symbol", "_refcount"),
	FIELD(symbol_identity_hash, "Symbol", "_identity_hash"),
	FIELD(symbol_hash_and_refcount, "Symbol", "_hash_and_refcount"),
	FIELD(symbol_length_and_refcount, "Symbol", "_length_and_refcount"),
	EMBEDDED(symbol_body, "Symbol", "_body"),
	EMBEDDED(symbol_body, "Symbol", "_body[0]"),

	FIELD(array_len, "GenericGrowableArray", "_len"),
	FIELD(array_len, "GrowableArrayBase", "_len"), /* 16 */
	FIELD(array_data, "GrowableArray<int>", "_data"),
	EMBEDDED(heap_memory, "CodeHeap", "_memory"),
	EMBEDDED(heap_segmap, "CodeHeap", "_segmap"),
	FIELD(heap_log2_segment_size, "CodeHeap", "_log2_segment_size"),
	FIELD(space_low_boundary, "VirtualSpace", "_low_boundary"),
	FIELD(space_high_boundary, "VirtualSpace", "_high_boundary"),
	FIELD(space_low, "VirtualSpace", "_low"),
	FIELD(space_high, "VirtualSpace", "_high"),
	FIELD(block_length, "HeapBlock::Header", "_length"),
	FIELD(block_used, "HeapBlock::Header", "_used"),
	FIELD(queue_stub_buffer, "StubQueue", "_stub_buffer"),
	FIELD(queue_buffer_limit, "StubQueue", "_buffer_limit"),
	FIELD(codelet_size, "InterpreterCodelet", "_size"),
	FIELD(codelet_description, "InterpreterCodelet", "_description"),
	FIELD(flag_name, "Flag", "_name"), /* to 10 */
	FIELD(flag_name, "JVMFlag", "_name"),
	EMBEDDED(flag_addr, "Flag", "_addr"),
	EMBEDDED(flag_addr, "JVMFlag", "_addr"),
	FIELD(zgc_load_good, "ZGlobalsForVMStructs", "_ZPointerLoadGoodMask"), /* 21 */
	FIELD(zgc_offset_mask, "ZGlobalsForVMStructs", "_ZAddressOffsetMask"),
	FIELD(xgc_weak_bad, "XGlobalsForVMStructs", "_XAddressWeakBadMask"), /* 21, 22 */
	EMBEDDED(zgc_heap, "ZCollectedHeap", "_heap"),
	EMBEDDED(zgc_page_allocator, "ZHeap", "_page_allocator"),
	EMBEDDED(zgc_page_table, "ZHeap", "_page_table"),
	EMBEDDED(zgc_table_map, "ZForwardingTable", "_map"),
	EMBEDDED(zgc_map_entries, "ZGranuleMapForForwarding", "_map"),
	EMBEDDED(zgc_forwarding_start, "ZForwarding", "_virtual"), /* which begins with it */
	EMBEDDED(zgc_forwarding_alignment, "ZForwarding", "_object_alignment_shift"),
	EMBEDDED(zgc_forwarding_entries, "ZForwarding", "_entries"),
	EMBEDDED(zgc_entries_length, "ZAttachedArrayForForwarding", "_length"),
	FIELD(thread_cont_entry, "JavaThread", "_cont_entry"),
	FIELD(thread_saved_pc, "JavaThread", "_saved_exception_pc"),
	FIELD(thread_obj, "JavaThread", "_threadObj"),
	FIELD(thread_vthread, "JavaThread", "_vthread"),
	EMBEDDED(thread_anchor, "JavaThread", "_anchor"),
};

#define STATIC(name, type, field)                                                                  \
	{                                                                                          \
		type, field, offsetof(struct hotspot_vm, name), false                              \
	}

static const struct rule statics[] = {
	STATIC(at_heaps, "CodeCache", "_heaps"),
	STATIC(at_heap, "CodeCache", "_heap"), /* 8 */
	STATIC(at_call_stub_return, "StubRoutines", "_call_stub_return_address"),
	STATIC(at_interpreter, "AbstractInterpreter", "_code"),
	STATIC(at_deopt_blob, "SharedRuntime", "_deopt_blob"),
	STATIC(at_cont_return, "ContinuationEntry", "_return_pc"),
	/* The first element of an array. */
	STATIC(at_vm_classes, "vmClasses",
	       "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]"),
	STATIC(at_zgc, "ZGlobalsForVMStructs", "_instance_p"),
	STATIC(at_xgc, "XGlobalsForVMStructs", "_instance_p"), /* 21, 22 */
	STATIC(at_collected_heap, "Universe", "_collectedHeap"),
	STATIC(at_perf_memory, "PerfMemory", "_prologue"),
	STATIC(at_oop_base, "Universe", "_narrow_oop._base"), /* to 12 */
	STATIC(at_oop_shift, "Universe", "_narrow_oop._shift"),
	STATIC(at_oop_base, "CompressedOops", "_narrow_oop._base"), /* to 24 */
	STATIC(at_oop_shift, "CompressedOops", "_narrow_oop._shift"),
	STATIC(at_oop_base, "CompressedOops", "_base"),
	STATIC(at_oop_shift, "CompressedOops", "_shift"),
	STATIC(at_flags, "Flag", "flags"),
	STATIC(at_flags, "JVMFlag", "flags"),
	STATIC(at_nr_flags, "Flag", "numFlags"),
	STATIC(at_nr_flags, "JVMFlag", "numFlags"),
	STATIC(at_jdk_version, "JDK_Version", "_current"),
	STATIC(at_major, "Abstract_VM_Version", "_vm_major_version"),
	STATIC(at_minor, "Abstract_VM_Version", "_vm_minor_version"),
	STATIC(at_security, "Abstract_VM_Version", "_vm_security_version"),
	STATIC(at_build, "Abstract_VM_Version", "_vm_build_number"),
};

static const struct {
	const char *type;
	uint16_t at;
} sizes[] = {
	{ "HeapBlock", offsetof(struct hotspot_sizes, heap_block) },
	{ "ConstMethod", offsetof(struct hotspot_sizes, const_method) },
	{ "ConstantPool", offsetof(struct hotspot_sizes, constants) },
	{ "PcDesc", offsetof(struct hotspot_sizes, pc_desc) },
	{ "CodeBlob", offsetof(struct hotspot_sizes, blob) },
	{ "nmethod", offsetof(struct hotspot_sizes, nmethod) },
	{ "InterpreterCodelet", offsetof(struct hotspot_sizes, codelet) },
	{ "ContinuationEntry", offsetof(struct hotspot_sizes, cont_entry) },
	{ "Flag", offsetof(struct hotspot_sizes, flag) },
	{ "JVMFlag", offsetof(struct hotspot_sizes, flag) },
	{ "ZHeap", offsetof(struct hotspot_sizes, zgc_heap) },
	{ "ZForwarding", offsetof(struct hotspot_sizes, zgc_forwarding) },
};

enum {
	NR_RULES = sizeof(rules) / sizeof(*rules),
	NR_STATICS = sizeof(statics) / sizeof(*statics),
	NR_SIZES = sizeof(sizes) / sizeof(*sizes),
	OFFSET_MAX = 16384, /* of a member; JavaThread has about 2,000 bytes */
	SIZE_MAX_ = 65536,  /* of a type whose size is wanted */
};

/* C++ types of members that are no pointers. */
static const struct {
	const char *name;
	uint8_t size;
	bool is_signed;
} widths[] = {
	{ "bool", 1, false },
	{ "u1", 1, false },
	{ "uint8_t", 1, false },
	{ "unsigned char", 1, false },
	{ "jbyte", 1, true },
	{ "char", 1, true },
	{ "signed char", 1, true },
	{ "int8_t", 1, true },
	{ "CodeBlobKind", 1, false },
	{ "CompLevel", 1, true }, /* an int before 23: -1 to 4 in any case */
	{ "u2", 2, false },
	{ "uint16_t", 2, false },
	{ "unsigned short", 2, false },
	{ "jushort", 2, false },
	{ "short", 2, true },
	{ "jshort", 2, true },
	{ "int16_t", 2, true },
	{ "u4", 4, false },
	{ "uint", 4, false },
	{ "juint", 4, false },
	{ "uint32_t", 4, false },
	{ "unsigned int", 4, false },
	{ "unsigned", 4, false },
	{ "int", 4, true },
	{ "jint", 4, true },
	{ "int32_t", 4, true },
	{ "address", 8, false },
	{ "size_t", 8, false },
	{ "uintptr_t", 8, false },
	{ "uint64_t", 8, false },
	{ "uintx", 8, false },
	{ "unsigned long", 8, false },
	{ "intptr_t", 8, true },
	{ "intx", 8, true },
	{ "long", 8, true },
	{ "jlong", 8, true },
	{ "int64_t", 8, true },
	{ "oop", 8, false },
	{ "OopHandle", 8, false },
};

static struct hotspot_field make_field(const struct hotspot_member *member, bool embedded)
{
	struct hotspot_field field = { .offset = (uint32_t)member->offset };
	const char *type = member->type_string;
	size_t len = strlen(type);

	if (member->offset > OFFSET_MAX)
		return (struct hotspot_field){ 0 };
	if (strncmp(type, "volatile ", 9) == 0)
		type += 9, len -= 9;
	if (embedded || (len && type[len - 1] == '*')) {
		field.size = 8;
		return field;
	}
	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		if (strcmp(widths[i].name, type) == 0) {
			field.size = widths[i].size;
			field.is_signed = widths[i].is_signed;
			return field;
		}
	}
	return (struct hotspot_field){ 0 }; /* what it has become, nobody here knows */
}

static const struct rule *find_rule(const struct rule *table, size_t nr, const char *type,
				    const char *field)
{
	for (size_t i = 0; i < nr; i++) {
		if (strcmp(table[i].type, type) == 0 && strcmp(table[i].field, field) == 0)
			return &table[i];
	}
	return NULL;
}

bool hotspot_wants_type(const char *type)
{
	for (size_t i = 0; i < NR_RULES; i++) {
		if (strcmp(rules[i].type, type) == 0)
			return true;
	}
	for (size_t i = 0; i < NR_STATICS; i++) {
		if (strcmp(statics[i].type, type) == 0)
			return true;
	}
	return false;
}

bool hotspot_wants_member(const struct hotspot_member *member)
{
	if (member->is_static)
		return strcmp(member->type, "StubRoutines") == 0 ||
		       find_rule(statics, NR_STATICS, member->type, member->field);
	return find_rule(rules, NR_RULES, member->type, member->field);
}

static int take_stub(struct hotspot_vm *vm, const struct hotspot_member *member)
{
	_cleanup_free_ char *name = NULL;
	struct hotspot_stub stub;
	int r;

	if (strcmp(member->type_string, "address") != 0 || vm->stubs.nr >= HOTSPOT_STUBS_MAX)
		return 0;
	name = strdup(member->field[0] == '_' ? member->field + 1 : member->field);
	if (!name)
		return -ENOMEM;
	stub = (struct hotspot_stub){ .name = name, .addr = member->address };
	r = vec_push(&vm->stubs, stub);
	if (!r)
		name = NULL; /* the vector's */
	return r;
}

int hotspot_take_member(struct hotspot_vm *vm, const struct hotspot_member *member)
{
	const struct rule *rule;
	struct hotspot_field *field;

	if (member->is_static) {
		rule = find_rule(statics, NR_STATICS, member->type, member->field);
		if (rule)
			*(uint64_t *)((char *)vm + rule->at) = member->address;
		return strcmp(member->type, "StubRoutines") == 0 ? take_stub(vm, member) : 0;
	}
	rule = find_rule(rules, NR_RULES, member->type, member->field);
	if (!rule)
		return 0;
	field = (struct hotspot_field *)((char *)&vm->fields + rule->at);
	if (!hotspot_has(*field))
		*field = make_field(member, rule->embedded);
	return 0;
}

void hotspot_take_size(struct hotspot_vm *vm, const char *type, uint64_t size)
{
	for (size_t i = 0; i < NR_SIZES; i++) {
		if (strcmp(sizes[i].type, type) == 0 && size <= SIZE_MAX_)
			*(uint32_t *)((char *)&vm->sizes + sizes[i].at) = (uint32_t)size;
	}
}

void hotspot_take_constant(struct hotspot_vm *vm, const char *name, uint64_t value)
{
	if (strcmp(name, "ConstMethod::_has_linenumber_table") == 0 ||
	    strcmp(name, "ConstMethodFlags::_misc_has_linenumber_table") == 0) /* 21 */
		vm->const_method_has_lines = (uint32_t)value;
	else if (strcmp(name, "ZGranuleSizeShift") == 0)
		vm->zgc_granule_shift = (uint32_t)value;
}

static bool code_can_be_found(const struct hotspot_vm *vm)
{
	const struct hotspot_fields *f = &vm->fields;

	return (vm->at_heap ||
		(vm->at_heaps && hotspot_has(f->array_len) && hotspot_has(f->array_data))) &&
	       hotspot_has(f->heap_memory) && hotspot_has(f->heap_segmap) &&
	       hotspot_has(f->heap_log2_segment_size) && hotspot_has(f->space_low_boundary) &&
	       hotspot_has(f->space_high_boundary) && hotspot_has(f->space_low) &&
	       vm->sizes.heap_block;
}

const char *hotspot_missing(const struct hotspot_vm *vm)
{
	const struct hotspot_fields *f = &vm->fields;

	if (!code_can_be_found(vm))
		return "CodeHeap";
	if (!hotspot_has(f->blob_name) || !hotspot_has(f->blob_size) ||
	    !hotspot_has(f->blob_frame_size) || !hotspot_has(f->blob_frame_complete_offset) ||
	    !hotspot_has(f->blob_data_offset) ||
	    (!hotspot_has(f->blob_code_begin) && !hotspot_has(f->blob_code_offset)))
		return "CodeBlob";
	if (!hotspot_has(f->nmethod_method) || !hotspot_has(f->nmethod_compile_id) ||
	    !hotspot_has(f->nmethod_orig_pc_offset) ||
	    (!hotspot_has(f->nmethod_deopt_handler_begin) &&
	     !hotspot_has(f->nmethod_deopt_handler_offset)))
		return "nmethod";
	if (!hotspot_has(f->method_const_method) || !hotspot_has(f->const_method_constants) ||
	    !hotspot_has(f->const_method_code_size) || !hotspot_has(f->const_method_name_index) ||
	    !vm->sizes.const_method)
		return "Method";
	if (!hotspot_has(f->constants_pool_holder) || !vm->sizes.constants ||
	    !hotspot_has(f->klass_name))
		return "ConstantPool";
	if (!hotspot_has(f->symbol_body) ||
	    (!hotspot_has(f->symbol_length) && !hotspot_has(f->symbol_length_and_refcount)))
		return "Symbol";
	if (!vm->at_call_stub_return || !vm->at_interpreter || !hotspot_has(f->queue_stub_buffer) ||
	    !hotspot_has(f->queue_buffer_limit))
		return "AbstractInterpreter";
	return NULL;
}
