/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/hotspot/hotspot_names.h"

#include "runtime/hotspot/hotspot_lines.h"
#include "runtime/hotspot/hotspot_scopes.h"
#include "runtime/hotspot/hotspot_stubs.h"
#include "runtime/hotspot/hotspot_threads.h"
#include "util/cleanup.h"
#include "util/map.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
	STRUCT_MAX = 1024,	    /* bytes of any structure that is copied: nmethods have 350 */
	LINES_MAX = 256 << 10,	    /* of a line table: 64 KiB of bytecodes are below that */
	NMETHOD_DATA_MAX = 1 << 20, /* of an nmethod's tables: large ones have 200 KiB */
	/* nmethods that are kept of a JVM: as many as are hot in a large program, and bytes of all
	 * of them; of all processes, kept.h says. What is dropped is read again. */
	NMETHODS_MAX = 512,
	NMETHODS_SIZE_MAX = 8 << 20,
	NAME_MAX_ = 2 * HOTSPOT_SYMBOL_MAX,
};

/* A Java method, as it is shown. The strings stand behind it. */
struct java_method {
	const char *name;
	const char *source; /* NULL: not known */
	const uint8_t *lines;
	size_t lines_size; /* 0: it has no lines */
	size_t size;	   /* bytes held */
};

/* What there is to know of an nmethod: if all of it is as it was, it is the same one, and the
 * classes of its methods are loaded. */
struct nmethod_head {
	uint64_t gone; /* its memory was given back, or a class that it needs */
	uint64_t name; /* of the blob */
	uint64_t method;
	uint64_t compile_id;
	int64_t comp_level;
	/* [start, end) of the tables. What is outside of the blob is freed with it. */
	uint64_t metadata, metadata_end;
	uint64_t scopes, scopes_end;
	uint64_t pcs, pcs_end;
};

/* A ring of those that are kept, by last use. */
struct link {
	struct link *prev, *next;
};

struct nmethod {
	struct link link; /* comes first */
	struct hotspot_names *names;
	struct runtime_kept kept; /* once it was named: nothing goes while it is being read */
	uint64_t addr;
	struct nmethod_head head;
	struct hotspot_debug_info info;
	uint32_t nr_metadata;
	uint64_t *metadata;	      /* Method *, mostly */
	struct java_method **methods; /* of `metadata`, read when they are wanted; the own one last
				       */
	size_t size;		      /* bytes held */
	uint64_t tables[];	      /* metadata, pcs, scopes */
};

struct hotspot_names {
	const struct hotspot_vm *vm;
	struct hotspot_symbol_layout layout;
	bool no_zero;
	bool dense, dense_read; /* -XX:+DebugNonSafepoints, read when it is first wanted */
	struct hotspot_stubs *stubs;
	struct link lru; /* the one used last comes first */
	size_t nr_nmethods, size;
	struct map by_addr;
	char class_name[HOTSPOT_SYMBOL_MAX], name[NAME_MAX_], source[NAME_MAX_];
};

/* ----- names ----- */

size_t hotspot_class_name(char *name)
{
	static const char lambda[] = "$$Lambda";
	char *plus = strrchr(name, '+');
	char *end = name + strlen(name);

	if (plus && plus > name && plus[1] == '0' && plus[2] == 'x' && plus[3] &&
	    strspn(plus + 3, "0123456789abcdefABCDEF") == strlen(plus + 3))
		end = plus;
	*end = '\0';
	for (char *at = strstr(name, lambda); at; at = strstr(at + 1, lambda)) {
		char *number = at + strlen(lambda);

		if (*number == '$' && number[1] &&
		    strspn(number + 1, "0123456789") == (size_t)(end - number - 1)) {
			end = number;
			*end = '\0';
		}
	}
	for (char *c = name; *c; c++) {
		if (*c == '/')
			*c = '.';
	}
	return (size_t)(end - name);
}

