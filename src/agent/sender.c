// SPDX-License-Identifier: Apache-2.0
#include "agent/sender.h"

#include "agent/otlp_answer.h"
#include "agent/sandbox.h"
#include "agent/spool.h"
#include "export/proto/gzip.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/jitter.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

/* Between two messages of a kind. */
#define SAY_AGAIN_NS UINT64_C(60000000000)

enum {
	RETRY_DOUBLINGS = 5,
	RETRY_TIMES_MAX = 30,
	REPORT_OVERHEAD = 128,
	SPOOL_FILES_MAX = 20000, /* each is REPORT_OVERHEAD here, and an inode there */
	PLACE_SIZE = 512,
};

#define RETRY_JITTER 0.5

/* In memory, or (report.data is NULL then) in the spool. */
struct waiting {
	struct waiting *next;
	struct report report;
	struct spool_file file; /* number 0: not in the spool */
	bool held;		/* it is just being written into the spool: nobody drops it */
	bool unspoolable;	/* it is larger than the spool may be */
};

struct said {
	uint64_t ns; /* 0: not since it went well */
};

/* By what reports go out: options, and who speaks to the collector that they name. */
struct way {
	const struct sender_options *options;
	sender_release_fn *release; /* or NULL */
	struct net_options net;
	struct net_client *client; /* NULL: into the folder */
};

struct sender {
	/* Of the thread, which changes it under the lock; others read it under the lock. */
	struct way *way;
	struct net_answer *answer;
	struct output_dir *output;
	struct spool *spool; /* or NULL; the thread's own once it runs */
	pthread_t thread;
	bool has_thread;
	int wake_fd;
	_Atomic uint64_t stop_ns; /* 0: go on; else when the thread ends at the latest */

	/* The thread's own. */
	unsigned failures; /* in a row */
	uint64_t next_ns;  /* not before that */
	bool told_to_wait; /* by the server: else the end tries once more at once */
	bool hurries;
	struct said said_failure, said_refusal, said_partial, said_spool, said_large, said_corrupt,
		said_remove;

	pthread_mutex_t lock; /* of all below */
	struct way *next_way; /* or NULL */
	struct waiting *first, *last;
	uint64_t bytes;		    /* in memory, with what is on its way */
	struct waiting *on_its_way; /* out of the queue, and nothing has become of it yet */
	/* The thread is in the transport with it, and touches nothing else here before it is out.
	 */
	struct waiting *in_call;
	bool abandoned; /* then it is to touch nothing at all */
	struct sender_stats stats;
	struct said said_drop;
	int end_error; /* why something was lost since the end was asked for */
};

static bool may_say(struct said *said)
{
	uint64_t now = now_ns();

	if (said->ns && now < said->ns + SAY_AGAIN_NS)
		return false;
	said->ns = now;
	return true;
}

static void way_free(struct way *w)
{
	if (!w)
		return;
	net_client_free(w->client);
	if (w->release)
		w->release(w->options);
	free(w);
}

DEFINE_CLEANUP(struct way *, way_free)

/* Under the lock: the thread may change the way as soon as it is given back. */
static void copy_place(const struct sender *s, char buf[PLACE_SIZE])
{
	snprintf(buf, PLACE_SIZE, "%s", s->way->options->place);
}

/* --- the queue, under its lock ---------------------------------------------------------------- */

static uint64_t cost_of(const struct waiting *w)
{
	return w->report.size + REPORT_OVERHEAD;
}

/* `before`: NULL if it is the first. */
static void take_out(struct sender *s, struct waiting *before, struct waiting *w)
{
	if (before)
		before->next = w->next;
	else
		s->first = w->next;
	if (s->last == w)
		s->last = before;
}

static struct waiting *take_first(struct sender *s)
{
	struct waiting *w = s->first;

	if (!w)
		return NULL;
	take_out(s, NULL, w);
	return w;
}

/* It is in no list any more. */
static void forget(struct sender *s, struct waiting *w)
{
	if (w->file.number) {
		s->stats.spool.files--;
		s->stats.spool.bytes -= w->file.bytes;
	} else {
		s->bytes -= cost_of(w);
	}
	if (s->on_its_way == w)
		s->on_its_way = NULL;
	report_fini(&w->report);
	free(w);
}

