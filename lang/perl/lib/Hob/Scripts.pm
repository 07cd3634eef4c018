package Hob::Scripts;

# Runs unchanged CGI scripts in one process that stays: each file is compiled once into a sub of a
# package of its own, and called for every request with the environment, standard handles, working
# directory and special variables of a fresh process.
#
# Standard output is descriptor 1 on a file in memory, under a layer that hands what is printed to
# this module:
#
#   print, printf, write ..> STDOUT's buffer ..> layer Hob::Scripts::Out ..> $output ..> the server
#   system, exec, syswrite, dup .............> descriptor 1, the file ......^
#
# Perl empties its buffers before it starts a child, so the two keep their order. With the native
# helper, a layer of its own, `hob`, is in the place of that one, and tells what a script has left
# behind; else everything is put back after each request.

# First of all, so that scripts are compiled without this file's pragmas and variables.
sub _evaluate { eval $_[0] }

use 5.026;
use strict;
use warnings;

use Config     ();
use Fcntl      ();
use Hob::Stream;
use IO::Handle ();
use Symbol     ();

our $VERSION = '1.0';

use constant {
    PIECE_BYTES             => 65_536,       # of output, sent as soon as they are there
    HEAD_BYTES_MAX          => 65_536,
    BODY_IN_MEMORY_BYTES_MAX => 1_048_576,
    ARGUMENT_COUNT_MAX      => 256,
    FOUND_COUNT_MAX         => 1000,         # paths whose script is remembered
    CLOSE_ON_EXEC           => 1,            # MFD_CLOEXEC
    PLAIN_LAYERS            => 'unix,perlio',
};

# What a script has left behind, as Hob::Native::traces says it.
use constant {
    FOLDER => 1, MASK => 2, ALARM => 4, HANDLERS => 8, VARIABLES => 16, HANDLES => 32, CHILD => 64,
    FORKED => 128,
};
use constant EVERYTHING => FOLDER | MASK | ALARM | HANDLERS | VARIABLES | HANDLES;

# memfd_create has no function in Perl.
my %MEMORY_FILE_CALL = (
    x86_64 => 319, aarch64 => 279, riscv64 => 279, i386 => 356, i686 => 356, arm => 385,
    ppc64  => 360, powerpc64le => 360, s390x => 350,
);

# What a script may have set and the next one must not find.
my @SIGNALS = qw(__WARN__ __DIE__ ALRM CHLD HUP INT PIPE QUIT USR1 USR2);

# Switches of CGI.pm that a script chooses when it is compiled, and what is left of a request.
my @CGI_SWITCHES = qw(
    XHTML NOSTICKY NPH DEBUG TABINDEX CLOSE_UPLOAD_FILES HEADERS_ONCE USE_PARAM_SEMICOLONS
    NO_UNDEF_PARAMS PARAM_UTF8 PUTDATA_UPLOAD APPEND_QUERY_STRING
);
my @CGI_SCALARS = qw(Q BEEN_THERE DTD_PUBLIC_IDENTIFIER QUERY_CHARSET);
my @CGI_HASHES  = qw(QUERY_PARAM QUERY_FIELDNAMES QUERY_TMPFILES);

# The process runs one script at a time, and standard output is one: this is what the layer, `exit`
# and `fork` need of it.
my ($request, $output, $file_taken, $is_begun, $is_ending, $is_running, $has_exited, $has_forked);
my ($has_accepted, $is_accept_ours);
my ($server_pid, $input_file, $output_file, $stream, $is_native);

BEGIN {
    no warnings 'redefine';
    *CORE::GLOBAL::exit = \&_exit;
    *CORE::GLOBAL::fork = \&_fork;
}

sub new {
    my ($class, $folder) = @_;
    my @base = map { $_ => $ENV{$_} } grep { $_ ne 'HOB_FD' } keys %ENV;
    return bless {
        folder  => $folder // '',
        base    => \@base,
        scripts => {},
        found   => {},
        known   => {},
        usual   => {},
        count   => 0,
        current => '',
    }, $class;
}

# Answers requests until the server wants no more.
sub serve {
    my ($self, $connection) = @_;
    ($stream, $server_pid) = ($connection, $$);
    $self->{term}           = $SIG{TERM};
    $self->{inc}            = [@INC];
    $self->{umask}          = umask;
    $self->{has_error_pipe} = -p STDERR;
    open $self->{error}, '>&', \*STDERR or die "standard error cannot be duplicated: $!\n";
    $is_native = ref $stream eq 'Hob::Native';
    Hob::Native::watch(\$output, \$is_ending) if $is_native;
    _renew_files();
    Hob::Native::remember_handles() if $is_native;
    while ($request = $stream->next) {
        $is_begun = $is_ending = $has_exited = $has_forked = $file_taken = $has_accepted = 0;
        $output = '';
        $is_native && !$self->{has_left} ? $self->_serve_usual : $self->_serve_one;
        undef $request;
    }
    return;
}

