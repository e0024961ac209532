// SPDX-License-Identifier: Apache-2.0
/*
 * Threads and their stacks: a profile's frames in, text or JSON out. Names come from files and
 * processes that may be hostile: what could steer a terminal or break JSON is replaced.
 */
#include "cli/thread_print.h"
#include "cli/term.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct printer {
	const struct thread_report *report;
	const struct profile *profile;
	FILE *out;
	bool colours;
	char *text; /* the string in work, made fit for output */
	size_t size;
};

static void printer_fini(struct printer *p)
{
	free(p->text);
}

static const char *string_or_null(const struct profile *p, uint32_t string)
{
	return string ? strtab_get(&p->strings, string) : NULL;
}

/* A function at a frame's address; the strings are the profile's. */
struct inline_frame {
	uint32_t frame;
	size_t nr;
	const char *name;    /* NULL: not known */
	const char *linkage; /* NULL: not known, or the same */
	const char *source;  /* NULL: not known */
	uint32_t line;	     /* 0: not known */
	bool inlined;	     /* into the next inline frame */
};

static struct inline_frame inline_frame_of(const struct profile *p, uint32_t frame, size_t nr)
{
	const struct profile_line *line = profile_frame_line(p, frame, nr);
	struct inline_frame inline_frame = { .frame = frame,
					     .nr = nr,
					     .inlined = profile_is_inlined(p, frame, nr) };

	if (line && line->function < p->functions.nr) {
		const struct profile_function *f = &p->functions.items[line->function];

		inline_frame.name = string_or_null(p, f->name);
		inline_frame.linkage = string_or_null(p, f->linkage_name);
		inline_frame.source = string_or_null(p, f->source);
		inline_frame.line = line->line;
	}
	return inline_frame;
}

/*
 * The string without control characters and broken UTF-8, in p->text until the next call; "" if
 * memory runs out. Text that is fit is never longer than the text that it was made of.
 */
static const char *clean(struct printer *p, const char *s)
{
	size_t len = strlen(s), done = 0, out = 0;

	if (len >= p->size) {
		char *grown = realloc(p->text, len + 256);

		if (!grown)
			return "";
		p->text = grown;
		p->size = len + 256;
	}
	p->text[0] = '\0';
	/* profile_clean_text() takes ';' too, which only folded stacks must not have. */
	while (done <= len) {
		size_t piece = strcspn(s + done, ";");

		out += profile_clean_text(s + done, piece, p->text + out, p->size - out);
		done += piece + 1;
		if (done <= len && out + 1 < p->size) {
			p->text[out++] = ';';
			p->text[out] = '\0';
		}
	}
	return p->text;
}

static const struct profile_file *file_of(const struct profile *p, const struct profile_frame *f)
{
	return f->file < p->files.nr ? &p->files.items[f->file] : NULL;
}

/* --- text ------------------------------------------------------------------------------------ */

static void coloured(struct printer *p, enum term_colour colour, const char *text)
{
	fprintf(p->out, "%s%s%s", term_start(p->colours, colour), text, term_reset(p->colours));
}

static void print_function(struct printer *p, const struct inline_frame *inline_frame)
{
	char address[512];

	if (inline_frame->name)
		coloured(p, TERM_BOLD, clean(p, inline_frame->name));
	else
		fputs(profile_frame_name(p->profile, inline_frame->frame, inline_frame->nr, address,
					 sizeof(address)),
		      p->out);
}

/* "kernel", or the module that the function is of. */
static const char *kernel_part(struct printer *p, const struct profile_file *file)
{
	const char *name = file ? strtab_get(&p->profile->strings, file->name) : "[kernel]";

	return strcmp(name, "[kernel]") ? clean(p, name) : "kernel";
}

/* " (app.py:12)"; " (python)" where that is not known and the name does not say it. */
static void print_script_place(struct printer *p, const struct profile_frame *frame,
			       const struct inline_frame *inline_frame)
{
	if (inline_frame->source && inline_frame->line)
		fprintf(p->out, " (%s:%" PRIu32 ")", clean(p, inline_frame->source),
			inline_frame->line);
	else if (inline_frame->source)
		fprintf(p->out, " (%s)", clean(p, inline_frame->source));
	else if (inline_frame->name && *inline_frame->name != '[')
		fprintf(p->out, " (%s)", profile_runtime_name(frame->kind));
}

