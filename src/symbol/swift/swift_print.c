// SPDX-License-Identifier: Apache-2.0
/*
 * Text of a Swift name's tree, in the form of swift-demangle; read swift_tree.h first. Output
 * is cut where `buf` ends, and nodes are then no longer looked at: so that a tree whose nodes share
 * children, each of which doubles the text, costs no more than the buffer.
 */
#include "symbol/swift/swift_tree.h"

#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 200,
	VISITS_MAX = 1 << 18, /* of nodes that print nothing */
};

struct printer {
	const struct swift_tree *tree;
	char *buf;
	size_t size, used;
	bool brief, full, failed;
	unsigned int depth, visits;
};

static void print_type(struct printer *o, uint32_t id);
static void print_entity(struct printer *o, uint32_t id);
static uint32_t print_prefix(struct printer *o, uint32_t id);

static const struct swift_node *node(const struct printer *o, uint32_t id)
{
	return swift_node(o->tree, id);
}

static uint32_t child(const struct printer *o, uint32_t id, uint32_t i)
{
	return swift_child(o->tree, id, i);
}

static void put_len(struct printer *o, const char *text, size_t len)
{
	size_t room = o->size - 1 - o->used;

	if (len > room) {
		len = room;
		o->full = true;
	}
	memcpy(o->buf + o->used, text, len);
	o->used += len;
}

static void put(struct printer *o, const char *text)
{
	put_len(o, text, strlen(text));
}

static void put_number(struct printer *o, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	put(o, text);
}

static void put_text(struct printer *o, uint32_t id)
{
	put_len(o, node(o, id)->text, node(o, id)->len);
}

/* False: don't go on, there is nothing there, or nothing more to print. */
static bool enter(struct printer *o, uint32_t id)
{
	if (id == SWIFT_NONE || o->depth >= DEPTH_MAX || ++o->visits > VISITS_MAX)
		o->failed = true;
	if (o->failed || o->full)
		return false;
	o->depth++;
	return true;
}

static void leave(struct printer *o)
{
	o->depth--;
}

/* --- names -------------------------------------------------------------------------------------
 */

static void print_name(struct printer *o, uint32_t id)
{
	const struct swift_node *n;

	if (!enter(o, id))
		return;
	n = node(o, id);
	switch (n->kind) {
	case SWIFT_OPERATOR:
		put_text(o, id);
		put(o, n->tag == 'p' ? " prefix" : n->tag == 'i' ? " infix" : " postfix");
		break;
	case SWIFT_PRIVATE_NAME:
		if (o->brief || n->nr < 2) {
			print_name(o, child(o, id, n->nr - 1));
			break;
		}
		put(o, "(");
		print_name(o, child(o, id, 1));
		put(o, " in ");
		print_name(o, child(o, id, 0));
		put(o, ")");
		break;
	case SWIFT_LOCAL_NAME:
		print_name(o, child(o, id, 0));
		put(o, " #");
		put_number(o, n->number);
		break;
	case SWIFT_RELATED_NAME:
		put(o, "related decl '");
		put_len(o, &n->tag, 1);
		put(o, "' for ");
		print_name(o, child(o, id, 0));
		break;
	default:
		put_text(o, id);
	}
	leave(o);
}

/* --- generics ----------------------------------------------------------------------------------
 */

/* A, B, ... of depth 0; A1, B1, ... of depth 1. */
static void print_parameter(struct printer *o, uint32_t depth, uint32_t index)
{
	do {
		char letter = (char)('A' + index % 26);

		put_len(o, &letter, 1);
		index /= 26;
	} while (index);
	if (depth)
		put_number(o, depth);
}

static void print_requirements(struct printer *o, uint32_t id)
{
	for (uint32_t i = 0; i < node(o, id)->number && !o->full; i++) {
		uint32_t requirement = child(o, id, i);

		put(o, i ? ", " : " where ");
		print_type(o, child(o, requirement, 0));
		put_text(o, requirement);
		print_type(o, child(o, requirement, 1));
	}
}

/* "<A, B where A: Swift.Hashable><A1>" has its requirements behind all depths. */
static void print_signature(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);

	put(o, "<");
	for (uint32_t i = n->number; i < n->nr; i++) {
		uint32_t depth = i - n->number, nr = node(o, child(o, id, i))->number;

		if (depth)
			put(o, "><");
		for (uint32_t k = 0; k < nr && !o->full; k++) {
			if (k)
				put(o, ", ");
			print_parameter(o, depth, k);
		}
	}
	print_requirements(o, id);
	put(o, ">");
}

