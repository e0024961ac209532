// SPDX-License-Identifier: Apache-2.0
/*
 * C++ exceptions: CPU is burnt before the throw, in a destructor while the stack is unwound, and in
 * the handler.
 */
#include "workload.h"

#include <stdexcept>

namespace work
{

KNOWN void leaf()
{
	SPIN(MILLISECOND);
}

struct Guard {
	int n;
	KNOWN ~Guard()
	{
		leaf();
		sink += n;
	}
};

KNOWN void thrower(int n)
{
	leaf();
	if (n)
		throw std::runtime_error("thrown");
	sink++;
}

KNOWN void guarded(int n)
{
	Guard guard{ n };

	thrower(n);
	sink++;
}

KNOWN void handle(const std::exception &e)
{
	leaf();
	sink += e.what()[0];
}

KNOWN void catcher(int n)
{
	try {
		guarded(n);
	} catch (const std::exception &e) {
		handle(e);
	}
	sink++;
}

} // namespace work

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		work::catcher(argc);
	_exit(0);
}
