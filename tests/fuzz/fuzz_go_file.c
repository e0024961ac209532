// SPDX-License-Identifier: Apache-2.0
/*
 * A file of any bytes that Go's linker may have made, also as the memory of a process that maps it:
 * what its table of functions says has an end and lies where it must; what is hidden is told in
 * ranges that are sorted and apart; labels are texts.
 */
#include "fuzz.h"
#include "elf/go_table.h"
#include "runtime/go/go_abi.h"
#include "runtime/go/go_text.h"
#include "runtime/runtime.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

enum {
	FUNCTIONS_MAX = 200, /* that are looked at: all of them may be told by the same bytes */
	STEPS_MAX = 2000,
};

static void check_name(const char *name)
{
	if (name && strnlen(name, GO_NAME_MAX + 1) > GO_NAME_MAX)
		abort();
}

static void read_values(struct go_table *t, const struct go_function *f, enum go_values_kind kind)
{
	struct go_values values;
	struct go_inlined call;
	struct go_step step;

	go_values_begin(t, f, kind, &values);
	for (int n = 0; n < STEPS_MAX && go_values_next(&values, &step); n++) {
		if (step.begin >= step.end || step.end > f->end - f->start)
			abort();
		if (kind == GO_FILE)
			check_name(go_table_file(t, f, step.value));
		if (kind == GO_INLINED && !go_table_inlined(t, f, (uint32_t)step.value, &call))
			check_name(go_table_name(t, call.name));
	}
}

static void read_table(const struct elf_file *elf)
{
	struct go_function f;
	struct go_table t;

	if (go_table_read(elf, &t))
		return;
	for (uint32_t i = 0; i < t.nr_functions && i < FUNCTIONS_MAX; i++) {
		if (go_table_function(&t, i, &f))
			continue;
		if (f.end < f.start)
			abort();
		check_name(go_table_function_name(&t, &f));
		for (int kind = GO_STACK_SIZE; kind <= GO_INLINED; kind++)
			read_values(&t, &f, kind);
	}
	go_table_fini(&t);
}

static int read_process(void *ctx, uint64_t addr, void *to, size_t size)
{
	return elf_file_read_vaddr(ctx, addr, to, size) ? -EFAULT : 0;
}

static void read_runtime(struct elf_file *elf)
{
	const struct runtime_ops *ops = runtimes[RUNTIME_GO];
	struct runtime_target target = { .machine = elf->machine,
					 .memory = { read_process, elf },
					 .options = { .async = true } };
	struct runtime_about about = { 0 };
	struct go_record record = { 0 };
	struct runtime_proc *proc;
	struct runtime_dso *dso;

	if (ops->probe(elf, &about, &dso))
		return;
	for (size_t i = 0; i < dso->hidden.nr; i++)
		if (dso->hidden.items[i].end <= dso->hidden.items[i].start ||
		    (i && dso->hidden.items[i].start < dso->hidden.items[i - 1].end))
			abort();
	if (!ops->attach(dso, &target, &record, &proc)) {
		if (record.labels > GO_LABELS_LIST)
			abort();
		ops->detach(proc);
	}
	ops->dso_free(dso);
}

/* The first bytes as the words of a label. */
static void read_label(const uint8_t *data, size_t size)
{
	uint64_t words[1 + GO_LABEL_WORDS] = { 0 };
	struct runtime_label label;

	memcpy(words, data, size < sizeof(words) ? size : sizeof(words));
	if (!runtimes[RUNTIME_GO]->sample_label(words, 1 + GO_LABEL_WORDS, &label) ||
	    strnlen(label.key, sizeof(label.key)) == sizeof(label.key) ||
	    strnlen(label.text, sizeof(label.text)) == sizeof(label.text))
		abort();
}

FUZZER(data, size)
{
	struct elf_file *elf;

	read_label(data, size);
	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (go_made(elf))
		read_table(elf);
	read_runtime(elf);
	elf_file_free(elf);
	return 0;
}
