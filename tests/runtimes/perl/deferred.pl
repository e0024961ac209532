# SPDX-License-Identifier: Apache-2.0
# Blocks of defer, which run a sub while the scope around them is left, again and again.
use strict;
use warnings;
use feature 'defer';
no warnings 'experimental::defer';

sub work {
	my $x = 0;
	$x += $_ for 1 .. 300;
	return $x;
}

sub inner {
	defer { work() }
	return 1;
}

sub outer { inner() for 1 .. 10; return }

$| = 1;
print "{\"ready\": $$}\n";
outer() while 1;
