#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A Python that has a Java virtual machine in it, as JPype does it.

    embed.py COMM now|later|fork LIBJVM OPTION...

later: the library is loaded when standard input ends. fork: so, and in a child. Then Embedded.java tells what Java knows of the
chain; the Python functions below it are python_outer and python_inner.
"""
import ctypes
import os
import sys


class Option(ctypes.Structure):
    """JavaVMOption"""
    _fields_ = [("text", ctypes.c_char_p), ("extra", ctypes.c_void_p)]


class Arguments(ctypes.Structure):
    """JavaVMInitArgs"""
    _fields_ = [("version", ctypes.c_int), ("nr_options", ctypes.c_int), ("options", ctypes.POINTER(Option)),
                ("ignore", ctypes.c_ubyte)]


# Places in JNINativeInterface_ (the JNI specification, "Interface Function Table").
FIND_CLASS, GET_STATIC_METHOD, CALL_STATIC_VOID_METHOD_A, NEW_STRING = 6, 113, 143, 167
pointer = ctypes.c_void_p


def function(env, place, result, *arguments):
    table = ctypes.cast(env, ctypes.POINTER(ctypes.POINTER(pointer))).contents
    return ctypes.CFUNCTYPE(result, pointer, *arguments)(table[place])


def create(library, options):
    vm, env = pointer(), pointer()
    texts = (Option * len(options))(*(Option(o.encode(), None) for o in options))
    arguments = Arguments(0x10008, len(options), texts, 0)
    if ctypes.CDLL(library).JNI_CreateJavaVM(ctypes.byref(vm), ctypes.byref(env), ctypes.byref(arguments)):
        raise SystemExit("no JVM")
    return env


def python_outer(env, comm):
    cls = function(env, FIND_CLASS, pointer, ctypes.c_char_p)(env, b"Embedded")
    text = function(env, NEW_STRING, pointer, ctypes.c_char_p)(env, comm.encode())
    live = function(env, GET_STATIC_METHOD, pointer, pointer, ctypes.c_char_p, ctypes.c_char_p)(
        env, cls, b"live", b"(Ljava/lang/String;)V")
    call = function(env, CALL_STATIC_VOID_METHOD_A, None, pointer, pointer, ctypes.POINTER(ctypes.c_uint64))
    return python_inner(call, env, cls, live, ctypes.c_uint64(text))


def python_inner(call, env, cls, live, argument):
    call(env, cls, live, ctypes.byref(argument))


def main():
    comm, when, library, *options = sys.argv[1:]
    with open("/proc/self/comm", "w", encoding="ascii") as f:
        f.write(comm)
    if when != "now":
        sys.stdin.read()
    if when == "fork" and os.fork():
        os.wait()
        return
    python_outer(create(library, options), comm)


main()
