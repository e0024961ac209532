// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_offsets.h"
#include "runtime/words.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * 3.6 to 3.12, as the headers of 3.6.15, 3.7.16, 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1 have
 * it. Within a minor version these structures do not change.
 */
static const struct version {
	uint8_t minor, frames, flags;
	uint8_t ts_thread_id, ts_frame;
	uint8_t interp_threads;
	uint8_t f_previous, f_code, f_instr, f_owner, f_entry;
	uint8_t co_firsttraceable, co_version;
} versions[] = {
	{ 6, PYTHON_FRAME_OBJECTS, 0, 152, 24, 8, 24, 32, 120, 132, 0, 0, 0 },
	{ 7, PYTHON_FRAME_OBJECTS, 0, 176, 24, 8, 24, 32, 104, 116, 0, 0, 0 },
	{ 8, PYTHON_FRAME_OBJECTS, 0, 176, 24, 8, 24, 32, 104, 116, 0, 0, 0 },
	{ 9, PYTHON_FRAME_OBJECTS, 0, 176, 24, 8, 24, 32, 104, 116, 0, 0, 0 },
	{ 10, PYTHON_FRAME_OBJECTS_CFRAME, PYTHON_LASTI_IN_UNITS, 176, 48, 8, 24, 32, 96, 108, 0, 0,
	  0 },
	{ 11, PYTHON_CFRAME, PYTHON_INSTR_PTR, 152, 56, 16, 48, 32, 56, 69, 68, 168, 0 },
	{ 12, PYTHON_CFRAME, PYTHON_INSTR_PTR, 136, 56, 72, 8, 0, 56, 70, 0, 176, 92 },
};

static struct python_layout layout_of(unsigned int minor)
{
	struct python_layout l = {
		.minor = (uint8_t)minor,
		.str_length = 16,
		.str_state = 32,
		.str_ascii = minor >= 12 ? 40 : 48,   /* 3.12 has no wstr ... */
		.str_compact = minor >= 12 ? 56 : 72, /* ... and no wstr_length */
		.bytes_length = 16,
		.bytes_data = 32,
	};

	if (minor >= 11) {
		l.co_firstlineno = minor == 11 ? 72 : 68;
		l.co_filename = 112;
		l.co_name = 120;
		l.co_qualname = 128;
		l.co_linetable = 136;
	} else if (minor >= 8) {
		l.co_firstlineno = 40;
		l.co_filename = 104;
		l.co_name = 112;
		l.co_linetable = 120;
	} else {
		l.co_firstlineno = 36;
		l.co_filename = 96;
		l.co_name = 104;
		l.co_linetable = 112;
	}
	l.code_size = (uint16_t)(l.co_linetable + 8);
	return l;
}

static uint16_t end_of(const uint16_t *ends, size_t nr)
{
	uint16_t end = 0;

	for (size_t i = 0; i < nr; i++)
		if (ends[i] > end)
			end = ends[i];
	return (uint16_t)((end + 7) & ~7);
}

