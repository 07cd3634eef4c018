package Hob::Stream;

# The public stream protocol, version 1: how a resident program talks with its server over the
# socket it was started with. This file has the protocol and nothing above it: Hob::Loop, Hob::PSGI
# and Hob::Scripts are three ways to use it.
#
#  0 u32 bytes of payload    4 u8 kind    5 u8 flags    6 u16 small (meaning by kind)
#  8 u32 request id          12 u32 large (meaning by kind)              all little-endian

use 5.026;
use strict;
use warnings;

use Fcntl ();

our $VERSION = '1.0';

use constant {
    HEAD => 'VCCvVV',    # for pack and unpack

    # server to worker
    HELLO => 1, REQUEST => 2, BODY => 3, CANCEL => 4, WINDOW => 5, REPLY => 6, DRAIN => 7,

    # worker to server
    MY_HELLO => 33, ANSWER => 34, DATA => 35, FINISH => 36, INFO => 37, MY_WINDOW => 38,
    CALLOUT  => 39,

    # flags
    LAST => 1, TUNNEL => 2, QUIET => 4, CHUNK => 8, FAILED => 16,

    STREAM_CARRIER    => 1,
    HEAD_BYTES        => 16,
    BLOCK_HEAD_BYTES  => 144,
    PAYLOAD_BYTES_MAX => 65_536,
    REQUEST_BYTES_MAX => 131_072,
    READ_BYTES        => 65_536,
    UNKNOWN_LENGTH    => '18446744073709551615',
    NO_SIGNAL         => 0x4000,                   # MSG_NOSIGNAL of Linux: EPIPE, not SIGPIPE
};

# What the server may send, by kind: bytes of payload, flags, and whether it is about a request (1),
# about the worker (0) or about either (-1).
my @RULES = (
    undef,
    [PAYLOAD_BYTES_MAX, 0,    0],    # hello
    [REQUEST_BYTES_MAX, LAST, 1],    # request
    [PAYLOAD_BYTES_MAX, LAST, 1],    # body
    [0,                 0,    1],    # cancel
    [0,                 0,    1],    # window
    [PAYLOAD_BYTES_MAX, 0,    -1],   # reply
    [0,                 0,    0],    # drain
);

