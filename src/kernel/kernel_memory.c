// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_memory.h"
#include "util/cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK = 64 << 10 };

/* The value of the program's map. */
struct request {
	uint64_t address, size;
	uint8_t data[CHUNK];
};

struct kernel_memory {
	int map, program;
	struct request *request;
};

static int load_program(int map)
{
	const struct bpf_insn insns[] = {
		/* r6 = request; r3 = r6->address; r2 = r6->size */
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_6,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = map },
		{ 0 },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW,
		  .dst_reg = BPF_REG_3,
		  .src_reg = BPF_REG_6,
		  .off = offsetof(struct request, address) },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_6,
		  .off = offsetof(struct request, size) },
		/* if (!r3) the current task, into r6->data, and return 0 */
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_3, .off = 4 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_task },
		{ .code = BPF_STX | BPF_MEM | BPF_DW,
		  .dst_reg = BPF_REG_6,
		  .src_reg = BPF_REG_0,
		  .off = offsetof(struct request, data) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
		/* r0 = 1; if (r2 <= CHUNK) r0 = bpf_probe_read_kernel(r6->data, r2, r3) */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_JGT | BPF_K, .dst_reg = BPF_REG_2, .off = 3, .imm = CHUNK },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K,
		  .dst_reg = BPF_REG_1,
		  .imm = offsetof(struct request, data) },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel },
		/* return r0 */
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "sonde_read", "Dual BSD/GPL", insns,
			       sizeof(insns) / sizeof(insns[0]), NULL);

	return fd < 0 ? -errno : fd;
}

int kernel_memory_new(struct kernel_memory **ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_(kernel_memory_free_p) struct kernel_memory *m = calloc(1, sizeof(*m));
	void *mapped;

	if (!m)
		return -ENOMEM;
	m->program = -1;
	m->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_read", sizeof(uint32_t),
				sizeof(struct request), 1, &opts);
	if (m->map < 0)
		return -errno;
	mapped = mmap(NULL, sizeof(struct request), PROT_READ | PROT_WRITE, MAP_SHARED, m->map, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	m->request = mapped;
	m->program = load_program(m->map);
	if (m->program < 0)
		return m->program;
	*ret = TAKE_PTR(m);
	return 0;
}

void kernel_memory_free(struct kernel_memory *m)
{
	if (!m)
		return;
	if (m->request)
		munmap(m->request, sizeof(*m->request));
	if (m->program >= 0)
		close(m->program);
	if (m->map >= 0)
		close(m->map);
	free(m);
}

int kernel_memory_task(struct kernel_memory *m, uint64_t *ret)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	m->request->address = 0;
	if (bpf_prog_test_run_opts(m->program, &opts))
		return -errno;
	memcpy(ret, m->request->data, sizeof(*ret));
	return *ret ? 0 : -ENOENT;
}

int kernel_memory_program(const struct kernel_memory *m)
{
	return m->program;
}

int kernel_memory_read(struct kernel_memory *m, uint64_t address, void *to, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	size_t done, n;

	if (!address)
		return -EFAULT;
	for (done = 0; done < size; done += n) {
		n = size - done < CHUNK ? size - done : CHUNK;
		m->request->address = address + done;
		m->request->size = n;
		if (bpf_prog_test_run_opts(m->program, &opts))
			return -errno;
		if (opts.retval)
			return -EFAULT;
		memcpy((char *)to + done, m->request->data, n);
	}
	return 0;
}
