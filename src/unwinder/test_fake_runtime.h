/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that answers what the test tells it to; every file is it. One of a test program's files
 * includes it: it is there in place of the library's own list. */
#pragma once

#include "runtime/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
	int probe, attach, refresh; /* what they answer */
	bool unknown;		    /* what files are: of a version that is not known */
	int version;
	uint64_t memory_max; /* of the file that was probed last */
	int nr_probes, nr_attaches, nr_refreshes, nr_detaches, nr_freed;
	uint64_t bias;
	uint64_t first_word; /* of the record */
	size_t nr_hidden;    /* of a file */
} fake;

static int fake_probe(const struct elf_file *elf, struct runtime_about *about,
		      struct runtime_dso **ret)
{
	runtime_is_version(about, "Fake %d", fake.version);
	fake.nr_probes++;
	fake.memory_max = elf->memory_max;
	if (fake.probe)
		return fake.probe;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->unknown = fake.unknown;
	return vec_reserve(&(*ret)->hidden, fake.nr_hidden);
}

static void fake_dso_free(struct runtime_dso *dso)
{
	fake.nr_freed++;
	vec_free(&dso->hidden);
	free(dso);
}

static int fake_attach(const struct runtime_dso *dso, const struct runtime_target *target,
		       void *record, struct runtime_proc **ret)
{
	(void)dso;
	fake.nr_attaches++;
	fake.bias = target->bias;
	memset(record, 0xab, sizeof(uint64_t)); /* must not show if it fails */
	if (fake.attach)
		return fake.attach;
	memcpy(record, &fake.first_word, sizeof(fake.first_word));
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static int fake_refresh(struct runtime_proc *rp, void *record)
{
	(void)rp;
	fake.nr_refreshes++;
	if (fake.refresh > 0)
		memcpy(record, &fake.first_word, sizeof(fake.first_word));
	return fake.refresh;
}

static void fake_detach(struct runtime_proc *rp)
{
	fake.nr_detaches++;
	free(rp);
}

static const struct runtime_ops fake_runtime = {
	.name = "fake",
	.id = 2,
	.label = "fake",
	.language = "Fake",
	.record_size = 8,
	.probe = fake_probe,
	.dso_free = fake_dso_free,
	.attach = fake_attach,
	.refresh = fake_refresh,
	.detach = fake_detach,
};

/* In place of the library's own list. */
const struct runtime_ops *const runtimes[RUNTIME_MAX_] = { [2] = &fake_runtime };
