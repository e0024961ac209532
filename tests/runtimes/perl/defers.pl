# SPDX-License-Identifier: Apache-2.0
# Blocks of defer {} and finally {}, of 5.36 and later, that are entered and left all the time, in all ways and inside of each other:
# who called what, and from which line, must be so at every instruction.
use v5.36;
use feature qw(try defer);
no warnings;
use List::Util qw(first);
$| = 1;
package Object { sub DESTROY { my $x = main::small(1); return } }
package main;
sub small { my $n = shift; return $n + 1 }
sub deferred { defer { small(1) } return }
sub twice { defer { small(1); small(2) } my $x = small(3); { defer { small(4) } small(5) } return }
sub nested { defer { defer { small(6) } small(7) } return }
sub finals { try { small(8) } catch ($e) { } finally { small(9) } return }
sub dies { eval { defer { small(10) } die "\n" }; return }
sub sorts { my @s = sort { defer { small($a) } $a <=> $b } 3, 1, 2; return }
sub finds { my $f = first { defer { my $x = small($_) } 0 } 1, 2; return }
sub compares { defer { my @s = sort { small($a) <=> small($b) } 3, 1, 2; } return }
sub objects { defer { my $o = bless [], "Object"; bless [], "Object" } return }
sub evals { defer { my $x = eval { small(11) } } return }
sub round { deferred(); twice(); nested(); finals(); dies(); sorts(); finds(); compares(); objects(); evals(); return }
print "{\"ready\": $$}\n";
round() while 1;