static void count_dropped(struct sender *s, const struct report *report, int error)
{
	s->stats.dropped_reports++;
	s->stats.dropped_samples += report->samples;
	if (s->stop_ns)
		s->end_error = error;
}

static void drop(struct sender *s, struct waiting *w)
{
	count_dropped(s, &w->report, -ENOBUFS);
	forget(s, w);
}

/* The oldest that is only in memory; false: there is none. */
static bool drop_oldest(struct sender *s)
{
	struct waiting *before = NULL, *w = s->first;

	for (; w && (w->file.number || w->held); w = w->next)
		before = w;
	if (!w)
		return false;
	take_out(s, before, w);
	drop(s, w);
	return true;
}

static bool drop_what_is_too_much(struct sender *s)
{
	bool dropped = false;

	while (s->bytes > s->way->options->queue_bytes && drop_oldest(s))
		dropped = true;
	return dropped;
}

/* What is to be said when the lock is given back: who reads it may take his time. */
struct drop_message {
	bool due;
	uint64_t reports, samples;
	char place[PLACE_SIZE];
};

static void note_dropped(struct sender *s, struct drop_message *ret)
{
	ret->due = may_say(&s->said_drop);
	ret->reports = s->stats.dropped_reports;
	ret->samples = s->stats.dropped_samples;
	copy_place(s, ret->place);
}

static void say_dropped(const struct drop_message *m)
{
	if (m->due)
		log_warn("the queue to %s is full: %" PRIu64
			 " reports dropped so far, with %" PRIu64 " samples",
			 m->place, m->reports, m->samples);
}

static void wake(struct sender *s)
{
	uint64_t one = 1;

	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		log_debug("the sender is awake already");
}

void sender_put(struct sender *s, struct report *report)
{
	struct waiting *w = calloc(1, sizeof(*w));
	struct drop_message message = { 0 };
	bool dropped;

	pthread_mutex_lock(&s->lock);
	dropped = !w || report->size + REPORT_OVERHEAD > s->way->options->queue_bytes;
	if (dropped) {
		count_dropped(s, report, w ? -EFBIG : -ENOMEM);
		report_fini(report);
		free(w);
	} else {
		w->report = *report;
		*report = (struct report){ 0 };
		s->bytes += cost_of(w);
		dropped = drop_what_is_too_much(s);
		if (s->last)
			s->last->next = w;
		else
			s->first = w;
		s->last = w;
	}
	if (dropped)
		note_dropped(s, &message);
	pthread_mutex_unlock(&s->lock);
	wake(s);
	say_dropped(&message);
}

struct sender_stats sender_stats(struct sender *s)
{
	struct sender_stats stats;

	pthread_mutex_lock(&s->lock);
	stats = s->stats;
	stats.waiting_bytes = s->bytes + s->stats.spool.bytes;
	stats.waiting_reports = s->on_its_way != NULL;
	for (const struct waiting *w = s->first; w; w = w->next)
		stats.waiting_reports++;
	pthread_mutex_unlock(&s->lock);
	return stats;
}

/* --- what has become of a report -------------------------------------------------------------- */

/* What stays there although we are done with it is sent again by the next agent. */
static void remove_from_spool(struct sender *s, const struct waiting *w)
{
	int r = spool_remove(s->spool, w->file.number);

	if (!r)
		return;
	pthread_mutex_lock(&s->lock);
	s->stats.spool.failed_removes++;
	pthread_mutex_unlock(&s->lock);
	if (may_say(&s->said_remove))
		log_err(r, "cannot remove a report from the spool '%s'; it will be sent again",
			s->way->options->spool_dir);
}

/* First of all: an agent that is killed after this does not send it again. */
static void leave_spool(struct sender *s, const struct waiting *w)
{
	if (w->file.number)
		remove_from_spool(s, w);
}

static void on_delivered(struct sender *s, struct waiting *w)
{
	uint64_t samples = w->report.samples, number;
	size_t size = w->report.size;

	leave_spool(s, w);
	pthread_mutex_lock(&s->lock);
	number = ++s->stats.reports;
	s->stats.bytes += size;
	s->stats.samples += samples;
	s->said_drop.ns = 0;
	forget(s, w);
	pthread_mutex_unlock(&s->lock);
	log_debug("report %" PRIu64 ": %" PRIu64 " samples, %zu bytes", number, samples, size);
}

