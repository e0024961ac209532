// SPDX-License-Identifier: Apache-2.0
/*
 * The table is handed to getopt_long(), which knows the ways people write options; the values are
 * checked here, so that each mistake gets a line of the same form.
 */
#include "cli/options.h"
#include "cli/suggest.h"

#include "util/log.h"
#include "util/read_file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	SPECS_MAX = 64,
	LONG_ONLY = 256, /* getopt's value for spec i is LONG_ONLY + i */
	PID_MAX_LIMIT =
		INT_MAX, /* more than any kernel gives; whether there is one is asked later */
};

struct parser {
	const struct option_spec *specs;
	const char *command;
	char *values;
};

const char *option_label(const struct option_spec *spec, char *buf, size_t size)
{
	const char *space = spec->arg ? " " : "", *arg = spec->arg ? spec->arg : "";

	if (spec->letter)
		snprintf(buf, size, "-%c, --%s%s%s", spec->letter, spec->name, space, arg);
	else
		snprintf(buf, size, "    --%s%s%s", spec->name, space, arg);
	return buf;
}

/* One line: which option, what was given, what it takes. */
__attribute__((format(printf, 4, 5))) static int complain(const struct parser *p,
							  const struct option_spec *spec,
							  const char *text, const char *fmt, ...)
{
	char want[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	log_error("--%s takes %s, not '%s'; see 'sonde help %s'", spec->name, want, text,
		  p->command);
	return -EINVAL;
}

static int set_number(const struct parser *p, const struct option_spec *spec, const char *text)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || n < spec->min || n > spec->max) {
		if (spec->max_name)
			return complain(p, spec, text, "a whole number from %" PRIu64 " to %s",
					spec->min, spec->max_name);
		return complain(p, spec, text, "a whole number from %" PRIu64 " to %" PRIu64,
				spec->min, spec->max);
	}
	*(uint32_t *)(p->values + spec->offset) = (uint32_t)n;
	return 0;
}

static int set_seconds(const struct parser *p, const struct option_spec *spec, const char *text)
{
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	/* Digits and a point only: strtod() also knows "nan", "inf", "0x1p3". */
	if (text[strspn(text, "0123456789.")] || *end || end == text || seconds < 0.001 ||
	    seconds > (double)spec->max)
		return complain(p, spec, text, "seconds from 0.001 to %" PRIu64, spec->max);
	*(double *)(p->values + spec->offset) = seconds;
	return 0;
}

static int set_size(const struct parser *p, const struct option_spec *spec, const char *text)
{
	uint64_t size;

	if (parse_size(text, &size) < 0)
		return complain(p, spec, text, "a size such as 64M or 1G");
	if (size < spec->min || size > spec->max)
		return complain(p, spec, text, "at least %" PRIu64 "M and at most %" PRIu64 "M",
				spec->min >> 20, spec->max >> 20);
	*(uint64_t *)(p->values + spec->offset) = size;
	return 0;
}

static int set_choice(const struct parser *p, const struct option_spec *spec, const char *text)
{
	size_t first = strcspn(spec->arg, "|");
	const char *second = spec->arg + first + 1;
	bool is_second = !strcmp(text, second);

	if (!is_second && (strlen(text) != first || strncmp(text, spec->arg, first)))
		return complain(p, spec, text, "'%.*s' or '%s'", (int)first, spec->arg, second);
	*(bool *)(p->values + spec->offset) = is_second;
	return 0;
}

static bool has_pid(const struct pid_list *list, long pid)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static int set_pids(const struct parser *p, const struct option_spec *spec, const char *text)
{
	struct pid_list *list = (struct pid_list *)(p->values + spec->offset);
	const char *s = text;

	for (;; s++) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(s, &end, 10);
		if (!isdigit((unsigned char)*s) || errno || pid < 1 || pid > PID_MAX_LIMIT ||
		    (*end && *end != ','))
			return complain(p, spec, text, "process ids with commas between them");
		if (!has_pid(list, pid)) {
			if (list->nr == PIDS_MAX)
				return complain(p, spec, text, "at most %d processes", PIDS_MAX);
			list->pids[list->nr++] = (int32_t)pid;
		}
		s = end;
		if (!*s)
			return 0;
	}
}

static int set_value(const struct parser *p, const struct option_spec *spec, const char *text)
{
	switch (spec->type) {
	case OPTION_FLAG:
		*(bool *)(p->values + spec->offset) = true;
		return 0;
	case OPTION_NUMBER:
		return set_number(p, spec, text);
	case OPTION_SECONDS:
		return set_seconds(p, spec, text);
	case OPTION_SIZE:
		return set_size(p, spec, text);
	case OPTION_STRING:
		if (!*text)
			return complain(p, spec, text, "%s", spec->arg);
		*(const char **)(p->values + spec->offset) = text;
		return 0;
	case OPTION_CHOICE:
		return set_choice(p, spec, text);
	case OPTION_PIDS:
		return set_pids(p, spec, text);
	}
	return -EINVAL;
}

