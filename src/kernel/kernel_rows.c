// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_rows.h"
#include "kernel/kernel_memory.h"
#include "abi/sample.h"
#include "bpf/walk.bpf.h"
#include "util/cleanup.h"
#include "util/kernel_symbols.h"
#include "util/log.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ENTRIES_MAX = 16 << 20, /* a hundred times as many as there are */
	BUCKET_CELLS = sizeof(struct kernel_bucket) / 4,
};

enum symbol {
	ORC_IPS,
	ORC_IPS_END,
	ORC_ENTRIES,
	ORC_ENTRIES_END,
	TEXT,
	TEXT_END,
	INIT_TEXT,
	INIT_TEXT_END,
	MODULES, /* with CONFIG_KALLSYMS_ALL: it is data */
	/* Where functions return to that are traced: whom they were called from is known elsewhere.
	 */
	RETURNS_FROM,
	RETURNS_END = RETURNS_FROM + 4,
	SYMBOLS = RETURNS_END,
};
static const char *const symbol_names[SYMBOLS] = {
	[ORC_IPS] = "__start_orc_unwind_ip",
	[ORC_IPS_END] = "__stop_orc_unwind_ip",
	[ORC_ENTRIES] = "__start_orc_unwind",
	[ORC_ENTRIES_END] = "__stop_orc_unwind",
	[TEXT] = "_stext",
	[TEXT_END] = "_etext",
	[INIT_TEXT] = "_sinittext",
	[INIT_TEXT_END] = "_einittext",
	[MODULES] = "modules",
	[RETURNS_FROM] = "return_to_handler",
	"arch_rethook_trampoline",
	"__kretprobe_trampoline", /* before 5.18 */
	"kretprobe_trampoline",	  /* before 5.16 */
};

struct symbols {
	uint64_t at[SYMBOLS];
	bool any; /* has an address that is told */
};

static int look_at_symbol(void *ctx, const struct kernel_symbol *symbol)
{
	struct symbols *s = ctx;

	if (symbol->is_modules)
		return 0;
	s->any |= symbol->address != 0;
	for (size_t i = 0; i < SYMBOLS; i++)
		if (!strcmp(symbol->name, symbol_names[i]))
			s->at[i] = symbol->address;
	return 0;
}

static int read_symbols(struct symbols *ret)
{
	int r;

	*ret = (struct symbols){ .any = false };
	r = kernel_symbols_walk(look_at_symbol, ret);
	return r || ret->any ? r : -EPERM;
}

