// SPDX-License-Identifier: Apache-2.0
/*
 * Debug files as tools make them (objcopy, dwz, gcc -gsplit-dwarf, dwp), laid out below a root of
 * our own, and what must not be believed or opened there.
 */
#include "symbol/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/debug_file_internal.h"
#include "test.h"
#include "util/cleanup.h"

static char dir[] = "/tmp/sonde-debug-file-test-XXXXXX"; /* the root that is searched */

static struct debug_search search;
static int root_fd = -1;
static struct elf_file *elf;
static struct debug_files *files;

/* What was complained of, one a line. */
static char complaints[8192];

static void take_complaint(void *ctx, const char *text)
{
	(void)ctx;
	strncat(complaints, text, sizeof(complaints) - strlen(complaints) - 1);
	strncat(complaints, "\n", sizeof(complaints) - strlen(complaints) - 1);
}

/* A script, run in the root, with what all of them need. */
__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
	static const char helpers[] =
		"set -e; D=$PWD\n"
		/* Paths in debug information are as if the root were "/". */
		"gcc_() { gcc -fdebug-prefix-map=$D= -Wl,--build-id \"$@\"; }\n"
		"id_of() { readelf -nW \"$1\" 2>/dev/null | sed -n 's/.*Build ID: //p'; }\n"
		"by_id() { i=$(id_of \"$1\"); p=usr/lib/debug/.build-id/$(echo $i | cut -c1-2); "
		"mkdir -p $p; echo $p/$(echo $i | cut -c3-).debug; }\n";
	char script[8192];
	int n = snprintf(script, sizeof(script), "cd %s && %s", dir, helpers);
	va_list args;

	va_start(args, format);
	vsnprintf(script + n, sizeof(script) - (size_t)n, format, args);
	va_end(args);
	ck_assert_msg(system(script) == 0, "%s", script);
}

static void start(void)
{
	ASSERT_PTR_NONNULL(mkdtemp(dir));
	run("mkdir -p src usr/bin/.debug usr/lib/debug/usr/bin\n"
	    "cat >src/a.c <<'END'\n"
	    "struct s { int x; }; struct t { struct s s; int y; };\n"
	    "extern int other(struct t *);\n"
	    "static inline __attribute__((always_inline)) int inlined_one(struct t *t)\n"
	    "{ for (int i = 0; i < t->y; i++) t->s.x += t->y ^ i; return t->s.x; }\n"
	    "int function_one(struct t *t) { return inlined_one(t) + other(t); }\n"
	    "int main(int c, char **v) { struct t t = { { c }, c }; (void)v;\n"
	    "return function_one(&t); }\n"
	    "END\n"
	    "cat >src/b.c <<'END'\n"
	    "struct s { int x; }; struct t { struct s s; int y; };\n"
	    "extern int other(struct t *);\n"
	    "static inline __attribute__((always_inline)) int inlined_two(struct t *t)\n"
	    "{ for (int i = 0; i < t->y; i++) t->s.x += t->y | i; return t->s.x; }\n"
	    "int other(struct t *t) { return inlined_two(t) + 1; }\n"
	    "END\n");
	root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT(root_fd >= 0);
	search = (struct debug_search){ .roots = &root_fd,
					.nr_roots = 1,
					.path = "/usr/bin/prog",
					.complain = take_complaint,
					.max_bytes = 64 << 20 };
}

static void close_files(void)
{
	debug_files_free(files);
	files = NULL;
	elf_file_free(elf);
	elf = NULL;
}

static void stop(void)
{
	close_files();
	close(root_fd);
	run("rm -rf $D");
}

/* Opens usr/bin/prog and what belongs to it. */
static int try_open(void)
{
	char path[256];

	close_files();
	complaints[0] = '\0';
	snprintf(path, sizeof(path), "%s%s", dir, search.path);
	ASSERT_OK(elf_file_open(path, &elf));
	return debug_files_open(elf, &search, &files);
}

