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
		Truth.main(new String[0]);
	}
}
