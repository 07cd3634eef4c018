//! Requests that hide others: what comes to the other server is what the records say, request for
//! request. The corpus is the one of `conformance/smuggling`, which also has other protocols, real
//! servers, and parsers of others for what comes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::peer::serve_to;

const CORPUS: &str = include_str!("../../../../conformance/smuggling/corpus.txt");
/// The status of each answer of the other server: nobody else gives it.
const SEEN: u16 = 299;

/// A line of the corpus, as its top describes it.
struct Case {
    name: &'static str,
    id: String,
    passes: bool,
    marker_passes: bool,
    ends: bool,
    target: String,
    body: Vec<u8>,
    sent: Vec<u8>,
}

impl Case {
    fn read(line: &'static str, index: usize) -> Case {
        let id = format!("{index:04}");
        let parts: Vec<_> = line
            .splitn(4, " |")
            .map(|part| part.trim_matches(' '))
            .collect();
        let [name, becomes, body, sent] = parts[..] else {
            panic!("{line}");
        };
        let sent = filled(sent, &id);
        let words: Vec<_> = becomes.split(' ').collect();
        let first_line = String::from_utf8_lossy(&sent);
        let target = match words.get(2) {
            Some(&target) if target != "fin" => target.replace("{id}", &id),
            _ => first_line.split(' ').nth(1).unwrap_or_default().to_owned(),
        };
        Case {
            name,
            passes: words[0] == "pass",
            marker_passes: words[1] == "pass",
            ends: words.get(2) == Some(&"fin"),
            target,
            body: filled(body, &id),
            sent,
            id,
        }
    }

    fn marker(&self) -> String {
        format!("/app/marker-{}", self.id)
    }

    /// Sends it and the marker behind it, and waits until hob has closed the connection.
    fn send(&self, port: u16) {
        let mut client = Connection::open(port).unwrap();
        let marker = format!(
            "GET {} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            self.marker()
        );
        // Who is refused may have been closed before all of it was sent.
        let _ = client.send(&[&self.sent, marker.as_bytes()].concat());
        if self.ends {
            client.end_sending();
        }
        client.read_to_end();
    }

    /// What should have come of it, and what came.
    fn difference(&self, came: &[Seen]) -> Option<String> {
        let mut expected = Vec::new();
        if self.passes {
            expected.push((self.target.clone(), self.body.clone()));
        }
        if self.marker_passes {
            expected.push((self.marker(), Vec::new()));
        }
        let own = came.iter().filter(|seen| seen.target.contains(&self.id));
        let own: Vec<_> = own
            .map(|seen| (seen.target.clone(), seen.body.clone()))
            .collect();
        (own != expected).then(|| format!("{}: {own:?}, not {expected:?}\n", self.name))
    }
}

/// The bytes that a text of the corpus stands for.
fn filled(text: &str, id: &str) -> Vec<u8> {
    let text = text
        .replace("{get}", r"GET /app/{id} HTTP/1.1\r\nHost: h\r\n")
        .replace("{post}", r"POST /app/{id} HTTP/1.1\r\nHost: h\r\n")
        .replace(
            "{hidden}",
            r"GET /app/hidden-{id} HTTP/1.1\r\nHost: h\r\n\r\n",
        )
        .replace("{id}", id);
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'\\', [b'x', digits @ ..]) => {
                let digits = std::str::from_utf8(&digits[..2]).unwrap();
                out.push(u8::from_str_radix(digits, 16).unwrap());
                &behind[3..]
            }
            (b'\\', [escaped, behind @ ..]) => {
                out.push(match escaped {
                    b'r' => b'\r',
                    b'n' => b'\n',
                    b't' => b'\t',
                    other => *other,
                });
                behind
            }
            (b'{', [filling, b'*', count @ ..]) => {
                let end = count.iter().position(|byte| *byte == b'}').unwrap();
                let times = std::str::from_utf8(&count[..end]).unwrap();
                out.extend(vec![*filling; times.parse().unwrap()]);
                &count[end + 1..]
            }
            _ => {
                out.push(*first);
                behind
            }
        };
    }
    out
}

/// A request that came whole.
struct Seen {
    method: String,
    target: String,
    body: Vec<u8>,
}