/* " (inlined) at file:line", " (kernel)", " in libc.so.6". */
static void print_place(struct printer *p, const struct profile_frame *frame,
			const struct inline_frame *inline_frame)
{
	const struct profile_file *file = file_of(p->profile, frame);
	bool is_kernel = frame->kind == FRAME_KIND_KERNEL;

	fputs(term_start(p->colours, TERM_DIM), p->out);
	if (inline_frame->inlined)
		fputs(" (inlined)", p->out);
	if (profile_runtime_name(frame->kind)) {
		print_script_place(p, frame, inline_frame);
		fputs(term_reset(p->colours), p->out);
		return;
	}
	if (is_kernel)
		fprintf(p->out, " (%s)", kernel_part(p, file));
	if (inline_frame->source)
		fprintf(p->out, " at %s", clean(p, inline_frame->source));
	if (inline_frame->source && inline_frame->line)
		fprintf(p->out, ":%" PRIu32, inline_frame->line);
	if (!inline_frame->source && inline_frame->name && !is_kernel && file)
		fprintf(p->out, " in %s", clean(p, strtab_get(&p->profile->strings, file->name)));
	fputs(term_reset(p->colours), p->out);
}

static void print_stack(struct printer *p, const struct profile_stack *stack)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t id = p->profile->stack_frames.items[stack->first + i];
		const struct profile_frame *frame = &p->profile->frames.items[id];
		size_t nr = profile_nr_inline_frames(p->profile, id);

		for (size_t j = 0; j < nr; j++, number++) {
			struct inline_frame inline_frame = inline_frame_of(p->profile, id, j);

			/* "#0   main", "#10  main": aligned up to "#999". */
			fprintf(p->out, "  #%-3" PRIu32 " ", number);
			print_function(p, &inline_frame);
			print_place(p, frame, &inline_frame);
			fputc('\n', p->out);
		}
	}
	if (stack->stop == STOP_COMPLETE)
		return;
	fprintf(p->out, "  %s... cut: %s [%s]%s\n", term_start(p->colours, TERM_YELLOW),
		profile_stop_sentence(stack->stop), profile_stop_name(stack->stop),
		term_reset(p->colours));
}

static void print_thread(struct printer *p, const struct thread_entry *thread)
{
	char number[32];

	snprintf(number, sizeof(number), "thread %" PRId32, thread->tid);
	coloured(p, TERM_BOLD, number);
	if (thread->virtual_name)
		fprintf(p->out, " \"%s\", carried by",
			clean(p, strtab_get(&p->profile->strings, thread->virtual_name)));
	if (*thread->name)
		fprintf(p->out, " \"%s\"", clean(p, thread->name));
	if (thread->state)
		fprintf(p->out, " %s", thread->state);
	fputc('\n', p->out);
	if (thread->stack < p->profile->stacks.nr)
		print_stack(p, &p->profile->stacks.items[thread->stack]);
	if (thread->problem)
		fprintf(p->out, "  %s%s%s\n", term_start(p->colours, TERM_YELLOW),
			clean(p, thread->problem), term_reset(p->colours));
}

/* A first buffer, so that later ones fail for huge names only. */
static int printer_init(struct printer *p, const struct thread_report *report, FILE *out)
{
	*p = (struct printer){
		.report = report, .profile = report->profile, .out = out, .size = 4096
	};
	p->text = malloc(p->size);
	return p->text ? 0 : -ENOMEM;
}

