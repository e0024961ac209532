/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What attach() tells the step of a process that runs PHP, what the step's frames are made of, and
 * what tells one function from another.
 *
 * Words of a frame: data = address of the zend_function | enum php_code << 48; word 1 = identity
 * << 32 | number of the instruction in its op_array (~0: not known, or none).
 *
 * A closure has a copy of its function, which goes with it, often before anybody could read it.
 * What the copies of one declaration share stays as long as that: PHP_CODE_COPY, data = address of
 * its instructions, words from PHP_WORD_NAME on = addresses of strings, and the lines. Code of a
 * file that opcache keeps is run as such a copy, too: PHP_CODE_KEPT. Read first: php.bpf.c.
 */
#pragma once

#include "runtime/thread_key.h"

#include <linux/types.h>

/* Code that is no function's: what runs it. */
enum php_code {
	PHP_CODE_MAIN, /* or it is a function */
	PHP_CODE_EVAL,
	PHP_CODE_INCLUDE,
	PHP_CODE_INCLUDE_ONCE,
	PHP_CODE_REQUIRE,
	PHP_CODE_REQUIRE_ONCE,
	PHP_CODE_COPY,	   /* a function, too */
	PHP_CODE_KEPT = 8, /* a bit: such code */
};
enum { PHP_CODE_SHIFT = 48 };

/* Words of a frame. */
enum {
	PHP_WORD_HEADER,
	PHP_WORD_PLACE, /* identity, instruction */
	PHP_FRAME_WORDS,
	PHP_WORD_NAME = PHP_FRAME_WORDS, /* 0: code of a file */
	PHP_WORD_CLASS,			 /* its name; 0: none */
	PHP_WORD_FILE,
	PHP_WORD_LINES, /* as in the op_array: the first; above it, the last */
	PHP_COPY_WORDS,
};

/* PHP's Zend/zend_compile.h; the same from 7.3 to 8.5. Bytes. */
enum {
	PHP_FRAME_SIZE = 56, /* of zend_execute_data, as much as is read */
	PHP_FRAME_OPLINE = 0,
	PHP_FRAME_FUNC = 24,
	PHP_FRAME_THIS = 32,
	PHP_FRAME_CALL_INFO = 40,
	PHP_FRAME_PREVIOUS = 48,
	PHP_CALL_TOP = 1 << 17,
	PHP_INTERNAL_FUNCTION = 1,
	PHP_USER_FUNCTION = 2,
	PHP_EVAL_CODE = 4,
	PHP_FUNCTION_SIZE = 192, /* of zend_function, as much as is read */
	PHP_FUNCTION_FLAGS = 4,	 /* 32 bits */
	PHP_FUNCTION_NAME = 8,
	PHP_FUNCTION_SCOPE = 16,
	PHP_OP_SIZE = 32,
	PHP_OP_TAIL = 16, /* where the half of it begins that is read: */
	PHP_OP_EXTENDED = 20,
	PHP_OP_LINE = 24,
	PHP_OP_CODE = 28,
	PHP_OP_INCLUDE_OR_EVAL = 73,
	/* zend_string: in the flags of its type, which stand at 4 */
	PHP_STRING_INTERNED = 1 << 6,  /* for a request, */
	PHP_STRING_PERMANENT = 1 << 8, /* or for longer */
	PHP_STRING_HASH = 8,
	PHP_STRING_LENGTH = 16,
	PHP_STRING_TEXT = 24,
	PHP_CLASS_NAME = 8,
	PHP_GAPS_MAX = 8,
	PHP_PUSHED_MAX = 6,
	PHP_CALLERS_MAX = 32,
};
enum php_flag {
	PHP_ONE_REQUEST = 1 << 0, /* whatever is interned stays so */
};
#define PHP_NO_OP (~(__u32)0)

