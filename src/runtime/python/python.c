// SPDX-License-Identifier: Apache-2.0
/*
 * CPython: the runtime's operations. What a file tells is in python_file.c, offsets are in
 * python_offsets.c, names in python_names.c, the walker's step is python.bpf.c.
 */
#include "runtime/python/python_async.h"
#include "runtime/python/python_file.h"
#include "runtime/python/python_names.h"
#include "runtime/python/python_offsets.h"

#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	THREADS_LOOKED_AT = 8,
	/* Where the C library keeps a thread's values is within so many bytes of its struct
	 * pthread; static thread-local storage lies below it (x86-64), or above the thread pointer,
	 * where the struct ends (aarch64). */
	PTHREAD_SIZE = 4096,
	TLS_SIZE = 8192,
	TLS_MODULES = 8, /* loaded first: they have static thread-local storage */
	TLS_WORDS_MAX = 1 << 16,
	TSD_KEYS_MAX = 128,
	TRAMPOLINE_MAX = 64,
	ARENA_MAX = 1 << 26,
	ARENAS_MAX = 64,
	ARENA_NEAR = 512,
	INTERPRETERS_MAX = 64,
	TLS_INTERPRETERS = 8, /* whose threads are looked at for it */
	HEAD_OFFSETS = 128,   /* of _PyRuntime: the list of interpreters is there */
};

struct python_proc {
	struct runtime_proc rp;
	struct python_record record;
	struct python_layout layout;
	struct python_names *names;
};

/* --- the lists of threads -------------------------------------------------------------------- */

static int read_u64(const struct runtime_target *t, uint64_t addr, uint64_t *ret)
{
	return runtime_read(t, addr, ret, sizeof(*ret));
}

/*
 * The first thread of the interpreter at `interp`, if it is one: its threads say so. -EAGAIN: it
 * has none (a subinterpreter that nobody is in, from 3.13 on); -EINVAL: it is something else.
 */
static int first_thread(const struct runtime_target *t, const struct python_record *r,
			uint64_t interp, uint64_t *ret)
{
	uint64_t tstate, back;
	int error;

	error = read_u64(t, interp + r->interp_threads, &tstate);
	if (!error && !tstate)
		return -EAGAIN;
	if (!error)
		error = read_u64(t, tstate + r->ts_interp, &back);
	if (error)
		return error == -ESRCH ? error : -EINVAL;
	if (back != interp)
		return -EINVAL;
	*ret = tstate;
	return 0;
}

/*
 * Checks r->interpreters, the address of the pointer to the first one, and finds a thread. -EAGAIN:
 * there is none yet; -EINVAL: it is something else.
 */
static int check_interpreters(const struct runtime_target *t, const struct python_record *r,
			      uint64_t *ret)
{
	uint64_t interp;
	int error = read_u64(t, r->interpreters, &interp);

	if (error)
		return error;
	for (unsigned int i = 0; i < INTERPRETERS_MAX && interp; i++) {
		error = first_thread(t, r, interp, ret);
		if (error != -EAGAIN)
			return error;
		error = read_u64(t, interp + r->interp_next, &interp);
		if (error)
			return error == -ESRCH ? error : -EINVAL;
	}
	return -EAGAIN;
}

static int find_interpreters(const struct runtime_target *t, uint64_t runtime,
			     struct python_record *r, uint64_t *ret)
{
	int error = check_interpreters(t, r, ret);

	if (error != -EINVAL || r->minor >= 13 || !runtime)
		return error;
	/* Another build of this version: look around. */
	for (uint64_t at = 0; at < HEAD_OFFSETS; at += 8) {
		struct python_record other = *r;

		other.interpreters = runtime + at;
		error = check_interpreters(t, &other, ret);
		if (error == -ESRCH)
			return error;
		if (!error) {
			*r = other;
			return 0;
		}
	}
	return -EINVAL;
}

/* --- from the thread pointer to the thread's state ------------------------------------------- */

