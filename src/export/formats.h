/* SPDX-License-Identifier: Apache-2.0 */
/* The formats by name, for the table in export.c and for tests. */
#pragma once

#include "export/export.h"

extern const struct export_ops export_folded;
extern const struct export_ops export_html;
extern const struct export_ops export_speedscope, export_firefox, export_perf;
extern const struct export_ops export_pprof;
extern const struct export_ops export_otlp;
