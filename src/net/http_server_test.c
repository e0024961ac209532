// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include "test.h"
#include "util/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* What nothing here shall wait for. */
#define LONG_NS	 UINT64_C(3600000000000)
#define SHORT_NS UINT64_C(20000000)

enum { LARGE = 32 << 20 };

static int answer(void *ctx, const char *path, struct http_reply *ret)
{
	size_t size = !strcmp(path, "/large") ? LARGE : 5;

	(*(unsigned *)ctx)++;
	if (!strcmp(path, "/later")) {
		ret->status = 503;
		return 0;
	}
	if (strcmp(path, "/large") && strcmp(path, "/small"))
		return !strcmp(path, "/broken") ? -ENOMEM : -ENOENT;
	ret->body = calloc(1, size + 1);
	ck_assert_ptr_nonnull(ret->body);
	memset(ret->body, 'x', size);
	ret->size = size;
	return 0;
}

static struct http_server *serve(uint64_t timeout_ns, unsigned *calls)
{
	const struct http_server_options options = {
		.address = "127.0.0.1:0", .timeout_ns = timeout_ns, .answer = answer, .ctx = calls
	};
	struct http_server *s;

	ASSERT_OK(http_server_open(&options, &s));
	return s;
}

static int client(const struct http_server *s)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *place = http_server_place(s);

	ASSERT(!strncmp(place, "127.0.0.1:", 10));
	to.sin_port = htons((uint16_t)strtoul(place + 10, NULL, 10));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT_OK(connect(fd, (struct sockaddr *)&to, sizeof(to)));
	return fd;
}

