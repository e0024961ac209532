/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: distinct frames, distinct stacks, how often each thread was seen with each, and, if
 * wanted, when. Names, files, frames, stacks, processes and threads are the dictionary: it lives on
 * when the counts are cut (profile_next_cut()), and what was not used for long is collected
 * (profile/collect.h). The full identity counts: two stacks are one only if every frame is (kind,
 * file, address, scope, and the functions and lines of frames that were added with them) and they
 * ended alike.
 *
 * The recorder fills it by address while it runs; names are attached at the end
 * (profile_name_frame, profile_set_lines) and exporters read it. Readers of formats
 * (export/export.h) fill it with frames that have their names already. Not thread-safe. Nothing
 * here is bounded but by 32-bit ids (-EOVERFLOW): who fills a profile watches profile_bytes()
 * against its memory limit, and sets `full`.
 */
#pragma once

#include "abi/sample.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind {
	FRAME_KIND_KERNEL = 0,
	FRAME_KIND_NATIVE = 1,
	FRAME_KIND_TRUNCATED = 2, /* the marker "[truncated: reason]", outermost */
	/* Then the frames of runtimes: FRAME_KIND_OF(RUNTIME_PYTHON) and so on. */
	FRAME_KIND_MAX_ = 32,
};
#define FRAME_KIND_OF(runtime) ((runtime) + 1)

/* What a function is written in, as far as known; numbers are symbol/symbol_table.h's. */
enum function_language {
	FUNCTION_LANGUAGE_UNKNOWN = 0,
	FUNCTION_LANGUAGE_C = 1,
	FUNCTION_LANGUAGE_CPP = 2,
	FUNCTION_LANGUAGE_RUST = 3,
	FUNCTION_LANGUAGE_GO = 4,
	FUNCTION_LANGUAGE_D = 5,
	FUNCTION_LANGUAGE_SWIFT = 6,
	FUNCTION_LANGUAGE_OTHER = 7,
	FUNCTION_LANGUAGE_MAX_ = 8,
};

#define PROFILE_NO_FILE UINT32_MAX

/* The name of a frame that stands for a stack's innermost ones (profile/prune.h). */
#define PROFILE_NOT_KEPT	"[native: not_kept]"
#define PROFILE_KERNEL_NOT_KEPT "[kernel: not_kept]"

enum { PROFILE_FILE_ID_SIZE = 16, PROFILE_TYPES_MAX = 16 };

/* Where a frame's code comes from: an ELF file, the kernel, a module, or anonymous memory. */
struct profile_file {
	uint32_t path; /* strtab; "[kernel]", "[nf_tables]", "[anon]", "[vdso]", or the path as its
			  process saw it */
	uint32_t name; /* strtab; the last component of path */
	uint8_t build_id[20];
	uint8_t build_id_len;		       /* 0: none known */
	uint64_t identity;		       /* of struct file_identity; 0: not known */
	bool has_file_id;		       /* not part of the identity, like all that follows */
	uint8_t file_id[PROFILE_FILE_ID_SIZE]; /* htlhash, see elf/file_id.h */
	uint32_t go_build_id;		       /* strtab; 0: none */
	/*
	 * Its executable code in the file's own address space: [start, end) covers the addresses of
	 * all its frames; `offset` is where `start` is in the file. 0, 0: not known.
	 */
	uint64_t start, end, offset;
};

struct profile_function {
	uint32_t name;	       /* strtab; as people write it */
	uint32_t linkage_name; /* strtab; as the linker has it (mangled); 0: the same */
	uint32_t source;       /* strtab; path of the source file; 0: not known */
	uint32_t start_line;   /* of its declaration; 0: not known */
	uint32_t language;     /* enum function_language */
};

/* A function at work: in which line it runs, or calls the next one. */
struct profile_line {
	uint32_t function; /* index into functions */
	uint32_t line;	   /* 0: not known */
	uint32_t column;   /* 0: not known */
};

