// SPDX-License-Identifier: Apache-2.0
/*
 * Reads text as perf script prints it: docs/formats/perf.md says what of it is understood. A
 * sample's first line is taken apart by its one certain mark, the time (or, without one, by its
 * end); its frames are the indented lines that begin with an address.
 */
#include "export/perf_text.h"
#include "export/places.h"
#include "export/read_stack.h"
#include "util/hex.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS_MAX = 64 };

/* A sample's first line. */
struct header {
	struct text comm, event; /* event without its ':'; empty: none */
	struct text payload;	 /* behind it; perhaps a frame */
	int32_t pid, tid;
	uint32_t cpu;
	bool has_time;
	uint64_t time_ns, period; /* period 0: none */
};

struct frame_line {
	uint64_t address;
	struct text name; /* empty: none */
	struct text dso;  /* empty: none */
	bool inlined;
};

struct reader {
	struct profile *p;
	struct read_stack stack;
	struct text event; /* of the first sample: the only one that is read */
	uint64_t inline_address;
	bool in_sample, skipped;
	bool in_block;	/* a sample, read or skipped, whose empty line has not come yet */
	bool needs_end; /* one has to come: perf prints it behind each call chain */
	bool has_ends;	/* it came behind other samples */
	struct header header;
	struct frame_line last; /* not added yet: it may be the mark of a truncation */
	bool has_last;
	/* Ours alone: what the header's comments said. */
	uint64_t weight;
	struct map sources; /* string of the profile -> kind of the frames whose dso it is */
	bool is_ours;
	/* Over all samples. */
	bool all_timed, same_period;
	uint64_t period, first_ns, last_ns;
	uint64_t nr, nr_skipped, sum;
};

bool perf_text_kernel_dso(const char *dso, size_t len)
{
	static const char *const user[] = { "[vdso",	 "[vsyscall]", "[vectors]",
					    "[sigpage]", "[unknown]",  "[heap]",
					    "[stack",	 "[anon",      "[uprobes]" };
	static const char *const endings[] = { "/vmlinux", ".ko", ".ko.xz", ".ko.zst", ".ko.gz" };
	struct text text = { dso, len };

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (text_ends_with(text, endings[i]))
			return true;
	if (!len || dso[0] != '[')
		return text_equals(text, "vmlinux");
	for (size_t i = 0; i < sizeof(user) / sizeof(*user); i++)
		if (len >= strlen(user[i]) && !memcmp(dso, user[i], strlen(user[i])))
			return false;
	return true;
}

/* --- a sample's first line -------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t tokenize(struct text line, struct text tokens[TOKENS_MAX])
{
	const char *c = line.s, *end = line.s + line.len;
	size_t nr = 0;

	while (nr < TOKENS_MAX) {
		const char *begin;

		while (c < end && is_blank(*c))
			c++;
		if (c == end)
			break;
		for (begin = c; c < end && !is_blank(*c);)
			c++;
		tokens[nr++] = (struct text){ begin, (size_t)(c - begin) };
	}
	return nr;
}

/* "1811.127000:", of any number of decimals; nanoseconds. */
static bool parse_time(struct text token, uint64_t *ret)
{
	const char *point = memchr(token.s, '.', token.len);
	uint64_t s, ns = 0;
	struct text decimals;

	if (!point || token.s[token.len - 1] != ':')
		return false;
	decimals = (struct text){ point + 1, token.len - (size_t)(point - token.s) - 2 };
	if (!text_number((struct text){ token.s, (size_t)(point - token.s) }, &s) ||
	    decimals.len < 1 || decimals.len > 9 || !text_number(decimals, &ns) ||
	    s > UINT64_MAX / 1000000000 - 1)
		return false;
	for (size_t i = decimals.len; i < 9; i++)
		ns *= 10;
	*ret = s * 1000000000 + ns;
	return true;
}

