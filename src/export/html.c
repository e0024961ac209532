// SPDX-License-Identifier: Apache-2.0
/*
 * The flame graph as one self-contained page: the viewer that web/ builds, with the profile's
 * merged call tree in it. The data's form is docs/formats/html-data.md; web/src/data.ts reads it.
 */
#include "export/base64_deflate.h"
#include "export/call_tree.h"
#include "export/formats.h"
#include "export/viewer_page.h"
#include "runtime/runtime.h"
#include "util/cleanup.h"

#include <inttypes.h>
#include <string.h>

enum { HTML_DATA_VERSION = 2 };

/* Strings of the data, numbered in the order in which they are wanted first. */
struct string_ids {
	struct strtab table;
	uint32_t *name, *file; /* by function */
};

static int intern_strings(struct string_ids *ids, const struct profile *p,
			  const struct function_table *functions)
{
	size_t nr = functions->functions.nr;
	int r;

	ids->name = calloc(nr + 1, sizeof(*ids->name));
	ids->file = calloc(nr + 1, sizeof(*ids->file));
	if (!ids->name || !ids->file)
		return -ENOMEM;
	r = strtab_init(&ids->table);
	for (size_t i = 0; i < nr && !r; i++) {
		const struct function *f = &functions->functions.items[i];
		const char *path = "";

		if (f->file < p->files.nr)
			path = strtab_get(&p->strings, p->files.items[f->file].path);
		else if (f->source)
			path = strtab_get(&p->strings, f->source);
		r = strtab_intern(&ids->table, f->label, strlen(f->label), &ids->name[i]);
		if (!r)
			r = strtab_intern(&ids->table, path, strlen(path), &ids->file[i]);
	}
	return r;
}

static void string_ids_fini(struct string_ids *ids)
{
	strtab_fini(&ids->table);
	free(ids->name);
	free(ids->file);
}

/* Of the runtimes that there are frames of: what people call them, by kind. */
static void put_runtimes(const struct function_table *functions, FILE *out)
{
	bool used[FRAME_KIND_MAX_] = { false };
	const char *comma = "";

	for (size_t i = 0; i < functions->functions.nr; i++) {
		unsigned kind = functions->functions.items[i].kind;

		kind -= kind >= FUNCTION_KIND_INLINED_OF ? FUNCTION_KIND_INLINED_OF : 0;
		if (kind < FRAME_KIND_MAX_)
			used[kind] = true;
	}
	fputs(",\"runtimes\":{", out);
	for (unsigned id = RUNTIME_NATIVE + 1; FRAME_KIND_OF(id) < FRAME_KIND_MAX_; id++) {
		if (!used[FRAME_KIND_OF(id)] || !runtimes[id])
			continue;
		fprintf(out, "%s\"%u\":\"%s\"", comma, FRAME_KIND_OF(id), runtimes[id]->language);
		comma = ",";
	}
	fputs("}", out);
}

/*
 * Only numbers, the words of stop_reasons.def and our own names of languages stand in it: nothing
 * needs escaping.
 */
static int make_meta(const struct profile *p, const struct function_table *functions, char **ret)
{
	uint64_t truncated[STOP_MAX_ + 1] = { 0 };
	_cleanup_free_ char *text = NULL;
	const char *comma = "";
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < p->cut.samples.nr; i++) {
		unsigned stop = profile_stack_stop(p, p->cut.samples.items[i].stack);

		truncated[stop < STOP_MAX_ ? stop : STOP_MAX_] += p->cut.samples.items[i].count;
	}
	fprintf(f, "{\"samples\":%" PRIu64 ",\"complete\":%" PRIu64 ",\"own\":%" PRIu64,
		profile_total(p), profile_complete(p), profile_own(p));
	fprintf(f, ",\"duration_ns\":%" PRIu64, p->cut.duration_ns);
	fprintf(f, ",\"frequency_hz\":%u,\"start_ms\":%" PRIu64 ",\"truncated\":{", p->frequency_hz,
		p->cut.start_ns / 1000000);
	for (unsigned i = 0; i <= STOP_MAX_; i++) {
		if (i == STOP_COMPLETE || !truncated[i])
			continue;
		fprintf(f, "%s\"%s\":{\"samples\":%" PRIu64 ",\"sentence\":\"%s\"}", comma,
			profile_stop_name((enum stop_reason)i), truncated[i],
			profile_stop_sentence((enum stop_reason)i));
		comma = ",";
	}
	fputs("}", f);
	put_runtimes(functions, f);
	fputs("}", f);
	/* glibc's fclose() does not report that the final buffer could not be had. */
	if (fclose(f) || !text)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	return 0;
}

