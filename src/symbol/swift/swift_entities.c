// SPDX-License-Identifier: Apache-2.0
/*
 * What a Swift name is of: functions, variables, accessors, closures, and what the compiler makes
 * of them; read swift.c first. The letters are those of the sections "Globals", "Entities"
 * and "Function Specializations" of Swift's docs/ABI/Mangling.rst.
 */
#include "symbol/swift/swift_parse.h"

#include <stdio.h>
#include <string.h>

enum {
	LABELS_MAX = 256,
};

struct letter_text {
	char letter;
	const char *text;
};

/* NULL if it is not in `texts`, whose last has the letter 0. */
static const char *text_of(const struct letter_text *texts, char letter)
{
	for (; texts->letter; texts++)
		if (texts->letter == letter)
			return texts->text;
	return NULL;
}

/* --- functions and variables -------------------------------------------------------------------
 */

/* As many labels as the function has parameters; SWIFT_NONE if it has none. */
static uint32_t pop_labels(struct swift_parser *p, uint32_t type)
{
	uint32_t labels[LABELS_MAX], params, nr;

	if (swift_pop(p, SWIFT_EMPTY_LIST) != SWIFT_NONE || type == SWIFT_NONE)
		return SWIFT_NONE;
	if (swift_kind_of(p, type) == SWIFT_GENERIC_TYPE)
		type = swift_child(p->tree, type, 1);
	if (swift_kind_of(p, type) != SWIFT_FUNCTION_TYPE)
		return SWIFT_NONE;
	params = swift_child(p->tree, type, 0);
	nr = swift_node(p->tree, params)->nr;
	if (!nr)
		return SWIFT_NONE;
	if (nr > LABELS_MAX)
		return swift_fail(p);
	for (uint32_t i = nr; i-- > 0;) {
		labels[i] = swift_pop(p, SWIFT_IDENTIFIER);
		if (labels[i] == SWIFT_NONE)
			labels[i] = swift_pop(p, SWIFT_FIRST_MARK);
		if (labels[i] == SWIFT_NONE)
			return swift_fail(p);
	}
	return swift_make_list(p, SWIFT_LABELS, labels, nr);
}

/* 'F' */
static bool read_function(struct swift_parser *p)
{
	uint32_t signature = swift_pop(p, SWIFT_SIGNATURE);
	uint32_t type = swift_pop_function_type(p, ""), labels, name;

	if (p->failed)
		return false;
	labels = pop_labels(p, type);
	if (signature != SWIFT_NONE)
		type = swift_make(p, SWIFT_GENERIC_TYPE, NULL, 2, signature, type);
	name = swift_pop_name(p);
	if (name == SWIFT_NONE)
		return false;
	swift_push(p, swift_make(p, SWIFT_FUNCTION, NULL, 4, swift_pop_context(p), name, labels,
				 type));
	return true;
}

static const struct letter_text accessors[] = {
	{ 'm', "materializeForSet" },
	{ 's', "setter" },
	{ 'g', "getter" },
	{ 'G', "getter" },
	{ 'w', "willset" },
	{ 'W', "didset" },
	{ 'r', "read" },
	{ 'M', "modify" },
	{ 'i', "init" },
	{ 0 },
};

/* The accessor of `storage` that the next letters name. */
static bool push_accessor(struct swift_parser *p, uint32_t storage)
{
	char c = swift_next(p);
	const char *text = text_of(accessors, c);

	if (c == 'p') {
		swift_push(p, storage);
		return true;
	}
	if (c == 'a' && swift_skip(p, 'u'))
		text = "unsafeMutableAddressor";
	if (c == 'l' && swift_skip(p, 'u'))
		text = "unsafeAddressor";
	if (!text)
		return false;
	swift_push(p, swift_make(p, SWIFT_ACCESSOR, text, 1, storage));
	return true;
}

/* 'v' */
static bool read_variable(struct swift_parser *p)
{
	uint32_t type = swift_pop_type(p), labels, name;

	if (type == SWIFT_NONE)
		return false;
	labels = pop_labels(p, type);
	name = swift_pop_name(p);
	if (p->failed || name == SWIFT_NONE)
		return false;
	return push_accessor(p, swift_make(p, SWIFT_VARIABLE, NULL, 4, swift_pop_context(p), name,
					   labels, type));
}

