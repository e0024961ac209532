// SPDX-License-Identifier: Apache-2.0
#include "kernel/tracepoints.h"

#include "util/cleanup.h"
#include "util/read_file.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ID_MAX = 64 };

static int open_folder(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A mount that is in no namespace (since Linux 5.2). By number: glibc 2.36 has names for them. */
static int mount_tracefs(void)
{
	_cleanup_close_ int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int tracepoints_open(void)
{
	static const char *const places[] = { "/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events" };
	_cleanup_close_ int root = -1;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open_folder(AT_FDCWD, places[i]);

		if (fd >= 0)
			return fd;
	}
	root = mount_tracefs();
	return root < 0 ? root : open_folder(root, "events");
}

/* One name, not a path. */
static bool is_name(const char *text)
{
	return *text && *text != '.' && !strchr(text, '/') && strlen(text) < NAME_MAX;
}

int tracepoints_id(int events, const char *group, const char *name, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[2 * NAME_MAX + 8], *end;
	uint64_t id;
	size_t size;
	int r;

	if (!is_name(group) || !is_name(name))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s/id", group, name);
	r = read_file_at(events, path, ID_MAX, &text, &size);
	if (r)
		return r;
	id = strtoull(text, &end, 10);
	if (end == text)
		return -EINVAL;
	*ret = id;
	return 0;
}

int tracepoints_each(int events, const char *group, void (*each)(void *ctx, const char *name),
		     void *ctx)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (group && !is_name(group))
		return -ENOENT;
	fd = open_folder(events, group ? group : ".");
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(dir))) {
		struct stat st;

		/* Beside the folders are files that say things of all of them. */
		if (*entry->d_name == '.' || fstatat(fd, entry->d_name, &st, 0) ||
		    !S_ISDIR(st.st_mode))
			continue;
		each(ctx, entry->d_name);
	}
	closedir(dir);
	return 0;
}

bool tracepoint_is_raw(const char *name)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	_cleanup_close_ int program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL",
						    insns, sizeof(insns) / sizeof(insns[0]), NULL);
	_cleanup_close_ int link = program < 0 ? -1 : bpf_raw_tracepoint_open(name, program);

	return link >= 0;
}
