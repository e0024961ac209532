// SPDX-License-Identifier: Apache-2.0
#include "unwinder/runtimes.h"
#include "elf/elf_dynamic.h"
#include "process/memory.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/owners.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#endif

enum {
	/* Between two tries to attach to what was not ready: doubles up to the second one. A
	 * runtime is mapped some milliseconds before it works. */
	RETRY_FIRST_NS = 5000000,
	RETRY_LAST_NS = 1000000000,
	/* Between two looks whether a runtime has moved something; all processes' come together. */
	REFRESH_NS = 1000000000,
	/* How many times sooner, RETRY_FIRST_NS and its doubles apart: over a second in all. */
	SOON_TRIES = 8,
	/* Until a file that was put off is looked at. */
	PUT_OFF_NS = 50000000,
	/* Between two looks, when walks could not read what they knew of. */
	MISSED_PAUSE_NS = 50000000,
	DYNAMIC_STRINGS_MAX = 1 << 20,
	/* Of a file that is looked at: all are gone through, again and again. Real ones have some
	 * tens of each. */
	SEGMENTS_MAX = 128,
	SECTIONS_MAX = 4096,
	/* Kept of files that are not root's: of a large program of Go's it is a third of a MB, and
	 * an owner may have a third. */
	DSO_BYTES_MAX = 24 << 20,
	DSO_BYTES_EACH = 16 << 10, /* beside the lists of functions */
	/* Read of one at a time, for some hundredths of a second, beside what --memory-limit is
	 * for: 25 MB of a large program of Go's. Whoever limits our memory leaves so much. */
	PROBE_BYTES_MAX = 48 << 20,
	/* For so long what attach() finds may make no sense: it is being written. */
	READY_NS = 3000000000u,
	/* Things that were said of files; then all are forgotten. */
	SAID_MAX = 4096,
};

enum looked_at { NOT_LOOKED_AT, LOOKED_AT, LOOKED_AT_UNKNOWN /* meet_unknown() */ };

void runtimes_init(struct runtimes *r, struct process_table *processes)
{
	*r = (struct runtimes){ .processes = processes, .machine = HOST_MACHINE };
}

void runtimes_fini(struct runtimes *r)
{
	for (size_t i = 0; i < r->dsos.nr; i++)
		if (r->dsos.items[i])
			r->dsos.items[i]->ops->dso_free(r->dsos.items[i]);
	vec_free(&r->dsos);
	vec_free(&r->looked_at);
	time_shares_fini(&r->file_time);
	map_fini(&r->dso_bytes);
	map_fini(&r->said);
}

static uint64_t kept_of(const struct runtimes *r, uint32_t owner)
{
	const uint64_t *bytes = map_get(&r->dso_bytes, owner);

	return bytes ? *bytes : 0;
}

static uint64_t bytes_of(const struct runtime_dso *dso)
{
	return DSO_BYTES_EACH +
	       (dso->interpreter_functions.cap + dso->hidden.cap + dso->functions.cap) *
		       sizeof(struct code_range);
}

/* 0, or -ENOBUFS: that owner, or all, have too much already. */
static int keep_dso(struct runtimes *r, uint32_t owner, struct runtime_dso *dso)
{
	uint64_t bytes = bytes_of(dso), all = kept_of(r, UINT32_MAX), each = kept_of(r, owner);

	if (owner_is_trusted(owner))
		return 0;
	if (bytes > DSO_BYTES_MAX - all || bytes + each > DSO_BYTES_MAX / OWNERS_PART)
		return -ENOBUFS;
	if (map_put(&r->dso_bytes, UINT32_MAX, all + bytes))
		return -ENOMEM;
	if (map_put(&r->dso_bytes, owner, each + bytes)) {
		(void)map_put(&r->dso_bytes, UINT32_MAX, all);
		return -ENOMEM;
	}
	dso->charged = owner;
	return 0;
}

static void give_back_dso(struct runtimes *r, const struct runtime_dso *dso)
{
	uint64_t bytes = bytes_of(dso), *each = map_get(&r->dso_bytes, dso->charged),
		 *all = map_get(&r->dso_bytes, UINT32_MAX);

	if (!dso->charged || !each || !all)
		return;
	*all -= bytes;
	*each -= bytes;
	if (!*each)
		map_del(&r->dso_bytes, dso->charged);
}