static void print_list(struct printer *o, uint32_t id, const char *between)
{
	for (uint32_t i = 0; i < node(o, id)->nr && !o->full; i++) {
		if (i)
			put(o, between);
		print_type(o, child(o, id, i));
	}
}

/* --- types -------------------------------------------------------------------------------------
 */

static bool is_swift(const struct printer *o, uint32_t id, const char *name)
{
	uint32_t module = child(o, id, 0), identifier = child(o, id, 1);
	const struct swift_node *n;

	if (node(o, id)->kind != SWIFT_NOMINAL || node(o, module)->kind != SWIFT_MODULE)
		return false;
	n = node(o, module);
	if (n->len != 5 || memcmp(n->text, "Swift", 5))
		return false;
	n = node(o, identifier);
	return n->len == strlen(name) && !memcmp(n->text, name, n->len);
}

/* Whether something behind it could be taken for a part of it. */
static bool is_simple(const struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);

	switch (n->kind) {
	case SWIFT_FUNCTION_TYPE:
	case SWIFT_PREFIXED_TYPE:
	case SWIFT_GENERIC_TYPE:
	case SWIFT_IMPL_TYPE:
		return false;
	case SWIFT_PROTOCOLS:
		return node(o, child(o, id, 0))->nr + (n->tag == 'c') <= 1;
	case SWIFT_PLAIN_TYPE:
		return n->len != 4 || memcmp(n->text, "some", 4);
	default:
		return true;
	}
}

static void print_in_parens(struct printer *o, uint32_t id)
{
	if (id == SWIFT_NONE) {
		o->failed = true;
		return;
	}
	if (is_simple(o, id)) {
		print_type(o, id);
		return;
	}
	put(o, "(");
	print_type(o, id);
	put(o, ")");
}

/* "T?", "[T]", "[K : V]"; false: it is none of these. */
static bool print_sugar(struct printer *o, uint32_t base, uint32_t list)
{
	if (node(o, list)->nr == 1 && is_swift(o, base, "Optional")) {
		print_in_parens(o, child(o, list, 0));
		put(o, "?");
	} else if (node(o, list)->nr == 1 && is_swift(o, base, "Array")) {
		put(o, "[");
		print_type(o, child(o, list, 0));
		put(o, "]");
	} else if (node(o, list)->nr == 2 && is_swift(o, base, "Dictionary")) {
		put(o, "[");
		print_list(o, list, " : ");
		put(o, "]");
	} else {
		return false;
	}
	return true;
}

/* How many levels of `id`, itself included, take arguments: they stand at all or none of these. */
static void print_bound_levels(struct printer *o, uint32_t id, const uint32_t *lists, uint32_t nr)
{
	uint32_t parent = child(o, id, 0);

	if (!enter(o, id))
		return;
	if (nr == 1 && print_sugar(o, id, lists[0])) {
		leave(o);
		return;
	}
	if (node(o, id)->kind == SWIFT_NOMINAL && nr > 1 &&
	    node(o, parent)->kind == SWIFT_NOMINAL) {
		print_bound_levels(o, parent, lists, nr - 1);
		put(o, ".");
		print_name(o, child(o, id, 1));
	} else if (node(o, id)->kind == SWIFT_NOMINAL && nr > 1 &&
		   node(o, parent)->kind == SWIFT_EXTENSION) {
		put(o, "(extension in ");
		print_entity(o, child(o, parent, 0));
		put(o, "):");
		print_bound_levels(o, child(o, parent, 1), lists, nr - 1);
		if (child(o, parent, 2) != SWIFT_NONE)
			print_signature(o, child(o, parent, 2));
		put(o, ".");
		print_name(o, child(o, id, 1));
	} else {
		for (uint32_t i = 0; i + 1 < nr; i++)
			o->failed |= node(o, lists[i])->nr != 0;
		print_type(o, id);
	}
	if (nr && node(o, lists[nr - 1])->nr) {
		put(o, "<");
		print_list(o, lists[nr - 1], ", ");
		put(o, ">");
	}
	leave(o);
}

static void print_bound(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);

	print_bound_levels(o, child(o, id, 0), o->tree->kids.items + n->first + 1, n->nr - 1);
}

