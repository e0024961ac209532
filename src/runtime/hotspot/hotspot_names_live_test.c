// SPDX-License-Identifier: Apache-2.0
/*
 * Names of a real JVM's code, against what it says itself: a program is run with
 * -XX:+PrintNMethods, which prints for each nmethod the scopes at its safepoints, with lines. Each
 * of these places is named as a frame of compiled code, and its outermost scope as one of the
 * interpreter. Run for every JDK in /usr/lib/jvm.
 */
#include "elf/elf_dynamic.h"
#include "runtime/hotspot/hotspot_names.h"
#include "runtime/hotspot/hotspot_record.h"
#include "util/cleanup.h"

#include "test.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char program[] =
	"import java.util.*;\n"					       /* 1 */
	"public class Names {\n"				       /* 2 */
	"  interface Shape { double area(); }\n"		       /* 3 */
	"  static class Square implements Shape {\n"		       /* 4 */
	"    double side = 2;\n"				       /* 5 */
	"    public double area() { return side * side; }\n"	       /* 6 */
	"  }\n"							       /* 7 */
	"  static class \u00dcbergr\u00f6\u00dfe implements Shape {\n" /* 8 */
	"    public double area() {\n"				       /* 9 */
	"      return Math.abs(\n"				       /* 10 */
	"        \u5186());\n"					       /* 11 */
	"    }\n"						       /* 12 */
	"    double \u5186() { return new Random(5).nextDouble(); }\n" /* 13 */
	"  }\n"							       /* 14 */
	"  static volatile double sink;\n"			       /* 15 */
	"  static double sum(List<Shape> l) {\n"		       /* 16 */
	"    double t = 0;\n"					       /* 17 */
	"    for (Shape s : l)\n"				       /* 18 */
	"      t += s.area();\n"				       /* 19 */
	"    return t;\n"					       /* 20 */
	"  }\n"							       /* 21 */
	"  public static void main(String[] args) throws Exception {\n"
	"    List<Shape> l = new ArrayList<>();\n"
	"    for (int i = 0; i < 100; i++)\n"
	"      l.add(i % 2 == 0 ? new Square() : new \u00dcbergr\u00f6\u00dfe());\n"
	"    Runnable r = () -> { sink += sum(l); };\n"
	"    Map<String, Integer> m = new TreeMap<>();\n"
	"    for (int i = 0; i < 20000; i++) {\n"
	"      r.run();\n"
	"      m.merge(\"key\" + (i & 255), 1, Integer::sum);\n"
	"    }\n"
	"    System.err.println(\"ready\");\n"
	"    while (System.in.read() >= 0)\n"
	"      sink += sum(l);\n"
	"  }\n"
	"}\n";

enum { JDKS_MAX = 16, CHAIN_MAX = 64, PLACES_MAX = 100000, NAME_SIZE = 512 };

struct jvm {
	char dir[64], out[96];
	pid_t pid;
	int in; /* its standard input */
	struct runtime_keeper keeper;
	struct runtime_target target;
	struct hotspot_vm vm;
	struct hotspot_symbol_layout layout;
	struct hotspot_names *names;
};

/* What the JVM says of one place, or what we do. */
struct chain {
	int nr;
	struct {
		char name[NAME_SIZE], source[NAME_SIZE];
		int32_t bci;
		uint32_t line, start_line;
	} inline_frames[CHAIN_MAX];
};

