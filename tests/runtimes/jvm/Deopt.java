// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Compiled code is made not entrant while threads are in it, all the time: a class is loaded that overrides what callers have been compiled to
 * call directly, and null pointers, class casts and array bounds come where there were none. Each round has classes of its own, of equal names.
 */
public final class Deopt {
	static class Base {
		int step(int x) {
			return Deopt.leaf(x) + 1;
		}
	}

	static class Other extends Base {
		@Override
		int step(int x) {
			return Deopt.leaf(x) + 2;
		}
	}

	/** What a round runs: by this class's own Base, with hot calls around. */
	static final class Round implements Runnable {
		static Base base = new Base();
		static volatile boolean overridden;

		public void run() {
			for (int i = 0, after = 0; after < 20; i++) {
				Truth.sink = outer(40, i);
				after += overridden ? 1 : 0;
			}
		}

		/** Deep: all of its frames are deoptimized, one after the other. */
		static int outer(int depth, int x) {
			if (depth > 1)
				return outer(depth - 1, x) ^ depth;
			return middle(x) ^ 1;
		}

		static int middle(int x) {
			return base.step(x) + cast(x);
		}

		static int cast(int x) {
			Truth.tell();
			Object o = overridden && (x & 1) == 0 ? "text" : null;
			return o == null ? 1 : o.hashCode();
		}

		/** From another thread, while this one runs. */
		static void override() {
			Base other = new Other();
			overridden = true;
			base = other;
		}
	}

	public static int leaf(int x) {
		Truth.tell();
		int n = Truth.spin() / 50 + 4;
		for (int i = 0; i < n; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x;
	}

	static final class Loader extends ClassLoader {
		Loader() {
			super(Deopt.class.getClassLoader());
		}

		@Override
		protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
			if (!name.equals("Deopt$Base") && !name.equals("Deopt$Other") && !name.equals("Deopt$Round"))
				return super.loadClass(name, resolve);
			Class<?> c = findLoadedClass(name);
			if (c != null)
				return c;
			try {
				byte[] bytes = Churn.bytesOf(name);
				return defineClass(name, bytes, 0, bytes.length);
			} catch (Exception e) {
				throw new ClassNotFoundException(name, e);
			}
		}
	}

	static void round() throws Exception {
		Class<?> c = new Loader().loadClass("Deopt$Round");
		java.lang.reflect.Constructor<?> make = c.getDeclaredConstructor();
		java.lang.reflect.Method override = c.getDeclaredMethod("override");
		make.setAccessible(true);
		override.setAccessible(true);
		Runnable r = (Runnable) make.newInstance();
		AtomicInteger after = new AtomicInteger(Truth.telling ? 1 : 2);
		Thread t = new Thread(() -> {
			try {
				Thread.sleep(after.get());
				override.invoke(null);
			} catch (Exception e) {
				throw new Error(e);
			}
		}, "override");
		t.setDaemon(true);
		t.start();
		r.run();
		t.join();
	}

	public static void main(String[] args) throws Exception {
		Truth.add("deopt", Deopt::round);
		Truth.add("deopt2", Deopt::round);
		Truth.main(args);
	}
}
