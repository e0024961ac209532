// SPDX-License-Identifier: Apache-2.0
/*
 * Types and generics of Swift's mangling; read swift.c first. The letters are those of the
 * sections "Types" and "Generics" of Swift's docs/ABI/Mangling.rst.
 */
#include "symbol/swift/swift_parse.h"

#include <string.h>

enum {
	LIST_MAX = 512,
};

static struct swift_node *item(struct swift_parser *p, uint32_t id)
{
	return &p->tree->nodes.items[id];
}

static void reverse(uint32_t *items, size_t nr)
{
	for (size_t i = 0; i < nr / 2; i++) {
		uint32_t swap = items[i];

		items[i] = items[nr - 1 - i];
		items[nr - 1 - i] = swap;
	}
}

/* --- lists -------------------------------------------------------------------------------------
 */

/* One element of a tuple: "type label? d?". */
static uint32_t pop_element(struct swift_parser *p)
{
	bool variadic = swift_pop(p, SWIFT_VARIADIC_MARK) != SWIFT_NONE;
	uint32_t label = swift_pop(p, SWIFT_IDENTIFIER), type = swift_pop_type(p), id;

	if (type == SWIFT_NONE)
		return swift_fail(p);
	id = label == SWIFT_NONE ? swift_make(p, SWIFT_ELEMENT, NULL, 1, type)
				 : swift_make(p, SWIFT_ELEMENT, NULL, 2, type, label);
	if (id != SWIFT_NONE)
		item(p, id)->number = variadic;
	return id;
}

/* "x_y..." or "y": the first has a mark behind it. */
static uint32_t pop_list(struct swift_parser *p, enum swift_kind kind,
			 uint32_t (*pop)(struct swift_parser *p))
{
	uint32_t items[LIST_MAX];
	size_t nr = 0;
	bool first = swift_pop(p, SWIFT_EMPTY_LIST) != SWIFT_NONE;

	while (!first && !p->failed) {
		first = swift_pop(p, SWIFT_FIRST_MARK) != SWIFT_NONE;
		if (nr == LIST_MAX)
			return swift_fail(p);
		items[nr] = pop(p);
		if (items[nr++] == SWIFT_NONE)
			return swift_fail(p);
	}
	reverse(items, nr);
	return swift_make_list(p, kind, items, nr);
}

uint32_t swift_pop_types(struct swift_parser *p)
{
	return pop_list(p, SWIFT_LIST, swift_pop_type);
}

uint32_t swift_pop_protocol(struct swift_parser *p)
{
	uint32_t type = swift_pop_type(p), name, context, id;

	if (type != SWIFT_NONE) {
		const struct swift_node *n = item(p, type);

		return n->kind == SWIFT_NOMINAL && n->tag == 'P' ? type : swift_fail(p);
	}
	name = swift_pop_name(p);
	if (name == SWIFT_NONE)
		return swift_fail(p);
	context = swift_pop_context(p);
	id = swift_make(p, SWIFT_NOMINAL, NULL, 2, context, name);
	if (id != SWIFT_NONE)
		item(p, id)->tag = 'P';
	return id;
}

/* --- functions ---------------------------------------------------------------------------------
 */

/* Parameters or result: always a tuple. */
static uint32_t pop_params(struct swift_parser *p)
{
	uint32_t type, element;

	if (swift_pop(p, SWIFT_EMPTY_LIST) != SWIFT_NONE)
		return swift_make(p, SWIFT_TUPLE, NULL, 0);
	type = swift_pop_type(p);
	if (type == SWIFT_NONE)
		return swift_fail(p);
	if (swift_kind_of(p, type) == SWIFT_TUPLE)
		return type;
	element = swift_make(p, SWIFT_ELEMENT, NULL, 1, type);
	return swift_make(p, SWIFT_TUPLE, NULL, 1, element);
}

