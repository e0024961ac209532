// SPDX-License-Identifier: Apache-2.0
/* Calls that a server answers before it has read all of them, and answers that it packed. */
#include "net/client.h"
#include "net/grpc_answer.h"

#include "test.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <zlib.h>

/* More than the buffers of a connection take. */
enum { BODY = 64 << 20 };

/* What nothing here shall wait for. */
#define LONG_NS UINT64_C(3600000000000)

/* A frame's length in three bytes, its type, flags and stream (RFC 9113, 4.1). */
static const char settings[] = "\0\0\6\4\0\0\0\0\0"
			       "\0\4\x7f\xff\xff\xff"; /* INITIAL_WINDOW_SIZE: no limit */
static const char window[] = "\0\0\4\x08\0\0\0\0\0"
			     "\x7f\xfe\0\0";
/* HEADERS, the last of stream 1: ":status: 200", "grpc-status: 8" without Huffman's code. */
static const char refusal[] = "\0\0\x10\1\5\0\0\0\1"
			      "\x88\0\x0bgrpc-status\1"
			      "8";

struct server {
	int listener;
	bool hangs_up;
	int connection;
};

static void say(int fd, const char *what, size_t size)
{
	ASSERT_EQ(send(fd, what, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void *serve(void *ctx)
{
	struct server *s = ctx;
	char buf[4096];

	s->connection = accept(s->listener, NULL, NULL);
	ASSERT(s->connection >= 0);
	say(s->connection, settings, sizeof(settings) - 1);
	say(s->connection, window, sizeof(window) - 1);
	/* The call has begun: its stream is there when the body's first bytes are. */
	for (size_t had = 0; had < 3 * sizeof(buf);) {
		ssize_t n = recv(s->connection, buf, sizeof(buf), 0);

		ASSERT(n > 0);
		had += (size_t)n;
	}
	say(s->connection, refusal, sizeof(refusal) - 1);
	/* With bytes in it that nobody has read: the client is told of a reset. */
	if (s->hangs_up)
		close(s->connection);
	return NULL;
}

static void call(bool hangs_up)
{
	static _Atomic uint64_t stop_ns;
	static struct net_answer answer;
	struct sockaddr_in place = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct net_options options = { .protocol = NET_GRPC,
				       .endpoint = { .host = "127.0.0.1", .path = "/x" },
				       .content_type = "application/grpc+proto",
				       .user_agent = "test",
				       .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				       .stop_ns = &stop_ns };
	struct server s = { .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			    .hangs_up = hangs_up };
	_cleanup_free_ char *body = calloc(1, BODY);
	socklen_t size = sizeof(place);
	struct net_client *c = NULL;
	pthread_t thread;

	ASSERT_PTR_NONNULL(body);
	ASSERT_OK(bind(s.listener, (struct sockaddr *)&place, size));
	ASSERT_OK(listen(s.listener, 1));
	ASSERT_OK(getsockname(s.listener, (struct sockaddr *)&place, &size));
	options.endpoint.port = ntohs(place.sin_port);
	ASSERT_OK(pthread_create(&thread, NULL, serve, &s));
	ASSERT_OK(net_client_new(&options, &c));
	net_client_send(c, body, BODY, false, now_ns() + LONG_NS, &answer);
	ASSERT_OK(pthread_join(thread, NULL));
	net_client_free(c);
	ASSERT_EQ(answer.error, 0);
	ASSERT_EQ(answer.status, GRPC_RESOURCE_EXHAUSTED);
	ASSERT(answer.whole);
}

TEST(an_answer_without_a_reset_behind_it_ends_the_call)
{
	call(false);
}

TEST(who_answers_and_hangs_up_has_answered)
{
	call(true);
}

static size_t pack(const void *data, size_t size, uint8_t *buf, size_t room)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)data,
		       .avail_in = (uInt)size,
		       .next_out = buf,
		       .avail_out = (uInt)room };

	ASSERT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
	ASSERT_OK(deflateEnd(&z));
	return room - z.avail_out;
}

static void header_of(struct grpc_answer *a, const char *name, const char *value, bool last)
{
	grpc_answer_header(a, name, strlen(name), value, strlen(value), last);
}

/* Of a message that is called packed, in two pieces. */
static void answer_packed(struct net_answer *answer, const char *encoding, const uint8_t *data,
			  size_t size)
{
	struct grpc_answer a = { .answer = answer };
	const uint8_t prefix[] = { 1, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
				   (uint8_t)(size >> 8), (uint8_t)size };

	answer->body_size = 0;
	header_of(&a, ":status", "200", false);
	if (encoding)
		header_of(&a, "grpc-encoding", encoding, false);
	grpc_answer_data(&a, prefix, sizeof(prefix));
	grpc_answer_data(&a, data, size / 2);
	grpc_answer_data(&a, data + size / 2, size - size / 2);
	header_of(&a, "grpc-status", "0", true);
	grpc_answer_end(&a, 0);
	ASSERT_EQ(answer->status, 0);
}

TEST(a_message_that_was_packed_is_read)
{
	static struct net_answer answer;
	static uint8_t plain[NET_BODY_MAX], packed[NET_BODY_MAX];
	size_t size = pack("\x0a\x00", 2, packed, sizeof(packed));

	answer_packed(&answer, "gzip", packed, size);
	ASSERT(answer.whole);
	ASSERT_EQ(answer.body_size, 2);
	ASSERT_OK(memcmp(answer.body, "\x0a\x00", 2));

	memset(plain, 'x', sizeof(plain));
	size = pack(plain, sizeof(plain), packed, sizeof(packed));
	answer_packed(&answer, "gzip", packed, size);
	ASSERT(answer.whole);
	ASSERT_EQ(answer.body_size, sizeof(plain));
	ASSERT_OK(memcmp(answer.body, plain, sizeof(plain)));
}

TEST(a_message_that_cannot_be_unpacked_is_not_whole)
{
	static struct net_answer answer;
	static uint8_t plain[NET_BODY_MAX + 1], packed[NET_BODY_MAX];
	size_t size = pack("\x0a\x00", 2, packed, sizeof(packed));
	static const char *const encodings[] = { NULL, "zstd", "gzi" };

	for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++) {
		answer_packed(&answer, encodings[i], packed, size);
		ASSERT(!answer.whole && !answer.body_size);
	}
	/* Cut off, damaged, larger than a body may be. */
	for (size_t part = 0; part < size; part++) {
		answer_packed(&answer, "gzip", packed, part);
		ASSERT(!answer.whole && !answer.body_size);
	}
	packed[size - 5] ^= 1;
	answer_packed(&answer, "gzip", packed, size);
	ASSERT(!answer.whole && !answer.body_size);
	size = pack(plain, sizeof(plain), packed, sizeof(packed));
	answer_packed(&answer, "gzip", packed, size);
	ASSERT(!answer.whole && !answer.body_size);
}
