// SPDX-License-Identifier: Apache-2.0
/*
 * A Node.js of any bytes, as an ELF file: code is told in ranges that are sorted and apart, and
 * what the step reads of objects lies in what is read of them.
 */
#include "fuzz.h"
#include "runtime/runtime.h"
#include "runtime/v8/v8_abi.h"

#include <stdlib.h>

static void check_ranges(const struct code_range *items, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (items[i].end <= items[i].start || (i && items[i].start < items[i - 1].end))
			abort();
}

static void check_record(const struct v8_record *r)
{
	if (r->function_shared > V8_OBJECT_SIZE - 8 || r->function_code > V8_OBJECT_SIZE - 8 ||
	    r->shared_script > V8_OBJECT_SIZE - 8 || r->script_id > V8_OBJECT_SIZE - 8 ||
	    r->code_start > V8_OBJECT_SIZE - 8 || r->shared_token > V8_OBJECT_SIZE - 2 ||
	    r->shared_literal > V8_OBJECT_SIZE - 4 || r->code_size > V8_OBJECT_SIZE - 4)
		abort();
	if (r->fp_function >= 0 || r->fp_context >= 0)
		abort();
}

FUZZER(data, size)
{
	const struct runtime_ops *ops = runtimes[RUNTIME_V8];
	struct runtime_target target = { 0 };
	struct runtime_about about = { 0 };
	struct v8_record record = { 0 };
	struct runtime_dso *dso;
	struct runtime_proc *proc;
	struct elf_file *elf;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (!ops->probe(elf, &about, &dso)) {
		if (!dso->interpreter_functions.nr)
			abort();
		check_ranges(dso->interpreter_functions.items, dso->interpreter_functions.nr);
		check_ranges(dso->hidden.items, dso->hidden.nr);
		check_ranges(dso->functions.items, dso->functions.nr);
		if (!ops->attach(dso, &target, &record, &proc)) {
			check_record(&record);
			ops->detach(proc);
		}
		ops->dso_free(dso);
	}
	elf_file_free(elf);
	return 0;
}
