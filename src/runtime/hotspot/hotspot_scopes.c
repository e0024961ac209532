/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/hotspot/hotspot_scopes.h"
#include "util/sorted.h"

#include <errno.h>
#include <string.h>

/* pcDesc.hpp, the same from JDK 8 to 26. The first one of a table is at -1, the last at INT_MAX. */
struct pc_desc {
	int32_t pc_offset;
	int32_t scope_decode_offset;
	int32_t obj_decode_offset;
	int32_t flags;
};

/* The number of an nmethod's method means: no scope is described there (debugInfoRec.hpp). */
enum { SERIALIZED_NULL = 0 };
/* A bytecode's number is kept one larger: that of the way in is -1 (InvocationEntryBci). */
enum { BCI_BIAS = 1 };

int hotspot_read_unsigned5(const void *data, size_t size, bool no_zero, size_t *pos, uint32_t *ret)
{
	const uint8_t *bytes = data;
	uint32_t first_high = 192, excluded = no_zero, sum = 0;

	for (size_t i = 0; i < 5; i++) {
		uint8_t byte;

		if (*pos >= size || size - *pos <= i)
			return -EINVAL;
		byte = bytes[*pos + i];
		if (byte < excluded)
			return -EINVAL;
		sum += (uint32_t)(byte - excluded) << (6 * i);
		if (byte < first_high || i == 4) {
			*pos += i + 1;
			*ret = sum;
			return 0;
		}
	}
	return -EINVAL;
}

static struct pc_desc pc_desc_at(const struct hotspot_debug_info *info, size_t i)
{
	struct pc_desc desc;

	memcpy(&desc, (const char *)info->pcs + i * sizeof(desc), sizeof(desc));
	return desc;
}

/* The number of the first PcDesc at `offset` or behind it. */
static int find_pc_desc(const struct hotspot_debug_info *info, int64_t offset, size_t *ret)
{
	size_t nr = info->pcs_size / sizeof(struct pc_desc);
	size_t low = sorted_before(nr, i, pc_desc_at(info, i).pc_offset < offset);

	if (low == nr)
		return -EINVAL; /* there should be one at INT_MAX */
	*ret = low;
	return 0;
}

static int read_scope(const struct hotspot_debug_info *info, uint32_t at, uint32_t *sender_ret,
		      struct hotspot_scope *ret)
{
	uint32_t fields[3]; /* the sender's offset, the method, the bytecode */
	size_t pos = at;

	for (size_t i = 0; i < 3; i++) {
		int r = hotspot_read_unsigned5(info->scopes, info->scopes_size, info->no_zero, &pos,
					       &fields[i]);

		if (r < 0)
			return r;
	}
	/* Senders are written first, so that no chain can go round. */
	if (fields[0] >= at)
		return -EINVAL;
	*sender_ret = fields[0];
	ret->method = fields[1];
	ret->bci = ret->bci_to = (int32_t)(fields[2] - BCI_BIAS);
	return 0;
}

/* The scopes of PcDesc number `i`; their number. */
static int read_chain(const struct hotspot_debug_info *info, size_t i,
		      struct hotspot_scope ret[HOTSPOT_SCOPES_MAX])
{
	int32_t first = pc_desc_at(info, i).scope_decode_offset;
	uint32_t at = (uint32_t)first;
	int nr = 0;

	if (first < 0)
		return -EINVAL;
	while (at != SERIALIZED_NULL) {
		int r;

		if (nr == HOTSPOT_SCOPES_MAX)
			nr--; /* the outermost one is what the frame really is */
		r = read_scope(info, at, &at, &ret[nr]);
		if (r < 0)
			return r;
		nr++;
	}
	return nr;
}

/* Leaves of `a` what `b` has as well, from the outermost scope on; its number. In the innermost one
 * that they share they may be at different bytecodes. */
static int keep_shared(struct hotspot_scope *a, int nr_a, const struct hotspot_scope *b, int nr_b)
{
	int nr = 0;

	while (nr < nr_a && nr < nr_b && a[nr_a - nr - 1].method == b[nr_b - nr - 1].method) {
		int32_t to = b[nr_b - nr - 1].bci;

		a[nr_a - nr - 1].bci_to = to;
		nr++;
		if (a[nr_a - nr].bci != to)
			break;
	}
	memmove(a, a + nr_a - nr, sizeof(*a) * (size_t)nr);
	return nr;
}

int hotspot_find_call(const struct hotspot_debug_info *info, uint32_t offset,
		      struct hotspot_scope ret[HOTSPOT_SCOPES_MAX])
{
	struct hotspot_scope before[HOTSPOT_SCOPES_MAX], scopes[HOTSPOT_SCOPES_MAX];
	size_t i;
	int nr, nr_before;
	int r;

	r = find_pc_desc(info, offset, &i);
	if (r < 0)
		return r;
	nr = read_chain(info, i, scopes);
	if (nr < 0)
		return nr;
	if (!info->dense && pc_desc_at(info, i).pc_offset != (int64_t)offset) {
		nr_before = i ? read_chain(info, i - 1, before) : 0;
		if (nr_before < 0)
			return nr_before;
		nr = keep_shared(scopes, nr, before, nr_before);
	}
	memcpy(ret, scopes, sizeof(*ret) * (size_t)nr);
	return nr;
}

int hotspot_find_place(const struct hotspot_debug_info *info, uint32_t offset,
		       struct hotspot_scope ret[HOTSPOT_SCOPES_MAX])
{
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	size_t i;
	int nr, r;

	r = find_pc_desc(info, (int64_t)offset + 1, &i);
	if (r < 0)
		return r;
	nr = read_chain(info, i, scopes);
	if (nr < 0)
		return nr;
	memcpy(ret, scopes, sizeof(*ret) * (size_t)nr);
	return nr;
}
