// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include "elf/file_id.h"
#include "symbol/demangle.h"
#include "symbol/kallsyms.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/cut.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* The profile's numbers are the table's. */
_Static_assert((int)FUNCTION_LANGUAGE_RUST == (int)SYMBOL_LANGUAGE_RUST &&
		       (int)FUNCTION_LANGUAGE_GO == (int)SYMBOL_LANGUAGE_GO &&
		       (int)FUNCTION_LANGUAGE_MAX_ == (int)SYMBOL_LANGUAGE_MAX_,
	       "languages");

/* Between two looks at what the kernel has loaded. */
#define KERNEL_AGAIN_PART 20 /* of the time */
#define KERNEL_STALE_NS	  (UINT64_C(30) * 1000000000)

enum {
	/* Thousands of functions may have names of many kilobytes: what all long ones of files
	 * take. Of what is beyond that, only as much is kept as is not long. */
	LONG_TEXT = 1 << 10,
	LONG_TEXTS_MAX = 8 << 20,
};

static void complain(void *ctx, const char *text)
{
	char line[1024];

	(void)ctx;
	/* It names files, which may be called anything. */
	profile_clean_text(text, strlen(text), line, sizeof(line));
	log_warn("%s", line);
}

int symbolizer_init(struct symbolizer *n, struct profile *profile,
		    const struct symbolizer_options *options)
{
	struct symbol_store_options store = { .complain = complain };

	*n = (struct symbolizer){ .profile = profile };
	if (options)
		n->options = *options;
	store.builder = n->options.builder;
	store.root = n->options.root;
	store.max_waiting = n->options.max_waiting;
	if (n->options.no_file_names)
		store.cache_dir = "";
	return symbol_store_new(&store, &n->store);
}

/* Its table is another file's as well, or goes. */
static void drop_file(struct symbolizer *n, struct symbolizer_file *file)
{
	vec_free(&file->waiting.items);
	if (file->table != UINT32_MAX)
		symbol_store_drop(n->store, file->table);
}

static void drop_files(struct symbolizer *n)
{
	for (size_t i = 0; i < n->files.nr; i++)
		drop_file(n, &n->files.items[i]);
	vec_free(&n->files);
}

void symbolizer_fini(struct symbolizer *n)
{
	drop_files(n);
	symbol_store_free(n->store);
	kallsyms_free(n->kernel);
	code_names_forget_all(&n->code);
	vec_free(&n->waiting.items);
	map_fini(&n->functions);
	*n = (struct symbolizer){ 0 };
}

/* --- files ------------------------------------------------------------------------------------ */

/* The file's record, made if there is none. */
static int get_file(struct symbolizer *n, uint32_t file, struct symbolizer_file **ret)
{
	int r;

	while (n->files.nr <= file) {
		r = vec_push(&n->files, (struct symbolizer_file){ .table = UINT32_MAX });
		if (r)
			return r;
	}
	*ret = &n->files.items[file];
	return 0;
}

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

static void note_ids(struct symbolizer *n, uint32_t index, const struct symbol_file *symbols)
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

int symbolizer_want(struct symbolizer *n, uint32_t file, const struct symbol_file *symbols,
		    bool (*hides)(const char *name, const char *source))
{
	struct symbolizer_file *known;
	int r;

	r = get_file(n, file, &known);
	if (r || known->table != UINT32_MAX)
		return r;
	note_ids(n, file, symbols);
	if (n->options.no_file_names)
		return 0;
	known->hides = n->options.runtimes.interpreter_frames ? NULL : hides;
	return symbol_store_want(n->store, symbols, &known->table);
}

void symbolizer_tick(struct symbolizer *n)
{
	symbol_store_tick(n->store);
}

bool symbolizer_is_busy(const struct symbolizer *n)
{
	return symbol_store_is_busy(n->store);
}

void symbolizer_wait(struct symbolizer *n)
{
	uint32_t patience =
		n->options.patience_ms ? n->options.patience_ms : SYMBOLIZER_PATIENCE_MS;
	size_t without =
		symbol_store_wait(n->store, patience, n->options.progress, n->options.progress_ctx);

	if (without)
		log_debug("%zu files are without symbols", without);
	n->kernel_next_ns = 0;
}

