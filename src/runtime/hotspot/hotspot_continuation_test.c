// SPDX-License-Identifier: Apache-2.0
/*
 * The code of Continuation.enterSpecial and a class's list of fields: made by hand, after what
 * hotspot_continuation.c and hotspot_class.h say of them. hotspot_live_test.c has the real ones.
 */
#include "runtime/hotspot/hotspot_class.h"
#include "runtime/hotspot/hotspot_continuation.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "test.h"

/* clang-format off */
static const uint8_t enter_special[] = {
	0x55,						/*  0 push rbp */
	0x48, 0x89, 0xe5,				/*  1 mov rbp, rsp */
	0x48, 0x83, 0xec, 0x40,				/*  4 sub rsp, 64 */
	0x49, 0x8b, 0x87, 0x38, 0x05, 0x00, 0x00,	/*  8 mov rax, [r15 + 1336] */
	0x48, 0x89, 0x44, 0x24, 0x08,			/* 15 mov [rsp + 8], rax */
	0x49, 0x89, 0xa7, 0x38, 0x05, 0x00, 0x00,	/* 20 mov [r15 + 1336], rsp */
	0x48, 0x85, 0xd2,				/* 27 test rdx, rdx */
	0x75, 0x0f,					/* 30 jne thaw */
	0xe8, 0x11, 0x22, 0x33, 0x44,			/* 32 call enter */
	0x0f, 0x1f, 0x84, 0x00, 1, 2, 3, 4,		/* 37 nop */
	0xeb, 0x0d,					/* 45 jmp exit */
	0xe8, 0x55, 0x66, 0x77, 0x88,			/* 47 thaw: call cont_thaw */
	0x0f, 0x1f, 0x84, 0x00, 1, 2, 3, 4,		/* 52 nop */
	0xc9, 0xc3,					/* 60 exit: leave; ret */
};

enum { RETURN_AT = 52 };


static const uint32_t enter_special_a64[] = {
	0xa9bf7bfd,				/*  0 stp x29, x30, [sp, #-16]! */
	0x910003fd,				/*  1 mov x29, sp */
	0xd10103ff,				/*  2 sub sp, sp, #64 */
	0xf9427388,				/*  3 ldr x8, [x28, #1248] */
	0xf90007e8,				/*  4 str x8, [sp, #8] */
	0x910003e8,				/*  5 mov x8, sp */
	0xf9027388,				/*  6 str x8, [x28, #1248] */
	0xb5000102,				/*  7 cbnz x2, thaw */
	0x94000123,				/*  8 bl enter */
	0xd503201f, 0xf280001f, 0xf280001f,	/*  9 nop; movk xzr; movk xzr */
	0x14000007,				/* 12 b exit */
	0x90000008, 0x91012108, 0xd63f0100,	/* 13 thaw: adrp x8; add x8, x8; blr x8 */
	0xd503201f, 0xf280021f, 0xf2a0001f,	/* 16 nop; movk xzr; movk xzr */
	0x910003bf, 0xa8c17bfd, 0xd65f03c0,	/* 19 exit: leave; ret */
	0xd503201f, 0xd503201f,
};
/* clang-format on */

enum { RETURN_AT_A64 = 4 * 16 };

static int decode_for(uint16_t machine, const void *code, size_t size,
		      struct hotspot_continuation *ret)
{
	/* Of its very size, so that sanitizers see what reads beyond. */
	_cleanup_free_ uint8_t *copy = malloc(size + !size);

	memcpy(copy, code, size);
	return hotspot_decode_enter_special(machine, copy, size, 0x7000, ret);
}

static int decode(const uint8_t *code, size_t size, struct hotspot_continuation *ret)
{
	return decode_for(EM_X86_64, code, size, ret);
}

TEST(enter_special_tells_where_continuations_are)
{
	struct hotspot_continuation c = { .method = 42 };

	ASSERT_OK(decode(enter_special, sizeof(enter_special), &c));
	ASSERT_EQ(c.thread_cont_entry, 1336);
	ASSERT_EQ(c.entry_size, 64);
	ASSERT_EQ(c.return_pc, 0x7000 + RETURN_AT);
	ASSERT_EQ(c.method, 42);
}

TEST(what_is_not_exactly_so_is_not_taken)
{
	/* Bytes that carry no meaning here: numbers in call and nop, and what is between. */
	static const uint8_t free_bytes[] = { 0,  1,  2,  3,  27, 28, 29, 30, 31,
					      33, 34, 35, 36, 41, 42, 43, 44, 48,
					      49, 50, 51, 56, 57, 58, 59, 60, 61 };
	struct hotspot_continuation c = { 0 };

	for (size_t cut = 0; cut < RETURN_AT + 8; cut++)
		ASSERT_ERR(decode(enter_special, cut, &c), ENOENT);
	for (size_t i = 0; i < sizeof(enter_special); i++) {
		uint8_t copy[sizeof(enter_special)];
		bool is_free = memchr(free_bytes, (int)i, sizeof(free_bytes)) != NULL;

		memcpy(copy, enter_special, sizeof(copy));
		copy[i] ^= 0xff;
		ck_assert_msg(decode(copy, sizeof(copy), &c) == (is_free ? 0 : -ENOENT), "byte %zu",
			      i);
	}
}

