// SPDX-License-Identifier: Apache-2.0
#include "process/proc_identity.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INNER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void assert_container(const char *text, const char *want)
{
	char id[CONTAINER_ID_LEN + 1];

	container_id_parse(text, strlen(text), id);
	ASSERT_STR(id, want);
}

TEST(a_container_is_named_by_its_cgroup)
{
	assert_container("0::/\n", "");
	assert_container("0::/user.slice/user-0.slice/session-1.scope\n", "");
	assert_container("12:pids:/docker/" ID "\n11:cpu:/docker/" ID "\n", ID);
	assert_container("0::/system.slice/docker-" ID ".scope\n", ID);
	assert_container("0::/kubepods.slice/kubepods-pod1a2b.slice/cri-containerd-" ID ".scope",
			 ID);
	assert_container("0::/machine.slice/libpod-" ID ".scope/container\n", ID);
	assert_container("0::/docker/" ID "/kubepods/" INNER "\n", INNER);
	assert_container("0::/docker/" ID "0\n", "");
	assert_container("5:cpu:/system.slice/containerd.service/"
			 "kubepods-burstable-pod1a2b.slice:cri-containerd:" ID "\n",
			 ID);
	assert_container("0::/kubepods/besteffort/pod1a2b/" ID "\n", ID);
	assert_container("0::/kubepods.slice/kubepods-pod1a2b.slice/crio-" ID ".scope/nested\n",
			 ID);
	assert_container("4:memory:/ecs/0123456789abcdef/" ID "\n", ID);
	assert_container("0::/k8s.io/" ID "\n", ID);
	assert_container("0::/libpod_parent/libpod-" ID "\n", ID);
	assert_container("0::/machine.slice/libpod_pod_" INNER ".slice/libpod-" ID ".scope\n", ID);
	assert_container("0::/user.slice/user-1000.slice/user@1000.service/user.slice/nerdctl-" ID
			 ".scope\n",
			 ID);
	assert_container("", "");
}

/* Anybody may name a service or a group of his own. */
TEST(other_groups_with_digits_are_no_containers)
{
	assert_container("0::/user.slice/user-1000.slice/user@1000.service/run-" ID ".service\n",
			 "");
	assert_container("0::/system.slice/build-" ID ".scope\n", "");
	assert_container("0::/system.slice/docker-" ID ".service\n", "");
	assert_container("0::/system.slice/mydocker-" ID ".scope\n", "");
	assert_container("0::/machine.slice/libpod-conmon-" ID ".scope\n", "");
	assert_container("0::/machine.slice/libpod_pod_" ID ".slice\n", "");
	assert_container("0::/x" ID "\n", "");
	assert_container("0::/a:b:" ID "\n", "");
	assert_container("0::/-" ID "\n0::/:" ID "\n0::/::" ID "\n", "");
	assert_container("1:name=" ID ":/\n", "");
	for (size_t cut = 0; cut < CONTAINER_ID_LEN; cut++) {
		char id[CONTAINER_ID_LEN + 1];

		container_id_parse("0::/docker/" ID, strlen("0::/docker/") + cut, id);
		ASSERT_STR(id, "");
	}
}

#define UID "1a2b3c4d-0000-1111-2222-0123456789ab"

static void assert_pod(const char *text, const char *want)
{
	char uid[POD_UID_LEN + 1];

	pod_uid_parse(text, strlen(text), uid);
	ASSERT_STR(uid, want);
	for (size_t cut = 0; cut < strlen(text); cut++)
		pod_uid_parse(text, cut, uid);
}

