// SPDX-License-Identifier: Apache-2.0
#include "record/waker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int add_text(struct profile *p, const char *key, const char *text, struct profile_label *ret)
{
	*ret = (struct profile_label){ .key = 0 };
	return profile_string(p, key, &ret->key) ?: profile_string(p, text, &ret->text);
}

static int add_number(struct profile *p, const char *key, int64_t number, struct profile_label *ret)
{
	*ret = (struct profile_label){ .number = number };
	return profile_string(p, key, &ret->key);
}

int waker_interrupt_label(struct profile *p, struct profile_label *ret)
{
	return add_text(p, "waker", "interrupt", ret);
}

int waker_labels(struct profile *p, const struct sample_header *header,
		 struct profile_label ret[WAKER_LABELS])
{
	char comm[SAMPLE_COMM_LEN + 1];

	snprintf(comm, sizeof(comm), "%.*s", SAMPLE_COMM_LEN, header->comm);
	return add_text(p, "waker", "thread", &ret[0]) ?:
	       add_number(p, "waker.pid", header->pid, &ret[1]) ?:
	       add_number(p, "waker.tid", header->tid, &ret[2]) ?:
	       add_text(p, "waker.comm", comm, &ret[3]);
}

static const struct profile_label *
find_label(const struct profile *p, const struct profile_label *labels, size_t nr, const char *key)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(strtab_get(&p->strings, labels[i].key), key))
			return &labels[i];
	return NULL;
}

int64_t waker_number(const struct profile *p, const struct profile_label *labels, size_t nr,
		     const char *key)
{
	const struct profile_label *found = find_label(p, labels, nr, key);

	return found ? found->number : 0;
}

/* What is no code, but to be read among frames. */
static int add_marker(struct profile *p, const char *name, struct waker_frames *to)
{
	const struct profile_frame frame = { .kind = FRAME_KIND_NATIVE, .file = PROFILE_NO_FILE };
	struct profile_function function = { .name = 0 };
	struct profile_line line = { .line = 0 };
	uint32_t id;
	int r;

	r = profile_string(p, name, &function.name);
	if (!r)
		r = profile_add_function(p, &function, &line.function);
	if (!r)
		r = profile_add_named_frame(p, &frame, &line, 1, &id);
	return r ? r : vec_push(&to->frames, id);
}

static int add_waker(struct profile *p, uint32_t waker, const char *comm, struct waker_frames *to)
{
	const struct profile_stack *s = &p->stacks.items[waker];
	char name[80];
	int r = 0;

	if (s->stop != STOP_COMPLETE) {
		snprintf(name, sizeof(name), "[waker truncated: %s]", profile_stop_name(s->stop));
		r = add_marker(p, name, to);
	}
	for (uint32_t i = s->nr; i > 0 && !r; i--)
		r = vec_push(&to->frames, p->stack_frames.items[s->first + i - 1]);
	if (r)
		return r;
	snprintf(name, sizeof(name), "[woken by] %s", comm);
	return add_marker(p, name, to);
}

int waker_join(struct profile *p, uint32_t sleep, uint32_t waker,
	       const struct profile_label *labels, size_t nr_labels, struct waker_frames *scratch,
	       uint32_t *ret)
{
	const struct profile_stack *s = &p->stacks.items[sleep];
	const struct profile_label *comm = find_label(p, labels, nr_labels, "waker.comm");
	int r;

	scratch->frames.nr = 0;
	if (comm) {
		p->stacks.items[waker].used = p->cut.number;
		r = add_waker(p, waker, strtab_get(&p->strings, comm->text), scratch);
	} else {
		r = add_marker(p, "[woken by an interrupt]", scratch);
	}
	for (uint32_t i = 0; i < s->nr && !r; i++)
		r = vec_push(&scratch->frames, p->stack_frames.items[s->first + i]);
	if (r)
		return r;
	return profile_add_stack(p, scratch->frames.items, scratch->frames.nr, s->stop, ret);
}