uint32_t swift_pop_function_type(struct swift_parser *p, const char *text)
{
	uint32_t effect, flags = 0, thrown = SWIFT_NONE, actor = SWIFT_NONE, params, result, id;

	while ((effect = swift_pop(p, SWIFT_EFFECT)) != SWIFT_NONE) {
		switch (item(p, effect)->tag) {
		case 'a':
			flags |= SWIFT_IS_ASYNC;
			break;
		case 'b':
			flags |= SWIFT_IS_SENDABLE;
			break;
		case 'c':
			actor = swift_child(p->tree, effect, 0);
			break;
		case 'K':
			flags |= SWIFT_IS_THROWING;
			thrown = swift_child(p->tree, effect, 0);
			break;
		case 'T':
			flags |= SWIFT_IS_SENDING;
			break;
		case 'A':
			flags |= SWIFT_IS_ISOLATED_ANY;
			break;
		}
	}
	params = pop_params(p);
	if (p->failed)
		return SWIFT_NONE;
	if (swift_pop(p, SWIFT_EMPTY_LIST) != SWIFT_NONE)
		result = swift_make(p, SWIFT_TUPLE, NULL, 0);
	else
		result = swift_pop_type(p);
	if (result == SWIFT_NONE)
		return swift_fail(p);
	id = swift_make(p, SWIFT_FUNCTION_TYPE, text, 4, params, result, thrown, actor);
	if (id != SWIFT_NONE)
		item(p, id)->number = flags;
	return id;
}

/* 'Y': effects, and what types are marked with. */
static void read_effect(struct swift_parser *p)
{
	char c = swift_next(p);
	const char *prefix = c == 'k'	? "@noDerivative "
			     : c == 't' ? "_const "
			     : c == 'i' ? "isolated "
			     : c == 'u' ? "sending "
					: NULL;
	uint32_t type = SWIFT_NONE, id;

	if (!c || !strchr("abcKTAktiu", c)) {
		swift_fail(p);
		return;
	}
	if (c == 'c' || c == 'K' || prefix) {
		type = swift_pop_type(p);
		if (type == SWIFT_NONE) {
			swift_fail(p);
			return;
		}
	}
	if (prefix) {
		swift_push(p, swift_make(p, SWIFT_PREFIXED_TYPE, prefix, 1, type));
		return;
	}
	id = type == SWIFT_NONE ? swift_make(p, SWIFT_EFFECT, NULL, 0)
				: swift_make(p, SWIFT_EFFECT, NULL, 1, type);
	if (id != SWIFT_NONE)
		item(p, id)->tag = c;
	swift_push(p, id);
}

/* "type* signature? I letters _": the letters say how many types. */
static void read_impl_type(struct swift_parser *p)
{
	const char *begin = p->at, *end = memchr(p->at, '_', (size_t)(p->end - p->at));
	uint32_t kids[LIST_MAX], signature, id;
	size_t nr = 0, types = 0;

	if (!end || end - begin > 200) {
		swift_fail(p);
		return;
	}
	p->at = end + 1;
	signature = swift_pop(p, SWIFT_SIGNATURE);
	/* Behind attributes and callee convention each letter of a convention takes a type. */
	for (const char *c = begin; c < end; c++) {
		if (c == begin)
			c += strspn(c, "Pe");
		if (c == begin + strspn(begin, "Pe")) {
			if (!*c || !strchr("ygxt", *c)) {
				swift_fail(p);
				return;
			}
			c += strspn(c + 1, "BCMJKWAGhH");
			continue;
		}
		types += !strchr("wzYT", *c);
	}
	for (; types; types--) {
		kids[nr] = swift_pop_type(p);
		if (kids[nr++] == SWIFT_NONE) {
			swift_fail(p);
			return;
		}
	}
	reverse(kids, nr);
	if (signature != SWIFT_NONE)
		kids[nr++] = signature;
	id = swift_make_list(p, SWIFT_IMPL_TYPE, kids, nr);
	if (id != SWIFT_NONE) {
		item(p, id)->text = begin;
		item(p, id)->len = (uint16_t)(end - begin);
	}
	swift_push(p, id);
}

/* --- types -------------------------------------------------------------------------------------
 */

