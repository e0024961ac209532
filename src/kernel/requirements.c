// SPDX-License-Identifier: Apache-2.0
/*
 * The probes, by the bare system calls: they must also tell what is wrong where libbpf would only
 * fail. The programs are two to six instructions long, written out as numbers.
 */
#include "kernel/requirements.h"

#include "util/capabilities.h"
#include "util/cleanup.h"
#include "util/kernel_symbols.h"
#include "util/read_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define RUN_AS_ROOT "run it as root: sudo sonde ..."

/* include/linux/proc_ns.h: PROC_PID_INIT_INO */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

__attribute__((format(printf, 3, 4))) static void found(struct requirement_result *ret, bool ok,
							const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ret->detail, sizeof(ret->detail), fmt, ap);
	va_end(ap);
	ret->ok = ok;
	ret->fix[0] = '\0';
}

/* What to do, if the result has not said it yet. */
__attribute__((format(printf, 2, 3))) static void fix(struct requirement_result *ret,
						      const char *fmt, ...)
{
	va_list ap;

	if (ret->ok || ret->fix[0])
		return;
	va_start(ap, fmt);
	vsnprintf(ret->fix, sizeof(ret->fix), fmt, ap);
	va_end(ap);
}

static bool is_refused(int r)
{
	return r == -EPERM || r == -EACCES;
}

/* `r` >= 0: `good`; else "what: its error". */
static void found_result(struct requirement_result *ret, int r, const char *what, const char *good)
{
	if (r < 0)
		found(ret, false, "%s: %s", what, strerror(-r));
	else
		found(ret, true, "%s", good);
	/* Not to be had at all, or only not for us: then no other kernel would help. */
	if (is_refused(r) && geteuid())
		fix(ret, RUN_AS_ROOT);
}

/* What root lacks is in the hands of who started its container. */
static void fix_refused(struct requirement_result *ret, int r)
{
	if (is_refused(r))
		fix(ret, "run it outside of the container whose seccomp filter, user namespace or "
			 "capabilities forbid it (docker run --privileged --pid=host)");
}

/* --- the machine ------------------------------------------------------------------------------ */

static void probe_kernel(struct requirement_result *ret)
{
	struct utsname u;

	uname(&u);
	found(ret, true, "%s %s", u.sysname, u.release);
}

static void probe_architecture(struct requirement_result *ret)
{
	struct utsname u;

	uname(&u);
	found(ret, !strcmp(u.machine, "x86_64") || !strcmp(u.machine, "aarch64"), "%s", u.machine);
	fix(ret, "only x86-64 and aarch64 kernels are supported");
}

/* --- who we are ------------------------------------------------------------------------------- */

struct capability {
	const char *name;
	int number;
	bool in_sys_admin; /* CAP_SYS_ADMIN includes it */
};

/* Those that are missing, as a list of names in `buf`; returns how many. */
static int missing_capabilities(const struct capability *caps, size_t nr, char *buf, size_t size)
{
	uint64_t have = capabilities_effective();
	int nr_missing = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		size_t len = strlen(buf);

		if (have >> caps[i].number & 1 ||
		    (caps[i].in_sys_admin && have >> CAP_SYS_ADMIN & 1))
			continue;
		snprintf(buf + len, size - len, "%s%s", nr_missing++ ? ", " : "", caps[i].name);
	}
	return nr_missing;
}

static void probe_privileges(struct requirement_result *ret)
{
	static const struct capability needed[] = {
		{ .name = "CAP_BPF", .number = CAP_BPF, .in_sys_admin = true },
		{ .name = "CAP_PERFMON", .number = CAP_PERFMON, .in_sys_admin = true },
		{ .name = "CAP_SYS_PTRACE", .number = CAP_SYS_PTRACE },
	};
	char missing[96];

	if (!missing_capabilities(needed, ARRAY_SIZE(needed), missing, sizeof(missing))) {
		found(ret, true, geteuid() ? "the capabilities are there" : "root");
		return;
	}
	if (geteuid())
		found(ret, false, "not root: %s missing", missing);
	else
		found(ret, false, "root, but without %s", missing);
	fix(ret,
	    geteuid()
		    ? RUN_AS_ROOT
		    : "give the container these capabilities (docker run --privileged --pid=host)");
}

