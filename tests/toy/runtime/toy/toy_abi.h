/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent (toy.c) tells the step (toy.bpf.c) of a process that runs a toy machine, and what
 * the step's frames are made of.
 *
 * Words of a frame: data = address of the function; word 1 = the low half of its serial number <<
 * 32 | the number of the op. Functions are made again at addresses of old ones, serials are not
 * used again.
 */
#pragma once

#include <linux/types.h>

/* As the machine exports it, at its symbol toy_offsets: in bytes, in its structs. */
struct toy_offsets {
	char magic[8]; /* "toyvm" */
	__u16 version;
	__u16 thread_next, thread_pointer, thread_activation;
	__u16 activation_previous, activation_frame;
	__u16 frame_back, frame_function, frame_pc;
	__u16 function_serial, function_name, function_source, function_start_line, function_nr_ops,
		function_ops;
	__u16 op_size, op_line;
	__u16 pad_;
};
_Static_assert(sizeof(struct toy_offsets) == 44, "toy_offsets is read from the machine's file");

enum {
	/* How much of each struct is read at once; offsets are multiples of 8 below it. */
	TOY_STRUCT_SIZE = 64,
	TOY_THREADS_MAX = 64,	 /* looked at for a thread */
	TOY_ACTIVATIONS_MAX = 8, /* passed over for a loop's */
};
/* The word of what was read; the verifier wants to see that it is one. */
#define TOY_WORD(offset) ((offset) / 8 & (TOY_STRUCT_SIZE / 8 - 1))

struct toy_record {
	__u64 threads; /* address of the pointer to the first one */
	struct toy_offsets offsets;
	__u32 pad_;
};
_Static_assert(sizeof(struct toy_record) == 56, "toy_record is read from the arena");
