# The examples, and what the README shows, driven by the line protocol as a server would.

use 5.026;
use strict;
use warnings;

use Digest::SHA ();
use File::Temp  ();
use FindBin;
use POSIX ();
use Test::More;

my $here  = "$FindBin::Bin/..";
my $place = File::Temp->newdir;
my %sentinel = (
    CGIPLUSEOF => '$F-0123456789abcdef01234567-',
    CGIPLUSESC => '$E-0123456789abcdef01234567-',
    CGIPLUSEOT => '$D-0123456789abcdef01234567-',
);
my @awk = `awk -W version 2>&1` =~ /mawk/ ? qw(awk -W interactive) : 'awk';

# A program with pipes for body, answer and requests.
sub start {
    my (@command) = @_;
    pipe my $body_out, my $body or die "pipe: $!";
    pipe my $answer, my $answer_in or die "pipe: $!";
    pipe my $lines_out, my $lines or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my @high = map { POSIX::dup(fileno $_) } ($body_out, $answer_in, $lines_out) x 4;
        POSIX::dup2($high[9 + $_], (0, 1, 3)[$_]) for 0 .. 2;
        POSIX::close($_) for 4 .. 40;
        %ENV = (%ENV, %sentinel, CGIPLUSIN => '/dev/fd/3');
        exec @command or POSIX::_exit(127);
    }
    $_->autoflush(1) for $body, $lines;
    return { pid => $pid, body => $body, lines => $lines, answer => $answer, text => '' };
}

# One request: the answer, without the string at its end. Callouts are answered.
sub ask {
    my ($program, $env, $body) = @_;
    my %env = (REQUEST_METHOD => 'GET', PATH_INFO => '/', REMOTE_ADDR => '192.0.2.1', %$env);
    $env{CONTENT_LENGTH} = length $body if defined $body;
    print { $program->{lines} } "!\n", (map { "$_=$env{$_}\n" } sort keys %env), "\n";
    print { $program->{body} } $body if defined $body;
    local $SIG{ALRM} = sub { die "no answer for a minute" };
    alarm 60;
    my $text = \$program->{text};
    while (1) {
        if ($$text =~ s/\Q$sentinel{CGIPLUSESC}\E\n(.*?)\n\Q$sentinel{CGIPLUSEOT}\E\n//) {
            push @{ $program->{callouts} }, $1;
            print { $program->{lines} } "200 reply\n" if substr($1, 0, 1) ne '!';
            next;
        }
        if ($$text =~ s/\A(.*?)\Q$sentinel{CGIPLUSEOF}\E\n//s) {
            my $answer = $1;
            alarm 0;
            return $answer;
        }
        sysread $program->{answer}, $$text, 4096, length $$text or die 'the program is gone';
    }
}

# No more requests: the program's exit code.
sub finish {
    my ($program) = @_;
    close $program->{$_} for qw(lines body);
    waitpid $program->{pid}, 0;
    return $? >> 8;
}

sub script {
    my ($name, $code) = @_;
    open my $file, '>', "$place/$name" or die "$name: $!";
    print $file $code;
    close $file;
    return "$place/$name";
}

for my $shell (grep { -x "/bin/$_" } qw(dash bash ksh)) {
    subtest "hello in $shell" => sub {
        my $program = start("/bin/$shell", "$here/examples/hello.sh");
        is(ask($program, {}), "Content-Type: text/plain\n\nHello, 192.0.2.1\n") for 1 .. 3;
        is(finish($program), 0);
    };
}

subtest 'hello as plain CGI' => sub {
    local $ENV{REMOTE_ADDR} = '192.0.2.2';
    is(scalar `$here/examples/hello.sh`, "Content-Type: text/plain\n\nHello, 192.0.2.2\n");
};

subtest 'a thousand requests, one process' => sub {
    my $program = start('/bin/sh', script('many.sh', <<"END"));
. $here/hob.sh
while hob_accept; do printf '\\n%s %s %s\\n' "\$\$" "\$PATH_INFO" "\$hob_count"; hob_finish; done
END
    my $wrong = grep { ask($program, { PATH_INFO => "/$_" }) ne "\n$program->{pid} /$_ $_\n" } 1 .. 1000;
    is($wrong, 0);
    is(finish($program), 0);
};

