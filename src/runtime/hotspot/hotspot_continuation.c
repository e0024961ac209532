// SPDX-License-Identifier: Apache-2.0
/*
 * Continuation.enterSpecial, as sharedRuntime_x86_64.cpp writes it (gen_continuation_enter(),
 * continuation_enter_setup()), JDK 19 to 27:
 *
 *	sub  rsp, ContinuationEntry::size()
 *	mov  rax, [r15 + JavaThread::_cont_entry]
 *	mov  [rsp + 8], rax			ContinuationEntry::_parent
 *	mov  [r15 + JavaThread::_cont_entry], rsp
 *	...
 *	call Continuation.enter
 *	nop  dword [rax + rax + n]		post_call_nop()
 *	jmp  exit
 *	call StubRoutines::cont_thaw
 *	nop  dword [rax + rax + n]		<- ContinuationEntry::_return_pc
 * exit:
 */
#include "runtime/hotspot/hotspot_continuation.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	CODE_MAX = 2048,      /* enterSpecial has about 500 bytes */
	VM_CLASSES_MAX = 256, /* there are 110 to 140 */
	METHODS_MAX = 512,    /* of Continuation, which has about 60 */
	SEARCHES_MAX = 8,     /* its class is loaded when the JVM starts */
	CALL_SIZE = 5,
	POST_CALL_NOP_SIZE = 8,
};

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* sub rsp, n; then the three moves. */
static bool is_setup(const uint8_t *p, const uint8_t *end, struct hotspot_continuation *ret)
{
	static const uint8_t store_parent[] = { 0x48, 0x89, 0x44, 0x24, 0x08 };
	uint32_t size, offset;

	if (end - p < 7 + 7 + 5 + 7 || p[0] != 0x48 || (p[1] != 0x83 && p[1] != 0x81) ||
	    p[2] != 0xec)
		return false;
	size = p[1] == 0x83 ? p[3] : u32_at(p + 3);
	p += p[1] == 0x83 ? 4 : 7;
	if (p[0] != 0x49 || p[1] != 0x8b || p[2] != 0x87)
		return false;
	offset = u32_at(p + 3);
	p += 7;
	if (memcmp(p, store_parent, sizeof(store_parent)) != 0)
		return false;
	p += sizeof(store_parent);
	if (p[0] != 0x49 || p[1] != 0x89 || p[2] != 0xa7 || u32_at(p + 3) != offset)
		return false;
	if (size < 32 || size > 256 || size % 16 || offset >= 16384 || offset % 8)
		return false;
	ret->thread_cont_entry = offset;
	ret->entry_size = size;
	return true;
}

static bool is_call(const uint8_t *p)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x84, 0x00 };

	return p[0] == 0xe8 && memcmp(p + CALL_SIZE, nop, sizeof(nop)) == 0;
}

/* The two calls, and a jump behind the second one. */
static bool is_return(const uint8_t *start, const uint8_t *p, const uint8_t *end, uint64_t addr,
		      uint64_t *ret)
{
	const uint8_t *jump = p + CALL_SIZE + POST_CALL_NOP_SIZE, *thaw = jump + 2;

	if (end - p < 2 * (CALL_SIZE + POST_CALL_NOP_SIZE) + 2 || !is_call(p) || jump[0] != 0xeb ||
	    jump[1] != CALL_SIZE + POST_CALL_NOP_SIZE || !is_call(thaw))
		return false;
	*ret = addr + (uint64_t)(thaw - start) + CALL_SIZE;
	return true;
}

int hotspot_decode_enter_special(const void *code, size_t size, uint64_t addr,
				 struct hotspot_continuation *ret)
{
	const uint8_t *start = code, *end = start + size, *p = start;
	struct hotspot_continuation found = { 0 }, again = { 0 };

