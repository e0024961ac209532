// SPDX-License-Identifier: Apache-2.0
/*
 * Names as Ruby 3.4 and later has them in backtraces, for all versions: "Class#method",
 * "Class.method", "block in Class#method", "<main>", "<class:Name>".
 *
 * Facts: CRuby's vm_backtrace.c (calc_pos(), gen_method_name()), iseq.c (struct succ_index_table),
 * symbol.c (get_id_serial_entry()), variable.c (classname()), st.c.
 */
#include "runtime/ruby/ruby_names.h"

#include "util/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE = 4096,
	FRAME_WORDS = 3,
	IDS_AT_ONCE = 512,     /* symbol.c, ID_ENTRY_UNIT: each has a string and a symbol */
	ID_OPERATOR_MAX = 255, /* ids of operators are their own numbers, */
	ID_SHIFT = 4,	       /* those of others are shifted (id.h, RUBY_ID_SCOPE_SHIFT) */
	VARIABLES_MAX = 64,    /* of a class that are looked through */
	VARIABLE_SIZE = 24,    /* st.c: struct st_table_entry */
	LINES_MAX = 1 << 20,
	LINELESS_MAX = 4, /* entries one behind the other */
	EVALS_MAX = 16,	  /* in each other */
	METHOD_ISEQ = 0,  /* method.h: VM_METHOD_TYPE_ISEQ */
	METHOD_TYPE = 15,
	SHAPE_VARIABLE = 1, /* shape.h: SHAPE_IVAR */
};
#define NO_SHAPE UINT32_MAX

struct text {
	char text[RUBY_NAME_MAX + 1];
};

/* --- memory ----------------------------------------------------------------------------------- */

/* Whatever can't be read is gone, if the process is not. */
static int get(const struct ruby_names *n, uint64_t addr, void *to, size_t size)
{
	int r = runtime_read(n->target, addr, to, size);

	return !r || r == -ESRCH ? r : -ENOENT;
}

static int get_word(const struct ruby_names *n, uint64_t addr, uint64_t *ret)
{
	return get(n, addr, ret, sizeof(*ret));
}

static bool is_object(uint64_t value)
{
	return value > PAGE && !(value & 7);
}

/* The string at `addr`, or the first one of the array there: its header, and where it is. */
static int get_string(const struct ruby_names *n, uint64_t addr, uint64_t *ret_addr,
		      uint64_t s[static RUBY_STRING_WORDS])
{
	const size_t size = RUBY_STRING_WORDS * sizeof(*s);
	int r = is_object(addr) ? get(n, addr, s, size) : -ENOENT;

	if (!r && (s[0] & RUBY_TYPE) == RUBY_T_ARRAY) {
		addr = s[2];
		if (!(s[0] & RUBY_ARRAY_WITHIN))
			r = get_word(n, s[4], &addr);
		if (!r)
			r = is_object(addr) ? get(n, addr, s, size) : -ENOENT;
	}
	*ret_addr = addr;
	return r ? r : (s[0] & RUBY_TYPE) == RUBY_T_STRING ? 0 : -ENOENT;
}

/* As the step's ruby_string(). */
static int text_hash(const struct ruby_names *n, uint64_t addr, uint64_t *ret)
{
	uint64_t s[RUBY_STRING_WORDS], words[RUBY_TEXT_WORDS] = { 0 }, length, at;
	size_t size = sizeof(words);
	int r = get_string(n, addr, &addr, s);

	if (r)
		return r;
	at = ruby_text_at(n->record, (const __u64 *)s, addr, (__u64 *)&length);
	if (length > size)
		at += length - size;
	else
		size = length;
	r = size ? get(n, at, words, size) : 0;
	if (!r)
		*ret = ruby_text(length, (const __u64 *)words);
	return r;
}

/* Bytes that begin no character of UTF-8 become '?'. */
static void make_printable(char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		size_t more = c < 0x80 ? 0 : c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : 1;
		bool good = c >= ' ' && c != 0x7f && (c < 0x80 || (c >= 0xc2 && c < 0xf5));

		if (more >= length - i)
			good = false;
		for (size_t k = 1; good && k <= more; k++)
			good = ((unsigned char)text[i + k] & 0xc0) == 0x80;
		if (!good)
			text[i] = '?';
		i += good ? more + 1 : 1;
	}
}

