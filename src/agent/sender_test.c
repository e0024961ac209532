// SPDX-License-Identifier: Apache-2.0
/*
 * What waits for a collector that is away: what is kept, and what is counted as lost. The system's
 * resolver is this file's.
 */
#include "agent/sender.h"
#include "agent/spool.h"
#include "export/proto/gzip.h"
#include "test.h"
#include "util/clock.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SPOOL_BYTES = 64 << 10, SMALL = 5000, LARGE = 3 * SPOOL_BYTES };

static char folder[] = "/tmp/sonde_sender_test_XXXXXX";
static uint64_t nr_found, found_samples;

static bool resolver_hangs;
static sem_t resolver_was_asked;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	static struct sockaddr_in place;
	static struct addrinfo answer = { .ai_family = AF_INET,
					  .ai_socktype = SOCK_STREAM,
					  .ai_addr = (struct sockaddr *)&place,
					  .ai_addrlen = sizeof(place) };

	(void)hints;
	ASSERT_STR(host, "127.0.0.1");
	place.sin_family = AF_INET;
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	place.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	if (resolver_hangs) {
		sem_post(&resolver_was_asked);
		pause();
	}
	*ret = &answer;
	return 0;
}

void freeaddrinfo(struct addrinfo *addresses)
{
	(void)addresses;
}

/* Nobody listens there: port 1 is below those that are given to anybody. */
static struct sender_options to_nobody(void)
{
	return (struct sender_options){
		.collector = { .protocol = NET_GRPC,
			       .endpoint = { .host = "127.0.0.1", .port = 1, .path = "/" },
			       .content_type = "application/grpc",
			       .user_agent = "sonde" },
		.place = "nobody",
		.spool_dir = folder,
		.spool_bytes = SPOOL_BYTES,
		.queue_bytes = 1 << 20,
		.timeout_s = 10,
		.retry_s = 100,
		.keep_privileges = true,
	};
}

static void set_up(void)
{
	ASSERT(mkdtemp(folder));
	log_set_level(LOG_LEVEL_ERROR);
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ASSERT_EQ(system(command), 0);
}

static void put(struct sender *s, size_t size, uint64_t samples)
{
	struct report report = { .data = calloc(1, size), .size = size, .samples = samples };

	ASSERT_PTR_NONNULL(report.data);
	sender_put(s, &report);
}

static int on_found(void *ctx, const struct spool_file *file)
{
	(void)ctx;
	nr_found++;
	found_samples += file->samples;
	return 0;
}

static void look_into_spool(void)
{
	_cleanup_(spool_free_p) struct spool *s = NULL;
	struct spool_problems problems;

	ASSERT_OK(spool_open(folder, on_found, NULL, &problems, &s));
	ASSERT_EQ(problems.corrupt, 0);
}

TEST(what_no_spool_can_have_leaves_the_others_there)
{
	struct sender_options options = to_nobody();
	struct sender *s = NULL;
	struct sender_stats stats;

	set_up();
	ASSERT_OK(sender_open(&options, &s));
	put(s, SMALL, 1);
	put(s, SMALL, 2);
	put(s, LARGE, 100);
	put(s, SMALL, 3);
	ASSERT_EQ(sender_end(s, now_ns()), -ENOBUFS);
	stats = sender_stats(s);
	sender_free(s);
	look_into_spool();
	tear_down();
	ASSERT_EQ(nr_found, 3);
	ASSERT_EQ(found_samples, 1 + 2 + 3);
	ASSERT_EQ(stats.dropped_reports, 1);
	ASSERT_EQ(stats.dropped_samples, 100);
	ASSERT_EQ(stats.spool.failed_writes, 1);
}

/* One that waits in memory stands before them. */
TEST(the_oldest_in_a_full_spool_go)
{
	enum { MORE = SPOOL_BYTES / 8192 };
	struct sender_options options = to_nobody();
	struct sender *s = NULL;
	struct sender_stats stats;

	set_up();
	ASSERT_OK(sender_open(&options, &s));
	put(s, LARGE, 1000);
	for (uint64_t i = 0; i < MORE + 2; i++)
		put(s, SMALL, 1);
	ASSERT_EQ(sender_end(s, now_ns()), -ENOBUFS);
	stats = sender_stats(s);
	sender_free(s);
	look_into_spool();
	tear_down();
	ASSERT_EQ(nr_found, MORE);
	ASSERT_EQ(stats.dropped_reports, 3);
	ASSERT_EQ(stats.dropped_samples, 1000 + 2);
	ASSERT_EQ(stats.spool.bytes, SPOOL_BYTES);
}

