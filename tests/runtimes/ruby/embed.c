// SPDX-License-Identifier: Apache-2.0
/*
 * A C program with a Ruby in it: embed main|thread SCRIPT ARGUMENTS. Its first thread runs the
 * script, or another one; the script has a function in C, through_c(METHOD), that calls back. What
 * it needs of Ruby is declared here: most machines have libruby without its headers.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long VALUE, ID;

void ruby_sysinit(int *argc, char ***argv);
void ruby_init_stack(volatile VALUE *address);
void ruby_init(void);
int ruby_cleanup(int status);
void *ruby_options(int argc, char **argv);
void ruby_set_argv(int argc, char **argv);
VALUE rb_eval_string_protect(const char *text, int *ret);
void rb_define_global_function(const char *name, VALUE (*function)(VALUE, VALUE), int nr);
VALUE rb_funcallv(VALUE receiver, ID method, int nr, const VALUE *arguments);
ID rb_sym2id(VALUE symbol);

struct arguments {
	int nr;
	char **items;
};

__attribute__((noinline)) VALUE call_back(VALUE self, VALUE method)
{
	VALUE r = rb_funcallv(self, rb_sym2id(method), 0, NULL);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return r;
}

static VALUE through_c(VALUE self, VALUE method)
{
	VALUE r = call_back(self, method);

	__asm__ volatile("" ::: "memory");
	return r;
}

__attribute__((noinline)) int run_ruby(int argc, char **argv)
{
	char *options[] = { argv[0], "-e", "", NULL };
	volatile VALUE here;
	char text[4096];
	int failed = 0;

	ruby_sysinit(&argc, &argv);
	ruby_init_stack(&here);
	ruby_init();
	ruby_options(3, options);
	rb_define_global_function("through_c", through_c, 1);
	ruby_set_argv(argc - 2, argv + 2);
	snprintf(text, sizeof(text), "load '%s'", argv[1]);
	rb_eval_string_protect(text, &failed);
	return ruby_cleanup(failed);
}

static void *in_thread(void *ctx)
{
	struct arguments *a = ctx;

	return (void *)(ptrdiff_t)run_ruby(a->nr, a->items);
}

int main(int argc, char **argv)
{
	struct arguments a = { argc - 1, argv + 1 };
	void *status;
	pthread_t t;

	if (argc < 4)
		return 2;
	if (strcmp(argv[1], "thread"))
		return run_ruby(a.nr, a.items);
	if (pthread_create(&t, NULL, in_thread, &a) || pthread_join(t, &status))
		return 2;
	return (int)(ptrdiff_t)status;
}
