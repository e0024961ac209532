// SPDX-License-Identifier: Apache-2.0
#include "record/otel_context.h"

#include "export/proto/wire.h"
#include "util/pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct text {
	const uint8_t *data;
	size_t size;
	char number[32]; /* of one that is no text */
};

/* KeyValue{key = 1, AnyValue value = 2{string = 1, bool = 2, int = 3, double = 4}} */
struct key_value {
	struct text key, value;
	bool known;
};

struct writing {
	struct otel_context *to;
	size_t len, nr;
};

static void set_number(struct text *to, int len)
{
	to->data = (const uint8_t *)to->number;
	to->size = (size_t)len;
}

static void take_value(const struct wire_field *f, struct key_value *ret)
{
	struct text *to = &ret->value;
	double number;

	ret->known = true;
	if (f->number == 1 && f->type == WIRE_BYTES) {
		to->data = f->data;
		to->size = f->size;
	} else if (f->number == 2 && f->type == WIRE_VARINT) {
		set_number(to, snprintf(to->number, sizeof(to->number), "%s",
					f->value ? "true" : "false"));
	} else if (f->number == 3 && f->type == WIRE_VARINT) {
		set_number(to,
			   snprintf(to->number, sizeof(to->number), "%" PRId64, (int64_t)f->value));
	} else if (f->number == 4 && f->type == WIRE_FIXED64) {
		memcpy(&number, &f->value, sizeof(number));
		set_number(to, snprintf(to->number, sizeof(to->number), "%.17g", number));
	} else {
		ret->known = false;
	}
}

static int read_key_value(const struct wire_field *from, struct key_value *ret)
{
	struct wire w = wire_of(from->data, from->size), value;
	struct wire_field f;
	int r, more;

	while ((r = wire_next(&w, &f)) > 0) {
		if (f.type == WIRE_BYTES && f.number == 1) {
			ret->key.data = f.data;
			ret->key.size = f.size;
		}
		if (f.type != WIRE_BYTES || f.number != 2)
			continue;
		value = wire_of(f.data, f.size);
		while ((more = wire_next(&value, &f)) > 0)
			take_value(&f, ret);
		if (more < 0)
			return more;
	}
	return r;
}

static void take_pair(struct writing *w, const struct key_value *pair)
{
	static const char name[] = "service.name";
	bool is_service = pair->key.size == sizeof(name) - 1 &&
			  !memcmp(pair->key.data, name, sizeof(name) - 1);

	if (!is_service) {
		if (w->nr < PAIRS_MAX && !pairs_append(w->to->attributes, sizeof(w->to->attributes),
						       &w->len, pair->key.data, pair->key.size,
						       pair->value.data, pair->value.size))
			w->nr++;
	} else if (pair->value.size < SERVICE_SIZE &&
		   !memchr(pair->value.data, '\0', pair->value.size)) {
		memcpy(w->to->service, pair->value.data, pair->value.size);
		w->to->service[pair->value.size] = '\0';
	}
}

static int read_resource(const struct wire_field *from, struct writing *w)
{
	struct wire resource = wire_of(from->data, from->size);
	struct wire_field f;
	int r;

	while ((r = wire_next(&resource, &f)) > 0) {
		struct key_value pair = { 0 };

		if (f.number != 1 || f.type != WIRE_BYTES)
			continue;
		r = read_key_value(&f, &pair);
		if (r < 0)
			return r;
		if (pair.known && pair.key.size && pair.value.size)
			take_pair(w, &pair);
	}
	return r;
}

int otel_context_read(const void *data, size_t size, struct otel_context *ret)
{
	struct otel_context read = { 0 };
	struct writing writing = { .to = &read };
	struct wire w = wire_of(data, size);
	struct wire_field f;
	int r;

	while ((r = wire_next(&w, &f)) > 0)
		if (f.number == 1 && f.type == WIRE_BYTES && (r = read_resource(&f, &writing)) < 0)
			break;
	if (!r)
		*ret = read;
	return r;
}