/* 'B' */
static void read_builtin(struct swift_parser *p)
{
	static const struct {
		char letter;
		const char *name;
	} types[] = {
		{ 'b', "Builtin.BridgeObject" },
		{ 'B', "Builtin.UnsafeValueBuffer" },
		{ 'c', "Builtin.RawUnsafeContinuation" },
		{ 'D', "Builtin.DefaultActorStorage" },
		{ 'd', "Builtin.NonDefaultDistributedActorStorage" },
		{ 'e', "Builtin.Executor" },
		{ 'I', "Builtin.IntLiteral" },
		{ 'j', "Builtin.Job" },
		{ 'O', "Builtin.UnknownObject" },
		{ 'o', "Builtin.NativeObject" },
		{ 'P', "Builtin.PackIndex" },
		{ 'p', "Builtin.RawPointer" },
		{ 't', "Builtin.SILToken" },
		{ 'w', "Builtin.Word" },
	};
	char c = swift_next(p);
	size_t i;

	if (c == 'v') {
		uint32_t nr = swift_index(p) - 1, element = swift_pop_type(p), id;

		if (element == SWIFT_NONE || swift_kind_of(p, element) != SWIFT_PLAIN_TYPE) {
			swift_fail(p);
			return;
		}
		id = swift_make(p, SWIFT_VECTOR, NULL, 1, element);
		if (id != SWIFT_NONE)
			item(p, id)->number = nr;
		swift_push(p, id);
		return;
	}
	if (c == 'i' || c == 'f') {
		/* The index is one more than the number: "Bi64_". */
		uint32_t bits = swift_index(p) - 1, id;

		id = swift_make(p, SWIFT_PLAIN_TYPE, c == 'i' ? "Builtin.Int" : "Builtin.FPIEEE",
				0);
		if (id != SWIFT_NONE)
			item(p, id)->number = bits;
		swift_push(p, id);
		return;
	}
	for (i = 0; i < sizeof(types) / sizeof(*types) && types[i].letter != c; i++)
		;
	if (i == sizeof(types) / sizeof(*types))
		swift_fail(p);
	else
		swift_push(p, swift_make(p, SWIFT_PLAIN_TYPE, types[i].name, 0));
}

/* 'C', 'V', 'O', 'P', 'a' */
static void read_nominal(struct swift_parser *p, char tag)
{
	uint32_t name = swift_pop_name(p), context, id;

	if (name == SWIFT_NONE) {
		swift_fail(p);
		return;
	}
	context = swift_pop_context(p);
	id = swift_make(p, SWIFT_NOMINAL, NULL, 2, context, name);
	if (id != SWIFT_NONE)
		item(p, id)->tag = tag;
	swift_push(p, id);
	swift_add_substitution(p, id);
}

/* Of each generic level the types, the outermost first; ends with the "y" before them. */
static uint32_t pop_arguments(struct swift_parser *p, enum swift_kind kind,
			      uint32_t (*pop_base)(struct swift_parser *p))
{
	uint32_t lists[16], types[LIST_MAX], type;
	size_t nr = 1, nr_types;

	while (swift_pop(p, SWIFT_CONFORMANCE_REF) != SWIFT_NONE)
		;
	for (;;) {
		nr_types = 0;
		while ((type = swift_pop_type(p)) != SWIFT_NONE && nr_types < LIST_MAX)
			types[nr_types++] = type;
		reverse(types, nr_types);
		if (nr == 16)
			return swift_fail(p);
		lists[nr++] = swift_make_list(p, SWIFT_LIST, types, nr_types);
		if (swift_pop(p, SWIFT_EMPTY_LIST) != SWIFT_NONE)
			break;
		if (swift_pop(p, SWIFT_FIRST_MARK) == SWIFT_NONE)
			return swift_fail(p);
	}
	reverse(lists + 1, nr - 1);
	lists[0] = pop_base(p);
	if (lists[0] == SWIFT_NONE)
		return swift_fail(p);
	return swift_make_list(p, kind, lists, nr);
}

static uint32_t pop_nominal(struct swift_parser *p)
{
	return swift_pop(p, SWIFT_NOMINAL);
}

static uint32_t pop_opaque(struct swift_parser *p)
{
	return swift_pop(p, SWIFT_OPAQUE);
}