TEST(a_pod_is_named_by_its_cgroup)
{
	assert_pod("0::/kubepods.slice/kubepods-burstable.slice/"
		   "kubepods-burstable-pod1a2b3c4d_0000_1111_2222_0123456789ab.slice/"
		   "cri-containerd-" ID ".scope\n",
		   UID);
	assert_pod("0::/kubepods/besteffort/pod" UID "/" ID "\n", UID);
	assert_pod("0::/docker/" ID "/kubelet/kubepods/pod" UID, UID);
	/* A static pod's. */
	assert_pod("4:cpu:/kubepods/pod0123456789abcdef0123456789abcdef/" ID "\n",
		   "0123456789abcdef0123456789abcdef");
	assert_pod("0::/kubepods/besteffort/pod" UID "0/" ID "\n", "");
	assert_pod("0::/kubepods/besteffort/xpod" UID "/" ID "\n", "");
	assert_pod("0::/user.slice/pod" UID "\n", "");
	assert_pod("0::/kubepods/pod1a2b3c4d/\n", "");
	assert_pod("0::/machine.slice/libpod-" ID ".scope\n", "");
	assert_pod("", "");
}

TEST(the_environment_names_service_and_attributes)
{
	static const char text[] = "A=b\0OTEL_SERVICE_NAMES=x\0OTEL_SERVICE_NAME=shop\0"
				   "OTEL_SERVICE_NAME=second\0OTEL_RESOURCE_ATTRIBUTES=a=1,b=2\0Z";
	static struct proc_identity id;
	static char large[ATTRIBUTES_SIZE + 64] = "OTEL_RESOURCE_ATTRIBUTES=";

	proc_environ_parse(text, sizeof(text), NULL, &id);
	ASSERT_STR(id.service, "shop");
	ASSERT_STR(id.attributes, "a=1,b=2");
	memset(&id, 0, sizeof(id));
	for (size_t cut = 0; cut < sizeof(text); cut++)
		proc_environ_parse(text, cut, NULL, &id);
	memset(&id, 0, sizeof(id));
	memset(large + strlen(large), 'x', sizeof(large) - 1 - strlen(large));
	proc_environ_parse(large, sizeof(large), NULL, &id);
	ASSERT_STR(id.attributes, "");
}

TEST(variables_are_taken_that_were_asked_for)
{
	static const char text[] = "HOME=/root\0ZONE=a,b\0ZONE2=x\0EMPTY=\0=odd\0ODD\0TWO=l\nines";
	struct proc_identity id = { 0 };

	proc_environ_parse(text, sizeof(text), "ZONE, HOME,TWO,EMPTY", &id);
	ASSERT_STR(id.variables, "process.environment_variable.HOME=/root,"
				 "process.environment_variable.ZONE=a%2Cb,"
				 "process.environment_variable.EMPTY=");
}

static void assert_cgroup(const char *text, const char *want)
{
	char line[CGROUP_SIZE];

	cgroup_line_parse(text, strlen(text), line);
	ASSERT_STR(line, want);
}

TEST(one_line_tells_the_cgroup)
{
	char text[2 * CGROUP_SIZE];

	assert_cgroup("0::/user.slice/x\n", "0::/user.slice/x");
	assert_cgroup("12:cpu:/a\n1:name=systemd:/b\n0::/\n", "0::/");
	assert_cgroup("12:cpu:/a\n1:name=systemd:/b\n", "1:name=systemd:/b");
	assert_cgroup("10:cpu:/a\n", "");
	assert_cgroup("", "");
	assert_cgroup("0\n:\n\n", "");
	snprintf(text, sizeof(text), "0::/%0*d\n", CGROUP_SIZE - 5, 7);
	text[strlen(text) - 1] = '\0';
	assert_cgroup(text, text);
	snprintf(text, sizeof(text), "0::/%0*d\n", CGROUP_SIZE - 4, 7);
	assert_cgroup(text, "");
}

TEST(status_says_parent_user_and_inner_pid)
{
	static const char text[] = "Name:\tkworker/0:1\nUmask:\t0022\nState:\tS (sleeping)\n"
				   "PPid:\t77\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4711\t12\t3\n";
	struct proc_identity id = { .uid = UINT32_MAX };

	proc_status_parse(text, sizeof(text) - 1, &id);
	ASSERT_STR(id.comm, "kworker/0:1");
	ASSERT_EQ(id.parent_pid, 77);
	ASSERT_EQ(id.uid, 1001);
	ASSERT(id.real_uid == 1000 && id.saved_uid == 1002);
	ASSERT_EQ(id.vpid, 3);
	for (size_t cut = 0; cut < sizeof(text); cut++)
		proc_status_parse(text, cut, &id);
}

