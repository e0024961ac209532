// SPDX-License-Identifier: Apache-2.0
/*
 * A load of 20 Java frames: main, f1 to f18, and leaf, which computes. `Chain FILE`: the number of leaves done stands
 * in FILE, 8 bytes.
 */
import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;

public class Chain {
    static int leaf(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            x = (x * 31 + i) & 0xffff;
        }
        return x;
    }

    static int f1(int n) {
        return f2(n) + 1;
    }

    static int f2(int n) {
        return f3(n) + 1;
    }

    static int f3(int n) {
        return f4(n) + 1;
    }

    static int f4(int n) {
        return f5(n) + 1;
    }

    static int f5(int n) {
        return f6(n) + 1;
    }

    static int f6(int n) {
        return f7(n) + 1;
    }

    static int f7(int n) {
        return f8(n) + 1;
    }

    static int f8(int n) {
        return f9(n) + 1;
    }

    static int f9(int n) {
        return f10(n) + 1;
    }

    static int f10(int n) {
        return f11(n) + 1;
    }

    static int f11(int n) {
        return f12(n) + 1;
    }

    static int f12(int n) {
        return f13(n) + 1;
    }

    static int f13(int n) {
        return f14(n) + 1;
    }

    static int f14(int n) {
        return f15(n) + 1;
    }

    static int f15(int n) {
        return f16(n) + 1;
    }

    static int f16(int n) {
        return f17(n) + 1;
    }

    static int f17(int n) {
        return f18(n) + 1;
    }

    static int f18(int n) {
        return leaf(n) + 1;
    }

    static volatile int sink;

    public static void main(String[] args) throws Exception {
        LongBuffer progress;
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            progress = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8)
                    .order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        }
        for (long done = 1;; done++) {
            sink = f1(3000);
            progress.put(0, done);
        }
    }
}
