# SPDX-License-Identifier: Apache-2.0
# Chains of Perl code that know themselves by caller(): cases.pl CASE. tests/runtimes/runtimes.py says what a truth is; in
# addition: "lines", of the leaf; "condition", a line of it that it is in for a moment only (null: none); "natives", of each
# frame the functions of C that are between it and its caller, those of which the case says so.
use strict;
use warnings;
use utf8;
use List::Util qw(first reduce);

$| = 1;
my ($case, $natives) = ($ARGV[0], {});

sub text { my $s = shift; utf8::encode($s); $s =~ s/(["\\])/\\$1/g; return "\"$s\"" }

# What caller() says of whoever called what calls this, and where that is.
sub chain {
    my ($level, @chain) = (1);
    my (undef, $file, $here) = caller($level++);
    while (my @c = caller($level++)) {
        unshift @chain, [$c[3], $file, $here];
        ($file, $here) = @c[1, 2];
    }
    unshift @chain, @main::around ? @main::around : ["(main)", $file, $here] unless $main::thread;
    return @chain;
}

sub say_truth {
    my ($low, $high, $condition) = (@_, "null");
    my @chain = chain();
    my $comm = "pl-" . substr($case, 0, 12) . ($main::thread // "");
    $0 = $comm;
    print "{\"comm\": \"$comm\", \"lines\": [$low, $high], \"condition\": $condition, \"chain\": [",
        join(", ", map { "[" . text($_->[0]) . ", " . text($_->[1]) . ", $_->[2]]" } @chain),
        "], \"natives\": {", join(", ", map { text($_) . ": \"$natives->{$_}\"" } keys %$natives), "}}\n";
}

sub leaf {
    my $low = __LINE__ + 3;
    say_truth($low, $low + 6);
    ready();
    my $x = 0;
    while (1) {
        for my $i (1 .. 1000) {
            $x += $i * 2;
        }
    }
}

our $more;
sub ready {
    if ($more) { lock($more); return if --$more }
    print "{\"ready\": $$}\n";
}

sub one_by_one { my $n = shift; for my $i (0, 1) { if ($i) {
        $n = 1 + plain_inner($n);
    } } }
sub leaf_branch {
    my ($n, $x) = (shift, 0);
    say_truth(__LINE__ + 6, __LINE__ + 6, __LINE__ + 2); ready();
    while (1) {
        if ($n)
        {

            $x = join(",", 1 .. 10000);
        }
    }
}
sub plain_outer { plain_inner(1); return }
sub plain_inner { my $n = shift; leaf($n); return }
sub down { no warnings "recursion"; my $n = shift; return $n ? down($n - 1) + 1 : leaf() }
sub Other::Package::method { my ($self, $f) = @_; $f->(); return }
sub by_number { leaf(); $a <=> $b }
sub Tie::TIESCALAR { return bless [], shift }
sub Tie::FETCH { leaf(); return 1 }
sub Tie::STORE { leaf(); return }
sub Dies::DESTROY { leaf(); return }
package Adds { use overload "+" => sub { main::leaf(); 1 }, "\"\"" => \&as_text; sub as_text { main::leaf(); return "" } }
package Raises { use overload "+" => sub { syscall(62, 0 + $$, 10) }, "-" => sub { my $x = $_[0] + 1; 1 } }
package Auto { our $AUTOLOAD; sub AUTOLOAD { return if $AUTOLOAD =~ /DESTROY/; main::leaf(); return } }
package Sums { no warnings "once"; use overload "+" => sub { main::leaf(); 1 }; *STORE = \&List::Util::sum; sub TIESCALAR { return bless [], shift } }
package Picks { no warnings "once"; *STORE = \&List::Util::first; sub TIESCALAR { return bless sub { main::leaf(); 1 }, shift } }
package Hooks { sub STORABLE_freeze { main::leaf(); return } }
sub grün { leaf(); return }
our @around;
sub here { return chain() }
# The sub is run by the interpreter that is being made, its caller by another one.
sub creates { @around = here(); threads->create(sub { })->join; return }
sub goes { goto &plain_inner }
sub lvalue :lvalue { leaf(); my $x }
my %cases = (
    plain => sub { plain_outer() },
    recursion => sub { down(40) },
    deep => sub { down(1200) },
    method => sub { Other::Package->method(sub { plain_outer() }) },
    closure => sub { my $n = 3; my $f = sub { $n++; leaf() }; my $g = sub { $f->() }; $g->() },
    eval_block => sub { eval { eval { plain_inner() } } },
    trying => sub { eval "use feature 'try'; no warnings;\nsub tries { try {\nplain_inner();\n} catch (\$e) {} }\ntries();"; die $@ if $@ },
    eval_text => sub { eval "\n\nsub in_text { leaf() } in_text();"; die $@ if $@ },
    sort_block => sub { $natives->{"(sort block)"} = "Perl_sortsv_flags"; my @s = sort { plain_inner(); $a <=> $b } 3, 1, 2 },
    sort_sub => sub { $natives->{"main::by_number"} = "Perl_sortsv_flags"; my @s = sort by_number 3, 1, 2 },
    sort_call => sub { my @s = sort { plain_inner() } 3, 1, 2 },
    sort_eval => sub { my @s = sort { eval { plain_inner() } } 3, 1, 2 },
    sort_in_sort => sub { my @s = sort { my @t = sort { eval { leaf() }; 1 } 1, 2; $a <=> $b } 1, 2 },
    block => sub { $natives->{"main::__ANON__"} = "."; my $f = first { plain_inner(); 1 } 1, 2 },
    block_eval => sub { my $f = reduce { eval { eval { plain_inner() }; 1 } } 1, 2 },
    tied => sub { $natives->{"Tie::FETCH"} = "Perl_call_sv"; tie my $t, "Tie"; my $x = $t },
    tied_xs => sub { $natives->{"Sums::__ANON__"} = "Perl_call_sv"; tie my $t, "Sums"; $t = 1 },
    tied_block => sub { tie my $t, "Picks"; $t = 1 },
    tied_eval => sub { tie my $t, "Tie"; eval { $t = 1 } },
    destroy => sub { $natives->{"(eval)"} = "Perl_call_sv"; my $o = bless [], "Dies"; undef $o },
    destroy_end => sub { { my $o = bless [], "Dies"; } 1 },
    overloaded => sub { $natives->{"Adds::__ANON__"} = "Perl_amagic_call"; my $o = bless [], "Adds"; my $x = $o + 1 },
    overloaded_text => sub { my $o = bless [], "Adds"; my $x = eval { "$o" } },
    autoload => sub { Auto->whatever(1) },
    signal => sub { local $SIG{USR1} = sub { plain_inner() }; kill "USR1", $$; 1 while 1 },
    # The handler is run at the end of a loop, whose sub has returned: kill() of x86-64, which Perl looks for no signals behind.
    signal_late => sub { local $SIG{USR1} = sub { plain_inner() }; my $o = bless [], "Raises"; my $x = $o - 1 },
    warning => sub { local $SIG{__WARN__} = sub { leaf() }; warn "\n" },
    dying => sub { local $SIG{__DIE__} = sub { leaf() }; eval { die "\n" } },
    going => sub { goes(1) },
    umlaut => sub { no strict "refs"; grün() },
    lexical => sub { my sub inside { leaf() } inside() },
    pattern => sub { $natives->{"(pattern block)"} = "Perl_regexec_flags"; "ab" =~ /a(?{ plain_inner() })b/ },
    pattern_code => sub { my $re = qr/a(?{ plain_inner() })b/; "ab" =~ /x*$re/ },
    map_grep => sub { my @m = map { grep { leaf() } $_ } 1, 2 },
    lvalues => sub { lvalue() = 1 },
    frozen => sub { require Storable; my $x = Storable::freeze(bless [], "Hooks") },
    dumped => sub { require Data::Dumper; no warnings "once"; local $Data::Dumper::Useperl = 0;
        local $Data::Dumper::Sortkeys = sub { leaf(); [] }; my $x = Data::Dumper::Dumper({ a => 1 }) },
    compiled => sub { eval "package Some; BEGIN { main::leaf() } 1" or die $@ },
    required => sub { unshift @INC, sub { my $t = "package Made;\n\nmain::leaf();\n1;\n"; return \$t };
        require Made },
    hooked => sub { unshift @INC, sub { leaf() }; eval { require Made } },
    used => sub { $INC{"Imports.pm"} = 1; no warnings "once"; *Imports::import = sub { leaf() }; eval "\nuse Imports;\n1" or die $@ },
    forked => sub { my $pid = fork // die; if ($pid) { waitpid $pid, 0 } else { plain_inner() } },
    deferred => sub { $natives->{"(defer block)"} = "Perl_leave_scope"; eval "use feature 'defer'; no warnings;\nsub defers {\ndefer {\nplain_inner();\n}\nreturn }\ndefers();"; die $@ if $@ },
    defer_sort => sub { eval "use feature 'defer'; no warnings;\nmy \@s = sort {\ndefer {\nplain_inner();\n}\n1 } 1, 2;"; die $@ if $@ },
    defer_nested => sub { eval "use feature 'defer'; no warnings;\nsub defers {\ndefer {\ndefer {\nplain_inner();\n}\n}\nreturn }\ndefers();"; die $@ if $@ },
    finally => sub { $natives->{"(finally block)"} = "Perl_leave_scope"; eval "use feature 'try'; no warnings;\nsub tries { try {\n1;\n} catch (\$e) {} finally {\nplain_inner();\n} }\ntries();"; die $@ if $@ },
    cloning => sub { require threads; no warnings "once"; *Cloned::CLONE = sub { leaf() }; creates() },
    line_file => sub {
# line 4711 "elsewhere.tt"
        plain_inner() },
    # A block's only statement has no COP of its own; caller() has its line, if it goes on there.
    branches => sub { my ($zero, $one) = (0, 1);
        if ($zero) {
            $one = leaf();
        } elsif ($one) {
            eval {
                unless ($zero) {
                    $one = one_by_one(1);
                }
            };
        }
        $one },
    in_branch => sub { leaf_branch(1) },
    threads => sub { require threads; require threads::shared; &threads::shared::share(\$more); $more = 3;
        my @t = map { my $n = $_; threads->create(sub { $main::thread = "-$n"; eval { plain_inner() } }) } 1 .. 3; $_->join for @t },
);

$cases{$case}->();
