// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include "cli/stats.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

bool output_is_folder(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* What messages say before and behind the path. */
static const char *quote(const char *path)
{
	return strcmp(path, "-") ? "'" : "";
}

static const char *shown(const char *path)
{
	return strcmp(path, "-") ? path : "standard output";
}

/* export_file_open(), which waits for the reader of a FIFO of ours, and says so. */
static int open_and_wait(const char *path, struct export_file **ret, char **why_ret)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	int r = export_file_open(path, ret, why_ret);

	if (r == -EAGAIN)
		log_info("waiting for somebody to read the FIFO '%s'", path);
	while (r == -EAGAIN) {
		nanosleep(&pause, NULL);
		r = export_file_open(path, ret, why_ret);
	}
	return r;
}

int output_open(const char *path, struct output *ret)
{
	_cleanup_free_ char *why = NULL;
	struct export_file *file = NULL;
	int r;

	r = path ? open_and_wait(path, &file, &why) : 0;
	if (why) {
		log_error("cannot write '%s': %s; choose another place", path, why);
		return r;
	}
	if (r < 0)
		return log_err(r, "cannot write %s%s%s, choose another place", quote(path),
			       shown(path), quote(path));
	*ret = (struct output){ .path = path, .file = file };
	return 0;
}

void output_fini(struct output *output)
{
	export_file_free(TAKE_PTR(output->file));
}

/* --- giving up -------------------------------------------------------------------------------- */

/* Handlers and export_ops.write have no place for a context: there is one output at a time. */
static volatile sig_atomic_t nr_interrupts;
static const struct export_ops *arg_format;
static const struct recorder_stats *arg_stats;
static uint64_t arg_left; /* bytes that may be written */
static bool is_too_large;

static void on_interrupt(int number)
{
	static const char message[] = "sonde: still writing; interrupt again to give it up\n";

	if (++nr_interrupts > 1)
		signal(number, SIG_DFL);
	else if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
		return; /* there is nobody left to tell */
}

static ssize_t watched_write(void *cookie, const char *buf, size_t size)
{
	if (nr_interrupts > 1)
		return 0; /* stdio's "error" here */
	is_too_large |= size > arg_left;
	if (is_too_large)
		return 0;
	arg_left -= size;
	return fwrite(buf, 1, size, cookie) == size ? (ssize_t)size : 0;
}

/* Lets arg_format write, but fail once there were two interrupts. */
static int write_watched(const struct profile *p, const struct export_options *options, FILE *out)
{
	FILE *watched = fopencookie(out, "w", (cookie_io_functions_t){ .write = watched_write });
	int r;

	if (!watched)
		return -ENOMEM;
	r = arg_format->write(p, options, watched);
	if (fclose(watched) && !r)
		r = -EIO;
	if (nr_interrupts > 1)
		return -EINTR;
	return is_too_large ? -EFBIG : r;
}

int output_write_profile(struct output *output, const struct export_ops *format,
			 const struct profile *profile, const struct export_options *options)
{
	static const struct export_ops watched_format = { .name = "watched",
							  .write = write_watched };
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
	struct sigaction old_int, old_term;
	sigset_t both;
	int r;

	arg_format = format;
	arg_left = output->max_size ? output->max_size : UINT64_MAX;
	is_too_large = false;
	nr_interrupts = 0;
	sigaction(SIGINT, &action, &old_int);
	sigaction(SIGTERM, &action, &old_term);
	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &both, NULL); /* the recorder read them from a descriptor */
	r = export_file_commit(output->file, &watched_format, profile, options);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	if (r == -EINTR)
		log_error("gave up writing '%s'; it is as it was before", output->path);
	else if (r < 0 && !is_too_large)
		log_err(r, "cannot write %s%s%s%s", quote(output->path), shown(output->path),
			quote(output->path), output->is_copy ? "" : ", the recording is lost");
	return r;
}

static int write_stats(const struct profile *p, const struct export_options *options, FILE *out)
{
	(void)p;
	(void)options;
	stats_write_json(arg_stats, out);
	return 0;
}

int output_write_stats(struct output *output, const struct recorder_stats *stats)
{
	static const struct export_ops stats_format = { .name = "stats", .write = write_stats };
	int r;

	arg_stats = stats;
	r = export_file_commit(output->file, &stats_format, NULL, NULL);
	if (r < 0)
		log_err(r, "cannot write %s%s%s", quote(output->path), shown(output->path),
			quote(output->path));
	return r;
}