/* --- native frames ---------------------------------------------------------------------------- */

static size_t long_bytes(const char *text)
{
	size_t len = strlen(text);

	return len < LONG_TEXT ? 0 : len;
}

static int add_text(struct symbolizer *n, const char *text, uint32_t *ret)
{
	size_t bytes = long_bytes(text);
	char cut[LONG_TEXT];

	if (n->long_bytes + bytes > LONG_TEXTS_MAX)
		text = cut_text(text, cut, sizeof(cut));
	else
		n->long_bytes += bytes;
	return profile_string(n->profile, text, ret);
}

static int add_function(struct symbolizer *n, const struct symbol_frame *frame, uint32_t *ret)
{
	enum demangle_style style = n->options.short_names ? DEMANGLE_SHORT : DEMANGLE_FULL;
	struct profile_function function = { .start_line = frame->start_line,
					     .language = frame->language };
	char name[DEMANGLE_NAME_MAX];
	int r;

	demangle_name(frame->name, (enum symbol_language)frame->language, style, name,
		      sizeof(name));
	r = add_text(n, name, &function.name);
	if (!r && strcmp(name, frame->name))
		r = add_text(n, frame->name, &function.linkage_name);
	if (!r)
		r = add_text(n, frame->file, &function.source);
	return r ? r : profile_add_function(n->profile, &function, ret);
}

/* The profile's function of a table's function. */
static int find_function(struct symbolizer *n, uint32_t table, const struct symbol_frame *frame,
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
static bool is_hidden(const struct symbolizer_file *file, const struct symbol_frame *frame)
{
	return file->hides && frame->name && file->hides(frame->name, frame->file);
}

static int name_native(struct symbolizer *n, uint32_t frame, const struct symbolizer_file *file)
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
		/* Something is shown: what is to be left out whole was before it came here. */
		if ((i + 1 < nr || kept) && is_hidden(file, &found[i]))
			continue;
		lines[kept] =
			(struct profile_line){ .line = found[i].line, .column = found[i].column };
		r = find_function(n, file->table, &found[i], &lines[kept++].function);
	}
	return r || !nr ? r : profile_set_lines(n->profile, frame, lines, kept);
}

/* --- kernel frames ---------------------------------------------------------------------------- */

/*
 * Where the kernel's code is, which its file does not tell as the modules' do. BPF programs and
 * trampolines are outside: what is shown as the kernel's is made to cover them.
 */
static void note_kernel_code(struct symbolizer *n, const struct profile_frame *frame)
{
	struct profile_file *file;

	if (frame->file >= n->profile->files.nr)
		return;
	file = &n->profile->files.items[frame->file];
	if (!file->end && n->kernel)
		kallsyms_text(n->kernel, &file->start, &file->end);
	if (!file->end || frame->address < file->start)
		file->start = frame->address;
	if (frame->address >= file->end)
		file->end = frame->address + 1;
}

static bool in_kernel_text(const struct symbolizer *n, uint64_t address)
{
	uint64_t start, end;

	kallsyms_text(n->kernel, &start, &end);
	return address >= start && address < end;
}

static bool is_bpf(const struct symbolizer *n, uint64_t address)
{
	const char *module;

	return kallsyms_find(n->kernel, address, &module) && !strcmp(module, "bpf");
}

/*
 * Modules come and go: a place outside of the kernel's own code is looked for in what is there now,
 * or was not long ago if nothing was heard of a change. Of BPF programs each change is told.
 * Reading it takes a tenth of a second: where much changes, it is not done for most of the time.
 */
static bool wants_kernel(const struct symbolizer *n, uint64_t address)
{
	uint64_t now;

	if (!n->kernel_read_ns)
		return true;
	if (!n->kernel || in_kernel_text(n, address))
		return false;
	now = now_ns();
	if (n->kernel_changed)
		return now >= n->kernel_next_ns;
	return now >= n->kernel_read_ns + KERNEL_STALE_NS && !is_bpf(n, address);
}

