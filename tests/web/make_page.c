// SPDX-License-Identifier: Apache-2.0
/*
 * make_page small|inlined|scripts|demo|million|empty OUT.html: synthetic profiles through the real
 * exporter, for the browser tests. "small" is known to the last sample (see viewer_test.mjs),
 * "million" has more than a million nodes, "demo" looks like a machine at work.
 */
#include "export/export.h"
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 1200 };

static void check(int r, const char *what)
{
	if (r < 0) {
		fprintf(stderr, "make_page: %s: %s\n", what, strerror(-r));
		exit(1);
	}
}

/* "name@path"; "name@[kernel]" is a kernel frame, "@path" has no name. */
static uint32_t frame(struct profile *p, const char *spec)
{
	const char *at = strrchr(spec, '@');
	struct profile_frame f = { .kind = FRAME_KIND_NATIVE, .address = 0x1000 + p->frames.nr };
	char name[256];
	uint32_t id;

	if (!strcmp(at + 1, "[kernel]"))
		f.kind = FRAME_KIND_KERNEL;
	snprintf(name, sizeof(name), "%.*s", (int)(at - spec), spec);
	check(profile_add_file(p, at + 1, NULL, 0, &f.file), "file");
	check(profile_add_frame(p, &f, &id), "frame");
	if (name[0])
		check(profile_name_frame(p, id, name), "name");
	return id;
}

/* `frames` outermost first, separated by blanks or, if there is one, by '|'. */
static void add(struct profile *p, const char *comm, const char *frames, enum stop_reason stop,
		uint64_t count)
{
	const char *separator = strchr(frames, '|') ? "|" : " ";
	uint32_t ids[MAX_FRAMES], stack;
	size_t nr = MAX_FRAMES;
	char *copy = strdup(frames), *save = NULL;

	check(copy ? 0 : -ENOMEM, "stack");
	for (char *s = strtok_r(copy, separator, &save); s && nr;
	     s = strtok_r(NULL, separator, &save))
		ids[--nr] = frame(p, s);
	free(copy);
	check(profile_add_stack(p, ids + nr, MAX_FRAMES - nr, stop, &stack), "stack");
	check(profile_add_comm_sample(p, comm, stack, count), "sample");
}

/* 1,000 samples. */
static void make_small(struct profile *p)
{
	add(p, "app", "_start@/bin/app main@/bin/app parse@/bin/app", STOP_COMPLETE, 100);
	add(p, "app", "_start@/bin/app main@/bin/app parse@/bin/app parse@/bin/app parse@/bin/app",
	    STOP_COMPLETE, 200);
	add(p, "app", "_start@/bin/app main@/bin/app work@/bin/app memcpy@/lib/libc.so.6",
	    STOP_COMPLETE, 250);
	add(p, "app",
	    "_start@/bin/app main@/bin/app work@/bin/app read@/lib/libc.so.6 vfs_read@[kernel]",
	    STOP_COMPLETE, 150);
	add(p, "db", "_start@/bin/db loop@/bin/db memcpy@/lib/libc.so.6", STOP_COMPLETE, 200);
	add(p, "db", "loop@/bin/db|Query<int, char>::run()@/bin/db", STOP_NO_RULE, 60);
	add(p, "swapper", "do_idle@[kernel] @[kernel]", STOP_COMPLETE, 40);
}

/* get() and, in it, load() are inlined into main() in one stack; in the other main() calls get().
 */
static void make_inlined(struct profile *p)
{
	static const char *const names[] = { "load", "get", "main" };
	struct profile_frame f = { .kind = FRAME_KIND_NATIVE, .address = 0x10 };
	struct profile_line lines[3] = { 0 };
	uint32_t id, stack;

	for (size_t i = 0; i < 3; i++) {
		struct profile_function function = { 0 };

		check(profile_string(p, names[i], &function.name), "name");
		check(profile_add_function(p, &function, &lines[i].function), "function");
	}
	check(profile_add_file(p, "/bin/app", NULL, 0, &f.file), "file");
	check(profile_add_named_frame(p, &f, lines, 3, &id), "frame");
	check(profile_add_stack(p, &id, 1, STOP_COMPLETE, &stack), "stack");
	check(profile_add_comm_sample(p, "app", stack, 600), "sample");
	add(p, "app", "main@/bin/app get@/bin/app", STOP_COMPLETE, 400);
	p->processes.items[0].is_own = true;
}