/*
 * One address of a stack. Its inline frames are lines[first_line .. first_line + nr_lines): the
 * innermost inlined function first, the real function last; none until it is named, or if nobody
 * knows.
 */
struct profile_frame {
	uint16_t kind;	     /* enum frame_kind */
	uint16_t named_late; /* its inline frames came later: they are no part of the identity */
	uint32_t file;	     /* index into files; PROFILE_NO_FILE: none */
	uint64_t address; /* in the file's own address space; in anonymous memory and the kernel: as
			     is; of a caller: return address - 1 */
	uint32_t
		scope; /* what else tells two frames apart: the process of anonymous code; else 0 */
	uint32_t first_line, nr_lines;
};

/* A stack: frames[first..first+nr) of profile.stack_frames, innermost first. */
struct profile_stack {
	uint32_t first;
	uint32_t nr;
	uint32_t used; /* number of the last cut that has it; when it was added, until then */
	uint8_t stop;  /* enum stop_reason */
};

/* What is 0 or "" is not known. Times are CLOCK_REALTIME. */
struct profile_process {
	int32_t pid; /* in our PID namespace; 0: of no known process (folded text) */
	int32_t parent_pid;
	int32_t vpid;			/* in its own PID namespace; 0: not known */
	int32_t group_pid, session_pid; /* their leaders; 0: not known */
	uint32_t uid;			/* effective; UINT32_MAX: not known */
	uint32_t real_uid, saved_uid;
	uint32_t name;	    /* strtab; its main thread's comm */
	uint32_t path;	    /* strtab; of its executable */
	uint32_t command;   /* strtab; argv[0] */
	uint32_t owner;	    /* strtab; what the user `uid` is called */
	uint32_t container; /* strtab; the container's id, by its cgroup */
	uint32_t pod;	    /* strtab; its Kubernetes pod's UID, by its cgroup */
	uint32_t cgroup;    /* strtab; "0::/path", as in /proc/PID/cgroup */
	/* strtab; of its environment: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES (util/pairs.h,
	 * not checked) */
	uint32_t service, attributes;
	uint32_t variables; /* strtab; of its environment, as attributes: the same form */
	uint64_t key;	    /* tells processes with the same PID apart */
	uint64_t start_ns, end_ns;
	bool has_terminal;
	bool was_replaced; /* by the program that it executed, which is another process here */
	bool is_own;	   /* sonde itself, or a child of its, which recorded this */
};

struct profile_thread {
	uint32_t process; /* index */
	int32_t tid;	  /* 0: not known */
	uint32_t comm;	  /* strtab; a thread that changes it is another one from there on */
	/* Of a virtual thread, which is known by its name alone: strtab; the comm of the thread
	 * `tid` that carries it. 0: it is no virtual one. */
	uint32_t carrier;
	/* CLOCK_REALTIME; 0: not known. Not part of the identity, like what follows. */
	uint64_t start_ns, end_ns;
	uint32_t used; /* as of stacks */
};

/* How often a thread was seen with a stack; distinct (thread, stack). */
struct profile_sample {
	uint32_t thread;
	uint32_t stack;
	uint64_t count; /* in the unit of its type */
};

/* One of these times: `count` of a sample is the sum over its events, if there are any. */
struct profile_event {
	uint64_t time_ns; /* since the cut's start_ns */
	uint32_t sample;  /* index */
	uint32_t cpu;
};

/*
 * What samples of a source count or measure, as OTLP and pprof call it: "samples", "count";
 * "off_cpu", "nanoseconds"; "alloc_space", "bytes".
 */
struct profile_unit {
	uint32_t type, unit; /* strtab; 0: samples, count */
};

/* A key with a text or a number. */
struct profile_label {
	uint32_t key, text; /* strtab; text 0: the number counts */
	int64_t number;
	uint64_t unit; /* strtab; of the number: "bytes"; 0: not known */
};