struct names {
	bool function_one, inlined_one, other, inlined_two;
	char file[128]; /* of function_one */
};

static int take_names(void *ctx, const struct dwarf_unit *unit)
{
	struct names *names = ctx;

	for (size_t i = 0; i < unit->nr_scopes; i++) {
		const struct dwarf_function *f = &unit->functions[unit->scopes[i].function];
		bool inlined = unit->scopes[i].parent != DWARF_NONE;

		names->function_one |= !strcmp(f->name, "function_one") && !inlined;
		names->inlined_one |= !strcmp(f->name, "inlined_one") && inlined;
		names->other |= !strcmp(f->name, "other") && !inlined;
		names->inlined_two |= !strcmp(f->name, "inlined_two") && inlined;
		if (!strcmp(f->name, "function_one") && f->file < unit->lines->nr_files)
			snprintf(names->file, sizeof(names->file), "%s",
				 unit->lines->files[f->file]);
	}
	return 0;
}

static bool finds_all(void)
{
	struct dwarf_counts counts = { 0 };
	struct names names = { 0 };

	ASSERT_OK(dwarf_read_units(debug_files_dwarf(files), take_names, &names, &counts));
	return names.function_one && names.inlined_one && names.other && names.inlined_two &&
	       !counts.missing_split && !counts.bad_units;
}

static bool finds_something(void)
{
	return debug_files_dwarf(files)->main.info.data;
}

/* It is opened, all functions are found, and nobody complains. */
#define ASSERT_ALL_FOUND()                                                                         \
	do {                                                                                       \
		ASSERT_EQ(try_open(), 0);                                                          \
		ASSERT_STR(complaints, "");                                                        \
		ASSERT(finds_all());                                                               \
	} while (0)

#define ASSERT_NOTHING_FOUND(want)                                                                 \
	do {                                                                                       \
		ASSERT_EQ(try_open(), 0);                                                          \
		ASSERT_STR(complaints, want);                                                      \
		ASSERT(!finds_something());                                                        \
		ASSERT_PTR_NULL(debug_files_elf(files));                                           \
	} while (0)

TEST(debug_information_in_the_file_itself)
{
	static const char *const how[] = { "-gdwarf-2", "-gdwarf-3", "-gdwarf-4",
					   "-gdwarf-5", "-gz=zlib",  "-gdwarf-4 -gz=zlib-gnu" };

	start();
	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		run("gcc_ -g -O2 %s src/a.c src/b.c -o usr/bin/prog", how[i]);
		ASSERT_ALL_FOUND();
		ASSERT_PTR_NULL(debug_files_elf(files));
	}
	run("objcopy --compress-debug-sections=zstd usr/bin/prog");
	ASSERT_ALL_FOUND();
	run("strip usr/bin/prog");
	ASSERT_NOTHING_FOUND("");
	stop();
}

TEST(by_build_id)
{
	start();
	run("gcc_ -g -O2 src/a.c src/b.c -o full\n"
	    "strip -o usr/bin/prog full; objcopy --only-keep-debug full $(by_id full)");
	ASSERT_ALL_FOUND();
	ASSERT_PTR_NONNULL(debug_files_elf(files));
	ASSERT_PTR_NONNULL(elf_file_section(debug_files_elf(files), ".symtab"));
	/* Without a path, too. */
	search.path = NULL;
	debug_files_free(files);
	ASSERT_EQ(debug_files_open(elf, &search, &files), 0);
	ASSERT(finds_all());
	search.path = "/usr/bin/prog";
	/* Another program's. */
	run("gcc_ -g -O1 src/a.c src/b.c -o other; objcopy --only-keep-debug other $(by_id full)");
	ASSERT_EQ(try_open(), 0);
	ASSERT(!finds_something());
	ASSERT_PTR_NONNULL(strstr(complaints, ".debug: build-id differs, not used\n"));
	/* None at all. */
	run("objcopy --only-keep-debug -R .note.gnu.build-id other x 2>/dev/null; cp x $(by_id "
	    "full)");
	ASSERT_EQ(try_open(), 0);
	ASSERT(!finds_something());
	/* One that is only symbols. */
	run("strip -g -o x full; cp x $(by_id full)");
	ASSERT_EQ(try_open(), 0);
	ASSERT_STR(complaints, "");
	ASSERT(!finds_something());
	ASSERT_PTR_NONNULL(debug_files_elf(files));
	stop();
}