static void change_type(struct swift_parser *p, enum swift_kind kind, const char *text)
{
	uint32_t type = swift_pop_type(p);

	if (type == SWIFT_NONE)
		swift_fail(p);
	else
		swift_push(p, swift_make(p, kind, text, 1, type));
}

/* 'p', 'Xl', 'Xc': "any P & Q", with a class or AnyObject. */
static void read_existential(struct swift_parser *p, char tag)
{
	uint32_t class = SWIFT_NONE, list, id;

	if (tag == 'c') {
		class = swift_pop_type(p);
		if (class == SWIFT_NONE) {
			swift_fail(p);
			return;
		}
	}
	list = pop_list(p, SWIFT_LIST, swift_pop_protocol);
	id = swift_make(p, SWIFT_PROTOCOLS, NULL, 2, list, class);
	if (id != SWIFT_NONE)
		item(p, id)->tag = tag;
	swift_push(p, id);
}

/* 'X' */
static bool read_special_type(struct swift_parser *p)
{
	char c = swift_next(p);

	switch (c) {
	case 'f':
		swift_push(p, swift_pop_function_type(p, "@convention(thin) "));
		return true;
	case 'K':
	case 'A':
		swift_push(p, swift_pop_function_type(p, "@autoclosure "));
		return true;
	case 'E':
		swift_push(p, swift_pop_function_type(p, ""));
		return true;
	case 'B':
		swift_push(p, swift_pop_function_type(p, "@convention(block) "));
		return true;
	case 'C':
		swift_push(p, swift_pop_function_type(p, "@convention(c) "));
		return true;
	case 'o':
		change_type(p, SWIFT_PREFIXED_TYPE, "unowned ");
		return true;
	case 'u':
		change_type(p, SWIFT_PREFIXED_TYPE, "unowned(unsafe) ");
		return true;
	case 'w':
		change_type(p, SWIFT_PREFIXED_TYPE, "weak ");
		return true;
	case 'p':
		change_type(p, SWIFT_METATYPE, "");
		return true;
	case 'M':
	case 'm':
		c = swift_next(p);
		if (!c || !strchr("tTo", c))
			return false;
		change_type(p, SWIFT_METATYPE,
			    c == 't'   ? "@thin "
			    : c == 'T' ? "@thick "
				       : "@objc_metatype ");
		return true;
	case 'D':
		if (swift_pop_type(p) == SWIFT_NONE)
			return false;
		swift_push(p, swift_make(p, SWIFT_PLAIN_TYPE, "Self", 0));
		return true;
	case 'l':
	case 'c':
		read_existential(p, c);
		return true;
	default:
		return false;
	}
}

bool swift_read_type(struct swift_parser *p, char c)
{
	uint32_t id;

	switch (c) {
	case 'B':
		read_builtin(p);
		return true;
	case 'C':
	case 'V':
	case 'O':
	case 'P':
	case 'a':
		read_nominal(p, c);
		return true;
	case 'G':
		id = pop_arguments(p, SWIFT_BOUND, pop_nominal);
		swift_push(p, id);
		swift_add_substitution(p, id);
		return true;
	case 'I':
		read_impl_type(p);
		return true;
	case 'K':
		id = swift_make(p, SWIFT_EFFECT, NULL, 0);
		if (id != SWIFT_NONE)
			item(p, id)->tag = 'K';
		swift_push(p, id);
		return true;
	case 'X':
		return read_special_type(p);
	case 'Y':
		read_effect(p);
		return true;
	case 'c':
		swift_push(p, swift_pop_function_type(p, ""));
		return true;
	case 'h':
		change_type(p, SWIFT_PREFIXED_TYPE, "__shared ");
		return true;
	case 'm':
		change_type(p, SWIFT_METATYPE, "");
		id = p->failed ? SWIFT_NONE : p->tree->stack.items[p->tree->stack.nr - 1];
		/* An existential's own metatype is another than that of what is in it. */
		if (id != SWIFT_NONE &&
		    swift_kind_of(p, swift_child(p->tree, id, 0)) == SWIFT_PROTOCOLS)
			item(p, id)->tag = 'P';
		return true;
	case 'n':
		change_type(p, SWIFT_PREFIXED_TYPE, "__owned ");
		return true;
	case 'p':
		read_existential(p, c);
		return true;
	case 't':
		swift_push(p, pop_list(p, SWIFT_TUPLE, pop_element));
		return true;
	case 'z':
		change_type(p, SWIFT_PREFIXED_TYPE, "inout ");
		return true;
	default:
		return false;
	}
}

