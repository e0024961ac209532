// SPDX-License-Identifier: Apache-2.0
/* C++: namespaces, classes, templates, lambdas, operators, constructors, local classes, thunks. */
#include <algorithm>
#include <vector>

#include "mark.h"

extern "C" {
volatile int zero;
}

namespace ns
{

template <typename T> INLINE T twice(T x, const char *name)
{
	mark(name); /* @twice.0 int ns::twice<int>(int, char const*) */
	return x + x;
}

class Klass
{
public:
	NOINLINE explicit Klass(int x) : value(x)
	{
		mark("ctor"); /* @ctor.0 ns::Klass::Klass(int) */
		KEEP();
	}
	NOINLINE ~Klass()
	{
		mark("dtor"); /* @dtor.0 ns::Klass::~Klass() */
		KEEP();
	}
	INLINE int inlined(int x)
	{
		return twice<int>(x + value, "twice"); /* @twice.1 ns::Klass::inlined(int) */
	}
	NOINLINE int method(int x) const;
	NOINLINE int operator()(int x)
	{
		int y = inlined(x); /* @twice.2 ns::Klass::operator()(int) */

		KEEP();
		return y;
	}
	NOINLINE bool operator<(const Klass &other) const
	{
		mark("less"); /* @less.0 ns::Klass::operator<(ns::Klass const&) const */
		KEEP();
		return value < other.value;
	}
	static NOINLINE int fixed(int x)
	{
		mark("static_method"); /* @static_method.0 ns::Klass::fixed(int) */
		KEEP();
		return x;
	}
	template <typename T, int N> NOINLINE T member(T x)
	{
		mark("member"); /* @member.0 int ns::Klass::member<int, 3>(int) */
		KEEP();
		return x + N;
	}
	operator std::vector<int>() const
	{
		return std::vector<int>(1, value);
	}
	int value;
};

int Klass::method(int x) const
{
	mark("method"); /* @method.0 ns::Klass::method(int) const */
	KEEP();
	return x + value;
}

namespace
{

NOINLINE int hidden(int x)
{
	mark("hidden"); /* @hidden.0 ns::(anonymous namespace)::hidden(int) */
	KEEP();
	return x;
}

} // namespace

inline namespace v2
{

NOINLINE int versioned(int x)
{
	mark("versioned"); /* @versioned.0 ns::v2::versioned(int) */
	KEEP();
	return x;
}

} // namespace v2

struct Left {
	virtual ~Left() = default;
	virtual int left(int x) = 0;
	int a = 1;
};

struct Right {
	virtual ~Right() = default;
	virtual int right(int x) = 0;
	int b = 2;
};

struct Both : Left, Right {
	NOINLINE int left(int x) override
	{
		mark("left"); /* @left.0 ns::Both::left(int) */
		KEEP();
		return x;
	}
	NOINLINE int right(int x) override
	{
		mark("right"); /* @right.0 ns::Both::right(int) */
		KEEP();
		return x + a + b;
	}
};

} // namespace ns

template <typename F> static NOINLINE int apply(F f, int x)
{
	int y = f(x);

	KEEP();
	return y;
}

static NOINLINE int lambdas(int x)
{
	auto kept = [x](int y) NOINLINE {
		mark("lambda"); /* @lambda.0 lambdas(int)::{lambda(int)#1}::operator()(int) const|lambdas*::operator()* */
		KEEP();
		return x + y;
	};
	int z = kept(x);
	auto inlined = [z](int y) ALWAYS_INLINE {
		mark("lambda_in"); /* @lambda_in.0 lambdas(int)::{lambda(int)#2}::operator()(int) const|lambdas*::operator()* */
		return y + z;
	};

	z += inlined(z); /* @lambda_in.1 lambdas(int) */
	KEEP();
	return z;
}

static NOINLINE int local_class(int x)
{
	struct Local {
		static NOINLINE int f(int y)
		{
			mark("local"); /* @local.0 local_class(int)::Local::f(int) */
			KEEP();
			return y;
		}
	};

	x = Local::f(x);
	KEEP();
	return x;
}

static NOINLINE int thrower(int x)
{
	try {
		if (x == 0)
			throw x;
	} catch (int y) {
		mark("catcher"); /* @catcher.0 thrower(int) [clone .cold]|thrower(int) */
		return y;
	}
	return 1;
}

static NOINLINE int sorted(int x)
{
	std::vector<int> v{ 2, x };

	std::for_each(v.begin(), v.end(), [](int y) ALWAYS_INLINE { /* @in_std.last sorted(int) */
		mark("in_std"); /* @in_std.0 sorted(int)::{lambda(int)#1}::operator()(int) const|sorted*::operator()* */
		zero = y - y;
	});
	KEEP();
	return v[0];
}

int main()
{
	ns::Klass k(zero), l(zero + 1);
	ns::Both both;
	ns::Left *left = &both;
	ns::Right *right = &both;

	k(zero);
	k.method(zero);
	(void)(k < l);
	ns::Klass::fixed(zero);
	k.member<int, 3>(zero);
	ns::hidden(zero);
	ns::versioned(zero);
	KEEP();
	left->left(zero);
	right->right(zero);
	lambdas(zero);
	local_class(zero);
	thrower(zero);
	sorted(zero);
	return apply([](int x) { return x - x; }, zero);
}
