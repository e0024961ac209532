// SPDX-License-Identifier: Apache-2.0
/*
 * Reads folded stacks, ours and other tools': docs/formats/folded.md says what is understood. A
 * line is taken apart from its end: count, then the elements from the leaf to the comm.
 */
#include "export/folded_text.h"
#include "export/places.h"
#include "export/read_stack.h"
#include "util/cleanup.h"
#include "util/hex.h"

#include <string.h>

struct reader {
	struct profile *p;
	struct read_stack stack;
	VEC(struct text) elements; /* the comm first */
	bool differential;	   /* each line has two counts */
};

/* --- the count -------------------------------------------------------------------------------- */

/* "12", "12." and "12.00"; what has no whole number cannot be counted. */
static bool parse_count(struct text text, uint64_t *ret)
{
	const char *point = memchr(text.s, '.', text.len);

	for (const char *c = point ? point + 1 : text.s + text.len; c < text.s + text.len; c++)
		if (*c != '0')
			return false;
	if (point)
		text.len = (size_t)(point - text.s);
	return text_number(text, ret);
}

/* Takes the last word off `line`; false if there is none behind something else. */
static bool take_last_word(struct text *line, struct text *ret)
{
	size_t end = line->len, at;

	while (end && (line->s[end - 1] == ' ' || line->s[end - 1] == '\t'))
		end--;
	for (at = end; at && line->s[at - 1] != ' ' && line->s[at - 1] != '\t';)
		at--;
	if (!at || at == end)
		return false;
	*ret = (struct text){ line->s + at, end - at };
	line->len = at;
	while (line->len && (line->s[line->len - 1] == ' ' || line->s[line->len - 1] == '\t'))
		line->len--;
	return line->len > 0;
}

