// SPDX-License-Identifier: Apache-2.0
/*
 * vmStructs of made JVMs: members under the names of each family of releases, tables that are half
 * made, hostile or of a release that is not supported; and the code heap's segment map.
 *
 * With SONDE_WRITE_CORPUS=FOLDER the images are written there: the corpus of fuzz_hotspot_vm.
 */
#include "runtime/hotspot/hotspot_record.h"
#include "runtime/hotspot/hotspot_vm.h"
#include "runtime/hotspot/test_hotspot_image.h"
#include "util/cleanup.h"

#include <stdio.h>

#include "test.h"

struct entry {
	const char *type, *field, *type_string;
	uint64_t offset;  /* ~0: static */
	uint64_t address; /* of a static one */
};

#define STATIC_ (~0ULL)

static uint64_t take(struct image *image, size_t size)
{
	uint64_t at = IMAGE_BASE + image->size;

	size = (size + 7) & ~(size_t)7;
	assert(image->size + size <= IMAGE_SIZE_MAX);
	image->size += size;
	return at;
}

static void put(struct image *image, uint64_t at, uint64_t value, size_t size)
{
	memcpy(image->data + (at - IMAGE_BASE), &value, size);
}

static uint64_t put_text(struct image *image, const char *text)
{
	uint64_t at = take(image, strlen(text) + 1);

	memcpy(image->data + (at - IMAGE_BASE), text, strlen(text) + 1);
	return at;
}

static uint64_t variable(struct image *image, uint64_t value, size_t size)
{
	uint64_t at = take(image, 8);

	put(image, at, value, size);
	return at;
}

/* ----- the tables ----- */

/* typeName, fieldName, typeString, isStatic, offset, address: as in vmStructs.hpp. */
static void put_members(struct image *image, const struct entry *entries, size_t nr)
{
	const struct hotspot_symbols *s = &image->symbols;
	uint64_t at = take(image, 48 * (nr + 1));

	put(image, s->structs, at, 8);
	put(image, s->struct_stride, 48, 8);
	put(image, s->struct_type_name, 0, 8);
	put(image, s->struct_field_name, 8, 8);
	put(image, s->struct_type_string, 16, 8);
	put(image, s->struct_is_static, 24, 8);
	put(image, s->struct_offset, 32, 8);
	put(image, s->struct_address, 40, 8);
	for (size_t i = 0; i < nr; i++, at += 48) {
		bool is_static = entries[i].offset == STATIC_;

		put(image, at, put_text(image, entries[i].type), 8);
		put(image, at + 8, put_text(image, entries[i].field), 8);
		put(image, at + 16, put_text(image, entries[i].type_string), 8);
		put(image, at + 24, is_static, 4);
		put(image, at + 32, is_static ? 0 : entries[i].offset, 8);
		put(image, at + 40, entries[i].address, 8);
	}
}

static void put_numbers(struct image *image, const uint64_t symbols[static 4], uint64_t stride,
			uint64_t value_at, const char *const *names, const uint64_t *values,
			size_t nr)
{
	uint64_t at = take(image, stride * (nr + 1));

	put(image, symbols[0], at, 8);
	put(image, symbols[1], stride, 8);
	put(image, symbols[2], 0, 8);
	put(image, symbols[3], value_at, 8);
	for (size_t i = 0; i < nr; i++, at += stride) {
		put(image, at, put_text(image, names[i]), 8);
		put(image, at + value_at, values[i], 8);
	}
}

static void put_types(struct image *image)
{
	static const char *const types[] = { "HeapBlock",	  "ConstMethod",
					     "ConstantPool",	  "PcDesc",
					     "CodeBlob",	  "nmethod",
					     "InterpreterCodelet" };
	static const uint64_t sizes[] = { 16, 48, 72, 16, 64, 200, 16 };
	static const char *const constants[] = { "nonsense", "ConstMethod::_has_linenumber_table" };
	static const uint64_t values[] = { 7, 1 };
	const struct hotspot_symbols *s = &image->symbols;

	put_numbers(image,
		    (const uint64_t[]){ s->types, s->type_stride, s->type_name, s->type_size }, 56,
		    40, types, sizes, sizeof(sizes) / sizeof(*sizes));
	put_numbers(
		image,
		(const uint64_t[]){ s->int_constants, s->int_stride, s->int_name, s->int_value },
		16, 8, constants, values, 2);
	put_numbers(image,
		    (const uint64_t[]){ s->long_constants, s->long_stride, s->long_name,
					s->long_value },
		    16, 8, constants, values, 1);
}

