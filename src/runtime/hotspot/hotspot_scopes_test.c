// SPDX-License-Identifier: Apache-2.0
/* The tables are made here by the rules of HotSpot's writers (unsigned5.hpp, debugInfoRec.cpp). */
#include "runtime/hotspot/hotspot_scopes.h"

#include "test.h"

#include <errno.h>
#include <limits.h>

struct stream {
	uint8_t data[8192];
	size_t size;
	bool no_zero;
};

/* UNSIGNED5 of J2SE's Pack200: digits of base 64 above `low` codes of one byte. */
static void write_number(struct stream *s, uint32_t value)
{
	uint32_t excluded = s->no_zero, low = 192 - excluded;
	int i = 0;

	while (value >= low && i++ < 4) {
		value -= low;
		s->data[s->size++] = (uint8_t)(excluded + low + value % 64);
		value /= 64;
	}
	s->data[s->size++] = (uint8_t)(excluded + value);
	ASSERT(s->size <= sizeof(s->data));
}

/* Its offset. */
static uint32_t write_scope(struct stream *s, uint32_t sender, uint32_t method, int32_t bci)
{
	uint32_t at = (uint32_t)s->size;

	write_number(s, sender);
	write_number(s, method);
	write_number(s, (uint32_t)bci + 1);
	for (int i = 0; i < 3; i++)
		write_number(s, 0); /* locals, expressions, monitors */
	return at;
}

static struct stream new_stream(bool no_zero)
{
	return (struct stream){ .data = { 0xff }, .size = 1, .no_zero = no_zero };
}

static struct hotspot_debug_info tables(const struct stream *s, const int32_t (*pcs)[4], size_t nr)
{
	return (struct hotspot_debug_info){ .pcs = pcs,
					    .pcs_size = nr * sizeof(*pcs),
					    .scopes = s->data,
					    .scopes_size = s->size,
					    .no_zero = s->no_zero };
}

static int find(const struct stream *s, const int32_t (*pcs)[4], size_t nr, uint32_t offset,
		struct hotspot_scope *ret)
{
	const struct hotspot_debug_info info = tables(s, pcs, nr);

	return hotspot_find_place(&info, offset, ret);
}

static int find_call(const struct stream *s, const int32_t (*pcs)[4], size_t nr, uint32_t offset,
		     struct hotspot_scope *ret)
{
	const struct hotspot_debug_info info = tables(s, pcs, nr);

	return hotspot_find_call(&info, offset, ret);
}

static void check_number(bool no_zero, uint32_t value, size_t len)
{
	struct stream s = { .no_zero = no_zero };
	uint32_t read = ~value;
	size_t pos = 0;

	write_number(&s, value);
	ASSERT_EQ(s.size, len);
	for (size_t size = 0; size < len; size++) {
		ASSERT_ERR(hotspot_read_unsigned5(s.data, size, no_zero, &pos, &read), EINVAL);
		ASSERT_EQ(pos, 0);
		ASSERT_EQ(read, ~value);
	}
	ASSERT_OK(hotspot_read_unsigned5(s.data, sizeof(s.data), no_zero, &pos, &read));
	ASSERT_EQ(pos, len);
	ASSERT_EQ(read, value);
}

TEST(unsigned5_of_both_kinds)
{
	/* The largest that a length has, by the writers' own figures, and the next one. */
	static const uint32_t with_zero[] = { 0xbf, 0x30bf, 0xc30bf, 0x30c30bf };
	static const uint32_t without[] = { 0xbe, 0x307e, 0xc207e, 0x308207e };

	for (size_t i = 0; i < 4; i++) {
		check_number(false, with_zero[i], i + 1);
		check_number(false, with_zero[i] + 1, i + 2);
		check_number(true, without[i], i + 1);
		check_number(true, without[i] + 1, i + 2);
	}
	check_number(false, 0, 1);
	check_number(true, 0, 1);
	check_number(false, UINT32_MAX, 5);
	check_number(true, UINT32_MAX, 5);
}

