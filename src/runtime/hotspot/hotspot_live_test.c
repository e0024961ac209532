// SPDX-License-Identifier: Apache-2.0
/*
 * Attaching to real JVMs. What is read of them is compared with what they say of themselves
 * (release, code heaps, whether each class and method that was found in the code heaps exists), and
 * with what stands on a thread's stack: the return address of the call stub, and those of the
 * interpreter.
 *
 * Run for every JDK in /usr/lib/jvm, or for those of $SONDE_JDKS (folders, with colons between
 * them), with each garbage collector and layout of memory that it has.
 */
#include "runtime/hotspot/hotspot_abi.h"
#include "runtime/hotspot/hotspot_continuation.h"
#include "runtime/hotspot/hotspot_vm.h"
#include "runtime/runtime.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static const char program[] =
	"import java.io.*;\n"
	"import java.lang.management.*;\n"
	"import java.lang.reflect.*;\n"
	"public class Facts {\n"
	"  static int sink;\n"
	"  static int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; return s; "
	"}\n"
	"  static String has(String name, String method) {\n"
	"    if (name.equals(\"!\")) { System.gc(); return \"yes\"; }\n"
	"    try {\n"
	"      Class<?> c = Class.forName(name, false, Facts.class.getClassLoader());\n"
	"      if (method.equals(\"<init>\") || method.equals(\"<clinit>\")) return \"yes\";\n"
	"      for (Method m : c.getDeclaredMethods())\n"
	"        if (m.getName().equals(method)) return \"yes\";\n"
	"      return \"no method\";\n"
	"    } catch (Throwable t) { return t.toString(); }\n"
	"  }\n"
	"  static void pools() {\n"
	"    for (MemoryPoolMXBean p : ManagementFactory.getMemoryPoolMXBeans())\n"
	"      if (p.getName().startsWith(\"Code\"))\n"
	"        System.out.println(\"pool \" + p.getUsage().getMax());\n"
	"  }\n"
	"  static Object unsafe;\n"
	"  static void offset(String name, String field) throws Exception {\n"
	"    Field f = Class.forName(\"jdk.internal.vm.\" + name).getDeclaredField(field);\n"
	"    System.out.println(\"offset \" + name + \".\" + field + \" \" + unsafe.getClass()\n"
	"      .getMethod(\"objectFieldOffset\", Field.class).invoke(unsafe, f));\n"
	"  }\n"
	"  static void offsets() throws Exception {\n"
	"    Field f = Class.forName(\"sun.misc.Unsafe\").getDeclaredField(\"theUnsafe\");\n"
	"    f.setAccessible(true);\n"
	"    unsafe = f.get(null);\n"
	"    System.out.println(\"offset oop \" + unsafe.getClass()\n"
	"      .getMethod(\"arrayIndexScale\", Class.class).invoke(unsafe, Object[].class));\n"
	"    offset(\"Continuation\", \"tail\");\n"
	"    offset(\"StackChunk\", \"parent\");\n"
	"    offset(\"StackChunk\", \"size\");\n"
	"    offset(\"StackChunk\", \"sp\");\n"
	"  }\n"
	"  public static void main(String[] args) throws Exception {\n"
	"    for (int i = 0; i < 20000; i++) sink += work(i & 15) + "
	"Integer.toString(i).hashCode();\n"
	"    try {\n"
	"      Thread t = (Thread) Thread.class.getMethod(\"startVirtualThread\", Runnable.class)\n"
	"        .invoke(null, (Runnable) () -> { sink++; });\n"
	"      t.join();\n"
	"    } catch (Throwable t) { }\n"
	"    System.out.println(\"release \" + "
	"System.getProperty(\"java.specification.version\"));\n"
	"    try { pools(); } catch (Throwable t) { System.out.println(\"no pools\"); }\n"
	"    try { offsets(); } catch (Throwable t) { System.out.println(\"no offsets: \" + t); }\n"
	"    System.out.println(\"ready\");\n"
	"    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, \"UTF-8\"));\n"
	"    for (String line; (line = in.readLine()) != null;) {\n"
	"      String[] w = line.split(\" \");\n"
	"      System.out.println(has(w[0], w[1]));\n"
	"    }\n"
	"  }\n"
	"}\n";