struct thread {
	uint64_t tstate, pthread;
};

static size_t read_threads(const struct runtime_target *t, const struct python_record *r,
			   uint64_t tstate, struct thread threads[static THREADS_LOOKED_AT])
{
	size_t nr = 0;

	while (tstate && nr < THREADS_LOOKED_AT) {
		threads[nr].tstate = tstate;
		if (read_u64(t, tstate + r->ts_thread_id, &threads[nr].pthread) ||
		    read_u64(t, tstate + r->ts_next, &tstate))
			break;
		if (threads[nr].pthread)
			nr++;
	}
	return nr;
}

/* How many of the threads' states lie where these offsets say, or would if they were set. */
static size_t confirmed(const struct runtime_target *t, const struct thread *threads, size_t nr,
			int64_t tls, int64_t tls_2)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t word;

		if (read_u64(t, threads[i].pthread + (uint64_t)tls, &word))
			continue;
		if (tls_2 != -1 && (!word || read_u64(t, word + (uint64_t)tls_2, &word)))
			continue;
		n += word == threads[i].tstate;
	}
	return n;
}

struct tls {
	int64_t off, off_2;
	size_t threads; /* that confirm it */
};

static void better(const struct runtime_target *t, const struct thread *threads, size_t nr,
		   int64_t off, int64_t off_2, struct tls *best)
{
	size_t n = confirmed(t, threads, nr, off, off_2);

	if (n > best->threads)
		*best = (struct tls){ off, off_2, n };
}

/* As many of these bytes as there are, in whole pages. */
static size_t read_pages(const struct runtime_target *t, uint64_t addr, void *to, size_t size)
{
	uint64_t end = addr + size;

	while (end > addr && runtime_read(t, addr, to, end - addr))
		end = (end - 1) & ~4095ull;
	return end > addr ? end - addr : 0;
}

/* In the static thread-local storage of the nth one, whose pointer is `tp` above its struct pthread
 * (0: the same, and the variables lie below). */
static void search_variables(const struct runtime_target *t, const struct thread *threads,
			     size_t nr, size_t n, uint64_t tp, uint64_t words[static TLS_SIZE / 8],
			     struct tls *best)
{
	uint64_t base = threads[n].pthread, have = TLS_SIZE;
	int64_t first;

	if (tp)
		have = read_pages(t, base + tp, words, TLS_SIZE);
	else
		while (have && runtime_read(t, base - have, words, have))
			have /= 2;
	first = tp ? (int64_t)tp : -(int64_t)have;
	for (size_t i = 0; i < have / 8; i++)
		if (words[i] == threads[n].tstate)
			better(t, threads, nr, first + (int64_t)(8 * i), -1, best);
}

/*
 * aarch64: how far above its struct pthread a thread's pointer leads, 0 if that is not seen. There
 * lies what glibc calls tcbhead_t: a pointer to the dtv, which says where the thread-local storage
 * of each module is: { length }, { generation }, { address, to be freed } of the first module ...
 * musl has that pointer in front of it: to { number of modules }, { address } ... (glibc's
 * sysdeps/aarch64/nptl/tls.h, sysdeps/generic/dl-dtv.h; musl's src/internal/pthread_impl.h.)
 */
static uint64_t thread_pointer_of(const struct runtime_target *t, uint64_t pthread,
				  const uint64_t *words, size_t nr)
{
	uint64_t dtv[2 + 2 * TLS_MODULES], near;

	for (size_t i = 2; i + 1 < nr; i++) {
		near = pthread + 8 * i + 16;
		if (words[i] > 4096 && !(words[i] & 7) &&
		    !runtime_read(t, words[i] - 16, dtv, sizeof(dtv)) && dtv[0] &&
		    dtv[0] < TLS_WORDS_MAX && dtv[2] < TLS_WORDS_MAX)
			for (size_t k = 4; k < 2 + 2 * TLS_MODULES; k += 2)
				if (dtv[k] - near < TLS_SIZE)
					return 8 * i;
		if (words[i - 1] > 4096 && !(words[i - 1] & 7) &&
		    !runtime_read(t, words[i - 1], dtv, 16) && dtv[0] && dtv[0] < TLS_MODULES &&
		    dtv[1] - near < TLS_SIZE)
			return 8 * i;
	}
	return 0;
}

