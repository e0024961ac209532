// SPDX-License-Identifier: Apache-2.0
/*
 * What of a profile is text: frames as labels and stop reasons as names.
 *
 * Names come out of foreign files and processes, so they may hold anything. They leave here as
 * valid UTF-8 without control characters (a terminal would obey them) and without ';' (the
 * separator of folded stacks). Every replacement is of at most the length of what it replaces.
 */
#include "profile/profile.h"

#include "util/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * The longest that "[+0x0123456789abcdef]", "[runtime: unknown]", or ":4294967295", "_[k]" and NUL
 * take beside a name.
 */
enum { LABEL_EXTRA = 48 };

static const char *const stop_names[STOP_MAX_] = {
#define STOP(name, NAME, id, sentence) [id] = #name,
#include "abi/stop_reasons.def"
#undef STOP
};

/* By kind. Native frames are of no runtime's kind; the number they would have is the marker's. */
static const char *const runtime_names[FRAME_KIND_MAX_] = {
#define RUNTIME(name, NAME, id) [FRAME_KIND_OF(id)] = #name,
#include "abi/runtimes.def"
#undef RUNTIME
};

static const char *const stop_sentences[STOP_MAX_] = {
#define STOP(name, NAME, id, sentence) [id] = sentence,
#include "abi/stop_reasons.def"
#undef STOP
};

const char *profile_stop_name(enum stop_reason stop)
{
	return (unsigned)stop < STOP_MAX_ && stop_names[stop] ? stop_names[stop] : "unknown";
}

const char *profile_stop_sentence(enum stop_reason stop)
{
	return (unsigned)stop < STOP_MAX_ && stop_sentences[stop]
		       ? stop_sentences[stop]
		       : "the walk ended for a reason that this version does not know";
}

const char *profile_runtime_name(unsigned kind)
{
	return kind > FRAME_KIND_TRUNCATED && kind < FRAME_KIND_MAX_ ? runtime_names[kind] : NULL;
}

uint16_t profile_runtime_kind(const char *name, size_t len)
{
	for (uint16_t kind = 0; kind < FRAME_KIND_MAX_; kind++) {
		const char *known = profile_runtime_name(kind);

		if (known && strlen(known) == len && !memcmp(known, name, len))
			return kind;
	}
	return FRAME_KIND_NATIVE;
}

/* As much as stays as it is and is ASCII: mostly all. */
static size_t plain_len(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] >= ' ' && s[n] <= '~' && s[n] != ';')
		n++;
	return n;
}

size_t profile_clean_text(const char *s, size_t len, char *buf, size_t size)
{
	size_t out = 0;

	if (!size)
		return 0;
	out = plain_len(s, len < size ? len : size - 1);
	memcpy(buf, s, out);
	for (size_t i = out, n; i < len; i += n ? n : 1) {
		n = utf8_len(s + i, len - i);
		if (n && !utf8_is_control(s + i, n) && s[i] != ';') {
			if (out + n >= size)
				break;
			memcpy(buf + out, s + i, n);
			out += n;
			continue;
		}
		if (out + 1 >= size)
			break;
		buf[out++] = !n ? '?' : s[i] == ';' ? ':' : '_';
	}
	buf[out] = '\0';
	return out;
}

static size_t clean_string(const struct profile *p, uint32_t string, char *buf, size_t size)
{
	const char *s = strtab_get(&p->strings, string);

	return profile_clean_text(s, strlen(s), buf, size);
}

static size_t append(char *buf, size_t size, size_t at, const char *s)
{
	return at < size ? at + profile_clean_text(s, strlen(s), buf + at, size - at) : at;
}

