// SPDX-License-Identifier: Apache-2.0
#include "cli/collector.h"

#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* opentelemetry-specification, protocol/exporter.md; opentelemetry-proto, docs/specification.md */
enum { GRPC_PORT = 4317, HTTP_PORT = 4318 };

#define HTTP_PATH  "/v1development/profiles"
#define GRPC_PATH  "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define USER_AGENT "OTel-OTLP-Exporter-Sonde/" SONDE_VERSION

#define OTEL "OTEL_EXPORTER_OTLP_"

/* Those of profiles go before those of all signals. */
#define BOTH(name, option, unit)                                                                   \
	{ OTEL name, option, unit },                                                               \
	{                                                                                          \
		OTEL "PROFILES_" name, option, unit                                                \
	}

const struct config_variable collector_variables[] = {
	{ OTEL "ENDPOINT", "otlp-base-endpoint", NULL },
	{ OTEL "PROFILES_ENDPOINT", "otlp-profiles-endpoint", NULL },
	BOTH("INSECURE", "otlp-insecure", NULL),
	BOTH("CERTIFICATE", "otlp-certificate", NULL),
	BOTH("CLIENT_CERTIFICATE", "otlp-client-certificate", NULL),
	BOTH("CLIENT_KEY", "otlp-client-key", NULL),
	BOTH("HEADERS", "otlp-headers", NULL),
	BOTH("COMPRESSION", "otlp-compression", NULL),
	BOTH("TIMEOUT", "otlp-timeout", "ms"),
	BOTH("PROTOCOL", "otlp-protocol", NULL),
	{ "OTEL_RESOURCE_ATTRIBUTES", "resource-attributes", NULL },
	{ "OTEL_SERVICE_NAME", "service-name", NULL },
	{ 0 },
};

static bool is_by_hand(const struct collector_arguments *args)
{
	return args->agent || args->endpoint;
}

/* Set by a variable that is for all programs which send OTLP. */
static bool is_for_all(const struct config *config, const char *option)
{
	return !strncmp(config_label(config, option).text, OTEL, sizeof(OTEL) - 1);
}

/* The one that says where, and what it says. */
static const char *endpoint_option(const struct collector_arguments *args, const char **ret_text)
{
	const struct {
		const char *option, *text;
	} said[] = {
		{ "collection-agent", args->agent },
		{ "otlp-endpoint", args->endpoint },
		{ "otlp-profiles-endpoint", args->profiles_endpoint },
		{ "otlp-base-endpoint", args->base_endpoint },
	};
	size_t i = 0;

	while (i + 1 < sizeof(said) / sizeof(*said) && !said[i].text)
		i++;
	*ret_text = said[i].text;
	return said[i].option;
}

static int read_endpoint(const struct collector_arguments *args, const struct config *config,
			 struct collector *c)
{
	const char *text, *option = endpoint_option(args, &text), *problem = NULL;

	if (args->agent && args->endpoint) {
		log_error("--collection-agent and --otlp-endpoint say the same thing, use one");
		return -EINVAL;
	}
	if (endpoint_parse(text, &c->net.endpoint, &problem)) {
		if (endpoint_has_secret(text))
			log_error("%s is no endpoint: %s", config_label(config, option).text,
				  problem);
		else
			log_error("%s cannot be '%s': %s", config_label(config, option).text, text,
				  problem);
		return -EINVAL;
	}
	return 0;
}

static int choose_protocol(const struct collector_arguments *args, const struct config *config,
			   struct collector *c)
{
	bool for_all = is_for_all(config, "otlp-protocol");

	c->net.protocol = c->net.endpoint.has_scheme ? NET_HTTP : NET_GRPC;
	/* The OpenTelemetry profiler's option means gRPC, whatever other programs have. */
	if (!args->protocol || (for_all && args->agent))
		return 0;
	if (!strcasecmp(args->protocol, "grpc")) {
		c->net.protocol = NET_GRPC;
	} else if (!strcasecmp(args->protocol, "http/protobuf")) {
		c->net.protocol = NET_HTTP;
	} else if (for_all) {
		log_warn("%s is left aside: '%s' is neither grpc nor http/protobuf",
			 config_label(config, "otlp-protocol").text, args->protocol);
	} else {
		log_error("%s is grpc or http/protobuf, not '%s'",
			  config_label(config, "otlp-protocol").text, args->protocol);
		return -EINVAL;
	}
	return 0;
}