/*
 * Since its first version CPython keeps each thread's state also where pthread_getspecific() finds
 * it (up to 3.11 or so; then thread-local variables), even while it has not the GIL. Where that is
 * depends on the C library and the key, but it is the same distance from each thread's struct
 * pthread, whose address is the state's thread_id: look for it there. glibc: { sequence number,
 * value } in struct pthread; musl: a pointer in it to an array of values; thread-local variables:
 * below it, on aarch64 above.
 */
static bool find_tls_of(const struct runtime_target *t, struct python_record *r, uint64_t tstate,
			uint64_t words[static(TLS_SIZE + PTHREAD_SIZE) / 8])
{
	struct thread threads[THREADS_LOOKED_AT];
	size_t nr = read_threads(t, r, tstate, threads);
	struct tls best = { 0 };
	uint64_t tp = 0;

	for (size_t n = 0; n < nr && !best.threads; n++) {
		uint64_t base = threads[n].pthread;
		size_t have = read_pages(t, base, words, PTHREAD_SIZE);

		if (t->machine == EM_AARCH64) {
			tp = thread_pointer_of(t, base, words, have / 8);
			if (!tp)
				continue;
		}
		for (size_t i = 1; i < have / 8; i++)
			if (words[i] == threads[n].tstate && words[i - 1] && words[i - 1] < 1 << 20)
				better(t, threads, nr, (int64_t)(8 * i), -1, &best);
		for (size_t i = 0; i < have / 8 && i < 64 && !best.threads; i++) {
			uint64_t array[TSD_KEYS_MAX];

			if (!words[i] || words[i] & 7 ||
			    runtime_read(t, words[i], array, sizeof(array)))
				continue;
			for (size_t k = 0; k < TSD_KEYS_MAX; k++)
				if (array[k] == threads[n].tstate)
					better(t, threads, nr, (int64_t)(8 * i), (int64_t)(8 * k),
					       &best);
		}
		if (!best.threads)
			search_variables(t, threads, nr, n, tp, words, &best);
	}
	log_debug("process %d: CPython 3.%u: the thread's state is at %lld, %lld (%zu of %zu "
		  "threads)",
		  t->pid, r->minor, (long long)(best.off - (int64_t)tp), (long long)best.off_2,
		  best.threads, nr);
	if (!best.threads)
		return false;
	r->tls = (int32_t)(best.off - (int64_t)tp);
	r->tls_2 = (int32_t)best.off_2;
	return true;
}

/* Of the threads of the interpreter that `tstate` belongs to, or of others: of a thread that runs
 * several only one state is kept there. */
static void find_tls(const struct runtime_target *t, struct python_record *r, uint64_t tstate)
{
	uint64_t interps[INTERPRETERS_MAX], interp = 0, other;
	_cleanup_free_ uint64_t *words = NULL;
	unsigned int nr = 0, tries = 0;

	words = malloc(TLS_SIZE + PTHREAD_SIZE);
	if (!words || find_tls_of(t, r, tstate, words) || read_u64(t, r->interpreters, &interp))
		return;
	while (interp && nr < INTERPRETERS_MAX) {
		interps[nr++] = interp;
		if (read_u64(t, interp + r->interp_next, &interp))
			return;
	}
	/* New ones are put before the first one, which most threads are of. */
	while (nr && tries < TLS_INTERPRETERS) {
		if (first_thread(t, r, interps[--nr], &other) || other == tstate)
			continue;
		tries++;
		if (find_tls_of(t, r, other, words))
			return;
	}
}

