// SPDX-License-Identifier: Apache-2.0
#include "util/kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"

struct found {
	char text[1024];
	size_t len, nr;
	const char *until;
};

static int note(void *ctx, const struct kernel_symbol *s)
{
	struct found *f = ctx;

	f->nr++;
	f->len += (size_t)snprintf(f->text + f->len, sizeof(f->text) - f->len, "%llx %c %s%s|",
				   (unsigned long long)s->address, s->type, s->name,
				   s->is_modules ? " M" : "");
	if (f->len >= sizeof(f->text))
		f->len = 0;
	return f->until && !strcmp(f->until, s->name) ? 7 : 0;
}

static int file_of(const char *text, size_t size)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	ASSERT(fd >= 0 && write(fd, text, size) == (ssize_t)size && !lseek(fd, 0, SEEK_SET));
	return fd;
}

static const char lines[] = "ffffffff81000000 T _stext\n"
			    "0000000000000000 A per_cpu\n"
			    "nothing\n\n"
			    "1 t\n"
			    "12345678901234567 t too_many_digits\n"
			    "ffffffffc0000010 t of_it\t[module]\n"
			    "ffffffff81000020 W last\n"
			    "ffffffff81000030 t without_an_end";

TEST(lines_are_taken_in_their_order)
{
	_cleanup_close_ int fd = file_of(lines, strlen(lines));
	struct found f = { .until = NULL };

	ASSERT_EQ(kernel_symbols_walk_file(fd, note, &f), 0);
	ASSERT_STR(f.text, "ffffffff81000000 T _stext|0 A per_cpu|ffffffffc0000010 t of_it M|"
			   "ffffffff81000020 W last|");
}

TEST(who_has_found_it_ends_the_walk)
{
	_cleanup_close_ int fd = file_of(lines, strlen(lines));
	struct found f = { .until = "per_cpu" };

	ASSERT_EQ(kernel_symbols_walk_file(fd, note, &f), 7);
	ASSERT_EQ(f.nr, 2);
}

TEST(lines_go_over_the_borders_of_blocks)
{
	static char text[300000];
	struct found f = { .until = "name_9999_" };
	_cleanup_close_ int fd = -1;
	size_t len = 0;

	for (unsigned i = 0; i < 10000; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%016x t name_%u_\n", i, i);
	fd = file_of(text, len);
	ASSERT_EQ(kernel_symbols_walk_file(fd, note, &f), 7);
	ASSERT_EQ(f.nr, 10000);
}

TEST(a_line_without_an_end_is_passed_over)
{
	static const char last[] = "\n1 t last\n";
	static char text[200000];
	struct found f = { .until = "last" };
	_cleanup_close_ int fd = -1;

	memset(text, 'a', sizeof(text));
	memcpy(text + sizeof(text) - strlen(last), last, strlen(last));
	fd = file_of(text, sizeof(text));
	ASSERT_EQ(kernel_symbols_walk_file(fd, note, &f), 7);
	ASSERT_EQ(f.nr, 1);
}

static int find_stext(void *ctx, const struct kernel_symbol *s)
{
	*(bool *)ctx |= !strcmp(s->name, "_stext") && s->type == 'T';
	return 0;
}

TEST(the_kernels_own)
{
	bool found = false;
	int r = kernel_symbols_walk(find_stext, &found);

	ASSERT(r == -ENOENT || r == -EACCES || (!r && found));
}
