// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP by libcurl, which is loaded when somebody wants it: linked with it, each start of the
 * program, and of each of its children, would take 7 ms and 6 MB more (30 shared libraries).
 */
#include "net/client_internal.h"

#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

#ifdef SONDE_WITH_CURL

/* Macros of that name would stand in the way of pointers to the functions. */
#define CURL_DISABLE_TYPECHECK
/* What is older than its successor is there for libraries that do not have that. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>

/* Of an answer, 100-continue and others before it included. */
enum { HTTP_HEADERS_MAX = 256 << 10 };

#define CURL_FUNCTIONS(X)                                                                          \
	X(global_init)                                                                             \
	X(easy_init)                                                                               \
	X(easy_cleanup)                                                                            \
	X(easy_setopt)                                                                             \
	X(easy_getinfo)                                                                            \
	X(easy_strerror)                                                                           \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(multi_init)                                                                              \
	X(multi_cleanup)                                                                           \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_perform)                                                                           \
	X(multi_poll)                                                                              \
	X(multi_info_read)

struct curl {
#define DECLARE(name) typeof(curl_##name) *name;
	CURL_FUNCTIONS(DECLARE)
#undef DECLARE
};

struct http {
	const struct net_options *options;
	struct curl curl;
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers, *packed_headers, *connect_to;
	char error[CURL_ERROR_SIZE];
	/* Of the answer that is read. */
	struct net_answer *answer;
	size_t header_bytes, body_bytes;
};

/* --- the library ------------------------------------------------------------------------------ */

static int load_curl(struct curl *curl)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		log_error("OTLP over HTTP needs libcurl, install it (libcurl4), or use gRPC: %s",
			  dlerror());
		return -ENOTSUP;
	}
#define LOAD(name) *(void **)&curl->name = dlsym(library, "curl_" #name);
	CURL_FUNCTIONS(LOAD)
#undef LOAD
#define CHECK(name) || !curl->name
	if (0 CURL_FUNCTIONS(CHECK)) {
		log_error("OTLP over HTTP needs a newer libcurl; or use gRPC");
		return -ENOTSUP;
	}
#undef CHECK
	/* It stays: its threads may outlive a call. */
	return curl->global_init(CURL_GLOBAL_DEFAULT) ? -EIO : 0;
}

/* --- an answer comes -------------------------------------------------------------------------- */

static size_t on_header(char *data, size_t size, size_t nr, void *ctx)
{
	struct http *h = ctx;

	(void)data;
	h->header_bytes += size * nr;
	return h->header_bytes > HTTP_HEADERS_MAX ? 0 : size * nr;
}

static size_t on_body(char *data, size_t size, size_t nr, void *ctx)
{
	struct http *h = ctx;
	struct net_answer *a = h->answer;
	size_t len = size * nr, room = sizeof(a->body) - a->body_size;

	h->body_bytes += len;
	memcpy(a->body + a->body_size, data, len < room ? len : room);
	a->body_size += len < room ? len : room;
	return h->body_bytes > NET_ANSWER_MAX ? 0 : len;
}

/* --- from start to end ------------------------------------------------------------------------ */

static int add(struct http *h, struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = h->curl.slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int add_header(struct http *h, struct curl_slist **list, const char *name, const char *value)
{
	_cleanup_free_ char *line = NULL;

	/* "name;" is how libcurl is told of one that is empty. */
	if (asprintf(&line, *value ? "%s: %s" : "%s;", name, value) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	return add(h, list, line);
}

static int make_headers(struct http *h, struct curl_slist **list)
{
	const struct net_options *o = h->options;
	int r = add_header(h, list, "Content-Type", o->content_type);

	/* Nothing is waited for before the body is sent. */
	if (!r)
		r = add(h, list, "Expect:");
	for (size_t i = 0; i < o->headers.nr && !r; i++)
		r = add_header(h, list, o->headers.items[i].name, o->headers.items[i].value);
	return r;
}

/* Name of the certificate and place of the server are two things to libcurl only by CONNECT_TO. */
static int make_url(struct http *h, char *url, size_t size)
{
	const struct net_options *o = h->options;
	struct endpoint named = o->endpoint;
	char authority[ENDPOINT_HOST_SIZE + 16], place[ENDPOINT_HOST_SIZE + 16], line[640];

	endpoint_authority(&o->endpoint, place, sizeof(place));
	if (o->server_name && o->endpoint.tls)
		snprintf(named.host, sizeof(named.host), "%s", o->server_name);
	endpoint_authority(&named, authority, sizeof(authority));
	snprintf(url, size, "%s://%s%s", named.tls ? "https" : "http", authority, named.path);
	if (!strcmp(authority, place))
		return 0;
	snprintf(line, sizeof(line), "::%s", place);
	return add(h, &h->connect_to, line);
}

#define SET(option, value)                                                                         \
	do {                                                                                       \
		CURLcode set_ = h->curl.easy_setopt(h->easy, (option), (value));                   \
		if (set_) {                                                                        \
			log_error("cannot set up OTLP over HTTP: %s",                              \
				  h->curl.easy_strerror(set_));                                    \
			return -EINVAL;                                                            \
		}                                                                                  \
	} while (0)

static int set_tls(struct http *h)
{
	const struct net_options *o = h->options;

	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (o->ca_file) {
		SET(CURLOPT_CAINFO, o->ca_file);
		SET(CURLOPT_CAPATH, NULL);
	}
	if (o->cert_file)
		SET(CURLOPT_SSLCERT, o->cert_file);
	if (o->key_file)
		SET(CURLOPT_SSLKEY, o->key_file);
	return 0;
}

/* Nothing but HTTP, wherever a server sends us. */
static int set_protocols(struct http *h)
{
	const CURLoption protocols_str = (CURLoption)(CURLOPTTYPE_OBJECTPOINT + 318); /* 7.85 */

	if (h->curl.easy_setopt(h->easy, protocols_str, "http,https"))
		SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	return 0;
}

/* A server of names that does not answer is not waited for at the end, if the library can do so. */
static void set_quick_exit(struct http *h)
{
	const CURLoption quick_exit = (CURLoption)(CURLOPTTYPE_LONG + 322); /* 7.87 */

	if (h->curl.easy_setopt(h->easy, quick_exit, 1L))
		log_debug("this libcurl may wait for a server of names at the end");
}

static int set_options(struct http *h, const char *url)
{
	int r = set_protocols(h);

	if (r)
		return r;
	set_quick_exit(h);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_USERAGENT, h->options->user_agent);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_ERRORBUFFER, h->error);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, h);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, h);
	if (h->connect_to)
		SET(CURLOPT_CONNECT_TO, h->connect_to);
	return set_tls(h);
}

