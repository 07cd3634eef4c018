//! The whole `Plack::Test::Suite`, Perl's tests for servers of PSGI, over a CGI of its application.
//!
//! Every test must pass under hob, or stand in the table below with the reason. What hob fails is
//! asked of Apache and lighttpd too; not the rest, since each request starts a Perl.

use crate::harness::text_of;
use crate::place::{Place, installed};
use crate::servers::{self, Mount, PEERS, Peer, Server};

/// The suite's own application, as Plack's documentation makes a CGI of one.
const PROGRAM: &str = "#!/usr/bin/perl\nuse strict;\nuse warnings;\nuse Plack::Handler::CGI;\n\
    use Plack::Test::Suite;\n\
    Plack::Handler::CGI->new->run(Plack::Test::Suite->test_app_handler);\n";

/// Runs the suite, or only the tests named, against a server that runs already; the one it starts
/// itself only waits.
const RUNNER: &str = "use strict;\nuse warnings;\nuse Test::More;\nuse Plack::Test::Suite;\n\
    my ($port, @only) = @ARGV;\n\
    for my $test (@only ? @Plack::Test::Suite::TEST : ()) {\n\
        $test->[1] = sub {} unless grep { $_ eq $test->[0] } @only;\n\
    }\n\
    Plack::Test::Suite->run_server_tests(sub { sleep 1 while 1 }, $port, $port);\n\
    done_testing;\n";

/// Tests that hob fails, the peers that do too, and why.
const FAILURES: &[Failure] = &[Failure {
    test: "Do not crash when the app dies",
    peers: &[],
    reason: "A server of PSGI catches what an application throws and answers 500. Over CGI it \
                 is a process that ended without an answer: 500 for Apache and lighttpd, 502 for \
                 hob, as for every program whose output is no answer. The suite wants 500.",
}];

/// A test that is known to fail.
struct Failure {
    test: &'static str,
    peers: &'static [Peer],
    reason: &'static str,
}

/// What the suite said.
struct Run {
    /// Names of tests with an assertion that failed.
    failed: Vec<String>,
    /// How many assertions did not fail.
    passed: usize,
    text: String,
}

/// Runs the tests with these names; all for none.
fn run(place: &Place, server: &Server, only: &[&str]) -> Run {
    let mut command = place.command("/usr/bin/perl");
    let port = server.port.to_string();
    let output = command
        .args(["suite.pl", &port])
        .args(only)
        .output()
        .unwrap();
    let text = text_of(&output);
    let said = String::from_utf8_lossy(&output.stdout);
    let mut failed: Vec<String> = Vec::new();
    let (mut name, mut passed) = ("", 0);
    for line in said.lines() {
        if let Some(test) = line.strip_prefix("# ") {
            name = test;
        } else if line.starts_with("ok ") {
            passed += 1;
        } else if line.starts_with("not ok ") && failed.last().is_none_or(|last| last != name) {
            failed.push(name.to_owned());
        }
    }
    assert!(said.contains("\n1.."), "it did not run to its end: {text}");
    Run {
        failed,
        passed,
        text,
    }
}

/// Fails unless exactly the known ones failed.
fn failed_as_known(name: &str, run: &Run, is_known: impl Fn(&Failure) -> bool) {
    let known: Vec<&Failure> = FAILURES.iter().filter(|one| is_known(one)).collect();
    for test in &run.failed {
        let is_known = known.iter().any(|one| one.test == test);
        assert!(is_known, "{name}: {test}\n{}", run.text);
    }
    for one in known {
        let has_failed = run.failed.iter().any(|test| test == one.test);
        assert!(
            has_failed,
            "{name} passes {}; why it would not: {}",
            one.test, one.reason
        );
    }
}

#[test]
fn the_suite_of_plack_passes() {
    let files = ["/usr/share/perl5/Plack/Test/Suite.pm"];
    if installed("plack", &files).is_none() {
        return;
    }
    let place = Place::new();
    let script = place.script("bin/plack.cgi", PROGRAM);
    place.write("suite.pl", RUNNER);
    let mount = Mount::new(&place, "", script);
    let ours = run(&place, &servers::hob(&place, &mount), &[]);
    failed_as_known("hob", &ours, |_| true);
    assert!(ours.passed > 90, "{}", ours.text);
    let only: Vec<&str> = FAILURES.iter().map(|one| one.test).collect();
    for peer in PEERS {
        if let Some(server) = servers::peer(peer, &place, &mount) {
            let theirs = run(&place, &server, &only);
            failed_as_known(peer.name(), &theirs, |one| one.peers.contains(&peer));
        }
    }
}
