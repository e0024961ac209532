// SPDX-License-Identifier: Apache-2.0
#include "process/server_watch.h"

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/read_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KERNEL_GROUP = 1, /* of NETLINK_KOBJECT_UEVENT; 2 is udev's */
	EVENT_MAX = 4096,
	EVENTS_MAX = 1024, /* at one look */
};

/* No longer than we may have to wait for a CPU between a look and the read. From a new file system
 * to a page of it in somebody's memory its server has to answer who opens a file. */
#define FRESH_NS UINT64_C(20000)

/* "8:0" of a block device, "0:39" of FUSE and NFS, "btrfs-1". */
bool bdi_is_local(const char *name)
{
	static const char *const local[] = { "btrfs-", "bcachefs-", "overlay-",
					     "mtd-",   "ubifs_",    "zfs-" };
	char *end;
	unsigned long major = strtoul(name, &end, 10);

	if (isdigit((unsigned char)*name) && *end == ':')
		return major && end[1 + strspn(end + 1, "0123456789")] == '\0';
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (!strncmp(name, local[i], strlen(local[i])))
			return true;
	return false;
}

void server_watch_init(struct server_watch *w)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };

	*w = (struct server_watch){ .fd = socket(AF_NETLINK,
						 SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
						 NETLINK_KOBJECT_UEVENT) };
	if (w->fd >= 0 && bind(w->fd, (struct sockaddr *)&address, sizeof(address))) {
		close(w->fd);
		w->fd = -1;
	}
}

void server_watch_fini(struct server_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* vm.unprivileged_userfaultfd: since 5.11 it is 0 by default. Without the file there is none. */
static bool users_fill_pages(void)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = read_file_at(AT_FDCWD, "/proc/sys/vm/unprivileged_userfaultfd", 16, &text, &size);

	return r ? r != -ENOENT : *text != '0';
}

static bool look(void)
{
	_cleanup_(closedir_p) DIR *dir = opendir("/sys/class/bdi");
	const struct dirent *entry;

	if (!dir || users_fill_pages())
		return true;
	while ((entry = readdir(dir)))
		if (*entry->d_name != '.' && !bdi_is_local(entry->d_name))
			return true;
	return false;
}

/* "add@/devices/virtual/bdi/0:39", then more strings. */
static bool is_of_bdi(const char *event, size_t size)
{
	return memmem(event, strnlen(event, size), "/bdi/", 5) != NULL;
}

/* What came since the last look; false: there is no telling. */
static bool has_changed(struct server_watch *w)
{
	char event[EVENT_MAX];
	bool changed = !w->looked;

	for (size_t i = 0; i < EVENTS_MAX; i++) {
		ssize_t n = recv(w->fd, event, sizeof(event), 0);

		if (n < 0 && errno == EAGAIN)
			return changed;
		/* ENOBUFS: there were more than it holds. */
		if (n < 0 || is_of_bdi(event, (size_t)n))
			changed = true;
	}
	return true;
}

bool server_watch_may_hang(struct server_watch *w)
{
	uint64_t now;

	if (w->fd < 0)
		return true;
	/* Names are read by hundreds of reads in a row. */
	now = now_ns();
	if (w->looked && now - w->heard_ns < FRESH_NS)
		return w->may_hang;
	w->heard_ns = now;
	if (has_changed(w)) {
		w->may_hang = look();
		w->looked = true;
	}
	return w->may_hang;
}
