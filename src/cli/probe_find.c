// SPDX-License-Identifier: Apache-2.0
/*
 * Whether what a probe names is there, and where; if not, what was meant. libbpf finds functions of
 * files and the kernel itself: here it is only asked whether they are there.
 */
#include "cli/probe_internal.h"

#include "cli/suggest.h"
#include "elf/elf_file.h"
#include "elf/usdt_notes.h"
#include "kernel/tracepoints.h"
#include "util/cleanup.h"
#include "util/find_executable.h"
#include "util/kernel_symbols.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SYMBOLS_SIZE_MAX = 512 << 20, SITES_MAX = 512 };

/* Names that there are, held against the one that is looked for. */
struct search {
	const char *name;
	bool found;
	struct suggestion meant;
	char best[256]; /* of `meant`, whose text may go */
};

static struct search search_for(const char *name)
{
	return (struct search){ .name = name, .meant = { .word = name, .len = strlen(name) } };
}

static void look_at(void *ctx, const char *name)
{
	struct search *s = ctx;
	size_t before = s->meant.best ? s->meant.distance : SIZE_MAX;

	s->found |= !strcmp(s->name, name);
	suggest(&s->meant, name);
	if (!s->meant.best || s->meant.distance >= before)
		return;
	snprintf(s->best, sizeof(s->best), "%s", name);
	s->meant.best = s->best;
}

/* "; did you mean 'PREFIXname'?" */
static const char *meant(const struct search *s, const char *prefix, char *buf, size_t size)
{
	*buf = '\0';
	if (s->meant.best)
		snprintf(buf, size, "; did you mean '%s%s'?", prefix, s->best);
	return buf;
}

/* --- tracepoints ------------------------------------------------------------------------------ */

struct group_search {
	int events;
	const char *name;
	char group[64]; /* that has it */
};

static void look_in_group(void *ctx, const char *group)
{
	struct group_search *s = ctx;
	uint64_t id;

	if (!*s->group && !tracepoints_id(s->events, group, s->name, &id))
		snprintf(s->group, sizeof(s->group), "%s", group);
}

static int no_tracepoint(const struct source_spec *s, int events, const char *group,
			 const char *name)
{
	struct search of_names = search_for(name), of_groups = search_for(group);
	struct group_search other = { .events = events, .name = name };
	char text[384], prefix[80];

	tracepoints_each(events, NULL, look_in_group, &other);
	if (*other.group) {
		log_error("there is no tracepoint '%s:%s'; did you mean '%s:%s'?", group, name,
			  other.group, name);
	} else if (!tracepoints_each(events, group, look_at, &of_names)) {
		snprintf(prefix, sizeof(prefix), "%s:", group);
		log_error("there is no tracepoint '%s' in the group '%s'%s", name, group,
			  meant(&of_names, prefix, text, sizeof(text)));
	} else {
		tracepoints_each(events, NULL, look_at, &of_groups);
		log_error("there is no group of tracepoints '%s'%s", group,
			  meant(&of_groups, "", text, sizeof(text)));
	}
	(void)s;
	return -ENOENT;
}

static int find_tracepoint(struct source_spec *s)
{
	const char *colon = strchr(s->name, ':');
	_cleanup_free_ char *group = strndup(s->name, (size_t)(colon - s->name));
	_cleanup_close_ int events = tracepoints_open();
	int r = events;

	if (!group)
		return log_err(-ENOMEM, "cannot look for the tracepoint %s", s->name);
	if (events >= 0) {
		r = tracepoints_id(events, group, colon + 1, &s->tracepoint_id);
		if (r == -ENOENT)
			return no_tracepoint(s, events, group, colon + 1);
	}
	s->name = colon + 1;
	/* Those of single system calls are perf's alone. */
	if (strcmp(group, "syscalls") && tracepoint_is_raw(s->name)) {
		s->kind = SOURCE_RAW_TRACEPOINT;
		return 0;
	}
	return r < 0 ? log_err(r, "cannot read the tracepoint '%s:%s' (tracefs)", group, s->name)
		     : 0;
}

