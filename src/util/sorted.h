/* SPDX-License-Identifier: Apache-2.0 */
/* Looking things up in sorted arrays. */
#pragma once

#include <stddef.h>

/*
 * How many of `nr` things come before what is looked for, and so the place of the first that does
 * not. `before` is an expression that says it of thing `i`; it holds for all up to some place, and
 * for none behind that.
 */
#define sorted_before(nr, i, before)                                                               \
	({                                                                                         \
		size_t sorted_low_ = 0, sorted_high_ = (nr);                                       \
                                                                                                   \
		while (sorted_low_ < sorted_high_) {                                               \
			const size_t i = sorted_low_ + (sorted_high_ - sorted_low_) / 2;           \
                                                                                                   \
			if (before)                                                                \
				sorted_low_ = i + 1;                                               \
			else                                                                       \
				sorted_high_ = i;                                                  \
		}                                                                                  \
		sorted_low_;                                                                       \
	})
