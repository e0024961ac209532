// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde core FILE`: what killed the process, then its threads and their stacks. The work is
 * core_stacks.h's; here are the words.
 */
#include "cli/command.h"

#include "coredump/core_stacks.h"
#include "cli/names.h"
#include "cli/thread_print.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum { HEADLINES_MAX = 8, HEADLINE_SIZE = 512 };

struct core_cli_options {
	const char *exe, *sysroot, *names;
	uint32_t max_frames;
	struct runtime_names_options runtimes;
	bool json, no_inlines, verbose, help;
};

#define AT(member) .offset = offsetof(struct core_cli_options, member)

static const struct option_spec core_specs[] = {
	{ 0, "exe", "FILE", NULL, "the executable (default: by the path in the core)",
	  OPTION_STRING, AT(exe) },
	{ 0, "sysroot", "DIR", NULL, "look for the core's files below DIR", OPTION_STRING,
	  AT(sysroot) },
	{ 0, "json", NULL, NULL, "print JSON", OPTION_FLAG, AT(json) },
	{ 0, "no-inlines", NULL, NULL, "do not show inlined functions", OPTION_FLAG,
	  AT(no_inlines) },
	{ 0, "names", "full|short", "full", "with or without parameters and template arguments",
	  OPTION_STRING, AT(names) },
	NAMES_RUNTIME_OPTIONS(AT, runtimes),
	{ 0, "max-frames", "N", "8192", "frames of a stack; longer ones are cut", OPTION_NUMBER,
	  AT(max_frames), .min = 1, .max = SAMPLE_FRAMES_MAX },
	{ 'v', "verbose", NULL, NULL, "tell more on standard error", OPTION_FLAG, AT(verbose) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	OPTIONS_END,
};

/* --- the signal in words --------------------------------------------------------------------- */

struct code_name {
	int signal, code;
	const char *words;
};

/* siginfo_t's codes, <bits/siginfo-consts.h>. */
static const struct code_name code_names[] = {
	{ SIGSEGV, SEGV_MAPERR, "nothing is mapped there" },
	{ SIGSEGV, SEGV_ACCERR, "access is not permitted" },
	{ SIGSEGV, SEGV_BNDERR, "bounds check failed" },
	{ SIGSEGV, SEGV_PKUERR, "a protection key forbids it" },
	{ SIGBUS, BUS_ADRALN, "the address is not aligned" },
	{ SIGBUS, BUS_ADRERR, "there is no such physical address, or the file ends before it" },
	{ SIGBUS, BUS_OBJERR, "hardware error" },
	{ SIGBUS, BUS_MCEERR_AR, "memory error" },
	{ SIGBUS, BUS_MCEERR_AO, "memory error, found ahead of use" },
	{ SIGFPE, FPE_INTDIV, "integer division by zero" },
	{ SIGFPE, FPE_INTOVF, "integer overflow" },
	{ SIGFPE, FPE_FLTDIV, "division by zero" },
	{ SIGFPE, FPE_FLTOVF, "overflow" },
	{ SIGFPE, FPE_FLTUND, "underflow" },
	{ SIGFPE, FPE_FLTRES, "inexact result" },
	{ SIGFPE, FPE_FLTINV, "invalid operation" },
	{ SIGILL, ILL_ILLOPC, "illegal instruction" },
	{ SIGILL, ILL_ILLOPN, "illegal operand" },
	{ SIGILL, ILL_PRVOPC, "privileged instruction" },
	{ SIGTRAP, TRAP_BRKPT, "breakpoint" },
	{ SIGTRAP, TRAP_TRACE, "single step" },
};

static const char *code_words(uint32_t signal, int code)
{
	for (size_t i = 0; i < sizeof(code_names) / sizeof(code_names[0]); i++)
		if ((uint32_t)code_names[i].signal == signal && code_names[i].code == code)
			return code_names[i].words;
	return NULL;
}

static bool has_address(const struct elf_core_signal *s)
{
	return s->known && s->code > 0 && s->code != SI_KERNEL &&
	       (s->number == SIGSEGV || s->number == SIGBUS || s->number == SIGILL ||
		s->number == SIGFPE || s->number == SIGTRAP);
}

static bool was_sent(const struct elf_core_signal *s)
{
	return s->known && (s->code == SI_USER || s->code == SI_TKILL || s->code == SI_QUEUE);
}

/* "SIGSEGV"; "signal 77" of one without a name. */
static const char *signal_name(uint32_t number, char *buf, size_t size)
{
	const char *name = number < NSIG ? sigabbrev_np((int)number) : NULL;

	if (name)
		snprintf(buf, size, "SIG%s", name);
	else
		snprintf(buf, size, "signal %" PRIu32, number);
	return buf;
}

static void describe_signal(const struct core_stacks *s, char *buf, size_t size)
{
	const struct elf_core_signal *signal = &s->core->signal;
	const char *words = signal->known ? code_words(signal->number, signal->code) : NULL;
	int32_t tid = s->core->threads.items[0].tid;
	const char *overflow = s->threads.items[0].overflowed ? ": its stack overflowed" : "";
	char name[32];

	signal_name(signal->number, name, sizeof(name));
	if (!signal->number || signal->number == SIGSTOP) /* gcore */
		snprintf(buf, size, "not killed: the core was taken from a living process");
	else if (has_address(signal))
		snprintf(buf, size, "%s at address 0x%" PRIx64 "%s%s, in thread %d%s", name,
			 signal->address, words ? ": " : "", words ? words : "", tid, overflow);
	else if (was_sent(signal) && signal->sender_pid == s->core->pid)
		snprintf(buf, size, "%s, sent by the process itself, in thread %d", name, tid);
	else if (was_sent(signal))
		snprintf(buf, size, "%s, sent by process %d (user %" PRIu32 "), in thread %d", name,
			 signal->sender_pid, signal->sender_uid, tid);
	else if (signal->known && signal->number == SIGSEGV)
		snprintf(buf, size,
			 "%s at an address that is not known (not canonical: a wild "
			 "pointer), in thread %d",
			 name, tid);
	else
		snprintf(buf, size, "%s, in thread %d", name, tid);
}

/* --- headlines ------------------------------------------------------------------------------- */

struct headlines {
	char text[HEADLINES_MAX][HEADLINE_SIZE];
	const char *lines[HEADLINES_MAX];
	size_t nr;
};

__attribute__((format(printf, 2, 3))) static void headline(struct headlines *h, const char *fmt,
							   ...)
{
	va_list args;

	if (h->nr == HEADLINES_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(h->text[h->nr], HEADLINE_SIZE, fmt, args);
	va_end(args);
	h->lines[h->nr] = h->text[h->nr];
	h->nr++;
}

static const char *machine_name(const struct elf_core *core)
{
	return core->machine == EM_AARCH64 ? "aarch64" : "x86-64";
}

static size_t count_files(const struct core_files *files, enum core_file_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < files->items.nr; i++)
		n += files->items.items[i].state == state;
	return n;
}

static void describe_files(const struct core_stacks *s, struct headlines *h)
{
	const struct core_files *files = &s->files;
	size_t unverified = count_files(files, CORE_FILE_UNVERIFIED),
	       nr = files->items.nr - count_files(files, CORE_FILE_NO_CODE),
	       missing = count_files(files, CORE_FILE_MISSING);

	if (unverified && unverified == nr)
		headline(h, "not verified: the core has no build-ids; its files were found by "
			    "their paths");
	else if (unverified)
		headline(h, "not verified: %zu of %zu files, whose build-ids are not in the core",
			 unverified, nr);
	/* What differs has been said by core_files.h. */
	for (size_t i = 0; i < files->items.nr && h->nr + 1 < HEADLINES_MAX; i++) {
		const struct core_file *file = &files->items.items[i];

		if (file->state != CORE_FILE_MISSING)
			continue;
		headline(h, "not found: %s%s", *file->path ? file->path : "the executable",
			 file->is_exe ? " (--exe FILE names it)" : "");
		missing--;
	}
	if (missing)
		headline(h, "not found: %zu more files (--json names all)", missing);
}

/* "45 kB", "8.9 MB": the same unit for what can be compared would hide the smaller one. */
static const char *bytes_text(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.*f %s", unit && value < 9.95, value, units[unit]);
	return buf;
}

static void make_headlines(const struct core_stacks *s, struct headlines *h)
{
	const struct elf_core *core = s->core;
	char signal[HEADLINE_SIZE], missing[32], all[32];
	double percent =
		core->bytes ? 100.0 * (double)core->bytes_missing / (double)core->bytes : 0;

	headline(h, "process %d (%s), %s, %zu thread%s: %s", core->pid, core->comm,
		 machine_name(core), core->threads.nr, core->threads.nr == 1 ? "" : "s",
		 core->args);
	describe_signal(s, signal, sizeof(signal));
	headline(h, "%s", signal);
	if (core->bytes_missing)
		headline(h, "the core is cut off: %s of %s of memory are missing (%.*f %%)",
			 bytes_text(core->bytes_missing, missing, sizeof(missing)),
			 bytes_text(core->bytes, all, sizeof(all)), percent < 10, percent);
	describe_files(s, h);
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* Text out of a hostile file, fit for JSON. */
static void json_string(FILE *out, const char *text)
{
	size_t len = strlen(text);
	_cleanup_free_ char *clean = malloc(len + 1);

	fputc('"', out);
	if (clean)
		profile_clean_text(text, len, clean, len + 1);
	for (const char *c = clean ? clean : ""; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', out);
		fputc(*c, out);
	}
	fputc('"', out);
}

static void json_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	if (text)
		json_string(out, text);
	else
		fputs("null", out);
}

static void json_signal(const struct core_stacks *s, FILE *out)
{
	const struct elf_core_signal *signal = &s->core->signal;
	char text[HEADLINE_SIZE];

	fputs(",\"signal\":", out);
	if (!signal->number) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\"number\":%" PRIu32, signal->number);
	json_member(out, "name", signal_name(signal->number, text, sizeof(text)));
	if (signal->known)
		fprintf(out, ",\"code\":%d", signal->code);
	if (has_address(signal))
		fprintf(out, ",\"address\":\"0x%" PRIx64 "\"", signal->address);
	if (was_sent(signal))
		fprintf(out, ",\"sender_pid\":%d,\"sender_uid\":%" PRIu32, signal->sender_pid,
			signal->sender_uid);
	describe_signal(s, text, sizeof(text));
	json_member(out, "description", text);
	fprintf(out, ",\"tid\":%d}", s->core->threads.items[0].tid);
}