# The connection this process was started with, through libhob if that can be; undef when it was not started by a server.
sub connect {
    my ($class) = @_;
    my $fd = $ENV{HOB_FD};
    return if !defined $fd || $fd !~ /\A[0-9]+\z/;
    my $native = ($ENV{HOB_NATIVE} // '') ne 'off' && eval { require Hob::Native; 1 }
        && Hob::Native->connect;
    return $native if $native;
    open my $socket, '+<&=', $fd or die "HOB_FD names descriptor $fd, which is not open: $!\n";
    delete $ENV{HOB_FD};    # not for the programs that this one starts
    return $class->new($socket);
}

# Takes a connected socket, waits for the server's hello and answers it.
sub new {
    my ($class, $socket) = @_;
    binmode $socket;
    fcntl $socket, Fcntl::F_SETFD(), Fcntl::FD_CLOEXEC();
    my $self = bless {
        socket      => $socket,
        in          => '',
        waiting     => [],
        requests    => {},
        replies     => {},
        serial      => 0,
        is_draining => 0,
        is_open     => 1,
        pid         => $$,
    }, $class;
    while ($self->{is_open} && !defined $self->{concurrency}) { $self->_receive }
    $self->{is_open} or _leave();
    $self->_send(pack(HEAD, length "Hob.pm/$VERSION", MY_HELLO, 0, 1, 0, STREAM_CARRIER)
        . "Hob.pm/$VERSION");
    return $self;
}

# How many requests at once the server may send.
sub concurrency { return $_[0]{concurrency} }

# The next request; undef once the server wants no more of them to be taken, or has gone.
sub next {
    my ($self) = @_;
    until (@{ $self->{waiting} }) {
        return if $self->{is_draining} || !$self->{is_open};
        $self->_receive;
    }
    return shift @{ $self->{waiting} };
}

# Asks the server something; "200 text" is what comes back.
sub callout {
    my ($self, $text, $id) = @_;
    my $serial = $self->_callout($text, $id, 0);
    $self->_receive until exists $self->{replies}{$serial} || !$self->{is_open};
    $self->{is_open} or _leave();
    return delete $self->{replies}{$serial};
}

# Tells the server something and waits for nothing.
sub tell {
    my ($self, $text, $id) = @_;
    $self->_callout($text, $id, QUIET);
    return;
}

# Takes in what has come, without waiting.
sub poll {
    my ($self) = @_;
    while ($self->{is_open}) {
        my $readable = '';
        vec($readable, fileno $self->{socket}, 1) = 1;
        last if (select $readable, undef, undef, 0) < 1;
        $self->_receive;
    }
    return;
}

sub is_draining { return $_[0]{is_draining} }

# In a child: the connection belongs to the parent.
sub leave {
    my ($self) = @_;
    $self->{is_open} = 0;
    close $self->{socket};
    return;
}

sub _callout {
    my ($self, $text, $id, $flags) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    $text =~ tr/\r\n\0/   /;
    $text = substr $text, 0, PAYLOAD_BYTES_MAX;
    my $serial = $self->{serial} = ($self->{serial} + 1) & 0xffff;
    $self->_send(pack(HEAD, length $text, CALLOUT, $flags, $serial, $id // 0, 0) . $text);
    return $serial;
}

# Reads once, waiting if it must, and handles every message that is whole by then.
sub _receive {
    my ($self) = @_;
    my $in   = \$self->{in};
    my $read = sysread $self->{socket}, $$in, READ_BYTES, length $$in;
    if (!$read) {
        return if !defined $read && $!{EINTR};
        return $self->_wait_readable if !defined $read && ($!{EAGAIN} || $!{EWOULDBLOCK});
        $self->{is_open} = 0;
        return;
    }
    my $at  = 0;
    my $end = length $$in;
    while ($end - $at >= HEAD_BYTES) {
        my ($bytes, $kind, $flags, $small, $id, $large)
            = unpack HEAD, $at ? substr $$in, $at, HEAD_BYTES : $$in;
        my $rule = $RULES[$kind];
        $self->_refuse($kind, $flags, $id, $bytes)
            if !$rule
            || $bytes > $rule->[0]
            || $flags & ~$rule->[1]
            || ($rule->[2] >= 0 && $rule->[2] != !!$id);
        last if $end - $at - HEAD_BYTES < $bytes;
        if ($kind == REQUEST) {
            my $request = bless {
                stream   => $self,
                id       => $id,
                block    => substr($$in, $at + HEAD_BYTES, $bytes),
                window   => $self->{data_window},
                is_whole => $flags & LAST,
            }, 'Hob::Stream::Request';
            $request->{has_body} = 1 if !$request->{is_whole};
            push @{ $self->{waiting} }, $self->{requests}{$id} = $request;
        }
        else {
            my $payload = substr $$in, $at + HEAD_BYTES, $bytes;
            $self->_handle($kind, $flags, $small, $id, $large, $payload);
        }
        $at += HEAD_BYTES + $bytes;
    }
    if   ($at == $end) { $$in = '' }
    else               { substr $$in, 0, $at, '' }
    return;
}

# Every message but a request.
sub _handle {
    my ($self, $kind, $flags, $small, $id, $large, $payload) = @_;
    if ($kind == BODY) {
        my $request = $self->{requests}{$id} or return;
        $request->{body} .= $payload if length $payload;
        $request->{is_whole} = 1 if $flags & LAST;
    }
    elsif ($kind == WINDOW) {
        my $request = $self->{requests}{$id} or return;
        $request->{window} += $large;
    }
    elsif ($kind == CANCEL) {
        my $request = $self->{requests}{$id} or return;
        $request->{is_canceled} = $request->{is_whole} = 1;
    }
    elsif ($kind == REPLY) { $self->{replies}{$small} = $payload }
    elsif ($kind == DRAIN) { $self->{is_draining} = 1 }
    elsif ($kind == HELLO) {
        $self->_end("version $small of the protocol") if $small != 1;
        $self->_end('a hello that is too short')      if length $payload < 12;
        @$self{qw(concurrency data_window body_window)} = unpack 'v x2 V V', $payload;
    }
    return;
}

# Writes all of it, whatever the socket takes at once. A child that was forked has no say: it ends
# instead of mixing its words into its parent's.
sub _send {
    my ($self, $bytes) = @_;
    _leave() if $$ != $self->{pid};
    my $sent = send $self->{socket}, $bytes, NO_SIGNAL;
    return if defined $sent && $sent == length $bytes;
    my $at = $sent // 0;
    while (1) {
        if (!defined $sent) {
            if    ($!{EAGAIN} || $!{EWOULDBLOCK}) { $self->_wait_writable }
            elsif (!$!{EINTR})                    { $self->{is_open} = 0; _leave() }
        }
        $sent = send $self->{socket}, substr($bytes, $at), NO_SIGNAL;
        $at += $sent if defined $sent;
        return       if $at >= length $bytes;
    }
}

sub _wait_readable {
    my ($self) = @_;
    my $readable = '';
    vec($readable, fileno $self->{socket}, 1) = 1;
    select $readable, undef, undef, undef;
    return;
}

sub _wait_writable {
    my ($self) = @_;
    my $writable = '';
    vec($writable, fileno $self->{socket}, 1) = 1;
    select undef, $writable, undef, undef;
    return;
}

# The server has gone: nobody waits for what is still being done.
sub _leave { CORE::exit(0) }

sub _refuse {
    my ($self, $kind, $flags, $id, $bytes) = @_;
    return $self->_end(
        "a message of kind $kind with flags $flags, for request $id, of $bytes bytes");
}

sub _end {
    my ($self, $what) = @_;
    print STDERR "Hob::Stream: the server sent $what, which this library cannot read; "
        . "use the Hob.pm that came with the server\n";
    CORE::exit(1);
}

package Hob::Stream::Request;

use strict;
use warnings;

BEGIN { *_HEAD = \&Hob::Stream::HEAD }

# The CGI variables, as a reference to a new hash.
sub env { return {$_[0]->pairs} }

# The same as a list of names and values.
sub pairs {
    return split /\0/, substr($_[0]{block}, Hob::Stream::BLOCK_HEAD_BYTES, -1), -1;
}

# Puts them into a hash.
sub fill {
    my ($self, $into) = @_;
    my %env = $self->pairs;
    @$into{ keys %env } = values %env;
    return;
}

# A common variable, by its place in the block's index.
sub indexed {
    my ($self, $place) = @_;
    my ($offset, $bytes) = unpack 'V2', substr $self->{block}, 16 + 8 * $place, 8;
    return $offset ? substr $self->{block}, $offset, $bytes : '';
}

# Bytes of the body, undef when not known before its end.
sub content_length {
    my $bytes = unpack 'x8 Q<', $_[0]{block};
    return $bytes eq Hob::Stream::UNKNOWN_LENGTH ? undef : $bytes;
}

sub has_body    { return $_[0]{has_body} }
sub is_over     { return $_[0]{is_over} }
sub is_begun    { return $_[0]{is_begun} }
sub is_canceled { return $_[0]{is_canceled} }

# More of the body, at most so many bytes, as soon as there is any; '' at its end.
sub read_body {
    my ($self, $bytes_max) = @_;
    my $stream = $self->{stream};
    until (defined $self->{body} || $self->{is_whole} || $self->{is_over}) {
        $stream->_receive;
        $stream->{is_open} or Hob::Stream::_leave();
    }
    my $piece = delete $self->{body} // '';
    if (defined $bytes_max && length $piece > $bytes_max) {
        $self->{body} = substr $piece, $bytes_max, length $piece, '';
    }
    if (!$self->{is_whole} && !$self->{is_over}) {
        my $unread = $self->{unread} += length $piece;
        if ($unread * 2 >= $stream->{body_window}) {
            $stream->_send(pack _HEAD, 0, Hob::Stream::MY_WINDOW, 0, 0, $self->{id}, $unread);
            $self->{unread} = 0;
        }
    }
    return $piece;
}

# The whole answer: status (0: as CGI, from the fields), lines of fields, body. Bytes only.
sub answer {
    my ($self, $status, $fields, $body) = @_;
    my $bytes = length $body;
    my $id    = $self->{id};
    if ($bytes > $self->{window} || $bytes > Hob::Stream::PAYLOAD_BYTES_MAX) {
        $self->begin($status, $fields);
        return $self->write($body, 1);
    }
    return if $self->{is_over};
    my $size = length $fields;
    $self->_check_fields($size) if $size > Hob::Stream::PAYLOAD_BYTES_MAX;
    $self->{stream}->_send(
        $bytes
        ? pack(_HEAD, $size, Hob::Stream::ANSWER, 0, $status, $id, 0)
            . $fields
            . pack(_HEAD, $bytes, Hob::Stream::DATA, Hob::Stream::LAST, 0, $id, 0)
            . $body
        : pack(_HEAD, $size, Hob::Stream::ANSWER, Hob::Stream::LAST, $status, $id, 0) . $fields
    );
    $self->{is_begun} = $self->{is_over} = 1;
    delete $self->{stream}{requests}{$id};
    return;
}

# The head alone; data follows. With `tunnel`, what follows is raw both ways.
sub begin {
    my ($self, $status, $fields, $tunnel) = @_;
    return if $self->{is_over} || $self->{is_begun};
    $self->_check_fields(length $fields);
    $self->{is_begun} = 1;
    $self->{is_head}  = 1 if $self->indexed(0) eq 'HEAD';    # nobody would see the body
    return if $self->{is_canceled};
    my $flags = $tunnel ? Hob::Stream::TUNNEL : 0;
    my $head  = pack _HEAD, length $fields, Hob::Stream::ANSWER, $flags, $status, $self->{id}, 0;
    $self->{stream}->_send($head . $fields);
    return;
}

# Data of the body; waits while the client reads slower than the program writes. False once the
# client has left.
sub write {
    my ($self, $data, $is_last) = @_;
    return 0 if $self->{is_over};
    my ($stream, $id) = @$self{qw(stream id)};
    my $at    = 0;
    my $bytes = length $data;
    $bytes = 0 if $self->{is_head};
    while ($at < $bytes && !$self->{is_canceled}) {
        my $size = $bytes - $at;
        $size = Hob::Stream::PAYLOAD_BYTES_MAX if $size > Hob::Stream::PAYLOAD_BYTES_MAX;
        if ($size > $self->{window}) {
            if ($self->{window} <= 0) {
                $stream->_receive;
                $stream->{is_open} or Hob::Stream::_leave();
                next;
            }
            $size = $self->{window};
        }
        my $flags = $is_last && $at + $size == $bytes ? Hob::Stream::LAST : 0;
        my $head  = pack _HEAD, $size, Hob::Stream::DATA, $flags, 0, $id, 0;
        $stream->_send($head . substr $data, $at, $size);
        $self->{window} -= $size;
        $at += $size;
        return $self->_close if $flags;
    }
    $self->finish if $is_last;
    return !$self->{is_canceled};
}

# Ends the answer, with trailer fields if there are any.
sub finish {
    my ($self, $trailers) = @_;
    return if $self->{is_over};
    $trailers //= '';
    my $head = pack _HEAD, length $trailers, Hob::Stream::FINISH, 0, 0, $self->{id}, 0;
    $self->{stream}->_send($head . $trailers);
    return $self->_close;
}

# Ends the answer as failed: 500 if it had not begun, else it breaks visibly. The reason is for the
# server's log and record.
sub fail {
    my ($self, $reason) = @_;
    return if $self->{is_over};
    utf8::encode($reason) if utf8::is_utf8($reason);
    $reason = substr $reason, 0, 8192;
    my $flags = Hob::Stream::FAILED;
    my $head  = pack _HEAD, length $reason, Hob::Stream::FINISH, $flags, 0, $self->{id}, 0;
    $self->{stream}->_send($head . $reason);
    return $self->_close;
}

# An interim answer, such as 103.
sub info {
    my ($self, $status, $fields) = @_;
    return if $self->{is_over} || $self->{is_begun} || $self->{is_canceled};
    $self->_check_fields(length $fields);
    my $head = pack _HEAD, length $fields, Hob::Stream::INFO, 0, $status, $self->{id}, 0;
    $self->{stream}->_send($head . $fields);
    return;
}

sub poll    { return $_[0]{stream}->poll }
sub callout { return $_[0]{stream}->callout($_[1], $_[0]{id}) }
sub tell    { return $_[0]{stream}->tell($_[1], $_[0]{id}) }

sub _close {
    my ($self) = @_;
    $self->{is_over} = 1;
    delete $self->{stream}{requests}{ $self->{id} };
    return !$self->{is_canceled};
}

sub _check_fields {
    my ($self, $bytes) = @_;
    return if $bytes <= Hob::Stream::PAYLOAD_BYTES_MAX;
    my $bytes_max = Hob::Stream::PAYLOAD_BYTES_MAX;
    die "the answer's fields are $bytes bytes; at most $bytes_max fit\n";
}

1;

__END__

=head1 NAME

Hob::Stream - the stream protocol of resident programs

=head1 SYNOPSIS

    my $stream = Hob::Stream->connect;    # undef when not started by a server
    while (my $request = $stream->next) {
        my $env = $request->env;
        $request->answer(200, "Content-Type: text/plain\n", "Hello, $env->{REMOTE_ADDR}\n");
    }

=head1 DESCRIPTION

A server that keeps programs resident starts them with a Unix socket, whose descriptor is in
C<HOB_FD>. This module speaks version 1 of the protocol over it, with Perl's own functions. Most
programs want L<Hob>, which is easier, or L<Hob::PSGI>.

Everything here takes and gives bytes, not characters.

=head2 The connection

=over

=item connect

Takes the socket named by C<HOB_FD> and says hello. Nothing if there is no C<HOB_FD>.

=item new($socket)

The same for a socket that is connected already.

=item next

Waits for a request. Nothing once the server asked to drain, or went away: then the program ends.

=item callout($text), tell($text)

A question to the server, C<KEYWORD: parameters>; C<callout> waits for the answer, C<"200 text">.

=item poll

Takes in what has come, without waiting, so that C<is_canceled> of a request is up to date.

=item leave

For a child that was forked: the connection stays its parent's.

=item concurrency, is_draining

=back

=head2 A request

=over

=item env, pairs

The CGI variables, as a new hash or as a list.

=item content_length, has_body, read_body($bytes_max)

The body as it comes; C<''> is its end. The server sends on as it is read.

=item answer($status, $fields, $body)

All at once. C<$fields> are lines, C<"Name: value\n">. With status 0 a field C<Status> or
C<Location> decides, as in CGI.

=item begin($status, $fields), write($data), finish($trailers)

Piece by piece. C<write> waits while the client is slow, and is false once the client has left.

=item fail($reason)

Ends the answer as failed.

=item info($status, $fields)

An interim answer.

=item callout($text), tell($text)

Those of the connection, about this request.

=item is_begun, is_over, is_canceled

=back

=cut
