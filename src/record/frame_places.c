// SPDX-License-Identifier: Apache-2.0
#include "record/frame_places.h"

uint64_t frame_places_find(struct frame_places *p, uint32_t file, uint64_t address)
{
	for (uint32_t i = 0; i < p->nr && p->nr_looks < FRAME_PLACES_LOOKS_MAX; i++) {
		uint32_t at = (p->last + i) % p->nr;
		const struct unwind_mapping *m = &p->mappings[at];
		uint64_t pc = address + m->bias;

		p->nr_looks++;
		if (pc < m->start || pc >= m->end || p->file_of(p->ctx, m->file) != file)
			continue;
		p->last = at;
		return pc;
	}
	return 0;
}