static void on_lost(struct sender *s, struct waiting *w, int error)
{
	leave_spool(s, w);
	pthread_mutex_lock(&s->lock);
	s->stats.failed_reports++;
	s->stats.failed_samples += w->report.samples;
	if (s->stop_ns)
		s->end_error = error;
	forget(s, w);
	pthread_mutex_unlock(&s->lock);
}

/* --- the spool -------------------------------------------------------------------------------- */

static int add_found(void *ctx, const struct spool_file *file)
{
	struct waiting *w = calloc(1, sizeof(*w));
	struct sender *s = ctx;

	if (!w)
		return -ENOMEM;
	w->file = *file;
	w->report.samples = file->samples;
	if (s->last)
		s->last->next = w;
	else
		s->first = w;
	s->last = w;
	s->stats.spool.files++;
	s->stats.spool.bytes += file->bytes;
	s->stats.spool.found_reports++;
	s->stats.spool.found_samples += file->samples;
	return 0;
}

/* The oldest in the spool, if there is no room for so much more. */
static struct waiting *take_too_much(struct sender *s, uint64_t bytes, uint64_t files)
{
	const struct sender_spool_stats *stats = &s->stats.spool;
	struct waiting *before = NULL, *w = NULL;

	pthread_mutex_lock(&s->lock);
	if (stats->bytes + bytes > s->way->options->spool_bytes ||
	    stats->files + files > SPOOL_FILES_MAX) {
		for (w = s->first; w && !w->file.number; w = w->next)
			before = w;
		if (w)
			take_out(s, before, w);
	}
	pthread_mutex_unlock(&s->lock);
	return w;
}

static void make_room_in_spool(struct sender *s, uint64_t bytes, uint64_t files)
{
	struct drop_message message;
	struct waiting *w;

	while ((w = take_too_much(s, bytes, files))) {
		remove_from_spool(s, w);
		pthread_mutex_lock(&s->lock);
		drop(s, w);
		note_dropped(s, &message);
		pthread_mutex_unlock(&s->lock);
		say_dropped(&message);
	}
}

static struct waiting *hold_unspooled(struct sender *s)
{
	struct waiting *w;

	pthread_mutex_lock(&s->lock);
	for (w = s->first; w && (w->file.number || w->unspoolable); w = w->next)
		;
	if (w)
		w->held = true;
	pthread_mutex_unlock(&s->lock);
	return w;
}

/* *w is in the queue and held. */
static int put_into_spool(struct sender *s, struct waiting *w)
{
	struct drop_message message = { 0 };
	struct spool_file file;
	int r = -EFBIG;

	/* Else all the others would go, and it had no room all the same. */
	if (spool_bytes(w->report.size) <= s->way->options->spool_bytes) {
		make_room_in_spool(s, spool_bytes(w->report.size), 1);
		r = spool_put(s->spool, w->report.data, w->report.size, w->report.samples, &file);
	}
	pthread_mutex_lock(&s->lock);
	w->held = false;
	w->unspoolable = r == -EFBIG;
	if (r) {
		s->stats.spool.failed_writes++;
		if (drop_what_is_too_much(s))
			note_dropped(s, &message);
	} else {
		s->bytes -= cost_of(w);
		w->file = file;
		free(w->report.data);
		w->report.data = NULL;
		s->stats.spool.files++;
		s->stats.spool.bytes += file.bytes;
	}
	pthread_mutex_unlock(&s->lock);
	say_dropped(&message);
	return r;
}

/*
 * All that is only in memory; what cannot be written stays there, and is tried again, unless it is
 * too large.
 */
static void spool_all(struct sender *s)
{
	const char *path = s->way->options->spool_dir;
	struct waiting *w;
	int r;

	while (s->spool && (w = hold_unspooled(s))) {
		r = put_into_spool(s, w);
		if (r == -EFBIG) {
			if (may_say(&s->said_large))
				log_warn("a report is larger than the spool '%s' may be; it waits "
					 "in memory",
					 path);
			continue;
		}
		if (r && may_say(&s->said_spool))
			log_err(r, "cannot write into the spool '%s', reports wait in memory",
				path);
		if (r)
			return;
		if (s->said_spool.ns)
			log_info("reports can be written into the spool '%s' again", path);
		s->said_spool.ns = 0;
	}
}