enum { PROFILE_TRACE_ID_SIZE = 16, PROFILE_SPAN_ID_SIZE = 8, PROFILE_LABELS_MAX = 32 };

/* What a thread worked for when it was seen. */
struct profile_context {
	uint8_t trace_id[PROFILE_TRACE_ID_SIZE]; /* zeroes: none */
	uint8_t span_id[PROFILE_SPAN_ID_SIZE];
	uint32_t first_label, nr_labels;
};

/* The machine; strtab, 0: not known. */
struct profile_host {
	uint32_t name, id; /* host name, machine-id */
	uint32_t arch;	   /* "amd64", "arm64" */
	uint32_t os;	   /* "Linux 6.1.0 ..." */
	/* What its owner says of all processes that say nothing else of themselves: a service's
	 * name, and further attributes (util/pairs.h). */
	uint32_t service, attributes;
};

/* What was counted of one type, from one moment to another. */
struct profile_cut {
	uint32_t number; /* 0, 1, ... */
	VEC(struct profile_sample) samples;
	/* By sample; those behind its end have none (0): see profile_context_of(). */
	VEC(uint32_t) contexts;
	/*
	 * In the order of time within a CPU, nearly so between them. Empty if not kept; who keeps
	 * them keeps all (counts are the sums) or none: profile_drop_events().
	 */
	VEC(struct profile_event) events;
	/* By event; those behind its end count one: see profile_event_value(). */
	VEC(uint64_t) values;
	bool events_dropped; /* there were too many */
	struct map sample_ids;
	struct map context_sample_ids;	/* of samples that have a context */
	uint64_t start_ns, duration_ns; /* wall clock start (CLOCK_REALTIME) */
};

struct profile {
	/* The dictionary. */
	struct strtab strings;
	VEC(struct profile_file) files;
	VEC(struct profile_function) functions;
	VEC(struct profile_line) lines;
	VEC(struct profile_frame) frames;
	VEC(struct profile_stack) stacks;
	VEC(uint32_t) stack_frames;
	VEC(struct profile_process) processes;
	VEC(struct profile_thread) threads;
	bool full; /* nothing new is taken in (-ENOSPC); what is known is found and counted */
	/* Hash of the whole key -> index; the key itself is compared on a hit, see profile.c. */
	struct map file_ids, function_ids, frame_ids, stack_ids, process_ids, thread_ids;
	/*
	 * Samples of type 0, which is always there: formats that can tell one type only show it.
	 * Those of type n, of another source, are others[n - 1] and other_units[n - 1]: a cut's
	 * number, start and duration are those of `cut`.
	 */
	struct profile_cut cut;
	VEC(struct profile_cut) others;
	VEC(struct profile_unit) other_units;
	/* Of this cut: traces come and go. Context n is contexts[n - 1]. */
	VEC(struct profile_context) contexts;
	VEC(struct profile_label) labels;
	struct map context_ids;
	uint32_t frequency_hz; /* of type 0; 0: not known */
	struct profile_unit unit;
	struct profile_host host;
};

int profile_init(struct profile *p);
void profile_fini(struct profile *p);
size_t profile_bytes(const struct profile *p);

/* The string's number, new or known; "" is 0. */
int profile_string(struct profile *p, const char *s, uint32_t *ret);
/*
 * The file of (path, build_id), new or known. -EINVAL: the build id is longer than 20 bytes.
 * Anybody can make a file with both of another one's (in a mount namespace of his own): where files
 * are met, and not read out of a profile, `identity` tells them apart.
 */
int profile_add_met_file(struct profile *p, const char *path, const uint8_t *build_id,
			 size_t build_id_len, uint64_t identity, uint32_t *ret);
int profile_add_file(struct profile *p, const char *path, const uint8_t *build_id,
		     size_t build_id_len, uint32_t *ret);
