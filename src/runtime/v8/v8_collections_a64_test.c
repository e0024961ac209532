// SPDX-License-Identifier: Apache-2.0
/* The code is what Node.js 20.20 and 24.22 have there. */
#include "runtime/v8/v8_collections.h"

#include "test.h"

#define BYTES(code) (const uint8_t *)(code), sizeof(code)

/* ldr w1, [x19, #580]; ldr x0, [x19, #360]; add w1, w1, #1; str w1, [x19, #580] */
static const uint32_t once[] = { 0xb9424661, 0xf940b660, 0x11000421, 0xb9024661, 0xd65f03c0 };
/* stp; mov; mov x1, #53952; add x20, x0, x1; add x22, x0, #8, lsl #12; mov x21, x0; mov x0, x20; bl
 */
static const uint32_t statistics[] = { 0xa9bc7bfd, 0x910003fd, 0xd29a5801, 0x8b010014,
				       0x91402016, 0xaa0003f5, 0xaa1403e0, 0x940798fd };
/* add x10, x26, #0x80; sub x2, x26, #0x100; blr x23 */
static const uint32_t ways_out[] = { 0x9102034a, 0xd1040342, 0xd63f02e0 };

TEST(where_collections_are_counted)
{
	/* ldr w1, [x19, #572]; add; str, twice */
	static const uint32_t twice[] = { 0xb9423e61, 0x11000421, 0xb9023e61, 0xd503201f,
					  0xb9423e61, 0x11000421, 0xb9023e61 };
	int32_t heap = 0;

	ASSERT_EQ(v8_find_collections_a64(BYTES(once), BYTES(statistics), BYTES(ways_out), &heap),
		  0xd2c0 + 580 - 0x100);
	ASSERT_EQ(heap, 0xd2c0 - 0x100);
	ASSERT_EQ(v8_find_collections_a64(BYTES(twice), BYTES(statistics), BYTES(ways_out), &heap),
		  0xd2c0 + 572 - 0x100);
}

TEST(what_is_not_certain_is_done_without)
{
	/* Two places; one that is read elsewhere than it is written; no address that is given on.
	 */
	static const uint32_t two[] = { 0xb9423e61, 0x11000421, 0xb9023e61, 0xd503201f, 0xd503201f,
					0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f,
					0xb9424661, 0x11000421, 0xb9024661 },
			      moved[] = { 0xb9424661, 0x11000421, 0xb9023e61 },
			      given[] = { 0xd29a5801, 0x8b010014, 0x940798fd, 0xaa1403e0 };
	int32_t heap = 7;

	ASSERT_EQ(v8_find_collections_a64(BYTES(two), BYTES(statistics), BYTES(ways_out), &heap),
		  0);
	ASSERT_EQ(v8_find_collections_a64(BYTES(moved), BYTES(statistics), BYTES(ways_out), &heap),
		  0);
	ASSERT_EQ(v8_find_collections_a64(BYTES(once), BYTES(given), BYTES(ways_out), &heap), 0);
	ASSERT_EQ(v8_find_collections_a64(BYTES(once), BYTES(statistics), BYTES(once), &heap), 0);
	ASSERT_EQ(v8_find_collections_a64(NULL, 0, NULL, 0, NULL, 0, &heap), 0);
	ASSERT_EQ(heap, 7);
}
