// SPDX-License-Identifier: Apache-2.0
#include "util/pairs.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const char *words, const char **ret_problem)
{
	*ret_problem = words;
	return -EINVAL;
}

/* RFC 9110, 5.6.2 */
static bool is_token(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!name[i] ||
		    (!isalnum((unsigned char)name[i]) && !strchr("!#$%&'*+-.^_`|~", name[i])))
			return false;
	return len;
}

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == 127;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. Nothing that ends a line is let through. */
static bool decode_value(char *value)
{
	char *out = value;

	for (const char *s = value; *s; s++) {
		int high = *s == '%' ? hex_digit(s[1]) : -1;
		int low = high >= 0 ? hex_digit(s[2]) : -1;

		*out = low >= 0 ? (char)(high << 4 | low) : *s;
		if (is_control(*out))
			return false;
		out++;
		if (low >= 0)
			s += 2;
	}
	*out = '\0';
	return true;
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len && strchr(" \t", text[len - 1]))
		text[--len] = '\0';
	return text;
}

static int add_pair(struct pairs *p, char *text, const char **ret_problem)
{
	char *equals = strchr(text, '='), *name, *value;

	text = trim(text);
	if (!*text)
		return 0;
	if (!equals)
		return wrong("a part of it is not name=value", ret_problem);
	*equals = '\0';
	name = trim(text);
	value = trim(equals + 1);
	if (!is_token(name, strlen(name)))
		return wrong("a name in it is none", ret_problem);
	if (!decode_value(value))
		return wrong("a value in it has control characters", ret_problem);
	if (p->nr == PAIRS_MAX)
		return wrong("there are too many", ret_problem);
	p->items[p->nr++] = (struct pair){ name, value };
	return 0;
}

int pairs_parse(const char *text, struct pairs *ret, const char **ret_problem)
{
	struct pairs p = { .text = strdup(text) };
	int r = p.text ? 0 : -ENOMEM;

	for (char *at = p.text, *next; at && !r; at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		r = add_pair(&p, at, ret_problem);
	}
	if (r) {
		pairs_fini(&p);
		return r;
	}
	*ret = p;
	return 0;
}

int pairs_append(char *text, size_t size, size_t *len, const void *name, size_t name_len,
		 const void *value, size_t value_len)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *from = value;
	char *at = text + *len;

	if (!is_token(name, name_len))
		return -EINVAL;
	for (size_t i = 0; i < value_len; i++)
		if (is_control(from[i]))
			return -EINVAL;
	/* Of its longest form, and the end of the text. */
	if (name_len > size || value_len > size / 3 || size - *len < name_len + 3 * value_len + 3)
		return -ENOSPC;
	if (*len)
		*at++ = ',';
	memcpy(at, name, name_len);
	at += name_len;
	*at++ = '=';
	for (size_t i = 0; i < value_len; i++) {
		if (isalnum((unsigned char)from[i]) || strchr("-._~:/", from[i])) {
			*at++ = from[i];
			continue;
		}
		*at++ = '%';
		*at++ = digits[(unsigned char)from[i] >> 4];
		*at++ = digits[from[i] & 15];
	}
	*at = '\0';
	*len = (size_t)(at - text);
	return 0;
}

void pairs_fini(struct pairs *pairs)
{
	free(pairs->text);
	*pairs = (struct pairs){ 0 };
}

const char *pairs_get(const struct pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->nr; i++)
		if (!strcmp(pairs->items[i].name, name))
			return pairs->items[i].value;
	return NULL;
}
