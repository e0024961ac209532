// SPDX-License-Identifier: Apache-2.0
import java.io.FileOutputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.Random;
import java.util.function.IntSupplier;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** One thread a scenario: every way in which Java calls Java. */
final class Calls {
	/** Nothing here can be computed ahead of time, or several steps at once. */
	static int burn(int x, int n) {
		for (int i = 0; i < n; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x;
	}

	static int leaf(int x) {
		Truth.tell();
		int n = Truth.spin();
		for (int i = 0; i < n; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x | 1;
	}

	// plain

	static void outer() {
		Truth.sink = middle(Truth.sink) + 1;
	}

	static int middle(int x) {
		int y = x + 3;
		return leaf(y) - 2;
	}

	// recursion

	static int recurse(int depth, int x) {
		if (depth > 1)
			return recurse(depth - 1, x + 1) ^ depth;
		return leaf(x);
	}

	// lambdas, method references, handles, proxies, reflection

	static int twice(IntUnaryOperator f, int x) {
		int r = f.applyAsInt(x);
		return r;
	}

	static void lambda() {
		int captured = Truth.sink;
		Truth.sink = twice(x -> leaf(x + captured), 1);
	}

	static void reference() {
		Truth.sink = twice(Calls::leaf, Truth.sink);
	}

	private static final MethodHandle handle;
	private static final Method method;
	private static final IntSupplier proxy;

	static {
		try {
			handle = MethodHandles.lookup().findStatic(Calls.class, "middle", MethodType.methodType(int.class, int.class));
			method = Calls.class.getDeclaredMethod("middle", int.class);
			proxy = (IntSupplier) Proxy.newProxyInstance(Calls.class.getClassLoader(), new Class<?>[] { IntSupplier.class },
					(self, m, args) -> middle(1));
		} catch (ReflectiveOperationException e) {
			throw new Error(e);
		}
	}

	static void byHandle() throws Throwable {
		Truth.sink = (int) handle.invokeExact(Truth.sink);
	}

	static void byReflection() throws Exception {
		Truth.sink = (Integer) method.invoke(null, Truth.sink);
	}

	static void byProxy() {
		Truth.sink = proxy.getAsInt();
	}

	static void stream() {
		Truth.sink = IntStream.range(0, 3).map(Calls::leaf).sum();
	}

	// an inlined chain: small, and called very often

	static int in1(int x) {
		return in2(x + 1);
	}

	static int in2(int x) {
		int y = x * 3;
		return in3(y);
	}

	static int in3(int x) {
		return in4(x)
				+ 1;
	}

	static int in4(int x) {
		Truth.tell();
		for (int i = 0; i < 40; i++) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
		}
		return x;
	}

	static void inlined() {
		int n = Truth.spin() / 10;
		int x = Truth.sink;
		for (int i = 0; i < n; i++)
			x = in1(x);
		Truth.sink = x;
	}

	// short calls that cannot be inlined: vtable and itable stubs, prologues and epilogues

	abstract static class Shape implements IntUnaryOperator {
		abstract int area(int x);
	}

	static final class Circle extends Shape {
		int area(int x) {
			Truth.tell();
			return x * 3;
		}

		public int applyAsInt(int x) {
			Truth.tell();
			return x + 3;
		}
	}

	static final class Square extends Shape {
		int area(int x) {
			Truth.tell();
			return x * x;
		}

		public int applyAsInt(int x) {
			Truth.tell();
			return x + 4;
		}
	}

	static final class Line extends Shape {
		int area(int x) {
			Truth.tell();
			return x ^ 5;
		}

		public int applyAsInt(int x) {
			Truth.tell();
			return x + 5;
		}
	}

	static final class Dot extends Shape {
		int area(int x) {
			Truth.tell();
			return x - 7;
		}

		public int applyAsInt(int x) {
			Truth.tell();
			return x + 6;
		}
	}

	private static final Shape[] shapes = { new Circle(), new Square(), new Line(), new Dot() };

	static void virtual() {
		int n = Truth.spin() / 4 + 4;
		int x = Truth.sink;
		for (int i = 0; i < n; i++) {
			x += shapes[0].area(x);
			x += shapes[i & 3].area(x);
		}
		Truth.sink = x;
	}

	static void byInterface() {
		IntUnaryOperator[] all = shapes;
		int n = Truth.spin() / 4 + 4;
		int x = Truth.sink;
		for (int i = 0; i < n; i++) {
			x += all[0].applyAsInt(x);
			x += all[i & 3].applyAsInt(x);
		}
		Truth.sink = x;
	}

	/** More arguments than registers, of all sizes. */
	static double many(int a, long b, double c, float d, long e, long f, int g, long h, double i, double j, double k, double l, double m, double n,
			double o, double p, int x) {
		return leaf(x) + a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p;
	}

	static void arguments() {
		Truth.sink = (int) many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, Truth.sink);
	}

	// interpreted methods that call compiled ones and the other way round: adapters. A test excludes those of this name from compilation.

