// SPDX-License-Identifier: Apache-2.0
/*
 * A JVM of any memory: its first words are what libjvm exports, all else is behind (see
 * src/runtime/hotspot/test_hotspot_image.h, which also says how the corpus is made). Whatever it
 * has, reading ends soon, and never reads a structure beyond its copy.
 */
#include "fuzz.h"
#include "runtime/hotspot/hotspot_class.h"
#include "runtime/hotspot/hotspot_continuation.h"
#include "runtime/hotspot/hotspot_record.h"
#include "runtime/hotspot/test_hotspot_image.h"

#include <elf.h>
#include <stdlib.h>

enum { READS_MAX = 1 << 20 };

static struct image image;
static size_t nr_reads;

static int read_counted(void *ctx, uint64_t addr, void *to, size_t size)
{
	/* An end that does not come soon is none. */
	if (++nr_reads > READS_MAX)
		abort();
	return image_read(ctx, addr, to, size);
}

static void ask(const struct hotspot_vm *vm, uint64_t addr)
{
	uint64_t blob, start, end, symbol;
	char name[100];
	ssize_t len;

	if (!hotspot_find_blob(vm, addr, &blob) && !hotspot_read_code(vm, blob, &start, &end) &&
	    (start > end || start < blob))
		abort();
	len = hotspot_read_symbol(vm, addr, name, sizeof(name));
	if (len >= 0 && strlen(name) != (size_t)len)
		abort();
	len = hotspot_read_string(vm, addr, name, sizeof(name));
	if (len >= 0 && strlen(name) != (size_t)len)
		abort();
	(void)hotspot_read_symbol_at(vm, addr, 1, &symbol);
}

/* Takes the bytes as code, and as a list of fields. */
static void parse(const uint8_t *data, size_t size)
{
	struct hotspot_continuation c = { 0 };
	struct hotspot_java_field field;
	size_t pos = 0, before = 0;
	int r;

	for (int i = 0; i < 2; i++) {
		r = hotspot_decode_enter_special(i ? EM_AARCH64 : EM_X86_64, data, size, 0x1000,
						 &c);
		if (r != -ENOENT && (r || c.return_pc < 0x1000 || c.return_pc > 0x1000 + size))
			abort();
	}
	while ((r = hotspot_next_field(data, size, &pos, &field)) > 0) {
		if (pos <= before || pos > size)
			abort();
		before = pos;
	}
	if (r && r != -EINVAL)
		abort();
}

FUZZER(data, size)
{
	struct hotspot_found found = { 0 };
	struct hotspot_record record;
	struct runtime_target target;
	struct hotspot_vm vm;
	int r;

	parse(data, size);
	image_init(&image);
	image.size = size < IMAGE_SIZE_MAX ? size : IMAGE_SIZE_MAX;
	memcpy(image.data, data, image.size);
	target = image_target(&image);
	target.memory.read = read_counted;
	nr_reads = 0;
	r = hotspot_vm_read(&target, &image.symbols, &vm);
	if (!r) {
		if (vm.nr_heaps < 1 || vm.nr_heaps > HOTSPOT_HEAPS_MAX || hotspot_missing(&vm))
			abort();
		hotspot_find(&vm, 1000, &found);
		r = hotspot_record_fill(&vm, &found, &record);
		if (!r && record.header_size > HOTSPOT_HEADER_SIZE)
			abort();
		for (size_t i = 0; i < image.size; i += 97)
			ask(&vm, IMAGE_BASE + i);
		(void)hotspot_vm_refresh(&vm);
	}
	hotspot_vm_fini(&vm);
	return 0;
}
