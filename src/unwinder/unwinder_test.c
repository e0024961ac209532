// SPDX-License-Identifier: Apache-2.0
/* Setting up and tearing down, of which a recording that fails half-way does only parts. */
#include "unwinder/unwinder.h"
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(finishing_what_never_began_leaves_descriptors_alone)
{
	struct unwinder u = { 0 };
	int fd;

	if (!is_open(0)) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ASSERT_EQ(fd, 0);
	}
	unwinder_fini(&u);
	ASSERT(is_open(0));
}

TEST(it_is_set_up_and_torn_down_again_and_again)
{
	const struct unwinder_options options = { .arena_bytes = 16 << 20 };
	struct unwinder u;
	struct process *proc;

	for (int i = 0; i < 3; i++) {
		ASSERT_OK(unwinder_init(&u, &options));
		ASSERT_OK(process_get(&u.processes, getpid(), &proc));
		ASSERT_OK(publisher_show(&u.publisher, proc, 0));
		ASSERT(proc->user != NULL);
		unwinder_fini(&u);
		unwinder_fini(&u);
	}
}
