# Programs of other people: the same bytes kept compiled as run by perl, and applications of
# frameworks. What is not installed is skipped.

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
my %fixed = (PATH => $ENV{PATH}, PERL_HASH_SEED => 0, HOME => $place, TZ => 'UTC');

sub write_file {
    my ($name, $text) = @_;
    open my $file, '>', "$place/$name" or die "$place/$name: $!";
    print $file $text;
    close $file or die "$place/$name: $!";
    return "$place/$name";
}

# Asks a script three times as a kept one, and once as plain CGI, for each query.
sub is_the_same {
    my ($script, $variables, @queries) = @_;
    my %base = (%fixed, %$variables);
    my $peer = do {
        local %ENV = %base;
        Peer->host({ stderr => "$place/stderr" }, scripts => $place);
    };
    for my $round (1 .. 2) {
        for my $query (@queries) {
            my %env = (
                GATEWAY_INTERFACE => 'CGI/1.1', SERVER_SOFTWARE => 'hob', SERVER_PROTOCOL => 'HTTP/1.1',
                SERVER_NAME => 'localhost', SERVER_PORT => 80, REQUEST_SCHEME => 'http',
                REMOTE_ADDR => '127.0.0.1', REQUEST_METHOD => 'GET', SCRIPT_NAME => '/script',
                PATH_INFO => '', REQUEST_URI => "/script?$query", QUERY_STRING => $query,
                HTTP_HOST => 'localhost', SCRIPT_FILENAME => $script,
            );
            my $answer = $peer->get(env => \%env);
            my $plain  = do {
                local %ENV = (%base, %env);
                `$^X $script 2>/dev/null`;
            };
            my $kept = ($answer->{fields} // '') . "\n" . $answer->{body};
            s/\r\n/\n/g, s/^(?:Expires|Last-Modified):.*\n//gmi for $plain, $kept;
            s/<(td class="age|span id="generating_time).*?<\/\w+>//gs, s/<i>[^<]*ago[^<]*<\/i>//g
                for $plain, $kept;
            cmp_ok(length $plain, '>', 20, 'plain CGI answers');
            ok($kept eq $plain, "round $round, $query") or diag differing($plain, $kept);
        }
    }
    return;
}

sub differing {
    my ($plain, $kept) = map { write_file("side$_->[0]", $_->[1]) } [1, $_[0]], [2, $_[1]];
    return scalar `diff $plain $kept | head -20`;
}

sub installed {
    my ($name, @paths) = @_;
    my ($path) = grep { -r } @paths;
    plan skip_all => "$name is not installed" if !$path;
    return $path;
}

subtest 'gitweb' => sub {
    my $script = installed(gitweb => '/usr/share/gitweb/gitweb.cgi', '/usr/lib/cgi-bin/gitweb.cgi');
    my $git    = 'git -c user.name=Ada -c user.email=ada@example.org -c init.defaultBranch=main';
    local %ENV = (%ENV, HOME => $place, GIT_CONFIG_NOSYSTEM => 1,
        GIT_AUTHOR_DATE => '2024-05-06T07:08:09Z', GIT_COMMITTER_DATE => '2024-05-06T07:08:09Z');
    mkdir "$place/repos";
    my $made = `set -e; cd $place/repos; $git init -q one.git; cd one.git; echo first > README;
        $git add .; $git commit -qm 'first'; echo '<&>' >> README; $git commit -qam 'second <&>';
        $git tag v1 2>&1`;
    is($?, 0, $made) or return;
    my $config = write_file('gitweb.conf', <<"END");
our \$projectroot = '$place/repos';
\$feature{'snapshot'}{'default'} = ['tgz'];
1;
END
    is_the_same($script, { GITWEB_CONFIG => $config }, '', 'p=one.git/.git;a=summary',
        'p=one.git/.git;a=commitdiff', 'p=one.git/.git;a=blob_plain;f=README;hb=HEAD',
        'p=one.git/.git;a=snapshot;h=v1;sf=tgz', 'p=one.git/.git;a=rss', 'p=none');
};

subtest 'awstats' => sub {
    my $script = installed(awstats => '/usr/lib/cgi-bin/awstats.pl',
        '/usr/share/awstats/wwwroot/cgi-bin/awstats.pl');
    mkdir "$place/$_" for qw(stats conf);
    # No two hosts or pages have as many hits: what is equal stands in the order of a hash.
    my $log = write_file('access.log', join '', map {
        my $nth = int((sqrt(8 * $_ + 1) - 1) / 2);
        sprintf qq{192.0.2.%d - - [06/May/2024:07:%02d:09 +0000] "GET /page-%d.html HTTP/1.1" 200 %d }
            . qq{"http://example.org/<&>" "Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0"\n},
            $nth % 7 + 1, $_ % 60, $nth, $_
    } 0 .. 104);
    write_file('conf/awstats.site.conf', <<"END");
LogFile="$log"
LogFormat=1
LogType=W
LogSeparator=" "
SiteDomain="example.org"
HostAliases="example.org"
DNSLookup=0
DirData="$place/stats"
DirCgi="/"
DirIcons="/icon"
AllowToUpdateStatsFromBrowser=1
Lang="en"
END
    my $config = "configdir=$place/conf";
    my $made   = `$^X $script -config=site -$config -update 2>&1`;
    is($?, 0, $made) or return;
    is_the_same($script, { AWSTATS_ENABLE_CONFIG_DIR => "$place/conf" },
        map { "config=$_" } "site&$config&month=05&year=2024",
        "site&$config&month=05&year=2024&output=urldetail", "site&$config&update=1", 'other');
};

# Asks an application for a page, a form, a redirect, a stream and an error.
sub is_an_application {
    my ($code) = @_;
    local @ENV{keys %fixed} = values %fixed;
    my $peer = Peer->host({ dir => $place, stderr => "$place/stderr" },
        psgi => write_file('application.psgi', $code));
    my $page = $peer->get(env => { PATH_INFO => '/hello/Ada' });
    is($page->{status}, 200);
    is($page->{body},   'Hello Ada');
    my $form = $peer->get(body => 'a=1&b=%C3%A4', env => {
        REQUEST_METHOD => 'POST', PATH_INFO => '/form', CONTENT_LENGTH => 12,
        CONTENT_TYPE => 'application/x-www-form-urlencoded',
    });
    is($form->{body}, "1 \xc3\xa4");
    my $redirect = $peer->get(env => { PATH_INFO => '/old' });
    is($redirect->{status}, 302);
    like($redirect->{fields}, qr{^Location: \S*/hello/new$}m);
    is($peer->get(env => { PATH_INFO => '/nowhere' })->{status}, 404);
    is($peer->get(env => { PATH_INFO => '/broken' })->{status},  500);
    ok($peer->get(env => { PATH_INFO => '/long' })->{body} eq 'x' x 300_000, 'a stream');
    is($peer->get(env => { PATH_INFO => '/hello/again' })->{body}, 'Hello again');
    return;
}

subtest 'Dancer2' => sub {
    eval { require Dancer2; 1 } or plan skip_all => 'Dancer2 is not installed (libdancer2-perl)';
    is_an_application(<<'END');
package Application;
use Dancer2;
set charset => 'UTF-8';
set logger  => 'null';
get '/hello/:name' => sub { 'Hello ' . route_parameters->get('name') };
post '/form' => sub { join ' ', map { body_parameters->get($_) } qw(a b) };
get '/old'    => sub { redirect '/hello/new' };
get '/broken' => sub { die "broken\n" };
get '/long'   => sub { delayed { content 'x' x 100_000 for 1 .. 3; done } };
Application->to_app;
END
};

subtest 'Mojolicious' => sub {
    eval { require Mojolicious; 1 } 
        or plan skip_all => 'Mojolicious is not installed (libmojolicious-perl)';
    is_an_application(<<'END');
use Mojolicious::Lite;
app->log->level('fatal');
get '/hello/:name' => sub { $_[0]->render(text => 'Hello ' . $_[0]->param('name')) };
post '/form' => sub { my $c = shift; $c->render(text => join ' ', map { $c->param($_) } qw(a b)) };
get '/old'    => sub { $_[0]->redirect_to('/hello/new') };
get '/broken' => sub { die "broken\n" };
get '/long'   => sub {
    my $c     = shift;
    my $count = 3;
    my $write;
    $write = sub { $count-- ? $c->write('x' x 100_000 => $write) : $c->finish };
    $write->();
};
app->start;
END
};

done_testing;
