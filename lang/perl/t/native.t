# The same programs through libhob: the tests that do not look at single messages, run again with
# the native part.

use 5.026;
use strict;
use warnings;

use Cwd ();
use FindBin;
use Test::More;

use lib "$FindBin::Bin/../lib";

my ($built) = grep { -e } map { Cwd::abs_path("$FindBin::Bin/..") . "/$_" }
    'blib/arch/auto/Hob/Native/Native.so';
$ENV{HOB_NATIVE} //= $built;
plan skip_all => 'Hob::Native is not built (perl Makefile.PL && make, or HOB_NATIVE)'
    if !defined $ENV{HOB_NATIVE} || $ENV{HOB_NATIVE} eq 'off';
plan skip_all => 'no libhob (HOB_LIBRARY)' if do {
    require Hob::Native;
    Hob::Native::_load($ENV{HOB_NATIVE}) or die "HOB_NATIVE=$ENV{HOB_NATIVE} cannot be loaded";
    defined Hob::Native::open_library($ENV{HOB_LIBRARY} // Hob::Native::LIBRARY());
};

for my $test (qw(loop scripts suite probe samples)) {
    my $output = `$^X -I$FindBin::Bin/../lib $FindBin::Bin/$test.t 2>&1`;
    is($?, 0, $test) or diag $output;
}
done_testing;
