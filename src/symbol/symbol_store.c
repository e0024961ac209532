// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of a command: which are wanted, which are there, and who builds the others.
 *
 * Each file is an entry with at most two children: `full` builds what can be had, `quick` symbol
 * tables alone, when `full` takes too long for the command, or failed.
 */
#include "symbol/symbol_store.h"
#include "symbol/debug_file.h"
#include "symbol/symbol_child.h"
#include "util/cleanup.h"
#include "util/map.h"
#include "util/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	KEY_MAX = 2 * ELF_BUILD_ID_MAX + 32,
	MESSAGE_MAX = 1024,
	COMPLAINTS_MAX = 1000, /* different ones */
	CHILDREN_MAX = 16,
	PROGRESS_MS = 250,
	/* What a file's two tables cost besides themselves. */
	LOW_FD = 3,
};

enum build_state {
	BUILD_NOT_WANTED = 0,
	BUILD_QUEUED = 1,
	BUILD_RUNNING = 2,
	BUILD_DONE = 3,
};

struct build {
	enum build_state state;
	struct symbol_child child;
	int out_fd;
	char text[MESSAGE_MAX]; /* a complaint that is not whole yet */
	size_t len;
};

/* The `/` of a mount namespace. */
struct root {
	uint64_t mount_ns, dev, ino;
	int fd;
};

struct entry {
	char key[KEY_MAX];
	enum symbol_state state;
	struct symbol_table *table;
	int elf_fd; /* -1 when nothing is left to build */
	char *path;
	uint32_t root; /* its number, or UINT32_MAX: only our own */
	struct build *full, *quick;
};

