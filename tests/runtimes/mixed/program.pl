# SPDX-License-Identifier: Apache-2.0
# Perl's part: see program.py.
use strict;
use warnings;

my $which = $ARGV[0];

# What is told already, and the frames from `ours` on, the sub that C called, to whoever calls this.
sub told {
    my ($text, $ours, $level, @chain) = (shift, "main::" . shift, 1);
    my (undef, $file, $line) = caller(0);
    while (my @c = caller($level++)) {
        unshift @chain, "[\"perl\", \"$c[3]\", \"$file\", $line]";
        last if $c[3] eq $ours;
        ($file, $line) = @c[1, 2];
    }
    return join(", ", $text, @chain);
}

sub to_python { Native::python("back", told(shift, "outer")); return }
sub outer { my $text = shift; my @s = sort { to_python($text); $a <=> $b } 1, 2; return }
sub leaf { local $| = 1; print "{\"comm\": \"mixed\", \"chain\": [", told(shift, "inner"), "]}\n{\"ready\": $$}\n"; my $x = 0; $x++ while 1 }
sub inner { my $text = shift; eval { leaf($text) }; return }
1;