/* --- perf trampolines ------------------------------------------------------------------------ */

/* CPython's Python/perf_trampoline.c, struct code_arena_st: copies of a few instructions. */
struct arena {
	uint64_t start, current, size, size_left, code_size, prev;
};

static bool is_arena(const struct python_dso *dso, const struct runtime_target *t, uint64_t addr,
		     struct arena *ret)
{
	uint64_t size = dso->trampoline_end - dso->trampoline;
	uint8_t code[TRAMPOLINE_MAX], copy[TRAMPOLINE_MAX];

	return !(addr & 7) && addr > 4096 && size && size <= sizeof(code) &&
	       !runtime_read(t, addr, ret, sizeof(*ret)) && !(ret->start & 4095) && ret->size &&
	       ret->size <= ARENA_MAX && ret->current >= ret->start &&
	       ret->current <= ret->start + ret->size && ret->code_size == size &&
	       !runtime_read(t, dso->trampoline + t->bias, code, size) &&
	       !runtime_read(t, ret->start, copy, size) && !memcmp(code, copy, size);
}

/* _PyRuntime.ceval.perf.code_arena: its place in 3.12.1, 3.13.0, 3.14.10 and 3.15.2. It may be a
 * little elsewhere in others. 0: there is none. */
static uint64_t find_arena(const struct python_dso *dso, const struct runtime_target *t,
			   struct arena *ret)
{
	static const uint16_t offsets[] = { [12] = 1960, [13] = 2576, [14] = 2760, [15] = 2880 };
	uint64_t near[2 * ARENA_NEAR / 8], known;

	if (!dso->trampoline || dso->minor >= sizeof(offsets) / sizeof(offsets[0]))
		return 0;
	known = dso->runtime + t->bias + offsets[dso->minor];
	if (runtime_read(t, known - ARENA_NEAR, near, sizeof(near)))
		return 0;
	if (is_arena(dso, t, near[ARENA_NEAR / 8], ret))
		return near[ARENA_NEAR / 8];
	for (size_t i = 0; i < sizeof(near) / 8; i++)
		if (is_arena(dso, t, near[i], ret))
			return near[i];
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Where trampolines are now. 1: rp->code has changed. */
static int find_trampolines(struct python_proc *p)
{
	const struct python_dso *dso = (const struct python_dso *)p->rp.dso;
	const struct runtime_target *t = p->rp.target;
	VEC(struct code_range) found = { 0 };
	struct arena arena;
	uint64_t addr = find_arena(dso, t, &arena);
	bool changed;
	size_t nr = 0;

	while (addr && found.nr < ARENAS_MAX) {
		if (vec_push(&found, (struct code_range){ arena.start, arena.start + arena.size }))
			break;
		addr = arena.prev;
		if (!is_arena(dso, t, addr, &arena))
			break;
	}
	if (found.nr)
		qsort(found.items, found.nr, sizeof(found.items[0]), compare_ranges);
	/* Each once, whatever leads where. */
	for (size_t i = 0; i < found.nr; i++)
		if (!nr || found.items[i].start >= found.items[nr - 1].end)
			found.items[nr++] = found.items[i];
	found.nr = nr;
	changed = found.nr != p->rp.code.nr ||
		  (found.nr &&
		   memcmp(found.items, p->rp.code.items, found.nr * sizeof(found.items[0])) != 0);
	if (changed) {
		vec_free(&p->rp.code);
		p->rp.code.items = found.items;
		p->rp.code.nr = found.nr;
		p->rp.code.cap = found.cap;
	} else {
		vec_free(&found);
	}
	return changed;
}

/*
 * May code in anonymous memory be what CPython's own JIT has made? The JIT is off where there are
 * trampolines. Before 3.13 there is none, 3.13 enters its code in another way, from 3.15 on that
 * keeps frame pointers.
 */
static void set_jit(struct python_proc *p)
{
	bool jit = p->record.minor == 14 && !p->rp.code.nr && p->rp.target->machine == EM_X86_64;

	p->rp.anonymous_code = jit;
	p->record.flags = jit ? p->record.flags | PYTHON_JIT : p->record.flags & ~(__u32)PYTHON_JIT;
}

/* --- attach ---------------------------------------------------------------------------------- */

/*
 * Which code object lies where is remembered only where nothing but this thread can free those that
 * are looked at: not the tasks' that wait, not without the lock of the interpreter.
 */
static void set_codes(const struct python_dso *dso, const struct runtime_target *t,
		      const struct python_layout *l, struct python_record *r)
{
	enum { CO_VERSION = 92 }; /* python_find_codes() */

	if (r->minor <= 13 && dso->codes && r->co_version == CO_VERSION) {
		r->codes = dso->codes + (r->minor == 12 ? t->bias : 0);
		if (r->minor == 12)
			r->flags |= PYTHON_CODES_OF_ALL;
	}
	if (t->options.async || l->free_threaded)
		r->codes = 0;
	log_debug("process %d: CPython 3.%u: code objects are counted at 0x%llx", t->pid, r->minor,
		  (unsigned long long)r->codes);
}

static int fill_record(const struct python_dso *dso, const struct runtime_target *t,
		       struct python_proc *p)
{
	uint8_t offsets[PYTHON_DEBUG_OFFSETS_SIZE];
	int r;