/* --- into the folder -------------------------------------------------------------------------- */

static void write_report(struct sender *s, struct waiting *w)
{
	int r = output_dir_put(s->output, w->report.data, w->report.size);
	struct output_dir_stats output = output_dir_stats(s->output);

	pthread_mutex_lock(&s->lock);
	s->stats.output = output;
	pthread_mutex_unlock(&s->lock);
	if (!r) {
		if (s->said_failure.ns)
			log_info("reports can be written into '%s' again", s->way->options->place);
		s->said_failure.ns = 0;
		on_delivered(s, w);
		return;
	}
	on_lost(s, w, r);
	if (may_say(&s->said_failure))
		log_err(r,
			"cannot write a report into '%s': %" PRIu64 " lost so far, with %" PRIu64
			" samples",
			s->way->options->place, s->stats.failed_reports, s->stats.failed_samples);
}

/* --- to the collector ------------------------------------------------------------------------- */

/* Exponential back-off with jitter, unless the server says it better. */
static uint64_t pause_ns(const struct sender *s, const struct otlp_answer *a)
{
	unsigned doublings = s->failures < RETRY_DOUBLINGS ? s->failures : RETRY_DOUBLINGS;
	double times = (double)(1u << doublings);

	if (times > RETRY_TIMES_MAX)
		times = RETRY_TIMES_MAX;
	times *= s->way->options->retry_s * jitter(RETRY_JITTER) * 1e9;
	/* Not all come at once then. */
	if (a->has_wait)
		return a->wait_ns + (uint64_t)(s->way->options->retry_s * jitter(1) * 1e8);
	return (uint64_t)times;
}

static const char *status_name(const struct sender *s)
{
	return s->way->net.protocol == NET_GRPC ? "gRPC status" : "HTTP";
}

static void again_later(struct sender *s, struct waiting *w, const struct otlp_answer *a)
{
	struct drop_message message = { 0 };
	char status[32] = "";

	s->next_ns = now_ns() + pause_ns(s, a);
	s->told_to_wait = a->has_wait;
	s->failures++;
	if (w->file.number) {
		free(w->report.data);
		w->report.data = NULL;
	}
	pthread_mutex_lock(&s->lock);
	s->stats.retries++;
	s->on_its_way = NULL;
	w->next = s->first;
	s->first = w;
	if (!s->last)
		s->last = w;
	/* What came meanwhile may have filled the queue. */
	if (drop_what_is_too_much(s))
		note_dropped(s, &message);
	pthread_mutex_unlock(&s->lock);
	say_dropped(&message);
	if (!s->answer->error)
		snprintf(status, sizeof(status), "%s %u%s", status_name(s), s->answer->status,
			 *a->words ? ": " : "");
	if (may_say(&s->said_failure))
		log_warn("cannot deliver to %s, reports wait: %s%s", s->way->options->place, status,
			 a->words);
	else
		log_debug("cannot deliver to %s: %s%s", s->way->options->place, status, a->words);
}

/* It is in the spool, and no report any more. */
static void on_corrupt(struct sender *s, struct waiting *w, int error)
{
	if (may_say(&s->said_corrupt))
		log_err(error, "a report of %" PRIu64 " samples in the spool '%s' is lost",
			w->report.samples, s->way->options->spool_dir);
	pthread_mutex_lock(&s->lock);
	s->stats.spool.corrupt++;
	pthread_mutex_unlock(&s->lock);
	on_lost(s, w, error);
}

/* Its data, if it is in the spool. False: it is not to be sent now, and has been taken care of. */
static bool fetch(struct sender *s, struct waiting *w)
{
	struct otlp_answer a = { .words = "the spool cannot be read" };
	int r;

	if (!w->file.number)
		return true;
	r = spool_get(s->spool, w->file.number, &w->report.data, &w->report.size);
	if (!r)
		return true;
	if (r == -EBADMSG || r == -EIO) {
		on_corrupt(s, w, r);
	} else {
		s->answer->error = r;
		again_later(s, w, &a);
	}
	return false;
}