/* Who reads what is said may take his time: nobody else waits for it. */
TEST(a_message_that_nobody_reads_holds_nobody)
{
	static const char text[4096];
	struct sender_options options = { .output_dir = folder,
					  .output_dir_bytes = 1 << 20,
					  .place = folder,
					  .queue_bytes = 1 << 20,
					  .keep_privileges = true };
	struct sender *s = NULL;
	int said[2], err = dup(STDERR_FILENO);

	set_up();
	signal(SIGPIPE, SIG_IGN);
	ASSERT_OK(pipe(said));
	ASSERT_OK(fcntl(said[1], F_SETFL, O_NONBLOCK));
	while (write(said[1], text, sizeof(text)) > 0)
		;
	ASSERT_OK(fcntl(said[1], F_SETFL, 0));
	ASSERT_OK(sender_open(&options, &s));
	log_set_level(LOG_LEVEL_DEBUG);
	ASSERT(dup2(said[1], STDERR_FILENO) >= 0);
	put(s, SMALL, 1);
	while (!sender_stats(s).reports)
		usleep(1000);
	put(s, SMALL, 2);
	/* The thread's word breaks off. */
	close(said[0]);
	ASSERT_OK(sender_end(s, now_ns()));
	ASSERT(dup2(err, STDERR_FILENO) >= 0);
	ASSERT_EQ(sender_stats(s).samples, 3);
	ASSERT(sender_free(s));
	tear_down();
}

static int count_spooled(void)
{
	_cleanup_(closedir_p) DIR *dir = opendir(folder);
	struct dirent *entry;
	int nr = 0;

	ASSERT_PTR_NONNULL(dir);
	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	return nr;
}

TEST(a_resolver_that_hangs_loses_nothing_that_the_spool_can_have)
{
	struct sender_options options = to_nobody();
	struct sender *s = NULL;
	struct sender_stats stats;

	set_up();
	resolver_hangs = true;
	ASSERT_OK(sem_init(&resolver_was_asked, 0, 0));
	ASSERT_OK(sender_open(&options, &s));
	put(s, LARGE, 100);
	ASSERT_OK(sem_wait(&resolver_was_asked));
	put(s, SMALL, 1);
	put(s, SMALL, 2);
	put(s, LARGE, 200);
	put(s, SMALL, 3);
	ASSERT_EQ(sender_end(s, now_ns()), -ENOBUFS);
	stats = sender_stats(s);
	ASSERT_EQ(count_spooled(), 3);
	ASSERT_EQ(stats.spool.files, 3);
	ASSERT_EQ(stats.waiting_reports, 3);
	ASSERT_EQ(stats.dropped_reports, 2);
	ASSERT_EQ(stats.dropped_samples, 300);
	/* The thread has all that it needs until the process ends. */
	ASSERT(!sender_free(s));
	tear_down();
}

#ifndef WITH_SANITIZERS /* which take all addresses for themselves */

enum { PLAIN = 48 << 20, MEMORY_LEFT = 24 << 20 };

static struct report make_packed(void)
{
	_cleanup_(gzip_writer_free_p) struct gzip_writer *w = NULL;
	_cleanup_free_ void *plain = calloc(1, PLAIN);
	struct report report = { .samples = 1 };
	FILE *out = open_memstream(&report.data, &report.size);

	ASSERT_PTR_NONNULL(plain);
	ASSERT_OK(gzip_writer_new(out, GZIP_QUICK, &w));
	ASSERT_OK(gzip_write(w, plain, PLAIN));
	ASSERT_OK(gzip_finish(w));
	ASSERT_OK(fclose(out));
	return report;
}

/* Of all addresses that this process has, and a few more. */
static void limit_memory(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages;
	struct rlimit limit;

	ASSERT_PTR_NONNULL(f);
	ASSERT_EQ(fscanf(f, "%lu", &pages), 1);
	ASSERT_OK(getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_LEFT;
	ASSERT_OK(setrlimit(RLIMIT_AS, &limit));
}

TEST(what_there_is_no_memory_for_now_is_sent_later)
{
	struct sender_options options = to_nobody();
	struct sender *s = NULL;
	struct sender_stats stats;
	struct report report;

	options.spool_dir = NULL;
	options.no_gzip = true;
	log_set_level(LOG_LEVEL_ERROR);
	ASSERT_OK(sender_open(&options, &s));
	report = make_packed();
	limit_memory();
	sender_put(s, &report);
	do {
		usleep(1000);
		stats = sender_stats(s);
	} while (!stats.retries && !stats.failed_reports);
	ASSERT_EQ(stats.failed_reports, 0);
	ASSERT_EQ(stats.waiting_reports, 1);
	sender_free(s);
}

#endif
