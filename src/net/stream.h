/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a server: bytes over TCP, plain or in TLS 1.2 or later (OpenSSL, ALPN "h2"). */
#pragma once

#include "net/client.h"

#include <sys/types.h>

/* What all connections have in common: certificates and keys. NULL if the endpoint has no TLS. */
struct stream_tls;
/* Logging. */
int stream_tls_new(const struct net_options *options, struct stream_tls **ret);
void stream_tls_free(struct stream_tls *tls);

struct stream;
/*
 * Waits until it stands, or until deadline_ns: -ETIMEDOUT. Each address of the host has its part of
 * that time. Other failures have words in `problem`.
 * The name of the host is looked up for as long as the system's resolver takes.
 */
int stream_open(const struct net_options *options, struct stream_tls *tls, uint64_t deadline_ns,
		struct stream **ret, char problem[NET_PROBLEM_SIZE]);
void stream_close(struct stream *s);
/* How many bytes; 0: the other side has ended it; -EAGAIN: wait; -EIO. Never wait. */
ssize_t stream_read(struct stream *s, void *buf, size_t size);
/* Writes; after -EAGAIN these very bytes must be written again. */
ssize_t stream_write(struct stream *s, const void *data, size_t size);
/* Until the connection may have something for stream_read(), or take something if `writing`. */
int stream_wait(struct stream *s, bool writing, uint64_t deadline_ns);
