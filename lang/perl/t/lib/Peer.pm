package Peer;

# Plays the server for a program: starts it with a socket as descriptor 3, sends it requests and
# reads its answers, message by message. It never waits for ever: after a minute a test dies.

use 5.026;
use strict;
use warnings;

use Fcntl  ();
use POSIX  ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);

use constant HEAD => 'VCCvVV';

our %KIND = (
    hello => 1, request => 2, body => 3, cancel => 4, window => 5, reply => 6, drain => 7,
    33 => 'hello', 34 => 'head', 35 => 'data', 36 => 'end', 37 => 'info', 38 => 'window',
    39 => 'callout',
);

my @INDEXED = qw(
    REQUEST_METHOD REQUEST_URI SCRIPT_NAME PATH_INFO QUERY_STRING SERVER_PROTOCOL CONTENT_TYPE
    CONTENT_LENGTH HTTP_HOST HTTP_COOKIE REMOTE_ADDR SCRIPT_FILENAME SERVER_NAME SERVER_PORT
    REQUEST_SCHEME HTTP_USER_AGENT
);

# Starts @command; options: data_window, body_window, concurrency, dir, env, stderr (a path).
sub start {
    my ($class, $options, @command) = @_;
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        # The last descriptors first: 3 may be one of ours.
        my $fd = fileno $theirs;
        POSIX::dup2($fd, 3) if $fd != 3;
        fcntl $theirs, Fcntl::F_SETFD(), 0 if $fd == 3;
        if ($options->{stderr}) {
            open STDERR, '>', $options->{stderr} or die "$options->{stderr}: $!";
            open STDOUT, '>&', \*STDERR or die "stdout: $!";
        }
        $ENV{HOB_FD} = 3;
        my $env = $options->{env} // {};
        @ENV{keys %$env} = values %$env;
        chdir $options->{dir} or die "$options->{dir}: $!" if $options->{dir};
        exec @command or POSIX::_exit(127);
    }
    close $theirs;
    my $self = bless {
        socket => $ours,
        in     => '',
        pid    => $pid,
        id     => 0,
    }, $class;
    my $hello = pack 'vvVVCx3', $options->{concurrency} // 1, 0,
        $options->{data_window} // 262_144, $options->{body_window} // 65_536, 1;
    $self->send(hello => 0, $hello, small => 1);
    return $self;
}

# Starts the host of lib with a verb and a path.
sub host {
    my ($class, $options, @arguments) = @_;
    my $lib = $ENV{HOB_PERL_LIB} // Cwd::abs_path("$FindBin::Bin/../lib");
    return $class->start($options, $^X, "-I$lib", '-MHob::Host', '-e', 'Hob::Host::main(@ARGV)',
        @arguments);
}

sub pid { return $_[0]{pid} }

