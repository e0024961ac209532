// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde agent`: the daemon. What can be wrong is found out here; agent/agent.h does the work.
 */
#include "cli/command.h"

#include "agent/agent.h"
#include "cli/collector.h"
#include "cli/config.h"
#include "cli/off_cpu.h"
#include "cli/probe.h"
#include "cli/sampling.h"
#include "cli/stats.h"
#include "cli/tracers.h"
#include "net/http_server.h"
#include "util/cleanup.h"
#include "util/cpus.h"
#include "util/log.h"
#include "util/pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct agent_arguments {
	struct sampling_arguments sampling;
	struct off_cpu_wanted off_cpu;
	struct probes_wanted probes;
	double interval_s, jitter;
	struct probability_options probability;
	struct collector_arguments collector;
	const char *output_dir, *spool_dir, *config, *schema;
	const char *service, *attributes, *variables, *metrics_listen, *pin_cpus;
	double timeout_s, retry_s;
	uint64_t queue_bytes, request_bytes;
	uint64_t output_dir_bytes, spool_bytes;
	bool pprof, kernel_threads, no_sandbox, sandbox_kill;
	bool log_json, verbose, print_config, version, copyright, help;
};

/* With what sending takes, and rows of the kernel's code (record/recorder_internal.h). */
#define AGENT_LIMIT_MIN (UINT64_C(48) << 20)

#define AT(member) .offset = offsetof(struct agent_arguments, member)

/* The OpenTelemetry profiler has it: its unit files shall do here, too. */
#define IGNORED(name_, arg_)                                                                       \
	{                                                                                          \
		.name = name_, .arg = arg_, .type = OPTION_IGNORED, .hidden = true                 \
	}