static bool take_count(struct text *line, uint64_t *ret)
{
	struct text word, rest = *line;

	if (!take_last_word(&rest, &word) || !parse_count(word, ret))
		return false;
	*line = rest;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_empty(struct text line)
{
	for (size_t i = 0; i < line.len; i++)
		if (!is_blank(line.s[i]))
			return false;
	return true;
}

/* "# ..." is a comment; a thread may be called "#" or "#1", but blanks of its name are '_'. */
static bool is_skipped(struct text line)
{
	uint64_t count;

	if (is_empty(line))
		return true;
	if (line.s[0] != '#' || (line.len > 1 && !is_blank(line.s[1])))
		return false;
	return !take_count(&line, &count) || line.len > 1;
}

/*
 * Two recordings in one file: "stack 3 4". A name may end in a number, too, so that only a file of
 * several lines that are all so is taken for one.
 */
static bool is_differential(const void *data, size_t size)
{
	struct text_lines lines = text_lines_of(data, size);
	struct text line;
	size_t nr = 0;

	while (text_next_line(&lines, &line)) {
		uint64_t count;

		if (is_skipped(line))
			continue;
		if (!take_count(&line, &count) || !take_count(&line, &count))
			return false;
		nr++;
	}
	return nr > 1;
}

/* --- elements --------------------------------------------------------------------------------- */

static bool take_suffix(struct text *text, const char *suffix)
{
	if (!text_ends_with(*text, suffix) || text->len == strlen(suffix))
		return false;
	text->len -= strlen(suffix);
	return true;
}

/* "[libc.so.6+0x2724a]": the frame has no name. */
static bool parse_unnamed(struct text text, struct text *ret_file, uint64_t *ret_address)
{
	const char *plus, *end = text.s + text.len - 1;

	if (text.len < 6 || text.s[0] != '[' || *end != ']')
		return false;
	plus = memrchr(text.s, '+', text.len);
	if (!plus || plus == text.s + 1 || end - plus < 4 || memcmp(plus, "+0x", 3) ||
	    hex_parse(plus + 3, end, ret_address) != end)
		return false;
	*ret_file = (struct text){ text.s + 1, (size_t)(plus - text.s - 1) };
	return true;
}

/*
 * "[python: unknown]", a runtime's frame without a name, and "[python: not_ready]", what is said in
 * place of its frames.
 */
static bool parse_runtime(struct text text, uint16_t *ret_kind, bool *ret_named)
{
	const char *colon = text.len > 2 && text.s[0] == '[' && text.s[text.len - 1] == ']'
				    ? memchr(text.s, ':', text.len)
				    : NULL;
	struct text rest;
	uint16_t kind;

	if (!colon || colon[1] != ' ')
		return false;
	kind = profile_runtime_kind(text.s + 1, (size_t)(colon - text.s - 1));
	if (kind == FRAME_KIND_NATIVE)
		return false;
	rest = (struct text){ colon + 2, (size_t)(text.s + text.len - 1 - (colon + 2)) };
	*ret_kind = kind;
	*ret_named = !text_equals(rest, "unknown");
	return true;
}

/* Files without a path are "[vdso]", and so are the kernel's: there the brackets are the name's. */
static bool is_bracketed(struct text file, bool kernel)
{
	static const char *const names[] = { "vdso", "vsyscall", "anon" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (text_equals(file, names[i]))
			return true;
	return kernel;
}

static int add_file(struct reader *r, struct text name, bool kernel, uint32_t *ret)
{
	_cleanup_free_ char *path = NULL;

	if (text_equals(name, "unknown")) {
		*ret = PROFILE_NO_FILE;
		return 0;
	}
	if (asprintf(&path, is_bracketed(name, kernel) ? "[%.*s]" : "%.*s", (int)name.len, name.s) <
	    0)
		return -ENOMEM;
	return profile_add_file(r->p, path, NULL, 0, ret);
}

static int add_element(struct reader *reader, struct text name)
{
	bool inlined = take_suffix(&name, "_[i]");
	bool kernel = !inlined && take_suffix(&name, "_[k]");
	uint16_t kind = kernel ? FRAME_KIND_KERNEL : FRAME_KIND_NATIVE;
	uint32_t file = PROFILE_NO_FILE;
	bool named = inlined || reader->stack.inline_frames.nr;
	bool runtime_named = true;
	uint64_t address = 0;
	struct text path;
	int r = 0;

	if (!named && !kernel && parse_runtime(name, &kind, &runtime_named))
		r = runtime_named ? read_stack_add_inline_frame(&reader->stack, name, 0) : 0;
	else if (!named && name.len < INT32_MAX && parse_unnamed(name, &path, &address))
		r = add_file(reader, path, kernel, &file);
	else if (!named && text_equals(name, "[anon]"))
		r = add_file(reader, (struct text){ "anon", 4 }, false, &file);
	else
		r = read_stack_add_inline_frame(&reader->stack, name, 0);
	if (r || inlined)
		return r;
	return read_stack_close_frame(&reader->stack, kind, file, address);
}

/* Takes "<separator>12" off the end. */
static bool take_id(struct text *text, char separator, int32_t *ret)
{
	size_t at = text->len;
	uint64_t n;

	while (at && text->s[at - 1] != separator)
		at--;
	if (!at || !text_number((struct text){ text->s + at, text->len - at }, &n) || n > INT32_MAX)
		return false;
	text->len = at - 1;
	*ret = (int32_t)n;
	return true;
}

/* "comm-12/34" has PID and TID behind it. "comm-12" does not: many threads are called so. */
static void parse_ids(struct text *comm, int32_t *ret_pid, int32_t *ret_tid)
{
	struct text rest = *comm;
	int32_t pid, tid;

	*ret_pid = *ret_tid = 0;
	if (!take_id(&rest, '/', &tid) || !take_id(&rest, '-', &pid) || !rest.len)
		return;
	*comm = rest;
	*ret_pid = pid;
	*ret_tid = tid;
}

static int add_sample(struct reader *reader, struct text comm, uint32_t stack, uint64_t count)
{
	uint32_t process, thread;
	const char *name;
	int32_t pid, tid;
	int r;

	parse_ids(&comm, &pid, &tid);
	if (text_equals(comm, "[no_name]"))
		comm.len = 0;
	r = read_stack_string(&reader->stack, comm, &name);
	if (!r)
		r = profile_add_process(reader->p, pid, 0, &process);
	if (!r)
		r = profile_add_thread(reader->p, process, tid, name, &thread);
	if (!r && pid && pid == tid)
		reader->p->processes.items[process].name = reader->p->threads.items[thread].comm;
	return r ? r : profile_add_sample(reader->p, thread, stack, count, NULL);
}

static int split(struct reader *reader, struct text line)
{
	const char *at = line.s, *end = line.s + line.len;
	int r = 0;

	reader->elements.nr = 0;
	while (!r) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));
		size_t len = (size_t)((semicolon ? semicolon : end) - at);

		/* "a;;b" and a ';' at either end: there is nothing between. */
		if (len)
			r = vec_push(&reader->elements, ((struct text){ at, len }));
		if (!semicolon)
			break;
		at = semicolon + 1;
	}
	return r;
}

