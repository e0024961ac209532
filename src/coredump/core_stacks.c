// SPDX-License-Identifier: Apache-2.0
/*
 * From a core to a profile: the core's mappings become an offline process of the table (process.h),
 * which the publisher shows to the walker as it does a live one.
 */
#include "coredump/core_stacks.h"
#include "coredump/core_open.h"
#include "unwinder/host_walk.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	VDSO_SIZE_MAX = 1 << 20,
	/* Code without a file: a page with a signal trampoline (qemu) is told by its bytes. */
	STUB_SIZE_MAX = 64 << 10,
	STUB_OFFSET = 4096, /* where the code is in the ELF file that is made around it */
	/* A caller is looked up a byte before its address, and a trampoline may be the first. */
	STUB_BEFORE = 16,
	ARENA_MAX = 256 << 20,
	PAGE = 4096,
	POISON = 0xa5,
	/* Of stacks of so few words (a frame or two) that are said to be complete, such of zeros
	 * are found; so much is read for it. */
	FEW_WORDS = 4,
	ZEROS_READ = 4096,
	ZEROS_MAX = 256 << 20,
	/* How far below a stack an access is taken for its growth: frames are smaller. */
	OVERFLOW_REACH = 64 << 10,
};

/* --- mappings -------------------------------------------------------------------------------- */

/* A piece of the core's memory as an ELF file; -EFAULT if the core has not got it. */
static int add_image(struct core_stacks *s, const char *path, uint64_t start, uint64_t size,
		     uint32_t *ret)
{
	_cleanup_free_ uint8_t *image = malloc(size);
	int r;

	if (!image)
		return -ENOMEM;
	r = elf_core_memory(s->core, s->elf, start, image, size);
	if (!r)
		r = process_add_image(&s->unwinder.processes, path, image, size, ret);
	if (!r)
		TAKE_PTR(image);
	return r;
}

static bool has_trampoline(const struct elf_core *core, const uint8_t *code, size_t size)
{
	/* mov $15, %rax; syscall. mov x8, #139; svc #0. */
	static const uint8_t x86[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t a64[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

	return core->machine == EM_AARCH64 ? memmem(code, size, a64, sizeof(a64)) != NULL
					   : memmem(code, size, x86, sizeof(x86)) != NULL;
}

/*
 * Code of no file that signal handlers return to has no unwind information, but its rows can be
 * made if it is seen as a file's. -ENOENT: it is no such code.
 */
static int add_stub(struct core_stacks *s, uint64_t start, uint64_t size, uint32_t *ret)
{
	_cleanup_free_ uint8_t *image = NULL;
	Elf64_Ehdr header = { .e_ident = ELFMAG,
			      .e_type = ET_DYN,
			      .e_machine = s->core->machine,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1 };
	Elf64_Phdr segment = { .p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = STUB_OFFSET - STUB_BEFORE,
			       .p_vaddr = STUB_OFFSET - STUB_BEFORE,
			       .p_filesz = STUB_BEFORE + size,
			       .p_memsz = STUB_BEFORE + size };
	int r;

	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	if (size > STUB_SIZE_MAX)
		return -ENOENT;
	image = calloc(1, STUB_OFFSET + size);
	if (!image)
		return -ENOMEM;
	r = elf_core_memory(s->core, s->elf, start, image + STUB_OFFSET, size);
	if (r || !has_trampoline(s->core, image + STUB_OFFSET, size))
		return -ENOENT;
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), &segment, sizeof(segment));
	r = process_add_image(&s->unwinder.processes, "[sigreturn]", image, STUB_OFFSET + size,
			      ret);
	if (!r)
		TAKE_PTR(image);
	return r;
}

static int add_mapping(struct core_stacks *s, uint64_t start, uint64_t end, uint64_t offset,
		       uint32_t file)
{
	struct mapping m = { start, end, offset, file };
	int r = process_add_mapping(&s->unwinder.processes, s->proc, &m);

	return r == -ENOSPC ? 0 : r; /* it is counted */
}

/*
 * Without NT_FILE, code of files that were not found looks as if it were of none. Which of them has
 * this: the executable's entry point, and the dynamic linker's list, say; UINT32_MAX: not known.
 */
