// SPDX-License-Identifier: Apache-2.0
#include "cli/stats.h"
#include "test.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

static struct recorder_stats example(void)
{
	struct recorder_stats stats = {
		.samples = 4000,
		.complete = 3990,
		.own = 70,
		.frames = 80000,
		.processes = 30,
		.files = 120,
		.reads_given_up = 6,
		.bpf_ns_per_sample = 1234.5,
		.bpf_ns = 4938000,
		.own_ns = 82500000,
		.children_ns = 20000000,
		.rss_kb = 2048,
		.map_bytes = 5ull << 32,
		.duration_s = 10.25,
		.frequency_hz = 99,
	};

	stats.truncated[STOP_COMPLETE] = 3990;
	stats.truncated[STOP_NO_MAPPING] = 7;
	stats.truncated[STOP_MAX_FRAMES] = 3;
	stats.lost[LOST_RING_FULL] = 5;
	stats.lost[LOST_RAW_THROTTLED] = 2;
	stats.lost[LOST_FILES_EVICTED] = 1;
	stats.unknown_runtimes[FRAME_KIND_OF(RUNTIME_RUBY)] = 1;
	stats.unknown_runtimes[FRAME_KIND_OF(RUNTIME_V8)] = 2;
	stats.kernel_walks[KERNEL_WALK_WHOLE] = 900;
	stats.kernel_walks[KERNEL_WALK_OUT_OF_ORDER] = 2;
	return stats;
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsNumber(item))
		FAIL("%s is no number", key);
	return item->valuedouble;
}

TEST(json_says_what_the_numbers_are)
{
	struct recorder_stats stats = example();
	const cJSON *truncated, *lost, *unknown, *walks;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	cJSON *root;

	stats_write_json(&stats, out);
	fclose(out);
	root = cJSON_Parse(text);
	ASSERT_PTR_NONNULL(root);
	ASSERT_EQ(cJSON_GetArraySize(root), 21);
	ASSERT(number(root, "samples") == 4000);
	ASSERT(number(root, "complete") == 3990);
	ASSERT(number(root, "reads_given_up") == 6);
	ASSERT(number(root, "own") == 70);
	ASSERT(number(root, "frames") == 80000);
	ASSERT(number(root, "processes") == 30);
	ASSERT(number(root, "files") == 120);
	ASSERT(number(root, "bpf_ns_per_sample") == 1234.5);
	ASSERT(number(root, "rss_kb") == 2048);
	ASSERT(number(root, "map_bytes") == (double)(5ull << 32));
	ASSERT(number(root, "duration_s") == 10.25);
	ASSERT(number(root, "frequency_hz") == 99);
	truncated = cJSON_GetObjectItemCaseSensitive(root, "truncated");
	ASSERT_EQ(cJSON_GetArraySize(truncated), 2);
	ASSERT(number(truncated, "no_mapping") == 7);
	ASSERT(number(truncated, "max_frames") == 3);
	lost = cJSON_GetObjectItemCaseSensitive(root, "lost");
	ASSERT_EQ(cJSON_GetArraySize(lost), 3);
	ASSERT(number(lost, "ring_full") == 5);
	unknown = cJSON_GetObjectItemCaseSensitive(root, "unknown_runtimes");
	ASSERT_EQ(cJSON_GetArraySize(unknown), 2);
	ASSERT(number(unknown, "ruby") == 1);
	ASSERT(number(unknown, "v8") == 2);
	walks = cJSON_GetObjectItemCaseSensitive(root, "kernel_walks");
	ASSERT_EQ(cJSON_GetArraySize(walks), 2);
	ASSERT(number(walks, "whole") == 900);
	ASSERT(number(walks, "out_of_order") == 2);
	cJSON_Delete(root);
	free(text);
}

TEST(json_of_nothing_is_whole)
{
	struct recorder_stats stats = { 0 };
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	cJSON *root;

	stats_write_json(&stats, out);
	fclose(out);
	root = cJSON_Parse(text);
	ASSERT_PTR_NONNULL(root);
	ASSERT_EQ(cJSON_GetArraySize(root), 21);
	ASSERT(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root, "lost")));
	cJSON_Delete(root);
	free(text);
}

TEST(summary_is_two_lines_and_the_reasons)
{
	struct recorder_stats stats = example();
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	stats_print_summary(&stats, out);
	fclose(out);
	*strchr(text, '\n') = '\0';
	ASSERT_STR(text, "sonde: 4000 samples in 10.2 s at 99 Hz: 99.75 % complete, 5 lost; "
			 "30 processes, 120 files");
	free(text);
}

TEST(one_of_a_thing_is_singular)
{
	struct recorder_stats stats = {
		.samples = 1, .complete = 1, .processes = 1, .files = 1, .frequency_hz = 99
	};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	stats_print_summary(&stats, out);
	fclose(out);
	*strchr(text, '\n') = '\0';
	ASSERT_STR(text, "sonde: 1 sample in 0.0 s at 99 Hz: 100.00 % complete, 0 lost; 1 process, "
			 "1 file");
	free(text);
}