/* "[003]" */
static bool parse_cpu(struct text token, uint32_t *ret)
{
	uint64_t n;

	if (token.len < 3 || token.s[0] != '[' || token.s[token.len - 1] != ']' ||
	    !text_number((struct text){ token.s + 1, token.len - 2 }, &n) || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/* "PID/TID" or "TID"; perf prints -1 where it does not know. */
static bool parse_id(struct text text, int32_t *ret)
{
	uint64_t n = 0;

	if (!text_equals(text, "-1") && (!text_number(text, &n) || n > INT32_MAX))
		return false;
	*ret = (int32_t)n;
	return true;
}

static bool parse_ids(struct text token, struct header *h)
{
	const char *slash = memchr(token.s, '/', token.len);
	int32_t pid = 0, tid;

	if (slash && !parse_id((struct text){ token.s, (size_t)(slash - token.s) }, &pid))
		return false;
	if (slash) {
		token.len -= (size_t)(slash + 1 - token.s);
		token.s = slash + 1;
	}
	if (!parse_id(token, &tid))
		return false;
	h->pid = pid;
	h->tid = tid;
	return true;
}

/* "... comm 12/34 [001]", and nothing behind: tokens[0 .. nr). */
static bool parse_thread(const struct text *tokens, size_t nr, struct header *h)
{
	h->cpu = 0;
	if (nr && parse_cpu(tokens[nr - 1], &h->cpu))
		nr--;
	if (!nr || !parse_ids(tokens[nr - 1], h))
		return false;
	nr--;
	h->comm = (struct text){ "", 0 };
	if (nr)
		h->comm = (struct text){ tokens[0].s, (size_t)(tokens[nr - 1].s +
							       tokens[nr - 1].len - tokens[0].s) };
	return true;
}

static bool is_event(struct text token)
{
	return token.len > 1 && token.s[token.len - 1] == ':';
}

/* "period event: payload", all of which may be missing: tokens[at .. nr). */
static void parse_event(const struct text *tokens, size_t at, size_t nr, struct text line,
			struct header *h)
{
	h->period = 0;
	h->event = h->payload = (struct text){ line.s + line.len, 0 };
	if (at + 1 < nr && is_event(tokens[at + 1]) && text_number(tokens[at], &h->period))
		at++;
	if (at < nr && is_event(tokens[at])) {
		h->event = (struct text){ tokens[at].s, tokens[at].len - 1 };
		at++;
	}
	if (at < nr)
		h->payload =
			(struct text){ tokens[at].s, (size_t)(line.s + line.len - tokens[at].s) };
}

/* Without a time: "comm 12/34 [001] 1000 cycles:", "comm 12/34", and nothing behind. */
static bool parse_untimed(const struct text *tokens, size_t nr, struct text line,
			  struct header *ret)
{
	struct header h = { 0 };
	size_t at = nr;
	uint64_t period;

	if (nr < 2 || nr == TOKENS_MAX)
		return false;
	if (is_event(tokens[nr - 1]))
		at = nr - 1;
	if (at < nr && at > 2 && text_number(tokens[at - 1], &period) &&
	    parse_thread(tokens, at - 1, &h))
		at--;
	else if (!parse_thread(tokens, at, &h))
		return false;
	if (!h.comm.len)
		return false;
	parse_event(tokens, at, nr, line, &h);
	*ret = h;
	return true;
}

static bool parse_header(struct text line, struct header *ret)
{
	struct text tokens[TOKENS_MAX];
	size_t nr = tokenize(line, tokens);
	struct header h = { .has_time = true };

	for (size_t i = 1; i < nr; i++) {
		if (!parse_time(tokens[i], &h.time_ns) || !parse_thread(tokens, i, &h))
			continue;
		parse_event(tokens, i + 1, nr, line, &h);
		*ret = h;
		return true;
	}
	return parse_untimed(tokens, nr, line, ret);
}

/* --- frames ----------------------------------------------------------------------------------- */

static struct text trim(struct text text)
{
	while (text.len && is_blank(text.s[0])) {
		text.s++;
		text.len--;
	}
	while (text.len && is_blank(text.s[text.len - 1]))
		text.len--;
	return text;
}

/* Takes "+0x1f" off the end. */
static void take_offset(struct text *text)
{
	const char *plus = memrchr(text->s, '+', text->len), *end = text->s + text->len;
	uint64_t offset;

	if (plus && end - plus > 3 && !memcmp(plus, "+0x", 3) &&
	    hex_parse(plus + 3, end, &offset) == end)
		text->len = (size_t)(plus - text->s);
}

/* Takes " (dso)" off the end; there may be parentheses in it: "(/memfd:x (deleted))". */
static bool take_dso(struct text *text, struct text *ret)
{
	size_t at = text->len;
	int depth = 0;

	if (!at || text->s[at - 1] != ')')
		return false;
	while (at) {
		at--;
		if (text->s[at] == ')')
			depth++;
		else if (text->s[at] == '(' && !--depth)
			break;
	}
	if (depth || (at && !is_blank(text->s[at - 1])))
		return false;
	*ret = (struct text){ text->s + at + 1, text->len - at - 2 };
	text->len = at;
	return true;
}

/* "[python]"; else FRAME_KIND_NATIVE. */
static uint16_t kind_in_brackets(struct text dso)
{
	if (dso.len < 3 || dso.s[0] != '[' || dso.s[dso.len - 1] != ']')
		return FRAME_KIND_NATIVE;
	return profile_runtime_kind(dso.s + 1, dso.len - 2);
}

/* "55f01 main+0x10 (/bin/x)"; false if it does not begin with an address. */
static bool parse_frame(struct text line, struct frame_line *ret)
{
	struct frame_line f = { 0 };
	const char *rest;

	line = trim(line);
	rest = hex_parse(line.s, line.s + line.len, &f.address);
	if (!rest || (rest < line.s + line.len && !is_blank(*rest)))
		return false;
	line.len -= (size_t)(rest - line.s);
	line.s = rest;
	line = trim(line);
	if (take_dso(&line, &f.dso)) {
		f.inlined = text_equals(f.dso, "inlined");
		take_offset(&f.dso);
		line = trim(line);
	}
	take_offset(&line);
	f.name = line;
	/* That is how perf (and perf.c) says that it knows no name. */
	if (text_equals(f.name, "[unknown]") && !f.inlined &&
	    (f.address || text_equals(f.dso, "//anon") ||
	     kind_in_brackets(f.dso) != FRAME_KIND_NATIVE))
		f.name.len = 0;
	*ret = f;
	return true;
}

/* Behind the time stand an event and what it says, or at once the sample's one frame. */
static bool is_header(struct text line, struct header *ret)
{
	struct frame_line frame;

	return parse_header(line, ret) && (ret->event.len || !ret->payload.len ||
					   (parse_frame(ret->payload, &frame) && frame.dso.len));
}

static int add_file(struct reader *r, struct text dso, bool kernel, uint32_t *ret)
{
	const char *path;
	int err;

	*ret = PROFILE_NO_FILE;
	if (!kernel && (!dso.len || text_equals(dso, "[unknown]")))
		return 0;
	if (kernel && (!dso.len || text_equals(dso, "[unknown]") ||
		       (dso.len > 8 && !memcmp(dso.s, "[kernel.", 8)) ||
		       (dso.len > 14 && !memcmp(dso.s, "[guest.kernel.", 14))))
		dso = (struct text){ "[kernel]", 8 };
	else if (text_equals(dso, "//anon"))
		dso = (struct text){ "[anon]", 6 };
	err = read_stack_string(&r->stack, dso, &path);
	return err ? err : profile_add_file(r->p, path, NULL, 0, ret);
}

/* FRAME_KIND_NATIVE, or the runtime's whose function it is; and its source (0: not known). */
static uint16_t find_runtime(const struct reader *r, struct text dso, uint32_t *ret_source)
{
	uint16_t kind = kind_in_brackets(dso);
	const uint64_t *found;
	uint32_t id;

	*ret_source = 0;
	if (kind != FRAME_KIND_NATIVE || !dso.len ||
	    !strtab_find(&r->p->strings, dso.s, dso.len, &id))
		return kind;
	found = map_get(&r->sources, id);
	if (!found)
		return kind;
	*ret_source = id;
	return (uint16_t)*found;
}

static int add_frame(struct reader *r, const struct frame_line *f)
{
	bool kernel = perf_text_kernel_dso(f->dso.s, f->dso.len);
	uint32_t file, source;
	uint16_t kind = find_runtime(r, f->dso, &source);
	int err = 0;

	/* Inlined functions of another address: what they were inlined into is not there. */
	if (r->stack.inline_frames.nr && r->inline_address != f->address)
		err = read_stack_close_frame(&r->stack, FRAME_KIND_NATIVE, PROFILE_NO_FILE,
					     r->inline_address);
	if (!err && (f->name.len || f->inlined || r->stack.inline_frames.nr))
		err = read_stack_add_inline_frame(
			&r->stack, f->name.len ? f->name : (struct text){ "[unknown]", 9 }, source);
	r->inline_address = f->address;
	if (err || f->inlined)
		return err;
	if (kind != FRAME_KIND_NATIVE)
		return read_stack_close_frame(&r->stack, kind, PROFILE_NO_FILE, f->address);
	/* The kernel's half of the address space, on each 64-bit machine. */
	if ((!f->dso.len || text_equals(f->dso, "[unknown]")) && f->address >> 63)
		kernel = true;
	err = add_file(r, f->dso, kernel, &file);
	return err ? err
		   : read_stack_close_frame(&r->stack,
					    kernel ? FRAME_KIND_KERNEL : FRAME_KIND_NATIVE, file,
					    f->address);
}

static int add_last(struct reader *r)
{
	bool has_last = r->has_last;

	r->has_last = false;
	return has_last ? add_frame(r, &r->last) : 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

static int add_thread(struct reader *r, uint32_t *ret)
{
	const struct header *h = &r->header;
	struct text comm = h->comm;
	uint32_t process;
	const char *name;
	int err;

	if (text_equals(comm, "[no_name]"))
		comm.len = 0;
	err = read_stack_string(&r->stack, comm, &name);
	if (!err)
		err = profile_add_process(r->p, h->pid, 0, &process);
	if (!err)
		err = profile_add_thread(r->p, process, h->tid, name, ret);
	if (!err && h->pid && h->pid == h->tid && !r->p->processes.items[process].name)
		r->p->processes.items[process].name = r->p->threads.items[*ret].comm;
	return err;
}

static void note_times(struct reader *r)
{
	const struct header *h = &r->header;

	r->all_timed = r->all_timed && h->has_time;
	if (h->has_time && (!r->nr || h->time_ns < r->first_ns))
		r->first_ns = h->time_ns;
	if (h->has_time && h->time_ns > r->last_ns)
		r->last_ns = h->time_ns;
	if (!r->nr)
		r->period = h->period;
	r->same_period = r->same_period && h->period == r->period;
	r->nr++;
}

/* The sample whose lines have all been read. */
static int finish_sample(struct reader *r)
{
	uint64_t count = r->weight ? r->header.period / r->weight : 1;
	enum stop_reason stop = STOP_COMPLETE;
	uint32_t stack, thread, sample;
	int err;

	if (!r->in_sample)
		return 0;
	r->in_sample = false;
	if (__builtin_add_overflow(r->sum, count, &r->sum))
		return -E2BIG;
	if (r->has_last && !r->last.inlined)
		stop = truncation_parse(r->last.name.s, r->last.name.len);
	err = stop == STOP_COMPLETE ? add_last(r) : 0;
	if (!err)
		err = read_stack_finish(&r->stack, stop, &stack);
	if (!err)
		err = add_thread(r, &thread);
	if (!err)
		err = profile_add_sample(r->p, thread, stack, count, &sample);
	if (!err && r->header.has_time && !r->weight)
		err = profile_add_event(r->p, sample, r->header.time_ns, r->header.cpu);
	if (!err)
		note_times(r);
	return err;
}

/* The payload of a line without a call chain may be its one frame. */
static int begin_sample(struct reader *r, const struct header *h)
{
	struct frame_line f;

	r->header = *h;
	r->in_sample = r->in_block = true;
	r->needs_end = !h->payload.len && (r->has_ends || r->is_ours);
	r->skipped = false;
	r->has_last = false;
	read_stack_reset(&r->stack);
	if (!r->nr && !r->nr_skipped && !r->event.s)
		r->event = h->event;
	if (h->event.len != r->event.len || memcmp(h->event.s, r->event.s, h->event.len)) {
		r->in_sample = false;
		r->skipped = true;
		r->nr_skipped++;
		return 0;
	}
	if (h->payload.len && parse_frame(h->payload, &f) && f.dso.len) {
		r->last = f;
		r->has_last = true;
	}
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

static bool comment_value(struct text line, const char *key, struct text *ret)
{
	size_t len = strlen(key);

	if (line.len < len + 2 || memcmp(line.s, "# ", 2) || memcmp(line.s + 2, key, len))
		return false;
	*ret = (struct text){ line.s + 2 + len, line.len - 2 - len };
	return true;
}

/* "python : /srv/app.py" */
static int add_source(struct reader *r, struct text value)
{
	static const char between[] = " : ";
	const char *at = memmem(value.s, value.len, between, strlen(between));
	struct text source;
	uint16_t kind;
	uint32_t id;
	int err;

	if (!at)
		return 0;
	kind = profile_runtime_kind(value.s, (size_t)(at - value.s));
	at += strlen(between);
	source = (struct text){ at, (size_t)(value.s + value.len - at) };
	if (kind == FRAME_KIND_NATIVE || !source.len)
		return 0;
	err = strtab_intern(&r->p->strings, source.s, source.len, &id);
	return err ? err : map_put(&r->sources, id, kind);
}

static int read_comment(struct reader *r, struct text line)
{
	struct text value;
	const char *word;
	uint64_t n;
	int err;

	if (comment_value(line, PERF_TEXT_START, &value) && text_number(value, &n)) {
		r->p->cut.start_ns = n;
		r->is_ours = true;
	} else if (comment_value(line, PERF_TEXT_DURATION, &value) && text_number(value, &n)) {
		r->p->cut.duration_ns = n;
	} else if (comment_value(line, PERF_TEXT_FREQUENCY, &value) && text_number(value, &n) &&
		   n <= UINT32_MAX) {
		r->p->frequency_hz = (uint32_t)n;
	} else if (comment_value(line, PERF_TEXT_WEIGHT, &value) && text_number(value, &n)) {
		r->weight = r->nr ? r->weight : n;
	} else if (comment_value(line, PERF_TEXT_SOURCE, &value)) {
		return add_source(r, value);
	} else if (comment_value(line, PERF_TEXT_TYPE, &value)) {
		err = read_stack_string(&r->stack, value, &word);
		return err ? err : profile_string(r->p, word, &r->p->unit.type);
	} else if (comment_value(line, PERF_TEXT_UNIT, &value)) {
		err = read_stack_string(&r->stack, value, &word);
		return err ? err : profile_string(r->p, word, &r->p->unit.unit);
	} else if (comment_value(line, "hostname : ", &value)) {
		err = read_stack_string(&r->stack, value, &word);
		return err ? err : profile_string(r->p, word, &r->p->host.name);
	} else if (comment_value(line, "arch : ", &value)) {
		err = read_stack_string(&r->stack, value, &word);
		return err ? err : profile_string(r->p, word, &r->p->host.arch);
	}
	return 0;
}

static int read_line(struct reader *r, struct text line, size_t number, char problem[200])
{
	struct frame_line frame;
	struct header header;
	int err;

	if (!trim(line).len) {
		err = finish_sample(r);
		r->has_ends = r->has_ends || r->in_block;
		r->in_block = r->skipped = false;
		return err;
	}
	if (line.s[0] == '#')
		return read_comment(r, line);
	if (line.s[0] != '\t' && is_header(line, &header)) {
		err = finish_sample(r);
		return err ? err : begin_sample(r, &header);
	}
	if (!is_blank(line.s[0]))
		return text_problem(number, "no sample begins like this", line, problem);
	r->needs_end = true;
	if (r->skipped)
		return 0;
	if (!r->in_sample)
		return text_problem(number, "a frame of no sample", line, problem);
	/* Source lines, branches, registers: not of the stack. */
	if (!parse_frame(line, &frame))
		return 0;
	err = add_last(r);
	r->last = frame;
	r->has_last = true;
	return err;
}

/* Times count from the begin; what perf says itself fills in what nobody said. */
static void finish_times(struct reader *r)
{
	struct profile *p = r->p;

	if (!r->all_timed && p->cut.events.nr)
		profile_drop_events(p);
	if (r->is_ours)
		return;
	for (size_t i = 0; i < p->cut.events.nr; i++)
		p->cut.events.items[i].time_ns -= r->first_ns;
	if (r->all_timed && r->nr)
		p->cut.duration_ns = r->last_ns - r->first_ns;
	/* The periods of clocks are nanoseconds. */
	if (r->nr && r->same_period && r->period && r->period <= 1000000000 && r->event.len >= 9 &&
	    (!memcmp(r->event.s, "cpu-clock", 9) || !memcmp(r->event.s, "task-cloc", 9))) {
		p->frequency_hz = (uint32_t)((1000000000 + r->period / 2) / r->period);
		p->cut.duration_ns += r->period;
	}
}

static int read_all(struct reader *r, const void *data, size_t size, char problem[200])
{
	struct text_lines lines = text_lines_of(data, size);
	struct text line;
	int err = 0;

	while (!err && text_next_line(&lines, &line))
		err = read_line(r, line, lines.number, problem);
	if (!err && (lines.is_cut || (r->in_block && r->needs_end))) {
		snprintf(problem, 200, "cut off at line %zu", lines.number);
		return -EBADMSG;
	}
	if (!err)
		err = finish_sample(r);
	if (err)
		return err == -EOVERFLOW ? -E2BIG : err;
	finish_times(r);
	if (r->nr_skipped)
		log_warn("left out %llu samples of other events than '%.*s'",
			 (unsigned long long)r->nr_skipped, (int)(r->event.len & 0xff), r->event.s);
	return 0;
}

int perf_text_read(const void *data, size_t size, struct profile *ret, char ret_problem[200])
{
	struct reader r = { .p = ret, .stack.p = ret, .all_timed = true, .same_period = true };
	int err = text_check(data, size, ret_problem);

	if (!err)
		err = read_all(&r, data, size, ret_problem);
	read_stack_fini(&r.stack);
	map_fini(&r.sources);
	return err;
}

bool perf_text_recognise(const void *data, size_t size)
{
	struct text_lines lines = text_lines_of(data, size);
	struct header header;
	struct text line;

	if (!text_looks_like_text(data, size))
		return false;
	while (text_next_line(&lines, &line)) {
		if (line.len >= 10 && !memcmp(line.s, "# ========", 10))
			return true;
		if (!line.len || line.s[0] == '#' || !trim(line).len)
			continue;
		/* "comm 12" alone may be much else: then a frame has to follow. */
		return is_header(line, &header) &&
		       (header.has_time || header.event.len ||
			(text_next_line(&lines, &line) && line.len && line.s[0] == '\t'));
	}
	return false;
}
