// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include "net/http_request.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
	CONNECTIONS_MAX = 16,
	ACCEPTS_A_STEP = 8,
	DRAIN_MAX = 64 << 10, /* what is read, and thrown away, behind an answered request */
	HEADERS_SIZE = 256,
};

/* Between two tries to take connections in when there are no descriptors. */
#define ACCEPT_AGAIN_NS UINT64_C(1000000000)

enum conn_state {
	CONN_READING = 0,
	CONN_WRITING = 1,
	/* What is still unread when a socket is closed resets the connection, and the client may
	 * lose the answer. */
	CONN_DRAINING = 2,
};

struct conn {
	int fd; /* -1: this place is free */
	enum conn_state state;
	uint64_t begin_ns, deadline_ns;
	char *in;
	size_t in_size;
	char *out; /* headers and body */
	size_t out_size, out_at;
	size_t drained;
};

struct http_server {
	struct http_server_options options;
	struct http_server_stats stats;
	char place[INET6_ADDRSTRLEN + 16];
	int epoll_fd, listen_fd, timer_fd;
	uint64_t accept_again_ns; /* 0: connections are taken in */
	struct conn conns[CONNECTIONS_MAX];
};

/* --- a connection ----------------------------------------------------------------------------- */

static void conn_close(struct conn *c)
{
	if (c->fd < 0)
		return;
	close(c->fd);
	free(c->in);
	free(c->out);
	*c = (struct conn){ .fd = -1 };
}

static const char *status_words(unsigned status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Error";
	}
}

static int make_output(struct conn *c, const struct http_reply *reply, bool head)
{
	const char *words = status_words(reply->status);
	size_t size = reply->body ? reply->size : strlen(words) + 1;
	int len;

	c->out = malloc(HEADERS_SIZE + size + 1);
	if (!c->out)
		return -ENOMEM;
	len = snprintf(c->out, HEADERS_SIZE,
		       "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		       "%sCache-Control: no-store\r\nConnection: close\r\n\r\n",
		       reply->status, words,
		       reply->content_type ? reply->content_type : "text/plain; charset=utf-8",
		       size, reply->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (len < 0 || len >= HEADERS_SIZE)
		return -EOVERFLOW;
	c->out_size = (size_t)len;
	if (head)
		return 0;
	if (reply->body)
		memcpy(c->out + len, reply->body, size);
	else
		snprintf(c->out + len, size + 1, "%s\n", words);
	c->out_size += size;
	return 0;
}

static void conn_drain(struct conn *c)
{
	char bytes[4096];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->drained += (size_t)n;
	if (n <= 0 || c->drained > DRAIN_MAX)
		conn_close(c);
}

static void conn_watch(struct http_server *s, struct conn *c, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = c->fd };

	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &event))
		conn_close(c);
}

static void conn_write(struct http_server *s, struct conn *c)
{
	ssize_t n = send(c->fd, c->out + c->out_at, c->out_size - c->out_at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		s->stats.broken++;
		conn_close(c);
		return;
	}
	c->out_at += (size_t)n;
	if (c->out_at < c->out_size)
		return;
	c->state = CONN_DRAINING;
	shutdown(c->fd, SHUT_WR);
	conn_watch(s, c, EPOLLIN);
}

/* `status`: what is wrong with the request; 0: nothing. */
static void conn_answer(struct http_server *s, struct conn *c, unsigned status,
			const struct http_request *request)
{
	struct http_reply reply = { .status = status ? status : 200 };
	int r = status ? 0 : s->options.answer(s->options.ctx, request->path, &reply);

	if (r) {
		free(reply.body);
		reply = (struct http_reply){ .status = r == -ENOENT ? 404 : 503 };
	}
	r = make_output(c, &reply, !status && request->head);
	free(reply.body);
	if (r) {
		s->stats.broken++;
		conn_close(c);
		return;
	}
	if (reply.status == 200)
		s->stats.answered++;
	else
		s->stats.refused++;
	c->state = CONN_WRITING;
	c->deadline_ns = now_ns() + s->options.timeout_ns;
	conn_watch(s, c, EPOLLOUT);
	if (c->fd >= 0)
		conn_write(s, c);
}

