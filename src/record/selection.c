// SPDX-License-Identifier: Apache-2.0
#include "record/selection.h"

#include "bpf/judge.bpf.h"
#include "process/proc_identity.h"
#include "process/proc_stat.h"
#include "process/user_names.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/read_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROC_FILE_MAX = 64 << 10, COMM_MAX = SAMPLE_COMM_LEN - 1 };

static const uint64_t second_ns = 1000000000;

const char *selection_key_name(enum selection_key key)
{
	static const char *const names[SELECTION_KEYS_] = {
		[SELECTION_PID] = "pid",
		[SELECTION_COMM] = "comm",
		[SELECTION_EXE] = "exe",
		[SELECTION_CGROUP] = "cgroup",
		[SELECTION_CONTAINER] = "container",
		[SELECTION_UID] = "uid",
		[SELECTION_MIN_AGE] = "min-age",
	};

	return key < SELECTION_KEYS_ ? names[key] : NULL;
}

/* --- terms ------------------------------------------------------------------------------------ */

static int parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !isdigit((unsigned char)*text) || *end || errno || *ret > max ? -EINVAL : 0;
}

/* "10", "10s", "5m", "2h", "1d" */
static int parse_age(const char *text, uint64_t *ret_ns)
{
	static const struct {
		char name;
		uint64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	uint64_t number, seconds = 0;
	size_t len = strspn(text, "0123456789");
	char digits[16];

	if (!len || len >= sizeof(digits) || (text[len] && text[len + 1]))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text[len] == units[i].name || (!text[len] && units[i].name == 's'))
			seconds = units[i].seconds;
	if (!seconds || parse_number(digits, INT64_MAX / second_ns / seconds, &number))
		return -EINVAL;
	*ret_ns = number * seconds * second_ns;
	return 0;
}

static int add_fact(struct selection *s, struct select_term *term, enum selection_key key,
		    const char *pattern)
{
	struct selection_fact fact = { .key = key, .pattern = strdup(pattern) };
	int r;

	if (!fact.pattern)
		return -ENOMEM;
	r = s->facts.nr == SELECT_FACTS_MAX ? -E2BIG : vec_push(&s->facts, fact);
	if (r) {
		free(fact.pattern);
		return r;
	}
	term->facts |= UINT64_C(1) << (s->facts.nr - 1);
	term->asks |= SELECT_FACTS;
	return 0;
}

/* The kernel compares names, and beginnings of names; it has cut them itself. */
static int add_comm(struct selection *s, struct select_term *term, const char *value)
{
	size_t len = strlen(value), fixed = strcspn(value, "*?[\\");
	char comm[SAMPLE_COMM_LEN] = "", mask[SAMPLE_COMM_LEN] = "";

	if (fixed != len && (value[fixed] != '*' || value[fixed + 1]))
		return add_fact(s, term, SELECTION_COMM, value);
	if (term->asks & SELECT_COMM)
		return -EEXIST;
	if (fixed > COMM_MAX)
		fixed = COMM_MAX;
	memcpy(comm, value, fixed);
	/* A whole name has its end, too. */
	memset(mask, 0xff, fixed + (fixed == len || fixed == COMM_MAX));
	memcpy(term->comm, comm, sizeof(comm));
	memcpy(term->comm_mask, mask, sizeof(mask));
	term->asks |= SELECT_COMM;
	return 0;
}

static int add_number(struct select_term *term, uint32_t ask, const char *value, uint32_t *ret,
		      uint32_t *ret_mask)
{
	uint64_t number;

	if (parse_number(value, ask == SELECT_PID ? INT_MAX : UINT32_MAX - 1, &number))
		return -EINVAL;
	if (term->asks & ask)
		return -EEXIST;
	*ret = (uint32_t)number;
	*ret_mask = UINT32_MAX;
	term->asks |= ask;
	return 0;
}

