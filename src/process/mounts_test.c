// SPDX-License-Identifier: Apache-2.0
#include "process/mounts.h"
#include "util/root_id.h"
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char fuse[] = "50 27 0:61 / /mnt/far rw - fuse.sshfs a:/ rw\n",
		  tmpfs[] = "51 27 0:62 / /tmp rw shared:3 master:1 - tmpfs tmpfs rw\n";

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

/* By so much the clock moves whenever somebody looks. */
static long step_ns, moved_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	moved_ns += step_ns;
	*ret = (struct timespec){ 1000 + moved_ns / 1000000000, moved_ns % 1000000000 };
	return 0;
}

static void parse(struct mounts *m, const char *a, const char *b, const char *c)
{
	char text[4096];

	snprintf(text, sizeof(text), "27 1 254:0 / / rw - ext4 /dev/vda rw\n%s%s%s", a, b, c);
	ASSERT_OK(mounts_parse(m, text));
	m->was_read = true;
}

/* As mounts_look() of what has been read: it has no descriptor to ask again. */
static bool may_hang(const struct mounts *m, uint32_t dev_minor)
{
	for (size_t i = 0; i < m->devices.nr; i++)
		if (!m->devices.items[i].dev_major && m->devices.items[i].dev_minor == dev_minor)
			return m->devices.items[i].answer == MOUNTS_MAY_HANG;
	ck_abort_msg("no device 0:%u", dev_minor);
}

TEST(servers_are_told_by_their_type)
{
	struct mounts m = { .fd = -1 };

	parse(&m, tmpfs, "", "");
	ASSERT(!m.any_may_hang && !may_hang(&m, 62));
	parse(&m, tmpfs, fuse, "52 27 0:63 / /sys/fs/fuse/connections rw - fusectl f rw\n");
	ASSERT(m.any_may_hang && !may_hang(&m, 62) && may_hang(&m, 61) && !may_hang(&m, 63));
	parse(&m, "50 27 0:61 / /net rw - nfs4 a:/ rw\n", "51 27 0:62 / /a rw - autofs a rw\n",
	      "52 27 0:63 / /home rw - nfsd nfsd rw\n");
	ASSERT(may_hang(&m, 61) && may_hang(&m, 62) && !may_hang(&m, 63));
	ASSERT_EQ(mounts_look(&m, 254, 0), MOUNTS_ANSWERS);
	ASSERT_EQ(mounts_look(&m, 0, 61), MOUNTS_UNKNOWN);
	mounts_close(&m);
}

TEST(an_overlay_is_as_good_as_its_layers)
{
	struct mounts m = { .fd = -1 };

	parse(&m, fuse, "60 27 0:70 / /o rw - overlay o rw,lowerdir=/usr:/opt,upperdir=/up\n",
	      "61 27 0:71 / /p rw - overlay o rw,lowerdir=/usr:/mnt/far/x,upperdir=/up\n");
	ASSERT(!may_hang(&m, 70) && may_hang(&m, 71));
	parse(&m, fuse, "60 27 0:70 / /o rw - overlay o rw,lowerdir=l/A:l/B\n",
	      "61 27 0:71 / /p rw - overlay o rw,lowerdir+=/mnt/farther\n");
	ASSERT(may_hang(&m, 70) && !may_hang(&m, 71));
	parse(&m, tmpfs, "60 27 0:70 / /o rw - overlay o rw,lowerdir=l/A:l/B\n", "");
	ASSERT(!may_hang(&m, 70));
	/* Mounted over it since. */
	parse(&m, fuse, "51 50 0:62 / /mnt/far rw - tmpfs tmpfs rw\n",
	      "61 27 0:71 / /p rw - overlay o rw,lowerdir=/mnt/far\n");
	ASSERT(!may_hang(&m, 71));
	mounts_close(&m);
}

