/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampling program hangs on: a perf event on the clock of each CPU, opened and closed as
 * CPUs come and go (util/cpus.h). Part of bpf_sampler; apart so that tests need no BPF.
 */
#pragma once

#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct bpf_link;
struct bpf_program;

struct sampling {
	struct bpf_program *program;
	uint32_t frequency_hz;
	bool idle;
	VEC(struct bpf_link *) links; /* by CPU number; NULL: none */
};

/* A cpu_change of a struct sampling. */
int sampling_set_cpu(void *ctx, uint32_t cpu, bool online);
void sampling_fini(struct sampling *s);
