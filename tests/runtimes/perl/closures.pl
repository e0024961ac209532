# SPDX-License-Identifier: Apache-2.0
# Closures that are made, called and dropped all the time: each has a body of its own, which is gone by the time that it is
# named. One has a name that it was given, and keeps it.
use strict;
use warnings;
use Sub::Util qw(set_subname);
$| = 1;
package Made { sub make { my $n = shift; return sub { return main::small($n) } } }
package Each { sub each { my $f = shift; $f->() for 1 .. 2; return } }
package Deep { sub deep { my $n = shift; my $f = sub { my $g = sub { return main::small($n) }; return $g->() }; return $f->() } }
package Sorts { use List::Util qw(first); sub sorts { my $n = shift; my $f = first { main::small($n) > 3 } 1, 2, 3; return } }
package main;
sub small { my $n = shift; return $n + 1 }
my ($n, $named) = (0);
sub given { my $f = $named //= set_subname("Given::name", sub { return small($n) }); return $f->() }
sub inner { my $n = shift; my sub lexical { return small($n) } return lexical() }
sub round { my $n = shift; Each::each(sub { return small($n) }); Made::make($n)->(); Deep::deep($n); Sorts::sorts($n); given(); inner($n); return }

print "{\"ready\": $$}\n";
round($n++) while 1;