static const struct option_spec agent_specs[] = {
	COLLECTOR_OPTIONS(AT),
	{ 0, "otlp-timeout", "SECONDS", "10", "for a request and its answer", OPTION_SECONDS,
	  AT(timeout_s), .max = 600 },
	{ 0, "retry-delay", "SECONDS", "1",
	  "before a request is sent again; it doubles each time, up to 30 times of it",
	  OPTION_SECONDS, AT(retry_s), .max = 600 },
	{ 0, "otlp-request-size", "SIZE", NULL,
	  "of one request, unpacked; a larger report is several (default: 4M, or a 64th of "
	  "--memory-limit if that is less)",
	  OPTION_SIZE, AT(request_bytes), .min = UINT64_C(16) << 10, .max = UINT64_C(1) << 30 },
	{ 0, "otlp-schema", "VERSION", "1.10", "1.8, 1.9 or 1.10: what the collector reads",
	  OPTION_STRING, AT(schema) },
	{ 0, "queue-size", "SIZE", NULL,
	  "of reports that wait; the oldest are dropped first (default: an eighth of "
	  "--memory-limit)",
	  OPTION_SIZE, AT(queue_bytes), .min = UINT64_C(64) << 10, .max = UINT64_C(1) << 34 },
	{ 0, "spool", "DIR", NULL,
	  "what waits for the collector is kept in this folder, also when the agent ends",
	  OPTION_STRING, AT(spool_dir) },
	{ 0, "spool-size", "SIZE", "256M", "of all that is there; the oldest goes first",
	  OPTION_SIZE, AT(spool_bytes), .min = UINT64_C(64) << 10, .max = UINT64_C(1) << 40 },
	{ 0, "output-dir", "DIR", NULL, "or write reports into this folder, each a file",
	  OPTION_STRING, AT(output_dir) },
	{ 0, "output-dir-size", "SIZE", "256M",
	  "all files there together; the oldest are removed first", OPTION_SIZE,
	  AT(output_dir_bytes), .min = UINT64_C(1) << 20, .max = UINT64_C(1) << 40 },
	{ 0, "output-format", "otlp|pprof", "otlp",
	  "of files there: NUMBER-TIME.otlp.gz, or .pb.gz without the times of samples",
	  OPTION_CHOICE, AT(pprof) },
	{ 0, "resource-attributes", "LIST", NULL,
	  "NAME=VALUE,...: of all processes that do not say otherwise of themselves", OPTION_STRING,
	  AT(attributes), .or_none = true },
	{ 0, "service-name", "NAME", NULL, "of all processes that do not name their service",
	  OPTION_STRING, AT(service) },
	{ 0, "env-vars", "LIST", NULL,
	  "NAME,...: of each process's environment, as process.environment_variable.NAME",
	  OPTION_STRING, AT(variables), .or_none = true },
	{ .name = "include-env-vars",
	  .arg = "LIST",
	  .help = "",
	  .type = OPTION_STRING,
	  AT(variables),
	  .or_none = true,
	  .hidden = true },
	{ 0, "samples-per-second", "HZ", "20", "on each CPU", OPTION_NUMBER,
	  AT(sampling.frequency_hz), .min = 1, .max = UINT32_MAX,
	  .max_name = "kernel.perf_event_max_sample_rate" },
	{ 0, "reporter-interval", "SECONDS", "5", "between two reports", OPTION_SECONDS,
	  AT(interval_s), .max = 3600 },
	{ 0, "reporter-jitter", "PART", "0.2",
	  "give or take this part of the interval, so that hosts do not report together",
	  OPTION_FRACTION, AT(jitter) },
	{ 0, "pin-cpu-ids", "LIST", NULL, "sample these CPUs only: 0-15,20", OPTION_STRING,
	  AT(pin_cpus), .or_none = true },
	{ 0, "probabilistic-threshold", "PERCENT", "100",
	  "the CPUs are sampled in so many of all intervals, chosen at random", OPTION_NUMBER,
	  AT(probability.threshold), .max = PROBABILITY_ALWAYS },
	{ 0, "probabilistic-interval", "TIME", "1m", "how long such an interval is", OPTION_SECONDS,
	  AT(probability.interval_s), .max = 86400 },
	{ 0, "probabilistic-seed", "N", NULL, "", OPTION_NUMBER, AT(probability.seed),
	  .max = UINT32_MAX, .hidden = true },
	SAMPLING_OPTIONS(AT, "80M", AGENT_LIMIT_MIN),
	SYMBOLIZE_OPTIONS(AT),
	SELECT_OPTIONS(AT),
	{ 0, "filter-min-process-age", "TIME", "0",
	  "no samples of processes that are younger than this", OPTION_SECONDS,
	  AT(sampling.select.min_age_s), .max = 86400ul * 365, .or_none = true },
	OFF_CPU_OPTIONS(AT),
	PROBE_OPTIONS(AT),
	{ 0, "kernel-threads", NULL, NULL, "sample the kernel's own threads too", OPTION_FLAG,
	  AT(kernel_threads) },
	{ 0, "send-idle-frames", NULL, NULL, "sample idle CPUs too", OPTION_FLAG,
	  AT(sampling.idle) },
	{ 0, "log-format", "text|json", "text", "of what is said: a line each", OPTION_CHOICE,
	  AT(log_json) },
	{ 0, "metrics-listen", "[ADDRESS]:PORT", NULL,
	  "answer /metrics (for Prometheus), /healthz and /readyz there, over HTTP", OPTION_STRING,
	  AT(metrics_listen) },
	{ 0, "no-sandbox", NULL, NULL,
	  "keep all capabilities and system calls, also those that there is no need of",
	  OPTION_FLAG, AT(no_sandbox) },
	{ 0, "sandbox-kill", NULL, NULL, "", OPTION_FLAG, AT(sandbox_kill), .hidden = true },
	{ 0, "config", "FILE", NULL, "read options from here, too: lines 'key = value'",
	  OPTION_STRING, AT(config) },
	{ 0, "print-config", NULL, NULL,
	  "print all options and where their values came from, as such a file, and end",
	  OPTION_FLAG, AT(print_config) },
	{ 0, "version", NULL, NULL, "print which version this is", OPTION_FLAG, AT(version) },
	{ .name = "copyright", .type = OPTION_FLAG, AT(copyright), .hidden = true },
	{ 'v', "verbose", NULL, NULL, "tell more on standard error", OPTION_FLAG, AT(verbose) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	IGNORED("bpf-log-level", "LEVEL"),
	IGNORED("bpffs-root", "DIR"),
	IGNORED("clock-sync-interval", "TIME"),
	IGNORED("frame-cache-size", "N"),
	IGNORED("map-scale-factor", "N"),
	IGNORED("monitor-interval", "TIME"),
	IGNORED("no-kernel-version-check", NULL),
	IGNORED("obi-process-ctx", NULL),
	IGNORED("pprof", "ADDRESS"),
	/* These need no letters: -t=LIST and -v=true are as good there. */
	{ .name = "t",
	  .arg = "LIST",
	  .value = "all",
	  .type = OPTION_STRING,
	  AT(sampling.tracers),
	  .or_none = true,
	  .hidden = true },
	{ .name = "v", .type = OPTION_FLAG, AT(verbose), .hidden = true },
	/* Its name of --probe. */
	{ .name = "probe-link",
	  .arg = "TYPE:TARGET[:SYMBOL]",
	  .type = OPTION_LIST,
	  AT(probes.probes),
	  .or_none = true,
	  .hidden = true },
	IGNORED("send-error-frames", NULL),
	OPTIONS_END,
};

static void tell_delivery(const struct agent_stats *agent)
{
	const struct sender_stats *s = &agent->sender;

	log_info("state: %" PRIu64 " reports with %" PRIu64 " samples, %" PRIu64
		 " kB, were delivered, %" PRIu64 " with %" PRIu64 " samples were not, %" PRIu64
		 " with %" PRIu64 " were dropped; %" PRIu64 " of %" PRIu64 " kB wait; %" PRIu64
		 " tries failed, %" PRIu64 " profiles were rejected",
		 s->reports, s->samples, s->bytes / 1024, s->failed_reports + agent->unmade_reports,
		 s->failed_samples + agent->unmade_samples, s->dropped_reports, s->dropped_samples,
		 s->waiting_reports, s->waiting_bytes / 1024, s->retries, s->rejected_profiles);
	if (s->output.files || s->output.removed)
		log_info("state: %" PRIu64 " files of %" PRIu64 " kB are there, %" PRIu64
			 " were removed to make room",
			 s->output.files, s->output.bytes / 1024, s->output.removed);
}

static void tell_spool(const struct sender_spool_stats *s)
{
	if (s->is_there)
		log_info("state: the spool has %" PRIu64 " reports of %" PRIu64 " kB; %" PRIu64
			 " with %" PRIu64 " samples were there before, %" PRIu64
			 " files were corrupt, %" PRIu64 " times it could not be written, %" PRIu64
			 " reports could not be removed",
			 s->files, s->bytes / 1024, s->found_reports, s->found_samples, s->corrupt,
			 s->failed_writes, s->failed_removes);
}

static void tell_state(const struct recorder_stats *stats, const struct agent_stats *agent)
{
	log_info("state: %.0f s, %" PRIu64 " samples, %.1f %% complete, %" PRIu64
		 " lost; CPU time: %.2f s, of children %.2f s, in the kernel %.2f s; memory: "
		 "%" PRIu64 " kB, BPF maps %" PRIu64 " kB",
		 stats->duration_s, stats->samples, stats_complete_percent(stats),
		 stats_lost_samples(stats), (double)stats->own_ns / 1e9,
		 (double)stats->children_ns / 1e9, (double)stats->bpf_ns / 1e9, stats->rss_kb,
		 stats->map_bytes / 1024);
	tell_delivery(agent);
	tell_spool(&agent->sender.spool);
}

/* Of a variable that is for all programs here what is wrong is left aside. */
static int check_attributes(const char **text, const struct config *config)
{
	static const char for_all[] = "OTEL_RESOURCE_ATTRIBUTES";
	const struct config_label name = config_label(config, "resource-attributes");
	_cleanup_(pairs_fini) struct pairs pairs = { 0 };
	const char *problem = "there is no memory";
	int r = *text ? pairs_parse(*text, &pairs, &problem) : 0;

	if (!r)
		return 0;
	if (strcmp(name.text, for_all)) {
		log_error("%s is not NAME=VALUE,...: %s", name.text, problem);
		return r;
	}
	log_warn("%s is left aside: it is not NAME=VALUE,...: %s", name.text, problem);
	*text = NULL;
	return 0;
}

static int check_listen(const char *text, const struct config *config)
{
	if (!text || http_server_is_address(text))
		return 0;
	log_error("%s takes an address and a port such as 127.0.0.1:9464, not '%s'",
		  config_label(config, "metrics-listen").text, text);
	return -EINVAL;
}

/* --- the configuration, which may change -------------------------------------------------------
 */

/* All that was said, checked; what the agent does borrows from it. */
struct setup {
	struct agent_options options;
	struct agent_arguments args;
	struct config config;
	struct collector collector;
	struct selection selection;
	struct probes probes;
	uint64_t only_cpus[CPUS_MAX / 64];
	const struct setup
		*first; /* what cannot change has its values from there; NULL: this is it */
	int argc;
	char **argv;
};

/* Of one kind: a daemon must not fill a disk with what it says. */
enum { MESSAGES_A_MINUTE = 20 };

/* What SIGHUP changes; all else takes a new start. */
static const char *const changeable[] = {
	"collection-agent",  "otlp-endpoint",
	"otlp-protocol",     "otlp-headers",
	"otlp-certificate",  "otlp-client-certificate",
	"otlp-client-key",   "otlp-server-name",
	"otlp-compression",  "disable-tls",
	"otlp-timeout",	     "retry-delay",
	"otlp-schema",	     "otlp-request-size",
	"queue-size",	     "resource-attributes",
	"service-name",	     "samples-per-second",
	"reporter-interval", "reporter-jitter",
	"verbose",	     "include",
	"exclude",	     "filter-min-process-age",
};

static void setup_free(struct setup *s)
{
	if (!s)
		return;
	collector_fini(&s->collector);
	selection_fini(&s->selection);
	probes_fini(&s->probes);
	config_fini(&s->config);
	free(s);
}

DEFINE_CLEANUP(struct setup *, setup_free)

static void release_setup(const struct sender_options *options)
{
	setup_free(
		(struct setup *)((const char *)options - offsetof(struct setup, options.sender)));
}

static int reload_setup(const struct agent_options *now, const struct agent_options **ret);

static int read_schema(const char *text, const struct config *config, enum otlp_schema *ret)
{
	static const char *const names[] = {
		[OTLP_SCHEMA_1_10] = "1.10", [OTLP_SCHEMA_1_9] = "1.9", [OTLP_SCHEMA_1_8] = "1.8"
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(text, names[i]))
			continue;
		*ret = (enum otlp_schema)i;
		return 0;
	}
	log_error("%s is 1.8, 1.9 or 1.10, not '%s'", config_label(config, "otlp-schema").text,
		  text);
	return -EINVAL;
}

