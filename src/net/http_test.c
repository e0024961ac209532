// SPDX-License-Identifier: Apache-2.0
/* Versions of libcurl that know less than ours. */
#include "net/client.h"
#include "net/test_fake_curl.h"

#include "test.h"
#include "util/log.h"

#include <errno.h>

enum { PROTOCOLS_STR = 10318, QUICK_EXIT = 322 };

static int open_client(void)
{
	static _Atomic uint64_t stop_ns;
	static const struct net_options options = {
		.protocol = NET_HTTP,
		.endpoint = { .host = "collector", .port = 4318, .path = "/x" },
		.content_type = "application/x-protobuf",
		.user_agent = "test",
		.stop_ns = &stop_ns
	};
	struct net_client *c = NULL;
	int r = net_client_new(&options, &c);

	net_client_free(c);
	return r;
}

TEST(ours)
{
	ASSERT_OK(open_client());
	ASSERT_EQ(fake_curl_protocols, 0);
}

TEST(before_7_85)
{
	fake_curl_unknown[0] = (CURLoption)PROTOCOLS_STR;
	fake_curl_unknown[1] = (CURLoption)QUICK_EXIT;
	ASSERT_OK(open_client());
	ASSERT_EQ(fake_curl_protocols, CURLPROTO_HTTP | CURLPROTO_HTTPS);
}

/* Else a server could send us to a file. */
TEST(one_that_cannot_be_bound_to_http)
{
	fake_curl_unknown[0] = (CURLoption)PROTOCOLS_STR;
	fake_curl_unknown[1] = CURLOPT_PROTOCOLS;
	log_set_level(LOG_LEVEL_ERROR);
	ASSERT_EQ(open_client(), -EINVAL);
}