/* ----- the JVM ----- */

enum {
	SEGMENT_LOG2 = 6,
	HEAP_SEGMENTS = 64,
	HEAP_SIZE = HEAP_SEGMENTS << SEGMENT_LOG2,
	MEMBERS_MAX = 80,
};

/* Where things of an image are that tests look at or break. */
struct places {
	uint64_t heap, heap_low, segmap;
	uint64_t at_heaps; /* the static member */
	uint64_t list;	   /* GrowableArray */
	uint64_t at_stub, at_interpreter;
	uint64_t at_version; /* of the major one */
	uint64_t symbol, constants;
};

static void put_block(struct image *image, const struct places *p, uint32_t segment,
		      uint32_t length, const char *name)
{
	uint64_t block = p->heap_low + ((uint64_t)segment << SEGMENT_LOG2), blob = block + 16;

	put(image, block, length, 8);
	put(image, block + 8, name != NULL, 1);
	for (uint32_t i = 0; i < length; i++)
		put(image, p->segmap + segment + i, i < 0xfe ? i : 0xfe, 1);
	if (!name)
		return;
	put(image, blob + 8, put_text(image, name), 8);
	put(image, blob + 16, (uint64_t)length << SEGMENT_LOG2, 4);
	put(image, blob + 32, 64, 4); /* code */
	put(image, blob + 40, ((uint64_t)length << SEGMENT_LOG2) - 16, 4);
}

/* A CodeHeap of 64 segments: the interpreter, stubs, an nmethod, a free block, a native one. */
static void put_heap(struct image *image, struct places *p)
{
	p->heap_low = take(image, HEAP_SIZE);
	p->segmap = take(image, HEAP_SEGMENTS);
	memset(image->data + (p->segmap - IMAGE_BASE), 0xff, HEAP_SEGMENTS);
	put_block(image, p, 0, 16, "Interpreter");
	put_block(image, p, 16, 8, "StubRoutines (1)");
	put_block(image, p, 24, 8, "nmethod");
	put_block(image, p, 32, 4, NULL);
	put_block(image, p, 36, 8, "native nmethod");
	p->heap = take(image, 280);
	/* VirtualSpaces at 0 and 112: low_boundary, high_boundary, low, high. */
	put(image, p->heap, p->heap_low, 8);
	put(image, p->heap + 8, p->heap_low + HEAP_SIZE, 8);
	put(image, p->heap + 16, p->heap_low, 8);
	put(image, p->heap + 24, p->heap_low + HEAP_SIZE, 8);
	put(image, p->heap + 112 + 16, p->segmap, 8);
	put(image, p->heap + 248, SEGMENT_LOG2, 4);
}

static uint64_t put_interpreter(struct image *image, const struct places *p)
{
	uint64_t queue = take(image, 40), start = p->heap_low + 16 + 64;
	static const char *const codelets[] = { "slow signature handler",
						"method entry point (kind = zerolocals)",
						"native method entry point (kind = native)",
						"nop" };

	put(image, queue + 8, start, 8);
	put(image, queue + 20, 4 * 128, 4);
	for (uint32_t i = 0; i < 4; i++) {
		put(image, start + 128 * i, put_text(image, codelets[i]), 8);
		put(image, start + 128 * i + 8, 128, 4);
	}
	return queue;
}

