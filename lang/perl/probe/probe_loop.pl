# Answers the shared cases of lang/probe/cases.json with a loop of its own.

use 5.026;
use strict;
use warnings;

use Hob;

my $DIGITS = '0123456789abcdef';
my @TEXT   = ('Content-Type' => 'text/plain');
my @BYTES  = ('Content-Type' => 'application/octet-stream');

# By the first word of the path; each takes the request and the words after it.
my %ANSWER = (
    hello   => sub { $_[0]->respond(200, [@TEXT, 'Content-Length' => 12], "Hello world\n") },
    empty   => sub { $_[0]->respond(200, [@TEXT], '') },
    environ => sub { $_[0]->respond(200, [@TEXT], environ($_[0]->env)) },
    echo    => sub { defined $_[1] ? echo_stream($_[0]) : echo($_[0]) },
    count   => sub { $_[0]->respond(200, [@TEXT], count($_[0]) . "\n") },
    ignore  => sub { $_[0]->respond(200, [@TEXT], "ignored\n") },
    status  => \&status,
    redirect => sub { $_[0]->respond(302, [Location => 'https://example.invalid/there'], '') },
    fields   => sub { $_[0]->respond(200, [fields()], "fields\n") },
    type     => sub { $_[0]->respond(200, ['Content-Type' => 'image/svg+xml'], '<svg/>') },
    size     => sub { $_[0]->respond(200, [@BYTES, 'Content-Length' => $_[1]], digits(0, $_[1])) },
    stream   => \&stream,
    slow     => \&slow,
    trailers => \&trailers,
    early    => \&early,
    fail     => \&fail,
    callout  => \&callout,
);

sub environ {
    my ($env) = @_;
    my $text = '';
    for my $name (split /,\s*/, $env->{HTTP_X_SHOW} // '') {
        $text .= defined $env->{$name} ? "$name=$env->{$name}\n" : "$name is not set\n";
    }
    return $text;
}

sub type {
    my ($request) = @_;
    return ('Content-Type' => $request->field('Content-Type') // 'application/octet-stream');
}

sub echo {
    my ($request) = @_;
    my $body = do { local $/; readline $request->body };
    return $request->respond(200, [type($request)], $body // '');
}

sub echo_stream {
    my ($request) = @_;
    $request->start(200, [type($request)]);
    while (length(my $piece = $request->read)) { $request->write($piece) }
    return $request->finish;
}

sub count {
    my ($request) = @_;
    my $count = 0;
    while (length(my $piece = $request->read)) { $count += length $piece }
    return $count;
}

sub status {
    my ($request, $status) = @_;
    return $request->respond($status, [], '') if $status =~ /\A[23]04\z/;
    return $request->respond($status, [@TEXT], "status $status\n");
}

sub fields {
    return (
        @TEXT,
        'Set-Cookie' => 'a=1; Path=/',
        'Set-Cookie' => 'b=2; HttpOnly',
        'X-Empty'    => '',
        'X-Long'     => 'l' x 4000,
        'X-Bytes'    => "\xc3\xa4\xc3\xb6\xc3\xbc",
    );
}

sub digits {
    my ($from, $bytes) = @_;
    return substr $DIGITS x ($bytes / 16 + 2), $from % 16, $bytes;
}

sub stream {
    my ($request, $bytes, $piece) = @_;
    $request->start(200, [@BYTES]);
    for (my $at = 0; $at < $bytes; $at += $piece) {
        my $size = $bytes - $at < $piece ? $bytes - $at : $piece;
        $request->write(digits($at, $size));
    }
    return $request->finish;
}

sub slow {
    my ($request, $count) = @_;
    $request->start(200, [@TEXT]);
    $request->write("line $_\n") for 1 .. $count;
    return $request->finish;
}

sub trailers {
    my ($request) = @_;
    $request->start(200, [@TEXT]);
    $request->write("body\n");
    return $request->finish(['X-Sum' => 5]);
}

sub early {
    my ($request) = @_;
    $request->info(103, [Link => '</style.css>; rel=preload']);
    return $request->respond(200, [@TEXT], "early\n");
}

sub fail {
    my ($request, $when) = @_;
    if ($when eq 'after') {
        $request->start(200, [@TEXT]);
        $request->write('some');
    }
    die "failed $when\n";
}

my %QUESTION = (
    noop => 'NOOP', unknown => 'SING', timeout => 'TIMEOUT: 30', map => 'MAP-PATH: /',
);

sub callout {
    my ($request, $which) = @_;
    my $text = 'logged';
    if ($QUESTION{$which}) { $text = substr $request->callout($QUESTION{$which}), 0, 3 }
    else                   { $request->log(info => 'probe'); $request->trace('probe') }
    return $request->respond(200, [@TEXT], "$text\n");
}

while (my $request = Hob->accept) {
    my (undef, $first, @words) = split m{/}, $request->path;
    my $answer = $ANSWER{$first};
    if (!$answer) { $request->respond(404, [@TEXT], "no such case\n"); next }
    eval { $answer->($request, @words); 1 } or $request->fail($@);
}
