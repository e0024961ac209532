// SPDX-License-Identifier: Apache-2.0
#include "net/client.h"

#include "net/client_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

struct net_client {
	const struct net_options *options;
	const struct transport_ops *ops;
	void *transport;
};

int net_client_new(const struct net_options *options, struct net_client **ret)
{
	_cleanup_free_ struct net_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return log_err(-ENOMEM, "cannot set up a connection");
	c->options = options;
	c->ops = options->protocol == NET_GRPC ? &grpc_transport : &http_transport;
	r = c->ops->open(options, &c->transport);
	if (r)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

void net_client_free(struct net_client *c)
{
	if (!c)
		return;
	c->ops->close(c->transport);
	free(c);
}

void net_client_send(struct net_client *c, const void *data, size_t size, bool gzip,
		     uint64_t deadline_ns, struct net_answer *ret)
{
	ret->error = 0;
	ret->status = 0;
	ret->whole = ret->has_retry_after = false;
	ret->retry_after_s = 0;
	ret->body_size = ret->details_size = 0;
	ret->problem[0] = '\0';
	c->ops->send(c->transport, data, size, gzip, deadline_ns, ret);
}

int net_time_left(const struct net_options *options, uint64_t deadline_ns)
{
	uint64_t stop = atomic_load(options->stop_ns), now = now_ns();

	if (stop && stop < deadline_ns)
		deadline_ns = stop;
	if (now >= deadline_ns)
		return 0;
	deadline_ns = (deadline_ns - now) / 1000000 + 1;
	return deadline_ns > 60000 ? 60000 : (int)deadline_ns;
}

void net_no_answer(struct net_answer *answer, int error, const char *words)
{
	answer->error = error;
	if (!answer->problem[0])
		net_clean_text(words, strlen(words), answer->problem, sizeof(answer->problem));
}

void net_timed_out(const struct net_options *options, struct net_answer *answer)
{
	uint64_t stop = atomic_load(options->stop_ns);

	answer->problem[0] = '\0';
	if (stop && now_ns() >= stop)
		net_no_answer(answer, -ECANCELED, "it took too long for an end in order");
	else
		net_no_answer(answer, -ETIMEDOUT, "no answer in time");
}

void net_drain_wake(const struct net_options *options)
{
	uint64_t value;

	if (read(options->wake_fd, &value, sizeof(value)) < 0)
		return; /* nobody did */
}

int net_wait(const struct net_options *options, int fd, short events, uint64_t deadline_ns)
{
	struct pollfd fds[] = { { .fd = fd, .events = events },
				{ .fd = options->wake_fd, .events = POLLIN } };
	int left;

	while ((left = net_time_left(options, deadline_ns))) {
		fds[0].revents = fds[1].revents = 0;
		if (poll(fds, 2, left) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			net_drain_wake(options);
		if (fds[0].revents)
			return 1;
	}
	return -ETIMEDOUT;
}

void net_clean_text(const void *text, size_t size, char *buf, size_t buf_size)
{
	const unsigned char *s = text;
	size_t len = 0;

	/* As programs end what they print. */
	while (size && s[size - 1] <= ' ')
		size--;
	for (; len < size && len + 1 < buf_size; len++)
		buf[len] = s[len] >= ' ' && s[len] != 127 ? (char)s[len] : '?';
	buf[len] = '\0';
}