TEST(bytes_of_unsigned5)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0xbf, 0xc0, 0x01 };
	uint32_t value;
	size_t pos = 0;

	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, false, &pos, &value));
	ASSERT_EQ(value, 0);
	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, false, &pos, &value));
	ASSERT_EQ(value, 1);
	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, false, &pos, &value));
	ASSERT_EQ(value, 191);
	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, false, &pos, &value));
	ASSERT_EQ(value, 192 + 64);
	ASSERT_ERR(hotspot_read_unsigned5(bytes, 5, false, &pos, &value), EINVAL);

	pos = 0;
	ASSERT_ERR(hotspot_read_unsigned5(bytes, 5, true, &pos, &value), EINVAL);
	pos = 1;
	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, true, &pos, &value));
	ASSERT_EQ(value, 0);
	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, true, &pos, &value));
	ASSERT_EQ(value, 190);
	ASSERT_OK(hotspot_read_unsigned5(bytes, 5, true, &pos, &value));
	ASSERT_EQ(value, 191);
	/* A zero behind a first byte is none, either. */
	pos = 0;
	ASSERT_ERR(hotspot_read_unsigned5("\xc0", 2, true, &pos, &value), EINVAL);
}

static void check_chain(bool no_zero)
{
	struct stream s = new_stream(no_zero);
	uint32_t outer = write_scope(&s, 0, 1, 300);
	uint32_t middle = write_scope(&s, outer, 700, 0);
	uint32_t inner = write_scope(&s, middle, 2, 65535);
	uint32_t entry = write_scope(&s, 0, 1, -1);
	const int32_t pcs[][4] = { { -1, 0, 0, 0 },
				   { 16, (int32_t)entry, 0, 0 },
				   { 32, (int32_t)inner, 0, 2 },
				   { 48, (int32_t)middle, 0, 0 },
				   { INT_MAX, 0, 0, 0 } };
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];

	ASSERT_EQ(find(&s, pcs, 5, 0, scopes), 1);
	ASSERT_EQ(scopes[0].method, 1);
	ASSERT_EQ(scopes[0].bci, -1);
	ASSERT_EQ(find(&s, pcs, 5, 15, scopes), 1);
	/* Behind a call that returns to 16 something else begins. */
	for (uint32_t offset = 16; offset < 32; offset++) {
		ASSERT_EQ(find(&s, pcs, 5, offset, scopes), 3);
		ASSERT_EQ(scopes[0].method, 2);
		ASSERT_EQ(scopes[0].bci, 65535);
		ASSERT_EQ(scopes[1].method, 700);
		ASSERT_EQ(scopes[1].bci, 0);
		ASSERT_EQ(scopes[2].method, 1);
		ASSERT_EQ(scopes[2].bci, 300);
	}
	ASSERT_EQ(find(&s, pcs, 5, 32, scopes), 2);
	/* Behind the last one nothing is known. */
	ASSERT_EQ(find(&s, pcs, 5, 48, scopes), 0);
	ASSERT_EQ(find(&s, pcs, 5, INT_MAX - 1, scopes), 0);
	ASSERT_ERR(find(&s, pcs, 5, UINT32_MAX, scopes), EINVAL);
}

