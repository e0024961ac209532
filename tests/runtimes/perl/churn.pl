# SPDX-License-Identifier: Apache-2.0
# Packages whose subs are made by eval, called a hundred times, and dropped: their memory is other subs' soon. The number in the
# names, the file and the lines of a sub are one turn's.
use strict;
use warnings;

$| = 1;
sub small { my $n = shift; return $n + 1 }

sub turn {
    my $n = shift;
    my $line = 1 + $n % 97;
    my $next = $line + 1;
    eval "package Made$n;\n# line $line \"made-$n\"\nsub leaf_$n { my \$x = 0; \$x += \$_ for 1 .. 30; return main::small(\$x) }\n"
        . "sub middle_$n { return leaf_$n() + leaf_$n() }\n1" or die $@;
    { no strict "refs"; my $f = \&{"Made${n}::middle_$n"}; $f->() for 1 .. 100; undef $f; undef %{"Made${n}::"}; delete $main::{"Made${n}::"} }
    return;
}

print "{\"ready\": $$}\n";
my $n = 0;
turn($n++ % 9973) while 1;
