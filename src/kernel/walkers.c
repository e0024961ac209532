// SPDX-License-Identifier: Apache-2.0
#include "kernel/walkers.h"
#include "kernel/kernel_rows.h"
#include "kernel/libbpf_log.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/read_file.h"

#include "sonde.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	AGAIN_MAX = 3,	 /* that a loader is told to end, and another one begins */
	LOADING_MAX = 2, /* at a time, and so many urgent ones: what is profiled has the CPUs */
	LOG_SIZE = 64 << 10,
	LOG_STATS = 4, /* BPF_LOG_STATS of the kernel's include/linux/bpf_verifier.h; since 5.2 */
};

/*
 * What all walkers do: call a function, and go on as another program. Kernels know by the JIT that
 * they have: x86-64's since 5.10, aarch64's since 6.0 (d4609a5d8c70, "bpf, arm64: Keep tail call
 * count across bpf2bpf calls"); without a JIT none.
 */
int walkers_can_be_called(void)
{
	_cleanup_close_ int map =
		bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "sonde_probe", 4, 4, 1, NULL);
	_cleanup_close_ int program = -1;
	const struct bpf_insn insns[] = {
		/* r6 = ctx; f(); tail_call(r6, map, 0); return 0 */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 7 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
		/* f: return 0 */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	if (map < 0)
		return -errno;
	program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "sonde_probe", "Dual BSD/GPL", insns,
				sizeof(insns) / sizeof(insns[0]), NULL);
	if (program >= 0)
		return 1;
	return errno == EINVAL ? 0 : -errno;
}

const char *walkers_name(uint32_t id)
{
#define RUNTIME(name, NAME, id) [RUNTIME_##NAME] = #name,
	static const char *const names[RUNTIME_MAX_] = {
#include "abi/runtimes.def"
	};
#undef RUNTIME

	return id < RUNTIME_MAX_ && id != RUNTIME_NATIVE ? names[id] : NULL;
}

size_t walkers_fd_bytes(int fd)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	const char *line;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (read_file_at(AT_FDCWD, path, 65536, &text, NULL))
		return 0;
	line = strstr(text, "memlock:");
	return line ? strtoull(line + strlen("memlock:"), NULL, 10) : 0;
}

size_t walkers_program_bytes(int fd, uint32_t *verified)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return 0;
	if (verified && !*verified)
		*verified = info.verified_insns;
	/* fdinfo has the instructions, but not what the JIT has made of them. */
	return walkers_fd_bytes(fd) + info.jited_prog_len;
}

uint64_t walkers_program_misses(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.recursion_misses;
}

uint64_t walkers_program_run_ns(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.run_time_ns;
}

/* --- loading one ------------------------------------------------------------------------------ */

/* Where libbpf's words go: the end of them is what the verifier does not like. */
static struct walker_report *said_into;

static int keep_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	const size_t size = sizeof(said_into->reason);
	_cleanup_free_ char *text = NULL, *both = NULL;
	size_t len;

	if (level == LIBBPF_DEBUG || vasprintf(&text, fmt, ap) < 0 ||
	    asprintf(&both, "%s%s", said_into->reason, text) < 0)
		return 0;
	len = strlen(both);
	snprintf(said_into->reason, size, "%s", len < size ? both : both + len - size + 1);
	return 0;
}

/* The sampler's object once more, of which only that walker is loaded; `maps`: the sampler's, in
 * the object's order; NULL: new ones. */
static int open_program(const char *name, const int *maps, struct bpf_object **ret,
			struct bpf_program **p)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "sonde_bpf");
	struct bpf_object *object;
	struct bpf_map *map;
	size_t size;
	const void *elf = sonde_bpf__elf_bytes(&size);
	int i = 0, r = 0;

	object = bpf_object__open_mem(elf, size, &opts);
	if (!object)
		return -errno;
	bpf_object__for_each_program(*p, object) bpf_program__set_autoload(*p, false);
	*p = bpf_object__find_program_by_name(object, name);
	if (!*p || bpf_program__set_autoload(*p, true))
		r = -ENOENT;
	bpf_object__for_each_map(map, object) if (!r && maps) r = bpf_map__reuse_fd(map, maps[i++]);
	if (r)
		bpf_object__close(object);
	else
		*ret = object;
	return r;
}

/* Where a program goes when it is loaded, and as what. */
struct place {
	int map_fd; /* -1: nowhere */
	uint32_t key;
	enum bpf_prog_type type; /* 0: as its section says */
};

/* `stats`: the verifier shall count, but then it does not say what it does not like. */
static int load_program(const char *name, const int *maps, const struct place *place, bool stats,
			struct walker_report *ret)
{
	_cleanup_free_ char *log = calloc(1, LOG_SIZE);
	struct bpf_object *object = NULL;
	struct bpf_program *p = NULL;
	const char *line;
	int fd, r = log ? open_program(name, maps, &object, &p) : -ENOMEM;