TEST(so_it_does_on_aarch64)
{
	/* Calls, what they lead to, the marks in nops, and what is between. */
	static const uint8_t free_words[] = { 0, 1, 7, 19, 20, 21, 22, 23 };
	struct hotspot_continuation c = { .method = 42 };

	ASSERT_OK(decode_for(EM_AARCH64, enter_special_a64, sizeof(enter_special_a64), &c));
	ASSERT_EQ(c.thread_cont_entry, 1248);
	ASSERT_EQ(c.entry_size, 64);
	ASSERT_EQ(c.return_pc, 0x7000 + RETURN_AT_A64);
	ASSERT_EQ(c.method, 42);
	for (size_t cut = 0; cut < RETURN_AT_A64 + 12; cut++)
		ASSERT_ERR(decode_for(EM_AARCH64, enter_special_a64, cut, &c), ENOENT);
	for (size_t i = 0; i < sizeof(enter_special_a64) / 4; i++) {
		uint32_t copy[sizeof(enter_special_a64) / 4];
		bool is_free = memchr(free_words, (int)i, sizeof(free_words)) != NULL;

		memcpy(copy, enter_special_a64, sizeof(copy));
		copy[i] ^= 0x80000001;
		ck_assert_msg(decode_for(EM_AARCH64, copy, sizeof(copy), &c) ==
				      (is_free ? 0 : -ENOENT),
			      "instruction %zu", i);
	}
}

TEST(two_entries_must_agree)
{
	uint8_t twice[27 + sizeof(enter_special)];
	struct hotspot_continuation c = { 0 };

	memcpy(twice, enter_special, 27);
	memcpy(twice + 27, enter_special, sizeof(enter_special));
	ASSERT_OK(decode(twice, sizeof(twice), &c));
	ASSERT_EQ(c.return_pc, 0x7000 + 27 + RETURN_AT);
	twice[7] = 0x30;
	ASSERT_ERR(decode(twice, sizeof(twice), &c), ENOENT);
}

TEST(fields_of_a_class)
{
	/* UNSIGNED5 without zero bytes: a number below 191 is one byte, one more. */
	static const uint8_t stream[] = {
		3,  2,			 /* two of its own, one injected */
		11, 12, 17, 1, 1,	 /* name, signature, offset, access, flags */
		13, 14, 33, 9, 2,  6,	 /* static, with an initial value */
		15, 16, 49, 1, 23, 7, 8, /* injected, generic, in a group, as flags say */
		0,  99,
	};
	struct hotspot_java_field field;
	size_t pos = 0;

	ASSERT_EQ(hotspot_next_field(stream, sizeof(stream), &pos, &field), 1);
	ASSERT_EQ(field.name, 10);
	ASSERT_EQ(field.signature, 11);
	ASSERT_EQ(field.offset, 16);
	ASSERT(!field.injected && !(field.access & HOTSPOT_FIELD_STATIC));
	ASSERT_EQ(hotspot_next_field(stream, sizeof(stream), &pos, &field), 1);
	ASSERT_EQ(field.offset, 32);
	ASSERT(!field.injected && field.access & HOTSPOT_FIELD_STATIC);
	ASSERT_EQ(hotspot_next_field(stream, sizeof(stream), &pos, &field), 1);
	ASSERT_EQ(field.offset, 48);
	ASSERT(field.injected);
	ASSERT_EQ(pos, sizeof(stream) - 2);
	ASSERT_EQ(hotspot_next_field(stream, sizeof(stream), &pos, &field), 0);
	/* The array may end it as well; in the middle of a field it may not. */
	ASSERT_EQ(hotspot_next_field(stream, pos, &pos, &field), 0);
	pos = 0;
	ASSERT_ERR(hotspot_next_field(stream, 5, &pos, &field), EINVAL);
	ASSERT_ERR(hotspot_next_field(stream, 1, &pos, &field), EINVAL);
	ASSERT_ERR(hotspot_next_field(stream, 0, &pos, &field), EINVAL);
	ASSERT_EQ(pos, 0);
}

static void write_to(const char *folder, const char *name, const void *data, size_t size)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	ASSERT_PTR_NONNULL(file);
	ASSERT_EQ(fwrite(data, 1, size, file), size);
}

/* As hotspot_vm_test.c. */
TEST(corpus)
{
	const char *folder = getenv("SONDE_WRITE_CORPUS");

	if (folder)
		write_to(folder, "enter-special", enter_special, sizeof(enter_special));
	if (folder)
		write_to(folder, "enter-special-aarch64", enter_special_a64,
			 sizeof(enter_special_a64));
}