TEST(by_debug_link)
{
	static const char *const places[] = { "usr/bin/prog.debug", "usr/bin/.debug/prog.debug",
					      "usr/lib/debug/usr/bin/prog.debug" };
	char want[256];

	start();
	/* With and without a build-id. */
	for (size_t i = 0; i < 6; i++) {
		run("rm -f %s; gcc_ -g -O2 %s src/a.c src/b.c -o full; cd /tmp\n"
		    "objcopy --only-keep-debug $D/full $D/prog.debug; cd $D\n"
		    "strip -o usr/bin/prog full\n"
		    "objcopy --add-gnu-debuglink=prog.debug usr/bin/prog; mv prog.debug %s",
		    places[i / 2], i & 1 ? "-Wl,--build-id=none" : "", places[i / 2]);
		ASSERT_ALL_FOUND();
		ASSERT_PTR_NONNULL(debug_files_elf(files));
		if (i & 1) {
			run("echo >>%s", places[i / 2]);
			snprintf(want, sizeof(want), "/%s: CRC differs, not used\n", places[i / 2]);
		} else {
			run("gcc_ -g -O1 src/a.c src/b.c -o %s", places[i / 2]);
			snprintf(want, sizeof(want), "/%s: build-id differs, not used\n",
				 places[i / 2]);
		}
		ASSERT_NOTHING_FOUND(want);
		run("rm %s", places[i / 2]);
		ASSERT_NOTHING_FOUND("");
	}
	/* A wrong one does not hide the right one behind it. */
	run("cp full usr/bin/prog.debug; echo >>usr/bin/prog.debug\n"
	    "objcopy --only-keep-debug full prog.debug; strip -o usr/bin/prog full\n"
	    "objcopy --add-gnu-debuglink=prog.debug usr/bin/prog; mv prog.debug usr/bin/.debug/");
	ASSERT_EQ(try_open(), 0);
	ASSERT_STR(complaints, "/usr/bin/prog.debug: CRC differs, not used\n");
	ASSERT(finds_all());
	stop();
}

TEST(a_link_to_the_file_itself_is_none)
{
	start();
	run("gcc_ -O2 -Wl,--build-id=none src/a.c src/b.c -o full; cp full prog\n"
	    "objcopy --add-gnu-debuglink=prog full usr/bin/prog");
	ASSERT_NOTHING_FOUND("");
	stop();
}

TEST(what_is_no_regular_file_is_never_opened)
{
	struct stat st;
	int fd;

	start();
	run("gcc_ -g -O2 -Wl,--build-id=none src/a.c src/b.c -o full\n"
	    "objcopy --only-keep-debug full prog.debug; strip -o usr/bin/prog full\n"
	    "objcopy --add-gnu-debuglink=prog.debug usr/bin/prog\n"
	    "mkfifo usr/bin/prog.debug; mkdir usr/bin/.debug/prog.debug\n"
	    "ln -s self usr/lib/debug/usr/bin/self\n"
	    "ln -s self usr/lib/debug/usr/bin/prog.debug");
	ASSERT_NOTHING_FOUND(
		"/usr/bin/prog.debug: no regular file, not used\n"
		"/usr/bin/.debug/prog.debug: no regular file, not used\n"
		"/usr/lib/debug/usr/bin/prog.debug: Too many levels of symbolic links, "
		"not used\n");
	ASSERT_ERR(debug_open_below(root_fd, "/usr/bin/prog.debug", &fd), EINVAL);
	ASSERT_ERR(debug_open_below(root_fd, "usr/bin/prog", &fd), ENOENT);
	ASSERT_ERR(debug_stat_below(root_fd, "/usr", &st), EINVAL);
	ASSERT_OK(debug_stat_below(root_fd, "/usr/bin/prog", &st));
	/* Text where an ELF file should be. */
	run("rm -r usr/bin/prog.debug usr/bin/.debug usr/lib/debug/usr/bin/prog.debug\n"
	    "echo hello >usr/bin/prog.debug");
	ASSERT_NOTHING_FOUND("/usr/bin/prog.debug: no ELF file, not used\n");
	stop();
}

