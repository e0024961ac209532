// SPDX-License-Identifier: Apache-2.0
#include "unwinder/anon_code.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "elf/code_flow.h"
#include "unwind/code_follow.h"
#include "unwinder/jit_code.h"
#include "util/cleanup.h"

enum {
	AROUND = 16 << 10, /* bytes before and behind the frame's pc that are looked at */
	AT_PC = 8,	   /* bytes that were seen when the frame was interrupted */
	CALL_MAX = 8,
	FRAME_MAX = 64 << 10, /* bytes: no function that was made at run time has more */
};

/* What was learned of a place in these very bytes, of one process, which fools only itself. */
struct anon_rule {
	uint32_t generation, is_caller;
	uint64_t pc, bytes;
	int32_t result; /* what follows is no key */
	struct unwind_rule rule;
};

enum { ANON_RULES = 1024 };

struct anon_code {
	const struct mapping_snapshot *snapshot;
	const struct walk_memory *memory;
	const struct walk *state;
	const struct unwind_mapping *mapping;
	uint16_t machine;
};

static int read_process(const struct anon_code *a, uint64_t addr, void *to, uint32_t size)
{
	return a->memory->read(a->memory->ctx, addr, to, size);
}

/* Reads what is around pc into *ret, whose bytes are the caller's to free. */
static int read_around(const struct anon_code *a, struct code_bytes *ret)
{
	const struct unwind_mapping *m = a->mapping;
	uint64_t pc = a->state->pc;
	uint64_t start = pc - m->start > AROUND ? pc - AROUND : m->start;
	uint64_t end = m->end - pc > AROUND ? pc + AROUND : m->end;
	_cleanup_free_ uint8_t *bytes = malloc(end - start);
	uint8_t seen[AT_PC];

	if (!bytes)
		return -ENOMEM;
	if (read_process(a, start, bytes, (uint32_t)(end - start)))
		return -ENOENT;
	/* A sample brings these along: else it is other code by now. */
	if (a->state->interrupted && (end - pc < AT_PC || read_process(a, pc, seen, AT_PC) ||
				      memcmp(seen, bytes + (pc - start), AT_PC) != 0))
		return -ENOENT;
	*ret = (struct code_bytes){ a->machine, start, TAKE_PTR(bytes), end - start };
	return 0;
}

/* Whether an instruction that calls ends at `addr`. */
static bool is_returned_to(const struct anon_code *a, uint64_t addr)
{
	uint8_t code[CALL_MAX];
	struct code_insn insn;
	struct x86_insn x86;

	if (read_process(a, addr - CALL_MAX, code, CALL_MAX))
		return false;
	for (size_t len = 2; len <= CALL_MAX; len++)
		if (code_insn_x86(code + CALL_MAX - len, len, addr - len, &x86, &insn) &&
		    insn.len == len && code_calls(&insn))
			return true;
	return false;
}

/* Whether the rule leads to a caller: where it returns to. */
static bool leads_on(const struct publisher *p, const struct anon_code *a,
		     const struct unwind_rule *rule, uint64_t *ret_ra)
{
	const struct walk *w = a->state;
	uint32_t reg = rule->cfa_reg % UNWIND_REGS_MAX;
	uint64_t cfa = w->regs[reg] + (uint64_t)(int64_t)rule->cfa_off;

	return w->valid & 1u << reg && cfa - w->regs[X86_RSP] - 1 < FRAME_MAX && !(cfa & 7) &&
	       !read_process(a, cfa + 8 * (uint64_t)(int64_t)rule->ra_off, ret_ra,
			     sizeof(*ret_ra)) &&
	       publisher_mapping(p, a->snapshot, *ret_ra - 1) && is_returned_to(a, *ret_ra);
}

/* code_follow_bytes(), remembered. */
static int follow(struct publisher *p, const struct anon_code *a, const struct code_bytes *code,
		  struct unwind_rule *ret)
{
	bool is_caller = !a->state->interrupted;
	struct anon_rule key = { .generation = a->snapshot->generation,
				 .is_caller = is_caller,
				 .pc = a->state->pc,
				 .bytes = XXH3_64bits(code->bytes, code->size) };
	struct anon_rule *cached;