# What most requests are, with the native part: for a script that has run before and has nothing to
# be done around it, without a body, and afterwards all is as it was.
sub _serve_usual {
    my ($self) = @_;
    my $usual  = $request->usual(\%ENV, $self->{current}, $self->{usual}) // return $self->_serve_one;
    my $error  = _call($usual->[0]);
    my $traces = defined $error ? Hob::Native::traces() : $request->finish_usual($usual) // return;
    return $self->_end_one($usual->[1], defined $error ? _show($error) : undef, $traces);
}

sub _serve_one {
    my ($self) = @_;
    $self->_set_environment;
    _take_arguments();
    $self->_set_body if $request->has_body;
    my $file = $request->indexed(11);    # SCRIPT_FILENAME
    if ($file eq $self->{folder}) {
        my $instead = $self->{instead};    # of a native request, where it is known
        $file = ($instead && @$instead ? $instead->[1] : $self->_find)
            // return $request->answer(404, "Content-Type: text/plain\n", "no such script\n");
    }
    my $error  = $self->_run($file);
    my $traces = $is_native ? Hob::Native::traces() : EVERYTHING | ($$ == $server_pid ? 0 : CHILD);
    $self->_keep_usual($file) if $is_native && !$traces;
    return $self->_end_one($file, $error, $traces);
}

# From the end of a script to the end of its answer, and all as it was.
sub _end_one {
    my ($self, $file, $error, $traces) = @_;
    CORE::exit($error ? 255 : 0) if $traces & CHILD;    # that ran off the script's end
    $is_ending = 1;                                     # 2 once the layer has been called
    if ($is_native) { Hob::Native::end_output() }
    else {
        select STDOUT;
        $| = 1;                                         # empties the buffer, into $output
        $| = 0;
    }
    _take_file() if $is_ending == 1 && ($is_native ? Hob::Native::has_file() : -s $output_file);
    _finish($file, $error) if !$is_native || defined $error || !$request->send_printed($output);
    $self->_clean_up($traces);
    return;
}

# Where the server names only the folder: the script is the first file on the way along the path,
# and what follows is its PATH_INFO. The variables change accordingly.
sub _find {
    my ($self) = @_;
    my ($name, $path) = map { $request->indexed($_) } 2, 3;    # SCRIPT_NAME and PATH_INFO as they came
    my $found = $self->{found}{$path} //= $self->_look_up($path) // return;
    %{ $self->{found} } = () if keys %{ $self->{found} } > FOUND_COUNT_MAX;
    (my $script = $found) =~ tr{/}{}s;
    (my $rest   = substr $path, length $found) =~ tr{\x01}{/};
    my @resolved = (
        SCRIPT_FILENAME => $self->{folder} . $script,
        SCRIPT_NAME     => $name . $script,
        PATH_INFO       => $rest,
    );
    my %resolved = @resolved;
    for my $variable (keys %resolved) {
        $ENV{$variable} = $resolved{$variable} if $ENV{$variable} ne $resolved{$variable};
    }
    if ($self->{instead}) {
        %{ $self->{known} } = () if keys %{ $self->{known} } > FOUND_COUNT_MAX;
        $self->{known}{"$name\0$path"} = \@resolved;
    }
    else { $self->{values} = join "\0", values %ENV }
    return $resolved{SCRIPT_FILENAME};
}

