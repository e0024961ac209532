// SPDX-License-Identifier: Apache-2.0
#include "record/own.h"

#include "util/child.h"
#include "util/log.h"

#include <unistd.h>

static void add(void *ctx, pid_t pid)
{
	struct own *own = ctx;

	if (map_put(&own->pids, (uint32_t)pid, 1))
		log_debug("process %d is not known for our own: out of memory", pid);
}

static void look(struct own *own)
{
	map_clear(&own->pids);
	add(own, own->self);
	child_each(add, own);
}

int own_init(struct own *own)
{
	*own = (struct own){ .self = getpid() };
	look(own);
	return own_has(own, (uint32_t)own->self) ? 0 : -ENOMEM;
}

void own_fini(struct own *own)
{
	map_fini(&own->pids);
}

void own_on_event(struct own *own, const struct side_event *event)
{
	if (event->type == SIDE_FORK && own_has(own, (uint32_t)event->parent_pid))
		add(own, event->pid);
	else if (event->type == SIDE_EXIT && event->pid != own->self)
		map_del(&own->pids, (uint32_t)event->pid);
	else if (event->type == SIDE_LOST) /* some's end, perhaps */
		look(own);
}

bool own_has(const struct own *own, uint32_t pid)
{
	return map_get(&own->pids, pid) != NULL;
}
