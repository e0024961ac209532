/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thin macros over the check library. A test file is a list of TEST(name) { ... }: each runs in a
 * process of its own, main() is in test_main.c, and the results are TAP for meson. One executable
 * has the files of a folder: linking takes longer than most tests.
 *
 * A file that needs what this machine may not have has a TEST_SKIP_REASON() { ... }: the file is
 * skipped with what that returns, if it isn't NULL.
 */
#pragma once

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct test_entry {
	const char *name, *file;
	const TTest *test;
	struct test_entry *next;
};

struct test_skip_entry {
	const char *file;
	const char *(*reason)(void);
	struct test_skip_entry *next;
};

void test_register(struct test_entry *entry);
void test_register_skip(struct test_skip_entry *entry);
/* The source tree, for fixtures: $SONDE_SOURCE_ROOT, set by meson. */
const char *test_source_root(void);
/* Around a test: where sanitizers look for leaks, and there can be none, they need not. */
void test_begins(void);
void test_ends(void);

#define TEST(name_)                                                                                \
	static void name_##_body_(void);                                                           \
	static void name_##_run_(int _i __attribute__((unused)))                                   \
	{                                                                                          \
		test_begins();                                                                     \
		name_##_body_();                                                                   \
		test_ends();                                                                       \
	}                                                                                          \
	static const TTest name_##_ttest_ = { #name_, name_##_run_, __FILE__, __LINE__ };          \
	static struct test_entry name_##_entry_ = { #name_, __BASE_FILE__, &name_##_ttest_,        \
						    NULL };                                        \
	__attribute__((constructor)) static void name_##_register_(void)                           \
	{                                                                                          \
		test_register(&name_##_entry_);                                                    \
	}                                                                                          \
	static void name_##_body_(void)

#define TEST_SKIP_REASON()                                                                         \
	static const char *test_skip_reason_(void);                                                \
	static struct test_skip_entry test_skip_entry_ = { __BASE_FILE__, test_skip_reason_,       \
							   NULL };                                 \
	__attribute__((constructor)) static void test_skip_register_(void)                         \
	{                                                                                          \
		test_register_skip(&test_skip_entry_);                                             \
	}                                                                                          \
	static const char *test_skip_reason_(void)

/* As ck_assert_msg(), but check is told nothing of what holds: it would write each to a file, and
 * tests assert millions of times. */
#define ASSERT_MSG(ok, ...)                                                                        \
	do {                                                                                       \
		if (!(ok))                                                                         \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)
#define ASSERT(expr) ASSERT_MSG(expr, "%s", "'" #expr "' does not hold")
#define ASSERT_OK(expr)                                                                            \
	do {                                                                                       \
		int ok_r_ = (expr);                                                                \
		ASSERT_MSG(ok_r_ >= 0, "%s = %d (%s)", #expr, ok_r_, strerror(-ok_r_));            \
	} while (0)
#define ASSERT_ERR(expr, err)                                                                      \
	do {                                                                                       \
		int err_r_ = (expr);                                                               \
		ASSERT_MSG(err_r_ == -(err), "%s = %d, not %d", #expr, err_r_, -(err));            \
	} while (0)
#define ASSERT_EQ(a, b)                                                                            \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		ASSERT_MSG(a_ == b_, "%s = %lld (0x%llx), %s = %lld (0x%llx)", #a, a_, a_, #b, b_, \
			   b_);                                                                    \
	} while (0)
#define ASSERT_STR(a, b)      ck_assert_str_eq((a), (b))
#define ASSERT_PTR_NULL(p)    ck_assert_ptr_null(p)
#define ASSERT_PTR_NONNULL(p) ck_assert_ptr_nonnull(p)
#define FAIL(...)	      ck_abort_msg(__VA_ARGS__)
