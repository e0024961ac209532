// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <errno.h>

static int hotspot_probe(const struct elf_file *elf, const char *path, struct runtime_dso **ret)
{
	(void)elf;
	(void)path;
	(void)ret;
	return -ENOENT;
}

const struct runtime_ops hotspot_runtime = {
	.name = "hotspot",
	.id = RUNTIME_HOTSPOT,
	.label = "jvm",
	.language = "Java",
	.probe = hotspot_probe,
};