/* The function, new or known. */
int profile_add_function(struct profile *p, const struct profile_function *function, uint32_t *ret);
/* The frame without inline frames, new or known; what `frame` says of lines is ignored. */
int profile_add_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret);
/* The frame with these inline frames, which are part of its identity, new or known. */
int profile_add_named_frame(struct profile *p, const struct profile_frame *frame,
			    const struct profile_line *lines, size_t nr, uint32_t *ret);
/*
 * `frames` innermost first, without a truncation marker: that is made from `stop`. They may lie in
 * p->stack_frames.
 */
int profile_add_stack(struct profile *p, const uint32_t *frames, size_t nr, enum stop_reason stop,
		      uint32_t *ret);
/*
 * The process of (pid, key), new or known; `key` is the caller's, a start time for example. What
 * else is known the caller writes into p->processes.items[*ret].
 */
int profile_add_process(struct profile *p, int32_t pid, uint64_t key, uint32_t *ret);
int profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *comm,
		       uint32_t *ret);
/* profile_add_thread() of a virtual thread called `name`, while thread `tid` called `carrier`
 * carries it; "" and it is none. */
int profile_add_carried_thread(struct profile *p, uint32_t process, int32_t tid, const char *name,
			       const char *carrier, uint32_t *ret);
/*
 * Counts a stack; a hash look-up and no allocation if (thread, stack) was seen before. `ret` (the
 * sample's number) may be NULL.
 */
int profile_add_sample(struct profile *p, uint32_t thread, uint32_t stack, uint64_t count,
		       uint32_t *ret);
/*
 * A type that a source's samples are of, new or known: its number, the same in all cuts. -E2BIG:
 * there are PROFILE_TYPES_MAX.
 */
int profile_add_type(struct profile *p, const char *type, const char *unit, uint32_t *ret);
/*
 * The context, new or known, until the next cut; one without trace and labels is 0. Of `context`
 * only the ids count. The order of labels does not matter; of one key the first one counts.
 * -EINVAL: more than PROFILE_LABELS_MAX.
 */
int profile_add_context(struct profile *p, const struct profile_context *context,
			const struct profile_label *labels, size_t nr, uint32_t *ret);
/* All that a sample can carry. */
struct profile_measured {
	uint32_t type, thread, stack;
	uint32_t context; /* 0: none */
	uint64_t value;	  /* in the type's unit */
};
/* As profile_add_sample(), which is of type 0 and without context. */
int profile_add_measured(struct profile *p, const struct profile_measured *m, uint32_t *ret);
/* A sample of a thread of which nothing but the name is known. */
int profile_add_comm_sample(struct profile *p, const char *comm, uint32_t stack, uint64_t count);
/* One time that a sample was seen; the count is not touched. */
int profile_add_event(struct profile *p, uint32_t sample, uint64_t time_ns, uint32_t cpu);
/*
 * One time that a sample of any type was seen, and what it measured then. Of type 0 that is 1
 * (-EINVAL), which formats of one type rely on.
 */
int profile_add_measured_event(struct profile *p, uint32_t type, const struct profile_event *event,
			       uint64_t value);
/* Forgets all events of type 0: there is no room for them. The counts stay. */
void profile_drop_events(struct profile *p);
/*
 * The cut began so much earlier than was said: what was taken before its begin reached it, not the
 * cut before. Its events stay when they were.
 */
void profile_begin_earlier(struct profile *p, uint64_t by_ns);
/*
 * Makes samples of that type type 0, and the other way round, for formats that can tell one type
 * only. Times go. -ENOENT: there is no such type.
 */
int profile_show_type(struct profile *p, const char *type);
/* Begins the next cut, with no samples; all that the dictionary knows stays. */
void profile_next_cut(struct profile *p);
/*
 * Forgets samples, events, processes, threads, stacks and frames, and gives their memory back;
 * strings, files and functions stay.
 */
void profile_clear_samples(struct profile *p);

