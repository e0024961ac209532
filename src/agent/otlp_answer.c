// SPDX-License-Identifier: Apache-2.0
#include "agent/otlp_answer.h"

#include "export/proto/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Longer than that nobody means. */
#define WAIT_MAX_S UINT64_C(3600)

/* google/rpc/code.proto */
enum {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
};

/* --- messages: field numbers are in facts of OTLP's .proto files and google/rpc's ------------- */

static void take_words(struct otlp_answer *ret, const struct wire_field *f)
{
	net_clean_text(f->data, f->size, ret->words, sizeof(ret->words));
}

static void set_wait(struct otlp_answer *ret, uint64_t seconds, uint64_t ns)
{
	ret->has_wait = true;
	if (seconds >= WAIT_MAX_S)
		ret->wait_ns = WAIT_MAX_S * 1000000000;
	else
		ret->wait_ns = seconds * 1000000000 + (ns < 1000000000 ? ns : 0);
}

/* RetryInfo { Duration retry_delay = 1 { int64 seconds = 1; int32 nanos = 2 } } */
static void read_retry_info(const void *data, size_t size, struct otlp_answer *ret)
{
	struct wire info = wire_of(data, size), duration;
	uint64_t seconds = 0, ns = 0;
	struct wire_field f;

	while (wire_next(&info, &f) > 0) {
		if (f.number != 1 || f.type != WIRE_BYTES)
			continue;
		duration = wire_of(f.data, f.size);
		while (wire_next(&duration, &f) > 0) {
			if (f.type == WIRE_VARINT && f.number == 1)
				seconds = f.value;
			if (f.type == WIRE_VARINT && f.number == 2)
				ns = f.value;
		}
	}
	/* Negative is now. */
	if ((int64_t)seconds < 0)
		seconds = ns = 0;
	set_wait(ret, seconds, ns);
}

/* Any { string type_url = 1; bytes value = 2 } */
static void read_detail(const void *data, size_t size, struct otlp_answer *ret)
{
	static const char type[] = "/google.rpc.RetryInfo";
	struct wire any = wire_of(data, size);
	struct wire_field f, value = { 0 };
	bool is_retry_info = false;
	size_t len = sizeof(type) - 1;

	while (wire_next(&any, &f) > 0) {
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == 1)
			is_retry_info = f.size >= len && !memcmp(f.data + f.size - len, type, len);
		if (f.number == 2)
			value = f;
	}
	if (is_retry_info)
		read_retry_info(value.data, value.size, ret);
}

/* Status { int32 code = 1; string message = 2; repeated Any details = 3 }. False: it is none. */
static bool read_status(const void *data, size_t size, struct otlp_answer *ret)
{
	struct wire status = wire_of(data, size);
	struct wire_field f;
	int r;

	while ((r = wire_next(&status, &f)) > 0) {
		if (f.number > 3 || f.type != (f.number == 1 ? WIRE_VARINT : WIRE_BYTES))
			return false;
		if (f.number == 2)
			take_words(ret, &f);
		if (f.number == 3)
			read_detail(f.data, f.size, ret);
	}
	return !r && size;
}

/* ExportProfilesPartialSuccess { int64 rejected_profiles = 1; string error_message = 2 } */
static void read_partial_success(const void *data, size_t size, struct otlp_answer *ret)
{
	struct wire partial = wire_of(data, size);
	struct wire_field f;

	while (wire_next(&partial, &f) > 0) {
		if (f.number == 1 && f.type == WIRE_VARINT && (int64_t)f.value > 0)
			ret->rejected = f.value;
		if (f.number == 2 && f.type == WIRE_BYTES)
			take_words(ret, &f);
	}
}

/* ExportProfilesServiceResponse { ExportProfilesPartialSuccess partial_success = 1 } */
static void read_response(const struct net_answer *a, struct otlp_answer *ret)
{
	struct wire response = wire_of(a->body, a->body_size);
	struct wire_field f;
	int r;

	ret->verdict = OTLP_DELIVERED;
	while ((r = wire_next(&response, &f)) > 0)
		if (f.number == 1 && f.type == WIRE_BYTES)
			read_partial_success(f.data, f.size, ret);
	if (!a->whole || r)
		snprintf(ret->words, sizeof(ret->words),
			 a->whole ? "its answer is none of OTLP"
				  : "its answer was not read to the end");
}

/* --- the tables ------------------------------------------------------------------------------- */

static void read_http(const struct net_answer *a, struct otlp_answer *ret)
{
	if (a->status / 100 == 2) {
		read_response(a, ret);
		return;
	}
	ret->verdict = a->status == 429 || (a->status >= 502 && a->status <= 504) ? OTLP_AGAIN
										  : OTLP_REFUSED;
	if (!read_status(a->body, a->body_size, ret))
		net_clean_text(a->body, a->body_size, ret->words, sizeof(ret->words));
	/* The header's word goes before the body's. */
	if (a->has_retry_after)
		set_wait(ret, a->retry_after_s, 0);
}

static void read_grpc(const struct net_answer *a, struct otlp_answer *ret)
{
	if (a->status == GRPC_OK) {
		read_response(a, ret);
		return;
	}
	read_status(a->details, a->details_size, ret);
	if (*a->problem)
		memcpy(ret->words, a->problem, sizeof(ret->words));
	switch (a->status) {
	case GRPC_CANCELLED:
	case GRPC_DEADLINE_EXCEEDED:
	case GRPC_ABORTED:
	case GRPC_OUT_OF_RANGE:
	case GRPC_UNAVAILABLE:
	case GRPC_DATA_LOSS:
		ret->verdict = OTLP_AGAIN;
		break;
	case GRPC_RESOURCE_EXHAUSTED:
		ret->verdict = ret->has_wait ? OTLP_AGAIN : OTLP_REFUSED;
		break;
	default:
		ret->verdict = OTLP_REFUSED;
	}
}

void otlp_answer_read(enum net_protocol protocol, const struct net_answer *answer,
		      struct otlp_answer *ret)
{
	struct otlp_answer a = { .verdict = OTLP_AGAIN };

	if (answer->error)
		memcpy(a.words, answer->problem, sizeof(a.words));
	else if (protocol == NET_GRPC)
		read_grpc(answer, &a);
	else
		read_http(answer, &a);
	/* "Again, after no time" says that it may be sent again, and leaves the pause to us. */
	if (!a.wait_ns)
		a.has_wait = false;
	*ret = a;
}
