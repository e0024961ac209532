// SPDX-License-Identifier: Apache-2.0
/*
 * gRPC's unary calls over one HTTP/2 connection (nghttp2), which is kept and made again when it is
 * lost. The message is compressed by whoever made it. (grpc, doc/PROTOCOL-HTTP2.md.)
 */
#include "net/client_internal.h"

#include "net/grpc_answer.h"
#include "net/stream.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

enum {
	PREFIX_SIZE = 5,
	READ_SIZE = 16 << 10,
	OUR_HEADERS = 10,
	/* Whatever a server sends during one call: frames of all kinds. */
	RECEIVED_MAX = 2 * NET_ANSWER_MAX,
	ANSWER_HEADERS_MAX = 256 << 10,
	/* At most 8 digits of ms. */
	TIMEOUT_MAX_MS = 99999999,
};

struct grpc {
	const struct net_options *options;
	struct stream_tls *tls;
	struct stream *stream;
	nghttp2_session *session;
	bool going_away; /* the server wants no new calls on this connection */
	char authority[ENDPOINT_HOST_SIZE + 16];
	/* Bytes of the session that are not written yet: the session's own. */
	const uint8_t *out;
	size_t out_size;

	/* The call. */
	int32_t id;
	const uint8_t *data;
	uint8_t prefix[PREFIX_SIZE];
	size_t size, sent; /* with the prefix */
	struct grpc_answer reading;
	size_t header_bytes, received;
	bool closed, heard, too_much; /* heard: anything of an answer */
	bool over;		      /* on both sides */
};

/* --- what the session tells ------------------------------------------------------------------- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		     void *ctx)
{
	struct grpc *g = ctx;

	(void)session, (void)flags;
	if (frame->hd.stream_id != g->id)
		return 0;
	g->heard = true;
	g->header_bytes += name_size + value_size;
	if (g->header_bytes > ANSWER_HEADERS_MAX) {
		g->too_much = true;
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	grpc_answer_header(&g->reading, name, name_size, value, value_size,
			   frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t size, void *ctx)
{
	struct grpc *g = ctx;

	(void)session, (void)flags;
	if (id != g->id)
		return 0;
	g->heard = true;
	if (g->reading.data_bytes + size > NET_ANSWER_MAX) {
		g->too_much = true;
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	grpc_answer_data(&g->reading, data, size);
	return 0;
}

static void end_answer(struct grpc *g, uint32_t error)
{
	if (g->closed)
		return;
	g->closed = true;
	grpc_answer_end(&g->reading, error);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
	struct grpc *g = ctx;

	(void)session;
	if (id != g->id)
		return 0;
	g->over = true;
	end_answer(g, error);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct grpc *g = ctx;

	(void)session;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		g->going_away = true;
	/* A status counts, whether or not the server wants the rest of the call (RFC 9113, 8.1). */
	if (frame->hd.stream_id == g->id && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    g->reading.has_status)
		end_answer(g, 0);
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room,
			 uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
	struct grpc *g = ctx;
	size_t n = 0, left;

	(void)session, (void)id, (void)source;
	for (; n < room && g->sent < PREFIX_SIZE; n++)
		buf[n] = g->prefix[g->sent++];
	left = g->size - g->sent;
	if (left > room - n)
		left = room - n;
	if (left)
		memcpy(buf + n, g->data + (g->sent - PREFIX_SIZE), left);
	g->sent += left;
	if (g->sent == g->size)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)(n + left);
}

/* --- the connection --------------------------------------------------------------------------- */

static void disconnect(struct grpc *g)
{
	nghttp2_session_del(g->session);
	stream_close(g->stream);
	g->session = NULL;
	g->stream = NULL;
	g->out_size = 0;
	g->going_away = false;
}

static int make_session(struct grpc *g)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 64 << 10 },
	};
	nghttp2_session_callbacks *callbacks;
	int r;

	if (nghttp2_session_callbacks_new(&callbacks))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	r = nghttp2_session_client_new(&g->session, callbacks, g);
	nghttp2_session_callbacks_del(callbacks);
	if (!r)
		r = nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings,
					    sizeof(settings) / sizeof(*settings));
	return r ? -ENOMEM : 0;
}

static int connect_now(struct grpc *g, uint64_t deadline_ns, char problem[NET_PROBLEM_SIZE])
{
	int r = stream_open(g->options, g->tls, deadline_ns, &g->stream, problem);

	if (!r)
		r = make_session(g);
	if (r)
		disconnect(g);
	return r;
}

/* All that is there. 0; -EPIPE: the other side has ended it; -EIO; -EPROTO. */
static int read_some(struct grpc *g)
{
	uint8_t buf[READ_SIZE];
	ssize_t n;

	while ((n = stream_read(g->stream, buf, sizeof(buf))) > 0) {
		g->received += (size_t)n;
		if (g->received > RECEIVED_MAX)
			g->too_much = true;
		if (g->too_much || nghttp2_session_mem_recv(g->session, buf, (size_t)n) < 0)
			return -EPROTO;
		if (g->closed)
			return 0;
	}
	return n == -EAGAIN ? 0 : n ? -EIO : -EPIPE;
}

/* As much as is taken. */
static int write_some(struct grpc *g)
{
	ssize_t n;

	for (;;) {
		if (!g->out_size) {
			n = nghttp2_session_mem_send(g->session, &g->out);
			if (n < 0)
				return -EPROTO;
			if (!n)
				return 0;
			g->out_size = (size_t)n;
		}
		n = stream_write(g->stream, g->out, g->out_size);
		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return -EIO;
		g->out += n;
		g->out_size -= (size_t)n;
	}
}

