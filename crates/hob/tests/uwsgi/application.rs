//! uWSGI: what an application sees, and what becomes of what it gives.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;

use crate::harness::client::{Connection, call, exchange};
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place};
use crate::site::{self, Kept, found};

const APPLICATION: &str = r#"
import hashlib, os, time

def application(environ, start_response):
    name = environ['PATH_INFO'].split('/')[1]
    return globals()[name](environ, start_response)

def plain(start_response, *fields, status='200 OK'):
    start_response(status, [('Content-Type', 'text/plain'), *fields])

def told(environ, start_response):
    plain(start_response)
    for name in environ['QUERY_STRING'].split('&')[0].split(','):
        yield f'{name}={environ.get(name, "-")}\n'.encode()

def body(environ, start_response):
    data = environ['wsgi.input'].read()
    plain(start_response)
    sum = hashlib.md5(data).hexdigest()
    return [f"{sum} {environ.get('CONTENT_LENGTH', '-')}".encode()]

def unread(environ, start_response):
    plain(start_response)
    return [b'early']

def much(environ, start_response):
    plain(start_response)
    for _ in range(1024):
        yield b'x' * 1024

def sized(environ, start_response):
    plain(start_response, ('Content-Length', str(1 << 20)))
    return [b'x' * (1 << 20)]

def short(environ, start_response):
    plain(start_response, ('Content-Length', str(1 << 20)))
    return [b'x' * 100_000]

def gone(environ, start_response):
    plain(start_response, ('X-One', '1'), ('X-One', '2'), status='410 Gone')
    return [b'gone']

def away(environ, start_response):
    start_response('302 Found', [('Location', '/elsewhere')])
    return [b'']

def none(environ, start_response):
    start_response('204 No Content', [])
    return [b'']

def waits(environ, start_response):
    plain(start_response)
    yield b'first'
    while not os.path.exists('run/go'):
        time.sleep(0.001)
    yield b'last'

def fails(environ, start_response):
    raise RuntimeError('it fails')

def killed(environ, start_response):
    plain(start_response, ('Content-Length', str(1 << 20)))
    yield b'x' * 100_000
    os.kill(os.getpid(), 9)

def user(environ, start_response):
    plain(start_response)
    return [environ.get('REMOTE_USER', '-').encode()]
"#;

/// uWSGI with the application of a place, listening there.
fn uwsgi(place: &Place, socket: &str) -> Command {
    place.write("application.py", APPLICATION);
    let mut command = place.command_of(&found(&["uwsgi"]));
    command.args([
        "--plugin",
        "python3",
        "--chmod-socket=666",
        "--socket",
        socket,
    ]);
    command.args(["--wsgi-file", "application.py", "--need-app"]);
    command.args([
        "--master",
        "--processes",
        "2",
        "--no-orphans",
        "--die-on-term",
    ]);
    command
}

/// The same at a socket of the place.
fn start(place: &Place, socket: &str) -> Kept {
    Kept::start(place, uwsgi(place, socket), socket)
}

/// A site with the application at `/app/`, over a socket of the place.
fn serve(keys: &str) -> (Site, Kept) {
    let place = Place::new();
    let uwsgi = start(&place, "run/uwsgi.sock");
    let site = site::serve(place, &format!("to = \"unix:run/uwsgi.sock\"{keys}"), "");
    (site, uwsgi)
}

/// As `md5sum` has it.
fn md5(place: &Place, bytes: &[u8]) -> String {
    std::fs::write(place.path("run/body"), bytes).unwrap();
    let output = place.command_of("md5sum".as_ref()).arg("run/body").output();
    String::from_utf8(output.unwrap().stdout).unwrap()[..32].to_owned()
}

#[test]
fn application_sees_where_it_stands_and_who_asks() {
    let (site, _uwsgi) = serve(", env = { REMOTE_USER = \"alice\" }, pass_authorization = true");
    let names = "SCRIPT_NAME,PATH_INFO,QUERY_STRING,REQUEST_URI,REQUEST_METHOD,REMOTE_USER,\
                 REMOTE_ADDR,HTTP_X_OWN,HTTP_AUTHORIZATION,HTTP_PROXY";
    let target = format!("/app/told/a%20b?{names}&d=e");
    let fields = "X-Own: own\r\nAuthorization: Basic c2VjcmV0\r\nProxy: x\r\n";
    let told = call(site.port(), "GET", &target, fields, b"").answer;
    assert_eq!(
        told.text(),
        format!(
            "SCRIPT_NAME=/app\nPATH_INFO=/told/a b\nQUERY_STRING={names}&d=e\n\
             REQUEST_URI={target}\nREQUEST_METHOD=GET\nREMOTE_USER=alice\nREMOTE_ADDR=127.0.0.1\n\
             HTTP_X_OWN=own\nHTTP_AUTHORIZATION=Basic c2VjcmV0\nHTTP_PROXY=-\n"
        )
    );
    let record = site.record(&target);
    assert_eq!(
        (&record["handler"], &record["status"]),
        (&"uwsgi".into(), &200.into())
    );
    assert!(record["program_us"].as_u64().unwrap() > 0, "{record}");
    site.stop();
}