TEST(nothing_leads_out_of_the_root)
{
	char outside[] = "/tmp/sonde-debug-file-outside-XXXXXX";
	struct stat st;

	start();
	ASSERT_PTR_NONNULL(mkdtemp(outside));
	run("gcc_ -g -O2 -Wl,--build-id=none src/a.c src/b.c -o full\n"
	    "objcopy --only-keep-debug full prog.debug; strip -o usr/bin/prog full\n"
	    "objcopy --add-gnu-debuglink=prog.debug usr/bin/prog\n"
	    "cp prog.debug %s/prog.debug\n"
	    "ln -s %s/prog.debug usr/bin/prog.debug\n"
	    "ln -s ../../../../../../../../../..%s/prog.debug usr/bin/.debug/prog.debug",
	    outside, outside, outside);
	ASSERT_NOTHING_FOUND("");
	ASSERT_ERR(debug_stat_below(root_fd, "/../../../../../etc/passwd", &st), ENOENT);
	/* In here these links mean something else. */
	run("mkdir -p $D%s; cp prog.debug $D%s/prog.debug", outside, outside);
	ASSERT_ALL_FOUND();
	run("rm -r %s", outside);
	stop();
}

/* Two programs that share their debug information, as packagers' tools do it. */
static void make_dwz(const char *flags, const char *link)
{
	bool five = strstr(flags, "-5");

	run("rm -rf usr/lib/debug w; mkdir -p w usr/lib/debug/.dwz; cd w\n"
	    "gcc_ -g -O2 %s ../src/a.c ../src/b.c -o one\n"
	    "gcc_ -g -O2 %s -DX ../src/b.c ../src/a.c -o two\n"
	    "strip -o ../usr/bin/prog one\n"
	    "for f in one two; do objcopy --only-keep-debug $f $f.debug; done\n"
	    "dwz -m common.debug -M %s %s one.debug two.debug\n"
	    "readelf -SW one.debug 2>/dev/null | grep -q %s\n"
	    "cd ..; cp w/one.debug $(by_id usr/bin/prog); cp w/common.debug usr/lib/debug/.dwz/",
	    flags, flags, link, five ? "--dwarf-5" : "", five ? "debug_sup" : "gnu_debugaltlink");
}

TEST(supplementary_files)
{
	start();
	make_dwz("-gdwarf-4", "/usr/lib/debug/.dwz/common.debug");
	ASSERT_ALL_FOUND();
	ASSERT_PTR_NONNULL(debug_files_dwarf(files)->alt);
	/* By build-id only. */
	run("mv usr/lib/debug/.dwz/common.debug c; cp c $(by_id c)");
	ASSERT_ALL_FOUND();
	ASSERT_PTR_NONNULL(debug_files_dwarf(files)->alt);
	/* Not there: what the file itself has serves. */
	run("rm $(by_id c)");
	ASSERT_EQ(try_open(), 0);
	ASSERT_PTR_NONNULL(strstr(complaints, "its supplementary file "
					      "/usr/lib/debug/.dwz/common.debug is not there\n"));
	ASSERT_PTR_NULL(debug_files_dwarf(files)->alt);
	ASSERT(finds_something());
	/* Another one's. */
	run("cp usr/bin/prog usr/lib/debug/.dwz/common.debug");
	ASSERT_EQ(try_open(), 0);
	ASSERT_PTR_NONNULL(strstr(
		complaints, "/usr/lib/debug/.dwz/common.debug: build-id differs, not used\n"));
	ASSERT_PTR_NULL(debug_files_dwarf(files)->alt);
	stop();
}

