// SPDX-License-Identifier: Apache-2.0
/*
 * A program with a CPython and a Perl in it, which call each other through C: `mixed PROGRAM.py
 * PROGRAM.pl CASE`. Here: the program, and Python. Its module `native` has perl(NUMBER, SUB, TEXT),
 * which calls a sub of Perl; perl.c has the way back.
 */
#include <Python.h>

#include <stdio.h>

void perl_begin(char *script, char *which);
void call_perl(int number, const char *sub, const char *text);
void call_python(const char *function, const char *text);
int run_python(const char *path, const char *which);

static PyObject *main_dict;

/* Of a function of the script. */
__attribute__((noinline)) void call_python(const char *function, const char *text)
{
	PyObject *f = PyDict_GetItemString(main_dict, function);
	PyObject *result = f ? PyObject_CallFunction(f, "s", text) : NULL;

	if (!result)
		PyErr_Print();
	Py_XDECREF(result);
	__asm__ volatile(""); /* not a tail call */
}

static PyObject *native_perl(PyObject *module, PyObject *args)
{
	const char *sub, *text;
	int number;

	(void)module;
	if (!PyArg_ParseTuple(args, "iss", &number, &sub, &text))
		return NULL;
	call_perl(number, sub, text);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = { { "perl", native_perl, METH_VARARGS, NULL },
				 { NULL, NULL, 0, NULL } };
static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT, "native", NULL, -1, methods, NULL, NULL, NULL, NULL
};

static PyObject *native_init(void)
{
	return PyModule_Create(&module);
}

__attribute__((noinline)) int run_python(const char *path, const char *which)
{
	FILE *f = fopen(path, "r");
	wchar_t *argv[] = { Py_DecodeLocale(path, NULL), Py_DecodeLocale(which, NULL) };
	int r;

	if (!f)
		return 2;
	PyImport_AppendInittab("native", native_init);
	Py_Initialize();
	PySys_SetArgvEx(2, argv, 0);
	main_dict = PyModule_GetDict(PyImport_AddModule("__main__"));
	r = PyRun_SimpleFileExFlags(f, path, 1, NULL);
	__asm__ volatile("");
	return r;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	perl_begin(argv[2], argv[3]);
	return run_python(argv[1], argv[3]);
}
