// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps' definitions; their types and reasons are in maps.bpf.h. */
#include "bpf/prelude.bpf.h"
#include "bpf/maps.bpf.h"

struct walks_map walks SEC(".maps");
struct records_map records SEC(".maps");
struct rule_caches_map rule_caches SEC(".maps");
struct processes_map processes SEC(".maps");
struct files_map files SEC(".maps");
struct rules_map rules SEC(".maps");
struct known_map known SEC(".maps");
struct raw_map raws SEC(".maps");
struct lost_map lost SEC(".maps");
struct targets_map targets SEC(".maps");
struct samples_map samples SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";
