// SPDX-License-Identifier: Apache-2.0
/*
 * The profile is built anew from what is kept: each item is added to the new one when something
 * that is kept refers to it.
 */
#include "profile/collect.h"

#include <string.h>

enum {
	AGES = 32, /* powers of two of cuts; 0 is this cut and the last */
	/* What a stack takes beside its frames, in frames: its place, and in maps. */
	STACK_COST = 16,
};

struct collection {
	const struct profile *from;
	struct profile to;
	struct profile_collected moves;
	uint32_t since;
	const uint32_t *depths; /* by stack: so many outermost frames stay; NULL: all */
	VEC(uint32_t) frames;
	VEC(struct profile_line) lines;
	struct profile_moves samples[PROFILE_TYPES_MAX]; /* by type */
};

static int moves_init(struct profile_moves *m, size_t nr)
{
	m->to = malloc((nr + 1) * sizeof(*m->to));
	if (!m->to)
		return -ENOMEM;
	memset(m->to, 0xff, nr * sizeof(*m->to));
	m->nr = nr;
	return 0;
}

void profile_collected_fini(struct profile_collected *c)
{
	free(c->strings.to);
	free(c->files.to);
	free(c->functions.to);
	free(c->frames.to);
	free(c->stacks.to);
	free(c->processes.to);
	free(c->threads.to);
	*c = (struct profile_collected){ 0 };
}

static int begin(struct collection *c)
{
	const struct profile *p = c->from;
	int r = profile_init(&c->to);

	r = r ?: moves_init(&c->moves.strings, p->strings.strings.nr);
	r = r ?: moves_init(&c->moves.files, p->files.nr);
	r = r ?: moves_init(&c->moves.functions, p->functions.nr);
	r = r ?: moves_init(&c->moves.frames, p->frames.nr);
	r = r ?: moves_init(&c->moves.stacks, p->stacks.nr);
	r = r ?: moves_init(&c->moves.processes, p->processes.nr);
	return r ?: moves_init(&c->moves.threads, p->threads.nr);
}

/* --- one item, if it was not moved before ----------------------------------------------------- */

static int move_string(struct collection *c, uint32_t *id)
{
	uint32_t *to = &c->moves.strings.to[*id];
	int r = *to == PROFILE_GONE ? profile_string(&c->to, strtab_get(&c->from->strings, *id), to)
				    : 0;

	*id = *to;
	return r;
}

static int move_file(struct collection *c, uint32_t *id)
{
	struct profile_file file;
	uint32_t *to;
	int r = 0;

	if (*id == PROFILE_NO_FILE)
		return 0;
	to = &c->moves.files.to[*id];
	if (*to == PROFILE_GONE) {
		file = c->from->files.items[*id];
		r = profile_add_met_file(&c->to, strtab_get(&c->from->strings, file.path),
					 file.build_id, file.build_id_len, file.identity, to);
		if (r)
			return r;
		file.path = c->to.files.items[*to].path;
		file.name = c->to.files.items[*to].name;
		r = move_string(c, &file.go_build_id);
		if (!r)
			c->to.files.items[*to] = file;
	}
	*id = *to;
	return r;
}

static int move_function(struct collection *c, uint32_t *id)
{
	uint32_t *to = &c->moves.functions.to[*id];
	struct profile_function function;
	int r = 0;

	if (*to == PROFILE_GONE) {
		function = c->from->functions.items[*id];
		r = move_string(c, &function.name);
		r = r ?: move_string(c, &function.linkage_name);
		r = r ?: move_string(c, &function.source);
		r = r ?: profile_add_function(&c->to, &function, to);
	}
	*id = *to;
	return r;
}

static int move_lines(struct collection *c, const struct profile_frame *frame)
{
	int r = 0;

	c->lines.nr = 0;
	for (uint32_t i = 0; i < frame->nr_lines && !r; i++) {
		struct profile_line line = c->from->lines.items[frame->first_line + i];

		r = move_function(c, &line.function);
		r = r ?: vec_push(&c->lines, line);
	}
	return r;
}

static int move_frame(struct collection *c, uint32_t *id)
{
	uint32_t *to = &c->moves.frames.to[*id];
	struct profile_frame frame;
	int r = 0;

	if (*to == PROFILE_GONE) {
		frame = c->from->frames.items[*id];
		r = move_file(c, &frame.file);
		r = r ?: move_lines(c, &frame);
		if (!r && !frame.named_late)
			r = profile_add_named_frame(&c->to, &frame, c->lines.items, c->lines.nr,
						    to);
		else if (!r)
			r = profile_add_frame(&c->to, &frame, to)
				    ?: profile_set_lines(&c->to, *to, c->lines.items, c->lines.nr);
	}
	*id = *to;
	return r;
}

