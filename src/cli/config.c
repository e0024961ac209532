// SPDX-License-Identifier: Apache-2.0
#include "cli/config.h"

#include "net/endpoint.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/read_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { FILE_MAX = 64 << 10, NAME_SIZE = 64 };

#define PREFIX "SONDE_"

extern char **environ;

static void set_source(struct config *c, const struct option_spec *spec,
		       const struct config_value *value)
{
	c->values[spec - c->specs] = *value;
	c->values[spec - c->specs].order = ++c->nr_set;
}

/* What only makes sense on the command line ("config" as a variable, too). */
static bool is_setting(const struct option_spec *spec)
{
	static const char *const others[] = { "config", "print-config", "help", "version",
					      "copyright" };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(spec->name, others[i]))
			return false;
	return true;
}

/* --- the environment -------------------------------------------------------------------------- */

/* "SONDE_OUTPUT_DIR=x": "output-dir". False: it does not begin with this prefix. */
static bool name_of_variable(const char *variable, const char *prefix, char ret[NAME_SIZE])
{
	size_t len = strcspn(variable, "="), skip = strlen(prefix);

	if (strncmp(variable, prefix, skip) || len - skip >= NAME_SIZE || !variable[len])
		return false;
	for (size_t i = skip; i < len; i++)
		ret[i - skip] =
			variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);
	ret[len - skip] = '\0';
	return true;
}

/* Of our prefix or the others', and not empty, as OpenTelemetry has it: its option, or NULL. */
static const struct option_spec *find_variable(const struct config *c, const char *variable,
					       const char *prefix, char name[NAME_SIZE])
{
	const struct option_spec *spec;

	*name = '\0';
	if (!name_of_variable(variable, prefix, name) || !strchr(variable, '=')[1]) {
		*name = '\0';
		return NULL;
	}
	spec = option_find(c->specs, name);
	return spec && (is_setting(spec) || !strcmp(name, "config")) ? spec : NULL;
}

static int read_variable(struct config *c, const char *variable, const char *prefix, void *values)
{
	struct config_value value = { .source = CONFIG_ENVIRONMENT, .variable = variable };
	char name[NAME_SIZE], what[NAME_SIZE + 32];
	const struct option_spec *spec = find_variable(c, variable, prefix, name);
	int r;

	if (!spec)
		return 0;
	value.text = strchr(variable, '=') + 1;
	snprintf(what, sizeof(what), "%.*s", (int)strcspn(variable, "="), variable);
	r = option_set(spec, c->command, what, value.text, values);
	if (!r)
		set_source(c, spec, &value);
	return r;
}

/* Variables may be for other programs: what is not known is an error of nobody's, perhaps. */
static void tell_variable(const struct config *c, const char *variable, const char *prefix)
{
	char name[NAME_SIZE], meant[80];

	if (find_variable(c, variable, prefix, name) || !*name)
		return;
	option_suggestion(c->specs, name, "--", meant, sizeof(meant));
	if (*meant)
		log_warn("the variable %.*s is of no option%s", (int)strcspn(variable, "="),
			 variable, meant);
}

/* It is for all programs, which go on without it if it is wrong: so does this one. */
static void read_others_variable(struct config *c, const struct config_variable *v, void *values)
{
	const struct option_spec *spec = option_find(c->specs, v->option);
	struct config_value value = { .source = CONFIG_ENVIRONMENT,
				      .text = getenv(v->variable),
				      .unit = v->unit,
				      .variable = v->variable };
	char number[64];

	if (!value.text || !*value.text)
		return;
	if (v->unit && value.text[strspn(value.text, "0123456789")]) {
		log_warn("%s is left aside: it takes a whole number of %s, not '%s'", v->variable,
			 v->unit, value.text);
		return;
	}
	/* No option that keeps its text has a unit. */
	snprintf(number, sizeof(number), "%s%s", value.text, v->unit ? v->unit : "");
	if (!option_try(spec, v->variable, v->unit ? number : value.text, values))
		set_source(c, spec, &value);
}

static int read_environment(struct config *c, const struct config_variable *variables, void *values)
{
	int r = 0;

	for (; variables && variables->variable; variables++)
		read_others_variable(c, variables, values);
	for (char **variable = environ; c->others_prefix && *variable && !r; variable++)
		r = read_variable(c, *variable, c->others_prefix, values);
	for (char **variable = environ; *variable && !r; variable++)
		r = read_variable(c, *variable, PREFIX, values);
	return r;
}

