# SPDX-License-Identifier: Apache-2.0
# Threads that are created and joined all the time, by subs that are known: each is a new interpreter, whose CLONE and
# DESTROY methods are run while its creator's loop is on the stack.
use strict;
use warnings;
use threads;

$| = 1;
sub small { return 1 }
sub Cloned::CLONE { my $x = 0; $x += small() for 1 .. 200; return }
sub Cloned::DESTROY { small() for 1 .. 20; return }
our $object = bless [], "Cloned";
my @much = map { { name => "x$_", list => [1 .. 5] } } 1 .. 2000;
sub creates { my $t = threads->create(sub { return }); $t->join; return }
sub outer { creates(); return }
print "{\"ready\": $$}\n";
outer() while 1;
