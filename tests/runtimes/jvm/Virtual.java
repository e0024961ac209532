// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/** Virtual threads: they compute, are unmounted in between and mounted somewhere else, or are pinned while they wait. JDK 21 and later. */
final class Virtual {
	static int leaf(int x, String scenario) {
		if (Truth.telling)
			Truth.tell(scenario);
		int n = Truth.spin();
		for (int i = 0; i < n; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x;
	}

	static int deep(int depth, int x) {
		return depth > 0 ? deep(depth - 1, x) + 1 : leaf(x, "deep");
	}

	static void deepAndYield() {
		deep(60, 1);
		Thread.yield();
	}

	static int yieldBelow(int depth) {
		if (depth > 0)
			return yieldBelow(depth - 1) + leaf(1, "below");
		Thread.yield();
		LockSupport.parkNanos(1000);
		return 1;
	}

	static void pinned() throws InterruptedException {
		synchronized (new Object()) {
			leaf(1, "pinned");
			Thread.sleep(0, 1000);
		}
	}

	interface Turn {
		void turn() throws Exception;
	}

	static void live(Turn turn) {
		try {
			while (true)
				turn.turn();
		} catch (Exception e) {
			e.printStackTrace();
			Runtime.getRuntime().halt(1);
		}
	}

	public static void main(String[] args) throws Exception {
		Turn turn = switch (args[0]) {
			case "deep" -> Virtual::deepAndYield;
			case "below" -> () -> yieldBelow(5);
			default -> Virtual::pinned;
		};
		for (int i = 0; i < 5; i++)
			Thread.ofVirtual().name(args[0] + "-" + i).start(() -> live(turn));
		Thread.sleep(500);
		Truth.ready();
	}
}