/* Which file to read, if the command line does not say it: SONDE_CONFIG. NULL: none. */
static const char *file_by_variable(const char *others_prefix)
{
	char variable[NAME_SIZE];
	const char *path = getenv(PREFIX "CONFIG");

	if ((!path || !*path) && others_prefix) {
		snprintf(variable, sizeof(variable), "%sCONFIG", others_prefix);
		path = getenv(variable);
	}
	return path && *path ? path : NULL;
}

/* --- the file --------------------------------------------------------------------------------- */

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* As a file of another kind has it. */
static bool is_quoted(const char *text)
{
	size_t len = strlen(text);

	return len >= 2 && (*text == '"' || *text == '\'') && text[len - 1] == *text;
}

static int read_pair(struct config *c, const char *name, const char *text, unsigned line,
		     void *values)
{
	const struct option_spec *spec = option_find(c->specs, name);
	struct config_value value = { .source = CONFIG_FILE, .text = text, .line = line };
	char what[512], meant[80];
	int r;

	if (spec && !is_setting(spec)) {
		log_error("%s:%u: '%s' is for the command line only", c->path, line, name);
		return -EINVAL;
	}
	if (!spec) {
		log_error("%s:%u: unknown option '%s'%s", c->path, line, name,
			  option_suggestion(c->specs, name, "", meant, sizeof(meant)));
		return -EINVAL;
	}
	if (c->values[spec - c->specs].source == CONFIG_FILE) {
		log_error("%s:%u: '%s' is in line %u, too", c->path, line, name,
			  c->values[spec - c->specs].line);
		return -EINVAL;
	}
	snprintf(what, sizeof(what), "%s:%u: %s", c->path, line, name);
	if (is_quoted(text)) {
		log_error("%s stands without quotes here: they would be a part of it", what);
		return -EINVAL;
	}
	r = option_set(spec, c->command, what, text, values);
	if (!r)
		set_source(c, spec, &value);
	return r;
}

/* Where a comment begins: at a '#', in the line with a blank before it. */
static char *find_comment(char *line)
{
	char *at = line;

	while ((at = strchr(at, '#')) && at != line && at[-1] != ' ' && at[-1] != '\t')
		at++;
	return at;
}

/*
 * "key = value", or "key value" as the OpenTelemetry profiler has it; a flag alone is true there,
 * and what may stand alone on the command line may here.
 */
static int read_line(struct config *c, char *text, unsigned line, void *values)
{
	const struct option_spec *spec;
	char *end, *value, *comment = find_comment(text);

	if (comment)
		*comment = '\0';
	text = trim(text);
	if (!*text)
		return 0;
	end = text + strcspn(text, "= \t");
	value = end + strspn(end, " \t");
	if (*value == '=') {
		*end = '\0';
		return read_pair(c, text, trim(value + 1), line, values);
	}
	if (*end) {
		*end = '\0';
		return read_pair(c, text, value, line, values);
	}
	spec = option_find(c->specs, text);
	if (spec && spec->arg && !spec->alone) {
		log_error("%s:%u: '%s' is not 'key = value'", c->path, line, text);
		return -EINVAL;
	}
	return read_pair(c, text, spec && spec->alone ? spec->alone : "true", line, values);
}

static int read_file(struct config *c, void *values)
{
	size_t size;
	int r = read_file_at(AT_FDCWD, c->path, FILE_MAX, &c->file, &size);
	char *line = c->file, *next;

	if (r)
		return log_err(r, "cannot read the configuration '%s'", c->path);
	if (strlen(c->file) != size) {
		log_error("the configuration '%s' is no text", c->path);
		return -EINVAL;
	}
	/* What editors of another system begin a text with. */
	if (!strncmp(line, "\xef\xbb\xbf", 3))
		line += 3;
	for (unsigned number = 1; line && !r; number++, line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		r = read_line(c, line, number, values);
	}
	return r;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void on_option(void *ctx, const struct option_spec *spec, const char *text)
{
	set_source(ctx, spec,
		   &(struct config_value){ .source = CONFIG_COMMAND_LINE,
					   .text = text ? text : "true" });
}

static int read_command_line(struct config *c, int argc, char **argv, void *values)
{
	int first, r;

	r = options_parse_told(c->specs, c->command, argc, argv, values, on_option, c, &first);
	if (!r && first < argc) {
		log_error("'%s': %s takes no arguments; see 'sonde help %s'", argv[first],
			  c->command, c->command);
		return -EINVAL;
	}
	return r;
}

static int read_defaults(struct config *c, void *values)
{
	for (size_t i = 0; c->specs[i].name; i++)
		c->values[i] = (struct config_value){
			.source = c->specs[i].value ? CONFIG_DEFAULT : CONFIG_NOT_SET,
			.text = c->specs[i].value,
		};
	return options_set_defaults(c->specs, c->command, values);
}

/* Lists on the command line are in place of those of before, not behind them. */
static void clear_lists(const struct config *c, const bool *given, char *values)
{
	for (size_t i = 0; c->specs[i].name; i++)
		if (given[i] && c->specs[i].type == OPTION_LIST)
			((struct text_list *)(values + c->specs[i].offset))->nr = 0;
}

static void tell_ignored(const struct config *c)
{
	char list[512] = "";

	for (size_t i = 0; c->specs[i].name; i++) {
		size_t len = strlen(list);

		if (c->specs[i].type == OPTION_IGNORED && c->values[i].source > CONFIG_DEFAULT)
			snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "",
				 c->specs[i].name);
	}
	if (*list)
		log_info("ignored, since there is no need of it here: %s", list);
}

