// SPDX-License-Identifier: Apache-2.0
/*
 * Folded stacks: "comm;outermost;...;leaf count", one line a distinct stack, merged by function.
 * See docs/formats/folded.md. Lines are sorted by comm, then frame by frame.
 */
#include "export/call_tree.h"
#include "export/folded_text.h"
#include "export/formats.h"
#include "util/cleanup.h"

#include <inttypes.h>
#include <string.h>

struct line {
	char *text;
	size_t size;
	VEC(size_t) ends; /* by depth: where the text ends behind that element */
};

static void line_fini(struct line *l)
{
	free(l->text);
	vec_free(&l->ends);
}

static int put_element(struct line *l, uint32_t depth, const struct function *f)
{
	size_t at = depth ? l->ends.items[depth - 1] : 0, len = strlen(f->label), need;
	char *p;

	need = at + len + sizeof(";_[k]");
	if (need > l->size) {
		p = realloc(l->text, need * 2);
		if (!p)
			return -ENOMEM;
		l->text = p;
		l->size = need * 2;
	}
	if (depth)
		l->text[at++] = ';';
	memcpy(l->text + at, f->label, len);
	at += len;
	if (f->kind == FRAME_KIND_KERNEL || f->kind == FUNCTION_KIND_INLINED) {
		memcpy(l->text + at, f->kind == FRAME_KIND_KERNEL ? "_[k]" : "_[i]", 4);
		at += 4;
	}
	l->ends.nr = depth;
	return vec_push(&l->ends, at);
}

static int write_tree(const struct call_tree *tree, const struct function_table *functions,
		      FILE *out)
{
	_cleanup_(line_fini) struct line line = { 0 };

	for (size_t i = 0; i < tree->nr; i++) {
		uint32_t depth = tree->depth[i];
		int r = put_element(&line, depth, &functions->functions.items[tree->function[i]]);

		if (r)
			return r;
		if (!tree->self[i])
			continue;
		fwrite(line.text, 1, line.ends.items[depth], out);
		fprintf(out, " %" PRIu64 "\n", tree->self[i]);
		if (ferror(out))
			break; /* the caller reports it */
	}
	return 0;
}

static int folded_write(const struct profile *p, const struct export_options *options, FILE *out)
{
	struct function_table functions;
	struct call_tree tree;
	int r;

	r = function_table_init(&functions, p, MERGE_BY_TEXT, options->lines);
	if (r)
		return r;
	r = call_tree_init(&tree, p, &functions);
	if (!r) {
		r = write_tree(&tree, &functions, out);
		call_tree_fini(&tree);
	}
	function_table_fini(&functions);
	return r;
}

const struct export_ops export_folded = {
	.name = "folded",
	.extensions = (const char *const[]){ ".folded", ".txt", NULL },
	.description = "folded stacks, one line each: for flamegraph.pl, inferno, speedscope, grep",
	.write = folded_write,
	.read = folded_text_read,
	.recognise = folded_text_recognise,
};
