// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * Classes with names of their own are loaded, run hot, and dropped, without end, so that their code and metadata come to lie where others' were.
 *
 * A chain knows what must be in it: Slot0NN.call, which is there for ever, is called only for classes Gen0000MMMM with MMMM % 64 == NN, and
 * Gen0000MMMM.leaf0000MMMM is called only by Gen0000MMMM.call0000MMMM. The classes are made of this file's own by putting other digits in
 * their place.
 */
public final class Churn {
	public interface Callable {
		int call(Runnable r);
	}

	public static final class Slot000 implements Callable {
		public int call(Runnable r) {
			r.run();
			return 1;
		}
	}

	public static final class Gen00000000 implements Runnable {
		public void run() {
			int x = 1;
			for (int i = 0; i < Churn.calls; i++)
				x = call00000000(x);
			Truth.sink = x;
		}

		static int call00000000(int x) {
			return leaf00000000(x + 1) + 1;
		}

		static int leaf00000000(int x) {
			for (int i = 0; i < 500; i++) {
				x ^= x << 13;
				x ^= x >>> 17;
				x ^= x << 5;
			}
			return x;
		}
	}

	static final int SLOTS = 64;
	public static int calls = Integer.getInteger("calls", 4000);

	/** Defines one class, and finds the others where everybody does. */
	static final class Loader extends ClassLoader {
		Loader() {
			super(Churn.class.getClassLoader());
		}

		Class<?> define(byte[] bytes) {
			return defineClass(null, bytes, 0, bytes.length);
		}
	}

	static byte[] bytesOf(String name) throws Exception {
		ByteArrayOutputStream out = new ByteArrayOutputStream();
		byte[] buffer = new byte[8192];
		try (InputStream in = Churn.class.getResourceAsStream(name + ".class")) {
			for (int n; (n = in.read(buffer)) >= 0;)
				out.write(buffer, 0, n);
		}
		return out.toByteArray();
	}

	/** The class file with other digits behind each of the words; no length changes. */
	static byte[] renamed(byte[] original, String zeros, String digits, String... words) {
		String text = new String(original, StandardCharsets.ISO_8859_1);
		for (String word : words)
			text = text.replace(word + zeros, word + digits);
		return text.getBytes(StandardCharsets.ISO_8859_1);
	}

	static void churn(Callable[] slots, byte[] original, int first) throws Exception {
		for (int i = first;; i += 2) {
			String digits = String.format("%08d", i);
			Class<?> c = new Loader().define(renamed(original, "00000000", digits, "Gen", "call", "leaf"));
			java.lang.reflect.Constructor<?> make = c.getDeclaredConstructor();
			make.setAccessible(true);
			slots[i % SLOTS].call((Runnable) make.newInstance());
			if (i % 100 < 2)
				System.gc();
		}
	}

	public static void main(String[] args) throws Exception {
		Callable[] slots = new Callable[SLOTS];
		byte[] slot = bytesOf("Churn$Slot000");
		for (int i = 0; i < SLOTS; i++) {
			Class<?> c = new Loader().define(renamed(slot, "000", String.format("%03d", i), "Slot"));
			java.lang.reflect.Constructor<?> make = c.getDeclaredConstructor();
			make.setAccessible(true);
			slots[i] = (Callable) make.newInstance();
		}
		byte[] original = bytesOf("Churn$Gen00000000");
		for (int i = 0; i < 2; i++) {
			int first = i;
			Thread t = new Thread(() -> {
				try {
					churn(slots, original, first);
				} catch (Throwable e) {
					e.printStackTrace();
					Runtime.getRuntime().halt(1);
				}
			}, "churn");
			t.setDaemon(true);
			t.start();
		}
		Truth.ready();
	}
}
