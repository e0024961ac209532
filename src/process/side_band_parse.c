// SPDX-License-Identifier: Apache-2.0
/*
 * perf records (as the kernel writes them for the events of side_band.c) to side events.
 *
 * Every record ends in a `struct sample_id` of SIDE_SAMPLE_TYPE; texts stand before it and are
 * padded to 8 bytes. Records of other kinds are passed over.
 */
#include "process/side_band_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, res;
};

struct task_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct comm_body {
	uint32_t pid, tid;
	char comm[];
};

struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

struct ksymbol_body {
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags;
	char name[];
};

struct lost_body {
	uint64_t id, lost;
};

/* A record without its header and sample_id. */
struct record {
	uint32_t type;
	uint16_t misc;
	uint64_t time_ns;
	const uint8_t *body;
	size_t size;
};

int side_events_push(struct side_events *batch, struct side_event event, const char *text,
		     size_t text_len)
{
	/* Each event has a text, be it empty: so `text` also tells the order of arrival. */
	if (batch->text.nr + text_len + 1 > UINT32_MAX)
		return -ENOMEM;
	if (vec_reserve(&batch->text, batch->text.nr + text_len + 1))
		return -ENOMEM;
	event.text = (uint32_t)batch->text.nr;
	if (vec_push(&batch->events, event))
		return -ENOMEM;
	if (text_len)
		memcpy(batch->text.items + batch->text.nr, text, text_len);
	batch->text.nr += text_len;
	batch->text.items[batch->text.nr++] = '\0';
	return 0;
}

static int parse_task(const struct record *rec, struct side_events *batch)
{
	struct side_event event = { .time_ns = rec->time_ns };
	struct task_body body;

	if (rec->size < sizeof(body))
		return -EBADMSG;
	memcpy(&body, rec->body, sizeof(body));
	/*
	 * 0 and -1: not in our PID namespace. A new thread has its parent's pid. Whether a leader's
	 * exit was the process's end is seen to by side_band_drain().
	 */
	if ((int32_t)body.pid <= 0)
		return 0;
	if (rec->type == PERF_RECORD_FORK)
		event.type = body.pid == body.ppid ? SIDE_THREAD : SIDE_FORK;
	else
		event.type = body.pid == body.tid ? SIDE_EXIT : SIDE_THREAD_EXIT;
	event.pid = (int32_t)body.pid;
	event.tid = (int32_t)body.tid;
	event.parent_pid = (int32_t)body.ppid;
	return side_events_push(batch, event, NULL, 0);
}

static int parse_comm(const struct record *rec, struct side_events *batch)
{
	struct side_event event = { .time_ns = rec->time_ns, .type = SIDE_COMM };
	struct comm_body body;
	size_t max;
	int r;

	if (rec->size <= sizeof(body))
		return -EBADMSG;
	memcpy(&body, rec->body, sizeof(body));
	max = rec->size - sizeof(body);
	event.pid = (int32_t)body.pid;
	event.tid = (int32_t)body.tid;
	if (event.pid <= 0)
		return 0;
	if (rec->misc & PERF_RECORD_MISC_COMM_EXEC) {
		struct side_event exec = event;

		exec.type = SIDE_EXEC;
		r = side_events_push(batch, exec, NULL, 0);
		if (r)
			return r;
	}
	return side_events_push(batch, event, (const char *)rec->body + sizeof(body),
				strnlen((const char *)rec->body + sizeof(body), max));
}

