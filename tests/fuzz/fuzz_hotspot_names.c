// SPDX-License-Identifier: Apache-2.0
/*
 * Names of HotSpot's frames with arbitrary memory as the process: the release and the layout of
 * nmethods, four frames, and what lies at a base address. Structures are a few bytes large, so that
 * they are hit. Whatever it is, there is an end, inline frames have names, and a frame that is not
 * named has none.
 */
#include "fuzz.h"
#include "runtime/hotspot/hotspot_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BASE = 0x10000, PAGE = 4096, FRAMES = 4, INLINE_FRAMES_MAX = 64 };

struct image {
	uint8_t page[PAGE]; /* zero behind the input */
	unsigned int nr_reads;
};

struct input {
	uint8_t release, tiers;
	uint8_t frames[FRAMES][4]; /* kind, address / 8, where, check */
};

#define F(offset, size)                                                                            \
	{                                                                                          \
		(offset), (size), false                                                            \
	}
static const struct hotspot_fields fields = {
	.blob_name = F(0, 8),
	.blob_size = F(8, 1),
	.blob_data_offset = F(9, 1),
	.blob_code_offset = F(10, 1),
	.nmethod_compile_id = F(11, 1),
	.nmethod_state = { 12, 1, true },
	.nmethod_comp_level = { 13, 1, true },
	.nmethod_method = F(16, 8),
	.nmethod_metadata_offset = F(24, 1),
	.nmethod_scopes_data_offset = F(25, 2),
	.nmethod_scopes_pcs_offset = F(27, 2),
	.nmethod_dependencies_offset = F(29, 2),
	.nmethod_immutable_data = F(32, 8),
	.nmethod_immutable_data_size = F(40, 4),
	.blob_relocation_size = F(44, 1),
	.blob_mutable_data_size = F(45, 1),
	.blob_mutable_data = F(48, 8),
	.method_const_method = F(0, 8),
	.const_method_constants = F(0, 8),
	.const_method_size = F(8, 2),
	.const_method_flags = F(10, 1),
	.const_method_code_size = F(11, 1),
	.const_method_name_index = F(12, 1),
	.constants_pool_holder = F(0, 8),
	.constants_source_file_name_index = F(8, 1),
	.klass_name = F(0, 8),
	.symbol_length = F(4, 2),
	.symbol_body = F(6, 1),
	.block_used = F(8, 1),
};
static const struct hotspot_symbol_layout layout = { .mask = ~0xffffull, .length = 4, .body = 6 };

static int read_image(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct image *i = ctx;

	i->nr_reads++;
	if (addr < BASE || addr - BASE > PAGE || size > PAGE - (addr - BASE))
		return -EFAULT;
	memcpy(to, i->page + (addr - BASE), size);
	return 0;
}

static int take(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	unsigned int *nr = ctx;

	if (!inline_frame->name || ++*nr > INLINE_FRAMES_MAX || inline_frame->line > 65535)
		abort();
	if (strlen(inline_frame->name) > 3 * HOTSPOT_SYMBOL_MAX)
		abort();
	return 0;
}

/* A word of the identity that the frame's memory has now, so that it is looked into. */
static uint64_t make_word(const struct hotspot_vm *vm, const uint8_t frame[4], uint64_t addr)
{
	struct hotspot_identity id;
	uint64_t name = 0, blob_size = 0;

	if (frame[3] & 1)
		return HOTSPOT_WORD(frame[3], frame[2]);
	if ((frame[0] & 7) == HOTSPOT_STUB) {
		(void)hotspot_read(vm, fields.blob_name, addr, &name);
		(void)hotspot_read(vm, fields.blob_size, addr, &blob_size);
		return HOTSPOT_WORD(hotspot_stub_check(name, (uint32_t)blob_size), frame[2]);
	}
	if (hotspot_read_identity(vm, &layout, addr, &id))
		return HOTSPOT_WORD(frame[3], frame[2]);
	return HOTSPOT_WORD(hotspot_cookie(&id, &layout), frame[2]);
}

static void name(struct hotspot_names *names, const struct hotspot_vm *vm, struct image *image,
		 const uint8_t frame[4])
{
	uint64_t addr = BASE + frame[1] * 8ull;
	const uint64_t words[] = { FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(frame[0] & 15, addr)),
				   make_word(vm, frame, addr) };
	unsigned int nr = 0;
	const struct runtime_sink sink = { .add = take, .ctx = &nr };
	int r;

	image->nr_reads = 0;
	r = hotspot_names_symbolize(names, words, 2, &sink);
	if (r != -ENOMEM && (r ? nr != 0 : nr == 0))
		abort();
	/* 64 inline frames of some 15 reads; a search for stubs. */
	if (image->nr_reads > 20000)
		abort();
}

FUZZER(data, size)
{
	struct input input;
	struct image image = { 0 };
	struct runtime_keeper keeper = { 0 };
	struct runtime_target target = { .memory = { read_image, &image }, .keeper = &keeper };
	struct hotspot_vm vm = { .target = &target,
				 .fields = fields,
				 .sizes = { .heap_block = 16,
					    .const_method = 14,
					    .constants = 16,
					    .pc_desc = 16,
					    .blob = 16,
					    .nmethod = 56 },
				 .const_method_has_lines = 1,
				 .pointer_size = 8,
				 .nr_heaps = 1 };
	struct hotspot_names *names;

	if (size < sizeof(input) || size > sizeof(input) + PAGE)
		return 0;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	memcpy(image.page, data, size);
	vm.release = 8 + input.release % 19;
	vm.layout = input.release % 3;
	target.options.tiers = input.tiers & 1;
	vm.heaps[0] = (struct hotspot_heap){ .start = BASE, .end = BASE + size / 4 * 3 };
	vm.at_heaps = BASE + size / 8 * 7;
	names = hotspot_names_new(&vm, &layout);
	if (!names)
		return 0;
	for (int i = 0; i < FRAMES; i++)
		name(names, &vm, &image, input.frames[i]);
	hotspot_names_free(names);
	return 0;
}