/* A file's name without one of an entity, as initialisers and subscripts have it. */
static uint32_t pop_file(struct swift_parser *p)
{
	return swift_pop(p, SWIFT_PRIVATE_NAME);
}

/* 'i' */
static bool read_subscript(struct swift_parser *p)
{
	uint32_t file = pop_file(p), type = swift_pop_type(p), labels;

	if (type == SWIFT_NONE)
		return false;
	labels = pop_labels(p, type);
	if (p->failed)
		return false;
	return push_accessor(p, swift_make(p, SWIFT_SUBSCRIPT, NULL, 4, swift_pop_context(p), file,
					   labels, type));
}

static bool is_class(const struct swift_parser *p, uint32_t context)
{
	return context != SWIFT_NONE && swift_kind_of(p, context) == SWIFT_NOMINAL &&
	       swift_node(p->tree, context)->tag == 'C';
}

static bool read_initializer(struct swift_parser *p, bool allocates)
{
	uint32_t file = pop_file(p), type = swift_pop_type(p), labels, context;
	bool class;

	if (type == SWIFT_NONE)
		return false;
	labels = pop_labels(p, type);
	if (p->failed)
		return false;
	context = swift_pop_context(p);
	class = is_class(p, context);
	swift_push(p, swift_make(p, SWIFT_MEMBER, allocates && class ? "__allocating_init" : "init",
				 4, context, labels, type, file));
	return true;
}

static bool read_closure(struct swift_parser *p, const char *text)
{
	uint32_t number = swift_index(p), type = swift_pop_type(p), id;

	if (type == SWIFT_NONE)
		return false;
	id = swift_make(p, SWIFT_CLOSURE, text, 2, swift_pop_context(p), type);
	if (id != SWIFT_NONE)
		p->tree->nodes.items[id].number = number + 1;
	swift_push(p, id);
	return true;
}

static void push_part(struct swift_parser *p, const char *text)
{
	swift_push(p, swift_make(p, SWIFT_PART_OF, text, 1, swift_pop_context(p)));
}

/* A text with a number in it, kept with the tree. */
static const char *numbered(struct swift_parser *p, const char *before, uint32_t number,
			    const char *behind)
{
	struct swift_tree *t = p->tree;
	char *at = t->pool + t->pool_used;
	size_t room = t->pool_size - t->pool_used;
	int len = snprintf(at, room, "%s%u%s", before, number, behind);

	if (len < 0 || (size_t)len >= room) {
		swift_fail(p);
		return "";
	}
	t->pool_used += (size_t)len + 1;
	return at;
}

/* 'f' */
static bool read_function_entity(struct swift_parser *p)
{
	static const struct letter_text untyped[] = {
		{ 'D', "__deallocating_deinit" },
		{ 'd', "deinit" },
		{ 'E', "__ivar_destroyer" },
		{ 'e', "__ivar_initializer" },
		{ 0 },
	}, parts[] = {
		{ 'i', "variable initialization expression of " },
		{ 'P', "property wrapper backing initializer of " },
		{ 'W', "property wrapper init from projected value of " },
		{ 0 },
	};
	char c = swift_next(p);
	uint32_t context;

	switch (c) {
	case 'C':
	case 'c':
		return read_initializer(p, c == 'C');
	case 'U':
		return read_closure(p, "closure");
	case 'u':
		return read_closure(p, "implicit closure");
	case 'A':
		push_part(p, numbered(p, "default argument ", swift_index(p), " of "));
		return true;
	}
	if (text_of(untyped, c)) {
		context = swift_pop_context(p);
		if (c == 'D' && !is_class(p, context)) /* of a struct that can't be copied */
			c = 'd';
		swift_push(p, swift_make(p, SWIFT_MEMBER, text_of(untyped, c), 4, context,
					 SWIFT_NONE, SWIFT_NONE, SWIFT_NONE));
		return true;
	}
	if (text_of(parts, c)) {
		push_part(p, text_of(parts, c));
		return true;
	}
	return false;
}

