// SPDX-License-Identifier: Apache-2.0
/* Names of real BPF programs that come and go, mostly at one and the same place. */
#include "symbolize/test_decoder.h"

#include "process/side_band.h"
#include "symbol/kallsyms.h"

#include <bpf/bpf.h>
#include <linux/bpf_common.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Others' news are in the rings, too: room for what they have while we get no turn. */
enum { RING_PAGES = 256, PROGRAMS = 300 };

static struct {
	struct test_decoder of;
	struct cpu_set *cpus;
	struct side_band *side_band;
	struct side_events events;
} t;

TEST_SKIP_REASON()
{
	return geteuid() ? "loading BPF programs needs root" : NULL;
}

static void set_up(void)
{
	ASSERT_OK(cpu_set_open(&t.cpus));
	ASSERT_OK(side_band_open(t.cpus, RING_PAGES, &t.side_band));
	test_decoder_init(&t.of);
}

static void tear_down(void)
{
	test_decoder_fini(&t.of);
	side_events_fini(&t.events);
	side_band_free(t.side_band);
	cpu_set_free(t.cpus);
}

static void take_events(void)
{
	ASSERT_OK(side_band_drain(t.side_band, &t.events));
	for (size_t i = 0; i < t.events.events.nr; i++) {
		const struct side_event *e = &t.events.events.items[i];

		if (e->type == SIDE_CODE || e->type == SIDE_CODE_GONE)
			decoder_on_kernel_code(&t.of.decoder, e, t.events.text.items + e->text);
		else if (e->type == SIDE_LOST)
			decoder_on_lost_events(&t.of.decoder);
	}
}

/* The program of that number; its tag is its number's, too. Its address, or 0: it is interpreted.
 */
static int load_program(int number, uint64_t *ret_address)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = number },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	__u64 at = 0;
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "sonde_n%d", number);
	fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, name, "Dual BSD/GPL", insns, 2, NULL);
	ASSERT(fd >= 0);
	info.nr_jited_ksyms = 1;
	info.jited_ksyms = (uintptr_t)&at;
	ASSERT_OK(bpf_obj_get_info_by_fd(fd, &info, &len));
	*ret_address = at;
	return fd;
}

static uint32_t sample_at(uint64_t address)
{
	static const struct mapping_snapshot snapshot;
	const __u64 kernel[] = { address };
	const struct decoder_stack stack = { .pid = 1,
					     .snapshot = &snapshot,
					     .kernel = kernel,
					     .nr_kernel = 1,
					     .stop = STOP_COMPLETE };
	uint32_t id;

	ASSERT_OK(decoder_add(&t.of.decoder, &stack, &id));
	return id;
}

static const char *name_of(uint32_t stack)
{
	const struct profile_stack *s = &t.of.profile.stacks.items[stack];
	static char label[128];

	profile_frame_label(&t.of.profile, t.of.profile.stack_frames.items[s->first], 0, false,
			    label, sizeof(label));
	return label;
}

static void expect_program(uint32_t stack, int number)
{
	char want[32];

	snprintf(want, sizeof(want), "_sonde_n%d_[k]", number);
	ck_assert_msg(strncmp(name_of(stack), "bpf_prog_", 9) == 0 &&
			      strlen(name_of(stack)) > strlen(want) &&
			      !strcmp(name_of(stack) + strlen(name_of(stack)) - strlen(want), want),
		      "%s is not %s", name_of(stack), want);
}

/* Whether the kernel's symbols are read once for all of them others decide, who load trampolines.
 */
TEST(each_program_has_its_name)
{
	static uint64_t addresses[PROGRAMS];
	uint64_t address;
	int fd, reused = 0, reads = 0;
	uint32_t stack;

	set_up();
	for (int i = 0; i < PROGRAMS; i++) {
		uint64_t read_ns = t.of.decoder.symbolizer.kernel_read_ns;

		fd = load_program(i, &address);
		take_events();
		if (!address) {
			close(fd);
			break;
		}
		addresses[i] = address;
		for (int k = 0; k < i; k++)
			if (addresses[k] == address) {
				reused++;
				break;
			}
		stack = sample_at(address);
		/* Some have gone before frames are named. */
		if (i % 3)
			ASSERT_OK(decoder_name_ready(&t.of.decoder));
		if (i % 3 == 1)
			expect_program(stack, i);
		close(fd);
		take_events();
		expect_program(stack, i);
		reads += t.of.decoder.symbolizer.kernel_read_ns != read_ns;
	}
	printf("# %d of them where one was before, kernel symbols read %d times\n", reused, reads);
	tear_down();
}

/* Of such a one nobody tells. */
TEST(a_program_that_was_there_before_has_its_name)
{
	uint64_t address, other;
	int fd = load_program(4711, &address), second;
	uint32_t stack;

	if (!address)
		return;
	set_up();
	take_events();
	stack = sample_at(address);
	ASSERT_OK(decoder_name_ready(&t.of.decoder));
	expect_program(stack, 4711);
	close(fd);
	second = load_program(4712, &other);
	take_events();
	stack = sample_at(address);
	ASSERT_OK(decoder_name_ready(&t.of.decoder));
	if (other == address)
		expect_program(stack, 4712);
	else
		ASSERT(!strstr(name_of(stack), "sonde_n4711"));
	close(second);
	tear_down();
}
