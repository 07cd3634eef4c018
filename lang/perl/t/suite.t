# Plack's own tests for servers, all of them, against the PSGI host over a socket.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use File::Temp ();
use FindBin;
use Test::More;

use lib "$FindBin::Bin/lib";
use Peer;

BEGIN {
    eval { require Plack::Test::Suite; require HTTP::Response; 1 }
        or plan skip_all => 'Plack is not installed (libplack-perl)';
}

my $place = File::Temp->newdir;
open my $file, '>', "$place/suite.psgi" or die "$place/suite.psgi: $!";
print $file "use Plack::Test::Suite; use Plack::Middleware::Lint;\n"
    . "Plack::Middleware::Lint->wrap(Plack::Test::Suite->test_app_handler);\n";
close $file;

my $peer   = Peer->host({ dir => "$place", stderr => "$place/stderr" }, psgi => 'suite.psgi');
my $number = 0;
Plack::Test::Suite->runtests(sub {
    my ($name, $ask) = @_;
    note $name;
    $ask->(sub { response($_[0], $number) });
    $number++;
});
done_testing;

# What the server does between HTTP and the protocol.
sub response {
    my ($request, $number) = @_;
    my $uri = $request->uri;
    $uri->port(80);
    my $path = $uri->path;
    $path =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    my %env = (
        REQUEST_METHOD   => $request->method,
        REQUEST_URI      => $uri->path_query,
        PATH_INFO        => $path,
        QUERY_STRING     => $uri->query // '',
        HTTP_X_PLACK_TEST => $number,
    );
    for my $name ($request->header_field_names) {
        (my $variable = 'HTTP_' . uc $name) =~ tr/-/_/;
        $variable =~ s/\AHTTP_(?=CONTENT_(?:TYPE|LENGTH)\z)//;
        $env{$variable} = join ', ', $request->header($name);
    }
    my $body   = length $request->content ? $request->content : undef;
    my $answer = $peer->get(env => \%env, body => $body);
    my $status = $answer->{status} // 500;
    my @fields = map { split /: /, $_, 2 } split /\n/, $answer->{fields} // '';
    my $response = HTTP::Response->new($status, HTTP::Status::status_message($status), \@fields,
        $answer->{body});
    $response->request($request);
    return $response;
}