/* In place of a stack's frames from `first` on inwards. The kernel calls no code but its own. */
static int add_note(struct collection *c, const struct profile_stack *stack, uint32_t first,
		    uint32_t *ret)
{
	const struct profile *p = c->from;
	bool kernel = first < stack->nr &&
		      p->frames.items[p->stack_frames.items[stack->first + first]].kind ==
			      FRAME_KIND_KERNEL;
	const struct profile_frame frame = { .kind = kernel ? FRAME_KIND_KERNEL : FRAME_KIND_NATIVE,
					     .file = PROFILE_NO_FILE };
	struct profile_function function = { 0 };
	struct profile_line line = { 0 };
	int r = profile_string(&c->to, kernel ? PROFILE_KERNEL_NOT_KEPT : PROFILE_NOT_KEPT,
			       &function.name);

	r = r ?: profile_add_function(&c->to, &function, &line.function);
	return r ?: profile_add_named_frame(&c->to, &frame, &line, 1, ret);
}

static int move_stack(struct collection *c, uint32_t id)
{
	const struct profile_stack *stack = &c->from->stacks.items[id];
	uint32_t *to = &c->moves.stacks.to[id];
	uint32_t depth = c->depths ? c->depths[id] : UINT32_MAX, first = 0, note;
	int r = 0;

	c->frames.nr = 0;
	if (depth < stack->nr) {
		first = stack->nr - depth;
		r = add_note(c, stack, first, &note);
		r = r ?: vec_push(&c->frames, note);
	}
	for (uint32_t i = first; i < stack->nr && !r; i++) {
		uint32_t frame = c->from->stack_frames.items[stack->first + i];

		r = move_frame(c, &frame);
		r = r ?: vec_push(&c->frames, frame);
	}
	r = r ?: profile_add_stack(&c->to, c->frames.items, c->frames.nr, stack->stop, to);
	if (!r)
		c->to.stacks.items[*to].used = stack->used;
	return r;
}

static int move_process(struct collection *c, uint32_t *id)
{
	uint32_t *to = &c->moves.processes.to[*id];
	struct profile_process process;
	uint32_t *const texts[] = { &process.name,     &process.path,	   &process.command,
				    &process.owner,    &process.container, &process.pod,
				    &process.cgroup,   &process.service,   &process.attributes,
				    &process.variables };
	int r = 0;

	if (*to == PROFILE_GONE) {
		process = c->from->processes.items[*id];
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && !r; i++)
			r = move_string(c, texts[i]);
		r = r ?: profile_add_process(&c->to, process.pid, process.key, to);
		if (!r)
			c->to.processes.items[*to] = process;
	}
	*id = *to;
	return r;
}

static int move_thread(struct collection *c, uint32_t id)
{
	struct profile_thread thread = c->from->threads.items[id];
	const char *comm = strtab_get(&c->from->strings, thread.comm);
	const char *carrier = strtab_get(&c->from->strings, thread.carrier);
	uint32_t *to = &c->moves.threads.to[id];
	struct profile_thread *moved;
	int r = move_process(c, &thread.process);

	/* Both strings are noted as moved. */
	r = r ?: move_string(c, &thread.comm);
	r = r ?: move_string(c, &thread.carrier);
	r = r ?: profile_add_carried_thread(&c->to, thread.process, thread.tid, comm, carrier, to);
	if (r)
		return r;
	moved = &c->to.threads.items[*to];
	moved->start_ns = thread.start_ns;
	moved->end_ns = thread.end_ns;
	moved->used = thread.used;
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Types keep their numbers. */
static int move_types(struct collection *c)
{
	const struct profile *p = c->from;
	int r = vec_reserve(&c->to.others, p->others.nr);

	r = r ?: vec_reserve(&c->to.other_units, p->others.nr);
	for (size_t i = 0; i < p->others.nr && !r; i++) {
		struct profile_unit unit = p->other_units.items[i];

		r = move_string(c, &unit.type);
		r = r ?: move_string(c, &unit.unit);
		c->to.other_units.items[c->to.other_units.nr++] = unit;
		c->to.others.items[c->to.others.nr++] = (struct profile_cut){
			.events_dropped = p->others.items[i].events_dropped,
		};
	}
	return r;
}

/* All of this cut's, and they keep their numbers. */
static int move_contexts(struct collection *c)
{
	const struct profile *p = c->from;
	int r = 0;

	for (size_t i = 0; i < p->contexts.nr && !r; i++) {
		const struct profile_context *context = &p->contexts.items[i];
		struct profile_label labels[PROFILE_LABELS_MAX];
		uint32_t id;

		for (uint32_t k = 0; k < context->nr_labels && !r; k++) {
			uint32_t unit;

			labels[k] = p->labels.items[context->first_label + k];
			unit = (uint32_t)labels[k].unit;
			r = move_string(c, &labels[k].key);
			r = r ?: move_string(c, &labels[k].text);
			r = r ?: move_string(c, &unit);
			labels[k].unit = unit;
		}
		r = r ?: profile_add_context(&c->to, context, labels, context->nr_labels, &id);
	}
	return r;
}

/* Samples of this cut keep their numbers, and so events theirs, unless stacks become one. */
static int move_samples(struct collection *c, uint32_t type)
{
	const struct profile_cut *cut = profile_cut_of(c->from, type);
	int r = moves_init(&c->samples[type], cut->samples.nr);

	for (uint32_t i = 0; i < cut->samples.nr && !r; i++) {
		const struct profile_sample *s = &cut->samples.items[i];
		const struct profile_measured m = { .type = type,
						    .thread = c->moves.threads.to[s->thread],
						    .stack = c->moves.stacks.to[s->stack],
						    .context = profile_context_of(cut, i),
						    .value = s->count };

		r = profile_add_measured(&c->to, &m, &c->samples[type].to[i]);
	}
	return r;
}

/* Where samples have become one, events are of that one. */
static void take_events(struct profile_cut *to, struct profile_cut *from,
			const struct profile_moves *samples)
{
	for (size_t i = 0; i < from->events.nr; i++)
		from->events.items[i].sample = samples->to[from->events.items[i].sample];
	to->events.items = from->events.items;
	to->events.nr = from->events.nr;
	to->events.cap = from->events.cap;
	from->events.items = NULL;
	to->values.items = from->values.items;
	to->values.nr = from->values.nr;
	to->values.cap = from->values.cap;
	from->values.items = NULL;
}

static int move_rest(struct collection *c)
{
	struct profile *to = &c->to;
	int r = 0;

	to->host = c->from->host;
	to->unit = c->from->unit;
	to->frequency_hz = c->from->frequency_hz;
	to->cut.events_dropped = c->from->cut.events_dropped;
	to->cut.start_ns = c->from->cut.start_ns;
	to->cut.duration_ns = c->from->cut.duration_ns;
	uint32_t *const strings[] = { &to->host.name,	 &to->host.id,	      &to->host.arch,
				      &to->host.os,	 &to->unit.type,      &to->unit.unit,
				      &to->host.service, &to->host.attributes };

	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings) && !r; i++)
		r = move_string(c, strings[i]);
	return r;
}