#define END_OF(...)                                                                                \
	end_of((const uint16_t[]){ __VA_ARGS__ },                                                  \
	       sizeof((const uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t))

/* Sizes to read, from what is read of them. */
static void set_sizes(struct python_record *r)
{
	r->ts_size = END_OF(r->ts_next + 8, r->ts_interp + 8, r->ts_frame + 8,
			    r->ts_frame_object + 8, r->ts_thread_id + 8);
	r->f_size = END_OF(r->f_previous + 8, r->f_code + 8, r->f_instr + 8, r->f_owner + 1,
			   r->f_entry + 1, r->f_tlbc + 4);
	r->co_size = END_OF(r->co_type + 8, r->co_filename + 8, r->co_name + 8, r->co_linetable + 8,
			    r->co_firstlineno + 4, r->co_version + 4, r->co_firsttraceable + 4,
			    r->co_tlbc + 8);
}

static void from_layout(const struct python_layout *l, struct python_record *r)
{
	r->minor = l->minor;
	r->co_filename = l->co_filename;
	r->co_name = l->co_qualname ? l->co_qualname : l->co_name;
	r->co_linetable = l->co_linetable;
	r->co_firstlineno = l->co_firstlineno;
	r->str_length = l->str_length;
	r->str_state = l->str_state;
	r->str_ascii = l->str_ascii;
	r->str_compact = l->str_compact;
}

/* Words from `from` to before `to`, in bytes, of struct PyCodeObject. */
static unsigned int words_between(unsigned int from, unsigned int to)
{
	return (1u << (to / 8 - PYTHON_WORDS_FROM)) - (1u << (from / 8 - PYTHON_WORDS_FROM));
}

/* What never changes in a code object: from co_argcount to co_lnotab (co_linetable), behind which
 * caches begin; 3.11: all but the size of the code, co_warmup and what shares their words. */
static uint16_t words_of(unsigned int minor)
{
	if (minor >= 12)
		return 0;
	return (uint16_t)(minor == 11  ? words_between(24, 48) | words_between(56, 144)
			  : minor >= 8 ? words_between(16, 128)
				       : words_between(16, 120));
}

int python_offsets_of(unsigned int minor, struct python_record *record,
		      struct python_layout *layout)
{
	const struct version *v = versions;
	const struct version *end = versions + sizeof(versions) / sizeof(versions[0]);
	struct python_record r = { 0 };
	struct python_layout l;

	while (v < end && v->minor != minor)
		v++;
	if (v == end)
		return -ENOTSUP;
	l = layout_of(minor);
	from_layout(&l, &r);
	r.frames = v->frames;
	r.flags = v->flags;
	r.interp_threads = v->interp_threads;
	r.ts_next = 8;
	r.ts_interp = 16;
	r.ts_thread_id = v->ts_thread_id;
	r.ts_frame = v->ts_frame;
	r.ts_frame_object = 24;
	r.cframe_current = minor == 11 ? 8 : 0;
	r.cframe_previous = minor == 11 ? 16 : 8;
	r.f_previous = v->f_previous;
	r.f_code = v->f_code;
	r.f_instr = v->f_instr;
	r.f_owner = v->f_owner;
	r.f_entry = v->f_entry;
	r.owner_generator = 1;
	r.owner_entry = 3;
	r.co_type = 8;
	r.co_firsttraceable = v->co_firsttraceable;
	r.co_version = v->co_version;
	r.co_code = minor == 11 ? 184 : minor == 12 ? 192 : 0;
	r.co_words = words_of(minor);
	set_sizes(&r);
	*record = r;
	*layout = l;
	return 0;
}

/*
 * Which word of the debug offsets begins what, by version: struct _Py_DebugOffsets of 3.13.0,
 * 3.14 and 3.15.
 */
static const struct debug_version {
	uint8_t minor;
	uint8_t thread, thread_id, frame, code, object, bytes, str;
	uint8_t words;
} debug_versions[] = {
	{ 13, 19, 24, 28, 34, 44, 64, 67, 71 },
	{ 14, 22, 27, 31, 39, 50, 74, 77, 81 },
	{ 15, 22, 30, 39, 47, 58, 86, 89, 94 },
};
enum {
	DEBUG_VERSION = 1,
	DEBUG_FREE_THREADED = 2,
	DEBUG_INTERPRETERS = 5,
	DEBUG_INTERP = 6,
	DEBUG_WORDS_MAX = PYTHON_DEBUG_OFFSETS_SIZE / 8,
};

/* One that the step reads with: not beyond what it reads of an object, a multiple of `align`. */
static uint16_t offset(uint64_t word, unsigned int align, bool *fits)
{
	enum { OFFSET_MAX = 240 };

	if (word > OFFSET_MAX || word % align)
		*fits = false;
	return (uint16_t)word;
}

static uint32_t far_offset(uint64_t word, bool *fits)
{
	enum { FAR_MAX = 1 << 24 };

	if (word > FAR_MAX)
		*fits = false;
	return (uint32_t)word;
}

static bool from_debug_words(const uint64_t *w, const struct debug_version *v,
			     struct python_record *r, struct python_layout *l)
{
	const uint64_t *ts = w + v->thread, *f = w + v->frame, *co = w + v->code;
	bool fits = true;

	l->minor = v->minor;
	l->free_threaded = !!w[DEBUG_FREE_THREADED];
	l->co_filename = offset(co[1], 8, &fits);
	l->co_name = offset(co[2], 8, &fits);
	l->co_qualname = offset(co[3], 8, &fits);
	l->co_linetable = offset(co[4], 8, &fits);
	l->co_firstlineno = offset(co[5], 4, &fits);
	l->str_state = offset(w[v->str + 1], 4, &fits);
	l->str_length = offset(w[v->str + 2], 8, &fits);
	l->str_ascii = offset(w[v->str + 3], 8, &fits);
	l->str_compact = (uint16_t)(l->str_ascii + 16); /* utf8_length, utf8 */
	l->bytes_length = offset(w[v->bytes + 1], 8, &fits);
	l->bytes_data = offset(w[v->bytes + 2], 8, &fits);
	from_layout(l, r);
	r->frames = PYTHON_ENTRY;
	r->flags = PYTHON_INSTR_PTR | PYTHON_EXECUTABLE;
	/* Relative to _PyRuntime. */
	r->interpreters = far_offset(w[DEBUG_INTERPRETERS], &fits);
	r->interp_next = far_offset(w[DEBUG_INTERP + 2], &fits);
	r->interp_threads = far_offset(w[DEBUG_INTERP + 3], &fits);
	r->ts_next = offset(ts[2], 8, &fits);
	r->ts_interp = offset(ts[3], 8, &fits);
	r->ts_frame = offset(ts[4], 8, &fits);
	r->ts_thread_id = offset(w[v->thread_id], 8, &fits);
	r->f_previous = offset(f[1], 8, &fits);
	r->f_code = offset(f[2], 8, &fits);
	r->f_instr = offset(f[3], 8, &fits);
	r->f_owner = offset(f[5], 1, &fits);
	r->owner_generator = 1;
	r->owner_entry = 3;
	r->co_type = offset(w[v->object + 1], 8, &fits);
	r->co_code = offset(co[9], 8, &fits);
	if (l->free_threaded && v->minor >= 14) {
		r->f_tlbc = offset(f[7], 4, &fits);
		r->co_tlbc = offset(co[10], 8, &fits);
	}
	if (!l->free_threaded && v->minor >= 14) {
		r->flags |= PYTHON_CODES_WIDE;
		r->codes = far_offset(w[DEBUG_INTERP + 14], &fits);
	}
	/* Not among them: co_version stands before co_localsplusnames, _co_firsttraceable and
	 * co_extra (and co_tlbc) before the code. */
	r->co_version = offset(co[7] - 4, 4, &fits);
	r->co_firsttraceable = offset(r->co_code - (r->co_tlbc ? 24u : 16u), 4, &fits);
	set_sizes(r);
	l->code_size = END_OF(r->co_size, l->co_name + 8);
	return fits && r->str_ascii < 8 * PYTHON_TEXT_WORDS &&
	       r->str_length < PYTHON_STR_SIZE / 2 && r->str_state < PYTHON_STR_SIZE / 2;
}

bool python_offsets_known(unsigned int minor)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].minor == minor)
			return true;
	for (size_t i = 0; i < sizeof(debug_versions) / sizeof(debug_versions[0]); i++)
		if (debug_versions[i].minor == minor)
			return true;
	return false;
}