/* "(label: A, B...)"; `labels` of a function, or SWIFT_NONE: those of the tuple itself. */
static void print_tuple(struct printer *o, uint32_t id, uint32_t labels)
{
	put(o, "(");
	for (uint32_t i = 0; i < node(o, id)->nr && !o->full; i++) {
		uint32_t element = child(o, id, i);
		uint32_t label = labels == SWIFT_NONE ? child(o, element, 1) : child(o, labels, i);

		if (i)
			put(o, ", ");
		if (label != SWIFT_NONE) {
			if (node(o, label)->kind == SWIFT_FIRST_MARK)
				put(o, "_");
			else
				print_name(o, label);
			put(o, ": ");
		}
		print_type(o, child(o, element, 0));
		if (node(o, element)->number)
			put(o, "...");
	}
	put(o, ")");
}

/* "(A) async throws -> B" */
static void print_signature_of_function(struct printer *o, uint32_t id, uint32_t labels)
{
	const struct swift_node *n = node(o, id);

	print_tuple(o, child(o, id, 0), labels);
	if (n->number & SWIFT_IS_ASYNC)
		put(o, " async");
	if (n->number & SWIFT_IS_THROWING) {
		put(o, " throws");
		if (child(o, id, 2) != SWIFT_NONE) {
			put(o, "(");
			print_type(o, child(o, id, 2));
			put(o, ")");
		}
	}
	put(o, " -> ");
	if (n->number & SWIFT_IS_SENDING)
		put(o, "sending ");
	print_type(o, child(o, id, 1));
}

static void print_function_type(struct printer *o, uint32_t id, uint32_t labels)
{
	const struct swift_node *n = node(o, id);

	put_text(o, id);
	if (n->number & SWIFT_IS_ISOLATED_ANY)
		put(o, "@isolated(any) ");
	if (child(o, id, 3) != SWIFT_NONE) {
		put(o, "@");
		print_type(o, child(o, id, 3));
		put(o, " ");
	}
	if (n->number & SWIFT_IS_SENDABLE)
		put(o, "@Sendable ");
	print_signature_of_function(o, id, labels);
}

static void print_protocols(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);
	uint32_t list = child(o, id, 0);

	if (n->tag == 'c') {
		print_type(o, child(o, id, 1));
		if (node(o, list)->nr)
			put(o, " & ");
	}
	print_list(o, list, " & ");
	if (n->tag == 'l')
		put(o, node(o, list)->nr ? " & Swift.AnyObject" : "Swift.AnyObject");
	else if (n->tag == 'p' && !node(o, list)->nr)
		put(o, "Any");
}

static const char *convention(char c, bool result)
{
	static const char letters[] = "iclbnxygevpm", result_letters[] = "roduak";
	static const char *const texts[] = { "@in ",
					     "@in_constant ",
					     "@inout ",
					     "@inout_aliasable ",
					     "@in_guaranteed ",
					     "@owned ",
					     "@unowned ",
					     "@guaranteed ",
					     "@deallocating ",
					     "@pack_owned ",
					     "@pack_guaranteed ",
					     "@pack_inout " };
	static const char *const result_texts[] = { "@out ",	      "@owned ",
						    "@unowned ",      "@unowned_inner_pointer ",
						    "@autoreleased ", "@pack_out " };
	const char *at = c ? strchr(result ? result_letters : letters, c) : NULL;

	if (!at)
		return NULL;
	return result ? result_texts[at - result_letters] : texts[at - letters];
}

static const char *impl_attribute(char c)
{
	switch (c) {
	case 'e':
		return "@escaping ";
	case 'y':
		return "@callee_unowned ";
	case 'g':
		return "@callee_guaranteed ";
	case 'x':
		return "@callee_owned ";
	case 't':
		return "@convention(thin) ";
	case 'B':
		return "@convention(block) ";
	case 'C':
		return "@convention(c) ";
	case 'M':
		return "@convention(method) ";
	case 'J':
		return "@convention(objc_method) ";
	case 'K':
		return "@convention(closure) ";
	case 'W':
		return "@convention(witness_method) ";
	case 'A':
		return "yield_once ";
	case 'h':
		return "@Sendable ";
	case 'H':
		return "@async ";
	default:
		return NULL;
	}
}

