// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/** Virtual threads: they compute, are unmounted in between and mounted somewhere else, or are pinned while they wait. JDK 21 and later. */
final class Virtual {
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

	static int deep(int depth, int x) {
		return depth > 0 ? deep(depth - 1, x) + 1 : leaf(x);
	}

	private static int turns;

	/** A carrier takes first who yielded to it: two that only yield can keep both carriers from all others. */
	static void deepAndYield() {
		Truth.sink = deep(60, 1);
		if (++turns % 4 == 0)
			LockSupport.parkNanos(1000);
		else
			Thread.yield();
	}

	static int yieldBelow(int depth) {
		if (depth > 0)
			return yieldBelow(depth - 1) + leaf(1);
		Truth.tell();
		Thread.yield();
		LockSupport.parkNanos(1000);
		return 1;
	}

	static void pinned() throws InterruptedException {
		synchronized (new Object()) {
			Truth.sink = leaf(1);
			Thread.sleep(0, 1000);
		}
	}

	public static void main(String[] args) throws Exception {
		Truth.Scenario scenario = switch (args[0]) {
			case "deep" -> Virtual::deepAndYield;
			case "below" -> () -> Truth.sink = yieldBelow(5);
			default -> Virtual::pinned;
		};
		Truth.expect(5);
		for (int i = 0; i < 5; i++)
			Thread.ofVirtual().name(args[0]).start(() -> Truth.live(scenario));
		Truth.allTold();
	}
}