static int fill_sources(struct setup *s)
{
	struct recorder_options *o = &s->options.recorder;
	struct source_spec off_cpu;
	int r = off_cpu_source(&s->args.off_cpu, &s->config, "agent", &off_cpu);

	if (!r)
		r = probes_add(&s->probes, &off_cpu);
	if (!r)
		r = probes_parse(&s->args.probes, &s->config, "agent", &s->probes);
	o->sources = s->probes.sources;
	o->nr_sources = s->probes.nr;
	return r;
}

static int pin_cpus(struct setup *s)
{
	const struct config_label name = config_label(&s->config, "pin-cpu-ids");
	const char *text = s->args.pin_cpus;
	long nr = sysconf(_SC_NPROCESSORS_CONF);

	if (!text)
		return 0;
	if (cpu_list_parse(text, s->only_cpus)) {
		log_error("%s takes numbers of CPUs such as 0-15,20, not '%s'", name.text, text);
		return -EINVAL;
	}
	s->options.recorder.only_cpus = s->only_cpus;
	for (long cpu = 0; cpu < nr && cpu < CPUS_MAX; cpu++)
		if (s->only_cpus[cpu / 64] & UINT64_C(1) << cpu % 64)
			return 0;
	log_error("%s: this machine has none of the CPUs %s", name.text, text);
	return -EINVAL;
}

