/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collector's answer means for a request: it is delivered, to be sent again, or lost. By
 * the tables of OTLP 1.11 (docs/specification.md, "Failures") for HTTP and gRPC.
 */
#pragma once

#include "net/client.h"

enum otlp_verdict {
	OTLP_DELIVERED = 0, /* perhaps in part */
	OTLP_AGAIN = 1,
	OTLP_REFUSED = 2, /* it would be refused again */
};

struct otlp_answer {
	enum otlp_verdict verdict;
	bool has_wait; /* the server said when to come again */
	uint64_t wait_ns;
	uint64_t rejected; /* profiles of what was delivered */
	/* What the server said, or what is wrong; may be "". Nothing in it is trusted. */
	char words[NET_PROBLEM_SIZE];
};

/* `answer` is hostile. */
void otlp_answer_read(enum net_protocol protocol, const struct net_answer *answer,
		      struct otlp_answer *ret);
