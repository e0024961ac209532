// SPDX-License-Identifier: Apache-2.0
#include "net/http_request.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum { METHOD_MAX = 32 };
enum {
	BAD_REQUEST = 400,
	NO_SUCH_METHOD = 405,
	PATH_TOO_LONG = 414,
	TOO_LARGE = 431,
	NO_SUCH_VERSION = 505
};

struct span {
	const char *at;
	size_t len;
};

static bool is(struct span s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.at, text, s.len);
}

/* What methods and names of headers are made of. */
static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.at[i]) &&
		    (!s.at[i] || !strchr("!#$%&'*+-.^_`|~", s.at[i])))
			return false;
	return s.len;
}

static bool is_method(struct span s)
{
	return is_token(s) && s.len <= METHOD_MAX;
}

/* Up to the next `c`, which goes too; what is left of *rest. False: there is none. */
static bool split(struct span *rest, char c, struct span *ret)
{
	const char *end = memchr(rest->at, c, rest->len);

	if (!end)
		return false;
	*ret = (struct span){ rest->at, (size_t)(end - rest->at) };
	rest->len -= ret->len + 1;
	rest->at = end + 1;
	return true;
}

/* The next line, without its end. A lone LF ends one too, as RFC 9112 (2.2) has it. */
static bool next_line(struct span *rest, struct span *ret)
{
	if (!split(rest, '\n', ret))
		return false;
	if (ret->len && ret->at[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

/* No control characters: CR and NUL above all, by which one can pass for two. */
static bool is_text(struct span s, bool tabs)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.at[i] < ' ' && !(tabs && s.at[i] == '\t')) || s.at[i] == 127)
			return false;
	return true;
}

static int parse_target(struct span target, struct http_request *ret)
{
	struct span authority;

	/* As clients ask proxies; servers take it, too (3.2.2). */
	if (target.len > 7 && !strncasecmp(target.at, "http://", 7)) {
		target.at += 7;
		target.len -= 7;
		if (!split(&target, '/', &authority))
			return BAD_REQUEST;
		target.at--;
		target.len++;
	}
	for (size_t i = 0; i < target.len; i++)
		if (target.at[i] == '?')
			target.len = i;
	if (!target.len || *target.at != '/')
		return BAD_REQUEST;
	if (target.len >= sizeof(ret->path))
		return PATH_TOO_LONG;
	memcpy(ret->path, target.at, target.len);
	ret->path[target.len] = '\0';
	return 0;
}

static int parse_version(struct span version, bool *ret_old)
{
	if (version.len != 8 || memcmp(version.at, "HTTP/", 5) ||
	    !isdigit((unsigned char)version.at[5]) || version.at[6] != '.' ||
	    !isdigit((unsigned char)version.at[7]))
		return BAD_REQUEST;
	*ret_old = version.at[7] == '0';
	return version.at[5] == '1' ? 0 : NO_SUCH_VERSION;
}

static int parse_request_line(struct span line, struct http_request *ret, bool *ret_old)
{
	struct span method, target;
	int r;

	if (!is_text(line, false) || !split(&line, ' ', &method) || !is_method(method) ||
	    !split(&line, ' ', &target))
		return BAD_REQUEST;
	r = parse_version(line, ret_old);
	if (r)
		return r;
	ret->head = is(method, "HEAD");
	if (!ret->head && !is(method, "GET"))
		return NO_SUCH_METHOD;
	return parse_target(target, ret);
}

static int parse_header(struct span line, unsigned *nr_hosts)
{
	struct span name;

	if (!is_text(line, true) || !split(&line, ':', &name) || !is_token(name))
		return BAD_REQUEST;
	*nr_hosts += name.len == 4 && !strncasecmp(name.at, "host", 4);
	return 0;
}

/* What is there of a first line that is not whole may be none of HTTP already. */
static bool may_become_request(struct span s)
{
	struct span method;

	if (s.len && s.at[s.len - 1] == '\r')
		s.len--;
	if (!is_text(s, false))
		return false;
	return split(&s, ' ', &method) ? is_method(method) : !s.len || is_method(s);
}

int http_request_parse(const char *data, size_t size, struct http_request *ret)
{
	struct span rest = { data, size }, line;
	struct http_request request = { 0 };
	unsigned nr_hosts = 0;
	bool old;
	int r;

	/* An empty line before it means nothing (2.2). */
	if (size && *data == '\r' && (size == 1 || data[1] == '\n')) {
		rest.at += size == 1 ? 1 : 2;
		rest.len -= size == 1 ? 1 : 2;
	}
	if (!next_line(&rest, &line)) {
		if (!may_become_request(rest))
			return BAD_REQUEST;
		return size < HTTP_REQUEST_MAX ? -EAGAIN : PATH_TOO_LONG;
	}
	r = parse_request_line(line, &request, &old);
	if (r)
		return r;
	while (next_line(&rest, &line)) {
		if (line.len) {
			r = parse_header(line, &nr_hosts);
			if (r)
				return r;
			continue;
		}
		if (nr_hosts > 1 || (!nr_hosts && !old))
			return BAD_REQUEST;
		*ret = request;
		return 0;
	}
	return size < HTTP_REQUEST_MAX ? -EAGAIN : TOO_LARGE;
}