	if (dso->minor < 13)
		return python_offsets_of(dso->minor, &p->record, &p->layout);
	r = runtime_read(t, dso->runtime + t->bias, offsets, sizeof(offsets));
	if (r)
		return r;
	return python_offsets_parse(offsets, sizeof(offsets), &p->record, &p->layout);
}

/* Up to 3.12: does the type of code objects have the name and the size that the version's has?
 * -EINVAL: it doesn't. */
static int check_code_type(const struct runtime_target *t, const struct python_record *r)
{
	static const uint8_t sizes[] = {
		[6] = 144, [7] = 144, [8] = 176, [9] = 176, [10] = 176, [11] = 184, [12] = 192
	};
	uint64_t words[2]; /* tp_name, tp_basicsize */
	char name[5];
	int error;

	if (r->minor >= 13)
		return 0;
	error = runtime_read(t, r->code_type + 24, words, sizeof(words));
	if (!error)
		error = runtime_read(t, words[0], name, sizeof(name));
	if (error)
		return error == -ESRCH ? error : -EINVAL;
	return !memcmp(name, "code", 5) && words[1] == sizes[r->minor] ? 0 : -EINVAL;
}

static void python_detach(struct runtime_proc *rp)
{
	struct python_proc *p = (struct python_proc *)rp;

	if (!p)
		return;
	vec_free(&p->rp.code);
	python_names_free(p->names);
	free(p);
}

static void python_proc_free_p(struct python_proc **p)
{
	if (*p)
		python_detach(&(*p)->rp);
}

static int not_supported(const struct python_dso *dso, const struct runtime_target *t,
			 const char *why)
{
	log_debug("process %d: CPython 3.%u: %s", t->pid, dso->minor, why);
	return runtime_not_supported(t->about, why);
}

/* ld.so or the runtime itself may have yet to write it. */
static int nonsense(const struct python_dso *dso, const struct runtime_target *t, const char *why)
{
	log_debug("process %d: CPython 3.%u: %s", t->pid, dso->minor, why);
	return -EBADMSG;
}

static int python_attach(const struct runtime_dso *base, const struct runtime_target *t,
			 void *record, struct runtime_proc **ret)
{
	const struct python_dso *dso = (const struct python_dso *)base;
	_cleanup_(python_proc_free_p) struct python_proc *p = calloc(1, sizeof(*p));
	struct python_record *rec;
	uint64_t tstate;
	int r;

	if (!p)
		return -ENOMEM;
	p->rp = (struct runtime_proc){ .ops = base->ops, .dso = base, .target = t };
	r = fill_record(dso, t, p);
	if (r == -ENOTSUP)
		return not_supported(dso, t, "its debug offsets are not known");
	if (r == -EINVAL)
		return nonsense(dso, t, "its debug offsets make no sense");
	if (r)
		return r;
	rec = &p->record;
	if (dso->minor >= 13)
		rec->interpreters += dso->runtime + t->bias;
	else if (dso->runtime)
		rec->interpreters = dso->runtime + t->bias +
				    (rec->minor == 7	? 24
				     : rec->minor <= 10 ? 32
							: 40);
	else
		rec->interpreters = dso->interpreters + t->bias;
	rec->code_type = dso->code_type + t->bias;
	rec->tls_2 = -1;
	rec->nr_gaps = (uint8_t)dso->nr_gaps;
	rec->loop_base = base->interpreter_functions.items[0].start + t->bias;
	rec->loop_frame = dso->loop_frame;
	set_codes(dso, t, &p->layout, rec);
	memcpy(rec->gaps, dso->gaps, sizeof(rec->gaps));
	if (t->machine == EM_AARCH64)
		rec->flags |= PYTHON_STACK_BELOW;
	r = find_interpreters(t, dso->runtime ? dso->runtime + t->bias : 0, rec, &tstate);
	if (r == -EINVAL)
		return nonsense(dso, t, "its threads are not where that version has them");
	if (r)
		return r;
	/* Not before there is an interpreter: ld.so may have to relocate the type's name first. */
	r = check_code_type(t, rec);
	if (r == -EINVAL)
		return nonsense(dso, t, "code objects are not as that version has them");
	if (r)
		return r;
	find_tls(t, rec, tstate);
	if (t->options.async && python_async_of(&p->layout, rec) && t->about)
		t->about->without = "--async does not know its tasks";
	r = python_names_new(t, rec, &p->layout, &p->names);
	if (r)
		return r;
	find_trampolines(p);
	set_jit(p);
	memcpy(record, rec, sizeof(*rec));
	*ret = &TAKE_PTR(p)->rp;
	return 0;
}

static int python_refresh(struct runtime_proc *rp, void *record)
{
	struct python_proc *p = (struct python_proc *)rp;
	int changed = find_trampolines(p);
	uint64_t tstate;

	if (!p->record.tls && !check_interpreters(rp->target, &p->record, &tstate)) {
		find_tls(rp->target, &p->record, tstate);
		changed |= p->record.tls != 0;
	}
	set_jit(p);
	memcpy(record, &p->record, sizeof(p->record));
	return changed;
}

static int python_symbolize(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			    const struct runtime_sink *sink)
{
	return python_names_symbolize(((struct python_proc *)rp)->names, words, nr, sink);
}

/* --- probe ----------------------------------------------------------------------------------- */

static bool python_knows(unsigned int major, unsigned int minor)
{
	return major == 3 && python_offsets_known(minor);
}

static int python_probe(const struct elf_file *elf, struct runtime_about *about,
			struct runtime_dso **ret)
{
	struct python_dso *dso;
	int r = python_file_read(elf, about, &dso);

	if (r)
		return r;
	dso->dso.ops = runtimes[RUNTIME_PYTHON];
	*ret = &dso->dso;
	return 0;
}

static void python_dso_free(struct runtime_dso *dso)
{
	python_file_free((struct python_dso *)dso);
}

const struct runtime_ops python_runtime = {
	.name = "python",
	.id = RUNTIME_PYTHON,
	.label = "cpython",
	.language = "Python",
	.programs = "python",
	.library = "libpython",
	.knows = python_knows,
	.product = "CPython",
	.record_size = sizeof(struct python_record),
	.probe = python_probe,
	.dso_free = python_dso_free,
	.hides = python_hides,
	.attach = python_attach,
	.refresh = python_refresh,
	.detach = python_detach,
	.symbolize = python_symbolize,
};