static void on_answer(struct sender *s, struct waiting *w, const struct otlp_answer *a)
{
	const char *place = s->way->options->place, *colon = *a->words ? ": " : "";

	if (a->verdict == OTLP_AGAIN) {
		again_later(s, w, a);
		return;
	}
	if (s->failures && s->said_failure.ns)
		log_info("%s answers again", place);
	s->failures = 0;
	s->next_ns = 0;
	s->told_to_wait = false;
	s->said_failure.ns = 0;
	if (a->verdict == OTLP_REFUSED) {
		on_lost(s, w, -EREMOTEIO);
		if (may_say(&s->said_refusal))
			log_error("%s refused a report (%s %u%s%s): %" PRIu64
				  " lost so far, with %" PRIu64 " samples",
				  place, status_name(s), s->answer->status, colon, a->words,
				  s->stats.failed_reports, s->stats.failed_samples);
		return;
	}
	if (a->rejected || *a->words) {
		pthread_mutex_lock(&s->lock);
		s->stats.rejected_profiles += a->rejected;
		pthread_mutex_unlock(&s->lock);
		if (may_say(&s->said_partial))
			log_warn("%s took a report and rejected %" PRIu64 " profiles of it%s%s",
				 place, a->rejected, colon, a->words);
	}
	on_delivered(s, w);
}

/* False: it took so long that the end has not waited for it. */
static bool call(struct sender *s, struct waiting *w, const void *data, size_t size, bool gzip)
{
	uint64_t deadline_ns = now_ns() + (uint64_t)(s->way->options->timeout_s * 1e9);
	bool abandoned;

	pthread_mutex_lock(&s->lock);
	s->in_call = w;
	pthread_mutex_unlock(&s->lock);
	net_client_send(s->way->client, data, size, gzip, deadline_ns, s->answer);
	pthread_mutex_lock(&s->lock);
	s->in_call = NULL;
	abandoned = s->abandoned;
	pthread_mutex_unlock(&s->lock);
	return !abandoned;
}

/* False: the thread is to end. */
static bool send_report(struct sender *s, struct waiting *w)
{
	static const struct otlp_answer no_memory = { .words = "there is no memory" };
	_cleanup_free_ uint8_t *plain = NULL;
	struct otlp_answer a;
	size_t size;
	bool went_on;
	int r = 0;

	if (s->way->options->no_gzip)
		r = gzip_read(w->report.data, w->report.size, &plain, &size);
	if (r == -ENOMEM) {
		/* It is whole, and there may be more memory then. */
		s->answer->error = r;
		again_later(s, w, &no_memory);
		return true;
	}
	if (r) {
		log_err(r, "cannot unpack a report");
		on_lost(s, w, r);
		return true;
	}
	went_on = plain ? call(s, w, plain, size, false)
			: call(s, w, w->report.data, w->report.size, true);
	if (!went_on) {
		/* The end has a copy of its own. */
		report_fini(&w->report);
		free(w);
		return false;
	}
	otlp_answer_read(s->way->net.protocol, s->answer, &a);
	on_answer(s, w, &a);
	return true;
}

/* --- the thread ------------------------------------------------------------------------------- */

static struct waiting *take(struct sender *s)
{
	struct waiting *w;

	pthread_mutex_lock(&s->lock);
	w = take_first(s);
	s->on_its_way = w;
	if (w)
		w->next = NULL;
	pthread_mutex_unlock(&s->lock);
	return w;
}

static bool is_empty(struct sender *s)
{
	bool empty;

	pthread_mutex_lock(&s->lock);
	empty = !s->first;
	pthread_mutex_unlock(&s->lock);
	return empty;
}

/* Until something is to be done, or it may have changed. False: the end. */
static bool wait_for_work(struct sender *s)
{
	struct pollfd fd = { .fd = s->wake_fd, .events = POLLIN };
	uint64_t stop = atomic_load(&s->stop_ns), now = now_ns(), until, value;
	bool empty = is_empty(s);
	int ms = -1;

	if (stop && !s->hurries) {
		s->hurries = true;
		s->failures = 0;
		if (!s->told_to_wait)
			s->next_ns = 0;
	}
	if (stop && (empty || now >= stop || s->next_ns >= stop))
		return false;
	/* What waits is safe. */
	if (stop && s->spool && s->failures)
		return false;
	if (!empty && now >= s->next_ns)
		return true;
	if (!empty) {
		until = (s->next_ns - now) / 1000000 + 1;
		ms = until > 60000 ? 60000 : (int)until;
	}
	if (poll(&fd, 1, ms) > 0 && read(s->wake_fd, &value, sizeof(value)) < 0)
		log_debug("nobody woke the sender");
	return true;
}