	if (!r && place->type)
		r = bpf_program__set_type(p, place->type);
	if (r) {
		bpf_object__close(object);
		return r;
	}
	if (stats) {
		bpf_program__set_log_level(p, LOG_STATS);
		bpf_program__set_log_buf(p, log, LOG_SIZE);
	}
	r = bpf_object__load(object);
	fd = r ? -1 : bpf_program__fd(p);
	if (!r && place->map_fd >= 0 &&
	    bpf_map_update_elem(place->map_fd, &place->key, &fd, BPF_ANY))
		r = -errno;
	if (!r) {
		line = strstr(log, "processed ");
		ret->verified = line ? (uint32_t)strtoul(line + strlen("processed "), NULL, 10) : 0;
		ret->bytes = walkers_program_bytes(fd, &ret->verified);
	}
	bpf_object__close(object);
	return r;
}

static void load(const char *name, const int *maps, const struct place *place,
		 struct walker_report *ret)
{
	libbpf_print_fn_t before;

	*ret = (struct walker_report){ 0 };
	said_into = ret;
	before = libbpf_set_print(keep_words);
	ret->error = load_program(name, maps, place, true, ret);
	ret->reason[0] = '\0';
	if (ret->error)
		ret->error = load_program(name, maps, place, false, ret);
	libbpf_set_print(before);
	if (!ret->error)
		ret->reason[0] = '\0';
}

void walkers_try(const char *program, struct walker_report *ret)
{
	load(program, NULL, &(struct place){ .map_fd = -1 }, ret);
}

/* --- the child -------------------------------------------------------------------------------- */

int walkers_child_main(int argc, char **argv)
{
	int maps[CHILD_MORE_MAX], in_map = -1;
	struct walker_report report;
	struct place place;
	uint32_t id = 0, type = 0;
	char name[64];

	if (argc && !strcmp(argv[0], KERNEL_ROWS_ARGUMENT))
		return kernel_rows_child_main();
	prctl(PR_SET_NAME, "sonde-walker");
	for (int i = 0; i < argc; i++)
		if (sscanf(argv[i], "runtime=%u", &id) != 1 &&
		    sscanf(argv[i], "type=%u", &type) != 1)
			(void)sscanf(argv[i], "map=%d", &in_map);
	if (!walkers_name(id) || in_map < 0 || in_map >= CHILD_MORE_MAX)
		return CHILD_FAILED;
	for (int i = 0; i < CHILD_MORE_MAX; i++)
		maps[i] = CHILD_MORE_FD + i;
	place = (struct place){ maps[in_map], id, type };
	snprintf(name, sizeof(name), WALKER_PREFIX "%s", walkers_name(id));
	load(name, maps, &place, &report);
	return pwrite(CHILD_OUT_FD, &report, sizeof(report), 0) == sizeof(report) ? 0
										  : CHILD_FAILED;
}

/* --- the parent ------------------------------------------------------------------------------- */

void walkers_init(struct walkers *w, const struct bpf_object *sampler, enum bpf_prog_type type,
		  char *const *loader)
{
	*w = (struct walkers){ .sampler = sampler, .type = type, .loader = loader };
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		w->of[id].child = CHILD_NONE;
		w->of[id].report_fd = -1;
	}
}

static void drop_child(struct walker *one)
{
	if (one->child.pid) {
		child_set_idle(&one->child, false); /* to die, it needs a CPU */
		child_end(&one->child, true, NULL);
	}
	if (one->report_fd >= 0)
		close(one->report_fd);
	one->report_fd = -1;
}

void walkers_fini(struct walkers *w)
{
	for (uint32_t id = 0; w->sampler && id < RUNTIME_MAX_; id++)
		drop_child(&w->of[id]);
}

static void settle(struct walkers *w, uint32_t id)
{
	struct walker *one = &w->of[id];
	const struct walker_report *report = &one->report;
	const char *name = walkers_name(id);

	one->state = report->error ? WALKER_REFUSED : WALKER_LOADED;
	if (!report->error) {
		log_debug("walker of %s: loaded, %u instructions verified, %zu kB", name,
			  report->verified, (size_t)report->bytes / 1024);
		return;
	}
	if (w->told && *w->told & 1u << id)
		log_debug("the walker of %s cannot be loaded for another source: %s", name,
			  strerror(-report->error));
	else
		log_warn("the walker of %s cannot be loaded (%s): its frames are left out; see "
			 "sonde doctor",
			 name, strerror(-report->error));
	if (w->told)
		*w->told |= 1u << id;
	libbpf_log_words(report->reason);
}

