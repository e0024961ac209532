// SPDX-License-Identifier: Apache-2.0
/*
 * toy_machine PROGRAM FUNCTION...: a stack machine that runs each FUNCTION of PROGRAM in a thread
 * of its name, for the test of docs/adding-a-runtime.md. Like real interpreters it keeps its frames
 * on the heap, calls native functions, which may call back, makes and forgets functions while it
 * runs, and exports where in its structures things are.
 *
 * A line of PROGRAM is "function NAME", or an instruction of the last one: push N, add, dup, drop,
 * jump N (so many instructions on, if the top is not 0), call NAME, native NAME [NAME], return.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef TOY_VERSION
#define TOY_VERSION 1
#endif

enum { FUNCTIONS_MAX = 32, OPS_MAX = 16, STACK_MAX = 16, NAME_MAX_ = 32 };
enum opcode { PUSH, ADD, DUP, DROP, JUMP, CALL, NATIVE, RETURN, NR_OPCODES };
static const char *const opcodes[NR_OPCODES] = { "push", "add",	 "dup",	   "drop",
						 "jump", "call", "native", "return" };

struct op {
	uint32_t code, line;
	int64_t number;
	struct function *function; /* to be called, or handed to the native one */
	void (*native)(struct function *function);
};

struct function {
	uint64_t serial; /* no other function ever has it */
	const char *name, *source;
	uint64_t start_line, nr_ops;
	struct op *ops;
};

struct frame {
	struct frame *volatile back;
	struct function *volatile function;
	volatile uint64_t pc; /* of the op that runs, or calls */
	int64_t *top;
	int64_t stack[STACK_MAX];
};

/* Lies on the native stack, between a loop and who called it. */
struct activation {
	struct activation *volatile previous;
	struct frame *volatile frame; /* the innermost; NULL behind the last */
};

struct thread {
	struct thread *next;
	void *thread_pointer;
	struct activation *volatile activation;
};

__attribute__((visibility("default"))) struct thread *volatile toy_threads;

__attribute__((visibility("default"))) const struct {
	char magic[8];
	uint16_t version;
	uint16_t thread_next, thread_pointer, thread_activation;
	uint16_t activation_previous, activation_frame;
	uint16_t frame_back, frame_function, frame_pc;
	uint16_t serial, name, source, start_line, nr_ops, ops;
	uint16_t op_size, op_line;
	uint16_t pad;
} toy_offsets = {
	"toyvm",
	TOY_VERSION,
	offsetof(struct thread, next),
	offsetof(struct thread, thread_pointer),
	offsetof(struct thread, activation),
	offsetof(struct activation, previous),
	offsetof(struct activation, frame),
	offsetof(struct frame, back),
	offsetof(struct frame, function),
	offsetof(struct frame, pc),
	offsetof(struct function, serial),
	offsetof(struct function, name),
	offsetof(struct function, source),
	offsetof(struct function, start_line),
	offsetof(struct function, nr_ops),
	offsetof(struct function, ops),
	sizeof(struct op),
	offsetof(struct op, line),
	0,
};

static __thread struct thread self;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct function *functions[FUNCTIONS_MAX];
static uint64_t last_serial;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "toy_machine: %s\n", what);
	exit(1);
}

/* --- the machine ------------------------------------------------------------------------------ */

static struct frame *new_frame(struct frame *back, struct function *function)
{
	struct frame *f = calloc(1, sizeof(*f));

	if (!f)
		die("no memory");
	f->back = back;
	f->function = function;
	f->top = f->stack;
	return f;
}

/* The loop: runs the activation's frames until there is none left. */
__attribute__((noinline, visibility("default"))) void toy_run(struct activation *a)
{
	while (a->frame) {
		struct frame *f = a->frame;
		const struct op *op = &f->function->ops[f->pc];
		uint64_t next = f->pc + 1;

		switch (op->code) {
		case PUSH:
			*f->top++ = op->number;
			break;
		case ADD:
			f->top--;
			f->top[-1] += f->top[0];
			break;
		case DUP:
			f->top++;
			f->top[-1] = f->top[-2];
			break;
		case DROP:
			f->top--;
			break;
		case JUMP:
			if (*--f->top)
				next = f->pc + (uint64_t)op->number;
			break;
		case CALL:
			a->frame = new_frame(f, op->function);
			continue;
		case NATIVE:
			op->native(op->function);
			break;
		case RETURN:
			a->frame = f->back;
			free(f);
			f = a->frame;
			if (!f)
				return;
			next = f->pc + 1; /* behind the call */
			break;
		}
		f->pc = next;
	}
}

/* From native code into the machine. */
__attribute__((noinline, visibility("default"))) void toy_call(struct function *function)
{
	struct activation a = { self.activation, new_frame(NULL, function) };

	self.activation = &a;
	toy_run(&a);
	self.activation = a.previous;
}

/* --- native functions ------------------------------------------------------------------------- */

