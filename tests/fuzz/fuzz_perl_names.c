// SPDX-License-Identifier: Apache-2.0
/*
 * Naming Perl's subs with arbitrary memory as the process: which version, what kind of frame, which
 * op, where the frame's words lead to, then the memory. The frame is what the step would have made
 * of that.
 */
#include "fuzz.h"
#include "name_image.h"
#include "runtime/perl/perl_names.h"

enum { NAME_SIZE = 8192, READS = 40000, THREADED = 1, MARK_NEXT = 2 };

struct input {
	uint8_t version, kind, flags;
	uint8_t place[2], cop[2], op[2], dbstate[2];
};

static int symbolize(void *ctx, const uint64_t *words, size_t nr, const struct runtime_sink *sink)
{
	return perl_names_symbolize(ctx, words, nr, sink);
}

static uint64_t body_word(const struct runtime_target *t, uint64_t sv, uint64_t at)
{
	return name_word(t, name_word(t, sv + PERL_SV_ANY) + at);
}

/* As perl.bpf.c tells a frame's function from others. */
static uint64_t cookie_of(const struct runtime_target *t, uint64_t kind, uint64_t place,
			  uint64_t statement)
{
	enum { GLOB_STASH = 40 };
	uint64_t name = place & ~(uint64_t)PERL_PLACES;

	if (kind != PERL_FRAME_SUB && kind != PERL_FRAME_FORMAT)
		return perl_statement_cookie(statement);
	if (place & PERL_PLACE_TEXT)
		return perl_closure_cookie(name, name_word(t, name), statement);
	if (place & PERL_PLACES)
		return perl_closure_cookie(name, body_word(t, name, GLOB_STASH), statement);
	return perl_sub_cookie(body_word(t, place, PERL_CV_GV), body_word(t, place, PERL_CV_START),
			       statement);
}

FUZZER(data, size)
{
	struct name_image image = { .reads_max = READS, .name_max = NAME_SIZE };
	struct runtime_target target = { .memory = { name_image_read, &image } };
	struct perl_names names = { .target = &target };
	uint64_t words[PERL_FRAME_WORDS], kind, place, cop, statement;
	bool compiling;
	struct input in;
	uint32_t seq;

	if (!name_image_begin(&image, data, size, &in, sizeof(in)))
		return 0;
	names.version = 28 + in.version % 15;
	names.threaded = in.flags & THREADED;
	names.dbstate = name_address(in.dbstate);
	kind = in.kind % (2 * PERL_FRAME_COMPILING);
	compiling = kind & PERL_FRAME_COMPILING;
	place = name_address(in.place);
	cop = name_address(in.cop);
	seq = compiling ? 0 : (uint32_t)name_word(&target, cop + PERL_COP_SEQ);
	statement = compiling ? 0 : name_word(&target, cop + PERL_COP_LINE) << 32 | seq;
	words[0] = FRAME(RUNTIME_PERL, 2, kind << PERL_KIND_SHIFT | place);
	words[1] = cop << PERL_COP_SHIFT |
		   perl_cop_cookie(name_word(&target, cop + PERL_COP_FILE), seq) >>
			   (64 - PERL_COP_SHIFT);
	words[2] = cookie_of(&target, kind & ~(uint64_t)PERL_FRAME_COMPILING, place, statement)
			   << PERL_COOKIE_SHIFT |
		   perl_op_mark(name_address(in.op), in.flags & MARK_NEXT);
	name_twice(&image, symbolize, &names, words, PERL_FRAME_WORDS);
	return 0;
}
