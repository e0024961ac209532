// SPDX-License-Identifier: Apache-2.0
#include "export/example_profiles.h"
#include "export/formats.h"
#include "export/otlp_parts.h"
#include "export/test_profile.h"
#include "util/cleanup.h"

#include <stdlib.h>
#include <sys/resource.h>

struct collected {
	size_t nr, largest, smallest;
	uint64_t samples, read;
	/* Folded stacks of all requests behind each other. */
	char *folded[2];
	size_t size[2];
	FILE *out[2];
	int fail_at; /* the request of that number fails */
};

static const char *const types[] = { "samples", "off_cpu" };

static void append_folded(struct profile *p, const char *type, FILE *out)
{
	size_t size;
	_cleanup_free_ char *text = NULL;

	if (strcmp(profile_unit_type(p), type) && profile_show_type(p, type))
		return;
	text = test_write(&export_folded, p, &size);
	fwrite(text, 1, size, out);
}

static int collect(void *ctx, const void *request, size_t size, uint64_t samples, bool named)
{
	struct collected *c = ctx;
	struct profile p;

	ASSERT(named);
	if (c->fail_at && (int)c->nr + 1 == c->fail_at)
		return -EPIPE;
	test_read(&export_otlp, request, size, &p);
	ASSERT_EQ(p.cut.start_ns, EXAMPLE_START_NS);
	ASSERT_EQ(p.cut.duration_ns, EXAMPLE_DURATION_NS);
	ASSERT_STR(strtab_get(&p.strings, p.host.name), "box");
	if (!strcmp(profile_unit_type(&p), "samples"))
		ASSERT_EQ(profile_total(&p), samples);
	else
		ASSERT_EQ(samples, 0);
	c->nr++;
	c->samples += samples;
	c->largest = size > c->largest ? size : c->largest;
	c->smallest = !c->smallest || size < c->smallest ? size : c->smallest;
	for (int i = 0; i < 2; i++)
		append_folded(&p, types[i], c->out[i]);
	profile_fini(&p);
	return 0;
}

/* All stacks of a folded text in one, each once. */
static char *summed(const char *folded, size_t size)
{
	struct profile p;
	size_t ignored;
	char *text;

	test_read(&export_folded, folded, size, &p);
	text = test_write(&export_folded, &p, &ignored);
	profile_fini(&p);
	return text;
}

static int split(const struct profile *p, size_t max_size, struct collected *c)
{
	int r;

	for (int i = 0; i < 2; i++)
		c->out[i] = open_memstream(&c->folded[i], &c->size[i]);
	r = otlp_write_parts(p, OTLP_SCHEMA_1_10, max_size, collect, c);
	for (int i = 0; i < 2; i++)
		fclose(c->out[i]);
	return r;
}

static void collected_fini(struct collected *c)
{
	for (int i = 0; i < 2; i++)
		free(c->folded[i]);
}

/* Whose names are never left out. */
static void give_to_root(struct profile *p)
{
	for (size_t i = 0; i < p->processes.nr; i++)
		p->processes.items[i].real_uid = 0;
}

TEST(parts_have_what_the_whole_has)
{
	static const size_t sizes[] = { 1, 2000, 3000, 5000, SIZE_MAX };

	for (unsigned events = 0; events <= EXAMPLE_EVENTS; events += EXAMPLE_EVENTS) {
		struct collected whole = { 0 };
		struct profile p;

		ASSERT_OK(profile_init(&p));
		ASSERT_OK(example_profile(&p, EXAMPLE_TRACED | events));
		give_to_root(&p);
		ASSERT_OK(split(&p, SIZE_MAX, &whole));
		ASSERT_EQ(whole.nr, 1);
		ASSERT_EQ(whole.samples, profile_total(&p));
		ASSERT(whole.size[1]);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct collected parts = { 0 };

			ASSERT_OK(split(&p, sizes[i], &parts));
			ASSERT_EQ(parts.samples, whole.samples);
			ASSERT_EQ(parts.nr > 1, whole.largest > sizes[i]);
			/* One time with its stack and the resource is below that. */
			if (sizes[i] >= 2000)
				ASSERT(parts.largest <= sizes[i]);
			for (int type = 0; type < 2; type++) {
				_cleanup_free_ char *want =
					summed(whole.folded[type], whole.size[type]);
				_cleanup_free_ char *got =
					summed(parts.folded[type], parts.size[type]);

				ASSERT_STR(got, want);
			}
			collected_fini(&parts);
		}
		collected_fini(&whole);
		profile_fini(&p);
	}
}

