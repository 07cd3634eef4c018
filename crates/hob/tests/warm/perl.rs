//! Perl scripts.

use crate::compare::{Case, compare};

#[test]
fn script_sees_and_does_what_it_would_if_it_was_started() {
    compare(
        &cases(),
        "interpreter = \"perl\", preload = [\"POSIX\", \"File::Spec\"]",
    );
}

#[test]
fn script_that_is_compiled_each_time_does_so_too() {
    compare(&cases(), "interpreter = \"perl\", compile = false");
}

#[test]
fn script_kept_compiled_knows_nothing_of_other_requests() {
    let text = "#!/usr/bin/perl\nuse strict; my $count = 0; our $global; $count++; $global .= 'x';\n\
                print \"Content-Type: text/plain\\n\\n$count $global $ENV{QUERY_STRING}\\n\";\n";
    compare(&[Case::new("counts.pl", text)], "interpreter = \"perl\"");
}

#[test]
fn end_of_a_script_is_seen_as_it_would_be_if_it_was_started() {
    let whiches = [
        "none", "loud", "lexical", "auto", "heir", "tied", "late", "pipe", "coded", "full",
        "posix", "code",
    ];
    let cases: Vec<Case> = whiches
        .into_iter()
        .map(|which| {
            let name: &'static str = Box::leak(format!("ends-{which}.pl").into_boxed_str());
            let rest: &'static str = Box::leak(format!("?which={which}").into_boxed_str());
            Case::new(name, ENDS).at(rest)
        })
        .collect();
    compare(&cases, "interpreter = \"perl\"");
}

