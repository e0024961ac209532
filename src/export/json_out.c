// SPDX-License-Identifier: Apache-2.0
#include "export/json_out.h"

#include "util/cleanup.h"

#include <inttypes.h>
#include <string.h>

int json_put_string(FILE *out, const char *s)
{
	size_t len = strlen(s), nr;
	_cleanup_free_ char *clean = malloc(len + 1);

	if (!clean)
		return -ENOMEM;
	nr = profile_clean_text(s, len, clean, len + 1);
	fputc('"', out);
	for (size_t i = 0; i < nr; i++) {
		if (clean[i] == '"' || clean[i] == '\\')
			fputc('\\', out);
		fputc(clean[i], out);
	}
	fputc('"', out);
	return 0;
}

void json_put_ms(FILE *out, int64_t ns)
{
	uint64_t n = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	unsigned fraction = (unsigned)(n % 1000000);
	int digits = 6;

	fprintf(out, "%s%" PRIu64, ns < 0 ? "-" : "", n / 1000000);
	if (!fraction)
		return;
	for (; fraction % 10 == 0; fraction /= 10)
		digits--;
	fprintf(out, ".%0*u", digits, fraction);
}