/* Native code, Python, native code, Java; methods of one name in one file. */
static void make_scripts(struct profile *p)
{
	const struct {
		enum runtime_id runtime;
		const char *name, *source;
		uint32_t start_line;
	} functions[] = {
		{ RUNTIME_HOTSPOT, "app.List.get", "List.java", 80 },
		{ RUNTIME_HOTSPOT, "app.Main.main", "Main.java", 7 },
		{ RUNTIME_PYTHON, "work", "/srv/app.py", 12 },
		{ RUNTIME_PYTHON, "work", "/srv/app.py", 40 },
		{ RUNTIME_PYTHON, "[python: not_ready]", "", 0 },
	};
	enum { GET, MAIN, WORK, OTHER_WORK, NOTE, NR };
	struct profile_line lines[NR] = { 0 };
	uint32_t frames[NR], gone, start = frame(p, "_start@/bin/python3"), stack;

	for (size_t i = 0; i < NR; i++) {
		struct profile_frame f = { .kind = FRAME_KIND_OF(functions[i].runtime),
					   .file = PROFILE_NO_FILE };
		struct profile_function function = { .start_line = functions[i].start_line };

		check(profile_string(p, functions[i].name, &function.name), "name");
		check(profile_string(p, functions[i].source, &function.source), "source");
		check(profile_add_function(p, &function, &lines[i].function), "function");
		/* get() is inlined into main(). */
		check(profile_add_named_frame(p, &f, i == MAIN ? lines : lines + i,
					      i == MAIN ? 2 : 1, &frames[i]),
		      "frame");
	}
	check(profile_add_frame(p,
				&(struct profile_frame){ .kind = FRAME_KIND_OF(RUNTIME_PYTHON),
							 .file = PROFILE_NO_FILE },
				&gone),
	      "frame");
	check(profile_add_stack(p, (uint32_t[]){ frames[MAIN], frames[WORK], start }, 3,
				STOP_COMPLETE, &stack),
	      "stack");
	check(profile_add_comm_sample(p, "app", stack, 500), "sample");
	check(profile_add_stack(p, (uint32_t[]){ frames[OTHER_WORK], start }, 2, STOP_COMPLETE,
				&stack),
	      "stack");
	check(profile_add_comm_sample(p, "lib", stack, 300), "sample");
	check(profile_add_stack(p, (uint32_t[]){ gone, frames[NOTE], start }, 3, STOP_COMPLETE,
				&stack),
	      "stack");
	check(profile_add_comm_sample(p, "app", stack, 200), "sample");
}

static uint64_t state = 88172645463325252u;

static uint32_t roll(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 11) % n);
}

/* Stacks of 12 to 40 frames over 20,000 functions: nearly every frame is a node of its own. */
static void make_million(struct profile *p)
{
	enum { NR_FUNCTIONS = 20000, NR_STACKS = 52000, NR_FILES = 60 };
	uint32_t *functions = calloc(NR_FUNCTIONS, sizeof(*functions));
	char spec[128], comm[16];

	for (uint32_t i = 0; i < NR_FUNCTIONS; i++) {
		if (i % 10 == 9)
			snprintf(spec, sizeof(spec), "sys_%u_handler@[kernel]", i);
		else
			snprintf(spec, sizeof(spec), "ns%u::Class%u::method_%u@/usr/lib/lib%u.so",
				 i % 97, i % 997, i, i % NR_FILES);
		functions[i] = frame(p, spec);
	}
	for (uint32_t i = 0; i < NR_STACKS; i++) {
		uint32_t ids[64], stack, nr = 12 + roll(28);

		/* The outer frames are few, so that the tree has a trunk. */
		for (uint32_t d = 0; d < nr; d++)
			ids[nr - 1 - d] =
				functions[d < 6 ? roll(1 + d * 3) + d * 40 : roll(NR_FUNCTIONS)];
		snprintf(comm, sizeof(comm), "worker-%u", roll(8));
		check(profile_add_stack(p, ids, nr, roll(200) ? STOP_COMPLETE : STOP_NO_RULE,
					&stack),
		      "stack");
		check(profile_add_comm_sample(p, comm, stack, 1 + roll(roll(50) ? 4 : 2000)),
		      "sample");
	}
	/* And one very deep recursion. */
	for (uint32_t n = 1100; n <= 1150; n += 50) {
		uint32_t ids[MAX_FRAMES], stack;

		for (uint32_t d = 0; d < n; d++)
			ids[d] = functions[1];
		check(profile_add_stack(p, ids, n, STOP_MAX_FRAMES, &stack), "stack");
		check(profile_add_comm_sample(p, "deep", stack, 3000), "sample");
	}
	free(functions);
}

