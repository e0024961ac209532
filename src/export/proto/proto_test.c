// SPDX-License-Identifier: Apache-2.0
#include "export/proto/gzip.h"
#include "export/proto/pack.h"
#include "export/proto/read.h"
#include "export/proto/wire.h"
#include "util/cleanup.h"
#include "test.h"

#include "otlp.pb-c.h"

#include <errno.h>
#include <stdlib.h>

TEST(fields_are_read_as_they_are_written)
{
	struct pack b = { 0 };
	struct wire_field f;
	struct wire w;

	ASSERT_OK(pack_number(&b, 1, 300));
	ASSERT_OK(pack_number(&b, 2, 0)); /* left out */
	ASSERT_OK(pack_fixed64(&b, 3, UINT64_MAX - 1));
	ASSERT_OK(pack_bytes(&b, 4, "abc", 3));
	ASSERT_OK(pack_bytes(&b, 5, NULL, 0));
	ASSERT_OK(pack_number(&b, 536870911, UINT64_MAX));
	w = wire_of(b.items, b.nr);
	ASSERT_EQ(wire_next(&w, &f), 1);
	ASSERT(f.number == 1 && f.type == WIRE_VARINT && f.value == 300);
	ASSERT_EQ(wire_next(&w, &f), 1);
	ASSERT(f.number == 3 && f.type == WIRE_FIXED64 && f.value == UINT64_MAX - 1);
	ASSERT_EQ(wire_next(&w, &f), 1);
	ASSERT(f.number == 4 && f.type == WIRE_BYTES && f.size == 3 && !memcmp(f.data, "abc", 3));
	ASSERT_EQ(wire_next(&w, &f), 1);
	ASSERT(f.number == 5 && f.type == WIRE_BYTES && f.size == 0);
	ASSERT_EQ(wire_next(&w, &f), 1);
	ASSERT(f.number == 536870911 && f.value == UINT64_MAX);
	ASSERT_EQ(wire_next(&w, &f), 0);
	pack_fini(&b);
}

static int next(const char *bytes, size_t size)
{
	struct wire w = wire_of(bytes, size);
	struct wire_field f;

	return wire_next(&w, &f);
}