/* What is alike in all releases that are made here. */
static const struct entry common[] = {
	{ "VirtualSpace", "_low_boundary", "char*", 0, 0 },
	{ "VirtualSpace", "_high_boundary", "char*", 8, 0 },
	{ "VirtualSpace", "_low", "char*", 16, 0 },
	{ "VirtualSpace", "_high", "char*", 24, 0 },
	{ "CodeHeap", "_memory", "VirtualSpace", 0, 0 },
	{ "CodeHeap", "_segmap", "VirtualSpace", 112, 0 },
	{ "CodeHeap", "_log2_segment_size", "int", 248, 0 },
	{ "HeapBlock::Header", "_length", "size_t", 0, 0 },
	{ "HeapBlock::Header", "_used", "bool", 8, 0 },
	{ "StubQueue", "_stub_buffer", "address", 8, 0 },
	{ "StubQueue", "_buffer_limit", "int", 20, 0 },
	{ "InterpreterCodelet", "_description", "const char*", 0, 0 },
	{ "InterpreterCodelet", "_size", "int", 8, 0 },
	{ "Method", "_constMethod", "ConstMethod*", 8, 0 },
	{ "ConstMethod", "_constants", "ConstantPool*", 8, 0 },
	{ "ConstMethod", "_code_size", "u2", 32, 0 },
	{ "ConstMethod", "_name_index", "u2", 34, 0 },
	{ "ConstantPool", "_pool_holder", "InstanceKlass*", 24, 0 },
	{ "ConstantPool", "_length", "int", 60, 0 },
	{ "Klass", "_name", "Symbol*", 24, 0 },
	{ "Klass", "_of_no_interest", "Klass", 25, 0 },
	{ "CodeBlob", "_name", "const char*", 8, 0 },
	{ "CodeBlob", "_size", "int", 16, 0 },
	{ "CodeBlob", "_data_offset", "int", 40, 0 },
	{ "CodeBlob", "_frame_size", "int", 44, 0 },
	{ "nmethod", "_compile_id", "int", 104, 0 },
	{ "nmethod", "_orig_pc_offset", "int", 100, 0 },
	{ "Nonsense", "_nonsense", "int", 4, 0 },
};

static const struct entry of_8[] = {
	{ "CodeBlob", "_frame_complete_offset", "int", 36, 0 },
	{ "CodeBlob", "_code_offset", "int", 32, 0 },
	{ "nmethod", "_method", "Method*", 64, 0 },
	{ "nmethod", "_deoptimize_offset", "int", 84, 0 },
	{ "nmethod", "_deoptimize_mh_offset", "int", 88, 0 },
	{ "Symbol", "_length", "unsigned short", 0, 0 },
	{ "Symbol", "_refcount", "volatile short", 2, 0 },
	{ "Symbol", "_identity_hash", "int", 4, 0 },
	{ "Symbol", "_body", "jbyte", 8, 0 },
	{ "InstanceKlass", "_source_file_name_index", "u2", 258, 0 },
};
static const struct entry of_17[] = {
	{ "CodeBlob", "_frame_complete_offset", "int", 36, 0 },
	{ "CodeBlob", "_code_begin", "address", 48, 0 },
	{ "CodeBlob", "_code_end", "address", 56, 0 },
	{ "CompiledMethod", "_method", "Method*", 64, 0 },
	{ "CompiledMethod", "_deopt_handler_begin", "address", 72, 0 },
	{ "CompiledMethod", "_deopt_mh_handler_begin", "address", 80, 0 },
	{ "Symbol", "_hash_and_refcount", "volatile unsigned int", 0, 0 },
	{ "Symbol", "_length", "u2", 4, 0 },
	{ "Symbol", "_body[0]", "u1", 6, 0 },
	{ "ConstantPool", "_source_file_name_index", "u2", 54, 0 },
};
static const struct entry of_14[] = {
	{ "CodeBlob", "_frame_complete_offset", "int", 36, 0 },
	{ "CodeBlob", "_code_begin", "address", 48, 0 },
	{ "CodeBlob", "_code_end", "address", 56, 0 },
	{ "CompiledMethod", "_method", "Method*", 64, 0 },
	{ "CompiledMethod", "_deopt_handler_begin", "address", 72, 0 },
	{ "Symbol", "_length_and_refcount", "unsigned int", 0, 0 },
	{ "Symbol", "_identity_hash", "short", 4, 0 },
	{ "Symbol", "_body", "u1", 6, 0 },
};
static const struct entry of_26[] = {
	{ "CodeBlob", "_frame_complete_offset", "int16_t", 36, 0 },
	{ "CodeBlob", "_code_offset", "int", 32, 0 },
	{ "CodeBlob", "_kind", "CodeBlobKind", 38, 0 },
	{ "CodeBlob", "_mutable_data", "address", 48, 0 },
	{ "nmethod", "_method", "Method*", 64, 0 },
	{ "nmethod", "_deopt_handler_entry_offset", "int", 84, 0 },
	{ "nmethod", "_immutable_data", "address", 72, 0 },
	{ "Symbol", "_hash_and_refcount", "volatile unsigned int", 0, 0 },
	{ "Symbol", "_length", "u2", 4, 0 },
	{ "Symbol", "_body[0]", "u1", 6, 0 },
};

