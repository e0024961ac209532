// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include "util/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int wrong(const char *words, const char **ret_problem)
{
	*ret_problem = words;
	return -EINVAL;
}

/* --- endpoints -------------------------------------------------------------------------------- */

static const char *parse_scheme(const char *text, struct endpoint *e)
{
	e->has_scheme = true;
	e->tls = !strncasecmp(text, "https://", 8);
	if (e->tls)
		return text + 8;
	if (!strncasecmp(text, "http://", 7))
		return text + 7;
	e->has_scheme = false;
	return text;
}

static bool is_host(const char *host, bool brackets)
{
	for (const char *s = host; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(brackets ? ":.%" : "-._", *s))
			return false;
	return *host && (!brackets || strchr(host, ':'));
}

static int parse_port(const char *text, size_t len, uint16_t *ret)
{
	unsigned port = 0;

	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]) || i >= 5)
			return -EINVAL;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (!port || port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

static bool is_path(const char *path)
{
	for (const char *s = path; *s; s++)
		if (*s <= ' ' || *s > '~' || *s == '#')
			return false;
	return !*path || *path == '/';
}

bool endpoint_has_secret(const char *text)
{
	return strpbrk(text, "@?");
}

int endpoint_parse(const char *text, struct endpoint *ret, const char **ret_problem)
{
	struct endpoint e = { 0 };
	const char *host = parse_scheme(text, &e), *end, *rest;
	size_t authority = strcspn(host, "/?#"), len;
	bool brackets = *host == '[';

	if (strstr(host, "://"))
		return wrong("only http:// and https:// are known", ret_problem);
	if (memchr(host, '@', authority))
		return wrong("a user's name does not belong there", ret_problem);
	host += brackets;
	authority -= brackets;
	end = memchr(host, brackets ? ']' : ':', authority);
	if (brackets && !end)
		return wrong("']' is missing", ret_problem);
	len = end ? (size_t)(end - host) : authority;
	if (len >= sizeof(e.host))
		return wrong("the host's name is too long", ret_problem);
	memcpy(e.host, host, len);
	if (!is_host(e.host, brackets))
		return wrong("there is no host's name", ret_problem);
	rest = host + len + brackets;
	if (*rest == ':' && parse_port(rest + 1, strcspn(rest + 1, "/?#"), &e.port))
		return wrong("the port is not from 1 to 65535", ret_problem);
	if (*rest == ':')
		rest += 1 + strcspn(rest + 1, "/?#");
	if (!is_path(rest))
		return wrong("what stands behind the host is no path", ret_problem);
	if (strlen(rest) >= sizeof(e.path))
		return wrong("the path is too long", ret_problem);
	memcpy(e.path, rest, strlen(rest) + 1);
	*ret = e;
	return 0;
}

void endpoint_authority(const struct endpoint *e, char *buf, size_t size)
{
	bool brackets = strchr(e->host, ':');

	snprintf(buf, size, "%s%s%s:%u", brackets ? "[" : "", e->host, brackets ? "]" : "",
		 e->port);
}

/* --- headers ---------------------------------------------------------------------------------- */

static bool is_ours(const char *name)
{
	static const char *const ours[] = { "connection",
					    "content-encoding",
					    "content-length",
					    "content-type",
					    "expect",
					    "host",
					    "te",
					    "transfer-encoding",
					    "keep-alive",
					    "upgrade",
					    "proxy-connection" };

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strcmp(name, ours[i]))
			return true;
	return !strncmp(name, "grpc-", 5);
}

int net_headers_parse(const char *text, struct pairs *ret, const char **ret_problem)
{
	struct pairs h;
	int r = pairs_parse(text, &h, ret_problem);

	if (r)
		return r;
	for (size_t i = 0; i < h.nr; i++) {
		/* As HTTP/2 wants it. */
		for (char *s = h.items[i].name; *s; s++)
			*s = (char)tolower((unsigned char)*s);
		if (is_ours(h.items[i].name)) {
			pairs_fini(&h);
			return wrong("it has a header that is not to be set", ret_problem);
		}
	}
	*ret = h;
	return 0;
}