TEST(every_reason_that_occurred_has_its_sentence)
{
	struct recorder_stats stats = example();
	char *text;
	size_t size, nr_lines = 0;
	FILE *out = open_memstream(&text, &size);

	stats_print_summary(&stats, out);
	fclose(out);
	for (size_t i = 0; i < size; i++)
		nr_lines += text[i] == '\n';
	ASSERT_EQ(nr_lines, 2 + 2 + 3 + 2);
	ASSERT(strstr(text, "sonde: cost: 0.05 % of a CPU in the kernel, 1.00 % of one in sonde, "
			    "2.0 MB of memory, 20480.0 MB of BPF maps\n"));
	ASSERT(strstr(text, "sonde: truncated: 7 no_mapping (an address lies in"));
	ASSERT(strstr(text, "sonde: lost: 5 ring_full (samples: the ring buffer was full)\n"));
	ASSERT(strstr(text, "sonde: lost in part: 2 raw_throttled (samples: "));
	ASSERT(strstr(text, "sonde: lost beside samples: 1 files_evicted (unwind tables: "));
	ASSERT(strstr(text, "sonde: unknown: 1 file of ruby (of a version"));
	ASSERT(strstr(text, "sonde: unknown: 2 files of v8 (of a version"));
	free(text);
}

/* What was not kept of tables, events and the like is no sample: "0 lost" stays true. */
TEST(lines_of_lost_samples_add_up_to_what_the_first_line_says)
{
	struct recorder_stats stats = { .samples = 10, .complete = 10, .duration_s = 1 };
	unsigned long long sum = 0, first = 0, n;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < LOST_MAX_; i++)
		stats.lost[i] = 1000 + (uint64_t)i;
	stats_print_summary(&stats, out);
	fclose(out);
	ASSERT_EQ(sscanf(text, "sonde: 10 samples in 1.0 s at 0 Hz: 100.00 %% complete, %llu lost",
			 &first),
		  1);
	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1)
		if (sscanf(line, "sonde: lost: %llu ", &n) == 1)
			sum += n;
	ASSERT(first > 1000);
	ASSERT_EQ(sum, first);
	free(text);
}

TEST(a_machine_is_idle_if_few_samples_come)
{
	struct recorder_stats stats = { .samples = 6, .duration_s = 10, .frequency_hz = 99 };

	ASSERT(stats_busy_percent(&stats, 2) > 0.3 && stats_busy_percent(&stats, 2) < 0.31);
	stats.lost[LOST_RING_FULL] = 984;
	ASSERT(stats_busy_percent(&stats, 2) == 50);
	/* Others, which are not to be recorded, keep it busy as well. */
	stats.rejected = 300;
	stats.undecided = 195;
	ASSERT(stats_busy_percent(&stats, 2) == 75);
	stats.duration_s = 0;
	ASSERT(stats_busy_percent(&stats, 2) == 0);
}

/* What a first user met: `make run` on a machine that did nothing. */
TEST(what_sonde_itself_ran_does_not_make_a_machine_busy)
{
	struct recorder_stats stats = {
		.samples = 122, .own = 105, .duration_s = 10, .frequency_hz = 99
	};
	char text[512];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ASSERT(stats_busy_percent(&stats, 2) > 0.85 && stats_busy_percent(&stats, 2) < 0.87);
	stats_print_idle(&stats, 2, out);
	fclose(out);
	ASSERT_STR(text, "sonde: the machine was idle: 0.9 % of its 2 CPUs busy, 17 samples beside "
			 "105 of sonde's own work (getting ready, reading names); 'sonde record -- "
			 "COMMAND' records a program from its start\n");
	stats.samples = 1;
	stats.own = 0;
	out = fmemopen(text, sizeof(text), "w");
	stats_print_idle(&stats, 1, out);
	fclose(out);
	ASSERT_STR(text, "sonde: the machine was idle: 0.1 % of its 1 CPU busy, 1 sample; 'sonde "
			 "record -- COMMAND' records a program from its start\n");
}

TEST(nothing_recorded_divides_by_nothing)
{
	struct recorder_stats stats = { 0 };
	char text[128];

	ASSERT(stats_complete_percent(&stats) == 100.0);
	stats_format_progress(&stats, text, sizeof(text));
	ASSERT_STR(text, "0.0 s  0 samples  0 lost");
}

TEST(every_lost_reason_has_a_name)
{
#define LOST(name, NAME, id, sentence)                                                             \
	ASSERT_STR(lost_name(LOST_##NAME), #name);                                                 \
	ASSERT_STR(lost_sentence(LOST_##NAME), sentence);
#include "abi/lost_reasons.def"
#undef LOST
	ASSERT_STR(lost_name(LOST_MAX_), "unknown");
}