/* Another collector knows nothing of the failures of the one before. */
static void change_way(struct sender *s)
{
	struct way *old = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->next_way) {
		old = s->way;
		s->way = TAKE_PTR(s->next_way);
	}
	pthread_mutex_unlock(&s->lock);
	if (!old)
		return;
	way_free(old);
	s->failures = 0;
	s->next_ns = 0;
	s->told_to_wait = false;
	s->said_failure.ns = s->said_refusal.ns = s->said_partial.ns = 0;
}

static void *sender_main(void *ctx)
{
	struct sender *s = ctx;
	struct waiting *w;

	if (!s->way->options->keep_privileges && sandbox_drop_capabilities(SANDBOX_SENDER))
		log_debug("the sender keeps its capabilities");
	while (change_way(s), wait_for_work(s)) {
		spool_all(s);
		if (now_ns() < s->next_ns)
			continue;
		w = take(s);
		if (w && s->output)
			write_report(s, w);
		else if (w && fetch(s, w) && !send_report(s, w))
			return NULL;
	}
	spool_all(s);
	return NULL;
}

/* --- from start to end ------------------------------------------------------------------------ */

static int open_spool(struct sender *s)
{
	struct sender_spool_stats *stats = &s->stats.spool;
	struct spool_problems problems;
	int r = spool_open(s->way->options->spool_dir, add_found, s, &problems, &s->spool);

	if (r)
		return r;
	stats->corrupt = problems.corrupt;
	if (problems.unread)
		log_warn("%" PRIu64 " files in the spool '%s' cannot be read, and are left there",
			 problems.unread, s->way->options->spool_dir);
	if (stats->corrupt)
		log_warn("%" PRIu64 " files in the spool '%s' were no reports, and are removed",
			 stats->corrupt, s->way->options->spool_dir);
	if (stats->found_reports)
		log_info("%" PRIu64 " reports with %" PRIu64
			 " samples are in the spool '%s' from before",
			 stats->found_reports, stats->found_samples, s->way->options->spool_dir);
	make_room_in_spool(s, 0, 0);
	stats->is_there = true;
	return 0;
}

