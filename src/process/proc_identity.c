// SPDX-License-Identifier: Apache-2.0
#include "process/proc_identity.h"

#include "process/memory.h"
#include "process/proc_stat.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/pairs.h"
#include "util/read_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROC_FILE_MAX = 64 << 10 };

/* The text behind "NAME:" of a line that begins so; NULL if it is another line. */
static const char *value_of(const char *line, const char *end, const char *name)
{
	size_t len = strlen(name);

	if ((size_t)(end - line) <= len || memcmp(line, name, len))
		return NULL;
	for (line += len; line < end && (*line == ' ' || *line == '\t'); line++)
		;
	return line;
}

/* The number in column `column` (0: the first; -1: the last), 0 if there is none. */
static uint32_t number_at(const char *p, const char *end, int column)
{
	uint64_t value = 0;

	for (int i = 0; p < end; i++) {
		value = 0;
		while (p < end && isdigit((unsigned char)*p)) {
			value = value * 10 + (uint64_t)(*p++ - '0');
			if (value > UINT32_MAX)
				return 0;
		}
		if (i == column)
			return (uint32_t)value;
		while (p < end && !isdigit((unsigned char)*p))
			p++;
	}
	return column < 0 ? (uint32_t)value : 0;
}

static void read_users(const char *value, const char *end, struct proc_identity *ret)
{
	ret->real_uid = number_at(value, end, 0);
	ret->uid = number_at(value, end, 1);
	ret->saved_uid = number_at(value, end, 2);
}

void proc_status_parse(const char *text, size_t size, struct proc_identity *ret)
{
	const char *end = text + size, *line, *next, *value;

	for (line = text; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (!next)
			next = end;
		if ((value = value_of(line, next, "PPid:")))
			ret->parent_pid = (int32_t)number_at(value, next, 0);
		else if ((value = value_of(line, next, "NSpid:")))
			ret->vpid = (int32_t)number_at(value, next, -1);
		else if ((value = value_of(line, next, "Uid:")))
			read_users(value, next, ret);
		else if ((value = value_of(line, next, "Name:")))
			snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(next - value), value);
	}
}

/* Is what stands before the digits in a group's name (`len` bytes from `name`) what a runtime puts
 * there? Anybody may call a group of his own something with 64 digits in it. */
static bool is_runtimes(const char *name, size_t len)
{
	static const char *const runtimes[] = { "docker", "cri-containerd", "containerd", "crio",
						"libpod", "nerdctl",	    "podman" };
	const char *begin;

	if (!len)
		return true;
	/* Behind colons: the slice comes first (kubelet's names without systemd). */
	begin = name[len - 1] == ':' ? memrchr(name, ':', len - 1) : NULL;
	if (begin) {
		begin++;
		len -= (size_t)(begin - name);
		name = begin;
	}
	if (name[len - 1] != '-' && !begin)
		return false;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strlen(runtimes[i]) == len - 1 && !memcmp(name, runtimes[i], len - 1))
			return true;
	return false;
}

/* The name of a group, `len` bytes. */
static void take_container(const char *name, size_t len, char ret[static CONTAINER_ID_LEN + 1])
{
	static const char scope[] = ".scope";
	size_t scope_len = sizeof(scope) - 1;
	const char *id;

	if (len > scope_len && !memcmp(name + len - scope_len, scope, scope_len))
		len -= scope_len;
	if (len < CONTAINER_ID_LEN)
		return;
	id = name + len - CONTAINER_ID_LEN;
	for (size_t i = 0; i < CONTAINER_ID_LEN; i++)
		if (!isdigit((unsigned char)id[i]) && (id[i] < 'a' || id[i] > 'f'))
			return;
	if (!is_runtimes(name, len - CONTAINER_ID_LEN))
		return;
	memcpy(ret, id, CONTAINER_ID_LEN);
	ret[CONTAINER_ID_LEN] = '\0';
}

void container_id_parse(const char *text, size_t size, char ret[static CONTAINER_ID_LEN + 1])
{
	const char *end = text + size, *line, *line_end, *name, *name_end;

	ret[0] = '\0';
	for (line = text; line < end; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(end - line)) ?: end;
		/* HIERARCHY:CONTROLLERS:PATH */
		name = memchr(line, '/', (size_t)(line_end - line));
		for (; name && name < line_end; name = name_end) {
			name++;
			name_end = memchr(name, '/', (size_t)(line_end - name)) ?: line_end;
			take_container(name, (size_t)(name_end - name), ret);
		}
	}
}

