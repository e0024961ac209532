/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first include of every file of the walker: the kernel's side with clang -target bpf, or its
 * doubles for user space (bpf/host/). This is the only place that tells the two apart.
 */
#pragma once

#ifdef __bpf__
#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#define UNROLL _Pragma("unroll")
#define WALK_WORDS
#else
#include "bpf/host/bpf_host.h"
#endif

#include "abi/sample.h"
#include "abi/unwind.h"