TEST(calls)
{
	struct stream s = new_stream(true);
	uint32_t main = write_scope(&s, 0, 1, 10);
	uint32_t a = write_scope(&s, main, 2, 3);
	uint32_t b = write_scope(&s, a, 3, 1);
	uint32_t c = write_scope(&s, a, 4, 2);
	uint32_t a_later = write_scope(&s, main, 2, 6);
	uint32_t d = write_scope(&s, a_later, 3, 1);
	uint32_t main_later = write_scope(&s, 0, 1, 20);
	uint32_t e = write_scope(&s, main_later, 2, 6);
	const int32_t pcs[][4] = { { -1, 0, 0, 0 },
				   { 0x10, (int32_t)b, 0, 0 },
				   { 0x20, (int32_t)c, 0, 0 },
				   { 0x30, (int32_t)d, 0, 0 },
				   { 0x40, (int32_t)e, 0, 0 },
				   { INT_MAX, 0, 0, 0 } };
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	struct hotspot_debug_info info;

	/* With a description of its own. */
	ASSERT_EQ(find_call(&s, pcs, 6, 0x20, scopes), 3);
	ASSERT_EQ(scopes[0].method, 4);
	ASSERT_EQ(scopes[0].bci, 2);
	ASSERT_EQ(scopes[0].bci_to, 2);
	/* Between b and c: both in a, at the same bytecode. */
	ASSERT_EQ(find_call(&s, pcs, 6, 0x1f, scopes), 2);
	ASSERT_EQ(scopes[0].method, 2);
	ASSERT_EQ(scopes[0].bci, 3);
	ASSERT_EQ(scopes[0].bci_to, 3);
	ASSERT_EQ(scopes[1].method, 1);
	/* Between c and d: in a, somewhere from 3 to 6. What d has in it is another call of b. */
	ASSERT_EQ(find_call(&s, pcs, 6, 0x21, scopes), 2);
	ASSERT_EQ(scopes[0].method, 2);
	ASSERT_EQ(scopes[0].bci, 6);
	ASSERT_EQ(scopes[0].bci_to, 3);
	ASSERT_EQ(scopes[1].bci, 10);
	/* Between d and e: a is called at two places. */
	ASSERT_EQ(find_call(&s, pcs, 6, 0x38, scopes), 1);
	ASSERT_EQ(scopes[0].method, 1);
	ASSERT_EQ(scopes[0].bci, 20);
	ASSERT_EQ(scopes[0].bci_to, 10);
	info = tables(&s, pcs, 6);
	info.dense = true;
	ASSERT_EQ(hotspot_find_call(&info, 0x38, scopes), 2);
	ASSERT_EQ(scopes[0].method, 2);
	ASSERT_EQ(scopes[0].bci, 6);
	ASSERT_EQ(scopes[0].bci_to, 6);
	/* Before the first one, and behind the last. */
	ASSERT_EQ(find_call(&s, pcs, 6, 0x0f, scopes), 0);
	ASSERT_EQ(find_call(&s, pcs, 6, 0x41, scopes), 0);
	ASSERT_ERR(find_call(&s, pcs, 0, 0x10, scopes), EINVAL);
	ASSERT_ERR(find_call(&s, pcs + 5, 0, 0x10, scopes), EINVAL);
	ASSERT_EQ(find_call(&s, pcs + 1, 5, 0x10, scopes), 3);
	ASSERT_EQ(find_call(&s, pcs + 1, 5, 0x0f, scopes), 0);
}

TEST(chains_of_scopes)
{
	check_chain(false);
	check_chain(true);
}

TEST(more_scopes_than_are_shown)
{
	struct stream s = new_stream(true);
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	uint32_t scope = 0;

	for (uint32_t i = 1; i <= 100; i++)
		scope = write_scope(&s, scope, i, (int32_t)i * 10);
	const int32_t pcs[][4] = { { -1, 0, 0, 0 }, { 8, (int32_t)scope, 0, 0 } };

	ASSERT_EQ(find(&s, pcs, 2, 4, scopes), HOTSPOT_SCOPES_MAX);
	for (uint32_t i = 0; i < HOTSPOT_SCOPES_MAX - 1; i++)
		ASSERT_EQ(scopes[i].method, 100 - i);
	ASSERT_EQ(scopes[HOTSPOT_SCOPES_MAX - 1].method, 1);
	ASSERT_EQ(scopes[HOTSPOT_SCOPES_MAX - 1].bci, 10);
}

TEST(damaged_tables)
{
	struct stream s = new_stream(false);
	uint32_t outer = write_scope(&s, 0, 1, 1);
	uint32_t itself = write_scope(&s, (uint32_t)s.size, 1, 1);
	uint32_t forward = write_scope(&s, 4000, 1, 1);
	uint32_t cut = (uint32_t)s.size;
	const int32_t pcs[][4] = { { -1, 0, 0, 0 },
				   { 1, (int32_t)outer, 0, 0 },
				   { 2, (int32_t)itself, 0, 0 },
				   { 3, (int32_t)forward, 0, 0 },
				   { 4, (int32_t)cut, 0, 0 },
				   { 5, INT_MAX, 0, 0 },
				   { 6, INT_MIN, 0, 0 } };
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX] = { { 7, 7, 7 } };

	write_number(&s, 1);
	write_number(&s, 1);
	for (uint32_t offset = 1; offset < 7; offset++)
		ASSERT_ERR(find(&s, pcs, 7, offset, scopes), EINVAL);
	ASSERT_ERR(find(&s, pcs, 0, 0, scopes), EINVAL);
	ASSERT_EQ(scopes[0].method, 7);
	ASSERT_EQ(find(&s, pcs, 7, 0, scopes), 1);
}