static void http_close(void *transport)
{
	struct http *h = transport;

	if (!h)
		return;
	if (h->easy)
		h->curl.easy_cleanup(h->easy);
	if (h->multi)
		h->curl.multi_cleanup(h->multi);
	if (h->headers)
		h->curl.slist_free_all(h->headers);
	if (h->packed_headers)
		h->curl.slist_free_all(h->packed_headers);
	if (h->connect_to)
		h->curl.slist_free_all(h->connect_to);
	free(h);
}

DEFINE_CLEANUP(void *, http_close)

static int http_open(const struct net_options *options, void **ret)
{
	struct http *h = calloc(1, sizeof(*h));
	_cleanup_(http_close_p) void *guard = h;
	char url[1024];
	int r;

	if (!h)
		return log_err(-ENOMEM, "cannot set up OTLP over HTTP");
	h->options = options;
	r = load_curl(&h->curl);
	if (r)
		return r;
	h->easy = h->curl.easy_init();
	h->multi = h->curl.multi_init();
	if (!h->easy || !h->multi)
		return log_err(-ENOMEM, "cannot set up OTLP over HTTP");
	r = make_url(h, url, sizeof(url));
	if (!r)
		r = make_headers(h, &h->headers);
	if (!r)
		r = make_headers(h, &h->packed_headers);
	if (!r)
		r = add(h, &h->packed_headers, "Content-Encoding: gzip");
	if (r)
		return log_err(r, "cannot set up OTLP over HTTP");
	r = set_options(h, url);
	if (!r)
		*ret = TAKE_PTR(guard);
	return r;
}

/* --- a request -------------------------------------------------------------------------------- */

/* -ETIMEDOUT; else 0, and libcurl's code in *ret. */
static int transfer(struct http *h, uint64_t deadline_ns, CURLcode *ret)
{
	struct curl_waitfd wake = { .fd = h->options->wake_fd, .events = CURL_WAIT_POLLIN };
	int running = 1, left, messages;
	CURLMsg *message;

	for (;;) {
		if (h->curl.multi_perform(h->multi, &running)) {
			*ret = CURLE_FAILED_INIT;
			return 0;
		}
		if (!running)
			break;
		left = net_time_left(h->options, deadline_ns);
		if (!left)
			return -ETIMEDOUT;
		h->curl.multi_poll(h->multi, &wake, 1, left, NULL);
		net_drain_wake(h->options);
	}
	message = h->curl.multi_info_read(h->multi, &messages);
	*ret = message ? message->data.result : CURLE_FAILED_INIT;
	return 0;
}

/* A code that came counts, even if what should follow it did not. */
static void read_answer(struct http *h, int r, CURLcode code)
{
	struct net_answer *a = h->answer;
	long status = 0;
	curl_off_t retry_after = 0;

	h->curl.easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	h->curl.easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &retry_after);
	a->whole = !r && !code;
	if (status >= 200) {
		a->status = (unsigned)status;
		a->has_retry_after = retry_after > 0;
		a->retry_after_s = a->has_retry_after ? (uint64_t)retry_after : 0;
	} else if (r) {
		net_timed_out(h->options, a);
	} else {
		net_no_answer(a, -EIO, *h->error ? h->error : h->curl.easy_strerror(code));
	}
}

static void http_send(void *transport, const void *data, size_t size, bool gzip,
		      uint64_t deadline_ns, struct net_answer *ret)
{
	struct http *h = transport;
	CURLcode code = CURLE_OK;
	int r = 0;

	h->answer = ret;
	h->header_bytes = h->body_bytes = 0;
	h->error[0] = '\0';
	h->curl.easy_setopt(h->easy, CURLOPT_POSTFIELDS, data);
	h->curl.easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	h->curl.easy_setopt(h->easy, CURLOPT_HTTPHEADER, gzip ? h->packed_headers : h->headers);
	if (h->curl.multi_add_handle(h->multi, h->easy)) {
		net_no_answer(ret, -EIO, "libcurl does not begin");
		return;
	}
	r = transfer(h, deadline_ns, &code);
	read_answer(h, r, code);
	h->curl.multi_remove_handle(h->multi, h->easy);
}

#else

static int http_open(const struct net_options *options, void **ret)
{
	(void)options, (void)ret;
	log_error("this build has no OTLP over HTTP: it is static; use gRPC");
	return -ENOTSUP;
}

static void http_close(void *transport)
{
	(void)transport;
}

static void http_send(void *transport, const void *data, size_t size, bool gzip,
		      uint64_t deadline_ns, struct net_answer *ret)
{
	(void)transport, (void)data, (void)size, (void)gzip, (void)deadline_ns;
	net_no_answer(ret, -ENOTSUP, "no HTTP");
}

#endif

const struct transport_ops http_transport = { http_open, http_close, http_send };