static void say(int fd, const char *text)
{
	ASSERT_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* The server's steps, until the client can read. */
static void step_until_readable(struct http_server *s, int fd)
{
	struct pollfd fds[] = { { http_server_fd(s), POLLIN, 0 }, { fd, POLLIN, 0 } };

	while (poll(fds, 2, -1) > 0 && !fds[1].revents)
		http_server_step(s);
}

/* All that comes until the end of it: how much; the first `size` bytes of it, as text. */
static size_t receive(struct http_server *s, int fd, char *buf, size_t size)
{
	static char bytes[1 << 20];
	size_t got = 0;
	ssize_t n;

	*buf = '\0';
	do {
		step_until_readable(s, fd);
		n = recv(fd, bytes, sizeof(bytes), 0);
		for (ssize_t i = 0; i < n && got + (size_t)i + 1 < size; i++) {
			buf[got + (size_t)i] = bytes[i];
			buf[got + (size_t)i + 1] = '\0';
		}
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return got;
}

static void ask(struct http_server *s, const char *request, char *buf, size_t size)
{
	_cleanup_close_ int fd = client(s);

	say(fd, request);
	receive(s, fd, buf, size);
}

TEST(answers_come)
{
	static const struct {
		const char *request, *begin, *end;
	} cases[] = {
		{ "GET /small HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		  "\r\n\r\nxxxxx" },
		{ "HEAD /small HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "close\r\n\r\n" },
		{ "GET /none HTTP/1.0\r\n\r\n", "HTTP/1.1 404 ", "Not Found\n" },
		{ "GET /broken HTTP/1.0\r\n\r\n", "HTTP/1.1 503 ", "Unavailable\n" },
		{ "GET /later HTTP/1.0\r\n\r\n", "HTTP/1.1 503 ", "Unavailable\n" },
		{ "POST /small HTTP/1.0\r\n\r\nbody", "HTTP/1.1 405 ", "Not Allowed\n" },
		{ "\x16\x03\x01", "HTTP/1.1 400 ", "Bad Request\n" },
	};
	unsigned calls = 0;
	_cleanup_(http_server_free_p) struct http_server *s = serve(LONG_NS, &calls);
	char buf[1000];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ask(s, cases[i].request, buf, sizeof(buf));
		ASSERT_MSG(!strncmp(buf, cases[i].begin, strlen(cases[i].begin)) &&
				   !strcmp(buf + strlen(buf) - strlen(cases[i].end), cases[i].end),
			   "%s", buf);
	}
	ASSERT_EQ(calls, 5);
	ASSERT_EQ(http_server_stats(s)->answered, 2);
	ASSERT_EQ(http_server_stats(s)->refused, 5);
	ASSERT_EQ(http_server_stats(s)->timed_out, 0);
}

TEST(a_request_comes_byte_by_byte)
{
	static const char request[] = "GET /small HTTP/1.1\r\nHost: a\r\n\r\n";
	unsigned calls = 0;
	_cleanup_(http_server_free_p) struct http_server *s = serve(LONG_NS, &calls);
	_cleanup_close_ int fd = client(s);
	char buf[1000];

	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		ASSERT_EQ(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
		http_server_step(s);
		ask(s, "GET /none HTTP/1.0\r\n\r\n", buf, sizeof(buf));
		ASSERT(!strncmp(buf, "HTTP/1.1 404", 12));
	}
	receive(s, fd, buf, sizeof(buf));
	ASSERT(!strncmp(buf, "HTTP/1.1 200", 12));
}

TEST(who_takes_too_long_is_hung_up_on)
{
	unsigned calls = 0;
	_cleanup_(http_server_free_p) struct http_server *s = serve(SHORT_NS, &calls);
	_cleanup_close_ int silent = client(s), half = client(s), deaf = client(s);
	char byte;

	say(half, "GET /small HT");
	say(deaf, "GET /large HTTP/1.0\r\n\r\n");
	step_until_readable(s, silent);
	ASSERT_EQ(recv(silent, &byte, 1, 0), 0);
	step_until_readable(s, half);
	ASSERT(recv(half, &byte, 1, 0) <= 0);
	/* One that has asked, and does not read. */
	while (http_server_stats(s)->timed_out < 3) {
		struct pollfd fd = { http_server_fd(s), POLLIN, 0 };

		ASSERT_EQ(poll(&fd, 1, -1), 1);
		http_server_step(s);
	}
	ASSERT_EQ(http_server_stats(s)->timed_out, 3);
}

TEST(a_large_answer_comes_whole)
{
	unsigned calls = 0;
	_cleanup_(http_server_free_p) struct http_server *s = serve(LONG_NS, &calls);
	_cleanup_close_ int fd = client(s);
	char buf[1000];
	size_t got;

	say(fd, "GET /large HTTP/1.0\r\n\r\n");
	got = receive(s, fd, buf, sizeof(buf));
	ASSERT(strstr(buf, "Content-Length: 33554432\r\n"));
	ASSERT_EQ(got, LARGE + (size_t)(strstr(buf, "\r\n\r\n") + 4 - buf));
}

TEST(the_oldest_makes_room)
{
	unsigned calls = 0;
	_cleanup_(http_server_free_p) struct http_server *s = serve(LONG_NS, &calls);
	int fds[40];
	char buf[1000], byte;

	for (size_t i = 0; i < 40; i++) {
		fds[i] = client(s);
		http_server_step(s);
	}
	ASSERT_EQ(http_server_stats(s)->pushed_out, 40 - 16);
	ask(s, "GET /small HTTP/1.0\r\n\r\n", buf, sizeof(buf));
	ASSERT(!strncmp(buf, "HTTP/1.1 200", 12));
	ASSERT_EQ(recv(fds[0], &byte, 1, 0), 0);
	ASSERT_EQ(recv(fds[39], &byte, 1, MSG_DONTWAIT), -1);
	for (size_t i = 0; i < 40; i++)
		close(fds[i]);
}

TEST(garbage_has_an_end)
{
	unsigned calls = 0;
	_cleanup_(http_server_free_p) struct http_server *s = serve(LONG_NS, &calls);
	_cleanup_close_ int fd = client(s);
	static char bytes[4096];
	ssize_t n = 0;

	memset(bytes, 'x', sizeof(bytes));
	/* Until it hangs up. */
	for (size_t i = 0; i < 100000 && n >= 0; i++) {
		struct pollfd poll_fd = { http_server_fd(s), POLLIN, 0 };

		n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			n = 0;
		if (poll(&poll_fd, 1, 0) > 0)
			http_server_step(s);
	}
	ASSERT(n < 0 && (errno == ECONNRESET || errno == EPIPE));
	ASSERT_EQ(http_server_stats(s)->refused, 1);
	ASSERT_EQ(calls, 0);
}

TEST(only_addresses_are_listened_at)
{
	static const char *const wrong[] = { "",
					     "9464",
					     ":",
					     "localhost",
					     "localhos:9464",
					     "localhost.:9464",
					     "[]:9464",
					     "127.0.0.1",
					     "127.0.0.1:",
					     "127.0.0.1:65536",
					     "127.0.0.1:-1",
					     "[::1]",
					     "::1:9464",
					     "[::1:1",
					     "1.2.3:1",
					     "127.0.0.1:1x",
					     "[:1" };
	/* Not all addresses: nobody is asked for a password. */
	static const char *const ours[] = { ":0", "localhost:0", "LocalHost:0" };
	struct http_server_options options = { .answer = answer, .timeout_ns = LONG_NS };
	struct http_server *s = NULL;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		options.address = wrong[i];
		ASSERT_MSG(http_server_open(&options, &s) == -EINVAL && !s, "'%s'", wrong[i]);
	}
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		_cleanup_(http_server_free_p) struct http_server *server = NULL;

		ASSERT(http_server_is_address(ours[i]));
		options.address = ours[i];
		ASSERT_OK(http_server_open(&options, &server));
		ASSERT_MSG(!strncmp(http_server_place(server), "127.0.0.1:", 10), "'%s' is %s",
			   ours[i], http_server_place(server));
	}
	options.address = "192.0.2.1:1"; /* nobody's */
	ASSERT_ERR(http_server_open(&options, &s), EADDRNOTAVAIL);
}
