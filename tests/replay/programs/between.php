<?php
// SPDX-License-Identifier: Apache-2.0
// Whoever is stopped here (make-cases does it) is between two frames: a callback, a destructor or a generator is about to begin.
namespace Stacks;

class Ends
{
    public function __destruct()
    {
    }
}

function left()
{
    $local = new Ends();
    return 1;
}

function generating()
{
    yield 1;
    yield 2;
}

array_map(function ($value) {
    left();
    foreach (generating() as $last) {
    }
}, [1]);
