// SPDX-License-Identifier: Apache-2.0
/* The code is what Node.js 24.22 has there. */
#include "runtime/v8/v8_dispatch.h"

#include <elf.h>

#include "test.h"

#define BYTES(code) (const uint8_t *)(code), sizeof(code)

TEST(x86_64)
{
	/* mov 0x220(%r13),%rdx; mov 0x2ed8(%r13),%r10; mov %r15,%rbx; shr $8,%ebx; shl $4,%ebx;
	 * padding */
	static const uint8_t call[64] = { 0x49, 0x8b, 0x95, 0x20, 0x02, 0x00, 0x00, 0x4d,
					  0x8b, 0x95, 0xd8, 0x2e, 0x00, 0x00, 0x49, 0x8b,
					  0xdf, 0xc1, 0xeb, 0x08, 0xc1, 0xe3, 0x04 },
			     whole[64] = { 0x4d, 0x8b, 0x95, 0xd8, 0x2e,
					   0x00, 0x00, 0xc1, 0xe3, 0x04 },
			     other[64] = { 0x4d, 0x8b, 0x95, 0xd8, 0x2e,
					   0x00, 0x00, 0xc1, 0xe3, 0x03 };
	uint16_t shift = 0;

	ASSERT_EQ(v8_find_dispatch(EM_X86_64, BYTES(call), &shift), 0x2ed8);
	ASSERT_EQ(shift, 8);
	ASSERT_EQ(v8_find_dispatch(EM_X86_64, BYTES(whole), &shift), 0x2ed8);
	ASSERT_EQ(shift, 0);
	ASSERT_EQ(v8_find_dispatch(EM_X86_64, BYTES(other), &shift), 0);
	ASSERT_EQ(v8_find_dispatch(EM_X86_64, call, 0, &shift), 0);
}

TEST(aarch64)
{
	/* ldr x20, [x26, #11864]; lsr x2, x4, #8; add x20, x20, x2, lsl #4; ldrh w2, [x20, #8] */
	static const uint32_t call[] = { 0xf940d343, 0xf9572f54, 0xd348fc82, 0x8b021294,
					 0x79401282 },
			      other[] = { 0xf9572f54, 0xd348fc82, 0x8b031294 },
			      elsewhere[] = { 0xf9572f34, 0xd348fc82, 0x8b021294 };
	uint16_t shift = 0;

	ASSERT_EQ(v8_find_dispatch(EM_AARCH64, BYTES(call), &shift), 11864);
	ASSERT_EQ(shift, 8);
	ASSERT_EQ(v8_find_dispatch(EM_AARCH64, BYTES(other), &shift), 0);
	ASSERT_EQ(v8_find_dispatch(EM_AARCH64, BYTES(elsewhere), &shift), 0);
	ASSERT_EQ(v8_find_dispatch(EM_AARCH64, (const uint8_t *)call, 12, &shift), 0);
}
