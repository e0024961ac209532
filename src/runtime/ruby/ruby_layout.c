// SPDX-License-Identifier: Apache-2.0
#include "runtime/ruby/ruby_layout.h"

#include <stddef.h>

static const struct ruby_layout layouts[] = {
	{ .version = 207,
	  .cfp_size = 56,
	  .string_text = 16,
	  .path = 64,
	  .base_label = 72,
	  .label = 80,
	  .first_line = 88,
	  .node = 96,
	  .lines = 120,
	  .nr_lines = 136,
	  .positions = 144,
	  .line_size = 8,
	  .serial = 40,
	  .class_ext = 24,
	  .variables = 8,
	  .singleton = 1 << 12,
	  .error = 120,
	  .nil = 8,
	  .thread_ec = 32,
	  .ec_thread = 56 },
	{ .version = 301,
	  .cfp_size = 64,
	  .string_text = 16,
	  .path = 64,
	  .base_label = 72,
	  .label = 80,
	  .first_line = 88,
	  .node = 96,
	  .lines = 120,
	  .nr_lines = 136,
	  .positions = 144,
	  .line_size = 12,
	  .serial = 40,
	  .class_ext = 24,
	  .variables = 8,
	  .singleton = 1 << 12,
	  .error = 112,
	  .nil = 8 },
	{ .version = 303,
	  .cfp_size = 56,
	  .string_text = 24,
	  .string_length = 1,
	  .path = 64,
	  .base_label = 72,
	  .label = 80,
	  .first_line = 88,
	  .line_is_int = true,
	  .lines = 112,
	  .nr_lines = 128,
	  .positions = 136,
	  .line_size = 12,
	  .serial = 40,
	  .class_ext = 32,
	  .class_ext_within = true,
	  .attached = 96,
	  .permanent = 117,
	  .classpath = 120,
	  .singleton = 1 << 12,
	  .error = 120,
	  .nil = 4 },
};

const struct ruby_layout *ruby_layout_of(unsigned int version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}
