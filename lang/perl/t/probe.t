# The cases that every language shares, for each of Perl's interfaces, over a socket.

use 5.026;
use strict;
use warnings;

use Cwd        ();
use Encode     ();
use File::Temp ();
use FindBin;
use JSON::PP   ();
use Test::More;

use lib "$FindBin::Bin/lib";
use Peer;

my $probe = Cwd::abs_path("$FindBin::Bin/../probe");
my $place = File::Temp->newdir;
my $path  = "$FindBin::Bin/../../probe/cases.json";
open my $file, '<', $path or plan skip_all => "$path is not there";
my $cases = JSON::PP::decode_json(do { local $/; readline $file })->{cases};

my %interfaces = (
    loop => { run => [loop => "$probe/probe_loop.pl"], has => [qw(trailers infos broken callouts)] },
    psgi => { run => [psgi => "$probe/probe.psgi"], has => [qw(infos broken callouts)] },
    scripts => { run => [scripts => $probe], has => [qw(broken)] },
);

for my $name (sort keys %interfaces) {
    subtest $name => sub {
        my $interface = $interfaces{$name};
        my %has       = map { $_ => 1 } @{ $interface->{has} };
        my $peer      = Peer->host({ stderr => "$place/stderr" }, @{ $interface->{run} });
        for my $case (@$cases) {
            my @missing = grep { !$has{$_} } @{ $case->{needs} // [] };
            SKIP: {
                skip "$case->{name} needs @missing", 1 if @missing;
                is_deeply(asked($peer, $case), $case->{answer}, $case->{name});
            }
        }
    };
}
done_testing;

# What was answered, with as much of it as the case asks for.
sub asked {
    my ($peer, $case) = @_;
    my $request = $case->{request};
    my $uri     = $request->{path} . (defined $request->{query} ? "?$request->{query}" : '');
    (my $path = $request->{path}) =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    my %env = (
        REQUEST_METHOD => $request->{method}, REQUEST_URI => $uri, PATH_INFO => $path,
        QUERY_STRING => $request->{query} // '', SCRIPT_FILENAME => "$probe/probe_cgi.pl",
    );
    for my $field (@{ $request->{headers} // [] }) {
        (my $variable = uc $field->[0]) =~ tr/-/_/;
        next if $variable eq 'PROXY';
        $variable = "HTTP_$variable" if $variable ne 'CONTENT_TYPE';
        $env{$variable} = Encode::encode_utf8($field->[1]);
    }
    my $body   = bytes($request->{body});
    my $length = $request->{chunked} ? ~0 : defined $body ? length $body : 0;
    $env{CONTENT_LENGTH} = $length if defined $body && !$request->{chunked};
    my $answer = $peer->get(env => \%env, body => $body, length => $length);
    return reduced($answer, $case->{answer}, $request->{method} eq 'HEAD');
}

# An answer in the form of a case.
sub reduced {
    my ($answer, $wanted, $is_head) = @_;
    my $status = $answer->{status} // 500;
    my @fields = map { [/\A(.*?):[ \t]*(.*?)\r?\z/] } split /\n/, $answer->{fields} // '';
    if ($status eq '0') {
        ($status) = map { substr $_->[1], 0, 3 } grep { lc $_->[0] eq 'status' } @fields;
        $status //= 200;
    }
    my %got = (status => $status + 0);
    my %names = map { lc $_->[0] => 1 } @{ $wanted->{headers} // [] };
    my @kept = grep { $names{ lc $_->[0] } } @fields;
    $_->[1] = Encode::decode_utf8($_->[1]) for @kept;
    my %order;
    $order{ lc $wanted->{headers}[$_][0] } //= $_ for 0 .. $#{ $wanted->{headers} // [] };
    $got{headers} = [sort { $order{ lc $a->[0] } <=> $order{ lc $b->[0] } } @kept]
        if $wanted->{headers};
    if (defined $wanted->{body}) {
        my $expected = bytes($wanted->{body});
        my $body     = $is_head ? '' : $answer->{body};
        $got{body} = $body eq $expected ? $wanted->{body} : length($body) . " bytes: " . substr $body, 0, 80;
    }
    $got{trailers} = [map { [split /: /, $_, 2] } split /\n/, $answer->{trailers}] if $wanted->{trailers};
    $got{infos} = [map { [$_->[0], [map { [split /: /, $_, 2] } split /\n/, $_->[1]]] } @{ $answer->{info} }]
        if $wanted->{infos};
    $got{broken} = JSON::PP::true() if defined $answer->{failed} && $wanted->{broken};
    return \%got;
}

sub bytes {
    my ($body) = @_;
    return if !defined $body;
    return Encode::encode_utf8($body) if !ref $body;
    return pack 'H*', $body->{hex} if defined $body->{hex};
    return substr $body->{repeat} x ($body->{bytes} / length($body->{repeat}) + 1), 0, $body->{bytes};
}
