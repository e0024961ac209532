// SPDX-License-Identifier: Apache-2.0
#include "runtime/php/php_names.h"
#include "runtime/words.h"
#include "util/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	PAGE = 4096,
	TEXT_MAX = 1023,
	WHOLE_MAX = 8191, /* of a string that is believed for its hash */
};

/* What of a zend_function tells its name. */
struct function {
	uint64_t name, scope, opcodes, lines, filename;
	uint32_t last;
	uint8_t type;
	uint32_t identity;
};

static int string_hash(const struct runtime_target *t, uint64_t string, uint64_t *ret)
{
	*ret = 0;
	return string ? runtime_read_or_gone(t, string + PHP_STRING_HASH, ret, sizeof(*ret)) : 0;
}

static int read_function(const struct runtime_target *t, const struct php_layout *l, uint64_t addr,
			 struct function *ret)
{
	uint8_t bytes[PHP_FUNCTION_SIZE] = { 0 };
	size_t first = PAGE - addr % PAGE;
	uint64_t name_hash = 0, file_hash = 0;
	int r = runtime_read(t, addr, bytes, sizeof(bytes));

	/* An internal function is shorter: as the step reads it. */
	if (r && r != -ESRCH && first < sizeof(bytes))
		r = runtime_read(t, addr, bytes, first);
	if (r)
		return r == -ESRCH ? r : -ENOENT;
	*ret = (struct function){
		.type = bytes[0],
		.name = word_at(bytes, PHP_FUNCTION_NAME),
		.scope = word_at(bytes, PHP_FUNCTION_SCOPE),
	};
	if (ret->type != PHP_INTERNAL_FUNCTION) {
		ret->opcodes = word_at(bytes, l->opcodes);
		ret->lines = word_at(bytes, l->lines);
		ret->filename = word_at(bytes, l->filename);
		memcpy(&ret->last, bytes + l->last, sizeof(ret->last));
		r = string_hash(t, ret->filename, &file_hash);
	}
	if (!r)
		r = string_hash(t, ret->name, &name_hash);
	ret->identity =
		php_identity(ret->name, ret->scope, ret->opcodes, ret->lines, name_hash, file_hash);
	return r;
}

/* PHP's names are bytes, mostly UTF-8: what is not becomes '?'. */
static void make_utf8(char *text)
{
	while (*text) {
		size_t n = utf8_len(text, SIZE_MAX);

		if (!n)
			*text = '?';
		text += n ? n : 1;
	}
}

/* A zend_string's text, cut to what fits and at a NUL: classes without a name have one in theirs.
 */
static int read_string(const struct runtime_target *t, uint64_t addr, char text[TEXT_MAX + 1])
{
	uint64_t length;
	int r = runtime_read_or_gone(t, addr + PHP_STRING_LENGTH, &length, sizeof(length));

	if (r)
		return r;
	if (length > TEXT_MAX)
		length = TEXT_MAX;
	r = runtime_read_or_gone(t, addr + PHP_STRING_TEXT, text, length);
	text[length] = '\0';
	make_utf8(text);
	return r;
}

struct names {
	char function[TEXT_MAX + 1], scope[TEXT_MAX + 1], file[TEXT_MAX + 1];
	char full[2 * TEXT_MAX + 3];
	uint32_t line;
};

/* Of code that is no function's; NULL: there is none such. */
static const char *code_name(unsigned int code)
{
	static const char *const all[] = {
		[PHP_CODE_MAIN] = "{main}",	[PHP_CODE_EVAL] = "eval",
		[PHP_CODE_INCLUDE] = "include", [PHP_CODE_INCLUDE_ONCE] = "include_once",
		[PHP_CODE_REQUIRE] = "require", [PHP_CODE_REQUIRE_ONCE] = "require_once",
	};

	return code < sizeof(all) / sizeof(*all) ? all[code] : NULL;
}

/*
 * Where that instruction is; 0: it is not known, or not one of the function's any more. (A file's
 * code is freed as soon as it has run, instructions first.)
 */
static int read_line(const struct runtime_target *t, uint64_t opcodes, uint32_t op, uint64_t lines,
		     uint32_t *ret)
{
	uint32_t line = 0;
	int r = op == PHP_NO_OP
			? 0
			: runtime_read(t, opcodes + (uint64_t)op * PHP_OP_SIZE + PHP_OP_LINE, &line,
				       sizeof(line));

	*ret = !r && line >= (uint32_t)lines && line <= lines >> 32 ? line : 0;
	return r == -ESRCH ? r : 0;
}

/* The name of code that is no function's. */
static int name_code(unsigned int code, struct names *ret)
{
	const char *name = code_name(code);

	if (!name)
		return -EINVAL;
	snprintf(ret->function, sizeof(ret->function), "%s", name);
	return 0;
}

static int read_names(const struct runtime_target *t, const struct function *f, unsigned int code,
		      uint32_t op, struct names *ret)
{
	uint64_t class_name;
	int r = 0;

	ret->scope[0] = ret->file[0] = '\0';
	ret->line = 0;
	if (f->name) {
		r = read_string(t, f->name, ret->function);
		if (!r && f->scope)
			r = runtime_read_or_gone(t, f->scope + PHP_CLASS_NAME, &class_name,
						 sizeof(class_name));
		if (!r && f->scope)
			r = read_string(t, class_name, ret->scope);
	} else {
		r = name_code(code, ret);
	}
	if (!r && f->filename)
		r = read_string(t, f->filename, ret->file);
	if (!r && f->opcodes && op < f->last)
		r = read_line(t, f->opcodes, op, f->lines, &ret->line);
	return r;
}

