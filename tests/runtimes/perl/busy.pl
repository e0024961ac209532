# SPDX-License-Identifier: Apache-2.0
# Subs that are entered and left all the time, in every way that C code calls them: who called a sub, from which line, and by
# which native functions, must be so at every instruction.
use strict;
use warnings;
use List::Util qw(first);

$| = 1;

package Tie { sub TIESCALAR { return bless [], shift } sub FETCH { return main::small(1) } }
package Dies { sub DESTROY { my $x = main::small(2); return } }
package Adds { use overload "+" => \&plus; sub plus { return main::small(3) } }

package main;

sub small { my $n = shift; return $n + 1 }
sub fib { my $n = shift; return $n if $n < 2; return fib($n - 1) + fib($n - 2) }
sub by_number { $a <=> $b }
sub by_small { return small($a) <=> small($b) }
sub sorts { my @s = sort by_number 9, 3, 7, 1; @s = sort { my $x = small($a); $x <=> $b } 4, 2, 3; @s = sort by_small 3, 2, 1; return }
sub finds { my $f = first { small($_) > 3 } 1, 2, 3; return }
sub ties { tie my $t, "Tie"; my $x = 0; $x += $t for 1 .. 4; return }
sub objects { for (1 .. 4) { my $o = bless [], "Dies" } my $o = bless [], "Adds"; my $x = $o + 1; return }
sub evals { my $x = eval { small(4) }; eval { die "\n" }; return }
sub patterns { "aab" =~ /^(?:a(?{ small(5) }))*b/; return }
sub round { fib(5); sorts(); finds(); ties(); objects(); evals(); patterns(); return }

print "{\"ready\": $$}\n";
round() while 1;
