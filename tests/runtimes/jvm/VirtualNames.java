// SPDX-License-Identifier: Apache-2.0
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.Deflater;

/**
 * Virtual threads whose methods tell which one they are, and a thread of the operating system: each says {"method": ..., "thread": its name, as
 * Java prints it where it has none}. JDK 21 and later.
 */
final class VirtualNames {
	interface Pause {
		void pause() throws Exception;
	}

	interface Life {
		void live(Pause pause) throws Exception;
	}

	static int spin() {
		int x = 1;
		for (int i = 0; i < 20000; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x;
	}

	static void red(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void green(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void latin(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void wide(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void longest(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void unnamed0(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void unnamed1(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	static void platform(Pause pause) throws Exception {
		for (;; pause.pause())
			Truth.sink = spin();
	}

	/** In its heap or not: other threads move on while it waits. */
	static void unpinned() {
		Thread.yield();
		LockSupport.parkNanos(1000);
	}

	/** Waits on its carrier, up to JDK 23; and works in native code. */
	static void pinned() throws Exception {
		synchronized (new Object()) {
			Deflater deflater = new Deflater();
			deflater.setInput(new byte[20000]);
			deflater.finish();
			Truth.sink = deflater.deflate(new byte[20000]);
			deflater.end();
			Thread.sleep(0, 1000);
		}
	}

	static Thread sleeper;

	static int turns;

	/**
	 * While it wakes another one, it says that it runs as its carrier. A carrier takes first who yielded to it: two that
	 * only yield can keep both carriers from all others.
	 */
	static void wakes() {
		for (int i = 0; i < 100; i++)
			LockSupport.unpark(sleeper);
		if (++turns % 4 == 0)
			LockSupport.parkNanos(1000);
		else
			Thread.yield();
	}

	static void decoy() {
		for (int i = 0; i < 20; i++) {
			Truth.sink = spin();
			unpinned();
		}
	}

	/** Leaves holes everywhere, so that objects are moved together, and threads that come and go take the places. */
	static void litter() {
		Random random = new Random(1);
		Object[] kept = new Object[40000];
		for (int n = 0;; n++) {
			byte[][] some = new byte[4][];
			for (int i = 0; i < some.length; i++)
				some[i] = new byte[random.nextInt(400)];
			kept[random.nextInt(kept.length)] = some;
			if (n % 2000 == 0) {
				Thread.ofVirtual().name("decoy" + n / 2000 % 1000).start(VirtualNames::decoy);
				LockSupport.parkNanos(1000000);
			}
			if (n % 400000 == 0)
				System.gc();
		}
	}

	static Thread start(Thread.Builder builder, String method, Life life, Pause pause) {
		Thread thread = builder.start(() -> {
			try {
				life.live(pause);
			} catch (Exception e) {
				e.printStackTrace();
				Runtime.getRuntime().halt(1);
			}
		});
		String name = thread.getName().isEmpty() ? "virtual-#" + thread.threadId() : thread.getName();
		Truth.say("{\"method\": \"VirtualNames." + method + "\", \"thread\": \"" + name + "\"}");
		return thread;
	}

	public static void main(String[] args) throws Exception {
		if (args[0].equals("moved")) {
			Thread.ofPlatform().name("litter").daemon(true).start(VirtualNames::litter);
			Thread.sleep(500); // theirs shall lie among the litter
		}
		Pause pause = switch (args[0]) {
			case "moved", "unpinned" -> VirtualNames::unpinned;
			case "pinned" -> VirtualNames::pinned;
			default -> VirtualNames::wakes;
		};
		sleeper = Thread.ofVirtual().name("sleeper").start(() -> {
			while (true)
				LockSupport.park();
		});
		start(Thread.ofVirtual().name("red"), "red", VirtualNames::red, pause);
		start(Thread.ofVirtual().name("green"), "green", VirtualNames::green, pause);
		start(Thread.ofVirtual().name("gr\u00fcn"), "latin", VirtualNames::latin, pause);
		start(Thread.ofVirtual().name("\u7dd1\ud83d\udfe2 \u0434"), "wide", VirtualNames::wide, pause);
		start(Thread.ofVirtual().name("n".repeat(100)), "longest", VirtualNames::longest, pause);
		start(Thread.ofVirtual(), "unnamed0", VirtualNames::unnamed0, pause);
		start(Thread.ofVirtual(), "unnamed1", VirtualNames::unnamed1, pause);
		start(Thread.ofPlatform().name("platform").daemon(true), "platform", VirtualNames::platform, () -> Thread.sleep(0, 1000));
		Thread.sleep(500);
		Truth.ready();
	}
}
