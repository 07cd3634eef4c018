# A Perl that is kept, and forks for each request: it runs CGI scripts unchanged.
#
# The server gives it this text as standard input, starts it on that file, and speaks with it over
# descriptor 3; what they say to each other is drawn in
# `crates/server/src/handle/warm/protocol.rs`.
#
# All of it is one BEGIN block, which runs while perl still reads its main program. A child puts the
# script in the place of what is left of that file and returns: perl goes on reading, and what it
# reads is the script, as the main program, from its first line.
#
#   host ---- fork --> child, returns from BEGIN: compiles the script, runs it      ("each")
#    '------- fork --> template, returns from BEGIN: compiles the script, stops before it runs
#                        '-- fork --> child, returns from INIT: runs it             ("compile")
#
# The loops of the host and of a template are here and, for speed, in the native part, Warm.xs,
# which is used when it is there.
#
# No handle of perl's is used for the sockets: it would close them once more at its end, when their
# numbers are the script's.
BEGIN {
    package Hob::Warm;
    use strict;
    use warnings;

    # ------------------------------------------------------------------ system calls

    require Config;
    my %call = $Config::Config{archname} =~ /^x86_64/
        ? (close => 3, rt_sigprocmask => 14, socketpair => 53, sendto => 44, sendmsg => 46, recvmsg => 47,
           wait4 => 61, fcntl => 72, read => 0, pread64 => 17, write => 1, lseek => 8, dup3 => 292,
           signalfd4 => 289, prlimit64 => 302, getrandom => 318, memfd_create => 319,
           exit_group => 231, openat => 257,
           statx => 332, clock_gettime => 228)
        : (close => 57, rt_sigprocmask => 135, socketpair => 199, sendto => 206, sendmsg => 211, recvmsg => 212,
           wait4 => 260, fcntl => 25, read => 63, pread64 => 67, write => 64, lseek => 62,
           dup3 => 24, signalfd4 => 74, prlimit64 => 261, getrandom => 278, memfd_create => 279,
           exit_group => 94, openat => 56,
           statx => 291, clock_gettime => 113);
    $call{close_range} = 436;
    my ($READ_STRINGS, $FORK, $DESCRIPTORS, $CHANGE_FOLDER, $READ_SCRIPT, $EXECUTE) = 0 .. 5;
    my ($EAGAIN, $EIO, $EINVAL) = (11, 5, 22);
    my $CLOEXEC = 02000000;
    my $NONBLOCK = 04000;
    my $PACKET_BYTES_MAX = 100 * 1024;
    # Descriptors of ours stand from here on, out of the way of the script's.
    my $OWN_BASE = do {
        my $limit = "\1" x 16;
        syscall $call{prlimit64}, 0, 7, 0, $limit;
        my ($soft) = unpack 'Q', $limit;
        $soft < 512 ? $soft >> 1 : 256;
    };
    my $TEMPLATES_MAX = 64;
    # A file that changed so short a time ago, in nanoseconds, may change again without showing it;
    # the second is for file systems that know whole seconds only.
    my @UNSETTLED = (50_000_000, 2_000_000_000);

    # Memory that the kernel writes to; written to before, so that it is nobody else's.
    my $packet = "\1" x $PACKET_BYTES_MAX;
    my $control = "\1" x 64;
    vec($_, 0, 8) = 0 for $packet, $control;
    my ($vector, $message);

    sub fd_close { syscall $call{close}, $_[0] }

    # Those that came with a packet: mostly neighbours.
    sub fd_close_all {
        return if @_ && $_[-1] - $_[0] == $#_ && syscall($call{close_range}, $_[0], $_[-1], 0) == 0;
        fd_close($_) for @_;
    }

    # The same descriptor out of the way, closed on exec.
    sub fd_own {
        my ($fd) = @_;
        my $own = syscall $call{fcntl}, $fd, 1030, $OWN_BASE;
        return $fd if $own < 0;
        fd_close($fd);
        return $own;
    }

    # Receives into $packet: its length and the descriptors with it; nothing when there is nothing.
    sub fd_receive {
        my ($fd) = @_;
        $vector = pack 'PQ', $packet, $PACKET_BYTES_MAX;
        $message = pack 'QQPQPQQ', 0, 0, $vector, 1, $control, 64, 0;
        # MSG_DONTWAIT | MSG_CMSG_CLOEXEC
        my $length = syscall $call{recvmsg}, $fd, $message, 0x40000040;
        if ($length < 0) {
            return $! == $EAGAIN || $! == 4 ? () : (0);
        }
        my $told = unpack 'Q', substr $message, 40, 8;
        return $length if $told < 20;
        my ($bytes, $level, $kind) = unpack 'Qll', $control;
        return $length unless $level == 1 && $kind == 1;
        return $length, unpack 'l*', substr $control, 16, $bytes - 16;
    }

    # Sends what was received last, with these descriptors.
    sub fd_pass_on {
        my ($fd, $length, @fds) = @_;
        my $bytes = 16 + 4 * @fds;
        substr $control, 0, $bytes, pack 'Qlll*', $bytes, 1, 1, @fds;
        $vector = pack 'PQ', $packet, $length;
        $message = pack 'QQPQPQQ', 0, 0, $vector, 1, $control, ($bytes + 7) & ~7, 0;
        # MSG_DONTWAIT | MSG_NOSIGNAL
        return $length == syscall $call{sendmsg}, $fd, $message, 0x4040;
    }

    sub fd_tell {
        my ($fd, $text) = @_;
        # MSG_NOSIGNAL; who is gone shows that when read.
        syscall $call{sendto}, $fd, $text, length $text, 0x4000, 0, 0;
    }

    # Says that a run did not run; false.
    sub failed {
        my ($link, $number, $step, $errno) = @_;
        fd_tell($link, pack 'CCSLQ', 1, 34, $step, $errno || $EIO, $number);
        return 0;
    }

    sub leave {
        my ($code) = @_;
        syscall $call{exit_group}, $code while 1;
    }

    sub signals {
        my ($how, $mask) = @_;
        syscall $call{rt_sigprocmask}, $how, pack('Q', $mask), 0, 8;
    }

    # A descriptor that is readable when a child has ended.
    sub bell {
        my $mask = pack 'Q', 1 << 16;
        signals(0, 1 << 16);
        return fd_own(syscall $call{signalfd4}, -1, $mask, 8, $CLOEXEC | $NONBLOCK);
    }

    my $bell;

    # Children that have ended: process, status, use.
    my ($status, $usage, $infos) = ("\1" x 4, "\1" x 144, "\1" x 1024);
    sub ended {
        my ($bell) = @_;
        syscall $call{read}, $bell, $infos, 1024;
        my @all;
        while ((my $pid = syscall $call{wait4}, -1, $status, 1, $usage) > 0) {
            push @all, [$pid, unpack('L', $status), unpack 'q*', $usage];
        }
        return @all;
    }

    sub tell_ended {
        my ($link, $number, $pid, $state, @used) = @_;
        fd_tell($link, pack 'CCSLQLLQ7', 1, 33, 0, 0, $number, $state, $pid, $used[4],
            $used[0] * 1_000_000 + $used[1], $used[2] * 1_000_000 + $used[3],
            @used[9, 8, 16, 17]);
    }

    # ------------------------------------------------------------------ runs

    # The native part, if it is there and can be loaded. Without DynaLoader.pm, which a script would
    # see to be loaded.
    our $native_folder;
    my $INTERFACE = 1;
    sub load_native {
        return 0 if !defined $native_folder || ($ENV{HOB_NATIVE} // '') eq 'off';
        my $file = sprintf '%s/%vd-%s-%x-warm.so', $native_folder, $^V, $Config::Config{archname},
            unpack '%32C*', join ' ', (Internals::V())[0, 1];
        return 0 if !-f $file || !defined &DynaLoader::boot_DynaLoader;
        DynaLoader::boot_DynaLoader('DynaLoader') if !defined &DynaLoader::dl_load_file;
        my $library = DynaLoader::dl_load_file($file, 0);
        if (!$library) {
            print STDERR "hob: $file: ", DynaLoader::dl_error(), "; going on without it\n";
            return 0;
        }
        my $symbol = DynaLoader::dl_find_symbol($library, 'boot_Hob__Warm') or return 0;
        DynaLoader::dl_install_xsub('Hob::Warm::boot', $symbol, $file)->(__PACKAGE__);
        return interface() == $INTERFACE;
    }
    my $is_native = load_native();

    # What was received last, taken apart; the file alone first, because the host needs no more.
    sub parse {
        my ($length, @fds) = @_;
        my (undef, undef, $flags, undef, $number, $arguments, $variables, $size) =
            unpack 'CCSLQLLL', substr $packet, 0, 32;
        my $strings;
        if ($flags & 1) {
            $strings = "\1" x ($size || 1);
            my $read = syscall $call{pread64}, $fds[3], $strings, $size, 0;
            $strings = '' if $read != $size;
        }
        else {
            $strings = substr $packet, 32, $length - 32;
        }
        return { number => $number, bad => 1 } if length $strings != $size || @fds < 3;
        my ($file) = unpack 'Z*', $strings;
        return {
            number => $number, file => $file, strings => $strings,
            counts => [$arguments, $variables],
        };
    }

    # Makes this process what the run is to be, as far as descriptors go.
    sub connect_run {
        my ($run, $link, @fds) = @_;
        # All that belongs to it is known by this limit, which binds nobody.
        syscall $call{prlimit64}, 0, 10, pack('QQ', $run->{number}, $run->{number}), 0;
        setpgrp 0, 0;
        for my $fd (0 .. 2) {
            if (syscall($call{dup3}, $fds[$fd], $fd, 0) < 0) {
                failed($link, $run->{number}, $DESCRIPTORS, $! + 0);
                leave(127);
            }
        }
        fd_close_all(@fds);
        my (undef, $folder) = split /\0/, $run->{strings}, 3;
        our $template_folder;
        if (!(defined $template_folder && $template_folder eq $folder) && !chdir $folder) {
            failed($link, $run->{number}, $CHANGE_FOLDER, $! + 0);
            leave(127);
        }
        our $cpu_seconds;
        syscall $call{prlimit64}, 0, 0, pack('QQ', $cpu_seconds, $cpu_seconds), 0 if $cpu_seconds;
    }

    sub close_own {
        if (syscall($call{close_range}, $OWN_BASE, 0x7fffffff, 0) < 0) {
            fd_close($_) for $OWN_BASE .. 1023;
        }
        signals(2, 0);
    }

    # What perl has besides: arguments, variables, time, chance. A template does this before it
    # forks: what its child writes to is copied first.
    my (%told, %set_by_script);
    my $seed = "\1" x 4;
    sub settle {
        my ($run) = @_;
        my ($arguments, $variables) = @{ $run->{counts} };
        my @strings = split /\0/, $run->{strings}, -1;
        @main::ARGV = @strings[3 .. 1 + $arguments];
        # Most are as they were for the request before, and are not touched.
        my $same = 0;
        my ($first, $last) = (2 + $arguments, 1 + $arguments + $variables);
        my @new = grep { !(exists $told{$_} && ++$same) } @strings[$first .. $last];
        if (@new || $same != keys %told) {
            my %now = map { $_ => 1 } @strings[$first .. $last];
            for (grep { !$now{$_} } keys %told) {
                delete $told{$_};
                my ($name) = split /=/, $_, 2;
                delete $ENV{$name} unless $set_by_script{$name};
            }
            for (@new) {
                $told{$_} = 1;
                my ($name, $value) = split /=/, $_, 2;
                $ENV{$name} = $value unless $set_by_script{$name};
            }
        }
        $0 = $run->{file} if $0 ne $run->{file};
        $^T = time;
        syscall $call{getrandom}, $seed, 4, 0;
        srand unpack 'L', $seed;
    }

    # Puts a script where perl reads on. The line before it says what it is called.
    my $source_fd;
    my $begin_bytes;
    sub read_on {
        my ($file) = @_;
        open my $opened, '<', $file or return 0;
        local $/;
        my $text = "#line 1 \"$file\"\n";
        $begin_bytes = length $text;
        $text .= <$opened>;
        close $opened;
        my $name = 'script';
        my $memory = syscall $call{memfd_create}, $name, 1;
        return 0 if $memory < 0;
        my $written = syscall $call{write}, $memory, $text, length $text;
        return 0 if $written != length $text;
        syscall $call{lseek}, $memory, 0, 0;
        my $done = syscall $call{dup3}, $memory, $source_fd, $CLOEXEC;
        fd_close($memory);
        return $done >= 0;
    }

    # Finds the DATA handle of whichever package has one, and where it stands in its file: what is
    # left of it tells, because it is read to its end here.
    my ($data, $data_place);
    sub find_data {
        # Closed, when nothing follows the script.
        return if syscall($call{fcntl}, $source_fd, 1) < 0;
        my @packages = 'main::';
        while (defined(my $package = shift @packages)) {
            no strict 'refs';
            my $stash = \%{$package};
            if (exists $stash->{DATA} && defined fileno *{"${package}DATA"}
                && fileno *{"${package}DATA"} == $source_fd) {
                $data = *{"${package}DATA"};
                my $rest = do { local $/; readline $data };
                my $end = syscall $call{lseek}, $source_fd, 0, 1;
                $data_place = $end - $begin_bytes - length($rest // '');
                return;
            }
            my $prefix = $package eq 'main::' ? '' : $package;
            push @packages, map {"$prefix$_"} grep { /::$/ && $_ ne 'main::' } keys %$stash;
        }
    }

    # It becomes a handle of the script's own file, with a place that no other request moves.
    sub reopen_data {
        my ($file) = @_;
        return unless defined $data;
        my $again = syscall $call{openat}, -100, $file, $CLOEXEC, 0;
        return if $again < 0;
        syscall $call{dup3}, $again, $source_fd, $CLOEXEC;
        fd_close($again);
        seek $data, $data_place, 0;
    }

    # ------------------------------------------------------------------ scripts

    # Whether the kernel would start something else for this file, or this perl otherwise.
    sub is_foreign {
        my ($file, $mode) = @_;
        return 1 if $file =~ /["\n]/;
        return 0 unless $mode & 0111;
        open my $opened, '<', $file or return 0;
        my $line = readline $opened;
        close $opened;
        return 0 unless defined $line;
        return 1 if $line =~ /^\x7fELF/;
        return 0 unless $line =~ /^#!\s*(\S+)\s*(.*?)\s*$/;
        my ($program, $rest) = ($1, $2);
        if ($program =~ m{/env$}) {
            ($program, $rest) = split ' ', $rest, 2;
            return 1 unless defined $program;
            ($program) = grep { -x } map {"$_/$program"} split /:/, $ENV{PATH} // '/usr/bin:/bin';
            return 1 unless defined $program;
        }
        return 1 if defined $rest && $rest !~ /^(?:-w)?$/;
        my @theirs = stat $program;
        my @ours = stat $^X;
        return !(@theirs && @ours && $theirs[0] == $ours[0] && $theirs[1] == $ours[1]);
    }

    my %scripts;
    my $uses = 0;

    # What is known of a script; looked at again when its file is another.
    my $found = "\1" x 256;
    sub look_up {
        my ($file) = @_;
        # STATX_BASIC_STATS: mode, number, size, times of change, device.
        return undef if syscall($call{statx}, -100, $file, 0, 0x7ff, $found) < 0;
        my $stamp = substr($found, 32, 16) . substr($found, 96, 28) . substr($found, 136, 8);
        my $known = $scripts{$file};
        if (!$known || $known->{stamp} ne $stamp) {
            drop_script($file) if $known;
            my ($second, $nanosecond) = unpack 'ql', substr $found, 96, 12;
            $known = $scripts{$file} = {
                stamp => $stamp,
                settled => $second * 1_000_000_000 + $nanosecond
                    + $UNSETTLED[$nanosecond ? 0 : 1],
                is_foreign => is_foreign($file, unpack 'S', substr $found, 28, 2),
            };
        }
        $known->{used} = ++$uses;
        return $known;
    }

    my (%runs, %templates);

    # Its template ends when its runs have.
    sub drop_script {
        my ($file) = @_;
        my $script = delete $scripts{$file};
        return unless $script && defined $script->{template};
        native_forget($file) if $is_native;
        fd_close($script->{template});
        delete $templates{ $script->{process} };
    }

    # ------------------------------------------------------------------ templates

    # Starts a template of a script; returns true in it.
    sub start_template {
        my ($script, $run, @fds) = @_;
        my $file = $run->{file};
        my $now = "\1" x 16;
        syscall $call{clock_gettime}, 0, $now;
        my ($second, $nanosecond) = unpack 'qq', $now;
        return 0 if $second * 1_000_000_000 + $nanosecond < $script->{settled};
        $script->{is_tried} = 1;
        if (keys %templates >= $TEMPLATES_MAX) {
            my ($oldest) = sort { last_use($a) <=> last_use($b) }
                grep { defined $scripts{$_}{template} } keys %scripts;
            drop_script($oldest) if defined $oldest;
        }
        my $pair = "\1" x 8;
        return 0 if syscall($call{socketpair}, 1, 5 | $CLOEXEC, 0, $pair) < 0;
        my ($ours, $theirs) = map { fd_own($_) } unpack 'll', $pair;
        my $process = fork;
        if (!defined $process || $process) {
            fd_close($theirs);
            return fd_close($ours), 0 if !$process;
            @$script{qw(template process links)} = ($ours, $process, {});
            $templates{$process} = $file;
            return 0;
        }
        # They are the run's, which is made beside.
        fd_close($_) for @fds;
        become_template($theirs, $file, $run);
        return 1;
    }

    # A template that is not ready has been started just now.
    sub last_use {
        my ($file) = @_;
        my $script = $scripts{$file};
        return $script->{used} unless $is_native;
        return $script->{is_ready} ? native_used($file) : ~0;
    }

    sub become_template {
        my ($socket, $file, $run) = @_;
        our $template_socket = $OWN_BASE - 1;
        syscall $call{dup3}, $socket, $template_socket, $CLOEXEC;
        close_own();
        my $name = 'said';
        my $memory = syscall $call{memfd_create}, $name, 1;
        syscall $call{dup3}, $memory, $_, 0 for 1, 2;
        fd_close($memory);
        # BEGIN sees what is the same for every request.
        my @strings = split /\0/, $run->{strings}, -1;
        my ($arguments, $variables) = @{ $run->{counts} };
        for (@strings[2 + $arguments .. 1 + $arguments + $variables]) {
            my ($name, $value) = split /=/, $_, 2;
            $ENV{$name} = $value
                if $name =~ /^(?:GATEWAY_INTERFACE|SERVER_SOFTWARE|DOCUMENT_ROOT|SCRIPT_FILENAME)$/;
        }
        our %neutral = %ENV;
        @main::ARGV = ();
        $0 = $file;
        our $template_file = $file;
        our $template_folder = $strings[1];
        leave(1) unless chdir $template_folder && read_on($file);
        my $serve = 'INIT { Hob::Warm::serve_template() } 1';
        # The less is left to do when it returns, the better: that is in each child.
        $serve = 'INIT { Hob::Warm::prepare_template(); Hob::Warm::native_serve()
            and Hob::Warm::reopen_data($Hob::Warm::template_file) } 1' if $is_native;
        eval $serve or leave(1);
    }

    # The script is compiled.
    sub prepare_template {
        our ($template_socket, $template_folder, $cpu_seconds);
        my $old = select STDOUT;
        my $is_hot = $|;
        $| = 1;
        $| = $is_hot;
        select $old;
        # Who prints while it is compiled would not do so for each request.
        leave(3) if syscall($call{lseek}, 1, 0, 2) > 0;
        find_data();
        # What BEGIN blocks did to the environment stays.
        our %neutral;
        $set_by_script{$_} = 1 for grep {
            ($ENV{$_} // "\0") ne ($neutral{$_} // "\0")
        } keys %ENV, keys %neutral;
        if ($is_native) {
            native_template($template_socket, $OWN_BASE, $template_folder, $cpu_seconds,
                defined $data, keys %set_by_script);
        }
        else {
            $bell = bell();
        }
        tidy_memory();
        fd_tell($template_socket, 'ready');
    }

    # Forks for each run, and returns in the children.
    sub serve_template {
        our ($template_socket, $template_file, $template_folder, $cpu_seconds);
        prepare_template();
        my $has_data = defined $data;
        my $no_signals = pack 'Q', 0;
        my %told_links;
        my ($bits, $is_over) = ('', 0);
        vec($bits, $_, 1) = 1 for $bell, $template_socket;
        until ($is_over && !%runs) {
            my $ready = $bits;
            next if select($ready, undef, undef, undef) <= 0;
            report($bell) if vec $ready, $bell, 1;
            next unless !$is_over && vec $ready, $template_socket, 1;
            my ($length, @fds) = fd_receive($template_socket) or next;
            if (!$length) {
                $is_over = 1;
                vec($bits, $template_socket, 1) = 0;
                next;
            }
            my ($flags, $link_number) = unpack 'x2Sx24L', $packet;
            # A link comes once, with the first run that is to be told over it.
            $told_links{$link_number} = fd_own(pop @fds) if @fds > 3 + ($flags & 1);
            my $link = $told_links{$link_number};
            my $run = parse($length, @fds);
            settle($run);
            my $limits = pack 'QQ', ($run->{number}) x 2;
            my (undef, $folder) = split /\0/, $run->{strings}, 3;
            my $is_other = $cpu_seconds || $folder ne $template_folder
                || @fds != 3 || $fds[2] != $fds[0] + 2;
            my $process = fork;
            if (!defined $process) {
                failed($link, $run->{number}, $FORK, $! + 0);
            }
            elsif ($process) {
                $runs{$process} = [$link, $run->{number}];
            }
            else {
                # As connect_run and close_own do, but each call of a sub touches memory that is
                # copied then.
                syscall $call{prlimit64}, 0, 10, $limits, 0;
                setpgrp 0, 0;
                if ($is_other
                    || syscall($call{dup3}, $fds[0], 0, 0) < 0
                    || syscall($call{dup3}, $fds[1], 1, 0) < 0
                    || syscall($call{dup3}, $fds[2], 2, 0) < 0
                    || syscall($call{close_range}, $fds[0], $fds[2], 0) < 0
                    || syscall($call{close_range}, $OWN_BASE - 1, 0x7fffffff, 0) < 0) {
                    connect_run($run, $link, @fds);
                    fd_close($template_socket);
                    close_own();
                }
                else {
                    syscall $call{rt_sigprocmask}, 2, $no_signals, 0, 8;
                }
                reopen_data($template_file) if $has_data;
                $! = $? = 0;
                return;
            }
            fd_close_all(@fds);
        }
        leave(0);
    }

    # Has the allocator join its free pieces now. It does when a large one is let go, and a child
    # would have to copy all that stands between them.
    sub tidy_memory {
        my $large = "\1" x (256 * 1024);
        undef $large;
    }

    sub report {
        my ($bell) = @_;
        for my $one (ended($bell)) {
            my ($process, @how) = @$one;
            my $run = delete $runs{$process};
            if ($run) {
                tell_ended(@$run, $process, @how);
            }
            else {
                note_other($process, $how[0]);
            }
        }
    }

    sub note_other {
        my ($process, $status) = @_;
        my $file = delete $templates{$process};
        return unless defined $file;
        my $script = $scripts{$file};
        # A template that works ends when it is told to; its runs would be nobody's.
        die "a template of $file ended with status $status\n" if $script->{is_ready};
        fd_close($script->{template});
        delete @$script{qw(template process)};
    }

    # ------------------------------------------------------------------ the host

    my $first = 3;
    # By descriptor: its number, which is never another's.
    my (%links, $link_count);

    # Takes a packet of a link; true in a child, which has to return from here on.
    sub take {
        my ($link) = @_;
        my ($length, @fds) = fd_receive($link) or return 0;
        if (!$length) {
            fd_close($link);
            delete $links{$link};
            undef $first if defined $first && $link == $first;
            return 0;
        }
        my $kind = unpack 'xC', $packet;
        if ($kind == 1 && @fds == 1) {
            $links{ fd_own($fds[0]) } = ++$link_count;
            return 0;
        }
        die "the server makes no sense to this host\n" if $kind != 2 || $length < 32;
        my ($is_child, $process) = take_run($link, $length, @fds);
        return 1 if $is_child;
        $runs{$process} = [$link, unpack 'x8Q', $packet] if $process;
        fd_close_all(@fds);
        return 0;
    }

    # Gives whether this is a child; else the process that was forked for the run, if one was.
    sub take_run {
        my ($link, $length, @fds) = @_;
        my $run = parse($length, @fds);
        my $number = $run->{number};
        return failed($link, $number, $READ_STRINGS, $EINVAL) if $run->{bad};
        my $script = look_up($run->{file});
        return failed($link, $number, $READ_SCRIPT, $! + 0) unless $script;
        our $compiles;
        if ($compiles && !$script->{is_foreign}) {
            check_ready($run->{file}, $script) if defined $script->{template} && !$script->{is_ready};
            if ($is_native) {
                return 0 if native_pass();
            }
            elsif ($script->{is_ready}) {
                # It knows links by number, and each is passed to it once.
                my $link_number = $links{$link};
                substr $packet, 28, 4, pack 'L', $link_number;
                my @new = $script->{links}{$link_number} ? () : $link;
                if (fd_pass_on($script->{template}, $length, @fds, @new)) {
                    $script->{links}{$link_number} = 1 if @new;
                    return 0;
                }
            }
            return 1 if !$script->{is_tried} && start_template($script, $run, @fds);
        }
        my $process = fork;
        return failed($link, $number, $FORK, $! + 0) unless defined $process;
        return 0, $process if $process;
        connect_run($run, $link, @fds);
        execute($run, $link) if $script->{is_foreign};
        if (!read_on($run->{file})) {
            failed($link, $number, $READ_SCRIPT, $! + 0);
            leave(127);
        }
        close_own();
        settle($run);
        native_end() if $is_native;
        $! = $? = 0;
        our $run_file = $run->{file};
        eval 'INIT { Hob::Warm::find_data(); Hob::Warm::reopen_data($Hob::Warm::run_file); $! = 0 }';
        return 1;
    }

    sub check_ready {
        my ($file, $script) = @_;
        my ($length) = fd_receive_aside($script->{template});
        $script->{is_ready} = 1 if $length;
        native_direct($file, $script->{stamp}, $script->{template}) if $length && $is_native;
    }

    # Without touching what was received last.
    sub fd_receive_aside {
        my ($fd) = @_;
        my $text = "\1" x 16;
        syscall($call{fcntl}, $fd, 4, $NONBLOCK);
        my $length = syscall $call{read}, $fd, $text, 16;
        return $length > 0 ? $length : ();
    }

    # What is not ours runs as the kernel runs it.
    sub execute {
        my ($run, $link) = @_;
        my ($arguments, $variables) = @{ $run->{counts} };
        my @strings = split /\0/, $run->{strings}, -1;
        my @words = @strings[2 .. 1 + $arguments];
        %ENV = map { split /=/, $_, 2 } @strings[2 + $arguments .. 1 + $arguments + $variables];
        signals(2, 0);
        no warnings 'exec';
        exec { $run->{file} } @words;
        failed($link, $run->{number}, $EXECUTE, $! + 0);
        leave(127);
    }

    sub serve_natively {
        native_begin($first, $OWN_BASE);
        fd_tell($first, pack('CCSLQ', 1, 32, 0, 0, 0) . sprintf 'perl %vd', $^V);
        while (my ($kind, @what) = native_wait($packet)) {
            if ($kind == 2) {
                note_other(@what);
                next;
            }
            my ($is_child, $process) = take_run(@what);
            return if $is_child;
            native_started($process // 0);
        }
        leave(0);
    }

    sub serve {
        $first = fd_own(3);
        return serve_natively() if $is_native;
        $bell = bell();
        $links{$first} = ++$link_count;
        fd_tell($first, pack('CCSLQ', 1, 32, 0, 0, 0) . sprintf 'perl %vd', $^V);
        while (defined $first || %runs) {
            my $bits = '';
            vec($bits, $_, 1) = 1 for $bell, keys %links;
            next if select($bits, undef, undef, undef) <= 0;
            report($bell) if vec $bits, $bell, 1;
            for my $link (grep { vec $bits, $_, 1 } keys %links) {
                return if take($link);
            }
        }
        leave(0);
    }

    sub begin {
        # What a child ends with is bound at its first use: here, and not in each child.
        eval { die "\n" };
        if (open my $null, '>', '/dev/null') {
            syswrite $null, "\n";
        }
        our ($compiles, $cpu_seconds);
        my ($how, $cpu, @modules) = splice @main::ARGV;
        ($compiles, $cpu_seconds) = ($how eq 'compile', $cpu);
        ($source_fd) = grep {
            my $target = readlink "/proc/self/fd/$_";
            defined $target && $target =~ /memfd/
        } 4 .. 40;
        die "this text cannot be found among the open files\n" unless defined $source_fd;
        # Read: standard input is empty from now on.
        my $empty = '/dev/null';
        my $null = syscall $call{openat}, -100, $empty, 0, 0;
        syscall $call{dup3}, $null, 0, 0;
        fd_close($null);
        for my $module (@modules) {
            my $file = "$module.pm";
            $file =~ s{::}{/}g;
            eval { require $file } or die "$@warm.preload: the module $module cannot be loaded\n";
            opendir my $tasks, '/proc/self/task' or next;
            my $threads = grep {/^\d/} readdir $tasks;
            die "warm.preload: the module $module starts threads\n" if $threads > 1;
        }
        serve();
    }

    begin();
}