/* --- arguments -------------------------------------------------------------------------------- */

/* "abc" is the whole text, with its end; "abc*" how it begins. */
static struct argument_filter filter_of(const struct probe *probe, const struct usdt_argument *at)
{
	struct argument_filter filter = {
		.is_set = 1,
		.reg = at->reg,
		.indirect = at->indirect,
		.offset = at->offset,
	};
	size_t len = strlen(probe->wanted);
	bool begins = len && probe->wanted[len - 1] == '*';

	len -= begins;
	memcpy(filter.text, probe->wanted, len);
	memset(filter.mask, 0xff, len + !begins);
	return filter;
}

/* By the calling conventions: those that are in registers. */
static int find_argument(const struct probe *probe, struct source_spec *s)
{
#if defined(__x86_64__)
	static const uint32_t words[] = { 14, 13, 12, 11, 9, 8 };
#else
	static const uint32_t words[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
#endif
	struct usdt_argument at = { .size = 8 };

	if (!probe->argument)
		return 0;
	if (probe->argument > sizeof(words) / sizeof(words[0])) {
		log_error("--probe '%s': only the first %zu arguments of a function are in "
			  "registers",
			  s->at, sizeof(words) / sizeof(words[0]));
		return -ENOTSUP;
	}
	at.reg = words[probe->argument - 1];
	s->filter = filter_of(probe, &at);
	return 0;
}

/* --- files ------------------------------------------------------------------------------------ */

/* A file's name alone: a program in $PATH, or a library. */
static int find_file(struct probe *probe, struct source_spec *s)
{
	static const char *const folders[] = {
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu",
		"/lib/x86_64-linux-gnu",
#else
		"/usr/lib/aarch64-linux-gnu",
		"/lib/aarch64-linux-gnu",
#endif
		"/usr/lib64",
		"/lib64",
		"/usr/lib",
		"/lib",
		"/usr/local/lib",
	};
	char path[PATH_MAX];

	if (strchr(s->file, '/'))
		return 0;
	if (!find_executable(s->file, path)) {
		s->file = strdup(path);
		return probe_keep(probe, (char *)s->file);
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], s->file);
		if (access(path, R_OK))
			continue;
		s->file = strdup(path);
		return probe_keep(probe, (char *)s->file);
	}
	log_error("--probe '%s': there is no program '%s' in $PATH, and no such library; give a "
		  "path",
		  s->at, s->file);
	return -ENOENT;
}

static int open_file(struct probe *probe, struct source_spec *s, struct elf_file **ret)
{
	int r = find_file(probe, s);

	if (r)
		return r;
	r = elf_file_open(s->file, ret);
	if (r == -ENOEXEC) {
		log_error("--probe '%s': '%s' is no ELF file (of a script: name its interpreter)",
			  s->at, s->file);
		return r;
	}
	return r ? log_err(r, "--probe '%s': cannot read '%s'", s->at, s->file) : 0;
}

static void look_at_symbols(const struct elf_data *symbols, const struct elf_data *names,
			    struct search *s)
{
	for (size_t i = 0; i < symbols->size / sizeof(Elf64_Sym) && !s->found; i++) {
		const char *name;
		Elf64_Sym sym;

		memcpy(&sym, symbols->data + i * sizeof(sym), sizeof(sym));
		if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
		    sym.st_name >= names->size)
			continue;
		name = (const char *)names->data + sym.st_name;
		/* A NUL stands behind all of them. */
		look_at(s, name);
	}
}

/* -ENOENT: there is no such table. */
static int look_at_table(const struct elf_file *elf, uint32_t type, struct search *s)
{
	int r = -ENOENT;

	for (size_t i = 0; i < elf->nr_sections && !s->found; i++) {
		const struct elf_section *section = &elf->sections[i];
		struct elf_data symbols = { 0 }, names = { 0 };

		if (section->type != type || section->link >= elf->nr_sections)
			continue;
		r = elf_file_section_data(elf, section, SYMBOLS_SIZE_MAX, &symbols);
		if (!r)
			r = elf_file_section_data(elf, &elf->sections[section->link],
						  SYMBOLS_SIZE_MAX, &names);
		if (!r)
			look_at_symbols(&symbols, &names, s);
		free(symbols.data);
		free(names.data);
	}
	return r;
}

