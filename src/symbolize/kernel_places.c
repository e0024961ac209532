// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_places.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { GONE_MAX = 1024 };

/* A folder of sysfs has a link for each folder in it (fs/kernfs/inode.c, kernfs_refresh_inode()).
 */
static uint64_t count_modules(const struct kernel_places *k)
{
	struct stat st;

	return k->modules_fd < 0 || fstat(k->modules_fd, &st) ? 0 : st.st_nlink;
}

/* One module for another leaves the number of links as it was. */
static uint64_t count_events(const struct kernel_places *k)
{
	char text[32];
	ssize_t n = k->events_fd < 0 ? -1 : pread(k->events_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = 0;
	return strtoull(text, NULL, 10);
}

/*
 * Nearly all events are of something else. A folder of sysfs that is made anew has another number
 * than the one that was there before, if it has its name. 0: it cannot be read.
 */
static uint64_t hash_names(const struct kernel_places *k)
{
	int fd = k->modules_fd < 0 ? -1 : openat(k->modules_fd, ".", O_RDONLY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	uint64_t hash = 1;

	if (!folder) {
		close_p(&fd);
		return 0;
	}
	while ((e = readdir(folder)))
		if (e->d_name[0] != '.')
			hash = XXH3_64bits_withSeed(e->d_name, strlen(e->d_name),
						    hash ^ (uint64_t)e->d_ino);
	closedir(folder);
	return hash;
}

static void look_at_modules(const struct kernel_places *k, struct kernel_modules_seen *ret)
{
	ret->nr = count_modules(k);
	ret->nr_events = count_events(k);
	ret->names = hash_names(k);
}

void kernel_places_init(struct kernel_places *k, struct profile *profile)
{
	*k = (struct kernel_places){ .profile = profile };
	/* Each turn looks: finding the folder would be most of that. */
	k->modules_fd = open("/sys/module", O_PATH | O_DIRECTORY | O_CLOEXEC);
	k->events_fd = open("/sys/kernel/uevent_seqnum", O_RDONLY | O_CLOEXEC);
	look_at_modules(k, &k->seen);
}

void kernel_places_fini(struct kernel_places *k)
{
	/* One that was never begun has none. */
	if (k->profile) {
		close_p(&k->modules_fd);
		close_p(&k->events_fd);
	}
	kernel_image_fini(&k->image);
	kernel_image_fini(&k->before);
	vec_free(&k->files);
	vec_free(&k->gone);
	map_fini(&k->met);
}

static int read_image(struct kernel_places *k)
{
	struct kernel_modules_seen seen;
	struct kernel_image image;
	int r;

	look_at_modules(k, &seen); /* first: what changes meanwhile is seen the next time */
	r = kernel_image_read(&image);

	if (r)
		return r;
	kernel_image_fini(&k->image);
	k->image = image;
	k->seen = seen;
	k->known = true;
	k->files.nr = 0; /* numbers of files that are the same are found again */
	return 0;
}

static int add_file(struct kernel_places *k, const struct kernel_file *file, uint32_t *ret)
{
	int r = profile_add_file(k->profile, file->name, file->build_id, file->build_id_len, ret);

	/* A module may be somewhere else than it was before. */
	if (!r && file->end) {
		k->profile->files.items[*ret].start = file->start;
		k->profile->files.items[*ret].end = file->end;
	}
	return r;
}

static bool is_same(const struct kernel_file *a, const struct kernel_file *b)
{
	return a->start == b->start && a->end == b->end && !strcmp(a->name, b->name) &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

enum place {
	PLACE_KERNEL,
	PLACE_MODULE,
	PLACE_UNSURE, /* there are two modules which it may be: one has taken the other's place */
};

static int file_number(struct kernel_places *k, uint64_t address, uint32_t *ret,
		       enum place *ret_place)
{
	const struct kernel_file *file = kernel_image_find(&k->image, address), *was;
	bool is_unsure = false;
	uint32_t *number;
	int r = 0;

	if (k->before.nr) {
		was = kernel_image_find(&k->before, address);
		if (file == k->image.files) {
			*ret_place = was == k->before.files ? PLACE_KERNEL : PLACE_MODULE;
			return add_file(k, was, ret);
		}
		is_unsure = !is_same(was, file);
		if (is_unsure)
			file = k->image.files;
	}
	*ret_place = is_unsure		      ? PLACE_UNSURE
		     : file == k->image.files ? PLACE_KERNEL
					      : PLACE_MODULE;
	while (!r && k->files.nr < k->image.nr)
		r = vec_push(&k->files, UINT32_MAX);
	if (r)
		return r;
	number = &k->files.items[file - k->image.files];
	if (*number == UINT32_MAX)
		r = add_file(k, file, number);
	*ret = *number;
	return r;
}

static bool is_text(const struct kernel_places *k, uint64_t address)
{
	return address - k->text_start < k->text_end - k->text_start;
}

/* Of what is in no module, and not the kernel's own. */
static uint32_t scope_of(const struct kernel_places *k, uint64_t address)
{
	for (size_t i = k->gone.nr; i-- > 0;)
		if (address - k->gone.items[i].start <
		    k->gone.items[i].end - k->gone.items[i].start)
			return k->scope + 1 + (uint32_t)i;
	return k->scope;
}

static int note_met(struct kernel_places *k, uint64_t address)
{
	if (is_text(k, address) || k->met.nr >= KERNEL_PLACES_MAX)
		return 0;
	return map_put(&k->met, address >> KERNEL_PLACE_SHIFT, 1);
}

/* Mostly nobody was ever seen in it. */
static bool was_met(const struct kernel_places *k, uint64_t start, uint64_t end)
{
	uint64_t at = start >> KERNEL_PLACE_SHIFT, last = (end - 1) >> KERNEL_PLACE_SHIFT;

	if (k->met.nr >= KERNEL_PLACES_MAX || last - at >= KERNEL_PLACES_MAX)
		return true;
	for (; at <= last; at++)
		if (map_get(&k->met, at))
			return true;
	return false;
}

int kernel_places_find(struct kernel_places *k, uint64_t address, uint32_t *ret_file,
		       uint32_t *ret_scope)
{
	int r = k->known ? 0 : read_image(k);
	enum place place;

	if (!r)
		r = file_number(k, address, ret_file, &place);
	if (r)
		return r;
	*ret_scope = place == PLACE_UNSURE			    ? KERNEL_SCOPE_UNSURE
		     : place == PLACE_MODULE || is_text(k, address) ? 0
								    : scope_of(k, address);
	return note_met(k, address);
}

/* Is what was there at the time of `before` there still? */
static bool has_all(const struct kernel_image *now, const struct kernel_image *before)
{
	for (size_t i = 1; i < before->nr; i++) {
		const struct kernel_file *was = &before->files[i];
		const struct kernel_file *is = kernel_image_find(now, was->start);

		if (!is_same(is, was))
			return false;
	}
	return true;
}

enum kernel_change kernel_places_look(struct kernel_places *k)
{
	struct kernel_modules_seen seen = k->seen;
	struct kernel_image before;
	int r;

	/* What was found in it since the last look is not there any more. */
	k->version += k->has_changed;
	k->has_changed = false;
	kernel_image_fini(&k->before);
	seen.nr = count_modules(k);
	seen.nr_events = count_events(k);
	if (seen.nr == k->seen.nr && seen.nr_events == k->seen.nr_events)
		return KERNEL_SAME;
	seen.names = hash_names(k);
	if (seen.names == k->seen.names && seen.names) {
		k->seen = seen;
		return KERNEL_SAME;
	}
	if (!k->known) {
		k->seen = seen;
		return KERNEL_MORE;
	}
	before = k->image;
	k->image = (struct kernel_image){ 0 };
	r = read_image(k);
	if (r) {
		log_debug("cannot read which modules there are: %s", strerror(-r));
		k->image = before;
		return KERNEL_SAME;
	}
	k->before = before;
	k->has_changed = true;
	k->version++;
	return has_all(&k->image, &before) ? KERNEL_MORE : KERNEL_LESS;
}

static void begin_scopes_anew(struct kernel_places *k)
{
	k->scope += (uint32_t)k->gone.nr + 1;
	k->gone.nr = 0;
}

void kernel_places_lost(struct kernel_places *k)
{
	begin_scopes_anew(k);
	k->version++;
}

enum kernel_change kernel_places_code(struct kernel_places *k, uint64_t start, uint64_t len,
				      bool is_gone)
{
	struct kernel_gone gone = { .start = start, .end = start + len };

	if (!is_gone)
		return KERNEL_MORE;
	if (!len || gone.end < start || !was_met(k, start, gone.end))
		return KERNEL_SAME;
	/* All frames of such code are others then, once. */
	if (k->gone.nr == GONE_MAX)
		begin_scopes_anew(k);
	if (vec_push(&k->gone, gone)) {
		log_debug("code of the kernel may be called what was there before: out of memory");
		return KERNEL_SAME;
	}
	k->version++;
	return KERNEL_LESS;
}

void kernel_places_collected(struct kernel_places *k, const struct profile_collected *c)
{
	for (size_t i = 0; i < k->files.nr; i++)
		if (k->files.items[i] != UINT32_MAX)
			k->files.items[i] = profile_moved(&c->files, k->files.items[i]);
}
