// SPDX-License-Identifier: Apache-2.0
/* Which runtimes a command is going to start, as its words and scripts tell. */
#include "record/program.h"
#include "abi/sample.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OF(...) runtimes_of_command((char *const[]){ __VA_ARGS__, NULL })

enum {
	PYTHON = 1u << RUNTIME_PYTHON,
	V8 = 1u << RUNTIME_V8,
	RUBY = 1u << RUNTIME_RUBY,
	HOTSPOT = 1u << RUNTIME_HOTSPOT,
};

static void script(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	ASSERT_PTR_NONNULL(f);
	fputs(text, f);
	ASSERT_OK(fclose(f));
	ASSERT_OK(chmod(path, 0700));
}

TEST(what_a_program_of_no_runtime_starts_is_in_its_arguments)
{
	ASSERT_EQ(OF("true"), 0);
	ASSERT_EQ(OF("true", "file.txt"), 0);
	ASSERT_EQ(OF("no-such-program-anywhere", "python3"), 0);
	ASSERT_EQ(OF("sh", "-c", "cd /tmp && exec python3 x.py"), PYTHON);
	ASSERT_EQ(OF("timeout", "5", "/opt/x/bin/node", "server.js"), V8);
	ASSERT_EQ(OF("env", "-i", "A=1", "nice", "java", "-jar", "x"), HOTSPOT);
	ASSERT_EQ(OF("sh", "-c", "X=$(ruby a.rb)|python3.11"), PYTHON | RUBY);
	ASSERT_EQ(OF("sh", "-c", "a-node my-python xruby"), 0);
}

TEST(what_a_script_of_a_shell_starts_is_in_its_begin)
{
	char path[] = "/tmp/sonde-program-XXXXXX";
	int fd = mkstemp(path);

	ASSERT(fd >= 0);
	close(fd);
	script(path, "#!/bin/sh\nset -e\nexec \"/usr/bin/ruby2.7\" $@\n");
	ASSERT_EQ(OF(path), RUBY);
	ASSERT_EQ(OF("sh", path), RUBY);
	ASSERT_EQ(OF("cat", path), 0);
	script(path, "#! /usr/bin/env -S sh\nnode x\n");
	ASSERT_EQ(OF(path), V8);
	script(path, "#!/no/such/interpreter/python3\n");
	ASSERT_EQ(OF(path), PYTHON);
	script(path, "");
	ASSERT_EQ(OF(path), 0);
	unlink(path);
}
