/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing a reader of texts. What is accepted is written, and read again: the sum has to be the
 * same, and so has that of each other text that can be read back.
 */
#pragma once

#include "export/formats.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static inline int read_checked(const struct export_ops *ops, const void *data, size_t size,
			       struct profile *p)
{
	char problem[200] = "";
	int r = profile_init(p);

	if (!r)
		r = ops->read(data, size, p, problem);
	if (r && r != -EBADMSG && r != -E2BIG && r != -ENOMEM)
		abort();
	if (r == -EBADMSG && (!*problem || !memchr(problem, '\0', sizeof(problem))))
		abort();
	return r;
}

static inline void write_and_read(const struct export_ops *ops, const struct profile *p)
{
	const struct export_options options = { 0 };
	_cleanup_free_ char *text = NULL;
	struct profile back = { 0 };
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return;
	r = ops->write(p, &options, out);
	fclose(out);
	if (r && r != -ENOMEM)
		abort();
	if (!r)
		r = read_checked(ops, text, size, &back);
	if (r == -EBADMSG || (!r && profile_total(&back) != profile_total(p)))
		abort();
	profile_fini(&back);
}

static inline void fuzz_text_reader(const struct export_ops *ops, const void *data, size_t size)
{
	struct profile p = { 0 };

	(void)ops->recognise(data, size);
	if (!read_checked(ops, data, size, &p)) {
		write_and_read(&export_folded, &p);
		/* Periods are counts times nanoseconds, and have to fit, too. */
		if (profile_total(&p) < UINT32_MAX)
			write_and_read(&export_perf, &p);
	}
	profile_fini(&p);
}