TEST(a_supplementary_file_beside_the_real_place_of_its_referrer)
{
	start();
	make_dwz("-gdwarf-4", "../../.dwz/common.debug");
	run("mkdir -p usr/lib/debug/real/x; f=$(by_id usr/bin/prog)\n"
	    "mv $f usr/lib/debug/real/x/one.debug; ln -s /usr/lib/debug/real/x/one.debug $f");
	ASSERT_ALL_FOUND();
	ASSERT_PTR_NONNULL(debug_files_dwarf(files)->alt);
	/* Seen from where the link is. */
	run("mv usr/lib/debug/.dwz usr/lib/debug/.dwz2; f=$(by_id usr/bin/prog)\n"
	    "mkdir -p usr/lib/.dwz; rmdir usr/lib/.dwz; mkdir -p usr/lib/debug/.dwz\n"
	    "mv usr/lib/debug/.dwz2/* usr/lib/debug/.dwz/; rm $f\n"
	    "mv usr/lib/debug/real/x/one.debug $f");
	ASSERT_ALL_FOUND();
	stop();
}

TEST(supplementary_files_of_dwarf_5)
{
	start();
	make_dwz("-gdwarf-5", "/usr/lib/debug/.dwz/common.debug");
	ASSERT_ALL_FOUND();
	ASSERT_PTR_NONNULL(debug_files_dwarf(files)->alt);
	stop();
}

TEST(split_units)
{
	static const char *const how[] = {
		"gcc_ -gdwarf-4",
		"gcc_ -gdwarf-5",
		"gcc_ -gdwarf-4 -fdebug-types-section",
		"gcc_ -gdwarf-5 -fdebug-types-section",
		"gcc_ -gdwarf-5 -gz=zlib",
		"clang -gdwarf-4 -fdebug-prefix-map=$D=",
		("clang -gdwarf-5 -fdebug-prefix-map=$D= "
		 "-fdebug-compilation-dir=/src"),
	};

	start();
	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		run("cd src; rm -f *.o *.dwo; for f in a b; do %s -O2 -gsplit-dwarf -c $f.c -o "
		    "$f.o; "
		    "done; gcc_ a.o b.o -o ../usr/bin/prog; ls *.dwo >/dev/null",
		    how[i]);
		ASSERT_ALL_FOUND();
		/* With a separate debug file, that has the skeletons. */
		run("cp usr/bin/prog full; objcopy --only-keep-debug full $(by_id full)\n"
		    "strip usr/bin/prog; test -s src/a.dwo");
		ASSERT_ALL_FOUND();
		/* Moved away together with the program. */
		run("mv src/*.dwo usr/bin/");
		ASSERT_ALL_FOUND();
		run("mv usr/bin/a.dwo src/");
		ASSERT_ALL_FOUND();
		run("rm -f usr/bin/*.dwo");
		ASSERT_EQ(try_open(), 0);
		ASSERT(!finds_all());
	}
	stop();
}

TEST(another_compilations_split_unit_is_not_used)
{
	start();
	for (int version = 4; version <= 5; version++) {
		run("cd src; rm -f *.o *.dwo; for f in a b; do\n"
		    "gcc_ -gdwarf-%d -O2 -gsplit-dwarf -c $f.c -o $f.o; done\n"
		    "gcc_ a.o b.o -o ../usr/bin/prog; mv a.dwo ../usr/bin/; echo 'int x;' >>a.c\n"
		    "gcc_ -gdwarf-%d -O1 -gsplit-dwarf -c a.c -o a.o",
		    version, version);
		ASSERT_EQ(try_open(), 0);
		ASSERT(finds_all());
		ASSERT_STR(complaints, "/src/a.dwo: has other units than those it is wanted for, "
				       "not used\n");
	}
	stop();
}

