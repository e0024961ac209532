// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps' and variables' definitions; what they are for is in maps.bpf.h. */
#include "bpf/prelude.bpf.h"
#include "bpf/maps.bpf.h"

struct walks_map walks SEC(".maps");
struct records_map records SEC(".maps");
struct rule_caches_map rule_caches SEC(".maps");
struct kernel_caches_map kernel_caches SEC(".maps");
struct kernel_made_map kernel_made SEC(".maps");
struct processes_map processes SEC(".maps");
struct anon_pages_map anon_pages SEC(".maps");
struct files_map files SEC(".maps");
struct rules_map rules SEC(".maps");
struct known_map known SEC(".maps");
struct raw_map raws SEC(".maps");
struct lost_map lost SEC(".maps");
struct targets_map targets SEC(".maps");
struct selection_map selection SEC(".maps");
struct facts_map facts SEC(".maps");
struct rejected_map rejected SEC(".maps");
struct rates_map rates SEC(".maps");
struct samples_map samples SEC(".maps");
struct hits_map hits SEC(".maps");
struct times_map times SEC(".maps");
struct sleepers_map sleepers SEC(".maps");
struct woken_map woken SEC(".maps");
struct walkers_map walkers SEC(".maps");

const volatile __u32 config_max_frames = SAMPLE_FRAMES_DEFAULT;
const volatile __u64 config_address_mask = (1ull << 48) - 1;
const volatile bool config_targets_only = false;
const volatile bool config_select = false;
const volatile bool config_kernel_threads = true;
const volatile bool config_nmi = false;
const volatile bool config_kernel = true;
const volatile __u32 config_kernel_frames = KERNEL_FRAMES_HELPER;
const volatile bool config_raw_too = false;
const volatile __u8 config_source = SOURCE_CLOCK;
const volatile __u32 config_value = VALUE_ONE;
const volatile __u64 config_rate = 0;
const volatile __u64 config_rate_ns = 1000000000;
const volatile struct argument_filter config_filter = { 0 };
const volatile bool config_at_entry = false;
const volatile __u64 config_schedule_start = 0;
const volatile __u64 config_schedule_size = 0;
const volatile bool config_kicked = false;
const volatile __u64 config_interrupts_start = 0;
const volatile __u64 config_interrupts_size = 0;
const volatile bool config_measure = false;

__u64 known_epoch = 0;
__u32 process_epoch = 0;
__u32 raws_sent = RAWS_WHOLE;
__u32 runtimes_off = 0;
struct kernel_code kernel_codes[KERNEL_CODES_MAX] = { 0 };

char LICENSE[] SEC("license") = "Dual BSD/GPL";