	while (p < end && !is_setup(p, end, &found))
		p++;
	/* There are two entries (of the interpreter, and of compiled code): they agree. */
	for (; p < end; p++) {
		if (is_setup(p, end, &again) &&
		    (again.thread_cont_entry != found.thread_cont_entry ||
		     again.entry_size != found.entry_size))
			return -ENOENT;
		if (is_return(start, p, end, addr, &found.return_pc)) {
			ret->thread_cont_entry = found.thread_cont_entry;
			ret->entry_size = found.entry_size;
			ret->return_pc = found.return_pc;
			return 0;
		}
	}
	return -ENOENT;
}

/* ----- its Method ----- */

static bool is_symbol(const struct hotspot_vm *vm, uint64_t symbol, const char *want)
{
	char name[64];

	return hotspot_read_symbol(vm, symbol, name, sizeof(name)) >= 0 && strcmp(name, want) == 0;
}

/* vmClasses::_klasses, by the address of its first one: the classes that the JVM itself knows. */
static uint64_t find_class(const struct hotspot_vm *vm, const char *want)
{
	for (uint32_t i = 0; i < VM_CLASSES_MAX; i++) {
		uint64_t klass, name;

		if (runtime_read(vm->target, vm->at_vm_classes + 8 * i, &klass, sizeof(klass)))
			return 0;
		if (klass && !hotspot_read(vm, vm->fields.klass_name, klass, &name) &&
		    is_symbol(vm, name, want))
			return klass;
	}
	return 0;
}

static bool is_method(const struct hotspot_vm *vm, uint64_t method, const char *want)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t const_method, constants, index, name;

	return !hotspot_read(vm, f->method_const_method, method, &const_method) &&
	       !hotspot_read(vm, f->const_method_constants, const_method, &constants) &&
	       !hotspot_read(vm, f->const_method_name_index, const_method, &index) &&
	       !hotspot_read_symbol_at(vm, constants, (uint32_t)index, &name) &&
	       is_symbol(vm, name, want);
}

/* Array<Method*> (oops/array.hpp): an int, its length, and from byte 8 on the pointers. */
static uint64_t find_method(const struct hotspot_vm *vm, uint64_t klass, const char *want)
{
	uint64_t array, method;
	int32_t length;

	if (hotspot_read(vm, vm->fields.instance_klass_methods, klass, &array) ||
	    runtime_read(vm->target, array, &length, sizeof(length)))
		return 0;
	for (int32_t i = 0; i < length && i < METHODS_MAX; i++) {
		if (runtime_read(vm->target, array + 8 + 8 * (uint64_t)i, &method, sizeof(method)))
			return 0;
		if (is_method(vm, method, want))
			return method;
	}
	return 0;
}

static void find_enter_special(const struct hotspot_vm *vm, struct hotspot_continuation *c)
{
	uint64_t klass;

	if (c->nr_searches++ >= SEARCHES_MAX)
		return;
	klass = find_class(vm, "jdk/internal/vm/Continuation");
	if (klass)
		c->method = find_method(vm, klass, "enterSpecial");
}

void hotspot_find_continuation(const struct hotspot_vm *vm, struct hotspot_continuation *c)
{
	_cleanup_free_ uint8_t *code = NULL;
	uint64_t nmethod = 0, start, end;

	if (c->return_pc || vm->release < 19 || vm->target->machine != EM_X86_64 ||
	    (hotspot_has(vm->fields.thread_cont_entry) && vm->at_cont_return) || !vm->at_vm_classes)
		return;
	if (!c->method)
		find_enter_special(vm, c);
	if (!c->method || hotspot_read(vm, vm->fields.method_code, c->method, &nmethod) ||
	    !nmethod || hotspot_read_code(vm, nmethod, &start, &end))
		return;
	if (end - start > CODE_MAX)
		end = start + CODE_MAX;
	code = malloc(end - start + 1);
	if (!code || runtime_read(vm->target, start, code, end - start))
		return;
	(void)hotspot_decode_enter_special(code, end - start, start, c);
}
