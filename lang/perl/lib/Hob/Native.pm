package Hob::Native;

# Finds the accelerator: the module built from Native.xs, and the libhob that it calls. Without
# either of them Hob::Stream does the same work.

use 5.026;
use strict;
use warnings;

our $VERSION = '1.0';

use constant {
    LIBRARY => 'libhob.so.1',
    ABI     => 1,
};

# The connection through libhob, with the calls of Hob::Stream; nothing without it.
sub connect {
    my ($class) = @_;
    my $wanted = $ENV{HOB_NATIVE} // '';
    return if $wanted eq 'off' || !defined $ENV{HOB_FD} || !_load($wanted);
    my $library = $ENV{HOB_LIBRARY};
    my $problem = open_library($library // LIBRARY);
    if (defined $problem) {
        print STDERR "HOB_LIBRARY=$library: $problem; going on without it\n" if defined $library;
        return;
    }
    connect_server();
    delete $ENV{HOB_FD};    # libhob has taken it from the process, not from %ENV
    return bless {}, $class;
}

# Loads the compiled module: that which HOB_NATIVE names, or an installed one.
sub _load {
    my ($wanted) = @_;
    return 1 if defined &abi;
    my $is_loaded = eval {
        if ($wanted =~ m{/}) {
            require DynaLoader;
            my $file   = DynaLoader::dl_load_file($wanted) or die DynaLoader::dl_error(), "\n";
            my $symbol = DynaLoader::dl_find_symbol($file, 'boot_Hob__Native')
                or die "it is not Hob::Native\n";
            DynaLoader::dl_install_xsub('Hob::Native::bootstrap', $symbol, $wanted)->(__PACKAGE__);
        }
        else {
            require XSLoader;
            XSLoader::load(__PACKAGE__, $VERSION);
        }
        1;
    };
    return abi() == ABI if $is_loaded;
    print STDERR "HOB_NATIVE=$wanted: $@" if length $wanted;
    return;
}

sub poll  { return }
sub leave { return }    # libhob says so to a child by itself

# What is about no request: only the lifetime goes to the server.
sub tell {
    my ($self, $text) = @_;
    if    ($text =~ /\ALIFETIME:\s*(-?[0-9]+)/i) { set_lifetime($1) }
    elsif ($text =~ /\A(?:LOG|TRACE):\s*(.*)/si) { print STDERR "$1\n" }
    return;
}

package Hob::Native::Request;

use strict;
use warnings;

sub env { $_[0]->fill(\my %env); return \%env }
sub pairs { $_[0]->fill(\my %env); return %env }
sub poll { return }

sub tell {
    my ($self, $text) = @_;
    my ($keyword, $rest) = $text =~ /\A([^:]*):?\s*(.*)/s;
    utf8::encode($rest) if utf8::is_utf8($rest);
    $rest =~ tr/\r\n\0/   /;
    if    (uc $keyword eq 'LOG')     { $self->log(split /\s+/, $rest, 2) }
    elsif (uc $keyword eq 'TRACE')   { $self->trace($rest) }
    elsif (uc $keyword eq 'TIMEOUT') { $self->timeout($rest) }
    else                             { $self->callout($text) }
    return;
}

1;

__END__

=head1 NAME

Hob::Native - requests through libhob, in shared memory

=head1 DESCRIPTION

Used by L<Hob>, L<Hob::PSGI> and L<Hob::Scripts> in place of L<Hob::Stream> when it is there: it
needs the module that C<Makefile.PL> builds where it finds a C compiler and C<hob.h>, for each
version of Perl, and C<libhob.so.1>.

C<HOB_LIBRARY> names the library where the loader does not find it, C<HOB_NATIVE> the compiled
module where Perl does not (a path with a slash); C<HOB_NATIVE=off> keeps both out of use.

=over

=item connect

A connection with the methods of L<Hob::Stream>. Nothing when something is missing.

=back

=cut