static void probe_all_capabilities(struct requirement_result *ret)
{
	static const struct capability useful[] = {
		{ .name = "CAP_SYS_ADMIN", .number = CAP_SYS_ADMIN },
		{ .name = "CAP_SYSLOG", .number = CAP_SYSLOG, .in_sys_admin = true },
		{ .name = "CAP_DAC_READ_SEARCH", .number = CAP_DAC_READ_SEARCH },
		{ .name = "CAP_CHECKPOINT_RESTORE",
		  .number = CAP_CHECKPOINT_RESTORE,
		  .in_sys_admin = true },
	};
	char missing[128];
	int nr = missing_capabilities(useful, ARRAY_SIZE(useful), missing, sizeof(missing));

	found(ret, !nr, "%s%s", nr ? "missing: " : "all there", missing);
	fix(ret,
	    RUN_AS_ROOT "; without, kernel names, other users' files or our own cost are missing");
}

static void probe_pid_namespace(struct requirement_result *ret)
{
	char link[64] = "";

	if (readlink("/proc/self/ns/pid", link, sizeof(link) - 1) < 0) {
		found(ret, false, "/proc/self/ns/pid: %s", strerror(errno));
		fix(ret, "mount -t proc proc /proc");
		return;
	}
	found(ret, !strcmp(link, INITIAL_PID_NAMESPACE), "%s",
	      strcmp(link, INITIAL_PID_NAMESPACE) ? "this is a PID namespace of its own"
						  : "the machine's own");
	fix(ret,
	    "run it outside of the container, or give the container the host's PIDs (--pid=host)");
}

/* --- BPF -------------------------------------------------------------------------------------- */

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : r;
}

static int create_map(enum bpf_map_type type, uint32_t value_size, uint32_t max_entries,
		      uint32_t flags)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = value_size ? 4 : 0,
		.value_size = value_size,
		.max_entries = max_entries,
		.map_flags = flags,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

/* r0 = 0; exit */
#define RETURN_0                                                                                   \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },                             \
	{                                                                                          \
		.code = BPF_JMP | BPF_EXIT                                                         \
	}
#define CALL(helper)                                                                               \
	{                                                                                          \
		.code = BPF_JMP | BPF_CALL, .imm = (helper)                                        \
	}

static const struct bpf_insn return_0[] = { RETURN_0 };

static int load_program(enum bpf_prog_type type, const struct bpf_insn *insns, size_t nr)
{
	static const char license[] = "Dual BSD/GPL";
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (uintptr_t)insns,
		.insn_cnt = (uint32_t)nr,
		.license = (uintptr_t)license,
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

static void probe_bpf(struct requirement_result *ret)
{
	_cleanup_close_ int fd = create_map(BPF_MAP_TYPE_ARRAY, 8, 1, 0);

	found_result(ret, fd, "bpf()", "maps can be made");
	fix_refused(ret, fd);
	if (fd == -ENOSYS)
		fix(ret, "boot a kernel with CONFIG_BPF_SYSCALL=y");
	else
		fix(ret, "kernel memory may be short, or RLIMIT_MEMLOCK low: see below");
}

static void probe_memlock(struct requirement_result *ret)
{
	/* Since 5.11 BPF memory counts to the cgroup and not to RLIMIT_MEMLOCK (97306be45fbe,
	 * "Merge branch 'switch to memcg-based memory accounting'"); this helper came with it. */
	static const struct bpf_insn coarse_clock[] = { CALL(BPF_FUNC_ktime_get_coarse_ns),
							RETURN_0 };
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	_cleanup_close_ int fd = -1;
	struct rlimit limit;
	int r;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	/* First, so that what follows is not refused for want of it: 5.10 takes memory that is
	 * freed off the account only after a while. */
	if (limit.rlim_cur == RLIM_INFINITY || !setrlimit(RLIMIT_MEMLOCK, &unlimited)) {
		found(ret, true, "unlimited");
		return;
	}
	r = -errno;
	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, coarse_clock, ARRAY_SIZE(coarse_clock));
	if (fd >= 0) {
		found(ret, true, "does not limit BPF memory on this kernel");
		return;
	}
	/* An older kernel does not know the helper; any other failure is for the next line to
	 * report. */
	if (fd != -EINVAL) {
		found(ret, true, "not known");
		return;
	}
	found(ret, false, "%" PRIu64 " kB, and it cannot be raised: %s",
	      (uint64_t)limit.rlim_cur >> 10, strerror(-r));
	fix(ret, "ulimit -l unlimited before, or LimitMEMLOCK=infinity in the service's unit; in "
		 "a container CAP_SYS_RESOURCE");
}