/* What came since the last call: the server may have ended the connection. */
static void look_at_connection(struct grpc *g)
{
	if (!g->session)
		return;
	g->received = 0;
	if (read_some(g) || g->going_away || !nghttp2_session_check_request_allowed(g->session))
		disconnect(g);
}

/* --- a call ----------------------------------------------------------------------------------- */

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static int submit(struct grpc *g, bool gzip, uint64_t deadline_ns)
{
	const struct net_options *o = g->options;
	nghttp2_data_provider body = { .read_callback = read_body };
	nghttp2_nv headers[OUR_HEADERS + PAIRS_MAX];
	uint64_t now = now_ns(), left;
	char timeout[16];
	size_t nr = 0;

	left = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 1;
	snprintf(timeout, sizeof(timeout), "%um",
		 (unsigned)(left > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : left));
	headers[nr++] = header(":method", "POST");
	headers[nr++] = header(":scheme", o->endpoint.tls ? "https" : "http");
	headers[nr++] = header(":path", o->endpoint.path);
	headers[nr++] = header(":authority", g->authority);
	headers[nr++] = header("te", "trailers");
	headers[nr++] = header("grpc-timeout", timeout);
	headers[nr++] = header("content-type", o->content_type);
	if (gzip)
		headers[nr++] = header("grpc-encoding", "gzip");
	headers[nr++] = header("grpc-accept-encoding", "identity,gzip");
	headers[nr++] = header("user-agent", o->user_agent);
	for (size_t i = 0; i < o->headers.nr; i++)
		headers[nr++] = header(o->headers.items[i].name, o->headers.items[i].value);
	g->id = nghttp2_submit_request(g->session, NULL, headers, nr, &body, NULL);
	return g->id < 0 ? -EPROTO : 0;
}

/* Until it is answered. -ETIMEDOUT; -EPIPE, -EIO: the connection is lost; -EPROTO. */
static int call(struct grpc *g, bool gzip, uint64_t deadline_ns)
{
	int r = submit(g, gzip, deadline_ns);

	while (!r && !g->closed) {
		r = write_some(g);
		/* Who answers in the middle of it and hangs up has answered all the same. */
		if (r == -EIO)
			(void)read_some(g);
		else if (!r)
			r = read_some(g);
		if (r || g->closed)
			break;
		r = stream_wait(g->stream, g->out_size || nghttp2_session_want_write(g->session),
				deadline_ns);
		if (r > 0)
			r = 0;
	}
	if (!g->closed)
		return r;
	/* What the session has not sent of it is not there any more when it would. */
	if (r || !g->over)
		disconnect(g);
	return 0;
}

static void begin_call(struct grpc *g, const void *data, size_t size, bool gzip,
		       struct net_answer *answer)
{
	g->id = 0;
	g->data = data;
	g->prefix[0] = gzip;
	for (unsigned i = 0; i < 4; i++)
		g->prefix[1 + i] = (uint8_t)(size >> (24 - 8 * i));
	g->size = size + PREFIX_SIZE;
	g->sent = g->header_bytes = g->received = 0;
	g->closed = g->heard = g->too_much = g->over = false;
	g->reading = (struct grpc_answer){ .answer = answer };
}

static void tell_failure(struct grpc *g, int r, struct net_answer *answer)
{
	if (g->too_much) {
		/* It would be as much again. */
		answer->status = GRPC_RESOURCE_EXHAUSTED;
		snprintf(answer->problem, sizeof(answer->problem), "it answers without end");
	} else if (r == -ETIMEDOUT) {
		net_timed_out(g->options, answer);
	} else {
		answer->problem[0] = '\0';
		net_no_answer(answer, r,
			      r == -EPROTO ? "the server does not speak HTTP/2"
					   : "the connection was lost");
	}
}

static void grpc_send(void *transport, const void *data, size_t size, bool gzip,
		      uint64_t deadline_ns, struct net_answer *ret)
{
	struct grpc *g = transport;
	bool had_one;
	int r;

	if (size > UINT32_MAX) {
		ret->status = GRPC_RESOURCE_EXHAUSTED;
		return;
	}
	begin_call(g, data, size, gzip, ret);
	look_at_connection(g);
	do {
		had_one = g->session;
		begin_call(g, data, size, gzip, ret);
		r = had_one ? 0 : connect_now(g, deadline_ns, ret->problem);
		if (r) {
			if (r == -ETIMEDOUT)
				net_timed_out(g->options, ret);
			else
				net_no_answer(ret, r, "cannot connect");
			return;
		}
		r = call(g, gzip, deadline_ns);
		if (!r)
			return;
		disconnect(g);
		/* The server may have ended it just when we began. */
	} while (had_one && !g->heard && (r == -EPIPE || r == -EIO));
	tell_failure(g, r, ret);
}

/* --- from start to end ------------------------------------------------------------------------ */

static void grpc_close(void *transport)
{
	struct grpc *g = transport;

	disconnect(g);
	stream_tls_free(g->tls);
	free(g);
}

static int grpc_open(const struct net_options *options, void **ret)
{
	_cleanup_free_ struct grpc *g = calloc(1, sizeof(*g));
	struct endpoint named = options->endpoint;
	int r;

	if (!g)
		return log_err(-ENOMEM, "cannot set up OTLP over gRPC");
	g->options = options;
	if (options->server_name)
		snprintf(named.host, sizeof(named.host), "%s", options->server_name);
	endpoint_authority(&named, g->authority, sizeof(g->authority));
	r = stream_tls_new(options, &g->tls);
	if (r)
		return r;
	*ret = TAKE_PTR(g);
	return 0;
}

const struct transport_ops grpc_transport = { grpc_open, grpc_close, grpc_send };
