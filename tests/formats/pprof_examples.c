// SPDX-License-Identifier: Apache-2.0
/*
 * Writes a profile made by hand to standard output: `pprof_examples FORMAT FLAGS`, FLAGS a number
 * of enum example_flags. What recordings rarely have is in there.
 */
#include "export/example_profiles.h"
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const struct export_ops *ops = argc == 3 ? export_by_name(argv[1]) : NULL;
	struct profile p;
	int r;

	if (!ops) {
		fprintf(stderr, "usage: pprof_examples FORMAT FLAGS\n");
		return 2;
	}
	r = profile_init(&p);
	if (!r)
		r = example_profile(&p, (unsigned)strtoul(argv[2], NULL, 0));
	if (!r)
		r = ops->write(&p, &(struct export_options){ 0 }, stdout);
	profile_fini(&p);
	if (r || fflush(stdout)) {
		fprintf(stderr, "pprof_examples: %s\n", strerror(-r));
		return 1;
	}
	return 0;
}