struct family {
	uint32_t release;
	const struct entry *entries;
	size_t nr;
};
#define FAMILY(n, entries)                                                                         \
	{                                                                                          \
		n, entries, sizeof(entries) / sizeof(*(entries))                                   \
	}
static const struct family families[] = { FAMILY(8, of_8), FAMILY(14, of_14), FAMILY(17, of_17),
					  FAMILY(26, of_26) };

static void put_version(struct image *image, const struct family *family, struct entry *members,
			size_t *nr, struct places *p)
{
	if (family->release <= 8) {
		/* 8u422-b05 */
		p->at_version = variable(image, 0x05000000000008 | 422ULL << 32, 8);
		put(image, p->at_version + 7, 5, 1);
		members[(*nr)++] = (struct entry){ "JDK_Version", "_current", "JDK_Version",
						   STATIC_, p->at_version };
		/* HotSpot's own, which is not that of the JDK. */
		members[(*nr)++] = (struct entry){ "Abstract_VM_Version", "_vm_major_version",
						   "int", STATIC_, variable(image, 25, 4) };
		return;
	}
	p->at_version = variable(image, family->release, 4);
	members[(*nr)++] = (struct entry){ "Abstract_VM_Version", "_vm_major_version", "int",
					   STATIC_, p->at_version };
	members[(*nr)++] = (struct entry){ "Abstract_VM_Version", "_vm_security_version", "int",
					   STATIC_, variable(image, 3, 4) };
}

/* Symbol "java/lang/Café" and a ConstantPool that has it as its entry 2. */
static void put_symbol(struct image *image, const struct family *family, struct places *p)
{
	static const char text[] = "java/lang/Caf\xc3\xa9";
	uint64_t len = sizeof(text) - 1;
	size_t body = family->release <= 8 ? 8 : 6;

	p->symbol = take(image, 32);
	if (family->release <= 8)
		put(image, p->symbol, len | 77 << 16, 8);
	else if (family->release <= 14)
		put(image, p->symbol, len << 16 | 77, 8);
	else
		put(image, p->symbol, 0xabcd004d | len << 32, 8);
	memcpy(image->data + (p->symbol + body - IMAGE_BASE), text, len);
	p->constants = take(image, 72 + 8 * 3);
	put(image, p->constants + 60, 3, 4);
	put(image, p->constants + 72 + 8 * 2, p->symbol | (family->release <= 8), 8);
}

static void make(struct image *image, const struct family *family, struct places *p)
{
	struct entry members[MEMBERS_MAX];
	size_t nr = 0;

	image_init(image);
	memset(p, 0, sizeof(*p));
	put_heap(image, p);
	put_symbol(image, family, p);
	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		members[nr++] = common[i];
	for (size_t i = 0; i < family->nr; i++)
		members[nr++] = family->entries[i];
	put_version(image, family, members, &nr, p);
	p->list = p->heap;
	if (family->release > 8) {
		uint64_t array = variable(image, p->heap, 8);

		p->list = take(image, 16);
		put(image, p->list, 1, 4);
		put(image, p->list + 8, array, 8);
		members[nr++] = (struct entry){ "GrowableArrayBase", "_len", "int", 0, 0 };
		members[nr++] = (struct entry){ "GrowableArray<int>", "_data", "int*", 8, 0 };
	}
	p->at_heaps = variable(image, p->list, 8);
	p->at_stub = variable(image, p->heap_low + 16 * 64 + 100, 8);
	p->at_interpreter = variable(image, put_interpreter(image, p), 8);
	members[nr++] = (struct entry){ "CodeCache", family->release > 8 ? "_heaps" : "_heap",
					"GrowableArray<CodeHeap*>*", STATIC_, p->at_heaps };
	members[nr++] = (struct entry){ "StubRoutines", "_call_stub_return_address", "address",
					STATIC_, p->at_stub };
	members[nr++] = (struct entry){ "StubRoutines", "_updateBytesCRC32", "address", STATIC_,
					variable(image, p->heap_low + 16 * 64 + 80, 8) };
	members[nr++] = (struct entry){ "AbstractInterpreter", "_code", "StubQueue*", STATIC_,
					p->at_interpreter };
	assert(nr <= MEMBERS_MAX);
	/* Pointers of blobs to their code. */
	for (uint32_t segment = 0; segment < 44; segment++) {
		uint64_t blob = p->heap_low + 64 * segment + 16;

		if (family->release > 8 && family->release < 23 &&
		    !image->data[p->segmap + segment - IMAGE_BASE]) {
			put(image, blob + 48, blob + 64, 8);
			put(image, blob + 56, blob + 200, 8);
		}
	}
	if (family->release > 8 && family->release < 23)
		put(image, p->heap_low + 16 + 56, p->heap_low + 16 * 64, 8);
	put_members(image, members, nr);
	put_types(image);
}

