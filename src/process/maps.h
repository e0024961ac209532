/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /proc/PID/maps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maps_entry {
	uint64_t start, end, offset;
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	bool read, write, exec, shared;
	bool deleted;	  /* " (deleted)" stood behind the path and is cut off */
	const char *path; /* unescaped (\012); "", "[heap]", "[vdso]", "/memfd:x", "/usr/bin/y" */
};

/*
 * Calls `each` for every line, in order; a non-zero return ends the parse and is returned. Bad
 * lines are passed over. `path` is valid during the call only.
 */
int maps_parse(const char *text, size_t size,
	       int (*each)(void *ctx, const struct maps_entry *entry), void *ctx);
