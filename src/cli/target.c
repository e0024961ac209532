// SPDX-License-Identifier: Apache-2.0
#include "cli/target.h"

#include "kernel/requirements.h"
#include "util/cleanup.h"
#include "util/find_executable.h"
#include "util/log.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The value of a line "Name:\tvalue" of /proc/PID/status, NULL if absent. */
static const char *status_field(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? line + strlen(name) + strspn(line + strlen(name), " \t") : NULL;
}

/* What is wrong with it, "" if nothing is; -EINVAL: it is no process at all, but a thread. */
static int check_pid(int32_t pid, char *wrong, size_t size)
{
	_cleanup_free_ char *status = NULL;
	const char *tgid, *state;
	char path[32];

	*wrong = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (read_file_at(AT_FDCWD, path, 65536, &status, NULL) < 0) {
		snprintf(wrong, size, "there is no process %d", pid);
		return -ESRCH;
	}
	state = status_field(status, "\nState:");
	if (state && (*state == 'Z' || *state == 'X')) {
		snprintf(wrong, size, "process %d has already ended (it is a zombie)", pid);
		return -ESRCH;
	}
	tgid = status_field(status, "\nTgid:");
	if (tgid && strtol(tgid, NULL, 10) != pid) {
		snprintf(wrong, size, "%d is a thread of process %ld; give -p %ld", pid,
			 strtol(tgid, NULL, 10), strtol(tgid, NULL, 10));
		return -EINVAL;
	}
	return 0;
}

int target_check_pids(struct pid_list *pids)
{
	struct pid_list left = { .nr = 0 };
	char wrong[160];

	for (size_t i = 0; i < pids->nr; i++) {
		int r = check_pid(pids->pids[i], wrong, sizeof(wrong));

		if (!r)
			left.pids[left.nr++] = pids->pids[i];
		if (r == -EINVAL)
			return log_error("%s", wrong), -ESRCH;
	}
	if (pids->nr == 1 && !left.nr)
		return log_error("%s; 'ps -e' lists those that run", wrong), -ESRCH;
	if (pids->nr && !left.nr)
		return log_error("none of the processes of -p is there any more; 'ps -e' lists "
				 "those that run"),
		       -ESRCH;
	for (size_t i = 0; i < pids->nr; i++)
		if (check_pid(pids->pids[i], wrong, sizeof(wrong)) == -ESRCH)
			log_warn("%s; -p goes on without it", wrong);
	*pids = left;
	return 0;
}

void target_tell_forbidden(int32_t pid)
{
	if (geteuid())
		log_error("no permission to read process %d: run as root, or as its user (and see "
			  "/proc/sys/kernel/yama/ptrace_scope)",
			  pid);
	else
		log_error("no permission to read process %d, though we are root: without "
			  "CAP_SYS_PTRACE, or a security module or a sandbox forbids it",
			  pid);
}

int target_check_command(const char *name)
{
	bool is_path = strchr(name, '/');
	char path[PATH_MAX];
	int r = find_executable(name, path);

	if (!r)
		return 0;
	if (r == -EACCES)
		log_error("cannot run '%s': it is no executable file; see chmod(1)", name);
	else if (name[strspn(name, "0123456789,")] == '\0' && *name)
		log_error("COMMAND '%s' not found; for a process that runs give -p %s", name, name);
	else if (is_path)
		log_err(r, "cannot run COMMAND '%s'; check the path", name);
	else
		log_error("COMMAND '%s' not found in $PATH; check the spelling or give its path",
			  name);
	return r;
}

int target_check_frequency(uint32_t frequency_hz)
{
	unsigned int max = requirements_max_frequency_hz();

	if (!max || frequency_hz <= max)
		return 0;
	log_error("%u Hz is more than this kernel takes; give %u or less, or raise it: "
		  "sysctl -w kernel.perf_event_max_sample_rate=%u",
		  frequency_hz, max, frequency_hz);
	return -ERANGE;
}

int target_check_requirements(const char *what)
{
	struct requirement_result result;
	const struct requirement *missing = requirements_first_missing(&result);

	if (!missing)
		return 0;
	log_error("cannot %s: %s: %s; %s ('sonde doctor' tells more)", what, missing->name,
		  result.detail, result.fix);
	return -ENOTSUP;
}