void runtimes_forget_file(struct runtimes *r, uint32_t index)
{
	if (index >= r->looked_at.nr)
		return;
	if (r->dsos.items[index]) {
		give_back_dso(r, r->dsos.items[index]);
		r->dsos.items[index]->ops->dso_free(r->dsos.items[index]);
	}
	r->dsos.items[index] = NULL;
	r->looked_at.items[index] = NOT_LOOKED_AT;
}

/* --- files ----------------------------------------------------------------------------------- */

/* -ENOTSUP: it is *ret_id, of a version that can't be walked. */
static int probe(const struct elf_file *elf, uint32_t off, struct runtime_about *about,
		 struct runtime_dso **ret, uint32_t *ret_id)
{
	int r;

	if (elf->nr_segments > SEGMENTS_MAX || elf->nr_sections > SECTIONS_MAX)
		return -ENOENT;
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		if (!runtimes[id] || !runtimes[id]->probe || off & 1u << id)
			continue;
		*about = (struct runtime_about){ 0 };
		r = runtimes[id]->probe(elf, about, ret);
		if (!r) {
			(*ret)->ops = runtimes[id];
			if (!(*ret)->unknown)
				*about->why = '\0';
			(*ret)->about = *about;
		}
		*ret_id = id;
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* 0, and *ret is the runtime that the file is; else it is none, or (-ENOMEM, -EMFILE, -ENFILE) the
 * next process's turn to try. */
static int probe_file(const struct runtimes *r, const struct mapped_file *file, bool bounded,
		      struct runtime_about *about, struct runtime_dso **ret, uint32_t *ret_id)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	int err = file->is_elf ? mapped_file_elf(r->processes, file, &elf) : -ENOENT;

	if (!err) {
		elf->memory_max = bounded ? PROBE_BYTES_MAX : 0;
		err = probe(elf, r->options.off, about, ret, ret_id);
	}
	if (err && err != -ENOENT)
		log_debug("%s: not looked for a runtime: %s", file->path, strerror(-err));
	return err;
}

/* Is that said of such a file for the first time? */
static bool is_news(struct runtimes *r, const struct mapped_file *file, const char *text)
{
	const struct {
		uint64_t inode, mtime_ns;
		uint32_t dev_major, dev_minor;
	} file_only = {
		.inode = file->key.inode,
		.mtime_ns = file->mtime_ns,
		.dev_major = file->key.dev_major,
		.dev_minor = file->key.dev_minor,
	};
	uint64_t key = XXH3_64bits(text, strlen(text));

	/* Each container has its own copy of one image's file. */
	key = file->build_id_len ? XXH3_64bits_withSeed(file->build_id, file->build_id_len, key)
				 : XXH3_64bits_withSeed(&file_only, sizeof(file_only), key);
	if (map_get(&r->said, key))
		return false;
	if (r->said.nr >= SAID_MAX)
		map_clear(&r->said);
	(void)map_put(&r->said, key, 1);
	return true;
}

/* Of a version or a build that is not known. It is said and counted once, here, of all runtimes. */
static void meet_unknown(struct runtimes *r, uint32_t index, uint32_t id,
			 const struct runtime_about *about)
{
	const struct mapped_file *file = r->processes->files.items[index];
	char text[384];

	if (r->looked_at.items[index] == LOOKED_AT_UNKNOWN)
		return;
	r->looked_at.items[index] = LOOKED_AT_UNKNOWN;
	if (r->tell) {
		r->tell(r->tell_ctx, file, runtimes[id], about);
		return;
	}
	runtime_about_unsupported(runtimes[id], about, text, sizeof(text));
	if (!is_news(r, file, text))
		return;
	r->nr_unknown[id]++;
	log_warn("%.512s: %s; 'sonde doctor' lists what is supported", file->path, text);
}