static int parse_mmap2(const struct record *rec, struct side_events *batch)
{
	struct side_event event = { .time_ns = rec->time_ns, .type = SIDE_MMAP };
	struct mmap2_body body;
	size_t max;

	if (rec->size <= sizeof(body))
		return -EBADMSG;
	memcpy(&body, rec->body, sizeof(body));
	max = rec->size - sizeof(body);
	event.pid = (int32_t)body.pid;
	event.tid = (int32_t)body.tid;
	event.start = body.addr;
	event.len = body.len;
	event.offset = body.pgoff;
	/* pid -1: the kernel's own mappings (modules). */
	if (event.pid <= 0 || !body.len || body.addr + body.len < body.addr)
		return 0;
	if (!(rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		event.dev_major = body.maj;
		event.dev_minor = body.min;
		event.inode = body.ino;
	}
	return side_events_push(batch, event, (const char *)rec->body + sizeof(body),
				strnlen((const char *)rec->body + sizeof(body), max));
}

/*
 * Of trampolines, too. What is none of BPF's (code out of line: of ftrace, kprobes) is told without
 * its name.
 */
static int parse_ksymbol(const struct record *rec, struct side_events *batch)
{
	struct side_event event = { .time_ns = rec->time_ns };
	const char *name = (const char *)rec->body + sizeof(struct ksymbol_body);
	struct ksymbol_body body;
	size_t len = 0;

	if (rec->size <= sizeof(body))
		return -EBADMSG;
	memcpy(&body, rec->body, sizeof(body));
	event.type = body.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER ? SIDE_CODE_GONE : SIDE_CODE;
	event.start = body.addr;
	event.len = body.len;
	if (event.start + event.len < event.start)
		return 0;
	if (body.type == PERF_RECORD_KSYMBOL_TYPE_BPF)
		len = strnlen(name, rec->size - sizeof(body));
	return side_events_push(batch, event, name, len);
}

static int parse_lost(const struct record *rec, struct side_events *batch)
{
	struct side_event event = { .time_ns = rec->time_ns, .type = SIDE_LOST };
	struct lost_body body;

	if (rec->size < sizeof(body))
		return -EBADMSG;
	memcpy(&body, rec->body, sizeof(body));
	event.lost = body.lost;
	return side_events_push(batch, event, NULL, 0);
}

static int parse_record(const struct record *rec, struct side_events *batch)
{
	switch (rec->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(rec, batch);
	case PERF_RECORD_COMM:
		return parse_comm(rec, batch);
	case PERF_RECORD_MMAP2:
		return parse_mmap2(rec, batch);
	case PERF_RECORD_KSYMBOL:
		return parse_ksymbol(rec, batch);
	case PERF_RECORD_LOST:
		return parse_lost(rec, batch);
	default:
		return 0;
	}
}

/*
 * Where the sample_id is: at the end, but of PERF_RECORD_KSYMBOL, whose size grows by one with each
 * event that hears of it: perf_event_ksymbol_output() (kernel/events/core.c at v6.18) does not set
 * it back as perf_event_mmap_output() does. What is behind the id then nobody has written. `size`
 * is at least that of the header and of the id.
 */
static size_t sample_id_at(uint32_t type, const uint8_t *record, size_t size)
{
	size_t last = size - sizeof(struct sample_id);
	size_t name = sizeof(struct perf_event_header) + sizeof(struct ksymbol_body), at;

	if (type != PERF_RECORD_KSYMBOL || name >= last)
		return last;
	at = name + strnlen((const char *)record + name, last - name) + 1;
	at = (at + 7) & ~(size_t)7;
	return at < last ? at : last;
}

int side_band_parse_until(const void *data, size_t size, uint64_t until_ns,
			  struct side_events *batch, size_t *ret_used)
{
	const uint8_t *bytes = data;
	size_t used = 0;
	int r = 0;

	while (!r && size - used >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		struct sample_id id;
		struct record rec;
		size_t id_at;

		memcpy(&header, bytes + used, sizeof(header));
		if (header.size < sizeof(header) + sizeof(id) || header.size > size - used) {
			r = -EBADMSG;
			break;
		}
		id_at = sample_id_at(header.type, bytes + used, header.size);
		memcpy(&id, bytes + used + id_at, sizeof(id));
		if (id.time > until_ns)
			break;
		rec = (struct record){ .type = header.type,
				       .misc = header.misc,
				       .time_ns = id.time,
				       .body = bytes + used + sizeof(header),
				       .size = id_at - sizeof(header) };
		r = parse_record(&rec, batch);
		used += header.size;
	}
	*ret_used = used;
	return r;
}

int side_band_parse(const void *data, size_t size, struct side_events *batch)
{
	size_t used;
	int r = side_band_parse_until(data, size, UINT64_MAX, batch, &used);

	return r ? r : used == size ? 0 : -EBADMSG;
}

static int compare(const void *va, const void *vb)
{
	const struct side_event *a = va, *b = vb;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->text < b->text ? -1 : a->text > b->text;
}

/* Where what is in order from there on ends. */
static size_t run_end(const struct side_events *batch, size_t from)
{
	const struct side_event *e = batch->events.items;
	size_t i = from;

	while (i < batch->events.nr && (i == from || compare(&e[i - 1], &e[i]) <= 0))
		i++;
	return i;
}

/* Two runs of `from`, that in front of `middle` and that behind it, to `to`. */
static void merge(const struct side_event *from, size_t middle, size_t end, struct side_event *to)
{
	size_t a = 0, b = middle;

	while (a < middle || b < end)
		*to++ = b == end || (a < middle && compare(&from[a], &from[b]) <= 0) ? from[a++]
										     : from[b++];
}

/* As many as there are CPUs, mostly: each ring is in order. */
static void merge_runs(struct side_events *batch)
{
	size_t from = 0, middle, end;

	while (from < batch->events.nr) {
		middle = run_end(batch, from);
		end = run_end(batch, middle);
		merge(batch->events.items + from, middle - from, end - from,
		      batch->merged.items + from);
		from = end;
	}
}

void side_events_sort(struct side_events *batch)
{
	while (run_end(batch, 0) < batch->events.nr) {
		struct side_event *items = batch->events.items;
		size_t cap = batch->events.cap;

		if (vec_reserve(&batch->merged, batch->events.nr)) {
			qsort(batch->events.items, batch->events.nr, sizeof(*batch->events.items),
			      compare);
			return;
		}
		merge_runs(batch);
		batch->events.items = batch->merged.items;
		batch->events.cap = batch->merged.cap;
		batch->merged.items = items;
		batch->merged.cap = cap;
	}
}

void side_events_fini(struct side_events *batch)
{
	vec_free(&batch->events);
	vec_free(&batch->merged);
	vec_free(&batch->text);
}
