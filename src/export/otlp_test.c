// SPDX-License-Identifier: Apache-2.0
#include "export/example_profiles.h"
#include "export/formats.h"
#include "export/otlp_internal.h"
#include "export/proto/wire.h"
#include "export/test_profile.h"
#include "util/cleanup.h"

#include <stdlib.h>

static void round_trip(unsigned flags, struct profile *a, struct profile *b)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	ASSERT_OK(profile_init(a));
	ASSERT_OK(example_profile(a, flags));
	data = test_write(&export_otlp, a, &size);
	ASSERT(export_otlp.recognise(data, size));
	ASSERT(export_otlp.recognise(data, size < 16 ? size : 16));
	ASSERT(!export_pprof.recognise(data, size));
	test_read(&export_otlp, data, size, b);
	ASSERT_EQ(profile_total(b), profile_total(a));
	ASSERT_EQ(profile_complete(b), profile_complete(a));
	ASSERT_EQ(b->cut.start_ns, a->cut.start_ns);
	ASSERT_EQ(b->cut.duration_ns, a->cut.duration_ns);
	ASSERT_STR(profile_unit_type(b), profile_unit_type(a));
	ASSERT_STR(profile_unit_unit(b), profile_unit_unit(a));
	ASSERT_STR(strtab_get(&b->strings, b->host.name), "box");
	ASSERT_STR(strtab_get(&b->strings, b->host.id), "c0ffee");
	ASSERT_STR(strtab_get(&b->strings, b->host.arch), "amd64");
	ASSERT_STR(strtab_get(&b->strings, b->host.os), "Linux 6.1.0");
}

TEST(what_is_written_is_read)
{
	static const unsigned flags[] = { 0, EXAMPLE_NO_FREQUENCY, EXAMPLE_BYTES, EXAMPLE_EVENTS,
					  EXAMPLE_EVENTS | EXAMPLE_BYTES };
	struct profile a, b;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		round_trip(flags[i], &a, &b);
		test_assert_same_folded(&a, &b);
		ASSERT_EQ(b.frequency_hz, a.frequency_hz);
		/* Times are those of samples; bytes have none. */
		ASSERT_EQ(b.cut.events.nr, flags[i] == EXAMPLE_EVENTS ? a.cut.events.nr : 0);
		profile_fini(&a);
		profile_fini(&b);
	}
}

TEST(older_schemas_are_read_as_well)
{
	static const enum otlp_schema schemas[] = { OTLP_SCHEMA_1_10, OTLP_SCHEMA_1_9,
						    OTLP_SCHEMA_1_8 };
	struct profile a, b;

	for (unsigned i = 0; i < 2 * sizeof(schemas) / sizeof(schemas[0]); i++) {
		_cleanup_free_ char *data = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&data, &size);

		ASSERT_OK(profile_init(&a));
		ASSERT_OK(example_profile(&a, EXAMPLE_TRACED | (i % 2 ? EXAMPLE_EVENTS : 0)));
		ASSERT(out);
		ASSERT_OK(otlp_write_window(&a, NULL, schemas[i / 2], out));
		fclose(out);
		test_read(&export_otlp, data, size, &b);
		test_assert_same_folded(&a, &b);
		ASSERT_EQ(b.contexts.nr, a.contexts.nr);
		profile_fini(&a);
		profile_fini(&b);
	}
}

/* "sum of values of type 1 in that span; labels" */
static uint64_t in_span(const struct profile *p, uint32_t type, uint8_t span, size_t nr_labels)
{
	const struct profile_cut *cut = profile_cut_of(p, type);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cut->samples.nr; i++) {
		uint32_t number = profile_context_of(cut, i);
		const struct profile_context *c = number ? &p->contexts.items[number - 1] : NULL;

		if ((c ? c->span_id[0] : 0) != span)
			continue;
		sum += cut->samples.items[i].count;
		ASSERT_EQ(c ? c->nr_labels : 0, nr_labels);
		ASSERT_EQ(c ? c->trace_id[15] : 0xcd, 0xcd);
	}
	return sum;
}

