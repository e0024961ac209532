// SPDX-License-Identifier: Apache-2.0
/*
 * V8 15.0.245 on x86-64 without compressed pointers and sandbox, as Deno 2.9 has it. Members: from
 * the classes (src/objects/{js-function,shared-function-info,script,scope-info,bytecode-array,code,
 * instruction-stream,fixed-array,string}.h). Types: of the maps that an isolate of Deno 2.9.6 has
 * as roots (src/roots/roots.h tells which is which), and of objects of each kind in it.
 */
#include "runtime/v8/v8_constants.h"

#include <stddef.h>

static const struct v8_constant of_15_0[] = {
	{ "off_fp_context", -8 },
	{ "off_fp_function", -16 },
	{ "class_Map__instance_type__uint16_t", 12 },
	{ "class_JSFunction__shared__SharedFunctionInfo", 32 },
	{ "type_JSFunction__JS_FUNCTION_TYPE", 2064 },
	{ "class_SharedFunctionInfo__raw_function_token_offset__int16_t", 52 },
	{ "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", 24 },
	{ "class_Script__name__Object", 16 },
	{ "class_Script__line_ends__Object", 56 },
	{ "class_FixedArrayBase__length__SMI", 8 },
	{ "class_FixedArray__data__uintptr_t", 16 },
	{ "class_String__length__int32_t", 12 },
	{ "class_SeqOneByteString__chars__char", 16 },
	{ "class_ConsString__first__String", 16 },
	{ "class_ConsString__second__String", 24 },
	{ "class_ThinString__actual__String", 16 },
	{ "class_SlicedString__parent__String", 16 },
	{ "class_SlicedString__offset__SMI", 24 },
	{ "class_ExternalString__resource__Object", 16 },
	{ "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 278 },
	{ "type_Script__SCRIPT_TYPE", 166 },
	{ "type_ScopeInfo__SCOPE_INFO_TYPE", 276 },
	{ "type_ByteArray__BYTE_ARRAY_TYPE", 218 },
	{ "type_BytecodeArray__BYTECODE_ARRAY_TYPE", 185 },
	{ "type_FixedArray__FIXED_ARRAY_TYPE", 205 },
	{ "type_Code__CODE_TYPE", 186 },
	{ "FirstNonstringType", 128 },
	{ "StringRepresentationMask", 7 },
	{ "OneByteStringTag", 8 },
	{ "ConsStringTag", 1 },
	{ "ExternalStringTag", 2 },
	{ "SlicedStringTag", 3 },
	{ "ThinStringTag", 5 },
	{ "off_fp_bytecode_array", -32 },
	{ "off_fp_bytecode_offset", -40 },
	{ "CodeKindFieldMask", 15 },
	{ "CodeKindBaseline", 11 },
	{ "class_Code__instruction_size__int", 56 },
	{ "class_Code__flags__uint32_t", 52 },
	{ "DeoptimizationDataLiteralArrayIndex", 3 },
	{ "DeoptimizationDataWrappedSharedFunctionInfoIndex", 7 },
	{ "DeoptimizationDataInliningPositionsIndex", 8 },
	{ "class_InstructionStream__instruction_start__uintptr_t", 32 },
	{ "type_InstructionStream__INSTRUCTION_STREAM_TYPE", 192 },
	{ "LastJSFunctionType", 2081 },
	{ "class_Code__wrapper__Tagged_CodeWrapper_", 24 },
	{ "class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_", 16 },
	{ "class_Code__instruction_start__Address", 40 },
	{ "type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", 196 },
	{ "type_ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE", 193 },
	{ "type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE", 195 },
	{ "class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_", 8 },
	{ "type_JSPromise__JS_PROMISE_TYPE", 2120 },
	{ "type_PromiseReaction__PROMISE_REACTION_TYPE", 160 },
	{ "type_PromiseCapability__PROMISE_CAPABILITY_TYPE", 159 },
	{ "type_JSAsyncFunctionObject__JS_ASYNC_FUNCTION_OBJECT_TYPE", 2115 },
	{ "type_JSAsyncGeneratorObject__JS_ASYNC_GENERATOR_OBJECT_TYPE", 2116 },
	{ "type_AsyncGeneratorRequest__ASYNC_GENERATOR_REQUEST_TYPE", 145 },
	{ "class_JSFunction__context__Tagged_Context_", 40 },
	{ "class_SharedFunctionInfo__flags__int", 56 },
	{ "class_SharedFunctionInfo__script__Tagged_HeapObject_", 40 },
	{ "class_Script__source__Object", 8 },
	{ "class_BytecodeArray__data__uintptr_t", 64 },
	{ "type_InterpreterData__INTERPRETER_DATA_TYPE", 187 },
	{ NULL, 0 },
};

/*
 * V8 8.3.110 on x86-64 with compressed pointers, as Electron 9 has it. Types are those that Node.js
 * 14.5 exports, which has the same V8 without compression, and those of objects in Electron 9.4.1.
 * Members: from the classes (src/objects/{js-objects,shared-function-info,script,string,code}.tq,
 * code.h) of 8.2.308 and 8.4.300, and seen in its memory.
 */
static const struct v8_constant of_8_3[] = {
	{ "TaggedSize", 4 },
	{ "SmiShiftSize", 0 },
	{ "off_fp_context", -8 },
	{ "off_fp_function", -16 },
	{ "class_Map__instance_type__uint16_t", 8 },
	{ "class_JSFunction__shared__SharedFunctionInfo", 12 },
	{ "type_JSFunction__JS_FUNCTION_TYPE", 1092 },
	{ "class_SharedFunctionInfo__raw_function_token_offset__int16_t", 24 },
	{ "class_SharedFunctionInfo__name_or_scope_info__Object", 8 },
	{ "class_Script__name__Object", 8 },
	{ "class_Script__line_ends__Object", 28 },
	{ "class_FixedArrayBase__length__SMI", 4 },
	{ "class_FixedArray__data__uintptr_t", 8 },
	{ "class_String__length__int32_t", 8 },
	{ "class_SeqOneByteString__chars__char", 12 },
	{ "class_ConsString__first__String", 12 },
	{ "class_ConsString__second__String", 16 },
	{ "class_ThinString__actual__String", 12 },
	{ "class_SlicedString__parent__String", 12 },
	{ "class_SlicedString__offset__SMI", 16 },
	{ "class_ExternalString__resource__Object", 12 },
	{ "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 170 },
	{ "type_Script__SCRIPT_TYPE", 104 },
	{ "type_ScopeInfo__SCOPE_INFO_TYPE", 129 },
	{ "type_ByteArray__BYTE_ARRAY_TYPE", 131 },
	{ "type_BytecodeArray__BYTECODE_ARRAY_TYPE", 132 },
	{ "type_FixedArray__FIXED_ARRAY_TYPE", 116 },
	{ "type_Code__CODE_TYPE", 155 },
	{ "FirstNonstringType", 64 },
	{ "StringRepresentationMask", 7 },
	{ "OneByteStringTag", 8 },
	{ "ConsStringTag", 1 },
	{ "ExternalStringTag", 2 },
	{ "SlicedStringTag", 3 },
	{ "ThinStringTag", 5 },
	{ "class_Code__instruction_start__uintptr_t", 64 },
	{ "class_Code__instruction_size__int", 20 },
	{ "class_SharedFunctionInfo__flags__int", 28 },
	{ "class_SharedFunctionInfo__script_or_debug_info__HeapObject", 16 },
	{ "class_Script__source__Object", 4 },
	{ "type_InterpreterData__INTERPRETER_DATA_TYPE", 99 },
	{ NULL, 0 },
};

const struct v8_constant *v8_constants_of(uint16_t version, bool tells_version)
{
	if (tells_version)
		return version == 803 ? of_8_3 : NULL;
	return version == 1500 ? of_15_0 : NULL;
}