/* A name is what /etc/passwd says when the selection is read. One of digits alone is a number. */
static int add_user(struct select_term *term, const char *value)
{
	struct user_names names = { 0 };
	char number[16];
	uint32_t uid;
	int r;

	if (!value[strspn(value, "0123456789")])
		return add_number(term, SELECT_UID, value, &term->uid, &term->uid_mask);
	r = user_names_number(&names, value, &uid);
	user_names_fini(&names);
	if (r)
		return -EINVAL;
	snprintf(number, sizeof(number), "%" PRIu32, uid);
	return add_number(term, SELECT_UID, number, &term->uid, &term->uid_mask);
}

static int add_age(struct select_term *term, const char *value)
{
	uint64_t age;

	if (parse_age(value, &age))
		return -EINVAL;
	if (term->asks & SELECT_AGE)
		return -EEXIST;
	term->min_age_ns = age;
	term->asks |= SELECT_AGE;
	return 0;
}

int selection_add_condition(struct selection *s, struct select_term *term, enum selection_key key,
			    const char *value)
{
	if (!*value)
		return -EINVAL;
	switch (key) {
	case SELECTION_PID:
		return add_number(term, SELECT_PID, value, &term->pid, &term->pid_mask);
	case SELECTION_UID:
		return add_user(term, value);
	case SELECTION_MIN_AGE:
		return add_age(term, value);
	case SELECTION_COMM:
		return add_comm(s, term, value);
	case SELECTION_CGROUP:
		if (*value != '/' && *value != '*')
			return -EINVAL;
		return add_fact(s, term, key, value);
	case SELECTION_EXE:
	case SELECTION_CONTAINER:
		return add_fact(s, term, key, value);
	case SELECTION_KEYS_:
		break;
	}
	return -EINVAL;
}

int selection_add_term(struct selection *s, const struct select_term *term, bool exclude)
{
	struct select_rules *rules = &s->rules;

	if (rules->nr == SELECT_TERMS_MAX)
		return -E2BIG;
	rules->terms[rules->nr] = *term;
	rules->terms[rules->nr++].exclude = exclude;
	rules->asks |= term->asks;
	rules->nr_includes += !exclude;
	return 0;
}