#[test]
fn bodies_of_any_size_come_whole_in_both_directions() {
    let place = Place::new();
    let (port, _uwsgi) = Kept::start_at_port(|port| uwsgi(&place, &format!("127.0.0.1:{port}")));
    let site = site::serve(place, &format!("to = \"127.0.0.1:{port}\""), "");
    for len in [1, 70_000, 3_000_000] {
        let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let sum = md5(&site.place, &body);
        let told = call(site.port(), "POST", "/app/body", "", &body).answer;
        assert_eq!(told.text(), format!("{sum} {len}"));
    }
    let chunks = b"POST /app/body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                   Connection: close\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let sum = md5(&site.place, b"hello world");
    let told = exchange(site.port(), chunks).answer;
    assert_eq!(told.text(), format!("{sum} 11"));
    for target in ["/app/much", "/app/sized"] {
        let told = site.get(target);
        assert!(
            told.is_whole && told.answer.body == vec![b'x'; 1 << 20],
            "{target}"
        );
        let head = call(site.port(), "HEAD", target, "", b"").answer;
        assert_eq!((head.status, head.body.len()), (200, 0), "{target}");
    }
    site.stop();
}

#[test]
fn application_need_not_read_a_body() {
    let (site, _uwsgi) = serve("");
    // It closes with bytes unread: the connection is reset behind the answer.
    for _ in 0..20 {
        let told = call(site.port(), "POST", "/app/unread", "", &vec![b'x'; 200_000]);
        assert!(told.is_whole);
        assert_eq!(
            (told.answer.status, told.answer.text().as_str()),
            (200, "early")
        );
    }
    site.stop();
}

#[test]
fn status_and_fields_are_the_applications_own() {
    let (site, _uwsgi) = serve("");
    let gone = site.get("/app/gone").answer;
    assert_eq!((gone.status, gone.text().as_str()), (410, "gone"));
    let ones = gone.headers.iter().filter(|(name, _)| name == "x-one");
    assert_eq!(ones.count(), 2);
    assert_eq!(gone.header("content-length"), Some("4"));
    let away = site.get("/app/away").answer;
    assert_eq!(
        (away.status, away.header("location")),
        (302, Some("/elsewhere"))
    );
    let none = site.get("/app/none").answer;
    assert_eq!((none.status, none.body.len()), (204, 0));
    // Nobody has logged in.
    assert_eq!(site.get("/app/user").answer.text(), "-");
    site.stop();
}

#[test]
fn first_piece_is_sent_when_it_comes() {
    let (site, _uwsgi) = serve("");
    let mut connection = Connection::open(site.port()).unwrap();
    connection.send_get("/app/waits").unwrap();
    assert_eq!(connection.read_head().unwrap().0, 200);
    connection.read_until("first");
    std::fs::write(site.place.path("run/go"), "").unwrap();
    connection.read_until("last");
    site.stop();
}

#[test]
fn application_that_fails_or_dies_is_a_502_or_breaks_off() {
    let (site, _uwsgi) = serve("");
    // uWSGI closes without a word.
    assert_eq!(site.get("/app/fails").answer.status, 502);
    let closed = "the program closed the connection before its answer ended";
    assert_eq!(site.record("/app/fails")["reason"], closed);
    for target in ["/app/short", "/app/killed"] {
        let told = site.get(target);
        assert!(told.is_broken(), "{target}");
        let reason = "the answer is shorter than its Content-Length";
        assert_eq!(site.record(target)["reason"], reason, "{target}");
    }
    // Its master starts another one.
    let until = Instant::now() + DEADLINE;
    while site.get("/app/gone").answer.status != 410 {
        assert!(Instant::now() < until, "it does not");
    }
    site.stop();
}

#[test]
fn variables_that_the_protocol_cannot_carry_are_refused_before_anybody_is_asked() {
    let place = Place::new();
    let keys = format!(
        "to = \"unix:run/none.sock\", env = {{ LONG = \"{}\" }}",
        "x".repeat(60_000)
    );
    let site = site::serve(place, &keys, "");
    // With what the config sets it is too much.
    let fields = format!("X-Long: {}\r\n", "x".repeat(6_000));
    let told = call(site.port(), "GET", "/app/x", &fields, b"").answer;
    assert_eq!(told.status, 431);
    let record = site.record("/app/x");
    assert_eq!(
        (&record["reason"], &record["fault"]),
        (
            &"the variables of the request are longer than 64 KiB".into(),
            &"client".into()
        )
    );
    assert_eq!(site.place.counter("limit_upstream_variables"), 1);
    assert_eq!(site.place.counter("upstream_connects"), 0);
    site.stop();
}

#[test]
fn one_member_is_stopped_and_the_other_answers() {
    let place = Place::new();
    let a = start(&place, "run/a.sock");
    let b = start(&place, "run/b.sock");
    let to = "to = [\"unix:run/a.sock\", \"unix:run/b.sock\"]";
    let site = site::serve(place, to, "");
    let ask = |method| {
        call(site.port(), method, "/app/gone", "", b"")
            .answer
            .status
    };
    assert_eq!(ask("GET"), 410);
    drop(a);
    for method in ["GET", "POST", "GET", "POST", "GET", "POST"] {
        assert_eq!(ask(method), 410, "{method}");
    }
    // What nobody may write to cannot be reached either.
    let mode = PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(site.place.path("run/b.sock"), mode).unwrap();
    drop(b);
    assert!([502, 503].contains(&ask("GET")));
    site.stop();
}
