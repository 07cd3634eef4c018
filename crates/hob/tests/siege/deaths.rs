//! Servers die while clients ask over HTTP/3: each gets an answer or hears that there is none,
//! comes back, and none waits for ever.
//!
//! The clients ask now and then whether their connection is still known, as one that waits for an
//! answer does, and give none up because nothing comes (`Carrier::start_asking`): a server that
//! does not know a connection has to say so.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::over::Carrier;
use crate::harness::{Place, send_signal, wait_for_end};
use crate::pool::until;
use crate::watch::{OnDrop, besieged, take_turn};

/// Deaths at least.
const DEATHS: usize = 3;
/// What a long answer is made of: more than is on its way at a time, and soon whole.
const LINE: &str = "0123456789abcde\n";
const LINES: usize = 256 * 1024;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Whole,
    CutOff,
}

#[test]
fn clients_of_http3_hear_of_a_servers_death_and_come_back() {
    let _turn = take_turn();
    let place = Place::new();
    let hob = place.serve_text(
        "[limits]\nidle = \"1h\"\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"self-signed\"\n\
         [[site]]\nroot = \"site\"\n",
    );
    let carrier = Carrier::start_asking(hob.tls_port());
    place.write("site/lines.txt", &LINE.repeat(LINES));
    let asked = ["/hello.txt", "/lines.txt"];
    let (is_over, port) = (&AtomicBool::new(false), carrier.port);
    let whole: Vec<_> = (0..6).map(|_| AtomicUsize::new(0)).collect();
    let (deaths, outcomes) = std::thread::scope(|scope| {
        let clients: Vec<_> = whole
            .iter()
            .enumerate()
            .map(|(index, whole)| {
                let path = asked[index % asked.len()];
                scope.spawn(move || ask_until(is_over, port, path, whole))
            })
            .collect();
        let over = OnDrop(is_over);
        let goes_on = besieged();
        let mut deaths = 0;
        while deaths < DEATHS || goes_on() {
            let before: Vec<_> = whole.iter().map(|one| one.load(Ordering::SeqCst)).collect();
            until("every client has an answer", || {
                assert!(!clients.iter().any(|client| client.is_finished()));
                let mut both = whole.iter().zip(&before);
                both.all(|(now, before)| now.load(Ordering::SeqCst) > *before)
            });
            let server = hob.server();
            send_signal(server, Signal::KILL);
            wait_for_end(server);
            deaths += 1;
            hob.wait_for_count("server ready", deaths + 1);
        }
        drop(over);
        let mut outcomes = BTreeMap::new();
        for outcome in clients.into_iter().flat_map(|one| one.join().unwrap()) {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
        (deaths, outcomes)
    });
    println!("{deaths} deaths; answers: {outcomes:?}");
    assert!(
        outcomes.contains_key(&("/lines.txt", Outcome::CutOff)),
        "{outcomes:?}"
    );
    drop(carrier);
    hob.stop();
}

fn ask_until(
    is_over: &AtomicBool,
    port: u16,
    path: &'static str,
    whole: &AtomicUsize,
) -> Vec<(&'static str, Outcome)> {
    let (mut outcomes, mut kept) = (Vec::new(), None);
    while !is_over.load(Ordering::SeqCst) {
        let outcome = match ask(port, path, &mut kept) {
            Ok(()) => Outcome::Whole,
            // Each names an end of the connection; a time-out is none.
            Err(error) if is_cut(&error) => Outcome::CutOff,
            Err(error) => panic!("{path}: {error}"),
        };
        whole.fetch_add((outcome == Outcome::Whole).into(), Ordering::SeqCst);
        outcomes.push((path, outcome));
    }
    outcomes
}

/// Asks over the connection that there is, or another one.
fn ask(port: u16, path: &str, kept: &mut Option<Connection>) -> io::Result<()> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(port)?,
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.send(head.as_bytes())?;
    let answer = connection.read()?;
    assert_eq!(answer.status, 200, "{path}");
    let right = match path {
        "/hello.txt" => b"hello\n".to_vec(),
        _ => LINE.repeat(LINES).into_bytes(),
    };
    assert!(answer.body == right, "{path}");
    *kept = Some(connection);
    Ok(())
}

fn is_cut(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
    )
}