bool runtimes_look_at(struct runtimes *r, uint32_t index)
{
	const struct mapped_file *file = r->processes->files.items[index];
	bool bounded = r->file_time.part && file->is_elf && !owner_is_trusted(file->owner);
	struct runtime_about about = { 0 };
	struct runtime_dso *dso = NULL;
	uint32_t id = RUNTIME_NATIVE;
	uint64_t begin = 0;
	int err;

	while (r->looked_at.nr <= index)
		if (vec_push(&r->dsos, NULL) || vec_push(&r->looked_at, NOT_LOOKED_AT))
			return true;
	if (r->looked_at.items[index] || file->state != FILE_OPEN)
		return true;
	if (bounded && !time_shares_begin(&r->file_time, file->owner, &begin))
		return false;
	err = probe_file(r, file, bounded, &about, &dso, &id);
	if (bounded)
		time_shares_end(&r->file_time, file->owner, begin);
	if (!err && r->file_time.part)
		err = keep_dso(r, file->owner, dso);
	if (err && dso)
		dso->ops->dso_free(dso);
	/* No descriptor or memory was to be had. */
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return true;
	r->looked_at.items[index] = LOOKED_AT;
	if (id != RUNTIME_NATIVE && (err == -ENOTSUP || (!err && dso->unknown)))
		meet_unknown(r, index, id, &about);
	if (err == -ENOBUFS)
		log_debug("%s: too much is kept of files of user %u", file->path, file->owner);
	if (err)
		return true;
	r->dsos.items[index] = dso;
	r->met |= 1u << dso->ops->id;
	log_debug("%s: %s", file->path, dso->ops->name);
	return true;
}

/* Does a string of the file's dynamic ones begin so? The names of libraries are among them. */
static bool has_string(const char *strings, size_t size, const char *begin)
{
	size_t len = strlen(begin);

	for (size_t at = 0; at + len < size; at += strnlen(strings + at, size - at) + 1)
		if (!memcmp(strings + at, begin, len))
			return true;
	return false;
}

static uint32_t runtimes_it_leads_to(const struct elf_file *elf)
{
	_cleanup_free_ char *strings = NULL;
	struct elf_dynamic dynamic;
	uint32_t found = 0;

	if (elf_dynamic_read(elf, &dynamic) || dynamic.strings_size > DYNAMIC_STRINGS_MAX)
		return 0;
	strings = malloc(dynamic.strings_size + 1);
	if (!strings || elf_file_read_vaddr(elf, dynamic.strings, strings, dynamic.strings_size))
		return 0;
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		if (runtimes[id] && runtimes[id]->library &&
		    has_string(strings, dynamic.strings_size, runtimes[id]->library))
			found |= 1u << id;
	return found;
}

uint32_t runtimes_of_program(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct runtime_about about;
	struct runtime_dso *dso = NULL;
	uint32_t id = RUNTIME_NATIVE;

	if (fd < 0 || elf_file_open_fd(fd, &elf))
		return 0;
	/* What is to be said is said when it runs. */
	if (probe(elf, 0, &about, &dso, &id))
		return runtimes_it_leads_to(elf);
	dso->ops->dso_free(dso);
	return 1u << id;
}

static bool begins_with_any(const char *name, const char *words)
{
	for (size_t len; words && *words; words += len + (words[len] != '\0')) {
		len = strcspn(words, " ");
		if (!strncmp(name, words, len))
			return true;
	}
	return false;
}

uint32_t runtimes_of_name(const char *name)
{
	uint32_t found = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		if (runtimes[id] && begins_with_any(basename(name), runtimes[id]->programs))
			found |= 1u << id;
	return found;
}

const struct runtime_dso *runtimes_dso(const struct runtimes *r, uint32_t file)
{
	return file < r->dsos.nr ? r->dsos.items[file] : NULL;
}

int runtimes_mark(const struct runtimes *r, uint32_t file, struct unwind_table *table)
{
	const struct runtime_dso *dso = runtimes_dso(r, file);

	if (!dso)
		return 0;
	return unwind_table_mark(table, dso->interpreter_functions.items,
				 dso->interpreter_functions.nr, dso->ops->id);
}

/* --- processes ------------------------------------------------------------------------------- */

static int read_live(void *ctx, uint64_t addr, void *to, size_t size)
{
	const int32_t *pid = ctx;

	return process_read_memory(*pid, addr, to, size);
}