static int read_line(struct reader *reader, struct text line, uint64_t count)
{
	enum stop_reason stop = STOP_COMPLETE;
	uint32_t stack;
	size_t first = 1;
	int r = split(reader, line);

	if (r)
		return r;
	if (!reader->elements.nr)
		return -EBADMSG;
	read_stack_reset(&reader->stack);
	if (reader->elements.nr > 1)
		stop = truncation_parse(reader->elements.items[1].s, reader->elements.items[1].len);
	if (stop != STOP_COMPLETE)
		first = 2;
	for (size_t i = reader->elements.nr; i > first && !r; i--)
		r = add_element(reader, reader->elements.items[i - 1]);
	if (!r)
		r = read_stack_finish(&reader->stack, stop, &stack);
	return r ? r : add_sample(reader, reader->elements.items[0], stack, count);
}

static int read_all(struct reader *reader, const void *data, size_t size, char problem[200])
{
	struct text_lines lines = text_lines_of(data, size);
	struct text line;
	uint64_t sum = 0;
	int r;

	reader->differential = is_differential(data, size);
	while (text_next_line(&lines, &line)) {
		struct text whole = line;
		uint64_t count, before;

		if (is_skipped(line))
			continue;
		if (!take_count(&line, &count))
			return text_problem(lines.number, "there is no whole count at the end",
					    whole, problem);
		if (__builtin_add_overflow(sum, count, &sum))
			return text_problem(lines.number, "the counts' sum is too large", whole,
					    problem);
		if (reader->differential)
			(void)take_count(&line, &before);
		r = read_line(reader, line, count);
		if (r == -EBADMSG)
			return text_problem(lines.number, "there is no stack", whole, problem);
		if (r)
			return r == -EOVERFLOW ? -E2BIG : r;
	}
	return 0;
}

int folded_text_read(const void *data, size_t size, struct profile *ret, char ret_problem[200])
{
	struct reader reader = { .p = ret, .stack.p = ret };
	int r = text_check(data, size, ret_problem);

	if (!r)
		r = read_all(&reader, data, size, ret_problem);
	read_stack_fini(&reader.stack);
	vec_free(&reader.elements);
	return r;
}

/* The first line that counts has a count; a line that `data` cuts has a ';' at least. */
bool folded_text_recognise(const void *data, size_t size)
{
	struct text_lines lines = text_lines_of(data, size);
	struct text line;
	uint64_t count;

	if (!text_looks_like_text(data, size))
		return false;
	while (text_next_line(&lines, &line)) {
		if (is_skipped(line))
			continue;
		if (lines.at == lines.end && size >= 4096)
			return line.s[0] != '{' && memchr(line.s, ';', line.len);
		/* "comm 12" begins a sample in perf script's text: a frame follows. */
		return take_count(&line, &count) && (lines.at == lines.end || *lines.at != '\t');
	}
	return false;
}
