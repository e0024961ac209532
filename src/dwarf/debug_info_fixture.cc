// SPDX-License-Identifier: Apache-2.0
/*
 * What debug_info_test.c reads, built by several compilers in each form of DWARF. A marker is a
 * symbol at which the test knows who called whom, and from which line: the line that has "@name"
 * in a comment.
 */
#define MARK(name) asm volatile(".globl " #name "\n" #name ":\n\tnop" ::: "memory")
#define INLINE	   inline __attribute__((always_inline))
#define NOINLINE   __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

extern "C" {
extern volatile int sink;
volatile int sink;
void start(int n);
[[noreturn, gnu::cold]] void give_up(void);
}

namespace demo
{

namespace
{

INLINE int innermost(int n)
{
	MARK(mark_innermost);
	return n + sink;
}

NOINLINE int hidden(int n)
{
	MARK(mark_hidden);
	return n * sink;
}

} // namespace

struct shape {
	int size;

	INLINE int area(int n)
	{
		int sum = 0;

		for (int i = 0; i < n; i++) {
			int part = innermost(i); // @innermost

			sum += part * size;
		}
		return sum;
	}
	NOINLINE explicit shape(int n);
};

shape::shape(int n) : size(n + sink)
{
	MARK(mark_constructor);
}

template <typename T> struct box {
	T value;

	NOINLINE T put(T v)
	{
		MARK(mark_put);
		value = v + sink;
		return value;
	}
};

INLINE void complain(int n)
{
	MARK(mark_complain);
	sink = n;
}

} // namespace demo

void give_up(void)
{
	for (;;)
		sink = 1;
}

extern "C" NOINLINE int plain(int n)
{
	demo::shape s(n);

	return s.area(n); // @area
}

extern "C" NOINLINE int mostly_hot(int n)
{
	if (__builtin_expect(n == 42, 0)) {
		demo::complain(n); // @complain
		give_up();
	}
	return n + sink;
}

static NOINLINE int with_lambda(int n)
{
	auto twice = [](int v) NOINLINE {
		MARK(mark_lambda);
		return v * 2 + sink;
	};

	return twice(n) + sink;
}

static NOINLINE int with_local_class(int n)
{
	struct local {
		NOINLINE static int work(int v)
		{
			MARK(mark_local);
			return v + sink;
		}
	};

	return local::work(n) + sink;
}

/* Discarded by the linker where it may. */
extern "C" NOINLINE int never_used(int n)
{
	return demo::shape(n).size + 3;
}

void start(int n)
{
	demo::box<int> b = { n };

	sink += plain(n) + mostly_hot(n) + demo::hidden(n) + b.put(n);
	sink += with_lambda(n) + with_local_class(n);
}