static int start(struct walkers *w, uint32_t id)
{
	char runtime[32], map_arg[32], type[32], *args[] = { runtime, map_arg, type };
	struct walker *one = &w->of[id];
	struct child_spec spec = {
		.program = w->loader,
		.main = walkers_child_main,
		.args = args,
		.nr_args = 3,
		.idle = !one->urgent,
	};
	const struct bpf_map *map;
	int r;

	bpf_object__for_each_map(map, w->sampler)
	{
		if (spec.nr_more_fds == CHILD_MORE_MAX)
			return -E2BIG;
		if (!strcmp(bpf_map__name(map), "walkers"))
			snprintf(map_arg, sizeof(map_arg), "map=%zu", spec.nr_more_fds);
		spec.more_fds[spec.nr_more_fds++] = bpf_map__fd(map);
	}
	snprintf(runtime, sizeof(runtime), "runtime=%u", id);
	snprintf(type, sizeof(type), "type=%u", w->type);
	one->report_fd = memfd_create("sonde-walker", MFD_CLOEXEC);
	if (one->report_fd < 0)
		return -errno;
	spec.in_fd = spec.out_fd = one->report_fd;
	r = child_start(&spec, &one->child);
	if (!r)
		one->state = WALKER_LOADS;
	return r;
}

static int nr_loading(const struct walkers *w, bool urgent_only)
{
	int nr = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		nr += w->of[id].state == WALKER_LOADS && (w->of[id].urgent || !urgent_only);
	return nr;
}

/* What is urgent does not wait for what is loaded when a CPU is idle. */
static void start_those(struct walkers *w, bool urgent)
{
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		struct walker *one = &w->of[id];

		if (one->state != WALKER_WAITS || one->urgent != urgent)
			continue;
		if (nr_loading(w, urgent) >= LOADING_MAX)
			return;
		one->report.error = start(w, id);
		if (one->report.error) {
			drop_child(one);
			settle(w, id);
		}
	}
}

static void start_more(struct walkers *w)
{
	start_those(w, true);
	start_those(w, false);
}

/* Whoever waits for others to be loaded is started when one of these is taken. */
void walkers_want(struct walkers *w, uint32_t ids, bool urgent)
{
	if (!w->sampler || !(ids & ~w->wanted[urgent]))
		return;
	w->wanted[0] |= ids;
	if (urgent)
		w->wanted[1] |= ids;
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		struct walker *one = &w->of[id];

		if (!(ids & 1u << id) || !walkers_name(id))
			continue;
		if (one->state == WALKER_NOT_WANTED)
			one->state = WALKER_WAITS;
		if (!urgent || one->urgent)
			continue;
		one->urgent = true;
		if (one->state == WALKER_LOADS)
			child_set_idle(&one->child, false);
	}
	start_more(w);
}

/* A service manager tells each process of a service to end, those who load for us before us. */
static bool was_told_to_end(int status)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/* What a child that has ended has left; false: it is to be loaded once more. */
static bool take(struct walker *one)
{
	struct walker_report report = { 0 };
	int status = 0, r = child_end(&one->child, true, &status);

	if (!r && (!WIFEXITED(status) || WEXITSTATUS(status) ||
		   pread(one->report_fd, &report, sizeof(report), 0) != sizeof(report)))
		r = -ECHILD;
	if (r)
		report.error = r;
	report.reason[sizeof(report.reason) - 1] = '\0';
	one->report = report;
	drop_child(one);
	if (!was_told_to_end(status) || one->nr_again == AGAIN_MAX)
		return true;
	one->nr_again++;
	one->state = WALKER_WAITS;
	return false;
}

void walkers_update(struct walkers *w, int wait_ms)
{
	struct pollfd fds[RUNTIME_MAX_];
	uint32_t ids[RUNTIME_MAX_];
	nfds_t nr = 0;

	for (uint32_t id = 0; w->sampler && id < RUNTIME_MAX_; id++) {
		if (w->of[id].state != WALKER_LOADS)
			continue;
		ids[nr] = id;
		fds[nr++] = (struct pollfd){ .fd = w->of[id].child.messages };
	}
	if (!nr || poll(fds, nr, wait_ms) <= 0)
		return;
	for (nfds_t i = 0; i < nr; i++) {
		if (!fds[i].revents)
			continue;
		if (take(&w->of[ids[i]]))
			settle(w, ids[i]);
	}
	start_more(w);
}

uint32_t walkers_pending(const struct walkers *w, uint32_t ids)
{
	uint32_t pending = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		if (w->of[id].state == WALKER_WAITS || w->of[id].state == WALKER_LOADS)
			pending |= 1u << id;
	return pending & ids;
}

uint32_t walkers_refused(const struct walkers *w)
{
	uint32_t refused = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		if (w->of[id].state == WALKER_REFUSED)
			refused |= 1u << id;
	return refused;
}

size_t walkers_bytes(const struct walkers *w)
{
	size_t sum = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		sum += (size_t)w->of[id].report.bytes;
	return sum;
}