size_t hotspot_blob_name(const char *blob, char *ret, size_t size)
{
	/* Blobs that are no RuntimeStubs although they are called like functions. */
	static const char *const others[] = { "adapters",     "native signature handlers",
					      "flush_icache", "invoke_native_blob",
					      "upcall_stub",  "nep_invoker_blob" };
	const char *prefix = "";
	int len;

	if (!strcmp(blob, "vtable chunks")) {
		blob = "vtable stub";
	} else if ((*blob >= 'a' && *blob <= 'z') || *blob == '_' || !strncmp(blob, "C1 ", 3) ||
		   !strncmp(blob, "C2 ", 3)) {
		prefix = "RuntimeStub::";
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			if (!strncmp(blob, others[i], strlen(others[i])))
				prefix = "";
		}
	}
	len = snprintf(ret, size, "%s%s", prefix, blob);
	return (size_t)len < size ? (size_t)len : size - 1;
}

/* ----- Methods ----- */

/* Whoever asks wants to know whether the process is gone, or what was named. */
static int not_there(int r)
{
	return r == -ESRCH || r == -ENOMEM ? r : -ENOENT;
}

/* The first of the class's name, as the step reads it. -ENOENT: nothing refers to it any more: the
 * class is gone, and what its names were may be something else. */
static int read_class_symbol(const struct runtime_target *target,
			     const struct hotspot_symbol_layout *layout,
			     struct hotspot_identity *id)
{
	uint32_t len;
	int r = runtime_read(target, id->name, id->symbol, 8);

	if (r < 0)
		return r;
	if (~layout->mask && !(id->symbol[0] & ~layout->mask))
		return -ENOENT;
	len = hotspot_symbol_used(layout, id->symbol[0]);
	if (len > sizeof(id->symbol))
		return -EBADMSG;
	if (len > 8)
		r = runtime_read(target, id->name + 8, &id->symbol[1], len - 8);
	len = hotspot_symbol_length(layout, id->symbol[0]);
	if (!r && len > HOTSPOT_CLASS_NAME)
		r = runtime_read(target, id->name + layout->body + len - 8, &id->tail, 8);
	return r;
}

int hotspot_read_identity(const struct hotspot_vm *vm, const struct hotspot_symbol_layout *layout,
			  uint64_t method, struct hotspot_identity *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t const_method, constants, index, method_name, holder, name;
	uint8_t copy[HOTSPOT_CONST_METHOD];
	struct hotspot_identity id;
	int r;

	r = hotspot_read(vm, f->method_const_method, method, &const_method);
	if (!r)
		r = runtime_read(vm->target, const_method, copy, sizeof(copy));
	if (r < 0)
		return r;
	constants = hotspot_get(f->const_method_constants, copy, sizeof(copy));
	index = hotspot_get(f->const_method_name_index, copy, sizeof(copy));
	r = runtime_read(vm->target, constants + vm->sizes.constants + 8 * index, &method_name,
			 sizeof(method_name));
	if (!r)
		r = hotspot_read(vm, f->constants_pool_holder, constants, &holder);
	if (!r)
		r = hotspot_read(vm, f->klass_name, holder, &name);
	if (r < 0)
		return r;
	id = (struct hotspot_identity){
		.const_method = const_method,
		.constants = constants,
		.holder = holder,
		.method = hotspot_method_id(
			(uint16_t)hotspot_get(f->const_method_code_size, copy, sizeof(copy)),
			(uint16_t)index,
			(uint32_t)hotspot_get(f->const_method_size, copy, sizeof(copy))),
		.method_name = method_name,
		.name = name,
	};
	r = read_class_symbol(vm->target, layout, &id);
	if (r < 0)
		return r;
	*ret = id;
	return 0;
}

static int read_symbol_at(const struct hotspot_vm *vm, uint64_t constants, uint64_t index,
			  char *ret, size_t size)
{
	uint64_t symbol;
	ssize_t len;
	int r = hotspot_read_symbol_at(vm, constants, (uint32_t)index, &symbol);

	if (r < 0)
		return r;
	len = hotspot_read_symbol(vm, symbol, ret, size);
	return len < 0 ? (int)len : 0;
}

