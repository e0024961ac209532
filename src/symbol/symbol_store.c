// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of a command: which are wanted, which are there, and waiting for the others. Building
 * them is symbol_store_build.c's, the processes symbol_child.c's, the disk symbol_cache.c's.
 */
#include "symbol/symbol_store.h"
#include "symbol/debug_file.h"
#include "symbol/symbol_store_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	COMPLAINTS_MAX = 1000, /* different ones */
	CHILDREN_MAX = 16,
	PROGRESS_MS = 250,
	QUICK_PATIENCE_MS = 60000,
	FOREIGN_MS = 50, /* while another process builds what we wait for */
	/* Of options.root, if there is one, among the roots. */
	SYSROOT = 1,
	TABLES_PART = 8,      /* of the machine's memory */
	WAITING_RESERVED = 4, /* a quarter of all that wait may be root's and our own only */
};

/* --- complaints ------------------------------------------------------------------------------- */

void store_complain(struct symbol_store *s, const char *text)
{
	uint64_t hash = XXH3_64bits(text, strlen(text));

	if (!s->options.complain || map_get(&s->complaints, hash))
		return;
	if (s->complaints.nr >= COMPLAINTS_MAX || map_put(&s->complaints, hash, 1))
		return;
	s->options.complain(s->options.ctx, text);
}

void store_complain_of(struct symbol_store *s, const char *text, size_t len)
{
	char line[SYMBOL_MESSAGE_MAX];

	if (len >= sizeof(line))
		len = sizeof(line) - 1;
	for (size_t i = 0; i < len; i++)
		line[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	line[len] = '\0';
	if (len)
		store_complain(s, line);
}

void store_cache_failed(struct symbol_store *s, int r)
{
	char text[SYMBOL_MESSAGE_MAX];

	s->cache_failed = true;
	snprintf(text, sizeof(text), "symbol cache %s: %s; working without it",
		 s->cache_path ? s->cache_path : "",
		 r == -EPERM ? "it is another user's, or others may write to it" : strerror(-r));
	store_complain(s, text);
}

/* --- a store ---------------------------------------------------------------------------------- */

/*
 * When the first file is wanted: a command that ends before has nothing to say about it. Not
 * cleaned here: that looks at each of its files (16,000: 120 ms, while samples wait), and the first
 * child that adds one does it (room_for_next()).
 */
static void open_cache(struct symbol_store *s)
{
	int r;

	if (s->cache_opened || (s->options.cache_dir && !*s->options.cache_dir))
		return;
	s->cache_opened = true;
	r = symbol_cache_open(s->options.cache_dir, &s->cache, &s->cache_path);
	if (r)
		store_cache_failed(s, r);
}

int symbol_store_folder(struct symbol_store *s)
{
	open_cache(s);
	return s->cache;
}

static int keep_root(struct symbol_store *s, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = vec_push(&s->roots, (struct root){ .fd = fd, .users = 1 });
	if (r)
		close(fd);
	return r;
}

int symbol_store_new(const struct symbol_store_options *options, struct symbol_store **ret)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = calloc(1, sizeof(*s));
	cpu_set_t cpus;
	int r;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->cache = -1;
	s->max_children = 1;
	if (!s->options.table_memory)
		s->options.table_memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
					  (uint64_t)sysconf(_SC_PAGESIZE) / TABLES_PART;
	if (!s->options.cache_size)
		s->options.cache_size = SYMBOL_CACHE_SIZE_DEFAULT;
	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		s->max_children = (uint32_t)CPU_COUNT(&cpus);
	if (s->max_children > CHILDREN_MAX)
		s->max_children = CHILDREN_MAX;
	/* Number 0 is our own. */
	r = keep_root(s, "/");
	if (!r && options->root)
		r = keep_root(s, options->root);
	if (r)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void symbol_store_free(struct symbol_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->entries.nr; i++) {
		entry_release(s, &s->entries.items[i]);
		symbol_table_free(s->entries.items[i].table);
	}
	for (size_t i = 0; i < s->roots.nr; i++)
		if (s->roots.items[i].fd >= 0)
			close(s->roots.items[i].fd);
	vec_free(&s->entries);
	vec_free(&s->free);
	vec_free(&s->roots);
	map_fini(&s->by_key);
	map_fini(&s->complaints);
	map_fini(&s->held_of_owner);
	map_fini(&s->waiting_of_owner);
	if (s->cache >= 0)
		close(s->cache);
	free(s->cache_path);
	free(s);
}

