# Builds the native parts for this perl: `perl build_native.pl FOLDER` makes FOLDER/NAME.so, the
# module Hob::Native, and FOLDER/NAME-warm.so, the loops of a warm host, where NAME says which perl
# they are for. Ends with 2 and says why where they cannot be built. To install the modules for
# programs that are not started by the server, use Makefile.PL.

use 5.026;
use strict;
use warnings;

use Config;
use Cwd ();
use File::Basename ();
use File::Spec ();

my $here = File::Basename::dirname(Cwd::abs_path($0));
require "$here/lib/Hob/Native.pm";

my ($folder) = @ARGV or die "usage: perl build_native.pl FOLDER\n";
my $header = $ENV{HOB_INCLUDE} // "$here/../../crates/libhob/include";
my $core   = "$Config{archlibexp}/CORE";
-e "$core/perl.h"  or leave_out('no headers of this perl (Debian: perl)');
-e "$header/hob.h" or leave_out("no hob.h in $header");
eval { require ExtUtils::ParseXS; 1 } or leave_out('no ExtUtils::ParseXS');
my ($typemap) = grep { -e } map { "$_/ExtUtils/typemap" } @INC;
my ($compiler) = split ' ', $Config{cc};
grep { -x "$_/$compiler" } File::Spec->path or leave_out("no C compiler $compiler (Debian: gcc)");

my $name = Hob::Native::build_name();
build("$here/lib/Hob/Native.xs", $name, $header, "$here/lib/Hob");
build("$here/host/Warm.xs", "$name-warm", "$here/../c/host");

# Compiles a module into a file, which appears whole or not at all. Every name is bound when it is
# loaded: a fork that had to find one would do so each time. Nothing tells where it was built.
sub build {
    my ($source, $made, @folders) = @_;
    my $base    = "$folder/$made.$$";
    my $include = join ' ', map { qq{-I"$_"} } @folders;
    ExtUtils::ParseXS->new->process_file(
        filename => $source, output => "$base.c", typemap => $typemap,
        prototypes => 0, versioncheck => 0,
    );
    my $command = "$Config{cc} $Config{ccflags} $Config{optimize} $Config{cccdlflags} -I$core"
        . qq{ $include -ffile-prefix-map="$base=$made" -ffile-prefix-map="$here=."}
        . qq{ -o "$base.so" "$base.c" $Config{lddlflags} -Wl,-z,now -ldl};
    my $failed = system $command;
    unlink "$base.c";
    exit 1 if $failed;
    rename "$base.so", "$folder/$made.so" or die "$folder/$made.so: $!\n";
    return;
}

sub leave_out {
    print STDERR "left out: $_[0]\n";
    exit 2;
}