/*
 * "@escaping @callee_guaranteed (@in A) -> (@out B, @error @owned Swift.Error)". A letter is a
 * parameter's as long as it can be one; of those that can be both, none begins a result.
 */
static void print_impl_type(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);
	const char *c = n->text, *end = c + n->len;
	uint32_t type = 0;
	bool callee = false, any = false;

	for (; c < end; c++) {
		const char *text = impl_attribute(*c);

		if (!text || (callee && strchr("eygxt", *c)))
			break;
		callee |= strchr("ygxt", *c) != NULL;
		put(o, text);
	}
	if (type < n->nr && node(o, child(o, id, n->nr - 1))->kind == SWIFT_SIGNATURE) {
		print_signature(o, child(o, id, n->nr - 1));
		put(o, " ");
	}
	put(o, "(");
	for (; c < end && convention(*c, false); c++) {
		put(o, any ? ", " : "");
		put(o, convention(*c, false));
		print_type(o, child(o, id, type++));
		any = true;
	}
	put(o, ") -> (");
	any = false;
	for (; c < end && !o->failed; c++) {
		put(o, any ? ", " : "");
		if (*c == 'z' && ++c < end)
			put(o, "@error ");
		if (c == end || !convention(*c, true)) {
			o->failed = true;
			return;
		}
		put(o, convention(*c, true));
		print_type(o, child(o, id, type++));
		any = true;
	}
	put(o, ")");
}

static void print_conformance(struct printer *o, uint32_t id)
{
	uint32_t module = child(o, id, 2), signature = child(o, id, 3);

	if (signature != SWIFT_NONE && !o->brief) {
		print_signature(o, signature);
		put(o, " ");
	}
	print_type(o, child(o, id, 0));
	put(o, " : ");
	print_type(o, child(o, id, 1));
	if (module != SWIFT_NONE && !o->brief) {
		put(o, " in ");
		put_text(o, module);
	}
}

static void print_associated(struct printer *o, uint32_t id)
{
	print_type(o, child(o, id, 0));
	put(o, ".");
	if (child(o, id, 2) != SWIFT_NONE) {
		print_type(o, child(o, id, 2));
		put(o, ".");
	}
	print_name(o, child(o, id, 1));
}

static void print_type_node(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);

	switch (n->kind) {
	case SWIFT_PLAIN_TYPE:
		put_text(o, id);
		if (n->number)
			put_number(o, n->number);
		break;
	case SWIFT_VECTOR:
		put(o, "Builtin.Vec");
		put_number(o, n->number);
		put(o, "x");
		put(o, node(o, child(o, id, 0))->text + strlen("Builtin."));
		if (node(o, child(o, id, 0))->number)
			put_number(o, node(o, child(o, id, 0))->number);
		break;
	case SWIFT_FUNCTION_TYPE:
		print_function_type(o, id, SWIFT_NONE);
		break;
	case SWIFT_TUPLE:
		print_tuple(o, id, SWIFT_NONE);
		break;
	case SWIFT_BOUND:
		print_bound(o, id);
		break;
	case SWIFT_LIST:
		print_list(o, id, ", ");
		break;
	case SWIFT_PARAMETER:
		print_parameter(o, n->number >> 16, n->number & 0xffff);
		break;
	case SWIFT_SELF_PARAMETER:
		put(o, "Self");
		break;
	case SWIFT_ASSOCIATED:
		print_associated(o, id);
		break;
	case SWIFT_PREFIXED_TYPE:
		put_text(o, id);
		print_type(o, child(o, id, 0));
		break;
	case SWIFT_METATYPE:
		put_text(o, id);
		print_in_parens(o, child(o, id, 0));
		put(o, n->tag == 'P' ? ".Protocol" : ".Type");
		break;
	case SWIFT_PROTOCOLS:
		print_protocols(o, id);
		break;
	case SWIFT_GENERIC_TYPE:
		print_signature(o, child(o, id, 0));
		if (node(o, child(o, id, 1))->kind != SWIFT_FUNCTION_TYPE)
			put(o, " ");
		print_type(o, child(o, id, 1));
		break;
	case SWIFT_OPAQUE:
		put(o, "<<opaque return type of ");
		print_entity(o, child(o, id, 0));
		put(o, ">>");
		break;
	case SWIFT_BOUND_OPAQUE:
		print_type(o, child(o, id, 0));
		put(o, ".");
		put_number(o, n->number);
		break;
	case SWIFT_PACK:
		put(o, "Pack{");
		print_list(o, id, ", ");
		put(o, "}");
		break;
	case SWIFT_IMPL_TYPE:
		print_impl_type(o, id);
		break;
	case SWIFT_SIGNATURE:
		print_signature(o, id);
		break;
	case SWIFT_CONFORMANCE:
		print_conformance(o, id);
		break;
	default:
		print_entity(o, id);
	}
}

