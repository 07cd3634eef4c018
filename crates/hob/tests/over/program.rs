//! Carries what a test says over HTTP/1.1 to hob over another protocol: `over PROTOCOL PORT`.
//!
//! A test is written once and speaks HTTP/1.1 in clear. With `HOB_TEST_OVER` set to `tls`, `h2` or
//! `h3` the harness starts this program beside hob and gives the test its port. Each connection of
//! a test becomes one of that protocol, each request one of its requests; what hob answers goes
//! back as HTTP/1.1. What breaks on one side breaks on the other, and a side that does not read
//! stops the one that sends.
//!
//! - `front` HTTP/1.1 with the test
//! - `carry` one connection of a test: its requests and their answers
//! - `h2`, `h3` the client towards hob, by libraries that share no line with it
//! - `tls` what the client trusts, and HTTP/1.1 over TLS, which is the test's own bytes
//!
//! It is an example to cargo, because those may use what only tests depend on.
#![allow(clippy::unwrap_used)]
#![forbid(unsafe_code)]

mod carry;
mod front;
mod h2;
mod h3;
mod tls;

use std::io::{Read, Write};
use std::rc::Rc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

/// Pieces of bodies, and how much of one is under way.
const PIECE_BYTES: usize = 64 * 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (protocol, port, is_asking) = match &arguments[..] {
        [protocol, port] => (protocol, port, false),
        [protocol, port, word] if protocol == "h3" && word == "asking" => (protocol, port, true),
        _ => {
            eprintln!("usage: over tls|h2|h3 PORT, or over h3 PORT asking");
            std::process::exit(2);
        }
    };
    let port: u16 = port.parse().expect("the port of hob");
    std::thread::spawn(end_with_input);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, accept(protocol, port, is_asking));
}

/// Whoever started this holds the other end of standard input: when it is gone, so is this.
fn end_with_input() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

async fn accept(protocol: &str, port: u16, is_asking: bool) {
    let serve: Rc<dyn Fn(TcpStream)> = match protocol {
        "tls" => {
            let client = tls::client(b"http/1.1");
            Rc::new(move |test| drop(spawn_local(tls::carry(test, client.clone(), port))))
        }
        "h2" => {
            let client = tls::client(b"h2");
            Rc::new(move |test| {
                drop(spawn_local(carry::serve(
                    test,
                    h2::connect(client.clone(), port),
                )));
            })
        }
        "h3" if is_asking => {
            let endpoint = h3::asking_endpoint(tls::client(b"h3"));
            Rc::new(move |test| {
                drop(spawn_local(carry::serve(
                    test,
                    h3::connect_in_time(endpoint.clone(), port),
                )));
            })
        }
        "h3" => {
            let endpoint = h3::endpoint(tls::client(b"h3"));
            Rc::new(move |test| {
                drop(spawn_local(carry::serve(
                    test,
                    h3::connect(endpoint.clone(), port),
                )));
            })
        }
        other => panic!("over {other:?}? It is tls, h2 or h3"),
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    std::io::stdout().flush().unwrap();
    loop {
        let (test, _) = listener.accept().await.unwrap();
        test.set_nodelay(true).unwrap();
        serve(test);
    }
}
