#!/usr/bin/env perl
# CGI: the query string says how many KiB of body.
use strict;
use warnings;

print "Content-Type: text/plain\r\n\r\n";
my $line = ('x' x 1023) . "\n";
print $line for 1 .. ($ENV{QUERY_STRING} || 0);