static void print_type(struct printer *o, uint32_t id)
{
	if (!enter(o, id))
		return;
	/* Short names have no arguments, and types only where one is all there is. */
	if (o->brief && node(o, id)->kind == SWIFT_BOUND)
		print_type(o, child(o, id, 0));
	else
		print_type_node(o, id);
	leave(o);
}

/* --- entities ----------------------------------------------------------------------------------
 */

/* Behind a function's name: "<A>(x: A) -> ()". */
static void print_type_of_function(struct printer *o, uint32_t type, uint32_t labels)
{
	if (o->brief || type == SWIFT_NONE)
		return;
	if (node(o, type)->kind == SWIFT_GENERIC_TYPE) {
		print_signature(o, child(o, type, 0));
		type = child(o, type, 1);
	}
	if (node(o, type)->kind != SWIFT_FUNCTION_TYPE)
		o->failed = true;
	else
		print_function_type(o, type, labels);
}

/* Behind a variable's or an accessor's: " : Swift.Int". */
static void print_type_of_storage(struct printer *o, uint32_t type, uint32_t labels)
{
	if (o->brief || type == SWIFT_NONE)
		return;
	put(o, " : ");
	if (node(o, type)->kind == SWIFT_GENERIC_TYPE && labels != SWIFT_NONE) {
		print_signature(o, child(o, type, 0));
		type = child(o, type, 1);
	}
	if (node(o, type)->kind == SWIFT_FUNCTION_TYPE)
		print_function_type(o, type, labels);
	else
		print_type(o, type);
}

/*
 * What must stand behind " in ": a context that is no simple name. Local names ("f #1") have their
 * context there too. SWIFT_NONE: it has been printed, with a dot behind it.
 */
static uint32_t print_context(struct printer *o, uint32_t id, bool postfix)
{
	uint32_t rest;
	size_t before = o->used;

	if (postfix)
		return id;
	rest = print_prefix(o, id);
	if (o->used != before)
		put(o, ".");
	return rest;
}

static void print_rest(struct printer *o, uint32_t context, const char *between)
{
	if (context == SWIFT_NONE)
		return;
	put(o, between);
	print_entity(o, context);
}

static bool is_local(const struct printer *o, uint32_t name)
{
	return name != SWIFT_NONE && node(o, name)->kind == SWIFT_LOCAL_NAME;
}

/* A variable or subscript, with the accessor's name or "". */
static void print_storage(struct printer *o, uint32_t id, const char *accessor)
{
	uint32_t name = child(o, id, 1), rest;
	bool local = node(o, id)->kind == SWIFT_VARIABLE && is_local(o, name);

	if (local && *accessor) {
		put(o, accessor);
		put(o, " of ");
		accessor = "";
	}
	rest = print_context(o, child(o, id, 0), local);
	if (node(o, id)->kind == SWIFT_SUBSCRIPT) {
		put(o, "subscript");
	} else {
		print_name(o, name);
	}
	if (*accessor) {
		put(o, ".");
		put(o, accessor);
	}
	print_type_of_storage(o, child(o, id, 3), child(o, id, 2));
	print_rest(o, rest, " in ");
}

static void print_extension(struct printer *o, uint32_t id)
{
	if (o->brief) {
		print_type(o, child(o, id, 1));
		return;
	}
	put(o, "(extension in ");
	put_text(o, child(o, id, 0));
	put(o, "):");
	print_type(o, child(o, id, 1));
	if (child(o, id, 2) != SWIFT_NONE)
		print_signature(o, child(o, id, 2));
}