/* Its layers may be anything: links, mounts that were taken away, overlays. */
TEST(an_overlay_of_another_user_namespace_is_not_believed)
{
	struct mounts m = { .fd = -1, .anybodys = true };

	parse(&m, tmpfs, "60 27 0:70 / /o rw - overlay o rw,lowerdir=/usr:/opt\n", "");
	ASSERT(m.any_may_hang);
	ASSERT_EQ(m.devices.items[0].answer, MOUNTS_ANSWERS);
	ASSERT_EQ(m.devices.items[1].answer, MOUNTS_ANYBODYS);
	parse(&m, tmpfs, "", "");
	ASSERT(!m.any_may_hang);
	mounts_close(&m);
}

TEST(a_mount_is_known_by_its_number)
{
	struct mounts m = { .fd = -1 };
	char text[512];
	FILE *f = tmpfile();

	snprintf(text, sizeof(text), "%s%s%s", tmpfs, fuse,
		 "7 27 0:70 / /o rw - overlay o rw,lowerdir=/mnt/far\n");
	ASSERT(fputs(text, f) > 0 && !fflush(f));
	m.fd = dup(fileno(f));
	ASSERT_EQ(mounts_look_at(&m, 51), MOUNTS_ANSWERS);
	ASSERT_EQ(mounts_look_at(&m, 50), MOUNTS_MAY_HANG);
	ASSERT_EQ(mounts_look_at(&m, 7), MOUNTS_MAY_HANG);
	ASSERT_EQ(mounts_look_at(&m, 8), MOUNTS_UNKNOWN);
	ASSERT_EQ(mounts_look_at(&m, 0), MOUNTS_UNKNOWN);
	mounts_close(&m);
	fclose(f);
}

static void write_text(FILE *f, const char *a, const char *b)
{
	rewind(f);
	ASSERT_OK(ftruncate(fileno(f), 0));
	ASSERT(fprintf(f, "27 1 254:0 / / rw - ext4 /dev/vda rw\n%s%s", a, b) > 0 && !fflush(f));
}

/* Who has mounted a lot, and mounts on, is not read all the time. */
TEST(what_takes_long_to_read_is_not_read_at_each_change)
{
	struct mounts m = { .fd = -1 };
	FILE *f = tmpfile();

	write_text(f, tmpfs, "");
	m.fd = dup(fileno(f));
	ASSERT_EQ(mounts_look(&m, 0, 62), MOUNTS_ANSWERS);
	/* A change that is read fast. */
	write_text(f, "", fuse);
	m.was_read = false;
	step_ns = 50000000;
	ASSERT_EQ(mounts_look(&m, 0, 61), MOUNTS_MAY_HANG);
	/* That took 50 ms. Meanwhile numbers may have become anybody's, but those of disks. */
	step_ns = 0;
	write_text(f, "50 27 0:62 / /mnt rw - nfs a:/ rw\n", "");
	m.was_read = false;
	ASSERT_EQ(mounts_look(&m, 0, 61), MOUNTS_UNKNOWN);
	ASSERT_EQ(mounts_look(&m, 254, 0), MOUNTS_ANSWERS);
	ASSERT_EQ(mounts_look_at(&m, 50), MOUNTS_UNKNOWN);
	ASSERT_EQ(mounts_version(&m), 0);
	ASSERT(mounts_any_may_hang(&m));
	moved_ns += 500000000;
	ASSERT_EQ(mounts_look(&m, 0, 62), MOUNTS_MAY_HANG);
	ASSERT(mounts_version(&m) > 0);
	mounts_close(&m);
	fclose(f);
}

/* Where anybody may mount nobody goes through 16 MB, and an overlay's layers tell nothing. */
TEST(what_anybody_mounts_is_read_up_to_a_size)
{
	struct mounts m = { .fd = -1 };
	FILE *f = tmpfile();

	write_text(f, tmpfs, fuse);
	for (int i = 0; i < 40000; i++)
		fprintf(f, "%d 27 0:62 / /tmp/%d rw - tmpfs tmpfs rw\n", 100 + i, i);
	ASSERT_OK(fflush(f));
	m.fd = dup(fileno(f));
	ASSERT_EQ(mounts_look(&m, 0, 62), MOUNTS_ANSWERS);
	m.was_read = false;
	m.anybodys = true;
	ASSERT_EQ(mounts_look(&m, 0, 62), MOUNTS_UNKNOWN);
	ASSERT(mounts_any_may_hang(&m));
	mounts_close(&m);
	fclose(f);
}

