//! A program in Perl that answers for every path of its route, over a socket of its own.

use crate::harness::Place;
use crate::harness::client::call;
use crate::site::{self, Kept, found};

const PROGRAM: &str = r#"use FCGI;
my $socket = FCGI::OpenSocket($ARGV[0], 64);
chmod 0666, $ARGV[0];
my $request = FCGI::Request(\*STDIN, \*STDOUT, \*STDERR, \%ENV, $socket);
while ($request->Accept() >= 0) {
    my $body = '';
    read STDIN, $body, $ENV{CONTENT_LENGTH} if $ENV{CONTENT_LENGTH};
    print "Content-Type: text/plain\r\n\r\n";
    print "$ENV{SCRIPT_NAME} $ENV{PATH_INFO} $ENV{REQUEST_METHOD} $body";
}
"#;

#[test]
fn program_without_files_answers_for_all_paths() {
    let place = Place::new();
    let socket = place.path("run/perl.sock");
    let mut command = place.command_of(&found(&["perl"]));
    command.args(["-e", PROGRAM]).arg(&socket);
    let _program = Kept::start(&place, command, "run/perl.sock");
    let site = site::serve(place, "to = \"unix:run/perl.sock\", split = \"\"", "");
    assert_eq!(
        site.get("/app/any/path%20here").answer.text(),
        "/app /any/path here GET "
    );
    let put = call(site.port(), "PUT", "/app/", "", b"body").answer;
    assert_eq!(put.text(), "/app / PUT body");
    assert_eq!(
        call(site.port(), "TRACE", "/app/", "", b"").answer.status,
        405
    );
    // One after the other, from many clients at once.
    let answers = std::thread::scope(|scope| {
        let ask = |at: usize| {
            let port = site.port();
            scope.spawn(move || {
                call(port, "GET", &format!("/app/{at}"), "", b"")
                    .answer
                    .text()
            })
        };
        let asked: Vec<_> = (0..65).map(ask).collect();
        let told = asked.into_iter().map(|one| one.join().unwrap());
        told.collect::<Vec<_>>()
    });
    for (at, told) in answers.iter().enumerate() {
        assert_eq!(*told, format!("/app /{at} GET "));
    }
    site.stop();
}
