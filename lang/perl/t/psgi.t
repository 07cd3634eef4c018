# The PSGI host, driven over a socket as a server would.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use File::Temp ();
use FindBin;
use Test::More;

use lib "$FindBin::Bin/lib";
use Peer;

$ENV{HOB_NATIVE} = 'off';    # single messages are looked at

my $place = File::Temp->newdir;

sub app {
    my ($name, $code) = @_;
    open my $file, '>', "$place/$name" or die "$place/$name: $!";
    print $file $code;
    close $file or die "$place/$name: $!";
    return $name;
}

sub host {
    my ($code, %options) = @_;
    state $count = 0;
    my $name = app('app' . ++$count . '.psgi', "use strict; use warnings;\n$code");
    return Peer->host({ dir => "$place", stderr => "$place/stderr", %options }, psgi => $name);
}

sub log_text {
    open my $file, '<', "$place/stderr" or die "$place/stderr: $!";
    local $/;
    return scalar readline $file;
}

subtest 'an answer that is an array goes out as head and last data' => sub {
    my $peer   = host(q{sub { [201, ['X-A' => 1, 'X-A' => 2], ["Hello, ", "you\n"]] }});
    my $answer = $peer->get;
    is_deeply($answer,
        { status => 201, fields => "X-A: 1\nX-A: 2\n", body => "Hello, you\n", info => [],
            callouts => [] });
    is($peer->{hello}{small}, 1, 'the version of the protocol');
    is($peer->{hello}{large}, 1, 'the carrier');
    like($peer->{hello}{payload}, qr{\AHob\.pm/[0-9.]+\z});
};

subtest 'an answer without body is one message' => sub {
    my $peer    = host(q{sub { [304, [], []] }});
    my $id      = $peer->request;
    my $hello   = $peer->receive;
    my $message = $peer->receive;
    is($message->{kind},  'head');
    is($message->{flags}, 1);
    is($message->{small}, 304);
};

subtest 'the environment is that of PSGI and CGI' => sub {
    my $peer = host(q{
        sub {
            my $env = shift;
            my @keys = grep { !ref $env->{$_} } sort grep { /psgi|PATH_INFO|HTTP_X/ } keys %$env;
            [200, [], [map { "$_=$env->{$_}\n" } @keys]];
        }
    });
    my $answer = $peer->get(env => { HTTP_X_EMPTY => '', REQUEST_SCHEME => 'https' });
    is($answer->{body}, <<'END');
HTTP_X_EMPTY=
PATH_INFO=/
psgi.multiprocess=1
psgi.multithread=
psgi.nonblocking=
psgi.run_once=
psgi.streaming=1
psgi.url_scheme=https
psgix.cleanup=1
psgix.harakiri=1
psgix.input.buffered=1
END
};

subtest 'the path is what the server says, whatever was sent' => sub {
    my $peer = host(q{sub { [200, [], [$_[0]{PATH_INFO}]] }});
    my %env  = (SCRIPT_NAME => '/app', REQUEST_URI => '/app//a/..///b%20c%2Fd?x=//');
    is($peer->get(env => { %env, PATH_INFO => '///b c/d' })->{body}, '///b c/d');
};

subtest 'a body can be read, and read again' => sub {
    my $peer = host(q{
        sub {
            my $input = $_[0]{'psgi.input'};
            $input->read(my $first, 4);
            my $line = <$input>;
            seek $input, 0, 0;
            my $bytes = do { local $/; <$input> };
            [200, [], [join '|', $first, $line, length $bytes, $_[0]{CONTENT_LENGTH}]];
        }
    });
    is($peer->get(body => "first\nsecond\n", env => { CONTENT_LENGTH => 13 })->{body},
        "firs|t\n|13|13");
    is($peer->get(body => "first\nsecond\n", length => ~0)->{body},
        "firs|t\n|13|13", 'its length is known even if the client did not say');
};

subtest 'a body longer than any window arrives whole' => sub {
    my $peer = host(q{
        use Digest::MD5;
        sub {
            my $digest = Digest::MD5->new->addfile($_[0]{'psgi.input'})->hexdigest;
            [200, [], [$digest]];
        }
    });
    require Digest::MD5;
    for my $size (65_536, 300_000, 5_000_000) {
        my $bytes = join '', map { chr($_ * 7 % 251) } 1 .. 10_000;
        $bytes = substr $bytes x ($size / 10_000 + 1), 0, $size;
        is($peer->get(body => $bytes)->{body}, Digest::MD5::md5_hex($bytes), "$size bytes");
    }
};