void config_tell(const struct config *c)
{
	for (char **variable = environ; c->others_prefix && *variable; variable++)
		tell_variable(c, *variable, c->others_prefix);
	for (char **variable = environ; *variable; variable++)
		tell_variable(c, *variable, PREFIX);
	tell_ignored(c);
}

/* Of those that set the same value the one that was said last: the nearest to the user. */
static size_t find_source(const struct config *c, const struct option_spec *spec)
{
	size_t best = (size_t)(spec - c->specs);

	for (size_t i = 0; c->specs[i].name; i++)
		if (c->specs[i].offset == spec->offset && c->specs[i].type == spec->type &&
		    (c->values[i].source > c->values[best].source ||
		     (c->values[i].source == c->values[best].source &&
		      c->values[i].order > c->values[best].order)))
			best = i;
	return best;
}

/*
 * Was what spec->instead names said nearer to the user: in a place that goes before, or later in
 * the same one? Variables have no order.
 */
static bool is_overruled(const struct config *c, const struct option_spec *spec)
{
	const struct option_spec *instead =
		spec->instead ? option_find(c->specs, spec->instead) : NULL;
	const struct config_value *own, *other;

	if (!instead)
		return false;
	own = &c->values[find_source(c, spec)];
	other = &c->values[find_source(c, instead)];
	if (other->source <= CONFIG_DEFAULT || own->source <= CONFIG_DEFAULT)
		return false;
	/* That is as not given. */
	if (instead->or_none && other->text && !*other->text)
		return false;
	if (other->source == own->source)
		return own->source != CONFIG_ENVIRONMENT && other->order > own->order;
	return other->source > own->source;
}

/* Such options have no default. */
static void drop_overruled(const struct config *c, char *values)
{
	for (const struct option_spec *spec = c->specs; spec->name; spec++) {
		void *value = values + spec->offset;

		if (!is_overruled(c, spec))
			continue;
		if (spec->type == OPTION_FRACTION)
			*(double *)value = 0;
		else
			*(const char **)value = NULL;
	}
}

int config_read(const struct option_spec *specs, const struct config_variable *variables,
		const char *others_prefix, const char *command, int argc, char **argv, void *values,
		size_t size, const char *const *config_path, struct config *ret)
{
	_cleanup_(config_fini) struct config c = { .specs = specs,
						   .others_prefix = others_prefix,
						   .command = command,
						   .options = values };
	bool given[CONFIG_OPTIONS_MAX] = { false };
	int r = read_command_line(&c, argc, argv, values);

	for (size_t i = 0; specs[i].name; i++)
		given[i] = c.values[i].source == CONFIG_COMMAND_LINE;
	/* Once more, over what it goes before. */
	c.path = *config_path ? *config_path : file_by_variable(others_prefix);
	memset(values, 0, size);
	if (!r)
		r = read_defaults(&c, values);
	if (!r && c.path)
		r = read_file(&c, values);
	if (!r)
		r = read_environment(&c, variables, values);
	clear_lists(&c, given, values);
	if (!r)
		r = read_command_line(&c, argc, argv, values);
	if (r)
		return r;
	drop_overruled(&c, values);
	*ret = c;
	c.file = NULL;
	return 0;
}

void config_fini(struct config *config)
{
	free(config->file);
	config->file = NULL;
}