/* A string's text, cut to `max` bytes. */
static int get_text(const struct ruby_names *n, uint64_t addr, char *to, size_t max)
{
	uint64_t s[RUBY_STRING_WORDS], length, at;
	int r = get_string(n, addr, &addr, s);

	if (r)
		return r;
	at = ruby_text_at(n->record, (const __u64 *)s, addr, (__u64 *)&length);
	if (length > max) {
		length = max;
	}
	r = length ? get(n, at, to, length) : 0;
	if (r)
		return r;
	to[length] = '\0';
	make_printable(to, length);
	return 0;
}

/* --- symbols ---------------------------------------------------------------------------------- */

static int array_element(const struct ruby_names *n, uint64_t array, uint64_t i, uint64_t *ret)
{
	uint64_t a[RUBY_STRING_WORDS];
	int r = is_object(array) ? get(n, array, a, sizeof(a)) : -ENOENT;

	if (r)
		return r;
	if ((a[0] & RUBY_TYPE) != RUBY_T_ARRAY || i >= 1u << 24)
		return -ENOENT;
	if (a[0] & RUBY_ARRAY_WITHIN)
		return i < (a[0] >> RUBY_ARRAY_LENGTH_SHIFT & RUBY_ARRAY_LENGTH)
			       ? get_word(n, array + 16 + 8 * i, ret)
			       : -ENOENT;
	return i < a[2] ? get_word(n, a[4] + 8 * i, ret) : -ENOENT;
}

/* The name of a symbol's number. */
static int id_text(const struct ruby_names *n, uint64_t id, struct text *ret)
{
	uint64_t serial = id <= ID_OPERATOR_MAX ? id : id >> ID_SHIFT, ids, part, string;
	/* struct rb_symbols_t: last_id, str, ids */
	int r = get_word(n, n->symbols + 16, &ids);

	if (!r)
		r = array_element(n, ids, serial / IDS_AT_ONCE, &part);
	if (!r)
		r = array_element(n, part, serial % IDS_AT_ONCE * 2, &string);
	return r ? r : get_text(n, string, ret->text, RUBY_NAME_MAX);
}

bool ruby_is_symbols(const struct runtime_target *target, const struct ruby_layout *layout,
		     const struct ruby_record *record, uint64_t addr)
{
	const struct ruby_names n = {
		.target = target, .record = record, .layout = layout, .symbols = addr
	};
	uint64_t words[3];
	struct text text;

	/* The table's text is a hash table in memory, the ids are an array. */
	if (get(&n, addr, words, sizeof(words)) || (uint32_t)words[0] < ID_OPERATOR_MAX / 2 ||
	    words[0] > UINT32_MAX || !is_object(words[1]) || !is_object(words[2]))
		return false;
	return !id_text(&n, '+', &text) && !strcmp(text.text, "+") && !id_text(&n, '!', &text) &&
	       !strcmp(text.text, "!");
}

/* --- classes ---------------------------------------------------------------------------------- */

/* What of 3.2's struct rb_shape is looked at (shape.h). */
struct shape {
	uint64_t edges, id; /* of the variable that it adds to those of its parent */
	uint32_t nr, capacity;
	uint8_t type, pool, pad_[2];
	uint32_t parent;
};

/* Of an object of this shape whose variables are at `values`: one of them. */
static int shape_variable(const struct ruby_names *n, uint32_t shape, uint64_t values,
			  const char *name, uint64_t *ret)
{
	uint64_t vm, list;
	struct text text;
	struct shape s;
	int r = get_word(n, n->vm, &vm);

	if (!r)
		r = get_word(n, vm + n->layout->shapes, &list);
	for (unsigned int i = 0; !r && i < VARIABLES_MAX && shape != NO_SHAPE; i++) {
		r = get(n, list + (uint64_t)shape * sizeof(s), &s, sizeof(s));
		if (!r && s.type == SHAPE_VARIABLE && s.nr && !id_text(n, s.id, &text) &&
		    !strcmp(text.text, name))
			return get_word(n, values + 8 * (uint64_t)(s.nr - 1), ret);
		shape = s.parent;
	}
	return r ? r : -ENOENT;
}