static void read_kernel(struct symbolizer *n)
{
	uint64_t begin = now_ns();
	int r = n->kernel ? kallsyms_read_again(&n->kernel) : kallsyms_read(&n->kernel);

	n->kernel_read_ns = now_ns();
	n->kernel_next_ns = n->kernel_read_ns + KERNEL_AGAIN_PART * (n->kernel_read_ns - begin);
	n->kernel_changed = false;
	if (r)
		log_debug("no kernel symbols: %s", strerror(-r));
	else
		code_names_forget_gone(&n->code);
}

void symbolizer_kernel_changed(struct symbolizer *n)
{
	/* A module may be where a BPF program was. */
	code_names_forget_gone(&n->code);
	n->kernel_changed = true;
}

void symbolizer_kernel_code_lost(struct symbolizer *n)
{
	code_names_forget_all(&n->code);
	n->kernel_changed = true;
}

void symbolizer_kernel_code(struct symbolizer *n, uint64_t time_ns, uint64_t start, uint64_t len,
			    const char *name)
{
	if (!code_names_add(&n->code, time_ns, start, len, name))
		n->kernel_changed = true;
}

/* Of frames in [start, end) none waits any more. */
static int end_waiting(struct symbolizer *n, uint64_t start, uint64_t end)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < n->waiting.items.nr; i++) {
		uint32_t frame = n->waiting.items.items[i];
		uint64_t address = n->profile->frames.items[frame].address;
		const char *name;

		if (address - start >= end - start)
			n->waiting.items.items[kept++] = frame;
		else if (code_names_find(&n->code, address, &name) && name && !r)
			r = profile_name_frame(n->profile, frame, name);
	}
	n->waiting.items.nr = kept;
	return r;
}

int symbolizer_kernel_code_gone(struct symbolizer *n, uint64_t start, uint64_t len,
				const char *name)
{
	int r = end_waiting(n, start, start + len);

	if (!code_names_gone(&n->code, start, len, name))
		n->kernel_changed = true;
	return r;
}

void symbolizer_kernel_text(const struct symbolizer *n, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = *ret_end = 0;
	if (n->kernel)
		kallsyms_text(n->kernel, ret_start, ret_end);
}

/* False: its name is to be read, but not yet. */
/* By the time that symbols are read another module may be where the frame's was. `module`: of the
 * symbol that is there now, NULL or "": of none. */
static bool is_its_module(const struct symbolizer *n, uint32_t frame, const char *module)
{
	const struct profile *p = n->profile;
	const char *file =
		strtab_get(&p->strings, p->files.items[p->frames.items[frame].file].path);
	size_t len;

	if (!strcmp(file, "[kernel]"))
		return true;
	module = module ? module : "";
	module += *module == '[';
	len = strcspn(module, "]");
	return file[0] == '[' && !strncmp(file + 1, module, len) && !strcmp(file + 1 + len, "]");
}

static bool name_kernel(struct symbolizer *n, uint32_t frame)
{
	uint64_t address = n->profile->frames.items[frame].address;
	const char *name, *module;
	bool is_told = code_names_find(&n->code, address, &name);

	if (!n->kernel_read_ns || (!is_told && wants_kernel(n, address)))
		read_kernel(n);
	note_kernel_code(n, &n->profile->frames.items[frame]);
	if (!is_told) {
		if (!n->kernel)
			return true;
		if (n->kernel_changed && !in_kernel_text(n, address))
			return false;
		name = kallsyms_find(n->kernel, address, &module);
		if (name && !is_its_module(n, frame, module))
			name = NULL;
	}
	if (name)
		profile_name_frame(n->profile, frame, name);
	return true;
}

/* --- frames that wait ------------------------------------------------------------------------- */

