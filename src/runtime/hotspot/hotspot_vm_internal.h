/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of hotspot_vm share: tables are read (hotspot_tables.c), their entries taken over
 * (hotspot_fields.c), what they point to is read (hotspot_vm.c). */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

/* An entry of gHotSpotVMStructs. */
struct hotspot_member {
	const char *type, *field;
	const char *type_string; /* of the member: "volatile int", "Method*" */
	bool is_static;
	uint64_t offset;  /* in its structure */
	uint64_t address; /* of a static one */
};

/* Reads the tables into vm's fields, sizes, constants, addresses and stubs: as hotspot_vm_read().
 */
int hotspot_tables_read(const struct hotspot_symbols *symbols, struct hotspot_vm *vm);

/* Is anything of that type wanted? */
bool hotspot_wants_type(const char *type);
/* Is that member wanted? Then its type string is worth reading. */
bool hotspot_wants_member(const struct hotspot_member *member);
/* Takes over an entry: 0 or -ENOMEM. */
int hotspot_take_member(struct hotspot_vm *vm, const struct hotspot_member *member);
void hotspot_take_size(struct hotspot_vm *vm, const char *type, uint64_t size);
void hotspot_take_constant(struct hotspot_vm *vm, const char *name, uint64_t value);
