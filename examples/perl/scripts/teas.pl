#!/usr/bin/perl

# A table, as an ordinary CGI script: nothing in it knows how it is run.

use strict;
use warnings;

my %minutes = (assam => 4, oolong => 3, sencha => 2);
my ($least) = ($ENV{QUERY_STRING} // '') =~ /\bleast=([0-9]+)/;

print "Content-Type: text/html; charset=utf-8\n\n";
print "<!doctype html>\n<title>Teas</title>\n<table>\n";
for my $tea (grep { $minutes{$_} >= ($least // 0) } sort keys %minutes) {
    print "<tr><td>$tea<td>$minutes{$tea} minutes\n";
}
print "</table>\n<p>Answered by process $$.\n";
