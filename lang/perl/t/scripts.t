# CGI scripts kept compiled: they find what a fresh process would give them.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use File::Temp ();
use FindBin;
use Test::More;

use lib "$FindBin::Bin/lib";
use Peer;

my $folder = File::Temp->newdir;
my $place  = Cwd::abs_path("$folder");
my $peer;

sub script {
    my ($name, $code) = @_;
    open my $file, '>', "$place/$name" or die "$place/$name: $!";
    print $file $code;
    close $file or die "$place/$name: $!";
    return "$place/$name";
}

sub start {
    undef $peer;
    $peer = Peer->host({ stderr => "$place/stderr", @_ }, scripts => $place);
    return;
}

# Runs a script for a request; its answer, with the body last.
sub run {
    my ($name, %options) = @_;
    my $env = { SCRIPT_FILENAME => "$place/$name", %{ $options{env} // {} } };
    return $peer->get(env => $env, map { $_ => $options{$_} } grep { $_ ne 'env' } keys %options);
}

sub body { return run(@_)->{body} }

sub log_text {
    open my $file, '<', "$place/stderr" or die "$place.stderr: $!";
    local $/;
    return scalar readline $file;
}

start(env => { PATH => '/usr/bin:/bin', KEPT => 'base' });

my $head = 'print "Content-Type: text/plain\n\n";';

subtest 'output is split into head and body' => sub {
    script('plain', qq{#!/usr/bin/perl\nuse strict;\nprint "Content-Type: text/html\\r\\nX-A: 1\\r\\n\\r\\n<p>\\n";\n});
    my $answer = run('plain');
    is($answer->{status}, 0);
    is($answer->{fields}, "Content-Type: text/html\r\nX-A: 1\r\n");
    is($answer->{body},   "<p>\n");
    script('bare', 'print "Location: /x\n\n"');
    is(run('bare')->{fields}, "Location: /x\n");
    is(run('bare')->{body},   '');
    script('nph', 'print "HTTP/1.0 404 No\r\nX-A: 1\r\n\r\nnot here"');
    $answer = run('nph');
    is("$answer->{status} $answer->{fields} $answer->{body}", "404 X-A: 1\r\n not here");
    script('headless', 'print "\n\nbody\n\n"');
    is(run('headless')->{body}, "\nbody\n\n");
};

subtest 'globals stay, file variables do not' => sub {
    script('state', qq{use strict; our \$kept; my \$new; \$kept++; \$new++; $head print "\$kept \$new";});
    is(body('state'), "$_ 1") for 1 .. 3;
};

subtest 'subs may use variables of the file' => sub {
    my $used = qq{sub more { \$count++; push \@list, \$ENV{QUERY_STRING}; \$of{\$count} = 1 }
        more(); more(); $head print "\$count \@list ", scalar keys %of;};
    my %declared = (
        each => "my \$count = 0;\nmy \@list;\nmy %of;\n",
        list => "my (\$count, \@list,\n  %of);\n",
        deep => "my \$other; my \$count; { my \$x; } my (\@list, %of);",
        both => "my \$count;\nmy (\@list, %of);\nsub f {\nmy \$count = 5;\n}\n",
    );
    for my $name (sort keys %declared) {
        script("closure-$name", "use strict; use warnings;\n$declared{$name}$used");
        is(body("closure-$name", env => { QUERY_STRING => "q=$_" }), "2 q=$_ q=$_ 2", "$name $_")
            for 1 .. 3;
    }
    unlike(log_text(), qr/will not stay shared|redefined/, 'and nobody is warned');
    for my $declared ("my \$object", "  my \$object") {
        script('destroys', qq{package Object { sub DESTROY { print 'destroyed' } }
$declared = bless {}, 'Object';
open my \$file, '>', '$place/written' or die;
my \$out = \$file;
sub used { \$object; print \$out 'text' }
$head used(); exit;});
        is(body('destroys'), 'destroyed', $declared) for 1 .. 2;
        is(-s "$place/written", 4, 'they are gone when the answer is there');
    }
};

subtest 'exit ends the script, not the process' => sub {
    script('exits', qq{$head print \$\$; exit; print 'never';});
    my $pid = body('exits');
    is($pid,          $peer->pid);
    is(body('exits'), $pid);
    script('exits2', qq{sub deep { eval { exit 3 }; print 'caught' } $head print 'a'; eval { deep() }; print 'b';});
    is(body('exits2'), 'a', 'also in an eval');
    script('exits3', qq{$head print 'a'; my \@x = sort { exit } 1, 2; print 'b';});
    is(body('exits3'), 'a', 'also in a sort');
    script('exits4', qq{\$SIG{__DIE__} = sub { print "Status: 500\\n\\nsorry"; exit }; die 'x';});
    is(body('exits4'), 'sorry', 'also in a handler');
    is(body('exits'), $pid);
};

subtest 'a script that dies' => sub {
    script('dies', "\n\ndie 'no luck'");
    my $answer = run('dies');
    is($answer->{failed}, "no luck at $place/dies line 3.\n", 'is a failed answer with the reason');
    is($answer->{status}, undef);
    like(log_text(), qr/^no luck at /m);
    script('shows', q{$SIG{__DIE__} = sub { print "Status: 500 Oh\n\nsorry: $_[0]" }; die "gone\n"});
    is(run('shows')->{body}, "sorry: gone\n", 'but its own handler may answer');
    script('breaks', qq{$head \$| = 1; print 'some'; die "later\\n"});
    $answer = run('breaks');
    is($answer->{body},   'some');
    is($answer->{failed}, "later\n");
    script('silent', '1;');
    like(run('silent')->{failed}, qr/silent printed nothing/);
    script('headonly', 'print "hello"');
    like(run('headonly')->{failed}, qr/without an empty line/);
};

subtest 'a script that cannot be compiled' => sub {
    script('wrong', "\nuse strict;\n\$x = 1;");
    like(run('wrong')->{failed}, qr/Global symbol "\$x" .* at \Q$place\E\/wrong line 3/);
    script('wrong', qq{$head print 'right'});
    is(body('wrong'), 'right', 'is compiled again when it has changed');
    like(run('missing')->{failed}, qr/missing cannot be read: No such file/);
};

subtest 'a changed script is compiled again' => sub {
    script('changes', qq{$head sub word { 'one' } print word()});
    is(body('changes'), 'one');
    script('changes', qq{$head sub word { 'another' } print word()});
    is(body('changes'), 'another');
    unlike(log_text(), qr/redefined/);
};

subtest 'the environment is exactly that of the request' => sub {
    script('env', qq{$head print map { "\$_=\$ENV{\$_}\\n" } sort keys %ENV;});
    script('child', qq{$head \$| = 1; system 'env | sort'});
    my %fixed = map { /\A(.*?)=(.*)/ } split /\n/, body('env');
    is($fixed{KEPT},         'base');
    is($fixed{HOB_FD},       undef);
    is($fixed{REQUEST_URI},  '/');
    srand 7;
    for my $round (1 .. 60) {
        my %env = map { 'X' . int(rand 6) => join '', map { chr 97 + rand 3 } 1 .. rand 4 } 1 .. rand 8;
        $env{REQUEST_URI} = '/' . 'x' x rand 9;
        $env{HTTP_A}      = 'b' x rand 2;
        my $is_child = $round % 6 == 0;
        my $name     = $is_child ? 'child' : 'env';
        my %got      = map { /\A(.*?)=(.*)/ } split /\n/, body($name, env => \%env);
        delete @got{qw(_ PWD SHLVL)} if $is_child;
        my %expected = (%fixed, SCRIPT_FILENAME => "$place/$name", %env);
        delete @expected{qw(_ PWD SHLVL OLDPWD)}, delete $got{OLDPWD} if $is_child;
        is_deeply(\%got, \%expected, "round $round") or last;
    }
    script('sets', qq{\$ENV{PATH} = '/nowhere'; delete \$ENV{KEPT}; \$ENV{MORE} = 1; $head});
    run('sets');
    my %got = map { /\A(.*?)=(.*)/ } split /\n/, body('env');
    is_deeply(\%got, \%fixed, 'what a script sets is gone for the next');
};

subtest 'however a script changes the environment, the next one does not find it' => sub {
    my %given = (A => 'same', B => 'same', LONG => 'x' x 300);
    my %fixed = map { /\A(.*?)=(.*)/ } split /\n/, body('env', env => \%given);
    for my $change ('$ENV{MOVED} = delete $ENV{A}', '%ENV = ()', 'utf8::upgrade($ENV{B}); $ENV{B} .= "\x{e9}"',
        '@ENV{qw(A B)} = @ENV{qw(LONG A)}', 'chop $ENV{LONG}', 'local $ENV{A} = 1; $ENV{$_} = 1 for 1 .. 300',
        'delete $ENV{A}; $ENV{A} = "same"', 'my %all = %ENV; %ENV = reverse %all; %ENV = %all', '$ENV{B} = 7; $ENV{B}++') {
        script('changes-it', "$change; $head");
        run('changes-it', env => \%given);
        my %got = map { /\A(.*?)=(.*)/ } split /\n/, body('env', env => \%given);
        is_deeply(\%got, \%fixed, $change);
        my $seen = body('child', env => \%given);
        like($seen, qr/^$_=\Q$given{$_}\E$/m, "$change, a child's $_") for sort keys %given;
        unlike($seen, qr/^(?:MOVED|300)=/m);
    }
};

subtest 'arguments are the words of a query that is no form' => sub {
    script('args', qq{$head print join '|', \$0, scalar \@ARGV, \@ARGV, shift // '-'});
    is(body('args', env => { QUERY_STRING => 'one+t%77o' }), "$place/args|2|one|two|one");
    is(body('args', env => { QUERY_STRING => 'a=b' }),       "$place/args|0|-");
    is(body('args', env => { QUERY_STRING => 'a+-b' }),      "$place/args|0|-");
    is(body('args', env => { QUERY_STRING => 'word' }),      "$place/args|1|word|word");
};

subtest 'the path names the script where the server names the folder' => sub {
    mkdir "$place/sub";
    symlink '/etc/passwd', "$place/link";
    script('sub/deep', qq{$head print join '|', \@ENV{qw(SCRIPT_FILENAME SCRIPT_NAME PATH_INFO)}});
    script('.hidden', $head);
    my $ask = sub {
        my %env = (SCRIPT_FILENAME => $place, SCRIPT_NAME => '/bin', PATH_INFO => $_[0]);
        my $answer = $peer->get(env => \%env);
        return $answer->{status} || $answer->{body};
    };
    for (1 .. 2) {
        is($ask->('/sub/deep'),     "$place/sub/deep|/bin/sub/deep|");
        is($ask->('/sub/deep/a/b'), "$place/sub/deep|/bin/sub/deep|/a/b");
        is($ask->($_), 404, $_) for '/none', '/sub', '/.hidden', '/link', '/', '', '/sub/../plain';
        is($ask->('//sub///deep//a//'), "$place/sub/deep|/bin/sub/deep|//a//", 'slashes stay behind it');
        is($ask->("/sub/deep/a\1b"), "$place/sub/deep|/bin/sub/deep|/a/b", 'encoded slashes are some');
        is($ask->($_), 404, 'but lead to no script') for "/sub\1deep", "\1sub/deep", "/sub/\1deep";
    }
    is(body('env') =~ /^SCRIPT_NAME=(.*)/m ? $1 : '', '');
};

subtest 'the body is standard input' => sub {
    script('reads', qq{$head read STDIN, my \$bytes, \$ENV{CONTENT_LENGTH}; print "[\$bytes]", eof STDIN;});
    is(body('reads', body => "a\nb", env => { CONTENT_LENGTH => 3 }), "[a\nb]1");
    is(body('reads', body => 'four', env => { CONTENT_LENGTH => 4 }), '[four]1');
    is(body('reads', env => { CONTENT_LENGTH => 4 }), '[]1', 'which is empty without one');
    script('lines', qq{$head my \@lines = <STDIN>; print scalar \@lines;});
    is(body('lines', body => "1\n2\n3\n"), 3);
    script('systems', qq{$head \$| = 1; print 'a:'; system 'cat'; print ':b'});
    is(body('systems', body => 'input'), 'a:input:b', 'also of a child');
    script('sysreads', qq{$head sysread STDIN, my \$x, 3; sysread STDIN, my \$y, 9; print "\$x-\$y"});
    is(body('sysreads', body => 'abcdef'), 'abc-def');
    script('sum', qq{use Digest::MD5; $head print Digest::MD5->new->addfile(\\*STDIN)->hexdigest});
    my $long = join '', map { chr($_ % 253) } 1 .. 3_000_000;
    require Digest::MD5;
    is(body('sum', body => $long), Digest::MD5::md5_hex($long), 'a long one too');
    is(body('sum', body => 'x'),   Digest::MD5::md5_hex('x'));
    is(body('sum'),                Digest::MD5::md5_hex(''));
    is(body('env', body => 'y' x 100_000) =~ /KEPT/, 1, 'and need not be read');
    is(body('lines'), 0);
};

subtest 'every way to print keeps the order' => sub {
    script('prints', qq{$head \$| = 1; print 'print '; printf '%s ', 'printf'; syswrite STDOUT, 'syswrite ';
        system 'printf "system "'; print `printf 'backtick '`; open my \$dup, '>&', \\*STDOUT;
        print \$dup 'dup '; close \$dup; open my \$pipe, '|-', 'cat'; print \$pipe 'pipe '; close \$pipe;
        if (!fork) { print 'fork '; exit } wait; print STDOUT 'end';
    });
    my $expected = 'print printf syswrite system backtick dup pipe fork end';
    is(body('prints'), $expected);
    is(body('prints'), $expected);
    script('open', qq{$head my \$pid = open my \$kid, '-|'; if (!\$pid) { print 'from a child'; exit } print <\$kid>;});
    is(body('open'), 'from a child');
    script('saves', qq{$head open my \$saved, '>&', \\*STDOUT; open STDOUT, '>', '/dev/null'; system 'echo lost';
        print 'lost'; open STDOUT, '>&', \$saved; print 'found';});
    is(body('saves'), 'found');
    is(body('plain'), "<p>\n");
};

subtest 'layers of standard handles' => sub {
    script('utf8', qq{binmode STDOUT, ':utf8'; $head print "\\x{263a}\\xe9"});
    script('encoding', qq{binmode STDOUT, ':encoding(UTF-8)'; $head print "\\x{263a}\\xe9"});
    script('bytes', qq{binmode STDOUT; $head print "\\xe9"});
    for (1 .. 2) {
        is(body('utf8'),     "\xe2\x98\xba\xc3\xa9");
        is(body('bytes'),    "\xe9");
        is(body('encoding'), "\xe2\x98\xba\xc3\xa9");
        is(body('bytes'),    "\xe9");
    }
    script('open', qq{use open qw(:std :utf8); $head print "\\x{263a}"});
    is(body('open'), "\xe2\x98\xba", "use open, request $_") for 1 .. 2;
    is(body('bytes'), "\xe9");
};

subtest 'closed handles come back' => sub {
    script('closes', qq{$head print 'x'; close STDOUT; close STDIN; open my \$a, '<', '/dev/null'; open my \$b, '<', '/dev/null';
        our \@kept; push \@kept, \$a, \$b;});
    is(body('closes'), 'x');
    is(body('prints'), 'print printf syswrite system backtick dup pipe fork end');
    is(body('lines', body => "a\nb\n"), 2);
    script('error', qq{$head open STDERR, '>&', \\*STDOUT; print STDERR 'into the answer'});
    is(body('error'), 'into the answer');
    script('warns', qq{$head warn "to the log\\n"});
    is(body('warns'), '');
    like(log_text(), qr/^to the log$/m);
};

subtest 'special variables are those of a fresh process' => sub {
    script('special', qq{$head print join '|', map { defined ? \$_ : 'undef' } \$/, \$\\, \$,, \$", \$;, \$|, \$^W, \$@, \$_;
        (\$/, \$\\, \$,, \$", \$;, \$|, \$^W, \$@, \$_) = ('a', 'b', 'c', 'd', 'e', 1, 1, 'f', 'g');});
    my $first = body('special');
    like($first, qr/\A\n\|undef\|undef\| \|\034\|0\|0\|\|/);
    is(body('special'), $first);
    script('signals', qq{$head print join '|', map { \$SIG{\$_} // 'undef' } qw(__WARN__ __DIE__ ALRM CHLD PIPE);
        \$SIG{\$_} = sub { } for qw(__WARN__ __DIE__ ALRM CHLD PIPE); alarm 100; umask 0; chdir '/'; push \@INC, '/x';});
    is(body('signals'), 'undef|undef|undef|undef|undef') for 1 .. 2;
    script('place', qq{use Cwd; $head print getcwd(), '|', umask, '|', grep { \$_ eq '/x' } \@INC;});
    is(body('place'), "$place|" . umask . '|');
    script('warnings', "#!/usr/bin/perl -w\n$head print \$^W; my \$x; my \$y = \"a\$x\";");
    is(body('warnings'), 1);
    like(log_text(), qr{uninitialized value \$x .* at \Q$place\E/warnings line 2});
};

subtest 'what modules call is put back as well' => sub {
    script('left', qq{use Cwd; $head print join '|', alarm 0, umask, getcwd()});
    my $fresh = join '|', 0, umask, $place;
    for my $call ('use POSIX; POSIX::alarm(100)', 'use Time::HiRes; Time::HiRes::alarm(100)',
        'use Time::HiRes qw(alarm); alarm 100', 'use Cwd qw(chdir); chdir "/"', 'use POSIX; POSIX::umask(7)',
        'use POSIX; POSIX::chdir("/")', 'eval q{alarm 100; chdir ".."; umask 7}') {
        script('calls', "$call; $head print 'called'");
        for (1 .. 2) {
            is(body('calls'), 'called', $call);
            is(body('left'),  $fresh,   "after $call");
        }
    }
};

subtest 'handlers of the process come back' => sub {
    script('handles', qq{$head { local \$SIG{TERM} = 'IGNORE'; } \$SIG{TERM} = 'DEFAULT' if \$ENV{QUERY_STRING} eq 'x=y'; print 'set'});
    for my $query ('', 'x=y', '', '') {
        is(body('handles', env => { QUERY_STRING => $query }), 'set');
        is(body('plain'),                                      "<p>\n");
    }
};

subtest 'a child that runs off the end of the script is gone' => sub {
    script('off', qq{$head my \$pid = fork; waitpid \$pid, 0 if \$pid; print \$pid ? "parent \$\$" : '';});
    script('off2', qq{$head my \$pid = open my \$kid, '-|'; print \$pid ? ('of the child: ', <\$kid>) : 'text';});
    for (1 .. 2) {
        is(body('off'),  'parent ' . $peer->pid);
        is(body('off2'), 'of the child: text');
    }
};

subtest '__END__, __DATA__ and pod' => sub {
    script('data', qq{$head print <DATA>;\n__DATA__\none\ntwo\n});
    is(body('data'), "one\ntwo\n") for 1 .. 2;
    script('end', qq{$head print tell(DATA) >= 0 ? <DATA> : 'closed';\n__END__\nthree\n});
    is(body('end'), "three\n") for 1 .. 2;
    script('pod', "$head print 'pod';\n\n=head1 NAME\n\nunfinished {\n");
    is(body('pod'), 'pod');
    script('comment', "$head print 'comment' # }");
    is(body('comment'), 'comment');
};

subtest 'END and BEGIN blocks' => sub {
    script('blocks', qq{our \$begun; BEGIN { \$begun++ } $head END { print 'end' . ++\$ends } print "begun\$begun "; exit});
    is(body('blocks'), 'begun1 end1');
    is(body('blocks'), 'begun1 end2');
};

subtest 'libraries that are no modules' => sub {
    script('library.pl', 'sub shared { return "shared by " . __PACKAGE__ } 1;');
    for my $name (qw(first second)) {
        script($name, qq{require './library.pl'; $head print shared() ? 'ok' : ''; our \$n; print ++\$n});
    }
    is(body('first'),  'ok1');
    is(body('second'), 'ok1');
    is(body('first'),  'ok2');
    is(body('second'), 'ok2');
};

subtest 'CGI.pm' => sub {
    plan skip_all => 'CGI.pm is not installed (libcgi-pm-perl)' if !eval { require CGI; 1 };
    script('cgi', 'use CGI qw(:standard); print header("text/plain"), join "|", map { "$_=" . param($_) } param();');
    is(body('cgi', env => { QUERY_STRING => "a=$_" }), "a=$_") for 1 .. 3;
    is(body('cgi', body => 'b=4&c=5', env => { REQUEST_METHOD => 'POST', CONTENT_LENGTH => 7,
        CONTENT_TYPE => 'application/x-www-form-urlencoded' }), 'b=4|c=5');
    is(body('cgi'), '');
    script('carp', 'use CGI::Carp qw(fatalsToBrowser); print undefined_sub();');
    for (1 .. 2) {
        my $answer = run('carp');
        like($answer->{fields}, qr/Status: 500/);
        like($answer->{body},   qr/Software error:.*undefined_sub/s);
    }
    like(run('dies')->{failed}, qr/no luck/, 'its handler is not that of other scripts');
};

subtest 'long and streamed output' => sub {
    script('long', qq{$head print 'x' x 1000 for 1 .. 1000;});
    is(length body('long'), 1_000_000);
    script('children', qq{$head \$| = 1; print 'a'; system 'head -c 500000 /dev/zero'; print 'b'});
    is(length body('children'), 500_002);
    script('streams', qq{$head \$| = 1; print "one\\n"; my \$x = <STDIN>; print "two\\n"; exit});
    my $id = $peer->request(env => { SCRIPT_FILENAME => "$place/streams" });
    is($peer->receive->{kind}, 'head');
    is($peer->receive->{payload}, "one\n");
    is($peer->answer($id)->{body}, "two\n");
};

subtest 'a child that stays behind does not write into the next answer' => sub {
    pipe my $wait, my $go or die "pipe: $!";
    script('stays', qq{$head \$| = 1; print 'mine'; system "while ! [ -e $place/go ]; do sleep 0.05; done; echo late; touch $place/done &"});
    script('stays', qq{$head \$| = 1; print 'mine'; system "(while ! [ -e $place/go ]; do sleep 0.02; done; echo late; touch $place/done) &"});
    is(body('stays'), 'mine');
    script('waits', qq{$head open my \$f, '>', "$place/go"; close \$f; select undef, undef, undef, 0.01 until -e "$place/done"; print 'next'});
    is(body('waits'), 'next');
};

subtest 'nor does one that nobody has waited for' => sub {
    unlink "$place/go", "$place/done";
    script('leaves', qq{$head if (!fork) { select undef, undef, undef, 0.02 until -e "$place/go"; syswrite STDOUT, 'late';
        print 'later'; open my \$f, '>', "$place/done"; exit } print 'mine'});
    is(body('plain'),  "<p>\n") for 1 .. 3;
    is(body('leaves'), 'mine');
    is(body('waits'),  'next');
    is(body('plain'),  "<p>\n") for 1 .. 3;
};

subtest 'a worker that is told to end ends' => sub {
    is(body('plain'), "<p>\n");
    $peer->send(drain => 0, '');
    is($peer->wait, 0);
    start();
    script('hangs', qq{$head \$| = 1; print 'x'; while (1) { sleep 60 }});
    $peer->request(env => { SCRIPT_FILENAME => "$place/hangs" });
    $peer->receive for 1 .. 3;
    kill TERM => $peer->pid;
    is($peer->wait, 143);
    like(log_text(), qr{stopped by SIGTERM.*\Q$place\E/hangs line 1}s);
};

subtest 'loops over requests get one each time the script runs' => sub {
    start();
    plan skip_all => 'CGI::Fast is not there' if !eval { local $SIG{__WARN__} = sub { }; require CGI::Fast; 1 };
    script('fast', 'use CGI::Fast; my $count = 0;' . "\n"
        . 'while (my $q = CGI::Fast->new) {' . $head . 'print $q->param("a"), " ", ++$count, "\n" }');
    for my $value (1 .. 3) {
        is(body('fast', env => { REQUEST_METHOD => 'GET', QUERY_STRING => "a=$value" }), "$value 1\n");
    }
    script('late', 'require FCGI; my $r = FCGI::Request(); my $n = 0;'
        . 'while ($r->Accept >= 0) {' . $head . 'print "$ENV{QUERY_STRING} ", ++$n }');
    is(body('late', env => { QUERY_STRING => $_ }), "$_ 1") for 1 .. 3;
};

done_testing;