TEST(packages_of_split_units)
{
	start();
	for (int version = 4; version <= 5; version++) {
		run("cd src; rm -f ../usr/bin/*; for f in a b; do gcc_ -gdwarf-%d -O2 "
		    "-gsplit-dwarf -c "
		    "$f.c -o $f.o; done; gcc_ a.o b.o -o ../usr/bin/prog\n"
		    "llvm-dwp a.dwo b.dwo -o ../usr/bin/prog.dwp; rm *.dwo",
		    version);
		ASSERT_ALL_FOUND();
		/* Beside the debug file, under both names. */
		run("cp usr/bin/prog full; objcopy --only-keep-debug full $(by_id full)\n"
		    "strip usr/bin/prog; mv usr/bin/prog.dwp $(by_id full).dwp");
		ASSERT_ALL_FOUND();
		run("f=$(by_id full); mv $f.dwp ${f%%.debug}.dwp");
		ASSERT_ALL_FOUND();
		run("f=$(by_id full); rm ${f%%.debug}.dwp");
		ASSERT_EQ(try_open(), 0);
		ASSERT(!finds_all());
	}
	/* GNU's dwp; and a .dwp of only one of the two units, the other's .dwo is there. */
	run("cd src; for f in a b; do gcc_ -gdwarf-4 -O2 -gsplit-dwarf -c $f.c -o $f.o; done\n"
	    "gcc_ a.o b.o -o ../usr/bin/prog; dwp a.dwo b.dwo -o ../usr/bin/prog.dwp; mkdir d\n"
	    "mv *.dwo d/");
	ASSERT_ALL_FOUND();
	run("cd src; llvm-dwp d/b.dwo -o ../usr/bin/prog.dwp; mv d/a.dwo .");
	ASSERT_ALL_FOUND();
	run("cp usr/bin/prog usr/bin/prog.dwp; mv src/d/b.dwo src/");
	ASSERT_EQ(try_open(), 0);
	ASSERT(finds_all());
	stop();
}

/* What a reader asks for. */
static struct {
	struct dwarf_split_ref refs[16];
	char names[16][32];
	size_t nr;
} asked;

static int note_split(void *ctx, const struct dwarf_split_ref *ref,
		      const struct dwarf_sections **ret)
{
	(void)ctx;
	(void)ret;
	ASSERT(asked.nr < 16);
	snprintf(asked.names[asked.nr], sizeof(asked.names[0]), "%s", ref->name);
	asked.refs[asked.nr] = (struct dwarf_split_ref){ ref->id, asked.names[asked.nr], "/src" };
	asked.nr++;
	return -ENOENT;
}

static int ignore_unit(void *ctx, const struct dwarf_unit *unit)
{
	(void)ctx;
	(void)unit;
	return 0;
}