	static int interpretedFirst(int x) {
		int n = Truth.spin() / 100 + 4;
		for (int i = 0; i < n; i++)
			x += compiledBetween(x, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
		return x;
	}

	static int compiledBetween(int a, long b, int c, long d, int e, long f, int g, long h, int i, long j, int k, long l, int m, long n, int o, long p) {
		Truth.tell();
		int x = a ^ a << 13;
		return x + interpretedLast(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
	}

	static int interpretedLast(int a, long b, int c, long d, int e, long f, int g, long h, int i, long j, int k, long l, int m, long n, int o, long p) {
		Truth.tell();
		return a + c + e + g + i + k + m + o + (int) (b + d + f + h + j + l + n + p);
	}

	static void adapters() {
		Truth.sink = interpretedFirst(Truth.sink);
	}

	// exceptions

	static final class Known extends RuntimeException {
		private static final long serialVersionUID = 1;

		Known() {
			super("known", null, false, false);
		}
	}

	static final Known known = new Known();

	static void thrower(int depth) {
		if (depth > 0) {
			thrower(depth - 1);
			return;
		}
		Truth.tell();
		Truth.sink = burn(Truth.sink, 50);
		if (Truth.sink != 0)
			throw known;
	}

	static void thrown() {
		try {
			thrower(8);
		} catch (Known e) {
			Truth.sink++;
		}
	}

	static void traced() {
		try {
			trace(5);
		} catch (IllegalStateException e) {
			Truth.sink += e.getMessage().length();
		}
	}

	static void trace(int depth) {
		if (depth > 0)
			trace(depth - 1);
		Truth.tell();
		throw new IllegalStateException("traced");
	}

	// monitors

	static final Object lock = new Object();

	static synchronized int locked(int x) {
		synchronized (lock) {
			return leaf(x);
		}
	}

	static void monitors() {
		Truth.sink = locked(Truth.sink);
	}

	// one method that never returns

	static int osr(int x) {
		Truth.tell();
		while (true) {
			x ^= x << 13;
			x ^= x >>> 17;
			x ^= x << 5;
			if (!Truth.telling)
				continue;
			if (x % 1000 == 0)
				return x;
		}
	}

	static final class Initialised {
		static int value;

		static {
			Truth.tell();
			Truth.toldAlready();
			int x = Truth.sink;
			while (true) {
				x ^= x << 13;
				x ^= x >>> 17;
				x ^= x << 5;
				if (x == 0)
					break;
			}
			value = x;
		}
	}

	static int initialise() {
		return Initialised.value;
	}

	// names outside ASCII, one of them outside the BMP

	static final class Größe {
		static int 面積(int x) {
			return 𝒳(x);
		}

		static int 𝒳(int x) {
			return leaf(x);
		}
	}

	// the runtime's own code

	private static final byte[] data = new byte[1 << 16];
	private static final byte[] copy = new byte[1 << 16];
	private static final BigInteger big = new BigInteger(4000, new Random(1));
	private static Cipher cipher;

	/** Few bytes at first: interpreted, they take long. */
	private static int much() {
		return Truth.telling ? 1 << 6 : 1 << 13;
	}

	static void arraycopy() {
		Truth.tell();
		for (int i = 0; i < 100; i++)
			System.arraycopy(data, i, copy, 1, data.length - 128);
	}

	static void crc() {
		CRC32 c = new CRC32();
		Truth.tell();
		c.update(data, 0, 1 << 14);
		Truth.sink = (int) c.getValue();
	}

	static void aes() throws Exception {
		if (cipher == null) {
			cipher = Cipher.getInstance("AES/CBC/PKCS5Padding");
			cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"), new IvParameterSpec(new byte[16]));
		}
		Truth.tell();
		Truth.sink = cipher.doFinal(data, 0, much()).length;
	}

	private static MessageDigest digest;

	static void sha() throws Exception {
		if (digest == null)
			digest = MessageDigest.getInstance("SHA-256");
		Truth.tell();
		digest.update(data, 0, much());
		Truth.sink = digest.digest()[0];
	}

	static void multiply() {
		Truth.tell();
		Truth.sink = big.multiply(big).signum();
	}

	static void write() throws Exception {
		try (FileOutputStream file = new FileOutputStream("/dev/null")) {
			Truth.tell();
			for (int i = 0; i < 1000; i++)
				file.write(data, 0, 512); // little to copy: the kernel has its share
		}
	}

	static void allocate() {
		Truth.tell();
		Object[] last = new Object[64];
		for (int i = 0; i < 2000; i++)
			last[i & 63] = new byte[i & 1023];
		Truth.sink += last.length;
	}

	public static void main(String[] args) throws Exception {
		Truth.add("plain", Calls::outer);
		Truth.add("recurse200", () -> Truth.sink = recurse(200, 1));
		Truth.add("recurse1000", () -> Truth.sink = recurse(1000, 1));
		Truth.add("lambda", Calls::lambda);
		Truth.add("reference", Calls::reference);
		Truth.add("handle", Calls::byHandle);
		Truth.add("reflection", Calls::byReflection);
		Truth.add("proxy", Calls::byProxy);
		Truth.add("stream", Calls::stream);
		Truth.add("inlined", Calls::inlined);
		Truth.add("virtual", Calls::virtual);
		Truth.add("interface", Calls::byInterface);
		Truth.add("arguments", Calls::arguments);
		Truth.add("adapters", Calls::adapters);
		Truth.add("thrown", Calls::thrown);
		Truth.add("traced", Calls::traced);
		Truth.add("monitors", Calls::monitors);
		Truth.addEndless("osr", () -> Truth.sink = osr(Truth.sink | 1));
		Truth.addEndless("initialiser", () -> Truth.sink = initialise());
		Truth.add("not-ascii", () -> Truth.sink = Größe.面積(1));
		Truth.add("arraycopy", Calls::arraycopy);
		Truth.add("crc32", Calls::crc);
		Truth.add("aes", Calls::aes);
		Truth.add("sha", Calls::sha);
		Truth.add("multiply", Calls::multiply);
		Truth.add("write", Calls::write);
		Truth.add("allocate", Calls::allocate);
		Truth.main(args);
	}
}
