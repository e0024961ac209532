<?php
// SPDX-License-Identifier: Apache-2.0
// Whoever is stopped here (make-cases does it) is between two frames: a callback, a destructor or a generator is about to begin; or between
// two stacks: that of a fiber, and of who has begun it, each with more frames than are looked through.
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

function left_fiber($n)
{
    if ($n) {
        left_fiber($n - 1);
    } else {
        \Fiber::suspend();
    }
}

function goes_on($n)
{
    if ($n) {
        goes_on($n - 1);
        return;
    }
    $fiber = new \Fiber('Stacks\left_fiber');
    $fiber->start(12);
    $fiber->resume();
}

if (class_exists('Fiber')) {
    goes_on(12);
}
