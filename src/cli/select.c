// SPDX-License-Identifier: Apache-2.0
#include "cli/select.h"

#include "cli/suggest.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct term_text {
	const char *option, *command; /* `option` as messages call it */
	const char *text;	      /* of the whole term */
};

static int complain_key(const struct term_text *t, const char *key)
{
	struct suggestion s = { .word = key, .len = strlen(key) };
	char meant[SUGGESTION_MAX];

	for (enum selection_key k = 0; k < SELECTION_KEYS_; k++)
		suggest(&s, selection_key_name(k));
	log_error("%s has no key '%s'%s; there are pid, comm, exe, cgroup, container, uid and "
		  "min-age: see 'sonde help %s'",
		  t->option, key, suggestion_text(&s, meant), t->command);
	return -EINVAL;
}

static int complain_value(const struct term_text *t, enum selection_key key, const char *value)
{
	static const char *const takes[SELECTION_KEYS_] = {
		[SELECTION_PID] = "the number of a process",
		[SELECTION_COMM] = "a process's name",
		[SELECTION_EXE] = "a path, or a file's name",
		[SELECTION_CGROUP] = "a path that begins with '/', as in /proc/PID/cgroup",
		[SELECTION_CONTAINER] = "a container's id, or how it begins",
		[SELECTION_UID] = "a user's number, or a name of /etc/passwd",
		[SELECTION_MIN_AGE] = "a whole number of seconds, or such as 5m, 2h, 1d",
	};

	log_error("%s: %s takes %s, not '%s'; see 'sonde help %s'", t->option,
		  selection_key_name(key), takes[key], value, t->command);
	return -EINVAL;
}

static int parse_condition(const struct term_text *t, char *text, struct selection *s,
			   struct select_term *term)
{
	char *equals = strchr(text, '=');
	enum selection_key key = 0;
	int r;

	if (!equals) {
		log_error("%s takes KEY=VALUE, not '%s'; see 'sonde help %s'", t->option, text,
			  t->command);
		return -EINVAL;
	}
	*equals = '\0';
	while (key < SELECTION_KEYS_ && strcmp(selection_key_name(key), text))
		key++;
	if (key == SELECTION_KEYS_)
		return complain_key(t, text);
	r = selection_add_condition(s, term, key, equals + 1);
	if (r == -EINVAL)
		return complain_value(t, key, equals + 1);
	if (r == -EEXIST)
		log_error("%s '%s' asks for two values of '%s', which no process has; make "
			  "two terms of it",
			  t->option, t->text, text);
	else if (r == -E2BIG)
		log_error("there are more than %d conditions of paths, containers and patterns",
			  SELECT_FACTS_MAX);
	return r;
}

static void want_age(struct select_term *term, double seconds)
{
	uint64_t ns = (uint64_t)(seconds * 1e9);

	if (!ns)
		return;
	term->asks |= SELECT_AGE;
	if (term->min_age_ns < ns)
		term->min_age_ns = ns;
}

static int add_term(const struct select_term *term, bool exclude, struct selection *s)
{
	int r = selection_add_term(s, term, exclude);

	if (r)
		log_error("there are more than %d terms of --include and --exclude together",
			  SELECT_TERMS_MAX);
	return r;
}

static int parse_term(const struct term_text *t, bool exclude, double min_age_s,
		      struct selection *s)
{
	_cleanup_free_ char *text = strdup(t->text);
	struct select_term term = { .asks = 0 };
	char *rest = text, *condition;
	int r = text ? 0 : -ENOMEM;

	while (!r && (condition = strsep(&rest, ",")))
		r = parse_condition(t, condition, s, &term);
	if (r)
		return r;
	if (!exclude)
		want_age(&term, min_age_s);
	return add_term(&term, exclude, s);
}

static int parse_list(const struct select_wanted *wanted, bool exclude, const struct config *config,
		      const char *command, struct selection *s)
{
	const struct config_label label = config_label(config, exclude ? "exclude" : "include");
	const struct text_list *list = exclude ? &wanted->exclude : &wanted->include;
	int r = 0;

	for (size_t i = 0; i < list->nr && !r; i++) {
		_cleanup_free_ char *text = strndup(list->items[i].text, list->items[i].len);
		struct term_text t = { label.text, command, text };

		r = text ? parse_term(&t, exclude, wanted->min_age_s, s) : -ENOMEM;
	}
	return r;
}

int select_parse(const struct select_wanted *wanted, const struct config *config,
		 const char *command, struct selection *ret)
{
	struct selection s = { 0 };
	struct select_term of_age = { .asks = 0 };
	int r = parse_list(wanted, false, config, command, &s);

	want_age(&of_age, wanted->min_age_s);
	if (!r && !wanted->include.nr && of_age.asks)
		r = add_term(&of_age, false, &s);
	if (!r)
		r = parse_list(wanted, true, config, command, &s);
	if (r) {
		selection_fini(&s);
		return r == -ENOMEM ? log_err(r, "cannot read the selection") : r;
	}
	*ret = s;
	return 0;
}