/* 'E' */
static bool read_extension(struct swift_parser *p)
{
	uint32_t signature = swift_pop(p, SWIFT_SIGNATURE), module = swift_pop_module(p);
	uint32_t type = swift_pop_type(p);

	if (module == SWIFT_NONE || type == SWIFT_NONE)
		return false;
	swift_push(p, swift_make(p, SWIFT_EXTENSION, NULL, 3, module, type, signature));
	return true;
}

bool swift_read_entity(struct swift_parser *p, char c)
{
	uint32_t id;

	switch (c) {
	case 'E':
		return read_extension(p);
	case 'F':
		return read_function(p);
	case 'Z':
		id = swift_pop_entity(p);
		if (id == SWIFT_NONE)
			return false;
		swift_push(p, swift_make(p, SWIFT_STATIC, NULL, 1, id));
		return true;
	case 'f':
		return read_function_entity(p);
	case 'i':
		return read_subscript(p);
	case 'v':
		return read_variable(p);
	default:
		return false;
	}
}

/* --- what compilers make of entities -----------------------------------------------------------
 */

static bool push_wrapped(struct swift_parser *p, const char *text, uint32_t child)
{
	if (child == SWIFT_NONE)
		return false;
	swift_push(p, swift_make(p, SWIFT_WRAPPED, text, 1, child));
	return true;
}

/* Text, first, text between, second. */
static bool push_wrapped_two(struct swift_parser *p, const char *text, uint32_t first,
			     const char *between, uint32_t second)
{
	if (first == SWIFT_NONE || second == SWIFT_NONE)
		return false;
	swift_push(p, swift_make(p, SWIFT_WRAPPED, text, 3, first,
				 swift_make(p, SWIFT_PLAIN_TYPE, between, 0), second));
	return true;
}

static void push_attribute(struct swift_parser *p, const char *text)
{
	swift_push(p, swift_make(p, SWIFT_ATTRIBUTE, text, 0));
}

/* SPEC-INFO: flags and the pass. */
static bool read_pass(struct swift_parser *p)
{
	while (swift_skip(p, 'm') || swift_skip(p, 'q') || swift_skip(p, 'a'))
		;
	if (p->at == p->end || *p->at < '0' || *p->at > '9')
		return false;
	p->at++;
	return true;
}

/* 'Tg' and its like: the types that stand for the parameters. */
static bool read_specialization(struct swift_parser *p, const char *text)
{
	const char *begin = p->at;
	bool serialized;
	uint32_t types;

	if (!read_pass(p))
		return false;
	serialized = memchr(begin, 'q', (size_t)(p->at - begin));
	types = swift_pop_types(p);
	if (types == SWIFT_NONE)
		return false;
	types = swift_make(p, SWIFT_SPECIALIZATION, text, 1, types);
	if (types != SWIFT_NONE)
		p->tree->nodes.items[types].number = serialized;
	swift_push(p, types);
	return true;
}

/* An argument's letters; *takes gets an 'i' for each identifier that it takes off the stack, ... */
static bool read_argument(struct swift_parser *p, char *takes)
{
	char c = swift_next(p);

	*takes = ' ';
	switch (c) {
	case 'n':
	case 'x':
	case 'i':
	case 's':
	case 'r':
		return true;
	case 'c':
		*takes = 'c';
		return true;
	case 'e':
	case 'd':
	case 'g':
	case 'o':
		while (swift_skip(p, 'D') || swift_skip(p, 'G') || swift_skip(p, 'O') ||
		       swift_skip(p, 'X'))
			;
		return true;
	case 'p':
		c = swift_next(p);
		if (c == 'f' || c == 'g')
			*takes = 'i';
		else if (c == 's' &&
			 (swift_skip(p, 'b') || swift_skip(p, 'w') || swift_skip(p, 'c')))
			*takes = 'i';
		else if (c == 'i' || c == 'd')
			p->at += strspn(p->at, "0123456789");
		else
			return false;
		return p->at <= p->end;
	default:
		return false;
	}
}