/* The simple contexts print themselves and SWIFT_NONE returns; of others they themselves do. */
static uint32_t print_prefix(struct printer *o, uint32_t id)
{
	const struct swift_node *n;

	if (id == SWIFT_NONE) {
		o->failed = true;
		return SWIFT_NONE;
	}
	n = node(o, id);
	if (n->kind == SWIFT_NOMINAL && !is_local(o, child(o, id, 1))) {
		uint32_t rest;

		if (!enter(o, id))
			return SWIFT_NONE;
		rest = print_context(o, child(o, id, 0), false);
		print_name(o, child(o, id, 1));
		leave(o);
		return rest;
	}
	if (n->kind == SWIFT_MODULE)
		put_text(o, id);
	else if (n->kind == SWIFT_EXTENSION)
		print_extension(o, id);
	else
		return id;
	return SWIFT_NONE;
}

static void print_closure(struct printer *o, uint32_t id)
{
	put_text(o, id);
	put(o, " #");
	put_number(o, node(o, id)->number);
	if (!o->brief) {
		put(o, " ");
		print_type(o, child(o, id, 1));
	}
	put(o, " in ");
	print_entity(o, child(o, id, 0));
}

static void print_wrapped(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);
	uint32_t nr = o->brief && n->number ? n->number - 1 : n->nr;

	put_text(o, id);
	for (uint32_t i = 0; i < nr; i++)
		print_type(o, child(o, id, i));
}

static void print_entity_node(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);
	uint32_t rest;

	switch (n->kind) {
	case SWIFT_MODULE:
		put_text(o, id);
		break;
	case SWIFT_NOMINAL:
		rest = print_context(o, child(o, id, 0), is_local(o, child(o, id, 1)));
		print_name(o, child(o, id, 1));
		print_rest(o, rest, " in ");
		break;
	case SWIFT_EXTENSION:
		print_extension(o, id);
		break;
	case SWIFT_FUNCTION:
		rest = print_context(o, child(o, id, 0), is_local(o, child(o, id, 1)));
		print_name(o, child(o, id, 1));
		if (is_local(o, child(o, id, 1)) && !o->brief)
			put(o, " ");
		print_type_of_function(o, child(o, id, 3), child(o, id, 2));
		print_rest(o, rest, " in ");
		break;
	case SWIFT_VARIABLE:
	case SWIFT_SUBSCRIPT:
		print_storage(o, id, "");
		break;
	case SWIFT_ACCESSOR:
		print_storage(o, child(o, id, 0), n->text);
		break;
	case SWIFT_MEMBER:
		rest = print_context(o, child(o, id, 0), false);
		put_text(o, id);
		print_type_of_function(o, child(o, id, 2), child(o, id, 1));
		print_rest(o, rest, " in ");
		break;
	case SWIFT_CLOSURE:
		print_closure(o, id);
		break;
	case SWIFT_PART_OF:
		put_text(o, id);
		print_entity(o, child(o, id, 0));
		break;
	case SWIFT_STATIC:
		put(o, o->brief ? "" : "static ");
		print_entity(o, child(o, id, 0));
		break;
	case SWIFT_WRAPPED:
		print_wrapped(o, id);
		break;
	default:
		o->failed = true;
	}
}

static void print_entity(struct printer *o, uint32_t id)
{
	if (!enter(o, id))
		return;
	print_entity_node(o, id);
	leave(o);
}

/* --- the whole ---------------------------------------------------------------------------------
 */

/* "merged ", "generic specialization <Swift.Int> of ". False: it is none of these. */
static bool print_attribute(struct printer *o, uint32_t id)
{
	const struct swift_node *n = node(o, id);

	switch (n->kind) {
	case SWIFT_ATTRIBUTE:
		put_text(o, id);
		return true;
	case SWIFT_SIGNATURE_SPECIALIZATION:
		put(o, o->brief ? "" : "function signature specialization of ");
		return true;
	case SWIFT_SPECIALIZATION:
		if (o->brief)
			return true;
		put_text(o, id);
		put(o, n->number ? " <serialized, " : " <");
		print_type(o, child(o, id, 0));
		put(o, "> of ");
		return true;
	default:
		return false;
	}
}

bool swift_print(const struct swift_tree *t, bool brief, char *buf, size_t size)
{
	struct printer o = { .tree = t, .buf = buf, .size = size, .brief = brief };
	size_t i = t->stack.nr;

	while (i && !o.failed && print_attribute(&o, t->stack.items[i - 1]))
		i--;
	/* Exactly one thing must be left. */
	if (i != 1 || o.failed)
		return false;
	print_type(&o, t->stack.items[0]);
	buf[o.used] = '\0';
	return !o.failed && o.used;
}