/* The SourceFile attribute behind the package of n->class_name, in n->source. 1: there is one. */
static int read_source(struct hotspot_names *n, const struct hotspot_identity *id)
{
	const struct hotspot_fields *f = &n->vm->fields;
	const char *slash = strrchr(n->class_name, '/');
	size_t package = slash ? (size_t)(slash - n->class_name) + 1 : 0;
	uint64_t index, constants = id->constants;
	int r;

	if (hotspot_has(f->constants_source_file_name_index)) {
		r = hotspot_read(n->vm, f->constants_source_file_name_index, constants, &index);
	} else {
		r = hotspot_read(n->vm, f->instance_klass_source_file_name_index, id->holder,
				 &index);
		if (!r && index && hotspot_has(f->instance_klass_constants))
			r = hotspot_read(n->vm, f->instance_klass_constants, id->holder,
					 &constants);
	}
	if (r < 0 || !index)
		return r;
	memcpy(n->source, n->class_name, package);
	r = read_symbol_at(n->vm, constants, index, n->source + package,
			   sizeof(n->source) - package);
	return r < 0 ? r : 1;
}

static struct java_method *new_method(const char *name, const char *source, size_t lines_size)
{
	size_t name_size = strlen(name) + 1, source_size = source ? strlen(source) + 1 : 0;
	size_t size = sizeof(struct java_method) + name_size + source_size + lines_size;
	struct java_method *m = malloc(size);
	char *at;

	if (!m)
		return NULL;
	at = (char *)(m + 1);
	m->name = memcpy(at, name, name_size);
	m->source = source ? memcpy(at + name_size, source, source_size) : NULL;
	m->lines = (const uint8_t *)at + name_size + source_size;
	m->lines_size = lines_size;
	m->size = size;
	return m;
}

/* Reads a Method whose identity is `id`. */
static int read_method(struct hotspot_names *n, const struct hotspot_identity *id,
		       struct java_method **ret)
{
	const struct hotspot_vm *vm = n->vm;
	const struct hotspot_fields *f = &vm->fields;
	_cleanup_free_ struct java_method *m = NULL;
	uint64_t total, lines, lines_size = 0;
	uint8_t copy[STRUCT_MAX];
	size_t size = vm->sizes.const_method, len;
	bool has_source;
	int r;