subtest 'a body that is not read disturbs nothing' => sub {
    my $peer = host(q{sub { [200, [], ['done']] }});
    is($peer->get(body => 'x' x 200_000)->{body}, 'done');
    is($peer->get->{body}, 'done');
};

subtest 'data waits for the window' => sub {
    my $peer = host(q{sub { [200, [], ['x' x 100_000]] }}, data_window => 40_000);
    my $id   = $peer->request;
    $peer->receive;    # hello
    is($peer->receive->{kind}, 'head');
    my $data = $peer->receive;
    is(length $data->{payload}, 40_000);
    is($peer->{in},             '', 'nothing more');
    $peer->send(window => $id, '', large => 50_000);
    is(length $peer->receive->{payload}, 50_000);
    $peer->send(window => $id, '', large => 50_000);
    $data = $peer->receive;
    is(length $data->{payload}, 10_000);
    is($data->{flags},          1, 'the last');
};

subtest 'a long body is not sent for HEAD' => sub {
    my $peer   = host(q{sub { [200, ['Content-Length' => 900_000], ['x' x 900_000]] }});
    my $answer = $peer->get(env => { REQUEST_METHOD => 'HEAD' });
    is($answer->{fields}, "Content-Length: 900000\n");
    is($answer->{body},   '');
    is(length $peer->get->{body}, 900_000);
};

subtest 'a client that left frees the worker' => sub {
    my $peer = host(q{sub { [200, [], ['x' x 100_000]] }}, data_window => 40_000);
    my $id   = $peer->request;
    $peer->receive for 1 .. 3;
    $peer->send(cancel => $id, '');
    my $end = $peer->receive;
    is($end->{kind}, 'end');
    is(length $peer->get->{body}, 100_000, 'the next request is served');
};

subtest 'handles are sent: files, pipes, objects' => sub {
    app('file', 'y' x 200_000);
    my $peer = host(q{
        package Lines { my @left; sub new { @left = ('a' .. 'd'); bless {} } sub getline { shift @left }
            our $closed = 0; sub close { $closed++ } }
        sub {
            my $which = $_[0]{QUERY_STRING};
            my $body;
            if ($which eq 'object') { $body = Lines->new }
            if ($which eq 'closed') { $body = [$Lines::closed] }
            if ($which eq 'pipe') { open $body, '-|', 'echo', 'from a pipe' or die $! }
            if ($which eq 'file') { open $body, '<', 'file' or die $! }
            if ($which eq 'rest') { open $body, '<', 'file' or die $!; read $body, my $x, 199_990 }
            if ($which eq 'memory') { open $body, '<', \'in memory' or die $! }
            [200, [], $body];
        }
    });
    my $ask = sub { $peer->get(env => { QUERY_STRING => $_[0] })->{body} };
    is($ask->('file'),   'y' x 200_000);
    is($ask->('rest'),   'y' x 10);
    is($ask->('pipe'),   "from a pipe\n");
    is($ask->('memory'), 'in memory');
    is($ask->('object'), 'abcd');
    is($ask->('closed'), 1, 'close was called once');
};

subtest 'answers later and in pieces' => sub {
    my $peer = host(q{
        sub {
            my $env = shift;
            return sub {
                my $respond = shift;
                return $respond->([200, ['X-L' => 1], ['later']]) if $env->{QUERY_STRING} eq 'later';
                my $writer = $respond->([200, ['X-S' => 1]]);
                $writer->write("piece $_\n") for 1 .. 3;
                $writer->close;
            };
        }
    });
    is($peer->get(env => { QUERY_STRING => 'later' })->{body}, 'later');
    my $id = $peer->request;
    my @seen;
    while (my $message = $peer->receive) {
        push @seen, "$message->{kind} $message->{flags} $message->{payload}";
        last if $message->{kind} eq 'end';
    }
    is_deeply(\@seen,
        ["head 0 X-S: 1\n", "data 0 piece 1\n", "data 0 piece 2\n", "data 0 piece 3\n", 'end 0 ']);
};

