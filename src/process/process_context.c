// SPDX-License-Identifier: Apache-2.0
#include "process/process_context.h"

#include "process/memory.h"
#include "process/process_internal.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 2, TRIES = 3 };

/* In the process's own byte order. */
struct header {
	char signature[8];
	uint32_t version, size;
	uint64_t stamp; /* CLOCK_BOOTTIME; 0 while it is written */
	uint64_t message;
};

_Static_assert(sizeof(struct header) == 32, "others write it");

static const char signature[8] = { 'O', 'T', 'E', 'L', '_', 'C', 'T', 'X' };

void process_context_fini(struct process_context *c)
{
	free(c->data);
	*c = (struct process_context){ 0 };
}

struct search {
	uint64_t addr;
	size_t nr;
};

/* prctl() may have named it, or the memfd that it is of. */
static int find(void *ctx, const struct maps_entry *entry)
{
	static const char *const names[] = { "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
					     "/memfd:OTEL_CTX" };
	struct search *s = ctx;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(entry->path, names[i]) && !entry->exec && entry->read) {
			s->addr = entry->start;
			return 1;
		}
	return ++s->nr > PROCESS_CONTEXT_MAPPINGS;
}

int process_context_find(int32_t pid, uint64_t *ret_addr)
{
	struct search s = { 0 };
	int r = proc_maps_read(pid, find, &s);

	if (r < 0)
		return r;
	if (!s.addr)
		return -ENOENT;
	*ret_addr = s.addr;
	return 0;
}

static int read_header(int32_t pid, uint64_t addr, struct header *ret)
{
	int r = process_read_memory(pid, addr, ret, sizeof(*ret));

	if (r)
		return r;
	if (memcmp(ret->signature, signature, sizeof(signature)))
		return -EBADMSG;
	if (ret->version != VERSION)
		return -ENOTSUP;
	return !ret->stamp ? -EAGAIN : ret->size > PROCESS_CONTEXT_MAX ? -E2BIG : 0;
}

/* What was copied is whole if the header is the same before and after. */
static int read_once(int32_t pid, uint64_t addr, uint64_t stamp, struct header *ret_header,
		     uint8_t **ret)
{
	struct header after;
	_cleanup_free_ uint8_t *data = NULL;
	int r = read_header(pid, addr, ret_header);

	if (r || ret_header->stamp == stamp)
		return r;
	data = malloc(ret_header->size + 1);
	if (!data)
		return -ENOMEM;
	r = ret_header->size ? process_read_memory(pid, ret_header->message, data, ret_header->size)
			     : 0;
	/* The old message may be gone when the new one is there. */
	if (read_header(pid, addr, &after) || memcmp(&after, ret_header, sizeof(after)))
		return -EAGAIN;
	if (!r)
		*ret = TAKE_PTR(data);
	return r ? r : 1;
}

int process_context_read(int32_t pid, uint64_t addr, uint64_t *stamp, struct process_context *ret)
{
	struct header header;
	uint8_t *data = NULL;
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = read_once(pid, addr, *stamp, &header, &data);
	if (r <= 0)
		return r;
	*stamp = header.stamp;
	*ret = (struct process_context){ .data = data, .size = header.size };
	return 1;
}