TEST(types_values_traces_and_labels_are_kept)
{
	for (unsigned events = 0; events <= EXAMPLE_EVENTS; events += EXAMPLE_EVENTS) {
		struct profile a, b;
		uint64_t sum = 0;

		round_trip(EXAMPLE_TRACED | events, &a, &b);
		test_assert_same_folded(&a, &b);
		ASSERT_EQ(profile_nr_types(&b), 2);
		ASSERT_STR(profile_type_name(&b, 1), "off_cpu");
		ASSERT_STR(profile_type_unit(&b, 1), "nanoseconds");
		ASSERT_EQ(in_span(&b, 1, 0, 0), 1000 + 1003);
		ASSERT_EQ(in_span(&b, 1, 1, 0), 1001 + 1004);
		ASSERT_EQ(in_span(&b, 1, 2, 2), 1002 + 1005);
		ASSERT_EQ(in_span(&b, 0, 1, 0), events ? 0 : 2);
		ASSERT_EQ(b.cut.events.nr, events ? a.cut.events.nr : 0);
		ASSERT_EQ(b.others.items[0].events.nr, events ? 6 : 0);
		for (size_t i = 0; i < b.others.items[0].events.nr; i++)
			sum += profile_event_value(&b.others.items[0], i);
		ASSERT_EQ(sum, events ? 6015 : 0);
		for (size_t i = 0; i < b.labels.nr; i++) {
			const struct profile_label *l = &b.labels.items[i];

			if (l->text)
				ASSERT_STR(strtab_get(&b.strings, l->text), "zo\303\253");
			else
				ASSERT_EQ(l->number, 4096);
			ASSERT_STR(strtab_get(&b.strings, l->key), l->text ? "user" : "size");
			ASSERT_STR(strtab_get(&b.strings, (uint32_t)l->unit),
				   l->text ? "" : "bytes");
		}
		profile_fini(&a);
		profile_fini(&b);
	}
}

TEST(virtual_threads_have_their_carriers)
{
	const struct profile_thread *t;
	struct profile a, b;

	round_trip(EXAMPLE_VIRTUAL, &a, &b);
	t = example_thread(&b, "red");
	ASSERT(t);
	ASSERT_EQ(t->tid, 1300);
	ASSERT_STR(strtab_get(&b.strings, t->carrier), "python3");
	profile_fini(&a);
	profile_fini(&b);
}

static void assert_process(const struct profile *a, const struct profile_process *pa,
			   const struct profile *b, const struct profile_process *pb)
{
	ASSERT_EQ(pb->parent_pid, pa->parent_pid);
	ASSERT_EQ(pb->vpid, pa->vpid);
	ASSERT_EQ(pb->uid, pa->uid);
	ASSERT(pb->real_uid == pa->real_uid && pb->saved_uid == pa->saved_uid);
	ASSERT(pb->group_pid == pa->group_pid && pb->session_pid == pa->session_pid);
	ASSERT_EQ(pb->has_terminal, pa->has_terminal);
	ASSERT_STR(strtab_get(&b->strings, pb->cgroup), strtab_get(&a->strings, pa->cgroup));
	ASSERT_EQ(pb->end_ns, pa->end_ns);
	ASSERT_STR(strtab_get(&b->strings, pb->name), strtab_get(&a->strings, pa->name));
	ASSERT_STR(strtab_get(&b->strings, pb->path), strtab_get(&a->strings, pa->path));
	ASSERT_STR(strtab_get(&b->strings, pb->command), strtab_get(&a->strings, pa->command));
	ASSERT_STR(strtab_get(&b->strings, pb->owner), strtab_get(&a->strings, pa->owner));
	ASSERT_STR(strtab_get(&b->strings, pb->container), strtab_get(&a->strings, pa->container));
	ASSERT_STR(strtab_get(&b->strings, pb->pod), strtab_get(&a->strings, pa->pod));
	ASSERT_STR(strtab_get(&b->strings, pb->service), strtab_get(&a->strings, pa->service));
}

