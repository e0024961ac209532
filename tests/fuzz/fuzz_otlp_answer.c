// SPDX-License-Identifier: Apache-2.0
/*
 * What a collector answers. The first byte: HTTP or gRPC, and whether the answer was whole; the
 * second its code. HTTP: the rest is the body. gRPC: pieces, each a byte that says which and a byte
 * of size: header values (in the last block or not) and data.
 */
#include "fuzz.h"
#include "agent/otlp_answer.h"
#include "net/grpc_answer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { ":status", "grpc-status", "grpc-message",
				     "grpc-status-details-bin", "content-type" };

static void read_pieces(struct net_answer *answer, const uint8_t *data, size_t size, uint8_t error)
{
	struct grpc_answer a = { .answer = answer };

	while (size >= 2) {
		size_t len = data[1] < size - 2 ? data[1] : size - 2;
		unsigned which = data[0] % 6;

		if (which < 5)
			grpc_answer_header(&a, names[which], strlen(names[which]), data + 2, len,
					   data[0] & 0x80);
		else
			grpc_answer_data(&a, data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	grpc_answer_end(&a, error);
}

FUZZER(data, size)
{
	struct net_answer *answer;
	struct otlp_answer a;
	enum net_protocol protocol;

	if (size < 2)
		return 0;
	answer = calloc(1, sizeof(*answer));
	if (!answer)
		return 0;
	protocol = data[0] & 1 ? NET_GRPC : NET_HTTP;
	if (protocol == NET_GRPC) {
		read_pieces(answer, data + 2, size - 2, data[1] % 14);
	} else {
		answer->whole = data[0] & 2;
		answer->status = 190u + data[1] * 2;
		answer->body_size = size - 2 < NET_BODY_MAX ? size - 2 : NET_BODY_MAX;
		memcpy(answer->body, data + 2, answer->body_size);
	}
	otlp_answer_read(protocol, answer, &a);
	assert(a.verdict <= OTLP_REFUSED);
	assert(!a.has_wait || a.wait_ns <= UINT64_C(3600000000000));
	assert(memchr(a.words, '\0', sizeof(a.words)));
	for (const char *s = a.words; *s; s++)
		assert((unsigned char)*s >= ' ' && *s != 127);
	free(answer);
	return 0;
}
