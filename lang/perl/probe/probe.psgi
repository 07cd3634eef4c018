# Answers the shared cases of lang/probe/cases.json as a PSGI application.

use 5.026;
use strict;
use warnings;

my $DIGITS = '0123456789abcdef';
my @TEXT   = ('Content-Type' => 'text/plain');
my @BYTES  = ('Content-Type' => 'application/octet-stream');

# By the first word of the path; each takes the environment and the words after it.
my %ANSWER = (
    hello   => sub { [200, [@TEXT, 'Content-Length' => 12], ["Hello world\n"]] },
    empty   => sub { [200, [@TEXT], []] },
    environ => sub { [200, [@TEXT], [environ($_[0])]] },
    echo    => sub { defined $_[1] ? echo_stream($_[0]) : [200, [type($_[0])], $_[0]{'psgi.input'}] },
    count   => sub { [200, [@TEXT], [length(body($_[0])) . "\n"]] },
    ignore  => sub { [200, [@TEXT], ["ignored\n"]] },
    status  => sub { $_[1] =~ /\A[23]04\z/ ? [$_[1], [], []] : [$_[1], [@TEXT], ["status $_[1]\n"]] },
    redirect => sub { [302, [Location => 'https://example.invalid/there'], []] },
    fields   => sub { [200, [fields()], ["fields\n"]] },
    type     => sub { [200, ['Content-Type' => 'image/svg+xml'], ['<svg/>']] },
    size     => sub { [200, [@BYTES, 'Content-Length' => $_[1]], [digits(0, $_[1])]] },
    stream   => sub { stream(@_[1, 2]) },
    slow     => sub { slow($_[1]) },
    early    => sub { early($_[0]) },
    fail     => sub { fail($_[1]) },
    callout  => sub { [200, [@TEXT], [callout($_[0], $_[1]) . "\n"]] },
);

sub environ {
    my ($env) = @_;
    my $text = '';
    for my $name (split /,\s*/, $env->{HTTP_X_SHOW} // '') {
        $text .= defined $env->{$name} ? "$name=$env->{$name}\n" : "$name is not set\n";
    }
    return $text;
}

sub type { return ('Content-Type' => $_[0]{CONTENT_TYPE} // 'application/octet-stream') }

sub body {
    my ($env) = @_;
    local $/;
    return readline($env->{'psgi.input'}) // '';
}

sub echo_stream {
    my ($env) = @_;
    return sub {
        my $writer = $_[0]->([200, [type($env)]]);
        while (read $env->{'psgi.input'}, my $piece, 16_384) { $writer->write($piece) }
        $writer->close;
    };
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
    my ($bytes, $piece) = @_;
    return sub {
        my $writer = $_[0]->([200, [@BYTES]]);
        for (my $at = 0; $at < $bytes; $at += $piece) {
            my $size = $bytes - $at < $piece ? $bytes - $at : $piece;
            $writer->write(digits($at, $size));
        }
        $writer->close;
    };
}

sub slow {
    my ($count) = @_;
    return sub {
        my $writer = $_[0]->([200, [@TEXT]]);
        $writer->write("line $_\n") for 1 .. $count;
        $writer->close;
    };
}

sub early {
    my ($env) = @_;
    my $inform = $env->{'psgix.informational'};
    $inform->(103, [Link => '</style.css>; rel=preload']) if $inform;
    return [200, [@TEXT], ["early\n"]];
}

sub fail {
    my ($when) = @_;
    die "failed before\n" if $when eq 'before';
    return sub {
        my $writer = $_[0]->([200, [@TEXT]]);
        $writer->write('some');
        die "failed after\n";
    };
}

my %QUESTION = (
    noop => 'NOOP', unknown => 'SING', timeout => 'TIMEOUT: 30', map => 'MAP-PATH: /',
);

sub callout {
    my ($env, $which) = @_;
    my $request = $env->{'hob.request'};
    return substr $request->callout($QUESTION{$which}), 0, 3 if $QUESTION{$which};
    $request->tell('LOG: info probe');
    $request->tell('TRACE: probe');
    return 'logged';
}

sub {
    my ($env) = @_;
    my (undef, $first, @words) = split m{/}, $env->{PATH_INFO};
    my $answer = $ANSWER{$first} or return [404, [@TEXT], ["no such case\n"]];
    return $answer->($env, @words);
};
