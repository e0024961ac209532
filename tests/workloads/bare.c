// SPDX-License-Identifier: Apache-2.0
/* Calls the leaf of handmade_asm.S that has neither CFI nor a frame. */
#include "workload.h"

void asm_leaf_bare(uint64_t n);

KNOWN void with_bare_leaf(void)
{
	asm_leaf_bare(4 * MILLISECOND);
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		with_bare_leaf();
	_exit(0);
}
