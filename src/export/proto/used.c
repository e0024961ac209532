// SPDX-License-Identifier: Apache-2.0
#include "export/proto/used.h"

uint32_t used_file_of(const struct profile *p, const struct profile_frame *f)
{
	if (f->file < p->files.nr)
		return f->file;
	if (f->kind == FRAME_KIND_KERNEL || profile_runtime_name(f->kind))
		return (uint32_t)p->files.nr + f->kind;
	return PROFILE_NO_FILE;
}

enum stop_reason used_stop(const struct profile_stack *s)
{
	return s->stop < STOP_MAX_ ? s->stop : STOP_NONE;
}

static void use_lines(struct used *u, struct used_file *file, const struct profile *p,
		      const struct profile_frame *f)
{
	bool filenames = f->nr_lines, line_numbers = f->nr_lines;

	for (uint32_t i = 0; i < f->nr_lines; i++) {
		const struct profile_line *line = &p->lines.items[f->first_line + i];

		u->functions[line->function] = true;
		filenames &= p->functions.items[line->function].source != 0;
		line_numbers &= line->line != 0;
	}
	if (!file)
		return;
	file->functions &= f->nr_lines != 0;
	file->filenames &= filenames;
	file->line_numbers &= line_numbers;
	file->inline_frames |= f->nr_lines > 1;
}

static void use_frame(struct used *u, const struct profile *p, uint32_t id)
{
	const struct profile_frame *f = &p->frames.items[id];
	uint32_t number = used_file_of(p, f);
	struct used_file *file = number == PROFILE_NO_FILE ? NULL : &u->files[number];

	if (u->frames[id])
		return;
	u->frames[id] = true;
	if (file && !file->used)
		*file = (struct used_file){ true, true, true, true, false, true };
	use_lines(u, file, p, f);
	if (file)
		file->in_range &= number < p->files.nr &&
				  f->address >= p->files.items[number].start &&
				  f->address < p->files.items[number].end;
}

static void use_samples(struct used *u, const struct profile *p, const struct profile_cut *cut)
{
	for (size_t i = 0; i < cut->samples.nr; i++) {
		uint32_t id = cut->samples.items[i].stack;
		const struct profile_stack *s = &p->stacks.items[id];

		if (!cut->samples.items[i].count || u->stacks[id])
			continue;
		u->stacks[id] = true;
		for (uint32_t at = 0; at < s->nr; at++)
			use_frame(u, p, p->stack_frames.items[s->first + at]);
		u->stops[used_stop(s)] = true;
	}
}

int used_init(struct used *u, const struct profile *p)
{
	*u = (struct used){
		.frames = calloc(p->frames.nr + 1, sizeof(*u->frames)),
		.stacks = calloc(p->stacks.nr + 1, sizeof(*u->stacks)),
		.functions = calloc(p->functions.nr + 1, sizeof(*u->functions)),
		.files = calloc(p->files.nr + USED_NO_FILES, sizeof(*u->files)),
	};
	if (!u->frames || !u->stacks || !u->functions || !u->files) {
		used_fini(u);
		return -ENOMEM;
	}
	for (uint32_t type = 0; type < profile_nr_types(p); type++)
		use_samples(u, p, profile_cut_of(p, type));
	u->stops[STOP_COMPLETE] = false;
	return 0;
}

void used_fini(struct used *u)
{
	free(u->frames);
	free(u->stacks);
	free(u->functions);
	free(u->files);
	*u = (struct used){ 0 };
}