/* "[libc.so.6+0x2724a]"; files that have no path are "[vdso]" already: "[vdso+0x9a0]". */
static void unnamed(const struct profile *p, const struct profile_frame *f, char *buf, size_t size)
{
	const char *file = f->file < p->files.nr
				   ? strtab_get(&p->strings, p->files.items[f->file].name)
				   : (f->kind == FRAME_KIND_KERNEL ? "[kernel]" : "[unknown]");
	const char *runtime = profile_runtime_name(f->kind);
	size_t len = strlen(file), at;
	char offset[LABEL_EXTRA];

	if (runtime) {
		snprintf(buf, size, "[%s: unknown]", runtime);
		return;
	}
	if (!strcmp(file, "[anon]")) {
		append(buf, size, 0, file);
		return;
	}
	if (len > 2 && file[0] == '[' && file[len - 1] == ']') {
		file++;
		len -= 2;
	}
	at = append(buf, size, 0, "[");
	if (at < size)
		at += profile_clean_text(file, len, buf + at, size - at);
	snprintf(offset, sizeof(offset), "+0x%" PRIx64 "]", f->address);
	append(buf, size, at, offset);
}

size_t profile_nr_inline_frames(const struct profile *p, uint32_t frame)
{
	size_t nr = frame < p->frames.nr ? p->frames.items[frame].nr_lines : 0;

	return nr ? nr : 1;
}

const struct profile_line *profile_frame_line(const struct profile *p, uint32_t frame,
					      size_t inline_frame)
{
	const struct profile_frame *f = frame < p->frames.nr ? &p->frames.items[frame] : NULL;

	return f && inline_frame < f->nr_lines ? &p->lines.items[f->first_line + inline_frame]
					       : NULL;
}

const char *profile_frame_name(const struct profile *p, uint32_t frame, size_t inline_frame,
			       char *buf, size_t size)
{
	const struct profile_line *line = profile_frame_line(p, frame, inline_frame);

	if (!size)
		return "";
	buf[0] = '\0';
	if (line)
		clean_string(p, p->functions.items[line->function].name, buf, size);
	else if (frame < p->frames.nr)
		unnamed(p, &p->frames.items[frame], buf, size);
	else
		append(buf, size, 0, "[unknown]");
	return buf;
}

const char *profile_frame_label(const struct profile *p, uint32_t frame, size_t inline_frame,
				bool lines, char *buf, size_t size)
{
	const char *text = profile_frame_name(p, frame, inline_frame, buf, size);
	const struct profile_line *line = profile_frame_line(p, frame, inline_frame);
	char number[16];

	if (lines && line && line->line) {
		snprintf(number, sizeof(number), ":%" PRIu32, line->line);
		append(buf, size, strlen(text), number);
	}
	if (profile_is_inlined(p, frame, inline_frame))
		append(buf, size, strlen(text), "_[i]");
	else if (frame < p->frames.nr && p->frames.items[frame].kind == FRAME_KIND_KERNEL)
		append(buf, size, strlen(text), "_[k]");
	return text;
}

size_t profile_frame_label_size(const struct profile *p, uint32_t frame, size_t inline_frame)
{
	const struct profile_frame *f = frame < p->frames.nr ? &p->frames.items[frame] : NULL;
	const struct profile_line *line = profile_frame_line(p, frame, inline_frame);
	uint32_t string = 0;

	if (line)
		string = p->functions.items[line->function].name;
	else if (f && f->file < p->files.nr)
		string = p->files.items[f->file].name;
	return strlen(strtab_get(&p->strings, string)) + LABEL_EXTRA;
}

const char *profile_type_name(const struct profile *p, uint32_t type)
{
	const struct profile_unit *u = type ? &p->other_units.items[type - 1] : &p->unit;

	return u->type ? strtab_get(&p->strings, u->type) : "samples";
}

const char *profile_type_unit(const struct profile *p, uint32_t type)
{
	const struct profile_unit *u = type ? &p->other_units.items[type - 1] : &p->unit;

	return u->unit ? strtab_get(&p->strings, u->unit) : "count";
}

const char *profile_unit_type(const struct profile *p)
{
	return profile_type_name(p, 0);
}

const char *profile_unit_unit(const struct profile *p)
{
	return profile_type_unit(p, 0);
}