/* What a variable said of HTTP. */
static int complete_path(const struct collector_arguments *args, struct endpoint *e)
{
	size_t len = strlen(e->path);

	if (!e->port)
		e->port = HTTP_PORT;
	if (args->profiles_endpoint) {
		if (!len)
			memcpy(e->path, "/", sizeof("/"));
		return 0;
	}
	if (len && e->path[len - 1] == '/')
		len--;
	if (len + sizeof(HTTP_PATH) > sizeof(e->path)) {
		log_error("the path of %sENDPOINT is too long", OTEL);
		return -EINVAL;
	}
	memcpy(e->path + len, HTTP_PATH, sizeof(HTTP_PATH));
	return 0;
}

static int complete_endpoint(const struct collector_arguments *args, const struct config *config,
			     struct collector *c)
{
	struct endpoint *e = &c->net.endpoint;
	const char *text, *option = endpoint_option(args, &text);

	if (e->has_scheme && e->tls && args->disable_tls) {
		log_error("--disable-tls does not go with https://");
		return -EINVAL;
	}
	if (!e->has_scheme)
		e->tls = !args->disable_tls && !args->insecure;
	if (c->net.protocol == NET_GRPC && *e->path && strcmp(e->path, "/")) {
		/* What stands behind '?' may be somebody's key. */
		log_error("%s: an endpoint of gRPC has no path ('%.*s')",
			  config_label(config, option).text, (int)strcspn(e->path, "?"), e->path);
		return -EINVAL;
	}
	if (c->net.protocol == NET_GRPC) {
		memcpy(e->path, GRPC_PATH, sizeof(GRPC_PATH));
		c->net.content_type = "application/grpc+proto";
	} else if (!is_by_hand(args)) {
		return complete_path(args, e);
	} else if (!*e->path)
		memcpy(e->path, HTTP_PATH, sizeof(HTTP_PATH));
	if (!e->port)
		e->port = c->net.protocol == NET_GRPC ? GRPC_PORT : HTTP_PORT;
	return 0;
}

/* A certificate that was said to this program. */
static bool has_certificate(const struct collector_arguments *args, const struct config *config)
{
	return (args->ca_file && !is_for_all(config, "otlp-certificate")) ||
	       (args->cert_file && !is_for_all(config, "otlp-client-certificate")) ||
	       args->server_name;
}

static int read_tls(const struct collector_arguments *args, const struct config *config,
		    struct collector *c)
{
	c->net.ca_file = args->ca_file;
	c->net.cert_file = args->cert_file;
	c->net.key_file = args->key_file;
	c->net.server_name = args->server_name;
	if (!args->cert_file != !args->key_file) {
		log_error("--otlp-client-certificate and --otlp-client-key go together");
		return -EINVAL;
	}
	if (!c->net.endpoint.tls && is_by_hand(args) && has_certificate(args, config)) {
		log_error("there are certificates, but no TLS: say https://, or take back "
			  "--disable-tls");
		return -EINVAL;
	}
	return 0;
}

static int read_headers(const struct collector_arguments *args, const struct config *config,
			struct collector *c)
{
	const char *problem = "there is no memory";
	int r;

	if (!args->headers)
		return 0;
	r = net_headers_parse(args->headers, &c->net.headers, &problem);
	/* Not what they are: there may be secrets in them. */
	if (r)
		log_error("%s is not NAME=VALUE,...: %s", config_label(config, "otlp-headers").text,
			  problem);
	return r;
}

int collector_read(const struct collector_arguments *args, const struct config *config,
		   struct collector *ret)
{
	_cleanup_(collector_fini) struct collector c = {
		.net = { .content_type = "application/x-protobuf", .user_agent = USER_AGENT },
	};
	char authority[ENDPOINT_HOST_SIZE + 16];
	bool http;
	int r = 0;

	c.is_set = is_by_hand(args) || args->profiles_endpoint || args->base_endpoint;
	if (c.is_set) {
		r = read_endpoint(args, config, &c);
		if (!r)
			r = choose_protocol(args, config, &c);
		if (!r)
			r = complete_endpoint(args, config, &c);
		if (!r)
			r = read_tls(args, config, &c);
		if (!r)
			r = read_headers(args, config, &c);
	}
	if (r)
		return r;
	http = c.net.protocol == NET_HTTP;
	endpoint_authority(&c.net.endpoint, authority, sizeof(authority));
	snprintf(c.place, sizeof(c.place), "%s%s%s%s", http ? "http" : "",
		 http && c.net.endpoint.tls ? "s" : "", http ? "://" : "", authority);
	/* A query may be somebody's key. */
	if (http)
		snprintf(c.place + strlen(c.place), sizeof(c.place) - strlen(c.place), "%.*s%s",
			 (int)strcspn(c.net.endpoint.path, "?"), c.net.endpoint.path,
			 strchr(c.net.endpoint.path, '?') ? "?..." : "");
	*ret = c;
	c.net.headers.text = NULL;
	return 0;
}

void collector_fini(struct collector *c)
{
	pairs_fini(&c->net.headers);
}
