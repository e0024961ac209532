// SPDX-License-Identifier: Apache-2.0
/* Classes of the JVM by name, their methods and fields. */
#include "runtime/hotspot/hotspot_class.h"
#include "runtime/hotspot/hotspot_scopes.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

enum {
	VM_CLASSES_MAX = 256, /* there are 110 to 140 */
	METHODS_MAX = 512,
	FIELDS_SIZE_MAX = 16384, /* bytes of a stream; a field has about six */
	NAME_SIZE = 128,
	/* FieldInfo::FieldFlags: the order of its bits is the same in 21 to 28. */
	FIELD_INITIALIZED = 1 << 0,
	FIELD_INJECTED = 1 << 1,
	FIELD_GENERIC = 1 << 2,
	FIELD_CONTENDED = 1 << 4,
};

static bool is_symbol(const struct hotspot_vm *vm, uint64_t symbol, const char *want)
{
	char name[NAME_SIZE];

	return hotspot_read_symbol(vm, symbol, name, sizeof(name)) >= 0 && strcmp(name, want) == 0;
}

/* vmClasses::_klasses is an array, of which vmStructs has the address of the first one. */
uint64_t hotspot_find_class(const struct hotspot_vm *vm, const char *want)
{
	for (uint32_t i = 0; vm->at_vm_classes && i < VM_CLASSES_MAX; i++) {
		uint64_t klass, name;

		if (runtime_read(vm->target, vm->at_vm_classes + 8 * i, &klass, sizeof(klass)))
			return 0;
		if (klass && !hotspot_read(vm, vm->fields.klass_name, klass, &name) &&
		    is_symbol(vm, name, want))
			return klass;
	}
	return 0;
}

static bool is_method(const struct hotspot_vm *vm, uint64_t method, const char *want)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t const_method, constants, index, name;

	return !hotspot_read(vm, f->method_const_method, method, &const_method) &&
	       !hotspot_read(vm, f->const_method_constants, const_method, &constants) &&
	       !hotspot_read(vm, f->const_method_name_index, const_method, &index) &&
	       !hotspot_read_symbol_at(vm, constants, (uint32_t)index, &name) &&
	       is_symbol(vm, name, want);
}

/* Array<Method*> (oops/array.hpp): an int, its length, and from byte 8 on the pointers. */
uint64_t hotspot_find_method(const struct hotspot_vm *vm, uint64_t klass, const char *want)
{
	uint64_t array, method;
	int32_t length;

	if (hotspot_read(vm, vm->fields.instance_klass_methods, klass, &array) ||
	    runtime_read(vm->target, array, &length, sizeof(length)))
		return 0;
	for (int32_t i = 0; i < length && i < METHODS_MAX; i++) {
		if (runtime_read(vm->target, array + 8 + 8 * (uint64_t)i, &method, sizeof(method)))
			return 0;
		if (is_method(vm, method, want))
			return method;
	}
	return 0;
}

/* ----- fields ----- */

int hotspot_next_field(const void *stream, size_t size, size_t *pos, struct hotspot_java_field *ret)
{
	uint32_t v[5], skipped;
	size_t at = *pos;
	int r = 0;

	/* The numbers of fields come first: of the class's own, and of those that are injected. */
	if (!at) {
		r = hotspot_read_unsigned5(stream, size, true, &at, &skipped);
		r = r ?: hotspot_read_unsigned5(stream, size, true, &at, &skipped);
		if (r)
			return r;
	}
	/* A zero byte ends it, or the array does. */
	if (at >= size || !((const uint8_t *)stream)[at])
		return 0;
	for (int i = 0; i < 5 && !r; i++)
		r = hotspot_read_unsigned5(stream, size, true, &at, &v[i]);
	if (!r && v[4] & FIELD_INITIALIZED)
		r = hotspot_read_unsigned5(stream, size, true, &at, &skipped);
	if (!r && v[4] & FIELD_GENERIC)
		r = hotspot_read_unsigned5(stream, size, true, &at, &skipped);
	if (!r && v[4] & FIELD_CONTENDED)
		r = hotspot_read_unsigned5(stream, size, true, &at, &skipped);
	if (r)
		return r;
	*pos = at;
	*ret = (struct hotspot_java_field){ .name = v[0],
					    .signature = v[1],
					    .offset = v[2],
					    .access = v[3],
					    .injected = (v[4] & FIELD_INJECTED) != 0 };
	return 1;
}

/* Array<u1>: an int, its length, and from byte 4 on the bytes. */
static int read_stream(const struct hotspot_vm *vm, uint64_t klass, uint8_t **ret, size_t *size_ret)
{
	_cleanup_free_ uint8_t *data = NULL;
	uint64_t array;
	int32_t length;
	int r = hotspot_read(vm, vm->fields.instance_klass_fieldinfo_stream, klass, &array);

	r = r ?: runtime_read(vm->target, array, &length, sizeof(length));
	if (r)
		return r;
	if (length <= 0 || length > FIELDS_SIZE_MAX)
		return -EINVAL;
	data = malloc((size_t)length);
	if (!data)
		return -ENOMEM;
	r = runtime_read(vm->target, array + 4, data, (size_t)length);
	if (r)
		return r;
	*ret = TAKE_PTR(data);
	*size_ret = (size_t)length;
	return 0;
}

static int read_name(const struct hotspot_vm *vm, uint64_t constants, uint32_t index,
		     char ret[static NAME_SIZE])
{
	uint64_t symbol;
	int r = hotspot_read_symbol_at(vm, constants, index, &symbol);

	if (r)
		return r;
	r = (int)hotspot_read_symbol(vm, symbol, ret, NAME_SIZE);
	return r < 0 ? r : 0;
}

int hotspot_each_field(const struct hotspot_vm *vm, uint64_t klass,
		       int (*fn)(void *ctx, const char *name, const char *signature,
				 uint32_t offset),
		       void *ctx)
{
	_cleanup_free_ uint8_t *stream = NULL;
	struct hotspot_java_field field;
	char name[NAME_SIZE], signature[NAME_SIZE];
	uint64_t constants;
	size_t size = 0, pos = 0;
	int r;

	r = hotspot_read(vm, vm->fields.instance_klass_constants, klass, &constants);
	r = r ?: read_stream(vm, klass, &stream, &size);
	if (r)
		return r;
	while ((r = hotspot_next_field(stream, size, &pos, &field)) > 0) {
		if (field.injected || field.access & HOTSPOT_FIELD_STATIC)
			continue;
		r = read_name(vm, constants, field.name, name);
		r = r ?: read_name(vm, constants, field.signature, signature);
		r = r ?: fn(ctx, name, signature, field.offset);
		if (r)
			return r;
	}
	return r;
}
