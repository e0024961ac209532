/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things lie in CRuby's structures, by version, on 64-bit machines. From vm_core.h, method.h,
 * iseq.h, internal/class.h and the headers of strings at each version's tag.
 */
#pragma once

#include "runtime/ruby/ruby_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct ruby_layout {
	uint16_t version; /* 100 * major + minor */
	/* For the step: see struct ruby_record. */
	uint8_t cfp_size, string_text, string_length;
	uint8_t path, label, first_line, node, lines, serial, error, nil, stack;
	/* Before 3.0: what a thread runs, in its struct rb_thread_struct; and that, in what it
	 * runs. */
	uint8_t thread_ec, ec_thread;
	bool line_is_int; /* the first line: no object, and what numbers the iseq is behind it */
	/* In an iseq's body: base label; how many entries `lines` has; where they lie in the code
	 * (0: each says so in its first word). */
	uint8_t base_label, nr_lines, positions;
	uint8_t line_size; /* of such an entry */
	uint8_t line_at;   /* in such an entry */
	uint8_t parent;	   /* likewise: what an eval's is called by; 0: its label has that */
	/* In a class: its extension, or a pointer to it. */
	uint8_t class_ext;
	bool class_ext_within;
	/* In that: a table of instance variables with its name, or the name; neither: its first
	 * word leads to the variables, and its shape says which is which. */
	uint8_t variables, classpath;
	uint16_t shapes;    /* in struct rb_vm_struct: where shapes are; 0: there are none */
	uint8_t permanent;  /* of the name: a bool */
	uint8_t attached;   /* what a singleton class is of; 0: in `variables` */
	uint32_t singleton; /* the flag of such a class */
};

/* NULL: not known. */
const struct ruby_layout *ruby_layout_of(unsigned int version);
