// SPDX-License-Identifier: Apache-2.0
#include "util/log.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fds[2];

/* What is logged from now on can be read: each test is a process of its own. */
static void listen_to_log(void)
{
	ASSERT_OK(pipe2(fds, O_NONBLOCK));
	ASSERT_OK(dup2(fds[1], STDERR_FILENO));
}

static const char *said(void)
{
	static char text[65536];
	ssize_t n = read(fds[0], text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Behind the time. */
static const char *said_json(void)
{
	const char *text = said();
	int len = 0;

	ASSERT_EQ(sscanf(text, "{\"time\":\"%*4u-%*2u-%*2uT%*2u:%*2u:%*2u.%*3uZ\",%n", &len), 0);
	ASSERT_MSG(len == 35, "%s", text);
	return text + len;
}

TEST(lines_are_text)
{
	listen_to_log();
	log_warn("a %d", 1);
	ASSERT_STR(said(), "sonde: a 1\n");
	ASSERT_EQ(log_err(-ENOENT, "b"), -ENOENT);
	ASSERT_STR(said(), "sonde: b: No such file or directory\n");
	log_print(LOG_LEVEL_DEBUG, "c");
	ASSERT_STR(said(), "");
	/* Names of others' files: no second line, nothing for a terminal to do. */
	log_warn("/tmp/a\nsonde: b\x1b[2J \x7f \xc2\x9b"
		 "1m \x9b \xc3\xa4");
	ASSERT_STR(said(), "sonde: /tmp/a?sonde: b?[2J ? ??1m ? \xc3\xa4\n");
}

TEST(lines_are_json)
{
	listen_to_log();
	log_set_json(true);
	log_warn("a \"b\\\" \n\t\x7f \xc3\xa4 \xf0\x9f\x98\x80");
	ASSERT_STR(said_json(), "\"level\":\"warning\",\"message\":\"a \\\"b\\\\\\\" "
				"\\u000a\\u0009\\u007f \xc3\xa4 \xf0\x9f\x98\x80\"}\n");
	/* No UTF-8, each byte of it. */
	log_info("\xff \xc3 \xc0\x80 \xed\xa0\x80 \xf0\x9f");
	ASSERT_STR(said_json(), "\"level\":\"info\",\"message\":\"\\ufffd \\ufffd \\ufffd\\ufffd "
				"\\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\"}\n");
	log_err(-EIO, "x");
	ASSERT_STR(said_json(), "\"level\":\"error\",\"message\":\"x: Input/output error\"}\n");
}

TEST(long_lines_are_cut)
{
	char text[3000];

	listen_to_log();
	memset(text, '\x01', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_err(-EIO, "%s", text);
	ASSERT_EQ(strlen(said()), 7 + 1015 + 1);
	log_set_json(true);
	log_err(-EIO, "%s", text);
	ASSERT_EQ(strlen(said_json()), strlen("\"level\":\"error\",\"message\":\"") + 1015 * 6 + 3);
}

TEST(what_comes_too_often_is_counted)
{
	listen_to_log();
	log_set_limit(3);
	for (int i = 0; i < 10; i++) {
		log_warn("a %d", i);
		log_info("b");
	}
	ASSERT_STR(said(),
		   "sonde: a 0\nsonde: b\nsonde: a 1\nsonde: b\nsonde: a 2\nsonde: b\n"
		   "sonde: b\nsonde: b\nsonde: b\nsonde: b\nsonde: b\nsonde: b\nsonde: b\n");
	ASSERT_EQ(log_unsaid(), 7);
	log_err(-EIO, "another");
	ASSERT_STR(said(), "sonde: another: Input/output error\n");
}