/* Number of the root, known or new; `fd` is taken over if it is new. */
static int use_root(struct symbol_store *s, const struct root *new, int *fd, uint32_t *ret)
{
	uint32_t place = (uint32_t)s->roots.nr;
	int r;

	for (uint32_t i = 0; i < s->roots.nr; i++) {
		struct root *root = &s->roots.items[i];

		if (root->fd < 0) {
			place = i;
		} else if (root_id_equal(&root->id, &new->id) &&
			   (!i || root->others == new->others)) {
			root->users++;
			*ret = i;
			return 0;
		}
	}
	r = place == s->roots.nr ? vec_push(&s->roots, *new) : 0;
	if (r)
		return r;
	s->roots.items[place] = *new;
	s->roots.items[place].fd = TAKE_FD(*fd);
	s->roots.items[place].users = 1;
	*ret = place;
	return 0;
}

/* The number of a process's root; the same for all processes that share it. */
static int find_root(struct symbol_store *s, int pid, uint32_t *ret)
{
	_cleanup_close_ int fd = -1;
	struct stat user, own_user;
	struct root new;
	char path[64];
	int r;

	if (!pid) {
		*ret = s->options.root ? SYSROOT : 0;
		s->roots.items[*ret].users++;
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	r = root_id_read(path, fd, NULL, &new.id);
	if (!r)
		r = root_id_read("/proc/self", s->roots.items[0].fd, NULL, &s->roots.items[0].id);
	if (r)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	new.others = stat(path, &user) || stat("/proc/self/ns/user", &own_user) ||
		     user.st_ino != own_user.st_ino;
	return use_root(s, &new, &fd, ret);
}

void store_release_root(struct symbol_store *s, uint32_t number)
{
	struct root *root = &s->roots.items[number];

	/* The first ones are there as long as the store. */
	if (--root->users)
		return;
	close(root->fd);
	root->fd = -1;
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

static void find_key(const struct file_identity *identity, char key[static SYMBOL_KEY_MAX])
{
	for (size_t i = 0; i < FILE_IDENTITY_SIZE; i++)
		snprintf(key + 2 * i, 3, "%02x", identity->hash[i]);
}

void store_search(const struct symbol_store *s, const struct entry *e, int *roots,
		  struct debug_search *ret)
{
	*ret = (struct debug_search){ .roots = roots, .path = e->path };
	if (e->root) {
		ret->nr_others_roots = s->roots.items[e->root].others;
		roots[ret->nr_roots++] = s->roots.items[e->root].fd;
	}
	roots[ret->nr_roots++] = s->roots.items[0].fd;
}

void symbol_store_tick(struct symbol_store *s)
{
	for (size_t i = s->first; i < s->entries.nr; i++) {
		struct entry *e = &s->entries.items[i];

		build_look_after(s, e, e->quick);
		build_look_after(s, e, e->full);
	}
	for (size_t i = s->first; i < s->entries.nr; i++)
		build_start_queued(s, &s->entries.items[i], s->entries.items[i].quick);
	for (size_t i = s->first; i < s->entries.nr && !s->only_quick; i++)
		build_start_queued(s, &s->entries.items[i], s->entries.items[i].full);
	while (s->first < s->entries.nr && s->entries.items[s->first].elf_fd < 0)
		s->first++;
}

bool symbol_store_is_busy(const struct symbol_store *s)
{
	return s->first < s->entries.nr;
}

/* --- asking ----------------------------------------------------------------------------------- */

static bool may_wait(const struct symbol_store *s, uint32_t owner)
{
	size_t most = s->options.max_waiting;

	return !most || owner_is_trusted(owner) ||
	       owners_may_take(&s->waiting_of_owner, owner,
			       most > s->nr_waiting ? most - s->nr_waiting : 0,
			       most / WAITING_RESERVED);
}

static int open_again(const struct symbol_file *file, int *ret)
{
	if (file->fd < 0)
		return write_image(file->image, file->size, ret);
	*ret = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	return *ret < 0 ? -errno : 0;
}

/* Keeps the entry's file open until store_close_file(). -EDQUOT: too many of its owner's wait. */
static int keep_file(struct symbol_store *s, struct entry *e, const struct symbol_file *file)
{
	_cleanup_close_ int fd = -1;
	struct stat st = { .st_uid = geteuid() };
	int r;

	if (file->owner)
		st.st_uid = *file->owner;
	else if (file->fd >= 0 && fstat(file->fd, &st))
		return -errno;
	if (!may_wait(s, st.st_uid))
		return -EDQUOT;
	r = open_again(file, &fd);
	if (!r)
		r = owners_take(&s->waiting_of_owner, st.st_uid);
	if (r)
		return r;
	s->nr_waiting++;
	e->owner = st.st_uid;
	e->elf_fd = TAKE_FD(fd);
	return 0;
}

void store_close_file(struct symbol_store *s, struct entry *e)
{
	if (e->elf_fd < 0)
		return;
	close(e->elf_fd);
	e->elf_fd = -1;
	owners_give_back(&s->waiting_of_owner, e->owner);
	s->nr_waiting--;
}

/* A table that the cache does not have is in memory as long as its file is wanted. */
int store_hold(struct symbol_store *s, struct entry *e, int fd)
{
	const uint64_t *known = map_get(&s->held_of_owner, e->owner);
	uint64_t have = known ? *known : 0, most = s->options.table_memory;
	char text[SYMBOL_MESSAGE_MAX];
	struct stat st;
	int r;

	if (owner_is_trusted(e->owner))
		return 0;
	if (fstat(fd, &st))
		return -errno;
	most = most > s->held ? (most - s->held) / OWNERS_PART : 0;
	if (have + (uint64_t)st.st_size > most) {
		snprintf(text, sizeof(text),
			 "%s: the symbols of its owner's files take too much memory; it may have "
			 "none, nor may others",
			 e->path);
		if (!s->said_held)
			store_complain(s, text);
		s->said_held = true;
		return -EDQUOT;
	}
	r = map_put(&s->held_of_owner, e->owner, have + (uint64_t)st.st_size);
	if (r)
		return r;
	s->held += (uint64_t)st.st_size;
	e->held += (uint64_t)st.st_size;
	return 0;
}

static void let_go(struct symbol_store *s, const struct entry *e)
{
	uint64_t *have = e->held ? map_get(&s->held_of_owner, e->owner) : NULL;

	if (!have)
		return;
	s->held -= e->held;
	*have -= e->held;
	if (!*have)
		map_del(&s->held_of_owner, e->owner);
}

/* Else what waits for a machine that is too busy to build it would take all descriptors. */
static void refuse(struct symbol_store *s, struct entry *e)
{
	char text[SYMBOL_MESSAGE_MAX];

	snprintf(text, sizeof(text),
		 "%s: too many files of its owner wait for their symbols; it has none, nor may "
		 "others",
		 e->path);
	if (!s->said_refused)
		store_complain(s, text);
	s->said_refused = true;
	e->state = SYMBOL_STATE_FAILED;
	entry_release(s, e);
}

/* Fills in an entry: its table if the cache has it, else what building it takes. */
static int init_entry(struct symbol_store *s, const struct symbol_file *file, struct entry *e)
{
	struct debug_search search;
	struct symbol_table *table;
	int roots[SYMBOL_CHILD_ROOTS_MAX], r;

	/* A process that is gone has no files of its own that could be looked for. */
	if (find_root(s, file->root_pid, &e->root)) {
		e->root = 0;
		s->roots.items[0].users++;
	}
	e->has_root = true;
	e->path = strdup(file->path ? file->path : "");
	if (!e->path)
		return -ENOMEM;
	store_search(s, e, roots, &search);
	e->fingerprint = debug_files_fingerprint(file->elf, &search);
	e->lasts = file->identity.lasts;
	if (e->lasts && s->cache >= 0 &&
	    !symbol_cache_get(s->cache, e->key, e->fingerprint, &table)) {
		entry_take_cached(s, e, table);
		entry_release(s, e);
		return 0;
	}
	r = keep_file(s, e, file);
	if (r == -EDQUOT) {
		refuse(s, e);
		return 0;
	}
	if (!r)
		entry_want_full(s, e);
	return r;
}

int symbol_store_want(struct symbol_store *s, const struct symbol_file *file, uint32_t *ret_id)
{
	struct entry e = { .elf_fd = -1, .users = 1 };
	uint32_t place = s->free.nr ? s->free.items[s->free.nr - 1] : (uint32_t)s->entries.nr;
	const uint64_t *known;
	int r;

	open_cache(s);
	find_key(&file->identity, e.key);
	memcpy(&e.hash, file->identity.hash, sizeof(e.hash));
	known = map_get(&s->by_key, e.hash);
	if (known) {
		*ret_id = (uint32_t)*known;
		s->entries.items[*ret_id].users++;
		return 0;
	}
	/* Room for all of them to be dropped, too. */
	r = vec_reserve(&s->entries, s->entries.nr + 1);
	if (!r)
		r = vec_reserve(&s->free, s->entries.nr + 1);
	if (!r)
		r = init_entry(s, file, &e);
	if (!r)
		r = map_put(&s->by_key, e.hash, place);
	if (r) {
		entry_release(s, &e);
		symbol_table_free(e.table);
		return r;
	}
	s->entries.items[place] = e;
	if (place == s->entries.nr)
		s->entries.nr++;
	else
		s->free.nr--;
	if (s->first > place)
		s->first = place;
	*ret_id = place;
	symbol_store_tick(s);
	return 0;
}

void symbol_store_drop(struct symbol_store *s, uint32_t id)
{
	struct entry *e = id < s->entries.nr ? &s->entries.items[id] : NULL;

	if (!e || !e->users || --e->users)
		return;
	map_del(&s->by_key, e->hash);
	let_go(s, e);
	entry_release(s, e);
	symbol_table_free(e->table);
	*e = (struct entry){ .elf_fd = -1, .state = SYMBOL_STATE_NONE };
	s->free.items[s->free.nr++] = id;
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
		     s->complaints.cap * sizeof(*s->complaints.slots) +
		     s->held_of_owner.cap * sizeof(*s->held_of_owner.slots);

	for (size_t i = 0; i < s->entries.nr; i++) {
		const struct entry *e = &s->entries.items[i];

		sum += ((e->full != NULL) + (e->quick != NULL)) * sizeof(struct build);
		sum += e->path ? strlen(e->path) + 1 : 0;
		sum += e->table ? symbol_table_resident(e->table) : 0;
	}
	return sum;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void set_idle(struct symbol_store *s, bool idle)
{
	s->hurry = !idle;
	for (size_t i = s->first; i < s->entries.nr; i++) {
		struct entry *e = &s->entries.items[i];

		build_set_idle(s, e, e->full, idle);
		build_set_idle(s, e, e->quick, idle);
	}
}

static void count(const struct symbol_store *s, struct symbol_progress *ret)
{
	*ret = (struct symbol_progress){ .total = (uint32_t)s->entries.nr, .path = "" };
	for (size_t i = 0; i < s->entries.nr; i++) {
		const struct entry *e = &s->entries.items[i];

		ret->done += e->state != SYMBOL_STATE_BUILDING;
		if (e->state == SYMBOL_STATE_BUILDING && !*ret->path &&
		    (build_is_running(e->full) || build_is_running(e->quick)))
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

		for (size_t j = 0; j < 2 && nr < 2 * CHILDREN_MAX; j++) {
			if (build_is_running(builds[j]))
				fds[nr++] = (struct pollfd){ .fd = builds[j]->child.messages,
							     .events = POLLIN };
			else if (builds[j] && builds[j]->state == BUILD_FOREIGN &&
				 timeout_ms > FOREIGN_MS)
				timeout_ms = FOREIGN_MS;
		}
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
		if (build_is_running(e->full)) {
			child_set_idle(&e->full->child, true);
			e->full->stays = e->full->claimed;
			if (e->full->stays)
				child_let_stay(&e->full->child);
		}
		entry_want_quick(s, e);
	}
	/* Those that go on are not to hold up the quick ones. */
	s->max_children += s->nr_children;
}

static uint64_t quick_patience(const struct symbol_store *s)
{
	return s->options.quick_patience_ms ? s->options.quick_patience_ms : QUICK_PATIENCE_MS;
}

/* Who reads `path` may sleep on a file server. "": it is in work nowhere. */
static void give_up(struct symbol_store *s, const char *path)
{
	char text[SYMBOL_MESSAGE_MAX];

	if (!*path)
		return;
	snprintf(text, sizeof(text),
		 "%s: reading its symbols does not end; it has none, nor may others", path);
	store_complain(s, text);
}

size_t symbol_store_wait(struct symbol_store *s, uint32_t patience_ms,
			 bool (*progress)(void *ctx, const struct symbol_progress *progress),
			 void *ctx)
{
	uint64_t told = now_ms(), end = patience_ms ? told + patience_ms : UINT64_MAX, now;
	uint32_t max_children = s->max_children;
	struct symbol_progress state;

	symbol_store_tick(s);
	set_idle(s, false);
	for (;;) {
		uint64_t timeout = PROGRESS_MS;
		bool interrupted;

		symbol_store_tick(s);
		count(s, &state);
		if (state.done == state.total)
			break;
		now = now_ms();
		if (now >= end && s->only_quick) {
			give_up(s, state.path);
			break;
		}
		if (now >= end) {
			lose_patience(s);
			end = now + quick_patience(s);
			continue;
		}
		if (end - now < timeout)
			timeout = end - now;
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
