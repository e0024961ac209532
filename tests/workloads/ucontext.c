// SPDX-License-Identifier: Apache-2.0
/*
 * Two coroutines by makecontext: one that links back (uc_link) and one without. The bottom frame
 * of each is libc's __start_context.
 */
#include "workload.h"

#include <ucontext.h>

static ucontext_t main_context, linked, unlinked;
static char linked_stack[65536], unlinked_stack[65536];

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void co_middle(int n)
{
	leaf();
	sink += n;
}

KNOWN void co_linked(void)
{
	for (;;) {
		co_middle(1);
		swapcontext(&linked, &main_context);
	}
}

KNOWN void co_unlinked(void)
{
	for (;;) {
		co_middle(2);
		swapcontext(&unlinked, &main_context);
	}
}

KNOWN void main_chain(void)
{
	leaf();
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	getcontext(&linked);
	linked.uc_stack.ss_sp = linked_stack;
	linked.uc_stack.ss_size = sizeof(linked_stack);
	linked.uc_link = &main_context;
	makecontext(&linked, co_linked, 0);
	getcontext(&unlinked);
	unlinked.uc_stack.ss_sp = unlinked_stack;
	unlinked.uc_stack.ss_size = sizeof(unlinked_stack);
	unlinked.uc_link = NULL;
	makecontext(&unlinked, co_unlinked, 0);
	while (work_left()) {
		main_chain();
		swapcontext(&main_context, &linked);
		main_chain();
		swapcontext(&main_context, &unlinked);
	}
	_exit(0);
}
