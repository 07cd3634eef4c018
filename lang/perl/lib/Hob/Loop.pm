package Hob::Loop;

# One request as a program's own loop sees it, whether it came over a server's socket or, once per
# process, as plain CGI. The two ways differ only in where bytes come from and go to: `Hob::Stream::
# Request` is one, `Hob::Loop::CGI` at the end of this file the other, with the same methods.

use 5.026;
use strict;
use warnings;

use Hob::Stream;

our $VERSION = '1.0';

use constant IN_MEMORY_BYTES_MAX => 1_048_576;    # of a body that `body` stores

# The source of requests: a connection, or the one request of plain CGI.
sub source {
    return Hob::Stream->connect // Hob::Loop::CGI->new;
}

sub new {
    my ($class, $request) = @_;
    return bless { request => $request }, $class;
}

# The CGI variables.
sub env { return $_[0]{env} //= $_[0]{request}->env }

sub method { return $_[0]->env->{REQUEST_METHOD} // 'GET' }
sub path   { return $_[0]->env->{PATH_INFO}      // '' }
sub query  { return $_[0]->env->{QUERY_STRING}   // '' }

# A field of the request, by its name in HTTP.
sub field {
    my ($self, $name) = @_;
    (my $variable = uc $name) =~ tr/-/_/;
    my $env = $self->env;
    return $env->{"HTTP_$variable"}
        // ($variable =~ /\ACONTENT_(?:TYPE|LENGTH)\z/ ? $env->{$variable} : undef);
}

# Bytes of the body; undef when only its end will tell.
sub content_length { return $_[0]{request}->content_length }

# More of the body, at most so many bytes, as soon as there is any; '' at its end.
sub read {
    my ($self, $bytes_max) = @_;
    return $self->{request}->read_body($bytes_max);
}

# The body as a handle. It is read to its end first, into memory or into a file without a name.
sub body {
    my ($self) = @_;
    return $self->{body} if $self->{body};
    my ($bytes, $file) = ('');
    while (length(my $piece = $self->{request}->read_body)) {
        if ($file) { print $file $piece or die "a body cannot be stored: $!\n"; next }
        $bytes .= $piece;
        next if length $bytes <= IN_MEMORY_BYTES_MAX;
        open $file, '+>', undef or die "a body cannot be stored in a file: $!\n";
        binmode $file;
        print $file $bytes or die "a body cannot be stored: $!\n";
        $bytes = '';
    }
    if ($file) { seek $file, 0, 0 or die "a stored body cannot be read: $!\n" }
    else       { open $file, '<', \$bytes or die "a body cannot be read from memory: $!\n" }
    return $self->{body} = $file;
}

# The whole answer. Strings with characters beyond bytes are sent as UTF-8.
sub respond {
    my ($self, $status, $fields, $body) = @_;
    $self->{request}->answer($status, _lines($fields), _bytes($body // ''));
    return;
}

# The head of an answer whose body follows with `write` and ends with `finish`.
sub start {
    my ($self, $status, $fields) = @_;
    $self->{request}->begin($status, _lines($fields));
    return;
}

# A piece of the body; false once the client has left.
sub write {
    my ($self, $data) = @_;
    my $request = $self->{request};
    $request->is_begun or die "write comes after start\n";
    return $request->write(_bytes($data));
}

# The end of the body, with trailer fields if there are any.
sub finish {
    my ($self, $trailers) = @_;
    $self->{request}->finish($trailers ? _lines($trailers) : '');
    return;
}

# Ends the answer as failed; the reason is for the server's log.
sub fail {
    my ($self, $reason) = @_;
    $self->{request}->fail("$reason");
    return;
}

# An interim answer, such as 103 with Link fields.
sub info {
    my ($self, $status, $fields) = @_;
    $self->{request}->info($status, _lines($fields));
    return;
}

# True once the client has left: what is still written goes nowhere.
sub is_canceled {
    my ($self) = @_;
    my $request = $self->{request};
    $request->poll;
    return !!$request->is_canceled;
}

sub is_finished { return !!$_[0]{request}->is_over }

sub log   { $_[0]{request}->tell("LOG: $_[1] $_[2]"); return }
sub trace { $_[0]{request}->tell("TRACE: $_[1]");     return }

# Seconds that this request may take in all.
sub timeout { $_[0]{request}->tell("TIMEOUT: $_[1]"); return }

# Any question to the server; "200 text" is what comes back.
sub callout { return $_[0]{request}->callout($_[1]) }

# The file behind a path of this site; undef if there is none.
sub map_path {
    my ($self, $path) = @_;
    my $reply = $self->{request}->callout("MAP-PATH: $path") // '';
    return $reply =~ /\A200 (.*)\z/s ? $1 : undef;
}

# Ends what the program left open before it takes the next request.
sub _leave {
    my ($self) = @_;
    my $request = $self->{request};
    return if $request->is_over;
    return $request->finish if $request->is_begun;
    $request->fail("the program took its next request without answering this one");
    return;
}

# Fields, an array of names and values, as lines.
sub _lines {
    my ($pairs) = @_;
    $pairs //= [];
    die "fields are an array of names and values\n" if ref $pairs ne 'ARRAY' || @$pairs % 2;
    my $lines = '';
    for (my $at = 0; $at < @$pairs; $at += 2) {
        $lines .= "$pairs->[$at]: $pairs->[$at + 1]\n";
    }
    $lines = _bytes($lines);
    die "a field has a line end or a NUL in it\n"
        if $lines =~ tr/\n// != @$pairs / 2 || $lines =~ tr/\r\0//;
    return $lines;
}

sub _bytes {
    my ($text) = @_;
    utf8::encode($text) if !utf8::downgrade($text, 1);
    return $text;
}

package Hob::Loop::CGI;

# The one request of a process that a server started as plain CGI: variables from the environment,
# the body from standard input, the answer to standard output.

use strict;
use warnings;

sub new {
    binmode STDIN;
    binmode STDOUT;
    return bless { is_taken => 0, env => {%ENV} }, $_[0];
}

# Itself, once.
sub next {
    my ($self) = @_;
    return if $self->{is_taken}++;
    return $self;
}

sub env         { return $_[0]{env} }
sub is_over     { return $_[0]{is_over} }
sub is_begun    { return $_[0]{is_begun} }
sub is_canceled { return $_[0]{is_canceled} }
sub concurrency { return 1 }
sub is_draining { return 1 }
sub poll        { return }
sub info        { return }
sub callout     { return '400 there is no server to ask' }

sub tell {
    my ($self, $text) = @_;
    print STDERR "$2\n" if $text =~ /\A(LOG|TRACE): (.*)\z/s;
    return;
}

sub content_length {
    my $length = $_[0]{env}{CONTENT_LENGTH};
    return defined $length && $length =~ /\A[0-9]+\z/ ? $length : 0;
}

sub read_body {
    my ($self, $bytes_max) = @_;
    my $left = $self->{left} //= $self->content_length;
    my $size = defined $bytes_max && $bytes_max < 65_536 ? $bytes_max : 65_536;
    $size = $left if $size > $left;
    return '' if !$size || !sysread STDIN, my ($piece), $size;
    $self->{left} -= length $piece;
    return $piece;
}

sub answer {
    my ($self, $status, $fields, $body) = @_;
    $self->begin($status, $fields);
    $self->write($body);
    return $self->finish;
}

sub begin {
    my ($self, $status, $fields) = @_;
    return if $self->{is_begun}++;
    print STDOUT $status ? "Status: $status\n" : '', $fields, "\n";
    STDOUT->flush;
    return;
}

sub write {
    my ($self, $data) = @_;
    return 0 if $self->{is_over};
    local $SIG{PIPE} = 'IGNORE';
    return 1 if print STDOUT $data and STDOUT->flush;
    $self->{is_canceled} = 1;
    return 0;
}

sub finish {
    my ($self) = @_;
    $self->begin(0, '') if !$self->{is_over}++;
    return;
}

sub fail {
    my ($self, $reason) = @_;
    return if $self->{is_over}++;
    chomp $reason;
    print STDERR "$reason\n";
    $self->begin(500, "Content-Type: text/plain\n");
    return;
}

1;

__END__

=head1 NAME

Hob::Loop - a request in a program's own loop

=head1 SYNOPSIS

    use Hob;

    my $count = 0;
    while (my $request = Hob->accept) {
        $count++;
        $request->respond(200, ['Content-Type' => 'text/plain'], "request $count\n");
    }

=head1 DESCRIPTION

What C<< Hob->accept >> returns. A program that no server keeps resident gets one request from its
environment, as plain CGI.

=head2 The request

=over

=item env, method, path, query, field($name)

The CGI variables as a hash; C<REQUEST_METHOD>, C<PATH_INFO> and C<QUERY_STRING>; a field by its
name in HTTP, C<< $request->field('User-Agent') >>.

=item content_length, read($bytes_max), body

The body piece by piece, or as a handle that can be rewound. The client is slowed down to the pace
of C<read>.

=back

=head2 The answer

Fields are an array of names and values. Bodies are bytes; a string with characters beyond U+00FF
is sent as UTF-8.

=over

=item respond($status, $fields, $body)

=item start($status, $fields), write($data), finish($trailers)

C<write> waits while the client is slow, and returns false once it has left.

=item fail($reason)

500 if the answer has not begun, else it breaks off; the reason goes to the server's log.

=item info($status, $fields)

An interim answer, for example 103.

=item is_canceled, is_finished

=back

=head2 The server

=over

=item log($level, $text), trace($text)

A line in the server's log, or in the live trace of this request.

=item timeout($seconds)

How long this request may take in all.

=item callout($text)

Any other question, C<KEYWORD: parameters>; C<"200 text"> is what comes back.

=item map_path($path)

The file behind a path of the site.

=back

A request that is not answered when the next one is taken is ended as failed.

=cut