static int find_function(struct probe *probe, struct source_spec *s)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct search search = search_for(s->name);
	bool stripped;
	char text[384];
	int r = open_file(probe, s, &elf);

	if (r)
		return r;
	stripped = look_at_table(elf, SHT_SYMTAB, &search) == -ENOENT;
	if (!search.found)
		look_at_table(elf, SHT_DYNSYM, &search);
	if (search.found)
		return find_argument(probe, s);
	log_error("'%s' has no function '%s'%s%s", s->file, s->name,
		  meant(&search, "", text, sizeof(text)),
		  stripped ? " (it is stripped: only what it exports has a name)" : "");
	return -ENOENT;
}

/* --- USDT ------------------------------------------------------------------------------------- */

static int no_usdt(const struct source_spec *s, const struct usdt_notes *notes,
		   const char *provider, const char *name)
{
	struct search of_names = search_for(name), of_providers = search_for(provider ?: "");
	char text[384];

	if (!notes->nr) {
		log_error("'%s' has no USDT probes (perhaps a library that it uses has them)",
			  s->file);
		return -ENOENT;
	}
	for (size_t i = 0; i < notes->nr; i++) {
		look_at(&of_providers, notes->items[i].provider);
		if (!provider || !strcmp(provider, notes->items[i].provider))
			look_at(&of_names, notes->items[i].name);
	}
	if (provider && !of_providers.found)
		log_error("'%s' has no USDT probes of a provider '%s', but of '%s'", s->file,
			  provider,
			  of_providers.meant.best ? of_providers.best : notes->items[0].provider);
	else
		log_error("'%s' has no USDT probe '%s'%s", s->file, name,
			  meant(&of_names, "", text, sizeof(text)));
	return -ENOENT;
}

/* A place of a probe, and where its argument is there. */
struct found_site {
	struct source_site site;
	struct argument_filter filter;
};

struct found_sites {
	struct found_site items[SITES_MAX];
	size_t nr;
};

/* Each place once: a site is compiled in as often as its function is. */
static int add_site(const struct probe *probe, const struct source_spec *s, uint16_t machine,
		    const struct usdt_note *note, struct found_sites *found)
{
	struct usdt_argument at;
	int r;

	for (size_t i = 0; i < found->nr; i++)
		if (found->items[i].site.offset == note->offset)
			return 0;
	if (found->nr == SITES_MAX) {
		log_error("--probe '%s' is at more than %d places", s->at, SITES_MAX);
		return -E2BIG;
	}
	found->items[found->nr] = (struct found_site){
		.site = { .offset = note->offset, .semaphore = note->semaphore_offset },
	};
	if (probe->argument) {
		r = usdt_argument_find(note->arguments, probe->argument, machine, &at);
		if (r) {
			log_error("--probe '%s': argument %u cannot be looked at: '%s'", s->at,
				  probe->argument, note->arguments);
			return r;
		}
		found->items[found->nr].filter = filter_of(probe, &at);
	}
	found->nr++;
	return 0;
}

/* Those with the argument where the first one that is left has it: they are taken out. */
static int take_sites(struct found_sites *found, struct probe *probe, struct source_spec *s)
{
	size_t left = 0;

	s->filter = found->items[0].filter;
	s->nr_sites = 0;
	probe->sites = calloc(found->nr, sizeof(*probe->sites));
	if (!probe->sites)
		return log_err(-ENOMEM, "cannot find '%s'", s->at);
	for (size_t i = 0; i < found->nr; i++)
		if (memcmp(&found->items[i].filter, &s->filter, sizeof(s->filter)))
			found->items[left++] = found->items[i];
		else
			probe->sites[s->nr_sites++] = found->items[i].site;
	found->nr = left;
	s->sites = probe->sites;
	return 0;
}

