# SPDX-License-Identifier: Apache-2.0
# Says that it is there, waits until standard input ends, then works (unknown_test.py).
use strict;
use warnings;

sub leaf {
    my $x = shift;
    $x = ($x * 3 + $_) % 1_000_003 for 1 .. 10_000;
    return $x;
}

sub middle { return leaf(@_) + 1; }

$| = 1;
print qq({"ready": $$}\n);
1 while <STDIN>;
my $n = 0;
$n = middle($n) while 1;
