/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Swift name as a tree. swift.c makes it out of the mangled name (swift_parse),
 * swift_print.c text of it (swift_print). Nodes are numbered; several may share a child.
 */
#pragma once

#include "util/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWIFT_NONE UINT32_MAX

/* Behind each: its children; `text`, `tag` and `number` where it says so. */
enum swift_kind {
	SWIFT_IDENTIFIER,   /* text */
	SWIFT_MODULE,	    /* text */
	SWIFT_OPERATOR,	    /* text; tag: p, P, i */
	SWIFT_PRIVATE_NAME, /* discriminator, name (none: only the file is said) */
	SWIFT_LOCAL_NAME,   /* name; number */
	SWIFT_RELATED_NAME, /* name; tag */
	SWIFT_NOMINAL,	    /* context, name; tag: C, V, O, P, a */
	SWIFT_EXTENSION,    /* module, type, signature or none */
	SWIFT_FUNCTION,	    /* context, name, labels or none, type */
	SWIFT_VARIABLE,	    /* context, name, labels or none, type */
	SWIFT_SUBSCRIPT,    /* context, private name or none, labels or none, type */
	SWIFT_ACCESSOR,	    /* storage; text: "getter" */
	SWIFT_MEMBER,	    /* context, labels, type, private name (each or none); text: "init" */
	SWIFT_CLOSURE,	    /* context, type or none; text: "closure"; number */
	SWIFT_PART_OF,	    /* context; text: "default argument 0 of " */
	SWIFT_STATIC,	    /* entity */
	SWIFT_LABELS,	    /* identifiers, or first marks for empty ones */
	/* types */
	SWIFT_PLAIN_TYPE,    /* text: "Builtin.Word" */
	SWIFT_VECTOR,	     /* type; number */
	SWIFT_FUNCTION_TYPE, /* parameters, result, thrown type or none, global actor or none; text:
				before it; number: SWIFT_IS_* */
	SWIFT_TUPLE,	     /* elements */
	SWIFT_ELEMENT,	     /* type, label or none; number: 1 if variadic */
	SWIFT_BOUND,	     /* nominal type, argument lists from the outermost level on */
	SWIFT_LIST,	     /* types */
	SWIFT_PARAMETER,     /* of a signature; number: depth << 16 | index */
	SWIFT_SELF_PARAMETER,
	SWIFT_ASSOCIATED,      /* base type, name, protocol or none */
	SWIFT_PREFIXED_TYPE,   /* type; text before it: "inout " */
	SWIFT_METATYPE,	       /* type; text: "@thick " or ""; tag: P if it is a protocol's own */
	SWIFT_PROTOCOLS,       /* protocols, superclass or none; tag: 'X' if AnyObject too */
	SWIFT_GENERIC_TYPE,    /* signature, type */
	SWIFT_OPAQUE,	       /* entity; number: which */
	SWIFT_BOUND_OPAQUE,    /* opaque type, argument lists */
	SWIFT_PACK,	       /* types */
	SWIFT_IMPL_TYPE,       /* types, signature or none; text: the attributes' letters */
	SWIFT_SIGNATURE,       /* requirements, then counts; number: of requirements */
	SWIFT_COUNT,	       /* number: parameters at a depth */
	SWIFT_REQUIREMENT,     /* left, right or none; text: ": " or " == "; tag: a layout */
	SWIFT_CONFORMANCE,     /* type, protocol, module or none, signature or none */
	SWIFT_CONFORMANCE_REF, /* of no interest, but must be taken off the stack */
	/* what stands before a whole entity */
	SWIFT_ATTRIBUTE,      /* text: "merged " */
	SWIFT_SPECIALIZATION, /* types; text: "generic specialization" */
	SWIFT_SIGNATURE_SPECIALIZATION,
	SWIFT_WRAPPED, /* children behind text; number: 0, or 1 more than short names have of them
			*/
	/* markers on the stack */
	SWIFT_EMPTY_LIST,
	SWIFT_FIRST_MARK,
	SWIFT_VARIADIC_MARK,
	SWIFT_EFFECT, /* tag: Y's letter, K throws; child: type */
};

enum {
	SWIFT_IS_ASYNC = 1,
	SWIFT_IS_SENDABLE = 2,
	SWIFT_IS_THROWING = 4,
	SWIFT_IS_SENDING = 8,
	SWIFT_IS_ISOLATED_ANY = 16,
};

struct swift_node {
	uint8_t kind;
	char tag;
	uint16_t len;
	uint32_t number;
	const char *text;
	uint32_t first, nr; /* children: into kids */
};

struct swift_tree {
	VEC(struct swift_node) nodes;
	VEC(uint32_t) kids;
	VEC(uint32_t) stack; /* what is left of it is the name: attributes and one entity */
	VEC(uint32_t) substitutions;
	char *pool; /* of texts that do not stand in the name */
	size_t pool_used, pool_size;
};

static inline const struct swift_node *swift_node(const struct swift_tree *t, uint32_t id)
{
	return &t->nodes.items[id];
}

/* Child `i`, or SWIFT_NONE. */
static inline uint32_t swift_child(const struct swift_tree *t, uint32_t id, uint32_t i)
{
	const struct swift_node *n = &t->nodes.items[id];

	return i < n->nr ? t->kids.items[n->first + i] : SWIFT_NONE;
}

/* `name` without prefix and suffixes. False: not understood. `t` is zeroed; fini it anyway. */
bool swift_parse(struct swift_tree *t, const char *name, size_t len);
void swift_tree_fini(struct swift_tree *t);
/* False: nothing sensible can be written (an unknown attribute, too much of it). */
bool swift_print(const struct swift_tree *t, bool brief, char *buf, size_t size);
