// SPDX-License-Identifier: Apache-2.0
#include "export/read_stack.h"

#include <stdio.h>
#include <string.h>

/* --- text ------------------------------------------------------------------------------------- */

struct text_lines text_lines_of(const void *data, size_t size)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *at = data;
	size_t len = sizeof(mark) - 1;

	if (size < len || memcmp(at, mark, len))
		len = 0;
	return (struct text_lines){ .at = at + len, .end = at + size };
}

bool text_next_line(struct text_lines *lines, struct text *ret)
{
	size_t left = (size_t)(lines->end - lines->at);
	const char *newline;

	if (!left)
		return false;
	newline = memchr(lines->at, '\n', left);
	*ret = (struct text){ lines->at, newline ? (size_t)(newline - lines->at) : left };
	lines->at = newline ? newline + 1 : lines->end;
	lines->number++;
	lines->is_cut = !newline;
	if (ret->len && ret->s[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

bool text_equals(struct text text, const char *s)
{
	return text.len == strlen(s) && !memcmp(text.s, s, text.len);
}

bool text_ends_with(struct text text, const char *end)
{
	size_t len = strlen(end);

	return text.len >= len && !memcmp(text.s + text.len - len, end, len);
}

bool text_number(struct text text, uint64_t *ret)
{
	uint64_t n = 0;

	if (!text.len)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.s[i] < '0' || text.s[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(text.s[i] - '0'), &n))
			return false;
	}
	*ret = n;
	return true;
}

int text_problem(size_t line, const char *what, struct text excerpt, char problem[200])
{
	char clean[64];

	profile_clean_text(excerpt.s, excerpt.len, clean, sizeof(clean));
	snprintf(problem, 200, "line %zu: %s: '%s'", line, what, clean);
	return -EBADMSG;
}

int text_check(const void *data, size_t size, char problem[200])
{
	const char *nul = size ? memchr(data, '\0', size) : NULL;
	size_t line = 1;

	if (!nul)
		return 0;
	for (const char *c = data; c < nul; c++)
		line += *c == '\n';
	snprintf(problem, 200, "line %zu: a NUL byte: this is no text", line);
	return -EBADMSG;
}

bool text_looks_like_text(const void *data, size_t size)
{
	const unsigned char *c = data;
	size_t nr = size < 4096 ? size : 4096;

	for (size_t i = 0; i < nr; i++)
		if ((c[i] < ' ' && c[i] != '\t' && c[i] != '\n' && c[i] != '\r') || c[i] == 0x7f)
			return false;
	return size > 0;
}

/* --- stacks ----------------------------------------------------------------------------------- */

void read_stack_fini(struct read_stack *stack)
{
	vec_free(&stack->inline_frames);
	vec_free(&stack->frames);
	free(stack->buf);
	stack->buf = NULL;
	stack->size = 0;
}

void read_stack_reset(struct read_stack *stack)
{
	stack->inline_frames.nr = 0;
	stack->frames.nr = 0;
}

int read_stack_string(struct read_stack *stack, struct text text, const char **ret)
{
	char *grown;

	if (text.len >= stack->size) {
		grown = realloc(stack->buf, text.len * 2 + 64);
		if (!grown)
			return -ENOMEM;
		stack->buf = grown;
		stack->size = text.len * 2 + 64;
	}
	memcpy(stack->buf, text.s, text.len);
	stack->buf[text.len] = '\0';
	*ret = stack->buf;
	return 0;
}

int read_stack_add_inline_frame(struct read_stack *stack, struct text name, uint32_t source)
{
	struct profile_function function = { .source = source };
	struct profile_line line = { 0 };
	int r = strtab_intern(&stack->p->strings, name.s, name.len, &function.name);

	if (!r)
		r = profile_add_function(stack->p, &function, &line.function);
	return r ? r : vec_push(&stack->inline_frames, line);
}

int read_stack_close_frame(struct read_stack *stack, uint16_t kind, uint32_t file, uint64_t address)
{
	struct profile_frame frame = { .kind = kind, .file = file, .address = address };
	uint32_t id;
	int r = profile_add_named_frame(stack->p, &frame, stack->inline_frames.items,
					stack->inline_frames.nr, &id);

	stack->inline_frames.nr = 0;
	return r ? r : vec_push(&stack->frames, id);
}

int read_stack_finish(struct read_stack *stack, enum stop_reason stop, uint32_t *ret)
{
	int r = 0;

	if (stack->inline_frames.nr)
		r = read_stack_close_frame(stack, FRAME_KIND_NATIVE, PROFILE_NO_FILE, 0);
	return r ? r
		 : profile_add_stack(stack->p, stack->frames.items, stack->frames.nr, stop, ret);
}
