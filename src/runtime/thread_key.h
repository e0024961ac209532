/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where pthread_getspecific() of x86-64's libcs looks for the value of a key, from the thread
 * pointer on. Which libc it is shows in what is found there: whoever reads tries both, and checks.
 */
#pragma once

#include <linux/types.h>

struct thread_key {
	__u64 near;   /* the value is in the word there (glibc, small keys); 0: it isn't */
	__u64 far;    /* or the word there points to a table, */
	__u64 far_at; /* in which it is so far behind the begin (glibc, others; musl); 0: no table
		       */
};
_Static_assert(sizeof(struct thread_key) == 24, "thread_key is read from the arena");

enum {
	/* glibc's struct pthread: where values of the first 32 keys are, { sequence number, value }
	 * each; and pointers to the next ones' (nptl/descr.h). */
	THREAD_KEY_GLIBC_FIRST = 0x310,
	THREAD_KEY_GLIBC_BLOCKS = 0x510,
	THREAD_KEY_GLIBC_BLOCK = 32,
	/* musl's: a pointer to all (src/internal/pthread_impl.h, 1.1.20 to 1.2.5). */
	THREAD_KEY_MUSL = 0x80,
	THREAD_KEYS_MAX = 1024,
};

/* Of a key below THREAD_KEYS_MAX. */
static inline struct thread_key thread_key_of(__u32 key)
{
	struct thread_key k = { 0 };

	if (key < THREAD_KEY_GLIBC_BLOCK) {
		k.near = THREAD_KEY_GLIBC_FIRST + 16 * key + 8;
		k.far = THREAD_KEY_MUSL;
		k.far_at = 8 * key;
	} else {
		k.far = THREAD_KEY_GLIBC_BLOCKS + 8 * (key / THREAD_KEY_GLIBC_BLOCK);
		k.far_at = 16 * (key % THREAD_KEY_GLIBC_BLOCK) + 8;
	}
	return k;
}
