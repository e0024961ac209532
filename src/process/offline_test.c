// SPDX-License-Identifier: Apache-2.0
/* A process that this machine does not have, whose files the caller gives. */
#include "process/process.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct process_table t;

static int open_self(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

TEST(a_file_that_was_found_elsewhere_has_the_name_that_it_is_given)
{
	struct mapping m = { .start = 0x10000, .end = 0x20000 };
	struct mapped_file *file;
	struct process *proc;
	struct elf_file *elf;

	ASSERT_OK(process_table_init(&t));
	ASSERT_OK(process_add(&t, 1, &proc));
	ASSERT_OK(process_add_file(&t, "/not/here", open_self(), &m.file));
	file = t.files.items[m.file];
	ASSERT_STR(file->path, "/not/here");
	ASSERT_EQ(file->state, FILE_OPEN);
	ASSERT(file->is_elf);
	ASSERT_OK(process_add_mapping(&t, proc, &m));
	ASSERT_OK(process_open_file(&t, proc, &m, file));
	ASSERT_OK(mapped_file_elf(&t, file, &elf));
	elf_file_free(elf);
	process_table_fini(&t);
}

TEST(nothing_of_this_machines_process_of_that_number_is_taken)
{
	struct process *proc, *found;

	ASSERT_OK(process_table_init(&t));
	ASSERT_OK(process_add(&t, getpid(), &proc));
	ASSERT_OK(process_get(&t, getpid(), &found));
	ASSERT(found == proc);
	ASSERT_EQ(found->mappings.nr, 0);
	ASSERT_ERR(process_refresh(&t, proc), ESRCH);
	ASSERT_ERR(process_add(&t, getpid(), &proc), EEXIST);
	process_table_fini(&t);
}

TEST(a_file_that_is_not_there_is_unreadable_and_says_why)
{
	struct process *proc;
	struct mapping m = { .start = 0x10000, .end = 0x20000 };

	ASSERT_OK(process_table_init(&t));
	ASSERT_OK(process_add(&t, 1, &proc));
	ASSERT_OK(process_add_file(&t, "/bin/sh", -ESTALE, &m.file));
	ASSERT_EQ(t.files.items[m.file]->state, FILE_UNREADABLE);
	/* Also though one of that path is here. */
	ASSERT_ERR(process_open_file(&t, proc, &m, t.files.items[m.file]), ESTALE);
	process_table_fini(&t);
}

TEST(images_and_what_is_none)
{
	uint8_t *junk = calloc(1, 4096), *image = malloc(16 << 20);
	uint32_t index = 77;
	int fd = open_self();
	ssize_t size = read(fd, image, 16 << 20);

	close(fd);
	ASSERT(size > 4096 && size < 16 << 20);
	ASSERT_OK(process_table_init(&t));
	ASSERT(process_add_image(&t, "[vdso]", junk, 4096, &index) < 0);
	ASSERT_EQ(index, 77);
	free(junk); /* still ours */
	ASSERT_OK(process_add_image(&t, "[vdso]", image, (size_t)size, &index));
	ASSERT(t.files.items[index]->is_elf);
	process_table_fini(&t);
}