static uint32_t missing_file_at(const struct core_stacks *s, uint64_t start, uint64_t end)
{
	uint64_t entry = s->core->auxv.entry;

	for (uint32_t i = 0; i < s->files.items.nr; i++) {
		const struct core_file *file = &s->files.items.items[i];

		if (file->state != CORE_FILE_MISSING && file->state != CORE_FILE_DIFFERS)
			continue;
		if (file->is_exe && entry >= start && entry < end)
			return i;
		if (file->is_linked && start >= file->bias &&
		    (start == file->bias || start < file->dynamic))
			return i;
	}
	return UINT32_MAX;
}

static bool may_be_missing(const struct core_stacks *s)
{
	if (s->core->has_files)
		return false;
	if (s->files.list_is_cut)
		return true;
	for (size_t i = 0; i < s->files.items.nr; i++)
		if (s->files.items.items[i].state == CORE_FILE_MISSING ||
		    s->files.items.items[i].state == CORE_FILE_DIFFERS)
			return true;
	return false;
}

/* Code that can't be followed: a walk through it would be a guess. */
static int add_missing(struct core_stacks *s, uint64_t start, uint64_t end, const uint32_t *index)
{
	/* Of a file whose segments nobody knows: as if its offsets were its addresses. */
	static const struct file_segment all = { 0, 0, UINT64_MAX / 2 };
	uint32_t number = missing_file_at(s, start, end), file;
	const struct core_file *from = number == UINT32_MAX ? NULL : &s->files.items.items[number];
	struct mapped_file *to;
	int r = 0;

	if (!from && !s->has_unknown)
		r = process_add_file(&s->unwinder.processes, "[unknown]", -ENOENT, &s->unknown);
	if (r)
		return r;
	s->has_unknown |= !from;
	file = from ? index[number] : s->unknown;
	if (!from || !from->has_bias)
		return add_mapping(s, start, end, 0, file);
	to = s->unwinder.processes.files.items[file];
	to->segments.nr = 0;
	r = vec_push(&to->segments, all);
	return r ? r : add_mapping(s, start, end, start - from->bias, file);
}

/* Executable memory that no file is mapped to. */
static int add_anonymous(struct core_stacks *s, uint64_t start, uint64_t end, const uint32_t *index)
{
	uint64_t vdso = s->core->auxv.vdso, offset = 0;
	uint32_t file = MAPPING_ANON;
	int r = -ENOENT;

	if (vdso && vdso >= start && vdso < end && end - start <= VDSO_SIZE_MAX) {
		r = add_image(s, "[vdso]", start, end - start, &file);
		if (r && r != -ENOMEM) /* cut off: code of which nothing is known */
			r = process_add_file(&s->unwinder.processes, "[vdso]", r, &file);
	} else {
		r = add_stub(s, start, end - start, &file);
		if (!r) {
			offset = STUB_OFFSET - 1;
			start--;
		} else if (r != -ENOMEM) {
			if (may_be_missing(s))
				return add_missing(s, start, end, index);
			r = 0;
		}
	}
	return r ? r : add_mapping(s, start, end, offset, file);
}

static int add_piece(struct core_stacks *s, const struct core_mapping *m, uint64_t start,
		     uint64_t end, uint32_t index)
{
	struct mapping mapping = { start, end, m->offset + (start - m->start), index };
	const struct mapped_file *file = s->unwinder.processes.files.items[index];
	struct core_file *from = &s->files.items.items[m->file];
	uint64_t bias = mapping_bias(file, &mapping);

	/* 0 may also be what was made executable later. */
	if (file->is_elf && (bias || !from->has_bias)) {
		from->bias = bias;
		from->has_bias = true;
	}
	return add_mapping(s, start, end, mapping.offset, index);
}

/* An executable segment: pieces of files, and what lies between them. */
static int add_segment(struct core_stacks *s, const struct elf_core_segment *segment,
		       const uint32_t *index)
{
	uint64_t at = segment->vaddr, end = segment->vaddr + segment->memsz;
	const struct core_mapping *last = s->files.mappings.items + s->files.mappings.nr, *m;
	int r = 0;

	for (m = core_files_mapping_behind(&s->files, at); m < last && m->start < end && !r; m++) {
		uint64_t from = m->start > at ? m->start : at, to = m->end < end ? m->end : end;

		if (from > at)
			r = add_anonymous(s, at, from, index);
		if (!r)
			r = add_piece(s, m, from, to, index[m->file]);
		at = to;
	}
	return r || at >= end ? r : add_anonymous(s, at, end, index);
}