fn cases() -> Vec<Case> {
    let head = |rest: &'static str| -> &'static str {
        // More than a pipe holds: its answer has begun when the script goes on.
        let rest = rest.replace("MUCH", "'x' x 200_000");
        let text = format!("print \"Content-Type: text/plain\\n\\n\";\n{rest}");
        Box::leak(text.into_boxed_str())
    };
    let body: &'static [u8] = Box::leak(vec![b'x'; 1_000_000].into_boxed_slice());
    vec![
        Case::new("env.pl", ENVIRONMENT).at("/path%20info/x?a+b"),
        Case::new("words.pl", ENVIRONMENT).at("/?one+two%20words"),
        Case::new("around.pl", AROUND),
        Case::new("order.pl", ORDER),
        Case::new("data.pl", DATA).posts(b"the body\n"),
        Case::new("begin-env.pl", "BEGIN { $ENV{PATH} = '/bin'; $ENV{NEW} = 'x'; delete $ENV{GATEWAY_INTERFACE} }\nprint \"Content-Type: text/plain\\n\\n$ENV{PATH} $ENV{NEW} $ENV{QUERY_STRING}\", exists $ENV{GATEWAY_INTERFACE} ? 1 : 0;\n"),
        Case::new("end.pl", "print \"Content-Type: text/plain\\n\\n\", <DATA>;\n__END__\nafter the end\n"),
        Case::new("package-data.pl", "package Other;\nprint \"Content-Type: text/plain\\n\\n\", <DATA>;\n__DATA__\nof a package\n"),
        Case::new("modulino.pl", "main() unless caller;\nsub main { print \"Content-Type: text/plain\\n\\nran\\n\" }\n"),
        Case::new("falls.pl", head("print 'end'")),
        Case::new("exit3.pl", head("print 'x'; exit 3;")),
        Case::new("exit-begin.pl", "BEGIN { print \"Content-Type: text/plain\\n\\nfrom BEGIN\\n\"; exit 2 }\n"),
        Case::new("prints-begin.pl", "BEGIN { print \"Content-Type: text/plain\\n\\nfrom BEGIN\\n\" }\nprint 'and later';\n"),
        Case::new("dies.pl", "use strict;\nmy $x = 1;\ndie 'a reason';\n"),
        Case::new("dies-late.pl", head("$| = 1; print MUCH; die { code => 5 }->{code};")),
        Case::new("dies-object.pl", "package E; use overload '\"\"' => sub { 'object' }; die bless {}, 'E';\n"),
        Case::new("errno.pl", head("$| = 1; print MUCH; open F, '<', '/no/such' or do { $! = 7; die 'with errno' };")),
        Case::new("warns.pl", "#!/usr/bin/perl -w\nprint \"Content-Type: text/plain\\n\\n$^W\"; my $u; my $t = \"a$u\"; warn 'careful';\n"),
        Case::new("warns-compiling.pl", "use warnings; my $x = 1; my $x = 2;\nprint \"Content-Type: text/plain\\n\\nx\";\n"),
        Case::new("syntax.pl", "print 'x'\nif;\n"),
        Case::new("strict.pl", "use strict; $undeclared = 1;\n"),
        Case::new("missing.pl", "use No::Such::Module;\n"),
        Case::new("handler.pl", head("$SIG{__DIE__} = sub { print 'caught ', @_; exit 0 }; die 'x';")),
        Case::new("end-blocks.pl", head("END { print \"one $?\\n\" } END { print \"two\\n\"; $? = 4 } exit 3;")),
        Case::new("destroys.pl", head("package T; sub DESTROY { print 'gone' } package main; our $kept = bless {}, 'T'; my $r = bless {}, 'T'; $r->{r} = $r; print 'body ';")),
        Case::new("unflushed.pl", head("open our $kept, '>', 'written' or die; print $kept 'text'; END { print -e 'written' ? 'there' : 'not there' }")),
        Case::new("killed.pl", head("$| = 1; print MUCH; kill 9, $$;")),
        Case::new("term.pl", head("$| = 1; print MUCH; kill 'TERM', $$; sleep 9")),
        Case::new("forks.pl", FORKS),
        Case::new("executes.pl", "exec 'sh', '-c', 'printf \"Content-Type: text/plain\\n\\n\"; echo $REQUEST_METHOD; grep Sig[BC] /proc/self/status; ls /proc/$$/fd';\n"),
        Case::new("runs.pl", RUNS),
        Case::new("alarm.pl", head("$| = 1; local $SIG{ALRM} = sub { print 'rang' }; alarm 1; select undef, undef, undef, 9;")),
        Case::new("echo.pl", "binmode STDIN; local $/; my $b = <STDIN>; print \"Content-Type: text/plain\\n\\n$b\", length $b;\n").posts(body),
        Case::new("large.pl", head("print \"$_\\n\" for 1 .. 200000;")),
        Case::new("taint.cgi", "#!/usr/bin/perl -T\nprint \"Content-Type: text/plain\\n\\n${^TAINT}\";\n"),
        Case::new("by-name.cgi", "#!/usr/bin/env perl\nprint \"Content-Type: text/plain\\n\\n$0 @ARGV\";\n").at("?w"),
        Case::new("shell.cgi", "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho \"$0 $1\"; env | grep -c .; grep Sig[BIC] /proc/self/status; ls /proc/$$/fd\n").at("?w"),
        Case::new("nothing.pl", ""),
        Case::new("status.pl", "print \"Status: 404 Not Found\\nContent-Type: text/plain\\n\\nno\";\n"),
        Case::new("location.pl", "print \"Location: http://other.example/\\n\\n\";\n"),
        Case::new("lines.pl", "\n\n\nprint \"Content-Type: text/plain\\n\\n\", __LINE__, __FILE__, (caller)[2] // 'none';\n# line 70 \"other\"\nprint __LINE__, __FILE__;\n"),
    ]
}

const ENVIRONMENT: &str = include_str!("scripts/environment.pl");
const AROUND: &str = include_str!("scripts/around.pl");
const ORDER: &str = include_str!("scripts/order.pl");
const ENDS: &str = include_str!("scripts/ends.pl");
const DATA: &str = include_str!("scripts/data.pl");
const FORKS: &str = include_str!("scripts/forks.pl");
const RUNS: &str = include_str!("scripts/runs.pl");
