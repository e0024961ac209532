/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What HotSpot's step in the kernel and its agent exchange: the record that says where a JVM has
 * its code and its members, the words of a frame, and the cookie that tells Methods apart.
 *
 * The record is filled by attach() and refresh() (hotspot.c) out of vmStructs (hotspot_vm.h); the
 * words are made by hotspot.bpf.c and named by hotspot_names.c.
 */
#pragma once

#include "abi/sample.h"

/* --- the record ------------------------------------------------------------------------------ */

enum {
	HOTSPOT_HEAPS = 8,
	/* Bytes of a CodeBlob that are read at once: every field below lies in them. */
	HOTSPOT_HEADER_SIZE = 504,
};

/* Where something stands in a structure. size 0: this JVM has no such thing. */
struct hotspot_at {
	__u16 offset;
	__u8 size; /* 1, 2, 4 or 8 */
	__u8 is_signed;
};

/*
 * A Symbol. Its 2 bytes of length must lie in the first 8 bytes; its body begins in them or behind
 * (at 8 up to JDK 8). `mask`: bits of those 8 bytes that never change: not the reference count.
 */
struct hotspot_symbol_layout {
	__u64 mask;
	__u8 length, body; /* offsets */
	__u8 pad_[6];
};

/* A CodeHeap. `low`: where its segment 0 begins. */
struct hotspot_code_heap {
	__u64 start, end; /* reserved */
	__u64 low;
	__u64 segmap; /* a byte a segment: 0 where a block begins, 0xff where there is none, else
			 how far to go back at least */
	__u32 log2_segment_size;
	__u32 block_header; /* bytes before the CodeBlob: sizeof(HeapBlock) */
};

/*
 * Generational ZGC: references are coloured (zAddress.hpp): the object's address is shifted to the
 * left, and one of four bits below says since which collections of the young and of the old
 * generation it is right. A reference of an older colour may lead to where an object was before it
 * was moved; a table a generation has a ZForwarding for each granule out of which it moved objects
 * last, and that where each one went.
 */
struct hotspot_zgc {
	__u64 good; /* the address of ZPointerLoadGoodMask: the colour of now; 0: not ZGC */
	/* Without generations (21, 22): the address of XAddressWeakBadMask. References have colours
	 * in bits that the memory's mapping does not mind; one with none of these is right. */
	__u64 weak_bad;
	__u64 offset_mask;   /* of an address: ZAddressOffsetMask */
	__u64 young, old;    /* ZForwarding *[granules] */
	__u64 granules;	     /* of addresses */
	__u16 granule_shift; /* a granule's size */
	/* Of a ZForwarding: the start as an offset, an object's alignment as a shift, the number of
	 * entries, and where these begin. */
	__u16 start, alignment, length;
	__u16 entries;
	__u16 pad_[3];
};

struct hotspot_record {
	struct hotspot_code_heap heaps[HOTSPOT_HEAPS]; /* those behind nr_heaps are zero */
	__u64 code_start, code_end;		       /* all heaps lie within; gaps are possible */
	/* The code of the blob "Interpreter": StubQueue's buffer of AbstractInterpreter::_code. */
	__u64 interpreter_start, interpreter_end;
	/* Its codelets whose description contains "method entry point" (24 and later have "native
	 * method entry point" as well): from the first one's start to the last one's end. 0: not
	 * known. */
	__u64 entries_start, entries_end;
	__u64 call_stub_return; /* StubRoutines::_call_stub_return_address; 0: not known */
	/* ContinuationEntry::_return_pc: the address in enterSpecial where mounted continuations
	 * return to; 0: none. */
	__u64 cont_return;
	/* Addresses of the strings "nmethod" and "native nmethod", which CodeBlob::_name of these
	 * has; 0: not known (the step reads the names, then). */
	__u64 name_nmethod, name_native;