/*
 * What the core has no segment of (gcore leaves out what it keeps nothing of): code if the file
 * says so. Of a file that is not there nobody knows: then a frame in it is that, and the last.
 */
static int add_gaps(struct core_stacks *s, const struct core_mapping *m, uint32_t index)
{
	const struct core_file *file = &s->files.items.items[m->file];
	uint64_t at = m->start;

	if (file->elf ? !core_file_has(file, m->offset, PF_X)
		      : file->state == CORE_FILE_NO_CODE || file->state == CORE_FILE_MEMORY)
		return 0;
	while (at < m->end) {
		const struct elf_core_segment *segment = elf_core_segment_behind(s->core, at);
		uint64_t to = segment && segment->vaddr < m->end ? segment->vaddr : m->end;
		int r = at < to ? add_piece(s, m, at, to, index) : 0;

		if (r)
			return r;
		at = to < m->end ? segment->vaddr + segment->memsz : to;
	}
	return 0;
}

static int add_file(struct core_stacks *s, struct core_file *file, uint32_t *ret)
{
	struct mapped_file *added;
	int fd, r;

	if (file->memory.data) {
		r = process_add_image(&s->unwinder.processes, file->path, file->memory.data,
				      file->memory.size, ret);
		if (!r)
			file->memory = (struct elf_data){ 0 };
		if (!r || r == -ENOMEM)
			return r;
	}
	fd = file->elf				? fcntl(file->elf->fd, F_DUPFD_CLOEXEC, 0)
	     : file->state == CORE_FILE_DIFFERS ? -ESTALE
						: -ENOENT;
	r = process_add_file(&s->unwinder.processes, file->path, fd == -1 ? -errno : fd, ret);
	if (r)
		return r;
	added = s->unwinder.processes.files.items[*ret];
	/* Beside what --exe names, not where the core's was. */
	if (file->is_given)
		added->place = realpath(file->found, NULL);
	/* What the core's copy of its header says makes addresses in the file of frames. */
	for (size_t i = 0; i < file->segments.nr && added->state == FILE_UNREADABLE && !r; i++)
		r = vec_push(&added->segments, file->segments.items[i]);
	return r;
}

static int make_process(struct core_stacks *s)
{
	size_t nr = s->files.items.nr;
	_cleanup_free_ uint32_t *index = calloc(nr + 1, sizeof(*index));
	int r = process_add(&s->unwinder.processes, s->core->pid, &s->proc);

	if (!index)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !r; i++)
		r = add_file(s, &s->files.items.items[i], &index[i]);
	for (size_t i = 0; i < s->core->segments.nr && !r; i++) {
		const struct elf_core_segment *segment = &s->core->segments.items[i];

		/* The vsyscall page is emulated: no code runs there. */
		if (segment->flags & PF_X && !(segment->vaddr >> 63))
			r = add_segment(s, segment, index);
	}
	for (size_t i = 0; i < s->files.mappings.nr && !r; i++)
		r = add_gaps(s, &s->files.mappings.items[i],
			     index[s->files.mappings.items[i].file]);
	return r ? r : publisher_show(&s->unwinder.publisher, s->proc, 0);
}

/* --- walking --------------------------------------------------------------------------------- */

/*
 * The walker reads the stack in windows that begin a little below the stack pointer: below a stack
 * that has overflowed is nothing. Nothing was saved there either; should the walk look for
 * something all the same, it finds what leads nowhere.
 */
static int read_memory(void *ctx, __u64 addr, void *to, __u32 size)
{
	uint64_t below = PAGE - addr % PAGE;
	int r = core_files_memory(ctx, addr, to, size);

	if (r != -EFAULT || size < WINDOW_SIZE || below >= size)
		return r;
	memset(to, POISON, below);
	return core_files_memory(ctx, addr + below, (uint8_t *)to + below, size - below);
}

static int read_core(void *ctx, uint64_t addr, void *to, size_t size)
{
	return core_files_memory(ctx, addr, to, size);
}

static int walk_from(struct core_stacks *s, const struct walk_input *input, struct walk *walk)
{
	const struct walk_memory memory = { .read = read_memory, .ctx = &s->files };

	return host_walk(&s->unwinder.publisher, &memory, input, walk);
}