int selection_copy(const struct selection *s, struct selection *ret)
{
	struct selection copy = { .rules = s->rules };

	for (size_t i = 0; i < s->facts.nr; i++) {
		struct selection_fact fact = { .key = s->facts.items[i].key,
					       .pattern = strdup(s->facts.items[i].pattern) };

		if (fact.pattern && !vec_push(&copy.facts, fact))
			continue;
		free(fact.pattern);
		selection_fini(&copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
}

void selection_fini(struct selection *s)
{
	for (size_t i = 0; i < s->facts.nr; i++)
		free(s->facts.items[i].pattern);
	vec_free(&s->facts);
	s->rules = (struct select_rules){ .nr = 0 };
}

/* --- a process -------------------------------------------------------------------------------- */

static bool is_pattern(const char *text)
{
	return strpbrk(text, "*?[\\");
}

/* '*' stands for slashes, too. */
bool selection_exe_matches(const char *pattern, const char *path)
{
	const char *name = strrchr(path, '/');

	if (!name)
		return false;
	return !fnmatch(pattern, strchr(pattern, '/') ? path : name + 1, 0);
}

bool selection_container_matches(const char *pattern, const char *id)
{
	if (!*id)
		return false;
	return is_pattern(pattern) ? !fnmatch(pattern, id, 0)
				   : !strncmp(id, pattern, strlen(pattern));
}

static bool path_matches(const char *pattern, const char *path)
{
	size_t len = strlen(pattern);

	if (is_pattern(pattern))
		return !fnmatch(pattern, path, 0);
	while (len && pattern[len - 1] == '/')
		len--;
	return !strncmp(path, pattern, len) && (!path[len] || path[len] == '/');
}

/* Lines "4:memory:/PATH"; version 2's is "0::/PATH". */
bool selection_cgroup_matches(const char *pattern, const char *text)
{
	char path[PATH_MAX];

	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *colon = memchr(text, ':', len);

		colon = colon ? memchr(colon + 1, ':', len - (size_t)(colon + 1 - text)) : NULL;
		if (colon) {
			snprintf(path, sizeof(path), "%.*s",
				 (int)(len - (size_t)(colon + 1 - text)), colon + 1);
			if (path_matches(pattern, path))
				return true;
		}
		text += len + (text[len] == '\n');
	}
	return false;
}

/* Of one process, what conditions are held against. */
struct facts {
	char exe[PATH_MAX]; /* "": none, or not known */
	char comm[64];
	char container[CONTAINER_ID_LEN + 1];
	char *cgroups; /* NULL: not known */
};

static void read_exe(int32_t pid, char ret[PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	size_t end = sizeof(deleted) - 1;
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, ret, PATH_MAX - 1);
	ret[n < 0 ? 0 : n] = '\0';
	if (n > (ssize_t)end && !strcmp(ret + n - end, deleted))
		ret[(size_t)n - end] = '\0';
}

static char *read_proc(int32_t pid, const char *name, size_t *ret_size)
{
	char path[48], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return read_file_at(AT_FDCWD, path, PROC_FILE_MAX, &text, ret_size) ? NULL : text;
}

static void read_facts(int32_t pid, struct facts *f)
{
	_cleanup_free_ char *comm = NULL;
	size_t size;

	read_exe(pid, f->exe);
	comm = read_proc(pid, "comm", &size);
	if (comm && size && comm[size - 1] == '\n')
		comm[size - 1] = '\0';
	snprintf(f->comm, sizeof(f->comm), "%s", comm ? comm : "");
	f->container[0] = '\0';
	f->cgroups = read_proc(pid, "cgroup", &size);
	if (f->cgroups)
		container_id_parse(f->cgroups, size, f->container);
}

static bool fact_holds(const struct selection_fact *fact, const struct facts *f)
{
	switch (fact->key) {
	case SELECTION_EXE:
		return selection_exe_matches(fact->pattern, f->exe);
	case SELECTION_COMM:
		return !fnmatch(fact->pattern, f->comm, 0);
	case SELECTION_CONTAINER:
		return selection_container_matches(fact->pattern, f->container);
	case SELECTION_CGROUP:
		return f->cgroups && selection_cgroup_matches(fact->pattern, f->cgroups);
	default:
		return false;
	}
}

static uint64_t age_of(const struct proc_stat *stat)
{
	uint64_t began = stat->start_time * (second_ns / (uint64_t)sysconf(_SC_CLK_TCK));
	uint64_t now = clock_ns(CLOCK_BOOTTIME);

	return now > began ? now - began : 0;
}

int selection_look(const struct selection *s, int32_t pid, struct selection_process *ret)
{
	struct select_task task = { .pid = (uint32_t)pid, .known = 1 };
	struct proc_stat stat;
	struct facts f;

	read_facts(pid, &f);
	for (size_t i = 0; i < s->facts.nr; i++)
		if (fact_holds(&s->facts.items[i], &f))
			task.facts |= UINT64_C(1) << i;
	free(f.cgroups);
	/* What was read is whole only if the process is there behind it. */
	if (proc_stat_read(pid, &stat) || proc_stat_is_over(&stat))
		return -ESRCH;
	task.uid = proc_user(pid, UINT32_MAX);
	task.age_ns = age_of(&stat);
	memcpy(task.comm, f.comm, sizeof(task.comm));
	*ret = (struct selection_process){ .facts = task.facts,
					   .verdict = select_judge(&s->rules, &task) };
	snprintf(ret->comm, sizeof(ret->comm), "%s", f.comm);
	return 0;
}

/* Does a name that the kernel saw begin what /proc says? There more may follow of kernel threads.
 */
static bool is_called(const struct selection_process *p, const void *comm)
{
	return !strncmp(p->comm, comm, strnlen(comm, SAMPLE_COMM_LEN));
}

bool selection_holds_for(const struct selection_process *p, const struct select_facts *asked,
			 const struct sample_header *sample)
{
	/* An image that a thread other than the first was sampled in may be called as the next. */
	if (asked && (sample->time_ns < asked->met_ns || !is_called(p, asked->comm)))
		return false;
	return sample->pid != sample->tid || is_called(p, sample->comm);
}