TEST(processes_are_kept)
{
	struct profile a, b;
	size_t found = 0;

	round_trip(EXAMPLE_EVENTS, &a, &b);
	ASSERT_EQ(b.processes.nr, a.processes.nr);
	ASSERT_EQ(b.threads.nr, a.threads.nr);
	for (size_t i = 0; i < a.processes.nr; i++) {
		for (size_t k = 0; k < b.processes.nr; k++) {
			const struct profile_process *pa = &a.processes.items[i];
			const struct profile_process *pb = &b.processes.items[k];

			if (pa->pid != pb->pid || pa->start_ns != pb->start_ns)
				continue;
			found++;
			assert_process(&a, pa, &b, pb);
		}
	}
	ASSERT_EQ(found, a.processes.nr);
	profile_fini(&a);
	profile_fini(&b);
}

TEST(times_and_cpus_are_kept)
{
	struct profile a, b;
	uint64_t sum_a = 0, sum_b = 0, cpus_a = 0, cpus_b = 0;

	round_trip(EXAMPLE_EVENTS, &a, &b);
	for (size_t i = 0; i < a.cut.events.nr; i++) {
		sum_a += a.cut.events.items[i].time_ns;
		cpus_a += a.cut.events.items[i].cpu;
		sum_b += b.cut.events.items[i].time_ns;
		cpus_b += b.cut.events.items[i].cpu;
		ASSERT(!i || b.cut.events.items[i].time_ns >= b.cut.events.items[i - 1].time_ns);
	}
	ASSERT_EQ(sum_a, sum_b);
	ASSERT_EQ(cpus_a, cpus_b);
	profile_fini(&a);
	profile_fini(&b);
}

static const struct profile_file *find_file(const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->files.nr; i++)
		if (!strcmp(strtab_get(&p->strings, p->files.items[i].path), path))
			return &p->files.items[i];
	FAIL("no file %s", path);
	return NULL;
}