impl Seen {
    /// The first of these bytes and how long it is; `None` where it is not all there.
    fn read(bytes: &[u8]) -> Result<Option<(Seen, usize)>, String> {
        let mut slots = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut slots);
        let begin = match head.parse(bytes).map_err(|error| error.to_string())? {
            httparse::Status::Complete(begin) => begin,
            httparse::Status::Partial => return Ok(None),
        };
        // Some programs cannot tell a dash from an underscore.
        let values = |wanted: &str| -> Vec<&[u8]> {
            let is_it = |name: &str| name.replace('_', "-").eq_ignore_ascii_case(wanted);
            let fields = head.headers.iter().filter(|field| is_it(field.name));
            fields.map(|field| field.value).collect()
        };
        // A tunnel for WebSocket is asked for, and refused.
        let is_tunnel = values("upgrade") == [b"websocket"] && values("connection") == [b"Upgrade"];
        let of_tunnel: &[&str] = if is_tunnel {
            &[]
        } else {
            &["connection", "upgrade"]
        };
        for name in ["te", "trailer", "expect", "keep-alive"]
            .iter()
            .chain(of_tunnel)
        {
            if !values(name).is_empty() {
                return Err(format!("{name} belongs to the client's connection"));
            }
        }
        let framing = (
            &values("content-length")[..],
            &values("transfer-encoding")[..],
        );
        let read = match framing {
            ([], []) => Some((Vec::new(), begin)),
            ([length], []) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => {
                let length: usize = String::from_utf8_lossy(length).parse().unwrap();
                let body = bytes.get(begin..begin + length);
                body.map(|body| (body.to_vec(), begin + length))
            }
            ([], [b"chunked"]) => chunks(bytes, begin)?,
            _ => return Err(format!("its end is told in two ways: {framing:?}")),
        };
        if values("host").len() != 1 || head.version != Some(1) {
            return Err("it has not one host, or is not HTTP/1.1".to_owned());
        }
        let seen = |body| Seen {
            method: head.method.unwrap().to_owned(),
            target: head.path.unwrap().to_owned(),
            body,
        };
        Ok(read.map(|(body, end)| (seen(body), end)))
    }
}

/// A body in chunks as hob writes them, without extensions and trailers, and where it ends.
fn chunks(bytes: &[u8], mut at: usize) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut body = Vec::new();
    loop {
        let rest = &bytes[at..];
        let Some(line_len) = rest.windows(2).position(|two| two == b"\r\n") else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(&rest[..line_len]);
        let size = match usize::from_str_radix(&line, 16) {
            Ok(size) if format!("{size:x}") == line => size,
            _ => return Err(format!("{line:?} is no size of a chunk")),
        };
        let Some(chunk) = rest.get(line_len + 2..line_len + 2 + size + 2) else {
            return Ok(None);
        };
        if &chunk[size..] != b"\r\n" {
            return Err("a chunk does not end where it says".to_owned());
        }
        body.extend_from_slice(&chunk[..size]);
        at += line_len + 2 + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// What comes to the other server, which answers each request.
#[derive(Clone, Default)]
struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
    faults: Arc<Mutex<String>>,
}

impl Recorder {
    /// Listens until the tests end. Returns its port.
    fn start(&self) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let recorder = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, recorder) = (stream.unwrap(), recorder.clone());
                std::thread::spawn(move || {
                    if let Err(fault) = recorder.record(stream) {
                        recorder.faults.lock().unwrap().push_str(&fault);
                    }
                });
            }
        });
        port
    }

    fn record(&self, mut stream: TcpStream) -> Result<(), String> {
        let (mut held, mut room) = (Vec::new(), vec![0; 1 << 16]);
        // A request that breaks off ends by a reset.
        while let Ok(count @ 1..) = stream.read(&mut room) {
            held.extend_from_slice(&room[..count]);
            while let Some((seen, end)) = Seen::read(&held)? {
                held.drain(..end);
                let body = if seen.method == "HEAD" { "" } else { "seen" };
                let answer = format!("HTTP/1.1 {SEEN} Seen\r\nContent-Length: 4\r\n\r\n{body}");
                self.seen.lock().unwrap().push(seen);
                let _ = stream.write_all(answer.as_bytes());
            }
        }
        Ok(())
    }
}

#[test]
fn what_comes_to_the_other_server_is_what_the_records_say() {
    let lines = CORPUS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases: Vec<_> = lines
        .enumerate()
        .map(|(at, line)| Case::read(line, at))
        .collect();
    let recorder = Recorder::default();
    let site = serve_to(&format!("\"http://127.0.0.1:{}\"", recorder.start()), "");
    for case in &cases {
        case.send(site.port());
    }
    let Site { place, hob } = site;
    hob.stop();
    let seen = recorder.seen.lock().unwrap();
    let wrong: String = cases
        .iter()
        .filter_map(|case| case.difference(&seen))
        .collect();
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(*recorder.faults.lock().unwrap(), "");

    // One for one, each under the target it was asked for with.
    let mut told: BTreeMap<(String, String), i32> = BTreeMap::new();
    let log = std::fs::read_to_string(place.path("run/access.log")).unwrap();
    for line in log.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["status"] == SEEN {
            let text = |key: &str| record[key].as_str().unwrap().to_owned();
            *told.entry((text("method"), text("target"))).or_default() += 1;
        }
    }
    let asked_as = |seen: &Seen| {
        let case = cases
            .iter()
            .find(|case| case.passes && case.target == seen.target);
        let asked = case.map(|case| String::from_utf8_lossy(&case.sent).into_owned());
        let target = asked.and_then(|line| line.split(' ').nth(1).map(str::to_owned));
        target.unwrap_or_else(|| seen.target.clone())
    };
    for one in seen.iter() {
        *told.entry((one.method.clone(), asked_as(one))).or_default() -= 1;
    }
    told.retain(|_, count| *count != 0);
    assert!(told.is_empty(), "more in the records, or less: {told:?}");
    println!(
        "{} requests, of which {} went on",
        2 * cases.len(),
        seen.len()
    );
}