	__u16 release;	       /* 8 to 28 */
	__u16 thread_saved_pc; /* JavaThread::_saved_exception_pc */
	__u32 nr_heaps;
	__u32 header_size; /* bytes to read of a CodeBlob: all the blob_* and nmethod_* end before;
			      a multiple of 8, at most HOTSPOT_HEADER_SIZE */
	/* Bytes from an interpreter frame's fp down to its slot of the bytecode pointer. x86-64:
	 * 56 up to JDK 8, then 64. aarch64: 56 up to 8, then 72 (frame_x86.hpp, frame_aarch64.hpp).
	 */
	__u32 interpreter_bcp;

	/* CodeBlob. code_begin: 8 bytes: a pointer; else an offset from the blob. */
	struct hotspot_at blob_name, blob_size, blob_frame_complete, blob_frame_size;
	struct hotspot_at blob_code_begin;
	/* nmethod. deopt_handler, deopt_mh_handler: 8 bytes: a pointer; else an offset from the
	 * nmethod itself. */
	struct hotspot_at nmethod_method, nmethod_compile_id, nmethod_orig_pc;
	struct hotspot_at nmethod_deopt_handler, nmethod_deopt_mh_handler;

	__u16 method_const;	/* Method::_constMethod */
	__u16 const_constants;	/* ConstMethod::_constants */
	__u16 const_code_size;	/* ConstMethod::_code_size, 2 bytes */
	__u16 const_name_index; /* ConstMethod::_name_index, 2 bytes */
	__u16 const_size;	/* ConstMethod::_constMethod_size, 4 bytes */
	__u16 const_codes;	/* sizeof(ConstMethod): bytecodes begin there */
	__u16 constants_holder; /* ConstantPool::_pool_holder */
	__u16 constants_size;	/* sizeof(ConstantPool): its entries begin there, 8 bytes each */
	__u16 klass_name;	/* Klass::_name */
	/* JavaThread::_cont_entry, and sizeof(ContinuationEntry) rounded up to 16 (its frame
	 * pointer stands behind it: ContinuationEntry::entry_fp()). 0: none. */
	__u16 thread_cont_entry;
	__u16 cont_entry_size;
	/*
	 * A block of a code heap that is used and whose blob has the name and the compile_id of an
	 * nmethod that was seen there is that nmethod: so many bytes from the block's begin on are
	 * read to see that (0: it is not known how), and where these three are in them. `used` is a
	 * byte (HeapBlock::Header::_used): what lies in a block that was freed stays as it was.
	 */
	__u16 proof_size;
	struct hotspot_symbol_layout symbol;

	/*
	 * Stack chunks: frames of virtual threads that wait in the heap to be returned to (19 and
	 * later). Offsets of ContinuationEntry::_chunk or of jdk.internal.vm.Continuation.tail
	 * (by _cont), and of jdk.internal.vm.StackChunk's own; chunk_stack 0: not known, such
	 * frames are left out with a note.
	 */
	__u64 oop_base; /* compressed oops: base + (narrow << oop_shift) */
	__u8 oop_shift;
	__u8 oop_size; /* 4: compressed; 8 */
	__u16 cont_entry_cont;
	__u16 continuation_tail;
	__u16 chunk_parent, chunk_size, chunk_sp;
	__u16 proof_used;
	__u16 chunk_stack; /* where its stack begins: sizeof its header */

	/*
	 * Names of virtual threads (--threads virtual). A mounted continuation leads to its thread:
	 * Continuation.target is an object of a class of two fields, of which one is the
	 * VirtualThread whose `cont` is that continuation.
	 */
	__u16 virtual_threads;	   /* enum hotspot_virtual_threads */
	__u16 continuation_target; /* offsets of fields; target_fields: where the object's begin */
	__u16 target_fields;
	__u16 virtual_cont; /* of java.lang.VirtualThread */
	__u16 thread_tid, thread_name;
	__u16 string_value, string_coder;
	__u16 bytes_length, bytes_data; /* of a byte[] */
	__u16 proof_name, proof_id;
	struct hotspot_zgc zgc;
	/* The address of a number that changes whenever a VM operation has ended
	 * (hotspot_operations.h); 0: not known. */
	__u64 operations;
};
_Static_assert(sizeof(struct hotspot_record) <= RUNTIME_RECORD_MAX, "it is a runtime's record");
_Static_assert(sizeof(struct hotspot_record) % 8 == 0, "no hidden padding");

