// SPDX-License-Identifier: Apache-2.0
/* Connections to a name with several addresses, of which some do not answer; TLS with a server that
 * has much to say beside data. */
#include "net/stream.h"

#include "test.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 4, SILENT_CLIENTS = 4, KEY_UPDATES = 200 };

#define ENOUGH_NS UINT64_C(6000000000)

/* What the resolver says of any name. */
static struct sockaddr_in places[ADDRESSES_MAX];
static struct addrinfo answers[ADDRESSES_MAX];
static size_t nr_places;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	(void)host, (void)port, (void)hints;
	for (size_t i = 0; i < nr_places; i++)
		answers[i] =
			(struct addrinfo){ .ai_family = AF_INET,
					   .ai_socktype = SOCK_STREAM,
					   .ai_addr = (struct sockaddr *)&places[i],
					   .ai_addrlen = sizeof(places[i]),
					   .ai_next = i + 1 < nr_places ? &answers[i + 1] : NULL };
	*ret = answers;
	return 0;
}

void freeaddrinfo(struct addrinfo *addresses)
{
	ASSERT(addresses == answers);
}

/* One more address, where somebody listens. */
static int add_place(void)
{
	struct sockaddr_in *place = &places[nr_places++];
	socklen_t size = sizeof(*place);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*place = (struct sockaddr_in){ .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	ASSERT_OK(bind(fd, (struct sockaddr *)place, size));
	ASSERT_OK(getsockname(fd, (struct sockaddr *)place, &size));
	ASSERT_OK(listen(fd, 0));
	return fd;
}

/* Whose queue is full of others: the kernel drops who comes next, as a firewall does. */
static void add_silent_place(void)
{
	add_place();
	for (int i = 0; i < SILENT_CLIENTS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (connect(fd, (struct sockaddr *)&places[nr_places - 1], sizeof(*places)))
			ASSERT_EQ(errno, EINPROGRESS);
	}
}

static _Atomic uint64_t stop_ns;
static struct net_options options = { .endpoint = { .host = "collector", .port = 4317 },
				      .stop_ns = &stop_ns };

static int open_stream_by(struct stream_tls *tls, uint64_t ns, struct stream **ret)
{
	char problem[NET_PROBLEM_SIZE] = "";

	options.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ASSERT(options.wake_fd >= 0);
	return stream_open(&options, tls, now_ns() + ns, ret, problem);
}

static int open_stream(uint64_t ns, struct stream **ret)
{
	return open_stream_by(NULL, ns, ret);
}

TEST(an_address_that_does_not_answer_leaves_time_for_the_next)
{
	struct stream *s = NULL;

	add_silent_place();
	add_place();
	ASSERT_OK(open_stream(ENOUGH_NS, &s));
	stream_close(s);
}

TEST(when_none_answers_the_time_is_over)
{
	struct stream *s = NULL;

	add_silent_place();
	add_silent_place();
	ASSERT_EQ(open_stream(ENOUGH_NS / 20, &s), -ETIMEDOUT);
}

/* --- TLS -------------------------------------------------------------------------------------- */

static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_EXTENSION *names =
		X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:collector");

	ASSERT(cert && names);
	ASSERT(X509_set_version(cert, 2));
	ASSERT(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1));
	ASSERT(X509_gmtime_adj(X509_getm_notBefore(cert), -3600));
	ASSERT(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	ASSERT(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
					  (const unsigned char *)"collector", -1, -1, 0));
	ASSERT(X509_set_issuer_name(cert, X509_get_subject_name(cert)));
	ASSERT(X509_add_ext(cert, names, -1) && X509_set_pubkey(cert, key));
	ASSERT(X509_sign(cert, key, EVP_sha256()));
	X509_EXTENSION_free(names);
	return cert;
}

/* Its certificate is in the file `path`. */
static SSL_CTX *make_server(const char *path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = make_certificate(key);
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	FILE *out = fopen(path, "we");

	ASSERT(ctx && out);
	ASSERT(PEM_write_X509(out, cert) && !fclose(out));
	ASSERT(SSL_CTX_use_certificate(ctx, cert) == 1);
	ASSERT(SSL_CTX_use_PrivateKey(ctx, key) == 1);
	X509_free(cert);
	EVP_PKEY_free(key);
	return ctx;
}

static int choose_h2(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
		     const unsigned char *offered, unsigned offered_len, void *ctx)
{
	(void)ssl, (void)offered_len, (void)ctx;
	*ret = offered + 1;
	*ret_len = *offered;
	return SSL_TLSEXT_ERR_OK;
}

struct server {
	SSL_CTX *ctx;
	int listening;
	int sent_fd; /* all that it says is sent */
};

/* New keys again and again, then one byte. */
static void *serve(void *arg)
{
	const struct server *s = arg;
	int fd = accept(s->listening, NULL, NULL);
	SSL *ssl = SSL_new(s->ctx);
	uint64_t one = 1;

	ASSERT(fd >= 0 && SSL_set_fd(ssl, fd) && SSL_accept(ssl) == 1);
	for (int i = 0; i < KEY_UPDATES; i++)
		ASSERT(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) &&
		       SSL_do_handshake(ssl) == 1);
	ASSERT(SSL_write(ssl, "x", 1) == 1);
	ASSERT(write(s->sent_fd, &one, sizeof(one)) == sizeof(one));
	SSL_free(ssl);
	close(fd);
	return NULL;
}

/* Else a server that goes on has the reader for ever: nobody looks at the clock meanwhile. */
TEST(messages_of_tls_itself_are_not_read_in_one_go)
{
	char path[] = "/tmp/stream_test_XXXXXX";
	int file = mkstemp(path), nr_again = 0;
	struct server server = { .ctx = make_server(path),
				 .listening = add_place(),
				 .sent_fd = eventfd(0, EFD_CLOEXEC) };
	struct stream_tls *tls = NULL;
	struct stream *s = NULL;
	pthread_t thread;
	uint64_t value;
	ssize_t n;
	char byte;

	SSL_CTX_set_alpn_select_cb(server.ctx, choose_h2, NULL);
	options.endpoint.tls = true;
	options.ca_file = path;
	ASSERT_OK(stream_tls_new(&options, &tls));
	ASSERT_OK(pthread_create(&thread, NULL, serve, &server));
	ASSERT_OK(open_stream_by(tls, 10 * ENOUGH_NS, &s));
	ASSERT(read(server.sent_fd, &value, sizeof(value)) == sizeof(value));
	while ((n = stream_read(s, &byte, 1)) == -EAGAIN) {
		nr_again++;
		ASSERT_EQ(stream_wait(s, false, now_ns() + ENOUGH_NS), 1);
	}
	ASSERT_EQ(n, 1);
	ASSERT(byte == 'x' && nr_again >= KEY_UPDATES);
	ASSERT_OK(pthread_join(thread, NULL));
	stream_close(s);
	stream_tls_free(tls);
	SSL_CTX_free(server.ctx);
	close(file);
	unlink(path);
}