	if (!p->anon_rules)
		p->anon_rules = calloc(ANON_RULES, sizeof(*p->anon_rules));
	if (!p->anon_rules)
		return -ENOMEM;
	cached = &p->anon_rules[(key.pc ^ key.pc >> 10) % ANON_RULES];
	if (memcmp(cached, &key, offsetof(struct anon_rule, result)) != 0) {
		key.result = code_follow_bytes(code, key.pc, is_caller, &key.rule);
		if (key.result == -ENOMEM)
			return -ENOMEM;
		*cached = key;
	}
	*ret = cached->rule;
	return cached->result;
}

/* From now on the kernel's walker knows the function. */
static int learn(struct publisher *p, const struct anon_code *a, const struct code_bytes *code,
		 const struct unwind_rule *rule, uint64_t ra)
{
	uint64_t mm = a->state->process.mm;
	struct anon_function function;

	if (!p->sampler || !mm || rule->cfa_reg != X86_RSP || rule->ra_off != -1 ||
	    !anon_function_find(code, a->state->pc, rule->cfa_off, &function))
		return 0;
	function.ra = ra;
	return anon_functions_learn(&p->anon_functions, p->sampler, mm, &function);
}

static int followed(struct publisher *p, const struct anon_code *a, const struct code_bytes *code,
		    struct unwind_rule *ret)
{
	uint64_t ra;
	int r = follow(p, a, code, ret);

	if (r)
		return r;
	return leads_on(p, a, ret, &ra) ? learn(p, a, code, ret, ra) : -ENOENT;
}

/* Of code that is all alike the kernel's walker knows what it needs. */
static int learn_registered(struct publisher *p, const struct anon_code *a,
			    const struct jit_code *code, uint64_t ra)
{
	const struct unwind_rule *rule = &code->rule;
	struct anon_function function = { .start = code->start,
					  .ra = ra,
					  .size = (uint32_t)(code->end - code->start),
					  .frame = (uint32_t)rule->cfa_off };
	uint64_t mm = a->state->process.mm;

	if (!p->sampler || !mm || !code->all || rule->cfa_reg != X86_RSP || rule->ra_off != -1 ||
	    code->end - code->start > UINT32_MAX ||
	    read_process(a, code->start, function.head, sizeof(function.head)))
		return 0;
	for (int i = 0; i < UNWIND_SLOTS; i++) {
		if (rule->slot_off[i] == SLOT_LOST)
			return 0;
		function.slot_off[i] = rule->slot_off[i];
	}
	return anon_functions_learn_page(&p->anon_functions, p->sampler, mm, &function,
					 a->state->pc);
}

/* What the process has told GDB, if it leads on: its authors may not mind each instruction. */
static int registered(struct publisher *p, const struct anon_code *a, struct unwind_rule *ret)
{
	const struct jit_place place = {
		a->snapshot, a->state->process.mm, a->machine, { a->memory->read, a->memory->ctx }
	};
	struct jit_code code;
	uint64_t ra;
	int r = jit_code_find(p, &place, a->state->pc, &code);

	if (r)
		return r;
	if (!leads_on(p, a, &code.rule, &ra))
		return -ENOENT;
	*ret = code.rule;
	return learn_registered(p, a, &code, ra);
}

static int find_rule(struct publisher *p, const struct anon_code *a, struct unwind_rule *ret)
{
	struct code_bytes code = { 0 };
	int r = read_around(a, &code);

	if (r)
		return r;
	r = registered(p, a, ret);
	if (r && r != -ENOMEM)
		r = followed(p, a, &code, ret);
	free((void *)code.bytes);
	return r;
}

int anon_code_rule(struct publisher *p, const struct mapping_snapshot *b, uint16_t machine,
		   const struct walk_memory *memory, const struct walk *state,
		   struct walk_known_rule *ret)
{
	struct anon_code a = { b, memory, state, NULL, machine };
	int r;

	if (b)
		a.mapping = publisher_mapping(p, b, state->pc);
	if (!a.mapping || a.mapping->file != MAPPING_ANON)
		return -ENOTSUP;
	if (!publisher_may_follow(p, b))
		return -EAGAIN;
	/* On aarch64 code without frame pointers keeps its return address anywhere. */
	r = machine == EM_X86_64 ? find_rule(p, &a, &ret->rule) : -ENOENT;
	if (!r)
		ret->pc = state->pc;
	publisher_followed_anon(p, r);
	return r;
}

void anon_code_fini(struct publisher *p)
{
	free(p->anon_rules);
	anon_functions_fini(&p->anon_functions);
	jit_code_free(p->jit_codes);
}