/* The helper cuts stacks where the administrator says; our walk at its own limit. */
static bool helper_cuts_more(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/perf_event_max_stack", "re");
	int most;

	return f && fscanf(f, "%d", &most) == 1 && most < SAMPLE_MAX_KERNEL_FRAMES;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_tables(const uint64_t *symbols, struct orc_tables *t, void **ips, void **entries,
		       struct kernel_rows_report *report)
{
	_cleanup_(kernel_memory_free_p) struct kernel_memory *m = NULL;
	uint64_t from = symbols[ORC_IPS], nr = (symbols[ORC_IPS_END] - from) / 4;
	struct btf *btf;
	int r;

	if (!from || !nr || nr > ENTRIES_MAX ||
	    (symbols[ORC_ENTRIES_END] - symbols[ORC_ENTRIES]) / ORC_ENTRY_SIZE != nr)
		return -ENOENT;
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return -errno;
	r = orc_layout_of(btf, &t->layout);
	report->code_error = kernel_code_layout_of(btf, symbols[MODULES], &report->code);
	report->code.orc = t->layout;
	btf__free(btf);
	if (r)
		return r;
	*ips = malloc(4 * nr);
	*entries = malloc(ORC_ENTRY_SIZE * nr);
	if (!*ips || !*entries)
		return -ENOMEM;
	r = kernel_memory_new(&m);
	if (!r)
		r = kernel_memory_read(m, from, *ips, 4 * nr);
	if (!r)
		r = kernel_memory_read(m, symbols[ORC_ENTRIES], *entries, ORC_ENTRY_SIZE * nr);
	if (r)
		return r;
	t->ips = *ips;
	t->ips_start = from;
	t->entries = *entries;
	t->nr = nr;
	return 0;
}

/* The table of one code, and in it what only the helper knows. */
static int read_code(const struct orc_tables *tables, const uint64_t *symbols, enum symbol start,
		     struct kernel_table **ret)
{
	_cleanup_(kernel_table_free_p) struct kernel_table *t = NULL;
	int r = kernel_table_new(tables, symbols[start], symbols[start + 1], &t);

	for (int i = RETURNS_FROM; !r && i < RETURNS_END; i++) {
		/* As the pc of a frame that was interrupted, and as a return address. */
		r = kernel_table_leave_out(t, symbols[i]);
		if (!r)
			r = kernel_table_leave_out(t, symbols[i] - 1);
	}
	/* A return address behind the end is no code for the helper. */
	if (!r)
		r = kernel_table_leave_out(t, t->end - 1);
	if (!r)
		*ret = TAKE_PTR(t);
	return r;
}

/* --- publishing ------------------------------------------------------------------------------- */

/* Cells that go into one segment after the other. */
struct segment_writer {
	int segments_fd; /* -1: nowhere */
	struct arena_segment *segment;
	uint32_t at; /* cells */
	uint64_t bytes;
};

static int flush_segment(struct segment_writer *w)
{
	uint32_t zero = 0, index = (w->at - 1) >> ARENA_SEGMENT_SHIFT;
	_cleanup_close_ int fd = -1;

	w->bytes += sizeof(*w->segment);
	if (w->segments_fd < 0)
		return 0;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_kernel", 4, sizeof(*w->segment), 1, NULL);
	if (fd < 0 || bpf_map_update_elem(fd, &zero, w->segment, BPF_ANY) ||
	    bpf_map_update_elem(w->segments_fd, &index, &fd, BPF_ANY))
		return -errno;
	return 0;
}

static int write_cells(struct segment_writer *w, const void *from, size_t nr)
{
	const uint32_t *cells = from;
	size_t room, i;
	int r;

	for (i = 0; i < nr; i += room) {
		room = ARENA_SEGMENT_CELLS - w->at % ARENA_SEGMENT_CELLS;
		if (room > nr - i)
			room = nr - i;
		if (w->at / ARENA_SEGMENT_CELLS >= KERNEL_SEGMENTS_MAX)
			return -E2BIG;
		memcpy(w->segment->cells + w->at % ARENA_SEGMENT_CELLS, cells + i, room * 4);
		w->at += room;
		r = w->at % ARENA_SEGMENT_CELLS ? 0 : flush_segment(w);
		if (r)
			return r;
	}
	return 0;
}

/* Its buckets begin where a segment's lines do, as the segment does. */
static int write_table(struct segment_writer *w, const struct kernel_table *t,
		       struct kernel_code *ret)
{
	static const struct kernel_bucket none;
	struct kernel_code code = { .start = t->start, .size = t->end - t->start };
	size_t pad = -w->at % BUCKET_CELLS;
	int r = write_cells(w, &none, pad);

	code.buckets = w->at;
	if (!r)
		r = write_cells(w, t->buckets, t->nr_buckets * BUCKET_CELLS);
	code.more = w->at;
	if (!r)
		r = write_cells(w, t->more, t->nr_more);
	if (!r)
		*ret = code;
	return r;
}

static int publish(int segments_fd, struct kernel_table *const *tables,
		   struct kernel_rows_report *ret)
{
	_cleanup_free_ struct arena_segment *segment = calloc(1, sizeof(*segment));
	struct segment_writer w = { .segments_fd = segments_fd, .segment = segment };
	int r = segment ? 0 : -ENOMEM;

	for (int i = 0; !r && i < KERNEL_CODES_MAX; i++)
		r = write_table(&w, tables[i], &ret->codes[i]);
	if (!r && w.at % ARENA_SEGMENT_CELLS)
		r = flush_segment(&w);
	ret->bytes = w.bytes;
	return r;
}

static int try(int segments_fd, struct kernel_rows_report *ret, const char **reason)
{
	_cleanup_free_ void *ips = NULL, *entries = NULL;
	_cleanup_(kernel_table_free_p) struct kernel_table *text = NULL, *init = NULL;
	struct kernel_table *tables[KERNEL_CODES_MAX];
	struct orc_tables t = { 0 };
	struct symbols found;
	const uint64_t *symbols = found.at;
	int r;

	*reason = "/proc/kallsyms hides addresses";
	r = read_symbols(&found);
	if (r)
		return r;
	*reason = "the kernel has no ORC unwind tables";
	if (!symbols[ORC_IPS])
		return -ENOENT;
	*reason = "kernel.perf_event_max_stack cuts them";
	if (helper_cuts_more())
		return -E2BIG;
	*reason = "the kernel's unwind tables cannot be read";
	r = read_tables(symbols, &t, &ips, &entries, ret);
	if (r)
		return r;
	*reason = "the kernel's unwind tables cannot be used";
	r = read_code(&t, symbols, TEXT, &text);
	if (!r)
		r = read_code(&t, symbols, INIT_TEXT, &init);
	if (r)
		return r;
	*reason = "there is no room for the rows";
	ret->entries = text->nr_entries + init->nr_entries;
	ret->helper = text->nr_helper + init->nr_helper;
	tables[0] = text;
	tables[1] = init;
	return publish(segments_fd, tables, ret);
}

void kernel_rows_try(int segments_fd, struct kernel_rows_report *ret)
{
	const char *reason = "";

	*ret = (struct kernel_rows_report){ 0 };
	ret->error = try(segments_fd, ret, &reason);
	if (!ret->error)
		return;
	memset(ret->codes, 0, sizeof(ret->codes));
	snprintf(ret->reason, sizeof(ret->reason), "%s (%s)", reason, strerror(-ret->error));
}

/* --- the child, and its parent ---------------------------------------------------------------- */

int kernel_rows_child_main(void)
{
	struct kernel_rows_report report;

	prctl(PR_SET_NAME, "sonde-kernel");
	kernel_rows_try(CHILD_MORE_FD, &report);
	return pwrite(CHILD_OUT_FD, &report, sizeof(report), 0) == sizeof(report) ? 0
										  : CHILD_FAILED;
}

static int forked_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return kernel_rows_child_main();
}

