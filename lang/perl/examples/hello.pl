#!/usr/bin/perl

# Says hello. Resident: resident = { perl = "hello.pl" }; also runs as plain CGI.

use strict;
use warnings;

use Hob;

while (my $request = Hob->accept) {
    my $address = $request->env->{REMOTE_ADDR} // 'you';
    $request->respond(200, ['Content-Type' => 'text/plain'], "Hello, $address\n");
}
