// SPDX-License-Identifier: Apache-2.0
/*
 * HotSpot's debug information of compiled code and its line number tables. One byte of options, one
 * that says how many PcDescs there are, an offset in the code, a bytecode; then the PcDescs, and
 * the rest is the stream of scopes, and a line number table. Whatever they are, there is an end,
 * and nothing is written if there is none.
 */
#include "fuzz.h"
#include "runtime/hotspot/hotspot_lines.h"
#include "runtime/hotspot/hotspot_scopes.h"

#include <stdlib.h>
#include <string.h>

typedef int find_fn(const struct hotspot_debug_info *info, uint32_t offset,
		    struct hotspot_scope ret[HOTSPOT_SCOPES_MAX]);

static void check_scopes(const struct hotspot_debug_info *info, uint32_t offset, find_fn *find)
{
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX + 1], again[HOTSPOT_SCOPES_MAX + 1];
	int r;

	memset(scopes, 0x5a, sizeof(scopes));
	memcpy(again, scopes, sizeof(scopes));
	r = find(info, offset, scopes);
	if (r > HOTSPOT_SCOPES_MAX)
		abort();
	if (memcmp(&scopes[r > 0 ? r : 0], &again[r > 0 ? r : 0],
		   sizeof(scopes[0]) * (size_t)(HOTSPOT_SCOPES_MAX + 1 - (r > 0 ? r : 0))))
		abort();
	if (find(info, offset, again) != r || memcmp(scopes, again, sizeof(scopes)))
		abort();
}

static void check_lines(const void *table, size_t size, bool no_zero, int32_t bci)
{
	struct hotspot_line line = { UINT32_MAX, UINT32_MAX };

	if (hotspot_find_line(table, size, no_zero, bci, &line)) {
		if (line.line != UINT32_MAX || line.start_line != UINT32_MAX)
			abort();
		return;
	}
	if (line.line > 65535 || line.start_line > 65535 || (bci < -1 && line.line))
		abort();
	if (line.line && line.line < line.start_line)
		abort();
}

FUZZER(data, size)
{
	struct hotspot_debug_info info = { 0 };
	uint32_t offset;
	int16_t bci;

	if (size < 8)
		return 0;
	info.no_zero = data[0] & 1;
	info.dense = data[0] & 2;
	info.pcs_size = 16 * (size_t)data[1];
	memcpy(&bci, data + 2, sizeof(bci));
	memcpy(&offset, data + 4, sizeof(offset));
	data += 8;
	size -= 8;
	if (info.pcs_size > size)
		info.pcs_size = size;
	info.pcs = data;
	info.scopes = data + info.pcs_size;
	info.scopes_size = size - info.pcs_size;
	check_scopes(&info, offset, hotspot_find_place);
	check_scopes(&info, offset, hotspot_find_call);
	check_lines(info.scopes, info.scopes_size, info.no_zero, bci);
	return 0;
}