static void write_corpus(const struct image *image, uint32_t release)
{
	const char *folder = getenv("SONDE_WRITE_CORPUS");
	_cleanup_fclose_ FILE *file = NULL;
	char path[4096];

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/jdk%u", folder, release);
	file = fopen(path, "we");
	ASSERT_PTR_NONNULL(file);
	ASSERT_EQ(fwrite(image->data, 1, image->size, file), image->size);
}

/* ----- tests ----- */

static struct image image; /* too large for a stack */

static const struct family *family_of(uint32_t release)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		if (families[i].release == release)
			return &families[i];
	}
	return NULL;
}

static int read_vm(uint32_t release, struct places *p, struct hotspot_vm *vm)
{
	static struct runtime_target target;

	make(&image, family_of(release), p);
	target = image_target(&image);
	return hotspot_vm_read(&target, &image.symbols, vm);
}

/* Reads the VM once more, after something has been broken. */
static int read_again(struct hotspot_vm *vm)
{
	static struct runtime_target target;
	int r;

	target = image_target(&image);
	r = hotspot_vm_read(&target, &image.symbols, vm);
	hotspot_vm_fini(vm);
	return r;
}

TEST(members_are_found_under_the_names_of_every_release)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		uint32_t release = families[i].release;
		struct hotspot_vm vm;
		struct places p;

		ASSERT_OK(read_vm(release, &p, &vm));
		write_corpus(&image, release);
		ASSERT_EQ(vm.release, release);
		ASSERT_EQ(vm.security, release == 8 ? 422 : 3);
		ASSERT_EQ(vm.layout, release >= 25 ? HOTSPOT_MUTABLE : HOTSPOT_CONTIGUOUS);
		ASSERT_EQ(vm.const_method_has_lines, 1);
		ASSERT_EQ(vm.fields.nmethod_method.offset, 64);
		ASSERT_EQ(vm.fields.nmethod_method.size, 8);
		ASSERT_EQ(vm.fields.blob_frame_complete_offset.size, release >= 25 ? 2 : 4);
		ASSERT(vm.fields.blob_frame_complete_offset.is_signed);
		ASSERT_EQ(vm.fields.symbol_body.offset, release == 8 ? 8 : 6);
		ASSERT_EQ(hotspot_has(vm.fields.nmethod_deopt_handler_begin),
			  release == 14 || release == 17);
		ASSERT_EQ(vm.sizes.heap_block, 16);
		ASSERT_EQ(vm.nr_heaps, 1);
		ASSERT_EQ(vm.heaps[0].start, p.heap_low);
		ASSERT_EQ(vm.heaps[0].end, p.heap_low + HEAP_SIZE);
		ASSERT_EQ(vm.heaps[0].segmap, p.segmap);
		ASSERT_EQ(vm.stubs.nr, 2);
		ASSERT_STR(vm.stubs.items[1].name, "updateBytesCRC32");
		ASSERT_EQ(hotspot_vm_refresh(&vm), 0);
		hotspot_vm_fini(&vm);
	}
}