static void probe_btf(struct requirement_result *ret)
{
	_cleanup_close_ int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);

	found_result(ret, fd < 0 ? -errno : 0, "/sys/kernel/btf/vmlinux",
		     "/sys/kernel/btf/vmlinux");
	fix(ret, "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's, Fedora's and Ubuntu's "
		 "have it) and mount sysfs: mount -t sysfs sysfs /sys");
}

static void probe_ring_buffer(struct requirement_result *ret)
{
	long page = sysconf(_SC_PAGESIZE);
	_cleanup_close_ int fd = create_map(BPF_MAP_TYPE_RINGBUF, 0, (uint32_t)page, 0);

	found_result(ret, fd, "BPF_MAP_TYPE_RINGBUF", "maps of this type can be made");
	fix_refused(ret, fd);
	fix(ret, "boot Linux 5.10 or later");
}

static void probe_mmapable(struct requirement_result *ret)
{
	_cleanup_close_ int fd = create_map(BPF_MAP_TYPE_ARRAY, 8, 1, BPF_F_MMAPABLE);

	found_result(ret, fd, "BPF_F_MMAPABLE", "maps of this type can be made");
	fix_refused(ret, fd);
	fix(ret, "boot Linux 5.10 or later");
}

static void probe_jit(struct requirement_result *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = read_file_at(AT_FDCWD, "/proc/sys/net/core/bpf_jit_enable", 64, &text, NULL);
	bool on = r < 0 || text[0] != '0';

	found(ret, on, "%s", r < 0 ? "not known" : on ? "on" : "off: samples cost many times more");
	fix(ret, "sysctl -w net.core.bpf_jit_enable=1");
}

static void probe_kernel_reads(struct requirement_result *ret)
{
	/* bpf_probe_read_kernel(fp - 8, 8, NULL) */
	static const struct bpf_insn read_kernel[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		CALL(BPF_FUNC_probe_read_kernel),
		RETURN_0,
	};
	_cleanup_close_ int fd =
		load_program(BPF_PROG_TYPE_PERF_EVENT, read_kernel, ARRAY_SIZE(read_kernel));

	found_result(ret, fd, "bpf_probe_read_kernel()", "allowed");
	fix_refused(ret, fd);
	fix(ret, "lockdown=confidentiality forbids it (cat /sys/kernel/security/lockdown): boot "
		 "with lockdown=integrity or without");
}

static void probe_raw_tracepoints(struct requirement_result *ret)
{
	_cleanup_close_ int prog =
		load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, return_0, ARRAY_SIZE(return_0));
	union bpf_attr attr = { .raw_tracepoint = { .name = (uintptr_t) "sched_process_fork",
						    .prog_fd = (uint32_t)prog } };
	_cleanup_close_ int fd = prog < 0 ? prog : bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);

	found_result(ret, fd, "sched_process_fork", "programs can be attached");
	fix_refused(ret, fd);
	fix(ret, "boot a kernel with CONFIG_BPF_EVENTS=y and CONFIG_TRACEPOINTS=y");
}

static void probe_bpf_stats(struct requirement_result *ret)
{
	union bpf_attr attr = { .enable_stats = { .type = BPF_STATS_RUN_TIME } };
	_cleanup_close_ int fd = bpf(BPF_ENABLE_STATS, &attr);

	found_result(ret, fd, "BPF_ENABLE_STATS", "can be switched on");
	fix(ret, "needs CAP_SYS_ADMIN; without, the summary cannot say what a sample costs");
}

