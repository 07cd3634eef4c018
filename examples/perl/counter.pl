#!/usr/bin/perl

# Counts requests, as a plain loop. Each process has a count of its own.

use strict;
use warnings;

use Hob;

my $count = 0;

while (my $request = Hob->accept) {
    my $path = $request->env->{PATH_INFO};
    $count++;
    $request->respond(200, ['Content-Type' => 'text/plain; charset=utf-8'],
        "request $count of process $$, for $path\n");
}
