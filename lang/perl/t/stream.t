# The protocol byte by byte, from the vectors that every language shares.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use File::Temp ();
use FindBin;
use JSON::PP   ();
use Socket     qw(AF_UNIX SOCK_STREAM PF_UNSPEC SOL_SOCKET SCM_RIGHTS);
use Test::More;

use lib "$FindBin::Bin/lib", "$FindBin::Bin/../lib";
use Hob::Stream;
use Peer;

$ENV{HOB_NATIVE} = 'off';    # single messages are looked at

my $lib     = Cwd::abs_path("$FindBin::Bin/../lib");
my $folder  = "$FindBin::Bin/../../probe/vectors";
my $place   = File::Temp->newdir;
my $program = "$place/program.pl";
open my $file, '>', $program or die "$program: $!";
print $file 'use Hob::Stream; my $stream = Hob::Stream->connect; while (my $r = $stream->next) {',
    ' $r->answer(200, "", join "|", $r->content_length // "unknown", $r->pairs) }';
close $file or die "$program: $!";

sub start { return Peer->start({ stderr => "$place/stderr", @_ }, $^X, "-I$lib", $program) }

sub vectors {
    my ($name) = @_;
    open my $handle, '<', "$folder/$name.json" or return;
    local $/;
    return @{ JSON::PP::decode_json(scalar readline $handle)->{vectors} };
}

subtest 'messages have the bytes of the vectors' => sub {
    my @vectors = vectors('messages') or plan skip_all => "no vectors in $folder";
    for my $vector (@vectors) {
        my $bytes = pack 'H*', $vector->{bytes};
        my @head  = unpack Hob::Stream::HEAD, $bytes;
        is_deeply(\@head,
            [length($bytes) - 16, @$vector{qw(kind flags small request large)}], $vector->{name});
        my $payload = pack 'H*', $vector->{payload};
        my $packed = pack(Hob::Stream::HEAD, length $payload, @$vector{qw(kind flags small request large)});
        is($packed . $payload, $bytes);
    }
    # Plain Perl passes no descriptors.
    @vectors = grep { $_->{word} ne 'file' } @vectors;
    my %kind = map { $_->{word} . $_->{from} => $_->{kind} } @vectors;
    is_deeply(\%kind, {
        helloserver   => Hob::Stream::HELLO,    requestserver => Hob::Stream::REQUEST,
        bodyserver    => Hob::Stream::BODY,     cancelserver  => Hob::Stream::CANCEL,
        windowserver  => Hob::Stream::WINDOW,   replyserver   => Hob::Stream::REPLY,
        drainserver   => Hob::Stream::DRAIN,    helloworker   => Hob::Stream::MY_HELLO,
        headworker    => Hob::Stream::ANSWER,   dataworker    => Hob::Stream::DATA,
        endworker     => Hob::Stream::FINISH,   infoworker    => Hob::Stream::INFO,
        windowworker  => Hob::Stream::MY_WINDOW, calloutworker => Hob::Stream::CALLOUT,
    });
};

subtest 'request blocks are read' => sub {
    my @vectors = vectors('blocks') or plan skip_all => "no vectors in $folder";
    my $peer    = start();
    for my $vector (@vectors) {
        my $id = ++$peer->{id};
        $peer->send(request => $id, pack('H*', $vector->{bytes}), flags => 1);
        my $length = $vector->{content_length};
        my @pairs  = map { pack 'H*', $_ } map { @$_ } @{ $vector->{variables} };
        is($peer->answer($id)->{body}, join('|', $length // 'unknown', @pairs), $vector->{name});
    }
};

subtest 'what the server must not send ends the program' => sub {
    my @vectors = grep { $_->{from} eq 'server' } vectors('malformed')
        or plan skip_all => "no vectors in $folder";
    for my $vector (@vectors) {
        my $peer = start();
        $peer->receive;
        syswrite $peer->{socket}, pack 'H*', $vector->{bytes};
        is($peer->wait, 1, $vector->{name});
    }
};

subtest 'messages may come in any pieces' => sub {
    my $peer  = start();
    my $block = Peer::block({ A => 1, B => '' }, 0);
    my $bytes = '';
    for my $id (1 .. 3) {
        $bytes .= pack(Hob::Stream::HEAD, length $block, 2, 1, 0, $id, 0) . $block;
    }
    syswrite $peer->{socket}, $_ for map { substr $bytes, $_ * 7, 7 } 0 .. length($bytes) / 7;
    is($peer->answer($_)->{body}, '0|A|1|B|') for 1 .. 3;
};

subtest 'a block of the longest size is read' => sub {
    my $peer  = start();
    my $block = Peer::block({ A => 'x' x (131_072 - 144 - 3) }, 0);
    is(length $block, 131_072);
    $peer->send(request => 1, $block, flags => 1);
    is(length $peer->answer(1)->{body}, 131_072 - 144 - 3 + 4);
};

subtest 'another version is refused' => sub {
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $ours;
        open STDERR, '>', '/dev/null';
        Hob::Stream->new($theirs);
        exit 0;
    }
    close $theirs;
    syswrite $ours, pack(Hob::Stream::HEAD, 16, 1, 0, 2, 0, 0) . "\0" x 16;
    waitpid $pid, 0;
    is($? >> 8, 1);
};

subtest 'nothing of a body is waited for after the answer' => sub {
    my $late = "$place/late.pl";
    open my $handle, '>', $late or die "$late: $!";
    print $handle 'use Hob::Stream; my $stream = Hob::Stream->connect;',
        ' while (my $r = $stream->next) { $r->answer(200, "", length($last // "")); $last = $r->read_body }';
    close $handle or die "$late: $!";
    my $peer = Peer->start({ stderr => "$place/stderr" }, $^X, "-I$lib", $late);
    for (1 .. 2) {
        $peer->send(request => $_, pack('H*', (vectors('blocks'))[0]{bytes}));
        is($peer->answer($_)->{body}, '0');
    }
};

subtest 'the socket does not reach children' => sub {
    open my $file, '>', "$place/child.pl" or die "child.pl: $!";
    print $file 'use Hob::Stream; my $stream = Hob::Stream->connect; while (my $r = $stream->next) {',
        ' $r->answer(200, "", `ls -l /proc/self/fd | grep -c socket`) }';
    close $file;
    my $peer = Peer->start({}, $^X, "-I$lib", "$place/child.pl");
    is($peer->get->{body}, "0\n");
};

done_testing;
