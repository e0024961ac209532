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
#include <strings.h>

enum {
	LONG_ONLY = 256, /* getopt's value for spec i is LONG_ONLY + i */
	PID_MAX_LIMIT =
		INT_MAX, /* more than any kernel gives; whether there is one is asked later */
};

struct parser {
	const struct option_spec *specs;
	const char *command;
	char *values;
	const char *what; /* how the option was named; NULL: on the command line */
	option_told_fn *told;
	void *ctx;
	bool leave_aside; /* what is wrong, with a warning */
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
	char want[256], option[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	snprintf(option, sizeof(option), "-%s%s", spec->name[1] ? "-" : "", spec->name);
	if (p->leave_aside) {
		log_warn("%s is left aside: it takes %s, not '%s'", p->what, want, text);
		return -EINVAL;
	}
	log_error("%s takes %s, not '%s'; see 'sonde help %s'", p->what ? p->what : option, want,
		  text, p->command);
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

/* "2.5", "200ms", "1m30s", all that Go's durations have: seconds, or -1. */
static double parse_seconds(const char *text)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "\u00b5s", 1e-6 }, { "\u03bcs", 1e-6 },
		      { "ms", 1e-3 }, { "h", 3600 },  { "m", 60 },	   { "s", 1 } };
	double sum = 0, number;
	char digits[32], *end;

	do {
		/* Only these: strtod() also knows "nan", "inf", "0x1p3". */
		size_t len = strspn(text, "0123456789."), i = 0;

		snprintf(digits, sizeof(digits), "%.*s", (int)len, text);
		number = strtod(digits, &end);
		if (!len || len >= sizeof(digits) || *end || end == digits)
			return -1;
		text += len;
		if (!*text)
			return sum ? -1 : number; /* "1m30": of what? */
		while (i < sizeof(units) / sizeof(*units) &&
		       strncmp(text, units[i].name, strlen(units[i].name)))
			i++;
		if (i == sizeof(units) / sizeof(*units))
			return -1;
		sum += number * units[i].seconds;
		text += strlen(units[i].name);
	} while (*text);
	return sum;
}

static int set_seconds(const struct parser *p, const struct option_spec *spec, const char *text)
{
	double seconds = parse_seconds(text);

	if ((!(seconds >= 0.001) && !(spec->or_none && seconds == 0)) ||
	    seconds > (double)spec->max)
		return complain(p, spec, text, "seconds from 0.001 to %" PRIu64, spec->max);
	*(double *)(p->values + spec->offset) = seconds;
	return 0;
}

int option_fraction(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	/* No "nan", "inf", "0x1p3". */
	return text[strspn(text, "0123456789.eE+-")] || *end || end == text || !(*ret >= 0) ||
			       *ret > 1
		       ? -EINVAL
		       : 0;
}

static int set_fraction(const struct parser *p, const struct option_spec *spec, const char *text)
{
	double value;

	if (option_fraction(text, &value))
		return complain(p, spec, text, "a number from 0 to 1");
	*(double *)(p->values + spec->offset) = value;
	return 0;
}

static bool is_one_of(const char *text, const char *const words[3])
{
	for (int i = 0; i < 3; i++)
		if (!strcasecmp(text, words[i]))
			return true;
	return false;
}

/*
 * On the command line a flag is enough. In OpenTelemetry's variables True is as good as true, and
 * its profiler's flags are Go's, which know 1, t and T as well.
 */
static int set_flag(const struct parser *p, const struct option_spec *spec, const char *text)
{
	static const char *const yes[] = { "true", "t", "1" }, *const no[] = { "false", "f", "0" };
	bool is_true = !text || is_one_of(text, yes);

	if (!is_true && !is_one_of(text, no))
		return complain(p, spec, text, "'true' or 'false'");
	*(bool *)(p->values + spec->offset) = is_true;
	return 0;
}

/* As a person would type it. */
static const char *format_size(uint64_t size, char buf[32])
{
	static const char units[] = { ' ', 'k', 'M', 'G' };
	int unit = 0;

	while (size && !(size & 1023) && unit < 3) {
		size >>= 10;
		unit++;
	}
	snprintf(buf, 32, "%" PRIu64 "%.*s", size, unit > 0, &units[unit]);
	return buf;
}

static int set_size(const struct parser *p, const struct option_spec *spec, const char *text)
{
	char least[32], most[32];
	uint64_t size;

	if (parse_size(text, &size) < 0)
		return complain(p, spec, text, "a size such as 64M or 1G");
	if (size < spec->min || size > spec->max)
		return complain(p, spec, text, "at least %s and at most %s",
				format_size(spec->min, least), format_size(spec->max, most));
	*(uint64_t *)(p->values + spec->offset) = size;
	return 0;
}