TEST(a_failing_part_ends_it)
{
	struct collected c = { .fail_at = 3 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(example_profile(&p, EXAMPLE_EVENTS));
	give_to_root(&p);
	ASSERT_EQ(split(&p, 2000, &c), -EPIPE);
	ASSERT_EQ(c.nr, 2);
	ASSERT(c.samples < profile_total(&p));
	collected_fini(&c);
	profile_fini(&p);
}

TEST(nothing_is_one_request)
{
	struct collected c = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(example_profile(&p, EXAMPLE_EMPTY));
	ASSERT_OK(split(&p, 1, &c));
	ASSERT_EQ(c.nr, 1);
	ASSERT_EQ(c.samples, 0);
	collected_fini(&c);
	profile_fini(&p);
}

enum { MIB = 1 << 20, STACKS = 60000 };

struct sizes {
	size_t nr, sum, largest;
	uint64_t samples, nameless;
};

static int add_size(void *ctx, const void *request, size_t size, uint64_t samples, bool named)
{
	struct sizes *s = ctx;

	(void)request;
	s->nameless += named ? 0 : samples;
	s->nr++;
	s->sum += size;
	s->samples += samples;
	s->largest = size > s->largest ? size : s->largest;
	return 0;
}

enum { WIDE_FUNCTIONS = 400, WIDE_NAME = 7000, ALL_FUNCTIONS = WIDE_FUNCTIONS, SOME = 120 };

/* Half of them native, half of scripts. */
static void wide_functions(struct profile *p, uint32_t frames[WIDE_FUNCTIONS])
{
	char name[WIDE_NAME];

	memset(name, 'x', sizeof(name));
	name[WIDE_NAME - 1] = '\0';
	for (uint32_t i = 0; i < WIDE_FUNCTIONS; i++) {
		struct profile_function function = { .language = FUNCTION_LANGUAGE_C };
		struct profile_frame f = { .kind = FRAME_KIND_NATIVE, .address = i + 1 };
		struct profile_line line = { .line = 1 };

		name[0] = (char)('a' + i % 20);
		name[1] = (char)('a' + i / 20);
		ASSERT_OK(
			profile_add_file(p, "libwide.so", (const uint8_t *)"\1\2\3\4", 4, &f.file));
		if (i % 2) {
			f.kind = profile_runtime_kind("python", 6);
			f.file = PROFILE_NO_FILE;
		}
		ASSERT_OK(profile_string(p, name, &function.name));
		ASSERT_OK(profile_add_function(p, &function, &line.function));
		ASSERT_OK(profile_add_named_frame(p, &f, &line, 1, &frames[i]));
	}
}

/* Samples at as many addresses, each below `depth` of 400 functions, other ones than the last. */
static void wide_stacks(struct profile *p, uint32_t uid, uint32_t nr, uint32_t depth)
{
	uint32_t thread = test_thread(p, (int32_t)uid, (int32_t)uid, "wide"), stack, sample;
	struct profile_process *process = &p->processes.items[p->threads.items[thread].process];
	uint32_t functions[WIDE_FUNCTIONS], frames[WIDE_FUNCTIONS + 1];

	process->real_uid = uid;
	ASSERT_OK(profile_string(p, "said=of-itself", &process->attributes));
	wide_functions(p, functions);
	for (uint32_t i = 0; i < nr; i++) {
		frames[0] = test_frame(p, "leaf@libwide.so", 0x100000 + i);
		for (uint32_t at = 0; at < depth; at++)
			frames[at + 1] = functions[((uid + i) * depth + at) % WIDE_FUNCTIONS];
		ASSERT_OK(profile_add_stack(p, frames, depth + 1, STOP_COMPLETE, &stack));
		ASSERT_OK(profile_add_sample(p, thread, stack, 1, &sample));
	}
}

static void ordinary_stacks(struct profile *p, uint32_t uid)
{
	uint32_t thread = test_thread(p, (int32_t)uid, (int32_t)uid, "victim");

	p->processes.items[p->threads.items[thread].process].real_uid = uid;
	for (int i = 0; i < 10; i++)
		test_sample(p, thread, STOP_COMPLETE, 1, "main@victim", "outer@victim",
			    i % 2 ? "leaf@victim" : "other@victim", NULL);
}

struct read_back {
	struct sizes sizes;
	uint64_t victims, of_victims; /* samples; those whose first frame has its name */
	uint64_t left_out, scripts;   /* frames of the attacker's scripts */
};

static void look_at_stack(const struct profile *p, const struct profile_sample *s,
			  struct read_back *b)
{
	const struct profile_stack *stack = &p->stacks.items[s->stack];
	const char *comm = strtab_get(&p->strings, p->threads.items[s->thread].comm);
	bool victim = !strcmp(comm, "victim");
	char name[16384];

	b->victims += victim ? s->count : 0;
	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t frame = p->stack_frames.items[stack->first + i];

		profile_frame_name(p, frame, 0, name, sizeof(name));
		if (victim && !strcmp(name, "outer"))
			b->of_victims += s->count;
		if (profile_runtime_name(p->frames.items[frame].kind)) {
			b->scripts++;
			b->left_out += !strcmp(name, "[name left out]");
		}
	}
}

