// SPDX-License-Identifier: Apache-2.0
#include "agent/report.h"

#include "export/export.h"
#include "export/formats.h"
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

/* What `write` puts into a file in memory. */
static int into_memory(int (*write)(const void *what, size_t size, FILE *out), const void *what,
		       size_t size, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t data_size = 0;
	FILE *out = open_memstream(&data, &data_size);
	int r;

	if (!out)
		return -ENOMEM;
	r = write(what, size, out);
	if (fclose(out) && !r)
		r = -ENOMEM;
	if (r)
		return r;
	*ret = TAKE_PTR(data);
	*ret_size = data_size;
	return 0;
}

static int write_request(const void *profile, size_t size, FILE *out)
{
	const struct export_options options = { 0 };

	(void)size;
	return export_otlp.write(profile, &options, out);
}

int report_make(const struct profile *p, struct report *ret)
{
	struct report report = { .samples = profile_total(p) };
	_cleanup_free_ char *plain = NULL;
	int r = into_memory(write_request, p, 0, &plain, &report.plain_size);

	if (!r)
		r = into_memory(compress, plain, report.plain_size, &report.data, &report.size);
	if (!r)
		*ret = report;
	return r;
}