/* Names a frame that was added without inline frames: one, of that name. -EEXIST if it was added
 * with. */
int profile_name_frame(struct profile *p, uint32_t frame, const char *name);
/* Names such a frame with all its inline frames. */
int profile_set_lines(struct profile *p, uint32_t frame, const struct profile_line *lines,
		      size_t nr);

/* How many functions a frame shows: 1, also without a name, and more if something is inlined. */
size_t profile_nr_inline_frames(const struct profile *p, uint32_t frame);
/* Inline frame `inline_frame` (0: the innermost); NULL if nothing is known of it. */
const struct profile_line *profile_frame_line(const struct profile *p, uint32_t frame,
					      size_t inline_frame);
/* Inlined into the next inline frame. */
static inline bool profile_is_inlined(const struct profile *p, uint32_t frame, size_t inline_frame)
{
	return inline_frame + 1 < profile_nr_inline_frames(p, frame);
}
/*
 * An inline frame as text into `buf`, cut to `size`: its name; "[file+0xoffset]" where the name is
 * not known, "[anon]" in anonymous memory, "[python: unknown]" of a runtime. ';' becomes ':',
 * control characters '_', broken UTF-8 '?'.
 */
const char *profile_frame_name(const struct profile *p, uint32_t frame, size_t inline_frame,
			       char *buf, size_t size);
/*
 * The name as folded stacks have it: ":line" behind it if `lines` and it is known, "_[k]" behind a
 * kernel frame, "_[i]" behind an inlined one.
 */
const char *profile_frame_label(const struct profile *p, uint32_t frame, size_t inline_frame,
				bool lines, char *buf, size_t size);
/* A `size` in which the two above cut nothing. */
size_t profile_frame_label_size(const struct profile *p, uint32_t frame, size_t inline_frame);
/* Any text, made fit for output in that way. `len` bytes in, at most `size` - 1 out,
 * NUL-terminated. */
size_t profile_clean_text(const char *s, size_t len, char *buf, size_t size);
/* The runtime whose frames are of this kind, "python"; NULL: of none. */
const char *profile_runtime_name(unsigned kind);
/* And back: the kind of the frames of a runtime of that name; FRAME_KIND_NATIVE: there is none. */
uint16_t profile_runtime_kind(const char *name, size_t len);
/* Of type 0: "samples" and "count" if the profile says nothing else. */
const char *profile_unit_type(const struct profile *p);
const char *profile_unit_unit(const struct profile *p);
static inline uint32_t profile_nr_types(const struct profile *p)
{
	return 1 + (uint32_t)p->others.nr;
}
/* Of any type. */
const char *profile_type_name(const struct profile *p, uint32_t type);
const char *profile_type_unit(const struct profile *p, uint32_t type);
static inline const struct profile_cut *profile_cut_of(const struct profile *p, uint32_t type)
{
	return type ? &p->others.items[type - 1] : &p->cut;
}
/* 0: it has none. */
static inline uint32_t profile_context_of(const struct profile_cut *cut, uint32_t sample)
{
	return sample < cut->contexts.nr ? cut->contexts.items[sample] : 0;
}
static inline uint64_t profile_event_value(const struct profile_cut *cut, size_t event)
{
	return event < cut->values.nr ? cut->values.items[event] : 1;
}

/* "no_mapping" and its sentence; "unknown" for a number without an entry. */
const char *profile_stop_name(enum stop_reason stop);
const char *profile_stop_sentence(enum stop_reason stop);
/* How the stack ended; STOP_NOT_KEPT of one that was complete until it lost its innermost frames.
 */
enum stop_reason profile_stack_stop(const struct profile *p, uint32_t stack);
/* Samples of type 0 in all, and those whose stack is complete. */
uint64_t profile_total(const struct profile *p);
uint64_t profile_complete(const struct profile *p);
/* Those that are of sonde itself, as far as that was told. */
uint64_t profile_own(const struct profile *p);
