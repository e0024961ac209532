// SPDX-License-Identifier: Apache-2.0
/* What is asked, and for how long, when a file is looked for that is not where it was. */
#include "process/process_internal.h"

#include "still_clock.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int __real_fstatfs64(int fd, struct statfs *ret);
int __wrap_fstatfs64(int fd, struct statfs *ret);
typedef int (*each_entry)(void *ctx, const struct maps_entry *entry);
int __real_proc_maps_read(int32_t pid, each_entry each, void *ctx);
int __wrap_proc_maps_read(int32_t pid, each_entry each, void *ctx);

static uint64_t read_takes_ms;
static unsigned int nr_asked, nr_maps_read;

int __wrap_fstatfs64(int fd, struct statfs *ret)
{
	nr_asked++;
	return __real_fstatfs64(fd, ret);
}

int __wrap_proc_maps_read(int32_t pid, each_entry each, void *ctx)
{
	nr_maps_read++;
	still_clock_ns += read_takes_ms * 1000000;
	return __real_proc_maps_read(pid, each, ctx);
}

/* --- whose it is ------------------------------------------------------------------------------ */

/* A namespace that has one mount. */
static void make_mounts(struct mounts *m, uint64_t id, const char *type, bool anybodys)
{
	FILE *f = tmpfile();

	ASSERT_PTR_NONNULL(f);
	fprintf(f, "%llu 1 0:4095 / / rw - %s x rw,lowerdir=/x\n", (unsigned long long)id, type);
	ASSERT_OK(fflush(f));
	*m = (struct mounts){ .fd = dup(fileno(f)), .anybodys = anybodys };
	fclose(f);
}

/* Looks for a file where this program is. How often that one's file system was asked what it is. */
static unsigned int asked(struct servers *servers)
{
	const struct file_key other = { 4000, 1, 1 };
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	ASSERT(n > 0 && root >= 0);
	path[n] = '\0';
	nr_asked = 0;
	ASSERT_ERR(open_below(servers, root, path, &other, &fd), ESTALE);
	close(root);
	return nr_asked;
}

/* A file of an overlay has a device of its own: that nothing is known of it says nothing. */
TEST(what_may_not_answer_is_not_asked_what_it_is)
{
	struct mounts own, others;
	struct servers servers = { .own = &own, .others = &others };
	struct statx st;

	ASSERT_OK(statx(AT_FDCWD, "/proc/self/exe", 0, STATX_MNT_ID, &st));
	if (!(st.stx_mask & STATX_MNT_ID))
		return;
	make_mounts(&own, st.stx_mnt_id + 1, "tmpfs", false);
	make_mounts(&others, st.stx_mnt_id, "overlay", true);
	ASSERT_EQ(asked(&servers), 0);
	mounts_close(&others);
	make_mounts(&others, st.stx_mnt_id, "fuse.x", false);
	ASSERT_EQ(asked(&servers), 0);
	mounts_close(&others);
	make_mounts(&others, st.stx_mnt_id, "overlay", false);
	ASSERT_EQ(asked(&servers), 1);
	/* Of a namespace that is none of those two. */
	servers.others = NULL;
	servers.unknown = true;
	ASSERT_EQ(asked(&servers), 0);
	mounts_close(&own);
	make_mounts(&own, st.stx_mnt_id, "overlay", false);
	ASSERT_EQ(asked(&servers), 1);
	mounts_close(&own);
	mounts_close(&others);
	/* Whoever waits patiently asks anybody. */
	ASSERT_EQ(asked(NULL), 1);
}

/* Perf maps, say: an overlay at /tmp in a namespace of one's own. */
TEST(what_was_found_below_a_root_is_asked_if_it_answers)
{
	int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct process_table t;
	struct statx st;

	ASSERT_OK(statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st));
	if (!(st.stx_mask & STATX_MNT_ID))
		return;
	ASSERT_OK(process_table_init(&t));
	ASSERT(process_may_ask(&t, 0, fd));
	ASSERT(process_may_ask(&t, getpid(), fd));
	mounts_close(&t.private->own_mounts);
	make_mounts(&t.private->own_mounts, st.stx_mnt_id, "fuse.x", false);
	ASSERT(!process_may_ask(&t, 0, fd));
	ASSERT(!process_may_ask(&t, getpid(), fd));
	/* A namespace of which nothing is known is looked at. */
	mounts_close(&t.private->own_mounts);
	make_mounts(&t.private->own_mounts, st.stx_mnt_id + 1, "tmpfs", false);
	t.private->own_root.mount_ns++;
	ASSERT(process_may_ask(&t, getpid(), fd));
	process_table_fini(&t);
	close(fd);
}

/* --- where else it is mapped ------------------------------------------------------------------ */

/* One more file that is gone, and was mapped where nothing is any more. */
static void look_for_gone(struct process_table *t, const struct process *proc)
{
	static uint64_t inode = 1000;
	const struct file_key key = { 4000, 1, ++inode };
	struct mapping m = { .start = 0x1000, .end = 0x2000 };
	char path[64];

	snprintf(path, sizeof(path), "/is-not-there-%llu", (unsigned long long)inode);
	ASSERT_OK(files_lookup(t, &key, path, &m.file));
	ASSERT(process_open_file(t, proc, &m, t->files.items[m.file]) < 0);
}

TEST(what_a_process_maps_is_searched_within_its_users_share_of_the_time)
{
	struct process_table t;
	struct process *proc;

	ASSERT_OK(process_table_init(&t));
	ASSERT_OK(process_get(&t, getpid(), &proc));
	nr_maps_read = 0;
	for (int i = 0; i < 10; i++)
		look_for_gone(&t, proc);
	ASSERT_EQ(nr_maps_read, 10);
	/* 65,000 mappings. */
	nr_maps_read = 0;
	read_takes_ms = 20;
	for (int i = 0; i < 1000; i++)
		look_for_gone(&t, proc);
	ASSERT(nr_maps_read > 0 && nr_maps_read < 10);
	nr_maps_read = 0;
	still_clock_ns += 3000000000;
	look_for_gone(&t, proc);
	ASSERT_EQ(nr_maps_read, 1);
	process_table_fini(&t);
}
