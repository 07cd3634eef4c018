# Programs with a loop of their own, as resident programs and as plain CGI.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use File::Temp ();
use FindBin;
use Test::More;

use lib "$FindBin::Bin/lib";
use Peer;

my $lib   = Cwd::abs_path("$FindBin::Bin/../lib");
my $place = File::Temp->newdir;

sub program {
    my ($code) = @_;
    state $count = 0;
    my $path = "$place/loop" . ++$count . '.pl';
    open my $file, '>', $path or die "$path: $!";
    print $file "use strict; use warnings; use Hob;\n$code";
    close $file or die "$path: $!";
    return $path;
}

sub start {
    my ($code, %options) = @_;
    return Peer->start({ stderr => "$place/stderr", %options }, $^X, "-I$lib", program($code));
}

sub as_cgi {
    my ($code, $env, $body) = @_;
    my $path = program($code);
    open my $stdin, '>', "$place/stdin" or die "stdin: $!";
    print $stdin $body // '';
    close $stdin;
    local %ENV = (PATH => $ENV{PATH}, %{ $env // {} });
    return scalar `$^X -I$lib $path < $place/stdin`;
}

sub log_text {
    open my $file, '<', "$place/stderr" or die "$place/stderr: $!";
    local $/;
    return scalar readline $file;
}

my $counter = q{
    my $count = 0;
    while (my $request = Hob->accept) {
        $count++;
        $request->respond(200, ['Content-Type' => 'text/plain'], "request $count\n");
    }
};

subtest 'state stays between requests, and ends with drain' => sub {
    my $peer = start($counter);
    is($peer->get->{body}, "request $_\n") for 1 .. 3;
    $peer->send(drain => 0, '');
    is($peer->wait, 0);
};

subtest 'the same program is plain CGI without a server' => sub {
    is(as_cgi($counter), "Status: 200\nContent-Type: text/plain\n\nrequest 1\n");
};

subtest 'a host runs it too' => sub {
    my $peer = Peer->host({ dir => "$place" }, loop => program($counter));
    is($peer->get->{body}, "request $_\n") for 1 .. 2;
};

my $echo = q{
    while (my $request = Hob->accept) {
        my $text = join '|', $request->method, $request->path, $request->query,
            $request->field('X-Word') // 'none', $request->field('Content-Type') // 'none',
            $request->content_length;
        my $handle = $request->body;
        $text .= "|$_" while <$handle>;
        $request->respond(200, [], $text);
    }
};

subtest 'variables, fields and body are the same both ways' => sub {
    my %env = (
        REQUEST_METHOD => 'POST', PATH_INFO => '/a', QUERY_STRING => 'b=c', HTTP_X_WORD => 'w',
        CONTENT_TYPE   => 'text/plain', CONTENT_LENGTH => 8,
    );
    my $expected = "POST|/a|b=c|w|text/plain|8|one\n|two\n";
    is(start($echo)->get(env => \%env, body => "one\ntwo\n")->{body}, $expected);
    is(as_cgi($echo, \%env, "one\ntwo\nthree"), "Status: 200\n\n$expected");
};

subtest 'pieces, interim answers and trailers' => sub {
    my $answer = start(q{
        while (my $request = Hob->accept) {
            $request->info(103, [Link => '</style.css>']);
            $request->start(200, ['X-A' => 1]);
            $request->write($_) for 'one ', 'two ', "\x{263a}", "\xe9";
            $request->finish(['X-Sum' => 3]);
        }
    })->get;
    is_deeply($answer, {
        info => [[103, "Link: </style.css>\n"]], status => 200, fields => "X-A: 1\n",
        body => "one two \xe2\x98\xba\xe9", trailers => "X-Sum: 3\n", callouts => [],
    });
};

subtest 'a body is read at the pace of the program' => sub {
    my $peer = start(q{
        while (my $request = Hob->accept) {
            my $first = $request->read(10);
            $request->start(200, []);
            $request->write("$first|");
            my $rest = 0;
            while (length(my $piece = $request->read)) { $rest += length $piece }
            $request->write($rest);
        }
    }, body_window => 1000);
    my $id = $peer->request(has_body => 1);
    $peer->send(body => $id, 'x' x 1000);
    $peer->receive for 1 .. 2;
    is($peer->receive->{payload}, 'xxxxxxxxxx|');
    my $window = $peer->receive;
    is($window->{kind},  'window');
    is($window->{large}, 1000);
    $peer->send(body => $id, 'x' x 500, flags => 1);
    is($peer->receive->{payload}, 1490);
};

subtest 'callouts' => sub {
    my $peer = start(q{
        while (my $request = Hob->accept) {
            $request->log(warning => "two\nlines");
            $request->trace('here');
            $request->timeout(30);
            Hob->lifetime(-1);
            $request->respond(200, [], $request->map_path('/x') // 'none');
        }
    });
    my $answer = $peer->get;
    is_deeply($answer->{callouts},
        ['LOG: warning two lines', 'TRACE: here', 'TIMEOUT: 30', 'LIFETIME: -1', 'MAP-PATH: /x']);
    is($answer->{body}, 'ok');
};

subtest 'a client that left is seen' => sub {
    my $peer = start(q{
        while (my $request = Hob->accept) {
            $request->start(200, []);
            my $count = 0;
            $count++ while $request->write("tick\n") && !$request->is_canceled;
            print STDERR "left\n";
        }
    });
    my $id = $peer->request;
    $peer->receive for 1 .. 3;
    $peer->send(cancel => $id, '');
    my $message;
    do { $message = $peer->receive } until $message->{kind} eq 'end';
    like(log_text(), qr/^left$/m);
};

subtest 'a request that was forgotten is ended' => sub {
    my $peer = start(q{
        my $count = 0;
        while (my $request = Hob->accept) {
            next if $count++ == 0;
            $request->start(200, []);
            $request->write('unfinished');
        }
    });
    like($peer->get->{failed}, qr/without answering/);
    is($peer->get->{body}, 'unfinished');
};

subtest 'what a program may not do dies' => sub {
    my $peer = start(q{
        my @do = (
            sub { $_[0]->respond(200, ['X-A' => "1\r\nX-B: 2"], '') },
            sub { $_[0]->respond(200, { 'X-A' => 1 }, '') },
            sub { $_[0]->write('early') },
        );
        while (my $request = Hob->accept) {
            eval { $do[$request->query]->($request); 1 } or $request->fail($@);
        }
    });
    my @reason = (qr/a field has a line end/, qr/fields are an array/, qr/write comes after start/);
    like($peer->get(env => { QUERY_STRING => $_ })->{failed}, $reason[$_]) for 0 .. 2;
};

subtest 'requests may wait while another is answered' => sub {
    my $peer = start($counter);
    $peer->request for 1 .. 2;
    is($peer->answer($_)->{body}, "request $_\n") for 1 .. 2;
};

subtest 'a child that runs on into the loop ends there' => sub {
    my $peer = start(q{
        while (my $request = Hob->accept) {
            my $child = fork // die;
            $request->respond(200, [], "$child");
            waitpid $child, 0 if $child;
        }
    });
    for (1 .. 2) {
        my $answer = $peer->get;
        like($answer->{body}, qr/\A[1-9][0-9]*\z/, 'the answer is the parent\'s');
    }
};

done_testing;
