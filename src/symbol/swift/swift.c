// SPDX-License-Identifier: Apache-2.0
/*
 * Swift's mangling: a list of operators in postfix order (Swift's docs/ABI/Mangling.rst). Each
 * takes what it is about off a stack of nodes and puts its own there: "4main3fooyyF" is the
 * identifiers main and foo, two empty lists (result and parameters), and F, a function of all that.
 *
 * What is not code in a program, or is rarer than its effort, is not understood, and such names
 * stay mangled, as they do wherever the stack is not as it should be. A name of n bytes makes
 * at most NODES_PER_BYTE * n nodes; a repeated substitution is one node.
 */
#include "symbol/swift/swift.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/swift/swift_parse.h"
#include "util/cleanup.h"
#include "util/utf8.h"

enum {
	NAME_MAX_BYTES = 16 << 10,
	NODES_PER_BYTE = 4,
	POOL_PER_BYTE = 32,
	REPEAT_MAX = 2048,
	NUMBER_MAX = 1 << 20,
	KIDS_MAX = 512, /* of a list */
};

/* --- nodes, stack, input -----------------------------------------------------------------------
 */

uint32_t swift_make_list(struct swift_parser *p, enum swift_kind kind, const uint32_t *kids,
			 size_t nr)
{
	struct swift_tree *t = p->tree;
	struct swift_node n = {
		.kind = (uint8_t)kind, .text = "", .first = (uint32_t)t->kids.nr, .nr = (uint32_t)nr
	};

	if (t->nodes.nr >= p->nodes_max || t->kids.nr + nr > (size_t)p->nodes_max * 2)
		return swift_fail(p);
	for (size_t i = 0; i < nr; i++)
		if (vec_push(&t->kids, kids[i]))
			return swift_fail(p);
	if (vec_push(&t->nodes, n))
		return swift_fail(p);
	return (uint32_t)t->nodes.nr - 1;
}

uint32_t swift_fail(struct swift_parser *p)
{
	p->failed = true;
	return SWIFT_NONE;
}

uint32_t swift_make(struct swift_parser *p, enum swift_kind kind, const char *text, size_t nr, ...)
{
	uint32_t kids[8], id;
	va_list args;

	va_start(args, nr);
	for (size_t i = 0; i < nr; i++)
		kids[i] = va_arg(args, uint32_t);
	va_end(args);
	id = swift_make_list(p, kind, kids, nr);
	if (id != SWIFT_NONE && text) {
		p->tree->nodes.items[id].text = text;
		p->tree->nodes.items[id].len = (uint16_t)strlen(text);
	}
	return id;
}

void swift_push(struct swift_parser *p, uint32_t id)
{
	if (id == SWIFT_NONE || p->tree->stack.nr >= p->nodes_max || vec_push(&p->tree->stack, id))
		swift_fail(p);
}

enum swift_kind swift_kind_of(const struct swift_parser *p, uint32_t id)
{
	return (enum swift_kind)p->tree->nodes.items[id].kind;
}

static uint32_t top(const struct swift_parser *p)
{
	return p->tree->stack.nr ? p->tree->stack.items[p->tree->stack.nr - 1] : SWIFT_NONE;
}

uint32_t swift_pop(struct swift_parser *p, enum swift_kind kind)
{
	uint32_t id = top(p);

	if (id == SWIFT_NONE || swift_kind_of(p, id) != kind)
		return SWIFT_NONE;
	p->tree->stack.nr--;
	return id;
}

static uint32_t pop_if(struct swift_parser *p, bool (*is)(enum swift_kind kind))
{
	uint32_t id = top(p);

	if (id == SWIFT_NONE || !is(swift_kind_of(p, id)))
		return SWIFT_NONE;
	p->tree->stack.nr--;
	return id;
}

static bool is_type(enum swift_kind kind)
{
	return kind == SWIFT_NOMINAL || (kind >= SWIFT_PLAIN_TYPE && kind <= SWIFT_IMPL_TYPE &&
					 kind != SWIFT_ELEMENT && kind != SWIFT_LIST);
}

