// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

/**
 * What the programs of this folder share: threads that run one scenario each, for ever, named after it, and the truth about their stacks, told
 * by the runtime itself in the leaf of the very chain.
 *
 * To standard output go the lines of JSON that ../runtimes.py describes; a scenario may have several chains. Run with
 * -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames -XX:MaxJavaStackTraceDepth=100000.
 */
public final class Truth {
	/** One turn of a scenario; it should take a fraction of a millisecond, most of it in the leaf. */
	interface Scenario {
		void turn() throws Throwable;
	}

	/** How long a leaf spins. */
	static final int SPIN = Integer.getInteger("spin", 20000);
	/** After so many turns nothing changes its shape any more: reflection inflates after 15, and method handles are customised after 127. */
	static final int TURNS = Integer.getInteger("turns", 160);
	/** Hundredths of a second of CPU that a thread has after all has been told; then it rests until standard input ends. 0: it does not rest. */
	private static final int WARM = Integer.getInteger("warm", 0);
	/** Of the names of all threads: it tells a program apart from others in the same recording. */
	private static final String PREFIX = System.getProperty("prefix", "");
	static volatile boolean telling = true;
	public static volatile int sink;

	private static final PrintStream out;
	private static final Map<String, Scenario> scenarios = new LinkedHashMap<>();
	private static final Set<String> said = new HashSet<>();
	private static final ThreadLocal<Boolean> quiet = ThreadLocal.withInitial(() -> false);
	/** The thread has said something that is new. */
	private static final ThreadLocal<Boolean> news = ThreadLocal.withInitial(() -> false);
	private static CountDownLatch told;
	private static final List<Life> lives = new CopyOnWriteArrayList<>();
	/** Of threads that rest: those that do not yet; those that have not gone on after that; what they wait for. */
	private static CountDownLatch warm, running;
	private static final CountDownLatch rested = new CountDownLatch(1);
	/** Scenarios of a turn that never ends. */
	private static final Set<Scenario> endless = new HashSet<>();

	/** Of one thread. */
	private static final class Life {
		/** It does not tell any more, nor prepares to. */
		volatile boolean silent;
		/** What CPU time it had then, and when to look at it next: that takes as long as a turn. */
		int ticks = -1;
		long look;
		/** It has not rested yet. */
		boolean restless = WARM > 0;

		/** Rests if it is warm. */
		void rest() throws Exception {
			long now = System.nanoTime();
			if (ticks < 0) {
				ticks = ticks();
				look = now + WARM * 10_000_000L;
			} else if (now - look > 0) {
				look = now + 5_000_000;
				if (ticks() - ticks < WARM)
					return;
				restless = false;
				warm.countDown();
				rested.await();
				running.countDown();
			}
		}
	}

	/** CPU time of this thread, in hundredths of a second. */
	private static int ticks() throws Exception {
		byte[] stat = new byte[1024];
		try (FileInputStream in = new FileInputStream("/proc/thread-self/stat")) {
			String[] fields = new String(stat, 0, in.read(stat), "ISO-8859-1").split("\\) ")[1].split(" ");
			return Integer.parseInt(fields[11]) + Integer.parseInt(fields[12]);
		}
	}

	static {
		try {
			out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
		} catch (java.io.UnsupportedEncodingException e) {
			throw new Error(e);
		}
	}

	static void add(String name, Scenario scenario) {
		scenarios.put(name, scenario);
	}

	static void addEndless(String name, Scenario scenario) {
		add(name, scenario);
		endless.add(scenario);
	}

	/** Short at first: the first turns shall be over soon. */
	static int spin() {
		return telling ? 10 : SPIN;
	}

	static void say(String line) {
		synchronized (out) {
			if (!said.add(line))
				return;
			news.set(true);
			out.println(line);
			out.flush();
		}
	}

	/** The caller's stack, as the runtime sees it. */
	static void tell(String comm) {
		StackTraceElement[] trace = new Throwable().getStackTrace();
		StringBuilder s = new StringBuilder("{\"comm\": \"").append(comm).append("\", \"chain\": [");
		for (int i = trace.length - 1; i >= 0; i--) {
			StackTraceElement e = trace[i];
			if (e.getClassName().equals("Truth") && e.getMethodName().startsWith("tell"))
				continue;
			s.append("[\"").append(e.getClassName()).append('.').append(e.getMethodName()).append("\", \"");
			s.append(e.getFileName()).append("\", ").append(Math.max(e.getLineNumber(), 0)).append("], ");
		}
		s.setLength(s.length() - 2);
		say(s.append("]}").toString());
	}

	/** Leaves call this. It costs nothing once all has been told. */
	public static void tell() {
		if (telling)
			tellNow();
	}

	/** Never inlined (an option): nothing of it shall be scheduled among a leaf's own instructions. */
	private static void tellNow() {
		if (!quiet.get())
			tell(Thread.currentThread().getName());
	}

	/** The whole life of a scenario's thread: turns that are told of until there is nothing new, then turns without end. */
	static void live(Scenario scenario) {
		boolean done = false;
		Life life = new Life();
		life.silent = endless.contains(scenario);
		lives.add(life);
		try {
			for (int i = 0;; i++) {
				boolean tells = i % 25 < 2;
				if (telling) {
					quiet.set(!tells);
					news.set(false);
				} else {
					life.silent = true;
					if (life.restless)
						life.rest();
				}
				scenario.turn();
				if (!done && i >= TURNS && tells && !news.get()) {
					done = true;
					told.countDown();
				}
			}
		} catch (Throwable t) {
			t.printStackTrace();
			Runtime.getRuntime().halt(1);
		}
	}

	/** Runs the scenarios named (none: all), each in a thread of its name. */
	static void main(String[] names) throws Exception {
		if (names.length > 0)
			scenarios.keySet().retainAll(Arrays.asList(names));
		List<String> all = new ArrayList<>(scenarios.keySet());
		if (WARM > 0) {
			// What never returns cannot rest: it begins when the others do.
			all.removeIf(name -> endless.contains(scenarios.get(name)));
			warm = new CountDownLatch(all.size());
			running = new CountDownLatch(all.size());
			begin(all);
			told.await();
			silence();
			warm.await();
			telling = true;
			all = new ArrayList<>(scenarios.keySet());
			all.removeIf(name -> !endless.contains(scenarios.get(name)));
		}
		begin(all);
		allTold();
	}

	private static void begin(List<String> names) {
		expect(names.size());
		for (String name : names) {
			Thread t = new Thread(() -> live(scenarios.get(name)), PREFIX + name);
			t.setDaemon(true);
			t.start();
		}
	}

	/** How many threads will live(). */
	static void expect(int nrThreads) {
		told = new CountDownLatch(nrThreads);
	}

	/** Waits until all of them have told everything. */
	static void allTold() throws Exception {
		told.await();
		ready();
	}

	/** For a turn that never ends. */
	static void toldAlready() {
		told.countDown();
	}

	/**
	 * Everything has been told, and every thread has seen that: one that gets no CPU for a while would still be on its way to tell.
	 */
	private static void silence() throws Exception {
		telling = false;
		for (Life life : lives) {
			while (!life.silent)
				Thread.sleep(1);
		}
	}

	/** All has been told: who reads it lets the resting ones go on, and kills all in the end. */
	static void ready() throws Exception {
		silence();
		say("{\"ready\": " + new File("/proc/self").getCanonicalFile().getName() + "}");
		if (WARM > 0) {
			while (System.in.read() >= 0)
				;
			rested.countDown();
			running.await();
			say("{\"running\": true}");
		}
		Thread.sleep(600_000);
		Runtime.getRuntime().halt(0);
	}
}
