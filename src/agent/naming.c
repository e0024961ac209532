// SPDX-License-Identifier: Apache-2.0
#include "agent/naming.h"

#include "elf/file_id.h"
#include "symbol/demangle.h"
#include "symbol/kallsyms.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* The profile's numbers are the table's. */
_Static_assert((int)FUNCTION_LANGUAGE_RUST == (int)SYMBOL_LANGUAGE_RUST &&
		       (int)FUNCTION_LANGUAGE_GO == (int)SYMBOL_LANGUAGE_GO &&
		       (int)FUNCTION_LANGUAGE_MAX_ == (int)SYMBOL_LANGUAGE_MAX_,
	       "languages");

static void complain(void *ctx, const char *text)
{
	char line[1024];

	(void)ctx;
	/* It names files, which may be called anything. */
	profile_clean_text(text, strlen(text), line, sizeof(line));
	log_warn("%s", line);
}

int naming_init(struct naming *n, struct profile *profile, const struct naming_options *options)
{
	struct symbol_store_options store = { .complain = complain };

	*n = (struct naming){ .profile = profile };
	if (options)
		n->options = *options;
	store.builder = n->options.builder;
	store.root = n->options.root;
	return symbol_store_new(&store, &n->store);
}

void naming_fini(struct naming *n)
{
	symbol_store_free(n->store);
	kallsyms_free(n->kernel);
	vec_free(&n->files);
	map_fini(&n->functions);
	*n = (struct naming){ 0 };
}

/* --- files ------------------------------------------------------------------------------------ */

/* Where its code is, in its own address space. */
static void note_code(struct profile_file *file, const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || !s->memsz ||
		    s->vaddr + s->memsz < s->vaddr)
			continue;
		if (!file->end || s->vaddr < file->start) {
			file->start = s->vaddr;
			file->offset = s->offset;
		}
		if (s->vaddr + s->memsz > file->end)
			file->end = s->vaddr + s->memsz;
	}
}

static void note_ids(struct naming *n, uint32_t index, const struct symbol_file *symbols)
{
	struct profile_file *file = &n->profile->files.items[index];
	char go[GO_BUILD_ID_MAX];

	note_code(file, symbols->elf);
	if (symbols->fd >= 0)
		file->has_file_id = !file_id_of_fd(symbols->fd, file->file_id);
	else
		file->has_file_id =
			!file_id_of_memory(symbols->image, symbols->size, file->file_id);
	if (!elf_file_go_build_id(symbols->elf, go) &&
	    profile_string(n->profile, go, &file->go_build_id))
		log_debug("no room for a Go build id");
}

int naming_want(struct naming *n, uint32_t file, const struct symbol_file *symbols,
		bool (*folds)(const char *name))
{
	int r;

	while (n->files.nr <= file) {
		r = vec_push(&n->files, (struct naming_file){ .table = UINT32_MAX });
		if (r)
			return r;
	}
	if (n->files.items[file].table != UINT32_MAX)
		return 0;
	note_ids(n, file, symbols);
	n->files.items[file].folds = n->options.runtimes.interpreter_frames ? NULL : folds;
	return symbol_store_want(n->store, symbols, &n->files.items[file].table);
}

void naming_forget(struct naming *n)
{
	map_fini(&n->functions);
	/* Modules and BPF programs come and go. */
	kallsyms_free(n->kernel);
	n->kernel = NULL;
	n->kernel_tried = false;
}

void naming_tick(struct naming *n)
{
	symbol_store_tick(n->store);
}

void naming_wait(struct naming *n)
{
	uint32_t patience = n->options.patience_ms ? n->options.patience_ms : NAMING_PATIENCE_MS;
	size_t without =
		symbol_store_wait(n->store, patience, n->options.progress, n->options.progress_ctx);

	if (without)
		log_debug("%zu files are without symbols", without);
}

/* --- native frames ---------------------------------------------------------------------------- */

static int add_function(struct naming *n, const struct symbol_frame *frame, uint32_t *ret)
{
	enum demangle_style style = n->options.short_names ? DEMANGLE_SHORT : DEMANGLE_FULL;
	struct profile_function function = { .start_line = frame->start_line,
					     .language = frame->language };
	char name[DEMANGLE_NAME_MAX];
	int r;

	demangle_name(frame->name, (enum symbol_language)frame->language, style, name,
		      sizeof(name));
	r = profile_string(n->profile, name, &function.name);
	if (!r && strcmp(name, frame->name))
		r = profile_string(n->profile, frame->name, &function.linkage_name);
	if (!r)
		r = profile_string(n->profile, frame->file, &function.source);
	return r ? r : profile_add_function(n->profile, &function, ret);
}

/* The profile's function of a table's function. */
static int find_function(struct naming *n, uint32_t table, const struct symbol_frame *frame,
			 uint32_t *ret)
{
	uint64_t key = (uint64_t)table << 32 | frame->function;
	uint64_t *known = map_get(&n->functions, key);
	int r;

	if (known) {
		*ret = (uint32_t)*known;
		return 0;
	}
	r = add_function(n, frame, ret);
	return r ? r : map_put(&n->functions, key, *ret);
}

/* Is it a function that was inlined into the next one, and only implements a script frame? */
static bool is_folded(const struct naming_file *file, const struct symbol_frame *frame, bool last)
{
	return !last && file->folds && frame->name && file->folds(frame->name);
}

static int name_native(struct naming *n, uint32_t frame, const struct naming_file *file)
{
	const struct symbol_table *t = symbol_store_table(n->store, file->table);
	struct symbol_frame found[SYMBOL_FRAMES_MAX];
	struct profile_line lines[SYMBOL_FRAMES_MAX];
	size_t nr = 0, kept = 0;
	int r = 0;

	if (t)
		nr = symbol_table_find(t, n->profile->frames.items[frame].address,
				       !n->options.no_inlines, found, SYMBOL_FRAMES_MAX);
	for (size_t i = 0; i < nr && !r; i++) {
		if (is_folded(file, &found[i], i + 1 == nr))
			continue;
		lines[kept] =
			(struct profile_line){ .line = found[i].line, .column = found[i].column };
		r = find_function(n, file->table, &found[i], &lines[kept++].function);
	}
	return r || !nr ? r : profile_set_lines(n->profile, frame, lines, kept);
}

/* --- kernel frames ---------------------------------------------------------------------------- */

static void name_kernel(struct naming *n, uint32_t frame)
{
	const char *name, *module;
	int r;

	if (!n->kernel_tried) {
		n->kernel_tried = true;
		r = kallsyms_read(&n->kernel);
		if (r)
			log_debug("no kernel symbols: %s", strerror(-r));
	}
	if (!n->kernel)
		return;
	name = kallsyms_find(n->kernel, n->profile->frames.items[frame].address, &module);
	if (name)
		profile_name_frame(n->profile, frame, name);
}

int naming_apply(struct naming *n)
{
	const struct profile *p = n->profile;
	int r = 0;

	for (uint32_t i = 0; i < p->frames.nr && !r; i++) {
		const struct profile_frame *frame = &p->frames.items[i];

		if (frame->nr_lines)
			continue;
		if (frame->kind == FRAME_KIND_KERNEL)
			name_kernel(n, i);
		else if (frame->kind == FRAME_KIND_NATIVE && frame->file < n->files.nr &&
			 n->files.items[frame->file].table != UINT32_MAX)
			r = name_native(n, i, &n->files.items[frame->file]);
	}
	return r;
}
