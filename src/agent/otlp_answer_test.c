// SPDX-License-Identifier: Apache-2.0
#include "agent/otlp_answer.h"

#include "test.h"

#include <errno.h>

static struct net_answer answer;

static struct otlp_answer http(unsigned status, const void *body, size_t size)
{
	struct otlp_answer a;

	answer.status = status;
	answer.whole = true;
	memcpy(answer.body, body, size);
	answer.body_size = size;
	otlp_answer_read(NET_HTTP, &answer, &a);
	return a;
}

static struct otlp_answer grpc(unsigned status, const void *details, size_t size)
{
	struct otlp_answer a;

	answer.status = status;
	answer.whole = true;
	memcpy(answer.details, details, size);
	answer.details_size = size;
	otlp_answer_read(NET_GRPC, &answer, &a);
	return a;
}

TEST(the_table_of_http)
{
	for (unsigned status = 200; status < 600; status++) {
		enum otlp_verdict wanted = OTLP_REFUSED;

		if (status < 300)
			wanted = OTLP_DELIVERED;
		if (status == 429 || status == 502 || status == 503 || status == 504)
			wanted = OTLP_AGAIN;
		ASSERT_EQ(http(status, "", 0).verdict, wanted);
	}
}

TEST(the_table_of_grpc)
{
	static const bool again[17] = {
		[1] = true, [4] = true, [10] = true, [11] = true, [14] = true, [15] = true
	};

	ASSERT_EQ(grpc(0, "", 0).verdict, OTLP_DELIVERED);
	for (unsigned status = 1; status < 1000; status++)
		ASSERT_EQ(grpc(status, "", 0).verdict,
			  status < 17 && again[status] ? OTLP_AGAIN : OTLP_REFUSED);
}

/* As python's grpc sent it: facts of RetryInfo in grpc-status-details-bin. */
static const char slow_down[] = "\x08\x0e\x12\x09slow down\x1a\x30\x0a\x28"
				"type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x03";

TEST(retry_info)
{
	struct otlp_answer a = grpc(14, slow_down, sizeof(slow_down) - 1);

	ASSERT(a.verdict == OTLP_AGAIN && a.has_wait && a.wait_ns == UINT64_C(3000000000));
	ASSERT_STR(a.words, "slow down");
	/* Of RESOURCE_EXHAUSTED it is what makes it worth another try. */
	a = grpc(8, slow_down, sizeof(slow_down) - 1);
	ASSERT(a.verdict == OTLP_AGAIN && a.has_wait);
	a = grpc(8, slow_down, 13);
	ASSERT(a.verdict == OTLP_REFUSED && !a.has_wait);
	a = http(503, slow_down, sizeof(slow_down) - 1);
	ASSERT(a.has_wait && a.wait_ns == UINT64_C(3000000000));
}

/* No time is no word of when: else a server that says it is asked without a pause, for ever. */
TEST(retry_info_of_no_time)
{
	static const char at_once[] =
		"\x08\x08\x1a\x30\x0a\x28"
		"type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\0";
	struct otlp_answer a = grpc(8, at_once, sizeof(at_once) - 1);

	ASSERT(a.verdict == OTLP_AGAIN && !a.has_wait);
	a = grpc(14, at_once, sizeof(at_once) - 1);
	ASSERT(a.verdict == OTLP_AGAIN && !a.has_wait);
}

TEST(retry_after)
{
	struct otlp_answer a;

	answer.has_retry_after = true;
	answer.retry_after_s = 7;
	a = http(503, slow_down, sizeof(slow_down) - 1);
	ASSERT(a.has_wait && a.wait_ns == UINT64_C(7000000000));
	answer.retry_after_s = UINT64_MAX;
	a = http(429, "", 0);
	ASSERT(a.has_wait && a.wait_ns == UINT64_C(3600000000000));
}

TEST(partial_success)
{
	static const char partial[] = "\x0a\x0c\x08\x03\x12\x08"
				      "bad ones";
	struct otlp_answer a = http(200, partial, sizeof(partial) - 1);

	ASSERT(a.verdict == OTLP_DELIVERED && a.rejected == 3);
	ASSERT_STR(a.words, "bad ones");
	/* A negative number is none. */
	a = http(200, "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
	ASSERT(a.verdict == OTLP_DELIVERED && !a.rejected && !*a.words);
	a = http(200, "<html>", 6);
	ASSERT(a.verdict == OTLP_DELIVERED && !a.rejected);
	ASSERT_STR(a.words, "its answer is none of OTLP");
}

TEST(without_an_answer_it_is_sent_again)
{
	struct otlp_answer a;

	answer.error = -EIO;
	memcpy(answer.problem, "connection refused", 19);
	a = http(400, "", 0);
	ASSERT(a.verdict == OTLP_AGAIN && !a.has_wait);
	ASSERT_STR(a.words, "connection refused");
}