static void json_files(const struct core_files *files, FILE *out)
{
	const char *between = "\n  {\"path\":";

	fputs(",\"files\":[", out);
	for (size_t i = 0; i < files->items.nr; i++) {
		const struct core_file *file = &files->items.items[i];

		if (file->state == CORE_FILE_NO_CODE)
			continue;
		fputs(between, out);
		between = ",\n  {\"path\":";
		json_string(out, file->path);
		json_member(out, "state", core_file_state_name(file->state));
		json_member(out, "found", file->found);
		json_member(out, "difference",
			    file->state == CORE_FILE_DIFFERS ? file->difference : NULL);
		if (file->has_bias)
			fprintf(out, ",\"bias\":\"0x%" PRIx64 "\"", file->bias);
		else
			json_member(out, "bias", NULL);
		fputs(",\"build_id\":", out);
		if (!file->build_id_len) {
			fputs("null}", out);
			continue;
		}
		fputc('"', out);
		for (uint8_t j = 0; j < file->build_id_len; j++)
			fprintf(out, "%02x", file->build_id[j]);
		fputs("\"}", out);
	}
	fputc(']', out);
}

/* The members beside "threads". */
static int json_extra(const struct core_stacks *s, char **ret)
{
	const struct elf_core *core = s->core;
	size_t size;
	FILE *out = open_memstream(ret, &size);

	if (!out)
		return -ENOMEM;
	fprintf(out, "\"pid\":%d", core->pid);
	json_member(out, "comm", core->comm);
	json_member(out, "arguments", core->args);
	json_member(out, "machine", machine_name(core));
	json_signal(s, out);
	fprintf(out, ",\"memory_bytes\":%" PRIu64 ",\"missing_bytes\":%" PRIu64, core->bytes,
		core->bytes_missing);
	if (core->auxv.vdso)
		fprintf(out, ",\"vdso\":\"0x%" PRIx64 "\"", core->auxv.vdso);
	json_files(&s->files, out);
	return fclose(out) ? -ENOMEM : 0;
}

