// SPDX-License-Identifier: Apache-2.0
#include "record/otel_context.h"
#include "test.h"
#include "util/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A message of less than 128 bytes. */
struct bytes {
	uint8_t data[8192];
	size_t size;
};

static void put(struct bytes *to, uint8_t tag, const void *data, size_t size)
{
	to->data[to->size++] = tag;
	if (size >= 128)
		to->data[to->size++] = (uint8_t)(size | 0x80);
	to->data[to->size++] = (uint8_t)(size >= 128 ? size >> 7 : size);
	memcpy(to->data + to->size, data, size);
	to->size += size;
}

/* `value` is an AnyValue. */
static void put_pair(struct bytes *resource, const char *key, const struct bytes *value)
{
	struct bytes pair = { .size = 0 };

	put(&pair, 0x0a, key, strlen(key));
	put(&pair, 0x12, value->data, value->size);
	put(resource, 0x0a, pair.data, pair.size);
}

static void put_text(struct bytes *resource, const char *key, const char *value)
{
	struct bytes any = { .size = 0 };

	put(&any, 0x0a, value, strlen(value));
	put_pair(resource, key, &any);
}

static struct otel_context read_resource(const struct bytes *resource)
{
	struct bytes context = { .size = 0 };
	struct otel_context ret;

	put(&context, 0x0a, resource->data, resource->size);
	ASSERT_OK(otel_context_read(context.data, context.size, &ret));
	return ret;
}

static const char *value_of(const struct otel_context *c, const char *name)
{
	static char value[4096];
	struct pairs pairs;
	const char *problem = "", *found;

	ASSERT_MSG(!pairs_parse(c->attributes, &pairs, &problem), "%s: %s", c->attributes, problem);
	found = pairs_get(&pairs, name);
	snprintf(value, sizeof(value), "%s", found ? found : "(none)");
	pairs_fini(&pairs);
	return value;
}

TEST(attributes_become_pairs)
{
	static const uint8_t yes[] = { 0x10, 1 },
			     minus_one[] = { 0x18, 0xff, 0xff, 0xff, 0xff, 0xff,
					     0xff, 0xff, 0xff, 0xff, 1 },
			     half[] = { 0x21, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f },
			     list[] = { 0x2a, 2, 0x0a, 0 };
	struct bytes resource = { .size = 0 }, any = { .size = 0 };
	struct otel_context c;

	put_text(&resource, "service.name", "shop, 100% \xc3\xa4");
	put_text(&resource, "deployment.environment.name", "a=b,c d%20\xc3\xa4");
	put_text(&resource, "bad key", "x");
	put_text(&resource, "control", "a\nb");
	put_text(&resource, "empty", "");
	memcpy(any.data, yes, any.size = sizeof(yes));
	put_pair(&resource, "bool", &any);
	memcpy(any.data, minus_one, any.size = sizeof(minus_one));
	put_pair(&resource, "int", &any);
	memcpy(any.data, half, any.size = sizeof(half));
	put_pair(&resource, "double", &any);
	memcpy(any.data, list, any.size = sizeof(list));
	put_pair(&resource, "list", &any);
	c = read_resource(&resource);
	ASSERT_STR(c.service, "shop, 100% \xc3\xa4");
	ASSERT_STR(value_of(&c, "deployment.environment.name"), "a=b,c d%20\xc3\xa4");
	ASSERT_STR(value_of(&c, "bool"), "true");
	ASSERT_STR(value_of(&c, "int"), "-1");
	ASSERT_STR(value_of(&c, "double"), "0.5");
	for (const char *const *name = (const char *const[]){ "bad key", "control", "empty", "list",
							      "service.name", NULL };
	     *name; name++)
		ASSERT_STR(value_of(&c, *name), "(none)");
}

TEST(what_finds_no_room_is_left_out)
{
	struct bytes resource = { .size = 0 };
	struct otel_context c;
	char name[16], value[300];

	memset(value, '=', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	/* 900 bytes each as they are written: four of them. */
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "long%d", i);
		put_text(&resource, name, value);
	}
	put_text(&resource, "service.name", value);
	put_text(&resource, "short", "x");
	c = read_resource(&resource);
	ASSERT_STR(c.service, "");
	ASSERT_STR(value_of(&c, "long3"), value);
	ASSERT_STR(value_of(&c, "long4"), "(none)");
	ASSERT_STR(value_of(&c, "short"), "x");

	resource.size = 0;
	for (int i = 0; i < PAIRS_MAX + 3; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		put_text(&resource, name, "x");
	}
	c = read_resource(&resource);
	snprintf(name, sizeof(name), "n%d", PAIRS_MAX - 1);
	ASSERT_STR(value_of(&c, name), "x");
	snprintf(name, sizeof(name), "n%d", PAIRS_MAX);
	ASSERT_STR(value_of(&c, name), "(none)");
}

TEST(what_is_no_context_is_refused)
{
	struct otel_context c = { .service = "as it was" };

	ASSERT_ERR(otel_context_read("\x0a\x05", 2, &c), EBADMSG);
	ASSERT_ERR(otel_context_read("\x0a\x02\x0a\x05", 4, &c), EBADMSG);
	ASSERT_ERR(otel_context_read("\x0a\x04\x0a\x02\x12\x05", 6, &c), EBADMSG);
	ASSERT_ERR(otel_context_read("\x0a\x06\x0a\x04\x12\x02\x0a\x05", 8, &c), EBADMSG);
	ASSERT_STR(c.service, "as it was");
	ASSERT_OK(otel_context_read("", 0, &c));
	ASSERT_STR(c.service, "");
	ASSERT_STR(c.attributes, "");
}