static void put_strings(struct base64_deflate *b, const struct strtab *table)
{
	base64_deflate_varint(b, table->strings.nr);
	for (size_t i = 0; i < table->strings.nr; i++)
		base64_deflate_varint(b, strlen(table->strings.items[i]));
	for (size_t i = 0; i < table->strings.nr; i++)
		base64_deflate_bytes(b, table->strings.items[i], strlen(table->strings.items[i]));
}

static void put_functions(struct base64_deflate *b, const struct function_table *functions,
			  const struct string_ids *ids)
{
	size_t nr = functions->functions.nr;

	base64_deflate_varint(b, nr);
	for (size_t i = 0; i < nr; i++)
		base64_deflate_varint(b, ids->name[i]);
	for (size_t i = 0; i < nr; i++)
		base64_deflate_varint(b, ids->file[i]);
	for (size_t i = 0; i < nr; i++)
		base64_deflate_varint(b, functions->functions.items[i].start_line);
	for (size_t i = 0; i < nr; i++)
		base64_deflate_u8(b, (uint8_t)functions->functions.items[i].kind);
}

static void put_nodes(struct base64_deflate *b, const struct call_tree *tree)
{
	base64_deflate_varint(b, tree->nr);
	for (size_t i = 0; i < tree->nr; i++)
		base64_deflate_varint(b, tree->function[i]);
	for (size_t i = 0; i < tree->nr; i++)
		base64_deflate_varint(b, (i ? tree->depth[i - 1] + 1 : 0) - tree->depth[i]);
	for (size_t i = 0; i < tree->nr; i++)
		base64_deflate_varint(b, tree->self[i]);
}

static int put_data(FILE *out, const struct profile *p, const struct function_table *functions,
		    const struct call_tree *tree)
{
	_cleanup_(string_ids_fini) struct string_ids ids = { 0 };
	_cleanup_free_ struct base64_deflate *b = malloc(sizeof(*b));
	_cleanup_free_ char *meta = NULL;
	const uint8_t head[] = { 'S', 'N', 'D', 'F', HTML_DATA_VERSION, 0, 0, 0 };
	int r;

	if (!b)
		return -ENOMEM;
	r = intern_strings(&ids, p, functions);
	if (!r)
		r = make_meta(p, functions, &meta);
	if (!r)
		r = base64_deflate_init(b, out);
	if (r)
		return r;
	base64_deflate_bytes(b, head, sizeof(head));
	base64_deflate_varint(b, strlen(meta));
	base64_deflate_bytes(b, meta, strlen(meta));
	put_strings(b, &ids.table);
	put_functions(b, functions, &ids);
	put_nodes(b, tree);
	return base64_deflate_finish(b);
}

static int html_write(const struct profile *p, const struct export_options *options, FILE *out)
{
	const char *place =
		memmem(viewer_html, viewer_html_size, VIEWER_DATA_PLACE, strlen(VIEWER_DATA_PLACE));
	_cleanup_(function_table_fini) struct function_table functions = { 0 };
	_cleanup_(call_tree_fini) struct call_tree tree = { 0 };
	const char *rest;
	int r;

	if (!place)
		return -EINVAL; /* web/build.mjs sees to it that it is there */
	r = function_table_init(&functions, p, MERGE_BY_NAME_AND_FILE, options->lines);
	if (!r)
		r = call_tree_init(&tree, p, &functions);
	if (r)
		return r;
	fwrite(viewer_html, 1, (size_t)(place - viewer_html), out);
	r = put_data(out, p, &functions, &tree);
	rest = place + strlen(VIEWER_DATA_PLACE);
	fwrite(rest, 1, viewer_html_size - (size_t)(rest - viewer_html), out);
	return r;
}

const struct export_ops export_html = {
	.name = "html",
	.extensions = (const char *const[]){ ".html", ".htm", NULL },
	.description = "flame graph: one interactive page that needs no network",
	.write = html_write,
};