static int read_process(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct jvm *j = ctx;
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv(j->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

static int run(char *const args[])
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execv(args[0], args);
		_exit(127);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void start_java(struct jvm *j, char *java, char *option)
{
	char *args[] = { java,
			 (char *)"-XX:+UnlockDiagnosticVMOptions",
			 (char *)"-XX:+PrintNMethods",
			 (char *)"-Dsun.stderr.encoding=UTF-8",
			 (char *)"-Dstdout.encoding=UTF-8",
			 (char *)"-cp",
			 j->dir,
			 option,
			 (char *)"Names",
			 NULL };
	int in[2], err[2], out = open(j->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char line[256] = "";
	_cleanup_fclose_ FILE *f = NULL;

	ASSERT(out >= 0);
	ASSERT_OK(pipe2(in, O_CLOEXEC));
	ASSERT_OK(pipe2(err, O_CLOEXEC));
	j->pid = fork();
	if (!j->pid) {
		dup2(in[0], 0);
		dup2(out, 1);
		dup2(err[1], 2);
		execv(java, args);
		_exit(127);
	}
	ASSERT(j->pid > 0);
	close(in[0]);
	close(out);
	close(err[1]);
	j->in = in[1];
	f = fdopen(err[0], "r");
	while (strcmp(line, "ready\n"))
		ASSERT(fgets(line, sizeof(line), f));
}

/* The first mapping of its libjvm: the bias, and the file. */
static uint64_t find_libjvm(pid_t pid, char path[128])
{
	char name[64], line[4096 + 128];
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t start, end;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	ASSERT(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/libjvm.so") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		snprintf(path, 128, "/proc/%d/map_files/%lx-%lx", pid, start, end);
		return start;
	}
	FAIL("no libjvm");
	return 0;
}

static void find_symbols(const char *path, struct hotspot_symbols *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_dynamic dynamic;

	ASSERT_OK(elf_file_open(path, &elf));
	ASSERT_OK(elf_dynamic_read(elf, &dynamic));
#define X(name, symbol) ASSERT_OK(elf_dynamic_find(&dynamic, symbol, &ret->name));
	HOTSPOT_SYMBOLS(X)
#undef X
}

static void attach(struct jvm *j)
{
	const struct hotspot_found found = { 0 };
	struct hotspot_symbols symbols = { 0 };
	struct hotspot_record record = { 0 };
	char path[128];

	j->target = (struct runtime_target){ .pid = j->pid,
					     .memory = { read_process, j },
					     .options.tiers = true,
					     .keeper = &j->keeper };
	j->target.bias = find_libjvm(j->pid, path);
	find_symbols(path, &symbols);
	ASSERT_OK(hotspot_vm_read(&j->target, &symbols, &j->vm));
	ASSERT_OK(hotspot_record_fill(&j->vm, &found, &record));
	j->layout = record.symbol;
	j->names = hotspot_names_new(&j->vm, &j->layout);
	ASSERT(j->names);
}

/* Compiled by one of those that can, for all of them. */
static void compile(struct jvm *j)
{
	char source[128];
	glob_t g;
	FILE *f;

	snprintf(source, sizeof(source), "%s/Names.java", j->dir);
	f = fopen(source, "we");
	ASSERT(f);
	fputs(program, f);
	fclose(f);
	ASSERT_EQ(glob("/usr/lib/jvm/*/bin/javac", 0, NULL, &g), 0);
	char *args[] = { g.gl_pathv[0],	  (char *)"-encoding",
			 (char *)"UTF-8", (char *)"--release",
			 (char *)"8",	  (char *)"-Xlint:-options",
			 (char *)"-d",	  j->dir,
			 source,	  NULL };

	ASSERT_EQ(run(args), 0);
	globfree(&g);
}

static void start(struct jvm *j, const char *java, const char *option)
{
	snprintf(j->dir, sizeof(j->dir), "/tmp/hotspot_names.XXXXXX");
	ASSERT(mkdtemp(j->dir));
	snprintf(j->out, sizeof(j->out), "%s/out", j->dir);
	compile(j);
	start_java(j, (char *)java, (char *)option);
	attach(j);
}

static void stop(struct jvm *j)
{
	char *args[] = { (char *)"/bin/rm", (char *)"-r", j->dir, NULL };
	int status;

	hotspot_names_free(j->names);
	hotspot_vm_fini(&j->vm);
	close(j->in);
	kill(j->pid, SIGKILL);
	ASSERT_EQ(waitpid(j->pid, &status, 0), j->pid);
	ASSERT_EQ(run(args), 0);
}

static int take_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct chain *c = ctx;

	ASSERT(c->nr < CHAIN_MAX);
	ASSERT(inline_frame->name);
	snprintf(c->inline_frames[c->nr].name, NAME_SIZE, "%s", inline_frame->name);
	snprintf(c->inline_frames[c->nr].source, NAME_SIZE, "%s",
		 inline_frame->source ? inline_frame->source : "");
	c->inline_frames[c->nr].line = inline_frame->line;
	c->inline_frames[c->nr].start_line = inline_frame->start_line;
	c->nr++;
	return 0;
}

static int name(struct jvm *j, uint32_t kind, uint64_t addr, uint64_t word, struct chain *ret)
{
	const uint64_t words[] = { FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(kind, addr)), word };
	const struct runtime_sink sink = { .add = take_inline_frame, .ctx = ret };

	ret->nr = 0;
	return hotspot_names_symbolize(j->names, words, 2, &sink);
}

/* ----- what the JVM says ----- */

struct printed {
	uint64_t nmethod, code, code_end;
	char method[NAME_SIZE]; /* whose nmethod it is; "" if it is none of the program's own */
	uint32_t compile_id, tier;
	uint64_t pc;
	bool oop_map; /* there is one at pc: so there is a PcDesc */
	struct chain chain;
};

struct counts {
	unsigned int places, gone, interpreted, inlined, c1, c2, own;
};

/* "java.util.ArrayList$Itr::next@17 (line 1052)" */
static void parse_level(struct printed *p, const char *text)
{
	int i = p->chain.nr++;
	char *name = p->chain.inline_frames[i].name, method[NAME_SIZE], *at, *colons;
	size_t len;

	ASSERT(i < CHAIN_MAX);
	if (!strncmp(text, "(reexecute) ", 12))
		text += 12;
	snprintf(name, NAME_SIZE, "%s", text);
	p->chain.inline_frames[i].line = 0;
	at = strstr(name, " (line ");
	if (at) {
		p->chain.inline_frames[i].line = (uint32_t)strtoul(at + 7, NULL, 10);
		*at = '\0';
	}
	at = strrchr(name, '@');
	ASSERT(at);
	p->chain.inline_frames[i].bci = (int32_t)strtol(at + 1, NULL, 10);
	*at = '\0';
	colons = strstr(name, "::");
	ASSERT(colons);
	*colons = '\0';
	name[strcspn(name, "/")] = '\0'; /* "Names$$Lambda/0x00007f94b8403430" */
	/* Methods outside ASCII are printed in ASCII. */
	snprintf(method, sizeof(method), ".%s",
		 strcmp(colons + 2, "\\u5186") ? colons + 2 : "\u5186");
	len = hotspot_class_name(name);
	snprintf(name + len, NAME_SIZE - len, "%s", method);
}

static void check_interpreted(struct jvm *j, const struct printed *p, struct counts *counts)
{
	uint64_t method;
	struct hotspot_identity id;
	const struct hotspot_fields *f = &j->vm.fields;
	int last = p->chain.nr - 1;
	int32_t bci = p->chain.inline_frames[last].bci;
	struct chain c;

	if (bci < 0)
		return;
	ASSERT_OK(hotspot_read(&j->vm, f->nmethod_method, p->nmethod, &method));
	ASSERT_OK(hotspot_read_identity(&j->vm, &j->layout, method, &id));
	ASSERT_OK(name(j, HOTSPOT_INTERPRETED, method,
		       HOTSPOT_WORD(hotspot_cookie(&id, &j->layout), bci), &c));
	ASSERT_EQ(c.nr, 1);
	ASSERT_EQ(strlen(c.inline_frames[0].name), strlen(p->chain.inline_frames[last].name) + 4);
	ASSERT(!strncmp(c.inline_frames[0].name, p->chain.inline_frames[last].name,
			strlen(c.inline_frames[0].name) - 4));
	ASSERT(!strcmp(c.inline_frames[0].name + strlen(c.inline_frames[0].name) - 4, "_[0]"));
	ASSERT_EQ(c.inline_frames[0].line, p->chain.inline_frames[last].line);
	ASSERT_ERR(name(j, HOTSPOT_INTERPRETED, method,
			HOTSPOT_WORD(hotspot_cookie(&id, &j->layout) + 1, bci), &c),
		   ENOENT);
	counts->interpreted++;
}

/* Is `c` what was printed? */
static bool same_chain(const struct printed *p, const struct chain *c)
{
	char wanted[NAME_SIZE + 8];

	for (int i = 0; i < p->chain.nr; i++) {
		bool last = i == p->chain.nr - 1;

		snprintf(wanted, sizeof(wanted), "%s%s", p->chain.inline_frames[i].name,
			 !last		? ""
			 : p->tier == 4 ? "_[j]"
					: "_[1]");
		if (p->chain.nr != c->nr || strcmp(wanted, c->inline_frames[i].name) ||
		    p->chain.inline_frames[i].line != c->inline_frames[i].line)
			return false;
	}
	return true;
}

static void check_place(struct jvm *j, const struct printed *p, struct counts *counts)
{
	uint32_t where = (uint32_t)(p->pc - p->code);
	struct chain c;
	bool same = false;
	int r;

	if (!p->chain.nr || !p->oop_map)
		return;
	/* Printed addresses are cut to multiples of 4, and the call may end with the four. */
	for (uint32_t i = 0; i <= 4 && !same; i++) {
		r = name(j, HOTSPOT_COMPILED, p->nmethod, HOTSPOT_WORD(p->compile_id, where + i),
			 &c);
		if (r == -ENOENT) {
			counts->gone++;
			return;
		}
		ASSERT_OK(r);
		same = same_chain(p, &c);
	}
	/* And the call instruction is described by it. */
	r = name(j, HOTSPOT_COMPILED | HOTSPOT_INTERRUPTED, p->nmethod,
		 HOTSPOT_WORD(p->compile_id, where - 1), &c);
	if (r == -ENOENT) {
		counts->gone++;
		return;
	}
	ASSERT_OK(r);
	if (!same || !same_chain(p, &c))
		FAIL("compile id %u at %lx: %s:%u (1 of %d), not %s:%u (1 of %d)", p->compile_id,
		     p->pc, c.inline_frames[0].name, c.inline_frames[0].line, c.nr,
		     p->chain.inline_frames[0].name, p->chain.inline_frames[0].line, p->chain.nr);
	check_interpreted(j, p, counts);
	counts->places++;
	counts->inlined += c.nr > 1;
	counts->c1 += p->tier < 4;
	counts->c2 += p->tier == 4;
}

/* What the program's own methods look like, by its text above. */
static void check_own_level(const struct chain *c, int i)
{
	static const struct {
		const char *name;
		uint32_t first, last, start; /* lines */
		const char *caller;	     /* if it is inlined */
		uint32_t call;
	} known[] = {
		{ "Names.sum", 17, 20, 17, "Names.lambda$main$0", 26 },
		{ "Names.lambda$main$0", 26, 26, 26, NULL, 26 },
		{ "Names.main", 23, 35, 23, NULL, 0 },
		{ "Names$Square.area", 6, 6, 6, "Names.sum", 19 },
		{ "Names$\u00dcbergr\u00f6\u00dfe.area", 10, 11, 10, "Names.sum", 19 },
		{ "Names$\u00dcbergr\u00f6\u00dfe.\u5186", 13, 13, 13,
		  "Names$\u00dcbergr\u00f6\u00dfe.area", 11 },
	};
	bool last = i == c->nr - 1;

	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		size_t len = strlen(known[k].name);

		if (strncmp(c->inline_frames[i].name, known[k].name, len) ||
		    (last && c->inline_frames[i].name[len] != '_') ||
		    (!last && c->inline_frames[i].name[len]))
			continue;
		ASSERT_STR(c->inline_frames[i].source, "Names.java");
		ASSERT_EQ(c->inline_frames[i].start_line, known[k].start);
		/* Not all code has a line: between places that HotSpot describes, or behind them.
		 */
		if (!i && !c->inline_frames[i].line)
			return;
		if (c->inline_frames[i].line < known[k].first ||
		    c->inline_frames[i].line > known[k].last)
			FAIL("%s is at line %u", c->inline_frames[i].name,
			     c->inline_frames[i].line);
		if (last || !known[k].caller || !strcmp(known[k].name, "Names.sum"))
			return;
		ASSERT(!strncmp(c->inline_frames[i + 1].name, known[k].caller,
				strlen(known[k].caller)));
		ASSERT_EQ(c->inline_frames[i + 1].line, known[k].call);
		return;
	}
}

