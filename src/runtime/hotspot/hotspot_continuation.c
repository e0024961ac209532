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
 *
 * And sharedRuntime_aarch64.cpp, where calls of what is far away are adrp; add; blr:
 *
 *	sub  sp, sp, #ContinuationEntry::size()
 *	ldr  x8, [x28, #JavaThread::_cont_entry]
 *	str  x8, [sp, #8]
 *	mov  x8, sp
 *	str  x8, [x28, #JavaThread::_cont_entry]
 *	...
 *	bl   Continuation.enter
 *	nop; movk xzr, #n; movk xzr, #n		post_call_nop()
 *	b    exit
 *	bl   StubRoutines::cont_thaw
 *	nop; movk xzr, #n; movk xzr, #n		<- ContinuationEntry::_return_pc
 * exit:
 */
#include "runtime/hotspot/hotspot_class.h"
#include "runtime/hotspot/hotspot_continuation.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	CODE_MAX = 2048,  /* enterSpecial has about 500 bytes */
	SEARCHES_MAX = 8, /* its class is loaded when the JVM starts */
	CALL_SIZE = 5,
	POST_CALL_NOP_SIZE = 8,
	A64_NOP_SIZE = 12,
};

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static bool is_sane(const struct hotspot_continuation *c)
{
	return c->entry_size >= 32 && c->entry_size <= 256 && c->entry_size % 16 == 0 &&
	       c->thread_cont_entry < 16384 && c->thread_cont_entry % 8 == 0;
}

/* sub rsp, n; then the three moves. */
static bool is_setup_x86(const uint8_t *p, const uint8_t *end, struct hotspot_continuation *ret)
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
	ret->thread_cont_entry = offset;
	ret->entry_size = size;
	return is_sane(ret);
}

static bool is_call(const uint8_t *p)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x84, 0x00 };

	return p[0] == 0xe8 && memcmp(p + CALL_SIZE, nop, sizeof(nop)) == 0;
}

/* The two calls, and a jump behind the second one. */
static bool is_return_x86(const uint8_t *start, const uint8_t *p, const uint8_t *end, uint64_t addr,
			  uint64_t *ret)
{
	const uint8_t *jump = p + CALL_SIZE + POST_CALL_NOP_SIZE, *thaw = jump + 2;

	if (end - p < 2 * (CALL_SIZE + POST_CALL_NOP_SIZE) + 2 || !is_call(p) || jump[0] != 0xeb ||
	    jump[1] != CALL_SIZE + POST_CALL_NOP_SIZE || !is_call(thaw))
		return false;
	*ret = addr + (uint64_t)(thaw - start) + CALL_SIZE;
	return true;
}

static bool is_setup_a64(const uint8_t *p, const uint8_t *end, struct hotspot_continuation *ret)
{
	uint32_t load;

	if (end - p < 5 * 4)
		return false;
	load = u32_at(p + 4);
	if ((u32_at(p) & 0xffc003ff) != 0xd10003ff || (load & 0xffc003ff) != 0xf9400388 ||
	    u32_at(p + 8) != 0xf90007e8 || u32_at(p + 12) != 0x910003e8 ||
	    u32_at(p + 16) != (load & ~0x400000u))
		return false;
	ret->entry_size = u32_at(p) >> 10 & 0xfff;
	ret->thread_cont_entry = 8 * (load >> 10 & 0xfff);
	return is_sane(ret);
}

/* How long the call and the nop behind it are: in *ret the call. false: it is none. */
static bool is_call_a64(const uint8_t *p, const uint8_t *end, ptrdiff_t *ret)
{
	ptrdiff_t size = 4;

	if (end - p < 6 * 4)
		return false;
	if ((u32_at(p) & 0x9f00001f) == 0x90000008 && (u32_at(p + 4) & 0xffc003ff) == 0x91000108 &&
	    u32_at(p + 8) == 0xd63f0100)
		size = 12;
	else if ((u32_at(p) & 0xfc000000) != 0x94000000)
		return false;
	p += size;
	*ret = size;
	return u32_at(p) == 0xd503201f && (u32_at(p + 4) & 0xff80001f) == 0xf280001f &&
	       (u32_at(p + 8) & 0xff80001f) == 0xf280001f;
}

static bool is_return_a64(const uint8_t *start, const uint8_t *p, const uint8_t *end, uint64_t addr,
			  uint64_t *ret)
{
	const uint8_t *jump, *thaw;
	ptrdiff_t size;

	if (!is_call_a64(p, end, &size))
		return false;
	jump = p + size + A64_NOP_SIZE;
	thaw = jump + 4;
	if (end - jump < 4 || !is_call_a64(thaw, end, &size) ||
	    u32_at(jump) != (0x14000000 | (uint32_t)(4 + size + A64_NOP_SIZE) / 4))
		return false;
	*ret = addr + (uint64_t)(thaw - start) + (uint64_t)size;
	return true;
}

static bool is_setup(uint16_t machine, const uint8_t *p, const uint8_t *end,
		     struct hotspot_continuation *ret)
{
	return machine == EM_X86_64 ? is_setup_x86(p, end, ret) : is_setup_a64(p, end, ret);
}

static bool is_return(uint16_t machine, const uint8_t *start, const uint8_t *p, const uint8_t *end,
		      uint64_t addr, uint64_t *ret)
{
	return machine == EM_X86_64 ? is_return_x86(start, p, end, addr, ret)
				    : is_return_a64(start, p, end, addr, ret);
}