/*
 * A call (or jump) to where no code is: nothing was done there, so the stack is as the call left
 * it. Where it returns to: 0 if that is no code either.
 */
static uint64_t caller_of_nothing(const struct core_stacks *s, const struct elf_core_thread *thread,
				  __u64 *regs)
{
	uint64_t ra;

	memcpy(regs, thread->regs, sizeof(thread->regs));
	if (s->core->machine == EM_AARCH64) {
		ra = regs[A64_LR] &
		     (thread->address_mask ? thread->address_mask : (1ull << 48) - 1);
	} else {
		if (core_files_memory(&s->files, regs[X86_RSP], &ra, sizeof(ra)))
			return 0;
		regs[X86_RSP] += sizeof(ra);
	}
	return ra && process_mapping(s->proc, ra - 1) ? ra : 0;
}

static int walk_thread(struct core_stacks *s, const struct elf_core_thread *thread,
		       uint32_t max_frames, struct walk *walk)
{
	const struct mapping_snapshot *snapshot =
		((const struct published_process *)s->proc->user)->snapshot;
	__u64 regs[UNWIND_REGS_MAX];
	uint64_t ra;
	struct walk_input input = {
		.machine = s->core->machine,
		.pc = thread->pc,
		.regs = thread->regs,
		.process = publisher_entry(snapshot, 0),
		.max_frames = max_frames,
		.address_mask = thread->address_mask,
		.thread_pointer = thread->thread_pointer,
	};
	int stop;

	input.process.flags |= PROCESS_MAPPINGS_FINAL;
	stop = walk_from(s, &input, walk);
	if (stop != STOP_NO_MAPPING || walk->full.nr_words != 1 || max_frames < 2)
		return stop;
	ra = caller_of_nothing(s, thread, regs);
	if (!ra)
		return stop;
	input.pc = ra - 1;
	input.regs = regs;
	input.max_frames--;
	stop = walk_from(s, &input, walk);
	memmove(walk->words + 1, walk->words, walk->full.nr_words * sizeof(*walk->words));
	walk->words[0] = FRAME(RUNTIME_NATIVE, 0, thread->pc);
	walk->full.nr_words++;
	return stop;
}

/* It died of touching what lies just below its stack (a guard page, or the limit). */
static bool overflowed(const struct core_stacks *s, const struct elf_core_thread *thread,
		       uint64_t sp, const struct elf_core_segment *stack)
{
	const struct elf_core_signal *signal = &s->core->signal;
	uint64_t end = stack ? stack->vaddr : sp;

	return thread == s->core->threads.items && signal->known && signal->number == SIGSEGV &&
	       signal->code > 0 && signal->code != SI_KERNEL &&
	       signal->address - (end - OVERFLOW_REACH) <
		       (stack ? 1 : 2) * (uint64_t)OVERFLOW_REACH;
}

static uint64_t sp_of(const struct core_stacks *s, const struct elf_core_thread *thread)
{
	return thread->regs[s->core->machine == EM_AARCH64 ? (int)A64_SP : (int)X86_RSP];
}

/*
 * Is there nothing but zeros from the stack pointer on? No thread's stack is so, but gdb 13 writes
 * it for one that has guard pages of glibc 2.42's kind in it, which it can't read. A return address
 * of 0 looks like the end of a stack. Larger ones than ZEROS_MAX in all are not looked at.
 */
static bool is_zeros(struct core_stacks *s, const struct elf_core_thread *thread)
{
	uint64_t at = sp_of(s, thread), end, words[ZEROS_READ / 8];
	const struct elf_core_segment *segment = elf_core_segment_at(s->core, at);

	if (!segment)
		return false;
	end = segment->vaddr + segment->filesz;
	while (at < end) {
		size_t size = end - at < sizeof(words) ? (size_t)(end - at) : sizeof(words);

		if (s->zeros_read > ZEROS_MAX)
			return false;
		s->zeros_read += size;
		memset(words, 0, sizeof(words));
		if (elf_core_memory(s->core, s->elf, at, words, size))
			return false;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (words[i])
				return false;
		at += size;
	}
	return true;
}

