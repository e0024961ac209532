// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that do nothing but throw an exception through methods, for JDK 8 and later: most of them are in the stubs that
 * find out who catches it. Prints "ready" when all that is compiled, and works on until it is killed.
 */
public class ThrownStacks {
    static final RuntimeException known = new RuntimeException("known", null, false, false) { };
    static final int THREADS = 8, WARM = 200000;

    static void thrower(int depth) {
        if (depth == 0) {
            throw known;
        }
        thrower(depth - 1);
    }

    static int caught(int rounds) {
        int n = 0;
        for (int i = 0; i < rounds; i++) {
            try {
                thrower(6);
            } catch (RuntimeException e) {
                n++;
            }
        }
        return n;
    }

    static void forever() {
        int n = 0;
        while (n >= 0) {
            n = caught(WARM);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        caught(WARM);
        for (int i = 0; i < THREADS; i++) {
            new Thread(ThrownStacks::forever, "thrown-" + i).start();
        }
        Thread.sleep(200);
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
    }
}
