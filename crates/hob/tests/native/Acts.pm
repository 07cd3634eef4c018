package Acts;

# What the tests' Perl programs have in common.

use strict;
use warnings;

my $pattern = join('', map { chr } 0 .. 250) x 300;

sub pattern { return substr $pattern x (int($_[0] / length $pattern) + 1), 0, $_[0] }

sub mark {
    open my $file, '>', $_[0] or die "$_[0]: $!";
    close $file;
}

sub wait_for { select undef, undef, undef, 0.01 until -e $_[0] }

sub words { return $_[0] =~ m{\A/([^/]*)/?(.*)\z} }

1;