/* A variable of a class that has no name in Ruby: "__classpath__". `ext` is the class's. */
static int class_variable(const struct ruby_names *n, uint64_t class, uint64_t ext,
			  const char *name, uint64_t *ret)
{
	/* st.c, struct st_table: two numbers, their type, ... entries_start, entries_bound, entries
	 */
	uint64_t table, flags, t[7];
	struct text text;
	int r = get_word(n, ext + n->layout->variables, &table);

	if (!r && n->layout->shapes) {
		r = get_word(n, class, &flags);
		return r ? r : shape_variable(n, (uint32_t)(flags >> 32), table, name, ret);
	}
	if (!r)
		r = is_object(table) ? get(n, table, t, sizeof(t)) : -ENOENT;
	for (uint64_t i = 0; !r && i < VARIABLES_MAX && i < t[5]; i++) {
		uint64_t entry[3]; /* hash, key, value */

		r = get(n, t[6] + i * VARIABLE_SIZE, entry, sizeof(entry));
		if (r || entry[0] == UINT64_MAX || id_text(n, entry[1], &text) ||
		    strcmp(text.text, name) != 0)
			continue;
		*ret = entry[2];
		return 0;
	}
	return r ? r : -ENOENT;
}

static int class_ext(const struct ruby_names *n, uint64_t class, uint64_t *ret)
{
	*ret = class + n->layout->class_ext;
	return n->layout->class_ext_within ? 0 : get_word(n, *ret, ret);
}

/* The name that a class keeps. */
static int class_name(const struct ruby_names *n, uint64_t class, struct text *ret)
{
	const struct ruby_layout *l = n->layout;
	uint64_t ext, path;
	uint8_t permanent;
	int r = class_ext(n, class, &ext);

	if (!r && !l->classpath) {
		r = class_variable(n, class, ext, "__classpath__", &path);
	} else if (!r) {
		r = get_word(n, ext + l->classpath, &path);
		if (!r)
			r = get(n, ext + l->permanent, &permanent, sizeof(permanent));
		if (!r && !(permanent & 1))
			r = -ENOENT;
	}
	return r ? r : get_text(n, path, ret->text, RUBY_NAME_MAX);
}

/* What stands before a method's name; empty if its class has none. -ESRCH only. */
static int class_prefix(const struct ruby_names *n, uint64_t class, struct text *ret)
{
	char mark = '#';
	uint64_t flags, ext;
	size_t length;
	int r = is_object(class) ? get_word(n, class, &flags) : -ENOENT;

	if (!r && flags & n->layout->singleton && (flags & RUBY_TYPE) == RUBY_T_CLASS) {
		mark = '.';
		r = class_ext(n, class, &ext);
		if (!r)
			r = n->layout->attached
				    ? get_word(n, ext + n->layout->attached, &class)
				    : class_variable(n, class, ext, "__attached__", &class);
		if (!r)
			r = is_object(class) ? get_word(n, class, &flags) : -ENOENT;
	}
	if (!r && (flags & RUBY_TYPE) != RUBY_T_CLASS && (flags & RUBY_TYPE) != RUBY_T_MODULE)
		r = -ENOENT;
	if (!r)
		r = class_name(n, class, ret);
	length = r ? 0 : strlen(ret->text);
	if (length && length < RUBY_NAME_MAX)
		ret->text[length++] = mark;
	ret->text[length] = '\0';
	return r == -ESRCH ? r : 0;
}

/* --- functions -------------------------------------------------------------------------------- */

struct function {
	struct ruby_identity id;
	uint64_t body[RUBY_BODY_WORDS];
	uint64_t definition_type;
};

static int identify_method(const struct ruby_names *n, uint64_t entry, struct function *f)
{
	uint64_t words[RUBY_METHOD_WORDS], definition[RUBY_DEFINITION_WORDS];
	int r = get(n, entry, words, sizeof(words));

	if (!r && !ruby_is_imemo(words[0], RUBY_IMEMO_METHOD))
		r = -ENOENT;
	if (!r)
		r = get(n, words[2], definition, sizeof(definition));
	if (r)
		return r;
	f->id.definition = words[2];
	f->id.owner = words[4];
	f->id.name = definition[4];
	f->id.serial = n->layout->serial ? definition[n->layout->serial / 8] : 0;
	f->definition_type = definition[0] & METHOD_TYPE;
	return 0;
}

static int identify_iseq(const struct ruby_names *n, uint64_t iseq, struct function *f)
{
	const struct ruby_layout *l = n->layout;
	uint64_t words[3], path, label;
	int r = get(n, iseq, words, sizeof(words));

	if (!r && !ruby_is_imemo(words[0], RUBY_IMEMO_ISEQ))
		r = -ENOENT;
	if (!r)
		r = get(n, words[2], f->body, sizeof(f->body));
	if (!r)
		r = text_hash(n, f->body[l->label / 8], &label);
	if (!r)
		r = text_hash(n, f->body[l->path / 8], &path);
	if (r)
		return r;
	f->id.body = words[2];
	f->id.code = f->body[1];
	f->id.path = f->body[l->path / 8];
	f->id.label = f->body[l->label / 8];
	f->id.line = f->body[l->first_line / 8];
	f->id.node = l->node ? (uint32_t)f->body[l->node / 8] : 0;
	f->id.lines = f->body[l->lines / 8];
	f->id.path_text = path;
	f->id.label_text = label;
	return 0;
}

