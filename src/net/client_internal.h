/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "net/client.h"

/* One transport. The functions are client.h's; send() finds *ret empty. */
struct transport_ops {
	int (*open)(const struct net_options *options, void **ret);
	void (*close)(void *transport);
	void (*send)(void *transport, const void *data, size_t size, bool gzip,
		     uint64_t deadline_ns, struct net_answer *ret);
};

extern const struct transport_ops http_transport, grpc_transport;

/* How long the call may still wait for something, in ms; 0: its time is over. */
int net_time_left(const struct net_options *options, uint64_t deadline_ns);
/* Why there is no answer: `error`, and words, unless there are some already. */
void net_no_answer(struct net_answer *answer, int error, const char *words);
/* Its time is over: which of the two was it? */
void net_timed_out(const struct net_options *options, struct net_answer *answer);
void net_drain_wake(const struct net_options *options);
/* 1: poll(2)'s `events` of `fd`, or something like it, have come; -ETIMEDOUT. */
int net_wait(const struct net_options *options, int fd, short events, uint64_t deadline_ns);