/*
 * What sending takes is a part of --memory-limit. Making a request takes so many times of its size,
 * if it has nothing but short names (otlp_parts_test.c).
 */
enum {
	REQUEST_TIMES = 5,
	REQUEST_DEFAULT = 4 << 20,
	REQUEST_PART = 64, /* of the limit, by default */
	QUEUE_PART = 8,
};

static int share_memory(struct setup *s, uint64_t *ret)
{
	struct agent_arguments *args = &s->args;
	uint64_t limit = (s->first ? s->first : s)->args.sampling.memory_limit;

	if (!args->queue_bytes)
		args->queue_bytes = limit / QUEUE_PART;
	if (!args->request_bytes) {
		args->request_bytes = limit / REQUEST_PART;
		if (args->request_bytes > REQUEST_DEFAULT)
			args->request_bytes = REQUEST_DEFAULT;
	}
	*ret = args->queue_bytes + REQUEST_TIMES * args->request_bytes;
	if (*ret <= limit / 2)
		return 0;
	log_error("--queue-size and %u times --otlp-request-size are %" PRIu64
		  " kB, more than half of --memory-limit, which is %" PRIu64 " kB",
		  REQUEST_TIMES, *ret / 1024, limit / 1024);
	return -EINVAL;
}

static int fill_options(struct setup *s)
{
	const struct agent_arguments *args = &s->args;
	uint64_t beside_bytes;

	if (share_memory(s, &beside_bytes))
		return -EINVAL;

	s->options = (struct agent_options){
		.recorder = sampling_recorder_options(&args->sampling),
		.interval_s = args->interval_s,
		.jitter = args->jitter,
		.probability = args->probability,
		.service = args->service,
		.attributes = args->attributes,
		.report = { .format = args->pprof ? REPORT_PPROF : REPORT_OTLP,
			    .max_size = args->request_bytes },
		.sender = { .output_dir = args->output_dir,
			    .output_dir_bytes = args->output_dir_bytes,
			    .output_format = args->pprof ? REPORT_PPROF : REPORT_OTLP,
			    .collector = s->collector.net,
			    .place = s->collector.is_set ? s->collector.place : args->output_dir,
			    .spool_dir = args->spool_dir,
			    .spool_bytes = args->spool_bytes,
			    .no_gzip = args->collector.no_gzip,
			    .queue_bytes = args->queue_bytes,
			    .timeout_s = args->timeout_s,
			    .retry_s = args->retry_s,
			    .keep_privileges = args->no_sandbox },
		.metrics_listen = args->metrics_listen,
		.sandbox = args->no_sandbox	? SANDBOX_OFF
			   : args->sandbox_kill ? SANDBOX_KILL
						: SANDBOX_ON,
		.verbose = args->verbose,
		.reload = args->config ? reload_setup : NULL,
		.release = release_setup,
		.tell = tell_state,
	};
	s->options.recorder.beside_bytes = beside_bytes;
	s->options.recorder.variables = args->variables;
	s->options.recorder.no_kernel_threads = !args->kernel_threads;
	/* SIGHUP may bring one. */
	s->options.recorder.may_select = args->config != NULL;
	s->options.recorder.selection = &s->selection;
	if (read_schema(args->schema, &s->config, &s->options.report.schema) || pin_cpus(s) ||
	    tracers_parse(args->sampling.tracers, &s->config, "agent",
			  &s->options.recorder.symbolizer.runtimes.runtime) ||
	    select_parse(&args->sampling.select, &s->config, "agent", &s->selection))
		return -EINVAL;
	return fill_sources(s);
}

