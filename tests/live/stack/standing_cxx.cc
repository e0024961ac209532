// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that stand in functions with the names that C++ makes: templates, members, lambdas,
 * overloads, operators, inlined ones. Prints "ready" when all stand.
 */
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

#define KNOWN __attribute__((noinline, noclone))

static int never[2]; // a pipe that nobody writes to
static volatile int sink;

namespace outer
{
namespace
{
KNOWN void hidden(int)
{
	char c;

	sink = (int)read(never[0], &c, 1);
	sink = sink + 1;
}
} // namespace

KNOWN void overloaded(int n)
{
	hidden(n);
	sink = sink + 1;
}

KNOWN void overloaded(const std::string &s)
{
	overloaded((int)s.size());
	sink = sink + 1;
}

template <int depth, typename T> KNOWN void descend(const T &value)
{
	if constexpr (depth > 0)
		descend<depth - 1>(value);
	else
		overloaded(value);
	sink = sink + 1;
}

struct base {
	virtual ~base() = default;
	KNOWN virtual void stand(int n) = 0;
	KNOWN base &operator<<(int n)
	{
		stand(n);
		sink = sink + 1;
		return *this;
	}
};

template <typename T> struct derived : base {
	KNOWN void stand(int n) override
	{
		T value(n, 'x');

		descend<3>(value);
		sink = sink + 1;
	}
};

// Inlined wherever it is called.
__attribute__((always_inline)) static inline void inlined(base &b, int n)
{
	b << n;
	sink = sink + 1;
}
} // namespace outer

KNOWN static void by_algorithm(int n)
{
	std::vector<int> numbers{n};

	std::for_each(numbers.begin(), numbers.end(), [](int i) __attribute__((noinline)) {
		outer::descend<1>(i);
		sink = sink + 1;
	});
	sink = sink + 1;
}

KNOWN static void by_member(int n)
{
	outer::derived<std::string> d;

	outer::inlined(d, n);
	sink = sink + 1;
}

int main(int argc, char **)
{
	std::vector<std::thread> threads;

	if (pipe(never))
		return 1;
	for (int i = 0; i < 6; i++)
		threads.emplace_back(i % 2 ? by_algorithm : by_member, i + argc);
	puts("ready");
	fflush(stdout);
	for (auto &t : threads)
		t.join();
}
