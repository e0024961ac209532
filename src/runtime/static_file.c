// SPDX-License-Identifier: Apache-2.0
#include "runtime/static_file.h"

#include <elf.h>
#include <errno.h>

enum { CONSTANTS_MAX = 16 << 20 };

const char runtime_static_why[] =
	"it is linked statically, and exports nothing that is looked for by its name";

int runtime_static_constants(const struct elf_file *elf, struct elf_data *ret)
{
	const struct elf_section *constants = elf_file_section(elf, ".rodata");
	const struct elf_section *symbols = elf_file_section(elf, ".dynsym");
	int r;

	/* One that may lie anywhere (-static-pie) has a table of no symbol but the first. */
	if (!constants || constants->size > CONSTANTS_MAX ||
	    (symbols && symbols->size > sizeof(Elf64_Sym)) || elf_file_section(elf, ".gopclntab"))
		return -ENOENT;
	r = elf_file_section_data(elf, constants, CONSTANTS_MAX, ret);
	return !r || r == -ENOMEM ? r : -ENOENT;
}
