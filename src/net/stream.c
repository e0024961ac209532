// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include "net/client_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct stream_tls {
	SSL_CTX *ctx;
};

struct stream {
	const struct net_options *options;
	int fd;
	SSL *ssl;	  /* NULL: plain */
	bool wants_write; /* TLS must write before it can go on */
};

/* --- TLS -------------------------------------------------------------------------------------- */

/* Of the last error; the queue is empty then. */
static const char *ssl_words(void)
{
	const char *words = NULL;
	unsigned long code;

	while ((code = ERR_get_error()))
		if (!words)
			words = ERR_reason_error_string(code);
	return words ? words : "TLS failed";
}

static int cannot_use(const char *what, const char *path)
{
	log_error("cannot use the %s '%s': %s", what, path, ssl_words());
	return -EINVAL;
}

static int load_files(const struct net_options *o, SSL_CTX *ctx)
{
	if (!o->ca_file && !SSL_CTX_set_default_verify_paths(ctx))
		log_warn("there are no certificates to check a server's by: %s", ssl_words());
	if (o->ca_file && !SSL_CTX_load_verify_locations(ctx, o->ca_file, NULL))
		return cannot_use("certificate", o->ca_file);
	if (o->cert_file && SSL_CTX_use_certificate_chain_file(ctx, o->cert_file) != 1)
		return cannot_use("certificate", o->cert_file);
	if (o->key_file && SSL_CTX_use_PrivateKey_file(ctx, o->key_file, SSL_FILETYPE_PEM) != 1)
		return cannot_use("key", o->key_file);
	if (o->key_file && !SSL_CTX_check_private_key(ctx))
		return cannot_use("key", o->key_file);
	return 0;
}

int stream_tls_new(const struct net_options *options, struct stream_tls **ret)
{
	static const unsigned char h2[] = "\x02h2";
	struct stream_tls *tls;
	int r;

	if (!options->endpoint.tls) {
		*ret = NULL;
		return 0;
	}
	tls = calloc(1, sizeof(*tls));
	if (tls)
		tls->ctx = SSL_CTX_new(TLS_client_method());
	if (!tls || !tls->ctx || !SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION) ||
	    SSL_CTX_set_alpn_protos(tls->ctx, h2, sizeof(h2) - 1)) {
		stream_tls_free(tls);
		return log_err(-ENOMEM, "cannot set up TLS");
	}
	SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
	/* HTTP/2 forbids it (RFC 9113, 9.2.1), and a server could have us at it for ever. */
	SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(tls->ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* A server may send tickets and new keys without end: after each we look at the clock. */
	SSL_CTX_clear_mode(tls->ctx, SSL_MODE_AUTO_RETRY);
	r = load_files(options, tls->ctx);
	if (r) {
		stream_tls_free(tls);
		return r;
	}
	*ret = tls;
	return 0;
}

void stream_tls_free(struct stream_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->ctx);
	free(tls);
}

/* What the certificate must be for. */
static int set_name(const struct net_options *o, SSL *ssl)
{
	const char *name = o->server_name ? o->server_name : o->endpoint.host;
	unsigned char address[16];

	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) ? 0 : -EINVAL;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set_tlsext_host_name(ssl, name) && SSL_set1_host(ssl, name) ? 0 : -EINVAL;
}

/* What a call that did not do it says: -EAGAIN, 0 (the end), or -EIO. */
static ssize_t ssl_result(struct stream *s, int r)
{
	int error = SSL_get_error(s->ssl, r);

	s->wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	return error == SSL_ERROR_ZERO_RETURN ? 0 : -EIO;
}

static int say(char problem[NET_PROBLEM_SIZE], const char *what, const char *why)
{
	char words[2 * NET_PROBLEM_SIZE];

	snprintf(words, sizeof(words), "%s%s%.200s", what, *what ? ": " : "", why);
	net_clean_text(words, strlen(words), problem, NET_PROBLEM_SIZE);
	return -EIO;
}

static int check_alpn(struct stream *s, char problem[NET_PROBLEM_SIZE])
{
	const unsigned char *protocol;
	unsigned len;

	SSL_get0_alpn_selected(s->ssl, &protocol, &len);
	if (len == 2 && !memcmp(protocol, "h2", 2))
		return 0;
	return say(problem, "", "the server does not speak HTTP/2 over TLS");
}