enum hotspot_virtual_threads {
	HOTSPOT_VIRTUAL_NOT_WANTED = 0,
	HOTSPOT_VIRTUAL_UNKNOWN = 1, /* wanted, but it is not known how to find them */
	HOTSPOT_VIRTUAL_NAMED = 2,
};

/* --- frame words ----------------------------------------------------------------------------- */

/*
 * FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(kind, address)), and one word:
 *
 *   INTERPRETED  address: Method.            word: cookie << 32 | bci
 *   COMPILED     address: nmethod.           word: compile_id << 32 | pc - code begin
 *   NATIVE       address: nmethod, of the wrapper of a native method; word as COMPILED
 *   STUB         address: CodeBlob.          word: hash of _name and _size << 32 | pc - code begin
 *
 * FRAME(RUNTIME_HOTSPOT, HOTSPOT_VIRTUAL_WORDS, HOTSPOT_FRAME(HOTSPOT_VIRTUAL, what)) is no frame
 * but says whose frames those behind it are, a virtual thread's; `what` is HOTSPOT_VIRTUAL_NAME()
 * and the words have the name, as it is in the heap; without a name the first one has Thread.tid.
 * what 0: not known.
 *
 * pc is where the frame's code goes on: the return address of a caller, as PcDescs have it, and the
 * pc itself if the frame was interrupted, which HOTSPOT_INTERRUPTED says.
 */
enum hotspot_kind {
	HOTSPOT_INTERPRETED = 1,
	HOTSPOT_COMPILED = 2,
	HOTSPOT_NATIVE = 3,
	HOTSPOT_STUB = 4,
	HOTSPOT_VIRTUAL = 5,
	HOTSPOT_INTERRUPTED = 8, /* a bit beside the kind */
};
#define HOTSPOT_ADDRESS_MASK		((1ull << 48) - 1)
#define HOTSPOT_FRAME(kind, address)	(((__u64)(kind) << 48) | ((address)&HOTSPOT_ADDRESS_MASK))
#define HOTSPOT_FRAME_KIND(data)	((__u32)((data) >> 48) & 7)
#define HOTSPOT_FRAME_INTERRUPTED(data) (((data) >> 48 & HOTSPOT_INTERRUPTED) != 0)
#define HOTSPOT_FRAME_ADDRESS(data)	((data)&HOTSPOT_ADDRESS_MASK)
#define HOTSPOT_WORD(check, where)	((__u64)(check) << 32 | (__u32)(where))
#define HOTSPOT_WORD_CHECK(word)	((__u32)((word) >> 32))
#define HOTSPOT_WORD_WHERE(word)	((__u32)(word))
/* bci of an interpreted frame that is not in bytecodes: a native method, or one being entered. */
#define HOTSPOT_NO_BCI 0xffff

/* A name that has no more than `size` bytes in these words: all of it, unless `cut`. */
enum { HOTSPOT_VIRTUAL_WORDS = 8, HOTSPOT_VIRTUAL_NAME_MAX = 8 * HOTSPOT_VIRTUAL_WORDS };
#define HOTSPOT_VIRTUAL_NAME(size, utf16, cut)                                                     \
	(1 << 10 | (cut) << 9 | (utf16) << 8 | (size)) /* known; numbers and booleans */
