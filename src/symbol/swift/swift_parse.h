/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of Swift's parser: swift.c has the stack, identifiers and substitutions,
 * swift_types.c types and generics, swift_entities.c what a name is of.
 */
#pragma once

#include "symbol/swift/swift_tree.h"

struct swift_word {
	const char *text;
	size_t len;
};

struct swift_parser {
	struct swift_tree *tree;
	const char *at, *end;
	uint32_t nodes_max;
	struct swift_word words[26];
	size_t nr_words;
	bool failed; /* the name is not understood; what functions return then is of no value */
};

/* Returns SWIFT_NONE. */
uint32_t swift_fail(struct swift_parser *p);
/* A new node; `text` is a literal or NULL; behind `nr` as many children (uint32_t, 8 at most). */
uint32_t swift_make(struct swift_parser *p, enum swift_kind kind, const char *text, size_t nr, ...);
uint32_t swift_make_list(struct swift_parser *p, enum swift_kind kind, const uint32_t *kids,
			 size_t nr);
uint32_t swift_make_known(struct swift_parser *p, char letter, bool second);
enum swift_kind swift_kind_of(const struct swift_parser *p, uint32_t id);
/* Pushing SWIFT_NONE fails. */
void swift_push(struct swift_parser *p, uint32_t id);
/* The top of the stack if it is of that kind, else SWIFT_NONE: this alone is no failure. */
uint32_t swift_pop(struct swift_parser *p, enum swift_kind kind);
uint32_t swift_pop_type(struct swift_parser *p);
uint32_t swift_pop_name(struct swift_parser *p);
uint32_t swift_pop_entity(struct swift_parser *p);
uint32_t swift_pop_module(struct swift_parser *p);
uint32_t swift_pop_protocol(struct swift_parser *p);
uint32_t swift_pop_conformance(struct swift_parser *p);
/* These fail if there is none. */
uint32_t swift_pop_context(struct swift_parser *p);
uint32_t swift_pop_function_type(struct swift_parser *p, const char *text);
/* The types behind the first mark, in order, as a SWIFT_LIST; an empty list too. */
uint32_t swift_pop_types(struct swift_parser *p);

void swift_add_substitution(struct swift_parser *p, uint32_t id);
char swift_next(struct swift_parser *p);
bool swift_skip(struct swift_parser *p, char c);
uint32_t swift_index(struct swift_parser *p);
void swift_read_identifier(struct swift_parser *p);

/* Each: false if `c` is not an operator of its own. */
bool swift_read_type(struct swift_parser *p, char c);
bool swift_read_generic(struct swift_parser *p, char c);
bool swift_read_entity(struct swift_parser *p, char c);
bool swift_read_global(struct swift_parser *p, char c);