/* --- perf ------------------------------------------------------------------------------------- */

/* The first number in a small file; -1 if there is none. */
static long read_number(const char *path)
{
	_cleanup_free_ char *text = NULL;

	return read_file_at(AT_FDCWD, path, 64, &text, NULL) < 0 ? -1 : strtol(text, NULL, 10);
}

unsigned int requirements_max_frequency_hz(void)
{
	long hz = read_number("/proc/sys/kernel/perf_event_max_sample_rate");

	return hz < 0 ? 0 : (unsigned int)hz;
}

static int open_cpu_clock(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1,
	};
	/* "0-3": the first CPU that is online is not always 0. */
	long cpu = read_number("/sys/devices/system/cpu/online");
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu < 0 ? 0 : (int)cpu, -1,
			      PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void probe_perf_event(struct requirement_result *ret)
{
	_cleanup_close_ int fd = open_cpu_clock();

	found_result(ret, fd, "perf_event_open()", "CPU clock events can be opened");
	/* Debian's 3 asks for CAP_SYS_ADMIN, which CAP_PERFMON does not include. */
	if (is_refused(fd) && read_number("/proc/sys/kernel/perf_event_paranoid") > 2)
		fix(ret, "sysctl -w kernel.perf_event_paranoid=2, or give us CAP_SYS_ADMIN");
	fix_refused(ret, fd);
	fix(ret, "boot a kernel with CONFIG_PERF_EVENTS=y");
}

static void probe_perf_program(struct requirement_result *ret)
{
	_cleanup_close_ int event = open_cpu_clock();
	_cleanup_close_ int prog =
		load_program(BPF_PROG_TYPE_PERF_EVENT, return_0, ARRAY_SIZE(return_0));
	int r = event < 0 ? event : prog < 0 ? prog : 0;

	if (!r && ioctl(event, PERF_EVENT_IOC_SET_BPF, prog) < 0)
		r = -errno;
	found_result(ret, r, "PERF_EVENT_IOC_SET_BPF", "can be attached");
	fix_refused(ret, r);
	fix(ret, "boot a kernel with CONFIG_BPF_EVENTS=y; another profiler that holds the event "
		 "has to stop first");
}

static void probe_paranoid(struct requirement_result *ret)
{
	found(ret, true, "%ld", read_number("/proc/sys/kernel/perf_event_paranoid"));
}

static void probe_max_rate(struct requirement_result *ret)
{
	found(ret, true, "%u Hz", requirements_max_frequency_hz());
}

/* --- files ------------------------------------------------------------------------------------ */

static int has_address(void *unused, const struct kernel_symbol *symbol)
{
	(void)unused;
	return symbol->address != 0; /* per-CPU symbols are at 0 */
}

static void probe_kallsyms(struct requirement_result *ret)
{
	int r = kernel_symbols_walk(has_address, NULL);

	found(ret, r > 0, "%s", r > 0 ? "readable" : r ? strerror(-r) : "all addresses are hidden");
	fix(ret, "sysctl -w kernel.kptr_restrict=1 and run it as root; without, kernel functions "
		 "have no names");
}

static void probe_map_files(struct requirement_result *ret)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_close_ int fd = -1;
	char line[512], path[96];
	uint64_t start, end;
	bool is_file = false;

	/* Any file that we map will do: our own program. */
	while (!is_file && maps && fgets(line, sizeof(line), maps))
		is_file = strchr(line, '/') &&
			  sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2;
	if (!is_file) {
		found(ret, false, "/proc/self/maps cannot be read");
		fix(ret, "mount -t proc proc /proc");
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, start, end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	found_result(ret, fd < 0 ? -errno : 0, path, "readable");
	fix(ret, "run it as root; without, deleted and replaced files have no names");
}

