/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes that the JVM itself knows, with their methods and fields: found by name in a process, for
 * what no table of vmStructs says.
 */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

/* The InstanceKlass of a class that is one of vmClasses (17 and later), "java/lang/Thread"; 0:
 * none.
 */
uint64_t hotspot_find_class(const struct hotspot_vm *vm, const char *name);
/* The first Method of that name; 0: none. */
uint64_t hotspot_find_method(const struct hotspot_vm *vm, uint64_t klass, const char *name);

/* A field as a class has it. */
struct hotspot_java_field {
	uint32_t name, signature; /* entries of the class's constants; of an injected one: not */
	uint32_t offset;	  /* in the object, or if static in the mirror */
	uint32_t access;	  /* JVM specification, table 4.5-A */
	bool injected;		  /* by the JVM, not in the class file */
};
enum { HOTSPOT_FIELD_STATIC = 8 };

/*
 * The next field of a FieldInfoStream (oops/fieldInfo.hpp, 21 and later), from *pos on, which is 0
 * at first. 1: *ret is one, and *pos moves on; 0: there are no more; -EINVAL: cut off, or damaged.
 */
int hotspot_next_field(const void *stream, size_t size, size_t *pos,
		       struct hotspot_java_field *ret);

/* A class's own fields that are no statics. Calls fn for each, until that is not 0. -ENOENT: this
 * release does not have them in that form. */
int hotspot_each_field(const struct hotspot_vm *vm, uint64_t klass,
		       int (*fn)(void *ctx, const char *name, const char *signature,
				 uint32_t offset),
		       void *ctx);
