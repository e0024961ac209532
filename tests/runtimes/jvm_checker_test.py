#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of jvm_test.py on right and wrong stacks: it must be able to fail."""
import sys
import types

import jvm_judge
import jvm_test
import runtimes
import tap

CHAIN = [["java.lang.Thread.run", "Thread.java", 840], ["Truth$$Lambda$14/0x0000000800c03000.run", "null", 0],
         ["Calls.outer", "Calls.java", 44], ["Calls.middle", "Calls.java", 49], ["Calls.leaf", "Calls.java", 31]]
NATIVE = "clone3;start_thread;[libjvm.so+0x1234];JavaCalls::call_helper(JavaValue*);call_stub;"
JAVA = "java.lang.Thread.run_[0]:840;Truth$$Lambda.run_[j];Calls.outer:44_[i];"


def wrong(text, comm="plain", **more):
    chains = jvm_judge.Chains([CHAIN], jvm_judge.BEYOND.get(comm), **more)
    stack = types.SimpleNamespace(user=tuple(text.split(";")), count=1, reason=None)
    return chains.judge(stack)


def right():
    for text in ("Calls.middle:49_[i];Calls.leaf:35_[i]", "Calls.middle_[j]:49;Calls.leaf_[1]:33", "Calls.middle_[j]:50",
                 "Calls.middle:49_[i];Calls.leaf:30_[i];Truth.spin:9_[i]",
                 "Calls.middle:49_[i];Calls.leaf:30_[i];SafepointBlob;[libjvm.so+0x7]"):
        found = wrong(NATIVE + JAVA + text)
        tap.check(found is None, "%s: %s" % (text, found))


def wrong_ones():
    for text in ("Calls.middle_[j]:48;Calls.leaf_[1]:33",  # not the line of the call
                 "Calls.leaf_[1]:33",  # a caller is missing
                 "Calls.middle:49;Calls.middle:49;Calls.leaf:33",  # one too many
                 "Calls.middle:49;Calls.other:33",
                 "Calls.middle:49;[libjvm.so+0x99];Calls.leaf:33",  # what is between?
                 "Calls.middle:49;Calls.leaf:33;java.util.HashMap.get:3"):
        tap.check(wrong(NATIVE + JAVA + text), "not found wrong: " + text)
    tap.check(wrong(NATIVE + "[libjvm.so+0x99]"), "no Java frame")
    tap.check(wrong(NATIVE + "Truth$$Lambda.run;Calls.outer:44"), "the first frame is missing")


def before_the_method():
    """Threads that start: JavaCalls has not called it yet."""
    calls = "clone3;start_thread;JavaCalls::call_virtual(JavaValue*);JavaCalls::call_helper(JavaValue*);"
    for text in ("JavaCallWrapper::JavaCallWrapper(JavaThread*);malloc", "LinkResolver::resolve()", "StubRoutines::call_stub"):
        tap.check(wrong(calls + text, starts=True) is None, text)
        tap.check(wrong(calls + text), "the thread was there before: " + text)
    for text in ("StubRoutines::call_stub;[libjvm.so+0x99]", "JVM_GetTime"):
        tap.check(wrong(calls + text, starts=True), "no Java frame: " + text)


def between():
    chains = {"between": {"Calls.outer": "Java_Calls_outer(?:;[^;]+)*"}}
    tap.check(wrong(NATIVE + JAVA + "Java_Calls_outer;x;Calls.middle:49", **chains) is None, "C between")
    tap.check(wrong(NATIVE + JAVA + "x;Calls.middle:49", **chains), "other C between")
    tap.check(wrong(NATIVE + JAVA + "Calls.middle:49", **chains), "no C between")