TEST(more_split_files_than_are_kept)
{
	const struct dwarf_sections *s, *again;
	const struct dwarf_source *source;
	struct dwarf_source noting;

	start();
	run("cd src; for i in 0 1 2 3 4 5 6 7; do echo \"int f$i(void) { return $i; }\" >f$i.c\n"
	    "gcc_ -gdwarf-4 -O2 -gsplit-dwarf -c f$i.c -o f$i.o; done\n"
	    "gcc_ -shared f*.o -o ../usr/bin/prog");
	ASSERT_EQ(try_open(), 0);
	noting = *debug_files_dwarf(files);
	noting.split = note_split;
	ASSERT_OK(dwarf_read_units(&noting, ignore_unit, NULL, NULL));
	ASSERT_EQ(asked.nr, 8);
	source = debug_files_dwarf(files);
	for (size_t i = 0; i < 24; i++) {
		ASSERT_OK(source->split(source->ctx, &asked.refs[i % 8], &s));
		ASSERT_PTR_NONNULL(s->info.data);
		ASSERT_OK(source->split(source->ctx, &asked.refs[i % 8], &again));
		ASSERT(s == again);
	}
	/* Little room: one after the other, none stays. */
	search.max_bytes = 0;
	for (const struct dwarf_span *span = &source->main.info; span <= &source->main.tu_index;
	     span++)
		search.max_bytes += span->size;
	search.max_bytes += 1000;
	ASSERT_EQ(try_open(), 0);
	source = debug_files_dwarf(files);
	for (size_t i = 0; i < 24; i++) {
		ASSERT_OK(source->split(source->ctx, &asked.refs[i % 8], &s));
		ASSERT_PTR_NONNULL(s->info.data);
	}
	ASSERT_STR(complaints, "");
	/* No room at all. */
	search.max_bytes -= 990;
	ASSERT_EQ(try_open(), 0);
	source = debug_files_dwarf(files);
	ASSERT_ERR(source->split(source->ctx, &asked.refs[0], &s), ENOENT);
	ASSERT_STR(
		complaints,
		"/src/f0.dwo: debug information larger than 0 MB or 32 times its file, not used\n");
	stop();
}

TEST(too_large_or_corrupt_is_said_and_symbols_are_had)
{
	start();
	run("gcc_ -g -O2 src/a.c src/b.c -o full; strip -o usr/bin/prog full\n"
	    "objcopy --only-keep-debug full $(by_id full)");
	search.max_bytes = 1024;
	ASSERT_EQ(try_open(), 1);
	ASSERT_PTR_NONNULL(
		strstr(complaints,
		       ": debug information larger than 0 MB or 32 times its file, not used\n"));
	ASSERT(!finds_something());
	ASSERT_PTR_NONNULL(debug_files_elf(files));
	search.max_bytes = 0; /* not wanted at all */
	ASSERT_EQ(try_open(), 0);
	ASSERT_STR(complaints, "");
	ASSERT(!finds_something());
	ASSERT_PTR_NONNULL(debug_files_elf(files));
	search.max_bytes = 64 << 20;
	ASSERT_ALL_FOUND();
	/* A bomb. */
	search.max_bytes = 1 << 30;
	run("objcopy --only-keep-debug full d; head -c 80000000 /dev/zero >zeros\n"
	    "objcopy --update-section .debug_info=zeros d; rm zeros\n"
	    "objcopy --compress-debug-sections=zlib d $(by_id full)");
	ASSERT_EQ(try_open(), 1);
	ck_assert_msg(strstr(complaints, " or 32 times its file, not used\n") != NULL, "%s",
		      complaints);
	ASSERT_PTR_NONNULL(debug_files_elf(files));
	search.max_bytes = 64 << 20;
	/* The compressed bytes of .debug_info, overwritten. */
	run("objcopy --only-keep-debug --compress-debug-sections=zlib full d; f=$(by_id full)\n"
	    "o=$(readelf -SW d 2>/dev/null | sed -n 's/.* .debug_info *PROGBITS *[0-9a-f]* "
	    "*\\([0-9a-f]*\\).*/\\1/p')\n"
	    "head -c 64 /dev/zero | dd of=d bs=1 seek=$((0x$o + 40)) conv=notrunc status=none\n"
	    "cp d $f");
	ASSERT_EQ(try_open(), 1);
	ASSERT_PTR_NONNULL(strstr(complaints, ": .debug_info: corrupt, not used\n"));
	ASSERT(!finds_something());
	/* Cut off. */
	run("objcopy --only-keep-debug full d; f=$(by_id full); head -c 3000 d >$f");
	ASSERT(try_open() >= 0);
	ASSERT(!finds_something());
	stop();
}