void native_apply(struct function *function);
void native_burn(struct function *function);
void native_burn_odd(struct function *function);
void native_wait(struct function *function);
void native_again(struct function *function);
void native_next(struct function *function);
void toy_load(const char *path);
void toy_enter(const char *name);

static volatile uint64_t sink; /* what is computed has to be */

#define EXPORTED __attribute__((noinline, visibility("default")))

/* Another machine's toy_enter(), or NULL. */
__attribute__((visibility("default"))) void (*toy_next)(const char *name);

void native_apply(struct function *function)
{
	toy_call(function);
	sink++;
}

void native_burn(struct function *function)
{
	(void)function;
	for (int i = 0; i < 1000000; i++)
		sink++;
}

void native_burn_odd(struct function *function)
{
	(void)function;
	for (int i = 0; i < 1000000; i++)
		sink += 2;
}

void native_wait(struct function *function)
{
	(void)function;
	if (write(STDOUT_FILENO, "ready\n", 6) == 6)
		pause();
	sink++;
}

/* The function is forgotten, and another one made in its place: see "changes" of program.toy. */
void native_again(struct function *function)
{
	bool odd = strcmp(function->name, "odd");

	function->serial = 0;
	function->name = odd ? "odd" : "even";
	function->ops[0].native = odd ? native_burn_odd : native_burn;
	function->serial = ++last_serial;
}

/* The next machine's function of that name; in the last one it works itself. */
void native_next(struct function *function)
{
	if (toy_next)
		toy_next(function->name);
	for (int i = 0; !toy_next && i < 1000000; i++)
		sink++;
	sink++;
}

/* --- programs --------------------------------------------------------------------------------- */

static struct function *find_function(const char *name, const char *source)
{
	for (int i = 0; i < FUNCTIONS_MAX; i++) {
		struct function *f = functions[i];

		if (f && !strcmp(f->name, name))
			return f;
		if (f)
			continue;
		f = functions[i] = calloc(1, sizeof(*f));
		if (!f || !(f->ops = calloc(OPS_MAX, sizeof(*f->ops))) || !(f->name = strdup(name)))
			die("no memory");
		f->serial = ++last_serial;
		f->source = source;
		return f;
	}
	die("too many functions");
}

static void add_op(struct function *f, uint32_t line, const char *word, const char *a,
		   const char *b)
{
	char name[64];
	struct op *op;

	if (!f || f->nr_ops == OPS_MAX)
		die("an instruction too many");
	op = &f->ops[f->nr_ops++];
	op->line = line;
	while (op->code < NR_OPCODES && strcmp(opcodes[op->code], word))
		op->code++;
	op->number = atol(a);
	if (op->code == CALL || (op->code == NATIVE && *b))
		op->function = find_function(op->code == CALL ? a : b, f->source);
	snprintf(name, sizeof(name), "native_%s", a);
	if (op->code == NATIVE)
		op->native = (void (*)(struct function *))dlsym(RTLD_DEFAULT, name);
	if (op->code == NR_OPCODES || (op->code == NATIVE && !op->native))
		die(word);
}

static void load(const char *path)
{
	struct function *f = NULL;
	FILE *in = fopen(path, "re");
	char text[256];

	if (!in)
		die(path);
	for (uint32_t line = 1; fgets(text, sizeof(text), in); line++) {
		char word[NAME_MAX_] = "", a[NAME_MAX_] = "", b[NAME_MAX_] = "";

		text[strcspn(text, "#")] = '\0';
		if (sscanf(text, "%31s %31s %31s", word, a, b) < 1)
			continue;
		if (strcmp(word, "function")) {
			add_op(f, line, word, a, b);
			continue;
		}
		f = find_function(a, path);
		f->start_line = line;
	}
	fclose(in);
}

static void add_thread(void)
{
	if (self.thread_pointer)
		return;
	pthread_mutex_lock(&lock);
	self.thread_pointer = __builtin_thread_pointer();
	self.next = toy_threads;
	toy_threads = &self;
	pthread_mutex_unlock(&lock);
}

#ifdef TOY_LIBRARY
/* One of several machines in a program: toy_chain.c. */
EXPORTED void toy_load(const char *path)
{
	load(path);
}

EXPORTED void toy_enter(const char *name)
{
	add_thread();
	toy_call(find_function(name, ""));
	sink++;
}
#else
static void *run_thread(void *name)
{
	pthread_setname_np(pthread_self(), name);
	add_thread();
	toy_call(find_function(name, ""));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[8];

	if (argc < 3 || argc > 10)
		die("toy_machine PROGRAM FUNCTION...");
	load(argv[1]);
	for (int i = 2; i < argc; i++)
		if (pthread_create(&threads[i - 2], NULL, run_thread, argv[i]))
			die("no thread");
	for (int i = 2; i < argc; i++)
		pthread_join(threads[i - 2], NULL);
	return 0;
}
#endif
