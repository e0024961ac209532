// SPDX-License-Identifier: Apache-2.0
/*
 * Stack pages that nobody has touched yet: a large array between frames, and a leaf whose frame
 * begins in such a page while its caller's stack pointer is a little above that page's end.
 */
#include "workload.h"

enum { PAGE_BYTES = 4096, ARRAY = 40 << 10, ABOVE_PAGE = 64, FRESH = 64 << 10 };

#define KEEP(p) __asm__ volatile("" ::"r"(p))

KNOWN void leaf(void)
{
	char untouched[640];

	KEEP(untouched);
	SPIN(4 * MILLISECOND);
	KEEP(untouched);
}

KNOWN void at_page(void)
{
	/* Far below what the loader has touched. */
	uintptr_t here = (uintptr_t)__builtin_alloca(16);
	char *p = __builtin_alloca(FRESH + ((here - ABOVE_PAGE) & (PAGE_BYTES - 1)));

	KEEP(p);
	leaf();
	KEEP(p);
	sink++;
}

KNOWN void with_array(void)
{
	char untouched[ARRAY];

	KEEP(untouched);
	at_page();
	KEEP(untouched);
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		with_array();
	_exit(0);
}