# One message: kind, id, payload, and small, flags, large by name.
sub send {
    my ($self, $kind, $id, $payload, %more) = @_;
    my $bytes = pack(HEAD, length $payload, $KIND{$kind}, $more{flags} // 0, $more{small} // 0,
        $id, $more{large} // 0) . $payload;
    while (length $bytes) {
        my $sent = syswrite $self->{socket}, $bytes;
        defined $sent or die "the program is gone: $!";
        substr $bytes, 0, $sent, '';
    }
    return;
}

# The next message as a hash with kind, id, flags, small, large, payload; undef at the end.
sub receive {
    my ($self) = @_;
    local $SIG{ALRM} = sub { die "the program said nothing for a minute" };
    alarm 60;
    my $message;
    until ($message = $self->_taken) {
        my $read = sysread $self->{socket}, $self->{in}, 65_536, length $self->{in};
        last if !$read;
    }
    alarm 0;
    return $message;
}

sub _taken {
    my ($self) = @_;
    return if length $self->{in} < 16;
    my ($bytes, $kind, $flags, $small, $id, $large) = unpack HEAD, $self->{in};
    return if length $self->{in} < 16 + $bytes;
    my $payload = substr $self->{in}, 16, $bytes;
    substr $self->{in}, 0, 16 + $bytes, '';
    return {
        kind => $KIND{$kind} // $kind, flags => $flags, small => $small, id => $id,
        large => $large, payload => $payload,
    };
}

# Sends the head of a request and returns its id. Options: env, has_body, length.
sub request {
    my ($self, %options) = @_;
    my %env = (
        GATEWAY_INTERFACE => 'CGI/1.1', SERVER_SOFTWARE => 'hob', SERVER_PROTOCOL => 'HTTP/1.1',
        SERVER_NAME => '127.0.0.1', SERVER_PORT => 80, REQUEST_SCHEME => 'http',
        REMOTE_ADDR => '127.0.0.1', REQUEST_METHOD => 'GET', SCRIPT_NAME => '', PATH_INFO => '/',
        REQUEST_URI => '/', QUERY_STRING => '', HTTP_HOST => 'localhost',
        %{ $options{env} // {} },
    );
    my $id = ++$self->{id};
    $self->send(request => $id, block(\%env, $options{length}),
        flags => $options{has_body} ? 0 : 1);
    return $id;
}

sub block {
    my ($env, $length) = @_;
    my ($strings, %where) = ('');
    for my $name (sort keys %$env) {
        $strings .= "$name\0";
        $where{$name} = [144 + length $strings, length $env->{$name}];
        $strings .= "$env->{$name}\0";
    }
    my @index = map { $where{$_} ? @{ $where{$_} } : (0, 0) } @INDEXED;
    $length = ~0 if !defined $length;
    return pack('VvvQ<V32', 144 + length $strings, scalar keys %$env, 16, $length, @index)
        . $strings;
}

# A body in pieces, as far as the windows let it go.
sub body {
    my ($self, $id, $bytes, $window) = @_;
    $window //= 65_536;
    do {
        while ($window <= 0) {
            my $message = $self->receive or die 'the program is gone';
            if    ($message->{kind} eq 'window') { $window += $message->{large} }
            elsif ($message->{kind} eq 'hello')  { $self->{hello} = $message }
            else {
                push @{ $self->{early} }, $message;
                return if $message->{flags} & 1 || $message->{kind} eq 'end';
                $self->_grant($message);
            }
        }
        my $size = length $bytes;
        $size = $window if $size > $window;
        $size = 16_384  if $size > 16_384;
        my $piece = substr $bytes, 0, $size, '';
        $window -= $size;
        $self->send(body => $id, $piece, flags => length $bytes ? 0 : 1);
    } while (length $bytes);
    return;
}

# Lets the program send as much again.
sub _grant {
    my ($self, $message) = @_;
    return if $message->{kind} ne 'data' || $message->{flags} & 1 || $message->{is_granted}++;
    $self->send(window => $message->{id}, '', large => length $message->{payload});
    return;
}

# The whole answer to a request, which gives the program window as it goes:
# {status, fields, body, failed, info => [...]}.
sub answer {
    my ($self, $id, %options) = @_;
    my %answer = (body => '', info => [], callouts => []);
    while (my $message = shift @{ $self->{early} // [] } // $self->receive) {
        my $kind = $message->{kind};
        if ($kind eq 'window') { next }
        if ($kind eq 'hello')  { $self->{hello} = $message; next }
        if ($kind eq 'callout') {
            push @{ $answer{callouts} }, $message->{payload};
            my $is_known = $message->{payload} =~ /\A(?:LOG|TRACE|TIMEOUT|LIFETIME|MAP-PATH|NOOP)\b/i;
            my $reply    = $is_known ? '200 ok' : '400 unknown callout';
            $self->send(reply => $message->{id}, $reply, small => $message->{small})
                if !($message->{flags} & 4);
            next;
        }
        die "a message for request $message->{id}, not $id" if $message->{id} != $id;
        if ($kind eq 'head') { @answer{qw(status fields)} = @$message{qw(small payload)} }
        if ($kind eq 'info') { push @{ $answer{info} }, [@$message{qw(small payload)}] }
        if ($kind eq 'data') {
            $answer{body} .= $message->{payload};
            $self->_grant($message);
            $options{on_data}->($self, $message) if $options{on_data};
        }
        if ($kind eq 'end') {
            $answer{ $message->{flags} & 16 ? 'failed' : 'trailers' } = $message->{payload};
            return \%answer;
        }
        return \%answer if $message->{flags} & 1 && ($kind eq 'head' || $kind eq 'data');
    }
    $answer{gone} = 1;
    return \%answer;
}

# A request and its answer.
sub get {
    my ($self, %options) = @_;
    my $body = $options{body};
    my $id   = $self->request(
        env      => $options{env},
        has_body => defined $body,
        length   => $options{length} // (defined $body ? length $body : 0),
    );
    $self->body($id, $body) if defined $body;
    return $self->answer($id);
}

# The exit code of the program once it has ended by itself.
sub wait {
    my ($self) = @_;
    local $SIG{ALRM} = sub { die "the program did not end for a minute" };
    alarm 60;
    waitpid $self->{pid}, 0;
    alarm 0;
    delete $self->{pid};
    return $? & 127 ? 128 + ($? & 127) : $? >> 8;
}

# What ends the program if the test has not.
sub DESTROY {
    my ($self) = @_;
    local ($?, $!);
    close $self->{socket} if $self->{socket};
    if ($self->{pid}) { kill KILL => $self->{pid}; waitpid $self->{pid}, 0 }
    return;
}

1;
