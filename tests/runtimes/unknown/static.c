// SPDX-License-Identifier: Apache-2.0
/* Linked statically, with the texts (-DTEXTS="...", ...) that a runtime has which exports nothing.
 * Says that it is there, waits until standard input ends, then works (unknown_test.py). */
#include <stdio.h>
#include <unistd.h>

static const char texts[][64] = { TEXTS };
const char (*volatile kept)[64] = texts;

int main(void)
{
	char c;
	volatile unsigned int x = 1;

	printf("{\"ready\": %d}\n", (int)getpid());
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	while (kept)
		x = x * 3 + 1;
	return 0;
}
