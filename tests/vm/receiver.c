// SPDX-License-Identifier: Apache-2.0
/*
 * A gRPC server for machines that have no language to write one in: `receiver DIR PORT`. It takes
 * one connection after the other, answers each call with an empty message and OK, and writes what
 * was sent, as it was packed, to DIR/NUMBER.otlp.gz.
 */
#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PREFIX = 5 /* whether it is packed, and a message's length */, BODY_MAX = 16 << 20 };

struct call {
	uint8_t *body;
	size_t size;
};

static const char *folder;
static unsigned number;

#define HEADER(name, value)                                                                        \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1,        \
			NGHTTP2_NV_FLAG_NONE                                                       \
	}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
		       void *fd)
{
	ssize_t n = send(*(int *)fd, data, size, MSG_NOSIGNAL);

	(void)session;
	(void)flags;
	return n < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : n;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *fd)
{
	(void)fd;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
						    calloc(1, sizeof(struct call)));
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t size, void *fd)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, stream);
	uint8_t *body;

	(void)flags;
	(void)fd;
	if (!call || call->size + size > BODY_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	body = realloc(call->body, call->size + size);
	if (!body)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	memcpy(body + call->size, data, size);
	call->body = body;
	call->size += size;
	return 0;
}

static ssize_t on_answer(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *fd)
{
	const nghttp2_nv status[] = { HEADER("grpc-status", "0") };

	(void)source;
	(void)fd;
	if (size < PREFIX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	memset(buf, 0, PREFIX);
	*flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	return nghttp2_submit_trailer(session, stream, status, 1) ? NGHTTP2_ERR_CALLBACK_FAILURE
								  : PREFIX;
}

/* Under its name when it is whole. */
static int keep(const struct call *call)
{
	char path[4096], part[4096 + 8];
	FILE *f;

	if (call->size <= PREFIX || call->body[0] != 1)
		return -1;
	snprintf(path, sizeof(path), "%s/%06u.otlp.gz", folder, number++);
	snprintf(part, sizeof(part), "%s.part", path);
	f = fopen(part, "we");
	if (!f)
		return -1;
	fwrite(call->body + PREFIX, 1, call->size - PREFIX, f);
	return fclose(f) || rename(part, path);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *fd)
{
	const nghttp2_nv headers[] = { HEADER(":status", "200"),
				       HEADER("content-type", "application/grpc") };
	const nghttp2_data_provider body = { .read_callback = on_answer };
	struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)fd;
	if (!call || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
	    (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
		return 0;
	if (keep(call))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &body);
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *fd)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, stream);

	(void)error;
	(void)fd;
	if (call)
		free(call->body);
	free(call);
	return 0;
}

static void serve(nghttp2_session_callbacks *callbacks, int fd)
{
	nghttp2_session *session;
	uint8_t buf[16384];
	ssize_t n = 1;

	if (nghttp2_session_server_new(&session, callbacks, &fd))
		return;
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
	while (n > 0 && !nghttp2_session_send(session)) {
		n = read(fd, buf, sizeof(buf));
		if (n > 0)
			n = nghttp2_session_mem_recv(session, buf, (size_t)n);
	}
	nghttp2_session_del(session);
}

int main(int argc, char **argv)
{
	struct sockaddr_in place = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	nghttp2_session_callbacks *callbacks;

	if (argc < 3 || nghttp2_session_callbacks_new(&callbacks))
		return 2;
	folder = argv[1];
	place.sin_port = htons((uint16_t)atoi(argv[2]));
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	if (bind(listener, (struct sockaddr *)&place, sizeof(place)) || listen(listener, 8))
		return perror("receiver"), 1;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		serve(callbacks, fd);
		close(fd);
	}
	return 1;
}
