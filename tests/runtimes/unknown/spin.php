<?php
// SPDX-License-Identifier: Apache-2.0
// Says that it is there, waits until standard input ends, then works (unknown_test.py).
function leaf($x)
{
    for ($i = 0; $i < 10000; $i++) {
        $x = ($x * 3 + $i) % 1000003;
    }
    return $x;
}

function middle($n)
{
    return leaf($n) + 1;
}

fwrite(STDOUT, '{"ready": ' . getmypid() . "}\n");
stream_get_contents(STDIN);
$n = 0;
while (true) {
    $n = middle($n);
}