/* 8-4-4-4-12 hexadecimal digits; a static pod's has no dashes. How long it is; 0: it is none. */
static size_t uid_at(const char *text, size_t size, char ret[static POD_UID_LEN + 1])
{
	size_t dashes = 0, i;

	for (i = 0; i < size && i < POD_UID_LEN; i++) {
		bool dash = text[i] == '-' || text[i] == '_';

		if (dash && i != 8 && i != 13 && i != 18 && i != 23)
			break;
		if (!dash && !isxdigit((unsigned char)text[i]))
			break;
		dashes += dash;
		ret[i] = dash ? '-' : text[i];
	}
	ret[i] = '\0';
	return (i == POD_UID_LEN && dashes == 4) || (i == 32 && !dashes) ? i : 0;
}

void pod_uid_parse(const char *text, size_t size, char ret[static POD_UID_LEN + 1])
{
	const char *end = text + size, *pods = memmem(text, size, "/kubepods", 9), *at = pods;
	char uid[POD_UID_LEN + 1];

	ret[0] = '\0';
	while (at && (at = memmem(at, (size_t)(end - at), "pod", 3))) {
		size_t len;

		at += 3;
		len = uid_at(at, (size_t)(end - at), uid);
		/* The name of a group ends there. */
		if (len && (at[-4] == '/' || at[-4] == '-') &&
		    (at + len == end || strchr("/.\n", at[len])))
			memcpy(ret, uid, len + 1);
	}
}

void cgroup_line_parse(const char *text, size_t size, char ret[static CGROUP_SIZE])
{
	const char *end = text + size, *line, *next;

	ret[0] = '\0';
	for (line = text; line < end; line = next + 1) {
		const char *name = memchr(line, ':', (size_t)(end - line));

		next = memchr(line, '\n', (size_t)(end - line)) ?: end;
		if (!name || name >= next || (size_t)(next - line) >= CGROUP_SIZE)
			continue;
		/* The unified one is the last of them. */
		if ((name == line + 1 && *line == '0') ||
		    ((size_t)(next - name) > strlen(":name=systemd:") &&
		     !memcmp(name, ":name=systemd:", strlen(":name=systemd:")))) {
			memcpy(ret, line, (size_t)(next - line));
			ret[next - line] = '\0';
		}
	}
}

/* If that entry is the variable, and its value shorter than `size`. */
static void take_variable(const char *entry, const char *name, char *ret, size_t size)
{
	size_t len = strlen(name);

	if (*ret || strncmp(entry, name, len) || entry[len] != '=' ||
	    strlen(entry + len + 1) >= size)
		return;
	memcpy(ret, entry + len + 1, strlen(entry + len + 1) + 1);
}

/* Whether the list, with commas between names, has it. */
static bool list_has(const char *list, const char *name, size_t len)
{
	for (const char *at = list; *at; at += strspn(at, ", ")) {
		size_t n = strcspn(at, ", ");

		if (n == len && !memcmp(at, name, len))
			return true;
		at += n;
	}
	return false;
}

struct taken {
	size_t len, nr;
};

/* What finds no room is left out. */
static void take_wanted(const char *entry, size_t size, const char *wanted, struct taken *taken,
			struct proc_identity *ret)
{
	const char *equals = memchr(entry, '=', size);
	size_t name_len = equals ? (size_t)(equals - entry) : 0;
	char name[256];
	int n;

	if (taken->nr == PAIRS_MAX || !name_len || !list_has(wanted, entry, name_len))
		return;
	n = snprintf(name, sizeof(name), "process.environment_variable.%.*s", (int)name_len, entry);
	if (n < (int)sizeof(name) &&
	    !pairs_append(ret->variables, sizeof(ret->variables), &taken->len, name, (size_t)n,
			  equals + 1, size - name_len - 1))
		taken->nr++;
}

void proc_environ_parse(const char *text, size_t size, const char *variables,
			struct proc_identity *ret)
{
	const char *end = text + size, *next;
	struct taken taken = { .len = strlen(ret->variables) };

