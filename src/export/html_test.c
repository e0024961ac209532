// SPDX-License-Identifier: Apache-2.0
/* The page's frame, and its data byte by byte as docs/formats/html-data.md has them. */
#include "export/formats.h"
#include "export/viewer_page.h"
#include "util/cleanup.h"
#include "test.h"

#include <zlib.h>

#define DATA_TAG "<script type=\"application/octet-stream\" id=\"profile-data\">"

struct page {
	char *text;
	size_t size;
	uint8_t *data; /* inflated */
	size_t data_size, at;
};

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

static size_t decode_base64(const char *s, uint8_t *out)
{
	uint32_t bits = 0;
	size_t n = 0;
	int nr_bits = 0;

	for (; digit(*s) >= 0; s++) {
		bits = bits << 6 | (uint32_t)digit(*s);
		nr_bits += 6;
		if (nr_bits >= 8) {
			nr_bits -= 8;
			out[n++] = (uint8_t)(bits >> nr_bits);
		}
	}
	return n;
}

static void write_page(const struct profile *p, struct page *page)
{
	_cleanup_free_ uint8_t *deflated = NULL;
	uLongf size = 64 << 20;
	const char *data;
	FILE *out;

	*page = (struct page){ 0 };
	out = open_memstream(&page->text, &page->size);
	ASSERT_OK(export_html.write(p, &(struct export_options){ 0 }, out));
	fclose(out);
	data = strstr(page->text, DATA_TAG);
	ASSERT_PTR_NONNULL(data);
	data += strlen(DATA_TAG);
	deflated = malloc(page->size);
	page->data = malloc(size);
	ASSERT_EQ(uncompress(page->data, &size, deflated, decode_base64(data, deflated)), Z_OK);
	page->data_size = size;
	ASSERT(!strncmp(strchr(data, '<'), "</script>", 9));
}

static void free_page(struct page *page)
{
	ASSERT_EQ(page->at, page->data_size);
	free(page->text);
	free(page->data);
}

static uint64_t varint(struct page *page)
{
	uint64_t value = 0;

	for (int shift = 0;; shift += 7) {
		uint8_t b = page->data[page->at++];

		value |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return value;
	}
}

static void assert_varints(struct page *page, size_t nr, const uint64_t *want)
{
	for (size_t i = 0; i < nr; i++)
		ASSERT_EQ(varint(page), want[i]);
}

static void assert_bytes(struct page *page, const char *want, size_t size)
{
	ASSERT(page->at + size <= page->data_size);
	ck_assert_mem_eq(page->data + page->at, want, size);
	page->at += size;
}

static void assert_head(struct page *page, const char *meta)
{
	assert_bytes(page, "SNDF\2\0\0\0", 8);
	ASSERT_EQ(varint(page), strlen(meta));
	assert_bytes(page, meta, strlen(meta));
}

static uint32_t frame(struct profile *p, uint16_t kind, const char *path, const char *name)
{
	struct profile_frame f = { .kind = kind, .address = p->frames.nr };
	uint32_t id;

	ASSERT_OK(profile_add_file(p, path, NULL, 0, &f.file));
	ASSERT_OK(profile_add_frame(p, &f, &id));
	ASSERT_OK(profile_name_frame(p, id, name));
	return id;
}

static void sample(struct profile *p, const uint32_t *frames, size_t nr, enum stop_reason stop,
		   uint64_t count)
{
	uint32_t stack;

	ASSERT_OK(profile_add_stack(p, frames, nr, stop, &stack));
	ASSERT_OK(profile_add_comm_sample(p, "sh", stack, count));
}

TEST(an_empty_profile_is_a_page)
{
	struct profile p;
	struct page page;

	ASSERT_OK(profile_init(&p));
	write_page(&p, &page);
	assert_head(&page,
		    "{\"samples\":0,\"complete\":0,\"own\":0,\"duration_ns\":0,\"frequency_hz\":0,"
		    "\"start_ms\":0,\"truncated\":{},\"runtimes\":{}}");
	assert_varints(&page, 4, (const uint64_t[]){ 1, 0, 0, 0 });
	free_page(&page);
	profile_fini(&p);
}