int thread_print_text(const struct thread_report *report, FILE *out)
{
	_cleanup_(printer_fini) struct printer p = { 0 };
	int r = printer_init(&p, report, out);

	if (r)
		return r;
	p.colours = term_colours(out);
	for (size_t i = 0; i < report->nr_headlines; i++)
		fprintf(out, "%s\n", clean(&p, report->headlines[i]));
	for (size_t i = 0; i < report->nr_threads; i++) {
		if (i || report->nr_headlines)
			fputc('\n', out);
		print_thread(&p, &report->threads[i]);
	}
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* The string in quotation marks, or null. */
static void json_string(struct printer *p, const char *s)
{
	if (!s) {
		fputs("null", p->out);
		return;
	}
	fputc('"', p->out);
	for (s = clean(p, s); *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', p->out);
		fputc(*s, p->out);
	}
	fputc('"', p->out);
}

static void json_member(struct printer *p, const char *name, const char *value)
{
	fprintf(p->out, ",\"%s\":", name);
	json_string(p, value);
}

static void json_object_file(struct printer *p, const struct profile_file *file)
{
	json_member(p, "object", file ? strtab_get(&p->profile->strings, file->path) : NULL);
	fputs(",\"build_id\":", p->out);
	if (!file || !file->build_id_len) {
		fputs("null", p->out);
		return;
	}
	fputc('"', p->out);
	for (uint8_t i = 0; i < file->build_id_len; i++)
		fprintf(p->out, "%02x", file->build_id[i]);
	fputc('"', p->out);
}

/* "kernel", "native", or the runtime. */
static const char *kind_name(unsigned kind)
{
	const char *runtime = profile_runtime_name(kind);

	return runtime ? runtime : kind == FRAME_KIND_KERNEL ? "kernel" : "native";
}

static void json_inline_frame(struct printer *p, const struct profile_frame *frame,
			      const struct inline_frame *inline_frame)
{
	fputs("{\"function\":", p->out);
	json_string(p, inline_frame->name);
	json_member(p, "linkage_name",
		    inline_frame->linkage ? inline_frame->linkage : inline_frame->name);
	json_member(p, "kind", kind_name(frame->kind));
	fprintf(p->out, ",\"inlined\":%s", inline_frame->inlined ? "true" : "false");
	json_member(p, "file", inline_frame->source);
	if (inline_frame->line)
		fprintf(p->out, ",\"line\":%" PRIu32, inline_frame->line);
	else
		fputs(",\"line\":null", p->out);
	json_object_file(p, file_of(p->profile, frame));
	/* Text: a JSON number of many readers has 53 bits. */
	fprintf(p->out, ",\"address\":\"0x%" PRIx64 "\"}", frame->address);
}

static void json_frames(struct printer *p, const struct profile_stack *stack)
{
	bool first = true;

	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t id = p->profile->stack_frames.items[stack->first + i];
		const struct profile_frame *frame = &p->profile->frames.items[id];
		size_t nr = profile_nr_inline_frames(p->profile, id);

		for (size_t j = 0; j < nr; j++, first = false) {
			struct inline_frame inline_frame = inline_frame_of(p->profile, id, j);

			fputs(first ? "\n   " : ",\n   ", p->out);
			json_inline_frame(p, frame, &inline_frame);
		}
	}
}

static void json_thread(struct printer *p, const struct thread_entry *thread)
{
	const struct profile_stack *stack = thread->stack < p->profile->stacks.nr
						    ? &p->profile->stacks.items[thread->stack]
						    : NULL;

	fprintf(p->out, "{\"tid\":%" PRId32, thread->tid);
	json_member(p, "name", thread->name);
	json_member(p, "virtual_thread", string_or_null(p->profile, thread->virtual_name));
	json_member(p, "state", thread->state);
	fprintf(p->out, ",\"complete\":%s",
		stack && stack->stop == STOP_COMPLETE ? "true" : "false");
	json_member(p, "stop", stack ? profile_stop_name(stack->stop) : NULL);
	json_member(p, "problem", thread->problem);
	fputs(",\"frames\":[", p->out);
	if (stack)
		json_frames(p, stack);
	fputs("]}", p->out);
}

int thread_print_json(const struct thread_report *report, const char *extra, FILE *out)
{
	_cleanup_(printer_fini) struct printer p = { 0 };
	int r = printer_init(&p, report, out);

	if (r)
		return r;
	fprintf(out, "{%s%s\"threads\":[", extra, *extra ? "," : "");
	for (size_t i = 0; i < report->nr_threads; i++) {
		fputs(i ? ",\n " : "\n ", out);
		json_thread(&p, &report->threads[i]);
	}
	fputs("]}\n", out);
	return 0;
}