static int way_open(struct sender *s, const struct sender_options *options, struct way **ret)
{
	_cleanup_(way_free_p) struct way *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return log_err(-ENOMEM, "cannot set up the sender of reports");
	w->options = options;
	w->net = options->collector;
	w->net.wake_fd = s->wake_fd;
	w->net.stop_ns = &s->stop_ns;
	r = options->output_dir ? 0 : net_client_new(&w->net, &w->client);
	if (r)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

int sender_change(struct sender *s, const struct sender_options *options,
		  sender_release_fn *release)
{
	struct way *next = NULL, *unused;
	int r = way_open(s, options, &next);

	if (r)
		return r;
	next->release = release;
	pthread_mutex_lock(&s->lock);
	unused = s->next_way;
	s->next_way = next;
	pthread_mutex_unlock(&s->lock);
	way_free(unused);
	wake(s);
	return 0;
}

static int open_place(struct sender *s, const struct sender_options *o)
{
	int r;

	s->answer = calloc(1, sizeof(*s->answer));
	if (!s->answer)
		return log_err(-ENOMEM, "cannot set up the sender of reports");
	if (o->output_dir) {
		r = output_dir_open(o->output_dir, o->output_format, o->output_dir_bytes,
				    &s->output);
		if (r)
			return r;
		s->stats.output = output_dir_stats(s->output);
	}
	r = way_open(s, o, &s->way);
	return !r && o->spool_dir ? open_spool(s) : r;
}

int sender_open(const struct sender_options *options, struct sender **ret)
{
	_cleanup_(sender_free_p) struct sender *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return log_err(-ENOMEM, "cannot set up the sender of reports");
	pthread_mutex_init(&s->lock, NULL);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return log_err(-errno, "cannot set up the sender of reports");
	r = open_place(s, options);
	if (r)
		return r;
	r = pthread_create(&s->thread, NULL, sender_main, s);
	if (r)
		return log_err(-r, "cannot start the sender of reports");
	s->has_thread = true;
	*ret = TAKE_PTR(s);
	return 0;
}

/* False: it hangs in something that cannot be interrupted. */
static bool join(struct sender *s, uint64_t until)
{
	struct timespec at = { (time_t)(until / 1000000000), (long)(until % 1000000000) };

	if (s->has_thread && pthread_clockjoin_np(s->thread, NULL, CLOCK_MONOTONIC, &at))
		return false;
	s->has_thread = false;
	return true;
}

/* What is being sent, back into the queue: what the thread has of it stays the thread's. */
static void take_back(struct sender *s)
{
	const struct waiting *w = s->in_call;
	struct waiting *copy = calloc(1, sizeof(*copy));

	s->on_its_way = NULL;
	if (copy && !w->file.number)
		copy->report.data = malloc(w->report.size);
	if (!copy || (!w->file.number && !copy->report.data)) {
		count_dropped(s, &w->report, -ENOMEM);
		free(copy);
		return;
	}
	if (copy->report.data)
		memcpy(copy->report.data, w->report.data, w->report.size);
	copy->report.size = w->report.size;
	copy->report.samples = w->report.samples;
	copy->file = w->file;
	copy->unspoolable = w->unspoolable;
	copy->next = s->first;
	s->first = copy;
	if (!s->last)
		s->last = copy;
}

/* From here on the spool is ours. False: the thread is not in a call, but hangs elsewhere. */
static bool abandon(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	s->abandoned = s->in_call;
	if (s->abandoned)
		take_back(s);
	pthread_mutex_unlock(&s->lock);
	return s->abandoned;
}

/* What a thread that hangs at a disk has in its hands: it is not freed, but it is lost. */
static void count_held(struct sender *s)
{
	for (const struct waiting *w = s->first; w; w = w->next)
		if (!w->file.number)
			count_dropped(s, &w->report, -ETIMEDOUT);
	if (s->on_its_way && !s->on_its_way->file.number)
		count_dropped(s, &s->on_its_way->report, -ETIMEDOUT);
	s->end_error = s->end_error ? s->end_error : -ETIMEDOUT;
}

/* Does the thread hang? Then what it had is seen to. */
static bool end_thread(struct sender *s, uint64_t stop)
{
	char place[PLACE_SIZE];

	if (join(s, stop + 300000000))
		return false;
	/* It may have come out of a call just now. */
	if (!abandon(s) && join(s, now_ns() + 300000000))
		return false;
	pthread_mutex_lock(&s->lock);
	copy_place(s, place);
	pthread_mutex_unlock(&s->lock);
	log_error("the end does not wait for %s, which does not answer", place);
	if (s->abandoned)
		spool_all(s);
	return true;
}

int sender_end(struct sender *s, uint64_t told_ns)
{
	uint64_t none = 0, stop = told_ns + SENDER_END_NS, least = now_ns() + SENDER_END_LEAST_NS;
	bool hangs;
	int error;

	stop = stop > least ? stop : least;
	atomic_compare_exchange_strong(&s->stop_ns, &none, stop);
	wake(s);
	hangs = end_thread(s, stop);
	/* What is in the spool is the next agent's. */
	pthread_mutex_lock(&s->lock);
	while (drop_oldest(s))
		;
	if (hangs && !s->abandoned)
		count_held(s);
	error = s->end_error;
	pthread_mutex_unlock(&s->lock);
	return error;
}

bool sender_free(struct sender *s)
{
	if (!s)
		return true;
	atomic_store(&s->stop_ns, 1);
	if (s->wake_fd >= 0)
		wake(s);
	/* A thread that hangs ends with the process, and has all that it needs until then. */
	if (!join(s, now_ns() + 100000000))
		return false;
	while (s->first)
		forget(s, take_first(s));
	way_free(s->way);
	way_free(s->next_way);
	output_dir_free(s->output);
	spool_free(s->spool);
	free(s->answer);
	close_p(&s->wake_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return true;
}