/* The table in getopt_long()'s two forms; returns how many specs there are. */
static int build_getopt(const struct option_spec *specs, struct option *longs, char *letters)
{
	int nr;

	*letters++ = '+'; /* stop at COMMAND: what follows is its */
	*letters++ = ':'; /* tell a missing argument from an unknown option */
	for (nr = 0; specs[nr].name && nr < SPECS_MAX; nr++) {
		longs[nr] = (struct option){
			.name = specs[nr].name,
			.has_arg = specs[nr].arg ? required_argument : no_argument,
			.val = LONG_ONLY + nr,
		};
		if (!specs[nr].letter)
			continue;
		*letters++ = specs[nr].letter;
		if (specs[nr].arg)
			*letters++ = ':';
	}
	longs[nr] = (struct option){ 0 };
	*letters = '\0';
	return nr;
}

static int find_spec(const struct option_spec *specs, int nr, int value)
{
	if (value >= LONG_ONLY)
		return value - LONG_ONLY;
	for (int i = 0; i < nr; i++)
		if (specs[i].letter == value)
			return i;
	return -1;
}

/* "--frequenzy=99" */
static int complain_unknown(const struct parser *p, const char *text)
{
	const char *word = text + strspn(text, "-");
	struct suggestion s = { .word = word, .len = strcspn(word, "=") };

	for (const struct option_spec *spec = p->specs; spec->name; spec++)
		if (!spec->hidden)
			suggest(&s, spec->name);
	if (s.best)
		log_error("unknown or ambiguous option '%s'; did you mean '--%s'? See 'sonde help "
			  "%s'",
			  text, s.best, p->command);
	else
		log_error("unknown or ambiguous option '%s'; see 'sonde help %s'", text,
			  p->command);
	return -EINVAL;
}

/* What getopt_long() did not like. */
static int complain_getopt(const struct parser *p, int nr, int c, char **argv)
{
	int i = find_spec(p->specs, nr, optopt);

	if (c == ':')
		log_error("--%s needs %s; see 'sonde help %s'", p->specs[i].name, p->specs[i].arg,
			  p->command);
	else if (optopt >= LONG_ONLY)
		log_error("--%s takes no argument; see 'sonde help %s'", p->specs[i].name,
			  p->command);
	else if (optopt)
		log_error("unknown option '-%c'; see 'sonde help %s'", optopt, p->command);
	else
		return complain_unknown(p, argv[optind - 1]);
	return -EINVAL;
}

int options_parse(const struct option_spec *specs, const char *command, int argc, char **argv,
		  void *values, int *ret_first)
{
	struct parser p = { .specs = specs, .command = command, .values = values };
	struct option longs[SPECS_MAX + 1];
	char letters[3 + 2 * SPECS_MAX];
	int nr = build_getopt(specs, longs, letters), c, r;

	for (int i = 0; i < nr; i++) {
		r = specs[i].value ? set_value(&p, &specs[i], specs[i].value) : 0;
		if (r < 0)
			return r;
	}
	opterr = 0;
	optind = 0; /* glibc: start over, also in a second call */
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return complain_getopt(&p, nr, c, argv);
		r = set_value(&p, &specs[find_spec(specs, nr, c)], optarg);
		if (r < 0)
			return r;
	}
	*ret_first = optind;
	return 0;
}

/* Words of `text` in lines of at most `width`, each behind `indent` spaces; the first is begun. */
static void print_wrapped(FILE *out, const char *text, int indent, int width)
{
	int column = 0;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column && column + 1 + len > width) {
			fprintf(out, "\n%*s", indent, "");
			column = 0;
		}
		column += fprintf(out, "%s%.*s", column ? " " : "", len, text);
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void options_print(const struct option_spec *specs, FILE *out)
{
	enum { COLUMN = 30, WIDTH = 66 };
	char label[64], text[512];
	int len;

	for (; specs->name; specs++) {
		if (specs->hidden)
			continue;
		snprintf(text, sizeof(text), "%s%s%s%s", specs->help,
			 specs->value ? " (default " : "", specs->value ? specs->value : "",
			 specs->value ? ")" : "");
		len = fprintf(out, "  %s", option_label(specs, label, sizeof(label)));
		/* A long one has its line to itself. */
		if (len < COLUMN)
			fprintf(out, "%*s", COLUMN - len, "");
		else
			fprintf(out, "\n%*s", COLUMN, "");
		print_wrapped(out, text, COLUMN, WIDTH);
	}
}