/* Every place in the code of the program's own methods: what is inlined where is known without the
 * JVM, and releases before 17 do not say. */
static void check_own(struct jvm *j, const struct printed *p, struct counts *counts)
{
	struct chain c;

	if (strncmp(p->method, "Names", 5))
		return;
	for (uint64_t pc = p->code; pc < p->code_end; pc += 3) {
		uint32_t kind = HOTSPOT_COMPILED | (pc % 2 ? HOTSPOT_INTERRUPTED : 0);
		int r = name(j, kind, p->nmethod, HOTSPOT_WORD(p->compile_id, pc - p->code), &c);

		if (r == -ENOENT)
			return;
		ASSERT_OK(r);
		ASSERT(!strncmp(c.inline_frames[c.nr - 1].name, p->method, strlen(p->method)));
		for (int i = 0; i < c.nr; i++)
			check_own_level(&c, i);
		counts->own++;
	}
}

/* "Compiled method (c1)     292   62       3       Names::sum (44 bytes)" */
static void parse_method(struct printed *p, char *line)
{
	char *colons = strstr(line, "::"), *name = colons;

	p->tier = strstr(line, "(c2)") ? 4 : 1;
	p->chain.nr = 0;
	ASSERT(colons);
	while (name[-1] != ' ')
		name--;
	*colons = '\0';
	name[strcspn(name, "/")] = '\0'; /* "Names$$Lambda$1/791452441", "Names$$Lambda/0x..." */
	hotspot_class_name(name);
	snprintf(p->method, NAME_SIZE, "%s.", name);
}

