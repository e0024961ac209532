// SPDX-License-Identifier: Apache-2.0
#include "agent/replay_save.h"
#include "bpf/walk.bpf.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
enum { RAW_SP = X86_RSP };
#else
enum { RAW_SP = A64_SP };
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
	uint8_t stack[RAW_STACK_MAX];
	uint32_t nr_words;
	enum stop_reason stop;
	__u64 words[SAMPLE_WORDS_MAX];
};

int replay_save_open(const char *dir, uint32_t max_cases, struct publisher *p,
		     struct replay_save **ret)
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
	s->publisher = p;
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
	free(s);
}

void replay_save_raw(struct replay_save *s, const struct sample_header *h,
		     const struct sample_raw *raw, const uint8_t *stack, const struct walk *walk,
		     enum stop_reason stop)
{
	uint64_t used;

	s->header = *h;
	s->raw = *raw;
	/* What lies above the walk's last frame is none of our business: arguments, environment. */
	used = walk->regs[RAW_SP] + 64 - raw->stack_start;
	if (used > raw->stack_size)
		used = raw->stack_size;
	memset(s->stack, 0, raw->stack_size);
	memcpy(s->stack, stack, used);
	s->nr_words = walk->full.nr_words;
	s->stop = stop;
	memcpy(s->words, walk->words, s->nr_words * sizeof(*s->words));
}

static void keep_case(struct replay_save *s, const struct block *block)
{
	_cleanup_fclose_ FILE *out = NULL;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%.15s-%u.case", s->header.comm, s->nr_cases);
	fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out || replay_case_write(out, s->publisher, block, &s->raw, s->stack, s->words,
				      s->nr_words, s->stop))
		log_debug("cannot write the replay case %s", name);
	else
		s->nr_cases++;
}

void replay_save_full(struct replay_save *s, const struct sample_header *h,
		      const struct sample_full *full, const __u64 *words)
{
	const struct block *block = publisher_block(s->publisher, full->generation);
	uint64_t shape;

	if (h->time_ns != s->header.time_ns || h->cpu != s->header.cpu || !block ||
	    s->stop == STOP_STACK_COPY_END)
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
		keep_case(s, block);
}

void replay_save_counts(const struct replay_save *s, uint64_t *ret_compared,
			uint64_t *ret_different)
{
	*ret_compared = s->nr_compared;
	*ret_different = s->nr_different;
}
