// SPDX-License-Identifier: Apache-2.0
#include "export/proto/read.h"

#include "export/proto/gzip.h"
#include "export/proto/pack.h"
#include "util/cleanup.h"

#include <stdarg.h>
#include <string.h>

/* Mappings of one file in one process differ by no more in what they add to its addresses. */
enum { SEGMENT_SHIFT_MAX = 16 << 20 };

static const char *words_of(int r)
{
	return r == -E2BIG ? "it is too large" : r == -EBADMSG ? "the gzip stream is damaged" : "";
}

static int get_input(const void *data, size_t size, struct wire *ret, uint8_t **ret_unzipped)
{
	size_t unzipped_size;
	int r;

	if (!gzip_is(data, size)) {
		*ret = wire_of(data, size);
		return size > GZIP_READ_MAX ? -E2BIG : 0;
	}
	r = gzip_read(data, size, ret_unzipped, &unzipped_size);
	if (!r)
		*ret = wire_of(*ret_unzipped, unzipped_size);
	return r;
}

static int fill(struct reader *state, int (*parse)(struct reader *), struct profile *ret)
{
	struct profile profile;
	int r = profile_init(&profile);

	state->p = &profile;
	if (!r)
		r = parse(state);
	if (r) {
		profile_fini(&profile);
		return r == -EOVERFLOW ? -E2BIG : r;
	}
	profile_fini(ret);
	*ret = profile;
	return 0;
}

int reader_run(const void *data, size_t size, size_t size_of_state, int (*parse)(struct reader *),
	       void (*fini)(struct reader *), struct profile *ret, char ret_problem[200])
{
	_cleanup_free_ struct reader *state = calloc(1, size_of_state);
	_cleanup_free_ uint8_t *unzipped = NULL;
	char problem[READ_PROBLEM_SIZE] = "";
	int r;

	if (!state)
		return -ENOMEM;
	state->problem = problem;
	r = get_input(data, size, &state->input, &unzipped);
	if (!r)
		r = fill(state, parse, ret);
	fini(state);
	vec_free(&state->strings);
	wire_memory_fini(&state->memory);
	if (r)
		snprintf(ret_problem, READ_PROBLEM_SIZE, "%s", *problem ? problem : words_of(r));
	return r;
}

