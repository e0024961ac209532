// SPDX-License-Identifier: Apache-2.0
/*
 * file_server MOUNT_POINT SOURCE [DEVICE]: a FUSE file system that shows the regular files of the
 * folder SOURCE (and of its folders), until it is killed. It speaks the kernel's protocol itself:
 * uapi linux/fuse.h. DEVICE is /dev/fuse, or another name of it.
 *
 * On standard input, a letter and a newline tell it what to do from then on: "h" hang (requests are
 * taken and not answered), "a" answer (those that were kept, too); it says "ok" when it does. While
 * it hangs it says "asked" for the first request that it keeps. Attributes and entries are
 * forgotten by the kernel at once: every fstat() asks. What is opened with O_SYNC has no cache
 * (FOPEN_DIRECT_IO): who waits for that may have whoever reads /proc wait, too, so it ends soon.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES_MAX = 256, REQUEST_MAX = 1 << 17, KEPT_MAX = 256, UNCACHED_S = 20, WRITE_MAX = 4096 };

static char *nodes[NODES_MAX + 1]; /* paths by number, FUSE_ROOT_ID is 1 */
static size_t nr_nodes = 1;
static int device;
static bool hangs, told;
static struct {
	void *request;
	size_t size;
} kept[KEPT_MAX];
static size_t nr_kept;

static void reply(const struct fuse_in_header *in, int error, const void *body, size_t size)
{
	struct fuse_out_header out = { .unique = in->unique, .error = -error };
	char *message = malloc(sizeof(out) + size);

	if (error)
		size = 0;
	out.len = (uint32_t)(sizeof(out) + size);
	memcpy(message, &out, sizeof(out));
	memcpy(message + sizeof(out), body, size);
	/* Who asked may have been killed meanwhile. */
	if (write(device, message, out.len) < 0 && errno != ENOENT)
		err(1, "reply to %u", in->opcode);
	free(message);
}

static int attributes(uint64_t node, struct fuse_attr *ret)
{
	struct stat st;

	if (node > nr_nodes || !nodes[node] || stat(nodes[node], &st))
		return ENOENT;
	*ret = (struct fuse_attr){
		.ino = node,
		.size = (uint64_t)st.st_size,
		.blocks = (uint64_t)st.st_blocks,
		.mtime = (uint64_t)st.st_mtim.tv_sec,
		.mtimensec = (uint32_t)st.st_mtim.tv_nsec,
		.ctime = (uint64_t)st.st_ctim.tv_sec,
		.mode = st.st_mode,
		.nlink = 1,
		.uid = st.st_uid,
		.gid = st.st_gid,
	};
	return 0;
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { 0 };
	char path[PATH_MAX];
	uint64_t i;
	int error;

	snprintf(path, sizeof(path), "%s/%s", nodes[in->nodeid], name);
	for (i = 1; i <= nr_nodes && strcmp(nodes[i], path); i++)
		;
	if (i > nr_nodes && access(path, F_OK)) {
		reply(in, ENOENT, NULL, 0);
		return;
	}
	if (i > nr_nodes) {
		if (nr_nodes == NODES_MAX)
			errx(1, "too many files");
		nodes[++nr_nodes] = strdup(path);
	}
	error = attributes(i, &out.attr);
	out.nodeid = i;
	reply(in, error, &out, sizeof(out));
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *what)
{
	char *buffer = malloc(what->size);
	int fd = open(nodes[in->nodeid], O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, buffer, what->size, (off_t)what->offset);

	reply(in, n < 0 ? EIO : 0, buffer, n < 0 ? 0 : (size_t)n);
	free(buffer);
	if (fd >= 0)
		close(fd);
}

static void answer(const void *request)
{
	const struct fuse_in_header *in = request;
	const void *body = in + 1;
	const struct fuse_init_in *init_in = body;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = 1 << 17,
		.max_write = WRITE_MAX,
		.max_background = 16,
		.congestion_threshold = 12,
	};
	struct fuse_attr_out attr = { 0 };
	struct fuse_open_out opened = { 0 };
	struct fuse_statfs_out statfs = { .st = { .bsize = 4096, .namelen = 255 } };
	int error;

	switch (in->opcode) {
	case FUSE_INIT:
		if (init_in->minor < init.minor)
			init.minor = init_in->minor;
		reply(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(in, body);
		break;
	case FUSE_GETATTR:
		error = attributes(in->nodeid, &attr.attr);
		reply(in, error, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		opened.open_flags = FOPEN_KEEP_CACHE;
		if (((const struct fuse_open_in *)body)->flags & O_SYNC) {
			opened.open_flags = FOPEN_DIRECT_IO;
			alarm(UNCACHED_S);
		}
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_file(in, body);
		break;
	case FUSE_STATFS:
		reply(in, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_READDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in, ENOSYS, NULL, 0);
	}
}

static void on_request(void)
{
	void *request = malloc(REQUEST_MAX);
	ssize_t n = read(device, request, REQUEST_MAX);
	const struct fuse_in_header *in = request;

	if (n < 0 && errno == ENODEV)
		exit(0); /* unmounted */
	if (n < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
		err(1, "read");
	if (n < 0 || !hangs || in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
	    in->opcode == FUSE_INTERRUPT || in->opcode == FUSE_INIT) {
		if (n >= 0)
			answer(request);
		free(request);
		return;
	}
	if (!told)
		puts("asked");
	told = true;
	if (nr_kept == KEPT_MAX)
		errx(1, "too many wait");
	kept[nr_kept++].request = request;
}

static void on_order(char order)
{
	if (order != 'h' && order != 'a')
		return;
	hangs = order == 'h';
	told = false;
	for (size_t i = 0; i < nr_kept && !hangs; i++) {
		answer(kept[i].request);
		free(kept[i].request);
	}
	nr_kept = hangs ? nr_kept : 0;
	puts("ok");
}

int main(int argc, char **argv)
{
	struct pollfd fds[2];
	char options[128], orders[16];

	if (argc != 3 && argc != 4)
		errx(1, "usage: file_server MOUNT_POINT SOURCE [DEVICE]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	device = open(argc > 3 ? argv[3] : "/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		err(77, "the device");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions",
		 device);
	nodes[FUSE_ROOT_ID] = argv[2];
	if (mount("sonde-test", argv[1], "fuse.sonde", MS_NOSUID | MS_NODEV, options))
		err(77, "mount");
	puts("ok");
	fds[0] = (struct pollfd){ .fd = device, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			err(1, "poll");
		if (fds[1].revents) {
			ssize_t n = read(STDIN_FILENO, orders, sizeof(orders));

			/* Who started it has gone. */
			if (n <= 0)
				break;
			for (ssize_t i = 0; i < n; i++)
				on_order(orders[i]);
		}
		if (fds[0].revents)
			on_request();
	}
	umount2(argv[1], MNT_DETACH);
	return 0;
}
