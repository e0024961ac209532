// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_places.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { GONE_MAX = 1024 };

/* A folder of sysfs has a link for each folder in it (fs/kernfs/inode.c, kernfs_refresh_inode()).
 */
static uint64_t count_modules(const struct kernel_places *k)
{
	struct stat st;

	return k->modules_fd < 0 || fstat(k->modules_fd, &st) ? 0 : st.st_nlink;
}

void kernel_places_init(struct kernel_places *k, struct profile *profile)
{
	*k = (struct kernel_places){ .profile = profile };
	/* Each turn looks: finding the folder would be most of that. */
	k->modules_fd = open("/sys/module", O_PATH | O_DIRECTORY | O_CLOEXEC);
	k->nr_modules = count_modules(k);
}

void kernel_places_fini(struct kernel_places *k)
{
	/* One that was never begun has none. */
	if (k->profile)
		close_p(&k->modules_fd);
	kernel_image_fini(&k->image);
	kernel_image_fini(&k->before);
	vec_free(&k->files);
	vec_free(&k->gone);
	map_fini(&k->met);
}

static int read_image(struct kernel_places *k)
{
	uint64_t nr = count_modules(k);
	struct kernel_image image;
	int r = kernel_image_read(&image);

	if (r)
		return r;
	kernel_image_fini(&k->image);
	k->image = image;
	k->nr_modules = nr;
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

static int file_number(struct kernel_places *k, uint64_t address, uint32_t *ret)
{
	const struct kernel_file *file = kernel_image_find(&k->image, address);
	uint32_t *number;
	int r = 0;

	if (file == k->image.files && k->before.nr)
		return add_file(k, kernel_image_find(&k->before, address), ret);
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
	if (address - k->text_start < k->text_end - k->text_start || k->met.nr >= KERNEL_PLACES_MAX)
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

	if (!r)
		r = file_number(k, address, ret_file);
	if (r)
		return r;
	*ret_scope = scope_of(k, address);
	return note_met(k, address);
}

/* Is what was there at the time of `before` there still? */
static bool has_all(const struct kernel_image *now, const struct kernel_image *before)
{
	for (size_t i = 1; i < before->nr; i++) {
		const struct kernel_file *was = &before->files[i];
		const struct kernel_file *is = kernel_image_find(now, was->start);

		if (is->start != was->start || is->end != was->end ||
		    strcmp(is->name, was->name) != 0 || is->build_id_len != was->build_id_len ||
		    memcmp(is->build_id, was->build_id, is->build_id_len) != 0)
			return false;
	}
	return true;
}

enum kernel_change kernel_places_look(struct kernel_places *k)
{
	uint64_t nr = count_modules(k);
	struct kernel_image before;
	int r;

	kernel_image_fini(&k->before);
	if (nr == k->nr_modules)
		return KERNEL_SAME;
	if (!k->known) {
		k->nr_modules = nr;
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
	return has_all(&k->image, &before) ? KERNEL_MORE : KERNEL_LESS;
}

enum kernel_change kernel_places_code(struct kernel_places *k, uint64_t start, uint64_t len,
				      bool is_gone)
{
	struct kernel_gone gone = { .start = start, .end = start + len };

	if (!is_gone)
		return KERNEL_MORE;
	if (!len || gone.end < start || !was_met(k, start, gone.end))
		return KERNEL_SAME;
	/* All frames are others then, once. */
	if (k->gone.nr == GONE_MAX) {
		k->scope += GONE_MAX;
		k->gone.nr = 0;
	}
	if (vec_push(&k->gone, gone)) {
		log_debug("code of the kernel may be called what was there before: out of memory");
		return KERNEL_SAME;
	}
	return KERNEL_LESS;
}

void kernel_places_collected(struct kernel_places *k, const struct profile_collected *c)
{
	for (size_t i = 0; i < k->files.nr; i++)
		if (k->files.items[i] != UINT32_MAX)
			k->files.items[i] = profile_moved(&c->files, k->files.items[i]);
}