struct config_label config_label(const struct config *config, const char *option)
{
	const struct option_spec *spec = config ? option_find(config->specs, option) : NULL;
	size_t i = spec ? find_source(config, spec) : 0;
	const struct config_value *value = spec ? &config->values[i] : NULL;
	struct config_label label;

	if (value && value->source == CONFIG_FILE)
		snprintf(label.text, sizeof(label.text), "%s:%u: %s", config->path, value->line,
			 config->specs[i].name);
	else if (value && value->source == CONFIG_ENVIRONMENT)
		snprintf(label.text, sizeof(label.text), "%.*s", (int)strcspn(value->variable, "="),
			 value->variable);
	else
		snprintf(label.text, sizeof(label.text), "--%s", option);
	return label;
}

static void print_source(const struct config *c, size_t i, FILE *out)
{
	const struct config_value *value = &c->values[i];

	if (value->source == CONFIG_FILE)
		fprintf(out, "%s:%u", c->path, value->line);
	else if (value->source == CONFIG_COMMAND_LINE)
		fprintf(out, "--%s", c->specs[i].name);
	else if (value->source == CONFIG_ENVIRONMENT)
		fprintf(out, "%.*s", (int)strcspn(value->variable, "="), value->variable);
	else
		fputs(value->source == CONFIG_DEFAULT ? "default" : "not set", out);
}

/* As a comment: what is printed can be read, and does not contain what it must not. */
static void print_secret(const struct config *c, const struct option_spec *spec, size_t i,
			 FILE *out)
{
	fputs("# ", out);
	print_source(c, i, out);
	fprintf(out, ", not shown\n# %s = ...\n", spec->name);
}

/* Would be read as something else. */
static bool cannot_be_in_a_file(const char *text)
{
	return is_quoted(text) || strstr(text, " #") || strstr(text, "\t#") || *text == '#' ||
	       strchr(text, '\n') || strchr(" \t", *text) ||
	       strchr(" \t\r", text[strlen(text) - 1]);
}

/* On a line of a file all of it stands together. */
static void print_list(const struct text_list *list, FILE *out)
{
	for (size_t i = 0; i < list->nr; i++)
		fprintf(out, "%s%.*s", i ? "; " : "", (int)list->items[i].len, list->items[i].text);
	fputc('\n', out);
}

/* Another name of an option that is shown: the value is printed with that one. */
static bool is_other_name(const struct config *c, const struct option_spec *spec)
{
	for (const struct option_spec *s = c->specs; spec->hidden && s->name; s++)
		if (!s->hidden && s->offset == spec->offset && s->type == spec->type &&
		    is_setting(s))
			return true;
	return false;
}

/* What is printed of its value; NULL: it has none. */
static const char *text_of(const struct config *c, const struct option_spec *spec, size_t i)
{
	const char *text = c->values[i].text;

	if (spec->type == OPTION_FLAG)
		return text ? text : "false";
	if (spec->type == OPTION_LIST)
		return ((const struct text_list *)(c->options + spec->offset))->nr ? text : NULL;
	return text && !*text && spec->value ? spec->value : text;
}

void config_print(const struct config *config, FILE *out)
{
	for (size_t at = 0; config->specs[at].name; at++) {
		const struct option_spec *spec = &config->specs[at];
		size_t i = find_source(config, spec);
		const char *text = text_of(config, spec, i), *unit = config->values[i].unit;

		if (!is_setting(spec) || spec->type == OPTION_IGNORED ||
		    is_other_name(config, spec) ||
		    (spec->hidden && config->values[i].source <= CONFIG_DEFAULT))
			continue;
		if (text && (spec->secret || (spec->endpoint && endpoint_has_secret(text)))) {
			print_secret(config, spec, i, out);
			continue;
		}
		fputs("# ", out);
		print_source(config, i, out);
		if (text && is_overruled(config, spec)) {
			fprintf(out, ", but %s goes before\n# %s = %s\n",
				config_label(config, spec->instead).text, spec->name, text);
			continue;
		}
		if (text && spec->type == OPTION_LIST) {
			fprintf(out, "\n%s = ", spec->name);
			print_list((const void *)(config->options + spec->offset), out);
			continue;
		}
		if (text && *text && cannot_be_in_a_file(text)) {
			fprintf(out, ", which cannot be in a file\n# %s = %.*s...\n", spec->name,
				(int)strcspn(text, "\n"), text);
			continue;
		}
		fprintf(out, "\n%s%s = %s%s\n", text ? "" : "# ", spec->name, text ? text : "",
			unit ? unit : "");
	}
}
