// SPDX-License-Identifier: Apache-2.0
/* Names that need a demangler: templates, operators, lambdas, anonymous namespaces, virtual calls.
 */
#include "workload.h"

#include <map>
#include <string>

namespace
{

template <typename T> KNOWN void burn(const T &v)
{
	SPIN(MILLISECOND);
	sink += v.size();
}

} // namespace

namespace shapes
{

struct Shape {
	virtual ~Shape() = default;
	KNOWN virtual void operator()(int n) = 0;
};

template <int N> struct Square : Shape {
	KNOWN void operator()(int n) override
	{
		burn(std::map<std::string, int>{});
		sink += n + N;
	}
};

} // namespace shapes

KNOWN static void call(shapes::Shape *shape, int n)
{
	auto twice = [&](int k) KNOWN {
		(*shape)(k);
		sink++;
	};

	twice(n);
	sink++;
}

int main(int argc, char **argv)
{
	shapes::Square<4> square;

	work_init(argc, argv);
	while (work_left())
		call(&square, argc);
	_exit(0);
}