int python_offsets_parse(const void *data, size_t size, struct python_record *record,
			 struct python_layout *layout)
{
	const struct debug_version *v = debug_versions;
	const struct debug_version *end =
		debug_versions + sizeof(debug_versions) / sizeof(debug_versions[0]);
	uint64_t words[DEBUG_WORDS_MAX] = { 0 };
	struct python_record r = { 0 };
	struct python_layout l = { 0 };

	if (size > sizeof(words))
		size = sizeof(words);
	if (size < 8 * DEBUG_INTERP || memcmp(data, PYTHON_DEBUG_COOKIE, 8))
		return -EINVAL;
	memcpy(words, data, size & ~7ul);
	if (words[DEBUG_VERSION] >> 24 != 3)
		return -ENOTSUP;
	while (v < end && v->minor != (words[DEBUG_VERSION] >> 16 & 0xff))
		v++;
	if (v == end)
		return -ENOTSUP;
	if (size < 8u * v->words)
		return -EINVAL;
	if (!from_debug_words(words, v, &r, &l))
		return -EINVAL;
	*record = r;
	*layout = l;
	return 0;
}

/* Reads `size` bytes, or what of them lies in the first page. */
static int read_str(const struct runtime_target *target, uint64_t addr, uint8_t *to, size_t size)
{
	size_t first = 4096 - (addr & 4095);
	int r = runtime_read(target, addr, to, size);

	return r && first < size ? runtime_read(target, addr, to, first) : r;
}

static int text_of(const struct runtime_target *target, const struct python_record *r,
		   uint64_t addr, __u64 *ret)
{
	uint8_t str[PYTHON_STR_SIZE + 8 * PYTHON_TEXT_WORDS];
	__u64 length, words[PYTHON_TEXT_WORDS];
	uint32_t flags, at;
	int error;

	memset(str, 0, sizeof(str));
	error = read_str(target, addr, str, PYTHON_STR_SIZE);
	if (error)
		return error;
	length = word_at(str, r->str_length);
	flags = python_str_flags(half_at(str, r->str_state));
	at = flags & PYTHON_STR_ASCII ? r->str_ascii : r->str_compact;
	memcpy(words, str + at, sizeof(words));
	*ret = python_text(length, words, python_text_size(length, flags, at));
	return 0;
}

int python_read_cookie(const struct runtime_target *target, const struct python_record *r,
		       uint64_t code, uint32_t *ret)
{
	__u64 words[PYTHON_CODE_SIZE_MAX / 8] = { 0 };
	uint8_t *co = (uint8_t *)words;
	struct python_identity id;
	int error;

	if (!r->co_size || r->co_size > sizeof(words))
		return -EINVAL;
	error = runtime_read(target, code, co, r->co_size);
	if (error)
		return error;
	if (word_at(co, r->co_type) != r->code_type)
		return -EINVAL;
	id = (struct python_identity){
		.filename = word_at(co, r->co_filename),
		.name = word_at(co, r->co_name),
		.linetable = word_at(co, r->co_linetable),
		.firstlineno = half_at(co, r->co_firstlineno),
		.version = r->co_version ? half_at(co, r->co_version) : 0,
		.words = r->co_words ? python_words(words + PYTHON_WORDS_FROM, r->co_words) : 0,
	};
	if (!id.version) {
		error = text_of(target, r, id.name, &id.name_text);
		if (!error)
			error = text_of(target, r, id.filename, &id.filename_text);
		if (error)
			return error;
	}
	*ret = python_cookie(&id);
	return 0;
}
