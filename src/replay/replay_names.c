// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_names.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct text {
	FILE *out;
	uint32_t frame;
};

/* Lines and their parts stay apart. */
static void put_string(FILE *out, const char *s)
{
	for (; s && *s; s++)
		fputc((unsigned char)*s < ' ' ? '?' : *s, out);
}

static int put_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	const struct text *t = ctx;

	fprintf(t->out, "%" PRIu32 " ", t->frame);
	put_string(t->out, inline_frame->name);
	fputc('\t', t->out);
	put_string(t->out, inline_frame->source);
	fprintf(t->out, "\t%" PRIu32 "\t%" PRIu32 "\n", inline_frame->start_line,
		inline_frame->line);
	return ferror(t->out) ? -ENOMEM : 0;
}

static int put_thread(void *ctx, const char *name)
{
	const struct text *t = ctx;

	fprintf(t->out, "%" PRIu32 " thread ", t->frame);
	put_string(t->out, name);
	fputc('\n', t->out);
	return ferror(t->out) ? -ENOMEM : 0;
}

/* What a stack works for stands among its frames. */
static bool put_label(const struct text *t, const struct runtime_ops *ops, const uint64_t *words,
		      size_t nr)
{
	struct runtime_label label;

	if (!ops->sample_label || !ops->sample_label(words, nr, &label))
		return false;
	fprintf(t->out, "%" PRIu32 " label ", t->frame);
	put_string(t->out, label.key);
	fputc('\t', t->out);
	put_string(t->out, label.text);
	fputc('\n', t->out);
	return true;
}

static int name_all(struct text *t, struct runtime_proc *const procs[RUNTIME_MAX_],
		    const __u64 *words, uint32_t nr_words)
{
	const struct runtime_sink sink = { put_inline_frame, t, put_thread };
	uint64_t copy[1 + 15];
	int r;

	for (uint32_t i = 0; i < nr_words; i += 1 + FRAME_EXTRA(words[i])) {
		uint32_t id = FRAME_RUNTIME(words[i]), nr = 1 + FRAME_EXTRA(words[i]);

		/* One word is a note, or native. */
		if (id >= RUNTIME_MAX_ || !procs[id] || nr == 1 || nr > nr_words - i)
			continue;
		memcpy(copy, words + i, nr * sizeof(*words));
		t->frame = i;
		if (put_label(t, procs[id]->ops, copy, nr))
			continue;
		r = procs[id]->ops->symbolize(procs[id], copy, nr, &sink);
		if (r == -ENOMEM)
			return r;
		if (r)
			fprintf(t->out, "%" PRIu32 " %d\n", i, r);
	}
	return 0;
}

int replay_names(struct runtime_proc *const procs[RUNTIME_MAX_], const __u64 *words,
		 uint32_t nr_words, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	struct text t = { .out = open_memstream(&text, &size) };
	int r;

	if (!t.out)
		return -ENOMEM;
	r = name_all(&t, procs, words, nr_words);
	if (fclose(t.out) && !r)
		r = -ENOMEM;
	if (!r)
		*ret = TAKE_PTR(text);
	return r;
}
