package Hob;

# The front door for programs with a loop of their own; everything it does is in Hob::Loop.

use 5.026;
use strict;
use warnings;

use Hob::Loop;

our $VERSION = '1.0';

my ($source, $last);

# The next request, a Hob::Loop; undef when it is time to end.
sub accept {
    $last->_leave if $last;
    undef $last;
    $source //= Hob::Loop->source;
    my $request = $source->next or return;
    return $last = Hob::Loop->new($request);
}

# Whether a server keeps this process resident; else it is plain CGI.
sub is_resident { return defined $ENV{HOB_FD} || ($source && $source->isa('Hob::Stream')) }

# Seconds that this process may be idle before the server ends it; -1: no limit.
sub lifetime {
    my ($class, $seconds) = @_;
    $source //= Hob::Loop->source;
    $source->tell("LIFETIME: $seconds");
    return;
}

# A line in the server's log that belongs to no request.
sub log {
    my ($class, $level, $text) = @_;
    $source //= Hob::Loop->source;
    $source->tell("LOG: $level $text");
    return;
}

1;

__END__

=head1 NAME

Hob - resident programs in Perl

=head1 SYNOPSIS

    use Hob;

    my $count = 0;    # stays between requests
    while (my $request = Hob->accept) {
        $count++;
        $request->respond(200, ['Content-Type' => 'text/plain'], "request $count\n");
    }

=head1 DESCRIPTION

A resident program is started once and answers one request after the other. This module takes them
from the server; the same program runs as plain CGI when no server keeps it resident. See
L<Hob::Loop> for what a request can do.

Three more ways to stay need no change in the program: L<Hob::PSGI> for PSGI applications,
L<Hob::Scripts> for CGI scripts, and L<Hob::Host>, which a server starts for both.

=over

=item accept

Waits for the next request. Nothing when the server wants the program to end. A request that was
not answered before is ended as failed.

=item is_resident

False when the program runs as plain CGI.

=item lifetime($seconds)

How long the process may be idle; -1 is for ever.

=item log($level, $text)

A line in the server's log.

=back

=head1 SEE ALSO

L<Hob::Stream> for the protocol.

=cut