static const char *const demo_trunks[][2] = {
	{ "postgres",
	  "_start@/usr/lib/postgresql/15/bin/postgres|__libc_start_main@/lib/libc.so.6|main@/usr/"
	  "lib/postgresql/15/bin/postgres|PostmasterMain@/usr/lib/postgresql/15/bin/"
	  "postgres|ServerLoop@/usr/lib/postgresql/15/bin/postgres|BackendStartup@/usr/lib/"
	  "postgresql/15/bin/postgres|PostgresMain@/usr/lib/postgresql/15/bin/"
	  "postgres|exec_simple_query@/usr/lib/postgresql/15/bin/postgres" },
	{ "nginx", "_start@/usr/sbin/nginx|__libc_start_main@/lib/libc.so.6|main@/usr/sbin/"
		   "nginx|ngx_master_process_cycle@/usr/sbin/nginx|ngx_worker_process_cycle@/usr/"
		   "sbin/nginx|ngx_process_events_and_timers@/usr/sbin/nginx" },
	{ "clang++", "_start@/usr/lib/llvm-14/bin/clang|__libc_start_main@/lib/libc.so.6|main@/usr/"
		     "lib/llvm-14/bin/clang|cc1_main(llvm::ArrayRef<char const*>, char const*, "
		     "void*)@/usr/lib/llvm-14/bin/"
		     "clang|clang::CompilerInstance::ExecuteAction(clang::FrontendAction&)@/usr/"
		     "lib/x86_64-linux-gnu/libclang-cpp.so.14|clang::ParseAST(clang::Sema&, bool, "
		     "bool)@/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14" },
	{ "kworker/0:1", "ret_from_fork@[kernel]|kthread@[kernel]|worker_thread@[kernel]|process_"
			 "one_work@[kernel]" },
	{ "sshd", "_start@/usr/sbin/sshd|main@/usr/sbin/sshd|server_loop2@/usr/sbin/sshd" },
};

static const char *const demo_callees[] = {
	"ExecutorRun",
	"ExecProcNode",
	"ExecScan",
	"heap_getnext",
	"hash_search",
	"parse_header",
	"ngx_http_process_request",
	"ngx_output_chain",
	"SSL_write",
	"EVP_EncryptUpdate",
	"memcpy",
	"malloc",
	"_int_malloc",
	"free",
	"strlen",
	"compress_block",
	"deflate_slow",
	"btree_search",
	"llvm::PassManager::run(llvm::Module&)",
	"llvm::SelectionDAGISel::runOnMachineFunction(llvm::MachineFunction&)",
	"std::__detail::_Map_base<std::string, int>::operator[]",
	"qsort_r",
	"json_parse_value",
	"poll",
};
static const char *const demo_kernel =
	"entry_SYSCALL_64_after_hwframe@[kernel]|do_syscall_64@[kernel]|ksys_read@[kernel]|vfs_"
	"read@[kernel]|"
	"ext4_file_read_iter@[kernel]|filemap_read@[kernel]|copy_page_to_iter@[kernel]";
static const char *const demo_files[] = {
	"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/postgresql/15/bin/postgres",
	"/usr/sbin/nginx",
	"/usr/lib/x86_64-linux-gnu/libz.so.1",
	"[anon]",
};

static void make_demo(struct profile *p)
{
	enum { NR_CALLEES = sizeof(demo_callees) / sizeof(*demo_callees), NR_FILES = 7 };

	for (int i = 0; i < 1400; i++) {
		uint32_t trunk = roll(3) ? roll(3) : roll(5), depth = 1 + roll(14), at = roll(4);
		char stack[8192];
		size_t len = (size_t)snprintf(stack, sizeof(stack), "%s", demo_trunks[trunk][1]);

		for (uint32_t d = 0; d < depth; d++) {
			at = (at * 5 + trunk + roll(2 + d / 3)) % NR_CALLEES;
			len += (size_t)snprintf(stack + len, sizeof(stack) - len, "|%s@%s",
						roll(40) ? demo_callees[at] : "",
						trunk == 3 ? "[kernel]"
							   : demo_files[(at + trunk) % NR_FILES]);
		}
		if (trunk != 3 && !roll(4)) {
			const char *end = demo_kernel;

			for (uint32_t n = 2 + roll(6); n && end; n--)
				end = strchr(end + 1, '|');
			snprintf(stack + len, sizeof(stack) - len, "|%.*s",
				 end ? (int)(end - demo_kernel) : (int)strlen(demo_kernel),
				 demo_kernel);
		}
		add(p, demo_trunks[trunk][0], stack, roll(300) ? STOP_COMPLETE : STOP_NO_RULE,
		    1 + roll(roll(6) ? 5 : 60));
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(struct profile *p);
	} kinds[] = { { "small", make_small },
		      { "inlined", make_inlined },
		      { "scripts", make_scripts },
		      { "demo", make_demo },
		      { "million", make_million } };
	struct export_file *file;
	struct profile p;
	char *why;

	if (argc != 3)
		return 2;
	check(profile_init(&p), "profile");
	p.cut.start_ns = 1795233600000000000u;
	p.cut.duration_ns = 10000000000u;
	p.frequency_hz = 99;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			kinds[i].make(&p);
	check(export_file_open(argv[2], &file, &why), argv[2]);
	check(export_file_commit(file, &export_html, &p, &(struct export_options){ 0 }), argv[2]);
	export_file_free(file);
	profile_fini(&p);
	return 0;
}
