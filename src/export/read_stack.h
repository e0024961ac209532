/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What readers of texts share: lines, numbers, and stacks that arrive as names. Inline frames are
 * added innermost first; a function that is not inlined closes its frame.
 */
#pragma once

#include "profile/profile.h"

/* A piece of the text. */
struct text {
	const char *s;
	size_t len;
};

struct text_lines {
	const char *at, *end;
	size_t number; /* of the line that was taken last, from 1 */
	bool is_cut;   /* that line has no end */
};

struct read_stack {
	struct profile *p;
	VEC(struct profile_line) inline_frames; /* of the frame that is not closed yet */
	VEC(uint32_t) frames;			/* innermost first */
	char *buf;				/* for C strings */
	size_t size;
};

/* All lines of a text; a byte order mark (UTF-8) in front of them is passed over. */
struct text_lines text_lines_of(const void *data, size_t size);
/* The next line without its end ("\n" or "\r\n"); false behind the last one. */
bool text_next_line(struct text_lines *lines, struct text *ret);
bool text_equals(struct text text, const char *s);
bool text_ends_with(struct text text, const char *end);
/* All of it is a decimal number that fits. */
bool text_number(struct text text, uint64_t *ret);
/* -EBADMSG, with "line N: <what>: '<excerpt>'" in `problem`. */
int text_problem(size_t line, const char *what, struct text excerpt, char problem[200]);
/* A NUL byte stands nowhere: 0, or -EBADMSG. */
int text_check(const void *data, size_t size, char problem[200]);
/* The first bytes of the file: text without a control character but tab and line ends. */
bool text_looks_like_text(const void *data, size_t size);

void read_stack_fini(struct read_stack *stack);
void read_stack_reset(struct read_stack *stack);
/* A C string of it, valid until the next call; 0 or -ENOMEM. */
int read_stack_string(struct read_stack *stack, struct text text, const char **ret);
/* `source` is a string of the profile; 0: not known. */
int read_stack_add_inline_frame(struct read_stack *stack, struct text name, uint32_t source);
/* Closes the frame that the inline frames are of; without an inline frame it is one without a name.
 */
int read_stack_close_frame(struct read_stack *stack, uint16_t kind, uint32_t file,
			   uint64_t address);
/* Adds the stack to the profile. Inline frames whose frame was not closed are a native frame. */
int read_stack_finish(struct read_stack *stack, enum stop_reason stop, uint32_t *ret);