TEST(symbols_of_every_release_are_read)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		struct hotspot_vm vm;
		struct places p;
		uint64_t symbol = 42;
		char name[64];

		ASSERT_OK(read_vm(families[i].release, &p, &vm));
		ASSERT_OK(hotspot_read_symbol_at(&vm, p.constants, 2, &symbol));
		ASSERT_EQ(symbol, p.symbol);
		ASSERT_EQ(hotspot_read_symbol(&vm, symbol, name, sizeof(name)), 15);
		ASSERT_STR(name, "java/lang/Caf\xc3\xa9");
		/* Cut before a character, not in it. */
		ASSERT_EQ(hotspot_read_symbol(&vm, symbol, name, 15), 13);
		ASSERT_STR(name, "java/lang/Caf");
		ASSERT_ERR(hotspot_read_symbol_at(&vm, p.constants, 3, &symbol), EINVAL);
		ASSERT_ERR(hotspot_read_symbol_at(&vm, p.constants, 0, &symbol), EINVAL);
		ASSERT_ERR(hotspot_read_symbol_at(&vm, p.constants, 1, &symbol), EINVAL);
		hotspot_vm_fini(&vm);
	}
}

TEST(blobs_are_found_by_the_segment_map)
{
	struct hotspot_vm vm;
	struct places p;
	uint64_t blob = 42, start, end;

	ASSERT_OK(read_vm(17, &p, &vm));
	for (uint32_t offset = 0; offset < 16 * 64; offset += 60) {
		ASSERT_OK(hotspot_find_blob(&vm, p.heap_low + offset, &blob));
		ASSERT_EQ(blob, p.heap_low + 16);
	}
	ASSERT_OK(hotspot_find_blob(&vm, p.heap_low + 24 * 64 + 333, &blob));
	ASSERT_EQ(blob, p.heap_low + 24 * 64 + 16);
	ASSERT_OK(hotspot_read_code(&vm, blob, &start, &end));
	ASSERT_EQ(start, blob + 64);
	ASSERT_EQ(end, blob + 200);
	blob = 42;
	ASSERT_ERR(hotspot_find_blob(&vm, p.heap_low + 33 * 64, &blob), ENOENT); /* free */
	ASSERT_ERR(hotspot_find_blob(&vm, p.heap_low + 60 * 64, &blob), ENOENT); /* none yet */
	ASSERT_ERR(hotspot_find_blob(&vm, p.heap_low - 1, &blob), ENOENT);
	ASSERT_ERR(hotspot_find_blob(&vm, p.heap_low + HEAP_SIZE, &blob), ENOENT);
	ASSERT_EQ(blob, 42);
	/* A map that leads out of it at the front. */
	put(&image, p.segmap + 1, 200, 1);
	ASSERT_ERR(hotspot_find_blob(&vm, p.heap_low + 64, &blob), ENOENT);
	hotspot_vm_fini(&vm);
}

TEST(the_record_has_it_all)
{
	struct hotspot_found found = { 0 };
	struct hotspot_record record;
	struct hotspot_vm vm;
	struct places p;
	uint64_t interpreter;

	ASSERT_OK(read_vm(8, &p, &vm));
	interpreter = p.heap_low + 16 + 64;
	hotspot_find(&vm, 100, &found);
	ASSERT_OK(hotspot_record_fill(&vm, &found, &record));
	ASSERT_EQ(record.release, 8);
	ASSERT_EQ(record.nr_heaps, 1);
	ASSERT_EQ(record.code_start, p.heap_low);
	ASSERT_EQ(record.code_end, p.heap_low + HEAP_SIZE);
	ASSERT_EQ(record.heaps[0].block_header, 16);
	ASSERT_EQ(record.heaps[0].log2_segment_size, SEGMENT_LOG2);
	ASSERT_EQ(record.interpreter_start, interpreter);
	ASSERT_EQ(record.interpreter_end, interpreter + 512);
	/* The second and the third codelet. */
	ASSERT_EQ(record.entries_start, interpreter + 128);
	ASSERT_EQ(record.entries_end, interpreter + 384);
	ASSERT_EQ(record.call_stub_return, p.heap_low + 16 * 64 + 100);
	ASSERT_EQ(record.interpreter_bcp, 56);
	ASSERT_EQ(record.header_size, 112); /* up to compile_id */
	ASSERT_EQ(record.proof_size, 16 + 112);
	ASSERT_EQ(record.proof_used, 8);
	ASSERT_EQ(record.proof_name, 16 + record.blob_name.offset);
	ASSERT_EQ(record.proof_id, 16 + record.nmethod_compile_id.offset);
	ASSERT_EQ(record.blob_code_begin.size, 4);
	ASSERT_EQ(record.nmethod_deopt_handler.offset, 84);
	ASSERT_EQ(record.nmethod_deopt_mh_handler.offset, 88);
	ASSERT_EQ(record.const_codes, 48);
	ASSERT_EQ(record.symbol.mask, 0xffffffff0000ffff);
	ASSERT_EQ(record.symbol.body, 8);
	ASSERT(record.name_nmethod && record.name_native);
	ASSERT_STR((char *)image.data + (record.name_nmethod - IMAGE_BASE), "nmethod");
	ASSERT_STR((char *)image.data + (record.name_native - IMAGE_BASE), "native nmethod");
	hotspot_vm_fini(&vm);

	ASSERT_OK(read_vm(14, &p, &vm));
	ASSERT_OK(hotspot_record_fill(&vm, &found, &record));
	ASSERT_EQ(record.symbol.mask, 0xffffffffffff0000);
	ASSERT_EQ(record.symbol.length, 2);
	ASSERT_EQ(record.interpreter_bcp, 64);
	((struct runtime_target *)vm.target)->machine = EM_AARCH64;
	ASSERT_OK(hotspot_record_fill(&vm, &found, &record));
	ASSERT_EQ(record.interpreter_bcp, 72);
	ASSERT_EQ(record.blob_code_begin.size, 8);
	hotspot_vm_fini(&vm);
}