/* --- generics ----------------------------------------------------------------------------------
 */

static uint32_t make_parameter(struct swift_parser *p, uint32_t depth, uint32_t index)
{
	uint32_t id = swift_make(p, SWIFT_PARAMETER, NULL, 0);

	if (depth > 0xff || index > 0xffff)
		return swift_fail(p);
	if (id != SWIFT_NONE)
		item(p, id)->number = depth << 16 | index;
	return id;
}

/* GENERIC-PARAM-INDEX */
static uint32_t read_parameter(struct swift_parser *p)
{
	uint32_t depth;

	if (swift_skip(p, 'z'))
		return make_parameter(p, 0, 0);
	if (swift_skip(p, 's'))
		return swift_make(p, SWIFT_SELF_PARAMETER, NULL, 0);
	if (!swift_skip(p, 'd'))
		return make_parameter(p, 0, swift_index(p) + 1);
	depth = swift_index(p) + 1;
	return make_parameter(p, depth, swift_index(p));
}

/* "name" or "name protocol": of `base`. */
static uint32_t pop_associated(struct swift_parser *p, uint32_t base)
{
	uint32_t protocol = swift_pop_type(p), name = swift_pop(p, SWIFT_IDENTIFIER);

	if (name == SWIFT_NONE || base == SWIFT_NONE)
		return swift_fail(p);
	return swift_make(p, SWIFT_ASSOCIATED, NULL, 3, base, name, protocol);
}

/* "name _ name ...": of one another. */
static uint32_t pop_associated_path(struct swift_parser *p, uint32_t base)
{
	uint32_t names[16], protocols[16];
	size_t nr = 0;
	bool first;

	do {
		first = swift_pop(p, SWIFT_FIRST_MARK) != SWIFT_NONE;
		if (nr == 16)
			return swift_fail(p);
		protocols[nr] = swift_pop_type(p);
		names[nr] = swift_pop(p, SWIFT_IDENTIFIER);
		if (names[nr++] == SWIFT_NONE)
			return swift_fail(p);
	} while (!first);
	while (nr-- && base != SWIFT_NONE)
		base = swift_make(p, SWIFT_ASSOCIATED, NULL, 3, base, names[nr], protocols[nr]);
	return base;
}

static void push_and_add(struct swift_parser *p, uint32_t id)
{
	swift_push(p, id);
	swift_add_substitution(p, id);
}

/* 'Q' */
static bool read_archetype(struct swift_parser *p)
{
	char c = swift_next(p);
	uint32_t id, base;

	switch (c) {
	case 'a':
		id = swift_pop(p, SWIFT_IDENTIFIER);
		base = swift_pop_type(p);
		if (id == SWIFT_NONE || base == SWIFT_NONE)
			return false;
		push_and_add(p, swift_make(p, SWIFT_ASSOCIATED, NULL, 3, base, id, SWIFT_NONE));
		return true;
	case 'y':
		push_and_add(p, pop_associated(p, read_parameter(p)));
		return true;
	case 'z':
		push_and_add(p, pop_associated(p, make_parameter(p, 0, 0)));
		return true;
	case 'Y':
		push_and_add(p, pop_associated_path(p, read_parameter(p)));
		return true;
	case 'Z':
		push_and_add(p, pop_associated_path(p, make_parameter(p, 0, 0)));
		return true;
	case 'r':
		swift_push(p, swift_make(p, SWIFT_PLAIN_TYPE, "some", 0));
		return true;
	case 'O':
		id = swift_pop_entity(p);
		if (id == SWIFT_NONE)
			return false;
		swift_push(p, swift_make(p, SWIFT_OPAQUE, NULL, 1, id));
		return true;
	case 'o': {
		uint32_t number = swift_index(p);

		id = pop_arguments(p, SWIFT_BOUND_OPAQUE, pop_opaque);
		if (id != SWIFT_NONE)
			item(p, id)->number = number;
		push_and_add(p, id);
		return true;
	}
	case 'P':
		swift_push(p, pop_list(p, SWIFT_PACK, swift_pop_type));
		return true;
	case 'p':
		if (swift_pop_type(p) == SWIFT_NONE) /* the count is not shown */
			return false;
		change_type(p, SWIFT_PREFIXED_TYPE, "repeat ");
		return true;
	default:
		return false;
	}
}

