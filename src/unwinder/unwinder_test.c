// SPDX-License-Identifier: Apache-2.0
/* Setting up and tearing down, of which a recording that fails half-way does only parts. */
#include "unwinder/unwinder.h"
#include "test.h"

#include <elf.h>
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

TEST(live_processes_are_of_this_machine_and_a_cores_of_its)
{
	struct unwinder_options options = { .arena_bytes = 16 << 20 };
	struct unwinder u;
	uint16_t here;

	ASSERT_OK(unwinder_init(&u, &options));
	here = u.publisher.runtimes.machine;
	ASSERT(here == EM_X86_64 || here == EM_AARCH64);
	unwinder_fini(&u);
	options.machine = here == EM_X86_64 ? EM_AARCH64 : EM_X86_64;
	ASSERT_OK(unwinder_init(&u, &options));
	ASSERT_EQ(u.publisher.runtimes.machine, options.machine);
	unwinder_fini(&u);
}