static void conn_read(struct http_server *s, struct conn *c)
{
	struct http_request request;
	ssize_t n = recv(c->fd, c->in + c->in_size, HTTP_REQUEST_MAX - c->in_size, MSG_DONTWAIT);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* One that connects and says nothing looks only whether we are there. */
		s->stats.broken += n < 0 || c->in_size;
		conn_close(c);
		return;
	}
	c->in_size += (size_t)n;
	r = http_request_parse(c->in, c->in_size, &request);
	if (r >= 0)
		conn_answer(s, c, (unsigned)r, &request);
}

static void conn_step(struct http_server *s, struct conn *c)
{
	switch (c->state) {
	case CONN_READING:
		conn_read(s, c);
		break;
	case CONN_WRITING:
		conn_write(s, c);
		break;
	case CONN_DRAINING:
		conn_drain(c);
		break;
	}
}

/* --- the server ------------------------------------------------------------------------------- */

/* The one that began first goes: who holds connections keeps nobody out for long. */
static struct conn *free_place(struct http_server *s)
{
	struct conn *oldest = s->conns;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		if (s->conns[i].fd < 0)
			return &s->conns[i];
		if (s->conns[i].begin_ns < oldest->begin_ns)
			oldest = &s->conns[i];
	}
	s->stats.pushed_out++;
	conn_close(oldest);
	return oldest;
}

/* False: there is none, or there are no descriptors for it. */
static bool accept_one(struct http_server *s)
{
	_cleanup_close_ int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct conn *c;
	char *in;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
		/* It would be ready again and again. */
		s->accept_again_ns = now_ns() + ACCEPT_AGAIN_NS;
		loop_unwatch(s->epoll_fd, s->listen_fd);
		log_debug("cannot take in a connection: %s", strerror(errno));
	}
	if (fd < 0)
		return false;
	in = malloc(HTTP_REQUEST_MAX);
	if (!in)
		return true;
	c = free_place(s);
	if (loop_watch(s->epoll_fd, fd)) {
		free(in);
		return true;
	}
	*c = (struct conn){ .fd = TAKE_FD(fd), .in = in, .begin_ns = now_ns() };
	c->deadline_ns = c->begin_ns + s->options.timeout_ns;
	return true;
}

static void end_late_ones(struct http_server *s, uint64_t now)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct conn *c = &s->conns[i];

		if (c->fd < 0 || c->deadline_ns > now)
			continue;
		/* One that has its answer and does not hang up has not failed. */
		s->stats.timed_out += c->state != CONN_DRAINING;
		conn_close(c);
	}
	if (s->accept_again_ns && s->accept_again_ns <= now)
		s->accept_again_ns =
			loop_watch(s->epoll_fd, s->listen_fd) ? now + ACCEPT_AGAIN_NS : 0;
}

static void set_timer(struct http_server *s)
{
	uint64_t first = s->accept_again_ns;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->conns[i].fd >= 0 && (!first || s->conns[i].deadline_ns < first))
			first = s->conns[i].deadline_ns;
	loop_set_timer(s->timer_fd, TFD_TIMER_ABSTIME, first);
}

static struct conn *conn_of(struct http_server *s, int fd)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->conns[i].fd == fd)
			return &s->conns[i];
	return NULL;
}

void http_server_step(struct http_server *s)
{
	struct epoll_event events[CONNECTIONS_MAX + 2];
	int n = epoll_wait(s->epoll_fd, events, CONNECTIONS_MAX + 2, 0);
	bool come = false;

	if (n <= 0)
		return;
	/* New ones last: theirs may be descriptors that others had in this very list. */
	for (int i = 0; i < n; i++) {
		struct conn *c = conn_of(s, events[i].data.fd);

		come |= events[i].data.fd == s->listen_fd;
		if (c)
			conn_step(s, c);
	}
	for (int i = 0; come && i < ACCEPTS_A_STEP; i++)
		come = accept_one(s);
	end_late_ones(s, now_ns());
	set_timer(s);
}

