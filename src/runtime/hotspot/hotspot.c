// SPDX-License-Identifier: Apache-2.0
/*
 * HotSpot, the agent's side: recognised by the tables that it exports for debuggers, attached to by
 * reading them (hotspot_vm.h), shown to the step (hotspot_record.h), its frames named by
 * hotspot_names.h. See docs/hotspot.md.
 */
#include "abi/unwind.h"
#include "elf/elf_dynamic.h"
#include "runtime/hotspot/hotspot_abi.h"
#include "runtime/hotspot/hotspot_names.h"
#include "runtime/hotspot/hotspot_record.h"
#include "runtime/hotspot/hotspot_vm.h"
#include "runtime/runtime.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	/* Blocks that are gone through for the names of blobs: about a microsecond each. */
	ATTACH_BLOCKS_MAX = 2048,
	REFRESH_BLOCKS_MAX = 256,
};

struct hotspot_dso {
	struct runtime_dso dso;
	struct hotspot_symbols symbols;
};

struct hotspot_proc {
	struct runtime_proc proc;
	struct hotspot_vm vm;
	struct hotspot_found found;
	struct hotspot_record record; /* as the step has it */
	struct hotspot_names *names;
};

static void hotspot_dso_free(struct runtime_dso *dso)
{
	free((struct hotspot_dso *)dso);
}

static void find_symbols(const struct elf_dynamic *dynamic, struct hotspot_symbols *ret)
{
#define X(name, symbol) (void)elf_dynamic_find(dynamic, symbol, &ret->name);
	HOTSPOT_SYMBOLS(X)
#undef X
}

static int hotspot_probe(const struct elf_file *elf, struct runtime_about *about,
			 struct runtime_dso **ret)
{
	struct hotspot_symbols symbols = { 0 };
	struct elf_dynamic dynamic;
	struct hotspot_dso *dso;
	uint64_t addr;

	if (elf_dynamic_read(elf, &dynamic))
		return -ENOENT;
	if (elf_dynamic_find(&dynamic, "gHotSpotVMStructs", &addr)) {
		/* OpenJ9's libj9vm, whatever its file is called. */
		if (elf_dynamic_find(&dynamic, "J9_CreateJavaVM", &addr))
			return -ENOENT;
		runtime_is_version(about, "OpenJ9");
		return runtime_not_supported(about, "of all JVMs HotSpot alone is");
	}
	runtime_is_version(about, "HotSpot"); /* which is read in a process */
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return runtime_not_supported(about, "its machine is not known");
	find_symbols(&dynamic, &symbols);
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return -ENOMEM;
	dso->symbols = symbols;
	/* In r15 (x28) Java code has its JavaThread, and libjvm something of its own. */
	dso->dso.follow = 1u << (elf->machine == EM_X86_64 ? X86_SLOT_R15 : A64_SLOT_X28);
	*ret = &dso->dso;
	return 0;
}

/* Executable mappings in the whole of the reserved ranges are the step's. */
static int set_code(struct hotspot_proc *hp)
{
	int r = vec_reserve(&hp->proc.code, HOTSPOT_HEAPS_MAX);

	if (r)
		return r;
	hp->proc.code.nr = 0;
	for (uint32_t i = 0; i < hp->vm.nr_heaps; i++)
		hp->proc.code.items[hp->proc.code.nr++] =
			(struct code_range){ .start = hp->vm.heaps[i].start,
					     .end = hp->vm.heaps[i].end };
	return 0;
}

/* Does what the tables say lead to what we know? */
static int check(const struct hotspot_vm *vm)
{
	char name[HOTSPOT_NAME_MAX];
	uint64_t blob, addr, start, end;
	int r = hotspot_find_blob(vm, vm->interpreter_start, &blob);

	r = r ?: hotspot_read(vm, vm->fields.blob_name, blob, &addr);
	r = r ?: hotspot_read_code(vm, blob, &start, &end);
	if (r)
		return r;
	r = (int)hotspot_read_string(vm, addr, name, sizeof(name));
	if (r < 0)
		return r;
	if (strcmp(name, "Interpreter") != 0 || vm->interpreter_start < start ||
	    vm->interpreter_end > end)
		return -EBADMSG;
	r = hotspot_find_blob(vm, vm->call_stub_return, &blob);
	r = r ?: hotspot_read_code(vm, blob, &start, &end);
	if (r)
		return r;
	return vm->call_stub_return >= start && vm->call_stub_return < end ? 0 : -EBADMSG;
}

