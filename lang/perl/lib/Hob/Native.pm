package Hob::Native;

# Finds the native part: the module built from Native.xs, and the libhob that it calls. Without
# either of them Hob::Stream does the same work. The module is taken from the folder of native parts
# that came with the server, else an installed one; the library from beside that folder's module, or
# from where the system's loader finds it.

use 5.026;
use strict;
use warnings;

use Config;

our $VERSION = '1.0';

use constant {
    LIBRARY   => 'libhob.so.1',
    INTERFACE => 5,                # what this file and the compiled module must agree on
};

# The folder of native parts that came with the server; set by the host that it starts.
our $folder;

# The connection through libhob, with the calls of Hob::Stream; nothing without it.
sub connect {
    my ($class) = @_;
    my $wanted = $ENV{HOB_NATIVE} // '';
    return if $wanted eq 'off' || !defined $ENV{HOB_FD} || !_load($wanted) || !_open();
    connect_server();
    delete $ENV{HOB_FD};    # libhob has taken it from the process, not from %ENV
    return bless {}, $class;
}

# Names the build that fits this perl: a module for another one would end the process.
sub build_name {
    return sprintf '%vd-%s-%x', $^V, $Config{archname},
        unpack '%32C*', join ' ', (Internals::V())[0, 1];
}

# Loads the compiled module: that which HOB_NATIVE names, the server's, or an installed one.
sub _load {
    my ($wanted) = @_;
    return 1 if defined &interface;
    if (length $wanted) {
        return 1 if eval { _load_file($wanted) };
        print STDERR "HOB_NATIVE=$wanted: ", $@ || "it is for another hob\n";
        return;
    }
    my $file = defined $folder ? "$folder/perl/" . build_name() . '.so' : '';
    if (length $file && -e $file) {
        return 1 if eval { _load_file($file) };
        my $problem = $@ || "it is for another hob\n";
        chomp $problem;
        print STDERR "hob: $file: $problem; going on without it\n";
    }
    my $is_installed = eval {
        require Cwd;
        my $here = Cwd::getcwd();    # not from there, whoever it belongs to
        local @INC = grep { !ref && m{\A/} && $_ ne $here } @INC;
        require XSLoader;
        XSLoader::load(__PACKAGE__, $VERSION);
        interface() == INTERFACE;
    };
    return 1 if $is_installed;
    print STDERR "hob: there is no $file for this perl (`hob native build --perl $^X` makes it)",
        "; going on without it\n"
        if length $file && !-e $file;
    return;
}

sub _load_file {
    my ($path) = @_;
    require DynaLoader;
    my $file   = DynaLoader::dl_load_file($path) or die DynaLoader::dl_error(), "\n";
    my $symbol = DynaLoader::dl_find_symbol($file, 'boot_Hob__Native')
        or die "it is not Hob::Native\n";
    DynaLoader::dl_install_xsub('Hob::Native::bootstrap', $symbol, $path)->(__PACKAGE__);
    return interface() == INTERFACE;
}

# Has the module open its library, from the first place that has it.
sub _open {
    my $named = $ENV{HOB_LIBRARY};
    my $near  = defined $folder ? "$folder/" . LIBRARY : '';
    my $last = '';
    for my $path (defined $named ? $named : ((grep { length && -e } $near), LIBRARY)) {
        my $problem = open_library($path);
        return 1 if !defined $problem;
        $last = "$path: $problem";
    }
    my $begin = defined $named ? 'HOB_LIBRARY=' : 'hob: ';
    print STDERR "$begin$last; going on without it\n";
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
needs a compiled module for this very perl, and C<libhob.so.1>. Both come with the server, in its
folder C<lib/hob>, for Debian's perls; C<hob native build> builds it there for any other, and
C<Makefile.PL> installs it for programs that no server starts.

C<HOB_LIBRARY> names the library where the loader does not find it, C<HOB_NATIVE> the compiled
module where Perl does not (a path with a slash); C<HOB_NATIVE=off> keeps both out of use.

=over

=item connect

A connection with the methods of L<Hob::Stream>. Nothing when something is missing.

=back

=cut