/* Reads what was printed, a line at a time. */
static void check_all(struct jvm *j, struct counts *counts)
{
	_cleanup_fclose_ FILE *f = fopen(j->out, "re");
	struct printed *p = calloc(1, sizeof(*p));
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t len;

	ASSERT(f && p);
	while ((len = getline(&line, &size, f)) > 0) {
		uint64_t addr;
		char *at;

		/* The JVM works on, and may be writing it. */
		if (line[len - 1] != '\n')
			break;
		line[len - 1] = '\0';
		at = strstr(line, "Compiled method (c"); /* in the midst of it in 11 */
		if (at && sscanf(at, "Compiled method (c%*d) %*u %u", &p->compile_id) == 1) {
			parse_method(p, at);
		} else if (sscanf(line, " total in heap [0x%lx,", &addr) == 1) {
			p->nmethod = addr;
		} else if (sscanf(line, " main code [0x%lx,0x%lx", &addr, &p->code_end) == 2) {
			p->code = addr;
			check_own(j, p, counts);
		} else if (sscanf(line, " 0x%lx: ;", &addr) == 1 && strstr(line, ": ;")) {
			if (addr != p->pc) {
				check_place(j, p, counts);
				p->chain.nr = 0;
				p->oop_map = false;
			}
			p->pc = addr;
			p->oop_map |= strstr(line, "ImmutableOopMap") != NULL;
		} else if ((at = strstr(line, "; - ")) &&
			   strspn(line, " ") == (size_t)(at - line)) {
			parse_level(p, at + 4);
		} else if (!isspace(line[0])) {
			check_place(j, p, counts);
			p->chain.nr = 0;
			p->pc = 0;
		}
	}
	free(p);
}

