package Hob::Host;

# What a server starts when its config names a Perl file instead of a program to run: this module
# loads the file and serves it. It is also what `perl -MHob::Host -e 'Hob::Host::main(@ARGV)'` runs.

use 5.026;
use strict;
use warnings;

use Carp     ();
use Cwd      ();
use IO::Handle;
use overload ();

our $VERSION = '1.0';

my %VERBS = (
    psgi    => \&_psgi,
    scripts => \&_scripts,
    loop    => \&_loop,
);

# psgi FILE, scripts DIR or loop FILE; does not return.
sub main {
    my ($verb, $path, @more) = @_;
    my $serve = defined $verb ? $VERBS{$verb} : undef;
    if (!$serve || !defined $path || @more) {
        print STDERR "Hob::Host: expected psgi FILE, scripts DIR or loop FILE\n";
        CORE::exit(2);
    }
    open STDIN, '<', '/dev/null' or die "Hob::Host: /dev/null cannot be opened: $!\n";
    STDERR->autoflush(1);
    $SIG{TERM} = \&end_with_stack;
    my $here = Cwd::getcwd();
    unshift @INC, $here if defined $here;
    @ARGV = ();
    if (!eval { $serve->($path =~ m{\A/} ? $path : "$here/$path"); 1 }) {
        chomp(my $error = "$@");
        print STDERR "$error\n";
        CORE::exit(1);
    }
    CORE::exit(0);
}

# The server has lost patience: what was being done goes to its log.
sub end_with_stack {
    print STDERR _stack();
    CORE::exit(143);
}

# A sub of its own, because Carp begins with the caller of the sub that calls it. Without arguments,
# which can be secrets.
sub _stack {
    local $Carp::MaxArgNums = -1;
    return Carp::longmess('stopped by SIGTERM while running');
}

sub _psgi {
    my ($file) = @_;
    require Hob::PSGI;
    require Hob::Stream;
    $ENV{PLACK_ENV} //= 'deployment';
    my $app = load_psgi($file);
    Hob::PSGI->serve($app, _connect());
    return;
}

sub _scripts {
    my ($folder) = @_;
    require Hob::Scripts;
    require Hob::Stream;
    $folder =~ s{/+\z}{};
    -d $folder or die "$folder is not a folder: $!\n";
    Hob::Scripts->new($folder)->serve(_connect());
    return;
}

sub _loop {
    my ($file) = @_;
    require Hob;
    local $0 = $file;
    _run_main($file);
    return;
}

# The application that a file returns as its last value.
sub load_psgi {
    my ($file) = @_;
    $0 = $file;
    my $app = _run_app($file);
    $app = $app->to_app if eval { $app->can('to_app') };
    return $app if ref $app eq 'CODE' || (ref $app && overload::Method($app, '&{}'));
    die "$file returns no PSGI application: its last value must be a reference to a sub\n";
}

sub _connect {
    return Hob::Stream->connect
        // die "HOB_FD is not set: a server starts this, see resident in its documentation\n";
}

# Files are run outside of this file's lexicals, each kind in a package of its own.
sub _run_app { package Hob::Host::App; return Hob::Host::_result($_[0], scalar do $_[0]) }
sub _run_main { package main; return Hob::Host::_result($_[0], scalar do $_[0]) }

sub _result {
    my ($file, $value) = @_;
    my ($error, $unreadable) = ($@, $!);
    return $value if defined $value;
    die $error    if $error;
    -r $file or die "$file cannot be read: $unreadable\n";
    return;
}

1;

__END__

=head1 NAME

Hob::Host - loads a Perl file and serves it

=head1 SYNOPSIS

    perl -MHob::Host -e 'Hob::Host::main(@ARGV)' psgi app.psgi

=head1 DESCRIPTION

A server starts this for the keys C<psgi>, C<scripts> and C<perl> of C<resident>. The working
directory is C<dir>, and modules are looked for there first.

=over

=item psgi FILE

The last value of the file is a PSGI application; see L<Hob::PSGI>.

=item scripts DIR

The CGI scripts in the folder, unchanged, each compiled once; see L<Hob::Scripts>.

=item loop FILE

A program that takes requests by itself; see L<Hob>.

=back

What cannot be loaded ends with code 1 and the reason on standard error, before the server is
told that the program is ready. SIGTERM writes the stack to standard error and ends with 143.

=cut
