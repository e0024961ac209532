// SPDX-License-Identifier: Apache-2.0
/* Kernel code that comes and goes: whose file and whose frame an address is. */
#include "symbolize/kernel_places.h"

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE	UINT64_C(0xffffffffc0001000)
#define PROGRAM UINT64_C(0xffffffffc0200040)

static struct profile profile;
static struct kernel_places k;

static void set_up(void)
{
	ASSERT_OK(profile_init(&profile));
	kernel_places_init(&k, &profile);
}

static void tear_down(void)
{
	kernel_places_fini(&k);
	profile_fini(&profile);
}

static const char *file_of(uint64_t address)
{
	uint32_t file, scope;

	ASSERT_OK(kernel_places_find(&k, address, &file, &scope));
	return strtab_get(&profile.strings, profile.files.items[file].path);
}

static uint32_t scope_of(uint64_t address)
{
	uint32_t file, scope;

	ASSERT_OK(kernel_places_find(&k, address, &file, &scope));
	return scope;
}

/* As if a module had been there that this machine has not. */
static void pretend_module(void)
{
	static const char text[] = "not_of_here 4096 0 - Live 0xffffffffc0001000\n";

	ASSERT_STR(file_of(MODULE), "[kernel]");
	ASSERT_OK(kernel_image_parse_modules(&k.image, text, strlen(text)));
	ASSERT_STR(file_of(MODULE), "[not_of_here]");
}

/* As if others had been there at the last look. */
static void change_modules(void)
{
	k.seen.nr_events++;
	k.seen.names++;
}

TEST(a_module_that_went_is_nobodys)
{
	set_up();
	pretend_module();
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	change_modules();
	ASSERT_EQ(kernel_places_look(&k), KERNEL_LESS);
	/* Samples that were taken before we looked are of that module still. */
	ASSERT_EQ(k.version, 1);
	ASSERT_STR(file_of(MODULE), "[not_of_here]");
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	ASSERT_EQ(k.version, 2);
	ASSERT_STR(file_of(MODULE), "[kernel]");
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	ASSERT_EQ(k.version, 2);
	tear_down();
}

/* In whose place there is another at the next look: who ran meanwhile nobody knows. */
TEST(a_module_in_anothers_place_has_no_samples_of_before)
{
	static const char text[] = "other 8192 0 - Live 0xffffffffc0001000\n";

	set_up();
	pretend_module();
	change_modules();
	ASSERT_EQ(kernel_places_look(&k), KERNEL_LESS);
	ASSERT_OK(kernel_image_parse_modules(&k.image, text, strlen(text)));
	ASSERT_STR(file_of(MODULE), "[kernel]");
	ASSERT_EQ(scope_of(MODULE), KERNEL_SCOPE_UNSURE);
	/* Where there was none another may have come and gone meanwhile. */
	ASSERT_EQ(scope_of(MODULE + 4096), KERNEL_SCOPE_UNSURE);
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	ASSERT_STR(file_of(MODULE), "[other]");
	ASSERT_EQ(scope_of(MODULE), 0);
	tear_down();
}

/* One goes and another comes between two looks: there are as many as there were. */
TEST(a_module_for_another_is_seen)
{
	char folder[] = "/tmp/sonde-modules-XXXXXX", path[64];
	uint64_t names;

	set_up();
	file_of(MODULE);
	ASSERT_PTR_NONNULL(mkdtemp(folder));
	close(k.modules_fd);
	k.modules_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/one", folder);
	ASSERT_OK(mkdir(path, 0700));
	change_modules();
	ASSERT_EQ(kernel_places_look(&k), KERNEL_MORE);
	names = k.seen.names;
	/* An event of something else. */
	k.seen.nr_events--;
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	ASSERT_EQ(k.seen.names, names);
	ASSERT_OK(rmdir(path));
	snprintf(path, sizeof(path), "%s/two", folder);
	ASSERT_OK(mkdir(path, 0700));
	ASSERT_EQ(k.seen.nr, 3);
	k.seen.nr_events--;
	ASSERT_EQ(kernel_places_look(&k), KERNEL_MORE);
	ASSERT(k.seen.names != names);
	ASSERT_EQ(k.seen.nr, 3);
	ASSERT_OK(rmdir(path));
	ASSERT_OK(rmdir(folder));
	tear_down();
}

