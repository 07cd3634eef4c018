#!/usr/bin/perl

# Answers the shared cases of lang/probe/cases.json as an old CGI script, which knows nothing of
# what runs it.

use strict;
use warnings;

my $DIGITS = '0123456789abcdef';
my $text   = "Content-Type: text/plain\r\n\r\n";
my $octets = "Content-Type: application/octet-stream\r\n";
my (undef, $first, @words) = split m{/}, $ENV{PATH_INFO};
my $type   = $ENV{CONTENT_TYPE} || 'application/octet-stream';

binmode STDIN;
binmode STDOUT;

if ($first eq 'hello') { print "Content-Length: 12\r\n", $text, "Hello world\n" }
elsif ($first eq 'empty')  { print $text }
elsif ($first eq 'environ') {
    print $text;
    for my $name (split /,\s*/, $ENV{HTTP_X_SHOW}) {
        print defined $ENV{$name} ? "$name=$ENV{$name}\n" : "$name is not set\n";
    }
}
elsif ($first eq 'echo' && !@words) {
    my $body = '';
    while (read STDIN, my $piece, 16384) { $body .= $piece }
    print "Content-Type: $type\r\n\r\n", $body;
}
elsif ($first eq 'echo') {
    $| = 1;
    print "Content-Type: $type\r\n\r\n";
    while (sysread STDIN, my $piece, 16384) { print $piece }
}
elsif ($first eq 'count') {
    my $count = 0;
    while (my $size = read STDIN, my $piece, 16384) { $count += $size }
    print $text, "$count\n";
}
elsif ($first eq 'ignore') { print $text, "ignored\n" }
elsif ($first eq 'status' && $words[0] =~ /^[23]04$/) { print "Status: $words[0]\r\n\r\n" }
elsif ($first eq 'status')   { print "Status: $words[0]\r\n", $text, "status $words[0]\n" }
elsif ($first eq 'redirect') { print "Status: 302\r\nLocation: https://example.invalid/there\r\n\r\n" }
elsif ($first eq 'fields') {
    print "Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; HttpOnly\r\nX-Empty:\r\n",
        'X-Long: ', 'l' x 4000, "\r\nX-Bytes: \xc3\xa4\xc3\xb6\xc3\xbc\r\n", $text, "fields\n";
}
elsif ($first eq 'type') { print "Content-Type: image/svg+xml\r\n\r\n<svg/>" }
elsif ($first eq 'size') {
    print $octets, "Content-Length: $words[0]\r\n\r\n";
    print digits(0, $words[0]);
}
elsif ($first eq 'stream') {
    my ($bytes, $piece) = @words;
    $| = 1;
    print $octets, "\r\n";
    for (my $at = 0; $at < $bytes; $at += $piece) {
        print digits($at, $bytes - $at < $piece ? $bytes - $at : $piece);
    }
}
elsif ($first eq 'slow') {
    $| = 1;
    print $text;
    print "line $_\n" for 1 .. $words[0];
}
elsif ($first eq 'fail') {
    $| = 1;
    print $text, 'some' if $words[0] eq 'after';
    die "failed $words[0]\n";
}
else { print "Status: 404\r\n", $text, "no such case\n" }

sub digits {
    my ($from, $bytes) = @_;
    return substr $DIGITS x ($bytes / 16 + 2), $from % 16, $bytes;
}
