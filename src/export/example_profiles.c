// SPDX-License-Identifier: Apache-2.0
#include "export/example_profiles.h"

#include <string.h>

struct example {
	struct profile *p;
	unsigned flags;
	uint32_t kernel, module, app, libc, go, anon, vdso; /* files */
	uint64_t time_ns;
	int error;
};

static uint32_t file(struct example *e, const char *path, uint8_t build_id, uint64_t start)
{
	uint8_t bytes[20];
	uint32_t id = 0;

	memset(bytes, build_id, sizeof(bytes));
	if (!e->error)
		e->error = profile_add_file(e->p, path, bytes, build_id ? sizeof(bytes) : 0, &id);
	if (e->error || !start)
		return id;
	e->p->files.items[id].start = start;
	e->p->files.items[id].end = start + 0x100000;
	e->p->files.items[id].offset = start & 0xfffff;
	return id;
}

static uint32_t string(struct example *e, const char *s)
{
	uint32_t id = 0;

	if (!e->error)
		e->error = profile_string(e->p, s, &id);
	return id;
}

static struct profile_line line(struct example *e, const char *name, enum function_language lang,
				const char *source, uint32_t number)
{
	struct profile_function f = { .name = string(e, name),
				      .source = string(e, source),
				      .start_line = number ? number - number % 10 : 0,
				      .language = lang };
	struct profile_line l = { .line = number, .column = number ? 7 : 0 };

	if (lang == FUNCTION_LANGUAGE_CPP)
		f.linkage_name = string(e, "_ZN3app5innerEv");
	if (!e->error)
		e->error = profile_add_function(e->p, &f, &l.function);
	return l;
}

static uint32_t frame(struct example *e, enum frame_kind kind, uint32_t file_id, uint64_t address,
		      const struct profile_line *lines, size_t nr)
{
	const struct profile_frame f = { .kind = (uint16_t)kind,
					 .file = file_id,
					 .address = address };
	uint32_t id = 0;

	if (!e->error)
		e->error = profile_add_named_frame(e->p, &f, lines, nr, &id);
	return id;
}

static uint32_t named(struct example *e, enum frame_kind kind, uint32_t file_id, uint64_t address,
		      const char *name)
{
	struct profile_line l = line(e, name, FUNCTION_LANGUAGE_UNKNOWN, "", 0);

	return frame(e, kind, file_id, address, &l, 1);
}

static uint32_t scoped(struct example *e, uint32_t file_id, uint64_t address, uint32_t scope)
{
	const struct profile_frame f = {
		.kind = FRAME_KIND_NATIVE, .file = file_id, .address = address, .scope = scope
	};
	uint32_t id = 0;

	if (!e->error)
		e->error = profile_add_frame(e->p, &f, &id);
	return id;
}

/* A runtime's function, at `number`. */
static struct profile_line script(struct example *e, const char *name, const char *source,
				  uint32_t number)
{
	struct profile_line l = line(e, name, FUNCTION_LANGUAGE_UNKNOWN, source, number);

	l.column = 0;
	return l;
}

static uint32_t script_frame(struct example *e, enum runtime_id runtime,
			     const struct profile_line *lines, size_t nr)
{
	return frame(e, FRAME_KIND_OF(runtime), PROFILE_NO_FILE, 0, lines, nr);
}

static void add_files(struct example *e)
{
	e->kernel = file(e, "[kernel]", 0x11, 0);
	e->module = file(e, "[nf_tables]", 0, 0);
	e->app = file(e, "/usr/bin/app", 0x22, 0x401000);
	e->libc = file(e, "/usr/lib/x86_64-linux-gnu/libc.so.6", 0x33, 0x26000);
	e->go = file(e, "/srv/my \"go\" program", 0, 0x400000);
	e->anon = file(e, "[anon]", 0, 0);
	e->vdso = file(e, "[vdso]", 0, 0);
	if (e->error)
		return;
	e->p->files.items[e->go].go_build_id = string(e, "abc/def/ghi");
	e->p->files.items[e->libc].has_file_id = true;
	memset(e->p->files.items[e->libc].file_id, 0xab, PROFILE_FILE_ID_SIZE);
}

static uint32_t thread(struct example *e, uint64_t key, int32_t pid, int32_t tid, const char *comm)
{
	uint32_t process = 0, id = 0;

	if (!e->error)
		e->error = profile_add_process(e->p, pid, key, &process);
	if (!e->error)
		e->error = profile_add_thread(e->p, process, tid, comm, &id);
	return id;
}