TEST(files_and_languages_are_kept)
{
	const struct profile_file *f;
	struct profile a, b;
	size_t rust = 0, go = 0;

	round_trip(0, &a, &b);
	f = find_file(&b, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	ASSERT_EQ(f->build_id_len, 20);
	ASSERT_EQ(f->build_id[0], 0x33);
	ASSERT(f->has_file_id);
	ASSERT_EQ(f->file_id[15], 0xab);
	ASSERT_EQ(f->start, 0x26000);
	ASSERT_EQ(f->end, 0x126000);
	ASSERT_EQ(f->offset, 0x26000);
	f = find_file(&b, "/srv/my \"go\" program");
	ASSERT_STR(strtab_get(&b.strings, f->go_build_id), "abc/def/ghi");
	ASSERT_EQ(find_file(&b, "[kernel]")->build_id[0], 0x11);
	/* Without any id it is no mapping, but known all the same. */
	find_file(&b, "[nf_tables]");
	find_file(&b, "[vdso]");
	for (size_t i = 0; i < b.functions.nr; i++) {
		rust += b.functions.items[i].language == FUNCTION_LANGUAGE_RUST;
		go += b.functions.items[i].language == FUNCTION_LANGUAGE_GO;
	}
	ASSERT(rust);
	ASSERT(go);
	profile_fini(&a);
	profile_fini(&b);
}

TEST(a_profile_without_samples_is_a_request)
{
	struct profile a, b;

	round_trip(EXAMPLE_EMPTY, &a, &b);
	ASSERT_EQ(b.cut.samples.nr, 0);
	profile_fini(&a);
	profile_fini(&b);
}

/* --- the rules, as far as the bytes alone tell ------------------------------------------------ */

/* Every table begins with an empty entry, and no entry is there twice. */
static void check_tables(struct wire dictionary)
{
	bool seen[OTLP_TABLE_MAX_] = { false };
	VEC(struct wire_field) all = { 0 };
	struct wire_field f;
	int more;

	while ((more = wire_next(&dictionary, &f)) > 0) {
		ASSERT(f.number >= 1 && f.number < OTLP_TABLE_MAX_);
		ASSERT_EQ(f.type, WIRE_BYTES);
		if (!seen[f.number])
			ASSERT_EQ(f.size, 0);
		seen[f.number] = true;
		for (size_t i = 0; i < all.nr; i++)
			ASSERT(all.items[i].number != f.number || all.items[i].size != f.size ||
			       memcmp(all.items[i].data, f.data, f.size));
		ASSERT_OK(vec_push(&all, f));
	}
	ASSERT_EQ(more, 0);
	for (size_t i = 1; i < OTLP_TABLE_MAX_; i++)
		ASSERT(seen[i]);
	vec_free(&all);
}

TEST(tables_begin_empty_and_have_nothing_twice)
{
	_cleanup_free_ char *data = NULL;
	size_t size, dictionaries = 0;
	struct wire_field f;
	struct profile p;
	struct wire w;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(example_profile(&p, EXAMPLE_EVENTS));
	data = test_write(&export_otlp, &p, &size);
	w = wire_of(data, size);
	while (wire_next(&w, &f) > 0) {
		if (f.number != OTLP_DICTIONARY)
			continue;
		dictionaries++;
		check_tables(wire_of(f.data, f.size));
	}
	ASSERT_EQ(dictionaries, 1);
	profile_fini(&p);
}

/* How many fields of these numbers are in there. */
static size_t count_fields(struct wire w, uint32_t number)
{
	struct wire_field f;
	size_t nr = 0;

	while (wire_next(&w, &f) > 0)
		nr += f.number == number;
	return nr;
}

static struct wire field_of(struct wire w, uint32_t number)
{
	struct wire_field f;

	while (wire_next(&w, &f) > 0)
		if (f.number == number)
			return wire_of(f.data, f.size);
	FAIL("no field %u", number);
	return w;
}

/* One process that executed two programs, of which nobody could ask any more. */
TEST(who_look_the_same_are_one_resource)
{
	_cleanup_free_ char *data = NULL;
	uint32_t process, thread, id;
	size_t size, resources;
	struct profile p, b;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(example_profile(&p, 0));
	data = test_write(&export_otlp, &p, &size);
	resources = count_fields(wire_of(data, size), OTLP_RESOURCE_PROFILES);
	free(data);
	for (uint32_t key = 900; key < 902; key++) {
		ASSERT_OK(profile_add_process(&p, 77, key, &process));
		ASSERT_OK(profile_string(&p, "crowd", &p.processes.items[process].name));
		ASSERT_OK(profile_add_thread(&p, process, 77, "crowd", &thread));
		ASSERT_OK(profile_add_sample(&p, thread, p.cut.samples.items[0].stack, 5, &id));
	}
	data = test_write(&export_otlp, &p, &size);
	ASSERT_EQ(count_fields(wire_of(data, size), OTLP_RESOURCE_PROFILES), resources + 1);
	test_read(&export_otlp, data, size, &b);
	ASSERT_EQ(profile_total(&b), profile_total(&p));
	profile_fini(&p);
	profile_fini(&b);
}

/* Many receivers don't resolve key_strindex (3) and string_value_strindex (8). */
TEST(keys_and_values_are_inline)
{
	_cleanup_free_ char *data = NULL;
	size_t size, attributes = 0;
	struct wire w, resource, value;
	struct wire_field f;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(example_profile(&p, EXAMPLE_EVENTS));
	data = test_write(&export_otlp, &p, &size);
	resource = field_of(field_of(wire_of(data, size), OTLP_RESOURCE_PROFILES), OTLP_GROUP_HEAD);
	while (wire_next(&resource, &f) > 0) {
		w = wire_of(f.data, f.size);
		attributes++;
		ASSERT_EQ(count_fields(w, 1), 1);
		ASSERT_EQ(count_fields(w, 3), 0);
		ASSERT_EQ(count_fields(field_of(w, 2), 8), 0);
	}
	ASSERT(attributes > 10);
	w = field_of(wire_of(data, size), OTLP_DICTIONARY);
	while (wire_next(&w, &f) > 0) {
		if (f.number != OTLP_ATTRIBUTE_TABLE || !f.size)
			continue;
		value = field_of(wire_of(f.data, f.size), 2);
		ASSERT_EQ(count_fields(value, 8), 0);
		ASSERT(count_fields(value, 1) + count_fields(value, 2) + count_fields(value, 3) ==
		       1);
	}
	profile_fini(&p);
}

/* The end of a profile is exclusive, so an event at its end moves it. */
TEST(the_duration_covers_the_events)
{
	_cleanup_free_ char *data = NULL;
	struct profile a, b;
	size_t size;

	ASSERT_OK(profile_init(&a));
	ASSERT_OK(example_profile(&a, EXAMPLE_EVENTS));
	a.cut.duration_ns = a.cut.events.items[a.cut.events.nr - 1].time_ns;
	data = test_write(&export_otlp, &a, &size);
	test_read(&export_otlp, data, size, &b);
	ASSERT_EQ(b.cut.duration_ns, a.cut.duration_ns + 1);
	profile_fini(&a);
	profile_fini(&b);
}

/* --- what others write ------------------------------------------------------------------------ */

static size_t from_hex(const char *hex, uint8_t *buf)
{
	size_t nr = 0;

	for (; *hex; hex++) {
		unsigned byte;

		if (*hex == ' ')
			continue;
		ASSERT(sscanf(hex, "%2x", &byte) == 1);
		buf[nr++] = (uint8_t)byte;
		hex++;
	}
	return nr;
}

/*
 * The dictionary has the strings "", "samples", "count", "f", "g", "thread.name", "w"; functions f,
 * g; locations of each; a stack f, g; the attribute thread.name = "w".
 */
static const char dictionary[] =
	"0a00 1200 1204 1a020801 1204 1a020802 1a00 1a020803 1a020804 2200 2a00 "
	"2a07 73616d706c6573 2a05 636f756e74 2a01 66 2a01 67 2a0b 7468726561642e6e616d65 2a01 77 "
	"3200 3207 0805 1203 0a0177 3a00 3a04 0a020102 ";

static void put_hex(struct pack *b, uint32_t field, const char *hex)
{
	uint8_t bytes[400];

	ASSERT_OK(pack_bytes(b, field, bytes, from_hex(hex, bytes)));
}

/* The whole of `b` becomes one field of itself. */
static void wrap(struct pack *b, uint32_t field)
{
	struct pack outer = { 0 };

	ASSERT_OK(pack_bytes(&outer, field, b->items, b->nr));
	pack_fini(b);
	*b = outer;
}

/* A resource, in it a scope, in it a profile of "samples" and "count" with one sample. */
static void request(struct pack *b, const char *resource_hex, const char *sample_hex)
{
	struct pack inner = { 0 };

	*b = (struct pack){ 0 };
	put_hex(&inner, OTLP_SAMPLE_TYPE, "08011002");
	put_hex(&inner, OTLP_SAMPLES, sample_hex);
	wrap(&inner, OTLP_GROUP_MEMBERS);
	wrap(&inner, OTLP_GROUP_MEMBERS);
	put_hex(&inner, OTLP_GROUP_HEAD, resource_hex);
	wrap(&inner, OTLP_RESOURCE_PROFILES);
	*b = inner;
	put_hex(b, OTLP_DICTIONARY, dictionary);
}

static void assert_sample(const char *sample_hex, const char *folded)
{
	struct profile p;
	struct pack b;

	request(&b, "", sample_hex);
	ASSERT(export_otlp.recognise(b.items, b.nr));
	test_read(&export_otlp, b.items, b.nr, &p);
	test_assert_written(&export_folded, &p, folded);
	profile_fini(&p);
	pack_fini(&b);
}

TEST(schemas_are_told_apart)
{
	/* {stack 1, values [10], attributes [1]} as 1.8 and 1.9 number it, and as 1.10 does. */
	assert_sample("0801 1201 0a 1a01 01", "w;g;f 10\n");
	assert_sample("0801 1201 01 2201 0a", "w;g;f 10\n");
	/* Attribute and times only, as 1.10 has it: it could be a value and a time of before. */
	assert_sample("0801 1201 01 2a10 01002a36fe9c9717 00cac471fe9c9717", "w;g;f 2\n");
	/* No attribute has the number 9: it is a value. */
	assert_sample("0801 1201 09 2a08 01002a36fe9c9717", "[no_name];g;f 9\n");
}

TEST(unpacked_numbers_are_read)
{
	assert_sample("0801 1001 2005 2006 1800", "w;g;f 11\n");
	assert_sample("0801 1201 01 29 01002a36fe9c9717 29 00cac471fe9c9717", "w;g;f 2\n");
}

/* Keys and values of resources by their number in the table of strings, as the schema allows. */
TEST(string_references_are_read)
{
	struct profile p;
	struct pack b;

	/* {key_strindex 5 ("thread.name")} is nobody's; service.name is string 3, "f". */
	request(&b, "0a06 1805 1202 4003 0a12 0a0c 736572766963652e6e616d65 1202 4003",
		"0801 2201 03");
	test_read(&export_otlp, b.items, b.nr, &p);
	test_assert_written(&export_folded, &p, "f;g;f 3\n");
	profile_fini(&p);
	pack_fini(&b);
}

static void assert_bad_request(const char *hex, const char *problem_part)
{
	uint8_t data[400];
	char problem[200] = "";
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_ERR(export_otlp.read(data, from_hex(hex, data), &p, problem), EBADMSG);
	ck_assert_msg(strstr(problem, problem_part), "\"%s\" is not in \"%s\"", problem_part,
		      problem);
	ASSERT_EQ(p.strings.strings.nr, 1);
	profile_fini(&p);
}

static void assert_bad_sample(const char *sample_hex, const char *problem_part)
{
	char problem[200] = "";
	struct profile p;
	struct pack b;

	request(&b, "", sample_hex);
	ASSERT_OK(profile_init(&p));
	ASSERT_ERR(export_otlp.read(b.items, b.nr, &p, problem), EBADMSG);
	ck_assert_msg(strstr(problem, problem_part), "\"%s\" is not in \"%s\"", problem_part,
		      problem);
	profile_fini(&p);
	pack_fini(&b);
}

TEST(broken_requests_are_said)
{
	assert_bad_request("", "neither profiles nor a dictionary");
	assert_bad_request("0801", "no OTLP profiles request");
	assert_bad_request("0a05 12", "it is cut off or damaged");
	assert_bad_request("1202 0a05", "the dictionary is cut off or damaged");
	assert_bad_request("1204 1202 0805", "mapping 5 of 0");
	assert_bad_request("1206 1204 1a02 0805", "function 5 of 0");
	assert_bad_request("1205 1203 2201 01", "attribute 1 of 0");
	assert_bad_request("1204 1a02 0805", "string 5 of 0");
	assert_bad_request("1205 3a03 0a01 07", "location 7 of 0");
	assert_bad_sample("0805 2201 01", "stack 5 of 2");
	assert_bad_sample("0801 1201 07 2201 01", "attribute 7 of 2");
	assert_bad_sample("0801 220a ffffffffffffffffff01", "negative values");
	assert_bad_sample("0801 2201", "a sample is cut off or damaged");
}

TEST(other_formats_are_not_taken_for_it)
{
	static const char *const others[] = {
		"", "a;b 3\n", "\n", "{\"a\": 1}", "\x1f\x8b", "sh 1/1 [000] 1.0: 1 cpu:"
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ASSERT(!export_otlp.recognise(others[i], strlen(others[i])));
}