void kernel_rows_init(struct kernel_rows *k)
{
	*k = (struct kernel_rows){ .child = CHILD_NONE, .report_fd = -1 };
}

void kernel_rows_fini(struct kernel_rows *k)
{
	if (k->child.pid)
		child_end(&k->child, true, NULL);
	if (k->report_fd >= 0)
		close(k->report_fd);
	k->report_fd = -1;
}

int kernel_rows_start(struct kernel_rows *k, int segments_fd, char *const *loader)
{
	char argument[] = KERNEL_ROWS_ARGUMENT, *args[] = { argument };
	struct child_spec spec = {
		.program = loader,
		.main = forked_main,
		.args = args,
		.nr_args = 1,
		.more_fds = { segments_fd },
		.nr_more_fds = 1,
	};
	int r;

	k->report_fd = memfd_create("sonde-kernel", MFD_CLOEXEC);
	if (k->report_fd < 0)
		return -errno;
	spec.in_fd = spec.out_fd = k->report_fd;
	r = child_start(&spec, &k->child);
	if (r)
		kernel_rows_fini(k);
	return r;
}

bool kernel_rows_update(struct kernel_rows *k, int wait_ms)
{
	struct pollfd fd = { .fd = k->child.messages };
	struct kernel_rows_report report = { 0 };
	int status = 0, r;

	if (!k->child.pid || poll(&fd, 1, wait_ms) <= 0)
		return false;
	r = child_end(&k->child, true, &status);
	if (!r && (!WIFEXITED(status) || WEXITSTATUS(status) ||
		   pread(k->report_fd, &report, sizeof(report), 0) != sizeof(report)))
		r = -ECHILD;
	if (r)
		report = (struct kernel_rows_report){ .error = r, .reason = "its child failed" };
	report.reason[sizeof(report.reason) - 1] = '\0';
	k->report = report;
	kernel_rows_fini(k);
	return true;
}
