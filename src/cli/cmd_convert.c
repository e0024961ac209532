// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde convert`: reads a file of one format whole, and writes it in another. Nothing of the
 * machine is asked; no privilege is needed.
 */
#include "cli/command.h"

#include "cli/format.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/suggest.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Text has a function's name in each stack that it is in: a file of a kilobyte may be made to
 * become gigabytes. Honest ones, of deep stacks of long names, become 50 times what they are in
 * binary.
 */
enum { SIZE_LEAST = 256 << 20, RATIO_MAX = 200 };

struct convert_options {
	const char *output, *format, *from, *type;
	uint64_t max_size;
	bool lines, help;
};

#define AT(member) .offset = offsetof(struct convert_options, member)

static const struct option_spec convert_specs[] = {
	{ 'o', "output", "OUT", NULL, "write here: another way to name OUT", OPTION_STRING,
	  AT(output) },
	{ 'f', "format", "FORMAT", NULL, "the format of OUT (default: by its extension)",
	  OPTION_STRING, AT(format) },
	{ 0, "from", "FORMAT", NULL, "the format of IN (default: by its extension and content)",
	  OPTION_STRING, AT(from) },
	{ 0, "type", "TYPE", NULL, "of which type OUT shows samples, if it shows one only",
	  OPTION_STRING, AT(type) },
	{ 0, "max-size", "SIZE", NULL,
	  "give up if OUT would be larger (default: 256M, and 200 times what IN unpacks to)",
	  OPTION_SIZE, AT(max_size), .min = 1, .max = UINT64_C(1) << 50 },
	{ 0, "lines", NULL, NULL, "show the source line beside each function", OPTION_FLAG,
	  AT(lines) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	OPTIONS_END,
};

struct conversion {
	struct convert_options options;
	const char *in, *out;
	const struct export_ops *from, *to; /* from: NULL if the content has to tell */
	struct output output;
};

static void conversion_fini(struct conversion *c)
{
	output_fini(&c->output);
}

/* --- the command line ------------------------------------------------------------------------- */

/* Options may stand before, between and behind IN and OUT. */
static int parse_words(int argc, char **argv, struct conversion *c)
{
	const char *words[2] = { NULL, NULL };
	int nr = 0, at = 0, first, r;
	bool only_words = false;

	for (;; nr++) {
		if (only_words) {
			at++;
		} else {
			r = options_parse(convert_specs, "convert", argc - at, argv + at,
					  &c->options, &first);
			if (r < 0 || c->options.help)
				return r;
			at += first;
			only_words = !strcmp(argv[at - 1], "--");
		}
		if (at >= argc)
			break;
		if (nr < 2)
			words[nr] = argv[at];
	}
	if (c->options.output) {
		if (nr < 2)
			words[nr] = c->options.output;
		nr++;
	}
	if (nr != 2) {
		log_error("give two files, IN and OUT (- for standard input or output); see 'sonde "
			  "help convert'");
		return -EINVAL;
	}
	c->in = words[0];
	c->out = words[1];
	return 0;
}

static int choose_from(struct conversion *c)
{
	const char *format = c->options.from;
	char names[FORMAT_NAMES_MAX];

	c->from = format ? format_by_name(format, true) : input_format_by_path(c->in);
	if (format && !c->from)
		return -EINVAL;
	if (c->from && !c->from->read) {
		log_error("'%s' is %s, a format that can only be written; those that can be read "
			  "are: %s",
			  c->in, c->from->name, format_names(true, names));
		return -EINVAL;
	}
	return 0;
}

static int check_not_same(const struct conversion *c)
{
	struct stat in, out;

	if (!strcmp(c->in, "-") || !strcmp(c->out, "-") || stat(c->in, &in) || stat(c->out, &out) ||
	    !S_ISREG(in.st_mode) || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
		return 0;
	log_error("'%s' and '%s' are the same file; name another one to write", c->in, c->out);
	return -EINVAL;
}

static int parse(int argc, char **argv, struct conversion *c)
{
	int r = parse_words(argc, argv, c);

	if (r < 0 || c->options.help)
		return r;
	c->to = format_to_write(c->options.format, c->out);
	r = c->to ? choose_from(c) : -EINVAL;
	return r ? r : check_not_same(c);
}

/* --- the work --------------------------------------------------------------------------------- */

/* By the content where the name says nothing, or something that the content contradicts. */
static int settle_from(struct conversion *c, const struct input *input)
{
	char names[FORMAT_NAMES_MAX], name[INPUT_NAME_MAX];

	if (c->options.from)
		return 0;
	if (!c->from || (c->from->recognise && !c->from->recognise(input->data, input->size))) {
		const struct export_ops *found = input_format_by_content(input);

		c->from = found ? found : c->from;
	}
	if (c->from)
		return 0;
	log_error("cannot tell the format of %s; give --from and one of: %s",
		  input_name(c->in, name), format_names(true, names));
	return -EBADMSG;
}

static int read_profile(struct conversion *c, struct profile *profile)
{
	_cleanup_(input_fini) struct input input = { 0 };
	char problem[200] = "", name[INPUT_NAME_MAX];
	int r = input_read(c->in, &input);

	if (!r)
		r = settle_from(c, &input);
	if (r)
		return r;
	c->output.max_size = c->options.max_size ? c->options.max_size
						 : SIZE_LEAST + RATIO_MAX * (uint64_t)input.size;
	r = profile_init(profile);
	if (!r)
		r = c->from->read(input.data, input.size, profile, problem);
	if (r == -EBADMSG)
		log_error("cannot read %s as %s: %s", input_name(c->in, name), c->from->name,
			  *problem ? problem : "it is damaged");
	else if (r < 0)
		log_err(r, "cannot read %s as %s", input_name(c->in, name), c->from->name);
	return r;
}

static int choose_type(const struct conversion *c, struct profile *profile)
{
	struct suggestion s = { .word = c->options.type };
	char name[INPUT_NAME_MAX], types[256] = "", meant[SUGGESTION_MAX];

	if (!c->options.type || !profile_show_type(profile, c->options.type))
		return 0;
	s.len = strlen(s.word);
	for (uint32_t i = 0; i < profile_nr_types(profile); i++)
		suggest_listed(&s, profile_type_name(profile, i), types, sizeof(types));
	log_error("%s has no samples of type '%s'%s; its types are: %s", input_name(c->in, name),
		  c->options.type, suggestion_text(&s, meant), types);
	return -ENOENT;
}

static int write_profile(struct conversion *c, const struct profile *profile)
{
	const struct export_options options = { .lines = c->options.lines };
	char name[INPUT_NAME_MAX];
	int r;

	c->output.is_copy = true;
	r = output_write_profile(&c->output, c->to, profile, &options);
	if (r == -EFBIG)
		log_error("as %s, %s would have more than %" PRIu64
			  " MB, the limit for its size: long names in many stacks; if it is to be "
			  "trusted, give a larger --max-size, or a format that has each name once "
			  "(pprof, otlp)",
			  c->to->name, input_name(c->in, name), c->output.max_size >> 20);
	return r;
}

static void tell_where(const struct conversion *c, const struct profile *profile)
{
	char name[INPUT_NAME_MAX];
	struct stat st;

	if (!profile->cut.samples.nr)
		log_warn("there are no samples in %s", input_name(c->in, name));
	if (strcmp(c->out, "-") && !stat(c->out, &st) && S_ISREG(st.st_mode))
		log_info("wrote %s (%s, %" PRIu64 " kB)", c->out, c->to->name,
			 ((uint64_t)st.st_size + 1023) / 1024);
}

static int convert_run(int argc, char **argv)
{
	_cleanup_(conversion_fini) struct conversion c = { 0 };
	_cleanup_(profile_fini) struct profile profile = { 0 };

	if (parse(argc, argv, &c) < 0)
		return EXIT_USAGE;
	if (c.options.help) {
		help_print_command(&command_convert, stdout);
		return EXIT_OK;
	}
	if (output_open(c.out, &c.output) < 0 || read_profile(&c, &profile) < 0)
		return EXIT_ERROR;
	if (choose_type(&c, &profile))
		return EXIT_ERROR;
	if (write_profile(&c, &profile) < 0)
		return EXIT_ERROR;
	tell_where(&c, &profile);
	return EXIT_OK;
}

const struct command command_convert = {
	.name = "convert",
	.summary = "turn a recording into another format",
	.usage = "IN OUT [OPTIONS]",
	.description =
		"Reads IN, a recording in any of the formats that can be read back (folded, pprof, "
		"otlp,\n"
		"perf; also gzip'ed), and writes OUT in any format that there is. '-' is standard "
		"input\n"
		"or output. Stacks and sums stay what they are; what a format cannot hold (times, "
		"say, or\n"
		"lines) is not there afterwards.\n",
	.options = convert_specs,
	.run = convert_run,
};