static void probe_proc(struct requirement_result *ret)
{
	enum { ENOUGH = 64 };
	_cleanup_(closedir_p) DIR *proc = opendir("/proc");
	int nr = 0, nr_refused = 0;
	struct dirent *entry;

	while (proc && nr < ENOUGH && (entry = readdir(proc))) {
		_cleanup_close_ int fd = -1;
		char path[64];

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    strtol(entry->d_name, NULL, 10) == getpid())
			continue;
		snprintf(path, sizeof(path), "%.16s/maps", entry->d_name);
		fd = openat(dirfd(proc), path, O_RDONLY | O_CLOEXEC);
		nr++;
		nr_refused += fd < 0 && (errno == EACCES || errno == EPERM);
	}
	/* A few that some security module protects are no reason to do without the others. */
	found(ret, nr - nr_refused > nr_refused, "the mappings of %d of %d can be read",
	      nr - nr_refused, nr);
	if (!nr) /* hidepid, or no procfs */
		fix(ret, "mount -t proc proc /proc, or mount -o remount,hidepid=0 /proc");
	else
		fix(ret, RUN_AS_ROOT ", with CAP_SYS_PTRACE");
}

static void probe_tracefs(struct requirement_result *ret)
{
	static const char *const paths[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct statfs fs;

		if (!statfs(paths[i], &fs) && fs.f_type == TRACEFS_MAGIC) {
			found(ret, true, "%s", paths[i]);
			return;
		}
	}
	found(ret, false, "not mounted");
	fix(ret, "nothing to do: sonde attaches without it (mount -t tracefs tracefs "
		 "/sys/kernel/tracing would do)");
}

/* In the order in which their absence explains the next ones'. */
const struct requirement requirements[] = {
	{ "kernel", REQUIREMENT_INFO, probe_kernel },
	{ "architecture", REQUIREMENT_NEEDED, probe_architecture },
	{ "privileges", REQUIREMENT_NEEDED, probe_privileges },
	{ "other capabilities", REQUIREMENT_USEFUL, probe_all_capabilities },
	{ "PID namespace", REQUIREMENT_NEEDED, probe_pid_namespace },
	{ "memory-lock limit", REQUIREMENT_NEEDED, probe_memlock },
	{ "BPF system call", REQUIREMENT_NEEDED, probe_bpf },
	{ "BTF", REQUIREMENT_NEEDED, probe_btf },
	{ "ring buffers", REQUIREMENT_NEEDED, probe_ring_buffer },
	{ "mappable arrays", REQUIREMENT_NEEDED, probe_mmapable },
	{ "reading kernel memory", REQUIREMENT_NEEDED, probe_kernel_reads },
	{ "raw tracepoints", REQUIREMENT_NEEDED, probe_raw_tracepoints },
	{ "perf events", REQUIREMENT_NEEDED, probe_perf_event },
	{ "programs on perf events", REQUIREMENT_NEEDED, probe_perf_program },
	{ "BPF run-time statistics", REQUIREMENT_USEFUL, probe_bpf_stats },
	{ "BPF JIT", REQUIREMENT_USEFUL, probe_jit },
	{ "other processes", REQUIREMENT_NEEDED, probe_proc },
	{ "kernel symbols", REQUIREMENT_USEFUL, probe_kallsyms },
	{ "/proc/PID/map_files", REQUIREMENT_USEFUL, probe_map_files },
	{ "perf_event_paranoid", REQUIREMENT_INFO, probe_paranoid },
	{ "highest frequency", REQUIREMENT_INFO, probe_max_rate },
	{ "tracefs", REQUIREMENT_INFO, probe_tracefs },
};
const size_t nr_requirements = ARRAY_SIZE(requirements);

const struct requirement *requirements_first_missing(struct requirement_result *ret)
{
	const struct requirement *missing = NULL;
	struct rlimit limit;
	bool known = !getrlimit(RLIMIT_MEMLOCK, &limit);

	for (size_t i = 0; i < nr_requirements && !missing; i++) {
		struct requirement_result result = { 0 };

		if (requirements[i].level != REQUIREMENT_NEEDED)
			continue;
		requirements[i].probe(&result);
		if (result.ok)
			continue;
		*ret = result;
		missing = &requirements[i];
	}
	/* A COMMAND that is forked next shall have the limit that we were given. */
	if (known)
		setrlimit(RLIMIT_MEMLOCK, &limit);
	return missing;
}