enum { JDKS_MAX = 32, ASKED_MAX = 60, STACK_SIZE = 1 << 18, STARTS = 3 };

/* What runtimes.c (READY_NS) gives a runtime that begins. */
#define NONSENSE_MAX_NS 3000000000ULL
/* ... of which it had some: on a busy machine it may stand still in the middle for longer. */
#define NONSENSE_CPU_NS 1000000000ULL

struct jvm {
	pid_t pid;
	FILE *in, *out; /* its own */
	uint32_t release, nr_pools;
	uint64_t pools_size;
	uint32_t oop, tail, parent, chunk_size, sp; /* 0: it does not say */
	char lib[PATH_MAX];			    /* libjvm */
	struct runtime_dso *dso;
	struct runtime_target target;
	struct runtime_proc *proc;
	struct hotspot_record record;
};

extern const struct runtime_ops hotspot_runtime;

static char folder[] = "/tmp/hotspot-live-XXXXXX"; /* of the compiled program */
static char *jdks[JDKS_MAX];
static size_t nr_jdks;

static int read_process(void *ctx, uint64_t addr, void *to, size_t size)
{
	const struct jvm *jvm = ctx;
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv(jvm->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

/* ----- JDKs and the program ----- */

static void add_jdk(const char *home)
{
	char path[PATH_MAX], *real;

	if (nr_jdks == JDKS_MAX)
		return;
	snprintf(path, sizeof(path), "%s/bin/java", home);
	real = access(path, X_OK) ? NULL : realpath(home, NULL);
	for (size_t i = 0; real && i < nr_jdks; i++) {
		if (strcmp(jdks[i], real) == 0) {
			free(real);
			real = NULL;
		}
	}
	if (real)
		jdks[nr_jdks++] = real;
}

static void find_jdks(void)
{
	const char *list = getenv("SONDE_JDKS");
	glob_t found;

	if (nr_jdks)
		return;
	if (list) {
		_cleanup_free_ char *copy = strdup(list);

		for (char *at = copy, *one; (one = strsep(&at, ":"));)
			add_jdk(one);
		return;
	}
	if (glob("/usr/lib/jvm/*", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_jdk(found.gl_pathv[i]);
	globfree(&found);
}

static const char *javac(void)
{
	static char path[PATH_MAX];
	glob_t found;

	path[0] = '\0';
	if (glob("/usr/lib/jvm/*/bin/javac", 0, NULL, &found))
		return NULL;
	snprintf(path, sizeof(path), "%s", found.gl_pathv[0]);
	globfree(&found);
	return path;
}

TEST_SKIP_REASON()
{
	find_jdks();
	if (!nr_jdks)
		return "no JDK in /usr/lib/jvm";
	return javac() ? NULL : "no javac in /usr/lib/jvm";
}

static void compile(void)
{
	char path[PATH_MAX], command[3 * PATH_MAX];
	_cleanup_fclose_ FILE *file = NULL;

	ASSERT_PTR_NONNULL(mkdtemp(folder));
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/Facts.java", folder);
	file = fopen(path, "we");
	ASSERT_PTR_NONNULL(file);
	ASSERT_EQ(fwrite(program, 1, strlen(program), file), strlen(program));
	fflush(file);
	snprintf(command, sizeof(command), "%s -nowarn --release 8 -d %s %s 2>/dev/null", javac(),
		 folder, path);
	ASSERT_EQ(system(command), 0);
}

static void clean_up(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ASSERT_EQ(system(command), 0);
}

/* ----- a JVM ----- */

static void start(struct jvm *jvm, const char *home, const char *const *options)
{
	char java[PATH_MAX];
	char *args[16] = { java };
	int in[2], out[2], nr = 1;

	memset(jvm, 0, sizeof(*jvm));
	snprintf(java, sizeof(java), "%s/bin/java", home);
	for (size_t i = 0; options[i]; i++)
		args[nr++] = (char *)options[i];
	args[nr++] = (char *)"-cp";
	args[nr++] = folder;
	args[nr++] = (char *)"Facts";
	ASSERT_OK(pipe2(in, O_CLOEXEC));
	ASSERT_OK(pipe2(out, O_CLOEXEC));
	jvm->pid = fork();
	if (!jvm->pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(null, 2);
		execv(java, args);
		_exit(127);
	}
	ASSERT(jvm->pid > 0);
	close(in[0]);
	close(out[1]);
	jvm->in = fdopen(in[1], "w");
	jvm->out = fdopen(out[0], "r");
}

static void stop(struct jvm *jvm)
{
	hotspot_runtime.detach(jvm->proc);
	if (jvm->dso)
		hotspot_runtime.dso_free(jvm->dso);
	kill(jvm->pid, SIGKILL);
	ASSERT_EQ(waitpid(jvm->pid, NULL, 0), jvm->pid);
	fclose(jvm->in);
	fclose(jvm->out);
}

/* Until it is ready. false: it does not take these options. */
static bool wait_for(struct jvm *jvm)
{
	char line[256];

	while (fgets(line, sizeof(line), jvm->out)) {
		unsigned long long size;

		if (strcmp(line, "ready\n") == 0)
			return true;
		(void)sscanf(line, "offset oop %u", &jvm->oop);
		(void)sscanf(line, "offset Continuation.tail %u", &jvm->tail);
		(void)sscanf(line, "offset StackChunk.parent %u", &jvm->parent);
		(void)sscanf(line, "offset StackChunk.size %u", &jvm->chunk_size);
		(void)sscanf(line, "offset StackChunk.sp %u", &jvm->sp);
		if (sscanf(line, "release 1.%u", &jvm->release) == 1)
			continue;
		if (sscanf(line, "release %u", &jvm->release) == 1)
			continue;
		if (sscanf(line, "pool %llu", &size) == 1) {
			jvm->nr_pools++;
			jvm->pools_size += size;
		}
	}
	return false;
}

/* Where libjvm is mapped first; false: not yet. */
static bool find_lib(struct jvm *jvm, uint64_t *start_ret)
{
	char path[64], line[PATH_MAX + 128];
	_cleanup_fclose_ FILE *maps = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", jvm->pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long from;
		char name[PATH_MAX];

		if (sscanf(line, "%llx-%*x %*s 00000000 %*s %*s %4095s", &from, name) == 2 &&
		    strlen(name) > 10 && strcmp(name + strlen(name) - 10, "/libjvm.so") == 0) {
			snprintf(jvm->lib, sizeof(jvm->lib), "%s", name);
			*start_ret = from;
			return true;
		}
	}
	return false;
}

static int attach(struct jvm *jvm)
{
	uint64_t lib;

	if (!jvm->dso) {
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		char path[2 * PATH_MAX];

		if (!find_lib(jvm, &lib))
			return -EAGAIN;
		snprintf(path, sizeof(path), "/proc/%d/root%s", jvm->pid, jvm->lib);
		if (elf_file_open(path, &elf))
			ASSERT_OK(elf_file_open(jvm->lib, &elf));
		ASSERT_OK(hotspot_runtime.probe(elf, NULL, &jvm->dso));
		/* Its first segment begins at address 0. */
		jvm->target = (struct runtime_target){
			.pid = jvm->pid,
			.machine = elf->machine,
			.memory = { read_process, jvm },
			.bias = lib,
		};
	}
	return hotspot_runtime.attach(jvm->dso, &jvm->target, &jvm->record, &jvm->proc);
}

/* ----- what must be true ----- */

static bool is_in(uint64_t addr, uint64_t from, uint64_t to)
{
	return addr >= from && addr < to;
}

/* Words of the stacks of threads that wait in a system call: of the call stub, of the interpreter.
 */
static void scan_stacks(struct jvm *jvm, uint32_t *stub_ret, uint32_t *interpreter_ret)
{
	static uint64_t words[STACK_SIZE / 8];
	char path[64];
	_cleanup_(closedir_p) DIR *tasks = NULL;
	struct dirent *entry;

	*stub_ret = *interpreter_ret = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", jvm->pid);
	tasks = opendir(path);
	ASSERT_PTR_NONNULL(tasks);
	while ((entry = readdir(tasks))) {
		char file[PATH_MAX], line[512] = "";
		_cleanup_fclose_ FILE *f = NULL;
		unsigned long long sp;
		size_t size = STACK_SIZE;

		snprintf(file, sizeof(file), "%s/%s/syscall", path, entry->d_name);
		f = fopen(file, "re");
		if (!f || !fgets(line, sizeof(line), f) ||
		    sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %llx", &sp) != 1)
			continue;
		/* As much as there is. */
		while (size > 4096 && read_process(jvm, sp, words, size))
			size /= 2;
		for (size_t i = 0; i < size / 8; i++) {
			*stub_ret += words[i] == jvm->record.call_stub_return;
			*interpreter_ret += is_in(words[i], jvm->record.interpreter_start,
						  jvm->record.interpreter_end);
		}
	}
}

static void check_record(struct jvm *jvm)
{
	const struct hotspot_record *r = &jvm->record;
	uint64_t size = 0;
	uint32_t stub, interpreter;

	ASSERT_EQ(r->release, jvm->release);
	ASSERT_EQ(jvm->proc->code.nr, r->nr_heaps);
	for (uint32_t i = 0; i < r->nr_heaps; i++) {
		size += r->heaps[i].end - r->heaps[i].start;
		ASSERT_EQ(jvm->proc->code.items[i].start, r->heaps[i].start);
		ASSERT_EQ(jvm->proc->code.items[i].end, r->heaps[i].end);
	}
	if (jvm->nr_pools) {
		ASSERT_EQ(r->nr_heaps, jvm->nr_pools);
		ASSERT_EQ(size, jvm->pools_size);
	}
	ASSERT(is_in(r->interpreter_start, r->code_start, r->code_end));
	ASSERT(is_in(r->entries_start, r->interpreter_start, r->interpreter_end));
	ASSERT(is_in(r->entries_end - 1, r->entries_start, r->interpreter_end));
	/* Frames in the heap: in every release that has them, but with generational ZGC. */
	if (r->chunk_stack && jvm->sp) {
		ASSERT_EQ(r->oop_size, jvm->oop);
		ASSERT_EQ(r->continuation_tail, jvm->tail);
		ASSERT_EQ(r->chunk_parent, jvm->parent);
		ASSERT_EQ(r->chunk_size, jvm->chunk_size);
		ASSERT_EQ(r->chunk_sp, jvm->sp);
	}
	scan_stacks(jvm, &stub, &interpreter);
	ASSERT(stub > 0);
	ASSERT(interpreter > 0);
	ASSERT_EQ(hotspot_runtime.refresh(jvm->proc, &jvm->record), 0);
}

/* The vm behind the proc, read anew: tests may look into it. */
static void read_vm(struct jvm *jvm, struct hotspot_vm *vm)
{
	/* The dso's symbols are private: they follow its runtime_dso. */
	const struct hotspot_symbols *symbols = (const void *)(jvm->dso + 1);

	ASSERT_OK(hotspot_vm_read(&jvm->target, symbols, vm));
}

static void dots(char *name)
{
	for (; *name; name++) {
		if (*name == '/')
			*name = '.';
	}
}

/* Asks the program for the method of an nmethod; false: that would say nothing. */
static bool ask(struct jvm *jvm, const struct hotspot_vm *vm, uint64_t nmethod)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t method, const_method, constants, holder, index, symbol;
	char klass[512], name[512], answer[512] = "";

	ASSERT_OK(hotspot_read(vm, f->nmethod_method, nmethod, &method));
	if (!method)
		return false;
	ASSERT_OK(hotspot_read(vm, f->method_const_method, method, &const_method));
	ASSERT_OK(hotspot_read(vm, f->const_method_constants, const_method, &constants));
	ASSERT_OK(hotspot_read(vm, f->const_method_name_index, const_method, &index));
	ASSERT_OK(hotspot_read_symbol_at(vm, constants, (uint32_t)index, &symbol));
	ASSERT(hotspot_read_symbol(vm, symbol, name, sizeof(name)) > 0);
	ASSERT_OK(hotspot_read(vm, f->constants_pool_holder, constants, &holder));
	ASSERT_OK(hotspot_read(vm, f->klass_name, holder, &symbol));
	ASSERT(hotspot_read_symbol(vm, symbol, klass, sizeof(klass)) > 0);
	/* Hidden classes can't be looked for; reflection leaves out some methods of these. */
	if (strstr(klass, "0x") || strstr(klass, "$$Lambda") ||
	    strncmp(klass, "java/lang/invoke/", 17) == 0 ||
	    strncmp(klass, "jdk/internal/", 13) == 0 || strncmp(klass, "sun/", 4) == 0)
		return false;
	dots(klass);
	fprintf(jvm->in, "%s %s\n", klass, name);
	fflush(jvm->in);
	ASSERT_PTR_NONNULL(fgets(answer, sizeof(answer), jvm->out));
	ck_assert_msg(strcmp(answer, "yes\n") == 0, "%s.%s: %s", klass, name, answer);
	return true;
}

/* Goes through a heap; the number of nmethods that were asked for. */
static uint32_t check_heap(struct jvm *jvm, const struct hotspot_vm *vm,
			   const struct hotspot_heap *heap)
{
	uint64_t at = heap->low, length, used, blob, found, name, start, end, id;
	uint32_t asked = 0;
	char text[HOTSPOT_NAME_MAX];

	while (asked < ASKED_MAX) {
		if (hotspot_read(vm, vm->fields.block_length, at, &length) || !length)
			break;
		ASSERT_OK(hotspot_read(vm, vm->fields.block_used, at, &used));
		blob = at + vm->sizes.heap_block;
		at += length << heap->log2_segment_size;
		if (!used)
			continue;
		ASSERT_OK(hotspot_read_code(vm, blob, &start, &end));
		ASSERT(start < end && end <= at);
		ASSERT_OK(hotspot_find_blob(vm, start, &found));
		ASSERT_EQ(found, blob);
		ASSERT_OK(hotspot_find_blob(vm, end - 1, &found));
		ASSERT_EQ(found, blob);
		ASSERT_OK(hotspot_read(vm, vm->fields.blob_name, blob, &name));
		ASSERT(hotspot_read_string(vm, name, text, sizeof(text)) > 0);
		ASSERT_EQ(strcmp(text, "nmethod") == 0, name == jvm->record.name_nmethod);
		ASSERT_EQ(strcmp(text, "native nmethod") == 0, name == jvm->record.name_native);
		if (name != jvm->record.name_nmethod && name != jvm->record.name_native)
			continue;
		ASSERT_OK(hotspot_read(vm, vm->fields.nmethod_compile_id, blob, &id));
		ASSERT((int64_t)id >= 0 && id < 1000000);
		asked += ask(jvm, vm, blob);
	}
	return asked;
}

/* What the code of enterSpecial says is what the tables say, if they do. */
static void check_continuation(struct jvm *jvm, struct hotspot_vm *vm)
{
	struct hotspot_continuation c = { 0 };
	struct hotspot_vm without = *vm;

	if (vm->release < 21)
		return;
	without.at_cont_return = 0;
	hotspot_find_continuation(&without, &c);
	ASSERT(c.return_pc != 0);
	ASSERT_EQ(c.return_pc, jvm->record.cont_return);
	ASSERT_EQ(c.thread_cont_entry, jvm->record.thread_cont_entry);
	ASSERT_EQ(c.entry_size, jvm->record.cont_entry_size);
	if (vm->at_cont_return) {
		ASSERT_EQ(c.return_pc, vm->cont_return);
		ASSERT_EQ(c.thread_cont_entry, vm->fields.thread_cont_entry.offset);
	}
}

/* Another VM operation, a collection, is told by another number. */
static void check_operations(struct jvm *jvm)
{
	uint64_t before, after;
	char answer[8];

	ASSERT_EQ(jvm->record.operations != 0, jvm->release >= 17 && jvm->release <= 25);
	if (!jvm->record.operations)
		return;
	ASSERT_OK(runtime_read(&jvm->target, jvm->record.operations, &before, sizeof(before)));
	fprintf(jvm->in, "! gc\n");
	fflush(jvm->in);
	ASSERT_PTR_NONNULL(fgets(answer, sizeof(answer), jvm->out));
	ASSERT_OK(runtime_read(&jvm->target, jvm->record.operations, &after, sizeof(after)));
	ASSERT(after > before);
}

/* ----- tests ----- */

static void with_options(const char *home, const char *const *options)
{
	struct jvm jvm;

	start(&jvm, home, options);
	if (wait_for(&jvm)) {
		ASSERT_OK(attach(&jvm));
		check_record(&jvm);
	}
	stop(&jvm);
}

TEST(what_is_read_is_what_the_jvm_says)
{
	compile();
	for (size_t i = 0; i < nr_jdks; i++) {
		uint32_t asked = 0;
		struct hotspot_vm vm;
		struct jvm jvm;

		start(&jvm, jdks[i], (const char *const[]){ NULL });
		ASSERT(wait_for(&jvm));
		ASSERT_OK(attach(&jvm));
		check_record(&jvm);
		read_vm(&jvm, &vm);
		check_continuation(&jvm, &vm);
		check_operations(&jvm);
		/* 28 has fields of another form: left out rather than guessed. */
		if (jvm.release < 28)
			ASSERT_EQ(jvm.record.chunk_stack != 0, jvm.release >= 21);
		for (uint32_t h = 0; h < vm.nr_heaps; h++)
			asked += check_heap(&jvm, &vm, &vm.heaps[h]);
		printf("# %s: JDK %u.%u.%u+%u, %u heaps, %u methods\n", jdks[i], vm.release,
		       vm.minor, vm.security, vm.build, vm.nr_heaps, asked);
		ASSERT(asked >= 20);
		hotspot_vm_fini(&vm);
		stop(&jvm);
	}
	clean_up();
}

TEST(every_layout_of_memory)
{
	static const char *const options[][4] = {
		{ "-Xint" },
		{ "-XX:TieredStopAtLevel=1" },
		{ "-XX:-SegmentedCodeCache" },
		{ "-XX:+UseSerialGC" },
		{ "-XX:+UseParallelGC" },
		{ "-XX:+UseG1GC" },
		{ "-XX:+UseZGC" },
		{ "-XX:+UseShenandoahGC" },
		{ "-XX:-UseCompressedOops" },
		{ "-XX:-UseCompressedClassPointers" },
		{ "-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders" },
	};

	compile();
	for (size_t i = 0; i < nr_jdks; i++) {
		for (size_t o = 0; o < sizeof(options) / sizeof(*options); o++)
			with_options(jdks[i], options[o]);
	}
	clean_up();
}

static uint64_t cpu_ns_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

/* From its first instruction on: it is not there, it is not ready, it is. */
TEST(a_jvm_that_starts_is_never_refused)
{
	uint32_t tries =
		0; /* on a busy machine one start of several may be over before the first */

	compile();
	for (size_t i = 0; i < nr_jdks * STARTS; i++) {
		uint64_t nonsense_ns = 0, cpu_ns = 0; /* since when what it has makes no sense */
		struct jvm jvm;
		int r;

		start(&jvm, jdks[i / STARTS], (const char *const[]){ NULL });
		while ((r = attach(&jvm)) != 0) {
			/* -EBADMSG: it writes while it is being read (runtime.h: what stays so is
			 * given up). The others: before exec; memory that is not mapped yet. */
			ck_assert_msg(r == -EBADMSG || r == -EAGAIN || r == -EFAULT || r == -EIO,
				      "%d after %u", r, tries);
			if (r == -EBADMSG && !nonsense_ns)
				cpu_ns = cpu_ns_of(jvm.pid);
			nonsense_ns = r != -EBADMSG ? 0 : nonsense_ns ?: now_ns();
			ck_assert_msg(!nonsense_ns || now_ns() - nonsense_ns < NONSENSE_MAX_NS ||
					      cpu_ns_of(jvm.pid) < cpu_ns + NONSENSE_CPU_NS,
				      "nonsense for seconds, after %u", tries);
			tries++;
		}
		ASSERT(wait_for(&jvm));
		r = hotspot_runtime.refresh(jvm.proc, &jvm.record);
		ASSERT(r == 0 || r == 1);
		check_record(&jvm);
		stop(&jvm);
	}
	ASSERT(tries > 0 || !nr_jdks);
	clean_up();
}