static int check_setup(struct setup *s)
{
	struct agent_arguments *args = &s->args;
	int r;

	/* What is set for all programs here does not contradict what was said to this one. */
	if (args->output_dir)
		args->collector.base_endpoint = args->collector.profiles_endpoint = NULL;
	r = check_attributes(&args->attributes, &s->config);
	if (!r)
		r = collector_read(&args->collector, &s->config, &s->collector);
	if (!r)
		r = check_listen(args->metrics_listen, &s->config);
	if (!r)
		r = fill_options(s);
	/* A configuration that is only printed may be a part of one. */
	if (!r && !args->output_dir == !s->collector.is_set &&
	    (args->output_dir || !args->print_config)) {
		if (args->output_dir)
			log_error("give either %s or %s, not both",
				  config_label(&s->config, args->collector.agent
								   ? "collection-agent"
								   : "otlp-endpoint")
					  .text,
				  config_label(&s->config, "output-dir").text);
		else
			log_error("say where reports go: --collection-agent HOST:PORT or "
				  "--output-dir DIR; see 'sonde help agent'");
		return -EINVAL;
	}
	if (!r && args->pprof && !args->output_dir) {
		log_error("--output-format pprof is for files of --output-dir: a collector takes "
			  "OTLP");
		return -EINVAL;
	}
	if (!r && args->spool_dir && args->output_dir) {
		log_error("--spool is for reports that wait for a collector: not with "
			  "--output-dir");
		return -EINVAL;
	}
	return r;
}