TEST(a_supplementary_file_that_does_not_fit_makes_it_all_unusable)
{
	size_t main_size = 0;

	start();
	make_dwz("-gdwarf-4", "/usr/lib/debug/.dwz/common.debug");
	ASSERT_ALL_FOUND();
	{
		const struct dwarf_sections *s = &debug_files_dwarf(files)->main;

		main_size = s->info.size + s->abbrev.size + s->str.size + s->line.size +
			    s->line_str.size + s->ranges.size + s->rnglists.size + s->types.size +
			    s->addr.size + s->str_offsets.size;
	}
	search.max_bytes = main_size + 8;
	ASSERT_EQ(try_open(), 1);
	ASSERT(!finds_something());
	ASSERT_PTR_NULL(debug_files_dwarf(files)->alt);
	stop();
}

TEST(relocatable_files_are_refused)
{
	start();
	run("gcc_ -g -O2 -c src/a.c -o usr/bin/prog");
	ASSERT_ERR(try_open(), ENOTSUP);
	ASSERT_PTR_NULL(files);
	run("gcc_ -O2 -c src/a.c -o usr/bin/prog");
	ASSERT_EQ(try_open(), 0);
	ASSERT(!finds_something());
	stop();
}

TEST(the_second_root_is_searched_too)
{
	int roots[2];

	start();
	run("gcc_ -g -O2 src/a.c src/b.c -o full; strip -o usr/bin/prog full\n"
	    "mkdir -p empty; objcopy --only-keep-debug full $(by_id full)");
	roots[0] = openat(root_fd, "empty", O_PATH | O_DIRECTORY | O_CLOEXEC);
	roots[1] = root_fd;
	search.roots = roots;
	search.nr_roots = 2;
	ASSERT_ALL_FOUND();
	search.nr_roots = 1;
	ASSERT_NOTHING_FOUND("");
	search.nr_roots = 0;
	ASSERT_NOTHING_FOUND("");
	close(roots[0]);
	stop();
}

static uint64_t fingerprint(void)
{
	return debug_files_fingerprint(elf, &search);
}

TEST(the_fingerprint_follows_the_files)
{
	uint64_t none, with, other, dwp;
	int roots[2];

	start();
	run("gcc_ -g -O2 src/a.c src/b.c -o full; strip -o usr/bin/prog full; mkdir empty\n"
	    "objcopy --only-keep-debug full d; objcopy --add-gnu-debuglink=d usr/bin/prog");
	ASSERT_EQ(try_open(), 0);
	none = fingerprint();
	run("cp d $(by_id full)");
	with = fingerprint();
	ASSERT(with != none);
	ASSERT_EQ(with, fingerprint());
	/* A root without anything changes nothing. */
	roots[0] = openat(root_fd, "empty", O_PATH | O_DIRECTORY | O_CLOEXEC);
	roots[1] = root_fd;
	search.roots = roots;
	search.nr_roots = 2;
	ASSERT_EQ(with, fingerprint());
	search.roots = &root_fd;
	search.nr_roots = 1;
	close(roots[0]);
	run("touch -d 2001-02-03 $(by_id full)");
	other = fingerprint();
	ASSERT(other != with && other != none);
	run("echo >usr/bin/prog.dwp");
	dwp = fingerprint();
	ASSERT(dwp != other);
	run("rm usr/bin/prog.dwp $(by_id full)");
	ASSERT_EQ(none, fingerprint());
	run("cp d usr/bin/.debug/d");
	ASSERT(fingerprint() != none);
	stop();
}

TEST(complaints_are_few)
{
	size_t nr = 0;

	start();
	run("cd src; for i in $(seq 30); do echo 'int f'$i'(void){return '$i';}' >f$i.c\n"
	    "gcc_ -gdwarf-5 -gsplit-dwarf -c f$i.c -o f$i.o; echo >f$i.dwo; done\n"
	    "gcc_ -gdwarf-5 -gsplit-dwarf a.c b.c f*.o -o ../usr/bin/prog");
	ASSERT_EQ(try_open(), 0);
	ASSERT(!finds_all());
	for (const char *c = complaints; *c; c++)
		nr += *c == '\n';
	ASSERT_EQ(nr, DEBUG_COMPLAINTS_MAX);
	stop();
}
