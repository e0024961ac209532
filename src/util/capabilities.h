/* SPDX-License-Identifier: Apache-2.0 */
/* This thread's capabilities (capabilities(7)). The C library has no such functions. */
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
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