static void assert_command(const char *argv0, bool is_there)
{
	struct proc_identity id;
	int go[2], started[2];
	char c = 0;
	pid_t pid;

	ASSERT_OK(pipe2(go, O_CLOEXEC));
	ASSERT_OK(pipe2(started, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		dup2(go[0], 0);
		execl("/bin/cat", argv0, (char *)NULL);
		_exit(1);
	}
	close(started[1]);
	ASSERT_EQ(read(started[0], &c, 1), 0); /* it has executed */
	ASSERT_OK(proc_identity_read(pid, NULL, &id));
	ASSERT_STR(id.command, is_there ? argv0 : "");
	ASSERT(id.in_our_root);
	close(go[1]);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	close(go[0]);
	close(started[0]);
}

TEST(a_command_is_what_it_was_called_as)
{
	static char largest[COMMAND_SIZE], longer[COMMAND_SIZE + 1];

	assert_command("a b", true);
	assert_command("", true);
	memset(largest, 'x', sizeof(largest) - 1);
	assert_command(largest, true);
	memset(longer, 'x', sizeof(longer) - 1);
	assert_command(longer, false);
}

TEST(users_of_another_root_are_others)
{
	struct proc_identity id;
	int started[2];
	char c = 0;
	pid_t pid;

	if (geteuid())
		return;
	ASSERT_OK(pipe(started));
	pid = fork();
	if (!pid) {
		if (chroot("/proc") || write(started[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(started[1]);
	ASSERT_EQ(read(started[0], &c, 1), 1);
	ASSERT_OK(proc_identity_read(pid, NULL, &id));
	ASSERT(!id.in_our_root);
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	close(started[0]);
}

TEST(whose_process_it_is_does_not_hang_on_what_it_runs_as)
{
	int go[2], done[2];
	char c = 0;
	pid_t pid;

	ASSERT_EQ(proc_user(getpid(), 1), getuid());
	ASSERT_EQ(proc_user(0x7ffffff0, 1), 1);
	if (geteuid())
		return;
	ASSERT_OK(pipe(go));
	ASSERT_OK(pipe(done));
	pid = fork();
	if (!pid) {
		close(done[1]);
		/* A user's process that has root's rights, and may not be dumped. */
		if (setresuid(65534, 0, 0) || prctl(PR_SET_DUMPABLE, 0) || write(go[1], &c, 1) != 1)
			_exit(1);
		_exit((int)read(done[0], &c, 1));
	}
	close(go[1]);
	ASSERT_EQ(read(go[0], &c, 1), 1);
	ASSERT_EQ(proc_user(pid, 1), 65534);
	close(done[1]);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	close(go[0]);
	close(done[0]);
}

TEST(we_know_who_we_are)
{
	struct proc_identity id;
	struct timespec now;
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	ASSERT(n > 0);
	exe[n] = '\0';
	prctl(PR_SET_NAME, "who am i");
	ASSERT_OK(proc_identity_read(getpid(), NULL, &id));
	clock_gettime(CLOCK_REALTIME, &now);
	ASSERT_STR(id.path, exe);
	ASSERT_STR(id.comm, "who am i");
	ASSERT_EQ(id.uid, geteuid());
	ASSERT_EQ(id.parent_pid, getppid());
	ASSERT(id.real_uid == getuid() && id.group_pid == getpgrp() && id.session_pid == getsid(0));
	ASSERT(id.start_ns / 1000000000 <= (uint64_t)now.tv_sec + 1);
	ASSERT(id.start_ns / 1000000000 + 3600 >= (uint64_t)now.tv_sec);
	ASSERT_ERR(proc_identity_read(0x7ffffff0, NULL, &id), ESRCH);
}