	if (size > sizeof(copy))
		return -EBADMSG;
	r = runtime_read(vm->target, id->const_method, copy, size);
	if (r < 0)
		return r;
	lines = size + hotspot_get(f->const_method_code_size, copy, size);
	total = hotspot_get(f->const_method_size, copy, size) * vm->pointer_size;
	if (hotspot_get(f->const_method_flags, copy, size) & vm->const_method_has_lines &&
	    total > lines)
		lines_size = total - lines < LINES_MAX ? total - lines : LINES_MAX;
	r = (int)hotspot_read_symbol(vm, id->name, n->class_name, sizeof(n->class_name));
	if (r < 0)
		return r;
	r = read_source(n, id);
	if (r < 0)
		return r;
	has_source = r;
	len = hotspot_class_name(n->class_name);
	memcpy(n->name, n->class_name, len);
	n->name[len++] = '.';
	r = read_symbol_at(vm, id->constants, hotspot_get(f->const_method_name_index, copy, size),
			   n->name + len, sizeof(n->name) - len);
	if (r < 0)
		return r;
	m = new_method(n->name, has_source ? n->source : NULL, lines_size);
	if (!m)
		return -ENOMEM;
	if (lines_size) {
		r = runtime_read(vm->target, id->const_method + lines, (void *)m->lines,
				 lines_size);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(m);
	return 0;
}

/* The line of a scope that is at one of two bytecodes is known if it is the same one. */
static struct hotspot_line find_line(const struct hotspot_names *n, const struct java_method *m,
				     const struct hotspot_scope *scope)
{
	struct hotspot_line line = { 0 }, to = { 0 };

	if (!m->lines_size)
		return line;
	hotspot_find_line(m->lines, m->lines_size, n->no_zero, scope->bci, &line);
	if (scope->bci_to != scope->bci) {
		hotspot_find_line(m->lines, m->lines_size, n->no_zero, scope->bci_to, &to);
		if (to.line != line.line)
			line.line = 0;
	}
	return line;
}

/* `suffix` is of options.tiers; "": none. */
static int add_inline_frame(const struct hotspot_names *n, const struct java_method *m,
			    const struct hotspot_scope *scope, const char *suffix,
			    const struct runtime_sink *sink)
{
	struct hotspot_line line = find_line(n, m, scope);
	struct runtime_inline_frame inline_frame = { .name = m->name,
						     .source = m->source,
						     .line = line.line,
						     .start_line = line.start_line };
	_cleanup_free_ char *name = NULL;

	if (*suffix && n->vm->target->options.tiers) {
		if (asprintf(&name, "%s%s", m->name, suffix) < 0)
			return -ENOMEM;
		inline_frame.name = name;
	}
	return sink->add(sink->ctx, &inline_frame);
}

static int name_interpreted(struct hotspot_names *n, uint64_t method, uint64_t word,
			    const struct runtime_sink *sink)
{
	uint32_t bci = HOTSPOT_WORD_WHERE(word);
	struct hotspot_scope scope = { 0, (int32_t)bci, (int32_t)bci };
	_cleanup_free_ struct java_method *m = NULL;
	struct hotspot_identity id, again;
	int r;

	if (bci > HOTSPOT_NO_BCI)
		return -EINVAL;
	if (bci == HOTSPOT_NO_BCI)
		scope.bci = scope.bci_to = -1; /* on the way in */
	r = hotspot_read_identity(n->vm, &n->layout, method, &id);
	if (r < 0)
		return not_there(r);
	if (hotspot_cookie(&id, &n->layout) != HOTSPOT_WORD_CHECK(word))
		return -ENOENT;
	r = read_method(n, &id, &m);
	if (r < 0)
		return not_there(r);
	r = hotspot_read_identity(n->vm, &n->layout, method, &again);
	if (r < 0)
		return not_there(r);
	/* By the cookie: reference counts of Symbols go up and down. */
	if (hotspot_cookie(&again, &n->layout) != HOTSPOT_WORD_CHECK(word))
		return -ENOENT;
	return add_inline_frame(n, m, &scope, "_[0]", sink);
}

/* ----- nmethods ----- */

static void find_tables(const struct hotspot_vm *vm, const uint8_t *copy, size_t size,
			uint64_t addr, struct nmethod_head *h)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t data = addr + hotspot_get(f->blob_data_offset, copy, size);
	uint64_t immutable = hotspot_get(f->nmethod_immutable_data, copy, size);
	uint64_t mutable = hotspot_get(f->blob_mutable_data, copy, size);

	if (vm->layout == HOTSPOT_CONTIGUOUS) {
		h->metadata = addr + hotspot_get(f->nmethod_metadata_offset, copy, size);
		h->scopes = hotspot_has(f->nmethod_scopes_data_begin)
				    ? hotspot_get(f->nmethod_scopes_data_begin, copy, size)
				    : addr + hotspot_get(f->nmethod_scopes_data_offset, copy, size);
		h->metadata_end = h->scopes;
		h->pcs = addr + hotspot_get(f->nmethod_scopes_pcs_offset, copy, size);
		h->scopes_end = h->pcs;
		h->pcs_end = addr + hotspot_get(f->nmethod_dependencies_offset, copy, size);
		return;
	}
	if (vm->layout == HOTSPOT_IMMUTABLE) {
		h->metadata = data + hotspot_get(f->nmethod_metadata_offset, copy, size);
		h->metadata_end = addr + hotspot_get(f->blob_size, copy, size);
	} else {
		h->metadata = mutable + hotspot_get(f->blob_relocation_size, copy, size);
		h->metadata_end = mutable + hotspot_get(f->blob_mutable_data_size, copy, size);
	}
	h->pcs = immutable + hotspot_get(f->nmethod_scopes_pcs_offset, copy, size);
	h->scopes = immutable + hotspot_get(f->nmethod_scopes_data_offset, copy, size);
	h->pcs_end = h->scopes;
	/* What may follow it (JVMCI's speculations, a reference count) is small, and no scope. */
	h->scopes_end = immutable + hotspot_get(f->nmethod_immutable_data_size, copy, size);
}