# The part of a path that leads to a file in the folder; nothing hidden, no links that lead out. An
# encoded slash comes as byte 1: it is part of a name, and no file has such a one.
sub _look_up {
    my ($self, $path) = @_;
    return if $path !~ m{\A/} || $path =~ m{/\.|\0};
    my $at = 0;
    while ($at < length $path) {
        my $end = index $path, '/', $at + 1;
        $at = $end < 0 ? length $path : $end;
        my $file = $self->{folder} . substr $path, 0, $at;
        return if $file =~ m{\x01};
        next   if -d $file;
        return if !-f _;
        require Cwd;
        my ($inside, $folder) = map { Cwd::realpath($_) // '' } $file, $self->{folder};
        return index($inside, "$folder/") == 0 ? substr $path, 0, $at : undef;
    }
    return;
}

# Runs the script; returns what it died of, if it did.
sub _run {
    my ($self, $file) = @_;
    my $script = $self->_script($file);
    return $script if !ref $script;
    if ($script->{data}) {
        no strict 'refs';
        open *{"$script->{package}::DATA"}, "<$script->{data_layer}", $script->{data};
    }
    $SIG{$_} = $script->{signals}{$_} for keys %{ $script->{signals} };
    $^W = $script->{warns};
    ($?, $!) = (-1, 0);
    my $error = _call($script->{code});
    $error = _show($error) if defined $error;
    for my $block (@{ $script->{ends} // [] }) {
        my $end_error = _call($block) // next;
        print STDERR $end_error;
    }
    _empty_owned($script) if %{ $script->{owned} };
    _forget($script)      if $script->{is_fresh};
    return $error;
}

# Calls code of a script, which may die or exit; what it died of.
sub _call {
    my ($code) = @_;
    local ($@, $_);
    $is_running = 1;
    my $has_returned = eval {
        HOB_SCRIPT: { $code->(@ARGV) }
        1;
    };
    $is_running = 0;
    return if $has_returned || $has_exited;
    return length $@ ? $@ : 'died';
}

# What a script dies of is for the log. A script that shows it by itself has done so in its handler
# for __DIE__, but that of CGI::Carp does nothing in an eval, in which all this happens.
sub _show {
    my ($error) = @_;
    my $handler = $SIG{__DIE__} or return $error;
    if (defined &CGI::Carp::die && ref $handler && $handler == \&CGI::Carp::die) {
        CGI::Carp::fatalsToBrowser("$error");
    }
    chomp(my $line = "$error");
    print STDERR "$line\n";
    return;
}

# The compiled script, or why there is none. Compiled again when the file has changed; for every
# request when its subs would share variables with the first request only.
sub _script {
    my ($self, $file) = @_;
    my $stamp = $is_native ? Hob::Native::stamp($file) : join ' ', (stat $file)[1, 7, 9, 10];
    return "$file cannot be read: $!\n" if !$stamp;
    my $script = $self->{scripts}{$file};
    $self->_change_to($file, $script) if $self->{current} ne $file;
    chdir $script->{folder}           if $script && $self->{has_left};
    $self->{has_left} = 0;
    return $script          if $script && $script->{stamp} eq $stamp && !$script->{is_fresh};
    _forget($script) if $script;
    @$self{qw(found known usual)} = ({}, {}, {});
    $self->{scripts}{$file} = $script = $self->_compile($file, $script);
    return $script if !ref $script && delete $self->{scripts}{$file};
    $script->{stamp} = $stamp;
    return $script;
}

# Remembers how the next request for the same is served, if it can be the usual one.
sub _keep_usual {
    my ($self, $file) = @_;
    my $script = $self->{scripts}{$file} // return;
    return if $script->{is_fresh} || $script->{warns} || $script->{data};
    return if @{ $script->{ends} // [] } || %{ $script->{owned} } || %{ $script->{signals} };
    my $named = $request->indexed(11);
    my $key   = $named eq $self->{folder} ? $request->place : $named;
    %{ $self->{usual} } = () if keys %{ $self->{usual} } > FOUND_COUNT_MAX;
    $self->{usual}{$key} =
        [$script->{code}, $file, $script->{stamp}, scalar @{ $script->{inc} }, $self->{instead}];
    return;
}

# What scripts set for the whole process at the time they are compiled.
sub _change_to {
    my ($self, $file, $script) = @_;
    my $last = $self->{scripts}{ $self->{current} };
    $last->{libraries} = { map { $_ => delete $INC{$_} } grep { !/\.pm\z/ } keys %INC } if $last;
    $self->{current}  = $file;
    $self->{has_left} = 1;
    $0                = $file;
    @INC             = @{ $script ? $script->{inc} : $self->{inc} };
    if ($script) {
        my $libraries = $script->{libraries} // {};
        @INC{ keys %$libraries } = values %$libraries;
        _set_cgi_switches($script->{cgi}) if $script->{cgi};
        FindBin->again if $script->{finds_bin};
    }
    return;
}

sub _compile {
    my ($self, $file, $before) = @_;
    open my $handle, '<:raw', $file or return "$file cannot be read: $!\n";
    my $source = do { local $/; readline $handle };
    close $handle;
    my $script = {
        file    => $file,
        folder  => $file =~ m{\A(.+)/} ? $1 : '/',
        signals => {},
        owned   => {},
    };
    chdir $script->{folder};
    @INC = @{ $self->{inc} };
    my $options = _options(\$source, $script);
    _cut_data(\$source, $script);
    FindBin->again            if $INC{'FindBin.pm'};
    CGI::initialize_globals() if $INC{'CGI.pm'};
    if ($source =~ /\bCGI::Carp\b/ && eval { require CGI::Carp; 1 }) {
        $script->{signals}{__WARN__} = \&CGI::Carp::warn;    # which it sets when it is loaded
    }
    my $end_count = _end_count();
    my $error     = $self->_compile_source($script, $options, $source, $before);
    _take_accept() if $INC{'FCGI.pm'} && !$is_accept_ours;
    return $error if defined $error;
    $script->{ends}      = _take_ends($end_count, $script->{package});
    $script->{inc}       = [@INC];
    $script->{finds_bin} = !!$INC{'FindBin.pm'};
    $script->{cgi}       = _cgi_switches() if $INC{'CGI.pm'};
    for my $name (@SIGNALS) { $script->{signals}{$name} = $SIG{$name} if defined $SIG{$name} }
    return $script;
}

# Compiles the source, once or more: variables of the file that its subs use are made package
# variables, for a sub keeps those of the first call; those that cannot be have the script compiled
# for every request. What is wrong with the source, if something is.
sub _compile_source {
    my ($self, $script, $options, $source, $before) = @_;
    my ($error, $was_deaf) = $self->_compile_once($script, $options, $source, $before);
    ($error) = $self->_compile_once($script, $options, $source, 1) if !defined $error && $was_deaf;
    for my $round (1 .. 3) {
        return $error if defined $error || !@{ $script->{shared} };
        my $changed = $round < 3 ? _own_variables($source, $script) : undef;
        ($error) = $self->_compile_once($script, $options, $changed, 1) if defined $changed;
        next if defined $changed && !defined $error;
        $script->{is_fresh} = 1;
        $script->{owned}    = {};
        ($error) = $self->_compile_once($script, $options, $source, 1);
        return $error;
    }
}

# What is wrong, if something is; and whether somebody else took the warnings.
sub _compile_once {
    my ($self, $script, $options, $source, $before) = @_;
    _forget($script);
    @$script{qw(package shared)} = ('Hob::Script::N' . ++$self->{count}, []);
    my $text = "package $script->{package}; sub script {use warnings 'closure';$options\n"
        . "#line 1 \"$script->{file}\"\n$source\n;\n=pod\n\n=cut\n\n}\n\\&script;\n";
    my $listener = sub { _heed($script, $before, @_) };
    local ($@, $_);
    local $^W = $script->{warns};
    $SIG{__WARN__} = $listener;
    $is_running = 1;
    HOB_SCRIPT: { $script->{code} = _evaluate($text) }
    $is_running = 0;
    my $error    = $@;
    my $was_deaf = ($SIG{__WARN__} // 0) != $listener;
    delete $SIG{__WARN__} if !$was_deaf;
    return (undef, $was_deaf) if $script->{code};
    return $has_exited ? 'exit while it was compiled' : "$error";
}

# Warnings while a script is compiled. Those about variables that subs share would not come up if
# the file were not in a sub, as it is here; nor would those about subs that are defined again.
sub _heed {
    my ($script, $before, $text) = @_;
    if    ($text =~ /\AVariable "(.*)" will not stay shared at /) { push @{ $script->{shared} }, $1 }
    elsif ($before && $text =~ /\A(?:Constant s|S)ubroutine .* redefined at /) { }
    else                                                                       { print STDERR $text }
    return;
}

# The source with `our` for `my` where the variables are declared that subs share: at the start of a
# line, and nowhere else. They are emptied after each request. Undef if that cannot be.
sub _own_variables {
    my ($source, $script) = @_;
    my $owned = $script->{owned};
    for my $name (@{ $script->{shared} }) {
        next         if $owned->{$name};
        return undef
            if $source =~ /\b(?:our|local|use\s+vars)\b\s*(?:qw\s*)?(?:\([^()]*)?\Q$name\E\b/;
        my @found;
        while ($source =~ /^my\b[ \t]*(\([^()]*\)|[\$\@%]\w+)(?=\s*[;=])/mg) {
            my $at    = $-[0];
            my @names = $1 =~ /[\$\@%]\w+/g;
            push @found, [$at, @names] if grep { $_ eq $name } @names;
        }
        return undef if @found != 1;
        my ($at, @names) = @{ $found[0] };
        substr $source, $at, 2, 'our';
        $owned->{$_} = 1 for @names;
    }
    return $source;
}

sub _forget {
    my ($script) = @_;
    delete $script->{code};
    Symbol::delete_package(delete $script->{package}) if $script->{package};
    return;
}

sub _empty_owned {
    my ($script) = @_;
    no strict 'refs';
    for my $name (keys %{ $script->{owned} }) {
        my ($kind, $word) = $name =~ /\A(.)(.*)/;
        if    ($kind eq '$') { undef ${"$script->{package}::$word"} }
        elsif ($kind eq '@') { undef @{"$script->{package}::$word"} }
        else                 { undef %{"$script->{package}::$word"} }
    }
    return;
}

# The options of perl in the first line, as Perl code.
sub _options {
    my ($source, $script) = @_;
    $$source =~ s/\r\n/\n/g if $$source =~ /\A[^\n]*\r\n/;
    my ($line) = $$source =~ /\A#!.*?perl\S*[ \t]+([^\n]*)/ ? $1 : '';
    my $code = '';
    $script->{warns} = 0;
    for my $word (split ' ', $line) {
        if    ($word =~ /\A-I(.+)/)             { unshift @INC, $1 }
        elsif ($word =~ /\A-M([\w:]+)(?:=(.*))?/) {
            $code .= defined $2 ? " use $1 split(/,/, q\0$2\0);" : " use $1;";
        }
        elsif ($word =~ /\A-\w*w/) { $script->{warns} = 1 }
    }
    return $code;
}

# What follows __END__ or __DATA__ is read from the handle DATA.
sub _cut_data {
    my ($source, $script) = @_;
    return if $$source !~ /^__(?:END|DATA)__\b[^\n]*(?:\n|\z)/m;
    my ($from, $to) = ($-[0], $+[0]);
    my $data = substr $$source, $to;
    substr $$source, $from, length($$source) - $from, '';
    $script->{data}       = \$data;
    $script->{data_layer} = $$source =~ /^\s*use\s+utf8\b/m ? ':utf8' : '';
    return;
}

# END blocks are run at the end of each request, the last first. Perl would run them at the end of
# the process: they are taken out of its list, which only the module B can see. If the script has
# also loaded modules that have some, they stay there, and are run once more at the end.
sub _end_count {
    require B;
    my $list = B::end_av();
    return $list->isa('B::AV') ? $list->FILL + 1 : 0;
}

sub _take_ends {
    my ($count_before, $package) = @_;
    my $count = _end_count() - $count_before;
    return if $count <= 0;
    my $list = B::end_av();
    my @blocks = ($list->ARRAY)[0 .. $count - 1];
    my @ends   = map { $_->object_2svref } grep { $_->STASH->NAME eq $package } @blocks;
    my $array  = $list->object_2svref;
    if (@ends == @blocks) { shift @$array for @ends }
    return \@ends;
}

sub _cgi_switches {
    no strict 'refs';
    return [map { ${"CGI::$_"} } @CGI_SWITCHES];
}

sub _set_cgi_switches {
    my ($values) = @_;
    no strict 'refs';
    ${"CGI::$CGI_SWITCHES[$_]"} = $values->[$_] for 0 .. $#CGI_SWITCHES;
    return;
}

# Each assignment changes the environment of the process too, and a request has much in common with
# the one before it: only what has changed is set, if nobody else has changed anything since.
sub _set_environment {
    my ($self) = @_;
    return $self->_set_native if ref $request eq 'Hob::Native::Request';
    my $strings = substr $request->{block}, Hob::Stream::BLOCK_HEAD_BYTES;
    if (defined $self->{strings} && $self->{values} eq join "\0", values %ENV) {
        $self->_change_environment($strings) if $strings ne $self->{strings};
    }
    else {
        $self->_set_all($request->pairs);
        $self->{values} = join "\0", values %ENV;
    }
    $self->{strings} = $strings;
    return;
}

# The same with libhob, which compares by itself. What a path leads to is known before, if it has been
# asked for before.
sub _set_native {
    my ($self) = @_;
    my $instead = $self->{instead} = $request->indexed(11) eq $self->{folder} ? $self->_known : [];
    return if $request->set(\%ENV, $self->{base}, $instead);
    $self->_set_all($request->pairs, @$instead);
    return;
}

# The variables that name the script, for a path that has been looked up before.
sub _known {
    my ($self) = @_;
    return $self->{known}{ $request->place } // [];
}

sub _set_all {
    my ($self, @pairs) = @_;
    my %wanted = (@{ $self->{base} }, @pairs);
    for my $name (keys %ENV) { delete $ENV{$name} if !exists $wanted{$name} }
    for my $name (keys %wanted) {
        $ENV{$name} = $wanted{$name} if !defined $ENV{$name} || $ENV{$name} ne $wanted{$name};
    }
    return;
}

# The words of a query that is no form.
sub _take_arguments {
    my $query = $ENV{QUERY_STRING};
    @ARGV = ();
    if (length $query && index($query, '=') < 0) {
        if   ($query =~ tr/+%-//) { _set_arguments($query) }
        else                      { @ARGV = ($query) }
    }
    return;
}

# Sets the variables between the beginning and the end that both requests have in common. A variable
# begins after an even number of NULs, counted from either end.
sub _change_environment {
    my ($self, $new) = @_;
    my $old = $self->{strings};
    ($new ^ $old) =~ /\A\0*/;
    my $from = rindex($new, "\0", $+[0] - 1) + 1;
    $from = rindex($new, "\0", $from - 2) + 1 if $from && substr($new, 0, $from) =~ tr/\0// & 1;
    substr $new, 0, $from, '';
    substr $old, 0, $from, '';
    (reverse($new) ^ reverse($old)) =~ /\A\0*/;
    my $tail = $+[0];
    $tail -= 1 + index substr($new, -$tail), "\0" if $tail;
    $tail -= 1 + index substr($new, -$tail), "\0" if $tail && substr($new, -$tail) =~ tr/\0// & 1;
    chop($old = substr $old, 0, length($old) - $tail);
    chop($new = substr $new, 0, length($new) - $tail);
    my %gone = split /\0/, $old, -1;
    my %set  = split /\0/, $new, -1;
    my %base = @{ $self->{base} };
    delete @gone{ keys %set };
    for my $name (keys %gone) {
        if   (exists $base{$name}) { $ENV{$name} = $base{$name} }
        else                       { delete $ENV{$name} }
    }
    for my $name (keys %set) { $ENV{$name} = $set{$name} }
    $self->{values} = join "\0", values %ENV;
    return;
}

# Words of a query that is no form are arguments (RFC 3875 section 4.4), as the server's own CGI
# passes them: all or none.
sub _set_arguments {
    my ($query) = @_;
    my @words = split /\+/, $query, -1;
    return if @words > ARGUMENT_COUNT_MAX;
    for my $word (@words) {
        return if $word =~ /%(?![0-9A-Fa-f]{2})|%00/;
        $word =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
        return if $word =~ /\A-/;
    }
    @ARGV = @words;
    return;
}

# The body becomes standard input, all of it before the script begins.
sub _set_body {
    my ($self) = @_;
    my ($file, $size) = ($input_file, 0);
    $self->{had_body} = 1;
    while (length(my $piece = $request->read_body)) {
        $size += length $piece;
        if ($size > BODY_IN_MEMORY_BYTES_MAX && $file == $input_file) { $file = _long_body() }
        my $written = 0;
        while ($written < length $piece) {
            $written += syswrite($file, $piece, length($piece) - $written, $written)
                // die "a body cannot be stored: $!\n";
        }
    }
    if ($file != $input_file) {
        $self->{had_long_body} = 1;
        open STDIN, '<&', $file or die "a body cannot be read: $!\n";
    }
    seek STDIN, 0, 0;
    return;
}

# A file without a name, with what is in memory so far.
sub _long_body {
    open my $file, '+>:unix', undef or die "a body cannot be stored in a file: $!\n";
    sysseek $input_file, 0, 0;
    while (sysread $input_file, my $piece, PIECE_BYTES) { syswrite $file, $piece }
    truncate $input_file, 0;
    sysseek $input_file, 0, 0;
    return $file;
}

# Sends what is there of the output, once its head is whole.
sub _send_output {
    return if !$request;
    if (!$is_begun) {
        my ($status, $fields) = _take_head() or return;
        $is_begun = 1;
        $request->begin($status, $fields);
    }
    $request->write($output) if length $output;
    $output = '';
    return;
}

# Cuts the head off the output: status and lines of fields. 0 as status means as CGI.
sub _take_head {
    while ($output =~ /\A\r?\n/ || $output =~ /\n\r?\n/) {
        my ($bytes, $end) = ($-[0], $+[0]);
        my $fields = substr $output, 0, $bytes && $bytes + 1;
        substr $output, 0, $end, '';
        return (0, $fields) if index($fields, 'HTTP/') != 0;
        my ($status) = $fields =~ s{\AHTTP/[0-9.]+ +([0-9]{3})[^\n]*\n}{} ? $1 : 0;
        return ($status, $fields) if !$status || $status >= 200;
    }
    return if length $output < HEAD_BYTES_MAX;
    $request->fail('the head of its output is longer than ' . HEAD_BYTES_MAX . " bytes\n");
    ($output, $is_begun) = ('', 1);
    return;
}

sub _finish {
    my ($file, $error) = @_;
    return if $request->is_over;
    if (defined $error) {
        chomp(my $line = "$error");
        print STDERR "$line\n";
        return $request->fail("$error");
    }
    return $request->write($output, 1) if $is_begun;
    my ($status, $fields) = _take_head();
    return $request->answer($status, $fields, $output) if defined $status;
    return if $request->is_over;
    my $what = length $output ? 'without an empty line after the head' : 'nothing';
    print STDERR "$file printed $what\n";
    return $request->fail("$file printed $what");
}

# What children and syswrite have written to descriptor 1.
sub _take_file {
    sysseek $output_file, $file_taken, 0;
    while (sysread $output_file, my $piece, PIECE_BYTES) {
        $file_taken += length $piece;
        $output .= $piece;
    }
    return;
}

# Everything as it was before the script ran.
sub _clean_up {
    my ($self, $traces) = @_;
    alarm 0 if $traces & ALARM || $INC{'Time/HiRes.pm'};
    if ($traces & HANDLERS) {
        for my $name (@SIGNALS) { delete $SIG{$name} if defined $SIG{$name} }
        $SIG{TERM} = $self->{term} if ($SIG{TERM} // 0) != ($self->{term} // 0);
        Hob::Native::remember_handlers() if $is_native;
    }
    ($/, $\, $,, $", $;, $^W) = ("\n", undef, undef, ' ', "\034", 0) if $traces & VARIABLES;
    umask $self->{umask} if $traces & MASK;
    $self->{has_left} = 1 if $traces & FOLDER;
    my $script = $self->{scripts}{ $self->{current} };
    @INC = @{ $script->{inc} } if $script && @INC != @{ $script->{inc} };
    _forget_cgi($script) if $INC{'CGI.pm'};
    _take_accept()       if $INC{'FCGI.pm'} && !$is_accept_ours;
    $self->_restore_handles($traces);
    return;
}

# A script that asks for requests in a loop of its own (`while (my $q = CGI::Fast->new)`) gets one
# each time it runs. FCGI would give one in the life of the process, as to a CGI program.
sub _take_accept {
    no warnings 'redefine';
    *FCGI::Accept   = sub { return $has_accepted++ ? -1 : 0 };
    $is_accept_ours = 1;
    return;
}

sub _forget_cgi {
    my ($script) = @_;
    no strict 'refs';
    undef ${"CGI::$_"} for @CGI_SCALARS;
    undef %{"CGI::$_"} for @CGI_HASHES;
    undef @{'CGI::QUERY_PARAM'};
    ${'CGI::DTD_PUBLIC_IDENTIFIER'} = '';
    _set_cgi_switches($script->{cgi}) if $script && $script->{cgi};
    return;
}

# A child that still runs may hold descriptors 0 and 1: what it writes later must not come up in
# another request, so they are left to it.
sub _restore_handles {
    my ($self, $traces) = @_;
    my $is_shared = $has_forked || $file_taken || $? != -1 || $traces & FORKED;
    return if !($traces & HANDLES) && !$is_shared && !$self->{had_body};
    if ($is_shared) { _renew_files() }
    else {
        _open_output() if !_is_kept(1, \*STDOUT, 'unix,perlio,' . _layer() . ',perlio');
        _open_input()  if !_is_kept(0, \*STDIN,  PLAIN_LAYERS);
        if (delete $self->{had_body}) {
            _open_input() if delete $self->{had_long_body};
            truncate $input_file, 0;
            sysseek $input_file, 0, 0;
            seek STDIN, 0, 0;
        }
    }
    my $is_error_kept = (fileno STDERR // -1) == 2 && (!$self->{has_error_pipe} || -p STDERR)
        && join(',', PerlIO::get_layers(*STDERR)) eq PLAIN_LAYERS;
    if (!$is_error_kept) {
        _open_at(2, \*STDERR, '>&', $self->{error});
        STDERR->autoflush(1);
    }
    Hob::Native::remember_handles() if $is_native;
    return;
}

# Whether a handle is what it was, perhaps after taking off the layers that the script has put on.
sub _is_kept {
    my ($fd, $handle, $layers) = @_;
    return 0 if (fileno $handle // -1) != $fd;
    return 1 if join(',', PerlIO::get_layers($handle)) eq $layers;
    binmode $handle;
    return join(',', PerlIO::get_layers($handle)) eq $layers;
}

sub _renew_files {
    ($input_file, $output_file) = (_memory_file(), _memory_file());
    fcntl $output_file, Fcntl::F_SETFL(), Fcntl::O_APPEND();
    Hob::Native::set_output_file(fileno $output_file) if $is_native;
    _open_input();
    _open_output();
    return;
}

sub _open_input { return _open_at(0, \*STDIN, '<&', $input_file) }

# Without PerlIO::via, which a very small Perl may lack, all output is in the file until the end.
sub _open_output {
    _open_at(1, \*STDOUT, '>&', $output_file);
    state $has_via = $is_native || eval { require PerlIO::via; 1 };
    if ($has_via) { binmode STDOUT, ':' . _layer(); binmode STDOUT, ':perlio' }
    return;
}

sub _layer { return $is_native ? 'hob' : 'via(Hob::Scripts::Out)' }

# Opens a standard handle as a duplicate, on its own descriptor even if that has been taken.
sub _open_at {
    my ($fd, $handle, $mode, $from) = @_;
    if ((fileno $handle // -1) != $fd) {
        require POSIX;
        close $handle;
        POSIX::dup2(fileno $from, $fd);
        open $handle, "$mode=", $fd or die "descriptor $fd cannot be opened: $!\n";
        return;
    }
    open $handle, $mode, $from or die "descriptor $fd cannot be opened: $!\n";
    return;
}

# A file in memory, or where the system has none, one without a name.
sub _memory_file {
    my ($machine) = $Config::Config{archname} =~ /\A([^-]+)/;
    my $number    = $MEMORY_FILE_CALL{$machine};
    my $name      = 'hob';
    my $fd        = $number ? syscall $number, $name, CLOSE_ON_EXEC : -1;
    my $file;
    ($fd >= 0 ? open $file, '+<&=', $fd : open $file, '+>', undef)
        or die "a file for standard input or output cannot be made: $!\n";
    binmode $file;
    return $file;
}

# `exit` in a script ends the script. Through evals and subs by `last`, which no eval catches; where
# that cannot leave, as in a sort, by dying.
sub _exit (;$) {
    CORE::exit($_[0] // 0) if !$is_running || $$ != $server_pid;
    $has_exited = 1;
    no warnings 'exiting';
    last HOB_SCRIPT;
}

# A child has its own life: it must not hold the server's socket.
sub _fork () {
    $has_forked = 1;
    my $pid = CORE::fork;
    $stream->leave if defined $pid && !$pid;
    return $pid;
}

package Hob::Scripts::Out;

use strict;
use warnings;

sub PUSHED  { my $self = ''; return bless \$self, $_[0] }
sub BINMODE { return 0 }

# Full buffers are collected; one that is not full was flushed by the script, which means it.
sub WRITE {
    my ($self, $bytes, $below) = @_;
    return _write_as_child($below, $bytes) if !$is_ending && $$ != $server_pid;
    Hob::Scripts::_take_file() if -s $output_file;
    $output .= $bytes;
    if ($is_ending) {
        $is_ending = 2;    # the file has been looked into
        return length $bytes;
    }
    my $is_flushed = length($bytes) & 4095;
    Hob::Scripts::_send_output() if $is_flushed || length $output >= Hob::Scripts::PIECE_BYTES;
    return length $bytes;
}

# A child has no part in what is collected. Its descriptor 1 may be a pipe to its parent.
sub _write_as_child {
    my ($below, $bytes) = @_;
    my $written = 0;
    while ($written < length $bytes) {
        $written += syswrite($below, $bytes, length($bytes) - $written, $written) // return -1;
    }
    return $written;
}

1;

__END__

=head1 NAME

Hob::Scripts - unchanged CGI scripts in a process that stays

=head1 SYNOPSIS

    use Hob::Scripts;
    use Hob::Stream;

    Hob::Scripts->new('/srv/cgi-bin')->serve(Hob::Stream->connect);

In a server's config, C<resident = { scripts = "cgi-bin" }> does this.

=head1 DESCRIPTION

The script that C<SCRIPT_FILENAME> names is compiled when it is asked for first, and again when its
file has changed; after that a request costs a call of a sub. A script finds what it would find as
plain CGI:

=over

=item *

C<%ENV>, C<@ARGV> and C<$0>; its own folder as working directory.

=item *

The body on C<STDIN>, whole. C<STDOUT> and descriptor 1, for C<print>, C<syswrite>, duplicates of
the handle and child processes alike, in the order in which they write. What is printed leaves at
the end, when it is more than 64 KiB, and when the script flushes (C<$|>).

=item *

C<$/>, C<$\>, C<$,>, C<$">, C<$;>, C<$|>, C<$^W>, C<$_>, C<@INC>, C<umask>, signal handlers and
C<alarm> of a fresh process; layers of the standard handles.

=item *

C<exit> ends the script, also from inside an C<eval>. C<END> blocks run after each request. C<DATA>
is read from its start.

=item *

CGI.pm with its parameters of this request; C<fatalsToBrowser> of CGI::Carp.

=item *

Loops of CGI::Fast and FCGI (C<< while (my $q = CGI::Fast->new) >>): each run of the script gets one
request, and then the end of the loop.

=item *

Libraries that it requires and that are no modules (C<require './lib.pl'>) are its own.

=item *

C<-w>, C<-I> and C<-M> in its first line.

=back

A script that dies is answered with 500, or breaks off if part of the answer has left; the message
is in the log. If it has a handler for C<__DIE__>, what that printed is the answer.

=head1 LIMITS

=over

=item *

B<Package variables stay> from request to request, as under mod_perl; and so do handles that are no
C<my> variables. Use C<my>, or set them at the start.

=item *

A sub keeps the C<my> variables of the file around it that it saw first. So those which named subs
use are made package variables, emptied after each request, if they are declared once, by a C<my> at
the start of a line. Scripts with others are compiled for every request: as right, but slower; C<our>
instead of C<my> makes them fast. Where C<no warnings> is in effect, nothing of this is noticed.

=item *

B<BEGIN blocks and C<use>> run once, in the environment of the first request. Modules are shared by
all scripts of the process, and a changed module is not loaded again.

=item *

The script runs in a package of its own, in a sub: C<main::name> is not its C<name>, C<__PACKAGE__>
is not C<main>, and C<caller> is not empty at the top of the file. C<INIT> and C<CHECK> blocks are
not run. C<__END__> at the start of a line ends the script even in a here-document.

=item *

C<exec> replaces the process: the request fails, and the server starts another one. C<POSIX::_exit>
ends it. A child of C<fork> that does not C<exit> ends when it reaches the end of the script. The
answer ends with the script: what a child that is left behind prints later is lost.

=item *

With the native part, C<chdir>, C<umask> and C<alarm> are undone where Perl code calls them, and
alarms of Time::HiRes. What the C code of other modules does behind Perl's back stays.

=item *

C<-T> has no effect: a process is tainted from its start or not at all.

=item *

Output of child processes and of C<syswrite> is collected in memory until the script prints, flushes
or ends.

=item *

Scripts of one folder see each other's package variables if they try. Who must not trust each other
needs a route, and a user, of its own.

=back

=head1 METHODS

=over

=item new($folder)

Remembers the environment, which is that of every script beside its request's variables. Where
C<SCRIPT_FILENAME> of a request is the folder, C<PATH_INFO> names the script; an encoded slash
(C<%2F>) is byte 1 there, and a slash again in what the script finds.

=item serve($stream)

Answers requests from a L<Hob::Stream> until the server wants no more. It takes over standard input
and output of the process.

=back

=cut
