// SPDX-License-Identifier: Apache-2.0
#include "agent/report.h"

#include "export/formats.h"
#include "export/proto/gzip.h"
#include "util/cleanup.h"

#include <errno.h>

void report_fini(struct report *report)
{
	free(report->data);
	*report = (struct report){ 0 };
}

/* One every few seconds, as long as the agent runs: it is made with less effort than a file is. */
static int compress(const void *data, size_t size, FILE *out)
{
	_cleanup_(gzip_writer_free_p) struct gzip_writer *w = NULL;
	int r = gzip_writer_new(out, GZIP_QUICK, &w);

	if (!r)
		r = gzip_write(w, data, size);
	return r ? r : gzip_finish(w);
}

struct making {
	report_fn *made;
	void *ctx;
};

static int pack_request(void *ctx, const void *request, size_t size, uint64_t samples, bool named)
{
	struct report report = { .plain_size = size, .samples = samples, .nameless = !named };
	const struct making *making = ctx;
	_cleanup_free_ char *data = NULL;
	FILE *out = open_memstream(&data, &report.size);
	int r;

	if (!out)
		return -ENOMEM;
	r = compress(request, size, out);
	if (fclose(out) && !r)
		r = -ENOMEM;
	if (r)
		return r;
	report.data = TAKE_PTR(data);
	making->made(making->ctx, &report);
	return 0;
}

/* As a whole: it takes little beside the profile (docs/formats/pprof.md, "Memory"). */
static int make_pprof(const struct profile *p, report_fn *made, void *ctx)
{
	struct report report = { .samples = profile_total(p) };
	_cleanup_free_ char *data = NULL;
	FILE *out = open_memstream(&data, &report.size);
	int r;

	if (!out)
		return -ENOMEM;
	r = export_pprof.write(p, &(struct export_options){ .lines = false }, out);
	if (fclose(out) && !r)
		r = -ENOMEM;
	if (r)
		return r;
	report.data = TAKE_PTR(data);
	made(ctx, &report);
	return 0;
}

int report_make(const struct profile *p, const struct report_options *options, report_fn *made,
		void *ctx)
{
	struct making making = { made, ctx };

	if (options->format == REPORT_PPROF)
		return make_pprof(p, made, ctx);
	return otlp_write_parts(p, options->schema, options->max_size, pack_request, &making);
}
