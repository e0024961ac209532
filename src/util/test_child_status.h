/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a child that has ended, and was not waited for. */
#pragma once

#include "test.h"
#include "util/cleanup.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* A number of /proc/PID/status, hexadecimal. */
static inline uint64_t child_status_number(pid_t pid, const char *key)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];
	size_t len = strlen(key);

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	ASSERT_PTR_NONNULL(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == ':')
			return strtoull(line + len + 1, NULL, 16);
	FAIL("%s has no %s", path, key);
	return 0;
}

/* It has ended, and had none but these capabilities, nor could it get others. */
static inline void assert_child_had_only(pid_t pid, uint64_t capabilities)
{
	siginfo_t info = { 0 };

	ASSERT_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	ASSERT_EQ(child_status_number(pid, "CapPrm") & ~capabilities, 0);
	ASSERT_EQ(child_status_number(pid, "CapEff") & ~capabilities, 0);
	ASSERT_EQ(child_status_number(pid, "CapInh"), 0);
	ASSERT_EQ(child_status_number(pid, "CapAmb"), 0);
	ASSERT_EQ(child_status_number(pid, "NoNewPrivs"), 1);
	/* What root executes has all that these are not without. */
	if (child_status_number(getpid(), "CapEff") >> CAP_SETPCAP & 1)
		ASSERT_EQ(child_status_number(pid, "CapBnd") & ~capabilities, 0);
}
