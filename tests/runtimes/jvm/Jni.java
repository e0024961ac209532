// SPDX-License-Identifier: Apache-2.0
/** Java calls C calls Java, several times over; and the same with an exception, and in a thread that C made. */
final class Jni {
	/** Calls up(depth - 1) from a C function that calls a C function. */
	static native int down(int depth, int x);

	/** Spins itself, and never calls back. */
	static native int nativeLeaf(int n);

	/** Critical: no transition at its end that C could see; a region of an array is written. */
	static native int fill(int[] to);

	/** A thread of pthread_create() that attaches itself and calls attached(). */
	static native void spawn();

	/** Forks: the child calls inChild(), for ever; the JVM there has this one thread only. */
	static native void fork();

	static int up(int depth, int x) {
		if (depth > 0)
			return down(depth, x) + 1;
		return leaf(x);
	}

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

	static void attached() {
		while (true)
			leaf(1);
	}

	static void inNative() {
		Truth.tell();
		Truth.sink = nativeLeaf(Truth.spin());
	}

	/** In the child nobody would end a safepoint: nothing is allocated or compiled here, and nothing called that was not before. */
	static void inChild() {
		int n = Truth.SPIN;
		while (true) {
			int x = Truth.sink | 1;
			for (int i = 0; i < n; i++) {
				x ^= x << 13;
				x ^= x >>> 17;
				x ^= x << 5;
			}
			Truth.sink = x;
		}
	}

	private static final int[] array = new int[20000];

	static void filled() {
		Truth.tell();
		Truth.sink = fill(array);
	}

	public static void main(String[] args) throws Exception {
		System.load(args[0]);
		Truth.add("up-down", () -> Truth.sink = up(3, 1));
		Truth.add("native-leaf", Jni::inNative);
		Truth.add("native-array", Jni::filled);
		spawn();
		Thread forks = new Thread(() -> {
			try {
				System.in.read();
			} catch (java.io.IOException e) {
				throw new Error(e);
			}
			fork();
		}, "forks");
		forks.setDaemon(true);
		forks.start();
		Truth.main(new String[0]);
	}
}
