$| = 1;
print "Content-Type: text/plain\n\n";
package Loud; sub new { bless { name => $_[1] } } sub DESTROY { print "gone $_[0]{name}\n" }
package Quiet; sub new { bless {} } sub DESTROY { }
package Auto; our $AUTOLOAD; sub new { bless {} } sub AUTOLOAD { print "called $AUTOLOAD\n" }
package Heir; our @ISA = 'Loud';
package Tie; sub TIESCALAR { bless {} } sub FETCH { 1 } sub DESTROY { print "untied\n" }
package main;
our $quiet = Quiet->new;
if ($ENV{QUERY_STRING} =~ /which=loud/)    { our $kept = Loud->new('global') }
if ($ENV{QUERY_STRING} =~ /which=lexical/) { my $ring = Loud->new('ring'); $ring->{ring} = $ring }
if ($ENV{QUERY_STRING} =~ /which=auto/)    { our $kept = Auto->new }
if ($ENV{QUERY_STRING} =~ /which=heir/)    { our $kept = Heir->new('heir') }
if ($ENV{QUERY_STRING} =~ /which=tied/)    { tie our $kept, 'Tie' }
if ($ENV{QUERY_STRING} =~ /which=late/)    { our $kept = bless [], 'Late'; eval 'sub Late::DESTROY { print "late\n" }' }
if ($ENV{QUERY_STRING} =~ /which=pipe/)    { open our $kept, '|-', 'sleep 0.1; cat' or die; print $kept "through a pipe\n" }
if ($ENV{QUERY_STRING} =~ /which=coded/)   { open our $kept, '>&:encoding(UTF-16BE)', \*STDOUT or die; print $kept "\x{263a}" }
if ($ENV{QUERY_STRING} =~ /which=full/)    { open our $kept, '>', '/dev/full' or die; print $kept 'text' }
if ($ENV{QUERY_STRING} =~ /which=posix/)   { require POSIX; print POSIX::floor(1.5), "\n" }
if ($ENV{QUERY_STRING} =~ /which=code\b/)    { END { $? = 7 if $ENV{QUERY_STRING} =~ /which=code\b/ } }
print "body\n";