TEST(malformed_fields_are_refused)
{
	ASSERT_EQ(next("", 0), 0);
	ASSERT_ERR(next("\x08", 1), EBADMSG);	  /* no value */
	ASSERT_ERR(next("\x08\xff", 2), EBADMSG); /* half a value */
	ASSERT_ERR(next("\x0a\x02"
			"a",
			3),
		   EBADMSG); /* beyond the end */
	ASSERT_ERR(next("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), EBADMSG);
	ASSERT_ERR(next("\x0b", 1), EBADMSG);	      /* a group */
	ASSERT_ERR(next("\x02\x00", 2), EBADMSG);     /* field 0 */
	ASSERT_ERR(next("\x09\x00\x00", 3), EBADMSG); /* half a fixed64 */
	ASSERT_ERR(next("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12), EBADMSG);
}

TEST(tables_number_what_is_distinct)
{
	struct pack_table t;
	uint32_t id;

	ASSERT_OK(pack_table_init(&t, 5));
	ASSERT_OK(pack_table_bytes(&t, "a\0b", 3, &id));
	ASSERT_EQ(id, 1);
	ASSERT_OK(pack_table_bytes(&t, "a\0c", 3, &id));
	ASSERT_EQ(id, 2);
	ASSERT_OK(pack_table_bytes(&t, "", 0, &id));
	ASSERT_EQ(id, 0);
	ASSERT_OK(pack_table_bytes(&t, "a\0b", 3, &id));
	ASSERT_EQ(id, 1);
	ASSERT_OK(pack_table_bytes(&t, "a\0c", 3, &id));
	ASSERT_EQ(id, 2);
	ASSERT_EQ(t.bytes.nr, 2 + 5 + 5);
	for (uint32_t i = 0; i < 10000; i++)
		ASSERT_OK(pack_table_bytes(&t, &i, sizeof(i), &id));
	for (uint32_t i = 0; i < 10000; i++) {
		ASSERT_OK(pack_table_bytes(&t, &i, sizeof(i), &id));
		ASSERT_EQ(id, i + 3);
	}
	pack_table_fini(&t);
}

TEST(text_is_clean)
{
	struct pack_text t = { 0 };
	const char *clean;

	ASSERT_OK(pack_clean(&t, "[u8; 16]\n\xff;;\xe2\x82\xac;", &clean));
	ASSERT_STR(clean, "[u8; 16]_?;;\xe2\x82\xac;");
	ASSERT_OK(pack_clean(&t, "", &clean));
	ASSERT_STR(clean, "");
	pack_text_fini(&t);
}

TEST(markers_are_known)
{
#define MARKER(text) pack_parse_marker(text, strlen(text))
	ASSERT_EQ(MARKER("[truncated: no_rule]"), STOP_NO_RULE);
	ASSERT_EQ(MARKER("[truncated: of another version]"), STOP_NONE);
	ASSERT_EQ(MARKER("[truncated: unknown]"), STOP_NONE);
	ASSERT_EQ(MARKER("[truncated: complete]"), STOP_NONE);
	ASSERT_EQ(MARKER("[truncated: no_rule"), STOP_MAX_);
	ASSERT_EQ(MARKER("[truncated: ]"), STOP_MAX_);
	ASSERT_EQ(MARKER("main"), STOP_MAX_);
}

TEST(kernel_files_are_known_by_name)
{
#define KERNEL(text) pack_is_kernel_path(text, strlen(text))
	ASSERT(KERNEL("[kernel.kallsyms]"));
	ASSERT(KERNEL("[kernel.kallsyms]_stext"));
	ASSERT(KERNEL("[nf_tables]"));
	ASSERT(KERNEL("/lib/modules/6.1.0/kernel/net/nf.ko"));
	ASSERT(KERNEL("vmlinux"));
	ASSERT(!KERNEL("[vdso]"));
	ASSERT(!KERNEL("[anon]"));
	ASSERT(!KERNEL("[stack:12]"));
	ASSERT(!KERNEL("/usr/bin/vmlinux-tool"));
	ASSERT(!KERNEL(""));
}

TEST(a_frequency_is_what_has_that_period)
{
	struct slice cpu = slice_of("cpu"), ns = slice_of("nanoseconds");

	for (uint32_t hz = 1; hz <= 20000; hz++)
		ASSERT_EQ(reader_frequency(cpu, ns, 1000000000 / hz), hz);
	ASSERT_EQ(reader_frequency(cpu, ns, 10101011), 0);
	ASSERT_EQ(reader_frequency(cpu, ns, 0), 0);
	ASSERT_EQ(reader_frequency(cpu, ns, -5), 0);
	ASSERT_EQ(reader_frequency(cpu, ns, 2000000000), 0);
	ASSERT_EQ(reader_frequency(slice_of("space"), ns, 10000000), 0);
}

/* A file that is mapped twice has one address space. */
TEST(mappings_of_a_file_are_joined)
{
	struct profile p;
	struct reader r = { .p = &p };
	uint64_t bias;
	uint32_t id;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_file(&p, "/lib/x.so", NULL, 0, &id));
	reader_place_file(&r, id, 0x7f0000001000, 0x7f0000005000, 0x1000, &bias);
	ASSERT_EQ(bias, 0);
	/* Its next segment. */
	reader_place_file(&r, id, 0x7f0000006000, 0x7f0000008000, 0x5000, &bias);
	ASSERT_EQ(bias, 0);
	ASSERT_EQ(p.files.items[id].end, 0x7f0000008000);
	/* Another process. */
	reader_place_file(&r, id, 0x550000000000, 0x550000005000, 0, &bias);
	ASSERT_EQ(0x550000001000 + bias, 0x7f0000001000);
	ASSERT_EQ(p.files.items[id].start, 0x7f0000000000);
	ASSERT_EQ(p.files.items[id].offset, 0);
	reader_place_file(&r, id, 5, 5, 0, &bias);
	ASSERT_EQ(bias, 0);
	profile_fini(&p);
}

/* A message that unpacks to very much more than it is. */
TEST(unpacking_is_bounded)
{
	struct wire_memory m = { 0 };
	size_t size = 32 << 20;
	_cleanup_free_ uint8_t *data = malloc(size);
	void *message;

	for (size_t i = 0; i < size; i += 2) {
		data[i] = 0x0a; /* an empty attribute */
		data[i + 1] = 0;
	}
	ASSERT_ERR(wire_unpack(&m, &otlp__resource__descriptor, data, size, &message), E2BIG);
	ASSERT_OK(wire_unpack(&m, &otlp__resource__descriptor, data, 64, &message));
	ASSERT_EQ(((Otlp__Resource *)message)->n_attributes, 32);
	ASSERT_ERR(wire_unpack(&m, &otlp__resource__descriptor, data, 63, &message), EBADMSG);
	wire_memory_fini(&m);
}
