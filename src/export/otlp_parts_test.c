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

static int collect(void *ctx, const void *request, size_t size, uint64_t samples)
{
	struct collected *c = ctx;
	struct profile p;

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

TEST(parts_have_what_the_whole_has)
{
	static const size_t sizes[] = { 1, 2000, 3000, 5000, SIZE_MAX };

	for (unsigned events = 0; events <= EXAMPLE_EVENTS; events += EXAMPLE_EVENTS) {
		struct collected whole = { 0 };
		struct profile p;

		ASSERT_OK(profile_init(&p));
		ASSERT_OK(example_profile(&p, EXAMPLE_TRACED | events));
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

#ifndef WITH_SANITIZERS /* which take memory for themselves */
enum { MIB = 1 << 20, STACKS = 60000 };

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

struct sizes {
	size_t nr, sum, largest;
	uint64_t samples;
};

static int add_size(void *ctx, const void *request, size_t size, uint64_t samples)
{
	struct sizes *s = ctx;

	(void)request;
	s->nr++;
	s->sum += size;
	s->samples += samples;
	s->largest = size > s->largest ? size : s->largest;
	return 0;
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