/* 'Tf': how its arguments changed. Only that they did is shown. */
static bool read_signature_specialization(struct swift_parser *p)
{
	char takes[LABELS_MAX];
	size_t nr = 0;

	if (!read_pass(p))
		return false;
	while (!swift_skip(p, '_'))
		if (nr == LABELS_MAX - 1 || !read_argument(p, &takes[nr++]))
			return false;
	if (!read_argument(p, &takes[nr++]))
		return false;
	while (nr--) {
		while (takes[nr] == 'c' && swift_pop_type(p) != SWIFT_NONE)
			;
		if (takes[nr] != ' ' && swift_pop(p, SWIFT_IDENTIFIER) == SWIFT_NONE)
			return false;
	}
	swift_push(p, swift_make(p, SWIFT_SIGNATURE_SPECIALIZATION,
				 "function signature specialization of ", 0));
	return true;
}

/* Short names have the first `nr` children of it only. */
static bool push_shortened(struct swift_parser *p, uint32_t id, uint32_t nr)
{
	if (id != SWIFT_NONE)
		p->tree->nodes.items[id].number = nr + 1;
	swift_push(p, id);
	return true;
}

/* 'TR': between two representations of a function. */
static bool read_reabstraction(struct swift_parser *p)
{
	uint32_t signature = swift_pop(p, SWIFT_SIGNATURE), to = swift_pop(p, SWIFT_IMPL_TYPE);
	uint32_t from = swift_pop(p, SWIFT_IMPL_TYPE), id;

	if (to == SWIFT_NONE || from == SWIFT_NONE)
		return false;
	if (signature == SWIFT_NONE)
		signature = swift_make(p, SWIFT_PLAIN_TYPE, "from ", 0);
	else
		signature = swift_make(p, SWIFT_WRAPPED, "", 2, signature,
				       swift_make(p, SWIFT_PLAIN_TYPE, " from ", 0));
	id = swift_make(p, SWIFT_WRAPPED, "reabstraction thunk helper", 5,
			swift_make(p, SWIFT_PLAIN_TYPE, " ", 0), signature, from,
			swift_make(p, SWIFT_PLAIN_TYPE, " to ", 0), to);
	return push_shortened(p, id, 0);
}

/* 'TK', 'Tk': of a property; a subscript's indices, which are further types, are not understood. */
static bool read_key_path(struct swift_parser *p, const char *text)
{
	uint32_t type = swift_pop_type(p), signature, entity;

	if (type == SWIFT_NONE)
		return false;
	signature = swift_pop(p, SWIFT_SIGNATURE);
	if (signature != SWIFT_NONE)
		type = swift_make(p, SWIFT_WRAPPED, "", 2, signature, type);
	entity = swift_pop_entity(p);
	if (entity == SWIFT_NONE)
		return false;
	return push_shortened(p,
			      swift_make(p, SWIFT_WRAPPED, text, 3, entity,
					 swift_make(p, SWIFT_PLAIN_TYPE, " : ", 0), type),
			      1);
}

static const struct letter_text attributes[] = {
	{ 'A', "partial apply forwarder for " },
	{ 'D', "dynamic " },
	{ 'E', "distributed thunk " },
	{ 'F', "distributed accessor for " },
	{ 'I', "dynamically replaceable thunk for " },
	{ 'O', "@nonobjc " },
	{ 'X', "dynamically replaceable variable for " },
	{ 'd', "super " },
	{ 'm', "merged " },
	{ 'o', "@objc " },
	{ 'u', "async function pointer to " },
	{ 'x', "dynamically replaceable key for " },
	{ 0 },
};

static const struct letter_text specializations[] = {
	{ 'B', "generic specialization" },     { 'G', "generic not re-abstracted specialization" },
	{ 'g', "generic specialization" },     { 'i', "inlined generic function" },
	{ 's', "generic pre-specialization" }, { 0 },
};

static const struct letter_text thunks[] = {
	{ 'c', "curry thunk of " },
	{ 'j', "dispatch thunk of " },
	{ 'q', "method descriptor for " },
	{ 'S', "protocol self-conformance witness for " },
	{ 0 },
};

