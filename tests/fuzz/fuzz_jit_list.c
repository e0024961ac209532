// SPDX-License-Identifier: Apache-2.0
/*
 * A process's memory of any bytes, which begins with a __jit_debug_descriptor: what is found of an
 * address is of code that has it, and says only what a walk can prove, and no more than so many
 * bytes are read for it. Byte 0: which address; byte 1: what memory does at each read.
 */
#include "fuzz.h"
#include "unwind/jit_list.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BASE = 0x10000,
	CODE = 0x7fa20400, /* what the corpus has code at, >> 16 */
	READ_MAX = 4 * JIT_IMAGES_BYTES + 64 * JIT_ENTRIES_MAX,
};

struct input {
	uint8_t *bytes;
	size_t size, nr_read;
	uint8_t changes;
};

static int read_input(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct input *in = ctx;

	if (addr < BASE || addr - BASE > in->size || size > in->size - (addr - BASE))
		return -EFAULT;
	memcpy(to, in->bytes + (addr - BASE), size);
	in->nr_read += size;
	if (in->changes)
		in->bytes[in->nr_read % in->size] ^= in->changes;
	return 0;
}

FUZZER(data, size)
{
	struct jit_list list = { .addr = BASE };
	struct input in = { .size = 0 };
	const struct jit_memory memory = { read_input, &in };
	char name[JIT_NAME_MAX];
	uint64_t pc;

	if (size <= 2)
		return 0;
	in.size = size - 2;
	in.bytes = malloc(in.size);
	if (!in.bytes)
		return 0;
	memcpy(in.bytes, data + 2, in.size);
	in.changes = data[1];
	pc = ((uint64_t)CODE << 16) + data[0] * 16u;
	for (int i = 0; i < 3; i++) {
		struct jit_code code;
		int r;

		in.nr_read = 0;
		r = jit_list_find(&list, &memory, EM_X86_64, pc, &code);
		if (in.nr_read > READ_MAX || list.known.nr > JIT_ENTRIES_MAX)
			abort();
		if (!r && (pc < code.start || pc >= code.end || code.rule.cfa != CFA_REG ||
			   code.rule.ra != RA_AT_CFA || code.rule.flags))
			abort();
		if (!jit_list_name(&list, &memory, EM_X86_64, pc, name) &&
		    (!name[0] || strnlen(name, sizeof(name)) == sizeof(name)))
			abort();
	}
	jit_list_fini(&list);
	free(in.bytes);
	return 0;
}