int hotspot_decode_enter_special(uint16_t machine, const void *code, size_t size, uint64_t addr,
				 struct hotspot_continuation *ret)
{
	const uint8_t *start = code, *end = start + size, *p = start;
	size_t step = machine == EM_X86_64 ? 1 : 4;
	struct hotspot_continuation found = { 0 }, again = { 0 };

	while (p < end && !is_setup(machine, p, end, &found))
		p += step;
	/* There are two entries (of the interpreter, and of compiled code): they agree. */
	for (; p < end; p += step) {
		if (is_setup(machine, p, end, &again) &&
		    (again.thread_cont_entry != found.thread_cont_entry ||
		     again.entry_size != found.entry_size))
			return -ENOENT;
		if (is_return(machine, start, p, end, addr, &found.return_pc)) {
			ret->thread_cont_entry = found.thread_cont_entry;
			ret->entry_size = found.entry_size;
			ret->return_pc = found.return_pc;
			return 0;
		}
	}
	return -ENOENT;
}

/* ----- in a process ----- */

/* What hotspot_each_field() tells of Continuation and of StackChunk. */
struct fields {
	uint32_t tail, parent, size, sp; /* 0: not seen: there an object's header is */
	uint32_t oops[16];		 /* offsets of fields that are references */
	size_t nr_oops;
};

static int take_field(void *ctx, const char *name, const char *signature, uint32_t offset)
{
	struct fields *f = ctx;
	bool is_oop = signature[0] == 'L' || signature[0] == '[';

	if (offset > 256)
		return -EBADMSG;
	if (is_oop && f->nr_oops < sizeof(f->oops) / sizeof(*f->oops))
		f->oops[f->nr_oops++] = offset;
	if (is_oop && strcmp(name, "tail") == 0)
		f->tail = offset;
	else if (is_oop && strcmp(name, "parent") == 0)
		f->parent = offset;
	else if (strcmp(name, "size") == 0 && strcmp(signature, "I") == 0)
		f->size = offset;
	else if (strcmp(name, "sp") == 0 && strcmp(signature, "I") == 0)
		f->sp = offset;
	return 0;
}

/* References stand side by side: how far apart tells how wide they are. */
static uint8_t oop_size(const struct fields *f)
{
	uint32_t least = 0;

	for (size_t i = 0; i < f->nr_oops; i++) {
		for (size_t k = 0; k < f->nr_oops; k++) {
			if (f->oops[i] > f->oops[k] && (!least || f->oops[i] - f->oops[k] < least))
				least = f->oops[i] - f->oops[k];
		}
	}
	return least == 4 || least == 8 ? (uint8_t)least : 0;
}

/*
 * A chunk's stack begins behind it, at its size as an instance, which is what a class's
 * layout_helper says (oops/klass.hpp; its lowest bit is a flag): see
 * InstanceStackChunkKlass::offset_of_stack().
 */
static void find_chunks(const struct hotspot_vm *vm, uint64_t continuation,
			struct hotspot_continuation *c)
{
	uint64_t chunk = hotspot_find_class(vm, "jdk/internal/vm/StackChunk"), layout;
	struct fields own = { 0 }, of_chunk = { 0 };

	if (!chunk || hotspot_each_field(vm, continuation, take_field, &own) ||
	    hotspot_each_field(vm, chunk, take_field, &of_chunk) ||
	    hotspot_read(vm, vm->fields.klass_layout_helper, chunk, &layout))
		return;
	layout &= ~(uint64_t)7;
	if (!own.tail || !of_chunk.parent || !of_chunk.size || !of_chunk.sp || !oop_size(&own) ||
	    layout < 16 || layout > 256)
		return;
	c->oop_size = oop_size(&own);
	c->tail = (uint16_t)own.tail;
	c->chunk_parent = (uint16_t)of_chunk.parent;
	c->chunk_size = (uint16_t)of_chunk.size;
	c->chunk_sp = (uint16_t)of_chunk.sp;
	c->chunk_stack = (uint16_t)layout;
}

/* The classes are loaded when the JVM starts. */
static void find_classes(const struct hotspot_vm *vm, struct hotspot_continuation *c)
{
	uint64_t klass;

	if (c->nr_searches++ >= SEARCHES_MAX)
		return;
	klass = hotspot_find_class(vm, "jdk/internal/vm/Continuation");
	if (!klass)
		return;
	c->method = hotspot_find_method(vm, klass, "enterSpecial");
	find_chunks(vm, klass, c);
}

void hotspot_find_continuation(const struct hotspot_vm *vm, struct hotspot_continuation *c)
{
	_cleanup_free_ uint8_t *code = NULL;
	uint64_t nmethod = 0, start, end;

	if (vm->release < 19)
		return;
	if (!c->method)
		find_classes(vm, c);
	if (c->return_pc || (hotspot_has(vm->fields.thread_cont_entry) && vm->at_cont_return))
		return;
	if (!c->method || hotspot_read(vm, vm->fields.method_code, c->method, &nmethod) ||
	    !nmethod || hotspot_read_code(vm, nmethod, &start, &end))
		return;
	if (end - start > CODE_MAX)
		end = start + CODE_MAX;
	code = malloc(end - start + 1);
	if (!code || runtime_read(vm->target, start, code, end - start))
		return;
	(void)hotspot_decode_enter_special(vm->target->machine, code, end - start, start, c);
}