/* 'T' */
static bool read_thunk(struct swift_parser *p)
{
	char c = swift_next(p);
	uint32_t first, second;

	if (text_of(attributes, c)) {
		push_attribute(p, text_of(attributes, c));
		return true;
	}
	if (text_of(specializations, c))
		return read_specialization(p, text_of(specializations, c));
	if (text_of(thunks, c))
		return push_wrapped(p, text_of(thunks, c), swift_pop_entity(p));
	switch (c) {
	case 'Q':
	case 'Y':
		push_attribute(p, numbered(p, "(", swift_index(p),
					   c == 'Q' ? ") await resume partial function for "
						    : ") suspend resume partial function for "));
		return true;
	case 'K':
		return read_key_path(p, "key path getter for ");
	case 'R':
		return read_reabstraction(p);
	case 'V':
		first = swift_pop_entity(p);
		second = swift_pop_entity(p);
		return push_wrapped_two(p, "vtable thunk for ", first, " dispatching to ", second);
	case 'W':
		first = swift_pop_entity(p);
		second = swift_pop_conformance(p);
		return push_wrapped_two(p, "protocol witness for ", first, " in conformance ",
					second);
	case 'f':
		return read_signature_specialization(p);
	case 'k':
		return read_key_path(p, "key path setter for ");
	case 'v':
		push_attribute(p, numbered(p, "outlined variable #", swift_index(p), " of "));
		return true;
	case 'w':
		if (swift_skip(p, 'b'))
			push_attribute(p, "back deployment thunk for ");
		else if (swift_skip(p, 'B'))
			push_attribute(p, "back deployment fallback for ");
		else
			return false;
		return true;
	default:
		return false;
	}
}

/* 'M': what has to do with metadata. */
static bool read_metadata(struct swift_parser *p)
{
	static const struct letter_text texts[] = {
		{ 'D', "demangling cache variable for type metadata for " },
		{ 'F', "reflection metadata field descriptor " },
		{ 'I', "generic type metadata instantiation cache for " },
		{ 'L', "lazy cache variable for type metadata for " },
		{ 'P', "generic type metadata pattern for " },
		{ 'U', "ObjC metadata update function for " },
		{ 'a', "type metadata accessor for " },
		{ 'f', "full type metadata for " },
		{ 'i', "type metadata instantiation function for " },
		{ 'l', "type metadata singleton initialization cache for " },
		{ 'm', "metaclass for " },
		{ 'n', "nominal type descriptor for " },
		{ 'o', "class metadata base offset for " },
		{ 'r', "type metadata completion function for " },
		{ 'u', "method lookup function for " },
		{ 0 },
	};
	char c = swift_next(p);

	if (c == 'c')
		return push_wrapped(p, "protocol conformance descriptor for ",
				    swift_pop_conformance(p));
	if (c == 'p')
		return push_wrapped(p, "protocol descriptor for ", swift_pop_protocol(p));
	return text_of(texts, c) && push_wrapped(p, text_of(texts, c), swift_pop_type(p));
}

/* 'WO': code that is shared by places that do the same to values of a type. */
static bool read_outlined(struct swift_parser *p)
{
	static const struct letter_text texts[] = {
		{ 'b', "outlined init with take of " },
		{ 'c', "outlined init with copy of " },
		{ 'd', "outlined assign with take of " },
		{ 'e', "outlined consume of " },
		{ 'f', "outlined assign with copy of " },
		{ 'h', "outlined destroy of " },
		{ 'r', "outlined retain of " },
		{ 's', "outlined release of " },
		{ 'y', "outlined copy of " },
		{ 0 },
	};
	const char *text = text_of(texts, swift_next(p));
	uint32_t type;

	swift_pop(p, SWIFT_SIGNATURE); /* whose parameters' names are in the type as well */
	type = swift_pop_type(p);
	return text && push_wrapped(p, text, type);
}

