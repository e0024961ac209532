// SPDX-License-Identifier: Apache-2.0
#include "cli/tracers.h"

#include "cli/suggest.h"
#include "util/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a name of the list is, if not a runtime. */
enum { ALL = RUNTIME_MAX_, LABELS, NOT_HERE };

static const struct {
	const char *name;
	int what;
} names[] = {
#define RUNTIME(name, NAME, id) { #name, id },
#include "abi/runtimes.def"
#undef RUNTIME
	{ "all", ALL },	      { "labels", LABELS },   { "dotnet", NOT_HERE },
	{ "beam", NOT_HERE }, { "luajit", NOT_HERE },
};

enum { NR_NAMES = sizeof(names) / sizeof(*names) };

struct wanted {
	uint32_t ids;
	bool labels;
	char not_here[128]; /* their names, with ", " between */
};

static int complain(const char *name, size_t len, const struct config *config, const char *command)
{
	struct suggestion s = { .word = name, .len = len };
	char list[256] = "", meant[SUGGESTION_MAX];

	for (size_t i = 0; i < NR_NAMES; i++)
		suggest_listed(&s, names[i].name, list, sizeof(list));
	log_error("%s knows no '%.*s'%s; there are %s: see 'sonde help %s'",
		  config_label(config, "tracers").text, (int)len, name, suggestion_text(&s, meant),
		  list, command);
	return -EINVAL;
}

static int take_name(const char *name, size_t len, const struct config *config, const char *command,
		     struct wanted *w)
{
	size_t i = 0, at = strlen(w->not_here);

	while (i < NR_NAMES && (strlen(names[i].name) != len || memcmp(names[i].name, name, len)))
		i++;
	if (i == NR_NAMES)
		return complain(name, len, config, command);
	if (names[i].what == NOT_HERE)
		snprintf(w->not_here + at, sizeof(w->not_here) - at, "%s%s", at ? ", " : "",
			 names[i].name);
	else if (names[i].what < RUNTIME_MAX_)
		w->ids |= 1u << names[i].what;
	if (names[i].what == ALL)
		w->ids = UINT32_MAX;
	if (names[i].what == ALL || names[i].what == LABELS)
		w->labels = true;
	return 0;
}

int tracers_parse(const char *list, const struct config *config, const char *command,
		  struct runtime_options *ret)
{
	struct wanted w = { .ids = 1u << RUNTIME_NATIVE };

	for (const char *name = list;; name++) {
		size_t len = strcspn(name, ","), begin = 0, end = len;
		int r;

		while (begin < end && isspace((unsigned char)name[begin]))
			begin++;
		while (end > begin && isspace((unsigned char)name[end - 1]))
			end--;
		r = take_name(name + begin, end - begin, config, command, &w);
		if (r)
			return r;
		name += len;
		if (!*name)
			break;
	}
	/* Its frames are native ones; it is what finds the labels. */
	if (w.labels)
		w.ids |= 1u << RUNTIME_GO;
	if (*w.not_here)
		log_info("ignored in %s, since there are no frames of it here: %s",
			 config_label(config, "tracers").text, w.not_here);
	ret->off = ~w.ids;
	ret->no_labels = !w.labels;
	return 0;
}
