// SPDX-License-Identifier: Apache-2.0
#include "runtime/php/php_names.h"
#include "runtime/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	PAGE = 4096,
	TEXT_MAX = 1023,
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

/* How many bytes of UTF-8 begin at `p`, a NUL behind it; 0: none. */
static size_t utf8_length(const uint8_t *p)
{
	size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : 4;

	if (*p >= 0xf5 || (*p >= 0x80 && *p < 0xc2) || (*p == 0xe0 && p[1] < 0xa0) ||
	    (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
	    (*p == 0xf4 && p[1] >= 0x90))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* PHP's names are bytes, mostly UTF-8: what is not becomes '?'. */
static void make_utf8(char *text)
{
	uint8_t *p = (uint8_t *)text;

	while (*p) {
		size_t n = utf8_length(p);

		if (!n)
			*p = '?';
		p += n ? n : 1;
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

/* Of code that is no function's. */
static const char *code_name(unsigned int code)
{
	static const char *const all[] = {
		[PHP_CODE_MAIN] = "{main}",	[PHP_CODE_EVAL] = "eval",
		[PHP_CODE_INCLUDE] = "include", [PHP_CODE_INCLUDE_ONCE] = "include_once",
		[PHP_CODE_REQUIRE] = "require", [PHP_CODE_REQUIRE_ONCE] = "require_once",
	};

	return code < sizeof(all) / sizeof(*all) ? all[code] : NULL;
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
		const char *name = code_name(code);

		if (!name)
			return -EINVAL;
		snprintf(ret->function, sizeof(ret->function), "%s", name);
	}
	if (!r && f->filename)
		r = read_string(t, f->filename, ret->file);
	if (!r && f->opcodes && op < f->last)
		r = runtime_read_or_gone(t, f->opcodes + (uint64_t)op * PHP_OP_SIZE + PHP_OP_LINE,
					 &ret->line, sizeof(ret->line));
	if (!r)
		snprintf(ret->full, sizeof(ret->full), "%s%s%s", ret->scope,
			 ret->scope[0] ? "::" : "", ret->function);
	return r;
}

int php_names_symbolize(const struct runtime_target *t, const struct php_layout *layout,
			const uint64_t *words, size_t nr, const struct runtime_sink *sink)
{
	struct function f, again;
	struct names names;
	uint32_t identity;
	uint64_t addr;
	int r, r2;

	if (nr != 2)
		return -EINVAL;
	addr = FRAME_DATA(words[0]) & ((1ull << PHP_CODE_SHIFT) - 1);
	identity = (uint32_t)(words[1] >> 32);
	r = read_function(t, layout, addr, &f);
	if (r)
		return r;
	if (f.identity != identity)
		return -ENOENT;
	r = read_names(t, &f, (unsigned int)(FRAME_DATA(words[0]) >> PHP_CODE_SHIFT),
		       (uint32_t)words[1], &names);
	/* What was read may be another function's, if it was made meanwhile. */
	r2 = read_function(t, layout, addr, &again);
	if (!r2 && again.identity != identity)
		r2 = -ENOENT;
	if (r || r2)
		return r2 ? r2 : r;
	return sink->add(sink->ctx, &(struct runtime_level){
					    .name = names.full,
					    .source = names.file[0] ? names.file : NULL,
					    .start_line = (uint32_t)f.lines,
					    .line = names.line,
				    });
}
