// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_answer.h"

#include "util/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* RFC 9113, 7 */
enum { H2_NO_ERROR = 0, H2_REFUSED_STREAM = 7, H2_CANCEL = 8, H2_ENHANCE_YOUR_CALM = 11 };

/* For inflateInit2(): the largest window, and gzip's head and tail. */
enum { GZIP_BITS = 16 + MAX_WBITS };

static bool is(const void *name, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !memcmp(name, wanted, size);
}

/* Decimal, at most three digits; else UNKNOWN. */
static unsigned read_number(const char *text, size_t size, unsigned otherwise)
{
	unsigned number = 0;

	if (!size || size > 3)
		return otherwise;
	for (size_t i = 0; i < size; i++) {
		if (!isdigit((unsigned char)text[i]))
			return otherwise;
		number = number * 10 + (unsigned)(text[i] - '0');
	}
	return number;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* grpc-message is percent-encoded. */
static void read_message(struct net_answer *a, const char *text, size_t size)
{
	char decoded[NET_PROBLEM_SIZE];
	size_t len = 0;

	for (size_t i = 0; i < size && len < sizeof(decoded); i++) {
		int high = text[i] == '%' && i + 2 < size ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		decoded[len++] = low >= 0 ? (char)(high << 4 | low) : text[i];
		if (low >= 0)
			i += 2;
	}
	net_clean_text(decoded, len, a->problem, sizeof(a->problem));
}

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* grpc-status-details-bin: base64, with or without padding. What is none leaves nothing. */
static void read_details(struct net_answer *a, const char *text, size_t size)
{
	uint32_t bits = 0;
	unsigned nr = 0;
	size_t len = 0;

	while (size && text[size - 1] == '=')
		size--;
	a->details_size = 0;
	for (size_t i = 0; i < size; i++) {
		int digit = base64_digit(text[i]);

		if (digit < 0 || len == sizeof(a->details))
			return;
		bits = bits << 6 | (uint32_t)digit;
		nr += 6;
		if (nr >= 8) {
			nr -= 8;
			a->details[len++] = (uint8_t)(bits >> nr);
		}
	}
	a->details_size = len;
}

void grpc_answer_header(struct grpc_answer *a, const void *name, size_t name_size,
			const void *value, size_t value_size, bool last)
{
	if (is(name, name_size, ":status"))
		a->http_status = read_number(value, value_size, 0);
	if (is(name, name_size, "grpc-encoding"))
		a->gzip = is(value, value_size, "gzip");
	if (!last)
		return;
	if (is(name, name_size, "grpc-status")) {
		a->has_status = true;
		a->answer->status = read_number(value, value_size, GRPC_UNKNOWN);
	} else if (is(name, name_size, "grpc-message")) {
		read_message(a->answer, value, value_size);
	} else if (is(name, name_size, "grpc-status-details-bin")) {
		read_details(a->answer, value, value_size);
	}
}

void grpc_answer_data(struct grpc_answer *a, const void *data, size_t size)
{
	const uint8_t *at = data;

	for (; size && a->data_bytes < sizeof(a->prefix); size--)
		a->prefix[a->data_bytes++] = *at++;
	if (size) {
		size_t had = a->data_bytes - sizeof(a->prefix);
		size_t room = had < NET_BODY_MAX ? NET_BODY_MAX - had : 0;

		if (room)
			memcpy(a->answer->body + had, at, size < room ? size : room);
		a->data_bytes += size;
	}
}

/* doc/http-grpc-status-mapping.md */
static unsigned status_of_http(unsigned status)
{
	switch (status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return 7; /* PERMISSION_DENIED */
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

/* The table of "Errors" in PROTOCOL-HTTP2.md. */
static unsigned status_of_h2(uint32_t error)
{
	switch (error) {
	case H2_REFUSED_STREAM:
		return GRPC_UNAVAILABLE;
	case H2_CANCEL:
		return GRPC_CANCELLED;
	case H2_ENHANCE_YOUR_CALM:
		return GRPC_RESOURCE_EXHAUSTED;
	default:
		return GRPC_INTERNAL;
	}
}

/* The body's first `size` bytes in place of themselves. False: they are damaged, or too many then.
 */
static bool unpack(struct net_answer *a, size_t size)
{
	_cleanup_free_ uint8_t *plain = malloc(NET_BODY_MAX);
	z_stream z = { .next_in = a->body,
		       .avail_in = (uInt)size,
		       .next_out = plain,
		       .avail_out = NET_BODY_MAX };
	bool whole;

	if (!plain || inflateInit2(&z, GZIP_BITS) != Z_OK)
		return false;
	whole = inflate(&z, Z_FINISH) == Z_STREAM_END;
	inflateEnd(&z);
	if (!whole)
		return false;
	a->body_size = NET_BODY_MAX - z.avail_out;
	memcpy(a->body, plain, a->body_size);
	return true;
}

/* The message, if it is there whole. Go's servers pack it as the call was, whatever we accept. */
static void take_body(struct grpc_answer *a)
{
	size_t had = a->data_bytes, size;

	a->answer->body_size = 0;
	a->answer->whole = !had;
	if (had < sizeof(a->prefix))
		return;
	size = (size_t)a->prefix[1] << 24 | (size_t)a->prefix[2] << 16 | (size_t)a->prefix[3] << 8 |
	       a->prefix[4];
	if (size > NET_BODY_MAX || size > had - sizeof(a->prefix))
		return;
	if (a->prefix[0]) {
		a->answer->whole = a->gzip && unpack(a->answer, size);
		return;
	}
	a->answer->body_size = size;
	a->answer->whole = true;
}

void grpc_answer_end(struct grpc_answer *a, uint32_t h2_error)
{
	char words[64] = "";

	if (a->has_status) {
		take_body(a);
		return;
	}
	if (h2_error != H2_NO_ERROR) {
		a->answer->status = status_of_h2(h2_error);
		snprintf(words, sizeof(words), "the call was reset (HTTP/2 error %u)", h2_error);
	} else {
		a->answer->status = status_of_http(a->http_status);
		snprintf(words, sizeof(words), "HTTP status %u without a status of gRPC",
			 a->http_status);
	}
	net_clean_text(words, strlen(words), a->answer->problem, sizeof(a->answer->problem));
}