TEST(what_changes_is_noticed)
{
	struct hotspot_vm vm;
	struct places p;

	ASSERT_OK(read_vm(17, &p, &vm));
	put(&image, p.heap + 8, p.heap_low + HEAP_SIZE / 2, 8);
	ASSERT_EQ(hotspot_vm_refresh(&vm), 1);
	ASSERT_EQ(vm.heaps[0].end, p.heap_low + HEAP_SIZE / 2);
	ASSERT_EQ(hotspot_vm_refresh(&vm), 0);
	/* What makes no sense now leaves it as it was. */
	put(&image, p.heap + 8, p.heap_low - 1, 8);
	ASSERT_ERR(hotspot_vm_refresh(&vm), EBADMSG);
	ASSERT_EQ(vm.heaps[0].end, p.heap_low + HEAP_SIZE / 2);
	hotspot_vm_fini(&vm);
}

TEST(a_jvm_that_only_begins_is_asked_again)
{
	struct hotspot_vm vm;
	struct places p;

	ASSERT_OK(read_vm(17, &p, &vm));
	hotspot_vm_fini(&vm);
	put(&image, p.at_interpreter, 0, 8);
	ASSERT_ERR(read_again(&vm), EAGAIN);
	put(&image, p.at_stub, 0, 8);
	ASSERT_ERR(read_again(&vm), EAGAIN);
	put(&image, p.heap, 0, 8);
	ASSERT_ERR(read_again(&vm), EAGAIN);
	put(&image, p.list, 0, 4);
	ASSERT_ERR(read_again(&vm), EAGAIN);
	put(&image, p.at_heaps, 0, 8);
	ASSERT_ERR(read_again(&vm), EAGAIN);
	put(&image, p.at_version, 0, 4);
	ASSERT_ERR(read_again(&vm), EAGAIN);
	put(&image, image.symbols.structs, 0, 8);
	ASSERT_ERR(read_again(&vm), EAGAIN);
}

TEST(other_releases_are_refused)
{
	struct hotspot_vm vm;
	struct places p;

	ASSERT_OK(read_vm(8, &p, &vm));
	hotspot_vm_fini(&vm);
	put(&image, p.at_version, 7, 1);
	ASSERT_ERR(read_again(&vm), ENOTSUP);
	ASSERT_EQ(vm.release, 7);
	/* One without nmethods as we know them. */
	for (size_t i = 0; i + 8 < image.size; i++) {
		if (memcmp(image.data + i, "nmethod", 8) == 0)
			image.data[i] = 'N';
	}
	put(&image, p.at_version, 8, 1);
	ASSERT_ERR(read_again(&vm), ENOTSUP);
	ASSERT_STR(hotspot_missing(&vm), "nmethod");
}