#define HOTSPOT_VIRTUAL_IS_KNOWN(what) (((what) >> 10 & 1) != 0)
#define HOTSPOT_VIRTUAL_IS_CUT(what)   (((what) >> 9 & 1) != 0)
#define HOTSPOT_VIRTUAL_IS_UTF16(what) (((what) >> 8 & 1) != 0)
#define HOTSPOT_VIRTUAL_SIZE(what)     ((__u32)(what)&255)

/* --- which Method it is ---------------------------------------------------------------------- */

enum {
	HOTSPOT_CLASS_NAME = 64,   /* bytes of the class's name; of longer ones also the last 8 */
	HOTSPOT_CONST_METHOD = 64, /* of a ConstMethod: all const_* lie in them */
};

/*
 * What a Method hangs on, as it is in memory. Unloaded classes leave addresses to others: all of
 * them together are hardly the same again. `method`: hotspot_method_id(). `tail`: the last 8 bytes
 * of a class's name that is longer than what `symbol` has of it.
 */
struct hotspot_identity {
	__u64 const_method;
	__u64 constants;
	__u64 holder;
	__u64 method;
	__u64 method_name; /* Symbol */
	__u64 name;	   /* Symbol of the class's */
	__u64 symbol[1 + HOTSPOT_CLASS_NAME / 8];
	__u64 tail;
};

/* A ConstMethod's own: sizes of its bytecodes and of all of it, where its name is. */
static inline __u64 hotspot_method_id(__u16 code_size, __u16 name_index, __u32 size)
{
	return code_size | (__u32)name_index << 16 | (__u64)size << 32;
}

static inline __u32 hotspot_symbol_length(const struct hotspot_symbol_layout *layout, __u64 head)
{
	return (__u16)(head >> 8 * (layout->length & 7));
}

/* How many bytes of a Symbol are looked at, of which `head` are the first 8. */
static inline __u32 hotspot_symbol_used(const struct hotspot_symbol_layout *layout, __u64 head)
{
	__u32 length = hotspot_symbol_length(layout, head);

	return layout->body + (length < HOTSPOT_CLASS_NAME ? length : HOTSPOT_CLASS_NAME);
}

static inline __u64 hotspot_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

/* What of an identity is its class's: many methods of a stack have the same. */
static inline __u64 hotspot_class_hash(const struct hotspot_identity *id,
				       const struct hotspot_symbol_layout *layout)
{
	__u32 used = hotspot_symbol_used(layout, id->symbol[0]), i;
	__u64 hash = 1;

	hash = hotspot_mix(hash, id->constants);
	hash = hotspot_mix(hash, id->holder);
	hash = hotspot_mix(hash, id->name);
	/* The first 8 bytes are always there: Symbols are made of whole words. */
	hash = hotspot_mix(hash, id->symbol[0] & layout->mask);
	/* Bytes behind its body are somebody else's. */
	for (i = 1; i <= HOTSPOT_CLASS_NAME / 8 && 8 * i < used; i++)
		hash = hotspot_mix(hash, 8 * i + 8 <= used
						 ? id->symbol[i]
						 : id->symbol[i] & ~0ull >> (64 - 8 * (used & 7)));
	if (hotspot_symbol_length(layout, id->symbol[0]) > HOTSPOT_CLASS_NAME)
		hash = hotspot_mix(hash, id->tail);
	return hash;
}

static inline __u32 hotspot_method_cookie(const struct hotspot_identity *id, __u64 class_hash)
{
	__u64 hash = hotspot_mix(class_hash, id->const_method);

	hash = hotspot_mix(hash, id->method);
	return (__u32)hotspot_mix(hash, id->method_name);
}

static inline __u32 hotspot_cookie(const struct hotspot_identity *id,
				   const struct hotspot_symbol_layout *layout)
{
	return hotspot_method_cookie(id, hotspot_class_hash(id, layout));
}

/* Of a STUB: the blob's _name (the pointer) and _size. */
static inline __u32 hotspot_stub_check(__u64 name, __u32 size)
{
	return (__u32)hotspot_mix(hotspot_mix(2, name), size);
}