/* What was said, not checked yet. */
static int read_setup(int argc, char **argv, struct setup **ret)
{
	_cleanup_(setup_free_p) struct setup *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return log_err(-ENOMEM, "cannot read the configuration");
	s->argc = argc;
	s->argv = argv;
	r = config_read(agent_specs, collector_variables, "OTEL_PROFILING_AGENT_", "agent", argc,
			argv, &s->args, sizeof(s->args), &s->args.config, &s->config);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

static bool is_changeable(const char *name)
{
	for (size_t i = 0; i < sizeof(changeable) / sizeof(*changeable); i++)
		if (!strcmp(changeable[i], name))
			return true;
	return false;
}

/* Names of options that differ, of those that can be changed or of the others. */
static const char *list_changes(const struct setup *a, const struct setup *b, bool can, char *buf,
				size_t size)
{
	*buf = '\0';
	for (size_t i = 0; agent_specs[i].name; i++) {
		const char *x = a->config.values[i].text, *y = b->config.values[i].text;
		size_t len = strlen(buf);

		if (agent_specs[i].type != OPTION_IGNORED &&
		    is_changeable(agent_specs[i].name) == can && (!x != !y || (x && strcmp(x, y))))
			snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
				 agent_specs[i].name);
	}
	return buf;
}