TEST(nonsense_is_refused)
{
	static const struct {
		uint64_t symbol, value;
	} breaks[] = {
		{ offsetof(struct hotspot_symbols, struct_stride), 8 },
		{ offsetof(struct hotspot_symbols, struct_stride), 1 << 20 },
		{ offsetof(struct hotspot_symbols, struct_field_name), 47 },
		{ offsetof(struct hotspot_symbols, type_size), ~0ULL },
		{ offsetof(struct hotspot_symbols, int_value), 16 },
	};
	struct hotspot_vm vm;
	struct places p;

	for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++) {
		uint64_t symbol;

		ASSERT_OK(read_vm(17, &p, &vm));
		hotspot_vm_fini(&vm);
		memcpy(&symbol, (char *)&image.symbols + breaks[i].symbol, sizeof(symbol));
		put(&image, symbol, breaks[i].value, 8);
		ASSERT_ERR(read_again(&vm), EBADMSG);
	}
	/* More heaps than there can be, then one twice. */
	make(&image, family_of(17), &p);
	put(&image, p.list, 1000, 4);
	ASSERT_ERR(read_again(&vm), EBADMSG);
	put(&image, p.list, 2, 4);
	{
		uint64_t array = take(&image, 16);

		put(&image, array, p.heap, 8);
		put(&image, array + 8, p.heap, 8);
		put(&image, p.list + 8, array, 8);
	}
	ASSERT_ERR(read_again(&vm), EBADMSG);
	/* The interpreter is not in the code heap. */
	make(&image, family_of(17), &p);
	{
		uint64_t queue = take(&image, 40);

		put(&image, queue + 8, p.heap, 8);
		put(&image, queue + 20, 512, 4);
		put(&image, p.at_interpreter, queue, 8);
	}
	ASSERT_ERR(read_again(&vm), EBADMSG);
	/* A table that memory ends in. */
	make(&image, family_of(26), &p);
	ASSERT(image.size > 2 * 4096);
	image.size = 2 * 4096;
	ASSERT_ERR(read_again(&vm), EFAULT);
}

static void check_utf8(const char *from, const char *want)
{
	char have[64];
	size_t len = hotspot_utf8(from, strlen(from), have, sizeof(have));

	ASSERT_STR(have, want);
	ASSERT_EQ(len, strlen(want));
}

TEST(modified_utf8_becomes_utf8)
{
	check_utf8("", "");
	check_utf8("plain", "plain");
	check_utf8("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
	check_utf8("\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad\xe6\x96\x87");
	/* U+1F600: a pair of surrogates, three bytes each. */
	check_utf8("a\xed\xa0\xbd\xed\xb8\x80z", "a\xf0\x9f\x98\x80z");
	/* One without the other, in the wrong order, at the end. */
	check_utf8("\xed\xa0\xbd!", "\xef\xbf\xbd!");
	check_utf8("\xed\xb8\x80\xed\xa0\xbd", "\xef\xbf\xbd\xef\xbf\xbd");
	/* NUL is written as C0 80; what would be other ways to write something short is not UTF-8.
	 */
	check_utf8("a\xc0\x80z", "a\xef\xbf\xbdz");
	check_utf8("\xc1\x81", "\xef\xbf\xbd\xef\xbf\xbd");
	check_utf8("\xe0\x81\x81", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	/* Cut, stray, and of four bytes, which Java never writes. */
	check_utf8("\xe4\xb8", "\xef\xbf\xbd\xef\xbf\xbd");
	check_utf8("\x80x", "\xef\xbf\xbdx");
	check_utf8("\xf0\x9f\x98\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(members_of_a_copy)
{
	static const uint8_t copy[] = { 1, 0xff, 0xfe, 0xff, 0x80, 0, 0, 0 };

	ASSERT_EQ(hotspot_get((struct hotspot_field){ 0, 1, false }, copy, 8), 1);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 1, 1, false }, copy, 8), 0xff);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 1, 1, true }, copy, 8), -1);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 2, 2, true }, copy, 8), -2);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 2, 4, false }, copy, 8), 0x80fffe);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 0, 8, false }, copy, 8), 0x80fffeff01);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 5, 4, false }, copy, 8), 0);
	ASSERT_EQ(hotspot_get((struct hotspot_field){ 0 }, copy, 8), 0);
}