static void free_instance(struct runtime_instance *i)
{
	if (!i)
		return;
	if (i->proc)
		i->proc->ops->detach(i->proc);
	process_let_file_go(i->held);
	map_fini(&i->frames);
	free(i);
}

void process_runtimes_free(struct process_runtimes *list)
{
	if (!list)
		return;
	for (uint32_t i = 0; i < list->nr; i++)
		free_instance(list->items[i]);
	free(list);
}

static uint64_t bias_of(const struct runtimes *r, const struct mapping *m)
{
	return mapping_bias(r->processes->files.items[m->file], m);
}

/*
 * Where the data of the file lie that is mapped so: with its first code. V8 has a copy of its
 * builtins alone, which lie in the middle of the file; dlmopen() maps all of a file twice.
 */
static uint64_t data_bias_of(const struct runtimes *r, const struct process *proc,
			     const struct mapping *m)
{
	uint64_t bias = bias_of(r, m);
	const struct mapping *first = m;

	for (size_t i = 0; i < proc->mappings.nr; i++) {
		const struct mapping *other = &proc->mappings.items[i];

		if (other->file == m->file &&
		    (other->offset < first->offset ||
		     (other->offset == first->offset && bias_of(r, other) == bias)))
			first = other;
	}
	return bias_of(r, first);
}

/* A runtime of the file that is mapped so; NULL without memory. */
static struct runtime_instance *new_instance(struct runtimes *r, const struct process *proc,
					     const struct mapping *m)
{
	struct runtime_instance *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->pid = proc->pid;
	i->file = m->file;
	i->held = r->processes->files.items[m->file];
	process_hold_file(i->held);
	i->dso = runtimes_dso(r, m->file);
	i->about = i->dso->about;
	i->target = (struct runtime_target){
		.pid = proc->pid,
		.machine = r->machine,
		.memory = r->memory,
		.bias = bias_of(r, m),
		.data_bias = data_bias_of(r, proc, m),
		.options = r->options,
		.keeper = &r->keeper,
		.about = &i->about,
	};
	if (!i->target.memory.read)
		i->target.memory = (struct runtime_memory){ read_live, &i->pid };
	return i;
}

/* Drops those whose file is not mapped there any more; true if there were some. */
static bool drop_gone(const struct runtimes *r, const struct process *proc,
		      struct process_runtimes *list)
{
	bool dropped = false;

	for (uint32_t i = 0; list && i < list->nr;) {
		const struct runtime_instance *in = list->items[i];
		bool found = false;

		for (size_t k = 0; k < proc->mappings.nr && !found; k++)
			found = proc->mappings.items[k].file == in->file &&
				bias_of(r, &proc->mappings.items[k]) == in->target.bias;
		if (found) {
			i++;
			continue;
		}
		free_instance(list->items[i]);
		list->items[i] = list->items[--list->nr];
		dropped = true;
	}
	return dropped;
}

static void find_new(struct runtimes *r, const struct process *proc, struct process_runtimes **list,
		     uint64_t now_ns)
{
	bool put_off = false;

	for (size_t k = 0; k < proc->mappings.nr; k++) {
		const struct mapping *m = &proc->mappings.items[k];
		struct process_runtimes *l = *list;
		bool known = m->file == MAPPING_ANON;

		if (!known)
			put_off |= !runtimes_look_at(r, m->file);
		if (known || !runtimes_dso(r, m->file))
			continue;
		if (!l)
			l = *list = calloc(1, sizeof(*l));
		if (!l)
			return;
		for (uint32_t i = 0; i < l->nr; i++)
			known |= l->items[i]->file == m->file &&
				 l->items[i]->target.bias == bias_of(r, m);
		if (known || l->nr == RUNTIMES_OF_PROCESS_MAX)
			continue;
		l->items[l->nr] = new_instance(r, proc, m);
		l->nr += l->items[l->nr] != NULL;
	}
	if (put_off && !*list)
		*list = calloc(1, sizeof(**list));
	if (*list)
		(*list)->look_ns = put_off ? now_ns + PUT_OFF_NS : 0;
}