uint32_t swift_pop_type(struct swift_parser *p)
{
	return pop_if(p, is_type);
}

static bool is_name(enum swift_kind kind)
{
	return kind == SWIFT_IDENTIFIER || kind == SWIFT_OPERATOR || kind == SWIFT_PRIVATE_NAME ||
	       kind == SWIFT_LOCAL_NAME || kind == SWIFT_RELATED_NAME;
}

static bool is_entity(enum swift_kind kind)
{
	return kind == SWIFT_NOMINAL || (kind >= SWIFT_FUNCTION && kind <= SWIFT_STATIC) ||
	       kind == SWIFT_WRAPPED;
}

uint32_t swift_pop_entity(struct swift_parser *p)
{
	return pop_if(p, is_entity);
}

static bool is_context(enum swift_kind kind)
{
	return kind == SWIFT_MODULE || kind == SWIFT_EXTENSION || is_entity(kind);
}

uint32_t swift_pop_module(struct swift_parser *p)
{
	uint32_t id = swift_pop(p, SWIFT_IDENTIFIER), module;

	if (id == SWIFT_NONE)
		return swift_pop(p, SWIFT_MODULE);
	module = swift_make(p, SWIFT_MODULE, NULL, 0);
	if (module == SWIFT_NONE)
		return SWIFT_NONE;
	p->tree->nodes.items[module].text = p->tree->nodes.items[id].text;
	p->tree->nodes.items[module].len = p->tree->nodes.items[id].len;
	return module;
}

uint32_t swift_pop_context(struct swift_parser *p)
{
	uint32_t id = swift_pop_module(p);

	if (id == SWIFT_NONE)
		id = pop_if(p, is_context);
	return id == SWIFT_NONE ? swift_fail(p) : id;
}

void swift_add_substitution(struct swift_parser *p, uint32_t id)
{
	if (id == SWIFT_NONE || vec_push(&p->tree->substitutions, id))
		swift_fail(p);
}

char swift_next(struct swift_parser *p)
{
	return p->at < p->end ? *p->at++ : '\0';
}

bool swift_skip(struct swift_parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* A natural number; false if none is there. */
static bool natural(struct swift_parser *p, uint32_t *ret)
{
	uint32_t n = 0;

	if (p->at == p->end || *p->at < '0' || *p->at > '9')
		return false;
	while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
		n = n * 10 + (uint32_t)(*p->at++ - '0');
		if (n > NUMBER_MAX) {
			swift_fail(p);
			return false;
		}
	}
	*ret = n;
	return true;
}

uint32_t swift_index(struct swift_parser *p)
{
	uint32_t n = 0;

	if (swift_skip(p, '_'))
		return 0;
	if (!natural(p, &n) || !swift_skip(p, '_'))
		swift_fail(p);
	return n + 1;
}

/* --- identifiers -------------------------------------------------------------------------------
 */

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char *pool_add(struct swift_parser *p, const char *text, size_t len)
{
	struct swift_tree *t = p->tree;
	char *at = t->pool + t->pool_used;

	if (len > t->pool_size - t->pool_used) {
		swift_fail(p);
		return NULL;
	}
	memcpy(at, text, len);
	t->pool_used += len;
	return at;
}

/* The words of a literal part of an identifier can be referred to from now on. */
static void add_words(struct swift_parser *p, const char *text, size_t len)
{
	size_t begin = SIZE_MAX;

	for (size_t i = 0; i <= len; i++) {
		char c = i < len ? text[i] : '\0';
		bool ends = !c || c == '_' || (i && is_upper(c) && !is_upper(text[i - 1]));

		if (begin != SIZE_MAX && ends) {
			if (i - begin >= 2 && p->nr_words < 26)
				p->words[p->nr_words++] =
					(struct swift_word){ text + begin, i - begin };
			begin = SIZE_MAX;
		}
		if (begin == SIZE_MAX && c && c != '_' && !is_digit(c))
			begin = i;
	}
}