/* --- of copies ------------------------------------------------------------------------------- */

/* Zend/zend_string.h: zend_inline_hash_func(). */
static uint64_t hash_of(const char *text, size_t length)
{
	uint64_t hash = 5381;

	for (size_t i = 0; i < length; i++)
		hash = hash * 33 + (uint8_t)text[i];
	return hash | 1ull << 63;
}

/*
 * The name of a closure, of what begins in that line: "{closure}" behind a namespace; from 8.4 on
 * "{closure:" where ":LINE}".
 */
static bool names_closure(const char *text, size_t length, uint32_t line)
{
	static const char any[] = "{closure}", with_place[] = "{closure:";
	size_t nr = sizeof(any) - 1;
	char end[16];
	size_t nr_end = (size_t)snprintf(end, sizeof(end), ":%u}", line);

	if (length >= nr && !memcmp(text + length - nr, any, nr))
		return length == nr || text[length - nr - 1] == '\\';
	return length > nr + nr_end && !memcmp(text + length - nr_end, end, nr_end) &&
	       memmem(text, length, with_place, nr);
}

/*
 * A string of a closure's, which may be gone: it is what it was if it has the hash that it carries,
 * and that is what the step saw (the caller compares it). One without is believed if it is the name
 * of a closure from that `line` on (0: it isn't).
 */
static int read_hashed(const struct runtime_target *t, uint64_t addr, uint32_t line,
		       char text[TEXT_MAX + 1], uint64_t *ret_hash)
{
	uint64_t head[2]; /* hash, length */
	char whole[WHOLE_MAX + 1];
	int r = runtime_read_or_gone(t, addr + PHP_STRING_HASH, head, sizeof(head));
	size_t length = r ? 0 : head[1];

	if (r)
		return r;
	if (!length || length > WHOLE_MAX)
		return -ENOENT;
	r = runtime_read_or_gone(t, addr + PHP_STRING_TEXT, whole, length);
	if (r)
		return r;
	if (head[0] ? head[0] != hash_of(whole, length)
		    : !line || !names_closure(whole, length, line))
		return -ENOENT;
	if (length > TEXT_MAX)
		length = TEXT_MAX;
	memcpy(text, whole, length);
	text[length] = '\0';
	make_utf8(text);
	*ret_hash = head[0];
	return 0;
}

static int name_copy(const struct runtime_target *t, const uint64_t *words, uint64_t opcodes,
		     unsigned int code, struct names *names)
{
	uint64_t name = 0, class_name = 0, file, lines = words[PHP_WORD_LINES];
	int r = read_line(t, opcodes, (uint32_t)words[PHP_WORD_PLACE], lines, &names->line);

	names->scope[0] = '\0';
	if (!r)
		r = read_hashed(t, words[PHP_WORD_FILE], 0, names->file, &file);
	if (!r && words[PHP_WORD_CLASS])
		r = read_hashed(t, words[PHP_WORD_CLASS], 0, names->scope, &class_name);
	if (!r && words[PHP_WORD_NAME])
		r = read_hashed(t, words[PHP_WORD_NAME], (uint32_t)lines, names->function, &name);
	else if (!r)
		r = name_code(code, names);
	if (!r && php_copy_identity(name, class_name, file) != words[PHP_WORD_PLACE] >> 32)
		r = -ENOENT;
	return r;
}

/* --- of all ----------------------------------------------------------------------------------- */

static int name_function(const struct runtime_target *t, const struct php_layout *layout,
			 const uint64_t *words, uint64_t addr, unsigned int code,
			 struct names *names, uint32_t *ret_line)
{
	uint32_t identity = (uint32_t)(words[PHP_WORD_PLACE] >> 32);
	struct function f, again;
	int r = read_function(t, layout, addr, &f), r2;

	if (r)
		return r;
	if (f.identity != identity)
		return -ENOENT;
	r = read_names(t, &f, code, (uint32_t)words[PHP_WORD_PLACE], names);
	/* What was read may be another function's, if it was made meanwhile. */
	r2 = read_function(t, layout, addr, &again);
	if (!r2 && again.identity != identity)
		r2 = -ENOENT;
	*ret_line = (uint32_t)f.lines;
	return r2 ? r2 : r;
}

int php_names_symbolize(const struct runtime_target *t, const struct php_layout *layout,
			const uint64_t *words, size_t nr, const struct runtime_sink *sink)
{
	uint64_t data = FRAME_DATA(words[PHP_WORD_HEADER]);
	uint64_t addr = data & ((1ull << PHP_CODE_SHIFT) - 1);
	unsigned int code = (unsigned int)(data >> PHP_CODE_SHIFT);
	bool is_copy = code == PHP_CODE_COPY || code & PHP_CODE_KEPT;
	struct names names;
	uint32_t line;
	int r;

	if (nr != (is_copy ? PHP_COPY_WORDS : PHP_FRAME_WORDS))
		return -EINVAL;
	if (is_copy) {
		r = name_copy(t, words, addr, code & ~(unsigned int)PHP_CODE_KEPT, &names);
		line = (uint32_t)words[PHP_WORD_LINES];
	} else {
		r = name_function(t, layout, words, addr, code, &names, &line);
	}
	if (r)
		return r;
	snprintf(names.full, sizeof(names.full), "%s%s%s", names.scope, names.scope[0] ? "::" : "",
		 names.function);
	return sink->add(sink->ctx, &(struct runtime_inline_frame){
					    .name = names.full,
					    .source = names.file[0] ? names.file : NULL,
					    .start_line = line,
					    .line = names.line,
				    });
}