TEST(the_tree_is_in_the_page)
{
	struct profile p;
	struct page page;
	uint32_t main_, run, read_;

	ASSERT_OK(profile_init(&p));
	p.cut.start_ns = 1700000000123456789;
	p.cut.duration_ns = 10000000000;
	p.frequency_hz = 99;
	main_ = frame(&p, FRAME_KIND_NATIVE, "/bin/sh", "main");
	run = frame(&p, FRAME_KIND_NATIVE, "/bin/sh", "run");
	read_ = frame(&p, FRAME_KIND_KERNEL, "[kernel]", "read");
	sample(&p, (const uint32_t[]){ read_, run, main_ }, 3, STOP_COMPLETE, 300);
	sample(&p, (const uint32_t[]){ main_ }, 1, STOP_COMPLETE, 2);
	sample(&p, (const uint32_t[]){ run }, 1, STOP_NO_RULE, 1);
	p.processes.items[0].is_own = true;
	write_page(&p, &page);
	assert_head(&page,
		    "{\"samples\":303,\"complete\":302,\"own\":303,\"duration_ns\":10000000000,"
		    "\"frequency_hz\":99,\"start_ms\":1700000000123,\"truncated\":"
		    "{\"no_rule\":{\"samples\":1,\"sentence\":"
		    "\"the unwind table does not cover an address\"}},\"runtimes\":{}}");
	/* "", [truncated: no_rule], main, /bin/sh, read, [kernel], run, sh */
	assert_varints(&page, 9, (const uint64_t[]){ 8, 0, 20, 4, 7, 4, 8, 3, 2 });
	assert_bytes(&page, "[truncated: no_rule]main/bin/shread[kernel]runsh", 48);
	assert_varints(&page, 11, (const uint64_t[]){ 5, 1, 2, 4, 6, 7, 0, 3, 5, 3, 0 });
	assert_varints(&page, 5, (const uint64_t[]){ 0, 0, 0, 0, 0 });
	assert_bytes(&page, "\2\1\0\1\40", 5);
	/* sh; [truncated], run; main, run, read */
	assert_varints(&page, 7, (const uint64_t[]){ 6, 4, 0, 3, 1, 3, 2 });
	assert_varints(&page, 6, (const uint64_t[]){ 0, 0, 0, 2, 0, 0 });
	assert_varints(&page, 6, (const uint64_t[]){ 0, 0, 1, 2, 0, 300 });
	free_page(&page);
	profile_fini(&p);
}

TEST(equal_names_in_different_files_stay_apart)
{
	struct profile p;
	struct page page;
	uint32_t a, b;

	ASSERT_OK(profile_init(&p));
	a = frame(&p, FRAME_KIND_NATIVE, "/a", "main");
	b = frame(&p, FRAME_KIND_NATIVE, "/b", "main");
	sample(&p, &a, 1, STOP_COMPLETE, 1);
	sample(&p, &b, 1, STOP_COMPLETE, 1);
	write_page(&p, &page);
	page.at = 8;
	page.at += varint(&page);
	assert_varints(&page, 6, (const uint64_t[]){ 5, 0, 4, 2, 2, 2 });
	assert_bytes(&page, "main/a/bsh", 10);
	assert_varints(&page, 7, (const uint64_t[]){ 3, 1, 1, 4, 2, 3, 0 });
	page.at = page.data_size;
	free_page(&page);
	profile_fini(&p);
}

/* Many blocks of deflate and of base64; and hostile names stay inside the data. */
TEST(a_large_profile_is_whole)
{
	enum { NR = 30000 };
	struct profile p;
	struct page page;
	uint64_t sum = 0;
	char name[96];

	ASSERT_OK(profile_init(&p));
	for (uint32_t i = 0; i < NR; i++) {
		uint32_t f;

		snprintf(name, sizeof(name), "</script><b>%u\"%08x", i, i * 2654435761u);
		f = frame(&p, FRAME_KIND_NATIVE, "/x", name);
		sample(&p, &f, 1, STOP_COMPLETE, i);
	}
	write_page(&p, &page);
	ASSERT_PTR_NULL(strstr(page.text, "</script><b>"));
	ASSERT_PTR_NULL(strstr(page.text, VIEWER_DATA_PLACE));
	page.at = 8;
	page.at += varint(&page);
	ASSERT_EQ(varint(&page), NR + 3);
	for (size_t i = 0; i < NR + 3; i++)
		sum += varint(&page);
	page.at += sum;
	ASSERT_EQ(varint(&page), NR + 1);
	page.at = page.data_size;
	free_page(&page);
	profile_fini(&p);
}
