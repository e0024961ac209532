// SPDX-License-Identifier: Apache-2.0
/** What a Python runs in a Java virtual machine that it has loaded (embed.py): in its own thread, for ever. */
public final class Embedded {
	static int leaf(int x) {
		Truth.tell();
		int n = Truth.spin();
		for (int i = 0; i < n; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x;
	}

	static int middle(int x) {
		int y = leaf(x);
		return y + 1;
	}

	static void outer() {
		Truth.sink = middle(Truth.sink | 1);
	}

	/** `comm` is what the thread is called. */
	public static void live(String comm) {
		Thread.currentThread().setName(comm);
		Truth.expect(1);
		Thread t = new Thread(() -> {
			try {
				Truth.allTold();
			} catch (Exception e) {
				e.printStackTrace();
				Runtime.getRuntime().halt(1);
			}
		}, "waits");
		t.setDaemon(true);
		t.start();
		Truth.live(Embedded::outer);
	}
}
