// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets: those of versions with debug offsets out of real ones, and what makes no sense.
 */
#include "runtime/python/python_async.h"
#include "runtime/python/python_debug_fixture.h"
#include "runtime/python/python_offsets.h"

#include "test.h"

#include <errno.h>

static uint64_t words[PYTHON_DEBUG_OFFSETS_SIZE / 8];

static void set_words(const struct debug_fixture *f)
{
	memset(words, 0, sizeof(words));
	memcpy(words, PYTHON_DEBUG_COOKIE, 8);
	memcpy(words + 1, f->words, sizeof(f->words));
}

TEST(debug_offsets_of_each_version)
{
	for (int i = 0; i < NR_DEBUG_FIXTURES; i++) {
		const struct debug_fixture *f = &debug_fixtures[i];
		struct python_record r;
		struct python_layout l;

		set_words(f);
		ASSERT_OK(python_offsets_parse(words, sizeof(words), &r, &l));
		ASSERT_EQ(r.minor, f->minor);
		ASSERT_EQ(l.minor, f->minor);
		ASSERT_EQ(l.free_threaded, f->free_threaded);
		ASSERT_EQ(r.frames, PYTHON_ENTRY);
		/* offsetof() of these headers. */
		ASSERT_EQ(r.ts_next, 8);
		ASSERT_EQ(r.ts_interp, 16);
		ASSERT_EQ(r.ts_frame, 72);
		ASSERT_EQ(r.ts_thread_id, f->minor == 15 ? 176 : 152);
		ASSERT_EQ(r.f_owner, f->minor == 13 ? 70 : f->free_threaded ? 78 : 74);
		ASSERT_EQ(r.f_tlbc, f->free_threaded ? 72 : 0);
		ASSERT_EQ(r.co_tlbc, f->free_threaded ? 224 : 0);
		ASSERT_EQ(r.co_version, f->free_threaded ? 108 : 92);
		ASSERT_EQ(r.co_firsttraceable, f->minor == 13 ? 184 : f->free_threaded ? 208 : 192);
		ASSERT_EQ(r.co_type, f->free_threaded ? 24 : 8);
		ASSERT_EQ(r.co_name, f->free_threaded ? 144 : 128);
		ASSERT_EQ(l.co_name, f->free_threaded ? 136 : 120);
		ASSERT_EQ(l.co_qualname, r.co_name);
		ASSERT_EQ(l.str_ascii, f->free_threaded ? 56 : 40);
		ASSERT_EQ(l.bytes_data, f->free_threaded ? 48 : 32);
		ASSERT(r.co_size <= PYTHON_CODE_SIZE_MAX);
		ASSERT(r.f_size >= r.f_owner + 1);
	}
}

static void check_async(const struct python_layout *l, struct python_record *r, bool has)
{
	const struct python_record before = *r;

	if (!has) {
		ASSERT_EQ(python_async_of(l, r), -ENOTSUP);
		ASSERT(!memcmp(&before, r, sizeof(before)));
		return;
	}
	ASSERT_OK(python_async_of(l, r));
	ASSERT_EQ(r->flags, before.flags | PYTHON_ASYNC);
	ASSERT(r->async.task_coro < r->async.task_size);
	ASSERT_EQ(!!r->async.fut_awaited_by, l->minor >= 14);
	ASSERT_EQ(!!r->async.values, l->minor >= 11 && l->minor <= 13); /* TaskGroup */
	ASSERT(r->async.co_argcount + 4 <= r->co_size);
	for (int i = 0; i < PYTHON_ASYNC_NAMES; i++) {
		ASSERT(r->async.names[i] != 0);
		for (int k = 0; k < i; k++)
			ASSERT(r->async.names[i] != r->async.names[k]);
	}
}

TEST(tasks_of_each_version)
{
	struct python_record r;
	struct python_layout l;

	for (unsigned int minor = 6; minor <= 12; minor++) {
		ASSERT_OK(python_offsets_of(minor, &r, &l));
		check_async(&l, &r, minor >= 7);
	}
	for (int i = 0; i < NR_DEBUG_FIXTURES; i++) {
		set_words(&debug_fixtures[i]);
		ASSERT_OK(python_offsets_parse(words, sizeof(words), &r, &l));
		check_async(&l, &r, !l.free_threaded);
	}
}

TEST(what_is_no_debug_offsets)
{
	struct python_record r;
	struct python_layout l;

	set_words(&debug_fixtures[0]);
	ASSERT_ERR(python_offsets_parse(words, 40, &r, &l), EINVAL);
	ASSERT_ERR(python_offsets_parse(words, 400, &r, &l), EINVAL);
	words[1] = 0x03200000; /* 3.32 */
	ASSERT_ERR(python_offsets_parse(words, sizeof(words), &r, &l), ENOTSUP);
	words[1] = 0x04000000;
	ASSERT_ERR(python_offsets_parse(words, sizeof(words), &r, &l), ENOTSUP);
	words[0]++;
	ASSERT_ERR(python_offsets_parse(words, sizeof(words), &r, &l), EINVAL);
}

/* Whatever stands there: refused, or within what the step reads. */
TEST(offsets_that_lead_too_far_are_refused)
{
	for (int i = 0; i < NR_DEBUG_FIXTURES; i++) {
		for (size_t at = 6; at < 96; at++) {
			struct python_record r;
			struct python_layout l;

			set_words(&debug_fixtures[i]);
			words[at] = 0x123456789;
			if (python_offsets_parse(words, sizeof(words), &r, &l))
				continue;
			ASSERT(r.ts_size <= 255 && r.f_size <= 192 && r.co_size <= 255);
			ASSERT(r.ts_frame + 8 <= r.ts_size && r.ts_interp + 8 <= r.ts_size);
			ASSERT(r.f_code + 8 <= r.f_size && r.f_previous + 8 <= r.f_size);
			ASSERT(r.co_name + 8 <= r.co_size && r.co_filename + 8 <= r.co_size);
			ASSERT(l.co_qualname + 8 <= l.code_size && l.co_name + 8 <= l.code_size);
		}
	}
}

TEST(versions_that_are_known)
{
	for (unsigned int minor = 0; minor < 256; minor++)
		ASSERT_EQ(python_offsets_known(minor), minor >= 6 && minor <= 15);
}

TEST(tables_of_versions)
{
	for (unsigned int minor = 0; minor < 30; minor++) {
		struct python_record r;
		struct python_layout l;

		if (minor < 6 || minor > 12) {
			ASSERT_ERR(python_offsets_of(minor, &r, &l), ENOTSUP);
			continue;
		}
		ASSERT_OK(python_offsets_of(minor, &r, &l));
		ASSERT_EQ(r.minor, minor);
		ASSERT(r.ts_size <= 255 && r.f_size <= 192 && r.co_size <= 255);
		ASSERT(r.f_owner < r.f_size && r.f_instr + 4 <= r.f_size);
		ASSERT_EQ(!!r.co_version, minor == 12);
		ASSERT_EQ(!!l.co_qualname, minor >= 11);
	}
}