static int move_all(struct collection *c)
{
	const struct profile *p = c->from;
	int r = 0;

	for (uint32_t i = 0; i < p->stacks.nr && !r; i++)
		if (p->stacks.items[i].used >= c->since)
			r = move_stack(c, i);
	for (uint32_t i = 0; i < p->threads.nr && !r; i++)
		if (p->threads.items[i].used >= c->since)
			r = move_thread(c, i);
	c->to.cut.number = p->cut.number;
	r = r ?: move_types(c);
	r = r ?: move_contexts(c);
	for (uint32_t type = 0; type < profile_nr_types(p) && !r; type++)
		r = move_samples(c, type);
	return r ?: move_rest(c);
}

static void take_all_events(struct collection *c, struct profile *p)
{
	take_events(&c->to.cut, &p->cut, &c->samples[0]);
	for (size_t i = 0; i < p->others.nr; i++)
		take_events(&c->to.others.items[i], &p->others.items[i], &c->samples[i + 1]);
}

static int build_anew(struct profile *p, uint32_t since, const uint32_t *depths,
		      struct profile_collected *ret)
{
	struct collection c = { .from = p, .since = since, .depths = depths };
	int r = begin(&c);

	r = r ?: move_all(&c);
	vec_free(&c.frames);
	vec_free(&c.lines);
	if (r) {
		profile_fini(&c.to);
		profile_collected_fini(&c.moves);
	} else {
		take_all_events(&c, p);
		c.to.full = p->full;
		profile_fini(p);
		*p = c.to;
		*ret = c.moves;
	}
	for (size_t i = 0; i < PROFILE_TYPES_MAX; i++)
		free(c.samples[i].to);
	return r;
}

int profile_collect(struct profile *p, uint32_t since, struct profile_collected *ret)
{
	return build_anew(p, since < p->cut.number ? since : p->cut.number, NULL, ret);
}

int profile_collect_to(struct profile *p, const uint32_t *depths, struct profile_collected *ret)
{
	return build_anew(p, 0, depths, ret);
}

static unsigned int age_of(const struct profile *p, const struct profile_stack *stack)
{
	uint32_t cuts = p->cut.number - stack->used;

	return cuts < 2 ? 0 : 31U - (unsigned int)__builtin_clz(cuts);
}

bool profile_choose_since(const struct profile *p, uint32_t *ret)
{
	uint64_t cost[AGES] = { 0 }, all = 0, kept;
	unsigned int age = 0;

	for (size_t i = 0; i < p->stacks.nr; i++) {
		const struct profile_stack *s = &p->stacks.items[i];

		cost[age_of(p, s)] += s->nr + STACK_COST;
		all += s->nr + STACK_COST;
	}
	kept = cost[0];
	while (age + 1 < AGES && kept + cost[age + 1] <= all / 2)
		kept += cost[++age];
	if (kept > all - all / 4 || p->cut.number < 2)
		return false;
	/* Ages up to here are of less than 2 << age cuts. */
	*ret = p->cut.number >= 2U << age ? p->cut.number - (2U << age) + 1 : 0;
	return all > 0;
}