int http_server_fd(const struct http_server *s)
{
	return s->epoll_fd;
}

const char *http_server_place(const struct http_server *s)
{
	return s->place;
}

const struct http_server_stats *http_server_stats(const struct http_server *s)
{
	return &s->stats;
}

/* --- where it listens ------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int parse_port(const char *text, in_port_t *ret)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || port > UINT16_MAX)
		return -EINVAL;
	*ret = htons((uint16_t)port);
	return 0;
}

/* No resolver is asked: "localhost", or no host at all, is 127.0.0.1. */
static int parse_address(const char *text, union address *ret)
{
	static const char local[] = "127.0.0.1", local_name[] = "localhost";
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[INET6_ADDRSTRLEN];

	*ret = (union address){ 0 };
	if (!colon)
		return -EINVAL;
	if (len && *text == '[' && text[len - 1] == ']' && len - 2 < sizeof(host)) {
		snprintf(host, sizeof(host), "%.*s", (int)len - 2, text + 1);
		ret->v6.sin6_family = AF_INET6;
		return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1
			       ? parse_port(colon + 1, &ret->v6.sin6_port)
			       : -EINVAL;
	}
	if (len >= sizeof(host))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)len, text);
	if (!len || !strcasecmp(host, local_name))
		snprintf(host, sizeof(host), "%s", local);
	ret->v4.sin_family = AF_INET;
	return inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1
		       ? parse_port(colon + 1, &ret->v4.sin_port)
		       : -EINVAL;
}

bool http_server_is_address(const char *text)
{
	union address a;

	return !parse_address(text, &a);
}

static void name_place(struct http_server *s)
{
	char host[INET6_ADDRSTRLEN] = "?";
	union address a = { 0 };
	socklen_t len = sizeof(a);

	getsockname(s->listen_fd, &a.any, &len);
	if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		snprintf(s->place, sizeof(s->place), "[%s]:%u", host, ntohs(a.v6.sin6_port));
	} else {
		inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		snprintf(s->place, sizeof(s->place), "%s:%u", host, ntohs(a.v4.sin_port));
	}
}

static int listen_at(struct http_server *s, const union address *a)
{
	int on = 1, r;

	s->listen_fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listen_fd < 0)
		return -errno;
	/* What was connected before a restart does not keep the port. */
	if (setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	r = bind(s->listen_fd, &a->any,
		 a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4));
	return r || listen(s->listen_fd, CONNECTIONS_MAX) ? -errno : 0;
}

static int set_up(struct http_server *s, const union address *a)
{
	int r = listen_at(s, a);

	if (r)
		return r;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll_fd < 0 || s->timer_fd < 0)
		return -errno;
	r = loop_watch(s->epoll_fd, s->listen_fd);
	return r ? r : loop_watch(s->epoll_fd, s->timer_fd);
}

int http_server_open(const struct http_server_options *options, struct http_server **ret)
{
	_cleanup_(http_server_free_p) struct http_server *s = calloc(1, sizeof(*s));
	union address a;
	int r;

	if (!s)
		return log_err(-ENOMEM, "cannot listen at '%s'", options->address);
	s->options = *options;
	s->epoll_fd = s->listen_fd = s->timer_fd = -1;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		s->conns[i].fd = -1;
	r = parse_address(options->address, &a);
	if (r) {
		log_error("cannot listen at '%s': that is no address and port, 127.0.0.1:9464 for "
			  "example",
			  options->address);
		return r;
	}
	r = set_up(s, &a);
	if (r)
		return log_err(r, "cannot listen at '%s'", options->address);
	name_place(s);
	*ret = TAKE_PTR(s);
	return 0;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		conn_close(&s->conns[i]);
	close_p(&s->epoll_fd);
	close_p(&s->listen_fd);
	close_p(&s->timer_fd);
	free(s);
}