/* The function of a frame, if it is the one that the walker saw. */
static int identify(const struct ruby_names *n, const uint64_t *words, struct function *ret)
{
	uint64_t data = FRAME_DATA(words[0]);
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	if (data & RUBY_CFUNC) {
		r = identify_method(n, data & RUBY_ADDRESS, ret);
	} else {
		r = identify_iseq(n, data, ret);
		if (!r && words[2])
			r = identify_method(n, words[2], ret);
	}
	if (r)
		return r;
	return ruby_cookie(&ret->id) == RUBY_COOKIE(words[1]) ? 0 : -ENOENT;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* How many entries begin at word `at` of the code or before: iseq.c, succ_index_lookup(). */
static int lines_before(const struct ruby_names *n, uint64_t table, uint32_t at, uint32_t *ret)
{
	enum { NEAR = 54, NEAR_WORD = 9, BLOCK_BITS = 512 };
	uint64_t word, block[10]; /* rank, ranks of its words, bits */
	uint32_t bit;
	int r;

	if (at < NEAR) {
		r = get_word(n, table + at / NEAR_WORD * 8, &word);
		*ret = (uint32_t)(word >> at % NEAR_WORD * 7) & 0x7f;
		return r;
	}
	at -= NEAR;
	r = get(n, table + NEAR / NEAR_WORD * 8 + (uint64_t)(at / BLOCK_BITS) * sizeof(block),
		block, sizeof(block));
	if (r)
		return r;
	bit = at % BLOCK_BITS;
	*ret = (uint32_t)block[0];
	if (bit >= 64)
		*ret += (uint32_t)(block[1] >> (bit / 64 - 1) * 9) & 0x1ff;
	*ret += (uint32_t)__builtin_popcountll(block[2 + bit / 64] << (63 - bit % 64));
	return 0;
}

/* How many entries begin at word `at` of the code or before, by what they say: up to 2.5. */
static int lines_by_position(const struct ruby_names *n, uint64_t entries, uint32_t nr, uint32_t at,
			     uint32_t *ret)
{
	uint32_t low = 0, position;

	/* The first one begins with the code. */
	while (low < nr) {
		uint32_t middle = low + (nr - low) / 2;
		int r = get(n, entries + (uint64_t)middle * n->layout->line_size, &position,
			    sizeof(position));

		if (r)
			return r;
		if (position <= at)
			low = middle + 1;
		else
			nr = middle;
	}
	*ret = low;
	return 0;
}

/* The line of a frame whose pc has so many words of code before it; 0: not known. */
static uint32_t line_of(const struct ruby_names *n, const struct function *f, uint32_t pc)
{
	const struct ruby_layout *l = n->layout;
	uint64_t entries = f->id.lines, words[2] = { 0 };
	uint32_t nr, at = pc ? pc - 1 : 0, i = 1, line = 0;
	int r;

	if (pc == RUBY_NO_PC)
		return 0;

	/* The number of entries, and behind it what they are found by: this may lie behind what
	 * was read of the body. */
	if (get_word(n, f->id.body + l->nr_lines, &words[0]) ||
	    (l->positions && get_word(n, f->id.body + l->positions, &words[1])))
		return 0;
	nr = (uint32_t)words[0];
	if (!nr || nr > LINES_MAX)
		return 0;
	/* The pc of a caller, and of most instructions at work, is the next instruction's. */
	r = nr < 2	   ? 0
	    : l->positions ? lines_before(n, words[1], at, &i)
			   : lines_by_position(n, entries, nr, at, &i);
	if (r)
		return 0;
	if (i > nr)
		return 0;
	/* 2.7 has entries without a line: nop, behind a call with a block. */
	for (uint32_t last = i; !line && i && last - i < LINELESS_MAX; i--)
		if (get(n, entries + (uint64_t)(i - 1) * l->line_size + l->line_at, &line,
			sizeof(line)))
			return 0;
	return line <= INT32_MAX ? line : 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* What one frame is called. */
struct names {
	struct text label, base, class, name;
	char source[RUBY_SOURCE_MAX + 1];
	char all[3 * RUBY_NAME_MAX + 1];
};

static int name_cfunc(const struct ruby_names *n, const struct function *f, struct names *names)
{
	int r = id_text(n, f->id.name, &names->name);

	if (!r)
		r = class_prefix(n, f->id.owner, &names->class);
	if (!r)
		snprintf(names->all, sizeof(names->all), "%s%s", names->class.text,
			 names->name.text);
	return r;
}

/* The body of what an eval's is in, 3.4's is called "<compiled>" itself: vm_backtrace.c,
 * calculate_iseq_label(). */
static int eval_parent(const struct ruby_names *n, uint64_t body, uint64_t *ret)
{
	uint64_t iseq, words[3], type;
	int r = 0;

	for (unsigned int i = 0; !r && i < EVALS_MAX; i++) {
		r = get_word(n, body, &type);
		if (r || (uint32_t)type != RUBY_ISEQ_EVAL) {
			*ret = body;
			return r;
		}
		r = get_word(n, body + n->layout->parent, &iseq);
		if (!r)
			r = is_object(iseq) ? get(n, iseq, words, sizeof(words)) : -ENOENT;
		if (!r && !ruby_is_imemo(words[0], RUBY_IMEMO_ISEQ))
			r = -ENOENT;
		body = words[2];
	}
	return r ? r : -ENOENT;
}

/* Label and base label. */
static int get_labels(const struct ruby_names *n, const struct function *f, struct names *names)
{
	const struct ruby_layout *l = n->layout;
	uint64_t label = f->id.label, base = f->body[l->base_label / 8], body, again;
	bool other = l->parent && (uint32_t)f->body[0] == RUBY_ISEQ_EVAL;
	int r = other ? eval_parent(n, f->id.body, &body) : 0;

	if (!r && other)
		r = get_word(n, body + l->label, &label);
	if (!r && other)
		r = get_word(n, body + l->base_label, &base);
	if (!r)
		r = get_text(n, label, names->label.text, RUBY_NAME_MAX);
	if (!r)
		r = get_text(n, base, names->base.text, RUBY_NAME_MAX);
	/* Both may be moved; the function's own are compared with what the walker saw. */
	if (!r && other)
		r = get_word(n, body + l->label, &again);
	if (!r && other && again != label)
		r = -ENOENT;
	return r;
}

/* "block in method" and a method's class become "block in Class#method". */
static int name_iseq(const struct ruby_names *n, const struct function *f, struct names *names)
{
	size_t length, base;
	int r = get_labels(n, f, names);

	if (!r)
		r = get_text(n, f->id.path, names->source, RUBY_SOURCE_MAX);
	if (r)
		return r;
	names->class.text[0] = '\0';
	if (f->id.definition && f->definition_type == METHOD_ISEQ)
		r = class_prefix(n, f->id.owner, &names->class);
	if (r)
		return r;
	length = strlen(names->label.text);
	base = strlen(names->base.text);
	if (base > length || strcmp(names->label.text + length - base, names->base.text) != 0)
		base = length;
	snprintf(names->all, sizeof(names->all), "%.*s%s%s", (int)(length - base),
		 names->label.text, names->class.text, names->label.text + length - base);
	return 0;
}

int ruby_names_symbolize(const struct ruby_names *n, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink)
{
	_cleanup_free_ struct names *names = NULL;
	struct runtime_inline_frame inline_frame = { 0 };
	struct function f, again;
	int r;

	if (nr < FRAME_WORDS || !FRAME_DATA(words[0]))
		return -EINVAL;
	names = calloc(1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	r = identify(n, words, &f);
	if (!r && FRAME_DATA(words[0]) & RUBY_CFUNC)
		r = name_cfunc(n, &f, names);
	else if (!r)
		r = name_iseq(n, &f, names);
	if (r)
		return r;
	inline_frame.name = names->all;
	if (!(FRAME_DATA(words[0]) & RUBY_CFUNC)) {
		inline_frame.source = names->source;
		/* Or a small integer of Ruby's. */
		inline_frame.start_line = (uint32_t)(f.id.line >> !n->layout->line_is_int);
		inline_frame.line = line_of(n, &f, RUBY_PC(words[1]));
	}
	/* What was read may be another one's by now. */
	r = identify(n, words, &again);
	return r ? r : sink->add(sink->ctx, &inline_frame);
}
