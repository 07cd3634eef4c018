#!/usr/bin/perl
# The tests' program as an unchanged CGI script.
use strict;
use warnings;
use lib '..';
use Acts;

my ($verb, $rest) = Acts::words($ENV{PATH_INFO});
binmode STDIN;
binmode STDOUT;
die "told to raise\n" if $verb eq 'raise';
kill KILL => $$       if $verb eq 'kill';
print "Content-Type: application/octet-stream\n\n";
if    ($verb eq 'pid')  { print $$ }
elsif ($verb eq 'down') { print Acts::pattern($rest) }
elsif ($verb eq 'echo') {
    while (read STDIN, my $piece, 50_000) { print $piece }
}
else {
    $| = 1;
    print "first\n";
    Acts::wait_for("../$rest.go");
    die "told to raise\n" if $verb eq 'raise_late';
    kill KILL => $$ if $verb eq 'kill_late';
    print "second\n";
}