int reader_bad(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->problem, READ_PROBLEM_SIZE, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

int reader_unpack(struct reader *r, const char *what, const void *descriptor, struct slice from,
		  void *ret_message)
{
	int err = wire_unpack(&r->memory, descriptor, from.data, from.size, ret_message);

	if (err == -EBADMSG)
		return reader_bad(r, "a %s is malformed", what);
	return err;
}

int reader_room(struct reader *r, size_t nr)
{
	(void)r;
	return nr < READ_TABLE_MAX ? 0 : -E2BIG;
}

int reader_check_size(struct reader *r)
{
	return profile_bytes(r->p) <= READ_PROFILE_MAX ? 0 : -E2BIG;
}

int reader_count(struct reader *r, int64_t value)
{
	if (value < 0)
		return reader_bad(r, "it has negative values (a difference of profiles?)");
	if ((uint64_t)value > INT64_MAX - r->total)
		return reader_bad(r, "the sum of its values is beyond 64 bits");
	r->total += (uint64_t)value;
	return 0;
}

/* --- strings and numbers ---------------------------------------------------------------------- */

bool slice_is(struct slice s, const char *text)
{
	return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

struct slice slice_of(const char *text)
{
	return (struct slice){ (const uint8_t *)text, strlen(text) };
}

int reader_string(struct reader *r, int64_t index, struct slice *ret)
{
	if (index < 0 || (uint64_t)index >= r->strings.nr) {
		/* An empty table stands for one of "". */
		if (index)
			return reader_bad(r, "it names string %lld of %zu", (long long)index,
					  r->strings.nr);
		*ret = slice_of("");
		return 0;
	}
	*ret = r->strings.items[index];
	return 0;
}

int reader_intern_slice(struct reader *r, struct slice s, uint32_t *ret)
{
	const char *text = s.size ? (const char *)s.data : "";

	return strtab_intern(&r->p->strings, text, strnlen(text, s.size), ret);
}

int reader_intern(struct reader *r, int64_t index, uint32_t *ret)
{
	struct slice s = { 0 };
	int err = reader_string(r, index, &s);

	return err ? err : reader_intern_slice(r, s, ret);
}

uint32_t reader_line_number(int64_t number)
{
	return number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

int reader_add_function(struct reader *r, const struct reader_function *function, uint32_t *ret)
{
	struct profile_function to = { .start_line = reader_line_number(function->start_line) };
	int err = reader_intern(r, function->name, &to.name);

	if (!err)
		err = reader_intern(r, function->linkage_name, &to.linkage_name);
	if (!err)
		err = reader_intern(r, function->source, &to.source);
	if (err)
		return err;
	if (!to.name)
		to.name = to.linkage_name;
	if (to.linkage_name == to.name)
		to.linkage_name = 0;
	return profile_add_function(r->p, &to, ret);
}

int reader_unit(struct reader *r, struct slice type, struct slice unit)
{
	struct profile_unit u = { 0 };
	int err = 0;

	/* Nothing said is said as others do. */
	if (!slice_is(type, "samples") || !slice_is(unit, "count")) {
		err = reader_intern_slice(r, type, &u.type);
		if (!err)
			err = reader_intern_slice(r, unit, &u.unit);
	}
	if (!err)
		r->p->unit = u;
	return err;
}

uint32_t reader_frequency(struct slice type, struct slice unit, int64_t period)
{
	const int64_t second = 1000000000;
	int64_t hz;

	if (!slice_is(type, "cpu") || !slice_is(unit, "nanoseconds") || period <= 0 ||
	    period > second)
		return 0;
	hz = second / period;
	/* 1e9 / 99 is 10101010, and 1e9 / 10101010 is 99; but 1e9 / 15000 is 66666, the next of
	 * which, 66667, is no better. */
	if (second / hz == period)
		return (uint32_t)hz;
	return second / (hz + 1) == period ? (uint32_t)hz + 1 : 0;
}

/* --- files ------------------------------------------------------------------------------------ */

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t slice_hex(struct slice s, uint8_t *buf, size_t max)
{
	if (s.size % 2 || s.size / 2 > max)
		return 0;
	for (size_t i = 0; i < s.size / 2; i++) {
		int high = hex_digit(s.data[2 * i]), low = hex_digit(s.data[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		buf[i] = (uint8_t)(high << 4 | low);
	}
	return s.size / 2;
}

int reader_file(struct reader *r, struct slice path, struct slice build_id, uint32_t *ret,
		uint16_t *ret_kind)
{
	uint8_t id[sizeof(r->p->files.items->build_id)];
	size_t id_len = slice_hex(build_id, id, sizeof(id)), len;
	const char *name = path.size ? (const char *)path.data : "";
	uint32_t text;
	int err;

	*ret_kind = FRAME_KIND_NATIVE;
	if (path.size > 2 && name[0] == '[' && name[path.size - 1] == ']')
		*ret_kind = profile_runtime_kind(name + 1, path.size - 2);
	if (*ret_kind != FRAME_KIND_NATIVE) {
		*ret = PROFILE_NO_FILE;
		return 0;
	}
	*ret_kind = pack_is_kernel_path(name, path.size) ? FRAME_KIND_KERNEL : FRAME_KIND_NATIVE;
	if (!path.size && !id_len) {
		*ret = PROFILE_NO_FILE;
		return 0;
	}
	name = path.size ? pack_path_back(name, path.size, &len) : "[unknown]";
	if (!path.size)
		len = strlen(name);
	err = reader_intern_slice(r, (struct slice){ (const uint8_t *)name, len }, &text);
	return err ? err
		   : profile_add_file(r->p, strtab_get(&r->p->strings, text), id, id_len, ret);
}

void reader_place_file(struct reader *r, uint32_t file, uint64_t start, uint64_t limit,
		       uint64_t offset, uint64_t *ret_bias)
{
	struct profile_file *f = file < r->p->files.nr ? &r->p->files.items[file] : NULL;
	uint64_t bias;

	*ret_bias = 0;
	if (!f || start >= limit)
		return;
	if (!f->end) {
		f->start = start;
		f->end = limit;
		f->offset = offset;
		return;
	}
	bias = (f->start - f->offset) - (start - offset);
	/* The kernel's addresses are as they are; segments of one file lie nearly alike. */
	if (strtab_get(&r->p->strings, f->path)[0] == '[' ||
	    bias + SEGMENT_SHIFT_MAX <= 2 * (uint64_t)SEGMENT_SHIFT_MAX)
		bias = 0;
	start += bias;
	limit += bias;
	if (start >= limit)
		return; /* beyond the end of all addresses: nothing fits */
	if (start < f->start) {
		f->offset -= f->start - start;
		f->start = start;
	}
	if (limit > f->end)
		f->end = limit;
	*ret_bias = bias;
}