/* RFC 3492, 6.1: how the bias follows. */
static uint32_t puny_bias(uint32_t delta, uint32_t nr, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / 700 : delta / 2;
	delta += delta / nr;
	for (; delta > 455; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/*
 * RFC 3492 with "_" as the delimiter and A-J for the digits 0-9. ASCII that can't be in an
 * identifier is stored as U+D800 + its code.
 */
static bool puny_decode(struct swift_parser *p, const char *text, size_t len)
{
	uint32_t out[256], n = 128, i = 0, bias = 72;
	size_t nr = 0, at = 0;

	for (size_t k = len; k > 0; k--)
		if (text[k - 1] == '_') {
			for (; at < k - 1 && nr < 256; at++)
				out[nr++] = (unsigned char)text[at];
			at = k;
			break;
		}
	while (at < len) {
		uint32_t old = i, weight = 1;

		for (uint32_t k = 36;; k += 36) {
			uint32_t limit = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias, digit;
			char c = at < len ? text[at++] : '\0';

			if (c >= 'a' && c <= 'z')
				digit = (uint32_t)(c - 'a');
			else if (c >= 'A' && c <= 'J')
				digit = (uint32_t)(c - 'A') + 26;
			else
				return false;
			if (i > NUMBER_MAX << 8 || weight > NUMBER_MAX)
				return false;
			i += digit * weight;
			if (digit < limit)
				break;
			weight *= 36 - limit;
		}
		if (nr == 256)
			return false;
		bias = puny_bias(i - old, (uint32_t)nr + 1, !old);
		n += i / (uint32_t)(nr + 1);
		i %= (uint32_t)(nr + 1);
		if (n > 0x10ffff)
			return false;
		memmove(out + i + 1, out + i, (nr - i) * sizeof(*out));
		out[i++] = n;
		nr++;
	}
	for (size_t k = 0; k < nr; k++) {
		char bytes[4];
		uint32_t c = out[k] >= 0xd800 && out[k] < 0xd880 ? out[k] - 0xd800 : out[k];

		if (c < 0x20 || (c >= 0xd800 && c < 0xe000) ||
		    !pool_add(p, bytes, utf8_put(c, bytes)))
			return false;
	}
	return true;
}

/* "5first", "06first", "02Myac1_B": see "Identifiers" there. The digit is not read yet. */
void swift_read_identifier(struct swift_parser *p)
{
	size_t begin = p->tree->pool_used;
	bool words = false, puny = false;
	uint32_t id, len;

	if (swift_skip(p, '0')) {
		puny = swift_skip(p, '0');
		words = !puny;
	}
	do {
		while (words && p->at < p->end &&
		       (is_upper(*p->at) || (*p->at >= 'a' && *p->at <= 'z'))) {
			char c = *p->at++;
			size_t word = (size_t)(c - (is_upper(c) ? 'A' : 'a'));

			words = !is_upper(c);
			if (word >= p->nr_words ||
			    !pool_add(p, p->words[word].text, p->words[word].len)) {
				swift_fail(p);
				return;
			}
		}
		if (swift_skip(p, '0'))
			break;
		if (!natural(p, &len) || !len) {
			swift_fail(p);
			return;
		}
		if (puny)
			swift_skip(p, '_');
		if (len > (size_t)(p->end - p->at) ||
		    (puny ? !puny_decode(p, p->at, len) : !pool_add(p, p->at, len))) {
			swift_fail(p);
			return;
		}
		if (!puny)
			add_words(p, p->at, len);
		p->at += len;
	} while (words);
	id = swift_make(p, SWIFT_IDENTIFIER, NULL, 0);
	len = (uint32_t)(p->tree->pool_used - begin);
	if (id == SWIFT_NONE || !len || len > UINT16_MAX) {
		swift_fail(p);
		return;
	}
	p->tree->nodes.items[id].text = p->tree->pool + begin;
	p->tree->nodes.items[id].len = (uint16_t)len;
	swift_push(p, id);
	swift_add_substitution(p, id);
}

/* 'o': the letters of the identifier mean signs. */
static void read_operator(struct swift_parser *p)
{
	static const char signs[] = "& @/= >    <*!|+?%-~   ^ .";
	uint32_t name = swift_pop(p, SWIFT_IDENTIFIER), id = swift_make(p, SWIFT_OPERATOR, NULL, 0);
	char fixity = swift_next(p), *text;
	struct swift_node *n;

	if (name == SWIFT_NONE || id == SWIFT_NONE || !fixity || !strchr("piP", fixity)) {
		swift_fail(p);
		return;
	}
	n = &p->tree->nodes.items[id];
	*n = (struct swift_node){ .kind = SWIFT_OPERATOR,
				  .tag = fixity,
				  .len = p->tree->nodes.items[name].len };
	text = pool_add(p, p->tree->nodes.items[name].text, n->len);
	if (!text)
		return;
	n->text = text;
	for (size_t i = 0; i < n->len; i++) {
		char sign = text[i] >= 'a' && text[i] <= 'z' ? signs[text[i] - 'a'] : text[i];

		if (sign == ' ' || is_upper(sign) || is_digit(sign))
			swift_fail(p);
		text[i] = sign;
	}
	swift_push(p, id);
}

/* 'L': names that need more than themselves to be told apart. */
static void read_local(struct swift_parser *p)
{
	uint32_t file, name, id;
	char c;

	if (swift_skip(p, 'L') || swift_skip(p, 'l')) {
		file = swift_pop(p, SWIFT_IDENTIFIER);
		if (p->at[-1] == 'L') {
			name = swift_pop_name(p);
			id = swift_make(p, SWIFT_PRIVATE_NAME, NULL, 2, file, name);
		} else {
			name = 0;
			id = swift_make(p, SWIFT_PRIVATE_NAME, NULL, 1, file);
		}
		if (file == SWIFT_NONE || name == SWIFT_NONE)
			swift_fail(p);
		else
			swift_push(p, id);
		return;
	}
	c = p->at < p->end ? *p->at : '\0';
	if ((c >= 'a' && c <= 'j') || (c >= 'A' && c <= 'J')) {
		p->at++;
		name = swift_pop_name(p);
		id = swift_make(p, SWIFT_RELATED_NAME, NULL, 1, name);
		if (id != SWIFT_NONE)
			p->tree->nodes.items[id].tag = c;
	} else {
		uint32_t number = swift_index(p);

		name = swift_pop_name(p);
		id = swift_make(p, SWIFT_LOCAL_NAME, NULL, 1, name);
		if (id != SWIFT_NONE)
			p->tree->nodes.items[id].number = number + 1;
	}
	if (name == SWIFT_NONE)
		swift_fail(p);
	else
		swift_push(p, id);
}

uint32_t swift_pop_name(struct swift_parser *p)
{
	return pop_if(p, is_name);
}

/* --- substitutions -----------------------------------------------------------------------------
 */

static void push_substitution(struct swift_parser *p, size_t index, uint32_t times)
{
	if (index >= p->tree->substitutions.nr || times > REPEAT_MAX) {
		swift_fail(p);
		return;
	}
	while (times-- && !p->failed)
		swift_push(p, p->tree->substitutions.items[index]);
}

/* 'A' */
static void read_substitutions(struct swift_parser *p)
{
	while (!p->failed) {
		uint32_t n = UINT32_MAX;
		bool has = natural(p, &n);
		char c = swift_next(p);

		if (c == '_') {
			push_substitution(p, has ? (size_t)n + 27 : 26, 1);
			return;
		}
		if (c >= 'a' && c <= 'z') {
			push_substitution(p, (size_t)(c - 'a'), has ? n : 1);
		} else if (is_upper(c)) {
			push_substitution(p, (size_t)(c - 'A'), has ? n : 1);
			return;
		} else {
			swift_fail(p);
		}
	}
}

struct known_type {
	char letter, tag;
	const char *name;
};

static const struct known_type known_types[] = {
	{ 'A', 'V', "AutoreleasingUnsafeMutablePointer" },
	{ 'a', 'V', "Array" },
	{ 'B', 'P', "BinaryFloatingPoint" },
	{ 'b', 'V', "Bool" },
	{ 'D', 'V', "Dictionary" },
	{ 'd', 'V', "Double" },
	{ 'E', 'P', "Encodable" },
	{ 'e', 'P', "Decodable" },
	{ 'F', 'P', "FloatingPoint" },
	{ 'f', 'V', "Float" },
	{ 'G', 'P', "RandomNumberGenerator" },
	{ 'H', 'P', "Hashable" },
	{ 'h', 'V', "Set" },
	{ 'I', 'V', "DefaultIndices" },
	{ 'i', 'V', "Int" },
	{ 'J', 'V', "Character" },
	{ 'j', 'P', "Numeric" },
	{ 'K', 'P', "BidirectionalCollection" },
	{ 'k', 'P', "RandomAccessCollection" },
	{ 'L', 'P', "Comparable" },
	{ 'l', 'P', "Collection" },
	{ 'M', 'P', "MutableCollection" },
	{ 'm', 'P', "RangeReplaceableCollection" },
	{ 'N', 'V', "ClosedRange" },
	{ 'n', 'V', "Range" },
	{ 'O', 'V', "ObjectIdentifier" },
	{ 'P', 'V', "UnsafePointer" },
	{ 'p', 'V', "UnsafeMutablePointer" },
	{ 'Q', 'P', "Equatable" },
	{ 'q', 'O', "Optional" },
	{ 'R', 'V', "UnsafeBufferPointer" },
	{ 'r', 'V', "UnsafeMutableBufferPointer" },
	{ 'S', 'V', "String" },
	{ 's', 'V', "Substring" },
	{ 'T', 'P', "Sequence" },
	{ 't', 'P', "IteratorProtocol" },
	{ 'U', 'P', "UnsignedInteger" },
	{ 'u', 'V', "UInt" },
	{ 'V', 'V', "UnsafeRawPointer" },
	{ 'v', 'V', "UnsafeMutableRawPointer" },
	{ 'W', 'V', "UnsafeRawBufferPointer" },
	{ 'w', 'V', "UnsafeMutableRawBufferPointer" },
	{ 'X', 'P', "RangeExpression" },
	{ 'x', 'P', "Strideable" },
	{ 'Y', 'P', "RawRepresentable" },
	{ 'y', 'P', "StringProtocol" },
	{ 'Z', 'P', "SignedInteger" },
	{ 'z', 'P', "BinaryInteger" },
};

/* Behind 'c'. */
static const struct known_type known_types_2[] = {
	{ 'A', 'P', "Actor" },
	{ 'C', 'V', "CheckedContinuation" },
	{ 'c', 'V', "UnsafeContinuation" },
	{ 'E', 'V', "CancellationError" },
	{ 'e', 'V', "UnownedSerialExecutor" },
	{ 'F', 'P', "Executor" },
	{ 'f', 'P', "SerialExecutor" },
	{ 'G', 'V', "TaskGroup" },
	{ 'g', 'V', "ThrowingTaskGroup" },
	{ 'h', 'P', "TaskExecutor" },
	{ 'I', 'P', "AsyncIteratorProtocol" },
	{ 'i', 'P', "AsyncSequence" },
	{ 'J', 'V', "UnownedJob" },
	{ 'M', 'C', "MainActor" },
	{ 'P', 'V', "TaskPriority" },
	{ 'S', 'V', "AsyncStream" },
	{ 's', 'V', "AsyncThrowingStream" },
	{ 'T', 'V', "Task" },
	{ 't', 'V', "UnsafeCurrentTask" },
};

uint32_t swift_make_known(struct swift_parser *p, char letter, bool second)
{
	const struct known_type *k = second ? known_types_2 : known_types;
	size_t nr = second ? sizeof(known_types_2) / sizeof(*k) : sizeof(known_types) / sizeof(*k);
	uint32_t module, name, id;

	for (; nr && k->letter != letter; nr--)
		k++;
	if (!nr)
		return swift_fail(p);
	module = swift_make(p, SWIFT_MODULE, "Swift", 0);
	name = swift_make(p, SWIFT_IDENTIFIER, k->name, 0);
	id = swift_make(p, SWIFT_NOMINAL, NULL, 2, module, name);
	if (id != SWIFT_NONE)
		p->tree->nodes.items[id].tag = k->tag;
	return id;
}

/* 'S' */
static void read_standard(struct swift_parser *p)
{
	uint32_t times = 1, id;
	char c;

	if (swift_skip(p, 'o')) {
		swift_push(p, swift_make(p, SWIFT_MODULE, "__C", 0));
		return;
	}
	if (swift_skip(p, 'C')) {
		swift_push(p, swift_make(p, SWIFT_MODULE, "__C_Synthesized", 0));
		return;
	}
	if (swift_skip(p, 'g')) {
		uint32_t type = swift_pop_type(p), list;

		if (type == SWIFT_NONE) {
			swift_fail(p);
			return;
		}
		list = swift_make(p, SWIFT_LIST, NULL, 1, type);
		id = swift_make(p, SWIFT_BOUND, NULL, 2, swift_make_known(p, 'q', false), list);
		swift_push(p, id);
		swift_add_substitution(p, id);
		return;
	}
	natural(p, &times);
	c = swift_next(p);
	id = c == 'c' ? swift_make_known(p, swift_next(p), true) : swift_make_known(p, c, false);
	if (times > REPEAT_MAX)
		swift_fail(p);
	while (times-- && !p->failed)
		swift_push(p, id);
}

/* --- the operators -----------------------------------------------------------------------------
 */

static void push_plain(struct swift_parser *p, enum swift_kind kind)
{
	swift_push(p, swift_make(p, kind, NULL, 0));
}

static void read_operator_letter(struct swift_parser *p, char c)
{
	switch (c) {
	case 'A':
		read_substitutions(p);
		break;
	case 'L':
		read_local(p);
		break;
	case 'S':
		read_standard(p);
		break;
	case 'o':
		read_operator(p);
		break;
	case 's':
		swift_push(p, swift_make(p, SWIFT_MODULE, "Swift", 0));
		break;
	case 'y':
		push_plain(p, SWIFT_EMPTY_LIST);
		break;
	case '_':
		push_plain(p, SWIFT_FIRST_MARK);
		break;
	case 'd':
		push_plain(p, SWIFT_VARIADIC_MARK);
		break;
	default:
		if (!swift_read_type(p, c) && !swift_read_generic(p, c) &&
		    !swift_read_entity(p, c) && !swift_read_global(p, c))
			swift_fail(p);
	}
}

void swift_tree_fini(struct swift_tree *t)
{
	vec_free(&t->nodes);
	vec_free(&t->kids);
	vec_free(&t->stack);
	vec_free(&t->substitutions);
	free(t->pool);
	t->pool = NULL;
}

bool swift_parse(struct swift_tree *t, const char *name, size_t len)
{
	struct swift_parser p = { .tree = t,
				  .at = name,
				  .end = name + len,
				  .nodes_max = (uint32_t)(len * NODES_PER_BYTE + 64) };

	t->pool_size = len * POOL_PER_BYTE;
	t->pool = malloc(t->pool_size + 1);
	if (!t->pool)
		return false;
	while (p.at < p.end && !p.failed) {
		if (is_digit(*p.at))
			swift_read_identifier(&p);
		else
			read_operator_letter(&p, swift_next(&p));
	}
	return !p.failed && t->stack.nr;
}

/* --- the door ----------------------------------------------------------------------------------
 */

/* How long the prefix is, 0 if there is none. */
static size_t prefix_len(const char *name)
{
	size_t len = name[0] == '_';

	if (name[len] == '$' && name[len + 1] && strchr("sSe", name[len + 1]))
		return len + 2;
	return strncmp(name, "_T0", 3) ? 0 : 3;
}

bool swift_demangle(const char *name, bool brief, char *buf, size_t size, const char **ret_suffix)
{
	size_t prefix = prefix_len(name), len;
	struct swift_tree tree = { 0 };
	bool ok;

	if (!prefix || !size || strnlen(name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
		return false;
	len = strcspn(name + prefix, ".");
	ok = len && swift_parse(&tree, name + prefix, len) && swift_print(&tree, brief, buf, size);
	*ret_suffix = name + prefix + len;
	swift_tree_fini(&tree);
	return ok;
}
