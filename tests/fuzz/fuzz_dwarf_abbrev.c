// SPDX-License-Identifier: Apache-2.0
/* Tables of abbreviations: the first byte chooses the sizes of forms, the second where to begin. */
#include "fuzz.h"
#include "dwarf/dwarf_abbrev.h"

#include <errno.h>
#include <stdlib.h>

static void check(const struct dwarf_abbrevs *t, const struct dwarf_abbrev *abbrev)
{
	const struct dwarf_attr *attrs = dwarf_abbrev_attrs(t, abbrev);
	uint64_t run = 0;

	if ((size_t)abbrev->first_attr + abbrev->nr_attrs > t->attrs.nr)
		abort();
	for (uint32_t i = abbrev->nr_attrs; i-- > 0;) {
		if (attrs[i].slot >= SLOT_MAX_)
			abort();
		/* Runs end where a size varies; and they are as long as what is in them. */
		if (!attrs[i].run_attrs != (attrs[i].size == FORM_SIZE_VARIES))
			abort();
		run = attrs[i].run_attrs > 1 ? run + attrs[i].size : attrs[i].size;
		if (attrs[i].run_attrs && attrs[i].run_size != run)
			abort();
		if (attrs[i].run_attrs > abbrev->nr_attrs - i)
			abort();
	}
}

FUZZER(data, size)
{
	struct dwarf_encoding encoding;
	struct dwarf_abbrevs t;
	int r;

	if (size < 2)
		return 0;
	encoding = (struct dwarf_encoding){ .version = 2 + data[0] % 4,
					    .address_size = data[0] & 16 ? 4 : 8,
					    .offset_size = data[0] & 32 ? 4 : 8 };
	r = dwarf_abbrevs_read(data + 2, size - 2, data[1], &encoding, &t);
	if (r) {
		if (r != -EINVAL && r != -ENOMEM)
			abort();
		return 0;
	}
	if (t.read > size - 2)
		abort();
	for (size_t i = 0; i < t.abbrevs.nr; i++) {
		const struct dwarf_abbrev *abbrev = &t.abbrevs.items[i];
		const struct dwarf_abbrev *found = dwarf_abbrevs_find(&t, abbrev->code);

		if (!found || found->code != abbrev->code)
			abort();
		check(&t, abbrev);
	}
	if (dwarf_abbrevs_find(&t, 0))
		abort();
	dwarf_abbrevs_fini(&t);
	return 0;
}
