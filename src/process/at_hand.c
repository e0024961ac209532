// SPDX-License-Identifier: Apache-2.0
#include "process/at_hand.h"

#include "util/capabilities.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MAY_KILL     (UINT32_C(1) << CAP_KILL)
#define PAGE_PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */

enum { PAGES_MAX = 32 };

static int take_capability(struct __user_cap_data_struct had[static 2])
{
	struct __user_cap_data_struct less[2];
	int r = capabilities_get(had);

	if (r || !(had[0].effective & MAY_KILL))
		return r;
	less[0] = had[0];
	less[1] = had[1];
	less[0].effective &= ~MAY_KILL;
	return capabilities_set(less);
}

static void give_capability_back(const struct __user_cap_data_struct had[static 2])
{
	if (had[0].effective & MAY_KILL)
		capabilities_set(had);
}

/*
 * Its real or its saved user is ours: the kernel would take a signal of ours to it without the
 * capability of sending anybody some (kernel/signal.c, kill_ok_by_cred()). It asks for no more, as
 * it does before one process looks at another that has other capabilities; /proc/PID/status tells
 * users, too, for 15 us.
 */
static bool is_ours(int32_t pid)
{
	struct __user_cap_data_struct had[2];
	bool ours;

	if (take_capability(had))
		return false;
	ours = !kill(pid, 0);
	give_capability_back(had);
	return ours;
}

static bool are_present(int32_t pid, uint64_t first, size_t nr)
{
	_cleanup_close_ int fd = -1;
	uint64_t pages[PAGES_MAX];
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read_all_at(fd, first * sizeof(*pages), pages, nr * sizeof(*pages)))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!(pages[i] & PAGE_PRESENT))
			return false;
	return true;
}

bool memory_is_at_hand(int32_t pid, uint64_t addr, size_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;
	uint64_t first = addr / page;

	if (pid <= 0 || !size || __builtin_add_overflow(addr, size - 1, &end) ||
	    end / page - first >= PAGES_MAX)
		return false;
	return is_ours(pid) && are_present(pid, first, end / page - first + 1);
}
