/* SPDX-License-Identifier: Apache-2.0 */
/* Options that say to which collector reports go, and how. */
#pragma once

#include "cli/config.h"
#include "net/client.h"

struct collector_arguments {
	const char *agent, *endpoint, *protocol, *headers;
	const char *ca_file, *cert_file, *key_file, *server_name;
	bool disable_tls, no_gzip;
	/*
	 * As OTEL_EXPORTER_OTLP_ENDPOINT, which paths are appended to, and _PROFILES_ENDPOINT,
	 * which is taken as it is. They count if nothing else says where reports go.
	 */
	const char *base_endpoint, *profiles_endpoint;
	bool insecure; /* where the endpoint does not say it */
};

/* Of OpenTelemetry (specification/protocol/exporter.md), for config_read(). */
extern const struct config_variable collector_variables[];

#define COLLECTOR_OPTIONS(AT)                                                                      \
	{ 0,                                                                                       \
	  "collection-agent",                                                                      \
	  "HOST:PORT",                                                                             \
	  NULL,                                                                                    \
	  "send reports there: OTLP over gRPC; with http:// or https:// before it over HTTP",      \
	  OPTION_STRING,                                                                           \
	  AT(collector.agent),                                                                     \
	  .or_none = true,                                                                         \
	  .instead = "otlp-endpoint",                                                              \
	  .endpoint = true },                                                                      \
		{ 0,                                                                               \
		  "disable-tls",                                                                   \
		  NULL,                                                                            \
		  NULL,                                                                            \
		  "send them unencrypted",                                                         \
		  OPTION_FLAG,                                                                     \
		  AT(collector.disable_tls) },                                                     \
		{ 0,                                                                               \
		  "otlp-endpoint",                                                                 \
		  "URL",                                                                           \
		  NULL,                                                                            \
		  "the same as --collection-agent, http://HOST:4318/v1development/profiles",       \
		  OPTION_STRING,                                                                   \
		  AT(collector.endpoint),                                                          \
		  .instead = "collection-agent",                                                   \
		  .endpoint = true },                                                              \
		{ 0,                                                                               \
		  "otlp-protocol",                                                                 \
		  "PROTOCOL",                                                                      \
		  NULL,                                                                            \
		  "grpc or http/protobuf, where the endpoint does not say it",                     \
		  OPTION_STRING,                                                                   \
		  AT(collector.protocol) },                                                        \
		{ 0,                                                                               \
		  "otlp-headers",                                                                  \
		  "LIST",                                                                          \
		  NULL,                                                                            \
		  "NAME=VALUE,...: sent with each request",                                        \
		  OPTION_STRING,                                                                   \
		  AT(collector.headers),                                                           \
		  .secret = true },                                                                \
		{ 0,                                                                               \
		  "otlp-certificate",                                                              \
		  "FILE",                                                                          \
		  NULL,                                                                            \
		  "who may sign the collector's certificate (PEM), rather than the system's",      \
		  OPTION_STRING,                                                                   \
		  AT(collector.ca_file) },                                                         \
		{ 0,                                                                               \
		  "otlp-client-certificate",                                                       \
		  "FILE",                                                                          \
		  NULL,                                                                            \
		  "our own certificate (PEM)",                                                     \
		  OPTION_STRING,                                                                   \
		  AT(collector.cert_file) },                                                       \
		{ 0,                                                                               \
		  "otlp-client-key",                                                               \
		  "FILE",                                                                          \
		  NULL,                                                                            \
		  "and its key (PEM)",                                                             \
		  OPTION_STRING,                                                                   \
		  AT(collector.key_file) },                                                        \
		{ 0,                                                                               \
		  "otlp-compression",                                                              \
		  "gzip|none",                                                                     \
		  "gzip",                                                                          \
		  "of requests",                                                                   \
		  OPTION_CHOICE,                                                                   \
		  AT(collector.no_gzip) },                                                         \
		{ 0,                                                                               \
		  "otlp-base-endpoint",                                                            \
		  "URL",                                                                           \
		  NULL,                                                                            \
		  "",                                                                              \
		  OPTION_STRING,                                                                   \
		  AT(collector.base_endpoint),                                                     \
		  .endpoint = true,                                                                \
		  .hidden = true },                                                                \
		{ 0,                                                                               \
		  "otlp-profiles-endpoint",                                                        \
		  "URL",                                                                           \
		  NULL,                                                                            \
		  "",                                                                              \
		  OPTION_STRING,                                                                   \
		  AT(collector.profiles_endpoint),                                                 \
		  .endpoint = true,                                                                \
		  .hidden = true },                                                                \
		{ 0,	       "otlp-insecure",	       NULL,	      NULL, "",                    \
		  OPTION_FLAG, AT(collector.insecure), .hidden = true },                           \
	{                                                                                          \
		0, "otlp-server-name", "NAME", NULL,                                               \
			"that the collector's certificate has, if not the endpoint's host",        \
			OPTION_STRING, AT(collector.server_name)                                   \
	}

enum { COLLECTOR_PLACE_SIZE = ENDPOINT_HOST_SIZE + ENDPOINT_PATH_SIZE + 32 };

struct collector {
	bool is_set;
	struct net_options net; /* strings are the arguments' */
	char place[COLLECTOR_PLACE_SIZE];
};

/*
 * 0 and *ret, which collector_fini() takes back; -EINVAL, -ENOMEM. Logging; `config` says where the
 * arguments came from.
 */
int collector_read(const struct collector_arguments *args, const struct config *config,
		   struct collector *ret);
void collector_fini(struct collector *c);
