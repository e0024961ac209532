/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server answers to a gRPC call, header by header and piece by piece. All of it is hostile.
 * (grpc, doc/PROTOCOL-HTTP2.md.)
 */
#pragma once

#include "net/client.h"

enum {
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

struct grpc_answer {
	struct net_answer *answer; /* the caller's */
	unsigned http_status;
	bool has_status, gzip; /* gzip: how messages are packed whose prefix says that they are */
	uint8_t prefix[5];     /* of the first message */
	size_t data_bytes;     /* of all messages, with prefixes */
};

/* `last`: it is in the block that ends the stream; only there a status counts. */
void grpc_answer_header(struct grpc_answer *a, const void *name, size_t name_size,
			const void *value, size_t value_size, bool last);
void grpc_answer_data(struct grpc_answer *a, const void *data, size_t size);
/* The stream was closed, `h2_error` is HTTP/2's code (0: in order): sets the answer's status. */
void grpc_answer_end(struct grpc_answer *a, uint32_t h2_error);
