# SPDX-License-Identifier: Apache-2.0
# Subs, evals, loops and blocks that are left in all ways: by return, last, goto, die through C code and blocks; also of
# DESTROY, handlers, overloaded operators. Who called what, and from which line, must be so at every instruction.
use strict;
use warnings;
use List::Util qw(first reduce);
$| = 1;
package Throws { sub TIESCALAR { return bless [], shift } sub FETCH { die "\n" } }
package Fails { no warnings; sub DESTROY { die "\n" } }
package Text { use overload '""' => \&text; sub text { return "text" } }
package Auto { our $AUTOLOAD; sub AUTOLOAD { return $AUTOLOAD } sub DESTROY { return } }
package main;
sub leaf { my $n = shift; return $n + 1 }
sub even { my $n = shift; return $n ? odd($n - 1) : 1 }
sub odd { my $n = shift; return $n ? even($n - 1) : 0 }
sub quotient { return 1 / $_[0] }
sub divides { my $x = eval { quotient(0) }; eval { quotient(0); 1 } or eval { quotient(1) }; return }
sub loops { for my $i (1 .. 3) { next if $i == 2; last if leaf($i) > 3 } my $n = 0; while (1) { for (1) { return leaf(1) if $n++ > 2 } } }
sub jumps { goto &target }
sub target { my $x = leaf(2); return $x }
sub catches { eval { first { die "\n" } 1 }; my $x = reduce { $a + leaf($b) } 1 .. 4; return $x }
sub fetches { tie my $t, "Throws"; eval { my $x = "$t"; 1 }; return }
sub cleanups { my $o = bless [], "Fails"; undef $o; return }
sub texts { my $o = bless [], "Text"; my $s = "$o$o"; return $s }
sub autos { Auto->anything(1); return }
sub twice { return $_[0] x 2 }
sub replaces { my $s = "banana"; $s =~ s/(a)/twice($1)/ge; return }
sub hook { return }
sub hooks { local $SIG{__DIE__} = \&hook; eval { die "\n" }; return }
my $kept = 3;
sub held :lvalue { $kept }
sub lvalues { held() = 4; return }
sub nested { my @s = sort { my @t = sort { leaf($a) <=> leaf($b) } 2, 1; $a <=> $b } 3, 1, 2; return }
sub deep { my $n = shift; return leaf($n) unless $n; { for my $i (1) { eval { deep($n - 1) } } } return }
sub gone { my $n = shift; die "\n" unless $n; for (1) { for (2) { gone($n - 1) } } return }
sub dies { eval { gone(3) }; return }
sub round { even(5); divides(); loops(); jumps(); catches(); fetches(); cleanups(); texts(); autos(); replaces(); hooks(); lvalues(); nested(); deep(3); dies(); return }
print "{\"ready\": $$}\n";
round() while 1;