/* Where the kernel drops what it says of BPF programs, one may have taken another's place. */
TEST(what_was_lost_may_have_been_anybodys_end)
{
	uint32_t program, text;

	set_up();
	pretend_module();
	k.text_start = PROGRAM + 4096;
	k.text_end = k.text_start + 4096;
	program = scope_of(PROGRAM);
	text = scope_of(k.text_start);
	kernel_places_lost(&k);
	ASSERT_EQ(k.version, 1);
	ASSERT(scope_of(PROGRAM) != program);
	ASSERT_EQ(scope_of(k.text_start), text);
	ASSERT_EQ(scope_of(MODULE), 0);
	tear_down();
}

TEST(modules_are_counted_in_a_folder_that_is_found_once)
{
	struct stat st;

	set_up();
	ASSERT(k.modules_fd >= 0);
	ASSERT_OK(stat("/sys/module", &st));
	ASSERT_EQ(k.seen.nr, st.st_nlink);
	ASSERT(k.seen.nr > 2);
	tear_down();
}

TEST(what_was_never_begun_closes_nothing)
{
	struct kernel_places none = { 0 };

	ASSERT(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	kernel_places_fini(&none);
	ASSERT(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

TEST(what_comes_takes_nothing_from_what_is_there)
{
	set_up();
	file_of(MODULE);
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	change_modules();
	ASSERT_EQ(kernel_places_look(&k), KERNEL_MORE);
	ASSERT_STR(file_of(MODULE), "[kernel]");
	tear_down();
}

TEST(code_at_the_place_of_what_is_gone_is_another)
{
	uint32_t first, second;

	set_up();
	first = scope_of(PROGRAM + 100);
	ASSERT_EQ(kernel_places_code(&k, PROGRAM, 256, false), KERNEL_MORE);
	ASSERT_EQ(scope_of(PROGRAM + 100), first);
	ASSERT_EQ(kernel_places_code(&k, PROGRAM, 256, true), KERNEL_LESS);
	second = scope_of(PROGRAM + 100);
	ASSERT(second != first);
	ASSERT_EQ(scope_of(PROGRAM + 256), first);
	ASSERT_EQ(kernel_places_code(&k, PROGRAM, 256, true), KERNEL_LESS);
	ASSERT(scope_of(PROGRAM) != first && scope_of(PROGRAM) != second);
	tear_down();
}

TEST(code_that_nobody_was_seen_in_goes_unnoticed)
{
	set_up();
	scope_of(PROGRAM);
	ASSERT_EQ(kernel_places_code(&k, PROGRAM + 64, 256, true), KERNEL_SAME);
	/* The kernel's own code stays. */
	k.text_start = PROGRAM + 4096;
	k.text_end = k.text_start + 4096;
	scope_of(k.text_start);
	ASSERT_EQ(kernel_places_code(&k, k.text_start, 64, true), KERNEL_SAME);
	/* What makes no sense is none. */
	ASSERT_EQ(kernel_places_code(&k, UINT64_MAX, 64, true), KERNEL_SAME);
	ASSERT_EQ(kernel_places_code(&k, PROGRAM, 0, true), KERNEL_SAME);
	tear_down();
}

TEST(no_scope_comes_again)
{
	uint32_t last, scope;

	set_up();
	last = scope_of(PROGRAM);
	for (int i = 0; i < 3000; i++) {
		ASSERT_EQ(kernel_places_code(&k, PROGRAM, 64, true), KERNEL_LESS);
		scope = scope_of(PROGRAM);
		ASSERT(scope > last);
		last = scope;
	}
	tear_down();
}