static uint32_t virtual_thread(struct example *e, uint32_t carrier, const char *name)
{
	const struct profile_thread t =
		e->error ? (struct profile_thread){ 0 } : e->p->threads.items[carrier];
	uint32_t id = 0;

	if (!e->error)
		e->error = profile_add_carried_thread(e->p, t.process, t.tid, name,
						      strtab_get(&e->p->strings, t.comm), &id);
	return id;
}

static void sample(struct example *e, uint32_t thread_id, enum stop_reason stop, uint64_t count,
		   const uint32_t *frames, size_t nr)
{
	uint32_t stack, id = 0;

	if (!e->error)
		e->error = profile_add_stack(e->p, frames, nr, stop, &stack);
	if (!e->error)
		e->error = profile_add_sample(e->p, thread_id, stack, count, &id);
	for (uint64_t i = 0; !e->error && i < count && e->flags & EXAMPLE_EVENTS; i++) {
		e->time_ns += 10101010;
		e->error = profile_add_event(e->p, id, e->time_ns, (uint32_t)(i % 3));
	}
}

#define SAMPLE(thread_id, stop, count, ...)                                                        \
	sample(e, thread_id, stop, count, (const uint32_t[]){ __VA_ARGS__ },                       \
	       sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void add_samples(struct example *e)
{
	const uint64_t kernel_text = 0xffffffff81000000;
	const struct profile_line inlined[] = {
		line(e, "app::inner(int)", FUNCTION_LANGUAGE_CPP, "/src/app.hh", 12),
		line(e, "app::middle<a;b>()", FUNCTION_LANGUAGE_UNKNOWN, "/src/app.hh", 34),
		line(e, "main", FUNCTION_LANGUAGE_CPP, "/src/app.cc", 56),
	};
	const struct profile_line go =
		line(e, "main.(*T).run", FUNCTION_LANGUAGE_GO, "/src/m.go", 9);
	const struct profile_line rust =
		line(e, "<[u8; 16] as app::T>::run", FUNCTION_LANGUAGE_RUST, "src/t.rs", 77);
	uint32_t start = named(e, FRAME_KIND_NATIVE, e->app, 0x401050, "_start");
	uint32_t libc_main = named(e, FRAME_KIND_NATIVE, e->libc, 0x27249, "__libc_start_main");
	uint32_t main_frame = frame(e, FRAME_KIND_NATIVE, e->app, 0x401200, inlined, 3);
	uint32_t write_frame = named(e, FRAME_KIND_NATIVE, e->libc, 0x30000, "write");
	uint32_t entry = named(e, FRAME_KIND_KERNEL, e->kernel, kernel_text, "entry_SYSCALL_64");
	uint32_t hook = named(e, FRAME_KIND_KERNEL, e->module, 0xffffffffc0001000, "nft_do_chain");
	uint32_t idle = named(e, FRAME_KIND_KERNEL, PROFILE_NO_FILE, kernel_text + 64, "cpu_idle");
	uint32_t lost = frame(e, FRAME_KIND_KERNEL, e->kernel, kernel_text + 128, NULL, 0);
	uint32_t unnamed = frame(e, FRAME_KIND_NATIVE, e->libc, 0x28000, NULL, 0);
	uint32_t jitted = frame(e, FRAME_KIND_NATIVE, e->anon, 0x7f0000001000, NULL, 0);
	uint32_t same_jitted = scoped(e, e->anon, 0x7f0000001000, 77);
	uint32_t never = named(e, FRAME_KIND_NATIVE, e->app, 0x404000, "never_seen");
	uint32_t vdso = frame(e, FRAME_KIND_NATIVE, e->vdso, 0x9a0, NULL, 0);
	uint32_t go_frame = frame(e, FRAME_KIND_NATIVE, e->go, 0x401000, &go, 1);
	uint32_t rust_frame = frame(e, FRAME_KIND_NATIVE, e->app, 0x402000, &rust, 1);
	uint32_t odd =
		named(e, FRAME_KIND_NATIVE, e->app, 0x403000, "odd\x01\xff \n\xe2\x82\xac;x");
	uint32_t app = thread(e, 1, 1000, 1000, "app"),
		 worker = thread(e, 1, 1000, 1001, "worker 1");
	uint32_t again = thread(e, 2, 1000, 1000, "app"), sh = thread(e, 3, 1200, 1200, "sh");
	uint32_t swapper = thread(e, 4, 0, 0, "swapper/0");

	SAMPLE(app, STOP_COMPLETE, 5, main_frame, libc_main, start);
	SAMPLE(app, STOP_COMPLETE, 7, entry, write_frame, main_frame, libc_main, start);
	SAMPLE(app, STOP_NO_RULE, 2, unnamed, main_frame);
	SAMPLE(worker, STOP_COMPLETE, 3, hook, entry, write_frame, rust_frame, start);
	SAMPLE(worker, STOP_COMPLETE, 1, jitted, go_frame);
	SAMPLE(worker, STOP_MAX_FRAMES, 4, jitted, go_frame);
	SAMPLE(again, STOP_COMPLETE, 11, main_frame, libc_main, start);
	SAMPLE(sh, STOP_COMPLETE, 6, vdso, odd, start);
	SAMPLE(sh, STOP_STACK_UNREADABLE, 1, lost, entry);
	SAMPLE(swapper, STOP_COMPLETE, 9, idle);
	/* One stack where nobody says whose memory it is. */
	SAMPLE(worker, STOP_COMPLETE, 2, same_jitted, go_frame);
	SAMPLE(worker, STOP_COMPLETE, 0, never, start);
}

/* Native code runs Python, that calls C, that calls Java, all of which may have no name. */
static void add_script_samples(struct example *e)
{
	const struct profile_line module = script(e, "<module>", "/srv/app.py", 31);
	const struct profile_line method = script(e, "A.work", "/srv/app.py", 12);
	const struct profile_line other = script(e, "A.work", "/srv/app.py", 14);
	const struct profile_line eval = script(e, "<lambda>", "<string>", 1);
	const struct profile_line note = script(e, "[python: not_ready]", "", 0);
	const struct profile_line java[] = { script(e, "java.util.List.get", "List.java", 88),
					     script(e, "app.Main.run", "Main.java", 41),
					     script(e, "app.Main.main", "Main.java", 7) };
	const struct profile_line stub = script(e, "call_stub", "", 0);
	uint32_t start = named(e, FRAME_KIND_NATIVE, e->app, 0x401050, "_start");
	uint32_t call = named(e, FRAME_KIND_NATIVE, e->libc, 0x31000, "qsort");
	uint32_t module_frame = script_frame(e, RUNTIME_PYTHON, &module, 1);
	uint32_t method_frame = script_frame(e, RUNTIME_PYTHON, &method, 1);
	uint32_t other_frame = script_frame(e, RUNTIME_PYTHON, &other, 1);
	uint32_t eval_frame = script_frame(e, RUNTIME_PYTHON, &eval, 1);
	uint32_t note_frame = script_frame(e, RUNTIME_PYTHON, &note, 1);
	uint32_t gone = script_frame(e, RUNTIME_PYTHON, NULL, 0);
	uint32_t java_frame = script_frame(e, RUNTIME_HOTSPOT, java, 3);
	uint32_t stub_frame = script_frame(e, RUNTIME_HOTSPOT, &stub, 1);
	uint32_t java_gone = script_frame(e, RUNTIME_HOTSPOT, NULL, 0);
	uint32_t python = thread(e, 5, 1300, 1300, "python3");

	SAMPLE(python, STOP_COMPLETE, 8, eval_frame, call, method_frame, module_frame, start);
	SAMPLE(python, STOP_COMPLETE, 3, method_frame, module_frame, start);
	SAMPLE(python, STOP_COMPLETE, 4, other_frame, module_frame, start);
	SAMPLE(python, STOP_COMPLETE, 2, gone, note_frame, start);
	SAMPLE(python, STOP_COMPLETE, 6, java_frame, stub_frame, call, module_frame, start);
	SAMPLE(python, STOP_RUNTIME_UNREADABLE, 1, java_gone, java_frame);
	if (e->flags & EXAMPLE_VIRTUAL)
		SAMPLE(virtual_thread(e, python, "red"), STOP_COMPLETE, 5, java_frame, start);
}

static void describe_processes(struct example *e)
{
	struct profile *p = e->p;
	uint32_t app = string(e, "/usr/bin/app"), sh = string(e, "/bin/sh");
	uint32_t python = string(e, "/usr/bin/python3");
	uint32_t container = string(e, "0123456789abcdef");
	uint32_t pod = string(e, "1a2b3c4d-0000-1111-2222-0123456789ab");
	uint32_t service = string(e, "shop");
	static const char *const names[] = { "", "app", "app", "sh", "", "python3" };

	for (size_t i = 0; !e->error && i < p->processes.nr; i++) {
		struct profile_process *process = &p->processes.items[i];

		process->name = string(e, names[process->key]);
		if (process->key == 4)
			continue;
		process->path = process->key < 3 ? app : process->key == 3 ? sh : python;
		process->command = process->key < 3 ? string(e, "./app") : 0;
		process->owner = process->key == 3 ? string(e, "root") : 0;
		process->parent_pid = 1;
		process->uid = process->key == 3 ? 0 : 1001;
		process->real_uid = process->key == 3 ? 1001 : UINT32_MAX;
		process->saved_uid = process->key == 3 ? 1002 : UINT32_MAX;
		process->group_pid = process->session_pid = process->key == 3 ? 1003 : 0;
		process->has_terminal = process->key == 3;
		process->cgroup = process->key == 3 ? string(e, "0::/user.slice") : 0;
		process->container = process->key == 3 ? container : 0;
		process->pod = process->key == 3 ? pod : 0;
		process->service = process->key == 3 ? service : 0;
		process->vpid = process->key == 3 ? 7 : 0;
		process->start_ns = EXAMPLE_START_NS - 1000000000ull * process->key;
		process->end_ns = process->key == 1 ? EXAMPLE_START_NS + 5000000000ull : 0;
	}
}

static uint32_t add_context(struct example *e, uint8_t span, bool labels)
{
	struct profile_context context = { .trace_id = { 0xab, [15] = 0xcd }, .span_id = { span } };
	const struct profile_label all[] = {
		{ .key = string(e, "user"), .text = string(e, "zo\303\253") },
		{ .key = string(e, "size"), .number = 4096, .unit = string(e, "bytes") },
	};
	uint32_t id = 0;

	e->error = e->error ?: profile_add_context(e->p, &context, all, labels ? 2 : 0, &id);
	return id;
}

static void add_traced(struct example *e)
{
	const uint32_t contexts[] = { 0, add_context(e, 1, false), add_context(e, 2, true) };
	uint32_t type = 0;

	e->error = e->error ?: profile_add_type(e->p, "off_cpu", "nanoseconds", &type);
	for (uint32_t i = 0; i < 6 && !e->error; i++) {
		const struct profile_sample s = e->p->cut.samples.items[i / 2];
		struct profile_measured m = {
			.thread = s.thread, .stack = s.stack, .context = contexts[i % 3], .value = 1
		};
		uint32_t id;

		/* Of the first type those in a trace come on top. */
		if (m.context && !(e->flags & EXAMPLE_EVENTS))
			e->error = profile_add_measured(e->p, &m, &id);
		m.type = type;
		m.value = 1000 + i;
		e->error = e->error ?: profile_add_measured(e->p, &m, &id);
		if (e->flags & EXAMPLE_EVENTS && !e->error)
			e->error = profile_add_measured_event(
				e->p, type, &(struct profile_event){ 100 * i, id, i % 2 }, m.value);
	}
}

int example_profile(struct profile *ret, unsigned flags)
{
	struct example e = { .p = ret, .flags = flags };

	if (!(flags & EXAMPLE_EMPTY)) {
		add_files(&e);
		if (!e.error)
			add_samples(&e);
		if (!e.error)
			add_script_samples(&e);
		if (!e.error)
			describe_processes(&e);
		if (!e.error && flags & EXAMPLE_TRACED)
			add_traced(&e);
	}
	ret->cut.start_ns = EXAMPLE_START_NS;
	ret->cut.duration_ns = EXAMPLE_DURATION_NS;
	ret->frequency_hz = flags & (EXAMPLE_BYTES | EXAMPLE_NO_FREQUENCY) ? 0 : 99;
	ret->host = (struct profile_host){ string(&e, "box"),
					   string(&e, "c0ffee"),
					   string(&e, "amd64"),
					   string(&e, "Linux 6.1.0"),
					   0,
					   0 };
	if (flags & EXAMPLE_BYTES)
		ret->unit = (struct profile_unit){ string(&e, "alloc_space"), string(&e, "bytes") };
	return e.error;
}

const struct profile_thread *example_thread(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->threads.nr; i++)
		if (!strcmp(strtab_get(&p->strings, p->threads.items[i].comm), name))
			return &p->threads.items[i];
	return NULL;
}