static void check_stubs(struct jvm *j)
{
	uint64_t blob, name_addr, size, start, end, pc = j->vm.call_stub_return;
	struct chain c;

	ASSERT_OK(hotspot_find_blob(&j->vm, pc, &blob));
	ASSERT_OK(hotspot_read(&j->vm, j->vm.fields.blob_name, blob, &name_addr));
	ASSERT_OK(hotspot_read(&j->vm, j->vm.fields.blob_size, blob, &size));
	ASSERT_OK(hotspot_read_code(&j->vm, blob, &start, &end));
	uint32_t check = hotspot_stub_check(name_addr, (uint32_t)size);
	ASSERT_OK(name(j, HOTSPOT_STUB, blob, HOTSPOT_WORD(check, pc - start), &c));
	ASSERT_EQ(c.nr, 1);
	ASSERT_STR(c.inline_frames[0].name, "StubRoutines::call_stub");
	ASSERT_ERR(name(j, HOTSPOT_STUB, blob, HOTSPOT_WORD(check + 1, pc - start), &c), ENOENT);
}

static void check_flag(struct jvm *j, const char *flag, bool wanted)
{
	bool value = !wanted;

	ASSERT_OK(hotspot_read_flag(&j->vm, flag, &value));
	ASSERT_EQ(value, wanted);
}

