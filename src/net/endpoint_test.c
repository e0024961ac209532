// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include "test.h"

#include <errno.h>
#include <stdio.h>

static struct endpoint parse(const char *text)
{
	struct endpoint e;
	const char *problem = "";

	ck_assert_msg(!endpoint_parse(text, &e, &problem), "%s: %s", text, problem);
	return e;
}

TEST(endpoints_are_read)
{
	struct endpoint e = parse("127.0.0.1:11000");
	char authority[300];

	ASSERT(!e.has_scheme && !e.tls && e.port == 11000);
	ASSERT_STR(e.host, "127.0.0.1");
	ASSERT_STR(e.path, "");
	e = parse("https://collector.example/a/b?c=d");
	ASSERT(e.has_scheme && e.tls && e.port == 0);
	ASSERT_STR(e.host, "collector.example");
	ASSERT_STR(e.path, "/a/b?c=d");
	e = parse("HTTP://[fe80::1%25eth0]:65535/");
	ASSERT(e.has_scheme && !e.tls && e.port == 65535);
	ASSERT_STR(e.host, "fe80::1%25eth0");
	ASSERT_STR(e.path, "/");
	endpoint_authority(&e, authority, sizeof(authority));
	ASSERT_STR(authority, "[fe80::1%25eth0]:65535");
	e = parse("a_host-1");
	endpoint_authority(&e, authority, sizeof(authority));
	ASSERT_STR(authority, "a_host-1:0");
}

TEST(what_is_no_endpoint_is_refused)
{
	static const char *const texts[] = {
		"",	 ":1",	     "http://", "ftp://x", "x:0", "x:65536", "x:",
		"x:1a",	 "x:000001", "[::1",	"[::1]x",  "a b", "u@x",     "http://u:p@x/",
		"x/a b", "x/a#b",    "x?y",	"x\n",	   "[x]", "x:1:2"
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct endpoint e = { .port = 7 };
		const char *problem = NULL;

		ck_assert_msg(endpoint_parse(texts[i], &e, &problem) == -EINVAL, "'%s'", texts[i]);
		ASSERT(problem && e.port == 7);
	}
}

TEST(secrets_are_seen)
{
	static const char *const secret[] = { "http://user:word@host/", "u:w@host",
					      "https://h/x?key=1", "http://u:w/x@h" };
	static const char *const plain[] = { "host", "host:1", "https://[::1]:1/v1/x", "" };

	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
		ASSERT(endpoint_has_secret(secret[i]));
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		ASSERT(!endpoint_has_secret(plain[i]));
}

TEST(long_ones_are_refused)
{
	char text[2000];
	struct endpoint e;
	const char *problem;

	memset(text, 'a', sizeof(text));
	text[255] = '\0';
	ASSERT_OK(endpoint_parse(text, &e, &problem));
	text[255] = 'a';
	text[256] = '\0';
	ASSERT_ERR(endpoint_parse(text, &e, &problem), EINVAL);
	memset(text, 'a', sizeof(text));
	text[1] = '/';
	text[512] = '\0';
	ASSERT_OK(endpoint_parse(text, &e, &problem));
	text[512] = 'a';
	text[513] = '\0';
	ASSERT_ERR(endpoint_parse(text, &e, &problem), EINVAL);
}

TEST(headers_are_read)
{
	struct pairs h;
	const char *problem;

	ASSERT_OK(net_headers_parse(" Api-Key = s%3Dcret%2c ,b=1=2,,c=, d=%zz%4", &h, &problem));
	ASSERT_EQ(h.nr, 4);
	ASSERT_STR(h.items[0].name, "api-key");
	ASSERT_STR(h.items[0].value, "s=cret,");
	ASSERT_STR(h.items[1].value, "1=2");
	ASSERT_STR(h.items[2].value, "");
	ASSERT_STR(h.items[3].value, "%zz%4");
	pairs_fini(&h);
}

TEST(what_is_no_header_is_refused)
{
	static const char *const texts[] = {
		"a",	 "=b",	  "a b=c", "a=%0d%0ab", "Content-Type=x", "grpc-timeout=1",
		"a:b=c", "a=\x7f"
	};
	struct pairs h;
	const char *problem;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_msg(net_headers_parse(texts[i], &h, &problem) == -EINVAL, "'%s'",
			      texts[i]);
}