struct symbol_store {
	struct symbol_store_options options;
	VEC(struct entry) entries;
	struct map by_key; /* hash of the key -> entry */
	VEC(struct root) roots;
	VEC(struct symbol_table *) replaced; /* still in use by those who asked before */
	struct map complaints;		     /* by hash: said already */
	uint32_t nr_children, max_children;
	uint32_t first; /* entries before it are done */
	bool hurry;	/* somebody waits */
	bool only_quick;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- complaints ------------------------------------------------------------------------------- */

static void complain(struct symbol_store *s, const char *text)
{
	uint64_t hash = XXH3_64bits(text, strlen(text));

	if (!s->options.complain || map_get(&s->complaints, hash))
		return;
	if (s->complaints.nr >= COMPLAINTS_MAX || map_put(&s->complaints, hash, 1))
		return;
	s->options.complain(s->options.ctx, text);
}

/* What a child wrote may be of a hostile file's making. */
static void complain_line(struct symbol_store *s, struct build *build)
{
	build->text[build->len] = '\0';
	for (size_t i = 0; i < build->len; i++)
		if ((unsigned char)build->text[i] < ' ' || build->text[i] == 0x7f)
			build->text[i] = '?';
	if (build->len)
		complain(s, build->text);
	build->len = 0;
}

/* Takes in what a child wrote; false: it has ended. */
static bool read_messages(struct symbol_store *s, struct build *build)
{
	char buf[512];

	for (;;) {
		ssize_t n = read(build->child.messages, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		if (!n)
			return false;
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n')
				complain_line(s, build);
			else if (build->len < MESSAGE_MAX - 1)
				build->text[build->len++] = buf[i];
		}
	}
}

/* --- entries ---------------------------------------------------------------------------------- */

static void build_free(struct build *build)
{
	if (!build)
		return;
	if (build->child.pid)
		symbol_child_end(&build->child, true, NULL);
	if (build->out_fd >= 0)
		close(build->out_fd);
	free(build);
}

/* What only building needs. */
static void entry_release(struct entry *e)
{
	build_free(e->full);
	build_free(e->quick);
	e->full = e->quick = NULL;
	if (e->elf_fd >= 0)
		close(e->elf_fd);
	e->elf_fd = -1;
	free(e->path);
	e->path = NULL;
}

int symbol_store_new(const struct symbol_store_options *options, struct symbol_store **ret)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = calloc(1, sizeof(*s));
	cpu_set_t cpus;
	int fd;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->max_children = 1;
	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		s->max_children = (uint32_t)CPU_COUNT(&cpus);
	if (s->max_children > CHILDREN_MAX)
		s->max_children = CHILDREN_MAX;
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Number 0 is our own. */
	if (vec_push(&s->roots, (struct root){ .fd = fd })) {
		close(fd);
		return -ENOMEM;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

void symbol_store_free(struct symbol_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->entries.nr; i++) {
		entry_release(&s->entries.items[i]);
		symbol_table_free(s->entries.items[i].table);
	}
	for (size_t i = 0; i < s->replaced.nr; i++)
		symbol_table_free(s->replaced.items[i]);
	for (size_t i = 0; i < s->roots.nr; i++)
		close(s->roots.items[i].fd);
	vec_free(&s->entries);
	vec_free(&s->replaced);
	vec_free(&s->roots);
	map_fini(&s->by_key);
	map_fini(&s->complaints);
	free(s);
}

static int identify_root(int dir, const char *ns_path, struct root *ret)
{
	struct stat root, ns;

	if (fstat(dir, &root) || stat(ns_path, &ns))
		return -errno;
	ret->mount_ns = ns.st_ino;
	ret->dev = root.st_dev;
	ret->ino = root.st_ino;
	return 0;
}

/* The number of a process's root; the same for all processes that share it. */
static int find_root(struct symbol_store *s, int pid, uint32_t *ret)
{
	_cleanup_close_ int fd = -1;
	struct root new, own;
	char path[64];
	int r;

	if (!pid) {
		*ret = 0;
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	r = identify_root(fd, path, &new);
	if (!r)
		r = identify_root(s->roots.items[0].fd, "/proc/self/ns/mnt", &own);
	if (r)
		return r;
	s->roots.items[0].mount_ns = own.mount_ns;
	s->roots.items[0].dev = own.dev;
	s->roots.items[0].ino = own.ino;
	for (uint32_t i = 0; i < s->roots.nr; i++) {
		const struct root *root = &s->roots.items[i];

		if (root->mount_ns == new.mount_ns && root->dev == new.dev &&
		    root->ino == new.ino) {
			*ret = i;
			return 0;
		}
	}
	new.fd = fd;
	r = vec_push(&s->roots, new);
	if (r)
		return r;
	fd = -1;
	*ret = (uint32_t)s->roots.nr - 1;
	return 0;
}

static int write_image(const void *image, size_t size, int *ret)
{
	_cleanup_close_ int fd = memfd_create("sonde-elf", MFD_CLOEXEC);
	const char *p = image;

	if (fd < 0)
		return -errno;
	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

static int find_key(const struct symbol_file *file, char key[static KEY_MAX])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t id[ELF_BUILD_ID_MAX];
	int len = elf_file_build_id(file->elf, id);
	struct stat st = { .st_size = (off_t)file->size };
	char *p = key;

	if (len <= 0)
		return -ENOTSUP;
	if (file->fd >= 0 && fstat(file->fd, &st))
		return -errno;
	for (int i = 0; i < len; i++) {
		*p++ = digits[id[i] >> 4];
		*p++ = digits[id[i] & 15];
	}
	/* A stripped copy has the same build-id, but not the same symbols. */
	snprintf(p, KEY_MAX - (size_t)(p - key), "-%llx", (unsigned long long)st.st_size);
	return 0;
}

/* --- building --------------------------------------------------------------------------------- */

static int build_new(struct build **ret)
{
	struct build *build = calloc(1, sizeof(*build));

	if (!build)
		return -ENOMEM;
	build->out_fd = build->child.messages = -1;
	build->state = BUILD_QUEUED;
	*ret = build;
	return 0;
}

static int start(struct symbol_store *s, struct entry *e, struct build *build)
{
	bool quick = build == e->quick;
	struct symbol_child_spec spec = {
		.builder = s->options.builder,
		.elf_fd = e->elf_fd,
		.path = e->path,
		.memory = s->options.builder_memory,
		.no_debug_info = quick,
		.idle = !s->hurry,
		.cache_dir = -1,
	};
	int r;

	build->out_fd = memfd_create("sonde-symbols", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (build->out_fd < 0)
		return -errno;
	spec.out_fd = build->out_fd;
	if (e->root)
		spec.roots[spec.nr_roots++] = s->roots.items[e->root].fd;
	spec.roots[spec.nr_roots++] = s->roots.items[0].fd;
	r = symbol_child_start(&spec, &build->child);
	if (r)
		return r;
	build->state = BUILD_RUNNING;
	s->nr_children++;
	return 0;
}

static void set_table(struct symbol_store *s, struct entry *e, struct symbol_table *table)
{
	struct symbol_table_info info;

	symbol_table_info(table, &info);
	if (e->table && vec_push(&s->replaced, e->table)) {
		/* The better one is not worth to lose the one that is in use. */
		symbol_table_free(table);
		return;
	}
	e->table = table;
	e->state = info.nr_functions ? SYMBOL_STATE_READY : SYMBOL_STATE_NONE;
}

/* Nothing more can come of this file. */
static void settle(struct entry *e)
{
	if (e->state == SYMBOL_STATE_BUILDING)
		e->state = SYMBOL_STATE_FAILED;
	entry_release(e);
}

static void want_quick(struct entry *e)
{
	if (!e->quick && build_new(&e->quick))
		settle(e);
}

static void build_failed(struct symbol_store *s, struct entry *e, struct build *build)
{
	char text[MESSAGE_MAX];

	build->state = BUILD_DONE;
	if (build == e->full && !e->table) {
		snprintf(text, sizeof(text),
			 "%s: debug information could not be read; symbols only", e->path);
		complain(s, text);
		want_quick(e);
	} else if (!e->full || e->full->state == BUILD_DONE) {
		settle(e);
	}
}

static void finish(struct symbol_store *s, struct entry *e, struct build *build)
{
	struct symbol_table *table;
	int status = 0, r;

	s->nr_children--;
	complain_line(s, build);
	r = symbol_child_end(&build->child, false, &status);
	build->state = BUILD_DONE;
	if (r != -ECHILD && (!WIFEXITED(status) || WEXITSTATUS(status) != SYMBOL_CHILD_OK)) {
		build_failed(s, e, build);
		return;
	}
	fcntl(build->out_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	r = symbol_table_open_fd(build->out_fd, &table);
	if (r) {
		build_failed(s, e, build);
		return;
	}
	if (build == e->quick && e->table)
		symbol_table_free(table);
	else
		set_table(s, e, table);
	if (build == e->full || !e->full || e->full->state == BUILD_DONE)
		settle(e);
}

static void look_after(struct symbol_store *s, struct entry *e, struct build *build)
{
	if (build && build->state == BUILD_RUNNING && !read_messages(s, build))
		finish(s, e, build);
}

static void start_queued(struct symbol_store *s, struct entry *e, struct build *build)
{
	if (!build || build->state != BUILD_QUEUED || s->nr_children >= s->max_children)
		return;
	if (start(s, e, build)) {
		if (build->out_fd >= 0)
			close(build->out_fd);
		build->out_fd = -1;
		/* No processes or descriptors just now: later, if others still hold some. */
		if (!s->nr_children)
			build_failed(s, e, build);
	}
}

void symbol_store_tick(struct symbol_store *s)
{
	for (size_t i = s->first; i < s->entries.nr; i++) {
		look_after(s, &s->entries.items[i], s->entries.items[i].quick);
		look_after(s, &s->entries.items[i], s->entries.items[i].full);
	}
	for (size_t i = s->first; i < s->entries.nr; i++)
		start_queued(s, &s->entries.items[i], s->entries.items[i].quick);
	for (size_t i = s->first; i < s->entries.nr && !s->only_quick; i++)
		start_queued(s, &s->entries.items[i], s->entries.items[i].full);
	while (s->first < s->entries.nr && s->entries.items[s->first].elf_fd < 0)
		s->first++;
}

/* --- asking ----------------------------------------------------------------------------------- */

static int add_entry(struct symbol_store *s, const struct symbol_file *file, struct entry *e,
		     uint32_t *ret)
{
	uint64_t hash = XXH3_64bits(e->key, strlen(e->key));
	int r = 0;

	e->path = strdup(file->path ? file->path : "");
	if (!e->path)
		return -ENOMEM;
	if (file->fd >= 0) {
		e->elf_fd = fcntl(file->fd, F_DUPFD_CLOEXEC, LOW_FD);
		r = e->elf_fd < 0 ? -errno : 0;
	} else {
		r = write_image(file->image, file->size, &e->elf_fd);
	}
	if (!r)
		r = build_new(&e->full);
	if (!r)
		r = vec_reserve(&s->entries, s->entries.nr + 1);
	if (!r)
		r = map_put(&s->by_key, hash, s->entries.nr);
	if (r)
		return r;
	s->entries.items[s->entries.nr] = *e;
	*ret = (uint32_t)s->entries.nr++;
	return 0;
}

int symbol_store_want(struct symbol_store *s, const struct symbol_file *file, uint32_t *ret_id)
{
	struct entry e = { .elf_fd = -1 };
	const uint64_t *known;
	int r = find_key(file, e.key);

	if (r)
		return r;
	known = map_get(&s->by_key, XXH3_64bits(e.key, strlen(e.key)));
	if (known) {
		*ret_id = (uint32_t)*known;
		return 0;
	}
	/* A process that is gone has no files of its own that could be looked for. */
	if (find_root(s, file->root_pid, &e.root))
		e.root = 0;
	r = add_entry(s, file, &e, ret_id);
	if (r) {
		entry_release(&e);
		return r;
	}
	symbol_store_tick(s);
	return 0;
}

const struct symbol_table *symbol_store_table(const struct symbol_store *s, uint32_t id)
{
	const struct entry *e = id < s->entries.nr ? &s->entries.items[id] : NULL;

	return e && e->state == SYMBOL_STATE_READY ? e->table : NULL;
}

enum symbol_state symbol_store_state(const struct symbol_store *s, uint32_t id)
{
	return id < s->entries.nr ? s->entries.items[id].state : SYMBOL_STATE_FAILED;
}

size_t symbol_store_bytes(const struct symbol_store *s)
{
	size_t sum = sizeof(*s) + s->entries.cap * sizeof(*s->entries.items) +
		     s->by_key.cap * sizeof(*s->by_key.slots) +
		     s->complaints.cap * sizeof(*s->complaints.slots);

	for (size_t i = 0; i < s->entries.nr; i++) {
		const struct entry *e = &s->entries.items[i];

		sum += ((e->full != NULL) + (e->quick != NULL)) * sizeof(struct build);
		sum += e->path ? strlen(e->path) + 1 : 0;
		sum += e->table ? symbol_table_resident(e->table) : 0;
	}
	for (size_t i = 0; i < s->replaced.nr; i++)
		sum += symbol_table_resident(s->replaced.items[i]);
	return sum;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static bool is_running(const struct build *build)
{
	return build && build->state == BUILD_RUNNING;
}

static void set_idle(struct symbol_store *s, bool idle)
{
	s->hurry = !idle;
	for (size_t i = s->first; i < s->entries.nr; i++) {
		const struct entry *e = &s->entries.items[i];

		if (is_running(e->full))
			symbol_child_set_idle(&e->full->child, idle);
		if (is_running(e->quick))
			symbol_child_set_idle(&e->quick->child, idle);
	}
}

static void count(const struct symbol_store *s, struct symbol_progress *ret)
{
	*ret = (struct symbol_progress){ .total = (uint32_t)s->entries.nr, .path = "" };
	for (size_t i = 0; i < s->entries.nr; i++) {
		const struct entry *e = &s->entries.items[i];

		ret->done += e->state != SYMBOL_STATE_BUILDING;
		if (e->state == SYMBOL_STATE_BUILDING && !*ret->path &&
		    (is_running(e->full) || is_running(e->quick)))
			ret->path = e->path;
	}
}

/* Sleeps until a child says something or ends. -EINTR: a signal came. */
static int wait_for_children(struct symbol_store *s, uint64_t timeout_ms)
{
	struct pollfd fds[2 * CHILDREN_MAX];
	nfds_t nr = 0;

	for (size_t i = s->first; i < s->entries.nr; i++) {
		struct build *builds[] = { s->entries.items[i].full, s->entries.items[i].quick };

		for (size_t j = 0; j < 2 && nr < 2 * CHILDREN_MAX; j++)
			if (is_running(builds[j]))
				fds[nr++] = (struct pollfd){ .fd = builds[j]->child.messages,
							     .events = POLLIN };
	}
	return poll(fds, nr, (int)timeout_ms) < 0 ? -errno : 0;
}

/* Symbol tables will have to do for what is not there yet. */
static void lose_patience(struct symbol_store *s)
{
	s->only_quick = true;
	for (size_t i = s->first; i < s->entries.nr; i++) {
		struct entry *e = &s->entries.items[i];

		if (e->state != SYMBOL_STATE_BUILDING)
			continue;
		if (is_running(e->full))
			symbol_child_set_idle(&e->full->child, true);
		want_quick(e);
	}
	/* Those that go on are not to hold up the quick ones. */
	s->max_children += s->nr_children;
}

size_t symbol_store_wait(struct symbol_store *s, uint32_t patience_ms,
			 bool (*progress)(void *ctx, const struct symbol_progress *progress),
			 void *ctx)
{
	uint64_t begin = now_ms(), told = begin, now;
	uint32_t max_children = s->max_children;
	struct symbol_progress state;

	set_idle(s, false);
	for (;;) {
		uint64_t timeout = PROGRESS_MS;
		bool interrupted;

		symbol_store_tick(s);
		count(s, &state);
		if (state.done == state.total)
			break;
		now = now_ms();
		if (patience_ms && !s->only_quick) {
			if (now - begin >= patience_ms) {
				lose_patience(s);
				continue;
			}
			if (begin + patience_ms - now < timeout)
				timeout = begin + patience_ms - now;
		}
		interrupted = wait_for_children(s, timeout) == -EINTR;
		if (!interrupted && now_ms() - told < PROGRESS_MS)
			continue;
		told = now_ms();
		count(s, &state);
		if (progress && !progress(ctx, &state))
			break;
	}
	s->only_quick = false;
	s->max_children = max_children;
	set_idle(s, true);
	return state.total - state.done;
}
