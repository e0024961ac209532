/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the decoder begin with: an empty profile, no process, no kernel. */
#pragma once

#include "symbolize/decoder.h"
#include "unwinder/unwinder.h"

#include "test.h"

#include <string.h>

struct test_decoder {
	struct unwinder unwinder;
	struct decoder decoder;
	struct profile profile;
};

static inline void test_decoder_init(struct test_decoder *t)
{
	const struct unwinder_options options = { .arena_bytes = 1 << 20 };

	memset(t, 0, sizeof(*t));
	ASSERT_OK(unwinder_init(&t->unwinder, &options));
	ASSERT_OK(profile_init(&t->profile));
	ASSERT_OK(decoder_init(&t->decoder, &t->unwinder.publisher, &t->profile, NULL));
}

static inline void test_decoder_fini(struct test_decoder *t)
{
	decoder_fini(&t->decoder);
	unwinder_fini(&t->unwinder);
	profile_fini(&t->profile);
}