	for (; text < end && (next = memchr(text, '\0', (size_t)(end - text))); text = next + 1) {
		take_variable(text, "OTEL_SERVICE_NAME", ret->service, sizeof(ret->service));
		take_variable(text, "OTEL_RESOURCE_ATTRIBUTES", ret->attributes,
			      sizeof(ret->attributes));
		if (variables)
			take_wanted(text, (size_t)(next - text), variables, &taken, ret);
	}
}

static void read_path(int32_t pid, struct proc_identity *ret)
{
	static const char deleted[] = " (deleted)";
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, ret->path, sizeof(ret->path) - 1);
	if (n < 0)
		n = 0;
	ret->path[n] = '\0';
	if ((size_t)n > sizeof(deleted) && !strcmp(ret->path + n - (sizeof(deleted) - 1), deleted))
		ret->path[n - (ssize_t)(sizeof(deleted) - 1)] = '\0';
}

static void read_command(int32_t pid, struct proc_identity *ret)
{
	int n = process_read_command(pid, ret->command, sizeof(ret->command));

	ret->is_executing = !n && *ret->path;
	if (n <= 0 || !memchr(ret->command, '\0', (size_t)n))
		ret->command[0] = '\0';
}

/* No server is asked, which may never answer: what the kernel has will do. */
static int look_at_root(const char *path, struct statx *ret)
{
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, ret))
		return -errno;
	return ret->stx_mask & STATX_INO ? 0 : -ENODATA;
}

static void compare_roots(int32_t pid, struct proc_identity *ret)
{
	struct statx ours, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	ret->in_our_root = !look_at_root("/", &ours) && !look_at_root(path, &its) &&
			   ours.stx_dev_major == its.stx_dev_major &&
			   ours.stx_dev_minor == its.stx_dev_minor && ours.stx_ino == its.stx_ino;
}

/* /proc gives the start in ticks since boot, suspended time included. */
static uint64_t wall_time(uint64_t ticks)
{
	uint64_t since_boot = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));

	return wall_offset_ns() - clock_ahead_ns(CLOCK_BOOTTIME) + since_boot;
}

int proc_start_read(int32_t tid, uint64_t *ret_ns)
{
	struct proc_stat stat;
	int r = proc_stat_read(tid, &stat);

	if (!r)
		*ret_ns = wall_time(stat.start_time);
	return r;
}

uint32_t proc_user(int32_t pid, uint32_t otherwise)
{
	_cleanup_free_ char *status = NULL;
	const char *line;
	char path[32];
	size_t size;

	/* Not the owner of /proc/PID, who is root if the process may not be dumped. */
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (read_file_at(AT_FDCWD, path, PROC_FILE_MAX, &status, &size))
		return otherwise;
	line = strstr(status, "\nUid:\t");
	return line ? number_at(line + strlen("\nUid:\t"), status + size, 0) : otherwise;
}

int proc_identity_read(int32_t pid, const char *variables, struct proc_identity *ret)
{
	_cleanup_free_ char *status = NULL, *cgroup = NULL, *environment = NULL;
	struct proc_stat stat;
	char path[32];
	size_t size;
	int r;

	r = proc_stat_read(pid, &stat);
	if (r)
		return r;
	memset(ret, 0, sizeof(*ret));
	ret->uid = ret->real_uid = ret->saved_uid = UINT32_MAX;
	ret->start_ns = wall_time(stat.start_time);
	ret->start_ticks = stat.start_time;
	ret->parent_pid = stat.parent_pid;
	ret->group_pid = stat.group_pid;
	ret->session_pid = stat.session_pid;
	ret->has_terminal = stat.has_terminal;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!read_file_at(AT_FDCWD, path, PROC_FILE_MAX, &status, &size))
		proc_status_parse(status, size, ret);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (!read_file_at(AT_FDCWD, path, PROC_FILE_MAX, &cgroup, &size)) {
		container_id_parse(cgroup, size, ret->container);
		pod_uid_parse(cgroup, size, ret->pod);
		cgroup_line_parse(cgroup, size, ret->cgroup);
	}
	if (!process_read_environ(pid, &environment, &size))
		proc_environ_parse(environment, size, variables, ret);
	read_path(pid, ret);
	read_command(pid, ret);
	compare_roots(pid, ret);
	return 0;
}
