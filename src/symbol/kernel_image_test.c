// SPDX-License-Identifier: Apache-2.0
#include "symbol/kernel_image.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static struct kernel_image image_of(const char *modules)
{
	struct kernel_image image = { .files = calloc(1, sizeof(struct kernel_file)), .nr = 1 };

	ASSERT(image.files);
	ASSERT_OK(kernel_image_parse_modules(&image, modules, strlen(modules)));
	return image;
}

TEST(code_is_the_modules_that_it_lies_in)
{
	struct kernel_image image =
		image_of("xfs 16384 1 - Live 0xffffffffc0800000 (E)\n"
			 "hidden 16384 0 - Live 0x0000000000000000\n"
			 "nf_tables 4096 2 nft_ct,nft_nat, Live 0xffffffffc0100000\n"
			 "broken\n"
			 "late 4096 0 - Live 0xffffffffc0900000");

	ASSERT_EQ(image.nr, 3);
	ASSERT_STR(kernel_image_find(&image, 0xffffffffc0800000)->name, "[xfs]");
	ASSERT_STR(kernel_image_find(&image, 0xffffffffc0803fff)->name, "[xfs]");
	ASSERT_STR(kernel_image_find(&image, 0xffffffffc0100fff)->name, "[nf_tables]");
	ASSERT(kernel_image_find(&image, 0xffffffffc0804000) == &image.files[0]);
	ASSERT(kernel_image_find(&image, 0xffffffffc00fffff) == &image.files[0]);
	ASSERT(kernel_image_find(&image, 0xffffffff81000000) == &image.files[0]);
	kernel_image_fini(&image);
}

TEST(lines_that_end_anywhere_are_passed_over)
{
	static const char text[] = "xfs 16384 1 - Live 0xffffffffc0800000 (E)\n";

	for (size_t cut = 0; cut < sizeof(text) - 1; cut++) {
		char part[sizeof(text) + 1];
		struct kernel_image image;

		memcpy(part, text, cut);
		part[cut] = '\n';
		part[cut + 1] = '\0';
		image = image_of(part);
		kernel_image_fini(&image);
	}
}

TEST(a_build_id_is_found_among_notes)
{
	static const uint8_t notes[] = "\4\0\0\0\1\0\0\0\1\0\0\0Xen\0z\0\0\0"
				       "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xde\xad\xbe\xef";
	uint8_t id[KERNEL_BUILD_ID_MAX];

	ASSERT_EQ(kernel_notes_build_id(notes, sizeof(notes) - 1, id), 4);
	ASSERT(!memcmp(id, "\xde\xad\xbe\xef", 4));
	for (size_t cut = 0; cut + 1 < sizeof(notes); cut++)
		ASSERT_EQ(kernel_notes_build_id(notes, cut, id), 0);
	ASSERT_EQ(kernel_notes_build_id("\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0", 16, id), 0);
}

TEST(this_kernel_has_a_name)
{
	struct kernel_image image;

	ASSERT_OK(kernel_image_read(&image));
	ASSERT(image.nr >= 1);
	ASSERT_STR(image.files[0].name, "[kernel]");
	kernel_image_fini(&image);
}
