// SPDX-License-Identifier: Apache-2.0
/* Connections to a name with several addresses, of which some do not answer. */
#include "net/stream.h"

#include "test.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { ADDRESSES_MAX = 4, SILENT_CLIENTS = 4 };

#define ENOUGH_NS UINT64_C(6000000000)

/* What the resolver says of any name. */
static struct sockaddr_in places[ADDRESSES_MAX];
static struct addrinfo answers[ADDRESSES_MAX];
static size_t nr_places;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	(void)host, (void)port, (void)hints;
	for (size_t i = 0; i < nr_places; i++)
		answers[i] =
			(struct addrinfo){ .ai_family = AF_INET,
					   .ai_socktype = SOCK_STREAM,
					   .ai_addr = (struct sockaddr *)&places[i],
					   .ai_addrlen = sizeof(places[i]),
					   .ai_next = i + 1 < nr_places ? &answers[i + 1] : NULL };
	*ret = answers;
	return 0;
}

void freeaddrinfo(struct addrinfo *addresses)
{
	ASSERT(addresses == answers);
}

/* One more address, where somebody listens. */
static int add_place(void)
{
	struct sockaddr_in *place = &places[nr_places++];
	socklen_t size = sizeof(*place);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*place = (struct sockaddr_in){ .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	ASSERT_OK(bind(fd, (struct sockaddr *)place, size));
	ASSERT_OK(getsockname(fd, (struct sockaddr *)place, &size));
	ASSERT_OK(listen(fd, 0));
	return fd;
}

/* Whose queue is full of others: the kernel drops who comes next, as a firewall does. */
static void add_silent_place(void)
{
	add_place();
	for (int i = 0; i < SILENT_CLIENTS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (connect(fd, (struct sockaddr *)&places[nr_places - 1], sizeof(*places)))
			ASSERT_EQ(errno, EINPROGRESS);
	}
}

static int open_stream(uint64_t ns, struct stream **ret)
{
	static _Atomic uint64_t stop_ns;
	static struct net_options options = { .endpoint = { .host = "collector", .port = 4317 },
					      .stop_ns = &stop_ns };
	char problem[NET_PROBLEM_SIZE] = "";

	options.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ASSERT(options.wake_fd >= 0);
	return stream_open(&options, NULL, now_ns() + ns, ret, problem);
}

TEST(an_address_that_does_not_answer_leaves_time_for_the_next)
{
	struct stream *s = NULL;

	add_silent_place();
	add_place();
	ASSERT_OK(open_stream(ENOUGH_NS, &s));
	stream_close(s);
}

TEST(when_none_answers_the_time_is_over)
{
	struct stream *s = NULL;

	add_silent_place();
	add_silent_place();
	ASSERT_EQ(open_stream(ENOUGH_NS / 20, &s), -ETIMEDOUT);
}