/* A layout's letter and numbers, as text: "AnyObject" is what nearly all of them are. */
static uint32_t read_layout(struct swift_parser *p)
{
	static const char letters[] = "URNCDTBS";
	static const char *const names[] = {
		"_UnknownLayout", "_RefCountedObject", "_NativeRefCountedObject", "AnyObject",
		"_NativeClass",	  "_Trivial",	       "_BridgeObject",		  "_TrivialStride",
	};
	char c = swift_next(p);
	const char *at = c ? strchr(letters, c) : NULL;

	if (!at || c == 'S')
		return swift_fail(p);
	return swift_make(p, SWIFT_PLAIN_TYPE, names[at - letters], 0);
}

/* 'Ri': what a parameter need not be. */
static bool read_inverse(struct swift_parser *p)
{
	static const char *const names[] = { "~Swift.Copyable", "~Swift.Escapable" };
	uint32_t which, left;

	p->at++;
	which = swift_index(p);
	left = read_parameter(p);
	if (which > 1)
		return false;
	swift_push(p, swift_make(p, SWIFT_REQUIREMENT, ": ", 2, left,
				 swift_make(p, SWIFT_PLAIN_TYPE, names[which], 0)));
	return true;
}

/* 'R': the letter says which of the four left sides and of the four relations. */
static bool read_requirement(struct swift_parser *p)
{
	static const char letters[] = "pPQcCBbtTSsmMLl";
	static const char sides[] = "acsacsgacsgacsg", relations[] = "pppbbbbssssllll";
	char c = p->at < p->end ? *p->at : '\0', side = 'g', relation = 'p';
	const char *at = c ? strchr(letters, c) : NULL;
	uint32_t left, right = SWIFT_NONE, id;

	if (c == 'v' || c == 'h' || c == 'I' || c == 'j' || c == 'J')
		return false;
	if (c == 'i')
		return read_inverse(p);
	if (at) {
		p->at++;
		side = sides[at - letters];
		relation = relations[at - letters];
	}
	switch (side) {
	case 'a':
		left = pop_associated(p, read_parameter(p));
		swift_add_substitution(p, left);
		break;
	case 'c':
		left = pop_associated_path(p, read_parameter(p));
		swift_add_substitution(p, left);
		break;
	case 's':
		left = swift_pop_type(p);
		break;
	default:
		left = read_parameter(p);
	}
	if (relation == 'p')
		right = swift_pop_protocol(p);
	else if (relation == 'l')
		right = read_layout(p);
	else
		right = swift_pop_type(p);
	if (left == SWIFT_NONE || right == SWIFT_NONE)
		return false;
	id = swift_make(p, SWIFT_REQUIREMENT, relation == 's' ? " == " : ": ", 2, left, right);
	swift_push(p, id);
	return true;
}

/* 'l', or 'r' counts 'l': requirements and how many parameters each depth has. */
static bool read_signature(struct swift_parser *p, bool has_counts)
{
	uint32_t kids[LIST_MAX], counts[16], id;
	size_t nr = 0, nr_counts = 0;

	while (has_counts && !p->failed && !swift_skip(p, 'l')) {
		uint32_t n = swift_skip(p, 'z') ? 0 : swift_index(p) + 1;

		if (nr_counts == 16 || n > 256)
			return false;
		counts[nr_counts++] = n;
	}
	if (!has_counts)
		counts[nr_counts++] = 1;
	while (nr < LIST_MAX - 16 && (id = swift_pop(p, SWIFT_REQUIREMENT)) != SWIFT_NONE)
		kids[nr++] = id;
	reverse(kids, nr);
	for (size_t i = 0; i < nr_counts; i++) {
		kids[nr + i] = swift_make(p, SWIFT_COUNT, NULL, 0);
		if (kids[nr + i] == SWIFT_NONE)
			return false;
		item(p, kids[nr + i])->number = counts[i];
	}
	id = swift_make_list(p, SWIFT_SIGNATURE, kids, nr + nr_counts);
	if (id != SWIFT_NONE)
		item(p, id)->number = (uint32_t)nr;
	swift_push(p, id);
	return true;
}