bool runtimes_is_one(const struct runtimes *r, uint32_t file)
{
	return file < r->looked_at.nr &&
	       (r->dsos.items[file] || r->looked_at.items[file] == LOOKED_AT_UNKNOWN);
}

bool runtimes_any(struct runtimes *r, const struct process *proc)
{
	for (size_t k = 0; k < proc->mappings.nr; k++) {
		uint32_t file = proc->mappings.items[k].file;

		if (file == MAPPING_ANON)
			continue;
		runtimes_look_at(r, file);
		if (runtimes_is_one(r, file))
			return true;
	}
	return false;
}

static uint64_t pause_after(uint32_t nr_tries)
{
	uint64_t pause = nr_tries < 8 ? (uint64_t)RETRY_FIRST_NS << nr_tries : RETRY_LAST_NS;

	return pause < RETRY_LAST_NS ? pause : RETRY_LAST_NS;
}

/*
 * When those that are attached are looked at again. Some times soon after they were attached or
 * mapped something: a mapping is seen before its owner has written down that it is its own, and the
 * owner may wait for a CPU in between.
 */
static uint64_t next_refresh(struct runtime_instance *i, uint64_t now_ns)
{
	if (!i->dso->ops->refresh)
		return UINT64_MAX;
	if (i->nr_tries < SOON_TRIES)
		return now_ns + pause_after(i->nr_tries++);
	return (now_ns / REFRESH_NS + 2) * REFRESH_NS;
}

/* Has what an attached one wrote down changed? */
static bool refresh(struct runtime_instance *i, uint64_t now_ns)
{
	const struct runtime_ops *ops = i->dso->ops;
	uint64_t record[RUNTIME_RECORD_MAX / 8];
	int r;

	i->again_ns = next_refresh(i, now_ns);
	if (!ops->refresh)
		return false;
	memcpy(record, i->record, sizeof(record));
	r = ops->refresh(i->proc, record);
	if (r > 0)
		memcpy(i->record, record, sizeof(record));
	else if (r < 0)
		log_debug("process %d: %s: not read again: %s", i->pid, ops->name, strerror(-r));
	return r > 0;
}

/* Of a file whose version is told: each process of it may be so. */
static void say_nonsense(struct runtimes *r, const struct runtime_instance *i)
{
	static const char text[] = "what a process has makes no sense";
	const char *version = *i->about.version ? i->about.version : i->dso->ops->language;

	if (is_news(r, i->held, text))
		log_warn("%.512s: %s: what process %d has of it makes no sense: only its native "
			 "frames "
			 "are shown",
			 i->held->path, version, i->pid);
	else
		log_debug("process %d: what it has of %s makes no sense", i->pid, version);
}

/* Makes no sense, and will not: at once in a core, else when it had the time to begin. */
static bool gives_up(struct runtimes *r, struct runtime_instance *i, int error, uint64_t now_ns)
{
	if (error != -EBADMSG)
		i->nonsense_ns = 0;
	else if (!i->nonsense_ns)
		i->nonsense_ns = now_ns;
	if (error == -ENOTSUP)
		return true;
	if (error != -EBADMSG || (!r->memory.read && now_ns - i->nonsense_ns < READY_NS))
		return false;
	say_nonsense(r, i);
	return true;
}

static bool attach(struct runtimes *all, struct runtime_instance *i, uint64_t now_ns)
{
	const struct runtime_ops *ops = i->dso->ops;
	uint64_t record[RUNTIME_RECORD_MAX / 8] = { 0 };
	int r = ops->attach(i->dso, &i->target, record, &i->proc);

	i->error = r;
	if (!r) {
		i->proc->ops = ops;
		i->proc->dso = i->dso;
		i->proc->target = &i->target;
		memcpy(i->record, record, sizeof(record));
		i->nr_tries = 0;
		i->again_ns = next_refresh(i, now_ns);
		if (i->about.without && is_news(all, i->held, i->about.without))
			log_warn("%.512s: %s: %s", i->held->path, i->about.version,
				 i->about.without);
		log_debug("process %d: attached to %s", i->pid, ops->name);
		return true;
	}
	i->proc = NULL;
	log_debug("process %d: %s: %s", i->pid, ops->name, strerror(-r));
	if (r == -ENOTSUP)
		meet_unknown(all, i->file, ops->id, &i->about);
	i->again_ns =
		gives_up(all, i, r, now_ns) ? UINT64_MAX : now_ns + pause_after(i->nr_tries++);
	return false;
}

