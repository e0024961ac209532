/* SPDX-License-Identifier: Apache-2.0 */
/* This thread's capabilities (capabilities(7)). The C library has no such functions. */
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0 or a negative errno. */
static inline int capabilities_get(struct __user_cap_data_struct ret[static 2])
{
	struct __user_cap_header_struct self = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &self, ret) ? -errno : 0;
}

/* Not more than are permitted. 0 or a negative errno. */
static inline int capabilities_set(const struct __user_cap_data_struct data[static 2])
{
	struct __user_cap_header_struct self = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &self, data) ? -errno : 0;
}

/* Those in effect, a bit each; 0 also if the kernel does not tell. */
static inline uint64_t capabilities_effective(void)
{
	struct __user_cap_data_struct data[2];

	return capabilities_get(data) ? 0 : (uint64_t)data[1].effective << 32 | data[0].effective;
}

/*
 * Gives up all but those of `keep`, a bit each, and that anything executed would have more. Where
 * it is not ours to take them away, whoever started us has. 0 or a negative errno.
 */
static inline int capabilities_keep(uint64_t keep)
{
	struct __user_cap_data_struct data[2];
	int r = capabilities_get(data);

	if (r)
		return r;
	/* Whom root executes would have them back. */
	for (int i = 0; i < 64 && data[0].effective & 1U << CAP_SETPCAP; i++)
		if (!(keep >> i & 1))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		data[i].effective &= (uint32_t)(keep >> 32 * i);
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].inheritable = 0;
	}
	return capabilities_set(data);
}