/* --- the command ----------------------------------------------------------------------------- */

static int print(const struct core_stacks *s, bool json)
{
	_cleanup_free_ struct thread_entry *threads = calloc(s->threads.nr, sizeof(*threads));
	_cleanup_free_ struct headlines *h = calloc(1, sizeof(*h));
	struct thread_report report = { .profile = &s->profile,
					.threads = threads,
					.nr_threads = s->threads.nr };
	_cleanup_free_ char *extra = NULL;
	int r;

	if (!threads || !h)
		return -ENOMEM;
	for (size_t i = 0; i < s->threads.nr; i++) {
		const struct core_thread *t = &s->threads.items[i];

		threads[i] = (struct thread_entry){ .tid = t->tid,
						    .name = t->name,
						    .virtual_name = t->virtual_name,
						    .stack = t->stack,
						    .problem = t->problem };
	}
	if (json) {
		r = json_extra(s, &extra);
		return r ? r : thread_print_json(&report, extra, stdout);
	}
	make_headlines(s, h);
	report.headlines = h->lines;
	report.nr_headlines = h->nr;
	return thread_print_text(&report, stdout);
}

/*
 * Options may stand on both sides of FILE: that goes to the end of argv. The status to exit with,
 * or EXIT_OK and *ret_file: NULL if there is none.
 */
