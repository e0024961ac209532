// SPDX-License-Identifier: Apache-2.0
#include "agent/report.h"

#include "export/proto/gzip.h"
#include "util/cleanup.h"

#include <errno.h>

void report_fini(struct report *report)
{
	free(report->data);
	*report = (struct report){ 0 };
}

static int compress(const void *data, size_t size, FILE *out)
{
	_cleanup_(gzip_writer_free_p) struct gzip_writer *w = NULL;
	int r = gzip_writer_new(out, &w);

	if (!r)
		r = gzip_write(w, data, size);
	return r ? r : gzip_finish(w);
}

struct making {
	report_fn *made;
	void *ctx;
};

static int pack_request(void *ctx, const void *request, size_t size, uint64_t samples)
{
	struct report report = { .plain_size = size, .samples = samples };
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

int report_make(const struct profile *p, enum otlp_schema schema, size_t max_size, report_fn *made,
		void *ctx)
{
	struct making making = { made, ctx };

	return otlp_write_parts(p, schema, max_size, pack_request, &making);
}