/* What is to be said about a stack, if the core is why it ends. */
static const char *problem_of(const struct core_stacks *s, const struct elf_core_thread *thread,
			      int stop, bool *ret_overflowed)
{
	uint64_t sp = sp_of(s, thread);
	const struct elf_core_segment *segment = elf_core_segment_at(s->core, sp);

	if (segment && !(segment->flags & PF_W))
		segment = NULL; /* the guard below it */
	*ret_overflowed = overflowed(s, thread, sp, segment);
	if (*ret_overflowed)
		return "its stack overflowed";
	if (stop == STOP_COMPLETE)
		return NULL;
	if (!segment)
		return "its stack pointer leads to no stack";
	if (segment->filesz < segment->memsz)
		return s->core->bytes_missing ? "its stack is not in the core, which is cut off"
					      : "its stack was left out of the core";
	return NULL;
}

static int add_thread(struct core_stacks *s, const struct elf_core_thread *from,
		      const struct core_options *options, struct walk *walk)
{
	int stop = walk_thread(s, from, options->max_frames, walk), r;
	bool zeros = stop == STOP_COMPLETE && walk->full.nr_words <= FEW_WORDS && is_zeros(s, from);
	struct core_thread thread = { .tid = from->tid,
				      .name = from->tid == s->core->pid ? s->core->comm : "" };
	const struct decoder_stack stack = {
		/* Not the core's: that number is another process's here, with its own perf map. */
		.pid = 0,
		.proc = s->proc,
		.snapshot = ((const struct published_process *)s->proc->user)->snapshot,
		.words = walk->words,
		.nr_words = walk->full.nr_words,
		.stop = zeros ? STOP_STACK_UNREADABLE : (enum stop_reason)stop,
	};

	thread.problem =
		zeros ? "its stack is nothing but zeros: who wrote the core could not read it"
		      : problem_of(s, from, stop, &thread.overflowed);
	r = decoder_add(&s->decoder, &stack, &thread.stack);
	thread.virtual_name = s->decoder.thread_name;
	return r ? r : vec_push(&s->threads, thread);
}

/* --- all of it ------------------------------------------------------------------------------- */

static int set_up(struct core_stacks *s, const struct core_options *options)
{
	const struct unwinder_options unwinder = { .arena_bytes = ARENA_MAX,
						   .machine = s->core->machine,
						   .memory = { read_core, &s->files } };
	struct symbolizer_options symbolizer = options->symbolizer;
	int r = core_files_find(&s->files, s->core, s->elf, &options->search);

	if (!r)
		r = profile_init(&s->profile);
	if (!r)
		r = unwinder_init(&s->unwinder, &unwinder);
	if (r)
		return r;
	symbolizer.root = options->search.sysroot;
	r = decoder_init(&s->decoder, &s->unwinder.publisher, &s->profile, &symbolizer);
	return r ? r : make_process(s);
}

static int read_threads(struct core_stacks *s, const struct core_options *options)
{
	_cleanup_free_ struct walk *walk = calloc(1, sizeof(*walk));
	int r = walk ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->core->threads.nr && !r; i++)
		r = add_thread(s, &s->core->threads.items[i], options, walk);
	return r ? r : decoder_name_all(&s->decoder);
}

/* Files that are nowhere below it are found elsewhere or not at all: a slip of the pen would show
 * late. */
static int check_sysroot(const char *sysroot)
{
	_cleanup_close_ int fd = -1;

	if (!sysroot)
		return 0;
	fd = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? log_err(-errno, "cannot use %s as --sysroot", sysroot) : 0;
}

int core_stacks_read(const struct core_options *options, struct core_stacks **ret)
{
	_cleanup_(core_stacks_free_p) struct core_stacks *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return log_err(-ENOMEM, "cannot read %s", options->path);
	r = check_sysroot(options->search.sysroot);
	if (r)
		return r;
	r = core_open(options->path, &s->elf, &s->core);
	if (r)
		return r; /* said */
	r = set_up(s, options);
	if (!r)
		r = read_threads(s, options);
	if (r)
		return log_err(r, "cannot read %s", options->path);
	*ret = TAKE_PTR(s);
	return 0;
}

void core_stacks_free(struct core_stacks *s)
{
	if (!s)
		return;
	decoder_fini(&s->decoder);
	unwinder_fini(&s->unwinder);
	profile_fini(&s->profile);
	core_files_fini(&s->files);
	vec_free(&s->threads);
	elf_core_free(s->core);
	elf_file_free(s->elf);
	free(s);
}