int symbolizer_met(struct symbolizer *n, uint32_t frame)
{
	const struct profile_frame *f = &n->profile->frames.items[frame];
	struct symbolizer_file *file;
	int r;

	if (f->kind == FRAME_KIND_KERNEL)
		return vec_push(&n->waiting.items, frame);
	if (f->kind != FRAME_KIND_NATIVE || f->file == PROFILE_NO_FILE || n->options.no_file_names)
		return 0;
	r = get_file(n, f->file, &file);
	return r ? r : vec_push(&file->waiting.items, frame);
}

/* All that wait at a file, if its table is there, or will not come. */
static int apply_file(struct symbolizer *n, struct symbolizer_file *file)
{
	const struct symbol_table *table;
	int r = 0;

	if (!file->waiting.items.nr || file->table == UINT32_MAX)
		return 0;
	table = symbol_store_table(n->store, file->table);
	if (!table && symbol_store_state(n->store, file->table) == SYMBOL_STATE_BUILDING)
		return 0;
	for (size_t i = 0; i < file->waiting.items.nr && !r; i++)
		r = name_native(n, file->waiting.items.items[i], file);
	vec_free(&file->waiting.items);
	if (table)
		symbol_table_rest(table);
	return r;
}

int symbolizer_apply(struct symbolizer *n)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < n->waiting.items.nr; i++)
		if (!name_kernel(n, n->waiting.items.items[i]))
			n->waiting.items.items[kept++] = n->waiting.items.items[i];
	if (n->kernel && n->waiting.items.nr)
		kallsyms_rest(n->kernel);
	n->waiting.items.nr = kept;
	if (!kept)
		vec_free(&n->waiting.items);
	for (size_t i = 0; i < n->files.nr && !r; i++)
		r = apply_file(n, &n->files.items[i]);
	return r;
}

/* --- what the profile has forgotten ----------------------------------------------------------- */

static void move_frames(struct symbolizer_frames *f, const struct profile_moves *moves)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->items.nr; i++) {
		uint32_t to = profile_moved(moves, f->items.items[i]);

		if (to != PROFILE_GONE)
			f->items.items[kept++] = to;
	}
	f->items.nr = kept;
}

static int move_files(struct symbolizer *n, const struct profile_collected *c)
{
	__auto_type old = n->files;
	struct symbolizer_file *to;
	int r = 0;

	memset(&n->files, 0, sizeof(n->files));
	for (size_t i = 0; i < old.nr; i++) {
		struct symbolizer_file *file = &old.items[i];
		uint32_t number = profile_moved(&c->files, (uint32_t)i);

		move_frames(&file->waiting, &c->frames);
		if (number != PROFILE_GONE && !r)
			r = get_file(n, number, &to);
		if (number != PROFILE_GONE && !r)
			*to = *file;
		else
			drop_file(n, file);
	}
	free(old.items);
	if (r)
		drop_files(n);
	return r;
}

static size_t long_texts_of(const struct symbolizer *n, uint32_t function)
{
	const struct profile_function *f = &n->profile->functions.items[function];

	return long_bytes(strtab_get(&n->profile->strings, f->name)) +
	       long_bytes(strtab_get(&n->profile->strings, f->linkage_name)) +
	       long_bytes(strtab_get(&n->profile->strings, f->source));
}

/* Those of tables that went are nobody's; what finds no room is looked up again. */
static void move_functions(struct symbolizer *n, const struct profile_collected *c)
{
	struct map functions = n->functions;
	struct map_slot *slot;
	size_t i = 0;
	int r = 0;

	n->functions = (struct map){ 0 };
	n->long_bytes = 0;
	while ((slot = map_next(&functions, &i))) {
		uint32_t to = profile_moved(&c->functions, (uint32_t)slot->value);

		if (to == PROFILE_GONE)
			continue;
		n->long_bytes += long_texts_of(n, to);
		if (!r && symbol_store_table(n->store, (uint32_t)(slot->key >> 32)))
			r = map_put(&n->functions, slot->key, to);
	}
	map_fini(&functions);
}

int symbolizer_collected(struct symbolizer *n, const struct profile_collected *c)
{
	int r = move_files(n, c);

	move_functions(n, c);
	move_frames(&n->waiting, &c->frames);
	return r;
}
