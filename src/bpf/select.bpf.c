// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Of the programs that sample; on_switch (off_cpu.bpf.c) has a copy of its own. */
#include "bpf/prelude.bpf.h"
#include "bpf/select.bpf.h"

__noinline int select_current(void)
{
	return select_now(config_source);
}

__noinline int select_uncounted(void)
{
	return select_now(SAMPLE_SOURCES_MAX);
}