static int reload_setup(const struct agent_options *now, const struct agent_options **ret)
{
	const struct setup *old =
		(const struct setup *)((const char *)now - offsetof(struct setup, options));
	const struct setup *first = old->first ? old->first : old;
	_cleanup_(setup_free_p) struct setup *next = NULL;
	char names[1024];
	int r = read_setup(old->argc, old->argv, &next);

	if (!r) {
		next->first = first;
		r = check_setup(next);
	}
	if (!r)
		r = target_check_frequency(next->args.sampling.frequency_hz);
	if (!r && !next->args.output_dir != !first->args.output_dir) {
		log_error("from --output-dir to a collector or back takes a new start");
		r = -EINVAL;
	}
	if (!r && next->options.recorder.beside_bytes > first->options.recorder.beside_bytes) {
		log_error("a larger --queue-size or --otlp-request-size takes a new start");
		r = -EINVAL;
	}
	if (r) {
		log_error("the configuration stays as it was");
		return r;
	}
	if (*list_changes(first, next, false, names, sizeof(names)))
		log_warn("these options change with a new start only: %s", names);
	list_changes(old, next, true, names, sizeof(names));
	log_info("the configuration was read again, changed: %s", *names ? names : "nothing");
	next->options.sender.spool_dir = first->options.sender.spool_dir;
	next->options.sender.spool_bytes = first->options.sender.spool_bytes;
	next->options.sender.output_dir = first->options.sender.output_dir;
	next->options.report.format = first->options.report.format;
	if (first->options.sender.output_dir)
		next->options.sender.place = first->options.sender.place;
	*ret = &next->options;
	TAKE_PTR(next);
	return 0;
}

static int run_agent(struct setup *s, bool *ret_in_use)
{
	int r = target_check_frequency(s->args.sampling.frequency_hz);

	if (!r)
		r = target_check_requirements("sample");
	if (!r)
		r = probes_find(&s->probes);
	return r ? r : agent_run(&s->options, ret_in_use);
}

static int agent_main(int argc, char **argv)
{
	_cleanup_(setup_free_p) struct setup *s = NULL;
	int r = read_setup(argc, argv, &s);
	bool in_use = false;

	if (r < 0)
		return EXIT_USAGE;
	log_set_json(s->args.log_json && !s->args.print_config);
	config_tell(&s->config);
	if (s->args.help)
		help_print_command(&command_agent, stdout);
	else if (s->args.version)
		puts("sonde " SONDE_VERSION);
	else if (s->args.copyright)
		puts("The Sonde developers; Apache-2.0, what is loaded into the kernel "
		     "GPL-2.0-only OR BSD-2-Clause.");
	else if (s->args.print_config)
		config_print(&s->config, stdout);
	if (s->args.help || s->args.version || s->args.copyright)
		return EXIT_OK;
	fflush(stdout);
	if (check_setup(s))
		return EXIT_USAGE;
	if (s->args.print_config)
		return target_check_frequency(s->args.sampling.frequency_hz) ? EXIT_ERROR : EXIT_OK;
	log_set_limit(MESSAGES_A_MINUTE);
	if (s->args.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	r = run_agent(s, &in_use);
	if (in_use)
		TAKE_PTR(s);
	return r < 0 ? EXIT_ERROR : EXIT_OK;
}

const struct command command_agent = {
	.name = "agent",
	.summary = "the daemon: sample all the time, report every few seconds",
	.usage = "--collection-agent HOST:PORT | --otlp-endpoint URL | --output-dir DIR [OPTIONS]",
	.description =
		"Samples the whole machine until it is told to end, and sends an OTLP profile to "
		"a collector\n"
		"every few seconds, or writes it into DIR (a gzip file, NUMBER-TIME.otlp.gz, or a "
		"pprof file).\n"
		"'sonde convert' and whatever reads OTLP opens them. A name appears when its file "
		"is whole.\n"
		"SIGTERM: a last report, then the end. SIGHUP: the file of --config is read "
		"again.\n"
		"SIGUSR1: the state is logged.\n"
		"\n"
		"All options may also be given with one dash, as variables "
		"(SONDE_SAMPLES_PER_SECOND) and in\n"
		"a file (--config; samples-per-second = 20). The command line goes before "
		"variables, these\n"
		"before the file. --print-config shows what came of it. Names are those of the "
		"OpenTelemetry\n"
		"profiler; its other options, and OTEL_* variables, are understood.\n",
	.options = agent_specs,
	.run = agent_main,
};