/* Thousands of overlays, each with many layers, and one file system that has a server. */
TEST(layers_are_looked_up_within_bounds)
{
	enum { OVERLAYS = 20000, LAYERS = 200, SIZE = 40 << 20 };
	struct mounts m = { .fd = -1 };
	char *text = malloc(SIZE), layers[LAYERS * 5 + 1] = "";
	int len = snprintf(text, SIZE, "%s%s%s", tmpfs, fuse,
			   "52 27 0:63 / /m rw - nfs a:/ rw\n53 52 0:64 / /m rw - tmpfs t rw\n");

	ASSERT_PTR_NONNULL(text);
	for (int i = 0; i < LAYERS; i++)
		memcpy(layers + 5 * i, i ? ":/m/a" : "/m/ab", 6);
	len += snprintf(text + len, (size_t)(SIZE - len),
			"60 27 0:70 / /o rw - overlay o rw,lowerdir=/usr\n");
	for (int i = 0; i < OVERLAYS; i++)
		len += snprintf(text + len, (size_t)(SIZE - len),
				"%d 27 0:%d / /o rw - overlay o rw,lowerdir=%s\n", 100 + i, 100 + i,
				layers);
	ASSERT(len < SIZE - 1);
	/* 80 thousand million comparisons. */
	ASSERT_OK(mounts_parse(&m, text));
	ASSERT(!may_hang(&m, 70) && may_hang(&m, 61));
	ASSERT(may_hang(&m, 100 + OVERLAYS - 1));
	mounts_close(&m);
	free(text);
}

static void in_child(int flags, bool anybodys)
{
	char proc_dir[32], c;
	struct mounts m;
	int told[2];
	pid_t pid;

	ASSERT_OK(pipe(told));
	pid = fork();
	if (!pid) {
		if (write(told[1], unshare(flags) ? "n" : "y", 1) == 1)
			pause();
		_exit(1);
	}
	close(told[1]);
	ASSERT_EQ(read(told[0], &c, 1), 1);
	snprintf(proc_dir, sizeof(proc_dir), "/proc/%d", pid);
	/* Who may not make one has nothing to tell. */
	if (c == 'y') {
		ASSERT_OK(mounts_open(&m, proc_dir));
		ASSERT_EQ(m.anybodys, anybodys);
		mounts_close(&m);
	}
	ASSERT_OK(kill(pid, SIGKILL));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	close(told[0]);
}

TEST(whose_a_mount_namespace_is_is_told)
{
	in_child(0, false);
	in_child(CLONE_NEWNS, false);
	in_child(CLONE_NEWNS | CLONE_NEWUSER, true);
}

TEST(what_is_no_line_is_nothing)
{
	struct mounts m = { .fd = -1 };

	parse(&m, "50 27 0:61 / /mnt rw\n", "50 27 x / /mnt rw - fuse f rw\n", "\n - fuse f rw\n");
	ASSERT_EQ(m.devices.nr, 1);
	ASSERT(!m.any_may_hang);
	mounts_close(&m);
}

TEST(our_own_root_is_known)
{
	struct mounts m;
	struct stat st;

	ASSERT_OK(mounts_open(&m, "/proc/self"));
	ASSERT(!stat("/proc", &st));
	ASSERT_EQ(mounts_look(&m, major(st.st_dev), minor(st.st_dev)), MOUNTS_ANSWERS);
	ASSERT_EQ(mounts_look(&m, 4095, 77), MOUNTS_UNKNOWN);
	mounts_close(&m);
}

/* A mount is of one namespace, which is not asked for then. */
TEST(the_mount_of_a_root_tells_its_namespace)
{
	struct root_id own, likely, found;

	ASSERT_OK(root_id_read("/proc/self", -1, NULL, &own));
	if (!own.mount)
		return;
	likely = own;
	likely.mount_ns = 77;
	ASSERT_OK(root_id_read("/proc/self", -1, &likely, &found));
	ASSERT_EQ(found.mount_ns, 77);
	likely.mount++;
	ASSERT_OK(root_id_read("/proc/self", -1, &likely, &found));
	ASSERT(root_id_equal(&found, &own));
}
