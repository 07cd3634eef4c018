use strict;
print "Content-Type: text/plain\n\n";
my %once = map { $_ => 1 } qw(UNIQUE_ID REMOTE_PORT REQUEST_TIME REQUEST_TIME_FLOAT);
print "$_=$ENV{$_}\n" for grep { !$once{$_} } sort keys %ENV;
print "[$_]\n" for @ARGV;
print join(',', sort map { chomp; $_ } grep { !/^(?:_|PWD|SHLVL)=/ } `env`) eq join(',', sort map {"$_=$ENV{$_}"} keys %ENV) ? "same\n" : "other\n";