/* Arguments that are elsewhere are another source's, whose samples are of the same type. */
static int put_sites(struct probes *p, size_t index, struct found_sites *found)
{
	int r = take_sites(found, &p->items[index], &p->sources[index]);

	while (!r && found->nr) {
		struct source_spec more = p->sources[index];
		struct probe probe = { .sites = NULL };

		r = take_sites(found, &probe, &more);
		if (!r)
			r = probe_add_another(p, &probe, &more);
	}
	return r;
}

static int find_usdt(struct probes *p, size_t index)
{
	struct probe *probe = &p->items[index];
	struct source_spec *s = &p->sources[index];
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ struct found_sites *found = calloc(1, sizeof(*found));
	const char *colon = strchr(s->name, ':'), *name = colon ? colon + 1 : s->name;
	_cleanup_free_ char *provider = colon ? strndup(s->name, (size_t)(colon - s->name)) : NULL;
	struct usdt_notes notes = { 0 };
	int r = open_file(probe, s, &elf);

	if (r)
		return r;
	if (!found || !colon != !provider)
		return log_err(-ENOMEM, "cannot find '%s'", s->at);
	r = usdt_notes_read(elf, &notes);
	if (r)
		return log_err(r, "cannot read the USDT probes of '%s'", s->file);
	for (size_t i = 0; i < notes.nr && !r; i++)
		if (!strcmp(notes.items[i].name, name) &&
		    (!provider || !strcmp(notes.items[i].provider, provider)))
			r = add_site(probe, s, elf->machine, &notes.items[i], found);
	if (!r)
		r = found->nr ? put_sites(p, index, found) : no_usdt(s, &notes, provider, name);
	usdt_notes_fini(&notes);
	return r;
}

/* --- the kernel ------------------------------------------------------------------------------- */

static int look_at_kernel_function(void *ctx, const struct kernel_symbol *symbol)
{
	struct search *search = ctx;

	if (strchr("tTwW", symbol->type))
		look_at(search, symbol->name);
	return search->found;
}

static int find_kernel_function(const struct source_spec *s)
{
	struct search search = search_for(s->name);
	char text[384];

	if (access("/sys/bus/event_source/devices/kprobe/type", F_OK)) {
		log_error("--probe '%s': this kernel has no kprobes (CONFIG_KPROBE_EVENTS); "
			  "tracepoint and uprobe work without",
			  s->at);
		return -ENOTSUP;
	}
	if (kernel_symbols_walk(look_at_kernel_function, &search))
		return 0; /* it is there, or the kernel is to say */
	log_error("the kernel has no function '%s'%s", s->name,
		  meant(&search, "", text, sizeof(text)));
	return -ENOENT;
}

static int find_event(const struct source_spec *s)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = s->event.type,
		.config = s->event.config,
		.sample_period = s->event.period,
		.disabled = 1,
	};
	_cleanup_close_ int fd =
		(int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	if (!r)
		return 0;
	if (s->event.type == PERF_TYPE_HARDWARE && (r == -ENOENT || r == -EOPNOTSUPP)) {
		log_error("--event %s: this machine has no such counter (virtual machines often "
			  "have none); page-faults, context-switches and cpu-migrations are "
			  "everywhere",
			  s->at);
		return r;
	}
	return log_err(r, "--event %s: the kernel refuses it", s->at);
}

static int find_one(struct probes *p, size_t index)
{
	struct probe *probe = &p->items[index];
	struct source_spec *s = &p->sources[index];

	switch (s->kind) {
	case SOURCE_TRACEPOINT:
		return find_tracepoint(s);
	case SOURCE_UPROBE:
	case SOURCE_URETPROBE:
		return find_function(probe, s);
	case SOURCE_USDT:
		return find_usdt(p, index);
	case SOURCE_KPROBE:
	case SOURCE_KRETPROBE:
		return find_kernel_function(s);
	case SOURCE_EVENT:
		return find_event(s);
	default:
		return 0;
	}
}

int probes_find(struct probes *p)
{
	size_t nr = p->nr;
	int r = 0;

	for (size_t i = 0; i < nr && !r; i++)
		r = find_one(p, i);
	return r;
}