static int parse(int argc, char **argv, struct core_cli_options *o, const char **ret_file)
{
	const char *file = NULL;
	int first;

	for (;;) {
		*o = (struct core_cli_options){ 0 };
		if (options_parse(core_specs, "core", argc, argv, o, &first) < 0)
			return EXIT_USAGE;
		if (first == argc)
			break;
		if (file) {
			log_error("one core FILE at a time: '%s' or '%s'; see 'sonde help core'",
				  file, argv[first]);
			return EXIT_USAGE;
		}
		file = argv[first];
		memmove(argv + first, argv + first + 1, (size_t)(argc - first - 1) * sizeof(*argv));
		argv[--argc] = NULL;
	}
	*ret_file = file;
	return EXIT_OK;
}

static bool show_progress(void *ctx, const struct symbol_progress *progress)
{
	bool *shown = ctx;

	*shown |= names_print_progress(progress);
	return true;
}

static int core_run(int argc, char **argv)
{
	_cleanup_(core_stacks_free_p) struct core_stacks *s = NULL;
	struct core_cli_options o;
	struct core_options options;
	const char *file;
	bool short_names, progress_shown = false;
	int r;

	if (parse(argc, argv, &o, &file))
		return EXIT_USAGE;
	if (o.help) {
		help_print_command(&command_core, stdout);
		return EXIT_OK;
	}
	if (!file) {
		log_error("no core FILE given; see 'sonde help core'");
		return EXIT_USAGE;
	}
	if (names_style(o.names, &short_names))
		return EXIT_USAGE;
	if (o.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	options = (struct core_options){ .path = file,
					 .search = { o.exe, o.sysroot },
					 .max_frames = o.max_frames,
					 .symbolizer = { .no_inlines = o.no_inlines,
							 .short_names = short_names,
							 .runtimes = o.runtimes,
							 .builder = names_builder,
							 .progress = show_progress,
							 .progress_ctx = &progress_shown } };
	r = core_stacks_read(&options, &s);
	if (progress_shown)
		fputs("\033[K", stderr);
	if (r)
		return EXIT_ERROR;
	r = print(s, o.json);
	if (r) {
		log_err(r, "cannot print the stacks");
		return EXIT_ERROR;
	}
	return EXIT_OK;
}

const struct command command_core = {
	.name = "core",
	.summary = "print what killed a process, and its threads' stacks, out of a core file",
	.usage = "[OPTIONS] FILE",
	.description =
		"FILE is a core of an x86-64 or aarch64 program, as the kernel, gdb's gcore or "
		"qemu writes\n"
		"it. The signal comes first, then the thread that got it, then the others.\n"
		"\n"
		"The program's files are looked for below --sysroot, by their paths, and in\n"
		"/usr/lib/debug/.build-id, and used if their build-ids are the core's. A core that "
		"is cut\n"
		"off, or has parts left out, gives what it has; code is read from the files.\n",
	.options = core_specs,
	.run = core_run,
};
