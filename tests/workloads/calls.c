// SPDX-License-Identifier: Apache-2.0
/*
 * Many short calls: a good part of the samples hits prologues and epilogues, where the frame is
 * half built.
 */
#include "workload.h"

struct many {
	uint64_t v[8];
};

/* Enough live values across the call that every callee-saved register is pushed. */
KNOWN uint64_t leaf(struct many *m)
{
	uint64_t a = m->v[0], b = m->v[1], c = m->v[2], d = m->v[3], e = m->v[4], f = m->v[5];

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)::CALL_CLOBBERED);
	m->v[6]++;
	return a + b + c + d + e + f;
}

KNOWN uint64_t middle(struct many *m, uint64_t n)
{
	volatile uint64_t local[5] = { n, n, n, n, n };
	uint64_t r = leaf(m) + local[n & 3];

	m->v[7] += r;
	return r ^ local[2];
}

KNOWN void outer(struct many *m)
{
	for (uint64_t i = 0; i < 40000; i++)
		m->v[i & 3] += middle(m, i);
	sink++;
}

int main(int argc, char **argv)
{
	struct many m = { .v = { 1, 2, 3, 4, 5, 6, 7, 8 } };

	work_init(argc, argv);
	while (work_left())
		outer(&m);
	_exit(0);
}
