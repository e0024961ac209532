// SPDX-License-Identifier: Apache-2.0
#include "kernel/sampling.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(const struct sampling *s, uint32_t cpu, struct bpf_link **ret)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = s->frequency_hz,
		.exclude_idle = !s->idle,
		.exclude_guest = 1,
	};
	struct bpf_link *link;
	int fd, r;

	if (s->event.period) {
		attr.type = s->event.type;
		attr.config = s->event.config;
		attr.freq = 0;
		attr.sample_period = s->event.period;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event(s->program, fd);
	if (!link) {
		r = -errno;
		close(fd);
		return r;
	}
	*ret = link;
	return 0;
}

int sampling_set_cpu(void *ctx, uint32_t cpu, bool online)
{
	struct sampling *s = ctx;

	while (s->links.nr <= cpu) {
		int r = vec_push(&s->links, NULL);

		if (r)
			return r;
	}
	if (online)
		return open_event(s, cpu, &s->links.items[cpu]);
	bpf_link__destroy(s->links.items[cpu]); /* closes the event too */
	s->links.items[cpu] = NULL;
	return 0;
}

int sampling_set_frequency(struct sampling *s, uint32_t frequency_hz)
{
	struct sampling next = *s;
	int r = 0;

	next.frequency_hz = frequency_hz;
	next.links = (typeof(next.links)){ 0 };
	for (uint32_t cpu = 0; cpu < s->links.nr && !r; cpu++) {
		struct bpf_link *link = NULL;

		if (s->links.items[cpu])
			r = open_event(&next, cpu, &link);
		/* It goes just now, which is told as any CPU's going. */
		if (r == -ENODEV)
			r = 0;
		if (!r)
			r = vec_push(&next.links, link);
		if (r)
			bpf_link__destroy(link);
	}
	if (r) {
		sampling_fini(&next);
		return r;
	}
	sampling_fini(s);
	*s = next;
	return 0;
}

void sampling_fini(struct sampling *s)
{
	for (size_t i = 0; i < s->links.nr; i++)
		bpf_link__destroy(s->links.items[i]);
	vec_free(&s->links);
}
