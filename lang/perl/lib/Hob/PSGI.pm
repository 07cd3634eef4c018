package Hob::PSGI;

# Runs a PSGI application on a connection of Hob::Stream: one request at a time, a short body read
# before the application is called, answers at once, later or as a stream.

use 5.026;
use strict;
use warnings;

use Hob::Stream;
use IO::Handle;

our $VERSION = '1.0';

use constant {
    IN_MEMORY_BYTES_MAX => 1_048_576,    # of a body; longer ones are read as they come, or go to a
                                         # file without a name
    READ_BYTES          => 65_536,
};

# Answers requests with the application until the server wants no more.
sub serve {
    my ($class, $app, $stream) = @_;
    my $nothing = _nothing();
    my $request;
    my $inform = sub { $request->info($_[0], _lines($_[1])) };
    my @fixed  = (    # first in every environment, copied at once
        'psgi.version'         => [1, 1],
        'psgi.errors'          => \*STDERR,
        'psgi.multithread'     => !!0,
        'psgi.multiprocess'    => !!1,
        'psgi.run_once'        => !!0,
        'psgi.nonblocking'     => !!0,
        'psgi.streaming'       => !!1,
        'psgix.input.buffered' => !!1,
        'psgix.cleanup'        => !!1,
        'psgix.harakiri'       => !!1,
        'psgix.informational'  => $inform,
    );
    my %base = (@fixed, 'psgi.input' => $nothing, 'psgi.url_scheme' => 'http',
        'hob.request' => undef, 'psgix.cleanup.handlers' => undef);
    my $is_native = ref $stream eq 'Hob::Native';    # it copies a hash faster than Perl a list
    while ($request = $stream->next) {
        if (!defined fileno $nothing) {
            $nothing = _nothing();
            %base    = (%base, 'psgi.input' => $nothing);
            $is_native and Hob::Native::forget();
        }
        my $env = $is_native ? $request->env_on(\%base) : {
            @fixed,
            'psgi.input'             => $nothing,
            'psgi.url_scheme'        => 'http',
            'psgix.cleanup.handlers' => [],
            'hob.request'            => $request,
            $request->pairs,
        };
        if (!$request->has_body) { }
        elsif ($is_native && ($request->content_length // 0) > IN_MEMORY_BYTES_MAX) {
            @$env{qw(psgi.input psgix.input.buffered)} = ($request->body_handle, !!0);
        }
        else { @$env{qw(psgi.input CONTENT_LENGTH)} = _body($request) }
        $env->{'psgi.url_scheme'} = 'https' if ($env->{REQUEST_SCHEME} // '') eq 'https';
        eval {
            my $response = $app->($env);
            if    ($is_native && $request->send_array($response)) { }
            elsif (ref $response eq 'CODE')                       { _later($request, $response) }
            else                                                  { _answer($request, $response) }
            1;
        } or _fail($request, $@);
        $request->is_over or _fail($request, "the application gave no answer\n");
        _clean_up($env) if @{ $env->{'psgix.cleanup.handlers'} };
        last            if $env->{'psgix.harakiri.commit'};
    }
    return;
}

# An answer that is there: [status, fields, body].
sub _answer {
    my ($request, $response) = @_;
    my ($status, $fields) = _head($response);
    my $body = $response->[2];
    return _send_handle($request, $status, $fields, $body) if ref $body ne 'ARRAY';
    my $bytes = @$body == 1 ? $body->[0] // '' : join '', map { $_ // '' } @$body;
    utf8::downgrade($bytes, 1) or die "the body has characters that are no bytes: encode it\n";
    return $request->answer($status, $fields, $bytes);
}

# An answer that the application gives later, or piece by piece.
sub _later {
    my ($request, $starter) = @_;
    $starter->(sub {
        my ($response) = @_;
        if (@$response == 3) {
            _answer($request, $response);
            return;
        }
        $request->begin(_head($response));
        return bless [$request], 'Hob::PSGI::Writer';
    });
    return;
}

# Status and lines of fields, checked.
sub _head {
    my ($response) = @_;
    die "the application returned no array with status, fields and body\n"
        if ref $response ne 'ARRAY' || @$response < 2;
    my $status = $response->[0];
    die "the application returned \"$status\" as status\n" if $status !~ /\A[1-9][0-9][0-9]\z/;
    return ($status, _lines($response->[1]));
}

sub _lines {
    my ($pairs) = @_;
    my ($lines, $at, $end) = ('', 0, scalar @$pairs);
    while ($at < $end) {
        $lines .= $pairs->[$at] . ': ' . ($pairs->[$at + 1] // '') . "\n";
        $at += 2;
    }
    utf8::downgrade($lines, 1) or die "a field has characters that are no bytes: encode them\n";
    die "a field has a line end or a NUL in it\n"
        if $lines =~ tr/\n// != $end / 2 || $lines =~ tr/\r\0//;
    return $lines;
}

# A body that is read: a file, or what has getline and close.
sub _send_handle {
    my ($request, $status, $fields, $body) = @_;
    die "the application returned a body that is neither an array nor a handle\n"
        if ref $body ne 'GLOB' && !eval { $body->can('getline') };
    local $/ = \READ_BYTES;
    my $piece = _read($body);
    my $is_short = defined $piece && length $piece < READ_BYTES && _is_at_end($body);
    if (!defined $piece || $is_short) {
        $request->answer($status, $fields, $piece // '');
    }
    else {
        $request->begin($status, $fields);
        while (defined $piece) {
            $request->write($piece) or last;
            $piece = _read($body);
        }
        $request->finish;
    }
    $body->close;
    return;
}

sub _read {
    my ($body) = @_;
    my $piece = ref $body eq 'GLOB' ? readline $body : $body->getline;
    return if !defined $piece;
    utf8::downgrade($piece, 1) or die "the body has characters that are no bytes: encode it\n";
    return $piece;
}

# Only a plain file can be asked without waiting for it.
sub _is_at_end {
    my ($body) = @_;
    return (ref $body eq 'GLOB' || eval { $body->isa('IO::Handle') })
        && (-f $body || (fileno $body // 0) == -1)
        && eof $body;
}

sub _nothing {
    open my $nothing, '<', \'' or die "an empty handle cannot be opened: $!\n";
    return $nothing;
}

# The whole body as a handle that can be rewound, and its bytes.
sub _body {
    my ($request) = @_;
    my ($bytes, $file) = ('');
    while (length(my $piece = $request->read_body)) {
        if ($file) { print $file $piece or die "a body cannot be stored: $!\n"; next }
        $bytes .= $piece;
        next if length $bytes <= IN_MEMORY_BYTES_MAX;
        open $file, '+>', undef or die "a body cannot be stored in a file: $!\n";
        binmode $file;
        print $file $bytes or die "a body cannot be stored: $!\n";
        $bytes = '';
    }
    if ($file) {
        my $size = tell $file;
        seek $file, 0, 0 or die "a stored body cannot be read: $!\n";
        return ($file, $size);
    }
    open my $memory, '<', \$bytes or die "a body cannot be read from memory: $!\n";
    return ($memory, length $bytes);
}

sub _clean_up {
    my ($env) = @_;
    for my $handler (@{ $env->{'psgix.cleanup.handlers'} }) {
        eval { $handler->($env); 1 } or _log($@);
    }
    return;
}

sub _fail {
    my ($request, $error) = @_;
    return if ref $error eq 'Hob::PSGI::Left';
    _log($error);
    $request->fail("$error");
    return;
}

sub _log {
    my ($error) = @_;
    chomp(my $line = "$error");
    print STDERR "$line\n";
    return;
}

package Hob::PSGI::Writer;

use strict;
use warnings;

sub write {
    my ($self, $data) = @_;
    my $request = $self->[0];
    $data //= '';
    utf8::downgrade($data, 1) or die "the body has characters that are no bytes: encode it\n";
    $request->poll;
    return length $data if length $data == 0 || $request->write($data);
    $request->finish;
    die bless [], 'Hob::PSGI::Left';
}

sub close {
    my ($self) = @_;
    $self->[0]->finish;
    return;
}

1;

__END__

=head1 NAME

Hob::PSGI - answers requests with a PSGI application

=head1 SYNOPSIS

    use Hob::PSGI;
    use Hob::Stream;

    my $app = sub { [200, ['Content-Type' => 'text/plain'], ["Hello\n"]] };
    Hob::PSGI->serve($app, Hob::Stream->connect);

In a server's config, C<resident = { psgi = "app.psgi" }> does this.

=head1 DESCRIPTION

PSGI 1.1: C<psgi.streaming> is true, C<psgi.nonblocking> and C<psgi.multithread> are false. Requests
come one after another; the server starts more processes when it helps.

A body of up to a mebibyte has been read when the application is called: C<psgi.input> can be read
again from the start (C<psgix.input.buffered> is true). A longer one is read as it comes, once, and
C<psgix.input.buffered> is false; without the native part, and where the client has not said how
long it is, it is in a file without a name and can be read again.

Beyond PSGI: C<psgix.informational> sends an interim answer,
C<< $env->{'psgix.informational'}->(103, [Link => '...']) >>. C<hob.request> is the
L<Hob::Stream> request, for its C<callout> and C<tell>. C<psgix.cleanup.handlers> are called when
the answer has been sent.
C<psgix.harakiri.commit> ends the process after the request; the server starts another.

An application that dies is answered with 500 if its answer had not begun, else the answer breaks
off; the message goes to the log. When the client has left, the writer of a streamed answer dies at
its next C<write>, so that an endless one ends.

=cut