/* Where a zend_op_array has what differs by version; bytes, multiples of 4 or 8. */
struct php_layout {
	__u16 last; /* 32 bits: the number of its instructions */
	__u16 opcodes;
	__u16 filename;
	__u16 lines; /* 32 bits: the first; behind it, the last */
	/* Likewise in struct _zend_generator: execute_data, node.parent, execute_fake. */
	__u16 generator_frame, generator_parent, generator_placeholder;
	/* Bits of a function's flags (PHP_FUNCTION_FLAGS): it is a closure's; that was made of a
	 * function with a name of its own. */
	__u8 closure_bit, named_bit;
};

/* Code of the loop, relative to loop_start, where its registers are not, or no longer, its own. */
struct php_gap {
	__u32 start, end;
};

struct php_record {
	/* The address of EG(current_execute_data); of a thread-safe build, how far that is behind
	 * the value of `key`. */
	__u64 current;
	struct thread_key key; /* zeros: not a thread-safe build */
	__u64 loop_start;
	struct php_layout layout;
	/* The loop keeps its frame in this register and its instruction in that, and its caller's
	 * values of them so far above its stack pointer. Number 0: it doesn't. ARCH_FIRST_SAVED: it
	 * keeps its frame alone, and has pushed its caller's. */
	__u8 frame_reg, op_reg;
	__u16 frame_saved, op_saved;
	__u16 nr_gaps;
	struct php_gap gaps[PHP_GAPS_MAX];
	/*
	 * Code that opcache's JIT has made runs on the loop's frame: jit_frame is how far the
	 * loop's CFA is above its stack pointer (0: such code can't be walked), canary where the
	 * loop keeps the stack protector's word, above that pointer, too (0: it has none), and
	 * frame_pointer how far its frame pointer is (0: it has none), which that code leaves
	 * alone. It has pushed these registers, the first one right below its return address. Who
	 * calls the loop is in `text`; where it is neither of both, they are below.
	 */
	__u16 jit_frame, canary, frame_pointer;
	__u8 pushed[PHP_PUSHED_MAX];
	__u8 nr_pushed;
	__u8 flags; /* enum php_flag */
	/* Of a function, a pointer; NULL: opcache keeps its instructions. 0: not known where. */
	__u16 refcount;
	__u64 text, text_size;
	/* Of a loop that has neither a stack protector's word nor a frame pointer: where all calls
	 * of it return to, from `text` on. */
	__u32 callers[PHP_CALLERS_MAX];
	__u64 nr_callers;
	/* zend_fiber_trampoline(), the first function on the stack of each fiber. Size 0: there is
	 * none, or it is not known. */
	__u64 fiber, fiber_size;
	/* zend_fiber_switch_context(), where the chain may be another stack's and nothing tells
	 * (aarch64). Size 0: the loop's register tells. */
	__u64 change, change_size;
};
_Static_assert(sizeof(struct php_record) == 328, "php_record is read from the arena");

#define PHP_MULTIPLIER 0x9e3779b97f4a7c15ull

static inline __attribute__((always_inline)) __u64 php_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * PHP_MULTIPLIER;
	return hash ^ (hash >> 29);
}

/*
 * Tells functions apart that lie at the same address one after the other. `words`: of an op_array
 * or an internal function, which has no opcodes, lines and file (0). `name` and `file` are the
 * hashes that these strings carry: what another request compiles may lie where the last one's lay.
 */
static inline __attribute__((always_inline)) __u32
php_identity(__u64 function_name, __u64 scope, __u64 opcodes, __u64 lines, __u64 name, __u64 file)
{
	__u64 hash = php_mix(php_mix(php_mix(function_name, scope), opcodes), lines);

	return (__u32)(php_mix(php_mix(hash, name), file) >> 32);
}

/* Likewise, of a closure's copy: the hashes that the strings carry (0: no class; of a name, that it
 * has none). The strings' addresses are in the frame's words. */
static inline __attribute__((always_inline)) __u32 php_copy_identity(__u64 name, __u64 class_name,
								     __u64 file)
{
	return (__u32)(php_mix(php_mix(name, class_name), file) >> 32);
}
