// SPDX-License-Identifier: Apache-2.0
// D: templates, structs, nested functions.
module calls;

extern (C) void mark(const(char)* name);

struct Point(T)
{
    T x;

    pragma(inline, false) T get()
    {
        mark("get"); // @get.0 calls.Point!(int).Point.get()
        return x;
    }
}

pragma(inline, false) int plain(int x)
{
    mark("plain"); // @plain.0 calls.plain(int)
    return x + 1;
}

pragma(inline, false) T generic(T)(T x)
{
    mark("generic"); // @generic.0 calls.generic!(int).generic(int)
    return x;
}

pragma(inline, false) int outer(int x)
{
    int nested(int y)
    {
        mark("nested"); // @nested.0 calls.outer(int).nested(int)
        return x + y;
    }

    return nested(x) + 1;
}

extern (C) int main()
{
    auto p = Point!int(3);

    mark("main"); // @main.0 main
    return p.get() + plain(1) + generic(2) + outer(3) > 0 ? 0 : 1;
}
