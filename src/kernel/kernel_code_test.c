// SPDX-License-Identifier: Apache-2.0
/* The kernel's own lists of code that comes and goes, as they are read out of its memory. */
#include "kernel/kernel_code.h"
#include "util/cleanup.h"
#include "test.h"
#include "kernel/test_kernel_symbol.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

TEST_SKIP_REASON()
{
	if (geteuid())
		return "loading BPF programs needs root";
#ifdef __x86_64__
	return NULL;
#else
	return "kernel stacks are walked by the kernel here";
#endif
}

static struct kernel_mades mades;

static void list(struct kernel_code_list *l)
{
	kernel_code_list_read(l, &mades);
	printf("# %u pieces of code\n", mades.nr);
	for (uint32_t i = 1; i < mades.nr; i++)
		ASSERT(mades.items[i - 1].start <= mades.items[i].start);
}

static const struct kernel_made *made_at(uint64_t address)
{
	for (uint32_t i = 0; i < mades.nr; i++)
		if (address - mades.items[i].start < mades.items[i].end - mades.items[i].start)
			return &mades.items[i];
	return NULL;
}

static struct kernel_code_list *list_new(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct kernel_code_list *l;
	struct kernel_code_layout layout;

	ASSERT_PTR_NONNULL(btf);
	ASSERT_OK(kernel_code_layout_of(btf, test_kernel_symbol("modules"), &layout));
	btf__free(btf);
	ASSERT_OK(kernel_code_list_new(&layout, &l));
	return l;
}

static int load_program(uint64_t *ret_address)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "sonde_comes", "Dual BSD/GPL", insns, 2,
			       NULL);
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	__u64 at = 0;

	ASSERT(fd >= 0);
	info.nr_jited_ksyms = 1;
	info.jited_ksyms = (uintptr_t)&at;
	ASSERT_OK(bpf_obj_get_info_by_fd(fd, &info, &len));
	*ret_address = at;
	return fd;
}

TEST(a_program_is_listed_as_long_as_it_is_there)
{
	_cleanup_(kernel_code_list_free_p) struct kernel_code_list *l = list_new();
	enum { LOOKS_MAX = 10000 };
	const struct kernel_made *m;
	uint64_t address, link;
	int fd = load_program(&address);

	list(l);
	m = made_at(address);
	if (!m) {
		ASSERT_EQ(address, 0); /* interpreted */
		return;
	}
	ASSERT_EQ(m->kind, KERNEL_MADE_BPF);
	ASSERT(m->start <= address && address < m->end);
	link = m->link;
	close(fd);
	/* It is freed a little later: nothing tells when. Another one may be there then. */
	for (int i = 0; i < LOOKS_MAX && m && m->link == link; i++) {
		usleep(10000);
		list(l);
		m = made_at(address);
	}
	ASSERT(!m || m->link != link);
}

/* Others may load programs meanwhile, but not in each of so many looks. */
TEST(a_program_that_stays_is_read_once)
{
	_cleanup_(kernel_code_list_free_p) struct kernel_code_list *l = list_new();
	uint64_t address, before = 0, after = 1;
	int fd = load_program(&address);

	if (!address) /* interpreted */
		return;
	for (int i = 0; i < 1000 && before != after; i++) {
		list(l);
		before = kernel_code_list_nr_read(l);
		ASSERT_PTR_NONNULL(made_at(address));
		list(l);
		after = kernel_code_list_nr_read(l);
		ASSERT_PTR_NONNULL(made_at(address));
		usleep(1000);
	}
	ASSERT_EQ(before, after);
	close(fd);
}

/* As `sonde agent` does behind its start. */
TEST(who_may_not_ask_keeps_what_was_listed)
{
	_cleanup_(kernel_code_list_free_p) struct kernel_code_list *l = list_new();
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };
	uint32_t nr, id = 0;

	list(l);
	nr = mades.nr;
	ASSERT_OK(syscall(SYS_capget, &header, caps));
	caps[0].effective &= ~(1u << CAP_SYS_ADMIN);
	ASSERT_OK(syscall(SYS_capset, &header, caps));
	ASSERT(bpf_prog_get_next_id(id, &id) < 0);
	list(l);
	ASSERT(mades.nr >= nr || !nr);
}
