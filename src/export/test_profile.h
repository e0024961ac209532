/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for the tests of formats, written like stacks on paper. Only tests include this. */
#pragma once

#include "export/formats.h"
#include "test.h"
#include "util/cleanup.h"

#include <stdarg.h>
#include <string.h>

/*
 * A frame: "name", "name@file", "@file" (no name), "inner<outer@file" (inlined); "[...]" as the
 * file is the kernel's; "name@{python}" is a runtime's, "name@{python}app.py" with its source.
 * `address` tells frames apart.
 */
static inline uint32_t test_frame(struct profile *p, const char *spec, uint64_t address)
{
	const char *at = strrchr(spec, '@'), *brace = at && at[1] == '{' ? strchr(at, '}') : NULL;
	struct profile_frame f = { .kind = FRAME_KIND_NATIVE,
				   .address = address,
				   .file = PROFILE_NO_FILE };
	struct profile_line lines[8];
	char names[256], *save = NULL;
	size_t nr = 0;
	uint32_t id;

	if (brace) {
		f.kind = profile_runtime_kind(at + 2, (size_t)(brace - at - 2));
		f.address = 0;
		ASSERT(f.kind != FRAME_KIND_NATIVE);
	} else if (at) {
		ASSERT_OK(profile_add_file(p, at + 1, (const uint8_t *)"\1\2\3\4", 4, &f.file));
		if (at[1] == '[' && strcmp(at + 1, "[anon]") && strcmp(at + 1, "[vdso]"))
			f.kind = FRAME_KIND_KERNEL;
	}
	snprintf(names, sizeof(names), "%.*s", at ? (int)(at - spec) : 255, spec);
	for (char *name = strtok_r(names, "<", &save); name; name = strtok_r(NULL, "<", &save)) {
		struct profile_function function = { .start_line = 10,
						     .language = FUNCTION_LANGUAGE_C };

		ASSERT_OK(profile_string(p, name, &function.name));
		if (brace)
			function.language = FUNCTION_LANGUAGE_UNKNOWN;
		ASSERT_OK(profile_string(p, brace ? brace + 1 : "src.c", &function.source));
		lines[nr] = (struct profile_line){ .line = (uint32_t)(12 + nr) };
		ASSERT_OK(profile_add_function(p, &function, &lines[nr++].function));
	}
	ASSERT_OK(profile_add_named_frame(p, &f, lines, nr, &id));
	return id;
}

static inline uint32_t test_thread(struct profile *p, int32_t pid, int32_t tid, const char *comm)
{
	uint32_t process, thread;

	ASSERT_OK(profile_add_process(p, pid, 0, &process));
	ASSERT_OK(profile_add_thread(p, process, tid, comm, &thread));
	return thread;
}

/* The frames outermost first, then NULL; the sample's number. */
static inline uint32_t test_sample(struct profile *p, uint32_t thread, enum stop_reason stop,
				   uint64_t count, ...)
{
	enum { MAX = 32 };
	uint32_t frames[MAX], stack, sample;
	size_t nr = MAX;
	const char *spec;
	va_list ap;

	va_start(ap, count);
	while ((spec = va_arg(ap, const char *))) {
		uint64_t address =
			strstr(spec, "@[") && !strstr(spec, "@[anon") ? 0xffffffff81000000 : 0x1000;

		frames[--nr] = test_frame(p, spec, address + strlen(spec));
	}
	va_end(ap);
	ASSERT_OK(profile_add_stack(p, frames + nr, MAX - nr, stop, &stack));
	ASSERT_OK(profile_add_sample(p, thread, stack, count, &sample));
	return sample;
}

/* What the format writes; the caller's, NUL-terminated. */
static inline char *test_write(const struct export_ops *ops, const struct profile *p, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	ASSERT_OK(ops->write(p, &(struct export_options){ 0 }, out));
	fclose(out);
	return text;
}

/* What the format reads; *ret is initialised. */
static inline void test_read(const struct export_ops *ops, const void *data, size_t size,
			     struct profile *ret)
{
	char problem[200] = "";
	int r;

	ASSERT_OK(profile_init(ret));
	r = ops->read(data, size, ret, problem);
	ck_assert_msg(!r, "%s: %d: %s", ops->name, r, problem);
}

static inline void test_assert_written(const struct export_ops *ops, const struct profile *p,
				       const char *want)
{
	size_t size;
	_cleanup_free_ char *text = test_write(ops, p, &size);

	ASSERT_STR(text, want);
}

/* Both have equal stacks and sums, whatever else differs. */
static inline void test_assert_same_folded(const struct profile *a, const struct profile *b)
{
	size_t size;
	_cleanup_free_ char *want = test_write(&export_folded, a, &size);

	ASSERT(*want);
	test_assert_written(&export_folded, b, want);
}