static int look_at(void *ctx, const void *request, size_t size, uint64_t samples, bool named)
{
	struct read_back *b = ctx;
	struct profile p;

	test_read(&export_otlp, request, size, &p);
	for (size_t i = 0; i < p.cut.samples.nr; i++)
		look_at_stack(&p, &p.cut.samples.items[i], b);
	profile_fini(&p);
	if (!named)
		ASSERT(!memmem(request, size, "of-itself", strlen("of-itself")));
	return add_size(&b->sizes, request, size, samples, named);
}

/* Without a share these were 300 requests, one a sample. */
TEST(a_user_of_long_names_has_a_share_of_a_report)
{
	struct read_back b = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ordinary_stacks(&p, 1000);
	wide_stacks(&p, 2000, 300, SOME);
	ordinary_stacks(&p, 3000);
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, MIB, look_at, &b));
	ASSERT_EQ(b.sizes.samples, 320);
	/* Two, or three, have their names. */
	ASSERT(b.sizes.nameless < 299 && b.sizes.nameless > 290);
	ASSERT(b.sizes.sum < OTLP_REPORT_TIMES / OTLP_OWNERS_PART * MIB + 320 * OTLP_FREE_BYTES);
	ASSERT(b.sizes.largest <= MIB);
	ASSERT(b.sizes.nr < 10);
	/* Others have all of theirs. */
	ASSERT_EQ(b.victims, 20);
	ASSERT_EQ(b.of_victims, 20);
	/* What has no name says so. */
	ASSERT_EQ(b.left_out, SOME / 2 * b.sizes.nameless);
	ASSERT_EQ(b.scripts, 300 * SOME / 2);
	profile_fini(&p);
}

/* Sleeps, say, of which a process has as many as it likes. */
static void many_of_another_type(struct profile *p, uint32_t nr)
{
	struct profile_measured m = { .thread = (uint32_t)p->threads.nr - 1, .value = 1 };
	uint32_t frame, sample;

	ASSERT_OK(profile_add_type(p, "off_cpu", "nanoseconds", &m.type));
	for (uint32_t i = 0; i < nr; i++) {
		frame = test_frame(p, "sleep@libwide.so", 0x900000 + (uint64_t)p->stacks.nr);
		ASSERT_OK(profile_add_stack(p, &frame, 1, STOP_COMPLETE, &m.stack));
		ASSERT_OK(profile_add_measured(p, &m, &sample));
	}
}

TEST(samples_of_other_types_make_no_room_for_names)
{
	struct sizes sizes = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	for (uint32_t process = 1; process <= 100; process++) {
		wide_stacks(&p, process, 1, SOME);
		p.processes.items[p.processes.nr - 1].real_uid = 2000;
		many_of_another_type(&p, 300);
	}
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, MIB, add_size, &sizes));
	ASSERT_EQ(sizes.samples, 100);
	ASSERT(sizes.nameless > 90);
	ASSERT(sizes.nr < 20);
	profile_fini(&p);
}

