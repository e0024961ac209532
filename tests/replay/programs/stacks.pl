# SPDX-License-Identifier: Apache-2.0
# A stack worth keeping, for every Perl 5: subs, a method, a sort's block, an anonymous sub, an eval and a callback from C.
# Prints "ready" when it is there, and waits to be killed.
use strict;
use warnings;
use List::Util qw(first);

package Thing;

sub new { return bless {}, shift }

sub key {
	my ($self, $value) = @_;
	$| = 1;
	print "ready\n";
	sleep 100 while 1;
	return $value;
}

package main;

sub callback {
	my $thing = shift;
	return first { $thing->key($_) } (2, 1);
}

my $anonymous = sub { return eval { callback(Thing->new) } };

sub compare { return (sort { $anonymous->() || $a <=> $b } (2, 1))[0] }

sub recursive {
	my $depth = shift;
	return $depth ? recursive($depth - 1) : compare();
}

recursive(3);
