/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scope-bound clean-up. Declare with the attribute and initialise in the same statement; take the
 * value out with TAKE_PTR/TAKE_FD when it escapes. Never mix with goto in one function.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__auto_type take_tmp_ = (p);                                                       \
		(p) = NULL;                                                                        \
		take_tmp_;                                                                         \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int take_tmp_ = (fd);                                                              \
		(fd) = -1;                                                                         \
		take_tmp_;                                                                         \
	})

/* Defines f_p(), the form of destructor `f` that _cleanup_() wants. */
#define DEFINE_CLEANUP(type, f)                                                                    \
	static inline void f##_p(type *p)                                                          \
	{                                                                                          \
		if (*p)                                                                            \
			f(*p);                                                                     \
	}

static inline void free_p(void *p)
{
	free(*(void **)p);
}

static inline void close_p(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

DEFINE_CLEANUP(FILE *, fclose)
DEFINE_CLEANUP(DIR *, closedir)

#define _cleanup_free_	 _cleanup_(free_p)
#define _cleanup_close_	 _cleanup_(close_p)
#define _cleanup_fclose_ _cleanup_(fclose_p)
