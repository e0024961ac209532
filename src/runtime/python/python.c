// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <errno.h>

static int python_probe(const struct elf_file *elf, const char *path, struct runtime_dso **ret)
{
	(void)elf;
	(void)path;
	(void)ret;
	return -ENOENT;
}

const struct runtime_ops python_runtime = {
	.name = "python",
	.id = RUNTIME_PYTHON,
	.label = "cpython",
	.language = "Python",
	.probe = python_probe,
};
