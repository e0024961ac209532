// SPDX-License-Identifier: Apache-2.0
#include "cli/top_screen.h"

#include "cli/top.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	FILTER_MAX = 64,
	HEADER_LINES = 3,
	CPUS_COLS_MIN = 40,
	KEPT_BACK_MAX = 16 << 10, /* bytes of messages that are shown at the end */
	KEY_ESCAPE = 27,
	CONTROL_H = 8,
	CONTROL_L = 12,
	CONTROL_U = 21,
	DELETE = 127,
	COLOUR_KERNEL = 1,
};

struct top_screen {
	SCREEN *screen;
	struct top_view view;
	char filter[FILTER_MAX];
	bool typing_filter, paused, help;
	size_t first; /* row at the top of the list */
	size_t nr_rows;
	int old_stderr, messages; /* descriptors */
};

/* --- the terminal ----------------------------------------------------------------------------- */

/* Messages would scramble the screen. */
static void keep_messages_back(struct top_screen *s)
{
	s->messages = memfd_create("messages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	s->old_stderr = s->messages < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	/* What does not fit is not kept: it may run for days, and with -v. */
	if (s->old_stderr >= 0 && !ftruncate(s->messages, KEPT_BACK_MAX))
		fcntl(s->messages, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
	if (s->old_stderr >= 0)
		dup2(s->messages, STDERR_FILENO);
}

static void show_messages(struct top_screen *s)
{
	char text[KEPT_BACK_MAX];
	off_t len;
	ssize_t n;

	if (s->old_stderr < 0)
		return;
	dup2(s->old_stderr, STDERR_FILENO);
	len = lseek(s->messages, 0, SEEK_CUR);
	n = len > 0 ? pread(s->messages, text,
			    (size_t)len < sizeof(text) ? (size_t)len : sizeof(text), 0)
		    : 0;
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return; /* there is nobody left to tell */
}

int top_screen_open(struct top_screen **ret)
{
	struct top_screen *s;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->old_stderr = s->messages = -1;
	s->view.filter = s->filter;
	setlocale(LC_CTYPE, "");
	s->screen = newterm(NULL, stdout, stdin);
	if (!s->screen) {
		free(s);
		return -EINVAL;
	}
	keep_messages_back(s);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (has_colors() && start_color() == OK) {
		use_default_colors();
		init_pair(COLOUR_KERNEL, COLOR_YELLOW, -1);
	}
	*ret = s;
	return 0;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->screen);
	show_messages(s);
	close_p(&s->old_stderr);
	close_p(&s->messages);
	free(s);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void type_filter(struct top_screen *s, int key)
{
	size_t len = strlen(s->filter);

	if (key == '\r' || key == '\n' || key == KEY_ENTER) {
		s->typing_filter = false;
	} else if (key == KEY_ESCAPE) {
		s->typing_filter = false;
		s->filter[0] = '\0';
	} else if (key == KEY_BACKSPACE || key == DELETE || key == CONTROL_H) {
		while (len && (s->filter[len - 1] & 0xc0) == 0x80)
			len--;
		s->filter[len ? len - 1 : 0] = '\0';
	} else if (key == CONTROL_U) {
		s->filter[0] = '\0';
	} else if (key >= ' ' && key < 256 && len + 1 < FILTER_MAX) {
		s->filter[len] = (char)key;
		s->filter[len + 1] = '\0';
	}
	s->first = 0;
}

static void scroll_by(struct top_screen *s, long rows)
{
	long first = (long)s->first + rows, last = (long)s->nr_rows - 1;

	if (first > last)
		first = last;
	s->first = first < 0 ? 0 : (size_t)first;
}

static bool scroll_key(struct top_screen *s, int key)
{
	int page = LINES > HEADER_LINES + 1 ? LINES - HEADER_LINES - 1 : 1;

	switch (key) {
	case KEY_DOWN:
	case 'j':
		scroll_by(s, 1);
		return true;
	case KEY_UP:
		scroll_by(s, -1);
		return true;
	case KEY_NPAGE:
		scroll_by(s, page);
		return true;
	case KEY_PPAGE:
		scroll_by(s, -page);
		return true;
	case KEY_HOME:
		s->first = 0;
		return true;
	case KEY_END:
		scroll_by(s, (long)s->nr_rows - page - (long)s->first);
		return true;
	}
	return false;
}

static enum top_action command_key(struct top_screen *s, int key)
{
	struct top_view *v = &s->view;

	switch (key) {
	case 'q':
		return TOP_ACTION_QUIT;
	case 'r':
		return TOP_ACTION_RESET;
	case ' ':
	case 'z':
		s->paused = !s->paused;
		break;
	case '/':
		s->typing_filter = true;
		break;
	case KEY_ESCAPE:
		s->filter[0] = '\0';
		s->help = false;
		break;
	case 's':
		v->order = (v->order + 1) % TOP_ORDER_MAX_;
		break;
	case 'k':
		v->mode = (v->mode + 1) % TOP_MODE_MAX_;
		break;
	case 'f':
		v->by = TOP_BY_FUNCTION;
		break;
	case 'p':
		v->by = TOP_BY_PROCESS;
		break;
	case 't':
		v->by = TOP_BY_THREAD;
		break;
	case '\t':
		v->by = (v->by + 1) % TOP_BY_MAX_;
		break;
	case '?':
	case 'h':
		s->help = !s->help;
		break;
	case CONTROL_L:
		clearok(stdscr, TRUE);
		break;
	default:
		return TOP_ACTION_NONE;
	}
	s->first = 0;
	return TOP_ACTION_NONE;
}

enum top_action top_screen_keys(struct top_screen *s)
{
	enum top_action action = TOP_ACTION_NONE;
	int key;

	while (action != TOP_ACTION_QUIT && (key = getch()) != ERR) {
		if (key == KEY_RESIZE)
			continue; /* ncurses knows the new size */
		if (s->typing_filter)
			type_filter(s, key);
		else if (!scroll_key(s, key))
			action = command_key(s, key);
	}
	return action;
}

bool top_screen_is_paused(const struct top_screen *s)
{
	return s->paused;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void draw_line(int y, attr_t attributes, const char *text)
{
	if (y >= LINES)
		return;
	attrset(attributes);
	move(y, 0);
	addnstr(text, COLS);
	clrtoeol();
	attrset(A_NORMAL);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"f p t, Tab   by function, process, thread",
		"s            sort: self, total, name",
		"k            user and kernel, user only, kernel only",
		"/            filter by a part of the name; Esc: all",
		"space        pause",
		"r            begin anew",
		"arrows, page scroll",
		"q            quit",
	};

	for (int i = 0; i < (int)(sizeof(lines) / sizeof(*lines)); i++)
		draw_line(HEADER_LINES + i, A_NORMAL, lines[i]);
}

/* On a narrow screen names need the room more. */
static bool has_cpus(void)
{
	return COLS >= CPUS_COLS_MIN;
}

static void draw_header(const struct top_screen *s, const char *status)
{
	static const char *const by[] = { "functions", "processes", "threads" };
	static const char *const order[] = { "self", "total", "name" };
	static const char *const mode[] = { "user and kernel", "user", "kernel" };
	static const char *const what[] = { "FUNCTION", "PROCESS", "THREAD" };
	char line[512];

	snprintf(line, sizeof(line), "sonde top: %s%s", status, s->paused ? "  [paused]" : "");
	draw_line(0, A_BOLD, line);
	if (s->typing_filter || s->filter[0])
		snprintf(line, sizeof(line), "%s, %s, by %s  filter: %s%s", by[s->view.by],
			 mode[s->view.mode], order[s->view.order], s->filter,
			 s->typing_filter ? "_" : "");
	else
		snprintf(line, sizeof(line), "%s, %s, by %s  (? for help)", by[s->view.by],
			 mode[s->view.mode], order[s->view.order]);
	draw_line(1, A_NORMAL, line);
	snprintf(line, sizeof(line), "  SELF%%  TOTAL%%%s  %-*s", has_cpus() ? "   CPUS" : "", COLS,
		 what[s->view.by]);
	draw_line(2, A_REVERSE, line);
}

static void draw_row(const struct top_screen *s, int y, const struct top_model *m,
		     const struct top_row *row)
{
	double samples = m->samples > 0 ? m->samples : 1;
	char text[1024], cpus[32] = "", line[1100];

	top_row_text(m, row, s->view.by, text, sizeof(text));
	if (has_cpus())
		snprintf(cpus, sizeof(cpus), " %6.2f",
			 top_model_cpus(m, top_row_main(row, &s->view)));
	snprintf(line, sizeof(line), "%7.2f %7.2f%s  %s",
		 100 * top_row_self(row, &s->view) / samples,
		 100 * top_row_total(row, &s->view) / samples, cpus, text);
	draw_line(y, row->kernel ? COLOR_PAIR(COLOUR_KERNEL) : A_NORMAL, line);
}

int top_screen_draw(struct top_screen *s, const struct top_model *m, const char *status)
{
	_cleanup_free_ const struct top_row **rows = NULL;
	int y = HEADER_LINES, r;

	r = top_model_select(m, &s->view, &rows, &s->nr_rows);
	if (r)
		return r;
	scroll_by(s, 0);
	draw_header(s, status);
	if (s->help) {
		move(y, 0);
		clrtobot();
		draw_help();
	} else {
		for (size_t i = s->first; i < s->nr_rows && y < LINES; i++)
			draw_row(s, y++, m, rows[i]);
		if (y < LINES) {
			move(y, 0);
			clrtobot();
		}
	}
	refresh();
	return 0;
}