subtest 'variables of a request are gone with it' => sub {
    my $program = start('/bin/sh', script('vars.sh', <<"END"));
. $here/hob.sh
while hob_accept; do printf '\\n[%s][%s]' "\${HTTP_A-unset}" "\$QUERY_STRING"; env | grep -c '^HTTP_A='; hob_finish; done
END
    is(ask($program, { HTTP_A => ' a  b=\\n$(c)`d`"\'', QUERY_STRING => 'x=1&y=*' }),
        "\n[ a  b=\\n\$(c)`d`\"'][x=1&y=*]1\n");
    is(ask($program, { QUERY_STRING => '' }), "\n[unset][]0\n");
};

subtest 'body and callouts' => sub {
    my $program = start('/bin/sh', script('body.sh', <<"END"));
. $here/hob.sh
while hob_accept; do
    hob_callout 'MAP-PATH: /x'
    hob_tell 'LOG: info text'
    printf '\\n%s|' "\$hob_reply"
    hob_body
    hob_finish
done
END
    is(ask($program, {}, "two\nlines"), "\n200 reply|two\nlines");
    is(ask($program, {}),               "\n200 reply|");
    is_deeply($program->{callouts}, [('MAP-PATH: /x', '!LOG: info text') x 2]);
};

subtest 'a form with an upload, in bash' => sub {
    plan skip_all => 'bash is not installed' if !-x '/bin/bash';
    my $program = start("$here/examples/upload.bash");
    like(ask($program, {}), qr/<form method="post"/);
    my $file = join '', map { chr($_ % 256) } 1 .. 40_000;
    my $body = "--xyz\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n<Ada>\r\n"
        . "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a&b.bin\"\r\n"
        . "Content-Type: application/octet-stream\r\n\r\n$file\r\n--xyz--\r\n";
    my $type = 'multipart/form-data; boundary=xyz';
    for (1 .. 2) {
        is(ask($program, { REQUEST_METHOD => 'POST', CONTENT_TYPE => $type }, $body),
            "Content-Type: text/html; charset=utf-8\n\n<!doctype html>\n<title>Received</title>\n<ul>\n"
            . '<li>name: 5 bytes, SHA-256 ' . Digest::SHA::sha256_hex('<Ada>') . "\n"
            . '<li>file: a&amp;b.bin, 40000 bytes, SHA-256 ' . Digest::SHA::sha256_hex($file) . "\n"
            . "</ul>\n");
    }
    like(ask($program, { REQUEST_METHOD => 'POST', CONTENT_TYPE => 'a/b' }, 'x'), qr/\AStatus: 415\n/);
    is(finish($program), 0);
};

subtest 'a counter, in awk' => sub {
    my $program = start(@awk, '-f', "$here/examples/counter.awk", '/dev/fd/3');
    my $head = "Content-Type: text/plain\n\n";
    is(ask($program, { PATH_INFO => '/a' }), "${head}request 1, 1 of /a\n");
    is(ask($program, { PATH_INFO => '/b' }), "${head}request 2, 1 of /b\n");
    is(ask($program, { PATH_INFO => '/a' }), "${head}request 3, 2 of /a\n");
    is(finish($program), 0);
};

subtest 'the README' => sub {
    open my $file, '<', "$here/README.md" or die "README.md: $!";
    my $text  = do { local $/; readline $file };
    my $count = 0;
    while ($text =~ /^```sh\n# (\S+)\n(.*?)^```\n\n```console\n(.*?)^```/msg) {
        my ($name, $code, $console) = ($1, $2, $3);
        $code =~ s{\./hob\.sh}{$here/hob.sh};
        my $program = start('/bin/sh', script($name, $code));
        while ($console =~ /^\$ curl (?:-d '(.*?)' )?\S+:8080(\S*)\n((?:[^\$].*\n)*)/mg) {
            my ($body, $path, $shown) = ($1, $2, $3);
            my $answer = ask($program, { PATH_INFO => $path }, $body);
            is($answer =~ s/\A.*?\n\n//sr =~ s/\A\n//r, $shown, "$name: $path");
        }
        $count++;
    }
    is($count, () = $text =~ /^```sh\n#/mg);
};

done_testing;
