#!/usr/bin/perl

# Counts its requests: resident = { perl = "counter.pl" }. What this process has counted is in a
# variable; what all processes have counted, now and before a restart, is in a file.

use strict;
use warnings;

use Fcntl qw(:flock O_CREAT O_RDWR SEEK_SET);
use Hob;

my $path = $ENV{COUNTER_FILE} // 'counter.txt';
sysopen my $file, $path, O_RDWR | O_CREAT or die "$path: $!\n";
my $here = 0;

sub count_up {
    flock $file, LOCK_EX or die "$path cannot be locked: $!\n";
    sysseek $file, 0, SEEK_SET;
    sysread $file, my $text, 32;
    my $all = ($text // '') =~ /\A([0-9]+)/ ? $1 + 1 : 1;
    sysseek $file, 0, SEEK_SET;
    syswrite $file, "$all\n" or die "$path cannot be written: $!\n";
    flock $file, LOCK_UN;
    return $all;
}

while (my $request = Hob->accept) {
    my $all = eval { count_up() };
    if (!$all) { $request->fail($@); next }
    $here++;
    $request->respond(200, ['Content-Type' => 'text/plain'],
        "request $here of process $$, $all in all\n");
}