/* Zombies and unloaded ones (8: nmethod.hpp, 9 to 19: compiledMethod.hpp) outlive the classes that
 * they are made of. Since 20 they are freed with them. */
static bool is_dead(const struct hotspot_vm *vm, int64_t state)
{
	return vm->release <= 19 && state >= (vm->release <= 8 ? 2 : 3);
}

static int read_head(const struct hotspot_vm *vm, uint64_t addr, struct nmethod_head *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	uint8_t copy[STRUCT_MAX];
	size_t block = vm->sizes.heap_block, size = vm->sizes.nmethod;
	struct nmethod_head h;
	int r;

	if (block > sizeof(copy) || size > sizeof(copy) - block || addr < block)
		return -EBADMSG;
	r = runtime_read(vm->target, addr - block, copy, block + size);
	if (r < 0)
		return r;
	memset(&h, 0, sizeof(h));
	h.name = hotspot_get(f->blob_name, copy + block, size);
	h.method = hotspot_get(f->nmethod_method, copy + block, size);
	h.compile_id = (uint32_t)hotspot_get(f->nmethod_compile_id, copy + block, size);
	/* An int, later a byte: below 256 in any case. */
	h.comp_level = (int8_t)hotspot_get(f->nmethod_comp_level, copy + block, size);
	find_tables(vm, copy + block, size, addr, &h);
	h.gone = (hotspot_has(f->block_used) && !hotspot_get(f->block_used, copy, block)) ||
		 !h.method || is_dead(vm, hotspot_get_int(f->nmethod_state, copy + block, size));
	*ret = h;
	return 0;
}