static int complain_choice(const struct parser *p, const struct option_spec *spec, const char *text)
{
	struct suggestion s = { .word = text, .len = strlen(text) };
	char one[32], meant[SUGGESTION_MAX];
	const char *other = strchr(spec->arg, '|') + 1;

	snprintf(one, sizeof(one), "%.*s", (int)(other - 1 - spec->arg), spec->arg);
	suggest(&s, one);
	suggest(&s, other);
	return complain(p, spec, text, "'%s' or '%s'%s", one, other, suggestion_text(&s, meant));
}

/* OpenTelemetry's variables have words in any case: GZIP. */
static int set_choice(const struct parser *p, const struct option_spec *spec, const char *text)
{
	size_t first = strcspn(spec->arg, "|");
	const char *second = spec->arg + first + 1;
	bool is_second = !strcasecmp(text, second);

	if (!is_second && (strlen(text) != first || strncasecmp(text, spec->arg, first)))
		return complain_choice(p, spec, text);
	*(bool *)(p->values + spec->offset) = is_second;
	return 0;
}

/* What names of programs are made of, for the most part. */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static bool has_pid(const struct pid_list *list, long pid)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static int complain_pids(const struct parser *p, const struct option_spec *spec, const char *text)
{
	size_t len = strcspn(text, ","), digits = strspn(text, "0123456789,");

	if (!text[digits] && strlen(text) >= sizeof("2147483647") - 1)
		return complain(p, spec, text, "process ids, which are at most %d", PID_MAX_LIMIT);
	if (isalpha((unsigned char)*text) && len == strspn(text, NAME_LETTERS))
		return complain(p, spec, text,
				"process ids with commas between them ('pgrep -d, %.*s' tells "
				"those of a name)",
				(int)len, text);
	return complain(p, spec, text, "process ids with commas between them");
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
			return complain_pids(p, spec, text);
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

/* Where it is given elsewhere, all of it is. */
static int set_list(const struct parser *p, const struct option_spec *spec, const char *text)
{
	struct text_list *list = (struct text_list *)(p->values + spec->offset);
	size_t len;

	if (p->what)
		list->nr = 0;
	if (!*text && spec->or_none)
		return 0;
	for (;; text += len + 1) {
		struct list_text item = { text, len = strcspn(text, ";") };

		while (item.len && isspace((unsigned char)*item.text)) {
			item.text++;
			item.len--;
		}
		while (item.len && isspace((unsigned char)item.text[item.len - 1]))
			item.len--;
		if (!item.len)
			return complain(p, spec, text, "%s", spec->arg);
		if (list->nr == TEXT_LIST_MAX)
			return complain(p, spec, text, "at most %d times %s", TEXT_LIST_MAX,
					spec->arg);
		list->items[list->nr++] = item;
		if (!text[len])
			return 0;
	}
}

static int set_value(const struct parser *p, const struct option_spec *spec, const char *text)
{
	switch (spec->type) {
	case OPTION_FLAG:
		return set_flag(p, spec, text);
	case OPTION_NUMBER:
		return set_number(p, spec, text);
	case OPTION_SECONDS:
		return set_seconds(p, spec, text);
	case OPTION_FRACTION:
		return set_fraction(p, spec, text);
	case OPTION_SIZE:
		return set_size(p, spec, text);
	case OPTION_STRING:
		if (!*text && !spec->or_none)
			return complain(p, spec, text, "%s", spec->arg);
		*(const char **)(p->values + spec->offset) = *text ? text : spec->value;
		return 0;
	case OPTION_CHOICE:
		return set_choice(p, spec, text);
	case OPTION_LIST:
		return set_list(p, spec, text);
	case OPTION_PIDS:
		return set_pids(p, spec, text);
	case OPTION_IGNORED:
		return 0;
	}
	return -EINVAL;
}

/* The table in getopt_long()'s two forms; returns how many specs there are. */
static int build_getopt(const struct option_spec *specs, struct option *longs, char *letters,
			int flag_arg)
{
	int nr;

	*letters++ = '+'; /* stop at COMMAND: what follows is its */
	*letters++ = ':'; /* tell a missing argument from an unknown option */
	for (nr = 0; specs[nr].name && nr < OPTIONS_MAX; nr++) {
		longs[nr] = (struct option){
			.name = specs[nr].name,
			.has_arg = specs[nr].alone ? optional_argument
				   : specs[nr].arg ? required_argument
						   : flag_arg,
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

const char *option_suggestion(const struct option_spec *specs, const char *name, const char *prefix,
			      char *buf, size_t size)
{
	struct suggestion s = { .word = name, .len = strcspn(name, "=") };

	for (const struct option_spec *spec = specs; spec->name; spec++)
		if (!spec->hidden)
			suggest(&s, spec->name);
	buf[0] = '\0';
	if (s.best)
		snprintf(buf, size, "; did you mean '%s%s'?", prefix, s.best);
	return buf;
}

/* "--no-kernel, --no-inlines": which options `name` is the beginning of; how many they are. */
static int list_begun(const struct option_spec *specs, const char *name, char *buf, size_t size)
{
	size_t name_len = strcspn(name, "="), len = 0;
	int nr = 0;

	buf[0] = '\0';
	for (; specs->name; specs++) {
		if (specs->hidden || strncmp(specs->name, name, name_len))
			continue;
		nr++;
		/* What finds no room is not half there. */
		if (len + strlen(specs->name) + sizeof("--, ...") < size)
			len += (size_t)snprintf(buf + len, size - len, "%s--%s", len ? ", " : "",
						specs->name);
		else if (strcmp(buf + len - 3, "..."))
			len += (size_t)snprintf(buf + len, size - len, ", ...");
	}
	return nr;
}

/* "--frequenzy=99" */
static int complain_unknown(const struct parser *p, const char *text)
{
	const char *name = text + strspn(text, "-");
	char meant[80], list[128];

	if (*name && list_begun(p->specs, name, list, sizeof(list)) > 1) {
		log_error("option '%s' may be any of %s; see 'sonde help %s'", text, list,
			  p->command);
		return -EINVAL;
	}
	option_suggestion(p->specs, name, "--", meant, sizeof(meant));
	log_error("unknown option '%s'%s%s 'sonde help %s'", text, meant, *meant ? " See" : "; see",
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

/*
 * Of an option that may stand alone: what stands behind it without '=', if that looks like a value.
 * A daemon takes no arguments, so there everything does; elsewhere it may be the COMMAND.
 */
static const char *value_of(const struct option_spec *spec, int argc, char **argv, bool as_daemons)
{
	const char *next = optind < argc ? argv[optind] : NULL;

	if (optarg || !spec->alone)
		return optarg;
	if (!next || *next == '-' ||
	    !(as_daemons || isdigit((unsigned char)*next) || *next == '.' ||
	      !strncmp(next, spec->alone, strcspn(spec->alone, "="))))
		return spec->alone;
	optind++;
	return next;
}

typedef int getopt_fn(int argc, char *const *argv, const char *letters, const struct option *longs,
		      int *index);

static int parse_all(struct parser *p, int argc, char **argv, bool as_daemons, int *ret_first)
{
	getopt_fn *next = as_daemons ? getopt_long_only : getopt_long;
	struct option longs[OPTIONS_MAX + 1];
	char letters[3 + 2 * OPTIONS_MAX];
	int nr = build_getopt(p->specs, longs, letters,
			      as_daemons ? optional_argument : no_argument);
	int c, r;

	opterr = 0;
	optind = 0; /* glibc: start over, also in a second call */
	while ((c = next(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_spec *spec;
		const char *text;

		if (c == '?' || c == ':')
			return complain_getopt(p, nr, c, argv);
		spec = &p->specs[find_spec(p->specs, nr, c)];
		text = value_of(spec, argc, argv, as_daemons);
		r = set_value(p, spec, text);
		if (r < 0)
			return r;
		if (p->told)
			p->told(p->ctx, spec, text);
	}
	*ret_first = optind;
	return 0;
}

int options_set_defaults(const struct option_spec *specs, const char *command, void *values)
{
	struct parser p = { .specs = specs, .command = command, .values = values };
	int r = 0;

	for (const struct option_spec *spec = specs; spec->name && !r; spec++)
		r = spec->value ? set_value(&p, spec, spec->value) : 0;
	return r;
}

int options_parse(const struct option_spec *specs, const char *command, int argc, char **argv,
		  void *values, int *ret_first)
{
	struct parser p = { .specs = specs, .command = command, .values = values };
	int r = options_set_defaults(specs, command, values);

	return r ? r : parse_all(&p, argc, argv, false, ret_first);
}

int options_parse_told(const struct option_spec *specs, const char *command, int argc, char **argv,
		       void *values, option_told_fn *told, void *ctx, int *ret_first)
{
	struct parser p = { specs, command, values, NULL, told, ctx, false };

	return parse_all(&p, argc, argv, true, ret_first);
}

int option_set(const struct option_spec *spec, const char *command, const char *what,
	       const char *text, void *values)
{
	const struct parser p = { .command = command, .values = values, .what = what };

	return set_value(&p, spec, text);
}

int option_try(const struct option_spec *spec, const char *what, const char *text, void *values)
{
	const struct parser p = { .values = values, .what = what, .leave_aside = true };

	return set_value(&p, spec, text);
}

const struct option_spec *option_find(const struct option_spec *specs, const char *name)
{
	for (; specs->name; specs++)
		if (!strcmp(specs->name, name))
			return specs;
	return NULL;
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