def called_up():
    """Beyond what was told: a native method of the JDK's, and what that calls."""
    good = "Calls.middle:48;java.io.File.open;Java_java_io_File_open;JavaCalls::call;StubRoutines::call_stub;java.lang.String.getBytes:3"
    tap.check(wrong(NATIVE + JAVA + good, "write") is None, wrong(NATIVE + JAVA + good, "write"))
    tap.check(wrong(NATIVE + JAVA + good, "plain"), "nothing of the JDK is expected there")
    tap.check(wrong(NATIVE + JAVA + good.replace("java.lang.String.getBytes", "Calls.other"), "write"), "not the JDK's own")
    tap.check(wrong(NATIVE + JAVA + good.replace("java.io.File", "Calls.File"), "write"), "nor by its own method")
    tap.check(wrong(NATIVE + JAVA + good.replace("StubRoutines::call_stub;", ""), "write"), "no call stub")


def in_child():
    def judge(text):
        return jvm_test.forked(types.SimpleNamespace(user=tuple(text.split(";")), count=1))
    good = NATIVE + "java.lang.Thread.run;Jni$$Lambda.run;Jni.fork;Java_Jni_fork;jni_child;x;StubRoutines::call_stub;Jni.inChild:7"
    tap.check(judge(good) is None, "right")
    tap.check(judge(good.replace("jni_child;", "")), "C is missing")
    tap.check(judge(good.replace("Jni.fork;", "")), "Java is missing")
    tap.check(judge(good + ";Jni.inChild:7"), "twice")


def below_java():
    def judge(text):
        return jvm_test.Around([{"chain": [["Embedded.live", "", 1], ["Embedded.leaf", "", 2]]}]).judge(
            types.SimpleNamespace(user=tuple(text.split(";")), count=1, reason=None))
    good = "_start;main;python_outer:3;python_inner:4;ffi_call;StubRoutines::call_stub;Embedded.live:1;Embedded.leaf:2"
    tap.check(judge(good) is None, judge(good))
    tap.check(judge(good.replace("python_inner:4;", "")), "Python is missing")
    tap.check(judge(good.replace("python_outer:3;python_inner:4", "python_inner:4;python_outer:3")), "out of order")
    tap.check(judge(good.replace("Embedded.live:1;", "")), "Java is missing")


def names():
    for told, shown in (("Truth$$Lambda$14/0x0000000800c03000.run", "Truth$$Lambda.run"),
                        ("Truth$$Lambda$1/791452441.run", "Truth$$Lambda.run"),
                        ("Truth$$Lambda/0x0000000075046f70.run", "Truth$$Lambda.run"),
                        ("java.lang.invoke.LambdaForm$MH/0x000000007504840.invoke", "java.lang.invoke.LambdaForm$MH.invoke")):
        tap.check(jvm_judge.plain(told) == shown, "%s: %s" % (told, jvm_judge.plain(told)))
    for name in ("foo.cold", "foo.constprop.0", "foo.isra.0.cold", "[libjvm.so+0x1.2]", "a::b.c", "main"):
        tap.check(not jvm_judge.Frame(name).java, name + " is native")
    for name in ("Calls$Größe.面積", "a.B.<init>_[j]:3", "A.<clinit>", "A.lambda$main$0:3_[i]"):
        tap.check(jvm_judge.Frame(name).java, name + " is Java")


def churned():
    def judge(text):
        return jvm_test.ChurnTally().judge(types.SimpleNamespace(user=tuple(text.split(";")), count=1))
    good = "x;Churn$Slot006.call;Churn$Gen00000070.run;Churn$Gen00000070.call00000070;Churn$Gen00000070.leaf00000070"
    tap.check(judge(good) is None, "right")
    tap.check(judge(good.replace("Slot006", "Slot007")), "another slot")
    tap.check(judge(good.replace("leaf00000070", "leaf00000134")), "another leaf")
    tap.check(judge(good.replace("70.leaf", "70.run")), "out of order")


def tallied():
    t = runtimes.Tally("x")
    for reason, n in ((None, 97), ("no_rule", 3)):
        t.take(types.SimpleNamespace(user=("a",), count=n, reason=reason), lambda s: None)
    tap.check(t.problems(), "97 % are not enough")
    tap.check(not t.problems(complete_percent=97), "97 % are")


if __name__ == "__main__":
    sys.exit(tap.run((f.__name__, f) for f in (right, wrong_ones, before_the_method, between, called_up, in_child, below_java, names, churned, tallied)))
