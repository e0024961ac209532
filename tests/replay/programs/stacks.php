<?php
// SPDX-License-Identifier: Apache-2.0
// A stack worth keeping, for every PHP from 7.3 on: functions, a method, a static one, closures, a generator, a sort and an
// include. Prints "ready" when it is there, and waits to be killed.
namespace Stacks;

class Thing
{
    public function key($value)
    {
        echo "ready\n";
        while (true) {
            sleep(100);
        }
    }

    public static function compare($a, $b)
    {
        return (new Thing())->key($a - $b);
    }
}

function generating()
{
    $numbers = [2, 1];
    yield from [0];
    usort($numbers, function ($a, $b) {
        return Thing::compare($a, $b);
    });
    yield 1;
}

function recursive($depth)
{
    if ($depth) {
        return recursive($depth - 1);
    }
    foreach (generating() as $value) {
        $last = $value;
    }
    return $last;
}

array_map(function ($depth) {
    return recursive($depth);
}, [3]);