static void say_version(struct runtime_about *about, const struct hotspot_vm *vm)
{
	if (vm->release > 8)
		runtime_is_version(about, "HotSpot %u.%u.%u+%u", vm->release, vm->minor,
				   vm->security, vm->build);
	else if (vm->release)
		runtime_is_version(about, "HotSpot %uu%u", vm->release, vm->security);
}

static void say_why(struct runtime_about *about, const struct hotspot_vm *vm)
{
	char why[sizeof(about->why)];

	if (!vm->release)
		snprintf(why, sizeof(why), "it does not say its version");
	else if (!hotspot_knows_release(vm->release, 0))
		snprintf(why, sizeof(why), "it is too old");
	else
		snprintf(why, sizeof(why), "its vmStructs do not have what is needed of %s",
			 hotspot_missing(vm) ?: "its code");
	(void)runtime_not_supported(about, why);
}

static void hotspot_detach(struct runtime_proc *rp)
{
	struct hotspot_proc *hp = (struct hotspot_proc *)rp;

	if (!hp)
		return;
	hotspot_names_free(hp->names);
	hotspot_vm_fini(&hp->vm);
	vec_free(&hp->proc.code);
	free(hp);
}

static void detach_p(struct hotspot_proc **hp)
{
	hotspot_detach((struct runtime_proc *)*hp);
}

static int hotspot_attach(const struct runtime_dso *dso, const struct runtime_target *target,
			  void *record, struct runtime_proc **ret)
{
	_cleanup_(detach_p) struct hotspot_proc *hp = calloc(1, sizeof(*hp));
	int r;

	if (!hp)
		return -ENOMEM;
	r = hotspot_vm_read(target, &((const struct hotspot_dso *)dso)->symbols, &hp->vm);
	r = r ?: check(&hp->vm);
	say_version(target->about, &hp->vm);
	if (r == -ENOTSUP && target->about)
		say_why(target->about, &hp->vm);
	if (r)
		return r;
	r = set_code(hp);
	if (r)
		return r;
	hotspot_find(&hp->vm, ATTACH_BLOCKS_MAX, &hp->found);
	r = hotspot_record_fill(&hp->vm, &hp->found, &hp->record);
	if (r)
		return -EBADMSG;
	hp->names = hotspot_names_new(&hp->vm, &hp->record.symbol);
	if (!hp->names)
		return -ENOMEM;
	memcpy(record, &hp->record, sizeof(hp->record));
	log_debug("process %d: JDK %u.%u.%u+%u, %u code heaps", target->pid, hp->vm.release,
		  hp->vm.minor, hp->vm.security, hp->vm.build, hp->vm.nr_heaps);
	*ret = (struct runtime_proc *)TAKE_PTR(hp);
	return 0;
}

static int hotspot_refresh(struct runtime_proc *rp, void *record)
{
	struct hotspot_proc *hp = (struct hotspot_proc *)rp;
	struct hotspot_found before = hp->found;
	int r = hotspot_vm_refresh(&hp->vm);

	if (r < 0)
		return r;
	hotspot_find(&hp->vm, REFRESH_BLOCKS_MAX, &hp->found);
	if (!r && memcmp(&before, &hp->found, sizeof(before)) == 0)
		return 0;
	r = set_code(hp);
	r = r ?: hotspot_record_fill(&hp->vm, &hp->found, &hp->record);
	if (r)
		return r;
	memcpy(record, &hp->record, sizeof(hp->record));
	return 1;
}

static int hotspot_symbolize(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			     const struct runtime_sink *sink)
{
	return hotspot_names_symbolize(((struct hotspot_proc *)rp)->names, words, nr, sink);
}

const struct runtime_ops hotspot_runtime = {
	.name = "hotspot",
	.id = RUNTIME_HOTSPOT,
	.language = "Java",
	.programs = "java",
	.label = "jvm",
	.library = "libjli", /* of every launcher */
	.knows = hotspot_knows_release,
	.product = "HotSpot",
	.record_size = sizeof(struct hotspot_record),
	.probe = hotspot_probe,
	.dso_free = hotspot_dso_free,
	.attach = hotspot_attach,
	.refresh = hotspot_refresh,
	.detach = hotspot_detach,
	.symbolize = hotspot_symbolize,
};
