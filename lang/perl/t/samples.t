# What the README and the examples show works as it is shown.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use File::Temp ();
use FindBin;
use Test::More;

use lib "$FindBin::Bin/lib";
use Peer;

my $here  = Cwd::abs_path("$FindBin::Bin/..");
my $place = File::Temp->newdir;
mkdir "$place/cgi-bin";

subtest 'README' => sub {
    open my $file, '<', "$here/README.md" or die "README.md: $!";
    my $text  = do { local $/; readline $file };
    my $count = 0;
    while ($text =~ /^```perl\n# (\S+)\n(.*?)^```\n\n```console\n(.*?)^```/msg) {
        my ($name, $code, $console) = ($1, $2, $3);
        open my $program, '>', "$place/$name" or die "$name: $!";
        print $program $code;
        close $program;
        my $peer = start($name);
        while ($console =~ /^\$ curl (.*)\n((?:[^\$].*\n)*)/mg) {
            my ($arguments, $shown) = ($1, $2);
            is(fetched($peer, $name, $arguments), $shown, "$name: $arguments");
        }
        $count++;
    }
    is($count, () = $text =~ /^```perl/mg, 'samples');
};

subtest 'hello' => sub {
    my $peer = Peer->host({}, loop => "$here/examples/hello.pl");
    is($peer->get->{body}, "Hello, 127.0.0.1\n");
};

subtest 'a form with an upload' => sub {
    my $peer = Peer->host({}, psgi => "$here/examples/upload.psgi");
    like($peer->get->{body}, qr/<form method="post"/);
    my $file = join '', map { chr($_ % 256) } 1 .. 100_000;
    my $body = "--xyz\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n<Ada>\r\n"
        . "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a&b.bin\"\r\n"
        . "Content-Type: application/octet-stream\r\n\r\n$file\r\n--xyz--\r\n";
    my $answer = $peer->get(
        env  => { REQUEST_METHOD => 'POST', CONTENT_TYPE => 'multipart/form-data; boundary=xyz' },
        body => $body,
    );
    require Digest::SHA;
    is($answer->{body}, "<!doctype html>\n<title>Received</title>\n<ul>\n"
        . '<li>name: 5 bytes, SHA-256 ' . Digest::SHA::sha256_hex('<Ada>') . "\n"
        . '<li>file: a&amp;b.bin, 100000 bytes, SHA-256 ' . Digest::SHA::sha256_hex($file) . "\n"
        . "</ul>\n");
};

subtest 'a counter that survives' => sub {
    my %options = (dir => "$place");
    my $peer    = Peer->host({%options}, loop => "$here/examples/counter.pl");
    my $pid     = $peer->pid;
    is($peer->get->{body}, "request $_ of process $pid, $_ in all\n") for 1 .. 2;
    $peer = Peer->host({%options}, loop => "$here/examples/counter.pl");
    $pid  = $peer->pid;
    is($peer->get->{body}, "request 1 of process $pid, 3 in all\n");
};

done_testing;

sub start {
    my ($name) = @_;
    return Peer->host({ dir => "$place" }, psgi => $name) if $name =~ /\.psgi\z/;
    return Peer->host({ dir => "$place" }, loop => $name) if $name =~ /\.pl\z/;
    return Peer->host({ dir => "$place" }, scripts => 'cgi-bin');
}

# What curl with these arguments would show.
sub fetched {
    my ($peer, $name, $arguments) = @_;
    my %env = (SCRIPT_FILENAME => "$place/$name");
    $env{HTTP_USER_AGENT} = $1 if $arguments =~ s/-A (\S+) //;
    my $body = $arguments =~ s/-d '(.*?)' // ? $1 : undef;
    my ($path, $query) = $arguments =~ m{\A'?http://[^/]+(/[^?']*)\??([^']*)'?\z} or return $arguments;
    return $peer->get(env => { %env, PATH_INFO => $path, QUERY_STRING => $query }, body => $body)->{body};
}
