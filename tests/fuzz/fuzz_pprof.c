// SPDX-License-Identifier: Apache-2.0
/*
 * pprof of any bytes. What can be read is written again, and reading that must give a profile with
 * the same sums, and as many samples at most.
 */
#include "fuzz.h"
#include "export/formats.h"

#ifndef FUZZED
#define FUZZED export_pprof
#endif

#include <errno.h>
#include <stdlib.h>

static char *written(const struct export_ops *ops, const struct profile *p, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);
	int r;

	if (!out)
		return NULL;
	r = ops->write(p, &(struct export_options){ 0 }, out);
	if (fclose(out) || r) {
		if (r && r != -ENOMEM)
			abort();
		free(text);
		return NULL;
	}
	return text;
}

static void compare(const struct profile *a, const struct profile *b)
{
	if (profile_total(a) != profile_total(b))
		abort();
	if (profile_complete(a) != profile_complete(b))
		abort();
	if (b->cut.samples.nr > a->cut.samples.nr)
		abort();
}

static void round_trip(const struct export_ops *ops, const struct profile *p)
{
	char problem[200] = "";
	struct profile again;
	size_t size;
	char *text = written(ops, p, &size);
	int r;

	if (!text)
		return;
	r = profile_init(&again);
	if (!r) {
		r = ops->read(text, size, &again, problem);
		if (r && r != -ENOMEM)
			abort();
		if (!r)
			compare(p, &again);
	}
	profile_fini(&again);
	free(text);
}

FUZZER(data, size)
{
	char problem[200] = "";
	struct profile p;
	int r;

	(void)FUZZED.recognise(data, size);
	if (profile_init(&p)) {
		profile_fini(&p);
		return 0;
	}
	r = FUZZED.read(data, size, &p, problem);
	if (r && r != -EBADMSG && r != -E2BIG && r != -ENOMEM)
		abort();
	if (r == -EBADMSG && !*problem)
		abort();
	if (!r)
		round_trip(&FUZZED, &p);
	profile_fini(&p);
	return 0;
}
