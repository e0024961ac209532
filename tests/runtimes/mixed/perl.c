// SPDX-License-Identifier: Apache-2.0
/* Perl's side of the program (python.c): two interpreters, if this Perl can have them. */
#include <EXTERN.h>
#include <perl.h>
#include <XSUB.h>

void perl_begin(char *script, char *which);
void call_perl(int number, const char *sub, const char *text);
void call_python(const char *function, const char *text);

enum {
#ifdef MULTIPLICITY
	PERLS = 2
#else
	PERLS = 1
#endif
};
static PerlInterpreter *perls[PERLS];

/* Native::python(FUNCTION, TEXT): calls a function of the Python script. */
XS(native_python)
{
	dXSARGS;

	if (items == 2)
		call_python(SvPV_nolen(ST(0)), SvPV_nolen(ST(1)));
	XSRETURN_EMPTY;
}

static void xs_init(pTHX)
{
	newXS("Native::python", native_python, __FILE__);
}

/* The script only has subs. */
static PerlInterpreter *begin(char *script, char *which)
{
	static char name[] = "mixed";
	char *argv[] = { name, script, which, NULL };
	PerlInterpreter *my_perl = perl_alloc();

	PERL_SET_CONTEXT(my_perl);
	perl_construct(my_perl);
	PL_exit_flags |= PERL_EXIT_DESTRUCT_END;
	if (perl_parse(my_perl, xs_init, 3, argv, NULL) || perl_run(my_perl))
		exit(2);
	return my_perl;
}

void perl_begin(char *script, char *which)
{
	for (int i = 0; i < PERLS; i++)
		perls[i] = begin(script, which);
}

static void call_it(pTHX_ const char *sub, const char *text)
{
	dSP;

	ENTER;
	SAVETMPS;
	PUSHMARK(SP);
	XPUSHs(sv_2mortal(newSVpv(text, 0)));
	PUTBACK;
	call_pv(sub, G_DISCARD);
	FREETMPS;
	LEAVE;
}

/* Of interpreter `number`, which may be in some call already. */
__attribute__((noinline)) void call_perl(int number, const char *sub, const char *text)
{
	PerlInterpreter *before = PERL_GET_CONTEXT, *my_perl = perls[number % PERLS];

	PERL_SET_CONTEXT(my_perl);
	call_it(aTHX_ sub, text);
	PERL_SET_CONTEXT(before);
}
