# SPDX-License-Identifier: Apache-2.0
# The life of a process (life_test.py): `begun` works in it, then `forked` in a child, then it executes itself, where
# `executed` works.
use strict;
use warnings;
use Time::HiRes;

sub spin {
	my $end = (times)[0] + $ENV{SECONDS};
	while ((times)[0] < $end) { my $x = 0; $x += $_ for 1 .. 1000; }
	return 1;
}
sub perl_begun { return spin() + 1 }
sub perl_forked { return spin() + 2 }
sub perl_executed { return spin() + 3 }
sub perl_life {
	my $phase = shift;
	return perl_executed() + 1 if $phase eq "executed";
	perl_begun();
	my $pid = fork // die;
	if (!$pid) { perl_forked(); exit 0 }
	waitpid $pid, 0;
	exec $^X, $0, "executed" or die;
}

perl_life(shift // "begun");
