// SPDX-License-Identifier: Apache-2.0
#include "net/http_request.h"

#include "test.h"

#include <errno.h>
#include <stdlib.h>

static int parse(const char *text, struct http_request *ret)
{
	return http_request_parse(text, strlen(text), ret);
}

TEST(requests_are_read)
{
	struct http_request r;

	ASSERT_EQ(parse("GET /metrics HTTP/1.1\r\nHost: a:1\r\nAccept: */*\r\n\r\n", &r), 0);
	ASSERT(!r.head);
	ASSERT_STR(r.path, "/metrics");
	ASSERT_EQ(parse("HEAD /a?b=/c HTTP/1.0\r\n\r\n", &r), 0);
	ASSERT(r.head);
	ASSERT_STR(r.path, "/a");
	ASSERT_EQ(parse("GET http://host:1/x HTTP/1.1\nhOST:\n\nand what follows", &r), 0);
	ASSERT_STR(r.path, "/x");
	ASSERT_EQ(parse("\r\nGET / HTTP/1.9\r\nHost:\tx\r\n\r\n", &r), 0);
	ASSERT_STR(r.path, "/");
}

TEST(what_is_not_whole_is_waited_for)
{
	static const char text[] = "\r\nGET /metrics HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
	struct http_request r = { .head = true };

	for (size_t size = 0; size < sizeof(text) - 1; size++) {
		char *exact = malloc(size + 1); /* so that ASan sees what is read behind it */

		memcpy(exact, text, size);
		ASSERT_ERR(http_request_parse(exact, size, &r), EAGAIN);
		free(exact);
	}
	ASSERT(r.head);
	ASSERT_EQ(parse(text, &r), 0);
}

TEST(what_is_no_request_gets_its_status)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{ "\x16\x03\x01\x02", 400 },
		{ "hello\r\n", 400 },
		{ "GET\r\n", 400 },
		{ "GET /\r\n", 400 },
		{ " GET / HTTP/1.1\r\n", 400 },
		{ "GET  / HTTP/1.1\r\n", 400 },
		{ "GET / HTTP/1.1 \r\n", 400 },
		{ "GET / HTTP/x.1\r\n", 400 },
		{ "GET metrics HTTP/1.1\r\n", 400 },
		{ "GET http://x HTTP/1.1\r\n", 400 },
		{ "GET /\x01 HTTP/1.1\r\n", 400 },
		{ "GET / HTTP/1.1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost : a\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\n b\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\rb\r\n", 400 },
		{ "POST / HTTP/1.1\r\n", 405 },
		{ "get / HTTP/1.1\r\n", 405 },
		{ "PRI * HTTP/2.0\r\n", 505 },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 400 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct http_request r = { .head = true };
		int got = parse(cases[i].text, &r);

		ASSERT_MSG(got == cases[i].status, "'%s': %d", cases[i].text, got);
		ASSERT(r.head);
	}
}

TEST(what_is_too_large_is_refused)
{
	static char text[HTTP_REQUEST_MAX];
	struct http_request r;

	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /", 5);
	ASSERT_ERR(http_request_parse(text, sizeof(text) - 1, &r), EAGAIN);
	ASSERT_EQ(http_request_parse(text, sizeof(text), &r), 414);
	memcpy(text + 5 + HTTP_PATH_SIZE - 2, " HTTP/1.1\r\nHost:", 16);
	ASSERT_ERR(http_request_parse(text, sizeof(text) - 1, &r), EAGAIN);
	ASSERT_EQ(http_request_parse(text, sizeof(text), &r), 431);
	memset(text + 5, 'a', HTTP_PATH_SIZE);
	memcpy(text + 5 + HTTP_PATH_SIZE - 1, " HTTP/1.1\r\nHost:", 16);
	ASSERT_EQ(http_request_parse(text, sizeof(text) - 1, &r), 414);
}
