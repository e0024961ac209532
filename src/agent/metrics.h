/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells of itself, in Prometheus' text format 0.0.4. docs/metrics.md. */
#pragma once

#include "agent/agent.h"
#include "net/http_server.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics {
	const struct recorder_stats *recorder;
	const struct agent_stats *agent;
	const struct http_server_stats *http;
	const struct profile *profile;
};

/* 0, and *ret (`size` bytes) is the caller's; -ENOMEM. */
int metrics_write(const struct metrics *m, char **ret, size_t *ret_size);
