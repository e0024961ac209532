// SPDX-License-Identifier: Apache-2.0
/* OTLP of any bytes: read, written and read again as fuzz_pprof.c does it. */
#define FUZZED export_otlp
#include "fuzz_pprof.c"
