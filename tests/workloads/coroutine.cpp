// SPDX-License-Identifier: Apache-2.0
/* C++20 coroutines: a generator that awaits another task; both burn in a leaf. */
#include "workload.h"

#include <coroutine>
#include <exception>

namespace co
{

struct Task {
	struct promise_type {
		Task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(int)
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	std::coroutine_handle<promise_type> handle;
};

KNOWN void leaf(int n)
{
	SPIN(MILLISECOND);
	sink += n;
}

KNOWN Task inner()
{
	for (int i = 0;; i++) {
		leaf(i);
		co_yield i;
	}
}

KNOWN Task outer()
{
	Task task = inner();

	for (int i = 0;; i++) {
		task.handle.resume();
		leaf(i);
		co_yield i;
	}
}

KNOWN void drive(Task &task)
{
	task.handle.resume();
	sink++;
}

} // namespace co

int main(int argc, char **argv)
{
	work_init(argc, argv);
	co::Task task = co::outer();

	while (work_left())
		co::drive(task);
	_exit(0);
}
