// SPDX-License-Identifier: Apache-2.0
// Says that it is there, waits until standard input ends, then works (unknown_test.py).
import java.util.ArrayList;

final class Spin {
  static Object kept;

  static int leaf(int x) {
    ArrayList<byte[]> garbage = new ArrayList<>();
    for (int i = 0; i < 10000; i++) {
      garbage.add(new byte[64]);
      x = (x * 3 + i) % 1000003;
    }
    kept = garbage;
    return x;
  }

  static int middle(int n) {
    return leaf(n) + 1;
  }

  public static void main(String[] args) throws Exception {
    System.out.println("{\"ready\": " + ProcessHandle.current().pid() + "}");
    System.out.flush();
    while (System.in.read() >= 0) {}
    for (int n = 0; ; ) {
      n = middle(n);
    }
  }
}