TEST(a_stack_of_names_that_make_a_request_has_none)
{
	struct read_back b = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ordinary_stacks(&p, 1000);
	wide_stacks(&p, 2000, 300, ALL_FUNCTIONS);
	ordinary_stacks(&p, 3000);
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, MIB, look_at, &b));
	ASSERT_EQ(b.sizes.samples, 320);
	ASSERT_EQ(b.sizes.nameless, 300);
	ASSERT(b.sizes.nr <= 3);
	ASSERT(b.sizes.sum < MIB);
	ASSERT_EQ(b.of_victims, 20);
	profile_fini(&p);
}

/* Names that many samples share are as good as those of others: a request has them once. */
TEST(names_of_many_samples_are_in_one_request)
{
	struct sizes sizes = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	wide_stacks(&p, 2000, 300, ALL_FUNCTIONS);
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, 4 * MIB, add_size, &sizes));
	ASSERT_EQ(sizes.nr, 1);
	ASSERT_EQ(sizes.nameless, 0);
	profile_fini(&p);
}

/* Subordinate users, say: there is an end to what all of them have, and to their requests. */
TEST(many_users_of_long_names_have_one_share)
{
	struct read_back b = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ordinary_stacks(&p, 1000);
	for (uint32_t uid = 2000; uid < 2200; uid++)
		wide_stacks(&p, uid, 3, SOME);
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, MIB, look_at, &b));
	ASSERT_EQ(b.sizes.samples, 610);
	ASSERT(b.sizes.nameless > 500);
	ASSERT(b.sizes.sum < OTLP_REPORT_TIMES * MIB + 610 * OTLP_FREE_BYTES);
	ASSERT(b.sizes.largest <= MIB);
	ASSERT(b.sizes.nr < 100);
	ASSERT_EQ(b.of_victims, 10);
	profile_fini(&p);
}

TEST(root_has_all_names)
{
	struct sizes sizes = { 0 };
	struct profile p;

	ASSERT_OK(profile_init(&p));
	wide_stacks(&p, 0, 20, ALL_FUNCTIONS);
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, MIB, add_size, &sizes));
	ASSERT_EQ(sizes.samples, 20);
	ASSERT_EQ(sizes.nr, 20);
	ASSERT_EQ(sizes.nameless, 0);
	profile_fini(&p);
}

#ifndef WITH_SANITIZERS /* which take memory for themselves */

static size_t data_size(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	size_t kb = 0;

	ASSERT(status);
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmData:", 7))
			kb = strtoull(line + 7, NULL, 10);
	fclose(status);
	ASSERT(kb);
	return kb * 1024;
}

/* Each stack is of one function with a long name, and of a time of its own. */
static void many_stacks(struct profile *p)
{
	uint32_t thread, frame, stack, sample;
	char spec[200];

	thread = test_thread(p, 100, 100, "many");
	for (uint32_t i = 0; i < STACKS; i++) {
		snprintf(spec, sizeof(spec), "function_%0150u@libmany.so", i);
		frame = test_frame(p, spec, 0x1000 + i);
		ASSERT_OK(profile_add_stack(p, &frame, 1, STOP_COMPLETE, &stack));
		ASSERT_OK(profile_add_sample(p, thread, stack, 1, &sample));
		ASSERT_OK(profile_add_event(p, sample, i, 0));
	}
	p->cut.duration_ns = STACKS;
}

/* Of a report that is much larger than a request may be. */
TEST(a_request_takes_memory_by_its_own_size)
{
	struct sizes whole = { 0 }, parts = { 0 };
	struct rlimit limit;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	many_stacks(&p);
	limit.rlim_cur = limit.rlim_max = data_size() + 9 * MIB;
	ASSERT_OK(setrlimit(RLIMIT_DATA, &limit));
	ASSERT_EQ(otlp_write_parts(&p, OTLP_SCHEMA_1_10, SIZE_MAX, add_size, &whole), -ENOMEM);
	ASSERT_OK(otlp_write_parts(&p, OTLP_SCHEMA_1_10, MIB, add_size, &parts));
	ASSERT(parts.sum > 10 * MIB && parts.largest <= MIB);
	ASSERT_EQ(parts.samples, STACKS);
	/* Each is filled, nearly. */
	ASSERT(parts.nr < 2 * parts.sum / MIB);
	profile_fini(&p);
}
#endif
