# The tests' program as a PSGI application.
use strict;
use warnings;
use Acts;
use Digest::MD5;

my @fields = ('Content-Type' => 'application/octet-stream');

my %streams = (
    echo => sub {
        my ($env, $writer) = @_;
        while ($env->{'psgi.input'}->read(my $piece, 50_000)) { $writer->write($piece) }
    },
    pieces => sub {
        my ($env, $writer, $rest) = @_;
        $writer->write("first\n");
        Acts::wait_for("$rest.go");
        $writer->write("second\n");
    },
    endless => sub {
        my ($env, $writer, $rest) = @_;
        eval { $writer->write('x' x 10_000) while 1 };
        Acts::mark("$rest.left");
        die $@;
    },
    raise_late => sub {
        my ($env, $writer, $rest) = @_;
        $writer->write("first\n");
        Acts::wait_for("$rest.go");
        die "told to raise\n";
    },
    kill_late => sub {
        my ($env, $writer, $rest) = @_;
        $writer->write("first\n");
        Acts::wait_for("$rest.go");
        kill KILL => $$;
    },
);

sub {
    my ($env) = @_;
    my ($verb, $rest) = Acts::words($env->{PATH_INFO});
    return [200, [@fields], [$$]] if $verb eq 'pid';
    return [200, [@fields, 'Content-Length' => $rest], [Acts::pattern($rest)]] if $verb eq 'down';
    if ($verb eq 'digest') {
        my $digest = Digest::MD5->new->addfile($env->{'psgi.input'})->hexdigest;
        return [200, [@fields], [$digest, $env->{'psgix.input.buffered'} ? ' buffered' : '']];
    }
    die "told to raise\n" if $verb eq 'raise';
    kill KILL => $$ if $verb eq 'kill';
    return sub {
        my $writer = $_[0]->([200, [@fields]]);
        $streams{$verb}->($env, $writer, $rest);
        $writer->close;
    };
};
