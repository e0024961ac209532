/* SPDX-License-Identifier: Apache-2.0 */
/* What probe.c (text) and probe_find.c (the machine) share; nobody else includes this. */
#pragma once

#include "cli/probe.h"

/* "uprobe" */
const char *probe_kind_name(enum source_kind kind);
/* A further source of a probe's samples, of the same type. Takes over what `probe` owns. Logging.
 */
int probe_add_another(struct probes *p, struct probe *probe, const struct source_spec *source);
/* Takes over a text (NULL: there was no memory for it); 0 or -ENOMEM. */
int probe_keep(struct probe *probe, char *text);