/* 'H': how a conformance is come by. It takes part in no name. */
static bool read_conformance_ref(struct swift_parser *p)
{
	char c = swift_next(p);
	bool ok = true;

	switch (c) {
	case 'P':
	case 'p':
		ok = swift_pop_protocol(p) != SWIFT_NONE;
		break;
	case 'C':
		if (swift_pop(p, SWIFT_EMPTY_LIST) == SWIFT_NONE)
			while (swift_pop(p, SWIFT_CONFORMANCE_REF) != SWIFT_NONE &&
			       swift_pop(p, SWIFT_FIRST_MARK) == SWIFT_NONE)
				;
		if (swift_pop(p, SWIFT_CONFORMANCE_REF) == SWIFT_NONE) {
			ok = swift_pop_module(p) != SWIFT_NONE &&
			     swift_pop_protocol(p) != SWIFT_NONE;
		}
		ok = ok && swift_pop_type(p) != SWIFT_NONE;
		break;
	case 'D':
		swift_index(p);
		ok = swift_pop_protocol(p) != SWIFT_NONE && swift_pop_type(p) != SWIFT_NONE;
		break;
	case 'I':
		swift_index(p);
		ok = swift_pop_protocol(p) != SWIFT_NONE &&
		     swift_pop(p, SWIFT_CONFORMANCE_REF) != SWIFT_NONE;
		break;
	case 'A':
		swift_index(p);
		ok = swift_pop_protocol(p) != SWIFT_NONE && swift_pop_type(p) != SWIFT_NONE &&
		     swift_pop(p, SWIFT_CONFORMANCE_REF) != SWIFT_NONE;
		break;
	default:
		return false;
	}
	if (ok)
		swift_push(p, swift_make(p, SWIFT_CONFORMANCE_REF, NULL, 0));
	return ok;
}

uint32_t swift_pop_conformance(struct swift_parser *p)
{
	uint32_t signature = swift_pop(p, SWIFT_SIGNATURE), module = swift_pop_module(p);
	uint32_t protocol = swift_pop_protocol(p), type = swift_pop_type(p);

	if (protocol == SWIFT_NONE || type == SWIFT_NONE)
		return swift_fail(p);
	return swift_make(p, SWIFT_CONFORMANCE, NULL, 4, type, protocol, module, signature);
}

bool swift_read_generic(struct swift_parser *p, char c)
{
	uint32_t type, signature;

	switch (c) {
	case 'H':
		return read_conformance_ref(p);
	case 'Q':
		return read_archetype(p);
	case 'R':
		return read_requirement(p);
	case 'g':
		swift_index(p);
		if (swift_pop(p, SWIFT_CONFORMANCE_REF) == SWIFT_NONE)
			return false;
		swift_push(p, swift_make(p, SWIFT_CONFORMANCE_REF, NULL, 0));
		return true;
	case 'l':
	case 'r':
		return read_signature(p, c == 'r');
	case 'q':
		swift_push(p, read_parameter(p));
		return true;
	case 'u':
		signature = swift_pop(p, SWIFT_SIGNATURE);
		type = swift_pop_type(p);
		if (signature == SWIFT_NONE || type == SWIFT_NONE)
			return false;
		swift_push(p, swift_make(p, SWIFT_GENERIC_TYPE, NULL, 2, signature, type));
		return true;
	case 'x':
		swift_push(p, make_parameter(p, 0, 0));
		return true;
	default:
		return false;
	}
}
