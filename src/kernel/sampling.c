// SPDX-License-Identifier: Apache-2.0
#include "kernel/sampling.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(const struct sampling *s, uint32_t cpu, struct sampling_cpu *ret)
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
	*ret = (struct sampling_cpu){ .link = link, .fd = fd, .online = true };
	return 0;
}

static bool is_wanted(const struct sampling *s, uint32_t cpu)
{
	return !s->only_cpus || s->only_cpus[cpu / 64] & UINT64_C(1) << cpu % 64;
}

int sampling_set_cpu(void *ctx, uint32_t cpu, bool online)
{
	struct sampling *s = ctx;

	while (s->cpus.nr <= cpu) {
		int r = vec_push(&s->cpus, (struct sampling_cpu){ 0 });

		if (r)
			return r;
	}
	if (online && (s->paused || !is_wanted(s, cpu))) {
		s->cpus.items[cpu].online = true;
		return 0;
	}
	if (online)
		return open_event(s, cpu, &s->cpus.items[cpu]);
	bpf_link__destroy(s->cpus.items[cpu].link); /* closes the event too */
	s->cpus.items[cpu] = (struct sampling_cpu){ 0 };
	return 0;
}

int sampling_set_frequency(struct sampling *s, uint32_t frequency_hz)
{
	struct sampling next = *s;
	int r = 0;

	next.frequency_hz = frequency_hz;
	next.cpus = (typeof(next.cpus)){ 0 };
	for (uint32_t cpu = 0; cpu < s->cpus.nr && !r; cpu++) {
		struct sampling_cpu now = { .online = s->cpus.items[cpu].online };

		/* While it is paused, those with the old frequency are closed: none is needed. */
		if (s->cpus.items[cpu].link && !s->paused)
			r = open_event(&next, cpu, &now);
		/* It goes just now, which is told as any CPU's going. */
		if (r == -ENODEV)
			r = 0;
		if (!r)
			r = vec_push(&next.cpus, now);
		if (r)
			bpf_link__destroy(now.link);
	}
	if (r) {
		sampling_fini(&next);
		return r;
	}
	sampling_fini(s);
	*s = next;
	return 0;
}

/* Those that came, or got another frequency, meanwhile were never opened. */
static int resume_cpu(const struct sampling *s, uint32_t cpu, struct sampling_cpu *c)
{
	int r;

	if (c->link)
		return ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
	if (!c->online || !is_wanted(s, cpu))
		return 0;
	r = open_event(s, cpu, c);
	/* It goes just now, which is told as any CPU's going. */
	return r == -ENODEV ? 0 : r;
}

int sampling_pause(struct sampling *s, bool paused)
{
	int r = 0;

	s->paused = paused;
	for (uint32_t cpu = 0; cpu < s->cpus.nr; cpu++) {
		struct sampling_cpu *c = &s->cpus.items[cpu];
		int err = 0;

		if (!paused)
			err = resume_cpu(s, cpu, c);
		else if (c->link && ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0) < 0)
			err = -errno;
		r = r ? r : err;
	}
	return r;
}

void sampling_fini(struct sampling *s)
{
	for (size_t i = 0; i < s->cpus.nr; i++)
		bpf_link__destroy(s->cpus.items[i].link);
	vec_free(&s->cpus);
}