static void check_java(const char *java, const char *option)
{
	struct jvm j = { 0 };
	struct counts counts = { 0 };
	bool value;

	start(&j, java, option);
	check_flag(&j, "UseSerialGC", true);
	check_flag(&j, "PrintNMethods", true);
	check_flag(&j, "DebugNonSafepoints", false);
	ASSERT_ERR(hotspot_read_flag(&j.vm, "DebugNonSafepoint", &value), ENOENT);
	check_all(&j, &counts);
	check_stubs(&j);
	fprintf(stderr,
		"# %s %s: %u places, %u gone, %u interpreted, %u inlined, %u C1, %u C2, %u own\n",
		java, option, counts.places, counts.gone, counts.interpreted, counts.inlined,
		counts.c1, counts.c2, counts.own);
	ASSERT(counts.own > 100);
	if (j.vm.release >= 17) {
		ASSERT(counts.places > 150);
		ASSERT(counts.gone < counts.places / 10);
		ASSERT(counts.inlined > 30 && counts.interpreted > 100);
		/* On a busy machine C2 may have only begun. */
		ASSERT(counts.c1 > 50 && counts.c1 + counts.c2 > 80 && counts.c2 > 3);
	}
	stop(&j);
}

/* Each file once, however many links lead to it. */
static void check_pattern(const char *pattern, char **seen, size_t *nr)
{
	glob_t g;

	ASSERT_EQ(glob(pattern, 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc && *nr < JDKS_MAX; i++) {
		char *real = realpath(g.gl_pathv[i], NULL);
		bool known = false;

		ASSERT(real);
		for (size_t k = 0; k < *nr; k++)
			known |= !strcmp(seen[k], real);
		seen[(*nr)++] = real;
		if (!known)
			check_java(real, "-XX:+UseSerialGC");
	}
	globfree(&g);
}

TEST(names_as_the_jvm_has_them)
{
	const char *homes = getenv("SONDE_JDKS");
	char pattern[512], *seen[JDKS_MAX];
	size_t nr = 0;

	for (homes = homes && *homes ? homes : "/usr/lib/jvm/*"; *homes;) {
		int len = (int)strcspn(homes, ":");

		snprintf(pattern, sizeof(pattern), "%.*s/bin/java", len, homes);
		check_pattern(pattern, seen, &nr);
		homes += len + (homes[len] == ':');
	}
	for (size_t k = 0; k < nr; k++)
		free(seen[k]);
}

TEST_SKIP_REASON()
{
	glob_t g;
	int r = glob("/usr/lib/jvm/*/bin/javac", 0, NULL, &g);

	if (!r)
		globfree(&g);
	return r ? "there is no JDK" : NULL;
}