static int shake_hands(struct stream *s, struct stream_tls *tls, uint64_t deadline_ns,
		       char problem[NET_PROBLEM_SIZE])
{
	long verified;
	int r;

	ERR_clear_error();
	s->ssl = SSL_new(tls->ctx);
	if (!s->ssl || !SSL_set_fd(s->ssl, s->fd) || set_name(s->options, s->ssl))
		return say(problem, "TLS", ssl_words());
	while ((r = SSL_connect(s->ssl)) != 1) {
		if (ssl_result(s, r) != -EAGAIN) {
			verified = SSL_get_verify_result(s->ssl);
			return say(problem, "TLS",
				   verified != X509_V_OK ? X509_verify_cert_error_string(verified)
							 : ssl_words());
		}
		r = net_wait(s->options, s->fd, s->wants_write ? POLLOUT : POLLIN, deadline_ns);
		if (r < 0)
			return r;
	}
	return check_alpn(s, problem);
}

/* --- TCP -------------------------------------------------------------------------------------- */

static int connect_to(const struct net_options *o, const struct addrinfo *address,
		      uint64_t deadline_ns, int *ret)
{
	_cleanup_close_ int fd =
		socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, error = 0, r = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (connect(fd, address->ai_addr, address->ai_addrlen)) {
		if (errno != EINPROGRESS)
			return -errno;
		r = net_wait(o, fd, POLLOUT, deadline_ns);
		if (r < 0)
			return r;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
			return -errno;
		if (error)
			return -error;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* What one address may take of the time, so that those behind it have their part, too. */
static uint64_t part_until(uint64_t deadline_ns, const struct addrinfo *address)
{
	uint64_t now = now_ns(), nr = 0;

	for (; address; address = address->ai_next)
		nr++;
	return now < deadline_ns ? now + (deadline_ns - now) / nr : deadline_ns;
}

static int connect_by_name(const struct net_options *o, uint64_t deadline_ns, int *ret,
			   char problem[NET_PROBLEM_SIZE])
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *addresses;
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", o->endpoint.port);
	r = getaddrinfo(o->endpoint.host, port, &hints, &addresses);
	if (r)
		return say(problem, o->endpoint.host, gai_strerror(r));
	r = -EHOSTUNREACH;
	for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
		r = connect_to(o, a, part_until(deadline_ns, a), ret);
		if (!r || !net_time_left(o, deadline_ns))
			break;
	}
	freeaddrinfo(addresses);
	if (r && r != -ETIMEDOUT)
		return say(problem, "cannot connect", strerror(-r));
	return r;
}

int stream_open(const struct net_options *options, struct stream_tls *tls, uint64_t deadline_ns,
		struct stream **ret, char problem[NET_PROBLEM_SIZE])
{
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return say(problem, "", "there is no memory");
	s->options = options;
	s->fd = -1;
	r = connect_by_name(options, deadline_ns, &s->fd, problem);
	if (!r && tls)
		r = shake_hands(s, tls, deadline_ns, problem);
	if (r) {
		stream_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void stream_close(struct stream *s)
{
	if (!s)
		return;
	SSL_free(s->ssl);
	close_p(&s->fd);
	free(s);
}

ssize_t stream_read(struct stream *s, void *buf, size_t size)
{
	ssize_t n;

	if (s->ssl) {
		ERR_clear_error();
		n = SSL_read(s->ssl, buf, size > INT_MAX ? INT_MAX : (int)size);
		return n > 0 ? n : ssl_result(s, (int)n);
	}
	n = recv(s->fd, buf, size, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EIO;
	return n;
}

ssize_t stream_write(struct stream *s, const void *data, size_t size)
{
	ssize_t n;

	if (s->ssl) {
		ERR_clear_error();
		n = SSL_write(s->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
		return n > 0 ? n : ssl_result(s, (int)n) == -EAGAIN ? -EAGAIN : -EIO;
	}
	n = send(s->fd, data, size, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EIO;
	return n;
}

int stream_wait(struct stream *s, bool writing, uint64_t deadline_ns)
{
	short events = (short)(POLLIN | (writing || s->wants_write ? POLLOUT : 0));

	if (s->ssl && SSL_pending(s->ssl))
		return 1;
	return net_wait(s->options, s->fd, events, deadline_ns);
}
