// SPDX-License-Identifier: Apache-2.0
/*
 * The text of options: TYPE:TARGET[:SYMBOL][,OPTION=VALUE...], NAME[:PERIOD]. Where that is on this
 * machine is found out in probe_find.c.
 */
#include "cli/probe_internal.h"

#include "cli/suggest.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *target; /* what stands behind it */
	enum sample_value value;
	const char *value_name; /* of an option that it takes beside count */
} kinds[SOURCE_KINDS_] = {
	[SOURCE_TRACEPOINT] = { "tracepoint", "GROUP:NAME", VALUE_RAN_NS, "on-cpu" },
	[SOURCE_UPROBE] = { "uprobe", "FILE:FUNCTION", VALUE_ARGUMENT, "arg1" },
	[SOURCE_URETPROBE] = { "uretprobe", "FILE:FUNCTION", VALUE_RETURNED, "ret" },
	[SOURCE_USDT] = { "usdt", "FILE:[PROVIDER:]NAME", VALUE_ONE, NULL },
	[SOURCE_KPROBE] = { "kprobe", "FUNCTION", VALUE_ARGUMENT, "arg1" },
	[SOURCE_KRETPROBE] = { "kretprobe", "FUNCTION", VALUE_RETURNED, "ret" },
};

static const struct {
	const char *name, *other; /* two names of one */
	uint32_t type;
	uint64_t config, period;
} events[] = {
	{ "page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1 },
	{ "minor-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 1 },
	{ "major-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1 },
	{ "context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1 },
	{ "cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1 },
	{ "alignment-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, 1 },
	{ "emulation-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, 1 },
	{ "cycles", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 10000000 },
	{ "instructions", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 10000000 },
	{ "cache-references", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 100000 },
	{ "cache-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 10000 },
	{ "branches", "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	  1000000 },
	{ "branch-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 100000 },
};

enum {
	EVENTS = sizeof(events) / sizeof(events[0]),
	ARGUMENTS_MAX = 12,
	TEXT_MAX = FILTER_TEXT_WORDS * 8 - 2
};

void probes_fini(struct probes *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		for (size_t k = 0; k < sizeof(p->items[i].texts) / sizeof(char *); k++)
			free(p->items[i].texts[k]);
		free(p->items[i].sites);
	}
	p->nr = 0;
}

bool probes_have_type(const struct probes *p, const char *type)
{
	for (size_t i = 0; i < p->nr; i++)
		if (!strcmp(p->sources[i].type, type))
			return true;
	return false;
}

const char *probe_kind_name(enum source_kind kind)
{
	return kind == SOURCE_RAW_TRACEPOINT ? "tracepoint" : kinds[kind].name;
}

int probe_keep(struct probe *probe, char *text)
{
	for (size_t i = 0; text && i < sizeof(probe->texts) / sizeof(char *); i++) {
		if (probe->texts[i])
			continue;
		probe->texts[i] = text;
		return 0;
	}
	free(text);
	return -ENOMEM;
}

/* Takes over what `probe` owns, whatever becomes of it. */
static int add(struct probes *p, struct probe *probe, const struct source_spec *source)
{
	if (p->nr + 1 == SAMPLE_SOURCES_MAX) {
		log_error("there can be no more than %d probes and events", SAMPLE_SOURCES_MAX - 1);
	} else if (!strcmp(source->type, "samples") || probes_have_type(p, source->type)) {
		log_error("samples of two sources would be called '%s'; give one a name: "
			  "--probe ...,name=NAME",
			  source->type);
	} else {
		p->items[p->nr] = *probe;
		p->sources[p->nr++] = *source;
		*probe = (struct probe){ .sites = NULL };
		return 0;
	}
	return -EINVAL;
}

static void probe_fini(struct probe *probe)
{
	for (size_t i = 0; i < sizeof(probe->texts) / sizeof(char *); i++)
		free(probe->texts[i]);
	free(probe->sites);
}

int probe_add_another(struct probes *p, struct probe *probe, const struct source_spec *source)
{
	if (p->nr + 1 == SAMPLE_SOURCES_MAX) {
		log_error("--probe '%s': its argument is at too many different places", source->at);
		probe_fini(probe);
		return -E2BIG;
	}
	p->items[p->nr] = *probe;
	p->sources[p->nr++] = *source;
	return 0;
}

int probes_add(struct probes *p, const struct source_spec *source)
{
	struct probe none = { .sites = NULL };

	return source->kind == SOURCE_NONE ? 0 : add(p, &none, source);
}

/* --- a probe ---------------------------------------------------------------------------------- */

static int complain(const struct probes *p, const char *at, const char *what)
{
	log_error("%s '%s': %s; see 'sonde help %s'", config_label(p->config, "probe").text, at,
		  what, p->command);
	return -EINVAL;
}

static int parse_kind(const struct probes *p, const char *at, const char *name,
		      enum source_kind *ret)
{
	struct suggestion s = { .word = name, .len = strlen(name) };
	char what[160];

	for (enum source_kind kind = 0; kind < SOURCE_KINDS_; kind++) {
		if (!kinds[kind].name)
			continue;
		suggest(&s, kinds[kind].name);
		if (strcmp(kinds[kind].name, name))
			continue;
		*ret = kind;
		return 0;
	}
	if (s.best)
		snprintf(what, sizeof(what), "there is no type '%s'; did you mean '%s'?", name,
			 s.best);
	else
		snprintf(what, sizeof(what),
			 "there is no type '%s', but tracepoint, uprobe, uretprobe, usdt, kprobe "
			 "and kretprobe",
			 name);
	return complain(p, at, what);
}

static int parse_rate(const struct probes *p, const char *at, const char *text, uint32_t *ret)
{
	unsigned long rate;
	char *end;

	errno = 0;
	rate = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || !rate || rate > UINT32_MAX)
		return complain(p, at, "rate takes a whole number of samples a second, from 1");
	*ret = (uint32_t)rate;
	return 0;
}

static int parse_value(const struct probes *p, const char *at, const char *text,
		       struct source_spec *s)
{
	const char *other = kinds[s->kind].value_name;
	char what[96];

	if (!strcmp(text, "count"))
		return 0;
	if (other && !strcmp(text, other)) {
		s->value = kinds[s->kind].value;
		return 0;
	}
	snprintf(what, sizeof(what), "value takes count%s%s here", other ? " or " : "",
		 other ? other : "");
	return complain(p, at, what);
}

/* "arg2=TEXT" */
static int parse_argument(const struct probes *p, const char *at, const char *name,
			  const char *wanted, struct probe *probe)
{
	unsigned long number;
	char *end, what[96];

	if (probe->argument)
		return complain(p, at, "only one argument can be looked at");
	number = strtoul(name + strlen("arg"), &end, 10);
	if (*end || !number || number > ARGUMENTS_MAX)
		return complain(p, at, "arguments are arg1, arg2, ...");
	/* One more, and the kernel could not tell a text that ends there from one that goes on. */
	if (strcspn(wanted, "*") > TEXT_MAX || strlen(wanted) > TEXT_MAX + 1) {
		snprintf(what, sizeof(what),
			 "no more than %d characters of an argument are looked at", TEXT_MAX);
		return complain(p, at, what);
	}
	probe->argument = (unsigned)number;
	probe->wanted = wanted;
	return 0;
}

static int parse_option(const struct probes *p, const char *at, char *text, struct probe *probe,
			struct source_spec *s)
{
	static const char *const names[] = { "rate", "name", "value" };
	char *equals = strchr(text, '='), what[128];
	struct suggestion meant = { .word = text, .len = strcspn(text, "=") };

	if (!equals || !equals[1])
		return complain(p, at, "behind a comma stands OPTION=VALUE");
	*equals = '\0';
	if (!strcmp(text, "rate"))
		return parse_rate(p, at, equals + 1, &s->rate);
	if (!strcmp(text, "value"))
		return parse_value(p, at, equals + 1, s);
	if (!strcmp(text, "name")) {
		s->type = equals + 1;
		return 0;
	}
	if (!strncmp(text, "arg", 3) && isdigit((unsigned char)text[3])) {
		if (s->kind == SOURCE_USDT || s->kind == SOURCE_UPROBE)
			return parse_argument(p, at, text, equals + 1, probe);
		return complain(p, at, "only usdt and uprobe can look at arguments");
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		suggest(&meant, names[i]);
	snprintf(what, sizeof(what), "there is no option '%s'%s%s%s", text,
		 meant.best ? "; did you mean '" : ", but rate, name, value and arg1 ...",
		 meant.best ? meant.best : "", meant.best ? "'?" : "");
	return complain(p, at, what);
}

/* What stands behind "TYPE:" goes into file and name; a group, or a provider, before the name. */
static int split_target(const struct probes *p, const char *at, char *target, struct source_spec *s)
{
	bool has_file =
		s->kind == SOURCE_UPROBE || s->kind == SOURCE_URETPROBE || s->kind == SOURCE_USDT;
	bool has_group = s->kind == SOURCE_TRACEPOINT;
	char *colon = s->kind == SOURCE_USDT ? strchr(target, ':') : strrchr(target, ':');
	char what[96];

	if (*target && !has_file && !has_group && !colon) {
		s->name = target;
		return 0;
	}
	if (!colon || colon == target || !colon[1] || (!has_file && !has_group)) {
		snprintf(what, sizeof(what), "behind %s: stands %s", kinds[s->kind].name,
			 kinds[s->kind].target);
		return complain(p, at, what);
	}
	if (has_group) {
		s->name = target;
		return 0;
	}
	*colon = '\0';
	s->file = target;
	s->name = colon + 1;
	return 0;
}

/* "uprobe:malloc" */
static int name_type(struct probe *probe, struct source_spec *s)
{
	char *type = NULL;

	if (s->type)
		return 0;
	if (asprintf(&type, "%s:%s", kinds[s->kind].name, s->name) < 0)
		return -ENOMEM;
	s->type = type;
	return probe_keep(probe, type);
}

static int parse_probe(struct probes *p, const struct list_text *item)
{
	_cleanup_(probe_fini) struct probe probe = { .sites = NULL };
	struct source_spec s = { .value = VALUE_ONE };
	char *at = strndup(item->text, item->len), *text = strndup(item->text, item->len);
	char *options, *option, *colon;
	int r;

	r = probe_keep(&probe, at);
	if (probe_keep(&probe, text) || r)
		return log_err(-ENOMEM, "cannot read the probes");
	s.at = at;
	options = text;
	strsep(&options, ",");
	colon = strchr(text, ':');
	if (!colon)
		return complain(p, at, "it takes TYPE:TARGET");
	*colon = '\0';
	r = parse_kind(p, at, text, &s.kind);
	if (!r)
		r = split_target(p, at, colon + 1, &s);
	while (!r && (option = strsep(&options, ",")))
		r = parse_option(p, at, option, &probe, &s);
	if (!r)
		r = name_type(&probe, &s);
	return r ? r : add(p, &probe, &s);
}

/* --- an event --------------------------------------------------------------------------------- */

static int complain_event(const struct probes *p, const char *name)
{
	struct suggestion s = { .word = name, .len = strlen(name) };
	char list[256] = "";

	for (size_t i = 0; i < EVENTS; i++) {
		suggest_listed(&s, events[i].name, list, sizeof(list));
		if (events[i].other)
			suggest(&s, events[i].other);
	}
	if (s.best)
		log_error("%s: there is no event '%s'; did you mean '%s'? See 'sonde help %s'",
			  config_label(p->config, "event").text, name, s.best, p->command);
	else
		log_error("%s: there is no event '%s', but %s; see 'sonde help %s'",
			  config_label(p->config, "event").text, name, list, p->command);
	return -EINVAL;
}

static int parse_period(const struct probes *p, const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (isdigit((unsigned char)*text) && !*end && !errno && *ret && *ret <= INT64_MAX)
		return 0;
	log_error("%s takes NAME:PERIOD, a whole number of events from 1, not '%s'; see 'sonde "
		  "help %s'",
		  config_label(p->config, "event").text, text, p->command);
	return -EINVAL;
}

static int parse_event(struct probes *p, const struct list_text *item)
{
	_cleanup_(probe_fini) struct probe probe = { .sites = NULL };
	struct source_spec s = { .kind = SOURCE_EVENT, .value = VALUE_PERIOD };
	char *text = strndup(item->text, item->len), *period = text;
	size_t i = 0;
	int r = probe_keep(&probe, text);

	if (r)
		return log_err(r, "cannot read the events");
	strsep(&period, ":");
	while (i < EVENTS && strcmp(events[i].name, text) &&
	       (!events[i].other || strcmp(events[i].other, text)))
		i++;
	if (i == EVENTS)
		return complain_event(p, text);
	s.at = s.type = events[i].name;
	s.event = (struct sampling_event){ events[i].type, events[i].config, events[i].period };
	r = period ? parse_period(p, period, &s.event.period) : 0;
	return r ? r : add(p, &probe, &s);
}

int probes_parse(const struct probes_wanted *wanted, const struct config *config,
		 const char *command, struct probes *p)
{
	int r = 0;

	p->command = command;
	p->config = config;
	for (size_t i = 0; i < wanted->probes.nr && !r; i++)
		r = parse_probe(p, &wanted->probes.items[i]);
	for (size_t i = 0; i < wanted->events.nr && !r; i++)
		r = parse_event(p, &wanted->events.items[i]);
	p->config = NULL;
	return r;
}
