// SPDX-License-Identifier: Apache-2.0
/*
 * Threads with stacks worth keeping, for JDK 8 and later. Prints "ready" when they are there, and waits to be killed.
 * Waiting: the main thread; `walk-lambda`, below a lambda, an interface's and a recursive method that are compiled by
 * then. Working: `walk-compiled`, in compiled and inlined methods; `walk-strings`, in what the library and its stubs
 * do; and a virtual thread. Their stacks are whatever they are when the process is stopped.
 */
import java.util.function.IntUnaryOperator;

public class Stacks {
    interface Shape {
        int area(int n, IntUnaryOperator last);
    }

    static class Square implements Shape {
        public int area(int n, IntUnaryOperator last) {
            return n == 0 ? last.applyAsInt(n) : 1 + area(n - 1, last);
        }
    }

    static class Circle implements Shape {
        public int area(int n, IntUnaryOperator last) {
            return n == 0 ? last.applyAsInt(n) : 3 + new Square().area(n - 1, last);
        }
    }

    static final Object lock = new Object();
    static volatile long sink;
    static volatile boolean isWarm;

    static int pause(int n) {
        synchronized (lock) {
            try {
                lock.wait();
            } catch (InterruptedException e) {
                return 1;
            }
        }
        return n;
    }

    static void lambda() {
        Shape[] shapes = { new Square(), new Circle() };
        for (int i = 0; i < 200000; i++) {
            sink += shapes[i & 1].area(10, n -> n + 1);
        }
        isWarm = true;
        sink += shapes[1].area(10, n -> pause(n));
    }

    static int multiply(int a, int b) {
        return (int) ((long) a * b % 1000003);
    }

    static int chain(int n, int seed) {
        int value = seed;
        for (int i = 0; i < n; i++) {
            value = multiply(value, i) + 1;
        }
        return value;
    }

    static void compiled() {
        while (true) {
            sink += chain(1000, (int) sink);
        }
    }

    static void strings() {
        while (true) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < 500; i++) {
                text.append(i).append(",");
            }
            sink += text.toString().split(",").length;
            sink += text.toString().hashCode();
        }
    }

    static void start(String name, Runnable what) {
        Thread thread = new Thread(what, name);
        thread.setDaemon(true);
        thread.start();
    }

    /* Of JDK 21 and later: its callers have been in the heap. */
    static void virtual() {
        try {
            Runnable run = () -> {
                Thread.yield();
                compiled();
            };
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, run);
        } catch (ReflectiveOperationException e) {
            return;
        }
    }

    public static void main(String[] args) throws Exception {
        virtual();
        start("walk-lambda", Stacks::lambda);
        start("walk-compiled", Stacks::compiled);
        start("walk-strings", Stacks::strings);
        while (!isWarm) {
            Thread.sleep(50);
        }
        Thread.sleep(1000);
        System.out.println("ready");
        pause(0);
    }
}