/* 'W': witnesses, and globals that are made when first used. */
static bool read_witness(struct swift_parser *p)
{
	static const struct letter_text texts[] = {
		{ 'G', "generic protocol witness table for " },
		{ 'I', "instantiation function for generic protocol witness table for " },
		{ 'P', "protocol witness table for " },
		{ 'a', "protocol witness table accessor for " },
		{ 'p', "protocol witness table pattern for " },
		{ 'r', "resilient protocol witness table for " },
		{ 0 },
	};
	char c = swift_next(p);
	uint32_t first, second;

	if (text_of(texts, c))
		return push_wrapped(p, text_of(texts, c), swift_pop_conformance(p));
	switch (c) {
	case 'O':
		return read_outlined(p);
	case 'V':
		return push_wrapped(p, "value witness table for ", swift_pop_type(p));
	case 'Z':
	case 'z':
		if (swift_pop(p, SWIFT_FIRST_MARK) == SWIFT_NONE)
			return false;
		first = swift_pop_name(p);
		if (first == SWIFT_NONE)
			return false;
		second = swift_make(p, SWIFT_VARIABLE, NULL, 4, swift_pop_context(p), first,
				    SWIFT_NONE, SWIFT_NONE);
		return push_wrapped(p,
				    c == 'Z' ? "one-time initialization function for "
					     : "one-time initialization token for ",
				    second);
	case 'b':
		second = swift_pop_protocol(p);
		first = swift_pop_conformance(p);
		return push_wrapped_two(p, "base witness table accessor for ", second, " in ",
					first);
	case 'l':
	case 'L':
		first = swift_pop_conformance(p);
		second = swift_pop_type(p);
		return push_wrapped_two(p,
					c == 'l' ? "lazy protocol witness table accessor for type "
						 : "lazy protocol witness table cache variable "
						   "for type ",
					second, " and conformance ", first);
	case 'v':
		return swift_skip(p, 'd') &&
		       push_wrapped(p, "direct field offset for ", swift_pop_entity(p));
	default:
		return false;
	}
}

/* 'w' and two letters. */
static bool read_value_witness(struct swift_parser *p)
{
	static const struct {
		char letters[3];
		const char *text;
	} texts[] = {
		{ "CP", "initializeBufferWithCopyOfBuffer value witness for " },
		{ "Cc", "initializeArrayWithCopy value witness for " },
		{ "Cp", "initializeBufferWithCopy value witness for " },
		{ "TK", "initializeBufferWithTakeOfBuffer value witness for " },
		{ "Tk", "initializeBufferWithTake value witness for " },
		{ "Tt", "initializeArrayWithTakeFrontToBack value witness for " },
		{ "XX", "destroyBuffer value witness for " },
		{ "Xx", "destroyArray value witness for " },
		{ "al", "allocateBuffer value witness for " },
		{ "ca", "assignWithCopy value witness for " },
		{ "cp", "initializeWithCopy value witness for " },
		{ "de", "deallocateBuffer value witness for " },
		{ "et", "getEnumTagSinglePayload value witness for " },
		{ "pr", "projectBuffer value witness for " },
		{ "st", "storeEnumTagSinglePayload value witness for " },
		{ "tT", "initializeArrayWithTakeBackToFront value witness for " },
		{ "ta", "assignWithTake value witness for " },
		{ "tk", "initializeWithTake value witness for " },
		{ "ug", "getEnumTag value witness for " },
		{ "ui", "destructiveInjectEnumTag value witness for " },
		{ "up", "destructiveProjectEnumData value witness for " },
		{ "xg", "getExtraInhabitantIndex value witness for " },
		{ "xs", "storeExtraInhabitant value witness for " },
		{ "xx", "destroy value witness for " },
	};
	char first = swift_next(p), second = swift_next(p);

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].letters[0] == first && texts[i].letters[1] == second)
			return push_wrapped(p, texts[i].text, swift_pop_type(p));
	return false;
}

bool swift_read_global(struct swift_parser *p, char c)
{
	switch (c) {
	case 'M':
		return read_metadata(p);
	case 'N':
		return push_wrapped(p, "type metadata for ", swift_pop_type(p));
	case 'T':
		return read_thunk(p);
	case 'W':
		return read_witness(p);
	case 'w':
		return read_value_witness(p);
	default:
		return false;
	}
}
