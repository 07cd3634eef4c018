//! A server behind hob that opens each WebSocket as its path says: with the answer to its key, or
//! with another one.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Of another key, that of RFC 6455.
const WRONG: &str = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

/// Starts it; its port.
pub(crate) fn start() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || answer(stream));
        }
    });
    port
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next()?.ok()?;
    let mut key = String::new();
    for line in lines.by_ref() {
        let line = line.ok()?;
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("sec-websocket-key") => {
                key = value.to_owned();
            }
            Some(_) => {}
            None => break,
        }
    }
    let right = format!("Sec-WebSocket-Accept: {}\r\n", answer_to(&key).trim());
    let told = match first.split(' ').nth(1)? {
        "/right" => right,
        "/wrong" => WRONG.to_owned(),
        "/twice" => right + WRONG,
        _ => String::new(),
    };
    let head = "HTTP/1.1 101 Open\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    stream
        .write_all(format!("{head}{told}\r\n").as_bytes())
        .ok()?;
    // Until the other side ends.
    lines.for_each(drop);
    Some(())
}

/// What belongs to a key (RFC 6455 section 4.2.2), by another's hand.
fn answer_to(key: &str) -> String {
    let program = format!(
        "import base64, hashlib\n\
         print(base64.b64encode(hashlib.sha1(b'{key}{SUFFIX}').digest()).decode())"
    );
    let printed = Command::new("python3").args(["-c", &program]).output();
    String::from_utf8(printed.unwrap().stdout).unwrap()
}
