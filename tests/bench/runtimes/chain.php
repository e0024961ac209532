<?php
// SPDX-License-Identifier: Apache-2.0
// A load of 20 PHP frames: the program, f1 to f18, and leaf, which computes. `chain.php FILE`: the number of leaves done stands
// in FILE, 8 bytes.
function leaf($n)
{
    $x = 0;
    for ($i = 0; $i < $n; $i++) {
        $x = ($x * 31 + $i) & 0xffff;
    }
    return $x;
}

$source = '';
for ($i = 1; $i <= 18; $i++) {
    $source .= "function f$i(\$n) { return " . ($i < 18 ? 'f' . ($i + 1) : 'leaf') . "(\$n) + 1; }\n";
}
eval($source);

$progress = fopen($argv[1], 'r+b');
for ($done = 1;; $done++) {
    f1(30000);
    fseek($progress, 0);
    fwrite($progress, pack('P', $done));
    fflush($progress);
}
