// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_memory.h"

#include <string.h>

void replay_memory_fini(struct replay_memory *m)
{
	vec_free(&m->reads);
	vec_free(&m->bytes);
	m->full = false;
}

void replay_memory_cut(struct replay_memory *m, size_t nr)
{
	if (nr >= m->reads.nr)
		return;
	m->bytes.nr = m->reads.items[nr].at;
	m->reads.nr = nr;
}

void replay_memory_add(struct replay_memory *m, uint64_t addr, const void *data, size_t size)
{
	const struct replay_read read = { addr, (uint32_t)size, (uint32_t)m->bytes.nr };

	if (!size)
		return;
	if (size > REPLAY_MEMORY_MAX - m->bytes.nr || m->reads.nr >= REPLAY_READS_MAX ||
	    addr + size < addr || vec_reserve(&m->bytes, m->bytes.nr + size) ||
	    vec_push(&m->reads, read)) {
		m->full = true;
		return;
	}
	memcpy(m->bytes.items + m->bytes.nr, data, size);
	m->bytes.nr += size;
}

void replay_memory_blank(struct replay_memory *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->reads.nr; i++) {
		const struct replay_read *read = &m->reads.items[i];
		uint64_t from = read->addr > start ? read->addr : start,
			 to = read->addr + read->size < end ? read->addr + read->size : end;

		if (from < to)
			memset(m->bytes.items + read->at + (from - read->addr), 0, to - from);
	}
}

/* By address; the earlier read first, as its bytes stand first. */
static int order(const void *a, const void *b)
{
	const struct replay_read *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int in_time(const void *a, const void *b)
{
	const struct replay_read *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* The ranges that sorted reads make together; their bytes are not filled yet. */
static int join(const struct replay_memory *m, struct replay_memory *ret)
{
	uint32_t total = 0;

	for (size_t i = 0; i < m->reads.nr; i++) {
		const struct replay_read *read = &m->reads.items[i];
		struct replay_read *last =
			ret->reads.nr ? &ret->reads.items[ret->reads.nr - 1] : NULL;
		uint64_t end = read->addr + read->size;

		if (!last || read->addr > last->addr + last->size) {
			const struct replay_read fresh = { read->addr, read->size, total };

			if (vec_push(&ret->reads, fresh))
				return -ENOMEM;
			total += read->size;
		} else if (end > last->addr + last->size) {
			total += (uint32_t)(end - last->addr) - last->size;
			last->size = (uint32_t)(end - last->addr);
		}
	}
	if (vec_reserve(&ret->bytes, total))
		return -ENOMEM;
	ret->bytes.nr = total;
	return 0;
}

static const struct replay_read *range_of(const struct replay_memory *m, uint64_t addr)
{
	size_t lo = 0, n = m->reads.nr;

	if (!n)
		return NULL;
	while (n > 1) {
		size_t half = n / 2;

		if (m->reads.items[lo + half].addr <= addr)
			lo += half;
		n -= half;
	}
	return addr - m->reads.items[lo].addr < m->reads.items[lo].size ? &m->reads.items[lo]
									: NULL;
}

int replay_memory_merge(struct replay_memory *m)
{
	struct replay_memory merged = { 0 };

	if (!m->reads.nr)
		return 0;
	qsort(m->reads.items, m->reads.nr, sizeof(*m->reads.items), order);
	if (join(m, &merged)) {
		replay_memory_fini(&merged);
		return -ENOMEM;
	}
	qsort(m->reads.items, m->reads.nr, sizeof(*m->reads.items), in_time);
	for (size_t i = 0; i < m->reads.nr; i++) {
		const struct replay_read *read = &m->reads.items[i];
		const struct replay_read *range = range_of(&merged, read->addr);

		memcpy(merged.bytes.items + range->at + (read->addr - range->addr),
		       m->bytes.items + read->at, read->size);
	}
	merged.full = m->full;
	replay_memory_fini(m);
	*m = merged;
	return 0;
}

int replay_memory_read(const struct replay_memory *m, uint64_t addr, void *to, size_t size)
{
	const struct replay_read *range = range_of(m, addr);

	if (!range || size > range->size - (addr - range->addr))
		return -EFAULT;
	memcpy(to, m->bytes.items + range->at + (addr - range->addr), size);
	return 0;
}