subtest 'an endless stream ends when the client leaves' => sub {
    my $peer = host(q{
        my $cleaned = 0;
        sub {
            my $env = shift;
            return [200, [], [$cleaned]] if $env->{QUERY_STRING} eq 'cleaned';
            push @{ $env->{'psgix.cleanup.handlers'} }, sub { $cleaned++ };
            sub { my $writer = $_[0]->([200, []]); $writer->write("tick\n") while 1 };
        }
    });
    my $id = $peer->request;
    $peer->receive for 1 .. 3;
    $peer->send(cancel => $id, '');
    my $message;
    do { $message = $peer->receive } until $message->{kind} eq 'end';
    is($message->{flags}, 0);
    is($peer->get(env => { QUERY_STRING => 'cleaned' })->{body}, 1);
};

subtest 'what goes wrong is a failed end, with the reason also on stderr' => sub {
    my $peer = host(q{
        my %do = (
            dies   => sub { die "no such luck\n" },
            object => sub { die { code => 5 } },
            undef  => sub { undef },
            status => sub { ['OK', [], []] },
            split  => sub { [200, ['X-A' => "1\nX-B: 2"], []] },
            wide   => sub { [200, [], ["\x{263a}"]] },
            never  => sub { sub { } },
            broken => sub { sub { my $w = $_[0]->([200, []]); $w->write('some'); die "half way\n" } },
        );
        sub { $do{ $_[0]{QUERY_STRING} }->() }
    });
    my %reason = (
        dies   => qr/\Ano such luck\n\z/,
        object => qr/\AHASH/,
        undef  => qr/returned no array/,
        status => qr/returned "OK" as status/,
        split  => qr/a field has a line end/,
        wide   => qr/characters that are no bytes/,
        never  => qr/gave no answer/,
        broken => qr/\Ahalf way\n\z/,
    );
    for my $what (sort keys %reason) {
        my $answer = $peer->get(env => { QUERY_STRING => $what });
        like($answer->{failed}, $reason{$what}, $what);
        is($answer->{status}, $what eq 'broken' ? 200 : undef, 'head');
    }
    like(log_text(), qr/^no such luck$/m);
};

subtest 'drain and the end of the socket end the program' => sub {
    my $peer = host(q{sub { [200, [], ['ok']] }});
    is($peer->get->{body}, 'ok');
    $peer->send(drain => 0, '');
    is($peer->wait, 0);
    $peer = host(q{sub { [200, [], ['ok']] }});
    is($peer->get->{body}, 'ok');
    close delete $peer->{socket};
    is($peer->wait, 0);
};

subtest 'harakiri ends the program after its answer' => sub {
    my $peer = host(q{sub { $_[0]{'psgix.harakiri.commit'} = 1; [200, [], ['last words']] }});
    is($peer->get->{body}, 'last words');
    is($peer->wait, 0);
};

subtest 'what cannot be loaded ends with the reason before hello' => sub {
    my %reason = (
        q{sub { ] }}                      => qr/syntax error at .*app[0-9]+\.psgi line 2/,
        q{use No::Such::Module; sub { }}  => qr{Can't locate No/Such/Module\.pm},
        q{die "not today\n"}              => qr/^not today$/m,
        q{my $x = 5;}                     => qr/returns no PSGI application/,
    );
    for my $code (sort keys %reason) {
        my $peer = host($code);
        is($peer->receive, undef, 'no hello');
        is($peer->wait,    1);
        like(log_text(), $reason{$code});
    }
    my $peer = Peer->host({ dir => "$place", stderr => "$place/stderr" }, psgi => 'missing.psgi');
    is($peer->wait, 1);
    like(log_text(), qr{missing\.psgi cannot be read: No such file});
};

subtest 'SIGTERM writes the stack and ends with 143' => sub {
    my $peer = host(q{
        sub deep { sub { my $w = $_[0]->([200, []]); $w->write('here'); while (1) { sleep 60 } } }
        sub { deep(@_) }
    });
    $peer->request;
    $peer->receive for 1 .. 3;
    kill TERM => $peer->pid;
    is($peer->wait, 143);
    like(log_text(), qr/stopped by SIGTERM.*app[0-9]+\.psgi line 3/s);
};

subtest 'modules beside the application are found' => sub {
    mkdir "$place/lib";
    app('Beside.pm', 'package Beside; sub word { "found" } 1;');
    my $peer = host(q{use Beside; sub { [200, [], [Beside::word()]] }});
    is($peer->get->{body}, 'found');
};

done_testing;