static bool same_head(const struct nmethod_head *a, const struct nmethod_head *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void nmethod_free(struct nmethod *nm)
{
	if (!nm)
		return;
	for (size_t i = 0; nm->methods && i <= nm->nr_metadata; i++)
		free(nm->methods[i]);
	free(nm->methods);
	free(nm);
}

DEFINE_CLEANUP(struct nmethod *, nmethod_free)

static size_t table_size(uint64_t start, uint64_t end)
{
	if (end <= start)
		return 0;
	return end - start < NMETHOD_DATA_MAX ? end - start : NMETHOD_DATA_MAX;
}

/* Whether all code is described, not only where it may stop. */
static bool is_dense(struct hotspot_names *n)
{
	if (!n->dense_read)
		hotspot_read_flag(n->vm, "DebugNonSafepoints", &n->dense);
	n->dense_read = true;
	return n->dense;
}

/* Reads the tables that `head` tells of. */
static int nmethod_read(struct hotspot_names *n, uint64_t addr, const struct nmethod_head *head,
			struct nmethod **ret)
{
	const struct runtime_target *target = n->vm->target;
	size_t metadata_size = table_size(head->metadata, head->metadata_end) & ~7ul;
	size_t pcs_size = table_size(head->pcs, head->pcs_end);
	size_t scopes_size = table_size(head->scopes, head->scopes_end);
	size_t size = metadata_size + pcs_size + scopes_size;
	_cleanup_(nmethod_free_p) struct nmethod *nm = NULL;
	char *at;
	int r;

	if (size > NMETHOD_DATA_MAX)
		return -EBADMSG;
	nm = calloc(1, sizeof(*nm) + size);
	if (!nm)
		return -ENOMEM;
	nm->addr = addr;
	nm->head = *head;
	nm->metadata = nm->tables;
	nm->nr_metadata = (uint32_t)(metadata_size / 8);
	nm->methods = calloc(nm->nr_metadata + 1, sizeof(*nm->methods));
	if (!nm->methods)
		return -ENOMEM;
	nm->size = sizeof(*nm) + size + nm->nr_metadata * sizeof(*nm->methods);
	at = (char *)nm->tables;
	r = metadata_size ? runtime_read(target, head->metadata, at, metadata_size) : 0;
	if (!r && pcs_size)
		r = runtime_read(target, head->pcs, at + metadata_size, pcs_size);
	if (!r && scopes_size)
		r = runtime_read(target, head->scopes, at + metadata_size + pcs_size, scopes_size);
	if (r < 0)
		return r;
	nm->info = (struct hotspot_debug_info){ .pcs = at + metadata_size,
						.pcs_size = pcs_size,
						.scopes = at + metadata_size + pcs_size,
						.scopes_size = scopes_size,
						.no_zero = n->no_zero,
						.dense = is_dense(n) };
	*ret = TAKE_PTR(nm);
	return 0;
}

static void unlink_nmethod(struct nmethod *nm)
{
	nm->link.prev->next = nm->link.next;
	nm->link.next->prev = nm->link.prev;
}

static void drop_nmethod(struct hotspot_names *n, struct nmethod *nm)
{
	runtime_keep_no_more(n->vm->target->keeper, &nm->kept);
	unlink_nmethod(nm);
	n->nr_nmethods--;
	n->size -= nm->size;
	map_del(&n->by_addr, nm->addr);
	nmethod_free(nm);
}

static void drop_kept(struct runtime_kept *kept)
{
	struct nmethod *nm = (struct nmethod *)((char *)kept - offsetof(struct nmethod, kept));

	drop_nmethod(nm->names, nm);
}

static void use_nmethod(struct hotspot_names *n, struct nmethod *nm)
{
	if (nm->link.next)
		unlink_nmethod(nm);
	nm->link = (struct link){ .prev = &n->lru, .next = n->lru.next };
	nm->link.next->prev = &nm->link;
	n->lru.next = &nm->link;
}

static void shrink(struct hotspot_names *n)
{
	while (n->lru.prev != &n->lru &&
	       (n->nr_nmethods > NMETHODS_MAX || n->size > NMETHODS_SIZE_MAX))
		drop_nmethod(n, (struct nmethod *)n->lru.prev);
}

/* It was used, and has grown by the methods that were read now: even alone it may be too large. */
static void keep_nmethod(struct hotspot_names *n, struct nmethod *nm)
{
	runtime_keep_no_more(n->vm->target->keeper, &nm->kept);
	if (nm->size > NMETHODS_SIZE_MAX)
		drop_nmethod(n, nm);
	else
		runtime_keep(n->vm->target->keeper, &nm->kept, nm->size);
	shrink(n);
}

/* The nmethod at `addr`, as `head` has it: kept, or read now. */
static int get_nmethod(struct hotspot_names *n, uint64_t addr, const struct nmethod_head *head,
		       struct nmethod **ret)
{
	uint64_t *kept = map_get(&n->by_addr, addr);
	struct nmethod *nm = kept ? (struct nmethod *)(uintptr_t)*kept : NULL;
	int r;

	if (nm && !same_head(&nm->head, head)) {
		drop_nmethod(n, nm);
		nm = NULL;
	}
	if (!nm) {
		r = nmethod_read(n, addr, head, &nm);
		if (r < 0)
			return r;
		r = map_put(&n->by_addr, addr, (uintptr_t)nm);
		if (r < 0) {
			nmethod_free(nm);
			return r;
		}
		nm->names = n;
		nm->kept.drop = drop_kept;
		n->nr_nmethods++;
		n->size += nm->size;
	}
	use_nmethod(n, nm);
	*ret = nm;
	return 0;
}

/* Method number `number` of its metadata, 0: its own one. */
static int get_method(struct hotspot_names *n, struct nmethod *nm, uint32_t number,
		      const struct java_method **ret)
{
	size_t i = number ? number - 1 : nm->nr_metadata;
	uint64_t addr = number ? 0 : nm->head.method;
	struct hotspot_identity id;
	int r;

	if (number > nm->nr_metadata)
		return -EINVAL;
	if (number)
		addr = nm->metadata[i];
	if (!nm->methods[i]) {
		r = hotspot_read_identity(n->vm, &n->layout, addr, &id);
		if (!r)
			r = read_method(n, &id, &nm->methods[i]);
		if (r < 0)
			return r;
		nm->size += nm->methods[i]->size;
		n->size += nm->methods[i]->size;
	}
	*ret = nm->methods[i];
	return 0;
}

/* The scopes of a frame, and their methods. Their number. */
static int find_inline_frames(struct hotspot_names *n, struct nmethod *nm, uint64_t data,
			      uint32_t where, struct hotspot_scope *scopes,
			      const struct java_method **methods)
{
	int nr = 0;
	int r;

	if (HOTSPOT_FRAME_KIND(data) == HOTSPOT_COMPILED)
		nr = HOTSPOT_FRAME_INTERRUPTED(data) ? hotspot_find_place(&nm->info, where, scopes)
						     : hotspot_find_call(&nm->info, where, scopes);
	/* Tables that make no sense do not make the nmethod another one. */
	if (nr <= 0) {
		scopes[0] = (struct hotspot_scope){ 0, HOTSPOT_NO_SCOPE_BCI, HOTSPOT_NO_SCOPE_BCI };
		nr = 1;
	}
	for (int i = 0; i < nr; i++) {
		r = get_method(n, nm, scopes[i].method, &methods[i]);
		if (r < 0)
			return r;
	}
	return nr;
}

static const char *tier(const struct nmethod_head *h)
{
	if (h->comp_level >= 1 && h->comp_level <= 3)
		return "_[1]";
	return h->comp_level == 4 ? "_[j]" : "";
}

static int name_compiled(struct hotspot_names *n, uint64_t data, uint64_t word,
			 const struct runtime_sink *sink)
{
	uint64_t addr = HOTSPOT_FRAME_ADDRESS(data);
	const struct java_method *methods[HOTSPOT_SCOPES_MAX];
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	struct nmethod_head head, again;
	struct nmethod *nm;
	int nr, r;

	r = read_head(n->vm, addr, &head);
	if (r < 0)
		return not_there(r);
	if (head.gone || head.compile_id != HOTSPOT_WORD_CHECK(word))
		return -ENOENT;
	r = get_nmethod(n, addr, &head, &nm);
	if (r < 0)
		return not_there(r);
	nr = find_inline_frames(n, nm, data, HOTSPOT_WORD_WHERE(word), scopes, methods);
	r = nr < 0 ? nr : read_head(n->vm, addr, &again);
	if (r < 0 || !same_head(&head, &again)) {
		drop_nmethod(n, nm);
		return not_there(r);
	}
	for (int i = 0; r >= 0 && i < nr; i++)
		r = add_inline_frame(n, methods[i], &scopes[i], i == nr - 1 ? tier(&head) : "",
				     sink);
	keep_nmethod(n, nm);
	return r < 0 ? r : 0;
}

/* ----- stubs ----- */

static int read_stub_check(const struct hotspot_vm *vm, uint64_t blob, uint64_t *name_ret,
			   uint32_t *ret)
{
	uint64_t name, size;
	int r = hotspot_read(vm, vm->fields.blob_name, blob, &name);

	if (!r)
		r = hotspot_read(vm, vm->fields.blob_size, blob, &size);
	if (r < 0)
		return r;
	*name_ret = name;
	*ret = hotspot_stub_check(name, (uint32_t)size);
	return 0;
}

/* Blobs that are made of many stubs. */
static bool has_stubs(const char *blob)
{
	return strstr(blob, "Stub") || strstr(blob, "MethodHandle") || strstr(blob, "VM_Version");
}

static int name_stub(struct hotspot_names *n, uint64_t data, uint64_t word,
		     const struct runtime_sink *sink)
{
	uint64_t blob = HOTSPOT_FRAME_ADDRESS(data), name, start, end, pc;
	char blob_name[HOTSPOT_NAME_MAX], full[HOTSPOT_NAME_MAX + 64];
	struct runtime_inline_frame inline_frame = { 0 };
	uint32_t check;
	ssize_t len;
	int r;

	r = read_stub_check(n->vm, blob, &name, &check);
	if (r < 0)
		return not_there(r);
	if (check != HOTSPOT_WORD_CHECK(word))
		return -ENOENT;
	len = hotspot_read_string(n->vm, name, blob_name, sizeof(blob_name));
	if (len < 0)
		return not_there((int)len);
	r = hotspot_read_code(n->vm, blob, &start, &end);
	if (r < 0)
		return not_there(r);
	pc = start + HOTSPOT_WORD_WHERE(word) - !HOTSPOT_FRAME_INTERRUPTED(data);
	if (has_stubs(blob_name))
		inline_frame.name = hotspot_stubs_find(n->stubs, pc);
	if (!inline_frame.name) {
		hotspot_blob_name(blob_name, full, sizeof(full));
		inline_frame.name = full;
	}
	r = read_stub_check(n->vm, blob, &name, &check);
	if (r < 0 || check != HOTSPOT_WORD_CHECK(word))
		return not_there(r);
	return sink->add(sink->ctx, &inline_frame);
}

/* ----- threads ----- */

static int name_thread(uint64_t data, const uint64_t *words, const struct runtime_sink *sink)
{
	char name[HOTSPOT_THREAD_NAME_SIZE];
	int r = hotspot_thread_name(data, words, name);

	return r || !sink->thread ? r : sink->thread(sink->ctx, name);
}

/* ----- all together ----- */

struct hotspot_names *hotspot_names_new(const struct hotspot_vm *vm,
					const struct hotspot_symbol_layout *layout)
{
	struct hotspot_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->vm = vm;
	n->layout = *layout;
	/* JDK-8292758, in 20+15: "put support for UNSIGNED5 format into its own header file". */
	n->no_zero = vm->release > 20 || (vm->release == 20 && (vm->minor || vm->build >= 15));
	n->lru.next = n->lru.prev = &n->lru;
	n->stubs = hotspot_stubs_new(vm);
	if (!n->stubs) {
		free(n);
		return NULL;
	}
	return n;
}

void hotspot_names_free(struct hotspot_names *n)
{
	if (!n)
		return;
	while (n->lru.next != &n->lru)
		drop_nmethod(n, (struct nmethod *)n->lru.next);
	map_fini(&n->by_addr);
	hotspot_stubs_free(n->stubs);
	free(n);
}

int hotspot_names_symbolize(struct hotspot_names *n, const uint64_t *words, size_t nr,
			    const struct runtime_sink *sink)
{
	uint64_t data;

	if (nr < 2 || FRAME_RUNTIME(words[0]) != RUNTIME_HOTSPOT || FRAME_EXTRA(words[0]) != nr - 1)
		return -EINVAL;
	data = FRAME_DATA(words[0]);
	if (HOTSPOT_FRAME_KIND(data) == HOTSPOT_VIRTUAL)
		return nr == 1 + HOTSPOT_VIRTUAL_WORDS ? name_thread(data, words + 1, sink)
						       : -EINVAL;
	if (nr != 2)
		return -EINVAL;
	switch (HOTSPOT_FRAME_KIND(data)) {
	case HOTSPOT_INTERPRETED:
		return name_interpreted(n, HOTSPOT_FRAME_ADDRESS(data), words[1], sink);
	case HOTSPOT_COMPILED:
	case HOTSPOT_NATIVE:
		return name_compiled(n, data, words[1], sink);
	case HOTSPOT_STUB:
		return name_stub(n, data, words[1], sink);
	default:
		return -EINVAL;
	}
}
