// SPDX-License-Identifier: Apache-2.0
/*
 * htlhash (OpenTelemetry semantic conventions, profiles/mappings.md, "Algorithm for
 * process.executable.build_id.htlhash") and Go's build id.
 *
 * Go's linker writes the id twice: as a note, and at the begin of the text, where cmd/go looks for
 * it in files of other formats. The second one is left when notes were removed.
 */
#include "elf/file_id.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "elf/elf_note.h"
#include "util/cleanup.h"
#include "util/read_file.h"

enum {
	HTL_PART = 4096,
	HTL_INPUT_MAX = 2 * HTL_PART + sizeof(uint64_t),
	SHA256_SIZE = 32,

	GO_NOTE_TYPE = 4,
	/* Bytes of notes that are looked at; Go's linker writes just one of 100. */
	NOTES_MAX = 64 << 10,
	NOTES_TRIED_MAX = 64,
	/* How much of the text is searched: cmd/go looks no further than this into a file. */
	TEXT_SEARCHED = 32 << 10,
};

/* --- htlhash ---------------------------------------------------------------------------------- */

/* `input` has the two parts, and room for the length. */
static int hash_parts(uint8_t *input, size_t parts, uint64_t size, uint8_t ret[static FILE_ID_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	uint64_t be_size = htobe64(size);

	memcpy(input + parts, &be_size, sizeof(be_size));
	if (EVP_Digest(input, parts + sizeof(be_size), digest, NULL, EVP_sha256(), NULL) != 1)
		return -ENOMEM; /* nothing else can go wrong with the default provider's digest */
	memcpy(ret, digest, FILE_ID_SIZE);
	return 0;
}

int file_id_of_fd(int fd, uint8_t ret[static FILE_ID_SIZE])
{
	uint8_t input[HTL_INPUT_MAX];
	struct stat st;
	size_t part;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL; /* it has no end, or reading it may block for ever */
	part = st.st_size < HTL_PART ? (size_t)st.st_size : HTL_PART;
	r = read_all_at(fd, 0, input, part);
	if (!r)
		r = read_all_at(fd, (uint64_t)st.st_size - part, input + part, part);
	return r ? r : hash_parts(input, 2 * part, (uint64_t)st.st_size, ret);
}

int file_id_of_memory(const void *data, size_t size, uint8_t ret[static FILE_ID_SIZE])
{
	uint8_t input[HTL_INPUT_MAX];
	size_t part = size < HTL_PART ? size : HTL_PART;

	if (part) {
		memcpy(input, data, part);
		memcpy(input + part, (const uint8_t *)data + size - part, part);
	}
	return hash_parts(input, 2 * part, size, ret);
}

/* --- identity --------------------------------------------------------------------------------- */

/* What is hashed; without padding. */
struct identity_words {
	uint64_t kind; /* of file system */
	uint64_t fs;   /* the device, or the file system's id */
	uint64_t inode, size;
	uint64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};

static int hash_identity(const void *data, size_t size, struct file_identity *ret)
{
	uint8_t digest[SHA256_SIZE];

	/* Sizes and mtimes can be chosen: it must be a hash that nobody can aim at. */
	if (EVP_Digest(data, size, digest, NULL, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	memcpy(ret->hash, digest, sizeof(ret->hash));
	return 0;
}

/* Which file system it is. False: its numbers may be another's one day, by chance or on purpose. */
static bool identify_fs(const struct stat *st, const struct statfs *fs, dev_t device,
			struct identity_words *w)
{
	uint64_t id;

	memcpy(&id, &fs->f_fsid, sizeof(id));
	w->kind = (uint32_t)fs->f_type;
	w->fs = st->st_dev;
	/* A loop device is the next image's at once, and some desktops let users mount images. */
	if (major(st->st_dev))
		return major(st->st_dev) != LOOP_MAJOR;
	switch (w->kind) {
	/* What users can mount. (virtiofs is a FUSE, too.) */
	case FUSE_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
		return false;
	case OVERLAYFS_SUPER_MAGIC:
		/* One over a FUSE has no id. */
		if (st->st_dev != device || !id)
			return false;
		w->fs = 0;
		return true;
	default: /* btrfs, NFS ...: their device numbers are given out anew at each mount */
		w->fs = id;
		return true;
	}
}

int file_identity_of_fd(int fd, dev_t device, struct file_identity *ret)
{
	struct identity_words w = { 0 };
	struct statfs fs;
	struct stat st;
	int r;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	ret->lasts = identify_fs(&st, &fs, device, &w);
	w.inode = st.st_ino;
	w.size = (uint64_t)st.st_size;
	w.mtime_s = (uint64_t)st.st_mtim.tv_sec;
	w.mtime_ns = (uint64_t)st.st_mtim.tv_nsec;
	w.ctime_s = (uint64_t)st.st_ctim.tv_sec;
	w.ctime_ns = (uint64_t)st.st_ctim.tv_nsec;
	r = hash_identity(&w, sizeof(w), ret);
	ret->hash[0] &= 0xfe;
	return r;
}

int file_identity_of_memory(const void *data, size_t size, struct file_identity *ret)
{
	int r = hash_identity(data, size, ret);

	ret->lasts = true;
	/* An image that has a file's words in it is not that file. */
	ret->hash[0] |= 1;
	return r;
}

/* --- Go --------------------------------------------------------------------------------------- */

/* What Go makes of its hashes; anything else is no id but bytes that look like one. */
static int take_id(const uint8_t *text, size_t size, char ret[static GO_BUILD_ID_MAX])
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-_/.";

	if (!size || size >= GO_BUILD_ID_MAX)
		return -ENOENT;
	for (size_t i = 0; i < size; i++) {
		if (!text[i] || !strchr(allowed, text[i]))
			return -ENOENT;
	}
	memcpy(ret, text, size);
	ret[size] = '\0';
	return 0;
}

static int find_note(const uint8_t *data, size_t size, char ret[static GO_BUILD_ID_MAX])
{
	struct elf_notes notes = { .data = data, .size = size, .align = 4 };
	struct elf_note note;

	while (elf_notes_next(&notes, &note)) {
		/* Go counts the padding in; 3 is what others would write. */
		if (note.type == GO_NOTE_TYPE && (note.owner_size == 4 || note.owner_size == 3) &&
		    !memcmp(note.owner, "Go", 3))
			return take_id(note.desc, note.size, ret);
	}
	return -ENOENT;
}

static int find_marker(const uint8_t *data, size_t size, char ret[static GO_BUILD_ID_MAX])
{
	static const char before[] = "\xff Go build ID: \"", after[] = "\"\n \xff";
	const uint8_t *begin = memmem(data, size, before, sizeof(before) - 1);
	const uint8_t *end;

	if (!begin)
		return -ENOENT;
	begin += sizeof(before) - 1;
	end = memmem(begin, size - (size_t)(begin - data), after, sizeof(after) - 1);
	return end ? take_id(begin, (size_t)(end - begin), ret) : -ENOENT;
}

/* Applies `find` to at most `max` bytes there. A place that the file does not have is -ENOENT. */
static int find_in(const struct elf_file *elf, uint64_t offset, uint64_t size, size_t max,
		   int (*find)(const uint8_t *data, size_t size, char *ret),
		   char ret[static GO_BUILD_ID_MAX])
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (offset >= elf->size)
		return -ENOENT;
	if (size > elf->size - offset)
		size = elf->size - offset;
	if (size > max)
		size = max;
	data = malloc(size + 1);
	if (!data)
		return -ENOMEM;
	r = elf_file_read(elf, offset, data, size);
	if (r)
		return r == -ENODATA ? -ENOENT : r;
	return find(data, size, ret);
}

static int go_note(const struct elf_file *elf, char ret[static GO_BUILD_ID_MAX])
{
	size_t tried = 0;
	int r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && i < elf->nr_segments && tried < NOTES_TRIED_MAX; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		if (segment->type != PT_NOTE)
			continue;
		tried++;
		r = find_in(elf, segment->offset, segment->filesz, NOTES_MAX, find_note, ret);
	}
	for (size_t i = 0; r == -ENOENT && i < elf->nr_sections && tried < NOTES_TRIED_MAX; i++) {
		const struct elf_section *section = &elf->sections[i];

		if (section->type != SHT_NOTE)
			continue;
		tried++;
		r = find_in(elf, section->offset, section->size, NOTES_MAX, find_note, ret);
	}
	return r;
}

int elf_file_go_build_id(const struct elf_file *elf, char ret[static GO_BUILD_ID_MAX])
{
	int r = go_note(elf, ret);

	for (size_t i = 0; r == -ENOENT && i < elf->nr_segments; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		/* The text of Go's own linker is the first executable segment's begin. */
		if (segment->type != PT_LOAD || !(segment->flags & PF_X))
			continue;
		return find_in(elf, segment->offset, segment->filesz, TEXT_SEARCHED, find_marker,
			       ret);
	}
	return r;
}
