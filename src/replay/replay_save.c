// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_save.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64, HOST_SP = X86_RSP };
#else
enum { HOST_MACHINE = EM_AARCH64, HOST_SP = A64_SP };
#endif

struct replay_save {
	struct publisher *publisher;
	int dir_fd;
	uint32_t nr_cases, max_cases;
	uint64_t nr_compared, nr_different;
	struct map kept; /* shapes of walks that have a case already */
	/* The last raw record. */
	struct sample_header header;
	struct sample_raw raw;
	struct replay_memory memory;
	uint32_t nr_words;
	enum stop_reason stop;
	__u64 words[SAMPLE_WORDS_MAX];
};

int replay_save_open(const char *dir, uint32_t max_cases, struct replay_save **ret)
{
	struct replay_save *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (mkdir(dir, 0755) && errno != EEXIST) {
		free(s);
		return -errno;
	}
	s->dir_fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (s->dir_fd < 0) {
		free(s);
		return -errno;
	}
	s->max_cases = max_cases;
	*ret = s;
	return 0;
}

void replay_save_free(struct replay_save *s)
{
	if (!s)
		return;
	close(s->dir_fd);
	map_fini(&s->kept);
	replay_memory_fini(&s->memory);
	free(s);
}

void replay_save_file(struct replay_save *s, const char *name, const uint8_t *data, size_t size)
{
	_cleanup_fclose_ FILE *out = NULL;
	int fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0644);
	int r = 0;

	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (out)
		r = replay_cases_pack(data, size, out);
	if (!out || r)
		log_debug("cannot write the replay case %s: %s", name, strerror(out ? -r : errno));
	else
		s->nr_cases++;
}

/* --- samples of a recording ------------------------------------------------------------------ */

static int begin(void *ctx, struct publisher *p)
{
	struct replay_save *s = ctx;

	s->publisher = p;
	return 0;
}

static void keep_raw(void *ctx, const struct sample_header *h, const struct sample_raw *raw,
		     const struct stack_copy *stack, const struct walk *walk, enum stop_reason stop)
{
	struct replay_save *s = ctx;
	struct stack_chunk chunk;
	uint32_t i;

	s->header = *h;
	s->raw = *raw;
	replay_memory_cut(&s->memory, 0);
	s->memory.full = false;
	for (i = 0; stack_copy_chunk(stack, i, &chunk); i++)
		replay_memory_add(&s->memory, chunk.addr, chunk.bytes, chunk.size);
	replay_memory_blank(&s->memory, walk->regs[HOST_SP] + REPLAY_KEPT_ABOVE, UINT64_MAX);
	replay_memory_add(&s->memory, raw->pc - RAW_CODE_BEFORE, raw->code, sizeof(raw->code));
	s->nr_words = walk->full.nr_words;
	s->stop = stop;
	memcpy(s->words, walk->words, s->nr_words * sizeof(*s->words));
}

static void keep_case(struct replay_save *s, const struct mapping_snapshot *snapshot)
{
	const struct replay_capture capture = {
		.publisher = s->publisher,
		.snapshot = snapshot,
		.machine = HOST_MACHINE,
		.max_frames = SAMPLE_FRAMES_DEFAULT,
		.pc = s->raw.pc,
		.regs = (const uint64_t *)s->raw.regs,
		.memory = &s->memory,
		.words = s->words,
		.nr_words = s->nr_words,
		.stop = s->stop,
	};
	_cleanup_free_ uint8_t *data = NULL;
	char name[64];
	size_t size;

	if (replay_memory_merge(&s->memory) || replay_case_make(&capture, &data, &size))
		return;
	snprintf(name, sizeof(name), "%.15s-%u.case.zst", s->header.comm, s->nr_cases);
	replay_save_file(s, name, data, size);
}

/* Frames of runtimes are found in memory that a raw record has no copy of. */
static bool is_native(const __u64 *words, size_t nr)
{
	for (size_t i = 0; i < nr; i += 1 + FRAME_EXTRA(words[i]))
		if (FRAME_RUNTIME(words[i]) != RUNTIME_NATIVE)
			return false;
	return true;
}

/* It is the raw record's sample, if its time and CPU are the last raw record's. */
static void compare_full(void *ctx, const struct sample_header *h, const struct sample_full *full,
			 const __u64 *words)
{
	struct replay_save *s = ctx;
	const struct mapping_snapshot *snapshot =
		publisher_snapshot(s->publisher, full->generation);
	uint64_t shape;

	if (h->time_ns != s->header.time_ns || h->cpu != s->header.cpu || !snapshot ||
	    s->stop == STOP_STACK_COPY_END || !is_native(words, full->nr_words))
		return;
	s->nr_compared++;
	if (s->stop != h->stop || s->nr_words != full->nr_words ||
	    memcmp(s->words, words, s->nr_words * sizeof(*words))) {
		s->nr_different++;
		log_debug("the walks of a sample of %s differ: host %u words, ended %d; kernel %u, "
			  "%d",
			  h->comm, s->nr_words, s->stop, full->nr_words, h->stop);
		return;
	}
	/* One case a shape of leaf code and depth is enough. */
	shape = s->nr_words ? (words[0] & 0xfff) ^ s->nr_words << 16 ^ (uint64_t)s->stop << 48 : 0;
	if (s->nr_cases < s->max_cases && !map_get(&s->kept, shape) && !map_put(&s->kept, shape, 1))
		keep_case(s, snapshot);
}

struct sample_observer replay_save_observer(struct replay_save *s)
{
	return (struct sample_observer){
		.ctx = s,
		.begin = begin,
		.raw = keep_raw,
		.full = compare_full,
	};
}

void replay_save_counts(const struct replay_save *s, uint64_t *ret_compared,
			uint64_t *ret_different)
{
	*ret_compared = s->nr_compared;
	*ret_different = s->nr_different;
}
