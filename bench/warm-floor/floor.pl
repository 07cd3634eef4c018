# The least that a script forked from a warm Perl costs: a loop that answers HTTP, a fork for each
# request, a pipe for what it prints, its exit.
#
#     perl floor.pl PORT SCRIPT [MODULE...]
#
# Nothing is given to the script, nothing limited, nothing logged, nothing of what a script may leave
# behind is seen to: the child runs the script, which is a sub here, and is gone with `_exit`.
use strict;
use warnings;
use POSIX ();
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_REUSEADDR SOMAXCONN INADDR_LOOPBACK pack_sockaddr_in);

my ($port, $script, @modules) = @ARGV;
eval "require $_; 1" or die $@ for @modules;
my $code = do {
    local $/;
    open my $file, '<', $script or die "$script: $!\n";
    my $text = <$file>;
    eval "package main; no strict; no warnings; sub {\n$text\n}" or die $@;
};
@ARGV = ();
socket my $listener, PF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
setsockopt $listener, SOL_SOCKET, SO_REUSEADDR, 1;
bind $listener, pack_sockaddr_in($port, INADDR_LOOPBACK) or die "bind: $!\n";
listen $listener, SOMAXCONN or die "listen: $!\n";

# Who has left shows that when it is read.
$SIG{PIPE} = 'IGNORE';
my $bits = '';
vec($bits, fileno $listener, 1) = 1;
my (%clients, %outputs);
while (1) {
    next if select(my $ready = $bits, undef, undef, undef) <= 0;
    if (vec $ready, fileno $listener, 1) {
        accept my $client, $listener or next;
        $clients{ fileno $client } = $client;
        vec($bits, fileno $client, 1) = 1;
    }
    for my $fd (grep { vec $ready, $_, 1 } keys %outputs) {
        my $output = $outputs{$fd};
        next if sysread $output->{pipe}, $output->{text}, 65536, length $output->{text};
        delete $outputs{$fd};
        vec($bits, $fd, 1) = 0;
        close $output->{pipe};
        waitpid $output->{process}, 0;
        my ($head, $body) = split /\r\n\r\n/, $output->{text}, 2;
        my $length = length $body;
        syswrite $output->{client}, "HTTP/1.1 200 OK\r\nContent-Length: $length\r\n$head\r\n\r\n$body";
    }
    for my $fd (grep { vec $ready, $_, 1 } keys %clients) {
        my $client = $clients{$fd};
        if (!sysread $client, my $request, 65536) {
            delete $clients{$fd};
            vec($bits, $fd, 1) = 0;
            close $client;
            next;
        }
        pipe my $reading, my $writing or die "pipe: $!\n";
        my $process = fork;
        die "fork: $!\n" unless defined $process;
        if (!$process) {
            POSIX::dup2(fileno $writing, 1);
            $code->();
            $| = 1;
            POSIX::_exit(0);
        }
        close $writing;
        $outputs{ fileno $reading }
            = { pipe => $reading, client => $client, process => $process, text => '' };
        vec($bits, fileno $reading, 1) = 1;
    }
}
