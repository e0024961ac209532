/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that posts bodies to one place, one at a time, over HTTP (libcurl) or as gRPC calls.
 * It knows nothing of what is in them. The connection is kept between requests.
 *
 * Whoever answers is not trusted: an answer's size and time are bounded, and its text is free of
 * control characters. A client is used by one thread; only `wake_fd` and `stop_ns` are others'.
 */
#pragma once

#include "net/endpoint.h"

#include <stdatomic.h>

enum {
	NET_BODY_MAX = 64 << 10,  /* of an answer, that is kept */
	NET_ANSWER_MAX = 4 << 20, /* that is read at all (OTLP 1.11, "size limits") */
	NET_PROBLEM_SIZE = 256,
};

enum net_protocol { NET_HTTP = 0, NET_GRPC = 1 };

/* Strings are borrowed, and must outlive the client. */
struct net_options {
	enum net_protocol protocol;
	struct endpoint endpoint; /* with port and path; tls counts */
	struct pairs headers;
	const char *content_type, *user_agent;
	const char *ca_file;		  /* PEM; NULL: the system's */
	const char *cert_file, *key_file; /* PEM; NULL: none */
	const char *server_name;	  /* that the certificate must have; NULL: the host's */
	int wake_fd; /* an eventfd: a call that waits looks at `stop_ns` again */
	const _Atomic uint64_t *stop_ns; /* now_ns(); 0: no; else calls end then at the latest */
};

/* What came back. */
struct net_answer {
	/*
	 * 0: `status` is what the server said; else it said nothing that counts, and why is in
	 * `problem`: -ETIMEDOUT, -ECANCELED (stop_ns), -EPROTO, -EIO.
	 */
	int error;
	unsigned status; /* HTTP's, or gRPC's (0: OK) */
	bool whole;	 /* the answer was read to its end */
	bool has_retry_after;
	uint64_t retry_after_s;	    /* HTTP's Retry-After */
	uint8_t body[NET_BODY_MAX]; /* gRPC: the first message */
	size_t body_size;
	uint8_t details[NET_BODY_MAX]; /* gRPC: grpc-status-details-bin, decoded */
	size_t details_size;
	char problem[NET_PROBLEM_SIZE]; /* or gRPC's grpc-message; may be "" */
};

struct net_client;

/*
 * *options is borrowed. Logging. Does not connect. -ENOTSUP: this build, or this machine, cannot;
 * -EINVAL, -ENOENT, ...: a file of TLS is not what it should be.
 */
int net_client_new(const struct net_options *options, struct net_client **ret);
void net_client_free(struct net_client *c);
/* Until an answer is there, or now_ns() is deadline_ns. `gzip`: that is how the body is encoded. */
void net_client_send(struct net_client *c, const void *data, size_t size, bool gzip,
		     uint64_t deadline_ns, struct net_answer *ret);

/* Text of somebody else's, in a line of ours: cut, trimmed, and without control characters. */
void net_clean_text(const void *text, size_t size, char *buf, size_t buf_size);
