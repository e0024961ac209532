// SPDX-License-Identifier: Apache-2.0
/*
 * Virtual threads with stacks worth keeping, for JDK 21 and later: `red`, and one without a name, wait while they are
 * pinned to their carriers. Prints "ready" when they are there, and waits to be killed.
 */
import java.util.concurrent.CountDownLatch;

public class VirtualStacks {
    static final CountDownLatch there = new CountDownLatch(2);

    /** Threads that run an initialiser are pinned in every release. */
    static class Pinned {
        static final int value = stay();
    }

    static class AlsoPinned {
        static final int value = stay();
    }

    static int stay() {
        there.countDown();
        try {
            Thread.sleep(1000000);
        } catch (InterruptedException e) {
            return 1;
        }
        return 0;
    }

    public static void main(String[] args) throws InterruptedException {
        Thread.ofVirtual().name("red").start(() -> System.out.println(Pinned.value));
        Thread.ofVirtual().start(() -> System.out.println(AlsoPinned.value));
        there.await();
        System.out.println("ready");
        Thread.sleep(1000000);
    }
}
