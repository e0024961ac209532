/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server, on somebody's loop: GET and HEAD, one request a connection. Never waits for
 * a client; what clients can take is bounded: connections, bytes, time. docs/metrics.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_reply {
	unsigned status;	  /* 200 unless set */
	const char *content_type; /* static; text/plain unless set */
	char *body;		  /* on the heap: the server frees it; NULL: there is none */
	size_t size;
};

/* What there is at `path`. 0, or negative errno: there is nothing (-ENOENT), or it cannot be told.
 */
typedef int http_answer_fn(void *ctx, const char *path, struct http_reply *ret);

struct http_server_options {
	const char *address; /* "127.0.0.1:9464", "[::1]:9464"; port 0: the kernel chooses one;
				":9464" and "localhost:9464": 127.0.0.1 */
	uint64_t timeout_ns; /* for a request to come, and for its answer to be taken */
	http_answer_fn *answer;
	void *ctx;
};

struct http_server_stats {
	uint64_t answered; /* with what was asked for */
	uint64_t refused;  /* with another status than 200 */
	uint64_t timed_out;
	uint64_t pushed_out; /* the oldest connection, for a new one's sake */
	uint64_t broken;     /* by the client */
};

struct http_server;

/* "127.0.0.1:9464", "[::1]:9464", "localhost:9464", ":9464": no other names. */
bool http_server_is_address(const char *text);
/* 0; -EINVAL: the address is none; else listening failed. Logging. */
int http_server_open(const struct http_server_options *options, struct http_server **ret);
void http_server_free(struct http_server *s);
static inline void http_server_free_p(struct http_server **s)
{
	http_server_free(*s);
}
/* Where it listens, with the port that the kernel chose. */
const char *http_server_place(const struct http_server *s);
/* Can be read when http_server_step() has something to do. */
int http_server_fd(const struct http_server *s);
void http_server_step(struct http_server *s);
const struct http_server_stats *http_server_stats(const struct http_server *s);