void runtimes_update(struct runtimes *r, const struct process *proc, struct process_runtimes **list,
		     uint64_t now_ns)
{
	bool changed = drop_gone(r, proc, *list);

	find_new(r, proc, list, now_ns);
	for (uint32_t i = 0; *list && i < (*list)->nr; i++) {
		struct runtime_instance *in = (*list)->items[i];

		if (in->again_ns > now_ns)
			continue;
		in->done_ns = now_ns;
		if (proc->exited && !r->memory.read)
			in->again_ns = UINT64_MAX;
		else if (!in->proc)
			changed |= attach(r, in, now_ns);
		else if ((*list)->used)
			changed |= refresh(in, now_ns);
		else
			in->again_ns = next_refresh(in, now_ns);
	}
	if (*list) {
		(*list)->used = false;
		(*list)->unshown |= changed;
	}
}

void runtimes_want_refresh(struct process_runtimes *list)
{
	for (uint32_t i = 0; list && i < list->nr; i++) {
		struct runtime_instance *in = list->items[i];

		if (in->again_ns == UINT64_MAX)
			continue;
		in->again_ns = 0;
		if (in->proc)
			in->nr_tries = 0;
	}
	if (list)
		list->used = true;
}

uint64_t runtimes_missed(struct process_runtimes *list)
{
	for (uint32_t i = 0; list && i < list->nr; i++) {
		struct runtime_instance *in = list->items[i];
		/* Not at once: every new stack may say so. */
		uint64_t soon = in->done_ns + (in->proc ? MISSED_PAUSE_NS : RETRY_FIRST_NS);

		if (in->again_ns != UINT64_MAX && in->again_ns > soon)
			in->again_ns = soon;
	}
	if (list)
		list->used = true;
	return runtimes_due(list);
}

uint64_t runtimes_due(const struct process_runtimes *list)
{
	uint64_t due = list && list->look_ns ? list->look_ns : UINT64_MAX;

	for (uint32_t i = 0; list && i < list->nr; i++)
		if (list->items[i]->again_ns < due)
			due = list->items[i]->again_ns;
	return due;
}

uint32_t runtimes_of_code(const struct process_runtimes *list, bool anonymous, uint64_t at,
			  uint64_t *end)
{
	uint32_t id = 0, other = 0;

	for (uint32_t i = 0; list && i < list->nr; i++) {
		const struct runtime_proc *p = list->items[i]->proc;

		if (p && anonymous && p->anonymous_code)
			other = p->ops->id;
		for (size_t k = 0; p && k < p->code.nr; k++) {
			const struct code_range *c = &p->code.items[k];

			if (at >= c->start && at < c->end) {
				id = p->ops->id;
				*end = c->end < *end ? c->end : *end;
			} else if (c->start > at && c->start < *end) {
				*end = c->start;
			}
		}
	}
	return id ? id : other;
}

struct runtime_instance *runtimes_find(const struct process_runtimes *list, uint32_t id)
{
	/* The last one's record is what a walk finds first. */
	for (uint32_t i = list ? list->nr : 0; i-- > 0;)
		if (list->items[i]->proc && list->items[i]->dso->ops->id == id)
			return list->items[i];
	return NULL;
}

bool runtimes_hides(const struct process_runtimes *list, uint32_t file, uint64_t addr)
{
	for (uint32_t i = 0; list && i < list->nr; i++) {
		const struct runtime_dso *dso = list->items[i]->dso;
		size_t lo = 0, n = dso->hidden.nr;

		if (list->items[i]->file != file || !list->items[i]->proc)
			continue;
		while (n) {
			size_t half = n / 2;

			if (dso->hidden.items[lo + half].end <= addr) {
				lo += half + 1;
				n -= half + 1;
			} else {
				n = half;
			}
		}
		return lo < dso->hidden.nr && dso->hidden.items[lo].start <= addr;
	}
	return false;
}
