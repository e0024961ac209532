// SPDX-License-Identifier: Apache-2.0
/* Kernel code that comes and goes: whose file and whose frame an address is. */
#include "symbolize/kernel_places.h"

#include "test.h"

#include <fcntl.h>
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

TEST(a_module_that_went_is_nobodys)
{
	set_up();
	pretend_module();
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	k.nr_modules++;
	ASSERT_EQ(kernel_places_look(&k), KERNEL_LESS);
	/* Samples that were taken before we looked are of that module still. */
	ASSERT_STR(file_of(MODULE), "[not_of_here]");
	ASSERT_EQ(kernel_places_look(&k), KERNEL_SAME);
	ASSERT_STR(file_of(MODULE), "[kernel]");
	tear_down();
}

TEST(modules_are_counted_in_a_folder_that_is_found_once)
{
	struct stat st;

	set_up();
	ASSERT(k.modules_fd >= 0);
	ASSERT_OK(stat("/sys/module", &st));
	ASSERT_EQ(k.nr_modules, st.st_nlink);
	ASSERT(k.nr_modules > 2);
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
	k.nr_modules--;
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
